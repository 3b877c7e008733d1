/* Elementwise arithmetic of the vector, scalar and GpSimd engines: two tensors, a tensor and scalars, both; 1/x.
 *
 * Engines read any dtype, compute in fp32 and convert on the way out. Bodies walk blocks of a few thousand elements
 * (rows.c) and leave the arithmetic to kern. What is computed in integers or on bits is in ints.c.
 * Must not know walks of memory or rounding: rows.c and kern have them. */
#include "exec/vec_int.h"

enum { SPREAD_MAX = 64 /* elements: shorter rows get their scalar written out, so that one kernel call does many rows */ };

/* ---------------------------------------------------------------- scalar operands */
enum vtrn_status exec_scalars(struct vtrn_core *core, const struct vtrn_value *value, int64_t parts, struct exec_scalars *out)
{
    VTRN_ASSERT(parts <= EXEC_LANES);
    out->same = value->kind != VTRN_V_AP || parts == 1;
    if (value->kind == VTRN_V_AP) return exec_scalar(core, value, parts, out->value);
    out->value[0] = value->kind == VTRN_V_NUM ? (float)value->num : 0.0f;
    return VTRN_OK;
}

enum vtrn_status exec_step(struct vtrn_core *core, const struct vtrn_value *op, const struct vtrn_value *operand,
                           const struct vtrn_value *reverse, int64_t parts, struct exec_step *out)
{
    out->op = exec_alu(op);
    out->reverse = exec_flag(reverse);
    if (out->op == VTRN_ALU_NONE) return VTRN_OK;
    return exec_scalars(core, operand, parts, &out->scalar);
}

/* The scalars of np partitions, each repeated n times. Writes whole groups: what is too much is the next scalar's place. */
static const float *spread(const struct exec_scalars *scalars, int64_t p0, int64_t np, int64_t n, float *tmp)
{
    enum { GROUP = EXEC_SPREAD_EXTRA };

    if (n == 1) return scalars->value + p0;
    for (int64_t p = 0; p < np; p++) {
        float value = scalars->value[p0 + p];

        for (float *at = tmp + p * n, *end = at + n; at < end; at += GROUP)
            for (int k = 0; k < GROUP; k++) at[k] = value;
    }
    return tmp;
}

void exec_apply(const struct vtrn_kern *kern, const struct exec_step *step, float *out, const float *x, int64_t p0, int64_t np,
                int64_t n, float *tmp)
{
    const float *s = step->scalar.value;

    if (step->scalar.same || np == 1 || vtrn_alus[step->op].arity == 1) {
        kern->ts[step->op](out, x, s[step->scalar.same ? 0 : p0], step->reverse, (size_t)(np * n));
    } else if (n <= SPREAD_MAX) {
        const float *wide = spread(&step->scalar, p0, np, n, tmp);

        kern->tt[step->op](out, step->reverse ? wide : x, step->reverse ? x : wide, (size_t)(np * n));
    } else {
        for (int64_t p = 0; p < np; p++) kern->ts[step->op](out + p * n, x + p * n, s[p0 + p], step->reverse, (size_t)n);
    }
}

void exec_apply_pair(const struct vtrn_kern *kern, const struct exec_step *first, const struct exec_step *second, float *out,
                     const float *x, int64_t p0, int64_t np, int64_t n, float *tmp)
{
    const struct exec_scalars *mul = &first->scalar, *add = &second->scalar;

    if (first->op == VTRN_ALU_MULTIPLY && second->op == VTRN_ALU_ADD) {
        bool same = np == 1 || (mul->same && add->same);
        int64_t calls = same ? 1 : np, length = same ? np * n : n;

        if (same || n > SPREAD_MAX) {
            for (int64_t p = 0; p < calls; p++)
                kern->mul_add(out + p * n, x + p * n, mul->value[mul->same ? 0 : p0 + p], add->value[add->same ? 0 : p0 + p],
                              (size_t)length);
            return;
        }
    }
    exec_apply(kern, first, out, x, p0, np, n, tmp);
    if (second->op != VTRN_ALU_NONE) exec_apply(kern, second, out, out, p0, np, n, tmp);
}

/* ---------------------------------------------------------------- tensor_tensor */
struct two_tensors {
    struct exec_view dst, a, b;
    enum vtrn_alu op;
};

static void tensor_tensor_rows(const struct exec_rows *rows, int64_t p0, int64_t p1, uint8_t *scratch)
{
    const struct two_tensors *job = rows->data;
    const struct exec_view *dst = &job->dst;
    void (*tt)(float *, const float *, const float *, size_t) = rows->core->kern->tt[job->op];
    int64_t step = exec_block_parts(dst->elems, exec_row_direct(dst) || exec_row_direct(&job->a) || exec_row_direct(&job->b));

    for (int64_t p = p0; p < p1; p += step)
        for (int64_t i = 0; i < dst->elems; i += EXEC_ROW_MAX) {
            int64_t np = p1 - p < step ? p1 - p : step, n = dst->elems - i < EXEC_ROW_MAX ? dst->elems - i : EXEC_ROW_MAX;
            const float *a = exec_load_f32(rows->core, &job->a, p, np, i, n, exec_block(scratch, 0));
            const float *b = exec_load_f32(rows->core, &job->b, p, np, i, n, exec_block(scratch, 1));
            float *out = exec_out_f32(dst, p, np, i, n, exec_block(scratch, 2));

            tt(out, a, b, (size_t)(np * n));
            exec_store_f32(rows->core, dst, p, np, i, n, out);
        }
}

/* Does: dst = op(data1, data2), element by element in row-major order of the free dimensions; shapes may differ where the
 *   counts agree. Comparisons and logical operators give 1 or 0. Bitwise operators work on the integers' bits.
 * Rounding: operands convert exactly to fp32 (32-bit integers to nearest even), one rounding to fp32, then to the dtype of
 *   dst: floats to nearest even (or stochastically), integers to nearest even and saturated. On GpSimd, when all three are
 *   int32 or uint32: exact 32-bit integers that wrap around; unsigned when both inputs are uint32.
 * Faults: none of its own.
 * Differs: power, divide and the remainders of integers saturate; what GpSimd does is not documented. Bitwise operators on
 *   integers of different widths extend the narrower with zeros. */
enum vtrn_status vtrn_exec_tensor_tensor(struct vtrn_core *core, const struct vtrn_inst *inst)
{
    const struct vtrn_args_tensor_tensor *arg = VTRN_ARGS(tensor_tensor, inst);
    struct two_tensors job;

    job.op = exec_alu(&arg->op);
    VTRN_TRY(exec_resolve(core, &arg->data1.ap, VTRN_READ, &job.a));
    VTRN_TRY(exec_resolve(core, &arg->data2.ap, VTRN_READ, &job.b));
    VTRN_TRY(exec_resolve(core, &arg->dst.ap, VTRN_WRITE, &job.dst));
    VTRN_TRY(exec_stage(core, &job.dst, &job.a));
    VTRN_TRY(exec_stage(core, &job.dst, &job.b));
    if (exec_is_bits(job.op)) {
        exec_tensor_tensor_bits(core, job.op, &job.dst, &job.a, &job.b);
    } else if (inst->engine == VTRN_ENGINE_GPSIMD && exec_is_word(job.dst.dtype) && exec_is_word(job.a.dtype) &&
               exec_is_word(job.b.dtype)) {
        exec_tensor_tensor_words(core, job.op, &job.dst, &job.a, &job.b);
    } else {
        exec_for_partitions(core, job.dst.parts, job.dst.elems, tensor_tensor_rows, &job);
    }
    return VTRN_OK;
}

/* ---------------------------------------------------------------- tensor_scalar */
struct scalar_steps {
    struct exec_view dst, data, other; /* other: scalar_tensor_tensor */
    struct exec_step first, second;
    bool reverse_other;
    enum vtrn_alu op_other;
};

static void tensor_scalar_rows(const struct exec_rows *rows, int64_t p0, int64_t p1, uint8_t *scratch)
{
    const struct scalar_steps *job = rows->data;
    const struct exec_view *dst = &job->dst;
    int64_t step = exec_block_parts(dst->elems, exec_row_direct(dst) || exec_row_direct(&job->data));

    for (int64_t p = p0; p < p1; p += step)
        for (int64_t i = 0; i < dst->elems; i += EXEC_ROW_MAX) {
            int64_t np = p1 - p < step ? p1 - p : step, n = dst->elems - i < EXEC_ROW_MAX ? dst->elems - i : EXEC_ROW_MAX;
            const float *x = exec_load_f32(rows->core, &job->data, p, np, i, n, exec_block(scratch, 0));
            float *out = exec_out_f32(dst, p, np, i, n, exec_block(scratch, 1));

            exec_apply_pair(rows->core->kern, &job->first, &job->second, out, x, p, np, n, exec_block(scratch, 2));
            exec_store_f32(rows->core, dst, p, np, i, n, out);
        }
}

/* Does: t = op0(data, operand0); dst = op1(t, operand1), or t without op1. A reverse flag swaps the two sides of its operator.
 *   Operands are numbers or one value per partition. Unary operators take no operand. Bitwise operators work on the
 *   integers' bits; their numbers are bit patterns.
 * Rounding: data and operands in fp32, each operator rounded to fp32, then to the dtype of dst as tensor_tensor. When data and
 *   dst are int32 or uint32 and every operand is a whole number or an integer vector, add, subtract, multiply, maximum,
 *   minimum and comparisons are exact in integers and saturate once at the end.
 * Faults: none of its own.
 * Differs: on 32-bit integers the vector engine computes in fp32, except in an address-arithmetic mode whose rules are not
 *   documented; results are the same below 2^24. */
enum vtrn_status vtrn_exec_tensor_scalar(struct vtrn_core *core, const struct vtrn_inst *inst)
{
    const struct vtrn_args_tensor_scalar *arg = VTRN_ARGS(tensor_scalar, inst);
    struct scalar_steps job;
    int64_t parts;

    VTRN_TRY(exec_resolve(core, &arg->data.ap, VTRN_READ, &job.data));
    parts = job.data.parts;
    if (exec_is_bits(exec_alu(&arg->op0))) {
        VTRN_TRY(exec_resolve(core, &arg->dst.ap, VTRN_READ | VTRN_WRITE, &job.dst));
        VTRN_TRY(exec_stage(core, &job.dst, &job.data));
        return exec_tensor_scalar_bits(core, inst, &job.dst, &job.data);
    }
    if (exec_scalar_words_apply(inst, arg->dst.ap.dtype, job.data.dtype)) {
        VTRN_TRY(exec_resolve(core, &arg->dst.ap, VTRN_READ | VTRN_WRITE, &job.dst));
        VTRN_TRY(exec_stage(core, &job.dst, &job.data));
        return exec_tensor_scalar_words(core, inst, &job.dst, &job.data);
    }
    VTRN_TRY(exec_step(core, &arg->op0, &arg->operand0, &arg->reverse0, parts, &job.first));
    VTRN_TRY(exec_step(core, &arg->op1, &arg->operand1, &arg->reverse1, parts, &job.second));
    VTRN_TRY(exec_resolve(core, &arg->dst.ap, VTRN_WRITE, &job.dst));
    VTRN_TRY(exec_stage(core, &job.dst, &job.data));
    exec_for_partitions(core, parts, job.dst.elems, tensor_scalar_rows, &job);
    return VTRN_OK;
}

/* ---------------------------------------------------------------- scalar_tensor_tensor */
static void scalar_tensor_tensor_rows(const struct exec_rows *rows, int64_t p0, int64_t p1, uint8_t *scratch)
{
    const struct scalar_steps *job = rows->data;
    const struct exec_view *dst = &job->dst;
    void (*tt)(float *, const float *, const float *, size_t) = rows->core->kern->tt[job->op_other];
    int64_t step = exec_block_parts(dst->elems, exec_row_direct(dst) || exec_row_direct(&job->data) || exec_row_direct(&job->other));

    for (int64_t p = p0; p < p1; p += step)
        for (int64_t i = 0; i < dst->elems; i += EXEC_ROW_MAX) {
            int64_t np = p1 - p < step ? p1 - p : step, n = dst->elems - i < EXEC_ROW_MAX ? dst->elems - i : EXEC_ROW_MAX;
            const float *x = exec_load_f32(rows->core, &job->data, p, np, i, n, exec_block(scratch, 0));
            const float *y = exec_load_f32(rows->core, &job->other, p, np, i, n, exec_block(scratch, 1));
            float *t = exec_block(scratch, 2), *out = exec_out_f32(dst, p, np, i, n, exec_block(scratch, 3));

            exec_apply(rows->core->kern, &job->first, t, x, p, np, n, exec_block(scratch, 4));
            tt(out, job->reverse_other ? y : t, job->reverse_other ? t : y, (size_t)(np * n));
            exec_store_f32(rows->core, dst, p, np, i, n, out);
        }
}

/* Does: dst = op1(op0(data, operand0), operand1): operand0 a number or one value per partition, operand1 a tensor. A reverse
 *   flag swaps the two sides of its operator.
 * Rounding: in fp32, each operator rounded; then to the dtype of dst as tensor_tensor.
 * Faults: none of its own.
 * Differs: none known. */
enum vtrn_status vtrn_exec_scalar_tensor_tensor(struct vtrn_core *core, const struct vtrn_inst *inst)
{
    const struct vtrn_args_scalar_tensor_tensor *arg = VTRN_ARGS(scalar_tensor_tensor, inst);
    struct scalar_steps job;

    VTRN_TRY(exec_resolve(core, &arg->data.ap, VTRN_READ, &job.data));
    job.op_other = exec_alu(&arg->op1);
    job.reverse_other = exec_flag(&arg->reverse1);
    VTRN_TRY(exec_resolve(core, &arg->operand1.ap, VTRN_READ, &job.other));
    VTRN_TRY(exec_step(core, &arg->op0, &arg->operand0, &arg->reverse0, job.data.parts, &job.first));
    VTRN_TRY(exec_resolve(core, &arg->dst.ap, VTRN_WRITE, &job.dst));
    VTRN_TRY(exec_stage(core, &job.dst, &job.data));
    VTRN_TRY(exec_stage(core, &job.dst, &job.other));
    exec_for_partitions(core, job.dst.parts, job.dst.elems, scalar_tensor_tensor_rows, &job);
    return VTRN_OK;
}

/* Does: dst = 1 / data.
 * Rounding: one correctly rounded division in fp32, then to the dtype of dst as tensor_tensor. 1/0 is infinity.
 * Faults: none of its own.
 * Differs: how exactly hardware divides is not documented. */
enum vtrn_status vtrn_exec_reciprocal(struct vtrn_core *core, const struct vtrn_inst *inst)
{
    const struct vtrn_args_reciprocal *arg = VTRN_ARGS(reciprocal, inst);
    struct scalar_steps job;

    job.first.op = VTRN_ALU_RECIPROCAL;
    job.first.reverse = false;
    job.first.scalar.same = true;
    job.first.scalar.value[0] = 0;
    job.second.op = VTRN_ALU_NONE;
    VTRN_TRY(exec_resolve(core, &arg->data.ap, VTRN_READ, &job.data));
    VTRN_TRY(exec_resolve(core, &arg->dst.ap, VTRN_WRITE, &job.dst));
    VTRN_TRY(exec_stage(core, &job.dst, &job.data));
    exec_for_partitions(core, job.dst.parts, job.dst.elems, tensor_scalar_rows, &job);
    return VTRN_OK;
}
