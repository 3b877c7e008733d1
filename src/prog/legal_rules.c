/* Rules that many instructions share: shapes and dtypes of two operands, scalar operands, operators and the engine they
 * run on, accumulator commands. One wording for one rule, so that messages read alike wherever they come from.
 * Sources: nki.isa reference and nki.api.shared (Neuron SDK 2.32). */
#include "prog/legal_int.h"

#include <math.h>

/* ---------------------------------------------------------------- shapes and dtypes */
enum vtrn_status legal_same_parts(struct legal *legal, const struct legal_operand *a, const struct legal_operand *b)
{
    if (VTRN_LIKELY(!a || !b || a->parts == b->parts)) return VTRN_OK;
    return vtrn_fail(legal->err, VTRN_ILLEGAL, "%s has %lld partitions, %s has %lld; they must be equal", a->name,
                     (long long)a->parts, b->name, (long long)b->parts);
}

enum vtrn_status legal_same_elems(struct legal *legal, const struct legal_operand *a, const struct legal_operand *b)
{
    if (VTRN_LIKELY(!a || !b || a->elems == b->elems)) return VTRN_OK;
    return vtrn_fail(legal->err, VTRN_ILLEGAL, "%s has %lld elements per partition, %s has %lld; they must be equal", a->name,
                     (long long)a->elems, b->name, (long long)b->elems);
}

enum vtrn_status legal_same_shape(struct legal *legal, const struct legal_operand *a, const struct legal_operand *b)
{
    VTRN_TRY(legal_same_parts(legal, a, b));
    return legal_same_elems(legal, a, b);
}

enum vtrn_status legal_same_dtype(struct legal *legal, const struct legal_operand *a, const struct legal_operand *b)
{
    if (VTRN_LIKELY(!a || !b || a->dtype == b->dtype)) return VTRN_OK;
    return vtrn_fail(legal->err, VTRN_ILLEGAL, "%s is %s, %s is %s; it does not convert, the dtypes must be equal", a->name,
                     legal_dtype_name(a->dtype), b->name, legal_dtype_name(b->dtype));
}

enum vtrn_status legal_elems_are(struct legal *legal, const struct legal_operand *a, int64_t elems, const char *why)
{
    if (VTRN_LIKELY(!a || a->elems == elems)) return VTRN_OK;
    return vtrn_fail(legal->err, VTRN_ILLEGAL, "%s has %lld elements per partition, it must have %lld (%s)", a->name,
                     (long long)a->elems, (long long)elems, why);
}

enum vtrn_status legal_dtype_in(struct legal *legal, const struct legal_operand *a, uint32_t mask)
{
    char names[320];

    if (VTRN_LIKELY(!a || mask >> a->dtype & 1)) return VTRN_OK;
    return vtrn_fail(legal->err, VTRN_ILLEGAL, "%s: dtype %s, it must be %s", a->name, legal_dtype_name(a->dtype),
                     legal_dtype_names(mask, names, sizeof names));
}

enum vtrn_status legal_not_both_psum(struct legal *legal, const struct legal_operand *a, const struct legal_operand *b)
{
    if (VTRN_LIKELY(!a || !b || a->space != VTRN_PSUM || b->space != VTRN_PSUM)) return VTRN_OK;
    return vtrn_fail(legal->err, VTRN_ILLEGAL,
                     "%s and %s are both in PSUM; the engine reads one input from PSUM, copy the other to SBUF", a->name, b->name);
}

/* ---------------------------------------------------------------- scalars */
enum vtrn_status legal_scalar(struct legal *legal, size_t index, const struct legal_operand *with)
{
    const struct legal_operand *vector = legal_operand_at(legal, index);

    if (VTRN_LIKELY(!vector)) return VTRN_OK;
    LEGAL_FAIL_IF(vector->elems != 1, legal, "%s has %lld elements per partition; a vector operand has one", vector->name,
                  (long long)vector->elems);
    return with ? legal_same_parts(legal, vector, with) : VTRN_OK;
}

/* ---------------------------------------------------------------- operators */
static const char *operand_name(const struct legal *legal, size_t index) { return legal->info->operand[index].name; }

/* power and rsqrt exist on GpSimd alone. */
static enum vtrn_status check_operator_engine(struct legal *legal, size_t op_index, int op)
{
    bool gpsimd_only = op == VTRN_ALU_POWER || op == VTRN_ALU_RSQRT;

    LEGAL_FAIL_IF(gpsimd_only && legal->inst->engine != VTRN_ENGINE_GPSIMD, legal, "%s: %s runs on gpsimd, not on %s",
                  operand_name(legal, op_index), vtrn_alus[op].nki_name, vtrn_engine_name(legal->inst->engine));
    return VTRN_OK;
}

static bool is_zero(const struct vtrn_value *value) { return value->kind == VTRN_V_NUM && value->num == 0.0; }

enum vtrn_status legal_operator(struct legal *legal, size_t op_index, size_t operand_index)
{
    const struct vtrn_value *operand = &legal->inst->arg[operand_index];
    int op = legal_alu(legal, op_index);

    if (op == VTRN_ALU_NONE) {
        LEGAL_FAIL_IF(operand->kind != VTRN_V_NONE, legal, "%s is given without %s", operand_name(legal, operand_index),
                      operand_name(legal, op_index));
        return VTRN_OK;
    }
    if (vtrn_alus[op].arity == 1) {
        LEGAL_FAIL_IF(operand->kind != VTRN_V_NONE && !is_zero(operand), legal, "%s: %s takes one operand; %s must be None or 0",
                      operand_name(legal, op_index), vtrn_alus[op].nki_name, operand_name(legal, operand_index));
    } else {
        LEGAL_FAIL_IF(operand->kind == VTRN_V_NONE && op != VTRN_ALU_BYPASS, legal, "%s is missing: %s takes two operands",
                      operand_name(legal, operand_index), vtrn_alus[op].nki_name);
    }
    return check_operator_engine(legal, op_index, op);
}

enum vtrn_status legal_binary(struct legal *legal, size_t op_index)
{
    int op = legal_alu(legal, op_index);

    LEGAL_FAIL_IF(vtrn_alus[op].arity != 2, legal, "%s: %s takes one operand; use a binary operator", operand_name(legal, op_index),
                  vtrn_alus[op].nki_name);
    return check_operator_engine(legal, op_index, op);
}

enum vtrn_status legal_bits_dtypes(struct legal *legal)
{
    for (int a = 0; a < legal->info->operands; a++) {
        const struct legal_operand *operand = legal_operand_at(legal, (size_t)a);
        const struct vtrn_value *value = &legal->inst->arg[a];

        LEGAL_FAIL_IF(operand && !(VTRN_DTS_INTS >> operand->dtype & 1), legal, "%s is %s; bitwise operators need integer dtypes",
                      operand->name, legal_dtype_name(operand->dtype));
        LEGAL_FAIL_IF(value->kind == VTRN_V_NUM && !value->is_int && value->num != floor(value->num), legal,
                      "%s is %g; bitwise operators need integers", operand_name(legal, (size_t)a), value->num);
    }
    return VTRN_OK;
}

/* ---------------------------------------------------------------- accumulators */
enum vtrn_status legal_reduce_cmd(struct legal *legal, size_t index, unsigned mask)
{
    const struct vtrn_value *cmd = &legal->inst->arg[index];

    if (cmd->kind == VTRN_V_NONE || mask >> cmd->i & 1) return VTRN_OK;
    return vtrn_fail(legal->err, VTRN_ILLEGAL, "%s: %s is not a command of this instruction", operand_name(legal, index),
                     vtrn_enum_name(VTRN_ENUMS_REDUCE_CMD, (int)cmd->i));
}

enum vtrn_status legal_reduce_res(struct legal *legal, size_t index, const struct legal_operand *with)
{
    const struct legal_operand *res = legal_operand_at(legal, index);

    if (!res) return VTRN_OK;
    LEGAL_FAIL_IF(res->elems != 1, legal, "%s has %lld elements per partition; a reduction over the free dimensions gives one",
                  res->name, (long long)res->elems);
    return legal_same_parts(legal, res, with);
}

enum vtrn_status legal_reduce_op(struct legal *legal, size_t index, uint64_t mask)
{
    char names[160];
    size_t used = 0;
    int op = legal_alu(legal, index);

    if (op == VTRN_ALU_NONE || mask >> op & 1) return VTRN_OK;
    for (int o = 1; o < VTRN_ALU_COUNT; o++)
        if (mask >> o & 1 && used < sizeof names)
            used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "", vtrn_alus[o].nki_name);
    return vtrn_fail(legal->err, VTRN_ILLEGAL, "%s: %s, it must be one of: %s", operand_name(legal, index), vtrn_alus[op].nki_name,
                     names);
}
