/* Blocks of an operand as packed values: np partitions from p0, elements [i0, i0+n) of each.
 *
 * Bodies compute on packed fp32. A wide block is one partition at a time, straight from and to the tensor where it is fp32
 * and contiguous; a narrow one gathers many partitions, so that (128,1) and (128,8) operands cost one kernel call and not
 * 128. Conversions are kern's. */
#include "exec/exec_int.h"

uint8_t *exec_elem(const struct exec_view *view, int64_t p, int64_t i)
{
    uint8_t *at = view->base + (view->row_offset ? view->row_offset[p] : p * view->pitch);
    if (view->elem_offset) return at + view->elem_offset[(p / view->group) * view->elems + i];
    for (int d = view->ndim - 1; d >= 0; d--) {
        at += (i % view->dim[d].count) * view->dim[d].stride;
        i /= view->dim[d].count;
    }
    return at;
}

static uint8_t *row_start(const struct exec_view *view, int64_t p)
{
    return view->base + (view->row_offset ? view->row_offset[p] : p * view->pitch);
}

/* ---- strided copies of whole elements ---- */

#define GATHER(type) \
    do { \
        type *out = to; \
        for (int64_t i = 0; i < n; i++) memcpy(&out[i], from + i * stride, sizeof(type)); \
    } while (0)
#define SCATTER(type) \
    do { \
        const type *in = from; \
        for (int64_t i = 0; i < n; i++) memcpy(to + i * stride, &in[i], sizeof(type)); \
    } while (0)

static void gather_run(void *to, const uint8_t *from, ptrdiff_t stride, int64_t n, int size)
{
    if (stride == size) memcpy(to, from, (size_t)(n * size));
    else if (size == 4) GATHER(uint32_t);
    else if (size == 2) GATHER(uint16_t);
    else GATHER(uint8_t);
}

static void scatter_run(uint8_t *to, const void *from, ptrdiff_t stride, int64_t n, int size)
{
    if (stride == size) memcpy(to, from, (size_t)(n * size));
    else if (size == 4) SCATTER(uint32_t);
    else if (size == 2) SCATTER(uint16_t);
    else SCATTER(uint8_t);
}

/* Elements [i0, i0+n) of one partition, cut into runs along the innermost dimension. */
static void row_runs(const struct exec_view *view, int64_t p, int64_t i0, int64_t n, void *packed, bool store)
{
    int size = view->elem_bytes;
    uint8_t *out = packed;
    if (view->ndim <= 1 && !view->elem_offset) {
        ptrdiff_t stride = view->ndim ? view->dim[0].stride : size;
        uint8_t *at = row_start(view, p) + i0 * stride;
        if (store) scatter_run(at, out, stride, n, size);
        else gather_run(out, at, stride, n, size);
        return;
    }
    int64_t inner = view->elem_offset ? 1 : view->dim[view->ndim - 1].count;
    ptrdiff_t stride = view->elem_offset ? size : view->dim[view->ndim - 1].stride;
    while (n > 0) {
        int64_t run = inner - i0 % inner;
        if (run > n) run = n;
        uint8_t *at = exec_elem(view, p, i0);
        if (store) scatter_run(at, out, stride, run, size);
        else gather_run(out, at, stride, run, size);
        out += run * size;
        i0 += run;
        n -= run;
    }
}

/* Partitions follow each other like elements of one run: a packed (P,1) column, or whole packed rows. */
static bool one_run(const struct exec_view *view, int64_t i0, int64_t n, ptrdiff_t *stride_out)
{
    if (view->row_offset || view->elem_offset) return false;
    if (n == 1 && (i0 == 0 || view->ndim == 1)) {
        *stride_out = view->pitch;
        return true;
    }
    *stride_out = view->elem_bytes;
    return view->contiguous && i0 == 0 && n == view->elems && view->pitch == (ptrdiff_t)(n * view->elem_bytes);
}

static void block_runs(const struct exec_view *view, int64_t p0, int64_t np, int64_t i0, int64_t n, void *packed, bool store)
{
    ptrdiff_t stride;
    if (np > 1 && one_run(view, i0, n, &stride)) {
        uint8_t *at = row_start(view, p0) + (view->ndim ? i0 * view->dim[0].stride : 0);
        if (store) scatter_run(at, packed, stride, np * n, view->elem_bytes);
        else gather_run(packed, at, stride, np * n, view->elem_bytes);
        return;
    }
    for (int64_t p = 0; p < np; p++)
        row_runs(view, p0 + p, i0, n, (uint8_t *)packed + p * n * view->elem_bytes, store);
}

/* ---- direct access ---- */

static uint8_t *direct(const struct exec_view *view, int64_t p0, int64_t np, int64_t i0, int64_t n)
{
    ptrdiff_t stride;
    if (view->elem_offset) return NULL;
    if (np == 1) return view->contiguous ? row_start(view, p0) + i0 * view->elem_bytes : NULL;
    return one_run(view, i0, n, &stride) && stride == view->elem_bytes ? row_start(view, p0) : NULL;
}

const void *exec_load_raw(const struct exec_view *view, int64_t p0, int64_t np, int64_t i0, int64_t n, void *scratch)
{
    const uint8_t *at = direct(view, p0, np, i0, n);
    if (at) return at;
    block_runs(view, p0, np, i0, n, scratch, false);
    return scratch;
}

void exec_store_raw(const struct exec_view *view, int64_t p0, int64_t np, int64_t i0, int64_t n, const void *values)
{
    block_runs(view, p0, np, i0, n, (void *)(uintptr_t)values, true);
}

/* ---- fp32 values: raw elements pass through the upper half of a staging area of 4-byte elements ---- */

enum { STAGE = 1024 };

const float *exec_load_f32(const struct vtrn_core *core, const struct exec_view *view, int64_t p0, int64_t np, int64_t i0,
                           int64_t n, float *scratch)
{
    const uint8_t *at = direct(view, p0, np, i0, n);
    if (view->dtype == VTRN_DT_F32) {
        if (at) return (const float *)(const void *)at;
        block_runs(view, p0, np, i0, n, scratch, false);
        return scratch;
    }
    void (*load)(float *, const void *, size_t) = core->kern->load[view->dtype];
    if (at) {
        load(scratch, at, (size_t)(np * n));
        return scratch;
    }
    if (np > 1 && np * n <= STAGE) {
        uint32_t stage[STAGE];
        block_runs(view, p0, np, i0, n, stage, false);
        load(scratch, stage, (size_t)(np * n));
        return scratch;
    }
    for (int64_t p = 0; p < np; p++) {
        uint8_t *row = view->contiguous && !view->elem_offset ? row_start(view, p0 + p) + i0 * view->elem_bytes : NULL;
        for (int64_t i = 0; i < n; i += row ? n : STAGE) {
            uint32_t stage[STAGE];
            int64_t m = row || n - i < STAGE ? n - i : STAGE;
            if (!row) row_runs(view, p0 + p, i0 + i, m, stage, false);
            load(scratch + p * n + i, row ? (const void *)row : stage, (size_t)m);
        }
    }
    return scratch;
}

float *exec_out_f32(const struct exec_view *view, int64_t p0, int64_t np, int64_t i0, int64_t n, float *scratch)
{
    if (view->dtype != VTRN_DT_F32) return scratch;
    uint8_t *at = direct(view, p0, np, i0, n);
    return at ? (float *)(void *)at : scratch;
}

static void convert(struct vtrn_core *core, const struct exec_view *view, int64_t p, int64_t i, void *to, const float *from,
                    int64_t n)
{
    if (!core->options.stochastic_rounding || !core->kern->store_sr[view->dtype]) {
        core->kern->store[view->dtype](to, from, (size_t)n);
        return;
    }
    uint32_t random[STAGE];
    for (int64_t done = 0; done < n; done += STAGE) {
        int64_t m = n - done < STAGE ? n - done : STAGE;
        exec_rng_rounding(core, p, i + done, random, (size_t)m);
        core->kern->store_sr[view->dtype]((uint8_t *)to + done * view->elem_bytes, from + done, random, (size_t)m);
    }
}

void exec_store_f32(struct vtrn_core *core, const struct exec_view *view, int64_t p0, int64_t np, int64_t i0, int64_t n,
                    const float *values)
{
    if (view->dtype == VTRN_DT_F32) {
        if ((const uint8_t *)values != direct(view, p0, np, i0, n)) block_runs(view, p0, np, i0, n, (void *)(uintptr_t)values, true);
        return;
    }
    bool plain = !core->options.stochastic_rounding;
    uint8_t *at = plain ? direct(view, p0, np, i0, n) : NULL;
    if (at) {
        core->kern->store[view->dtype](at, values, (size_t)(np * n));
        return;
    }
    if (plain && np > 1 && np * n <= STAGE) {
        uint32_t stage[STAGE];
        core->kern->store[view->dtype](stage, values, (size_t)(np * n));
        block_runs(view, p0, np, i0, n, stage, true);
        return;
    }
    for (int64_t p = 0; p < np; p++) {
        uint8_t *row = view->contiguous && !view->elem_offset ? row_start(view, p0 + p) + i0 * view->elem_bytes : NULL;
        for (int64_t i = 0; i < n; i += row ? n : STAGE) {
            uint32_t stage[STAGE];
            int64_t m = row || n - i < STAGE ? n - i : STAGE;
            convert(core, view, p0 + p, i0 + i, row ? (void *)row : stage, values + p * n + i, m);
            if (!row) row_runs(view, p0 + p, i0 + i, m, stage, true);
        }
    }
}
