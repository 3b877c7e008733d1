/* Control: which instruction of a core comes next. Sequencers' registers are followed as far as they can be known without
 * memory: constants, arithmetic, loop indices. Values that register_load brought in come from a run's trace.
 * Must not read a tensor's bytes; the arithmetic is that of exec's control.c. */
#include "time/time_int.h"

enum vtrn_status walk_init(struct walk *walk, const struct vtrn_prog *prog, int core, const struct vtrn_trace *trace, struct vtrn_error *err)
{
    *walk = (struct walk){ .prog = prog, .trace = trace, .core = core, .err = err };
    walk->reg = calloc((size_t)prog->registers + 1, sizeof *walk->reg);
    VTRN_FAIL_IF(!walk->reg, err, VTRN_NOMEM, "no memory for %u registers", prog->registers);
    for (uint32_t r = 0; r <= prog->registers; r++) walk->reg[r] = (struct walk_reg){ 0, true, 0, NO_STEP };
    return VTRN_OK;
}

void walk_fini(struct walk *walk) { free(walk->reg); }

static enum vtrn_status fail_at(struct walk *walk, const struct vtrn_inst *inst, enum vtrn_status status, const char *what)
{
    char where[256];

    vtrn_prog_where(walk->prog, inst, where, sizeof where);
    return vtrn_fail(walk->err, status, "%s: %s", where, what);
}

/* What control hangs on must be known. */
static enum vtrn_status know(struct walk *walk, const struct vtrn_inst *inst, const struct vtrn_value *value, int64_t *out)
{
    *out = value->i;
    if (value->kind != VTRN_V_REG) return VTRN_OK;
    if (!walk->reg[value->i].known)
        return fail_at(walk, inst, VTRN_UNSUPPORTED,
                       "hangs on a register that is loaded from memory; its time needs the values of a run, which vtrn.profile takes");
    *out = walk->reg[value->i].value;
    return VTRN_OK;
}

static void set(struct walk *walk, uint32_t reg, bool known, int64_t value, uint32_t step, int cls)
{
    walk->reg[reg] = (struct walk_reg){ (int32_t)(uint32_t)(uint64_t)value, known, (uint8_t)cls, step };
}

static bool peek(const struct walk *walk, const struct vtrn_value *value, int64_t *out)
{
    *out = value->kind == VTRN_V_REG ? walk->reg[value->i].value : value->i;
    return value->kind != VTRN_V_REG || walk->reg[value->i].known;
}

static int64_t divide_down(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

static int64_t shifted(int64_t value, int64_t by, bool left)
{
    if (by > 31) return left || value >= 0 ? 0 : -1;
    return left ? (int64_t)((uint64_t)value << by) : value < 0 ? ~(~value >> by) : value >> by;
}

static bool compute(int op, int64_t a, int64_t b, int64_t *out)
{
    bool divides = op == VTRN_REGOP_DIVIDE || op == VTRN_REGOP_MODULO, shifts = op == VTRN_REGOP_SHL || op == VTRN_REGOP_SHR;

    if ((divides && b == 0) || (shifts && b < 0)) return false;
    switch (op) {
    case VTRN_REGOP_ADD: *out = a + b; break;
    case VTRN_REGOP_SUBTRACT: *out = a - b; break;
    case VTRN_REGOP_MULTIPLY: *out = a * b; break;
    case VTRN_REGOP_DIVIDE: *out = divide_down(a, b); break;
    case VTRN_REGOP_MODULO: *out = a - divide_down(a, b) * b; break;
    case VTRN_REGOP_MAXIMUM: *out = a > b ? a : b; break;
    case VTRN_REGOP_MINIMUM: *out = a < b ? a : b; break;
    case VTRN_REGOP_EQUAL: *out = a == b; break;
    case VTRN_REGOP_NOT_EQUAL: *out = a != b; break;
    case VTRN_REGOP_LESS: *out = a < b; break;
    case VTRN_REGOP_LESS_EQUAL: *out = a <= b; break;
    case VTRN_REGOP_AND: *out = a & b; break;
    case VTRN_REGOP_OR: *out = a | b; break;
    case VTRN_REGOP_XOR: *out = a ^ b; break;
    case VTRN_REGOP_SHL: *out = shifted(a, b, true); break;
    case VTRN_REGOP_SHR: *out = shifted(a, b, false); break;
    default: return false;
    }
    return true;
}

static void skip_loop(struct walk *walk)
{
    const struct vtrn_code *code = &walk->prog->code[walk->core];
    uint32_t low = 0, high = code->loops;

    while (low < high) { /* in order of their begin */
        uint32_t middle = low + (high - low) / 2;

        if (code->loop[middle].begin < walk->pc) low = middle + 1;
        else high = middle;
    }
    walk->pc = code->loop[low].end + 1;
}

static enum vtrn_status begin(struct walk *walk, const struct vtrn_inst *inst, uint32_t step, int cls)
{
    const struct vtrn_args_loop_begin *arg = VTRN_ARGS(loop_begin, inst);
    struct walk_loop loop = { .begin = walk->pc, .reg = (uint32_t)arg->index.i };

    VTRN_TRY(know(walk, inst, &arg->lower, &loop.value));
    VTRN_TRY(know(walk, inst, &arg->upper, &loop.upper));
    VTRN_TRY(know(walk, inst, &arg->step, &loop.step));
    if (loop.step == 0) return fail_at(walk, inst, VTRN_ILLEGAL, "operand step: 0; the loop would never end");
    if (loop.step > 0 ? loop.value >= loop.upper : loop.value <= loop.upper) {
        skip_loop(walk);
        return VTRN_OK;
    }
    set(walk, loop.reg, true, loop.value, step, cls);
    walk->loop[walk->loops++] = loop; /* the depth was checked when the program was built */
    walk->pc++;
    return VTRN_OK;
}

static enum vtrn_status begin_while(struct walk *walk, const struct vtrn_inst *inst)
{
    const struct vtrn_args_while_begin *arg = VTRN_ARGS(while_begin, inst);
    int64_t condition;

    VTRN_TRY(know(walk, inst, &arg->condition, &condition));
    if (condition == 0) {
        skip_loop(walk);
        return VTRN_OK;
    }
    if (arg->condition.kind != VTRN_V_REG) return fail_at(walk, inst, VTRN_ILLEGAL, "the loop would never end");
    walk->loop[walk->loops++] = (struct walk_loop){ .begin = walk->pc, .is_while = true, .reg = (uint32_t)arg->condition.i };
    walk->pc++;
    return VTRN_OK;
}

static enum vtrn_status turn(struct walk *walk, const struct vtrn_inst *inst, uint32_t step, int cls)
{
    struct walk_loop *loop = &walk->loop[walk->loops - 1];
    bool again;

    if (loop->is_while) {
        struct vtrn_value value = { .kind = VTRN_V_REG, .i = loop->reg };
        int64_t condition;

        VTRN_TRY(know(walk, inst, &value, &condition));
        again = condition != 0;
    } else {
        loop->value += loop->step;
        again = loop->step > 0 ? loop->value < loop->upper : loop->value > loop->upper;
        if (again) set(walk, loop->reg, true, loop->value, step, cls);
    }
    if (again) walk->pc = loop->begin + 1;
    else {
        walk->loops--;
        walk->pc++;
    }
    return VTRN_OK;
}

enum vtrn_status walk_step(struct walk *walk, const struct vtrn_inst *inst, uint32_t step, int cls)
{
    int64_t a, b, value = 0;
    bool known;

    switch (inst->op) {
    case VTRN_OP_loop_begin: return begin(walk, inst, step, cls);
    case VTRN_OP_while_begin: return begin_while(walk, inst);
    case VTRN_OP_loop_end: return turn(walk, inst, step, cls);
    case VTRN_OP_register_move:
        known = peek(walk, &VTRN_ARGS(register_move, inst)->src, &value);
        set(walk, (uint32_t)VTRN_ARGS(register_move, inst)->dst.i, known, value, step, cls);
        break;
    case VTRN_OP_register_alu:
        known = peek(walk, &VTRN_ARGS(register_alu, inst)->lhs, &a);
        known = peek(walk, &VTRN_ARGS(register_alu, inst)->rhs, &b) && known;
        known = known && compute((int)VTRN_ARGS(register_alu, inst)->op.i, a, b, &value);
        set(walk, (uint32_t)VTRN_ARGS(register_alu, inst)->dst.i, known, value, step, cls);
        break;
    case VTRN_OP_register_load:
        known = walk->trace && walk->taken < walk->trace->values;
        if (known) value = walk->trace->value[walk->taken++];
        set(walk, (uint32_t)VTRN_ARGS(register_load, inst)->dst.i, known, value, step, cls);
        break;
    default: break;
    }
    walk->pc++;
    return VTRN_OK;
}
