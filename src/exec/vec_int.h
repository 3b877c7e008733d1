/* Inside exec/ only: what the elementwise bodies of the vector, scalar and GpSimd engines share. */
#ifndef VTRN_EXEC_VEC_INT_H
#define VTRN_EXEC_VEC_INT_H
#include "exec/exec_int.h"

/* A scalar operand: one fp32 per partition, and whether all are the same number. */
struct exec_scalars {
    float value[EXEC_LANES];
    bool same;
};
enum vtrn_status exec_scalars(struct vtrn_core *core, const struct vtrn_value *value, int64_t parts, struct exec_scalars *out);

/* An operator with its scalar operand, as in tensor_scalar. op NONE: nothing to do. */
struct exec_step {
    enum vtrn_alu op;
    bool reverse;
    struct exec_scalars scalar;
};
enum vtrn_status exec_step(struct vtrn_core *core, const struct vtrn_value *op, const struct vtrn_value *operand,
                           const struct vtrn_value *reverse, int64_t parts, struct exec_step *out);
/* out = op(x, scalar of each partition) for a packed block of np partitions by n elements; out may be x. `tmp` holds a block
 * and EXEC_SPREAD_EXTRA elements behind it. The second form applies two steps (the other one's op may be NONE). */
enum { EXEC_SPREAD_EXTRA = 8 };
void exec_apply(const struct vtrn_kern *kern, const struct exec_step *step, float *out, const float *x, int64_t p0, int64_t np,
                int64_t n, float *tmp);
void exec_apply_pair(const struct vtrn_kern *kern, const struct exec_step *first, const struct exec_step *second, float *out,
                     const float *x, int64_t p0, int64_t np, int64_t n, float *tmp);

/* Block `slot` of a thread's scratch: EXEC_ROW_MAX floats each. */
static inline float *exec_block(uint8_t *scratch, int slot) { return (float *)(void *)scratch + (size_t)slot * EXEC_ROW_MAX; }

static inline enum vtrn_alu exec_alu(const struct vtrn_value *value)
{
    return value->kind == VTRN_V_INT ? (enum vtrn_alu)value->i : VTRN_ALU_NONE;
}
static inline bool exec_flag(const struct vtrn_value *value) { return value->kind == VTRN_V_INT && value->i != 0; }
static inline bool exec_is_word(uint8_t dtype) { return dtype == VTRN_DT_I32 || dtype == VTRN_DT_U32; }
static inline bool exec_is_bits(enum vtrn_alu op) { return op != VTRN_ALU_NONE && vtrn_alus[op].cls == VTRN_ALU_BITS; }
static inline int exec_size_slot(int elem_bytes) { return elem_bytes >> 1; /* 1, 2, 4 bytes: 0, 1, 2 */ }

/* ---- integers and bits (ints.c); views are resolved and staged ---- */
void exec_tensor_tensor_bits(struct vtrn_core *core, enum vtrn_alu op, const struct exec_view *dst, const struct exec_view *a,
                             const struct exec_view *b);
void exec_tensor_tensor_words(struct vtrn_core *core, enum vtrn_alu op, const struct exec_view *dst, const struct exec_view *a,
                              const struct exec_view *b);
/* tensor_scalar in integers: operands are whole numbers or integer vectors, dst and data are 32-bit integers. */
bool exec_scalar_words_apply(const struct vtrn_inst *inst, uint8_t dst_dtype, uint8_t data_dtype);
enum vtrn_status exec_tensor_scalar_words(struct vtrn_core *core, const struct vtrn_inst *inst, const struct exec_view *dst,
                                          const struct exec_view *data);
enum vtrn_status exec_tensor_scalar_bits(struct vtrn_core *core, const struct vtrn_inst *inst, const struct exec_view *dst,
                                         const struct exec_view *data);
#endif
