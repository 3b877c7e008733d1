/* `vtrn time`: how long the chip would take for a program, and why. Tables of the public timing; no arithmetic but units and
 * shares. */
#include "cli/cli.h"

static const char help[] =
    "usage: vtrn time PROGRAM [--target CHIP] [--level LEVEL] [--static-dma] [--lines N] [--json]\n"
    "\n"
    "Predicts how long the chip takes for a program, without running it: total time, what every engine and DMA queue did and\n"
    "whom it waited for, shared resources, bytes, and the kernel's lines by their share of the critical path. Exit code 3 when\n"
    "the program cannot be timed without a run (a loop hangs on a value in memory: vtrn.profile in Python runs it).\n"
    "\n"
    "  --target CHIP   time on another chip than the program's\n"
    "  --level LEVEL   event (default): with contention; rule: without; count: work over peak rates\n"
    "  --static-dma    DMA descriptors are prepared wherever the kernel does not say\n"
    "  --lines N       so many lines of the kernel (default 15; 0: all)\n"
    "  --json          the same for programs\n"
    "\n"
    "  vtrn time kernel.vtrn\n";

static double us(uint64_t ps) { return (double)ps / 1e6; }
static double share(uint64_t part, uint64_t whole) { return whole ? (double)part * 100 / (double)whole : 0; }

/* The reason or stream that most of a wait was for. */
static int most_of(const uint64_t *ps, int count)
{
    int best = 0;

    for (int i = 1; i < count; i++)
        if (ps[i] > ps[best]) best = i;
    return ps[best] ? best : -1;
}

static const char *why_name(int i)
{
    struct vtrn_timing_why_info why;

    return i >= 0 && vtrn_timing_why(i, &why, sizeof why) ? why.name : "";
}

static const char *stream_name(const struct vtrn_timing *timing, int i)
{
    struct vtrn_timing_stream_info info;

    return i >= 0 && vtrn_timing_stream(timing, 0, i, &info, sizeof info) == VTRN_OK ? info.name : "";
}

static struct vtrn_table *stream_table(const struct vtrn_timing *timing, const struct vtrn_timing_info *total)
{
    static const struct vtrn_column columns[] = { { "core", VTRN_COLUMN_COUNT },    { "stream", VTRN_COLUMN_TEXT },
                                                  { "steps", VTRN_COLUMN_COUNT },   { "busy_us", VTRN_COLUMN_REAL },
                                                  { "busy_percent", VTRN_COLUMN_REAL }, { "active_us", VTRN_COLUMN_REAL },
                                                  { "waiting_us", VTRN_COLUMN_REAL }, { "idle_us", VTRN_COLUMN_REAL },  { "mostly_for", VTRN_COLUMN_TEXT },
                                                  { "mostly_why", VTRN_COLUMN_TEXT } };
    struct vtrn_table *table = vtrn_table_create(columns, sizeof columns / sizeof columns[0]);
    struct vtrn_timing_stream_info info;

    for (int core = 0; table && core < total->cores; core++)
        for (int s = 0; vtrn_timing_stream(timing, core, s, &info, sizeof info) == VTRN_OK; s++)
            if (info.steps)
                vtrn_table_row(table, (int64_t)core, info.name, (int64_t)info.steps, us(info.busy_ps), share(info.busy_ps, total->span_ps),
                               us(info.active_ps), us(info.wait_ps), us(info.idle_ps), stream_name(timing, most_of(info.wait_for_ps, VTRN_TIMING_STREAMS)),
                               why_name(most_of(info.wait_why_ps, VTRN_TIMING_WAITS)));
    return table;
}

static struct vtrn_table *resource_table(const struct vtrn_timing *timing, const struct vtrn_timing_info *total)
{
    static const struct vtrn_column columns[] = { { "core", VTRN_COLUMN_COUNT },        { "resource", VTRN_COLUMN_TEXT },
                                                  { "busy_us", VTRN_COLUMN_REAL },      { "busy_percent", VTRN_COLUMN_REAL },
                                                  { "waited_for_us", VTRN_COLUMN_REAL }, { "steps_that_waited", VTRN_COLUMN_COUNT } };
    struct vtrn_table *table = vtrn_table_create(columns, sizeof columns / sizeof columns[0]);
    struct vtrn_timing_resource_info info;

    for (int core = 0; table && core < total->cores; core++)
        for (int r = 0; vtrn_timing_resource(timing, core, r, &info, sizeof info) == VTRN_OK; r++)
            if (info.busy_ps || info.waited_ps)
                vtrn_table_row(table, (int64_t)core, info.name, us(info.busy_ps), share(info.busy_ps, total->span_ps), us(info.waited_ps),
                               (int64_t)info.steps);
    return table;
}

static struct vtrn_table *memory_table(const struct vtrn_timing *timing, const struct vtrn_timing_info *total)
{
    static const struct vtrn_column columns[] = { { "core", VTRN_COLUMN_COUNT },  { "memory", VTRN_COLUMN_TEXT },
                                                  { "read", VTRN_COLUMN_BYTES },  { "written", VTRN_COLUMN_BYTES },
                                                  { "peak_of_partition", VTRN_COLUMN_BYTES }, { "limit", VTRN_COLUMN_BYTES },
                                                  { "tensors_without_room", VTRN_COLUMN_COUNT } };
    struct vtrn_table *table = vtrn_table_create(columns, sizeof columns / sizeof columns[0]);
    struct vtrn_timing_memory_info memory[2];
    struct vtrn_timing_bytes_info bytes;

    for (int core = 0; table && core < total->cores; core++) {
        if (vtrn_timing_bytes(timing, core, &bytes, sizeof bytes) < 0) continue;
        for (int space = 0; space < 2; space++) vtrn_timing_memory(timing, core, space, &memory[space], sizeof memory[space]);
        vtrn_table_row(table, (int64_t)core, "hbm", (int64_t)bytes.hbm_read, (int64_t)bytes.hbm_write, (int64_t)0, (int64_t)0, (int64_t)0);
        vtrn_table_row(table, (int64_t)core, "sbuf", (int64_t)bytes.sbuf_read, (int64_t)bytes.sbuf_write, memory[0].peak_bytes,
                       memory[0].limit_bytes, (int64_t)memory[0].spilled);
        vtrn_table_row(table, (int64_t)core, "psum", (int64_t)bytes.psum_read, (int64_t)bytes.psum_write, memory[1].peak_bytes,
                       memory[1].limit_bytes, (int64_t)memory[1].spilled);
    }
    return table;
}

static struct vtrn_table *line_table(const struct vtrn_timing *timing, const struct vtrn_timing_info *total, int64_t most)
{
    static const struct vtrn_column columns[] = { { "line", VTRN_COLUMN_TEXT },      { "steps", VTRN_COLUMN_COUNT },
                                                  { "critical_us", VTRN_COLUMN_REAL }, { "critical_percent", VTRN_COLUMN_REAL },
                                                  { "busy_us", VTRN_COLUMN_REAL },   { "busiest", VTRN_COLUMN_TEXT },
                                                  { "waited_us", VTRN_COLUMN_REAL }, { "mostly_why", VTRN_COLUMN_TEXT },
                                                  { "hbm", VTRN_COLUMN_BYTES } };
    struct vtrn_table *table = vtrn_table_create(columns, sizeof columns / sizeof columns[0]);
    struct vtrn_timing_line_info info;

    for (uint32_t i = 0; table && (most == 0 || (int64_t)i < most) && vtrn_timing_line(timing, i, &info, sizeof info) == VTRN_OK; i++) {
        const char *slash = strrchr(info.file, '/');
        uint64_t busy = 0;
        char place[96] = "(unknown)";

        for (int s = 0; s < VTRN_TIMING_STREAMS; s++) busy += info.busy_ps[s];
        if (*info.file) snprintf(place, sizeof place, "%.80s:%u", slash ? slash + 1 : info.file, info.line);
        vtrn_table_row(table, place, (int64_t)info.steps, us(info.critical_ps), share(info.critical_ps, total->span_ps), us(busy),
                       stream_name(timing, most_of(info.busy_ps, VTRN_TIMING_STREAMS)), us(info.wait_ps),
                       why_name(most_of(info.wait_why_ps, VTRN_TIMING_WAITS)), (int64_t)info.hbm_bytes);
    }
    return table;
}

static enum vtrn_status print_text(const struct vtrn_timing_info *info, const char *path,
                                   struct vtrn_table *const *tables, int count, const char *fits)
{
    enum vtrn_status status = VTRN_OK;

    printf("%s on %s: %.2f us (level %s): %.2f us of work, %.2f us around the kernel\n", path, info->target, us(info->total_ps), info->level,
           us(info->span_ps), us(info->kernel_ps));
    printf("no faster than %.2f us: %s; %.0f %% of the time rests on assumed numbers\n", us(info->count_ps), info->count_by,
           share(info->assumed_ps, info->total_ps));
    if (fits) printf("does not fit: %s\n", fits);
    for (int i = 0; i < count && status >= 0; i++) {
        printf("\n");
        status = vtrn_table_print(tables[i], stdout);
    }
    return status;
}

static enum vtrn_status print_json(const struct vtrn_timing_info *info, const char *path, struct vtrn_table *const *tables, const char *fits)
{
    return vtrn_json_print(
        json_pack("{s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:s, s:I, s:I, s:b, s:s, s:o, s:o, s:o, s:o}", "file", path, "target", info->target,
                  "level", info->level, "total_ps", (json_int_t)info->total_ps, "span_ps", (json_int_t)info->span_ps, "kernel_ps",
                  (json_int_t)info->kernel_ps, "count_ps", (json_int_t)info->count_ps, "count_by", info->count_by, "assumed_ps",
                  (json_int_t)info->assumed_ps, "steps", (json_int_t)info->steps, "fits", fits == NULL, "does_not_fit", fits ? fits : "",
                  "streams", vtrn_table_json(tables[0]), "resources", vtrn_table_json(tables[1]), "memories", vtrn_table_json(tables[2]),
                  "lines", vtrn_table_json(tables[3])),
        stdout);
}

static enum vtrn_status report(const struct vtrn_timing *timing, const char *path, int64_t lines, bool json)
{
    struct vtrn_timing_info info;
    struct vtrn_error full = { 0 };
    struct vtrn_table *tables[4];
    const char *fits = NULL;
    enum vtrn_status status = VTRN_NOMEM;

    vtrn_timing_get(timing, &info, sizeof info);
    if (vtrn_timing_fits(timing, &full) < 0) fits = full.text;
    tables[0] = stream_table(timing, &info);
    tables[1] = resource_table(timing, &info);
    tables[2] = memory_table(timing, &info);
    tables[3] = line_table(timing, &info, lines);
    if (tables[0] && tables[1] && tables[2] && tables[3])
        status = json ? print_json(&info, path, tables, fits) : print_text(&info, path, tables, 4, fits);
    for (int i = 0; i < 4; i++) vtrn_table_destroy(tables[i]);
    return status;
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    struct vtrn_timing_options timing_options;
    bool json = false, static_dma = false;
    const char *target = NULL, *level = NULL;
    int64_t lines = 15;
    const struct cli_option options[] = { { "--target", 0, CLI_TEXT, &target },          { "--level", 0, CLI_TEXT, &level },
                                          { "--static-dma", 0, CLI_FLAG, &static_dma }, { "--lines", 0, CLI_NUMBER, &lines },
                                          { "--json", 0, CLI_FLAG, &json },             { 0 } };
    struct vtrn_program *program;
    struct vtrn_timing *timing;
    struct vtrn_error err = { 0 };
    enum vtrn_status status;
    int count, code = cli_options(command, argc, argv, options, &count);

    if (code >= 0) return code;
    if (count != 1) return cli_fail(command, CLI_USAGE, "name one program; see vtrn time --help");
    if (lines < 0) return cli_fail(command, CLI_USAGE, "--lines %lld: a number of lines, or 0 for all", (long long)lines);
    status = cli_load(argv[0], &program, &err);
    if (status < 0) return cli_fail_status(command, status, &err);
    vtrn_timing_options_init(&timing_options);
    timing_options.target = target;
    timing_options.level = level;
    timing_options.static_dma = static_dma;
    status = vtrn_timing_create(program, NULL, &timing_options, &timing, &err);
    if (status < 0) {
        vtrn_program_destroy(program);
        return status == VTRN_UNSUPPORTED ? cli_fail(command, CLI_PROGRAM, "%s", err.text) : cli_fail_status(command, status, &err);
    }
    status = report(timing, argv[0], lines, json);
    vtrn_timing_destroy(timing);
    vtrn_program_destroy(program);
    return cli_printed(command, status);
}

const struct cli_command cli_time = { "time", "how long the chip would take, and why", help, run };
