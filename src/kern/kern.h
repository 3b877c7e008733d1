/* kern: arithmetic on rows of numbers. `ref/` is portable C and the definition of correct; x86/ and arm/ override slots.
 * Every override is bit-exact with ref, unless its slot's comment here names an error bound (none does today).
 *
 * Common contract: n may be anything including 0; void pointers may have any alignment, typed ones that of their element;
 * dst may equal a source exactly (in place; not where a load widens) but not overlap it otherwise. fp32 arithmetic
 * is IEEE with denormals, RNE, no contraction of separate operations unless
 * a slot says fma. NaN results are the quiet NaN 0x7fc00000 unless the slot copies. */
#ifndef VTRN_KERN_H
#define VTRN_KERN_H
#include "isa/isa.h"

/* Rows of a recurrence: for each of `rows` rows, in order of i < n,
 *   dst[i] = r = op1(op0(a[i], r), b[i]),   r = state[row] before and after.
 * A reverse flag swaps the operands of its operator. Strides in floats; `b` is not read where op1 is BYPASS and not
 * reversed (NULL is fine). dst may equal a or b. Any ARITH operator but AVERAGE; multiply then add is the fast pair. */
struct vtrn_scan {
    float *dst;
    const float *a, *b;
    size_t dst_stride, a_stride, b_stride;
    float *state;
    size_t rows, n;
    enum vtrn_alu op0, op1;
    bool reverse0, reverse1;
};

/* One tile of the tensor engine. K, M, N any size >= 0; stationary [K,M] and moving [K,N] have unit stride along M and N.
 * D[m,n] = (acc ? D[m,n] : 0) + chain, where chain starts at +0 and is fma(s[k,m], x[k,n], chain) for k = 0..K-1 in
 * order, in fp32 (IEEE, denormals kept): bf16, fp16, fp8 inputs convert exactly to fp32 first, tf32 is fp32 with the low
 * 13 mantissa bits rounded away (RNE). The products of 16- and 8-bit inputs are exact in fp32, so fma there is
 * multiply-then-add. A fresh chain replaces D even where K is 0. */
struct vtrn_mm {
    int k, m, n;
    const void *s;
    ptrdiff_t s_pitch; /* bytes from k to k+1 */
    const void *x;
    ptrdiff_t x_pitch;
    float *d;
    ptrdiff_t d_pitch;        /* bytes from m to m+1 */
    uint8_t s_dtype, x_dtype; /* F32 TF32 BF16 F16 F8E4M3 F8E4M3FN F8E5M2 */
    bool acc;
    void *scratch;              /* vtrn_kern.mm_scratch_bytes, 64-byte aligned, private to the thread */
    const struct vtrn_mm *next; /* the thread's next product, whose operands may be fetched meanwhile; NULL: unknown */
};
/* One tile of block-scaled (MX) operands: s, x hold K partitions of packed elements; scale bytes are already gathered to
 * one per (k, column): s_scale[k*m + col], x_scale[k*n + col] (E8M0). chain over k then q=0..3 in order:
 * fma(S*2^ss, X*2^sx, chain), each scaled value exact in fp32 (values beyond fp32's range become inf or round to 0). */
struct vtrn_mm_mx {
    int k, m, n;
    const void *s;
    ptrdiff_t s_pitch;
    const void *x;
    ptrdiff_t x_pitch;
    const uint8_t *s_scale, *x_scale;
    ptrdiff_t s_scale_pitch, x_scale_pitch; /* bytes from k to k+1; 0: rows follow each other (m, n bytes) */
    float *d;
    ptrdiff_t d_pitch;
    uint8_t s_dtype, x_dtype; /* F8E5M2X4 F8E4M3FNX4 F4E2M1FNX4 */
    bool acc;
    void *scratch;
};

struct vtrn_kern {
    enum vtrn_cpu_level level;
    /* dtype -> fp32, exact for all but I32/U32 (RNE). F32 and TF32 copy. NULL for packed dtypes. E8M0: 2^(b-127), 0xff NaN.
     * BOOL: 1 where the byte is not 0. A NaN keeps its sign and its mantissa bits, which become the top ones; F16 and F8*
     * also get the quiet bit, bf16 only moves. */
    void (*load[VTRN_DT_COUNT])(float *dst, const void *src, size_t n);
    /* fp32 -> dtype. F32 copies. Floats: RNE; overflow to inf where the format has it, else (e4m3fn) +-inf and overflow
     * saturate to +-448. fp8 e4m3: largest 240, overflow inf. Ints: RNE, saturating, NaN -> 0. BOOL: x != 0, so NaN -> 1.
     * TF32: RNE to 10 mantissa bits, overflow to inf. NaN keeps its sign: canonical quiet NaN of the format (0x7fc0,
     * 0x7e00, e4m3 0x7c, e4m3fn 0x7f, e5m2 0x7e, TF32 0x7fc00000). E8M0: nearest power of two, ties up (1.5 -> 2); below
     * 2^-127 and +-0 -> 0; negative, NaN, inf and 1.5 * 2^127 and above -> 0xff. */
    void (*store[VTRN_DT_COUNT])(void *dst, const float *src, size_t n);
    /* fp32 -> dtype with stochastic rounding for BF16 F16 F8*: random[i] are uniform 32-bit words. NULL elsewhere. The
     * magnitude is cut and goes up one place when fraction + random[i] >= 2^32, `fraction` being what was cut off, in
     * units of 2^-32 of that place (bits below are dropped). Overflow, inf and NaN as in store. */
    void (*store_sr[VTRN_DT_COUNT])(void *dst, const float *src, const uint32_t *random, size_t n);

    /* dst = op(a, b) and dst = op(a, s) or op(s, a) (reverse); ARITH operators, fp32. NULL for BITS operators and AVERAGE.
     * Unary operators look at `a` only. BYPASS copies. A NaN operand of MAXIMUM, MINIMUM, ABS_MAX, ABS_MIN, RELU gives NaN;
     * where operands compare equal these give the second. Comparisons with NaN are 0, NOT_EQUAL 1; a NaN is not 0 to the
     * LOGICAL ones. POWER is C's pow within 1 ulp, MOD Python's %. */
    void (*tt[VTRN_ALU_COUNT])(float *dst, const float *a, const float *b, size_t n);
    void (*ts[VTRN_ALU_COUNT])(float *dst, const float *a, float s, bool reverse, size_t n);
    /* dst = a * mul + add, rounded twice: the most frequent pair. */
    void (*mul_add)(float *dst, const float *a, float mul, float add, size_t n);
    /* 32-bit integer forms of ADD SUBTRACT MULTIPLY MAXIMUM MINIMUM and the comparisons (wrap around; result 0/1);
     * the unsigned forms differ in comparisons and max/min. NULL elsewhere. */
    void (*tt_i32[VTRN_ALU_COUNT])(int32_t *dst, const int32_t *a, const int32_t *b, size_t n);
    void (*tt_u32[VTRN_ALU_COUNT])(uint32_t *dst, const uint32_t *a, const uint32_t *b, size_t n);
    /* BITS operators on elements of 1, 2, 4 bytes ([0], [1], [2]). */
    void (*tt_bits[VTRN_ALU_COUNT][3])(void *dst, const void *a, const void *b, size_t n);
    void (*ts_bits[VTRN_ALU_COUNT][3])(void *dst, const void *a, uint32_t s, bool reverse, size_t n);

    /* dst = f(a * scale + bias), the inner part rounded twice (scale 1, bias -0 leaves `a` as it is). Within 2 ulp of the
     * exact function of that argument, denormal results included; the sign of a zero result is not part of that. At
     * infinities the limit (gelu, silu, mish of -inf: 0); outside of the domain (log, sqrt, rsqrt of negatives) NaN. SIN
     * beyond +-pi: -d + d^3/6 with d = x -+ pi. SIGN of +-0 is 0. PRELU here has slope 0. */
    void (*act[VTRN_ACT_COUNT])(float *dst, const float *a, float scale, float bias, size_t n);
    /* x < 0 ? slope * x : x, of x = a * scale + bias */
    void (*prelu)(float *dst, const float *a, float scale, float bias, float slope, size_t n);

    /* acc[r] = op(...op(op(acc[r], src[r][0]), src[r][1])..., src[r][n-1]) in order, for `rows` rows `row_stride` floats
     * apart. ADD SUBTRACT MULTIPLY MAXIMUM MINIMUM LOGICAL_* ABS_MAX ABS_MIN. Any rows and n are fast, but few rows (under
     * 8) go at the speed of their chain. */
    void (*reduce[VTRN_ALU_COUNT])(float *acc, const float *src, size_t row_stride, size_t rows, size_t n);
    /* BITWISE_AND BITWISE_OR BITWISE_XOR of elements of 1, 2, 4 bytes ([0], [1], [2]) into acc[r], which has the same
     * width; row_stride in elements. NULL elsewhere. */
    void (*reduce_bits[VTRN_ALU_COUNT][3])(void *acc, const void *src, size_t row_stride, size_t rows, size_t n);
    void (*scan)(const struct vtrn_scan *scan);

    /* The destination overlaps neither operand nor scratch. A tile may be computed in parts, by several threads: columns
     * [n0, n1) with x and d moved right, rows [m0, m1) with s moved right and d moved down give the same bits. Parts of n in
     * multiples of 64 and of m in multiples of 8 waste nothing; each part of n packs s again (1 % of the work at n = 512,
     * 8 % at 64), each part of m converts x again (the same at m = 128 and 16), so cut n while parts stay >= 128 wide. */
    void (*mm)(const struct vtrn_mm *mm);
    void (*mm_mx)(const struct vtrn_mm_mx *mm);
    size_t mm_scratch_bytes;

    /* dst[j][i] = src[i][j] for elements of 1, 2, 4 bytes ([0], [1], [2]); pitches in bytes; rows x cols of src. dst does
     * not overlap src. */
    void (*transpose[3])(void *dst, ptrdiff_t dst_pitch, const void *src, ptrdiff_t src_pitch, size_t rows, size_t cols);
};

/* The slots of a level: set to ref, then overridden level by level up to `level` (which this machine must have). */
const struct vtrn_kern *vtrn_kern_for(enum vtrn_cpu_level level);
/* The slots for vtrn_cpu_level(). */
static inline const struct vtrn_kern *vtrn_kern_best(void) { return vtrn_kern_for(vtrn_cpu_level()); }

/* One value, by the definition of ref: for immediates and tests. */
float vtrn_to_f32(enum vtrn_dtype dtype, const void *element);
void vtrn_from_f32(enum vtrn_dtype dtype, float value, void *element_out);
float vtrn_alu_f32(enum vtrn_alu op, float lhs, float rhs);
float vtrn_act_f32(enum vtrn_act func, float x);
/* A value of an MX element: `lane` 0..3 of a packed element. */
float vtrn_mx_to_f32(enum vtrn_dtype dtype, const void *element, int lane);
/* Sets lane 0..3 of a packed element to the nearest value (RNE, saturating; NaN gives NaN where the format has it, else the
 * largest). The other lanes keep their bits. */
void vtrn_mx_from_f32(enum vtrn_dtype dtype, float value, int lane, void *element);
#endif
