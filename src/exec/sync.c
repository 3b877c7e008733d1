/* The pair of cores: sendrecv and core_barrier.
 *
 * A body cannot complete a rendezvous alone: it writes down what the core offers (core->wait) and returns BLOCKED. Who runs
 * both cores (chip/) sees two blocked cores and calls vtrn_core_meet, which checks that they mean the same rendezvous,
 * moves the data both ways and lets both go on. When the second never comes, that is a deadlock for chip/ to explain.
 * A core that names itself as its partner, and a barrier of one core, need nobody. */
#include "exec/walk_int.h"

static enum vtrn_status block(struct vtrn_core *core, enum vtrn_wait_kind kind)
{
    core->wait.kind = kind;
    core->wait.pc = core->pc;
    core->waiting = true;
    return VTRN_BLOCKED;
}

struct packet { /* what one side of a sendrecv sends and where it wants what comes */
    struct exec_walk src, dst;
    struct exec_view src_view, dst_view;
};

static enum vtrn_status open_packet(struct vtrn_core *core, struct packet *packet)
{
    const struct vtrn_args_sendrecv *arg = VTRN_ARGS(sendrecv, &core->inst);
    VTRN_TRY(exec_resolve(core, &arg->src.ap, VTRN_READ, &packet->src_view));
    VTRN_TRY(exec_resolve(core, &arg->dst.ap, VTRN_WRITE, &packet->dst_view));
    exec_walk_view(&packet->src, &packet->src_view);
    exec_walk_view(&packet->dst, &packet->dst_view);
    return VTRN_OK;
}

/* Packed copy of what a side sends. */
static void *pack(struct vtrn_core *core, const struct exec_walk *src, struct exec_walk *packed_out)
{
    void *bytes = exec_walk_alloc(core, src, packed_out);
    if (bytes) exec_copy_raw(core, packed_out, src);
    return bytes;
}

static bool same_shape(const struct exec_view *a, const struct exec_view *b)
{
    return a->parts == b->parts && a->elems == b->elems && a->dtype == b->dtype;
}

static enum vtrn_status shape_fault(struct vtrn_core *core, const char *whose, const struct exec_view *src,
                                    const struct exec_view *dst)
{
    return exec_fault(core, VTRN_FAULT_MISMATCH, "operand dst: %s [%lld, %lld], but %s is %s [%lld, %lld]; they must be equal",
                      vtrn_dtypes[dst->dtype].nki_name, (long long)dst->parts, (long long)dst->elems, whose,
                      vtrn_dtypes[src->dtype].nki_name, (long long)src->parts, (long long)src->elems);
}

/* Does: sends src to the core send_to_rank and receives from recv_from_rank into dst. Waits until the other core is at a
 *   sendrecv of the same pipe_id; then both transfers happen at once, so that dst may share bytes with src. With its own
 *   rank as partner the core copies src to dst.
 * Rounding: none, bits are copied.
 * Faults: VALUE for a rank that is not a core or a pair of ranks that differ; MISMATCH when the other core waits for
 *   something else or its tile has another shape or dtype.
 * Differs: hardware lets exchanges of different pipes pass each other; here both cores must come to them in the same
 *   order. */
enum vtrn_status vtrn_exec_sendrecv(struct vtrn_core *core, const struct vtrn_inst *inst)
{
    const struct vtrn_args_sendrecv *arg = VTRN_ARGS(sendrecv, inst);
    int64_t to = exec_reg_value(core, &arg->send_to_rank), from = exec_reg_value(core, &arg->recv_from_rank);
    int cores = core->prog->cores;
    if (to < 0 || to >= cores || from < 0 || from >= cores)
        return exec_fault(core, VTRN_FAULT_VALUE, "operands send_to_rank, recv_from_rank: %lld and %lld; the program has cores 0..%d",
                          (long long)to, (long long)from, cores - 1);
    if (to != from)
        return exec_fault(core, VTRN_FAULT_VALUE,
                          "operands send_to_rank, recv_from_rank: %lld and %lld on core %d; between two "
                          "cores both name the other one",
                          (long long)to, (long long)from, core->id);
    if (to == core->id) {
        struct packet packet;
        VTRN_TRY(open_packet(core, &packet));
        if (!same_shape(&packet.src_view, &packet.dst_view)) return shape_fault(core, "src", &packet.src_view, &packet.dst_view);
        return exec_copy(core, &packet.dst, &packet.src);
    }
    core->wait.send_to = to;
    core->wait.recv_from = from;
    core->wait.pipe_id = exec_reg_value(core, &arg->pipe_id);
    return block(core, VTRN_WAIT_SENDRECV);
}

/* Does: waits until both cores are here. Accesses to data before the barrier on one core come before those after it on
 *   the other. A barrier of this core alone does nothing.
 * Rounding: none.
 * Faults: VALUE when cores does not name this core or names one that the program does not have.
 * Differs: hardware blocks only the engine that executes it; here the core, which no program can tell apart. */
enum vtrn_status vtrn_exec_core_barrier(struct vtrn_core *core, const struct vtrn_inst *inst)
{
    const struct vtrn_args_core_barrier *arg = VTRN_ARGS(core_barrier, inst);
    bool here = false, others = false;
    for (int k = 0; k < arg->cores.count; k++) {
        int64_t id = arg->cores.ints[k];
        if (id < 0 || id >= core->prog->cores)
            return exec_fault(core, VTRN_FAULT_VALUE, "operand cores: %lld; the program has cores 0..%d", (long long)id,
                              core->prog->cores - 1);
        here = here || id == core->id;
        others = others || id != core->id;
    }
    if (!here) return exec_fault(core, VTRN_FAULT_VALUE, "operand cores: core %d waits at a barrier without it", core->id);
    if (!others) return VTRN_OK;
    return block(core, VTRN_WAIT_BARRIER);
}

/* ---- the meeting ---- */
static void describe(const struct vtrn_core *core, char *out, size_t size)
{
    const struct vtrn_wait *wait = &core->wait;
    if (wait->kind == VTRN_WAIT_BARRIER) snprintf(out, size, "core %d is at a core_barrier (instruction %u)", core->id, wait->pc);
    else
        snprintf(out, size, "core %d is at a sendrecv with core %lld on pipe %lld (instruction %u)", core->id,
                 (long long)wait->send_to, (long long)wait->pipe_id, wait->pc);
}

/* Both sides keep the fault, so that either can be asked. */
static enum vtrn_status disagree(struct vtrn_core *a, struct vtrn_core *b)
{
    char a_text[128], b_text[128];
    describe(a, a_text, sizeof a_text);
    describe(b, b_text, sizeof b_text);
    exec_fault(b, VTRN_FAULT_MISMATCH, "%s, but %s; both must name the same rendezvous", b_text, a_text);
    return exec_fault(a, VTRN_FAULT_MISMATCH, "%s, but %s; both must name the same rendezvous", a_text, b_text);
}

static enum vtrn_status exchange(struct vtrn_core *a, struct vtrn_core *b)
{
    struct packet pa, pb;
    struct exec_walk from_a, from_b;
    enum vtrn_status status = VTRN_NOMEM; /* told in the core's error record by exec_walk_alloc */
    VTRN_TRY(open_packet(a, &pa));
    VTRN_TRY(open_packet(b, &pb));
    if (!same_shape(&pa.src_view, &pb.dst_view)) return shape_fault(b, "the other core's src", &pa.src_view, &pb.dst_view);
    if (!same_shape(&pb.src_view, &pa.dst_view)) return shape_fault(a, "the other core's src", &pb.src_view, &pa.dst_view);
    void *a_bytes = pack(a, &pa.src, &from_a), *b_bytes = pack(b, &pb.src, &from_b);
    if (a_bytes && b_bytes) {
        exec_copy_raw(a, &pb.dst, &from_a);
        exec_copy_raw(b, &pa.dst, &from_b);
        status = VTRN_OK;
    }
    vtrn_free_aligned(a_bytes);
    vtrn_free_aligned(b_bytes);
    return status;
}

static void go_on(struct vtrn_core *core)
{
    core->waiting = false;
    core->wait.kind = VTRN_WAIT_NONE;
    exec_retire(core);
}

enum vtrn_status vtrn_core_meet(struct vtrn_core *a, struct vtrn_core *b)
{
    VTRN_ASSERT(a->waiting && b->waiting);
    if (a->wait.kind != b->wait.kind) return disagree(a, b);
    if (a->wait.kind == VTRN_WAIT_SENDRECV) {
        bool paired = a->wait.send_to == b->id && b->wait.send_to == a->id;
        if (!paired || a->wait.pipe_id != b->wait.pipe_id) return disagree(a, b);
        VTRN_TRY(exchange(a, b));
    }
    go_on(a);
    go_on(b);
    return VTRN_OK;
}

const struct vtrn_wait *vtrn_core_wait(const struct vtrn_core *core) { return core->waiting ? &core->wait : NULL; }
