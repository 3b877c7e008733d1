/* Written by tools/gen_act_tables.py; do not edit. Constants and polynomials of functions, for every level. */
#ifndef VTRN_ACT_POLY_H
#define VTRN_ACT_POLY_H

#define WIDE_EXP_RANGE 200.0 /* beyond, exp is 0 or inf in fp32 */
#define WIDE_NORMAL_RANGE 15.0 /* beyond, the normal distribution's tail is 0 in fp32 */
#define WIDE_ROOT_RANGE 0x1p-4 /* around the zeros of the slopes */
#define WIDE_ROUND 0x1.8p52 /* what is added so that the low bits of the sum are the nearest integer */
#define WIDE_PER_LN2 0x1.71547652b82fep+0 /* 1 / ln 2 */
#define WIDE_LN2 0x1.62e42fefa39efp-1 /* ln 2 */
#define WIDE_LN2_HIGH 0x1.62e42fefa4000p-1 /* ln 2, of which times n < 2^12 is exact */
#define WIDE_LN2_LOW (-0x1.8432a1b0e2634p-43) /* and the rest */
#define WIDE_PI 0x1.921fb54442d18p+1 /* pi */
#define WIDE_PER_SQRT_2PI 0x1.9884533d43651p-2 /* 1 / sqrt(2 pi) */
#define WIDE_2_PER_SQRT_PI 0x1.20dd750429b6dp+0 /* 2 / sqrt(pi) */
#define WIDE_GELU_LINEAR 0x1.9884533d43651p+0 /* 2 sqrt(2/pi) */
#define WIDE_GELU_CUBIC 0x1.2444f2a4d8b4bp-4 /* 2 sqrt(2/pi) * 0.044715 */
#define WIDE_GELU_SIGMOID 1.702 /* of gelu_apprx_sigmoid */
#define WIDE_SQRT_HALF_BITS UINT64_C(0x3fe6a09e667f3bcd) /* sqrt(1/2) */
#define WIDE_ONE_BITS UINT64_C(0x3ff0000000000000) /* 1.0 */
#define WIDE_2P52_BITS UINT64_C(0x4330000000000000) /* 2^52 */
#define WIDE_MANTISSA UINT64_C(0x000fffffffffffff) /* its field */

/* exp in fp32: x = n * ln(2)/16 + r, exp(x) = 2^(n/16) * (1 + r + r^2 (C2 + C3 r)), relative error of the
 * polynomial 2^-28.8. ln(2)/16 is STEP_HIGH + STEP_LOW; n * STEP_HIGH is exact. */
#define ACT_EXP_PER_STEP 0x1.715476p+4f
#define ACT_EXP_STEP_HIGH 0x1.62e000p-5f
#define ACT_EXP_STEP_LOW 0x1.0bfbe8p-19f
#define ACT_EXP_C2 0x1.00026cp-1f
#define ACT_EXP_C3 0x1.55574cp-3f
/* 2^(j/16), j = 0..15 */
#define ACT_EXP_TABLE \
    0x1.000000p+0f, 0x1.0b5586p+0f, 0x1.172b84p+0f, 0x1.2387a6p+0f, \
    0x1.306fe0p+0f, 0x1.3dea64p+0f, 0x1.4bfdaep+0f, 0x1.5ab07ep+0f, \
    0x1.6a09e6p+0f, 0x1.7a1148p+0f, 0x1.8ace54p+0f, 0x1.9c4918p+0f, \
    0x1.ae89fap+0f, 0x1.c199bep+0f, 0x1.d5818ep+0f, 0x1.ea4afap+0f

/* exp(r), |r| <= ln(2)/2: 1/k!; relative error 2^-47.6. Lowest power first. */
enum { ACT_EXP_DEGREE = 11 };
static const double act_exp[ACT_EXP_DEGREE + 1] = {
    0x1.0000000000000p+0, 0x1.0000000000000p+0, 0x1.0000000000000p-1, 0x1.5555555555555p-3,
    0x1.5555555555555p-5, 0x1.1111111111111p-7, 0x1.6c16c16c16c17p-10, 0x1.a01a01a01a01ap-13,
    0x1.a01a01a01a01ap-16, 0x1.71de3a556c734p-19, 0x1.27e4fb7789f5cp-22, 0x1.ae64567f544e4p-26,
};

/* log(1 + f) / f for sqrt(1/2) <= 1 + f <= sqrt(2); relative error 2^-48.5. Lowest power first. */
enum { ACT_LOG_DEGREE = 17 };
static const double act_log[ACT_LOG_DEGREE + 1] = {
    0x1.fffffffffffeap-1, -0x1.ffffffffffedcp-2, 0x1.555555556306ep-2, -0x1.000000002b739p-2,
    0x1.999999838acd9p-3, -0x1.555555154181ep-3, 0x1.24924fdec3becp-3, -0x1.000014e4b4347p-3,
    0x1.c71a78220ed05p-4, -0x1.99929f31c1698p-4, 0x1.74833f2d31569p-4, -0x1.55f81de958dd4p-4,
    0x1.39bad555c6de1p-4, -0x1.1c804556cc89dp-4, 0x1.12f6e8fb72a64p-4, -0x1.323428efa6cdcp-4,
    0x1.2255a271790b2p-4, -0x1.0dc2097578fe7p-5,
};

/* sin(y) / y as a polynomial of y^2, |y| <= pi/2; relative error 2^-52.0. Lowest power first. */
enum { ACT_SIN_DEGREE = 7 };
static const double act_sin[ACT_SIN_DEGREE + 1] = {
    0x1.0000000000000p+0, -0x1.55555555554aap-3, 0x1.111111110a4f2p-7, -0x1.a01a019a49489p-13,
    0x1.71de37f7fb63bp-19, -0x1.ae634f9a52194p-26, 0x1.60e5a294f86c2p-33, -0x1.9eee9215769bfp-41,
};

/* atan(y) / y as a polynomial of y^2, |y| <= 1; relative error 2^-41.4. Lowest power first. */
enum { ACT_ATAN_DEGREE = 14 };
static const double act_atan[ACT_ATAN_DEGREE + 1] = {
    0x1.ffffffffffe33p-1, -0x1.5555555430e80p-2, 0x1.999998b9e1393p-3, -0x1.24922b0b99eb7p-3,
    0x1.c71860780c0fbp-4, -0x1.74336592f7d6dp-4, 0x1.39fd7112b1249p-4, -0x1.0c0d7428eccf0p-4,
    0x1.c08f25851582cp-5, -0x1.5ce3117983f67p-5, 0x1.d61a61febbc2ep-6, -0x1.f9e8e03622728p-7,
    0x1.8b8264cfb4ce9p-8, -0x1.87b4f235e76e4p-10, 0x1.6ca6893aa8155p-13,
};

/* exp(a^2/2) * P(normal variate > a) as a polynomial of (a - 3) / (a + 3), a <= 15; relative error 2^-45.6. Lowest power first. */
enum { ACT_MILLS_DEGREE = 18 };
static const double act_mills[ACT_MILLS_DEGREE + 1] = {
    0x1.f1b89c231ea43p-4, -0x1.a6b669a3158ecp-3, 0x1.f8bab9ba757a4p-4, -0x1.7a94a515615d8p-5,
    0x1.91f4b359244c8p-8, 0x1.7ce25091ec1ffp-9, -0x1.03be0b53c6137p-10, -0x1.6a5b053433261p-12,
    0x1.13deabf8885b6p-13, 0x1.1f43d91da1f0bp-14, -0x1.a72f4209be4c8p-17, -0x1.011fd569c2a68p-16,
    -0x1.3f993e9badd17p-20, 0x1.7cf4de5f387d1p-19, 0x1.25230d43b166ep-20, -0x1.fb4bdf7f05bcdp-23,
    -0x1.1a76015eb8faep-22, -0x1.84b5d7f072975p-25, 0x1.53f0af83ad514p-28,
};

#define ACT_GELU_ROOT (-0x1.80ead197f00b4p-1) /* where the slope is 0 */

/* slope / (x - root) as a polynomial of x - root, |x - root| <= 1/16; relative error 2^-51.8. Lowest power first. */
enum { ACT_GELU_ROOT_DEGREE = 9 };
static const double act_gelu_root[ACT_GELU_ROOT_DEGREE + 1] = {
    0x1.b9d98fa5a3215p-2, 0x1.8d9a941de3ac5p-2, -0x1.2a2ef9bb865aep-6, -0x1.d2fa4c17c7e84p-4,
    -0x1.e4088244f901dp-7, 0x1.3e346def42057p-6, 0x1.297b9d6ffaacdp-8, -0x1.258a6d85633afp-9,
    -0x1.8680f74e6b6bap-11, 0x1.86c863b66083cp-13,
};

#define ACT_SILU_ROOT (-0x1.474973c84120bp+0) /* where the slope is 0 */

/* slope / (x - root) as a polynomial of x - root, |x - root| <= 1/16; relative error 2^-54.8. Lowest power first. */
enum { ACT_SILU_ROOT_DEGREE = 9 };
static const double act_silu_root[ACT_SILU_ROOT_DEGREE + 1] = {
    0x1.be1410460527fp-3, 0x1.2c563458cc0adp-3, 0x1.353eb573ca457p-6, -0x1.f2d0e32bc2994p-7,
    -0x1.b0f82c498fd2fp-8, 0x1.098e92b8f076dp-13, 0x1.a2a7caf0ee747p-11, 0x1.8574d136d4cb4p-13,
    -0x1.57238dca12615p-15, -0x1.f2d8976600f6fp-16,
};

#endif
