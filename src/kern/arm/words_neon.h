/* Inside kern/arm only: the words of the vector templates (see x86/words_avx512.h) for NEON on AArch64. Masks are vectors of
 * ones and zeros. There are no masked loads: ends of rows go through a small copy. fmin and fmax treat zeros and NaNs in
 * their own way, so v_min and v_max are a comparison and a choice. */
#ifndef VTRN_KERN_WORDS_NEON_H
#define VTRN_KERN_WORDS_NEON_H
#include <arm_neon.h>
#include <math.h>

#include "kern/kern_int.h"

enum { VL = 4, WAYS = 4 };
typedef float32x4_t vf;
typedef int32x4_t vi;
typedef uint32x4_t vm;
typedef struct {
    float64x2_t low, high;
} vd;
typedef struct {
    uint64x2_t low, high;
} vl;
typedef vl vdm;

/* ---- memory ---- */
KERN_INLINE vf v_load(const float *p, int lanes)
{
    float end[VL] = { 0 };
    if (lanes >= VL) return vld1q_f32(p);
    memcpy(end, p, (size_t)lanes * 4);
    return vld1q_f32(end);
}
KERN_INLINE void v_store(float *p, vf v, int lanes)
{
    float end[VL];
    if (lanes >= VL) {
        vst1q_f32(p, v);
        return;
    }
    vst1q_f32(end, v);
    memcpy(p, end, (size_t)lanes * 4);
}
KERN_INLINE vi i_load(const void *p, int lanes) { return vreinterpretq_s32_f32(v_load(p, lanes)); }
KERN_INLINE void i_store(void *p, vi v, int lanes) { v_store(p, vreinterpretq_f32_s32(v), lanes); }
KERN_INLINE uint8x8_t bytes_4(const void *p, int lanes)
{
    uint32_t end = 0;
    memcpy(&end, p, lanes >= VL ? 4 : (size_t)lanes);
    return vcreate_u8(end);
}
KERN_INLINE uint16x4_t halves_4(const void *p, int lanes)
{
    uint64_t end = 0;
    memcpy(&end, p, lanes >= VL ? 8 : (size_t)lanes * 2);
    return vcreate_u16(end);
}
KERN_INLINE vi i_load_u16(const void *p, int lanes) { return vreinterpretq_s32_u32(vmovl_u16(halves_4(p, lanes))); }
KERN_INLINE vi i_load_i16(const void *p, int lanes) { return vmovl_s16(vreinterpret_s16_u16(halves_4(p, lanes))); }
KERN_INLINE vi i_load_u8(const void *p, int lanes)
{
    return vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(vmovl_u8(bytes_4(p, lanes)))));
}
KERN_INLINE vi i_load_i8(const void *p, int lanes)
{
    return vmovl_s16(vget_low_s16(vmovl_s8(vreinterpret_s8_u8(bytes_4(p, lanes)))));
}
KERN_INLINE void i_store_16(void *p, vi v, int lanes)
{
    uint64_t bits = vget_lane_u64(vreinterpret_u64_s16(vmovn_s32(v)), 0);
    memcpy(p, &bits, lanes >= VL ? 8 : (size_t)lanes * 2);
}
KERN_INLINE void i_store_8(void *p, vi v, int lanes)
{
    int16x4_t half = vmovn_s32(v);
    uint32_t bits = vget_lane_u32(vreinterpret_u32_s8(vmovn_s16(vcombine_s16(half, half))), 0);
    memcpy(p, &bits, lanes >= VL ? 4 : (size_t)lanes);
}
KERN_INLINE void i_store_high_pair(void *p, vi a, vi b)
{
    int16x8_t odd = vuzp2q_s16(vreinterpretq_s16_s32(a), vreinterpretq_s16_s32(b));
    memcpy(p, &odd, sizeof odd);
}
KERN_INLINE vf v_load_f16(const void *p, int lanes) { return vcvt_f32_f16(vreinterpret_f16_u16(halves_4(p, lanes))); }
KERN_INLINE vf v_load_f8_as_f16(const void *p, const int shift, const int least_special, int lanes)
{
    uint16x4_t code = vget_low_u16(vmovl_u8(bytes_4(p, lanes))), magnitude = vand_u16(code, vdup_n_u16(0x7f));
    uint16x4_t sign = vand_u16(vshl_n_u16(code, 8), vdup_n_u16(0x8000));
    uint16x4_t half = vorr_u16(vshl_u16(magnitude, vdup_n_s16((int16_t)shift)), sign);
    if (least_special << shift < 0x7c00) {
        uint16x4_t special = vcge_u16(magnitude, vdup_n_u16((uint16_t)least_special));
        half = vorr_u16(half, vand_u16(special, vdup_n_u16(0x7c00)));
    }
    return vcvt_f32_f16(vreinterpret_f16_u16(half));
}
KERN_INLINE void v_store_f16(void *p, vf v, int lanes)
{
    uint64_t bits = vget_lane_u64(vreinterpret_u64_f16(vcvt_f16_f32(v)), 0);
    memcpy(p, &bits, lanes >= VL ? 8 : (size_t)lanes * 2);
}

/* ---- int32 ---- */
KERN_INLINE vi i_set1(uint32_t x) { return vreinterpretq_s32_u32(vdupq_n_u32(x)); }
KERN_INLINE uint32x4_t u_of(vi a) { return vreinterpretq_u32_s32(a); }
KERN_INLINE vi i_of(uint32x4_t a) { return vreinterpretq_s32_u32(a); }
KERN_INLINE vi i_and(vi a, vi b) { return vandq_s32(a, b); }
KERN_INLINE vi i_or(vi a, vi b) { return vorrq_s32(a, b); }
KERN_INLINE vi i_xor(vi a, vi b) { return veorq_s32(a, b); }
KERN_INLINE vi i_add(vi a, vi b) { return vaddq_s32(a, b); }
KERN_INLINE vi i_sub(vi a, vi b) { return vsubq_s32(a, b); }
KERN_INLINE vi i_mul(vi a, vi b) { return vmulq_s32(a, b); }
KERN_INLINE vi i_max(vi a, vi b) { return vmaxq_s32(a, b); }
KERN_INLINE vi i_min(vi a, vi b) { return vminq_s32(a, b); }
KERN_INLINE vi i_max_u(vi a, vi b) { return i_of(vmaxq_u32(u_of(a), u_of(b))); }
KERN_INLINE vi i_min_u(vi a, vi b) { return i_of(vminq_u32(u_of(a), u_of(b))); }
KERN_INLINE vi i_sll(vi a, const int n) { return vshlq_s32(a, vdupq_n_s32(n)); }
KERN_INLINE vi i_srl(vi a, const int n) { return i_of(vshlq_u32(u_of(a), vdupq_n_s32(-n))); }
KERN_INLINE vi i_sra(vi a, const int n) { return vshlq_s32(a, vdupq_n_s32(-n)); }
/* The instruction looks at the count's low byte as a signed number, so counts are cut to 0..32 first. */
KERN_INLINE vi i_sllv(vi a, vi n) { return i_of(vshlq_u32(u_of(a), i_of(vminq_u32(u_of(n), vdupq_n_u32(32))))); }
KERN_INLINE vi i_srlv(vi a, vi n) { return i_of(vshlq_u32(u_of(a), vnegq_s32(i_of(vminq_u32(u_of(n), vdupq_n_u32(32)))))); }
KERN_INLINE vm i_eq(vi a, vi b) { return vceqq_s32(a, b); }
KERN_INLINE vm i_gt(vi a, vi b) { return vcgtq_s32(a, b); }
KERN_INLINE vm i_gt_u(vi a, vi b) { return vcgtq_u32(u_of(a), u_of(b)); }
KERN_INLINE vi i_sel(vm m, vi a, vi b) { return vbslq_s32(m, a, b); }
KERN_INLINE bool i_any_gt(vi a, vi b) { return vmaxvq_u32(vcgtq_s32(a, b)) != 0; }
KERN_INLINE vf v_from_i32(vi a) { return vcvtq_f32_s32(a); }
KERN_INLINE vf v_from_u32(vi a) { return vcvtq_f32_u32(u_of(a)); }
KERN_INLINE vi i_nearest(vf a) { return vcvtnq_s32_f32(a); }
KERN_INLINE vi i_saturated(vf a) { return vcvtnq_s32_f32(a); } /* saturates, NaN gives 0 */
KERN_INLINE vi i_saturated_u(vf a) { return i_of(vcvtnq_u32_f32(a)); }

/* ---- masks ---- */
KERN_INLINE vm m_and(vm a, vm b) { return vandq_u32(a, b); }
KERN_INLINE vm m_or(vm a, vm b) { return vorrq_u32(a, b); }
KERN_INLINE vm m_xor(vm a, vm b) { return veorq_u32(a, b); }
KERN_INLINE vm m_and_not(vm a, vm b) { return vbicq_u32(a, b); }
KERN_INLINE bool m_any(vm m) { return vmaxvq_u32(m) != 0; }
KERN_INLINE unsigned m_bits(vm m)
{
    const uint32x4_t bit = { 1, 2, 4, 8 };
    return vaddvq_u32(vandq_u32(m, bit));
}

/* ---- fp32 ---- */
KERN_INLINE vf v_set1(float x) { return vdupq_n_f32(x); }
KERN_INLINE vf v_add(vf a, vf b) { return vaddq_f32(a, b); }
KERN_INLINE vf v_sub(vf a, vf b) { return vsubq_f32(a, b); }
KERN_INLINE vf v_mul(vf a, vf b) { return vmulq_f32(a, b); }
KERN_INLINE vf v_div(vf a, vf b) { return vdivq_f32(a, b); }
KERN_INLINE vf v_sqrt(vf a) { return vsqrtq_f32(a); }
KERN_INLINE vf v_fma(vf a, vf b, vf c) { return vfmaq_f32(c, a, b); }
KERN_INLINE vf v_fnma(vf a, vf b, vf c) { return vfmsq_f32(c, a, b); }
KERN_INLINE vi v_bits(vf a) { return vreinterpretq_s32_f32(a); }
KERN_INLINE vf v_of_bits(vi a) { return vreinterpretq_f32_s32(a); }
KERN_INLINE vf v_abs(vf a) { return vabsq_f32(a); }
KERN_INLINE vf v_with_sign(vf magnitude, vf sign)
{
    return v_of_bits(i_or(v_bits(magnitude), i_and(v_bits(sign), vdupq_n_s32(INT32_MIN))));
}
KERN_INLINE vm v_lt(vf a, vf b) { return vcltq_f32(a, b); }
KERN_INLINE vm v_le(vf a, vf b) { return vcleq_f32(a, b); }
KERN_INLINE vm v_eq(vf a, vf b) { return vceqq_f32(a, b); }
KERN_INLINE vm v_ne(vf a, vf b) { return vmvnq_u32(vceqq_f32(a, b)); }
KERN_INLINE vm v_unordered(vf a, vf b) { return vmvnq_u32(vandq_u32(vceqq_f32(a, a), vceqq_f32(b, b))); }
KERN_INLINE vf v_sel(vm m, vf a, vf b) { return vbslq_f32(m, a, b); }
KERN_INLINE vf v_one_if(vm m) { return v_of_bits(i_and(i_of(m), v_bits(vdupq_n_f32(1)))); }
KERN_INLINE vf v_min(vf a, vf b) { return v_sel(v_lt(a, b), a, b); }
KERN_INLINE vf v_max(vf a, vf b) { return v_sel(v_lt(b, a), a, b); }
KERN_INLINE vf v_canonical(vf a) { return v_sel(v_eq(a, a), a, v_of_bits(i_set1(KERN_NAN_BITS))); }
KERN_INLINE vf v_signed_nan(vf a)
{
    return v_sel(v_eq(a, a), a, v_of_bits(i_or(i_and(v_bits(a), vdupq_n_s32(INT32_MIN)), i_set1(KERN_NAN_BITS))));
}
typedef uint8x16x4_t v_table16;
KERN_INLINE v_table16 v_table16_of(const float *p) { return vld1q_u8_x4((const uint8_t *)p); }
KERN_INLINE vf v_pick16(const v_table16 *t, vi at) /* the four bytes of number `at`, by their places in the table */
{
    uint32x4_t place = vmlaq_u32(vdupq_n_u32(0x03020100), vandq_u32(u_of(at), vdupq_n_u32(15)), vdupq_n_u32(0x04040404));
    return vreinterpretq_f32_u8(vqtbl4q_u8(*t, vreinterpretq_u8_u32(place)));
}

/* ---- double: two registers hold VL lanes ---- */
KERN_INLINE vd d_of(vf a) { return (vd){ vcvt_f64_f32(vget_low_f32(a)), vcvt_high_f64_f32(a) }; }
KERN_INLINE vf v_of_d(vd a) { return vcvt_high_f32_f64(vcvt_f32_f64(a.low), a.high); }
KERN_INLINE vd d_set1(double x) { return (vd){ vdupq_n_f64(x), vdupq_n_f64(x) }; }
KERN_INLINE vd d_add(vd a, vd b) { return (vd){ vaddq_f64(a.low, b.low), vaddq_f64(a.high, b.high) }; }
KERN_INLINE vd d_sub(vd a, vd b) { return (vd){ vsubq_f64(a.low, b.low), vsubq_f64(a.high, b.high) }; }
KERN_INLINE vd d_mul(vd a, vd b) { return (vd){ vmulq_f64(a.low, b.low), vmulq_f64(a.high, b.high) }; }
KERN_INLINE vd d_div(vd a, vd b) { return (vd){ vdivq_f64(a.low, b.low), vdivq_f64(a.high, b.high) }; }
KERN_INLINE vd d_fma(vd a, vd b, vd c) { return (vd){ vfmaq_f64(c.low, a.low, b.low), vfmaq_f64(c.high, a.high, b.high) }; }
KERN_INLINE vd d_fnma(vd a, vd b, vd c) { return (vd){ vfmsq_f64(c.low, a.low, b.low), vfmsq_f64(c.high, a.high, b.high) }; }
KERN_INLINE vl d_bits(vd a) { return (vl){ vreinterpretq_u64_f64(a.low), vreinterpretq_u64_f64(a.high) }; }
KERN_INLINE vd d_of_bits(vl a) { return (vd){ vreinterpretq_f64_u64(a.low), vreinterpretq_f64_u64(a.high) }; }
KERN_INLINE vd d_abs(vd a) { return (vd){ vabsq_f64(a.low), vabsq_f64(a.high) }; }
KERN_INLINE vdm d_lt(vd a, vd b) { return (vdm){ vcltq_f64(a.low, b.low), vcltq_f64(a.high, b.high) }; }
KERN_INLINE vdm d_le(vd a, vd b) { return (vdm){ vcleq_f64(a.low, b.low), vcleq_f64(a.high, b.high) }; }
KERN_INLINE vdm d_eq(vd a, vd b) { return (vdm){ vceqq_f64(a.low, b.low), vceqq_f64(a.high, b.high) }; }
KERN_INLINE vd d_sel(vdm m, vd a, vd b) { return (vd){ vbslq_f64(m.low, a.low, b.low), vbslq_f64(m.high, a.high, b.high) }; }
KERN_INLINE vd d_min(vd a, vd b) { return d_sel(d_lt(a, b), a, b); }
KERN_INLINE vd d_max(vd a, vd b) { return d_sel(d_lt(b, a), a, b); }
KERN_INLINE vl l_set1(uint64_t x) { return (vl){ vdupq_n_u64(x), vdupq_n_u64(x) }; }
KERN_INLINE vl l_and(vl a, vl b) { return (vl){ vandq_u64(a.low, b.low), vandq_u64(a.high, b.high) }; }
KERN_INLINE vl l_or(vl a, vl b) { return (vl){ vorrq_u64(a.low, b.low), vorrq_u64(a.high, b.high) }; }
KERN_INLINE vl l_add(vl a, vl b) { return (vl){ vaddq_u64(a.low, b.low), vaddq_u64(a.high, b.high) }; }
KERN_INLINE vl l_sub(vl a, vl b) { return (vl){ vsubq_u64(a.low, b.low), vsubq_u64(a.high, b.high) }; }
KERN_INLINE vl l_sll(vl a, const int n) { return (vl){ vshlq_u64(a.low, vdupq_n_s64(n)), vshlq_u64(a.high, vdupq_n_s64(n)) }; }
KERN_INLINE vl l_srl(vl a, const int n) { return (vl){ vshlq_u64(a.low, vdupq_n_s64(-n)), vshlq_u64(a.high, vdupq_n_s64(-n)) }; }

/* ---- VL rows by 4 columns ---- */
KERN_INLINE void v_swap_4x4(vf c[4])
{
    float64x2_t t0 = vreinterpretq_f64_f32(vtrn1q_f32(c[0], c[1])), t1 = vreinterpretq_f64_f32(vtrn2q_f32(c[0], c[1]));
    float64x2_t t2 = vreinterpretq_f64_f32(vtrn1q_f32(c[2], c[3])), t3 = vreinterpretq_f64_f32(vtrn2q_f32(c[2], c[3]));
    c[0] = vreinterpretq_f32_f64(vtrn1q_f64(t0, t2));
    c[1] = vreinterpretq_f32_f64(vtrn1q_f64(t1, t3));
    c[2] = vreinterpretq_f32_f64(vtrn2q_f64(t0, t2));
    c[3] = vreinterpretq_f32_f64(vtrn2q_f64(t1, t3));
}
KERN_INLINE void v_load_columns(vf column[4], const float *p, size_t stride, int rows, int columns)
{
    for (int k = 0; k < 4; k++) column[k] = v_load(p + (size_t)(k < rows ? k : rows - 1) * stride, columns);
    v_swap_4x4(column);
}
KERN_INLINE void v_store_columns(float *p, size_t stride, vf column[4], int rows, int columns)
{
    v_swap_4x4(column);
    for (int k = 0; k < 4; k++)
        if (k < rows) v_store(p + (size_t)k * stride, column[k], columns);
}
#endif
