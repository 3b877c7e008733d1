/* Declarations: nl.ndarray, arguments, constants; and what a kernel can ask about its place (program_id, target).
 * Shared HBM of two cores: both cores' Python declares it, and the n-th declaration of a name is one tensor. */
#include "ext.h"

/* ---------------------------------------------------------------- shared HBM */
static bool same_declaration(const struct vtrn_tensor *a, const struct vtrn_tensor *b)
{
    return a->dtype == b->dtype && a->rank == b->rank && a->role == b->role &&
           memcmp(a->dim, b->dim, a->rank * sizeof a->dim[0]) == 0;
}

/* The tensor that the other core declared for this one: 1 found, 0 none yet, -1 error. */
static int find_shared(struct trace *t, const char *what, const struct vtrn_tensor *proto, uint32_t *tensor_out)
{
    struct session *s = t->session;

    for (uint32_t i = 0; i < s->shared_tensors; i++) {
        const struct vtrn_tensor *made = &s->prog->tensor[s->shared[i].tensor];

        if (s->shared[i].claimed >> t->core & 1 || made->name != proto->name) continue;
        if (!same_declaration(made, proto))
            return ext_raise(ext_errors.validation, what,
                             "shared HBM tensor %s differs between the cores: both must declare the same tensors in the same order",
                             made->name ? vtrn_prog_text(s->prog, made->name) : "without a name");
        s->shared[i].claimed |= 1u << t->core;
        *tensor_out = s->shared[i].tensor;
        return 1;
    }
    return 0;
}

static int add_shared(struct trace *t, uint32_t tensor)
{
    struct session *s = t->session;

    if (s->shared_tensors == s->shared_capacity) {
        uint32_t wanted = s->shared_capacity ? s->shared_capacity * 2 : 16;
        struct shared_tensor *grown = PyMem_Realloc(s->shared, wanted * sizeof *grown);

        if (!grown) {
            PyErr_NoMemory();
            return -1;
        }
        s->shared = grown;
        s->shared_capacity = wanted;
    }
    s->shared[s->shared_tensors++] = (struct shared_tensor){ tensor, 1u << t->core };
    return 0;
}

/* ---------------------------------------------------------------- declaring */
static int set_tensor_name(struct trace *t, const char *what, struct vtrn_tensor *proto, PyObject *name)
{
    Py_ssize_t length = 0;
    const char *text = PyUnicode_Check(name) ? PyUnicode_AsUTF8AndSize(name, &length) : NULL;

    if (!text && PyErr_Occurred()) {
        PyErr_Clear();
        return ext_raise(ext_errors.value, what, "the name has characters that UTF-8 does not have");
    }
    if (!text) return ext_raise(ext_errors.type, what, "name is %.100s, not a string", Py_TYPE(name)->tp_name);
    if (length == 0) return 0;
    if (vtrn_prog_string(t->session->prog, text, (size_t)length, &proto->name) < 0)
        return ext_raise(ext_errors.value, what, "the name is too long or holds a zero character");
    return 0;
}

/* A tensor of the same kind that the kernel has dropped and whose code has run: its entry is used again. */
static bool take_spare(struct trace *t, const struct vtrn_tensor *proto, uint32_t *tensor_out)
{
    struct vtrn_prog *prog = t->session->prog;

    for (uint32_t i = t->spares; i-- > 0;) {
        const struct vtrn_tensor *made = &prog->tensor[t->spare[i]];

        if (made->space != proto->space || !same_declaration(made, proto)) continue;
        *tensor_out = t->spare[i];
        t->spare[i] = t->spare[--t->spares];
        vtrn_prog_tensor_again(prog, *tensor_out, proto->loc);
        return true;
    }
    return false;
}

PyObject *ext_declare(struct trace *t, const char *what, struct vtrn_tensor *proto, PyObject *name)
{
    struct session *s = t->session;
    bool shared = proto->core == VTRN_CORES_MAX && proto->role != VTRN_ROLE_INPUT && s->cores > 1;
    struct vtrn_error err;
    struct storage *storage;
    enum vtrn_status status;
    uint32_t tensor;
    int found = 0;

    if (name && set_tensor_name(t, what, proto, name) < 0) return NULL;
    proto->loc = ext_where(s);
    if (shared && (found = find_shared(t, what, proto, &tensor)) < 0) return NULL;
    if (!found && vtrn_space_on_chip(proto->space) && proto->name == 0 && !proto->has_address)
        found = take_spare(t, proto, &tensor);
    if (!found) {
        status = vtrn_prog_tensor(s->prog, proto, &tensor, &err);
        if (VTRN_UNLIKELY(status < 0)) return EXT_NULL(ext_raise_status(status, &err, what));
        if (shared && add_shared(t, tensor) < 0) return NULL;
    }
    if (vtrn_space_on_chip(proto->space)) t->pending_bytes += s->prog->tensor[tensor].row_bytes * proto->dim[0];
    storage = ext_storage_new(s, proto, tensor, name);
    return storage ? ext_tensor_of_storage(storage, proto->dim, proto->rank, proto->dtype) : NULL;
}

/* address=(partition, byte) */
static int read_address(PyObject *obj, struct vtrn_tensor *proto)
{
    int64_t address[2];
    int n;

    if (obj == Py_None) return 0;
    n = ext_dims_read(obj, address, 2, "nl.ndarray: address");
    if (n < 0) return -1;
    if (n != 2 || address[0] < 0 || address[0] > UINT16_MAX || address[1] < 0 || address[1] > UINT32_MAX)
        return ext_raise(ext_errors.value, "nl.ndarray", "address must be (partition, byte in the partition)");
    proto->has_address = 1;
    proto->addr_partition = (uint16_t)address[0];
    proto->addr_byte = (uint32_t)address[1];
    return 0;
}

enum { AT_SHAPE, AT_DTYPE, AT_BUFFER, AT_NAME, AT_ADDRESS, NDARRAY_ARGS };
static const char *const ndarray_arg[NDARRAY_ARGS] = { "shape", "dtype", "buffer", "name", "address" };
static PyObject *ndarray_keyword[NDARRAY_ARGS]; /* interned at import */

static int take_ndarray_args(PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, PyObject **out)
{
    Py_ssize_t named = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;

    if (nargs > NDARRAY_ARGS)
        return ext_raise(ext_errors.type, "nl.ndarray", "%zd arguments; it takes at most %d", nargs, NDARRAY_ARGS);
    for (Py_ssize_t i = 0; i < nargs; i++) out[i] = args[i];
    for (Py_ssize_t i = 0; i < named; i++) {
        PyObject *keyword = PyTuple_GET_ITEM(kwnames, i);
        int at = 0;

        while (at < NDARRAY_ARGS && ndarray_keyword[at] != keyword) at++;
        for (int k = 0; at == NDARRAY_ARGS && k < NDARRAY_ARGS; k++) /* not interned */
            if (PyUnicode_CompareWithASCIIString(keyword, ndarray_arg[k]) == 0) at = k;
        if (at == NDARRAY_ARGS) return ext_raise(ext_errors.type, "nl.ndarray", "no argument %s", ext_utf8(keyword));
        if (out[at]) return ext_raise(ext_errors.type, "nl.ndarray", "argument %s is given twice", ndarray_arg[at]);
        out[at] = args[nargs + i];
    }
    for (int i = AT_SHAPE; i <= AT_DTYPE; i++)
        if (!out[i] || out[i] == Py_None) return ext_raise(ext_errors.type, "nl.ndarray", "argument %s is missing", ndarray_arg[i]);
    return 0;
}

/* nl.par_dim(n) is n; anywhere but first it asks for block dimensions, which tensors no longer have. */
static int refuse_blocks(PyObject *shape)
{
    Py_ssize_t n = PyTuple_Check(shape) ? PyTuple_GET_SIZE(shape) : 0;

    for (Py_ssize_t i = 1; i < n; i++) {
        PyObject *item = PyTuple_GET_ITEM(shape, i);

        if (PyLong_CheckExact(item) || !PyLong_Check(item) || !PyObject_HasAttrString(item, "is_partition_dim")) continue;
        return ext_raise(ext_errors.value, "nl.ndarray",
                         "shape: nl.par_dim is dimension %zd; the partition dimension is always the first: use a list of tensors, "
                         "or put the dimensions before it behind it",
                         i);
    }
    return 0;
}

static PyObject *declare_ndarray(PyObject *module, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    struct trace *t = ext_trace("nl.ndarray");
    PyObject *arg[NDARRAY_ARGS] = { NULL };
    struct vtrn_tensor proto = { .space = VTRN_SBUF, .role = VTRN_ROLE_TEMP };
    int rank, dtype, space = VTRN_SBUF;

    (void)module;
    if (!t || take_ndarray_args(args, nargs, kwnames, arg) < 0) return NULL;
    rank = ext_dims_read(arg[AT_SHAPE], proto.dim, VTRN_TENSOR_RANK, "nl.ndarray: shape");
    if (rank < 0 || refuse_blocks(arg[AT_SHAPE]) < 0 || (dtype = ext_dtype(arg[AT_DTYPE], "nl.ndarray")) < 0) return NULL;
    if (arg[AT_BUFFER] && ext_buffer(arg[AT_BUFFER], "nl.ndarray", &space) < 0) return NULL;
    if (arg[AT_ADDRESS] && read_address(arg[AT_ADDRESS], &proto) < 0) return NULL;
    proto.rank = (uint8_t)rank;
    proto.dtype = (uint8_t)dtype;
    proto.space = (uint8_t)space;
    proto.core = space == VTRN_HBM_SHARED ? VTRN_CORES_MAX : (uint8_t)t->core;
    return ext_declare(t, "nl.ndarray", &proto, arg[AT_NAME] == Py_None ? NULL : arg[AT_NAME]);
}

/* constant(shape, dtype, bytes, name): data that the program holds, in shared HBM. */
static PyObject *declare_constant(PyObject *module, PyObject *args)
{
    struct trace *t = ext_trace("nl.shared_constant");
    struct vtrn_tensor proto = { .space = VTRN_HBM_SHARED, .role = VTRN_ROLE_CONST, .core = VTRN_CORES_MAX };
    PyObject *shape, *dtype_obj, *name, *tensor = NULL;
    int64_t bytes;
    Py_buffer data;
    int rank, dtype;

    (void)module;
    if (!t || !PyArg_ParseTuple(args, "OOy*O:constant", &shape, &dtype_obj, &data, &name)) return NULL;
    rank = ext_dims_read(shape, proto.dim, VTRN_TENSOR_RANK, "nl.shared_constant");
    dtype = rank < 0 ? -1 : ext_dtype(dtype_obj, "nl.shared_constant");
    if (dtype < 0) goto done;
    bytes = vtrn_dtypes[dtype].size_bytes;
    for (int i = 0; i < rank; i++) bytes *= proto.dim[i];
    if (bytes != data.len) {
        ext_raise(ext_errors.value, "nl.shared_constant", "%zd bytes for a shape of %lld", data.len, (long long)bytes);
        goto done;
    }
    proto.rank = (uint8_t)rank;
    proto.dtype = (uint8_t)dtype;
    proto.data = data.buf;
    tensor = ext_declare(t, "nl.shared_constant", &proto, name == Py_None ? NULL : name);
done:
    PyBuffer_Release(&data);
    return tensor;
}

/* ---------------------------------------------------------------- the kernel's place */
static PyObject *core_id(PyObject *module, PyObject *ignored)
{
    struct trace *t = ext_trace("nl.program_id");

    (void)module;
    (void)ignored;
    return t ? PyLong_FromLong(t->core) : NULL;
}

static PyObject *core_count(PyObject *module, PyObject *ignored)
{
    struct trace *t = ext_trace("nl.num_programs");

    (void)module;
    (void)ignored;
    return t ? PyLong_FromLong(t->session->cores) : NULL;
}

static PyObject *grid_ndim(PyObject *module, PyObject *ignored)
{
    struct trace *t = ext_trace("nl.program_ndim");

    (void)module;
    (void)ignored;
    return t ? PyLong_FromLong(t->session->grid) : NULL;
}

/* The chip of the running kernel, or None outside one. */
static PyObject *current_target(PyObject *module, PyObject *ignored)
{
    (void)module;
    (void)ignored;
    if (!ext_current) Py_RETURN_NONE;
    return PyUnicode_FromString(ext_current->session->arch->chip);
}

static PyObject *is_tracing(PyObject *module, PyObject *ignored)
{
    (void)module;
    (void)ignored;
    return PyBool_FromLong(ext_current != NULL);
}

static PyObject *in_loop(PyObject *module, PyObject *ignored)
{
    (void)module;
    (void)ignored;
    return PyBool_FromLong(ext_current && ext_current->open_loops > 0);
}

/* target_size(target, name): a number of the generation's table. */
static PyObject *target_size(PyObject *module, PyObject *args)
{
    const char *target, *name;
    const struct vtrn_arch *arch;

    (void)module;
    if (!PyArg_ParseTuple(args, "ss:target_size", &target, &name)) return NULL;
    arch = vtrn_arch_find(target);
    if (!arch) return EXT_NULL(ext_raise(ext_errors.value, "target", "%.60s: use trn1, inf2, trn2 or trn3", target));
#define FIELD(field, unit, doc) \
    if (strcmp(name, #field) == 0) return PyLong_FromLongLong(arch->field);
    VTRN_ARCH_SIZES(FIELD)
#undef FIELD
    return PyErr_Format(PyExc_AttributeError, "no size %s", name);
}

static PyObject *target_name(PyObject *module, PyObject *arg)
{
    const char *target = PyUnicode_Check(arg) ? PyUnicode_AsUTF8(arg) : NULL;
    const struct vtrn_arch *arch = target ? vtrn_arch_find(target) : NULL;

    (void)module;
    if (!target && !PyErr_Occurred())
        return EXT_NULL(ext_raise(ext_errors.type, "target", "%.100s is not a string: use trn1, inf2, trn2 or trn3", Py_TYPE(arg)->tp_name));
    if (!arch)
        return PyErr_Occurred() ? NULL
                                : EXT_NULL(ext_raise(ext_errors.value, "target", "%.60s: use trn1, inf2, trn2 or trn3", target));
    return PyUnicode_FromString(arch->chip);
}

PyMethodDef ext_declare_functions[] = {
    { "ndarray", (PyCFunction)(void (*)(void))declare_ndarray, METH_FASTCALL | METH_KEYWORDS,
      "ndarray(shape, dtype, buffer=nl.sbuf, name='', address=None): an uninitialised tensor" },
    { "constant", declare_constant, METH_VARARGS, "constant(shape, dtype, bytes, name): constant data in shared HBM" },
    { "core_id", core_id, METH_NOARGS, "the core this kernel runs on" },
    { "core_count", core_count, METH_NOARGS, "cores of this launch" },
    { "grid_ndim", grid_ndim, METH_NOARGS, "dimensions of the launch grid: 0 or 1" },
    { "current_target", current_target, METH_NOARGS, "chip of the running kernel; None outside" },
    { "is_tracing", is_tracing, METH_NOARGS, "inside a kernel" },
    { "in_loop", in_loop, METH_NOARGS, "inside a device loop" },
    { "target_size", target_size, METH_VARARGS, "target_size(target, name)" },
    { "target_name", target_name, METH_O, "canonical name of a target: trn1, inf2, trn2, trn3" },
    { 0 },
};

int ext_declare_init(void)
{
    for (int i = 0; i < NDARRAY_ARGS; i++)
        if (!(ndarray_keyword[i] = PyUnicode_InternFromString(ndarray_arg[i]))) return -1;
    return 0;
}
