/* Conversions for the level neon. */
#include "kern/arm/words_neon.h"

#include "kern/convert.inc.c"

void vtrn_kern_neon_convert(struct vtrn_kern *kern) { set_convert(kern); }
