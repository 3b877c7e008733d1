/* Inside mem/ only: the pool that automatic on-chip tensors live in, and the count of host memory. */
#ifndef VTRN_MEM_INT_H
#define VTRN_MEM_INT_H
#include "mem/mem.h"

#include <stdatomic.h>

struct mem_usage { /* of a whole vtrn_mem; both cores' threads count */
    struct vtrn_page_cache *cache;
    atomic_size_t now, peak;
};
void mem_usage_add(struct mem_usage *usage, size_t bytes);
void mem_usage_sub(struct mem_usage *usage, size_t bytes);
/* vtrn_pages_take / vtrn_pages_give, counted. */
void *mem_pages_alloc(struct mem_usage *usage, size_t size_bytes);
void mem_pages_free(struct mem_usage *usage, void *ptr, size_t size_bytes);

/* Blocks of at least a wanted size, handed out again last in, first out: the block that was used last is in the cache. */
enum { MEM_CLASSES = 128 };
struct mem_chunk {
    void *base;
    size_t size_bytes;
};
struct mem_pool {
    struct mem_usage *usage;
    void *idle[MEM_CLASSES]; /* linked through their first bytes */
    uint8_t *slab;           /* small blocks are cut from here */
    size_t slab_left;
    struct mem_chunk *chunk; /* everything that the pool holds */
    size_t chunks, chunk_capacity;
};
/* 64-byte aligned; NULL: no memory. *class_out goes back to mem_pool_put. */
void *mem_pool_get(struct mem_pool *pool, size_t size_bytes, uint8_t *class_out);
void mem_pool_put(struct mem_pool *pool, void *block, uint8_t size_class);
void mem_pool_fini(struct mem_pool *pool);
#endif
