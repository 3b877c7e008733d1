/* Transposes on byte vectors, one text for every level: the including file brings
 *   LANES                        128-bit lanes of a vector
 *   tv, tv_load(p, lane_pitch)   lane l from p + l * lane_pitch
 *   tv_store(p, v)               all lanes to p, p + 16, ...
 *   tv_zip_low, tv_zip_high(elem_bytes, a, b)   a0 b0 a1 b1 ... of the lower, upper half of each lane
 *
 * A lane holds E = 16 / elem_bytes elements. A block is LANES*E rows of E columns: row l*E + r goes to lane l of vector r,
 * so that an output vector is a whole piece of a destination row and no step crosses lanes. In a lane, E vectors of E
 * elements are transposed by log2(E) rounds of the same zip: read as one array, zipping vector i with vector i + E/2 into
 * vectors 2i and 2i+1 rotates the bits of the element index by one, and log2(E) such rotations swap row and column. */
MM_INLINE void zip_round(const int elem_bytes, const int count, tv *x)
{
    tv y[16];
#pragma GCC unroll 16
    for (int i = 0; i < count / 2; i++) {
        y[2 * i] = tv_zip_low(elem_bytes, x[i], x[i + count / 2]);
        y[2 * i + 1] = tv_zip_high(elem_bytes, x[i], x[i + count / 2]);
    }
#pragma GCC unroll 16
    for (int i = 0; i < count; i++) x[i] = y[i];
}
MM_INLINE void transpose_block(const int elem_bytes, uint8_t *dst, ptrdiff_t dst_pitch, const uint8_t *src, ptrdiff_t src_pitch)
{
    const int count = 16 / elem_bytes;
    tv x[16];
#pragma GCC unroll 16
    for (int r = 0; r < count; r++) x[r] = tv_load(src + src_pitch * r, src_pitch * count);
    zip_round(elem_bytes, count, x);
    zip_round(elem_bytes, count, x);
    if (count > 4) zip_round(elem_bytes, count, x);
    if (count > 8) zip_round(elem_bytes, count, x);
#pragma GCC unroll 16
    for (int r = 0; r < count; r++) tv_store(dst + dst_pitch * r, x[r]);
}
/* A block that sticks out of the matrix: through copies of full size. */
MM_INLINE void transpose_edge(const int elem_bytes, uint8_t *dst, ptrdiff_t dst_pitch, const uint8_t *src, ptrdiff_t src_pitch,
                              size_t rows, size_t cols)
{
    uint8_t from[16 * LANES * 16] = { 0 }, to[16 * LANES * 16];
    for (size_t i = 0; i < rows; i++) memcpy(from + 16 * i, src + src_pitch * (ptrdiff_t)i, cols * (size_t)elem_bytes);
    transpose_block(elem_bytes, to, 16 * LANES, from, 16);
    for (size_t j = 0; j < cols; j++) memcpy(dst + dst_pitch * (ptrdiff_t)j, to + 16 * LANES * j, rows * (size_t)elem_bytes);
}
MM_INLINE void transpose(const int elem_bytes, uint8_t *dst, ptrdiff_t dst_pitch, const uint8_t *src, ptrdiff_t src_pitch,
                         size_t rows, size_t cols)
{
    const size_t block_cols = 16 / (size_t)elem_bytes, block_rows = block_cols * LANES;
    for (size_t i = 0; i < rows; i += block_rows) {
        for (size_t j = 0; j < cols; j += block_cols) {
            const uint8_t *from = src + src_pitch * (ptrdiff_t)i + j * (size_t)elem_bytes;
            uint8_t *to = dst + dst_pitch * (ptrdiff_t)j + i * (size_t)elem_bytes;
            size_t m = rows - i < block_rows ? rows - i : block_rows, n = cols - j < block_cols ? cols - j : block_cols;
            if (m == block_rows && n == block_cols) transpose_block(elem_bytes, to, dst_pitch, from, src_pitch);
            else transpose_edge(elem_bytes, to, dst_pitch, from, src_pitch, m, n);
        }
    }
}
static void transpose_1(void *dst, ptrdiff_t dst_pitch, const void *src, ptrdiff_t src_pitch, size_t rows, size_t cols)
{
    transpose(1, dst, dst_pitch, src, src_pitch, rows, cols);
}
static void transpose_2(void *dst, ptrdiff_t dst_pitch, const void *src, ptrdiff_t src_pitch, size_t rows, size_t cols)
{
    transpose(2, dst, dst_pitch, src, src_pitch, rows, cols);
}
static void transpose_4(void *dst, ptrdiff_t dst_pitch, const void *src, ptrdiff_t src_pitch, size_t rows, size_t cols)
{
    transpose(4, dst, dst_pitch, src, src_pitch, rows, cols);
}
