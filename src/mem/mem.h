/* mem: the emulated memories. HBM tensors are the caller's bytes or our pages. SBUF and PSUM are one physical array each for
 * tensors with an address (partitions lie a cache line more than their size apart, or all 128 would fall into the same sets
 * of the host's L1), and one block of rows per tensor for automatic ones, pooled by size. Fresh memory reads as poison
 * (0xff: NaN in every float format; 0x7f for integers of automatic tensors) so that uninitialised reads show; the fill is
 * skipped where the first access overwrites.
 *
 * One core's memories may be used by one host thread at a time; two cores may run in two threads. */
#ifndef VTRN_MEM_H
#define VTRN_MEM_H
#include "prog/prog.h"

/* Where a tensor's bytes are. */
struct vtrn_store {
    uint8_t *base;    /* NULL: not bound */
    size_t pitch;     /* bytes from a partition to the next (on chip); 0 for HBM */
    size_t row_bytes; /* bytes in a partition; HBM: all bytes */
    int partitions;   /* 0 for HBM */
    uint8_t space;
    uint8_t poison;          /* the byte that fresh memory reads as */
    bool fresh;              /* part of it was never touched: poison is due before it is read or partly written */
    bool owned;              /* bytes are ours (pool or pages), not the caller's */
    bool physical;           /* part of the physical array: shares bytes with other tensors that have an address */
    bool shared;             /* both cores see it */
    uint8_t written_state;   /* PSUM: how much of `written` is set: enum vtrn_written */
    uint8_t segment_shift;   /* a segment is 1 << segment_shift bytes of every row */
    uint8_t size_class;      /* of the pool's block */
    uint64_t fresh_segments; /* bit s: bytes of segment s were never touched; `fresh` is fresh_segments != 0 */
    uint64_t *written;       /* PSUM: bit per 2-byte column and partition, set by the tensor engine (accumulate=None); valid while
                         * written_state is SOME. Row = 64-bit words. */
    size_t written_words;    /* words per partition of `written` */
    size_t written_capacity; /* words that `written` has room for */
};

struct vtrn_mem; /* the memories of a chip run: one SBUF and PSUM per core, HBM shared */
struct vtrn_mem *vtrn_mem_create(const struct vtrn_arch *arch, int cores, struct vtrn_error *err);
void vtrn_mem_destroy(struct vtrn_mem *mem);
/* Where pages come from and go to from now on (before the first use); it outlives the mem. */
void vtrn_mem_use_cache(struct vtrn_mem *mem, struct vtrn_page_cache *cache);
/* Gives the caller's bytes to an HBM tensor (borrowed until the mem is destroyed or the tensor is bound again).
 * size_bytes must match. */
enum vtrn_status vtrn_mem_bind(struct vtrn_mem *mem, const struct vtrn_prog *prog, uint32_t tensor, void *bytes, size_t size_bytes,
                               struct vtrn_error *err);
/* The store of a tensor for `core`, allocated on first use. NULL with err set: no memory, or an input without bytes. Cheap
 * when it exists. Valid until the tensor is released or taken. */
struct vtrn_store *vtrn_mem_store(struct vtrn_mem *mem, const struct vtrn_prog *prog, int core, uint32_t tensor,
                                  struct vtrn_error *err);
/* Writes the poison that is due. */
void vtrn_store_settle(struct vtrn_store *store);
/* The same before an access to bytes [low, high) of some rows (HBM: of the tensor) only. `overwrites`: all of these bytes
 * of all rows are about to be written, so that only poison around them is due. */
void vtrn_store_touch(struct vtrn_store *store, size_t low, size_t high, bool overwrites);
/* Returns an on-chip tensor's rows to the pool. The tensor starts anew, with poison, when it is used again: the next turn
 * of the loop that declares it. */
void vtrn_mem_release(struct vtrn_mem *mem, int core, uint32_t tensor);
/* Host pointer and size of an HBM tensor's bytes, allocating (and settling) it if needed; for results. */
enum vtrn_status vtrn_mem_hbm(struct vtrn_mem *mem, const struct vtrn_prog *prog, int core, uint32_t tensor, void **bytes_out,
                              size_t *size_out, struct vtrn_error *err);
/* Takes an owned HBM tensor's pages out of the mem: the caller gives them back with vtrn_pages_give(cache, ptr, size). */
enum vtrn_status vtrn_mem_take(struct vtrn_mem *mem, const struct vtrn_prog *prog, int core, uint32_t tensor, void **bytes_out,
                               size_t *size_out, struct vtrn_error *err);
/* Bytes of host memory that the mem holds now, and at most so far. */
void vtrn_mem_usage(const struct vtrn_mem *mem, size_t *now_out, size_t *peak_out);

/* ---- PSUM: what the tensor engine has written since the tensor was declared (written.c) ---- */
enum vtrn_written { VTRN_WRITTEN_NONE, VTRN_WRITTEN_SOME, VTRN_WRITTEN_ALL };
/* Of bytes [low, high) of partitions [p0, p0+parts). */
enum vtrn_written vtrn_store_written(const struct vtrn_store *store, int64_t p0, int64_t parts, size_t low, size_t high);
void vtrn_store_mark(struct vtrn_store *store, int64_t p0, int64_t parts, size_t low, size_t high);
static inline bool vtrn_store_byte_written(const struct vtrn_store *store, int64_t partition, size_t byte)
{
    if (store->written_state != VTRN_WRITTEN_SOME) return store->written_state == VTRN_WRITTEN_ALL;
    return store->written[(size_t)partition * store->written_words + byte / 128] >> (byte / 2 % 64) & 1;
}
#endif
