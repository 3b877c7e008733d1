/* The tensor engine against its definition: products of every dtype, accumulation groups with their memory of what was written,
 * double rows, block-scaled products, transposes. The model multiplies element by element with fmaf in k order and keeps one
 * flag a byte of PSUM. */
#include "exec_model.h"

#include <math.h>

static int set_up_v4(void **state)
{
    *state = rig_create("trn3", 1, 5);
    return 0;
}
static int set_up_v3(void **state)
{
    *state = rig_create("trn2", 1, 5);
    return 0;
}
static int set_up_v2(void **state)
{
    *state = rig_create("trn1", 1, 5);
    return 0;
}
static int tear_down(void **state)
{
    rig_destroy(*state);
    return 0;
}

static const uint8_t narrow[] = { VTRN_DT_BF16, VTRN_DT_BF16, VTRN_DT_F16, VTRN_DT_F8E4M3, VTRN_DT_F8E5M2 };
static const uint8_t wide[] = { VTRN_DT_F32, VTRN_DT_F32, VTRN_DT_TF32 };
static const uint8_t fp8[] = { VTRN_DT_F8E4M3, VTRN_DT_F8E5M2 };

/* tf32 reads as fp32 rounded to 10 mantissa bits. */
static float input(struct model *model, const struct vtrn_ap *ap, int64_t p, int64_t i)
{
    float x = model_get(model, ap, p, i), y = x;
    if (ap->dtype == VTRN_DT_TF32) vtrn_from_f32(VTRN_DT_TF32, x, &y);
    return y;
}

/* ---------------------------------------------------------------- products */
/* What the model remembers of a PSUM tensor: bytes that a product wrote. */
struct group {
    uint32_t tensor;
    bool *written;
};

static size_t byte_of(const struct model *model, const struct vtrn_ap *ap, int64_t p, int64_t i)
{
    const struct vtrn_tensor *t = &model->rig->prog->tensor[ap->tensor];
    int64_t at = ap->offset;
    for (int d = ap->ndim - 1; d > 0; d--) {
        at += i % ap->dim[d].count * ap->dim[d].stride;
        i /= ap->dim[d].count;
    }
    return (size_t)(ap->part0 + p) * (size_t)t->row_bytes + (size_t)at * vtrn_dtypes[ap->dtype].size_bytes;
}

/* One more chain for element (m, n). accumulate: -1 None, 0, 1. */
static void put_chain(struct model *model, struct group *group, const struct vtrn_ap *dst, int64_t m, int64_t n, int accumulate,
                      float chain)
{
    bool *written = group ? &group->written[byte_of(model, dst, m, n)] : NULL;
    bool adds = accumulate == 1 || (accumulate < 0 && written && *written);
    float old = 0;
    if (adds) old = vtrn_to_f32((enum vtrn_dtype)dst->dtype, model_write(model, dst, m, n));
    model_put(model, dst, m, n, model_quiet(adds ? old + chain : chain));
    if (written) *written = true;
}

struct job {
    struct vtrn_ap dst, s, x;
    int64_t k, m, n;
    int halves, accumulate;
};

static void model_product(struct model *model, struct group *group, const struct job *job)
{
    for (int64_t m = 0; m < job->m; m++)
        for (int64_t n = 0; n < job->n; n++) {
            float chain = 0;
            for (int r = 0; r < job->halves; r++)
                for (int64_t k = 0; k < job->k; k++)
                    chain = fmaf(input(model, &job->s, k, r * job->m + m), input(model, &job->x, k, r * job->n + n), chain);
            put_chain(model, group, &job->dst, m, n, job->accumulate, chain);
        }
}

static void set_product(struct model *model, const struct job *job)
{
    rig_set_ap(RIG_ARG(&model->inst, nc_matmul, stationary), job->s);
    rig_set_ap(RIG_ARG(&model->inst, nc_matmul, moving), job->x);
    rig_set_ap(RIG_ARG(&model->inst, nc_matmul, dst), job->dst);
    if (job->accumulate >= 0) rig_set_int(RIG_ARG(&model->inst, nc_matmul, accumulate), job->accumulate);
    if (job->halves == 2) rig_set_int(RIG_ARG(&model->inst, nc_matmul, perf_mode), VTRN_MATMUL_PERF_DOUBLE_ROW);
}

static struct vtrn_ap rows_of(struct model *model, uint8_t dtype, int64_t k, int halves, int64_t columns)
{
    if (halves == 1 && rig_below(3) == 0) return model_source(model, VTRN_SBUF, dtype, k, columns);
    int64_t dim[3] = { k, halves, columns + rig_below(3) };
    struct vtrn_ap ap;
    uint32_t tensor = rig_tensor(model->rig, 0, VTRN_SBUF, dtype, 3, dim);
    free(rig_fill(model->rig, 0, tensor));
    ap = rig_ap(model->rig, tensor);
    ap.dim[2].count = columns;
    if (halves == 1) {
        ap.dim[1] = ap.dim[2];
        ap.ndim = 2;
    }
    return ap;
}

static void pick_dtypes(uint8_t *s, uint8_t *x)
{
    bool is_wide = rig_below(3) == 0;
    *s = is_wide ? MODEL_PICK(wide) : MODEL_PICK(narrow);
    *x = rig_below(2) ? *s : is_wide ? MODEL_PICK(wide) : MODEL_PICK(narrow);
}

static void test_products(void **state)
{
    static const int64_t sizes[] = { 1, 2, 7, 16, 31, 64, 100, 128 }, columns[] = { 1, 3, 16, 63, 64, 65, 130, 200, 512 };
    for (int round = 0; round < 120; round++) {
        struct model model;
        struct job job = { .k = sizes[rig_below(8)],
                           .m = sizes[rig_below(8)],
                           .n = columns[rig_below(9)],
                           .halves = 1,
                           .accumulate = (int)rig_below(3) - 1 };
        uint8_t s, x;
        pick_dtypes(&s, &x);
        if (job.k * job.m * job.n > 1 << 20) job.m = 1 + rig_below(20);
        model_begin(&model, *state, VTRN_OP_nc_matmul, VTRN_ENGINE_TENSOR);
        job.s = rows_of(&model, s, job.k, 1, job.m);
        job.x = rows_of(&model, x, job.k, 1, job.n);
        if (job.n <= 130 && rig_below(2)) { /* larger patterns with gaps could cross a bank */
            job.dst = model_target(&model, VTRN_PSUM, VTRN_DT_F32, job.m, job.n, NULL);
        } else { /* whole rows of a tensor of its own: what kern writes itself */
            job.dst = rig_ap(model.rig, rig_tensor2(model.rig, 0, VTRN_PSUM, VTRN_DT_F32, job.m, job.n));
            free(rig_fill(model.rig, 0, job.dst.tensor));
        }
        set_product(&model, &job);
        model_product(&model, NULL, &job);
        model_end(&model);
    }
}

static void test_double_row(void **state)
{
    for (int round = 0; round < 40; round++) {
        struct model model;
        struct job job = {
            .k = 1 + rig_below(128), .m = 1 + rig_below(30), .n = 1 + rig_below(200), .halves = 2, .accumulate = (int)rig_below(3) - 1
        };
        model_begin(&model, *state, VTRN_OP_nc_matmul, VTRN_ENGINE_TENSOR);
        job.s = rows_of(&model, MODEL_PICK(fp8), job.k, 2, job.m);
        job.x = rows_of(&model, MODEL_PICK(fp8), job.k, 2, job.n);
        job.dst = model_target(&model, VTRN_PSUM, VTRN_DT_F32, job.m, job.n, NULL);
        set_product(&model, &job);
        model_product(&model, NULL, &job);
        model_end(&model);
    }
}

/* v4: a product over several banks, into fp32 and bf16. */
static void test_wide_products(void **state)
{
    for (int round = 0; round < 6; round++) {
        struct model model;
        uint8_t dtype = round % 2 ? VTRN_DT_BF16 : VTRN_DT_F32;
        struct job job = { .k = 1 + rig_below(20),
                           .m = 1 + rig_below(8),
                           .n = dtype == VTRN_DT_BF16 ? 5000 : 3000,
                           .halves = 1,
                           .accumulate = round % 3 - 1 };
        model_begin(&model, *state, VTRN_OP_nc_matmul, VTRN_ENGINE_TENSOR);
        job.s = rows_of(&model, VTRN_DT_BF16, job.k, 1, job.m);
        job.x = rows_of(&model, VTRN_DT_BF16, job.k, 1, job.n);
        job.dst = rig_ap(model.rig, rig_tensor2(model.rig, 0, VTRN_PSUM, dtype, job.m, job.n));
        free(rig_fill(model.rig, 0, job.dst.tensor));
        set_product(&model, &job);
        model_product(&model, NULL, &job);
        model_end(&model);
    }
}

/* ---------------------------------------------------------------- accumulation groups */
/* Many products into parts of one PSUM tensor: whole, column ranges, every other column, single partitions. */
static void random_part(struct model *model, struct vtrn_ap *ap, int64_t rows, int64_t columns)
{
    int64_t step = rig_below(3) ? 1 : 2, start = rig_below(columns), most = (columns - start + step - 1) / step;
    (void)model;
    ap->part0 = (uint16_t)rig_below(rows);
    ap->dim[0].count = 1 + rig_below(rows - ap->part0);
    ap->offset = start;
    ap->dim[1].count = 1 + rig_below(most);
    ap->dim[1].stride = step;
}

static void run_groups(struct rig *rig, uint8_t dtype)
{
    for (int round = 0; round < 12; round++) {
        int64_t rows = 1 + rig_below(40), columns = 1 + rig_below(300);
        struct group group = { .tensor = rig_tensor2(rig, 0, VTRN_PSUM, dtype, rows, columns) };
        size_t bytes = (size_t)(rows * columns) * vtrn_dtypes[dtype].size_bytes;
        uint8_t *image = malloc(bytes); /* the model's PSUM; poison at first, as the memory's */
        group.written = calloc(bytes, sizeof *group.written);
        memset(image, 0xff, bytes);
        for (int step = 0; step < 8; step++) {
            struct model model;
            struct job job = { .halves = 1, .k = 1 + rig_below(32), .accumulate = rig_below(4) ? -1 : (int)rig_below(2) };
            model_begin(&model, rig, VTRN_OP_nc_matmul, VTRN_ENGINE_TENSOR);
            job.dst = rig_ap(rig, group.tensor);
            if (step > 0 || rig_below(2)) random_part(&model, &job.dst, rows, columns);
            job.m = job.dst.dim[0].count;
            job.n = job.dst.dim[1].count;
            job.s = rows_of(&model, VTRN_DT_BF16, job.k, 1, job.m);
            job.x = rows_of(&model, VTRN_DT_BF16, job.k, 1, job.n);
            set_product(&model, &job);
            /* By hand, not with model_end: looking at the tensor before the first product would settle its poison. */
            for (int64_t m = 0; m < job.m; m++)
                for (int64_t n = 0; n < job.n; n++) {
                    float chain = 0, old;
                    size_t at = byte_of(&model, &job.dst, m, n);
                    bool adds = job.accumulate == 1 || (job.accumulate < 0 && group.written[at]);
                    for (int64_t k = 0; k < job.k; k++)
                        chain = fmaf(input(&model, &job.s, k, m), input(&model, &job.x, k, n), chain);
                    old = vtrn_to_f32((enum vtrn_dtype)dtype, image + at);
                    vtrn_from_f32((enum vtrn_dtype)dtype, model_quiet(adds ? old + chain : chain), image + at);
                    group.written[at] = true;
                }
            model_end(&model);
        }
        uint8_t *now = rig_image(rig, 0, group.tensor);
        for (size_t b = 0; b < bytes; b += vtrn_dtypes[dtype].size_bytes) {
            float got = vtrn_to_f32((enum vtrn_dtype)dtype, now + b), want = vtrn_to_f32((enum vtrn_dtype)dtype, image + b);
            if (got != want && !(isnan(got) && isnan(want)))
                fail_msg("round %d element %zu: %g, should be %g", round, b / vtrn_dtypes[dtype].size_bytes, (double)got,
                         (double)want);
        }
        free(now);
        free(image);
        free(group.written);
    }
}

static void test_groups_f32(void **state) { run_groups(*state, VTRN_DT_F32); }
static void test_groups_bf16(void **state) { run_groups(*state, VTRN_DT_BF16); }

/* A tensor that is declared anew begins anew, though it has the same address. */
static void test_group_of_new_tensor(void **state)
{
    struct rig *rig = *state;
    for (int turn = 0; turn < 2; turn++) {
        struct vtrn_tensor proto = { .space = VTRN_PSUM, .dtype = VTRN_DT_F32, .rank = 2, .dim = { 4, 8 }, .has_address = 1 };
        uint32_t tensor;
        struct vtrn_error err = { 0 };
        float ones[4 * 8], *sum;
        struct vtrn_inst inst;
        assert_int_equal(vtrn_prog_tensor(rig->prog, &proto, &tensor, &err), VTRN_OK);
        uint32_t s = rig_tensor2(rig, 0, VTRN_SBUF, VTRN_DT_F32, 4, 4), x = rig_tensor2(rig, 0, VTRN_SBUF, VTRN_DT_F32, 4, 8);
        for (int i = 0; i < 4 * 8; i++) ones[i] = 1;
        rig_write(rig, 0, s, ones);
        rig_write(rig, 0, x, ones);
        for (int k = 0; k < 3; k++) {
            vtrn_inst_init(&inst, VTRN_OP_nc_matmul);
            rig_set_ap(RIG_ARG(&inst, nc_matmul, stationary), rig_ap(rig, s));
            rig_set_ap(RIG_ARG(&inst, nc_matmul, moving), rig_ap(rig, x));
            rig_set_ap(RIG_ARG(&inst, nc_matmul, dst), rig_ap(rig, tensor));
            rig_append(rig, 0, &inst);
        }
        rig_run_ok(rig, 0);
        sum = rig_image(rig, 0, tensor);
        for (int i = 0; i < 4 * 8; i++) assert_true(sum[i] == 12);
        free(sum);
    }
}

/* ---------------------------------------------------------------- nc_matmul_mx */
static float scaled(struct model *model, const struct vtrn_ap *data, const struct vtrn_ap *scale, int64_t k, int64_t i, int q)
{
    uint8_t byte = *model_read(model, scale, 32 * (k / 32) + k % 32 / 8, i);
    float value = vtrn_mx_to_f32((enum vtrn_dtype)data->dtype, model_read(model, data, k, i), q);
    return byte == 255 ? NAN : (float)((double)value * ldexp(1, byte - 127));
}

static struct vtrn_ap scales_of(struct model *model, int64_t k, int64_t columns)
{
    struct vtrn_ap ap = model_source(model, VTRN_SBUF, rig_below(2) ? VTRN_DT_F8E8M0 : VTRN_DT_U8,
                                     (k - 1) / 32 * 32 + 4 + rig_below(2) * 4, columns);
    struct model_tensor *tensor = &model->tensor[model->tensors - 1];
    for (size_t b = 0; b < tensor->bytes; b++) tensor->before[b] = (uint8_t)(rig_below(200) ? 117 + rig_below(20) : rig_below(256));
    memcpy(tensor->after, tensor->before, tensor->bytes);
    rig_write(model->rig, 0, ap.tensor, tensor->before);
    return ap;
}

static void test_mx(void **state)
{
    static const uint8_t packed[] = { VTRN_DT_F8E5M2X4, VTRN_DT_F8E4M3FNX4, VTRN_DT_F4E2M1FNX4 };
    for (int round = 0; round < 40; round++) {
        struct model model;
        struct job job = { .k = 32 * (1 + rig_below(4)),
                           .m = 2 * (1 + rig_below(12)),
                           .n = 1 + rig_below(150),
                           .halves = 1,
                           .accumulate = (int)rig_below(3) - 1 };
        if (round == 0) job.n = 700; /* over a bank */
        model_begin(&model, *state, VTRN_OP_nc_matmul_mx, VTRN_ENGINE_TENSOR);
        job.s = model_source(&model, VTRN_SBUF, MODEL_PICK(packed), job.k, job.m);
        job.x = model_source(&model, VTRN_SBUF, MODEL_PICK(packed), job.k, job.n);
        struct vtrn_ap s_scale = scales_of(&model, job.k, job.m), x_scale = scales_of(&model, job.k, job.n);
        job.dst = model_target(&model, VTRN_PSUM, round % 3 ? VTRN_DT_F32 : VTRN_DT_BF16, job.m, job.n, NULL);
        rig_set_ap(RIG_ARG(&model.inst, nc_matmul_mx, stationary), job.s);
        rig_set_ap(RIG_ARG(&model.inst, nc_matmul_mx, moving), job.x);
        rig_set_ap(RIG_ARG(&model.inst, nc_matmul_mx, stationary_scale), s_scale);
        rig_set_ap(RIG_ARG(&model.inst, nc_matmul_mx, moving_scale), x_scale);
        rig_set_ap(RIG_ARG(&model.inst, nc_matmul_mx, dst), job.dst);
        if (job.accumulate >= 0) rig_set_int(RIG_ARG(&model.inst, nc_matmul_mx, accumulate), job.accumulate);
        for (int64_t m = 0; m < job.m; m++)
            for (int64_t n = 0; n < job.n; n++) {
                float chain = 0;
                for (int64_t k = 0; k < job.k; k++)
                    for (int q = 0; q < 4; q++)
                        chain = fmaf(scaled(&model, &job.s, &s_scale, k, m, q), scaled(&model, &job.x, &x_scale, k, n, q), chain);
                put_chain(&model, NULL, &job.dst, m, n, job.accumulate, chain);
            }
        model_end(&model);
    }
}

/* ---------------------------------------------------------------- transposes */
static const uint8_t plain[] = { VTRN_DT_F32, VTRN_DT_BF16, VTRN_DT_F16, VTRN_DT_F8E4M3, VTRN_DT_I32, VTRN_DT_I16, VTRN_DT_U8 };

/* Any bits, NaNs included. */
static struct vtrn_ap any_bits(struct model *model, int space, uint8_t dtype, int64_t parts, int64_t elems)
{
    struct vtrn_ap ap = model_source(model, space, dtype, parts, elems);
    struct model_tensor *tensor = &model->tensor[model->tensors - 1];
    rig_random_bytes(tensor->before, tensor->bytes);
    memcpy(tensor->after, tensor->before, tensor->bytes);
    rig_write(model->rig, 0, ap.tensor, tensor->before);
    return ap;
}

static void test_transpose(void **state)
{
    for (int round = 0; round < 80; round++) {
        struct model model;
        bool tensor = rig_below(2);
        int64_t most = tensor ? 128 : 32, parts = 1 + rig_below(most), elems = 1 + rig_below(most);
        uint8_t dtype = MODEL_PICK(plain), to = dtype;
        size_t size = vtrn_dtypes[dtype].size_bytes;
        model_begin(&model, *state, VTRN_OP_nc_transpose, tensor ? VTRN_ENGINE_TENSOR : VTRN_ENGINE_VECTOR);
        struct vtrn_ap data = any_bits(&model, tensor ? VTRN_SBUF : model_space(elems), dtype, parts, elems);
        if (tensor && size == 1 && rig_below(2)) to = VTRN_DT_BF16; /* zero-extended */
        struct vtrn_ap dst = model_target(&model, tensor ? VTRN_PSUM : model_space(parts), to, elems, parts, NULL);
        if (!tensor && parts == elems && rig_below(2)) dst = data; /* in place */
        rig_set_ap(RIG_ARG(&model.inst, nc_transpose, data), data);
        rig_set_ap(RIG_ARG(&model.inst, nc_transpose, dst), dst);
        for (int64_t i = 0; i < parts; i++)
            for (int64_t j = 0; j < elems; j++) {
                uint32_t bits = 0;
                memcpy(&bits, model_read(&model, &data, i, j), size);
                memcpy(model_write(&model, &dst, j, i), &bits, vtrn_dtypes[to].size_bytes);
            }
        model_end(&model);
    }
}

/* nc_matmul with is_transpose: an identity, or a choice of rows. */
static void test_matmul_transpose(void **state)
{
    static const uint8_t dtypes[] = { VTRN_DT_F32, VTRN_DT_BF16, VTRN_DT_F16, VTRN_DT_F8E4M3 };
    for (int round = 0; round < 60; round++) {
        struct model model;
        int64_t k = 1 + rig_below(128), m = 1 + rig_below(128), n = 1 + rig_below(k), from[128];
        uint8_t dtype = MODEL_PICK(dtypes), to = dtype;
        size_t size = vtrn_dtypes[dtype].size_bytes;
        bool identity = rig_below(2);
        model_begin(&model, *state, VTRN_OP_nc_matmul, VTRN_ENGINE_TENSOR);
        struct vtrn_ap data = any_bits(&model, VTRN_SBUF, dtype, k, m);
        struct vtrn_ap moving = model_source(&model, VTRN_SBUF, dtype, k, n);
        if (size == 1 && rig_below(2)) to = VTRN_DT_F16;
        struct vtrn_ap dst = model_target(&model, VTRN_PSUM, to, m, n, NULL);
        for (int64_t j = 0; j < n; j++) from[j] = identity ? j : rig_below(k);
        for (int64_t i = 0; i < k; i++)
            for (int64_t j = 0; j < n; j++) model_put(&model, &moving, i, j, i == from[j]);
        for (int t = 0; t < model.tensors; t++)
            if (model.tensor[t].id == moving.tensor) {
                memcpy(model.tensor[t].before, model.tensor[t].after, model.tensor[t].bytes);
                rig_write(model.rig, 0, moving.tensor, model.tensor[t].before);
            }
        rig_set_ap(RIG_ARG(&model.inst, nc_matmul, stationary), data);
        rig_set_ap(RIG_ARG(&model.inst, nc_matmul, moving), moving);
        rig_set_ap(RIG_ARG(&model.inst, nc_matmul, dst), dst);
        rig_set_int(RIG_ARG(&model.inst, nc_matmul, is_transpose), 1);
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < n; j++) {
                uint32_t bits = 0;
                memcpy(&bits, model_read(&model, &data, from[j], i), size);
                memcpy(model_write(&model, &dst, i, j), &bits, vtrn_dtypes[to].size_bytes);
            }
        model_end(&model);
    }
}

static void test_transpose_needs_identity(void **state)
{
    struct model model;
    model_begin(&model, *state, VTRN_OP_nc_matmul, VTRN_ENGINE_TENSOR);
    struct vtrn_ap data = model_source(&model, VTRN_SBUF, VTRN_DT_BF16, 16, 16),
                   moving = model_source(&model, VTRN_SBUF, VTRN_DT_BF16, 16, 16);
    struct vtrn_ap dst = model_target(&model, VTRN_PSUM, VTRN_DT_BF16, 16, 16, NULL);
    rig_set_ap(RIG_ARG(&model.inst, nc_matmul, stationary), data);
    rig_set_ap(RIG_ARG(&model.inst, nc_matmul, moving), moving);
    rig_set_ap(RIG_ARG(&model.inst, nc_matmul, dst), dst);
    rig_set_int(RIG_ARG(&model.inst, nc_matmul, is_transpose), 1);
    model_end_fault(&model, VTRN_FAULT_VALUE, "is_transpose needs an identity");
}

/* v2: NaN and infinity spoil the row that they come from. */
static void test_transpose_v2(void **state)
{
    for (int round = 0; round < 30; round++) {
        struct model model;
        int64_t parts = 1 + rig_below(64), elems = 1 + rig_below(64);
        uint8_t dtype = rig_below(2) ? VTRN_DT_F32 : VTRN_DT_BF16;
        model_begin(&model, *state, VTRN_OP_nc_transpose, VTRN_ENGINE_TENSOR);
        struct vtrn_ap data = model_source(&model, VTRN_SBUF, dtype, parts, elems);
        struct vtrn_ap dst = model_target(&model, VTRN_PSUM, dtype, elems, parts, NULL);
        if (rig_below(2)) model_put(&model, &data, rig_below(parts), rig_below(elems), rig_below(2) ? NAN : INFINITY);
        for (int t = 0; t < model.tensors; t++)
            if (model.tensor[t].id == data.tensor) {
                memcpy(model.tensor[t].before, model.tensor[t].after, model.tensor[t].bytes);
                rig_write(model.rig, 0, data.tensor, model.tensor[t].before);
            }
        rig_set_ap(RIG_ARG(&model.inst, nc_transpose, data), data);
        rig_set_ap(RIG_ARG(&model.inst, nc_transpose, dst), dst);
        for (int64_t j = 0; j < elems; j++)
            for (int64_t i = 0; i < parts; i++) {
                float chain = 0;
                for (int64_t k = 0; k < parts; k++) chain = fmaf(model_get(&model, &data, k, j), k == i, chain);
                model_put(&model, &dst, j, i, model_quiet(chain));
            }
        model_end(&model);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_products, set_up_v3, tear_down),
        cmocka_unit_test_setup_teardown(test_double_row, set_up_v3, tear_down),
        cmocka_unit_test_setup_teardown(test_wide_products, set_up_v4, tear_down),
        cmocka_unit_test_setup_teardown(test_groups_f32, set_up_v3, tear_down),
        cmocka_unit_test_setup_teardown(test_groups_bf16, set_up_v4, tear_down),
        cmocka_unit_test_setup_teardown(test_group_of_new_tensor, set_up_v3, tear_down),
        cmocka_unit_test_setup_teardown(test_mx, set_up_v4, tear_down),
        cmocka_unit_test_setup_teardown(test_transpose, set_up_v3, tear_down),
        cmocka_unit_test_setup_teardown(test_matmul_transpose, set_up_v3, tear_down),
        cmocka_unit_test_setup_teardown(test_transpose_needs_identity, set_up_v3, tear_down),
        cmocka_unit_test_setup_teardown(test_transpose_v2, set_up_v2, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
