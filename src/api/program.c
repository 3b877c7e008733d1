/* Public API: programs. Wraps prog/ in a handle with what callers ask for again and again: which tensors are inputs and
 * outputs, which are written, which instructions occur. One walk over the code when a program comes in; nothing after. */
#include "api/api_int.h"

/* ---------------------------------------------------------------- the one walk */
static void note_inst(struct vtrn_program *program, const struct vtrn_inst *inst)
{
    program->use[inst->engine][inst->op]++;
    vtrn_inst_written(inst, program->written);
}

static enum vtrn_status survey(struct vtrn_program *program, struct vtrn_error *err)
{
    const struct vtrn_prog *prog = program->prog;
    struct vtrn_inst inst;

    program->input = calloc(prog->tensors + 1, sizeof *program->input);
    program->output = calloc(prog->tensors + 1, sizeof *program->output);
    program->written = calloc(prog->tensors + 1, sizeof *program->written);
    VTRN_FAIL_IF(!program->input || !program->output || !program->written, err, VTRN_NOMEM, "no memory for %u tensors",
                 prog->tensors);
    for (uint32_t t = 0; t < prog->tensors; t++) {
        if (prog->tensor[t].role == VTRN_ROLE_INPUT) program->input[program->inputs++] = t;
        if (prog->tensor[t].role == VTRN_ROLE_OUTPUT) program->output[program->outputs++] = t;
    }
    for (int core = 0; core < prog->cores; core++)
        for (uint32_t i = 0; i < prog->code[core].count; i++) {
            vtrn_prog_get(prog, core, i, &inst);
            note_inst(program, &inst);
        }
    return VTRN_OK;
}

/* Takes the program over, also when it fails. */
static enum vtrn_status wrap(struct vtrn_prog *prog, struct vtrn_program **program_out, struct vtrn_error *err)
{
    struct vtrn_program *program = calloc(1, sizeof *program);
    enum vtrn_status status;

    if (!program) {
        vtrn_prog_destroy(prog);
        return vtrn_fail(err, VTRN_NOMEM, "no memory for a program");
    }
    program->prog = prog;
    status = survey(program, err);
    if (status < 0) vtrn_program_destroy(program);
    else *program_out = program;
    return status;
}

/* ---------------------------------------------------------------- in and out */
enum vtrn_status vtrn_program_load(const void *bytes, size_t size_bytes, struct vtrn_program **program_out, struct vtrn_error *err)
{
    struct vtrn_prog *prog;

    VTRN_TRY(vtrn_prog_load(bytes, size_bytes, &prog, err));
    return wrap(prog, program_out, err);
}

enum vtrn_status vtrn_program_load_file(const char *path, struct vtrn_program **program_out, struct vtrn_error *err)
{
    struct vtrn_prog *prog;

    VTRN_TRY(vtrn_prog_load_file(path, &prog, err));
    return wrap(prog, program_out, err);
}

enum vtrn_status vtrn_program_parse(const char *text, size_t length, struct vtrn_program **program_out, struct vtrn_error *err)
{
    struct vtrn_prog *prog;

    VTRN_TRY(vtrn_prog_parse(text, length, &prog, err));
    return wrap(prog, program_out, err);
}

void vtrn_program_destroy(struct vtrn_program *program)
{
    if (!program) return;
    vtrn_prog_destroy(program->prog);
    free(program->input);
    free(program->output);
    free(program->written);
    free(program);
}

enum vtrn_status vtrn_program_save_file(const struct vtrn_program *program, const char *path, struct vtrn_error *err)
{
    return vtrn_prog_save_file(program->prog, path, err);
}

/* Hands a buffer's bytes to the caller, with a zero byte behind them. */
static enum vtrn_status hand_over(struct vtrn_buf *buf, enum vtrn_status status, void **bytes_out, size_t *size_out,
                                  struct vtrn_error *err)
{
    if (status >= 0 && (status = vtrn_buf_append(buf, "", 1)) < 0) vtrn_fail(err, status, "no memory for %zu bytes", buf->size);
    if (status < 0) {
        vtrn_buf_fini(buf);
        return status;
    }
    *bytes_out = buf->data;
    *size_out = buf->size - 1;
    return VTRN_OK;
}

enum vtrn_status vtrn_program_save(const struct vtrn_program *program, void **bytes_out, size_t *size_out, struct vtrn_error *err)
{
    struct vtrn_buf buf = { 0 };

    return hand_over(&buf, vtrn_prog_save(program->prog, &buf, err), bytes_out, size_out, err);
}

enum vtrn_status vtrn_program_print(const struct vtrn_program *program, char **text_out, size_t *size_out, struct vtrn_error *err)
{
    struct vtrn_buf buf = { 0 };
    void *bytes;

    VTRN_TRY(hand_over(&buf, vtrn_prog_print(program->prog, &buf, err), &bytes, size_out, err));
    *text_out = bytes;
    return VTRN_OK;
}

enum vtrn_status vtrn_program_verify(const struct vtrn_program *program, struct vtrn_error *err)
{
    return vtrn_prog_verify(program->prog, err);
}

/* ---------------------------------------------------------------- what it is */
enum vtrn_status vtrn_program_get(const struct vtrn_program *program, struct vtrn_program_info *info, size_t info_size)
{
    const struct vtrn_prog *prog = program->prog;
    struct vtrn_program_info full = { .name = vtrn_prog_text(prog, prog->name),
                                      .target = prog->arch->chip,
                                      .cores = prog->cores,
                                      .replayable = prog->replayable,
                                      .tensors = prog->tensors,
                                      .inputs = program->inputs,
                                      .outputs = program->outputs };

    for (int core = 0; core < prog->cores; core++) full.instructions += prog->code[core].count;
    api_give(info, info_size, &full, sizeof full);
    return VTRN_OK;
}

/* Rows come engine by engine; within one, by name. The table is small (some 60 names), so each row is looked for anew. */
bool vtrn_program_use(const struct vtrn_program *program, int row, struct vtrn_use_info *info, size_t info_size)
{
    for (int engine = 0; engine < VTRN_ENGINES; engine++) {
        const char *last = "";

        for (;;) {
            int next = -1;

            for (int op = 0; op < VTRN_OPCODES; op++) {
                if (!program->use[engine][op] || strcmp(vtrn_ops[op].name, last) <= 0) continue;
                if (next < 0 || strcmp(vtrn_ops[op].name, vtrn_ops[next].name) < 0) next = op;
            }
            if (next < 0) break;
            last = vtrn_ops[next].name;
            if (row-- == 0) {
                struct vtrn_use_info full = { vtrn_engine_name(engine), last, program->use[engine][next] };

                api_give(info, info_size, &full, sizeof full);
                return true;
            }
        }
    }
    return false;
}

enum vtrn_status vtrn_program_tensor(const struct vtrn_program *program, uint32_t index, struct vtrn_tensor_info *info,
                                     size_t info_size)
{
    static const uint8_t kinds[] = { [VTRN_ROLE_TEMP] = VTRN_TENSOR_TEMP,
                                     [VTRN_ROLE_INPUT] = VTRN_TENSOR_INPUT,
                                     [VTRN_ROLE_OUTPUT] = VTRN_TENSOR_OUTPUT,
                                     [VTRN_ROLE_CONST] = VTRN_TENSOR_CONST };
    const struct vtrn_prog *prog = program->prog;
    const struct vtrn_tensor *tensor;
    struct vtrn_tensor_info full;

    if (index >= prog->tensors) return VTRN_INVALID;
    tensor = &prog->tensor[index];
    full = (struct vtrn_tensor_info){ .name = vtrn_prog_text(prog, tensor->name),
                                      .space = vtrn_space_name(tensor->space),
                                      .dtype = vtrn_dtypes[tensor->dtype].nki_name,
                                      .kind = (enum vtrn_tensor_kind)kinds[tensor->role],
                                      .rank = tensor->rank,
                                      .element_bytes = vtrn_dtypes[tensor->dtype].size_bytes,
                                      .size_bytes = (size_t)tensor->row_bytes * (tensor->partitions ? tensor->partitions : 1),
                                      .written = program->written[index] != 0,
                                      .core = tensor->core < VTRN_CORES_MAX ? tensor->core : -1 };
    for (int i = 0; i < tensor->rank; i++) full.dim[i] = tensor->dim[i];
    api_give(info, info_size, &full, sizeof full);
    return VTRN_OK;
}

uint32_t vtrn_program_input(const struct vtrn_program *program, uint32_t i)
{
    return i < program->inputs ? program->input[i] : UINT32_MAX;
}

uint32_t vtrn_program_output(const struct vtrn_program *program, uint32_t i)
{
    return i < program->outputs ? program->output[i] : UINT32_MAX;
}

enum vtrn_status vtrn_program_find(const struct vtrn_program *program, const char *name, uint32_t *tensor_out,
                                   struct vtrn_error *err)
{
    const struct vtrn_prog *prog = program->prog;
    char known[512] = "";
    size_t length = 0;

    for (uint32_t i = 0; i < program->inputs + program->outputs; i++) {
        uint32_t tensor = i < program->inputs ? program->input[i] : program->output[i - program->inputs];
        const char *its = vtrn_prog_text(prog, prog->tensor[tensor].name);

        if (*its && strcmp(its, name) == 0) {
            *tensor_out = tensor;
            return VTRN_OK;
        }
        if (length < sizeof known) /* a list that does not fit is cut */
            length += (size_t)snprintf(known + length, sizeof known - length, "%s%s", i ? ", " : "", *its ? its : "(no name)");
    }
    return vtrn_fail(err, VTRN_INVALID, "no input or output is called \"%s\"; there are: %s", name, *known ? known : "none");
}
