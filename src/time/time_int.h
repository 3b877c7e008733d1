/* Inside time/ only. The way of a run: plan.c walks a core's instructions in program order (walk.c) and notes for each step
 * what it costs (cost.c, cost_dma.c) and on which steps it depends (deps.c); sched.c gives every step its times; sum.c adds
 * up who was busy, who waited for whom, and what the critical path is. */
#ifndef VTRN_TIME_INT_H
#define VTRN_TIME_INT_H
#include "time/time.h"

#define NO_STEP UINT32_MAX
enum { TIME_CLASSES = 2 * VTRN_STREAMS /* a stream's own steps, and the DMAs that it issues: each ends in order */ };
enum { TIME_DMA_ENGINES = 16 };

/* ---- costs ---- */
struct time_rates { /* of a target, ready for use */
    const struct vtrn_arch *arch;
    uint64_t mega[VTRN_STREAMS];  /* ps per million cycles of a stream's clock */
    uint64_t dma_mega, sustained_mega, hbm_mega; /* ps per million bytes: one DMA engine, all of a core, an HBM stack */
    bool assumed[VTRN_FACTS];
    bool static_dma;
};
void time_rates_init(struct time_rates *rates, const struct vtrn_arch *arch);
/* x cycles or bytes at `mega` ps per million, rounded down; saturates. */
static inline uint64_t time_scale(uint64_t x, uint64_t mega)
{
    uint64_t whole = x / 1000000, rest = x % 1000000;

    if (whole && mega > UINT64_MAX / 4 / whole) return UINT64_MAX / 4;
    return whole * mega + rest * mega / 1000000;
}

enum {
    PLAN_DMA = 1,      /* a transfer: work_ps on each DMA engine of the range */
    PLAN_PE = 2,       /* load_ps on the load path, then work_ps on the array */
    PLAN_PORT = 4,     /* uses the SBUF port or bus that Vector and GpSimd share */
    PLAN_PEER = 8,     /* meets the other core */
};
struct time_cost { /* of it, what only sums need */
    uint64_t least_ps; /* busy time that no overhead adds to: level count */
    uint64_t packets;  /* of a DMA */
};
struct time_plan {
    uint64_t work_ps;    /* occupies the engine; a DMA: each of its DMA engines */
    uint64_t hbm_bytes, dma_bytes;
    uint32_t latency_ps; /* from the start to the result in memory; PE: from the last column in; a DMA: to its first packet */
    uint32_t load_ps;    /* PE: LoadStationary; scalar: table load; a DMA: its issue */
    uint32_t assumed_ps; /* of all of them */
    uint32_t dep_start;  /* its dependencies: from here to the next plan's */
    uint32_t loc;        /* of the instruction */
    uint32_t peer;       /* PLAN_PEER: the other core's step */
    uint8_t cls;         /* class of completion */
    uint8_t flags;
    uint8_t banks;       /* PSUM banks that Vector or Scalar uses */
    uint8_t first_engine, engines;
    uint16_t tiles;      /* PE: bit 4 * row + column of the 32 x 32 tiles that it occupies */
};

/* A dependency: step << 3 | kind. */
enum { DEP_DATA, DEP_REUSE, DEP_EDGE, DEP_REGISTER, DEP_STATIONARY /* data that only LoadStationary needs */ };
#define DEP_STEP(dep) ((uint32_t)((dep) >> 3))
#define DEP_KIND(dep) ((int)((dep)&7))

/* ---- dependencies (deps.c): of one core ---- */
struct deps;
/* A region that an operand touches: rows are partitions (on chip) or rows of the tensor (HBM), columns bytes in them. */
struct time_box {
    uint32_t row, rows_end, col, cols_end;
};
struct deps *deps_create(const struct vtrn_prog *prog, const struct vtrn_place *place, int core);
void deps_destroy(struct deps *deps);
/* The next step's accesses: begin, then each, then end. */
void deps_begin(struct deps *deps, uint32_t step, int cls);
/* `access` is VTRN_READ, VTRN_WRITE or both. `whole`: anywhere in the tensor (its address is data). `shift`: known dynamic
 * offset in elements. */
enum vtrn_status deps_access(struct deps *deps, const struct vtrn_ap *ap, int access, bool whole, int64_t shift, bool stationary);
void deps_on(struct deps *deps, uint32_t step, int cls, int kind);
/* Appends the dependencies to `out` (64-bit words). */
enum vtrn_status deps_end(struct deps *deps, struct vtrn_buf *out);

/* ---- control (walk.c): which instruction comes next, and registers ---- */
struct walk {
    const struct vtrn_prog *prog;
    const struct vtrn_trace *trace;
    int core;
    uint32_t pc;
    size_t taken; /* values of the trace */
    struct walk_loop {
        uint32_t begin, reg;
        int64_t value, upper, step;
        bool is_while;
    } loop[VTRN_LOOP_DEPTH];
    int loops;
    struct walk_reg {
        int32_t value;
        bool known;
        uint8_t cls;
        uint32_t writer; /* step */
    } *reg;
    struct vtrn_error *err;
};
enum vtrn_status walk_init(struct walk *walk, const struct vtrn_prog *prog, int core, const struct vtrn_trace *trace, struct vtrn_error *err);
void walk_fini(struct walk *walk);
/* Executes the instruction's effect on registers and control: moves walk->pc to the next one. */
enum vtrn_status walk_step(struct walk *walk, const struct vtrn_inst *inst, uint32_t step, int cls);

/* ---- planning (plan.c) ---- */
struct time_state {
    struct vtrn_time *time;
    const struct vtrn_time_options *options;
    struct time_rates rates;
    struct time_plan *plan; /* by step; one more at the end */
    uint32_t capacity;
    struct vtrn_buf dep; /* uint64_t each */
    struct vtrn_error *err;
    uint64_t least_ps[VTRN_CORES_MAX][VTRN_STREAMS]; /* work of the compute streams: level count */
    uint8_t table[VTRN_CORES_MAX]; /* the scalar engine's function table */
};
enum vtrn_status time_plan_core(struct time_state *state, int core);
void time_plan_free(struct time_state *state);

/* The cost of an instruction: fills work, latency, load, assumed, flags, banks, engines, tiles; `cost` is zeroed before. */
void cost_step(struct time_state *state, int core, const struct vtrn_inst *inst, struct time_plan *plan, struct time_cost *cost);
void cost_dma(struct time_state *state, const struct vtrn_inst *inst, struct time_plan *plan, struct time_cost *cost);
void cost_add(const struct time_rates *rates, struct time_plan *plan, enum vtrn_fact_id fact, uint64_t ps);
/* Elements per partition, and bytes of all; no more than TIME_MUCH, so that sums and products of costs stay within 64 bits. */
#define TIME_MUCH (INT64_C(1) << 40)
static inline int64_t ap_times(int64_t a, int64_t b)
{
    if (VTRN_UNLIKELY(((uint64_t)a | (uint64_t)b) >> 31)) return b && a > TIME_MUCH / b ? TIME_MUCH : a * b;
    return a * b < TIME_MUCH ? a * b : TIME_MUCH;
}
static inline int64_t ap_free(const struct vtrn_ap *ap)
{
    int64_t elems = 1;

    for (int d = 1; d < ap->ndim; d++) elems = ap_times(elems, ap->dim[d].count);
    return elems;
}
static inline int64_t ap_bytes(const struct vtrn_ap *ap)
{
    return ap_times(ap_times(ap_free(ap), ap->dim[0].count), vtrn_dtypes[ap->dtype].size_bytes);
}
/* Which stream a step is in, and its class. */
void stream_of(const struct vtrn_prog *prog, const struct vtrn_inst *inst, int *stream_out, int *cls_out);

enum vtrn_status time_schedule(struct time_state *state); /* sched.c */
enum vtrn_status time_sum(struct time_state *state);      /* sum.c */
void time_count(struct time_state *state);                /* sum.c: the bound of level count */
#endif
