/* The ALU operators on rows in the words of a vector level: what ref/alu.c defines. MOD and FMOD have no vector form (they
 * are not hardware operators) and stay with ref. Included after the level's words, like the other .inc.c files. */
#include "kern/wide.inc.c"

KERN_INLINE vf v_nan(void) { return v_of_bits(i_set1(KERN_NAN_BITS)); }

/* The magnitude comes from double; signs and the special cases of C's pow are decided on the fp32 operands. */
KERN_INLINE vf v_power(vf x, vf y)
{
    const vf zero = v_set1(0), one = v_set1(1), infinity = v_set1(INFINITY);
    vf a = v_abs(x), big = v_abs(y);
    vf magnitude = v_of_d(d_power(d_of(a), d_of(y)));
    /* from 2^24 on fp32 has even integers only; below, int32 holds the value */
    vm even = v_le(v_set1(0x1p24f), big);
    vi integer = i_nearest(v_sel(even, zero, y));
    vm whole = m_or(even, v_eq(v_from_i32(integer), y));
    vm odd = m_and_not(m_and(whole, i_eq(i_and(integer, i_set1(1)), i_set1(1))), even);
    vm minus = i_gt(i_set1(0), v_bits(x)); /* -0 too */
    vf result = v_sel(m_and(minus, odd), v_of_bits(i_xor(v_bits(magnitude), i_set1(UINT32_C(0x80000000)))), magnitude);
    vm undefined = m_and_not(m_and(minus, m_and(v_lt(zero, a), v_lt(a, infinity))), whole);
    result = v_sel(m_or(undefined, v_unordered(x, y)), v_nan(), result);
    return v_sel(m_or(v_eq(y, zero), v_eq(x, one)), one, result);
}

/* Canonical results only where an operand that is a NaN could get through. */
KERN_INLINE vf v_alu(const enum vtrn_alu op, vf a, vf b)
{
    const vf zero = v_set1(0), one = v_set1(1);
    switch (op) {
    case VTRN_ALU_ADD: return v_canonical(v_add(a, b));
    case VTRN_ALU_SUBTRACT: return v_canonical(v_sub(a, b));
    case VTRN_ALU_MULTIPLY: return v_canonical(v_mul(a, b));
    case VTRN_ALU_MAXIMUM: return v_sel(v_unordered(a, b), v_nan(), v_max(a, b));
    case VTRN_ALU_MINIMUM: return v_sel(v_unordered(a, b), v_nan(), v_min(a, b));
    case VTRN_ALU_EQUAL: return v_one_if(v_eq(a, b));
    case VTRN_ALU_NOT_EQUAL: return v_one_if(v_ne(a, b));
    case VTRN_ALU_GREATER_EQUAL: return v_one_if(v_le(b, a));
    case VTRN_ALU_GREATER: return v_one_if(v_lt(b, a));
    case VTRN_ALU_LESS_EQUAL: return v_one_if(v_le(a, b));
    case VTRN_ALU_LESS: return v_one_if(v_lt(a, b));
    case VTRN_ALU_LOGICAL_AND: return v_one_if(m_and(v_ne(a, zero), v_ne(b, zero)));
    case VTRN_ALU_LOGICAL_OR: return v_one_if(m_or(v_ne(a, zero), v_ne(b, zero)));
    case VTRN_ALU_LOGICAL_XOR: return v_one_if(m_xor(v_ne(a, zero), v_ne(b, zero)));
    case VTRN_ALU_POWER: return v_power(a, b);
    case VTRN_ALU_ABS_MAX: return v_sel(v_unordered(a, b), v_nan(), v_sel(v_lt(v_abs(b), v_abs(a)), a, b));
    case VTRN_ALU_ABS_MIN: return v_sel(v_unordered(a, b), v_nan(), v_sel(v_lt(v_abs(a), v_abs(b)), a, b));
    case VTRN_ALU_ABS: return v_canonical(v_abs(a));
    case VTRN_ALU_SQUARE: return v_canonical(v_mul(a, a));
    case VTRN_ALU_RELU: return v_canonical(v_sel(v_le(a, zero), zero, a));
    case VTRN_ALU_RSQRT: return v_canonical(v_div(one, v_sqrt(a)));
    case VTRN_ALU_RECIPROCAL: return v_canonical(v_div(one, a));
    case VTRN_ALU_DIVIDE: return v_canonical(v_div(a, b));
    default: return a; /* BYPASS */
    }
}
KERN_INLINE bool alu_is_unary(const enum vtrn_alu op)
{
    return op == VTRN_ALU_ABS || op == VTRN_ALU_SQUARE || op == VTRN_ALU_RELU || op == VTRN_ALU_RSQRT || op == VTRN_ALU_RECIPROCAL;
}

#ifndef ALU_WORDS_ONLY
KERN_INLINE void tt_row(const enum vtrn_alu op, float *dst, const float *a, const float *b, size_t n)
{
    size_t i = 0;
    for (; i + VL <= n; i += VL) v_store(dst + i, v_alu(op, v_load(a + i, VL), v_load(b + i, VL)), VL);
    if (i < n) {
        int lanes = (int)(n - i);
        v_store(dst + i, v_alu(op, v_load(a + i, lanes), v_load(b + i, lanes)), lanes);
    }
}
KERN_INLINE void ts_row(const enum vtrn_alu op, const bool swap, float *dst, const float *a, float scalar, size_t n)
{
    const vf s = v_set1(scalar);
    size_t i = 0;
    for (; i + VL <= n; i += VL) {
        vf v = v_load(a + i, VL);
        v_store(dst + i, swap ? v_alu(op, s, v) : v_alu(op, v, s), VL);
    }
    if (i < n) {
        vf v = v_load(a + i, (int)(n - i));
        v_store(dst + i, swap ? v_alu(op, s, v) : v_alu(op, v, s), (int)(n - i));
    }
}
static void mul_add(float *dst, const float *a, float mul, float add, size_t n)
{
    const vf m = v_set1(mul), c = v_set1(add);
    size_t i = 0;
    for (; i + VL <= n; i += VL) v_store(dst + i, v_canonical(v_add(v_mul(v_load(a + i, VL), m), c)), VL);
    if (i < n) v_store(dst + i, v_canonical(v_add(v_mul(v_load(a + i, (int)(n - i)), m), c)), (int)(n - i));
}

/* ---- 32-bit integers ---- */
KERN_INLINE vi i_alu(const enum vtrn_alu op, const bool is_signed, vi a, vi b)
{
    const vi one = i_set1(1), zero = i_set1(0);
    switch (op) {
    case VTRN_ALU_ADD: return i_add(a, b);
    case VTRN_ALU_SUBTRACT: return i_sub(a, b);
    case VTRN_ALU_MULTIPLY: return i_mul(a, b);
    case VTRN_ALU_MAXIMUM: return is_signed ? i_max(a, b) : i_max_u(a, b);
    case VTRN_ALU_MINIMUM: return is_signed ? i_min(a, b) : i_min_u(a, b);
    case VTRN_ALU_EQUAL: return i_sel(i_eq(a, b), one, zero);
    case VTRN_ALU_NOT_EQUAL: return i_sel(i_eq(a, b), zero, one);
    case VTRN_ALU_GREATER_EQUAL: return i_sel(is_signed ? i_gt(b, a) : i_gt_u(b, a), zero, one);
    case VTRN_ALU_GREATER: return i_sel(is_signed ? i_gt(a, b) : i_gt_u(a, b), one, zero);
    case VTRN_ALU_LESS_EQUAL: return i_sel(is_signed ? i_gt(a, b) : i_gt_u(a, b), zero, one);
    default: return i_sel(is_signed ? i_gt(b, a) : i_gt_u(b, a), one, zero); /* LESS */
    }
}
KERN_INLINE void int_row(const enum vtrn_alu op, const bool is_signed, void *dst, const void *a, const void *b, size_t n)
{
    uint32_t *d = dst;
    const uint32_t *x = a, *y = b;
    size_t i = 0;
    for (; i + VL <= n; i += VL) i_store(d + i, i_alu(op, is_signed, i_load(x + i, VL), i_load(y + i, VL)), VL);
    if (i < n) {
        int lanes = (int)(n - i);
        i_store(d + i, i_alu(op, is_signed, i_load(x + i, lanes), i_load(y + i, lanes)), lanes);
    }
}

/* clang-format off */
#define EACH_ARITH(X) \
    X(ADD) X(SUBTRACT) X(MULTIPLY) X(MAXIMUM) X(MINIMUM) X(EQUAL) X(NOT_EQUAL) X(GREATER_EQUAL) X(GREATER) X(LESS_EQUAL) \
    X(LESS) X(LOGICAL_AND) X(LOGICAL_OR) X(LOGICAL_XOR) X(POWER) X(ABS_MAX) X(ABS_MIN) X(ABS) X(SQUARE) X(RELU) X(RSQRT) \
    X(RECIPROCAL) X(BYPASS) X(DIVIDE)
/* clang-format on */
#define ROWS(NAME) \
    static void tt_##NAME(float *dst, const float *a, const float *b, size_t n) { tt_row(VTRN_ALU_##NAME, dst, a, b, n); } \
    static void ts_##NAME(float *dst, const float *a, float s, bool reverse, size_t n) \
    { \
        if (reverse && !alu_is_unary(VTRN_ALU_##NAME)) ts_row(VTRN_ALU_##NAME, true, dst, a, s, n); \
        else ts_row(VTRN_ALU_##NAME, false, dst, a, s, n); \
    }
#define INT_ROWS(NAME) \
    static void tt_i32_##NAME(int32_t *dst, const int32_t *a, const int32_t *b, size_t n) \
    { \
        int_row(VTRN_ALU_##NAME, true, dst, a, b, n); \
    } \
    static void tt_u32_##NAME(uint32_t *dst, const uint32_t *a, const uint32_t *b, size_t n) \
    { \
        int_row(VTRN_ALU_##NAME, false, dst, a, b, n); \
    }
EACH_ARITH(ROWS)
KERN_EACH_INT(INT_ROWS)

static void set_alu(struct vtrn_kern *kern)
{
#define SET(NAME) \
    kern->tt[VTRN_ALU_##NAME] = tt_##NAME; \
    kern->ts[VTRN_ALU_##NAME] = ts_##NAME;
#define SET_INT(NAME) \
    kern->tt_i32[VTRN_ALU_##NAME] = tt_i32_##NAME; \
    kern->tt_u32[VTRN_ALU_##NAME] = tt_u32_##NAME;
    EACH_ARITH(SET)
    KERN_EACH_INT(SET_INT)
#undef SET
#undef SET_INT
    kern->mul_add = mul_add;
}
#endif
