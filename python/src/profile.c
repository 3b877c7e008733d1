/* Timings in Python: time/'s result as plain dicts and lists, and the steps as one block of bytes. */
#include "ext.h"

#include "time/time.h"

/* Sets dict[key] = value and lets go of the value. */
static int put(PyObject *dict, const char *key, PyObject *value)
{
    int status = value ? PyDict_SetItemString(dict, key, value) : -1;

    Py_XDECREF(value);
    return status;
}

static PyObject *number(uint64_t value) { return PyLong_FromUnsignedLongLong(value); }

/* {name: ps} of those that are not 0. */
static PyObject *shares(const uint64_t *ps, int count, const char *(*name)(int))
{
    PyObject *dict = PyDict_New();

    for (int i = 0; dict && i < count; i++)
        if (ps[i] && put(dict, name(i), number(ps[i])) < 0) Py_CLEAR(dict);
    return dict;
}

static int append(PyObject *list, PyObject *row)
{
    int status = row ? PyList_Append(list, row) : -1;

    Py_XDECREF(row);
    return status;
}

static PyObject *streams_of(const struct vtrn_time *time)
{
    PyObject *list = PyList_New(0);

    for (int c = 0; list && c < time->prog->cores; c++)
        for (int s = 0; list && s < VTRN_STREAMS; s++) {
            const struct vtrn_time_stream *stream = &time->stream[c][s];

            if (stream->steps && append(list, Py_BuildValue("{s:i,s:s,s:K,s:K,s:K,s:K,s:K,s:N,s:N}", "core", c, "stream", vtrn_stream_name(s),
                                                            "steps", stream->steps, "busy_ps", stream->busy_ps, "idle_ps", stream->idle_ps,
                                                            "work", stream->work, "active_ps", stream->active_ps, "wait_for_ps",
                                                            shares(stream->wait_ps, VTRN_STREAMS, vtrn_stream_name), "wait_why_ps",
                                                            shares(stream->reason_ps, VTRN_TIME_WAITS, vtrn_time_wait_name))) < 0)
                Py_CLEAR(list);
        }
    return list;
}

static PyObject *resources_of(const struct vtrn_time *time)
{
    PyObject *list = PyList_New(0);

    for (int c = 0; list && c < time->prog->cores; c++)
        for (int r = 0; list && r < VTRN_RESOURCES; r++) {
            const struct vtrn_time_resource *resource = &time->resource[c][r];

            if (append(list, Py_BuildValue("{s:i,s:s,s:K,s:K,s:K}", "core", c, "resource", vtrn_resource_name(r), "busy_ps",
                                           resource->busy_ps, "waited_ps", resource->waited_ps, "steps", resource->steps)) < 0)
                Py_CLEAR(list);
        }
    return list;
}

static PyObject *memories_of(const struct vtrn_time *time)
{
    PyObject *list = PyList_New(0);

    for (int c = 0; list && c < time->prog->cores; c++) {
        const struct vtrn_time_bytes *bytes = &time->bytes[c];

        for (int m = 0; list && m < VTRN_PLACE_SPACES; m++) {
            const struct vtrn_place_use *use = &time->place->use[c][m];
            bool psum = m == VTRN_PLACE_PSUM;

            if (append(list, Py_BuildValue("{s:i,s:s,s:K,s:K,s:L,s:L,s:I,s:I,s:L}", "core", c, "memory", psum ? "psum" : "sbuf", "read_bytes",
                                           psum ? bytes->psum_read : bytes->sbuf_read, "write_bytes",
                                           psum ? bytes->psum_write : bytes->sbuf_write, "peak_bytes", (long long)use->peak_bytes,
                                           "limit_bytes", (long long)use->limit_bytes, "peak_at", use->peak_at, "spilled", use->spilled,
                                           "spilled_bytes", (long long)use->spilled_bytes)) < 0)
                Py_CLEAR(list);
        }
        if (list && append(list, Py_BuildValue("{s:i,s:s,s:K,s:K,s:K,s:K}", "core", c, "memory", "hbm", "read_bytes", bytes->hbm_read,
                                               "write_bytes", bytes->hbm_write, "dma_bytes", bytes->dma, "dma_packets", bytes->packets)) < 0)
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *lines_of(const struct vtrn_time *time)
{
    PyObject *list = PyList_New(0);

    for (uint32_t i = 0; list && i < time->lines; i++) {
        const struct vtrn_time_line *line = &time->line[i];
        const struct vtrn_loc *loc = &time->prog->loc[line->loc];

        if (append(list, Py_BuildValue("{s:s,s:I,s:I,s:K,s:K,s:K,s:N,s:N}", "file", vtrn_prog_text(time->prog, loc->file), "line", loc->line,
                                       "steps", line->steps, "critical_ps", line->critical_ps, "wait_ps", line->wait_ps, "hbm_bytes",
                                       line->hbm_bytes, "busy_ps", shares(line->busy_ps, VTRN_STREAMS, vtrn_stream_name), "wait_why_ps",
                                       shares(line->reason_ps, VTRN_TIME_WAITS, vtrn_time_wait_name))) < 0)
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *result_of(const struct vtrn_time *time)
{
    struct vtrn_error full = { 0 };
    bool fits = vtrn_place_check(time->place, &full) >= 0;
    PyObject *dict = Py_BuildValue("{s:s,s:s,s:K,s:K,s:K,s:K,s:s,s:K,s:s}", "level", vtrn_time_level_name(time->level), "target",
                                   time->arch->chip, "total_ps", time->total_ps, "span_ps", time->span_ps, "kernel_ps", time->kernel_ps,
                                   "count_ps", time->count_ps, "count_by", time->count_by ? time->count_by : "", "assumed_ps",
                                   time->assumed_ps, "does_not_fit", fits ? "" : full.text);

    if (!dict) return NULL;
    if (put(dict, "streams", streams_of(time)) < 0 || put(dict, "resources", resources_of(time)) < 0 ||
        put(dict, "memories", memories_of(time)) < 0 || put(dict, "lines", lines_of(time)) < 0 ||
        put(dict, "steps", PyBytes_FromStringAndSize((const char *)time->step, time->step ? (Py_ssize_t)(time->steps * sizeof *time->step) : 0)) < 0 ||
        put(dict, "path", PyBytes_FromStringAndSize((const char *)time->path, time->path ? (Py_ssize_t)(time->paths * sizeof *time->path) : 0)) < 0)
        Py_CLEAR(dict);
    return dict;
}

PyObject *ext_profile(const struct vtrn_prog *prog, const struct vtrn_trace *trace, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "level", "target", "static_dma", NULL };
    const char *level = NULL, *target = NULL;
    struct vtrn_time_options options;
    struct vtrn_error err = { 0 };
    struct vtrn_time *time = NULL;
    PyThreadState *thread;
    enum vtrn_status status;
    PyObject *result;
    int static_dma = 0;

    vtrn_time_options_init(&options);
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$zzp:time", names, &level, &target, &static_dma)) return NULL;
    options.trace = trace;
    options.static_dma = static_dma != 0;
    if (level && !vtrn_time_level_find(level, &options.level))
        return PyErr_Format(PyExc_ValueError, "level %s; there are count, rule and event", level);
    options.arch = target ? vtrn_arch_find(target) : NULL;
    if (target && !options.arch) return PyErr_Format(PyExc_ValueError, "no target is called %s", target);
    thread = PyEval_SaveThread();
    status = vtrn_time_run(prog, &options, &time, &err);
    PyEval_RestoreThread(thread);
    if (status < 0) return EXT_NULL(ext_raise_status(status, &err, NULL));
    result = result_of(time);
    vtrn_time_destroy(time);
    return result;
}
