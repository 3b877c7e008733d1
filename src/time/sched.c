/* The event engine: gives every step its times.
 *
 * Streams issue in order. At each turn the step that can start first among the heads of all streams is taken (ties: the lower
 * core, then the lower stream), so shared resources are granted in the order of time, first come first served. A head whose
 * dependencies have no end yet is asked again when they have. No step's start moves once it is set; the same program gives the
 * same times on every machine.
 *
 * At level rule nothing is shared: a transfer has its DMA engines to itself, ports and banks are free, the clock is full. */
#include "time/time_int.h"

enum { BANKS = 8, PE_TILES = 16, ALL_TILES = (1 << PE_TILES) - 1 };
#define NOT_YET UINT64_MAX

struct holder { /* a resource that one step at a time holds */
    uint64_t free_ps;
    uint32_t step;
};
struct head { /* the next step of a stream */
    uint64_t ready_ps; /* NOT_YET: a dependency has no end */
    uint32_t at, end;  /* in the stream's list */
    uint32_t blocker;  /* a step that must be scheduled before it is worth asking again */
    uint32_t cause;
    uint8_t wait, core, stream;
    bool arrived;      /* at a rendezvous, without its peer */
    uint64_t free_ps;  /* the stream takes its next instruction */
    uint32_t last;     /* the step before */
};
struct gate { /* the tensor engine's clock */
    uint64_t window_ps, at; /* at: number of the window that `busy` is of */
    uint64_t busy_ps;
    bool half;              /* the window `at` runs at the low rate */
};
struct core {
    struct head head[VTRN_STREAMS];
    uint64_t class_end[TIME_CLASSES]; /* completion is in order within a class */
    struct holder dma[TIME_DMA_ENGINES], dma_total, issue, port, bank[BANKS];
    uint8_t bank_stream[BANKS], port_stream;
    struct pe_tile { /* a 32 x 32 tile of the tensor engine */
        uint64_t load_free, free, start;
    } tile[PE_TILES];
    bool tiles_alike; /* the last product took the whole array: tile[0] stands for all */
    struct gate gate;
};
struct sched {
    struct time_state *state;
    struct vtrn_time *time;
    uint32_t *order; /* steps by core and stream */
    struct core core[VTRN_CORES_MAX];
    struct holder hbm;
    bool event;
};

/* ---------------------------------------------------------------- when a head is ready */
static void later(uint64_t ps, int wait, uint32_t cause, struct head *head)
{
    if (ps <= head->ready_ps) return;
    head->ready_ps = ps;
    head->wait = (uint8_t)wait;
    head->cause = cause;
}

static uint64_t after(const struct sched *sched, uint32_t step, uint32_t dep)
{
    const struct vtrn_step *from = &sched->time->step[dep], *to = &sched->time->step[step];
    bool waits = from->stream != to->stream && !(sched->state->plan[step].flags & PLAN_DMA); /* dma_start_ps has it */

    return from->end_ps + (waits ? (uint64_t)sched->state->rates.arch->semaphore_ps : 0);
}

static int wait_of(int kind)
{
    static const uint8_t waits[] = { [DEP_DATA] = VTRN_TIME_WAIT_DATA, [DEP_REUSE] = VTRN_TIME_WAIT_REUSE, [DEP_EDGE] = VTRN_TIME_WAIT_EDGE,
                                     [DEP_REGISTER] = VTRN_TIME_WAIT_REGISTER, [DEP_STATIONARY] = VTRN_TIME_WAIT_DATA };

    return waits[kind];
}

static void look_at(struct sched *sched, int c, struct head *head)
{
    uint32_t step = sched->order[head->at];
    const struct time_plan *plan = &sched->state->plan[step];
    const uint64_t *deps = (const uint64_t *)(const void *)sched->state->dep.data;

    if (head->blocker != NO_STEP && sched->time->step[head->blocker].end_ps == NOT_YET) return;
    for (uint32_t d = plan->dep_start; d < plan[1].dep_start; d++)
        if (sched->time->step[DEP_STEP(deps[d])].end_ps == NOT_YET) {
            head->blocker = DEP_STEP(deps[d]);
            return;
        }
    head->ready_ps = 0;
    head->cause = NO_STEP;
    head->wait = VTRN_TIME_WAIT_NONE;
    later(head->free_ps, VTRN_TIME_WAIT_ORDER, head->last, head);
    for (uint32_t d = plan->dep_start; d < plan[1].dep_start; d++)
        later(after(sched, step, DEP_STEP(deps[d])), wait_of(DEP_KIND(deps[d])), DEP_STEP(deps[d]), head);
    if (plan->flags & PLAN_PEER) { /* ready when both are */
        struct head *other = NULL;

        sched->time->step[step].ready_ps = head->ready_ps;
        for (int s = 0; s < VTRN_STREAMS && plan->peer != NO_STEP; s++) {
            struct head *there = &sched->core[1 - c].head[s];

            if (there->at < there->end && sched->order[there->at] == plan->peer && there->arrived) other = there;
        }
        head->arrived = true;
        if (!other) {
            head->blocker = NO_STEP;
            head->ready_ps = NOT_YET;
            return;
        }
        later(sched->time->step[plan->peer].ready_ps, VTRN_TIME_WAIT_PEER, plan->peer, head);
        if (head->wait != VTRN_TIME_WAIT_PEER) {
            other->wait = VTRN_TIME_WAIT_PEER;
            other->cause = step;
        }
        other->ready_ps = head->ready_ps;
    }
}

/* ---------------------------------------------------------------- shared resources */
static void wait_for(struct vtrn_step *step, const struct holder *holder, int wait)
{
    if (holder->free_ps <= step->start_ps) return;
    step->start_ps = holder->free_ps;
    step->cause = holder->step;
    step->wait = (uint8_t)wait;
}

static void count_wait(struct sched *sched, int c, int resource, uint64_t from, uint64_t to)
{
    struct vtrn_time_resource *r = &sched->time->resource[c][resource];

    if (to <= from) return;
    r->waited_ps += to - from;
    r->steps++;
}

/* Full-rate time `work` of the tensor engine from `start`: the end, with windows at the low rate. */
static uint64_t run_gated(struct sched *sched, int c, uint64_t start, uint64_t work)
{
    struct gate *gate = &sched->core[c].gate;
    const struct vtrn_arch *arch = sched->state->rates.arch;
    uint64_t low = (uint64_t)arch->pe_gate_rate_percent, now = start;

    if (!sched->event || low >= 100) return start + work;
    while (work) {
        uint64_t window = now / gate->window_ps, left = (window + 1) * gate->window_ps - now, rate, span;

        if (gate->at == NOT_YET || window > gate->at) { /* what the window before it saw decides */
            gate->half = gate->at == NOT_YET || window != gate->at + 1 || gate->busy_ps * 100 < gate->window_ps * (uint64_t)arch->pe_gate_busy_percent;
            gate->at = window;
            gate->busy_ps = 0;
        }
        rate = gate->half ? low : 100;
        span = (work * 100 + rate - 1) / rate;
        if (span > left) span = left;
        sched->time->resource[c][VTRN_RESOURCE_PE_HALF].busy_ps += gate->half ? span - span * rate / 100 : 0;
        gate->busy_ps += span;
        work -= span * rate / 100 < work ? span * rate / 100 : work;
        now += span;
    }
    return now;
}

static void start_pe(struct sched *sched, int c, struct vtrn_step *step, const struct time_plan *plan, uint64_t stationary_ps)
{
    struct core *core = &sched->core[c];
    const struct vtrn_arch *arch = sched->state->rates.arch;
    uint64_t latency = (uint64_t)arch->pe_load_ps + time_scale((uint64_t)arch->pe_fill_cycles, sched->state->rates.mega[VTRN_STREAM_TENSOR]);
    uint64_t load = stationary_ps + latency, start = step->ready_ps, end;
    uint32_t before = core->head[VTRN_STREAM_TENSOR].last;
    uint16_t tiles = plan->tiles;

    if (core->tiles_alike && tiles == ALL_TILES) tiles = 1;
    else if (core->tiles_alike)
        for (int t = 1; t < PE_TILES; t++) core->tile[t] = core->tile[0];
    core->tiles_alike = plan->tiles == ALL_TILES;
    /* The next stationary tile is loaded behind the running product, one ahead and not two (A2); reading it begins earlier. */
    for (int t = 0; tiles >> t; t++) {
        if (!(tiles >> t & 1)) continue;
        if (core->tile[t].load_free > load) load = core->tile[t].load_free;
        if (core->tile[t].start > load) load = core->tile[t].start;
        if (core->tile[t].free > start) start = core->tile[t].free;
    }
    load += plan->load_ps;
    if (load > start) start = load;
    if (start > step->ready_ps && before != NO_STEP && sched->time->step[before].start_ps + sched->time->step[before].busy_ps > step->ready_ps) {
        step->wait = VTRN_TIME_WAIT_ORDER; /* the array or the load path was at work */
        step->cause = before;
    }
    end = run_gated(sched, c, start, plan->work_ps);
    for (int t = 0; tiles >> t; t++)
        if (tiles >> t & 1) core->tile[t] = (struct pe_tile){ load, end, start };
    step->start_ps = start;
    step->busy_ps = end - start;
    step->end_ps = end + plan->latency_ps;
    core->head[VTRN_STREAM_TENSOR].free_ps = step->ready_ps + (uint64_t)arch->sequencer_ps;
}

static void start_engine(struct sched *sched, int c, uint32_t at, struct vtrn_step *step, const struct time_plan *plan)
{
    struct core *core = &sched->core[c];
    bool shared = step->stream == VTRN_STREAM_VECTOR || step->stream == VTRN_STREAM_SCALAR;

    step->start_ps = step->ready_ps + plan->load_ps;
    if (sched->event && (plan->flags & PLAN_PORT)) {
        uint64_t from = step->start_ps;

        if (core->port_stream != step->stream) wait_for(step, &core->port, VTRN_TIME_WAIT_PORT);
        count_wait(sched, c, VTRN_RESOURCE_SBUF_PORT, from, step->start_ps);
    }
    for (int b = 0; b < BANKS && sched->event && shared && plan->banks; b++) {
        uint64_t from = step->start_ps;

        if (!(plan->banks >> b & 1) || core->bank_stream[b] == step->stream) continue;
        wait_for(step, &core->bank[b], VTRN_TIME_WAIT_BANK);
        count_wait(sched, c, VTRN_RESOURCE_PSUM_PORT, from, step->start_ps);
    }
    step->busy_ps = plan->work_ps;
    step->end_ps = step->start_ps + plan->latency_ps;
    core->head[step->stream].free_ps = step->start_ps + plan->work_ps;
    if (plan->flags & PLAN_PORT) {
        core->port = (struct holder){ step->start_ps + plan->work_ps, at };
        core->port_stream = step->stream;
        sched->time->resource[c][VTRN_RESOURCE_SBUF_PORT].busy_ps += plan->work_ps;
    }
    for (int b = 0; b < BANKS && shared; b++)
        if (plan->banks >> b & 1) {
            core->bank[b] = (struct holder){ step->start_ps + plan->work_ps, at };
            core->bank_stream[b] = step->stream;
        }
    if (shared && plan->banks) sched->time->resource[c][VTRN_RESOURCE_PSUM_PORT].busy_ps += plan->work_ps;
}

/* A bandwidth as a server: takes `ps` for the transfer; returns when it is through. *before_out: the step that kept it busy. */
static uint64_t serve(struct holder *server, uint64_t from, uint64_t ps, uint32_t at, uint32_t *before_out)
{
    *before_out = server->free_ps > from ? server->step : NO_STEP;
    server->free_ps = (server->free_ps > from ? server->free_ps : from) + ps;
    server->step = at;
    return server->free_ps;
}

/* DMAs that name no engine take turns at being issued, in the order of time. */
static uint64_t issue_dma(struct sched *sched, int c, uint32_t at, struct vtrn_step *step, const struct time_plan *plan)
{
    struct holder *issue = &sched->core[c].issue;
    uint64_t when = step->ready_ps;

    if (!sched->event || !vtrn_stream_is_dma(step->stream)) return when;
    if (issue->free_ps > when) {
        when = issue->free_ps;
        step->wait = VTRN_TIME_WAIT_ISSUE;
        step->cause = issue->step;
    }
    count_wait(sched, c, VTRN_RESOURCE_DMA_ISSUE, step->ready_ps, when);
    sched->time->resource[c][VTRN_RESOURCE_DMA_ISSUE].busy_ps += plan->load_ps;
    *issue = (struct holder){ when + plan->load_ps, at };
    return when;
}

static void start_dma(struct sched *sched, int c, uint32_t at, struct vtrn_step *step, const struct time_plan *plan)
{
    struct core *core = &sched->core[c];
    const struct time_rates *rates = &sched->state->rates;
    uint64_t issue = issue_dma(sched, c, at, step, plan), first = issue + plan->latency_ps, begin = first, done = 0, through;
    uint64_t total_ps = time_scale(plan->dma_bytes, rates->sustained_mega), hbm_ps = time_scale(plan->hbm_bytes, rates->hbm_mega);
    uint32_t before = NO_STEP;

    core->head[step->stream].free_ps = issue + plan->load_ps;
    if (!sched->event) {
        done = plan->work_ps > total_ps ? plan->work_ps : total_ps;
        done = first + (done > hbm_ps ? done : hbm_ps);
    } else {
        for (int e = plan->first_engine; e < plan->first_engine + plan->engines; e++) {
            uint64_t from = core->dma[e].free_ps > first ? core->dma[e].free_ps : first;

            if (from > begin) {
                begin = from;
                before = core->dma[e].step;
            }
            core->dma[e] = (struct holder){ from + plan->work_ps, at };
            if (from + plan->work_ps > done) done = from + plan->work_ps;
        }
        if (before != NO_STEP) {
            step->cause = before;
            step->wait = VTRN_TIME_WAIT_ENGINE;
        }
        count_wait(sched, c, VTRN_RESOURCE_DMA_ENGINES, first, begin);
        sched->time->resource[c][VTRN_RESOURCE_DMA_ENGINES].busy_ps += plan->work_ps * plan->engines;
        for (int server = 0; server < 2; server++) {
            int resource = server ? VTRN_RESOURCE_HBM : VTRN_RESOURCE_DMA_TOTAL;

            through = serve(server ? &sched->hbm : &core->dma_total, first, server ? hbm_ps : total_ps, at, &before);
            sched->time->resource[c][resource].busy_ps += server ? hbm_ps : total_ps;
            if (through <= done) continue;
            count_wait(sched, c, resource, done, through);
            if (through - done > begin - first && before != NO_STEP) {
                step->cause = before;
                step->wait = VTRN_TIME_WAIT_BANDWIDTH;
            }
            done = through;
        }
    }
    step->start_ps = begin - plan->latency_ps;
    step->end_ps = done;
    step->busy_ps = done - begin;
}

/* ---------------------------------------------------------------- one step */
static uint64_t stationary_ready(const struct sched *sched, uint32_t at, uint64_t ready)
{
    const struct time_plan *plan = &sched->state->plan[at];
    const uint64_t *deps = (const uint64_t *)(const void *)sched->state->dep.data;
    uint64_t when = sched->core[sched->time->step[at].core].head[VTRN_STREAM_TENSOR].free_ps;

    for (uint32_t d = plan->dep_start; d < plan[1].dep_start; d++) {
        uint64_t ps;

        if (DEP_KIND(deps[d]) != DEP_STATIONARY) continue;
        ps = after(sched, at, DEP_STEP(deps[d]));
        if (ps > when) when = ps;
    }
    return when < ready ? when : ready;
}

static void start_step(struct sched *sched, int c, int s)
{
    struct core *core = &sched->core[c];
    struct head *head = &core->head[s];
    uint32_t at = sched->order[head->at];
    struct vtrn_step *step = &sched->time->step[at];
    const struct time_plan *plan = &sched->state->plan[at];
    uint64_t *in_order = &core->class_end[plan->cls];

    step->ready_ps = head->ready_ps;
    step->wait = head->wait;
    step->cause = head->cause;
    if (plan->flags & PLAN_DMA) start_dma(sched, c, at, step, plan);
    else if (plan->flags & PLAN_PE) start_pe(sched, c, step, plan, stationary_ready(sched, at, head->ready_ps));
    else start_engine(sched, c, at, step, plan);
    if (step->end_ps < *in_order) step->end_ps = *in_order;
    *in_order = step->end_ps;
    if (plan->assumed_ps) {
        uint64_t length = step->end_ps - step->start_ps, share = length ? (uint64_t)plan->assumed_ps * 100 / length : 0;

        step->assumed_percent = (uint8_t)(share > 100 ? 100 : share);
    }
    head->last = at;
    head->at++;
    head->ready_ps = NOT_YET;
    head->blocker = NO_STEP;
    head->arrived = false;
}

/* ---------------------------------------------------------------- all steps */
static void fill_order(struct sched *sched)
{
    const struct vtrn_time *time = sched->time;
    uint32_t at = 0;

    for (int c = 0; c < time->prog->cores; c++)
        for (int s = 0; s < VTRN_STREAMS; s++) {
            struct head *head = &sched->core[c].head[s];

            *head = (struct head){ .ready_ps = NOT_YET, .at = at, .end = at, .blocker = NO_STEP, .cause = NO_STEP, .last = NO_STEP };
            at += (uint32_t)time->stream[c][s].steps;
        }
    for (uint32_t i = 0; i < time->steps; i++) {
        struct head *head = &sched->core[time->step[i].core].head[time->step[i].stream];

        sched->order[head->end++] = i;
        time->step[i].end_ps = NOT_YET;
    }
}

/* The k-th rendezvous of a core meets the k-th of the other. */
static void pair_peers(struct sched *sched)
{
    const struct vtrn_time *time = sched->time;
    uint32_t other = time->core_steps[0];

    for (uint32_t i = 0; i < time->core_steps[0]; i++) {
        if (!(sched->state->plan[i].flags & PLAN_PEER)) continue;
        while (other < time->steps && !(sched->state->plan[other].flags & PLAN_PEER)) other++;
        if (other >= time->steps) {
            sched->state->plan[i].peer = NO_STEP;
            continue;
        }
        sched->state->plan[i].peer = other;
        sched->state->plan[other++].peer = i;
    }
    for (; other < time->steps && time->prog->cores > 1; other++)
        if (sched->state->plan[other].flags & PLAN_PEER) sched->state->plan[other].peer = NO_STEP;
}

static enum vtrn_status fail_stuck(struct sched *sched)
{
    for (int c = 0; c < sched->time->prog->cores; c++)
        for (int s = 0; s < VTRN_STREAMS; s++) {
            const struct head *head = &sched->core[c].head[s];
            struct vtrn_inst inst;
            char where[256];

            if (head->at == head->end || !head->arrived) continue;
            vtrn_prog_get(sched->time->prog, c, sched->time->step[sched->order[head->at]].pc, &inst);
            vtrn_prog_where(sched->time->prog, &inst, where, sizeof where);
            return vtrn_fail(sched->state->err, VTRN_DEADLOCK, "%s: core %d waits for core %d, which never comes to such a place", where, c,
                             1 - c);
        }
    VTRN_ASSERT(!"a step waits for one behind it"); /* dependencies point backwards */
    return VTRN_DEADLOCK;
}

static enum vtrn_status run_steps(struct sched *sched)
{
    struct head *live[VTRN_CORES_MAX * VTRN_STREAMS]; /* by core, then by stream: who wins a tie */
    int lives = 0;

    for (int c = 0; c < sched->time->prog->cores; c++)
        for (int s = 0; s < VTRN_STREAMS; s++) {
            struct head *head = &sched->core[c].head[s];

            head->core = (uint8_t)c;
            head->stream = (uint8_t)s;
            if (head->at < head->end) live[lives++] = head;
        }
    for (uint32_t done = 0; done < sched->time->steps; done++) {
        int best_at = -1;
        uint64_t best = NOT_YET;

        for (int i = 0; i < lives; i++) {
            struct head *head = live[i];

            if (head->ready_ps == NOT_YET) look_at(sched, head->core, head);
            if (head->ready_ps < best) {
                best = head->ready_ps;
                best_at = i;
            }
        }
        if (best_at < 0) return fail_stuck(sched);
        start_step(sched, live[best_at]->core, live[best_at]->stream);
        if (live[best_at]->at == live[best_at]->end) {
            for (lives--; best_at < lives; best_at++) live[best_at] = live[best_at + 1];
        }
    }
    return VTRN_OK;
}

enum vtrn_status time_schedule(struct time_state *state)
{
    struct vtrn_time *time = state->time;
    struct sched *sched = calloc(1, sizeof *sched);
    enum vtrn_status status;

    if (sched) sched->order = malloc(((size_t)time->steps + 1) * sizeof *sched->order);
    if (!sched || !sched->order) {
        free(sched);
        return vtrn_fail(state->err, VTRN_NOMEM, "no memory for the order of %u steps", time->steps);
    }
    sched->state = state;
    sched->time = time;
    sched->event = time->level == VTRN_TIME_EVENT;
    sched->hbm.step = NO_STEP;
    for (int c = 0; c < time->prog->cores; c++) {
        struct core *core = &sched->core[c];

        core->gate.window_ps = time_scale((uint64_t)state->rates.arch->pe_gate_window_cycles, state->rates.mega[VTRN_STREAM_TENSOR]);
        core->gate.at = NOT_YET;
        core->tiles_alike = true;
        core->dma_total.step = NO_STEP;
    }
    fill_order(sched);
    pair_peers(sched);
    status = run_steps(sched);
    free(sched->order);
    free(sched);
    return status;
}
