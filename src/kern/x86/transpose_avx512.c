/* Transposes on AVX-512 BW: the words for transpose.inc.c with four lanes; an output vector is one cache line. */
#include <immintrin.h>

#include "kern/x86/mm_x86.h"

enum { LANES = 4 };
typedef __m512i tv;

/* Masked broadcasts from memory: unlike inserts they need no shuffle. */
MM_INLINE tv tv_load(const uint8_t *p, ptrdiff_t lane_pitch)
{
    tv v = _mm512_castsi128_si512(_mm_loadu_si128((const void *)p));
    v = _mm512_mask_broadcast_i32x4(v, 0x00f0, _mm_loadu_si128((const void *)(p + lane_pitch)));
    v = _mm512_mask_broadcast_i32x4(v, 0x0f00, _mm_loadu_si128((const void *)(p + 2 * lane_pitch)));
    return _mm512_mask_broadcast_i32x4(v, 0xf000, _mm_loadu_si128((const void *)(p + 3 * lane_pitch)));
}
MM_INLINE void tv_store(uint8_t *p, tv v) { _mm512_storeu_si512(p, v); }
MM_INLINE tv tv_zip_low(const int elem_bytes, tv a, tv b)
{
    return elem_bytes == 1 ? _mm512_unpacklo_epi8(a, b) : elem_bytes == 2 ? _mm512_unpacklo_epi16(a, b) : _mm512_unpacklo_epi32(a, b);
}
MM_INLINE tv tv_zip_high(const int elem_bytes, tv a, tv b)
{
    return elem_bytes == 1 ? _mm512_unpackhi_epi8(a, b) : elem_bytes == 2 ? _mm512_unpackhi_epi16(a, b) : _mm512_unpackhi_epi32(a, b);
}

#include "kern/transpose.inc.c"

void vtrn_transpose_init_avx512(struct vtrn_kern *kern)
{
    kern->transpose[0] = transpose_1;
    kern->transpose[1] = transpose_2;
    kern->transpose[2] = transpose_4;
}
