/* The tile product on fp32 fma vectors, one text for every level: the including file (x86/mm_avx2.c, x86/mm_avx512.c,
 * arm/mm_neon.c) brings the words it is written in:
 *   enum { VL, MR, NV, AP }   lanes of a vector; a register tile is MR rows x NV vectors; a stationary panel holds AP
 *                             columns, a multiple of MR and of VL
 *   vf, v_zero v_load v_store v_load_part v_store_part v_set1 v_fma v_add v_canonical
 *   v_widen(dtype, p, lanes)                a vector of fp32 from `lanes` elements, the others 0
 *   v_widen_mx(dtype, p, scale, lanes, out) four vectors of scaled fp32 from `lanes` packed MX elements
 *   DIRECT_M, direct_vectors(m)             see direct_tile
 *
 * Shape: the moving operand is converted to fp32 a panel of NV*VL columns at a time (so it stays in the L1 cache for all
 * of M), the stationary operand once, as panels of AP columns. A register tile holds the chains of MR x NV*VL results
 * over all steps: results do not depend on the blocking, each is one chain. Measured: conversion costs 1-3 % of a
 * 128x128x512 tile when it is done panel-wise and the next panel's rows are prefetched meanwhile. */
#include "kern/mm_end.inc.c"

enum { NR = NV * VL };

struct tile {
    int steps;
    const float *a, *b; /* stationary panel (stride AP) and moving panel (stride NR) */
    float *chain;       /* where unfinished chains wait between blocks of steps (stride NR) */
    bool resume, finish;
    float *d;
    ptrdiff_t d_pitch;
    int n; /* valid columns */
    bool acc;
};

MM_INLINE void run_tile(const int mr, const int nv, const struct tile *t)
{
    vf c[MR][NV];
#pragma GCC unroll 16
    for (int i = 0; i < mr; i++)
#pragma GCC unroll 16
        for (int j = 0; j < nv; j++) c[i][j] = t->resume ? v_load(t->chain + i * NR + j * VL) : v_zero();
    const float *a = t->a, *b = t->b;
    for (int k = t->steps; k > 0; k--, a += AP, b += NR) {
        vf x[NV];
#pragma GCC unroll 16
        for (int j = 0; j < nv; j++) x[j] = v_load(b + j * VL);
#pragma GCC unroll 16
        for (int i = 0; i < mr; i++) {
            vf s = v_set1(a + i);
#pragma GCC unroll 16
            for (int j = 0; j < nv; j++) c[i][j] = v_fma(s, x[j], c[i][j]);
        }
    }
#pragma GCC unroll 16
    for (int i = 0; i < mr; i++) {
        float *d = mm_row(t->d, t->d_pitch, i);
#pragma GCC unroll 16
        for (int j = 0; j < nv; j++) {
            if (t->finish)
                finish_vector(c[i][j], t->acc, d + j * VL, t->n - j * VL);
            else
                v_store(t->chain + i * NR + j * VL, c[i][j]);
        }
    }
}
typedef void tile_fn(const struct tile *);
#define TILE(mr, nv) \
    static void tile_##mr##_##nv(const struct tile *t) { run_tile(mr, nv, t); }
#define TILE_ROW(mr) EACH_NV(mr, TILE)
#define TILE_ENTRY(mr, nv) [mr][nv] = tile_##mr##_##nv,
#define TILE_ENTRIES(mr) EACH_NV(mr, TILE_ENTRY)
EACH_MR(TILE_ROW)
static tile_fn *const tiles[MR + 1][NV + 1] = {EACH_MR(TILE_ENTRIES)};

/* ---- packing: rows of an operand as fp32, `width` floats a step, columns past `columns` zero ---- */
MM_INLINE void pack_as(const int dtype, const int width, const struct mm_operand *op, int row0, int rows, int column0,
                       int columns, float *out)
{
    const uint8_t *p = op->data + op->pitch * row0 + (ptrdiff_t)op->elem_bytes * column0;
    for (int r = 0; r < rows; r++, p += op->pitch, out += width) {
#pragma GCC unroll 16
        for (int j = 0; j < width; j += VL) {
            int lanes = columns - j;
            const uint8_t *at = p + (ptrdiff_t)op->elem_bytes * j;
            v_store(out + j, lanes >= VL ? v_widen(dtype, at, VL) : lanes > 0 ? v_widen(dtype, at, lanes) : v_zero());
        }
    }
}
MM_INLINE void pack_mx_as(const int dtype, const int width, const struct mm_operand *op, int row0, int rows, int column0,
                          int columns, float *out)
{
    for (int r = row0; r < row0 + rows; r++, out += 4 * width) {
        const uint8_t *p = op->data + op->pitch * r + (ptrdiff_t)op->elem_bytes * column0;
        const uint8_t *scale = op->scale + op->scale_pitch * r + column0;
        for (int j = 0; j < width; j += VL) {
            vf value[4] = {v_zero(), v_zero(), v_zero(), v_zero()};
            int lanes = mm_min(columns - j, VL);
            if (lanes > 0) v_widen_mx(dtype, p + (ptrdiff_t)op->elem_bytes * j, scale + j, lanes, value);
            for (int q = 0; q < 4; q++) v_store(out + q * width + j, value[q]);
        }
    }
}
MM_INLINE void pack(const int width, const struct mm_operand *op, int row0, int rows, int column0, int columns, float *out)
{
    switch (op->dtype) {
    case VTRN_DT_F32: pack_as(VTRN_DT_F32, width, op, row0, rows, column0, columns, out); return;
    case VTRN_DT_TF32: pack_as(VTRN_DT_TF32, width, op, row0, rows, column0, columns, out); return;
    case VTRN_DT_BF16: pack_as(VTRN_DT_BF16, width, op, row0, rows, column0, columns, out); return;
    case VTRN_DT_F16: pack_as(VTRN_DT_F16, width, op, row0, rows, column0, columns, out); return;
    case VTRN_DT_F8E4M3: pack_as(VTRN_DT_F8E4M3, width, op, row0, rows, column0, columns, out); return;
    case VTRN_DT_F8E4M3FN: pack_as(VTRN_DT_F8E4M3FN, width, op, row0, rows, column0, columns, out); return;
    case VTRN_DT_F8E5M2: pack_as(VTRN_DT_F8E5M2, width, op, row0, rows, column0, columns, out); return;
    case VTRN_DT_F8E5M2X4: pack_mx_as(VTRN_DT_F8E5M2, width, op, row0, rows, column0, columns, out); return;
    case VTRN_DT_F8E4M3FNX4: pack_mx_as(VTRN_DT_F8E4M3FN, width, op, row0, rows, column0, columns, out); return;
    case VTRN_DT_F4E2M1FNX4: pack_mx_as(VTRN_DT_F4E2M1FNX4, width, op, row0, rows, column0, columns, out); return;
    default: VTRN_ASSERT(!"dtype of a tensor-engine operand");
    }
}
static void pack_moving(const struct mm_operand *op, int row0, int rows, int column0, int columns, float *out)
{
    pack(NR, op, row0, rows, column0, columns, out);
}
static void pack_stationary(const struct mm_operand *op, int row0, int rows, int column0, int columns, float *out)
{
    pack(AP, op, row0, rows, column0, columns, out);
}

/* ---- one panel of the destination: MM_BLOCK_M x NR at most ---- */
struct panel {
    const struct mm_product *p;
    float *a, *b, *chain;
    int m0, m, n0, n;
    int next_n; /* columns of the panel after this one, 0: none; its rows are prefetched */
};

static void run_panel_tiles(const struct panel *w, int steps, bool resume, bool finish)
{
    const struct mm_product *p = w->p;
    int nv = mm_div_up(w->n, VL);
    int tile_count = mm_div_up(w->m, MR);
    int prefetched = 0, done = 0;
    for (int m = 0; m < w->m; m += MR) {
        int mr = mm_min(MR, w->m - m);
        struct tile t = {
            .steps = steps,
            .a = w->a + (ptrdiff_t)(m / AP) * AP * steps + m % AP,
            .b = w->b,
            .chain = w->chain + m * NR,
            .resume = resume,
            .finish = finish,
            .d = mm_row(p->d, p->d_pitch, w->m0 + m) + w->n0,
            .d_pitch = p->d_pitch,
            .n = w->n,
            .acc = p->acc,
        };
        if (finish && m + MR < w->m) mm_prefetch(mm_row(t.d, p->d_pitch, MR), p->d_pitch, mm_min(MR, w->m - m - MR), w->n * 4);
        if (finish && w->next_n > 0) {
            done++;
            int upto = p->rows * done / tile_count;
            mm_prefetch_operand(&p->x, prefetched, upto - prefetched, w->n0 + w->n, w->next_n);
            prefetched = upto;
        }
        tiles[mr][nv](&t);
    }
}

static void run_panel(const struct panel *w, bool a_packed)
{
    const struct mm_product *p = w->p;
    int block_rows = MM_BLOCK_STEPS / p->steps;
    int row0 = 0;
    do { /* once also for a product of no rows */
        int rows = mm_min(block_rows, p->rows - row0);
        pack_moving(&p->x, row0, rows, w->n0, w->n, w->b);
        int steps = rows * p->steps;
        for (int m = 0; !a_packed && m < w->m; m += AP)
            pack_stationary(&p->s, row0, rows, w->m0 + m, w->m - m, w->a + (ptrdiff_t)m * steps);
        run_panel_tiles(w, steps, row0 > 0, row0 + rows == p->rows);
        row0 += rows;
    } while (row0 < p->rows);
}

static void run_blocks(const struct mm_product *p, int n_begin)
{
    struct panel w = {
        .p = p,
        .a = (float *)(void *)p->scratch,
        .b = (float *)(void *)(p->scratch + MM_AT_X),
        .chain = (float *)(void *)(p->scratch + MM_AT_CHAIN),
    };
    /* More steps than fit are packed in blocks, again for each panel. The tensor engine never needs it. */
    bool one_block = p->rows * p->steps <= MM_BLOCK_STEPS;
    for (w.m0 = 0; w.m0 < p->s.columns; w.m0 += MM_BLOCK_M) {
        w.m = mm_min(MM_BLOCK_M, p->s.columns - w.m0);
        int panels = mm_div_up(p->x.columns - n_begin, NR);
        bool a_packed = false;
        for (w.n0 = n_begin; w.n0 < p->x.columns; w.n0 += w.n, panels--) {
            /* equal widths, so that no panel is too narrow to hide the latency of fma */
            int left = p->x.columns - w.n0;
            w.n = mm_min(left, mm_div_up(mm_div_up(left, VL), panels) * VL);
            w.next_n = one_block ? mm_min(NR, left - w.n) : 0;
            run_panel(&w, a_packed);
            a_packed = one_block;
        }
    }
}

/* ---- few stationary columns (decoding): each moving element is used m <= DIRECT_M times, so it is converted in
 * registers on its way into the chains and never written back ---- */
MM_INLINE void direct_tile(const int dtype, const int mr, const int nv, const struct mm_product *p, const float *a, int n0)
{
    vf c[4][8];
#pragma GCC unroll 16
    for (int i = 0; i < mr; i++)
#pragma GCC unroll 16
        for (int j = 0; j < nv; j++) c[i][j] = v_zero();
    const uint8_t *x = p->x.data + (ptrdiff_t)p->x.elem_bytes * n0;
    for (int k = p->rows; k > 0; k--, a += AP, x += p->x.pitch) {
#pragma GCC unroll 16
        for (int j = 0; j < nv; j++) {
            vf value = v_widen(dtype, x + (ptrdiff_t)p->x.elem_bytes * VL * j, VL);
#pragma GCC unroll 16
            for (int i = 0; i < mr; i++) c[i][j] = v_fma(v_set1(a + i), value, c[i][j]);
        }
    }
#pragma GCC unroll 16
    for (int i = 0; i < mr; i++)
#pragma GCC unroll 16
        for (int j = 0; j < nv; j++) finish_vector(c[i][j], p->acc, mm_row(p->d, p->d_pitch, i) + n0 + j * VL, VL);
}
MM_INLINE int direct_rows(const int dtype, const int mr, const struct mm_product *p, const float *a)
{
    const int nv = direct_vectors(mr);
    int n0 = 0;
    for (; n0 + nv * VL <= p->x.columns; n0 += nv * VL) direct_tile(dtype, mr, nv, p, a, n0);
    return n0;
}
MM_INLINE int direct_as(const int dtype, const struct mm_product *p, const float *a)
{
    switch (p->s.columns) {
    case 1: return direct_rows(dtype, 1, p, a);
    case 2: return direct_rows(dtype, 2, p, a);
    case 3: return direct_rows(dtype, 3, p, a);
    default: return direct_rows(dtype, 4, p, a);
    }
}
/* Computes the leftmost columns as far as whole groups of vectors go; returns how many. */
static int run_direct(const struct mm_product *p)
{
    if (p->s.columns > DIRECT_M || p->steps != 1 || p->rows > MM_SCRATCH_S / (AP * 4) ||
        p->x.columns < direct_vectors(p->s.columns) * VL)
        return 0;
    float *a = (float *)(void *)p->scratch;
    pack_stationary(&p->s, 0, p->rows, 0, p->s.columns, a);
    switch (p->x.dtype) {
    case VTRN_DT_F32: return direct_as(VTRN_DT_F32, p, a);
    case VTRN_DT_BF16: return direct_as(VTRN_DT_BF16, p, a);
    case VTRN_DT_F16: return direct_as(VTRN_DT_F16, p, a);
    case VTRN_DT_F8E4M3: return direct_as(VTRN_DT_F8E4M3, p, a);
    case VTRN_DT_F8E4M3FN: return direct_as(VTRN_DT_F8E4M3FN, p, a);
    case VTRN_DT_F8E5M2: return direct_as(VTRN_DT_F8E5M2, p, a);
    default: return 0;
    }
}

/* All of a product on fp32 fma. */
static void fma_product(const struct mm_product *p)
{
    if (p->s.columns <= 0 || p->x.columns <= 0) return;
    if (mm_is_narrow(p, VL)) {
        vtrn_mm_run_narrow(p, fma_product);
        return;
    }
    int done = run_direct(p);
    if (done < p->x.columns) run_blocks(p, done);
}
