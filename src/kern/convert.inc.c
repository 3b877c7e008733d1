/* Conversions in the words of a vector level: what ref/convert.c defines. Everything happens in 32-bit lanes, on the bits;
 * narrow elements are widened as they are loaded and narrowed as they are stored. fp16 has instructions at every level. */

/* ---- small floats ---- */
struct small_float {
    int mantissa, bias;
    uint32_t least_special;          /* codes of magnitude from here on are inf and NaN */
    uint32_t largest, overflow, nan; /* see struct format of ref/convert.c */
};
KERN_INLINE struct small_float small_float(const enum vtrn_dtype dtype)
{
    switch (dtype) {
    case VTRN_DT_F8E4M3: return (struct small_float){ 3, 7, 0x78, 0x77, 0x78, 0x7c };
    case VTRN_DT_F8E4M3FN: return (struct small_float){ 3, 7, 0x7f, 0x7e, 0x7e, 0x7f };
    case VTRN_DT_F8E5M2: return (struct small_float){ 2, 15, 0x7c, 0x7b, 0x7c, 0x7e };
    case VTRN_DT_F16: return (struct small_float){ 10, 15, 0x7c00, 0x7bff, 0x7c00, 0x7e00 };
    default: return (struct small_float){ 7, 127, 0x7f80, 0x7f7f, 0x7f80, 0x7fc0 }; /* BF16 */
    }
}
/* Codes of 8 bits, by way of fp16: e5m2 is its upper half, e4m3 has another bias. */
KERN_INLINE vf f8_value(const enum vtrn_dtype dtype, const void *p, int lanes)
{
    const struct small_float f = small_float(dtype);
    vf value = v_load_f8_as_f16(p, 10 - f.mantissa, (int)f.least_special, lanes);
    return f.bias == 15 ? value : v_mul(value, v_set1(0x1p8f));
}
/* Adding a power of two whose last place is that of the code rounds to a multiple of it, to nearest even, for normal and
 * denormal codes alike; the difference in bits is then the code's significand, and the exponent follows. `nans`: some lane
 * may be a NaN. */
KERN_INLINE vi f8_code(const enum vtrn_dtype dtype, vf value, const bool nans)
{
    const struct small_float f = small_float(dtype);
    const uint32_t least = (uint32_t)(127 - f.bias + 1) << 23; /* exponent of the smallest normal value */
    vi bits = v_bits(value), magnitude = i_and(bits, i_set1(0x7fffffff));
    vi capped = i_min(magnitude, i_set1((uint32_t)(127 + f.bias + 3) << 23)); /* still overflows */
    vi exponent = i_max(i_and(capped, i_set1(0x7f800000)), i_set1(least));
    vi adder = i_add(exponent, i_set1((uint32_t)(23 - f.mantissa) << 23));
    vi significand = i_sub(v_bits(v_add(v_of_bits(capped), v_of_bits(adder))), adder);
    vi code = i_add(significand, i_srl(i_sub(exponent, i_set1(least)), 23 - f.mantissa));
    code = i_min(code, i_set1(f.overflow)); /* inf is the code after the largest; e4m3fn saturates at it */
    if (nans) code = i_sel(i_gt(magnitude, i_set1(0x7f800000)), i_set1(f.nan), code);
    return i_or(code, i_and(i_srl(bits, 24), i_set1(0x80)));
}
/* Stochastic rounding, for every format: the significand is shifted down, what falls off is added to the random word. */
KERN_INLINE vi random_code(const enum vtrn_dtype dtype, vf value, vi random)
{
    const struct small_float f = small_float(dtype);
    if (dtype == VTRN_DT_BF16) /* it has fp32's exponents: nothing to shift but the random word */
        return i_srl(i_add(v_bits(v_signed_nan(value)), i_srl(random, 16)), 16);
    const vi zero = i_set1(0), least = i_set1((uint32_t)(127 - f.bias + 1)), hidden = i_set1(0x00800000);
    vi bits = v_bits(value), magnitude = i_and(bits, i_set1(0x7fffffff));
    vi exponent = i_max(i_srl(magnitude, 23), i_set1(1));
    vi significand = i_or(i_and(magnitude, i_set1(0x007fffff)), i_sel(i_gt(hidden, magnitude), zero, hidden));
    vi shift = i_add(i_max(i_sub(least, exponent), zero), i_set1((uint32_t)(23 - f.mantissa)));
    vi above = i_sll(i_max(i_sub(exponent, least), zero), f.mantissa);
    vi fraction = i_or(i_sllv(significand, i_sub(i_set1(32), shift)), i_srlv(significand, i_sub(shift, i_set1(32))));
    vm up = i_gt_u(fraction, i_xor(random, i_set1(UINT32_MAX))); /* fraction + random >= 2^32 */
    vi code = i_add(i_add(above, i_srlv(significand, shift)), i_sel(up, i_set1(1), zero));
    const int sign_shift = dtype == VTRN_DT_F16 ? 16 : 24;
    code = i_sel(i_gt(code, i_set1(f.largest)), i_set1(f.overflow), code);
    code = i_sel(i_gt(magnitude, i_set1(0x7f800000)), i_set1(f.nan), code);
    return i_or(code, i_and(i_srl(bits, sign_shift), i_set1(sign_shift == 16 ? 0x8000 : 0x80)));
}

/* ---- helpers ---- */
/* To nearest even at bit `low`; the bits below are left over. */
KERN_INLINE vi i_round_at(vi bits, const int low)
{
    return i_add(i_add(bits, i_set1((UINT32_C(1) << (low - 1)) - 1)), i_and(i_srl(bits, low), i_set1(1)));
}
KERN_INLINE vi i_clamped(vf v, float low, float high, const bool nans) /* nearest integer, NaN gives 0 */
{
    if (nans) v = v_sel(v_eq(v, v), v, v_set1(0));
    return i_nearest(v_min(v_max(v, v_set1(low)), v_set1(high)));
}
KERN_INLINE vi e8m0_code(vf v)
{
    const vi bits = v_bits(v), zero = i_set1(0);
    vi code = i_srl(i_add(bits, i_set1(0x00400000)), 23);
    vi tiny = i_sel(i_gt(bits, i_set1(0x005fffff)), i_set1(1), zero);
    code = i_sel(i_gt(i_set1(0x00800000), bits), tiny, code);
    code = i_sel(v_lt(v_set1(0), v), code, i_set1(0xff));
    return i_sel(v_eq(v, v_set1(0)), zero, code);
}

/* ---- one vector ---- */
KERN_INLINE vf load_vector(const enum vtrn_dtype dtype, const void *p, int lanes)
{
    vi code;
    switch (dtype) {
    case VTRN_DT_BF16: return v_of_bits(i_sll(i_load_u16(p, lanes), 16));
    case VTRN_DT_F16: return v_load_f16(p, lanes);
    case VTRN_DT_F8E4M3:
    case VTRN_DT_F8E4M3FN:
    case VTRN_DT_F8E5M2: return f8_value(dtype, p, lanes);
    case VTRN_DT_F8E8M0:
        code = i_load_u8(p, lanes);
        code = i_sel(i_eq(code, i_set1(0)), i_set1(0x00400000),
                     i_sel(i_eq(code, i_set1(0xff)), i_set1(KERN_NAN_BITS), i_sll(code, 23)));
        return v_of_bits(code);
    case VTRN_DT_I8: return v_from_i32(i_load_i8(p, lanes));
    case VTRN_DT_I16: return v_from_i32(i_load_i16(p, lanes));
    case VTRN_DT_I32: return v_from_i32(i_load(p, lanes));
    case VTRN_DT_U8: return v_from_i32(i_load_u8(p, lanes));
    case VTRN_DT_U16: return v_from_i32(i_load_u16(p, lanes));
    case VTRN_DT_U32: return v_from_u32(i_load(p, lanes));
    default: return v_one_if(i_gt(i_load_u8(p, lanes), i_set1(0))); /* BOOL */
    }
}
KERN_INLINE void store_vector(const enum vtrn_dtype dtype, void *p, vf v, const bool nans, int lanes)
{
    const vi bits = v_bits(nans ? v_signed_nan(v) : v); /* of a NaN: rounding keeps the canonical one */
    switch (dtype) {
    case VTRN_DT_TF32: i_store(p, i_and(i_round_at(bits, 13), i_set1(~UINT32_C(0x1fff))), lanes); break;
    case VTRN_DT_BF16: i_store_16(p, i_srl(i_round_at(bits, 16), 16), lanes); break;
    case VTRN_DT_F16: v_store_f16(p, v_of_bits(bits), lanes); break;
    case VTRN_DT_F8E4M3:
    case VTRN_DT_F8E4M3FN:
    case VTRN_DT_F8E5M2: i_store_8(p, f8_code(dtype, v, nans), lanes); break;
    case VTRN_DT_F8E8M0: i_store_8(p, e8m0_code(v), lanes); break;
    case VTRN_DT_I8: i_store_8(p, i_clamped(v, INT8_MIN, INT8_MAX, nans), lanes); break;
    case VTRN_DT_I16: i_store_16(p, i_clamped(v, INT16_MIN, INT16_MAX, nans), lanes); break;
    case VTRN_DT_I32: i_store(p, i_saturated(v), lanes); break;
    case VTRN_DT_U8: i_store_8(p, i_clamped(v, 0, UINT8_MAX, nans), lanes); break;
    case VTRN_DT_U16: i_store_16(p, i_clamped(v, 0, UINT16_MAX, nans), lanes); break;
    case VTRN_DT_U32: i_store(p, i_saturated_u(v), lanes); break;
    default: i_store_8(p, i_sel(v_ne(v, v_set1(0)), i_set1(1), i_set1(0)), lanes); break; /* BOOL */
    }
}
/* Two vectors; of bf16 they fill one, and the rounded halves need no shift. */
KERN_INLINE void store_pair(const enum vtrn_dtype dtype, const size_t size, uint8_t *p, vf v0, vf v1, const bool nans)
{
    if (dtype == VTRN_DT_BF16) {
        if (nans) v0 = v_signed_nan(v0), v1 = v_signed_nan(v1);
        i_store_high_pair(p, i_round_at(v_bits(v0), 16), i_round_at(v_bits(v1), 16));
    } else {
        store_vector(dtype, p, v0, nans, VL);
        store_vector(dtype, p + VL * size, v1, nans, VL);
    }
}

/* ---- rows ---- */
KERN_INLINE void load_row(const enum vtrn_dtype dtype, const size_t size, float *dst, const void *src, size_t n)
{
    const uint8_t *p = src;
    size_t i = 0;
    for (; i + VL <= n; i += VL) v_store(dst + i, load_vector(dtype, p + i * size, VL), VL);
    if (i < n) v_store(dst + i, load_vector(dtype, p + i * size, (int)(n - i)), (int)(n - i));
}
/* NaNs are rare, and to ask once for two vectors whether there is one costs less than to mend each. The inner loop is free
 * of them, so that its constants stay in registers. */
KERN_INLINE void store_row(const enum vtrn_dtype dtype, const size_t size, void *dst, const float *src, size_t n)
{
    uint8_t *p = dst;
    size_t i = 0;
    while (i + 2 * VL <= n) {
        for (; i + 2 * VL <= n; i += 2 * VL) {
            vf v0 = v_load(src + i, VL), v1 = v_load(src + i + VL, VL);
            if (VTRN_UNLIKELY(m_any(v_unordered(v0, v1)))) break;
            store_pair(dtype, size, p + i * size, v0, v1, false);
        }
        if (i + 2 * VL <= n) {
            store_pair(dtype, size, p + i * size, v_load(src + i, VL), v_load(src + i + VL, VL), true);
            i += 2 * VL;
        }
    }
    for (; i < n; i += VL) {
        int lanes = n - i < VL ? (int)(n - i) : VL;
        store_vector(dtype, p + i * size, v_load(src + i, lanes), true, lanes);
    }
}
KERN_INLINE void store_sr_row(const enum vtrn_dtype dtype, const size_t size, void *dst, const float *src, const uint32_t *random,
                              size_t n)
{
    uint8_t *p = dst;
    for (size_t i = 0; i < n; i += VL) {
        int lanes = n - i < VL ? (int)(n - i) : VL;
        vi code = random_code(dtype, v_load(src + i, lanes), i_load(random + i, lanes));
        if (size == 2) i_store_16(p + i * size, code, lanes);
        else i_store_8(p + i * size, code, lanes);
    }
}

#define LOAD(NAME, SIZE) \
    static void load_##NAME(float *dst, const void *src, size_t n) { load_row(VTRN_DT_##NAME, SIZE, dst, src, n); }
#define STORE(NAME, SIZE) \
    static void store_##NAME(void *dst, const float *src, size_t n) { store_row(VTRN_DT_##NAME, SIZE, dst, src, n); }
#define STORE_SR(NAME, SIZE) \
    static void store_sr_##NAME(void *dst, const float *src, const uint32_t *random, size_t n) \
    { \
        store_sr_row(VTRN_DT_##NAME, SIZE, dst, src, random, n); \
    }
/* clang-format off */
#define EACH_NARROW(X) \
    X(BF16, 2) X(F16, 2) X(F8E4M3, 1) X(F8E4M3FN, 1) X(F8E5M2, 1) X(F8E8M0, 1) X(I8, 1) X(I16, 2) X(I32, 4) X(U8, 1) X(U16, 2) \
    X(U32, 4) X(BOOL, 1)
/* clang-format on */
#define EACH_SR(X) X(BF16, 2) X(F16, 2) X(F8E4M3, 1) X(F8E4M3FN, 1) X(F8E5M2, 1)
EACH_NARROW(LOAD)
EACH_NARROW(STORE)
STORE(TF32, 4)
EACH_SR(STORE_SR)

static void copy_to_f32(float *dst, const void *src, size_t n)
{
    if (dst != src) memcpy(dst, src, n * sizeof(float));
}
static void copy_from_f32(void *dst, const float *src, size_t n)
{
    if (dst != src) memcpy(dst, src, n * sizeof(float));
}

static void set_convert(struct vtrn_kern *kern)
{
#define SET(NAME, SIZE) \
    kern->load[VTRN_DT_##NAME] = load_##NAME; \
    kern->store[VTRN_DT_##NAME] = store_##NAME;
#define SET_SR(NAME, SIZE) kern->store_sr[VTRN_DT_##NAME] = store_sr_##NAME;
    EACH_NARROW(SET)
    EACH_SR(SET_SR)
#undef SET
    kern->load[VTRN_DT_F32] = kern->load[VTRN_DT_TF32] = copy_to_f32;
    kern->store[VTRN_DT_F32] = copy_from_f32;
    kern->store[VTRN_DT_TF32] = store_TF32;
}
