/* Conversions for the level avx2. */
#include "kern/x86/words_avx2.h"

#include "kern/convert.inc.c"

void vtrn_kern_avx2_convert(struct vtrn_kern *kern) { set_convert(kern); }
