/* The ALU operators for the level avx512. */
#include "kern/x86/words_avx512.h"

#include "kern/alu.inc.c"

void vtrn_kern_avx512_alu(struct vtrn_kern *kern) { set_alu(kern); }
