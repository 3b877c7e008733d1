/* Reductions and recurrences for the level neon. */
#include "kern/arm/words_neon.h"

#include "kern/rows.inc.c"

void vtrn_kern_neon_rows(struct vtrn_kern *kern) { set_rows(kern); }
