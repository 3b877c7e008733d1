/* The tile product on AVX-512 (F, BW, DQ, VL): the words for mm_fma.inc.c with 16 lanes, masks for the ends of rows.
 * 8 x 2 accumulators: 16 chains hide the latency of fma (4 cycles, two a cycle on the widest cores) with 10 loads for
 * 16 fma, and a moving panel of 32 columns x 128 steps is 16 KiB, half of the smallest L1 cache in use. */
#include "kern/x86/mm_words_avx512.h"

enum { MR = 8, NV = 2, DIRECT_M = 4 };
#define EACH_MR(X)     X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8)
#define EACH_NV(mr, X) X(mr, 1) X(mr, 2)

MM_INLINE int direct_vectors(int m) { return m <= 2 ? 8 : 4; }

MM_INLINE vf tf32_round(vf v)
{
    __m512i bits = _mm512_castps_si512(v);
    __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 13), _mm512_set1_epi32(1));
    __m512i up = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0xfff)), odd);
    __m512i rounded = _mm512_and_si512(up, _mm512_set1_epi32(~0x1fff));
    return _mm512_mask_mov_ps(_mm512_castsi512_ps(rounded), _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q), v);
}
/* fp8 codes 0..255, one in each dword. */
MM_INLINE vf f8_value(const int dtype, __m512i code)
{
    const struct mm_f8 f = mm_f8(dtype);
    __m512i magnitude = _mm512_and_si512(code, _mm512_set1_epi32(0x7f));
    __m512i sign = _mm512_slli_epi32(_mm512_and_si512(code, _mm512_set1_epi32(0x80)), 24);
    __m512i bits = _mm512_add_epi32(_mm512_slli_epi32(magnitude, f.shift), _mm512_set1_epi32(f.rebias));
    __mmask16 denormal = _mm512_cmplt_epi32_mask(magnitude, _mm512_set1_epi32(f.least_normal));
    bits = _mm512_castps_si512(
        _mm512_mask_mul_ps(_mm512_castsi512_ps(bits), denormal, _mm512_cvtepi32_ps(magnitude), _mm512_set1_ps(f.denormal_unit)));
    __mmask16 special = _mm512_cmpge_epi32_mask(magnitude, _mm512_set1_epi32(f.least_special));
    bits = _mm512_mask_or_epi32(bits, special, bits, _mm512_set1_epi32(0x7f800000));
    return _mm512_castsi512_ps(_mm512_or_si512(bits, sign));
}
MM_INLINE vf v_widen(const int dtype, const void *p, int lanes)
{
    __mmask16 mask = mask16(lanes);
    switch (dtype) {
    case VTRN_DT_TF32: return tf32_round(_mm512_maskz_loadu_ps(mask, p));
    case VTRN_DT_BF16: return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, p)), 16));
    case VTRN_DT_F16: return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(mask, p));
    case VTRN_DT_F8E4M3:
    case VTRN_DT_F8E4M3FN:
    case VTRN_DT_F8E5M2: return f8_value(dtype, _mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(mask, p)));
    default: return _mm512_maskz_loadu_ps(mask, p);
    }
}

/* 2^(byte-127) of each scale byte; 0xff is NaN. */
MM_INLINE vf scale_value(__m512i code)
{
    __m512i bits = _mm512_slli_epi32(code, 23);
    bits = _mm512_mask_mov_epi32(bits, _mm512_testn_epi32_mask(code, code), _mm512_set1_epi32(0x00400000));
    bits = _mm512_mask_mov_epi32(bits, _mm512_cmpeq_epi32_mask(code, _mm512_set1_epi32(0xff)), _mm512_set1_epi32(MM_NAN_BITS));
    return _mm512_castsi512_ps(bits);
}
MM_INLINE void v_widen_mx(const int dtype, const void *p, const uint8_t *scale, int lanes, vf out[4])
{
    __mmask16 mask = mask16(lanes);
    vf factor = scale_value(_mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(mask, scale)));
    if (dtype == VTRN_DT_F4E2M1FNX4) {
        __m512i packed = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, p));
        static const float table[16] = { MM_E2M1_VALUES };
        vf values = _mm512_loadu_ps(table);
        for (int q = 0; q < 4; q++) /* the permute reads the low four bits of each index */
            out[q] = _mm512_maskz_mul_ps(mask, _mm512_permutexvar_ps(_mm512_srli_epi32(packed, 4 * q), values), factor);
        return;
    }
    __m512i packed = _mm512_maskz_loadu_epi32(mask, p);
    for (int q = 0; q < 4; q++) {
        __m512i code = _mm512_and_si512(_mm512_srli_epi32(packed, 8 * q), _mm512_set1_epi32(0xff));
        out[q] = _mm512_maskz_mul_ps(mask, f8_value(dtype, code), factor);
    }
}

#include "kern/mm_fma.inc.c"

void vtrn_mm_fma_avx512(const struct mm_product *p) { fma_product(p); }

static void mm_avx512(const struct vtrn_mm *mm)
{
    struct mm_product p = mm_product_of(mm);
    fma_product(&p);
}
static void mm_mx_avx512(const struct vtrn_mm_mx *mm)
{
    struct mm_product p = mm_product_of_mx(mm);
    fma_product(&p);
}
void vtrn_mm_init_avx512(struct vtrn_kern *kern)
{
    kern->mm = mm_avx512;
    kern->mm_mx = mm_mx_avx512;
}
