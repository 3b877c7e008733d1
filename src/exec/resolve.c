/* From an access pattern to host addresses: the tensor's store, the dynamic parts of the pattern, and its bounds.
 *
 * What is static was checked when the instruction was appended (prog/legal*.c); here only dynamic offsets can leave the
 * tensor, and that is a fault of the emulated machine, or a skip where DMA asked for one. Free dimensions that follow
 * each other in memory are merged, so that bodies see the longest runs. Poison that is due is written before the access.
 * Runs for every operand of every instruction: the common case (no dynamic part, nothing fresh) is short. */
#include "exec/walk_int.h"

/* ---------------------------------------------------------------- registers */
void exec_set_reg(struct vtrn_core *core, uint32_t reg, int32_t value) { vtrn_core_set_register(core, reg, value); }

int64_t exec_reg_value(const struct vtrn_core *core, const struct vtrn_value *value)
{
    return value->kind == VTRN_V_REG ? vtrn_core_register(core, (uint32_t)value->i) : value->i;
}

/* Grown only between instructions (exec.c, clean_up): pointers that were handed out stay valid. */
int64_t *exec_index_space(struct vtrn_core *core, int64_t count)
{
    struct vtrn_buf *space = &core->index_space;
    size_t bytes;

    if (count < 0 || !vtrn_mul_size((size_t)count, sizeof(int64_t), &bytes)) return NULL;
    if (space->size == 0 && !core->index_more.head) {
        core->index_wanted = 0;
        if (space->capacity < bytes && vtrn_buf_reserve(space, bytes) < 0) return NULL;
    }
    if (!vtrn_add_size(core->index_wanted, bytes, &core->index_wanted)) return NULL;
    if (space->capacity - space->size < bytes) return vtrn_arena_alloc(&core->index_more, bytes);
    int64_t *at = (int64_t *)(void *)(space->data + space->size);
    space->size += bytes;
    return at;
}

/* ---------------------------------------------------------------- messages */
/* The operand that the pattern belongs to: "operand src". */
static const char *operand_of(const struct vtrn_core *core, const struct vtrn_ap *ap)
{
    const struct vtrn_op_info *op = &vtrn_ops[core->inst.op];

    for (int i = 0; i < op->operands; i++) {
        const struct vtrn_value *value = &core->inst.arg[i];

        if (value->kind == VTRN_V_AP && &value->ap == ap) return op->operand[i].name;
        if (value->kind == VTRN_V_APS && ap >= value->aps && ap < value->aps + value->count) return op->operand[i].name;
    }
    return "tensor";
}

static const char *tensor_name(const struct vtrn_core *core, uint32_t tensor)
{
    const char *name = vtrn_prog_text(core->prog, core->prog->tensor[tensor].name);

    return name[0] ? name : "(unnamed)";
}

/* Elements of the operand's dtype that the tensor holds (in a partition on chip). */
static int64_t tensor_elems(const struct exec_view *view) { return (int64_t)view->store->row_bytes / view->elem_bytes; }

/* ---------------------------------------------------------------- dynamic parts */
struct span {
    int64_t low, high; /* lowest and highest element offset of the static part, inside a partition on chip */
};

static struct span static_span(const struct vtrn_ap *ap, bool skip_first)
{
    struct span span = { ap->offset, ap->offset };

    for (int d = skip_first ? 1 : 0; d < ap->ndim; d++) {
        int64_t reach = (ap->dim[d].count - 1) * ap->dim[d].stride;

        if (reach > 0) span.high += reach;
        else span.low += reach;
    }
    return span;
}

/* Where the index tensor holds an index; legal.c checked that it is inside. */
struct indices {
    const uint8_t *first;
    ptrdiff_t step, column_step;
    int64_t column; /* indices from one column of an index tile to the next */
    uint8_t dtype;
};

static enum vtrn_status open_indices(struct vtrn_core *core, const struct vtrn_dyn *dyn, struct indices *out)
{
    struct vtrn_store *store = vtrn_mem_store(core->mem, core->prog, core->id, dyn->ref, &core->err);
    ptrdiff_t size = vtrn_dtypes[dyn->dtype].size_bytes;
    bool on_chip;

    if (!store) return core->err.status;
    vtrn_store_settle(store);
    on_chip = store->partitions != 0;
    out->dtype = dyn->dtype;
    out->first = store->base + dyn->part0 * store->pitch + dyn->offset * size;
    out->step = on_chip ? (ptrdiff_t)store->pitch : (ptrdiff_t)dyn->stride * size;
    out->column = on_chip ? EXEC_LANES : INT64_MAX;
    out->column_step = (ptrdiff_t)dyn->stride * size;
    return VTRN_OK;
}

static int64_t index_at(const struct indices *indices, int64_t w)
{
    return exec_int_load(indices->dtype,
                         indices->first + w % indices->column * indices->step + w / indices->column * indices->column_step);
}

/* offset += value * scale, for a register or a scalar. */
static enum vtrn_status add_scalar(struct vtrn_core *core, const struct vtrn_ap *ap, const struct vtrn_dyn *dyn, int access,
                                   int64_t *offset, struct exec_view *view)
{
    int64_t value, moved;

    if (dyn->kind == VTRN_DYN_REG) {
        value = vtrn_core_register(core, dyn->ref);
    } else {
        struct indices indices = { 0 };

        VTRN_TRY(open_indices(core, dyn, &indices));
        value = index_at(&indices, 0);
    }
    bool outside = dyn->limit > 0 && (value < 0 || value >= dyn->limit);
    if (!outside && vtrn_mul_i64(value, dyn->scale, &moved) && vtrn_add_i64(*offset, moved, offset)) return VTRN_OK;
    if (access & EXEC_OOB_SKIP) {
        view->skip = true;
        return VTRN_OK;
    }
    return exec_fault(core, VTRN_FAULT_BOUNDS, "operand %s: dynamic offset %lld is outside 0..%lld of tensor %s; clamp it",
                      operand_of(core, ap), (long long)value, (long long)(dyn->limit > 0 ? dyn->limit : tensor_elems(view)) - 1,
                      tensor_name(core, ap->tensor));
}

/* Row w starts where its index says. */
static enum vtrn_status add_vector(struct vtrn_core *core, const struct vtrn_ap *ap, const struct vtrn_dyn *dyn, int access,
                                   struct span span, struct exec_view *view)
{
    int64_t *rows = exec_index_space(core, view->parts), elems = tensor_elems(view);
    struct indices indices = { 0 };

    VTRN_FAIL_IF(!rows, &core->err, VTRN_NOMEM, "no memory for %lld row offsets", (long long)view->parts);
    VTRN_TRY(open_indices(core, dyn, &indices));
    for (int64_t w = 0; w < view->parts; w++) {
        int64_t index = index_at(&indices, w), moved = 0, low, high;
        bool inside = index >= 0 && (dyn->limit <= 0 || index < dyn->limit) && vtrn_mul_i64(index, dyn->scale, &moved) &&
                      vtrn_add_i64(span.low, moved, &low) && vtrn_add_i64(span.high, moved, &high) && low >= 0 && high < elems;

        if (inside) {
            rows[w] = moved * view->elem_bytes;
        } else if (access & EXEC_OOB_SKIP) {
            rows[w] = -1;
        } else {
            return exec_fault(core, VTRN_FAULT_INDEX,
                              "operand %s: index[%lld] = %lld is outside 0..%lld of tensor %s (oob_mode.error); clamp it or use "
                              "oob_mode.skip",
                              operand_of(core, ap), (long long)w, (long long)index,
                              (long long)(dyn->limit > 0   ? dyn->limit - 1
                                          : dyn->scale > 0 ? (elems - 1 - span.high) / dyn->scale
                                                           : 0),
                              tensor_name(core, ap->tensor));
        }
    }
    view->row_offset = rows;
    return VTRN_OK;
}

/* The start of the access, after its scalar parts moved it. */
static enum vtrn_status check_moved(struct vtrn_core *core, const struct vtrn_ap *ap, int access, struct span span, int64_t moved,
                                    struct exec_view *view)
{
    int64_t elems = tensor_elems(view), low, high;

    if (vtrn_add_i64(span.low, moved, &low) && vtrn_add_i64(span.high, moved, &high) && low >= 0 && high < elems) return VTRN_OK;
    if (access & EXEC_OOB_SKIP) {
        view->skip = true;
        return VTRN_OK;
    }
    return exec_fault(core, VTRN_FAULT_BOUNDS,
                      "operand %s: a dynamic offset of %lld elements moves the access outside the %lld elements of tensor %s; "
                      "clamp it",
                      operand_of(core, ap), (long long)moved, (long long)elems, tensor_name(core, ap->tensor));
}

VTRN_RARE static enum vtrn_status resolve_dynamic(struct vtrn_core *core, const struct vtrn_ap *ap, int access, struct exec_view *view)
{
    const struct vtrn_dyn *vector = NULL, *indirect = NULL;
    bool on_chip = view->store->partitions != 0;
    int64_t moved = 0, start;
    struct span span;

    for (int i = 0; i < ap->ndyn && !view->skip; i++) {
        const struct vtrn_dyn *dyn = &ap->dyn[i];

        if (dyn->kind == VTRN_DYN_VECTOR) vector = dyn;
        else if (dyn->kind == VTRN_DYN_INDIRECT) indirect = dyn;
        else VTRN_TRY(add_scalar(core, ap, dyn, access, &moved, view));
    }
    if (view->skip) return VTRN_OK;
    if (indirect) { /* the index tile gives the elements: only the start is known */
        span = (struct span){ ap->offset, ap->offset };
        VTRN_TRY(check_moved(core, ap, access, span, moved, view));
    } else {
        span = static_span(ap, on_chip || vector);
        if (!vector) VTRN_TRY(check_moved(core, ap, access, span, moved, view));
    }
    if (view->skip) return VTRN_OK;
    if (!vtrn_add_i64(ap->offset, moved, &start)) start = 0; /* not with any row inside: add_vector refuses them all */
    view->base = view->store->base + ap->part0 * view->store->pitch + start * view->elem_bytes;
    if (vector) {
        if (!vtrn_add_i64(span.low, moved, &span.low) || !vtrn_add_i64(span.high, moved, &span.high))
            span = (struct span){ -1, -1 };
        VTRN_TRY(add_vector(core, ap, vector, access, span, view));
    }
    return indirect ? exec_resolve_indirect(core, ap, indirect, view) : VTRN_OK;
}

/* ---------------------------------------------------------------- poison */
/* The view walks every element of [low, high) of a row, in some order: nested strides without gaps. */
static bool walks_all(const struct exec_view *view)
{
    ptrdiff_t extent = view->elem_bytes;
    bool taken[EXEC_FREE_DIMS] = { false };

    for (int k = 0; k < view->ndim; k++) {
        int next = -1;

        for (int d = 0; d < view->ndim; d++)
            if (!taken[d] && view->dim[d].stride == extent) next = d;
        if (next < 0) return false;
        taken[next] = true;
        extent *= (ptrdiff_t)view->dim[next].count;
    }
    return true;
}

/* Before the first accesses to a tensor: poison what this one reads, or does not write whole. */
VTRN_RARE static void touch(const struct vtrn_ap *ap, const struct exec_view *view, int access)
{
    struct vtrn_store *store = view->store;
    bool on_chip = store->partitions != 0, whole_rows;
    struct span span;

    if (ap->ndyn) {
        vtrn_store_settle(store);
        return;
    }
    span = static_span(ap, on_chip);
    whole_rows = on_chip ? view->parts == store->partitions && ap->dim[0].stride == 1
                         : view->parts == 1 || view->pitch == (ptrdiff_t)view->elems * view->elem_bytes;
    vtrn_store_touch(store, (size_t)span.low * view->elem_bytes, (size_t)(span.high + 1) * view->elem_bytes,
                     (access & ~EXEC_OOB_SKIP) == VTRN_WRITE && whole_rows && walks_all(view));
}

/* ---------------------------------------------------------------- the view */
VTRN_RARE static void merge_dims(const struct vtrn_ap *ap, struct exec_view *view)
{
    ptrdiff_t size = view->elem_bytes;
    int64_t elems = 1;
    int ndim = 0;

    for (int d = 1; d < ap->ndim; d++) {
        int64_t count = ap->dim[d].count;
        ptrdiff_t stride = (ptrdiff_t)ap->dim[d].stride * size;

        elems *= count;
        if (count == 1) continue;
        if (ndim && view->dim[ndim - 1].stride == stride * (ptrdiff_t)count) {
            view->dim[ndim - 1].stride = stride;
            view->dim[ndim - 1].count *= count;
        } else {
            view->dim[ndim].stride = stride;
            view->dim[ndim++].count = count;
        }
    }
    view->elems = elems;
    view->ndim = ndim;
    view->contiguous = ndim == 0 || (ndim == 1 && view->dim[0].stride == size);
}

enum vtrn_status exec_resolve(struct vtrn_core *core, const struct vtrn_ap *ap, int access, struct exec_view *view)
{
    struct vtrn_store *store = vtrn_mem_store(core->mem, core->prog, core->id, ap->tensor, &core->err);

    if (VTRN_UNLIKELY(!store)) return core->err.status;
    view->store = store;
    view->dtype = ap->dtype;
    view->elem_bytes = vtrn_dtypes[ap->dtype].size_bytes;
    view->parts = ap->dim[0].count;
    view->pitch = (ptrdiff_t)ap->dim[0].stride * (store->partitions ? (ptrdiff_t)store->pitch : view->elem_bytes);
    view->row_offset = NULL;
    view->elem_offset = NULL;
    view->skip = false;
    if (VTRN_LIKELY(ap->ndim == 2)) { /* nothing to merge */
        view->elems = ap->dim[1].count;
        view->ndim = view->elems > 1;
        view->dim[0].count = view->elems;
        view->dim[0].stride = (ptrdiff_t)ap->dim[1].stride * view->elem_bytes;
        view->contiguous = view->elems == 1 || ap->dim[1].stride == 1;
    } else {
        merge_dims(ap, view);
    }
    if (VTRN_UNLIKELY(store->fresh)) touch(ap, view, access);
    if (VTRN_UNLIKELY(ap->ndyn)) return resolve_dynamic(core, ap, access, view);
    view->base = store->base + ap->part0 * store->pitch + (ptrdiff_t)ap->offset * view->elem_bytes;
    return VTRN_OK;
}

/* ---------------------------------------------------------------- (P,1) operands */
enum vtrn_status exec_scalar(struct vtrn_core *core, const struct vtrn_value *value, int64_t parts, float *out)
{
    if (value->kind == VTRN_V_AP) {
        struct exec_view view;

        VTRN_TRY(exec_resolve(core, &value->ap, VTRN_READ, &view));
        if (view.parts < parts || view.elems != 1)
            return exec_fault(core, VTRN_FAULT_VALUE, "operand %s is [%lld, %lld]; it must be [%lld, 1]",
                              operand_of(core, &value->ap), (long long)view.parts, (long long)view.elems, (long long)parts);
        const float *values = exec_load_f32(core, &view, 0, parts, 0, 1, out);
        if (values != out) memcpy(out, values, (size_t)parts * sizeof *out);
        return VTRN_OK;
    }
    float number = value->kind == VTRN_V_NUM ? (float)value->num : 0.0f;
    for (int64_t p = 0; p < parts; p++) out[p] = number;
    return VTRN_OK;
}
