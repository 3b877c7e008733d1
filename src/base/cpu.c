/* What the host CPU can do, as one ordered level that kern/ picks its kernels by, and how many threads may run.
 * VTRN_CPU lowers the level (or names another one that the machine has), so that tests can run every level. The one
 * mutable global of vtrn is the cached result of the CPU query. Must not know which kernels exist. */
#include "base/base.h"

#include <sched.h>
#include <stdatomic.h>
#include <strings.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

static const char *const level_name[VTRN_CPU_LEVELS] = {
    [VTRN_CPU_REF] = "ref",
    [VTRN_CPU_AVX2] = "avx2",
    [VTRN_CPU_AVX512] = "avx512",
    [VTRN_CPU_AVX512BF16] = "avx512bf16",
    [VTRN_CPU_NEON] = "neon",
};

#if defined(__x86_64__)
/* Register state that the operating system saves: bit 2 AVX, bits 5-7 AVX-512 (Intel SDM volume 1, 13.2). */
static uint32_t saved_state(void)
{
    uint32_t low, high;

    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

static enum vtrn_cpu_level query(void)
{
    enum { FMA = 1 << 12, OSXSAVE = 1 << 27, AVX = 1 << 28, F16C = 1 << 29 };        /* leaf 1, ecx */
    enum { AVX2 = 1 << 5, F = 1 << 16, DQ = 1 << 17, BW = 1 << 30 };                 /* leaf 7, ebx; VL is bit 31 */
    const uint32_t first = FMA | OSXSAVE | AVX | F16C, wide = (uint32_t)F | DQ | BW | UINT32_C(1) << 31;
    uint32_t a, b, c, d, state;

    if (!__get_cpuid(1, &a, &b, &c, &d) || (c & first) != first) return VTRN_CPU_REF;
    state = saved_state();
    if ((state & 0x6) != 0x6 || !__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(b & AVX2)) return VTRN_CPU_REF;
    if ((state & 0xe6) != 0xe6 || (b & wide) != wide) return VTRN_CPU_AVX2;
    if (a < 1 || !(c & 1 << 1)) return VTRN_CPU_AVX512;                                                 /* AVX512_VBMI */
    if (!__get_cpuid_count(7, 1, &a, &b, &c, &d) || !(a & 1 << 5)) return VTRN_CPU_AVX512;              /* AVX512_BF16 */
    return VTRN_CPU_AVX512BF16;
}
#elif defined(__aarch64__)
static enum vtrn_cpu_level query(void)
{
    return VTRN_CPU_NEON; /* part of the base architecture */
}
#else
static enum vtrn_cpu_level query(void)
{
    return VTRN_CPU_REF;
}
#endif

enum vtrn_cpu_level vtrn_cpu_best(void)
{
    static atomic_int cached; /* level + 1; 0: not asked yet. Two threads that ask at once store the same value. */
    int known = atomic_load_explicit(&cached, memory_order_relaxed);

    if (known == 0) {
        known = (int)query() + 1;
        atomic_store_explicit(&cached, known, memory_order_relaxed);
    }
    return (enum vtrn_cpu_level)(known - 1);
}

bool vtrn_cpu_has(enum vtrn_cpu_level level)
{
    enum vtrn_cpu_level best = vtrn_cpu_best();

    if (level == VTRN_CPU_REF) return true;
    if (level == VTRN_CPU_NEON || best == VTRN_CPU_NEON) return level == best;
    return level <= best;
}

enum vtrn_cpu_level vtrn_cpu_level(void)
{
    const char *wanted = getenv("VTRN_CPU");

    for (int level = 0; wanted && level < VTRN_CPU_LEVELS; level++)
        if (strcasecmp(wanted, level_name[level]) == 0 && vtrn_cpu_has((enum vtrn_cpu_level)level))
            return (enum vtrn_cpu_level)level;
    return vtrn_cpu_best();
}

const char *vtrn_cpu_name(enum vtrn_cpu_level level)
{
    return (unsigned)level < VTRN_CPU_LEVELS ? level_name[level] : "unknown";
}

int vtrn_cpu_count(void)
{
    long online;

#if defined(__linux__)
    cpu_set_t set;

    if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0) return CPU_COUNT(&set);
#endif
    online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (int)online : 1;
}
