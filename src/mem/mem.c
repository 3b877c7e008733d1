/* The emulated memories: where each tensor's bytes are, and what is in them before the program writes.
 *
 *   HBM          the caller's bytes (bound), or pages of ours: outputs, temporaries, copies of constants
 *   automatic    SBUF and PSUM tensors without an address: rows in a block of the pool, released after their last use
 *   with address views of one array per core and memory, so that they alias as on the chip
 *
 * Rows of automatic tensors: short ones lie back to back, so that a (128,1) operand is one vector; long ones are an odd
 * number of cache lines apart, so that a column of 128 rows does not fall into few sets of the host's L1.
 * Fresh bytes are tracked in up to 64 segments a row: a tile that is filled slice by slice is not poisoned first.
 * Sits below exec; must not know instructions. */
#include "mem/mem_int.h"

#include <pthread.h>

enum {
    LINE = 64,
    DENSE_ROW_BYTES = 256, /* 128 rows of this size fill 32 KiB: still the L1 of every host */
    MIN_SEGMENT_SHIFT = 6,
    POISON_FLOAT = 0xff,   /* NaN in every float format, all ones in the others */
    POISON_INT = 0x7f,     /* large and positive */
    POISON_PHYSICAL = 0xff /* an address has no dtype */
};

/* The bytes of one core's SBUF or PSUM that tensors with an address share. */
struct physical {
    uint8_t *base;
    size_t pitch, row_bytes, poisoned; /* bytes of each row that were poisoned so far: the array is filled as it is reached */
    int partitions;
};
struct core_mem {
    struct vtrn_store **store; /* by tensor; shared tensors' stores belong to mem->shared */
    uint32_t capacity;
    struct mem_pool pool;
    struct vtrn_store *idle; /* records of released tensors that wait for the next one, linked through `base` */
    struct physical sbuf, psum;
};
struct vtrn_mem {
    const struct vtrn_arch *arch;
    int cores;
    struct mem_usage usage;
    pthread_mutex_t lock; /* shared */
    struct vtrn_store **shared;
    uint32_t shared_capacity;
    struct core_mem core[VTRN_CORES_MAX];
};

/* ---------------------------------------------------------------- life */
struct vtrn_mem *vtrn_mem_create(const struct vtrn_arch *arch, int cores, struct vtrn_error *err)
{
    struct vtrn_mem *mem;

    if (!arch || cores < 1 || cores > VTRN_CORES_MAX) {
        vtrn_fail(err, VTRN_INVALID, "memories need a target and 1 or %d cores, not %d", VTRN_CORES_MAX, cores);
        return NULL;
    }
    mem = calloc(1, sizeof *mem);
    if (!mem) {
        vtrn_fail(err, VTRN_NOMEM, "no memory for the memories' tables");
        return NULL;
    }
    mem->arch = arch;
    mem->cores = cores;
    pthread_mutex_init(&mem->lock, NULL);
    for (int c = 0; c < cores; c++) {
        struct core_mem *core = &mem->core[c];
        int partitions = (int)arch->partitions;
        size_t sbuf = (size_t)arch->sbuf_partition_bytes, psum = (size_t)(arch->psum_banks * arch->psum_bank_bytes);

        core->pool.usage = &mem->usage;
        core->sbuf = (struct physical){ .pitch = sbuf + LINE, .row_bytes = sbuf, .partitions = partitions };
        core->psum = (struct physical){ .pitch = psum + LINE, .row_bytes = psum, .partitions = partitions };
    }
    return mem;
}

void vtrn_mem_use_cache(struct vtrn_mem *mem, struct vtrn_page_cache *cache) { mem->usage.cache = cache; }

static void drop_hbm(struct vtrn_mem *mem, struct vtrn_store *store)
{
    if (store->owned) mem_pages_free(&mem->usage, store->base, store->row_bytes);
    store->base = NULL;
    store->owned = false;
}

static void destroy_table(struct vtrn_mem *mem, struct vtrn_store **table, uint32_t capacity, bool shared)
{
    for (uint32_t i = 0; i < capacity; i++) {
        struct vtrn_store *store = table[i];

        if (!store || store->shared != shared) continue;
        if (vtrn_space_is_hbm(store->space)) drop_hbm(mem, store);
        else free(store->written);
        free(store);
    }
    free(table);
}

static void free_physical(struct vtrn_mem *mem, struct physical *physical)
{
    if (physical->base) mem_pages_free(&mem->usage, physical->base, physical->pitch * (size_t)physical->partitions);
}

void vtrn_mem_destroy(struct vtrn_mem *mem)
{
    if (!mem) return;
    for (int c = 0; c < mem->cores; c++) {
        struct core_mem *core = &mem->core[c];

        destroy_table(mem, core->store, core->capacity, false);
        while (core->idle) {
            struct vtrn_store *store = core->idle;

            core->idle = (struct vtrn_store *)(void *)store->base;
            free(store->written);
            free(store);
        }
        mem_pool_fini(&core->pool);
        free_physical(mem, &core->sbuf);
        free_physical(mem, &core->psum);
    }
    destroy_table(mem, mem->shared, mem->shared_capacity, true);
    pthread_mutex_destroy(&mem->lock);
    free(mem);
}

/* ---------------------------------------------------------------- poison */
static void fill_segments(struct vtrn_store *store, uint64_t segments)
{
    size_t rows = store->partitions ? (size_t)store->partitions : 1;

    store->fresh_segments &= ~segments;
    store->fresh = store->fresh_segments != 0;
    while (segments) { /* one stretch of neighbouring segments at a time */
        unsigned first = (unsigned)__builtin_ctzll(segments);
        uint64_t above = ~(segments >> first);
        unsigned count = above ? (unsigned)__builtin_ctzll(above) : 64;
        size_t low = (size_t)first << store->segment_shift, high = (size_t)(first + count) << store->segment_shift;

        if (high > store->row_bytes) high = store->row_bytes;
        if (low == 0 && high == store->pitch) memset(store->base, store->poison, rows * high);
        else
            for (size_t row = 0; row < rows; row++) memset(store->base + row * store->pitch + low, store->poison, high - low);
        if (first + count >= 64) break;
        segments = segments >> (first + count) << (first + count);
    }
}

void vtrn_store_settle(struct vtrn_store *store)
{
    if (store->fresh) fill_segments(store, store->fresh_segments);
}

void vtrn_store_touch(struct vtrn_store *store, size_t low, size_t high, bool overwrites)
{
    if (!store->fresh || low >= high) return;
    unsigned shift = store->segment_shift, first = (unsigned)(low >> shift), last = (unsigned)((high - 1) >> shift);
    uint64_t reached = (last >= 63 ? ~UINT64_C(0) : (UINT64_C(1) << (last + 1)) - 1) & ~UINT64_C(0) << first;
    uint64_t due = reached & store->fresh_segments;

    if (overwrites) { /* only segments that reach beyond the access need poison */
        bool whole_first = low == (size_t)first << shift, whole_last = high == (size_t)(last + 1) << shift;

        if (high == store->row_bytes) whole_last = true;
        if (first == last) due &= whole_first && whole_last ? 0 : ~UINT64_C(0);
        else due &= (whole_first ? 0 : UINT64_C(1) << first) | (whole_last ? 0 : UINT64_C(1) << last);
    }
    store->fresh_segments &= ~reached | due;
    if (due) fill_segments(store, due);
    else store->fresh = store->fresh_segments != 0;
}

static void make_fresh(struct vtrn_store *store)
{
    unsigned shift = MIN_SEGMENT_SHIFT;

    while (store->row_bytes > (size_t)64 << shift) shift++;
    size_t segments = (store->row_bytes + ((size_t)1 << shift) - 1) >> shift;
    store->segment_shift = (uint8_t)shift;
    store->fresh_segments = segments == 64 ? ~UINT64_C(0) : (UINT64_C(1) << segments) - 1;
    store->fresh = true;
}

static uint8_t poison_of(uint8_t dtype)
{
    uint8_t cls = vtrn_dtypes[dtype].cls;

    return cls == VTRN_CLASS_FLOAT || cls == VTRN_CLASS_PACKED ? POISON_FLOAT : POISON_INT;
}

/* ---------------------------------------------------------------- making stores */
static const char *label(const struct vtrn_prog *prog, uint32_t tensor)
{
    const char *name = vtrn_prog_text(prog, prog->tensor[tensor].name);

    return name[0] ? name : "(unnamed)";
}

static enum vtrn_status grow_table(struct vtrn_store ***table, uint32_t *capacity, uint32_t need, struct vtrn_error *err)
{
    uint32_t wanted = *capacity ? *capacity : 64;

    if (need <= *capacity) return VTRN_OK;
    while (wanted < need) wanted = wanted > UINT32_MAX / 2 ? UINT32_MAX : 2 * wanted;
    struct vtrn_store **grown = realloc(*table, (size_t)wanted * sizeof **table);
    VTRN_FAIL_IF(!grown, err, VTRN_NOMEM, "no memory for the table of %u tensors", need);
    memset(grown + *capacity, 0, (size_t)(wanted - *capacity) * sizeof *grown);
    *table = grown;
    *capacity = wanted;
    return VTRN_OK;
}

static struct vtrn_store *new_record(struct core_mem *core)
{
    struct vtrn_store *store = core ? core->idle : NULL;

    if (!store) return calloc(1, sizeof *store);
    core->idle = (struct vtrn_store *)(void *)store->base;
    uint64_t *written = store->written; /* its room is kept */
    size_t capacity = store->written_capacity;
    *store = (struct vtrn_store){ .written = written, .written_capacity = capacity };
    return store;
}

static void idle_record(struct core_mem *core, struct vtrn_store *store)
{
    store->base = (uint8_t *)(void *)core->idle;
    core->idle = store;
}

/* An HBM tensor whose bytes are ours. */
static enum vtrn_status own_hbm(struct vtrn_mem *mem, const struct vtrn_prog *prog, uint32_t tensor, struct vtrn_store *store,
                                struct vtrn_error *err)
{
    const struct vtrn_tensor *t = &prog->tensor[tensor];

    VTRN_FAIL_IF(t->role == VTRN_ROLE_INPUT, err, VTRN_INVALID, "input %s has no data: bind its bytes before the run",
                 label(prog, tensor));
    store->base = mem_pages_alloc(&mem->usage, (size_t)t->row_bytes);
    VTRN_FAIL_IF(!store->base, err, VTRN_NOMEM, "no memory for the %lld bytes of %s", (long long)t->row_bytes, label(prog, tensor));
    store->owned = true;
    if (t->role == VTRN_ROLE_CONST) memcpy(store->base, t->data, (size_t)t->row_bytes);
    else make_fresh(store);
    if (store->shared) vtrn_store_settle(store); /* two threads may come first */
    return VTRN_OK;
}

static struct vtrn_store *new_hbm(const struct vtrn_prog *prog, uint32_t tensor, bool shared, struct vtrn_error *err)
{
    const struct vtrn_tensor *t = &prog->tensor[tensor];
    struct vtrn_store *store = new_record(NULL);

    if (!store) {
        vtrn_fail(err, VTRN_NOMEM, "no memory for the record of %s", label(prog, tensor));
        return NULL;
    }
    store->row_bytes = (size_t)t->row_bytes;
    store->space = t->space;
    store->poison = poison_of(t->dtype);
    store->shared = shared;
    return store;
}

/* The record of an HBM tensor in the table it belongs to, made if need be; its bytes may still be missing. */
static struct vtrn_store *hbm_record(struct vtrn_mem *mem, const struct vtrn_prog *prog, uint32_t tensor, struct vtrn_error *err)
{
    const struct vtrn_tensor *t = &prog->tensor[tensor];
    bool shared = t->core == VTRN_CORES_MAX;
    struct vtrn_store ***table = shared ? &mem->shared : &mem->core[t->core].store;
    uint32_t *capacity = shared ? &mem->shared_capacity : &mem->core[t->core].capacity;

    if (grow_table(table, capacity, tensor + 1, err) < 0) return NULL;
    if (!(*table)[tensor]) (*table)[tensor] = new_hbm(prog, tensor, shared, err);
    return (*table)[tensor];
}

/* An odd number of lines from row to row; short rows back to back, as multiples of the widest element they can hold. */
static size_t row_pitch(size_t row_bytes)
{
    if (row_bytes <= 2) return row_bytes;
    if (row_bytes <= DENSE_ROW_BYTES) return (row_bytes + 3) & ~(size_t)3;
    size_t lines = (row_bytes + LINE - 1) / LINE;
    return (lines + (lines % 2 == 0)) * LINE;
}

/* Reaches the bytes [0, high) of every row of a physical array: poisons what is new of them. */
static enum vtrn_status reach_physical(struct vtrn_mem *mem, struct physical *physical, size_t high)
{
    if (!physical->base) {
        physical->base = mem_pages_alloc(&mem->usage, physical->pitch * (size_t)physical->partitions);
        if (!physical->base) return VTRN_NOMEM;
    }
    if (high <= physical->poisoned) return VTRN_OK;
    for (int p = 0; p < physical->partitions; p++)
        memset(physical->base + (size_t)p * physical->pitch + physical->poisoned, POISON_PHYSICAL, high - physical->poisoned);
    physical->poisoned = high;
    return VTRN_OK;
}

static enum vtrn_status place(struct vtrn_mem *mem, struct core_mem *core, const struct vtrn_tensor *t, struct vtrn_store *store)
{
    if (t->has_address) {
        struct physical *physical = t->space == VTRN_PSUM ? &core->psum : &core->sbuf;

        VTRN_TRY(reach_physical(mem, physical, t->addr_byte + store->row_bytes));
        store->pitch = physical->pitch;
        store->base = physical->base + t->addr_partition * physical->pitch + t->addr_byte;
        store->physical = true;
        return VTRN_OK;
    }
    store->pitch = row_pitch(store->row_bytes);
    store->base = mem_pool_get(&core->pool, store->pitch * (size_t)store->partitions, &store->size_class);
    if (!store->base) return VTRN_NOMEM;
    store->owned = true;
    make_fresh(store);
    return VTRN_OK;
}

static enum vtrn_status reserve_written(struct vtrn_store *store)
{
    store->written_words = (store->row_bytes + 127) / 128;
    size_t words = store->written_words * (size_t)store->partitions;

    if (words <= store->written_capacity) return VTRN_OK;
    uint64_t *grown = realloc(store->written, words * sizeof *grown);
    if (!grown) return VTRN_NOMEM;
    store->written = grown;
    store->written_capacity = words;
    return VTRN_OK;
}

static struct vtrn_store *new_on_chip(struct vtrn_mem *mem, const struct vtrn_prog *prog, struct core_mem *core, uint32_t tensor,
                                      struct vtrn_error *err)
{
    const struct vtrn_tensor *t = &prog->tensor[tensor];
    struct vtrn_store *store = new_record(core);

    if (!store) goto no_memory;
    store->row_bytes = (size_t)t->row_bytes;
    store->partitions = t->partitions;
    store->space = t->space;
    store->poison = poison_of(t->dtype);
    if (t->space == VTRN_PSUM && reserve_written(store) < 0) goto no_memory;
    if (place(mem, core, t, store) < 0) goto no_memory;
    return store;

no_memory:
    if (store) idle_record(core, store);
    vtrn_fail(err, VTRN_NOMEM, "no memory for the %d x %lld bytes of %s", t->partitions, (long long)t->row_bytes,
              label(prog, tensor));
    return NULL;
}

static struct vtrn_store *shared_store(struct vtrn_mem *mem, const struct vtrn_prog *prog, uint32_t tensor, struct vtrn_error *err)
{
    struct vtrn_store *store;

    pthread_mutex_lock(&mem->lock);
    store = hbm_record(mem, prog, tensor, err);
    if (store && !store->base && own_hbm(mem, prog, tensor, store, err) < 0) store = NULL;
    pthread_mutex_unlock(&mem->lock);
    return store;
}

VTRN_RARE static struct vtrn_store *make_store(struct vtrn_mem *mem, const struct vtrn_prog *prog, int c, uint32_t tensor,
                                               struct vtrn_error *err)
{
    struct core_mem *core = &mem->core[c];
    struct vtrn_store *store;

    if (tensor >= prog->tensors) {
        vtrn_fail(err, VTRN_INVALID, "tensor %u does not exist; the program has %u", tensor, prog->tensors);
        return NULL;
    }
    const struct vtrn_tensor *t = &prog->tensor[tensor];
    if (t->core != c && t->core != VTRN_CORES_MAX) {
        vtrn_fail(err, VTRN_INVALID, "tensor %s belongs to core %d, not to core %d", label(prog, tensor), t->core, c);
        return NULL;
    }
    if (grow_table(&core->store, &core->capacity, prog->tensors, err) < 0) return NULL;
    if (t->core == VTRN_CORES_MAX) {
        store = shared_store(mem, prog, tensor, err);
    } else if (vtrn_space_is_hbm(t->space)) {
        store = hbm_record(mem, prog, tensor, err);
        if (store && !store->base && own_hbm(mem, prog, tensor, store, err) < 0) store = NULL;
    } else {
        store = new_on_chip(mem, prog, core, tensor, err);
    }
    if (store) core->store[tensor] = store;
    return store;
}

struct vtrn_store *vtrn_mem_store(struct vtrn_mem *mem, const struct vtrn_prog *prog, int core, uint32_t tensor,
                                  struct vtrn_error *err)
{
    struct core_mem *own = &mem->core[core];

    if (VTRN_LIKELY(tensor < own->capacity)) {
        struct vtrn_store *store = own->store[tensor];

        if (VTRN_LIKELY(store && store->base)) return store;
    }
    return make_store(mem, prog, core, tensor, err);
}

/* ---------------------------------------------------------------- giving and taking */
void vtrn_mem_release(struct vtrn_mem *mem, int core, uint32_t tensor)
{
    struct core_mem *own = &mem->core[core];

    if (tensor >= own->capacity || !own->store[tensor]) return;
    struct vtrn_store *store = own->store[tensor];
    if (!vtrn_space_on_chip(store->space)) return;
    if (store->owned) mem_pool_put(&own->pool, store->base, store->size_class);
    idle_record(own, store);
    own->store[tensor] = NULL;
}

static enum vtrn_status check_hbm(const struct vtrn_mem *mem, const struct vtrn_prog *prog, uint32_t tensor, struct vtrn_error *err)
{
    VTRN_FAIL_IF(tensor >= prog->tensors, err, VTRN_INVALID, "tensor %u does not exist; the program has %u", tensor, prog->tensors);
    VTRN_FAIL_IF(!vtrn_space_is_hbm(prog->tensor[tensor].space), err, VTRN_INVALID, "tensor %s is in %s, not in HBM",
                 label(prog, tensor), vtrn_space_name(prog->tensor[tensor].space));
    VTRN_FAIL_IF(prog->tensor[tensor].core != VTRN_CORES_MAX && prog->tensor[tensor].core >= mem->cores, err, VTRN_INVALID,
                 "tensor %s belongs to core %d; there are %d", label(prog, tensor), prog->tensor[tensor].core, mem->cores);
    return VTRN_OK;
}

enum vtrn_status vtrn_mem_bind(struct vtrn_mem *mem, const struct vtrn_prog *prog, uint32_t tensor, void *bytes, size_t size_bytes,
                               struct vtrn_error *err)
{
    VTRN_TRY(check_hbm(mem, prog, tensor, err));
    VTRN_FAIL_IF(size_bytes != (size_t)prog->tensor[tensor].row_bytes, err, VTRN_INVALID,
                 "tensor %s: %zu bytes were given, it has %lld", label(prog, tensor), size_bytes,
                 (long long)prog->tensor[tensor].row_bytes);
    VTRN_FAIL_IF(!bytes, err, VTRN_INVALID, "tensor %s: no bytes were given", label(prog, tensor));
    pthread_mutex_lock(&mem->lock);
    struct vtrn_store *store = hbm_record(mem, prog, tensor, err);
    if (store) {
        drop_hbm(mem, store);
        store->base = bytes;
        store->fresh = false;
        store->fresh_segments = 0;
    }
    pthread_mutex_unlock(&mem->lock);
    return store ? VTRN_OK : VTRN_NOMEM;
}

static struct vtrn_store *settled_hbm(struct vtrn_mem *mem, const struct vtrn_prog *prog, int core, uint32_t tensor,
                                      struct vtrn_error *err)
{
    if (check_hbm(mem, prog, tensor, err) < 0) return NULL;
    struct vtrn_store *store = vtrn_mem_store(mem, prog, core, tensor, err);
    if (store) vtrn_store_settle(store);
    return store;
}

enum vtrn_status vtrn_mem_hbm(struct vtrn_mem *mem, const struct vtrn_prog *prog, int core, uint32_t tensor, void **bytes_out,
                              size_t *size_out, struct vtrn_error *err)
{
    struct vtrn_error local = { .status = VTRN_OK };
    struct vtrn_store *store = settled_hbm(mem, prog, core, tensor, err ? err : &local);

    if (!store) return err ? err->status : local.status;
    *bytes_out = store->base;
    *size_out = store->row_bytes;
    return VTRN_OK;
}

enum vtrn_status vtrn_mem_take(struct vtrn_mem *mem, const struct vtrn_prog *prog, int core, uint32_t tensor, void **bytes_out,
                               size_t *size_out, struct vtrn_error *err)
{
    struct vtrn_error local = { .status = VTRN_OK };
    struct vtrn_store *store = settled_hbm(mem, prog, core, tensor, err ? err : &local);

    if (!store) return err ? err->status : local.status;
    VTRN_FAIL_IF(!store->owned, err, VTRN_INVALID, "tensor %s: its bytes were bound and belong to the caller", label(prog, tensor));
    *bytes_out = store->base;
    *size_out = store->row_bytes;
    mem_usage_sub(&mem->usage, store->row_bytes);
    store->base = NULL; /* the record stays: the next use makes new pages */
    store->owned = false;
    return VTRN_OK;
}

void vtrn_mem_usage(const struct vtrn_mem *mem, size_t *now_out, size_t *peak_out)
{
    *now_out = atomic_load(&mem->usage.now);
    *peak_out = atomic_load(&mem->usage.peak);
}
