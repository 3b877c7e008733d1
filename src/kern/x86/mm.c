/* Chooses the x86 versions of the tile products and transposes for a level. Compiled for the base instruction set: it
 * runs on every machine, before it is known that the better code may. */
#include "kern/x86/mm_x86.h"

void vtrn_kern_x86_mm(struct vtrn_kern *kern, enum vtrn_cpu_level level)
{
    vtrn_kern_x86_transpose(kern, level);
    switch (level) {
    case VTRN_CPU_AVX2: vtrn_mm_init_avx2(kern); break;
    case VTRN_CPU_AVX512: vtrn_mm_init_avx512(kern); break;
    case VTRN_CPU_AVX512BF16: vtrn_mm_init_avx512bf16(kern); break;
    default: break;
    }
}

void vtrn_kern_x86_transpose(struct vtrn_kern *kern, enum vtrn_cpu_level level)
{
    if (level == VTRN_CPU_AVX2) vtrn_transpose_init_avx2(kern);
    if (level == VTRN_CPU_AVX512 || level == VTRN_CPU_AVX512BF16) vtrn_transpose_init_avx512(kern);
}
