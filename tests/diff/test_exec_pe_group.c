/* exec/pe_group.c: lists in which products follow each other, run as a whole and one instruction at a time. Memories, counters,
 * positions and faults must be the same. What one instruction computes is test_exec_pe.c's. */
#include "exec_rig.h"

enum { TARGETS = 2, OPERANDS = 3, STEPS = 40, K = 128, M = 48, N = 320, WIDE = N + 8 };

struct list {
    struct rig *rig;
    uint32_t dst[TARGETS], s[OPERANDS], x[OPERANDS], row; /* row: SBUF, for what stands between products */
};

static uint32_t filled(struct rig *rig, int space, int dtype, int64_t rows, int64_t columns)
{
    uint32_t tensor = rig_tensor2(rig, 0, space, dtype, rows, columns);
    free(rig_fill(rig, 0, tensor));
    return tensor;
}

static void add_product(struct list *list, bool may_leave)
{
    struct rig *rig = list->rig;
    struct vtrn_inst inst;
    int64_t k = rig_below(4) ? K : 1 + rig_below(K), kind = rig_below(12);
    int64_t m = kind == 0 ? 1 + rig_below(M) : M, n = kind == 1 ? 1 + rig_below(N) : N, at = rig_below(3);
    struct vtrn_ap x = rig_slice(rig, list->x[rig_below(OPERANDS)], 0, k, at, n);
    vtrn_inst_init(&inst, VTRN_OP_nc_matmul);
    rig_set_ap(RIG_ARG(&inst, nc_matmul, dst), rig_slice(rig, list->dst[rig_below(8) == 0], 0, m, 0, n));
    rig_set_ap(RIG_ARG(&inst, nc_matmul, stationary), rig_slice(rig, list->s[rig_below(OPERANDS)], 0, k, rig_below(3), m));
    if (kind == 2) x.dim[1].stride = 0; /* kern does not read it where it is */
    rig_set_ap(RIG_ARG(&inst, nc_matmul, moving), x);
    if (may_leave) {
        struct vtrn_value *value = RIG_ARG(&inst, nc_matmul, moving);
        value->ap.dim[1].count = n;
        rig_dyn(&inst, &value->ap, VTRN_DYN_REG, 0, VTRN_DT_I32, 1);
    }
    if (rig_below(3) == 0) rig_set_int(RIG_ARG(&inst, nc_matmul, accumulate), rig_below(4) != 0);
    rig_append(rig, 0, &inst);
}

static void add_read(struct list *list)
{
    struct vtrn_inst inst;
    vtrn_inst_init(&inst, VTRN_OP_tensor_copy);
    rig_set_ap(RIG_ARG(&inst, tensor_copy, dst), rig_slice(list->rig, list->x[rig_below(OPERANDS)], 0, M, rig_below(8), N));
    rig_set_ap(RIG_ARG(&inst, tensor_copy, src), rig_slice(list->rig, list->dst[rig_below(TARGETS)], 0, M, 0, N));
    rig_append(list->rig, 0, &inst);
}

/* The same list for the same seed. A register that is `leaves` moves some operands. */
static void make_list(struct list *list, uint64_t seed, int32_t leaves)
{
    struct rig *rig = list->rig = rig_create("trn2", 1, 5);
    bool wide = seed % 3 == 0;
    rig_seed(seed);
    for (int i = 0; i < TARGETS; i++) list->dst[i] = rig_tensor2(rig, 0, VTRN_PSUM, VTRN_DT_F32, M, N);
    for (int i = 0; i < OPERANDS; i++) {
        list->s[i] = filled(rig, VTRN_SBUF, wide ? VTRN_DT_F32 : i ? VTRN_DT_BF16 : VTRN_DT_F16, K, M + 2);
        list->x[i] = filled(rig, VTRN_SBUF, wide ? VTRN_DT_F32 : i ? VTRN_DT_BF16 : VTRN_DT_F8E4M3, K, WIDE);
    }
    list->row = filled(rig, VTRN_SBUF, VTRN_DT_F32, M, N);
    for (int i = 0; i < STEPS; i++) {
        if (rig_below(6) == 0) add_read(list);
        else add_product(list, rig_below(8) == 0);
    }
    vtrn_core_set_register(rig->core[0], 0, leaves);
}

static void compare(struct list *a, struct list *b)
{
    const struct vtrn_counters *x = vtrn_core_counters(a->rig->core[0]), *y = vtrn_core_counters(b->rig->core[0]);
    assert_memory_equal(x, y, sizeof *x);
    assert_int_equal(vtrn_core_position(a->rig->core[0]), vtrn_core_position(b->rig->core[0]));
    for (uint32_t t = 0; t < a->rig->prog->tensors; t++) {
        uint8_t *left = rig_image(a->rig, 0, t), *right = rig_image(b->rig, 0, t);
        size_t bytes = (size_t)rig_elems(a->rig, t) * vtrn_dtypes[a->rig->prog->tensor[t].dtype].size_bytes;
        if (memcmp(left, right, bytes) != 0) fail_msg("tensor %u differs", t);
        free(left);
        free(right);
    }
}

static void whole_list_equals_single_steps(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct list whole, steps;
        make_list(&whole, seed, 0);
        make_list(&steps, seed, 0);
        rig_run_ok(whole.rig, 0);
        for (uint32_t pc = 1; pc <= STEPS; pc++) assert_int_equal(vtrn_core_run(steps.rig->core[0], pc, false), VTRN_OK);
        compare(&whole, &steps);
        rig_destroy(whole.rig);
        rig_destroy(steps.rig);
    }
}

static void a_fault_stops_at_its_instruction(void **state)
{
    int faults = 0;
    (void)state;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        struct list whole, steps;
        enum vtrn_status status = VTRN_OK;
        make_list(&whole, seed, 1000);
        make_list(&steps, seed, 1000);
        for (uint32_t pc = 1; pc <= STEPS && status == VTRN_OK; pc++) status = vtrn_core_run(steps.rig->core[0], pc, false);
        assert_int_equal(rig_run(whole.rig, 0), status);
        if (status == VTRN_FAULT) {
            const struct vtrn_fault *a = vtrn_core_fault(whole.rig->core[0]), *b = vtrn_core_fault(steps.rig->core[0]);
            assert_int_equal(a->pc, b->pc);
            assert_string_equal(a->text, b->text);
            faults++;
        }
        compare(&whole, &steps);
        rig_destroy(whole.rig);
        rig_destroy(steps.rig);
    }
    assert_true(faults > 10);
}

/* A run that ends in the middle of a group, or is interrupted there, goes on with the rest. */
static void a_run_stops_where_it_was_told(void **state)
{
    (void)state;
    for (uint64_t seed = 100; seed < 120; seed++) {
        struct list whole, parts;
        uint32_t end = 1 + (uint32_t)(seed * 7 % STEPS);
        make_list(&whole, seed, 0);
        make_list(&parts, seed, 0);
        rig_run_ok(whole.rig, 0);
        assert_int_equal(vtrn_core_run(parts.rig->core[0], end, false), VTRN_OK);
        assert_int_equal(vtrn_core_position(parts.rig->core[0]), end);
        rig_run_ok(parts.rig, 0);
        compare(&whole, &parts);
        rig_destroy(whole.rig);
        rig_destroy(parts.rig);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_list_equals_single_steps),
        cmocka_unit_test(a_fault_stops_at_its_instruction),
        cmocka_unit_test(a_run_stops_where_it_was_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
