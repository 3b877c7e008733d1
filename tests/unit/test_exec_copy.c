/* exec/walk.c, copy.c, convert.c against a model that lists every element's address. Random shapes on both sides, random
 * strides (padded, permuted, repeated, falling), rows by index with some left out, shared memory, all dtypes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include "exec/walk_int.h"

#include <cmocka.h>

enum { MEMORY = 1 << 16, ELEMS_MAX = 4096 };

static uint64_t seed_state;
static uint64_t draw(void)
{
    seed_state ^= seed_state << 13;
    seed_state ^= seed_state >> 7;
    seed_state ^= seed_state << 17;
    return seed_state;
}
static int64_t below(int64_t n) { return (int64_t)(draw() % (uint64_t)n); }

/* ---- random operands ---- */
struct operand {
    struct exec_view view;
    int64_t row_offset[ELEMS_MAX];
    int64_t at[ELEMS_MAX]; /* model: byte offset of each element in the memory; -1: left out */
    int64_t count[8];      /* dims, [0] the partitions */
    ptrdiff_t stride[8];
    int ndim;
};

static void random_shape(struct operand *operand, int64_t elems)
{
    operand->ndim = 1;
    operand->count[0] = 1;
    while (elems > 1) {
        int64_t factor = elems;
        for (int64_t f = 2; f <= elems; f++)
            if (elems % f == 0 && below(3) == 0) {
                factor = f;
                break;
            }
        if (operand->ndim < 6 && (operand->count[operand->ndim - 1] > 1 || below(2))) operand->count[operand->ndim++] = factor;
        else operand->count[operand->ndim - 1] *= factor;
        elems /= factor;
    }
}

/* Strides in some order of the dims, with gaps; `repeats`: some are 0 or smaller than what lies inside. Returns the bytes spanned. */
static int64_t random_strides(struct operand *operand, int bytes, bool repeats)
{
    int order[8];
    int64_t span = bytes;
    for (int d = 0; d < operand->ndim; d++) {
        int at = (int)below(d + 1);
        if (below(3) == 0) at = 0; /* often row-major: the last dim innermost */
        memmove(order + at + 1, order + at, (size_t)(d - at) * sizeof *order);
        order[at] = d;
    }
    for (int k = 0; k < operand->ndim; k++) {
        int d = order[k];
        operand->stride[d] = (ptrdiff_t)span;
        if (below(4) == 0) operand->stride[d] += (ptrdiff_t)(bytes * below(3));
        if (repeats && below(5) == 0) operand->stride[d] = 0;
        if (repeats && below(5) == 0) operand->stride[d] = (ptrdiff_t)(bytes * (1 + below(3))); /* windows that overlap */
        span += operand->stride[d] * (operand->count[d] - 1);
    }
    return span;
}

static bool make_operand(struct operand *operand, uint8_t *memory, int64_t elems, uint8_t dtype, bool repeats, bool by_index)
{
    int bytes = vtrn_dtypes[dtype].size_bytes;
    random_shape(operand, elems);
    int64_t span = random_strides(operand, bytes, repeats);
    if (span * (by_index ? 2 : 1) > MEMORY) return false;
    int64_t start = below(MEMORY - span * (by_index ? 2 : 1) + 1) / bytes * bytes;
    for (int d = 0; d < operand->ndim; d++)
        if (!by_index && below(8) == 0) { /* falling: begin at the far end */
            start += operand->stride[d] * (operand->count[d] - 1);
            operand->stride[d] = -operand->stride[d];
        }
    struct exec_view *view = &operand->view;
    *view = (struct exec_view){
        .base = memory + start, .pitch = operand->stride[0], .parts = operand->count[0], .dtype = dtype, .elem_bytes = (uint8_t)bytes
    };
    view->elems = elems / view->parts;
    for (int d = 1; d < operand->ndim; d++) {
        view->dim[view->ndim].stride = operand->stride[d];
        view->dim[view->ndim++].count = operand->count[d];
    }
    for (int64_t p = 0; by_index && p < view->parts; p++)
        operand->row_offset[p] = below(6) == 0 ? -1 : below(view->parts) * (span / view->parts) / bytes * bytes;
    if (by_index) view->row_offset = operand->row_offset;
    for (int64_t e = 0; e < elems; e++) {
        int64_t rest = e, offset = start;
        for (int d = operand->ndim - 1; d > 0; d--) {
            offset += rest % operand->count[d] * operand->stride[d];
            rest /= operand->count[d];
        }
        if (!by_index) offset += rest * operand->stride[0];
        else offset = operand->row_offset[rest] < 0 ? -1 : offset + operand->row_offset[rest];
        operand->at[e] = offset;
    }
    return true;
}

/* ---- the model ---- */
static void model_convert(uint8_t dst_dtype, void *dst, uint8_t src_dtype, const void *src)
{
    if (dst_dtype == src_dtype) {
        memcpy(dst, src, vtrn_dtypes[src_dtype].size_bytes);
    } else {
        vtrn_from_f32(dst_dtype, vtrn_to_f32(src_dtype, src), dst);
    }
}

static void random_bytes(uint8_t *memory, size_t size)
{
    for (size_t i = 0; i < size; i++) memory[i] = (uint8_t)(draw() >> 16);
}

struct setup {
    struct vtrn_core core;
    uint8_t *src_memory, *dst_memory, *src_before, *want;
    struct operand src, dst;
};

static int start(void **state)
{
    struct setup *setup = calloc(1, sizeof *setup);
    setup->core.kern = vtrn_kern_best();
    setup->core.options.pool = vtrn_pool_create(2);
    setup->src_memory = malloc(MEMORY);
    setup->dst_memory = malloc(MEMORY);
    setup->src_before = malloc(MEMORY);
    setup->want = malloc(MEMORY);
    seed_state = 0x9e3779b97f4a7c15u;
    *state = setup;
    return 0;
}

static int stop(void **state)
{
    struct setup *setup = *state;
    vtrn_pool_destroy(setup->core.options.pool);
    vtrn_buf_fini(&setup->core.index_space);
    vtrn_arena_fini(&setup->core.index_more);
    free(setup->src_memory);
    free(setup->dst_memory);
    free(setup->src_before);
    free(setup->want);
    free(setup);
    return 0;
}

static void check_copy(struct setup *setup, bool shared)
{
    uint8_t *dst_memory = shared ? setup->src_memory : setup->dst_memory;
    struct exec_walk to, from;
    memcpy(setup->want, dst_memory, MEMORY);
    memcpy(setup->src_before, setup->src_memory, MEMORY);
    int64_t elems = setup->src.view.parts * setup->src.view.elems;
    for (int64_t e = 0; e < elems; e++)
        if (setup->src.at[e] >= 0 && setup->dst.at[e] >= 0)
            model_convert(setup->dst.view.dtype, setup->want + setup->dst.at[e], setup->src.view.dtype,
                          setup->src_before + setup->src.at[e]);
    exec_walk_view(&to, &setup->dst.view);
    exec_walk_view(&from, &setup->src.view);
    setup->core.index_space.size = 0; /* as between two instructions */
    assert_int_equal(exec_copy(&setup->core, &to, &from), VTRN_OK);
    if (memcmp(setup->want, dst_memory, MEMORY) == 0) return;
    int64_t at = 0;
    while (setup->want[at] == dst_memory[at]) at++;
    fail_msg("byte %lld differs after a copy of %lld elements", (long long)at, (long long)elems);
}

static int64_t random_elems(void)
{
    static const int64_t factor[] = { 2, 2, 2, 3, 4, 5, 7, 8, 16 };
    int64_t elems = 1;
    for (int k = (int)below(6); k >= 0; k--) {
        int64_t f = factor[below(9)];
        if (elems * f <= ELEMS_MAX) elems *= f;
    }
    return elems;
}

/* One random case; `index` bits: 1 src by index, 2 dst by index. */
static void random_case(struct setup *setup, uint8_t dst_dtype, uint8_t src_dtype, bool shared, int index, bool repeats)
{
    int64_t elems = random_elems();
    uint8_t *dst_memory = shared ? setup->src_memory : setup->dst_memory;
    random_bytes(setup->src_memory, MEMORY);
    random_bytes(setup->dst_memory, MEMORY);
    if (!make_operand(&setup->src, setup->src_memory, elems, src_dtype, true, index & 1)) return;
    if (!make_operand(&setup->dst, dst_memory, elems, dst_dtype, repeats, index & 2)) return;
    check_copy(setup, shared);
}

static void test_bytes(void **state)
{
    static const uint8_t dtypes[3] = { VTRN_DT_U8, VTRN_DT_BF16, VTRN_DT_F32 };
    for (int k = 0; k < 2500; k++) random_case(*state, dtypes[k % 3], dtypes[k % 3], false, 0, k % 5 == 0);
}

static void test_shared_memory(void **state)
{
    static const uint8_t dtypes[3] = { VTRN_DT_U8, VTRN_DT_BF16, VTRN_DT_F32 };
    for (int k = 0; k < 1500; k++) random_case(*state, dtypes[k % 3], dtypes[k % 3], true, 0, false);
}

static void test_rows_by_index(void **state)
{
    static const uint8_t dtypes[3] = { VTRN_DT_U8, VTRN_DT_BF16, VTRN_DT_F32 };
    for (int k = 0; k < 2000; k++) random_case(*state, dtypes[k % 3], dtypes[k % 3], k % 4 == 0, 1 + k % 3, false);
}

static void test_conversions(void **state)
{
    for (uint8_t to = 1; to < VTRN_DT_COUNT; to++)
        for (uint8_t from = 1; from < VTRN_DT_COUNT; from++) {
            if (vtrn_dtypes[to].cls == VTRN_CLASS_PACKED || vtrn_dtypes[from].cls == VTRN_CLASS_PACKED) continue;
            for (int k = 0; k < 8; k++) random_case(*state, to, from, k % 4 == 0, k % 5 == 0 ? 1 + k % 3 : 0, false);
        }
}

/* Patterns that kernels use, large enough for every path: rows, transposes of 1, 2 and 4 bytes, broadcasts, the pool. */
static void test_large(void **state)
{
    struct setup *setup = *state;
    static const struct {
        int64_t rows, cols;
        int bytes;
        bool transpose, broadcast;
    } cases[] = { { 128, 8192, 4, false, false }, { 1024, 1024, 2, true, false }, { 1000, 333, 4, true, false },
                  { 777, 1025, 1, true, false },  { 128, 4096, 2, false, true },  { 1, 1 << 20, 1, false, false } };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        int64_t rows = cases[k].rows, cols = cases[k].cols, bytes = cases[k].bytes, elems = rows * cols;
        ptrdiff_t pitch = (ptrdiff_t)(cols * bytes + 64);
        uint8_t *src = malloc((size_t)(elems * bytes)), *dst = malloc((size_t)(rows * pitch));
        uint8_t dtype = bytes == 4 ? VTRN_DT_F32 : bytes == 2 ? VTRN_DT_BF16 : VTRN_DT_U8;
        random_bytes(src, (size_t)(elems * bytes));
        struct exec_view from = { .base = src, .parts = rows, .elems = cols, .dtype = dtype, .elem_bytes = (uint8_t)bytes };
        struct exec_view to = from;
        from.pitch = cases[k].broadcast ? 0 : cases[k].transpose ? bytes : cols * bytes;
        from.ndim = to.ndim = 1;
        from.dim[0].count = to.dim[0].count = cols;
        from.dim[0].stride = cases[k].transpose ? rows * bytes : bytes;
        to.base = dst;
        to.pitch = pitch;
        to.dim[0].stride = bytes;
        struct exec_walk a, b;
        exec_walk_view(&a, &to);
        exec_walk_view(&b, &from);
        assert_int_equal(exec_copy(&setup->core, &a, &b), VTRN_OK);
        for (int64_t r = 0; r < rows; r++)
            for (int64_t c = 0; c < cols; c++)
                assert_memory_equal(dst + r * pitch + c * bytes, src + r * from.pitch + c * from.dim[0].stride, (size_t)bytes);
        free(src);
        free(dst);
    }
}

/* Two tensors of one physical array, side by side in every partition: they do not overlap though their spans do. */
static void test_overlap_of_rows(void **state)
{
    static uint8_t memory[16 * 256];
    struct exec_walk a = { .base = memory, .rows = 1, .row_elems = 512, .elems = 512, .ndim = 2, .elem_bytes = 1 }, b;
    (void)state;
    a.dim[0].stride = 256;
    a.dim[0].count = 16;
    a.dim[1].stride = 1;
    a.dim[1].count = 32;
    for (int shift = 0; shift < 256; shift++) {
        b = a;
        b.base = memory + shift;
        bool meets = shift < 32 || shift > 224; /* beyond 224 the next partition's row is met */
        assert_int_equal(exec_walk_overlap(&a, &b), meets);
        assert_int_equal(exec_walk_overlap(&b, &a), meets);
    }
    b = a; /* one partition each: only the row itself */
    b.base = memory + 240;
    a.ndim = b.ndim = 1;
    a.dim[0].stride = b.dim[0].stride = 1;
    a.dim[0].count = b.dim[0].count = 32;
    assert_false(exec_walk_overlap(&a, &b));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_bytes, start, stop),
        cmocka_unit_test_setup_teardown(test_shared_memory, start, stop),
        cmocka_unit_test_setup_teardown(test_rows_by_index, start, stop),
        cmocka_unit_test_setup_teardown(test_conversions, start, stop),
        cmocka_unit_test_setup_teardown(test_large, start, stop),
        cmocka_unit_test(test_overlap_of_rows),
    };
    return cmocka_run_group_tests_name("exec_copy", tests, NULL, NULL);
}
