/* The scalar engine's functions for the level avx2. */
#include "kern/x86/words_avx2.h"

#include "kern/act.inc.c"

void vtrn_kern_avx2_act(struct vtrn_kern *kern) { set_act(kern); }
