/* Speed of the tile products and transposes, one thread, as ratios to what this core's registers can do: each sample of a
 * case is taken between samples of two loops that only issue fma and VDPBF16PS on registers, in the same process, and the
 * best samples are compared (the machines this runs on are shared; see docs/performance.md). Cases take turns, one sample
 * each: products lose a tenth for up to seconds at a time, the register loops nothing (a neighbour on the core's other hardware
 * thread, it seems), so samples of a case must lie far apart.
 *
 *   bench_mm [--json FILE] [--samples N] [NAME...]     cases whose name contains one of the NAMEs
 *
 * Tiles lie as on the chip: operands in partitions of 192 KiB + 64 bytes, destinations in partitions of 16 KiB + 64 bytes.
 * "warm" repeats one tile; "cold" moves through 24 MiB of moving operands and 8 banks of destinations. */
#include <math.h>
#include <time.h>

#include "bench_peak.h"
#include "kern/kern.h"

enum {
    PARTITIONS = 128,
    SBUF_PITCH = 192 * 1024 + 64,
    PSUM_PITCH = 16 * 1024 + 64,
    BANK_BYTES = 2048,
    SAMPLE_NS = 2000000,
};

struct bench {
    const struct vtrn_kern *kern;
    uint8_t *sbuf, *psum, *scratch, *scales;
    FILE *json;
    int rows, samples, failed;
    char **filters;
    int filter_count;
};
enum peak { PEAK_NONE, PEAK_FMA, PEAK_PAIRS /* VDPBF16PS where the level has it, else fma */ };
struct mm_case {
    const char *name;
    uint8_t s_dtype, x_dtype;
    int k, m, n;
    bool cold;
    enum peak peak;
    double goal; /* part of the peak; 0: none */
};

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

/* ---- output ---- */
static void report(struct bench *b, const char *name, double value, const char *unit, double goal, bool more_is_better)
{
    bool ok = goal == 0 || (more_is_better ? value >= goal : value <= goal);
    printf("%-58s %9.3f %-8s", name, value, unit);
    if (goal != 0) printf(" goal %s %.3g %s", more_is_better ? ">=" : "<=", goal, ok ? "" : "MISSED");
    printf("\n");
    fflush(stdout);
    b->failed += !ok;
    if (b->json == NULL) return;
    fprintf(b->json, "%s\n  {\"name\": \"%s\", \"value\": %.6g, \"unit\": \"%s\", \"goal\": ", b->rows++ ? "," : "", name, value,
            unit);
    if (goal != 0) fprintf(b->json, "%g", goal);
    else fprintf(b->json, "null");
    fprintf(b->json, ", \"ok\": %s}", ok ? "true" : "false");
}
static bool selected(const struct bench *b, const char *name)
{
    for (int i = 0; i < b->filter_count; i++)
        if (strstr(name, b->filters[i]) != NULL) return true;
    return b->filter_count == 0;
}

/* ---- one case ---- */
struct run {
    const struct bench *b;
    struct vtrn_mm mm;
    struct vtrn_mm_mx mx;
    bool is_mx, cold;
    int turn, columns_of_sbuf;
};
/* Moving operand and destination of the next call: the next columns of all partitions, the next bank. */
static void run_once(struct run *r)
{
    uint8_t *x = r->b->sbuf + 4096;
    float *d = (float *)(void *)r->b->psum;
    if (r->cold) {
        int size = r->is_mx ? vtrn_dtypes[r->mx.x_dtype].size_bytes : vtrn_dtypes[r->mm.x_dtype].size_bytes;
        int n = r->is_mx ? r->mx.n : r->mm.n;
        int tiles = (SBUF_PITCH - 8192) / (n * size);
        x += (ptrdiff_t)(r->turn % tiles) * n * size;
        d += (ptrdiff_t)(r->turn % 8) * (BANK_BYTES / 4);
        r->turn++;
    }
    if (r->is_mx) {
        r->mx.x = x;
        r->mx.d = d;
        r->b->kern->mm_mx(&r->mx);
    } else {
        r->mm.x = x;
        r->mm.d = d;
        r->b->kern->mm(&r->mm);
    }
}
static double time_calls(struct run *r, int calls)
{
    double start = now_ns();
    for (int i = 0; i < calls; i++) run_once(r);
    return (now_ns() - start) / calls;
}
/* Best times: of a call in ns, of the two loops in flop per ns. */
struct best {
    double call_ns, fma_rate, pairs_rate;
};
static void sample(struct run *r, struct best *best)
{
    int calls = (int)(SAMPLE_NS / time_calls(r, 1)) + 1;
    best->fma_rate = fmax(best->fma_rate, vtrn_bench_fma_rate(r->b->kern->level));
    best->call_ns = fmin(best->call_ns, time_calls(r, calls));
    best->pairs_rate = fmax(best->pairs_rate, vtrn_bench_pairs_rate(r->b->kern->level));
    best->call_ns = fmin(best->call_ns, time_calls(r, calls));
}

static bool is_mx(const struct mm_case *c) { return vtrn_dtypes[c->s_dtype].lanes == 4; }

static void sample_mm(struct bench *b, const struct mm_case *c, struct best *best)
{
    bool mx = is_mx(c);
    struct run r = { .b = b, .is_mx = mx, .cold = c->cold };
    r.mm = (struct vtrn_mm){ .k = c->k,
                             .m = c->m,
                             .n = c->n,
                             .s = b->sbuf,
                             .s_pitch = SBUF_PITCH,
                             .x_pitch = SBUF_PITCH,
                             .d_pitch = PSUM_PITCH,
                             .s_dtype = c->s_dtype,
                             .x_dtype = c->x_dtype,
                             .acc = true,
                             .scratch = b->scratch };
    r.mx = (struct vtrn_mm_mx){ .k = c->k,
                                .m = c->m,
                                .n = c->n,
                                .s = b->sbuf,
                                .s_pitch = SBUF_PITCH,
                                .x_pitch = SBUF_PITCH,
                                .s_scale = b->scales,
                                .x_scale = b->scales,
                                .d_pitch = PSUM_PITCH,
                                .s_dtype = c->s_dtype,
                                .x_dtype = c->x_dtype,
                                .acc = true,
                                .scratch = b->scratch };
    sample(&r, best);
}
static void report_mm(struct bench *b, const struct mm_case *c, const struct best *best)
{
    double flop = 2.0 * c->k * c->m * c->n * (is_mx(c) ? 4 : 1);
    char name[128];
    snprintf(name, sizeof name, "%s: time", c->name);
    report(b, name, best->call_ns / 1000, "us", 0, false);
    if (c->peak == PEAK_NONE) return;
    double peak = c->peak == PEAK_PAIRS ? best->pairs_rate : best->fma_rate;
    snprintf(name, sizeof name, "%s: part of %s peak", c->name,
             c->peak == PEAK_PAIRS ? vtrn_bench_pairs_name(b->kern->level) : "fma");
    report(b, name, flop / best->call_ns / peak, "ratio", c->goal, true);
}

static void bench_transpose(struct bench *b, int size_index, double goal_us)
{
    char name[64];
    snprintf(name, sizeof name, "transpose 128x128 of %d-byte elements", 1 << size_index);
    if (!selected(b, name)) return;
    double best = INFINITY;
    for (int i = 0; i < 4 * b->samples; i++) {
        enum { CALLS = 100 };
        double start = now_ns();
        for (int n = 0; n < CALLS; n++) b->kern->transpose[size_index](b->sbuf + 65536, SBUF_PITCH, b->sbuf, SBUF_PITCH, 128, 128);
        best = fmin(best, (now_ns() - start) / CALLS);
    }
    report(b, name, best / 1000, "us", goal_us, false);
}

/* Every element of SBUF a small ordinary number in the dtype about to be used. */
static void fill(struct bench *b, enum vtrn_dtype dtype)
{
    uint8_t pool[4096];
    uint32_t state = 12345;
    int size = vtrn_dtypes[dtype].size_bytes;
    for (int i = 0; i < (int)sizeof pool; i += size) {
        state = state * 1664525 + 1013904223;
        float value = (float)((int)(state >> 8) - (1 << 23)) / (1 << 22);
        if (vtrn_dtypes[dtype].lanes == 4)
            memcpy(pool + i, &(uint32_t){ state & UINT32_C(0xb7b7b7b7) }, (size_t)size); /* below inf in every MX dtype */
        else vtrn_from_f32(dtype, value, pool + i);
    }
    for (size_t at = 0; at < (size_t)PARTITIONS * SBUF_PITCH; at += sizeof pool) {
        size_t left = (size_t)PARTITIONS * SBUF_PITCH - at;
        memcpy(b->sbuf + at, pool, left < sizeof pool ? left : sizeof pool);
    }
    memset(b->psum, 0, (size_t)PARTITIONS * PSUM_PITCH);
    memset(b->scales, 127, (size_t)PARTITIONS * 512);
}

static const struct mm_case cases[] = {
#define DT(name) VTRN_DT_##name
    { "bf16 128x128x512 warm", DT(BF16), DT(BF16), 128, 128, 512, false, PEAK_PAIRS, 0.95 },
    { "bf16 128x128x512 cold", DT(BF16), DT(BF16), 128, 128, 512, true, PEAK_PAIRS, 0.85 },
    { "f8e4 128x128x512 warm", DT(F8E4M3), DT(F8E4M3), 128, 128, 512, false, PEAK_PAIRS, 0.90 },
    { "f8e5 128x128x512 warm", DT(F8E5M2), DT(F8E5M2), 128, 128, 512, false, PEAK_PAIRS, 0.90 },
    { "f8e4 128x128x512 cold", DT(F8E4M3), DT(F8E4M3), 128, 128, 512, true, PEAK_PAIRS, 0.85 },
    { "f32 128x128x512 warm", DT(F32), DT(F32), 128, 128, 512, false, PEAK_FMA, 0.95 },
    { "f32 128x128x512 cold", DT(F32), DT(F32), 128, 128, 512, true, PEAK_FMA, 0.85 },
    { "f16 128x128x512 warm", DT(F16), DT(F16), 128, 128, 512, false, PEAK_FMA, 0.95 },
    { "f16 128x128x512 cold", DT(F16), DT(F16), 128, 128, 512, true, PEAK_FMA, 0.85 },
    { "tf32 128x128x512 warm", DT(TF32), DT(TF32), 128, 128, 512, false, PEAK_FMA, 0.90 },
    { "f32 x bf16 128x128x512 warm", DT(F32), DT(BF16), 128, 128, 512, false, PEAK_FMA, 0.95 },
    { "mx f8e4fn 128x128x512 warm", DT(F8E4M3FNX4), DT(F8E4M3FNX4), 128, 128, 512, false, PEAK_FMA, 0.50 },
    { "mx f8e5 128x128x512 warm", DT(F8E5M2X4), DT(F8E5M2X4), 128, 128, 512, false, PEAK_FMA, 0.50 },
    { "mx f4 128x128x512 warm", DT(F4E2M1FNX4), DT(F4E2M1FNX4), 128, 128, 512, false, PEAK_FMA, 0.50 },
    { "bf16 128x64x512 warm", DT(BF16), DT(BF16), 128, 64, 512, false, PEAK_PAIRS, 0 },
    { "bf16 64x128x512 warm", DT(BF16), DT(BF16), 64, 128, 512, false, PEAK_PAIRS, 0 },
    { "bf16 128x32x512 warm", DT(BF16), DT(BF16), 128, 32, 512, false, PEAK_PAIRS, 0 },
    { "bf16 128x16x512 warm", DT(BF16), DT(BF16), 128, 16, 512, false, PEAK_PAIRS, 0 },
    { "bf16 128x8x512 warm", DT(BF16), DT(BF16), 128, 8, 512, false, PEAK_PAIRS, 0 },
    { "bf16 128x4x512 warm", DT(BF16), DT(BF16), 128, 4, 512, false, PEAK_PAIRS, 0 },
    { "bf16 128x2x512 warm", DT(BF16), DT(BF16), 128, 2, 512, false, PEAK_PAIRS, 0 },
    { "bf16 128x1x512 warm", DT(BF16), DT(BF16), 128, 1, 512, false, PEAK_PAIRS, 0 },
    { "bf16 128x128x128 warm", DT(BF16), DT(BF16), 128, 128, 128, false, PEAK_PAIRS, 0 },
    { "bf16 128x128x64 warm", DT(BF16), DT(BF16), 128, 128, 64, false, PEAK_PAIRS, 0 },
    { "bf16 128x128x16 warm", DT(BF16), DT(BF16), 128, 128, 16, false, PEAK_PAIRS, 0 },
    { "bf16 128x128x8 warm", DT(BF16), DT(BF16), 128, 128, 8, false, PEAK_PAIRS, 0 },
    { "bf16 128x128x4 warm", DT(BF16), DT(BF16), 128, 128, 4, false, PEAK_PAIRS, 0 },
    { "bf16 128x128x1 warm", DT(BF16), DT(BF16), 128, 128, 1, false, PEAK_PAIRS, 0 },
    { "f32 128x1x512 warm", DT(F32), DT(F32), 128, 1, 512, false, PEAK_FMA, 0 },
    { "f32 128x128x1 warm", DT(F32), DT(F32), 128, 128, 1, false, PEAK_FMA, 0 },
    { "f8e4 128x1x512 warm", DT(F8E4M3), DT(F8E4M3), 128, 1, 512, false, PEAK_PAIRS, 0 },
    { "f8e4 128x4x512 warm", DT(F8E4M3), DT(F8E4M3), 128, 4, 512, false, PEAK_PAIRS, 0 },
#undef DT
};

enum { CASES = sizeof cases / sizeof *cases };

static bool parse_arguments(struct bench *b, int argc, char **argv)
{
    int at = 1;
    for (; at + 1 < argc && strncmp(argv[at], "--", 2) == 0; at += 2) {
        if (strcmp(argv[at], "--json") == 0) {
            b->json = fopen(argv[at + 1], "w");
            if (b->json == NULL) return false;
        } else if (strcmp(argv[at], "--samples") == 0) {
            b->samples = atoi(argv[at + 1]);
        } else {
            return false;
        }
    }
    b->filters = argv + at;
    b->filter_count = argc - at;
    return b->samples > 0 && (at == argc || argv[at][0] != '-');
}

int main(int argc, char **argv)
{
    struct bench b = { .kern = vtrn_kern_best(), .samples = 40 };
    if (!parse_arguments(&b, argc, argv)) {
        fprintf(stderr, "usage: bench_mm [--json FILE] [--samples N] [NAME...]\n");
        return 2;
    }
    b.sbuf = vtrn_alloc_pages((size_t)PARTITIONS * SBUF_PITCH);
    b.psum = vtrn_alloc_pages((size_t)PARTITIONS * PSUM_PITCH);
    b.scratch = vtrn_alloc_aligned(b.kern->mm_scratch_bytes, 64);
    b.scales = vtrn_alloc_aligned((size_t)PARTITIONS * 512, 64);
    if (b.sbuf == NULL || b.psum == NULL || b.scratch == NULL || b.scales == NULL) {
        fprintf(stderr, "bench_mm: no memory\n");
        return 1;
    }
    if (b.json != NULL) fprintf(b.json, "[");
    printf("level %s; fma %.0f, %s %.0f flop/ns on registers\n", vtrn_cpu_name(b.kern->level), vtrn_bench_fma_rate(b.kern->level),
           vtrn_bench_pairs_name(b.kern->level), vtrn_bench_pairs_rate(b.kern->level));
    struct best best[CASES];
    for (int i = 0; i < CASES; i++) best[i] = (struct best){ INFINITY, 0, 0 };
    for (int turn = 0; turn < b.samples; turn++)
        for (int i = 0; i < CASES; i++) {
            if (!selected(&b, cases[i].name)) continue;
            fill(&b, (enum vtrn_dtype)cases[i].x_dtype);
            sample_mm(&b, &cases[i], &best[i]);
        }
    for (int i = 0; i < CASES; i++)
        if (selected(&b, cases[i].name)) report_mm(&b, &cases[i], &best[i]);
    bench_transpose(&b, 0, 0);
    bench_transpose(&b, 1, 2.5);
    bench_transpose(&b, 2, 0);
    if (b.json != NULL) {
        fprintf(b.json, "\n]\n");
        fclose(b.json);
    }
    return 0; /* a missed goal is a row that says so; this is no test */
}
