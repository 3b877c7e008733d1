/* Views by name: reshape, permute, broadcast, view(dtype), rearrange, ... No data moves; each returns a new view or says
 * why the layout does not allow it. The partition dimension of an on-chip tensor (dim 0), and a dimension that a vector of
 * indices addresses, stay where they are. Rules: nki.language NkiTensor reference. */
#include "ext.h"

static int view_error(const struct nki_tensor *t, const char *method, const char *fmt, ...) VTRN_PRINTF(3, 4);
static int view_error(const struct nki_tensor *t, const char *method, const char *fmt, ...)
{
    char why[300], tensor[300];
    va_list args;

    va_start(args, fmt);
    vsnprintf(why, sizeof why, fmt, args);
    va_end(args);
    return ext_raise(ext_errors.value, method, "%s; the tensor is %s", why, ext_tensor_text(t, tensor, sizeof tensor));
}

/* Dim 0 is bound to the partitions or to a vector of indices. */
static bool first_is_fixed(const struct nki_tensor *t) { return ext_on_chip(t) || ext_view_has_vector(t); }

/* ---------------------------------------------------------------- arguments */
int ext_dims_read(PyObject *obj, int64_t *dims, int max, const char *what)
{
    PyObject *seq = PySequence_Check(obj) && !PyUnicode_Check(obj) ? PySequence_Fast(obj, what) : NULL;
    Py_ssize_t n;

    if (!seq) {
        PyErr_Clear();
        return ext_raise(ext_errors.type, what, "a tuple of integers is needed, not %.100s", Py_TYPE(obj)->tp_name);
    }
    n = PySequence_Fast_GET_SIZE(seq);
    if (n > max) {
        Py_DECREF(seq);
        return ext_raise(ext_errors.value, what, "%zd dimensions, at most %d are possible", n, max);
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *item = PySequence_Fast_GET_ITEM(seq, i);
        int overflow = 1;
        char name[32];

        if (PyLong_CheckExact(item)) dims[i] = PyLong_AsLongLongAndOverflow(item, &overflow);
        if (VTRN_LIKELY(!overflow)) continue;
        snprintf(name, sizeof name, "item %d", (int)i);
        if (ext_integer(item, what, name, &dims[i]) < 0) {
            Py_DECREF(seq);
            return -1;
        }
    }
    Py_DECREF(seq);
    return (int)n;
}

int ext_integer(PyObject *obj, const char *what, const char *name, int64_t *value_out)
{
    PyObject *number = PyNumber_Index(obj);
    int overflow;

    if (!number && PyErr_ExceptionMatches(PyExc_TypeError)) {
        PyErr_Clear();
        return ext_raise(ext_errors.type, what, "%s is %.100s, not an integer", name, Py_TYPE(obj)->tp_name);
    }
    if (!number) return -1;
    *value_out = PyLong_AsLongLongAndOverflow(number, &overflow);
    Py_DECREF(number);
    return overflow ? ext_raise(ext_errors.value, what, "%s does not fit in 64 bits", name) : 0;
}

int ext_dim_number(const struct nki_tensor *t, PyObject *obj, const char *what, int *dim_out)
{
    int64_t dim = 0;

    if (ext_integer(obj, what, "the dimension", &dim) < 0) return -1;
    if (dim < -t->ndim || dim >= t->ndim) return view_error(t, what, "no dimension %lld", (long long)dim);
    *dim_out = (int)(dim < 0 ? dim + t->ndim : dim);
    return 0;
}

/* Replaces a -1 in `shape` so that the product is `elems`. */
static int infer_size(const struct nki_tensor *t, const char *what, int64_t *shape, int n, int64_t elems)
{
    int64_t known = 1;
    int missing = -1;

    for (int i = 0; i < n; i++) {
        if (shape[i] == -1 && missing < 0) missing = i;
        else if (shape[i] < 1) return view_error(t, what, "size %lld of dimension %d", (long long)shape[i], i);
        else if (!vtrn_mul_i64(known, shape[i], &known)) return view_error(t, what, "the shape is too large");
    }
    if (missing >= 0) {
        if (elems % known != 0)
            return view_error(t, what, "%lld elements do not divide by %lld", (long long)elems, (long long)known);
        shape[missing] = elems / known;
    } else if (known != elems) {
        return view_error(t, what, "the new shape has %lld elements, the old %lld", (long long)known, (long long)elems);
    }
    return 0;
}

/* ---------------------------------------------------------------- reshape */
/* Strides of a new shape over the same elements; false when no strides give it. Both shapes have equal products. */
static bool restride(const int64_t *old_dim, const int64_t *old_stride, int olds, const int64_t *dim, int64_t *stride, int n)
{
    int64_t odim[EXT_RANK], ostride[EXT_RANK], last = 1;
    int on = 0, oi = 0, ni = 0;

    for (int i = 0; i < olds; i++)
        if (old_dim[i] != 1) {
            odim[on] = old_dim[i];
            ostride[on++] = old_stride[i];
        }
    while (ni < n && oi < on) { /* a group: the fewest dimensions of both sides with equal products */
        int oj = oi + 1, nj = ni + 1;
        int64_t olds_product = odim[oi], news_product = dim[ni];

        while (olds_product != news_product) {
            if (news_product < olds_product) news_product *= dim[nj++];
            else olds_product *= odim[oj++];
        }
        for (int k = oi; k < oj - 1; k++)
            if (ostride[k] != odim[k + 1] * ostride[k + 1]) return false;
        stride[nj - 1] = ostride[oj - 1];
        for (int k = nj - 1; k > ni; k--) stride[k - 1] = stride[k] * dim[k];
        last = stride[nj - 1];
        oi = oj;
        ni = nj;
    }
    for (; ni < n; ni++) stride[ni] = last; /* sizes of 1 */
    return true;
}

/* t with dimensions [first, last) replaced by `n` new ones that hold the same elements. */
static PyObject *replace_dims(const struct nki_tensor *t, const char *what, int first, int last, const int64_t *dim, int n)
{
    struct nki_tensor *v;
    int64_t stride[EXT_RANK];
    int ndim = t->ndim - (last - first) + n;

    if (ndim > EXT_RANK) return EXT_NULL(view_error(t, what, "more than %d dimensions", EXT_RANK));
    if (!restride(t->shape + first, t->stride + first, last - first, dim, stride, n))
        return EXT_NULL(view_error(t, what, "the view is not contiguous there, so the shape cannot be had without a copy"));
    v = ext_view_of(t);
    if (!v) return NULL;
    memmove(v->shape + first + n, t->shape + last, (size_t)(t->ndim - last) * sizeof *v->shape);
    memmove(v->stride + first + n, t->stride + last, (size_t)(t->ndim - last) * sizeof *v->stride);
    memcpy(v->shape + first, dim, (size_t)n * sizeof *dim);
    memcpy(v->stride + first, stride, (size_t)n * sizeof *stride);
    v->ndim = (uint8_t)ndim;
    return (PyObject *)v;
}

static PyObject *view_reshape(PyObject *self, PyObject *args, PyObject *kwargs)
{
    const struct nki_tensor *t = (struct nki_tensor *)self;
    static char *names[] = { "shape", NULL };
    int64_t shape[EXT_RANK];
    PyObject *obj;
    int n, fixed = first_is_fixed(t);

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O:reshape", names, &obj)) return NULL;
    n = ext_dims_read(obj, shape, EXT_RANK, "reshape");
    if (n < 0 || infer_size(t, "reshape", shape, n, ext_tensor_elems(t)) < 0) return NULL;
    if (n < 1 + fixed && ext_on_chip(t))
        return EXT_NULL(view_error(t, "reshape", "an on-chip view keeps a partition and a free dimension"));
    if (fixed && shape[0] != t->shape[0])
        return EXT_NULL(view_error(t, "reshape", "dimension 0 (%s) must stay %lld, not %lld",
                                   ext_on_chip(t) ? "partitions" : "indirect", (long long)t->shape[0], (long long)shape[0]));
    return replace_dims(t, "reshape", fixed, t->ndim, shape + fixed, n - fixed);
}

static PyObject *view_reshape_dim(PyObject *self, PyObject *args, PyObject *kwargs)
{
    const struct nki_tensor *t = (struct nki_tensor *)self;
    static char *names[] = { "dim", "shape", NULL };
    PyObject *dim_obj, *obj;
    int64_t shape[EXT_RANK];
    int dim = 0, n;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO:reshape_dim", names, &dim_obj, &obj)) return NULL;
    if (ext_dim_number(t, dim_obj, "reshape_dim", &dim) < 0) return NULL;
    n = ext_dims_read(obj, shape, EXT_RANK, "reshape_dim");
    if (n < 0 || infer_size(t, "reshape_dim", shape, n, t->shape[dim]) < 0) return NULL;
    if (dim == 0 && n != 1 && first_is_fixed(t)) return EXT_NULL(view_error(t, "reshape_dim", "dimension 0 cannot be split"));
    return replace_dims(t, "reshape_dim", dim, dim + 1, shape, n);
}

static PyObject *view_flatten_dims(PyObject *self, PyObject *args, PyObject *kwargs)
{
    const struct nki_tensor *t = (struct nki_tensor *)self;
    static char *names[] = { "start_dim", "end_dim", NULL };
    PyObject *start_obj, *end_obj;
    int64_t size = 1;
    int start = 0, end = 0;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO:flatten_dims", names, &start_obj, &end_obj)) return NULL;
    if (ext_dim_number(t, start_obj, "flatten_dims", &start) < 0 || ext_dim_number(t, end_obj, "flatten_dims", &end) < 0)
        return NULL;
    if (end < start) return EXT_NULL(view_error(t, "flatten_dims", "dimensions %d..%d", start, end));
    if (start == 0 && end > 0 && first_is_fixed(t)) return EXT_NULL(view_error(t, "flatten_dims", "dimension 0 cannot be merged"));
    for (int i = start; i <= end; i++) size *= t->shape[i];
    return replace_dims(t, "flatten_dims", start, end + 1, &size, 1);
}

/* ---------------------------------------------------------------- order and size-1 dimensions */
static PyObject *permuted(const struct nki_tensor *t, const char *what, const int64_t *dims, int n)
{
    struct nki_tensor *v;
    unsigned seen = 0;

    for (int i = 0; i < n; i++)
        if (dims[i] >= 0 && dims[i] < t->ndim) seen |= 1u << dims[i];
    if (n != t->ndim || seen != (1u << n) - 1)
        return EXT_NULL(view_error(t, what, "the dimensions are not an order of 0..%d", t->ndim - 1));
    if (dims[0] != 0 && first_is_fixed(t)) return EXT_NULL(view_error(t, what, "dimension 0 must stay the first"));
    v = ext_view_of(t);
    for (int i = 0; v && i < n; i++) {
        v->shape[i] = t->shape[dims[i]];
        v->stride[i] = t->stride[dims[i]];
    }
    return (PyObject *)v;
}

static PyObject *view_permute(PyObject *self, PyObject *args, PyObject *kwargs)
{
    const struct nki_tensor *t = (struct nki_tensor *)self;
    static char *names[] = { "dims", NULL };
    int64_t dims[EXT_RANK];
    PyObject *obj;
    int n;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O:permute", names, &obj)) return NULL;
    n = ext_dims_read(obj, dims, EXT_RANK, "permute");
    return n < 0 ? NULL : permuted(t, "permute", dims, n);
}

static PyObject *view_broadcast(PyObject *self, PyObject *args, PyObject *kwargs)
{
    const struct nki_tensor *t = (struct nki_tensor *)self;
    static char *names[] = { "dim", "size", NULL };
    struct nki_tensor *v;
    PyObject *dim_obj, *size_obj;
    int64_t size;
    int dim = 0;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO:broadcast", names, &dim_obj, &size_obj)) return NULL;
    if (ext_dim_number(t, dim_obj, "broadcast", &dim) < 0 || ext_integer(size_obj, "broadcast", "size", &size) < 0) return NULL;
    if (dim == 0 && first_is_fixed(t)) return EXT_NULL(view_error(t, "broadcast", "dimension 0 cannot be broadcast"));
    if (t->shape[dim] != 1)
        return EXT_NULL(view_error(t, "broadcast", "dimension %d has size %lld, not 1", dim, (long long)t->shape[dim]));
    if (size < 1) return EXT_NULL(view_error(t, "broadcast", "size %lld; it must be at least 1", (long long)size));
    v = ext_view_of(t);
    if (!v) return NULL;
    v->shape[dim] = size;
    v->stride[dim] = 0;
    return (PyObject *)v;
}

static PyObject *view_expand_dim(PyObject *self, PyObject *args, PyObject *kwargs)
{
    const struct nki_tensor *t = (struct nki_tensor *)self;
    static char *names[] = { "dim", NULL };
    const int64_t one = 1;
    PyObject *dim_obj;
    int64_t dim;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O:expand_dim", names, &dim_obj)) return NULL;
    if (ext_integer(dim_obj, "expand_dim", "dim", &dim) < 0) return NULL;
    if (dim < 0) dim += t->ndim + 1;
    if (dim < 0 || dim > t->ndim) return EXT_NULL(view_error(t, "expand_dim", "no place %lld", (long long)dim));
    if (dim == 0 && first_is_fixed(t)) return EXT_NULL(view_error(t, "expand_dim", "nothing can stand before dimension 0"));
    return replace_dims(t, "expand_dim", (int)dim, (int)dim, &one, 1);
}

static PyObject *view_squeeze_dim(PyObject *self, PyObject *args, PyObject *kwargs)
{
    const struct nki_tensor *t = (struct nki_tensor *)self;
    static char *names[] = { "dim", NULL };
    PyObject *dim_obj;
    int dim = 0;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O:squeeze_dim", names, &dim_obj)) return NULL;
    if (ext_dim_number(t, dim_obj, "squeeze_dim", &dim) < 0) return NULL;
    if (dim == 0 && first_is_fixed(t)) return EXT_NULL(view_error(t, "squeeze_dim", "dimension 0 cannot go"));
    if (t->shape[dim] != 1)
        return EXT_NULL(view_error(t, "squeeze_dim", "dimension %d has size %lld, not 1", dim, (long long)t->shape[dim]));
    if (t->ndim <= (ext_on_chip(t) ? 2 : 1)) return EXT_NULL(view_error(t, "squeeze_dim", "no dimension would be left"));
    return replace_dims(t, "squeeze_dim", dim, dim + 1, NULL, 0);
}

static PyObject *view_slice(PyObject *self, PyObject *args, PyObject *kwargs)
{
    const struct nki_tensor *t = (struct nki_tensor *)self;
    static char *names[] = { "dim", "start", "end", "step", NULL };
    struct nki_tensor *v;
    int64_t start, end, step = 1, stride;
    PyObject *dim_obj, *start_obj, *end_obj, *step_obj = NULL;
    int dim = 0;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOO|O:slice", names, &dim_obj, &start_obj, &end_obj, &step_obj)) return NULL;
    if (ext_dim_number(t, dim_obj, "slice", &dim) < 0 || ext_integer(start_obj, "slice", "start", &start) < 0 ||
        ext_integer(end_obj, "slice", "end", &end) < 0 || (step_obj && ext_integer(step_obj, "slice", "step", &step) < 0))
        return NULL;
    if (start < 0 || start >= end || end > t->shape[dim] || step < 1)
        return EXT_NULL(view_error(t, "slice", "[%lld:%lld:%lld] of dimension %d: 0 <= start < end <= %lld and step >= 1",
                                   (long long)start, (long long)end, (long long)step, dim, (long long)t->shape[dim]));
    if (!vtrn_mul_i64(t->stride[dim], step, &stride)) stride = t->stride[dim]; /* one element is left: no step is taken */
    if (dim == 0 && ext_view_has_vector(t)) return EXT_NULL(view_error(t, "slice", "dimension 0 is indirect"));
    v = ext_view_of(t);
    if (!v) return NULL;
    v->offset += start * t->stride[dim];
    v->shape[dim] = 1 + (end - start - 1) / step;
    v->stride[dim] = stride;
    return (PyObject *)v;
}

static PyObject *view_is_contiguous(PyObject *self, PyObject *ignored)
{
    const struct nki_tensor *t = (struct nki_tensor *)self;
    int64_t inner = 1;

    (void)ignored;
    for (int i = t->ndim - 1; i >= (ext_on_chip(t) ? 1 : 0); i--) {
        if (t->shape[i] != 1 && t->stride[i] != inner) Py_RETURN_FALSE;
        inner *= t->shape[i];
    }
    Py_RETURN_TRUE;
}

/* ---------------------------------------------------------------- another dtype */
static int rescale(const struct nki_tensor *t, const char *what, int64_t *elems, int from, int to, const char *of)
{
    if (*elems * from % to != 0)
        return view_error(t, what, "%s of %lld %d-byte elements is not a multiple of %d bytes", of, (long long)*elems, from, to);
    *elems = *elems * from / to;
    return 0;
}

PyObject *ext_view_as(const struct nki_tensor *t, int dtype, const char *what)
{
    int from = vtrn_dtypes[t->dtype].size_bytes, to = vtrn_dtypes[dtype].size_bytes, last = t->ndim - 1;
    struct nki_tensor *v;

    v = ext_view_of(t);
    if (!v) return NULL;
    v->dtype = (uint8_t)dtype;
    if (from == to) return (PyObject *)v;
    if (v->shape[last] == 1) v->stride[last] = 1;
    if (v->stride[last] != 1) {
        view_error(t, what, "the last dimension is not contiguous (stride %lld)", (long long)v->stride[last]);
        goto failed;
    }
    if (ext_view_has_vector(t) && last == 0) {
        view_error(t, what, "the last dimension is indirect");
        goto failed;
    }
    if (ext_on_chip(t) && t->storage->row_bytes % to != 0) {
        view_error(t, what, "a partition has %lld bytes, not a multiple of %d", (long long)t->storage->row_bytes, to);
        goto failed;
    }
    if (rescale(t, what, &v->offset, from, to, "the offset") < 0) goto failed;
    if (rescale(t, what, &v->shape[last], from, to, "the last dimension") < 0) goto failed;
    for (int i = 0; i < last; i++)
        if (v->shape[i] != 1 && rescale(t, what, &v->stride[i], from, to, "a stride") < 0) goto failed;
    for (int i = 0; i < v->ndyn; i++)
        if (rescale(t, what, &v->dyn[i].scale, from, to, "a dynamic index's step") < 0) goto failed;
    return (PyObject *)v;

failed:
    Py_DECREF(v);
    return NULL;
}

static PyObject *view_view(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "dtype", NULL };
    PyObject *obj;
    int dtype;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O:view", names, &obj)) return NULL;
    dtype = ext_dtype(obj, "view");
    return dtype < 0 ? NULL : ext_view_as((struct nki_tensor *)self, dtype, "view");
}

/* ---------------------------------------------------------------- rearrange */
enum { RE_NAMES = EXT_RANK };
struct names { /* the names of a pattern in order; group[i]: its dimension */
    PyObject *name[RE_NAMES];
    int group[RE_NAMES];
    int count, groups;
};

static int read_names(const struct nki_tensor *t, PyObject *pattern, const char *which, struct names *out)
{
    if (!PyTuple_Check(pattern) && !PyList_Check(pattern))
        return view_error(t, "rearrange", "the %s pattern is not a tuple of names and tuples of names", which);
    out->groups = (int)PySequence_Fast_GET_SIZE(pattern);
    for (int g = 0; g < out->groups; g++) {
        PyObject *item = PySequence_Fast_GET_ITEM(pattern, g);
        bool nested = PyTuple_Check(item) || PyList_Check(item);
        Py_ssize_t n = nested ? PySequence_Fast_GET_SIZE(item) : 1;

        for (Py_ssize_t i = 0; i < n; i++) {
            PyObject *name = nested ? PySequence_Fast_GET_ITEM(item, i) : item;

            if (!PyUnicode_Check(name)) return view_error(t, "rearrange", "the %s pattern holds something that is no name", which);
            if (out->count == RE_NAMES) return view_error(t, "rearrange", "more than %d names", RE_NAMES);
            for (int k = 0; k < out->count; k++)
                if (PyUnicode_Compare(out->name[k], name) == 0)
                    return view_error(t, "rearrange", "a name stands twice in the %s pattern", which);
            out->name[out->count] = name;
            out->group[out->count++] = g;
        }
    }
    return 0;
}

/* Sizes of the source names: given ones, and one per dimension from the others. */
static int size_names(const struct nki_tensor *t, const struct names *src, PyObject *given, int64_t *size)
{
    for (int g = 0, first = 0; g < src->groups; g++) {
        int n = 0;

        while (first + n < src->count && src->group[first + n] == g) {
            PyObject *value = given && PyDict_Check(given) ? PyDict_GetItemWithError(given, src->name[first + n]) : NULL;

            size[first + n] = -1;
            if (PyErr_Occurred() || (value && ext_integer(value, "rearrange", "a size", &size[first + n]) < 0)) return -1;
            n++;
        }
        if (infer_size(t, "rearrange", size + first, n, t->shape[g]) < 0) return -1;
        first += n;
    }
    return 0;
}

static PyObject *split_source(const struct nki_tensor *t, const struct names *src, const int64_t *size)
{
    PyObject *v = Py_NewRef((PyObject *)t);

    for (int g = 0, first = 0; v && g < src->groups; g++) {
        PyObject *next;
        int n = 0;

        while (first + n < src->count && src->group[first + n] == g) n++;
        if (g == 0 && n != 1 && first_is_fixed(t)) {
            Py_DECREF(v);
            return EXT_NULL(view_error(t, "rearrange", "dimension 0 cannot be split"));
        }
        next = replace_dims((struct nki_tensor *)v, "rearrange", first, first + 1, size + first, n);
        Py_DECREF(v);
        v = next;
        first += n;
    }
    return v;
}

static PyObject *merge_groups(PyObject *v, const struct names *dst)
{
    for (int g = 0, first = 0; v && g < dst->groups; g++) {
        const struct nki_tensor *t = (struct nki_tensor *)v;
        int64_t size = 1;
        PyObject *next;
        int n = 0;

        while (first + n < dst->count && dst->group[first + n] == g) n++;
        for (int i = 0; i < n; i++) size *= t->shape[g + i];
        if (g == 0 && n != 1 && first_is_fixed(t)) next = EXT_NULL(view_error(t, "rearrange", "dimension 0 cannot be merged"));
        else next = replace_dims(t, "rearrange", g, g + n, &size, 1);
        Py_DECREF(v);
        v = next;
        first += n;
    }
    return v;
}

static PyObject *view_rearrange(PyObject *self, PyObject *args, PyObject *kwargs)
{
    const struct nki_tensor *t = (struct nki_tensor *)self;
    static char *keys[] = { "src_pattern", "dst_pattern", "fixed_sizes", NULL };
    PyObject *src_obj, *dst_obj, *sizes = NULL, *split, *v;
    struct names src = { .count = 0 }, dst = { .count = 0 };
    int64_t size[RE_NAMES], order[RE_NAMES];

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|O:rearrange", keys, &src_obj, &dst_obj, &sizes)) return NULL;
    if (read_names(t, src_obj, "source", &src) < 0 || read_names(t, dst_obj, "destination", &dst) < 0) return NULL;
    if (src.groups != t->ndim) return EXT_NULL(view_error(t, "rearrange", "the source pattern has %d dimensions", src.groups));
    if (src.count != dst.count) return EXT_NULL(view_error(t, "rearrange", "the patterns do not hold the same names"));
    for (int i = 0; i < dst.count; i++) {
        order[i] = -1;
        for (int k = 0; k < src.count; k++)
            if (PyUnicode_Compare(dst.name[i], src.name[k]) == 0) order[i] = k;
        if (order[i] < 0) return EXT_NULL(view_error(t, "rearrange", "the patterns do not hold the same names"));
    }
    if (size_names(t, &src, sizes, size) < 0) return NULL;
    split = split_source(t, &src, size);
    if (!split) return NULL;
    v = permuted((struct nki_tensor *)split, "rearrange", order, dst.count);
    Py_DECREF(split);
    return merge_groups(v, &dst);
}

#define METHOD(name, text) \
    { \
#name, (PyCFunction)(void (*)(void))view_##name, METH_VARARGS | METH_KEYWORDS, text \
    }
PyMethodDef ext_view_methods[] = {
    METHOD(reshape, "reshape(shape): the same elements in another shape; one size may be -1"),
    METHOD(reshape_dim, "reshape_dim(dim, shape): splits a dimension; one size may be -1"),
    METHOD(flatten_dims, "flatten_dims(start_dim, end_dim): merges dimensions, the end included"),
    METHOD(permute, "permute(dims): reorders the dimensions"),
    METHOD(broadcast, "broadcast(dim, size): repeats a size-1 dimension (stride 0)"),
    METHOD(expand_dim, "expand_dim(dim): inserts a size-1 dimension"),
    METHOD(squeeze_dim, "squeeze_dim(dim): removes a size-1 dimension"),
    METHOD(slice, "slice(dim, start, end, step=1): a range of one dimension"),
    METHOD(view, "view(dtype): the same bytes as another dtype; the last dimension is rescaled"),
    { "reinterpret_cast", (PyCFunction)(void (*)(void))view_view, METH_VARARGS | METH_KEYWORDS, "the same as view(dtype)" },
    METHOD(rearrange, "rearrange(src_pattern, dst_pattern, fixed_sizes=None): splits, reorders and merges by names"),
    { "is_contiguous", view_is_contiguous, METH_NOARGS, "row-major without gaps (on chip: in each partition)" },
    { 0 },
};
