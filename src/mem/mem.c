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
    DENSE_ROW_BYTES = 256,  /* 128 rows of this size fill 32 KiB: still the L1 of every host */
    MIN_SEGMENT_SHIFT = 6,
    POISON_FLOAT = 0xff,    /* NaN in every float format, all ones in the others */
    POISON_INT = 0x7f,      /* large and positive */
    POISON_PHYSICAL = 0xff  /* an address has no dtype */
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
    struct vtrn_store *idle; /* store records that wait for the next tensor, linked through `written` */
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

        if (!store || (!shared && store->space == VTRN_HBM_SHARED)) continue;
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

            memcpy(&core->idle, &store->base, sizeof core->idle);
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
