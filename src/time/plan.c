/* Planning: walks a core's instructions as they would be executed and notes for every step its stream, its cost and the steps
 * it depends on; adds up bytes and work on the way. One decode per step, no memory of the emulated machine.
 * Must not know when anything happens: that is sched.c's work. */
#include "time/time_int.h"

void stream_of(const struct vtrn_prog *prog, const struct vtrn_inst *inst, int *stream_out, int *cls_out)
{
    static const uint8_t of_engine[VTRN_ENGINES] = {
        [VTRN_ENGINE_TENSOR] = VTRN_STREAM_TENSOR, [VTRN_ENGINE_SCALAR] = VTRN_STREAM_SCALAR, [VTRN_ENGINE_GPSIMD] = VTRN_STREAM_GPSIMD,
        [VTRN_ENGINE_VECTOR] = VTRN_STREAM_VECTOR, [VTRN_ENGINE_SYNC] = VTRN_STREAM_SYNC, [VTRN_ENGINE_UNKNOWN] = VTRN_STREAM_SYNC,
    };
    const struct vtrn_value *dst = &inst->arg[0], *src = &inst->arg[1];
    int issuer = VTRN_ENGINE_UNKNOWN;
    bool to_hbm, from_hbm;

    if (inst->engine != VTRN_ENGINE_DMA) {
        *stream_out = *cls_out = of_engine[inst->engine];
        return;
    }
    if (inst->op == VTRN_OP_dma_copy) {
        issuer = (int)VTRN_ARGS(dma_copy, inst)->engine.i;
        if (issuer == VTRN_ENGINE_UNKNOWN && VTRN_ARGS(dma_copy, inst)->dge_mode.i == VTRN_DGE_SWDGE) issuer = VTRN_ENGINE_GPSIMD;
    }
    if (issuer != VTRN_ENGINE_UNKNOWN && issuer != VTRN_ENGINE_DMA) { /* the issue is an instruction of that engine's stream */
        *stream_out = of_engine[issuer];
        *cls_out = VTRN_STREAMS + *stream_out;
        return;
    }
    to_hbm = dst->kind == VTRN_V_AP && vtrn_space_is_hbm(prog->tensor[dst->ap.tensor].space);
    from_hbm = src->kind == VTRN_V_AP && vtrn_space_is_hbm(prog->tensor[src->ap.tensor].space);
    if (inst->op == VTRN_OP_dma_compute)
        from_hbm = src->kind == VTRN_V_APS && src->count && vtrn_space_is_hbm(prog->tensor[src->aps[0].tensor].space);
    *stream_out = *cls_out = inst->op == VTRN_OP_sendrecv  ? VTRN_STREAM_MOVE
                             : from_hbm && !to_hbm         ? VTRN_STREAM_LOAD
                             : to_hbm && !from_hbm         ? VTRN_STREAM_STORE
                                                           : VTRN_STREAM_MOVE;
}

struct planner {
    struct time_state *state;
    struct deps *deps;
    struct walk walk;
    struct vtrn_edge *edge; /* depends_on, by consumer */
    uint32_t edges;
    uint32_t *last;         /* by instruction: its last step + 1; only with edges */
    uint8_t *last_cls;
    uint32_t peers;         /* rendezvous so far */
    int core;
};

/* ---------------------------------------------------------------- accesses */
static void on_register(struct planner *planner, uint32_t reg)
{
    const struct walk_reg *r = &planner->walk.reg[reg];

    if (r->writer != NO_STEP) deps_on(planner->deps, r->writer, r->cls, DEP_REGISTER);
}

static enum vtrn_status access_dyns(struct planner *planner, const struct vtrn_ap *ap, bool *whole_out, int64_t *shift_out)
{
    for (int d = 0; d < ap->ndyn; d++) {
        const struct vtrn_dyn *dyn = &ap->dyn[d];
        struct vtrn_ap index;

        if (dyn->kind == VTRN_DYN_REG) {
            const struct walk_reg *r = &planner->walk.reg[dyn->ref];

            on_register(planner, dyn->ref);
            if (r->known) *shift_out += (int64_t)r->value * dyn->scale;
            else *whole_out = true;
            continue;
        }
        *whole_out = true;
        index = (struct vtrn_ap){ .tensor = dyn->ref, .dtype = dyn->dtype, .ndim = 2,  .dim = { { 1, 1 }, { 1, 1 } } };
        VTRN_TRY(deps_access(planner->deps, &index, VTRN_READ, true, 0, false));
    }
    return VTRN_OK;
}

static void add_bytes(struct planner *planner, const struct vtrn_ap *ap, int access, struct time_plan *plan)
{
    struct vtrn_time_bytes *bytes = &planner->state->time->bytes[planner->core];
    int space = planner->state->time->prog->tensor[ap->tensor].space;
    uint64_t size = (uint64_t)ap_bytes(ap);

    if (vtrn_space_is_hbm(space)) {
        plan->hbm_bytes += size * (unsigned)(((access & VTRN_READ) != 0) + ((access & VTRN_WRITE) != 0));
        if (access & VTRN_READ) bytes->hbm_read += size;
        if (access & VTRN_WRITE) bytes->hbm_write += size;
    } else if (space == VTRN_PSUM) {
        if (access & VTRN_READ) bytes->psum_read += size;
        if (access & VTRN_WRITE) bytes->psum_write += size;
    } else {
        if (access & VTRN_READ) bytes->sbuf_read += size;
        if (access & VTRN_WRITE) bytes->sbuf_write += size;
    }
}

static enum vtrn_status access_ap(struct planner *planner, const struct vtrn_inst *inst, const struct vtrn_ap *ap, int access, bool stationary,
                                  struct time_plan *plan)
{
    bool whole = false;
    int64_t shift = 0;

    if (inst->op == VTRN_OP_core_barrier) access = VTRN_READ | VTRN_WRITE; /* it orders what comes before and after */
    else add_bytes(planner, ap, access, plan);
    if (ap->ndyn) VTRN_TRY(access_dyns(planner, ap, &whole, &shift));
    return deps_access(planner->deps, ap, access, whole, shift, stationary);
}

/* Reads first, so that an instruction in place depends on the writer of what it reads as data. */
static enum vtrn_status access_operands(struct planner *planner, const struct vtrn_inst *inst, struct time_plan *plan)
{
    const struct vtrn_op_info *op = &vtrn_ops[inst->op];

    for (int writes = 0; writes < 2; writes++)
        for (int a = 0; a < op->operands; a++) {
            const struct vtrn_value *value = &inst->arg[a];
            int access = op->operand[a].access ? op->operand[a].access : VTRN_READ;
            bool stationary;

            if (value->kind == VTRN_V_REG) {
                if (!writes && (op->operand[a].access & VTRN_WRITE) == 0) on_register(planner, (uint32_t)value->i);
                continue;
            }
            if (((access & VTRN_WRITE) != 0) != writes) continue;
            stationary = inst->engine == VTRN_ENGINE_TENSOR && a == 1;
            if (value->kind == VTRN_V_AP) VTRN_TRY(access_ap(planner, inst, &value->ap, access, stationary, plan));
            else if (value->kind == VTRN_V_APS)
                for (int k = 0; k < value->count; k++) VTRN_TRY(access_ap(planner, inst, &value->aps[k], access, false, plan));
        }
    return VTRN_OK;
}

/* ---------------------------------------------------------------- depends_on */
static int by_consumer(const void *a, const void *b)
{
    const struct vtrn_edge *left = a, *right = b;

    return left->consumer < right->consumer ? -1 : left->consumer > right->consumer;
}

static enum vtrn_status sort_edges(struct planner *planner)
{
    const struct vtrn_code *code = &planner->state->time->prog->code[planner->core];

    if (!code->edges) return VTRN_OK;
    planner->edges = code->edges;
    planner->edge = malloc((size_t)code->edges * sizeof *planner->edge);
    planner->last = calloc((size_t)code->count + 1, sizeof *planner->last);
    planner->last_cls = calloc((size_t)code->count + 1, 1);
    VTRN_FAIL_IF(!planner->edge || !planner->last || !planner->last_cls, planner->state->err, VTRN_NOMEM, "no memory for %u dependencies",
                 code->edges);
    memcpy(planner->edge, code->edge, (size_t)code->edges * sizeof *planner->edge);
    qsort(planner->edge, planner->edges, sizeof *planner->edge, by_consumer);
    return VTRN_OK;
}

static void follow_edges(struct planner *planner, uint32_t pc, uint32_t step, int cls)
{
    uint32_t low = 0, high = planner->edges;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (planner->edge[middle].consumer < pc) low = middle + 1;
        else high = middle;
    }
    for (; low < planner->edges && planner->edge[low].consumer == pc; low++) {
        uint32_t producer = planner->edge[low].producer;

        if (planner->last[producer]) deps_on(planner->deps, planner->last[producer] - 1, planner->last_cls[producer], DEP_EDGE);
    }
    planner->last[pc] = step + 1;
    planner->last_cls[pc] = (uint8_t)cls;
}

/* ---------------------------------------------------------------- steps */
/* Pages, which come huge from the host: most of a short run would be faults of small ones. */
static bool grow(void *array, size_t had_bytes, size_t used_bytes, size_t bytes)
{
    void *old, *grown = vtrn_alloc_pages(bytes);

    if (!grown) return false;
    memcpy(&old, array, sizeof old); /* a pointer of any type */
    if (old) {
        memcpy(grown, old, used_bytes);
        vtrn_free_pages(old, had_bytes);
    }
    memcpy(array, &grown, sizeof grown);
    return true;
}

void time_plan_free(struct time_state *state)
{
    if (state->plan) vtrn_free_pages(state->plan, state->capacity * sizeof *state->plan);
}

static enum vtrn_status room(struct time_state *state)
{
    struct vtrn_time *time = state->time;
    uint64_t most = state->options->most_steps ? state->options->most_steps : UINT64_C(1) << 28;
    size_t capacity = state->capacity + (size_t)state->capacity / 2 + 16, bytes;

    VTRN_FAIL_IF(time->steps >= most, state->err, VTRN_LIMIT, "more than %llu instructions are executed; is a loop without end?",
                 (unsigned long long)most);
    if (time->steps + 1 < state->capacity) return VTRN_OK;
    if (!state->capacity) /* as many as without loops */
        for (int c = 0; c < time->prog->cores; c++) capacity += time->prog->code[c].count;
    bytes = capacity * sizeof *time->step;
    VTRN_FAIL_IF(capacity > UINT32_MAX / 2 || !grow(&time->step, time->step_bytes, time->steps * sizeof *time->step, bytes), state->err,
                 VTRN_NOMEM, "no memory for %u steps", time->steps);
    time->step_bytes = bytes;
    VTRN_FAIL_IF(!grow(&state->plan, state->capacity * sizeof *state->plan, time->steps * sizeof *state->plan, capacity * sizeof *state->plan),
                 state->err, VTRN_NOMEM, "no memory for %u steps", time->steps);
    state->capacity = (uint32_t)capacity;
    return VTRN_OK;
}

static uint64_t work_of(const struct vtrn_inst *inst, const struct time_plan *plan)
{
    int64_t most = 0;

    if (plan->flags & PLAN_DMA) return plan->dma_bytes;
    if ((plan->flags & PLAN_PE) && inst->op != VTRN_OP_nc_transpose)
        return (uint64_t)(inst->arg[1].ap.dim[0].count * ap_free(&inst->arg[1].ap) * ap_free(&inst->arg[2].ap));
    for (int a = 0; a < vtrn_ops[inst->op].operands; a++)
        if (inst->arg[a].kind == VTRN_V_AP && ap_free(&inst->arg[a].ap) > most) most = ap_free(&inst->arg[a].ap);
    return (uint64_t)most;
}

static unsigned tiles_taken(uint16_t tiles)
{
    unsigned count = 0;

    for (; tiles; tiles &= (uint16_t)(tiles - 1)) count++;
    return count;
}

static enum vtrn_status plan_step(struct planner *planner, const struct vtrn_inst *inst)
{
    struct time_state *state = planner->state;
    struct vtrn_time *time = state->time;
    uint32_t at = time->steps, pc = planner->walk.pc;
    struct time_cost cost = { 0 };
    struct time_plan *plan;
    int stream, cls;

    VTRN_TRY(room(state));
    plan = &state->plan[at];
    stream_of(time->prog, inst, &stream, &cls);
    *plan = (struct time_plan){ .cls = (uint8_t)cls, .dep_start = (uint32_t)(state->dep.size / sizeof(uint64_t)), .peer = NO_STEP, .loc = inst->loc };
    time->step[at] = (struct vtrn_step){ .pc = pc, .core = (uint8_t)planner->core, .stream = (uint8_t)stream, .cause = NO_STEP };
    deps_begin(planner->deps, at, cls);
    if (access_operands(planner, inst, plan) < 0) return vtrn_fail(state->err, VTRN_NOMEM, "no memory for the accesses of %u steps", at);
    if (planner->edges) follow_edges(planner, pc, at, cls);
    if (deps_end(planner->deps, &state->dep) < 0) return vtrn_fail(state->err, VTRN_NOMEM, "no memory for the dependencies of %u steps", at);
    cost_step(state, planner->core, inst, plan, &cost);
    if (plan->flags & PLAN_PEER) plan->peer = planner->peers++; /* its number, until both cores are planned */
    /* Disjoint tiles of the tensor engine work at the same time: each takes its share of the array. */
    if (plan->flags & PLAN_PE) state->least_ps[planner->core][stream] += cost.least_ps * tiles_taken(plan->tiles) / 16;
    else if (!(plan->flags & PLAN_DMA)) state->least_ps[planner->core][stream] += cost.least_ps;
    time->bytes[planner->core].dma += plan->dma_bytes;
    time->bytes[planner->core].packets += cost.packets;
    time->stream[planner->core][stream].steps++;
    time->stream[planner->core][stream].work += work_of(inst, plan);
    time->steps++;
    return walk_step(&planner->walk, inst, at, cls);
}

static enum vtrn_status plan_all(struct planner *planner)
{
    const struct vtrn_prog *prog = planner->state->time->prog;
    struct vtrn_inst *inst = malloc(sizeof *inst);
    enum vtrn_status status = VTRN_OK;

    VTRN_FAIL_IF(!inst, planner->state->err, VTRN_NOMEM, "no memory for an instruction");
    while (status >= 0 && planner->walk.pc < prog->code[planner->core].count) {
        vtrn_prog_get(prog, planner->core, planner->walk.pc, inst);
        status = plan_step(planner, inst);
    }
    free(inst);
    return status;
}

enum vtrn_status time_plan_core(struct time_state *state, int core)
{
    struct planner planner = { .state = state, .core = core };
    const struct vtrn_trace *trace = state->options->trace ? &state->options->trace[core] : NULL;
    uint32_t before = state->time->steps;
    enum vtrn_status status;

    VTRN_TRY(room(state)); /* also for no step at all: the plan has an end */
    status = walk_init(&planner.walk, state->time->prog, core, trace, state->err);
    if (status >= 0) {
        planner.deps = deps_create(state->time->prog, state->time->place, core);
        if (!planner.deps) status = vtrn_fail(state->err, VTRN_NOMEM, "no memory for dependencies");
        else if ((status = sort_edges(&planner)) >= 0) status = plan_all(&planner);
    }
    state->time->core_steps[core] = state->time->steps - before;
    walk_fini(&planner.walk);
    deps_destroy(planner.deps);
    free(planner.edge);
    free(planner.last);
    free(planner.last_cls);
    return status;
}
