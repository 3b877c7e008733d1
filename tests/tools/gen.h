/* Random instructions from the instruction table, for round-trip tests and fuzzers. Every operand gets a value of a kind
 * that its row allows, so the result encodes, decodes, prints and parses; whether shapes fit each other is up to the
 * caller. The same seed gives the same instructions on every machine. */
#ifndef VTRN_TESTS_GEN_H
#define VTRN_TESTS_GEN_H
#include "isa/isa.h"

struct gen {
    uint64_t state;
    uint32_t tensors, registers, strings; /* references are drawn below these */
    int extreme;                          /* percent of numbers drawn from the whole range of their type */
};
struct gen gen_seeded(uint64_t seed); /* 100 tensors, 32 registers, 20 strings, 10 percent extreme */

uint64_t gen_u64(struct gen *gen);
int64_t gen_range(struct gen *gen, int64_t low, int64_t high); /* both ends included */
bool gen_chance(struct gen *gen, int percent);
int64_t gen_i64(struct gen *gen);    /* often at the edges of 8, 16, 24, 32 and 64 bits */
double gen_double(struct gen *gen);  /* often whole, zero, infinite, denormal, NaN with a payload */

/* A dtype of a mask; a pattern in a tensor; with room in `inst`, now and then with dynamic parts. */
uint8_t gen_dtype(struct gen *gen, uint32_t dtypes);
void gen_ap(struct gen *gen, struct vtrn_inst *inst, uint32_t dtypes, struct vtrn_ap *ap);
/* A value for one operand, absent or at its default now and then. */
void gen_value(struct gen *gen, struct vtrn_inst *inst, const struct vtrn_operand_info *info, struct vtrn_value *value);
/* Any opcode of the table; a whole instruction of `op` (VTRN_OP_NONE: any). */
enum vtrn_opcode gen_opcode(struct gen *gen);
void gen_inst(struct gen *gen, struct vtrn_inst *inst, enum vtrn_opcode op);

/* Equal in everything that is meaningful; on a difference *operand_out (may be NULL) says where. */
bool gen_inst_equal(const struct vtrn_inst *a, const struct vtrn_inst *b, const char **operand_out);
#endif
