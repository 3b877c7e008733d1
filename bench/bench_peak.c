/* Register loops for bench_peak.h: 16 (AVX2: 12) independent accumulators, no memory. The empty asm statements keep the
 * compiler from merging or dropping iterations and cost no instruction; every loop over the accumulators is unrolled, or they
 * would live in memory and the peak would be half of what it is. */
#include "bench_peak.h"

#include <time.h>

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

#if defined(__x86_64__)
#include <immintrin.h>

enum { TURNS = 16000 };

__attribute__((target("avx512f"))) static double fma_avx512(void)
{
    __m512 c[16], a = _mm512_set1_ps(1.0001f), b = _mm512_set1_ps(0.9999f);
#pragma GCC unroll 16
    for (int j = 0; j < 16; j++) c[j] = _mm512_set1_ps((float)j);
    double start = now_ns();
    for (int i = 0; i < TURNS; i++) {
#pragma GCC unroll 16
        for (int j = 0; j < 16; j++) {
            c[j] = _mm512_fmadd_ps(a, b, c[j]);
            __asm__ volatile("" : "+v"(c[j]));
        }
    }
    return TURNS * 16.0 * 32 / (now_ns() - start);
}
__attribute__((target("avx512f,avx512bf16"))) static double pairs_avx512bf16(void)
{
    __m512 c[16];
    __m512bh a = (__m512bh)_mm512_set1_epi32(0x3f803f80), b = (__m512bh)_mm512_set1_epi32(0x3f813f81);
#pragma GCC unroll 16
    for (int j = 0; j < 16; j++) c[j] = _mm512_set1_ps((float)j);
    double start = now_ns();
    for (int i = 0; i < TURNS; i++) {
#pragma GCC unroll 16
        for (int j = 0; j < 16; j++) {
            c[j] = _mm512_dpbf16_ps(c[j], a, b);
            __asm__ volatile("" : "+v"(c[j]));
        }
    }
    return TURNS * 16.0 * 64 / (now_ns() - start);
}
__attribute__((target("avx2,fma"))) static double fma_avx2(void)
{
    __m256 c[12], a = _mm256_set1_ps(1.0001f), b = _mm256_set1_ps(0.9999f);
#pragma GCC unroll 12
    for (int j = 0; j < 12; j++) c[j] = _mm256_set1_ps((float)j);
    double start = now_ns();
    for (int i = 0; i < TURNS; i++) {
#pragma GCC unroll 12
        for (int j = 0; j < 12; j++) {
            c[j] = _mm256_fmadd_ps(a, b, c[j]);
            __asm__ volatile("" : "+x"(c[j]));
        }
    }
    return TURNS * 12.0 * 16 / (now_ns() - start);
}
#elif defined(__aarch64__)
#include <arm_neon.h>

enum { TURNS = 16000 };

static double fma_neon(void)
{
    float32x4_t c[16], a = vdupq_n_f32(1.0001f), b = vdupq_n_f32(0.9999f);
#pragma GCC unroll 16
    for (int j = 0; j < 16; j++) c[j] = vdupq_n_f32((float)j);
    double start = now_ns();
    for (int i = 0; i < TURNS; i++) {
#pragma GCC unroll 16
        for (int j = 0; j < 16; j++) {
            c[j] = vfmaq_f32(c[j], a, b);
            __asm__ volatile("" : "+w"(c[j]));
        }
    }
    return TURNS * 16.0 * 8 / (now_ns() - start);
}
#endif

/* The ref level: scalar fma from the C library, a call each. */
static double fma_scalar(void)
{
    enum { SCALAR_TURNS = 40000 };
    float c[4] = { 0, 1, 2, 3 };
    double start = now_ns();
    for (int i = 0; i < SCALAR_TURNS; i++) {
        for (int j = 0; j < 4; j++) c[j] = __builtin_fmaf(1.0001f, 0.9999f, c[j]);
        __asm__ volatile("" : : "r"(c) : "memory");
    }
    return SCALAR_TURNS * 4.0 * 2 / (now_ns() - start);
}

double vtrn_bench_fma_rate(enum vtrn_cpu_level level)
{
    switch (level) {
#if defined(__x86_64__)
    case VTRN_CPU_AVX2: return fma_avx2();
    case VTRN_CPU_AVX512:
    case VTRN_CPU_AVX512BF16: return fma_avx512();
#elif defined(__aarch64__)
    case VTRN_CPU_NEON: return fma_neon();
#endif
    default: return fma_scalar();
    }
}
double vtrn_bench_pairs_rate(enum vtrn_cpu_level level)
{
#if defined(__x86_64__)
    if (level == VTRN_CPU_AVX512BF16) return pairs_avx512bf16();
#endif
    return vtrn_bench_fma_rate(level);
}
const char *vtrn_bench_pairs_name(enum vtrn_cpu_level level) { return level == VTRN_CPU_AVX512BF16 ? "VDPBF16PS" : "fma"; }
