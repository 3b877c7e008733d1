/* chip: one and two cores, in one and two host threads; rendezvous, deadlocks and faults in words; open lists; progress and
 * interruption. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include "chip/chip.h"

#include <pthread.h>

#include <cmocka.h>

struct rig {
    struct vtrn_prog *prog;
    struct vtrn_chip *chip;
    uint32_t file;
    int line; /* of the kernel, counted up with every instruction */
    /* progress */
    int asked, stop_after;
    double share;
    pthread_t thread;
    bool elsewhere;
};

static bool progress(void *self, double share)
{
    struct rig *rig = self;
    rig->asked++;
    rig->share = share;
    if (!pthread_equal(pthread_self(), rig->thread)) rig->elsewhere = true;
    return rig->stop_after == 0 || rig->asked < rig->stop_after;
}

static struct rig rig_create(int cores)
{
    struct vtrn_error err = { 0 };
    struct rig rig = { .prog = vtrn_prog_create(vtrn_arch_find("trn2"), cores, &err), .line = 10, .thread = pthread_self() };
    assert_non_null(rig.prog);
    assert_int_equal(vtrn_prog_string(rig.prog, "dir/kernel.py", 13, &rig.file), VTRN_OK);
    return rig;
}

static void start(struct rig *rig, int threads, bool with_progress)
{
    struct vtrn_run_options options;
    struct vtrn_error err = { 0 };
    vtrn_run_options_init(&options);
    options.threads = threads;
    if (with_progress) options.progress = progress;
    options.progress_self = rig;
    rig->chip = vtrn_chip_create(rig->prog, &options, &err);
    if (!rig->chip) fail_msg("%s", err.text);
}

static void rig_destroy(struct rig *rig)
{
    vtrn_chip_destroy(rig->chip);
    vtrn_prog_destroy(rig->prog);
}

#define ARG(inst, opname, operand) (&((struct vtrn_args_##opname *)(void *)(inst)->arg)->operand)
static void append(struct rig *rig, int core, struct vtrn_inst *inst)
{
    struct vtrn_error err = { 0 };
    assert_int_equal(vtrn_prog_loc(rig->prog, rig->file, (uint32_t)rig->line++, &inst->loc), VTRN_OK);
    if (vtrn_prog_append(rig->prog, core, inst, NULL, &err) != VTRN_OK) fail_msg("%s", err.text);
}

static uint32_t tensor(struct rig *rig, int core, int space, int64_t rows, int64_t columns)
{
    struct vtrn_tensor proto = {
        .space = (uint8_t)space, .dtype = VTRN_DT_F32, .rank = 2, .core = (uint8_t)core, .dim = { rows, columns }
    };
    struct vtrn_error err = { 0 };
    uint32_t index;
    if (vtrn_prog_tensor(rig->prog, &proto, &index, &err) != VTRN_OK) fail_msg("%s", err.text);
    return index;
}

static struct vtrn_value whole(const struct rig *rig, uint32_t index)
{
    const struct vtrn_tensor *t = &rig->prog->tensor[index];
    struct vtrn_value value = { .kind = VTRN_V_AP };
    value.ap = (struct vtrn_ap){ .tensor = index, .dtype = t->dtype, .ndim = 2 };
    value.ap.dim[0] = (struct vtrn_dim){ vtrn_space_on_chip(t->space) ? 1 : t->dim[1], t->dim[0] };
    value.ap.dim[1] = (struct vtrn_dim){ 1, t->dim[1] };
    return value;
}

static void add_memset(struct rig *rig, int core, uint32_t dst, double number)
{
    struct vtrn_inst inst;
    vtrn_inst_init(&inst, VTRN_OP_memset);
    *ARG(&inst, memset, dst) = whole(rig, dst);
    ARG(&inst, memset, value)->kind = VTRN_V_NUM;
    ARG(&inst, memset, value)->num = number;
    append(rig, core, &inst);
}

static void add_increment(struct rig *rig, int core, uint32_t t)
{
    struct vtrn_inst inst;
    vtrn_inst_init(&inst, VTRN_OP_tensor_scalar);
    *ARG(&inst, tensor_scalar, dst) = whole(rig, t);
    *ARG(&inst, tensor_scalar, data) = whole(rig, t);
    ARG(&inst, tensor_scalar, op0)->kind = VTRN_V_INT;
    ARG(&inst, tensor_scalar, op0)->i = VTRN_ALU_ADD;
    ARG(&inst, tensor_scalar, operand0)->kind = VTRN_V_NUM;
    ARG(&inst, tensor_scalar, operand0)->num = 1;
    append(rig, core, &inst);
}

static void add_copy(struct rig *rig, int core, uint32_t dst, uint32_t src)
{
    struct vtrn_inst inst;
    vtrn_inst_init(&inst, VTRN_OP_dma_copy);
    *ARG(&inst, dma_copy, dst) = whole(rig, dst);
    *ARG(&inst, dma_copy, src) = whole(rig, src);
    append(rig, core, &inst);
}

static void add_barrier(struct rig *rig, int core, uint32_t shared)
{
    struct vtrn_inst inst;
    vtrn_inst_init(&inst, VTRN_OP_core_barrier);
    *ARG(&inst, core_barrier, data) = whole(rig, shared);
    ARG(&inst, core_barrier, cores)->kind = VTRN_V_INTS;
    ARG(&inst, core_barrier, cores)->count = 2;
    ARG(&inst, core_barrier, cores)->ints = vtrn_inst_new_ints(&inst, 2);
    ARG(&inst, core_barrier, cores)->ints[0] = 0;
    ARG(&inst, core_barrier, cores)->ints[1] = 1;
    append(rig, core, &inst);
}

static void add_loop(struct rig *rig, int core, int64_t turns)
{
    struct vtrn_inst inst;
    vtrn_inst_init(&inst, VTRN_OP_loop_begin);
    ARG(&inst, loop_begin, index)->kind = VTRN_V_REG;
    ARG(&inst, loop_begin, index)->i = core;
    ARG(&inst, loop_begin, lower)->kind = ARG(&inst, loop_begin, upper)->kind = ARG(&inst, loop_begin, step)->kind = VTRN_V_INT;
    ARG(&inst, loop_begin, lower)->i = 0;
    ARG(&inst, loop_begin, upper)->i = turns;
    ARG(&inst, loop_begin, step)->i = 1;
    append(rig, core, &inst);
}

static void add_end(struct rig *rig, int core)
{
    struct vtrn_inst inst;
    vtrn_inst_init(&inst, VTRN_OP_loop_end);
    append(rig, core, &inst);
}

static float value_of(struct rig *rig, int core, uint32_t hbm)
{
    struct vtrn_error err = { 0 };
    void *bytes;
    size_t size;
    assert_int_equal(vtrn_mem_hbm(vtrn_chip_mem(rig->chip), rig->prog, core, hbm, &bytes, &size, &err), VTRN_OK);
    return ((float *)bytes)[size / 4 - 1];
}

static void run_ok(struct rig *rig, unsigned closed)
{
    struct vtrn_error err = { 0 };
    enum vtrn_status status = vtrn_chip_run(rig->chip, closed, true, &err);
    if (status != VTRN_OK) fail_msg("%s: %s", vtrn_status_name(status), err.text);
}

static void run_fails(struct rig *rig, unsigned closed, enum vtrn_status status, const char *words)
{
    struct vtrn_error err = { 0 };
    assert_int_equal(vtrn_chip_run(rig->chip, closed, true, &err), status);
    if (!strstr(err.text, words)) fail_msg("\"%s\" does not say \"%s\"", err.text, words);
}

/* ---------------------------------------------------------------- one core */
static void test_one_core(void **state)
{
    (void)state;
    for (int threads = 1; threads <= 2; threads++) {
        struct rig rig = rig_create(1);
        uint32_t t = tensor(&rig, 0, VTRN_SBUF, 128, 1000), out = tensor(&rig, 0, VTRN_HBM, 128, 1000);
        struct vtrn_counters counters;
        add_memset(&rig, 0, t, 3);
        for (int k = 0; k < 10; k++) add_increment(&rig, 0, t);
        add_copy(&rig, 0, out, t);
        start(&rig, threads, false);
        run_ok(&rig, 1);
        assert_true(value_of(&rig, 0, out) == 13);
        vtrn_chip_counters(rig.chip, &counters);
        assert_int_equal(counters.instructions, 12);
        assert_int_equal(counters.dma_instructions, 1);
        assert_int_equal(counters.hbm_write_bytes, 128 * 1000 * 4);
        assert_null(vtrn_chip_fault(rig.chip));
        rig_destroy(&rig);
    }
}

/* The list may grow between runs. */
static void test_open_list(void **state)
{
    struct rig rig = rig_create(1);
    uint32_t t = tensor(&rig, 0, VTRN_SBUF, 4, 4), out = tensor(&rig, 0, VTRN_HBM, 4, 4);
    struct vtrn_error err = { 0 };
    (void)state;
    start(&rig, 1, false);
    add_memset(&rig, 0, t, 1);
    assert_int_equal(vtrn_chip_run(rig.chip, 0, false, &err), VTRN_OK);
    add_loop(&rig, 0, 5);
    add_increment(&rig, 0, t);
    add_end(&rig, 0);
    add_copy(&rig, 0, out, t);
    assert_int_equal(vtrn_chip_run(rig.chip, 1, false, &err), VTRN_OK);
    assert_true(value_of(&rig, 0, out) == 6);
    rig_destroy(&rig);
}

static void test_fault_in_words(void **state)
{
    struct rig rig = rig_create(1);
    uint32_t t = tensor(&rig, 0, VTRN_SBUF, 4, 4);
    struct vtrn_inst inst;
    (void)state;
    add_memset(&rig, 0, t, 1);
    vtrn_inst_init(&inst, VTRN_OP_loop_begin);
    ARG(&inst, loop_begin, index)->kind = VTRN_V_REG;
    ARG(&inst, loop_begin, lower)->kind = ARG(&inst, loop_begin, upper)->kind = ARG(&inst, loop_begin, step)->kind = VTRN_V_INT;
    ARG(&inst, loop_begin, step)->kind = VTRN_V_REG; /* holds 0 */
    ARG(&inst, loop_begin, step)->i = 3;
    append(&rig, 0, &inst);
    add_end(&rig, 0);
    start(&rig, 1, false);
    run_fails(&rig, 1, VTRN_FAULT, "kernel.py:11 nisa.loop_begin: operand step: 0");
    assert_int_equal(vtrn_chip_fault(rig.chip)->reason, VTRN_FAULT_LOOP);
    assert_int_equal(vtrn_chip_fault(rig.chip)->pc, 1);
    rig_destroy(&rig);
}

/* ---------------------------------------------------------------- two cores */
/* Core 0 counts up and hands over at each barrier, core 1 doubles: both orders of host threads give the same. */
static void test_barriers(void **state)
{
    (void)state;
    for (int threads = 1; threads <= 2; threads++)
        for (int repeat = 0; repeat < 20; repeat++) {
            struct rig rig = rig_create(2);
            uint32_t shared = tensor(&rig, VTRN_CORES_MAX, VTRN_HBM_SHARED, 8, 8);
            uint32_t t[2] = { tensor(&rig, 0, VTRN_SBUF, 8, 8), tensor(&rig, 1, VTRN_SBUF, 8, 8) };
            add_memset(&rig, 0, t[0], 1);
            for (int round = 0; round < 4; round++) {
                if (round) add_copy(&rig, 0, t[0], shared);
                add_increment(&rig, 0, t[0]);
                add_copy(&rig, 0, shared, t[0]);
                add_barrier(&rig, 0, shared);
                add_barrier(&rig, 0, shared);
                add_barrier(&rig, 1, shared);
                add_copy(&rig, 1, t[1], shared);
                for (int k = 0; k < 10; k++) add_increment(&rig, 1, t[1]);
                add_copy(&rig, 1, shared, t[1]);
                add_barrier(&rig, 1, shared);
            }
            start(&rig, threads, false);
            run_ok(&rig, 3);
            assert_true(value_of(&rig, 0, shared) == 1 + 4 * 11);
            rig_destroy(&rig);
        }
}

static void test_deadlock_in_words(void **state)
{
    (void)state;
    for (int threads = 1; threads <= 2; threads++) {
        struct rig rig = rig_create(2);
        uint32_t shared = tensor(&rig, VTRN_CORES_MAX, VTRN_HBM_SHARED, 8, 8), t = tensor(&rig, 1, VTRN_SBUF, 8, 8);
        add_memset(&rig, 1, t, 1);
        add_barrier(&rig, 0, shared); /* line 11 */
        start(&rig, threads, false);
        run_fails(&rig, 3, VTRN_DEADLOCK, "kernel.py:11 nisa.core_barrier: deadlock: core 0 waits for core 1");
        run_fails(&rig, 3, VTRN_DEADLOCK, "the end of its kernel");
        assert_int_equal(vtrn_chip_fault(rig.chip)->reason, VTRN_FAULT_DEADLOCK);
        assert_int_equal(vtrn_chip_fault(rig.chip)->core, 0);
        rig_destroy(&rig);
    }
}

/* An open list may still bring the other side. */
static void test_blocked_then_met(void **state)
{
    struct rig rig = rig_create(2);
    uint32_t shared = tensor(&rig, VTRN_CORES_MAX, VTRN_HBM_SHARED, 8, 8);
    struct vtrn_error err = { 0 };
    (void)state;
    add_barrier(&rig, 0, shared);
    start(&rig, 2, false);
    assert_int_equal(vtrn_chip_run(rig.chip, 1, false, &err), VTRN_BLOCKED);
    add_barrier(&rig, 1, shared);
    assert_int_equal(vtrn_chip_run(rig.chip, 3, false, &err), VTRN_OK);
    rig_destroy(&rig);
}

static void test_mismatch(void **state)
{
    struct rig rig = rig_create(2);
    uint32_t shared = tensor(&rig, VTRN_CORES_MAX, VTRN_HBM_SHARED, 8, 8);
    uint32_t a = tensor(&rig, 1, VTRN_SBUF, 8, 8), b = tensor(&rig, 1, VTRN_SBUF, 8, 8);
    struct vtrn_inst inst;
    (void)state;
    add_barrier(&rig, 0, shared);
    vtrn_inst_init(&inst, VTRN_OP_sendrecv);
    *ARG(&inst, sendrecv, src) = whole(&rig, a);
    *ARG(&inst, sendrecv, dst) = whole(&rig, b);
    ARG(&inst, sendrecv, send_to_rank)->kind = ARG(&inst, sendrecv, recv_from_rank)->kind = ARG(&inst, sendrecv, pipe_id)->kind =
        VTRN_V_INT;
    append(&rig, 1, &inst);
    start(&rig, 1, false);
    run_fails(&rig, 3, VTRN_FAULT, "both must name the same rendezvous");
    assert_int_equal(vtrn_chip_fault(rig.chip)->reason, VTRN_FAULT_MISMATCH);
    rig_destroy(&rig);
}

/* ---------------------------------------------------------------- progress */
/* A loop that runs long enough for a few questions; both cores run it. */
static struct rig long_program(int cores)
{
    struct rig rig = rig_create(cores);
    for (int c = 0; c < cores; c++) {
        uint32_t t = tensor(&rig, c, VTRN_SBUF, 128, 2000);
        add_memset(&rig, c, t, 0);
        add_loop(&rig, c, 1000000);
        add_increment(&rig, c, t);
        add_end(&rig, c);
    }
    return rig;
}

static void test_progress_and_interrupt(void **state)
{
    (void)state;
    for (int cores = 1; cores <= 2; cores++) {
        struct rig rig = long_program(cores);
        rig.stop_after = 3;
        start(&rig, 2, true);
        run_fails(&rig, cores == 1 ? 1 : 3, VTRN_INTERRUPTED, "interrupted at kernel.py:");
        assert_int_equal(rig.asked, 3);
        assert_false(rig.elsewhere);  /* only in the thread that called */
        assert_true(rig.share == -1); /* a loop says nothing of its turns */
        rig.asked = 0;                /* and goes on */
        run_fails(&rig, cores == 1 ? 1 : 3, VTRN_INTERRUPTED, "interrupted at kernel.py:");
        rig_destroy(&rig);
    }
}

static void test_progress_without_loops(void **state)
{
    struct rig rig = rig_create(1);
    uint32_t t = tensor(&rig, 0, VTRN_SBUF, 128, 2000);
    (void)state;

    add_memset(&rig, 0, t, 0);
    for (int i = 0; i < 100000; i++) add_increment(&rig, 0, t);
    rig.stop_after = 2;
    start(&rig, 1, true);
    run_fails(&rig, 1, VTRN_INTERRUPTED, "interrupted at kernel.py:");
    assert_true(rig.share > 0 && rig.share < 1);
    rig_destroy(&rig);
}

/* A core that a slice's end stopped, and that then comes to a rendezvous, waits for its peer; it is not asked about again. */
static void test_slice_ends_before_a_barrier(void **state)
{
    (void)state;
    for (int late = 0; late < 2; late++) {
        struct rig rig = rig_create(2);
        uint32_t shared = tensor(&rig, VTRN_CORES_MAX, VTRN_HBM_SHARED, 128, 4);
        uint32_t t = tensor(&rig, 1 - late, VTRN_SBUF, 128, 2000);
        add_memset(&rig, 1 - late, t, 0);
        add_loop(&rig, 1 - late, 20000); /* the other core has long come to the barrier */
        add_increment(&rig, 1 - late, t);
        add_end(&rig, 1 - late);
        for (int c = 0; c < 2; c++) add_barrier(&rig, c, shared);
        rig.stop_after = 600; /* a minute */
        start(&rig, 1, true);
        run_ok(&rig, 3);
        assert_in_range(rig.asked, 1, rig.stop_after - 1);
        rig_destroy(&rig);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_core),
        cmocka_unit_test(test_open_list),
        cmocka_unit_test(test_fault_in_words),
        cmocka_unit_test(test_barriers),
        cmocka_unit_test(test_deadlock_in_words),
        cmocka_unit_test(test_blocked_then_met),
        cmocka_unit_test(test_mismatch),
        cmocka_unit_test(test_progress_and_interrupt),
        cmocka_unit_test(test_progress_without_loops),
        cmocka_unit_test(test_slice_ends_before_a_barrier),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
