/* NkiTensor: a view of a declared tensor. Shape, strides and offset live in C so that slicing in a kernel's inner loop
 * costs no Python arithmetic; an instruction reads them when it is appended. Views are immutable and hold their storage;
 * when the last view of an automatic on-chip tensor goes, its memory is released after the instructions that use it.
 * What a view may become is in index.c, views.c and pattern.c. */
#include "ext.h"

#include <structmember.h>

/* ---------------------------------------------------------------- storage */
struct storage *ext_storage_new(struct session *s, const struct vtrn_tensor *proto, uint32_t tensor, PyObject *name)
{
    struct storage *storage = PyMem_Calloc(1, sizeof *storage);
    const struct vtrn_tensor *made = &s->prog->tensor[tensor];

    if (!storage) return (struct storage *)PyErr_NoMemory();
    storage->refs = 1;
    storage->session = (struct session *)Py_NewRef(s);
    storage->name = name ? Py_NewRef(name) : PyUnicode_InternFromString("");
    storage->tensor = tensor;
    storage->space = proto->space;
    storage->dtype = proto->dtype;
    storage->core = proto->core;
    storage->has_address = proto->has_address;
    storage->is_input = proto->role == VTRN_ROLE_INPUT;
    storage->readonly = proto->role == VTRN_ROLE_CONST;
    storage->row_bytes = made->row_bytes;
    if (vtrn_space_on_chip(proto->space)) storage->row_elems = made->row_bytes / vtrn_dtypes[proto->dtype].size_bytes;
    return storage;
}

/* The tensor's memory may go once the instructions appended so far have run. */
static void queue_release(struct storage *storage)
{
    struct trace *t = &storage->session->trace[storage->core];

    if (t->releases == t->release_capacity) {
        uint32_t wanted = t->release_capacity ? t->release_capacity * 2 : 256;
        uint32_t *grown = PyMem_Realloc(t->released, wanted * sizeof *grown);

        if (!grown) return; /* the tensor stays until the run ends */
        t->released = grown;
        t->release_capacity = wanted;
    }
    t->released[t->releases++] = storage->tensor;
}

void ext_storage_unref(struct storage *storage)
{
    if (--storage->refs > 0) return;
    if (storage->session->chip && vtrn_space_on_chip(storage->space) && !storage->has_address) queue_release(storage);
    Py_DECREF(storage->name);
    Py_DECREF(storage->session);
    PyMem_Free(storage);
}

/* ---------------------------------------------------------------- views: life and death */
enum { FREE_VIEWS = 128 };
static struct nki_tensor *free_view[FREE_VIEWS]; /* objects waiting to be used again; under the GIL */
static int free_views;

struct nki_tensor *ext_tensor_alloc(void)
{
    struct nki_tensor *t;

    if (VTRN_LIKELY(free_views > 0)) {
        t = free_view[--free_views];
        return (struct nki_tensor *)PyObject_Init((PyObject *)t, &nki_tensor_type);
    }
    return PyObject_New(struct nki_tensor, &nki_tensor_type);
}

static void free_dyns(struct nki_tensor *t)
{
    for (int i = 0; i < t->ndyn; i++) Py_DECREF(t->dyn[i].index);
    PyMem_Free(t->dyn);
}

static void tensor_dealloc(PyObject *self)
{
    struct nki_tensor *t = (struct nki_tensor *)self;

    if (VTRN_UNLIKELY(t->ndyn > 0)) free_dyns(t);
    ext_storage_unref(t->storage);
    if (free_views < FREE_VIEWS) free_view[free_views++] = t;
    else PyObject_Free(self);
}

struct nki_tensor *ext_view_of(const struct nki_tensor *t)
{
    struct nki_tensor *v = ext_tensor_alloc();

    if (!v) return NULL;
    v->storage = t->storage;
    v->storage->refs++;
    v->offset = t->offset;
    v->ndim = t->ndim;
    v->dtype = t->dtype;
    v->ndyn = 0;
    v->is_truth = 0;
    v->dyn = NULL;
    for (int i = 0; i < t->ndim; i++) {
        v->shape[i] = t->shape[i];
        v->stride[i] = t->stride[i];
    }
    for (int i = 0; i < t->ndyn; i++)
        if (ext_view_add_dyn(v, t->dyn[i].kind, t->dyn[i].index, t->dyn[i].scale, t->dyn[i].limit) < 0) {
            Py_DECREF(v);
            return NULL;
        }
    return v;
}

int ext_view_add_dyn(struct nki_tensor *v, int kind, PyObject *index, int64_t scale, int64_t limit)
{
    if (v->ndyn == TENSOR_DYNS)
        return ext_raise(ext_errors.validation, "NkiTensor", "more than %d dynamic indices in one view", TENSOR_DYNS);
    if (!v->dyn) {
        v->dyn = PyMem_Calloc(TENSOR_DYNS, sizeof *v->dyn);
        if (!v->dyn) {
            PyErr_NoMemory();
            return -1;
        }
    }
    v->dyn[v->ndyn++] = (struct tensor_dyn){ (uint8_t)kind, Py_NewRef(index), scale, limit };
    return 0;
}

bool ext_view_has_vector(const struct nki_tensor *t)
{
    for (int i = 0; i < t->ndyn; i++)
        if (t->dyn[i].kind == VTRN_DYN_VECTOR || t->dyn[i].kind == VTRN_DYN_INDIRECT) return true;
    return false;
}

PyObject *ext_tensor_of_storage(struct storage *storage, const int64_t *shape, int ndim, int dtype)
{
    struct nki_tensor *t = ext_tensor_alloc();
    int64_t stride = 1;

    if (!t) {
        ext_storage_unref(storage);
        return NULL;
    }
    t->storage = storage;
    t->offset = 0;
    t->ndim = (uint8_t)ndim;
    t->dtype = (uint8_t)dtype;
    t->ndyn = 0;
    t->is_truth = 0;
    t->dyn = NULL;
    for (int i = ndim - 1; i >= 0; i--) {
        t->shape[i] = shape[i];
        t->stride[i] = stride;
        stride *= shape[i];
    }
    return (PyObject *)t;
}

bool ext_on_chip(const struct nki_tensor *t) { return vtrn_space_on_chip(t->storage->space); }

int64_t ext_tensor_elems(const struct nki_tensor *t)
{
    int64_t n = 1;

    for (int i = 0; i < t->ndim; i++)
        if (!vtrn_mul_i64(n, t->shape[i], &n)) return INT64_MAX;
    return n;
}

/* ---------------------------------------------------------------- attributes */
PyObject *ext_dims_tuple(const int64_t *dims, int n)
{
    PyObject *tuple = PyTuple_New(n);

    for (int i = 0; tuple && i < n; i++) {
        PyObject *item = PyLong_FromLongLong(dims[i]);

        if (!item) Py_CLEAR(tuple);
        else PyTuple_SET_ITEM(tuple, i, item);
    }
    return tuple;
}

static PyObject *get_shape(PyObject *self, void *unused)
{
    const struct nki_tensor *t = (struct nki_tensor *)self;

    (void)unused;
    return ext_dims_tuple(t->shape, t->ndim);
}

static PyObject *get_strides(PyObject *self, void *unused)
{
    const struct nki_tensor *t = (struct nki_tensor *)self;

    (void)unused;
    return ext_dims_tuple(t->stride, t->ndim);
}

static PyObject *get_offset(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromLongLong(((struct nki_tensor *)self)->offset);
}

static PyObject *get_dtype(PyObject *self, void *unused)
{
    (void)unused;
    return Py_NewRef(ext_dtype_object(((struct nki_tensor *)self)->dtype));
}

static PyObject *get_buffer(PyObject *self, void *unused)
{
    (void)unused;
    return Py_NewRef(ext_buffer_object(((struct nki_tensor *)self)->storage->space));
}

static PyObject *get_name(PyObject *self, void *unused)
{
    (void)unused;
    return Py_NewRef(((struct nki_tensor *)self)->storage->name);
}

static PyObject *get_ndim(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromLong(((struct nki_tensor *)self)->ndim);
}

static PyObject *get_size(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromLongLong(ext_tensor_elems((struct nki_tensor *)self));
}

static PyObject *get_tensor_id(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromUnsignedLong(((struct nki_tensor *)self)->storage->tensor);
}

static PyObject *get_written(PyObject *self, void *unused)
{
    (void)unused;
    return PyBool_FromLong(((struct nki_tensor *)self)->storage->written);
}

static PyGetSetDef tensor_attributes[] = {
    { "shape", get_shape, NULL, "dimensions", NULL },
    { "strides", get_strides, NULL, "elements from one index to the next, per dimension", NULL },
    { "offset", get_offset, NULL, "first element, relative to the storage", NULL },
    { "dtype", get_dtype, NULL, "NKI dtype name", NULL },
    { "buffer", get_buffer, NULL, "memory region", NULL },
    { "name", get_name, NULL, "name given when it was declared", NULL },
    { "ndim", get_ndim, NULL, "number of dimensions", NULL },
    { "size", get_size, NULL, "number of elements", NULL },
    { "_id", get_tensor_id, NULL, "number in the program's tensor table", NULL },
    { "_written", get_written, NULL, "an instruction writes it", NULL },
    { 0 },
};

/* ---------------------------------------------------------------- text */
static int print_dims(char *out, size_t size, const int64_t *dims, int n)
{
    int used = snprintf(out, size, "(");

    for (int i = 0; i < n && used < (int)size; i++)
        used += snprintf(out + used, size - (size_t)used, "%s%lld", i ? ", " : "", (long long)dims[i]);
    if (used < (int)size) used += snprintf(out + used, size - (size_t)used, n == 1 ? ",)" : ")");
    return used < (int)size ? used : (int)size - 1;
}

char *ext_tensor_text(const struct nki_tensor *t, char *out, size_t size)
{
    const char *name = ext_utf8(t->storage->name);
    int used = snprintf(out, size, "%s ", name && name[0] ? name : "tensor");

    if (used >= (int)size) return out;
    used += print_dims(out + used, size - (size_t)used, t->shape, t->ndim);
    snprintf(out + used, size - (size_t)used, " %s %s", vtrn_dtypes[t->dtype].nki_name, vtrn_space_name(t->storage->space));
    return out;
}

static PyObject *tensor_repr(PyObject *self)
{
    char text[400];

    return PyUnicode_FromFormat("<NkiTensor %s>", ext_tensor_text((struct nki_tensor *)self, text, sizeof text));
}

/* print(t) shows the values where they can be known; repr() never looks. */
static PyObject *tensor_str(PyObject *self)
{
    const struct trace *t = ext_current;

    if (!t || t->open_loops || t->session != ((struct nki_tensor *)self)->storage->session) return tensor_repr(self);
    return PyObject_CallMethod(self, "_text", NULL);
}

/* ---------------------------------------------------------------- values */
/* The elements of the view, packed, as a bytearray: runs everything up to here first. */
static PyObject *tensor_read(PyObject *self, PyObject *ignored)
{
    const struct nki_tensor *tensor = (struct nki_tensor *)self;
    struct trace *t = ext_trace("the value of a tensor");
    int64_t bytes;
    struct vtrn_error err;
    struct vtrn_ap ap;
    enum vtrn_status status;
    PyObject *out;

    (void)ignored;
    if (!t || ext_sync(t, "the value of a tensor") < 0) return NULL;
    if (!vtrn_mul_i64(ext_tensor_elems(tensor), vtrn_dtypes[tensor->dtype].size_bytes, &bytes)) return PyErr_NoMemory();
    ext_begin(t, VTRN_OP_device_print); /* dynamic parts of the pattern live in an instruction */
    if (ext_operand(t, &t->inst, tensor, &ap, "the value of a tensor") < 0) return NULL;
    out = PyByteArray_FromStringAndSize(NULL, (Py_ssize_t)bytes);
    if (!out) return NULL;
    status = vtrn_core_peek(vtrn_chip_core(t->session->chip, t->core), &ap, PyByteArray_AS_STRING(out), (size_t)bytes, &err);
    if (status < 0) {
        Py_DECREF(out);
        return EXT_NULL(ext_raise_status(status, &err, "the value of a tensor"));
    }
    return out;
}

static bool all_nonzero(const uint8_t *bytes, Py_ssize_t size, int elem)
{
    for (Py_ssize_t i = 0; i < size; i += elem) {
        bool any = false;

        for (int b = 0; b < elem; b++) any = any || bytes[i + b] != 0;
        if (!any) return false;
    }
    return true;
}

/* A tensor is true as any object is. What a comparison (nl.equal, ...) made is true when it holds everywhere. */
static int tensor_bool(PyObject *self)
{
    const struct nki_tensor *t = (struct nki_tensor *)self;
    PyObject *bytes;
    int truth;

    if (!t->is_truth) return 1;
    bytes = tensor_read(self, NULL);
    if (!bytes) return -1;
    t->storage->session->prog->replayable = false;
    truth = all_nonzero((const uint8_t *)PyByteArray_AS_STRING(bytes), PyByteArray_GET_SIZE(bytes), vtrn_dtypes[t->dtype].size_bytes);
    Py_DECREF(bytes);
    return truth;
}

static PyObject *tensor_mark_truth(PyObject *self, PyObject *ignored)
{
    (void)ignored;
    ((struct nki_tensor *)self)->is_truth = 1;
    return Py_NewRef(self);
}

static PyObject *tensor_mark_looked(PyObject *self, PyObject *ignored)
{
    const struct nki_tensor *t = (struct nki_tensor *)self;

    (void)ignored;
    if (t->storage->session->prog) t->storage->session->prog->replayable = false;
    Py_RETURN_NONE;
}

/* t[key] = value is a copy, or a fill; which instructions those are is said in nl (memory.py). */
static int tensor_setitem(PyObject *self, PyObject *key, PyObject *value)
{
    PyObject *view, *result;

    if (!value) return ext_raise(ext_errors.type, "NkiTensor", "elements cannot be deleted");
    view = ext_tensor_getitem(self, key);
    if (!view) return -1;
    result = PyObject_CallMethod(view, "_assign", "O", value);
    Py_DECREF(view);
    Py_XDECREF(result);
    return result ? 0 : -1;
}

static PyNumberMethods tensor_number = { .nb_bool = tensor_bool };
static PyMappingMethods tensor_mapping = { .mp_subscript = ext_tensor_getitem, .mp_ass_subscript = tensor_setitem };
static PyMethodDef tensor_methods[] = {
    { "_read", tensor_read, METH_NOARGS, "the elements, packed, as a bytearray" },
    { "_mark_truth", tensor_mark_truth, METH_NOARGS, "bool() of it means: true everywhere" },
    { "_mark_looked", tensor_mark_looked, METH_NOARGS, "Python has seen values: the program cannot be replayed" },
    { 0 },
};

PyTypeObject nki_tensor_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "vtrn.NkiTensor",
    .tp_doc = "A view of a tensor in SBUF, PSUM or HBM. Made by nl.ndarray, by indexing and by the view methods.",
    .tp_basicsize = sizeof(struct nki_tensor),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_dealloc = tensor_dealloc,
    .tp_repr = tensor_repr,
    .tp_str = tensor_str,
    .tp_as_number = &tensor_number,
    .tp_as_mapping = &tensor_mapping,
    .tp_methods = tensor_methods,
    .tp_getset = tensor_attributes,
};
