/* `vtrn run script.py`: the NKI front end is Python, so the process becomes Python with the vtrn package. Which Python:
 * $VTRN_PYTHON, else the one installed beside this executable (a virtual environment), else the python3 of $PATH. */
#include <errno.h>
#include <unistd.h>

#include "cli/cli.h"

/* The folder of this executable with a final slash; "" when the host does not tell. */
static void own_folder(char *out, size_t size)
{
    ssize_t length = readlink("/proc/self/exe", out, size - 1);
    char *slash;

    out[length > 0 ? length : 0] = 0;
    slash = strrchr(out, '/');
    if (slash) slash[1] = 0;
    else out[0] = 0;
}

int cli_exec_python(const struct cli_command *command, int argc, char **argv)
{
    const char *python = getenv("VTRN_PYTHON");
    char beside[4096 + 16];
    char **args = calloc((size_t)argc + 5, sizeof *args);
    int n = 0;

    if (!args) return cli_fail(command, CLI_HOST, "no memory");
    if (!python || !*python) {
        own_folder(beside, sizeof beside - 16);
        python = "python3";
        if (*beside && access(strcat(beside, "python3"), X_OK) == 0) python = beside;
    }
    args[n++] = (char *)(uintptr_t)python; /* exec takes them unchanged */
    args[n++] = (char *)(uintptr_t) "-m";
    args[n++] = (char *)(uintptr_t) "vtrn";
    args[n++] = (char *)(uintptr_t) "run";
    for (int i = 1; i < argc; i++) args[n++] = argv[i];
    fflush(stdout);
    execvp(python, args);
    free(args);
    return cli_fail(command, CLI_HOST, "cannot start %s: %s; scripts need Python with the vtrn package (VTRN_PYTHON names another)",
                    python, strerror(errno));
}
