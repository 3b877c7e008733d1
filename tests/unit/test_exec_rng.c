/* exec/rng.c: generators against their definition, seeds, states, ranges; independence of how work is split. */
#include "exec/exec_int.h"
#include "exec_rig.h"

/* XORWOW as the paper writes it. */
static uint32_t xorwow(uint32_t s[6])
{
    uint32_t t = s[0] ^ (s[0] >> 2);
    s[0] = s[1], s[1] = s[2], s[2] = s[3], s[3] = s[4];
    s[4] = (s[4] ^ (s[4] << 4)) ^ (t ^ (t << 1));
    return (s[5] += 362437) + s[4];
}

static void append_rng(struct rig *rig, uint32_t dst, int engine)
{
    struct vtrn_inst inst;
    vtrn_inst_init(&inst, VTRN_OP_rng);
    inst.engine = (uint8_t)engine;
    rig_set_ap(RIG_ARG(&inst, rng, dst), rig_ap(rig, dst));
    rig_append(rig, 0, &inst);
}

static void append_state(struct rig *rig, bool set, uint32_t tensor, int engine)
{
    struct vtrn_inst inst;
    vtrn_inst_init(&inst, set ? VTRN_OP_rand_set_state : VTRN_OP_rand_get_state);
    inst.engine = (uint8_t)engine;
    rig_set_ap(set ? RIG_ARG(&inst, rand_set_state, src_seeds) : RIG_ARG(&inst, rand_get_state, dst), rig_ap(rig, tensor));
    rig_append(rig, 0, &inst);
}

static void append_seed(struct rig *rig, uint32_t seed_tensor)
{
    struct vtrn_inst inst;
    vtrn_inst_init(&inst, VTRN_OP_set_rng_seed);
    rig_set_ap(RIG_ARG(&inst, set_rng_seed, src_seeds), rig_ap(rig, seed_tensor));
    rig_append(rig, 0, &inst);
}

/* Numbers follow from the state that is read before, whatever it is; `states` generators take turns. */
static void xorwow_case(const char *target, int engine, int states)
{
    struct rig *rig = rig_create(target, 1, 77);
    enum { PARTS = 5, ELEMS = 1501 };
    uint32_t state = rig_tensor2(rig, 0, VTRN_SBUF, VTRN_DT_U32, PARTS, 6 * states);
    uint32_t words = rig_tensor2(rig, 0, VTRN_SBUF, VTRN_DT_U32, PARTS, ELEMS);
    uint32_t bytes = rig_tensor2(rig, 0, VTRN_SBUF, VTRN_DT_I8, PARTS, 7),
             later = rig_tensor2(rig, 0, VTRN_SBUF, VTRN_DT_U32, PARTS, 6 * states);
    append_state(rig, false, state, engine);
    append_rng(rig, words, engine);
    append_rng(rig, bytes, engine);
    append_state(rig, false, later, engine);
    rig_run_ok(rig, 0);
    uint32_t *s = rig_image(rig, 0, state), *w = rig_image(rig, 0, words), *end = rig_image(rig, 0, later);
    uint8_t *b = rig_image(rig, 0, bytes);
    for (int p = 0; p < PARTS; p++) {
        uint32_t *mine = s + p * 6 * states;
        for (int i = 0; i < ELEMS; i++) assert_int_equal(w[p * ELEMS + i], xorwow(mine + i % states * 6));
        for (int i = ELEMS; i % states; i++) xorwow(mine + i % states * 6); /* all step together */
        for (int i = 0; i < 7; i++) assert_int_equal(b[p * 7 + i], xorwow(mine + i % states * 6) & 255);
        for (int i = 7; i % states; i++) xorwow(mine + i % states * 6);
        assert_memory_equal(mine, end + p * 6 * states, sizeof(uint32_t) * 6 * (size_t)states);
    }
    free(s);
    free(w);
    free(b);
    free(end);
    rig_destroy(rig);
}

static void test_xorwow(void **state)
{
    (void)state;
    xorwow_case("trn2", VTRN_ENGINE_GPSIMD, 1);
    xorwow_case("trn3", VTRN_ENGINE_GPSIMD, 1);
    xorwow_case("trn3", VTRN_ENGINE_VECTOR, 4);
}

static void test_set_state(void **state)
{
    (void)state;
    for (int vector = 0; vector < 2; vector++) {
        struct rig *rig = rig_create("trn3", 1, 1);
        int engine = vector ? VTRN_ENGINE_VECTOR : VTRN_ENGINE_GPSIMD, words = vector ? 24 : 6;
        uint32_t seeds = rig_tensor2(rig, 0, VTRN_SBUF, VTRN_DT_U32, 128, words), out[2];
        uint32_t *s = malloc(128 * sizeof *s * (size_t)words), *got[2];
        rig_random_bytes(s, 128 * sizeof *s * (size_t)words);
        rig_write(rig, 0, seeds, s);
        for (int k = 0; k < 2; k++) {
            out[k] = rig_tensor2(rig, 0, VTRN_SBUF, VTRN_DT_U32, 128, 64);
            append_state(rig, true, seeds, engine);
            append_rng(rig, out[k], engine);
        }
        rig_run_ok(rig, 0);
        for (int k = 0; k < 2; k++) got[k] = rig_image(rig, 0, out[k]);
        assert_memory_equal(got[0], got[1], 128 * 64 * 4);
        for (int p = 0; p < 128; p++)
            for (int i = 0; i < 64; i++) assert_int_equal(got[0][p * 64 + i], xorwow(s + p * words + (vector ? i % 4 * 6 : 0)));
        free(s);
        free(got[0]);
        free(got[1]);
        rig_destroy(rig);
    }
}

/* The shift register of v2 and v3: each word is the state 32 steps after the one before. */
static void test_lfsr(void **state)
{
    (void)state;
    struct rig *rig = rig_create("trn2", 1, 5);
    uint32_t out = rig_tensor2(rig, 0, VTRN_SBUF, VTRN_DT_U32, 128, 2000);
    append_rng(rig, out, VTRN_ENGINE_VECTOR);
    rig_run_ok(rig, 0);
    uint32_t *w = rig_image(rig, 0, out);
    int64_t ones = 0;
    for (int p = 0; p < 128; p++)
        for (int i = 0; i < 2000; i++) {
            uint32_t s = w[p * 2000 + i];
            ones += __builtin_popcount(s);
            assert_true(s != 0);
            for (int k = 0; k < 32; k++) s = s & 1 ? (s >> 1) ^ UINT32_C(0xa3000000) : s >> 1;
            if (i + 1 < 2000) assert_int_equal(w[p * 2000 + i + 1], s);
            if (i == 0 && p > 0) assert_int_not_equal(w[p * 2000], w[0]);
        }
    assert_true(ones > 128 * 2000 * 16 - 20000 && ones < 128 * 2000 * 16 + 20000); /* 14 standard deviations */
    free(w);
    rig_destroy(rig);
}

static void test_seeds(void **state)
{
    (void)state;
    static const char *const targets[] = { "trn1", "trn2", "trn3" };
    for (int t = 0; t < 3; t++) {
        struct rig *rig = rig_create(targets[t], 1, 9);
        uint32_t seed[2], out[3], *got[3];
        for (uint32_t k = 0; k < 2; k++) {
            uint32_t value = 1000 + k;
            seed[k] = rig_tensor2(rig, 0, VTRN_SBUF, VTRN_DT_U32, 1, 1);
            rig_write(rig, 0, seed[k], &value);
        }
        for (int k = 0; k < 3; k++) {
            out[k] = rig_tensor2(rig, 0, VTRN_SBUF, VTRN_DT_U32, 64, 33);
            append_seed(rig, seed[k == 1]);
            append_rng(rig, out[k], VTRN_ENGINE_VECTOR);
        }
        rig_run_ok(rig, 0);
        for (int k = 0; k < 3; k++) got[k] = rig_image(rig, 0, out[k]);
        assert_memory_equal(got[0], got[2], 64 * 33 * 4);
        int equal = 0;
        for (int i = 0; i < 64 * 33; i++) equal += got[0][i] == got[1][i];
        assert_true(equal < 3);
        for (int k = 0; k < 3; k++) free(got[k]);
        rig_destroy(rig);
    }
}

/* Runs with equal seeds are equal, others differ; so do the two cores. */
static void test_run_seed(void **state)
{
    (void)state;
    uint32_t *got[3];
    static const uint64_t seeds[3] = { 4, 4, 5 };
    for (int k = 0; k < 3; k++) {
        struct rig *rig = rig_create("trn2", 1, seeds[k]);
        uint32_t out = rig_tensor2(rig, 0, VTRN_SBUF, VTRN_DT_U32, 128, 8);
        append_rng(rig, out, VTRN_ENGINE_GPSIMD);
        rig_run_ok(rig, 0);
        got[k] = rig_image(rig, 0, out);
        rig_destroy(rig);
    }
    assert_memory_equal(got[0], got[1], 128 * 8 * 4);
    assert_memory_not_equal(got[0], got[2], 128 * 8 * 4);
    for (int k = 0; k < 3; k++) free(got[k]);
}

static void test_rand2(void **state)
{
    (void)state;
    struct rig *rig = rig_create("trn3", 1, 3);
    uint32_t out = rig_tensor2(rig, 0, VTRN_SBUF, VTRN_DT_F32, 128, 3000), low = rig_tensor2(rig, 0, VTRN_SBUF, VTRN_DT_F32, 128, 1);
    float *lows = malloc(128 * sizeof *lows);
    for (int p = 0; p < 128; p++) lows[p] = (float)p - 64;
    rig_write(rig, 0, low, lows);
    struct vtrn_inst inst;
    vtrn_inst_init(&inst, VTRN_OP_rand2);
    rig_set_ap(RIG_ARG(&inst, rand2, dst), rig_ap(rig, out));
    rig_set_ap(RIG_ARG(&inst, rand2, min), rig_ap(rig, low));
    rig_set_num(RIG_ARG(&inst, rand2, max), 100);
    rig_append(rig, 0, &inst);
    rig_run_ok(rig, 0);
    float *v = rig_image(rig, 0, out);
    for (int p = 0; p < 128; p++) {
        double sum = 0;
        for (int i = 0; i < 3000; i++) {
            assert_true(v[p * 3000 + i] >= lows[p] && v[p * 3000 + i] <= 100);
            sum += (v[p * 3000 + i] - lows[p]) / (100 - lows[p]);
        }
        assert_true(sum > 1500 - 150 && sum < 1500 + 150); /* 9 standard deviations */
    }
    rig_set_num(RIG_ARG(&inst, rand2, max), 0); /* below min from partition 65 on */
    rig_append(rig, 0, &inst);
    rig_run_fault(rig, 0, VTRN_FAULT_VALUE, "min must not be above max");
    free(v);
    free(lows);
    rig_destroy(rig);
}

/* Rounding words depend on the place, not on the pieces they are drawn in. */
static void test_rounding_words(void **state)
{
    (void)state;
    struct rig *rig = rig_create("trn2", 1, 3);
    uint32_t whole[1000], piece[1000], other[1000];
    exec_rng_rounding(rig->core[0], 7, 0, whole, 1000);
    for (int64_t i = 0; i < 1000; i += 125) exec_rng_rounding(rig->core[0], 7, i, piece + i, 125);
    assert_memory_equal(whole, piece, sizeof whole);
    exec_rng_rounding(rig->core[0], 8, 0, other, 1000);
    double mean = 0;
    int equal = 0;
    for (int i = 0; i < 1000; i++) {
        equal += whole[i] == other[i];
        mean += whole[i] / 4294967296.0;
    }
    assert_true(equal < 3);
    assert_true(mean > 400 && mean < 600);
    rig_destroy(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_xorwow),         cmocka_unit_test(test_set_state), cmocka_unit_test(test_lfsr),
        cmocka_unit_test(test_seeds),          cmocka_unit_test(test_run_seed),  cmocka_unit_test(test_rand2),
        cmocka_unit_test(test_rounding_words),
    };
    return cmocka_run_group_tests_name("exec_rng", tests, NULL, NULL);
}
