/* Tile products: ref against a plain triple loop, every level of this machine against ref, bit for bit. Random shapes,
 * dtypes, pitches, alignments and values; operands end at a page that may not be read, the destination lies between
 * canaries. The seed of a failing case is printed; VTRN_TEST_SEED=<n> runs other cases. */
#include "mm_cases.h"

/* ---- the plain definition, for small cases: no blocking, one dot product at a time ---- */
static float plain_value(const struct mm_case *c, bool stationary, int step, int column)
{
    const struct mm_side *side = stationary ? &c->s : &c->x;
    int row = c->mx ? step / 4 : step;
    const uint8_t *element = side->data + side->pitch * row + (ptrdiff_t)vtrn_dtypes[side->dtype].size_bytes * column;
    if (c->mx) {
        uint8_t scale = side->scale[(size_t)row * (size_t)side->columns + (size_t)column];
        return vtrn_mx_to_f32(side->dtype, element, step % 4) * vtrn_to_f32(VTRN_DT_F8E8M0, &scale);
    }
    float value = vtrn_to_f32(side->dtype, element);
    if (side->dtype == VTRN_DT_TF32) vtrn_from_f32(VTRN_DT_TF32, value, &value);
    return value;
}
static void run_plain(const struct mm_case *c)
{
    for (int m = 0; m < c->s.columns; m++) {
        for (int n = 0; n < c->x.columns; n++) {
            float chain = 0, old;
            for (int step = 0; step < c->k * (c->mx ? 4 : 1); step++)
                chain = fmaf(plain_value(c, true, step, m), plain_value(c, false, step, n), chain);
            uint8_t *at = c->d.data + c->d.pitch * m + (ptrdiff_t)sizeof(float) * n;
            memcpy(&old, at, sizeof old);
            if (c->acc) chain = old + chain;
            uint32_t bits = float_bits(chain);
            if (isnan(chain)) bits = 0x7fc00000;
            memcpy(at, &bits, sizeof bits);
        }
    }
}

/* Runs `run` on a fresh copy of the destination and compares everything, the bytes between rows included. */
static void expect_same(struct mm_case *c, const struct vtrn_kern *kern, const uint8_t *expected, const char *what)
{
    memcpy(c->d.block, c->d_before, c->d.block_bytes);
    case_run(c, kern);
    if (memcmp(c->d.block, expected, c->d.block_bytes) == 0) return;
    size_t at = 0;
    while (c->d.block[at] == expected[at]) at++;
    fail_msg("%s differs at byte %zu of the destination (of %zu): %s", what, at, c->d.block_bytes, case_text(c));
}
static void check_case(struct mm_case *c, bool with_plain)
{
    uint8_t *expected = malloc(c->d.block_bytes + 1);
    assert_non_null(expected);
    case_run(c, vtrn_kern_for(VTRN_CPU_REF));
    memcpy(expected, c->d.block, c->d.block_bytes);
    if (with_plain) {
        memcpy(c->d.block, c->d_before, c->d.block_bytes);
        run_plain(c);
        if (memcmp(c->d.block, expected, c->d.block_bytes) != 0) fail_msg("ref differs from the definition: %s", case_text(c));
    }
    for (int level = VTRN_CPU_REF + 1; level < VTRN_CPU_LEVELS; level++) {
        if (!vtrn_cpu_has((enum vtrn_cpu_level)level)) continue;
        expect_same(c, vtrn_kern_for((enum vtrn_cpu_level)level), expected, vtrn_cpu_name((enum vtrn_cpu_level)level));
    }
    free(expected);
}

static void check_random_cases(uint64_t seed, int count, int max_k, int max_mn, bool mx, bool with_plain)
{
    for (int i = 0; i < count; i++) {
        struct mm_case c;
        case_random(&c, seed + (uint64_t)i, max_k, max_mn, mx);
        check_case(&c, with_plain);
        case_fini(&c);
    }
}
static void test_small(void **state)
{
    (void)state;
    check_random_cases(test_seed(1000), 400, 12, 20, false, true);
}
static void test_medium(void **state)
{
    (void)state;
    check_random_cases(test_seed(2000), 250, 130, 150, false, false);
}
static void test_mx_small(void **state)
{
    (void)state;
    check_random_cases(test_seed(3000), 300, 6, 20, true, true);
}
static void test_mx_medium(void **state)
{
    (void)state;
    check_random_cases(test_seed(4000), 80, 40, 150, true, false);
}

static struct mm_shape shape(int k, int m, int n) { return (struct mm_shape){ k, m, n }; }

/* Sizes at which code paths change: whole tiles, ends of vectors, panels and blocks, decoding, matrix times vector, chains
 * longer than a block of steps. */
static void test_shapes(void **state)
{
    (void)state;
    const struct mm_shape shapes[] = {
        shape(128, 128, 512), shape(128, 1, 512),  shape(128, 2, 300), shape(128, 3, 64),    shape(127, 4, 513),
        shape(128, 5, 512),   shape(128, 128, 1),  shape(128, 128, 2), shape(65, 127, 7),    shape(128, 128, 16),
        shape(3, 300, 15),    shape(128, 257, 3),  shape(600, 9, 70),  shape(1025, 130, 33), shape(4200, 1, 128),
        shape(0, 3, 5),       shape(128, 0, 7),    shape(5, 7, 0),     shape(1, 129, 65),    shape(2, 16, 16),
        shape(33, 131, 129),  shape(129, 40, 250),
    };
    const enum vtrn_dtype pairs[][2] = {
        { VTRN_DT_BF16, VTRN_DT_BF16 },
        { VTRN_DT_F32, VTRN_DT_F32 },
        { VTRN_DT_F16, VTRN_DT_BF16 },
        { VTRN_DT_F8E4M3, VTRN_DT_F8E5M2 },
    };
    uint64_t seed = test_seed(5000);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        for (size_t d = 0; d < sizeof pairs / sizeof *pairs; d++) {
            struct mm_case c;
            case_make(&c, seed + 4 * i + d, shapes[i], pairs[d][0], pairs[d][1], VALUES_ORDINARY, VALUES_ORDINARY, true);
            check_case(&c, false);
            case_fini(&c);
        }
    }
}

/* All pairs of dtypes on all kinds of values. */
static void test_dtypes(void **state)
{
    (void)state;
    uint64_t seed = test_seed(6000);
    for (int s = 0; s < MM_DTYPES; s++) {
        for (int x = 0; x < MM_DTYPES; x++) {
            for (int values = 0; values < VALUES_KINDS; values++) {
                struct mm_case c;
                case_make(&c, seed++, shape(18, 21, 39), mm_dtypes[s], mm_dtypes[x], (enum values)values,
                          (enum values)((values + x) % VALUES_KINDS), values & 1);
                check_case(&c, false);
                case_fini(&c);
            }
        }
    }
}
/* Every code of every 8-bit dtype and every bf16 and fp16 passes through the conversions: K = 1, times 1. */
static void test_all_codes(void **state)
{
    (void)state;
    for (int d = 0; d < MM_DTYPES; d++) {
        int size = vtrn_dtypes[mm_dtypes[d]].size_bytes;
        int codes = size == 1 ? 256 : 65536;
        if (size == 4) continue;
        for (int first = 0; first < codes; first += 2048) {
            struct mm_case c;
            case_make(&c, 1, shape(1, 8, mm_min_int(2048, codes)), mm_dtypes[d], mm_dtypes[d], VALUES_ORDINARY, VALUES_ORDINARY,
                      false);
            for (int i = 0; i < c.s.columns; i++) vtrn_from_f32(mm_dtypes[d], i & 1 ? 1.0f : -0.5f, c.s.data + size * i);
            for (int i = 0; i < c.x.columns; i++) {
                uint16_t code = (uint16_t)(first + i);
                memcpy(c.x.data + size * i, &code, (size_t)size); /* little-endian hosts only, as all of the project */
            }
            check_case(&c, true);
            case_fini(&c);
        }
    }
}

/* The VDPBF16PS level leaves single panels to fma when their values could meet a denormal. The destination accumulates, so
 * a panel that were done twice, or not at all, would show. */
static void test_denormals_in_some_panels(void **state)
{
    (void)state;
    uint64_t seed = test_seed(7000);
    for (int i = 0; i < 40; i++) {
        struct mm_case c;
        case_make(&c, seed + (uint64_t)i, shape(64, 140, 300), VTRN_DT_BF16, VTRN_DT_BF16, VALUES_ORDINARY, VALUES_ORDINARY, true);
        for (int column = 0; column < c.x.columns; column++) { /* whole columns, so that sums are denormal too */
            uint16_t tiny = i & 1 ? 0x0041 : 0x0085;           /* denormal; 2^-126 * 1.04 */
            if ((column / 64 * 7 + i) % 3 != 0 || column % 5 != 0) continue;
            for (int row = 0; row < c.k; row++) memcpy(c.x.data + c.x.pitch * row + 2 * column, &tiny, sizeof tiny);
        }
        check_case(&c, false);
        case_fini(&c);
    }
}
/* Least magnitudes around the bound of the guard, and results that are denormal just below it. */
static void test_guard_boundary(void **state)
{
    (void)state;
    uint64_t seed = test_seed(8000);
    for (int exponents = -118; exponents <= -108; exponents++) {
        for (int split = 0; split < 3; split++) {
            struct mm_case c;
            case_make(&c, seed++, shape(9, 17, 70), VTRN_DT_BF16, VTRN_DT_BF16, VALUES_ORDINARY, VALUES_ORDINARY, split & 1);
            int s_exponent = split == 0 ? exponents / 2 : split == 1 ? 10 : -126;
            case_fill_exponent(&c.s, c.k, s_exponent, seed);
            case_fill_exponent(&c.x, c.k, exponents - s_exponent, seed + 77);
            check_case(&c, false);
            case_fini(&c);
        }
    }
}

/* Two products that cancel down to the last bit that bf16 products have: (1+2^-7)^2 - (1+2^-6) = 2^-14. With exponents that
 * add up to -112 that is the least normal fp32, one lower the largest power of two that is denormal. */
static void check_cancellation(int exponents, int n, bool zeros)
{
    struct mm_case c;
    case_make(&c, 1, shape(2, 9, n), VTRN_DT_BF16, VTRN_DT_BF16, VALUES_ORDINARY, VALUES_ORDINARY, false);
    for (int row = 0; row < 2; row++) {
        uint16_t s = (uint16_t)((127 << 7 | (row == 0 ? 1 : 2)) | (row == 0 ? 0 : 0x8000));
        uint16_t x = (uint16_t)((exponents + 127) << 7 | (row == 0 ? 1 : 0));
        for (int i = 0; i < c.s.columns; i++) memcpy(c.s.data + c.s.pitch * row + 2 * i, &s, sizeof s);
        for (int i = 0; i < c.x.columns; i++) memcpy(c.x.data + c.x.pitch * row + 2 * i, &x, sizeof x);
        if (zeros) memset(c.x.data + c.x.pitch * row + 2 * (n / 2), 0, sizeof x);
    }
    check_case(&c, true);
    float result;
    memcpy(&result, c.d.data, sizeof result);
    assert_true(result == ldexpf(1, exponents - 14));
    case_fini(&c);
}
static void test_guard_cancellation(void **state)
{
    (void)state;
    for (int exponents = -115; exponents <= -111; exponents++) {
        const int widths[] = { 16, 31, 48, 64, 128, 200 };
        for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
            check_cancellation(exponents, widths[i], false);
            check_cancellation(exponents, widths[i], true);
        }
    }
}

/* A tile computed in parts of n or of m has the same bits: the executor splits instructions over threads that way. */
static void test_split(void **state)
{
    (void)state;
    uint64_t seed = test_seed(9000);
    for (int level = VTRN_CPU_REF; level < VTRN_CPU_LEVELS; level++) {
        if (!vtrn_cpu_has((enum vtrn_cpu_level)level)) continue;
        for (int i = 0; i < 12; i++) {
            struct mm_case c;
            bool mx = i % 3 == 2;
            case_make_any(&c, seed++, shape(37, 90, 200),
                          mx      ? VTRN_DT_F8E5M2X4
                          : i & 1 ? VTRN_DT_BF16
                                  : VTRN_DT_F32,
                          mx ? VTRN_DT_F4E2M1FNX4 : VTRN_DT_BF16, VALUES_ORDINARY, i & 2 ? VALUES_TINY : VALUES_ORDINARY, true, mx);
            case_run(&c, vtrn_kern_for((enum vtrn_cpu_level)level));
            uint8_t *whole = malloc(c.d.block_bytes);
            assert_non_null(whole);
            memcpy(whole, c.d.block, c.d.block_bytes);
            memcpy(c.d.block, c.d_before, c.d.block_bytes);
            int cut = 1 + (int)(test_random(&seed) % 89);
            case_run_part(&c, vtrn_kern_for((enum vtrn_cpu_level)level), 0, cut, 0, 2 * cut);
            case_run_part(&c, vtrn_kern_for((enum vtrn_cpu_level)level), 0, cut, 2 * cut, 200 - 2 * cut);
            case_run_part(&c, vtrn_kern_for((enum vtrn_cpu_level)level), cut, 90 - cut, 0, 200);
            if (memcmp(whole, c.d.block, c.d.block_bytes) != 0)
                fail_msg("%s: cut at %d differs: %s", vtrn_cpu_name((enum vtrn_cpu_level)level), cut, case_text(&c));
            free(whole);
            case_fini(&c);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small),          cmocka_unit_test(test_medium),
        cmocka_unit_test(test_mx_small),       cmocka_unit_test(test_mx_medium),
        cmocka_unit_test(test_shapes),         cmocka_unit_test(test_dtypes),
        cmocka_unit_test(test_all_codes),      cmocka_unit_test(test_denormals_in_some_panels),
        cmocka_unit_test(test_guard_boundary), cmocka_unit_test(test_guard_cancellation),
        cmocka_unit_test(test_split),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
