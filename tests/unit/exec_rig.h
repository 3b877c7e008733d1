/* A program, its memories and its cores for tests of single instructions: build tensors and instructions by hand, run,
 * compare bytes. Every helper fails the test on an error it was not asked to expect. */
#ifndef VTRN_TESTS_EXEC_RIG_H
#define VTRN_TESTS_EXEC_RIG_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include "exec/exec.h"

#include <cmocka.h>

struct rig {
    struct vtrn_prog *prog;
    struct vtrn_mem *mem;
    struct vtrn_core *core[VTRN_CORES_MAX];
    struct vtrn_pool *pool;
    int cores;
    char *printed; /* all texts of device_print, one after the other */
    int prints;
    int interrupt_after; /* polls until the run is interrupted; 0: never */
};
struct rig *rig_create(const char *target, int cores, uint64_t seed);
void rig_destroy(struct rig *rig);

/* Random numbers of the tests. */
void rig_seed(uint64_t seed);
uint64_t rig_random(void);
int64_t rig_below(int64_t n);
void rig_random_bytes(void *out, size_t size_bytes);
/* Values of every kind: small and large numbers, halves, zeros, negatives. */
void rig_random_elems(uint8_t dtype, void *out, int64_t n);

/* A tensor of `core` (VTRN_CORES_MAX: shared). */
uint32_t rig_tensor(struct rig *rig, int core, int space, int dtype, int rank, const int64_t *dim);
uint32_t rig_tensor2(struct rig *rig, int core, int space, int dtype, int64_t rows, int64_t cols);
int64_t rig_elems(const struct rig *rig, uint32_t tensor);
void rig_write(struct rig *rig, int core, uint32_t tensor, const void *packed);
void rig_read(struct rig *rig, int core, uint32_t tensor, void *packed); /* through the memory, not through exec */

/* The whole tensor in row-major order; rows [row, row+rows) of it; columns too (2D, on chip or in HBM). */
struct vtrn_ap rig_ap(const struct rig *rig, uint32_t tensor);
struct vtrn_ap rig_slice(const struct rig *rig, uint32_t tensor, int64_t row, int64_t rows, int64_t col, int64_t cols);
/* A new tensor and a random pattern of [parts, elems] in it: up to 4 free dims in any order of strides, gaps, an offset, a
 * first partition. No element is walked twice. HBM patterns have a first dim of `parts` too. */
struct vtrn_ap rig_random_ap(struct rig *rig, int core, int space, uint8_t dtype, int64_t parts, int64_t elems);
/* Index of element i of partition p of a pattern without dynamic parts, in what rig_read gives. */
int64_t rig_at(const struct rig *rig, const struct vtrn_ap *ap, int64_t p, int64_t i);
/* The tensor's bytes as rig_read gives them, in new memory; and random elements written to a tensor, returned too. */
void *rig_image(struct rig *rig, int core, uint32_t tensor);
void *rig_fill(struct rig *rig, int core, uint32_t tensor);
/* Adds a dynamic part to an operand of `inst`. */
struct vtrn_dyn *rig_dyn(struct vtrn_inst *inst, struct vtrn_ap *ap, int kind, uint32_t ref, uint8_t dtype, int64_t scale);

#define RIG_ARG(inst, opname, operand) (&((struct vtrn_args_##opname *)(void *)(inst)->arg)->operand)
void rig_set_ap(struct vtrn_value *value, struct vtrn_ap ap);
void rig_set_int(struct vtrn_value *value, int64_t i);
void rig_set_num(struct vtrn_value *value, double num);
void rig_set_reg(struct vtrn_value *value, uint32_t reg);
void rig_set_ints(struct vtrn_inst *inst, struct vtrn_value *value, int count, const int64_t *ints);
void rig_append(struct rig *rig, int core, struct vtrn_inst *inst);
/* Runs to the end of the list. */
enum vtrn_status rig_run(struct rig *rig, int core);
void rig_run_ok(struct rig *rig, int core);
/* Runs and expects a fault of this reason whose text contains `words`. */
void rig_run_fault(struct rig *rig, int core, enum vtrn_fault_reason reason, const char *words);
#endif
