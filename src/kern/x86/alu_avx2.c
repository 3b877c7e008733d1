/* The ALU operators for the level avx2. */
#include "kern/x86/words_avx2.h"

#include "kern/alu.inc.c"

void vtrn_kern_avx2_alu(struct vtrn_kern *kern) { set_alu(kern); }
