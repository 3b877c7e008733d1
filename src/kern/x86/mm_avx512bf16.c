/* The tile product on VDPBF16PS, for operands whose values are bf16 exactly: bf16, fp8, and scaled MX values. Twice the
 * speed of fp32 fma, and the same bits: mm_pairs_avx512.h says why and when, mm_selftest_avx512bf16.c checks it on this
 * processor before the level is used. A panel of the destination whose operands fail the test goes to the fma version as a
 * whole, before anything of it has been written.
 *
 * Register tiles: 4 x 4 (8 loads for 16 instructions) on a panel of 64 columns, 16 KiB of pairs at 128 steps. Narrower
 * panels use up to 8 rows, since the latency of the instruction (6 cycles, up to two a cycle) asks for 12 chains. */
#include "kern/x86/mm_pairs_avx512.h"

#include "kern/mm_end.inc.c"

enum { MR = 8, NV = 4, NR = NV * VL, AP = 32, FEW_M = 4 };
#define EACH_TILE(X) \
    X(1, 1) X(2, 1) X(3, 1) X(4, 1) X(5, 1) X(6, 1) X(7, 1) X(8, 1) \
    X(1, 2) X(2, 2) X(3, 2) X(4, 2) X(5, 2) X(6, 2) X(7, 2) X(8, 2) \
    X(1, 3) X(2, 3) X(3, 3) X(4, 3) X(1, 4) X(2, 4) X(3, 4) X(4, 4)
static int rows_of_tile(int nv) { return nv <= 2 ? 8 : 4; }

struct tile {
    int pairs;
    const uint32_t *a, *b; /* stationary pairs (stride AP) and moving pairs (stride NR) */
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
        for (int j = 0; j < nv; j++) c[i][j] = v_zero();
    const uint32_t *a = t->a, *b = t->b;
    for (int k = t->pairs; k > 0; k--, a += AP, b += NR) {
        __m512bh x[NV];
#pragma GCC unroll 16
        for (int j = 0; j < nv; j++) x[j] = (__m512bh)_mm512_loadu_si512(b + j * VL);
#pragma GCC unroll 16
        for (int i = 0; i < mr; i++) {
            __m512bh s = (__m512bh)_mm512_set1_epi32((int)a[i]);
#pragma GCC unroll 16
            for (int j = 0; j < nv; j++) c[i][j] = _mm512_dpbf16_ps(c[i][j], s, x[j]);
        }
    }
#pragma GCC unroll 16
    for (int i = 0; i < mr; i++)
#pragma GCC unroll 16
        for (int j = 0; j < nv; j++)
            finish_vector(c[i][j], t->acc, mm_row(t->d, t->d_pitch, i) + j * VL, t->n - j * VL);
}
typedef void tile_fn(const struct tile *);
#define TILE(mr, nv) \
    static void tile_##mr##_##nv(const struct tile *t) { run_tile(mr, nv, t); }
#define TILE_ENTRY(mr, nv) [mr][nv] = tile_##mr##_##nv,
EACH_TILE(TILE)
static tile_fn *const tiles[MR + 1][NV + 1] = {EACH_TILE(TILE_ENTRY)};

static int pack_moving(const struct mm_operand *op, int rows, int column0, int columns, uint32_t *out)
{
    return pack_pairs(NR, op, rows, column0, columns, out);
}
static int pack_stationary(const struct mm_operand *op, int rows, int column0, int columns, uint32_t *out)
{
    return pack_pairs(AP, op, rows, column0, columns, out);
}

struct block { /* MM_BLOCK_M rows of the destination */
    const struct mm_product *p;
    uint32_t *a, *b;
    int m0, m, pairs;
};

/* One panel; meanwhile the rows of the next `next_n` moving columns are fetched. */
static void run_panel(const struct block *w, int n0, int n, int next_n)
{
    const struct mm_product *p = w->p;
    int nv = mm_div_up(n, VL), step = rows_of_tile(nv);
    int tile_count = mm_div_up(w->m, step), done = 0, prefetched = 0;
    for (int m = 0; m < w->m; m += step) {
        struct tile t = {
            .pairs = w->pairs,
            .a = w->a + (ptrdiff_t)(m / AP) * AP * w->pairs + m % AP,
            .b = w->b,
            .d = mm_row(p->d, p->d_pitch, w->m0 + m) + n0,
            .d_pitch = p->d_pitch,
            .n = n,
            .acc = p->acc,
        };
        int left = w->m - m - step;
        if (left > 0) mm_prefetch(mm_row(t.d, p->d_pitch, step), p->d_pitch, mm_min(step, left), n * 4);
        int upto = p->rows * ++done / tile_count;
        if (next_n > 0) mm_prefetch_operand(&p->x, prefetched, upto - prefetched, n0 + n, next_n);
        prefetched = upto;
        tiles[mm_min(step, w->m - m)][nv](&t);
    }
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

static void run_block(const struct block *w)
{
    const struct mm_product *p = w->p;
    int s_exponent = EXPONENT_ALL_ZERO, columns = p->x.columns;
    for (int m = 0; m < w->m; m += AP) {
        int exponent = pack_stationary(&p->s, p->rows, w->m0 + m, w->m - m, w->a + (ptrdiff_t)m * w->pairs);
        s_exponent = mm_min(s_exponent, exponent);
    }
    int panels = mm_div_up(columns, NR), done = 0; /* columns before `done` are finished */
    if (s_exponent == EXPONENT_NEVER) panels = 0;
    for (int n0 = 0, n; panels > 0; n0 += n, panels--) {
        /* equal widths, so that no panel is too narrow to hide the latency */
        n = mm_min(columns - n0, mm_div_up(mm_div_up(columns - n0, VL), panels) * VL);
        if (!pairs_exact(s_exponent, pack_moving(&p->x, p->rows, n0, n, w->b))) continue;
        run_on_fma(w, done, n0);
        run_panel(w, n0, n, mm_min(NR, columns - n0 - n));
        done = n0 + n;
    }
    run_on_fma(w, done, columns);
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
    /* For few stationary columns fma without packing is faster; more steps than MM_BLOCK_STEPS the engine never needs. */
    bool few = p->s.columns <= FEW_M && p->steps == 1;
    if (!possible || few || steps == 0 || steps > MM_BLOCK_STEPS) {
        vtrn_mm_fma_avx512(p);
        return;
    }
    struct block w = {.p = p, .a = (uint32_t *)(void *)(p->scratch + MM_AT_PAIRS), .pairs = mm_div_up(steps, 2)};
    w.b = w.a + MM_BLOCK_M * MM_BLOCK_STEPS / 2;
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
