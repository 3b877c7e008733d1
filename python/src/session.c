/* A session is one run of a kernel: its program, its chip, and what has been appended but not run. Instructions run in
 * batches without the GIL: when enough is pending, when Python looks at a value, and at the end. What has run is forgotten
 * unless the program is recorded, and on-chip tensors that Python dropped are released, so a run's memory stays bounded.
 * The order of the cores is in cores.c; declarations of tensors in declare.c. */
#include "ext.h"

/* A batch is small, so that tiles which the kernel drops are used again while they are in the host's caches, and large
 * enough to make the cost of a batch (about 1 us) vanish. */
enum { BATCH_INSTRUCTIONS = 64, BATCH_BYTES = 2 << 20 };
/* Two cores run their batches at the same time; a change of the tracing thread costs about 10 us, so theirs are larger. */
enum { PAIR_INSTRUCTIONS = 256, PAIR_BYTES = 8 << 20 };

_Thread_local struct trace *ext_current;

struct trace *ext_trace(const char *what)
{
    if (VTRN_LIKELY(ext_current != NULL)) return ext_current;
    ext_raise(ext_errors.error, what, "works only inside a kernel that runs (nki.jit, nki.simulate, vtrn.trace)");
    return NULL;
}

/* ---------------------------------------------------------------- callbacks of the chip: without the GIL */
static void print_text(void *self, int core, const char *text)
{
    struct session *s = self;
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *result, *out;

    (void)core;
    if (s->print) {
        result = PyObject_CallFunction(s->print, "s", text);
    } else {
        out = PySys_GetObject("stdout"); /* borrowed; Python's, so that redirection works */
        result = out ? PyObject_CallMethod(out, "write", "s", text) : NULL;
    }
    if (!result) PyErr_WriteUnraisable(s->print);
    Py_XDECREF(result);
    PyGILState_Release(gil);
}

/* Python delivers signals to its main thread alone; a run in another one ends when the session was stopped there. */
static bool check_signals(void *self, double share)
{
    const struct session *s = self; /* NULL: a recorded program's run */
    PyGILState_STATE gil = PyGILState_Ensure();
    bool go_on = PyErr_CheckSignals() == 0 && !(s && s->stopped);

    (void)share;
    PyGILState_Release(gil);
    return go_on;
}

/* Raises "what: <the object> <text>". */
static int refuse_option(PyObject *type, const char *what, PyObject *obj, const char *text)
{
    PyObject *shown = PyObject_Repr(obj);
    const char *utf8 = shown ? PyUnicode_AsUTF8(shown) : NULL;

    PyErr_Clear();
    ext_raise(type, what, "%.80s %s", utf8 ? utf8 : Py_TYPE(obj)->tp_name, text);
    Py_XDECREF(shown);
    return 0;
}

/* Options as Python or the environment gives them: numbers or their text. */
static PyObject *read_number(PyObject *obj, const char *what)
{
    bool is_text = PyUnicode_Check(obj);
    PyObject *number = is_text ? PyLong_FromUnicodeObject(obj, 0) : PyIndex_Check(obj) ? PyNumber_Index(obj) : NULL;

    if (number) return number;
    PyErr_Clear();
    refuse_option(is_text ? ext_errors.value : ext_errors.type, what, obj, "is not an integer");
    return NULL;
}

int ext_read_threads(PyObject *obj, void *threads_out)
{
    PyObject *number = read_number(obj, "threads");
    int overflow;
    long threads;

    if (!number) return 0;
    threads = PyLong_AsLongAndOverflow(number, &overflow);
    if (overflow || threads < 0 || threads > VTRN_THREADS_MAX) threads = -1;
    if (threads < 0) refuse_option(ext_errors.value, "threads", number, "is outside 1..4096 (0: all)");
    else *(int *)threads_out = (int)threads;
    Py_DECREF(number);
    return threads >= 0;
}

/* Any 64 bits; negative numbers stand for their two's complement. */
int ext_read_seed(PyObject *obj, void *run)
{
    PyObject *number = read_number(obj, "seed");

    if (!number) return 0;
    ((struct ext_run *)run)->seed = PyLong_AsUnsignedLongLongMask(number);
    ((struct ext_run *)run)->has_seed = true;
    Py_DECREF(number);
    return 1;
}

void ext_run_options(const struct ext_run *run, struct vtrn_run_options *options)
{
    vtrn_run_options_init(options);
    options->threads = run->threads;
    options->pages = ext_page_cache;
    if (run->has_seed) options->seed = run->seed;
    options->stochastic_rounding = run->stochastic_rounding;
    options->mx_scale_v03 = run->mx_scale_v03;
    options->progress = check_signals;
}

/* ---------------------------------------------------------------- running */
bool ext_caught_up(const struct trace *t)
{
    const struct session *s = t->session;

    return vtrn_core_position(vtrn_chip_core(s->chip, t->core)) >= s->prog->code[t->core].count;
}

static void keep_spare(struct trace *t, uint32_t tensor)
{
    if (t->spares < EXT_SPARES) t->spare[t->spares++] = tensor;
    else t->spare[t->next_spare++ % EXT_SPARES] = tensor; /* the one that was there stays in the table, unused */
}

/* What a core has run: its dropped tensors go, and its instructions unless they are kept. */
static void tidy(struct trace *t)
{
    struct session *s = t->session;

    bool forget = !s->record && t->open_loops == 0;

    for (uint32_t i = 0; i < t->releases; i++) {
        vtrn_mem_release(vtrn_chip_mem(s->chip), t->core, t->released[i]);
        if (forget && s->prog->tensor[t->released[i]].name == 0) keep_spare(t, t->released[i]);
    }
    t->releases = 0;
    t->pending = 0;
    t->pending_bytes = 0;
    if (!forget) return;
    t->forgotten += s->prog->code[t->core].count;
    vtrn_prog_forget_code(s->prog, t->core);
    vtrn_core_rewind(vtrn_chip_core(s->chip, t->core));
}

int ext_run_chip(struct session *s, unsigned closed)
{
    struct vtrn_error err = { 0 };
    enum vtrn_status status;
    PyThreadState *thread = PyEval_SaveThread();

    status = vtrn_chip_run(s->chip, closed, false, &err);
    PyEval_RestoreThread(thread);
    if (status < 0) {
        s->stopped = true;
        return ext_raise_status(status, &err, NULL);
    }
    for (int core = 0; core < s->cores; core++)
        if (ext_caught_up(&s->trace[core])) tidy(&s->trace[core]);
    return 0;
}

/* Two cores: the other traces a batch too, then both run at once. A core that stands at a rendezvous has the other trace on. */
static int flush_pair(struct trace *t, const struct trace *other)
{
    if (other->state == TRACE_IDLE || ext_caught_up(other)) return ext_cores_switch(t, TRACE_YIELDED);
    if (ext_run_chip(t->session, t->session->done) < 0) return -1;
    if (ext_caught_up(t)) return 0;
    t->pending_bytes = 0; /* the next batch begins here */
    return ext_cores_switch(t, TRACE_YIELDED);
}

int ext_flush(struct trace *t)
{
    struct session *s = t->session;
    const struct trace *other = &s->trace[1 - t->core];

    if (s->cores > 1 && other->state != TRACE_DONE) return flush_pair(t, other);
    return ext_run_chip(s, s->done);
}

int ext_sync(struct trace *t, const char *why)
{
    struct session *s = t->session;

    if (t->open_loops)
        return ext_raise(ext_errors.type, why, "it is not known while a device loop (nl.fori_loop, nl.while_loop) is traced");
    if (s->stopped) return ext_raise(ext_errors.error, why, "the run has stopped");
    for (;;) {
        const struct trace *other = &s->trace[1 - t->core];

        if (ext_run_chip(s, s->done) < 0) return -1;
        if (ext_caught_up(t)) return 0;
        if (s->cores == 1 || other->state == TRACE_DONE || (other->state == TRACE_WAITING && !ext_caught_up(other))) {
            if (ext_run_chip(s, (1u << s->cores) - 1) < 0) return -1; /* says who waits for what */
            if (ext_caught_up(t)) return 0;
            return ext_raise(ext_errors.deadlock, why, "core %d cannot go on", t->core);
        }
        if (ext_cores_switch(t, TRACE_WAITING) < 0) return -1;
    }
}

/* ---------------------------------------------------------------- appending */
struct vtrn_inst *ext_begin(struct trace *t, enum vtrn_opcode op)
{
    vtrn_inst_init(&t->inst, op);
    return &t->inst;
}

static int raise_append(struct trace *t, enum vtrn_status status, struct vtrn_error *err)
{
    char where[600];

    vtrn_prog_where(t->session->prog, &t->inst, where, sizeof where);
    vtrn_error_prefix(err, "%s", where);
    return ext_raise_status(status, err, NULL);
}

/* Asked before an instruction is added: it may be the first to use a tile in whose place another was dropped, and finds that
 * one's memory free again. */
static bool batch_is_full(const struct trace *t)
{
    bool pair = t->session->cores > 1;

    if (t->pending == 0 || t->session->lazy || t->open_loops) return false;
    return t->pending % (pair ? PAIR_INSTRUCTIONS : BATCH_INSTRUCTIONS) == 0 || t->pending_bytes >= (pair ? PAIR_BYTES : BATCH_BYTES);
}

int ext_append(struct trace *t, uint32_t *serial_out)
{
    struct session *s = t->session;
    enum vtrn_status status;
    struct vtrn_error err;

    if (VTRN_UNLIKELY(s->stopped)) return ext_raise(ext_errors.error, NULL, "the run has stopped");
    if (VTRN_UNLIKELY(batch_is_full(t)) && ext_flush(t) < 0) return -1;
    t->inst.loc = ext_where(s);
    status = vtrn_prog_append(s->prog, t->core, &t->inst, NULL, &err);
    if (VTRN_UNLIKELY(status < 0)) return raise_append(t, status, &err);
    if (serial_out) *serial_out = t->serial;
    t->serial++;
    t->pending++;
    return 0;
}

bool ext_undo(struct trace *t, uint32_t serial)
{
    struct session *s = t->session;
    uint32_t count;

    if (s->stopped || serial < t->forgotten || serial > t->serial) return false;
    count = serial - t->forgotten;
    if (vtrn_core_position(vtrn_chip_core(s->chip, t->core)) > count || !vtrn_prog_take_back(s->prog, t->core, count)) return false;
    t->pending -= t->pending < t->serial - serial ? t->pending : t->serial - serial;
    t->serial = serial;
    return true;
}

/* ---------------------------------------------------------------- life */
static void free_trace(struct trace *t)
{
    PyMem_Free(t->released);
    PyMem_Free(t->free_register);
    t->released = t->free_register = NULL;
    t->releases = t->release_capacity = t->free_registers = t->free_register_capacity = 0;
}

static bool is_traced(const struct session *s)
{
    for (int core = 0; core < s->cores; core++)
        if (s->trace[core].state != TRACE_IDLE && s->trace[core].state != TRACE_DONE) return true;
    return false;
}

/* Ends the run: memory goes now, even if tensors of it are still referenced. */
static void close_session(struct session *s)
{
    vtrn_chip_destroy(s->chip);
    s->chip = NULL;
    ext_where_fini(&s->where);
    vtrn_prog_destroy(s->prog);
    s->prog = NULL;
    s->stopped = true;
    for (int core = 0; core < VTRN_CORES_MAX; core++) free_trace(&s->trace[core]);
    PyMem_Free(s->shared);
    s->shared = NULL;
    s->shared_tensors = s->shared_capacity = 0;
    Py_CLEAR(s->owners);
}

static void session_dealloc(PyObject *self)
{
    struct session *s = (struct session *)self;

    close_session(s);
    ext_cores_fini(s);
    Py_CLEAR(s->print);
    Py_TYPE(self)->tp_free(self);
}

static int create_chip(struct session *s, const struct ext_run *run)
{
    struct vtrn_run_options options;
    struct vtrn_error err = { 0 };

    s->prog = vtrn_prog_create(s->arch, s->cores, &err);
    if (!s->prog) return ext_raise_status(err.status, &err, "session");
    ext_run_options(run, &options);
    options.print = print_text;
    options.print_self = options.progress_self = s;
    s->chip = vtrn_chip_create(s->prog, &options, &err);
    return s->chip ? 0 : ext_raise_status(err.status, &err, "session");
}

static PyObject *session_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "target", "threads", "seed", "stochastic_rounding", "mx_scale_v03", "cores", "record", "lazy", "print",
                             "name",   "grid",    NULL };
    const char *target, *name = "";
    int cores = 1, record = 0, lazy = 0, grid = 0;
    struct ext_run run = { 0 };
    PyObject *print = Py_None;
    struct session *s;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "s|$O&O&ppippOsp:Session", names, &target, ext_read_threads, &run.threads,
                                     ext_read_seed, &run, &run.stochastic_rounding, &run.mx_scale_v03, &cores, &record, &lazy, &print, &name, &grid))
        return NULL;
    if (!vtrn_arch_find(target))
        return EXT_NULL(ext_raise(ext_errors.value, "target", "%.60s: use trn1, inf2, trn2 or trn3", target));
    if (cores < 1 || cores > VTRN_CORES_MAX)
        return EXT_NULL(ext_raise(ext_errors.value, "kernel[lnc]", "lnc %d; a kernel runs on 1 or %d cores", cores, VTRN_CORES_MAX));
    s = (struct session *)type->tp_alloc(type, 0);
    if (!s) return NULL;
    s->arch = vtrn_arch_find(target);
    s->cores = cores;
    s->record = record || lazy;
    s->lazy = lazy;
    s->grid = grid;
    if (cores > s->arch->cores_per_chip) {
        ext_raise(ext_errors.value, "kernel[lnc]", "lnc %d; %s has %lld core a chip", cores, s->arch->chip,
                  (long long)s->arch->cores_per_chip);
        goto failed;
    }
    if (print != Py_None) s->print = Py_NewRef(print);
    for (int core = 0; core < cores; core++) s->trace[core] = (struct trace){ .session = s, .core = core };
    s->owners = PyList_New(0);
    if (!s->owners || ext_cores_init(s) < 0 || create_chip(s, &run) < 0) goto failed;
    if (vtrn_prog_string(s->prog, name, strlen(name), &s->prog->name) < 0) goto failed;
    return (PyObject *)s;

failed:
    Py_DECREF(s);
    return NULL;
}

/* ---------------------------------------------------------------- inputs and results */
/* input(name, shape, dtype, address, size_bytes, readonly, owner): the caller's bytes as a tensor in HBM. */
static PyObject *session_input(PyObject *self, PyObject *args)
{
    struct session *s = (struct session *)self;
    PyObject *name, *shape, *dtype, *owner, *tensor;
    unsigned long long address;
    bool shared = s->cores > 1;
    struct vtrn_tensor proto = { .space = shared ? VTRN_HBM_SHARED : VTRN_HBM,
                                 .role = VTRN_ROLE_INPUT,
                                 .core = shared ? VTRN_CORES_MAX : 0 };
    struct vtrn_error err = { 0 };
    enum vtrn_status status;
    Py_ssize_t size;
    int rank, type, readonly;

    if (!PyArg_ParseTuple(args, "UOOKnpO:input", &name, &shape, &dtype, &address, &size, &readonly, &owner)) return NULL;
    if (!s->prog) return EXT_NULL(ext_raise(ext_errors.error, "input", "the run has ended"));
    rank = ext_dims_read(shape, proto.dim, VTRN_TENSOR_RANK, ext_utf8(name));
    if (rank < 0 || (type = ext_dtype(dtype, ext_utf8(name))) < 0) return NULL;
    proto.rank = (uint8_t)rank;
    proto.dtype = (uint8_t)type;
    tensor = ext_declare(&s->trace[0], "argument", &proto, name);
    if (!tensor) return NULL;
    ((struct nki_tensor *)tensor)->storage->readonly = (uint8_t)readonly;
    status = vtrn_mem_bind(vtrn_chip_mem(s->chip), s->prog, ((struct nki_tensor *)tensor)->storage->tensor,
                           (void *)(uintptr_t)address, (size_t)size, &err);
    if (status < 0 || PyList_Append(s->owners, owner) < 0) {
        if (status < 0) ext_raise_status(status, &err, ext_utf8(name));
        Py_DECREF(tensor);
        return NULL;
    }
    return tensor;
}

/* Whether a kernel may return the tensor. */
static int check_result(const struct session *s, const struct nki_tensor *t)
{
    char text[400];

    ext_tensor_text(t, text, sizeof text);
    if (t->storage->session != s)
        return ext_raise(ext_errors.validation, "result", "%s belongs to another run: kernels cannot keep tensors between calls", text);
    if (ext_on_chip(t))
        return ext_raise(ext_errors.type, "result", "%s is on chip; copy it to a tensor in nl.shared_hbm and return that", text);
    if (t->ndyn > 0)
        return ext_raise(ext_errors.type, "result",
                         "%s is addressed by a register or by indices; copy it to a tensor in nl.shared_hbm and return that", text);
    return 0;
}

/* check_result(tensor): its number in the program's table; an error when a kernel may not return it. */
static PyObject *session_check_result(PyObject *self, PyObject *arg)
{
    if (!IS_TENSOR(arg)) return EXT_NULL(ext_raise(ext_errors.type, "result", "%.100s is not a tensor", Py_TYPE(arg)->tp_name));
    if (check_result((struct session *)self, (struct nki_tensor *)arg) < 0) return NULL;
    return PyLong_FromUnsignedLong(((struct nki_tensor *)arg)->storage->tensor);
}

/* pages(tensor): the bytes of a tensor that the kernel allocated in HBM, taken out of the run. */
static PyObject *session_pages(PyObject *self, PyObject *arg)
{
    struct session *s = (struct session *)self;
    const struct nki_tensor *t = (struct nki_tensor *)arg;
    struct vtrn_error err = { 0 };
    enum vtrn_status status;
    void *bytes;
    size_t size;

    if (!IS_TENSOR(arg) || t->storage->session != s || !s->prog)
        return EXT_NULL(ext_raise(ext_errors.error, "result", "not a tensor of this run"));
    status = vtrn_mem_take(vtrn_chip_mem(s->chip), s->prog, t->storage->core < VTRN_CORES_MAX ? t->storage->core : 0,
                           t->storage->tensor, &bytes, &size, &err);
    if (status < 0) return EXT_NULL(ext_raise_status(status, &err, "result"));
    return ext_pages_take(bytes, size);
}

/* program([(tensor, name), ...]): the recorded program with its outputs; ends the session. */
static PyObject *session_program(PyObject *self, PyObject *outputs)
{
    struct session *s = (struct session *)self;
    struct vtrn_prog *prog = s->prog;

    if (!prog || !s->record || !PyList_Check(outputs))
        return EXT_NULL(ext_raise(ext_errors.error, "program", "nothing was recorded"));
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(outputs); i++) {
        PyObject *tensor;
        struct vtrn_error err = { 0 };
        enum vtrn_status status;
        const char *name;

        if (!PyArg_ParseTuple(PyList_GET_ITEM(outputs, i), "Os", &tensor, &name)) return NULL;
        if (!IS_TENSOR(tensor)) return EXT_NULL(ext_raise(ext_errors.error, "program", "an output is not a tensor"));
        if (check_result(s, (struct nki_tensor *)tensor) < 0) return NULL;
        status = vtrn_prog_output(prog, ((struct nki_tensor *)tensor)->storage->tensor, name, strlen(name), &err);
        if (status < 0) return EXT_NULL(ext_raise_status(status, &err, "program"));
    }
    vtrn_chip_destroy(s->chip);
    s->chip = NULL;
    s->prog = NULL; /* the new owner destroys it */
    close_session(s);
    return ext_program_take(prog);
}

static PyObject *session_counters(PyObject *self, PyObject *ignored)
{
    struct session *s = (struct session *)self;
    struct vtrn_counters c;
    PyObject *dict = PyDict_New();

    (void)ignored;
    if (!dict || !s->chip) return dict;
    vtrn_chip_counters(s->chip, &c);
#define COUNTER(name, doc) \
    { \
        PyObject *value = PyLong_FromUnsignedLongLong(c.name); \
        if (!value || PyDict_SetItemString(dict, #name, value) < 0) Py_CLEAR(dict); \
        Py_XDECREF(value); \
        if (!dict) return NULL; \
    }
    VTRN_COUNTERS(COUNTER)
#undef COUNTER
    return dict;
}

static PyObject *session_close(PyObject *self, PyObject *ignored)
{
    struct session *s = (struct session *)self;

    (void)ignored;
    if (is_traced(s)) s->stopped = true; /* the other core's thread is in it (Ctrl-C came twice): the last reference closes it */
    else close_session(s);
    Py_RETURN_NONE;
}

static PyMethodDef session_methods[] = {
    { "input", session_input, METH_VARARGS, "input(name, shape, dtype, address, size_bytes, readonly, owner) -> NkiTensor" },
    { "trace", session_trace, METH_VARARGS, "trace(core, callable): runs the kernel's Python for one core; its result" },
    { "finish", session_finish, METH_NOARGS, "runs everything to the end" },
    { "check_result", session_check_result, METH_O, "check_result(tensor): its number; an error when a kernel may not return it" },
    { "pages", session_pages, METH_O, "pages(tensor): takes the bytes of an HBM tensor out of the run" },
    { "program", session_program, METH_O, "program([(tensor, name)]): the recorded program; ends the session" },
    { "counters", session_counters, METH_NOARGS, "what the run did, by counter" },
    { "close", session_close, METH_NOARGS, "ends the run and gives its memory back" },
    { 0 },
};

PyTypeObject session_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "vtrn._vtrn.Session",
    .tp_doc = "One run of a kernel on a virtual chip.",
    .tp_basicsize = sizeof(struct session),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = session_new,
    .tp_dealloc = session_dealloc,
    .tp_methods = session_methods,
};
