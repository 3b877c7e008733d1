/* prog: legality of instructions and declarations. The table of misuses is in prog_rows.h. */
#include "gen.h"
#include "prog_rows.h"

static void check_row(const struct row *row, struct vtrn_inst *inst)
{
    struct vtrn_prog *prog = program_for(row->target);
    struct vtrn_error err = { 0 };
    enum vtrn_status status = env_append(prog, 0, row->bad, &err);

    if (status >= 0) fail_msg("%s is legal on %s, expected: %s", row->bad, row->target, row->message);
    if (!strstr(err.text, row->message)) fail_msg("%s\n  says:     %s\n  expected: %s", row->bad, err.text, row->message);
    assert_true(strlen(err.text) < 300 && !strchr(err.text, '\n'));
    assert_int_equal(prog->code[0].count, 0); /* nothing is appended on error */
    assert_int_equal(prog->code[0].words.size, 0);
    if (env_append(prog, 0, row->good, &err) < 0) fail_msg("%s (%s)\n  is illegal: %s", row->good, row->target, err.text);
    assert_int_equal(prog->code[0].count, 1);
    vtrn_prog_get(prog, 0, 0, inst);
    assert_int_not_equal(inst->engine, VTRN_ENGINE_UNKNOWN);
    vtrn_prog_destroy(prog);
}

static void each_misuse_is_named_and_its_neighbour_passes(void **state)
{
    struct vtrn_inst *inst = malloc(sizeof *inst);
    size_t rows = 0;

    (void)state;
    for (int t = 0; t < ROW_TABLES; t++)
        for (size_t i = 0; i < row_tables[t].count; i++, rows++) check_row(&row_tables[t].row[i], inst);
    free(inst);
    print_message("%zu kinds of misuse\n", rows);
    assert_true(rows >= 150);
}

/* ---------------------------------------------------------------- the engine is chosen */
static int engine_of(const char *target, const char *text)
{
    struct vtrn_prog *prog = program_for(target);
    struct vtrn_error err = { 0 };
    struct vtrn_inst inst;

    if (env_append(prog, 0, text, &err) < 0) fail_msg("%s: %s", text, err.text);
    vtrn_prog_get(prog, 0, 0, &inst);
    vtrn_prog_destroy(prog);
    return inst.engine;
}

static void an_unknown_engine_is_chosen(void **state)
{
    (void)state;
#define TT(dst, a, b, op) \
    "unknown tensor_tensor dst=" dst "[0:128; 0+1x8] data1=" a "[0:128; 0+1x8] data2=" b "[0:128; 0+1x8] op=" op
    assert_int_equal(engine_of("trn2", TT("%i", "%j", "%i", "add")), VTRN_ENGINE_GPSIMD); /* exact integers */
    assert_int_equal(engine_of("trn2", TT("%i", "%j", "%u", "multiply")), VTRN_ENGINE_GPSIMD);
    assert_int_equal(engine_of("trn2", TT("%i", "%j", "%pi", "add")), VTRN_ENGINE_VECTOR); /* not from PSUM */
    assert_int_equal(engine_of("trn2", TT("%f", "%j", "%i", "add")), VTRN_ENGINE_VECTOR);
    assert_int_equal(engine_of("trn2", TT("%i", "%j", "%i", "bitwise_and")), VTRN_ENGINE_VECTOR);
    assert_int_equal(engine_of("trn2", TT("%f", "%g", "%g", "power")), VTRN_ENGINE_GPSIMD);
    assert_int_equal(engine_of("trn2", TT("%f", "%g", "%g", "add")), VTRN_ENGINE_VECTOR);
#define TS(op, operand) "unknown tensor_scalar dst=%f[0:128; 0+1x8] data=%g[0:128; 0+1x8] op0=" op " operand0=" operand
    assert_int_equal(engine_of("trn2", TS("add", "1.0")), VTRN_ENGINE_VECTOR);
    assert_int_equal(engine_of("trn2", TS("rsqrt", "0.0")), VTRN_ENGINE_GPSIMD);
    assert_int_equal(engine_of("trn2", TS("power", "2.0")), VTRN_ENGINE_GPSIMD);
#define TP(dst, data) "unknown nc_transpose dst=" dst "[0:32; 0+1x32] data=" data "[0:32; 0+1x32]"
    assert_int_equal(engine_of("trn2", TP("%p", "%f")), VTRN_ENGINE_TENSOR);
    assert_int_equal(engine_of("trn2", TP("%g", "%f")), VTRN_ENGINE_VECTOR);
    assert_int_equal(engine_of("trn2", TP("%p", "%q")), VTRN_ENGINE_VECTOR);
    assert_int_equal(engine_of("trn2", "unknown memset dst=%f[0:128; 0+1x8] value=0"), VTRN_ENGINE_VECTOR);
    assert_int_equal(engine_of("trn2", "unknown dma_copy dst=%a[0:128; 0+1x512] src=%x[0+512x128+1x512]"), VTRN_ENGINE_DMA);
    assert_int_equal(engine_of("trn2", "unknown register_move dst=r1 src=1"), VTRN_ENGINE_SYNC);
}

/* ---------------------------------------------------------------- values that no text can have */
static void wrong_kinds_of_values_are_named(void **state)
{
    static const struct {
        const char *text;
        size_t arg;
        int kind;
        const char *message;
    } wrong[] = {
        { "vector tensor_copy dst=%f[0:128; 0+1x8] src=%g[0:128; 0+1x8]", 1, VTRN_V_NUM, "src must be a tensor" },
        { "vector memset dst=%f[0:128; 0+1x8] value=0", 1, VTRN_V_INT, "value must be a number" },
        { "vector memset dst=%f[0:128; 0+1x8] value=0", 0, VTRN_V_NONE, "dst is missing" },
        { "vector dropout dst=%f[0:128; 0+1x8] data=%g[0:128; 0+1x8] prob=0", 2, VTRN_V_INTS, "prob must be a number or a tensor" },
        { "dma dma_compute dst=%f[0:128; 0+1x8] srcs={%g[0:128; 0+1x8]} reduce_op=add", 1, VTRN_V_NUM,
          "srcs must be a list of tensors" },
        { "vector tensor_reduce dst=%v[0:128; 0+1x1] op=add data=%g[0:128; 0+1x8] axis=[1]", 3, VTRN_V_NUM,
          "axis must be a list of integers" },
        { "vector tensor_reduce dst=%v[0:128; 0+1x1] op=add data=%g[0:128; 0+1x8] axis=[1]", 1, VTRN_V_NUM, "op must be an operator" },
        { "vector tensor_reduce dst=%v[0:128; 0+1x1] op=add data=%g[0:128; 0+1x8] axis=[1]", 4, VTRN_V_NUM,
          "negate must be True or False" },
        { "scalar activation dst=%f[0:128; 0+1x8] op=exp data=%g[0:128; 0+1x8]", 1, VTRN_V_NUM, "op must be an activation function" },
        { "scalar activation dst=%f[0:128; 0+1x8] op=exp data=%g[0:128; 0+1x8]", 4, VTRN_V_NONE, "scale is missing" },
        { "scalar activation dst=%f[0:128; 0+1x8] op=exp data=%g[0:128; 0+1x8]", 7, VTRN_V_NUM,
          "reduce_cmd must be a member of reduce_cmd" },
        { "gpsimd topk val_dst=%a[0:16; 0+1x8] idx_dst=%u[0:16; 0+1x8] src=%b[0:16; 0+1x8] n=42", 3, VTRN_V_REG,
          "n must be an integer" },
        { "sync register_move dst=r1 src=1", 1, VTRN_V_NUM, "src must be a register or an integer" },
        { "sync device_print print_prefix=\"a\" tensor=%f[0:128; 0+1x8]", 0, VTRN_V_NUM, "print_prefix must be a string" },
    };
    struct vtrn_inst *inst = calloc(1, sizeof *inst);

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct vtrn_prog *prog = program_for("trn2");
        struct vtrn_error err = { 0 };

        env_inst(prog, wrong[i].text, inst);
        inst->arg[wrong[i].arg].kind = (uint8_t)wrong[i].kind;
        assert_true(vtrn_prog_append(prog, 0, inst, NULL, &err) < 0);
        if (!strstr(err.text, wrong[i].message)) fail_msg("%s: %s", wrong[i].message, err.text);
        vtrn_prog_destroy(prog);
    }
    free(inst);
}

static void values_that_do_not_fit_the_row_are_named(void **state)
{
    struct vtrn_prog *prog = program_for("trn2");
    struct vtrn_inst *inst = calloc(1, sizeof *inst);
    struct vtrn_error err = { 0 };

    (void)state;
    env_inst(prog, "vector tensor_reduce dst=%v[0:128; 0+1x1] op=add data=%g[0:128; 0+1x8] axis=[1]", inst);
    inst->arg[3].count = 5;
    assert_int_equal(vtrn_legal_check(prog, 0, inst, &err), VTRN_ILLEGAL);
    assert_non_null(strstr(err.text, "axis has 5 entries, at most 4 are possible"));
    env_inst(prog, "vector reciprocal dst=%f[0:128; 0+1x8] data=%g[0:128; 0+1x8]", inst);
    inst->arg[1].ap.dtype = VTRN_DT_COUNT;
    assert_int_equal(vtrn_legal_check(prog, 0, inst, &err), VTRN_ILLEGAL);
    assert_non_null(strstr(err.text, "data: no such dtype"));
    env_inst(prog, "vector reciprocal dst=%f[0:128; 0+1x8] data=%g[0:128; 0+1x8]", inst);
    inst->arg[1].ap.ndyn = 1; /* without a place where it is */
    assert_int_equal(vtrn_legal_check(prog, 0, inst, &err), VTRN_ILLEGAL);
    assert_non_null(strstr(err.text, "data: 1 dynamic parts"));
    env_inst(prog, "vector reciprocal dst=%f[0:128; 0+1x8] data=%g[0:128; 0+1x8 | r1*1]", inst);
    inst->arg[1].ap.dyn->kind = 77;
    assert_int_equal(vtrn_legal_check(prog, 0, inst, &err), VTRN_ILLEGAL);
    assert_non_null(strstr(err.text, "data: no such dynamic part (77)"));
    free(inst);
    vtrn_prog_destroy(prog);
}

/* ---------------------------------------------------------------- declarations */
static void declarations_are_checked(void **state)
{
    static const struct {
        const char *line, *message; /* NULL: legal */
    } declaration[] = {
        { "tensor 0 sbuf bf16 [128, 512]", NULL },
        { "tensor 0 sbuf bf16 [129, 512]", "partition dimension 129 > 128 (partitions of sbuf on trn2); tile it" },
        { "tensor 0 sbuf bf16 [128]", "rank 1 is outside 2..8 (on chip: a partition and at least one free dimension)" },
        { "tensor 0 hbm bf16 [128]", NULL },
        { "tensor 0 sbuf bf16 [128, 0]", "dimension 1 is 0; it must be at least 1" },
        { "tensor 0 sbuf u8 [128, 229377]", "229377 bytes per partition > 229376 (sbuf of trn2); tile the free dimensions" },
        { "tensor 0 sbuf u8 [128, 229376]", NULL },
        { "tensor 0 psum f32 [128, 4097]", "16388 bytes per partition > 16384 (psum of trn2)" },
        { "tensor 0 psum f32 [128, 4096]", NULL },
        { "tensor 0 hbm f32 [1000000, 1000000]", "bytes > 103079215104 (all HBM of trn2)" },
        { "tensor 0 hbm f32 [4294967296, 4294967296]", "its size does not fit in 63 bits" },
        { "tensor 0 sbuf f32 [64, 8] address=65:0", "address: partitions 65..128 end beyond 127" },
        { "tensor 0 sbuf f32 [64, 8] address=64:0", NULL },
        { "tensor 0 sbuf f32 [64, 8] address=0:229352", "address: bytes 229352..229383 of the partition end beyond 229375" },
        { "tensor 0 hbm f32 [64, 8] address=0:0", "address is only for SBUF and PSUM" },
        { "tensor 0 sbuf f32 [64, 8] input", "inputs, outputs and constants live in HBM, not in sbuf" },
        { "tensor 0 hbm f32 [64, 8] core=1", "core 1, the program has 1" },
        { "tensor 0 sbuf f32 [64, 8] core=all", "sbuf belongs to one core and cannot be shared" },
        { "tensor 0 shared_hbm f32 [64, 8] core=all", NULL },
        { "tensor 0 hbm f32 [1, 1, 1, 1, 1, 1, 1, 1]", NULL },
        { "tensor 0 hbm f32 [1, 1, 1, 1, 1, 1, 1, 1, 1]", "a tensor has at most 8 dimensions" },
        { "tensor 0 hbm f32 [8] @3", "no such string or location" },
        { "tensor 0 hbm f32 [8] born=3", "tensor 0: born at instruction 3 of 0" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof declaration / sizeof declaration[0]; i++) {
        struct vtrn_prog *prog = NULL;
        struct vtrn_error err = { 0 };
        char text[256];
        enum vtrn_status status;

        snprintf(text, sizeof text, "vtrn 1\ntarget trn2\ncores 1\n%s\n", declaration[i].line);
        status = vtrn_prog_parse(text, strlen(text), &prog, &err);
        if ((status >= 0) != !declaration[i].message) fail_msg("%s: %s", declaration[i].line, status < 0 ? err.text : "is legal");
        if (declaration[i].message && !strstr(err.text, declaration[i].message))
            fail_msg("%s\n  says: %s", declaration[i].line, err.text);
        vtrn_prog_destroy(prog);
    }
}

/* ---------------------------------------------------------------- nonsense never crashes */
static void random_instructions_are_legal_or_named(void **state)
{
    struct vtrn_inst *inst = malloc(sizeof *inst);
    struct vtrn_prog *prog[3] = { program_for("trn1"), program_for("trn2"), program_for("trn3x2") };
    struct gen gen = gen_seeded(7);
    int legal = 0;

    (void)state;
    gen.tensors = 50;
    for (int round = 0; round < 200000; round++) {
        struct vtrn_error err = { 0 };
        const struct vtrn_prog *on = prog[round % 3];

        gen_inst(&gen, inst, VTRN_OP_NONE);
        if (round & 8) inst->loc = inst->name = 0;
        if (vtrn_legal_check(on, 0, inst, &err) >= 0) legal++;
        else assert_true(err.text[0] != '\0' && !strchr(err.text, '\n'));
    }
    assert_true(legal > 0);
    for (int i = 0; i < 3; i++) vtrn_prog_destroy(prog[i]);
    free(inst);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_misuse_is_named_and_its_neighbour_passes),
        cmocka_unit_test(an_unknown_engine_is_chosen),
        cmocka_unit_test(wrong_kinds_of_values_are_named),
        cmocka_unit_test(values_that_do_not_fit_the_row_are_named),
        cmocka_unit_test(declarations_are_checked),
        cmocka_unit_test(random_instructions_are_legal_or_named),
    };

    return cmocka_run_group_tests_name("prog_legal", tests, NULL, NULL);
}
