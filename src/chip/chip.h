/* chip: one chip run = program + memories + one or two cores that step together. */
#ifndef VTRN_CHIP_H
#define VTRN_CHIP_H
#include "exec/exec.h"

enum { VTRN_THREADS_MAX = 4096 };
struct vtrn_run_options {
    int threads;                   /* host threads; 0: all. At most VTRN_THREADS_MAX. With two cores each has one when there are two. */
    struct vtrn_page_cache *pages; /* of runs that follow each other: outlives them all; NULL: none */
    bool stochastic_rounding;
    uint64_t seed;
    bool mx_scale_v03; /* quantize_mx scales as NKI 0.3 did */
    bool trace;        /* record what registers are loaded with: vtrn_chip_trace */
    void (*print)(void *self, int core, const char *text);
    void *print_self;
    /* Called about every 100 ms of host time with the share done (0..1) or -1 (unknown); returning false interrupts. */
    bool (*progress)(void *self, double share);
    void *progress_self;
};
void vtrn_run_options_init(struct vtrn_run_options *options);

struct vtrn_chip; /* borrows the program */
struct vtrn_chip *vtrn_chip_create(struct vtrn_prog *prog, const struct vtrn_run_options *options, struct vtrn_error *err);
void vtrn_chip_destroy(struct vtrn_chip *chip);
struct vtrn_mem *vtrn_chip_mem(struct vtrn_chip *chip);
struct vtrn_core *vtrn_chip_core(struct vtrn_chip *chip, int core);
/* Runs every core as far as its list goes. `closed` bit c: core c's list is complete. OK: all complete lists are done and
 * every open one is at its end; BLOCKED: a core waits for a peer whose list is still open (the caller appends and calls
 * again); DEADLOCK, FAULT: err says which core, where and why, with the kernel's file and line. */
enum vtrn_status vtrn_chip_run(struct vtrn_chip *chip, unsigned closed, bool release, struct vtrn_error *err);
const struct vtrn_fault *vtrn_chip_fault(const struct vtrn_chip *chip);
/* One trace per core of all that ran so far; NULL: not recorded. */
const struct vtrn_trace *vtrn_chip_trace(const struct vtrn_chip *chip);
void vtrn_chip_counters(const struct vtrn_chip *chip, struct vtrn_counters *out);
#endif
