/* The bit operators on elements of 1, 2 and 4 bytes: the definition. Values are unsigned; a shift by the width or more
 * gives 0. Elements may be unaligned, so they are moved with memcpy. */
#include "kern/kern_int.h"

static inline uint32_t bits_op(const enum vtrn_alu op, const int width, uint32_t a, uint32_t b)
{
    switch (op) {
    case VTRN_ALU_INVERT: return ~a;
    case VTRN_ALU_BITWISE_AND: return a & b;
    case VTRN_ALU_BITWISE_OR: return a | b;
    case VTRN_ALU_BITWISE_XOR: return a ^ b;
    case VTRN_ALU_LEFT_SHIFT: return b < (uint32_t)width ? a << b : 0;
    default: VTRN_ASSERT(op == VTRN_ALU_RIGHT_SHIFT); return b < (uint32_t)width ? a >> b : 0;
    }
}
static inline uint32_t get(const void *row, size_t i, const size_t size)
{
    const uint8_t *at = (const uint8_t *)row + i * size;
    uint16_t half;
    uint32_t word;
    if (size == 1) return *at;
    if (size == 2) return memcpy(&half, at, 2), half;
    return memcpy(&word, at, 4), word;
}
static inline void put(void *row, size_t i, const size_t size, uint32_t value)
{
    uint8_t *at = (uint8_t *)row + i * size, byte = (uint8_t)value;
    uint16_t half = (uint16_t)value;
    memcpy(at, size == 1 ? (void *)&byte : size == 2 ? (void *)&half : (void *)&value, size);
}

#define ROWS(NAME, SIZE) \
    static void tt_bits_##NAME##_##SIZE##_ref(void *dst, const void *a, const void *b, size_t n) \
    { \
        for (size_t i = 0; i < n; i++) \
            put(dst, i, SIZE, \
                bits_op(VTRN_ALU_##NAME, 8 * (SIZE), get(a, i, SIZE), VTRN_ALU_##NAME == VTRN_ALU_INVERT ? 0 : get(b, i, SIZE))); \
    } \
    static void ts_bits_##NAME##_##SIZE##_ref(void *dst, const void *a, uint32_t s, bool reverse, size_t n) \
    { \
        bool swap = reverse && VTRN_ALU_##NAME != VTRN_ALU_INVERT; \
        uint32_t scalar = (SIZE) == 4 ? s : s & ((UINT32_C(1) << 8 * (SIZE) % 32) - 1); \
        for (size_t i = 0; i < n; i++) { \
            uint32_t value = get(a, i, SIZE); \
            put(dst, i, SIZE, bits_op(VTRN_ALU_##NAME, 8 * (SIZE), swap ? scalar : value, swap ? value : s)); \
        } \
    }
#define ROWS_OF(NAME) ROWS(NAME, 1) ROWS(NAME, 2) ROWS(NAME, 4)
KERN_EACH_BITS(ROWS_OF)

#define REDUCE(NAME, SIZE) \
    static void reduce_bits_##NAME##_##SIZE##_ref(void *acc, const void *src, size_t row_stride, size_t rows, size_t n) \
    { \
        for (size_t r = 0; r < rows; r++) { \
            uint32_t value = get(acc, r, SIZE); \
            for (size_t i = 0; i < n; i++) \
                value = bits_op(VTRN_ALU_##NAME, 8 * (SIZE), value, get(src, r * row_stride + i, SIZE)); \
            put(acc, r, SIZE, value); \
        } \
    }
#define REDUCE_OF(NAME) REDUCE(NAME, 1) REDUCE(NAME, 2) REDUCE(NAME, 4)
KERN_EACH_BITS_REDUCE(REDUCE_OF)

void vtrn_kern_ref_bits(struct vtrn_kern *kern)
{
#define SET(NAME) \
    kern->tt_bits[VTRN_ALU_##NAME][0] = tt_bits_##NAME##_1_ref; \
    kern->tt_bits[VTRN_ALU_##NAME][1] = tt_bits_##NAME##_2_ref; \
    kern->tt_bits[VTRN_ALU_##NAME][2] = tt_bits_##NAME##_4_ref; \
    kern->ts_bits[VTRN_ALU_##NAME][0] = ts_bits_##NAME##_1_ref; \
    kern->ts_bits[VTRN_ALU_##NAME][1] = ts_bits_##NAME##_2_ref; \
    kern->ts_bits[VTRN_ALU_##NAME][2] = ts_bits_##NAME##_4_ref;
#define SET_REDUCE(NAME) \
    kern->reduce_bits[VTRN_ALU_##NAME][0] = reduce_bits_##NAME##_1_ref; \
    kern->reduce_bits[VTRN_ALU_##NAME][1] = reduce_bits_##NAME##_2_ref; \
    kern->reduce_bits[VTRN_ALU_##NAME][2] = reduce_bits_##NAME##_4_ref;
    KERN_EACH_BITS(SET)
    KERN_EACH_BITS_REDUCE(SET_REDUCE)
}
