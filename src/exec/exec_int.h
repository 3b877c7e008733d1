/* Inside exec/ only: the core's state, resolved operands, row access, and the dispatch of bodies. */
#ifndef VTRN_EXEC_INT_H
#define VTRN_EXEC_INT_H
#include "exec/exec.h"

enum { EXEC_FREE_DIMS = VTRN_AP_DIMS, EXEC_ROW_MAX = 2048 /* fp32 elements of one scratch row block */ };
enum { EXEC_LANES = 128 /* partitions of an engine */, EXEC_STAGED_MAX = 4 };
enum { EXEC_SCRATCH_BYTES = 32 * EXEC_ROW_MAX * 4 /* of a thread: what bodies may count on */ };

/* An operand after its dynamic parts are known: host addresses, strides in bytes, free dimensions merged where they are
 * contiguous. For HBM operands (DMA) dim[0] of the pattern is treated as "partitions" too. */
struct exec_view {
    uint8_t *base;   /* first element of partition 0 */
    ptrdiff_t pitch; /* bytes from a partition to the next */
    int64_t parts;   /* partitions (count of dim[0]) */
    int64_t elems;   /* elements per partition */
    int ndim;        /* free dims after merging; 0 when elems is 1 */
    struct {
        ptrdiff_t stride; /* bytes */
        int64_t count;
    } dim[EXEC_FREE_DIMS];
    uint8_t dtype, elem_bytes;
    bool contiguous; /* a partition's elements are adjacent */
    struct vtrn_store *store;
    const int64_t *row_offset; /* VECTOR: byte offset of each partition from base instead of p*pitch; -1: skip the row */
    /* INDIRECT: element i of partition p is at base + p*pitch + elem_offset[(p / group) * elems + i], ndim is 1 and its
     * stride unused. NULL otherwise. Filled by exec_resolve_indirect. */
    const int64_t *elem_offset;
    int group;
    bool skip; /* a REG or SCALAR offset left the tensor under EXEC_OOB_SKIP: nothing may be transferred */
};
/* Added to `access` of exec_resolve by DMA bodies with oob_mode.skip: an index outside its limit or its tensor gives
 * row_offset -1, a scalar offset outside gives view.skip; without it both are faults. */
enum { EXEC_OOB_SKIP = 4 };

struct exec_loop {
    uint32_t begin_pc;
    bool is_while;
    uint32_t reg;
    int64_t value, upper, step;
};

/* The tensors that each instruction is the last to use: tensor[start[pc]] .. tensor[start[pc + 1] - 1]. */
struct exec_releases {
    uint32_t *start, *tensor;
    uint32_t insts, tensors; /* of the program when it was made; insts 0: not made */
};

/* The tensors that the body of a loop declares and uses: they start anew with each turn. */
struct exec_renewals {
    uint32_t begin, end, forgets; /* the loop, and which list of its core it is in; end 0: not made */
    uint32_t *tensor;
    uint32_t count, capacity;
};

struct vtrn_core {
    const struct vtrn_prog *prog;
    struct vtrn_mem *mem;
    const struct vtrn_kern *kern;
    struct vtrn_exec_options options;
    int id;
    uint32_t pc;
    struct exec_loop loop[VTRN_LOOP_DEPTH];
    int loops;
    int32_t *reg; /* virtual registers, grows with prog->registers */
    uint32_t regs;
    float act_acc[128], vec_acc[128]; /* accumulators of the scalar and the vector engine, one per partition */
    struct exec_rng *rng;             /* generators: rng.c */
    struct vtrn_fault fault;
    struct vtrn_counters counters;
    struct vtrn_wait wait;
    bool waiting;
    bool release; /* of the run that goes on: see vtrn_core_run */
    struct exec_releases releases;
    struct exec_renewals renewals[VTRN_LOOP_DEPTH]; /* by depth of nesting */
    struct vtrn_error err;                          /* why a status other than FAULT was returned */
    struct vtrn_buf index_space; /* row_offset and elem_offset arrays of the current instruction: see exec_index_space */
    struct vtrn_arena index_more;
    size_t index_wanted;
    void *staged[EXEC_STAGED_MAX]; /* copies of sources that overlap the destination, for the current instruction */
    int stageds;
    uint8_t *scratch; /* threads * scratch_bytes, 64-byte aligned */
    size_t scratch_bytes;
    struct vtrn_inst inst;  /* the one being executed */
    uint32_t end;           /* of the run that goes on: instructions before it may be done together */
    uint32_t also_done;     /* instructions after `inst` that its body did with it: see pe_group.c */
    uint64_t polled;        /* counters.instructions when options.interrupt was asked last */
    struct vtrn_inst ahead; /* a later one, while it is looked at */
};

/* One body per instruction, named after it; a missing body is a link error. After OK the run goes on at core->pc + 1:
 * control bodies move core->pc. BLOCKED leaves the core at core->pc: with core->waiting at a rendezvous (vtrn_core_meet
 * moves it past), without at a loop whose end is not in the list yet (run again when it is). */
typedef enum vtrn_status exec_body(struct vtrn_core *core, const struct vtrn_inst *inst);
#define OP(name, code, engines, dflt, version, args, rule, doc) exec_body vtrn_exec_##name;
#define GONE(code, name)
#include "isa/ops.def"
#undef OP
#undef GONE

/* ---- lifetimes (lifetime.c) ---- */
/* Finds the last uses of all tensors, unless they are known. Then: returns those that instruction pc is the last to use. */
enum vtrn_status exec_releases_make(struct vtrn_core *core);
void exec_release_after(struct vtrn_core *core, uint32_t pc);
/* The loop [begin, end] turns back: what its body declares starts anew. */
enum vtrn_status exec_renew(struct vtrn_core *core, uint32_t begin, uint32_t end);
void exec_lifetimes_fini(struct vtrn_core *core);

/* Scratch that the tensor engine's bodies need per thread (pe.c). */
size_t exec_pe_scratch_bytes(const struct vtrn_kern *kern);
/* Counts the instruction being executed as done, returns operands to the pool, moves on (the step loop; a rendezvous). */
void exec_retire(struct vtrn_core *core);
/* Records a fault of the instruction being executed and returns VTRN_FAULT. */
enum vtrn_status exec_fault(struct vtrn_core *core, enum vtrn_fault_reason reason, const char *fmt, ...) VTRN_PRINTF(3, 4);
/* Store, dynamic offsets, bounds. `access` is VTRN_READ, VTRN_WRITE (all of the view will be overwritten) or both. Resolve
 * what is read before what is written: a tensor's first write takes its poison away. */
enum vtrn_status exec_resolve(struct vtrn_core *core, const struct vtrn_ap *ap, int access, struct exec_view *view_out);
/* Space for `count` offsets (row_offset, elem_offset), valid until the instruction ends: later calls do not move it.
 * NULL: no memory. */
int64_t *exec_index_space(struct vtrn_core *core, int64_t count);
/* The INDIRECT part of a view (indirect.c), called by exec_resolve once base, pitch, parts and elems are known. */
enum vtrn_status exec_resolve_indirect(struct vtrn_core *core, const struct vtrn_ap *ap, const struct vtrn_dyn *dyn,
                                       struct exec_view *view);
/* A (P,1) vector operand or number as one fp32 per partition: fills out[parts]. */
enum vtrn_status exec_scalar(struct vtrn_core *core, const struct vtrn_value *value, int64_t parts, float *out);
/* Integer value of a REG operand. */
int64_t exec_reg_value(const struct vtrn_core *core, const struct vtrn_value *value);
void exec_set_reg(struct vtrn_core *core, uint32_t reg, int32_t value);

/* ---- rows: a block is `np` partitions from p0 by elements [i0, i0+n) of each, packed row after row ---- */
static inline uint8_t *exec_row_start(const struct exec_view *view, int64_t p)
{
    return view->base + (view->row_offset ? view->row_offset[p] : p * view->pitch);
}
/* A whole block that is adjacent in memory: a stretch of one contiguous partition, or whole partitions back to back. */
static inline uint8_t *exec_direct(const struct exec_view *view, int64_t p0, int64_t np, int64_t i0, int64_t n)
{
    if (!view->contiguous || view->elem_offset) return NULL;
    if (np == 1) return exec_row_start(view, p0) + i0 * view->elem_bytes;
    if (view->row_offset || n != view->elems || view->pitch != (ptrdiff_t)n * view->elem_bytes) return NULL;
    return view->base + p0 * view->pitch;
}
/* Blocks that are packed or converted: see below. */
const float *exec_load_other(const struct vtrn_core *core, const struct exec_view *view, int64_t p0, int64_t np, int64_t i0,
                             int64_t n, float *scratch);
void exec_store_other(struct vtrn_core *core, const struct exec_view *view, int64_t p0, int64_t np, int64_t i0, int64_t n,
                      const float *values);
/* fp32 values of a block. Returns a direct pointer into the tensor when it is fp32 and the block is adjacent in memory, else
 * `scratch`. Inline, as three calls for each row cost a tenth of an addition of 512 elements. */
static inline const float *exec_load_f32(const struct vtrn_core *core, const struct exec_view *view, int64_t p0, int64_t np,
                                         int64_t i0, int64_t n, float *scratch)
{
    const uint8_t *at = view->dtype == VTRN_DT_F32 ? exec_direct(view, p0, np, i0, n) : NULL;

    return at ? (const float *)(const void *)at : exec_load_other(core, view, p0, np, i0, n, scratch);
}
/* Where to compute a block that will be stored: direct pointer under the same conditions, else `scratch`. */
static inline float *exec_out_f32(const struct exec_view *view, int64_t p0, int64_t np, int64_t i0, int64_t n, float *scratch)
{
    uint8_t *at = view->dtype == VTRN_DT_F32 ? exec_direct(view, p0, np, i0, n) : NULL;

    return at ? (float *)(void *)at : scratch;
}
/* Converts and stores a block computed in `values` (nothing to do when `values` is the direct pointer). */
static inline void exec_store_f32(struct vtrn_core *core, const struct exec_view *view, int64_t p0, int64_t np, int64_t i0,
                                  int64_t n, const float *values)
{
    if (view->dtype == VTRN_DT_F32 && (const uint8_t *)values == exec_direct(view, p0, np, i0, n)) return;
    exec_store_other(core, view, p0, np, i0, n, values);
}
/* Raw elements (no conversion), packed; elem_bytes of the view. exec_load_raw may return a direct pointer; exec_pack_raw
 * always fills `out`. */
void exec_pack_raw(const struct exec_view *view, int64_t p0, int64_t np, int64_t i0, int64_t n, void *out);
const void *exec_load_raw(const struct exec_view *view, int64_t p0, int64_t np, int64_t i0, int64_t n, void *scratch);
void exec_store_raw(const struct exec_view *view, int64_t p0, int64_t np, int64_t i0, int64_t n, const void *values);
/* Address of element i of partition p (slow path, any pattern). */
uint8_t *exec_elem(const struct exec_view *view, int64_t p, int64_t i);

/* Partitions of a block when it is computed `elems` at a time: 1 where a partition alone is worth a kernel call. `direct`:
 * some operand can be used where it is, if the block is a single partition. */
static inline int64_t exec_block_parts(int64_t elems, bool direct)
{
    if (elems >= EXEC_ROW_MAX || (direct && elems >= 32)) return 1;
    return elems > 0 ? (int64_t)((uint32_t)EXEC_ROW_MAX / (uint32_t)elems) : 1;
}
/* fp32 rows that are adjacent inside a partition, but not from one to the next. */
static inline bool exec_row_direct(const struct exec_view *view)
{
    return view->dtype == VTRN_DT_F32 && view->contiguous && !view->elem_offset && view->pitch != view->elems * 4;
}

/* ---- operands that share bytes (overlap.c) ---- */
/* Makes sure that writing dst element by element, in any order of partitions, changes no element of src that is still to be
 * read: when they overlap otherwise than element by element, src becomes a view of a packed copy. NOMEM. */
enum vtrn_status exec_stage(struct vtrn_core *core, const struct exec_view *dst, struct exec_view *src);
/* The same for bodies that do not go element by element: any overlap at all makes a copy. */
enum vtrn_status exec_stage_always(struct vtrn_core *core, const struct exec_view *dst, struct exec_view *src);

/* ---- generators (rng.c) ---- */
/* The start state follows from seed, core id and engine version. NULL: no memory. Called by vtrn_core_create. */
struct exec_rng *exec_rng_create(uint64_t seed, int core, int nc_version);
void exec_rng_destroy(struct exec_rng *rng);
/* The next n words of an engine's generator in lane p (VTRN_ENGINE_VECTOR or VTRN_ENGINE_GPSIMD). Lanes are independent,
 * so threads may draw for different partitions at once. dropout draws one word an element from the vector engine. */
void exec_rng_draw(struct vtrn_core *core, int engine, int64_t p, uint32_t *out, size_t n);
/* Words for stochastic rounding of elements i0.. of partition p: a function of seed, core, executed instructions, p and
 * i, so results do not depend on how rows are split over threads. */
void exec_rng_rounding(const struct vtrn_core *core, int64_t p, int64_t i0, uint32_t *out, size_t n);

/* Splits [0, parts) partitions over the pool when parts*elems is worth it; fn gets its thread's scratch. */
struct exec_rows {
    struct vtrn_core *core;
    const struct vtrn_inst *inst;
    const void *data; /* the body's own struct */
};
void exec_for_partitions(struct vtrn_core *core, int64_t parts, int64_t work_per_part,
                         void (*fn)(const struct exec_rows *rows, int64_t p0, int64_t p1, uint8_t *scratch), const void *data);
#endif
