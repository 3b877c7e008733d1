/* The accumulators that instructions of the scalar and the vector engine keep between each other: reset, load, read out.
 * Sources: nki.isa.activation, tensor_scalar_reduce, exponential, select_reduce ("Accumulator behavior").
 * Knows lanes and operators, not what is reduced. */
#include "exec/acc_int.h"

#include <math.h>

float exec_identity(enum vtrn_alu op)
{
    switch (op) {
    case VTRN_ALU_MULTIPLY:
    case VTRN_ALU_LOGICAL_AND: return 1.0f;
    case VTRN_ALU_MAXIMUM: return -INFINITY;
    case VTRN_ALU_MINIMUM:
    case VTRN_ALU_ABS_MIN: return INFINITY;
    default: return 0.0f; /* add, subtract, abs_max, or, xor */
    }
}

void exec_acc_begin(struct vtrn_core *core, float *lanes, const struct vtrn_ap *data, int64_t parts, const struct vtrn_value *cmd,
                    enum vtrn_alu op, const struct exec_scalars *init, struct exec_acc *out)
{
    int command = cmd->kind == VTRN_V_INT ? (int)cmd->i : VTRN_REDUCE_CMD_IDLE;
    int lane = core->prog->tensor[data->tensor].addr_partition + data->part0;

    VTRN_ASSERT(lane + parts <= EXEC_LANES);
    out->lane = lanes + lane;
    out->op = op == VTRN_ALU_NONE ? VTRN_ALU_ADD : op;
    out->reduces =
        command == VTRN_REDUCE_CMD_REDUCE || command == VTRN_REDUCE_CMD_RESET_REDUCE || command == VTRN_REDUCE_CMD_LOAD_REDUCE;
    if (command == VTRN_REDUCE_CMD_RESET || command == VTRN_REDUCE_CMD_RESET_REDUCE)
        for (int64_t p = 0; p < parts; p++) out->lane[p] = exec_identity(out->op);
    if (command == VTRN_REDUCE_CMD_LOAD_REDUCE)
        for (int64_t p = 0; p < parts; p++) out->lane[p] = init->value[init->same ? 0 : p];
}

enum vtrn_status exec_acc_end(struct vtrn_core *core, const struct exec_acc *acc, const struct vtrn_value *res, int64_t parts,
                              bool negate)
{
    struct exec_view view;
    float values[EXEC_LANES];

    if (res->kind != VTRN_V_AP) return VTRN_OK;
    VTRN_TRY(exec_resolve(core, &res->ap, VTRN_WRITE, &view));
    for (int64_t p = 0; p < parts; p++) values[p] = negate ? -acc->lane[p] : acc->lane[p];
    exec_store_f32(core, &view, 0, parts, 0, 1, values);
    return VTRN_OK;
}
