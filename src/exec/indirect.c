/* Tensor indirection of NeuronCore-v4: an operand that takes its free elements from the offsets in an index tile.
 *
 * Partitions form groups of 16 (32 on the tensor engine). All partitions of a group share one list of free offsets, which
 * the index tile holds snake-wise: offset i is in the group's partition i % G, column i / G. A last group of fewer than G
 * partitions, and an operand of fewer, count with the partitions they have.
 * Source: nki.language NkiTensor.indirect (Neuron SDK 2.32). It does not say how groups beyond the first find their
 * lists; reading each group's own partitions is what the hardware's wiring suggests (local_gather works so). */
#include "exec/walk_int.h"

enum { GROUP = 16, TENSOR_GROUP = 32 };

enum vtrn_status exec_resolve_indirect(struct vtrn_core *core, const struct vtrn_ap *ap, const struct vtrn_dyn *dyn,
                                       struct exec_view *view)
{
    struct vtrn_store *index = vtrn_mem_store(core->mem, core->prog, core->id, dyn->ref, &core->err);
    if (!index) return core->err.status;
    vtrn_store_settle(index);
    int64_t group = core->inst.engine == VTRN_ENGINE_TENSOR ? TENSOR_GROUP : GROUP;
    if (group > view->parts) group = view->parts;
    int64_t groups = (view->parts + group - 1) / group;
    int64_t *offset = exec_index_space(core, groups * view->elems);
    VTRN_FAIL_IF(!offset, &core->err, VTRN_NOMEM, "no memory for %lld element offsets", (long long)(groups * view->elems));

    int64_t bytes = view->elem_bytes, index_bytes = vtrn_dtypes[dyn->dtype].size_bytes;
    int64_t start = view->base - view->store->base - (int64_t)ap->part0 * (int64_t)view->store->pitch;
    int64_t fits = ((int64_t)view->store->row_bytes - start) / bytes; /* elements from base to the row's end */
    int64_t step = dyn->scale ? dyn->scale : 1, column_step = dyn->stride ? dyn->stride : 1;
    for (int64_t g = 0; g < groups; g++) {
        int64_t members = view->parts - g * group < group ? view->parts - g * group : group;
        for (int64_t i = 0; i < view->elems; i++) {
            int64_t part = dyn->part0 + g * group + i % members;
            int64_t at = (dyn->offset + i / members * column_step) * index_bytes;
            if (part >= index->partitions || at < 0 || at + index_bytes > (int64_t)index->row_bytes)
                return exec_fault(core, VTRN_FAULT_BOUNDS,
                                  "indirect operand: offset %lld of partition group %lld would be at "
                                  "partition %lld, byte %lld of the index tile, which has %d partitions of %zu bytes",
                                  (long long)i, (long long)g, (long long)part, (long long)at, index->partitions, index->row_bytes);
            int64_t value = exec_int_load(dyn->dtype, index->base + (size_t)part * index->pitch + at);
            if (value < 0 || (dyn->limit && value >= dyn->limit) || value > (fits - 1) / step)
                return exec_fault(core, VTRN_FAULT_INDEX, "indirect operand: index[%lld, %lld] = %lld is outside 0..%lld",
                                  (long long)(part - dyn->part0), (long long)(i / members), (long long)value,
                                  (long long)(dyn->limit && dyn->limit <= (fits - 1) / step ? dyn->limit - 1 : (fits - 1) / step));
            offset[g * view->elems + i] = value * step * bytes;
        }
    }
    view->elem_offset = offset;
    view->group = (int)group;
    view->ndim = 1;
    view->dim[0].stride = (ptrdiff_t)bytes;
    view->dim[0].count = view->elems;
    view->contiguous = false;
    return VTRN_OK;
}
