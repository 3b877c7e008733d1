/* Random programs of DMA instructions against a model of memory that is a plain list of bytes.
 *
 * Tensors of SBUF overlap at random addresses, others are automatic, others in HBM; operands view them with dtypes of other
 * sizes; sources and destinations overlap. The model knows nothing of walks or plans: it lists the address of every
 * element, reads all, then writes one after the other. Whole memories are compared after every program.
 *
 * usage: test_dma_programs [first seed [programs]] */
#include "exec_rig.h"

enum { TENSORS = 14, INSTRUCTIONS = 60, ELEMS_MAX = 6000, SBUF_BYTES = 4096, TENSOR_BYTES = 8192 };

struct model_tensor {
    uint32_t id;
    bool on_chip, placed;
    int64_t parts, row_bytes; /* HBM: one part */
    int addr_partition;
    int64_t addr_byte;
    uint8_t *bytes; /* not placed: parts * row_bytes */
};

struct model {
    struct rig *rig;
    struct model_tensor tensor[TENSORS];
    uint8_t sbuf[128][SBUF_BYTES]; /* what tensors with an address share */
};

static const uint8_t view_dtypes[] = { VTRN_DT_U8, VTRN_DT_F16, VTRN_DT_I16, VTRN_DT_F32, VTRN_DT_U32, VTRN_DT_I8, VTRN_DT_BF16 };

static uint8_t *model_at(struct model *model, const struct model_tensor *tensor, int64_t part, int64_t byte)
{
    if (tensor->placed) return &model->sbuf[tensor->addr_partition + part][tensor->addr_byte + byte];
    return tensor->bytes + part * tensor->row_bytes + byte;
}

/* Small integers and halves in every dtype of the view sizes: conversions of rubbish bits are kern's tests. */
static void fill_model(struct model *model, struct model_tensor *tensor)
{
    for (int64_t p = 0; p < tensor->parts; p++)
        for (int64_t b = 0; b < tensor->row_bytes; b++) *model_at(model, tensor, p, b) = (uint8_t)rig_random();
}

static void write_tensor(struct model *model, const struct model_tensor *tensor)
{
    uint8_t *image = malloc((size_t)(tensor->parts * tensor->row_bytes));
    for (int64_t p = 0; p < tensor->parts; p++)
        memcpy(image + p * tensor->row_bytes, model_at(model, tensor, p, 0), (size_t)tensor->row_bytes);
    rig_write(model->rig, 0, tensor->id, image);
    free(image);
}

static void add_tensor(struct model *model, int k)
{
    struct model_tensor *tensor = &model->tensor[k];
    struct vtrn_tensor proto = { .dtype = view_dtypes[rig_below(7)], .rank = 2 };
    struct vtrn_error err = { 0 };
    int64_t size = vtrn_dtypes[proto.dtype].size_bytes;
    *tensor = (struct model_tensor){ .on_chip = k % 3 != 0, .placed = k % 3 == 1 };
    proto.space = tensor->on_chip ? VTRN_SBUF : VTRN_HBM;
    tensor->parts = tensor->on_chip ? 1 + rig_below(rig_below(2) ? 128 : 8) : 1;
    tensor->row_bytes = (1 + rig_below((tensor->on_chip ? 1024 : TENSOR_BYTES) / 4)) * 4;
    proto.dim[0] = tensor->parts;
    proto.dim[1] = tensor->row_bytes / size;
    if (tensor->placed) {
        tensor->addr_partition = (int)rig_below(128 - tensor->parts + 1);
        tensor->addr_byte = rig_below((SBUF_BYTES - tensor->row_bytes) / 4 + 1) / 2 * 4;
        proto.has_address = 1;
        proto.addr_partition = (uint16_t)tensor->addr_partition;
        proto.addr_byte = (uint32_t)tensor->addr_byte;
    } else {
        tensor->bytes = malloc((size_t)(tensor->parts * tensor->row_bytes));
    }
    if (vtrn_prog_tensor(model->rig->prog, &proto, &tensor->id, &err) != VTRN_OK) fail_msg("tensor: %s", err.text);
    fill_model(model, tensor);
    write_tensor(model, tensor);
}

/* ---- operands ---- */
struct operand {
    struct vtrn_ap ap;
    const struct model_tensor *tensor;
    int64_t elems;
    uint8_t *at[ELEMS_MAX]; /* model address of each element, in order */
};

/* Cuts `elems` into dims, the first at most `most`. */
static int random_dims(int64_t elems, int64_t most, int64_t *count)
{
    int ndim = 1;
    count[0] = 1;
    for (int64_t f = 2; elems > 1 && ndim < 6;) {
        if (elems % f != 0) {
            f++;
            continue;
        }
        elems /= f;
        if (rig_below(3) && count[ndim - 1] * f <= (ndim == 1 ? most : ELEMS_MAX)) count[ndim - 1] *= f;
        else count[ndim++] = f;
    }
    if (ndim == 1) count[ndim++] = 1;
    count[ndim - 1] *= elems;
    return ndim;
}

/* A random pattern of `elems` elements of `dtype` inside the tensor; false: it found none. Sources may repeat elements,
 * destinations may too when `repeats`. */
static bool random_operand(struct model *model, struct operand *operand, const struct model_tensor *tensor, uint8_t dtype,
                           int64_t elems, bool repeats)
{
    struct vtrn_ap *ap = &operand->ap;
    int64_t size = vtrn_dtypes[dtype].size_bytes, room = tensor->row_bytes / size, span = 0, count[8], low = 0;
    int ndim = random_dims(elems, tensor->on_chip ? tensor->parts : ELEMS_MAX, count), order[8];
    memset(ap, 0, sizeof *ap);
    if (elems > ELEMS_MAX || (tensor->on_chip && count[0] > tensor->parts)) return false;
    ap->tensor = tensor->id;
    ap->dtype = dtype;
    ap->ndim = (uint8_t)ndim;
    for (int d = 0; d < ndim; d++) {
        int at = rig_below(3) ? 0 : (int)rig_below(d + 1);
        memmove(order + at + 1, order + at, (size_t)(d - at) * sizeof *order);
        order[at] = d;
    }
    for (int k = 0; k < ndim; k++) {
        struct vtrn_dim *dim = &ap->dim[order[k]];
        dim->count = count[order[k]];
        if (tensor->on_chip && order[k] == 0) {
            dim->stride = dim->count > 1 && rig_below(4) == 0 ? rig_below((tensor->parts - 1) / (dim->count - 1) + 1) : 1;
            if (dim->stride == 0 && !repeats) dim->stride = 1;
            continue;
        }
        dim->stride = span + 1 + (rig_below(5) == 0 ? rig_below(3) : 0);
        if (repeats && rig_below(6) == 0) dim->stride = rig_below(3);
        span += dim->stride * (dim->count - 1);
        if (span >= room) return false;
        if (rig_below(8) == 0) {
            low -= dim->stride * (dim->count - 1);
            dim->stride = -dim->stride;
        }
    }
    ap->offset = rig_below(room - span) - low;
    if (tensor->on_chip) ap->part0 = (uint16_t)rig_below(tensor->parts - (ap->dim[0].count - 1) * ap->dim[0].stride);
    operand->tensor = tensor;
    operand->elems = elems;
    for (int64_t e = 0; e < elems; e++) {
        int64_t rest = e, offset = ap->offset, part = ap->part0;
        for (int d = ndim - 1; d >= 0; d--) {
            int64_t step = rest % count[d] * ap->dim[d].stride;
            if (tensor->on_chip && d == 0) part += step;
            else offset += step;
            rest /= count[d];
        }
        operand->at[e] = model_at(model, tensor, part, offset * size);
    }
    return true;
}

static void model_copy(const struct operand *dst, const struct operand *src)
{
    static uint8_t value[ELEMS_MAX][4];
    size_t src_size = vtrn_dtypes[src->ap.dtype].size_bytes, dst_size = vtrn_dtypes[dst->ap.dtype].size_bytes;
    for (int64_t e = 0; e < src->elems; e++) {
        if (src->ap.dtype == dst->ap.dtype) memcpy(value[e], src->at[e], src_size);
        else vtrn_from_f32((enum vtrn_dtype)dst->ap.dtype, vtrn_to_f32((enum vtrn_dtype)src->ap.dtype, src->at[e]), value[e]);
    }
    for (int64_t e = 0; e < dst->elems; e++) memcpy(dst->at[e], value[e], dst_size);
}

/* Through fp32 the model needs values whose integers are exact: 8 and 16-bit integers and floats. */
static uint8_t converting_dtype(uint8_t dtype)
{
    static const uint8_t small[] = { VTRN_DT_U8, VTRN_DT_I16, VTRN_DT_F32, VTRN_DT_BF16, VTRN_DT_F16 };
    return dtype == VTRN_DT_U32 ? dtype : small[rig_below(5)];
}

static void random_copy(struct model *model)
{
    static struct operand dst, src;
    struct vtrn_inst inst;
    uint8_t from = view_dtypes[rig_below(7)], to = rig_below(4) ? from : converting_dtype(from);
    int64_t elems = 1 + rig_below(rig_below(2) ? 40 : 2000);
    if (rig_below(2)) elems = (elems + 7) / 8 * 8;
    if (!random_operand(model, &src, &model->tensor[rig_below(TENSORS)], from, elems, true)) return;
    if (!random_operand(model, &dst, &model->tensor[rig_below(TENSORS)], to, elems, rig_below(4) == 0)) return;
    vtrn_inst_init(&inst, VTRN_OP_dma_copy);
    rig_set_ap(RIG_ARG(&inst, dma_copy, dst), dst.ap);
    rig_set_ap(RIG_ARG(&inst, dma_copy, src), src.ap);
    rig_append(model->rig, 0, &inst);
    model_copy(&dst, &src);
}

static void compare(struct model *model, uint64_t seed)
{
    for (int k = 0; k < TENSORS; k++) {
        const struct model_tensor *tensor = &model->tensor[k];
        uint8_t *image = malloc((size_t)(tensor->parts * tensor->row_bytes));
        rig_read(model->rig, 0, tensor->id, image);
        for (int64_t p = 0; p < tensor->parts; p++)
            for (int64_t b = 0; b < tensor->row_bytes; b++)
                if (image[p * tensor->row_bytes + b] != *model_at(model, tensor, p, b))
                    fail_msg("seed %llu: tensor %d, partition %lld, byte %lld", (unsigned long long)seed, k, (long long)p,
                             (long long)b);
        free(image);
    }
}

static void run_program(uint64_t seed)
{
    static struct model model;
    rig_seed(seed);
    model.rig = rig_create("trn2", 1, 1);
    for (int k = 0; k < TENSORS; k++) add_tensor(&model, k);
    for (int i = 0; i < INSTRUCTIONS; i++) random_copy(&model);
    rig_run_ok(model.rig, 0);
    compare(&model, seed);
    for (int k = 0; k < TENSORS; k++) {
        free(model.tensor[k].bytes);
        model.tensor[k].bytes = NULL;
    }
    rig_destroy(model.rig);
}

static uint64_t first_seed = 1, programs = 150;

static void test_programs(void **state)
{
    (void)state;
    for (uint64_t seed = first_seed; seed < first_seed + programs; seed++) run_program(seed);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_programs) };
    if (argc > 1) first_seed = strtoull(argv[1], NULL, 10);
    if (argc > 2) programs = strtoull(argv[2], NULL, 10);
    return cmocka_run_group_tests_name("dma_programs", tests, NULL, NULL);
}
