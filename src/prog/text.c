/* The text of a whole program, printed (text_parse.c reads it). Directives for the program and its tables, then for each
 * core its instructions in the form of isa/print.c, indented by loops. print -> parse -> print is the identity.
 *
 *   vtrn 1                                        version of this form; "#" starts a comment
 *   target trn2
 *   cores 1
 *   name "kernel"                                 may be missing
 *   not_replayable                                only when it is so
 *   registers 3                                   only when there are some
 *   loc 1 "kernel.py" 41                          numbers count up from 1; an instruction points to one by @1
 *   tensor 0 "x" hbm bf16 [256, 512] input core=all @1
 *   tensor 1 "tile" sbuf bf16 [128, 512] address=0:1024 born=7
 *   tensor 2 hbm f32 [2] const                    numbers count up from 0; the name may be missing; core=0 is not said
 *     data 0000803f00000040                       a constant's bytes in hex, as many lines as needed
 *   core 0
 *     dma     dma_copy dst=%tile[0:128; 0+1x512] src=%x[0+512x128+1x512] @1
 *   edge 3 1                                      depends_on: consumer, producer, in the core that stands above
 *
 * Instructions name a tensor by its name when it is the only one of that name, else by its number. */
#include "prog/prog_int.h"

#include <inttypes.h>

enum { DATA_BYTES_PER_LINE = 32 };

/* ---------------------------------------------------------------- names, for printer and parser of one instruction */
static const char *tensor_name(const void *self, uint32_t tensor)
{
    const struct vtrn_prog *prog = self;
    uint32_t name = tensor < prog->tensors ? prog->tensor[tensor].name : 0;

    return name && prog->name_tensor[name] == tensor + 1 ? vtrn_prog_text(prog, name) : NULL;
}

static bool tensor_index(const void *self, const char *name, size_t length, uint32_t *tensor_out)
{
    const struct vtrn_prog *prog = self;
    uint32_t string, tensor;

    if (!prog_string_find(prog, name, length, &string) || string >= prog->name_tensor_capacity) return false;
    tensor = prog->name_tensor[string];
    if (tensor == 0 || tensor == UINT32_MAX) return false;
    *tensor_out = tensor - 1;
    return true;
}

static int tensor_space(const void *self, uint32_t tensor)
{
    const struct vtrn_prog *prog = self;

    return tensor < prog->tensors ? prog->tensor[tensor].space : VTRN_SPACE_NONE;
}

static int tensor_dtype(const void *self, uint32_t tensor)
{
    const struct vtrn_prog *prog = self;

    return tensor < prog->tensors ? prog->tensor[tensor].dtype : VTRN_DT_NONE;
}

static const char *string_text(const void *self, uint32_t index)
{
    const struct vtrn_prog *prog = self;

    return index < prog->strings ? vtrn_prog_text(prog, index) : NULL;
}

static bool string_index(void *self, const char *text, size_t length, uint32_t *index_out)
{
    return vtrn_prog_string(self, text, length, index_out) >= 0;
}

struct vtrn_text_names vtrn_prog_names(struct vtrn_prog *prog)
{
    return (struct vtrn_text_names){ .self = prog,
                                     .tensor_name = tensor_name,
                                     .tensor_index = tensor_index,
                                     .tensor_space = tensor_space,
                                     .string = string_text,
                                     .string_index = string_index,
                                     .tensor_dtype = tensor_dtype };
}

/* ---------------------------------------------------------------- directives */
static enum vtrn_status print_head(const struct vtrn_prog *prog, struct vtrn_buf *out)
{
    VTRN_TRY(vtrn_buf_printf(out, "vtrn 1\ntarget %s\ncores %d\n", prog->arch->chip, prog->cores));
    if (prog->name) {
        VTRN_TRY(vtrn_buf_printf(out, "name "));
        VTRN_TRY(vtrn_text_quote(out, vtrn_prog_text(prog, prog->name)));
        VTRN_TRY(vtrn_buf_printf(out, "\n"));
    }
    if (!prog->replayable) VTRN_TRY(vtrn_buf_printf(out, "not_replayable\n"));
    if (prog->registers) VTRN_TRY(vtrn_buf_printf(out, "registers %" PRIu32 "\n", prog->registers));
    for (uint32_t i = 1; i < prog->locs; i++) {
        VTRN_TRY(vtrn_buf_printf(out, "loc %" PRIu32 " ", i));
        VTRN_TRY(vtrn_text_quote(out, vtrn_prog_text(prog, prog->loc[i].file)));
        VTRN_TRY(vtrn_buf_printf(out, " %" PRIu32 "\n", prog->loc[i].line));
    }
    return VTRN_OK;
}

static enum vtrn_status print_data(const struct vtrn_tensor *tensor, struct vtrn_buf *out)
{
    const uint8_t *data = tensor->data;

    for (int64_t at = 0; at < tensor->row_bytes; at += DATA_BYTES_PER_LINE) {
        VTRN_TRY(vtrn_buf_printf(out, "  data "));
        for (int64_t i = at; i < at + DATA_BYTES_PER_LINE && i < tensor->row_bytes; i++)
            VTRN_TRY(vtrn_buf_printf(out, "%02x", data[i]));
        VTRN_TRY(vtrn_buf_printf(out, "\n"));
    }
    return VTRN_OK;
}

static enum vtrn_status print_tensor(const struct vtrn_prog *prog, uint32_t index, struct vtrn_buf *out)
{
    static const char *const role[] = { "", " input", " output", " const" };
    const struct vtrn_tensor *t = &prog->tensor[index];

    VTRN_TRY(vtrn_buf_printf(out, "tensor %" PRIu32 " ", index));
    if (t->name) {
        VTRN_TRY(vtrn_text_quote(out, vtrn_prog_text(prog, t->name)));
        VTRN_TRY(vtrn_buf_printf(out, " "));
    }
    VTRN_TRY(vtrn_buf_printf(out, "%s %s [", vtrn_space_name(t->space), vtrn_dtypes[t->dtype].text));
    for (int d = 0; d < t->rank; d++) VTRN_TRY(vtrn_buf_printf(out, "%s%" PRId64, d ? ", " : "", t->dim[d]));
    VTRN_TRY(vtrn_buf_printf(out, "]%s", role[t->role]));
    if (t->core == VTRN_CORES_MAX) VTRN_TRY(vtrn_buf_printf(out, " core=all"));
    else if (t->core) VTRN_TRY(vtrn_buf_printf(out, " core=%d", t->core));
    if (t->has_address) VTRN_TRY(vtrn_buf_printf(out, " address=%u:%" PRIu32, t->addr_partition, t->addr_byte));
    if (t->born) VTRN_TRY(vtrn_buf_printf(out, " born=%" PRIu32, t->born));
    if (t->loc) VTRN_TRY(vtrn_buf_printf(out, " @%" PRIu32, t->loc));
    VTRN_TRY(vtrn_buf_printf(out, "\n"));
    return t->data ? print_data(t, out) : VTRN_OK;
}

/* ---------------------------------------------------------------- code */
static enum vtrn_status print_core(const struct vtrn_prog *prog, int core, const struct vtrn_text_names *names,
                                   struct vtrn_inst *inst, struct vtrn_buf *out)
{
    const struct vtrn_code *code = &prog->code[core];
    int depth = 1;

    VTRN_TRY(vtrn_buf_printf(out, "core %d\n", core));
    for (uint32_t i = 0; i < code->count; i++) {
        vtrn_prog_get(prog, core, i, inst);
        if (inst->op == VTRN_OP_loop_end) depth--;
        VTRN_TRY(vtrn_buf_printf(out, "%*s", 2 * depth, ""));
        VTRN_TRY(vtrn_inst_print(inst, names, out));
        VTRN_TRY(vtrn_buf_printf(out, "\n"));
        if (inst->op == VTRN_OP_loop_begin || inst->op == VTRN_OP_while_begin) depth++;
    }
    for (uint32_t i = 0; i < code->edges; i++)
        VTRN_TRY(vtrn_buf_printf(out, "edge %" PRIu32 " %" PRIu32 "\n", code->edge[i].consumer, code->edge[i].producer));
    return VTRN_OK;
}

static enum vtrn_status print_all(const struct vtrn_prog *prog, struct vtrn_inst *inst, struct vtrn_buf *out)
{
    /* The printer only reads: the names' one writing function is for the parser. */
    struct vtrn_text_names names = vtrn_prog_names((struct vtrn_prog *)(uintptr_t)prog);

    VTRN_TRY(print_head(prog, out));
    for (uint32_t i = 0; i < prog->tensors; i++) VTRN_TRY(print_tensor(prog, i, out));
    for (int core = 0; core < prog->cores; core++) VTRN_TRY(print_core(prog, core, &names, inst, out));
    return VTRN_OK;
}

enum vtrn_status vtrn_prog_print(const struct vtrn_prog *prog, struct vtrn_buf *out, struct vtrn_error *err)
{
    struct vtrn_inst *inst = malloc(sizeof *inst);
    enum vtrn_status status = inst ? print_all(prog, inst, out) : VTRN_NOMEM;

    free(inst);
    return status < 0 ? vtrn_fail(err, status, "no memory to print the program") : VTRN_OK;
}
