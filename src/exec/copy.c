/* Copies between two walks of equal element size: the data path of DMA.
 *
 * The two shapes are cut into common dims (the gcd of what is left of each, from the inside out), joined again where
 * both sides step alike, and ordered by the destination's stride. What is adjacent on both sides becomes memcpy runs;
 * where one side is adjacent along one dim and the other along another, kern->transpose moves blocks; the rest are
 * strided loops over the two dims that keep lines of both sides in cache. Shapes without a common cut, and destinations
 * that write an address more than once, go run by run in row-major order.
 *
 * Large copies are split over the pool. Knows bytes only; dtype rules are convert.c's. */
#include "exec/walk_int.h"

enum { PLAN_DIMS = 2 * WALK_DIMS, BLOCK = 64 /* rows and columns of a transposed block */ };
static const size_t split_bytes = 64 * 1024; /* some 5 us from memory: below, fork and join cost more than a second thread gains */

struct plan {
    uint8_t *dst;
    const uint8_t *src;
    size_t unit; /* bytes that are adjacent on both sides */
    int ndim;
    struct plan_dim {
        ptrdiff_t dst, src; /* byte strides, dst > 0 */
        int64_t count;
    } dim[PLAN_DIMS]; /* outermost first, by falling dst stride */
};

/* ---- making a plan ---- */
static int64_t gcd(int64_t a, int64_t b)
{
    while (b != 0) {
        int64_t r = a % b;
        a = b;
        b = r;
    }
    return a;
}

/* Common dims of both shapes, innermost first. False: they have none. */
static bool cut(const struct exec_walk *dst, const struct exec_walk *src, struct plan *plan)
{
    int i = dst->ndim - 1, j = src->ndim - 1;
    int64_t a = i < 0 ? 1 : dst->dim[i].count, b = j < 0 ? 1 : src->dim[j].count;
    ptrdiff_t dst_step = i < 0 ? 0 : dst->dim[i].stride, src_step = j < 0 ? 0 : src->dim[j].stride;
    plan->ndim = 0;
    while (i >= 0 && j >= 0) {
        int64_t n = gcd(a, b);
        if (n == 1) return false;
        VTRN_ASSERT(plan->ndim < PLAN_DIMS);
        plan->dim[plan->ndim++] = (struct plan_dim){ dst_step, src_step, n };
        a /= n;
        b /= n;
        dst_step *= (ptrdiff_t)n;
        src_step *= (ptrdiff_t)n;
        if (a == 1 && --i >= 0) {
            a = dst->dim[i].count;
            dst_step = dst->dim[i].stride;
        }
        if (b == 1 && --j >= 0) {
            b = src->dim[j].count;
            src_step = src->dim[j].stride;
        }
    }
    return true;
}

/* Removes dims that repeat an address of dst (the last repetition stays), turns falling ones round, sorts, joins. */
static void arrange(struct plan *plan)
{
    struct plan_dim sorted[PLAN_DIMS];
    int n = 0;
    for (int d = 0; d < plan->ndim; d++) {
        struct plan_dim dim = plan->dim[d];
        if (dim.dst <= 0) {
            plan->src += dim.src * (ptrdiff_t)(dim.count - 1);
            if (dim.dst == 0) continue;
            plan->dst += dim.dst * (ptrdiff_t)(dim.count - 1);
            dim.dst = -dim.dst;
            dim.src = -dim.src;
        }
        int at = n++;
        for (; at > 0 && sorted[at - 1].dst < dim.dst; at--) sorted[at] = sorted[at - 1];
        sorted[at] = dim;
    }
    plan->ndim = 0;
    for (int d = 0; d < n; d++) {
        struct plan_dim *outer = plan->ndim > 0 ? &plan->dim[plan->ndim - 1] : NULL;
        if (outer && outer->dst == sorted[d].dst * (ptrdiff_t)sorted[d].count &&
            outer->src == sorted[d].src * (ptrdiff_t)sorted[d].count) {
            sorted[d].count *= outer->count;
            *outer = sorted[d];
        } else {
            plan->dim[plan->ndim++] = sorted[d];
        }
    }
    if (plan->ndim > 0) {
        const struct plan_dim *last = &plan->dim[plan->ndim - 1];
        if (last->dst == (ptrdiff_t)plan->unit && last->src == (ptrdiff_t)plan->unit) {
            plan->unit *= (size_t)last->count;
            plan->ndim--;
        }
    }
}

/* False: no common cut, or dst writes some address twice in a way that depends on the order. */
static bool make_plan(const struct exec_walk *dst, const struct exec_walk *src, struct plan *plan)
{
    struct exec_walk spread = *dst; /* dst without its stride-0 dims: those are no matter of order */
    spread.ndim = 0;
    for (int d = 0; d < dst->ndim; d++)
        if (dst->dim[d].stride != 0) spread.dim[spread.ndim++] = dst->dim[d];
    if (!exec_walk_injective(&spread) || !cut(dst, src, plan)) return false;
    plan->dst = dst->base;
    plan->src = src->base;
    plan->unit = dst->elem_bytes;
    arrange(plan);
    return true;
}

/* ---- running a plan ---- */
#define STRIDED(BYTES) \
    for (int64_t k = 0; k < count; k++, dst += dst_step, src += src_step) memcpy(dst, src, BYTES)

/* Spreads one element over a row: what partition and free broadcasts come to. */
static void fill(uint8_t *dst, const uint8_t *src, int64_t count, size_t unit)
{
    if (unit == 1) {
        memset(dst, *src, (size_t)count);
    } else if (unit == 2) {
        uint16_t value;
        memcpy(&value, src, 2);
        for (int64_t k = 0; k < count; k++) memcpy(dst + 2 * k, &value, 2);
    } else {
        uint32_t value;
        memcpy(&value, src, 4);
        for (int64_t k = 0; k < count; k++) memcpy(dst + 4 * k, &value, 4);
    }
}

static void move_row(uint8_t *dst, ptrdiff_t dst_step, const uint8_t *src, ptrdiff_t src_step, int64_t count, size_t unit)
{
    if (src_step == 0 && dst_step == (ptrdiff_t)unit && (unit == 1 || unit == 2 || unit == 4)) {
        fill(dst, src, count, unit);
        return;
    }
    switch (unit) { /* sizes known to the compiler become single moves */
    case 1: STRIDED(1); break;
    case 2: STRIDED(2); break;
    case 4: STRIDED(4); break;
    case 8: STRIDED(8); break;
    case 16: STRIDED(16); break;
    case 32: STRIDED(32); break;
    case 64: STRIDED(64); break;
    default: STRIDED(unit); break;
    }
}

/* The two inner dims: `row` is inner for dst, `col` inner for src. */
static void move_block(const struct vtrn_kern *kern, uint8_t *dst, const uint8_t *src, const struct plan_dim *row,
                       const struct plan_dim *col, size_t unit)
{
    ptrdiff_t bytes = (ptrdiff_t)unit;
    bool transposes = row->dst == bytes && col->src == bytes && (unit == 1 || unit == 2 || unit == 4);
    for (int64_t r0 = 0; r0 < row->count; r0 += BLOCK) {
        int64_t rows = row->count - r0 < BLOCK ? row->count - r0 : BLOCK;
        for (int64_t c0 = 0; c0 < col->count; c0 += BLOCK) {
            int64_t cols = col->count - c0 < BLOCK ? col->count - c0 : BLOCK;
            uint8_t *d = dst + r0 * row->dst + c0 * col->dst;
            const uint8_t *s = src + r0 * row->src + c0 * col->src;
            if (transposes) {
                kern->transpose[unit / 2](d, col->dst, s, row->src, (size_t)rows, (size_t)cols);
                continue;
            }
            for (int64_t c = 0; c < cols; c++) move_row(d + c * col->dst, row->dst, s + c * col->src, row->src, rows, unit);
        }
    }
}

/* The dim along which src steps least: where its lines are used up. Broadcast dims do not count. */
static int source_dim(const struct plan *plan)
{
    int best = plan->ndim - 1;
    ptrdiff_t least = PTRDIFF_MAX;
    for (int d = plan->ndim - 1; d >= 0; d--) {
        ptrdiff_t stride = plan->dim[d].src < 0 ? -plan->dim[d].src : plan->dim[d].src;
        if (stride != 0 && stride < least) {
            least = stride;
            best = d;
        }
    }
    return best;
}

static void run_plan(const struct vtrn_kern *kern, const struct plan *plan)
{
    int last = plan->ndim - 1, inner = source_dim(plan), outer[PLAN_DIMS], outers = 0;
    int64_t index[PLAN_DIMS] = { 0 };
    uint8_t *dst = plan->dst;
    const uint8_t *src = plan->src;
    if (plan->ndim == 0) {
        memcpy(dst, src, plan->unit);
        return;
    }
    if (plan->unit >= 64) inner = last; /* whole lines on both sides: dst order is as good as any */
    for (int d = 0; d < last; d++)
        if (d != inner) outer[outers++] = d;
    for (;;) {
        if (inner == last) move_row(dst, plan->dim[last].dst, src, plan->dim[last].src, plan->dim[last].count, plan->unit);
        else move_block(kern, dst, src, &plan->dim[last], &plan->dim[inner], plan->unit);
        int k = outers - 1;
        for (; k >= 0; k--) {
            const struct plan_dim *dim = &plan->dim[outer[k]];
            dst += dim->dst;
            src += dim->src;
            if (++index[k] < dim->count) break;
            dst -= dim->dst * (ptrdiff_t)dim->count;
            src -= dim->src * (ptrdiff_t)dim->count;
            index[k] = 0;
        }
        if (k < 0) return;
    }
}

/* ---- splitting a plan over the pool: along its longest dim ---- */
struct split {
    const struct vtrn_kern *kern;
    const struct plan *plan;
    int dim; /* -1: a single run of bytes */
};

static void run_part(void *arg, int part, int parts)
{
    const struct split *split = arg;
    struct plan piece = *split->plan;
    int64_t whole = split->dim < 0 ? (int64_t)(piece.unit / 64) : piece.dim[split->dim].count;
    int64_t from = whole * part / parts, to = whole * (part + 1) / parts;
    if (split->dim < 0) {
        size_t end = part + 1 == parts ? piece.unit : (size_t)to * 64;
        memcpy(piece.dst + from * 64, piece.src + from * 64, end - (size_t)from * 64);
        return;
    }
    if (from == to) return;
    piece.dst += from * piece.dim[split->dim].dst;
    piece.src += from * piece.dim[split->dim].src;
    piece.dim[split->dim].count = to - from;
    run_plan(split->kern, &piece);
}

static void run_split(struct vtrn_core *core, const struct plan *plan)
{
    int threads = vtrn_pool_threads(core->options.pool);
    size_t bytes = plan->unit;
    struct split split = { core->kern, plan, -1 };
    for (int d = 0; d < plan->ndim; d++) {
        bytes *= (size_t)plan->dim[d].count;
        if (split.dim < 0 || plan->dim[d].count > plan->dim[split.dim].count) split.dim = d;
    }
    if (threads == 1 || bytes < split_bytes) run_plan(core->kern, plan);
    else vtrn_pool_run(core->options.pool, threads, run_part, &split);
}

/* ---- in row-major order, run by run ---- */
static void copy_in_order(const struct exec_walk *dst, const struct exec_walk *src)
{
    uint32_t packed[WALK_CHUNK];
    for (int64_t e = 0; e < src->elems;) {
        int64_t n = src->elems - e < WALK_CHUNK ? src->elems - e : WALK_CHUNK;
        exec_walk_write(dst, e, n, exec_walk_read(src, e, n, packed));
        e += n;
    }
}

/* ---- rows by index on one side or on both ---- */
struct row_copy {
    struct vtrn_core *core;
    const struct exec_walk *dst, *src;
    int64_t rows, row_elems;
    struct plan plan;               /* of row 0; others differ in the addresses alone */
    ptrdiff_t dst_shift, src_shift; /* from a row's base to where the plan starts */
};

static void copy_rows(void *arg, int part, int parts)
{
    const struct row_copy *copy = arg;
    struct plan plan = copy->plan;
    int64_t to = copy->rows * (part + 1) / parts;
    for (int64_t row = copy->rows * part / parts; row < to; row++) {
        uint8_t *dst = exec_walk_at(copy->dst, row * copy->row_elems);
        const uint8_t *src = exec_walk_at(copy->src, row * copy->row_elems);
        if (!dst || !src) continue;
        plan.dst = dst + copy->dst_shift;
        plan.src = src + copy->src_shift;
        run_plan(copy->core->kern, &plan);
    }
}

/* Row by row without a common cut: elements of rows that do not take part must stay. */
static void copy_rows_in_order(const struct exec_walk *dst, const struct exec_walk *src)
{
    uint32_t packed[WALK_CHUNK];
    for (int64_t e = 0; e < src->elems;) {
        int64_t n = src->elems - e < WALK_CHUNK ? src->elems - e : WALK_CHUNK;
        int64_t dst_left = dst->row_elems - e % dst->row_elems, src_left = src->row_elems - e % src->row_elems;
        if (n > dst_left) n = dst_left;
        if (n > src_left) n = src_left;
        if (exec_walk_at(dst, e) && exec_walk_at(src, e)) exec_walk_write(dst, e, n, exec_walk_read(src, e, n, packed));
        e += n;
    }
}

static bool plan_rows(struct row_copy *copy)
{
    const struct exec_walk *dst = copy->dst, *src = copy->src, *by_index = dst->row_offset ? dst : src;
    struct exec_walk dst_row, src_row;
    copy->rows = by_index->rows;
    copy->row_elems = by_index->row_elems;
    if (!exec_walk_slice(dst, 0, copy->row_elems, &dst_row) || !exec_walk_slice(src, 0, copy->row_elems, &src_row)) return false;
    /* Row 0 may not take part: plan on addresses that are only compared, never followed. */
    dst_row.base = dst->base;
    src_row.base = src->base;
    if (!make_plan(&dst_row, &src_row, &copy->plan)) return false;
    copy->dst_shift = copy->plan.dst - dst->base;
    copy->src_shift = copy->plan.src - src->base;
    return true;
}

void exec_copy_raw(struct vtrn_core *core, const struct exec_walk *dst, const struct exec_walk *src)
{
    struct plan plan;
    VTRN_ASSERT(dst->elems == src->elems && dst->elem_bytes == src->elem_bytes);
    if (dst->elems == 0) return;
    if (dst->row_offset || src->row_offset) {
        struct row_copy copy = { .core = core, .dst = dst, .src = src };
        size_t bytes = (size_t)dst->elems * dst->elem_bytes;
        /* Scattered rows may be the same row: their order counts. */
        int parts = dst->row_offset || bytes < split_bytes ? 1 : vtrn_pool_threads(core->options.pool);
        if (!plan_rows(&copy)) copy_rows_in_order(dst, src);
        else if (parts == 1) copy_rows(&copy, 0, 1);
        else vtrn_pool_run(core->options.pool, parts, copy_rows, &copy);
    } else if (make_plan(dst, src, &plan)) {
        run_split(core, &plan);
    } else {
        copy_in_order(dst, src);
    }
}
