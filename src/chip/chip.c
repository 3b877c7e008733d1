/* One chip run: the program's cores step over shared memories until their lists end.
 *
 * Each core runs alone until it is done, faults, or stands at a rendezvous; when both stand at one, the data moves and
 * both go on. With two host threads the cores run at the same time between rendezvous, with one they take turns; the
 * results of a program without races between cores are the same. A core that waits for one that cannot come is a
 * deadlock, and the message says where both are.
 * Cores run in slices of host time when somebody wants to know how far they are: between slices, in the thread that
 * called vtrn_chip_run and in no other, the progress callback says whether to go on. */
#include "chip/chip.h"

#include <time.h>

enum { START = 64 /* instructions that two cores begin with in turn */, PROGRESS_MS = 100 };

struct vtrn_chip {
    struct vtrn_prog *prog;
    struct vtrn_mem *mem;
    struct vtrn_run_options options;
    struct vtrn_pool *pool; /* one core: splits its instructions; two cores: one thread each */
    struct vtrn_core *core[VTRN_CORES_MAX];
    enum vtrn_status status[VTRN_CORES_MAX];
    struct vtrn_trace trace[VTRN_CORES_MAX];
    struct vtrn_fault deadlock;
    unsigned closed;
    bool release;
    int64_t slice_end_ms; /* written between slices, read by the cores' threads */
};

void vtrn_run_options_init(struct vtrn_run_options *options) { *options = (struct vtrn_run_options){ .seed = 1 }; }

/* ---- progress and interruption ---- */
static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* A core asks now and then whether its slice is over. */
static bool slice_is_over(void *self)
{
    const struct vtrn_chip *chip = self;
    return now_ms() >= chip->slice_end_ms;
}

/* The share of the lists that is done; unknown while lists grow, and with loops, which say nothing of their turns. */
static double share_done(const struct vtrn_chip *chip)
{
    uint64_t done = 0, all = 0;
    for (int c = 0; c < chip->prog->cores; c++) {
        if (!(chip->closed >> c & 1) || chip->prog->code[c].loops) return -1;
        done += vtrn_core_position(chip->core[c]);
        all += chip->prog->code[c].count;
    }
    return all ? (double)done / (double)all : 1;
}

/* ---- life ---- */

void vtrn_chip_destroy(struct vtrn_chip *chip)
{
    if (!chip) return;
    for (int c = 0; c < VTRN_CORES_MAX; c++) {
        vtrn_core_destroy(chip->core[c]);
        free(chip->trace[c].value);
    }
    vtrn_mem_destroy(chip->mem);
    vtrn_pool_destroy(chip->pool);
    free(chip);
}

static enum vtrn_status make_cores(struct vtrn_chip *chip, struct vtrn_error *err)
{
    struct vtrn_exec_options exec;
    vtrn_exec_options_init(&exec);
    exec.pool = chip->prog->cores == 1 ? chip->pool : NULL;
    exec.pages = chip->options.pages;
    exec.stochastic_rounding = chip->options.stochastic_rounding;
    exec.mx_scale_v03 = chip->options.mx_scale_v03;
    exec.seed = chip->options.seed;
    exec.print = chip->options.print;
    exec.print_self = chip->options.print_self;
    exec.interrupt = chip->options.progress ? slice_is_over : NULL;
    exec.interrupt_self = chip;
    for (int c = 0; c < chip->prog->cores; c++) {
        exec.trace = chip->options.trace ? &chip->trace[c] : NULL;
        chip->core[c] = vtrn_core_create(chip->prog, chip->mem, c, &exec, err);
        if (!chip->core[c]) return VTRN_NOMEM;
    }
    return VTRN_OK;
}

struct vtrn_chip *vtrn_chip_create(struct vtrn_prog *prog, const struct vtrn_run_options *options, struct vtrn_error *err)
{
    struct vtrn_chip *chip;
    if (options && (options->threads < 0 || options->threads > VTRN_THREADS_MAX)) {
        vtrn_fail(err, VTRN_INVALID, "threads %d: 1 to %d, or 0 for all", options->threads, VTRN_THREADS_MAX);
        return NULL;
    }
    chip = calloc(1, sizeof *chip);
    if (!chip) {
        vtrn_fail(err, VTRN_NOMEM, "no memory for a chip");
        return NULL;
    }
    chip->prog = prog;
    if (options) chip->options = *options;
    else vtrn_run_options_init(&chip->options);
    int threads = chip->options.threads > 0 ? chip->options.threads : vtrn_cpu_count();
    if (prog->cores == 2 && threads > 2) threads = 2;
    chip->pool = vtrn_pool_create(threads);
    chip->mem = vtrn_mem_create(prog->arch, prog->cores, err);
    if (chip->mem) vtrn_mem_use_cache(chip->mem, chip->options.pages);
    if (!chip->pool || !chip->mem || make_cores(chip, err) < 0) {
        if (!chip->pool) vtrn_fail(err, VTRN_NOMEM, "no memory for %d threads", threads);
        vtrn_chip_destroy(chip);
        return NULL;
    }
    return chip;
}

struct vtrn_mem *vtrn_chip_mem(struct vtrn_chip *chip) { return chip->mem; }

struct vtrn_core *vtrn_chip_core(struct vtrn_chip *chip, int core)
{
    return core >= 0 && core < VTRN_CORES_MAX ? chip->core[core] : NULL;
}

/* ---- running ---- */

/* Runs one core to the end of its list, a rendezvous, the end of the slice, or a failure. */
static void run_core_part(void *arg, int c, int cores)
{
    struct vtrn_chip *chip = arg;
    (void)cores;
    chip->status[c] = vtrn_core_run(chip->core[c], UINT32_MAX, chip->release);
}

static bool waits(const struct vtrn_chip *chip, int c) { return vtrn_core_wait(chip->core[c]) != NULL; }

/* The first instructions of both cores run in turn, one of each: kernels let both cores clear the output that each then
 * fills a part of, without a barrier, and count on cores that start together (nki-library's cascaded max does). What a core
 * could not do here it says again in run_core_part. */
static void run_start(struct vtrn_chip *chip)
{
    for (bool moved = true; moved;) {
        moved = false;
        for (int c = 0; c < 2; c++) {
            struct vtrn_core *core = chip->core[c];
            uint32_t at = vtrn_core_position(core);
            if (waits(chip, c) || at >= START || at >= chip->prog->code[c].count) continue;
            if (vtrn_core_run(core, at + 1, chip->release) != VTRN_OK && !waits(chip, c)) return;
            moved = true;
        }
    }
}

static void run_all(struct vtrn_chip *chip)
{
    int cores = chip->prog->cores;
    for (int c = 0; c < cores; c++) chip->status[c] = VTRN_OK; /* of this round: a core that waits does not run in it */
    if (cores == 2) run_start(chip);
    if (cores == 2 && !waits(chip, 0) && !waits(chip, 1) && vtrn_pool_threads(chip->pool) >= 2) {
        vtrn_pool_run(chip->pool, 2, run_core_part, chip);
        return;
    }
    for (int c = 0; c < cores; c++)
        if (!waits(chip, c)) run_core_part(chip, c, cores);
}

/* ---- what went wrong, in words ---- */

/* "kernel.py:41 nisa.core_barrier" of an instruction of a core; "the end of its kernel" behind the list. */
static void where(const struct vtrn_chip *chip, int c, uint32_t pc, char *out, size_t size)
{
    if (pc >= chip->prog->code[c].count) {
        snprintf(out, size, "the end of its kernel");
        return;
    }
    struct vtrn_inst inst;
    vtrn_prog_get(chip->prog, c, pc, &inst);
    vtrn_prog_where(chip->prog, &inst, out, size);
}

static enum vtrn_status report_failure(struct vtrn_chip *chip, int c, struct vtrn_error *err)
{
    const struct vtrn_fault *fault = vtrn_core_fault(chip->core[c]);
    char place[256];
    where(chip, c, fault ? fault->pc : vtrn_core_position(chip->core[c]), place, sizeof place);
    if (fault)
        return vtrn_fail(err, VTRN_FAULT, "%s: %s%s", place, chip->prog->cores > 1 ? (c ? "core 1: " : "core 0: ") : "", fault->text);
    const char *why = vtrn_core_error(chip->core[c]);
    return vtrn_fail(err, chip->status[c], "%s: %s", place, why && *why ? why : vtrn_status_text(chip->status[c]));
}

static enum vtrn_status report_deadlock(struct vtrn_chip *chip, int waiting, struct vtrn_error *err)
{
    int other = 1 - waiting;
    const struct vtrn_wait *wait = vtrn_core_wait(chip->core[waiting]);
    char place[256], other_place[256];
    where(chip, waiting, wait->pc, place, sizeof place);
    where(chip, other, vtrn_core_position(chip->core[other]), other_place, sizeof other_place);
    chip->deadlock =
        (struct vtrn_fault){ .reason = VTRN_FAULT_DEADLOCK, .core = waiting, .engine = VTRN_ENGINE_SYNC, .pc = wait->pc };
    const char *what = wait->kind == VTRN_WAIT_BARRIER ? "a core_barrier" : "a sendrecv";
    snprintf(chip->deadlock.text, sizeof chip->deadlock.text,
             "deadlock: core %d waits for core %d at %s, but core %d has come to %s; both cores must make the same calls", waiting,
             other, what, other, other_place);
    return vtrn_fail(err, VTRN_DEADLOCK, "%s: %s", place, chip->deadlock.text);
}

/* ---- the run ---- */

/* After all cores have run as far as they can: what now? OK: go on with another round. */
enum outcome { ROUND_AGAIN, ROUND_DONE, ROUND_FAILED };

/* Between two slices. */
static enum outcome next_slice(struct vtrn_chip *chip, enum vtrn_status *status_out, struct vtrn_error *err)
{
    char place[256];
    if (chip->options.progress(chip->options.progress_self, share_done(chip))) {
        chip->slice_end_ms = now_ms() + PROGRESS_MS;
        return ROUND_AGAIN;
    }
    int c = chip->status[0] == VTRN_INTERRUPTED ? 0 : 1;
    where(chip, c, vtrn_core_position(chip->core[c]), place, sizeof place);
    *status_out = vtrn_fail(err, VTRN_INTERRUPTED, "interrupted at %s", place);
    return ROUND_FAILED;
}

static enum outcome settle(struct vtrn_chip *chip, enum vtrn_status *status_out, struct vtrn_error *err)
{
    int cores = chip->prog->cores;
    bool sliced = false;
    for (int c = 0; c < cores; c++) {
        if (chip->status[c] == VTRN_INTERRUPTED) {
            sliced = true;
        } else if (chip->status[c] < 0) {
            *status_out = report_failure(chip, c, err);
            return ROUND_FAILED;
        }
    }
    if (sliced) return next_slice(chip, status_out, err);
    if (cores == 2 && waits(chip, 0) && waits(chip, 1)) {
        chip->status[0] = chip->status[1] = VTRN_OK;
        if (vtrn_core_meet(chip->core[0], chip->core[1]) == VTRN_OK) return ROUND_AGAIN;
        *status_out = report_failure(chip, vtrn_core_fault(chip->core[0]) ? 0 : 1, err);
        return ROUND_FAILED;
    }
    *status_out = VTRN_OK;
    for (int c = 0; c < cores; c++) {
        bool closed = chip->closed >> c & 1;
        if (waits(chip, c)) {
            bool never = cores < 2 || chip->closed >> (1 - c) & 1;
            *status_out = never ? report_deadlock(chip, c, err) : VTRN_BLOCKED;
        } else if (chip->status[c] == VTRN_BLOCKED && closed) {
            *status_out = vtrn_fail(err, VTRN_ILLEGAL, "core %d: a loop without its end", c);
        }
        if (*status_out != VTRN_OK) return *status_out < 0 ? ROUND_FAILED : ROUND_DONE;
    }
    return ROUND_DONE;
}

enum vtrn_status vtrn_chip_run(struct vtrn_chip *chip, unsigned closed, bool release, struct vtrn_error *err)
{
    enum vtrn_status status = VTRN_OK;
    chip->closed = closed;
    chip->release = release;
    if (chip->options.progress && !chip->slice_end_ms) chip->slice_end_ms = now_ms() + PROGRESS_MS;
    do run_all(chip);
    while (settle(chip, &status, err) == ROUND_AGAIN);
    return status;
}

const struct vtrn_fault *vtrn_chip_fault(const struct vtrn_chip *chip)
{
    for (int c = 0; c < chip->prog->cores; c++)
        if (vtrn_core_fault(chip->core[c])) return vtrn_core_fault(chip->core[c]);
    return chip->deadlock.reason ? &chip->deadlock : NULL;
}

const struct vtrn_trace *vtrn_chip_trace(const struct vtrn_chip *chip) { return chip->options.trace ? chip->trace : NULL; }

void vtrn_chip_counters(const struct vtrn_chip *chip, struct vtrn_counters *out)
{
    *out = (struct vtrn_counters){ 0 };
    for (int c = 0; c < chip->prog->cores; c++) {
        const struct vtrn_counters *counters = vtrn_core_counters(chip->core[c]);
#define COUNTER(name, doc) out->name += counters->name;
        VTRN_COUNTERS(COUNTER)
#undef COUNTER
    }
}
