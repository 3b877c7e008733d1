/* Values of every dtype from and to fp32: the definition that the vector levels are compared with. Formats below 32 bits
 * are described by a row of numbers and converted by one pair of functions; nothing here is fast.
 *
 * Rounding works on the magnitude: significand >> shift is the code, what falls off is `fraction` in units of 2^-32 of the
 * target's last place. Round to nearest even and stochastic rounding differ only in when the fraction rounds up.
 *
 * Knows no rows of tensors and no instructions. */
#include <math.h>

#include "kern/kern_int.h"

/* A float format below fp32: sign, exponent and `mantissa` bits, in `bits` bits. Codes are of the magnitude. */
struct format {
    uint8_t bits, mantissa, bias;
    bool quiet_on_load; /* a NaN read gets the quiet bit: what conversion instructions do; bf16 only moves bits */
    uint16_t least_inf; /* code of inf; one above the largest code where there is no inf */
    uint16_t largest;   /* code of the largest finite value */
    uint16_t overflow;  /* what values beyond `largest` become */
    uint16_t nan;       /* canonical quiet NaN; 0: the format has none */
};
static const struct format formats[VTRN_DT_COUNT] = {
    [VTRN_DT_BF16] = { 16, 7, 127, false, 0x7f80, 0x7f7f, 0x7f80, 0x7fc0 },
    [VTRN_DT_F16] = { 16, 10, 15, true, 0x7c00, 0x7bff, 0x7c00, 0x7e00 },
    [VTRN_DT_F8E4M3] = { 8, 3, 7, true, 0x78, 0x77, 0x78, 0x7c },
    [VTRN_DT_F8E4M3FN] = { 8, 3, 7, true, 0x7f, 0x7e, 0x7e, 0x7f },
    [VTRN_DT_F8E5M2] = { 8, 2, 15, true, 0x7c, 0x7b, 0x7c, 0x7e },
    /* elements of the packed types: they saturate */
    [VTRN_DT_F8E4M3FNX4] = { 8, 3, 7, true, 0x7f, 0x7e, 0x7e, 0x7f },
    [VTRN_DT_F8E5M2X4] = { 8, 2, 15, true, 0x7c, 0x7b, 0x7b, 0x7e },
    [VTRN_DT_F4E2M1FNX4] = { 4, 1, 1, true, 8, 7, 7, 0 },
};

static float format_to_f32(const struct format *f, uint32_t code)
{
    const uint32_t sign_bit = UINT32_C(1) << (f->bits - 1);
    const uint32_t magnitude = code & (sign_bit - 1), mantissa = magnitude & ((UINT32_C(1) << f->mantissa) - 1);
    const int exponent = (int)(magnitude >> f->mantissa);
    const uint32_t sign = code & sign_bit ? UINT32_C(0x80000000) : 0;

    if (magnitude >= f->least_inf) {
        /* inf, or NaN with its payload at the top. e4m3fn has only a NaN there. */
        bool is_nan = mantissa != 0;
        return kern_float(sign | UINT32_C(0x7f800000) | mantissa << (23 - f->mantissa) |
                          (is_nan && f->quiet_on_load ? UINT32_C(0x00400000) : 0));
    }
    if (exponent == 0) return kern_float(sign | kern_bits(ldexpf((float)mantissa, 1 - f->bias - f->mantissa)));
    return kern_float(sign | (uint32_t)(exponent - f->bias + 127) << 23 | mantissa << (23 - f->mantissa));
}

/* `random` NULL: round to nearest even. */
static uint32_t format_from_f32(const struct format *f, float value, const uint32_t *random)
{
    const uint32_t bits = kern_bits(value), magnitude = bits & UINT32_C(0x7fffffff);
    const uint32_t sign = bits >> 31 << (f->bits - 1);
    const int least_normal = 127 - f->bias + 1; /* fp32 exponent field of the format's smallest normal value */
    int exponent = (int)(magnitude >> 23), shift = 23 - f->mantissa;
    uint64_t significand = magnitude & 0x7fffff;

    if (magnitude > UINT32_C(0x7f800000)) return sign | (f->nan ? f->nan : f->largest);
    if (magnitude == UINT32_C(0x7f800000)) return sign | f->overflow;
    if (exponent == 0) exponent = 1;
    else significand |= 1 << 23;
    if (exponent < least_normal) {
        shift += least_normal - exponent;
        exponent = least_normal;
    }
    if (shift > 56) shift = 56; /* the fraction is 0 from here on */
    uint32_t code = ((uint32_t)(exponent - least_normal) << f->mantissa) + (uint32_t)(significand >> shift);
    uint32_t fraction = (uint32_t)(significand << 32 >> shift);
    if (random) {
        code += fraction + (uint64_t)*random > UINT32_MAX;
    } else {
        bool below = (significand << 32 & ((UINT64_C(1) << shift) - 1)) != 0; /* what the fraction does not show */
        code += fraction > UINT32_C(0x80000000) || (fraction == UINT32_C(0x80000000) && (below || code & 1));
    }
    return sign | (code > f->largest ? f->overflow : code);
}

static float tf32_from_f32(float value)
{
    const uint32_t bits = kern_bits(value);
    if (isnan(value)) return kern_float((bits & UINT32_C(0x80000000)) | KERN_NAN_BITS);
    return kern_float((bits + 0xfff + (bits >> 13 & 1)) & ~UINT32_C(0x1fff));
}

/* Nearest power of two by value, ties up: 1.5 * 2^k and more is 2^(k+1). */
static uint8_t e8m0_from_f32(float value)
{
    const uint32_t bits = kern_bits(value);
    if (value == 0) return 0;
    if (!(value > 0)) return 0xff;
    if (bits < UINT32_C(0x00800000)) return bits >= UINT32_C(0x00600000); /* below 2^-126; codes 0 and 1 are 2^-127, 2^-126 */
    return (uint8_t)((bits + UINT32_C(0x00400000)) >> 23);
}

static int64_t int_from_f32(float value, int64_t low, int64_t high)
{
    if (isnan(value)) return 0;
    double nearest = rint((double)value);
    return nearest <= (double)low ? low : nearest >= (double)high ? high : (int64_t)nearest;
}

float vtrn_to_f32(enum vtrn_dtype dtype, const void *element)
{
    union {
        float f32;
        uint32_t u32;
        int32_t i32;
        uint16_t u16;
        int16_t i16;
        uint8_t u8;
        int8_t i8;
    } v;
    VTRN_ASSERT(vtrn_dtypes[dtype].cls != VTRN_CLASS_PACKED);
    memcpy(&v, element, vtrn_dtypes[dtype].size_bytes);
    switch (dtype) {
    case VTRN_DT_F32:
    case VTRN_DT_TF32: return v.f32;
    case VTRN_DT_BF16:
    case VTRN_DT_F16: return format_to_f32(&formats[dtype], v.u16);
    case VTRN_DT_F8E8M0: return v.u8 == 0xff ? kern_float(KERN_NAN_BITS) : v.u8 == 0 ? 0x1p-127f : kern_float((uint32_t)v.u8 << 23);
    case VTRN_DT_I8: return v.i8;
    case VTRN_DT_I16: return v.i16;
    case VTRN_DT_I32: return (float)v.i32;
    case VTRN_DT_U8: return v.u8;
    case VTRN_DT_U16: return v.u16;
    case VTRN_DT_U32: return (float)v.u32;
    case VTRN_DT_BOOL: return v.u8 != 0;
    default: return format_to_f32(&formats[dtype], v.u8);
    }
}

static void from_f32(enum vtrn_dtype dtype, float value, const uint32_t *random, void *element)
{
    union {
        float f32;
        uint32_t u32;
        int32_t i32;
        uint16_t u16;
        int16_t i16;
        uint8_t u8;
        int8_t i8;
    } v = { 0 };
    switch (dtype) {
    case VTRN_DT_F32: v.f32 = value; break;
    case VTRN_DT_TF32: v.f32 = tf32_from_f32(value); break;
    case VTRN_DT_BF16:
    case VTRN_DT_F16: v.u16 = (uint16_t)format_from_f32(&formats[dtype], value, random); break;
    case VTRN_DT_F8E8M0: v.u8 = e8m0_from_f32(value); break;
    case VTRN_DT_I8: v.i8 = (int8_t)int_from_f32(value, INT8_MIN, INT8_MAX); break;
    case VTRN_DT_I16: v.i16 = (int16_t)int_from_f32(value, INT16_MIN, INT16_MAX); break;
    case VTRN_DT_I32: v.i32 = (int32_t)int_from_f32(value, INT32_MIN, INT32_MAX); break;
    case VTRN_DT_U8: v.u8 = (uint8_t)int_from_f32(value, 0, UINT8_MAX); break;
    case VTRN_DT_U16: v.u16 = (uint16_t)int_from_f32(value, 0, UINT16_MAX); break;
    case VTRN_DT_U32: v.u32 = (uint32_t)int_from_f32(value, 0, UINT32_MAX); break;
    case VTRN_DT_BOOL: v.u8 = value != 0; break;
    default: v.u8 = (uint8_t)format_from_f32(&formats[dtype], value, random); break;
    }
    memcpy(element, &v, vtrn_dtypes[dtype].size_bytes);
}

void vtrn_from_f32(enum vtrn_dtype dtype, float value, void *element_out)
{
    VTRN_ASSERT(vtrn_dtypes[dtype].cls != VTRN_CLASS_PACKED);
    from_f32(dtype, value, NULL, element_out);
}

/* ---- MX elements: lane 0 in the lowest bits ---- */
static uint32_t packed_bits(enum vtrn_dtype dtype, const void *element)
{
    uint32_t bits = 0;
    VTRN_ASSERT(vtrn_dtypes[dtype].cls == VTRN_CLASS_PACKED);
    for (int byte = 0; byte < vtrn_dtypes[dtype].size_bytes; byte++) bits |= (uint32_t)((const uint8_t *)element)[byte] << 8 * byte;
    return bits;
}

float vtrn_mx_to_f32(enum vtrn_dtype dtype, const void *element, int lane)
{
    const struct format *f = &formats[dtype];
    return format_to_f32(f, packed_bits(dtype, element) >> f->bits * lane & ((1u << f->bits) - 1));
}

void vtrn_mx_from_f32(enum vtrn_dtype dtype, float value, int lane, void *element)
{
    const struct format *f = &formats[dtype];
    const uint32_t mask = ((1u << f->bits) - 1) << f->bits * lane;
    uint32_t bits = (packed_bits(dtype, element) & ~mask) | format_from_f32(f, value, NULL) << f->bits * lane;
    for (int byte = 0; byte < vtrn_dtypes[dtype].size_bytes; byte++) ((uint8_t *)element)[byte] = (uint8_t)(bits >> 8 * byte);
}

/* ---- the slots ---- */
#define ROWS(NAME, SIZE) \
    static void load_##NAME##_ref(float *dst, const void *src, size_t n) \
    { \
        for (size_t i = 0; i < n; i++) dst[i] = vtrn_to_f32(VTRN_DT_##NAME, (const uint8_t *)src + (SIZE)*i); \
    } \
    static void store_##NAME##_ref(void *dst, const float *src, size_t n) \
    { \
        for (size_t i = 0; i < n; i++) from_f32(VTRN_DT_##NAME, src[i], NULL, (uint8_t *)dst + (SIZE)*i); \
    }
#define SR_ROWS(NAME, SIZE) \
    static void store_sr_##NAME##_ref(void *dst, const float *src, const uint32_t *random, size_t n) \
    { \
        for (size_t i = 0; i < n; i++) from_f32(VTRN_DT_##NAME, src[i], &random[i], (uint8_t *)dst + (SIZE)*i); \
    }
/* clang-format off */
#define EACH_PLAIN(X) \
    X(F32, 4) X(TF32, 4) X(BF16, 2) X(F16, 2) X(F8E4M3, 1) X(F8E4M3FN, 1) X(F8E5M2, 1) X(F8E8M0, 1) X(I8, 1) X(I16, 2) \
    X(I32, 4) X(U8, 1) X(U16, 2) X(U32, 4) X(BOOL, 1)
/* clang-format on */
#define EACH_SR(X) X(BF16, 2) X(F16, 2) X(F8E4M3, 1) X(F8E4M3FN, 1) X(F8E5M2, 1)
EACH_PLAIN(ROWS)
EACH_SR(SR_ROWS)

void vtrn_kern_ref_convert(struct vtrn_kern *kern)
{
#define SET(NAME, SIZE) \
    kern->load[VTRN_DT_##NAME] = load_##NAME##_ref; \
    kern->store[VTRN_DT_##NAME] = store_##NAME##_ref;
#define SET_SR(NAME, SIZE) kern->store_sr[VTRN_DT_##NAME] = store_sr_##NAME##_ref;
    EACH_PLAIN(SET)
    EACH_SR(SET_SR)
}
