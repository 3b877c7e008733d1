/* Selections of the vector engine that may also take the maximum of what they selected: range_select and select_reduce.
 * Beside act.c; must not know how predicates came about. */
#include "exec/acc_int.h"

_Static_assert((int)VTRN_CMP_EQUAL == VTRN_ALU_EQUAL && (int)VTRN_CMP_NOT_EQUAL == VTRN_ALU_NOT_EQUAL &&
                   (int)VTRN_CMP_GREATER_EQUAL == VTRN_ALU_GREATER_EQUAL && (int)VTRN_CMP_GREATER == VTRN_ALU_GREATER &&
                   (int)VTRN_CMP_LESS_EQUAL == VTRN_ALU_LESS_EQUAL && (int)VTRN_CMP_LESS == VTRN_ALU_LESS,
               "comparisons are the ALU's operators");

struct selection {
    struct exec_view dst, on_true, predicate;
    struct exec_scalars on_false, bound[2], start;
    enum vtrn_alu compare[2];
    bool reverse;
    struct exec_acc acc;
};

static inline float lane_value(const struct exec_scalars *scalars, int64_t p) { return scalars->value[scalars->same ? 0 : p]; }

static void finish(const struct exec_rows *rows, const struct selection *job, int64_t p, int64_t np, int64_t i, int64_t n,
                   const float *out)
{
    exec_store_f32(rows->core, &job->dst, p, np, i, n, out);
    if (job->acc.reduces) exec_acc_add(rows->core->kern, &job->acc, out, p, np, n);
}

/* ---------------------------------------------------------------- range_select */
/* One row: out = x where both comparisons of the index with the row's bounds hold. */
static void range_row(const struct vtrn_kern *kern, const struct selection *job, int64_t p, int64_t i, int64_t n, const float *x,
                      float *out)
{
    float index[EXEC_TALL_ELEMS], first[EXEC_TALL_ELEMS], second[EXEC_TALL_ELEMS];
    float start = lane_value(&job->start, p), on_false = job->on_false.value[0];

    for (int64_t k = 0; k < n; k++) index[k] = start + (float)(i + k);
    kern->ts[job->compare[0]](first, index, lane_value(&job->bound[0], p), false, (size_t)n);
    kern->ts[job->compare[1]](second, index, lane_value(&job->bound[1], p), false, (size_t)n);
    for (int64_t k = 0; k < n; k++) out[k] = first[k] * second[k] != 0.0f ? x[k] : on_false;
}

static void range_rows(const struct exec_rows *rows, int64_t p0, int64_t p1, uint8_t *scratch)
{
    const struct selection *job = rows->data;
    int64_t elems = job->dst.elems, step = exec_tall_parts(elems);
    float *out = exec_block(scratch, 1);

    for (int64_t p = p0; p < p1; p += step)
        for (int64_t i = 0; i < elems; i += EXEC_TALL_ELEMS) {
            int64_t np = p1 - p < step ? p1 - p : step, n = elems - i < EXEC_TALL_ELEMS ? elems - i : EXEC_TALL_ELEMS;
            const float *x = exec_load_f32(rows->core, &job->on_true, p, np, i, n, exec_block(scratch, 0));

            for (int64_t q = 0; q < np; q++) range_row(rows->core->kern, job, p + q, i, n, x + q * n, out + q * n);
            finish(rows, job, p, np, i, n, out);
        }
}

/* Does: dst = on_true_tile where comp_op0(index, bound0) and comp_op1(index, bound1) both hold, else on_false_value; index =
 *   range_start + the element's position in its partition. The vector engine's accumulators take the maximum of what was
 *   selected: from -infinity (reset_reduce) or from where they are (reduce); reduce_res, when given, receives them.
 * Rounding: index and comparisons in fp32; the selected values pass through fp32 to the dtype of dst, where
 *   on_false_value (the lowest fp32) becomes -infinity in narrower floats that have it.
 * Faults: none of its own.
 * Differs: none known. */
enum vtrn_status vtrn_exec_range_select(struct vtrn_core *core, const struct vtrn_inst *inst)
{
    const struct vtrn_args_range_select *arg = VTRN_ARGS(range_select, inst);
    struct selection job;
    int64_t parts;

    VTRN_TRY(exec_resolve(core, &arg->on_true_tile.ap, VTRN_READ, &job.on_true));
    parts = job.on_true.parts;
    job.compare[0] = (enum vtrn_alu)arg->comp_op0.i;
    job.compare[1] = (enum vtrn_alu)arg->comp_op1.i;
    VTRN_TRY(exec_scalars(core, &arg->bound0, parts, &job.bound[0]));
    VTRN_TRY(exec_scalars(core, &arg->bound1, parts, &job.bound[1]));
    VTRN_TRY(exec_scalars(core, &arg->range_start, parts, &job.start));
    VTRN_TRY(exec_scalars(core, &arg->on_false_value, parts, &job.on_false));
    exec_acc_begin(core, core->vec_acc, &arg->on_true_tile.ap, parts, &arg->reduce_cmd, VTRN_ALU_MAXIMUM, NULL, &job.acc);
    VTRN_TRY(exec_resolve(core, &arg->dst.ap, VTRN_WRITE, &job.dst));
    VTRN_TRY(exec_stage(core, &job.dst, &job.on_true));
    exec_for_partitions(core, parts, job.dst.elems * 3, range_rows, &job);
    return exec_acc_end(core, &job.acc, &arg->reduce_res, parts, false);
}

/* ---------------------------------------------------------------- select_reduce */
static inline bool is_set(const uint8_t *raw, int64_t k, int bytes)
{
    return bytes == 1 ? raw[k] != 0 : (raw[2 * k] | raw[2 * k + 1]) != 0;
}

static void select_rows(const struct exec_rows *rows, int64_t p0, int64_t p1, uint8_t *scratch)
{
    const struct selection *job = rows->data;
    int64_t elems = job->dst.elems, step = exec_tall_parts(elems);
    int bytes = job->predicate.elem_bytes; /* 1 or 2: legal_vector.c */
    float *out = exec_block(scratch, 1);

    for (int64_t p = p0; p < p1; p += step)
        for (int64_t i = 0; i < elems; i += EXEC_TALL_ELEMS) {
            int64_t np = p1 - p < step ? p1 - p : step, n = elems - i < EXEC_TALL_ELEMS ? elems - i : EXEC_TALL_ELEMS;
            const float *x = exec_load_f32(rows->core, &job->on_true, p, np, i, n, exec_block(scratch, 0));
            const uint8_t *take = exec_load_raw(&job->predicate, p, np, i, n, exec_block(scratch, 2));

            for (int64_t q = 0; q < np; q++) {
                float on_false = lane_value(&job->on_false, p + q);

                for (int64_t k = q * n; k < (q + 1) * n; k++) out[k] = is_set(take, k, bytes) != job->reverse ? x[k] : on_false;
            }
            finish(rows, job, p, np, i, n, out);
        }
}

/* Does: dst = on_true where predicate is not 0 (reverse_pred: where it is 0), else on_false, a number or one value per
 *   partition. The vector engine's accumulators take the maximum of what was selected: from -infinity (reset_reduce) or from
 *   where they are (reduce); reduce_res, when given, receives them.
 * Rounding: through fp32 to the dtype of dst, as tensor_copy.
 * Faults: none of its own.
 * Differs: with idle, hardware may leave anything in the accumulators; here they keep their values. */
enum vtrn_status vtrn_exec_select_reduce(struct vtrn_core *core, const struct vtrn_inst *inst)
{
    const struct vtrn_args_select_reduce *arg = VTRN_ARGS(select_reduce, inst);
    struct selection job;
    int64_t parts;

    VTRN_TRY(exec_resolve(core, &arg->on_true.ap, VTRN_READ, &job.on_true));
    VTRN_TRY(exec_resolve(core, &arg->predicate.ap, VTRN_READ, &job.predicate));
    parts = job.on_true.parts;
    job.reverse = exec_flag(&arg->reverse_pred);
    VTRN_TRY(exec_scalars(core, &arg->on_false, parts, &job.on_false));
    exec_acc_begin(core, core->vec_acc, &arg->on_true.ap, parts, &arg->reduce_cmd, VTRN_ALU_MAXIMUM, NULL, &job.acc);
    VTRN_TRY(exec_resolve(core, &arg->dst.ap, VTRN_WRITE, &job.dst));
    VTRN_TRY(exec_stage(core, &job.dst, &job.on_true));
    VTRN_TRY(exec_stage(core, &job.dst, &job.predicate));
    exec_for_partitions(core, parts, job.dst.elems * 2, select_rows, &job);
    return exec_acc_end(core, &job.acc, &arg->reduce_res, parts, false);
}
