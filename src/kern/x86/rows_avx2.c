/* Reductions and recurrences for the level avx2. */
#include "kern/x86/words_avx2.h"

#include "kern/rows.inc.c"

void vtrn_kern_avx2_rows(struct vtrn_kern *kern) { set_rows(kern); }
