/* cli: the command `vtrn`. A table of commands over the public API and report/; the only folder beside the tests that
 * writes to stdout and stderr. Exit codes are part of the interface: see enum cli_exit and docs/man/vtrn.1. */
#ifndef VTRN_CLI_H
#define VTRN_CLI_H
#include "report/report.h"
#include "vtrn/vtrn.h"

enum cli_exit {
    CLI_OK = 0,
    CLI_FAULT = 1,        /* the emulated machine faulted or deadlocked */
    CLI_USAGE = 2,        /* a wrong command line, or an input that does not fit the program */
    CLI_PROGRAM = 3,      /* a file is not a program, or breaks a rule of its target */
    CLI_HOST = 4,         /* the host: a file cannot be read or written, no memory, no Python */
    CLI_INTERRUPTED = 130 /* Ctrl-C */
};

struct cli_command {
    const char *name, *line; /* the line of `vtrn --help` */
    const char *help;        /* what `vtrn NAME --help` prints */
    int (*run)(const struct cli_command *command, int argc, char **argv); /* argv[0] is the command's name */
};
extern const struct cli_command cli_run, cli_asm, cli_disasm, cli_check, cli_chips, cli_time;

/* "vtrn run: message" on stderr; returns `code`. */
int cli_fail(const struct cli_command *command, int code, const char *fmt, ...) VTRN_PRINTF(3, 4);
/* The same from a status; the error's text is the message. */
int cli_fail_status(const struct cli_command *command, enum vtrn_status status, const struct vtrn_error *err);
/* The exit code after printing to stdout, with a message when that failed. */
int cli_printed(const struct cli_command *command, enum vtrn_status status);
int cli_exit_of(enum vtrn_status status);

/* ---- options: --name VALUE, --name=VALUE, --flag; what is no option is a positional argument; -- ends options ---- */
enum cli_option_kind { CLI_FLAG, CLI_TEXT, CLI_NUMBER, CLI_LIST };
struct cli_list {
    const char **item;
    int count;
};
struct cli_option {
    const char *name; /* "--json" */
    char letter;      /* 'o' for -o; 0: none */
    enum cli_option_kind kind;
    void *value; /* bool *, const char **, int64_t *, struct cli_list * */
};
/* Fills in the options and moves positional arguments to argv[0..*count_out). `--help` prints the help. Returns -1 to go on,
 * else the exit code. */
int cli_options(const struct cli_command *command, int argc, char **argv, const struct cli_option *options, int *count_out);

/* ---- files ---- */
/* A program from a .vtrn file, or from assembly text when the file does not start like a program. "-": stdin. */
enum vtrn_status cli_load(const char *path, struct vtrn_program **program_out, struct vtrn_error *err);
/* All bytes of a file, with a zero byte behind them; free() them. */
enum vtrn_status cli_read_file(const char *path, uint8_t **bytes_out, size_t *size_out, struct vtrn_error *err);
bool cli_is_program(const char *path); /* begins with the magic of a .vtrn file, or is named *.vt */
/* "256x512" of a tensor's shape; a scalar is "1". `out` holds 192 bytes. */
void cli_shape_text(const struct vtrn_tensor_info *info, char *out);
const char *cli_role(const struct vtrn_tensor_info *info); /* "input", "in-out", "output" */

/* ---- .npy (npy.c) ---- */
/* Reads an array that must have the tensor's dtype and shape; free() the bytes. */
enum vtrn_status cli_npy_read(const char *path, const struct vtrn_tensor_info *want, void **bytes_out, struct vtrn_error *err);
/* The same from memory, for tests: *data_out points into `bytes`. */
enum vtrn_status cli_npy_parse(const uint8_t *bytes, size_t size_bytes, const struct vtrn_tensor_info *want,
                               const uint8_t **data_out, struct vtrn_error *err);
enum vtrn_status cli_npy_write(const char *path, const struct vtrn_tensor_info *info, const void *bytes, struct vtrn_error *err);

/* ---- progress (progress.c) ---- */
struct cli_progress {
    const char *what;
    double start, last;
    bool terminal, shown;
};
double cli_now(void); /* seconds */
void cli_progress_begin(struct cli_progress *progress, const char *what); /* also catches Ctrl-C */
bool cli_progress_step(void *progress, double share);                     /* a vtrn_machine_options.progress */
void cli_progress_end(struct cli_progress *progress);

/* ---- Python (script.c) ---- */
/* Becomes `python -m vtrn run ARGS`; returns only when that fails. */
int cli_exec_python(const struct cli_command *command, int argc, char **argv);
#endif
