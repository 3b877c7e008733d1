/* The scalar engine's functions in the words of a vector level: what ref/act.c defines, the same operations on every lane.
 *
 * The table functions are the hot ones. Blocks of WAYS vectors go through the polynomials side by side, because one chain
 * alone would wait for its own results; one comparison of the largest |x| tells whether a block leaves the table. Lanes
 * that do (NaNs among them) are noted down, and computed in double, densely, when enough have come together: few lanes
 * then cost little wherever they are. dst may be a, so a note holds x, and results are placed after the block's.
 *
 * Included after the level's words. Knows rows, nothing else. */
#include "kern/act_tables.h"
#include "kern/wide.inc.c"

#define EACH_WAY(w) for (int w = 0; w < WAYS; w++)

KERN_INLINE vf inner(const float *a, vf scale, vf bias, int lanes) { return v_add(v_mul(v_load(a, lanes), scale), bias); }
/* max(x, 0) by the bits: one operation that any port takes. -0 becomes +0. Not for NaN. */
KERN_INLINE vf v_positive(vf x) { return v_of_bits(i_max(v_bits(x), i_set1(0))); }

/* ---- in double ---- */
KERN_INLINE vd d_act(const enum vtrn_act func, vd x)
{
    switch (func) {
    case VTRN_ACT_SIGMOID: return d_sigmoid(x);
    case VTRN_ACT_GELU: return d_gelu(x);
    case VTRN_ACT_GELU_DX: return d_gelu_dx(x);
    case VTRN_ACT_GELU_APPRX_TANH: return d_gelu_tanh(x);
    case VTRN_ACT_GELU_APPRX_SIGMOID: return d_gate(x, d_mul(d_set1(WIDE_GELU_SIGMOID), x));
    case VTRN_ACT_GELU_APPRX_SIGMOID_DX: return d_silu_dx(d_mul(d_set1(WIDE_GELU_SIGMOID), x));
    case VTRN_ACT_SILU: return d_gate(x, x);
    case VTRN_ACT_SILU_DX: return d_silu_dx(x);
    case VTRN_ACT_SOFTPLUS: return d_softplus(x);
    case VTRN_ACT_MISH: return d_mish(x);
    case VTRN_ACT_ERF_DX: return d_erf_dx(x);
    case VTRN_ACT_LOG: return d_log(x);
    case VTRN_ACT_SIN: return d_sin(x);
    default: return d_atan(x);
    }
}
KERN_INLINE vf v_act_wide(const enum vtrn_act func, vf x) { return v_canonical(v_of_d(d_act(func, d_of(x)))); }
KERN_INLINE void wide_row(const enum vtrn_act func, float *dst, const float *a, float scale, float bias, size_t n)
{
    const vf s = v_set1(scale), b = v_set1(bias);
    size_t i = 0;
    for (; i + VL <= n; i += VL) v_store(dst + i, v_act_wide(func, inner(a + i, s, b, VL)), VL);
    if (i < n) v_store(dst + i, v_act_wide(func, inner(a + i, s, b, (int)(n - i))), (int)(n - i));
}

/* ---- blocks with lanes beyond the table ---- */
enum { BLOCK = WAYS * VL, PENDING = 8 /* blocks */ };
typedef void beyond_function(float *dst, const float *x, size_t n);
struct pending {
    int count;
    size_t at[PENDING]; /* of the block in the row */
    float x[PENDING][BLOCK];
};
/* Places the right values over what the table gave for lanes beyond `limit`, NaNs among them. Out of line, so that the loop
 * over the table keeps its registers. */
static __attribute__((noinline)) void settle(struct pending *pending, float *dst, size_t n, float limit, beyond_function *beyond)
{
    size_t at[PENDING * BLOCK];
    float x[PENDING * BLOCK], y[PENDING * BLOCK];
    size_t count = 0;

    x[0] = 0; /* there may be no such lane */
    for (int k = 0; k < pending->count; k++) {
        for (int lane = 0; lane < BLOCK; lane += VL) {
            const float *from = pending->x[k] + lane;
            unsigned left = ~m_bits(v_le(v_abs(v_load(from, VL)), v_set1(limit))) & ((1u << VL) - 1);
            for (; left != 0; left &= left - 1) {
                at[count] = pending->at[k] + (size_t)lane + (size_t)__builtin_ctz(left);
                x[count] = from[__builtin_ctz(left)];
                count += at[count] < n;
            }
        }
    }
    beyond(y, x, count);
    for (size_t i = 0; i < count; i++) dst[at[i]] = y[i];
    pending->count = 0;
}

/* ---- tables ---- */
enum table_kind { TABLE_SIGMOID, TABLE_GATE, TABLE_SOFTPLUS, TABLE_ODD };
/* What the compiler knows of a function's table; the numbers themselves are in act_tables.c. */
struct table_form {
    enum table_kind kind;
    int degree;
    bool even_width; /* the width is a power of two: pieces are found by adding alone */
    bool rest_slope;
};
struct table_words {
    v_table16 term[ACT_MAX_DEGREE + 1];
    vf width, inverse, round, limit, rest_slope;
};
KERN_INLINE void table_words(const struct table_form f, const struct act_table *t, struct table_words *out)
{
    for (int k = 0; k <= f.degree; k++) out->term[k] = v_table16_of(t->term[k]);
    out->width = v_set1(t->width);
    out->inverse = v_set1(t->inverse);
    out->limit = v_set1(t->limit);
    out->round = v_set1(f.even_width ? ACT_ROUND * t->width : ACT_ROUND);
    out->rest_slope = v_set1(t->rest_slope);
}
KERN_INLINE vf table_finish(const struct table_form f, vf x, vf y)
{
    switch (f.kind) {
    case TABLE_SIGMOID: return v_sel(v_lt(x, v_set1(0)), y, v_sub(v_set1(1), y));
    case TABLE_GATE: return v_sub(v_positive(x), y);
    case TABLE_SOFTPLUS: return v_add(v_positive(x), y);
    default: return v_canonical(v_with_sign(y, x)); /* these have no tails: a NaN comes this way */
    }
}
/* x[w] becomes the function's value; correct where |x[w]| is within the limit, or everywhere for TABLE_ODD. */
KERN_INLINE void table_block(const struct table_form f, const struct table_words *t, vf x[], const int ways)
{
    vf a[WAYS], u[WAYS], y[WAYS];
    vi piece[WAYS];
#define EACH(w) for (int w = 0; w < ways; w++)
    EACH(w) a[w] = v_abs(x[w]);
    if (f.kind == TABLE_ODD) EACH(w) a[w] = v_min(t->limit, a[w]);
    if (f.even_width) { /* the same numbers as below: every step is exact but for the first rounding, which is the same */
        EACH(w) y[w] = v_add(a[w], t->round);
        EACH(w) u[w] = v_sub(a[w], v_sub(y[w], t->round));
    } else {
        EACH(w) y[w] = v_fma(a[w], t->inverse, t->round);
        EACH(w) u[w] = v_fnma(v_sub(y[w], t->round), t->width, a[w]);
    }
    EACH(w) piece[w] = v_bits(y[w]);
    EACH(w) y[w] = v_pick16(&t->term[f.degree], piece[w]);
    for (int k = f.degree - 1; k > 0; k--) EACH(w) y[w] = v_fma(y[w], u[w], v_pick16(&t->term[k], piece[w]));
    EACH(w)
    {
        vf base = v_pick16(&t->term[0], piece[w]);
        if (f.rest_slope) base = v_fma(u[w], t->rest_slope, base);
        y[w] = v_fma(y[w], u[w], base);
    }
    EACH(w) x[w] = table_finish(f, x[w], y[w]);
#undef EACH
}

/* `plain`: scale 1 and bias 0, the frequent case. The sum would only turn -0 into +0, and the functions that get here with
 * `plain` give +0 for both. Whole blocks from i on, until the row ends or `pending` is full; returns where it stopped. */
KERN_INLINE size_t table_blocks(const struct table_form f, const struct act_table *t, float *dst, const float *a, float scale,
                                float bias, const bool plain, size_t i, size_t n, struct pending *pending)
{
    const vf s = v_set1(scale), b = v_set1(bias);
    struct table_words words;
    int count = 0;

    table_words(f, t, &words);
    for (; i + BLOCK <= n; i += BLOCK) {
        vf x[WAYS];
        EACH_WAY(w) x[w] = plain ? v_load(a + i + w * VL, VL) : inner(a + i + w * VL, s, b, VL);
        if (f.kind != TABLE_ODD) {
            vi largest = v_bits(v_abs(x[0]));
            for (int w = 1; w < WAYS; w++) largest = i_max(largest, v_bits(v_abs(x[w])));
            if (VTRN_UNLIKELY(i_any_gt(largest, v_bits(words.limit)))) {
                if (count == PENDING) break;
                pending->at[count] = i;
                EACH_WAY(w) v_store(pending->x[count] + w * VL, x[w], VL);
                count++;
            }
        }
        table_block(f, &words, x, WAYS);
        EACH_WAY(w) v_store(dst + i + w * VL, x[w], VL);
    }
    pending->count = count;
    return i;
}
/* The row's last elements, less than a block. */
KERN_INLINE void table_end(const struct table_form f, const struct act_table *t, float *dst, const float *a, float scale,
                           float bias, size_t i, size_t n, struct pending *pending)
{
    const vf s = v_set1(scale), b = v_set1(bias);
    struct table_words words;

    table_words(f, t, &words);
    pending->at[0] = i;
    pending->count = f.kind != TABLE_ODD;
    for (size_t lane = 0; i < n; i += VL, lane += VL) {
        int lanes = n - i < VL ? (int)(n - i) : VL;
        vf x[1] = { inner(a + i, s, b, lanes) };
        v_store(pending->x[0] + lane, x[0], VL);
        table_block(f, &words, x, 1);
        v_store(dst + i, x[0], lanes);
    }
}
KERN_INLINE void table_row(const struct table_form f, const struct act_table *t, beyond_function *beyond, float *dst,
                           const float *a, float scale, float bias, const bool plain, size_t n)
{
    struct pending pending;
    size_t i = 0;

    while (i + BLOCK <= n) {
        i = table_blocks(f, t, dst, a, scale, bias, plain, i, n, &pending);
        if (pending.count > 0) settle(&pending, dst, n, t->limit, beyond);
    }
    if (i < n) {
        table_end(f, t, dst, a, scale, bias, i, n, &pending);
        if (pending.count > 0) settle(&pending, dst, n, t->limit, beyond);
    }
}

#define TABLE(NAME, table, KIND, DEGREE, EVEN_WIDTH, REST_SLOPE, PLAIN) \
    static void beyond_##NAME(float *dst, const float *x, size_t n) { wide_row(VTRN_ACT_##NAME, dst, x, 1, 0, n); } \
    static void act_##NAME(float *dst, const float *a, float scale, float bias, size_t n) \
    { \
        const struct table_form form = { KIND, DEGREE, EVEN_WIDTH, REST_SLOPE }; \
        if ((PLAIN) && scale == 1 && bias == 0) table_row(form, &vtrn_act_table_##table, beyond_##NAME, dst, a, 1, 0, true, n); \
        else table_row(form, &vtrn_act_table_##table, beyond_##NAME, dst, a, scale, bias, false, n); \
    }
TABLE(SIGMOID, sigmoid, TABLE_SIGMOID, 6, false, false, true)
TABLE(GELU, gelu, TABLE_GATE, 5, true, false, true)
TABLE(GELU_APPRX_TANH, gelu_tanh, TABLE_GATE, 5, true, false, true)
TABLE(GELU_APPRX_SIGMOID, gelu_sigmoid, TABLE_GATE, 6, false, false, true)
TABLE(SILU, silu, TABLE_GATE, 5, true, false, true)
TABLE(SOFTPLUS, softplus, TABLE_SOFTPLUS, 6, false, false, true)
TABLE(TANH, tanh, TABLE_ODD, 7, false, false, false)
TABLE(ERF, erf, TABLE_ODD, 6, false, true, false)

/* ---- exp ---- */
struct exp_words {
    v_table16 power;
    vf per_step, round, step_high, step_low, c2, c3;
};
/* `tiny`: results may be denormal, 0, inf or NaN. Otherwise 2^k goes into the power's exponent before the last fma, which
 * gives the same bits as multiplying after it. */
KERN_INLINE vf v_exp(const struct exp_words *w, vf x, const bool tiny)
{
    if (tiny) x = v_max(v_set1(-104), v_min(v_set1(89), x));
    vf moved = v_fma(x, w->per_step, w->round), n = v_sub(moved, w->round);
    vf r = v_fnma(n, w->step_low, v_fnma(n, w->step_high, x));
    vf p = v_fma(v_mul(r, r), v_fma(r, w->c3, w->c2), r);
    vf power = v_pick16(&w->power, v_bits(moved));
    if (!tiny) {
        power = v_of_bits(i_add(v_bits(power), i_sll(i_and(v_bits(moved), i_set1(~UINT32_C(15))), 23 - 4)));
        return v_fma(power, p, power);
    }
    vi k = i_sra(i_sub(v_bits(moved), v_bits(w->round)), 4), half = i_sra(k, 1), rest = i_sub(k, half);
    vf first = v_of_bits(i_sll(i_add(half, i_set1(127)), 23)), second = v_of_bits(i_sll(i_add(rest, i_set1(127)), 23));
    return v_canonical(v_mul(v_mul(v_fma(power, p, power), first), second));
}
static void act_EXP(float *dst, const float *a, float scale, float bias, size_t n)
{
    static const float power[ACT_PIECES] = { ACT_EXP_TABLE };
    const struct exp_words words = {
        v_table16_of(power),      v_set1(ACT_EXP_PER_STEP), v_set1(ACT_ROUND),  v_set1(ACT_EXP_STEP_HIGH),
        v_set1(ACT_EXP_STEP_LOW), v_set1(ACT_EXP_C2),       v_set1(ACT_EXP_C3),
    };
    const vf s = v_set1(scale), b = v_set1(bias), limit = v_set1(87);
    size_t i = 0;

    for (; i + WAYS * VL <= n; i += WAYS * VL) {
        vf x[WAYS];
        EACH_WAY(w) x[w] = inner(a + i + w * VL, s, b, VL);
        vi largest = v_bits(v_abs(x[0]));
        for (int w = 1; w < WAYS; w++) largest = i_max(largest, v_bits(v_abs(x[w])));
        if (VTRN_UNLIKELY(i_any_gt(largest, v_bits(limit)))) {
            EACH_WAY(w) x[w] = v_exp(&words, x[w], true);
        } else {
            EACH_WAY(w) x[w] = v_exp(&words, x[w], false);
        }
        EACH_WAY(w) v_store(dst + i + w * VL, x[w], VL);
    }
    for (; i < n; i += VL) {
        int lanes = n - i < VL ? (int)(n - i) : VL;
        v_store(dst + i, v_exp(&words, inner(a + i, s, b, lanes), true), lanes);
    }
}

/* ---- one or two operations ---- */
KERN_INLINE vf v_act_short(const enum vtrn_act func, vf x, vf slope)
{
    const vf zero = v_set1(0), one = v_set1(1);
    switch (func) {
    case VTRN_ACT_SQUARE: return v_mul(x, x);
    case VTRN_ACT_RELU: return v_sel(v_le(x, zero), zero, x);
    case VTRN_ACT_SQRT: return v_sqrt(x);
    case VTRN_ACT_RSQRT: return v_div(one, v_sqrt(x));
    case VTRN_ACT_RECIPROCAL: return v_div(one, x);
    case VTRN_ACT_SIGN: return v_sel(v_eq(x, zero), zero, v_sel(v_eq(x, x), v_with_sign(one, x), x));
    case VTRN_ACT_ABS: return v_abs(x);
    case VTRN_ACT_PRELU: return v_sel(v_lt(x, zero), v_mul(slope, x), x);
    default: return x; /* COPY */
    }
}
KERN_INLINE void short_row(const enum vtrn_act func, float *dst, const float *a, float scale, float bias, float slope, size_t n)
{
    const vf s = v_set1(scale), b = v_set1(bias), c = v_set1(slope);
    size_t i = 0;
    for (; i + VL <= n; i += VL) v_store(dst + i, v_canonical(v_act_short(func, inner(a + i, s, b, VL), c)), VL);
    if (i < n) {
        int lanes = (int)(n - i);
        v_store(dst + i, v_canonical(v_act_short(func, inner(a + i, s, b, lanes), c)), lanes);
    }
}
static void prelu(float *dst, const float *a, float scale, float bias, float slope, size_t n)
{
    short_row(VTRN_ACT_PRELU, dst, a, scale, bias, slope, n);
}

#define EACH_SHORT(X) X(COPY) X(SQUARE) X(RELU) X(SQRT) X(RSQRT) X(RECIPROCAL) X(SIGN) X(ABS) X(PRELU)
#define EACH_WIDE(X)  X(GELU_DX) X(GELU_APPRX_SIGMOID_DX) X(SILU_DX) X(MISH) X(ERF_DX) X(LOG) X(SIN) X(ARCTAN)
#define SHORT(NAME) \
    static void act_##NAME(float *dst, const float *a, float scale, float bias, size_t n) \
    { \
        short_row(VTRN_ACT_##NAME, dst, a, scale, bias, 0, n); \
    }
#define WIDE(NAME) \
    static void act_##NAME(float *dst, const float *a, float scale, float bias, size_t n) \
    { \
        wide_row(VTRN_ACT_##NAME, dst, a, scale, bias, n); \
    }
EACH_SHORT(SHORT)
EACH_WIDE(WIDE)

static void set_act(struct vtrn_kern *kern)
{
#define SET(NAME) kern->act[VTRN_ACT_##NAME] = act_##NAME;
    KERN_EACH_ACT(SET)
#undef SET
    kern->prelu = prelu;
}
