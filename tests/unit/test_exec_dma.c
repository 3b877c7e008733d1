/* exec/dma.c and dma_compute.c: whole instructions against a model that moves one element after the other. */
#include "exec_rig.h"

static const uint8_t dtypes[] = { VTRN_DT_F32,    VTRN_DT_BF16, VTRN_DT_U8,  VTRN_DT_I32,
                                  VTRN_DT_F8E4M3, VTRN_DT_I16,  VTRN_DT_F16, VTRN_DT_U32 };
enum { DTYPES = sizeof dtypes };

static size_t size_of(uint8_t dtype) { return vtrn_dtypes[dtype].size_bytes; }

/* Model of the rule of dma_copy. */
static void convert(uint8_t to, void *dst, uint8_t from, const void *src)
{
    if (to == from) memcpy(dst, src, size_of(to));
    else vtrn_from_f32((enum vtrn_dtype)to, vtrn_to_f32((enum vtrn_dtype)from, src), dst);
}

/* An operand with its bytes: `image` before, and what the model expects after. */
struct side {
    struct vtrn_ap ap;
    uint8_t *image;
    int64_t parts, elems;
};

static int64_t largest_parts(int64_t total, int64_t limit)
{
    int64_t parts = 1;
    for (int64_t p = 1; p <= limit && p <= total; p++)
        if (total % p == 0 && rig_below(3) == 0) parts = p;
    return parts;
}

static struct side make_side(struct rig *rig, int space, uint8_t dtype, int64_t total)
{
    struct side side;
    side.parts = largest_parts(total, space == VTRN_SBUF ? 128 : 512);
    side.elems = total / side.parts;
    side.ap = rig_random_ap(rig, 0, space, dtype, side.parts, side.elems);
    side.image = rig_fill(rig, 0, side.ap.tensor);
    return side;
}

static uint8_t *element(struct rig *rig, const struct side *side, int64_t e)
{
    return side->image + rig_at(rig, &side->ap, e / side->elems, e % side->elems) * (int64_t)size_of(side->ap.dtype);
}

static void expect_image(struct rig *rig, const struct side *side)
{
    uint8_t *after = rig_image(rig, 0, side->ap.tensor);
    size_t bytes = size_of(side->ap.dtype);
    for (int64_t i = 0; i < rig_elems(rig, side->ap.tensor); i++)
        if (memcmp(after + (size_t)i * bytes, side->image + (size_t)i * bytes, bytes) != 0)
            fail_msg("element %lld of the tensor: %g, expected %g", (long long)i,
                     (double)vtrn_to_f32((enum vtrn_dtype)side->ap.dtype, after + (size_t)i * bytes),
                     (double)vtrn_to_f32((enum vtrn_dtype)side->ap.dtype, side->image + (size_t)i * bytes));
    free(after);
}

static void append_copy(struct rig *rig, struct vtrn_inst *inst, struct vtrn_ap dst, struct vtrn_ap src, int oob)
{
    rig_set_ap(RIG_ARG(inst, dma_copy, dst), dst);
    rig_set_ap(RIG_ARG(inst, dma_copy, src), src);
    rig_set_int(RIG_ARG(inst, dma_copy, oob_mode), oob);
    rig_append(rig, 0, inst);
}

static int any_space(void) { return rig_below(2) ? VTRN_SBUF : VTRN_HBM; }

/* ---- dma_copy ---- */
static void copy_case(int k)
{
    struct rig *rig = rig_create("trn2", 1, 1);
    uint8_t from = dtypes[k % DTYPES], to = k % 3 ? from : dtypes[rig_below(DTYPES)];
    int64_t total = (1 + rig_below(40)) * (1 + rig_below(40)) * (1 + rig_below(12));
    struct side src = make_side(rig, any_space(), from, total), dst = make_side(rig, any_space(), to, total);
    struct vtrn_inst inst;
    vtrn_inst_init(&inst, VTRN_OP_dma_copy);
    if (rig_below(4) == 0) src.ap.dim[0].stride = 0; /* one row for all */
    append_copy(rig, &inst, dst.ap, src.ap, VTRN_OOB_ERROR);
    rig_run_ok(rig, 0);
    for (int64_t e = 0; e < total; e++) convert(to, element(rig, &dst, e), from, element(rig, &src, e));
    expect_image(rig, &dst);
    const struct vtrn_counters *counters = vtrn_core_counters(rig->core[0]);
    bool from_hbm = rig->prog->tensor[src.ap.tensor].space == VTRN_HBM, to_hbm = rig->prog->tensor[dst.ap.tensor].space == VTRN_HBM;
    assert_int_equal(counters->hbm_read_bytes, from_hbm ? (uint64_t)total * size_of(from) : 0);
    assert_int_equal(counters->hbm_write_bytes, to_hbm ? (uint64_t)total * size_of(to) : 0);
    assert_int_equal(counters->dma_instructions, 1);
    free(src.image);
    free(dst.image);
    rig_destroy(rig);
}

static void test_copy(void **state)
{
    (void)state;
    for (int k = 0; k < 300; k++) copy_case(k);
}

/* Partition strides other than 1 on the SBUF side, and eight dims on the HBM side. */
static void test_strides_and_rank(void **state)
{
    (void)state;
    struct rig *rig = rig_create("trn2", 1, 1);
    uint32_t sbuf = rig_tensor2(rig, 0, VTRN_SBUF, VTRN_DT_BF16, 128, 64), hbm = rig_tensor2(rig, 0, VTRN_HBM, VTRN_DT_BF16, 1, 4096);
    struct vtrn_ap dst = rig_slice(rig, sbuf, 1, 32, 0, 8), src = { .tensor = hbm, .dtype = VTRN_DT_BF16, .ndim = 8, .offset = 5 };
    static const int64_t strides[8] = { 1, 2048, 16, 512, 4, 1024, 2, 8 };
    struct vtrn_inst inst;
    uint16_t *image = rig_fill(rig, 0, hbm), *expect = rig_fill(rig, 0, sbuf);
    dst.dim[0].stride = 3;
    for (int d = 0; d < 8; d++) src.dim[d] = (struct vtrn_dim){ strides[d], 2 };
    vtrn_inst_init(&inst, VTRN_OP_dma_copy);
    append_copy(rig, &inst, dst, src, VTRN_OOB_ERROR);
    rig_run_ok(rig, 0);
    for (int64_t e = 0; e < 256; e++) {
        int64_t at = 5;
        for (int d = 0; d < 8; d++) at += (e >> (7 - d) & 1) * strides[d];
        expect[(1 + e / 8 * 3) * 64 + e % 8] = image[at];
    }
    uint16_t *after = rig_image(rig, 0, sbuf);
    assert_memory_equal(expect, after, 128 * 64 * 2);
    free(image);
    free(expect);
    free(after);
    rig_destroy(rig);
}

/* Source and destination in one tensor, overlapping: as if all were read first. */
static void test_overlap(void **state)
{
    (void)state;
    for (int k = 0; k < 60; k++) {
        struct rig *rig = rig_create("trn2", 1, 1);
        int space = k % 2 ? VTRN_SBUF : VTRN_HBM;
        uint32_t tensor = rig_tensor2(rig, 0, space, VTRN_DT_F32, 20, 30);
        int64_t rows = 1 + rig_below(15), cols = 1 + rig_below(25);
        int64_t r[2] = { rig_below(20 - rows + 1), rig_below(20 - rows + 1) },
                c[2] = { rig_below(30 - cols + 1), rig_below(30 - cols + 1) };
        uint32_t *before = rig_fill(rig, 0, tensor), *expect = malloc(600 * sizeof *expect);
        struct vtrn_inst inst;
        vtrn_inst_init(&inst, VTRN_OP_dma_copy);
        append_copy(rig, &inst, rig_slice(rig, tensor, r[0], rows, c[0], cols), rig_slice(rig, tensor, r[1], rows, c[1], cols), 0);
        rig_run_ok(rig, 0);
        memcpy(expect, before, 600 * sizeof *expect);
        for (int64_t i = 0; i < rows; i++)
            for (int64_t j = 0; j < cols; j++) expect[(r[0] + i) * 30 + c[0] + j] = before[(r[1] + i) * 30 + c[1] + j];
        uint32_t *after = rig_image(rig, 0, tensor);
        assert_memory_equal(expect, after, 600 * sizeof *expect);
        free(before);
        free(expect);
        free(after);
        rig_destroy(rig);
    }
}

/* ---- dynamic offsets ---- */
static void scalar_case(int kind, int64_t row, int oob, bool on_dst)
{
    struct rig *rig = rig_create("trn2", 1, 1);
    uint32_t big = rig_tensor2(rig, 0, VTRN_HBM, VTRN_DT_BF16, 10, 16), tile = rig_tensor2(rig, 0, VTRN_SBUF, VTRN_DT_BF16, 3, 16);
    uint32_t index = rig_tensor2(rig, 0, VTRN_SBUF, VTRN_DT_I32, 4, 4);
    uint16_t *far = rig_fill(rig, 0, big), *near = rig_fill(rig, 0, tile);
    int32_t *indices = rig_fill(rig, 0, index);
    struct vtrn_ap at = rig_slice(rig, big, 1, 3, 0, 16); /* rows 1..3, moved on by `row` */
    struct vtrn_inst inst;
    vtrn_inst_init(&inst, VTRN_OP_dma_copy);
    indices[2 * 4 + 1] = (int32_t)row;
    rig_write(rig, 0, index, indices);
    struct vtrn_dyn *dyn = rig_dyn(&inst, &at, kind, kind == VTRN_DYN_REG ? 4 : index, VTRN_DT_I32, 16);
    if (kind == VTRN_DYN_SCALAR) {
        dyn->part0 = 2;
        dyn->offset = 1;
    }
    append_copy(rig, &inst, on_dst ? at : rig_ap(rig, tile), on_dst ? rig_ap(rig, tile) : at, oob);
    vtrn_core_set_register(rig->core[0], 4, (int32_t)row);
    bool inside = row >= -1 && row <= 6;
    if (!inside && oob == VTRN_OOB_ERROR) {
        rig_run_fault(rig, 0, VTRN_FAULT_BOUNDS, "outside");
    } else {
        rig_run_ok(rig, 0);
        uint16_t *expect = on_dst ? far : near, *after = rig_image(rig, 0, on_dst ? big : tile);
        if (inside && on_dst) memcpy(far + (1 + row) * 16, near, 96);
        else if (inside) memcpy(near, far + (1 + row) * 16, 96);
        assert_memory_equal(expect, after, on_dst ? 320 : 96);
        free(after);
    }
    free(far);
    free(near);
    free(indices);
    rig_destroy(rig);
}

static void test_scalar_offset(void **state)
{
    (void)state;
    static const int64_t rows[] = { 0, 3, 6, 7, -1, -2, 100000 };
    for (int k = 0; k < 7; k++)
        for (int bits = 0; bits < 8; bits++)
            scalar_case(bits & 1 ? VTRN_DYN_REG : VTRN_DYN_SCALAR, rows[k], bits & 2 ? VTRN_OOB_SKIP : VTRN_OOB_ERROR, bits & 4);
}

struct indexed { /* rows of an HBM tensor by an index tile in SBUF */
    struct rig *rig;
    uint32_t big, index;
    int64_t rows, count, cols, row_elems, first; /* count rows of cols elements from column `first` */
    int32_t *list;
    uint8_t *far;
    uint8_t dtype;
};

static struct indexed make_indexed(uint8_t dtype, bool bad, bool repeats)
{
    struct indexed x = { .rig = rig_create("trn2", 1, 1), .dtype = dtype };
    x.count = 1 + rig_below(128);
    x.rows = x.count + rig_below(40);
    x.row_elems = 8 + rig_below(200);
    x.first = rig_below(4);
    x.cols = x.row_elems - x.first - rig_below(4);
    x.big = rig_tensor2(x.rig, 0, VTRN_HBM, dtype, x.rows, x.row_elems);
    x.index = rig_tensor2(x.rig, 0, VTRN_SBUF, VTRN_DT_I32, x.count, 3);
    x.far = rig_fill(x.rig, 0, x.big);
    x.list = calloc((size_t)x.count * 3, sizeof *x.list);
    for (int64_t w = 0; w < x.count; w++) x.list[w * 3 + 1] = (int32_t)w;
    for (int64_t w = x.count - 1; w > 0; w--) { /* shuffled: unique */
        int64_t v = rig_below(w + 1);
        int32_t t = x.list[w * 3 + 1];
        x.list[w * 3 + 1] = x.list[v * 3 + 1];
        x.list[v * 3 + 1] = t;
    }
    for (int64_t w = 0; repeats && w < x.count; w++) x.list[w * 3 + 1] = (int32_t)rig_below(x.rows);
    for (int64_t w = 0; bad && w < x.count; w++)
        if (rig_below(5) == 0) x.list[w * 3 + 1] = rig_below(2) ? -1 : (int32_t)(x.rows + rig_below(3));
    rig_write(x.rig, 0, x.index, x.list);
    return x;
}

static struct vtrn_ap indexed_ap(const struct indexed *x, struct vtrn_inst *inst)
{
    struct vtrn_ap ap = rig_slice(x->rig, x->big, 0, x->count, x->first, x->cols);
    struct vtrn_dyn *dyn = rig_dyn(inst, &ap, VTRN_DYN_VECTOR, x->index, VTRN_DT_I32, x->row_elems);
    dyn->offset = 1; /* the middle column of the tile */
    dyn->count = x->count;
    dyn->limit = x->rows;
    return ap;
}

static bool row_inside(const struct indexed *x, int64_t w) { return x->list[w * 3 + 1] >= 0 && x->list[w * 3 + 1] < x->rows; }

static uint8_t *far_element(const struct indexed *x, int64_t w, int64_t i)
{
    return x->far + (x->list[w * 3 + 1] * x->row_elems + x->first + i) * (int64_t)size_of(x->dtype);
}

static void close_indexed(struct indexed *x)
{
    free(x->far);
    free(x->list);
    rig_destroy(x->rig);
}

/* `bad`: some indices are outside, skipped; scatter by repeated indices: the last row stays. */
static void rows_case(int k)
{
    bool scatter = k & 1, bad = k & 2;
    uint8_t far_dtype = dtypes[k / 4 % DTYPES], near_dtype = k % 3 ? far_dtype : dtypes[rig_below(DTYPES)];
    struct indexed x = make_indexed(far_dtype, bad, k & 4);
    struct side near = make_side(x.rig, any_space(), near_dtype, x.count * x.cols);
    struct vtrn_inst inst;
    vtrn_inst_init(&inst, VTRN_OP_dma_copy);
    struct vtrn_ap far = indexed_ap(&x, &inst);
    append_copy(x.rig, &inst, scatter ? far : near.ap, scatter ? near.ap : far, bad ? VTRN_OOB_SKIP : VTRN_OOB_ERROR);
    rig_run_ok(x.rig, 0);
    for (int64_t w = 0; w < x.count; w++)
        for (int64_t i = 0; i < x.cols && row_inside(&x, w); i++) {
            if (scatter) convert(far_dtype, far_element(&x, w, i), near_dtype, element(x.rig, &near, w * x.cols + i));
            else convert(near_dtype, element(x.rig, &near, w * x.cols + i), far_dtype, far_element(&x, w, i));
        }
    expect_image(x.rig, &near);
    uint8_t *after = rig_image(x.rig, 0, x.big);
    assert_memory_equal(x.far, after, (size_t)(x.rows * x.row_elems) * size_of(far_dtype));
    free(after);
    free(near.image);
    close_indexed(&x);
}

static void test_rows_by_index(void **state)
{
    (void)state;
    for (int k = 0; k < 200; k++) rows_case(k);
}

static void test_index_outside(void **state)
{
    (void)state;
    struct indexed x = make_indexed(VTRN_DT_F32, false, false);
    uint32_t tile = rig_tensor2(x.rig, 0, VTRN_SBUF, VTRN_DT_F32, x.count, x.cols);
    struct vtrn_inst inst;
    char words[64];
    x.list[(x.count - 1) * 3 + 1] = (int32_t)x.rows;
    rig_write(x.rig, 0, x.index, x.list);
    vtrn_inst_init(&inst, VTRN_OP_dma_copy);
    struct vtrn_ap far = indexed_ap(&x, &inst);
    append_copy(x.rig, &inst, rig_ap(x.rig, tile), far, VTRN_OOB_ERROR);
    snprintf(words, sizeof words, "index[%lld] = %lld is outside 0..%lld", (long long)x.count - 1, (long long)x.rows,
             (long long)x.rows - 1);
    rig_run_fault(x.rig, 0, VTRN_FAULT_INDEX, words);
    close_indexed(&x);
}

/* Fresh memory reads as poison wherever a transfer did not write: NaN in floats. */
static void test_poison_stays(void **state)
{
    (void)state;
    struct indexed x = make_indexed(VTRN_DT_F32, true, false);
    uint32_t tile = rig_tensor2(x.rig, 0, VTRN_SBUF, VTRN_DT_F32, x.count, x.cols);
    struct vtrn_inst inst;
    vtrn_inst_init(&inst, VTRN_OP_dma_copy);
    struct vtrn_ap far = indexed_ap(&x, &inst);
    append_copy(x.rig, &inst, rig_ap(x.rig, tile), far, VTRN_OOB_SKIP);
    rig_run_ok(x.rig, 0);
    float *after = rig_image(x.rig, 0, tile);
    for (int64_t w = 0; w < x.count; w++)
        for (int64_t i = 0; i < x.cols; i++) {
            float value = after[w * x.cols + i];
            if (row_inside(&x, w)) assert_memory_equal(&value, far_element(&x, w, i), 4);
            else assert_true(value != value);
        }
    free(after);
    close_indexed(&x);
}

/* ---- dma_transpose ---- */
static const int axes_of[3][4] = { { 1, 0 }, { 2, 1, 0 }, { 3, 1, 2, 0 } };

static void transpose_case(int ndim, uint8_t dtype, int space, bool explicit_axes)
{
    struct rig *rig = rig_create("trn2", 1, 1);
    const int *axes = axes_of[ndim - 2];
    int64_t dim[4], out[4];
    size_t bytes = size_of(dtype);
    for (int d = 0; d < ndim; d++) dim[d] = 1 + rig_below(d == 0 ? (ndim == 2 ? 300 : 20) : d == ndim - 1 ? 128 : 6);
    if (space == VTRN_SBUF && dim[0] > 128) dim[0] = 128;
    for (int d = 0; d < ndim; d++) out[d] = dim[axes[d]];
    uint32_t src = rig_tensor(rig, 0, space, dtype, ndim, dim), dst = rig_tensor(rig, 0, VTRN_SBUF, dtype, ndim, out);
    uint8_t *image = rig_fill(rig, 0, src), *expect = rig_fill(rig, 0, dst);
    struct vtrn_inst inst;
    int64_t ints[4] = { axes[0], axes[1], axes[2], axes[3] };
    vtrn_inst_init(&inst, VTRN_OP_dma_transpose);
    rig_set_ap(RIG_ARG(&inst, dma_transpose, dst), rig_ap(rig, dst));
    rig_set_ap(RIG_ARG(&inst, dma_transpose, src), rig_ap(rig, src));
    if (explicit_axes) rig_set_ints(&inst, RIG_ARG(&inst, dma_transpose, axes), ndim, ints);
    rig_append(rig, 0, &inst);
    rig_run_ok(rig, 0);
    int64_t elems = rig_elems(rig, src), index[4];
    for (int64_t e = 0; e < elems; e++) {
        int64_t rest = e, to = 0;
        for (int d = ndim - 1; d >= 0; d--) {
            index[d] = rest % dim[d];
            rest /= dim[d];
        }
        for (int d = 0; d < ndim; d++) to = to * out[d] + index[axes[d]];
        memcpy(expect + (size_t)to * bytes, image + (size_t)e * bytes, bytes);
    }
    uint8_t *after = rig_image(rig, 0, dst);
    assert_memory_equal(expect, after, (size_t)elems * bytes);
    free(image);
    free(expect);
    free(after);
    rig_destroy(rig);
}

static void test_transpose(void **state)
{
    (void)state;
    for (int k = 0; k < 120; k++) transpose_case(2 + k % 3, dtypes[k / 3 % DTYPES], k % 2 ? VTRN_SBUF : VTRN_HBM, k % 5);
}

/* Rows by an index tile of one or several columns, some outside. */
static void transpose_rows_case(int64_t rows, int64_t index_rows, bool bad)
{
    struct rig *rig = rig_create("trn2", 1, 1);
    int64_t index_cols = (rows + index_rows - 1) / index_rows, table = 500, inner = 16 + rig_below(100);
    uint32_t src = rig_tensor2(rig, 0, VTRN_HBM, VTRN_DT_BF16, table, inner),
             dst = rig_tensor2(rig, 0, VTRN_SBUF, VTRN_DT_BF16, inner, rows);
    uint32_t index = rig_tensor2(rig, 0, VTRN_SBUF, VTRN_DT_U32, index_rows, index_cols);
    uint16_t *image = rig_fill(rig, 0, src), *expect = rig_fill(rig, 0, dst);
    uint32_t *list = rig_fill(rig, 0, index);
    for (int64_t i = 0; i < index_rows * index_cols; i++)
        list[i] = bad && rig_below(4) == 0 ? UINT32_MAX - (uint32_t)rig_below(2) : (uint32_t)rig_below(table);
    rig_write(rig, 0, index, list);
    struct vtrn_inst inst;
    vtrn_inst_init(&inst, VTRN_OP_dma_transpose);
    struct vtrn_ap from = rig_slice(rig, src, 0, rows, 0, inner);
    struct vtrn_dyn *dyn = rig_dyn(&inst, &from, VTRN_DYN_VECTOR, index, VTRN_DT_U32, inner);
    dyn->count = index_rows * index_cols;
    dyn->limit = table;
    rig_set_ap(RIG_ARG(&inst, dma_transpose, dst), rig_ap(rig, dst));
    rig_set_ap(RIG_ARG(&inst, dma_transpose, src), from);
    rig_set_int(RIG_ARG(&inst, dma_transpose, oob_mode), bad ? VTRN_OOB_SKIP : VTRN_OOB_ERROR);
    rig_append(rig, 0, &inst);
    rig_run_ok(rig, 0);
    for (int64_t w = 0; w < rows; w++) {
        uint32_t row = list[w % index_rows * index_cols + w / index_rows];
        for (int64_t i = 0; i < inner && row < table; i++) expect[i * rows + w] = image[row * inner + i];
    }
    uint16_t *after = rig_image(rig, 0, dst);
    assert_memory_equal(expect, after, (size_t)(inner * rows) * 2);
    free(image);
    free(expect);
    free(list);
    free(after);
    rig_destroy(rig);
}

static void test_transpose_rows(void **state)
{
    (void)state;
    for (int bad = 0; bad < 2; bad++) {
        transpose_rows_case(16, 16, bad);
        transpose_rows_case(64, 64, bad);
        transpose_rows_case(128, 128, bad);
        transpose_rows_case(256, 128, bad);
        transpose_rows_case(400, 128, bad);
    }
}

/* ---- dma_compute ---- */
static void append_compute(struct rig *rig, struct vtrn_inst *inst, struct vtrn_ap dst, int count, const struct vtrn_ap *srcs, int oob)
{
    struct vtrn_value *list = RIG_ARG(inst, dma_compute, srcs);
    rig_set_ap(RIG_ARG(inst, dma_compute, dst), dst);
    list->kind = VTRN_V_APS;
    list->count = (uint16_t)count;
    list->aps = vtrn_inst_new_aps(inst, count);
    assert_non_null(list->aps);
    memcpy(list->aps, srcs, (size_t)count * sizeof *srcs);
    rig_set_int(RIG_ARG(inst, dma_compute, reduce_op), VTRN_ALU_ADD);
    rig_set_int(RIG_ARG(inst, dma_compute, oob_mode), oob);
    rig_append(rig, 0, inst);
}

static void sum_case(int k)
{
    struct rig *rig = rig_create("trn2", 1, 1);
    int count = 1 + k % 16;
    int64_t total = (1 + rig_below(30)) * (1 + rig_below(300));
    struct side src[16], dst;
    struct vtrn_ap aps[16];
    bool in_place = k % 4 == 0;
    for (int s = 0; s < count; s++) {
        src[s] = make_side(rig, any_space(), dtypes[rig_below(DTYPES)], total);
        aps[s] = src[s].ap;
    }
    dst = in_place ? src[count - 1] : make_side(rig, any_space(), dtypes[rig_below(DTYPES)], total);
    struct vtrn_inst inst;
    vtrn_inst_init(&inst, VTRN_OP_dma_compute);
    append_compute(rig, &inst, dst.ap, count, aps, VTRN_OOB_ERROR);
    rig_run_ok(rig, 0);
    for (int64_t e = 0; e < total; e++) {
        float sum = 0;
        for (int s = 0; s < count; s++) {
            float term = vtrn_to_f32((enum vtrn_dtype)src[s].ap.dtype, element(rig, &src[s], e));
            sum = s ? vtrn_alu_f32(VTRN_ALU_ADD, sum, term) : term; /* the NaN of inf - inf included */
        }
        vtrn_from_f32((enum vtrn_dtype)dst.ap.dtype, sum, element(rig, &dst, e));
    }
    expect_image(rig, &dst);
    for (int s = 0; s < count; s++) free(src[s].image);
    if (!in_place) free(dst.image);
    rig_destroy(rig);
}

static void test_sums(void **state)
{
    (void)state;
    for (int k = 0; k < 64; k++) sum_case(k);
}

/* dst[index] += tile and tile += src[index]; rows outside left out; a row named twice is added twice. */
static void modify_case(int k)
{
    bool scatter = k & 1, bad = k & 2;
    struct indexed x = make_indexed(k % 3 ? VTRN_DT_F32 : VTRN_DT_BF16, bad, k & 4);
    uint32_t tile = rig_tensor2(x.rig, 0, VTRN_SBUF, x.dtype, x.count, x.cols);
    size_t bytes = size_of(x.dtype);
    uint8_t *near = rig_fill(x.rig, 0, tile);
    struct vtrn_inst inst;
    vtrn_inst_init(&inst, VTRN_OP_dma_compute);
    struct vtrn_ap far = indexed_ap(&x, &inst), here = rig_ap(x.rig, tile), srcs[2] = { far, here };
    append_compute(x.rig, &inst, scatter ? far : here, 2, srcs, bad ? VTRN_OOB_SKIP : VTRN_OOB_ERROR);
    rig_run_ok(x.rig, 0);
    for (int64_t w = 0; w < x.count; w++)
        for (int64_t i = 0; i < x.cols && row_inside(&x, w); i++) {
            uint8_t *mine = near + (size_t)(w * x.cols + i) * bytes, *theirs = far_element(&x, w, i);
            float sum = vtrn_to_f32((enum vtrn_dtype)x.dtype, theirs) + vtrn_to_f32((enum vtrn_dtype)x.dtype, mine);
            vtrn_from_f32((enum vtrn_dtype)x.dtype, sum, scatter ? theirs : mine);
        }
    uint8_t *after_near = rig_image(x.rig, 0, tile), *after_far = rig_image(x.rig, 0, x.big);
    assert_memory_equal(near, after_near, (size_t)(x.count * x.cols) * bytes);
    assert_memory_equal(x.far, after_far, (size_t)(x.rows * x.row_elems) * bytes);
    free(near);
    free(after_near);
    free(after_far);
    close_indexed(&x);
}

static void test_read_modify_write(void **state)
{
    (void)state;
    for (int k = 0; k < 48; k++) modify_case(k);
}

/* A sum into rows that a source also covers, shifted: every source is read before. */
static void test_sum_overlap(void **state)
{
    (void)state;
    struct rig *rig = rig_create("trn2", 1, 1);
    uint32_t tensor = rig_tensor2(rig, 0, VTRN_HBM, VTRN_DT_F32, 100, 64);
    float *before = rig_fill(rig, 0, tensor);
    struct vtrn_ap srcs[2] = { rig_slice(rig, tensor, 0, 90, 0, 64), rig_slice(rig, tensor, 10, 90, 0, 64) };
    struct vtrn_inst inst;
    vtrn_inst_init(&inst, VTRN_OP_dma_compute);
    append_compute(rig, &inst, rig_slice(rig, tensor, 5, 90, 0, 64), 2, srcs, VTRN_OOB_ERROR);
    rig_run_ok(rig, 0);
    float *after = rig_image(rig, 0, tensor);
    for (int64_t i = 0; i < 90 * 64; i++) assert_true(after[5 * 64 + i] == before[i] + before[10 * 64 + i]);
    assert_memory_equal(before, after, 5 * 64 * 4);
    free(before);
    free(after);
    rig_destroy(rig);
}

/* What front ends see of any pattern, in any memory. */
static void test_peek(void **state)
{
    (void)state;
    static const int spaces[] = { VTRN_SBUF, VTRN_PSUM, VTRN_HBM, VTRN_HBM_SHARED };
    for (int k = 0; k < 60; k++) {
        struct rig *rig = rig_create("trn2", 1, 1);
        uint8_t dtype = dtypes[k % DTYPES];
        size_t bytes = size_of(dtype);
        int64_t parts = 1 + rig_below(128), elems = 1 + rig_below(200);
        int space = spaces[k % 4];
        struct vtrn_ap ap = rig_random_ap(rig, space == VTRN_HBM_SHARED ? VTRN_CORES_MAX : 0, space, dtype, parts, elems);
        uint8_t *image = rig_fill(rig, 0, ap.tensor), *got = malloc((size_t)(parts * elems) * bytes);
        struct vtrn_error err = { 0 };
        assert_int_equal(vtrn_core_peek(rig->core[0], &ap, got, (size_t)(parts * elems) * bytes, &err), VTRN_OK);
        for (int64_t p = 0; p < parts; p++)
            for (int64_t i = 0; i < elems; i++)
                assert_memory_equal(got + (size_t)(p * elems + i) * bytes, image + (size_t)rig_at(rig, &ap, p, i) * bytes, bytes);
        assert_int_equal(vtrn_core_peek(rig->core[0], &ap, got, (size_t)(parts * elems) * bytes - 1, &err), VTRN_INVALID);
        free(image);
        free(got);
        rig_destroy(rig);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_peek),           cmocka_unit_test(test_copy),          cmocka_unit_test(test_strides_and_rank),
        cmocka_unit_test(test_overlap),        cmocka_unit_test(test_scalar_offset), cmocka_unit_test(test_rows_by_index),
        cmocka_unit_test(test_index_outside),  cmocka_unit_test(test_poison_stays),  cmocka_unit_test(test_transpose),
        cmocka_unit_test(test_transpose_rows), cmocka_unit_test(test_sums),          cmocka_unit_test(test_read_modify_write),
        cmocka_unit_test(test_sum_overlap),
    };
    return cmocka_run_group_tests_name("exec_dma", tests, NULL, NULL);
}
