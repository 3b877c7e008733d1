/* Verification of a whole program: the tables agree with the target, every instruction decodes and is legal, loops
 * nest and close, dependencies point backwards. A program that came from vtrn_prog_append holds all this by
 * construction; the verifier is for programs from elsewhere and for tests that want to know.
 * Stands beside build.c: the same rules, asked of what is there instead of what is added. Changes nothing. */
#include "prog/prog_int.h"

void prog_prefix_place(const struct vtrn_prog *prog, struct vtrn_error *err, int core, uint32_t index, const struct vtrn_inst *inst)
{
    char where[256];

    vtrn_prog_where(prog, inst, where, sizeof where);
    vtrn_error_prefix(err, "core %d instruction %u (%s)", core, index, where);
}

enum vtrn_status prog_check_closed(const struct vtrn_prog *prog, struct vtrn_error *err)
{
    for (int core = 0; core < prog->cores; core++) {
        const struct vtrn_code *code = &prog->code[core];

        VTRN_FAIL_IF(code->loop_depth != 0, err, VTRN_ILLEGAL, "core %d: the loop that instruction %u begins has no loop_end", core,
                     code->loop[code->open_loop].begin);
    }
    return VTRN_OK;
}

/* ---------------------------------------------------------------- tables */
static enum vtrn_status verify_tensor(const struct vtrn_prog *prog, uint32_t index, struct vtrn_error *err)
{
    const struct vtrn_tensor *tensor = &prog->tensor[index];
    struct vtrn_tensor again = *tensor;

    VTRN_TRY(prog_tensor_check(prog, &again, err));
    VTRN_FAIL_IF(again.row_bytes != tensor->row_bytes || again.partitions != tensor->partitions, err, VTRN_FORMAT,
                 "tensor %u: its size does not follow from its shape", index);
    VTRN_FAIL_IF((tensor->role == VTRN_ROLE_CONST) != (tensor->data != NULL), err, VTRN_FORMAT,
                 "tensor %u: a constant has data, and nothing else has", index);
    VTRN_FAIL_IF(tensor->core < VTRN_CORES_MAX && tensor->born > prog->code[tensor->core].count, err, VTRN_FORMAT,
                 "tensor %u: born at instruction %u of %u", index, tensor->born, prog->code[tensor->core].count);
    return VTRN_OK;
}

static enum vtrn_status verify_tables(const struct vtrn_prog *prog, struct vtrn_error *err)
{
    VTRN_FAIL_IF(!prog->arch || prog->cores < 1 || prog->cores > VTRN_CORES_MAX, err, VTRN_FORMAT,
                 "a program has a target and 1 or %d cores", VTRN_CORES_MAX);
    VTRN_FAIL_IF(prog->strings == 0 || prog->locs == 0 || prog->name >= prog->strings, err, VTRN_FORMAT,
                 "the string table or the location table is incomplete");
    for (uint32_t i = 0; i < prog->strings; i++)
        VTRN_FAIL_IF(prog->string_at[i] >= prog->string_bytes.size, err, VTRN_FORMAT, "string %u lies outside the table", i);
    for (uint32_t i = 0; i < prog->locs; i++)
        VTRN_FAIL_IF(prog->loc[i].file >= prog->strings, err, VTRN_FORMAT, "location %u names no file", i);
    for (uint32_t i = 0; i < prog->tensors; i++) VTRN_TRY(verify_tensor(prog, i, err));
    return VTRN_OK;
}

/* ---------------------------------------------------------------- code */
static enum vtrn_status verify_registers(const struct vtrn_prog *prog, const struct vtrn_inst *inst, struct vtrn_error *err)
{
    for (int a = 0; a < vtrn_ops[inst->op].operands; a++) {
        const struct vtrn_value *value = &inst->arg[a];

        VTRN_FAIL_IF(value->kind == VTRN_V_REG && value->i >= prog->registers, err, VTRN_FORMAT,
                     "register %lld, the program has %u", (long long)value->i, prog->registers);
    }
    for (int d = 0; d < inst->ndyns; d++)
        VTRN_FAIL_IF(inst->dyns[d].kind == VTRN_DYN_REG && inst->dyns[d].ref >= prog->registers, err, VTRN_FORMAT,
                     "register %u, the program has %u", inst->dyns[d].ref, prog->registers);
    return VTRN_OK;
}

static enum vtrn_status verify_inst(const struct vtrn_prog *prog, int core, uint32_t index, int *depth, struct vtrn_inst *inst,
                                    struct vtrn_error *err)
{
    const struct vtrn_code *code = &prog->code[core];
    const uint32_t *words = (const uint32_t *)(const void *)code->words.data;
    size_t total = code->words.size / sizeof(uint32_t), length;
    enum vtrn_status status;

    VTRN_FAIL_IF(code->start[index] > code->start[index + 1] || code->start[index + 1] > total, err, VTRN_FORMAT,
                 "core %d instruction %u lies outside the code", core, index);
    status = vtrn_inst_decode(words + code->start[index], code->start[index + 1] - code->start[index], inst, &length, err);
    if (status < 0) {
        vtrn_error_prefix(err, "core %d instruction %u", core, index);
        return status;
    }
    if (length != code->start[index + 1] - code->start[index])
        status = vtrn_fail(err, VTRN_FORMAT, "its length is %zu words, not %u", length, code->start[index + 1] - code->start[index]);
    if (status >= 0) status = vtrn_legal_check(prog, core, inst, err);
    if (status >= 0) status = verify_registers(prog, inst, err);
    if (inst->op == VTRN_OP_loop_begin || inst->op == VTRN_OP_while_begin) ++*depth;
    if (inst->op == VTRN_OP_loop_end) --*depth;
    if (status >= 0 && (*depth < 0 || *depth > VTRN_LOOP_DEPTH))
        status = vtrn_fail(err, VTRN_ILLEGAL, "loops nest %d deep; 0..%d are possible", *depth, VTRN_LOOP_DEPTH);
    if (status < 0) prog_prefix_place(prog, err, core, index, inst);
    return status;
}

static enum vtrn_status verify_code(const struct vtrn_prog *prog, int core, struct vtrn_inst *inst, struct vtrn_error *err)
{
    const struct vtrn_code *code = &prog->code[core];
    int depth = 0;

    for (uint32_t i = 0; i < code->count; i++) VTRN_TRY(verify_inst(prog, core, i, &depth, inst, err));
    VTRN_FAIL_IF(depth != 0, err, VTRN_ILLEGAL, "core %d: %d loops have no loop_end", core, depth);
    for (uint32_t i = 0; i < code->edges; i++)
        VTRN_FAIL_IF(code->edge[i].consumer >= code->count || code->edge[i].producer >= code->edge[i].consumer, err, VTRN_ILLEGAL,
                     "core %d: dependency of instruction %u on %u does not point backwards in a list of %u", core,
                     code->edge[i].consumer, code->edge[i].producer, code->count);
    return VTRN_OK;
}

enum vtrn_status vtrn_prog_verify(const struct vtrn_prog *prog, struct vtrn_error *err)
{
    struct vtrn_inst *inst;
    enum vtrn_status status = verify_tables(prog, err);

    if (status < 0) return status;
    inst = malloc(sizeof *inst);
    VTRN_FAIL_IF(!inst, err, VTRN_NOMEM, "no memory to verify a program");
    for (int core = 0; core < prog->cores && status >= 0; core++) status = verify_code(prog, core, inst, err);
    free(inst);
    return status;
}
