/* Call forms of NKI 0.2 - 0.5 that published kernels still use, rewritten to today's before the arguments are converted.
 * One table of keywords and one of positional forms; the facts are in the shared notes nki/old_vs_new.md and isa.md. */
#include "ext.h"

/* Operand number of a name in the row of `op`. */
static int operand_at(enum vtrn_opcode op, const char *name)
{
    for (int i = 0; i < vtrn_ops[op].operands; i++)
        if (strcmp(vtrn_ops[op].operand[i].name, name) == 0) return i;
    return -1;
}

static int keep_alive(struct nisa_call *call, PyObject *obj)
{
    int status;

    if (!obj) return -1;
    if (!call->made) call->made = PyList_New(0);
    status = call->made ? PyList_Append(call->made, obj) : -1;
    Py_DECREF(obj);
    return status;
}

/* ---------------------------------------------------------------- keywords */
enum action {
    IGNORE,        /* had no effect on values */
    RENAMED,       /* today called `to` */
    RMW,           /* dma_copy(dst_rmw_op=nl.add): dst += src, today dma_compute */
    GPSIMD_SWITCH, /* a bool that chose between DMA engines */
};
static const struct {
    enum vtrn_opcode op; /* VTRN_OP_NONE: any */
    const char *keyword;
    enum action action;
    const char *to;
} old_keyword[] = {
    { VTRN_OP_tensor_copy, "dtype", IGNORE, NULL }, /* the dst tensor has it */
    { VTRN_OP_scalar_tensor_tensor, "dtype", IGNORE, NULL },
    { VTRN_OP_activation, "dtype", IGNORE, NULL },
    { VTRN_OP_tensor_tensor, "dtype", IGNORE, NULL },
    { VTRN_OP_tensor_scalar, "dtype", IGNORE, NULL },
    { VTRN_OP_tensor_reduce, "dtype", IGNORE, NULL },
    { VTRN_OP_nc_transpose, "dtype", IGNORE, NULL },
    { VTRN_OP_iota, "dtype", IGNORE, NULL },
    { VTRN_OP_memset, "dtype", IGNORE, NULL },
    { VTRN_OP_register_move, "imm", RENAMED, "src" },
    { VTRN_OP_dma_copy, "dst_rmw_op", RMW, NULL },
    { VTRN_OP_dma_copy, "unique_indices", IGNORE, NULL }, /* true of every program that runs on hardware */
    { VTRN_OP_sendrecv, "use_gpsimd_dma", GPSIMD_SWITCH, "dma_engine" },
};

static int rename_keyword(struct nisa_call *call, const char *to, PyObject *value)
{
    int at = operand_at(call->op, to);

    if (call->slot[at]) return ext_raise(ext_errors.type, call->name, "argument %s is given twice", to);
    call->slot[at] = value;
    return 1;
}

/* dma_copy(dst, src, dst_rmw_op=nl.add) is dma_compute(dst, [src, dst], add). */
static int rewrite_rmw(struct nisa_call *call, PyObject *rmw_op)
{
    PyObject *dst = call->slot[operand_at(VTRN_OP_dma_copy, "dst")], *src = call->slot[operand_at(VTRN_OP_dma_copy, "src")];
    PyObject *oob = call->slot[operand_at(VTRN_OP_dma_copy, "oob_mode")];

    if (!dst || !src) return ext_raise(ext_errors.type, call->name, "dst_rmw_op must come after dst and src");
    if (keep_alive(call, PyTuple_Pack(2, src, dst)) < 0) return -1;
    memset(call->slot, 0, sizeof call->slot);
    call->op = VTRN_OP_dma_compute;
    call->slot[operand_at(VTRN_OP_dma_compute, "dst")] = dst;
    call->slot[operand_at(VTRN_OP_dma_compute, "srcs")] = PyList_GET_ITEM(call->made, PyList_GET_SIZE(call->made) - 1);
    call->slot[operand_at(VTRN_OP_dma_compute, "reduce_op")] = rmw_op;
    call->slot[operand_at(VTRN_OP_dma_compute, "oob_mode")] = oob;
    return 1;
}

int ext_compat_keyword(struct nisa_call *call, const char *keyword, PyObject *value)
{
    if (strcmp(keyword, "mask") == 0 && value == Py_None) return 1;
    for (size_t i = 0; i < sizeof old_keyword / sizeof old_keyword[0]; i++) {
        if (old_keyword[i].op != call->op || strcmp(old_keyword[i].keyword, keyword) != 0) continue;
        switch (old_keyword[i].action) {
        case IGNORE: return 1;
        case RENAMED: return rename_keyword(call, old_keyword[i].to, value);
        case RMW:
            if (value == Py_None) return 1;
            return keep_alive(call, PyTuple_Pack(1, value)) < 0 ? -1 : 1;
        case GPSIMD_SWITCH: {
            int truth = PyObject_IsTrue(value);

            if (truth < 0 || keep_alive(call, PyUnicode_FromString(truth ? "gpsimd_dma" : "dma")) < 0) return -1;
            return rename_keyword(call, old_keyword[i].to, PyList_GET_ITEM(call->made, PyList_GET_SIZE(call->made) - 1));
        }
        }
    }
    return 0;
}

/* ---------------------------------------------------------------- positional forms */
static void assign(struct nisa_call *call, PyObject *const *args, int given, const int *order, int ordered)
{
    for (int i = 0; i < given; i++) call->slot[i < ordered ? order[i] : i] = args[i];
}

static bool is_list(PyObject *obj) { return PyTuple_Check(obj) || PyList_Check(obj); }

int ext_compat_positional(struct nisa_call *call, PyObject *const *args, int given)
{
    /* 0.3: no priority between src and oob_mode (dma_copy), between axes and dge_mode (dma_transpose) */
    static const int copy_0_3[] = { 0, 1, 3, 4, 5 }, transpose_0_3[] = { 0, 1, 2, 4, 5 };
    /* 0.2: affine_select(dst, pattern, offset, channel_multiplier, on_true_tile, on_false_value, cmp_op) */
    static const int affine_0_2[] = { 0, 1, 6, 2, 3, 4, 5 };
    /* 0.2: dma_compute(dst, srcs, scales, reduce_op) */
    static const int compute_0_2[] = { 0, 1, 3, 2 };

    switch (call->op) {
    case VTRN_OP_dma_copy:
        if (given > 2 && given <= 5 && (ext_is_enum_of(VTRN_ENUMS_OOB, args[2]) || ext_is_enum_of(VTRN_ENUMS_DGE, args[2]))) {
            assign(call, args, given, copy_0_3, 5);
            return 0;
        }
        break;
    case VTRN_OP_dma_transpose:
        if (given > 3 && given <= 5 && (ext_is_enum_of(VTRN_ENUMS_OOB, args[3]) || ext_is_enum_of(VTRN_ENUMS_DGE, args[3]))) {
            assign(call, args, given, transpose_0_3, 5);
            return 0;
        }
        break;
    case VTRN_OP_affine_select:
        if (given > 4 && !IS_TENSOR(args[3]) && IS_TENSOR(args[4])) {
            assign(call, args, given, affine_0_2, 7);
            return 0;
        }
        break;
    case VTRN_OP_dma_compute:
        if (given > 3 && (args[2] == Py_None || is_list(args[2]))) {
            assign(call, args, given, compute_0_2, 4);
            return 0;
        }
        break;
    default: break;
    }
    for (int i = 0; i < given; i++) call->slot[i] = args[i];
    return 0;
}

/* ---------------------------------------------------------------- when all arguments are known */
/* tensor_reduce(axis=-1): counted from the data's last dimension. */
static int count_axis(struct nisa_call *call)
{
    int data_at = operand_at(VTRN_OP_tensor_reduce, "data"), axis_at = operand_at(VTRN_OP_tensor_reduce, "axis");
    PyObject *data = call->slot[data_at], *axis = call->slot[axis_at];
    int64_t dims[EXT_RANK];
    bool negative = false;
    int n = 1;

    if (!data || !axis || !IS_TENSOR(data)) return 0;
    if (is_list(axis)) n = ext_dims_read(axis, dims, EXT_RANK, call->name);
    else if (PyIndex_Check(axis)) dims[0] = PyNumber_AsSsize_t(axis, NULL);
    else return 0;
    if (n < 0 || PyErr_Occurred()) return -1;
    for (int i = 0; i < n; i++)
        if (dims[i] < 0) {
            dims[i] += ((struct nki_tensor *)data)->ndim;
            negative = true;
        }
    if (!negative) return 0;
    if (keep_alive(call, ext_dims_tuple(dims, n)) < 0) return -1;
    call->slot[axis_at] = PyList_GET_ITEM(call->made, PyList_GET_SIZE(call->made) - 1);
    return 0;
}

int ext_compat_finish(struct nisa_call *call)
{
    if (VTRN_LIKELY(call->op != VTRN_OP_tensor_reduce && call->op != VTRN_OP_dma_copy)) return 0;
    if (call->op == VTRN_OP_tensor_reduce) return count_axis(call);
    for (Py_ssize_t i = 0; call->made && i < PyList_GET_SIZE(call->made); i++) {
        PyObject *item = PyList_GET_ITEM(call->made, i);

        if (PyTuple_Check(item)) return rewrite_rmw(call, PyTuple_GET_ITEM(item, 0)) < 0 ? -1 : 0;
    }
    return 0;
}
