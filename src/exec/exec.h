/* exec: the functional engines. Runs a core's instruction list over the memories; never reads a clock.
 * A step is: decode, resolve the operands to strided views of host memory, call the body of the instruction.
 * Resumable: a run stops at the end of what is there, at a rendezvous that its peer has not reached, or at a fault. */
#ifndef VTRN_EXEC_H
#define VTRN_EXEC_H
#include "kern/kern.h"
#include "mem/mem.h"
#include "prog/prog.h"
#include "prog/result.h"

enum vtrn_wait_kind { VTRN_WAIT_NONE, VTRN_WAIT_BARRIER, VTRN_WAIT_SENDRECV };
struct vtrn_wait { /* what a blocked core offers its peer */
    enum vtrn_wait_kind kind;
    uint32_t pc;
    int64_t pipe_id, send_to, recv_from; /* SENDRECV */
};
struct vtrn_core; /* one NeuronCore: registers, accumulators, generators, position in its list */

struct vtrn_exec_options {
    struct vtrn_pool *pool;        /* splits large instructions; NULL: one thread */
    struct vtrn_page_cache *pages; /* where scratch comes from; NULL: the host */
    bool stochastic_rounding;
    uint64_t seed;     /* of stochastic rounding and of the generators' start state */
    bool mx_scale_v03; /* quantize_mx scales as NKI 0.3 did: half as large as since 0.5 */
    /* device_print: `text` is one whole print. NULL: stderr. */
    void (*print)(void *self, int core, const char *text);
    void *print_self;
    struct vtrn_trace *trace; /* what register_load brings in is appended to it; NULL: not recorded */
    /* Asked now and then inside program loops (NULL: never); true stops the run with INTERRUPTED. */
    bool (*interrupt)(void *self);
    void *interrupt_self;
};
void vtrn_exec_options_init(struct vtrn_exec_options *options);

struct vtrn_core *vtrn_core_create(const struct vtrn_prog *prog, struct vtrn_mem *mem, int core,
                                   const struct vtrn_exec_options *options, struct vtrn_error *err);
void vtrn_core_destroy(struct vtrn_core *core);
/* Runs until instruction `end` of the list (UINT32_MAX: all there is). OK: reached. BLOCKED: at a rendezvous, see
 * vtrn_core_wait. FAULT: see vtrn_core_fault; the core cannot go on. `release` says that automatic on-chip tensors are
 * returned to the pool after their last use (replays; a tracing front end releases by itself). */
enum vtrn_status vtrn_core_run(struct vtrn_core *core, uint32_t end, bool release);
uint32_t vtrn_core_position(const struct vtrn_core *core);
/* The list was forgotten (vtrn_prog_forget_code): start again at instruction 0. */
void vtrn_core_rewind(struct vtrn_core *core);
const struct vtrn_wait *vtrn_core_wait(const struct vtrn_core *core);
/* Completes the rendezvous of two blocked cores: moves sendrecv data both ways, lets both go on. FAULT: they disagree. */
enum vtrn_status vtrn_core_meet(struct vtrn_core *a, struct vtrn_core *b);
const struct vtrn_fault *vtrn_core_fault(const struct vtrn_core *core);
/* The message of the last error that was not a fault of the emulated machine (no memory, an input without data). */
const char *vtrn_core_error(const struct vtrn_core *core);
const struct vtrn_counters *vtrn_core_counters(const struct vtrn_core *core);
/* Value of a virtual register. */
int32_t vtrn_core_register(const struct vtrn_core *core, uint32_t reg);
void vtrn_core_set_register(struct vtrn_core *core, uint32_t reg, int32_t value);
/* Copies the elements that `ap` walks, packed in its order, out of or into the memories (front ends look at values). */
enum vtrn_status vtrn_core_peek(struct vtrn_core *core, const struct vtrn_ap *ap, void *out, size_t size_bytes,
                                struct vtrn_error *err);
#endif
