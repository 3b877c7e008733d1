/* For the tests of kern: random rows with extreme values in them, a seed that can be set, bits of floats. */
#ifndef KERN_ROWS_H
#define KERN_ROWS_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "kern/kern.h"

struct rows_rng {
    uint64_t state;
};
static inline uint64_t rows_next(struct rows_rng *rng) /* splitmix64 */
{
    uint64_t z = rng->state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}
static inline uint32_t rows_u32(struct rows_rng *rng) { return (uint32_t)(rows_next(rng) >> 32); }
static inline size_t rows_below(struct rows_rng *rng, size_t n) { return (size_t)(rows_next(rng) % n); }

/* VTRN_TEST_SEED=<n> runs other cases; every failure prints the seed. */
static inline uint64_t rows_seed(void)
{
    const char *text = getenv("VTRN_TEST_SEED");
    return text ? strtoull(text, NULL, 0) : 20261;
}
static inline uint32_t rows_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}
static inline float rows_float(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}
/* Half of the values are ordinary, the rest anything: all bit patterns, small integers, edges. */
static inline float rows_value(struct rows_rng *rng)
{
    static const uint32_t edge[] = {
        0,          0x80000000, 1,          0x80000001, 0x007fffff, 0x00800000, 0x7f7fffff, 0xff7fffff, 0x7f800000, 0xff800000,
        0x7fc00000, 0xffc00000, 0x7f800001, 0xffffffff, 0x3f800000, 0xbf800000, 0x4effffff, 0x4f000000, 0xcf000000, 0x4f7fffff,
        0x4f800000, 0x42b17218, 0xc2cff1b5, 0xc2aeac50, 0x40490fdb, 0xc0490fdb, 0x3f000000, 0x3fc00000, 0x40200000, 0x43e00000,
        0x43e80000, 0x43700000, 0x43780000, 0x47600000, 0x47680000, 0x477fe000, 0x477ff000, 0x7f7f8000,
    };
    uint32_t r = rows_u32(rng);
    switch (rows_u32(rng) % 8) {
    case 0: return rows_float(r);
    case 1: return rows_float(edge[r % (sizeof edge / sizeof *edge)]);
    case 2: return (float)(int)(r % 41) - 20;
    case 3: return (float)(int32_t)r * 0x1p-24f;  /* +-128 */
    default: return (float)(int32_t)r * 0x1p-29f; /* +-4 */
    }
}
/* Where functions or their evaluation change: ends of tables, zeros of slopes, overflow and underflow, pi. */
enum { ROWS_PLACES = 41 };
static const float rows_places[ROWS_PLACES] = {
    0,     0x1p-126f, 1,           0.75179f,    1.27846f, 0.75115f, 3.828125f, 3.796875f, 5.80078125f, 7.734375f,       11.6015625f,
    9.12f, 3.93f,     3.988f,      13.1f,       14.1f,    14.4f,    15,         16.6f,       17.3f,           40,
    87,    87.3366f,  88.7228f,    89,          103.97f,  104,      108,        200,         1.5707964f,      3.1415927f,
    5.59f, 9,         0.70710678f, 1.41421356f, 0.5f,     2,        0x1p24f,    0x1p64f,     0x1.fffffep127f, INFINITY,
};
#endif
