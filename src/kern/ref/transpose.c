/* Transposes of elements of 1, 2 and 4 bytes: the definition. Moves bytes, so it needs no dtype and keeps NaNs as they
 * are. Rows and columns may be any number; the destination does not overlap the source. */
#include "kern/mm_int.h"

MM_INLINE void transpose(const size_t elem_bytes, uint8_t *dst, ptrdiff_t dst_pitch, const uint8_t *src, ptrdiff_t src_pitch,
                         size_t rows, size_t cols)
{
    for (size_t i = 0; i < rows; i++) {
        const uint8_t *from = src + src_pitch * (ptrdiff_t)i;
        uint8_t *to = dst + i * elem_bytes;
        for (size_t j = 0; j < cols; j++) memcpy(to + dst_pitch * (ptrdiff_t)j, from + j * elem_bytes, elem_bytes);
    }
}
static void transpose_1_ref(void *dst, ptrdiff_t dst_pitch, const void *src, ptrdiff_t src_pitch, size_t rows, size_t cols)
{
    transpose(1, dst, dst_pitch, src, src_pitch, rows, cols);
}
static void transpose_2_ref(void *dst, ptrdiff_t dst_pitch, const void *src, ptrdiff_t src_pitch, size_t rows, size_t cols)
{
    transpose(2, dst, dst_pitch, src, src_pitch, rows, cols);
}
static void transpose_4_ref(void *dst, ptrdiff_t dst_pitch, const void *src, ptrdiff_t src_pitch, size_t rows, size_t cols)
{
    transpose(4, dst, dst_pitch, src, src_pitch, rows, cols);
}

void vtrn_kern_ref_transpose(struct vtrn_kern *kern)
{
    kern->transpose[0] = transpose_1_ref;
    kern->transpose[1] = transpose_2_ref;
    kern->transpose[2] = transpose_4_ref;
}
