/* The bit operators for the level avx512. */
#include "kern/x86/words_avx512.h"

#include "kern/bits.inc.c"

void vtrn_kern_avx512_bits(struct vtrn_kern *kern) { set_bits(kern); }
