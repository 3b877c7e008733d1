/* From an access pattern to host addresses: the tensor's store, the dynamic parts of the pattern, and its bounds.
 *
 * What is static was checked when the instruction was appended (prog/legal.c); here only dynamic offsets can leave the
 * tensor, and that is a fault of the emulated machine, or a skip where DMA asked for one. Free dimensions that follow
 * each other in memory are merged, so that bodies see the longest runs. */
#include "exec/exec_int.h"

/* ---- values of registers and index tensors ---- */

void exec_set_reg(struct vtrn_core *core, uint32_t reg, int32_t value) { vtrn_core_set_register(core, reg, value); }

int64_t exec_reg_value(const struct vtrn_core *core, const struct vtrn_value *value)
{
    return value->kind == VTRN_V_REG ? vtrn_core_register(core, (uint32_t)value->i) : value->i;
}

int64_t *exec_index_space(struct vtrn_core *core, int64_t count)
{
    /* Reserved in one piece per instruction, so that earlier pointers of it stay valid. */
    enum { ROOM = 4 << 20 };
    size_t bytes;
    struct vtrn_buf *space = &core->index_space;
    if (count < 0 || !vtrn_mul_size((size_t)count, sizeof(int64_t), &bytes)) return NULL;
    if (space->size == 0) {
        size_t room = bytes + ROOM;
        if (space->capacity < room && vtrn_buf_reserve(space, room) < 0) return NULL;
    }
    if (space->capacity - space->size < bytes) return NULL;
    int64_t *at = (int64_t *)(void *)(space->data + space->size);
    space->size += bytes;
    return at;
}

static int64_t load_integer(enum vtrn_dtype dtype, const uint8_t *at)
{
    switch (dtype) {
    case VTRN_DT_I8: return (int8_t)*at;
    case VTRN_DT_U8:
    case VTRN_DT_BOOL: return *at;
    case VTRN_DT_I16: { int16_t v; memcpy(&v, at, 2); return v; }
    case VTRN_DT_U16: { uint16_t v; memcpy(&v, at, 2); return v; }
    case VTRN_DT_I32: { int32_t v; memcpy(&v, at, 4); return v; }
    default: { uint32_t v; memcpy(&v, at, 4); return v; }
    }
}

/* Address of the first index of a SCALAR or VECTOR part, and the bytes from one index to the next. */
static const uint8_t *index_base(struct vtrn_core *core, const struct vtrn_dyn *dyn, ptrdiff_t *step_out)
{
    struct vtrn_store *store = vtrn_mem_store(core->mem, core->prog, core->id, dyn->ref, NULL);
    if (!store) return NULL;
    vtrn_store_settle(store);
    ptrdiff_t size = vtrn_dtypes[dyn->dtype].size_bytes;
    *step_out = store->partitions ? (ptrdiff_t)store->pitch : (ptrdiff_t)dyn->stride * size;
    return store->base + dyn->part0 * store->pitch + dyn->offset * size;
}

/* ---- bounds ---- */

struct span {
    int64_t low, high; /* lowest and highest element offset of the static part, inside a partition on chip */
};

static struct span static_span(const struct vtrn_ap *ap, bool on_chip, bool skip_first)
{
    struct span span = {ap->offset, ap->offset};
    for (int d = on_chip || skip_first ? 1 : 0; d < ap->ndim; d++) {
        int64_t reach = (ap->dim[d].count - 1) * ap->dim[d].stride;
        if (reach > 0) span.high += reach;
        else span.low += reach;
    }
    return span;
}

/* Elements of the operand's dtype that the tensor holds (in a partition on chip). */
static int64_t tensor_elems(const struct vtrn_core *core, const struct vtrn_ap *ap)
{
    return core->prog->tensor[ap->tensor].row_bytes / vtrn_dtypes[ap->dtype].size_bytes;
}

static const char *tensor_name(const struct vtrn_core *core, uint32_t tensor)
{
    uint32_t name = core->prog->tensor[tensor].name;
    return name ? vtrn_prog_text(core->prog, name) : "(unnamed)";
}

/* ---- dynamic parts ---- */

/* offset += value * scale; false with *status_out set: fault, or OK for a skip. */
static bool add_scalar(struct vtrn_core *core, const struct vtrn_ap *ap, const struct vtrn_dyn *dyn, int access,
                       int64_t *offset, struct exec_view *view, enum vtrn_status *status_out)
{
    int64_t value, moved;
    if (dyn->kind == VTRN_DYN_REG) {
        value = vtrn_core_register(core, dyn->ref);
    } else {
        ptrdiff_t step;
        const uint8_t *at = index_base(core, dyn, &step);
        if (!at) {
            *status_out = exec_fault(core, VTRN_FAULT_VALUE, "no host memory for an index tensor");
            return false;
        }
        value = load_integer(dyn->dtype, at);
    }
    bool outside = dyn->limit && (value < 0 || value >= dyn->limit);
    if (outside || !vtrn_mul_i64(value, dyn->scale, &moved) || !vtrn_add_i64(*offset, moved, offset)) {
        *status_out = VTRN_OK;
        if (access & EXEC_OOB_SKIP) view->skip = true;
        else
            *status_out = exec_fault(core, VTRN_FAULT_BOUNDS, "dynamic offset %lld of tensor %s is outside 0..%lld",
                                     (long long)value, tensor_name(core, ap->tensor), (long long)dyn->limit - 1);
        return false;
    }
    return true;
}

static enum vtrn_status add_vector(struct vtrn_core *core, const struct vtrn_ap *ap, const struct vtrn_dyn *dyn, int access,
                                   struct span span, struct exec_view *view)
{
    ptrdiff_t step;
    int64_t *rows = exec_index_space(core, view->parts), elems = tensor_elems(core, ap);
    const uint8_t *first = index_base(core, dyn, &step), *at;
    if (!rows || !first) return exec_fault(core, VTRN_FAULT_VALUE, "no host memory for %lld indices", (long long)view->parts);
    /* An index tile on chip runs down its partitions, then to the next column. */
    int64_t column = vtrn_space_on_chip(core->prog->tensor[dyn->ref].space) ? core->prog->arch->partitions : INT64_MAX;
    ptrdiff_t column_step = (ptrdiff_t)dyn->stride * vtrn_dtypes[dyn->dtype].size_bytes;
    for (int64_t w = 0; w < view->parts; w++) {
        at = first + w % column * step + w / column * column_step;
        int64_t index = load_integer(dyn->dtype, at), moved = 0;
        bool inside = index >= 0 && (!dyn->limit || index < dyn->limit) && vtrn_mul_i64(index, dyn->scale, &moved) &&
                      moved <= elems && span.low + moved >= 0 && span.high + moved < elems;
        if (inside) rows[w] = moved * view->elem_bytes;
        else if (access & EXEC_OOB_SKIP) rows[w] = -1;
        else
            return exec_fault(core, VTRN_FAULT_INDEX,
                              "index[%lld] = %lld is outside 0..%lld of tensor %s (oob_mode.error); clamp the index or use "
                              "oob_mode.skip", (long long)w, (long long)index,
                              (long long)(dyn->limit ? dyn->limit : elems) - 1, tensor_name(core, ap->tensor));
    }
    view->row_offset = rows;
    return VTRN_OK;
}

static enum vtrn_status check_moved(struct vtrn_core *core, const struct vtrn_ap *ap, int access, struct span span,
                                    int64_t moved, struct exec_view *view)
{
    int64_t elems = tensor_elems(core, ap);
    int64_t low, high;
    if (vtrn_add_i64(span.low, moved, &low) && vtrn_add_i64(span.high, moved, &high) && low >= 0 && high < elems)
        return VTRN_OK;
    if (access & EXEC_OOB_SKIP) {
        view->skip = true;
        return VTRN_OK;
    }
    return exec_fault(core, VTRN_FAULT_BOUNDS,
                      "a dynamic offset of %lld elements moves the access to tensor %s outside its %lld elements",
                      (long long)moved, tensor_name(core, ap->tensor), (long long)elems);
}

static enum vtrn_status resolve_dynamic(struct vtrn_core *core, const struct vtrn_ap *ap, int access,
                                        struct exec_view *view)
{
    const struct vtrn_dyn *vector = NULL, *indirect = NULL;
    bool on_chip = view->store->partitions != 0;
    int64_t moved = 0;
    for (int i = 0; i < ap->ndyn; i++) {
        const struct vtrn_dyn *dyn = &ap->dyn[i];
        enum vtrn_status status;
        if (dyn->kind == VTRN_DYN_VECTOR) vector = dyn;
        else if (dyn->kind == VTRN_DYN_INDIRECT) indirect = dyn;
        else if (!add_scalar(core, ap, dyn, access, &moved, view, &status)) return status;
    }
    struct span span = static_span(ap, on_chip, vector != NULL);
    if (!vector && !indirect) VTRN_TRY(check_moved(core, ap, access, span, moved, view));
    if (view->skip) return VTRN_OK;
    view->base += moved * view->elem_bytes;
    if (vector) {
        span.low += moved;
        span.high += moved;
        VTRN_TRY(add_vector(core, ap, vector, access, span, view));
    }
    return indirect ? exec_resolve_indirect(core, ap, indirect, view) : VTRN_OK;
}

/* ---- the view ---- */

static void merge_dims(const struct vtrn_ap *ap, struct exec_view *view)
{
    int ndim = 0;
    ptrdiff_t size = view->elem_bytes;
    view->elems = 1;
    for (int d = ap->ndim - 1; d >= 1; d--) { /* innermost first; put in order below */
        int64_t count = ap->dim[d].count;
        ptrdiff_t stride = (ptrdiff_t)ap->dim[d].stride * size;
        view->elems *= count;
        if (count == 1) continue;
        if (ndim && view->dim[ndim - 1].stride * (ptrdiff_t)view->dim[ndim - 1].count == stride) {
            view->dim[ndim - 1].count *= count;
        } else {
            view->dim[ndim].stride = stride;
            view->dim[ndim++].count = count;
        }
    }
    for (int i = 0; i < ndim / 2; i++) {
        ptrdiff_t stride = view->dim[i].stride;
        int64_t count = view->dim[i].count;
        view->dim[i] = view->dim[ndim - 1 - i];
        view->dim[ndim - 1 - i].stride = stride;
        view->dim[ndim - 1 - i].count = count;
    }
    view->ndim = ndim;
    view->contiguous = ndim == 0 || (ndim == 1 && view->dim[0].stride == size);
}

/* A write that covers the whole tensor needs no poison before it. */
static bool covers(const struct vtrn_ap *ap, const struct exec_view *view)
{
    const struct vtrn_store *store = view->store;
    if (ap->ndyn || !view->contiguous || (size_t)(view->elems * view->elem_bytes) != store->row_bytes) return false;
    return store->partitions ? view->parts == store->partitions && ap->dim[0].stride == 1 : view->parts == 1;
}

enum vtrn_status exec_resolve(struct vtrn_core *core, const struct vtrn_ap *ap, int access, struct exec_view *view)
{
    struct vtrn_store *store = vtrn_mem_store(core->mem, core->prog, core->id, ap->tensor, NULL);
    if (VTRN_UNLIKELY(!store))
        return exec_fault(core, VTRN_FAULT_VALUE, "no host memory for tensor %s", tensor_name(core, ap->tensor));
    view->store = store;
    view->dtype = ap->dtype;
    view->elem_bytes = vtrn_dtypes[ap->dtype].size_bytes;
    view->parts = ap->dim[0].count;
    view->pitch = (ptrdiff_t)ap->dim[0].stride * (store->partitions ? (ptrdiff_t)store->pitch : view->elem_bytes);
    view->base = store->base + ap->part0 * store->pitch + (ptrdiff_t)ap->offset * view->elem_bytes;
    view->row_offset = NULL;
    view->elem_offset = NULL;
    view->skip = false;
    merge_dims(ap, view);
    if (VTRN_UNLIKELY(store->fresh)) {
        if ((access & ~EXEC_OOB_SKIP) == VTRN_WRITE && covers(ap, view)) store->fresh = false;
        else vtrn_store_settle(store);
    }
    return VTRN_UNLIKELY(ap->ndyn) ? resolve_dynamic(core, ap, access, view) : VTRN_OK;
}

/* ---- (P,1) operands ---- */

enum vtrn_status exec_scalar(struct vtrn_core *core, const struct vtrn_value *value, int64_t parts, float *out)
{
    if (value->kind == VTRN_V_AP) {
        struct exec_view view;
        VTRN_TRY(exec_resolve(core, &value->ap, VTRN_READ, &view));
        const float *values = exec_load_f32(core, &view, 0, parts, 0, 1, out);
        if (values != out) memcpy(out, values, (size_t)parts * sizeof *out);
        return VTRN_OK;
    }
    float number = value->kind == VTRN_V_NUM ? (float)value->num : 0.0f;
    for (int64_t p = 0; p < parts; p++) out[p] = number;
    return VTRN_OK;
}
