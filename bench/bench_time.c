/* Speed and memory of the timing engine: programs of a million instructions, at level event, in one thread.
 *
 *   bench_time [--json FILE] [INSTRUCTIONS [NAME]]
 *
 * tiles: loads, products, copies and stores over rotating tiles, what kernels look like; small: many small tensors; chain: one
 * engine, each step depends on the one before. Prints instructions per second and bytes per instruction (of the timing alone, from
 * the host's peak). */
#include <sys/resource.h>
#include <time.h>

#include "time/time.h"

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t); /* others may share the machine */
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void check(enum vtrn_status status, const struct vtrn_error *err)
{
    if (status >= 0) return;
    fprintf(stderr, "bench_time: %s\n", err->text);
    exit(1);
}

static uint32_t tensor(struct vtrn_prog *prog, int space, int dtype, int64_t rows, int64_t columns)
{
    struct vtrn_tensor t = { .space = (uint8_t)space, .dtype = (uint8_t)dtype, .rank = 2, .dim = { rows, columns } };
    struct vtrn_error err = { 0 };
    uint32_t index = 0;

    check(vtrn_prog_tensor(prog, &t, &index, &err), &err);
    return index;
}

static void ap(struct vtrn_value *value, uint32_t t, int dtype, int64_t offset, int64_t pitch, int64_t columns)
{
    value->kind = VTRN_V_AP;
    value->ap = (struct vtrn_ap){ .tensor = t, .dtype = (uint8_t)dtype, .ndim = 2, .offset = offset, .dim = { { pitch, 128 }, { 1, columns } } };
}

static void append(struct vtrn_prog *prog, struct vtrn_inst *inst)
{
    struct vtrn_error err = { 0 };

    check(vtrn_prog_append(prog, 0, inst, NULL, &err), &err);
}

static void copy(struct vtrn_prog *prog, struct vtrn_inst *inst, uint32_t dst, int64_t dst_at, int64_t dst_pitch, uint32_t src,
                 int64_t src_at, int64_t src_pitch)
{
    vtrn_inst_init(inst, VTRN_OP_dma_copy);
    inst->engine = VTRN_ENGINE_DMA;
    ap(&inst->arg[0], dst, VTRN_DT_BF16, dst_at, dst_pitch, 512);
    ap(&inst->arg[1], src, VTRN_DT_BF16, src_at, src_pitch, 512);
    append(prog, inst);
}

/* Tiles of a product: two loads for eight multiplications, then a copy and a store. */
static struct vtrn_prog *tiles(const struct vtrn_arch *arch, uint32_t count)
{
    struct vtrn_error err = { 0 };
    struct vtrn_prog *prog = vtrn_prog_create(arch, 1, &err);
    struct vtrn_inst *inst = malloc(sizeof *inst);
    uint32_t x = tensor(prog, VTRN_HBM, VTRN_DT_BF16, 4096, 4096), y = tensor(prog, VTRN_HBM, VTRN_DT_BF16, 4096, 4096);

    for (uint32_t i = 0; prog->code[0].count < count; i++) {
        uint32_t a = tensor(prog, VTRN_SBUF, VTRN_DT_BF16, 128, 512), b = tensor(prog, VTRN_SBUF, VTRN_DT_BF16, 128, 512);
        uint32_t p = tensor(prog, VTRN_PSUM, VTRN_DT_F32, 128, 512), c = tensor(prog, VTRN_SBUF, VTRN_DT_BF16, 128, 512);
        int64_t at = (int64_t)(i % 32) * 128 * 4096 + (int64_t)(i / 32 % 8) * 512;

        copy(prog, inst, a, 0, 1, x, at, 4096);
        copy(prog, inst, b, 0, 1, x, at, 4096);
        for (int k = 0; k < 8; k++) {
            vtrn_inst_init(inst, VTRN_OP_nc_matmul);
            inst->engine = VTRN_ENGINE_TENSOR;
            ap(&inst->arg[0], p, VTRN_DT_F32, 0, 1, 512);
            ap(&inst->arg[1], a, VTRN_DT_BF16, 128 * (k % 4), 1, 128);
            ap(&inst->arg[2], b, VTRN_DT_BF16, 0, 1, 512);
            append(prog, inst);
        }
        vtrn_inst_init(inst, VTRN_OP_tensor_copy);
        inst->engine = VTRN_ENGINE_VECTOR;
        ap(&inst->arg[0], c, VTRN_DT_BF16, 0, 1, 512);
        ap(&inst->arg[1], p, VTRN_DT_F32, 0, 1, 512);
        append(prog, inst);
        copy(prog, inst, y, at, 4096, c, 0, 1);
    }
    free(inst);
    return prog;
}

static void elementwise(struct vtrn_prog *prog, struct vtrn_inst *inst, int engine, uint32_t dst, uint32_t src, int64_t columns)
{
    vtrn_inst_init(inst, VTRN_OP_tensor_copy);
    inst->engine = (uint8_t)engine;
    ap(&inst->arg[0], dst, VTRN_DT_F32, 0, 1, columns);
    ap(&inst->arg[1], src, VTRN_DT_F32, 0, 1, columns);
    append(prog, inst);
}

/* A new tensor of a few bytes for every instruction, read by the next one on another engine. */
static struct vtrn_prog *small(const struct vtrn_arch *arch, uint32_t count)
{
    static const int engines[] = { VTRN_ENGINE_VECTOR, VTRN_ENGINE_SCALAR, VTRN_ENGINE_GPSIMD };
    struct vtrn_error err = { 0 };
    struct vtrn_prog *prog = vtrn_prog_create(arch, 1, &err);
    struct vtrn_inst *inst = malloc(sizeof *inst);
    uint32_t last = tensor(prog, VTRN_SBUF, VTRN_DT_F32, 128, 1);

    for (uint32_t i = 0; i < count; i++) {
        uint32_t next = tensor(prog, VTRN_SBUF, VTRN_DT_F32, 128, 1);

        elementwise(prog, inst, engines[i % 3], next, last, 1);
        last = next;
    }
    free(inst);
    return prog;
}

static struct vtrn_prog *chain(const struct vtrn_arch *arch, uint32_t count)
{
    struct vtrn_error err = { 0 };
    struct vtrn_prog *prog = vtrn_prog_create(arch, 1, &err);
    struct vtrn_inst *inst = malloc(sizeof *inst);
    uint32_t t[2] = { tensor(prog, VTRN_SBUF, VTRN_DT_F32, 128, 512), tensor(prog, VTRN_SBUF, VTRN_DT_F32, 128, 512) };

    for (uint32_t i = 0; i < count; i++) elementwise(prog, inst, VTRN_ENGINE_VECTOR, t[i % 2], t[1 - i % 2], 512);
    free(inst);
    return prog;
}

static size_t peak_bytes(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return (size_t)usage.ru_maxrss * 1024;
}

enum { TURNS = 5 };
static const double GOAL = 3e6; /* instructions per second of what kernels look like */

struct report {
    FILE *json;
    int rows;
};

static void row(struct report *report, const char *name, double value, const char *unit, double goal, bool ok)
{
    if (!report->json) return;
    fprintf(report->json, "%s\n  {\"name\": \"time: %s\", \"value\": %.6g, \"unit\": \"%s\", ", report->rows++ ? "," : "", name, value, unit);
    if (goal > 0) fprintf(report->json, "\"goal\": %g, \"ok\": %s}", goal, ok ? "true" : "false");
    else fprintf(report->json, "\"goal\": null, \"ok\": true}");
}

static void bench(struct report *report, const char *name, struct vtrn_prog *prog)
{
    struct vtrn_error err = { 0 };
    struct vtrn_time *time;
    size_t before = peak_bytes();
    double best = 1e9, rate, bytes;
    uint32_t steps = 0;
    uint64_t span = 0;
    bool kernel = strcmp(name, "tiles") == 0;

    for (int turn = 0; turn < TURNS; turn++) {
        double start = now();

        check(vtrn_time_run(prog, NULL, &time, &err), &err);
        if (now() - start < best) best = now() - start;
        steps = time->steps;
        span = time->span_ps;
        vtrn_time_destroy(time);
    }
    rate = steps / best;
    bytes = (double)(peak_bytes() - before) / steps;
    printf("%-8s %9u instructions  %6.3f s  %5.2f M instructions/s  %4.0f B an instruction  (%.3f ms on the chip)\n", name, steps, best,
           rate / 1e6, bytes, (double)span * 1e-9);
    row(report, name, rate, "instructions/s", kernel ? GOAL : 0, rate >= GOAL);
    row(report, "memory", bytes, "B/instruction", kernel ? 200 : 0, bytes <= 200);
    vtrn_prog_destroy(prog);
}

int main(int argc, char **argv)
{
    const struct vtrn_arch *arch = vtrn_arch_find("trn2");
    struct report report = { 0 };
    const char *only;
    uint32_t count;

    if (argc > 2 && strcmp(argv[1], "--json") == 0) {
        report.json = fopen(argv[2], "w");
        if (!report.json) return 2;
        fprintf(report.json, "[");
        argc -= 2;
        argv += 2;
    }
    count = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 1000000;
    only = argc > 2 ? argv[2] : "";
    if (strstr("tiles", only)) bench(&report, "tiles", tiles(arch, count));
    if (strstr("chain", only)) bench(&report, "chain", chain(arch, count));
    if (strstr("small", only)) bench(&report, "small", small(arch, count));
    if (report.json) {
        fprintf(report.json, "\n]\n");
        fclose(report.json);
    }
    return 0;
}
