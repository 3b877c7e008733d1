/* Progress on stderr for work over two seconds: a bar on a terminal, a plain line every ten seconds elsewhere. Ctrl-C
 * asks the run to stop at the next step; a second one ends the process as usual. */
#include <math.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"

enum { BAR = 30 };
static const double QUIET_SECONDS = 2, LINE_SECONDS = 10, BAR_SECONDS = 0.2;

/* A signal handler can reach nothing but a global. */
static volatile sig_atomic_t interrupted;

static void on_interrupt(int signal_number)
{
    interrupted = 1;
    signal(signal_number, SIG_DFL);
}

double cli_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void cli_progress_begin(struct cli_progress *progress, const char *what)
{
    double now = cli_now();

    *progress = (struct cli_progress){ .what = what, .start = now, .last = now, .terminal = isatty(STDERR_FILENO) != 0 };
    signal(SIGINT, on_interrupt);
}

static void draw_bar(const struct cli_progress *progress, double share, double seconds)
{
    char bar[BAR + 1];

    memset(bar, '.', BAR);
    bar[BAR] = 0;
    for (int i = 0; i < BAR && (double)i < share * BAR; i++) bar[i] = '#';
    if (share >= 0) fprintf(stderr, "\r%s [%s] %3.0f %%  %.0f s ", progress->what, bar, 100 * share, seconds);
    else fprintf(stderr, "\r%s %.0f s ", progress->what, seconds);
    fflush(stderr);
}

bool cli_progress_step(void *self, double share)
{
    struct cli_progress *progress = self;
    double now = cli_now(), seconds = now - progress->start;

    if (interrupted) return false;
    if (seconds < QUIET_SECONDS || now - progress->last < (progress->terminal ? BAR_SECONDS : LINE_SECONDS)) return true;
    progress->last = now;
    progress->shown = true;
    if (progress->terminal) draw_bar(progress, fmin(share, 1), seconds);
    else if (share >= 0) fprintf(stderr, "vtrn: %s: %.0f %% after %.0f s\n", progress->what, 100 * share, seconds);
    else fprintf(stderr, "vtrn: %s: %.0f s\n", progress->what, seconds);
    return true;
}

void cli_progress_end(struct cli_progress *progress)
{
    if (progress->shown && progress->terminal) fprintf(stderr, "\r%*s\r", 79, ""); /* the bar leaves nothing behind */
    signal(SIGINT, SIG_DFL);
}
