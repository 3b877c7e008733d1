/* Functions computed in double: the vector form of ref/wide.h, with the same operations in the same order on
 * every lane. What ref writes as a < b ? a : b is d_min(a, b) here, which takes the same side for a NaN.
 * Included by the files of a level after its words. */
#include "kern/act_poly.h"

KERN_INLINE vd d_poly(vd x, const double *term, const int degree)
{
    vd x2 = d_mul(x, x), high = d_set1(term[degree]), low = d_set1(term[degree - 1]);
    int k = degree - 2;
    for (; k > 0; k -= 2) {
        high = d_fma(high, x2, d_set1(term[k]));
        low = d_fma(low, x2, d_set1(term[k - 1]));
    }
    return k == 0 ? d_fma(low, x, d_fma(high, x2, d_set1(term[0]))) : d_fma(high, x, low);
}
KERN_INLINE vd d_negated(vd x) { return d_of_bits(l_sub(d_bits(x), l_set1(UINT64_C(1) << 63))); }
KERN_INLINE vd d_with_sign(vd magnitude, vd sign)
{
    return d_of_bits(l_or(d_bits(magnitude), l_and(d_bits(sign), l_set1(UINT64_C(1) << 63))));
}
KERN_INLINE vdm d_negative(vd x) { return d_lt(x, d_set1(0)); }

KERN_INLINE vd d_exp(vd x)
{
    x = d_max(d_set1(-WIDE_EXP_RANGE), d_min(d_set1(WIDE_EXP_RANGE), x));
    vd moved = d_fma(x, d_set1(WIDE_PER_LN2), d_set1(WIDE_ROUND)), n = d_sub(moved, d_set1(WIDE_ROUND));
    vd r = d_fma(n, d_set1(-WIDE_LN2_LOW), d_fma(n, d_set1(-WIDE_LN2_HIGH), x));
    return d_of_bits(l_add(d_bits(d_poly(r, act_exp, ACT_EXP_DEGREE)), l_sll(d_bits(moved), 52)));
}

KERN_INLINE vd d_log(vd x)
{
    vl moved = l_add(l_sub(d_bits(x), l_set1(WIDE_SQRT_HALF_BITS)), l_set1(WIDE_ONE_BITS));
    vd exponent = d_sub(d_of_bits(l_or(l_srl(moved, 52), l_set1(WIDE_2P52_BITS))), d_set1(0x1p52 + 1023));
    vl mantissa = l_add(l_and(moved, l_set1(WIDE_MANTISSA)), l_set1(WIDE_SQRT_HALF_BITS));
    vd f = d_sub(d_of_bits(mantissa), d_set1(1));
    vd y = d_fma(exponent, d_set1(WIDE_LN2), d_mul(f, d_poly(f, act_log, ACT_LOG_DEGREE)));
    y = d_sel(d_lt(d_set1(0), x), y, d_set1((double)NAN));
    y = d_sel(d_eq(x, d_set1(0)), d_set1(-(double)INFINITY), y);
    return d_sel(d_eq(x, d_set1((double)INFINITY)), x, y);
}

KERN_INLINE vd d_sigmoid(vd x)
{
    vd e = d_exp(d_negated(d_abs(x)));
    return d_div(d_sel(d_negative(x), e, d_set1(1)), d_add(d_set1(1), e));
}
KERN_INLINE vd d_mills(vd a) { return d_poly(d_div(d_sub(a, d_set1(3)), d_add(a, d_set1(3))), act_mills, ACT_MILLS_DEGREE); }
KERN_INLINE vd d_gelu(vd x)
{
    vd a = d_min(d_set1(WIDE_NORMAL_RANGE), d_abs(x));
    vd tail = d_mul(d_exp(d_mul(d_mul(a, a), d_set1(-0.5))), d_mills(a));
    return d_sel(d_negative(x), d_mul(d_negated(a), tail), d_mul(x, d_sub(d_set1(1), tail)));
}
KERN_INLINE vd d_gate(vd x, vd v) { return d_mul(d_max(d_set1(-WIDE_EXP_RANGE), x), d_sigmoid(v)); }
KERN_INLINE vd d_gelu_tanh(vd x)
{
    return d_gate(x, d_mul(x, d_fma(d_mul(x, x), d_set1(WIDE_GELU_CUBIC), d_set1(WIDE_GELU_LINEAR))));
}
KERN_INLINE vd d_softplus(vd x)
{
    vd e = d_exp(d_negated(d_abs(x)));
    vd series = d_mul(e, d_fnma(e, d_fnma(e, d_set1(1.0 / 3), d_set1(0.5)), d_set1(1)));
    return d_add(d_max(x, d_set1(0)), series);
}
KERN_INLINE vd d_mish(vd x)
{
    vd from = d_max(d_set1(-WIDE_EXP_RANGE), x), e = d_exp(from), n = d_mul(e, d_add(e, d_set1(2)));
    return d_mul(from, d_div(n, d_add(n, d_set1(2))));
}
/* The slope at -a, unless a is near the zero of the slope; 1 minus it for positive x. */
KERN_INLINE vd d_slope(vd x, vd a, vd slope, double root, const double *term, const int degree)
{
    vd t = d_sub(d_negated(a), d_set1(root));
    slope = d_sel(d_le(d_abs(t), d_set1(WIDE_ROOT_RANGE)), d_mul(t, d_poly(t, term, degree)), slope);
    return d_sel(d_negative(x), slope, d_sub(d_set1(1), slope));
}
KERN_INLINE vd d_gelu_dx(vd x)
{
    vd a = d_min(d_set1(WIDE_NORMAL_RANGE), d_abs(x));
    vd slope = d_mul(d_exp(d_mul(d_mul(a, a), d_set1(-0.5))), d_fma(a, d_set1(-WIDE_PER_SQRT_2PI), d_mills(a)));
    return d_slope(x, a, slope, ACT_GELU_ROOT, act_gelu_root, ACT_GELU_ROOT_DEGREE);
}
KERN_INLINE vd d_silu_dx(vd x)
{
    vd a = d_min(d_set1(WIDE_EXP_RANGE), d_abs(x)), e = d_exp(d_negated(a)), s = d_div(e, d_add(d_set1(1), e));
    vd slope = d_mul(s, d_fnma(a, d_sub(d_set1(1), s), d_set1(1)));
    return d_slope(x, a, slope, ACT_SILU_ROOT, act_silu_root, ACT_SILU_ROOT_DEGREE);
}
KERN_INLINE vd d_erf_dx(vd x) { return d_mul(d_set1(WIDE_2_PER_SQRT_PI), d_exp(d_negated(d_mul(x, x)))); }
KERN_INLINE vd d_sin(vd x)
{
    vd beyond = d_sub(d_with_sign(d_set1(WIDE_PI), x), x);
    vd y = d_sel(d_lt(d_set1(WIDE_PI / 2), d_abs(x)), beyond, x);
    vd inside = d_mul(y, d_poly(d_mul(y, y), act_sin, ACT_SIN_DEGREE));
    vd cubic = d_mul(beyond, d_fma(d_mul(beyond, beyond), d_set1(-1.0 / 6), d_set1(1)));
    return d_sel(d_lt(d_set1(WIDE_PI), d_abs(x)), cubic, inside);
}
KERN_INLINE vd d_atan(vd x)
{
    const vd one = d_set1(1);
    vd a = d_abs(x), z = d_div(d_min(one, a), d_max(one, a));
    vd y = d_mul(z, d_poly(d_mul(z, z), act_atan, ACT_ATAN_DEGREE));
    return d_with_sign(d_sel(d_lt(one, a), d_sub(d_set1(WIDE_PI / 2), y), y), x);
}
/* exp(y log a), and 1 for a = 1 also where y is infinite */
KERN_INLINE vd d_power(vd a, vd y) { return d_sel(d_eq(a, d_set1(1)), d_set1(1), d_exp(d_mul(y, d_log(a)))); }
