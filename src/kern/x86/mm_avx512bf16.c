/* The tile product on VDPBF16PS, for operands whose values are bf16 exactly: bf16, fp8, and scaled MX values. Twice the
 * speed of fp32 fma, and the same bits: mm_pairs_avx512bf16.h says why and when, mm_selftest_avx512bf16.c checks it on this
 * processor before the level is used. A panel of the destination whose operands fail the test goes to the fma version as a
 * whole, before anything of it has been written.
 *
 * Register tiles: 4 x 4 (8 loads for 16 instructions) on a panel of 64 columns, 16 KiB of pairs at 128 steps. Narrower
 * panels use up to 8 rows, since the latency of the instruction (6 cycles, up to two a cycle) asks for 12 chains. */
#include "kern/x86/mm_pairs_avx512bf16.h"

#include "kern/mm_end.inc.c"

enum { MR = 8, NV = 4, NR = PAIRS_WIDTH, FEW_M = 3 };
_Static_assert((int)NR == NV * (int)VL && NR * 4 <= (int)MM_PANEL_BYTES, "blocks of mm_int.h");
#define EACH_TILE(X) \
    X(1, 1) \
    X(2, 1) \
    X(3, 1) X(4, 1) X(5, 1) X(6, 1) X(7, 1) X(8, 1) X(1, 2) X(2, 2) X(3, 2) X(4, 2) X(5, 2) X(6, 2) X(7, 2) X(8, 2) X(1, 3) \
        X(2, 3) X(3, 3) X(4, 3) X(1, 4) X(2, 4) X(3, 4) X(4, 4)
static int rows_of_tile(int nv) { return nv <= 2 ? 8 : 4; }

struct tile {
    int pairs;
    const uint32_t *a, *b; /* a stationary panel, VL pairs a row, and a moving panel, NR pairs a row */
    float *d;
    ptrdiff_t d_pitch;
    int n; /* valid columns */
    bool acc;
};
MM_INLINE void multiply(const int mr, const int nv, vf c[][MM_TILE_VECTORS], const uint32_t *a, const __m512i *x)
{
#pragma GCC unroll 16
    for (int i = 0; i < mr; i++) {
        __m512bh s = (__m512bh)_mm512_set1_epi32((int)a[i]);
#pragma GCC unroll 16
        for (int j = 0; j < nv; j++) c[i][j] = _mm512_dpbf16_ps(c[i][j], s, (__m512bh)x[j]);
    }
}
MM_INLINE void run_step(const int mr, const int nv, vf c[][MM_TILE_VECTORS], const uint32_t *a, const uint32_t *b)
{
    __m512i x[NV];
#pragma GCC unroll 16
    for (int j = 0; j < nv; j++) x[j] = _mm512_loadu_si512(b + j * VL);
    multiply(mr, nv, c, a, x);
}
MM_INLINE void run_tile(const int mr, const int nv, const struct tile *t)
{
    vf c[MR][MM_TILE_VECTORS];
#pragma GCC unroll 16
    for (int i = 0; i < mr; i++)
#pragma GCC unroll 16
        for (int j = 0; j < nv; j++) c[i][j] = v_zero();
    prefetch_tile(mr, nv, t->d, t->d_pitch);
    const uint32_t *a = t->a, *b = t->b;
    int k = t->pairs;
    for (; k >= 4; k -= 4) { /* unrolled for the reason given in mm_fma.inc.c */
#pragma GCC unroll 4
        for (int u = 0; u < 4; u++, a += VL, b += NR) run_step(mr, nv, c, a, b);
    }
    for (; k > 0; k--, a += VL, b += NR) run_step(mr, nv, c, a, b);
    finish_tile(mr, nv, c, t->acc, t->d, t->d_pitch, t->n);
}
typedef void tile_fn(const struct tile *);
#define TILE(mr, nv) \
    MM_TILE static void tile_##mr##_##nv(const struct tile *t) { run_tile(mr, nv, t); }
#define TILE_ENTRY(mr, nv) [mr][nv] = tile_##mr##_##nv,
EACH_TILE(TILE)
static tile_fn *const tiles[MR + 1][NV + 1] = { EACH_TILE(TILE_ENTRY) };

/* The topmost tile of a panel packs the moving operand `x` (columns of the panel, `rows` rows) itself, into b for the tiles
 * below, hidden by the multiplications. Whether the pairs are exact is known after it and before its results are stored. */
struct first {
    const struct mm_operand *x;
    int rows, s_exponent;
    uint32_t *b;
};
MM_INLINE bool run_first_tile(const int dtype, const int mr, const int nv, const struct tile *t, const struct first *f)
{
    vf c[MR][MM_TILE_VECTORS];
#pragma GCC unroll 16
    for (int i = 0; i < mr; i++)
#pragma GCC unroll 16
        for (int j = 0; j < nv; j++) c[i][j] = v_zero();
    prefetch_tile(mr, nv, t->d, t->d_pitch);
    const struct f8_table table = load_f8_table(dtype);
    const struct pairs_mask mask = pairs_mask(t->n), none = pairs_mask(0);
    struct pairs_seen seen = pairs_seen_none();
    const ptrdiff_t pitch = f->x->pitch; /* a local: stores of vectors may alias anything */
    const uint8_t *row = f->x->data;
    const uint32_t *a = t->a;
    uint32_t *b = f->b;
    for (int rows = f->rows; rows > 0; rows -= 2, row += 2 * pitch, a += VL, b += NR) {
        __m512i x[NV];
        if (VTRN_LIKELY(rows > 1)) load_pairs(dtype, nv, &table, row, row + pitch, &mask, &mask, &seen, x);
        else load_pairs(dtype, nv, &table, row, row, &mask, &none, &seen, x);
#pragma GCC unroll 16
        for (int j = 0; j < nv; j++) _mm512_storeu_si512(b + j * VL, x[j]);
        multiply(mr, nv, c, a, x);
    }
    if (!pairs_exact(f->s_exponent, pairs_exponent(dtype, &seen))) return false;
    finish_tile(mr, nv, c, t->acc, t->d, t->d_pitch, t->n);
    return true;
}
MM_INLINE bool first_tile(const int mr, const int nv, const struct tile *t, const struct first *f)
{
    switch (f->x->dtype) {
    case VTRN_DT_BF16: return run_first_tile(VTRN_DT_BF16, mr, nv, t, f);
    case VTRN_DT_F8E5M2: return run_first_tile(VTRN_DT_F8E5M2, mr, nv, t, f);
    case VTRN_DT_F8E4M3: return run_first_tile(VTRN_DT_F8E4M3, mr, nv, t, f);
    default: return run_first_tile(VTRN_DT_F8E4M3FN, mr, nv, t, f);
    }
}
typedef bool first_tile_fn(const struct tile *, const struct first *);
MM_TILE static bool first_tile_1(const struct tile *t, const struct first *f) { return first_tile(8, 1, t, f); }
MM_TILE static bool first_tile_2(const struct tile *t, const struct first *f) { return first_tile(8, 2, t, f); }
MM_TILE static bool first_tile_3(const struct tile *t, const struct first *f) { return first_tile(4, 3, t, f); }
MM_TILE static bool first_tile_4(const struct tile *t, const struct first *f) { return first_tile(4, 4, t, f); }
static first_tile_fn *const first_tiles[NV + 1] = { NULL, first_tile_1, first_tile_2, first_tile_3, first_tile_4 };

struct block { /* MM_BLOCK_M rows of the destination */
    const struct mm_product *p;
    uint32_t *a, *b;
    int m0, m, pairs, s_exponent;
};

/* One panel of the destination, unless its pairs are not exact: then nothing is stored and the answer is false. Meanwhile the
 * rows of the next panel are fetched. */
static bool run_panel(const struct block *w, int n0, int n)
{
    const struct mm_product *p = w->p;
    const int nv = mm_div_up(n, VL), step = rows_of_tile(nv), tiles_m = mm_div_up(w->m, step);
    const int next_n0 = n0 + n, next_n = mm_min(NR, p->x.columns - next_n0);
    const bool fused = w->m >= step && p->steps == 1;
    if (!fused && !pairs_exact(w->s_exponent, pack_pairs(&p->x, p->rows, n0, n, &(struct packed_pairs){ w->b, NR, VL })))
        return false;
    for (int i = 0; i < tiles_m; i++) {
        int m = i * step, left = w->m - m;
        struct tile t = {
            .pairs = w->pairs,
            .a = w->a + (ptrdiff_t)(m / VL) * VL * w->pairs + m % VL,
            .b = w->b,
            .d = mm_row(p->d, p->d_pitch, w->m0 + m) + n0,
            .d_pitch = p->d_pitch,
            .n = n,
            .acc = p->acc,
        };
        if (next_n > 0) {
            int begin = mm_share(p->rows, i, tiles_m), end = mm_share(p->rows, i + 1, tiles_m);
            mm_prefetch_rows(&p->x, begin, end - begin, next_n0, next_n);
        }
        if (p->next != NULL) mm_prefetch_next(p->next, NR, n0 * tiles_m + i * n, n, p->x.columns * tiles_m);
        if (fused && i == 0) {
            struct mm_operand x = mm_columns(&p->x, n0, n);
            struct first f = { &x, p->rows, w->s_exponent, w->b };
            if (!first_tiles[nv](&t, &f)) return false;
        } else {
            tiles[mm_min(step, left)][nv](&t);
        }
    }
    return true;
}

/* The destination columns [n0, n1) of the block, on fma. */
static void run_on_fma(const struct block *w, int n0, int n1)
{
    if (n0 >= n1) return;
    struct mm_product part = *w->p;
    part.s = mm_columns(&w->p->s, w->m0, w->m);
    part.x = mm_columns(&w->p->x, n0, n1 - n0);
    part.d = mm_row(w->p->d, w->p->d_pitch, w->m0) + n0;
    vtrn_mm_fma_avx512(&part);
}

static void run_block(struct block *w)
{
    const struct mm_product *p = w->p;
    w->s_exponent = EXPONENT_ALL_ZERO;
    mm_prefetch_rows(&p->x, 0, p->rows, 0, mm_min(NR, p->x.columns)); /* arrives while the stationary operand is packed */
    for (int m = 0; m < w->m; m += NR) {
        struct packed_pairs panels = { w->a + (ptrdiff_t)m * w->pairs, VL, (ptrdiff_t)VL * w->pairs };
        int exponent = pack_pairs(&p->s, p->rows, w->m0 + m, w->m - m, &panels);
        w->s_exponent = mm_min(w->s_exponent, exponent);
    }
    int done = 0; /* columns before it are finished */
    if (w->s_exponent > EXPONENT_NEVER) {
        for (int n0 = 0, n; n0 < p->x.columns; n0 += n) {
            /* equal widths, so that no panel is too narrow to hide the latency */
            int vectors = mm_div_up(p->x.columns - n0, VL);
            n = mm_min(p->x.columns - n0, mm_div_up(vectors, mm_div_up(vectors, NV)) * VL);
            if (!run_panel(w, n0, n)) continue;
            run_on_fma(w, done, n0);
            done = n0 + n;
        }
    }
    run_on_fma(w, done, p->x.columns);
}

static void pairs_product(const struct mm_product *p)
{
    if (p->s.columns <= 0 || p->x.columns <= 0) return;
    bool possible = pairs_possible(p->s.dtype) && pairs_possible(p->x.dtype);
    if (possible && mm_is_narrow(p, VL)) {
        vtrn_mm_run_narrow(p, pairs_product);
        return;
    }
    int steps = p->rows * p->steps;
    /* For few stationary columns fma on bf16 as it is beats packing; more steps than MM_BLOCK_STEPS no engine needs. */
    bool few = p->s.columns <= FEW_M && p->x.dtype == VTRN_DT_BF16;
    if (!possible || few || steps == 0 || steps > MM_BLOCK_STEPS) {
        vtrn_mm_fma_avx512(p);
        return;
    }
    struct block w = { .p = p, .a = (uint32_t *)(void *)(p->scratch + MM_AT_PAIRS), .pairs = mm_div_up(steps, 2) };
    w.b = w.a + (MM_BLOCK_M + NR) * MM_BLOCK_STEPS / 2;
    for (w.m0 = 0; w.m0 < p->s.columns; w.m0 += MM_BLOCK_M) {
        w.m = mm_min(MM_BLOCK_M, p->s.columns - w.m0);
        run_block(&w);
    }
}

static void mm_avx512bf16(const struct vtrn_mm *mm)
{
    struct mm_product p = mm_product_of(mm);
    pairs_product(&p);
}
static void mm_mx_avx512bf16(const struct vtrn_mm_mx *mm)
{
    struct mm_product p = mm_product_of_mx(mm);
    pairs_product(&p);
}
void vtrn_mm_init_avx512bf16(struct vtrn_kern *kern)
{
    vtrn_mm_init_avx512(kern);
    if (!vtrn_mm_bf16_selftest()) return;
    kern->mm = mm_avx512bf16;
    kern->mm_mx = mm_mx_avx512bf16;
}
