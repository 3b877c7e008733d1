/* exec.c, lifetime.c, resolve.c: stepping, counters, interruption, memory given back after last uses and by the turns of
 * loops, poison, dynamic offsets and their faults. */
#include "exec_rig.h"

#include <math.h>

static int set_up(void **state)
{
    *state = rig_create("trn2", 1, 7);
    return 0;
}
static int tear_down(void **state)
{
    rig_destroy(*state);
    return 0;
}

/* ---------------------------------------------------------------- small programs */
static void add_memset(struct rig *rig, uint32_t dst, double value)
{
    struct vtrn_inst inst;
    vtrn_inst_init(&inst, VTRN_OP_memset);
    rig_set_ap(RIG_ARG(&inst, memset, dst), rig_ap(rig, dst));
    rig_set_num(RIG_ARG(&inst, memset, value), value);
    rig_append(rig, 0, &inst);
}
static void add_add(struct rig *rig, uint32_t dst, uint32_t a, uint32_t b)
{
    struct vtrn_inst inst;
    vtrn_inst_init(&inst, VTRN_OP_tensor_tensor);
    inst.engine = VTRN_ENGINE_VECTOR;
    rig_set_ap(RIG_ARG(&inst, tensor_tensor, data1), rig_ap(rig, a));
    rig_set_ap(RIG_ARG(&inst, tensor_tensor, data2), rig_ap(rig, b));
    rig_set_ap(RIG_ARG(&inst, tensor_tensor, dst), rig_ap(rig, dst));
    rig_set_int(RIG_ARG(&inst, tensor_tensor, op), VTRN_ALU_ADD);
    rig_append(rig, 0, &inst);
}
static void add_product(struct rig *rig, uint32_t dst, uint32_t s, uint32_t x)
{
    struct vtrn_inst inst;
    vtrn_inst_init(&inst, VTRN_OP_nc_matmul);
    rig_set_ap(RIG_ARG(&inst, nc_matmul, stationary), rig_ap(rig, s));
    rig_set_ap(RIG_ARG(&inst, nc_matmul, moving), rig_ap(rig, x));
    rig_set_ap(RIG_ARG(&inst, nc_matmul, dst), rig_ap(rig, dst));
    rig_append(rig, 0, &inst);
}
static void add_copy(struct rig *rig, struct vtrn_ap dst, struct vtrn_ap src, uint32_t reg)
{
    struct vtrn_inst inst;
    vtrn_inst_init(&inst, VTRN_OP_tensor_copy);
    struct vtrn_value *value = RIG_ARG(&inst, tensor_copy, src);
    rig_set_ap(RIG_ARG(&inst, tensor_copy, dst), dst);
    rig_set_ap(value, src);
    if (reg != UINT32_MAX) rig_dyn(&inst, &value->ap, VTRN_DYN_REG, reg, VTRN_DT_I32, 1);
    rig_append(rig, 0, &inst);
}
static void add_loop(struct rig *rig, uint32_t reg, int64_t turns)
{
    struct vtrn_inst inst;
    vtrn_inst_init(&inst, VTRN_OP_loop_begin);
    rig_set_reg(RIG_ARG(&inst, loop_begin, index), reg);
    rig_set_int(RIG_ARG(&inst, loop_begin, lower), 0);
    rig_set_int(RIG_ARG(&inst, loop_begin, upper), turns);
    rig_set_int(RIG_ARG(&inst, loop_begin, step), 1);
    rig_append(rig, 0, &inst);
}
static void add_end(struct rig *rig)
{
    struct vtrn_inst inst;
    vtrn_inst_init(&inst, VTRN_OP_loop_end);
    rig_append(rig, 0, &inst);
}
static uint32_t tile(struct rig *rig, int space, int64_t rows, int64_t columns)
{
    return rig_tensor2(rig, 0, space, VTRN_DT_F32, rows, columns);
}
static void expect_all(struct rig *rig, uint32_t tensor, float value)
{
    float *image = rig_image(rig, 0, tensor);
    for (int64_t i = 0; i < rig_elems(rig, tensor); i++)
        if (image[i] != value && !(isnan(image[i]) && isnan(value)))
            fail_msg("element %d: %g, should be %g", (int)i, (double)image[i], (double)value);
    free(image);
}
static size_t host_bytes(const struct rig *rig)
{
    size_t now, peak;
    vtrn_mem_usage(rig->mem, &now, &peak);
    return now;
}

/* ---------------------------------------------------------------- poison and counters */
static void test_unwritten_reads_are_nan(void **state)
{
    struct rig *rig = *state;
    uint32_t one = tile(rig, VTRN_SBUF, 128, 40), never = tile(rig, VTRN_SBUF, 128, 40), sum = tile(rig, VTRN_SBUF, 128, 40);
    add_memset(rig, one, 1);
    add_add(rig, sum, one, never);
    rig_run_ok(rig, 0);
    expect_all(rig, sum, NAN);
    const struct vtrn_counters *counters = vtrn_core_counters(rig->core[0]);
    assert_int_equal(counters->instructions, 2);
    assert_int_equal(counters->vector_instructions, 2);
    assert_int_equal(vtrn_core_position(rig->core[0]), 2);
}

/* Slices that fill a tile leave no poison, slices that do not leave it where they did not write. */
static void test_slices(void **state)
{
    struct rig *rig = *state;
    uint32_t dst = tile(rig, VTRN_SBUF, 64, 300), src = tile(rig, VTRN_SBUF, 64, 300);
    add_memset(rig, src, 2);
    add_copy(rig, rig_slice(rig, dst, 0, 64, 0, 100), rig_slice(rig, src, 0, 64, 0, 100), UINT32_MAX);
    add_copy(rig, rig_slice(rig, dst, 0, 64, 150, 150), rig_slice(rig, src, 0, 64, 150, 150), UINT32_MAX);
    add_copy(rig, rig_slice(rig, dst, 0, 30, 100, 20), rig_slice(rig, src, 0, 30, 100, 20), UINT32_MAX);
    rig_run_ok(rig, 0);
    float *image = rig_image(rig, 0, dst);
    for (int p = 0; p < 64; p++)
        for (int i = 0; i < 300; i++) {
            bool written = i < 100 || i >= 150 || (p < 30 && i < 120);
            float x = image[p * 300 + i];
            assert_true(written ? x == 2 : isnan(x));
        }
    free(image);
}

/* ---------------------------------------------------------------- lifetimes */
static void test_release_after_last_use(void **state)
{
    struct rig *rig = *state;
    uint32_t acc = tile(rig, VTRN_SBUF, 128, 512);
    add_memset(rig, acc, 0);
    for (int k = 0; k < 400; k++) { /* 100 MiB when nothing is returned */
        uint32_t t = tile(rig, VTRN_SBUF, 128, 512);
        add_memset(rig, t, k);
        add_add(rig, acc, acc, t);
    }
    assert_int_equal(vtrn_core_run(rig->core[0], UINT32_MAX, true), VTRN_OK);
    assert_true(host_bytes(rig) <= 8 << 20);
}

static void test_release_keeps_results_right(void **state)
{
    struct rig *rig = *state;
    uint32_t acc = tile(rig, VTRN_SBUF, 16, 20), out = rig_tensor2(rig, 0, VTRN_HBM, VTRN_DT_F32, 16, 20);
    struct vtrn_inst inst;
    add_memset(rig, acc, 0);
    for (int k = 0; k < 50; k++) {
        uint32_t a = tile(rig, VTRN_SBUF, 16, 20), b = tile(rig, VTRN_SBUF, 16, 20);
        add_memset(rig, a, k);
        add_memset(rig, b, 1);
        add_add(rig, b, a, b);
        add_add(rig, acc, acc, b);
    }
    vtrn_inst_init(&inst, VTRN_OP_dma_copy);
    rig_set_ap(RIG_ARG(&inst, dma_copy, dst), rig_ap(rig, out));
    rig_set_ap(RIG_ARG(&inst, dma_copy, src), rig_ap(rig, acc));
    rig_append(rig, 0, &inst);
    assert_int_equal(vtrn_core_run(rig->core[0], UINT32_MAX, true), VTRN_OK);
    expect_all(rig, out, 50 * 49 / 2 + 50);
}

/* for 5 turns: psum = tile declared in the body; psum (+)= ones @ ones, twice; total += psum. Each turn begins anew. */
static void loop_of_products(struct rig *rig, bool release, int64_t turns)
{
    uint32_t ones = tile(rig, VTRN_SBUF, 4, 4), total = tile(rig, VTRN_SBUF, 4, 4),
             out = rig_tensor2(rig, 0, VTRN_HBM, VTRN_DT_F32, 4, 4);
    struct vtrn_inst inst;
    add_memset(rig, ones, 1);
    add_memset(rig, total, 0);
    add_loop(rig, 0, turns);
    uint32_t psum = tile(rig, VTRN_PSUM, 4, 4), copy = tile(rig, VTRN_SBUF, 4, 4);
    add_product(rig, psum, ones, ones);
    add_product(rig, psum, ones, ones);
    add_copy(rig, rig_ap(rig, copy), rig_ap(rig, psum), UINT32_MAX);
    add_add(rig, total, total, copy);
    add_end(rig);
    vtrn_inst_init(&inst, VTRN_OP_dma_copy);
    rig_set_ap(RIG_ARG(&inst, dma_copy, dst), rig_ap(rig, out));
    rig_set_ap(RIG_ARG(&inst, dma_copy, src), rig_ap(rig, total));
    rig_append(rig, 0, &inst);
    assert_int_equal(vtrn_core_run(rig->core[0], UINT32_MAX, release), VTRN_OK);
    expect_all(rig, out, (float)(8 * turns));
}
static void test_groups_begin_anew_in_loops(void **state) { loop_of_products(*state, false, 5); }
static void test_groups_begin_anew_with_release(void **state) { loop_of_products(*state, true, 5); }
static void test_loop_of_no_turns(void **state) { loop_of_products(*state, true, 0); }

/* Declared in the body: poison in every turn. Declared before: kept from turn to turn. */
static void test_declarations_in_loops(void **state)
{
    struct rig *rig = *state;
    uint32_t kept = tile(rig, VTRN_SBUF, 8, 8), seen = tile(rig, VTRN_SBUF, 8, 8), one = tile(rig, VTRN_SBUF, 8, 8);
    add_memset(rig, kept, 0);
    add_memset(rig, one, 1);
    add_loop(rig, 0, 3);
    add_loop(rig, 1, 2);
    uint32_t inner = tile(rig, VTRN_SBUF, 8, 8);
    add_copy(rig, rig_ap(rig, seen), rig_ap(rig, inner), UINT32_MAX); /* before this turn writes it */
    add_memset(rig, inner, 5);
    add_add(rig, kept, kept, one);
    add_end(rig);
    add_end(rig);
    rig_run_ok(rig, 0);
    expect_all(rig, seen, NAN);
    expect_all(rig, kept, 6);
}

/* After vtrn_prog_forget_code positions count from 0 again: what was declared before that is kept by loops, what is declared
 * again in a body is not. */
static void test_loops_after_forgetting(void **state)
{
    struct rig *rig = *state;
    uint32_t ones = tile(rig, VTRN_SBUF, 4, 4), total = tile(rig, VTRN_SBUF, 4, 4), spare = tile(rig, VTRN_PSUM, 4, 4);
    for (int k = 0; k < 3; k++) add_memset(rig, ones, 1);
    uint32_t late = tile(rig, VTRN_SBUF, 4, 4); /* born at position 3 */
    add_memset(rig, late, 0);
    add_product(rig, spare, ones, ones);
    rig_run_ok(rig, 0);
    vtrn_mem_release(rig->mem, 0, spare);
    vtrn_prog_forget_code(rig->prog, 0);
    vtrn_core_rewind(rig->core[0]);
    add_memset(rig, total, 0);
    add_loop(rig, 0, 4); /* positions 1 to 6 */
    vtrn_prog_tensor_again(rig->prog, spare, 0);
    add_product(rig, spare, ones, ones);
    add_add(rig, total, total, spare);
    add_add(rig, late, late, ones);
    add_end(rig);
    rig_run_ok(rig, 0);
    expect_all(rig, total, 16);
    expect_all(rig, late, 4);
}

/* ---------------------------------------------------------------- stopping and going on */
static void test_interrupt_goes_on(void **state)
{
    struct rig *rig = *state;
    uint32_t acc = tile(rig, VTRN_SBUF, 2, 2), one = tile(rig, VTRN_SBUF, 2, 2);
    int stops = 0;
    add_memset(rig, acc, 0);
    add_memset(rig, one, 1);
    for (int k = 0; k < 2000; k++) add_add(rig, acc, acc, one);
    for (;;) {
        rig->interrupt_after = 2;
        enum vtrn_status status = rig_run(rig, 0);
        if (status == VTRN_OK) break;
        assert_int_equal(status, VTRN_INTERRUPTED);
        stops++;
    }
    assert_true(stops >= 3);
    expect_all(rig, acc, 2000);
    assert_int_equal(vtrn_core_counters(rig->core[0])->instructions, 2002);
}

static void test_run_to_a_position(void **state)
{
    struct rig *rig = *state;
    uint32_t t = tile(rig, VTRN_SBUF, 2, 2);
    for (int k = 0; k < 5; k++) add_memset(rig, t, k);
    assert_int_equal(vtrn_core_run(rig->core[0], 3, false), VTRN_OK);
    expect_all(rig, t, 2);
    rig_run_ok(rig, 0);
    expect_all(rig, t, 4);
}

static void test_input_without_data(void **state)
{
    struct rig *rig = *state;
    struct vtrn_tensor proto = { .space = VTRN_HBM, .dtype = VTRN_DT_F32, .rank = 2, .dim = { 4, 4 }, .role = VTRN_ROLE_INPUT };
    struct vtrn_error err = { 0 };
    struct vtrn_inst inst;
    uint32_t in;
    assert_int_equal(vtrn_prog_tensor(rig->prog, &proto, &in, &err), VTRN_OK);
    vtrn_inst_init(&inst, VTRN_OP_dma_copy);
    rig_set_ap(RIG_ARG(&inst, dma_copy, src), rig_ap(rig, in));
    rig_set_ap(RIG_ARG(&inst, dma_copy, dst), rig_ap(rig, tile(rig, VTRN_SBUF, 4, 4)));
    rig_append(rig, 0, &inst);
    assert_int_equal(rig_run(rig, 0), VTRN_INVALID);
    assert_non_null(strstr(vtrn_core_error(rig->core[0]), "has no data"));
    assert_null(vtrn_core_fault(rig->core[0]));
}

/* ---------------------------------------------------------------- dynamic offsets */
static void test_register_offsets(void **state)
{
    struct rig *rig = *state;
    uint32_t src = tile(rig, VTRN_SBUF, 4, 10), dst = tile(rig, VTRN_SBUF, 4, 3);
    float image[40];
    for (int i = 0; i < 40; i++) image[i] = (float)i;
    rig_write(rig, 0, src, image);
    add_copy(rig, rig_ap(rig, dst), rig_slice(rig, src, 0, 4, 1, 3), 0);
    for (int offset = -1; offset <= 6; offset++) {
        vtrn_core_rewind(rig->core[0]);
        vtrn_core_set_register(rig->core[0], 0, offset);
        rig_run_ok(rig, 0);
        float *got = rig_image(rig, 0, dst);
        for (int p = 0; p < 4; p++)
            for (int i = 0; i < 3; i++) assert_true(got[3 * p + i] == (float)(10 * p + 1 + offset + i));
        free(got);
    }
    vtrn_core_rewind(rig->core[0]);
    vtrn_core_set_register(rig->core[0], 0, 7);
    rig_run_fault(rig, 0, VTRN_FAULT_BOUNDS, "operand src: a dynamic offset of 7 elements moves the access outside the 10 elements");
    assert_int_equal(rig_run(rig, 0), VTRN_FAULT); /* and stays there */
}

static void test_register_offset_below(void **state)
{
    struct rig *rig = *state;
    uint32_t src = tile(rig, VTRN_SBUF, 4, 10), dst = tile(rig, VTRN_SBUF, 4, 3);
    add_memset(rig, src, 0);
    add_copy(rig, rig_ap(rig, dst), rig_slice(rig, src, 0, 4, 1, 3), 0);
    assert_int_equal(vtrn_core_run(rig->core[0], 1, false), VTRN_OK);
    vtrn_core_set_register(rig->core[0], 0, INT32_MIN);
    rig_run_fault(rig, 0, VTRN_FAULT_BOUNDS, "operand src");
}

/* ---------------------------------------------------------------- stochastic rounding, threads */
static struct vtrn_core *core_with(struct rig *rig, struct vtrn_pool *pool, bool stochastic, uint64_t seed)
{
    struct vtrn_exec_options options;
    struct vtrn_error err = { 0 };
    vtrn_exec_options_init(&options);
    options.pool = pool;
    options.stochastic_rounding = stochastic;
    options.seed = seed;
    struct vtrn_core *core = vtrn_core_create(rig->prog, rig->mem, 0, &options, &err);
    assert_non_null(core);
    return core;
}

/* src * 1 into a bf16 tile: between the two neighbours of each value, and right on average; the same bits for one and two
 * threads, other bits for another seed. */
static void test_stochastic_rounding(void **state)
{
    struct rig *rig = *state;
    enum { ROWS = 128, COLUMNS = 1500 };
    uint32_t src = tile(rig, VTRN_SBUF, ROWS, COLUMNS), dst = rig_tensor2(rig, 0, VTRN_SBUF, VTRN_DT_BF16, ROWS, COLUMNS);
    struct vtrn_inst inst;
    float *values = malloc(ROWS * COLUMNS * sizeof *values);
    uint16_t *first = NULL;
    for (int i = 0; i < ROWS * COLUMNS; i++) values[i] = 1.0f + 0x1p-9f; /* a quarter of the way from 1 to its neighbour */
    rig_write(rig, 0, src, values);
    vtrn_inst_init(&inst, VTRN_OP_tensor_copy);
    rig_set_ap(RIG_ARG(&inst, tensor_copy, src), rig_ap(rig, src));
    rig_set_ap(RIG_ARG(&inst, tensor_copy, dst), rig_ap(rig, dst));
    rig_append(rig, 0, &inst);
    for (int run = 0; run < 3; run++) {
        struct vtrn_core *core = core_with(rig, run == 1 ? NULL : rig->pool, true, run == 2 ? 99 : 7);
        int up = 0, same = 0;
        assert_int_equal(vtrn_core_run(core, UINT32_MAX, false), VTRN_OK);
        uint16_t *bits = rig_image(rig, 0, dst);
        for (int i = 0; i < ROWS * COLUMNS; i++) {
            assert_true(bits[i] == 0x3f80 || bits[i] == 0x3f81);
            up += bits[i] == 0x3f81;
            if (first) same += bits[i] == first[i];
        }
        assert_true(fabs(up / (double)(ROWS * COLUMNS) - 0.25) < 0.01);
        if (run == 1) assert_int_equal(same, ROWS * COLUMNS);
        if (run == 2) assert_true(same < ROWS * COLUMNS * 0.7);
        if (!first) first = bits;
        else free(bits);
        vtrn_core_destroy(core);
    }
    free(first);
    free(values);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_unwritten_reads_are_nan, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_slices, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_release_after_last_use, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_release_keeps_results_right, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_groups_begin_anew_in_loops, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_groups_begin_anew_with_release, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_loop_of_no_turns, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_declarations_in_loops, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_loops_after_forgetting, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_interrupt_goes_on, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_run_to_a_position, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_input_without_data, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_register_offsets, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_register_offset_below, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_stochastic_rounding, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
