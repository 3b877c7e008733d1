/* VirtualRegister: a value that the chip holds. Arithmetic on it appends register instructions; Python that needs the
 * number (int(), a condition, range) forces everything before it to run and makes the program one that cannot be replayed.
 * The induction value of an unrolled nl.dynamic_range is a register whose number is known. Device loops (nl.fori_loop,
 * nl.while_loop) are traced once: inside them no register can be looked at. */
#include "ext.h"

/* ---------------------------------------------------------------- making registers */
int ext_new_register(struct trace *t, uint32_t *reg_out)
{
    if (t->free_registers > 0) {
        *reg_out = t->free_register[--t->free_registers];
        return 0;
    }
    if (t->session->prog->registers >= VTRN_REGISTERS_MAX)
        return ext_raise(ext_errors.validation, "nisa.register_alloc", "more than %d registers in use", VTRN_REGISTERS_MAX);
    *reg_out = t->session->prog->registers++;
    return 0;
}

/* A number is free again when no loop turn can still need its value: only in the loop body it was taken in. */
void ext_release_register(struct trace *t, uint32_t reg, uint32_t loop_serial)
{
    if (loop_serial != t->loop_serial) return;
    if (t->free_registers == t->free_register_capacity) {
        uint32_t wanted = t->free_register_capacity ? t->free_register_capacity * 2 : 64;
        uint32_t *grown = PyMem_Realloc(t->free_register, wanted * sizeof *grown);

        if (!grown) return;
        t->free_register = grown;
        t->free_register_capacity = wanted;
    }
    t->free_register[t->free_registers++] = reg;
}

static PyObject *new_object(struct trace *t, uint32_t number)
{
    struct nki_register *reg = PyObject_New(struct nki_register, &nki_register_type);

    if (!reg) return NULL;
    reg->session = t ? (struct session *)Py_NewRef(t->session) : NULL;
    reg->core = t ? t->core : 0;
    reg->number = number;
    reg->loop_serial = t ? t->loop_serial : 0;
    reg->value = 0;
    reg->known = reg->frozen = t == NULL;
    return (PyObject *)reg;
}

static PyObject *alloc_register(struct trace *t)
{
    uint32_t number = 0;

    return ext_new_register(t, &number) < 0 ? NULL : new_object(t, number);
}

static void register_dealloc(PyObject *self)
{
    struct nki_register *reg = (struct nki_register *)self;

    if (reg->session) {
        if (reg->session->prog) ext_release_register(&reg->session->trace[reg->core], reg->number, reg->loop_serial);
        Py_DECREF(reg->session);
    }
    PyObject_Free(self);
}

/* ---------------------------------------------------------------- as an operand */
int ext_register_value(struct trace *t, PyObject *obj, const char *what, struct vtrn_value *value)
{
    const struct nki_register *reg = (struct nki_register *)obj;

    if (reg->known) {
        value->kind = VTRN_V_INT;
        value->i = reg->value;
        return 0;
    }
    if (!t || reg->session != t->session || reg->core != t->core)
        return ext_raise(ext_errors.validation, what, "the register belongs to another run or core");
    value->kind = VTRN_V_REG;
    value->i = reg->number;
    return 0;
}

static int operand(struct trace *t, PyObject *obj, const char *what, struct vtrn_value *value)
{
    if (IS_REGISTER(obj)) return ext_register_value(t, obj, what, value);
    value->kind = VTRN_V_INT;
    return ext_integer(obj, what, "the number", &value->i);
}

/* ---------------------------------------------------------------- looking at the value */
static int look(PyObject *self, int32_t *value_out)
{
    const struct nki_register *reg = (struct nki_register *)self;
    struct trace *t = ext_current;

    if (reg->known) {
        *value_out = reg->value;
        return 0;
    }
    if (!t || t->session != reg->session || t->core != reg->core)
        return ext_raise(ext_errors.validation, "VirtualRegister", "the register belongs to another run or core");
    if (t->open_loops)
        return ext_raise(ext_errors.type, "VirtualRegister",
                         "its value is not known while a device loop is traced; use it as an offset (nl.ds, scalar_offset), "
                         "or nl.while_loop for a condition");
    if (ext_sync(t, "the value of a register") < 0) return -1;
    t->session->prog->replayable = false;
    *value_out = vtrn_core_register(vtrn_chip_core(t->session->chip, t->core), reg->number);
    return 0;
}

static PyObject *register_int(PyObject *self)
{
    int32_t value = 0;

    return look(self, &value) < 0 ? NULL : PyLong_FromLong(value);
}

static int register_bool(PyObject *self)
{
    int32_t value = 0;

    return look(self, &value) < 0 ? -1 : value != 0;
}

static PyObject *register_repr(PyObject *self)
{
    const struct nki_register *reg = (struct nki_register *)self;

    if (reg->known) return PyUnicode_FromFormat("<VirtualRegister = %d>", (int)reg->value);
    return PyUnicode_FromFormat("<VirtualRegister r%u>", (unsigned)reg->number);
}

/* print(register) shows the value where it can be known. */
static PyObject *register_str(PyObject *self)
{
    const struct nki_register *reg = (struct nki_register *)self;
    struct trace *t = ext_current;

    if (!reg->known && (!t || t->session != reg->session || t->open_loops)) return register_repr(self);
    PyObject *number = register_int(self), *text = number ? PyObject_Str(number) : NULL;

    Py_XDECREF(number);
    return text;
}

/* ---------------------------------------------------------------- arithmetic */
static bool is_operand(PyObject *obj) { return IS_REGISTER(obj) || PyIndex_Check(obj); }

static PyObject *append_alu(struct trace *t, int op, PyObject *lhs, PyObject *rhs)
{
    PyObject *result = alloc_register(t);
    struct vtrn_inst *inst;

    if (!result) return NULL;
    inst = ext_begin(t, VTRN_OP_register_alu);
    inst->arg[0].kind = VTRN_V_REG;
    inst->arg[0].i = ((struct nki_register *)result)->number;
    inst->arg[1].kind = VTRN_V_INT;
    inst->arg[1].i = op;
    if (operand(t, lhs, "register arithmetic", &inst->arg[2]) < 0 || operand(t, rhs, "register arithmetic", &inst->arg[3]) < 0 ||
        ext_append(t, NULL) < 0)
        Py_CLEAR(result);
    return result;
}

static PyObject *binary(int op, PyObject *lhs, PyObject *rhs, PyObject *(*host)(PyObject *, PyObject *))
{
    struct trace *t;

    if (!is_operand(lhs) || !is_operand(rhs)) Py_RETURN_NOTIMPLEMENTED;
    if ((!IS_REGISTER(lhs) || ((struct nki_register *)lhs)->known) && (!IS_REGISTER(rhs) || ((struct nki_register *)rhs)->known)) {
        PyObject *a = PyNumber_Index(lhs), *b = a ? PyNumber_Index(rhs) : NULL, *result = b ? host(a, b) : NULL;

        Py_XDECREF(a);
        Py_XDECREF(b);
        return result;
    }
    t = ext_trace("register arithmetic");
    return t ? append_alu(t, op, lhs, rhs) : NULL;
}

#define BINARY(name, OP, host) \
    static PyObject *register_##name(PyObject *a, PyObject *b) { return binary(VTRN_REGOP_##OP, a, b, host); }
BINARY(add, ADD, PyNumber_Add)
BINARY(subtract, SUBTRACT, PyNumber_Subtract)
BINARY(multiply, MULTIPLY, PyNumber_Multiply)
BINARY(divide, DIVIDE, PyNumber_FloorDivide)
BINARY(modulo, MODULO, PyNumber_Remainder)
BINARY(and, AND, PyNumber_And)
BINARY(or, OR, PyNumber_Or)
BINARY(xor, XOR, PyNumber_Xor)
BINARY(shl, SHL, PyNumber_Lshift)
BINARY(shr, SHR, PyNumber_Rshift)

static PyObject *register_negative(PyObject *self)
{
    PyObject *zero = PyLong_FromLong(0), *result = zero ? register_subtract(zero, self) : NULL;

    Py_XDECREF(zero);
    return result;
}

static PyObject *host_compare(PyObject *a, PyObject *b, int op)
{
    PyObject *x = PyNumber_Index(a), *y = x ? PyNumber_Index(b) : NULL, *result = y ? PyObject_RichCompare(x, y, op) : NULL;

    Py_XDECREF(x);
    Py_XDECREF(y);
    return result;
}

static PyObject *register_compare(PyObject *a, PyObject *b, int op)
{
    static const int code[] = { [Py_LT] = VTRN_REGOP_LESS,      [Py_LE] = VTRN_REGOP_LESS_EQUAL, [Py_EQ] = VTRN_REGOP_EQUAL,
                                [Py_NE] = VTRN_REGOP_NOT_EQUAL, [Py_GT] = VTRN_REGOP_LESS,       [Py_GE] = VTRN_REGOP_LESS_EQUAL };
    bool swap = op == Py_GT || op == Py_GE;
    struct trace *t;

    if (!is_operand(b) || PyBool_Check(b)) Py_RETURN_NOTIMPLEMENTED;
    if (((struct nki_register *)a)->known && (!IS_REGISTER(b) || ((struct nki_register *)b)->known)) return host_compare(a, b, op);
    t = ext_trace("register comparison");
    return t ? append_alu(t, code[op], swap ? b : a, swap ? a : b) : NULL;
}

static Py_hash_t register_hash(PyObject *self) { return (Py_hash_t)((uintptr_t)self >> 4); }

static PyNumberMethods register_number = {
    .nb_add = register_add,
    .nb_subtract = register_subtract,
    .nb_multiply = register_multiply,
    .nb_remainder = register_modulo,
    .nb_negative = register_negative,
    .nb_bool = register_bool,
    .nb_lshift = register_shl,
    .nb_rshift = register_shr,
    .nb_and = register_and,
    .nb_xor = register_xor,
    .nb_or = register_or,
    .nb_int = register_int,
    .nb_floor_divide = register_divide,
    .nb_index = register_int,
};

PyTypeObject nki_register_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "vtrn.VirtualRegister",
    .tp_doc = "A 32-bit register of the chip, from nisa.register_alloc.",
    .tp_basicsize = sizeof(struct nki_register),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_dealloc = register_dealloc,
    .tp_repr = register_repr,
    .tp_str = register_str,
    .tp_hash = register_hash,
    .tp_richcompare = register_compare,
    .tp_as_number = &register_number,
};

/* ---------------------------------------------------------------- functions of the module */
static int append_move(struct trace *t, PyObject *dst, PyObject *src)
{
    struct vtrn_inst *inst = ext_begin(t, VTRN_OP_register_move);

    inst->arg[0].kind = VTRN_V_REG;
    inst->arg[0].i = ((struct nki_register *)dst)->number;
    if (operand(t, src, "nisa.register_move", &inst->arg[1]) < 0) return -1;
    return ext_append(t, NULL);
}

static int append_load(struct trace *t, PyObject *dst, PyObject *src)
{
    struct vtrn_inst *inst = ext_begin(t, VTRN_OP_register_load);

    inst->arg[0].kind = VTRN_V_REG;
    inst->arg[0].i = ((struct nki_register *)dst)->number;
    inst->arg[1].kind = VTRN_V_AP;
    if (ext_operand(t, inst, (struct nki_tensor *)src, &inst->arg[1].ap, "nisa.register_alloc") < 0) return -1;
    return ext_append(t, NULL);
}

/* register_alloc(x=None): x an integer, a register or (NKI 0.2) a one-element tensor. */
static PyObject *register_alloc(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "x", NULL };
    struct trace *t = ext_trace("nisa.register_alloc");
    PyObject *x = Py_None, *reg;
    int status = 0;

    (void)module;
    if (!t || !PyArg_ParseTupleAndKeywords(args, kwargs, "|O:register_alloc", names, &x)) return NULL;
    if (x != Py_None && !IS_TENSOR(x) && !is_operand(x))
        return EXT_NULL(ext_raise(ext_errors.type, "nisa.register_alloc", "x is %.100s; an integer is needed", Py_TYPE(x)->tp_name));
    reg = alloc_register(t);
    if (!reg) return NULL;
    if (IS_TENSOR(x)) status = append_load(t, reg, x);
    else if (x != Py_None) status = append_move(t, reg, x);
    if (status < 0) Py_CLEAR(reg);
    return reg;
}

static PyObject *known_register(PyObject *module, PyObject *arg)
{
    int64_t value;
    struct nki_register *reg;

    (void)module;
    if (ext_integer(arg, "nl.dynamic_range", "the index", &value) < 0) return NULL;
    if (value < INT32_MIN || value > INT32_MAX)
        return EXT_NULL(ext_raise(ext_errors.value, "nl.dynamic_range", "%lld does not fit in a 32-bit register", (long long)value));
    reg = (struct nki_register *)new_object(NULL, 0);
    if (reg) reg->value = (int32_t)value;
    return (PyObject *)reg;
}

/* ---------------------------------------------------------------- device loops */
static void enter_loop(struct trace *t)
{
    t->open_loops++;
    t->loop_serial++;
    t->free_registers = 0; /* numbers of before the loop may still be needed by its next turn */
}

static PyObject *loop_begin(PyObject *module, PyObject *args)
{
    struct trace *t = ext_trace("nl.fori_loop");
    PyObject *lower, *upper, *step_obj, *index;
    struct vtrn_inst *inst;
    int64_t step;

    (void)module;
    if (!t || !PyArg_ParseTuple(args, "OOO:loop_begin", &lower, &upper, &step_obj)) return NULL;
    if (ext_integer(step_obj, "nl.fori_loop", "step", &step) < 0) return NULL;
    if (!is_operand(lower) || !is_operand(upper))
        return EXT_NULL(ext_raise(ext_errors.type, "nl.fori_loop", "the bounds must be integers or registers"));
    if (step < 1) return EXT_NULL(ext_raise(ext_errors.value, "nl.fori_loop", "step %lld; it must be at least 1", (long long)step));
    index = alloc_register(t);
    if (!index) return NULL;
    inst = ext_begin(t, VTRN_OP_loop_begin);
    inst->arg[0].kind = VTRN_V_REG;
    inst->arg[0].i = ((struct nki_register *)index)->number;
    inst->arg[3].kind = VTRN_V_INT;
    inst->arg[3].i = step;
    if (operand(t, lower, "nl.fori_loop", &inst->arg[1]) < 0 || operand(t, upper, "nl.fori_loop", &inst->arg[2]) < 0 ||
        ext_append(t, NULL) < 0) {
        Py_DECREF(index);
        return NULL;
    }
    enter_loop(t);
    return index;
}

static PyObject *while_begin(PyObject *module, PyObject *condition)
{
    struct trace *t = ext_trace("nl.while_loop");
    struct vtrn_inst *inst;

    (void)module;
    if (!t) return NULL;
    if (!IS_REGISTER(condition) || ((struct nki_register *)condition)->known)
        return EXT_NULL(
            ext_raise(ext_errors.type, "nl.while_loop", "the condition is %.100s, not a register", Py_TYPE(condition)->tp_name));
    inst = ext_begin(t, VTRN_OP_while_begin);
    if (operand(t, condition, "nl.while_loop", &inst->arg[0]) < 0 || ext_append(t, NULL) < 0) return NULL;
    enter_loop(t);
    Py_RETURN_NONE;
}

static PyObject *loop_end(PyObject *module, PyObject *ignored)
{
    struct trace *t = ext_trace("a loop");

    (void)module;
    (void)ignored;
    if (!t) return NULL;
    t->open_loops--;
    t->loop_serial++;
    t->free_registers = 0;
    ext_begin(t, VTRN_OP_loop_end);
    if (ext_append(t, NULL) < 0) return NULL;
    Py_RETURN_NONE;
}

PyMethodDef ext_register_functions[] = {
    { "register_alloc", (PyCFunction)(void (*)(void))register_alloc, METH_VARARGS | METH_KEYWORDS,
      "register_alloc(x=None): a new register, holding x" },
    { "known_register", known_register, METH_O, "a frozen register whose value is known" },
    { "loop_begin", loop_begin, METH_VARARGS, "loop_begin(lower, upper, step): the induction register" },
    { "while_begin", while_begin, METH_O, "while_begin(register)" },
    { "loop_end", loop_end, METH_NOARGS, "ends the innermost device loop" },
    { 0 },
};
