/* The emulated memories: where each tensor's bytes are.
 *
 * A store is made when a tensor is first touched. HBM tensors are the caller's bytes or fresh pages. On-chip tensors with
 * an address are windows of one physical array per core, so they alias exactly where their addresses say; automatic
 * ones get a block of rows from a pool, returned by vtrn_mem_release. Private tensors live in a table per core, shared
 * ones in a common table, so two cores may run in two host threads: only the making of a shared store takes a lock.
 *
 * Partition pitch: rows of 64 bytes and more are padded to an odd number of cache lines, since a power-of-two pitch puts
 * all 128 partitions into the same few cache sets (measured: 3.3x slower column access); smaller rows are packed, so that
 * a (128,1) tile is one contiguous run. Knows nothing of instructions. */
#include "mem/mem.h"

#include <pthread.h>
#include <stdatomic.h>

enum { CHUNK = 256, CHUNKS = 1 << 16, CLASSES = 64, LINE = 64, POISON_FLOAT = 0xff, POISON_INT = 0x7f };

struct store_table {
    _Atomic(struct vtrn_store *) *chunk; /* CHUNKS pointers to CHUNK stores, made on demand; never moved */
};
struct free_block {
    struct free_block *next;
};
struct size_class {
    size_t bytes;
    struct free_block *free;
};
struct core_mem {
    struct store_table table;
    uint8_t *sbuf, *psum; /* physical arrays, NULL until a tensor with an address is touched */
    uint64_t *psum_written;
    struct size_class class[CLASSES];
    int classes;
    size_t now_bytes, peak_bytes;
};
struct vtrn_mem {
    const struct vtrn_arch *arch;
    int cores;
    struct store_table shared;
    pthread_mutex_t lock; /* making of shared stores */
    size_t shared_bytes;
    struct core_mem core[VTRN_CORES_MAX];
};

/* ---- tables ---- */

static struct vtrn_store *table_at(const struct store_table *table, uint32_t tensor)
{
    struct vtrn_store *chunk = atomic_load_explicit(&table->chunk[tensor / CHUNK], memory_order_acquire);
    return chunk ? &chunk[tensor % CHUNK] : NULL;
}

static struct vtrn_store *table_make(struct store_table *table, uint32_t tensor)
{
    if (tensor >= (uint32_t)CHUNK * CHUNKS) return NULL;
    if (!table_at(table, tensor)) {
        struct vtrn_store *chunk = calloc(CHUNK, sizeof *chunk);
        if (!chunk) return NULL;
        atomic_store_explicit(&table->chunk[tensor / CHUNK], chunk, memory_order_release);
    }
    return table_at(table, tensor);
}

static bool table_init(struct store_table *table)
{
    table->chunk = vtrn_alloc_pages(CHUNKS * sizeof *table->chunk);
    return table->chunk != NULL;
}

/* ---- pool of row blocks ---- */

static size_t block_bytes(size_t pitch, int partitions, size_t written_words)
{
    size_t bytes = pitch * (size_t)partitions + LINE + written_words * 8 * (size_t)partitions;
    return (bytes + 1023) & ~(size_t)1023;
}

static struct size_class *find_class(struct core_mem *core, size_t bytes)
{
    for (int i = 0; i < core->classes; i++)
        if (core->class[i].bytes == bytes) return &core->class[i];
    if (core->classes == CLASSES) return NULL;
    core->class[core->classes] = (struct size_class){bytes, NULL};
    return &core->class[core->classes++];
}

static void *pool_take(struct core_mem *core, size_t bytes)
{
    struct size_class *class = find_class(core, bytes);
    if (class && class->free) {
        struct free_block *block = class->free;
        class->free = block->next;
        return block;
    }
    void *block = vtrn_alloc_aligned(bytes, 4096);
    if (!block) return NULL;
    core->now_bytes += bytes;
    if (core->now_bytes > core->peak_bytes) core->peak_bytes = core->now_bytes;
    return block;
}

static void pool_give(struct core_mem *core, void *bytes_of_block, size_t bytes)
{
    struct size_class *class = find_class(core, bytes);
    if (!class) {
        vtrn_free_aligned(bytes_of_block);
        core->now_bytes -= bytes;
        return;
    }
    struct free_block *block = bytes_of_block;
    block->next = class->free;
    class->free = block;
}

/* ---- life ---- */

struct vtrn_mem *vtrn_mem_create(const struct vtrn_arch *arch, int cores, struct vtrn_error *err)
{
    struct vtrn_mem *mem = calloc(1, sizeof *mem);
    if (!mem) {
        vtrn_fail(err, VTRN_NOMEM, "no memory for the emulated memories");
        return NULL;
    }
    mem->arch = arch;
    mem->cores = cores;
    pthread_mutex_init(&mem->lock, NULL);
    bool made = table_init(&mem->shared);
    for (int i = 0; i < cores; i++) made &= table_init(&mem->core[i].table);
    if (!made) {
        vtrn_mem_destroy(mem);
        vtrn_fail(err, VTRN_NOMEM, "no memory for the emulated memories");
        return NULL;
    }
    return mem;
}

static size_t sbuf_pitch(const struct vtrn_arch *arch) { return (size_t)arch->sbuf_partition_bytes + LINE; }
static size_t psum_row(const struct vtrn_arch *arch) { return (size_t)(arch->psum_banks * arch->psum_bank_bytes); }
static size_t psum_pitch(const struct vtrn_arch *arch) { return psum_row(arch) + LINE; }

static void table_fini(struct store_table *table)
{
    if (!table->chunk) return;
    for (size_t i = 0; i < CHUNKS; i++) {
        struct vtrn_store *chunk = atomic_load(&table->chunk[i]);
        if (!chunk) continue;
        for (int j = 0; j < CHUNK; j++) {
            struct vtrn_store *store = &chunk[j];
            if (!store->base || !store->owned) continue;
            if (vtrn_space_is_hbm(store->space)) vtrn_free_pages(store->base, store->row_bytes);
            else vtrn_free_aligned(store->base);
        }
        free(chunk);
    }
    vtrn_free_pages((void *)table->chunk, CHUNKS * sizeof *table->chunk);
}

void vtrn_mem_destroy(struct vtrn_mem *mem)
{
    if (!mem) return;
    table_fini(&mem->shared);
    for (int i = 0; i < mem->cores; i++) {
        struct core_mem *core = &mem->core[i];
        table_fini(&core->table);
        for (int c = 0; c < core->classes; c++)
            for (struct free_block *block = core->class[c].free, *next; block; block = next) {
                next = block->next;
                vtrn_free_aligned(block);
            }
        size_t partitions = (size_t)mem->arch->partitions;
        if (core->sbuf) vtrn_free_pages(core->sbuf, partitions * sbuf_pitch(mem->arch));
        if (core->psum) vtrn_free_pages(core->psum, partitions * psum_pitch(mem->arch));
        free(core->psum_written);
    }
    pthread_mutex_destroy(&mem->lock);
    free(mem);
}

/* ---- making a store ---- */

static uint8_t poison_of(enum vtrn_dtype dtype)
{
    uint8_t cls = vtrn_dtypes[dtype].cls;
    return cls == VTRN_CLASS_FLOAT || cls == VTRN_CLASS_PACKED ? POISON_FLOAT : POISON_INT;
}

/* A physical array is poisoned whole when it is first needed: its tensors alias, so none may be filled on its own. */
static bool make_physical(struct vtrn_mem *mem, struct core_mem *core, bool psum)
{
    size_t bytes = (size_t)mem->arch->partitions * (psum ? psum_pitch(mem->arch) : sbuf_pitch(mem->arch));
    uint8_t **array = psum ? &core->psum : &core->sbuf;
    if (*array) return true;
    if (psum && !core->psum_written) {
        core->psum_written = calloc((size_t)mem->arch->partitions, psum_row(mem->arch) / 4 / 8);
        if (!core->psum_written) return false;
    }
    *array = vtrn_alloc_pages(bytes);
    if (!*array) return false;
    memset(*array, POISON_FLOAT, bytes);
    core->now_bytes += bytes;
    if (core->now_bytes > core->peak_bytes) core->peak_bytes = core->now_bytes;
    return true;
}

static void clear_written(struct vtrn_store *store)
{
    if (!store->written) return;
    size_t words = (store->row_bytes + 255) / 256;
    for (int p = 0; p < store->partitions; p++)
        memset(store->written + (size_t)p * store->written_words, 0, words * 8);
}

static bool make_addressed(struct vtrn_mem *mem, struct core_mem *core, const struct vtrn_tensor *tensor,
                           struct vtrn_store *store)
{
    bool psum = tensor->space == VTRN_PSUM;
    if (!make_physical(mem, core, psum)) return false;
    store->pitch = psum ? psum_pitch(mem->arch) : sbuf_pitch(mem->arch);
    store->base = (psum ? core->psum : core->sbuf) + tensor->addr_partition * store->pitch + tensor->addr_byte;
    if (psum && tensor->addr_byte % 256 == 0) { /* a new tensor starts its accumulation groups anew */
        store->written_words = psum_row(mem->arch) / 256;
        store->written = core->psum_written + tensor->addr_partition * store->written_words + tensor->addr_byte / 256;
        clear_written(store);
    }
    return true;
}

static size_t automatic_pitch(size_t row_bytes)
{
    if (row_bytes < LINE) return row_bytes ? row_bytes : 1;
    size_t lines = (row_bytes + LINE - 1) / LINE;
    return (lines | 1) * LINE;
}

static bool make_automatic(struct core_mem *core, const struct vtrn_tensor *tensor, struct vtrn_store *store)
{
    store->pitch = automatic_pitch(store->row_bytes);
    if (tensor->space == VTRN_PSUM) store->written_words = (store->row_bytes + 255) / 256;
    size_t bytes = block_bytes(store->pitch, store->partitions, store->written_words);
    store->base = pool_take(core, bytes);
    if (!store->base) return false;
    if (store->written_words) {
        size_t at = (store->pitch * (size_t)store->partitions + LINE - 1) & ~(size_t)(LINE - 1);
        store->written = (uint64_t *)(void *)(store->base + at);
        clear_written(store);
    }
    store->owned = store->fresh = true;
    return true;
}

static bool make_hbm(const struct vtrn_tensor *tensor, struct vtrn_store *store)
{
    store->base = vtrn_alloc_pages(store->row_bytes ? store->row_bytes : 1);
    if (!store->base) return false;
    store->owned = true;
    if (tensor->role == VTRN_ROLE_CONST) memcpy(store->base, tensor->data, store->row_bytes);
    else store->fresh = true;
    return true;
}

static bool make_store(struct vtrn_mem *mem, struct core_mem *core, const struct vtrn_tensor *tensor,
                       struct vtrn_store *store)
{
    *store = (struct vtrn_store){.row_bytes = (size_t)tensor->row_bytes,
                                 .partitions = tensor->partitions,
                                 .space = tensor->space,
                                 .poison = poison_of(tensor->dtype)};
    if (vtrn_space_is_hbm(tensor->space)) return make_hbm(tensor, store);
    return tensor->has_address ? make_addressed(mem, core, tensor, store) : make_automatic(core, tensor, store);
}

static struct vtrn_store *no_memory(struct vtrn_error *err, const struct vtrn_prog *prog, const struct vtrn_tensor *tensor)
{
    int64_t bytes = tensor->partitions ? tensor->row_bytes * tensor->partitions : tensor->row_bytes;
    vtrn_fail(err, VTRN_NOMEM, "no host memory for the %lld bytes of tensor %s in %s", (long long)bytes,
              tensor->name ? vtrn_prog_text(prog, tensor->name) : "(unnamed)", vtrn_space_name(tensor->space));
    return NULL;
}

struct vtrn_store *vtrn_mem_store(struct vtrn_mem *mem, const struct vtrn_prog *prog, int core, uint32_t index,
                                  struct vtrn_error *err)
{
    const struct vtrn_tensor *tensor = &prog->tensor[index];
    bool shared = tensor->space == VTRN_HBM_SHARED || tensor->core >= VTRN_CORES_MAX;
    struct store_table *table = shared ? &mem->shared : &mem->core[core].table;
    struct vtrn_store *store = table_at(table, index);
    if (VTRN_LIKELY(store && atomic_load_explicit((_Atomic(uint8_t *) *)(void *)&store->base, memory_order_acquire)))
        return store;
    if (!shared) {
        store = table_make(table, index);
        return store && make_store(mem, &mem->core[core], tensor, store) ? store : no_memory(err, prog, tensor);
    }
    pthread_mutex_lock(&mem->lock);
    store = table_make(table, index);
    bool made = store && (store->base || make_store(mem, &mem->core[core], tensor, store));
    if (made && store->owned) mem->shared_bytes += store->row_bytes;
    /* Two cores may settle a shared tensor at once: poison it while we hold the lock. */
    if (made) vtrn_store_settle(store);
    pthread_mutex_unlock(&mem->lock);
    return made ? store : no_memory(err, prog, tensor);
}

void vtrn_store_settle(struct vtrn_store *store)
{
    if (!store->fresh) return;
    store->fresh = false;
    if (!store->partitions) memset(store->base, store->poison, store->row_bytes);
    else memset(store->base, store->poison, store->pitch * (size_t)store->partitions);
}

/* ---- binding, releasing, results ---- */

enum vtrn_status vtrn_mem_bind(struct vtrn_mem *mem, const struct vtrn_prog *prog, uint32_t index, void *bytes,
                               size_t size_bytes, struct vtrn_error *err)
{
    VTRN_FAIL_IF(index >= prog->tensors, err, VTRN_INVALID, "no tensor %u: the program has %u", index, prog->tensors);
    const struct vtrn_tensor *tensor = &prog->tensor[index];
    const char *name = tensor->name ? vtrn_prog_text(prog, tensor->name) : "(unnamed)";
    VTRN_FAIL_IF(!vtrn_space_is_hbm(tensor->space), err, VTRN_INVALID, "tensor %s is in %s: only HBM tensors are bound",
                 name, vtrn_space_name(tensor->space));
    VTRN_FAIL_IF((size_t)tensor->row_bytes != size_bytes, err, VTRN_INVALID,
                 "tensor %s has %lld bytes, the bound memory %zu", name, (long long)tensor->row_bytes, size_bytes);
    int first = tensor->space == VTRN_HBM ? (tensor->core < mem->cores ? tensor->core : 0) : -1;
    struct store_table *table = first < 0 ? &mem->shared : &mem->core[first].table;
    struct vtrn_store *store = table_make(table, index);
    VTRN_FAIL_IF(!store, err, VTRN_NOMEM, "no memory to bind tensor %s", name);
    VTRN_FAIL_IF(store->base, err, VTRN_INVALID, "tensor %s has memory already", name);
    *store = (struct vtrn_store){.base = size_bytes ? bytes : (uint8_t *)"", .row_bytes = size_bytes, .space = tensor->space};
    return VTRN_OK;
}

void vtrn_mem_release(struct vtrn_mem *mem, int core_id, uint32_t index)
{
    struct core_mem *core = &mem->core[core_id];
    struct vtrn_store *store = table_at(&core->table, index);
    if (!store || !store->base || !store->owned || !vtrn_space_on_chip(store->space)) return;
    pool_give(core, store->base, block_bytes(store->pitch, store->partitions, store->written_words));
    store->base = NULL;
}

enum vtrn_status vtrn_mem_hbm(struct vtrn_mem *mem, const struct vtrn_prog *prog, int core, uint32_t index, void **bytes_out,
                              size_t *size_out, struct vtrn_error *err)
{
    VTRN_FAIL_IF(index >= prog->tensors || !vtrn_space_is_hbm(prog->tensor[index].space), err, VTRN_INVALID,
                 "tensor %u is not an HBM tensor", index);
    struct vtrn_store *store = vtrn_mem_store(mem, prog, core, index, err);
    if (!store) return VTRN_NOMEM;
    vtrn_store_settle(store);
    *bytes_out = store->base;
    *size_out = store->row_bytes;
    return VTRN_OK;
}

enum vtrn_status vtrn_mem_take(struct vtrn_mem *mem, const struct vtrn_prog *prog, int core, uint32_t index,
                               void **bytes_out, size_t *size_out, struct vtrn_error *err)
{
    void *bytes;
    size_t size;
    VTRN_TRY(vtrn_mem_hbm(mem, prog, core, index, &bytes, &size, err));
    struct vtrn_store *store = vtrn_mem_store(mem, prog, core, index, err);
    VTRN_FAIL_IF(!store->owned, err, VTRN_INVALID, "tensor %u lies in the caller's memory and cannot be taken", index);
    store->owned = false;
    *bytes_out = bytes;
    *size_out = size;
    return VTRN_OK;
}

void vtrn_mem_usage(const struct vtrn_mem *mem, size_t *now_out, size_t *peak_out)
{
    size_t now = mem->shared_bytes, peak = mem->shared_bytes;
    for (int i = 0; i < mem->cores; i++) {
        now += mem->core[i].now_bytes;
        peak += mem->core[i].peak_bytes;
    }
    *now_out = now;
    *peak_out = peak;
}
