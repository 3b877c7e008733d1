/* Instructions that move elements and compute nothing: tensor_copy, memset, tensor_copy_predicated, nc_stream_shuffle,
 * dropout. Bits stay as they are wherever the dtypes allow; tensor_copy between dtypes goes through fp32.
 * Knows blocks of rows (rows.c) and the generator of dropout (rng.c). */
#include "exec/vec_int.h"

enum { QUADRANT = 32, KEEP = 255 };

/* ---------------------------------------------------------------- tensor_copy */
struct copy {
    struct exec_view dst, src;
};

static void copy_raw_rows(const struct exec_rows *rows, int64_t p0, int64_t p1, uint8_t *scratch)
{
    const struct copy *job = rows->data;
    int64_t elems = job->dst.elems, most = EXEC_ROW_MAX;
    bool whole = job->dst.contiguous || job->src.contiguous; /* one side is read or written where it is: any length goes */
    int64_t step = whole && elems >= 32 ? 1 : exec_block_parts(elems, false);

    if (whole) most = elems;
    for (int64_t p = p0; p < p1; p += step)
        for (int64_t i = 0; i < elems; i += most) {
            int64_t np = p1 - p < step ? p1 - p : step, n = elems - i < most ? elems - i : most;

            if (np == 1 && job->dst.contiguous && !job->dst.elem_offset) {
                uint8_t *to = exec_elem(&job->dst, p, i);
                const void *from = exec_load_raw(&job->src, p, 1, i, n, to);

                if (from != to) memcpy(to, from, (size_t)n * job->dst.elem_bytes);
            } else {
                exec_store_raw(&job->dst, p, np, i, n, exec_load_raw(&job->src, p, np, i, n, exec_block(scratch, 0)));
            }
        }
}

static void copy_f32_rows(const struct exec_rows *rows, int64_t p0, int64_t p1, uint8_t *scratch)
{
    const struct copy *job = rows->data;
    int64_t elems = job->dst.elems, step = exec_block_parts(elems, exec_row_direct(&job->dst) || exec_row_direct(&job->src));

    for (int64_t p = p0; p < p1; p += step)
        for (int64_t i = 0; i < elems; i += EXEC_ROW_MAX) {
            int64_t np = p1 - p < step ? p1 - p : step, n = elems - i < EXEC_ROW_MAX ? elems - i : EXEC_ROW_MAX;
            float *out = exec_out_f32(&job->dst, p, np, i, n, exec_block(scratch, 0));

            exec_store_f32(rows->core, &job->dst, p, np, i, n, exec_load_f32(rows->core, &job->src, p, np, i, n, out));
        }
}

/* Does: dst = src. Shapes may differ where the counts agree.
 * Rounding: none between equal dtypes, bits are copied. Otherwise through fp32: 32-bit integers are rounded to nearest even,
 *   then to the dtype of dst: floats to nearest even (or stochastically), integers to nearest even and saturated.
 * Faults: none of its own.
 * Differs: none known. */
enum vtrn_status vtrn_exec_tensor_copy(struct vtrn_core *core, const struct vtrn_inst *inst)
{
    const struct vtrn_args_tensor_copy *arg = VTRN_ARGS(tensor_copy, inst);
    struct copy job;

    VTRN_TRY(exec_resolve(core, &arg->src.ap, VTRN_READ, &job.src));
    VTRN_TRY(exec_resolve(core, &arg->dst.ap, VTRN_WRITE, &job.dst));
    VTRN_TRY(exec_stage(core, &job.dst, &job.src));
    exec_for_partitions(core, job.dst.parts, job.dst.elems, job.dst.dtype == job.src.dtype ? copy_raw_rows : copy_f32_rows, &job);
    return VTRN_OK;
}

/* ---------------------------------------------------------------- memset */
struct fill {
    struct exec_view dst;
    uint8_t element[4];
};

static void fill_block(uint8_t *out, const uint8_t *element, int bytes, int64_t n)
{
    uint16_t half;
    uint32_t word;

    switch (bytes) {
    case 1: memset(out, element[0], (size_t)n); break;
    case 2:
        memcpy(&half, element, 2);
        for (int64_t i = 0; i < n; i++) memcpy(out + 2 * i, &half, 2);
        break;
    default:
        memcpy(&word, element, 4);
        for (int64_t i = 0; i < n; i++) memcpy(out + 4 * i, &word, 4);
    }
}

static void fill_rows(const struct exec_rows *rows, int64_t p0, int64_t p1, uint8_t *scratch)
{
    const struct fill *job = rows->data;
    const struct exec_view *dst = &job->dst;
    bool dense = dst->contiguous && !dst->elem_offset && dst->pitch == (ptrdiff_t)dst->elems * dst->elem_bytes;
    int64_t step = exec_block_parts(dst->elems, false), most = step * dst->elems;

    if (dense) {
        fill_block(exec_elem(dst, p0, 0), job->element, dst->elem_bytes, (p1 - p0) * dst->elems);
        return;
    }
    if (dst->contiguous && !dst->elem_offset) {
        for (int64_t p = p0; p < p1; p++) fill_block(exec_elem(dst, p, 0), job->element, dst->elem_bytes, dst->elems);
        return;
    }
    fill_block((uint8_t *)exec_block(scratch, 0), job->element, dst->elem_bytes, most < EXEC_ROW_MAX ? most : EXEC_ROW_MAX);
    for (int64_t p = p0; p < p1; p += step)
        for (int64_t i = 0; i < dst->elems; i += EXEC_ROW_MAX) {
            int64_t np = p1 - p < step ? p1 - p : step, n = dst->elems - i < EXEC_ROW_MAX ? dst->elems - i : EXEC_ROW_MAX;

            exec_store_raw(dst, p, np, i, n, exec_block(scratch, 0));
        }
}

/* A number as an element: integers exactly (either sign, as legal.c allows), floats rounded from fp32. */
static void make_element(uint8_t dtype, double value, uint8_t element[4])
{
    uint8_t cls = vtrn_dtypes[dtype].cls;

    memset(element, 0, 4);
    if (cls == VTRN_CLASS_INT || cls == VTRN_CLASS_UINT) {
        uint32_t bits = (uint32_t)(uint64_t)(int64_t)value;

        memcpy(element, &bits, 4);         /* little endian: the low bytes come first */
    } else if (cls != VTRN_CLASS_PACKED) { /* packed types take 0 only */
        vtrn_from_f32((enum vtrn_dtype)dtype, (float)value, element);
    }
}

/* Does: sets every element of dst to value.
 * Rounding: value is rounded to fp32 and then to a float dst to nearest even; integers take it exactly.
 * Faults: none of its own.
 * Differs: none known. */
enum vtrn_status vtrn_exec_memset(struct vtrn_core *core, const struct vtrn_inst *inst)
{
    const struct vtrn_args_memset *arg = VTRN_ARGS(memset, inst);
    struct fill job;

    VTRN_TRY(exec_resolve(core, &arg->dst.ap, VTRN_WRITE, &job.dst));
    make_element(job.dst.dtype, arg->value.num, job.element);
    exec_for_partitions(core, job.dst.parts, job.dst.elems / 2, fill_rows, &job);
    return VTRN_OK;
}

/* ---------------------------------------------------------------- tensor_copy_predicated */
struct predicated {
    struct exec_view dst, src, predicate;
    bool has_src, reverse;
    uint8_t element[4];
};

/* take[i] is 1 where the copy happens. */
static void read_predicate(const struct exec_view *view, bool reverse, int64_t p, int64_t np, int64_t i, int64_t n, uint8_t *space,
                           uint8_t *take)
{
    const uint8_t *raw = exec_load_raw(view, p, np, i, n, space);

    for (int64_t k = 0; k < np * n; k++) {
        uint32_t word = 0;

        switch (view->elem_bytes) {
        case 1: word = raw[k]; break;
        case 2: word = (uint32_t)(raw[2 * k] | raw[2 * k + 1]); break;
        default: memcpy(&word, raw + 4 * k, 4);
        }
        take[k] = (word != 0) != reverse;
    }
}

#define BLEND(type) \
    for (int64_t k = 0; k < n; k++) { \
        type a, b; \
        memcpy(&a, from + k * step, sizeof a); \
        memcpy(&b, out + k * (int64_t)sizeof b, sizeof b); \
        b = take[k] ? a : b; \
        memcpy(out + k * (int64_t)sizeof b, &b, sizeof b); \
    } \
    break
/* out[k] = from[k] where take[k]; step 0: from is one element. */
static void blend(uint8_t *out, const uint8_t *from, int64_t step, const uint8_t *take, int64_t n, int bytes)
{
    switch (bytes) {
    case 1: BLEND(uint8_t);
    case 2: BLEND(uint16_t);
    default: BLEND(uint32_t);
    }
}
#undef BLEND

static void predicated_rows(const struct exec_rows *rows, int64_t p0, int64_t p1, uint8_t *scratch)
{
    const struct predicated *job = rows->data;
    const struct exec_view *dst = &job->dst;
    uint8_t take[EXEC_ROW_MAX], *old = (uint8_t *)exec_block(scratch, 0);
    int64_t step = exec_block_parts(dst->elems, false);
    int bytes = dst->elem_bytes;

    for (int64_t p = p0; p < p1; p += step)
        for (int64_t i = 0; i < dst->elems; i += EXEC_ROW_MAX) {
            int64_t np = p1 - p < step ? p1 - p : step, n = dst->elems - i < EXEC_ROW_MAX ? dst->elems - i : EXEC_ROW_MAX;
            const uint8_t *from = job->element;

            read_predicate(&job->predicate, job->reverse, p, np, i, n, (uint8_t *)exec_block(scratch, 1), take);
            if (job->has_src) from = exec_load_raw(&job->src, p, np, i, n, exec_block(scratch, 2));
            exec_pack_raw(dst, p, np, i, n, old);
            blend(old, from, job->has_src ? bytes : 0, take, np * n, bytes);
            exec_store_raw(dst, p, np, i, n, old);
        }
}

/* Does: dst = src where predicate is not 0, or, with reverse_pred, where it is 0; elsewhere dst keeps its value. src is a
 *   tensor or a number.
 * Rounding: none, bits are copied; a number becomes an element as in memset.
 * Faults: none of its own.
 * Differs: none known. */
enum vtrn_status vtrn_exec_tensor_copy_predicated(struct vtrn_core *core, const struct vtrn_inst *inst)
{
    const struct vtrn_args_tensor_copy_predicated *arg = VTRN_ARGS(tensor_copy_predicated, inst);
    struct predicated job = { .reverse = exec_flag(&arg->reverse_pred), .has_src = arg->src.kind == VTRN_V_AP };

    if (job.has_src) VTRN_TRY(exec_resolve(core, &arg->src.ap, VTRN_READ, &job.src));
    else make_element(arg->dst.ap.dtype, arg->src.num, job.element);
    VTRN_TRY(exec_resolve(core, &arg->predicate.ap, VTRN_READ, &job.predicate));
    VTRN_TRY(exec_resolve(core, &arg->dst.ap, VTRN_READ | VTRN_WRITE, &job.dst));
    if (job.has_src) VTRN_TRY(exec_stage(core, &job.dst, &job.src));
    VTRN_TRY(exec_stage(core, &job.dst, &job.predicate));
    exec_for_partitions(core, job.dst.parts, job.dst.elems, predicated_rows, &job);
    return VTRN_OK;
}

/* ---------------------------------------------------------------- nc_stream_shuffle */
/* Does: within each quadrant of 32 partitions, dst partition i = src partition shuffle_mask[i]; 255 keeps what is in dst. The
 *   mask is the same for all quadrants. dst may be src.
 * Rounding: none, bits are copied.
 * Faults: none of its own.
 * Differs: none known. */
enum vtrn_status vtrn_exec_nc_stream_shuffle(struct vtrn_core *core, const struct vtrn_inst *inst)
{
    const struct vtrn_args_nc_stream_shuffle *arg = VTRN_ARGS(nc_stream_shuffle, inst);
    struct exec_view dst, src;

    VTRN_TRY(exec_resolve(core, &arg->src.ap, VTRN_READ, &src));
    VTRN_TRY(exec_resolve(core, &arg->dst.ap, VTRN_READ | VTRN_WRITE, &dst));
    VTRN_TRY(exec_stage_always(core, &dst, &src));
    for (int64_t p = 0; p < dst.parts; p++) {
        int64_t mask = arg->shuffle_mask.ints[p % QUADRANT], from = p / QUADRANT * QUADRANT + mask;

        if (mask == KEEP) continue;
        VTRN_ASSERT(from < src.parts); /* legal_vector.c, check_mask */
        for (int64_t i = 0; i < dst.elems; i += EXEC_ROW_MAX) {
            int64_t n = dst.elems - i < EXEC_ROW_MAX ? dst.elems - i : EXEC_ROW_MAX;

            exec_store_raw(&dst, p, 1, i, n, exec_load_raw(&src, from, 1, i, n, core->scratch));
        }
    }
    return VTRN_OK;
}

/* ---------------------------------------------------------------- dropout */
struct dropout {
    struct exec_view dst, data;
    struct exec_scalars prob;
};

static void dropout_rows(const struct exec_rows *rows, int64_t p0, int64_t p1, uint8_t *scratch)
{
    const struct dropout *job = rows->data;
    const struct exec_view *dst = &job->dst;
    uint32_t *word = (uint32_t *)(void *)exec_block(scratch, 0);
    uint8_t take[EXEC_ROW_MAX], zero[4] = { 0 }, *out = (uint8_t *)exec_block(scratch, 1);

    for (int64_t p = p0; p < p1; p++)
        for (int64_t i = 0; i < dst->elems; i += EXEC_ROW_MAX) {
            int64_t n = dst->elems - i < EXEC_ROW_MAX ? dst->elems - i : EXEC_ROW_MAX;
            float prob = job->prob.value[job->prob.same ? 0 : p];

            exec_rng_draw(rows->core, VTRN_ENGINE_VECTOR, p, word, (size_t)n);
            for (int64_t k = 0; k < n; k++) take[k] = (float)(word[k] >> 8) * 0x1p-24f < prob;
            exec_pack_raw(&job->data, p, 1, i, n, out);
            blend(out, zero, 0, take, n, dst->elem_bytes);
            exec_store_raw(dst, p, 1, i, n, out);
        }
}

/* Does: dst = data with each element set to 0 with probability prob (a number or one per partition): where a uniform number
 *   below 1, the high 24 bits of the generator's next word, is below prob. What is kept is not scaled.
 * Rounding: none, bits are copied.
 * Faults: none of its own.
 * Differs: how hardware compares random bits with prob is not documented; the generator is that of rng on the vector
 *   engine, one word an element. */
enum vtrn_status vtrn_exec_dropout(struct vtrn_core *core, const struct vtrn_inst *inst)
{
    const struct vtrn_args_dropout *arg = VTRN_ARGS(dropout, inst);
    struct dropout job;

    VTRN_TRY(exec_resolve(core, &arg->data.ap, VTRN_READ, &job.data));
    VTRN_TRY(exec_scalars(core, &arg->prob, job.data.parts, &job.prob));
    VTRN_TRY(exec_resolve(core, &arg->dst.ap, VTRN_WRITE, &job.dst));
    VTRN_TRY(exec_stage(core, &job.dst, &job.data));
    exec_for_partitions(core, job.dst.parts, job.dst.elems * 8, dropout_rows, &job);
    return VTRN_OK;
}
