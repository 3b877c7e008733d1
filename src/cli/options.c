/* Command lines and messages of all commands. Own code instead of getopt: it keeps no globals, and options may stand on
 * either side of the positional arguments. */
#include <ctype.h>
#include <errno.h>

#include "cli/cli.h"

int cli_exit_of(enum vtrn_status status)
{
    switch (status) {
    case VTRN_OK:
    case VTRN_BLOCKED: return CLI_OK;
    case VTRN_INVALID: return CLI_USAGE;
    case VTRN_ILLEGAL:
    case VTRN_UNSUPPORTED:
    case VTRN_FORMAT:
    case VTRN_LIMIT: return CLI_PROGRAM;
    case VTRN_FAULT:
    case VTRN_DEADLOCK: return CLI_FAULT;
    case VTRN_NOMEM:
    case VTRN_IO: return CLI_HOST;
    case VTRN_INTERRUPTED: return CLI_INTERRUPTED;
    }
    return CLI_HOST;
}

int cli_fail(const struct cli_command *command, int code, const char *fmt, ...)
{
    va_list args;
    char text[4096];

    fflush(stdout);
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    for (char *at = text; *at; at++)
        if (iscntrl((unsigned char)*at)) *at = '?'; /* names of a program may hold anything: a message is one line */
    fprintf(stderr, "vtrn %s: %s\n", command->name, text);
    return code;
}

int cli_fail_status(const struct cli_command *command, enum vtrn_status status, const struct vtrn_error *err)
{
    return cli_fail(command, cli_exit_of(status), "%s", err->text[0] ? err->text : vtrn_status_text(status));
}

int cli_printed(const struct cli_command *command, enum vtrn_status status)
{
    const char *text = status == VTRN_IO ? "could not write to stdout" : vtrn_status_text(status);

    return status < 0 ? cli_fail(command, cli_exit_of(status), "%s", text) : CLI_OK;
}

/* ---------------------------------------------------------------- options */
static const struct cli_option *find_option(const struct cli_option *options, const char *arg, size_t length)
{
    for (; options->name; options++) {
        if (strlen(options->name) == length && memcmp(options->name, arg, length) == 0) return options;
        if (options->letter && length == 2 && arg[0] == '-' && arg[1] == options->letter) return options;
    }
    return NULL;
}

static int store(const struct cli_command *command, const struct cli_option *option, const char *value)
{
    if (option->kind == CLI_TEXT) {
        *(const char **)option->value = value;
    } else if (option->kind == CLI_LIST) {
        struct cli_list *list = option->value;

        list->item[list->count++] = value; /* has room for argc items */
    } else {
        char *end;
        long long number;

        errno = 0;
        number = strtoll(value, &end, 0);
        if (errno || end == value || *end) return cli_fail(command, CLI_USAGE, "%s %s: not a number", option->name, value);
        *(int64_t *)option->value = number;
    }
    return -1;
}

int cli_options(const struct cli_command *command, int argc, char **argv, const struct cli_option *options, int *count_out)
{
    int count = 0;
    bool plain = false; /* after -- */

    for (int i = 1; i < argc; i++) {
        const char *arg = argv[i], *equals = strchr(arg, '='), *value;
        const struct cli_option *option;
        int code;

        if (plain || arg[0] != '-' || !arg[1]) {
            argv[count++] = argv[i];
            continue;
        }
        if (strcmp(arg, "--") == 0) {
            plain = true;
            continue;
        }
        if (strcmp(arg, "--help") == 0 || strcmp(arg, "-h") == 0) {
            fputs(command->help, stdout);
            return CLI_OK;
        }
        option = find_option(options, arg, equals && arg[1] == '-' ? (size_t)(equals - arg) : strlen(arg));
        if (!option) return cli_fail(command, CLI_USAGE, "unknown option %s; see vtrn %s --help", arg, command->name);
        if (option->kind == CLI_FLAG) {
            if (equals) return cli_fail(command, CLI_USAGE, "%s takes no value", option->name);
            *(bool *)option->value = true;
            continue;
        }
        value = equals && arg[1] == '-' ? equals + 1 : i + 1 < argc ? argv[++i] : NULL;
        if (!value) return cli_fail(command, CLI_USAGE, "%s needs a value", option->name);
        code = store(command, option, value);
        if (code >= 0) return code;
    }
    *count_out = count;
    return -1;
}
