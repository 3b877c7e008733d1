/* Reductions, bit reductions and scans of kern at every CPU level of this machine against ref, bit for bit: any numbers of
 * rows and columns, strides, operators, reversed operands, in place; guard values between rows. VTRN_TEST_SEED=<n>. */
#include "kern_rows.h"

enum { MAX_ROWS = 40, MAX_N = 70, MAX_STRIDE = 80, SIZE = MAX_ROWS * MAX_STRIDE + MAX_N };

static float a[SIZE], b[SIZE], before[SIZE], want[SIZE], got[SIZE];
static float state_before[MAX_ROWS + 1], state_want[MAX_ROWS + 1], state_got[MAX_ROWS + 1];

/* Mostly tame values, so that sums and products stay finite for a while and orders show. */
static float tame(struct rows_rng *rng, int kind)
{
    uint32_t r = rows_u32(rng);
    if (kind == 1) return 1 + (float)(int32_t)r * 0x1p-33f;
    if (kind == 2) return (float)(int)(r % 5) - 2;
    if (kind == 3 || r % 61 == 0) return rows_value(rng);
    return (float)(int32_t)r * 0x1p-30f;
}
static void fill(struct rows_rng *rng, float *at, size_t n, int kind)
{
    for (size_t i = 0; i < n; i++) at[i] = tame(rng, kind);
}
struct shape {
    size_t rows, n, stride;
};
static struct shape shape_random(struct rows_rng *rng, int i)
{
    struct shape s = { rows_below(rng, MAX_ROWS + 1), rows_below(rng, i % 3 ? 9 : MAX_N + 1), 0 };
    s.stride = i % 4 == 0 ? s.n : s.n + rows_below(rng, MAX_STRIDE - MAX_N);
    if (i % 29 == 0) s.stride = 0; /* all rows are one */
    return s;
}

static void test_reduce(void **state)
{
    (void)state;
    struct rows_rng rng = { rows_seed() };
    for (int op = VTRN_ALU_NONE + 1; op < VTRN_ALU_COUNT; op++) {
        if (!vtrn_kern_for(VTRN_CPU_REF)->reduce[op]) continue;
        for (int i = 0; i < 600; i++) {
            struct shape s = shape_random(&rng, i);
            fill(&rng, a, SIZE, i % 7 % 4);
            fill(&rng, state_before, MAX_ROWS + 1, i % 5 % 4);
            memcpy(state_want, state_before, sizeof state_want);
            vtrn_kern_for(VTRN_CPU_REF)->reduce[op](state_want, a, s.stride, s.rows, s.n);
            for (int level = 1; level < VTRN_CPU_LEVELS; level++) {
                if (!vtrn_cpu_has((enum vtrn_cpu_level)level)) continue;
                memcpy(state_got, state_before, sizeof state_got);
                vtrn_kern_for((enum vtrn_cpu_level)level)->reduce[op](state_got, a, s.stride, s.rows, s.n);
                if (memcmp(state_got, state_want, sizeof state_got) == 0) continue;
                size_t r = 0;
                while (rows_bits(state_got[r]) == rows_bits(state_want[r])) r++;
                fail_msg("reduce %s %s: row %zu of %zu x %zu stride %zu is %a, ref %a (seed %llu)", vtrn_alus[op].nki_name,
                         vtrn_cpu_name((enum vtrn_cpu_level)level), r, s.rows, s.n, s.stride, state_got[r], state_want[r],
                         (unsigned long long)rows_seed());
            }
        }
    }
}

/* The order of a sum is part of the contract: against a loop of this file. */
static void test_order(void **state)
{
    (void)state;
    struct rows_rng rng = { rows_seed() };
    enum { ROWS = 37, N = 61 };
    fill(&rng, a, ROWS * N, 0);
    for (int level = 0; level < VTRN_CPU_LEVELS; level++) {
        float acc[ROWS] = { 0 };
        if (!vtrn_cpu_has((enum vtrn_cpu_level)level)) continue;
        vtrn_kern_for((enum vtrn_cpu_level)level)->reduce[VTRN_ALU_ADD](acc, a, N, ROWS, N);
        for (int r = 0; r < ROWS; r++) {
            volatile float sum = 0;
            for (int i = 0; i < N; i++) sum = sum + a[r * N + i];
            if (isnan(sum)) assert_int_equal(rows_bits(acc[r]), 0x7fc00000);
            else assert_int_equal(rows_bits(acc[r]), rows_bits(sum));
        }
    }
}

static void test_reduce_bits(void **state)
{
    (void)state;
    struct rows_rng rng = { rows_seed() };
    uint8_t *bytes = (uint8_t *)a;
    for (int op = VTRN_ALU_BITWISE_AND; op <= VTRN_ALU_BITWISE_XOR; op++) {
        for (int size = 0; size < 3; size++) {
            for (int i = 0; i < 300; i++) {
                struct shape s = shape_random(&rng, i);
                for (size_t k = 0; k < SIZE; k++) a[k] = rows_float(rows_u32(&rng) | (i % 2 ? 0xf7fffffe : 0));
                memcpy(state_before, b, sizeof state_before);
                memcpy(state_want, state_before, sizeof state_want);
                vtrn_kern_for(VTRN_CPU_REF)->reduce_bits[op][size](state_want, bytes + 1, s.stride, s.rows, s.n);
                for (int level = 1; level < VTRN_CPU_LEVELS; level++) {
                    if (!vtrn_cpu_has((enum vtrn_cpu_level)level)) continue;
                    memcpy(state_got, state_before, sizeof state_got);
                    vtrn_kern_for((enum vtrn_cpu_level)level)->reduce_bits[op][size](state_got, bytes + 1, s.stride, s.rows, s.n);
                    if (memcmp(state_got, state_want, sizeof state_got) != 0)
                        fail_msg("reduce_bits %s [%d] %s: %zu x %zu stride %zu (seed %llu)", vtrn_alus[op].nki_name, size,
                                 vtrn_cpu_name((enum vtrn_cpu_level)level), s.rows, s.n, s.stride, (unsigned long long)rows_seed());
                }
                fill(&rng, b, MAX_ROWS + 1, 3);
            }
        }
    }
}

/* Scans of one pair of operators, of random shapes; in place for some. */
static void check_scan(struct rows_rng *rng, enum vtrn_alu op0, enum vtrn_alu op1, int turns)
{
    for (int i = 0; i < turns; i++) {
        struct shape s = shape_random(rng, i);
        size_t dst_stride = s.stride ? s.stride : s.n;
        int place = i % 5; /* 3: dst is a; 4: dst is b */
        struct vtrn_scan scan = { .a = a,
                                  .b = op1 == VTRN_ALU_BYPASS && i % 2 ? NULL : b,
                                  .a_stride = s.stride,
                                  .b_stride = s.stride,
                                  .dst_stride = dst_stride,
                                  .rows = s.rows,
                                  .n = s.n,
                                  .op0 = op0,
                                  .op1 = op1,
                                  .reverse0 = i % 7 == 3,
                                  .reverse1 = i % 11 == 5 };
        if (scan.reverse1) scan.b = b;
        if (place >= 3) scan.a_stride = scan.b_stride = dst_stride;
        fill(rng, a, SIZE, i % 4);
        fill(rng, b, SIZE, i % 3);
        fill(rng, before, SIZE, 0);
        fill(rng, state_before, MAX_ROWS + 1, i % 9 == 0 ? 3 : 0);
        for (int level = 0; level < VTRN_CPU_LEVELS; level++) {
            if (!vtrn_cpu_has((enum vtrn_cpu_level)level)) continue;
            float *out = level ? got : want, *sums = level ? state_got : state_want;
            struct vtrn_scan run = scan;
            memcpy(out, place == 3 ? a : place == 4 ? b : before, sizeof want);
            memcpy(sums, state_before, sizeof state_before);
            run.dst = out;
            run.state = sums;
            if (place == 3) run.a = out;
            if (place == 4 && run.b) run.b = out;
            vtrn_kern_for((enum vtrn_cpu_level)level)->scan(&run);
            if (level == 0 || (memcmp(want, got, sizeof want) == 0 && memcmp(state_want, state_got, sizeof state_want) == 0))
                continue;
            size_t at = 0;
            while (at < SIZE - 1 && rows_bits(want[at]) == rows_bits(got[at])) at++;
            fail_msg("scan %s%s %s%s %s: %zu x %zu strides %zu %zu place %d: [%zu] is %a, ref %a (seed %llu)",
                     vtrn_alus[op0].nki_name, scan.reverse0 ? " reversed" : "", vtrn_alus[op1].nki_name,
                     scan.reverse1 ? " reversed" : "", vtrn_cpu_name((enum vtrn_cpu_level)level), s.rows, s.n, scan.a_stride,
                     dst_stride, place, at, got[at], want[at], (unsigned long long)rows_seed());
        }
    }
}
static void test_scan(void **state)
{
    (void)state;
    struct rows_rng rng = { rows_seed() };
    check_scan(&rng, VTRN_ALU_MULTIPLY, VTRN_ALU_ADD, 1500);
    for (int op0 = VTRN_ALU_NONE + 1; op0 < VTRN_ALU_COUNT; op0++) {
        if (!vtrn_kern_for(VTRN_CPU_REF)->tt[op0]) continue;
        for (int op1 = VTRN_ALU_NONE + 1; op1 < VTRN_ALU_COUNT; op1++)
            if (vtrn_kern_for(VTRN_CPU_REF)->tt[op1])
                check_scan(&rng, (enum vtrn_alu)op0, (enum vtrn_alu)op1, op1 == VTRN_ALU_BYPASS ? 60 : 12);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reduce),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_reduce_bits),
        cmocka_unit_test(test_scan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
