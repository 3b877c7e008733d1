/* time: how long the chip would take, and why. An event engine over a program: it reads instructions, access patterns and
 * the tensor table, never a tensor's bytes, and no clock of the host. Everything is integer picoseconds; a run repeats bit by
 * bit. docs/timing.md says what is modelled, with formulas and sources; the numbers are in arch/.
 *
 * Levels
 *   count  work over peak rates for every engine and memory, the largest of them: no program can be faster
 *   rule   every instruction costs what its rule says; streams in order, dependencies, latencies; no contention
 *   event  the same with everything that is shared: DMA engines and bandwidth, ports and banks, the tensor engine's clock gate
 * For one program and target: event >= rule >= count.
 *
 * A step is one execution of an instruction; in programs without loops step i of a core is its instruction i. Loops run as
 * often as registers say. Registers that were loaded from memory need the values of a run: struct vtrn_trace. */
#ifndef VTRN_TIME_H
#define VTRN_TIME_H
#include "place/place.h"
#include "prog/prog.h"
#include "prog/result.h"

enum vtrn_time_level { VTRN_TIME_COUNT, VTRN_TIME_RULE, VTRN_TIME_EVENT };
const char *vtrn_time_level_name(enum vtrn_time_level level); /* "event" */
bool vtrn_time_level_find(const char *name, enum vtrn_time_level *level_out);

/* In-order streams of a core: five engines, and the DMA queues. A DMA is issued by the stream that its `engine` operand names
 * and runs in a queue; those that name none are issued one after the other, each queue in order. */
#define VTRN_STREAMS_LIST(STREAM) \
    STREAM(TENSOR, "tensor", "tensor engine") \
    STREAM(VECTOR, "vector", "vector engine") \
    STREAM(SCALAR, "scalar", "scalar engine") \
    STREAM(GPSIMD, "gpsimd", "GpSimd") \
    STREAM(SYNC, "sync", "sync engine: registers, loops") \
    STREAM(LOAD, "dma_load", "DMA queue from HBM to SBUF") \
    STREAM(STORE, "dma_store", "DMA queue from SBUF to HBM") \
    STREAM(MOVE, "dma_move", "DMA queue of the rest: HBM to HBM, SBUF to SBUF, the other core")
enum vtrn_stream {
#define STREAM(NAME, name, doc) VTRN_STREAM_##NAME,
    VTRN_STREAMS_LIST(STREAM)
#undef STREAM
    VTRN_STREAMS
};
const char *vtrn_stream_name(int stream);
static inline bool vtrn_stream_is_dma(int stream) { return stream >= VTRN_STREAM_LOAD; }

/* Why a step did not start earlier: what came last. */
#define VTRN_WAITS_LIST(WAIT) \
    WAIT(NONE, "start", "nothing: it starts with the kernel") \
    WAIT(ORDER, "order", "the instruction before it in its stream") \
    WAIT(DATA, "data", "a producer: the instruction that writes what it reads") \
    WAIT(REUSE, "reuse", "an earlier reader or writer of the memory that it writes") \
    WAIT(EDGE, "edge", "a depends_on edge") \
    WAIT(REGISTER, "register", "a register") \
    WAIT(PORT, "port", "a port or bus that another engine uses") \
    WAIT(BANK, "bank", "a PSUM bank that another engine uses") \
    WAIT(ISSUE, "dma_issue", "the issue of other DMAs") \
    WAIT(ENGINE, "dma_engine", "DMA engines that carry earlier transfers") \
    WAIT(BANDWIDTH, "bandwidth", "bandwidth of HBM or of the DMA engines together") \
    WAIT(PEER, "peer", "the other core at a barrier or a sendrecv")
enum vtrn_time_wait {
#define WAIT(NAME, name, doc) VTRN_TIME_WAIT_##NAME,
    VTRN_WAITS_LIST(WAIT)
#undef WAIT
    VTRN_TIME_WAITS
};
const char *vtrn_time_wait_name(int wait);
const char *vtrn_time_wait_doc(int wait);

/* Times count from the kernel's begin. `end` is when the result is in memory; a pipelined engine takes its next instruction
 * `busy` after `start`. */
struct vtrn_step {
    uint64_t ready_ps; /* its stream could take it and all it depends on was there */
    uint64_t start_ps; /* >= ready: shared resources */
    uint64_t end_ps;
    uint64_t busy_ps;  /* time for which it occupies its engine; of a DMA: its transfer */
    uint32_t pc;       /* instruction in the core's list */
    uint32_t cause;    /* step (index in vtrn_time.step) that `wait` was for; UINT32_MAX: none */
    uint8_t core, stream, wait;
    uint8_t assumed_percent; /* share of start..end that rests on assumed numbers */
};

struct vtrn_time_stream { /* busy + waiting + idle = the kernel's span */
    uint64_t steps;
    uint64_t busy_ps;                  /* at work: the union of its steps' busy times */
    uint64_t wait_ps[VTRN_STREAMS];    /* had an instruction, waited for one of that stream */
    uint64_t reason_ps[VTRN_TIME_WAITS]; /* the same time by reason */
    uint64_t active_ps;                /* in an instruction, latency included: the union of start..end, as device profiles count */
    uint64_t idle_ps;                  /* before its first and behind its last instruction */
    uint64_t work;                     /* elements per partition (compute), multiply-accumulates (tensor), bytes (DMA) */
};
#define VTRN_RESOURCES_LIST(RESOURCE) \
    RESOURCE(DMA_ISSUE, "dma issue", "what issues the DMAs that no engine is named for, one after the other") \
    RESOURCE(DMA_ENGINES, "dma engines", "the DMA engines of a core, mean of all") \
    RESOURCE(DMA_TOTAL, "dma bandwidth", "what the DMA engines of a core sustain together") \
    RESOURCE(HBM, "hbm bandwidth", "the HBM stack of the core or pair") \
    RESOURCE(SBUF_PORT, "sbuf port", "the port or bus that Vector and GpSimd share") \
    RESOURCE(PSUM_PORT, "psum port", "the PSUM port that Vector and Scalar share (v2), or a bank of both (v3 on)") \
    RESOURCE(PE_HALF, "tensor clock gate", "time that the tensor engine lost to its clock gate")
enum vtrn_resource {
#define RESOURCE(NAME, name, doc) VTRN_RESOURCE_##NAME,
    VTRN_RESOURCES_LIST(RESOURCE)
#undef RESOURCE
    VTRN_RESOURCES
};
const char *vtrn_resource_name(int resource);
struct vtrn_time_resource {
    uint64_t busy_ps;
    uint64_t waited_ps; /* start - ready of the steps that waited for it */
    uint64_t steps;     /* that waited */
};
struct vtrn_time_bytes {
    uint64_t hbm_read, hbm_write, sbuf_read, sbuf_write, psum_read, psum_write;
    uint64_t dma; /* bytes moved by DMA: of the larger side */
    uint64_t packets;
};
struct vtrn_time_line { /* one line of the kernel */
    uint32_t loc;       /* of the program's table; 0: unknown */
    uint32_t steps;
    uint64_t busy_ps[VTRN_STREAMS];
    uint64_t wait_ps;     /* time for which the streams waited before its steps */
    uint64_t critical_ps; /* its share of the critical path */
    uint64_t reason_ps[VTRN_TIME_WAITS];
    uint64_t hbm_bytes, macs;
};
struct vtrn_time {
    enum vtrn_time_level level;
    const struct vtrn_arch *arch;
    const struct vtrn_prog *prog;
    uint64_t total_ps;    /* span + kernel_ps: what a device profile calls the kernel's time */
    uint64_t span_ps;     /* from the first instruction's issue to the last one's end */
    uint64_t kernel_ps;   /* begin and end of a kernel */
    uint64_t count_ps;    /* the bound of level count, and what sets it */
    const char *count_by; /* "tensor", "hbm bandwidth", ... */
    uint64_t assumed_ps;  /* of the critical path and kernel_ps, the time that rests on assumed numbers */
    struct vtrn_step *step; /* by core, in program order; NULL at level count */
    uint32_t steps, core_steps[VTRN_CORES_MAX];
    size_t step_bytes; /* of the memory behind `step` */
    uint32_t *path; /* the critical path: steps from the first to the last */
    uint32_t paths;
    struct vtrn_time_stream stream[VTRN_CORES_MAX][VTRN_STREAMS];
    struct vtrn_time_resource resource[VTRN_CORES_MAX][VTRN_RESOURCES];
    struct vtrn_time_bytes bytes[VTRN_CORES_MAX];
    struct vtrn_time_line *line; /* most critical time first */
    uint32_t lines;
    struct vtrn_place *place; /* the addresses that reuse waits come from */
};

struct vtrn_time_options {
    enum vtrn_time_level level;
    const struct vtrn_arch *arch;    /* time on another target; NULL: the program's */
    const struct vtrn_trace *trace;  /* of a run, one per core; NULL: none */
    bool static_dma;                 /* DMA descriptors are prepared wherever the kernel does not say */
    uint64_t most_steps;             /* an endless loop is an error; 0: the default, 2^28 */
};
void vtrn_time_options_init(struct vtrn_time_options *options);
/* UNSUPPORTED: a loop or branch hangs on a register that was loaded from memory and there is no trace. */
enum vtrn_status vtrn_time_run(const struct vtrn_prog *prog, const struct vtrn_time_options *options, struct vtrn_time **time_out,
                               struct vtrn_error *err);
void vtrn_time_destroy(struct vtrn_time *time);
#endif
