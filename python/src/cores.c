/* Two cores, one at a time: each core's kernel runs in its own Python thread, and a lock per core says whose turn it is to
 * trace. A core traces until it has a batch, or ends, or needs a value that waits for the other; then the other traces. When
 * both have a batch, the chip runs both at once. So Python code of a kernel needs no locks, and a run without races between
 * the cores is deterministic. */
#include "ext.h"

int ext_cores_init(struct session *s)
{
    if (s->cores == 1) return 0;
    for (int core = 0; core < s->cores; core++) {
        s->turn[core] = PyThread_allocate_lock();
        if (!s->turn[core]) {
            PyErr_NoMemory();
            return -1;
        }
        if (core > 0) PyThread_acquire_lock(s->turn[core], WAIT_LOCK);
    }
    return 0;
}

void ext_cores_fini(struct session *s)
{
    for (int core = 0; core < VTRN_CORES_MAX; core++)
        if (s->turn[core]) PyThread_free_lock(s->turn[core]);
}

static int wait_for_turn(struct session *s, int core)
{
    for (;;) {
        PyLockStatus got;

        Py_BEGIN_ALLOW_THREADS got = PyThread_acquire_lock_timed(s->turn[core], 100000, 1);
        Py_END_ALLOW_THREADS if (got == PY_LOCK_ACQUIRED) return 0;
        if (PyErr_CheckSignals() < 0) return -1;
    }
}

int ext_cores_switch(struct trace *t, enum trace_state state)
{
    struct session *s = t->session;

    t->state = state;
    PyThread_release_lock(s->turn[1 - t->core]);
    if (wait_for_turn(s, t->core) < 0) {
        s->stopped = true;
        return -1;
    }
    t->state = TRACE_RUNNING;
    ext_current = t;
    if (s->stopped) return ext_raise(ext_errors.error, NULL, "the other core's kernel failed");
    return 0;
}

static void leave(struct trace *t, bool failed)
{
    struct session *s = t->session;

    ext_current = NULL;
    t->state = TRACE_DONE;
    s->done |= 1u << t->core;
    if (failed) s->stopped = true;
    if (s->cores > 1) PyThread_release_lock(s->turn[1 - t->core]);
}

/* trace(core, callable) */
PyObject *session_trace(PyObject *self, PyObject *args)
{
    struct session *s = (struct session *)self;
    PyObject *kernel, *result;
    struct trace *t;
    int core;

    if (!PyArg_ParseTuple(args, "iO:trace", &core, &kernel)) return NULL;
    if (ext_current)
        return EXT_NULL(ext_raise(ext_errors.error, "vtrn.run, trace or profile",
                                  "a kernel runs already: call the other kernel in it directly, that inlines it"));
    if (core < 0 || core >= s->cores || s->trace[core].state != TRACE_IDLE)
        return EXT_NULL(ext_raise(ext_errors.error, "trace", "core %d cannot be traced now", core));
    t = &s->trace[core];
    if (s->cores > 1 && wait_for_turn(s, core) < 0) return NULL;
    if (s->stopped) {
        leave(t, true);
        return EXT_NULL(ext_raise(ext_errors.error, NULL, "the other core's kernel failed"));
    }
    t->state = TRACE_RUNNING;
    ext_current = t;
    result = PyObject_CallNoArgs(kernel);
    if (result && t->open_loops) {
        Py_CLEAR(result);
        ext_raise(ext_errors.validation, "trace", "the kernel ended inside a device loop");
    }
    leave(t, result == NULL);
    return result;
}

PyObject *session_finish(PyObject *self, PyObject *ignored)
{
    struct session *s = (struct session *)self;

    (void)ignored;
    if (!s->chip || s->stopped) return EXT_NULL(ext_raise(ext_errors.error, "finish", "the run has stopped"));
    if (!s->lazy && ext_run_chip(s, (1u << s->cores) - 1) < 0) return NULL;
    Py_RETURN_NONE;
}
