/* The ALU operators for the level neon. */
#include "kern/arm/words_neon.h"

#include "kern/alu.inc.c"

void vtrn_kern_neon_alu(struct vtrn_kern *kern) { set_alu(kern); }
