/* Transposes: every level against the definition, over all small sizes and some large ones, with odd pitches and
 * alignments; sources end at a page that may not be read, bytes between destination rows stay as they were. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "kern/kern.h"

enum { SRC_BYTES = 1 << 18 };

static void check_one(const struct vtrn_kern *kern, const uint8_t *src_end, int size_index, size_t rows, size_t cols, size_t gap)
{
    size_t elem = (size_t)1 << size_index, src_pitch = cols * elem + gap, dst_pitch = rows * elem + 3 * gap + 1;
    size_t src_bytes = rows * cols > 0 ? src_pitch * (rows - 1) + cols * elem : 0, dst_bytes = dst_pitch * cols + 200;
    assert_true(src_bytes <= SRC_BYTES);
    const uint8_t *src = src_end - src_bytes;
    uint8_t *got = malloc(dst_bytes), *expected = malloc(dst_bytes);
    assert_non_null(got);
    assert_non_null(expected);
    memset(got, 0xa5, dst_bytes);
    memset(expected, 0xa5, dst_bytes);
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < cols; j++)
            for (size_t b = 0; b < elem; b++) expected[1 + dst_pitch * j + elem * i + b] = src[src_pitch * i + elem * j + b];
    kern->transpose[size_index](got + 1, (ptrdiff_t)dst_pitch, src, (ptrdiff_t)src_pitch, rows, cols);
    if (memcmp(got, expected, dst_bytes) != 0)
        fail_msg("%s: %zu-byte elements, %zu rows, %zu columns, pitch %zu", vtrn_cpu_name(kern->level), elem, rows, cols, src_pitch);
    free(got);
    free(expected);
}

static void check_level(enum vtrn_cpu_level level)
{
    const struct vtrn_kern *kern = vtrn_kern_for(level);
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uint8_t *map = mmap(NULL, SRC_BYTES + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(map != MAP_FAILED);
    assert_int_equal(mprotect(map + SRC_BYTES, page, PROT_NONE), 0);
    uint32_t state = 1;
    for (size_t i = 0; i < SRC_BYTES; i++) map[i] = (uint8_t)((state = state * 1664525 + 1013904223) >> 24);
    const size_t large[] = { 63, 64, 65, 127, 128, 130, 200 };
    for (int size_index = 0; size_index < 3; size_index++) {
        for (size_t rows = 0; rows < 36; rows++)
            for (size_t cols = 0; cols < 36; cols++) check_one(kern, map + SRC_BYTES, size_index, rows, cols, (rows + cols) % 3);
        for (size_t i = 0; i < sizeof large / sizeof *large; i++)
            for (size_t j = 0; j < sizeof large / sizeof *large; j++)
                check_one(kern, map + SRC_BYTES, size_index, large[i], large[j], i);
    }
    munmap(map, SRC_BYTES + page);
}
static void test_levels(void **state)
{
    (void)state;
    for (int level = VTRN_CPU_REF; level < VTRN_CPU_LEVELS; level++)
        if (vtrn_cpu_has((enum vtrn_cpu_level)level)) check_level((enum vtrn_cpu_level)level);
}
/* The 128x128 tile of 2-byte elements between padded partitions, as the tensor engine's transposes use it. */
static void test_partition_pitch(void **state)
{
    (void)state;
    enum { PITCH = 8192 + 64 };
    uint8_t *src = malloc(128 * PITCH), *dst = malloc(128 * PITCH);
    assert_non_null(src);
    assert_non_null(dst);
    for (int level = VTRN_CPU_REF; level < VTRN_CPU_LEVELS; level++) {
        if (!vtrn_cpu_has((enum vtrn_cpu_level)level)) continue;
        for (size_t i = 0; i < 128; i++)
            for (uint16_t j = 0; j < 128; j++) memcpy(src + i * PITCH + 2 * j, &(uint16_t){ (uint16_t)(i << 8 | j) }, 2);
        vtrn_kern_for((enum vtrn_cpu_level)level)->transpose[1](dst, PITCH, src, PITCH, 128, 128);
        for (size_t j = 0; j < 128; j++) {
            for (size_t i = 0; i < 128; i++) {
                uint16_t value;
                memcpy(&value, dst + j * PITCH + 2 * i, 2);
                assert_int_equal(value, i << 8 | j);
            }
        }
    }
    free(src);
    free(dst);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_levels), cmocka_unit_test(test_partition_pitch) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
