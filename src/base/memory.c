/* Host memory in the three forms that vtrn uses: arenas (many small things, freed whole), aligned blocks (workspaces
 * of SIMD kernels) and pages (the emulated HBM: lazily zero, in huge pages so that a product of large matrices does not
 * run out of TLB entries), with a cache of such pages between runs. Also the hash of bytes. Must not know what is stored. */
#include "base/base.h"

#include <pthread.h>
#include <sys/mman.h>

/* ---------------------------------------------------------------- arena */
struct vtrn_arena_block {
    struct vtrn_arena_block *next;
    size_t used, size; /* bytes of the payload, which starts at ARENA_HEAD */
};
enum { ARENA_ALIGN = 16, ARENA_HEAD = 32, ARENA_BLOCK = 16384 };
_Static_assert(sizeof(struct vtrn_arena_block) <= ARENA_HEAD, "the payload starts behind the header");

static struct vtrn_arena_block *new_block(size_t size_bytes)
{
    struct vtrn_arena_block *block;
    size_t total;

    if (!vtrn_add_size(size_bytes, ARENA_HEAD, &total)) return NULL;
    block = calloc(1, total);
    if (block) block->size = size_bytes;
    return block;
}

void *vtrn_arena_alloc(struct vtrn_arena *arena, size_t size_bytes)
{
    struct vtrn_arena_block *block = arena->head;
    size_t need;
    uint8_t *data;

    if (!vtrn_add_size(size_bytes, ARENA_ALIGN - 1, &need)) return NULL;
    need &= ~(size_t)(ARENA_ALIGN - 1);
    if (!block || block->size - block->used < need) {
        bool large = need > ARENA_BLOCK / 4;

        block = new_block(large ? need : ARENA_BLOCK);
        if (!block) return NULL;
        if (large && arena->head) { /* keep filling the current block afterwards */
            block->next = arena->head->next;
            arena->head->next = block;
        } else {
            block->next = arena->head;
            arena->head = block;
        }
    }
    data = (uint8_t *)block + ARENA_HEAD + block->used;
    block->used += need;
    return data;
}

char *vtrn_arena_strdup(struct vtrn_arena *arena, const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = vtrn_arena_alloc(arena, size);

    if (copy) memcpy(copy, text, size);
    return copy;
}

void vtrn_arena_fini(struct vtrn_arena *arena)
{
    while (arena->head) {
        struct vtrn_arena_block *next = arena->head->next;

        free(arena->head);
        arena->head = next;
    }
}

/* ---------------------------------------------------------------- aligned blocks */
void *vtrn_alloc_aligned(size_t size_bytes, size_t align)
{
    void *ptr;

    if (align < sizeof(void *)) align = sizeof(void *);
    if (posix_memalign(&ptr, align, size_bytes ? size_bytes : 1) != 0) return NULL;
    return ptr;
}

void vtrn_free_aligned(void *ptr) { free(ptr); }

/* ---------------------------------------------------------------- pages */
enum { HUGE_PAGE = 2 << 20 };

void *vtrn_alloc_pages(size_t size_bytes)
{
    bool huge = size_bytes >= HUGE_PAGE;
    size_t mapped, head;
    uint8_t *base;

    if (size_bytes == 0) size_bytes = 1;
    size_bytes = (size_bytes + 4095) & ~(size_t)4095;
    if (size_bytes == 0 || !vtrn_add_size(size_bytes, huge ? HUGE_PAGE : 0, &mapped)) return NULL;
    base = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED) return NULL;
    if (!huge) return base;
    /* The kernel uses huge pages only where a whole aligned 2 MiB lies inside the mapping: start on such a boundary. */
    head = (size_t)(-(uintptr_t)base & (HUGE_PAGE - 1));
    if (head) munmap(base, head);
    if (mapped - head > size_bytes) munmap(base + head + size_bytes, mapped - head - size_bytes);
#ifdef MADV_HUGEPAGE
    madvise(base + head, size_bytes, MADV_HUGEPAGE); /* a hint: failure changes nothing but speed */
#endif
    return base + head;
}

void vtrn_free_pages(void *ptr, size_t size_bytes)
{
    if (!ptr) return;
    if (size_bytes == 0) size_bytes = 1;
    munmap(ptr, (size_bytes + 4095) & ~(size_t)4095);
}

/* ---------------------------------------------------------------- pages that are kept */
enum { CACHE_BLOCKS = 32 };

struct vtrn_page_cache {
    pthread_mutex_t lock;
    size_t most_bytes, bytes;
    struct kept_pages {
        void *ptr;
        size_t size_bytes;
    } block[CACHE_BLOCKS]; /* the oldest first */
    int blocks;
};

struct vtrn_page_cache *vtrn_page_cache_create(size_t most_bytes)
{
    struct vtrn_page_cache *cache = calloc(1, sizeof *cache);

    if (!cache) return NULL;
    cache->most_bytes = most_bytes;
    pthread_mutex_init(&cache->lock, NULL);
    return cache;
}

static struct kept_pages remove_block(struct vtrn_page_cache *cache, int at)
{
    struct kept_pages block = cache->block[at];

    cache->blocks--;
    memmove(&cache->block[at], &cache->block[at + 1], (size_t)(cache->blocks - at) * sizeof block);
    cache->bytes -= block.size_bytes;
    return block;
}

/* Sizes repeat, so only equal ones are looked for. */
void *vtrn_pages_take(struct vtrn_page_cache *cache, size_t size_bytes)
{
    void *ptr = NULL;

    if (!cache) return vtrn_alloc_pages(size_bytes);
    pthread_mutex_lock(&cache->lock);
    for (int i = cache->blocks - 1; i >= 0 && !ptr; i--) /* the youngest is the likeliest to be in the host's caches */
        if (cache->block[i].size_bytes == size_bytes) ptr = remove_block(cache, i).ptr;
    pthread_mutex_unlock(&cache->lock);
    return ptr ? ptr : vtrn_alloc_pages(size_bytes);
}

void vtrn_pages_give(struct vtrn_page_cache *cache, void *ptr, size_t size_bytes)
{
    struct kept_pages old[CACHE_BLOCKS];
    int olds = 0;

    if (!ptr) return;
    if (!cache || size_bytes > cache->most_bytes) {
        vtrn_free_pages(ptr, size_bytes);
        return;
    }
    pthread_mutex_lock(&cache->lock);
    while (cache->blocks == CACHE_BLOCKS || cache->bytes > cache->most_bytes - size_bytes) old[olds++] = remove_block(cache, 0);
    cache->block[cache->blocks++] = (struct kept_pages){ ptr, size_bytes };
    cache->bytes += size_bytes;
    pthread_mutex_unlock(&cache->lock);
    while (olds > 0) {
        olds--;
        vtrn_free_pages(old[olds].ptr, old[olds].size_bytes);
    }
}

void vtrn_page_cache_destroy(struct vtrn_page_cache *cache)
{
    if (!cache) return;
    for (int i = 0; i < cache->blocks; i++) vtrn_free_pages(cache->block[i].ptr, cache->block[i].size_bytes);
    pthread_mutex_destroy(&cache->lock);
    free(cache);
}

/* ---------------------------------------------------------------- hash */
uint64_t vtrn_hash_bytes(const void *data, size_t size_bytes, uint64_t seed)
{
    const uint8_t *bytes = data;
    uint64_t hash = UINT64_C(0xcbf29ce484222325) ^ seed; /* FNV-1a 64: offset basis and prime of the reference */

    for (size_t i = 0; i < size_bytes; i++) hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
    return hash;
}
