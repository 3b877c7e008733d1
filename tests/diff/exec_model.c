/* See exec_model.h. */
#include "exec_model.h"

#include <math.h>

/* ---------------------------------------------------------------- tensors */
static struct model_tensor *find(struct model *model, uint32_t id)
{
    for (int k = 0; k < model->tensors; k++)
        if (model->tensor[k].id == id) return &model->tensor[k];
    return NULL;
}

static struct model_tensor *mention(struct model *model, uint32_t id)
{
    struct model_tensor *tensor = find(model, id);

    if (tensor) return tensor;
    assert_true(model->tensors < MODEL_TENSORS);
    tensor = &model->tensor[model->tensors++];
    tensor->id = id;
    tensor->before = rig_image(model->rig, 0, id);
    tensor->bytes = (size_t)rig_elems(model->rig, id) * vtrn_dtypes[model->rig->prog->tensor[id].dtype].size_bytes;
    tensor->after = malloc(tensor->bytes);
    memcpy(tensor->after, tensor->before, tensor->bytes);
    return tensor;
}

void model_begin(struct model *model, struct rig *rig, enum vtrn_opcode op, int engine)
{
    memset(model, 0, sizeof *model);
    model->rig = rig;
    vtrn_inst_init(&model->inst, op);
    model->inst.engine = (uint8_t)engine;
}

static void drop(struct model *model)
{
    for (int k = 0; k < model->tensors; k++) {
        free(model->tensor[k].before);
        free(model->tensor[k].after);
        vtrn_mem_release(model->rig->mem, 0, model->tensor[k].id);
    }
    model->tensors = 0;
}

static void describe(const struct model *model, char *text, size_t size)
{
    struct vtrn_buf out = { 0 };

    vtrn_inst_print(&model->inst, NULL, &out);
    snprintf(text, size, "%.*s", (int)out.size, out.data ? (const char *)out.data : "");
    vtrn_buf_fini(&out);
}

void model_end(struct model *model)
{
    char text[1024];

    describe(model, text, sizeof text);
    rig_append(model->rig, 0, &model->inst);
    rig_run_ok(model->rig, 0);
    for (int k = 0; k < model->tensors; k++) {
        struct model_tensor *tensor = &model->tensor[k];
        uint8_t *now = rig_image(model->rig, 0, tensor->id);
        size_t size = vtrn_dtypes[model->rig->prog->tensor[tensor->id].dtype].size_bytes;

        for (size_t b = 0; b < tensor->bytes; b++)
            if (now[b] != tensor->after[b]) {
                uint32_t got = 0, want = 0, had = 0;
                size_t at = b / size * size;

                memcpy(&got, now + at, size);
                memcpy(&want, tensor->after + at, size);
                memcpy(&had, tensor->before + at, size);
                fail_msg("%s\n  tensor %%%u row %zu element %zu: 0x%x, should be 0x%x, was 0x%x", text, tensor->id,
                         b / (size_t)model->rig->prog->tensor[tensor->id].row_bytes,
                         b % (size_t)model->rig->prog->tensor[tensor->id].row_bytes / size, got, want, had);
            }
        free(now);
    }
    drop(model);
}

void model_end_fault(struct model *model, enum vtrn_fault_reason reason, const char *words)
{
    rig_append(model->rig, 0, &model->inst);
    rig_run_fault(model->rig, 0, reason, words);
    drop(model);
}

/* ---------------------------------------------------------------- operands */
struct vtrn_ap model_source(struct model *model, int space, uint8_t dtype, int64_t parts, int64_t elems)
{
    struct vtrn_ap ap = rig_random_ap(model->rig, 0, space, dtype, parts, elems);
    const struct vtrn_tensor *t = &model->rig->prog->tensor[ap.tensor];

    /* Room on both sides, so that a destination in the same tensor can be shifted. */
    ap.tensor = rig_tensor2(model->rig, 0, space, dtype, t->dim[0], t->dim[1] + 12);
    ap.offset += 5;
    free(rig_fill(model->rig, 0, ap.tensor));
    mention(model, ap.tensor);
    return ap;
}

struct vtrn_ap model_broadcast(struct model *model, int space, uint8_t dtype, int64_t parts, int64_t elems)
{
    struct vtrn_ap ap = model_source(model, space, dtype, parts, elems);

    for (int d = 1; d < ap.ndim; d++)
        if (rig_below(4) == 0) ap.dim[d].stride = rig_below(2) ? 0 : ap.dim[d].stride / 2; /* stays inside the tensor */
    return ap;
}

/* A view of the bytes that `src` walks, moved by some elements or of another dtype; false: it does not fit. */
static bool share(struct model *model, const struct vtrn_ap *src, uint8_t dtype, int64_t parts, int64_t elems, struct vtrn_ap *out)
{
    const struct vtrn_tensor *t = &model->rig->prog->tensor[src->tensor];
    int64_t row = t->row_bytes / vtrn_dtypes[dtype].size_bytes, low, high;

    *out = *src;
    out->dtype = dtype;
    if (rig_below(2) && dtype != src->dtype) { /* packed, from the start of the row */
        if (elems > row) return false;
        out->ndim = 2;
        out->offset = rig_below(row - elems + 1);
        out->dim[1].count = elems;
        out->dim[1].stride = 1;
    }
    if (rig_below(3)) out->offset += rig_below(9) - 4;
    if (rig_below(3) == 0) out->part0 = (uint16_t)rig_below(t->partitions - parts + 1);
    return vtrn_ap_extent(out, true, &low, &high) && low >= 0 && high < row && out->part0 + parts <= t->partitions;
}

/* No element is walked twice. */
static bool walks_once(struct model *model, const struct vtrn_ap *ap, int64_t elems)
{
    uint8_t *seen = calloc(1, (size_t)model->rig->prog->tensor[ap->tensor].row_bytes);
    bool once = true;

    for (int64_t i = 0; i < elems && once; i++) {
        int64_t at = ap->offset, rest = i, size = vtrn_dtypes[ap->dtype].size_bytes;

        for (int d = ap->ndim - 1; d > 0; d--) {
            at += rest % ap->dim[d].count * ap->dim[d].stride;
            rest /= ap->dim[d].count;
        }
        once = !seen[at * size];
        seen[at * size] = 1;
    }
    free(seen);
    return once;
}

struct vtrn_ap model_target(struct model *model, int space, uint8_t dtype, int64_t parts, int64_t elems, const struct vtrn_ap *src)
{
    struct vtrn_ap ap;

    if (src && src->ndyn == 0 && rig_below(2) && walks_once(model, src, elems)) {
        if (rig_below(2) && dtype == src->dtype) return *src; /* in place */
        if (share(model, src, dtype, parts, elems, &ap)) return ap;
    }
    ap = rig_random_ap(model->rig, 0, space, dtype, parts, elems);
    free(rig_fill(model->rig, 0, ap.tensor));
    mention(model, ap.tensor);
    return ap;
}

static size_t offset_of(struct model *model, const struct vtrn_ap *ap, int64_t p, int64_t i)
{
    const struct vtrn_tensor *t = &model->rig->prog->tensor[ap->tensor];
    size_t size = vtrn_dtypes[ap->dtype].size_bytes;
    int64_t at = ap->offset;

    for (int d = ap->ndim - 1; d > 0; d--) {
        at += i % ap->dim[d].count * ap->dim[d].stride;
        i /= ap->dim[d].count;
    }
    return (size_t)(ap->part0 + p) * (size_t)t->row_bytes + (size_t)at * size;
}

const uint8_t *model_read(struct model *model, const struct vtrn_ap *ap, int64_t p, int64_t i)
{
    return mention(model, ap->tensor)->before + offset_of(model, ap, p, i);
}

uint8_t *model_write(struct model *model, const struct vtrn_ap *ap, int64_t p, int64_t i)
{
    return mention(model, ap->tensor)->after + offset_of(model, ap, p, i);
}

float model_get(struct model *model, const struct vtrn_ap *ap, int64_t p, int64_t i)
{
    return vtrn_to_f32((enum vtrn_dtype)ap->dtype, model_read(model, ap, p, i));
}

void model_put(struct model *model, const struct vtrn_ap *ap, int64_t p, int64_t i, float value)
{
    vtrn_from_f32((enum vtrn_dtype)ap->dtype, value, model_write(model, ap, p, i));
}

void model_scalar(struct model *model, struct vtrn_value *value, int64_t parts, bool whole)
{
    static const uint8_t dtypes[] = { VTRN_DT_F32, VTRN_DT_F32, VTRN_DT_BF16, VTRN_DT_F16 };

    if (rig_below(2)) {
        rig_set_ap(value, model_source(model, model_space(1), MODEL_PICK(dtypes), parts, 1));
    } else {
        rig_set_num(value, whole ? (double)(rig_below(41) - 20) : (double)(rig_below(2001) - 1000) / 64);
        value->is_int = whole;
    }
}

float model_scalar_get(struct model *model, const struct vtrn_value *value, int64_t p)
{
    if (value->kind == VTRN_V_AP) return model_get(model, &value->ap, p, 0);
    return value->kind == VTRN_V_NUM ? (float)value->num : 0.0f;
}

/* ---------------------------------------------------------------- operators */
float model_quiet(float x) { return x != x ? NAN : x; }

static float alu(enum vtrn_alu op, float a, float b)
{
    switch (op) {
    case VTRN_ALU_ADD: return a + b;
    case VTRN_ALU_SUBTRACT: return a - b;
    case VTRN_ALU_MULTIPLY: return a * b;
    case VTRN_ALU_MAXIMUM: return isnan(a) || isnan(b) ? NAN : a > b ? a : b;
    case VTRN_ALU_MINIMUM: return isnan(a) || isnan(b) ? NAN : a < b ? a : b;
    case VTRN_ALU_EQUAL: return a == b ? 1 : 0;
    case VTRN_ALU_NOT_EQUAL: return a != b ? 1 : 0;
    case VTRN_ALU_GREATER_EQUAL: return a >= b ? 1 : 0;
    case VTRN_ALU_GREATER: return a > b ? 1 : 0;
    case VTRN_ALU_LESS_EQUAL: return a <= b ? 1 : 0;
    case VTRN_ALU_LESS: return a < b ? 1 : 0;
    case VTRN_ALU_LOGICAL_AND: return a != 0 && b != 0 ? 1 : 0;
    case VTRN_ALU_LOGICAL_OR: return a != 0 || b != 0 ? 1 : 0;
    case VTRN_ALU_LOGICAL_XOR: return (a != 0) != (b != 0) ? 1 : 0;
    case VTRN_ALU_ABS_MAX: return isnan(a) ? a : fabsf(a) > fabsf(b) ? a : b;
    case VTRN_ALU_ABS_MIN: return isnan(a) ? a : fabsf(a) < fabsf(b) ? a : b;
    case VTRN_ALU_ABS: return fabsf(a);
    case VTRN_ALU_SQUARE: return a * a;
    case VTRN_ALU_RELU: return a > 0 ? a : 0;
    case VTRN_ALU_RECIPROCAL: return 1 / a;
    case VTRN_ALU_BYPASS: return a;
    default: fail_msg("the model has no operator %d", op); return 0;
    }
}

float model_alu(enum vtrn_alu op, float a, float b)
{
    float y = alu(op, a, b);

    return op == VTRN_ALU_BYPASS ? y : model_quiet(y);
}

float model_alu_swapped(enum vtrn_alu op, bool reverse, float a, float b)
{
    bool swap = reverse && vtrn_alus[op].arity == 2;

    return swap ? model_alu(op, b, a) : model_alu(op, a, b);
}

/* ---------------------------------------------------------------- choices */
uint8_t model_pick(const uint8_t *list, int count) { return list[rig_below(count)]; }

void model_shape(int64_t *parts, int64_t *elems, int64_t most)
{
    static const int64_t columns[] = { 1, 2, 8, 15, 16, 31, 33, 64, 100, 127, 128, 129, 257, 512, 600, 2048, 2100, 5000 };
    static const int64_t rows[] = { 1, 2, 31, 32, 33, 64, 100, 128, 128 };

    do *elems = columns[rig_below((int64_t)(sizeof columns / sizeof columns[0]))];
    while (*elems > most);
    *parts = rows[rig_below((int64_t)(sizeof rows / sizeof rows[0]))];
    if (*elems > 1000 && rig_below(3)) *parts = 1 + rig_below(5);
}

int model_space(int64_t elems) { return elems <= 600 && rig_below(4) == 0 ? VTRN_PSUM : VTRN_SBUF; }
