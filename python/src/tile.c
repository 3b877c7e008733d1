/* Tiles of the old namespace: a tensor indexed by index expressions, slices, numbers and tiles of indices becomes a view. A
 * tensor may have its partition dimension anywhere (block dimensions before it); a view whose partition dimension is the
 * first is a tile, which instructions take. Indices may leave the tensor where a mask keeps them from being used, so the
 * expressions are kept with the view and checked when it is used. Boxes of a mask select parts of a tile.
 * Also here: undoing the last instructions, so that `t[...] = nisa.op(...)` writes to t at once. */
#include "affine.h"

struct item { /* one dimension's index */
    struct nki_affine *index; /* owned: expression, slice or number */
    const struct nki_tensor *tile; /* or a tile of indices, or both when it is one element; borrowed */
    int64_t reach;                 /* then the expression's largest value */
    bool is_slice, dropped;        /* a number: its dimension goes */
};
struct indexing {
    const struct nki_tensor *t;
    int par; /* partition dimension of t, -1: HBM */
    struct item item[EXT_RANK];
    int64_t count[EXT_RANK];                        /* of the broadcast expressions */
    int slice_dim[EXT_RANK];                        /* dimension of the result that a slice is */
    int advanced, expressions;                      /* dimensions with and without those of slices */
    bool has_expression, has_vector;
    struct nki_tensor *v;
    int v_par;
    int shift; /* dimensions put before those of the key: 0 or 1 */
    int64_t *table[EXT_RANK]; /* uneven steps of a result dimension */
};

static int index_fail(const struct nki_tensor *t, const char *fmt, ...) VTRN_PRINTF(2, 3);
static int index_fail(const struct nki_tensor *t, const char *fmt, ...)
{
    char why[300], tensor[300];
    va_list args;

    va_start(args, fmt);
    vsnprintf(why, sizeof why, fmt, args);
    va_end(args);
    return ext_raise(ext_errors.index, "index", "%s; the tensor is %s", why, ext_tensor_text(t, tensor, sizeof tensor));
}

/* ---------------------------------------------------------------- reading the key */
static struct nki_affine *new_range(int64_t start, int64_t count, int64_t step)
{
    struct nki_affine *x = ext_affine_new(1);

    if (!x) return NULL;
    x->base = start;
    x->count[0] = count;
    x->stride[0] = count > 1 ? step : 0;
    return x;
}

static int bound_of(PyObject *obj, int64_t size, int64_t missing, int64_t *out)
{
    Py_ssize_t value;

    *out = missing;
    if (obj == Py_None) return 0;
    value = PyNumber_AsSsize_t(obj, PyExc_IndexError);
    if (value == -1 && PyErr_Occurred()) return -1;
    *out = value < 0 ? value + size : value;
    return 0;
}

/* Unlike Python's, a slice that ends behind the dimension keeps its size: a mask may say what is used. */
static int read_slice(struct indexing *x, struct item *item, const PySliceObject *slice, int64_t size)
{
    int64_t start, stop, step;

    if (bound_of(slice->step, 0, 1, &step) < 0 || bound_of(slice->start, size, 0, &start) < 0 ||
        bound_of(slice->stop, size, size, &stop) < 0)
        return -1;
    if (step < 1) return index_fail(x->t, "a slice with step %lld; it must be at least 1", (long long)step);
    if (stop <= start) return index_fail(x->t, "the slice [%lld:%lld] is empty", (long long)start, (long long)stop);
    item->index = new_range(start, (stop - start + step - 1) / step, step);
    item->is_slice = true;
    return item->index ? 0 : -1;
}

static void range_of(const struct nki_affine *index, int64_t *low, int64_t *high)
{
    *low = *high = index->base;
    for (int k = 0; k < index->ndim; k++) {
        int64_t least, most;

        ext_affine_range(index, k, 0, index->count[k], &least, &most);
        *low += least;
        *high += most;
    }
}

/* An expression whose origin is an element of a tile: what the chip adds stays in bounds when the expression's own does. */
static int read_sum(struct indexing *x, int d, struct nki_affine *index)
{
    struct item *item = &x->item[d];
    int64_t low, high, size = x->t->shape[d];

    if (ext_tensor_elems(item->tile) != 1)
        return index_fail(item->tile, "only one element of a tile, not all, can be added to an index expression");
    range_of(index, &low, &high);
    if (low < 0 || high >= size)
        return index_fail(x->t, "indices %lld..%lld of dimension %d, to which a tile is added, are outside 0..%lld", (long long)low,
                          (long long)high, d, (long long)size - 1);
    item->index = (struct nki_affine *)Py_NewRef((PyObject *)index);
    item->reach = high;
    x->has_expression = true;
    return 0;
}

static int read_item(struct indexing *x, int d, PyObject *obj)
{
    struct item *item = &x->item[d];
    int64_t size = x->t->shape[d], value;

    if (obj == NULL) {
        item->is_slice = true;
        item->index = new_range(0, size, 1);
        return item->index ? 0 : -1;
    }
    if (PySlice_Check(obj)) return read_slice(x, item, (PySliceObject *)obj, size);
    if (Py_TYPE(obj) == &nki_ds_type && PyLong_Check(((struct nki_ds *)obj)->start)) {
        item->is_slice = true;
        item->index = new_range(PyLong_AsLongLong(((struct nki_ds *)obj)->start), ((struct nki_ds *)obj)->size, 1);
        return item->index ? 0 : -1;
    }
    if (IS_AFFINE(obj)) {
        item->index = (struct nki_affine *)Py_NewRef(obj);
        x->has_expression = true;
        return 0;
    }
    if (IS_TENSOR(obj)) {
        item->tile = (struct nki_tensor *)obj;
        return 0;
    }
    if (PyTuple_Check(obj) && PyTuple_GET_SIZE(obj) == 2 && IS_TENSOR(PyTuple_GET_ITEM(obj, 0)) &&
        IS_AFFINE(PyTuple_GET_ITEM(obj, 1))) { /* their sum */
        item->tile = (struct nki_tensor *)PyTuple_GET_ITEM(obj, 0);
        return read_sum(x, d, (struct nki_affine *)PyTuple_GET_ITEM(obj, 1));
    }
    if (PyBool_Check(obj) || !PyIndex_Check(obj))
        return ext_raise(ext_errors.type, "index",
                         "%.100s is not an index: use numbers, slices, nl.ds, nl.arange expressions, or a tile of indices",
                         Py_TYPE(obj)->tp_name);
    value = PyNumber_AsSsize_t(obj, PyExc_IndexError);
    if (value == -1 && PyErr_Occurred()) return -1;
    item->index = ext_affine_new(0);
    if (!item->index) return -1;
    item->index->base = value < 0 ? value + size : value;
    item->dropped = true;
    return 0;
}

static int read_key(struct indexing *x, PyObject *key)
{
    bool is_tuple = PyTuple_Check(key);
    Py_ssize_t n = is_tuple ? PyTuple_GET_SIZE(key) : 1;
    int taken = 0, d = 0;
    bool ellipsis = false;

    for (Py_ssize_t i = 0; i < n; i++) taken += (is_tuple ? PyTuple_GET_ITEM(key, i) : key) != Py_Ellipsis;
    if (taken > x->t->ndim) return index_fail(x->t, "%d indices for %d dimensions", taken, x->t->ndim);
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *obj = is_tuple ? PyTuple_GET_ITEM(key, i) : key;

        if (obj != Py_Ellipsis) {
            if (read_item(x, d++, obj) < 0) return -1;
            continue;
        }
        if (ellipsis) return index_fail(x->t, "more than one ...");
        ellipsis = true;
        for (int left = x->t->ndim - taken; left > 0; left--)
            if (read_item(x, d++, NULL) < 0) return -1;
    }
    while (d < x->t->ndim)
        if (read_item(x, d++, NULL) < 0) return -1;
    return 0;
}

/* ---------------------------------------------------------------- the shape of the result */
static int broadcast_shape(struct indexing *x, const int64_t *count, int ndim)
{
    int64_t old[EXT_RANK];
    int rank = ndim > x->advanced ? ndim : x->advanced;

    memcpy(old, x->count, sizeof old);
    for (int d = 0; d < rank; d++) {
        int a = d - (rank - x->advanced), b = d - (rank - ndim);
        int64_t na = a < 0 ? 1 : old[a], nb = b < 0 ? 1 : count[b];

        if (na != nb && na != 1 && nb != 1)
            return index_fail(x->t, "index expressions of sizes %lld and %lld in dimension %d do not broadcast", (long long)na,
                              (long long)nb, d);
        x->count[d] = na > nb ? na : nb;
    }
    x->advanced = rank;
    return 0;
}

static bool is_one(const struct nki_tensor *tile) { return ext_tensor_elems(tile) == 1; }

static int shape_advanced(struct indexing *x)
{
    for (int d = 0; d < x->t->ndim; d++) {
        const struct item *item = &x->item[d];

        if (item->tile && !is_one(item->tile)) {
            x->has_expression = x->has_vector = true;
            if (broadcast_shape(x, item->tile->shape, item->tile->ndim) < 0) return -1;
        } else if (item->index && !item->is_slice && broadcast_shape(x, item->index->count, item->index->ndim) < 0) {
            return -1;
        }
    }
    return 0;
}

static int count_slices(const struct indexing *x)
{
    int slices = 0;

    for (int d = 0; d < x->t->ndim; d++) slices += x->item[d].is_slice;
    return slices;
}

/* Slices beside expressions: where the last dimensions of the expressions are 1 they stand for the slices (t[i_p, 0:n] with
 * i_p of (128, 1)), likewise other dimensions of 1 when there are as many as slices (t[0:n, i_f] with i_f of (1, 512)); else
 * the slices' dimensions come behind. Without expressions each slice is a dimension in its order. */
static int place_slices(struct indexing *x)
{
    int slices = count_slices(x), last = 0, ones = 0, next = x->has_expression ? x->advanced : 0;
    bool in_ones;

    for (int d = 0; x->has_expression && d < x->advanced; d++) ones += x->count[d] == 1;
    while (last < slices && last < x->advanced - 1 && x->count[x->advanced - 1 - last] == 1) last++;
    if (x->has_expression && last == slices) next -= slices;
    in_ones = x->has_expression && last < slices && ones == slices && x->advanced > slices;
    if (in_ones) next = 0;
    if (!in_ones && next + slices > EXT_RANK) return index_fail(x->t, "more than %d dimensions", EXT_RANK);
    for (int d = 0; d < x->t->ndim; d++) {
        if (!x->item[d].is_slice) continue;
        while (in_ones && x->count[next] != 1) next++;
        x->slice_dim[d] = next;
        x->count[next++] = x->item[d].index->count[0];
    }
    if (!in_ones) x->advanced = next;
    return 0;
}

/* The dimension of the result that dimension k of an item's expression is. */
static int result_dim(const struct indexing *x, int d, int k)
{
    const struct item *item = &x->item[d];

    return item->is_slice ? x->slice_dim[d] : k + x->expressions - item->index->ndim;
}

static int add_terms(struct indexing *x, int d)
{
    const struct item *item = &x->item[d];
    struct nki_tensor *v = x->v;
    int64_t step = x->t->stride[d];

    v->offset += item->index->base * step;
    for (int k = 0; k < item->index->ndim; k++) {
        int to = result_dim(x, d, k);
        int64_t n = item->index->count[k];

        if (n == 1) continue;
        if (d == x->par && (item->index->table[k] || item->index->stride[k])) x->v_par = to;
        if (!item->index->table[k]) {
            v->stride[to] += item->index->stride[k] * step;
            continue;
        }
        if (!x->table[to]) x->table[to] = PyMem_Calloc((size_t)n, sizeof **x->table);
        if (!x->table[to]) {
            PyErr_NoMemory();
            return -1;
        }
        for (int64_t i = 0; i < n; i++) x->table[to][i] += item->index->table[k][i] * step;
    }
    return 0;
}

static int add_tile(struct indexing *x, int d)
{
    const struct nki_tensor *tile = x->item[d].tile;
    int64_t step = x->t->stride[d];
    bool vector = !is_one(tile);

    if (vtrn_dtypes[tile->dtype].cls != VTRN_CLASS_INT && vtrn_dtypes[tile->dtype].cls != VTRN_CLASS_UINT)
        return index_fail(tile, "a tile of indices must have an integer dtype");
    if (!vector && d == x->par)
        return index_fail(x->t, "the partition cannot be chosen by a value that only the chip knows");
    if (!vector)
        return ext_view_add_dyn(x->v, VTRN_DYN_SCALAR, (PyObject *)tile, step, x->t->shape[d] - x->item[d].reach);
    if (x->par >= 0) return index_fail(x->t, "rows chosen by a tile of indices need a tensor in HBM");
    if (ext_tensor_elems(tile) != tile->shape[0])
        return index_fail(tile, "a tile of indices must be (P, 1), one index for each partition");
    return ext_view_add_dyn(x->v, VTRN_DYN_VECTOR, (PyObject *)tile, step, x->t->shape[d]);
}

/* ---------------------------------------------------------------- uneven steps */
/* Splits dimension d, whose steps are a table, into evenly spaced parts: (n / inner, inner). */
static int split_dim(struct indexing *x, int d)
{
    struct nki_tensor *v = x->v;
    int64_t n = v->shape[d], *table = x->table[d], inner;

    for (int64_t i = 0; i < n; i++) table[i] += i * v->stride[d];
    for (inner = n / 2; inner >= 1; inner--) {
        int64_t outer_step, inner_step, i;

        if (n % inner) continue;
        outer_step = table[inner] - table[0];
        inner_step = inner > 1 ? table[1] - table[0] : 0;
        for (i = 0; i < n && table[i] == table[0] + i / inner * outer_step + i % inner * inner_step; i++) continue;
        if (i < n) continue;
        if (v->ndim == EXT_RANK) break;
        for (int k = v->ndim; k > d + 1; k--) {
            v->shape[k] = v->shape[k - 1];
            v->stride[k] = v->stride[k - 1];
        }
        v->ndim++;
        v->offset += table[0];
        v->shape[d] = n / inner;
        v->stride[d] = outer_step;
        v->shape[d + 1] = inner;
        v->stride[d + 1] = inner_step;
        return 0;
    }
    return index_fail(x->t, "the index expression of dimension %d is no evenly spaced pattern", d);
}

static int split_tables(struct indexing *x)
{
    for (int d = x->v->ndim - 1; d >= 0; d--) {
        if (!x->table[d]) continue;
        if (d == 0 || d == x->v_par) return index_fail(x->t, "the partitions must be evenly spaced");
        if (split_dim(x, d) < 0) return -1;
    }
    return 0;
}

/* ---------------------------------------------------------------- the view */
static int fill_view(struct indexing *x)
{
    struct nki_tensor *v = x->v;

    if (shape_advanced(x) < 0) return -1;
    if (!x->has_expression) x->advanced = 0;
    x->expressions = x->advanced;
    if (place_slices(x) < 0) return -1;
    v->ndim = (uint8_t)x->advanced;
    for (int d = 0; d < v->ndim; d++) {
        v->shape[d] = x->count[d];
        v->stride[d] = 0;
    }
    for (int d = 0; d < x->t->ndim; d++) {
        const struct item *item = &x->item[d];

        if ((item->tile && add_tile(x, d) < 0) || (item->index && add_terms(x, d) < 0)) return -1;
        if (item->is_slice && d == x->par && x->v_par < 0) x->v_par = x->slice_dim[d]; /* a partition dimension of size 1 */
    }
    return 0;
}

static int insert_dim(struct indexing *x, int at)
{
    struct nki_tensor *v = x->v;

    if (v->ndim == EXT_RANK) return index_fail(x->t, "more than %d dimensions", EXT_RANK);
    for (int d = v->ndim; d > at; d--) {
        v->shape[d] = v->shape[d - 1];
        v->stride[d] = v->stride[d - 1];
        x->table[d] = x->table[d - 1];
    }
    x->table[at] = NULL;
    v->shape[at] = v->stride[at] = 1;
    v->ndim++;
    return 0;
}

/* On chip a view has a partition dimension, and a free one; in HBM at least one dimension. */
static int complete_dims(struct indexing *x)
{
    struct nki_tensor *v = x->v;

    if (x->par < 0) return v->ndim == 0 ? insert_dim(x, 0) : 0;
    if (x->v_par < 0) { /* one partition */
        if (v->ndim == 0 || !(x->has_expression && v->shape[0] == 1)) {
            if (insert_dim(x, 0) < 0) return -1;
            x->shift = 1;
        }
        x->v_par = 0;
        v->stride[0] = x->t->stride[x->par];
    }
    if (v->shape[x->v_par] == 1) v->stride[x->v_par] = x->t->stride[x->par];
    return v->ndim == 1 ? insert_dim(x, 1) : 0;
}

/* [(dimension, size, expression in the view's dimensions)] of the indices that may leave the tensor; None: none can. */
static PyObject *unproven(const struct indexing *x)
{
    PyObject *list = NULL;

    for (int d = 0; d < x->t->ndim; d++) {
        const struct item *item = &x->item[d];
        struct nki_affine *placed;
        int64_t low, high;
        PyObject *row;

        if (item->tile) continue;
        range_of(item->index, &low, &high);
        if (low >= 0 && high < x->t->shape[d]) continue;
        if (!list && !(list = PyList_New(0))) return NULL;
        if (!x->shift && !item->is_slice && item->index->ndim == x->expressions) {
            placed = (struct nki_affine *)Py_NewRef(item->index);
        } else { /* put where the view has it */
            placed = ext_affine_new(x->v->ndim);
            for (int k = 0; placed && k < item->index->ndim; k++) {
                int to = result_dim(x, d, k) + x->shift;

                placed->count[to] = item->index->count[k];
                placed->stride[to] = item->index->stride[k];
                if (!item->index->table[k]) continue;
                placed->table[to] = PyMem_Malloc((size_t)placed->count[to] * sizeof **placed->table);
                if (placed->table[to])
                    memcpy(placed->table[to], item->index->table[k], (size_t)placed->count[to] * sizeof **placed->table);
            }
            if (placed) placed->base = item->index->base;
        }
        row = placed ? Py_BuildValue("(iLN)", d, (long long)x->t->shape[d], placed) : NULL;
        if (!row || PyList_Append(list, row) < 0) Py_CLEAR(list);
        Py_XDECREF(row);
        if (!list) return NULL;
    }
    return list ? list : Py_NewRef(Py_None);
}

/* tile_view(tensor, partition dimension or -1, key): (view, its partition dimension, unproven indices, shape or None). The
 * shape is given where uneven steps made the view's own differ from what the expressions say. */
static PyObject *tile_view(PyObject *module, PyObject *args)
{
    struct indexing x = { .v_par = -1 };
    PyObject *tensor, *key, *checks = NULL, *shape = NULL, *result = NULL;
    int64_t said[EXT_RANK];
    int said_ndim;

    (void)module;
    if (!PyArg_ParseTuple(args, "O!iO:tile_view", &nki_tensor_type, &tensor, &x.par, &key)) return NULL;
    x.t = (struct nki_tensor *)tensor;
    x.v = ext_view_of(x.t);
    if (!x.v) return NULL;
    for (int d = 0; d < EXT_RANK; d++) x.count[d] = 1;
    if (read_key(&x, key) < 0 || fill_view(&x) < 0) goto done;
    if (complete_dims(&x) < 0 || !(checks = unproven(&x))) goto done;
    said_ndim = x.v->ndim;
    memcpy(said, x.v->shape, sizeof said);
    if (split_tables(&x) < 0) goto done;
    shape = x.v->ndim == said_ndim ? Py_NewRef(Py_None) : ext_dims_tuple(said, said_ndim);
    if (shape) result = Py_BuildValue("(OiOO)", x.v, x.v_par, checks, shape);
done:
    for (int d = 0; d < EXT_RANK; d++) {
        Py_XDECREF(x.item[d].index);
        PyMem_Free(x.table[d]);
    }
    Py_XDECREF(shape);
    Py_XDECREF(checks);
    Py_DECREF(x.v);
    return result;
}

/* ---------------------------------------------------------------- parts */
static int read_box(PyObject *starts, PyObject *counts, int64_t *start, int64_t *count)
{
    int n = ext_dims_read(starts, start, EXT_RANK, "box");
    int m = n < 0 ? -1 : ext_dims_read(counts, count, EXT_RANK, "box");

    return m < 0 ? -1 : n;
}

/* tile_check(unproven, starts, counts): every index of the box (None: of all) is inside its dimension. */
static PyObject *tile_check(PyObject *module, PyObject *args)
{
    PyObject *tensor, *checks, *starts, *counts;
    int64_t start[EXT_RANK], count[EXT_RANK];
    int n = 0;

    (void)module;
    if (!PyArg_ParseTuple(args, "O!O!OO:tile_check", &nki_tensor_type, &tensor, &PyList_Type, &checks, &starts, &counts)) return NULL;
    if (starts != Py_None && (n = read_box(starts, counts, start, count)) < 0) return NULL;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(checks); i++) {
        const struct nki_affine *x;
        int64_t low, high;
        long long size;
        PyObject *obj;
        int d;

        if (!PyArg_ParseTuple(PyList_GET_ITEM(checks, i), "iLO", &d, &size, &obj)) return NULL;
        x = (struct nki_affine *)obj;
        low = high = x->base;
        for (int k = 0; k < x->ndim; k++) {
            int64_t least, most;
            bool boxed = starts != Py_None && k < n && x->count[k] > 1;

            ext_affine_range(x, k, boxed ? start[k] : 0, boxed ? count[k] : x->count[k], &least, &most);
            low += least;
            high += most;
        }
        if (low < 0 || high >= size)
            return EXT_NULL(index_fail((struct nki_tensor *)tensor,
                                       "indices %lld..%lld of dimension %d are outside 0..%lld; use mask= or a smaller tile",
                                       (long long)low, (long long)high, d, size - 1));
    }
    Py_RETURN_NONE;
}

/* Dimensions behind the partition are matched from the last one; size 1 repeats. */
static int fit_shape(struct nki_tensor *v, const int64_t *shape, int ndim)
{
    int64_t old_shape[EXT_RANK], old_stride[EXT_RANK];
    int old = v->ndim;

    memcpy(old_shape, v->shape, sizeof old_shape);
    memcpy(old_stride, v->stride, sizeof old_stride);
    while (old > ndim && old_shape[old - 1] == 1) old--;
    if (old > ndim) return -1;
    for (int d = ndim - 1; d >= 1; d--) {
        int from = d - (ndim - old);

        v->shape[d] = from >= 1 ? old_shape[from] : 1;
        v->stride[d] = from >= 1 ? old_stride[from] : 0;
        if (v->shape[d] == 1 && shape[d] > 1) {
            v->shape[d] = shape[d];
            v->stride[d] = 0;
        }
        if (v->shape[d] != shape[d]) return -1;
    }
    if (v->shape[0] != shape[0] && v->shape[0] != 1) return -1;
    v->ndim = (uint8_t)ndim;
    return 0;
}

/* The free dimensions in another shape: merged where they are contiguous and split again. */
static int reshape_free(struct nki_tensor *v, const int64_t *shape, int ndim)
{
    int64_t stride = 1, elems = 1, wanted = 1, inner = 1;

    for (int d = v->ndim - 1; d >= 1; d--) {
        if (v->shape[d] == 1) continue;
        if (elems == 1) stride = v->stride[d];
        else if (v->stride[d] != stride * elems) return -1;
        elems *= v->shape[d];
    }
    for (int d = 1; d < ndim; d++) wanted *= shape[d];
    if (wanted != elems || v->shape[0] != shape[0]) return -1;
    for (int d = ndim - 1; d >= 1; d--) {
        v->shape[d] = shape[d];
        v->stride[d] = stride * inner;
        inner *= shape[d];
    }
    v->ndim = (uint8_t)ndim;
    return 0;
}

static void cut(struct nki_tensor *v, const int64_t *start, const int64_t *count, int n)
{
    for (int d = 0; d < n && d < v->ndim; d++) {
        if (d == 0 && v->shape[0] == 1) continue; /* one partition for all */
        if (d == 0 && ext_view_has_vector(v) && start[0]) continue;
        v->offset += start[d] * v->stride[d];
        v->shape[d] = count[d];
    }
}

/* Rows chosen by a tile of indices: the part has the indices of its rows. */
static int cut_indices(struct nki_tensor *v, int64_t start, int64_t count)
{
    for (int i = 0; i < v->ndyn; i++) {
        struct nki_tensor *part;

        if (v->dyn[i].kind != VTRN_DYN_VECTOR || (start == 0 && ((struct nki_tensor *)v->dyn[i].index)->shape[0] == count)) continue;
        part = ext_view_of((struct nki_tensor *)v->dyn[i].index);
        if (!part) return -1;
        part->offset += start * part->stride[0];
        part->shape[0] = count;
        Py_SETREF(v->dyn[i].index, (PyObject *)part);
    }
    return 0;
}

/* tile_part(view, shape, starts, counts): the view broadcast to the shape, and of that the box (None: all). Partitions are
 * not repeated: a view with one keeps one. None: the shapes do not fit. */
static PyObject *tile_part(PyObject *module, PyObject *args)
{
    PyObject *tensor, *shape_obj, *starts, *counts;
    int64_t shape[EXT_RANK], start[EXT_RANK], count[EXT_RANK];
    struct nki_tensor *v;
    int ndim, n;

    (void)module;
    if (!PyArg_ParseTuple(args, "O!OOO:tile_part", &nki_tensor_type, &tensor, &shape_obj, &starts, &counts)) return NULL;
    ndim = ext_dims_read(shape_obj, shape, EXT_RANK, "shape");
    if (ndim < 0) return NULL;
    v = ext_view_of((struct nki_tensor *)tensor);
    if (!v) return NULL;
    if (fit_shape(v, shape, ndim) < 0) {
        Py_DECREF(v);
        v = ext_view_of((struct nki_tensor *)tensor);
        if (!v) return NULL;
        if (reshape_free(v, shape, ndim) < 0) {
            Py_DECREF(v);
            Py_RETURN_NONE;
        }
    }
    if (starts != Py_None) {
        n = read_box(starts, counts, start, count);
        if (n < 0 || cut_indices(v, start[0], count[0]) < 0) {
            Py_DECREF(v);
            return NULL;
        }
        cut(v, start, count, n);
        if (ext_view_has_vector(v)) v->shape[0] = count[0];
    }
    return (PyObject *)v;
}

/* tile_rows(view, start, count): some of its partitions; a view with one partition stays. */
static PyObject *tile_rows(PyObject *module, PyObject *args)
{
    struct nki_tensor *v;
    PyObject *tensor;
    long long start, count;

    (void)module;
    if (!PyArg_ParseTuple(args, "O!LL:tile_rows", &nki_tensor_type, &tensor, &start, &count)) return NULL;
    v = ext_view_of((struct nki_tensor *)tensor);
    if (!v || v->shape[0] == 1) return (PyObject *)v;
    v->offset += start * v->stride[0];
    v->shape[0] = count;
    return (PyObject *)v;
}

/* permuted(view, order): the dimensions in another order, the partition dimension too. */
static PyObject *tile_permuted(PyObject *module, PyObject *args)
{
    PyObject *tensor, *order_obj;
    const struct nki_tensor *t;
    int64_t order[EXT_RANK];
    struct nki_tensor *v;
    int n;

    (void)module;
    if (!PyArg_ParseTuple(args, "O!O:permuted", &nki_tensor_type, &tensor, &order_obj)) return NULL;
    t = (struct nki_tensor *)tensor;
    n = ext_dims_read(order_obj, order, EXT_RANK, "order");
    if (n < 0) return NULL;
    if (n != t->ndim) return PyErr_Format(PyExc_ValueError, "%d dimensions", n);
    v = ext_view_of(t);
    for (int d = 0; v && d < n; d++) {
        if (order[d] < 0 || order[d] >= n) {
            Py_DECREF(v);
            return PyErr_Format(PyExc_ValueError, "dimension %lld", (long long)order[d]);
        }
        v->shape[d] = t->shape[order[d]];
        v->stride[d] = t->stride[order[d]];
    }
    return (PyObject *)v;
}

static PyObject *same_region(PyObject *module, PyObject *args)
{
    const struct nki_tensor *a, *b;
    PyObject *x, *y;

    (void)module;
    if (!PyArg_ParseTuple(args, "O!O!:same_region", &nki_tensor_type, &x, &nki_tensor_type, &y)) return NULL;
    a = (struct nki_tensor *)x;
    b = (struct nki_tensor *)y;
    if (a->storage != b->storage || a->offset != b->offset || a->ndim != b->ndim || a->ndyn || b->ndyn) Py_RETURN_FALSE;
    for (int d = 0; d < a->ndim; d++)
        if (a->shape[d] != b->shape[d] || (a->shape[d] > 1 && a->stride[d] != b->stride[d])) Py_RETURN_FALSE;
    Py_RETURN_TRUE;
}

/* is_whole(view): it has every element of its storage. */
static PyObject *is_whole(PyObject *module, PyObject *arg)
{
    const struct nki_tensor *t = (struct nki_tensor *)arg;
    int64_t bytes = ext_tensor_elems(t) * vtrn_dtypes[t->dtype].size_bytes, all;

    (void)module;
    if (!IS_TENSOR(arg)) return PyErr_Format(PyExc_TypeError, "not a tensor");
    all = t->storage->session->prog->tensor[t->storage->tensor].partitions;
    all = t->storage->row_bytes * (all ? all : 1);
    for (int d = 0; d < t->ndim; d++)
        if (t->shape[d] > 1 && t->stride[d] == 0) Py_RETURN_FALSE;
    return PyBool_FromLong(bytes == all && !t->ndyn);
}

/* ---------------------------------------------------------------- dtypes */
/* The dtype of an operation on two dtypes (old API reference, "NKI Type Promotion"). */
static int promote(int a, int b)
{
    const struct vtrn_dtype_info *x = &vtrn_dtypes[a], *y = &vtrn_dtypes[b];
    bool xi = x->cls == VTRN_CLASS_INT, xu = x->cls == VTRN_CLASS_UINT, yi = y->cls == VTRN_CLASS_INT, yu = y->cls == VTRN_CLASS_UINT;
    bool x_float = !xi && !xu, y_float = !yi && !yu;

    if (a == b) return a;
    if (x->cls == VTRN_CLASS_BOOL || y->cls == VTRN_CLASS_BOOL)
        return promote(x->cls == VTRN_CLASS_BOOL ? VTRN_DT_U8 : a, y->cls == VTRN_CLASS_BOOL ? VTRN_DT_U8 : b);
    if (x_float != y_float) return x_float ? a : b;
    if (x_float) {
        if (x->size_bytes != y->size_bytes) return x->size_bytes > y->size_bytes ? a : b;
        if (x->size_bytes == 4) return VTRN_DT_F32;
        return x->size_bytes == 2 ? VTRN_DT_F32 : VTRN_DT_BF16;
    }
    if (xi == yi) return x->size_bytes >= y->size_bytes ? a : b;
    if (xu) return promote(b, a); /* x signed, y unsigned */
    if (x->size_bytes > y->size_bytes) return a;
    return y->size_bytes == 1 ? VTRN_DT_I16 : y->size_bytes == 2 ? VTRN_DT_I32 : VTRN_DT_F32;
}

static PyObject *promoted(PyObject *module, PyObject *args)
{
    PyObject *x, *y;
    int a, b;

    (void)module;
    if (!PyArg_ParseTuple(args, "OO:promoted", &x, &y)) return NULL;
    a = ext_dtype(x, "dtype");
    b = a < 0 ? -1 : ext_dtype(y, "dtype");
    return b < 0 ? NULL : Py_NewRef(ext_dtype_object(promote(a, b)));
}

/* ---------------------------------------------------------------- undoing */
static PyObject *mark(PyObject *module, PyObject *ignored)
{
    struct trace *t = ext_trace("a tile");

    (void)module;
    (void)ignored;
    return t ? PyLong_FromUnsignedLong(t->serial) : NULL;
}

/* undo(mark, end): takes back the instructions from `mark` on when they are the last (`end` is now) and have not run. */
static PyObject *undo(PyObject *module, PyObject *args)
{
    struct trace *t = ext_trace("a tile");
    unsigned long from, end;

    (void)module;
    if (!t || !PyArg_ParseTuple(args, "kk:undo", &from, &end)) return NULL;
    return PyBool_FromLong(end == t->serial && ext_undo(t, (uint32_t)from));
}

/* fail(error class, what, text): raises it with the kernel's line before the text. */
static PyObject *fail(PyObject *module, PyObject *args)
{
    PyObject *type;
    const char *what, *text;

    (void)module;
    if (PyArg_ParseTuple(args, "Oss:fail", &type, &what, &text)) ext_raise(type, what, "%s", text);
    return NULL;
}

PyMethodDef ext_tile_functions[] = {
    { "fail", fail, METH_VARARGS, "fail(error class, what, text): raises it with the kernel's line" },
    { "tile_view", tile_view, METH_VARARGS, "tile_view(tensor, partition_dim, key)" },
    { "tile_check", tile_check, METH_VARARGS, "tile_check(tensor, unproven, starts, counts)" },
    { "tile_part", tile_part, METH_VARARGS, "tile_part(view, shape, starts, counts)" },
    { "tile_rows", tile_rows, METH_VARARGS, "tile_rows(view, start, count)" },
    { "permuted", tile_permuted, METH_VARARGS, "permuted(view, order)" },
    { "same_region", same_region, METH_VARARGS, "same_region(a, b)" },
    { "is_whole", is_whole, METH_O, "is_whole(view): it has every element of its storage" },
    { "promoted", promoted, METH_VARARGS, "promoted(a, b): dtype of an operation on both" },
    { "mark", mark, METH_NOARGS, "instructions appended so far" },
    { "undo", undo, METH_VARARGS, "undo(mark, end)" },
    { 0 },
};
