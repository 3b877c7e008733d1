/* Transposes on AVX2: the words for transpose.inc.c with two lanes. */
#include <immintrin.h>

#include "kern/x86/mm_x86.h"

enum { LANES = 2 };
typedef __m256i tv;

MM_INLINE tv tv_load(const uint8_t *p, ptrdiff_t lane_pitch)
{
    tv low = _mm256_castsi128_si256(_mm_loadu_si128((const void *)p));
    return _mm256_inserti128_si256(low, _mm_loadu_si128((const void *)(p + lane_pitch)), 1);
}
MM_INLINE void tv_store(uint8_t *p, tv v) { _mm256_storeu_si256((void *)p, v); }
MM_INLINE tv tv_zip_low(const int elem_bytes, tv a, tv b)
{
    return elem_bytes == 1   ? _mm256_unpacklo_epi8(a, b)
           : elem_bytes == 2 ? _mm256_unpacklo_epi16(a, b)
                             : _mm256_unpacklo_epi32(a, b);
}
MM_INLINE tv tv_zip_high(const int elem_bytes, tv a, tv b)
{
    return elem_bytes == 1   ? _mm256_unpackhi_epi8(a, b)
           : elem_bytes == 2 ? _mm256_unpackhi_epi16(a, b)
                             : _mm256_unpackhi_epi32(a, b);
}

#include "kern/transpose.inc.c"

void vtrn_transpose_init_avx2(struct vtrn_kern *kern)
{
    kern->transpose[0] = transpose_1;
    kern->transpose[1] = transpose_2;
    kern->transpose[2] = transpose_4;
}
