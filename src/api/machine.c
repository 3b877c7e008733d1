/* Public API: machines. A machine remembers options and the caller's bytes; every run is a new chip/ on them, so that runs
 * are alike, and the chip of the last run stays for reading results, counters and the fault. */
#include "api/api_int.h"

static const size_t PAGES_KEPT_BYTES = (size_t)128 << 20; /* a chip's SBUF, PSUM, scratch, and outputs of 64 MiB */

struct binding {
    void *bytes; /* NULL: not bound */
    size_t size_bytes;
};
struct vtrn_machine {
    struct vtrn_program *program;
    struct vtrn_machine_options options;
    struct binding *binding;       /* by input */
    struct vtrn_chip *chip;        /* of the last run; NULL before the first */
    struct vtrn_page_cache *pages; /* between its runs */
    bool faulted;
    struct vtrn_buf disassembly; /* of the faulting instruction */
};

void vtrn_machine_options_init_sized(struct vtrn_machine_options *options, size_t size_bytes)
{
    memset(options, 0, size_bytes);
    options->size_bytes = size_bytes;
}

enum vtrn_status vtrn_machine_create(struct vtrn_program *program, const struct vtrn_machine_options *options,
                                     struct vtrn_machine **machine_out, struct vtrn_error *err)
{
    struct vtrn_machine *machine;
    struct vtrn_run_options defaults;

    VTRN_FAIL_IF(options && options->size_bytes < sizeof options->size_bytes, err, VTRN_INVALID,
                 "options: call vtrn_machine_options_init first");
    VTRN_FAIL_IF(options && options->size_bytes >= offsetof(struct vtrn_machine_options, stochastic_rounding) && options->threads < 0,
                 err, VTRN_INVALID, "options: threads %d; 0 means all", options->threads);
    VTRN_FAIL_IF(!program->prog->replayable, err, VTRN_UNSUPPORTED,
                 "program %s holds for the values it was traced with only: its Python looked at values; use nl.fori_loop and "
                 "nl.while_loop instead of Python loops over registers, and record it again",
                 vtrn_prog_text(program->prog, program->prog->name));
    machine = calloc(1, sizeof *machine);
    VTRN_FAIL_IF(!machine, err, VTRN_NOMEM, "no memory for a machine");
    machine->binding = calloc(program->inputs + 1, sizeof *machine->binding);
    machine->pages = vtrn_page_cache_create(PAGES_KEPT_BYTES);
    if (!machine->binding || !machine->pages) {
        vtrn_machine_destroy(machine);
        return vtrn_fail(err, VTRN_NOMEM, "no memory for %u inputs", program->inputs);
    }
    machine->program = program;
    vtrn_run_options_init(&defaults);
    machine->options.seed = defaults.seed;
    if (options) api_give(&machine->options, sizeof machine->options, options, options->size_bytes);
    *machine_out = machine;
    return VTRN_OK;
}

void vtrn_machine_destroy(struct vtrn_machine *machine)
{
    if (!machine) return;
    vtrn_chip_destroy(machine->chip);
    vtrn_page_cache_destroy(machine->pages);
    vtrn_buf_fini(&machine->disassembly);
    free(machine->binding);
    free(machine);
}

/* ---------------------------------------------------------------- inputs */
/* "x (bfloat16 [256, 512])", for messages */
static void describe(const struct vtrn_program *program, uint32_t index, char *out, size_t size)
{
    const struct vtrn_tensor *tensor = &program->prog->tensor[index];
    const char *name = vtrn_prog_text(program->prog, tensor->name);
    size_t length = (size_t)snprintf(out, size, "%.80s (%s [", *name ? name : "without a name", vtrn_dtypes[tensor->dtype].nki_name);

    for (int i = 0; i < tensor->rank && length < size; i++)
        length += (size_t)snprintf(out + length, size - length, "%s%lld", i ? ", " : "", (long long)tensor->dim[i]);
    if (length < size) snprintf(out + length, size - length, "])");
}

enum vtrn_status vtrn_machine_bind(struct vtrn_machine *machine, uint32_t index, void *bytes, size_t size_bytes,
                                   struct vtrn_error *err)
{
    const struct vtrn_program *program = machine->program;
    char text[256];

    VTRN_FAIL_IF(index >= program->prog->tensors, err, VTRN_INVALID, "tensor %u: the program has %u", index, program->prog->tensors);
    describe(program, index, text, sizeof text);
    VTRN_FAIL_IF(size_bytes != (size_t)program->prog->tensor[index].row_bytes, err, VTRN_INVALID,
                 "tensor %s has %lld bytes, %zu were given", text, (long long)program->prog->tensor[index].row_bytes, size_bytes);
    for (uint32_t i = 0; i < program->inputs; i++)
        if (program->input[i] == index) {
            machine->binding[i] = (struct binding){ bytes, size_bytes };
            return VTRN_OK;
        }
    return vtrn_fail(err, VTRN_INVALID, "tensor %s is not an input", text);
}

static enum vtrn_status bind_all(const struct vtrn_machine *machine, struct vtrn_chip *chip, struct vtrn_error *err)
{
    const struct vtrn_program *program = machine->program;

    for (uint32_t i = 0; i < program->inputs; i++) {
        char text[256];

        if (!machine->binding[i].bytes) {
            describe(program, program->input[i], text, sizeof text);
            return vtrn_fail(err, VTRN_INVALID, "input %s has no bytes; bind it before the run", text);
        }
        VTRN_TRY(vtrn_mem_bind(vtrn_chip_mem(chip), program->prog, program->input[i], machine->binding[i].bytes,
                               machine->binding[i].size_bytes, err));
    }
    return VTRN_OK;
}

/* ---------------------------------------------------------------- run */
static void note_fault(struct vtrn_machine *machine)
{
    const struct vtrn_fault *fault = vtrn_chip_fault(machine->chip);
    struct vtrn_prog *prog = machine->program->prog;
    struct vtrn_text_names names = vtrn_prog_names(prog);
    struct vtrn_inst inst;

    machine->faulted = fault && fault->reason != VTRN_FAULT_NONE;
    if (!machine->faulted || fault->pc >= prog->code[fault->core].count) return;
    vtrn_prog_get(prog, fault->core, fault->pc, &inst);
    if (vtrn_inst_print(&inst, &names, &machine->disassembly) < 0) machine->disassembly.size = 0; /* no memory: no text */
}

enum vtrn_status vtrn_machine_run(struct vtrn_machine *machine, struct vtrn_error *err)
{
    struct vtrn_prog *prog = machine->program->prog;
    struct vtrn_run_options options;
    struct vtrn_error own;
    enum vtrn_status status;

    if (!err) err = &own;
    err->status = VTRN_OK;
    vtrn_run_options_init(&options);
    options.threads = machine->options.threads;
    options.pages = machine->pages;
    options.stochastic_rounding = machine->options.stochastic_rounding != 0;
    options.seed = machine->options.seed;
    options.print = machine->options.print;
    options.print_self = machine->options.print_self;
    options.progress = machine->options.progress;
    options.progress_self = machine->options.progress_self;
    options.trace = true;
    vtrn_chip_destroy(machine->chip);
    machine->faulted = false;
    machine->disassembly.size = 0;
    machine->chip = vtrn_chip_create(prog, &options, err);
    if (!machine->chip) return err->status < 0 ? err->status : VTRN_NOMEM;
    VTRN_TRY(bind_all(machine, machine->chip, err));
    status = vtrn_chip_run(machine->chip, (1u << prog->cores) - 1, true, err);
    if (status < 0) note_fault(machine);
    return status;
}

/* ---------------------------------------------------------------- results */
const struct vtrn_trace *api_machine_trace(const struct vtrn_machine *machine)
{
    return machine->chip ? vtrn_chip_trace(machine->chip) : NULL;
}

enum vtrn_status vtrn_machine_read(struct vtrn_machine *machine, uint32_t index, const void **bytes_out, size_t *size_out,
                                   struct vtrn_error *err)
{
    struct vtrn_prog *prog = machine->program->prog;
    const struct vtrn_tensor *tensor;
    void *bytes;

    VTRN_FAIL_IF(!machine->chip, err, VTRN_INVALID, "nothing has run yet");
    VTRN_FAIL_IF(index >= prog->tensors, err, VTRN_INVALID, "tensor %u: the program has %u", index, prog->tensors);
    tensor = &prog->tensor[index];
    VTRN_FAIL_IF(!vtrn_space_is_hbm(tensor->space), err, VTRN_INVALID,
                 "tensor %u is in %s and gone after a run; only HBM can be read", index, vtrn_space_name(tensor->space));
    VTRN_TRY(vtrn_mem_hbm(vtrn_chip_mem(machine->chip), prog, tensor->core < VTRN_CORES_MAX ? tensor->core : 0, index, &bytes,
                          size_out, err));
    *bytes_out = bytes;
    return VTRN_OK;
}

bool vtrn_machine_counter(const struct vtrn_machine *machine, int i, struct vtrn_counter_info *info, size_t info_size)
{
    struct vtrn_counters counters = { 0 };
    int at = 0;

    if (machine->chip) vtrn_chip_counters(machine->chip, &counters);
#define COUNTER(name, doc) \
    if (i == at++) { \
        struct vtrn_counter_info full = { #name, doc, counters.name }; \
        api_give(info, info_size, &full, sizeof full); \
        return true; \
    }
    VTRN_COUNTERS(COUNTER)
#undef COUNTER
    return false;
}

static const char *reason_name(enum vtrn_fault_reason reason)
{
    switch (reason) {
    case VTRN_FAULT_NONE: return "none";
    case VTRN_FAULT_BOUNDS: return "bounds";
    case VTRN_FAULT_INDEX: return "index";
    case VTRN_FAULT_DEADLOCK: return "deadlock";
    case VTRN_FAULT_MISMATCH: return "mismatch";
    case VTRN_FAULT_LOOP: return "loop";
    case VTRN_FAULT_VALUE: return "value";
    }
    return "unknown";
}

bool vtrn_machine_fault(const struct vtrn_machine *machine, struct vtrn_fault_info *info, size_t info_size)
{
    const struct vtrn_prog *prog = machine->program->prog;
    const struct vtrn_fault *fault;
    struct vtrn_fault_info full;

    if (!machine->faulted) return false;
    fault = vtrn_chip_fault(machine->chip);
    full = (struct vtrn_fault_info){ .reason = reason_name(fault->reason),
                                     .text = fault->text,
                                     .core = fault->core,
                                     .engine = vtrn_engine_name(fault->engine),
                                     .instruction = fault->pc,
                                     .file = "",
                                     .disassembly = machine->disassembly.size ? (const char *)machine->disassembly.data : "" };
    if (fault->pc < prog->code[fault->core].count) {
        struct vtrn_inst inst;

        vtrn_prog_get(prog, fault->core, fault->pc, &inst);
        full.file = vtrn_prog_text(prog, prog->loc[inst.loc].file);
        full.line = prog->loc[inst.loc].line;
    }
    api_give(info, info_size, &full, sizeof full);
    return true;
}
