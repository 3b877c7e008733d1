/* The nisa functions: one object per row of the instruction table. A call assigns its arguments to the row's operands in
 * order or by name, converts each by its kind, and appends the instruction. Nothing here knows an instruction by name:
 * forms of older NKI versions are in compat.c.
 *
 * The keyword tuple of a call site is one constant object, so each function remembers the operand of every keyword for
 * the tuples it met last. */
#include "ext.h"

#include <structmember.h>

enum { CACHED_CALLS = 4, KEYWORDS = VTRN_MAX_OPERANDS + 4, AT_NAME = 0x80, AT_COMPAT = 0x81 };
struct keyword_map {
    PyObject *kwnames; /* owned: its address cannot become another tuple */
    uint8_t at[KEYWORDS];
};
struct nisa_function {
    PyObject_HEAD vectorcallfunc vectorcall;
    enum vtrn_opcode op;
    const struct vtrn_op_info *info;
    char label[48];                            /* "nisa.nc_matmul" */
    PyObject *operand_name[VTRN_MAX_OPERANDS]; /* interned */
    PyObject *name, *doc, *signature;
    struct keyword_map map[CACHED_CALLS];
    unsigned next_map;
};
static PyObject *name_keyword; /* "name" */

/* ---------------------------------------------------------------- instruction handles */
struct nki_instruction {
    PyObject_HEAD struct session *session; /* owned */
    uint32_t serial;
    uint8_t core;
};
enum { FREE_HANDLES = 16 };
static struct nki_instruction *free_handle[FREE_HANDLES];
static int free_handles;

static PyObject *new_handle(struct trace *t, uint32_t serial)
{
    struct nki_instruction *handle;

    if (VTRN_LIKELY(free_handles > 0))
        handle = (struct nki_instruction *)PyObject_Init((PyObject *)free_handle[--free_handles], &nki_instruction_type);
    else handle = PyObject_New(struct nki_instruction, &nki_instruction_type);
    if (!handle) return NULL;
    handle->session = (struct session *)Py_NewRef(t->session);
    handle->serial = serial;
    handle->core = (uint8_t)t->core;
    return (PyObject *)handle;
}

static void handle_dealloc(PyObject *self)
{
    struct nki_instruction *handle = (struct nki_instruction *)self;

    Py_DECREF(handle->session);
    if (free_handles < FREE_HANDLES) free_handle[free_handles++] = handle;
    else PyObject_Free(self);
}

/* Adds an edge for each producer; those that have run already need none. */
static PyObject *depends_on(PyObject *self, PyObject *args)
{
    const struct nki_instruction *consumer = (struct nki_instruction *)self;
    struct trace *t = ext_trace("depends_on");
    struct vtrn_error err;

    if (!t) return NULL;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); i++) {
        const struct nki_instruction *producer = (struct nki_instruction *)PyTuple_GET_ITEM(args, i);
        enum vtrn_status status;

        if (Py_TYPE(producer) != &nki_instruction_type)
            return EXT_NULL(ext_raise(ext_errors.type, "depends_on", "%.100s is not what a nisa function returned",
                                      Py_TYPE(producer)->tp_name));
        if (producer->session != t->session || consumer->session != t->session || producer->core != t->core ||
            consumer->core != t->core)
            return EXT_NULL(ext_raise(ext_errors.validation, "depends_on", "both instructions must be of this core and run"));
        if (producer->serial >= consumer->serial)
            return EXT_NULL(ext_raise(ext_errors.validation, "depends_on", "the producer comes after the consumer"));
        if (producer->serial < t->forgotten) continue;
        status = vtrn_prog_edge(t->session->prog, t->core, consumer->serial - t->forgotten, producer->serial - t->forgotten, &err);
        if (status < 0) return EXT_NULL(ext_raise_status(status, &err, "depends_on"));
    }
    return Py_NewRef(self);
}

static PyMethodDef handle_methods[] = {
    { "depends_on", depends_on, METH_VARARGS, "depends_on(*producers): runs after each of them; returns itself" },
    { 0 },
};

PyTypeObject nki_instruction_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "vtrn.NkiInstruction",
    .tp_doc = "An appended instruction, returned by the nisa functions.",
    .tp_basicsize = sizeof(struct nki_instruction),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_dealloc = handle_dealloc,
    .tp_methods = handle_methods,
};

/* ---------------------------------------------------------------- arguments to operands */
static uint8_t place_of(const struct nisa_function *f, PyObject *keyword)
{
    for (int i = 0; i < f->info->operands; i++)
        if (f->operand_name[i] == keyword || PyUnicode_Compare(f->operand_name[i], keyword) == 0) return (uint8_t)i;
    return PyUnicode_Compare(keyword, name_keyword) == 0 ? AT_NAME : AT_COMPAT;
}

static const uint8_t *map_keywords(struct nisa_function *f, PyObject *kwnames)
{
    Py_ssize_t n = PyTuple_GET_SIZE(kwnames);
    struct keyword_map *map;

    for (int i = 0; i < CACHED_CALLS; i++)
        if (f->map[i].kwnames == kwnames) return f->map[i].at;
    if (n > KEYWORDS) return (uint8_t *)EXT_NULL(ext_raise(ext_errors.type, f->label, "%zd keyword arguments", n));
    map = &f->map[f->next_map++ % CACHED_CALLS];
    Py_XSETREF(map->kwnames, Py_NewRef(kwnames));
    for (Py_ssize_t i = 0; i < n; i++) map->at[i] = place_of(f, PyTuple_GET_ITEM(kwnames, i));
    return map->at;
}

static int take_keyword(struct nisa_function *f, struct nisa_call *call, uint8_t at, PyObject *keyword, PyObject *value,
                        PyObject **name_out)
{
    int accepted;

    if (VTRN_LIKELY(at < VTRN_MAX_OPERANDS)) {
        if (call->slot[at]) return ext_raise(ext_errors.type, f->label, "argument %s is given twice", f->info->operand[at].name);
        call->slot[at] = value;
        return 0;
    }
    if (at == AT_NAME) {
        *name_out = value;
        return 0;
    }
    accepted = ext_compat_keyword(call, ext_utf8(keyword), value);
    if (accepted == 0) return ext_raise(ext_errors.type, f->label, "no argument %s", ext_utf8(keyword));
    return accepted < 0 ? -1 : 0;
}

static int take_arguments(struct nisa_function *f, struct nisa_call *call, PyObject *const *args, Py_ssize_t given,
                          PyObject *kwnames, PyObject **name_out)
{
    Py_ssize_t named = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
    int operands = f->info->operands;
    const uint8_t *at;

    if (given > operands + 1)
        return ext_raise(ext_errors.type, f->label, "%zd arguments; it takes at most %d", given, operands + 1);
    if (given > operands) *name_out = args[operands];
    if (given > 2) { /* older forms differ after dst and src only */
        if (ext_compat_positional(call, args, (int)(given < operands ? given : operands)) < 0) return -1;
    } else {
        for (Py_ssize_t i = 0; i < given && i < operands; i++) call->slot[i] = args[i];
    }
    if (named == 0) return 0;
    at = map_keywords(f, kwnames);
    if (!at) return -1;
    for (Py_ssize_t i = 0; i < named; i++)
        if (take_keyword(f, call, at[i], PyTuple_GET_ITEM(kwnames, i), args[given + i], name_out) < 0) return -1;
    return 0;
}

/* Tensors of the caller that the instruction writes. */
static int note_write(const char *label, const struct vtrn_operand_info *info, PyObject *obj)
{
    struct storage *storage;

    if (!IS_TENSOR(obj)) return 0;
    storage = ((struct nki_tensor *)obj)->storage;
    if (VTRN_UNLIKELY(storage->readonly))
        return ext_raise(ext_errors.validation, label, "%s: %.100s is read-only", info->name, ext_utf8(storage->name));
    storage->written = 1;
    return 0;
}

static int convert(struct trace *t, const char *label, const struct nisa_call *call)
{
    const struct vtrn_op_info *info = &vtrn_ops[call->op];
    struct vtrn_inst *inst = ext_begin(t, call->op);

    for (int i = 0; i < info->operands; i++) {
        const struct vtrn_operand_info *operand = &info->operand[i];
        PyObject *obj = call->slot[i];

        if (!obj) {
            if (VTRN_UNLIKELY(!operand->optional && !operand->has_default))
                return ext_raise(ext_errors.type, label, "argument %s is missing", operand->name);
            continue;
        }
        if (operand->kind == VTRN_K_ENGINE) {
            if (ext_engine(t, label, obj, &inst->engine) < 0) return -1;
        } else if (ext_value(t, label, operand, obj, &inst->arg[i]) < 0) {
            return -1;
        }
        if ((operand->access & VTRN_WRITE) && note_write(label, operand, obj) < 0) return -1;
    }
    return 0;
}

static int set_name(struct trace *t, const char *label, PyObject *name)
{
    Py_ssize_t length;
    const char *text;

    if (name == Py_None) return 0;
    text = PyUnicode_Check(name) ? PyUnicode_AsUTF8AndSize(name, &length) : NULL;
    if (!text && PyErr_Occurred()) {
        PyErr_Clear();
        return ext_raise(ext_errors.value, label, "name has characters that UTF-8 does not have");
    }
    if (!text) return ext_raise(ext_errors.type, label, "name is %.100s, not a string", Py_TYPE(name)->tp_name);
    if (vtrn_prog_string(t->session->prog, text, (size_t)length, &t->inst.name) < 0)
        return ext_raise(ext_errors.value, label, "name is too long");
    return 0;
}

static PyObject *call_nisa(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    struct nisa_function *f = (struct nisa_function *)self;
    struct trace *t = ext_current;
    struct nisa_call call = { .op = f->op, .name = f->label };
    PyObject *name = Py_None;
    uint32_t serial;
    int status;

    if (VTRN_UNLIKELY(!t)) return (PyObject *)ext_trace(f->label);
    status = take_arguments(f, &call, args, PyVectorcall_NARGS(nargsf), kwnames, &name);
    if (status == 0) status = ext_compat_finish(&call);
    if (status == 0) status = convert(t, f->label, &call);
    if (status == 0 && name != Py_None) status = set_name(t, f->label, name);
    Py_XDECREF(call.made);
    if (status < 0 || ext_append(t, &serial) < 0) return NULL;
    return new_handle(t, serial);
}

/* ---------------------------------------------------------------- the type */
static PyObject *function_repr(PyObject *self)
{
    return PyUnicode_FromFormat("<function %s>", ((struct nisa_function *)self)->label);
}

static PyObject *function_module(PyObject *self, void *unused)
{
    (void)self;
    (void)unused;
    return PyUnicode_FromString("nki.isa");
}

/* Functions are found by name again: copies are the object itself. */
static PyObject *function_reduce(PyObject *self, PyObject *ignored)
{
    (void)ignored;
    return Py_NewRef(((struct nisa_function *)self)->name);
}

static PyMethodDef function_methods[] = { { "__reduce__", function_reduce, METH_NOARGS, NULL }, { 0 } };
static PyMemberDef function_members[] = {
    { "__name__", T_OBJECT, offsetof(struct nisa_function, name), READONLY, NULL },
    { "__qualname__", T_OBJECT, offsetof(struct nisa_function, name), READONLY, NULL },
    { "__doc__", T_OBJECT, offsetof(struct nisa_function, doc), READONLY, NULL },
    { "__signature__", T_OBJECT_EX, offsetof(struct nisa_function, signature), 0, NULL },
    { 0 },
};
static PyGetSetDef function_attributes[] = { { "__module__", function_module, NULL, NULL, NULL }, { 0 } };

PyTypeObject nisa_function_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "vtrn.NisaFunction",
    .tp_basicsize = sizeof(struct nisa_function),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_vectorcall_offset = offsetof(struct nisa_function, vectorcall),
    .tp_call = PyVectorcall_Call,
    .tp_repr = function_repr,
    .tp_methods = function_methods,
    .tp_members = function_members,
    .tp_getset = function_attributes,
};

/* ---------------------------------------------------------------- module */
static PyObject *new_function(enum vtrn_opcode op)
{
    struct nisa_function *f = PyObject_New(struct nisa_function, &nisa_function_type); /* lives for ever */

    if (!f) return NULL;
    memset((char *)f + sizeof(PyObject), 0, sizeof *f - sizeof(PyObject));
    f->vectorcall = call_nisa;
    f->op = op;
    f->info = &vtrn_ops[op];
    snprintf(f->label, sizeof f->label, "%s.%s", op == VTRN_OP_device_print ? "nl" : "nisa", f->info->name);
    f->name = PyUnicode_InternFromString(f->info->name);
    f->doc = PyUnicode_FromString(f->info->doc);
    for (int i = 0; i < f->info->operands; i++) f->operand_name[i] = PyUnicode_InternFromString(f->info->operand[i].name);
    return (PyObject *)f;
}

/* module.functions: name -> function, for every instruction of the table. */
int ext_add_nisa_functions(PyObject *module)
{
    PyObject *dict = PyDict_New();
    int status = dict ? 0 : -1;

    name_keyword = PyUnicode_InternFromString("name");
    for (int op = 1; status == 0 && op < VTRN_OPCODES; op++) {
        PyObject *function;

        if (!vtrn_ops[op].name) continue;
        function = new_function((enum vtrn_opcode)op);
        status = function ? PyDict_SetItemString(dict, vtrn_ops[op].name, function) : -1;
        Py_XDECREF(function);
    }
    if (status == 0) status = PyModule_AddObjectRef(module, "functions", dict);
    Py_XDECREF(dict);
    return status;
}
