/* vtrn: a virtual AWS Trainium. The public C API of libvtrn: load, parse, print and save programs, run them on a virtual
 * chip, read results, counters and faults, and ask what a chip is. Usable without Python; examples/replay.c is a tour.
 *
 * Conventions
 * - Everything hangs off a handle; the library has no mutable globals. Different handles may be used by different threads
 *   at once, one handle by one thread at a time.
 * - A call that can fail returns enum vtrn_status (0 ok, negative error) and writes the reason into *err (may be NULL).
 *   Output arguments come last before err, end in _out, and are set on success only.
 * - Arguments are borrowed for the call unless a comment says longer. Pointers that come back live as long as the handle.
 * - Structures that the library fills in are passed with their size, so that a program built against an older header keeps
 *   working when fields are added: only as much is written as the caller has room for. */
#ifndef VTRN_VTRN_H
#define VTRN_VTRN_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vtrn/status.h"

#ifdef __cplusplus
extern "C" {
#endif

VTRN_API const char *vtrn_version(void); /* "0.1.0" */
VTRN_API void vtrn_free(void *ptr);      /* text and bytes that a call handed over; NULL is legal */
/* FNV-1a 64 of bytes: the digest by which `vtrn run` and the Python front end name results. */
VTRN_API uint64_t vtrn_digest(const void *bytes, size_t size_bytes);

/* ---------------------------------------------------------------- targets: what a chip is, each number with its evidence */
struct vtrn_target_info {
    const char *name;       /* "trn2" */
    const char *generation; /* "gen3" */
    const char *doc;        /* "Trainium2, NeuronCore-v3" */
    int nc_version;         /* of its NeuronCores: 2, 3 or 4 */
    int facts;              /* how many numbers vtrn_target_fact knows */
};
struct vtrn_fact_info {
    const char *name, *unit, *doc;
    int64_t value;
    const char *basis;  /* "documented", "measured", "derived" or "assumed" */
    const char *source; /* where the number comes from */
};
VTRN_API int vtrn_target_count(void);
/* Targets are numbered from 0; INVALID: no such target. */
VTRN_API enum vtrn_status vtrn_target_get(int target, struct vtrn_target_info *info, size_t info_size);
VTRN_API enum vtrn_status vtrn_target_fact(int target, int fact, struct vtrn_fact_info *info, size_t info_size);
/* What the letters in the sources stand for ("A3": which document); false past the end. */
struct vtrn_source_info {
    const char *letters, *document;
};
VTRN_API bool vtrn_source_get(int i, struct vtrn_source_info *info, size_t info_size);
/* By any of its names: "trn2", "gen3", "v3". INVALID: err lists those that exist. */
VTRN_API enum vtrn_status vtrn_target_find(const char *name, int *target_out, struct vtrn_error *err);

/* ---------------------------------------------------------------- programs */
struct vtrn_program;
/* Verifies what it reads: hostile bytes give an error, never a crash. */
VTRN_API enum vtrn_status vtrn_program_load(const void *bytes, size_t size_bytes, struct vtrn_program **program_out,
                                            struct vtrn_error *err);
VTRN_API enum vtrn_status vtrn_program_load_file(const char *path, struct vtrn_program **program_out, struct vtrn_error *err);
/* From assembly text; printing what was parsed gives the same text again. */
VTRN_API enum vtrn_status vtrn_program_parse(const char *text, size_t length, struct vtrn_program **program_out,
                                             struct vtrn_error *err);
VTRN_API void vtrn_program_destroy(struct vtrn_program *program); /* after the machines that use it; NULL is legal */

VTRN_API enum vtrn_status vtrn_program_save_file(const struct vtrn_program *program, const char *path, struct vtrn_error *err);
/* The file's bytes, and the assembly text (ends with a zero byte that *size_out does not count); vtrn_free them. */
VTRN_API enum vtrn_status vtrn_program_save(const struct vtrn_program *program, void **bytes_out, size_t *size_out,
                                            struct vtrn_error *err);
VTRN_API enum vtrn_status vtrn_program_print(const struct vtrn_program *program, char **text_out, size_t *size_out,
                                             struct vtrn_error *err);
/* Checks structure and the legality of every instruction again, as loading does. */
VTRN_API enum vtrn_status vtrn_program_verify(const struct vtrn_program *program, struct vtrn_error *err);

struct vtrn_program_info {
    const char *name;      /* of the kernel; "" when it has none */
    const char *target;    /* "trn2" */
    int cores;             /* 1 or 2 */
    int replayable;        /* 0: the front end looked at values while tracing; other inputs may need another program */
    uint64_t instructions; /* of all cores */
    uint32_t tensors, inputs, outputs;
};
VTRN_API enum vtrn_status vtrn_program_get(const struct vtrn_program *program, struct vtrn_program_info *info, size_t info_size);

/* One row for each kind of instruction that occurs, by engine, then by name; false past the end. */
struct vtrn_use_info {
    const char *engine, *name;
    uint64_t count;
};
VTRN_API bool vtrn_program_use(const struct vtrn_program *program, int row, struct vtrn_use_info *info, size_t info_size);

enum { VTRN_RANK_MAX = 8 };
enum vtrn_tensor_kind {
    VTRN_TENSOR_TEMP,   /* made and used by the program */
    VTRN_TENSOR_INPUT,  /* bound by the caller; `written` says whether the program also writes it */
    VTRN_TENSOR_OUTPUT, /* made by the program for the caller */
    VTRN_TENSOR_CONST   /* data held by the program */
};
struct vtrn_tensor_info {
    const char *name; /* "" when it has none */
    const char *space; /* "sbuf", "psum", "hbm", "shared_hbm" */
    const char *dtype; /* by its NKI name: "bfloat16", "float8_e4m3fn_x4" */
    enum vtrn_tensor_kind kind;
    int rank;
    int64_t dim[VTRN_RANK_MAX];
    size_t element_bytes; /* of one element of dim; 4 for the packed x4 types of 8 bit */
    size_t size_bytes;    /* of all of it */
    bool written;         /* some instruction writes it */
    int core;             /* the core whose it is; -1: all cores' */
};
/* Tensors are numbered from 0 in the order of their declaration. */
VTRN_API enum vtrn_status vtrn_program_tensor(const struct vtrn_program *program, uint32_t tensor, struct vtrn_tensor_info *info,
                                              size_t info_size);
/* The i-th input or output as the number of its tensor; UINT32_MAX past the end. */
VTRN_API uint32_t vtrn_program_input(const struct vtrn_program *program, uint32_t i);
VTRN_API uint32_t vtrn_program_output(const struct vtrn_program *program, uint32_t i);
/* An input or output by name; INVALID: err lists those that exist. */
VTRN_API enum vtrn_status vtrn_program_find(const struct vtrn_program *program, const char *name, uint32_t *tensor_out,
                                            struct vtrn_error *err);

/* ---------------------------------------------------------------- machines: a virtual chip with one program on it */
struct vtrn_machine;
struct vtrn_machine_options {
    size_t size_bytes;       /* set by vtrn_machine_options_init */
    int threads;             /* host threads, at most 4096; 0: all */
    int stochastic_rounding; /* 1: round to lower precision stochastically */
    uint64_t seed;           /* of stochastic rounding and of the generators' start state */
    /* device_print: one whole print of a core. NULL: stderr. */
    void (*print)(void *self, int core, const char *text);
    void *print_self;
    /* Called about every 100 ms of a run with the share that is done (0..1; -1: unknown); false stops the run. */
    bool (*progress)(void *self, double share);
    void *progress_self;
};
VTRN_API void vtrn_machine_options_init_sized(struct vtrn_machine_options *options, size_t size_bytes);
static inline void vtrn_machine_options_init(struct vtrn_machine_options *options)
{
    vtrn_machine_options_init_sized(options, sizeof *options);
}

/* Borrows the program until the machine is destroyed. `options` NULL: the defaults. UNSUPPORTED: not replayable. */
VTRN_API enum vtrn_status vtrn_machine_create(struct vtrn_program *program, const struct vtrn_machine_options *options,
                                              struct vtrn_machine **machine_out, struct vtrn_error *err);
VTRN_API void vtrn_machine_destroy(struct vtrn_machine *machine); /* NULL is legal */
/* Gives an input its bytes: row-major, little endian, not copied, borrowed until the machine is destroyed or the tensor bound
 * again. The program writes into them when the tensor is `written`. */
VTRN_API enum vtrn_status vtrn_machine_bind(struct vtrn_machine *machine, uint32_t tensor, void *bytes, size_t size_bytes,
                                            struct vtrn_error *err);
/* Runs the program from the start on fresh memories. FAULT, DEADLOCK: the emulated machine went wrong, see
 * vtrn_machine_fault; ILLEGAL, INVALID: an input has no bytes. May be called again. */
VTRN_API enum vtrn_status vtrn_machine_run(struct vtrn_machine *machine, struct vtrn_error *err);
/* Bytes of an HBM tensor after a run, valid until the next run or the end of the machine. */
VTRN_API enum vtrn_status vtrn_machine_read(struct vtrn_machine *machine, uint32_t tensor, const void **bytes_out,
                                            size_t *size_out, struct vtrn_error *err);

/* Counters of the last run, of all cores; false past the end. */
struct vtrn_counter_info {
    const char *name, *doc;
    uint64_t value;
};
VTRN_API bool vtrn_machine_counter(const struct vtrn_machine *machine, int i, struct vtrn_counter_info *info, size_t info_size);

struct vtrn_fault_info {
    const char *reason;      /* "bounds", "index", "deadlock", "mismatch", "loop", "value" */
    const char *text;        /* what is wrong, in one line */
    int core;
    const char *engine;
    uint32_t instruction;    /* its index in the core's list */
    const char *file;        /* of the kernel; "" when unknown */
    uint32_t line;
    const char *disassembly; /* the instruction in assembly */
};
/* Whether the last run ended with a fault, and which. */
VTRN_API bool vtrn_machine_fault(const struct vtrn_machine *machine, struct vtrn_fault_info *info, size_t info_size);

/* ---------------------------------------------------------------- timings: how long the chip would take, and why
 * Times are picoseconds from the kernel's begin. docs/timing.md says what is modelled and what is not. */
struct vtrn_timing;
struct vtrn_timing_options {
    size_t size_bytes;  /* set by vtrn_timing_options_init */
    const char *level;  /* "event" (default), "rule", "count" */
    const char *target; /* time on another target; NULL: the program's */
    int static_dma;     /* 1: DMA descriptors are prepared wherever the kernel does not say (--disable-dge) */
};
VTRN_API void vtrn_timing_options_init_sized(struct vtrn_timing_options *options, size_t size_bytes);
static inline void vtrn_timing_options_init(struct vtrn_timing_options *options)
{
    vtrn_timing_options_init_sized(options, sizeof *options);
}
/* `machine` NULL, or one whose last run gives the values that loops and addresses hang on; without it such a program is
 * UNSUPPORTED. `options` NULL: the defaults. The program is borrowed until the timing is destroyed. */
VTRN_API enum vtrn_status vtrn_timing_create(const struct vtrn_program *program, const struct vtrn_machine *machine,
                                             const struct vtrn_timing_options *options, struct vtrn_timing **timing_out,
                                             struct vtrn_error *err);
VTRN_API void vtrn_timing_destroy(struct vtrn_timing *timing); /* NULL is legal */

struct vtrn_timing_info {
    const char *level, *target;
    uint64_t total_ps;   /* span + kernel: what a device profile calls the kernel's time */
    uint64_t span_ps;    /* from the first instruction to the last one's end */
    uint64_t kernel_ps;  /* begin and end of a kernel */
    uint64_t count_ps;   /* no program with this work is faster */
    const char *count_by; /* what sets that bound */
    uint64_t assumed_ps; /* of total, the part of the critical path that rests on assumed numbers */
    uint32_t steps;      /* executed instructions */
    uint32_t path;       /* of them on the critical path */
    uint32_t lines;      /* of the kernel */
    int cores;
};
VTRN_API enum vtrn_status vtrn_timing_get(const struct vtrn_timing *timing, struct vtrn_timing_info *info, size_t info_size);

/* In-order streams of a core: busy + waiting + idle = span. INVALID: no such stream or core. */
enum { VTRN_TIMING_STREAMS = 8, VTRN_TIMING_WAITS = 16 };
struct vtrn_timing_stream_info {
    const char *name; /* "tensor", "vector", "scalar", "gpsimd", "sync", "dma_load", "dma_store", "dma_move" */
    uint64_t steps, busy_ps, idle_ps;
    uint64_t wait_ps;                      /* all of the next two: the same time, by whom and by why */
    uint64_t wait_for_ps[VTRN_TIMING_STREAMS];
    uint64_t wait_why_ps[VTRN_TIMING_WAITS]; /* by vtrn_timing_why */
    uint64_t work;                         /* elements per partition; multiply-accumulates (tensor); bytes (DMA) */
    uint64_t active_ps;                    /* in an instruction, latency included, as device profiles count */
};
VTRN_API enum vtrn_status vtrn_timing_stream(const struct vtrn_timing *timing, int core, int stream,
                                             struct vtrn_timing_stream_info *info, size_t info_size);
/* Reasons to wait: "data", "reuse", "dma_engine", ... with one line of meaning; false past the end. */
struct vtrn_timing_why_info {
    const char *name, *doc;
};
VTRN_API bool vtrn_timing_why(int i, struct vtrn_timing_why_info *info, size_t info_size);
/* Shared resources of a core; INVALID past the end. */
struct vtrn_timing_resource_info {
    const char *name;
    uint64_t busy_ps, waited_ps, steps;
};
VTRN_API enum vtrn_status vtrn_timing_resource(const struct vtrn_timing *timing, int core, int resource,
                                               struct vtrn_timing_resource_info *info, size_t info_size);
struct vtrn_timing_bytes_info {
    uint64_t hbm_read, hbm_write, sbuf_read, sbuf_write, psum_read, psum_write, dma, packets;
};
VTRN_API enum vtrn_status vtrn_timing_bytes(const struct vtrn_timing *timing, int core, struct vtrn_timing_bytes_info *info,
                                            size_t info_size);
/* SBUF (space 0) and PSUM (1) of a core: bytes per partition. */
struct vtrn_timing_memory_info {
    const char *name;
    int64_t limit_bytes, peak_bytes;
    uint32_t peak_at; /* instruction */
    uint32_t spilled; /* tensors without room */
    int64_t spilled_bytes;
};
VTRN_API enum vtrn_status vtrn_timing_memory(const struct vtrn_timing *timing, int core, int space,
                                             struct vtrn_timing_memory_info *info, size_t info_size);
/* OK, or LIMIT with peak, limit and the largest tensors when what is live at once does not fit. */
VTRN_API enum vtrn_status vtrn_timing_fits(const struct vtrn_timing *timing, struct vtrn_error *err);
/* Lines of the kernel, most critical time first. */
struct vtrn_timing_line_info {
    const char *file; /* "" when unknown */
    uint32_t line, steps;
    uint64_t busy_ps[VTRN_TIMING_STREAMS], wait_ps, critical_ps, hbm_bytes;
    uint64_t wait_why_ps[VTRN_TIMING_WAITS];
};
VTRN_API enum vtrn_status vtrn_timing_line(const struct vtrn_timing *timing, uint32_t i, struct vtrn_timing_line_info *info,
                                           size_t info_size);
/* Steps, by core, in program order; vtrn_timing_path gives the i-th of the critical path. */
struct vtrn_timing_step_info {
    int core, stream;
    uint32_t instruction; /* its index in the core's list */
    const char *name;     /* "nc_matmul" */
    const char *file;
    uint32_t line;
    uint64_t ready_ps, start_ps, end_ps, busy_ps;
    const char *why;      /* what it waited for last */
    uint32_t cause;       /* the step that was; UINT32_MAX: none */
    int assumed_percent;
};
VTRN_API enum vtrn_status vtrn_timing_step(const struct vtrn_timing *timing, uint32_t step, struct vtrn_timing_step_info *info,
                                           size_t info_size);
VTRN_API uint32_t vtrn_timing_path(const struct vtrn_timing *timing, uint32_t i);

#ifdef __cplusplus
}
#endif
#endif
