/* Operands as flat sequences of elements.
 *
 * A walk is what remains of an access pattern once only the order of its elements matters: base, merged dims, element
 * size. The copies of copy.c and the sums of dma_compute.c are written on walks, so that any shape on one side meets any
 * shape on the other. Where the pattern gives the rows' starts by index (VECTOR), the walk keeps the rows apart.
 *
 * Knows addresses and strides only: no dtype rules (convert.c), no instructions. */
#include "exec/walk_int.h"

/* Adds a dim inside the ones that are there. */
static void push_dim(struct exec_walk *walk, ptrdiff_t stride, int64_t count)
{
    if (count == 1) return;
    if (walk->ndim > 0 && walk->dim[walk->ndim - 1].stride == stride * (ptrdiff_t)count) {
        walk->dim[walk->ndim - 1].stride = stride;
        walk->dim[walk->ndim - 1].count *= count;
        return;
    }
    VTRN_ASSERT(walk->ndim < WALK_DIMS);
    walk->dim[walk->ndim].stride = stride;
    walk->dim[walk->ndim++].count = count;
}

static void count_elems(struct exec_walk *walk)
{
    walk->row_elems = 1;
    for (int d = 0; d < walk->ndim; d++) walk->row_elems *= walk->dim[d].count;
    walk->elems = walk->rows * walk->row_elems;
}

void exec_walk_view(struct exec_walk *walk, const struct exec_view *view)
{
    walk->base = view->base;
    walk->row_offset = view->row_offset;
    walk->rows = view->row_offset ? view->parts : 1;
    walk->ndim = 0;
    walk->dtype = view->dtype;
    walk->elem_bytes = view->elem_bytes;
    if (!view->row_offset) push_dim(walk, view->pitch, view->parts);
    for (int d = 0; d < view->ndim; d++) push_dim(walk, view->dim[d].stride, view->dim[d].count);
    count_elems(walk);
}

void exec_walk_axes(struct exec_walk *walk, const struct vtrn_ap *ap, const struct exec_view *view, const int *axes)
{
    walk->base = view->base;
    walk->row_offset = NULL;
    walk->rows = 1;
    walk->ndim = 0;
    walk->dtype = view->dtype;
    walk->elem_bytes = view->elem_bytes;
    for (int d = 0; d < ap->ndim; d++) {
        int axis = axes[d];
        ptrdiff_t stride = axis == 0 ? view->pitch : (ptrdiff_t)(ap->dim[axis].stride * view->elem_bytes);
        push_dim(walk, stride, ap->dim[axis].count);
    }
    count_elems(walk);
}

void exec_walk_packed(struct exec_walk *walk, void *bytes, int64_t elems, uint8_t dtype, uint8_t elem_bytes)
{
    walk->base = bytes;
    walk->row_offset = NULL;
    walk->rows = 1;
    walk->ndim = 0;
    walk->dtype = dtype;
    walk->elem_bytes = elem_bytes;
    push_dim(walk, elem_bytes, elems);
    count_elems(walk);
}

void *exec_walk_alloc(struct vtrn_core *core, const struct exec_walk *like, struct exec_walk *packed_out)
{
    size_t size_bytes;
    void *bytes = NULL;
    if (vtrn_mul_size((size_t)like->elems, like->elem_bytes, &size_bytes)) bytes = vtrn_alloc_aligned(size_bytes, 64);
    if (!bytes) {
        vtrn_fail(&core->err, VTRN_NOMEM, "no memory for a copy of %lld elements", (long long)like->elems);
        return NULL;
    }
    exec_walk_packed(packed_out, bytes, like->elems, like->dtype, like->elem_bytes);
    return bytes;
}

/* ---- positions ---- */
struct cursor {
    const struct exec_walk *walk;
    uint8_t *at; /* NULL: in a row that does not take part */
    int64_t row, index[WALK_DIMS];
};

static uint8_t *row_start(const struct exec_walk *walk, int64_t row)
{
    if (!walk->row_offset) return walk->base;
    return walk->row_offset[row] < 0 ? NULL : walk->base + walk->row_offset[row];
}

static void seek(struct cursor *cursor, const struct exec_walk *walk, int64_t e)
{
    ptrdiff_t offset = 0;
    cursor->walk = walk;
    cursor->row = walk->row_offset ? e / walk->row_elems : 0;
    if (walk->row_offset) e %= walk->row_elems;
    for (int d = walk->ndim - 1; d >= 0; d--) {
        cursor->index[d] = e % walk->dim[d].count;
        e /= walk->dim[d].count;
        offset += cursor->index[d] * walk->dim[d].stride;
    }
    cursor->at = row_start(walk, cursor->row);
    if (cursor->at) cursor->at += offset;
}

/* Elements left in the innermost dim, and its stride. */
static int64_t run_left(const struct cursor *cursor, ptrdiff_t *stride_out)
{
    const struct exec_walk *walk = cursor->walk;
    int last = walk->ndim - 1;
    *stride_out = last < 0 ? walk->elem_bytes : walk->dim[last].stride;
    return last < 0 ? 1 : walk->dim[last].count - cursor->index[last];
}

/* Moves on by n <= run_left elements. */
static void advance(struct cursor *cursor, int64_t n)
{
    const struct exec_walk *walk = cursor->walk;
    ptrdiff_t move = 0;
    int d = walk->ndim - 1;
    if (d >= 0) {
        cursor->index[d] += n;
        move = (ptrdiff_t)n * walk->dim[d].stride;
        while (d >= 0 && cursor->index[d] == walk->dim[d].count) {
            move -= (ptrdiff_t)walk->dim[d].count * walk->dim[d].stride;
            cursor->index[d] = 0;
            if (--d >= 0) {
                cursor->index[d]++;
                move += walk->dim[d].stride;
            }
        }
    }
    if (d >= 0) {
        if (cursor->at) cursor->at += move;
    } else if (walk->row_offset && ++cursor->row < walk->rows) { /* the row is done */
        cursor->at = row_start(walk, cursor->row);
    }
}

uint8_t *exec_walk_at(const struct exec_walk *walk, int64_t e)
{
    struct cursor cursor;
    seek(&cursor, walk, e);
    return cursor.at;
}

int64_t exec_walk_run(const struct exec_walk *walk, int64_t e)
{
    int last = walk->ndim - 1;
    if (last < 0 || walk->dim[last].stride != walk->elem_bytes) return 1;
    return walk->dim[last].count - e % walk->dim[last].count;
}

static void copy_elems(uint8_t *dst, ptrdiff_t dst_stride, const uint8_t *src, ptrdiff_t src_stride, int64_t n, int bytes)
{
    if (dst_stride == bytes && src_stride == bytes) {
        memcpy(dst, src, (size_t)n * (size_t)bytes);
        return;
    }
    switch (bytes) {
    case 1:
        for (; n > 0; n--, dst += dst_stride, src += src_stride) *dst = *src;
        break;
    case 2:
        for (; n > 0; n--, dst += dst_stride, src += src_stride) memcpy(dst, src, 2);
        break;
    default:
        VTRN_ASSERT(bytes == 4);
        for (; n > 0; n--, dst += dst_stride, src += src_stride) memcpy(dst, src, 4);
    }
}

const void *exec_walk_read(const struct exec_walk *walk, int64_t e0, int64_t n, void *scratch)
{
    struct cursor cursor;
    uint8_t *out = scratch;
    if (n == 0) return scratch;
    seek(&cursor, walk, e0);
    if (cursor.at && exec_walk_run(walk, e0) >= n) return cursor.at;
    while (n > 0) {
        ptrdiff_t stride;
        int64_t run = run_left(&cursor, &stride);
        if (run > n) run = n;
        if (cursor.at) copy_elems(out, walk->elem_bytes, cursor.at, stride, run, walk->elem_bytes);
        out += run * walk->elem_bytes;
        n -= run;
        if (n > 0) advance(&cursor, run);
    }
    return scratch;
}

void exec_walk_write(const struct exec_walk *walk, int64_t e0, int64_t n, const void *packed)
{
    struct cursor cursor;
    const uint8_t *in = packed;
    if (n == 0) return;
    seek(&cursor, walk, e0);
    while (n > 0) {
        ptrdiff_t stride;
        int64_t run = run_left(&cursor, &stride);
        if (run > n) run = n;
        if (cursor.at && cursor.at != in) copy_elems(cursor.at, stride, in, walk->elem_bytes, run, walk->elem_bytes);
        in += run * walk->elem_bytes;
        n -= run;
        if (n > 0) advance(&cursor, run);
    }
}

bool exec_walk_slice(const struct exec_walk *walk, int64_t e0, int64_t n, struct exec_walk *slice_out)
{
    int64_t inner = 1;
    int d = walk->ndim;
    if (walk->row_offset && walk->row_elems % n != 0) return false;
    while (d > 0 && n % (inner * walk->dim[d - 1].count) == 0) inner *= walk->dim[--d].count;
    int64_t part = n / inner; /* of the next dim out */
    if (part > 1 && (d == 0 || walk->dim[d - 1].count % part != 0)) return false;
    struct exec_walk slice = { .rows = 1, .dtype = walk->dtype, .elem_bytes = walk->elem_bytes };
    slice.base = exec_walk_at(walk, e0);
    if (part > 1) push_dim(&slice, walk->dim[d - 1].stride, part);
    for (; d < walk->ndim; d++) push_dim(&slice, walk->dim[d].stride, walk->dim[d].count);
    count_elems(&slice);
    VTRN_ASSERT(slice.elems == n);
    *slice_out = slice;
    return true;
}

/* ---- who shares bytes with whom ---- */
bool exec_walk_injective(const struct exec_walk *walk)
{
    struct {
        ptrdiff_t stride;
        int64_t count;
    } dim[WALK_DIMS];
    ptrdiff_t extent = walk->elem_bytes;
    if (walk->row_offset) return false;    /* indices may repeat */
    for (int d = 0; d < walk->ndim; d++) { /* by ascending stride */
        ptrdiff_t stride = walk->dim[d].stride < 0 ? -walk->dim[d].stride : walk->dim[d].stride;
        int at = d;
        for (; at > 0 && dim[at - 1].stride > stride; at--) dim[at] = dim[at - 1];
        dim[at].stride = stride;
        dim[at].count = walk->dim[d].count;
    }
    for (int d = 0; d < walk->ndim; d++) {
        if (dim[d].stride < extent) return false;
        extent += dim[d].stride * (ptrdiff_t)(dim[d].count - 1);
    }
    return true;
}

bool exec_walk_same(const struct exec_walk *a, const struct exec_walk *b)
{
    if (a->base != b->base || a->elem_bytes != b->elem_bytes || a->rows != b->rows || a->ndim != b->ndim) return false;
    for (int d = 0; d < a->ndim; d++)
        if (a->dim[d].stride != b->dim[d].stride || a->dim[d].count != b->dim[d].count) return false;
    if (!a->row_offset != !b->row_offset) return false;
    return !a->row_offset || memcmp(a->row_offset, b->row_offset, (size_t)a->rows * sizeof *a->row_offset) == 0;
}

/* Bytes from the lowest to past the highest element of dims [from, ndim), relative to the base. */
static void span(const struct exec_walk *walk, int from, ptrdiff_t *low_out, ptrdiff_t *high_out)
{
    ptrdiff_t low = 0, high = walk->elem_bytes;
    for (int d = from; d < walk->ndim; d++) {
        ptrdiff_t reach = walk->dim[d].stride * (ptrdiff_t)(walk->dim[d].count - 1);
        if (reach < 0) low += reach;
        else high += reach;
    }
    *low_out = low;
    *high_out = high;
}

static bool intervals_meet(uintptr_t a_low, uintptr_t a_high, uintptr_t b_low, uintptr_t b_high)
{
    return a_low < b_high && b_low < a_high;
}

static ptrdiff_t floor_div(ptrdiff_t a, ptrdiff_t b) { return a / b - (a % b != 0 && a < 0); }

/* Two patterns of rows `pitch` apart (a partition's pitch, a matrix's row): row ra of a and row rb of b meet when
 * a_low < k*pitch + b_high and k*pitch + b_low < a_high for k = rb - ra; the offsets are relative to a's base. */
static bool rows_meet(const struct exec_walk *a, const struct exec_walk *b, ptrdiff_t pitch)
{
    ptrdiff_t a_low, a_high, b_low, b_high, delta = b->base - a->base;
    span(a, 1, &a_low, &a_high);
    span(b, 1, &b_low, &b_high);
    b_low += delta;
    b_high += delta;
    ptrdiff_t first = floor_div(a_low - b_high, pitch) + 1; /* smallest k with k*pitch > a_low - b_high */
    ptrdiff_t last = floor_div(a_high - b_low - 1, pitch);  /* largest k with k*pitch < a_high - b_low */
    if (first < -(ptrdiff_t)(a->dim[0].count - 1)) first = -(ptrdiff_t)(a->dim[0].count - 1);
    if (last > (ptrdiff_t)(b->dim[0].count - 1)) last = (ptrdiff_t)(b->dim[0].count - 1);
    return first <= last;
}

bool exec_walk_overlap(const struct exec_walk *a, const struct exec_walk *b)
{
    uintptr_t low[2] = { UINTPTR_MAX, UINTPTR_MAX }, high[2] = { 0, 0 };
    const struct exec_walk *walk[2] = { a, b };
    for (int k = 0; k < 2; k++) {
        ptrdiff_t span_low, span_high;
        span(walk[k], 0, &span_low, &span_high);
        for (int64_t row = 0; row < walk[k]->rows; row++) {
            const uint8_t *at = row_start(walk[k], row);
            if (!at) continue;
            if ((uintptr_t)(at + span_low) < low[k]) low[k] = (uintptr_t)(at + span_low);
            if ((uintptr_t)(at + span_high) > high[k]) high[k] = (uintptr_t)(at + span_high);
        }
    }
    if (!intervals_meet(low[0], high[0], low[1], high[1])) return false;
    if (a->row_offset || b->row_offset || a->ndim == 0 || b->ndim == 0) return true;
    if (a->dim[0].stride != b->dim[0].stride || a->dim[0].stride <= 0) return true;
    return rows_meet(a, b, a->dim[0].stride);
}
