/* `vtrn asm`, `vtrn disasm` and `vtrn check`: programs between their two forms, and what is in them. */
#include <errno.h>

#include "cli/cli.h"

/* ---------------------------------------------------------------- disasm */
static const char disasm_help[] =
    "usage: vtrn disasm PROGRAM [-o FILE]\n"
    "\n"
    "Prints a program as assembly text: its tensors, and for each core its instructions with the kernel's file and line.\n"
    "vtrn asm turns the text into the same program again.\n"
    "\n"
    "  -o, --output FILE   write there instead of stdout\n"
    "\n"
    "  vtrn disasm kernel.vtrn | less\n";

static enum vtrn_status write_file(const char *path, const void *bytes, size_t size, struct vtrn_error *err)
{
    bool is_stdout = !path || strcmp(path, "-") == 0;
    FILE *file = is_stdout ? stdout : fopen(path, "wb");
    bool good;

    VTRN_FAIL_IF(!file, err, VTRN_IO, "%s: %s", path, strerror(errno));
    good = fwrite(bytes, 1, size, file) == size;
    if (!is_stdout && fclose(file) == EOF) good = false;
    VTRN_FAIL_IF(!good, err, VTRN_IO, "%s: %s", is_stdout ? "stdout" : path, strerror(errno));
    return VTRN_OK;
}

static int run_disasm(const struct cli_command *command, int argc, char **argv)
{
    const char *output = NULL;
    const struct cli_option options[] = { { "--output", 'o', CLI_TEXT, &output }, { 0 } };
    struct vtrn_program *program;
    struct vtrn_error err = { 0 };
    enum vtrn_status status;
    size_t size;
    char *text;
    int count, code = cli_options(command, argc, argv, options, &count);

    if (code >= 0) return code;
    if (count != 1) return cli_fail(command, CLI_USAGE, "name one program; see vtrn disasm --help");
    status = cli_load(argv[0], &program, &err);
    if (status < 0) return cli_fail_status(command, status, &err);
    status = vtrn_program_print(program, &text, &size, &err);
    if (status >= 0) {
        status = write_file(output, text, size, &err);
        vtrn_free(text);
    }
    vtrn_program_destroy(program);
    return status < 0 ? cli_fail_status(command, status, &err) : CLI_OK;
}

const struct cli_command cli_disasm = { "disasm", "print a program as assembly text", disasm_help, run_disasm };

/* ---------------------------------------------------------------- asm */
static const char asm_help[] =
    "usage: vtrn asm FILE.vt -o PROGRAM.vtrn\n"
    "\n"
    "Turns assembly text (docs/isa.md describes it; vtrn disasm prints it) into a program. Every instruction is checked\n"
    "against the rules of its target; an error names the line.\n"
    "\n"
    "  -o, --output FILE   the program; - writes to stdout\n"
    "\n"
    "  vtrn disasm a.vtrn | vtrn asm - -o b.vtrn     # a.vtrn and b.vtrn are the same program\n";

static int run_asm(const struct cli_command *command, int argc, char **argv)
{
    const char *output = NULL;
    const struct cli_option options[] = { { "--output", 'o', CLI_TEXT, &output }, { 0 } };
    struct vtrn_program *program;
    struct vtrn_error err = { 0 };
    enum vtrn_status status;
    size_t size;
    uint8_t *text;
    void *bytes;
    int count, code = cli_options(command, argc, argv, options, &count);

    if (code >= 0) return code;
    if (count != 1 || !output) return cli_fail(command, CLI_USAGE, "name the text, and the program with -o; see vtrn asm --help");
    status = cli_read_file(argv[0], &text, &size, &err);
    if (status < 0) return cli_fail_status(command, status, &err);
    status = vtrn_program_parse((const char *)text, size, &program, &err);
    free(text);
    if (status < 0) {
        vtrn_error_prefix(&err, "%s", argv[0]);
        return cli_fail_status(command, status, &err);
    }
    status = vtrn_program_save(program, &bytes, &size, &err);
    if (status >= 0) {
        status = write_file(output, bytes, size, &err);
        vtrn_free(bytes);
    }
    vtrn_program_destroy(program);
    return status < 0 ? cli_fail_status(command, status, &err) : CLI_OK;
}

const struct cli_command cli_asm = { "asm", "make a program of assembly text", asm_help, run_asm };

/* ---------------------------------------------------------------- check */
static const char check_help[] =
    "usage: vtrn check PROGRAM [--json]\n"
    "\n"
    "Verifies a program: structure, and the legality of every instruction on its target. Prints what is in it: inputs,\n"
    "outputs, and how often each instruction occurs on each engine. Exit code 3 when a rule is broken; the message names\n"
    "the instruction and the kernel's line.\n"
    "\n"
    "  --json   the same for programs\n"
    "\n"
    "  vtrn check kernel.vtrn\n";

static struct vtrn_table *tensor_table(const struct vtrn_program *program)
{
    static const struct vtrn_column columns[] = { { "name", VTRN_COLUMN_TEXT },
                                                  { "role", VTRN_COLUMN_TEXT },
                                                  { "dtype", VTRN_COLUMN_TEXT },
                                                  { "shape", VTRN_COLUMN_SHAPE },
                                                  { "size", VTRN_COLUMN_BYTES } };
    struct vtrn_table *table = vtrn_table_create(columns, sizeof columns / sizeof columns[0]);
    struct vtrn_program_info info;

    if (!table) return NULL;
    vtrn_program_get(program, &info, sizeof info);
    for (uint32_t i = 0; i < info.inputs + info.outputs; i++) {
        struct vtrn_tensor_info tensor;
        char shape[192];

        vtrn_program_tensor(program,
                            i < info.inputs ? vtrn_program_input(program, i) : vtrn_program_output(program, i - info.inputs),
                            &tensor, sizeof tensor);
        cli_shape_text(&tensor, shape);
        vtrn_table_row(table, tensor.name, cli_role(&tensor), tensor.dtype, shape, (int64_t)tensor.size_bytes);
    }
    return table;
}

static struct vtrn_table *use_table(const struct vtrn_program *program)
{
    static const struct vtrn_column columns[] = { { "engine", VTRN_COLUMN_TEXT },
                                                  { "instruction", VTRN_COLUMN_TEXT },
                                                  { "count", VTRN_COLUMN_COUNT } };
    struct vtrn_table *table = vtrn_table_create(columns, sizeof columns / sizeof columns[0]);
    struct vtrn_use_info use;

    for (int i = 0; table && vtrn_program_use(program, i, &use, sizeof use); i++)
        vtrn_table_row(table, use.engine, use.name, (int64_t)use.count);
    return table;
}

static enum vtrn_status print_check(const struct vtrn_program *program, const char *path, bool json)
{
    struct vtrn_table *tensors = tensor_table(program), *uses = use_table(program);
    struct vtrn_program_info info;
    enum vtrn_status status = VTRN_NOMEM;
    char count[32];

    vtrn_program_get(program, &info, sizeof info);
    vtrn_count_text((int64_t)info.instructions, count);
    if (tensors && uses && json) {
        status = vtrn_json_print(json_pack("{s:s, s:s, s:s, s:i, s:b, s:I, s:I, s:o, s:o}", "file", path, "name", info.name, "target",
                                           info.target, "cores", info.cores, "replayable", info.replayable, "instructions",
                                           (json_int_t)info.instructions, "tensors", (json_int_t)info.tensors, "arguments",
                                           vtrn_table_json(tensors), "uses", vtrn_table_json(uses)),
                                 stdout);
    } else if (tensors && uses) {
        printf("%s: legal on %s: %s, %d core%s, %s instructions, %u tensors%s\n\n", path, info.target,
               *info.name ? info.name : "(no name)", info.cores, info.cores > 1 ? "s" : "", count, info.tensors,
               info.replayable ? "" : "; holds for the values it was traced with only");
        status = vtrn_table_print(tensors, stdout);
        printf("\n");
        if (status >= 0) status = vtrn_table_print(uses, stdout);
    }
    vtrn_table_destroy(tensors);
    vtrn_table_destroy(uses);
    return status;
}

static int run_check(const struct cli_command *command, int argc, char **argv)
{
    bool json = false;
    const struct cli_option options[] = { { "--json", 0, CLI_FLAG, &json }, { 0 } };
    struct vtrn_program *program;
    struct vtrn_error err = { 0 };
    enum vtrn_status status;
    int count, code = cli_options(command, argc, argv, options, &count);

    if (code >= 0) return code;
    if (count != 1) return cli_fail(command, CLI_USAGE, "name one program; see vtrn check --help");
    status = cli_load(argv[0], &program, &err); /* verifies */
    if (status < 0) return cli_fail_status(command, status, &err);
    status = print_check(program, argv[0], json);
    vtrn_program_destroy(program);
    return cli_printed(command, status);
}

const struct cli_command cli_check = { "check", "verify a program and show what is in it", check_help, run_check };
