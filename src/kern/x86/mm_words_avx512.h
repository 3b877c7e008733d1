/* Inside kern/x86 only: vectors of 16 fp32 as both AVX-512 levels of the tile product use them. */
#ifndef VTRN_KERN_MM_WORDS_AVX512_H
#define VTRN_KERN_MM_WORDS_AVX512_H
#include <immintrin.h>

#include "kern/x86/mm_x86.h"

enum { VL = 16 };
typedef __m512 vf;

MM_INLINE __mmask16 mask16(int lanes) { return (__mmask16)((1u << lanes) - 1); }
MM_INLINE vf v_zero(void) { return _mm512_setzero_ps(); }
MM_INLINE vf v_load(const float *p) { return _mm512_loadu_ps(p); }
MM_INLINE vf v_load_part(const float *p, int lanes) { return _mm512_maskz_loadu_ps(mask16(lanes), p); }
MM_INLINE void v_store(float *p, vf v) { _mm512_storeu_ps(p, v); }
MM_INLINE void v_store_part(float *p, vf v, int lanes) { _mm512_mask_storeu_ps(p, mask16(lanes), v); }
MM_INLINE vf v_set1(const float *p) { return _mm512_set1_ps(*p); }
MM_INLINE vf v_fma(vf a, vf b, vf c) { return _mm512_fmadd_ps(a, b, c); }
MM_INLINE vf v_add(vf a, vf b) { return _mm512_add_ps(a, b); }
MM_INLINE bool v_any_nan(vf v) { return _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q) != 0; }
MM_INLINE vf v_canonical(vf v)
{
    return _mm512_mask_mov_ps(v, _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q), _mm512_castsi512_ps(_mm512_set1_epi32(MM_NAN_BITS)));
}
#endif
