/* Blocks of an operand as packed values: np partitions from p0, elements [i0, i0+n) of each, row after row.
 *
 * Bodies compute on packed fp32. A wide block is one partition at a time, straight from and to the tensor where it is fp32
 * and contiguous; a narrow one gathers many partitions, so that (128,1) and (128,8) operands cost one kernel call and not
 * 128. Conversions are kern's. Knows strides and dtypes, no instruction. */
#include "exec/exec_int.h"

enum { STAGE = EXEC_ROW_MAX, SHORT = 16 /* elements: shorter contiguous rows are packed before they are converted */ };

/* ---------------------------------------------------------------- addresses */
uint8_t *exec_elem(const struct exec_view *view, int64_t p, int64_t i)
{
    uint8_t *at = exec_row_start(view, p);

    if (view->elem_offset) return at + view->elem_offset[p / view->group * view->elems + i];
    for (int d = view->ndim - 1; d >= 0; d--) {
        at += i % view->dim[d].count * view->dim[d].stride;
        i /= view->dim[d].count;
    }
    return at;
}

/* ---------------------------------------------------------------- strided copies of whole elements */
static inline void gather_run(uint8_t *to, const uint8_t *from, ptrdiff_t stride, int64_t n, int size)
{
    if (stride == size) {
        memcpy(to, from, (size_t)n * (size_t)size);
        return;
    }
    switch (size) {
    case 1:
        for (; n > 0; n--, to += 1, from += stride) *to = *from;
        break;
    case 2:
        for (; n > 0; n--, to += 2, from += stride) memcpy(to, from, 2);
        break;
    default:
        for (; n > 0; n--, to += 4, from += stride) memcpy(to, from, 4);
    }
}

static inline void scatter_run(uint8_t *to, const uint8_t *from, ptrdiff_t stride, int64_t n, int size)
{
    if (stride == size) {
        memcpy(to, from, (size_t)n * (size_t)size);
        return;
    }
    switch (size) {
    case 1:
        for (; n > 0; n--, to += stride, from += 1) *to = *from;
        break;
    case 2:
        for (; n > 0; n--, to += stride, from += 2) memcpy(to, from, 2);
        break;
    default:
        for (; n > 0; n--, to += stride, from += 4) memcpy(to, from, 4);
    }
}

static inline void move_run(uint8_t *packed, uint8_t *at, ptrdiff_t stride, int64_t n, int size, bool store)
{
    if (store) scatter_run(at, packed, stride, n, size);
    else gather_run(packed, at, stride, n, size);
}

/* Elements [i0, i0+n) of one partition in a pattern of two and more dims: runs of the innermost one, the outer ones counted
 * on like a clock. */
static void move_dims(const struct exec_view *view, uint8_t *row, int64_t i0, int64_t n, uint8_t *packed, bool store)
{
    int last = view->ndim - 1, size = view->elem_bytes;
    int64_t index[EXEC_FREE_DIMS], run;
    uint8_t *at = row;

    for (int d = last; d >= 0; d--) {
        index[d] = i0 % view->dim[d].count;
        i0 /= view->dim[d].count;
        at += index[d] * view->dim[d].stride;
    }
    for (;;) {
        run = view->dim[last].count - index[last];
        if (run > n) run = n;
        move_run(packed, at, view->dim[last].stride, run, size, store);
        n -= run;
        if (n <= 0) return;
        packed += run * size;
        at -= index[last] * view->dim[last].stride;
        index[last] = 0;
        for (int d = last - 1; d >= 0; d--) {
            at += view->dim[d].stride;
            if (++index[d] < view->dim[d].count) break;
            at -= view->dim[d].count * view->dim[d].stride;
            index[d] = 0;
        }
    }
}

static void move_indirect(const struct exec_view *view, int64_t p, int64_t i0, int64_t n, uint8_t *packed, bool store)
{
    int size = view->elem_bytes;

    for (int64_t i = i0; i < i0 + n; i++, packed += size) move_run(packed, exec_elem(view, p, i), size, 1, size, store);
}

VTRN_RARE static void move_block(const struct exec_view *view, int64_t p0, int64_t np, int64_t i0, int64_t n, uint8_t *packed,
                                 bool store)
{
    int size = view->elem_bytes;
    ptrdiff_t stride = view->ndim ? view->dim[0].stride : size, bytes = (ptrdiff_t)n * size;
    uint8_t *at;

    if (view->elem_offset) {
        for (int64_t p = p0; p < p0 + np; p++, packed += bytes) move_indirect(view, p, i0, n, packed, store);
    } else if ((at = exec_direct(view, p0, np, i0, n)) != NULL) {
        move_run(packed, at, size, np * n, size, store);
    } else if (view->ndim <= 1 && n == 1 && !view->row_offset) { /* a column: the partitions are the run */
        move_run(packed, view->base + p0 * view->pitch + i0 * stride, view->pitch, np, size, store);
    } else if (view->ndim <= 1) {
        for (int64_t p = p0; p < p0 + np; p++, packed += bytes)
            move_run(packed, exec_row_start(view, p) + i0 * stride, stride, n, size, store);
    } else {
        for (int64_t p = p0; p < p0 + np; p++, packed += bytes) move_dims(view, exec_row_start(view, p), i0, n, packed, store);
    }
}

/* ---------------------------------------------------------------- raw elements */
const void *exec_load_raw(const struct exec_view *view, int64_t p0, int64_t np, int64_t i0, int64_t n, void *scratch)
{
    const uint8_t *at = exec_direct(view, p0, np, i0, n);

    if (at) return at;
    move_block(view, p0, np, i0, n, scratch, false);
    return scratch;
}

void exec_pack_raw(const struct exec_view *view, int64_t p0, int64_t np, int64_t i0, int64_t n, void *out)
{
    move_block(view, p0, np, i0, n, out, false);
}

void exec_store_raw(const struct exec_view *view, int64_t p0, int64_t np, int64_t i0, int64_t n, const void *values)
{
    if (values == exec_direct(view, p0, np, i0, n)) return;              /* in place */
    move_block(view, p0, np, i0, n, (uint8_t *)(uintptr_t)values, true); /* only read: stored from there */
}

/* ---------------------------------------------------------------- fp32 values */
/* How a block of narrow or strided elements is cut so that a piece fits STAGE elements: whole partitions, or part of one. */
struct piece {
    int64_t np, n;
};
static inline struct piece cut(int64_t np, int64_t n)
{
    struct piece piece = { 1, n < STAGE ? n : STAGE };

    if (n > 0 && n < STAGE) piece.np = STAGE / n < np ? STAGE / n : np;
    return piece;
}

VTRN_RARE static void load_pieces(const struct exec_view *view, int64_t p0, int64_t np, int64_t i0, int64_t n, float *out,
                                  void (*load)(float *, const void *, size_t))
{
    _Alignas(64) uint8_t stage[STAGE * 4];
    struct piece piece = cut(np, n);

    for (int64_t p = 0; p < np; p += piece.np) {
        int64_t rows = np - p < piece.np ? np - p : piece.np;

        for (int64_t i = 0; i < n; i += piece.n) {
            int64_t count = n - i < piece.n ? n - i : piece.n;

            move_block(view, p0 + p, rows, i0 + i, count, stage, false);
            load(out + p * n + i, stage, (size_t)(rows * count));
        }
    }
}

const float *exec_load_other(const struct vtrn_core *core, const struct exec_view *view, int64_t p0, int64_t np, int64_t i0,
                             int64_t n, float *scratch)
{
    const uint8_t *at = exec_direct(view, p0, np, i0, n);
    void (*load)(float *, const void *, size_t);

    if (view->dtype == VTRN_DT_F32) { /* not direct */
        move_block(view, p0, np, i0, n, (uint8_t *)scratch, false);
        return scratch;
    }
    load = core->kern->load[view->dtype];
    if (at) {
        load(scratch, at, (size_t)(np * n));
    } else if (view->contiguous && !view->elem_offset && n >= SHORT) {
        for (int64_t p = 0; p < np; p++) load(scratch + p * n, exec_row_start(view, p0 + p) + i0 * view->elem_bytes, (size_t)n);
    } else {
        load_pieces(view, p0, np, i0, n, scratch, load);
    }
    return scratch;
}

/* Rounded by chance: partition by partition, because the random words are a function of partition and element. */
VTRN_RARE static void store_stochastic(struct vtrn_core *core, const struct exec_view *view, int64_t p0, int64_t np, int64_t i0,
                                       int64_t n, const float *values)
{
    uint32_t word[STAGE];
    _Alignas(64) uint8_t stage[STAGE * 4];

    for (int64_t p = 0; p < np; p++)
        for (int64_t i = 0; i < n; i += STAGE) {
            int64_t count = n - i < STAGE ? n - i : STAGE;

            exec_rng_rounding(core, p0 + p, i0 + i, word, (size_t)count);
            core->kern->store_sr[view->dtype](stage, values + p * n + i, word, (size_t)count);
            move_block(view, p0 + p, 1, i0 + i, count, stage, true);
        }
}

VTRN_RARE static void store_pieces(const struct exec_view *view, int64_t p0, int64_t np, int64_t i0, int64_t n, const float *values,
                                   void (*store)(void *, const float *, size_t))
{
    _Alignas(64) uint8_t stage[STAGE * 4];
    struct piece piece = cut(np, n);

    for (int64_t p = 0; p < np; p += piece.np) {
        int64_t rows = np - p < piece.np ? np - p : piece.np;

        for (int64_t i = 0; i < n; i += piece.n) {
            int64_t count = n - i < piece.n ? n - i : piece.n;

            store(stage, values + p * n + i, (size_t)(rows * count));
            move_block(view, p0 + p, rows, i0 + i, count, stage, true);
        }
    }
}

void exec_store_other(struct vtrn_core *core, const struct exec_view *view, int64_t p0, int64_t np, int64_t i0, int64_t n,
                      const float *values)
{
    uint8_t *at = exec_direct(view, p0, np, i0, n);
    void (*store)(void *, const float *, size_t);

    if (view->dtype == VTRN_DT_F32) {
        move_block(view, p0, np, i0, n, (uint8_t *)(uintptr_t)values, true);
        return;
    }
    store = core->kern->store[view->dtype];
    if (VTRN_UNLIKELY(core->options.stochastic_rounding && core->kern->store_sr[view->dtype])) {
        store_stochastic(core, view, p0, np, i0, n, values);
    } else if (at) {
        store(at, values, (size_t)(np * n));
    } else if (view->contiguous && !view->elem_offset && n >= SHORT) {
        for (int64_t p = 0; p < np; p++) store(exec_row_start(view, p0 + p) + i0 * view->elem_bytes, values + p * n, (size_t)n);
    } else {
        store_pieces(view, p0, np, i0, n, values, store);
    }
}
