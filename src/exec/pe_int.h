/* Inside exec/ only: what products (pe.c) and transposes (transpose.c) of the tensor engine share. */
#ifndef VTRN_EXEC_PE_INT_H
#define VTRN_EXEC_PE_INT_H
#include "exec/exec_int.h"

enum { EXEC_MACS_PER_ELEM = 16 /* a multiply-add costs about a sixteenth of an element of other instructions */ };

/* What a product does with what is in PSUM. */
enum exec_accumulate { EXEC_OVERWRITE, EXEC_ADD, EXEC_ADD_WRITTEN /* only where a product wrote before */ };
enum exec_accumulate exec_accumulate_of(const struct vtrn_value *flag, const struct exec_view *dst);
/* The tensor engine wrote all of dst. */
void exec_mark_written(const struct exec_view *dst);

/* The product `first` over all of its columns, and with it the products after the instruction being executed that go to the
 * same place `dst`: counted in core->also_done. dst NULL: `first` alone. (pe_group.c) */
void exec_group_run(struct vtrn_core *core, const struct vtrn_mm *first, const struct vtrn_ap *dst);

/* nc_matmul(is_transpose) as v3 and later do it: dst[m,n] = the bits of stationary[row of the 1 in moving's column n, m]. */
enum vtrn_status exec_transpose_selected(struct vtrn_core *core, const struct exec_view *dst, const struct exec_view *stationary,
                                         const struct exec_view *moving);
enum vtrn_status exec_transpose_by_product(struct vtrn_core *core, const struct exec_view *dst, const struct exec_view *data);
#endif
