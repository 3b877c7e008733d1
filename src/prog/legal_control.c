/* Legality of what sequencers do: registers, loops, the barrier between cores, printing. That loops nest and close is
 * build.c's and verify.c's work. Source: nki.isa reference (register_*, core_barrier); nki.language (dynamic_range). */
#include "prog/legal_int.h"

/* ---------------------------------------------------------------- registers */
static enum vtrn_status check_one_element(struct legal *legal, const struct legal_operand *operand)
{
    LEGAL_FAIL_IF(operand->parts != 1 || operand->elems != 1, legal, "%s is [%lld, %lld]; a register holds one element",
                  operand->name, (long long)operand->parts, (long long)operand->elems);
    return VTRN_OK;
}

enum vtrn_status legal_register_move(struct legal *legal)
{
    (void)legal; /* the row says it all */
    return VTRN_OK;
}

enum vtrn_status legal_register_load(struct legal *legal)
{
    return check_one_element(legal, LEGAL_OPERAND(legal, register_load, src));
}

enum vtrn_status legal_register_store(struct legal *legal)
{
    return check_one_element(legal, LEGAL_OPERAND(legal, register_store, dst));
}

enum vtrn_status legal_register_alu(struct legal *legal)
{
    const struct vtrn_value *rhs = LEGAL_ARG(legal, register_alu, rhs);
    int64_t op = LEGAL_ARG(legal, register_alu, op)->i;
    bool divides = op == VTRN_REGOP_DIVIDE || op == VTRN_REGOP_MODULO;

    LEGAL_FAIL_IF(divides && rhs->kind == VTRN_V_INT && rhs->i == 0, legal, "rhs is 0: division by zero");
    return VTRN_OK;
}

/* ---------------------------------------------------------------- loops */
enum vtrn_status legal_loop_begin(struct legal *legal)
{
    const struct vtrn_value *step = LEGAL_ARG(legal, loop_begin, step);

    LEGAL_FAIL_IF(step->kind == VTRN_V_INT && step->i < 1, legal, "step %lld; it must be at least 1", (long long)step->i);
    return VTRN_OK;
}

enum vtrn_status legal_loop_end(struct legal *legal)
{
    (void)legal;
    return VTRN_OK;
}

enum vtrn_status legal_while_begin(struct legal *legal)
{
    LEGAL_FAIL_IF(LEGAL_ARG(legal, while_begin, condition)->kind != VTRN_V_REG, legal,
                  "condition must be a register: a constant would loop for ever or never");
    return VTRN_OK;
}

/* ---------------------------------------------------------------- cores and host */
/* Kernels that also run on one core pass cores=(0,) there: a barrier with nobody. */
enum vtrn_status legal_core_barrier(struct legal *legal)
{
    const struct vtrn_value *cores = LEGAL_ARG(legal, core_barrier, cores);
    bool both = cores->count == 2 && cores->ints[0] == 0 && cores->ints[1] == 1, alone = cores->count == 1 && cores->ints[0] == 0;

    LEGAL_FAIL_IF(!both && !alone, legal, "cores must be (0, 1)");
    LEGAL_FAIL_IF(both && legal->prog->cores < 2, legal, "cores (0, 1): the kernel runs on one core; launch kernel[2]");
    return VTRN_OK;
}

enum vtrn_status legal_device_print(struct legal *legal)
{
    (void)legal;
    return VTRN_OK;
}
