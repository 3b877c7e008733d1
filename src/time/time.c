/* The door of time/: runs the stages of a timing and owns what they leave behind. Names of levels, streams, waits, resources. */
#include "time/time_int.h"

const char *vtrn_time_level_name(enum vtrn_time_level level)
{
    static const char *const names[] = { "count", "rule", "event" };

    return (unsigned)level < 3 ? names[level] : "?";
}

bool vtrn_time_level_find(const char *name, enum vtrn_time_level *level_out)
{
    for (int level = 0; level < 3; level++)
        if (strcmp(name, vtrn_time_level_name((enum vtrn_time_level)level)) == 0) {
            *level_out = (enum vtrn_time_level)level;
            return true;
        }
    return false;
}

#define NAME_OF(function, LIST, ROW, most) \
    const char *function(int i) \
    { \
        static const char *const names[] = { LIST(ROW) }; \
\
        return i >= 0 && i < (most) ? names[i] : "?"; \
    }
#define SHORT(NAME, name, doc) name,
#define LONG(NAME, name, doc) doc,
NAME_OF(vtrn_stream_name, VTRN_STREAMS_LIST, SHORT, VTRN_STREAMS)
NAME_OF(vtrn_time_wait_name, VTRN_WAITS_LIST, SHORT, VTRN_TIME_WAITS)
NAME_OF(vtrn_time_wait_doc, VTRN_WAITS_LIST, LONG, VTRN_TIME_WAITS)
NAME_OF(vtrn_resource_name, VTRN_RESOURCES_LIST, SHORT, VTRN_RESOURCES)

void vtrn_time_options_init(struct vtrn_time_options *options) { *options = (struct vtrn_time_options){ .level = VTRN_TIME_EVENT }; }

static void free_steps(struct vtrn_time *time)
{
    if (time->step) vtrn_free_pages(time->step, time->step_bytes);
    time->step = NULL;
}

static enum vtrn_status run_stages(struct time_state *state)
{
    struct vtrn_time *time = state->time;

    VTRN_TRY(vtrn_place_create(time->prog, time->arch, &time->place, state->err));
    for (int core = 0; core < time->prog->cores; core++) VTRN_TRY(time_plan_core(state, core));
    state->plan[time->steps].dep_start = (uint32_t)(state->dep.size / sizeof(uint64_t));
    time_count(state);
    if (time->level != VTRN_TIME_COUNT) {
        VTRN_TRY(time_schedule(state));
        return time_sum(state);
    }
    time->span_ps = time->total_ps = time->count_ps;
    free_steps(time);
    return VTRN_OK;
}

enum vtrn_status vtrn_time_run(const struct vtrn_prog *prog, const struct vtrn_time_options *options, struct vtrn_time **time_out,
                               struct vtrn_error *err)
{
    struct vtrn_time_options defaults;
    struct time_state state = { .err = err };
    enum vtrn_status status;

    vtrn_time_options_init(&defaults);
    state.options = options ? options : &defaults;
    state.time = calloc(1, sizeof *state.time);
    VTRN_FAIL_IF(!state.time, err, VTRN_NOMEM, "no memory for a timing");
    state.time->level = state.options->level;
    state.time->prog = prog;
    state.time->arch = state.options->arch ? state.options->arch : prog->arch;
    time_rates_init(&state.rates, state.time->arch);
    state.rates.static_dma = state.options->static_dma;
    status = run_stages(&state);
    time_plan_free(&state);
    vtrn_buf_fini(&state.dep);
    if (status < 0) vtrn_time_destroy(state.time);
    else *time_out = state.time;
    return status;
}

void vtrn_time_destroy(struct vtrn_time *time)
{
    if (!time) return;
    vtrn_place_destroy(time->place);
    free_steps(time);
    free(time->path);
    free(time->line);
    free(time);
}
