/* Random legal programs from the legal rows of prog_rows.h: instructions in loops, with locations, names, edges, odd
 * tensors, constants and odd strings. The same seed gives the same program. */
#ifndef VTRN_TESTS_PROG_RANDOM_H
#define VTRN_TESTS_PROG_RANDOM_H
#include "gen.h"
#include "prog_rows.h"

static inline uint32_t random_string(struct gen *gen, struct vtrn_prog *prog)
{
    static const char *const texts[] = { "",   "acc",  "a b", "\"quoted\\\"", "line\nline", "#hash", "caf\xc3\xa9",
                                         "%1", "tile", "x.y", "@3",           "\x01\x7f" };
    const char *text = texts[gen_range(gen, 0, sizeof texts / sizeof texts[0] - 1)];
    uint32_t index = 0;

    assert_int_equal(vtrn_prog_string(prog, text, strlen(text), &index), VTRN_OK);
    return index;
}

static inline uint32_t random_loc(struct gen *gen, struct vtrn_prog *prog)
{
    uint32_t loc = 0;

    if (gen_chance(gen, 20)) return 0;
    assert_int_equal(vtrn_prog_loc(prog, random_string(gen, prog), (uint32_t)gen_range(gen, 0, 300), &loc), VTRN_OK);
    return loc;
}

static inline void random_tensor(struct gen *gen, struct vtrn_prog *prog)
{
    static uint8_t bytes[4 * 5 * 5 * 5];
    struct vtrn_error err = { 0 };
    struct vtrn_tensor tensor = { .space = (uint8_t)gen_range(gen, VTRN_SBUF, VTRN_HBM_SHARED),
                                  .rank = (uint8_t)gen_range(gen, 2, 4),
                                  .dtype = (uint8_t)gen_range(gen, 1, VTRN_DT_COUNT - 1),
                                  .core = (uint8_t)gen_range(gen, 0, prog->cores - 1),
                                  .name = random_string(gen, prog),
                                  .loc = random_loc(gen, prog) };
    uint32_t index;

    for (int d = 0; d < 4; d++) tensor.dim[d] = gen_range(gen, 1, 5);
    if (vtrn_space_is_hbm(tensor.space)) {
        if (gen_chance(gen, 30)) tensor.core = VTRN_CORES_MAX;
        tensor.role = (uint8_t)gen_range(gen, VTRN_ROLE_TEMP, VTRN_ROLE_CONST);
        if (tensor.role == VTRN_ROLE_CONST) {
            tensor.rank = 3;
            for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (uint8_t)gen_u64(gen);
            tensor.data = bytes;
        }
        if (tensor.role != VTRN_ROLE_CONST && gen_chance(gen, 20)) tensor.dim[0] = 1 << 20;
    } else if (gen_chance(gen, 50)) {
        tensor.has_address = 1;
        tensor.addr_partition = (uint16_t)(32 * gen_range(gen, 0, 3));
        tensor.addr_byte = (uint32_t)gen_range(gen, 0, 8000);
    }
    if (vtrn_prog_tensor(prog, &tensor, &index, &err) < 0) fail_msg("%s", err.text);
}

/* Appends one legal row of the program's target, if the draw hits one that core `core` may run. */
static inline void random_row(struct gen *gen, struct vtrn_prog *prog, const char *target, int core, struct vtrn_inst *inst)
{
    size_t table = (size_t)gen_range(gen, 0, ROW_TABLES - 1), at = (size_t)gen_range(gen, 0, (int64_t)row_tables[table].count - 1);
    const struct row *row = &row_tables[table].row[at];
    struct vtrn_error err = { 0 };

    if (strcmp(row->target, target) != 0) return;
    env_inst(prog, row->good, inst);
    if (inst->op == VTRN_OP_loop_begin || inst->op == VTRN_OP_while_begin || inst->op == VTRN_OP_loop_end) return;
    inst->loc = random_loc(gen, prog);
    inst->name = random_string(gen, prog);
    if (vtrn_prog_append(prog, core, inst, NULL, &err) < 0 && core == 0) fail_msg("%s: %s", row->good, err.text);
}

static inline void random_loop(struct gen *gen, struct vtrn_prog *prog, int core, bool begin)
{
    struct vtrn_error err = { 0 };
    const char *text = !begin                ? "sync loop_end"
                       : gen_chance(gen, 70) ? "sync loop_begin index=r7 lower=0 upper=r8 step=2"
                                             : "sync while_begin condition=r9";

    if (!begin && prog->code[core].loop_depth == 0) return;
    if (begin && prog->code[core].loop_depth == 5) return;
    if (env_append(prog, core, text, &err) < 0) fail_msg("%s", err.text);
}

static inline void random_edge(struct gen *gen, struct vtrn_prog *prog, int core)
{
    uint32_t count = prog->code[core].count;

    if (count < 2) return;
    vtrn_prog_edge(prog, core, count - 1, (uint32_t)gen_range(gen, 0, count - 2), NULL); /* into a loop: refused, also fine */
}

static inline struct vtrn_prog *random_program(uint64_t seed)
{
    static const char *const targets[] = { "trn1", "trn2", "trn3", "trn2x2" };
    struct gen gen = gen_seeded(seed);
    const char *target = targets[gen_range(&gen, 0, 3)];
    struct vtrn_prog *prog = program_for(target);
    struct vtrn_inst *inst = malloc(sizeof *inst);
    int steps = (int)gen_range(&gen, 0, 300);

    prog->replayable = gen_chance(&gen, 50);
    for (int i = 0; i < steps; i++) {
        int core = (int)gen_range(&gen, 0, prog->cores - 1);

        random_row(&gen, prog, target, core, inst);
        if (gen_chance(&gen, 10)) random_tensor(&gen, prog);
        if (gen_chance(&gen, 8)) random_loop(&gen, prog, core, true);
        if (gen_chance(&gen, 8)) random_loop(&gen, prog, core, false);
        if (gen_chance(&gen, 10)) random_edge(&gen, prog, core);
    }
    for (int core = 0; core < prog->cores; core++)
        while (prog->code[core].loop_depth) random_loop(&gen, prog, core, false);
    free(inst);
    return prog;
}
#endif
