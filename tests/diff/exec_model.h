/* What the tests of exec bodies share: random operands on a rig, a plain list of element addresses for each, and the
 * comparison of whole tensors afterwards. Models are double loops over the definition of an instruction: they read every
 * element from copies of the tensors made before the run, so that overlapping operands come out as "read all, then write".
 * Nothing here knows blocks, strides after merging, or threads. */
#ifndef VTRN_TESTS_EXEC_MODEL_H
#define VTRN_TESTS_EXEC_MODEL_H
#include "exec_rig.h"

enum { MODEL_TENSORS = 8 };
struct model_tensor {
    uint32_t id;
    uint8_t *before, *after; /* row-major bytes: as it was, and as it should be */
    size_t bytes;
};
struct model {
    struct rig *rig;
    struct vtrn_inst inst;
    struct model_tensor tensor[MODEL_TENSORS];
    int tensors;
    const char *what; /* for messages */
};
void model_begin(struct model *model, struct rig *rig, enum vtrn_opcode op, int engine);
/* Runs the instruction and compares every tensor that was mentioned, byte for byte. */
void model_end(struct model *model);
void model_end_fault(struct model *model, enum vtrn_fault_reason reason, const char *words);

/* A new tensor with random elements and a pattern of [parts, elems] in it. */
struct vtrn_ap model_source(struct model *model, int space, uint8_t dtype, int64_t parts, int64_t elems);
/* The same, sometimes with a stride of 0 or windows that overlap: for operands that are only read. */
struct vtrn_ap model_broadcast(struct model *model, int space, uint8_t dtype, int64_t parts, int64_t elems);
/* A destination: mostly a tensor of its own, otherwise a view that shares bytes with `src` (NULL: never): the same
 * elements, shifted ones, or elements of another size. */
struct vtrn_ap model_target(struct model *model, int space, uint8_t dtype, int64_t parts, int64_t elems, const struct vtrn_ap *src);
/* Bytes of element i of partition p: before the run, and where the model writes. */
const uint8_t *model_read(struct model *model, const struct vtrn_ap *ap, int64_t p, int64_t i);
uint8_t *model_write(struct model *model, const struct vtrn_ap *ap, int64_t p, int64_t i);
float model_get(struct model *model, const struct vtrn_ap *ap, int64_t p, int64_t i);
void model_put(struct model *model, const struct vtrn_ap *ap, int64_t p, int64_t i, float value);

/* A scalar operand: a number or a (P,1) vector; and its value in partition p. */
void model_scalar(struct model *model, struct vtrn_value *value, int64_t parts, bool whole);
float model_scalar_get(struct model *model, const struct vtrn_value *value, int64_t p);

float model_quiet(float x); /* any NaN as the one that engines give */
/* Operators by their definition in aluops.def, in fp32. */
float model_alu(enum vtrn_alu op, float a, float b);
float model_alu_swapped(enum vtrn_alu op, bool reverse, float a, float b);
uint8_t model_pick(const uint8_t *list, int count); /* one of a list */
#define MODEL_PICK(list) model_pick((list), (int)sizeof(list))
/* [parts, elems] of every kind: single columns, narrow rows, wide rows, sizes that fill and pass blocks. */
void model_shape(int64_t *parts, int64_t *elems, int64_t most);
int model_space(int64_t elems); /* SBUF, sometimes PSUM where that many elements have room */
#endif
