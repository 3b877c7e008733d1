/* The tile product on fp32 fma vectors, one text for every level: the including file (x86/mm_avx2.c, x86/mm_avx512.c,
 * arm/mm_neon.c) brings the words it is written in:
 *   enum { VL, MR, NV }       lanes of a vector; a register tile is MR rows x NV vectors; MR divides VL
 *   vf, v_zero v_load v_store v_load_part v_store_part v_set1 v_fma v_add
 *   v_any_nan v_canonical                 whether a lane is NaN; 0x7fc00000 for every NaN
 *   v_widen(dtype, p, lanes)                a vector of fp32 from `lanes` elements, the others 0
 *   v_widen_mx(dtype, p, scale, lanes, out) four vectors of scaled fp32 from `lanes` packed MX elements
 *   DIRECT_M, direct_vectors(m)             see direct_tile
 *
 * Shape: the moving operand is converted to fp32 a panel of NV*VL columns at a time (so it stays in the L1 cache for all
 * of M), the stationary operand once, as panels of VL columns. A register tile holds the chains of MR x NV*VL results
 * over all steps: results do not depend on the blocking, each is one chain. */
#include "kern/mm_end.inc.c"

enum { NR = NV * VL };
_Static_assert(VL % MR == 0 && NR * 4 <= (int)MM_PANEL_BYTES && NV <= (int)MM_TILE_VECTORS, "blocks of mm_int.h");

struct tile {
    int steps;
    const float *a, *b; /* a stationary panel, VL values a step, and a moving panel, NR values a step */
    float *chain;       /* where unfinished chains wait between blocks of steps (stride NR) */
    bool resume, finish;
    float *d;
    ptrdiff_t d_pitch;
    int n; /* valid columns */
    bool acc;
};

MM_INLINE void multiply(const int mr, const int nv, vf c[][MM_TILE_VECTORS], const float *a, const vf *x)
{
#pragma GCC unroll 16
    for (int i = 0; i < mr; i++) {
        vf s = v_set1(a + i);
#pragma GCC unroll 16
        for (int j = 0; j < nv; j++) c[i][j] = v_fma(s, x[j], c[i][j]);
    }
}
MM_INLINE void run_step(const int mr, const int nv, vf c[][MM_TILE_VECTORS], const float *a, const float *b)
{
    vf x[NV];
#pragma GCC unroll 16
    for (int j = 0; j < nv; j++) x[j] = v_load(b + j * VL);
    multiply(mr, nv, c, a, x);
}
MM_INLINE void run_tile(const int mr, const int nv, const struct tile *t)
{
    vf c[MR][MM_TILE_VECTORS];
#pragma GCC unroll 16
    for (int i = 0; i < mr; i++)
#pragma GCC unroll 16
        for (int j = 0; j < nv; j++) c[i][j] = t->resume ? v_load(t->chain + i * NR + j * VL) : v_zero();
    prefetch_tile(mr, nv, t->d, t->d_pitch);
    const float *a = t->a, *b = t->b;
    int k = t->steps;
    /* 16 turns for 128 steps: few enough for the branch at the end to be foreseen, so that the next tile's steps start
     * while this one's last are under way */
    for (; k >= 8; k -= 8) {
#pragma GCC unroll 8
        for (int u = 0; u < 8; u++, a += VL, b += NR) run_step(mr, nv, c, a, b);
    }
    for (; k > 0; k--, a += VL, b += NR) run_step(mr, nv, c, a, b);
    if (VTRN_LIKELY(t->finish)) {
        finish_tile(mr, nv, c, t->acc, t->d, t->d_pitch, t->n);
        return;
    }
#pragma GCC unroll 16
    for (int i = 0; i < mr; i++)
#pragma GCC unroll 16
        for (int j = 0; j < nv; j++) v_store(t->chain + i * NR + j * VL, c[i][j]);
}
typedef void tile_fn(const struct tile *);
#define TILE(mr, nv) \
    MM_TILE static void tile_##mr##_##nv(const struct tile *t) { run_tile(mr, nv, t); }
#define TILE_ROW(mr)       EACH_NV(mr, TILE)
#define TILE_ENTRY(mr, nv) [mr][nv] = tile_##mr##_##nv,
#define TILE_ENTRIES(mr)   EACH_NV(mr, TILE_ENTRY)
EACH_MR(TILE_ROW)
static tile_fn *const tiles[MR + 1][NV + 1] = { EACH_MR(TILE_ENTRIES) };

/* The topmost tile of a panel converts the moving operand itself, from `x`, and leaves it in t->b for the tiles below: spread
 * over the steps the conversion is hidden by fma, as a phase before them it would cost 4-6 % of a 128x128x512 tile. */
MM_INLINE void run_first_tile(const int dtype, const int nv, const struct tile *t, const struct mm_operand *x, float *b)
{
    vf c[MR][MM_TILE_VECTORS];
#pragma GCC unroll 16
    for (int i = 0; i < MR; i++)
#pragma GCC unroll 16
        for (int j = 0; j < nv; j++) c[i][j] = v_zero();
    prefetch_tile(MR, nv, t->d, t->d_pitch);
    const float *a = t->a;
    const uint8_t *row = x->data;
    const ptrdiff_t pitch = x->pitch, vector_bytes = (ptrdiff_t)x->elem_bytes * VL; /* locals: stores of vectors may alias anything */
    const int last = nv - 1, lanes = t->n - last * VL;
    for (int k = t->steps; k > 0; k--, a += VL, b += NR, row += pitch) {
        vf value[NV];
#pragma GCC unroll 16
        for (int j = 0; j < nv; j++) {
            value[j] = v_widen(dtype, row + vector_bytes * j, j < last ? VL : lanes);
            v_store(b + j * VL, value[j]);
        }
        multiply(MR, nv, c, a, value);
    }
    finish_tile(MR, nv, c, t->acc, t->d, t->d_pitch, t->n);
}
MM_INLINE void first_tile(const int nv, const struct tile *t, const struct mm_operand *x, float *b)
{
    switch (x->dtype) {
    case VTRN_DT_F32: run_first_tile(VTRN_DT_F32, nv, t, x, b); return;
    case VTRN_DT_TF32: run_first_tile(VTRN_DT_TF32, nv, t, x, b); return;
    case VTRN_DT_BF16: run_first_tile(VTRN_DT_BF16, nv, t, x, b); return;
    case VTRN_DT_F16: run_first_tile(VTRN_DT_F16, nv, t, x, b); return;
    case VTRN_DT_F8E4M3: run_first_tile(VTRN_DT_F8E4M3, nv, t, x, b); return;
    case VTRN_DT_F8E4M3FN: run_first_tile(VTRN_DT_F8E4M3FN, nv, t, x, b); return;
    default: run_first_tile(VTRN_DT_F8E5M2, nv, t, x, b); return;
    }
}
typedef void first_tile_fn(const struct tile *, const struct mm_operand *, float *);
#define FIRST_TILE(mr, nv) \
    MM_TILE static void first_tile_##nv(const struct tile *t, const struct mm_operand *x, float *b) { first_tile(nv, t, x, b); }
#define FIRST_TILE_ENTRY(mr, nv) [nv] = first_tile_##nv,
EACH_NV(MR, FIRST_TILE)
static first_tile_fn *const first_tiles[NV + 1] = { EACH_NV(MR, FIRST_TILE_ENTRY) };

/* ---- packing: rows of an operand as fp32, columns past `columns` zero ----
 * Vector j of step k goes to data + k * step + j * vector. A moving panel is NR wide. The stationary operand becomes panels
 * of one vector, since a tile reads only MR values of a step: the lines it reads then lie side by side and fill all sets of
 * the L1 cache, not every second or fourth. */
struct packed {
    float *data;
    ptrdiff_t step, vector;
};
MM_INLINE void pack_as(const int dtype, const struct mm_operand *op, int row0, int rows, int column0, int columns,
                       const struct packed *out)
{
    const uint8_t *p = op->data + op->pitch * row0 + (ptrdiff_t)op->elem_bytes * column0;
    const ptrdiff_t pitch = op->pitch, elem_bytes = op->elem_bytes, step = out->step, vector = out->vector;
    float *to = out->data;
    for (int r = 0; r < rows; r++, p += pitch, to += step) {
#pragma GCC unroll 16
        for (int j = 0; j < NV; j++) {
            int lanes = columns - j * VL;
            if (lanes <= 0) break;
            const uint8_t *at = p + elem_bytes * VL * j;
            v_store(to + vector * j, lanes >= VL ? v_widen(dtype, at, VL) : v_widen(dtype, at, lanes));
        }
    }
}
MM_INLINE void pack_mx_as(const int dtype, const struct mm_operand *op, int row0, int rows, int column0, int columns,
                          const struct packed *out)
{
    float *to = out->data;
    for (int r = row0; r < row0 + rows; r++, to += 4 * out->step) {
        const uint8_t *p = op->data + op->pitch * r + (ptrdiff_t)op->elem_bytes * column0;
        const uint8_t *scale = op->scale + op->scale_pitch * r + column0;
        for (int j = 0; j * VL < mm_min(columns, NR); j++) {
            vf value[4];
            int lanes = mm_min(columns - j * VL, VL);
            v_widen_mx(dtype, p + (ptrdiff_t)op->elem_bytes * VL * j, scale + VL * j, lanes, value);
            for (int q = 0; q < 4; q++) v_store(to + out->step * q + out->vector * j, value[q]);
        }
    }
}
static void pack(const struct mm_operand *op, int row0, int rows, int column0, int columns, const struct packed *out)
{
    switch (op->dtype) {
    case VTRN_DT_F32: pack_as(VTRN_DT_F32, op, row0, rows, column0, columns, out); return;
    case VTRN_DT_TF32: pack_as(VTRN_DT_TF32, op, row0, rows, column0, columns, out); return;
    case VTRN_DT_BF16: pack_as(VTRN_DT_BF16, op, row0, rows, column0, columns, out); return;
    case VTRN_DT_F16: pack_as(VTRN_DT_F16, op, row0, rows, column0, columns, out); return;
    case VTRN_DT_F8E4M3: pack_as(VTRN_DT_F8E4M3, op, row0, rows, column0, columns, out); return;
    case VTRN_DT_F8E4M3FN: pack_as(VTRN_DT_F8E4M3FN, op, row0, rows, column0, columns, out); return;
    case VTRN_DT_F8E5M2: pack_as(VTRN_DT_F8E5M2, op, row0, rows, column0, columns, out); return;
    case VTRN_DT_F8E5M2X4: pack_mx_as(VTRN_DT_F8E5M2, op, row0, rows, column0, columns, out); return;
    case VTRN_DT_F8E4M3FNX4: pack_mx_as(VTRN_DT_F8E4M3FN, op, row0, rows, column0, columns, out); return;
    case VTRN_DT_F4E2M1FNX4: pack_mx_as(VTRN_DT_F4E2M1FNX4, op, row0, rows, column0, columns, out); return;
    default: VTRN_ASSERT(!"dtype of a tensor-engine operand");
    }
}
static void pack_moving(const struct mm_operand *op, int row0, int rows, int column0, int columns, float *b)
{
    pack(op, row0, rows, column0, columns, &(struct packed){ b, NR, VL });
}
/* NR columns of a block of `steps` steps, of which column `m` is the first: a whole number of panels from `a` on. */
static void pack_stationary(const struct mm_operand *op, int row0, int rows, int column0, int columns, float *a, int m, int steps)
{
    pack(op, row0, rows, column0, columns, &(struct packed){ a + (ptrdiff_t)m * steps, VL, (ptrdiff_t)VL * steps });
}

/* ---- blocks of the destination: MM_BLOCK_M rows, cut into panels of NR columns ---- */
struct block {
    const struct mm_product *p;
    float *a, *b, *chain;
    int m0, m;
};
/* Equal widths of what is left, so that no panel is too narrow to hide the latency of fma. */
static int panel_width(int columns)
{
    int vectors = mm_div_up(columns, VL);
    return mm_min(columns, mm_div_up(vectors, mm_div_up(vectors, NV)) * VL);
}
static struct tile tile_at(const struct block *w, int steps, int m, int n0, int n)
{
    const struct mm_product *p = w->p;
    return (struct tile){
        .steps = steps,
        .a = w->a + (ptrdiff_t)(m / VL) * VL * steps + m % VL,
        .b = w->b,
        .chain = w->chain + m * NR,
        .resume = false,
        .finish = true,
        .d = mm_row(p->d, p->d_pitch, w->m0 + m) + n0,
        .d_pitch = p->d_pitch,
        .n = n,
        .acc = p->acc,
    };
}
static void run_panel(const struct block *w, int n0, int n, bool pack_a)
{
    const struct mm_product *p = w->p;
    const int steps = p->rows * p->steps, nv = mm_div_up(n, VL), tiles_m = mm_div_up(w->m, MR);
    const int next_n0 = n0 + n, next_n = mm_min(NR, p->x.columns - next_n0);
    const bool fused = w->m >= MR && p->steps == 1;
    if (pack_a) mm_prefetch_rows(&p->x, 0, p->rows, n0, n); /* arrives while the stationary operand is packed */
    if (!fused) pack_moving(&p->x, 0, p->rows, n0, n, w->b);
    for (int i = 0; i < tiles_m; i++) {
        int m = i * MR, left = w->m - m;
        struct tile t = tile_at(w, steps, m, n0, n);
        if (pack_a && m % NR == 0) pack_stationary(&p->s, 0, p->rows, w->m0 + m, left, w->a, m, steps);
        if (next_n > 0) {
            int begin = mm_share(p->rows, i, tiles_m), end = mm_share(p->rows, i + 1, tiles_m);
            mm_prefetch_rows(&p->x, begin, end - begin, next_n0, next_n);
        }
        if (p->next != NULL) mm_prefetch_next(p->next, NR, n0 * tiles_m + i * n, n, p->x.columns * tiles_m);
        if (fused && i == 0) {
            struct mm_operand x = mm_columns(&p->x, n0, n);
            first_tiles[nv](&t, &x, w->b);
        } else {
            tiles[mm_min(MR, left)][nv](&t);
        }
    }
}

/* More steps than fit: blocks of them one after the other, the chains wait in scratch. The tensor engine never needs it. */
static void run_long_block(const struct block *w, int n_begin)
{
    const struct mm_product *p = w->p;
    const int block_rows = MM_BLOCK_STEPS / p->steps;
    for (int n0 = n_begin, n; n0 < p->x.columns; n0 += n) {
        n = panel_width(p->x.columns - n0);
        for (int row0 = 0; row0 < p->rows; row0 += block_rows) {
            int rows = mm_min(block_rows, p->rows - row0), steps = rows * p->steps;
            pack_moving(&p->x, row0, rows, n0, n, w->b);
            for (int m = 0; m < w->m; m += NR) pack_stationary(&p->s, row0, rows, w->m0 + m, w->m - m, w->a, m, steps);
            for (int m = 0; m < w->m; m += MR) {
                struct tile t = tile_at(w, steps, m, n0, n);
                t.resume = row0 > 0;
                t.finish = row0 + rows == p->rows;
                tiles[mm_min(MR, w->m - m)][mm_div_up(n, VL)](&t);
            }
        }
    }
}

/* ---- few stationary columns (decoding): each moving element is used m <= DIRECT_M times, so it is converted in
 * registers on its way into the chains and never written back ---- */
MM_INLINE void direct_tile(const int dtype, const int mr, const int nv, const struct mm_product *p, const float *a, int n0)
{
    vf c[DIRECT_M][MM_TILE_VECTORS];
#pragma GCC unroll 16
    for (int i = 0; i < mr; i++)
#pragma GCC unroll 16
        for (int j = 0; j < nv; j++) c[i][j] = v_zero();
    const uint8_t *x = p->x.data + (ptrdiff_t)p->x.elem_bytes * n0;
    for (int k = p->rows; k > 0; k--, a += VL, x += p->x.pitch) {
#pragma GCC unroll 16
        for (int j = 0; j < nv; j++) {
            vf value = v_widen(dtype, x + (ptrdiff_t)p->x.elem_bytes * VL * j, VL);
#pragma GCC unroll 16
            for (int i = 0; i < mr; i++) c[i][j] = v_fma(v_set1(a + i), value, c[i][j]);
        }
    }
    finish_tile(mr, nv, c, p->acc, p->d + n0, p->d_pitch, nv * VL);
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
MM_TILE static int run_direct(const struct mm_product *p)
{
    if (p->s.columns > DIRECT_M || p->steps != 1 || p->rows > MM_SCRATCH_S / (VL * 4) ||
        p->x.columns < direct_vectors(p->s.columns) * VL)
        return 0;
    float *a = (float *)(void *)p->scratch;
    pack_stationary(&p->s, 0, p->rows, 0, p->s.columns, a, 0, p->rows);
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
    int n_begin = run_direct(p);
    if (n_begin >= p->x.columns) return;
    struct block w = {
        .p = p,
        .a = (float *)(void *)p->scratch,
        .b = (float *)(void *)(p->scratch + MM_AT_X),
        .chain = (float *)(void *)(p->scratch + MM_AT_CHAIN),
    };
    for (w.m0 = 0; w.m0 < p->s.columns; w.m0 += MM_BLOCK_M) {
        w.m = mm_min(MM_BLOCK_M, p->s.columns - w.m0);
        if (p->rows * p->steps > MM_BLOCK_STEPS) {
            run_long_block(&w, n_begin);
            continue;
        }
        for (int n0 = n_begin, n; n0 < p->x.columns; n0 += n) {
            n = panel_width(p->x.columns - n0);
            run_panel(&w, n0, n, n0 == n_begin);
        }
    }
}
