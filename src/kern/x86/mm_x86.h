/* Inside kern/x86 only: what the levels of the tile product share. */
#ifndef VTRN_KERN_MM_X86_H
#define VTRN_KERN_MM_X86_H
#include "kern/mm_int.h"

void vtrn_mm_init_avx2(struct vtrn_kern *kern);
void vtrn_mm_init_avx512(struct vtrn_kern *kern);
void vtrn_mm_init_avx512bf16(struct vtrn_kern *kern);
/* Whether VDPBF16PS on this processor is two fma in the order that the packing relies on. Under a millisecond. */
bool vtrn_mm_bf16_selftest(void);
void vtrn_transpose_init_avx2(struct vtrn_kern *kern);
void vtrn_transpose_init_avx512(struct vtrn_kern *kern);
/* Any product on AVX-512 fma: what the VDPBF16PS level does where that instruction cannot give the bits. */
void vtrn_mm_fma_avx512(const struct mm_product *p);
#endif
