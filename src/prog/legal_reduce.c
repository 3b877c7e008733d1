/* Legality of the vector engine's reductions, scans, statistics and searches over the free dimensions, and of the
 * random-number instructions.
 * Source: nki.isa reference (tensor_reduce ... nc_match_replace8, rng ... rand2). */
#include "prog/legal_int.h"

enum {
    SEARCH_SLOTS = 8,
    SEARCH_MAX = 16384,
    SEARCH_DIMS = 3,
    BN_STATS = 6,
    BN_MEAN_VAR = 2,
    BN_TRIPLE = 3,
    GPSIMD_STATE = 6,
    VECTOR_STATE = 24
};

static const unsigned vector_commands =
    1u << VTRN_REDUCE_CMD_REDUCE | 1u << VTRN_REDUCE_CMD_RESET_REDUCE | 1u << VTRN_REDUCE_CMD_LOAD_REDUCE;

/* ---------------------------------------------------------------- tensor_reduce */
/* The axes must be the last ones of data, in order. *kept_out: elements per partition that remain. */
static enum vtrn_status check_axes(struct legal *legal, const struct vtrn_value *axis, const struct vtrn_ap *data, int64_t *kept_out)
{
    int first = data->ndim - axis->count;
    int64_t kept = 1;

    LEGAL_FAIL_IF(axis->count == 0, legal, "axis names no dimension");
    for (int i = 0; i < axis->count; i++) {
        int64_t a = axis->ints[i] < 0 ? axis->ints[i] + data->ndim : axis->ints[i];

        LEGAL_FAIL_IF(a < 0 || a >= data->ndim, legal, "axis %lld is outside data's %d dimensions", (long long)axis->ints[i],
                      data->ndim);
        LEGAL_FAIL_IF(a == 0, legal,
                      "axis 0 is the partition dimension; use nc_transpose, a matmul with ones, or "
                      "tensor_partition_reduce");
        LEGAL_FAIL_IF(a != first + i, legal, "axis %lld: the axes must be the last %u of data's %d dimensions in order",
                      (long long)axis->ints[i], axis->count, data->ndim);
    }
    for (int d = 1; d < first; d++) kept *= data->dim[d].count;
    *kept_out = kept;
    return VTRN_OK;
}

enum vtrn_status legal_tensor_reduce(struct legal *legal)
{
    const struct legal_operand *dst = LEGAL_OPERAND(legal, tensor_reduce, dst);
    const struct legal_operand *data = LEGAL_OPERAND(legal, tensor_reduce, data);
    int op = legal_alu(legal, LEGAL_INDEX(tensor_reduce, op));
    int64_t kept = 0;

    VTRN_TRY(legal_same_parts(legal, data, dst));
    VTRN_TRY(check_axes(legal, LEGAL_ARG(legal, tensor_reduce, axis), data->ap, &kept));
    VTRN_TRY(legal_elems_are(legal, dst, kept, "data without the reduced axes"));
    if (vtrn_alus[op].cls != VTRN_ALU_BITS) return VTRN_OK;
    LEGAL_FAIL_IF(legal_flag(legal, LEGAL_INDEX(tensor_reduce, negate)), legal,
                  "negate: %s is bitwise; only arithmetic results are negated", vtrn_alus[op].nki_name);
    return legal_bits_dtypes(legal);
}

/* ---------------------------------------------------------------- with an accumulator */
/* load_reduce starts from the initial value; the other commands take none. */
static enum vtrn_status check_initial(struct legal *legal, size_t command, size_t initial, const struct legal_operand *with)
{
    const struct vtrn_value *value = &legal->inst->arg[initial];
    bool loads = legal->inst->arg[command].i == VTRN_REDUCE_CMD_LOAD_REDUCE;

    LEGAL_FAIL_IF(loads && value->kind == VTRN_V_NONE, legal, "%s is missing: %s load_reduce starts from it",
                  legal->info->operand[initial].name, legal->info->operand[command].name);
    LEGAL_FAIL_IF(!loads && value->kind != VTRN_V_NONE, legal, "%s is for %s load_reduce; leave it out",
                  legal->info->operand[initial].name, legal->info->operand[command].name);
    return legal_scalar(legal, initial, with);
}

enum vtrn_status legal_tensor_scalar_reduce(struct legal *legal)
{
    const struct legal_operand *dst = LEGAL_OPERAND(legal, tensor_scalar_reduce, dst);
    const struct legal_operand *data = LEGAL_OPERAND(legal, tensor_scalar_reduce, data);

    VTRN_TRY(legal_same_shape(legal, data, dst));
    VTRN_TRY(legal_operator(legal, LEGAL_INDEX(tensor_scalar_reduce, op0), LEGAL_INDEX(tensor_scalar_reduce, operand0)));
    VTRN_TRY(legal_scalar(legal, LEGAL_INDEX(tensor_scalar_reduce, operand0), data));
    VTRN_TRY(legal_reduce_op(legal, LEGAL_INDEX(tensor_scalar_reduce, reduce_op),
                             LEGAL_ALUBIT(ADD) | LEGAL_ALUBIT(MULTIPLY) | LEGAL_ALUBIT(MAXIMUM) | LEGAL_ALUBIT(MINIMUM)));
    VTRN_TRY(legal_reduce_cmd(legal, LEGAL_INDEX(tensor_scalar_reduce, reduce_cmd), vector_commands));
    VTRN_TRY(
        check_initial(legal, LEGAL_INDEX(tensor_scalar_reduce, reduce_cmd), LEGAL_INDEX(tensor_scalar_reduce, reduce_init), data));
    return legal_reduce_res(legal, LEGAL_INDEX(tensor_scalar_reduce, reduce_res), data);
}

enum vtrn_status legal_tensor_scalar_cumulative(struct legal *legal)
{
    const uint32_t dtypes = VTRN_DTS_PLAIN & ~(VTRN_DTBIT(I32) | VTRN_DTBIT(U32));
    const struct legal_operand *dst = LEGAL_OPERAND(legal, tensor_scalar_cumulative, dst);
    const struct legal_operand *src = LEGAL_OPERAND(legal, tensor_scalar_cumulative, src);

    VTRN_TRY(legal_same_shape(legal, src, dst));
    VTRN_TRY(legal_dtype_in(legal, src, dtypes));
    VTRN_TRY(legal_dtype_in(legal, dst, dtypes));
    VTRN_TRY(legal_operator(legal, LEGAL_INDEX(tensor_scalar_cumulative, op0), LEGAL_INDEX(tensor_scalar_cumulative, imm0)));
    VTRN_TRY(legal_reduce_op(legal, LEGAL_INDEX(tensor_scalar_cumulative, op1),
                             LEGAL_ALUBIT(ADD) | LEGAL_ALUBIT(SUBTRACT) | LEGAL_ALUBIT(MULTIPLY) | LEGAL_ALUBIT(MAXIMUM) |
                                 LEGAL_ALUBIT(MINIMUM)));
    VTRN_TRY(legal_scalar(legal, LEGAL_INDEX(tensor_scalar_cumulative, imm0), src));
    VTRN_TRY(legal_reduce_cmd(legal, LEGAL_INDEX(tensor_scalar_cumulative, reduce_cmd), vector_commands));
    return check_initial(legal, LEGAL_INDEX(tensor_scalar_cumulative, reduce_cmd), LEGAL_INDEX(tensor_scalar_cumulative, imm1), src);
}

enum vtrn_status legal_tensor_tensor_scan(struct legal *legal)
{
    const struct legal_operand *dst = LEGAL_OPERAND(legal, tensor_tensor_scan, dst);
    const struct legal_operand *data0 = LEGAL_OPERAND(legal, tensor_tensor_scan, data0);
    const struct legal_operand *data1 = LEGAL_OPERAND(legal, tensor_tensor_scan, data1);

    VTRN_TRY(legal_same_shape(legal, data0, dst));
    VTRN_TRY(legal_same_shape(legal, data1, dst));
    VTRN_TRY(legal_binary(legal, LEGAL_INDEX(tensor_tensor_scan, op0)));
    VTRN_TRY(legal_binary(legal, LEGAL_INDEX(tensor_tensor_scan, op1)));
    VTRN_TRY(legal_scalar(legal, LEGAL_INDEX(tensor_tensor_scan, initial), data0));
    return legal_not_both_psum(legal, data0, data1);
}

/* ---------------------------------------------------------------- statistics */
enum vtrn_status legal_bn_stats(struct legal *legal)
{
    const struct legal_operand *dst = LEGAL_OPERAND(legal, bn_stats, dst);
    const struct legal_operand *data = LEGAL_OPERAND(legal, bn_stats, data);
    int64_t limit = legal->prog->arch->bn_stats_max;

    VTRN_TRY(legal_same_parts(legal, data, dst));
    LEGAL_FAIL_IF(data->elems > limit, legal, "data has %lld elements per partition > %lld (bn_stats); tile it and join with bn_aggr",
                  (long long)data->elems, (long long)limit);
    return legal_elems_are(legal, dst, BN_STATS, "count, mean and M2 of even and odd elements");
}

enum vtrn_status legal_bn_aggr(struct legal *legal)
{
    const struct legal_operand *dst = LEGAL_OPERAND(legal, bn_aggr, dst);
    const struct legal_operand *data = LEGAL_OPERAND(legal, bn_aggr, data);

    VTRN_TRY(legal_same_parts(legal, data, dst));
    LEGAL_FAIL_IF(data->elems % BN_TRIPLE != 0, legal,
                  "data has %lld elements per partition; it must hold (count, mean, M2) triples", (long long)data->elems);
    return legal_elems_are(legal, dst, BN_MEAN_VAR, "mean and variance");
}

/* ---------------------------------------------------------------- searches for eight values */
static enum vtrn_status check_searched(struct legal *legal, const struct legal_operand *data)
{
    LEGAL_FAIL_IF(data->elems < SEARCH_SLOTS || data->elems > SEARCH_MAX, legal,
                  "%s has %lld elements per partition; %d..%d are possible", data->name, (long long)data->elems, SEARCH_SLOTS,
                  SEARCH_MAX);
    LEGAL_FAIL_IF(data->ap->ndim > SEARCH_DIMS && legal_merged_dims(data->ap) > SEARCH_DIMS, legal,
                  "%s has %d dimensions that are not contiguous; %d are possible", data->name, legal_merged_dims(data->ap),
                  SEARCH_DIMS);
    return VTRN_OK;
}

enum vtrn_status legal_max8(struct legal *legal)
{
    const struct legal_operand *dst = LEGAL_OPERAND(legal, max8, dst);
    const struct legal_operand *src = LEGAL_OPERAND(legal, max8, src);

    VTRN_TRY(legal_same_parts(legal, src, dst));
    VTRN_TRY(check_searched(legal, src));
    return legal_elems_are(legal, dst, SEARCH_SLOTS, "the eight largest");
}

enum vtrn_status legal_nc_find_index8(struct legal *legal)
{
    const struct legal_operand *dst = LEGAL_OPERAND(legal, nc_find_index8, dst);
    const struct legal_operand *data = LEGAL_OPERAND(legal, nc_find_index8, data);
    const struct legal_operand *vals = LEGAL_OPERAND(legal, nc_find_index8, vals);

    VTRN_TRY(legal_same_parts(legal, data, dst));
    VTRN_TRY(legal_same_parts(legal, vals, data));
    VTRN_TRY(check_searched(legal, data));
    VTRN_TRY(legal_elems_are(legal, vals, SEARCH_SLOTS, "eight values"));
    return legal_elems_are(legal, dst, SEARCH_SLOTS, "an index for each value");
}

enum vtrn_status legal_nc_match_replace8(struct legal *legal)
{
    const struct legal_operand *dst = LEGAL_OPERAND(legal, nc_match_replace8, dst);
    const struct legal_operand *data = LEGAL_OPERAND(legal, nc_match_replace8, data);
    const struct legal_operand *vals = LEGAL_OPERAND(legal, nc_match_replace8, vals);
    const struct legal_operand *index = LEGAL_OPERAND(legal, nc_match_replace8, dst_idx);

    VTRN_TRY(legal_same_shape(legal, data, dst));
    VTRN_TRY(legal_same_parts(legal, vals, data));
    VTRN_TRY(check_searched(legal, data));
    VTRN_TRY(legal_elems_are(legal, vals, SEARCH_SLOTS, "eight values"));
    VTRN_TRY(legal_same_parts(legal, index, data));
    return legal_elems_are(legal, index, SEARCH_SLOTS, "an index for each value");
}

/* ---------------------------------------------------------------- random numbers */
enum vtrn_status legal_rng(struct legal *legal)
{
    LEGAL_FAIL_IF(legal->inst->engine == VTRN_ENGINE_GPSIMD && legal->version < 3, legal,
                  "engine gpsimd: random numbers of GpSimd need NeuronCore v3 (trn2); use the vector engine");
    return VTRN_OK;
}

enum vtrn_status legal_set_rng_seed(struct legal *legal)
{
    const struct legal_operand *seeds = LEGAL_OPERAND(legal, set_rng_seed, src_seeds);

    LEGAL_FAIL_IF(seeds->parts != 1 || seeds->elems != 1, legal, "src_seeds is [%lld, %lld]; it must be [1, 1]",
                  (long long)seeds->parts, (long long)seeds->elems);
    return legal_dtype_in(legal, seeds, VTRN_DTS_I32SET);
}

/* 6 words of XORWOW state a lane on GpSimd; four such states on v4's vector engine. */
static enum vtrn_status check_state(struct legal *legal, const struct legal_operand *state)
{
    bool vector = legal->inst->engine == VTRN_ENGINE_VECTOR;

    LEGAL_FAIL_IF(vector && legal->version < 4, legal,
                  "engine vector: its generator has this state on NeuronCore v4 (trn3); use gpsimd");
    return legal_elems_are(legal, state, vector ? VECTOR_STATE : GPSIMD_STATE, vector ? "vector engine state" : "GpSimd state");
}

enum vtrn_status legal_rand_set_state(struct legal *legal)
{
    const struct legal_operand *seeds = LEGAL_OPERAND(legal, rand_set_state, src_seeds);

    LEGAL_FAIL_IF(seeds->space != VTRN_SBUF, legal, "src_seeds is in %s, it must be in sbuf", vtrn_space_name(seeds->space));
    return check_state(legal, seeds);
}

enum vtrn_status legal_rand_get_state(struct legal *legal) { return check_state(legal, LEGAL_OPERAND(legal, rand_get_state, dst)); }

enum vtrn_status legal_rand2(struct legal *legal)
{
    const struct legal_operand *dst = LEGAL_OPERAND(legal, rand2, dst);
    const struct vtrn_value *min = LEGAL_ARG(legal, rand2, min), *max = LEGAL_ARG(legal, rand2, max);

    VTRN_TRY(legal_dtype_in(legal, dst, VTRN_DTS_PLAIN & ~(VTRN_DTBIT(F8E4M3FN) | VTRN_DTBIT(F8E8M0) | VTRN_DTBIT(BOOL))));
    VTRN_TRY(legal_scalar(legal, LEGAL_INDEX(rand2, min), dst));
    VTRN_TRY(legal_scalar(legal, LEGAL_INDEX(rand2, max), dst));
    LEGAL_FAIL_IF(min->kind == VTRN_V_NUM && max->kind == VTRN_V_NUM && !(min->num < max->num), legal, "min %g is not below max %g",
                  min->num, max->num);
    return VTRN_OK;
}
