/* base: what every other folder stands on. Errors, checked sizes, growable buffers, arenas, the host's
 * CPU level, a thread pool and random numbers. Knows nothing of Trainium. */
#ifndef VTRN_BASE_H
#define VTRN_BASE_H
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vtrn/status.h"

/* ---- errors: the first detector writes the message (struct vtrn_error, status.h), callers forward the status ---- */
#if defined(__GNUC__)
#define VTRN_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define VTRN_LIKELY(x) __builtin_expect(!!(x), 1)
#define VTRN_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define VTRN_RARE __attribute__((noinline)) /* a seldom path of a short function: its registers and stack are its own */
#else
#define VTRN_PRINTF(fmt, args)
#define VTRN_LIKELY(x) (x)
#define VTRN_UNLIKELY(x) (x)
#define VTRN_RARE
#endif
/* Writes the message and returns `status`. `err` may be NULL. */
enum vtrn_status vtrn_fail(struct vtrn_error *err, enum vtrn_status status, const char *fmt, ...) VTRN_PRINTF(3, 4);
/* Puts "prefix: " before the message that is there. */
void vtrn_error_prefix(struct vtrn_error *err, const char *fmt, ...) VTRN_PRINTF(2, 3);

#define VTRN_TRY(call) \
    do { \
        enum vtrn_status try_status_ = (call); \
        if (VTRN_UNLIKELY(try_status_ < 0)) return try_status_; \
    } while (0)
#define VTRN_FAIL_IF(cond, err, code, ...) \
    do { \
        if (VTRN_UNLIKELY(cond)) return vtrn_fail((err), (code), __VA_ARGS__); \
    } while (0)

/* Our bug, never the user's input: prints the condition and aborts. */
#define VTRN_ASSERT(cond) ((cond) ? (void)0 : vtrn_assert_failed(#cond, __FILE__, __LINE__))
#if defined(__GNUC__)
__attribute__((noreturn))
#endif
void vtrn_assert_failed(const char *cond, const char *file, int line);

/* ---- checked sizes: false (and *out untouched) when the result does not fit ---- */
static inline bool vtrn_mul_size(size_t a, size_t b, size_t *out)
{
    if (b != 0 && a > SIZE_MAX / b) return false;
    *out = a * b;
    return true;
}
static inline bool vtrn_add_size(size_t a, size_t b, size_t *out)
{
    if (a > SIZE_MAX - b) return false;
    *out = a + b;
    return true;
}
/* int64 versions for access-pattern arithmetic on untrusted numbers. */
bool vtrn_mul_i64(int64_t a, int64_t b, int64_t *out);
bool vtrn_add_i64(int64_t a, int64_t b, int64_t *out);

/* ---- growable byte buffer ---- */
struct vtrn_buf {
    uint8_t *data;
    size_t size, capacity;
};
enum vtrn_status vtrn_buf_reserve(struct vtrn_buf *buf, size_t extra_bytes);
enum vtrn_status vtrn_buf_append(struct vtrn_buf *buf, const void *bytes, size_t size_bytes);
enum vtrn_status vtrn_buf_printf(struct vtrn_buf *buf, const char *fmt, ...) VTRN_PRINTF(2, 3);
void vtrn_buf_fini(struct vtrn_buf *buf);

/* ---- arena: many small allocations, freed whole ---- */
struct vtrn_arena {
    struct vtrn_arena_block *head;
};
void *vtrn_arena_alloc(struct vtrn_arena *arena, size_t size_bytes); /* zeroed, 16-byte aligned; NULL: no memory */
char *vtrn_arena_strdup(struct vtrn_arena *arena, const char *text);
void vtrn_arena_fini(struct vtrn_arena *arena);

/* ---- aligned host memory ---- */
void *vtrn_alloc_aligned(size_t size_bytes, size_t align); /* uninitialised; free with vtrn_free_aligned */
void vtrn_free_aligned(void *ptr);
/* Page-backed, lazily zero, asks for huge pages above 2 MiB; NULL: no memory. */
void *vtrn_alloc_pages(size_t size_bytes);
void vtrn_free_pages(void *ptr, size_t size_bytes);
/* Pages that wait for their next user, at most `most_bytes` of them: pages fresh from the host cost a fault and a clearing
 * each, which is most of a short run and several percent of a long one. What is taken holds what its last user left there.
 * Any thread may take and give. A NULL cache keeps nothing. */
struct vtrn_page_cache;
struct vtrn_page_cache *vtrn_page_cache_create(size_t most_bytes); /* NULL: no memory */
void vtrn_page_cache_destroy(struct vtrn_page_cache *cache);
void *vtrn_pages_take(struct vtrn_page_cache *cache, size_t size_bytes);
void vtrn_pages_give(struct vtrn_page_cache *cache, void *ptr, size_t size_bytes);

/* ---- the host's CPU: the best level this machine has, or the one VTRN_CPU names when it has it ---- */
enum vtrn_cpu_level {
    VTRN_CPU_REF,
    VTRN_CPU_AVX2,       /* AVX2 + FMA + F16C */
    VTRN_CPU_AVX512,     /* F, BW, DQ, VL */
    VTRN_CPU_AVX512BF16, /* the above with VDPBF16PS and VBMI (byte permutes): all that have the first but Cooper Lake */
    VTRN_CPU_NEON,
    VTRN_CPU_LEVELS
};
enum vtrn_cpu_level vtrn_cpu_best(void);      /* what the machine has */
enum vtrn_cpu_level vtrn_cpu_level(void);     /* after VTRN_CPU=ref|avx2|avx512|avx512bf16|neon */
bool vtrn_cpu_has(enum vtrn_cpu_level level); /* this machine runs code of that level */
const char *vtrn_cpu_name(enum vtrn_cpu_level level);
int vtrn_cpu_count(void); /* host threads that may run at once (affinity respected) */

/* ---- thread pool: fork-join over `parts`; the caller works too; a pool of 1 runs in place ---- */
struct vtrn_pool;
struct vtrn_pool *vtrn_pool_create(int threads); /* NULL: no memory; fewer threads when the host gives fewer */
void vtrn_pool_destroy(struct vtrn_pool *pool);
int vtrn_pool_threads(const struct vtrn_pool *pool); /* 1 for NULL */
void vtrn_pool_run(struct vtrn_pool *pool, int parts, void (*fn)(void *arg, int part, int parts), void *arg);

/* ---- hashing of bytes (FNV-1a 64): digests of tensors in reports, hash tables ---- */
uint64_t vtrn_hash_bytes(const void *data, size_t size_bytes, uint64_t seed);

#endif
