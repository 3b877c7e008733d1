/* The bit operators for the level avx2. */
#include "kern/x86/words_avx2.h"

#include "kern/bits.inc.c"

void vtrn_kern_avx2_bits(struct vtrn_kern *kern) { set_bits(kern); }
