/* The tile product on NEON (AArch64): the words for mm_fma.inc.c with 4 lanes. 4 x 4 accumulators: 16 chains hide the
 * latency of fma on cores that start four a cycle. NEON has no masked memory access; ends of rows go through a small copy. */
#include <arm_neon.h>

#include "kern/mm_int.h"

enum { VL = 4, MR = 4, NV = 4, DIRECT_M = 4 };
#define EACH_MR(X)     X(1) X(2) X(3) X(4)
#define EACH_NV(mr, X) X(mr, 1) X(mr, 2) X(mr, 3) X(mr, 4)
typedef float32x4_t vf;

MM_INLINE int direct_vectors(int m) { return m <= 2 ? 8 : 4; }
MM_INLINE vf v_zero(void) { return vdupq_n_f32(0); }
MM_INLINE vf v_load(const float *p) { return vreinterpretq_f32_u8(vld1q_u8((const uint8_t *)p)); }
MM_INLINE void v_store(float *p, vf v) { vst1q_u8((uint8_t *)p, vreinterpretq_u8_f32(v)); }
MM_INLINE vf v_load_part(const float *p, int lanes)
{
    float end[4] = { 0 };
    memcpy(end, p, (size_t)lanes * sizeof *end);
    return vld1q_f32(end);
}
MM_INLINE void v_store_part(float *p, vf v, int lanes)
{
    float end[4];
    vst1q_f32(end, v);
    memcpy(p, end, (size_t)lanes * sizeof *end);
}
MM_INLINE vf v_set1(const float *p) { return vld1q_dup_f32(p); }
MM_INLINE vf v_fma(vf a, vf b, vf c) { return vfmaq_f32(c, a, b); }
MM_INLINE vf v_add(vf a, vf b) { return vaddq_f32(a, b); }
MM_INLINE bool v_any_nan(vf v) { return vminvq_u32(vceqq_f32(v, v)) == 0; }
MM_INLINE vf v_canonical(vf v) { return vbslq_f32(vceqq_f32(v, v), v, vreinterpretq_f32_u32(vdupq_n_u32(MM_NAN_BITS))); }

MM_INLINE vf tf32_round(vf v)
{
    uint32x4_t bits = vreinterpretq_u32_f32(v);
    uint32x4_t odd = vandq_u32(vshrq_n_u32(bits, 13), vdupq_n_u32(1));
    uint32x4_t up = vaddq_u32(vaddq_u32(bits, vdupq_n_u32(0xfff)), odd);
    uint32x4_t rounded = vandq_u32(up, vdupq_n_u32(~UINT32_C(0x1fff)));
    return vbslq_f32(vceqq_f32(v, v), vreinterpretq_f32_u32(rounded), v);
}
/* fp8 codes 0..255, one in each word. */
MM_INLINE vf f8_value(const int dtype, uint32x4_t code)
{
    const struct mm_f8 f = mm_f8(dtype);
    uint32x4_t magnitude = vandq_u32(code, vdupq_n_u32(0x7f));
    uint32x4_t sign = vshlq_n_u32(vandq_u32(code, vdupq_n_u32(0x80)), 24);
    uint32x4_t bits = vaddq_u32(vshlq_u32(magnitude, vdupq_n_s32(f.shift)), vdupq_n_u32((uint32_t)f.rebias));
    uint32x4_t special = vcgeq_u32(magnitude, vdupq_n_u32((uint32_t)f.least_special));
    bits = vorrq_u32(bits, vandq_u32(special, vdupq_n_u32(0x7f800000)));
    vf denormal = vmulq_n_f32(vcvtq_f32_u32(magnitude), f.denormal_unit);
    uint32x4_t is_denormal = vcltq_u32(magnitude, vdupq_n_u32((uint32_t)f.least_normal));
    bits = vbslq_u32(is_denormal, vreinterpretq_u32_f32(denormal), bits);
    return vreinterpretq_f32_u32(vorrq_u32(bits, sign));
}
MM_INLINE size_t widen_bytes(const int dtype)
{
    return dtype == VTRN_DT_F32 || dtype == VTRN_DT_TF32 ? 4 : dtype == VTRN_DT_BF16 || dtype == VTRN_DT_F16 ? 2 : 1;
}
MM_INLINE vf v_widen(const int dtype, const void *p, int lanes)
{
    uint8_t raw[16] = { 0 };
    memcpy(raw, p, (size_t)lanes * widen_bytes(dtype)); /* a plain load when `lanes` is the constant VL */
    switch (dtype) {
    case VTRN_DT_TF32: return tf32_round(vreinterpretq_f32_u8(vld1q_u8(raw)));
    case VTRN_DT_BF16: return vreinterpretq_f32_u32(vshll_n_u16(vreinterpret_u16_u8(vld1_u8(raw)), 16));
    case VTRN_DT_F16: return vcvt_f32_f16(vreinterpret_f16_u8(vld1_u8(raw)));
    case VTRN_DT_F8E4M3:
    case VTRN_DT_F8E4M3FN:
    case VTRN_DT_F8E5M2: return f8_value(dtype, vmovl_u16(vget_low_u16(vmovl_u8(vld1_u8(raw)))));
    default: return vreinterpretq_f32_u8(vld1q_u8(raw));
    }
}

/* 2^(byte-127) of each scale byte; 0xff is NaN. */
MM_INLINE vf scale_value(uint32x4_t code)
{
    uint32x4_t bits = vshlq_n_u32(code, 23);
    bits = vbslq_u32(vceqq_u32(code, vdupq_n_u32(0)), vdupq_n_u32(0x00400000), bits);
    return vreinterpretq_f32_u32(vbslq_u32(vceqq_u32(code, vdupq_n_u32(0xff)), vdupq_n_u32(MM_NAN_BITS), bits));
}
/* The value of an e2m1 code: its magnitude in halves (0 1 2 3 4 6 8 12) by table, a sign, and half of that. */
MM_INLINE vf e2m1_value(uint32x4_t code)
{
    static const uint8_t halves[16] = { 0, 1, 2, 3, 4, 6, 8, 12 };
    uint32x4_t sign = vshlq_n_u32(vandq_u32(code, vdupq_n_u32(8)), 28);
    /* the other bytes of each word look up entry 0, which is 0 */
    uint8x16_t index = vreinterpretq_u8_u32(vandq_u32(code, vdupq_n_u32(7)));
    vf magnitude = vcvtq_n_f32_u32(vreinterpretq_u32_u8(vqtbl1q_u8(vld1q_u8(halves), index)), 1);
    return vreinterpretq_f32_u32(vorrq_u32(vreinterpretq_u32_f32(magnitude), sign));
}
MM_INLINE void v_widen_mx(const int dtype, const void *p, const uint8_t *scale, int lanes, vf out[4])
{
    const bool fp4 = dtype == VTRN_DT_F4E2M1FNX4;
    uint8_t raw[16] = { 0 }, raw_scale[8] = { 0 };
    memcpy(raw, p, (size_t)lanes * (fp4 ? 2 : 4));
    memcpy(raw_scale, scale, (size_t)lanes);
    vf factor = scale_value(vmovl_u16(vget_low_u16(vmovl_u8(vld1_u8(raw_scale)))));
    uint32x4_t packed = fp4 ? vmovl_u16(vreinterpret_u16_u8(vld1_u8(raw))) : vreinterpretq_u32_u8(vld1q_u8(raw));
    for (int q = 0; q < 4; q++) {
        uint32x4_t code = vshlq_u32(packed, vdupq_n_s32(fp4 ? -4 * q : -8 * q));
        vf value = fp4 ? e2m1_value(vandq_u32(code, vdupq_n_u32(0xf))) : f8_value(dtype, vandq_u32(code, vdupq_n_u32(0xff)));
        out[q] = vmulq_f32(value, factor);
    }
}

#include "kern/mm_fma.inc.c"

static void mm_neon(const struct vtrn_mm *mm)
{
    struct mm_product p = mm_product_of(mm);
    fma_product(&p);
}
static void mm_mx_neon(const struct vtrn_mm_mx *mm)
{
    struct mm_product p = mm_product_of_mx(mm);
    fma_product(&p);
}

void vtrn_kern_arm_mm(struct vtrn_kern *kern)
{
    kern->mm = mm_neon;
    kern->mm_mx = mm_mx_neon;
    vtrn_kern_arm_transpose(kern);
}
