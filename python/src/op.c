/* nl.add, nl.exp, nl.copy, ...: values for the op= parameters of instructions, and functions on tiles when they are called.
 * What a call does is set by nki.language (plain Python that calls nisa functions). NumPy's ufuncs and names in strings
 * are accepted for op= too, as NKI always did. */
#include "ext.h"

#include <structmember.h>

/* Names of NumPy and of nl.* reductions for operators of the table. */
static const struct {
    const char *name;
    enum vtrn_alu alu;
} alias[] = {
    { "max", VTRN_ALU_MAXIMUM },
    { "amax", VTRN_ALU_MAXIMUM },
    { "min", VTRN_ALU_MINIMUM },
    { "amin", VTRN_ALU_MINIMUM },
    { "sum", VTRN_ALU_ADD },
    { "true_divide", VTRN_ALU_DIVIDE },
    { "absolute", VTRN_ALU_ABS },
    { "bitwise_not", VTRN_ALU_INVERT },
    { "bitwise_left_shift", VTRN_ALU_LEFT_SHIFT },
    { "bitwise_right_shift", VTRN_ALU_RIGHT_SHIFT },
};

/* The name of a string, a ufunc or a function. New reference; NULL without an error when there is none. */
static PyObject *name_of(PyObject *obj)
{
    PyObject *name = PyUnicode_Check(obj) ? Py_NewRef(obj) : PyObject_GetAttrString(obj, "__name__");

    if (name && !PyUnicode_Check(name)) Py_CLEAR(name);
    PyErr_Clear();
    return name;
}

static int alu_by_name(PyObject *obj)
{
    PyObject *name = obj == Py_None || IS_TENSOR(obj) ? NULL : name_of(obj);
    Py_ssize_t length = 0;
    const char *text = name ? PyUnicode_AsUTF8AndSize(name, &length) : NULL;
    int code = text ? (int)vtrn_alu_by_name(text, (size_t)length) : VTRN_ALU_NONE;

    for (size_t i = 0; text && code == VTRN_ALU_NONE && i < sizeof alias / sizeof alias[0]; i++)
        if (strcmp(alias[i].name, text) == 0) code = alias[i].alu;
    PyErr_Clear();
    Py_XDECREF(name);
    return code;
}

int ext_alu_of(PyObject *obj)
{
    if (VTRN_LIKELY(Py_TYPE(obj) == &nki_op_type)) return ((struct nki_op *)obj)->alu;
    return alu_by_name(obj);
}

int ext_act_of(PyObject *obj)
{
    PyObject *name;
    Py_ssize_t length;
    const char *text;
    int code = VTRN_ACT_NONE;

    if (VTRN_LIKELY(Py_TYPE(obj) == &nki_op_type)) return ((struct nki_op *)obj)->act;
    if (obj == Py_None || IS_TENSOR(obj)) return VTRN_ACT_NONE;
    name = name_of(obj);
    text = name ? PyUnicode_AsUTF8AndSize(name, &length) : NULL;
    if (text) code = (int)vtrn_act_by_name(text, (size_t)length);
    PyErr_Clear();
    Py_XDECREF(name);
    return code;
}

/* ---------------------------------------------------------------- the type */
static PyObject *call_op(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    const struct nki_op *op = (struct nki_op *)self;

    if (!op->function)
        return EXT_NULL(ext_raise(ext_errors.type, PyUnicode_AsUTF8(op->name), "only for op= of instructions, not a function"));
    return PyObject_Vectorcall(op->function, args, nargsf, kwnames);
}

static void op_dealloc(PyObject *self)
{
    struct nki_op *op = (struct nki_op *)self;

    Py_XDECREF(op->name);
    Py_XDECREF(op->function);
    PyObject_Free(self);
}

static PyObject *op_repr(PyObject *self) { return PyUnicode_FromFormat("nl.%U", ((struct nki_op *)self)->name); }

/* Copies are the object itself; pickling goes by name. */
static PyObject *op_reduce(PyObject *self, PyObject *ignored)
{
    (void)ignored;
    return Py_NewRef(((struct nki_op *)self)->name);
}

static PyObject *op_module(PyObject *self, void *unused)
{
    (void)self;
    (void)unused;
    return PyUnicode_FromString("vtrn.nki.language");
}

static PyObject *op_doc(PyObject *self, void *unused)
{
    const struct nki_op *op = (struct nki_op *)self;

    (void)unused;
    if (op->function) return PyObject_GetAttrString(op->function, "__doc__");
    return PyUnicode_FromString(op->alu ? vtrn_alus[op->alu].doc : vtrn_acts[op->act].formula);
}

static PyObject *op_is_alu(PyObject *self, void *unused)
{
    (void)unused;
    return PyBool_FromLong(((struct nki_op *)self)->alu != 0);
}

static PyMethodDef op_methods[] = { { "__reduce__", op_reduce, METH_NOARGS, NULL }, { 0 } };
static PyMemberDef op_members[] = {
    { "__name__", T_OBJECT, offsetof(struct nki_op, name), READONLY, NULL },
    { "function", T_OBJECT, offsetof(struct nki_op, function), 0, "what calling it does" },
    { "__wrapped__", T_OBJECT_EX, offsetof(struct nki_op, function), READONLY, NULL },
    { 0 },
};
static PyGetSetDef op_attributes[] = { { "__module__", op_module, NULL, NULL, NULL },
                                       { "__doc__", op_doc, NULL, NULL, NULL },
                                       { "is_alu", op_is_alu, NULL, "an operator of two values, not an activation", NULL },
                                       { 0 } };

PyTypeObject nki_op_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "vtrn.NkiOp",
    .tp_basicsize = sizeof(struct nki_op),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_vectorcall_offset = offsetof(struct nki_op, vectorcall),
    .tp_call = PyVectorcall_Call,
    .tp_dealloc = op_dealloc,
    .tp_repr = op_repr,
    .tp_methods = op_methods,
    .tp_members = op_members,
    .tp_getset = op_attributes,
};

/* ---------------------------------------------------------------- module */
static int add_op(PyObject *dict, const char *name, int alu, int act)
{
    struct nki_op *op = PyObject_New(struct nki_op, &nki_op_type);
    int status;

    if (!op) return -1;
    op->vectorcall = call_op;
    op->function = NULL;
    op->alu = (uint8_t)alu;
    op->act = (uint8_t)act;
    op->cmp = alu >= VTRN_ALU_EQUAL && alu <= VTRN_ALU_LESS ? (uint8_t)alu : 0;
    op->name = PyUnicode_InternFromString(name);
    status = op->name ? PyDict_SetItemString(dict, name, (PyObject *)op) : -1;
    Py_DECREF(op);
    return status;
}

/* module.ops: name -> NkiOp, for every row of aluops.def and actfuncs.def. */
int ext_add_ops(PyObject *module)
{
    PyObject *dict = PyDict_New();
    int status = dict ? 0 : -1;

    for (int i = 1; status == 0 && i < VTRN_ALU_COUNT; i++) {
        const char *name = vtrn_alus[i].nki_name;

        if (name) status = add_op(dict, name, i, vtrn_act_by_name(name, strlen(name)));
    }
    for (int i = 1; status == 0 && i < VTRN_ACT_COUNT; i++) {
        const char *name = vtrn_acts[i].nki_name;

        if (name && !PyDict_GetItemString(dict, name)) status = add_op(dict, name, VTRN_ALU_NONE, i);
    }
    if (status == 0) status = PyModule_AddObjectRef(module, "ops", dict);
    Py_XDECREF(dict);
    return status;
}
