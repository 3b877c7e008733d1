/* The tile product on AVX2 + FMA + F16C: the words for mm_fma.inc.c with 8 lanes. 4 x 3 accumulators, three loads and one
 * broadcast fill the 16 registers: 12 chains hide the latency of fma with 7 loads for 12 fma.
 * AVX2 has masked loads and stores only for 32-bit elements; ends of narrower rows go through a small copy. */
#include <immintrin.h>

#include "kern/x86/mm_x86.h"

enum { VL = 8, MR = 4, NV = 3, DIRECT_M = 4 };
#define EACH_MR(X)     X(1) X(2) X(3) X(4)
#define EACH_NV(mr, X) X(mr, 1) X(mr, 2) X(mr, 3)
typedef __m256 vf;

MM_INLINE int direct_vectors(int m) { return m == 1 ? 8 : m == 2 ? 5 : m == 3 ? 3 : 2; }
MM_INLINE __m256i mask8(int lanes)
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(lanes), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
MM_INLINE vf v_zero(void) { return _mm256_setzero_ps(); }
MM_INLINE vf v_load(const float *p) { return _mm256_loadu_ps(p); }
MM_INLINE vf v_load_part(const float *p, int lanes) { return _mm256_maskload_ps(p, mask8(lanes)); }
MM_INLINE void v_store(float *p, vf v) { _mm256_storeu_ps(p, v); }
MM_INLINE void v_store_part(float *p, vf v, int lanes) { _mm256_maskstore_ps(p, mask8(lanes), v); }
MM_INLINE vf v_set1(const float *p) { return _mm256_broadcast_ss(p); }
MM_INLINE vf v_fma(vf a, vf b, vf c) { return _mm256_fmadd_ps(a, b, c); }
MM_INLINE vf v_add(vf a, vf b) { return _mm256_add_ps(a, b); }
MM_INLINE vf v_bits(int bits) { return _mm256_castsi256_ps(_mm256_set1_epi32(bits)); }
MM_INLINE bool v_any_nan(vf v) { return _mm256_movemask_ps(_mm256_cmp_ps(v, v, _CMP_UNORD_Q)) != 0; }
MM_INLINE vf v_canonical(vf v) { return _mm256_blendv_ps(v, v_bits(MM_NAN_BITS), _mm256_cmp_ps(v, v, _CMP_UNORD_Q)); }

MM_INLINE vf tf32_round(vf v)
{
    __m256i bits = _mm256_castps_si256(v);
    __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 13), _mm256_set1_epi32(1));
    __m256i up = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0xfff)), odd);
    __m256i rounded = _mm256_and_si256(up, _mm256_set1_epi32(~0x1fff));
    return _mm256_blendv_ps(_mm256_castsi256_ps(rounded), v, _mm256_cmp_ps(v, v, _CMP_UNORD_Q));
}
/* fp8 codes 0..255, one in each dword. */
MM_INLINE vf f8_value(const int dtype, __m256i code)
{
    const struct mm_f8 f = mm_f8(dtype);
    __m256i magnitude = _mm256_and_si256(code, _mm256_set1_epi32(0x7f));
    vf sign = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_and_si256(code, _mm256_set1_epi32(0x80)), 24));
    __m256i bits = _mm256_add_epi32(_mm256_slli_epi32(magnitude, f.shift), _mm256_set1_epi32(f.rebias));
    __m256i special = _mm256_cmpgt_epi32(magnitude, _mm256_set1_epi32(f.least_special - 1));
    bits = _mm256_or_si256(bits, _mm256_and_si256(special, _mm256_set1_epi32(0x7f800000)));
    vf denormal = _mm256_mul_ps(_mm256_cvtepi32_ps(magnitude), _mm256_set1_ps(f.denormal_unit));
    __m256i is_denormal = _mm256_cmpgt_epi32(_mm256_set1_epi32(f.least_normal), magnitude);
    vf value = _mm256_blendv_ps(_mm256_castsi256_ps(bits), denormal, _mm256_castsi256_ps(is_denormal));
    return _mm256_or_ps(value, sign);
}
MM_INLINE vf v_widen(const int dtype, const void *p, int lanes)
{
    uint8_t end[8 * 2];
    bool narrow = dtype != VTRN_DT_F32 && dtype != VTRN_DT_TF32;
    if (narrow && lanes < VL) {
        memset(end, 0, sizeof end);
        memcpy(end, p, (size_t)lanes * (dtype == VTRN_DT_BF16 || dtype == VTRN_DT_F16 ? 2 : 1));
        p = end;
    }
    switch (dtype) {
    case VTRN_DT_TF32: return tf32_round(lanes == VL ? _mm256_loadu_ps(p) : v_load_part(p, lanes));
    case VTRN_DT_BF16: return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128(p)), 16));
    case VTRN_DT_F16: return _mm256_cvtph_ps(_mm_loadu_si128(p));
    case VTRN_DT_F8E4M3:
    case VTRN_DT_F8E4M3FN:
    case VTRN_DT_F8E5M2: return f8_value(dtype, _mm256_cvtepu8_epi32(_mm_loadl_epi64(p)));
    default: return lanes == VL ? _mm256_loadu_ps(p) : v_load_part(p, lanes);
    }
}

/* 2^(byte-127) of each scale byte; 0xff is NaN. */
MM_INLINE vf scale_value(__m256i code)
{
    vf value = _mm256_castsi256_ps(_mm256_slli_epi32(code, 23));
    __m256i is_nan = _mm256_cmpeq_epi32(code, _mm256_set1_epi32(0xff));
    __m256i is_least = _mm256_cmpeq_epi32(code, _mm256_setzero_si256());
    value = _mm256_blendv_ps(value, v_bits(MM_NAN_BITS), _mm256_castsi256_ps(is_nan));
    return _mm256_blendv_ps(value, v_bits(0x00400000), _mm256_castsi256_ps(is_least));
}
MM_INLINE void v_widen_mx(const int dtype, const void *p, const uint8_t *scale, int lanes, vf out[4])
{
    uint8_t end[8 * 4] = { 0 }, scale_end[8] = { 0 };
    const bool fp4 = dtype == VTRN_DT_F4E2M1FNX4;
    if (lanes < VL) {
        memcpy(end, p, (size_t)lanes * (fp4 ? 2 : 4));
        memcpy(scale_end, scale, (size_t)lanes);
        p = end;
        scale = scale_end;
    }
    vf factor = scale_value(_mm256_cvtepu8_epi32(_mm_loadl_epi64((const void *)scale)));
    if (fp4) {
        const float values[16] = { MM_E2M1_VALUES };
        vf positive = _mm256_loadu_ps(values);
        __m256i packed = _mm256_cvtepu16_epi32(_mm_loadu_si128(p));
        for (int q = 0; q < 4; q++) { /* the permute reads the low three bits; bit 3 is the sign */
            __m256i code = _mm256_srli_epi32(packed, 4 * q);
            vf sign = _mm256_castsi256_ps(_mm256_and_si256(_mm256_slli_epi32(code, 28), _mm256_set1_epi32(INT32_MIN)));
            out[q] = _mm256_mul_ps(_mm256_or_ps(_mm256_permutevar8x32_ps(positive, code), sign), factor);
        }
        return;
    }
    __m256i packed = _mm256_loadu_si256(p);
    for (int q = 0; q < 4; q++) {
        __m256i code = _mm256_and_si256(_mm256_srli_epi32(packed, 8 * q), _mm256_set1_epi32(0xff));
        out[q] = _mm256_mul_ps(f8_value(dtype, code), factor);
    }
}

#include "kern/mm_fma.inc.c"

static void mm_avx2(const struct vtrn_mm *mm)
{
    struct mm_product p = mm_product_of(mm);
    fma_product(&p);
}
static void mm_mx_avx2(const struct vtrn_mm_mx *mm)
{
    struct mm_product p = mm_product_of_mx(mm);
    fma_product(&p);
}
void vtrn_mm_init_avx2(struct vtrn_kern *kern)
{
    kern->mm = mm_avx2;
    kern->mm_mx = mm_mx_avx2;
}
