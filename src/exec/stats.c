/* Batch-norm statistics of the vector engine: bn_stats makes (count, mean, M2) of the even and of the odd elements,
 * bn_aggr joins any number of such triples. M2 is the sum of squared deviations from the mean. */
#include "exec/exec_int.h"

enum { STATS = 6, TRIPLE = 3, CHUNK = 1024 };

struct stats {
    struct exec_view data, dst;
};

/* Two passes over a partition: means, then deviations from them. */
static void stats_rows(const struct exec_rows *rows, int64_t p0, int64_t p1, uint8_t *scratch)
{
    const struct stats *job = rows->data;
    int64_t elems = job->data.elems;
    for (int64_t p = p0; p < p1; p++) {
        float sum[2] = { 0, 0 }, m2[2] = { 0, 0 }, mean[2], n[2] = { (float)((elems + 1) / 2), (float)(elems / 2) };
        for (int pass = 0; pass < 2; pass++) {
            for (int64_t i = 0; i < elems; i += CHUNK) {
                int64_t count = elems - i < CHUNK ? elems - i : CHUNK;
                const float *x = exec_load_f32(rows->core, &job->data, p, 1, i, count, (float *)(void *)scratch);
                for (int64_t k = 0; k < count; k++) {
                    if (pass == 0) {
                        sum[k & 1] += x[k];
                    } else {
                        float off = x[k] - mean[k & 1];
                        m2[k & 1] += off * off;
                    }
                }
            }
            for (int half = 0; half < 2; half++) mean[half] = n[half] > 0 ? sum[half] / n[half] : 0;
        }
        float out[STATS] = { n[0], mean[0], m2[0], n[1], mean[1], m2[1] };
        exec_store_f32(rows->core, &job->dst, p, 1, 0, STATS, out);
    }
}

/* Does: for each partition [n_even, mean_even, M2_even, n_odd, mean_odd, M2_odd] of data's elements by the parity of their
 *   index; M2 is the sum of (x - mean)^2.
 * Rounding: fp32, sums in element order, deviations from the rounded mean.
 * Faults: none of its own.
 * Differs: how hardware accumulates is not documented; last bits may differ. */
enum vtrn_status vtrn_exec_bn_stats(struct vtrn_core *core, const struct vtrn_inst *inst)
{
    const struct vtrn_args_bn_stats *arg = VTRN_ARGS(bn_stats, inst);
    struct stats job;
    VTRN_TRY(exec_resolve(core, &arg->data.ap, VTRN_READ, &job.data));
    VTRN_TRY(exec_resolve(core, &arg->dst.ap, VTRN_WRITE, &job.dst));
    VTRN_TRY(exec_stage_always(core, &job.dst, &job.data));
    exec_for_partitions(core, job.data.parts, job.data.elems * 4, stats_rows, &job);
    return VTRN_OK;
}

struct triple {
    float n, mean, m2;
};

static struct triple triple_at(const struct exec_rows *rows, int64_t p, int64_t at)
{
    const struct stats *job = rows->data;
    float space[TRIPLE];
    const float *x = exec_load_f32(rows->core, &job->data, p, 1, at * TRIPLE, TRIPLE, space);
    return (struct triple){ x[0], x[1], x[2] };
}

static void aggr_rows(const struct exec_rows *rows, int64_t p0, int64_t p1, uint8_t *scratch)
{
    const struct stats *job = rows->data;
    int64_t triples = job->data.elems / TRIPLE;
    (void)scratch;
    for (int64_t p = p0; p < p1; p++) {
        float n = 0, weighted = 0, m2 = 0;
        for (int64_t t = 0; t < triples; t++) {
            struct triple part = triple_at(rows, p, t);
            n += part.n;
            weighted += part.n * part.mean;
        }
        float mean = weighted / n;
        for (int64_t t = 0; t < triples; t++) {
            struct triple part = triple_at(rows, p, t);
            float off = part.mean - mean;
            m2 += part.m2 + part.n * (off * off);
        }
        float out[2] = { mean, m2 / n };
        exec_store_f32(rows->core, &job->dst, p, 1, 0, 2, out);
    }
}

/* Does: joins triples (n, mean, M2) of each partition into [mean, variance]: n = sum n_i, mean = sum n_i*mean_i / n,
 *   variance = (sum M2_i + n_i*(mean_i - mean)^2) / n.
 * Rounding: fp32, triples in order.
 * Faults: none of its own; counts that sum to 0 give NaN.
 * Differs: how hardware accumulates is not documented; last bits may differ. */
enum vtrn_status vtrn_exec_bn_aggr(struct vtrn_core *core, const struct vtrn_inst *inst)
{
    const struct vtrn_args_bn_aggr *arg = VTRN_ARGS(bn_aggr, inst);
    struct stats job;
    VTRN_TRY(exec_resolve(core, &arg->data.ap, VTRN_READ, &job.data));
    VTRN_TRY(exec_resolve(core, &arg->dst.ap, VTRN_WRITE, &job.dst));
    VTRN_TRY(exec_stage_always(core, &job.dst, &job.data));
    exec_for_partitions(core, job.data.parts, job.data.elems * 8, aggr_rows, &job);
    return VTRN_OK;
}
