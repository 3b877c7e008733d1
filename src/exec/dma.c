/* DMA: dma_copy and dma_transpose, copies between HBM and SBUF in any combination.
 *
 * Bodies resolve the two operands to walks (walk.c) and hand them to copy.c and convert.c, which know nothing of
 * instructions. What hardware decides about descriptors (dge_mode, priority, engine) has no effect on the result.
 * Sums on the way are dma_compute.c. */
#include "exec/dma_int.h"

static bool any_row_skipped(const struct exec_view *view)
{
    for (int64_t p = 0; view->row_offset && p < view->parts; p++)
        if (view->row_offset[p] < 0) return true;
    return false;
}

static uint64_t bytes_of(const struct exec_view *view) { return (uint64_t)view->parts * (uint64_t)view->elems * view->elem_bytes; }

void exec_dma_count(struct vtrn_core *core, const struct exec_view *view, int access)
{
    if (!vtrn_space_is_hbm(view->store->space)) return;
    if (access & VTRN_READ) core->counters.hbm_read_bytes += bytes_of(view);
    if (access & VTRN_WRITE) core->counters.hbm_write_bytes += bytes_of(view);
}

/* What the write to dst does to its memory: with a row left out on either side, some of it stays, and so it may where dst
 * is addressed by index. */
static int write_access(const struct exec_view *src, const struct vtrn_ap *dst, int oob)
{
    return (any_row_skipped(src) || dst->ndyn > 0 ? VTRN_READ | VTRN_WRITE : VTRN_WRITE) | oob;
}

static int oob_flag(const struct vtrn_value *oob_mode) { return oob_mode->i == VTRN_OOB_SKIP ? EXEC_OOB_SKIP : 0; }

static enum vtrn_status check_sides(struct vtrn_core *core, const struct exec_view *dst, const struct exec_view *src)
{
    const struct vtrn_dtype_info *to = &vtrn_dtypes[dst->dtype], *from = &vtrn_dtypes[src->dtype];
    if (dst->parts * dst->elems != src->parts * src->elems)
        return exec_fault(core, VTRN_FAULT_VALUE, "operand dst: %lld elements, src has %lld; they must be equal",
                          (long long)(dst->parts * dst->elems), (long long)(src->parts * src->elems));
    if (dst->dtype != src->dtype && (to->cls == VTRN_CLASS_PACKED || from->cls == VTRN_CLASS_PACKED))
        return exec_fault(core, VTRN_FAULT_VALUE, "operand dst: %s from %s; packed MX types are copied, never converted",
                          to->nki_name, from->nki_name);
    return VTRN_OK;
}

/* Does: copies the elements of src, in row-major order of its access pattern, to those of dst, in row-major order of its
 *   own. The shapes may differ, the element counts may not. With an index vector on src (gather) row w comes from the row
 *   that index[w] names, with one on dst (scatter) it goes there; of rows scattered to one place the last stays. Under
 *   oob_mode.skip a row whose index is outside is not transferred and dst keeps what it had there; a scalar offset outside
 *   skips the whole transfer. Where src and dst share bytes the result is as if all of src were read first.
 * Rounding: equal dtypes move bits. Others, integers too, convert to fp32 (32-bit integers: nearest even, so inexact from 2^24
 *   on) and from there to the dtype of dst: nearest even, overflow as kern.h says.
 * Faults: INDEX for an index outside, BOUNDS for a scalar offset outside, both only under oob_mode.error; VALUE for unequal
 *   element counts or a conversion of packed MX types.
 * Differs: stochastic rounding of the run does not apply to DMA. Descriptor modes and priorities have no effect on results. */
enum vtrn_status vtrn_exec_dma_copy(struct vtrn_core *core, const struct vtrn_inst *inst)
{
    const struct vtrn_args_dma_copy *arg = VTRN_ARGS(dma_copy, inst);
    int oob = oob_flag(&arg->oob_mode);
    struct exec_view dst, src;
    struct exec_walk to, from;
    VTRN_TRY(exec_resolve(core, &arg->src.ap, VTRN_READ | oob, &src));
    if (src.skip) return VTRN_OK;
    VTRN_TRY(exec_resolve(core, &arg->dst.ap, write_access(&src, &arg->dst.ap, oob), &dst));
    if (dst.skip) return VTRN_OK;
    VTRN_TRY(check_sides(core, &dst, &src));
    exec_walk_view(&to, &dst);
    exec_walk_view(&from, &src);
    exec_dma_count(core, &src, VTRN_READ);
    exec_dma_count(core, &dst, VTRN_WRITE);
    return exec_copy(core, &to, &from);
}

/* ---- dma_transpose ---- */
enum { AXES = 4 };

/* The permutation: as given, or the one that the rank of src implies. */
static enum vtrn_status read_axes(struct vtrn_core *core, const struct vtrn_value *axes, int ndim, int *out)
{
    static const int implied[3][AXES] = { { 1, 0 }, { 2, 1, 0 }, { 3, 1, 2, 0 } };
    int seen = 0;
    if (ndim < 2 || ndim > AXES)
        return exec_fault(core, VTRN_FAULT_VALUE, "operand src: %d dimensions; a transpose takes 2, 3 or 4", ndim);
    for (int d = 0; d < ndim; d++) {
        int64_t axis = axes->kind == VTRN_V_NONE || axes->count == 0 ? implied[ndim - 2][d] : d < axes->count ? axes->ints[d] : -1;
        if (axis < 0 || axis >= ndim || axes->count > ndim)
            return exec_fault(core, VTRN_FAULT_VALUE, "operand axes: not a permutation of the %d axes of src", ndim);
        out[d] = (int)axis;
        seen |= 1 << axis;
    }
    if (seen != (1 << ndim) - 1) return exec_fault(core, VTRN_FAULT_VALUE, "operand axes: names an axis of src twice");
    return VTRN_OK;
}

/* Axes of a packed tensor with the counts of `ap`, permuted: what exec_walk_axes does for one in memory. */
static void packed_axes(struct exec_walk *walk, const struct vtrn_ap *ap, void *bytes, const struct exec_view *view, const int *axes)
{
    struct vtrn_ap dense = *ap;
    struct exec_view in_memory = *view;
    int64_t stride = 1;
    for (int d = ap->ndim - 1; d >= 0; d--) {
        dense.dim[d].stride = stride;
        stride *= ap->dim[d].count;
    }
    in_memory.base = bytes;
    in_memory.pitch = (ptrdiff_t)(dense.dim[0].stride * view->elem_bytes);
    exec_walk_axes(walk, &dense, &in_memory, axes);
}

/* Rows by index: they are gathered into packed memory first. Columns of dst whose row is left out must stay: dst is brought
 * into the packed memory before, and written back with the rest. */
static enum vtrn_status transpose_gathered(struct vtrn_core *core, const struct vtrn_ap *ap, const struct exec_view *src,
                                           const struct exec_walk *to, const int *axes)
{
    struct exec_walk rows, packed, turned;
    exec_walk_view(&rows, src);
    void *bytes = exec_walk_alloc(core, &rows, &packed);
    if (!bytes) return VTRN_NOMEM;
    packed_axes(&turned, ap, bytes, src, axes);
    if (any_row_skipped(src)) exec_copy_raw(core, &turned, to);
    exec_copy_raw(core, &packed, &rows);
    exec_copy_raw(core, to, &turned);
    vtrn_free_aligned(bytes);
    return VTRN_OK;
}

/* Does: dst = src with its axes permuted: axis i of dst is axis axes[i] of src; without axes (1,0), (2,1,0) or (3,1,2,0) by
 *   the rank of src. With an index vector on src its rows are gathered first: flat = indices.T.flatten(), dst =
 *   permuted src[flat]. Under oob_mode.skip the columns of dst that belong to rows with an index outside keep their value.
 *   Only the order of dst's elements counts, not its rank.
 * Rounding: none, bits are copied.
 * Faults: INDEX and BOUNDS as dma_copy; VALUE for axes that are no permutation, unequal counts or dtypes.
 * Differs: limits of the hardware's transpose unit (2-byte elements, 16 rows) are checked by the validator where a
 *   dge_mode asks for it, not here. */
enum vtrn_status vtrn_exec_dma_transpose(struct vtrn_core *core, const struct vtrn_inst *inst)
{
    const struct vtrn_args_dma_transpose *arg = VTRN_ARGS(dma_transpose, inst);
    const struct vtrn_ap *ap = &arg->src.ap;
    int oob = oob_flag(&arg->oob_mode), axes[AXES];
    struct exec_view dst, src;
    struct exec_walk to, from;
    VTRN_TRY(read_axes(core, &arg->axes, ap->ndim, axes));
    VTRN_TRY(exec_resolve(core, ap, VTRN_READ | oob, &src));
    if (src.skip) return VTRN_OK;
    VTRN_TRY(exec_resolve(core, &arg->dst.ap, write_access(&src, &arg->dst.ap, oob), &dst));
    if (dst.skip) return VTRN_OK;
    VTRN_TRY(check_sides(core, &dst, &src));
    if (dst.dtype != src.dtype || dst.row_offset)
        return exec_fault(core, VTRN_FAULT_VALUE, "operand dst: %s; a transpose needs the dtype of src, %s, and no index vector",
                          vtrn_dtypes[dst.dtype].nki_name, vtrn_dtypes[src.dtype].nki_name);
    exec_walk_view(&to, &dst);
    exec_dma_count(core, &src, VTRN_READ);
    exec_dma_count(core, &dst, VTRN_WRITE);
    if (src.row_offset) return transpose_gathered(core, ap, &src, &to, axes);
    exec_walk_axes(&from, ap, &src, axes);
    return exec_copy(core, &to, &from);
}
