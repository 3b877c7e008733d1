/* Inside kern/ only: what the tile products of every level share. An operand is a block of rows read by one of the
 * packers; a product is two operands and a destination. vtrn_mm and vtrn_mm_mx both become a product, in which a row of
 * packed MX elements stands for `steps` = 4 steps of the chain. */
#ifndef VTRN_KERN_MM_INT_H
#define VTRN_KERN_MM_INT_H
#include "kern/kern_int.h"

/* Register tiles are loops unrolled up to a hundredfold: with sanitizers a file of them compiles for minutes, so they, and
 * what is inlined into them, stay out. Everything that computes addresses and sizes for them is sanitized, and the tests put
 * operands against forbidden pages. */
#define MM_TILE     __attribute__((no_sanitize("address"), no_sanitize("undefined")))
#define MM_INLINE   MM_TILE static inline __attribute__((always_inline))
#define MM_NAN_BITS UINT32_C(0x7fc00000)

struct mm_operand {
    const uint8_t *data;
    ptrdiff_t pitch;      /* bytes from a row to the next */
    const uint8_t *scale; /* MX: a E8M0 byte for each element, rows scale_pitch bytes apart; NULL otherwise */
    ptrdiff_t scale_pitch;
    int columns;
    uint8_t dtype, elem_bytes;
};
struct mm_product {
    int rows, steps; /* the chain has rows * steps steps: 1 step a row, 4 for MX */
    struct mm_operand s, x;
    float *d;
    ptrdiff_t d_pitch; /* bytes */
    bool acc;
    uint8_t *scratch;
    const struct vtrn_mm *next;
};

/* Block sizes that all levels share, and the scratch that they make. The tensor engine has at most 128 partitions and 128
 * columns; beyond that blocks repeat. */
enum {
    MM_BLOCK_M = 128,     /* stationary columns packed at a time */
    MM_BLOCK_STEPS = 512, /* chain steps packed at a time: 128 partitions x 4 MX lanes */
    MM_PANEL_BYTES = 256, /* widest row of a moving panel: 64 columns of 4 bytes */
    MM_TILE_VECTORS = 8,  /* most vectors in a row of a register tile */
    MM_SMALL_N = 16,      /* widest destination that is computed transposed */
    MM_SWAP_M = 256,      /* columns of a transposed destination computed at a time */
    MM_SCRATCH_S = (MM_BLOCK_M * 4 + MM_PANEL_BYTES) * MM_BLOCK_STEPS, /* whole panels */
    MM_SCRATCH_X = MM_PANEL_BYTES * MM_BLOCK_STEPS,
    MM_SCRATCH_CHAIN = MM_BLOCK_M * MM_PANEL_BYTES,
    MM_SCRATCH_SWAP = MM_SMALL_N * MM_SWAP_M * 4,
    MM_SCRATCH_PAIRS = (MM_BLOCK_M * 4 + 2 * MM_PANEL_BYTES) * MM_BLOCK_STEPS / 2, /* both operands as pairs of bf16 */
    MM_AT_X = MM_SCRATCH_S,
    MM_AT_CHAIN = MM_AT_X + MM_SCRATCH_X,
    MM_AT_SWAP = MM_AT_CHAIN + MM_SCRATCH_CHAIN,
    MM_AT_PAIRS = MM_AT_SWAP + MM_SCRATCH_SWAP,
    MM_SCRATCH_BYTES = MM_AT_PAIRS + MM_SCRATCH_PAIRS
};

static inline struct mm_product mm_product_of(const struct vtrn_mm *mm)
{
    return (struct mm_product){
        .rows = mm->k,
        .steps = 1,
        .s = { mm->s, mm->s_pitch, NULL, 0, mm->m, mm->s_dtype, vtrn_dtypes[mm->s_dtype].size_bytes },
        .x = { mm->x, mm->x_pitch, NULL, 0, mm->n, mm->x_dtype, vtrn_dtypes[mm->x_dtype].size_bytes },
        .d = mm->d,
        .d_pitch = mm->d_pitch,
        .acc = mm->acc,
        .scratch = mm->scratch,
        .next = mm->next,
    };
}
static inline struct mm_product mm_product_of_mx(const struct vtrn_mm_mx *mm)
{
    return (struct mm_product){
        .rows = mm->k,
        .steps = 4,
        .s = { mm->s, mm->s_pitch, mm->s_scale, mm->s_scale_pitch ? mm->s_scale_pitch : mm->m, mm->m, mm->s_dtype,
               vtrn_dtypes[mm->s_dtype].size_bytes },
        .x = { mm->x, mm->x_pitch, mm->x_scale, mm->x_scale_pitch ? mm->x_scale_pitch : mm->n, mm->n, mm->x_dtype,
               vtrn_dtypes[mm->x_dtype].size_bytes },
        .d = mm->d,
        .d_pitch = mm->d_pitch,
        .acc = mm->acc,
        .scratch = mm->scratch,
    };
}
/* `count` columns of an operand from `column0`. */
static inline struct mm_operand mm_columns(const struct mm_operand *op, int column0, int count)
{
    struct mm_operand part = *op;
    part.data += (ptrdiff_t)op->elem_bytes * column0;
    if (op->scale != NULL) part.scale += column0;
    part.columns = count;
    return part;
}
static inline float *mm_row(float *base, ptrdiff_t pitch_bytes, int row)
{
    return (float *)(void *)((uint8_t *)base + pitch_bytes * row);
}
/* How the code of an fp8 format becomes fp32: a normal one by moving its fields up and changing the bias, a denormal one
 * as code * unit, an inf or NaN by an exponent of all ones over the fields. e4m3fn has one special code, the NaN 0x7f. */
struct mm_f8 {
    int shift, rebias, least_normal, least_special;
    float denormal_unit;
};
MM_INLINE struct mm_f8 mm_f8(const int dtype)
{
    if (dtype == VTRN_DT_F8E5M2) return (struct mm_f8){ 21, (127 - 15) << 23, 0x04, 0x7c, 0x1p-16f };
    return (struct mm_f8){ 20, (127 - 7) << 23, 0x08, dtype == VTRN_DT_F8E4M3FN ? 0x7f : 0x78, 0x1p-9f };
}
#define MM_E2M1_VALUES 0, 0.5f, 1, 1.5f, 2, 3, 4, 6, -0.0f, -0.5f, -1, -1.5f, -2, -3, -4, -6
static inline int mm_min(int a, int b) { return a < b ? a : b; }
/* Where part `i` of `parts` of a job of `total` units begins. */
static inline int mm_share(int total, int i, int parts) { return (int)((int64_t)total * i / parts); }
static inline int mm_div_up(int a, int b) { return (a + b - 1) / b; }
/* Asks for the moving rows of the next panel, into the second cache: the first is full of the present one. A row there has
 * two lines most of the time; the loop over more runs only where it must, its end would be mispredicted between tiles.
 * Always inline: gcc takes a function that only prefetches for one without effect, and drops calls of it. */
MM_INLINE void mm_prefetch_rows(const struct mm_operand *op, int row0, int rows, int column0, int columns)
{
    const uint8_t *p = op->data + op->pitch * row0 + (ptrdiff_t)op->elem_bytes * column0;
    const ptrdiff_t last = columns * op->elem_bytes - 1;
    bool more = ((uintptr_t)p & 63) + (size_t)last >= 128;
    for (int r = 0; r < rows; r++, p += op->pitch) {
        __builtin_prefetch(p, 0, 2);
        __builtin_prefetch(p + last, 0, 2);
        for (ptrdiff_t b = 64; more && b < last; b += 64) __builtin_prefetch(p + b, 0, 2);
    }
}
/* A share of what the next product reads first, its stationary operand and a panel of `width` moving columns, when `done` of
 * `total` of this one are behind and `now` are under way. From memory they take several times their packing. */
MM_INLINE void mm_prefetch_next(const struct vtrn_mm *next, int width, int done, int now, int total)
{
    const int begin = mm_share(next->k, done, total), count = mm_share(next->k, done + now, total) - begin;
    const struct mm_operand s = { next->s, next->s_pitch, NULL, 0, next->m, next->s_dtype, vtrn_dtypes[next->s_dtype].size_bytes };
    const struct mm_operand x = { next->x, next->x_pitch, NULL, 0, next->n, next->x_dtype, vtrn_dtypes[next->x_dtype].size_bytes };
    mm_prefetch_rows(&s, begin, count, 0, next->m);
    mm_prefetch_rows(&x, begin, count, 0, mm_min(width, next->n));
}

/* ---- narrow destinations (matrix times vector): vectors run along M instead. The operands change places, the chains go to
 * scratch and are added to the destination from there. ---- */
static inline bool mm_is_narrow(const struct mm_product *p, int lanes)
{
    return p->x.columns < mm_min(lanes, MM_SMALL_N + 1) && p->s.columns > p->x.columns;
}
void vtrn_mm_run_narrow(const struct mm_product *p, void (*run)(const struct mm_product *));

/* Slots that the mm hooks of a level also set. */
void vtrn_kern_ref_transpose(struct vtrn_kern *kern);
void vtrn_kern_x86_transpose(struct vtrn_kern *kern, enum vtrn_cpu_level level);
void vtrn_kern_arm_transpose(struct vtrn_kern *kern);
#endif
