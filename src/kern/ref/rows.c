/* Reductions and recurrences along rows, strictly in order of the elements: the definition. The order is the hardware's:
 * sums published from a trn1 equal a left-to-right fp32 sum bit for bit (data set kernel-grader-mi300x-rocm-trainium-nki).
 * Knows rows of fp32 and of bits, no tensors. */
#include "kern/kern_int.h"

#define REDUCE(NAME) \
    static void reduce_##NAME##_ref(float *acc, const float *src, size_t row_stride, size_t rows, size_t n) \
    { \
        for (size_t r = 0; r < rows; r++) \
            for (size_t i = 0; i < n; i++) acc[r] = vtrn_alu_f32(VTRN_ALU_##NAME, acc[r], src[r * row_stride + i]); \
    }
KERN_EACH_REDUCE(REDUCE)

static float apply(enum vtrn_alu op, bool reverse, float a, float b)
{
    return reverse ? vtrn_alu_f32(op, b, a) : vtrn_alu_f32(op, a, b);
}

static void scan_ref(const struct vtrn_scan *s)
{
    const bool reads_b = s->op1 != VTRN_ALU_BYPASS || s->reverse1;
    for (size_t row = 0; row < s->rows; row++) {
        float r = s->state[row];
        for (size_t i = 0; i < s->n; i++) {
            r = apply(s->op0, s->reverse0, s->a[row * s->a_stride + i], r);
            r = apply(s->op1, s->reverse1, r, reads_b ? s->b[row * s->b_stride + i] : 0);
            s->dst[row * s->dst_stride + i] = r;
        }
        s->state[row] = r;
    }
}

void vtrn_kern_ref_rows(struct vtrn_kern *kern)
{
#define SET(NAME) kern->reduce[VTRN_ALU_##NAME] = reduce_##NAME##_ref;
    KERN_EACH_REDUCE(SET)
    kern->scan = scan_ref;
}
