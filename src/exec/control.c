/* Registers and loops: what the sequencers execute themselves.
 *
 * Virtual registers hold 32 bits. A loop_begin evaluates its bounds once, as Python's range() does; the value of its index
 * register is set before every turn, so writes to it inside the body do not steer the loop. Loops nest; an empty loop jumps
 * behind its end, which the program's loop table names.
 * Knows the position of the core and its registers; of memory only the one element of register_load and register_store. */
#include "exec/walk_int.h"

/* Does: sets a register to an integer or to another register's value.
 * Rounding: none; integers keep their low 32 bits.
 * Faults: none.
 * Differs: none known. */
enum vtrn_status vtrn_exec_register_move(struct vtrn_core *core, const struct vtrn_inst *inst)
{
    const struct vtrn_args_register_move *arg = VTRN_ARGS(register_move, inst);
    exec_set_reg(core, (uint32_t)arg->dst.i, (int32_t)(uint32_t)exec_reg_value(core, &arg->src));
    return VTRN_OK;
}

static enum vtrn_status check_one(struct vtrn_core *core, const char *operand, const struct exec_view *view)
{
    if (view->parts == 1 && view->elems == 1) return VTRN_OK;
    return exec_fault(core, VTRN_FAULT_VALUE, "operand %s: [%lld, %lld]; a register takes one element", operand,
                      (long long)view->parts, (long long)view->elems);
}

/* For those who follow control without the memories: see struct vtrn_trace. */
static enum vtrn_status record(struct vtrn_core *core, struct vtrn_trace *trace, int32_t value)
{
    if (trace->values == trace->capacity) {
        size_t capacity = trace->capacity ? 2 * trace->capacity : 256;
        int32_t *grown = realloc(trace->value, capacity * sizeof *grown);
        VTRN_FAIL_IF(!grown, &core->err, VTRN_NOMEM, "no memory for a trace of %zu values", capacity);
        trace->value = grown;
        trace->capacity = capacity;
    }
    trace->value[trace->values++] = value;
    return VTRN_OK;
}

/* Does: sets a register to the one element of src: sign or zero extended from narrower integers.
 * Rounding: none; uint32 keeps its bits.
 * Faults: VALUE when src has more than one element.
 * Differs: none known. */
enum vtrn_status vtrn_exec_register_load(struct vtrn_core *core, const struct vtrn_inst *inst)
{
    const struct vtrn_args_register_load *arg = VTRN_ARGS(register_load, inst);
    struct exec_view src;
    VTRN_TRY(exec_resolve(core, &arg->src.ap, VTRN_READ, &src));
    VTRN_TRY(check_one(core, "src", &src));
    int32_t value = (int32_t)(uint32_t)exec_int_load(src.dtype, exec_elem(&src, 0, 0));
    exec_set_reg(core, (uint32_t)arg->dst.i, value);
    return core->options.trace ? record(core, core->options.trace, value) : VTRN_OK;
}

/* Does: writes a register's value, or an integer, to the one element of dst.
 * Rounding: none; narrower integers take the low bits.
 * Faults: VALUE when dst has more than one element.
 * Differs: none known. */
enum vtrn_status vtrn_exec_register_store(struct vtrn_core *core, const struct vtrn_inst *inst)
{
    const struct vtrn_args_register_store *arg = VTRN_ARGS(register_store, inst);
    struct exec_view dst;
    VTRN_TRY(exec_resolve(core, &arg->dst.ap, VTRN_WRITE, &dst));
    VTRN_TRY(check_one(core, "dst", &dst));
    exec_int_store(dst.dtype, exec_elem(&dst, 0, 0), exec_reg_value(core, &arg->src));
    return VTRN_OK;
}

static int64_t shift(int64_t value, int64_t by, bool left)
{
    if (by > 31) return left || value >= 0 ? 0 : -1;
    return left ? (int64_t)((uint64_t)value << by) : value < 0 ? ~(~value >> by) : value >> by;
}

/* Python's quotient, rounded down; the remainder has the divisor's sign. */
static int64_t divide_down(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

/* Does: dst = op(lhs, rhs) on 32-bit signed integers. Division rounds down and the remainder takes the sign of rhs, as in
 *   Python; comparisons give 1 or 0; the right shift keeps the sign; shifts by 32 and more shift everything out.
 * Rounding: none; results keep their low 32 bits.
 * Faults: VALUE for a division by zero or a negative shift.
 * Differs: the registers' arithmetic is the compiler's choice in hardware and not part of nki.isa. */
enum vtrn_status vtrn_exec_register_alu(struct vtrn_core *core, const struct vtrn_inst *inst)
{
    const struct vtrn_args_register_alu *arg = VTRN_ARGS(register_alu, inst);
    int64_t a = (int32_t)(uint32_t)exec_reg_value(core, &arg->lhs), b = (int32_t)(uint32_t)exec_reg_value(core, &arg->rhs);
    int64_t value = 0;
    int op = (int)arg->op.i;
    if ((op == VTRN_REGOP_DIVIDE || op == VTRN_REGOP_MODULO) && b == 0)
        return exec_fault(core, VTRN_FAULT_VALUE, "operand rhs: 0; %lld cannot be divided by it", (long long)a);
    if ((op == VTRN_REGOP_SHL || op == VTRN_REGOP_SHR) && b < 0)
        return exec_fault(core, VTRN_FAULT_VALUE, "operand rhs: %lld; a shift needs 0 or more", (long long)b);
    switch (op) {
    case VTRN_REGOP_ADD: value = a + b; break;
    case VTRN_REGOP_SUBTRACT: value = a - b; break;
    case VTRN_REGOP_MULTIPLY: value = a * b; break;
    case VTRN_REGOP_DIVIDE: value = divide_down(a, b); break;
    case VTRN_REGOP_MODULO: value = a - divide_down(a, b) * b; break;
    case VTRN_REGOP_MAXIMUM: value = a > b ? a : b; break;
    case VTRN_REGOP_MINIMUM: value = a < b ? a : b; break;
    case VTRN_REGOP_EQUAL: value = a == b; break;
    case VTRN_REGOP_NOT_EQUAL: value = a != b; break;
    case VTRN_REGOP_LESS: value = a < b; break;
    case VTRN_REGOP_LESS_EQUAL: value = a <= b; break;
    case VTRN_REGOP_AND: value = a & b; break;
    case VTRN_REGOP_OR: value = a | b; break;
    case VTRN_REGOP_XOR: value = a ^ b; break;
    case VTRN_REGOP_SHL: value = shift(a, b, true); break;
    case VTRN_REGOP_SHR: value = shift(a, b, false); break;
    default: return exec_fault(core, VTRN_FAULT_VALUE, "operand op: %d is no register operator", op);
    }
    exec_set_reg(core, (uint32_t)arg->dst.i, (int32_t)(uint32_t)(uint64_t)value);
    return VTRN_OK;
}

/* ---- loops ---- */
/* Position of the loop_end that closes the loop opened at core->pc; false: not in the list yet. */
static bool find_end(const struct vtrn_core *core, uint32_t *end_out)
{
    const struct vtrn_code *code = &core->prog->code[core->id];
    uint32_t low = 0, high = code->loops; /* in order of their begin */
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (code->loop[middle].begin < core->pc) low = middle + 1;
        else high = middle;
    }
    VTRN_ASSERT(low < code->loops && code->loop[low].begin == core->pc);
    *end_out = code->loop[low].end;
    return code->loop[low].end != UINT32_MAX;
}

/* Skips the body: the run goes on behind the loop's end. */
static enum vtrn_status skip_loop(struct vtrn_core *core)
{
    uint32_t end;
    if (!find_end(core, &end)) return VTRN_BLOCKED;
    core->pc = end;
    return VTRN_OK;
}

static enum vtrn_status enter_loop(struct vtrn_core *core, const struct exec_loop *loop)
{
    int most = (int)(sizeof core->loop / sizeof *core->loop);
    if (core->loops == most) return exec_fault(core, VTRN_FAULT_LOOP, "loops are nested more than %d deep", most);
    core->loop[core->loops] = *loop;
    core->loop[core->loops++].begin_pc = core->pc;
    return VTRN_OK;
}

/* Does: runs the instructions up to the matching loop_end once for each value of Python's range(lower, upper, step), the
 *   value in the index register. Bounds are read once, on entry.
 * Rounding: none; bounds are 32-bit signed integers.
 * Faults: LOOP for a step of 0 or loops nested more than 16 deep.
 * Differs: hardware takes positive steps only. */
enum vtrn_status vtrn_exec_loop_begin(struct vtrn_core *core, const struct vtrn_inst *inst)
{
    const struct vtrn_args_loop_begin *arg = VTRN_ARGS(loop_begin, inst);
    struct exec_loop loop = { .reg = (uint32_t)arg->index.i,
                              .value = exec_reg_value(core, &arg->lower),
                              .upper = exec_reg_value(core, &arg->upper),
                              .step = exec_reg_value(core, &arg->step) };
    if (loop.step == 0) return exec_fault(core, VTRN_FAULT_LOOP, "operand step: 0; the loop would never end");
    if (loop.step > 0 ? loop.value >= loop.upper : loop.value <= loop.upper) return skip_loop(core);
    VTRN_TRY(enter_loop(core, &loop));
    exec_set_reg(core, loop.reg, (int32_t)loop.value);
    return VTRN_OK;
}

/* Does: runs the instructions up to the matching loop_end as long as the condition register is not 0; looks at it before
 *   every turn.
 * Rounding: none.
 * Faults: LOOP when the condition is a constant other than 0 or loops are nested more than 16 deep.
 * Differs: none known. */
enum vtrn_status vtrn_exec_while_begin(struct vtrn_core *core, const struct vtrn_inst *inst)
{
    const struct vtrn_args_while_begin *arg = VTRN_ARGS(while_begin, inst);
    struct exec_loop loop = { .is_while = true, .reg = (uint32_t)arg->condition.i };
    if (exec_reg_value(core, &arg->condition) == 0) return skip_loop(core);
    if (arg->condition.kind != VTRN_V_REG)
        return exec_fault(core, VTRN_FAULT_LOOP, "operand condition: the constant %lld; the loop would never end",
                          (long long)arg->condition.i);
    return enter_loop(core, &loop);
}

/* Does: ends the body of the innermost loop: goes back for another turn or on behind the loop.
 * Rounding: none.
 * Faults: LOOP when no loop is open.
 * Differs: none known. */
enum vtrn_status vtrn_exec_loop_end(struct vtrn_core *core, const struct vtrn_inst *inst)
{
    (void)inst;
    if (core->loops == 0) return exec_fault(core, VTRN_FAULT_LOOP, "loop_end without a loop");
    struct exec_loop *loop = &core->loop[core->loops - 1];
    bool again;
    if (loop->is_while) {
        again = vtrn_core_register(core, loop->reg) != 0;
    } else {
        loop->value += loop->step;
        again = loop->step > 0 ? loop->value < loop->upper : loop->value > loop->upper;
        if (again) exec_set_reg(core, loop->reg, (int32_t)loop->value);
    }
    if (!again) {
        core->loops--;
        return VTRN_OK;
    }
    core->pc = loop->begin_pc; /* the run goes on behind the begin */
    return VTRN_OK;
}
