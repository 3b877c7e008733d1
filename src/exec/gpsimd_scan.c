/* GpSimd: instructions that look through a whole row or column of data: partition reduction, top-k, nonzero positions and
 * segment bounds.
 *
 * GpSimd is eight processors with 16 partitions each: topk and nonzero_with_count follow that grouping. Patterns made
 * from positions are in gpsimd.c, gathers in gather.c. */
#include <math.h>

#include "exec/walk_int.h"

enum { GROUP = 16, BLOCK = 1024 };

/* ---- tensor_partition_reduce ---- */
static void combine_f32(const struct vtrn_kern *kern, enum vtrn_alu op, uint8_t dtype, void *acc, const void *row, size_t n)
{
    (void)dtype;
    kern->tt[op == VTRN_ALU_AVERAGE ? VTRN_ALU_ADD : op](acc, acc, row, n);
}

static void combine_raw(const struct vtrn_kern *kern, enum vtrn_alu op, uint8_t dtype, void *acc, const void *row, size_t n)
{
    if (vtrn_alus[op].cls == VTRN_ALU_BITS) kern->tt_bits[op][vtrn_dtypes[dtype].size_bytes / 2](acc, acc, row, n);
    else if (dtype == VTRN_DT_U32) kern->tt_u32[op](acc, acc, row, n);
    else kern->tt_i32[op](acc, acc, row, n);
}

/* Integers stay integers for BITS operators, and for 32-bit data where the operator has an integer form. */
static bool reduces_raw(const struct vtrn_kern *kern, enum vtrn_alu op, uint8_t data, uint8_t dst)
{
    if (vtrn_alus[op].cls == VTRN_ALU_BITS) return true;
    if (data != VTRN_DT_I32 && data != VTRN_DT_U32) return false;
    return exec_is_integer(dst) && (data == VTRN_DT_U32 ? kern->tt_u32[op] != NULL : kern->tt_i32[op] != NULL);
}

/* Does: dst[0, i] = op over the partitions p of data[p, i], p ascending; average divides the sum by their number.
 * Rounding: fp32, each step rounded, then to the dtype of dst. 32-bit integers into an integer dst compute in 32-bit
 *   integers (wrap around), and bitwise operators on the bits.
 * Faults: none of its own.
 * Differs: the order in which hardware adds is not documented. */
enum vtrn_status vtrn_exec_tensor_partition_reduce(struct vtrn_core *core, const struct vtrn_inst *inst)
{
    const struct vtrn_args_tensor_partition_reduce *arg = VTRN_ARGS(tensor_partition_reduce, inst);
    const struct vtrn_kern *kern = core->kern;
    enum vtrn_alu op = (enum vtrn_alu)arg->op.i;
    struct exec_view dst, data;
    VTRN_TRY(exec_resolve(core, &arg->data.ap, VTRN_READ, &data));
    VTRN_TRY(exec_resolve(core, &arg->dst.ap, VTRN_WRITE, &dst));
    VTRN_TRY(exec_stage_always(core, &dst, &data));
    bool raw = reduces_raw(kern, op, data.dtype, dst.dtype);
    union {
        float f32[BLOCK];
        uint32_t raw[BLOCK];
    } acc, row;
    uint32_t out[BLOCK];
    for (int64_t i = 0; i < data.elems; i += BLOCK) {
        int64_t n = data.elems - i < BLOCK ? data.elems - i : BLOCK;
        for (int64_t p = 0; p < data.parts; p++) {
            const void *from =
                raw ? exec_load_raw(&data, p, 1, i, n, row.raw) : (const void *)exec_load_f32(core, &data, p, 1, i, n, row.f32);
            if (p == 0) memcpy(&acc, from, (size_t)n * (raw ? data.elem_bytes : sizeof(float)));
            else (raw ? combine_raw : combine_f32)(kern, op, data.dtype, &acc, from, (size_t)n);
        }
        if (raw) {
            exec_convert_ints(dst.dtype, out, data.dtype, acc.raw, n);
            exec_store_raw(&dst, 0, 1, i, n, out);
        } else {
            if (op == VTRN_ALU_AVERAGE)
                for (int64_t k = 0; k < n; k++) acc.f32[k] /= (float)data.parts;
            exec_store_f32(core, &dst, 0, 1, i, n, acc.f32);
        }
    }
    return VTRN_OK;
}

/* ---- topk ---- */
/* One key per element, larger is better: the value as an unsigned integer that orders like it (NaN above all, -0 as +0),
 * then the smaller index. */
static uint64_t make_key(float value, uint32_t index)
{
    uint32_t bits;
    if (value == 0.0f) value = 0.0f; /* drops the sign of -0 */
    memcpy(&bits, &value, sizeof bits);
    bits = bits & UINT32_C(0x80000000) ? ~bits : bits | UINT32_C(0x80000000);
    if (isnan(value)) bits = UINT32_MAX;
    return (uint64_t)bits << 32 | (uint32_t)~index;
}

static uint32_t key_index(uint64_t key) { return ~(uint32_t)key; }

/* Restores the heap (smallest on top) below `at`. */
static void sift_down(uint64_t *heap, int64_t size, int64_t at)
{
    uint64_t key = heap[at];
    for (int64_t child = 2 * at + 1; child < size; child = 2 * at + 1) {
        if (child + 1 < size && heap[child + 1] < heap[child]) child++;
        if (key <= heap[child]) break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = key;
}

/* The k largest of n keys end in key[0..k), ascending. */
static void select_largest(uint64_t *key, int64_t n, int64_t k)
{
    for (int64_t at = k / 2 - 1; at >= 0; at--) sift_down(key, k, at);
    for (int64_t i = k; i < n; i++)
        if (key[i] > key[0]) {
            key[0] = key[i];
            sift_down(key, k, 0);
        }
    for (int64_t size = k; size > 1; size--) { /* smallest to the end: descending */
        uint64_t top = key[0];
        key[0] = key[size - 1];
        key[size - 1] = top;
        sift_down(key, size - 1, 0);
    }
    for (int64_t i = 0; i < k / 2; i++) {
        uint64_t low = key[i];
        key[i] = key[k - 1 - i];
        key[k - 1 - i] = low;
    }
}

struct topk {
    struct exec_view val, idx, src;
    int64_t n, k, columns;
    float *value; /* n values of a group in snake order */
    float *tile;  /* GROUP x columns */
    uint64_t *key;
};

static void topk_group(struct vtrn_core *core, const struct topk *topk, int64_t p0)
{
    const float *tile = exec_load_f32(core, &topk->src, p0, GROUP, 0, topk->columns, topk->tile);
    float out[BLOCK];
    uint32_t index[BLOCK];
    for (int64_t e = 0; e < topk->n; e++) {
        topk->value[e] = tile[e % GROUP * topk->columns + e / GROUP];
        topk->key[e] = make_key(topk->value[e], (uint32_t)e);
    }
    select_largest(topk->key, topk->n, topk->k);
    for (int64_t i = 0; i < topk->k; i += BLOCK) {
        int64_t n = topk->k - i < BLOCK ? topk->k - i : BLOCK;
        for (int64_t j = 0; j < n; j++) {
            index[j] = key_index(topk->key[i + j]);
            out[j] = topk->value[index[j]];
        }
        for (int64_t p = p0; p < p0 + GROUP; p++) {
            uint32_t converted[BLOCK];
            exec_store_f32(core, &topk->val, p, 1, i, n, out);
            exec_convert(core->kern, topk->idx.dtype, converted, VTRN_DT_U32, index, n);
            exec_store_raw(&topk->idx, p, 1, i, n, converted);
        }
    }
}

/* Does: in each group of 16 partitions takes element e of n from partition e % 16, column e / 16 of src, and writes the K
 *   largest (K = free elements of val_dst) in ascending order to val_dst and their e to idx_dst, the same in all 16
 *   partitions. Of equal values the smaller index counts as larger; NaN is above every number.
 * Rounding: values are copied through fp32, exact for the documented bf16.
 * Faults: VALUE when K is above n, src has fewer than ceil(n/16) columns or its partitions are no multiple of 16.
 * Differs: the documentation says both that partitions are independent and that 16 of them hold one list; read as one list
 *   a group. Which index wins among equal values is not documented. */
enum vtrn_status vtrn_exec_topk(struct vtrn_core *core, const struct vtrn_inst *inst)
{
    const struct vtrn_args_topk *arg = VTRN_ARGS(topk, inst);
    struct topk topk = { .n = arg->n.i };
    VTRN_TRY(exec_resolve(core, &arg->src.ap, VTRN_READ, &topk.src));
    VTRN_TRY(exec_resolve(core, &arg->val_dst.ap, VTRN_WRITE, &topk.val));
    VTRN_TRY(exec_resolve(core, &arg->idx_dst.ap, VTRN_WRITE, &topk.idx));
    topk.k = topk.val.elems;
    topk.columns = (topk.n + GROUP - 1) / GROUP;
    if (topk.k > topk.n || topk.columns > topk.src.elems || topk.src.parts % GROUP != 0)
        return exec_fault(core, VTRN_FAULT_VALUE,
                          "operand src: [%lld, %lld] does not hold n = %lld elements in groups of 16 "
                          "partitions, or they are fewer than the %lld asked for",
                          (long long)topk.src.parts, (long long)topk.src.elems, (long long)topk.n, (long long)topk.k);
    VTRN_TRY(exec_stage_always(core, &topk.val, &topk.src));
    VTRN_TRY(exec_stage_always(core, &topk.idx, &topk.src));
    topk.value = malloc((size_t)topk.n * sizeof *topk.value);
    topk.tile = malloc((size_t)(GROUP * topk.columns) * sizeof *topk.tile);
    topk.key = malloc((size_t)topk.n * sizeof *topk.key);
    bool ok = topk.value && topk.tile && topk.key;
    for (int64_t p = 0; ok && p < topk.src.parts; p += GROUP) topk_group(core, &topk, p);
    free(topk.value);
    free(topk.tile);
    free(topk.key);
    VTRN_FAIL_IF(!ok, &core->err, VTRN_NOMEM, "no memory for %lld keys", (long long)topk.n);
    return VTRN_OK;
}

/* ---- nonzero_with_count ---- */
struct int_writer { /* collects values of one row and stores them in blocks */
    const struct exec_view *dst;
    int64_t p, at;
    int n;
    int32_t value[BLOCK];
};

static void flush(struct int_writer *writer)
{
    exec_store_raw(writer->dst, writer->p, 1, writer->at, writer->n, writer->value);
    writer->at += writer->n;
    writer->n = 0;
}

static void put(struct int_writer *writer, int32_t value)
{
    writer->value[writer->n++] = value;
    if (writer->n == BLOCK) flush(writer);
}

/* Does: in partitions 0, 16, 32, ... of src: writes the positions of the elements that are not zero, each plus
 *   index_offset, then padding_val up to the elements of src, then their count. Other partitions of dst keep their value.
 * Rounding: none; index plus offset wraps around in 32 bits. NaN is not zero.
 * Faults: VALUE when dst does not have one element more than src.
 * Differs: none known. */
enum vtrn_status vtrn_exec_nonzero_with_count(struct vtrn_core *core, const struct vtrn_inst *inst)
{
    const struct vtrn_args_nonzero_with_count *arg = VTRN_ARGS(nonzero_with_count, inst);
    struct exec_view dst, src;
    uint32_t block[BLOCK];
    uint32_t offset = (uint32_t)exec_reg_value(core, &arg->index_offset);
    VTRN_TRY(exec_resolve(core, &arg->src.ap, VTRN_READ, &src));
    VTRN_TRY(exec_resolve(core, &arg->dst.ap, VTRN_READ | VTRN_WRITE, &dst));
    if (dst.elems != src.elems + 1 || dst.parts != src.parts)
        return exec_fault(core, VTRN_FAULT_VALUE, "operand dst: [%lld, %lld], needs [%lld, %lld]: one element more than src",
                          (long long)dst.parts, (long long)dst.elems, (long long)src.parts, (long long)src.elems + 1);
    VTRN_TRY(exec_stage_always(core, &dst, &src));
    /* Nonzero by the bits, but for the sign of -0. */
    uint32_t value_bits = src.dtype == VTRN_DT_F32 ? UINT32_C(0x7fffffff) : UINT32_MAX;
    for (int64_t p = 0; p < src.parts; p += GROUP) {
        struct int_writer writer = { .dst = &dst, .p = p };
        int32_t found = 0;
        for (int64_t i0 = 0; i0 < src.elems; i0 += BLOCK) {
            int64_t n = src.elems - i0 < BLOCK ? src.elems - i0 : BLOCK;
            const uint32_t *bits = exec_load_raw(&src, p, 1, i0, n, block);
            for (int64_t i = 0; i < n; i++) {
                if ((bits[i] & value_bits) == 0) continue;
                put(&writer, (int32_t)((uint32_t)(i0 + i) + offset));
                found++;
            }
        }
        for (int64_t i = found; i < src.elems; i++) put(&writer, (int32_t)arg->padding_val.i);
        put(&writer, found);
        flush(&writer);
    }
    return VTRN_OK;
}

/* ---- sequence_bounds ---- */
static void bounds_of_row(const uint32_t *id, uint32_t zero_mask, int64_t n, int32_t *start, int32_t *end)
{
    for (int64_t i = 0; i < n;) {
        int64_t to = i + 1;
        bool padding = (id[i] & zero_mask) == 0;
        while (to < n && (padding ? (id[to] & zero_mask) == 0 : id[to] == id[i])) to++;
        for (int64_t k = i; k < to; k++) {
            start[k] = padding ? (int32_t)n : (int32_t)i;
            end[k] = padding ? -1 : (int32_t)to;
        }
        i = to;
    }
}

static void store_ints(struct vtrn_core *core, const struct exec_view *dst, int64_t p, int64_t i0, int64_t n, const int32_t *value)
{
    uint32_t out[BLOCK];
    for (int64_t i = 0; i < n; i += BLOCK) {
        int64_t m = n - i < BLOCK ? n - i : BLOCK;
        if (dst->dtype == VTRN_DT_F32) exec_convert(core->kern, VTRN_DT_F32, out, VTRN_DT_I32, value + i, m);
        else memcpy(out, value + i, (size_t)m * sizeof *out);
        exec_store_raw(dst, p, 1, i0 + i, m, out);
    }
}

/* Does: for each element of segment_ids the start and the end (one past) of the run of equal ids that holds it: first all
 *   starts, then all ends. Elements with id 0 are padding: start n, end -1.
 * Rounding: none; positions are exact in fp32.
 * Faults: VALUE when dst does not have twice the elements of segment_ids.
 * Differs: none known. */
enum vtrn_status vtrn_exec_sequence_bounds(struct vtrn_core *core, const struct vtrn_inst *inst)
{
    const struct vtrn_args_sequence_bounds *arg = VTRN_ARGS(sequence_bounds, inst);
    struct exec_view dst, ids;
    VTRN_TRY(exec_resolve(core, &arg->segment_ids.ap, VTRN_READ, &ids));
    VTRN_TRY(exec_resolve(core, &arg->dst.ap, VTRN_WRITE, &dst));
    if (dst.elems != 2 * ids.elems || dst.parts != ids.parts)
        return exec_fault(core, VTRN_FAULT_VALUE, "operand dst: [%lld, %lld], needs [%lld, %lld]: start and end of each element",
                          (long long)dst.parts, (long long)dst.elems, (long long)ids.parts, 2 * (long long)ids.elems);
    VTRN_TRY(exec_stage_always(core, &dst, &ids));
    size_t n = (size_t)ids.elems;
    uint32_t *row = malloc(3 * n * sizeof *row);
    VTRN_FAIL_IF(!row, &core->err, VTRN_NOMEM, "no memory for the bounds of %zu elements", n);
    int32_t *start = (int32_t *)(void *)(row + n), *end = start + n;
    uint32_t zero_mask = ids.dtype == VTRN_DT_F32 ? UINT32_C(0x7fffffff) : UINT32_MAX; /* -0 is padding too */
    for (int64_t p = 0; p < ids.parts; p++) {
        bounds_of_row(exec_load_raw(&ids, p, 1, 0, ids.elems, row), zero_mask, ids.elems, start, end);
        store_ints(core, &dst, p, 0, ids.elems, start);
        store_ints(core, &dst, p, ids.elems, ids.elems, end);
    }
    free(row);
    return VTRN_OK;
}
