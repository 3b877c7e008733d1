/* Blocks of host memory for automatic SBUF and PSUM tensors.
 *
 * A kernel declares a tile, uses it and drops it thousands of times; sizes repeat. Blocks come in size classes (four to a
 * power of two, so at most a quarter is wasted), freed ones wait in a list of their class. New ones are cut from slabs of
 * huge pages, so that all tiles of a kernel share few TLB entries. Memory goes back to the host when the pool ends.
 * Must not know tensors. */
#include "mem/mem_int.h"

enum {
    MIN_SHIFT = 9, /* smallest class: 512 bytes, a 128x1 fp32 tile */
    SLAB_BYTES = 4 << 20,
    STAGGER_BYTES = 5 * 64 /* neighbours of equal size start in different sets of the cache */
};

void mem_usage_add(struct mem_usage *usage, size_t bytes)
{
    size_t now = atomic_fetch_add(&usage->now, bytes) + bytes;
    size_t peak = atomic_load(&usage->peak);

    while (peak < now && !atomic_compare_exchange_weak(&usage->peak, &peak, now)) {}
}

void mem_usage_sub(struct mem_usage *usage, size_t bytes) { atomic_fetch_sub(&usage->now, bytes); }

void *mem_pages_alloc(struct mem_usage *usage, size_t size_bytes)
{
    void *pages = vtrn_pages_take(usage->cache, size_bytes);

    if (pages) mem_usage_add(usage, size_bytes);
    return pages;
}

void mem_pages_free(struct mem_usage *usage, void *ptr, size_t size_bytes)
{
    if (!ptr) return;
    vtrn_pages_give(usage->cache, ptr, size_bytes);
    mem_usage_sub(usage, size_bytes);
}

/* Classes 4k..4k+3 hold (4..7) << (MIN_SHIFT - 2 + k) bytes. */
static unsigned class_of(size_t size_bytes)
{
    unsigned shift = MIN_SHIFT;

    while (shift < 40 && ((size_t)2 << shift) <= size_bytes) shift++;
    for (unsigned quarter = 0; quarter < 4; quarter++)
        if (size_bytes <= (size_t)(4 + quarter) << (shift - 2)) return 4 * (shift - MIN_SHIFT) + quarter;
    return 4 * (shift + 1 - MIN_SHIFT);
}

static size_t class_bytes(unsigned size_class) { return (size_t)(4 + size_class % 4) << (MIN_SHIFT - 2 + size_class / 4); }

static void *new_chunk(struct mem_pool *pool, size_t size_bytes)
{
    if (pool->chunks == pool->chunk_capacity) {
        size_t capacity = pool->chunk_capacity ? 2 * pool->chunk_capacity : 16;
        struct mem_chunk *chunk = realloc(pool->chunk, capacity * sizeof *chunk);

        if (!chunk) return NULL;
        pool->chunk = chunk;
        pool->chunk_capacity = capacity;
    }
    void *base = mem_pages_alloc(pool->usage, size_bytes);

    if (base) pool->chunk[pool->chunks++] = (struct mem_chunk){ base, size_bytes };
    return base;
}

void *mem_pool_get(struct mem_pool *pool, size_t size_bytes, uint8_t *class_out)
{
    unsigned size_class = class_of(size_bytes);

    VTRN_ASSERT(size_class < MEM_CLASSES);
    *class_out = (uint8_t)size_class;
    void *block = pool->idle[size_class];
    if (block) {
        memcpy(&pool->idle[size_class], block, sizeof block);
        return block;
    }
    size_t need = class_bytes(size_class);
    if (need > SLAB_BYTES / 4) return new_chunk(pool, need);
    need += STAGGER_BYTES;
    if (pool->slab_left < need) { /* the rest of the old slab is left unused: at most a quarter of it */
        pool->slab = new_chunk(pool, SLAB_BYTES);
        pool->slab_left = pool->slab ? SLAB_BYTES : 0;
        if (!pool->slab) return NULL;
    }
    block = pool->slab;
    pool->slab += need;
    pool->slab_left -= need;
    return block;
}

void mem_pool_put(struct mem_pool *pool, void *block, uint8_t size_class)
{
    memcpy(block, &pool->idle[size_class], sizeof block);
    pool->idle[size_class] = block;
}

void mem_pool_fini(struct mem_pool *pool)
{
    for (size_t i = 0; i < pool->chunks; i++) mem_pages_free(pool->usage, pool->chunk[i].base, pool->chunk[i].size_bytes);
    free(pool->chunk);
}
