/* Recorded programs in Python: save, load, print, run again with other arguments. And Pages: memory that left a run, given
 * to NumPy or torch without a copy. */
#include "ext.h"

/* ---------------------------------------------------------------- pages */
struct pages {
    PyObject_HEAD void *bytes;
    size_t size;
};

PyObject *ext_pages_take(void *bytes, size_t size)
{
    struct pages *pages = PyObject_New(struct pages, &pages_type);

    if (!pages) {
        vtrn_pages_give(ext_page_cache, bytes, size);
        return NULL;
    }
    pages->bytes = bytes;
    pages->size = size;
    return (PyObject *)pages;
}

static void pages_dealloc(PyObject *self)
{
    vtrn_pages_give(ext_page_cache, ((struct pages *)self)->bytes, ((struct pages *)self)->size);
    PyObject_Free(self);
}

static int pages_buffer(PyObject *self, Py_buffer *view, int flags)
{
    const struct pages *pages = (struct pages *)self;

    return PyBuffer_FillInfo(view, self, pages->bytes, (Py_ssize_t)pages->size, 0, flags);
}

static PyBufferProcs pages_procs = { .bf_getbuffer = pages_buffer };
PyTypeObject pages_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "vtrn._vtrn.Pages",
    .tp_doc = "Bytes of a result; freed with the last array that uses them.",
    .tp_basicsize = sizeof(struct pages),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_dealloc = pages_dealloc,
    .tp_as_buffer = &pages_procs,
};

/* ---------------------------------------------------------------- program */
struct program {
    PyObject_HEAD struct vtrn_prog *prog;
    struct vtrn_trace trace[VTRN_CORES_MAX]; /* of the last run */
    bool traced;
    uint8_t *written; /* by tensor: an instruction writes it; NULL until it is asked */
};

PyObject *ext_program_take(struct vtrn_prog *prog)
{
    struct program *program = PyObject_New(struct program, &program_type);

    if (!program) {
        vtrn_prog_destroy(prog);
        return NULL;
    }
    program->prog = prog;
    memset(program->trace, 0, sizeof program->trace);
    program->traced = false;
    program->written = NULL;
    return (PyObject *)program;
}

static void program_dealloc(PyObject *self)
{
    vtrn_prog_destroy(((struct program *)self)->prog);
    free(((struct program *)self)->written);
    for (int c = 0; c < VTRN_CORES_MAX; c++) free(((struct program *)self)->trace[c].value);
    PyObject_Free(self);
}

static PyObject *raise_of(enum vtrn_status status, struct vtrn_error *err, const char *what)
{
    return EXT_NULL(ext_raise_status(status, err, what));
}

static PyObject *program_save(PyObject *self, PyObject *arg)
{
    struct vtrn_error err = { 0 };
    enum vtrn_status status;
    PyObject *path;

    if (!PyUnicode_FSConverter(arg, &path)) return NULL;
    status = vtrn_prog_save_file(((struct program *)self)->prog, PyBytes_AS_STRING(path), &err);
    Py_DECREF(path);
    if (status < 0) return raise_of(status, &err, "save");
    Py_RETURN_NONE;
}

static PyObject *program_load(PyObject *type, PyObject *arg)
{
    struct vtrn_error err = { 0 };
    struct vtrn_prog *prog;
    enum vtrn_status status;
    PyObject *path;

    (void)type;
    if (!PyUnicode_FSConverter(arg, &path)) return NULL;
    status = vtrn_prog_load_file(PyBytes_AS_STRING(path), &prog, &err);
    Py_DECREF(path);
    return status < 0 ? raise_of(status, &err, "load") : ext_program_take(prog);
}

static PyObject *program_parse(PyObject *type, PyObject *arg)
{
    struct vtrn_error err = { 0 };
    struct vtrn_prog *prog;
    Py_ssize_t length;
    const char *text = PyUnicode_Check(arg) ? PyUnicode_AsUTF8AndSize(arg, &length) : NULL;
    enum vtrn_status status;

    (void)type;
    if (!text && !PyErr_Occurred())
        return EXT_NULL(ext_raise(ext_errors.type, "parse", "%.100s is not a string of assembly text", Py_TYPE(arg)->tp_name));
    if (!text) {
        PyErr_Clear();
        return EXT_NULL(ext_raise(ext_errors.value, "parse", "the text has characters that UTF-8 does not have"));
    }
    status = vtrn_prog_parse(text, (size_t)length, &prog, &err);
    return status < 0 ? raise_of(status, &err, "parse") : ext_program_take(prog);
}

static PyObject *program_text(PyObject *self, PyObject *ignored)
{
    struct vtrn_error err = { 0 };
    struct vtrn_buf buf = { 0 };
    enum vtrn_status status = vtrn_prog_print(((struct program *)self)->prog, &buf, &err);
    PyObject *text = NULL;

    (void)ignored;
    if (status < 0) raise_of(status, &err, "text");
    else text = PyUnicode_DecodeUTF8((const char *)buf.data, (Py_ssize_t)buf.size, "replace");
    vtrn_buf_fini(&buf);
    return text;
}

/* [(name, shape, dtype), ...] of the tensors with a role. */
static PyObject *tensors_of_role(const struct vtrn_prog *prog, int role)
{
    PyObject *list = PyList_New(0);

    for (uint32_t i = 0; list && i < prog->tensors; i++) {
        const struct vtrn_tensor *tensor = &prog->tensor[i];
        PyObject *row;

        if (tensor->role != role) continue;
        row = Py_BuildValue("(sNO)", vtrn_prog_text(prog, tensor->name), ext_dims_tuple(tensor->dim, tensor->rank),
                            ext_dtype_object(tensor->dtype));
        if (!row || PyList_Append(list, row) < 0) Py_CLEAR(list);
        Py_XDECREF(row);
    }
    return list;
}

static PyObject *get_inputs(PyObject *self, void *unused)
{
    (void)unused;
    return tensors_of_role(((struct program *)self)->prog, VTRN_ROLE_INPUT);
}

static PyObject *get_outputs(PyObject *self, void *unused)
{
    (void)unused;
    return tensors_of_role(((struct program *)self)->prog, VTRN_ROLE_OUTPUT);
}

static PyObject *get_instructions(PyObject *self, void *unused)
{
    const struct vtrn_prog *prog = ((struct program *)self)->prog;
    unsigned long long n = 0;

    (void)unused;
    for (int core = 0; core < prog->cores; core++) n += prog->code[core].count;
    return PyLong_FromUnsignedLongLong(n);
}

static PyObject *get_replayable(PyObject *self, void *unused)
{
    (void)unused;
    return PyBool_FromLong(((struct program *)self)->prog->replayable);
}

static PyObject *get_target(PyObject *self, void *unused)
{
    (void)unused;
    return PyUnicode_FromString(((struct program *)self)->prog->arch->chip);
}

static PyObject *get_cores(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromLong(((struct program *)self)->prog->cores);
}

static PyObject *get_name(PyObject *self, void *unused)
{
    const struct vtrn_prog *prog = ((struct program *)self)->prog;

    (void)unused;
    return PyUnicode_FromString(vtrn_prog_text(prog, prog->name));
}

static const uint8_t *written_tensors(struct program *program)
{
    const struct vtrn_prog *prog = program->prog;
    struct vtrn_inst inst;

    if (program->written) return program->written;
    program->written = calloc(prog->tensors + 1, 1);
    if (!program->written) {
        PyErr_NoMemory();
        return NULL;
    }
    for (int core = 0; core < prog->cores; core++)
        for (uint32_t i = 0; i < prog->code[core].count; i++) {
            vtrn_prog_get(prog, core, i, &inst);
            vtrn_inst_written(&inst, program->written);
        }
    return program->written;
}

/* [bool, ...]: which inputs the program writes. */
static PyObject *get_written(PyObject *self, void *unused)
{
    struct program *program = (struct program *)self;
    const uint8_t *written = written_tensors(program);
    PyObject *list = written ? PyList_New(0) : NULL;

    (void)unused;
    for (uint32_t i = 0; list && i < program->prog->tensors; i++)
        if (program->prog->tensor[i].role == VTRN_ROLE_INPUT && PyList_Append(list, written[i] ? Py_True : Py_False) < 0)
            Py_CLEAR(list);
    return list;
}

static Py_ssize_t count_inputs(const struct vtrn_prog *prog)
{
    Py_ssize_t count = 0;

    for (uint32_t i = 0; i < prog->tensors; i++) count += prog->tensor[i].role == VTRN_ROLE_INPUT;
    return count;
}

static int bind_inputs(struct program *program, struct vtrn_chip *chip, PyObject *inputs)
{
    const struct vtrn_prog *prog = program->prog;
    const uint8_t *written = written_tensors(program);
    Py_ssize_t next = 0, wanted = count_inputs(prog);

    if (!written) return -1;
    if (wanted != PyList_GET_SIZE(inputs))
        return ext_raise(ext_errors.type, "run", "%zd arguments; the program has %zd inputs", PyList_GET_SIZE(inputs), wanted);
    for (uint32_t i = 0; i < prog->tensors; i++) {
        unsigned long long address;
        struct vtrn_error err = { 0 };
        enum vtrn_status status;
        Py_ssize_t size;
        int readonly;

        if (prog->tensor[i].role != VTRN_ROLE_INPUT) continue;
        if (!PyArg_ParseTuple(PyList_GET_ITEM(inputs, next), "Knp", &address, &size, &readonly)) return -1;
        if (readonly && written[i])
            return ext_raise(ext_errors.validation, "run", "argument %zd (%s) is read-only, but the program writes it; give a copy",
                             next, vtrn_prog_text(prog, prog->tensor[i].name));
        status = vtrn_mem_bind(vtrn_chip_mem(chip), prog, i, (void *)(uintptr_t)address, (size_t)size, &err);
        if (status < 0) return ext_raise_status(status, &err, "run");
        next++;
    }
    return 0;
}

static PyObject *take_outputs(struct vtrn_prog *prog, struct vtrn_chip *chip)
{
    PyObject *list = PyList_New(0);

    for (uint32_t i = 0; list && i < prog->tensors; i++) {
        struct vtrn_error err = { 0 };
        PyObject *pages = NULL;
        enum vtrn_status status;
        void *bytes;
        size_t size;

        if (prog->tensor[i].role != VTRN_ROLE_OUTPUT) continue;
        status = vtrn_mem_take(vtrn_chip_mem(chip), prog, prog->tensor[i].core < VTRN_CORES_MAX ? prog->tensor[i].core : 0, i,
                               &bytes, &size, &err);
        if (status < 0) ext_raise_status(status, &err, "run");
        else pages = ext_pages_take(bytes, size);
        if (!pages || PyList_Append(list, pages) < 0) Py_CLEAR(list);
        Py_XDECREF(pages);
    }
    return list;
}

/* Keeps what registers were loaded with, for time(). Without memory for it there is none. */
static void keep_trace(struct program *program, const struct vtrn_chip *chip)
{
    const struct vtrn_trace *from = vtrn_chip_trace(chip);

    program->traced = from != NULL;
    for (int c = 0; from && c < program->prog->cores; c++) {
        struct vtrn_trace *to = &program->trace[c];

        free(to->value);
        *to = (struct vtrn_trace){ .value = malloc((from[c].values + 1) * sizeof *to->value), .values = from[c].values };
        if (!to->value) to->values = 0;
        else if (from[c].values) memcpy(to->value, from[c].value, from[c].values * sizeof *to->value);
    }
}

static PyObject *program_time(PyObject *self, PyObject *args, PyObject *kwargs)
{
    const struct program *program = (struct program *)self;

    return ext_profile(program->prog, program->traced ? program->trace : NULL, args, kwargs);
}

/* run([(address, size_bytes, readonly), ...], threads=, seed=, ...): pages of the outputs, in table order. */
static PyObject *program_run(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "inputs", "threads", "seed", "stochastic_rounding", "mx_scale_v03", NULL };
    struct vtrn_prog *prog = ((struct program *)self)->prog;
    PyObject *inputs, *outputs = NULL;
    struct vtrn_run_options options;
    struct vtrn_error err = { 0 };
    struct vtrn_chip *chip;
    enum vtrn_status status;
    struct ext_run run = { 0 };

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!|$O&O&pp:run", names, &PyList_Type, &inputs, ext_read_threads, &run.threads,
                                     ext_read_seed, &run, &run.stochastic_rounding, &run.mx_scale_v03))
        return NULL;
    ext_run_options(&run, &options);
    options.trace = true;
    chip = vtrn_chip_create(prog, &options, &err);
    if (!chip) return raise_of(err.status, &err, "run");
    if (bind_inputs((struct program *)self, chip, inputs) == 0) {
        PyThreadState *thread = PyEval_SaveThread();

        status = vtrn_chip_run(chip, (1u << prog->cores) - 1, true, &err);
        PyEval_RestoreThread(thread);
        if (status < 0) ext_raise_status(status, &err, NULL);
        else outputs = take_outputs(prog, chip);
        keep_trace((struct program *)self, chip);
    }
    vtrn_chip_destroy(chip);
    return outputs;
}

static PyMethodDef program_methods[] = {
    { "save", program_save, METH_O, "save(path): writes a .vtrn file" },
    { "load", program_load, METH_O | METH_STATIC, "load(path)" },
    { "parse", program_parse, METH_O | METH_STATIC, "parse(text): from assembly text" },
    { "text", program_text, METH_NOARGS, "assembly text" },
    { "run", (PyCFunction)(void (*)(void))program_run, METH_VARARGS | METH_KEYWORDS,
      "run(inputs, threads=0, seed=0, stochastic_rounding=False, mx_scale_v03=False)" },
    { "time", (PyCFunction)(void (*)(void))program_time, METH_VARARGS | METH_KEYWORDS,
      "time(level=None, target=None, static_dma=False): a dict; values of the last run steer loops that hang on memory" },
    { 0 },
};
static PyGetSetDef program_attributes[] = {
    { "inputs", get_inputs, NULL, "[(name, shape, dtype)]", NULL },
    { "outputs", get_outputs, NULL, "[(name, shape, dtype)]", NULL },
    { "written", get_written, NULL, "[bool]: which inputs the program writes", NULL },
    { "instructions", get_instructions, NULL, "number of instructions of all cores", NULL },
    { "replayable", get_replayable, NULL, "false: the kernel's Python looked at values", NULL },
    { "target", get_target, NULL, "chip", NULL },
    { "cores", get_cores, NULL, "cores it runs on", NULL },
    { "name", get_name, NULL, "the kernel's name", NULL },
    { 0 },
};
PyTypeObject program_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "vtrn._vtrn.Program",
    .tp_basicsize = sizeof(struct program),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_dealloc = program_dealloc,
    .tp_methods = program_methods,
    .tp_getset = program_attributes,
};
