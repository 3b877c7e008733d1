/* Inside exec/ only: the accumulators of the scalar and the vector engine (acc.c), and how bodies that reduce cut rows. */
#ifndef VTRN_EXEC_ACC_INT_H
#define VTRN_EXEC_ACC_INT_H
#include "exec/vec_int.h"

/* What an instruction does with its engine's accumulators, one per partition. A lane is a physical partition as far as the
 * program says: the data tensor's address plus the first partition of the access. */
struct exec_acc {
    float *lane; /* of the data's first partition */
    enum vtrn_alu op;
    bool reduces; /* results are added to the lanes */
};
/* Carries out what the command says before the first element: reset to the operator's identity, or load `init`. */
void exec_acc_begin(struct vtrn_core *core, float *lanes, const struct vtrn_ap *data, int64_t parts, const struct vtrn_value *cmd,
                    enum vtrn_alu op, const struct exec_scalars *init, struct exec_acc *out);
/* Adds a packed block of results, in order of its elements. */
static inline void exec_acc_add(const struct vtrn_kern *kern, const struct exec_acc *acc, const float *values, int64_t p0,
                                int64_t np, int64_t n)
{
    kern->reduce[acc->op](acc->lane + p0, values, (size_t)n, (size_t)np, (size_t)n);
}
/* Writes the accumulators to reduce_res, when it is given. */
enum vtrn_status exec_acc_end(struct vtrn_core *core, const struct exec_acc *acc, const struct vtrn_value *res, int64_t parts,
                              bool negate);
float exec_identity(enum vtrn_alu op);

/* Sums run along a row one after the other, so several rows are summed side by side: blocks are short and tall. */
enum { EXEC_TALL_ELEMS = 128 };
static inline int64_t exec_tall_parts(int64_t elems)
{
    return (int64_t)((uint32_t)EXEC_ROW_MAX / (uint32_t)(elems < EXEC_TALL_ELEMS ? elems : EXEC_TALL_ELEMS));
}
#endif
