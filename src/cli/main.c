/* The command `vtrn`: a table of commands. Finds the command and calls it; help texts stand beside the commands. */
#include "cli/cli.h"

static const struct cli_command *const commands[] = { &cli_run, &cli_time, &cli_disasm, &cli_asm, &cli_check, &cli_chips };
enum { COMMANDS = sizeof commands / sizeof commands[0] };

static void print_usage(FILE *out)
{
    fprintf(out, "vtrn %s: Trainium in software. Runs NKI kernels on a virtual AWS Trainium.\n\n"
                 "usage: vtrn COMMAND [ARGUMENTS]\n\n",
            vtrn_version());
    for (int i = 0; i < COMMANDS; i++) fprintf(out, "  %-8s %s\n", commands[i]->name, commands[i]->line);
    fprintf(out, "\n"
                 "vtrn COMMAND --help tells more, with examples.\n\n"
                 "  vtrn run kernel.py                      an unmodified script that imports nki\n"
                 "  vtrn run --target trn2 -m pytest tests  a test suite\n"
                 "  vtrn run kernel.vtrn --input x=x.npy    a recorded program, without Python\n"
                 "  vtrn time kernel.vtrn                   how long the chip would take, and why\n"
                 "  vtrn chips trn2                         what a chip is, each number with its source\n\n"
                 "exit codes: 0 done, 1 the emulated machine faulted, 2 wrong usage, 3 bad or illegal program,\n"
                 "            4 the host could not, 130 interrupted; a script's own exit code is passed on\n");
}

static const struct cli_command *find(const char *name)
{
    for (int i = 0; i < COMMANDS; i++)
        if (strcmp(commands[i]->name, name) == 0) return commands[i];
    return NULL;
}

/* `vtrn help COMMAND` and `vtrn --help`. */
static int help(int argc, char **argv)
{
    const struct cli_command *command = argc > 2 ? find(argv[2]) : NULL;

    if (argc > 2 && !command) {
        fprintf(stderr, "vtrn: no command \"%s\"; vtrn --help lists them\n", argv[2]);
        return CLI_USAGE;
    }
    if (command) fputs(command->help, stdout);
    else print_usage(stdout);
    return CLI_OK;
}

int main(int argc, char **argv)
{
    const struct cli_command *command = NULL;
    int code = CLI_OK;

    if (argc < 2) {
        print_usage(stderr);
        return CLI_USAGE;
    }
    if (strcmp(argv[1], "--version") == 0) printf("vtrn %s\n", vtrn_version());
    else if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0) code = help(argc, argv);
    else if (!(command = find(argv[1]))) {
        fprintf(stderr, "vtrn: no command \"%s\"; vtrn --help lists them\n", argv[1]);
        return CLI_USAGE;
    } else {
        code = command->run(command, argc - 1, argv + 1);
    }
    if (fflush(stdout) == EOF && code == CLI_OK) { /* a full disk behind a redirection */
        fprintf(stderr, "vtrn%s%s: could not write to stdout\n", command ? " " : "", command ? command->name : "");
        code = CLI_HOST;
    }
    return code;
}
