/* Instructions whose destination shares bytes with a source.
 *
 * The engines read an element before they write it, and kernels rely on it: t = t + 1 in place, copies within one tile,
 * a bf16 result over its fp32 source. Bodies go block by block, so a destination that overlaps a source in any other way
 * than element on element could change what is still to be read. Such sources are copied first; the common cases
 * (different tensors, the very same view, other columns or other partitions of a tensor) are told apart by arithmetic
 * on base, pitch and strides alone. When in doubt: a copy.
 *
 * What hardware does with shifted overlaps is not documented: it streams elements through its pipeline, and a write may
 * or may not come before a later read. The result here is that of reading everything first. */
#include "exec/exec_int.h"

enum overlap { DISJOINT, SAME, MIXED };

struct extent {
    ptrdiff_t low, high; /* bytes of a partition's elements, relative to its first: [low, high) */
};

static struct extent row_extent(const struct exec_view *view)
{
    struct extent extent = { 0, view->elem_bytes };

    for (int d = 0; d < view->ndim; d++) {
        ptrdiff_t reach = view->dim[d].stride * (ptrdiff_t)(view->dim[d].count - 1);

        if (reach < 0) extent.low += reach;
        else extent.high += reach;
    }
    return extent;
}

/* Every element of one view lies exactly on its counterpart of the other, and on no other one. */
static bool same_elements(const struct exec_view *a, const struct exec_view *b)
{
    if (a->base != b->base || a->elem_bytes != b->elem_bytes || a->ndim != b->ndim) return false;
    if (a->parts > 1 && a->pitch != b->pitch) return false;
    for (int d = 0; d < a->ndim; d++)
        if (a->dim[d].stride != b->dim[d].stride || a->dim[d].count != b->dim[d].count) return false;
    /* A repeated address (stride 0) or interleaved windows would be read after they were written. */
    ptrdiff_t extent = a->elem_bytes;
    for (int d = a->ndim - 1; d >= 0; d--) {
        if (a->dim[d].stride < extent) return false;
        extent = a->dim[d].stride * (ptrdiff_t)a->dim[d].count;
    }
    return a->parts <= 1 || a->pitch >= extent || -a->pitch >= extent;
}

static ptrdiff_t floor_div(ptrdiff_t a, ptrdiff_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

/* Rows of equal pitch: row i of a and row i + k of b meet when k*pitch lies between what their extents allow. */
static bool rows_meet(const struct exec_view *a, struct extent ea, const struct exec_view *b, struct extent eb)
{
    ptrdiff_t delta = b->base - a->base, pitch = a->pitch;
    ptrdiff_t first = floor_div(ea.low - (eb.high + delta), pitch) + 1; /* smallest k with k*pitch + b.high > a.low */
    ptrdiff_t last = -floor_div((eb.low + delta) - ea.high, pitch) - 1; /* largest k with k*pitch + b.low < a.high */
    ptrdiff_t a_most = (ptrdiff_t)a->parts - 1, b_most = (ptrdiff_t)b->parts - 1;

    if (first < -a_most) first = -a_most;
    if (last > b_most) last = b_most;
    return first <= last;
}

VTRN_RARE static enum overlap overlap_of(const struct exec_view *dst, const struct exec_view *src)
{
    if (dst->store != src->store && !(dst->store->physical && src->store->physical)) return DISJOINT;
    if (dst->elem_offset || src->elem_offset || dst->row_offset || src->row_offset) return MIXED;
    struct extent d = row_extent(dst), s = row_extent(src);
    ptrdiff_t d_rows = dst->pitch * (ptrdiff_t)(dst->parts - 1), s_rows = src->pitch * (ptrdiff_t)(src->parts - 1);
    const uint8_t *d_low = dst->base + d.low + (d_rows < 0 ? d_rows : 0), *d_high = dst->base + d.high + (d_rows > 0 ? d_rows : 0);
    const uint8_t *s_low = src->base + s.low + (s_rows < 0 ? s_rows : 0), *s_high = src->base + s.high + (s_rows > 0 ? s_rows : 0);

    if (d_high <= s_low || s_high <= d_low) return DISJOINT;
    if (same_elements(dst, src)) return SAME;
    if (dst->pitch == src->pitch && dst->pitch > 0 && !rows_meet(dst, d, src, s)) return DISJOINT;
    return MIXED;
}

VTRN_RARE static enum vtrn_status copy_source(struct vtrn_core *core, struct exec_view *src)
{
    size_t bytes = (size_t)src->parts * (size_t)src->elems * src->elem_bytes;
    uint8_t *copy;

    VTRN_ASSERT(core->stageds < EXEC_STAGED_MAX);
    copy = vtrn_alloc_aligned(bytes, 64);
    VTRN_FAIL_IF(!copy, &core->err, VTRN_NOMEM, "no memory for a copy of %zu bytes", bytes);
    core->staged[core->stageds++] = copy;
    exec_pack_raw(src, 0, src->parts, 0, src->elems, copy);
    src->base = copy;
    src->pitch = (ptrdiff_t)src->elems * src->elem_bytes;
    src->ndim = src->elems > 1 ? 1 : 0;
    src->dim[0].stride = src->elem_bytes;
    src->dim[0].count = src->elems;
    src->contiguous = true;
    src->row_offset = src->elem_offset = NULL;
    return VTRN_OK;
}

enum vtrn_status exec_stage(struct vtrn_core *core, const struct exec_view *dst, struct exec_view *src)
{
    if (VTRN_LIKELY(dst->store != src->store) && !dst->store->physical) return VTRN_OK;
    return overlap_of(dst, src) == MIXED ? copy_source(core, src) : VTRN_OK;
}

enum vtrn_status exec_stage_always(struct vtrn_core *core, const struct exec_view *dst, struct exec_view *src)
{
    return overlap_of(dst, src) == DISJOINT ? VTRN_OK : copy_source(core, src);
}
