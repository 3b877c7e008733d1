/* The bit operators on rows in the words of a vector level: what ref/bits.c defines. AND, OR, XOR, INVERT see bytes and do
 * not care how wide elements are; shifts of narrow elements are done in 32-bit lanes, where bits that leave the element are
 * dropped by the narrowing store. Reductions take whole vectors of a row together: these operators have no order. */

KERN_INLINE vi i_bits(const enum vtrn_alu op, vi a, vi b)
{
    switch (op) {
    case VTRN_ALU_INVERT: return i_xor(a, i_set1(UINT32_MAX));
    case VTRN_ALU_BITWISE_AND: return i_and(a, b);
    case VTRN_ALU_BITWISE_OR: return i_or(a, b);
    case VTRN_ALU_BITWISE_XOR: return i_xor(a, b);
    case VTRN_ALU_LEFT_SHIFT: return i_sllv(a, b);
    default: return i_srlv(a, b); /* RIGHT_SHIFT */
    }
}
KERN_INLINE bool bits_are_bytewise(const enum vtrn_alu op) { return op != VTRN_ALU_LEFT_SHIFT && op != VTRN_ALU_RIGHT_SHIFT; }
KERN_INLINE vi i_load_elements(const void *p, const int size, int lanes)
{
    return size == 1 ? i_load_u8(p, lanes) : size == 2 ? i_load_u16(p, lanes) : i_load(p, lanes);
}
KERN_INLINE void i_store_elements(void *p, vi v, const int size, int lanes)
{
    if (size == 1) i_store_8(p, v, lanes);
    else if (size == 2) i_store_16(p, v, lanes);
    else i_store(p, v, lanes);
}
/* Up to VL * 4 bytes, of which the end of a row may be no multiple of 4. */
KERN_INLINE vi i_load_bytes(const void *p, size_t bytes)
{
    uint32_t end[VL] = { 0 };
    if (bytes >= VL * 4) return i_load(p, VL);
    memcpy(end, p, bytes);
    return i_load(end, VL);
}
KERN_INLINE void i_store_bytes(void *p, vi v, size_t bytes)
{
    uint32_t end[VL];
    i_store(bytes >= VL * 4 ? p : end, v, VL);
    if (bytes < VL * 4) memcpy(p, end, bytes);
}

KERN_INLINE void tt_row(const enum vtrn_alu op, const int size, void *dst, const void *a, const void *b, size_t n)
{
    const bool bytewise = bits_are_bytewise(op), unary = op == VTRN_ALU_INVERT;
    const size_t step = bytewise ? VL * 4 : (size_t)(VL * size), bytes = n * (size_t)size;
    uint8_t *d = dst;
    const uint8_t *x = a, *y = unary ? a : b;

    for (size_t i = 0; i < bytes; i += step) {
        size_t left = bytes - i < step ? bytes - i : step;
        if (bytewise) {
            i_store_bytes(d + i, i_bits(op, i_load_bytes(x + i, left), i_load_bytes(y + i, left)), left);
        } else {
            int lanes = (int)left / size;
            i_store_elements(d + i, i_bits(op, i_load_elements(x + i, size, lanes), i_load_elements(y + i, size, lanes)), size,
                             lanes);
        }
    }
}
KERN_INLINE void ts_row(const enum vtrn_alu op, const int size, const bool swap, void *dst, const void *a, uint32_t s, size_t n)
{
    /* the scalar as an element, repeated where lanes hold several; a shift count keeps all its bits */
    const uint32_t element = size == 4 ? s : s & ((UINT32_C(1) << 8 * size % 32) - 1);
    const uint32_t repeated = size == 1 ? element * UINT32_C(0x01010101) : size == 2 ? element * UINT32_C(0x00010001) : element;
    const bool bytewise = bits_are_bytewise(op);
    const vi v = i_set1(bytewise ? repeated : swap ? element : s);
    const size_t step = bytewise ? VL * 4 : (size_t)(VL * size), bytes = n * (size_t)size;
    uint8_t *d = dst;
    const uint8_t *x = a;

    for (size_t i = 0; i < bytes; i += step) {
        size_t left = bytes - i < step ? bytes - i : step;
        if (bytewise) {
            i_store_bytes(d + i, i_bits(op, i_load_bytes(x + i, left), v), left);
        } else {
            int lanes = (int)left / size;
            vi value = i_load_elements(x + i, size, lanes);
            i_store_elements(d + i, swap ? i_bits(op, v, value) : i_bits(op, value, v), size, lanes);
        }
    }
}

KERN_INLINE uint32_t bits_fold(const enum vtrn_alu op, uint32_t a, uint32_t b)
{
    return op == VTRN_ALU_BITWISE_AND ? a & b : op == VTRN_ALU_BITWISE_OR ? a | b : a ^ b;
}
KERN_INLINE void reduce_bits_rows(const enum vtrn_alu op, const int size, void *acc, const void *src, size_t row_stride,
                                  size_t rows, size_t n)
{
    const size_t bytes = n * (size_t)size, step = VL * 4;
    for (size_t r = 0; r < rows; r++) {
        const uint8_t *row = (const uint8_t *)src + r * row_stride * (size_t)size;
        uint8_t *at = (uint8_t *)acc + r * (size_t)size;
        uint32_t value = op == VTRN_ALU_BITWISE_AND ? UINT32_MAX : 0, old = 0, lane[VL];
        vi sum = i_set1(value);
        size_t i = 0;
        for (; i + step <= bytes; i += step) sum = i_bits(op, sum, i_load(row + i, VL));
        i_store(lane, sum, VL);
        for (int k = 0; k < VL; k++) value = bits_fold(op, value, lane[k]);
        for (; i + 4 <= bytes; i += 4) {
            uint32_t word;
            memcpy(&word, row + i, 4);
            value = bits_fold(op, value, word);
        }
        if (size <= 2) value = bits_fold(op, value, value >> 16) & 0xffff;
        if (size == 1) value = bits_fold(op, value, value >> 8) & 0xff;
        for (; i < bytes; i += (size_t)size) {
            uint32_t element = 0;
            memcpy(&element, row + i, (size_t)size);
            value = bits_fold(op, value, element);
        }
        memcpy(&old, at, (size_t)size);
        value = bits_fold(op, old, value);
        memcpy(at, &value, (size_t)size);
    }
}

#define ROWS(NAME, SIZE) \
    static void tt_bits_##NAME##_##SIZE(void *dst, const void *a, const void *b, size_t n) \
    { \
        tt_row(VTRN_ALU_##NAME, SIZE, dst, a, b, n); \
    } \
    static void ts_bits_##NAME##_##SIZE(void *dst, const void *a, uint32_t s, bool reverse, size_t n) \
    { \
        if (reverse && VTRN_ALU_##NAME != VTRN_ALU_INVERT) ts_row(VTRN_ALU_##NAME, SIZE, true, dst, a, s, n); \
        else ts_row(VTRN_ALU_##NAME, SIZE, false, dst, a, s, n); \
    }
#define REDUCE(NAME, SIZE) \
    static void reduce_bits_##NAME##_##SIZE(void *acc, const void *src, size_t row_stride, size_t rows, size_t n) \
    { \
        reduce_bits_rows(VTRN_ALU_##NAME, SIZE, acc, src, row_stride, rows, n); \
    }
#define ROWS_OF(NAME)   ROWS(NAME, 1) ROWS(NAME, 2) ROWS(NAME, 4)
#define REDUCE_OF(NAME) REDUCE(NAME, 1) REDUCE(NAME, 2) REDUCE(NAME, 4)
KERN_EACH_BITS(ROWS_OF)
KERN_EACH_BITS_REDUCE(REDUCE_OF)

static void set_bits(struct vtrn_kern *kern)
{
#define SET_SIZE(NAME, SIZE, AT) \
    kern->tt_bits[VTRN_ALU_##NAME][AT] = tt_bits_##NAME##_##SIZE; \
    kern->ts_bits[VTRN_ALU_##NAME][AT] = ts_bits_##NAME##_##SIZE;
#define SET(NAME)                       SET_SIZE(NAME, 1, 0) SET_SIZE(NAME, 2, 1) SET_SIZE(NAME, 4, 2)
#define SET_REDUCE_SIZE(NAME, SIZE, AT) kern->reduce_bits[VTRN_ALU_##NAME][AT] = reduce_bits_##NAME##_##SIZE;
#define SET_REDUCE(NAME)                SET_REDUCE_SIZE(NAME, 1, 0) SET_REDUCE_SIZE(NAME, 2, 1) SET_REDUCE_SIZE(NAME, 4, 2)
    KERN_EACH_BITS(SET)
    KERN_EACH_BITS_REDUCE(SET_REDUCE)
#undef SET
}
