/* Searches, statistics and block quantisation of the vector engine against their definitions. */
#include "exec_model.h"

#include <math.h>

enum { ROUNDS = 120 };

static const uint8_t floats[] = { VTRN_DT_F32, VTRN_DT_F32, VTRN_DT_BF16, VTRN_DT_F16, VTRN_DT_I32, VTRN_DT_U8 };
static const uint8_t indices[] = { VTRN_DT_U16, VTRN_DT_U32 };

static int set_up(void **state)
{
    *state = rig_create("trn3", 1, 5);
    return 0;
}
static int tear_down(void **state)
{
    rig_destroy(*state);
    return 0;
}

/* Rows for searches: at least 8 elements, at most 3 dims, sometimes long, values that repeat. */
static struct vtrn_ap searched(struct model *model, uint8_t dtype, int64_t parts, int64_t elems)
{
    uint32_t tensor = rig_tensor2(model->rig, 0, VTRN_SBUF, dtype, parts, elems + 8);
    struct vtrn_ap ap;

    free(rig_fill(model->rig, 0, tensor));
    ap = rig_slice(model->rig, tensor, 0, parts, rig_below(8), elems);
    model_read(model, &ap, 0, 0);
    return ap;
}

static void shape(int64_t *parts, int64_t *elems)
{
    static const int64_t sizes[] = { 8, 9, 15, 16, 17, 100, 513, 1024, 1025, 3000 };

    *elems = rig_below(40) ? sizes[rig_below(10)] : 16384;
    *parts = *elems > 2000 ? 1 + rig_below(4) : 1 + rig_below(128);
}

/* ---------------------------------------------------------------- max8 */
static int descending(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;

    return x < y ? 1 : x > y ? -1 : 0;
}

static void test_max8(void **state)
{
    for (int round = 0; round < ROUNDS; round++) {
        struct model model;
        int64_t parts, elems;
        float *row;
        model_begin(&model, *state, VTRN_OP_max8, VTRN_ENGINE_VECTOR);
        shape(&parts, &elems);
        struct vtrn_ap src = searched(&model, MODEL_PICK(floats), parts, elems);
        struct vtrn_ap dst = model_target(&model, model_space(8), MODEL_PICK(floats), parts, 8, NULL);
        rig_set_ap(RIG_ARG(&model.inst, max8, src), src);
        rig_set_ap(RIG_ARG(&model.inst, max8, dst), dst);
        row = malloc((size_t)elems * sizeof *row);
        for (int64_t p = 0; p < parts; p++) {
            for (int64_t i = 0; i < elems; i++) row[i] = model_get(&model, &src, p, i);
            qsort(row, (size_t)elems, sizeof *row, descending);
            for (int j = 0; j < 8; j++) model_put(&model, &dst, p, j, row[j]);
        }
        free(row);
        model_end(&model);
    }
}

/* What was never written shows: NaN comes first. */
static void test_max8_nan(void **state)
{
    struct rig *rig = *state;
    uint32_t src = rig_tensor2(rig, 0, VTRN_SBUF, VTRN_DT_F32, 1, 20), dst = rig_tensor2(rig, 0, VTRN_SBUF, VTRN_DT_F32, 1, 8);
    struct vtrn_inst inst;
    float row[20], *got;
    for (int i = 0; i < 20; i++) row[i] = i % 7 == 3 ? NAN : (float)i;
    rig_write(rig, 0, src, row);
    vtrn_inst_init(&inst, VTRN_OP_max8);
    rig_set_ap(RIG_ARG(&inst, max8, src), rig_ap(rig, src));
    rig_set_ap(RIG_ARG(&inst, max8, dst), rig_ap(rig, dst));
    rig_append(rig, 0, &inst);
    rig_run_ok(rig, 0);
    got = rig_image(rig, 0, dst);
    assert_true(isnan(got[0]) && isnan(got[1]) && isnan(got[2]) && got[3] == 19 && got[4] == 18 && got[5] == 16 && got[6] == 15 &&
                got[7] == 14);
    free(got);
}

/* ---------------------------------------------------------------- where eight values stand */
/* Vals of a partition: mostly values of its data, some twice, some that are not there. */
static struct vtrn_ap sought(struct model *model, const struct vtrn_ap *data, int64_t parts)
{
    uint32_t tensor = rig_tensor2(model->rig, 0, VTRN_SBUF, data->dtype, parts, 8);
    size_t size = vtrn_dtypes[data->dtype].size_bytes;
    uint8_t *image = malloc((size_t)parts * 8 * size);
    struct vtrn_ap ap;

    for (int64_t p = 0; p < parts; p++)
        for (int64_t j = 0; j < 8; j++) {
            const uint8_t *from = model_read(model, data, p, rig_below(vtrn_ap_free_elems(data)));

            if (j > 0 && rig_below(3) == 0) from = image + (p * 8 + rig_below(j)) * (int64_t)size;
            memcpy(image + (p * 8 + j) * (int64_t)size, from, size);
            if (rig_below(6) == 0)
                vtrn_from_f32((enum vtrn_dtype)data->dtype, 77.0f + (float)rig_below(2), image + (p * 8 + j) * (int64_t)size);
        }
    rig_write(model->rig, 0, tensor, image);
    free(image);
    ap = rig_ap(model->rig, tensor);
    model_read(model, &ap, 0, 0);
    return ap;
}

static void put_index(struct model *model, const struct vtrn_ap *ap, int64_t p, int64_t j, int64_t index)
{
    uint32_t word = (uint32_t)index;

    memcpy(model_write(model, ap, p, j), &word, vtrn_dtypes[ap->dtype].size_bytes);
}

static void test_find_index8(void **state)
{
    for (int round = 0; round < ROUNDS; round++) {
        struct model model;
        int64_t parts, elems;
        model_begin(&model, *state, VTRN_OP_nc_find_index8, VTRN_ENGINE_VECTOR);
        shape(&parts, &elems);
        struct vtrn_ap data = searched(&model, MODEL_PICK(floats), parts, elems), vals = sought(&model, &data, parts);
        struct vtrn_ap dst = model_target(&model, VTRN_SBUF, MODEL_PICK(indices), parts, 8, NULL);
        rig_set_ap(RIG_ARG(&model.inst, nc_find_index8, data), data);
        rig_set_ap(RIG_ARG(&model.inst, nc_find_index8, vals), vals);
        rig_set_ap(RIG_ARG(&model.inst, nc_find_index8, dst), dst);
        for (int64_t p = 0; p < parts; p++)
            for (int64_t j = 0; j < 8; j++) {
                int64_t earlier = 0, found = -1;
                for (int64_t e = 0; e < j; e++) earlier += model_get(&model, &vals, p, e) == model_get(&model, &vals, p, j);
                for (int64_t i = 0; i < elems && found < 0; i++)
                    if (model_get(&model, &data, p, i) == model_get(&model, &vals, p, j) && earlier-- == 0) found = i;
                put_index(&model, &dst, p, j, found);
            }
        model_end(&model);
    }
}

static void test_match_replace8(void **state)
{
    for (int round = 0; round < ROUNDS; round++) {
        struct model model;
        int64_t parts, elems;
        bool with_index = rig_below(2);
        uint8_t *taken;
        model_begin(&model, *state, VTRN_OP_nc_match_replace8, VTRN_ENGINE_VECTOR);
        shape(&parts, &elems);
        struct vtrn_ap data = searched(&model, MODEL_PICK(floats), parts, elems), vals = sought(&model, &data, parts);
        struct vtrn_ap dst = rig_below(2) ? data
                                          : model_target(&model, VTRN_SBUF, rig_below(2) ? data.dtype : MODEL_PICK(floats), parts,
                                                         elems, NULL),
                       index;
        float imm = rig_below(2) ? -9.5f : 2.0f; /* may be a value of the data */
        rig_set_ap(RIG_ARG(&model.inst, nc_match_replace8, data), data);
        rig_set_ap(RIG_ARG(&model.inst, nc_match_replace8, vals), vals);
        rig_set_ap(RIG_ARG(&model.inst, nc_match_replace8, dst), dst);
        rig_set_num(RIG_ARG(&model.inst, nc_match_replace8, imm), imm);
        if (with_index) {
            index = model_target(&model, VTRN_SBUF, MODEL_PICK(indices), parts, 8, NULL);
            rig_set_ap(RIG_ARG(&model.inst, nc_match_replace8, dst_idx), index);
        }
        taken = malloc((size_t)elems);
        for (int64_t p = 0; p < parts; p++) {
            memset(taken, 0, (size_t)elems);
            for (int64_t i = 0; i < elems; i++) model_put(&model, &dst, p, i, model_get(&model, &data, p, i));
            for (int64_t j = 7; j >= 0; j--) {
                int64_t found = -1;
                for (int64_t i = 0; i < elems && found < 0; i++)
                    if (!taken[i] && model_get(&model, &data, p, i) == model_get(&model, &vals, p, j)) found = i;
                if (found >= 0) {
                    taken[found] = 1;
                    model_put(&model, &dst, p, found, imm);
                }
                if (with_index) put_index(&model, &index, p, j, found);
            }
        }
        free(taken);
        model_end(&model);
    }
}

/* The example of the reference's documentation. */
static void test_match_replace8_duplicates(void **state)
{
    static const float row[] = { 1, 2, 3, 4, 8, 8, 8, 8, 8, 8, 8 }, vals[] = { 3, 8, 8, 8, 8, 8, 8, 8 };
    static const uint32_t want[] = { 2, 10, 9, 8, 7, 6, 5, 4 };
    struct rig *rig = *state;
    uint32_t data = rig_tensor2(rig, 0, VTRN_SBUF, VTRN_DT_F32, 1, 11), eight = rig_tensor2(rig, 0, VTRN_SBUF, VTRN_DT_F32, 1, 8);
    uint32_t index = rig_tensor2(rig, 0, VTRN_SBUF, VTRN_DT_U32, 1, 8), *got;
    struct vtrn_inst inst;
    rig_write(rig, 0, data, row);
    rig_write(rig, 0, eight, vals);
    vtrn_inst_init(&inst, VTRN_OP_nc_match_replace8);
    rig_set_ap(RIG_ARG(&inst, nc_match_replace8, data), rig_ap(rig, data));
    rig_set_ap(RIG_ARG(&inst, nc_match_replace8, vals), rig_ap(rig, eight));
    rig_set_ap(RIG_ARG(&inst, nc_match_replace8, dst), rig_ap(rig, data));
    rig_set_ap(RIG_ARG(&inst, nc_match_replace8, dst_idx), rig_ap(rig, index));
    rig_set_num(RIG_ARG(&inst, nc_match_replace8, imm), 0);
    rig_append(rig, 0, &inst);
    rig_run_ok(rig, 0);
    got = rig_image(rig, 0, index);
    assert_memory_equal(got, want, sizeof want);
    free(got);
}

/* ---------------------------------------------------------------- statistics */
/* Close to the exact value: how hardware sums is not documented. */
static void expect_near(struct rig *rig, uint32_t dst, int64_t parts, int64_t count, const double *want)
{
    float *got = rig_image(rig, 0, dst);

    for (int64_t i = 0; i < parts * count; i++)
        if (!(fabs(got[i] - want[i]) <= 2e-5 * (1 + fabs(want[i]))))
            fail_msg("partition %d number %d: %g, should be %g", (int)(i / count), (int)(i % count), (double)got[i], want[i]);
    free(got);
}

static void stats_of(const float *x, int64_t n, double out[3])
{
    double mean = 0, squares = 0;
    int64_t count = (n + 1) / 2;

    for (int64_t i = 0; i < n; i += 2) mean += x[i];
    mean = count ? mean / (double)count : 0;
    for (int64_t i = 0; i < n; i += 2) squares += (x[i] - mean) * (x[i] - mean);
    out[0] = (double)count;
    out[1] = mean;
    out[2] = squares;
}

/* bn_stats of tiles and one bn_aggr over them: mean and variance of the whole. */
static void test_bn(void **state)
{
    struct rig *rig = *state;
    for (int round = 0; round < 25; round++) {
        int64_t parts = 1 + rig_below(128), tiles = 1 + rig_below(3), n = 1 + rig_below(round % 2 ? 512 : 20);
        uint32_t stats = rig_tensor2(rig, 0, VTRN_SBUF, VTRN_DT_F32, parts, 6 * tiles),
                 result = rig_tensor2(rig, 0, VTRN_SBUF, VTRN_DT_F32, parts, 2);
        double *want = malloc((size_t)(parts * 6 * tiles) * sizeof *want), *whole = calloc((size_t)(parts * 2), sizeof *whole);
        float **row = malloc((size_t)tiles * sizeof *row);
        struct vtrn_inst inst;
        for (int64_t t = 0; t < tiles; t++) {
            uint32_t data = rig_tensor2(rig, 0, VTRN_SBUF, VTRN_DT_F32, parts, n);
            row[t] = rig_fill(rig, 0, data);
            for (int64_t i = 0; i < parts * n; i++) row[t][i] = (float)(rig_below(2001) - 900) / 256;
            rig_write(rig, 0, data, row[t]);
            for (int64_t p = 0; p < parts; p++) {
                stats_of(row[t] + p * n, n, want + p * 6 * tiles + 6 * t);
                stats_of(row[t] + p * n + 1, n - 1, want + p * 6 * tiles + 6 * t + 3);
                for (int64_t i = 0; i < n; i++) whole[2 * p] += row[t][p * n + i] / (double)(n * tiles);
            }
            vtrn_inst_init(&inst, VTRN_OP_bn_stats);
            rig_set_ap(RIG_ARG(&inst, bn_stats, data), rig_ap(rig, data));
            rig_set_ap(RIG_ARG(&inst, bn_stats, dst), rig_slice(rig, stats, 0, parts, 6 * t, 6));
            rig_append(rig, 0, &inst);
        }
        for (int64_t t = 0; t < tiles; t++)
            for (int64_t i = 0; i < parts * n; i++) {
                double off = row[t][i] - whole[2 * (i / n)];
                whole[2 * (i / n) + 1] += off * off / (double)(n * tiles);
            }
        vtrn_inst_init(&inst, VTRN_OP_bn_aggr);
        rig_set_ap(RIG_ARG(&inst, bn_aggr, data), rig_ap(rig, stats));
        rig_set_ap(RIG_ARG(&inst, bn_aggr, dst), rig_ap(rig, result));
        rig_append(rig, 0, &inst);
        rig_run_ok(rig, 0);
        expect_near(rig, stats, parts, 6 * tiles, want);
        expect_near(rig, result, parts, 2, whole);
        for (int64_t t = 0; t < tiles; t++) free(row[t]);
        free(row);
        free(want);
        free(whole);
    }
}

/* ---------------------------------------------------------------- quantize_mx */
static void quantize(struct rig *rig, bool v03, int round)
{
    struct model model;
    int64_t parts = 32 * (1 + rig_below(4)), columns = 1 + rig_below(round % 3 ? 40 : 200);
    bool e5m2 = rig_below(2);
    int emax = e5m2 ? 15 : 8;
    float most = e5m2 ? 57344.0f : 448.0f;
    uint8_t element = e5m2 ? VTRN_DT_F8E5M2 : VTRN_DT_F8E4M3FN;
    model_begin(&model, rig, VTRN_OP_quantize_mx, VTRN_ENGINE_VECTOR);
    struct vtrn_ap src = model_source(&model, VTRN_SBUF, rig_below(2) ? VTRN_DT_BF16 : VTRN_DT_F16, parts, 4 * columns);
    struct vtrn_ap dst = model_target(&model, VTRN_SBUF, e5m2 ? VTRN_DT_F8E5M2X4 : VTRN_DT_F8E4M3FNX4, parts, columns, NULL);
    struct vtrn_ap scale = model_target(&model, VTRN_SBUF, rig_below(2) ? VTRN_DT_U8 : VTRN_DT_F8E8M0,
                                        (parts - 1) / 32 * 32 + 4 + 8 * rig_below(2), columns, NULL);
    for (int t = 0; t < model.tensors; t++) /* blocks of zeros, blocks of tiny and of huge values */
        if (model.tensor[t].id == src.tensor) {
            for (int64_t p = 0; p < parts; p++)
                for (int64_t i = 0; i < 4 * columns; i++) {
                    int64_t block = p / 8 * 1000 + i / 4;
                    float x = model_get(&model, &src, p, i) * (float)(1 + i % 3);
                    x = block % 5 == 0                                ? 0
                        : block % 5 == 1                              ? x * 0x1p-14f
                        : block % 5 == 2 && src.dtype == VTRN_DT_BF16 ? x * 0x1p-120f
                                                                      : x;
                    model_put(&model, &src, p, i, x);
                }
            memcpy(model.tensor[t].before, model.tensor[t].after, model.tensor[t].bytes);
            rig_write(rig, 0, src.tensor, model.tensor[t].before);
        }
    rig_set_ap(RIG_ARG(&model.inst, quantize_mx, src), src);
    rig_set_ap(RIG_ARG(&model.inst, quantize_mx, dst), dst);
    rig_set_ap(RIG_ARG(&model.inst, quantize_mx, dst_scale), scale);
    for (int64_t g = 0; g < parts / 8; g++)
        for (int64_t f = 0; f < columns; f++) {
            float largest = 0;
            int exponent = 0, byte;
            for (int64_t p = 8 * g; p < 8 * g + 8; p++)
                for (int64_t q = 0; q < 4; q++) largest = fmaxf(largest, fabsf(model_get(&model, &src, p, 4 * f + q)));
            if (largest >= 0x1p-126f) {
                frexpf(largest, &exponent);
                exponent += 126; /* biased exponent of 1.m * 2^e */
            }
            byte = exponent - emax + (v03 ? 0 : 1);
            if (byte < 0) byte = 0;
            *model_write(&model, &scale, 8 * g / 32 * 32 + 8 * g % 32 / 8, f) = (uint8_t)byte;
            for (int64_t p = 8 * g; p < 8 * g + 8; p++)
                for (int64_t q = 0; q < 4; q++) {
                    double y = model_get(&model, &src, p, 4 * f + q) / ldexp(1, byte - 127);
                    y = y > most ? most : y < -most ? -most : y;
                    vtrn_from_f32((enum vtrn_dtype)element, (float)y, model_write(&model, &dst, p, f) + q);
                }
        }
    model_end(&model);
}

static void test_quantize_mx(void **state)
{
    for (int round = 0; round < 40; round++) quantize(*state, false, round);
}

static void test_quantize_mx_v03(void **state)
{
    struct rig *rig = *state;
    struct vtrn_exec_options options;
    struct vtrn_error err = { 0 };
    vtrn_core_destroy(rig->core[0]);
    vtrn_exec_options_init(&options);
    options.mx_scale_v03 = true;
    rig->core[0] = vtrn_core_create(rig->prog, rig->mem, 0, &options, &err);
    assert_non_null(rig->core[0]);
    for (int round = 0; round < 20; round++) quantize(rig, true, round);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_max8, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_max8_nan, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_find_index8, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_match_replace8, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_match_replace8_duplicates, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_bn, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_quantize_mx, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_quantize_mx_v03, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
