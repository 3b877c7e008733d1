/* Inside kern/ only: the hooks by which files of ref/, x86/ and arm/ put their functions into a table. */
#ifndef VTRN_KERN_INT_H
#define VTRN_KERN_INT_H
#include "kern/kern.h"

/* Matrix kernels and transposes. `level` is the one being filled; called once for each level from AVX2 up. */
void vtrn_kern_ref_mm(struct vtrn_kern *kern);
void vtrn_kern_x86_mm(struct vtrn_kern *kern, enum vtrn_cpu_level level);
void vtrn_kern_arm_mm(struct vtrn_kern *kern);
#endif
