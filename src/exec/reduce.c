/* Reductions and scans of the vector engine over the free dimensions.
 *
 * Everything is summed strictly in order of the elements, as silicon does (kern/ref/rows.c has the evidence); speed comes from
 * walking many rows side by side. Statistics and searches are in stats.c.
 * Must not know how kern walks rows. */
#include "exec/acc_int.h"
#include "exec/walk_int.h"

/* ---------------------------------------------------------------- tensor_reduce */
/* A partition of data is `kept` runs of `run` elements; each run gives one element of dst. */
struct reduction {
    struct exec_view dst, data;
    enum vtrn_alu op;
    int64_t kept, run;
    bool negate;
};

static void begin_f32(enum vtrn_alu op, float *acc, int64_t n)
{
    float identity = exec_identity(op);

    for (int64_t k = 0; k < n; k++) acc[k] = identity;
}

/* Adds `rows` runs of n elements, `stride` apart, to acc. Subtraction starts from the first element, not from 0. */
static void add_runs(const struct vtrn_kern *kern, enum vtrn_alu op, float *acc, const float *src, size_t stride, int64_t rows,
                     int64_t n, bool first)
{
    if (first && op == VTRN_ALU_SUBTRACT) {
        for (int64_t r = 0; r < rows; r++) acc[r] = src[(size_t)r * stride];
        kern->reduce[op](acc, src + 1, stride, (size_t)rows, (size_t)n - 1);
        return;
    }
    kern->reduce[op](acc, src, stride, (size_t)rows, (size_t)n);
}

static void store_reduced(const struct exec_rows *rows, const struct reduction *job, int64_t p, int64_t np, int64_t j, int64_t n,
                          float *acc)
{
    for (int64_t k = 0; job->negate && k < np * n; k++) acc[k] = -acc[k];
    exec_store_f32(rows->core, &job->dst, p, np, j, n, acc);
}

/* Long runs: run j of np partitions side by side, in pieces. */
static void reduce_long(const struct exec_rows *rows, int64_t p0, int64_t p1, uint8_t *scratch)
{
    const struct reduction *job = rows->data;
    const struct vtrn_kern *kern = rows->core->kern;
    bool in_place = job->data.dtype == VTRN_DT_F32 && job->data.contiguous && !job->data.elem_offset;
    int64_t step = in_place ? EXEC_LANES : exec_tall_parts(job->run);
    float acc[EXEC_LANES];

    for (int64_t p = p0; p < p1; p += step)
        for (int64_t j = 0; j < job->kept; j++) {
            int64_t np = p1 - p < step ? p1 - p : step;

            begin_f32(job->op, acc, np);
            if (in_place) {
                const float *row = (const float *)(const void *)exec_elem(&job->data, p, j * job->run);

                add_runs(kern, job->op, acc, row, (size_t)job->data.pitch / 4, np, job->run, true);
            }
            for (int64_t i = 0; !in_place && i < job->run; i += EXEC_TALL_ELEMS) {
                int64_t n = job->run - i < EXEC_TALL_ELEMS ? job->run - i : EXEC_TALL_ELEMS;
                const float *x = exec_load_f32(rows->core, &job->data, p, np, j * job->run + i, n, exec_block(scratch, 0));

                add_runs(kern, job->op, acc, x, (size_t)n, np, n, i == 0);
            }
            store_reduced(rows, job, p, np, j, 1, acc);
        }
}

/* Short runs: many runs of many partitions in one block. */
static void reduce_short(const struct exec_rows *rows, int64_t p0, int64_t p1, uint8_t *scratch)
{
    const struct reduction *job = rows->data;
    int64_t runs = EXEC_ROW_MAX / job->run, step; /* runs that fit a block */
    float *acc = exec_block(scratch, 1);

    if (runs > job->kept) runs = job->kept;
    step = EXEC_ROW_MAX / (runs * job->run);
    for (int64_t p = p0; p < p1; p += step)
        for (int64_t j = 0; j < job->kept; j += runs) {
            int64_t np = p1 - p < step ? p1 - p : step, n = job->kept - j < runs ? job->kept - j : runs;
            const float *x = exec_load_f32(rows->core, &job->data, p, np, j * job->run, n * job->run, exec_block(scratch, 0));

            begin_f32(job->op, acc, np * n);
            add_runs(rows->core->kern, job->op, acc, x, (size_t)job->run, np * n, job->run, true);
            store_reduced(rows, job, p, np, j, n, acc);
        }
}

/* Bitwise: the accumulator has the width of data; dst takes its low bits, or zeros above. */
static void reduce_bits(const struct exec_rows *rows, int64_t p0, int64_t p1, uint8_t *scratch)
{
    const struct reduction *job = rows->data;
    int bytes = job->data.elem_bytes;

    for (int64_t p = p0; p < p1; p++)
        for (int64_t j = 0; j < job->kept; j++) {
            uint32_t acc = job->op == VTRN_ALU_BITWISE_AND ? UINT32_MAX : 0;
            uint8_t out[4];

            if (bytes < 4) acc &= (UINT32_C(1) << 8 * bytes) - 1;
            for (int64_t i = 0; i < job->run; i += EXEC_ROW_MAX) {
                int64_t n = job->run - i < EXEC_ROW_MAX ? job->run - i : EXEC_ROW_MAX;
                const void *x = exec_load_raw(&job->data, p, 1, j * job->run + i, n, exec_block(scratch, 0));

                rows->core->kern->reduce_bits[job->op][exec_size_slot(bytes)](&acc, x, (size_t)n, 1, (size_t)n);
            }
            exec_int_store(job->dst.dtype, out, acc);
            exec_store_raw(&job->dst, p, 1, j, 1, out);
        }
}

/* Does: reduces the trailing free dimensions that axis names; the dimensions before them stay. negate changes the sign of the
 *   results. Bitwise operators work on the integers' bits.
 * Rounding: elements convert to fp32; fp32 in order of the elements from the operator's identity (subtract: from the first
 *   element); then to the dtype of dst as tensor_copy.
 * Faults: none of its own.
 * Differs: none known; the order is the one measured on trn1. */
enum vtrn_status vtrn_exec_tensor_reduce(struct vtrn_core *core, const struct vtrn_inst *inst)
{
    const struct vtrn_args_tensor_reduce *arg = VTRN_ARGS(tensor_reduce, inst);
    struct reduction job;
    int kept_dims = arg->data.ap.ndim - arg->axis.count;

    job.op = exec_alu(&arg->op);
    job.negate = exec_flag(&arg->negate);
    job.run = 1;
    for (int d = kept_dims > 1 ? kept_dims : 1; d < arg->data.ap.ndim; d++) job.run *= arg->data.ap.dim[d].count;
    VTRN_TRY(exec_resolve(core, &arg->data.ap, VTRN_READ, &job.data));
    VTRN_TRY(exec_resolve(core, &arg->dst.ap, VTRN_WRITE, &job.dst));
    VTRN_TRY(exec_stage_always(core, &job.dst, &job.data));
    job.kept = job.data.elems / job.run;
    exec_for_partitions(core, job.data.parts, job.data.elems,
                        exec_is_bits(job.op)        ? reduce_bits
                        : job.run > EXEC_TALL_ELEMS ? reduce_long
                                                    : reduce_short,
                        &job);
    return VTRN_OK;
}

/* ---------------------------------------------------------------- tensor_scalar_reduce */
struct scalar_reduction {
    struct exec_view dst, data;
    struct exec_step step;
    struct exec_acc acc;
};

static void scalar_reduce_rows(const struct exec_rows *rows, int64_t p0, int64_t p1, uint8_t *scratch)
{
    const struct scalar_reduction *job = rows->data;
    const struct exec_view *dst = &job->dst;
    int64_t step = exec_tall_parts(dst->elems);
    float *out = exec_block(scratch, 1);

    for (int64_t p = p0; p < p1; p += step)
        for (int64_t i = 0; i < dst->elems; i += EXEC_TALL_ELEMS) {
            int64_t np = p1 - p < step ? p1 - p : step, n = dst->elems - i < EXEC_TALL_ELEMS ? dst->elems - i : EXEC_TALL_ELEMS;
            const float *x = exec_load_f32(rows->core, &job->data, p, np, i, n, exec_block(scratch, 0));

            exec_apply(rows->core->kern, &job->step, out, x, p, np, n, exec_block(scratch, 2));
            exec_store_f32(rows->core, dst, p, np, i, n, out);
            if (job->acc.reduces) exec_acc_add(rows->core->kern, &job->acc, out, p, np, n);
        }
}

/* Does: dst = op0(data, operand0), operand0 a number or one value per partition; the vector engine's accumulators start from
 *   reduce_op's identity (reset_reduce), from reduce_init (load_reduce) or from where they are (reduce), and take the
 *   results of each partition in order; reduce_res, when given, receives them, negated on request.
 * Rounding: op0 rounded to fp32; the reduction in fp32, of the results before they are rounded to the dtype of dst.
 * Faults: none of its own.
 * Differs: accumulator lanes are counted from partition 0 of the data tensor (from its address, if it has one). */
enum vtrn_status vtrn_exec_tensor_scalar_reduce(struct vtrn_core *core, const struct vtrn_inst *inst)
{
    const struct vtrn_args_tensor_scalar_reduce *arg = VTRN_ARGS(tensor_scalar_reduce, inst);
    struct scalar_reduction job;
    struct exec_scalars init;
    int64_t parts;

    VTRN_TRY(exec_resolve(core, &arg->data.ap, VTRN_READ, &job.data));
    parts = job.data.parts;
    VTRN_TRY(exec_step(core, &arg->op0, &arg->operand0, &arg->reverse0, parts, &job.step));
    VTRN_TRY(exec_scalars(core, &arg->reduce_init, parts, &init));
    exec_acc_begin(core, core->vec_acc, &arg->data.ap, parts, &arg->reduce_cmd, exec_alu(&arg->reduce_op), &init, &job.acc);
    VTRN_TRY(exec_resolve(core, &arg->dst.ap, VTRN_WRITE, &job.dst));
    VTRN_TRY(exec_stage(core, &job.dst, &job.data));
    exec_for_partitions(core, parts, job.dst.elems * 2, scalar_reduce_rows, &job);
    return exec_acc_end(core, &job.acc, &arg->reduce_res, parts, exec_flag(&arg->reduce_res_negate));
}

/* ---------------------------------------------------------------- scans */
struct recurrence {
    struct exec_view dst, a, b;
    bool has_b;
    struct exec_step before; /* tensor_scalar_cumulative: applied to each element first */
    enum vtrn_alu op0, op1;
    bool reverse0, reverse1;
    float *state; /* of the first partition */
};

static void scan_rows(const struct exec_rows *rows, int64_t p0, int64_t p1, uint8_t *scratch)
{
    const struct recurrence *job = rows->data;
    const struct exec_view *dst = &job->dst;
    int64_t step = exec_tall_parts(dst->elems);
    float *out = exec_block(scratch, 2), *before = exec_block(scratch, 3);

    for (int64_t p = p0; p < p1; p += step)
        for (int64_t i = 0; i < dst->elems; i += EXEC_TALL_ELEMS) {
            int64_t np = p1 - p < step ? p1 - p : step, n = dst->elems - i < EXEC_TALL_ELEMS ? dst->elems - i : EXEC_TALL_ELEMS;
            struct vtrn_scan scan = { .dst = out,
                                      .dst_stride = (size_t)n,
                                      .a_stride = (size_t)n,
                                      .b_stride = (size_t)n,
                                      .state = job->state + p,
                                      .rows = (size_t)np,
                                      .n = (size_t)n,
                                      .op0 = job->op0,
                                      .op1 = job->op1,
                                      .reverse0 = job->reverse0,
                                      .reverse1 = job->reverse1 };

            scan.a = exec_load_f32(rows->core, &job->a, p, np, i, n, exec_block(scratch, 0));
            if (job->has_b) scan.b = exec_load_f32(rows->core, &job->b, p, np, i, n, exec_block(scratch, 1));
            if (job->before.op != VTRN_ALU_NONE) {
                exec_apply(rows->core->kern, &job->before, before, scan.a, p, np, n, exec_block(scratch, 4));
                scan.a = before;
            }
            rows->core->kern->scan(&scan);
            exec_store_f32(rows->core, dst, p, np, i, n, out);
        }
}

/* Does: r = op1(op0(data0[i], r), data1[i]); dst[i] = r, from r = initial (a number or one value per partition), along each
 *   partition. A reverse flag swaps the two sides of its operator.
 * Rounding: elements convert to fp32; each operator rounded to fp32; r is carried on in fp32, not as rounded to the dtype of
 *   dst.
 * Faults: none of its own.
 * Differs: whether hardware carries r on before or after the rounding to a narrower dst is not documented. */
enum vtrn_status vtrn_exec_tensor_tensor_scan(struct vtrn_core *core, const struct vtrn_inst *inst)
{
    const struct vtrn_args_tensor_tensor_scan *arg = VTRN_ARGS(tensor_tensor_scan, inst);
    struct recurrence job;
    float state[EXEC_LANES];

    job.op0 = exec_alu(&arg->op0);
    job.op1 = exec_alu(&arg->op1);
    job.reverse0 = exec_flag(&arg->reverse0);
    job.reverse1 = exec_flag(&arg->reverse1);
    job.before.op = VTRN_ALU_NONE;
    job.has_b = true;
    job.state = state;
    VTRN_TRY(exec_resolve(core, &arg->data0.ap, VTRN_READ, &job.a));
    VTRN_TRY(exec_resolve(core, &arg->data1.ap, VTRN_READ, &job.b));
    VTRN_TRY(exec_scalar(core, &arg->initial, job.a.parts, state));
    VTRN_TRY(exec_resolve(core, &arg->dst.ap, VTRN_WRITE, &job.dst));
    VTRN_TRY(exec_stage(core, &job.dst, &job.a));
    VTRN_TRY(exec_stage(core, &job.dst, &job.b));
    exec_for_partitions(core, job.dst.parts, job.dst.elems * 3, scan_rows, &job);
    return VTRN_OK;
}

/* Does: r = op1(op0(src[i], imm0), r); dst[i] = r, along each partition. The vector engine's accumulators hold r: it starts from
 *   op1's identity (reset_reduce; add and subtract 0, multiply 1, maximum -infinity, minimum +infinity), from imm1
 *   (load_reduce) or from where it is (reduce), and stays there.
 * Rounding: each operator rounded to fp32; r is carried on in fp32.
 * Faults: none of its own.
 * Differs: accumulator lanes are counted from partition 0 of the src tensor (from its address, if it has one). */
enum vtrn_status vtrn_exec_tensor_scalar_cumulative(struct vtrn_core *core, const struct vtrn_inst *inst)
{
    const struct vtrn_args_tensor_scalar_cumulative *arg = VTRN_ARGS(tensor_scalar_cumulative, inst);
    const struct vtrn_value forward = { .kind = VTRN_V_INT };
    struct recurrence job;
    struct exec_scalars init;
    struct exec_acc acc;

    VTRN_TRY(exec_resolve(core, &arg->src.ap, VTRN_READ, &job.a));
    VTRN_TRY(exec_step(core, &arg->op0, &arg->imm0, &forward, job.a.parts, &job.before));
    VTRN_TRY(exec_scalars(core, &arg->imm1, job.a.parts, &init));
    exec_acc_begin(core, core->vec_acc, &arg->src.ap, job.a.parts, &arg->reduce_cmd, exec_alu(&arg->op1), &init, &acc);
    job.op0 = exec_alu(&arg->op1); /* kern's r = op1(op0(a, r), b) with b left out */
    job.op1 = VTRN_ALU_BYPASS;
    job.reverse0 = job.reverse1 = false;
    job.has_b = false;
    job.state = acc.lane;
    VTRN_TRY(exec_resolve(core, &arg->dst.ap, VTRN_WRITE, &job.dst));
    VTRN_TRY(exec_stage(core, &job.dst, &job.a));
    exec_for_partitions(core, job.dst.parts, job.dst.elems * 3, scan_rows, &job);
    return VTRN_OK;
}
