/* Inside kern/x86 only: the words of the vector templates (see words_avx512.h) for AVX2 with FMA and F16C. Masks are
 * vectors of ones and zeros. There are masked loads for 32-bit elements only: ends of narrower rows go through a small copy. */
#ifndef VTRN_KERN_WORDS_AVX2_H
#define VTRN_KERN_WORDS_AVX2_H
#include <immintrin.h>
#include <math.h>

#include "kern/kern_int.h"

enum { VL = 8, WAYS = 2 };
typedef __m256 vf;
typedef __m256i vi;
typedef __m256i vm;
typedef struct {
    __m256d low, high;
} vd;
typedef struct {
    __m256i low, high;
} vl;
typedef struct {
    __m256d low, high;
} vdm;

KERN_INLINE vm m_first(int lanes)
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(lanes), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

/* ---- memory ---- */
KERN_INLINE vf v_load(const float *p, int lanes)
{
    return lanes >= VL ? _mm256_loadu_ps(p) : _mm256_maskload_ps(p, m_first(lanes));
}
KERN_INLINE void v_store(float *p, vf v, int lanes)
{
    if (lanes >= VL) _mm256_storeu_ps(p, v);
    else _mm256_maskstore_ps(p, m_first(lanes), v);
}
KERN_INLINE vi i_load(const void *p, int lanes)
{
    return lanes >= VL ? _mm256_loadu_si256(p) : _mm256_maskload_epi32(p, m_first(lanes));
}
KERN_INLINE void i_store(void *p, vi v, int lanes)
{
    if (lanes >= VL) _mm256_storeu_si256(p, v);
    else _mm256_maskstore_epi32(p, m_first(lanes), v);
}
KERN_INLINE __m128i bytes_8(const void *p, int lanes)
{
    uint64_t end = 0;
    if (lanes >= VL) return _mm_loadl_epi64(p);
    memcpy(&end, p, (size_t)lanes);
    return _mm_cvtsi64_si128((long long)end);
}
KERN_INLINE __m128i halves_8(const void *p, int lanes)
{
    uint16_t end[VL] = { 0 };
    if (lanes >= VL) return _mm_loadu_si128(p);
    memcpy(end, p, (size_t)lanes * 2);
    return _mm_loadu_si128((const __m128i *)end);
}
KERN_INLINE void store_bytes(void *p, __m128i v, size_t size) /* the first `size` of 16 bytes */
{
    uint8_t end[16];
    if (size == 16) _mm_storeu_si128(p, v);
    else if (size == 8) _mm_storel_epi64(p, v);
    else {
        _mm_storeu_si128((__m128i *)end, v);
        memcpy(p, end, size);
    }
}
KERN_INLINE vi i_load_u8(const void *p, int lanes) { return _mm256_cvtepu8_epi32(bytes_8(p, lanes)); }
KERN_INLINE vi i_load_i8(const void *p, int lanes) { return _mm256_cvtepi8_epi32(bytes_8(p, lanes)); }
KERN_INLINE vi i_load_u16(const void *p, int lanes) { return _mm256_cvtepu16_epi32(halves_8(p, lanes)); }
KERN_INLINE vi i_load_i16(const void *p, int lanes) { return _mm256_cvtepi16_epi32(halves_8(p, lanes)); }
KERN_INLINE void i_store_8(void *p, vi v, int lanes)
{
    const __m256i low = _mm256_setr_epi8(0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 0, 4, 8, 12, -1, -1, -1, -1,
                                         -1, -1, -1, -1, -1, -1, -1, -1);
    __m256i packed = _mm256_shuffle_epi8(v, low);
    __m128i both = _mm_unpacklo_epi32(_mm256_castsi256_si128(packed), _mm256_extracti128_si256(packed, 1));
    store_bytes(p, both, (size_t)(lanes >= VL ? VL : lanes));
}
KERN_INLINE void i_store_16(void *p, vi v, int lanes)
{
    const __m256i low = _mm256_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, -1, -1, -1, -1, -1, -1, -1, -1, 0, 1, 4, 5, 8, 9, 12, 13, -1, -1,
                                         -1, -1, -1, -1, -1, -1);
    __m256i packed = _mm256_permute4x64_epi64(_mm256_shuffle_epi8(v, low), 0x08);
    store_bytes(p, _mm256_castsi256_si128(packed), (size_t)(lanes >= VL ? VL : lanes) * 2);
}
KERN_INLINE void i_store_high_pair(void *p, vi a, vi b)
{
    __m256i packed = _mm256_packus_epi32(_mm256_srli_epi32(a, 16), _mm256_srli_epi32(b, 16));
    _mm256_storeu_si256(p, _mm256_permute4x64_epi64(packed, 0xd8));
}
KERN_INLINE vf v_load_f16(const void *p, int lanes) { return _mm256_cvtph_ps(halves_8(p, lanes)); }
KERN_INLINE vf v_load_f8_as_f16(const void *p, const int shift, const int least_special, int lanes)
{
    __m128i code = _mm_cvtepi8_epi16(bytes_8(p, lanes)); /* the sign is in bit 15 already */
    __m128i magnitude = _mm_and_si128(code, _mm_set1_epi16(0x7f));
    __m128i half = _mm_or_si128(_mm_slli_epi16(magnitude, shift), _mm_and_si128(code, _mm_set1_epi16(INT16_MIN)));
    if (least_special << shift < 0x7c00) {
        __m128i special = _mm_cmpgt_epi16(magnitude, _mm_set1_epi16((short)(least_special - 1)));
        half = _mm_or_si128(half, _mm_and_si128(special, _mm_set1_epi16(0x7c00)));
    }
    return _mm256_cvtph_ps(half);
}
KERN_INLINE void v_store_f16(void *p, vf v, int lanes)
{
    __m128i code = _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    store_bytes(p, code, (size_t)(lanes >= VL ? VL : lanes) * 2);
}

/* ---- fp32 ---- */
KERN_INLINE vf v_set1(float x) { return _mm256_set1_ps(x); }
KERN_INLINE vf v_add(vf a, vf b) { return _mm256_add_ps(a, b); }
KERN_INLINE vf v_sub(vf a, vf b) { return _mm256_sub_ps(a, b); }
KERN_INLINE vf v_mul(vf a, vf b) { return _mm256_mul_ps(a, b); }
KERN_INLINE vf v_div(vf a, vf b) { return _mm256_div_ps(a, b); }
KERN_INLINE vf v_sqrt(vf a) { return _mm256_sqrt_ps(a); }
KERN_INLINE vf v_fma(vf a, vf b, vf c) { return _mm256_fmadd_ps(a, b, c); }
KERN_INLINE vf v_fnma(vf a, vf b, vf c) { return _mm256_fnmadd_ps(a, b, c); }
KERN_INLINE vf v_min(vf a, vf b) { return _mm256_min_ps(a, b); }
KERN_INLINE vf v_max(vf a, vf b) { return _mm256_max_ps(a, b); }
KERN_INLINE vi v_bits(vf a) { return _mm256_castps_si256(a); }
KERN_INLINE vf v_of_bits(vi a) { return _mm256_castsi256_ps(a); }
KERN_INLINE vf v_abs(vf a) { return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), a); }
KERN_INLINE vf v_with_sign(vf magnitude, vf sign) { return _mm256_or_ps(magnitude, _mm256_and_ps(sign, _mm256_set1_ps(-0.0f))); }
KERN_INLINE vm v_lt(vf a, vf b) { return v_bits(_mm256_cmp_ps(a, b, _CMP_LT_OQ)); }
KERN_INLINE vm v_le(vf a, vf b) { return v_bits(_mm256_cmp_ps(a, b, _CMP_LE_OQ)); }
KERN_INLINE vm v_eq(vf a, vf b) { return v_bits(_mm256_cmp_ps(a, b, _CMP_EQ_OQ)); }
KERN_INLINE vm v_ne(vf a, vf b) { return v_bits(_mm256_cmp_ps(a, b, _CMP_NEQ_UQ)); }
KERN_INLINE vm v_unordered(vf a, vf b) { return v_bits(_mm256_cmp_ps(a, b, _CMP_UNORD_Q)); }
KERN_INLINE vf v_sel(vm m, vf a, vf b) { return _mm256_blendv_ps(b, a, v_of_bits(m)); }
KERN_INLINE vf v_one_if(vm m) { return _mm256_and_ps(v_of_bits(m), _mm256_set1_ps(1)); }
KERN_INLINE vf v_canonical(vf a) { return v_sel(v_unordered(a, a), v_of_bits(_mm256_set1_epi32((int)KERN_NAN_BITS)), a); }
KERN_INLINE vf v_signed_nan(vf a)
{
    vf nan = _mm256_or_ps(_mm256_and_ps(a, _mm256_set1_ps(-0.0f)), v_of_bits(_mm256_set1_epi32((int)KERN_NAN_BITS)));
    return v_sel(v_unordered(a, a), nan, a);
}
typedef struct {
    vf low, high; /* numbers 0..7, 8..15 */
} v_table16;
KERN_INLINE v_table16 v_table16_of(const float *p) { return (v_table16){ _mm256_loadu_ps(p), _mm256_loadu_ps(p + 8) }; }
KERN_INLINE vf v_pick16(const v_table16 *t, vi at)
{
    vf upper = v_of_bits(_mm256_slli_epi32(at, 28)); /* the sign bit chooses */
    return _mm256_blendv_ps(_mm256_permutevar8x32_ps(t->low, at), _mm256_permutevar8x32_ps(t->high, at), upper);
}

/* ---- masks ---- */
KERN_INLINE vm m_and(vm a, vm b) { return _mm256_and_si256(a, b); }
KERN_INLINE vm m_or(vm a, vm b) { return _mm256_or_si256(a, b); }
KERN_INLINE vm m_xor(vm a, vm b) { return _mm256_xor_si256(a, b); }
KERN_INLINE vm m_and_not(vm a, vm b) { return _mm256_andnot_si256(b, a); }
KERN_INLINE unsigned m_bits(vm m) { return (unsigned)_mm256_movemask_ps(v_of_bits(m)); }
KERN_INLINE bool m_any(vm m) { return _mm256_movemask_ps(v_of_bits(m)) != 0; }

/* ---- int32 ---- */
KERN_INLINE vi i_set1(uint32_t x) { return _mm256_set1_epi32((int)x); }
KERN_INLINE vi i_and(vi a, vi b) { return _mm256_and_si256(a, b); }
KERN_INLINE vi i_or(vi a, vi b) { return _mm256_or_si256(a, b); }
KERN_INLINE vi i_xor(vi a, vi b) { return _mm256_xor_si256(a, b); }
KERN_INLINE vi i_add(vi a, vi b) { return _mm256_add_epi32(a, b); }
KERN_INLINE vi i_sub(vi a, vi b) { return _mm256_sub_epi32(a, b); }
KERN_INLINE vi i_mul(vi a, vi b) { return _mm256_mullo_epi32(a, b); }
KERN_INLINE vi i_max(vi a, vi b) { return _mm256_max_epi32(a, b); }
KERN_INLINE vi i_min(vi a, vi b) { return _mm256_min_epi32(a, b); }
KERN_INLINE vi i_max_u(vi a, vi b) { return _mm256_max_epu32(a, b); }
KERN_INLINE vi i_min_u(vi a, vi b) { return _mm256_min_epu32(a, b); }
KERN_INLINE vi i_sll(vi a, const int n) { return _mm256_slli_epi32(a, n); }
KERN_INLINE vi i_srl(vi a, const int n) { return _mm256_srli_epi32(a, n); }
KERN_INLINE vi i_sra(vi a, const int n) { return _mm256_srai_epi32(a, n); }
KERN_INLINE vi i_sllv(vi a, vi n) { return _mm256_sllv_epi32(a, n); }
KERN_INLINE vi i_srlv(vi a, vi n) { return _mm256_srlv_epi32(a, n); }
KERN_INLINE vm i_eq(vi a, vi b) { return _mm256_cmpeq_epi32(a, b); }
KERN_INLINE vm i_gt(vi a, vi b) { return _mm256_cmpgt_epi32(a, b); }
KERN_INLINE vm i_gt_u(vi a, vi b)
{
    const vi flip = _mm256_set1_epi32(INT32_MIN);
    return _mm256_cmpgt_epi32(_mm256_xor_si256(a, flip), _mm256_xor_si256(b, flip));
}
KERN_INLINE vi i_sel(vm m, vi a, vi b) { return _mm256_blendv_epi8(b, a, m); }
KERN_INLINE bool i_any_gt(vi a, vi b) { return _mm256_movemask_ps(v_of_bits(_mm256_cmpgt_epi32(a, b))) != 0; }
KERN_INLINE vf v_from_i32(vi a) { return _mm256_cvtepi32_ps(a); }
KERN_INLINE vf v_from_u32(vi a) /* both halves are exact, so the sum rounds once */
{
    vf high = _mm256_cvtepi32_ps(_mm256_srli_epi32(a, 16));
    vf low = _mm256_cvtepi32_ps(_mm256_and_si256(a, _mm256_set1_epi32(0xffff)));
    return _mm256_add_ps(_mm256_mul_ps(high, _mm256_set1_ps(0x1p16f)), low);
}
KERN_INLINE vi i_nearest(vf a) { return _mm256_cvtps_epi32(a); }
KERN_INLINE vi i_saturated(vf a)
{
    vi near = _mm256_and_si256(_mm256_cvtps_epi32(a), v_eq(a, a));
    return i_sel(v_le(v_set1(0x1p31f), a), i_set1(INT32_MAX), near);
}
KERN_INLINE vi i_saturated_u(vf a)
{
    vf x = v_max(a, _mm256_setzero_ps());
    vm upper = v_le(v_set1(0x1p31f), x);
    vf less = _mm256_sub_ps(x, _mm256_and_ps(v_of_bits(upper), v_set1(0x1p31f))); /* exact */
    vi near = _mm256_xor_si256(_mm256_cvtps_epi32(less), _mm256_and_si256(upper, _mm256_set1_epi32(INT32_MIN)));
    return i_sel(v_le(v_set1(0x1p32f), x), i_set1(UINT32_MAX), near);
}

/* ---- double: two registers hold VL lanes, so that two chains run side by side ---- */
KERN_INLINE vd d_of(vf a)
{
    return (vd){ _mm256_cvtps_pd(_mm256_castps256_ps128(a)), _mm256_cvtps_pd(_mm256_extractf128_ps(a, 1)) };
}
KERN_INLINE vf v_of_d(vd a)
{
    return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm256_cvtpd_ps(a.low)), _mm256_cvtpd_ps(a.high), 1);
}
KERN_INLINE vd d_set1(double x) { return (vd){ _mm256_set1_pd(x), _mm256_set1_pd(x) }; }
KERN_INLINE vd d_add(vd a, vd b) { return (vd){ _mm256_add_pd(a.low, b.low), _mm256_add_pd(a.high, b.high) }; }
KERN_INLINE vd d_sub(vd a, vd b) { return (vd){ _mm256_sub_pd(a.low, b.low), _mm256_sub_pd(a.high, b.high) }; }
KERN_INLINE vd d_mul(vd a, vd b) { return (vd){ _mm256_mul_pd(a.low, b.low), _mm256_mul_pd(a.high, b.high) }; }
KERN_INLINE vd d_div(vd a, vd b) { return (vd){ _mm256_div_pd(a.low, b.low), _mm256_div_pd(a.high, b.high) }; }
KERN_INLINE vd d_min(vd a, vd b) { return (vd){ _mm256_min_pd(a.low, b.low), _mm256_min_pd(a.high, b.high) }; }
KERN_INLINE vd d_max(vd a, vd b) { return (vd){ _mm256_max_pd(a.low, b.low), _mm256_max_pd(a.high, b.high) }; }
KERN_INLINE vd d_fma(vd a, vd b, vd c)
{
    return (vd){ _mm256_fmadd_pd(a.low, b.low, c.low), _mm256_fmadd_pd(a.high, b.high, c.high) };
}
KERN_INLINE vd d_fnma(vd a, vd b, vd c)
{
    return (vd){ _mm256_fnmadd_pd(a.low, b.low, c.low), _mm256_fnmadd_pd(a.high, b.high, c.high) };
}
KERN_INLINE vl d_bits(vd a) { return (vl){ _mm256_castpd_si256(a.low), _mm256_castpd_si256(a.high) }; }
KERN_INLINE vd d_of_bits(vl a) { return (vd){ _mm256_castsi256_pd(a.low), _mm256_castsi256_pd(a.high) }; }
KERN_INLINE vd d_abs(vd a)
{
    return (vd){ _mm256_andnot_pd(_mm256_set1_pd(-0.0), a.low), _mm256_andnot_pd(_mm256_set1_pd(-0.0), a.high) };
}
KERN_INLINE vdm d_lt(vd a, vd b)
{
    return (vdm){ _mm256_cmp_pd(a.low, b.low, _CMP_LT_OQ), _mm256_cmp_pd(a.high, b.high, _CMP_LT_OQ) };
}
KERN_INLINE vdm d_le(vd a, vd b)
{
    return (vdm){ _mm256_cmp_pd(a.low, b.low, _CMP_LE_OQ), _mm256_cmp_pd(a.high, b.high, _CMP_LE_OQ) };
}
KERN_INLINE vdm d_eq(vd a, vd b)
{
    return (vdm){ _mm256_cmp_pd(a.low, b.low, _CMP_EQ_OQ), _mm256_cmp_pd(a.high, b.high, _CMP_EQ_OQ) };
}
KERN_INLINE vd d_sel(vdm m, vd a, vd b)
{
    return (vd){ _mm256_blendv_pd(b.low, a.low, m.low), _mm256_blendv_pd(b.high, a.high, m.high) };
}
KERN_INLINE vl l_set1(uint64_t x) { return (vl){ _mm256_set1_epi64x((long long)x), _mm256_set1_epi64x((long long)x) }; }
KERN_INLINE vl l_and(vl a, vl b) { return (vl){ _mm256_and_si256(a.low, b.low), _mm256_and_si256(a.high, b.high) }; }
KERN_INLINE vl l_or(vl a, vl b) { return (vl){ _mm256_or_si256(a.low, b.low), _mm256_or_si256(a.high, b.high) }; }
KERN_INLINE vl l_add(vl a, vl b) { return (vl){ _mm256_add_epi64(a.low, b.low), _mm256_add_epi64(a.high, b.high) }; }
KERN_INLINE vl l_sub(vl a, vl b) { return (vl){ _mm256_sub_epi64(a.low, b.low), _mm256_sub_epi64(a.high, b.high) }; }
KERN_INLINE vl l_sll(vl a, const int n) { return (vl){ _mm256_slli_epi64(a.low, n), _mm256_slli_epi64(a.high, n) }; }
KERN_INLINE vl l_srl(vl a, const int n) { return (vl){ _mm256_srli_epi64(a.low, n), _mm256_srli_epi64(a.high, n) }; }

/* ---- VL rows by 4 columns ---- */
KERN_INLINE void v_swap_4x4(vf c[4])
{
    __m256d t0 = _mm256_castps_pd(_mm256_unpacklo_ps(c[0], c[1])), t1 = _mm256_castps_pd(_mm256_unpackhi_ps(c[0], c[1]));
    __m256d t2 = _mm256_castps_pd(_mm256_unpacklo_ps(c[2], c[3])), t3 = _mm256_castps_pd(_mm256_unpackhi_ps(c[2], c[3]));
    c[0] = _mm256_castpd_ps(_mm256_unpacklo_pd(t0, t2));
    c[1] = _mm256_castpd_ps(_mm256_unpackhi_pd(t0, t2));
    c[2] = _mm256_castpd_ps(_mm256_unpacklo_pd(t1, t3));
    c[3] = _mm256_castpd_ps(_mm256_unpackhi_pd(t1, t3));
}
KERN_INLINE __m128i first_of_four(int columns) { return _mm_cmpgt_epi32(_mm_set1_epi32(columns), _mm_setr_epi32(0, 1, 2, 3)); }
KERN_INLINE __m128 four(const float *p, int columns)
{
    return columns >= 4 ? _mm_loadu_ps(p) : _mm_maskload_ps(p, first_of_four(columns));
}
KERN_INLINE void v_load_columns(vf column[4], const float *p, size_t stride, int rows, int columns)
{
    for (int k = 0; k < 4; k++) {
        const float *row0 = p + (size_t)(k < rows ? k : rows - 1) * stride;
        const float *row1 = p + (size_t)(4 + k < rows ? 4 + k : rows - 1) * stride;
        column[k] = _mm256_insertf128_ps(_mm256_castps128_ps256(four(row0, columns)), four(row1, columns), 1);
    }
    v_swap_4x4(column);
}
KERN_INLINE void store_four(float *p, __m128 v, int columns)
{
    if (columns >= 4) _mm_storeu_ps(p, v);
    else _mm_maskstore_ps(p, first_of_four(columns), v);
}
KERN_INLINE void v_store_columns(float *p, size_t stride, vf column[4], int rows, int columns)
{
    v_swap_4x4(column);
    for (int k = 0; k < 4; k++) {
        if (k < rows) store_four(p + (size_t)k * stride, _mm256_castps256_ps128(column[k]), columns);
        if (4 + k < rows) store_four(p + (size_t)(4 + k) * stride, _mm256_extractf128_ps(column[k], 1), columns);
    }
}
#endif
