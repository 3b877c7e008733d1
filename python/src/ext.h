/* The CPython extension vtrn._vtrn: the thin front end. Kernels run as ordinary Python; the types here turn their slices
 * and nisa calls into instructions of a program and run it on a chip. Everything that computes or decides is in the C
 * library below; this folder converts objects, keeps lifetimes and reports errors in terms of the kernel's lines.
 *
 *   session.c   a run: program + chip, append, flush   declare.c  tensors   cores.c  who traces when (one or two cores)
 *   tensor.c    NkiTensor and its storage     index.c views.c pattern.c   the views of a tensor
 *   operand.c   a view as an access pattern   value.c  Python values as operands   nisa.c compat.c  the nisa functions
 *   op.c        nl.add, nl.exp, ... as values register.c  VirtualRegister         program.c  recorded programs
 *   affine.c boxes.c tile.c  index expressions, masks and tiles of the old namespace (affine.h)
 *   where.c     the kernel's line, errors     module.c the module
 *
 * Everything runs with the GIL held except the execution itself (session.c, run_chip). Static objects below are filled in
 * once at import and constant after; the only other static is the thread's current trace. */
#ifndef VTRN_EXT_H
#define VTRN_EXT_H
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "chip/chip.h"

enum { EXT_RANK = VTRN_TENSOR_RANK };
_Static_assert((int)EXT_RANK <= (int)VTRN_AP_DIMS, "a view must fit in an access pattern");

/* ---------------------------------------------------------------- a run */
enum { EXT_SPARES = 128 };
enum trace_state {
    TRACE_IDLE,
    TRACE_RUNNING,
    TRACE_YIELDED, /* far ahead of the other core: can go on when it must */
    TRACE_WAITING, /* needs a value that the other core must help to make */
    TRACE_DONE
};
struct session;
struct trace { /* one core's view of a session */
    struct session *session;
    int core;
    enum trace_state state;
    int open_loops;        /* device loops being traced: nothing can run before they end */
    uint32_t loop_serial;  /* tells one loop body from the next */
    uint32_t pending;      /* instructions appended since the last flush */
    int64_t pending_bytes; /* on-chip bytes declared since the last flush */
    uint32_t serial;       /* instructions appended in all */
    uint32_t forgotten;    /* of them no longer in the program */
    uint32_t *released;    /* tensors that Python dropped, released when the pending instructions have run */
    uint32_t releases, release_capacity;
    uint32_t spare[EXT_SPARES]; /* some released tensors, to be declared again: kernels make the same tiles again and again */
    uint32_t spares, next_spare;
    uint32_t *free_register; /* numbers that can be used again */
    uint32_t free_registers, free_register_capacity;
    struct vtrn_inst inst; /* the one being built */
};
struct where_slot {
    PyCodeObject *code; /* owned */
    int lasti;
    uint32_t loc; /* WHERE_INTERNAL: inside the vtrn package, look at the caller */
};
struct where_cache {
    struct where_slot *slot;
    size_t size, used; /* size: a power of two */
};
struct session { /* vtrn._vtrn.Session */
    PyObject_HEAD const struct vtrn_arch *arch;
    struct vtrn_prog *prog; /* NULL after close */
    struct vtrn_chip *chip;
    int cores;
    bool record;   /* the program is kept */
    bool lazy;     /* nothing runs before a value is looked at */
    bool grid;     /* launched as kernel[lnc]: the grid has a dimension */
    bool stopped;  /* a fault or an error in a kernel ended the run */
    unsigned done; /* bit c: core c's kernel has returned */
    struct trace trace[VTRN_CORES_MAX];
    struct where_cache where;
    PyObject *owners; /* list: what owns the memory of the inputs */
    struct shared_tensor {
        uint32_t tensor;
        unsigned claimed; /* bit c: core c has declared it */
    } * shared;           /* HBM that both cores declare: the n-th of a name is one tensor */
    uint32_t shared_tensors, shared_capacity;
    PyThread_type_lock turn[VTRN_CORES_MAX]; /* held while it is not the core's turn to trace */
    PyObject *print;                         /* called with each device_print's text; NULL: sys.stdout */
};
struct ext_run {    /* options of a run as Python gives them */
    int threads;    /* 0: all */
    uint64_t seed;
    bool has_seed; /* else the chip's default */
    int stochastic_rounding, mx_scale_v03;
};
void ext_run_options(const struct ext_run *run, struct vtrn_run_options *options);
int ext_read_threads(PyObject *obj, void *threads_out); /* converters for PyArg_Parse: 1, or 0 with an error */
int ext_read_seed(PyObject *obj, void *run);
extern PyTypeObject session_type;
extern PyMethodDef ext_declare_functions[];
int ext_declare_init(void);

/* The thread's trace; NULL outside a kernel. */
extern _Thread_local struct trace *ext_current;
extern struct vtrn_page_cache *ext_page_cache; /* memory between runs, results included */
/* The same, or NULL with an error set that names `what` ("nl.ndarray"). */
struct trace *ext_trace(const char *what);
/* Appends t->inst after filling in its location. *serial_out (may be NULL): its number. -1: Python error. */
int ext_append(struct trace *t, uint32_t *serial_out);
/* Takes back the instructions from number `serial` on. False: some have run already. */
bool ext_undo(struct trace *t, uint32_t serial);
/* Starts t->inst as `op`. */
struct vtrn_inst *ext_begin(struct trace *t, enum vtrn_opcode op);
/* Runs everything that core has appended; waits for the other core when it must. `why` explains the need in errors. */
int ext_sync(struct trace *t, const char *why);
/* Runs what can run. */
int ext_flush(struct trace *t);
int ext_run_chip(struct session *s, unsigned closed);
bool ext_caught_up(const struct trace *t); /* everything the core has appended has run */
/* Declares a tensor. name NULL: none; data: of a constant. */
PyObject *ext_declare(struct trace *t, const char *what, struct vtrn_tensor *proto, PyObject *name);
void ext_release_register(struct trace *t, uint32_t reg, uint32_t loop_serial);
int ext_new_register(struct trace *t, uint32_t *reg_out);

/* cores.c */
int ext_cores_init(struct session *s);
void ext_cores_fini(struct session *s);
/* Lets the other core trace until it ends or waits itself; back when it is this core's turn again. */
int ext_cores_switch(struct trace *t, enum trace_state state);
PyObject *session_trace(PyObject *self, PyObject *args);
PyObject *session_finish(PyObject *self, PyObject *ignored);

/* ---------------------------------------------------------------- tensors */
struct storage { /* one declaration of the tensor table; shared by its views */
    size_t refs;
    struct session *session; /* owned */
    PyObject *name;          /* str */
    uint32_t tensor;
    uint8_t space, dtype, core, has_address, is_input, readonly, written;
    int64_t row_bytes; /* bytes per partition; HBM: all bytes */
    int64_t row_elems; /* on chip: elements of the storage's dtype per partition; HBM: 0 */
};
struct tensor_dyn {       /* a part of the address that is known when the instruction runs */
    uint8_t kind;         /* enum vtrn_dyn_kind */
    PyObject *index;      /* owned: VirtualRegister (REG) or NkiTensor */
    int64_t scale, limit; /* elements of the view's dtype per index step; legal indices are below limit, 0: not limited */
};
enum { TENSOR_DYNS = 2 };
struct nki_tensor { /* a view: element (i, j, ...) is storage[offset + i*stride[0] + j*stride[1] + ...], in elements of
                     * dtype; on chip the storage is linear over partition * row + element of the partition */
    PyObject_HEAD struct storage *storage;
    int64_t shape[EXT_RANK], stride[EXT_RANK], offset;
    struct tensor_dyn *dyn; /* TENSOR_DYNS entries of which ndyn are used; NULL when ndyn is 0 */
    uint8_t ndim, dtype, ndyn;
    uint8_t is_truth; /* made by a comparison: bool() means "all true" */
};
extern PyTypeObject nki_tensor_type;
#define IS_TENSOR(o) (Py_TYPE(o) == &nki_tensor_type)

struct nki_tensor *ext_tensor_alloc(void);                  /* everything unset */
struct nki_tensor *ext_view_of(const struct nki_tensor *t); /* a copy of t to be changed */
int ext_view_add_dyn(struct nki_tensor *v, int kind, PyObject *index, int64_t scale, int64_t limit);
bool ext_view_has_vector(const struct nki_tensor *t); /* dim 0 is addressed by a vector of indices */
struct storage *ext_storage_new(struct session *s, const struct vtrn_tensor *proto, uint32_t tensor, PyObject *name);
void ext_storage_unref(struct storage *storage);
PyObject *ext_tensor_of_storage(struct storage *storage, const int64_t *shape, int ndim, int dtype); /* takes the reference */
PyObject *ext_dims_tuple(const int64_t *dims, int n);
/* Reads ints from a tuple or list. -1 with an error naming `what`. */
int ext_dims_read(PyObject *obj, int64_t *dims, int max, const char *what);
/* An integer of any kind; `name` says which one it is ("step"). -1 with an error naming `what`. */
int ext_integer(PyObject *obj, const char *what, const char *name, int64_t *value_out);
int ext_dim_number(const struct nki_tensor *t, PyObject *obj, const char *what, int *dim_out); /* negative: from the end */
bool ext_on_chip(const struct nki_tensor *t);
char *ext_tensor_text(const struct nki_tensor *t, char *out, size_t size); /* "x (128, 512) bfloat16 sbuf" */
int64_t ext_tensor_elems(const struct nki_tensor *t);

/* index.c, views.c, pattern.c */
struct nki_ds {
    PyObject_HEAD PyObject *start; /* int or VirtualRegister */
    int64_t size;
};
extern PyTypeObject nki_ds_type;
PyObject *ext_ds(PyObject *module, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames);
PyObject *ext_tensor_getitem(PyObject *self, PyObject *key);
extern PyMethodDef ext_view_methods[], ext_pattern_methods[];
/* Same bytes as another dtype; last dim rescaled. */
PyObject *ext_view_as(const struct nki_tensor *t, int dtype, const char *what);

/* ---------------------------------------------------------------- operands (operand.c, value.c) */
/* The view as an access pattern whose dynamic parts live in `inst`. -1 with an error naming `what`. */
int ext_operand(struct trace *t, struct vtrn_inst *inst, const struct nki_tensor *tensor, struct vtrn_ap *ap, const char *what);
/* Converts `obj` to the value of operand `info`. `op` names the function in errors. */
int ext_value(struct trace *t, const char *op, const struct vtrn_operand_info *info, PyObject *obj, struct vtrn_value *value);
int ext_engine(struct trace *t, const char *op, PyObject *obj, uint8_t *engine_out);
/* Value of an enum member, its name or its number. */
int ext_enum_value(const char *op, const char *operand, int set, PyObject *obj, int64_t *value_out);
bool ext_is_enum_of(int set, PyObject *obj);
PyObject *ext_register_enum(PyObject *module, PyObject *args);
int ext_buffer(PyObject *obj, const char *what, int *space_out); /* nl.sbuf, ... */
PyObject *ext_buffer_object(int space);                          /* borrowed */
PyObject *ext_register_buffers(PyObject *module, PyObject *args);
/* nl.float32, "float32", a NumPy / ml_dtypes / torch dtype. -1 with an error naming `what`. */
int ext_dtype(PyObject *obj, const char *what);
PyObject *ext_dtype_object(int dtype); /* borrowed: the interned name */

/* ---------------------------------------------------------------- nisa functions, operators, registers */
extern PyTypeObject nisa_function_type, nki_instruction_type;
int ext_add_nisa_functions(PyObject *module);
/* compat.c: rewrites a call in a form of NKI 0.2 - 0.5 to today's. `slot` holds the arguments in operand order (borrowed). */
struct nisa_call {
    enum vtrn_opcode op;
    const char *name;
    PyObject *slot[VTRN_MAX_OPERANDS];
    PyObject *made; /* owned objects that slots point to: a list, or NULL */
};
/* An argument that is no operand. 1: accepted, 0: unknown, -1: error. */
int ext_compat_keyword(struct nisa_call *call, const char *keyword, PyObject *value);
/* Positional arguments before they are assigned to slots: may move them. `given`: number of positional arguments. */
int ext_compat_positional(struct nisa_call *call, PyObject *const *args, int given);
int ext_compat_finish(struct nisa_call *call);

struct nki_op { /* nl.add, nl.exp, ...: a value for op= and a function on tiles */
    PyObject_HEAD vectorcallfunc vectorcall;
    PyObject *name;
    uint8_t alu, act, cmp;
    PyObject *function; /* what calling it does; set at import of nki.language */
};
extern PyTypeObject nki_op_type;
int ext_add_ops(PyObject *module);
/* Operator named by an nl.* object, a string or a NumPy ufunc; VTRN_ALU_NONE / VTRN_ACT_NONE: not one. */
int ext_alu_of(PyObject *obj);
int ext_act_of(PyObject *obj);

struct nki_register {
    PyObject_HEAD struct session *session; /* owned; NULL: known, value holds it */
    int core;
    uint32_t number, loop_serial;
    int32_t value;
    bool known, frozen;
};
extern PyTypeObject nki_register_type;
#define IS_REGISTER(o) (Py_TYPE(o) == &nki_register_type)
/* The register as an operand value: V_REG, or V_INT when its value is known. */
int ext_register_value(struct trace *t, PyObject *reg, const char *what, struct vtrn_value *value);
extern PyMethodDef ext_register_functions[];

/* ---------------------------------------------------------------- recorded programs */
extern PyTypeObject program_type, pages_type;
/* time(level=, target=, static_dma=) of a program: profile.c. `trace` NULL: it was not run. */
PyObject *ext_profile(const struct vtrn_prog *prog, const struct vtrn_trace *trace, PyObject *args, PyObject *kwargs);
PyObject *ext_program_take(struct vtrn_prog *prog);
PyObject *ext_pages_take(void *bytes, size_t size); /* owns pages from vtrn_mem_take */

/* ---------------------------------------------------------------- where.c: the kernel's line; errors */
struct ext_errors {
    PyObject *validation, *type, *value, *index, *unsupported, *fault, *deadlock, *error;
};
extern struct ext_errors ext_errors;
int ext_add_errors(PyObject *module);
PyObject *ext_set_package(PyObject *module, PyObject *path);
/* Index in the program's location table of the innermost Python line outside the package. */
uint32_t ext_where(struct session *s);
void ext_where_fini(struct where_cache *cache);
/* Raises `type` with "kernel.py:41 what: message". Always returns -1. */
int ext_raise(PyObject *type, const char *what, const char *fmt, ...) VTRN_PRINTF(3, 4);
#define EXT_NULL(call) ((void)(call), (PyObject *)NULL)
/* The text of a str in UTF-8; "?" where it has none. */
const char *ext_utf8(PyObject *text);
/* Raises what a library call reported; `what` NULL: the text already says where. Always returns -1. */
int ext_raise_status(enum vtrn_status status, const struct vtrn_error *err, const char *what);
#endif
