/* Access patterns and addresses that are known only when the chip runs: ap, get_pattern, select, vector_select, indirect.
 *
 * ap replaces shape and strides by [[stride, count], ...] over the underlying allocation; it keeps the view's offset and
 * adds its own. On chip the first pair steps over partitions: its stride is in elements like the others, so it must be a
 * multiple of the elements that a partition of the allocation holds. Rules: shared notes nki/language.md section 6. */
#include "ext.h"

static int pattern_error(const struct nki_tensor *t, const char *method, const char *fmt, ...) VTRN_PRINTF(3, 4);
static int pattern_error(const struct nki_tensor *t, const char *method, const char *fmt, ...)
{
    char why[300], tensor[300];
    va_list args;

    va_start(args, fmt);
    vsnprintf(why, sizeof why, fmt, args);
    va_end(args);
    return ext_raise(ext_errors.value, method, "%s; the tensor is %s", why, ext_tensor_text(t, tensor, sizeof tensor));
}

static bool is_integer_dtype(int dtype)
{
    int cls = vtrn_dtypes[dtype].cls;

    return cls == VTRN_CLASS_INT || cls == VTRN_CLASS_UINT;
}

/* ---------------------------------------------------------------- dynamic indices */
static int move_offset(struct nki_tensor *v, const char *method, int64_t index, int64_t scale)
{
    int64_t distance;

    if (vtrn_mul_i64(index, scale, &distance) && vtrn_add_i64(v->offset, distance, &v->offset)) return 0;
    return pattern_error(v, method, "index %lld times %lld elements is more than any tensor", (long long)index, (long long)scale);
}

/* Adds index * scale to the view's address: an integer at once, a register or a one-element tensor when it runs. */
static int add_scalar_index(struct nki_tensor *v, const char *method, PyObject *index, int64_t scale, int64_t limit)
{
    struct vtrn_value value;
    int64_t number;

    if (IS_TENSOR(index)) {
        const struct nki_tensor *t = (struct nki_tensor *)index;

        if (ext_tensor_elems(t) != 1 || !is_integer_dtype(t->dtype))
            return pattern_error(t, method, "a scalar index must be one integer");
        return ext_view_add_dyn(v, VTRN_DYN_SCALAR, index, scale, limit);
    }
    if (IS_REGISTER(index)) {
        const struct nki_register *reg = (struct nki_register *)index;

        if (!reg->known) return ext_view_add_dyn(v, VTRN_DYN_REG, index, scale, limit);
        if (ext_register_value(NULL, index, method, &value) < 0) return -1;
        return move_offset(v, method, value.i, scale);
    }
    if (!PyIndex_Check(index))
        return ext_raise(ext_errors.type, method, "the index is %.100s; a register, an integer or a (1, 1) tensor is needed",
                         Py_TYPE(index)->tp_name);
    if (ext_integer(index, method, "the index", &number) < 0) return -1;
    return move_offset(v, method, number, scale);
}

static int add_vector_index(const struct nki_tensor *t, struct nki_tensor *v, const char *method, PyObject *index, int64_t scale,
                            int64_t limit)
{
    const struct nki_tensor *x = (struct nki_tensor *)index;

    if (!IS_TENSOR(index))
        return ext_raise(ext_errors.type, method, "vector_offset is %.100s, not a tensor", Py_TYPE(index)->tp_name);
    if (!vtrn_space_is_hbm(t->storage->space)) return pattern_error(t, method, "a vector of indices needs a tensor in HBM");
    if (!is_integer_dtype(x->dtype)) return pattern_error(x, method, "indices must be integers");
    if (ext_tensor_elems(x) < v->shape[0])
        return pattern_error(x, method, "%lld indices for %lld steps of dimension 0", (long long)ext_tensor_elems(x),
                             (long long)v->shape[0]);
    return ext_view_add_dyn(v, VTRN_DYN_VECTOR, index, scale, limit);
}

/* ---------------------------------------------------------------- ap */
struct ap_args {
    PyObject *pattern, *offset, *scalar_offset, *vector_offset, *dtype;
    int indirect_dim;
};

static int read_pairs(PyObject *pattern, struct nki_tensor *v)
{
    PyObject *seq = PyUnicode_Check(pattern) ? NULL : PySequence_Fast(pattern, "");
    Py_ssize_t n;
    int status = -1;

    if (!seq) {
        PyErr_Clear();
        return ext_raise(ext_errors.type, "ap", "the pattern is %.100s, not a list of [stride, count]", Py_TYPE(pattern)->tp_name);
    }
    n = PySequence_Fast_GET_SIZE(seq);
    if (n < 1 || n > EXT_RANK) {
        ext_raise(ext_errors.value, "ap", "the pattern has %zd pairs; 1..%d are possible", n, EXT_RANK);
        goto done;
    }
    v->ndim = (uint8_t)n;
    for (Py_ssize_t i = 0; i < n; i++) {
        int64_t pair[2];
        int got = ext_dims_read(PySequence_Fast_GET_ITEM(seq, i), pair, 2, "ap");

        if (got < 0) goto done;
        if (got != 2 || pair[1] < 1) {
            ext_raise(ext_errors.value, "ap", "pair %zd of the pattern is not [stride, count] with a count of at least 1", i);
            goto done;
        }
        v->stride[i] = pair[0];
        v->shape[i] = pair[1];
    }
    status = 0;
done:
    Py_DECREF(seq);
    return status;
}

/* Elements of the view's dtype in a partition of its allocation. */
static int row_elems(const struct nki_tensor *v, const char *method, int64_t *row_out)
{
    int size = vtrn_dtypes[v->dtype].size_bytes;

    if (v->storage->row_bytes % size != 0)
        return pattern_error(v, method, "a partition has %lld bytes, not a multiple of %d", (long long)v->storage->row_bytes, size);
    *row_out = v->storage->row_bytes / size;
    return 0;
}

/* Elements of the view's dtype in a partition of the tensor that .ap was called on, as its shape says. */
static int64_t shown_row_elems(const struct nki_tensor *t, const struct nki_tensor *v)
{
    int64_t elems = vtrn_dtypes[t->dtype].size_bytes;

    for (int i = 1; i < t->ndim; i++) elems *= t->shape[i];
    return elems % vtrn_dtypes[v->dtype].size_bytes == 0 ? elems / vtrn_dtypes[v->dtype].size_bytes : 0;
}

/* The partition stride counts in rows of the allocation. Of a view that is narrower it may also count in rows of the view's
 * shape, as patterns do that are made from the shape (nki-library's TensorView of a slice). */
static int check_partition_step(const struct nki_tensor *t, struct nki_tensor *v)
{
    int64_t row = 0, shown = shown_row_elems(t, v);

    if (row_elems(v, "ap", &row) < 0) return -1;
    if (v->stride[0] % row != 0 && shown > 0 && v->stride[0] % shown == 0) v->stride[0] = v->stride[0] / shown * row;
    if (v->shape[0] > 1 && v->stride[0] % row != 0)
        return pattern_error(v, "ap", "the partition stride %lld is not a multiple of %lld, the elements of a partition",
                             (long long)v->stride[0], (long long)row);
    if (v->ndim == 1) {
        v->shape[1] = v->stride[1] = 1;
        v->ndim = 2;
    }
    return 0;
}

static int apply_indices(const struct nki_tensor *t, struct nki_tensor *v, const struct ap_args *args)
{
    int from = vtrn_dtypes[t->dtype].size_bytes, to = vtrn_dtypes[v->dtype].size_bytes, dim = args->indirect_dim;
    int64_t scale;

    if (args->scalar_offset == Py_None && args->vector_offset == Py_None) return 0;
    if (args->scalar_offset != Py_None && args->vector_offset != Py_None)
        return pattern_error(t, "ap", "scalar_offset and vector_offset exclude each other");
    if (t->ndyn) return pattern_error(t, "ap", "the view is indirect already");
    if (dim < 0) dim += t->ndim;
    if (dim < 0 || dim >= t->ndim) return pattern_error(t, "ap", "indirect_dim %d", args->indirect_dim);
    scale = t->stride[dim] * from;
    if (scale % to != 0)
        return pattern_error(t, "ap", "a step of dimension %d is %lld bytes, not a multiple of the dtype's %d", dim,
                             (long long)scale, to);
    scale /= to;
    if (args->scalar_offset != Py_None) {
        int64_t row = 0;

        if (ext_on_chip(t) && (row_elems(v, "ap", &row) < 0)) return -1;
        if (ext_on_chip(t) && dim == 0 && t->shape[0] > 1)
            return pattern_error(t, "ap", "the partition cannot be chosen when the chip runs; use indirect_dim >= 1");
        return add_scalar_index(v, "ap", args->scalar_offset, scale, 0);
    }
    if (dim != 0) return pattern_error(t, "ap", "vector_offset needs indirect_dim 0, not %d", dim);
    return add_vector_index(t, v, "ap", args->vector_offset, scale, t->shape[0]);
}

static int read_offset(const struct nki_tensor *t, struct nki_tensor *v, PyObject *offset)
{
    int from = vtrn_dtypes[t->dtype].size_bytes, to = vtrn_dtypes[v->dtype].size_bytes;
    int64_t extra = 0;

    if (t->offset * from % to != 0)
        return pattern_error(t, "ap", "the view's offset of %lld bytes is not a multiple of the dtype's %d",
                             (long long)(t->offset * from), to);
    if (offset != Py_None) {
        if (!PyIndex_Check(offset))
            return ext_raise(ext_errors.type, "ap", "offset is %.100s, not an integer (registers: scalar_offset)",
                             Py_TYPE(offset)->tp_name);
        if (ext_integer(offset, "ap", "offset", &extra) < 0) return -1;
    }
    if (!vtrn_add_i64(t->offset * from / to, extra, &v->offset) || v->offset < 0)
        return pattern_error(t, "ap", "offset %lld lies %s the tensor", (long long)extra, extra < 0 ? "before" : "behind");
    return 0;
}

static PyObject *pattern_ap(PyObject *self, PyObject *args, PyObject *kwargs)
{
    const struct nki_tensor *t = (struct nki_tensor *)self;
    static char *names[] = { "pattern", "offset", "scalar_offset", "vector_offset", "indirect_dim", "dtype", NULL };
    struct ap_args a = { .offset = Py_None, .scalar_offset = Py_None, .vector_offset = Py_None, .dtype = Py_None };
    int dtype = t->dtype;
    struct nki_tensor *v;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|OOOiO:ap", names, &a.pattern, &a.offset, &a.scalar_offset, &a.vector_offset,
                                     &a.indirect_dim, &a.dtype))
        return NULL;
    if (a.dtype != Py_None && (dtype = ext_dtype(a.dtype, "ap")) < 0) return NULL;
    v = ext_view_of(t);
    if (!v) return NULL;
    v->dtype = (uint8_t)dtype;
    if (read_pairs(a.pattern, v) < 0 || read_offset(t, v, a.offset) < 0) goto failed;
    if (ext_on_chip(t) && check_partition_step(t, v) < 0) goto failed;
    if (apply_indices(t, v, &a) < 0) goto failed;
    return (PyObject *)v;

failed:
    Py_DECREF(v);
    return NULL;
}

static PyObject *pattern_get_pattern(PyObject *self, PyObject *ignored)
{
    const struct nki_tensor *t = (struct nki_tensor *)self;
    PyObject *list = PyList_New(t->ndim);

    (void)ignored;
    for (int i = 0; list && i < t->ndim; i++) {
        PyObject *pair = Py_BuildValue("[LL]", (long long)t->stride[i], (long long)t->shape[i]);

        if (!pair) Py_CLEAR(list);
        else PyList_SET_ITEM(list, i, pair);
    }
    return list;
}

static PyObject *pattern_is_indirect(PyObject *self, PyObject *ignored)
{
    (void)ignored;
    return PyBool_FromLong(((struct nki_tensor *)self)->ndyn > 0);
}

/* ---------------------------------------------------------------- select */
static void drop_dim(struct nki_tensor *v, int dim)
{
    for (int i = dim; i + 1 < v->ndim; i++) {
        v->shape[i] = v->shape[i + 1];
        v->stride[i] = v->stride[i + 1];
    }
    v->ndim--;
    if (v->ndim < (ext_on_chip(v) ? 2 : 1)) {
        v->shape[v->ndim] = v->stride[v->ndim] = 1;
        v->ndim++;
    }
}

static PyObject *pattern_select(PyObject *self, PyObject *args, PyObject *kwargs)
{
    const struct nki_tensor *t = (struct nki_tensor *)self;
    static char *names[] = { "dim", "index", NULL };
    bool is_static, on_chip = ext_on_chip(t);
    PyObject *dim_obj, *index;
    struct nki_tensor *v;
    int dim = 0;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO:select", names, &dim_obj, &index)) return NULL;
    if (ext_dim_number(t, dim_obj, "select", &dim) < 0) return NULL;
    is_static = !IS_TENSOR(index) && !(IS_REGISTER(index) && !((struct nki_register *)index)->known);
    if (dim == 0 && ext_view_has_vector(t)) return EXT_NULL(pattern_error(t, "select", "dimension 0 is indirect"));
    if (!is_static && t->ndyn) return EXT_NULL(pattern_error(t, "select", "the view is indirect already"));
    if (dim == 0 && on_chip && !is_static)
        return EXT_NULL(pattern_error(t, "select", "the partition cannot be chosen when the chip runs"));
    v = ext_view_of(t);
    if (!v) return NULL;
    if (add_scalar_index(v, "select", index, t->stride[dim], t->shape[dim]) < 0) goto failed;
    if (is_static) {
        int64_t number = t->stride[dim] ? (v->offset - t->offset) / t->stride[dim] : 0;

        if (number < 0 || number >= t->shape[dim]) {
            pattern_error(t, "select", "index %lld is outside 0..%lld of dimension %d", (long long)number,
                          (long long)t->shape[dim] - 1, dim);
            goto failed;
        }
    }
    if (on_chip && dim == 0) v->shape[0] = 1;
    else drop_dim(v, dim);
    return (PyObject *)v;

failed:
    Py_DECREF(v);
    return NULL;
}

static PyObject *pattern_vector_select(PyObject *self, PyObject *args, PyObject *kwargs)
{
    const struct nki_tensor *t = (struct nki_tensor *)self;
    static char *names[] = { "dim", "vector_offset", NULL };
    struct nki_tensor *v;
    PyObject *index;
    int dim = 0;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "iO:vector_select", names, &dim, &index)) return NULL;
    if (dim != 0) return EXT_NULL(pattern_error(t, "vector_select", "dim must be 0, not %d", dim));
    if (t->ndyn) return EXT_NULL(pattern_error(t, "vector_select", "the view is indirect already"));
    v = ext_view_of(t);
    if (!v) return NULL;
    if (IS_TENSOR(index)) v->shape[0] = ((struct nki_tensor *)index)->shape[0];
    if (add_vector_index(t, v, "vector_select", index, t->stride[0], t->shape[0]) < 0) {
        Py_DECREF(v);
        return NULL;
    }
    return (PyObject *)v;
}

/* ---------------------------------------------------------------- tensor indirection (v4) */
static PyObject *pattern_indirect(PyObject *self, PyObject *args, PyObject *kwargs)
{
    const struct nki_tensor *t = (struct nki_tensor *)self;
    static char *names[] = { "index", "num_elem", NULL };
    PyObject *index, *count_obj = Py_None;
    const struct nki_tensor *x;
    struct nki_tensor *v;
    int64_t count;
    int64_t free_elems = 1;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O:indirect", names, &index, &count_obj)) return NULL;
    if (!IS_TENSOR(index))
        return EXT_NULL(ext_raise(ext_errors.type, "indirect", "the index is %.100s, not a tensor", Py_TYPE(index)->tp_name));
    x = (struct nki_tensor *)index;
    if (!ext_on_chip(t)) return EXT_NULL(pattern_error(t, "indirect", "only tensors in SBUF and PSUM"));
    if (x->storage->space != VTRN_SBUF || x->ndim != 2 || x->shape[0] != t->shape[0] || !is_integer_dtype(x->dtype))
        return EXT_NULL(pattern_error(x, "indirect", "the index must be (%lld, K) integers in SBUF", (long long)t->shape[0]));
    if (t->ndyn) return EXT_NULL(pattern_error(t, "indirect", "the view is indirect already"));
    count = ext_tensor_elems(x);
    if (count_obj != Py_None && ext_integer(count_obj, "indirect", "num_elem", &count) < 0) return NULL;
    if (count < 1 || count > ext_tensor_elems(x))
        return EXT_NULL(pattern_error(x, "indirect", "num_elem %lld is outside 1..%lld", (long long)count, (long long)ext_tensor_elems(x)));
    for (int i = 1; i < t->ndim; i++) free_elems *= t->shape[i];
    v = ext_view_of(t);
    if (!v) return NULL;
    v->ndim = 2;
    v->shape[1] = count;
    v->stride[1] = 1;
    if (ext_view_add_dyn(v, VTRN_DYN_INDIRECT, index, 1, free_elems) < 0) {
        Py_DECREF(v);
        return NULL;
    }
    return (PyObject *)v;
}

#define METHOD(name, text) \
    { \
#name, (PyCFunction)(void (*)(void))pattern_##name, METH_VARARGS | METH_KEYWORDS, text \
    }
PyMethodDef ext_pattern_methods[] = {
    METHOD(ap, "ap(pattern, offset=None, scalar_offset=None, vector_offset=None, indirect_dim=0, dtype=None): "
               "[[stride, count], ...] over the allocation"),
    { "get_pattern", pattern_get_pattern, METH_NOARGS, "the view as [[stride, count], ...]" },
    { "is_indirect", pattern_is_indirect, METH_NOARGS, "part of the address is known only when the chip runs" },
    METHOD(select, "select(dim, index): one index of a dimension; a register or a (1, 1) tensor is read when the chip runs"),
    METHOD(vector_select, "vector_select(0, vector_offset): one row per index"),
    METHOD(indirect, "indirect(index, num_elem=None): free-dimension offsets from an index tile (NeuronCore-v4)"),
    { 0 },
};
