/* The rig behind the tests of exec bodies: see exec_rig.h. */
#include "exec_rig.h"

static uint64_t random_state = UINT64_C(0x2545f4914f6cdd1d);

void rig_seed(uint64_t seed) { random_state = (seed + 1) * UINT64_C(0x9e3779b97f4a7c15); }

uint64_t rig_random(void)
{
    random_state ^= random_state >> 12;
    random_state ^= random_state << 25;
    random_state ^= random_state >> 27;
    return random_state * UINT64_C(0x2545f4914f6cdd1d);
}

int64_t rig_below(int64_t n) { return (int64_t)((rig_random() >> 16) % (uint64_t)n); }

void rig_random_bytes(void *out, size_t size_bytes)
{
    for (size_t i = 0; i < size_bytes; i++) ((uint8_t *)out)[i] = (uint8_t)(rig_random() >> 32);
}

void rig_random_elems(uint8_t dtype, void *out, int64_t n)
{
    size_t bytes = vtrn_dtypes[dtype].size_bytes;
    for (int64_t i = 0; i < n; i++) {
        float value = 0;
        switch (rig_below(5)) {
        case 0: value = (float)(rig_below(9) - 4); break;
        case 1: value = (float)(rig_below(2001) - 1000) / 8; break;
        case 2: value = (float)(rig_below(2000001) - 1000000) / 1024; break;
        case 3: value = 0; break;
        default: value = (float)(rig_below(255) + 1); break;
        }
        vtrn_from_f32((enum vtrn_dtype)dtype, value, (uint8_t *)out + (size_t)i * bytes);
    }
}

/* ---- life ---- */
static void keep_print(void *self, int core, const char *text)
{
    struct rig *rig = self;
    size_t had = rig->printed ? strlen(rig->printed) : 0;
    (void)core;
    rig->printed = realloc(rig->printed, had + strlen(text) + 1);
    strcpy(rig->printed + had, text);
    rig->prints++;
}

static bool poll_interrupt(void *self)
{
    struct rig *rig = self;
    return rig->interrupt_after > 0 && --rig->interrupt_after == 0;
}

struct rig *rig_create(const char *target, int cores, uint64_t seed)
{
    struct rig *rig = calloc(1, sizeof *rig);
    struct vtrn_exec_options options;
    struct vtrn_error err;
    rig->cores = cores;
    rig->pool = vtrn_pool_create(2);
    rig->prog = vtrn_prog_create(vtrn_arch_find(target), cores, &err);
    assert_non_null(rig->prog);
    rig->mem = vtrn_mem_create(rig->prog->arch, cores, &err);
    assert_non_null(rig->mem);
    vtrn_exec_options_init(&options);
    options.pool = rig->pool;
    options.seed = seed;
    options.print = keep_print;
    options.print_self = rig;
    options.interrupt = poll_interrupt;
    options.interrupt_self = rig;
    for (int k = 0; k < cores; k++) {
        rig->core[k] = vtrn_core_create(rig->prog, rig->mem, k, &options, &err);
        assert_non_null(rig->core[k]);
    }
    return rig;
}

void rig_destroy(struct rig *rig)
{
    for (int k = 0; k < rig->cores; k++) vtrn_core_destroy(rig->core[k]);
    vtrn_mem_destroy(rig->mem);
    vtrn_prog_destroy(rig->prog);
    vtrn_pool_destroy(rig->pool);
    free(rig->printed);
    free(rig);
}

/* ---- tensors ---- */
uint32_t rig_tensor(struct rig *rig, int core, int space, int dtype, int rank, const int64_t *dim)
{
    struct vtrn_tensor proto = { .space = (uint8_t)space, .dtype = (uint8_t)dtype, .rank = (uint8_t)rank, .core = (uint8_t)core };
    struct vtrn_error err = { 0 };
    uint32_t tensor;
    for (int d = 0; d < rank; d++) proto.dim[d] = dim[d];
    if (vtrn_prog_tensor(rig->prog, &proto, &tensor, &err) != VTRN_OK) fail_msg("tensor: %s", err.text);
    return tensor;
}

uint32_t rig_tensor2(struct rig *rig, int core, int space, int dtype, int64_t rows, int64_t cols)
{
    int64_t dim[2] = { rows, cols };
    return rig_tensor(rig, core, space, dtype, 2, dim);
}

int64_t rig_elems(const struct rig *rig, uint32_t tensor)
{
    const struct vtrn_tensor *t = &rig->prog->tensor[tensor];
    int64_t elems = 1;
    for (int d = 0; d < t->rank; d++) elems *= t->dim[d];
    return elems;
}

static struct vtrn_store *find_store(struct rig *rig, int core, uint32_t tensor)
{
    struct vtrn_error err = { 0 };
    struct vtrn_store *store = vtrn_mem_store(rig->mem, rig->prog, core, tensor, &err);
    if (!store) fail_msg("store: %s", err.text);
    vtrn_store_settle(store);
    return store;
}

void rig_write(struct rig *rig, int core, uint32_t tensor, const void *packed)
{
    struct vtrn_store *store = find_store(rig, core, tensor);
    int rows = store->partitions ? store->partitions : 1;
    for (int p = 0; p < rows; p++)
        memcpy(store->base + (size_t)p * store->pitch, (const uint8_t *)packed + (size_t)p * store->row_bytes, store->row_bytes);
}

void rig_read(struct rig *rig, int core, uint32_t tensor, void *packed)
{
    struct vtrn_store *store = find_store(rig, core, tensor);
    int rows = store->partitions ? store->partitions : 1;
    for (int p = 0; p < rows; p++)
        memcpy((uint8_t *)packed + (size_t)p * store->row_bytes, store->base + (size_t)p * store->pitch, store->row_bytes);
}

/* ---- operands ---- */
struct vtrn_ap rig_ap(const struct rig *rig, uint32_t tensor)
{
    const struct vtrn_tensor *t = &rig->prog->tensor[tensor];
    struct vtrn_ap ap = { .tensor = tensor, .dtype = t->dtype, .ndim = t->rank };
    int64_t stride = 1;
    for (int d = t->rank - 1; d >= 0; d--) {
        ap.dim[d].count = t->dim[d];
        ap.dim[d].stride = stride;
        stride *= t->dim[d];
    }
    if (vtrn_space_on_chip(t->space)) ap.dim[0].stride = 1;
    return ap;
}

struct vtrn_ap rig_slice(const struct rig *rig, uint32_t tensor, int64_t row, int64_t rows, int64_t col, int64_t cols)
{
    const struct vtrn_tensor *t = &rig->prog->tensor[tensor];
    struct vtrn_ap ap = rig_ap(rig, tensor);
    assert_int_equal(t->rank, 2);
    ap.dim[0].count = rows;
    ap.dim[1].count = cols;
    ap.offset = col;
    if (vtrn_space_on_chip(t->space)) ap.part0 = (uint16_t)row;
    else ap.offset += row * t->dim[1];
    return ap;
}

struct vtrn_ap rig_random_ap(struct rig *rig, int core, int space, uint8_t dtype, int64_t parts, int64_t elems)
{
    bool on_chip = vtrn_space_on_chip(space);
    struct vtrn_ap ap = { .dtype = dtype, .ndim = 2 };
    int order[VTRN_AP_DIMS], dims;
    int64_t span = 1;
    ap.dim[0].count = parts;
    ap.dim[1].count = elems;
    while (ap.ndim < 5 && rig_below(2)) { /* split the last dim */
        int64_t n = ap.dim[ap.ndim - 1].count, factor = 2 + rig_below(4);
        if (n % factor != 0) break;
        ap.dim[ap.ndim - 1].count = n / factor;
        ap.dim[ap.ndim++].count = factor;
    }
    dims = ap.ndim;
    for (int d = 0; d < dims; d++) { /* order[]: by rising stride; mostly the last dim first */
        int at = rig_below(3) == 0 ? (int)rig_below(d + 1) : 0;
        memmove(order + at + 1, order + at, (size_t)(d - at) * sizeof *order);
        order[at] = d;
    }
    for (int k = 0; k < dims; k++) {
        struct vtrn_dim *dim = &ap.dim[order[k]];
        if (on_chip && order[k] == 0) {
            dim->stride = 1;
            continue;
        }
        dim->stride = span + (rig_below(4) == 0 ? rig_below(3) : 0);
        span += dim->stride * (dim->count - 1);
    }
    ap.offset = rig_below(4);
    if (on_chip && parts < 128) ap.part0 = (uint16_t)(rig_below(2) ? 0 : rig_below(128 - parts));
    ap.tensor = on_chip ? rig_tensor2(rig, core, space, dtype, ap.part0 + parts, ap.offset + span + rig_below(3))
                        : rig_tensor2(rig, core, space, dtype, 1, ap.offset + span + rig_below(3));
    return ap;
}

int64_t rig_at(const struct rig *rig, const struct vtrn_ap *ap, int64_t p, int64_t i)
{
    const struct vtrn_tensor *t = &rig->prog->tensor[ap->tensor];
    int64_t at = ap->offset, row = t->row_bytes / vtrn_dtypes[ap->dtype].size_bytes;
    for (int d = ap->ndim - 1; d > 0; d--) {
        at += i % ap->dim[d].count * ap->dim[d].stride;
        i /= ap->dim[d].count;
    }
    return at + (vtrn_space_on_chip(t->space) ? (ap->part0 + p * ap->dim[0].stride) * row : p * ap->dim[0].stride);
}

void *rig_image(struct rig *rig, int core, uint32_t tensor)
{
    void *image = malloc((size_t)rig_elems(rig, tensor) * vtrn_dtypes[rig->prog->tensor[tensor].dtype].size_bytes);
    rig_read(rig, core, tensor, image);
    return image;
}

void *rig_fill(struct rig *rig, int core, uint32_t tensor)
{
    uint8_t dtype = rig->prog->tensor[tensor].dtype;
    int64_t elems = rig_elems(rig, tensor);
    void *image = malloc((size_t)elems * vtrn_dtypes[dtype].size_bytes);
    if (vtrn_dtypes[dtype].cls == VTRN_CLASS_PACKED) rig_random_bytes(image, (size_t)elems * vtrn_dtypes[dtype].size_bytes);
    else rig_random_elems(dtype, image, elems);
    rig_write(rig, core, tensor, image);
    return image;
}

struct vtrn_dyn *rig_dyn(struct vtrn_inst *inst, struct vtrn_ap *ap, int kind, uint32_t ref, uint8_t dtype, int64_t scale)
{
    struct vtrn_dyn *dyn = vtrn_inst_new_dyns(inst, 1);
    assert_non_null(dyn);
    *dyn = (struct vtrn_dyn){ .kind = (uint8_t)kind, .ref = ref, .dtype = dtype, .scale = scale, .stride = 1, .count = 1 };
    ap->dyn = dyn;
    ap->ndyn = 1;
    return dyn;
}

void rig_set_ap(struct vtrn_value *value, struct vtrn_ap ap)
{
    value->kind = VTRN_V_AP;
    value->ap = ap;
}

void rig_set_int(struct vtrn_value *value, int64_t i)
{
    value->kind = VTRN_V_INT;
    value->i = i;
}

void rig_set_num(struct vtrn_value *value, double num)
{
    value->kind = VTRN_V_NUM;
    value->num = num;
}

void rig_set_reg(struct vtrn_value *value, uint32_t reg)
{
    value->kind = VTRN_V_REG;
    value->i = reg;
}

void rig_set_ints(struct vtrn_inst *inst, struct vtrn_value *value, int count, const int64_t *ints)
{
    value->kind = VTRN_V_INTS;
    value->count = (uint16_t)count;
    value->ints = vtrn_inst_new_ints(inst, count);
    assert_non_null(value->ints);
    memcpy(value->ints, ints, (size_t)count * sizeof *ints);
}

/* ---- running ---- */
void rig_append(struct rig *rig, int core, struct vtrn_inst *inst)
{
    struct vtrn_error err = { 0 };
    if (vtrn_prog_append(rig->prog, core, inst, NULL, &err) != VTRN_OK) fail_msg("%s: %s", vtrn_ops[inst->op].name, err.text);
}

enum vtrn_status rig_run(struct rig *rig, int core) { return vtrn_core_run(rig->core[core], UINT32_MAX, false); }

void rig_run_ok(struct rig *rig, int core)
{
    enum vtrn_status status = rig_run(rig, core);
    if (status == VTRN_FAULT) fail_msg("fault: %s", vtrn_core_fault(rig->core[core])->text);
    assert_int_equal(status, VTRN_OK);
}

void rig_run_fault(struct rig *rig, int core, enum vtrn_fault_reason reason, const char *words)
{
    assert_int_equal(rig_run(rig, core), VTRN_FAULT);
    const struct vtrn_fault *fault = vtrn_core_fault(rig->core[core]);
    assert_int_equal(fault->reason, reason);
    if (!strstr(fault->text, words)) fail_msg("fault text \"%s\" does not say \"%s\"", fault->text, words);
}
