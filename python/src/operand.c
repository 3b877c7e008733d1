/* A view as the access pattern of an operand. In HBM the two are the same. On chip a view is linear over
 * partition * row + element; the pattern names the first partition, partition steps and offsets inside a partition. */
#include "ext.h"

static int operand_error(const struct nki_tensor *t, const char *what, const char *fmt, ...) VTRN_PRINTF(3, 4);
static int operand_error(const struct nki_tensor *t, const char *what, const char *fmt, ...)
{
    char why[300], tensor[300];
    va_list args;

    va_start(args, fmt);
    vsnprintf(why, sizeof why, fmt, args);
    va_end(args);
    return ext_raise(ext_errors.validation, what, "%s; the tensor is %s", why, ext_tensor_text(t, tensor, sizeof tensor));
}

/* Splits a linear on-chip offset into partition and element. */
static int split_offset(const struct nki_tensor *t, int64_t offset, int64_t row, const char *what, uint16_t *part0_out,
                        int64_t *offset_out)
{
    int64_t part = 0;

    if (VTRN_UNLIKELY(offset >= row || offset < 0)) {
        part = offset / row;
        offset -= part * row;
    }
    if (VTRN_UNLIKELY(part < 0 || part > UINT16_MAX))
        return operand_error(t, what, "the view starts at partition %lld", (long long)part);
    *part0_out = (uint16_t)part;
    *offset_out = offset;
    return 0;
}

static int row_of(const struct nki_tensor *t, const char *what, int64_t *row_out)
{
    int size = vtrn_dtypes[t->dtype].size_bytes;

    if (VTRN_LIKELY(t->dtype == t->storage->dtype)) {
        *row_out = t->storage->row_elems;
        return 0;
    }
    if (t->storage->row_bytes % size != 0)
        return operand_error(t, what, "a partition has %lld bytes, not a multiple of %d", (long long)t->storage->row_bytes, size);
    *row_out = t->storage->row_bytes / size;
    return 0;
}

static int fill_on_chip(const struct nki_tensor *t, struct vtrn_ap *ap, const char *what)
{
    int64_t row = 0;

    if (row_of(t, what, &row) < 0 || split_offset(t, t->offset, row, what, &ap->part0, &ap->offset) < 0) return -1;
    ap->dim[0].count = t->shape[0];
    if (t->stride[0] == row || t->shape[0] == 1) {
        ap->dim[0].stride = 1;
    } else {
        if (t->stride[0] % row != 0)
            return operand_error(t, what, "the partition stride %lld is not a multiple of %lld, the elements of a partition",
                                 (long long)t->stride[0], (long long)row);
        ap->dim[0].stride = t->stride[0] / row;
    }
    for (int i = 1; i < t->ndim; i++) ap->dim[i] = (struct vtrn_dim){ t->stride[i], t->shape[i] };
    return 0;
}

/* The stride that walks the dimensions from `first` on as one: dimensions of size 1 do not count. */
static bool one_stride(const struct nki_tensor *x, int first, int64_t *stride_out)
{
    int64_t step = 0, inner = 1;

    for (int i = x->ndim - 1; i >= first; i--) {
        if (x->shape[i] == 1) continue;
        if (step == 0) step = x->stride[i];
        else if (x->stride[i] != step * inner) return false;
        inner *= x->shape[i];
    }
    *stride_out = step ? step : 1;
    return true;
}

/* Where the indices of a dynamic address are: on chip a tile of (partitions, columns), in HBM a vector. */
static int fill_index(struct vtrn_dyn *dyn, const struct tensor_dyn *from, struct session *session, const char *what)
{
    const struct nki_tensor *x = (struct nki_tensor *)from->index;
    bool on_chip = ext_on_chip(x);
    int64_t row = 0;

    if (x->storage->session != session) return operand_error(x, what, "the index tensor belongs to another run");
    if (x->ndyn) return operand_error(x, what, "an index tensor cannot be indirect itself");
    if (!one_stride(x, on_chip ? 1 : 0, &dyn->stride))
        return operand_error(x, what, "the elements of an index tensor must lie at one distance%s",
                             on_chip ? " in each partition" : "");
    dyn->dtype = x->dtype;
    dyn->ref = x->storage->tensor;
    dyn->count = ext_tensor_elems(x);
    dyn->offset = x->offset;
    if (!on_chip) return 0;
    return row_of(x, what, &row) < 0 ? -1 : split_offset(x, x->offset, row, what, &dyn->part0, &dyn->offset);
}

static int fill_dyns(struct vtrn_inst *inst, const struct nki_tensor *t, struct vtrn_ap *ap, const char *what)
{
    struct vtrn_dyn *dyn = vtrn_inst_new_dyns(inst, t->ndyn);

    if (!dyn) return operand_error(t, what, "more than %d dynamic addresses in one instruction", VTRN_INST_DYNS);
    for (int i = 0; i < t->ndyn; i++) {
        const struct tensor_dyn *from = &t->dyn[i];

        dyn[i] = (struct vtrn_dyn){ .kind = from->kind, .scale = from->scale, .limit = from->limit };
        if (from->kind == VTRN_DYN_REG) {
            const struct nki_register *reg = (struct nki_register *)from->index;

            if (reg->session != t->storage->session) return operand_error(t, what, "the register belongs to another run");
            dyn[i].ref = reg->number;
        } else if (fill_index(&dyn[i], from, t->storage->session, what) < 0) {
            return -1;
        }
    }
    ap->dyn = dyn;
    ap->ndyn = t->ndyn;
    return 0;
}

int ext_operand(struct trace *t, struct vtrn_inst *inst, const struct nki_tensor *tensor, struct vtrn_ap *ap, const char *what)
{
    const struct storage *storage = tensor->storage;

    if (VTRN_UNLIKELY(storage->session != t->session))
        return operand_error(tensor, what, "the tensor belongs to another run: kernels cannot keep tensors between calls");
    if (VTRN_UNLIKELY(storage->core != t->core && storage->core != VTRN_CORES_MAX))
        return operand_error(tensor, what, "the tensor belongs to core %d and this is core %d", storage->core, t->core);
    ap->tensor = storage->tensor;
    ap->dtype = tensor->dtype;
    ap->ndim = tensor->ndim;
    ap->ndyn = 0;
    ap->reserved = 0;
    ap->dyn = NULL;
    if (storage->row_elems) {
        if (VTRN_UNLIKELY(fill_on_chip(tensor, ap, what) < 0)) return -1;
    } else {
        ap->part0 = 0;
        ap->offset = tensor->offset;
        for (int i = 0; i < tensor->ndim; i++) ap->dim[i] = (struct vtrn_dim){ tensor->stride[i], tensor->shape[i] };
    }
    if (VTRN_UNLIKELY(tensor->ndyn > 0)) return fill_dyns(inst, tensor, ap, what);
    return 0;
}
