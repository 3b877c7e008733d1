/* Inside kern/x86 only: operands as pairs of bf16 for VDPBF16PS, with the permutes of AVX-512 VBMI. A dword holds two steps
 * of the chain of one column, the earlier one in the high half, because the instruction adds the high product first:
 *
 *      31             16 15              0
 *     | step 2i (bf16)  | step 2i+1 (bf16) |
 *
 * The instruction takes denormals as zero and flushes them. While packing, the least magnitude other than 0 is tracked;
 * with it `pairs_exact` decides whether that can ever show. */
#ifndef VTRN_KERN_MM_PAIRS_AVX512BF16_H
#define VTRN_KERN_MM_PAIRS_AVX512BF16_H
#include "kern/x86/mm_words_avx512.h"

enum {
    EXPONENT_NEVER = -100000, /* a value that the instruction cannot take */
    EXPONENT_ALL_ZERO = 1000,
    PAIRS_WIDTH = 64, /* columns of a panel */
};

/* Exponents are those of the least magnitudes (value = 1.xxx * 2^e). bf16 has 8 significant bits, so every product is a
 * multiple of 2^(es - 7 + ex - 7). From es + ex >= -112 on that is a multiple of 2^-126, and so is every partial sum: it
 * is 0 or normal, and neither flushing nor denormals-as-zero can happen in a chain that starts at 0. */
static inline bool pairs_exact(int s_exponent, int x_exponent) { return s_exponent + x_exponent >= -112; }

/* bf16 values of the 128 fp8 magnitudes, low bytes and high bytes apart: a permute of bytes looks up 64 at once. */
struct f8_table {
    __m512i low[2], high[2];
};
#define E4M3_NUMBER(m) \
    ((m) >= 8 ? ((m) << 4) + 0x3c00 : (m) >= 4 ? 0x3c00 + ((m)-4) * 0x20 : (m) >= 2 ? 0x3b80 + ((m)-2) * 0x40 : (m)*0x3b00)
#define E5M2_NUMBER(m)          ((m) >= 4 ? ((m) << 5) + 0x3800 : (m) >= 2 ? 0x3800 + ((m)-2) * 0x40 : (m)*0x3780)
#define SPECIAL(m, inf, number) ((m) > (inf) ? 0x7fc0 : (m) == (inf) ? 0x7f80 : (number))
#define E4M3(m)                 SPECIAL(m, 0x78, E4M3_NUMBER(m))
#define E4M3FN(m)               ((m) == 0x7f ? 0x7fc0 : E4M3_NUMBER(m))
#define E5M2(m)                 SPECIAL(m, 0x7c, E5M2_NUMBER(m))
#define TABLE_8(F, m)           F((m)), F((m) + 1), F((m) + 2), F((m) + 3), F((m) + 4), F((m) + 5), F((m) + 6), F((m) + 7)
#define TABLE_32(F, m)          TABLE_8(F, m), TABLE_8(F, (m) + 8), TABLE_8(F, (m) + 16), TABLE_8(F, (m) + 24)
#define TABLE_128(F)            TABLE_32(F, 0), TABLE_32(F, 32), TABLE_32(F, 64), TABLE_32(F, 96)

/* The low bytes of 64 words. */
MM_INLINE __m512i bytes_of_words(__m512i first, __m512i second)
{
    return _mm512_inserti64x4(_mm512_castsi256_si512(_mm512_cvtepi16_epi8(first)), _mm512_cvtepi16_epi8(second), 1);
}
static inline struct f8_table load_f8_table(int dtype)
{
    static const uint16_t e4m3[128] = { TABLE_128(E4M3) }, e4m3fn[128] = { TABLE_128(E4M3FN) }, e5m2[128] = { TABLE_128(E5M2) };
    const uint16_t *from = dtype == VTRN_DT_F8E4M3 ? e4m3 : dtype == VTRN_DT_F8E5M2 || dtype == VTRN_DT_F8E5M2X4 ? e5m2 : e4m3fn;
    struct f8_table table;
    for (int i = 0; i < 2; i++) {
        __m512i first = _mm512_loadu_si512(from + 64 * i), second = _mm512_loadu_si512(from + 64 * i + 32);
        table.low[i] = bytes_of_words(first, second);
        table.high[i] = bytes_of_words(_mm512_srli_epi16(first, 8), _mm512_srli_epi16(second, 8));
    }
    return table;
}
/* bf16 magnitudes of codes that stand in both bytes of their word; bit 7 plays no part. */
MM_INLINE __m512i f8_magnitude(const struct f8_table *t, __m512i codes)
{
    __m512i low = _mm512_permutex2var_epi8(t->low[0], codes, t->low[1]);
    __m512i high = _mm512_permutex2var_epi8(t->high[0], codes, t->high[1]);
    return _mm512_mask_mov_epi8(low, UINT64_C(0xaaaaaaaaaaaaaaaa), high);
}
/* The sign of each word from bit 15 of its codes. */
MM_INLINE __m512i with_sign(__m512i magnitude, __m512i codes)
{
    return _mm512_ternarylogic_epi32(magnitude, codes, _mm512_set1_epi16(INT16_MIN), 0xf8); /* magnitude | (codes & mask) */
}

static inline int bf16_exponent(int magnitude) { return magnitude < 0x80 ? EXPONENT_NEVER : (magnitude >> 7) - 127; }
MM_INLINE int least_word(__m512i v)
{
    __m256i half = _mm256_min_epu16(_mm512_castsi512_si256(v), _mm512_extracti64x4_epi64(v, 1));
    __m128i quarter = _mm_min_epu16(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
    return _mm_cvtsi128_si32(_mm_minpos_epu16(quarter)) & 0xffff;
}

/* The most -2x mod 2^16 of each word seen so far: the sign drops out, the least |x| gives the most, and 0 gives 0, which is no
 * more than anything. Two subtractions (a multiplication would wait for the unit that makes the products) and one maximum for 32
 * values. Two, to halve the chain of maxima. */
struct pairs_seen {
    __m512i most[2];
};
MM_INLINE struct pairs_seen pairs_seen_none(void)
{
    return (struct pairs_seen){ { _mm512_setzero_si512(), _mm512_setzero_si512() } };
}
MM_INLINE void pairs_see(__m512i *most, __m512i x)
{
    *most = _mm512_max_epu16(*most, _mm512_sub_epi16(_mm512_sub_epi16(_mm512_setzero_si512(), x), x));
}
/* The exponent of the least magnitude. */
MM_INLINE int pairs_exponent(const int dtype, const struct pairs_seen *seen)
{
    if (dtype == VTRN_DT_F8E5M2) return -16; /* of the least denormal, whether it is there or not */
    if (dtype != VTRN_DT_BF16) return -9;
    __m512i all_ones = _mm512_set1_epi16(-1);
    int inverse = least_word(_mm512_xor_si512(_mm512_max_epu16(seen->most[0], seen->most[1]), all_ones));
    return inverse == UINT16_MAX ? EXPONENT_ALL_ZERO : bf16_exponent((inverse + 1) / 2); /* 2^16 - (2^16 - 2|x|) */
}

/* Where packed pairs go: vector v of pair-row i to data + i * step + v * vector. */
struct packed_pairs {
    uint32_t *data;
    ptrdiff_t step, vector;
};
/* Which of up to 64 columns are there. */
struct pairs_mask {
    __mmask64 byte;
    __mmask32 word[2];
};
MM_INLINE struct pairs_mask pairs_mask(int columns)
{
    __mmask64 mask = columns >= 64 ? ~UINT64_C(0) : columns <= 0 ? 0 : (UINT64_C(1) << columns) - 1;
    return (struct pairs_mask){ mask, { (__mmask32)mask, (__mmask32)(mask >> 32) } };
}
/* Two rows as `vectors` vectors of pairs (bf16 may fill one more, to an even number). */
MM_INLINE void load_pairs_bf16(const int vectors, const uint8_t *row, const uint8_t *next, const struct pairs_mask *row_mask,
                               const struct pairs_mask *next_mask, struct pairs_seen *seen, __m512i *pair)
{
    /* word 2c of a result is next[c], word 2c+1 is row[c] */
    const __m512i low = _mm512_set_epi16(47, 15, 46, 14, 45, 13, 44, 12, 43, 11, 42, 10, 41, 9, 40, 8, 39, 7, 38, 6, 37, 5, 36, 4,
                                         35, 3, 34, 2, 33, 1, 32, 0);
    const __m512i high = _mm512_add_epi16(low, _mm512_set1_epi16(16));
#pragma GCC unroll 2
    for (int g = 0; g < (vectors + 1) / 2; g++) {
        __m512i earlier = _mm512_maskz_loadu_epi16(row_mask->word[g], row + 64 * g);
        __m512i later = _mm512_maskz_loadu_epi16(next_mask->word[g], next + 64 * g);
        pair[2 * g] = _mm512_permutex2var_epi16(later, low, earlier);
        pair[2 * g + 1] = _mm512_permutex2var_epi16(later, high, earlier);
        pairs_see(&seen->most[0], earlier);
        pairs_see(&seen->most[1], later);
    }
}
MM_INLINE void load_pairs_f8(const int vectors, const struct f8_table *table, const uint8_t *row, const uint8_t *next,
                             const struct pairs_mask *row_mask, const struct pairs_mask *next_mask, __m512i *pair)
{
    /* bytes 4c, 4c+1 of a result are next[c] twice, 4c+2 and 4c+3 row[c] */
    static const uint8_t order[64] = { 64, 64, 0,  0,  65, 65, 1,  1,  66, 66, 2,  2,  67, 67, 3,  3,  68, 68, 4,  4,  69, 69,
                                       5,  5,  70, 70, 6,  6,  71, 71, 7,  7,  72, 72, 8,  8,  73, 73, 9,  9,  74, 74, 10, 10,
                                       75, 75, 11, 11, 76, 76, 12, 12, 77, 77, 13, 13, 78, 78, 14, 14, 79, 79, 15, 15 };
    __m512i earlier = _mm512_maskz_loadu_epi8(row_mask->byte, row), later = _mm512_maskz_loadu_epi8(next_mask->byte, next);
    __m512i first = _mm512_loadu_si512(order);
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++) {
        __m512i from = _mm512_add_epi8(first, _mm512_set1_epi8((char)(16 * v)));
        __m512i codes = _mm512_permutex2var_epi8(earlier, from, later);
        pair[v] = with_sign(f8_magnitude(table, codes), codes);
    }
}
MM_INLINE void load_pairs(const int dtype, const int vectors, const struct f8_table *table, const uint8_t *row, const uint8_t *next,
                          const struct pairs_mask *row_mask, const struct pairs_mask *next_mask, struct pairs_seen *seen,
                          __m512i *pair)
{
    if (dtype == VTRN_DT_BF16) load_pairs_bf16(vectors, row, next, row_mask, next_mask, seen, pair);
    else load_pairs_f8(vectors, table, row, next, row_mask, next_mask, pair);
}
/* All rows of an operand of bf16 or fp8, `columns` of them from column0, as pairs.
 * The row that an odd number lacks is 0 in both operands: its product is +0, and adding that changes no chain (a chain of
 * exact pairs is never -0). Returns the exponent of the least magnitude. */
MM_INLINE int pack_pairs_as(const int dtype, const struct mm_operand *op, int rows, int column0, int columns,
                            const struct packed_pairs *out)
{
    const struct f8_table table = load_f8_table(dtype);
    const struct pairs_mask mask = pairs_mask(mm_min(columns, PAIRS_WIDTH)), none = pairs_mask(0);
    const ptrdiff_t pitch = op->pitch; /* a local: stores of vectors may alias anything */
    struct pairs_seen seen = pairs_seen_none();
    const uint8_t *row = op->data + (ptrdiff_t)op->elem_bytes * column0;
    const ptrdiff_t step = out->step, vector = out->vector;
    uint32_t *to = out->data;
    for (int r = 0; r < rows; r += 2, row += 2 * pitch, to += step) {
        bool both = r + 1 < rows;
        __m512i pair[4];
        load_pairs(dtype, 4, &table, row, both ? row + pitch : row, &mask, both ? &mask : &none, &seen, pair);
#pragma GCC unroll 4
        for (int v = 0; v < 4; v++) {
            if (v * VL >= columns) break;
            _mm512_storeu_si512(to + vector * v, pair[v]);
        }
    }
    return pairs_exponent(dtype, &seen);
}

/* Scaling a bf16 by 2^(byte-127) is an addition to its exponent as long as the result stays normal; what is seen of all
 * operands tells whether it did. Magnitudes are positive int16, and the addition saturates. */
struct scaled_range {
    __m512i least, most, most_unscaled, most_scale;
};
MM_INLINE __m512i scale_words(__m512i magnitude, __m512i exponent, struct scaled_range *seen)
{
    __mmask32 nonzero = _mm512_test_epi16_mask(magnitude, magnitude);
    __m512i scaled = _mm512_mask_adds_epi16(magnitude, nonzero, magnitude, exponent);
    seen->least = _mm512_mask_min_epi16(seen->least, nonzero, seen->least, scaled);
    seen->most = _mm512_max_epi16(seen->most, scaled);
    seen->most_unscaled = _mm512_max_epi16(seen->most_unscaled, magnitude);
    return scaled;
}
static inline int scaled_exponent(const struct scaled_range *seen)
{
    const __m512i infinity = _mm512_set1_epi16(0x7f80), nan_scale = _mm512_set1_epi32(0xff);
    bool special = _mm512_cmpge_epi16_mask(seen->most, infinity) || _mm512_cmpge_epi16_mask(seen->most_unscaled, infinity) ||
                   _mm512_cmpge_epi32_mask(seen->most_scale, nan_scale);
    bool denormal = _mm512_cmplt_epi16_mask(seen->least, _mm512_set1_epi16(0x80));
    if (special || denormal) return EXPONENT_NEVER;
    int least = least_word(seen->least);
    return least == INT16_MAX ? EXPONENT_ALL_ZERO : bf16_exponent(least);
}

/* The codes of 16 packed elements: lanes 0 and 2 of each in the low and high word of `even`, lanes 1 and 3 in `odd`; both
 * bytes of a word hold the same. */
MM_INLINE void load_mx_codes(const int dtype, const uint8_t *p, __mmask16 mask, __m512i *even, __m512i *odd)
{
    if (dtype == VTRN_DT_F4E2M1FNX4) { /* the sign, bit 3 of a code, to bit 15 of its word; bits 2..0 where they are */
        __m512i v = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, p));
        const __m512i nibble = _mm512_set1_epi32(0x000f000f);
        __m512i e = _mm512_and_si512(_mm512_or_si512(v, _mm512_slli_epi32(v, 8)), nibble);                       /* lanes 0, 2 */
        __m512i o = _mm512_and_si512(_mm512_or_si512(_mm512_srli_epi32(v, 4), _mm512_slli_epi32(v, 4)), nibble); /* lanes 1, 3 */
        *even = _mm512_or_si512(e, _mm512_slli_epi16(e, 12));
        *odd = _mm512_or_si512(o, _mm512_slli_epi16(o, 12));
    } else {
        __m512i v = _mm512_maskz_loadu_epi32(mask, p);
        *even = _mm512_shuffle_epi8(v, _mm512_set4_epi32(0x0e0e0c0c, 0x0a0a0808, 0x06060404, 0x02020000));
        *odd = _mm512_shuffle_epi8(v, _mm512_set4_epi32(0x0f0f0d0d, 0x0b0b0909, 0x07070505, 0x03030101));
    }
}
/* All rows of an MX operand, scaled, as two rows of pairs each: lanes 0, 1 and lanes 2, 3. Returns the exponent of the
 * least magnitude, or EXPONENT_NEVER when a value is not finite or not normal. */
MM_INLINE int pack_pairs_mx_as(const int dtype, const struct mm_operand *op, int rows, int column0, int columns,
                               const struct packed_pairs *out)
{
    const bool fp4 = dtype == VTRN_DT_F4E2M1FNX4;
    const int elem_bytes = fp4 ? 2 : 4;
    const struct f8_table table = load_f8_table(dtype);
    const __m512i e2m1 = _mm512_broadcast_i32x4(_mm_setr_epi16(0, 0x3f00, 0x3f80, 0x3fc0, 0x4000, 0x4040, 0x4080, 0x40c0));
    const __m512i high = _mm512_set1_epi32((int)0xffff0000);
    struct scaled_range seen = { _mm512_set1_epi16(INT16_MAX), _mm512_setzero_si512(), _mm512_setzero_si512(),
                                 _mm512_setzero_si512() };
    const uint8_t *row = op->data + (ptrdiff_t)elem_bytes * column0, *scale_row = op->scale + column0;
    uint32_t *to = out->data;
    for (int r = 0; r < rows; r++, row += op->pitch, scale_row += op->scale_pitch, to += 2 * out->step) {
#pragma GCC unroll 4
        for (int v = 0; v < 4; v++) {
            const int j = v * VL;
            if (j >= columns) break;
            __mmask16 mask = mask16(mm_min(columns - j, VL));
            __m512i even, odd;
            load_mx_codes(dtype, row + elem_bytes * j, mask, &even, &odd);
            __m512i scale = _mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(mask, scale_row + j));
            seen.most_scale = _mm512_max_epi32(seen.most_scale, scale);
            __m512i exponent = _mm512_slli_epi32(_mm512_sub_epi32(scale, _mm512_set1_epi32(127)), 7);
            exponent = _mm512_mask_mov_epi16(exponent, 0xaaaaaaaa, _mm512_slli_epi32(exponent, 16));
            __m512i even_mag = fp4 ? _mm512_permutexvar_epi16(even, e2m1) : f8_magnitude(&table, even);
            __m512i odd_mag = fp4 ? _mm512_permutexvar_epi16(odd, e2m1) : f8_magnitude(&table, odd);
            even = with_sign(scale_words(even_mag, exponent, &seen), even);
            odd = with_sign(scale_words(odd_mag, exponent, &seen), odd);
            /* (even << 16) | (odd & 0xffff) and (even & high) | (odd >> 16) */
            _mm512_storeu_si512(to + out->vector * v, _mm512_ternarylogic_epi32(high, _mm512_slli_epi32(even, 16), odd, 0xca));
            _mm512_storeu_si512(to + out->step + out->vector * v,
                                _mm512_ternarylogic_epi32(high, even, _mm512_srli_epi32(odd, 16), 0xca));
        }
    }
    return scaled_exponent(&seen);
}

static inline bool pairs_possible(uint8_t dtype) { return (VTRN_DTBIT(BF16) | VTRN_DTS_F8 | VTRN_DTS_MX) >> dtype & 1; }
static int pack_pairs(const struct mm_operand *op, int rows, int column0, int columns, const struct packed_pairs *out)
{
    switch (op->dtype) {
    case VTRN_DT_BF16: return pack_pairs_as(VTRN_DT_BF16, op, rows, column0, columns, out);
    case VTRN_DT_F8E5M2: return pack_pairs_as(VTRN_DT_F8E5M2, op, rows, column0, columns, out);
    case VTRN_DT_F8E5M2X4: return pack_pairs_mx_as(VTRN_DT_F8E5M2X4, op, rows, column0, columns, out);
    case VTRN_DT_F8E4M3FNX4: return pack_pairs_mx_as(VTRN_DT_F8E4M3FNX4, op, rows, column0, columns, out);
    case VTRN_DT_F4E2M1FNX4: return pack_pairs_mx_as(VTRN_DT_F4E2M1FNX4, op, rows, column0, columns, out);
    default:
        return op->dtype == VTRN_DT_F8E4M3 ? pack_pairs_as(VTRN_DT_F8E4M3, op, rows, column0, columns, out)
                                           : pack_pairs_as(VTRN_DT_F8E4M3FN, op, rows, column0, columns, out);
    }
}
#endif
