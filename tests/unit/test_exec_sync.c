/* exec/sync.c: two cores meet. */
#include "exec_rig.h"

struct pair {
    struct rig *rig;
    struct vtrn_ap src[2], dst[2];
};

static void append_send(struct rig *rig, int core, struct vtrn_ap src, struct vtrn_ap dst, int64_t peer, int64_t pipe)
{
    struct vtrn_inst inst;
    vtrn_inst_init(&inst, VTRN_OP_sendrecv);
    rig_set_ap(RIG_ARG(&inst, sendrecv, src), src);
    rig_set_ap(RIG_ARG(&inst, sendrecv, dst), dst);
    rig_set_int(RIG_ARG(&inst, sendrecv, send_to_rank), peer);
    rig_set_int(RIG_ARG(&inst, sendrecv, recv_from_rank), peer);
    rig_set_int(RIG_ARG(&inst, sendrecv, pipe_id), pipe);
    rig_append(rig, core, &inst);
}

static void append_barrier(struct rig *rig, int core, uint32_t data, bool alone)
{
    static const int64_t both[2] = { 0, 1 };
    struct vtrn_inst inst;
    vtrn_inst_init(&inst, VTRN_OP_core_barrier);
    rig_set_ap(RIG_ARG(&inst, core_barrier, data), rig_ap(rig, data));
    rig_set_ints(&inst, RIG_ARG(&inst, core_barrier, cores), alone ? 1 : 2, both);
    rig_append(rig, core, &inst);
}

static void append_move(struct rig *rig, int core, uint32_t reg, int64_t value)
{
    struct vtrn_inst inst;
    vtrn_inst_init(&inst, VTRN_OP_register_move);
    rig_set_reg(RIG_ARG(&inst, register_move, dst), reg);
    rig_set_int(RIG_ARG(&inst, register_move, src), value);
    rig_append(rig, core, &inst);
}

static void block_both(struct rig *rig)
{
    for (int core = 0; core < 2; core++) {
        assert_int_equal(rig_run(rig, core), VTRN_BLOCKED);
        assert_int_equal(rig_run(rig, core), VTRN_BLOCKED); /* asking again changes nothing */
        assert_non_null(vtrn_core_wait(rig->core[core]));
    }
}

static void exchange_case(uint8_t dtype, bool in_place)
{
    struct rig *rig = rig_create("trn2", 2, 1);
    size_t bytes = vtrn_dtypes[dtype].size_bytes;
    int64_t parts = 1 + rig_below(128), elems = 1 + rig_below(300);
    struct vtrn_ap src[2], dst[2];
    uint8_t *source[2], *expect[2];
    for (int core = 0; core < 2; core++) {
        src[core] = rig_random_ap(rig, core, VTRN_SBUF, dtype, parts, elems);
        dst[core] = in_place ? src[core] : rig_random_ap(rig, core, VTRN_SBUF, dtype, parts, elems);
        source[core] = rig_fill(rig, core, src[core].tensor);
        expect[core] = in_place ? rig_image(rig, core, dst[core].tensor) : rig_fill(rig, core, dst[core].tensor);
        append_send(rig, core, src[core], dst[core], 1 - core, 3);
        append_move(rig, core, 1, 10 + core);
    }
    block_both(rig);
    assert_int_equal(vtrn_core_wait(rig->core[0])->kind, VTRN_WAIT_SENDRECV);
    assert_int_equal(vtrn_core_wait(rig->core[0])->pipe_id, 3);
    assert_int_equal(vtrn_core_wait(rig->core[1])->send_to, 0);
    assert_int_equal(vtrn_core_meet(rig->core[0], rig->core[1]), VTRN_OK);
    for (int core = 0; core < 2; core++) {
        assert_null(vtrn_core_wait(rig->core[core]));
        rig_run_ok(rig, core);
        assert_int_equal(vtrn_core_register(rig->core[core], 1), 10 + core);
        assert_int_equal(vtrn_core_counters(rig->core[core])->dma_instructions, 1);
        for (int64_t p = 0; p < parts; p++)
            for (int64_t i = 0; i < elems; i++)
                memcpy(expect[core] + rig_at(rig, &dst[core], p, i) * (int64_t)bytes,
                       source[1 - core] + rig_at(rig, &src[1 - core], p, i) * (int64_t)bytes, bytes);
        uint8_t *after = rig_image(rig, core, dst[core].tensor);
        assert_memory_equal(expect[core], after, (size_t)rig_elems(rig, dst[core].tensor) * bytes);
        free(after);
    }
    for (int core = 0; core < 2; core++) {
        free(source[core]);
        free(expect[core]);
    }
    rig_destroy(rig);
}

static void test_exchange(void **state)
{
    static const uint8_t dtypes[] = { VTRN_DT_F32, VTRN_DT_BF16, VTRN_DT_U8 };
    (void)state;
    for (int k = 0; k < 12; k++) exchange_case(dtypes[k % 3], k % 4 == 3);
}

static void test_barrier(void **state)
{
    (void)state;
    struct rig *rig = rig_create("trn2", 2, 1);
    uint32_t data = rig_tensor2(rig, VTRN_CORES_MAX, VTRN_HBM_SHARED, VTRN_DT_F32, 4, 4);
    for (int core = 0; core < 2; core++) {
        append_barrier(rig, core, data, false);
        append_move(rig, core, 1, 5);
    }
    append_barrier(rig, 0, data, true); /* of core 0 alone: nobody to wait for */
    block_both(rig);
    assert_int_equal(vtrn_core_wait(rig->core[0])->kind, VTRN_WAIT_BARRIER);
    assert_int_equal(vtrn_core_meet(rig->core[0], rig->core[1]), VTRN_OK);
    for (int core = 0; core < 2; core++) {
        rig_run_ok(rig, core);
        assert_int_equal(vtrn_core_register(rig->core[core], 1), 5);
    }
    rig_destroy(rig);
}

/* Every way to disagree is a fault, in words. */
static void mismatch_case(int kind)
{
    struct rig *rig = rig_create("trn2", 2, 1);
    uint32_t data = rig_tensor2(rig, VTRN_CORES_MAX, VTRN_HBM_SHARED, VTRN_DT_F32, 4, 4), tile[2];
    static const char *const words[] = { "core_barrier", "pipe 2", "float32 [4, 4]", "bfloat16 [4, 4]" };
    tile[0] = rig_tensor2(rig, 0, VTRN_SBUF, VTRN_DT_F32, 4, 4);
    tile[1] = rig_tensor2(rig, 1, VTRN_SBUF, kind == 3 ? VTRN_DT_BF16 : VTRN_DT_F32, 4, kind == 2 ? 5 : 4);
    append_send(rig, 0, rig_ap(rig, tile[0]), rig_ap(rig, tile[0]), 1, 1);
    if (kind == 0) append_barrier(rig, 1, data, false);
    else append_send(rig, 1, rig_ap(rig, tile[1]), rig_ap(rig, tile[1]), 0, kind == 1 ? 2 : 1);
    block_both(rig);
    assert_int_equal(vtrn_core_meet(rig->core[0], rig->core[1]), VTRN_FAULT);
    int told = 0;
    for (int core = 0; core < 2; core++) {
        const struct vtrn_fault *fault = vtrn_core_fault(rig->core[core]);
        if (!fault) continue;
        assert_int_equal(fault->reason, VTRN_FAULT_MISMATCH);
        assert_int_equal(fault->core, core);
        assert_non_null(strstr(fault->text, words[kind]));
        told++;
    }
    assert_true(told >= 1);
    rig_destroy(rig);
}

static void test_mismatches(void **state)
{
    (void)state;
    for (int kind = 0; kind < 4; kind++) mismatch_case(kind);
}

/* Ranks in registers are checked when they are known. */
static void test_ranks(void **state)
{
    (void)state;
    static const struct {
        int32_t to, from;
        const char *words;
    } cases[] = { { 2, 1, "cores 0..1" }, { -1, -1, "cores 0..1" }, { 1, 0, "both name the other one" } };
    for (int k = 0; k < 3; k++) {
        struct rig *rig = rig_create("trn2", 2, 1);
        uint32_t tile = rig_tensor2(rig, 0, VTRN_SBUF, VTRN_DT_F32, 4, 4);
        struct vtrn_inst inst;
        vtrn_inst_init(&inst, VTRN_OP_sendrecv);
        rig_set_ap(RIG_ARG(&inst, sendrecv, src), rig_ap(rig, tile));
        rig_set_ap(RIG_ARG(&inst, sendrecv, dst), rig_ap(rig, tile));
        rig_set_reg(RIG_ARG(&inst, sendrecv, send_to_rank), 1);
        rig_set_reg(RIG_ARG(&inst, sendrecv, recv_from_rank), 2);
        rig_set_int(RIG_ARG(&inst, sendrecv, pipe_id), 0);
        rig_append(rig, 0, &inst);
        vtrn_core_set_register(rig->core[0], 1, cases[k].to);
        vtrn_core_set_register(rig->core[0], 2, cases[k].from);
        rig_run_fault(rig, 0, VTRN_FAULT_VALUE, cases[k].words);
        rig_destroy(rig);
    }
    /* A core that names itself copies, alone. */
    struct rig *rig = rig_create("trn2", 2, 1);
    uint32_t a = rig_tensor2(rig, 0, VTRN_SBUF, VTRN_DT_F32, 4, 4), b = rig_tensor2(rig, 0, VTRN_SBUF, VTRN_DT_F32, 4, 4);
    float *source = rig_fill(rig, 0, a);
    struct vtrn_inst inst;
    vtrn_inst_init(&inst, VTRN_OP_sendrecv);
    rig_set_ap(RIG_ARG(&inst, sendrecv, src), rig_ap(rig, a));
    rig_set_ap(RIG_ARG(&inst, sendrecv, dst), rig_ap(rig, b));
    rig_set_reg(RIG_ARG(&inst, sendrecv, send_to_rank), 1); /* 0: this core */
    rig_set_reg(RIG_ARG(&inst, sendrecv, recv_from_rank), 1);
    rig_set_int(RIG_ARG(&inst, sendrecv, pipe_id), 0);
    rig_append(rig, 0, &inst);
    rig_run_ok(rig, 0);
    float *after = rig_image(rig, 0, b);
    assert_memory_equal(source, after, 64);
    free(source);
    free(after);
    rig_destroy(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exchange),
        cmocka_unit_test(test_barrier),
        cmocka_unit_test(test_mismatches),
        cmocka_unit_test(test_ranks),
    };
    return cmocka_run_group_tests_name("exec_sync", tests, NULL, NULL);
}
