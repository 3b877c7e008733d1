/* The tensor engine's tile products, as the contract in kern.h says them: for each (m, n) one fp32 fma chain over the
 * steps in order from +0, then one add to the destination. This is the definition of correct for every faster level;
 * it only blocks the loops, so that an element is converted once per block and not once per product.
 *
 * NaN: which of two NaNs survives an fma differs between processors (and compilers may swap operands), so the contract
 * makes every NaN result 0x7fc00000; whether a result is a NaN does not depend on that choice.
 *
 * Knows nothing of partitions, banks or instructions: it sees two row-major operands and a destination. */
#include <math.h>

#include "kern/mm_int.h"

enum { BLOCK_M = 32, BLOCK_N = 64 };

/* The value of one chain step. `lane` counts the packed values of an MX element. */
static float operand_value(const struct mm_operand *op, int row, int column, int lane)
{
    const uint8_t *element = op->data + op->pitch * row + (ptrdiff_t)op->elem_bytes * column;
    if (op->scale != NULL) {
        const uint8_t *scale = op->scale + op->scale_pitch * row + column;
        return vtrn_mx_to_f32(op->dtype, element, lane) * vtrn_to_f32(VTRN_DT_F8E8M0, scale);
    }
    float value = vtrn_to_f32(op->dtype, element);
    if (op->dtype == VTRN_DT_TF32) { /* stored with 32 bits; the engine reads 19 of them */
        uint8_t rounded[4];
        vtrn_from_f32(VTRN_DT_TF32, value, rounded);
        value = vtrn_to_f32(VTRN_DT_TF32, rounded);
    }
    return value;
}

static void store_chain(const struct mm_product *p, int m, int n, float chain)
{
    uint8_t *at = (uint8_t *)p->d + p->d_pitch * m + (ptrdiff_t)sizeof(float) * n;
    if (p->acc) {
        float old;
        memcpy(&old, at, sizeof old);
        chain = old + chain;
    }
    uint32_t bits;
    memcpy(&bits, &chain, sizeof bits);
    if (isnan(chain)) bits = MM_NAN_BITS;
    memcpy(at, &bits, sizeof bits);
}

static void block(const struct mm_product *p, int m0, int m, int n0, int n)
{
    float chain[BLOCK_M][BLOCK_N];
    memset(chain, 0, sizeof chain);
    for (int row = 0; row < p->rows; row++) {
        for (int lane = 0; lane < p->steps; lane++) {
            float s[BLOCK_M], x[BLOCK_N];
            for (int i = 0; i < m; i++) s[i] = operand_value(&p->s, row, m0 + i, lane);
            for (int j = 0; j < n; j++) x[j] = operand_value(&p->x, row, n0 + j, lane);
            for (int i = 0; i < m; i++)
                for (int j = 0; j < n; j++) chain[i][j] = fmaf(s[i], x[j], chain[i][j]);
        }
    }
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) store_chain(p, m0 + i, n0 + j, chain[i][j]);
}

static void product(const struct mm_product *p)
{
    for (int m0 = 0; m0 < p->s.columns; m0 += BLOCK_M)
        for (int n0 = 0; n0 < p->x.columns; n0 += BLOCK_N)
            block(p, m0, mm_min(BLOCK_M, p->s.columns - m0), n0, mm_min(BLOCK_N, p->x.columns - n0));
}

static void mm_ref(const struct vtrn_mm *mm)
{
    struct mm_product p = mm_product_of(mm);
    product(&p);
}

static void mm_mx_ref(const struct vtrn_mm_mx *mm)
{
    struct mm_product p = mm_product_of_mx(mm);
    product(&p);
}

void vtrn_kern_ref_mm(struct vtrn_kern *kern)
{
    kern->mm = mm_ref;
    kern->mm_mx = mm_mx_ref;
    kern->mm_scratch_bytes = MM_SCRATCH_BYTES; /* ref needs none; one size for all levels */
    vtrn_kern_ref_transpose(kern);
}
