/* The ALU operators on single values and rows, in fp32, in 32-bit integers and on bits: the definition.
 *
 * fp32 is IEEE with denormals, one rounding an operation. A NaN result is 0x7fc00000 whatever NaN went in: processors
 * differ in which of two NaNs they return. Where two operands compare equal, maximum, minimum, abs_max and abs_min give
 * the second (so maximum(-0, +0) is +0, and maximum(+0, -0) is -0).
 *
 * Knows no partitions and no engines: which engine may do what is decided before. */
#include "kern/ref/wide.h"

/* pow of C (Annex F), through double. */
static float power(float x, float y)
{
    const float a = fabsf(x);
    const bool whole = fabsf(y) >= 0x1p24f || truncf(y) == y; /* from 2^24 on fp32 has even integers only */
    const bool odd = whole && fabsf(y) < 0x1p24f && ((int)y & 1) != 0;

    if (y == 0 || x == 1) return 1;
    if (isnan(x) || isnan(y)) return NAN;
    if (signbit(x) && !whole && a > 0 && a < INFINITY) return NAN;
    double magnitude = a == 1 ? 1 : wide_exp((double)y * wide_log(a));
    return (float)(signbit(x) && odd ? -magnitude : magnitude);
}

/* Python's %: the result has the sign of b. */
static float modulo(float a, float b)
{
    float r = fmodf(a, b);
    if (r == 0) return copysignf(0, b);
    return (r < 0) != (b < 0) ? r + b : r;
}

static inline float alu(const enum vtrn_alu op, float a, float b)
{
    switch (op) {
    case VTRN_ALU_ADD: return a + b;
    case VTRN_ALU_SUBTRACT: return a - b;
    case VTRN_ALU_MULTIPLY: return a * b;
    case VTRN_ALU_MAXIMUM: return isnan(a) ? a : a > b ? a : b;
    case VTRN_ALU_MINIMUM: return isnan(a) ? a : a < b ? a : b;
    case VTRN_ALU_EQUAL: return a == b;
    case VTRN_ALU_NOT_EQUAL: return a != b;
    case VTRN_ALU_GREATER_EQUAL: return a >= b;
    case VTRN_ALU_GREATER: return a > b;
    case VTRN_ALU_LESS_EQUAL: return a <= b;
    case VTRN_ALU_LESS: return a < b;
    case VTRN_ALU_LOGICAL_AND: return a != 0 && b != 0;
    case VTRN_ALU_LOGICAL_OR: return a != 0 || b != 0;
    case VTRN_ALU_LOGICAL_XOR: return (a != 0) != (b != 0);
    case VTRN_ALU_POWER: return power(a, b);
    case VTRN_ALU_ABS_MAX: return isnan(a) ? a : fabsf(a) > fabsf(b) ? a : b;
    case VTRN_ALU_ABS_MIN: return isnan(a) ? a : fabsf(a) < fabsf(b) ? a : b;
    case VTRN_ALU_ABS: return fabsf(a);
    case VTRN_ALU_SQUARE: return a * a;
    case VTRN_ALU_RELU: return isnan(a) ? a : a > 0 ? a : 0;
    case VTRN_ALU_RSQRT: return 1 / sqrtf(a);
    case VTRN_ALU_RECIPROCAL: return 1 / a;
    case VTRN_ALU_BYPASS: return a;
    case VTRN_ALU_DIVIDE: return a / b;
    case VTRN_ALU_FMOD: return fmodf(a, b);
    case VTRN_ALU_MOD: return modulo(a, b);
    default: VTRN_ASSERT(!"an operator of two fp32 values"); return 0;
    }
}

float vtrn_alu_f32(enum vtrn_alu op, float lhs, float rhs)
{
    float value = alu(op, lhs, rhs);
    return op == VTRN_ALU_BYPASS ? value : kern_canonical(value);
}

/* ---- fp32 rows ---- */
static inline bool is_unary(const enum vtrn_alu op)
{
    return op == VTRN_ALU_ABS || op == VTRN_ALU_SQUARE || op == VTRN_ALU_RELU || op == VTRN_ALU_RSQRT || op == VTRN_ALU_RECIPROCAL;
}
#define ROWS(NAME) \
    static void tt_##NAME##_ref(float *dst, const float *a, const float *b, size_t n) \
    { \
        for (size_t i = 0; i < n; i++) dst[i] = vtrn_alu_f32(VTRN_ALU_##NAME, a[i], b[i]); \
    } \
    static void ts_##NAME##_ref(float *dst, const float *a, float s, bool reverse, size_t n) \
    { \
        bool swap = reverse && !is_unary(VTRN_ALU_##NAME); \
        for (size_t i = 0; i < n; i++) dst[i] = vtrn_alu_f32(VTRN_ALU_##NAME, swap ? s : a[i], swap ? a[i] : s); \
    }
KERN_EACH_ARITH(ROWS)

static void mul_add_ref(float *dst, const float *a, float mul, float add, size_t n)
{
    for (size_t i = 0; i < n; i++) dst[i] = kern_canonical(a[i] * mul + add); /* not fused: -ffp-contract=off */
}

/* ---- 32-bit integers ---- */
static inline uint32_t alu_u32(const enum vtrn_alu op, const bool is_signed, uint32_t a, uint32_t b)
{
    const uint32_t flip = is_signed ? UINT32_C(0x80000000) : 0; /* signed order is unsigned order with the sign flipped */
    const uint32_t x = a ^ flip, y = b ^ flip;
    switch (op) {
    case VTRN_ALU_ADD: return a + b;
    case VTRN_ALU_SUBTRACT: return a - b;
    case VTRN_ALU_MULTIPLY: return a * b;
    case VTRN_ALU_MAXIMUM: return x > y ? a : b;
    case VTRN_ALU_MINIMUM: return x < y ? a : b;
    case VTRN_ALU_EQUAL: return a == b;
    case VTRN_ALU_NOT_EQUAL: return a != b;
    case VTRN_ALU_GREATER_EQUAL: return x >= y;
    case VTRN_ALU_GREATER: return x > y;
    case VTRN_ALU_LESS_EQUAL: return x <= y;
    default: VTRN_ASSERT(op == VTRN_ALU_LESS); return x < y;
    }
}
#define INT_ROWS(NAME) \
    static void tt_i32_##NAME##_ref(int32_t *dst, const int32_t *a, const int32_t *b, size_t n) \
    { \
        for (size_t i = 0; i < n; i++) dst[i] = (int32_t)alu_u32(VTRN_ALU_##NAME, true, (uint32_t)a[i], (uint32_t)b[i]); \
    } \
    static void tt_u32_##NAME##_ref(uint32_t *dst, const uint32_t *a, const uint32_t *b, size_t n) \
    { \
        for (size_t i = 0; i < n; i++) dst[i] = alu_u32(VTRN_ALU_##NAME, false, a[i], b[i]); \
    }
KERN_EACH_INT(INT_ROWS)

void vtrn_kern_ref_alu(struct vtrn_kern *kern)
{
#define SET(NAME) \
    kern->tt[VTRN_ALU_##NAME] = tt_##NAME##_ref; \
    kern->ts[VTRN_ALU_##NAME] = ts_##NAME##_ref;
#define SET_INT(NAME) \
    kern->tt_i32[VTRN_ALU_##NAME] = tt_i32_##NAME##_ref; \
    kern->tt_u32[VTRN_ALU_##NAME] = tt_u32_##NAME##_ref;
    KERN_EACH_ARITH(SET)
    KERN_EACH_INT(SET_INT)
    kern->mul_add = mul_add_ref;
}
