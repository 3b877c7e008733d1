/* mem: the emulated memories. HBM tensors are the caller's bytes or our pages; SBUF and PSUM are one physical array
 * each (partition pitch padded by 64 bytes: see shared limits study) for tensors with an address, and one block of
 * rows per tensor for automatic ones, pooled by size. Fresh memory reads as poison (0xff: NaN in every float format;
 * 0x7f for integers) so that uninitialised reads show; the fill is skipped when the first access overwrites it all. */
#ifndef VTRN_MEM_H
#define VTRN_MEM_H
#include "prog/prog.h"

/* Where a tensor's bytes are. */
struct vtrn_store {
    uint8_t *base;      /* NULL: not bound */
    size_t pitch;       /* bytes from a partition to the next (on chip); 0 for HBM */
    size_t row_bytes;   /* bytes in a partition; HBM: all bytes */
    int partitions;     /* 0 for HBM */
    uint8_t space;
    uint8_t poison;     /* the byte that fresh memory reads as */
    bool fresh;         /* never touched: poison is due before the first read or partial write */
    bool owned;         /* bytes are ours (pool or pages), not the caller's */
    uint64_t *written;  /* PSUM: bit per 4-byte column and partition, set by matmul (accumulate=None); row = 64-bit words */
    size_t written_words; /* words per partition of `written` */
};

struct vtrn_mem; /* the memories of a chip run: one SBUF and PSUM per core, HBM shared */
struct vtrn_mem *vtrn_mem_create(const struct vtrn_arch *arch, int cores, struct vtrn_error *err);
void vtrn_mem_destroy(struct vtrn_mem *mem);
/* Gives the caller's bytes to an HBM tensor (borrowed until the mem is destroyed). size_bytes must match. */
enum vtrn_status vtrn_mem_bind(struct vtrn_mem *mem, const struct vtrn_prog *prog, uint32_t tensor, void *bytes,
                               size_t size_bytes, struct vtrn_error *err);
/* The store of a tensor for `core`, allocated on first use. NULL with err set: no memory. Cheap when it exists. */
struct vtrn_store *vtrn_mem_store(struct vtrn_mem *mem, const struct vtrn_prog *prog, int core, uint32_t tensor,
                                  struct vtrn_error *err);
/* Writes the poison that is due. */
void vtrn_store_settle(struct vtrn_store *store);
/* Returns an automatic on-chip tensor's rows to the pool; it may not be used again. */
void vtrn_mem_release(struct vtrn_mem *mem, int core, uint32_t tensor);
/* Host pointer and size of an HBM tensor's bytes, allocating (and settling) it if needed; for results. */
enum vtrn_status vtrn_mem_hbm(struct vtrn_mem *mem, const struct vtrn_prog *prog, int core, uint32_t tensor, void **bytes_out,
                              size_t *size_out, struct vtrn_error *err);
/* Takes an owned HBM tensor's pages out of the mem: the caller frees them with vtrn_free_pages(ptr, size). */
enum vtrn_status vtrn_mem_take(struct vtrn_mem *mem, const struct vtrn_prog *prog, int core, uint32_t tensor, void **bytes_out,
                               size_t *size_out, struct vtrn_error *err);
/* Bytes of host memory that the mem holds now, and at most so far. */
void vtrn_mem_usage(const struct vtrn_mem *mem, size_t *now_out, size_t *peak_out);
#endif
