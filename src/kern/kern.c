/* The slot tables: for each CPU level one struct of functions, ref first, then every level up to it overrides what it has.
 * Tables are filled once per process and never change after that (they are constants that the CPU query decides).
 *
 * Compiled for the base instruction set. Must not know what a slot computes. */
#include "kern/kern_int.h"

#include <pthread.h>

static struct vtrn_kern table[VTRN_CPU_LEVELS];
static pthread_once_t filled = PTHREAD_ONCE_INIT;

#define HOOK(level, group) vtrn_kern_##level##_##group(kern);

static void fill_ref(struct vtrn_kern *kern)
{
    kern->level = VTRN_CPU_REF;
    KERN_EACH_GROUP(HOOK, ref)
    vtrn_kern_ref_mm(kern);
}

static void override(struct vtrn_kern *kern, enum vtrn_cpu_level level)
{
    kern->level = level;
#if defined(__x86_64__)
    if (level == VTRN_CPU_AVX2) {
        KERN_EACH_GROUP(HOOK, avx2)
    }
    if (level == VTRN_CPU_AVX512) {
        KERN_EACH_GROUP(HOOK, avx512)
    }
    vtrn_kern_x86_mm(kern, level);
#elif defined(__aarch64__)
    KERN_EACH_GROUP(HOOK, neon)
    vtrn_kern_arm_mm(kern);
#endif
}

static void fill(void)
{
    const enum vtrn_cpu_level below[VTRN_CPU_LEVELS] = {
        [VTRN_CPU_AVX2] = VTRN_CPU_REF,
        [VTRN_CPU_AVX512] = VTRN_CPU_AVX2,
        [VTRN_CPU_AVX512BF16] = VTRN_CPU_AVX512,
        [VTRN_CPU_NEON] = VTRN_CPU_REF,
    };

    fill_ref(&table[VTRN_CPU_REF]);
    for (int level = VTRN_CPU_REF + 1; level < VTRN_CPU_LEVELS; level++) {
        if (!vtrn_cpu_has((enum vtrn_cpu_level)level)) continue;
        table[level] = table[below[level]];
        override(&table[level], (enum vtrn_cpu_level)level);
    }
}

const struct vtrn_kern *vtrn_kern_for(enum vtrn_cpu_level level)
{
    VTRN_ASSERT((unsigned)level < VTRN_CPU_LEVELS && vtrn_cpu_has(level));
    pthread_once(&filled, fill);
    return &table[level];
}
