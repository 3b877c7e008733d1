/* Conversions for the level avx512. */
#include "kern/x86/words_avx512.h"

#include "kern/convert.inc.c"

void vtrn_kern_avx512_convert(struct vtrn_kern *kern) { set_convert(kern); }
