/* Inside exec/ only: what the DMA bodies share. */
#ifndef VTRN_EXEC_DMA_INT_H
#define VTRN_EXEC_DMA_INT_H
#include "exec/walk_int.h"

/* Adds an operand's bytes to the counters of HBM traffic, when it is in HBM. */
void exec_dma_count(struct vtrn_core *core, const struct exec_view *view, int access);
#endif
