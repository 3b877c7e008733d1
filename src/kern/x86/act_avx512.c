/* The scalar engine's functions for the level avx512. */
#include "kern/x86/words_avx512.h"

#include "kern/act.inc.c"

void vtrn_kern_avx512_act(struct vtrn_kern *kern) { set_act(kern); }
