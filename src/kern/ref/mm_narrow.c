/* Products with few destination columns (a matrix times a few vectors), for the vector levels: a row of such a
 * destination would fill a fraction of a vector, so the operands change places (fma(s, x, c) is fma(x, s, c)), the level
 * computes the chains of the transposed destination into scratch, and they are added to the destination from there.
 * The chains are the same and the one add comes last, so the bits are too. */
#include <math.h>

#include "kern/mm_int.h"

static void finish_transposed(const struct mm_product *p, const float *chain, int m0, int m)
{
    for (int i = 0; i < m; i++) {
        uint8_t *at = (uint8_t *)p->d + p->d_pitch * (m0 + i);
        for (int j = 0; j < p->x.columns; j++, at += sizeof(float)) {
            float value = chain[(ptrdiff_t)j * MM_SWAP_M + i], old;
            if (p->acc) {
                memcpy(&old, at, sizeof old);
                value = old + value;
            }
            uint32_t bits;
            memcpy(&bits, &value, sizeof bits);
            if (isnan(value)) bits = MM_NAN_BITS;
            memcpy(at, &bits, sizeof bits);
        }
    }
}

void vtrn_mm_run_narrow(const struct mm_product *p, void (*run)(const struct mm_product *))
{
    float *chain = (float *)(void *)(p->scratch + MM_AT_SWAP);
    for (int m0 = 0; m0 < p->s.columns; m0 += MM_SWAP_M) {
        int m = mm_min(MM_SWAP_M, p->s.columns - m0);
        struct mm_product swapped = *p;
        swapped.s = p->x;
        swapped.x = mm_columns(&p->s, m0, m);
        swapped.d = chain;
        swapped.d_pitch = MM_SWAP_M * (ptrdiff_t)sizeof(float);
        swapped.acc = false;
        run(&swapped);
        finish_transposed(p, chain, m0, m);
    }
}
