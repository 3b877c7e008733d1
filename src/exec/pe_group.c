/* Accumulation groups: products that follow each other in the list and go to the same place in PSUM.
 *
 * A kernel contracts more than 128 rows by a run of nc_matmuls into one PSUM tile. Such a run is one job: the columns of the
 * destination are split over the threads once, and each thread computes its columns of all products in order. No thread waits
 * for another between two products (that wait, and copies by one thread, cost 8 % of a 4096^3 product on two), and the kernel
 * knows which operands come next.
 * Bits do not depend on it: a column's value never depends on other columns, nor on where they are cut. No instruction of
 * a group can fault once its operands are resolved; one that cannot be resolved ends the group and is met again by itself.
 * Must not know how operands are brought into kern's form (pe.c). */
#include "exec/pe_int.h"

enum { BLOCK = 64 /* columns: the unit that threads share */, PRODUCTS_MAX = 64 };

struct group {
    struct vtrn_mm mm[PRODUCTS_MAX];
    int products;
};

static bool same_place(const struct vtrn_ap *a, const struct vtrn_ap *b)
{
    if (a->tensor != b->tensor || a->offset != b->offset || a->part0 != b->part0 || a->dtype != b->dtype || a->ndim != b->ndim)
        return false;
    for (int d = 0; d < a->ndim; d++)
        if (a->dim[d].stride != b->dim[d].stride || a->dim[d].count != b->dim[d].count) return false;
    return a->ndyn == 0 && b->ndyn == 0;
}

/* An operand of a later product: where it is, if kern can read it there. */
static bool operand_ahead(struct vtrn_core *core, const struct vtrn_ap *ap, struct exec_view *view)
{
    return ap->ndyn == 0 && exec_resolve(core, ap, VTRN_READ, view) == VTRN_OK && view->contiguous;
}

/* Adds the instruction in core->ahead to the group, if it belongs there. */
static bool join(struct vtrn_core *core, const struct vtrn_ap *dst, struct group *group)
{
    const struct vtrn_args_nc_matmul *arg = VTRN_ARGS(nc_matmul, &core->ahead);
    struct vtrn_mm *mm = &group->mm[group->products];
    struct exec_view s, x;

    if (arg->is_transpose.i || arg->perf_mode.i == VTRN_MATMUL_PERF_DOUBLE_ROW || !same_place(&arg->dst.ap, dst)) return false;
    if (!operand_ahead(core, &arg->stationary.ap, &s) || !operand_ahead(core, &arg->moving.ap, &x)) return false;
    if (s.elems != group->mm[0].m || x.elems != group->mm[0].n) return false;
    *mm = group->mm[0];
    mm->k = (int)s.parts;
    mm->s = s.base;
    mm->s_pitch = s.pitch;
    mm->s_dtype = s.dtype;
    mm->x = x.base;
    mm->x_pitch = x.pitch;
    mm->x_dtype = x.dtype;
    mm->acc = arg->accumulate.kind == VTRN_V_NONE || arg->accumulate.i; /* None: the product before has written it all */
    group->products++;
    return true;
}

/* Columns of blocks [b0, b1) of a product. */
static struct vtrn_mm cut(const struct vtrn_mm *whole, int64_t b0, int64_t b1, uint8_t *scratch)
{
    struct vtrn_mm mm = *whole;
    int64_t c0 = b0 * BLOCK, end = b1 * BLOCK < mm.n ? b1 * BLOCK : mm.n;

    mm.x = (const uint8_t *)mm.x + c0 * vtrn_dtypes[mm.x_dtype].size_bytes;
    mm.d += c0;
    mm.n = (int)(end - c0);
    mm.scratch = scratch;
    return mm;
}

static void columns(const struct exec_rows *rows, int64_t b0, int64_t b1, uint8_t *scratch)
{
    const struct group *group = rows->data;
    struct vtrn_mm mm = cut(&group->mm[0], b0, b1, scratch), next;

    for (int i = 0; i < group->products; i++, mm = next) {
        bool last = i + 1 == group->products;

        next = cut(&group->mm[last ? i : i + 1], b0, b1, scratch);
        mm.next = last ? NULL : &next;
        rows->core->kern->mm(&mm);
    }
}

void exec_group_run(struct vtrn_core *core, const struct vtrn_mm *first, const struct vtrn_ap *dst)
{
    const struct vtrn_prog *prog = core->prog;
    int64_t blocks = (first->n + BLOCK - 1) / BLOCK, macs = 0;
    struct group group;

    group.mm[0] = *first;
    group.products = 1;
    for (uint32_t pc = core->pc + 1; dst && pc < core->end && group.products < PRODUCTS_MAX; pc++) {
        if (vtrn_prog_op(prog, core->id, pc) != VTRN_OP_nc_matmul) break;
        vtrn_prog_get(prog, core->id, pc, &core->ahead);
        if (!join(core, dst, &group)) break;
    }
    core->also_done = (uint32_t)group.products - 1;
    for (int i = 0; i < group.products; i++) macs += (int64_t)group.mm[i].k * first->m * first->n;
    core->counters.macs += (uint64_t)macs;
    exec_for_partitions(core, blocks, macs / blocks / EXEC_MACS_PER_ELEM, columns, &group);
}
