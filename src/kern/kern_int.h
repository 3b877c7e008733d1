/* Inside kern/ only: the bits of floats, and the hooks by which files of ref/, x86/ and arm/ put their functions into a
 * table. */
#ifndef VTRN_KERN_INT_H
#define VTRN_KERN_INT_H
#include "kern/kern.h"

#define KERN_INLINE   static inline __attribute__((always_inline))
#define KERN_NAN_BITS UINT32_C(0x7fc00000)

KERN_INLINE uint32_t kern_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}
KERN_INLINE float kern_float(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}
KERN_INLINE float kern_canonical(float x) { return x != x ? kern_float(KERN_NAN_BITS) : x; }

/* The operators and functions that slots exist for (tests compare these lists with the tables of isa/). */
/* clang-format off */
#define KERN_EACH_ARITH(X) \
    X(ADD) X(SUBTRACT) X(MULTIPLY) X(MAXIMUM) X(MINIMUM) X(EQUAL) X(NOT_EQUAL) X(GREATER_EQUAL) X(GREATER) X(LESS_EQUAL) \
    X(LESS) X(LOGICAL_AND) X(LOGICAL_OR) X(LOGICAL_XOR) X(POWER) X(ABS_MAX) X(ABS_MIN) X(ABS) X(SQUARE) X(RELU) X(RSQRT) \
    X(RECIPROCAL) X(BYPASS) X(DIVIDE) X(FMOD) X(MOD)
/* clang-format on */
#define KERN_EACH_INT(X) \
    X(ADD) X(SUBTRACT) X(MULTIPLY) X(MAXIMUM) X(MINIMUM) X(EQUAL) X(NOT_EQUAL) X(GREATER_EQUAL) X(GREATER) X(LESS_EQUAL) X(LESS)
#define KERN_EACH_BITS(X)        X(INVERT) X(BITWISE_AND) X(BITWISE_OR) X(BITWISE_XOR) X(LEFT_SHIFT) X(RIGHT_SHIFT)
#define KERN_EACH_BITS_REDUCE(X) X(BITWISE_AND) X(BITWISE_OR) X(BITWISE_XOR)
/* clang-format off */
#define KERN_EACH_REDUCE(X) \
    X(ADD) X(SUBTRACT) X(MULTIPLY) X(MAXIMUM) X(MINIMUM) X(LOGICAL_AND) X(LOGICAL_OR) X(LOGICAL_XOR) X(ABS_MAX) X(ABS_MIN)
#define KERN_EACH_ACT(X) \
    X(COPY) X(SQUARE) X(SIGMOID) X(RELU) X(GELU) X(GELU_DX) X(GELU_APPRX_TANH) X(GELU_APPRX_SIGMOID) \
    X(GELU_APPRX_SIGMOID_DX) X(SILU) X(SILU_DX) X(TANH) X(SOFTPLUS) X(MISH) X(ERF) X(ERF_DX) X(EXP) X(LOG) X(SIN) X(ARCTAN) \
    X(SQRT) X(RSQRT) X(RECIPROCAL) X(SIGN) X(ABS) X(PRELU)
/* clang-format on */

/* One hook for each group of slots and level; each sets what it has. */
#define KERN_EACH_GROUP(X, level) X(level, convert) X(level, alu) X(level, bits) X(level, act) X(level, rows)
#define KERN_HOOK(level, group)   void vtrn_kern_##level##_##group(struct vtrn_kern *kern);
KERN_EACH_GROUP(KERN_HOOK, ref)
KERN_EACH_GROUP(KERN_HOOK, avx2)
KERN_EACH_GROUP(KERN_HOOK, avx512)
KERN_EACH_GROUP(KERN_HOOK, neon)
#undef KERN_HOOK

/* Matrix kernels and transposes. `level` is the one being filled; called once for each level from AVX2 up. */
void vtrn_kern_ref_mm(struct vtrn_kern *kern);
void vtrn_kern_x86_mm(struct vtrn_kern *kern, enum vtrn_cpu_level level);
void vtrn_kern_arm_mm(struct vtrn_kern *kern);
#endif
