/* Inside the legality files only: an instruction under examination, and the rules that many instructions share.
 * A rule returns OK, or ILLEGAL with the message "operand: value, limit, what to do" written; callers forward it. */
#ifndef VTRN_LEGAL_INT_H
#define VTRN_LEGAL_INT_H
#include "prog/prog_int.h"

/* What the rules need to know of one tensor operand; filled by legal_access. */
struct legal_operand {
    const char *name;
    const struct vtrn_ap *ap;
    const struct vtrn_tensor *tensor;
    int64_t parts; /* count of dim 0 */
    int64_t elems; /* elements per step of dim 0: per partition on chip */
    uint8_t space, dtype;
};
struct legal {
    const struct vtrn_prog *prog;
    const struct vtrn_inst *inst;
    const struct vtrn_op_info *info;
    struct vtrn_error *err;
    int core, version;
    bool dma;                                        /* runs on the DMA engines: free to start at any partition, moves any dtype */
    bool control;                                    /* runs in the sequencer */
    struct legal_operand operand[VTRN_MAX_OPERANDS]; /* valid where the argument is an access pattern */
};

/* The operand of a row by name: NULL when it is absent or not a tensor. A misspelt name does not compile. */
#define LEGAL_INDEX(opname, field) (offsetof(struct vtrn_args_##opname, field) / sizeof(struct vtrn_value))
static inline const struct legal_operand *legal_operand_at(const struct legal *legal, size_t index)
{
    return legal->inst->arg[index].kind == VTRN_V_AP ? &legal->operand[index] : NULL;
}
#define LEGAL_OPERAND(legal, opname, field) legal_operand_at((legal), LEGAL_INDEX(opname, field))
#define LEGAL_ARG(legal, opname, field)     (&(legal)->inst->arg[LEGAL_INDEX(opname, field)])

#define LEGAL_FAIL_IF(cond, legal, ...) VTRN_FAIL_IF(cond, (legal)->err, VTRN_ILLEGAL, __VA_ARGS__)

/* One body per instruction, named after it: what its row cannot say. A missing body is a link error. */
#define OP(name, code, engines, dflt, version, args, rule, doc) enum vtrn_status legal_##name(struct legal *legal);
#define GONE(code, name)
#include "isa/ops.def"
#undef OP
#undef GONE

/* ---- legal_access.c: one operand alone ---- */
/* Tensor, owner, space, dtype, dimensions, bounds, partitions, dynamic parts. Fills *operand. */
enum vtrn_status legal_access(struct legal *legal, const struct vtrn_operand_info *info, const struct vtrn_ap *ap,
                              struct legal_operand *operand);
/* Number of dimensions after size-1 and contiguous ones are merged, the partition dimension included. */
int legal_merged_dims(const struct vtrn_ap *ap);
/* The dynamic part of that kind; NULL: none. */
const struct vtrn_dyn *legal_dyn(const struct vtrn_ap *ap, enum vtrn_dyn_kind kind);
/* Names of the dtypes of a mask, "float32, bfloat16 or float16". Returns `text`. */
const char *legal_dtype_names(uint32_t mask, char *text, size_t size);
static inline const char *legal_dtype_name(int dtype) { return vtrn_dtypes[dtype].nki_name; }

/* ---- legal_rules.c: operands among each other ---- */
enum vtrn_status legal_same_parts(struct legal *legal, const struct legal_operand *a, const struct legal_operand *b);
enum vtrn_status legal_same_elems(struct legal *legal, const struct legal_operand *a, const struct legal_operand *b);
/* Equal partitions and equal elements per partition: shapes of the free dimensions may differ. */
enum vtrn_status legal_same_shape(struct legal *legal, const struct legal_operand *a, const struct legal_operand *b);
enum vtrn_status legal_same_dtype(struct legal *legal, const struct legal_operand *a, const struct legal_operand *b);
enum vtrn_status legal_elems_are(struct legal *legal, const struct legal_operand *a, int64_t elems, const char *why);
enum vtrn_status legal_dtype_in(struct legal *legal, const struct legal_operand *a, uint32_t mask);
/* Two vector-engine inputs: one PSUM read port. */
enum vtrn_status legal_not_both_psum(struct legal *legal, const struct legal_operand *a, const struct legal_operand *b);
/* Scalar argument `index`: a number, or a (P,1) vector with the partitions of `with`. Absent is fine. */
enum vtrn_status legal_scalar(struct legal *legal, size_t index, const struct legal_operand *with);
/* Operator argument `index`: its operand fits (a unary operator takes none), it runs on this engine. */
enum vtrn_status legal_operator(struct legal *legal, size_t op_index, size_t operand_index);
/* A binary operator that takes two tensors or a tensor and an accumulator. */
enum vtrn_status legal_binary(struct legal *legal, size_t op_index);
/* BITS operators: integers only, unconverted. */
enum vtrn_status legal_bits_dtypes(struct legal *legal);
/* reduce_cmd argument `index` is in the mask of 1 << command; load_reduce needs and alone takes the initial value. */
enum vtrn_status legal_reduce_cmd(struct legal *legal, size_t index, unsigned mask);
/* reduce_res: one element per partition of `with`. Absent is fine. */
enum vtrn_status legal_reduce_res(struct legal *legal, size_t index, const struct legal_operand *with);
/* reduce_op argument is one of the mask 1 << alu. Absent is fine. */
enum vtrn_status legal_reduce_op(struct legal *legal, size_t index, uint64_t mask);
#define LEGAL_ALUBIT(NAME) (UINT64_C(1) << VTRN_ALU_##NAME)

static inline int legal_alu(const struct legal *legal, size_t index)
{
    const struct vtrn_value *value = &legal->inst->arg[index];

    return value->kind == VTRN_V_INT ? (int)value->i : VTRN_ALU_NONE;
}
static inline bool legal_flag(const struct legal *legal, size_t index)
{
    const struct vtrn_value *value = &legal->inst->arg[index];

    return value->kind == VTRN_V_INT && value->i != 0;
}
#endif
