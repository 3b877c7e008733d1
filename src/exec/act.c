/* The scalar engine's functions, and the vector engine's exponential: dst = f(data * scale + bias), with results summed in
 * the engine's accumulators on request.
 *
 * All four instructions become one job: activate2's operator pairs and exponential's subtraction are a scale and a bias,
 * with the same roundings. A bias of -0 leaves the product as it is, its sign included.
 * kern has the functions; this file must not know them. */
#include "exec/acc_int.h"

enum { SPREAD_MAX = 64 };

struct activation {
    struct exec_view dst, data;
    enum vtrn_act func;
    struct exec_step scale, bias; /* multiply, add */
    struct exec_scalars slope;
    bool has_slope; /* prelu */
    struct exec_acc acc;
};

static inline float lane_value(const struct exec_scalars *scalars, int64_t p) { return scalars->value[scalars->same ? 0 : p]; }

static void call(const struct vtrn_kern *kern, const struct activation *job, float *out, const float *x, int64_t p, float scale,
                 float bias, int64_t n)
{
    if (job->has_slope) kern->prelu(out, x, scale, bias, lane_value(&job->slope, p), (size_t)n);
    else kern->act[job->func](out, x, scale, bias, (size_t)n);
}

static void apply(const struct vtrn_kern *kern, const struct activation *job, float *out, const float *x, int64_t p0, int64_t np,
                  int64_t n, float *tmp)
{
    bool same = job->scale.scalar.same && job->bias.scalar.same, same_slope = !job->has_slope || job->slope.same;

    if (np == 1 || (same && same_slope)) {
        call(kern, job, out, x, p0, lane_value(&job->scale.scalar, p0), lane_value(&job->bias.scalar, p0), np * n);
    } else if (n <= SPREAD_MAX && same_slope) { /* rows too short for a call each: scale and bias go first, rounded alike */
        exec_apply_pair(kern, &job->scale, &job->bias, out, x, p0, np, n, tmp);
        call(kern, job, out, out, p0, 1.0f, -0.0f, np * n);
    } else {
        for (int64_t p = p0; p < p0 + np; p++, out += n, x += n)
            call(kern, job, out, x, p, lane_value(&job->scale.scalar, p), lane_value(&job->bias.scalar, p), n);
    }
}

static void activation_rows(const struct exec_rows *rows, int64_t p0, int64_t p1, uint8_t *scratch)
{
    const struct activation *job = rows->data;
    const struct vtrn_kern *kern = rows->core->kern;
    const struct exec_view *dst = &job->dst;
    bool tall = job->acc.reduces;
    int64_t most = tall ? EXEC_TALL_ELEMS : EXEC_ROW_MAX;
    int64_t step =
        tall ? exec_tall_parts(dst->elems) : exec_block_parts(dst->elems, exec_row_direct(dst) || exec_row_direct(&job->data));

    for (int64_t p = p0; p < p1; p += step)
        for (int64_t i = 0; i < dst->elems; i += most) {
            int64_t np = p1 - p < step ? p1 - p : step, n = dst->elems - i < most ? dst->elems - i : most;
            const float *x = exec_load_f32(rows->core, &job->data, p, np, i, n, exec_block(scratch, 0));
            float *out = tall ? exec_block(scratch, 1) : exec_out_f32(dst, p, np, i, n, exec_block(scratch, 1));

            apply(kern, job, out, x, p, np, n, exec_block(scratch, 2));
            exec_store_f32(rows->core, dst, p, np, i, n, out);
            if (tall) exec_acc_add(kern, &job->acc, out, p, np, n);
        }
}

static enum vtrn_status run(struct vtrn_core *core, struct activation *job, const struct vtrn_ap *dst, const struct vtrn_value *res)
{
    VTRN_TRY(exec_resolve(core, dst, VTRN_WRITE, &job->dst));
    VTRN_TRY(exec_stage(core, &job->dst, &job->data));
    exec_for_partitions(core, job->dst.parts, job->dst.elems * 3, activation_rows, job);
    return exec_acc_end(core, &job->acc, res, job->dst.parts, false);
}

static void set_same(struct exec_scalars *scalars, float value)
{
    scalars->same = true;
    scalars->value[0] = value;
}

static void begin(struct activation *job, enum vtrn_act func)
{
    job->func = func;
    job->has_slope = false;
    job->scale.op = VTRN_ALU_MULTIPLY;
    job->bias.op = VTRN_ALU_ADD;
    job->scale.reverse = job->bias.reverse = false;
    set_same(&job->scale.scalar, 1.0f);
    set_same(&job->bias.scalar, -0.0f);
}

static enum vtrn_status scale_and_bias(struct vtrn_core *core, struct activation *job, const struct vtrn_value *scale,
                                       const struct vtrn_value *bias)
{
    VTRN_TRY(exec_scalars(core, scale, job->data.parts, &job->scale.scalar));
    return bias->kind == VTRN_V_NONE ? VTRN_OK : exec_scalars(core, bias, job->data.parts, &job->bias.scalar);
}

/* Does: dst = op(data * scale + bias); scale and bias are numbers or one value per partition. reduce_cmd: reset sets the
 *   scalar engine's accumulators to 0, reduce adds the results of each partition to them in order, reset_reduce does both;
 *   reduce_res, when given, receives the accumulators afterwards, also with idle.
 * Rounding: product and sum each rounded to fp32; op within 2 ulp of the exact function (0 where it is exact: copy, relu,
 *   square, sqrt, reciprocal, ...); sums in fp32, of the results before they are rounded to the dtype of dst.
 * Faults: none of its own.
 * Differs: hardware evaluates piecewise polynomials of unpublished coefficients; outside the documented range of op its
 *   result is undefined. Accumulator lanes are counted from partition 0 of the data tensor (from its address, if it has
 *   one). */
enum vtrn_status vtrn_exec_activation(struct vtrn_core *core, const struct vtrn_inst *inst)
{
    const struct vtrn_args_activation *arg = VTRN_ARGS(activation, inst);
    struct activation job;

    begin(&job, (enum vtrn_act)arg->op.i);
    VTRN_TRY(exec_resolve(core, &arg->data.ap, VTRN_READ, &job.data));
    VTRN_TRY(scale_and_bias(core, &job, &arg->scale, &arg->bias));
    exec_acc_begin(core, core->act_acc, &arg->data.ap, job.data.parts, &arg->reduce_cmd, exec_alu(&arg->reduce_op), NULL, &job.acc);
    return run(core, &job, &arg->dst.ap, &arg->reduce_res);
}

/* Does: activation with reduce_cmd reset_reduce: dst = op(data * scale + bias), and reduce_res = the sum of the results of each
 *   partition.
 * Rounding: as activation.
 * Faults: none of its own.
 * Differs: as activation. */
enum vtrn_status vtrn_exec_activation_reduce(struct vtrn_core *core, const struct vtrn_inst *inst)
{
    const struct vtrn_args_activation_reduce *arg = VTRN_ARGS(activation_reduce, inst);
    const struct vtrn_value cmd = { .kind = VTRN_V_INT, .i = VTRN_REDUCE_CMD_RESET_REDUCE };
    struct activation job;

    begin(&job, (enum vtrn_act)arg->op.i);
    VTRN_TRY(exec_resolve(core, &arg->data.ap, VTRN_READ, &job.data));
    VTRN_TRY(scale_and_bias(core, &job, &arg->scale, &arg->bias));
    exec_acc_begin(core, core->act_acc, &arg->data.ap, job.data.parts, &cmd, exec_alu(&arg->reduce_op), NULL, &job.acc);
    return run(core, &job, &arg->dst.ap, &arg->reduce_res);
}

/* ---------------------------------------------------------------- activate2 */
static void negate(struct exec_scalars *scalars, int64_t parts)
{
    for (int64_t p = 0; p < (scalars->same ? 1 : parts); p++) scalars->value[p] = -scalars->value[p];
}

/* op1(op0(x, imm0), imm1) as x * scale + bias. x - s is x + -s, and s - x*m is x * -m + s, with the same roundings. */
static enum vtrn_status pair_as_scale(struct vtrn_core *core, struct activation *job, const struct vtrn_args_activate2 *arg)
{
    enum vtrn_alu op0 = exec_alu(&arg->op0), op1 = exec_alu(&arg->op1);
    int64_t parts = job->data.parts;

    if (op0 == VTRN_ALU_ADD || op0 == VTRN_ALU_SUBTRACT) {
        VTRN_TRY(exec_scalars(core, &arg->imm0, parts, &job->bias.scalar));
        if (op0 == VTRN_ALU_SUBTRACT && exec_flag(&arg->reverse0)) set_same(&job->scale.scalar, -1.0f);
        else if (op0 == VTRN_ALU_SUBTRACT) negate(&job->bias.scalar, parts);
        return VTRN_OK;
    }
    if (op0 == VTRN_ALU_MULTIPLY) VTRN_TRY(exec_scalars(core, &arg->imm0, parts, &job->scale.scalar));
    if (op1 != VTRN_ALU_ADD && op1 != VTRN_ALU_SUBTRACT) return VTRN_OK;
    VTRN_TRY(exec_scalars(core, &arg->imm1, parts, &job->bias.scalar));
    if (op1 == VTRN_ALU_SUBTRACT && exec_flag(&arg->reverse1)) negate(&job->scale.scalar, parts);
    else if (op1 == VTRN_ALU_SUBTRACT) negate(&job->bias.scalar, parts);
    return VTRN_OK;
}

/* Does: dst = op(op1(op0(data, imm0), imm1)), where the operators are a scale, a bias or nothing; a reverse flag swaps the two
 *   sides. relu_param is the slope of prelu. Accumulators as in activation, with add, maximum, minimum, abs_max or abs_min.
 * Rounding: as activation.
 * Faults: none of its own.
 * Differs: as activation. */
enum vtrn_status vtrn_exec_activate2(struct vtrn_core *core, const struct vtrn_inst *inst)
{
    const struct vtrn_args_activate2 *arg = VTRN_ARGS(activate2, inst);
    struct activation job;

    begin(&job, (enum vtrn_act)arg->op.i);
    job.has_slope = job.func == VTRN_ACT_PRELU;
    VTRN_TRY(exec_resolve(core, &arg->data.ap, VTRN_READ, &job.data));
    VTRN_TRY(pair_as_scale(core, &job, arg));
    if (job.has_slope) VTRN_TRY(exec_scalars(core, &arg->relu_param, job.data.parts, &job.slope));
    exec_acc_begin(core, core->act_acc, &arg->data.ap, job.data.parts, &arg->reduce_cmd, exec_alu(&arg->reduce_op), NULL, &job.acc);
    return run(core, &job, &arg->dst.ap, &arg->reduce_res);
}

/* ---------------------------------------------------------------- exponential */
/* Does: dst = exp(src - max_value); max_value is a number or one value per partition. reduce_cmd: the vector engine's
 *   accumulators start from 0 (reset_reduce), from reduce_init (load_reduce) or from where they are (reduce), and the results
 *   of each partition are added in order; reduce_res, when given, receives them.
 * Rounding: the difference rounded to fp32; exp within 2 ulp; sums as activation.
 * Faults: none of its own.
 * Differs: with idle, hardware may leave anything in the accumulators; here they keep their values. */
enum vtrn_status vtrn_exec_exponential(struct vtrn_core *core, const struct vtrn_inst *inst)
{
    const struct vtrn_args_exponential *arg = VTRN_ARGS(exponential, inst);
    struct activation job;
    struct exec_scalars init;

    begin(&job, VTRN_ACT_EXP);
    VTRN_TRY(exec_resolve(core, &arg->src.ap, VTRN_READ, &job.data));
    VTRN_TRY(exec_scalars(core, &arg->max_value, job.data.parts, &job.bias.scalar));
    negate(&job.bias.scalar, job.data.parts);
    VTRN_TRY(exec_scalars(core, &arg->reduce_init, job.data.parts, &init));
    exec_acc_begin(core, core->vec_acc, &arg->src.ap, job.data.parts, &arg->reduce_cmd, VTRN_ALU_ADD, &init, &job.acc);
    return run(core, &job, &arg->dst.ap, &arg->reduce_res);
}
