/* The activation functions of kern against the exact functions in long double: every function within 2 ulp of fp32 on a
 * sweep of all magnitudes and on dense samples around the places where its evaluation changes. POWER likewise. The vector
 * levels equal ref bit for bit (test_kern.c), so only ref is measured. Prints the largest error of each function.
 *
 * VTRN_TEST_STRIDE=<n> sets the step of the sweep over bit patterns: 1 is exhaustive (minutes a function). */
#include "kern_rows.h"

static const long double pi = 3.141592653589793238462643383279502884L, sqrt2 = 1.414213562373095048801688724209698079L;
#define SQRT_2_PI  0.797884560802865355879892119868763737L
#define GELU_CUBIC 0.044715L

static long double sigmoid(long double x) { return 1 / (1 + expl(-x)); }
static long double normal_density(long double x) { return expl(-x * x / 2) / sqrtl(2 * pi); }
static long double normal_below(long double x) { return erfcl(-x / sqrt2) / 2; }
static long double silu_dx(long double x)
{
    long double s = sigmoid(x);
    return s * (1 + x * sigmoid(-x));
}
/* At infinities the products are 0 * inf; the limit is 0 on the left, inf on the right. */
static long double gated(long double x, long double gate) { return isinf(x) && x < 0 ? -0.0L : x * gate; }
static long double sine(long double x)
{
    if (fabsl(x) <= pi) return sinl(x);
    long double d = x - copysignl(pi, x);
    return d * (d * d / 6 - 1);
}

static long double exact(enum vtrn_act func, long double x)
{
    switch (func) {
    case VTRN_ACT_COPY: return x;
    case VTRN_ACT_SQUARE: return x * x;
    case VTRN_ACT_SIGMOID: return sigmoid(x);
    case VTRN_ACT_PRELU: return x < 0 ? 0 * x : x; /* slope 0 */
    case VTRN_ACT_RELU: return isnan(x) ? x : fmaxl(x, 0);
    case VTRN_ACT_GELU: return gated(x, normal_below(x));
    case VTRN_ACT_GELU_DX: return normal_below(x) + (isinf(x) ? 0 : x * normal_density(x));
    case VTRN_ACT_GELU_APPRX_TANH: return gated(x, sigmoid(2 * SQRT_2_PI * (x + GELU_CUBIC * x * x * x)));
    case VTRN_ACT_GELU_APPRX_SIGMOID: return gated(x, sigmoid(1.702L * x));
    case VTRN_ACT_GELU_APPRX_SIGMOID_DX: return isinf(x) ? x > 0 : silu_dx(1.702L * x);
    case VTRN_ACT_SILU: return gated(x, sigmoid(x));
    case VTRN_ACT_SILU_DX: return isinf(x) ? x > 0 : silu_dx(x);
    case VTRN_ACT_TANH: return tanhl(x);
    case VTRN_ACT_SOFTPLUS: return x > 0 ? x + log1pl(expl(-x)) : log1pl(expl(x));
    case VTRN_ACT_MISH: return gated(x, tanhl(log1pl(expl(x))));
    case VTRN_ACT_ERF: return erfl(x);
    case VTRN_ACT_ERF_DX: return 2 / sqrtl(pi) * expl(-x * x);
    case VTRN_ACT_EXP: return expl(x);
    case VTRN_ACT_LOG: return logl(x);
    case VTRN_ACT_SIN: return sine(x);
    case VTRN_ACT_ARCTAN: return atanl(x);
    case VTRN_ACT_SQRT: return sqrtl(x);
    case VTRN_ACT_RSQRT: return 1 / sqrtl(x);
    case VTRN_ACT_RECIPROCAL: return 1 / x;
    case VTRN_ACT_SIGN: return isnan(x) ? x : (x > 0) - (x < 0);
    case VTRN_ACT_ABS: return fabsl(x);
    default: fail_msg("no exact form of function %d", func); return 0;
    }
}

/* Error of `got` in units of fp32's last place at the exact value. NaN and values that round to inf must match. */
static double error_ulp(float got, long double want)
{
    if (isnan(want)) return isnan(got) ? 0 : INFINITY;
    if (fabsl(want) >= 0x1.ffffffp127L) return got == copysignl(INFINITY, want) ? 0 : INFINITY;
    if (isnan(got)) return INFINITY;
    if (isinf(got)) got = copysignf(0x1p127f, got), want = want / 2 - copysignl(0x1p126L, want), want += got;
    int exponent = want == 0 ? -200 : ilogbl(want);
    return (double)(fabsl(got - want) / ldexpl(1, (exponent < -126 ? -126 : exponent) - 23));
}

struct worst {
    double error;
    float x;
};
static void measure(enum vtrn_act func, float x, struct worst *worst)
{
    double error = error_ulp(vtrn_act_f32(func, x), exact(func, x));
    if (error > worst->error) *worst = (struct worst){ error, x };
}
/* `count` neighbours on both sides of x and of -x. */
static void measure_around(enum vtrn_act func, float x, int count, struct worst *worst)
{
    for (int sign = 0; sign < 2; sign++, x = -x) {
        float up = x, down = x;
        for (int i = 0; i < count; i++) {
            measure(func, up, worst);
            measure(func, down, worst);
            up = nextafterf(up, INFINITY);
            down = nextafterf(down, -INFINITY);
        }
    }
}

static void test_function(enum vtrn_act func)
{
    const char *text = getenv("VTRN_TEST_STRIDE");
    uint64_t stride = text ? strtoull(text, NULL, 0) : 6007;
    struct worst worst = { 0, 0 };

    for (uint64_t bits = 0; bits < UINT64_C(0x100000000); bits += stride) measure(func, rows_float((uint32_t)bits), &worst);
    for (size_t i = 0; i < ROWS_PLACES; i++) measure_around(func, rows_places[i], 500, &worst);
    for (int i = -40000; i <= 40000; i++) measure(func, (float)i * 0x1.03p-12f, &worst); /* +-10, evenly */
    for (int i = 0; i < 260; i++) measure_around(func, (float)i / 16, 20, &worst);       /* edges and middles of the pieces */
    print_message("%-24s %.3f ulp at %.9g\n", vtrn_acts[func].nki_name ? vtrn_acts[func].nki_name : "?", worst.error, worst.x);
    if (!(worst.error <= 2))
        fail_msg("%s(%a): %a is %g ulp from %La", vtrn_acts[func].nki_name, worst.x, vtrn_act_f32(func, worst.x), worst.error,
                 exact(func, worst.x));
}

static void test_accuracy(void **state)
{
    (void)state;
    const char *only = getenv("VTRN_TEST_ACT");
    for (int func = VTRN_ACT_NONE + 1; func < VTRN_ACT_COUNT; func++)
        if (vtrn_acts[func].nki_name && (!only || strcmp(only, vtrn_acts[func].nki_name) == 0)) test_function((enum vtrn_act)func);
}

static void test_special(void **state)
{
    (void)state;
    /* The value that the documentation of nki.isa gives for the missing range reduction of sine. */
    assert_true(fabsf(vtrn_act_f32(VTRN_ACT_SIN, 9) - 27.65f) < 0.005f);
    assert_int_equal(rows_bits(vtrn_act_f32(VTRN_ACT_TANH, -0.0f)), 0x80000000);
    assert_int_equal(rows_bits(vtrn_act_f32(VTRN_ACT_EXP, -INFINITY)), 0);
    assert_int_equal(rows_bits(vtrn_act_f32(VTRN_ACT_EXP, 0)), 0x3f800000);
    assert_int_equal(rows_bits(vtrn_act_f32(VTRN_ACT_SIGN, -0.0f)), 0);
    assert_true(vtrn_act_f32(VTRN_ACT_TANH, INFINITY) == 1 && vtrn_act_f32(VTRN_ACT_ERF, -INFINITY) == -1);
    assert_true(vtrn_act_f32(VTRN_ACT_SIGMOID, INFINITY) == 1 && vtrn_act_f32(VTRN_ACT_SIGMOID, -INFINITY) == 0);
    for (int func = VTRN_ACT_NONE + 1; func < VTRN_ACT_COUNT; func++) {
        if (!vtrn_acts[func].nki_name) continue;
        assert_int_equal(rows_bits(vtrn_act_f32((enum vtrn_act)func, rows_float(0xff812345))), 0x7fc00000);
    }
    float x = -2, y;
    vtrn_kern_for(VTRN_CPU_REF)->prelu(&y, &x, 1, 0.5f, 0.25f, 1);
    assert_true(y == -0.375f);
}

static void test_power(void **state)
{
    (void)state;
    struct rows_rng rng = { rows_seed() };
    double worst = 0;
    for (int i = 0; i < 300000; i++) {
        float x = i % 3 ? rows_value(&rng) : fabsf(rows_value(&rng)), y = i % 5 ? rows_value(&rng) : rows_value(&rng) / 64;
        float got = vtrn_alu_f32(VTRN_ALU_POWER, x, y);
        double error = error_ulp(got, powl(x, y));
        if (error > worst) worst = error;
        if (!(error <= 1))
            fail_msg("%a ** %a: %a is %g ulp from %La (seed %llu)", x, y, got, error, powl(x, y), (unsigned long long)rows_seed());
    }
    print_message("%-24s %.3f ulp\n", "power", worst);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_accuracy),
        cmocka_unit_test(test_special),
        cmocka_unit_test(test_power),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
