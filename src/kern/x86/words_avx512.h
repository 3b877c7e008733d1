/* Inside kern/x86 only: the words that the vector templates (src/kern/ *.inc.c) are written in, for AVX-512 (F, BW, DQ, VL).
 * v_ fp32, i_ int32, m_ masks of them: VL lanes. d_ double and l_ int64: VL lanes too, in two registers.
 * Loads and stores take `lanes`: VL, or fewer at the end of a row (what is not loaded is 0).
 * v_min(a, b) is a < b ? a : b and v_max(a, b) is a > b ? a : b, so a NaN or a tie gives b. Shifts by 32 and more give 0. */
#ifndef VTRN_KERN_WORDS_AVX512_H
#define VTRN_KERN_WORDS_AVX512_H
#include <immintrin.h>
#include <math.h>

#include "kern/kern_int.h"

enum { VL = 16, WAYS = 4 /* vectors that long computations have in flight */ };
typedef __m512 vf;
typedef __m512i vi;
typedef __mmask16 vm;
typedef struct {
    __m512d low, high;
} vd;
typedef struct {
    __m512i low, high;
} vl;
typedef struct {
    __mmask8 low, high;
} vdm;

KERN_INLINE vm m_first(int lanes) { return (vm)((1u << lanes) - 1); }

/* ---- memory ---- */
KERN_INLINE vf v_load(const float *p, int lanes)
{
    return lanes >= VL ? _mm512_loadu_ps(p) : _mm512_maskz_loadu_ps(m_first(lanes), p);
}
KERN_INLINE void v_store(float *p, vf v, int lanes)
{
    if (lanes >= VL) _mm512_storeu_ps(p, v);
    else _mm512_mask_storeu_ps(p, m_first(lanes), v);
}
KERN_INLINE vi i_load(const void *p, int lanes)
{
    return lanes >= VL ? _mm512_loadu_si512(p) : _mm512_maskz_loadu_epi32(m_first(lanes), p);
}
KERN_INLINE void i_store(void *p, vi v, int lanes)
{
    if (lanes >= VL) _mm512_storeu_si512(p, v);
    else _mm512_mask_storeu_epi32(p, m_first(lanes), v);
}
KERN_INLINE __m128i bytes_16(const void *p, int lanes)
{
    return lanes >= VL ? _mm_loadu_si128(p) : _mm_maskz_loadu_epi8(m_first(lanes), p);
}
KERN_INLINE __m256i halves_16(const void *p, int lanes)
{
    return lanes >= VL ? _mm256_loadu_si256(p) : _mm256_maskz_loadu_epi16(m_first(lanes), p);
}
KERN_INLINE vi i_load_u8(const void *p, int lanes) { return _mm512_cvtepu8_epi32(bytes_16(p, lanes)); }
KERN_INLINE vi i_load_i8(const void *p, int lanes) { return _mm512_cvtepi8_epi32(bytes_16(p, lanes)); }
KERN_INLINE vi i_load_u16(const void *p, int lanes) { return _mm512_cvtepu16_epi32(halves_16(p, lanes)); }
KERN_INLINE vi i_load_i16(const void *p, int lanes) { return _mm512_cvtepi16_epi32(halves_16(p, lanes)); }
KERN_INLINE void i_store_8(void *p, vi v, int lanes) /* the low byte of each lane */
{
    if (lanes >= VL) _mm_storeu_si128(p, _mm512_cvtepi32_epi8(v));
    else _mm_mask_storeu_epi8(p, m_first(lanes), _mm512_cvtepi32_epi8(v));
}
KERN_INLINE void i_store_16(void *p, vi v, int lanes)
{
    if (lanes >= VL) _mm256_storeu_si256(p, _mm512_cvtepi32_epi16(v));
    else _mm256_mask_storeu_epi16(p, m_first(lanes), _mm512_cvtepi32_epi16(v));
}
/* The high half of each lane of a, then of b. */
KERN_INLINE void i_store_high_pair(void *p, vi a, vi b)
{
    const vi odd = _mm512_set_epi16(63, 61, 59, 57, 55, 53, 51, 49, 47, 45, 43, 41, 39, 37, 35, 33, 31, 29, 27, 25, 23, 21, 19, 17,
                                    15, 13, 11, 9, 7, 5, 3, 1);
    _mm512_storeu_si512(p, _mm512_permutex2var_epi16(a, odd, b));
}
KERN_INLINE vf v_load_f16(const void *p, int lanes) { return _mm512_cvtph_ps(halves_16(p, lanes)); }
/* fp8 codes as fp16: sign and magnitude moved up by `shift`, the exponent all ones from least_special on. */
KERN_INLINE vf v_load_f8_as_f16(const void *p, const int shift, const int least_special, int lanes)
{
    __m256i code = _mm256_cvtepi8_epi16(bytes_16(p, lanes)); /* the sign is in bit 15 already */
    __m256i magnitude = _mm256_and_si256(code, _mm256_set1_epi16(0x7f));
    __m256i half = _mm256_ternarylogic_epi32(_mm256_slli_epi16(magnitude, shift), code, _mm256_set1_epi16(INT16_MIN), 0xf8);
    if (least_special << shift < 0x7c00) {
        __mmask16 special = _mm256_cmpgt_epi16_mask(magnitude, _mm256_set1_epi16((short)(least_special - 1)));
        half = _mm256_or_si256(half, _mm256_maskz_mov_epi16(special, _mm256_set1_epi16(0x7c00)));
    }
    return _mm512_cvtph_ps(half);
}
KERN_INLINE void v_store_f16(void *p, vf v, int lanes)
{
    __m256i code = _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    if (lanes >= VL) _mm256_storeu_si256(p, code);
    else _mm256_mask_storeu_epi16(p, m_first(lanes), code);
}

/* ---- fp32 ---- */
KERN_INLINE vf v_set1(float x) { return _mm512_set1_ps(x); }
KERN_INLINE vf v_add(vf a, vf b) { return _mm512_add_ps(a, b); }
KERN_INLINE vf v_sub(vf a, vf b) { return _mm512_sub_ps(a, b); }
KERN_INLINE vf v_mul(vf a, vf b) { return _mm512_mul_ps(a, b); }
KERN_INLINE vf v_div(vf a, vf b) { return _mm512_div_ps(a, b); }
KERN_INLINE vf v_sqrt(vf a) { return _mm512_sqrt_ps(a); }
KERN_INLINE vf v_fma(vf a, vf b, vf c) { return _mm512_fmadd_ps(a, b, c); }
KERN_INLINE vf v_fnma(vf a, vf b, vf c) { return _mm512_fnmadd_ps(a, b, c); } /* c - a * b */
KERN_INLINE vf v_min(vf a, vf b) { return _mm512_min_ps(a, b); }
KERN_INLINE vf v_max(vf a, vf b) { return _mm512_max_ps(a, b); }
KERN_INLINE vi v_bits(vf a) { return _mm512_castps_si512(a); }
KERN_INLINE vf v_of_bits(vi a) { return _mm512_castsi512_ps(a); }
KERN_INLINE vf v_abs(vf a) { return _mm512_abs_ps(a); }
KERN_INLINE vf v_with_sign(vf magnitude, vf sign) /* magnitude has no sign of its own */
{
    return v_of_bits(_mm512_ternarylogic_epi32(v_bits(magnitude), v_bits(sign), _mm512_set1_epi32(INT32_MIN), 0xf8));
}
KERN_INLINE vm v_lt(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ); }
KERN_INLINE vm v_le(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_LE_OQ); }
KERN_INLINE vm v_eq(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ); }
KERN_INLINE vm v_ne(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_NEQ_UQ); } /* a NaN differs from everything */
KERN_INLINE vm v_unordered(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_UNORD_Q); }
KERN_INLINE vf v_sel(vm m, vf a, vf b) { return _mm512_mask_mov_ps(b, m, a); } /* m ? a : b */
KERN_INLINE vf v_one_if(vm m) { return _mm512_maskz_mov_ps(m, _mm512_set1_ps(1)); }
KERN_INLINE vf v_canonical(vf a)
{
    /* classes, lowest digit first: quiet and signalling NaN take the first operand, the other six the second */
    return _mm512_fixupimm_ps(v_of_bits(_mm512_set1_epi32((int)KERN_NAN_BITS)), a, _mm512_set1_epi32(0x11111100), 0);
}
KERN_INLINE vf v_signed_nan(vf a) /* the canonical NaN with the sign it had */
{
    return v_of_bits(_mm512_mask_ternarylogic_epi32(v_bits(a), v_unordered(a, a), _mm512_set1_epi32(INT32_MIN),
                                                    _mm512_set1_epi32((int)KERN_NAN_BITS), 0xea)); /* a & sign | nan */
}
/* sixteen numbers, one picked by the low four bits of each lane */
typedef __m512 v_table16;
KERN_INLINE v_table16 v_table16_of(const float *p) { return _mm512_loadu_ps(p); }
KERN_INLINE vf v_pick16(const v_table16 *t, vi at) { return _mm512_permutexvar_ps(at, *t); }

/* ---- masks ---- */
KERN_INLINE vm m_and(vm a, vm b) { return a & b; }
KERN_INLINE vm m_or(vm a, vm b) { return a | b; }
KERN_INLINE vm m_xor(vm a, vm b) { return a ^ b; }
KERN_INLINE vm m_and_not(vm a, vm b) { return a & (vm)~b; } /* a and not b */
KERN_INLINE unsigned m_bits(vm m) { return m; }
KERN_INLINE bool m_any(vm m) { return m != 0; }

/* ---- int32 ---- */
KERN_INLINE vi i_set1(uint32_t x) { return _mm512_set1_epi32((int)x); }
KERN_INLINE vi i_and(vi a, vi b) { return _mm512_and_si512(a, b); }
KERN_INLINE vi i_or(vi a, vi b) { return _mm512_or_si512(a, b); }
KERN_INLINE vi i_xor(vi a, vi b) { return _mm512_xor_si512(a, b); }
KERN_INLINE vi i_add(vi a, vi b) { return _mm512_add_epi32(a, b); }
KERN_INLINE vi i_sub(vi a, vi b) { return _mm512_sub_epi32(a, b); }
KERN_INLINE vi i_mul(vi a, vi b) { return _mm512_mullo_epi32(a, b); }
KERN_INLINE vi i_max(vi a, vi b) { return _mm512_max_epi32(a, b); }
KERN_INLINE vi i_min(vi a, vi b) { return _mm512_min_epi32(a, b); }
KERN_INLINE vi i_max_u(vi a, vi b) { return _mm512_max_epu32(a, b); }
KERN_INLINE vi i_min_u(vi a, vi b) { return _mm512_min_epu32(a, b); }
KERN_INLINE vi i_sll(vi a, const int n) { return _mm512_slli_epi32(a, (unsigned)n); }
KERN_INLINE vi i_srl(vi a, const int n) { return _mm512_srli_epi32(a, (unsigned)n); }
KERN_INLINE vi i_sra(vi a, const int n) { return _mm512_srai_epi32(a, (unsigned)n); }
KERN_INLINE vi i_sllv(vi a, vi n) { return _mm512_sllv_epi32(a, n); }
KERN_INLINE vi i_srlv(vi a, vi n) { return _mm512_srlv_epi32(a, n); }
KERN_INLINE vm i_eq(vi a, vi b) { return _mm512_cmpeq_epi32_mask(a, b); }
KERN_INLINE vm i_gt(vi a, vi b) { return _mm512_cmpgt_epi32_mask(a, b); }
KERN_INLINE vm i_gt_u(vi a, vi b) { return _mm512_cmpgt_epu32_mask(a, b); }
KERN_INLINE vi i_sel(vm m, vi a, vi b) { return _mm512_mask_mov_epi32(b, m, a); }
KERN_INLINE bool i_any_gt(vi a, vi b) { return _mm512_cmpgt_epi32_mask(a, b) != 0; }
KERN_INLINE vf v_from_i32(vi a) { return _mm512_cvtepi32_ps(a); }
KERN_INLINE vf v_from_u32(vi a) { return _mm512_cvtepu32_ps(a); }
KERN_INLINE vi i_nearest(vf a) { return _mm512_cvtps_epi32(a); } /* where it fits */
KERN_INLINE vi i_saturated(vf a)
{
    vi near = _mm512_maskz_cvtps_epi32(v_eq(a, a), a); /* beyond the range: INT32_MIN */
    return i_sel(v_le(v_set1(0x1p31f), a), i_set1(INT32_MAX), near);
}
KERN_INLINE vi i_saturated_u(vf a) { return _mm512_cvtps_epu32(v_max(a, _mm512_setzero_ps())); } /* beyond: all ones */

/* ---- double: two registers hold VL lanes, so that two chains run side by side ---- */
KERN_INLINE vd d_of(vf a)
{
    return (vd){ _mm512_cvtps_pd(_mm512_castps512_ps256(a)), _mm512_cvtps_pd(_mm512_extractf32x8_ps(a, 1)) };
}
KERN_INLINE vf v_of_d(vd a)
{
    return _mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtpd_ps(a.low)), _mm512_cvtpd_ps(a.high), 1);
}
KERN_INLINE vd d_set1(double x) { return (vd){ _mm512_set1_pd(x), _mm512_set1_pd(x) }; }
KERN_INLINE vd d_add(vd a, vd b) { return (vd){ _mm512_add_pd(a.low, b.low), _mm512_add_pd(a.high, b.high) }; }
KERN_INLINE vd d_sub(vd a, vd b) { return (vd){ _mm512_sub_pd(a.low, b.low), _mm512_sub_pd(a.high, b.high) }; }
KERN_INLINE vd d_mul(vd a, vd b) { return (vd){ _mm512_mul_pd(a.low, b.low), _mm512_mul_pd(a.high, b.high) }; }
KERN_INLINE vd d_div(vd a, vd b) { return (vd){ _mm512_div_pd(a.low, b.low), _mm512_div_pd(a.high, b.high) }; }
KERN_INLINE vd d_min(vd a, vd b) { return (vd){ _mm512_min_pd(a.low, b.low), _mm512_min_pd(a.high, b.high) }; }
KERN_INLINE vd d_max(vd a, vd b) { return (vd){ _mm512_max_pd(a.low, b.low), _mm512_max_pd(a.high, b.high) }; }
KERN_INLINE vd d_fma(vd a, vd b, vd c)
{
    return (vd){ _mm512_fmadd_pd(a.low, b.low, c.low), _mm512_fmadd_pd(a.high, b.high, c.high) };
}
KERN_INLINE vd d_fnma(vd a, vd b, vd c)
{
    return (vd){ _mm512_fnmadd_pd(a.low, b.low, c.low), _mm512_fnmadd_pd(a.high, b.high, c.high) };
}
KERN_INLINE vl d_bits(vd a) { return (vl){ _mm512_castpd_si512(a.low), _mm512_castpd_si512(a.high) }; }
KERN_INLINE vd d_of_bits(vl a) { return (vd){ _mm512_castsi512_pd(a.low), _mm512_castsi512_pd(a.high) }; }
KERN_INLINE vd d_abs(vd a) { return (vd){ _mm512_abs_pd(a.low), _mm512_abs_pd(a.high) }; }
KERN_INLINE vdm d_lt(vd a, vd b)
{
    return (vdm){ _mm512_cmp_pd_mask(a.low, b.low, _CMP_LT_OQ), _mm512_cmp_pd_mask(a.high, b.high, _CMP_LT_OQ) };
}
KERN_INLINE vdm d_le(vd a, vd b)
{
    return (vdm){ _mm512_cmp_pd_mask(a.low, b.low, _CMP_LE_OQ), _mm512_cmp_pd_mask(a.high, b.high, _CMP_LE_OQ) };
}
KERN_INLINE vdm d_eq(vd a, vd b)
{
    return (vdm){ _mm512_cmp_pd_mask(a.low, b.low, _CMP_EQ_OQ), _mm512_cmp_pd_mask(a.high, b.high, _CMP_EQ_OQ) };
}
KERN_INLINE vd d_sel(vdm m, vd a, vd b)
{
    return (vd){ _mm512_mask_mov_pd(b.low, m.low, a.low), _mm512_mask_mov_pd(b.high, m.high, a.high) };
}
KERN_INLINE vl l_set1(uint64_t x) { return (vl){ _mm512_set1_epi64((long long)x), _mm512_set1_epi64((long long)x) }; }
KERN_INLINE vl l_and(vl a, vl b) { return (vl){ _mm512_and_si512(a.low, b.low), _mm512_and_si512(a.high, b.high) }; }
KERN_INLINE vl l_or(vl a, vl b) { return (vl){ _mm512_or_si512(a.low, b.low), _mm512_or_si512(a.high, b.high) }; }
KERN_INLINE vl l_add(vl a, vl b) { return (vl){ _mm512_add_epi64(a.low, b.low), _mm512_add_epi64(a.high, b.high) }; }
KERN_INLINE vl l_sub(vl a, vl b) { return (vl){ _mm512_sub_epi64(a.low, b.low), _mm512_sub_epi64(a.high, b.high) }; }
KERN_INLINE vl l_sll(vl a, const int n)
{
    return (vl){ _mm512_slli_epi64(a.low, (unsigned)n), _mm512_slli_epi64(a.high, (unsigned)n) };
}
KERN_INLINE vl l_srl(vl a, const int n)
{
    return (vl){ _mm512_srli_epi64(a.low, (unsigned)n), _mm512_srli_epi64(a.high, (unsigned)n) };
}

/* ---- VL rows by 4 columns ---- */
/* In each group of four lanes: 4 x 4 transposed. It is its own inverse. */
KERN_INLINE void v_swap_4x4(vf c[4])
{
    __m512d t0 = _mm512_castps_pd(_mm512_unpacklo_ps(c[0], c[1])), t1 = _mm512_castps_pd(_mm512_unpackhi_ps(c[0], c[1]));
    __m512d t2 = _mm512_castps_pd(_mm512_unpacklo_ps(c[2], c[3])), t3 = _mm512_castps_pd(_mm512_unpackhi_ps(c[2], c[3]));
    c[0] = _mm512_castpd_ps(_mm512_unpacklo_pd(t0, t2));
    c[1] = _mm512_castpd_ps(_mm512_unpackhi_pd(t0, t2));
    c[2] = _mm512_castpd_ps(_mm512_unpacklo_pd(t1, t3));
    c[3] = _mm512_castpd_ps(_mm512_unpackhi_pd(t1, t3));
}
KERN_INLINE __m128 four(const float *p, int columns)
{
    return columns >= 4 ? _mm_loadu_ps(p) : _mm_maskz_loadu_ps((__mmask8)((1u << columns) - 1), p);
}
/* column[k] lane j = row j, element k, of rows `stride` apart; lanes from `rows` on repeat the last row. Halves of 8 lanes
 * first: 16-byte pieces go into 32-byte registers twice as fast as into 64-byte ones. */
KERN_INLINE void v_load_columns(vf column[4], const float *p, size_t stride, int rows, int columns)
{
    for (int k = 0; k < 4; k++) {
        __m256 half[2];
        for (int h = 0; h < 2; h++) {
            int low = 8 * h + k, high = low + 4;
            const float *row0 = p + (size_t)(low < rows ? low : rows - 1) * stride;
            const float *row1 = p + (size_t)(high < rows ? high : rows - 1) * stride;
            half[h] = _mm256_insertf128_ps(_mm256_castps128_ps256(four(row0, columns)), four(row1, columns), 1);
        }
        column[k] = _mm512_insertf32x8(_mm512_castps256_ps512(half[0]), half[1], 1);
    }
    v_swap_4x4(column);
}
KERN_INLINE void store_four(float *p, __m128 v, int columns)
{
    if (columns >= 4) _mm_storeu_ps(p, v);
    else _mm_mask_storeu_ps(p, (__mmask8)((1u << columns) - 1), v);
}
KERN_INLINE void v_store_columns(float *p, size_t stride, vf column[4], int rows, int columns)
{
    v_swap_4x4(column);
    for (int k = 0; k < 4; k++) {
        for (int h = 0; h < 2; h++) {
            __m256 half = h == 0 ? _mm512_castps512_ps256(column[k]) : _mm512_extractf32x8_ps(column[k], 1);
            int low = 8 * h + k, high = low + 4;
            if (low < rows) store_four(p + (size_t)low * stride, _mm256_castps256_ps128(half), columns);
            if (high < rows) store_four(p + (size_t)high * stride, _mm256_extractf128_ps(half, 1), columns);
        }
    }
}
#endif
