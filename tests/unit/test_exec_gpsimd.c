/* exec/gpsimd.c and gpsimd_scan.c against models that go element by element. */
#include <math.h>

#include "exec_rig.h"

static const uint8_t dtypes[] = { VTRN_DT_F32, VTRN_DT_BF16, VTRN_DT_F16, VTRN_DT_F8E4M3, VTRN_DT_I32,
                                  VTRN_DT_U32, VTRN_DT_I16,  VTRN_DT_U8,  VTRN_DT_I8,     VTRN_DT_U16 };
enum { DTYPES = sizeof dtypes };

static bool is_int(uint8_t dtype) { return vtrn_dtypes[dtype].cls != VTRN_CLASS_FLOAT; }

/* A random [step, count] list of `elems` elements. */
static int random_pattern(int64_t elems, int64_t *pairs, bool steep)
{
    int dims = 1;
    int64_t count[4] = { elems };
    while (dims < 4 && rig_below(2)) {
        int64_t factor = 2 + rig_below(3);
        if (count[dims - 1] % factor) break;
        count[dims - 1] /= factor;
        count[dims++] = factor;
    }
    for (int d = 0; d < dims; d++) {
        pairs[2 * d] = steep ? (int64_t)(int32_t)rig_random() : rig_below(21) - 10;
        pairs[2 * d + 1] = count[d];
    }
    return 2 * dims;
}

static int32_t pattern_value(const int64_t *pairs, int ints, int64_t offset, int64_t channel, int64_t p, int64_t i)
{
    uint32_t value = (uint32_t)(int32_t)offset + (uint32_t)p * (uint32_t)(int32_t)channel;
    for (int d = ints / 2 - 1; d >= 0; d--) {
        value += (uint32_t)(i % pairs[2 * d + 1]) * (uint32_t)(int32_t)pairs[2 * d];
        i /= pairs[2 * d + 1];
    }
    return (int32_t)value;
}

static int64_t saturate(uint8_t dtype, int64_t v)
{
    int64_t low = dtype == VTRN_DT_I8 ? -128 : dtype == VTRN_DT_I16 ? -32768 : 0;
    int64_t high = dtype == VTRN_DT_I8 ? 127 : dtype == VTRN_DT_I16 ? 32767 : dtype == VTRN_DT_U8 ? 255 : 65535;
    return v < low ? low : v > high ? high : v;
}

static void model_iota(uint8_t dtype, int32_t value, void *out)
{
    if (dtype == VTRN_DT_I32 || dtype == VTRN_DT_U32) {
        memcpy(out, &value, 4);
    } else if (is_int(dtype)) {
        int64_t v = saturate(dtype, value);
        memcpy(out, &v, vtrn_dtypes[dtype].size_bytes); /* little endian host, as the whole project */
    } else {
        float f = (float)value;
        vtrn_from_f32(dtype, f, out);
    }
}

static void iota_case(int k)
{
    struct rig *rig = rig_create("trn2", 1, 1);
    uint8_t dtype = dtypes[k % DTYPES], want[4];
    size_t bytes = vtrn_dtypes[dtype].size_bytes;
    int64_t parts = 1 + rig_below(k % 3 ? 6 : 128), elems = (1 + rig_below(40)) * (1 + rig_below(40)), pairs[8];
    bool steep = k % 7 == 0, by_register = k % 3 == 0;
    int ints = random_pattern(elems, pairs, steep);
    int64_t offset = steep ? (int32_t)rig_random() : rig_below(400) - 200, channel = rig_below(9) - 4;
    struct vtrn_ap dst = rig_random_ap(rig, 0, VTRN_SBUF, dtype, parts, elems);
    uint8_t *before = rig_fill(rig, 0, dst.tensor);
    struct vtrn_inst inst;
    vtrn_inst_init(&inst, VTRN_OP_iota);
    rig_set_ap(RIG_ARG(&inst, iota, dst), dst);
    rig_set_ints(&inst, RIG_ARG(&inst, iota, pattern), ints, pairs);
    rig_set_int(RIG_ARG(&inst, iota, channel_multiplier), channel);
    if (by_register) rig_set_reg(RIG_ARG(&inst, iota, offset), 3);
    else rig_set_int(RIG_ARG(&inst, iota, offset), offset);
    rig_append(rig, 0, &inst);
    vtrn_core_set_register(rig->core[0], 3, (int32_t)offset);
    rig_run_ok(rig, 0);
    uint8_t *after = rig_image(rig, 0, dst.tensor);
    for (int64_t p = 0; p < parts; p++)
        for (int64_t i = 0; i < elems; i++) {
            int64_t at = rig_at(rig, &dst, p, i) * (int64_t)bytes;
            model_iota(dtype, pattern_value(pairs, ints, offset, channel, p, i), want);
            assert_memory_equal(after + at, want, bytes);
            memcpy(before + at, want, bytes);
        }
    assert_memory_equal(before, after, (size_t)rig_elems(rig, dst.tensor) * bytes); /* and nothing else was written */
    free(before);
    free(after);
    rig_destroy(rig);
}

static void test_iota(void **state)
{
    (void)state;
    for (int k = 0; k < 60; k++) iota_case(k);
}

static bool holds(int cmp, int32_t a)
{
    return cmp == VTRN_CMP_EQUAL           ? a == 0
           : cmp == VTRN_CMP_NOT_EQUAL     ? a != 0
           : cmp == VTRN_CMP_GREATER       ? a > 0
           : cmp == VTRN_CMP_GREATER_EQUAL ? a >= 0
           : cmp == VTRN_CMP_LESS          ? a < 0
                                           : a <= 0;
}

static void select_case(int k)
{
    struct rig *rig = rig_create("trn2", 1, 1);
    uint8_t to = dtypes[k % DTYPES], from = k % 3 ? to : dtypes[rig_below(DTYPES)], want[4];
    size_t to_bytes = vtrn_dtypes[to].size_bytes, from_bytes = vtrn_dtypes[from].size_bytes;
    int64_t parts = 1 + rig_below(k % 4 ? 6 : 128), elems = (1 + rig_below(40)) * (1 + rig_below(40)), pairs[8];
    bool steep = k % 9 == 0, in_place = k % 4 == 0 && to == from;
    int ints = random_pattern(elems, pairs, steep), cmp = VTRN_CMP_EQUAL + k % 6;
    int64_t offset = steep ? (int32_t)rig_random() : rig_below(80) - 40, channel = rig_below(9) - 4;
    float on_false = k % 2 ? -INFINITY : -3.5f;
    struct vtrn_ap dst = rig_random_ap(rig, 0, VTRN_SBUF, to, parts, elems);
    struct vtrn_ap src = in_place ? dst : rig_random_ap(rig, 0, VTRN_SBUF, from, parts, elems);
    uint8_t *expect = rig_fill(rig, 0, dst.tensor), *source = rig_fill(rig, 0, src.tensor);
    if (in_place) memcpy(expect, source, (size_t)rig_elems(rig, dst.tensor) * to_bytes);
    struct vtrn_inst inst;
    vtrn_inst_init(&inst, VTRN_OP_affine_select);
    rig_set_ap(RIG_ARG(&inst, affine_select, dst), dst);
    rig_set_ap(RIG_ARG(&inst, affine_select, on_true_tile), src);
    rig_set_ints(&inst, RIG_ARG(&inst, affine_select, pattern), ints, pairs);
    rig_set_int(RIG_ARG(&inst, affine_select, channel_multiplier), channel);
    rig_set_int(RIG_ARG(&inst, affine_select, offset), offset);
    rig_set_int(RIG_ARG(&inst, affine_select, cmp_op), cmp);
    rig_set_num(RIG_ARG(&inst, affine_select, on_false_value), on_false);
    rig_append(rig, 0, &inst);
    rig_run_ok(rig, 0);
    uint8_t *after = rig_image(rig, 0, dst.tensor);
    for (int64_t p = 0; p < parts; p++)
        for (int64_t i = 0; i < elems; i++) {
            const uint8_t *element = source + rig_at(rig, &src, p, i) * (int64_t)from_bytes;
            if (!holds(cmp, pattern_value(pairs, ints, offset, channel, p, i))) vtrn_from_f32(to, on_false, want);
            else if (to == from) memcpy(want, element, to_bytes);
            else vtrn_from_f32(to, vtrn_to_f32(from, element), want);
            memcpy(expect + rig_at(rig, &dst, p, i) * (int64_t)to_bytes, want, to_bytes);
        }
    assert_memory_equal(expect, after, (size_t)rig_elems(rig, dst.tensor) * to_bytes);
    free(expect);
    free(source);
    free(after);
    rig_destroy(rig);
}

static void test_affine_select(void **state)
{
    (void)state;
    for (int k = 0; k < 120; k++) select_case(k);
}

/* on_true_tile is dst moved by some columns and partitions: as if it were read first. */
static void test_select_overlap(void **state)
{
    (void)state;
    for (int k = 0; k < 24; k++) {
        struct rig *rig = rig_create("trn2", 1, 1);
        uint32_t tile = rig_tensor2(rig, 0, VTRN_SBUF, VTRN_DT_F32, 40, 3000);
        int64_t cols = 1 + rig_below(2500), pairs[2] = { 1, cols }, row = k % 3, shift = 1 + rig_below(20);
        struct vtrn_ap dst = rig_slice(rig, tile, row, 30, k % 2 ? shift : 0, cols),
                       src = rig_slice(rig, tile, 2 - row, 30, k % 2 ? 0 : shift, cols);
        float *before = rig_fill(rig, 0, tile), *expect = rig_image(rig, 0, tile);
        struct vtrn_inst inst;
        vtrn_inst_init(&inst, VTRN_OP_affine_select);
        rig_set_ap(RIG_ARG(&inst, affine_select, dst), dst);
        rig_set_ap(RIG_ARG(&inst, affine_select, on_true_tile), src);
        rig_set_ints(&inst, RIG_ARG(&inst, affine_select, pattern), 2, pairs);
        rig_set_int(RIG_ARG(&inst, affine_select, channel_multiplier), -5);
        rig_set_int(RIG_ARG(&inst, affine_select, cmp_op), VTRN_CMP_GREATER);
        rig_set_num(RIG_ARG(&inst, affine_select, on_false_value), -1);
        rig_append(rig, 0, &inst);
        rig_run_ok(rig, 0);
        for (int64_t p = 0; p < 30; p++)
            for (int64_t i = 0; i < cols; i++)
                expect[rig_at(rig, &dst, p, i)] = i - 5 * p > 0 ? before[rig_at(rig, &src, p, i)] : -1;
        float *after = rig_image(rig, 0, tile);
        assert_memory_equal(expect, after, 40 * 3000 * 4);
        free(before);
        free(expect);
        free(after);
        rig_destroy(rig);
    }
}

/* ---- tensor_partition_reduce ---- */
/* The sum goes into the data's own last row, one column on. */
static void test_reduce_overlap(void **state)
{
    (void)state;
    struct rig *rig = rig_create("trn2", 1, 1);
    uint32_t tile = rig_tensor2(rig, 0, VTRN_SBUF, VTRN_DT_F32, 33, 3001);
    float *before = rig_fill(rig, 0, tile);
    struct vtrn_inst inst;
    vtrn_inst_init(&inst, VTRN_OP_tensor_partition_reduce);
    rig_set_ap(RIG_ARG(&inst, tensor_partition_reduce, dst), rig_slice(rig, tile, 32, 1, 1, 3000));
    rig_set_ap(RIG_ARG(&inst, tensor_partition_reduce, data), rig_slice(rig, tile, 0, 33, 0, 3000));
    rig_set_int(RIG_ARG(&inst, tensor_partition_reduce, op), VTRN_ALU_ADD);
    rig_append(rig, 0, &inst);
    rig_run_ok(rig, 0);
    float *after = rig_image(rig, 0, tile);
    for (int64_t i = 0; i < 3000; i++) {
        float sum = before[i];
        for (int64_t p = 1; p < 33; p++) sum += before[p * 3001 + i];
        assert_true(after[32 * 3001 + 1 + i] == sum);
    }
    free(before);
    free(after);
    rig_destroy(rig);
}

static void reduce_case(int op, uint8_t from, uint8_t to)
{
    struct rig *rig = rig_create("trn2", 1, 1);
    int64_t parts = 1 + rig_below(128), elems = 1 + rig_below(1500);
    size_t to_bytes = vtrn_dtypes[to].size_bytes, from_bytes = vtrn_dtypes[from].size_bytes;
    struct vtrn_ap src = rig_random_ap(rig, 0, VTRN_SBUF, from, parts, elems);
    struct vtrn_ap dst = rig_random_ap(rig, 0, VTRN_SBUF, to, 1, elems);
    uint8_t *source = rig_fill(rig, 0, src.tensor), *expect = rig_fill(rig, 0, dst.tensor);
    bool whole = (from == VTRN_DT_I32 || from == VTRN_DT_U32) && is_int(to) && op != VTRN_ALU_AVERAGE;
    struct vtrn_inst inst;
    vtrn_inst_init(&inst, VTRN_OP_tensor_partition_reduce);
    rig_set_ap(RIG_ARG(&inst, tensor_partition_reduce, dst), dst);
    rig_set_ap(RIG_ARG(&inst, tensor_partition_reduce, data), src);
    rig_set_int(RIG_ARG(&inst, tensor_partition_reduce, op), op);
    rig_append(rig, 0, &inst);
    rig_run_ok(rig, 0);
    for (int64_t i = 0; i < elems; i++) {
        float sum = 0;
        uint32_t bits = 0;
        for (int64_t p = 0; p < parts; p++) {
            const uint8_t *element = source + rig_at(rig, &src, p, i) * (int64_t)from_bytes;
            float value = vtrn_to_f32(from, element);
            uint32_t word = 0;
            memcpy(&word, element, from_bytes);
            if (p == 0) sum = value, bits = word;
            else if (op == VTRN_ALU_BITWISE_AND) bits &= word;
            else if (op == VTRN_ALU_BITWISE_OR) bits |= word;
            else if (whole && op == VTRN_ALU_ADD) bits += word;
            else if (whole)
                bits = from == VTRN_DT_U32 ? (word > bits ? word : bits)
                                           : (uint32_t)((int32_t)word > (int32_t)bits ? (int32_t)word : (int32_t)bits);
            else sum = op == VTRN_ALU_MAXIMUM ? fmaxf(sum, value) : sum + value;
        }
        uint8_t *want = expect + rig_at(rig, &dst, 0, i) * (int64_t)to_bytes;
        if (op == VTRN_ALU_AVERAGE) sum /= (float)parts;
        if (whole || vtrn_alus[op].cls == VTRN_ALU_BITS) memcpy(want, &bits, to_bytes);
        else vtrn_from_f32(to, sum, want);
    }
    uint8_t *after = rig_image(rig, 0, dst.tensor);
    assert_memory_equal(expect, after, (size_t)rig_elems(rig, dst.tensor) * to_bytes);
    free(source);
    free(expect);
    free(after);
    rig_destroy(rig);
}

static void test_partition_reduce(void **state)
{
    (void)state;
    static const int arith[] = { VTRN_ALU_ADD, VTRN_ALU_AVERAGE, VTRN_ALU_MAXIMUM };
    for (int k = 0; k < 3; k++) {
        reduce_case(arith[k], VTRN_DT_F32, VTRN_DT_F32);
        reduce_case(arith[k], VTRN_DT_BF16, VTRN_DT_F32);
        reduce_case(arith[k], VTRN_DT_F32, VTRN_DT_BF16);
        reduce_case(arith[k], VTRN_DT_U8, VTRN_DT_F32);
        reduce_case(arith[k], VTRN_DT_I32, VTRN_DT_I32);
        reduce_case(arith[k], VTRN_DT_U32, VTRN_DT_U32);
    }
    for (int k = 0; k < 4; k++) {
        static const uint8_t ints[] = { VTRN_DT_I32, VTRN_DT_U32, VTRN_DT_U16, VTRN_DT_U8 };
        reduce_case(VTRN_ALU_BITWISE_AND, ints[k], ints[k]);
        reduce_case(VTRN_ALU_BITWISE_OR, ints[k], ints[k]);
    }
}

/* ---- topk ---- */
static void topk_case(int64_t n, int64_t k, bool ties)
{
    struct rig *rig = rig_create("trn2", 1, 1);
    int64_t groups = 1 + rig_below(3), parts = 16 * groups, cols = (n + 15) / 16;
    uint32_t src = rig_tensor2(rig, 0, VTRN_SBUF, VTRN_DT_BF16, parts, cols);
    uint32_t val = rig_tensor2(rig, 0, VTRN_SBUF, VTRN_DT_BF16, parts, k);
    uint32_t idx = rig_tensor2(rig, 0, VTRN_SBUF, VTRN_DT_U32, parts, k);
    uint16_t *data = malloc((size_t)(parts * cols) * 2);
    for (int64_t i = 0; i < parts * cols; i++)
        vtrn_from_f32(VTRN_DT_BF16,
                      ties ? (rig_below(9) ? (float)(rig_below(7) - 3) : -0.0f) : (float)(rig_below(100000) - 50000) / 64, data + i);
    rig_write(rig, 0, src, data);
    struct vtrn_inst inst;
    vtrn_inst_init(&inst, VTRN_OP_topk);
    rig_set_ap(RIG_ARG(&inst, topk, val_dst), rig_ap(rig, val));
    rig_set_ap(RIG_ARG(&inst, topk, idx_dst), rig_ap(rig, idx));
    rig_set_ap(RIG_ARG(&inst, topk, src), rig_ap(rig, src));
    rig_set_int(RIG_ARG(&inst, topk, n), n);
    rig_append(rig, 0, &inst);
    rig_run_ok(rig, 0);
    uint16_t *values = rig_image(rig, 0, val);
    uint32_t *indices = rig_image(rig, 0, idx);
    for (int64_t g = 0; g < groups; g++) {
        bool *taken = calloc((size_t)n, sizeof *taken);
        for (int64_t rank = k - 1; rank >= 0; rank--) { /* the largest comes last */
            int64_t best = -1;
            float best_value = 0;
            for (int64_t e = 0; e < n; e++) {
                float value = vtrn_to_f32(VTRN_DT_BF16, data + (16 * g + e % 16) * cols + e / 16);
                if (!taken[e] && (best < 0 || value > best_value)) best = e, best_value = value;
            }
            taken[best] = true;
            for (int64_t p = 16 * g; p < 16 * g + 16; p++) {
                assert_int_equal(indices[p * k + rank], best);
                assert_int_equal(values[p * k + rank], data[(16 * g + best % 16) * cols + best / 16]);
            }
        }
        free(taken);
    }
    free(data);
    free(values);
    free(indices);
    rig_destroy(rig);
}

static void test_topk(void **state)
{
    (void)state;
    topk_case(8, 8, false);
    topk_case(8, 1, true);
    topk_case(42, 8, false);
    topk_case(1000, 64, false);
    topk_case(1000, 999, true);
    topk_case(1500, 1100, false);
}

/* ---- nonzero_with_count ---- */
static void nonzero_case(uint8_t dtype, int64_t parts, int64_t n, int64_t zeros)
{
    struct rig *rig = rig_create("trn2", 1, 1);
    int64_t offset = rig_below(1000), padding = rig_below(3) - 2;
    struct vtrn_ap src = rig_random_ap(rig, 0, VTRN_SBUF, dtype, parts, n);
    struct vtrn_ap dst = rig_random_ap(rig, 0, VTRN_SBUF, VTRN_DT_I32, parts, n + 1);
    uint32_t *source = rig_fill(rig, 0, src.tensor);
    int32_t *expect = rig_fill(rig, 0, dst.tensor);
    for (int64_t i = 0; i < rig_elems(rig, src.tensor); i++)
        if (rig_below(100) < zeros) source[i] = dtype == VTRN_DT_F32 && rig_below(2) ? UINT32_C(0x80000000) : 0;
    rig_write(rig, 0, src.tensor, source);
    struct vtrn_inst inst;
    vtrn_inst_init(&inst, VTRN_OP_nonzero_with_count);
    rig_set_ap(RIG_ARG(&inst, nonzero_with_count, dst), dst);
    rig_set_ap(RIG_ARG(&inst, nonzero_with_count, src), src);
    rig_set_int(RIG_ARG(&inst, nonzero_with_count, index_offset), offset);
    rig_set_int(RIG_ARG(&inst, nonzero_with_count, padding_val), padding);
    rig_append(rig, 0, &inst);
    rig_run_ok(rig, 0);
    for (int64_t p = 0; p < parts; p += 16) {
        int64_t found = 0;
        for (int64_t i = 0; i < n; i++)
            if (vtrn_to_f32(dtype, source + rig_at(rig, &src, p, i)) != 0)
                expect[rig_at(rig, &dst, p, found++)] = (int32_t)(i + offset);
        for (int64_t i = found; i < n; i++) expect[rig_at(rig, &dst, p, i)] = (int32_t)padding;
        expect[rig_at(rig, &dst, p, n)] = (int32_t)found;
    }
    int32_t *after = rig_image(rig, 0, dst.tensor);
    assert_memory_equal(expect, after, (size_t)rig_elems(rig, dst.tensor) * 4);
    free(source);
    free(expect);
    free(after);
    rig_destroy(rig);
}

static void test_nonzero(void **state)
{
    (void)state;
    nonzero_case(VTRN_DT_F32, 128, 300, 50);
    nonzero_case(VTRN_DT_I32, 128, 2100, 50);
    nonzero_case(VTRN_DT_F32, 17, 64, 100);
    nonzero_case(VTRN_DT_I32, 1, 1, 0);
    nonzero_case(VTRN_DT_I32, 16, 1023, 0);
}

/* ---- sequence_bounds ---- */
static void bounds_case(uint8_t dtype, int64_t n)
{
    struct rig *rig = rig_create("trn2", 1, 1);
    int64_t dims[3] = { 1, 2, n };
    uint32_t src = rig_tensor2(rig, 0, VTRN_SBUF, dtype, 1, n), dst = rig_tensor(rig, 0, VTRN_SBUF, dtype, 3, dims);
    uint32_t *ids = malloc((size_t)n * 4);
    float *id = malloc((size_t)n * sizeof *id);
    for (int64_t i = 0; i < n; i++) {
        id[i] = i > 0 && rig_below(3) ? id[i - 1] : rig_below(5) ? (float)rig_below(4) : -0.0f;
        vtrn_from_f32(dtype, id[i], ids + i);
    }
    rig_write(rig, 0, src, ids);
    struct vtrn_inst inst;
    vtrn_inst_init(&inst, VTRN_OP_sequence_bounds);
    rig_set_ap(RIG_ARG(&inst, sequence_bounds, dst), rig_ap(rig, dst));
    rig_set_ap(RIG_ARG(&inst, sequence_bounds, segment_ids), rig_ap(rig, src));
    rig_append(rig, 0, &inst);
    rig_run_ok(rig, 0);
    uint32_t *after = rig_image(rig, 0, dst);
    for (int64_t i = 0; i < n; i++) {
        int64_t start = i, end = i + 1;
        while (start > 0 && id[start - 1] == id[i]) start--;
        while (end < n && id[end] == id[i]) end++;
        assert_float_equal(vtrn_to_f32(dtype, after + i), id[i] == 0 ? (float)n : (float)start, 0);
        assert_float_equal(vtrn_to_f32(dtype, after + n + i), id[i] == 0 ? -1.0f : (float)end, 0);
    }
    free(ids);
    free(id);
    free(after);
    rig_destroy(rig);
}

static void test_sequence_bounds(void **state)
{
    (void)state;
    for (int64_t n = 1; n < 40; n++) bounds_case(n % 2 ? VTRN_DT_F32 : VTRN_DT_I32, n);
    bounds_case(VTRN_DT_F32, 2500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_iota),           cmocka_unit_test(test_affine_select),  cmocka_unit_test(test_partition_reduce),
        cmocka_unit_test(test_topk),           cmocka_unit_test(test_nonzero),        cmocka_unit_test(test_sequence_bounds),
        cmocka_unit_test(test_select_overlap), cmocka_unit_test(test_reduce_overlap),
    };
    return cmocka_run_group_tests_name("exec_gpsimd", tests, NULL, NULL);
}
