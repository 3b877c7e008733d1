/* Speed of kern's row slots, one thread, on fp32 tiles of 128 partitions by 512 elements that lie as in SBUF (partitions
 * 192 KiB + 64 bytes apart) and stay in L2. Between the samples of a slot run two calibration loops, a copy of the same
 * tile and fma on registers, so that every figure also comes as a ratio that holds on other machines: bytes moved against
 * the copy, and the flops that the core could have done in the time of one element. Best samples are compared, because the
 * machines this runs on are shared.
 *
 *   bench_kern [--json FILE] [--samples N] [NAME...]     slots whose name contains one of the NAMEs
 *
 * Goals are those of the project for its development machine (AMD Zen 5: 220 Gflop/s fp32 fma a core). */
#include <math.h>
#include <time.h>

#include "bench_peak.h"
#include "kern/kern.h"

enum { PARTITIONS = 128, ELEMS = 512, PITCH = (192 * 1024 + 64) / 4, FIELD = 4096 /* elements between tiles of a partition */ };

struct bench {
    const struct vtrn_kern *kern;
    float *sbuf;
    FILE *json;
    int rows, samples, failed, filters;
    char **filter;
};
/* Tiles of a partition: sources a, b with ordinary values, two destinations. */
static float *field(const struct bench *b, int partition, int number)
{
    return b->sbuf + (size_t)partition * PITCH + (size_t)number * FIELD;
}

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

struct slot {
    const char *name;
    void (*run)(const struct bench *b, const struct slot *slot);
    int index, rows, elems; /* elems of each row; 0: ELEMS */
    double goal;            /* G elements/s; 0: none */
    double bytes;           /* moved per element */
    double copy_goal;       /* part of the copy loop's speed; 0: none */
};

/* ---- what is run: one pass over the tile ---- */
static void run_copy(const struct bench *b, const struct slot *slot)
{
    (void)slot;
    for (int p = 0; p < PARTITIONS; p++) memcpy(field(b, p, 2), field(b, p, 0), ELEMS * sizeof(float));
}
static void run_tt(const struct bench *b, const struct slot *slot)
{
    for (int p = 0; p < PARTITIONS; p++) b->kern->tt[slot->index](field(b, p, 2), field(b, p, 0), field(b, p, 1), ELEMS);
}
static void run_ts(const struct bench *b, const struct slot *slot)
{
    for (int p = 0; p < PARTITIONS; p++) b->kern->ts[slot->index](field(b, p, 2), field(b, p, 0), 1.5f, false, ELEMS);
}
static void run_mul_add(const struct bench *b, const struct slot *slot)
{
    (void)slot;
    for (int p = 0; p < PARTITIONS; p++) b->kern->mul_add(field(b, p, 2), field(b, p, 0), 1.5f, 0.25f, ELEMS);
}
static void run_tt_i32(const struct bench *b, const struct slot *slot)
{
    for (int p = 0; p < PARTITIONS; p++)
        b->kern->tt_i32[slot->index]((int32_t *)field(b, p, 2), (int32_t *)field(b, p, 0), (int32_t *)field(b, p, 1), ELEMS);
}
static void run_bits(const struct bench *b, const struct slot *slot)
{
    for (int p = 0; p < PARTITIONS; p++) b->kern->tt_bits[slot->index][2](field(b, p, 2), field(b, p, 0), field(b, p, 1), ELEMS);
}
static void run_act(const struct bench *b, const struct slot *slot)
{
    for (int p = 0; p < PARTITIONS; p++) b->kern->act[slot->index](field(b, p, 2), field(b, p, 0), 1, 0, ELEMS);
}
static void run_act_scaled(const struct bench *b, const struct slot *slot)
{
    for (int p = 0; p < PARTITIONS; p++) b->kern->act[slot->index](field(b, p, 2), field(b, p, 0), 0.75f, 0.125f, ELEMS);
}
static void run_load(const struct bench *b, const struct slot *slot)
{
    for (int p = 0; p < PARTITIONS; p++) b->kern->load[slot->index](field(b, p, 2), field(b, p, 3), ELEMS);
}
static void run_store(const struct bench *b, const struct slot *slot)
{
    for (int p = 0; p < PARTITIONS; p++) b->kern->store[slot->index](field(b, p, 2), field(b, p, 0), ELEMS);
}
static void run_store_sr(const struct bench *b, const struct slot *slot)
{
    for (int p = 0; p < PARTITIONS; p++)
        b->kern->store_sr[slot->index](field(b, p, 2), field(b, p, 0), (const uint32_t *)field(b, p, 1), ELEMS);
}
/* Rows of the tile; short rows are packed one after the other, as an inner axis is. */
static void run_reduce(const struct bench *b, const struct slot *slot)
{
    float *acc = field(b, 0, 2);
    if (slot->elems == 0) {
        b->kern->reduce[slot->index](acc, field(b, 0, 0), PITCH, (size_t)slot->rows, ELEMS);
        return;
    }
    for (int p = 0; p < PARTITIONS; p++)
        b->kern->reduce[slot->index](field(b, p, 2), field(b, p, 0), (size_t)slot->elems, (size_t)slot->rows, (size_t)slot->elems);
}
static void run_scan(const struct bench *b, const struct slot *slot)
{
    struct vtrn_scan scan = {
        .dst = field(b, 0, 2),
        .a = field(b, 0, 0),
        .b = field(b, 0, 1),
        .dst_stride = PITCH,
        .a_stride = PITCH,
        .b_stride = PITCH,
        .state = field(b, 0, 3),
        .rows = (size_t)slot->rows,
        .n = ELEMS,
        .op0 = VTRN_ALU_MULTIPLY,
        .op1 = VTRN_ALU_ADD,
    };
    b->kern->scan(&scan);
}

/* Goals: bench goals of the project; conversions are to move bytes at most of the copy's rate. */
static const struct slot slots[] = {
    { "add", run_tt, VTRN_ALU_ADD, 0, 0, 8, 12, 0 },
    { "maximum", run_tt, VTRN_ALU_MAXIMUM, 0, 0, 0, 12, 0 },
    { "divide", run_tt, VTRN_ALU_DIVIDE, 0, 0, 0, 12, 0 },
    { "power", run_tt, VTRN_ALU_POWER, 0, 0, 0, 12, 0 },
    { "multiply scalar", run_ts, VTRN_ALU_MULTIPLY, 0, 0, 0, 8, 0 },
    { "greater scalar", run_ts, VTRN_ALU_GREATER, 0, 0, 0, 8, 0 },
    { "mul_add", run_mul_add, 0, 0, 0, 12, 8, 0 },
    { "add i32", run_tt_i32, VTRN_ALU_ADD, 0, 0, 0, 12, 0 },
    { "left_shift 4 bytes", run_bits, VTRN_ALU_LEFT_SHIFT, 0, 0, 0, 12, 0 },
    { "exp", run_act, VTRN_ACT_EXP, 0, 0, 5, 8, 0 },
    { "exp scaled", run_act_scaled, VTRN_ACT_EXP, 0, 0, 5, 8, 0 },
    { "gelu", run_act, VTRN_ACT_GELU, 0, 0, 5, 8, 0 },
    { "gelu scaled", run_act_scaled, VTRN_ACT_GELU, 0, 0, 0, 8, 0 },
    { "gelu_apprx_tanh", run_act, VTRN_ACT_GELU_APPRX_TANH, 0, 0, 5, 8, 0 },
    { "gelu_apprx_sigmoid", run_act, VTRN_ACT_GELU_APPRX_SIGMOID, 0, 0, 0, 8, 0 },
    { "silu", run_act, VTRN_ACT_SILU, 0, 0, 5, 8, 0 },
    { "silu scaled", run_act_scaled, VTRN_ACT_SILU, 0, 0, 0, 8, 0 },
    { "sigmoid", run_act, VTRN_ACT_SIGMOID, 0, 0, 0, 8, 0 },
    { "tanh", run_act, VTRN_ACT_TANH, 0, 0, 0, 8, 0 },
    { "erf", run_act, VTRN_ACT_ERF, 0, 0, 0, 8, 0 },
    { "softplus", run_act, VTRN_ACT_SOFTPLUS, 0, 0, 0, 8, 0 },
    { "mish", run_act, VTRN_ACT_MISH, 0, 0, 0, 8, 0 },
    { "gelu_dx", run_act, VTRN_ACT_GELU_DX, 0, 0, 0, 8, 0 },
    { "silu_dx", run_act, VTRN_ACT_SILU_DX, 0, 0, 0, 8, 0 },
    { "log", run_act, VTRN_ACT_LOG, 0, 0, 0, 8, 0 },
    { "sin", run_act, VTRN_ACT_SIN, 0, 0, 0, 8, 0 },
    { "arctan", run_act, VTRN_ACT_ARCTAN, 0, 0, 0, 8, 0 },
    { "sqrt", run_act, VTRN_ACT_SQRT, 0, 0, 0, 8, 0 },
    { "rsqrt", run_act, VTRN_ACT_RSQRT, 0, 0, 0, 8, 0 },
    { "relu", run_act, VTRN_ACT_RELU, 0, 0, 0, 8, 0 },
    { "load bf16", run_load, VTRN_DT_BF16, 0, 0, 0, 6, 0.7 },
    { "load f16", run_load, VTRN_DT_F16, 0, 0, 0, 6, 0.7 },
    { "load e4m3", run_load, VTRN_DT_F8E4M3, 0, 0, 0, 5, 0 },
    { "load e5m2", run_load, VTRN_DT_F8E5M2, 0, 0, 0, 5, 0 },
    { "load i32", run_load, VTRN_DT_I32, 0, 0, 0, 8, 0 },
    { "load u8", run_load, VTRN_DT_U8, 0, 0, 0, 5, 0 },
    { "store bf16", run_store, VTRN_DT_BF16, 0, 0, 0, 6, 0.7 },
    { "store f16", run_store, VTRN_DT_F16, 0, 0, 0, 6, 0.7 },
    { "store e4m3", run_store, VTRN_DT_F8E4M3, 0, 0, 0, 5, 0 },
    { "store e4m3fn", run_store, VTRN_DT_F8E4M3FN, 0, 0, 0, 5, 0 },
    { "store e5m2", run_store, VTRN_DT_F8E5M2, 0, 0, 0, 5, 0 },
    { "store i32", run_store, VTRN_DT_I32, 0, 0, 0, 8, 0 },
    { "store i8", run_store, VTRN_DT_I8, 0, 0, 0, 5, 0 },
    { "store tf32", run_store, VTRN_DT_TF32, 0, 0, 0, 8, 0 },
    { "store_sr bf16", run_store_sr, VTRN_DT_BF16, 0, 0, 0, 10, 0 },
    { "store_sr e4m3", run_store_sr, VTRN_DT_F8E4M3, 0, 0, 0, 9, 0 },
    { "reduce add", run_reduce, VTRN_ALU_ADD, PARTITIONS, 0, 6, 4, 0 },
    { "reduce maximum", run_reduce, VTRN_ALU_MAXIMUM, PARTITIONS, 0, 6, 4, 0 },
    { "reduce abs_max", run_reduce, VTRN_ALU_ABS_MAX, PARTITIONS, 0, 0, 4, 0 },
    { "reduce add, 1 row", run_reduce, VTRN_ALU_ADD, 1, 0, 0, 4, 0 },
    { "reduce add, 8 rows", run_reduce, VTRN_ALU_ADD, 8, 0, 0, 4, 0 },
    { "reduce add, 32 rows of 16", run_reduce, VTRN_ALU_ADD, 32, 16, 6, 4, 0 },
    { "reduce add, 128 rows of 4", run_reduce, VTRN_ALU_ADD, 128, 4, 0, 4, 0 },
    { "reduce add, 256 rows of 2", run_reduce, VTRN_ALU_ADD, 256, 2, 0, 4, 0 },
    { "reduce add, 512 rows of 1", run_reduce, VTRN_ALU_ADD, 512, 1, 0, 4, 0 },
    { "scan multiply add", run_scan, 0, PARTITIONS, 0, 0, 12, 0 },
    { "scan multiply add, 1 row", run_scan, 0, 1, 0, 0, 12, 0 },
};

static double slot_elements(const struct slot *slot)
{
    if (slot->rows == 0) return (double)PARTITIONS * ELEMS;
    return (double)slot->rows * (slot->elems ? slot->elems * PARTITIONS : ELEMS);
}

/* ---- measuring and telling ---- */
static double sample(const struct bench *b, const struct slot *slot)
{
    int turns = 0;
    double start = now_ns(), end;
    do {
        slot->run(b, slot);
        turns++;
        end = now_ns();
    } while (end - start < 300e3);
    return slot_elements(slot) * turns / (end - start);
}
static void json_row(struct bench *b, const char *name, const char *suffix, double value, const char *unit, double goal)
{
    if (b->json == NULL) return;
    fprintf(b->json, "%s\n  {\"name\": \"%s%s\", \"value\": %.6g, \"unit\": \"%s\", ", b->rows++ ? "," : "", name, suffix, value,
            unit);
    if (goal > 0) fprintf(b->json, "\"goal\": %g, \"ok\": %s}", goal, value >= goal ? "true" : "false");
    else fprintf(b->json, "\"goal\": null, \"ok\": true}");
}
static void measure(struct bench *b, const struct slot *slot)
{
    static const struct slot copy = { "copy", run_copy, 0, 0, 0, 0, 8, 0 };
    double best = 0, best_copy = 0, best_peak = 0;

    for (int i = 0; i < b->samples; i++) {
        double rate = sample(b, slot), copied = sample(b, &copy), peak = vtrn_bench_fma_rate(b->kern->level);
        if (rate > best) best = rate;
        if (copied > best_copy) best_copy = copied;
        if (peak > best_peak) best_peak = peak;
    }
    double of_copy = best * slot->bytes / (best_copy * copy.bytes);
    bool ok = best >= slot->goal && of_copy >= slot->copy_goal;
    printf("%-28s %8.2f G/s  %6.1f flop of %.0f G  %5.2f of copy", slot->name, best, best_peak / best, best_peak, of_copy);
    if (slot->goal > 0) printf("   goal %g G/s%s", slot->goal, best >= slot->goal ? "" : " MISSED");
    if (slot->copy_goal > 0) printf("   goal %g of copy%s", slot->copy_goal, of_copy >= slot->copy_goal ? "" : " MISSED");
    printf("\n");
    fflush(stdout);
    b->failed += !ok;
    json_row(b, slot->name, "", best, "G elements/s", slot->goal);
    json_row(b, slot->name, ", of fma peak", best_peak / best, "flop per element", 0);
    json_row(b, slot->name, ", of copy", of_copy, "ratio", slot->copy_goal);
}

static bool wanted(const struct bench *b, const char *name)
{
    for (int i = 0; i < b->filters; i++)
        if (strstr(name, b->filter[i]) != NULL) return true;
    return b->filters == 0;
}
/* Normal variates (sum of uniforms) in a and b; bytes of small codes for the loads. Realistic data: rates depend on it. */
static void fill(const struct bench *b)
{
    uint32_t state = 1;
    for (int p = 0; p < PARTITIONS; p++) {
        for (int k = 0; k < 2; k++) {
            for (int i = 0; i < ELEMS; i++) {
                float sum = 0;
                for (int j = 0; j < 12; j++) sum += (float)((state = state * 1664525u + 1013904223u) >> 8) * 0x1p-24f;
                field(b, p, k)[i] = sum - 6;
            }
        }
        for (int i = 0; i < ELEMS * 4; i++)
            ((uint8_t *)field(b, p, 3))[i] = (uint8_t)((state = state * 1664525u + 1013904223u) >> 26 | 0x20);
    }
}

int main(int argc, char **argv)
{
    struct bench b = { .kern = vtrn_kern_best(), .samples = 11 };
    int at = 1;
    for (; at + 1 < argc && strncmp(argv[at], "--", 2) == 0; at += 2) {
        if (strcmp(argv[at], "--json") == 0) b.json = fopen(argv[at + 1], "w");
        else if (strcmp(argv[at], "--samples") == 0) b.samples = atoi(argv[at + 1]);
        if (b.samples < 1 || (strcmp(argv[at], "--json") == 0 && b.json == NULL)) break;
    }
    if (at < argc && strncmp(argv[at], "--", 2) == 0) {
        fprintf(stderr, "usage: bench_kern [--json FILE] [--samples N] [NAME...]\n");
        return 2;
    }
    b.filter = argv + at;
    b.filters = argc - at;
    b.sbuf = vtrn_alloc_pages((size_t)PARTITIONS * PITCH * sizeof(float));
    if (b.sbuf == NULL) return 1;
    fill(&b);
    printf("level %s\n", vtrn_cpu_name(b.kern->level));
    if (b.json != NULL) fprintf(b.json, "[");
    for (size_t i = 0; i < sizeof slots / sizeof *slots; i++)
        if (wanted(&b, slots[i].name)) measure(&b, &slots[i]);
    if (b.json != NULL) {
        fprintf(b.json, "\n]\n");
        fclose(b.json);
    }
    printf("%d goals missed\n", b.failed);
    vtrn_free_pages(b.sbuf, (size_t)PARTITIONS * PITCH * sizeof(float));
    return 0;
}
