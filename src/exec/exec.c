/* The step loop of one core: decode, dispatch, count, return what is no longer needed. Bodies are in one file per engine;
 * operands are resolved by resolve.c and walked by rows.c. A run is resumable: it stops at the end of the list, at a
 * rendezvous, when asked to, or at a fault.
 *
 * Never reads a clock; must not know what an instruction computes. When tensors' memory is given back is lifetime.c's. */
#include "exec/exec_int.h"

enum { POLL_INSTRUCTIONS = 256 };

void vtrn_exec_options_init(struct vtrn_exec_options *options) { *options = (struct vtrn_exec_options){ .seed = 1 }; }

static exec_body *const bodies[VTRN_OPCODES] = {
#define OP(name, code, engines, dflt, version, args, rule, doc) [code] = vtrn_exec_##name,
#define GONE(code, name)
#include "isa/ops.def"
#undef OP
#undef GONE
};

/* ---------------------------------------------------------------- life */
static size_t scratch_bytes(const struct vtrn_kern *kern)
{
    size_t pe = exec_pe_scratch_bytes(kern), bytes = pe > EXEC_SCRATCH_BYTES ? pe : EXEC_SCRATCH_BYTES;

    return (bytes + 4095) & ~(size_t)4095;
}

struct vtrn_core *vtrn_core_create(const struct vtrn_prog *prog, struct vtrn_mem *mem, int core_id,
                                   const struct vtrn_exec_options *options, struct vtrn_error *err)
{
    struct vtrn_core *core = vtrn_alloc_aligned(sizeof *core, 64);

    if (!core) goto no_memory;
    memset(core, 0, sizeof *core);
    core->prog = prog;
    core->mem = mem;
    core->kern = vtrn_kern_best();
    core->id = core_id;
    if (options) core->options = *options;
    else vtrn_exec_options_init(&core->options);
    core->scratch_bytes = scratch_bytes(core->kern);
    /* Pages: most programs touch a small part of it. */
    core->scratch = vtrn_pages_take(core->options.pages, core->scratch_bytes * (size_t)vtrn_pool_threads(core->options.pool));
    core->rng = exec_rng_create(core->options.seed, core_id, (int)prog->arch->nc_version);
    if (!core->scratch || !core->rng) goto no_memory;
    return core;

no_memory:
    vtrn_core_destroy(core);
    vtrn_fail(err, VTRN_NOMEM, "no memory for the state of core %d", core_id);
    return NULL;
}

void vtrn_core_destroy(struct vtrn_core *core)
{
    if (!core) return;
    exec_rng_destroy(core->rng);
    vtrn_pages_give(core->options.pages, core->scratch, core->scratch_bytes * (size_t)vtrn_pool_threads(core->options.pool));
    for (int i = 0; i < core->stageds; i++) vtrn_free_aligned(core->staged[i]);
    vtrn_buf_fini(&core->index_space);
    vtrn_arena_fini(&core->index_more);
    exec_lifetimes_fini(core);
    free(core->reg);
    vtrn_free_aligned(core);
}

/* ---------------------------------------------------------------- faults */
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

/* ---------------------------------------------------------------- stepping */
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

void exec_retire(struct vtrn_core *core)
{
    count(&core->counters, core->inst.engine);
    if (core->release) exec_release_after(core, core->pc);
    core->pc++;
}

/* A control body moved the position from `from`: back over a loop's body, or forward over one that does not run. */
static enum vtrn_status moved(struct vtrn_core *core, uint32_t from)
{
    uint32_t to = core->pc;

    if (to < from) VTRN_TRY(exec_renew(core, to, from));
    else if (core->release)
        for (uint32_t pc = from; pc < to; pc++) exec_release_after(core, pc);
    if (to < from) { /* what lives to the loop's end is needed for another turn */
        count(&core->counters, core->inst.engine);
        core->pc++;
        return VTRN_OK;
    }
    exec_retire(core);
    return VTRN_OK;
}

/* Space that the instruction used beside the operands. */
static void clean_up(struct vtrn_core *core)
{
    while (core->stageds > 0) vtrn_free_aligned(core->staged[--core->stageds]);
    core->index_space.size = 0;
    if (!core->index_more.head) return;
    vtrn_arena_fini(&core->index_more); /* next time it fits; if there is no memory for that, it will not fit again */
    (void)vtrn_buf_reserve(&core->index_space, core->index_wanted);
}

static enum vtrn_status grow_registers(struct vtrn_core *core)
{
    uint32_t wanted = core->prog->registers;
    int32_t *reg;

    if (core->regs >= wanted) return VTRN_OK;
    reg = realloc(core->reg, wanted * sizeof *reg);
    VTRN_FAIL_IF(!reg, &core->err, VTRN_NOMEM, "no memory for %u registers", wanted);
    memset(reg + core->regs, 0, (wanted - core->regs) * sizeof *reg);
    core->reg = reg;
    core->regs = wanted;
    return VTRN_OK;
}

enum vtrn_status vtrn_core_run(struct vtrn_core *core, uint32_t end, bool release)
{
    const struct vtrn_code *code = &core->prog->code[core->id];

    if (core->fault.reason != VTRN_FAULT_NONE) return VTRN_FAULT;
    if (core->waiting) return VTRN_BLOCKED;
    VTRN_TRY(grow_registers(core));
    core->release = release;
    if (release) VTRN_TRY(exec_releases_make(core));
    if (end > code->count) end = code->count;
    core->end = end;
    while (core->pc < end) {
        uint32_t pc = core->pc;
        enum vtrn_status status;

        vtrn_prog_get(core->prog, core->id, pc, &core->inst);
        status = bodies[core->inst.op](core, &core->inst);
        if (VTRN_UNLIKELY(core->index_space.size || core->stageds || core->index_more.head)) clean_up(core);
        if (VTRN_UNLIKELY(status != VTRN_OK)) return status;
        if (VTRN_LIKELY(core->pc == pc)) exec_retire(core);
        else VTRN_TRY(moved(core, pc));
        for (; VTRN_UNLIKELY(core->also_done > 0); core->also_done--) exec_retire(core);
        if (VTRN_UNLIKELY(core->counters.instructions - core->polled >= POLL_INSTRUCTIONS)) {
            core->polled = core->counters.instructions;
            if (core->options.interrupt && core->options.interrupt(core->options.interrupt_self)) return VTRN_INTERRUPTED;
        }
    }
    return VTRN_OK;
}

/* ---------------------------------------------------------------- what others ask of a core */
uint32_t vtrn_core_position(const struct vtrn_core *core) { return core->pc; }

void vtrn_core_rewind(struct vtrn_core *core)
{
    core->pc = 0;
    core->loops = 0;
    core->releases.insts = 0;
}

const struct vtrn_fault *vtrn_core_fault(const struct vtrn_core *core)
{
    return core->fault.reason != VTRN_FAULT_NONE ? &core->fault : NULL;
}

const char *vtrn_core_error(const struct vtrn_core *core) { return core->err.text; }

const struct vtrn_counters *vtrn_core_counters(const struct vtrn_core *core) { return &core->counters; }

int32_t vtrn_core_register(const struct vtrn_core *core, uint32_t reg) { return reg < core->regs ? core->reg[reg] : 0; }

void vtrn_core_set_register(struct vtrn_core *core, uint32_t reg, int32_t value)
{
    if (reg >= core->regs && grow_registers(core) < 0) return;
    if (reg < core->regs) core->reg[reg] = value;
}

/* ---------------------------------------------------------------- splitting over threads */
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
    /* About 5 us of work pay for a fork and join of 0.5 us (measured); an element costs about 0.1 ns. */
    enum { WORTH_SPLITTING = 40000 };
    struct split split = { { core, &core->inst, data }, fn, parts };
    int threads = vtrn_pool_threads(core->options.pool);

    if (threads > 1 && parts > 1 && parts * work_per_part >= WORTH_SPLITTING)
        vtrn_pool_run(core->options.pool, threads, run_part, &split);
    else run_part(&split, 0, 1);
}
