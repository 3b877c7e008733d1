/* Transposes on NEON (AArch64): the words for transpose.inc.c with one lane. */
#include <arm_neon.h>

#include "kern/mm_int.h"

enum { LANES = 1 };
typedef uint8x16_t tv;

MM_INLINE tv tv_load(const uint8_t *p, ptrdiff_t lane_pitch)
{
    (void)lane_pitch;
    return vld1q_u8(p);
}
MM_INLINE void tv_store(uint8_t *p, tv v) { vst1q_u8(p, v); }
MM_INLINE tv tv_zip_low(const int elem_bytes, tv a, tv b)
{
    if (elem_bytes == 1) return vzip1q_u8(a, b);
    if (elem_bytes == 2) return vreinterpretq_u8_u16(vzip1q_u16(vreinterpretq_u16_u8(a), vreinterpretq_u16_u8(b)));
    return vreinterpretq_u8_u32(vzip1q_u32(vreinterpretq_u32_u8(a), vreinterpretq_u32_u8(b)));
}
MM_INLINE tv tv_zip_high(const int elem_bytes, tv a, tv b)
{
    if (elem_bytes == 1) return vzip2q_u8(a, b);
    if (elem_bytes == 2) return vreinterpretq_u8_u16(vzip2q_u16(vreinterpretq_u16_u8(a), vreinterpretq_u16_u8(b)));
    return vreinterpretq_u8_u32(vzip2q_u32(vreinterpretq_u32_u8(a), vreinterpretq_u32_u8(b)));
}

#include "kern/transpose.inc.c"

void vtrn_kern_arm_transpose(struct vtrn_kern *kern)
{
    kern->transpose[0] = transpose_1;
    kern->transpose[1] = transpose_2;
    kern->transpose[2] = transpose_4;
}
