/* `vtrn run`: a recorded program runs here, on the C library alone; anything else is a Python script and goes to Python.
 * Inputs are .npy files or generated; results are named by digest, so that two runs can be compared at a glance. */
#include <errno.h>
#include <sys/stat.h>

#include "cli/cli.h"

static const char help[] =
    "usage: vtrn run [--target CHIP] [--threads N] [--seed N] SCRIPT.py [ARGUMENTS]\n"
    "       vtrn run [--target CHIP] [--threads N] [--seed N] -m MODULE [ARGUMENTS]\n"
    "       vtrn run PROGRAM [--input NAME=FILE.npy]... [--fill HOW] [--output DIR] [--threads N] [--seed N] [--json]\n"
    "\n"
    "Scripts and modules run unmodified in Python; `import nki` finds vtrn's. Everything behind the script's name is for\n"
    "the script, and its exit code is passed on. CHIP is trn1, inf2, trn2 or trn3 (default: the environment variables\n"
    "VTRN_TARGET, NEURON_PLATFORM_TARGET_OVERRIDE, NKI_NC_VERSION, then trn3).\n"
    "\n"
    "A PROGRAM (.vtrn, or assembly text .vt) was recorded from a kernel by vtrn.trace(...).save(...). It runs without\n"
    "Python, gives the same bits as the kernel, and prints each result with its shape, dtype and digest (FNV-1a 64).\n"
    "\n"
    "  -i, --input NAME=FILE   the bytes of an input; NAME may be its position, counted from 0\n"
    "      --fill HOW          inputs without a file: zeros, or random (seeded; floats within -1 .. 1)\n"
    "  -o, --output DIR        write each result to DIR/NAME.npy\n"
    "      --threads N         host threads (default: all)\n"
    "      --seed N            of random inputs, stochastic rounding and the chip's generators (default 0)\n"
    "      --json              results and counters as JSON\n"
    "\n"
    "  vtrn run kernel.py\n"
    "  vtrn run --target trn2 -m pytest tests\n"
    "  vtrn run matmul.vtrn --input a=a.npy --input b=b.npy --output results\n"
    "  vtrn run matmul.vtrn --fill random --json\n";

struct job {
    const struct cli_command *command;
    struct vtrn_program *program;
    struct vtrn_program_info info;
    struct vtrn_machine *machine;
    void **input; /* bytes of each input, ours */
    struct cli_list files; /* NAME=FILE */
    const char *fill, *output;
    int64_t threads, seed;
    bool json;
    double seconds;
    struct vtrn_error err;
};

/* ---------------------------------------------------------------- script or program */
/* The first positional argument, when it names a program; NULL: a script or a module, for Python. */
static const char *program_argument(int argc, char **argv)
{
    static const char *const valued[] = { "--input", "-i", "--output", "-o", "--fill", "--threads", "--seed", "--target" };

    for (int i = 1; i < argc; i++) {
        if (argv[i][0] != '-') return cli_is_program(argv[i]) ? argv[i] : NULL;
        if (strcmp(argv[i], "-m") == 0) return NULL;
        for (size_t k = 0; k < sizeof valued / sizeof valued[0]; k++)
            if (strcmp(argv[i], valued[k]) == 0) {
                i++;
                break;
            }
    }
    return NULL;
}

static bool asks_for_help(int argc, char **argv)
{
    return argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0;
}

/* ---------------------------------------------------------------- inputs */
/* SplitMix64: fill bytes need to differ and to repeat, nothing more. */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* Random bits of an element: `keep` of them as they come, and an exponent of base .. base + vary. Floats: any sign and mantissa,
 * an exponent below 1, so that nothing overflows; others: 0 .. 7, so that they may be indices of something. */
struct filler {
    const char *dtype;
    uint32_t keep, base, vary, shift;
};
static const struct filler fillers[] = {
    { "float32", 0x807fffff, 123, 3, 23 },
    { "tfloat32", 0x807fffff, 123, 3, 23 },
    { "bfloat16", 0x807f, 123, 3, 7 },
    { "float16", 0x83ff, 11, 3, 10 },
    { "float8_e5m2", 0x83, 11, 3, 2 },
    { "float8_e4m3", 0x87, 3, 3, 3 },
    { "float8_e4m3fn", 0x87, 3, 3, 3 },
    { "float8_e8m0fnu", 0, 124, 3, 0 },
    { "float8_e5m2_x4", 0x83838383, 0x30303030, 0, 0 },   /* exponent 12 in each byte: 1/8 */
    { "float8_e4m3fn_x4", 0x87878787, 0x20202020, 0, 0 }, /* exponent 4: 1/8 */
    { "float4_e2m1fn_x4", 0xffff, 0, 0, 0 },              /* every nibble is a number */
    { "bool_", 1, 0, 0, 0 },
};
static const struct filler small_integers = { NULL, 7, 0, 0, 0 };

static const struct filler *filler_of(const char *dtype)
{
    for (size_t i = 0; i < sizeof fillers / sizeof fillers[0]; i++)
        if (strcmp(fillers[i].dtype, dtype) == 0) return &fillers[i];
    return &small_integers;
}

static void *filled(const struct job *job, const struct vtrn_tensor_info *info, uint64_t seed)
{
    const struct filler *f = filler_of(info->dtype);
    uint8_t *bytes = calloc(info->size_bytes ? info->size_bytes : 1, 1);

    if (!bytes || strcmp(job->fill, "random") != 0) return bytes;
    for (size_t at = 0; at < info->size_bytes; at += info->element_bytes) {
        uint64_t random = next_random(&seed);
        uint32_t element = ((uint32_t)random & f->keep) | (f->base + (uint32_t)(random >> 32 & f->vary)) << f->shift;

        for (size_t b = 0; b < info->element_bytes; b++) bytes[at + b] = (uint8_t)(element >> 8 * b); /* little endian */
    }
    return bytes;
}

static enum vtrn_status input_number(struct job *job, const char *name, uint32_t *number_out)
{
    uint32_t tensor;
    char *end;
    unsigned long position = strtoul(name, &end, 10);

    if (name[0] >= '0' && name[0] <= '9' && *end == 0 && position < job->info.inputs) {
        *number_out = (uint32_t)position;
        return VTRN_OK;
    }
    VTRN_TRY(vtrn_program_find(job->program, name, &tensor, &job->err));
    for (uint32_t i = 0; i < job->info.inputs; i++)
        if (vtrn_program_input(job->program, i) == tensor) {
            *number_out = i;
            return VTRN_OK;
        }
    return vtrn_fail(&job->err, VTRN_INVALID, "%s is an output", name);
}

static enum vtrn_status read_inputs(struct job *job)
{
    for (int f = 0; f < job->files.count; f++) {
        const char *item = job->files.item[f], *equals = strchr(item, '=');
        struct vtrn_tensor_info info;
        enum vtrn_status status;
        uint32_t number = 0;
        char name[256];

        VTRN_FAIL_IF(!equals || equals == item || (size_t)(equals - item) >= sizeof name, &job->err, VTRN_INVALID,
                     "--input %s: say NAME=FILE.npy", item);
        snprintf(name, sizeof name, "%.*s", (int)(equals - item), item);
        VTRN_TRY(input_number(job, name, &number));
        VTRN_FAIL_IF(job->input[number], &job->err, VTRN_INVALID, "--input %s: given twice", name);
        vtrn_program_tensor(job->program, vtrn_program_input(job->program, number), &info, sizeof info);
        status = cli_npy_read(equals + 1, &info, &job->input[number], &job->err);
        if (status < 0) {
            vtrn_error_prefix(&job->err, "input %s", name);
            return status;
        }
    }
    return VTRN_OK;
}

static enum vtrn_status bind_inputs(struct job *job)
{
    for (uint32_t i = 0; i < job->info.inputs; i++) {
        uint32_t tensor = vtrn_program_input(job->program, i);
        struct vtrn_tensor_info info;
        char shape[192];

        vtrn_program_tensor(job->program, tensor, &info, sizeof info);
        cli_shape_text(&info, shape);
        VTRN_FAIL_IF(!job->input[i] && !job->fill, &job->err, VTRN_INVALID,
                     "input %s (%s %s) has no bytes; give --input %s=FILE.npy, or --fill random", *info.name ? info.name : "without a name",
                     info.dtype, shape, *info.name ? info.name : "POSITION");
        if (!job->input[i]) job->input[i] = filled(job, &info, (uint64_t)job->seed * 1000003u + i);
        VTRN_FAIL_IF(!job->input[i], &job->err, VTRN_NOMEM, "no memory for input %s (%zu bytes)", info.name, info.size_bytes);
        VTRN_TRY(vtrn_machine_bind(job->machine, tensor, job->input[i], info.size_bytes, &job->err));
    }
    return VTRN_OK;
}

/* ---------------------------------------------------------------- run */
static enum vtrn_status execute(struct job *job)
{
    struct vtrn_machine_options options;
    struct cli_progress progress;
    enum vtrn_status status;
    double start;

    cli_progress_begin(&progress, *job->info.name ? job->info.name : "program");
    vtrn_machine_options_init(&options);
    options.threads = (int)job->threads;
    options.seed = (uint64_t)job->seed;
    options.progress = cli_progress_step;
    options.progress_self = &progress;
    status = vtrn_machine_create(job->program, &options, &job->machine, &job->err);
    if (status >= 0) status = bind_inputs(job);
    start = cli_now();
    if (status >= 0) status = vtrn_machine_run(job->machine, &job->err);
    job->seconds = cli_now() - start;
    cli_progress_end(&progress);
    return status;
}

static int explain_fault(const struct job *job, enum vtrn_status status)
{
    struct vtrn_fault_info fault;
    int code = cli_fail_status(job->command, status, &job->err);

    if (job->machine && vtrn_machine_fault(job->machine, &fault, sizeof fault) && *fault.disassembly)
        fprintf(stderr, "  core %d, instruction %u: %s\n", fault.core, fault.instruction, fault.disassembly);
    return code;
}

/* ---------------------------------------------------------------- results */
/* The i-th result: outputs, then inputs that the program writes. False past the end. */
static bool result(const struct job *job, uint32_t i, uint32_t *tensor_out, struct vtrn_tensor_info *info)
{
    for (uint32_t at = 0; at < job->info.outputs + job->info.inputs; at++) {
        bool is_output = at < job->info.outputs;

        *tensor_out = is_output ? vtrn_program_output(job->program, at) : vtrn_program_input(job->program, at - job->info.outputs);
        vtrn_program_tensor(job->program, *tensor_out, info, sizeof *info);
        if ((is_output || info->written) && i-- == 0) return true;
    }
    return false;
}

/* DIR/NAME.npy: letters that a file system may not like become _, and a name that occurs before gets its number. */
static void result_path(const struct job *job, uint32_t i, const char *name, char *out, size_t size)
{
    struct vtrn_tensor_info other;
    uint32_t tensor;
    bool again = !*name;
    char safe[128];

    snprintf(safe, sizeof safe, "%s", *name ? name : "result");
    for (char *at = safe; *at; at++)
        if (!((*at >= '0' && *at <= '9') || (*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') || strchr("_-", *at) ||
              (*at == '.' && at > safe)))
            *at = '_';
    for (uint32_t k = 0; k < i && result(job, k, &tensor, &other); k++) again |= strcmp(other.name, name) == 0;
    if (again) snprintf(out, size, "%s/%s_%u.npy", job->output, safe, i);
    else snprintf(out, size, "%s/%s.npy", job->output, safe);
}

static enum vtrn_status write_results(struct job *job)
{
    struct vtrn_tensor_info info;
    uint32_t tensor;
    char path[4096];

    VTRN_FAIL_IF(mkdir(job->output, 0777) < 0 && errno != EEXIST, &job->err, VTRN_IO, "%s: %s", job->output, strerror(errno));
    for (uint32_t i = 0; result(job, i, &tensor, &info); i++) {
        const void *bytes;
        size_t size;

        result_path(job, i, info.name, path, sizeof path);
        VTRN_TRY(vtrn_machine_read(job->machine, tensor, &bytes, &size, &job->err));
        VTRN_TRY(cli_npy_write(path, &info, bytes, &job->err));
    }
    return VTRN_OK;
}

static enum vtrn_status result_table(struct job *job, struct vtrn_table **table_out)
{
    static const struct vtrn_column columns[] = { { "name", VTRN_COLUMN_TEXT },
                                                  { "role", VTRN_COLUMN_TEXT },
                                                  { "dtype", VTRN_COLUMN_TEXT },
                                                  { "shape", VTRN_COLUMN_SHAPE },
                                                  { "digest", VTRN_COLUMN_TEXT } };
    struct vtrn_table *table = vtrn_table_create(columns, sizeof columns / sizeof columns[0]);
    struct vtrn_tensor_info info;
    uint32_t tensor;

    VTRN_FAIL_IF(!table, &job->err, VTRN_NOMEM, "no memory for a table");
    *table_out = table;
    for (uint32_t i = 0; result(job, i, &tensor, &info); i++) {
        char shape[192], digest[24];
        const void *bytes;
        size_t size;

        VTRN_TRY(vtrn_machine_read(job->machine, tensor, &bytes, &size, &job->err));
        cli_shape_text(&info, shape);
        snprintf(digest, sizeof digest, "%016llx", (unsigned long long)vtrn_digest(bytes, size));
        vtrn_table_row(table, info.name, cli_role(&info), info.dtype, shape, digest);
    }
    return VTRN_OK;
}

static json_t *counters_json(const struct job *job)
{
    json_t *counters = json_object();
    struct vtrn_counter_info counter;

    for (int i = 0; counters && vtrn_machine_counter(job->machine, i, &counter, sizeof counter); i++)
        if (json_object_set_new(counters, counter.name, json_integer((json_int_t)counter.value)) < 0) return NULL;
    return counters;
}

static enum vtrn_status print_results(struct job *job, const char *path)
{
    struct vtrn_table *table = NULL;
    struct vtrn_counter_info counter = { 0 };
    enum vtrn_status status = result_table(job, &table);
    char count[32];

    vtrn_machine_counter(job->machine, 0, &counter, sizeof counter); /* instructions */
    vtrn_count_text((int64_t)counter.value, count);
    if (status >= 0 && job->json) {
        status = vtrn_json_print(json_pack("{s:s, s:s, s:s, s:i, s:f, s:o, s:o}", "file", path, "name", job->info.name, "target",
                                           job->info.target, "cores", job->info.cores, "seconds", job->seconds, "results",
                                           vtrn_table_json(table), "counters", counters_json(job)),
                                 stdout);
    } else if (status >= 0) {
        status = vtrn_table_print(table, stdout);
        printf("\n%s on %s: %s instructions on %d core%s in %.3f s\n", *job->info.name ? job->info.name : path, job->info.target,
               count, job->info.cores, job->info.cores > 1 ? "s" : "", job->seconds);
    }
    vtrn_table_destroy(table);
    return status;
}

/* ---------------------------------------------------------------- command */
static int run_program(struct job *job, const char *path)
{
    enum vtrn_status status = cli_load(path, &job->program, &job->err);

    if (status < 0) return cli_fail_status(job->command, status, &job->err);
    vtrn_program_get(job->program, &job->info, sizeof job->info);
    job->input = calloc(job->info.inputs + 1, sizeof *job->input);
    if (!job->input) return cli_fail(job->command, CLI_HOST, "no memory");
    status = read_inputs(job);
    if (status >= 0) status = execute(job);
    if (status < 0) return explain_fault(job, status);
    status = print_results(job, path);
    if (status >= 0 && job->output) status = write_results(job);
    return status < 0 ? cli_fail_status(job->command, status, &job->err) : CLI_OK;
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    struct job job = { .command = command };
    const struct cli_option options[] = {
        { "--input", 'i', CLI_LIST, &job.files },      { "--fill", 0, CLI_TEXT, &job.fill },
        { "--output", 'o', CLI_TEXT, &job.output },    { "--threads", 0, CLI_NUMBER, &job.threads },
        { "--seed", 0, CLI_NUMBER, &job.seed },        { "--json", 0, CLI_FLAG, &job.json },
        { 0 },
    };
    int count, code;

    if (asks_for_help(argc, argv)) {
        fputs(help, argc < 2 ? stderr : stdout);
        return argc < 2 ? CLI_USAGE : CLI_OK;
    }
    if (!program_argument(argc, argv)) return cli_exec_python(command, argc, argv);
    job.files.item = calloc((size_t)argc, sizeof *job.files.item);
    if (!job.files.item) return cli_fail(command, CLI_HOST, "no memory");
    code = cli_options(command, argc, argv, options, &count);
    if (code < 0 && count != 1) code = cli_fail(command, CLI_USAGE, "one program at a time; %s is too much", argv[1]);
    if (code < 0 && job.fill && strcmp(job.fill, "zeros") != 0 && strcmp(job.fill, "random") != 0)
        code = cli_fail(command, CLI_USAGE, "--fill %s: zeros or random", job.fill);
    if (code < 0 && (job.threads < 0 || job.threads > 4096))
        code = cli_fail(command, CLI_USAGE, "--threads %lld: 1 to 4096, or 0 for all", (long long)job.threads);
    if (code < 0) code = run_program(&job, argv[0]);
    vtrn_machine_destroy(job.machine);
    for (uint32_t i = 0; job.input && i < job.info.inputs; i++) free(job.input[i]);
    free(job.input);
    vtrn_program_destroy(job.program);
    free(job.files.item);
    return code;
}

const struct cli_command cli_run = { "run", "run a script that imports nki, or a recorded program", help, run };
