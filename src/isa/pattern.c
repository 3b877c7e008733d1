/* Counts and extents of access patterns: arithmetic on untrusted numbers, so every product saturates or reports that it
 * does not fit. Shared by the legality rules, exec and time. Must not know tensors: what a pattern may reach is decided by
 * those who have the tensor table. */
#include "isa/isa.h"

static int64_t product(const struct vtrn_ap *ap, int first)
{
    int64_t elems = 1;

    for (int i = first; i < ap->ndim; i++) {
        if (ap->dim[i].count <= 0) return 0;
        if (!vtrn_mul_i64(elems, ap->dim[i].count, &elems)) elems = INT64_MAX;
    }
    return elems;
}

int64_t vtrn_ap_free_elems(const struct vtrn_ap *ap)
{
    return product(ap, 1);
}

int64_t vtrn_ap_elems(const struct vtrn_ap *ap)
{
    return product(ap, 0);
}

/* False: the pattern is empty or reaches beyond 63 bits. */
bool vtrn_ap_extent(const struct vtrn_ap *ap, bool on_chip, int64_t *lowest_out, int64_t *highest_out)
{
    int64_t lowest = ap->offset, highest = ap->offset;
    bool skip_first = on_chip; /* it steps over partitions, not over elements */

    for (int i = 0; i < ap->ndyn; i++)
        if (ap->dyn[i].kind == VTRN_DYN_VECTOR) skip_first = true; /* the index vector takes the place of dim[0] */
    for (int i = 0; i < ap->ndim; i++) {
        int64_t reach;

        if (ap->dim[i].count <= 0) return false;
        if (skip_first && i == 0) continue;
        if (!vtrn_mul_i64(ap->dim[i].stride, ap->dim[i].count - 1, &reach)) return false;
        if (!vtrn_add_i64(reach < 0 ? lowest : highest, reach, reach < 0 ? &lowest : &highest)) return false;
    }
    *lowest_out = lowest;
    *highest_out = highest;
    return true;
}
