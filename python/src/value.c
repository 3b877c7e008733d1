/* Python objects as operand values: dtypes, memory regions, enum members, numbers, lists. What an operand accepts is said by
 * its row of the instruction table; whether the value is legal there is the library's business (prog/legal.c). */
#include "ext.h"

#include <math.h>

/* ---------------------------------------------------------------- dtypes */
static PyObject *dtype_name[VTRN_DT_COUNT]; /* interned; filled in at import */

PyObject *ext_dtype_object(int dtype)
{
    if (!dtype_name[dtype]) dtype_name[dtype] = PyUnicode_InternFromString(vtrn_dtypes[dtype].nki_name);
    return dtype_name[dtype];
}

/* By a name of any of the libraries: "bfloat16", "torch.bfloat16", "bool". */
static int dtype_by_name(const char *name)
{
    if (strncmp(name, "torch.", 6) == 0) name += 6;
    if (strcmp(name, "bool") == 0) name = "bool_";
    return vtrn_dtype_by_nki_name(name);
}

/* NumPy dtypes have .name, types have __name__, torch dtypes a str(). */
static int dtype_by_attribute(PyObject *obj)
{
    static const char *const attributes[] = { "name", "__name__" };
    PyObject *text;
    int dtype = VTRN_DT_NONE;

    for (int i = 0; i < 3 && dtype == VTRN_DT_NONE; i++) {
        const char *name;

        text = i < 2 ? PyObject_GetAttrString(obj, attributes[i]) : PyObject_Str(obj);
        name = text && PyUnicode_Check(text) ? PyUnicode_AsUTF8(text) : NULL;
        if (name) dtype = dtype_by_name(name);
        Py_XDECREF(text);
        PyErr_Clear();
    }
    return dtype;
}

int ext_dtype(PyObject *obj, const char *what)
{
    int dtype;
    PyObject *text;

    for (int i = 1; i < VTRN_DT_COUNT; i++)
        if (obj == dtype_name[i]) return i;
    if (PyUnicode_Check(obj)) {
        dtype = dtype_by_name(ext_utf8(obj));
    } else {
        dtype = obj == Py_None ? VTRN_DT_NONE : dtype_by_attribute(obj);
    }
    if (dtype != VTRN_DT_NONE) return dtype;
    text = PyObject_Str(obj);
    if (!text) return -1;
    ext_raise(ext_errors.type, what, "dtype %.100s: Trainium has no such data type%s", ext_utf8(text),
              strstr(ext_utf8(text), "64") ? "; convert to a 32-bit one first" : "; use nl.float32, nl.bfloat16, ...");
    Py_DECREF(text);
    return -1;
}

/* ---------------------------------------------------------------- memory regions */
enum { SPACES = VTRN_HBM_SHARED + 1 };
static PyObject *buffer_member[SPACES]; /* nl.sbuf, ...; filled in at import of nki.language */

PyObject *ext_buffer_object(int space) { return buffer_member[space] ? buffer_member[space] : Py_None; }

PyObject *ext_register_buffers(PyObject *module, PyObject *args)
{
    PyObject *sbuf, *psum, *hbm, *shared;

    (void)module;
    if (!PyArg_ParseTuple(args, "OOOO:register_buffers", &sbuf, &psum, &hbm, &shared)) return NULL;
    Py_XSETREF(buffer_member[VTRN_SBUF], Py_NewRef(sbuf));
    Py_XSETREF(buffer_member[VTRN_PSUM], Py_NewRef(psum));
    Py_XSETREF(buffer_member[VTRN_HBM], Py_NewRef(hbm));
    Py_XSETREF(buffer_member[VTRN_HBM_SHARED], Py_NewRef(shared));
    Py_RETURN_NONE;
}

int ext_buffer(PyObject *obj, const char *what, int *space_out)
{
    const char *name;

    for (int i = VTRN_SBUF; i < SPACES; i++)
        if (obj == buffer_member[i]) {
            *space_out = i;
            return 0;
        }
    name = PyUnicode_Check(obj) ? PyUnicode_AsUTF8(obj) : NULL;
    if (name && strcmp(name, "private_hbm") == 0) name = "hbm"; /* strings: the form of NKI 0.2 */
    for (int i = VTRN_SBUF; name && i < SPACES; i++)
        if (strcmp(name, vtrn_space_name(i)) == 0) {
            *space_out = i;
            return 0;
        }
    PyErr_Clear();
    return ext_raise(ext_errors.type, what, "buffer %s%.100s: use nl.sbuf, nl.psum, nl.hbm or nl.shared_hbm",
                     name ? "" : "of type ", name ? name : Py_TYPE(obj)->tp_name);
}

/* ---------------------------------------------------------------- enums */
enum { MEMBERS = 8 };
static struct {
    PyObject *object[MEMBERS];
    int64_t value[MEMBERS];
    int members;
} enum_set[VTRN_ENUMS_COUNT]; /* filled in at import of nki.isa */

static int set_by_name(const char *name)
{
    for (int set = 1; set < VTRN_ENUMS_COUNT; set++)
        if (strcmp(vtrn_enum_set_name(set), name) == 0) return set;
    return 0;
}

/* register_enum("dge_mode", class): the members are recognised by identity from now on. */
PyObject *ext_register_enum(PyObject *module, PyObject *args)
{
    const char *set_name, *name;
    PyObject *cls;
    int set, value;

    (void)module;
    if (!PyArg_ParseTuple(args, "sO:register_enum", &set_name, &cls)) return NULL;
    set = set_by_name(set_name);
    if (!set) return PyErr_Format(PyExc_ValueError, "no enum %s", set_name);
    enum_set[set].members = 0;
    for (int i = 0; i < MEMBERS && vtrn_enum_member(set, i, &name, &value); i++) {
        PyObject *member = PyObject_GetAttrString(cls, name);

        if (!member) return NULL;
        enum_set[set].object[i] = member; /* kept for ever */
        enum_set[set].value[i] = value;
        enum_set[set].members = i + 1;
    }
    Py_RETURN_NONE;
}

bool ext_is_enum_of(int set, PyObject *obj)
{
    for (int i = 0; i < enum_set[set].members; i++)
        if (enum_set[set].object[i] == obj) return true;
    return false;
}

static void list_members(int set, char *out, size_t size)
{
    const char *name;
    int value, used = 0;

    out[0] = '\0';
    for (int i = 0; vtrn_enum_member(set, i, &name, &value) && used < (int)size - 1; i++)
        used += snprintf(out + used, size - (size_t)used, "%s%s", i ? ", " : "", name);
}

/* Kernels also give a member's number (dge_mode=3), which AWS's own enums equal. */
static bool member_of_number(int set, PyObject *obj, int64_t *value_out)
{
    int64_t number = PyLong_AsLongLong(obj);

    PyErr_Clear(); /* too large for any member: -1 is none */
    for (int i = 0; i < enum_set[set].members; i++)
        if (enum_set[set].value[i] == number) {
            *value_out = number;
            return true;
        }
    return false;
}

int ext_enum_value(const char *op, const char *operand, int set, PyObject *obj, int64_t *value_out)
{
    char members[300];
    Py_ssize_t length;
    const char *name;
    int value;

    for (int i = 0; i < enum_set[set].members; i++)
        if (enum_set[set].object[i] == obj) {
            *value_out = enum_set[set].value[i];
            return 0;
        }
    if (Py_TYPE(obj) == &nki_op_type && set == VTRN_ENUMS_CMP && ((struct nki_op *)obj)->cmp) {
        *value_out = ((struct nki_op *)obj)->cmp;
        return 0;
    }
    if (PyUnicode_Check(obj)) {
        name = PyUnicode_AsUTF8AndSize(obj, &length);
        if (!name) return -1;
        if (vtrn_enum_value(set, name, (size_t)length, &value)) {
            *value_out = value;
            return 0;
        }
    }
    if (PyLong_CheckExact(obj) && member_of_number(set, obj, value_out)) return 0;
    if (set == VTRN_ENUMS_CMP && ext_alu_of(obj) >= VTRN_ALU_EQUAL && ext_alu_of(obj) <= VTRN_ALU_LESS) {
        *value_out = ext_alu_of(obj); /* the codes are the same; NumPy ufuncs come this way */
        return 0;
    }
    list_members(set, members, sizeof members);
    return ext_raise(ext_errors.type, op, "%s is %.100s, not a member of %s (%s)", operand, Py_TYPE(obj)->tp_name,
                     vtrn_enum_set_name(set), members);
}

int ext_engine(struct trace *t, const char *op, PyObject *obj, uint8_t *engine_out)
{
    int64_t value;

    (void)t;
    if (ext_enum_value(op, "engine", VTRN_ENUMS_ENGINE, obj, &value) < 0) return -1;
    *engine_out = (uint8_t)value;
    return 0;
}

/* ---------------------------------------------------------------- one value of each kind */
#define WRONG(obj, info, op, needed) \
    ext_raise(ext_errors.type, op, "%s is %.100s; " needed " is needed", (info)->name, \
              (obj) == Py_None ? "None" : Py_TYPE(obj)->tp_name)

static int tensor_value(struct trace *t, const char *op, const struct vtrn_operand_info *info, PyObject *obj, struct vtrn_value *value)
{
    if (VTRN_UNLIKELY(!IS_TENSOR(obj))) return WRONG(obj, info, op, "a tensor");
    value->kind = VTRN_V_AP;
    return ext_operand(t, &t->inst, (struct nki_tensor *)obj, &value->ap, op);
}

/* Python and NumPy numbers; is_int for those that hold an integer. */
static int number_value(const char *op, const struct vtrn_operand_info *info, PyObject *obj, struct vtrn_value *value)
{
    value->kind = VTRN_V_NUM;
    value->is_int = 0;
    if (PyFloat_CheckExact(obj)) {
        value->num = PyFloat_AS_DOUBLE(obj);
        return 0;
    }
    if (PyIndex_Check(obj) && !IS_REGISTER(obj)) {
        PyObject *number = PyNumber_Index(obj);

        if (number) {
            value->num = PyLong_AsDouble(number);
            Py_DECREF(number);
            value->is_int = 1;
            if (value->num != -1.0 || !PyErr_Occurred()) return 0;
            PyErr_Clear();
            return ext_raise(ext_errors.value, op, "%s is an integer that is larger than any float", info->name);
        }
        if (!PyErr_ExceptionMatches(PyExc_TypeError)) return -1;
        PyErr_Clear(); /* arrays and torch tensors may hold one float, or be no number */
    }
    if (!IS_TENSOR(obj) && !PyUnicode_Check(obj) && PyNumber_Check(obj) && !IS_REGISTER(obj)) {
        value->num = PyFloat_AsDouble(obj);
        if (value->num != -1.0 || !PyErr_Occurred()) return 0;
        PyErr_Clear();
    }
    if (IS_REGISTER(obj)) return WRONG(obj, info, op, "a number (store the register to a tile with register_store)");
    return WRONG(obj, info, op, "a number");
}

static int scalar_value(struct trace *t, const char *op, const struct vtrn_operand_info *info, PyObject *obj, struct vtrn_value *value)
{
    if (IS_TENSOR(obj)) return tensor_value(t, op, info, obj, value);
    if (PyFloat_CheckExact(obj) || PyNumber_Check(obj)) return number_value(op, info, obj, value);
    return WRONG(obj, info, op, "a number or a tensor");
}

static int integer_value(const char *op, const struct vtrn_operand_info *info, PyObject *obj, struct vtrn_value *value)
{
    double real = PyFloat_Check(obj) ? PyFloat_AS_DOUBLE(obj) : NAN;

    if (fabs(real) < 0x1p62 && real == (double)(int64_t)real) {
        value->i = (int64_t)real; /* 4.0: kernels compute sizes with floats at times */
    } else {
        if (!PyIndex_Check(obj) || IS_REGISTER(obj)) return WRONG(obj, info, op, "an integer");
        if (ext_integer(obj, op, info->name, &value->i) < 0) return -1;
    }
    value->kind = VTRN_V_INT;
    return 0;
}

static int register_value(struct trace *t, const char *op, const struct vtrn_operand_info *info, PyObject *obj,
                          struct vtrn_value *value)
{
    if (IS_REGISTER(obj)) {
        if (info->access & VTRN_WRITE) {
            const struct nki_register *reg = (struct nki_register *)obj;

            if (reg->known || reg->frozen)
                return ext_raise(ext_errors.validation, op, "%s is a loop's induction register, which cannot be written", info->name);
        }
        return ext_register_value(t, obj, op, value);
    }
    if (info->access & VTRN_WRITE) return WRONG(obj, info, op, "a register (nisa.register_alloc)");
    if (!PyIndex_Check(obj)) return WRONG(obj, info, op, "a register or an integer");
    return integer_value(op, info, obj, value);
}

static int flag_value(const char *op, const struct vtrn_operand_info *info, PyObject *obj, struct vtrn_value *value)
{
    int truth;

    if (obj == Py_True || obj == Py_False) truth = obj == Py_True;
    else if (PyIndex_Check(obj) || strncmp(Py_TYPE(obj)->tp_name, "numpy.bool", 10) == 0) truth = PyObject_IsTrue(obj);
    else return WRONG(obj, info, op, "True or False");
    if (truth < 0) return -1;
    value->kind = VTRN_V_INT;
    value->i = truth;
    return 0;
}

static int operator_value(const char *op, const struct vtrn_operand_info *info, PyObject *obj, struct vtrn_value *value)
{
    bool act = info->kind == VTRN_K_ACT;
    int code = act ? ext_act_of(obj) : ext_alu_of(obj);

    if (code == 0) {
        const char *name = Py_TYPE(obj) == &nki_op_type ? PyUnicode_AsUTF8(((struct nki_op *)obj)->name) : Py_TYPE(obj)->tp_name;

        return ext_raise(ext_errors.type, op, "%s is %.100s, which is not %s", info->name, name,
                         act ? "an activation function (nl.exp, nl.copy, ...)" : "an operator (nl.add, nl.multiply, ...)");
    }
    value->kind = VTRN_V_INT;
    value->i = code;
    return 0;
}

static int string_value(struct trace *t, const char *op, const struct vtrn_operand_info *info, PyObject *obj, struct vtrn_value *value)
{
    Py_ssize_t length;
    const char *text = PyUnicode_Check(obj) ? PyUnicode_AsUTF8AndSize(obj, &length) : NULL;
    uint32_t index;

    if (!text && PyErr_Occurred()) {
        PyErr_Clear();
        return ext_raise(ext_errors.value, op, "%s has characters that UTF-8 does not have", info->name);
    }
    if (!text) return WRONG(obj, info, op, "a string");
    if (vtrn_prog_string(t->session->prog, text, (size_t)length, &index) < 0)
        return ext_raise(ext_errors.value, op, "%s is too long or holds a zero character", info->name);
    value->kind = VTRN_V_INT;
    value->i = index;
    return 0;
}

/* ---------------------------------------------------------------- lists */
/* Nested lists are flattened: [[stride, count], ...]. Returns how many, or -1. */
static int read_ints(const char *op, const struct vtrn_operand_info *info, PyObject *obj, int64_t *out, int max, int depth)
{
    PyObject *seq = PyTuple_Check(obj) || PyList_Check(obj) ? Py_NewRef(obj) : NULL;
    struct vtrn_value item = { 0 };
    int n = 0;

    if (!seq && PySequence_Check(obj) && !PyUnicode_Check(obj)) seq = PySequence_Tuple(obj); /* ranges, arrays */
    if (!seq || depth > 2) {
        Py_XDECREF(seq);
        PyErr_Clear();
        return WRONG(obj, info, op, "a list of integers");
    }
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(seq); i++) {
        PyObject *entry = PySequence_Fast_GET_ITEM(seq, i);
        int got = 1;

        if (PyTuple_Check(entry) || PyList_Check(entry)) got = read_ints(op, info, entry, out + n, max - n, depth + 1);
        else if (n == max) got = ext_raise(ext_errors.value, op, "%s has more than %d integers", info->name, max);
        else if (integer_value(op, info, entry, &item) < 0) got = -1;
        else out[n] = item.i;
        if (got < 0) {
            Py_DECREF(seq);
            return -1;
        }
        n += got;
    }
    Py_DECREF(seq);
    return n;
}

static int ints_value(struct trace *t, const char *op, const struct vtrn_operand_info *info, PyObject *obj, struct vtrn_value *value)
{
    int64_t read[VTRN_INST_INTS], *kept;
    int max = info->max_count < VTRN_INST_INTS ? info->max_count : VTRN_INST_INTS, n;

    if (PyIndex_Check(obj)) { /* axis=1 */
        struct vtrn_value one;

        if (integer_value(op, info, obj, &one) < 0) return -1;
        read[0] = one.i;
        n = 1;
    } else {
        n = read_ints(op, info, obj, read, max, 0);
        if (n < 0) return -1;
    }
    if (n == 0 && info->optional) return 0; /* () and [] mean: not given */
    kept = vtrn_inst_new_ints(&t->inst, n);
    if (!kept) return ext_raise(ext_errors.value, op, "%s: more than %d integers in one instruction", info->name, VTRN_INST_INTS);
    memcpy(kept, read, (size_t)n * sizeof *kept);
    value->kind = VTRN_V_INTS;
    value->count = (uint16_t)n;
    value->ints = kept;
    return 0;
}

static int tensors_value(struct trace *t, const char *op, const struct vtrn_operand_info *info, PyObject *obj,
                         struct vtrn_value *value)
{
    Py_ssize_t n;
    struct vtrn_ap *aps;

    if (!PyTuple_Check(obj) && !PyList_Check(obj)) return WRONG(obj, info, op, "a list of tensors");
    n = PySequence_Fast_GET_SIZE(obj);
    if (n < 1 || n > info->max_count)
        return ext_raise(ext_errors.value, op, "%s has %zd tensors; 1..%d are possible", info->name, n, info->max_count);
    aps = vtrn_inst_new_aps(&t->inst, (int)n);
    if (!aps) return ext_raise(ext_errors.value, op, "%s: more than %d tensors", info->name, VTRN_INST_APS);
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *item = PySequence_Fast_GET_ITEM(obj, i);

        if (!IS_TENSOR(item)) return WRONG(item, info, op, "a list of tensors");
        if (ext_operand(t, &t->inst, (struct nki_tensor *)item, &aps[i], op) < 0) return -1;
    }
    value->kind = VTRN_V_APS;
    value->count = (uint16_t)n;
    value->aps = aps;
    return 0;
}

int ext_value(struct trace *t, const char *op, const struct vtrn_operand_info *info, PyObject *obj, struct vtrn_value *value)
{
    if (obj == Py_None && info->optional) return 0; /* stays absent */
    switch (info->kind) {
    case VTRN_K_TENSOR: return tensor_value(t, op, info, obj, value);
    case VTRN_K_TENSORS: return tensors_value(t, op, info, obj, value);
    case VTRN_K_TENSOR_OR_NUM:
    case VTRN_K_SCALAR: return scalar_value(t, op, info, obj, value);
    case VTRN_K_NUM: return number_value(op, info, obj, value);
    case VTRN_K_INT: return integer_value(op, info, obj, value);
    case VTRN_K_REG: return register_value(t, op, info, obj, value);
    case VTRN_K_FLAG: return flag_value(op, info, obj, value);
    case VTRN_K_TRI: return obj == Py_None ? 0 : flag_value(op, info, obj, value);
    case VTRN_K_ENUM: value->kind = VTRN_V_INT; return ext_enum_value(op, info->name, info->set, obj, &value->i);
    case VTRN_K_ALU:
    case VTRN_K_ACT: return operator_value(op, info, obj, value);
    case VTRN_K_INTS: return ints_value(t, op, info, obj, value);
    case VTRN_K_STRING: return string_value(t, op, info, obj, value);
    default: return ext_raise(ext_errors.error, op, "%s: an operand of kind %d", info->name, info->kind);
    }
}
