/* What a run leaves behind besides memory: faults and counters. Filled in by exec, read by report and cli. */
#ifndef VTRN_RESULT_H
#define VTRN_RESULT_H
#include "base/base.h"

/* The emulated machine did something illegal: not an error of the caller, not a bug of ours. */
enum vtrn_fault_reason {
    VTRN_FAULT_NONE,
    VTRN_FAULT_BOUNDS,   /* a dynamic address leaves its tensor */
    VTRN_FAULT_INDEX,    /* an index vector holds an index outside its limit with oob_mode.error */
    VTRN_FAULT_DEADLOCK, /* the core waits for a peer that will never come */
    VTRN_FAULT_MISMATCH, /* the two sides of a rendezvous disagree */
    VTRN_FAULT_LOOP,     /* a loop without end, or a bound that makes no sense */
    VTRN_FAULT_VALUE,    /* an operand's value is outside what the instruction takes */
};
struct vtrn_fault {
    enum vtrn_fault_reason reason;
    int core, engine;
    uint32_t pc;    /* index in the core's list */
    char text[512]; /* "operand src: index[3] = 1024 is outside 0..1023 (oob_mode.error)" */
};
/* COUNTER(name, "doc"), one row each */
#define VTRN_COUNTERS(COUNTER) \
    COUNTER(instructions, "instructions executed") \
    COUNTER(tensor_instructions, "of them on the tensor engine") \
    COUNTER(vector_instructions, "of them on the vector engine") \
    COUNTER(scalar_instructions, "of them on the scalar engine") \
    COUNTER(gpsimd_instructions, "of them on GpSimd") \
    COUNTER(dma_instructions, "of them DMA") \
    COUNTER(macs, "multiply-accumulates of the tensor engine") \
    COUNTER(hbm_read_bytes, "bytes read from HBM by DMA") \
    COUNTER(hbm_write_bytes, "bytes written to HBM by DMA")
struct vtrn_counters {
#define COUNTER(name, doc) uint64_t name;
    VTRN_COUNTERS(COUNTER)
#undef COUNTER
};
/* The values that register_load brought in, in the order in which a core executed them: all of a run that control and
 * register offsets can hang on. exec writes it, time reads it. */
struct vtrn_trace {
    int32_t *value;
    size_t values, capacity;
};
#endif
