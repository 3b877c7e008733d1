/* Does VDPBF16PS on this processor compute fma(low, fma(high, acc)) in fp32, rounding to nearest even each time? The
 * makers' manuals say so in pseudo-code, with denormals as zero and flushed; measured on Zen 4 and Zen 5. The tile product
 * depends on every bit of it, so it is tried at start-up on random chains against scalar fma before it is used: chains
 * with all exponents that the denormal guard lets through, cancellation, ties, overflow to inf, and inf and NaN inputs. */
#include <math.h>

#include "kern/x86/mm_words_avx512.h"

enum { CHAINS = 512, PAIRS = 8 };

static uint64_t next_random(uint64_t *state) /* splitmix64 */
{
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}
/* A bf16 with an exponent field in [least, least + spread), sometimes 0, and inf or NaN if asked. */
static uint16_t random_bf16(uint64_t *state, int least, int spread, bool specials)
{
    uint64_t r = next_random(state);
    uint16_t sign_mantissa = (uint16_t)(r & 0x807f);
    int kind = (int)(r >> 16 & 63);
    if (kind == 0) return sign_mantissa & 0x8000;
    if (specials && kind == 1) return (uint16_t)((sign_mantissa & 0x8000) | 0x7f80);
    if (specials && kind == 2) return sign_mantissa | 0x7fc0;
    return (uint16_t)(sign_mantissa | (least + (int)((r >> 32) % (unsigned)spread)) << 7);
}
static float bf16_value(uint32_t bits)
{
    float value;
    bits <<= 16;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Exponent fields of the two operands; each least pair is on or above the guard's limit of -112. */
struct range {
    int s_least, s_spread, x_least, x_spread;
    bool specials;
};

/* One vector of chains: pairs of each lane, by the instruction and by fma. */
static bool chains_agree(uint64_t *state, const struct range *range)
{
    uint32_t s[PAIRS][16], x[PAIRS][16];
    float expected[16] = { 0 }, got[16];
    for (int k = 0; k < PAIRS; k++) {
        for (int lane = 0; lane < 16; lane++) {
            uint32_t s0 = random_bf16(state, range->s_least, range->s_spread, range->specials);
            uint32_t s1 = random_bf16(state, range->s_least, range->s_spread, range->specials);
            uint32_t x0 = random_bf16(state, range->x_least, range->x_spread, range->specials);
            uint32_t x1 = random_bf16(state, range->x_least, range->x_spread, range->specials);
            s[k][lane] = s0 << 16 | s1;
            x[k][lane] = x0 << 16 | x1;
            expected[lane] = fmaf(bf16_value(s0), bf16_value(x0), expected[lane]);
            expected[lane] = fmaf(bf16_value(s1), bf16_value(x1), expected[lane]);
        }
    }
    vf chain = v_zero();
    for (int k = 0; k < PAIRS; k++)
        chain = _mm512_dpbf16_ps(chain, (__m512bh)_mm512_loadu_si512(s[k]), (__m512bh)_mm512_loadu_si512(x[k]));
    v_store(got, v_canonical(chain));
    v_store(expected, v_canonical(v_load(expected)));
    return memcmp(got, expected, sizeof got) == 0;
}

bool vtrn_mm_bf16_selftest(void)
{
    static const struct range ranges[] = {
        { 120, 14, 120, 14, false },
        { 127, 1, 127, 2, false },
        { 127 - 56, 1, 127 - 56, 1, false },
        { 127 - 56, 12, 127 - 56, 12, false },
        { 127 - 112, 90, 127, 90, false },
        { 1, 60, 127 + 14, 60, false },
        { 127 + 60, 10, 127 + 60, 10, false },
        { 127 + 60, 20, 127 + 50, 30, true },
        { 110, 30, 110, 30, true },
    };
    uint64_t state = 1;
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        for (int n = 0; n < CHAINS; n++)
            if (!chains_agree(&state, &ranges[i])) return false;
    return true;
}
