/* place: where a program's tensors lie in SBUF and PSUM. Tensors with an address keep it; automatic ones get one from their
 * lifetimes, by interval packing, so that whether a kernel fits is a fact and the reuse of memory is real. A program itself
 * knows no addresses: those who check capacity, time a program or draw its memory ask here.
 * Reads the program's tables; must not know time, values or instructions. */
#ifndef VTRN_PLACE_H
#define VTRN_PLACE_H
#include "prog/prog.h"

enum vtrn_spot_kind {
    VTRN_SPOT_NONE,    /* in HBM, or never used */
    VTRN_SPOT_CHOSEN,  /* automatic, placed */
    VTRN_SPOT_GIVEN,   /* by the program's address= */
    VTRN_SPOT_SPILLED, /* automatic, and there was no room: a compiler would keep it in HBM */
};
struct vtrn_spot {
    uint32_t byte;      /* first byte in the partition */
    uint16_t partition; /* first partition */
    uint8_t kind;
};
/* One core's SBUF or PSUM. Bytes are per partition: of the fullest of the four 32-partition quadrants. */
struct vtrn_place_use {
    int64_t limit_bytes;   /* what kernels may use of a partition */
    int64_t peak_bytes;    /* most that is live at once */
    uint32_t peak_at;      /* the instruction at which it is */
    int quadrant;          /* the fullest */
    uint32_t spilled;      /* tensors without room */
    int64_t spilled_bytes; /* of all their partitions */
    uint32_t top_bytes;    /* highest byte that a chosen address uses */
};
enum { VTRN_PLACE_SBUF, VTRN_PLACE_PSUM, VTRN_PLACE_SPACES };
struct vtrn_place {
    const struct vtrn_prog *prog;
    struct vtrn_spot *spot;             /* by tensor */
    struct vtrn_place_use use[VTRN_CORES_MAX][VTRN_PLACE_SPACES];
};

/* `arch` NULL: the program's. Tensors that do not fit are no error: see use[].spilled and vtrn_place_check. */
enum vtrn_status vtrn_place_create(const struct vtrn_prog *prog, const struct vtrn_arch *arch, struct vtrn_place **place_out,
                                   struct vtrn_error *err);
void vtrn_place_destroy(struct vtrn_place *place);
/* LIMIT when a core's SBUF or PSUM does not hold what is live at once; the message has peak, limit and the largest tensors. */
enum vtrn_status vtrn_place_check(const struct vtrn_place *place, struct vtrn_error *err);
/* The tensors that are live at the peak, largest first; returns how many there are and writes at most `most`. */
uint32_t vtrn_place_peak(const struct vtrn_place *place, int core, int space, uint32_t *tensor_out, uint32_t most);
#endif
