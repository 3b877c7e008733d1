/* Legality of the instructions that generate index patterns, gather on chip, reduce over partitions or pack blocks:
 * GpSimd's own, and quantize_mx of the vector engine.
 * Sources: nki.isa reference; GpSimd has 8 processors of 16 partitions each (NeuronCore-v2 architecture guide). */
#include "prog/legal_int.h"

enum { CORE_PARTS = 16, PATTERN_DIMS = 4, GATHER_INDICES_MAX = 4096, TOPK_MIN = 8, TOPK_K_MAX = 32767, MX_ROWS = 32, MX_PACK = 4 };

/* ---------------------------------------------------------------- affine patterns */
static enum vtrn_status check_pattern(struct legal *legal, const struct vtrn_value *pattern, const struct legal_operand *dst)
{
    int64_t count = 1;

    LEGAL_FAIL_IF(pattern->count % 2 != 0 || pattern->count == 0 || pattern->count > 2 * PATTERN_DIMS, legal,
                  "pattern has %u numbers; it must be 1 to %d pairs [step, num]", pattern->count, PATTERN_DIMS);
    for (int i = 0; i < pattern->count; i += 2) {
        int64_t step = pattern->ints[i], num = pattern->ints[i + 1];

        LEGAL_FAIL_IF(num < 1 || num > UINT16_MAX, legal, "pattern[%d]: num %lld is outside 1..%d", i / 2, (long long)num,
                      UINT16_MAX);
        LEGAL_FAIL_IF(step < INT32_MIN || step > INT32_MAX, legal, "pattern[%d]: step %lld does not fit in int32", i / 2,
                      (long long)step);
        count *= num;
        if (count > INT32_MAX) break;
    }
    LEGAL_FAIL_IF(count != dst->elems, legal, "pattern generates %lld elements, dst has %lld per partition; they must be equal",
                  (long long)count, (long long)dst->elems);
    return VTRN_OK;
}

enum vtrn_status legal_iota(struct legal *legal)
{
    return check_pattern(legal, LEGAL_ARG(legal, iota, pattern), LEGAL_OPERAND(legal, iota, dst));
}

enum vtrn_status legal_affine_select(struct legal *legal)
{
    const struct legal_operand *dst = LEGAL_OPERAND(legal, affine_select, dst);

    VTRN_TRY(legal_same_shape(legal, LEGAL_OPERAND(legal, affine_select, on_true_tile), dst));
    return check_pattern(legal, LEGAL_ARG(legal, affine_select, pattern), dst);
}

/* ---------------------------------------------------------------- reductions and searches */
enum vtrn_status legal_tensor_partition_reduce(struct legal *legal)
{
    const struct legal_operand *dst = LEGAL_OPERAND(legal, tensor_partition_reduce, dst);
    int op = legal_alu(legal, LEGAL_INDEX(tensor_partition_reduce, op));

    LEGAL_FAIL_IF(dst->parts != 1, legal, "dst has %lld partitions; a reduction over the partitions gives one",
                  (long long)dst->parts);
    if (vtrn_alus[op].cls == VTRN_ALU_BITS) VTRN_TRY(legal_bits_dtypes(legal));
    return legal_same_elems(legal, LEGAL_OPERAND(legal, tensor_partition_reduce, data), dst);
}

static enum vtrn_status check_core_parts(struct legal *legal, const struct legal_operand *operand)
{
    LEGAL_FAIL_IF(operand->parts % CORE_PARTS != 0, legal, "%s has %lld partitions; a multiple of %d is needed (GpSimd processors)",
                  operand->name, (long long)operand->parts, CORE_PARTS);
    return VTRN_OK;
}

enum vtrn_status legal_topk(struct legal *legal)
{
    const struct legal_operand *values = LEGAL_OPERAND(legal, topk, val_dst);
    const struct legal_operand *indices = LEGAL_OPERAND(legal, topk, idx_dst);
    const struct legal_operand *src = LEGAL_OPERAND(legal, topk, src);
    int64_t n = LEGAL_ARG(legal, topk, n)->i, k = values->elems;

    VTRN_TRY(legal_dtype_in(legal, src, VTRN_DTBIT(BF16)));
    VTRN_TRY(legal_dtype_in(legal, values, VTRN_DTBIT(BF16)));
    VTRN_TRY(legal_dtype_in(legal, indices, VTRN_DTBIT(U32)));
    VTRN_TRY(legal_same_shape(legal, indices, values));
    VTRN_TRY(legal_same_parts(legal, src, values));
    VTRN_TRY(check_core_parts(legal, src));
    LEGAL_FAIL_IF(n < TOPK_MIN, legal, "n %lld < %d", (long long)n, TOPK_MIN);
    LEGAL_FAIL_IF(k > n || k > TOPK_K_MAX, legal, "val_dst holds %lld values > %lld (%s)", (long long)k,
                  (long long)(k > n ? n : TOPK_K_MAX), k > n ? "n" : "the largest K");
    LEGAL_FAIL_IF(src->elems < (n + CORE_PARTS - 1) / CORE_PARTS, legal,
                  "src has %lld columns; %lld values in snakes of %d partitions need %lld", (long long)src->elems, (long long)n,
                  CORE_PARTS, (long long)((n + CORE_PARTS - 1) / CORE_PARTS));
    return VTRN_OK;
}

enum vtrn_status legal_nonzero_with_count(struct legal *legal)
{
    const struct legal_operand *dst = LEGAL_OPERAND(legal, nonzero_with_count, dst);
    const struct legal_operand *src = LEGAL_OPERAND(legal, nonzero_with_count, src);

    VTRN_TRY(legal_same_parts(legal, src, dst));
    VTRN_TRY(legal_dtype_in(legal, dst, VTRN_DTBIT(I32)));
    VTRN_TRY(legal_dtype_in(legal, src, VTRN_DTBIT(F32) | VTRN_DTBIT(I32)));
    return legal_elems_are(legal, dst, src->elems + 1, "those of src and the count");
}

enum vtrn_status legal_sequence_bounds(struct legal *legal)
{
    const uint32_t dtypes = VTRN_DTBIT(F32) | VTRN_DTBIT(I32);
    const struct legal_operand *dst = LEGAL_OPERAND(legal, sequence_bounds, dst);
    const struct legal_operand *ids = LEGAL_OPERAND(legal, sequence_bounds, segment_ids);

    LEGAL_FAIL_IF(ids->parts != 1, legal, "segment_ids has %lld partitions; it must have one", (long long)ids->parts);
    VTRN_TRY(legal_same_parts(legal, dst, ids));
    VTRN_TRY(legal_dtype_in(legal, ids, dtypes));
    VTRN_TRY(legal_dtype_in(legal, dst, dtypes));
    return legal_elems_are(legal, dst, 2 * ids->elems, "start and end of each element of segment_ids");
}

/* ---------------------------------------------------------------- gathers */
enum vtrn_status legal_local_gather(struct legal *legal)
{
    const struct legal_operand *dst = LEGAL_OPERAND(legal, local_gather, dst);
    const struct legal_operand *src = LEGAL_OPERAND(legal, local_gather, src_buffer);
    const struct legal_operand *index = LEGAL_OPERAND(legal, local_gather, index);
    const struct vtrn_value *valid = LEGAL_ARG(legal, local_gather, num_valid_indices);
    int64_t per_index = LEGAL_ARG(legal, local_gather, num_elem_per_idx)->i, held = CORE_PARTS * index->elems;
    int64_t count = valid->kind == VTRN_V_INT ? valid->i : held;

    VTRN_TRY(legal_same_dtype(legal, dst, src));
    VTRN_TRY(legal_same_parts(legal, index, src));
    VTRN_TRY(legal_same_parts(legal, dst, src));
    VTRN_TRY(check_core_parts(legal, src));
    LEGAL_FAIL_IF(per_index & (per_index - 1), legal, "num_elem_per_idx %lld; it must be 1, 2, 4, 8, 16 or 32", (long long)per_index);
    LEGAL_FAIL_IF(count > held, legal, "num_valid_indices %lld > %lld (indices that 16 partitions of index hold)", (long long)count,
                  (long long)held);
    LEGAL_FAIL_IF(count > GATHER_INDICES_MAX, legal, "%lld indices per GpSimd processor > %d; gather in parts", (long long)count,
                  GATHER_INDICES_MAX);
    LEGAL_FAIL_IF(dst->elems < count * per_index, legal,
                  "dst has %lld elements per partition; %lld indices of %lld elements need %lld", (long long)dst->elems,
                  (long long)count, (long long)per_index, (long long)(count * per_index));
    return VTRN_OK;
}

enum vtrn_status legal_nc_n_gather(struct legal *legal)
{
    const struct legal_operand *dst = LEGAL_OPERAND(legal, nc_n_gather, dst);
    const struct legal_operand *data = LEGAL_OPERAND(legal, nc_n_gather, data);
    const struct legal_operand *indices = LEGAL_OPERAND(legal, nc_n_gather, indices);

    VTRN_TRY(legal_same_dtype(legal, dst, data));
    VTRN_TRY(legal_same_parts(legal, data, dst));
    return legal_same_shape(legal, indices, dst);
}

/* ---------------------------------------------------------------- quantize_mx */
enum vtrn_status legal_quantize_mx(struct legal *legal)
{
    const struct legal_operand *dst = LEGAL_OPERAND(legal, quantize_mx, dst);
    const struct legal_operand *src = LEGAL_OPERAND(legal, quantize_mx, src);
    const struct legal_operand *scale = LEGAL_OPERAND(legal, quantize_mx, dst_scale);
    int64_t need;

    VTRN_TRY(legal_dtype_in(legal, dst, VTRN_DTBIT(F8E5M2X4) | VTRN_DTBIT(F8E4M3FNX4)));
    LEGAL_FAIL_IF(src->parts % MX_ROWS != 0, legal, "src has %lld partitions; MX needs a multiple of %d", (long long)src->parts,
                  MX_ROWS);
    LEGAL_FAIL_IF(src->elems % MX_PACK != 0, legal, "src has %lld elements per partition; MX packs them by %d",
                  (long long)src->elems, MX_PACK);
    VTRN_TRY(legal_same_parts(legal, dst, src));
    VTRN_TRY(legal_elems_are(legal, dst, src->elems / MX_PACK, "a quarter of src"));
    need = (src->parts - 1) / MX_ROWS * MX_ROWS + MX_ROWS / 8;
    LEGAL_FAIL_IF(scale->parts < need, legal, "dst_scale has %lld partitions; %lld partitions of src put their scales into %lld",
                  (long long)scale->parts, (long long)src->parts, (long long)need);
    return legal_same_elems(legal, scale, dst);
}
