/* Public API: timings. A view of time/'s result; nothing is computed here. */
#include "api/api_int.h"

#include "time/time.h"

_Static_assert((int)VTRN_STREAMS == (int)VTRN_TIMING_STREAMS, "the public arrays by stream");
_Static_assert((int)VTRN_TIME_WAITS <= (int)VTRN_TIMING_WAITS, "the public arrays by reason");

struct vtrn_timing {
    struct vtrn_time *time;
};

void vtrn_timing_options_init_sized(struct vtrn_timing_options *options, size_t size_bytes)
{
    memset(options, 0, size_bytes);
    options->size_bytes = size_bytes;
}

static enum vtrn_status read_options(const struct vtrn_timing_options *given, struct vtrn_time_options *options, struct vtrn_error *err)
{
    struct vtrn_timing_options full = { 0 };

    if (!given) return VTRN_OK;
    VTRN_FAIL_IF(given->size_bytes < sizeof given->size_bytes, err, VTRN_INVALID, "options: call vtrn_timing_options_init first");
    api_give(&full, sizeof full, given, given->size_bytes);
    VTRN_FAIL_IF(full.level && !vtrn_time_level_find(full.level, &options->level), err, VTRN_INVALID,
                 "level \"%s\"; there are count, rule and event", full.level);
    if (full.target) options->arch = vtrn_arch_find(full.target);
    VTRN_FAIL_IF(full.target && !options->arch, err, VTRN_INVALID, "no target is called \"%s\"", full.target);
    options->static_dma = full.static_dma != 0;
    return VTRN_OK;
}

enum vtrn_status vtrn_timing_create(const struct vtrn_program *program, const struct vtrn_machine *machine,
                                    const struct vtrn_timing_options *given, struct vtrn_timing **timing_out, struct vtrn_error *err)
{
    struct vtrn_time_options options;
    struct vtrn_timing *timing;
    enum vtrn_status status;

    vtrn_time_options_init(&options);
    VTRN_TRY(read_options(given, &options, err));
    if (machine) options.trace = api_machine_trace(machine);
    timing = calloc(1, sizeof *timing);
    VTRN_FAIL_IF(!timing, err, VTRN_NOMEM, "no memory for a timing");
    status = vtrn_time_run(program->prog, &options, &timing->time, err);
    if (status < 0) free(timing);
    else *timing_out = timing;
    return status;
}

void vtrn_timing_destroy(struct vtrn_timing *timing)
{
    if (!timing) return;
    vtrn_time_destroy(timing->time);
    free(timing);
}

enum vtrn_status vtrn_timing_get(const struct vtrn_timing *timing, struct vtrn_timing_info *info, size_t info_size)
{
    const struct vtrn_time *time = timing->time;
    struct vtrn_timing_info full = { .level = vtrn_time_level_name(time->level),
                                     .target = time->arch->chip,
                                     .total_ps = time->total_ps,
                                     .span_ps = time->span_ps,
                                     .kernel_ps = time->kernel_ps,
                                     .count_ps = time->count_ps,
                                     .count_by = time->count_by ? time->count_by : "",
                                     .assumed_ps = time->assumed_ps,
                                     .steps = time->steps,
                                     .path = time->paths,
                                     .lines = time->lines,
                                     .cores = time->prog->cores };

    api_give(info, info_size, &full, sizeof full);
    return VTRN_OK;
}

static bool is_core(const struct vtrn_timing *timing, int core) { return core >= 0 && core < timing->time->prog->cores; }

enum vtrn_status vtrn_timing_stream(const struct vtrn_timing *timing, int core, int stream, struct vtrn_timing_stream_info *info,
                                    size_t info_size)
{
    const struct vtrn_time_stream *from;
    struct vtrn_timing_stream_info full;

    if (!is_core(timing, core) || stream < 0 || stream >= VTRN_STREAMS) return VTRN_INVALID;
    from = &timing->time->stream[core][stream];
    full = (struct vtrn_timing_stream_info){
        .name = vtrn_stream_name(stream), .steps = from->steps, .busy_ps = from->busy_ps, .idle_ps = from->idle_ps, .work = from->work,
        .active_ps = from->active_ps
    };
    for (int s = 0; s < VTRN_STREAMS; s++) {
        full.wait_for_ps[s] = from->wait_ps[s];
        full.wait_ps += from->wait_ps[s];
    }
    for (int w = 0; w < VTRN_TIME_WAITS; w++) full.wait_why_ps[w] = from->reason_ps[w];
    api_give(info, info_size, &full, sizeof full);
    return VTRN_OK;
}

bool vtrn_timing_why(int i, struct vtrn_timing_why_info *info, size_t info_size)
{
    struct vtrn_timing_why_info full = { vtrn_time_wait_name(i), vtrn_time_wait_doc(i) };

    if (i < 0 || i >= VTRN_TIME_WAITS) return false;
    api_give(info, info_size, &full, sizeof full);
    return true;
}

enum vtrn_status vtrn_timing_resource(const struct vtrn_timing *timing, int core, int resource, struct vtrn_timing_resource_info *info,
                                      size_t info_size)
{
    const struct vtrn_time_resource *from;
    struct vtrn_timing_resource_info full;

    if (!is_core(timing, core) || resource < 0 || resource >= VTRN_RESOURCES) return VTRN_INVALID;
    from = &timing->time->resource[core][resource];
    full = (struct vtrn_timing_resource_info){ vtrn_resource_name(resource), from->busy_ps, from->waited_ps, from->steps };
    api_give(info, info_size, &full, sizeof full);
    return VTRN_OK;
}

enum vtrn_status vtrn_timing_bytes(const struct vtrn_timing *timing, int core, struct vtrn_timing_bytes_info *info, size_t info_size)
{
    const struct vtrn_time_bytes *from;
    struct vtrn_timing_bytes_info full;

    if (!is_core(timing, core)) return VTRN_INVALID;
    from = &timing->time->bytes[core];
    full = (struct vtrn_timing_bytes_info){ from->hbm_read,  from->hbm_write,  from->sbuf_read, from->sbuf_write,
                                            from->psum_read, from->psum_write, from->dma,       from->packets };
    api_give(info, info_size, &full, sizeof full);
    return VTRN_OK;
}

enum vtrn_status vtrn_timing_memory(const struct vtrn_timing *timing, int core, int space, struct vtrn_timing_memory_info *info,
                                    size_t info_size)
{
    const struct vtrn_place_use *use;
    struct vtrn_timing_memory_info full;

    if (!is_core(timing, core) || space < 0 || space >= VTRN_PLACE_SPACES) return VTRN_INVALID;
    use = &timing->time->place->use[core][space];
    full = (struct vtrn_timing_memory_info){ .name = space == VTRN_PLACE_PSUM ? "psum" : "sbuf",
                                             .limit_bytes = use->limit_bytes,
                                             .peak_bytes = use->peak_bytes,
                                             .peak_at = use->peak_at,
                                             .spilled = use->spilled,
                                             .spilled_bytes = use->spilled_bytes };
    api_give(info, info_size, &full, sizeof full);
    return VTRN_OK;
}

enum vtrn_status vtrn_timing_fits(const struct vtrn_timing *timing, struct vtrn_error *err)
{
    return vtrn_place_check(timing->time->place, err);
}

static const char *file_of(const struct vtrn_prog *prog, uint32_t loc) { return vtrn_prog_text(prog, prog->loc[loc].file); }

enum vtrn_status vtrn_timing_line(const struct vtrn_timing *timing, uint32_t i, struct vtrn_timing_line_info *info, size_t info_size)
{
    const struct vtrn_time *time = timing->time;
    const struct vtrn_time_line *from;
    struct vtrn_timing_line_info full;

    if (i >= time->lines) return VTRN_INVALID;
    from = &time->line[i];
    full = (struct vtrn_timing_line_info){ .file = file_of(time->prog, from->loc),
                                           .line = time->prog->loc[from->loc].line,
                                           .steps = from->steps,
                                           .wait_ps = from->wait_ps,
                                           .critical_ps = from->critical_ps,
                                           .hbm_bytes = from->hbm_bytes };
    memcpy(full.busy_ps, from->busy_ps, sizeof full.busy_ps);
    memcpy(full.wait_why_ps, from->reason_ps, sizeof from->reason_ps);
    api_give(info, info_size, &full, sizeof full);
    return VTRN_OK;
}

enum vtrn_status vtrn_timing_step(const struct vtrn_timing *timing, uint32_t i, struct vtrn_timing_step_info *info, size_t info_size)
{
    const struct vtrn_time *time = timing->time;
    const struct vtrn_step *from;
    const struct vtrn_code *code;
    struct vtrn_timing_step_info full;
    uint32_t loc;

    if (!time->step || i >= time->steps) return VTRN_INVALID;
    from = &time->step[i];
    code = &time->prog->code[from->core];
    loc = vtrn_inst_loc((const uint32_t *)(const void *)code->words.data + code->start[from->pc]);
    full = (struct vtrn_timing_step_info){ .core = from->core,
                                           .stream = from->stream,
                                           .instruction = from->pc,
                                           .name = vtrn_ops[vtrn_prog_op(time->prog, from->core, from->pc)].name,
                                           .file = file_of(time->prog, loc),
                                           .line = time->prog->loc[loc].line,
                                           .ready_ps = from->ready_ps,
                                           .start_ps = from->start_ps,
                                           .end_ps = from->end_ps,
                                           .busy_ps = from->busy_ps,
                                           .why = vtrn_time_wait_name(from->wait),
                                           .cause = from->cause,
                                           .assumed_percent = from->assumed_percent };
    api_give(info, info_size, &full, sizeof full);
    return VTRN_OK;
}

uint32_t vtrn_timing_path(const struct vtrn_timing *timing, uint32_t i)
{
    return i < timing->time->paths ? timing->time->path[i] : UINT32_MAX;
}
