/* The bit operators for the level neon. */
#include "kern/arm/words_neon.h"

#include "kern/bits.inc.c"

void vtrn_kern_neon_bits(struct vtrn_kern *kern) { set_bits(kern); }
