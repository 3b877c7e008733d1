/* t[...]: integers, slices with a step, Ellipsis, None, nl.ds and registers. On chip the partition dimension stays (an
 * integer there gives size 1) and a view keeps at least two dimensions; in HBM an integer removes its dimension and a
 * view keeps at least one. Slices of slices compose. This is the hottest path of the front end: no allocation besides
 * the view itself. Rules: shared notes nki/language.md section 6. */
#include "ext.h"

struct indexer {
    const struct nki_tensor *t;
    struct nki_tensor *v; /* being filled */
    int dim;              /* next dimension of t */
    bool on_chip, has_vector;
};

static int index_error(const struct indexer *x, const char *fmt, ...) VTRN_PRINTF(2, 3);
static int index_error(const struct indexer *x, const char *fmt, ...)
{
    char why[300], tensor[300];
    va_list args;

    va_start(args, fmt);
    vsnprintf(why, sizeof why, fmt, args);
    va_end(args);
    return ext_raise(ext_errors.index, "index", "%s; the tensor is %s", why, ext_tensor_text(x->t, tensor, sizeof tensor));
}

/* The value of a small exact int, without the protocol's detours; false for everything else. */
static inline bool small_int(PyObject *obj, int64_t *out)
{
    if (VTRN_UNLIKELY(!PyLong_CheckExact(obj))) return false;
#if PY_VERSION_HEX >= 0x030c0000
    if (VTRN_UNLIKELY(!PyUnstable_Long_IsCompact((PyLongObject *)obj))) return false;
    *out = PyUnstable_Long_CompactValue((PyLongObject *)obj);
#else
    Py_ssize_t digits = Py_SIZE(obj);

    if (VTRN_UNLIKELY(digits < -1 || digits > 1)) return false;
    *out = digits == 0 ? 0 : digits * (int64_t)((PyLongObject *)obj)->ob_digit[0];
#endif
    return true;
}

/* ---------------------------------------------------------------- one item */
static inline int add_dim(struct indexer *x, int64_t stride, int64_t count)
{
    if (x->v->ndim == EXT_RANK) return index_error(x, "more than %d dimensions", EXT_RANK);
    x->v->stride[x->v->ndim] = stride;
    x->v->shape[x->v->ndim++] = count;
    return 0;
}

static int take_whole(struct indexer *x)
{
    int64_t stride = x->t->stride[x->dim], count = x->t->shape[x->dim];

    x->dim++;
    return add_dim(x, stride, count);
}

static inline int take_range(struct indexer *x, int64_t start, int64_t step, int64_t count)
{
    int64_t stride = x->t->stride[x->dim];

    if (VTRN_UNLIKELY(x->has_vector) && x->dim == 0 && (start != 0 || step != 1 || count != x->t->shape[0]))
        return index_error(x, "dimension 0 is addressed by a vector of indices and cannot be sliced");
    x->v->offset += start * stride;
    x->dim++;
    return add_dim(x, stride * step, count);
}

/* [a:b] with plain numbers inside the dimension or whole [:], which nearly every slice of a kernel is. */
static inline bool plain_slice(const PySliceObject *slice, int64_t size, int64_t *start, int64_t *stop)
{
    if (VTRN_UNLIKELY(slice->step != Py_None)) return false;
    *start = 0;
    *stop = size;
    if (slice->start != Py_None && !small_int(slice->start, start)) return false;
    if (slice->stop != Py_None && !small_int(slice->stop, stop)) return false;
    return *start >= 0 && *start < *stop && *stop <= size;
}

static int take_slice(struct indexer *x, PyObject *slice)
{
    Py_ssize_t start, stop, step, count;
    int64_t size = x->t->shape[x->dim], plain_start, plain_stop;

    if (VTRN_LIKELY(plain_slice((PySliceObject *)slice, size, &plain_start, &plain_stop)))
        return take_range(x, plain_start, 1, plain_stop - plain_start);

    if (PySlice_Unpack(slice, &start, &stop, &step) < 0) {
        bool is_step = PyErr_ExceptionMatches(PyExc_ValueError);

        if (!is_step && !PyErr_ExceptionMatches(PyExc_TypeError)) return -1;
        PyErr_Clear();
        if (is_step) return index_error(x, "dimension %d: step 0; it must be at least 1", x->dim);
        return ext_raise(ext_errors.type, "index", "dimension %d: the bounds of a slice are integers, registers or left out", x->dim);
    }
    if (step < 1) return index_error(x, "dimension %d: step %zd; it must be at least 1", x->dim, step);
    if (step > size) step = size; /* reaches no second element either, and fits in a stride */
    if (start == stop && start >= 0 && start <= size) return take_range(x, start, step, 0); /* an empty share of the work */
    count = PySlice_AdjustIndices(size, &start, &stop, step);
    if (count < 1)
        return index_error(x, "dimension %d: the slice [%zd:%zd] of size %lld is empty", x->dim, start, stop, (long long)size);
    return take_range(x, start, step, count);
}

static int take_integer(struct indexer *x, int64_t index)
{
    int64_t size = x->t->shape[x->dim];

    if (index < -size || index >= size)
        return index_error(x, "dimension %d: index %lld is outside 0..%lld", x->dim, (long long)index, (long long)size - 1);
    if (index < 0) index += size;
    if (x->on_chip && x->dim == 0) return take_range(x, index, 1, 1);
    if (x->has_vector && x->dim == 0)
        return index_error(x, "dimension 0 is addressed by a vector of indices and cannot be selected");
    x->v->offset += index * x->t->stride[x->dim++];
    return 0;
}

/* `count` elements from a register; 0: the dimension goes, as with an integer. */
static int take_register(struct indexer *x, PyObject *reg, int64_t count)
{
    int64_t stride = x->t->stride[x->dim], size = x->t->shape[x->dim];
    const struct nki_register *r = (struct nki_register *)reg;

    if (r->known || (x->on_chip && x->dim == 0)) { /* partitions cannot be chosen while the chip runs */
        Py_ssize_t index = PyNumber_AsSsize_t(reg, NULL); /* too large ones are cut: outside of any tensor */

        if (index == -1 && PyErr_Occurred()) return -1;
        if (count == 0) return take_integer(x, index);
        if (index < 0 || index > size - count)
            return index_error(x, "dimension %d: nl.ds(%zd, %lld) ends beyond %lld", x->dim, index, (long long)count,
                               (long long)size);
        return take_range(x, index, 1, count);
    }
    if (x->has_vector && x->dim == 0) return index_error(x, "dimension 0 is addressed by a vector of indices");
    if (count > size) return index_error(x, "dimension %d: size %lld > %lld", x->dim, (long long)count, (long long)size);
    if (ext_view_add_dyn(x->v, VTRN_DYN_REG, reg, stride, size - (count ? count : 1) + 1) < 0) return -1;
    x->dim++;
    return count == 0 ? 0 : add_dim(x, stride, count);
}

static int take_ds(struct indexer *x, const struct nki_ds *ds)
{
    int64_t start, size = x->t->shape[x->dim];

    if (IS_REGISTER(ds->start) && ds->size == 0) return take_range(x, 0, 1, 0);
    if (IS_REGISTER(ds->start)) return take_register(x, ds->start, ds->size);
    start = PyNumber_AsSsize_t(ds->start, NULL);
    if (start == -1 && PyErr_Occurred()) return -1;
    if (start < 0 || start > size - ds->size)
        return index_error(x, "dimension %d: nl.ds(%lld, %lld) is outside 0..%lld", x->dim, (long long)start, (long long)ds->size,
                           (long long)size - 1);
    return take_range(x, start, 1, ds->size);
}

static int take_new_axis(struct indexer *x)
{
    if (x->on_chip && x->dim == 0) return index_error(x, "None cannot stand before the partition dimension");
    return add_dim(x, 0, 1);
}

static int refuse_index(PyObject *item)
{
    PyErr_Clear();
    return ext_raise(ext_errors.type, "index", "%.100s is not an index: use integers, slices, nl.ds, ... or a register%s",
                     Py_TYPE(item)->tp_name, IS_TENSOR(item) ? " (a tensor of indices: .ap(vector_offset=) or .select())" : "");
}

static inline int take_item(struct indexer *x, PyObject *item)
{
    Py_ssize_t index;
    int64_t number;

    if (VTRN_LIKELY(PySlice_Check(item))) return take_slice(x, item);
    if (small_int(item, &number)) return take_integer(x, number);
    if (Py_TYPE(item) == &nki_ds_type) return take_ds(x, (struct nki_ds *)item);
    if (IS_REGISTER(item)) return take_register(x, item, 0);
    if (PyBool_Check(item) || !PyIndex_Check(item)) return refuse_index(item);
    index = PyNumber_AsSsize_t(item, NULL); /* too large ones are cut: outside of any tensor */
    if (index == -1 && PyErr_Occurred()) return PyErr_ExceptionMatches(PyExc_TypeError) ? refuse_index(item) : -1;
    return take_integer(x, index);
}

/* ---------------------------------------------------------------- the whole index */
/* Dimensions that the items take, the Ellipsis apart. */
static int count_taken(PyObject *const *items, Py_ssize_t count, int *ellipses_out)
{
    int taken = 0;

    for (Py_ssize_t i = 0; i < count; i++) {
        if (items[i] == Py_Ellipsis) ++*ellipses_out;
        else if (items[i] != Py_None) taken++;
    }
    return taken;
}

static int fill_view(struct indexer *x, PyObject *const *items, Py_ssize_t count)
{
    int ellipses = 0, taken = count_taken(items, count, &ellipses);

    if (taken > x->t->ndim) return index_error(x, "%d indices for %d dimensions", taken, x->t->ndim);
    if (ellipses > 1) return index_error(x, "more than one ...");
    for (Py_ssize_t i = 0; i < count; i++) {
        if (items[i] == Py_Ellipsis) {
            for (int left = x->t->ndim - taken; left > 0; left--)
                if (take_whole(x) < 0) return -1;
        } else if ((items[i] == Py_None ? take_new_axis(x) : take_item(x, items[i])) < 0) {
            return -1;
        }
    }
    while (x->dim < x->t->ndim)
        if (take_whole(x) < 0) return -1;
    if (x->v->ndim < (x->on_chip ? 2 : 1)) return add_dim(x, 1, 1);
    return 0;
}

static int copy_dyns(struct nki_tensor *v, const struct nki_tensor *t)
{
    for (int i = 0; i < t->ndyn; i++)
        if (ext_view_add_dyn(v, t->dyn[i].kind, t->dyn[i].index, t->dyn[i].scale, t->dyn[i].limit) < 0) return -1;
    return 0;
}

PyObject *ext_tensor_getitem(PyObject *self, PyObject *key)
{
    const struct nki_tensor *t = (struct nki_tensor *)self;
    struct nki_tensor *v = ext_tensor_alloc();
    struct indexer x = { .t = t, .v = v, .dim = 0, .on_chip = t->storage->row_elems != 0 };
    bool is_tuple = PyTuple_Check(key);
    PyObject *const *items = is_tuple ? &PyTuple_GET_ITEM(key, 0) : &key;

    if (!v) return NULL;
    v->storage = t->storage;
    v->storage->refs++;
    v->offset = t->offset;
    v->ndim = 0;
    v->dtype = t->dtype;
    v->ndyn = 0;
    v->is_truth = t->is_truth;
    v->dyn = NULL;
    if (VTRN_UNLIKELY(t->ndyn > 0)) {
        x.has_vector = ext_view_has_vector(t);
        if (copy_dyns(v, t) < 0) goto failed;
    }
    if (fill_view(&x, items, is_tuple ? PyTuple_GET_SIZE(key) : 1) < 0) goto failed;
    return (PyObject *)v;

failed:
    Py_DECREF(v);
    return NULL;
}

/* ---------------------------------------------------------------- nl.ds */
static void ds_dealloc(PyObject *self)
{
    Py_DECREF(((struct nki_ds *)self)->start);
    PyObject_Free(self);
}

static PyObject *ds_repr(PyObject *self)
{
    const struct nki_ds *ds = (struct nki_ds *)self;

    return PyUnicode_FromFormat("nl.ds(%R, %lld)", ds->start, (long long)ds->size);
}

static PyObject *ds_start(PyObject *self, void *unused)
{
    (void)unused;
    return Py_NewRef(((struct nki_ds *)self)->start);
}

static PyObject *ds_size(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromLongLong(((struct nki_ds *)self)->size);
}

static PyGetSetDef ds_attributes[] = { { "start", ds_start, NULL, NULL, NULL }, { "size", ds_size, NULL, NULL, NULL }, { 0 } };

PyTypeObject nki_ds_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "vtrn.DynamicSlice",
    .tp_doc = "nl.ds(start, size): `size` elements from `start`, an integer or a register. Size 0 gives an empty view: "
              "a core's share can be nothing, but an instruction needs elements.",
    .tp_basicsize = sizeof(struct nki_ds),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_dealloc = ds_dealloc,
    .tp_repr = ds_repr,
    .tp_getset = ds_attributes,
};

static int ds_argument(PyObject *kwnames, PyObject *const *args, Py_ssize_t nargs, int position, const char *name, PyObject **value)
{
    Py_ssize_t named = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;

    if (position < nargs) *value = args[position];
    for (Py_ssize_t i = 0; i < named; i++)
        if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(kwnames, i), name) == 0) *value = args[nargs + i];
    return *value ? 0 : ext_raise(ext_errors.type, "nl.ds", "argument %s is missing", name);
}

PyObject *ext_ds(PyObject *module, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    PyObject *start = NULL, *size = NULL;
    struct nki_ds *ds;
    int64_t count;

    (void)module;
    if (nargs > 2) return EXT_NULL(ext_raise(ext_errors.type, "nl.ds", "takes start and size, %zd arguments given", nargs));
    if (ds_argument(kwnames, args, nargs, 0, "start", &start) < 0) return NULL;
    if (ds_argument(kwnames, args, nargs, 1, "size", &size) < 0) return NULL;
    if (ext_integer(size, "nl.ds", "size", &count) < 0) return NULL;
    if (count < 0) return EXT_NULL(ext_raise(ext_errors.value, "nl.ds", "size %lld; it cannot be negative", (long long)count));
    start = IS_REGISTER(start) ? Py_NewRef(start) : PyNumber_Index(start);
    if (!start) return NULL;
    ds = PyObject_New(struct nki_ds, &nki_ds_type);
    if (!ds) {
        Py_DECREF(start);
        return NULL;
    }
    ds->start = start;
    ds->size = count;
    return (PyObject *)ds;
}
