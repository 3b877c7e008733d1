/* The module vtrn._vtrn: types, functions, and what Python needs to know of the tables. */
#include "affine.h"

/* module.dtypes: NKI name -> bytes of an element, in table order. */
static int add_dtypes(PyObject *module)
{
    PyObject *dict = PyDict_New();
    int status = dict ? 0 : -1;

    for (int i = 1; status == 0 && i < VTRN_DT_COUNT; i++) {
        PyObject *size;

        if (!vtrn_dtypes[i].nki_name) continue;
        size = PyLong_FromLong(vtrn_dtypes[i].size_bytes);
        status = size ? PyDict_SetItem(dict, ext_dtype_object(i), size) : -1;
        Py_XDECREF(size);
    }
    if (status == 0) status = PyModule_AddObjectRef(module, "dtypes", dict);
    Py_XDECREF(dict);
    return status;
}

/* dtype_name(dtype): the NKI name of any library's dtype. */
static PyObject *dtype_name(PyObject *module, PyObject *arg)
{
    int dtype = ext_dtype(arg, "dtype");

    (void)module;
    return dtype < 0 ? NULL : Py_NewRef(ext_dtype_object(dtype));
}

/* enum_members("dge_mode"): [(name, value), ...]. */
static PyObject *enum_members(PyObject *module, PyObject *arg)
{
    const char *set_name = PyUnicode_AsUTF8(arg), *name;
    PyObject *list = set_name ? PyList_New(0) : NULL;
    int value;

    (void)module;
    for (int set = 1; list && set < VTRN_ENUMS_COUNT; set++) {
        if (strcmp(vtrn_enum_set_name(set), set_name) != 0) continue;
        for (int i = 0; list && vtrn_enum_member(set, i, &name, &value); i++) {
            PyObject *row = Py_BuildValue("(si)", name, value);

            if (!row || PyList_Append(list, row) < 0) Py_CLEAR(list);
            Py_XDECREF(row);
        }
    }
    return list;
}

/* operands("nc_matmul"): [(name, required, default or None), ...], for signatures. */
static PyObject *operands(PyObject *module, PyObject *arg)
{
    Py_ssize_t length;
    const char *name = PyUnicode_AsUTF8AndSize(arg, &length);
    enum vtrn_opcode op = name ? vtrn_op_by_name(name, (size_t)length) : VTRN_OP_NONE;
    PyObject *list;

    (void)module;
    if (op == VTRN_OP_NONE) return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_KeyError, "%R", arg);
    list = PyList_New(0);
    for (int i = 0; list && i < vtrn_ops[op].operands; i++) {
        const struct vtrn_operand_info *info = &vtrn_ops[op].operand[i];
        bool required = !info->optional && !info->has_default;
        const char *member = info->kind == VTRN_K_ENUM ? vtrn_enum_name(info->set, (int)info->dflt) : NULL;
        PyObject *row;

        if (member) row = Py_BuildValue("(sOs)", info->name, required ? Py_True : Py_False, member);
        else if (info->has_default) row = Py_BuildValue("(sOd)", info->name, Py_False, info->dflt);
        else row = Py_BuildValue("(sOO)", info->name, required ? Py_True : Py_False, Py_None);
        if (!row || PyList_Append(list, row) < 0) Py_CLEAR(list);
        Py_XDECREF(row);
    }
    return list;
}

/* extend_tensor(name, function): a method written in Python (conversion to NumPy, printing). */
static PyObject *extend_tensor(PyObject *module, PyObject *args)
{
    PyObject *name, *function;

    (void)module;
    if (!PyArg_ParseTuple(args, "UO:extend_tensor", &name, &function)) return NULL;
    if (PyDict_SetItem(nki_tensor_type.tp_dict, name, function) < 0) return NULL;
    PyType_Modified(&nki_tensor_type);
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    { "ds", (PyCFunction)(void (*)(void))ext_ds, METH_FASTCALL | METH_KEYWORDS, "ds(start, size): `size` elements from `start`" },
    { "register_enum", ext_register_enum, METH_VARARGS, "register_enum(set, class)" },
    { "register_buffers", ext_register_buffers, METH_VARARGS, "register_buffers(sbuf, psum, hbm, shared_hbm)" },
    { "set_package", ext_set_package, METH_O, "set_package(folder): lines in it are not the kernel's" },
    { "dtype_name", dtype_name, METH_O, "dtype_name(dtype): the NKI name" },
    { "enum_members", enum_members, METH_O, "enum_members(set): [(name, value)]" },
    { "operands", operands, METH_O, "operands(instruction): [(name, required, default)]" },
    { "extend_tensor", extend_tensor, METH_VARARGS, "extend_tensor(name, function)" },
    { 0 },
};

static int add_methods(PyTypeObject *type, PyMethodDef *methods)
{
    for (; methods->ml_name; methods++) {
        PyObject *descriptor = PyDescr_NewMethod(type, methods);
        int status = descriptor ? PyDict_SetItemString(type->tp_dict, methods->ml_name, descriptor) : -1;

        Py_XDECREF(descriptor);
        if (status < 0) return -1;
    }
    PyType_Modified(type);
    return 0;
}

static int add_types(PyObject *module)
{
    static const struct {
        const char *name;
        PyTypeObject *type;
    } types[] = {
        { "Session", &session_type },
        { "NkiTensor", &nki_tensor_type },
        { "DynamicSlice", &nki_ds_type },
        { "NkiOp", &nki_op_type },
        { "VirtualRegister", &nki_register_type },
        { "Program", &program_type },
        { "NkiInstruction", &nki_instruction_type },
        { "NisaFunction", &nisa_function_type },
        { "Pages", &pages_type },
        { "IndexExpression", &nki_affine_type },
        { "Mask", &nki_mask_type },
    };

    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (PyType_Ready(types[i].type) < 0 || PyModule_AddObjectRef(module, types[i].name, (PyObject *)types[i].type) < 0)
            return -1;
    return add_methods(&nki_tensor_type, ext_view_methods) < 0 || add_methods(&nki_tensor_type, ext_pattern_methods) < 0 ? -1 : 0;
}

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "vtrn._vtrn", .m_doc = "The C side of vtrn's front end. Use vtrn and vtrn.nki.",
    .m_size = -1,          .m_methods = functions,
};

struct vtrn_page_cache *ext_page_cache;
static const size_t PAGES_KEPT_BYTES = (size_t)128 << 20; /* a chip's SBUF, PSUM, scratch, and results of 64 MiB */

PyMODINIT_FUNC PyInit__vtrn(void)
{
    PyObject *module = PyModule_Create(&definition);

    if (!module) return NULL;
    if (!ext_page_cache) ext_page_cache = vtrn_page_cache_create(PAGES_KEPT_BYTES); /* without one nothing is kept */
    if (add_types(module) < 0 || ext_add_errors(module) < 0 || ext_add_ops(module) < 0 || ext_add_nisa_functions(module) < 0 ||
        ext_declare_init() < 0 || add_dtypes(module) < 0 || PyModule_AddFunctions(module, ext_declare_functions) < 0 ||
        PyModule_AddFunctions(module, ext_register_functions) < 0 || PyModule_AddFunctions(module, ext_affine_functions) < 0 ||
        PyModule_AddFunctions(module, ext_box_functions) < 0 || PyModule_AddFunctions(module, ext_tile_functions) < 0)
        Py_CLEAR(module);
    return module;
}
