/* Legality of the instructions that apply a function with scale and bias and may sum their results in the engine's
 * accumulators: activation, activation_reduce and activate2 on the scalar engine, exponential on the vector engine.
 * Source: nki.isa reference (activation, activate2, exponential). */
#include "prog/legal_int.h"

static const unsigned act_commands =
    1u << VTRN_REDUCE_CMD_IDLE | 1u << VTRN_REDUCE_CMD_RESET | 1u << VTRN_REDUCE_CMD_REDUCE | 1u << VTRN_REDUCE_CMD_RESET_REDUCE;

/* NeuronCore-v2 takes bias as a vector only, and none with reciprocal. */
static enum vtrn_status check_bias(struct legal *legal, size_t index, const struct legal_operand *data, int op)
{
    const struct vtrn_value *bias = &legal->inst->arg[index];
    const struct legal_operand *vector = legal_operand_at(legal, index);

    VTRN_TRY(legal_scalar(legal, index, data));
    if (vector) VTRN_TRY(legal_dtype_in(legal, vector, VTRN_DTS_PLAIN & ~VTRN_DTBIT(TF32)));
    if (legal->version > 2) return VTRN_OK;
    LEGAL_FAIL_IF(bias->kind == VTRN_V_NUM && bias->num != 0, legal, "bias %g: on %s bias must be a (P,1) vector", bias->num,
                  legal->prog->arch->chip);
    LEGAL_FAIL_IF(vector && op == VTRN_ACT_RECIPROCAL, legal, "bias: reciprocal takes no bias on %s", legal->prog->arch->chip);
    return VTRN_OK;
}

static enum vtrn_status check_activation(struct legal *legal, const struct legal_operand *dst, const struct legal_operand *data,
                                         int64_t op, size_t bias, size_t scale)
{
    VTRN_TRY(legal_same_shape(legal, data, dst));
    VTRN_TRY(check_bias(legal, bias, data, (int)op));
    return legal_scalar(legal, scale, data);
}

enum vtrn_status legal_activation(struct legal *legal)
{
    const struct legal_operand *dst = LEGAL_OPERAND(legal, activation, dst);
    const struct legal_operand *data = LEGAL_OPERAND(legal, activation, data);

    VTRN_TRY(check_activation(legal, dst, data, LEGAL_ARG(legal, activation, op)->i, LEGAL_INDEX(activation, bias),
                              LEGAL_INDEX(activation, scale)));
    VTRN_TRY(legal_reduce_op(legal, LEGAL_INDEX(activation, reduce_op), LEGAL_ALUBIT(ADD)));
    VTRN_TRY(legal_reduce_cmd(legal, LEGAL_INDEX(activation, reduce_cmd), act_commands));
    return legal_reduce_res(legal, LEGAL_INDEX(activation, reduce_res), data);
}

enum vtrn_status legal_activation_reduce(struct legal *legal)
{
    const struct legal_operand *dst = LEGAL_OPERAND(legal, activation_reduce, dst);
    const struct legal_operand *data = LEGAL_OPERAND(legal, activation_reduce, data);

    VTRN_TRY(check_activation(legal, dst, data, LEGAL_ARG(legal, activation_reduce, op)->i, LEGAL_INDEX(activation_reduce, bias),
                              LEGAL_INDEX(activation_reduce, scale)));
    VTRN_TRY(legal_reduce_op(legal, LEGAL_INDEX(activation_reduce, reduce_op), LEGAL_ALUBIT(ADD)));
    return legal_reduce_res(legal, LEGAL_INDEX(activation_reduce, reduce_res), data);
}

/* ---------------------------------------------------------------- activate2 */
static enum vtrn_status check_operator_pair(struct legal *legal, int op0, int op1)
{
    static const uint8_t pair[][2] = {
        { VTRN_ALU_MULTIPLY, VTRN_ALU_ADD }, { VTRN_ALU_MULTIPLY, VTRN_ALU_SUBTRACT }, { VTRN_ALU_MULTIPLY, VTRN_ALU_BYPASS },
        { VTRN_ALU_ADD, VTRN_ALU_BYPASS },   { VTRN_ALU_SUBTRACT, VTRN_ALU_BYPASS },   { VTRN_ALU_BYPASS, VTRN_ALU_BYPASS },
    };

    for (size_t i = 0; i < sizeof pair / sizeof pair[0]; i++)
        if (pair[i][0] == op0 && pair[i][1] == op1) return VTRN_OK;
    return vtrn_fail(legal->err, VTRN_ILLEGAL,
                     "op0 %s with op1 %s; the pairs are multiply with add, subtract or bypass, add or subtract with bypass, "
                     "bypass with bypass",
                     vtrn_alus[op0].nki_name, vtrn_alus[op1].nki_name);
}

enum vtrn_status legal_activate2(struct legal *legal)
{
    const struct legal_operand *dst = LEGAL_OPERAND(legal, activate2, dst);
    const struct legal_operand *data = LEGAL_OPERAND(legal, activate2, data);
    const struct legal_operand *imm0 = LEGAL_OPERAND(legal, activate2, imm0);
    const struct legal_operand *imm1 = LEGAL_OPERAND(legal, activate2, imm1);
    int op0 = legal_alu(legal, LEGAL_INDEX(activate2, op0)), op1 = legal_alu(legal, LEGAL_INDEX(activate2, op1));

    VTRN_TRY(legal_same_shape(legal, data, dst));
    VTRN_TRY(check_operator_pair(legal, op0, op1));
    VTRN_TRY(legal_scalar(legal, LEGAL_INDEX(activate2, imm0), data));
    VTRN_TRY(legal_scalar(legal, LEGAL_INDEX(activate2, imm1), data));
    VTRN_TRY(legal_scalar(legal, LEGAL_INDEX(activate2, relu_param), data));
    VTRN_TRY(legal_same_dtype(legal, imm0, imm1));
    LEGAL_FAIL_IF(op0 == VTRN_ALU_BYPASS && legal_flag(legal, LEGAL_INDEX(activate2, reverse0)), legal,
                  "reverse0 is set and op0 is bypass: there is nothing to reverse");
    LEGAL_FAIL_IF(op1 == VTRN_ALU_BYPASS && legal_flag(legal, LEGAL_INDEX(activate2, reverse1)), legal,
                  "reverse1 is set and op1 is bypass: there is nothing to reverse");
    VTRN_TRY(legal_reduce_op(legal, LEGAL_INDEX(activate2, reduce_op),
                             LEGAL_ALUBIT(ADD) | LEGAL_ALUBIT(MAXIMUM) | LEGAL_ALUBIT(MINIMUM) | LEGAL_ALUBIT(ABS_MAX) |
                                 LEGAL_ALUBIT(ABS_MIN)));
    VTRN_TRY(legal_reduce_cmd(legal, LEGAL_INDEX(activate2, reduce_cmd), act_commands));
    return legal_reduce_res(legal, LEGAL_INDEX(activate2, reduce_res), data);
}

/* ---------------------------------------------------------------- exponential */
enum vtrn_status legal_exponential(struct legal *legal)
{
    const unsigned commands = 1u << VTRN_REDUCE_CMD_IDLE | 1u << VTRN_REDUCE_CMD_REDUCE | 1u << VTRN_REDUCE_CMD_RESET_REDUCE |
                              1u << VTRN_REDUCE_CMD_LOAD_REDUCE;
    const struct legal_operand *dst = LEGAL_OPERAND(legal, exponential, dst);
    const struct legal_operand *src = LEGAL_OPERAND(legal, exponential, src);
    const struct vtrn_value *init = LEGAL_ARG(legal, exponential, reduce_init);
    bool loads = LEGAL_ARG(legal, exponential, reduce_cmd)->i == VTRN_REDUCE_CMD_LOAD_REDUCE;

    VTRN_TRY(legal_same_shape(legal, src, dst));
    VTRN_TRY(legal_dtype_in(legal, dst, VTRN_DTS_PLAIN & ~VTRN_DTBIT(U32)));
    VTRN_TRY(legal_dtype_in(legal, src, VTRN_DTS_PLAIN & ~VTRN_DTBIT(TF32)));
    VTRN_TRY(legal_scalar(legal, LEGAL_INDEX(exponential, max_value), src));
    VTRN_TRY(legal_scalar(legal, LEGAL_INDEX(exponential, reduce_init), src));
    VTRN_TRY(legal_reduce_cmd(legal, LEGAL_INDEX(exponential, reduce_cmd), commands));
    LEGAL_FAIL_IF(!loads && (init->kind == VTRN_V_AP || (init->kind == VTRN_V_NUM && init->num != 0)), legal,
                  "reduce_init is for reduce_cmd load_reduce; leave it out");
    return legal_reduce_res(legal, LEGAL_INDEX(exponential, reduce_res), src);
}
