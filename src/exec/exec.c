/* The step loop of one core: decode, dispatch, count. Bodies are in one file per engine; operands are resolved by
 * resolve.c and walked by rows.c. A run is resumable: it stops at the end of the list, at a rendezvous, at a fault.
 * Never reads a clock. */
#include "exec/exec_int.h"

enum { SCRATCH_BYTES = 6 * EXEC_ROW_MAX * 4 + 4096 };

void vtrn_exec_options_init(struct vtrn_exec_options *options) { *options = (struct vtrn_exec_options){.seed = 1}; }

static exec_body *const bodies[VTRN_OPCODES] = {
#define OP(name, code, engines, dflt, version, args, rule, doc) [code] = vtrn_exec_##name,
#define GONE(code, name)
#include "isa/ops.def"
#undef OP
#undef GONE
};

/* ---- life ---- */

struct vtrn_core *vtrn_core_create(const struct vtrn_prog *prog, struct vtrn_mem *mem, int core_id,
                                   const struct vtrn_exec_options *options, struct vtrn_error *err)
{
    struct vtrn_core *core = vtrn_alloc_aligned(sizeof *core, 64);
    if (!core) {
        vtrn_fail(err, VTRN_NOMEM, "no memory for a core");
        return NULL;
    }
    memset(core, 0, sizeof *core);
    core->prog = prog;
    core->mem = mem;
    core->kern = vtrn_kern_best();
    core->options = *options;
    core->id = core_id;
    core->scratch_bytes = core->kern->mm_scratch_bytes + EXEC_PE_MOVING_BYTES + EXEC_PE_STAGING_BYTES + EXEC_PE_SCALE_BYTES;
    if (core->scratch_bytes < SCRATCH_BYTES) core->scratch_bytes = SCRATCH_BYTES;
    core->scratch_bytes = (core->scratch_bytes + 4095) & ~(size_t)4095;
    core->scratch = vtrn_alloc_aligned(core->scratch_bytes * (size_t)vtrn_pool_threads(options->pool), 4096);
    core->rng = exec_rng_create(options->seed, core_id, (int)prog->arch->nc_version);
    if (!core->scratch || !core->rng) {
        vtrn_core_destroy(core);
        vtrn_fail(err, VTRN_NOMEM, "no memory for a core");
        return NULL;
    }
    return core;
}

void vtrn_core_destroy(struct vtrn_core *core)
{
    if (!core) return;
    exec_rng_destroy(core->rng);
    vtrn_free_aligned(core->scratch);
    vtrn_buf_fini(&core->index_space);
    free(core->reg);
    vtrn_free_aligned(core);
}

/* ---- faults ---- */

enum vtrn_status exec_fault(struct vtrn_core *core, enum vtrn_fault_reason reason, const char *fmt, ...)
{
    va_list args;
    core->fault.reason = reason;
    core->fault.core = core->id;
    core->fault.engine = core->inst.engine;
    core->fault.pc = core->pc;
    va_start(args, fmt);
    vsnprintf(core->fault.text, sizeof core->fault.text, fmt, args);
    va_end(args);
    return VTRN_FAULT;
}

/* ---- stepping ---- */

static void count(struct vtrn_counters *counters, int engine)
{
    counters->instructions++;
    switch (engine) {
    case VTRN_ENGINE_TENSOR: counters->tensor_instructions++; break;
    case VTRN_ENGINE_VECTOR: counters->vector_instructions++; break;
    case VTRN_ENGINE_SCALAR: counters->scalar_instructions++; break;
    case VTRN_ENGINE_GPSIMD: counters->gpsimd_instructions++; break;
    case VTRN_ENGINE_DMA: counters->dma_instructions++; break;
    default: break;
    }
}

static void release_ap(struct vtrn_core *core, const struct vtrn_ap *ap)
{
    const struct vtrn_prog *prog = core->prog;
    for (int i = -1; i < ap->ndyn; i++) {
        if (i >= 0 && ap->dyn[i].kind == VTRN_DYN_REG) continue;
        uint32_t tensor = i < 0 ? ap->tensor : ap->dyn[i].ref;
        if (prog->tensor[tensor].last_use <= core->pc && vtrn_space_on_chip(prog->tensor[tensor].space))
            vtrn_mem_release(core->mem, core->id, tensor);
    }
}

/* Returns the operands whose last use this was. Inside a loop nothing is returned: last_use then lies at the loop's end
 * for tensors from outside, and the next turn uses the inner ones again. */
static void release_operands(struct vtrn_core *core, const struct vtrn_inst *inst)
{
    if (core->loops) return;
    int operands = vtrn_ops[inst->op].operands;
    for (int i = 0; i < operands; i++) {
        const struct vtrn_value *value = &inst->arg[i];
        if (value->kind == VTRN_V_AP) release_ap(core, &value->ap);
        if (value->kind == VTRN_V_APS)
            for (int j = 0; j < value->count; j++) release_ap(core, &value->aps[j]);
    }
}

void exec_retire(struct vtrn_core *core)
{
    count(&core->counters, core->inst.engine);
    if (core->release) release_operands(core, &core->inst);
    core->pc++;
}

static bool grow_registers(struct vtrn_core *core)
{
    uint32_t wanted = core->prog->registers;
    int32_t *reg = realloc(core->reg, (wanted ? wanted : 1) * sizeof *reg);
    if (!reg) return false;
    memset(reg + core->regs, 0, (wanted - core->regs) * sizeof *reg);
    core->reg = reg;
    core->regs = wanted;
    return true;
}

enum vtrn_status vtrn_core_run(struct vtrn_core *core, uint32_t end, bool release)
{
    const struct vtrn_code *code = &core->prog->code[core->id];
    if (core->fault.reason) return VTRN_FAULT;
    if (core->waiting) return VTRN_BLOCKED;
    if (core->regs < core->prog->registers && !grow_registers(core))
        return exec_fault(core, VTRN_FAULT_VALUE, "no host memory for %u registers", core->prog->registers);
    if (end > code->count) end = code->count;
    core->release = release;
    while (core->pc < end) {
        vtrn_prog_get(core->prog, core->id, core->pc, &core->inst);
        core->index_space.size = 0;
        enum vtrn_status status = bodies[core->inst.op](core, &core->inst);
        if (VTRN_UNLIKELY(status != VTRN_OK)) return status;
        exec_retire(core);
    }
    return VTRN_OK;
}

uint32_t vtrn_core_position(const struct vtrn_core *core) { return core->pc; }

void vtrn_core_rewind(struct vtrn_core *core) { core->pc = 0; }

const struct vtrn_wait *vtrn_core_wait(const struct vtrn_core *core) { return core->waiting ? &core->wait : NULL; }

const struct vtrn_fault *vtrn_core_fault(const struct vtrn_core *core)
{
    return core->fault.reason ? &core->fault : NULL;
}

const struct vtrn_counters *vtrn_core_counters(const struct vtrn_core *core) { return &core->counters; }

int32_t vtrn_core_register(const struct vtrn_core *core, uint32_t reg) { return reg < core->regs ? core->reg[reg] : 0; }

void vtrn_core_set_register(struct vtrn_core *core, uint32_t reg, int32_t value)
{
    if (reg >= core->regs && (reg >= core->prog->registers || !grow_registers(core))) return;
    core->reg[reg] = value;
}

/* ---- splitting over threads ---- */

struct split {
    struct exec_rows rows;
    void (*fn)(const struct exec_rows *rows, int64_t p0, int64_t p1, uint8_t *scratch);
    int64_t parts;
};

static void run_part(void *arg, int part, int parts)
{
    const struct split *split = arg;
    struct vtrn_core *core = split->rows.core;
    int64_t p0 = split->parts * part / parts, p1 = split->parts * (part + 1) / parts;
    if (p0 < p1) split->fn(&split->rows, p0, p1, core->scratch + core->scratch_bytes * (size_t)part);
}

void exec_for_partitions(struct vtrn_core *core, int64_t parts, int64_t work_per_part,
                         void (*fn)(const struct exec_rows *rows, int64_t p0, int64_t p1, uint8_t *scratch), const void *data)
{
    /* About 5 us of work pay for a fork and join of 0.5 us (measured); an element costs about 0.1-0.2 ns. */
    enum { WORTH_SPLITTING = 40000 };
    struct split split = {{core, &core->inst, data}, fn, parts};
    int threads = vtrn_pool_threads(core->options.pool);
    if (threads > 1 && parts > 1 && parts * work_per_part >= WORTH_SPLITTING)
        vtrn_pool_run(core->options.pool, threads, run_part, &split);
    else
        run_part(&split, 0, 1);
}
