/* Inside kern/ref only: functions computed in double, for results that are rounded to fp32 once at the end. Arguments come
 * from fp32, so results need some 40 good bits, more only where a difference cancels (the slopes near their zeros).
 * kern/wide.inc.c is the same for vectors: the same operations in the same order, so the same bits.
 *
 * `a < b ? a : b` is written out where the side that a NaN takes matters: it is the b side. */
#ifndef VTRN_KERN_REF_WIDE_H
#define VTRN_KERN_REF_WIDE_H
#include <math.h>

#include "kern/act_poly.h"
#include "kern/kern_int.h"

static inline uint64_t wide_bits(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}
static inline double wide_double(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}
/* Even and odd powers apart: two chains of half the length. */
static inline double wide_poly(double x, const double *term, int degree)
{
    double x2 = x * x, high = term[degree], low = term[degree - 1];
    int k = degree - 2;
    for (; k > 0; k -= 2) {
        high = fma(high, x2, term[k]);
        low = fma(low, x2, term[k - 1]);
    }
    return k == 0 ? fma(low, x, fma(high, x2, term[0])) : fma(high, x, low);
}

/* exp for arguments from fp32; beyond +-200 it is exp(+-200), which is 0 or inf in fp32. */
static inline double wide_exp(double x)
{
    x = WIDE_EXP_RANGE < x ? WIDE_EXP_RANGE : x;
    x = -WIDE_EXP_RANGE > x ? -WIDE_EXP_RANGE : x;
    double moved = fma(x, WIDE_PER_LN2, WIDE_ROUND), n = moved - WIDE_ROUND;
    double r = fma(n, -WIDE_LN2_LOW, fma(n, -WIDE_LN2_HIGH, x));
    /* n is in the low bits of `moved`. A NaN has zeros there, as it comes from fp32, and stays a NaN. */
    return wide_double(wide_bits(wide_poly(r, act_exp, ACT_EXP_DEGREE)) + (wide_bits(moved) << 52));
}

/* Natural logarithm of a number that fp32 can hold (0 and denormal ones are no special case in double but for log 0). */
static inline double wide_log(double x)
{
    uint64_t moved = wide_bits(x) - WIDE_SQRT_HALF_BITS + WIDE_ONE_BITS; /* exponent of x relative to [sqrt 1/2, sqrt 2) */
    double exponent = wide_double(moved >> 52 | WIDE_2P52_BITS) - (0x1p52 + 1023);
    double f = wide_double((moved & WIDE_MANTISSA) + WIDE_SQRT_HALF_BITS) - 1;
    double y = fma(exponent, WIDE_LN2, f * wide_poly(f, act_log, ACT_LOG_DEGREE));
    if (x == (double)INFINITY) return x;
    if (x == 0) return -(double)INFINITY;
    return x > 0 ? y : (double)NAN;
}

static inline double wide_sigmoid(double x)
{
    double e = wide_exp(-fabs(x));
    return (x < 0 ? e : 1) / (1 + e);
}

/* exp(a^2/2) * P(normal variate > a), 0 <= a <= 15 */
static inline double wide_mills(double a) { return wide_poly((a - 3) / (a + 3), act_mills, ACT_MILLS_DEGREE); }

static inline double wide_gelu(double x)
{
    double a = WIDE_NORMAL_RANGE < fabs(x) ? WIDE_NORMAL_RANGE : fabs(x);
    double tail = wide_exp(a * a * -0.5) * wide_mills(a);
    return x < 0 ? -a * tail : x * (1 - tail);
}

/* x * sigmoid(v); v has the sign of x */
static inline double wide_gate(double x, double v) { return (-WIDE_EXP_RANGE > x ? -WIDE_EXP_RANGE : x) * wide_sigmoid(v); }
static inline double wide_gelu_tanh(double x) { return wide_gate(x, x * fma(x * x, WIDE_GELU_CUBIC, WIDE_GELU_LINEAR)); }

/* log(1 + exp(x)) where |x| > 10: three terms of the series */
static inline double wide_softplus(double x)
{
    double e = wide_exp(-fabs(x));
    return (x > 0 ? x : 0) + e * fma(-e, fma(-e, 1.0 / 3, 0.5), 1);
}

static inline double wide_mish(double x)
{
    double from = -WIDE_EXP_RANGE > x ? -WIDE_EXP_RANGE : x, e = wide_exp(from), n = e * (e + 2);
    return from * (n / (n + 2));
}

/* The slopes: f(x) = 1 - f(-x), so only x <= 0 is computed. Near the zero of f the difference cancels. */
static inline double wide_gelu_dx(double x)
{
    double a = WIDE_NORMAL_RANGE < fabs(x) ? WIDE_NORMAL_RANGE : fabs(x);
    double slope = wide_exp(a * a * -0.5) * fma(a, -WIDE_PER_SQRT_2PI, wide_mills(a));
    double t = -a - ACT_GELU_ROOT;
    if (fabs(t) <= WIDE_ROOT_RANGE) slope = t * wide_poly(t, act_gelu_root, ACT_GELU_ROOT_DEGREE);
    return x < 0 ? slope : 1 - slope;
}
static inline double wide_silu_dx(double x)
{
    double a = WIDE_EXP_RANGE < fabs(x) ? WIDE_EXP_RANGE : fabs(x), e = wide_exp(-a), s = e / (1 + e);
    double slope = s * fma(-a, 1 - s, 1), t = -a - ACT_SILU_ROOT;
    if (fabs(t) <= WIDE_ROOT_RANGE) slope = t * wide_poly(t, act_silu_root, ACT_SILU_ROOT_DEGREE);
    return x < 0 ? slope : 1 - slope;
}

static inline double wide_erf_dx(double x) { return WIDE_2_PER_SQRT_PI * wide_exp(-(x * x)); }

/* Beyond +-pi the hardware has no range reduction: its last cubic, the series of sine at +-pi, goes on.
 * sin(9) is 27.65 there (nki.api.shared, Neuron SDK 2.32). */
static inline double wide_sin(double x)
{
    double beyond = copysign(WIDE_PI, x) - x, y = fabs(x) > WIDE_PI / 2 ? beyond : x;
    double inside = y * wide_poly(y * y, act_sin, ACT_SIN_DEGREE);
    return fabs(x) > WIDE_PI ? beyond * fma(beyond * beyond, -1.0 / 6, 1) : inside;
}

static inline double wide_atan(double x)
{
    double a = fabs(x), z = (1 < a ? 1 : a) / (1 > a ? 1 : a), y = z * wide_poly(z * z, act_atan, ACT_ATAN_DEGREE);
    return copysign(a > 1 ? WIDE_PI / 2 - y : y, x);
}
#endif
