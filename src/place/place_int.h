/* Inside place/ only. */
#ifndef VTRN_PLACE_INT_H
#define VTRN_PLACE_INT_H
#include "place/place.h"

enum { PLACE_QUADRANTS = 4 };
#define PLACE_RESERVED (UINT32_MAX - 1) /* owner of what kernels may not use */

struct place_piece { /* bytes from `low` to the next piece: who was there last, and until which instruction */
    uint32_t low, owner, until;
};
struct place_map {
    struct place_piece *piece; /* by address; the first is at 0 */
    uint32_t count, capacity, size;
};
struct place_key {
    uint32_t first, tensor;
};
struct place_state { /* while one memory is packed */
    struct vtrn_place *place;
    struct vtrn_error *err;
    struct vtrn_place_use *use;
    struct place_map map[PLACE_QUADRANTS];
    struct place_key *key;  /* the memory's tensors by first use */
    int quadrants;          /* maps in use: 1 while they would be alike */
    uint32_t *given;        /* those with an address, by first use */
    uint32_t givens, next_given, bank_bytes, insts, cursor;
};

/* By `first`, then by tensor; cheap for what is nearly in order, as tensors are (measure.c). */
void place_sort(struct place_key *key, uint32_t keys);
/* Fills in the peak of the memory (measure.c); reorders state->key. */
void place_measure(struct place_state *state, uint32_t keys);
#endif
