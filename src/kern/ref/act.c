/* The scalar engine's functions: the definition. Most are evaluated in double and rounded once (wide.h). exp, and the
 * functions that models spend their time in, are evaluated in fp32 from piecewise polynomials (act_tables.h), and in double
 * where the table ends. Every level makes the same choice for the same argument and so gives the same bits.
 *
 * Limits at infinity are the function's limits: gelu, silu, mish of -inf are -0, not the NaN of 0 * inf. The sign of a zero
 * result is that of the steps below: gelu(-0) is +0.
 *
 * Knows no accumulators: an activation that also reduces is two slots. */
#include "kern/act_tables.h"
#include "kern/ref/wide.h"

static float exp_f32(float x)
{
    static const float power[ACT_PIECES] = { ACT_EXP_TABLE };

    x = 89 < x ? 89 : x;     /* inf from here on; a NaN stays */
    x = -104 > x ? -104 : x; /* 0 */
    float moved = fmaf(x, ACT_EXP_PER_STEP, ACT_ROUND), n = moved - ACT_ROUND;
    float r = fmaf(n, -ACT_EXP_STEP_LOW, fmaf(n, -ACT_EXP_STEP_HIGH, x));
    float p = fmaf(r * r, fmaf(r, ACT_EXP_C3, ACT_EXP_C2), r);
    if (isnan(x)) return x;
    int step = (int)(kern_bits(moved) - kern_bits(ACT_ROUND)), k = (step - (step & 15)) / 16;
    float y = power[step & 15];
    y = fmaf(y, p, y);
    /* times 2^k in two factors that fp32 has; only the second can round */
    return y * ldexpf(1, k / 2) * ldexpf(1, k - k / 2);
}

/* The table's function of a = |x|, within its limit. */
static float table(const struct act_table *t, float a)
{
    float moved = fmaf(a, t->inverse, ACT_ROUND), u = fmaf(moved - ACT_ROUND, -t->width, a);
    uint32_t piece = kern_bits(moved) & (ACT_PIECES - 1);
    float y = t->term[t->degree][piece];
    for (int k = t->degree - 1; k > 0; k--) y = fmaf(y, u, t->term[k][piece]);
    float base = t->term[0][piece];
    if (t->rest_slope != 0) base = fmaf(u, t->rest_slope, base);
    return fmaf(y, u, base);
}
static float within(const struct act_table *t, float a) { return t->limit < a ? t->limit : a; }
static float positive(float x) { return x > 0 ? x : 0; }

static float act(const enum vtrn_act func, float x, float slope)
{
    const float a = fabsf(x);
    switch (func) {
    case VTRN_ACT_COPY: return x;
    case VTRN_ACT_SQUARE: return x * x;
    case VTRN_ACT_SIGMOID:
        if (!(a <= vtrn_act_table_sigmoid.limit)) return (float)wide_sigmoid(x);
        return x < 0 ? table(&vtrn_act_table_sigmoid, a) : 1 - table(&vtrn_act_table_sigmoid, a);
    case VTRN_ACT_RELU: return isnan(x) ? x : positive(x);
    case VTRN_ACT_GELU:
        if (!(a <= vtrn_act_table_gelu.limit)) return (float)wide_gelu(x);
        return positive(x) - table(&vtrn_act_table_gelu, a);
    case VTRN_ACT_GELU_DX: return (float)wide_gelu_dx(x);
    case VTRN_ACT_GELU_APPRX_TANH:
        if (!(a <= vtrn_act_table_gelu_tanh.limit)) return (float)wide_gelu_tanh(x);
        return positive(x) - table(&vtrn_act_table_gelu_tanh, a);
    case VTRN_ACT_GELU_APPRX_SIGMOID:
        if (!(a <= vtrn_act_table_gelu_sigmoid.limit)) return (float)wide_gate(x, WIDE_GELU_SIGMOID * x);
        return positive(x) - table(&vtrn_act_table_gelu_sigmoid, a);
    case VTRN_ACT_GELU_APPRX_SIGMOID_DX: return (float)wide_silu_dx(WIDE_GELU_SIGMOID * x); /* the same function of 1.702 x */
    case VTRN_ACT_SILU:
        if (!(a <= vtrn_act_table_silu.limit)) return (float)wide_gate(x, x);
        return positive(x) - table(&vtrn_act_table_silu, a);
    case VTRN_ACT_SILU_DX: return (float)wide_silu_dx(x);
    case VTRN_ACT_TANH: return copysignf(table(&vtrn_act_table_tanh, within(&vtrn_act_table_tanh, a)), x);
    case VTRN_ACT_SOFTPLUS:
        if (!(a <= vtrn_act_table_softplus.limit)) return (float)wide_softplus(x);
        return positive(x) + table(&vtrn_act_table_softplus, a);
    case VTRN_ACT_MISH: return (float)wide_mish(x);
    case VTRN_ACT_ERF: return copysignf(table(&vtrn_act_table_erf, within(&vtrn_act_table_erf, a)), x);
    case VTRN_ACT_ERF_DX: return (float)wide_erf_dx(x);
    case VTRN_ACT_EXP: return exp_f32(x);
    case VTRN_ACT_LOG: return (float)wide_log(x);
    case VTRN_ACT_SIN: return (float)wide_sin(x);
    case VTRN_ACT_ARCTAN: return (float)wide_atan(x);
    case VTRN_ACT_SQRT: return sqrtf(x);
    case VTRN_ACT_RSQRT: return 1 / sqrtf(x);
    case VTRN_ACT_RECIPROCAL: return 1 / x;
    case VTRN_ACT_SIGN: return x > 0 ? 1 : x < 0 ? -1 : isnan(x) ? x : 0;
    case VTRN_ACT_ABS: return a;
    case VTRN_ACT_PRELU: return x < 0 ? slope * x : x;
    default: VTRN_ASSERT(!"a function of the table"); return 0;
    }
}

float vtrn_act_f32(enum vtrn_act func, float x) { return kern_canonical(act(func, x, 0)); }

#define ROW(NAME) \
    static void act_##NAME##_ref(float *dst, const float *a, float scale, float bias, size_t n) \
    { \
        for (size_t i = 0; i < n; i++) dst[i] = vtrn_act_f32(VTRN_ACT_##NAME, a[i] * scale + bias); \
    }
KERN_EACH_ACT(ROW)

static void prelu_ref(float *dst, const float *a, float scale, float bias, float slope, size_t n)
{
    for (size_t i = 0; i < n; i++) dst[i] = kern_canonical(act(VTRN_ACT_PRELU, a[i] * scale + bias, slope));
}

void vtrn_kern_ref_act(struct vtrn_kern *kern)
{
#define SET(NAME) kern->act[VTRN_ACT_##NAME] = act_##NAME##_ref;
    KERN_EACH_ACT(SET)
    kern->prelu = prelu_ref;
}
