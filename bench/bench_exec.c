/* Speed of the step loop and of the bodies, one thread.
 *
 *   overhead    replays of long lists of tiny instructions: decoding, operands, dispatch and the body's own set-up are all
 *               there is. Nanoseconds an instruction.
 *   tiles       one instruction on a [128,512] tile against the bare calls of kern's slots on the same rows, interleaved:
 *               what the way from an instruction to its kernel costs. Ratio of times, best samples.
 *
 *   bench_exec [--json FILE] [--samples N] [NAME...]     cases whose name contains one of the NAMEs */
#include <time.h>

#include "exec/exec.h"

enum { PARTS = 128, ELEMS = 512, LIST = 50000 /* tiny instructions of a list */ };

/* ---------------------------------------------------------------- a program under construction */
struct rig {
    struct vtrn_prog *prog;
    struct vtrn_mem *mem;
    struct vtrn_core *core;
};

static void must(bool ok, const char *what)
{
    if (ok) return;
    fprintf(stderr, "bench_exec: %s\n", what);
    exit(1);
}

static struct rig rig_create(void)
{
    struct vtrn_error err = { .text = "" };
    struct rig rig = { .prog = vtrn_prog_create(vtrn_arch_find("trn2"), 1, &err) };

    must(rig.prog, err.text);
    rig.mem = vtrn_mem_create(rig.prog->arch, 1, &err);
    must(rig.mem, err.text);
    rig.core = vtrn_core_create(rig.prog, rig.mem, 0, NULL, &err);
    must(rig.core, err.text);
    return rig;
}

static void rig_destroy(struct rig *rig)
{
    vtrn_core_destroy(rig->core);
    vtrn_mem_destroy(rig->mem);
    vtrn_prog_destroy(rig->prog);
}

static uint32_t tile(struct rig *rig, int space, int dtype, int64_t parts, int64_t elems)
{
    struct vtrn_tensor proto = { .space = (uint8_t)space, .dtype = (uint8_t)dtype, .rank = 2, .dim = { parts, elems } };
    struct vtrn_error err = { .text = "" };
    uint32_t tensor;

    must(vtrn_prog_tensor(rig->prog, &proto, &tensor, &err) == VTRN_OK, err.text);
    return tensor;
}

static struct vtrn_store *store_of(struct rig *rig, uint32_t tensor)
{
    struct vtrn_error err = { .text = "" };
    struct vtrn_store *store = vtrn_mem_store(rig->mem, rig->prog, 0, tensor, &err);

    must(store, err.text);
    return store;
}

/* Values near 1: realistic for sums, products and functions. */
static uint32_t filled(struct rig *rig, int space, int dtype, int64_t parts, int64_t elems)
{
    uint32_t tensor = tile(rig, space, dtype, parts, elems), state = 1;
    struct vtrn_store *store = store_of(rig, tensor);

    for (int64_t p = 0; p < parts; p++)
        for (int64_t i = 0; i < elems; i++) {
            state = state * 1664525u + 1013904223u;
            vtrn_from_f32((enum vtrn_dtype)dtype, 0.5f + (float)(state >> 8) * 0x1p-24f,
                          store->base + (size_t)p * store->pitch + (size_t)i * vtrn_dtypes[dtype].size_bytes);
        }
    vtrn_store_touch(store, 0, store->row_bytes, true);
    return tensor;
}

#define ARG(inst, opname, operand) (&((struct vtrn_args_##opname *)(void *)(inst)->arg)->operand)
static void set_tile(struct rig *rig, struct vtrn_value *value, uint32_t tensor)
{
    const struct vtrn_tensor *t = &rig->prog->tensor[tensor];

    value->kind = VTRN_V_AP;
    value->ap = (struct vtrn_ap){ .tensor = tensor, .dtype = t->dtype, .ndim = 2 };
    value->ap.dim[0] = (struct vtrn_dim){ vtrn_space_on_chip(t->space) ? 1 : t->dim[1], t->dim[0] };
    value->ap.dim[1] = (struct vtrn_dim){ 1, t->dim[1] };
}
static void set_int(struct vtrn_value *value, int64_t i)
{
    value->kind = VTRN_V_INT;
    value->i = i;
}
static void set_num(struct vtrn_value *value, double num)
{
    value->kind = VTRN_V_NUM;
    value->num = num;
}
static void append(struct rig *rig, struct vtrn_inst *inst, int times)
{
    struct vtrn_error err = { .text = "" };

    for (int k = 0; k < times; k++) must(vtrn_prog_append(rig->prog, 0, inst, NULL, &err) == VTRN_OK, err.text);
}
static void run(struct rig *rig)
{
    vtrn_core_rewind(rig->core);
    must(vtrn_core_run(rig->core, UINT32_MAX, false) == VTRN_OK, "the program faulted");
}

/* ---------------------------------------------------------------- the instructions that are measured */
static void add_memset(struct rig *rig, int64_t parts, int64_t elems, int dtype, int times)
{
    struct vtrn_inst inst;

    vtrn_inst_init(&inst, VTRN_OP_memset);
    set_tile(rig, ARG(&inst, memset, dst), filled(rig, VTRN_SBUF, dtype, parts, elems));
    set_num(ARG(&inst, memset, value), 1);
    append(rig, &inst, times);
}
static void add_copy(struct rig *rig, int64_t parts, int64_t elems, int dtype, int times)
{
    struct vtrn_inst inst;
    int from = dtype == VTRN_DT_BF16 ? VTRN_PSUM : VTRN_SBUF; /* bf16: the evacuation of a PSUM tile */

    vtrn_inst_init(&inst, VTRN_OP_tensor_copy);
    set_tile(rig, ARG(&inst, tensor_copy, src), filled(rig, from, VTRN_DT_F32, parts, elems));
    set_tile(rig, ARG(&inst, tensor_copy, dst), filled(rig, VTRN_SBUF, dtype, parts, elems));
    append(rig, &inst, times);
}
static void add_tensor_tensor(struct rig *rig, int64_t parts, int64_t elems, int dtype, int times)
{
    struct vtrn_inst inst;

    vtrn_inst_init(&inst, VTRN_OP_tensor_tensor);
    set_tile(rig, ARG(&inst, tensor_tensor, data1), filled(rig, VTRN_SBUF, dtype, parts, elems));
    set_tile(rig, ARG(&inst, tensor_tensor, data2), filled(rig, VTRN_SBUF, dtype, parts, elems));
    set_tile(rig, ARG(&inst, tensor_tensor, dst), filled(rig, VTRN_SBUF, dtype, parts, elems));
    set_int(ARG(&inst, tensor_tensor, op), VTRN_ALU_ADD);
    append(rig, &inst, times);
}
static void add_tensor_scalar(struct rig *rig, int64_t parts, int64_t elems, int dtype, int times)
{
    struct vtrn_inst inst;

    vtrn_inst_init(&inst, VTRN_OP_tensor_scalar);
    set_tile(rig, ARG(&inst, tensor_scalar, data), filled(rig, VTRN_SBUF, dtype, parts, elems));
    set_tile(rig, ARG(&inst, tensor_scalar, dst), filled(rig, VTRN_SBUF, dtype, parts, elems));
    set_int(ARG(&inst, tensor_scalar, op0), VTRN_ALU_MULTIPLY);
    set_tile(rig, ARG(&inst, tensor_scalar, operand0), filled(rig, VTRN_SBUF, VTRN_DT_F32, parts, 1));
    set_int(ARG(&inst, tensor_scalar, op1), VTRN_ALU_ADD);
    set_num(ARG(&inst, tensor_scalar, operand1), 0.25);
    append(rig, &inst, times);
}
static void add_activation(struct rig *rig, int64_t parts, int64_t elems, int dtype, int times)
{
    struct vtrn_inst inst;

    vtrn_inst_init(&inst, VTRN_OP_activation);
    set_tile(rig, ARG(&inst, activation, data), filled(rig, VTRN_SBUF, dtype, parts, elems));
    set_tile(rig, ARG(&inst, activation, dst), filled(rig, VTRN_SBUF, dtype, parts, elems));
    set_int(ARG(&inst, activation, op), VTRN_ACT_EXP);
    set_tile(rig, ARG(&inst, activation, bias), filled(rig, VTRN_SBUF, VTRN_DT_F32, parts, 1));
    append(rig, &inst, times);
}
static void add_reduce(struct rig *rig, int64_t parts, int64_t elems, int dtype, int times)
{
    struct vtrn_inst inst;

    vtrn_inst_init(&inst, VTRN_OP_tensor_reduce);
    set_tile(rig, ARG(&inst, tensor_reduce, data), filled(rig, VTRN_SBUF, dtype, parts, elems));
    set_tile(rig, ARG(&inst, tensor_reduce, dst), filled(rig, VTRN_SBUF, VTRN_DT_F32, parts, 1));
    set_int(ARG(&inst, tensor_reduce, op), VTRN_ALU_ADD);
    ARG(&inst, tensor_reduce, axis)->kind = VTRN_V_INTS;
    ARG(&inst, tensor_reduce, axis)->count = 1;
    ARG(&inst, tensor_reduce, axis)->ints = vtrn_inst_new_ints(&inst, 1);
    ARG(&inst, tensor_reduce, axis)->ints[0] = 1;
    append(rig, &inst, times);
}
static void add_matmul(struct rig *rig, int64_t parts, int64_t elems, int dtype, int times)
{
    struct vtrn_inst inst;
    int64_t columns = parts < elems ? parts : elems;

    vtrn_inst_init(&inst, VTRN_OP_nc_matmul);
    set_tile(rig, ARG(&inst, nc_matmul, stationary), filled(rig, VTRN_SBUF, dtype, parts, columns));
    set_tile(rig, ARG(&inst, nc_matmul, moving), filled(rig, VTRN_SBUF, dtype, parts, elems));
    set_tile(rig, ARG(&inst, nc_matmul, dst), filled(rig, VTRN_PSUM, VTRN_DT_F32, columns, elems));
    append(rig, &inst, times);
}
static void add_dma(struct rig *rig, int64_t parts, int64_t elems, int dtype, int times)
{
    struct vtrn_inst inst;

    vtrn_inst_init(&inst, VTRN_OP_dma_copy);
    set_tile(rig, ARG(&inst, dma_copy, src), tile(rig, VTRN_HBM, dtype, parts, elems));
    set_tile(rig, ARG(&inst, dma_copy, dst), filled(rig, VTRN_SBUF, dtype, parts, elems));
    append(rig, &inst, times);
}
static void add_register(struct rig *rig, int64_t parts, int64_t elems, int dtype, int times)
{
    struct vtrn_inst inst;

    (void)parts, (void)elems, (void)dtype;
    vtrn_inst_init(&inst, VTRN_OP_register_alu);
    ARG(&inst, register_alu, dst)->kind = ARG(&inst, register_alu, lhs)->kind = VTRN_V_REG;
    ARG(&inst, register_alu, dst)->i = ARG(&inst, register_alu, lhs)->i = 0;
    set_int(ARG(&inst, register_alu, op), VTRN_REGOP_ADD);
    set_int(ARG(&inst, register_alu, rhs), 1);
    append(rig, &inst, times);
}

/* ---------------------------------------------------------------- the same work by bare kernel calls */
struct bare {
    const struct vtrn_kern *kern;
    struct vtrn_store *a, *b, *dst, *scalar;
    float x[ELEMS], y[ELEMS];
    void *scratch;
};

static void *row(const struct vtrn_store *store, int p) { return store->base + (size_t)p * store->pitch; }

static void bare_add_f32(struct bare *bare)
{
    for (int p = 0; p < PARTS; p++) bare->kern->tt[VTRN_ALU_ADD](row(bare->dst, p), row(bare->a, p), row(bare->b, p), ELEMS);
}
static void bare_add_bf16(struct bare *bare)
{
    for (int p = 0; p < PARTS; p++) {
        bare->kern->load[VTRN_DT_BF16](bare->x, row(bare->a, p), ELEMS);
        bare->kern->load[VTRN_DT_BF16](bare->y, row(bare->b, p), ELEMS);
        bare->kern->tt[VTRN_ALU_ADD](bare->x, bare->x, bare->y, ELEMS);
        bare->kern->store[VTRN_DT_BF16](row(bare->dst, p), bare->x, ELEMS);
    }
}
static void bare_scale_bf16(struct bare *bare)
{
    for (int p = 0; p < PARTS; p++) {
        bare->kern->load[VTRN_DT_BF16](bare->x, row(bare->a, p), ELEMS);
        bare->kern->mul_add(bare->x, bare->x, ((float *)bare->scalar->base)[p], 0.25f, ELEMS);
        bare->kern->store[VTRN_DT_BF16](row(bare->dst, p), bare->x, ELEMS);
    }
}
static void bare_evacuate(struct bare *bare)
{
    for (int p = 0; p < PARTS; p++) bare->kern->store[VTRN_DT_BF16](row(bare->dst, p), row(bare->a, p), ELEMS);
}
static void bare_exp_f32(struct bare *bare)
{
    for (int p = 0; p < PARTS; p++)
        bare->kern->act[VTRN_ACT_EXP](row(bare->dst, p), row(bare->a, p), 1, ((float *)bare->scalar->base)[p], ELEMS);
}
static void bare_exp_bf16(struct bare *bare)
{
    for (int p = 0; p < PARTS; p++) {
        bare->kern->load[VTRN_DT_BF16](bare->x, row(bare->a, p), ELEMS);
        bare->kern->act[VTRN_ACT_EXP](bare->x, bare->x, 1, ((float *)bare->scalar->base)[p], ELEMS);
        bare->kern->store[VTRN_DT_BF16](row(bare->dst, p), bare->x, ELEMS);
    }
}
static void bare_sum_f32(struct bare *bare)
{
    float acc[PARTS] = { 0 };

    bare->kern->reduce[VTRN_ALU_ADD](acc, row(bare->a, 0), bare->a->pitch / sizeof(float), PARTS, ELEMS);
    memcpy(bare->y, acc, sizeof acc);
}
static void bare_product_bf16(struct bare *bare)
{
    struct vtrn_mm mm = { .k = PARTS,
                          .m = PARTS,
                          .n = ELEMS,
                          .s = bare->a->base,
                          .s_pitch = (ptrdiff_t)bare->a->pitch,
                          .x = bare->b->base,
                          .x_pitch = (ptrdiff_t)bare->b->pitch,
                          .d = (float *)(void *)bare->dst->base,
                          .d_pitch = (ptrdiff_t)bare->dst->pitch,
                          .s_dtype = VTRN_DT_BF16,
                          .x_dtype = VTRN_DT_BF16,
                          .acc = true,
                          .scratch = bare->scratch };

    bare->kern->mm(&mm);
}

/* ---------------------------------------------------------------- measuring */
struct bench {
    FILE *json;
    int rows, samples, missed, filters;
    char **filter;
};

static double now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

static bool wanted(const struct bench *b, const char *name)
{
    for (int i = 0; i < b->filters; i++)
        if (strstr(name, b->filter[i])) return true;
    return b->filters == 0;
}

static void tell(struct bench *b, const char *name, double value, const char *unit, double goal)
{
    bool ok = goal <= 0 || value <= goal;

    printf("%-46s %9.2f %s", name, value, unit);
    if (goal > 0) printf("   goal %g%s", goal, ok ? "" : " MISSED");
    printf("\n");
    fflush(stdout);
    b->missed += !ok;
    if (!b->json) return;
    fprintf(b->json, "%s\n  {\"name\": \"exec: %s\", \"value\": %.6g, \"unit\": \"%s\", ", b->rows++ ? "," : "", name, value, unit);
    if (goal > 0) fprintf(b->json, "\"goal\": %g, \"ok\": %s}", goal, ok ? "true" : "false");
    else fprintf(b->json, "\"goal\": null, \"ok\": true}");
}

/* Tiny instructions: nanoseconds each, decoding and all. */
struct tiny {
    const char *name;
    void (*add)(struct rig *rig, int64_t parts, int64_t elems, int dtype, int times);
    int64_t parts, elems;
    int dtype;
    double goal;
};
static const struct tiny tinies[] = {
    { "register_alu", add_register, 1, 1, VTRN_DT_F32, 100 },
    { "memset [1,1] fp32", add_memset, 1, 1, VTRN_DT_F32, 100 },
    { "tensor_copy [1,1] fp32", add_copy, 1, 1, VTRN_DT_F32, 100 },
    { "tensor_tensor [1,1] fp32", add_tensor_tensor, 1, 1, VTRN_DT_F32, 100 },
    { "tensor_scalar [1,1] fp32", add_tensor_scalar, 1, 1, VTRN_DT_F32, 100 },
    { "activation [1,1] fp32", add_activation, 1, 1, VTRN_DT_F32, 100 },
    { "tensor_reduce [1,8] fp32", add_reduce, 1, 8, VTRN_DT_F32, 100 },
    { "nc_matmul [1,1] bf16", add_matmul, 1, 1, VTRN_DT_BF16, 0 },
    { "dma_copy [1,1] fp32", add_dma, 1, 1, VTRN_DT_F32, 0 },
    { "tensor_copy [128,1] fp32", add_copy, 128, 1, VTRN_DT_F32, 0 },
    { "tensor_tensor [128,1] fp32", add_tensor_tensor, 128, 1, VTRN_DT_F32, 0 },
    { "tensor_tensor [128,1] bf16", add_tensor_tensor, 128, 1, VTRN_DT_BF16, 0 },
    { "tensor_scalar [128,1] fp32", add_tensor_scalar, 128, 1, VTRN_DT_F32, 0 },
    { "tensor_tensor [128,8] fp32", add_tensor_tensor, 128, 8, VTRN_DT_F32, 0 },
    { "tensor_scalar [128,8] bf16", add_tensor_scalar, 128, 8, VTRN_DT_BF16, 0 },
    { "activation [128,1] fp32", add_activation, 128, 1, VTRN_DT_F32, 0 },
    { "tensor_reduce [128,8] fp32", add_reduce, 128, 8, VTRN_DT_F32, 0 },
};

static void measure_tiny(struct bench *b, const struct tiny *tiny)
{
    struct rig rig = rig_create();
    double best = 1e30;
    char name[80];

    tiny->add(&rig, tiny->parts, tiny->elems, tiny->dtype, LIST);
    run(&rig);
    for (int i = 0; i < b->samples; i++) {
        double start = now_ns(), each;

        run(&rig);
        each = (now_ns() - start) / LIST;
        if (each < best) best = each;
    }
    snprintf(name, sizeof name, "%s, replay", tiny->name);
    tell(b, name, best, "ns", tiny->goal);
    rig_destroy(&rig);
}

/* A [128,512] tile: time of the instruction over the time of the bare calls. */
struct tile_case {
    const char *name;
    void (*add)(struct rig *rig, int64_t parts, int64_t elems, int dtype, int times);
    void (*bare)(struct bare *bare);
    int dtype;
    int a, b, dst, scalar; /* which of the tensors that `add` made, in its order; -1: none */
};
static const struct tile_case tile_cases[] = {
    { "tensor_tensor add fp32", add_tensor_tensor, bare_add_f32, VTRN_DT_F32, 0, 1, 2, -1 },
    { "tensor_tensor add bf16", add_tensor_tensor, bare_add_bf16, VTRN_DT_BF16, 0, 1, 2, -1 },
    { "tensor_scalar multiply add bf16", add_tensor_scalar, bare_scale_bf16, VTRN_DT_BF16, 0, -1, 1, 2 },
    { "tensor_copy PSUM fp32 to bf16", add_copy, bare_evacuate, VTRN_DT_BF16, 0, -1, 1, -1 },
    { "activation exp fp32", add_activation, bare_exp_f32, VTRN_DT_F32, 0, -1, 1, 2 },
    { "activation exp bf16", add_activation, bare_exp_bf16, VTRN_DT_BF16, 0, -1, 1, 2 },
    { "tensor_reduce add fp32", add_reduce, bare_sum_f32, VTRN_DT_F32, 0, -1, 1, -1 },
    { "nc_matmul 128x128x512 bf16", add_matmul, bare_product_bf16, VTRN_DT_BF16, 0, 1, 2, -1 },
};

static void measure_tile(struct bench *b, const struct tile_case *c)
{
    enum { REPEAT = 20 };
    struct rig rig = rig_create();
    struct bare bare = { .kern = vtrn_kern_best() };
    double best = 1e30, best_bare = 1e30;
    char name[80];

    bare.scratch = vtrn_alloc_aligned(bare.kern->mm_scratch_bytes, 64);
    must(bare.scratch, "no memory");
    c->add(&rig, PARTS, ELEMS, c->dtype, REPEAT);
    bare.a = store_of(&rig, (uint32_t)c->a);
    bare.dst = store_of(&rig, (uint32_t)c->dst);
    if (c->b >= 0) bare.b = store_of(&rig, (uint32_t)c->b);
    if (c->scalar >= 0) bare.scalar = store_of(&rig, (uint32_t)c->scalar);
    for (int i = 0; i < 5 * b->samples; i++) {
        double start = now_ns(), middle, end;

        run(&rig);
        middle = now_ns();
        for (int k = 0; k < REPEAT; k++) c->bare(&bare);
        end = now_ns();
        if (middle - start < best) best = middle - start;
        if (end - middle < best_bare) best_bare = end - middle;
    }
    snprintf(name, sizeof name, "%s [128,512]", c->name);
    tell(b, name, best / REPEAT / 1000, "us", 0);
    snprintf(name, sizeof name, "%s [128,512], of bare kernels", c->name);
    tell(b, name, best / best_bare, "x", 1.3);
    vtrn_free_aligned(bare.scratch);
    rig_destroy(&rig);
}

int main(int argc, char **argv)
{
    struct bench b = { .samples = 41 };
    int at = 1;

    for (; at + 1 < argc && strncmp(argv[at], "--", 2) == 0; at += 2) {
        if (strcmp(argv[at], "--json") == 0) b.json = fopen(argv[at + 1], "w");
        else if (strcmp(argv[at], "--samples") == 0) b.samples = atoi(argv[at + 1]);
        if (b.samples < 1 || (strcmp(argv[at], "--json") == 0 && !b.json)) break;
    }
    if (at < argc && strncmp(argv[at], "--", 2) == 0) {
        fprintf(stderr, "usage: bench_exec [--json FILE] [--samples N] [NAME...]\n");
        return 2;
    }
    b.filter = argv + at;
    b.filters = argc - at;
    printf("level %s\n", vtrn_cpu_name(vtrn_kern_best()->level));
    if (b.json) fprintf(b.json, "[");
    for (size_t i = 0; i < sizeof tinies / sizeof *tinies; i++)
        if (wanted(&b, tinies[i].name)) measure_tiny(&b, &tinies[i]);
    for (size_t i = 0; i < sizeof tile_cases / sizeof *tile_cases; i++)
        if (wanted(&b, tile_cases[i].name)) measure_tile(&b, &tile_cases[i]);
    if (b.json) {
        fprintf(b.json, "\n]\n");
        fclose(b.json);
    }
    printf("%d goals missed\n", b.missed);
    return 0;
}
