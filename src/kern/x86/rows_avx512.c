/* Reductions and recurrences for the level avx512. */
#include "kern/x86/words_avx512.h"

#include "kern/rows.inc.c"

void vtrn_kern_avx512_rows(struct vtrn_kern *kern) { set_rows(kern); }
