/* exec/control.c: registers, their arithmetic, loops. Loops write what they do to a trail in HBM, which is compared with the
 * same loops in C. */
#include <math.h>

#include "exec_rig.h"

static void move(struct rig *rig, uint32_t reg, int64_t value)
{
    struct vtrn_inst inst;
    vtrn_inst_init(&inst, VTRN_OP_register_move);
    rig_set_reg(RIG_ARG(&inst, register_move, dst), reg);
    rig_set_int(RIG_ARG(&inst, register_move, src), value);
    rig_append(rig, 0, &inst);
}

static void alu(struct rig *rig, int op, uint32_t dst, uint32_t lhs, int64_t rhs, bool rhs_is_reg)
{
    struct vtrn_inst inst;
    vtrn_inst_init(&inst, VTRN_OP_register_alu);
    rig_set_reg(RIG_ARG(&inst, register_alu, dst), dst);
    rig_set_int(RIG_ARG(&inst, register_alu, op), op);
    rig_set_reg(RIG_ARG(&inst, register_alu, lhs), lhs);
    if (rhs_is_reg) rig_set_reg(RIG_ARG(&inst, register_alu, rhs), (uint32_t)rhs);
    else rig_set_int(RIG_ARG(&inst, register_alu, rhs), rhs);
    rig_append(rig, 0, &inst);
}

/* A bound: constants are given as they are, registers as REG + number. */
#define REG (INT64_C(1) << 40)
static void set_bound(struct vtrn_value *value, int64_t bound)
{
    if (bound >= REG) rig_set_reg(value, (uint32_t)(bound - REG));
    else rig_set_int(value, bound);
}

static void begin(struct rig *rig, uint32_t index, int64_t lower, int64_t upper, int64_t step)
{
    struct vtrn_inst inst;
    vtrn_inst_init(&inst, VTRN_OP_loop_begin);
    rig_set_reg(RIG_ARG(&inst, loop_begin, index), index);
    set_bound(RIG_ARG(&inst, loop_begin, lower), lower);
    set_bound(RIG_ARG(&inst, loop_begin, upper), upper);
    set_bound(RIG_ARG(&inst, loop_begin, step), step);
    rig_append(rig, 0, &inst);
}

static void end(struct rig *rig)
{
    struct vtrn_inst inst;
    vtrn_inst_init(&inst, VTRN_OP_loop_end);
    rig_append(rig, 0, &inst);
}

static void begin_while(struct rig *rig, uint32_t condition)
{
    struct vtrn_inst inst;
    vtrn_inst_init(&inst, VTRN_OP_while_begin);
    rig_set_reg(RIG_ARG(&inst, while_begin, condition), condition);
    rig_append(rig, 0, &inst);
}

static int32_t reg(const struct rig *rig, uint32_t number) { return vtrn_core_register(rig->core[0], number); }

/* ---- arithmetic ---- */
static int32_t model_alu(int op, int32_t a, int32_t b)
{
    double quotient = b ? floor((double)a / (double)b) : 0; /* exact: both have 32 bits */
    switch (op) {
    case VTRN_REGOP_ADD: return (int32_t)((uint32_t)a + (uint32_t)b);
    case VTRN_REGOP_SUBTRACT: return (int32_t)((uint32_t)a - (uint32_t)b);
    case VTRN_REGOP_MULTIPLY: return (int32_t)((uint32_t)a * (uint32_t)b);
    case VTRN_REGOP_DIVIDE: return (int32_t)(uint32_t)(int64_t)quotient;
    case VTRN_REGOP_MODULO: return (int32_t)((double)a - quotient * (double)b);
    case VTRN_REGOP_MAXIMUM: return a > b ? a : b;
    case VTRN_REGOP_MINIMUM: return a < b ? a : b;
    case VTRN_REGOP_EQUAL: return a == b;
    case VTRN_REGOP_NOT_EQUAL: return a != b;
    case VTRN_REGOP_LESS: return a < b;
    case VTRN_REGOP_LESS_EQUAL: return a <= b;
    case VTRN_REGOP_AND: return a & b;
    case VTRN_REGOP_OR: return a | b;
    case VTRN_REGOP_XOR: return a ^ b;
    case VTRN_REGOP_SHL: return b > 31 ? 0 : (int32_t)((uint32_t)a << b);
    default: return (int32_t)floor((double)a / ldexp(1, b > 40 ? 40 : b));
    }
}

static void test_alu(void **state)
{
    (void)state;
    static const int32_t values[] = { 0, 1, -1, 2, 3, -3, 7, -7, 31, 32, 33, 1000, -1000, 65536, INT32_MAX, INT32_MIN, INT32_MIN + 1 };
    enum { VALUES = sizeof values / sizeof *values };
    for (int op = VTRN_REGOP_ADD; op <= VTRN_REGOP_SHR; op++) {
        struct rig *rig = rig_create("trn2", 1, 1);
        for (int i = 0; i < VALUES; i++)
            for (int j = 0; j < VALUES; j++) {
                int32_t a = values[i], b = values[j];
                if ((op == VTRN_REGOP_DIVIDE || op == VTRN_REGOP_MODULO) && b == 0) continue;
                if ((op == VTRN_REGOP_SHL || op == VTRN_REGOP_SHR) && b < 0) continue;
                move(rig, 1, a);
                move(rig, 2, b);
                alu(rig, op, 3, 1, 2, true);
                alu(rig, op, 4, 1, b, false);
                rig_run_ok(rig, 0);
                if (reg(rig, 3) != model_alu(op, a, b))
                    fail_msg("%s(%d, %d) = %d", vtrn_enum_name(VTRN_ENUMS_REGOP, op), a, b, reg(rig, 3));
                assert_int_equal(reg(rig, 4), reg(rig, 3));
            }
        rig_destroy(rig);
    }
}

static void test_alu_faults(void **state)
{
    (void)state;
    static const int ops[] = { VTRN_REGOP_DIVIDE, VTRN_REGOP_MODULO, VTRN_REGOP_SHL, VTRN_REGOP_SHR };
    for (int k = 0; k < 4; k++) {
        struct rig *rig = rig_create("trn2", 1, 1);
        move(rig, 1, 5);
        move(rig, 2, k < 2 ? 0 : -1);
        alu(rig, ops[k], 3, 1, 2, true);
        rig_run_fault(rig, 0, VTRN_FAULT_VALUE, k < 2 ? "divided" : "a shift needs 0 or more");
        rig_destroy(rig);
    }
}

/* ---- memory ---- */
static void test_load_store(void **state)
{
    (void)state;
    static const uint8_t dtypes[] = { VTRN_DT_I8, VTRN_DT_U8, VTRN_DT_I16, VTRN_DT_U16, VTRN_DT_I32, VTRN_DT_U32 };
    static const int32_t want[] = { -2, 254, -2, 65534, -2, -2 };
    for (int space = 0; space < 2; space++)
        for (int k = 0; k < 6; k++) {
            struct rig *rig = rig_create("trn2", 1, 1);
            uint32_t src = rig_tensor2(rig, 0, space ? VTRN_HBM : VTRN_SBUF, dtypes[k], 3, 4), bits = UINT32_C(0xfffffffe);
            uint8_t *image = rig_fill(rig, 0, src);
            size_t bytes = vtrn_dtypes[dtypes[k]].size_bytes;
            memcpy(image + (1 * 4 + 2) * bytes, &bits, bytes);
            rig_write(rig, 0, src, image);
            struct vtrn_inst inst;
            vtrn_inst_init(&inst, VTRN_OP_register_load);
            rig_set_reg(RIG_ARG(&inst, register_load, dst), 5);
            rig_set_ap(RIG_ARG(&inst, register_load, src), rig_slice(rig, src, 1, 1, 2, 1));
            rig_append(rig, 0, &inst);
            vtrn_inst_init(&inst, VTRN_OP_register_store);
            rig_set_reg(RIG_ARG(&inst, register_store, src), 5);
            rig_set_ap(RIG_ARG(&inst, register_store, dst), rig_slice(rig, src, 2, 1, 3, 1));
            rig_append(rig, 0, &inst);
            rig_run_ok(rig, 0);
            assert_int_equal(reg(rig, 5), want[k]);
            memcpy(image + (2 * 4 + 3) * bytes, &bits, bytes);
            uint8_t *after = rig_image(rig, 0, src);
            assert_memory_equal(image, after, 12 * bytes);
            free(image);
            free(after);
            rig_destroy(rig);
        }
}

/* ---- loops ---- */
enum { TRAIL = 100 }; /* register: a running hash of what the loops did */
static void leave_trail(struct rig *rig, uint32_t index)
{
    alu(rig, VTRN_REGOP_MULTIPLY, TRAIL, TRAIL, 31, false);
    alu(rig, VTRN_REGOP_ADD, TRAIL, TRAIL, index, true);
}
static uint32_t trail(uint32_t hash, int64_t index) { return hash * 31 + (uint32_t)index; }

static void test_loops(void **state)
{
    (void)state;
    static const struct {
        int64_t lower, upper, step;
    } ranges[] = { { 0, 5, 1 }, { 0, 5, 2 }, { 3, 4, 7 }, { 5, 5, 1 }, { 6, 5, 1 }, { -7, 8, 5 }, { INT32_MAX - 3, INT32_MAX, 2 } };
    enum { RANGES = sizeof ranges / sizeof *ranges };
    for (int a = 0; a < RANGES; a++)
        for (int b = 0; b < RANGES; b++) {
            struct rig *rig = rig_create("trn2", 1, 1);
            uint32_t want = 0;
            move(rig, 10, ranges[b].upper);
            begin(rig, 1, ranges[a].lower, ranges[a].upper, ranges[a].step);
            leave_trail(rig, 1);
            begin(rig, 2, ranges[b].lower, REG + 10, ranges[b].step); /* bound in a register */
            leave_trail(rig, 2);
            move(rig, 2, 12345); /* does not steer the loop */
            end(rig);
            leave_trail(rig, 1);
            end(rig);
            rig_run_ok(rig, 0);
            for (int64_t i = ranges[a].lower; i < ranges[a].upper; i += ranges[a].step) {
                want = trail(want, i);
                for (int64_t j = ranges[b].lower; j < ranges[b].upper; j += ranges[b].step) want = trail(want, j);
                want = trail(want, i);
            }
            assert_int_equal((uint32_t)reg(rig, TRAIL), want);
            assert_int_equal(vtrn_core_position(rig->core[0]), rig->prog->code[0].count);
            rig_destroy(rig);
        }
}

/* Bounds are read once: changing the register inside does not change the number of turns. Falling ranges with the step in
 * a register. */
static void test_bounds(void **state)
{
    (void)state;
    struct rig *rig = rig_create("trn2", 1, 1);
    move(rig, 10, 4);
    begin(rig, 1, 0, REG + 10, 1);
    move(rig, 10, 0);
    leave_trail(rig, 1);
    end(rig);
    move(rig, 11, -3);
    begin(rig, 1, 10, -1, REG + 11);
    leave_trail(rig, 1);
    end(rig);
    rig_run_ok(rig, 0);
    uint32_t want = 0;
    for (int i = 0; i < 4; i++) want = trail(want, i);
    for (int i = 10; i > -1; i -= 3) want = trail(want, i);
    assert_int_equal((uint32_t)reg(rig, TRAIL), want);
    move(rig, 11, 0);
    begin(rig, 1, 0, 5, REG + 11);
    end(rig);
    rig_run_fault(rig, 0, VTRN_FAULT_LOOP, "operand step: 0");
    rig_destroy(rig);
}

static void test_while(void **state)
{
    (void)state;
    for (int start = 0; start < 4; start++) {
        struct rig *rig = rig_create("trn2", 1, 1);
        uint32_t want = 0;
        move(rig, 1, start);
        begin_while(rig, 1);
        leave_trail(rig, 1);
        begin(rig, 2, 0, REG + 1, 1);
        leave_trail(rig, 2);
        end(rig);
        alu(rig, VTRN_REGOP_SUBTRACT, 1, 1, 1, false);
        end(rig);
        rig_run_ok(rig, 0);
        for (int i = start; i; i--) {
            want = trail(want, i);
            for (int j = 0; j < i; j++) want = trail(want, j);
        }
        assert_int_equal((uint32_t)reg(rig, TRAIL), want);
        rig_destroy(rig);
    }
}

/* A list that still grows: run after every append, as a tracing front end may do. */
static void test_growing_list(void **state)
{
    (void)state;
    struct rig *rig = rig_create("trn2", 1, 1);
    begin(rig, 1, 0, 3, 1);
    rig_run_ok(rig, 0);
    leave_trail(rig, 1);
    rig_run_ok(rig, 0); /* the first turn, as far as it is known */
    assert_int_equal((uint32_t)reg(rig, TRAIL), trail(0, 0));
    end(rig);
    rig_run_ok(rig, 0);
    assert_int_equal((uint32_t)reg(rig, TRAIL), trail(trail(trail(0, 0), 1), 2));
    begin(rig, 1, 3, 3, 1); /* empty: where it ends is not known yet */
    assert_int_equal(rig_run(rig, 0), VTRN_BLOCKED);
    assert_null(vtrn_core_wait(rig->core[0]));
    leave_trail(rig, 1);
    assert_int_equal(rig_run(rig, 0), VTRN_BLOCKED);
    end(rig);
    move(rig, 7, 1);
    rig_run_ok(rig, 0);
    assert_int_equal((uint32_t)reg(rig, TRAIL), trail(trail(trail(0, 0), 1), 2));
    assert_int_equal(reg(rig, 7), 1);
    rig_destroy(rig);
}

static void test_interrupt(void **state)
{
    (void)state;
    struct rig *rig = rig_create("trn2", 1, 1);
    move(rig, 1, 1);
    begin_while(rig, 1);
    leave_trail(rig, 1);
    end(rig);
    move(rig, 7, 42);
    rig->interrupt_after = 3;
    assert_int_equal(rig_run(rig, 0), VTRN_INTERRUPTED);
    vtrn_core_set_register(rig->core[0], 1, 0); /* and on: the loop ends now */
    rig_run_ok(rig, 0);
    assert_int_equal(reg(rig, 7), 42);
    rig_destroy(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alu),          cmocka_unit_test(test_alu_faults), cmocka_unit_test(test_load_store),
        cmocka_unit_test(test_loops),        cmocka_unit_test(test_bounds),     cmocka_unit_test(test_while),
        cmocka_unit_test(test_growing_list), cmocka_unit_test(test_interrupt),
    };
    return cmocka_run_group_tests_name("exec_control", tests, NULL, NULL);
}
