/* vtrn.npdtypes: NumPy data types for the packed MX elements that NumPy and ml_dtypes lack, so that users can make
 * such arrays by name (np.zeros(shape, "float8_e4m3fn_x4")), pass them to kernels and compare results.
 *
 * An element is opaque bytes: it can be made, copied, viewed, compared and converted to and from four fp32 values
 * (pack, unpack); it has no arithmetic and no casts. The values' formats are kern's business. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#define NPY_NO_DEPRECATED_API NPY_1_21_API_VERSION
#define NPY_TARGET_VERSION NPY_1_21_API_VERSION
#include <numpy/arrayobject.h>
#include <numpy/ufuncobject.h>

#include "kern/kern.h"

struct element { /* scalar object: one element */
    PyObject_HEAD
    uint32_t bits;
};

static PyObject *element_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    unsigned long bits = 0;
    (void)kwargs;
    if (!PyArg_ParseTuple(args, "|k", &bits)) return NULL;
    struct element *self = (struct element *)type->tp_alloc(type, 0);
    if (self) self->bits = (uint32_t)bits;
    return (PyObject *)self;
}

static PyObject *element_repr(PyObject *self)
{
    return PyUnicode_FromFormat("%s(0x%x)", Py_TYPE(self)->tp_name, (unsigned)((struct element *)self)->bits);
}

static PyObject *element_str(PyObject *self)
{
    return PyUnicode_FromFormat("0x%x", (unsigned)((struct element *)self)->bits);
}

static PyObject *element_int(PyObject *self) { return PyLong_FromUnsignedLong(((struct element *)self)->bits); }

static Py_hash_t element_hash(PyObject *self) { return (Py_hash_t)((struct element *)self)->bits; }

static PyObject *element_compare(PyObject *a, PyObject *b, int op)
{
    if (Py_TYPE(a) != Py_TYPE(b) || (op != Py_EQ && op != Py_NE)) Py_RETURN_NOTIMPLEMENTED;
    bool same = ((struct element *)a)->bits == ((struct element *)b)->bits;
    return PyBool_FromLong(same == (op == Py_EQ));
}

/* ---- NumPy's view of a type: bytes in, bytes out ---- */

struct packed_type {
    const char *name;
    enum vtrn_dtype dtype;
    int size_bytes;
    char letter;
    PyTypeObject *scalar;
    PyArray_Descr *descr; /* the registered dtype */
};
/* The one table of the module; filled in once at import, constant after. */
static struct packed_type packed_types[] = {
    {"float8_e4m3fn_x4", VTRN_DT_F8E4M3FNX4, 4, 'x', NULL, NULL},
    {"float8_e5m2_x4", VTRN_DT_F8E5M2X4, 4, 'y', NULL, NULL},
    {"float4_e2m1fn_x4", VTRN_DT_F4E2M1FNX4, 2, 'z', NULL, NULL},
};
enum { PACKED_TYPES = sizeof packed_types / sizeof packed_types[0] };

static uint32_t read_bits(const void *data, int size)
{
    if (size == 4) {
        uint32_t wide;
        memcpy(&wide, data, 4);
        return wide;
    }
    uint16_t narrow;
    memcpy(&narrow, data, 2);
    return narrow;
}

static void write_bits(void *data, int size, uint32_t bits)
{
    uint16_t narrow = (uint16_t)bits;
    memcpy(data, size == 4 ? (const void *)&bits : (const void *)&narrow, (size_t)size);
}

static PyObject *get_item(int index, const void *data)
{
    struct element *item = PyObject_New(struct element, packed_types[index].scalar);
    if (item) item->bits = read_bits(data, packed_types[index].size_bytes);
    return (PyObject *)item;
}

static int set_item(int index, PyObject *value, void *data)
{
    unsigned long bits;
    if (Py_TYPE(value) == packed_types[index].scalar) {
        bits = ((struct element *)value)->bits;
    } else {
        PyObject *number = PyNumber_Index(value);
        if (!number) {
            PyErr_Format(PyExc_TypeError, "an element of %s is set from its bits (an int), not from %.100s: pack() "
                         "makes elements from values", packed_types[index].name, Py_TYPE(value)->tp_name);
            return -1;
        }
        bits = PyLong_AsUnsignedLongMask(number);
        Py_DECREF(number);
    }
    write_bits(data, packed_types[index].size_bytes, (uint32_t)bits);
    return 0;
}

static void copy_swap(int size, void *dst, const void *src, int swap)
{
    if (src) memcpy(dst, src, (size_t)size);
    if (!swap) return;
    uint8_t *byte = dst;
    for (int i = 0; i < size / 2; i++) {
        uint8_t held = byte[i];
        byte[i] = byte[size - 1 - i];
        byte[size - 1 - i] = held;
    }
}

static void copy_swap_n(int size, void *dst, npy_intp dst_stride, const void *src, npy_intp src_stride, npy_intp n,
                        int swap)
{
    for (npy_intp i = 0; i < n; i++)
        copy_swap(size, (char *)dst + i * dst_stride, src ? (const char *)src + i * src_stride : NULL, swap);
}

/* NumPy's callbacks carry no closure, so each type needs its own: INDEX names the row of packed_types. */
#define CALLBACKS(INDEX, SIZE) \
    static PyObject *get_item_##INDEX(void *data, void *array) { (void)array; return get_item(INDEX, data); } \
    static int set_item_##INDEX(PyObject *value, void *data, void *array) { (void)array; return set_item(INDEX, value, data); } \
    static void copy_swap_##INDEX(void *d, void *s, int swap, void *a) { (void)a; copy_swap(SIZE, d, s, swap); } \
    static void copy_swap_n_##INDEX(void *d, npy_intp ds, void *s, npy_intp ss, npy_intp n, int swap, void *a) \
    { (void)a; copy_swap_n(SIZE, d, ds, s, ss, n, swap); } \
    static npy_bool non_zero_##INDEX(void *data, void *a) { (void)a; return read_bits(data, SIZE) != 0; }
CALLBACKS(0, 4)
CALLBACKS(1, 4)
CALLBACKS(2, 2)
#define FILL(INDEX) \
    {get_item_##INDEX, set_item_##INDEX, copy_swap_##INDEX, copy_swap_n_##INDEX, non_zero_##INDEX}
static const struct {
    PyArray_GetItemFunc *get_item;
    PyArray_SetItemFunc *set_item;
    PyArray_CopySwapFunc *copy_swap;
    PyArray_CopySwapNFunc *copy_swap_n;
    PyArray_NonzeroFunc *non_zero;
} callbacks[PACKED_TYPES] = {FILL(0), FILL(1), FILL(2)};

static void compare_loop(char **args, const npy_intp *dimensions, const npy_intp *steps, void *data)
{
    int size = (int)((intptr_t)data & 0xf);
    bool want_equal = ((intptr_t)data & 0x10) != 0;
    for (npy_intp i = 0; i < dimensions[0]; i++) {
        bool same = memcmp(args[0] + i * steps[0], args[1] + i * steps[1], (size_t)size) == 0;
        *(npy_bool *)(args[2] + i * steps[2]) = same == want_equal;
    }
}

static int register_compare(PyObject *numpy, const char *name, int type_number, int size, bool want_equal)
{
    PyObject *ufunc = PyObject_GetAttrString(numpy, name);
    if (!ufunc) return -1;
    int types[3] = {type_number, type_number, NPY_BOOL};
    intptr_t data = size | (want_equal ? 0x10 : 0);
    int failed = PyUFunc_RegisterLoopForType((PyUFuncObject *)ufunc, type_number, compare_loop, types, (void *)data);
    Py_DECREF(ufunc);
    return failed;
}

static PyTypeObject *make_scalar_type(const char *name)
{
    PyType_Slot slots[] = {{Py_tp_new, element_new},          {Py_tp_repr, element_repr}, {Py_tp_str, element_str}, {Py_tp_hash, element_hash},
                           {Py_tp_richcompare, element_compare}, {Py_nb_index, element_int}, {Py_nb_int, element_int},
                           {Py_tp_doc, "One packed MX element: four values in the order of rising bits."}, {0, NULL}};
    char *full = PyMem_Malloc(strlen(name) + 20); /* the type keeps the pointer: never freed, one per type */
    if (!full) return (PyTypeObject *)PyErr_NoMemory();
    sprintf(full, "vtrn.npdtypes.%s", name);
    PyType_Spec spec = {full, sizeof(struct element), 0, Py_TPFLAGS_DEFAULT, slots};
    PyObject *bases = PyTuple_Pack(1, (PyObject *)&PyGenericArrType_Type);
    if (!bases) return NULL;
    PyObject *type = PyType_FromSpecWithBases(&spec, bases);
    Py_DECREF(bases);
    return (PyTypeObject *)type;
}

static int register_type(int index, PyObject *module, PyObject *numpy)
{
    struct packed_type *type = &packed_types[index];
    type->scalar = make_scalar_type(type->name);
    if (!type->scalar) return -1;

    PyArray_ArrFuncs *functions = PyMem_Calloc(1, sizeof *functions); /* NumPy keeps them for good */
    if (!functions) return -1;
    PyArray_InitArrFuncs(functions);
    functions->getitem = callbacks[index].get_item;
    functions->setitem = callbacks[index].set_item;
    functions->copyswap = callbacks[index].copy_swap;
    functions->copyswapn = callbacks[index].copy_swap_n;
    functions->nonzero = callbacks[index].non_zero;
#if NPY_ABI_VERSION < 0x02000000
    typedef PyArray_Descr descr_proto;
#else
    typedef PyArray_DescrProto descr_proto;
#endif
    descr_proto *proto = PyMem_Calloc(1, sizeof *proto);
    if (!proto) return -1;
    Py_SET_REFCNT((PyObject *)proto, 1);
    Py_SET_TYPE((PyObject *)proto, &PyArrayDescr_Type);
    proto->typeobj = type->scalar;
    proto->kind = 'V';
    proto->type = type->letter;
    proto->byteorder = '=';
    proto->flags = NPY_NEEDS_PYAPI | NPY_USE_GETITEM | NPY_USE_SETITEM;
    proto->elsize = type->size_bytes;
    proto->alignment = type->size_bytes;
    proto->f = functions;
    proto->hash = -1;
    int number = PyArray_RegisterDataType(proto);
    if (number < 0) return -1;
    type->descr = PyArray_DescrFromType(number);
    if (!type->descr) return -1;
    if (PyObject_SetAttrString((PyObject *)type->scalar, "dtype", (PyObject *)type->descr) < 0) return -1;
    if (register_compare(numpy, "equal", number, type->size_bytes, true) < 0) return -1;
    if (register_compare(numpy, "not_equal", number, type->size_bytes, false) < 0) return -1;

    /* np.dtype("float8_e4m3fn_x4"): the same table that ml_dtypes enters its names in. */
    PyObject *names = PyObject_GetAttrString(numpy, "sctypeDict");
    if (!names) return -1;
    int failed = PyDict_SetItemString(names, type->name, (PyObject *)type->scalar);
    Py_DECREF(names);
    if (failed < 0) return -1;
    Py_INCREF(type->descr);
    return PyModule_AddObject(module, type->name, (PyObject *)type->descr);
}

static const struct packed_type *find_packed(PyObject *dtype_like)
{
    PyArray_Descr *descr = NULL;
    if (!PyArray_DescrConverter(dtype_like, &descr)) return NULL;
    const struct packed_type *found = NULL;
    for (int i = 0; i < PACKED_TYPES; i++)
        if (packed_types[i].descr->type_num == descr->type_num) found = &packed_types[i];
    if (!found) PyErr_Format(PyExc_TypeError, "%R is not a packed MX dtype", dtype_like);
    Py_DECREF(descr);
    return found;
}

static PyObject *is_packed(PyObject *module, PyObject *dtype_like)
{
    (void)module;
    const struct packed_type *type = find_packed(dtype_like);
    PyErr_Clear();
    return PyBool_FromLong(type != NULL);
}

static PyObject *unpack(PyObject *module, PyObject *arg)
{
    (void)module;
    PyArrayObject *source = (PyArrayObject *)PyArray_FROM_OF(arg, NPY_ARRAY_C_CONTIGUOUS);
    if (!source) return NULL;
    const struct packed_type *type = find_packed((PyObject *)PyArray_DESCR(source));
    int rank = PyArray_NDIM(source);
    if (!type || rank < 1) {
        if (type) PyErr_SetString(PyExc_ValueError, "unpack takes an array of at least one dimension");
        Py_DECREF(source);
        return NULL;
    }
    npy_intp shape[NPY_MAXDIMS];
    memcpy(shape, PyArray_DIMS(source), (size_t)rank * sizeof shape[0]);
    shape[rank - 1] *= 4;
    PyArrayObject *values = (PyArrayObject *)PyArray_SimpleNew(rank, shape, NPY_FLOAT32);
    if (values) {
        const char *from = PyArray_DATA(source);
        float *to = PyArray_DATA(values);
        npy_intp n = PyArray_SIZE(source);
        for (npy_intp i = 0; i < n; i++)
            for (int lane = 0; lane < 4; lane++)
                to[4 * i + lane] = vtrn_mx_to_f32(type->dtype, from + i * type->size_bytes, lane);
    }
    Py_DECREF(source);
    return (PyObject *)values;
}

static PyObject *pack(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *array, *dtype_like;
    if (!PyArg_ParseTuple(args, "OO", &array, &dtype_like)) return NULL;
    const struct packed_type *type = find_packed(dtype_like);
    if (!type) return NULL;
    PyArrayObject *values = (PyArrayObject *)PyArray_FROMANY(array, NPY_FLOAT32, 1, 0, NPY_ARRAY_C_CONTIGUOUS);
    if (!values) return NULL;
    int rank = PyArray_NDIM(values);
    npy_intp shape[NPY_MAXDIMS];
    memcpy(shape, PyArray_DIMS(values), (size_t)rank * sizeof shape[0]);
    if (shape[rank - 1] % 4) {
        PyErr_Format(PyExc_ValueError, "pack: the last dimension %zd is not a multiple of 4", (Py_ssize_t)shape[rank - 1]);
        Py_DECREF(values);
        return NULL;
    }
    shape[rank - 1] /= 4;
    Py_INCREF(type->descr);
    PyArrayObject *packed = (PyArrayObject *)PyArray_Zeros(rank, shape, type->descr, 0);
    if (packed) {
        const float *from = PyArray_DATA(values);
        char *to = PyArray_DATA(packed);
        npy_intp n = PyArray_SIZE(packed);
        for (npy_intp i = 0; i < n; i++)
            for (int lane = 0; lane < 4; lane++)
                vtrn_mx_from_f32(type->dtype, from[4 * i + lane], lane, to + i * type->size_bytes);
    }
    Py_DECREF(values);
    return (PyObject *)packed;
}

static PyMethodDef methods[] = {
    {"is_packed", is_packed, METH_O, "is_packed(dtype) -> bool: dtype is one of this module's."},
    {"pack", pack, METH_VARARGS,
     "pack(array, dtype): fp32 values [..., 4n] to packed elements [..., n], round to nearest even, saturating."},
    {"unpack", unpack, METH_O, "unpack(array): packed elements [..., n] to fp32 values [..., 4n]."},
    {NULL, NULL, 0, NULL}};

static struct PyModuleDef module_def = {PyModuleDef_HEAD_INIT, "npdtypes",
    "NumPy dtypes for packed MX elements: float8_e4m3fn_x4, float8_e5m2_x4 (4 bytes), float4_e2m1fn_x4 (2 bytes).",
    -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_npdtypes(void)
{
    import_array();
    import_umath();
    PyObject *numpy = PyImport_ImportModule("numpy");
    PyObject *module = numpy ? PyModule_Create(&module_def) : NULL;
    for (int i = 0; module && i < PACKED_TYPES; i++)
        if (register_type(i, module, numpy) < 0) Py_CLEAR(module);
    Py_XDECREF(numpy);
    return module;
}
