/* What the times of all steps add up to: who was busy, who waited for whom and why, the critical path, the kernel's lines.
 * Reads what sched.c wrote; changes no time. */
#include "time/time_int.h"

/* ---------------------------------------------------------------- level count */
static uint64_t at_least(struct vtrn_time *time, uint64_t ps, const char *by)
{
    if (ps > time->count_ps || !time->count_by) {
        time->count_ps = ps;
        time->count_by = by;
    }
    return ps;
}

void time_count(struct time_state *state)
{
    struct vtrn_time *time = state->time;
    const struct time_rates *rates = &state->rates;
    uint64_t hbm_ps = 0;

    for (int c = 0; c < time->prog->cores; c++) {
        uint64_t engines = time_scale(time->bytes[c].dma, rates->dma_mega) / TIME_DMA_ENGINES;

        for (int s = 0; s < VTRN_STREAMS; s++) at_least(time, state->least_ps[c][s], vtrn_stream_name(s));
        at_least(time, engines, vtrn_resource_name(VTRN_RESOURCE_DMA_ENGINES));
        at_least(time, time_scale(time->bytes[c].dma, rates->sustained_mega), vtrn_resource_name(VTRN_RESOURCE_DMA_TOTAL));
    }
    for (int c = 0; c < time->prog->cores; c++) hbm_ps += time_scale(time->bytes[c].hbm_read + time->bytes[c].hbm_write, rates->hbm_mega);
    at_least(time, hbm_ps, vtrn_resource_name(VTRN_RESOURCE_HBM));
}

/* ---------------------------------------------------------------- streams */
struct active { /* the time in which a step keeps its stream at work */
    uint64_t start, end;
};

static struct active active_of(const struct vtrn_step *step)
{
    if (vtrn_stream_is_dma(step->stream)) return (struct active){ step->end_ps - step->busy_ps, step->end_ps };
    return (struct active){ step->start_ps, step->start_ps + step->busy_ps };
}

static void add_step(struct vtrn_time *time, const struct vtrn_step *step, struct vtrn_time_line *line, uint64_t *busy_until, uint64_t *active_until,
                     bool first)
{
    struct vtrn_time_stream *stream = &time->stream[step->core][step->stream];
    struct active active = active_of(step);
    uint64_t gap = active.start > *busy_until ? active.start - *busy_until : 0;
    uint64_t from = active.start > *busy_until ? active.start : *busy_until;
    uint64_t busy = active.end > from ? active.end - from : 0;

    if (step->end_ps > *active_until) {
        stream->active_ps += step->end_ps - (active.start > *active_until ? active.start : *active_until);
        *active_until = step->end_ps;
    }
    stream->busy_ps += busy;
    line->busy_ps[step->stream] += busy;
    if (first) {
        stream->idle_ps += gap;
    } else if (gap) {
        stream->wait_ps[step->cause != NO_STEP ? time->step[step->cause].stream : step->stream] += gap;
        stream->reason_ps[step->wait] += gap;
        line->wait_ps += gap;
        line->reason_ps[step->wait] += gap;
    }
    if (active.end > *busy_until) *busy_until = active.end;
}

static void add_steps(struct time_state *state, struct vtrn_time_line *line)
{
    struct vtrn_time *time = state->time;
    uint64_t busy_until[VTRN_CORES_MAX][VTRN_STREAMS] = { { 0 } }, active_until[VTRN_CORES_MAX][VTRN_STREAMS] = { { 0 } };
    bool seen[VTRN_CORES_MAX][VTRN_STREAMS] = { { false } };

    for (uint32_t i = 0; i < time->steps; i++) {
        struct vtrn_step *step = &time->step[i];
        uint32_t loc = state->plan[i].loc;
        struct vtrn_time_line *its = &line[loc < time->prog->locs ? loc : 0];

        its->steps++;
        its->hbm_bytes += state->plan[i].hbm_bytes;
        add_step(time, step, its, &busy_until[step->core][step->stream], &active_until[step->core][step->stream],
                 !seen[step->core][step->stream]);
        seen[step->core][step->stream] = true;
        if (step->end_ps > time->span_ps) time->span_ps = step->end_ps;
    }
    if (time->span_ps < time->count_ps) time->span_ps = time->count_ps; /* level rule shares nothing: counting knows better */
    for (int c = 0; c < time->prog->cores; c++)
        for (int s = 0; s < VTRN_STREAMS; s++) time->stream[c][s].idle_ps += time->span_ps - busy_until[c][s];
}

/* ---------------------------------------------------------------- critical path */
/* From the last end back to the kernel's begin: each step's cause is what it waited for last. The time between a cause's end
 * and the next one's counts to the next. */
static enum vtrn_status find_path(struct time_state *state, struct vtrn_time_line *line)
{
    struct vtrn_time *time = state->time;
    uint32_t last = 0, count = 0, at;

    for (uint32_t i = 1; i < time->steps; i++)
        if (time->step[i].end_ps > time->step[last].end_ps) last = i;
    for (at = last; at != NO_STEP; at = time->step[at].cause) count++;
    time->path = malloc(((size_t)count + 1) * sizeof *time->path);
    VTRN_FAIL_IF(!time->path, state->err, VTRN_NOMEM, "no memory for a critical path of %u steps", count);
    time->paths = count;
    for (at = last; at != NO_STEP; at = time->step[at].cause) time->path[--count] = at;
    for (uint32_t i = 0; i < time->paths; i++) {
        const struct vtrn_step *step = &time->step[time->path[i]];
        const struct vtrn_step *next = i + 1 < time->paths ? &time->step[time->path[i + 1]] : NULL;
        uint64_t begin = i ? step->start_ps : 0, end = next ? next->start_ps : step->end_ps, length = end > begin ? end - begin : 0;
        uint32_t loc = state->plan[time->path[i]].loc;

        line[loc < time->prog->locs ? loc : 0].critical_ps += length;
        time->assumed_ps += length / 100 * step->assumed_percent;
    }
    return VTRN_OK;
}

/* ---------------------------------------------------------------- lines */
static int most_critical_first(const void *a, const void *b)
{
    const struct vtrn_time_line *left = a, *right = b;

    if (left->critical_ps != right->critical_ps) return left->critical_ps > right->critical_ps ? -1 : 1;
    return left->loc < right->loc ? -1 : left->loc > right->loc;
}

/* Locations are interned by a small cache and may occur twice: lines are merged by file and line. */
static void merge(struct vtrn_time_line *into, const struct vtrn_time_line *from)
{
    into->steps += from->steps;
    into->wait_ps += from->wait_ps;
    into->critical_ps += from->critical_ps;
    into->hbm_bytes += from->hbm_bytes;
    into->macs += from->macs;
    for (int s = 0; s < VTRN_STREAMS; s++) into->busy_ps[s] += from->busy_ps[s];
    for (int w = 0; w < VTRN_TIME_WAITS; w++) into->reason_ps[w] += from->reason_ps[w];
}

struct line_key {
    uint64_t place; /* file << 32 | line */
    uint32_t loc;
};
static int by_file_and_line(const void *a, const void *b)
{
    const struct line_key *left = a, *right = b;

    if (left->place != right->place) return left->place < right->place ? -1 : 1;
    return left->loc < right->loc ? -1 : left->loc > right->loc;
}

static enum vtrn_status gather_lines(struct time_state *state, struct vtrn_time_line *line)
{
    struct vtrn_time *time = state->time;
    const struct vtrn_prog *prog = time->prog;
    struct line_key *key = malloc(((size_t)prog->locs + 1) * sizeof *key);
    uint32_t count = 0, kept = 0;

    VTRN_FAIL_IF(!key, state->err, VTRN_NOMEM, "no memory for %u lines", prog->locs);
    for (uint32_t l = 0; l < prog->locs; l++) {
        line[l].loc = l;
        if (line[l].steps) key[count++] = (struct line_key){ (uint64_t)prog->loc[l].file << 32 | prog->loc[l].line, l };
    }
    qsort(key, count, sizeof *key, by_file_and_line);
    for (uint32_t k = 0; k < count; k++) {
        if (k && key[k].place == key[k - 1].place) {
            merge(&line[key[k - 1].loc], &line[key[k].loc]);
            key[k].loc = key[k - 1].loc;
        }
    }
    time->line = malloc(((size_t)count + 1) * sizeof *time->line);
    if (time->line)
        for (uint32_t k = 0; k < count; k++)
            if (!k || key[k].loc != key[k - 1].loc) time->line[kept++] = line[key[k].loc];
    free(key);
    VTRN_FAIL_IF(!time->line, state->err, VTRN_NOMEM, "no memory for %u lines", count);
    time->lines = kept;
    qsort(time->line, kept, sizeof *time->line, most_critical_first);
    return VTRN_OK;
}

enum vtrn_status time_sum(struct time_state *state)
{
    struct vtrn_time *time = state->time;
    const struct vtrn_arch *arch = state->rates.arch;
    struct vtrn_time_line *line = calloc((size_t)time->prog->locs + 1, sizeof *line);
    enum vtrn_status status;

    VTRN_FAIL_IF(!line, state->err, VTRN_NOMEM, "no memory for %u lines", time->prog->locs);
    add_steps(state, line);
    status = time->steps ? find_path(state, line) : VTRN_OK;
    if (status >= 0) status = gather_lines(state, line);
    free(line);
    for (int c = 0; c < VTRN_CORES_MAX; c++) time->resource[c][VTRN_RESOURCE_DMA_ENGINES].busy_ps /= TIME_DMA_ENGINES;
    time->kernel_ps = (uint64_t)arch->kernel_ps;
    if (state->rates.assumed[VTRN_FACT_kernel_ps]) time->assumed_ps += time->kernel_ps;
    time->total_ps = time->span_ps + time->kernel_ps;
    return status;
}
