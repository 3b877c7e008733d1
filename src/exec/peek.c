/* How front ends look at values: elements that an access pattern walks, packed in its order. */
#include "exec/walk_int.h"

enum vtrn_status vtrn_core_peek(struct vtrn_core *core, const struct vtrn_ap *ap, void *out, size_t size_bytes, struct vtrn_error *err)
{
    struct vtrn_fault before = core->fault;
    struct exec_view view;
    struct exec_walk from, to;
    core->index_space.size = 0; /* between two instructions nothing in it is needed */
    enum vtrn_status status = exec_resolve(core, ap, VTRN_READ, &view);
    if (status != VTRN_OK) {
        if (status == VTRN_FAULT) vtrn_fail(err, status, "%s", core->fault.text);
        else vtrn_fail(err, status, "%s", core->err.text);
        core->fault = before; /* looking must not stop the core */
        return status;
    }
    int64_t elems = view.parts * view.elems;
    VTRN_FAIL_IF((uint64_t)elems * view.elem_bytes != size_bytes, err, VTRN_INVALID,
                 "buffer of %zu bytes for %lld elements of %d bytes", size_bytes, (long long)elems, view.elem_bytes);
    if (view.elem_offset) {
        for (int64_t p = 0; p < view.parts; p++)
            for (int64_t i = 0; i < view.elems; i++)
                memcpy((uint8_t *)out + (size_t)(p * view.elems + i) * view.elem_bytes, exec_elem(&view, p, i), view.elem_bytes);
        return VTRN_OK;
    }
    exec_walk_view(&from, &view);
    exec_walk_packed(&to, out, elems, view.dtype, view.elem_bytes);
    exec_copy_raw(core, &to, &from);
    return VTRN_OK;
}
