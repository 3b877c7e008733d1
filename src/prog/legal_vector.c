/* Legality of the element-by-element instructions of the vector, scalar and GpSimd engines that need no accumulator:
 * copies, fills, arithmetic with tensors and scalars, selection, shuffles, dropout.
 * Sources: nki.isa reference; NeuronCore-v3 architecture guide (tensor_scalar on the scalar engine). */
#include "prog/legal_int.h"

#include <math.h>

enum { SHUFFLE_LANES = 32, SHUFFLE_KEEP = 255 };
#define FP32_MIN (-3.4028234663852886e38)

static bool is_packed(int dtype) { return VTRN_DTS_MX >> dtype & 1; }

/* ---------------------------------------------------------------- copies and fills */
enum vtrn_status legal_tensor_copy(struct legal *legal)
{
    const struct legal_operand *dst = LEGAL_OPERAND(legal, tensor_copy, dst);
    const struct legal_operand *src = LEGAL_OPERAND(legal, tensor_copy, src);

    LEGAL_FAIL_IF(legal->inst->engine == VTRN_ENGINE_SCALAR && legal->version < 3, legal,
                  "the scalar engine of %s has no tensor_copy; use activation with op=nl.copy", legal->prog->arch->chip);
    if (is_packed(dst->dtype) || is_packed(src->dtype)) VTRN_TRY(legal_same_dtype(legal, dst, src));
    return legal_same_shape(legal, src, dst);
}

enum vtrn_status legal_memset(struct legal *legal)
{
    const struct legal_operand *dst = LEGAL_OPERAND(legal, memset, dst);
    const struct vtrn_dtype_info *dtype = &vtrn_dtypes[dst->dtype];
    double value = LEGAL_ARG(legal, memset, value)->num, limit;

    LEGAL_FAIL_IF(dtype->cls == VTRN_CLASS_PACKED && value != 0, legal, "value %g: %s can only be set to 0", value, dtype->nki_name);
    if (dtype->cls != VTRN_CLASS_INT && dtype->cls != VTRN_CLASS_UINT) return VTRN_OK;
    limit = (double)(UINT64_C(1) << dtype->size_bytes * 8); /* bit patterns of either sign are taken */
    LEGAL_FAIL_IF(!(value >= -limit / 2 && value < limit) || value != floor(value), legal, "value %g is no %s", value,
                  dtype->nki_name);
    return VTRN_OK;
}

enum vtrn_status legal_tensor_copy_predicated(struct legal *legal)
{
    const struct legal_operand *dst = LEGAL_OPERAND(legal, tensor_copy_predicated, dst);
    const struct legal_operand *src = LEGAL_OPERAND(legal, tensor_copy_predicated, src);
    const struct legal_operand *predicate = LEGAL_OPERAND(legal, tensor_copy_predicated, predicate);

    VTRN_TRY(legal_same_shape(legal, predicate, dst));
    VTRN_TRY(legal_same_shape(legal, src, dst));
    VTRN_TRY(legal_same_dtype(legal, src, dst));
    return legal_not_both_psum(legal, src, predicate);
}

/* ---------------------------------------------------------------- two tensors */
enum vtrn_status legal_tensor_tensor(struct legal *legal)
{
    const struct legal_operand *dst = LEGAL_OPERAND(legal, tensor_tensor, dst);
    const struct legal_operand *data1 = LEGAL_OPERAND(legal, tensor_tensor, data1);
    const struct legal_operand *data2 = LEGAL_OPERAND(legal, tensor_tensor, data2);
    size_t op = LEGAL_INDEX(tensor_tensor, op);

    VTRN_TRY(legal_same_shape(legal, data1, dst));
    VTRN_TRY(legal_same_shape(legal, data2, dst));
    VTRN_TRY(legal_binary(legal, op));
    if (vtrn_alus[legal_alu(legal, op)].cls == VTRN_ALU_BITS) VTRN_TRY(legal_bits_dtypes(legal));
    return legal_not_both_psum(legal, data1, data2);
}

/* ---------------------------------------------------------------- tensor_scalar */
/* The scalar engine computes data * scale + bias: before v4 it has no other operators. */
static enum vtrn_status check_scalar_engine(struct legal *legal, int op0, int op1)
{
    bool ok = (op0 == VTRN_ALU_MULTIPLY && (op1 == VTRN_ALU_ADD || op1 == VTRN_ALU_NONE)) ||
              (op0 == VTRN_ALU_ADD && op1 == VTRN_ALU_NONE);

    LEGAL_FAIL_IF(legal->version < 3, legal, "the scalar engine of %s has no tensor_scalar; use activation", legal->prog->arch->chip);
    LEGAL_FAIL_IF(legal->version == 3 && !ok, legal,
                  "op0 %s%s%s: the scalar engine of %s has multiply, add, and multiply then add; use the vector engine",
                  vtrn_alus[op0].nki_name, op1 ? ", op1 " : "", op1 ? vtrn_alus[op1].nki_name : "", legal->prog->arch->chip);
    return VTRN_OK;
}

static enum vtrn_status check_bits(struct legal *legal, int op0, int op1)
{
    LEGAL_FAIL_IF(op1 && vtrn_alus[op0].cls != vtrn_alus[op1].cls, legal,
                  "op0 %s and op1 %s: bitwise and arithmetic operators cannot be mixed in one instruction", vtrn_alus[op0].nki_name,
                  vtrn_alus[op1].nki_name);
    if (vtrn_alus[op0].cls != VTRN_ALU_BITS) return VTRN_OK;
    LEGAL_FAIL_IF(legal->inst->engine != VTRN_ENGINE_VECTOR, legal, "op0 %s: bitwise operators run on the vector engine, not on %s",
                  vtrn_alus[op0].nki_name, vtrn_engine_name(legal->inst->engine));
    return legal_bits_dtypes(legal);
}

enum vtrn_status legal_tensor_scalar(struct legal *legal)
{
    const struct legal_operand *dst = LEGAL_OPERAND(legal, tensor_scalar, dst);
    const struct legal_operand *data = LEGAL_OPERAND(legal, tensor_scalar, data);
    int op0 = legal_alu(legal, LEGAL_INDEX(tensor_scalar, op0)), op1 = legal_alu(legal, LEGAL_INDEX(tensor_scalar, op1));

    VTRN_TRY(legal_same_shape(legal, data, dst));
    VTRN_TRY(legal_operator(legal, LEGAL_INDEX(tensor_scalar, op0), LEGAL_INDEX(tensor_scalar, operand0)));
    VTRN_TRY(legal_operator(legal, LEGAL_INDEX(tensor_scalar, op1), LEGAL_INDEX(tensor_scalar, operand1)));
    VTRN_TRY(legal_scalar(legal, LEGAL_INDEX(tensor_scalar, operand0), data));
    VTRN_TRY(legal_scalar(legal, LEGAL_INDEX(tensor_scalar, operand1), data));
    VTRN_TRY(check_bits(legal, op0, op1));
    return legal->inst->engine == VTRN_ENGINE_SCALAR ? check_scalar_engine(legal, op0, op1) : VTRN_OK;
}

enum vtrn_status legal_scalar_tensor_tensor(struct legal *legal)
{
    const struct legal_operand *dst = LEGAL_OPERAND(legal, scalar_tensor_tensor, dst);
    const struct legal_operand *data = LEGAL_OPERAND(legal, scalar_tensor_tensor, data);
    const struct legal_operand *operand1 = LEGAL_OPERAND(legal, scalar_tensor_tensor, operand1);

    VTRN_TRY(legal_same_shape(legal, data, dst));
    VTRN_TRY(legal_same_shape(legal, operand1, dst));
    VTRN_TRY(legal_operator(legal, LEGAL_INDEX(scalar_tensor_tensor, op0), LEGAL_INDEX(scalar_tensor_tensor, operand0)));
    VTRN_TRY(legal_scalar(legal, LEGAL_INDEX(scalar_tensor_tensor, operand0), data));
    VTRN_TRY(legal_binary(legal, LEGAL_INDEX(scalar_tensor_tensor, op1)));
    return legal_not_both_psum(legal, data, operand1);
}

enum vtrn_status legal_reciprocal(struct legal *legal)
{
    return legal_same_shape(legal, LEGAL_OPERAND(legal, reciprocal, data), LEGAL_OPERAND(legal, reciprocal, dst));
}

enum vtrn_status legal_dropout(struct legal *legal)
{
    const struct legal_operand *dst = LEGAL_OPERAND(legal, dropout, dst);
    const struct legal_operand *data = LEGAL_OPERAND(legal, dropout, data);
    const struct legal_operand *vector = LEGAL_OPERAND(legal, dropout, prob);
    const struct vtrn_value *prob = LEGAL_ARG(legal, dropout, prob);

    VTRN_TRY(legal_same_shape(legal, data, dst));
    VTRN_TRY(legal_same_dtype(legal, data, dst));
    VTRN_TRY(legal_scalar(legal, LEGAL_INDEX(dropout, prob), data));
    if (vector && VTRN_DTS_INTS >> data->dtype & 1) VTRN_TRY(legal_dtype_in(legal, vector, VTRN_DTBIT(F32)));
    if (vector) return legal_dtype_in(legal, vector, VTRN_DTS_FLOATS);
    LEGAL_FAIL_IF(!(prob->num >= 0 && prob->num <= 1), legal, "prob %g is outside 0..1", prob->num);
    return VTRN_OK;
}

/* ---------------------------------------------------------------- selection */
static enum vtrn_status check_bound(struct legal *legal, const struct legal_operand *bound, const struct legal_operand *with)
{
    LEGAL_FAIL_IF(bound->elems != 1, legal, "%s has %lld elements per partition; it must have one", bound->name,
                  (long long)bound->elems);
    VTRN_TRY(legal_dtype_in(legal, bound, VTRN_DTBIT(F32)));
    return legal_same_parts(legal, bound, with);
}

static enum vtrn_status check_comparison(struct legal *legal, size_t index)
{
    LEGAL_FAIL_IF(legal->inst->arg[index].i == VTRN_CMP_NOT_EQUAL, legal,
                  "%s: not_equal; range_select has equal, less, less_equal, greater, greater_equal",
                  legal->info->operand[index].name);
    return VTRN_OK;
}

static const unsigned select_commands =
    1u << VTRN_REDUCE_CMD_IDLE | 1u << VTRN_REDUCE_CMD_RESET | 1u << VTRN_REDUCE_CMD_REDUCE | 1u << VTRN_REDUCE_CMD_RESET_REDUCE;

enum vtrn_status legal_range_select(struct legal *legal)
{
    const struct legal_operand *dst = LEGAL_OPERAND(legal, range_select, dst);
    const struct legal_operand *on_true = LEGAL_OPERAND(legal, range_select, on_true_tile);
    const struct vtrn_value *start = LEGAL_ARG(legal, range_select, range_start);
    double on_false = LEGAL_ARG(legal, range_select, on_false_value)->num;

    VTRN_TRY(legal_same_shape(legal, on_true, dst));
    VTRN_TRY(legal_dtype_in(legal, on_true, VTRN_DTS_FLOATS));
    VTRN_TRY(check_bound(legal, LEGAL_OPERAND(legal, range_select, bound0), on_true));
    VTRN_TRY(check_bound(legal, LEGAL_OPERAND(legal, range_select, bound1), on_true));
    VTRN_TRY(check_comparison(legal, LEGAL_INDEX(range_select, comp_op0)));
    VTRN_TRY(check_comparison(legal, LEGAL_INDEX(range_select, comp_op1)));
    VTRN_TRY(legal_scalar(legal, LEGAL_INDEX(range_select, range_start), on_true));
    LEGAL_FAIL_IF(start->kind == VTRN_V_NUM && !(start->num >= -16777216.0 && start->num + (double)on_true->elems <= 16777216.0),
                  legal, "range_start %g: the largest index exceeds 2^24, beyond which fp32 misses integers", start->num);
    LEGAL_FAIL_IF(!((float)on_false == (float)FP32_MIN), legal, "on_false_value %g: the hardware has only FP32_MIN (-3.4028235e38)",
                  on_false);
    VTRN_TRY(legal_reduce_op(legal, LEGAL_INDEX(range_select, reduce_op), LEGAL_ALUBIT(MAXIMUM)));
    VTRN_TRY(legal_reduce_cmd(legal, LEGAL_INDEX(range_select, reduce_cmd), select_commands));
    return legal_reduce_res(legal, LEGAL_INDEX(range_select, reduce_res), on_true);
}

enum vtrn_status legal_select_reduce(struct legal *legal)
{
    const uint32_t predicates = VTRN_DTBIT(I8) | VTRN_DTBIT(U8) | VTRN_DTBIT(I16) | VTRN_DTBIT(U16) | VTRN_DTBIT(BOOL);
    const uint32_t not_taken = VTRN_DTBIT(TF32) | VTRN_DTBIT(I32) | VTRN_DTBIT(U32);
    const struct legal_operand *dst = LEGAL_OPERAND(legal, select_reduce, dst);
    const struct legal_operand *predicate = LEGAL_OPERAND(legal, select_reduce, predicate);
    const struct legal_operand *on_true = LEGAL_OPERAND(legal, select_reduce, on_true);

    VTRN_TRY(legal_same_shape(legal, on_true, dst));
    VTRN_TRY(legal_same_shape(legal, predicate, dst));
    VTRN_TRY(legal_dtype_in(legal, predicate, predicates));
    VTRN_TRY(legal_dtype_in(legal, on_true, VTRN_DTS_PLAIN & ~not_taken));
    VTRN_TRY(legal_scalar(legal, LEGAL_INDEX(select_reduce, on_false), on_true));
    VTRN_TRY(legal_not_both_psum(legal, on_true, predicate));
    VTRN_TRY(legal_reduce_op(legal, LEGAL_INDEX(select_reduce, reduce_op), LEGAL_ALUBIT(MAXIMUM)));
    VTRN_TRY(legal_reduce_cmd(legal, LEGAL_INDEX(select_reduce, reduce_cmd), select_commands));
    return legal_reduce_res(legal, LEGAL_INDEX(select_reduce, reduce_res), on_true);
}

/* ---------------------------------------------------------------- nc_stream_shuffle */
/* Each partition that the mask names must be a partition of src: src may have fewer than dst (kernels broadcast one
 * partition to 32 with a mask of zeros). */
static enum vtrn_status check_mask(struct legal *legal, const struct vtrn_value *mask, const struct legal_operand *src,
                                   const struct legal_operand *dst)
{
    for (int64_t p = 0; p < dst->parts; p++) {
        int64_t from = mask->ints[p % SHUFFLE_LANES];

        if (from == SHUFFLE_KEEP) continue;
        from += p / SHUFFLE_LANES * SHUFFLE_LANES;
        LEGAL_FAIL_IF(from >= src->parts, legal, "shuffle_mask[%lld]: partition %lld of src, which has %lld",
                      (long long)(p % SHUFFLE_LANES), (long long)from, (long long)src->parts);
    }
    return VTRN_OK;
}

enum vtrn_status legal_nc_stream_shuffle(struct legal *legal)
{
    const struct legal_operand *dst = LEGAL_OPERAND(legal, nc_stream_shuffle, dst);
    const struct legal_operand *src = LEGAL_OPERAND(legal, nc_stream_shuffle, src);
    const struct vtrn_value *mask = LEGAL_ARG(legal, nc_stream_shuffle, shuffle_mask);

    VTRN_TRY(legal_same_dtype(legal, src, dst));
    VTRN_TRY(legal_same_elems(legal, src, dst));
    LEGAL_FAIL_IF(mask->count != SHUFFLE_LANES, legal, "shuffle_mask has %u entries, it must have %d", mask->count, SHUFFLE_LANES);
    for (int i = 0; i < SHUFFLE_LANES; i++)
        LEGAL_FAIL_IF((mask->ints[i] < 0 || mask->ints[i] >= SHUFFLE_LANES) && mask->ints[i] != SHUFFLE_KEEP, legal,
                      "shuffle_mask[%d] is %lld; it must be 0..31, or 255 to keep dst", i, (long long)mask->ints[i]);
    return check_mask(legal, mask, src, dst);
}
