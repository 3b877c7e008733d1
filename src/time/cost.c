/* What an instruction costs on a compute engine. The rule column of the instruction table names the formula (isa/rules.c has
 * it in words with sources), arch/ the numbers; here is the arithmetic. Costs are of the instruction alone: what it waits for
 * is sched.c's work. Must not know other instructions, but for the scalar engine's function table. */
#include "time/time_int.h"

void time_rates_init(struct time_rates *rates, const struct vtrn_arch *arch)
{
    int64_t stacks_of_core = arch->hbm_bandwidth / arch->hbm_stacks;
    const int64_t clock[VTRN_STREAMS] = {
        [VTRN_STREAM_TENSOR] = arch->pe_clock, [VTRN_STREAM_VECTOR] = arch->vector_clock, [VTRN_STREAM_SCALAR] = arch->scalar_clock,
        [VTRN_STREAM_GPSIMD] = arch->gpsimd_clock, [VTRN_STREAM_SYNC] = arch->gpsimd_clock, [VTRN_STREAM_LOAD] = arch->gpsimd_clock,
        [VTRN_STREAM_STORE] = arch->gpsimd_clock, [VTRN_STREAM_MOVE] = arch->gpsimd_clock,
    };

    *rates = (struct time_rates){ .arch = arch };
    for (int s = 0; s < VTRN_STREAMS; s++) rates->mega[s] = UINT64_C(1000000000000000000) / (uint64_t)clock[s];
    rates->dma_mega = UINT64_C(1000000000000000000) / (uint64_t)arch->dma_engine_bandwidth;
    rates->sustained_mega = UINT64_C(1000000000000000000) / (uint64_t)arch->dma_sustained_bandwidth;
    rates->hbm_mega = UINT64_C(1000000000000000000) / (uint64_t)stacks_of_core;
    for (int f = 0; f < VTRN_FACTS; f++) rates->assumed[f] = arch->facts[f].basis == VTRN_ASSUMED;
}

void cost_add(const struct time_rates *rates, struct time_plan *plan, enum vtrn_fact_id fact, uint64_t ps)
{
    if (rates->assumed[fact]) plan->assumed_ps += (uint32_t)(ps > UINT32_MAX / 8 ? UINT32_MAX / 8 : ps);
}

static uint32_t cap32(uint64_t ps) { return ps > UINT32_MAX ? UINT32_MAX : (uint32_t)ps; }

/* ---------------------------------------------------------------- operands */
static bool is_16_bit(const struct time_rates *rates, const struct vtrn_ap *ap)
{
    const struct vtrn_dtype_info *dtype = &vtrn_dtypes[ap->dtype];

    if (dtype->cls != VTRN_CLASS_FLOAT) return false;
    return dtype->size_bytes == 2 || (dtype->size_bytes == 1 && rates->arch->nc_version >= 4); /* A4: fp8 is in that class */
}

static int space_of(const struct time_state *state, const struct vtrn_ap *ap) { return state->time->prog->tensor[ap->tensor].space; }
static bool in_sbuf(const struct time_state *state, const struct vtrn_ap *ap) { return space_of(state, ap) == VTRN_SBUF; }

/* The innermost dimension that has more than one element; its stride in elements, 1 for a single element. */
static int64_t inner_stride(const struct vtrn_ap *ap)
{
    for (int d = ap->ndim - 1; d >= 1; d--)
        if (ap->dim[d].count > 1) return ap->dim[d].stride;
    return 1;
}

/* Steps of 16 bytes and more halve the rate of an access (A2). */
static bool is_coarse(const struct vtrn_ap *ap)
{
    int64_t bytes = inner_stride(ap) * vtrn_dtypes[ap->dtype].size_bytes;

    return bytes >= 16 || bytes <= -16;
}

struct shape { /* what the rules look at: the tensors of an instruction */
    const struct vtrn_ap *dst, *in[2];
    int ins;
    bool pointer;   /* has a (P,1) scalar operand */
    bool dynamic;   /* an address that a register or tensor gives */
    bool reads_out; /* reduce_res */
    int64_t most;   /* elements per partition of the longest operand */
};

static void look(const struct vtrn_inst *inst, struct shape *shape)
{
    const struct vtrn_op_info *op = &vtrn_ops[inst->op];

    *shape = (struct shape){ 0 };
    for (int a = 0; a < op->operands; a++) {
        const struct vtrn_value *value = &inst->arg[a];
        int64_t elems;

        if (value->kind != VTRN_V_AP) continue;
        if (value->ap.ndyn) shape->dynamic = true;
        if (op->operand[a].kind == VTRN_K_SCALAR) {
            shape->pointer = true;
            continue;
        }
        elems = ap_free(&value->ap);
        if (op->operand[a].access & VTRN_WRITE) {
            if (!shape->dst) shape->dst = &value->ap;
            else shape->reads_out = true;
        } else if (shape->ins < 2) {
            shape->in[shape->ins++] = &value->ap;
        }
        if (elems > shape->most) shape->most = elems;
    }
}

/* ---------------------------------------------------------------- element rates */
/* Elements per cycle of a copy or scalar operator: A3's conditions are 16-bit floats, SBUF and contiguity on both sides; the
 * wide rate with all, half of it with all but one. */
static int64_t copy_rate(const struct time_state *state, const struct shape *shape, bool vector)
{
    const struct vtrn_arch *arch = state->rates.arch;
    bool narrow = false, off_sbuf = false, strided = false;
    const struct vtrn_ap *side[2] = { shape->dst, shape->ins ? shape->in[0] : shape->dst };
    int missing;

    if (!shape->dst) return 1;
    for (int i = 0; i < 2; i++) {
        if (!is_16_bit(&state->rates, side[i])) narrow = true;
        if (!in_sbuf(state, side[i])) off_sbuf = true;
        if (inner_stride(side[i]) != 1) strided = true;
    }
    missing = narrow + off_sbuf + strided;
    if (!vector) return missing == 0 ? arch->scalar_wide : 1;
    return missing == 0 ? arch->vector_wide : missing == 1 ? arch->vector_half_wide : 1;
}

static bool all_16_bit(const struct time_state *state, const struct shape *shape)
{
    if (!shape->dst || !is_16_bit(&state->rates, shape->dst)) return false;
    for (int i = 0; i < shape->ins; i++)
        if (!is_16_bit(&state->rates, shape->in[i])) return false;
    return true;
}

/* Cycles of a two-input operator on the vector engine, in halves of N. */
static int64_t two_inputs(const struct time_state *state, const struct vtrn_inst *inst, const struct shape *shape, int64_t n)
{
    bool both_sbuf = shape->ins == 2 && in_sbuf(state, shape->in[0]) && in_sbuf(state, shape->in[1]);
    bool packed = all_16_bit(state, shape) && both_sbuf;
    int64_t op = inst->op == VTRN_OP_tensor_tensor ? VTRN_ARGS(tensor_tensor, inst)->op.i : 0;

    if (shape->ins < 2 || !both_sbuf) return n;
    if (!packed) return 2 * n;
    if (state->rates.arch->vector_wide > 1) return n; /* v3 on: twice as fast with 16 bit in SBUF */
    if (inst->op == VTRN_OP_scalar_tensor_tensor) {
        const struct vtrn_args_scalar_tensor_tensor *arg = VTRN_ARGS(scalar_tensor_tensor, inst);

        return arg->op0.i == VTRN_ALU_SUBTRACT && arg->op1.i == VTRN_ALU_MULTIPLY && n % 2 == 0 ? n : 2 * n;
    }
    for (int i = 0; i < 2; i++)
        if (inner_stride(shape->in[i]) != 1) return 2 * n;
    return op == VTRN_ALU_ADD || op == VTRN_ALU_MULTIPLY || op == VTRN_ALU_SUBTRACT ? n : 2 * n;
}

static int64_t gather_cycles(const struct vtrn_inst *inst)
{
    const struct vtrn_args_local_gather *arg = VTRN_ARGS(local_gather, inst);
    int64_t e = arg->num_elem_per_idx.i, size = vtrn_dtypes[arg->dst.ap.dtype].size_bytes;
    int64_t count = arg->num_valid_indices.kind == VTRN_V_NONE ? 16 * ap_free(&arg->index.ap) : arg->num_valid_indices.i;
    int64_t least = 4 / size < e ? (size > 4 ? 1 : 4 / size) : e;

    return count * e * 4 * e * least / (28 + 4 * e); /* count * e / C, C = ((28 + 4e) / 4e) / min(4/size, e) */
}

/* Cycles of the engine's clock for the elements alone, and the rate mode that was used. */
static int64_t elem_cycles(const struct time_state *state, const struct vtrn_inst *inst, const struct shape *shape, int64_t *rate_out)
{
    bool vector = inst->engine == VTRN_ENGINE_VECTOR;
    int64_t n = shape->most, rate = 1;

    switch (vtrn_ops[inst->op].rule) {
    case VTRN_RULE_ELEMS:
        if (inst->op == VTRN_OP_tensor_copy || inst->op == VTRN_OP_tensor_scalar)
            if (inst->engine != VTRN_ENGINE_GPSIMD) rate = copy_rate(state, shape, vector);
        break;
    case VTRN_RULE_ELEMS2:
        if (vector) n = two_inputs(state, inst, shape, n);
        else n *= 2;
        break;
    case VTRN_RULE_MEMSET:
        if (VTRN_ARGS(memset, inst)->value.num == 0 && shape->dst && is_16_bit(&state->rates, shape->dst)) n = (n + 1) / 2;
        break;
    case VTRN_RULE_PREDICATED: n = shape->ins == 2 && in_sbuf(state, shape->in[0]) && in_sbuf(state, shape->in[1]) ? 2 * n : n; break;
    case VTRN_RULE_RECIPROCAL: n *= 8; break;
    case VTRN_RULE_EXPONENTIAL:
    case VTRN_RULE_QUANTIZE:
    case VTRN_RULE_RAND2: n = (n + 3) / 4; break;
    case VTRN_RULE_REDUCE:
        if (all_16_bit(state, shape) && (inst->arg[1].i == VTRN_ALU_ADD || inst->arg[1].i == VTRN_ALU_MAXIMUM)) n = (n + 1) / 2;
        break;
    case VTRN_RULE_SCAN: n *= 2; break;
    case VTRN_RULE_BN_AGGR: n = 13 * ((n + 2) / 3); break;
    case VTRN_RULE_TOPK: n = 4 * VTRN_ARGS(topk, inst)->n.i + ap_free(&VTRN_ARGS(topk, inst)->val_dst.ap); break;
    case VTRN_RULE_LOCAL_GATHER: n = gather_cycles(inst); break;
    default: break;
    }
    *rate_out = rate;
    n = (n + rate - 1) / rate;
    if (rate == 1 && inst->engine != VTRN_ENGINE_GPSIMD && ((shape->dst && is_coarse(shape->dst)) || (shape->ins && is_coarse(shape->in[0]))))
        n *= 2;
    return n;
}

/* ---------------------------------------------------------------- ports and banks */
static uint8_t banks_of(const struct time_state *state, const struct vtrn_ap *ap)
{
    const struct vtrn_arch *arch = state->rates.arch;
    const struct vtrn_spot *spot = &state->time->place->spot[ap->tensor];
    int64_t low, high, size = vtrn_dtypes[ap->dtype].size_bytes;
    uint8_t mask = 0;

    if (space_of(state, ap) != VTRN_PSUM) return 0;
    if (arch->nc_version < 3 || !vtrn_ap_extent(ap, true, &low, &high) || low < 0) return 0xff; /* v2: one port for all banks (A2) */
    low = (spot->byte + low * size) / arch->psum_bank_bytes;
    high = (spot->byte + (high + 1) * size - 1) / arch->psum_bank_bytes;
    for (int64_t b = low; b <= high && b < 8; b++) mask |= (uint8_t)(1u << b);
    return mask;
}

static void note_ports(const struct time_state *state, const struct vtrn_inst *inst, int64_t rate, struct time_plan *plan)
{
    bool gpsimd = inst->engine == VTRN_ENGINE_GPSIMD, vector = inst->engine == VTRN_ENGINE_VECTOR, sbuf = false;

    for (int a = 0; a < vtrn_ops[inst->op].operands; a++) {
        const struct vtrn_value *value = &inst->arg[a];

        if (value->kind != VTRN_V_AP || !vtrn_space_on_chip(space_of(state, &value->ap))) continue;
        if (in_sbuf(state, &value->ap)) sbuf = true;
        else plan->banks |= banks_of(state, &value->ap);
    }
    /* v2: they take turns at SBUF (A2). v3 on: only the vector engine's fast modes share a bus with GpSimd (A3). */
    if (sbuf && (gpsimd || (vector && (state->rates.arch->nc_version < 3 || rate > 1)))) plan->flags |= PLAN_PORT;
}

/* ---------------------------------------------------------------- vector, scalar, GpSimd */
/* Functions that one table of the scalar engine holds: which they are is not documented; these families are assumed. */
static int table_of(int function)
{
    switch (function) {
    case VTRN_ACT_NONE: case VTRN_ACT_COPY: case VTRN_ACT_SQUARE: case VTRN_ACT_RELU: case VTRN_ACT_SIGN: case VTRN_ACT_ABS:
    case VTRN_ACT_PRELU: return 0; /* no table */
    case VTRN_ACT_EXP: case VTRN_ACT_LOG: case VTRN_ACT_SOFTPLUS: return 1;
    case VTRN_ACT_SIGMOID: case VTRN_ACT_TANH: case VTRN_ACT_SILU: case VTRN_ACT_SILU_DX: case VTRN_ACT_MISH: return 2;
    case VTRN_ACT_SQRT: case VTRN_ACT_RSQRT: case VTRN_ACT_RECIPROCAL: return 3;
    case VTRN_ACT_SIN: case VTRN_ACT_ARCTAN: return 4;
    default: return 5; /* gelu and erf */
    }
}

static void add_table(struct time_state *state, int core, const struct vtrn_inst *inst, struct time_plan *plan)
{
    int table = inst->engine == VTRN_ENGINE_SCALAR && vtrn_ops[inst->op].rule == VTRN_RULE_ACTIVATION ? table_of((int)inst->arg[1].i) : 0;

    if (table == 0 || table == state->table[core]) return;
    state->table[core] = (uint8_t)table;
    plan->load_ps = cap32((uint64_t)state->rates.arch->scalar_table_ps);
    cost_add(&state->rates, plan, VTRN_FACT_scalar_table_ps, plan->load_ps);
}

static uint64_t latency_of(const struct time_state *state, const struct vtrn_inst *inst, const struct shape *shape, struct time_plan *plan)
{
    const struct vtrn_arch *arch = state->rates.arch;
    uint64_t latency;
    bool function = vtrn_ops[inst->op].rule == VTRN_RULE_ACTIVATION;

    switch (inst->engine) {
    case VTRN_ENGINE_SCALAR:
        latency = (uint64_t)(function ? arch->scalar_function_ps : arch->scalar_latency_ps);
        cost_add(&state->rates, plan, function ? VTRN_FACT_scalar_function_ps : VTRN_FACT_scalar_latency_ps, latency);
        return latency;
    case VTRN_ENGINE_GPSIMD:
        cost_add(&state->rates, plan, VTRN_FACT_gpsimd_latency_ps, (uint64_t)arch->gpsimd_latency_ps);
        return (uint64_t)arch->gpsimd_latency_ps;
    default:
        latency = (uint64_t)arch->vector_latency_ps;
        cost_add(&state->rates, plan, VTRN_FACT_vector_latency_ps, latency);
        if (shape->pointer) {
            cost_add(&state->rates, plan, VTRN_FACT_vector_pointer_ps, (uint64_t)arch->vector_pointer_ps);
            latency += (uint64_t)arch->vector_pointer_ps;
        }
        return latency;
    }
}

static void cost_elems(struct time_state *state, int core, int stream, const struct vtrn_inst *inst, struct time_plan *plan,
                       struct time_cost *cost)
{
    const struct vtrn_arch *arch = state->rates.arch;
    uint64_t mega = state->rates.mega[stream];
    struct shape shape;
    int64_t rate, cycles, occupied;

    look(inst, &shape);
    cycles = elem_cycles(state, inst, &shape, &rate);
    if (shape.reads_out || vtrn_ops[inst->op].rule == VTRN_RULE_SCALAR_REDUCE) cycles += arch->accumulator_cycles;
    if (shape.dynamic && cycles < arch->dynamic_access_cycles) cycles = arch->dynamic_access_cycles;
    cost->least_ps = time_scale((uint64_t)cycles, mega);
    if (stream == VTRN_STREAM_GPSIMD) cycles += arch->gpsimd_start_cycles;
    occupied = cycles < arch->min_issue_cycles ? arch->min_issue_cycles : cycles;
    plan->work_ps = time_scale((uint64_t)occupied, mega);
    if (plan->work_ps < (uint64_t)arch->sequencer_ps) plan->work_ps = (uint64_t)arch->sequencer_ps;
    plan->latency_ps = cap32(time_scale((uint64_t)cycles, mega) + latency_of(state, inst, &shape, plan));
    add_table(state, core, inst, plan);
    note_ports(state, inst, rate, plan);
}

/* ---------------------------------------------------------------- tensor engine */
static uint16_t tiles_of(const struct vtrn_inst *inst)
{
    const struct vtrn_value *position, *size;
    uint16_t mask = 0;

    if (inst->op == VTRN_OP_nc_matmul) {
        position = &VTRN_ARGS(nc_matmul, inst)->tile_position;
        size = &VTRN_ARGS(nc_matmul, inst)->tile_size;
    } else if (inst->op == VTRN_OP_nc_matmul_mx) {
        position = &VTRN_ARGS(nc_matmul_mx, inst)->tile_position;
        size = &VTRN_ARGS(nc_matmul_mx, inst)->tile_size;
    } else {
        return 0xffff;
    }
    if (position->kind != VTRN_V_INTS || size->kind != VTRN_V_INTS || position->count < 2 || size->count < 2) return 0xffff;
    for (int64_t r = position->ints[0] / 32; r < (position->ints[0] + size->ints[0] + 31) / 32; r++)
        for (int64_t c = position->ints[1] / 32; c < (position->ints[1] + size->ints[1] + 31) / 32; c++)
            if (r >= 0 && r < 4 && c >= 0 && c < 4) mask |= (uint16_t)(1u << (4 * r + c));
    return mask ? mask : 0xffff;
}

static void cost_pe(struct time_state *state, const struct vtrn_inst *inst, struct time_plan *plan, struct time_cost *cost)
{
    const struct vtrn_arch *arch = state->rates.arch;
    uint64_t mega = state->rates.mega[VTRN_STREAM_TENSOR];
    bool transpose = inst->op == VTRN_OP_nc_transpose, hint = false, fp32;
    int64_t columns, moving, passes, load, least;
    const struct vtrn_ap *stationary;

    if (transpose) { /* the data is loaded, the identity moves (ISA nc_transpose) */
        stationary = &VTRN_ARGS(nc_transpose, inst)->data.ap;
        moving = stationary->dim[0].count;
    } else { /* both products have stationary and moving as operands 1 and 2 */
        stationary = &inst->arg[1].ap;
        moving = ap_free(&inst->arg[2].ap);
    }
    columns = ap_free(stationary);
    fp32 = stationary->dtype == VTRN_DT_F32 || (!transpose && inst->arg[2].ap.dtype == VTRN_DT_F32);
    if (inst->op == VTRN_OP_nc_matmul) {
        const struct vtrn_args_nc_matmul *arg = VTRN_ARGS(nc_matmul, inst);

        transpose = arg->is_transpose.i != 0;
        hint = arg->is_stationary_onezero.i || arg->is_moving_onezero.i;
        if (arg->perf_mode.i == VTRN_MATMUL_PERF_DOUBLE_ROW) {
            columns /= 2;
            moving /= 2;
        }
    }
    passes = !fp32 ? 1 : transpose ? arch->pe_fp32_transpose_passes : hint ? arch->pe_fp32_passes / 2 : arch->pe_fp32_passes;
    load = !fp32 ? (columns + arch->pe_load_columns - 1) / arch->pe_load_columns : (transpose ? 1 : 2) * arch->pe_load_fp32_cycles * columns;
    least = moving < 64 && moving < columns ? (columns < 64 ? columns : 64) : moving;
    plan->flags |= PLAN_PE;
    plan->tiles = tiles_of(inst);
    cost->least_ps = plan->work_ps = time_scale((uint64_t)(passes * least), mega);
    plan->load_ps = cap32(time_scale((uint64_t)load, mega));
    plan->latency_ps = cap32(time_scale((uint64_t)arch->pe_fill_cycles, mega) + (uint64_t)arch->pe_commit_ps);
    cost_add(&state->rates, plan, VTRN_FACT_pe_commit_ps, (uint64_t)arch->pe_commit_ps);
}

/* ---------------------------------------------------------------- the rest */
static void cost_control(const struct time_state *state, const struct vtrn_inst *inst, struct time_plan *plan, struct time_cost *cost)
{
    const struct vtrn_arch *arch = state->rates.arch;
    bool load = inst->op == VTRN_OP_register_load;

    plan->work_ps = cost->least_ps = (uint64_t)(load ? arch->register_load_ps : arch->control_ps);
    plan->latency_ps = cap32(plan->work_ps);
    cost_add(&state->rates, plan, load ? VTRN_FACT_register_load_ps : VTRN_FACT_control_ps, plan->work_ps);
}

static void cost_barrier(const struct time_state *state, struct time_plan *plan)
{
    plan->work_ps = (uint64_t)state->rates.arch->pair_ps;
    plan->latency_ps = cap32(plan->work_ps);
    plan->flags |= PLAN_PEER;
    cost_add(&state->rates, plan, VTRN_FACT_pair_ps, plan->work_ps);
}

void cost_step(struct time_state *state, int core, const struct vtrn_inst *inst, struct time_plan *plan, struct time_cost *cost)
{
    int stream, cls;

    switch (vtrn_ops[inst->op].rule) {
    case VTRN_RULE_DMA:
    case VTRN_RULE_DMA_TRANSPOSE:
    case VTRN_RULE_DMA_COMPUTE:
    case VTRN_RULE_SENDRECV: cost_dma(state, inst, plan, cost); return;
    case VTRN_RULE_BARRIER: cost_barrier(state, plan); return;
    case VTRN_RULE_CONTROL: cost_control(state, inst, plan, cost); return;
    default: break;
    }
    if (inst->engine == VTRN_ENGINE_TENSOR) {
        cost_pe(state, inst, plan, cost);
        return;
    }
    stream_of(state->time->prog, inst, &stream, &cls);
    cost_elems(state, core, stream, inst, plan, cost);
}
