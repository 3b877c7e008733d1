/* The scalar engine's functions for the level neon. */
#include "kern/arm/words_neon.h"

#include "kern/act.inc.c"

void vtrn_kern_neon_act(struct vtrn_kern *kern) { set_act(kern); }
