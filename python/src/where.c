/* The kernel's source line, and errors in terms of it. The line that counts is the innermost Python line outside the vtrn
 * package, so that an instruction appended by a helper of nki.language is charged to the kernel.
 *
 * A call site is a code object and an instruction offset in it; the cache maps it to the program's location, so that a
 * warm lookup is one probe. Entries own their code objects: an address can not come back as another function. */
#include "ext.h"

enum { WHERE_START = 64 };
#define WHERE_INTERNAL UINT32_MAX

static char package_dir[4096]; /* set once at import, with the trailing separator */
struct ext_errors ext_errors;

PyObject *ext_set_package(PyObject *module, PyObject *path)
{
    Py_ssize_t length;
    const char *text = PyUnicode_AsUTF8AndSize(path, &length);

    (void)module;
    if (!text) return NULL;
    if ((size_t)length >= sizeof package_dir) return PyErr_Format(PyExc_ValueError, "path too long");
    memcpy(package_dir, text, (size_t)length + 1);
    Py_RETURN_NONE;
}

#if PY_VERSION_HEX < 0x030b0000
#include <frameobject.h>
static int PyFrame_GetLasti(PyFrameObject *frame) { return frame->f_lasti * 2; } /* 3.10 counts instructions, not bytes */
#endif

static bool is_internal(const PyCodeObject *code)
{
    Py_ssize_t length;
    const char *file = PyUnicode_AsUTF8AndSize(code->co_filename, &length);

    if (!file) {
        PyErr_Clear();
        return false;
    }
    if (strncmp(file, "<frozen importlib", 17) == 0) return true;
    return package_dir[0] && strncmp(file, package_dir, strlen(package_dir)) == 0;
}

/* ---------------------------------------------------------------- the cache */
static size_t slot_of(const struct where_cache *cache, const PyCodeObject *code, int lasti)
{
    size_t hash = ((uintptr_t)code >> 4) * UINT64_C(0x9e3779b97f4a7c15) ^ (size_t)(unsigned)lasti * 0x85ebca6bu;

    return (hash ^ hash >> 29) & (cache->size - 1);
}

static struct where_slot *find_slot(const struct where_cache *cache, const PyCodeObject *code, int lasti)
{
    size_t at = slot_of(cache, code, lasti);

    while (cache->slot[at].code && (cache->slot[at].code != code || cache->slot[at].lasti != lasti))
        at = (at + 1) & (cache->size - 1);
    return &cache->slot[at];
}

static bool grow_cache(struct where_cache *cache)
{
    struct where_cache bigger = { .size = cache->size ? cache->size * 2 : WHERE_START, .used = cache->used };

    bigger.slot = calloc(bigger.size, sizeof *bigger.slot);
    if (!bigger.slot) return false;
    for (size_t i = 0; i < cache->size; i++)
        if (cache->slot[i].code) *find_slot(&bigger, cache->slot[i].code, cache->slot[i].lasti) = cache->slot[i];
    free(cache->slot);
    *cache = bigger;
    return true;
}

void ext_where_fini(struct where_cache *cache)
{
    for (size_t i = 0; i < cache->size; i++) Py_XDECREF(cache->slot[i].code);
    free(cache->slot);
    *cache = (struct where_cache){ 0 };
}

static uint32_t new_location(struct vtrn_prog *prog, PyCodeObject *code, int line)
{
    Py_ssize_t length;
    const char *file = PyUnicode_AsUTF8AndSize(code->co_filename, &length);
    uint32_t string, loc;

    if (!file) {
        PyErr_Clear();
        return 0;
    }
    if (vtrn_prog_string(prog, file, (size_t)length, &string) < 0) return 0;
    if (vtrn_prog_loc(prog, string, line > 0 ? (uint32_t)line : 0, &loc) < 0) return 0;
    return loc;
}

/* Location of one frame: its number, or WHERE_INTERNAL. */
static uint32_t frame_location(struct session *s, PyFrameObject *frame)
{
    struct where_cache *cache = &s->where;
    PyCodeObject *code = PyFrame_GetCode(frame);
    int lasti = PyFrame_GetLasti(frame);
    struct where_slot *slot;
    uint32_t loc;

    if (VTRN_LIKELY(cache->size != 0)) {
        slot = find_slot(cache, code, lasti);
        if (VTRN_LIKELY(slot->code != NULL)) {
            Py_DECREF(code); /* the frame holds it */
            return slot->loc;
        }
    }
    loc = is_internal(code) ? WHERE_INTERNAL : new_location(s->prog, code, PyFrame_GetLineNumber(frame));
    if (cache->used * 2 < cache->size || grow_cache(cache)) {
        *find_slot(cache, code, lasti) = (struct where_slot){ code, lasti, loc }; /* takes the reference */
        cache->used++;
    } else {
        Py_DECREF(code);
    }
    return loc;
}

uint32_t ext_where(struct session *s)
{
    PyFrameObject *frame = PyEval_GetFrame();
    uint32_t loc;

    if (!frame) return 0;
    loc = frame_location(s, frame);
    if (VTRN_LIKELY(loc != WHERE_INTERNAL)) return loc;
    Py_INCREF(frame);
    while (loc == WHERE_INTERNAL) {
        PyFrameObject *caller = PyFrame_GetBack(frame);

        Py_DECREF(frame);
        if (!caller) return 0;
        frame = caller;
        loc = frame_location(s, frame);
    }
    Py_DECREF(frame);
    return loc;
}

/* ---------------------------------------------------------------- errors */
/* "kernel.py:41 " of the line that runs now, or "". */
static void current_line(char *out, size_t size)
{
    PyFrameObject *frame = PyEval_GetFrame();

    out[0] = '\0';
    Py_XINCREF(frame);
    while (frame) {
        PyCodeObject *code = PyFrame_GetCode(frame);
        PyFrameObject *caller;

        if (!is_internal(code)) {
            const char *file = PyUnicode_AsUTF8(code->co_filename), *slash = file ? strrchr(file, '/') : NULL;

            if (file) snprintf(out, size, "%s:%d ", slash ? slash + 1 : file, PyFrame_GetLineNumber(frame));
            else PyErr_Clear();
            Py_DECREF(code);
            Py_DECREF(frame);
            return;
        }
        Py_DECREF(code);
        caller = PyFrame_GetBack(frame);
        Py_DECREF(frame);
        frame = caller;
    }
}

/* Messages may be cut in the middle of a character or name files in any encoding. */
static void set_message(PyObject *type, const char *text)
{
    PyObject *message = PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");

    if (!message) return;
    PyErr_SetObject(type, message);
    Py_DECREF(message);
}

int ext_raise(PyObject *type, const char *what, const char *fmt, ...)
{
    char line[512], text[1200], all[1800];
    va_list args;

    if (PyErr_Occurred()) return -1; /* the first one counts */
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    current_line(line, sizeof line);
    snprintf(all, sizeof all, "%s%s%s%s", line, what ? what : "", what ? ": " : "", text);
    set_message(type, all);
    return -1;
}

const char *ext_utf8(PyObject *text)
{
    const char *utf8 = PyUnicode_AsUTF8(text);

    if (utf8) return utf8;
    PyErr_Clear();
    return "?";
}

static PyObject *type_of_status(enum vtrn_status status)
{
    switch (status) {
    case VTRN_NOMEM: return PyExc_MemoryError;
    case VTRN_IO: return PyExc_OSError;
    case VTRN_INTERRUPTED: return PyExc_KeyboardInterrupt;
    case VTRN_FORMAT: return ext_errors.value;
    case VTRN_UNSUPPORTED: return ext_errors.unsupported;
    case VTRN_FAULT: return ext_errors.fault;
    case VTRN_DEADLOCK: return ext_errors.deadlock;
    default: return ext_errors.validation;
    }
}

int ext_raise_status(enum vtrn_status status, const struct vtrn_error *err, const char *what)
{
    if (PyErr_Occurred()) return -1; /* a callback raised: that is the cause */
    if (!what) set_message(type_of_status(status), err->text);
    else ext_raise(type_of_status(status), what, "%s", err->text);
    return -1;
}

static PyObject *new_error(PyObject *module, const char *name, const char *doc, PyObject *base, PyObject *second)
{
    char full[96];
    PyObject *bases = second ? PyTuple_Pack(2, base, second) : PyTuple_Pack(1, base), *type;

    if (!bases) return NULL;
    snprintf(full, sizeof full, "vtrn.%s", name);
    type = PyErr_NewExceptionWithDoc(full, doc, bases, NULL);
    Py_DECREF(bases);
    if (type && PyModule_AddObjectRef(module, name, type) < 0) Py_CLEAR(type);
    return type;
}

int ext_add_errors(PyObject *module)
{
    struct ext_errors *e = &ext_errors;

    return (e->error = new_error(module, "VtrnError", "A run could not be made or went wrong.", PyExc_RuntimeError, NULL)) &&
                   (e->fault = new_error(module, "Fault", "The virtual chip faulted while it ran the kernel.", e->error, NULL)) &&
                   (e->deadlock = new_error(module, "Deadlock", "Every core waits and none can go on.", e->fault, NULL)) &&
                   (e->validation = new_error(module, "NkiValidationError", "A call breaks a rule of NKI or of the target.",
                                              PyExc_Exception, NULL)) &&
                   (e->type = new_error(module, "NkiTypeError", "An argument has the wrong type.", e->validation, PyExc_TypeError)) &&
                   (e->value = new_error(module, "NkiValueError", "An argument has a wrong value.", e->validation, PyExc_ValueError)) &&
                   (e->index = new_error(module, "NkiIndexError", "An index leaves its tensor.", e->validation, PyExc_IndexError)) &&
                   (e->unsupported = new_error(module, "NkiUnsupported", "NKI or the hardware can do it, vtrn cannot.",
                                               e->validation, PyExc_NotImplementedError))
               ? 0
               : -1;
}
