/* Random cases for the tile products: operands in memory that ends at a forbidden page, values of several kinds. */
#ifndef VTRN_TESTS_MM_CASES_H
#define VTRN_TESTS_MM_CASES_H
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "kern/kern.h"

enum values {
    VALUES_ORDINARY, /* around 1, both signs */
    VALUES_WIDE,     /* all normal exponents of the dtype */
    VALUES_TINY,     /* the lowest exponents and denormals, some around 1 */
    VALUES_SPARSE,   /* mostly zeros of both signs, the others wide */
    VALUES_BITS,     /* any bit pattern: inf, NaN, denormals */
    VALUES_HUGE,     /* the highest exponents: sums overflow */
    VALUES_KINDS
};
enum { MM_DTYPES = 7, MM_MX_DTYPES = 3 };
static const enum vtrn_dtype mm_dtypes[MM_DTYPES] = { VTRN_DT_F32,    VTRN_DT_TF32,     VTRN_DT_BF16,  VTRN_DT_F16,
                                                      VTRN_DT_F8E4M3, VTRN_DT_F8E4M3FN, VTRN_DT_F8E5M2 };
static const enum vtrn_dtype mm_mx_dtypes[MM_MX_DTYPES] = { VTRN_DT_F8E5M2X4, VTRN_DT_F8E4M3FNX4, VTRN_DT_F4E2M1FNX4 };

struct mm_shape {
    int k, m, n;
};
struct mm_side {
    uint8_t *data;
    ptrdiff_t pitch;
    int columns;
    enum vtrn_dtype dtype;
    uint8_t *scale;
    void *map;
    size_t map_bytes;
};
struct mm_case {
    uint64_t seed;
    bool mx, acc;
    int k;
    enum values s_values, x_values;
    struct mm_side s, x;
    struct {
        uint8_t *block, *data; /* rows with gaps, all of it compared */
        size_t block_bytes;
        ptrdiff_t pitch;
    } d;
    uint8_t *d_before;
};

static inline uint64_t test_random(uint64_t *state) /* splitmix64 */
{
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}
static inline int random_below(uint64_t *state, int limit) { return (int)(test_random(state) % (uint64_t)limit); }
static inline uint64_t test_seed(uint64_t group)
{
    const char *text = getenv("VTRN_TEST_SEED");
    return group + UINT64_C(1000003) * (text != NULL ? strtoull(text, NULL, 0) : 0);
}
static inline uint32_t float_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}
static inline int mm_min_int(int a, int b) { return a < b ? a : b; }

/* Exponent and mantissa bits of the float dtypes. */
static inline void float_layout(enum vtrn_dtype dtype, int *exponent_out, int *mantissa_out)
{
    switch (dtype) {
    case VTRN_DT_BF16: *exponent_out = 8, *mantissa_out = 7; return;
    case VTRN_DT_F16: *exponent_out = 5, *mantissa_out = 10; return;
    case VTRN_DT_F8E4M3:
    case VTRN_DT_F8E4M3FN:
    case VTRN_DT_F8E4M3FNX4: *exponent_out = 4, *mantissa_out = 3; return;
    case VTRN_DT_F8E5M2:
    case VTRN_DT_F8E5M2X4: *exponent_out = 5, *mantissa_out = 2; return;
    default: *exponent_out = 8, *mantissa_out = 23; return;
    }
}
static inline uint32_t random_code(uint64_t *state, enum vtrn_dtype dtype, enum values values)
{
    int exponent_bits, mantissa_bits;
    float_layout(dtype, &exponent_bits, &mantissa_bits);
    uint32_t r = (uint32_t)test_random(state);
    uint32_t sign = (r >> 31) << (exponent_bits + mantissa_bits), mantissa = r & ((UINT32_C(1) << mantissa_bits) - 1);
    int exponents = 1 << exponent_bits, bias = exponents / 2 - 1, exponent;
    if (values == VALUES_SPARSE && random_below(state, 4) != 0) return sign;
    switch (values) {
    case VALUES_ORDINARY: exponent = bias - 2 + random_below(state, 4); break;
    case VALUES_TINY: exponent = random_below(state, 3) == 0 ? bias : random_below(state, 3); break;
    case VALUES_HUGE: exponent = exponents - 2 - random_below(state, 3); break;
    case VALUES_BITS: return r >> (32 - 1 - exponent_bits - mantissa_bits);
    default: exponent = 1 + random_below(state, exponents - 2); break;
    }
    return sign | (uint32_t)exponent << mantissa_bits | mantissa;
}
/* One element; packed elements get four codes. */
static inline void random_element(uint64_t *state, enum vtrn_dtype dtype, enum values values, uint8_t *out)
{
    size_t size = vtrn_dtypes[dtype].size_bytes;
    uint32_t code = 0;
    if (dtype == VTRN_DT_F4E2M1FNX4) {
        code = values == VALUES_SPARSE ? (uint32_t)test_random(state) & (uint32_t)test_random(state) & 0x9999
                                       : (uint32_t)test_random(state);
    } else if (vtrn_dtypes[dtype].lanes == 4) {
        for (int q = 0; q < 4; q++) code |= random_code(state, dtype, values) << (8 * q);
    } else {
        code = random_code(state, dtype, values);
    }
    memcpy(out, &code, size);
}
static inline uint8_t random_scale(uint64_t *state, enum values values)
{
    switch (values) {
    case VALUES_ORDINARY: return (uint8_t)(122 + random_below(state, 10));
    case VALUES_WIDE: return (uint8_t)(70 + random_below(state, 110));
    case VALUES_TINY: return (uint8_t)random_below(state, 60);
    case VALUES_HUGE: return (uint8_t)(200 + random_below(state, 55));
    case VALUES_BITS: return (uint8_t)(random_below(state, 50) == 0 ? 255 : 100 + random_below(state, 60));
    default: return (uint8_t)(random_below(state, 3) == 0 ? 0 : 120);
    }
}

static inline void side_make(struct mm_side *side, uint64_t *state, int rows, int columns, enum vtrn_dtype dtype,
                             enum values values, bool mx)
{
    size_t size = vtrn_dtypes[dtype].size_bytes, row_bytes = size * (size_t)columns;
    size_t pitch = row_bytes + (size_t)random_below(state, 3) * (size_t)random_below(state, 100);
    size_t bytes = rows > 0 ? pitch * (size_t)(rows - 1) + row_bytes : 0, page = (size_t)sysconf(_SC_PAGESIZE);
    size_t map_bytes = (bytes / page + 2) * page;
    uint8_t *map = mmap(NULL, map_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(map != MAP_FAILED);
    assert_int_equal(mprotect(map + map_bytes - page, page, PROT_NONE), 0);
    *side = (struct mm_side){ .data = map + map_bytes - page - bytes,
                              .pitch = (ptrdiff_t)pitch,
                              .columns = columns,
                              .dtype = dtype,
                              .map = map,
                              .map_bytes = map_bytes };
    memset(map, 0x7f, map_bytes - page); /* gaps: NaN or huge in every dtype */
    for (int r = 0; r < rows; r++)
        for (int i = 0; i < columns; i++) random_element(state, dtype, values, side->data + pitch * (size_t)r + size * (size_t)i);
    if (!mx) return;
    side->scale = malloc((size_t)rows * (size_t)columns + 1);
    assert_non_null(side->scale);
    for (int i = 0; i < rows * columns; i++) side->scale[i] = random_scale(state, values);
}
static inline void case_make_any(struct mm_case *c, uint64_t seed, struct mm_shape shape, enum vtrn_dtype s, enum vtrn_dtype x,
                                 enum values s_values, enum values x_values, bool acc, bool mx)
{
    uint64_t state = seed;
    *c = (struct mm_case){ .seed = seed, .mx = mx, .acc = acc, .k = shape.k, .s_values = s_values, .x_values = x_values };
    side_make(&c->s, &state, shape.k, shape.m, s, s_values, mx);
    side_make(&c->x, &state, shape.k, shape.n, x, x_values, mx);
    c->d.pitch = (ptrdiff_t)sizeof(float) * (shape.n + random_below(&state, 20));
    size_t lead = (size_t)random_below(&state, 17) * 4;
    c->d.block_bytes = lead + (size_t)c->d.pitch * (size_t)shape.m + 256;
    c->d.block = malloc(c->d.block_bytes);
    c->d_before = malloc(c->d.block_bytes);
    assert_non_null(c->d.block);
    assert_non_null(c->d_before);
    c->d.data = c->d.block + lead;
    for (size_t i = 0; i + 4 <= c->d.block_bytes; i += 4) {
        uint32_t code = random_code(&state, VTRN_DT_F32, random_below(&state, 50) == 0 ? VALUES_BITS : VALUES_ORDINARY);
        memcpy(c->d_before + i, &code, 4);
    }
    memcpy(c->d.block, c->d_before, c->d.block_bytes);
}
static inline void case_make(struct mm_case *c, uint64_t seed, struct mm_shape shape, enum vtrn_dtype s, enum vtrn_dtype x,
                             enum values s_values, enum values x_values, bool acc)
{
    case_make_any(c, seed, shape, s, x, s_values, x_values, acc, false);
}
static inline void case_random(struct mm_case *c, uint64_t seed, int max_k, int max_mn, bool mx)
{
    uint64_t state = seed * 31 + 7;
    const enum vtrn_dtype *dtypes = mx ? mm_mx_dtypes : mm_dtypes;
    int count = mx ? MM_MX_DTYPES : MM_DTYPES;
    struct mm_shape shape = { random_below(&state, max_k + 1), random_below(&state, max_mn + 1), random_below(&state, max_mn + 1) };
    /* drawn one by one: the order of evaluation of arguments is not defined */
    enum vtrn_dtype s = dtypes[random_below(&state, count)], x = dtypes[random_below(&state, count)];
    enum values s_values = (enum values)random_below(&state, VALUES_KINDS);
    enum values x_values = (enum values)random_below(&state, VALUES_KINDS);
    case_make_any(c, seed, shape, s, x, s_values, x_values, random_below(&state, 2), mx);
}
static inline void case_fini(struct mm_case *c)
{
    munmap(c->s.map, c->s.map_bytes);
    munmap(c->x.map, c->x.map_bytes);
    free(c->s.scale);
    free(c->x.scale);
    free(c->d.block);
    free(c->d_before);
}
/* bf16 values with one exponent (of 2), random signs and mantissas. */
static inline void case_fill_exponent(struct mm_side *side, int rows, int exponent, uint64_t seed)
{
    for (int r = 0; r < rows; r++) {
        for (int i = 0; i < side->columns; i++) {
            uint16_t code = (uint16_t)((test_random(&seed) & 0x807f) | (uint64_t)(exponent + 127) << 7);
            memcpy(side->data + side->pitch * r + 2 * i, &code, sizeof code);
        }
    }
}

/* The destination rows [m0, m0+m), columns [n0, n0+n). */
static inline void case_run_part(struct mm_case *c, const struct vtrn_kern *kern, int m0, int m, int n0, int n)
{
    void *scratch = vtrn_alloc_aligned(kern->mm_scratch_bytes, 64);
    assert_non_null(scratch);
    memset(scratch, 0xff, kern->mm_scratch_bytes); /* NaNs: nothing in it may be relied on */
    const uint8_t *s = c->s.data + (size_t)m0 * vtrn_dtypes[c->s.dtype].size_bytes;
    const uint8_t *x = c->x.data + (size_t)n0 * vtrn_dtypes[c->x.dtype].size_bytes;
    float *d = (float *)(void *)(c->d.data + c->d.pitch * m0 + 4 * n0);
    if (c->mx) {
        struct vtrn_mm_mx mm = { .k = c->k,
                                 .m = m,
                                 .n = n,
                                 .s = s,
                                 .s_pitch = c->s.pitch,
                                 .x = x,
                                 .x_pitch = c->x.pitch,
                                 .s_scale = c->s.scale + m0,
                                 .x_scale = c->x.scale + n0,
                                 .s_scale_pitch = m == c->s.columns ? 0 : c->s.columns,
                                 .x_scale_pitch = c->x.columns,
                                 .d = d,
                                 .d_pitch = c->d.pitch,
                                 .s_dtype = (uint8_t)c->s.dtype,
                                 .x_dtype = (uint8_t)c->x.dtype,
                                 .acc = c->acc,
                                 .scratch = scratch };
        kern->mm_mx(&mm);
    } else {
        struct vtrn_mm mm = { .k = c->k,
                              .m = m,
                              .n = n,
                              .s = s,
                              .s_pitch = c->s.pitch,
                              .x = x,
                              .x_pitch = c->x.pitch,
                              .d = d,
                              .d_pitch = c->d.pitch,
                              .s_dtype = (uint8_t)c->s.dtype,
                              .x_dtype = (uint8_t)c->x.dtype,
                              .acc = c->acc,
                              .scratch = scratch };
        kern->mm(&mm);
    }
    vtrn_free_aligned(scratch);
}
static inline void case_run(struct mm_case *c, const struct vtrn_kern *kern)
{
    case_run_part(c, kern, 0, c->s.columns, 0, c->x.columns);
}
static inline const char *case_text(const struct mm_case *c)
{
    static char text[256];
    snprintf(text, sizeof text, "seed %llu k %d m %d n %d %s x %s values %d x %d acc %d pitches %td %td %td",
             (unsigned long long)c->seed, c->k, c->s.columns, c->x.columns, vtrn_dtypes[c->s.dtype].text,
             vtrn_dtypes[c->x.dtype].text, (int)c->s_values, (int)c->x_values, c->acc, c->s.pitch, c->x.pitch, c->d.pitch);
    return text;
}
#endif
