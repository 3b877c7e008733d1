/* prog: tables, appending, lifetimes, dependencies. */
#include "prog_env.h"

static void strings_are_interned(void **state)
{
    struct vtrn_prog *prog = env_create("trn2", 1);
    uint32_t first[1000], again;
    char text[32];

    (void)state;
    for (int i = 0; i < 1000; i++) {
        snprintf(text, sizeof text, "name %d", i);
        assert_int_equal(vtrn_prog_string(prog, text, strlen(text), &first[i]), VTRN_OK);
    }
    for (int i = 0; i < 1000; i++) {
        snprintf(text, sizeof text, "name %d", i);
        assert_int_equal(vtrn_prog_string(prog, text, strlen(text), &again), VTRN_OK);
        assert_int_equal(again, first[i]);
        assert_string_equal(vtrn_prog_text(prog, again), text);
    }
    assert_int_equal(vtrn_prog_string(prog, "name 12345", 6, &again), VTRN_OK); /* by length */
    assert_string_equal(vtrn_prog_text(prog, again), "name 1");
    assert_int_equal(vtrn_prog_string(prog, "", 0, &again), VTRN_OK);
    assert_int_equal(again, 0);
    assert_int_equal(vtrn_prog_string(prog, "a\0b", 3, &again), VTRN_INVALID);
    assert_string_equal(vtrn_prog_text(prog, 1000000), "");
    vtrn_prog_destroy(prog);
}

static void a_location_is_kept_once_while_it_is_recent(void **state)
{
    struct vtrn_prog *prog = env_create("trn2", 1);
    uint32_t file, loc, same, before = prog->locs;

    (void)state;
    assert_int_equal(vtrn_prog_string(prog, "dir/k.py", 8, &file), VTRN_OK);
    for (int turn = 0; turn < 100; turn++)
        for (uint32_t line = 1; line <= 20; line++) assert_int_equal(vtrn_prog_loc(prog, file, line, &loc), VTRN_OK);
    assert_int_equal(prog->locs, before + 20);
    assert_int_equal(vtrn_prog_loc(prog, file, 20, &same), VTRN_OK);
    assert_int_equal(same, loc);
    assert_int_equal(vtrn_prog_loc(prog, 99999, 1, &loc), VTRN_INVALID);
    vtrn_prog_destroy(prog);
}

static void an_instruction_knows_its_place_in_the_kernel(void **state)
{
    struct vtrn_prog *prog = env_create("trn2", 1);
    struct vtrn_inst inst;
    char where[64];

    (void)state;
    env_inst(prog, "vector reciprocal dst=%f[0:128; 0+1x8] data=%g[0:128; 0+1x8] @1", &inst);
    vtrn_prog_where(prog, &inst, where, sizeof where);
    assert_string_equal(where, "kernel.py:41 nisa.reciprocal");
    inst.loc = 0;
    vtrn_prog_where(prog, &inst, where, sizeof where);
    assert_string_equal(where, "nisa.reciprocal");
    env_inst(prog, "sync device_print print_prefix=\"x\" tensor=%f[0:1; 0+1x1] @1", &inst);
    vtrn_prog_where(prog, &inst, where, 12);
    assert_string_equal(where, "kernel.py:4");
    vtrn_prog_destroy(prog);
}

/* ---------------------------------------------------------------- lifetimes */
static uint32_t declare(struct vtrn_prog *prog)
{
    struct vtrn_tensor tensor = { .space = VTRN_SBUF, .dtype = VTRN_DT_F32, .rank = 2, .dim = { 128, 8 } };
    struct vtrn_error err = { 0 };
    uint32_t index;

    if (vtrn_prog_tensor(prog, &tensor, &index, &err) < 0) fail_msg("%s", err.text);
    return index;
}

static uint32_t use(struct vtrn_prog *prog, uint32_t dst, uint32_t src)
{
    struct vtrn_inst inst;
    struct vtrn_error err = { 0 };
    char text[96];
    uint32_t index;

    snprintf(text, sizeof text, "vector tensor_copy dst=%%%u[0:128; 0+1x8] src=%%%u[0:128; 0+1x8]", dst, src);
    env_inst(prog, text, &inst);
    if (vtrn_prog_append(prog, 0, &inst, &index, &err) < 0) fail_msg("%s", err.text);
    return index;
}

static uint32_t control(struct vtrn_prog *prog, const char *text)
{
    struct vtrn_error err = { 0 };

    if (env_append(prog, 0, text, &err) < 0) fail_msg("%s: %s", text, err.text);
    return prog->code[0].count - 1;
}

static void uses_are_followed_through_loops(void **state)
{
    struct vtrn_prog *prog = env_create("trn2", 1);
    uint32_t before = declare(prog), idle = declare(prog), after, outer, inner, late, end_outer, end_inner;

    (void)state;
    assert_int_equal(prog->tensor[before].first_use, UINT32_MAX);
    use(prog, before, idle); /* 0 */
    assert_int_equal(prog->tensor[before].first_use, 0);
    assert_int_equal(prog->tensor[idle].last_use, 0);
    control(prog, "sync loop_begin index=r1 lower=0 upper=4 step=1"); /* 1 */
    outer = declare(prog);
    use(prog, outer, before);                       /* 2 */
    control(prog, "sync while_begin condition=r1"); /* 3 */
    inner = declare(prog);
    use(prog, inner, outer); /* 4 */
    late = declare(prog);
    use(prog, late, inner);                                    /* 5 */
    end_inner = control(prog, "sync loop_end");                /* 6 */
    assert_int_equal(prog->tensor[outer].last_use, end_inner); /* born before the inner loop */
    assert_int_equal(prog->tensor[inner].last_use, 5);         /* its content is fresh on every turn */
    assert_int_equal(prog->tensor[late].last_use, 5);
    end_outer = control(prog, "sync loop_end"); /* 7 */
    assert_int_equal(prog->tensor[before].last_use, end_outer);
    assert_int_equal(prog->tensor[outer].last_use, end_inner);
    assert_int_equal(prog->tensor[idle].last_use, 0); /* not used inside */
    after = use(prog, before, idle);
    assert_int_equal(prog->tensor[idle].last_use, after);
    assert_int_equal(prog->registers, 2);
    vtrn_prog_destroy(prog);
}

static void index_tensors_and_registers_count_as_used(void **state)
{
    struct vtrn_prog *prog = env_create("trn2", 1);

    (void)state;
    control(prog, "vector reciprocal dst=%f[0:128; 0+1x8] data=%g[0:128; 0+1x8]");
    control(prog, "dma dma_copy dst=%a[0:128; 0+1x512] src=%x[0+512x128+1x512 | vector %vi:u32[0; 0+1x128]*512]");
    control(prog, "dma dma_compute dst=%a[0:128; 0+1x512] srcs={%b[0:128; 0+1x512 | r40*2], %x[0+512x128+1x512]} reduce_op=add");
    assert_int_equal(prog->tensor[28].first_use, 1);
    assert_int_equal(prog->tensor[1].first_use, 2);
    assert_int_equal(prog->registers, 41);
    vtrn_prog_destroy(prog);
}

/* ---------------------------------------------------------------- structure */
static void loops_must_nest_and_close(void **state)
{
    struct vtrn_prog *prog = env_create("trn2", 1);
    struct vtrn_error err = { 0 };
    struct vtrn_buf out = { 0 };

    (void)state;
    assert_true(env_append(prog, 0, "sync loop_end", &err) < 0);
    assert_non_null(strstr(err.text, "no loop is open here"));
    for (int i = 0; i < VTRN_LOOP_DEPTH; i++) control(prog, "sync loop_begin index=r1 lower=0 upper=4 step=1");
    assert_int_equal(env_append(prog, 0, "sync while_begin condition=r1", &err), VTRN_LIMIT);
    assert_non_null(strstr(err.text, "loops nest deeper than 16"));
    assert_true(vtrn_prog_save(prog, &out, &err) < 0);
    assert_non_null(strstr(err.text, "has no loop_end"));
    assert_int_equal(out.size, 0);
    assert_true(vtrn_prog_verify(prog, &err) < 0);
    for (int i = 0; i < VTRN_LOOP_DEPTH; i++) control(prog, "sync loop_end");
    assert_int_equal(vtrn_prog_verify(prog, &err), VTRN_OK);
    vtrn_prog_destroy(prog);
}

static void dependencies_do_not_leave_their_loop(void **state)
{
    struct vtrn_prog *prog = env_create("trn2", 1);
    struct vtrn_error err = { 0 };
    const char *copy = "vector reciprocal dst=%f[0:128; 0+1x8] data=%g[0:128; 0+1x8]";

    (void)state;
    control(prog, copy);                                              /* 0 */
    control(prog, "sync loop_begin index=r1 lower=0 upper=4 step=1"); /* 1 */
    control(prog, copy);                                              /* 2 */
    control(prog, "sync loop_begin index=r2 lower=0 upper=4 step=1"); /* 3 */
    control(prog, copy);                                              /* 4 */
    assert_int_equal(vtrn_prog_edge(prog, 0, 4, 2, &err), VTRN_OK);   /* from an enclosing scope */
    assert_int_equal(vtrn_prog_edge(prog, 0, 4, 0, &err), VTRN_OK);
    control(prog, "sync loop_end");                                 /* 5 */
    control(prog, copy);                                            /* 6 */
    assert_int_equal(vtrn_prog_edge(prog, 0, 6, 2, &err), VTRN_OK); /* the same loop */
    assert_int_equal(vtrn_prog_edge(prog, 0, 6, 4, &err), VTRN_ILLEGAL);
    assert_non_null(strstr(err.text, "inside a loop that the consumer is not in"));
    control(prog, "sync loop_end"); /* 7 */
    control(prog, copy);            /* 8 */
    assert_int_equal(vtrn_prog_edge(prog, 0, 8, 2, &err), VTRN_ILLEGAL);
    assert_int_equal(vtrn_prog_edge(prog, 0, 8, 0, &err), VTRN_OK);
    assert_int_equal(vtrn_prog_edge(prog, 0, 2, 6, &err), VTRN_ILLEGAL);
    assert_non_null(strstr(err.text, "the producer (instruction 6) must come before the consumer (2)"));
    assert_int_equal(vtrn_prog_edge(prog, 0, 9, 0, &err), VTRN_INVALID);
    assert_int_equal(vtrn_prog_edge(prog, 1, 2, 0, &err), VTRN_INVALID);
    assert_int_equal(prog->code[0].edges, 4);
    assert_int_equal(vtrn_prog_verify(prog, &err), VTRN_OK);
    vtrn_prog_destroy(prog);
}

static void forgotten_code_leaves_the_tables(void **state)
{
    struct vtrn_prog *prog = env_create("trn2", 1);
    uint32_t tensors = prog->tensors, strings = prog->strings;

    (void)state;
    for (int turn = 0; turn < 3; turn++) {
        for (int i = 0; i < 100; i++) control(prog, "vector reciprocal dst=%f[0:128; 0+1x8] data=%g[0:128; 0+1x8] @1");
        assert_int_equal(prog->code[0].count, 100);
        vtrn_prog_forget_code(prog, 0);
        assert_int_equal(prog->code[0].count, 0);
        assert_int_equal(prog->tensors, tensors);
        assert_int_equal(prog->strings, strings);
    }
    assert_int_equal(vtrn_prog_verify(prog, NULL), VTRN_OK);
    vtrn_prog_destroy(prog);
}

static void wrong_calls_do_nothing(void **state)
{
    struct vtrn_prog *prog = env_create("trn2", 1);
    struct vtrn_inst inst = { .op = 0xff };
    struct vtrn_error err = { 0 };

    (void)state;
    assert_null(vtrn_prog_create(NULL, 1, &err));
    assert_null(vtrn_prog_create(prog->arch, 3, &err));
    assert_int_equal(vtrn_prog_append(prog, 0, &inst, NULL, &err), VTRN_INVALID);
    assert_int_equal(vtrn_legal_engine(prog, &inst, &err), VTRN_INVALID);
    assert_int_equal(env_append(prog, 1, "sync register_move dst=r1 src=1", &err), VTRN_INVALID);
    assert_int_equal(env_append(prog, -1, "sync register_move dst=r1 src=1", &err), VTRN_INVALID);
    assert_int_equal(prog->code[0].count, 0);
    vtrn_prog_destroy(prog);
    vtrn_prog_destroy(NULL);
}

/* ---------------------------------------------------------------- damage is found */
static void the_verifier_sees_what_is_wrong(void **state)
{
    struct vtrn_prog *prog = env_create("trn2", 1);
    struct vtrn_error err = { 0 };
    uint32_t *words;

    (void)state;
    control(prog, "vector reciprocal dst=%f[0:128; 0+1x8] data=%g[0:128; 0+1x8] @1");
    control(prog, "sync register_move dst=r1 src=r3");
    assert_int_equal(vtrn_prog_verify(prog, &err), VTRN_OK);
    prog->tensor[2].dim[1] = 4; /* the instruction reads 8 */
    assert_true(vtrn_prog_verify(prog, &err) < 0);
    prog->tensor[2].row_bytes = 16;
    assert_true(vtrn_prog_verify(prog, &err) < 0);
    assert_non_null(strstr(err.text, "core 0 instruction 0 (kernel.py:41 nisa.reciprocal): dst: elements 0..7 are outside"));
    prog->tensor[2].dim[1] = 512;
    prog->tensor[2].row_bytes = 2048;
    prog->registers = 2;
    assert_true(vtrn_prog_verify(prog, &err) < 0);
    assert_non_null(strstr(err.text, "register 3, the program has 2"));
    prog->registers = 4;
    words = (uint32_t *)(void *)prog->code[0].words.data;
    words[0] ^= 0x80; /* another opcode */
    assert_true(vtrn_prog_verify(prog, &err) < 0);
    words[0] ^= 0x80;
    prog->tensor[0].born = 77;
    assert_true(vtrn_prog_verify(prog, &err) < 0);
    prog->tensor[0].born = 0;
    prog->name = 99999;
    assert_true(vtrn_prog_verify(prog, &err) < 0);
    prog->name = 0;
    assert_int_equal(vtrn_prog_verify(prog, &err), VTRN_OK);
    vtrn_prog_destroy(prog);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strings_are_interned),
        cmocka_unit_test(a_location_is_kept_once_while_it_is_recent),
        cmocka_unit_test(an_instruction_knows_its_place_in_the_kernel),
        cmocka_unit_test(uses_are_followed_through_loops),
        cmocka_unit_test(index_tensors_and_registers_count_as_used),
        cmocka_unit_test(loops_must_nest_and_close),
        cmocka_unit_test(dependencies_do_not_leave_their_loop),
        cmocka_unit_test(forgotten_code_leaves_the_tables),
        cmocka_unit_test(wrong_calls_do_nothing),
        cmocka_unit_test(the_verifier_sees_what_is_wrong),
    };

    return cmocka_run_group_tests_name("prog_build", tests, NULL, NULL);
}
