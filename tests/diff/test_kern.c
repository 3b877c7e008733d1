/* Every row slot of kern at every CPU level of this machine against ref, bit for bit: random and extreme values, every
 * length from 0 to 70 and some long ones, any alignment, in place. Destinations lie between guard bytes, sources end at
 * their last element's byte. Conversions are also compared on all codes and on all roundings. A failure prints the seed;
 * VTRN_TEST_SEED=<n> runs other cases. */
#include <sys/mman.h>

#include "kern_rows.h"

enum { MAX_N = 1100, GUARD = 64, BYTES = GUARD + 8 + MAX_N * 4 + GUARD };

/* One slot, as a call of two sources and a destination. */
struct call {
    const char *kind, *name;
    void (*run)(const struct vtrn_kern *kern, const struct call *call, void *dst, const void *a, const void *b, size_t n);
    int index, variant;
    int dst_bytes, a_bytes, b_bytes; /* per element; b 0: none */
    bool floats;                     /* sources are fp32 values, else any bytes */
    bool in_place;                   /* dst may be a */
};

static float scalar_of(const void *b)
{
    float s;
    memcpy(&s, b, sizeof s);
    return s;
}
static void run_load(const struct vtrn_kern *k, const struct call *c, void *dst, const void *a, const void *b, size_t n)
{
    (void)b;
    k->load[c->index](dst, a, n);
}
static void run_store(const struct vtrn_kern *k, const struct call *c, void *dst, const void *a, const void *b, size_t n)
{
    (void)b;
    k->store[c->index](dst, a, n);
}
static void run_store_sr(const struct vtrn_kern *k, const struct call *c, void *dst, const void *a, const void *b, size_t n)
{
    k->store_sr[c->index](dst, a, b, n);
}
static void run_tt(const struct vtrn_kern *k, const struct call *c, void *dst, const void *a, const void *b, size_t n)
{
    k->tt[c->index](dst, a, b, n);
}
static void run_ts(const struct vtrn_kern *k, const struct call *c, void *dst, const void *a, const void *b, size_t n)
{
    k->ts[c->index](dst, a, n ? scalar_of(b) : 0, c->variant, n);
}
static void run_mul_add(const struct vtrn_kern *k, const struct call *c, void *dst, const void *a, const void *b, size_t n)
{
    (void)c;
    k->mul_add(dst, a, n ? scalar_of(b) : 0, n > 1 ? scalar_of((const char *)b + 4) : 1, n);
}
static void run_tt_i32(const struct vtrn_kern *k, const struct call *c, void *dst, const void *a, const void *b, size_t n)
{
    k->tt_i32[c->index](dst, a, b, n);
}
static void run_tt_u32(const struct vtrn_kern *k, const struct call *c, void *dst, const void *a, const void *b, size_t n)
{
    k->tt_u32[c->index](dst, a, b, n);
}
static void run_tt_bits(const struct vtrn_kern *k, const struct call *c, void *dst, const void *a, const void *b, size_t n)
{
    k->tt_bits[c->index][c->a_bytes / 2](dst, a, b, n);
}
/* variants: bit 0 reverse; above, what the scalar is */
static void run_ts_bits(const struct vtrn_kern *k, const struct call *c, void *dst, const void *a, const void *b, size_t n)
{
    static const uint32_t scalar[] = { 0, 1, 3, 7, 8, 15, 16, 31, 32, 33, 0xfffffff0, 0x12345678 };
    (void)b;
    k->ts_bits[c->index][c->a_bytes / 2](dst, a, scalar[c->variant / 2 % 12], c->variant & 1, n);
}
static void run_act(const struct vtrn_kern *k, const struct call *c, void *dst, const void *a, const void *b, size_t n)
{
    static const float scale[] = { 1, 1, 1, 0.75f, -3, 0x1p20f }, bias[] = { 0, -0.0f, 0.5f, -0.125f, 0, 0 };
    (void)b;
    k->act[c->index](dst, a, scale[c->variant], bias[c->variant], n);
}
static void run_prelu(const struct vtrn_kern *k, const struct call *c, void *dst, const void *a, const void *b, size_t n)
{
    k->prelu(dst, a, 1.5f, c->variant ? 0 : -0.0f, n ? scalar_of(b) : 1, n);
}

/* ---- running a call ---- */
struct buffers {
    uint8_t *source[2]; /* end at a page that may not be touched */
    _Alignas(4) uint8_t before[BYTES], expected[BYTES], got[BYTES];
};
static void buffers_init(struct buffers *b)
{
    size_t size = (BYTES + 4095) / 4096 * 4096;
    for (int i = 0; i < 2; i++) {
        uint8_t *map = mmap(NULL, size + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        assert_true(map != MAP_FAILED);
        assert_int_equal(mprotect(map + size, 4096, PROT_NONE), 0);
        b->source[i] = map + size;
    }
}
static void fill(struct rows_rng *rng, uint8_t *at, size_t n, size_t bytes, bool floats)
{
    if (floats) {
        for (size_t i = 0; i < n; i++) {
            float x = rows_value(rng);
            memcpy(at + 4 * i, &x, 4);
        }
    } else {
        for (size_t i = 0; i < n * bytes; i++) at[i] = (uint8_t)rows_u32(rng);
    }
}
static void differ(const struct call *c, const struct buffers *b, enum vtrn_cpu_level level, size_t n, size_t start, bool in_place,
                   const uint8_t *a, const uint8_t *second)
{
    size_t at = 0;
    while (b->expected[at] == b->got[at]) at++;
    size_t i = at >= start ? (at - start) / (size_t)c->dst_bytes : 0;
    uint32_t want = 0, have = 0, x = 0, y = 0;
    if (at < start || i >= n)
        fail_msg("%s %s (%d) %s: wrote outside, byte %zd of n %zu", c->kind, c->name, c->variant, vtrn_cpu_name(level),
                 (ptrdiff_t)at - (ptrdiff_t)start, n);
    memcpy(&want, b->expected + start + i * (size_t)c->dst_bytes, (size_t)c->dst_bytes);
    memcpy(&have, b->got + start + i * (size_t)c->dst_bytes, (size_t)c->dst_bytes);
    if (!in_place) memcpy(&x, a + i * (size_t)c->a_bytes, (size_t)c->a_bytes);
    if (c->b_bytes) memcpy(&y, second + i * (size_t)c->b_bytes, (size_t)c->b_bytes);
    fail_msg("%s %s (%d) %s: element %zu of %zu is %08x, ref %08x, of %08x %08x%s (seed %llu)", c->kind, c->name, c->variant,
             vtrn_cpu_name(level), i, n, have, want, x, y, in_place ? ", in place" : "", (unsigned long long)rows_seed());
}
static void check(const struct call *c, struct buffers *b, struct rows_rng *rng, size_t n, bool in_place)
{
    /* typed destinations are aligned to their elements, others to nothing; in place the source is fp32 at the same address */
    const bool typed =
        in_place || (c->run != run_store && c->run != run_store_sr && c->run != run_tt_bits && c->run != run_ts_bits);
    const size_t a_bytes = n * (size_t)c->a_bytes, start = GUARD + rows_below(rng, 8) / (typed ? 4 : 1) * (typed ? 4 : 1);
    uint8_t *a = b->source[0] - a_bytes, *second = b->source[1] - n * (size_t)c->b_bytes;

    fill(rng, a, n, (size_t)c->a_bytes, c->floats);
    if (c->b_bytes) fill(rng, second, n, (size_t)c->b_bytes, c->floats && c->kind[0] != 'r'); /* random words are any bits */
    for (size_t i = 0; i < BYTES; i++) b->before[i] = (uint8_t)(i * 37 + 11);
    if (in_place) memcpy(b->before + start, a, a_bytes);
    memcpy(b->expected, b->before, BYTES);
    c->run(vtrn_kern_for(VTRN_CPU_REF), c, b->expected + start, in_place ? b->expected + start : a, second, n);
    for (int level = VTRN_CPU_REF + 1; level < VTRN_CPU_LEVELS; level++) {
        if (!vtrn_cpu_has((enum vtrn_cpu_level)level)) continue;
        memcpy(b->got, b->before, BYTES);
        c->run(vtrn_kern_for((enum vtrn_cpu_level)level), c, b->got + start, in_place ? b->got + start : a, second, n);
        if (memcmp(b->expected, b->got, BYTES) != 0) differ(c, b, (enum vtrn_cpu_level)level, n, start, in_place, a, second);
    }
}
static void check_lengths(const struct call *c, struct buffers *b)
{
    struct rows_rng rng = { rows_seed() };
    for (size_t n = 0; n <= 70; n++) {
        check(c, b, &rng, n, false);
        if (c->in_place) check(c, b, &rng, n, true);
    }
    for (int i = 0; i < 6; i++) check(c, b, &rng, 100 + rows_below(&rng, MAX_N - 100), c->in_place && i & 1);
}

static void test_values(void **state)
{
    (void)state;
    static struct buffers b;
    const struct vtrn_kern *ref = vtrn_kern_for(VTRN_CPU_REF);
    buffers_init(&b);
    for (int dt = VTRN_DT_NONE + 1; dt < VTRN_DT_COUNT; dt++) {
        int size = vtrn_dtypes[dt].size_bytes;
        const char *name = vtrn_dtypes[dt].text;
        if (name == NULL || vtrn_dtypes[dt].cls == VTRN_CLASS_PACKED) {
            assert_null(ref->load[dt]);
            continue;
        }
        check_lengths(&(struct call){ "load", name, run_load, dt, 0, 4, size, 0, false, size == 4 }, &b);
        check_lengths(&(struct call){ "store", name, run_store, dt, 0, size, 4, 0, true, true }, &b);
        if (ref->store_sr[dt])
            check_lengths(&(struct call){ "random store", name, run_store_sr, dt, 0, size, 4, 4, true, true }, &b);
    }
}
static void test_operators(void **state)
{
    (void)state;
    static struct buffers b;
    const struct vtrn_kern *ref = vtrn_kern_for(VTRN_CPU_REF);
    buffers_init(&b);
    for (int op = VTRN_ALU_NONE + 1; op < VTRN_ALU_COUNT; op++) {
        const char *name = vtrn_alus[op].nki_name;
        bool arith = vtrn_alus[op].cls == VTRN_ALU_ARITH && op != VTRN_ALU_AVERAGE, bits = vtrn_alus[op].cls == VTRN_ALU_BITS;
        assert_int_equal(ref->tt[op] != NULL, arith);
        assert_int_equal(ref->ts[op] != NULL, arith);
        assert_int_equal(ref->tt_bits[op][0] != NULL, bits);
        if (arith) {
            check_lengths(&(struct call){ "tt", name, run_tt, op, 0, 4, 4, 4, true, true }, &b);
            for (int reverse = 0; reverse < 2; reverse++)
                check_lengths(&(struct call){ "ts", name, run_ts, op, reverse, 4, 4, 4, true, true }, &b);
        }
        if (ref->tt_i32[op]) {
            check_lengths(&(struct call){ "tt_i32", name, run_tt_i32, op, 0, 4, 4, 4, false, true }, &b);
            check_lengths(&(struct call){ "tt_i32 small", name, run_tt_i32, op, 0, 4, 4, 4, true, true }, &b);
            check_lengths(&(struct call){ "tt_u32", name, run_tt_u32, op, 0, 4, 4, 4, false, true }, &b);
        }
        for (int size = 1; bits && size <= 4; size *= 2) {
            check_lengths(&(struct call){ "tt_bits", name, run_tt_bits, op, 0, size, size, size, false, true }, &b);
            for (int variant = 0; variant < 24; variant++)
                check_lengths(&(struct call){ "ts_bits", name, run_ts_bits, op, variant, size, size, 0, false, true }, &b);
        }
    }
    check_lengths(&(struct call){ "mul_add", "", run_mul_add, 0, 0, 4, 4, 4, true, true }, &b);
}
/* Shift counts are small for once. */
static void test_shifts(void **state)
{
    (void)state;
    uint8_t a[64], b[64], want[64], got[64];
    for (int op = VTRN_ALU_LEFT_SHIFT; op <= VTRN_ALU_RIGHT_SHIFT; op++) {
        for (int size = 0; size < 3; size++) {
            for (int i = 0; i < 64; i++) {
                a[i] = (uint8_t)(i * 151 + 77);
                b[i] = i % (1 << size) == 0 ? (uint8_t)(i % 41) : 0;
            }
            vtrn_kern_for(VTRN_CPU_REF)->tt_bits[op][size](want, a, b, (size_t)64 >> size);
            for (int level = 1; level < VTRN_CPU_LEVELS; level++) {
                if (!vtrn_cpu_has((enum vtrn_cpu_level)level)) continue;
                vtrn_kern_for((enum vtrn_cpu_level)level)->tt_bits[op][size](got, a, b, (size_t)64 >> size);
                assert_memory_equal(want, got, sizeof got);
            }
        }
    }
}
static void test_functions(void **state)
{
    (void)state;
    static struct buffers b;
    buffers_init(&b);
    for (int func = VTRN_ACT_NONE + 1; func < VTRN_ACT_COUNT; func++) {
        assert_non_null(vtrn_kern_for(VTRN_CPU_REF)->act[func]);
        for (int variant = 0; variant < 6; variant++)
            check_lengths(&(struct call){ "act", vtrn_acts[func].nki_name, run_act, func, variant, 4, 4, 0, true, true }, &b);
    }
    for (int variant = 0; variant < 2; variant++)
        check_lengths(&(struct call){ "prelu", "", run_prelu, 0, variant, 4, 4, 4, true, true }, &b);
}

/* Every function over all magnitudes and around the places where its evaluation changes. */
static void test_functions_swept(void **state)
{
    (void)state;
    enum { AROUND = 200, SWEEP = 120000, N = ROWS_PLACES * 4 * AROUND + SWEEP };
    float *x = malloc(N * sizeof *x), *want = malloc(N * sizeof *x), *got = malloc(N * sizeof *x);
    size_t n = 0;
    assert_true(x && want && got);
    for (int i = 0; i < ROWS_PLACES; i++) {
        for (int k = -AROUND; k < AROUND; k++) {
            x[n++] = rows_float(rows_bits(rows_places[i]) + (uint32_t)k);
            x[n++] = rows_float((rows_bits(rows_places[i]) + (uint32_t)k) ^ UINT32_C(0x80000000));
        }
    }
    for (uint32_t i = 0; i < SWEEP; i++) x[n++] = rows_float(i * 35791u);
    for (int func = VTRN_ACT_NONE + 1; func < VTRN_ACT_COUNT; func++) {
        for (int level = 0; level < VTRN_CPU_LEVELS; level++) {
            if (!vtrn_cpu_has((enum vtrn_cpu_level)level)) continue;
            vtrn_kern_for((enum vtrn_cpu_level)level)->act[func](level ? got : want, x, 1, -0.0f, n);
            if (level == 0 || memcmp(want, got, n * sizeof *x) == 0) continue;
            size_t at = 0;
            while (rows_bits(want[at]) == rows_bits(got[at])) at++;
            fail_msg("%s %s of %a: %a, ref %a", vtrn_acts[func].nki_name, vtrn_cpu_name((enum vtrn_cpu_level)level), x[at], got[at],
                     want[at]);
        }
    }
    free(x);
    free(want);
    free(got);
}

/* ---- all codes, all roundings ---- */
static void compare_all(const char *what, int dtype, const float *src, size_t n, const uint32_t *random)
{
    size_t bytes = n * vtrn_dtypes[dtype].size_bytes;
    uint8_t *want = malloc(bytes), *got = malloc(bytes);
    assert_true(want && got);
    for (int level = 0; level < VTRN_CPU_LEVELS; level++) {
        if (!vtrn_cpu_has((enum vtrn_cpu_level)level)) continue;
        const struct vtrn_kern *k = vtrn_kern_for((enum vtrn_cpu_level)level);
        if (random) k->store_sr[dtype](level ? got : want, src, random, n);
        else k->store[dtype](level ? got : want, src, n);
        if (level == 0 || memcmp(want, got, bytes) == 0) continue;
        size_t i = 0;
        while (want[i] == got[i]) i++;
        i /= vtrn_dtypes[dtype].size_bytes;
        fail_msg("%s %s %s of %08x", what, vtrn_dtypes[dtype].text, vtrn_cpu_name((enum vtrn_cpu_level)level), rows_bits(src[i]));
    }
    free(want);
    free(got);
}
static void test_all_codes(void **state)
{
    (void)state;
    static uint16_t code[65536];
    static float want[65536], got[65536];
    for (int i = 0; i < 65536; i++) code[i] = (uint16_t)i;
    for (int dt = VTRN_DT_NONE + 1; dt < VTRN_DT_COUNT; dt++) {
        if (vtrn_dtypes[dt].cls == VTRN_CLASS_PACKED || vtrn_dtypes[dt].size_bytes > 2) continue;
        for (int level = 0; level < VTRN_CPU_LEVELS; level++) {
            if (!vtrn_cpu_has((enum vtrn_cpu_level)level)) continue;
            vtrn_kern_for((enum vtrn_cpu_level)level)->load[dt](level ? got : want, code, 65536);
            if (level && memcmp(want, got, sizeof got) != 0)
                fail_msg("load %s %s", vtrn_dtypes[dt].text, vtrn_cpu_name((enum vtrn_cpu_level)level));
        }
    }
}
/* All sign, exponent and upper 10 mantissa bits, with what lies below on, beside and between the ties. */
static void test_all_roundings(void **state)
{
    (void)state;
    static const uint32_t low[6] = { 0, 1, 0xfff, 0x1000, 0x1001, 0x1fff };
    const size_t n = (size_t)6 << 19;
    float *src = malloc(n * 4);
    uint32_t *random = malloc(n * 4);
    struct rows_rng rng = { rows_seed() };
    assert_true(src && random);
    for (size_t i = 0; i < n; i++) {
        uint32_t bits = (uint32_t)(i / 6) << 13 | low[i % 6];
        memcpy(&src[i], &bits, 4);
        random[i] = i % 7 == 0 ? 0 : i % 7 == 1 ? UINT32_MAX : rows_u32(&rng);
    }
    for (int dt = VTRN_DT_NONE + 1; dt < VTRN_DT_COUNT; dt++) {
        if (vtrn_dtypes[dt].cls == VTRN_CLASS_PACKED) continue;
        compare_all("store", dt, src, n, NULL);
        if (vtrn_kern_for(VTRN_CPU_REF)->store_sr[dt]) compare_all("random store", dt, src, n, random);
    }
    free(src);
    free(random);
}
/* Stochastic rounding of ref: how often it rounds up is what the value says. */
static void test_random_rounding(void **state)
{
    (void)state;
    static const float value[] = { 1.001f, 0x1p-9f * 1.3f, 3.1e-5f, 300.7f, -5.77f };
    struct rows_rng rng = { rows_seed() };
    for (int dt = VTRN_DT_NONE + 1; dt < VTRN_DT_COUNT; dt++) {
        if (!vtrn_kern_for(VTRN_CPU_REF)->store_sr[dt]) continue;
        for (size_t v = 0; v < sizeof value / sizeof *value; v++) {
            enum { DRAWS = 20000 };
            double sum = 0, step = 0, first = 0;
            if (dt == VTRN_DT_F8E4M3 && value[v] > 240) continue;
            for (int i = 0; i < DRAWS; i++) {
                uint32_t code = 0, random = rows_u32(&rng);
                vtrn_kern_for(VTRN_CPU_REF)->store_sr[dt](&code, &value[v], &random, 1);
                double rounded = vtrn_to_f32((enum vtrn_dtype)dt, &code);
                if (i == 0) first = rounded;
                if (rounded != first) step = fabs(rounded - first);
                sum += rounded;
            }
            /* a mean of DRAWS draws of two neighbours: within 5 standard deviations of at most step/2 */
            if (fabs(sum / DRAWS - value[v]) > 5 * step / 2 / sqrt(DRAWS) + fabs(value[v]) * 1e-7)
                fail_msg("%s: mean of %g is %g (seed %llu)", vtrn_dtypes[dt].text, value[v], sum / DRAWS,
                         (unsigned long long)rows_seed());
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),        cmocka_unit_test(test_operators),       cmocka_unit_test(test_shifts),
        cmocka_unit_test(test_functions),     cmocka_unit_test(test_functions_swept), cmocka_unit_test(test_all_codes),
        cmocka_unit_test(test_all_roundings), cmocka_unit_test(test_random_rounding),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
