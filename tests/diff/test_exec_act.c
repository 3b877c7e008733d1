/* Instructions that apply a function or a selection and keep accumulators between them: activation, activation_reduce,
 * activate2, exponential, range_select, select_reduce. The model keeps its own accumulators, one per partition of the tensor,
 * through long random sequences of commands. Functions themselves are kern's tests: here vtrn_act_f32 is the definition. */
#include "exec_model.h"

#include <math.h>

enum { ROUNDS = 200 };

static const uint8_t plain[] = { VTRN_DT_F32,      VTRN_DT_F32,    VTRN_DT_BF16, VTRN_DT_BF16, VTRN_DT_F16,
                                 VTRN_DT_F8E4M3FN, VTRN_DT_F8E5M2, VTRN_DT_I32,  VTRN_DT_I16,  VTRN_DT_U8 };
static const uint8_t floats[] = { VTRN_DT_F32, VTRN_DT_F32, VTRN_DT_BF16, VTRN_DT_F16, VTRN_DT_F8E5M2 };
static const uint8_t funcs[] = { VTRN_ACT_COPY, VTRN_ACT_SQUARE, VTRN_ACT_SIGMOID, VTRN_ACT_RELU, VTRN_ACT_GELU,    VTRN_ACT_SILU,
                                 VTRN_ACT_TANH, VTRN_ACT_EXP,    VTRN_ACT_SIGN,    VTRN_ACT_ABS,  VTRN_ACT_SOFTPLUS };

static float act_lane[128], vec_lane[128]; /* the model's accumulators */

static int set_up(void **state)
{
    *state = rig_create("trn3", 1, 5);
    memset(act_lane, 0, sizeof act_lane);
    memset(vec_lane, 0, sizeof vec_lane);
    return 0;
}
static int tear_down(void **state)
{
    rig_destroy(*state);
    return 0;
}

static float identity(enum vtrn_alu op)
{
    return op == VTRN_ALU_MAXIMUM ? -INFINITY : op == VTRN_ALU_MINIMUM || op == VTRN_ALU_ABS_MIN ? INFINITY : 0;
}

/* What a command does before the elements; true: the elements are added. */
static bool begin_command(float *lane, int64_t parts, int cmd, enum vtrn_alu op, struct model *model, const struct vtrn_value *init)
{
    for (int64_t p = 0; p < parts; p++) {
        if (cmd == VTRN_REDUCE_CMD_RESET || cmd == VTRN_REDUCE_CMD_RESET_REDUCE) lane[p] = identity(op);
        if (cmd == VTRN_REDUCE_CMD_LOAD_REDUCE) lane[p] = model_scalar_get(model, init, p);
    }
    return cmd == VTRN_REDUCE_CMD_REDUCE || cmd == VTRN_REDUCE_CMD_RESET_REDUCE || cmd == VTRN_REDUCE_CMD_LOAD_REDUCE;
}

static void maybe_result(struct model *model, struct vtrn_value *res, int64_t parts)
{
    if (rig_below(3) == 0) return;
    rig_set_ap(res, model_target(model, model_space(1), MODEL_PICK(floats), parts, 1, NULL));
}

static void put_result(struct model *model, const struct vtrn_value *res, int64_t parts, const float *lane)
{
    for (int64_t p = 0; res->kind == VTRN_V_AP && p < parts; p++) model_put(model, &res->ap, p, 0, lane[p]);
}

/* ---------------------------------------------------------------- activation, activation_reduce */
static void test_activation(void **state)
{
    static const uint8_t commands[] = { VTRN_REDUCE_CMD_IDLE, VTRN_REDUCE_CMD_RESET, VTRN_REDUCE_CMD_REDUCE,
                                        VTRN_REDUCE_CMD_RESET_REDUCE };
    for (int round = 0; round < ROUNDS; round++) {
        struct model model;
        int64_t parts, elems;
        enum vtrn_act func = (enum vtrn_act)MODEL_PICK(funcs);
        int cmd = MODEL_PICK(commands);
        model_begin(&model, *state, VTRN_OP_activation, VTRN_ENGINE_SCALAR);
        model_shape(&parts, &elems, round % 8 == 0 ? 5000 : 600);
        struct vtrn_ap data = model_broadcast(&model, model_space(elems), MODEL_PICK(plain), parts, elems);
        struct vtrn_ap dst =
            model_target(&model, model_space(elems), rig_below(2) ? data.dtype : MODEL_PICK(plain), parts, elems, &data);
        struct vtrn_value *scale = RIG_ARG(&model.inst, activation, scale), *bias = RIG_ARG(&model.inst, activation, bias);
        struct vtrn_value *res = RIG_ARG(&model.inst, activation, reduce_res);
        if (rig_below(2)) model_scalar(&model, scale, parts, false);
        if (rig_below(2)) model_scalar(&model, bias, parts, false);
        maybe_result(&model, res, parts);
        if (res->kind == VTRN_V_AP || cmd != VTRN_REDUCE_CMD_IDLE)
            rig_set_int(RIG_ARG(&model.inst, activation, reduce_op), VTRN_ALU_ADD);
        rig_set_int(RIG_ARG(&model.inst, activation, reduce_cmd), cmd);
        rig_set_int(RIG_ARG(&model.inst, activation, op), func);
        rig_set_ap(RIG_ARG(&model.inst, activation, data), data);
        rig_set_ap(RIG_ARG(&model.inst, activation, dst), dst);
        float *lane = act_lane + data.part0;
        bool adds = begin_command(lane, parts, cmd, VTRN_ALU_ADD, &model, NULL);
        for (int64_t p = 0; p < parts; p++)
            for (int64_t i = 0; i < elems; i++) {
                float x = model_get(&model, &data, p, i) * model_scalar_get(&model, scale, p);
                if (bias->kind != VTRN_V_NONE) x += model_scalar_get(&model, bias, p);
                float y = vtrn_act_f32(func, x);
                model_put(&model, &dst, p, i, y);
                if (adds) lane[p] = model_alu(VTRN_ALU_ADD, lane[p], y);
            }
        put_result(&model, res, parts, lane);
        model_end(&model);
    }
}

static void test_activation_reduce(void **state)
{
    for (int round = 0; round < ROUNDS / 2; round++) {
        struct model model;
        int64_t parts, elems;
        enum vtrn_act func = (enum vtrn_act)MODEL_PICK(funcs);
        model_begin(&model, *state, VTRN_OP_activation_reduce, VTRN_ENGINE_SCALAR);
        model_shape(&parts, &elems, 600);
        struct vtrn_ap data = model_source(&model, model_space(elems), MODEL_PICK(plain), parts, elems);
        struct vtrn_ap dst = model_target(&model, model_space(elems), MODEL_PICK(plain), parts, elems, &data);
        struct vtrn_value *scale = RIG_ARG(&model.inst, activation_reduce, scale),
                          *bias = RIG_ARG(&model.inst, activation_reduce, bias);
        struct vtrn_value *res = RIG_ARG(&model.inst, activation_reduce, reduce_res);
        if (rig_below(2)) model_scalar(&model, scale, parts, false);
        if (rig_below(2)) model_scalar(&model, bias, parts, false);
        maybe_result(&model, res, parts);
        rig_set_int(RIG_ARG(&model.inst, activation_reduce, reduce_op), VTRN_ALU_ADD);
        rig_set_int(RIG_ARG(&model.inst, activation_reduce, op), func);
        rig_set_ap(RIG_ARG(&model.inst, activation_reduce, data), data);
        rig_set_ap(RIG_ARG(&model.inst, activation_reduce, dst), dst);
        float *lane = act_lane + data.part0;
        for (int64_t p = 0; p < parts; p++) {
            lane[p] = 0;
            for (int64_t i = 0; i < elems; i++) {
                float x = model_get(&model, &data, p, i) * model_scalar_get(&model, scale, p);
                if (bias->kind != VTRN_V_NONE) x += model_scalar_get(&model, bias, p);
                float y = vtrn_act_f32(func, x);
                model_put(&model, &dst, p, i, y);
                lane[p] = model_alu(VTRN_ALU_ADD, lane[p], y);
            }
        }
        put_result(&model, res, parts, lane);
        model_end(&model);
    }
}

/* reduce_res may lie on dst: it is written last. */
static void test_result_over_dst(void **state)
{
    struct model model;
    model_begin(&model, *state, VTRN_OP_activation, VTRN_ENGINE_SCALAR);
    struct vtrn_ap data = model_source(&model, VTRN_SBUF, VTRN_DT_F32, 128, 40);
    struct vtrn_ap dst = model_target(&model, VTRN_SBUF, VTRN_DT_F32, 128, 40, NULL), res = dst;
    res.ndim = 2;
    res.dim[1].count = 1;
    rig_set_int(RIG_ARG(&model.inst, activation, op), VTRN_ACT_COPY);
    rig_set_int(RIG_ARG(&model.inst, activation, reduce_op), VTRN_ALU_ADD);
    rig_set_int(RIG_ARG(&model.inst, activation, reduce_cmd), VTRN_REDUCE_CMD_RESET_REDUCE);
    rig_set_ap(RIG_ARG(&model.inst, activation, data), data);
    rig_set_ap(RIG_ARG(&model.inst, activation, dst), dst);
    rig_set_ap(RIG_ARG(&model.inst, activation, reduce_res), res);
    for (int64_t p = 0; p < 128; p++) {
        float sum = 0;
        for (int64_t i = 0; i < 40; i++) {
            model_put(&model, &dst, p, i, model_get(&model, &data, p, i));
            sum += model_get(&model, &data, p, i);
        }
        model_put(&model, &res, p, 0, sum);
    }
    model_end(&model);
}

/* ---------------------------------------------------------------- activate2 */
static void test_activate2(void **state)
{
    static const uint8_t pairs[][2] = { { VTRN_ALU_MULTIPLY, VTRN_ALU_ADD },    { VTRN_ALU_MULTIPLY, VTRN_ALU_SUBTRACT },
                                        { VTRN_ALU_MULTIPLY, VTRN_ALU_BYPASS }, { VTRN_ALU_ADD, VTRN_ALU_BYPASS },
                                        { VTRN_ALU_SUBTRACT, VTRN_ALU_BYPASS }, { VTRN_ALU_BYPASS, VTRN_ALU_BYPASS } };
    static const uint8_t commands[] = { VTRN_REDUCE_CMD_IDLE, VTRN_REDUCE_CMD_RESET, VTRN_REDUCE_CMD_REDUCE,
                                        VTRN_REDUCE_CMD_RESET_REDUCE };
    static const uint8_t reductions[] = { VTRN_ALU_ADD, VTRN_ALU_MAXIMUM, VTRN_ALU_MINIMUM, VTRN_ALU_ABS_MAX, VTRN_ALU_ABS_MIN };
    for (int round = 0; round < ROUNDS; round++) {
        struct model model;
        int64_t parts, elems;
        enum vtrn_act func = rig_below(4) ? (enum vtrn_act)MODEL_PICK(funcs) : VTRN_ACT_PRELU;
        const uint8_t *op = pairs[rig_below(6)];
        enum vtrn_alu reduce = (enum vtrn_alu)MODEL_PICK(reductions);
        bool reverse[2] = { op[0] != VTRN_ALU_BYPASS && rig_below(2), op[1] != VTRN_ALU_BYPASS && rig_below(2) };
        int cmd = MODEL_PICK(commands);
        model_begin(&model, *state, VTRN_OP_activate2, VTRN_ENGINE_SCALAR);
        model_shape(&parts, &elems, 600);
        struct vtrn_ap data = model_source(&model, model_space(elems), MODEL_PICK(plain), parts, elems);
        struct vtrn_ap dst = model_target(&model, model_space(elems), MODEL_PICK(plain), parts, elems, &data);
        struct vtrn_value *imm[2] = { RIG_ARG(&model.inst, activate2, imm0), RIG_ARG(&model.inst, activate2, imm1) };
        struct vtrn_value *slope = RIG_ARG(&model.inst, activate2, relu_param), *res = RIG_ARG(&model.inst, activate2, reduce_res);
        model_scalar(&model, imm[0], parts, false);
        rig_set_num(imm[1], (double)rig_below(9) / 4);
        if (rig_below(2)) model_scalar(&model, slope, parts, false);
        maybe_result(&model, res, parts);
        rig_set_int(RIG_ARG(&model.inst, activate2, op0), op[0]);
        rig_set_int(RIG_ARG(&model.inst, activate2, op1), op[1]);
        rig_set_int(RIG_ARG(&model.inst, activate2, reverse0), reverse[0]);
        rig_set_int(RIG_ARG(&model.inst, activate2, reverse1), reverse[1]);
        rig_set_int(RIG_ARG(&model.inst, activate2, reduce_op), reduce);
        rig_set_int(RIG_ARG(&model.inst, activate2, reduce_cmd), cmd);
        rig_set_int(RIG_ARG(&model.inst, activate2, op), func);
        rig_set_ap(RIG_ARG(&model.inst, activate2, data), data);
        rig_set_ap(RIG_ARG(&model.inst, activate2, dst), dst);
        float *lane = act_lane + data.part0;
        bool adds = begin_command(lane, parts, cmd, reduce, &model, NULL);
        for (int64_t p = 0; p < parts; p++)
            for (int64_t i = 0; i < elems; i++) {
                float x = model_get(&model, &data, p, i), y;
                for (int k = 0; k < 2; k++)
                    if (op[k] != VTRN_ALU_BYPASS)
                        x = model_alu_swapped((enum vtrn_alu)op[k], reverse[k], x, model_scalar_get(&model, imm[k], p));
                y = func == VTRN_ACT_PRELU ? (x < 0 ? model_scalar_get(&model, slope, p) * x : x) : vtrn_act_f32(func, x);
                model_put(&model, &dst, p, i, y);
                if (adds) lane[p] = model_alu(reduce, lane[p], y);
            }
        put_result(&model, res, parts, lane);
        model_end(&model);
    }
}

/* ---------------------------------------------------------------- exponential */
static void test_exponential(void **state)
{
    static const uint8_t commands[] = { VTRN_REDUCE_CMD_IDLE, VTRN_REDUCE_CMD_REDUCE, VTRN_REDUCE_CMD_RESET_REDUCE,
                                        VTRN_REDUCE_CMD_LOAD_REDUCE };
    for (int round = 0; round < ROUNDS / 2; round++) {
        struct model model;
        int64_t parts, elems;
        int cmd = MODEL_PICK(commands);
        model_begin(&model, *state, VTRN_OP_exponential, VTRN_ENGINE_VECTOR);
        model_shape(&parts, &elems, 600);
        struct vtrn_ap src = model_source(&model, model_space(elems), MODEL_PICK(floats), parts, elems);
        struct vtrn_ap dst = model_target(&model, model_space(elems), MODEL_PICK(floats), parts, elems, &src);
        struct vtrn_value *most = RIG_ARG(&model.inst, exponential, max_value), *res = RIG_ARG(&model.inst, exponential, reduce_res);
        struct vtrn_value *init = RIG_ARG(&model.inst, exponential, reduce_init);
        model_scalar(&model, most, parts, false);
        if (cmd == VTRN_REDUCE_CMD_LOAD_REDUCE) model_scalar(&model, init, parts, false);
        maybe_result(&model, res, parts);
        rig_set_int(RIG_ARG(&model.inst, exponential, reduce_cmd), cmd);
        rig_set_ap(RIG_ARG(&model.inst, exponential, src), src);
        rig_set_ap(RIG_ARG(&model.inst, exponential, dst), dst);
        float *lane = vec_lane + src.part0;
        bool adds = begin_command(lane, parts, cmd, VTRN_ALU_ADD, &model, init);
        for (int64_t p = 0; p < parts; p++)
            for (int64_t i = 0; i < elems; i++) {
                float y = vtrn_act_f32(VTRN_ACT_EXP, model_get(&model, &src, p, i) - model_scalar_get(&model, most, p));
                model_put(&model, &dst, p, i, y);
                if (adds) lane[p] = model_alu(VTRN_ALU_ADD, lane[p], y);
            }
        put_result(&model, res, parts, lane);
        model_end(&model);
    }
}

/* ---------------------------------------------------------------- selections */
static void test_range_select(void **state)
{
    static const uint8_t compare[] = { VTRN_ALU_EQUAL, VTRN_ALU_GREATER_EQUAL, VTRN_ALU_GREATER, VTRN_ALU_LESS_EQUAL, VTRN_ALU_LESS };
    static const uint8_t commands[] = { VTRN_REDUCE_CMD_IDLE, VTRN_REDUCE_CMD_RESET, VTRN_REDUCE_CMD_REDUCE,
                                        VTRN_REDUCE_CMD_RESET_REDUCE };
    const double lowest = -3.4028234663852886e38;
    for (int round = 0; round < ROUNDS; round++) {
        struct model model;
        int64_t parts, elems;
        enum vtrn_alu op[2] = { (enum vtrn_alu)MODEL_PICK(compare), (enum vtrn_alu)MODEL_PICK(compare) };
        int cmd = MODEL_PICK(commands);
        float start = (float)rig_below(300);
        model_begin(&model, *state, VTRN_OP_range_select, VTRN_ENGINE_VECTOR);
        model_shape(&parts, &elems, 600);
        struct vtrn_ap src = model_source(&model, model_space(elems), MODEL_PICK(floats), parts, elems);
        struct vtrn_ap dst = model_target(&model, model_space(elems), MODEL_PICK(floats), parts, elems, &src);
        struct vtrn_ap bound[2] = { model_source(&model, VTRN_SBUF, VTRN_DT_F32, parts, 1),
                                    model_source(&model, VTRN_SBUF, VTRN_DT_F32, parts, 1) };
        struct vtrn_value *res = RIG_ARG(&model.inst, range_select, reduce_res);
        maybe_result(&model, res, parts);
        rig_set_int(RIG_ARG(&model.inst, range_select, comp_op0), op[0]);
        rig_set_int(RIG_ARG(&model.inst, range_select, comp_op1), op[1]);
        rig_set_int(RIG_ARG(&model.inst, range_select, reduce_op), VTRN_ALU_MAXIMUM);
        rig_set_int(RIG_ARG(&model.inst, range_select, reduce_cmd), cmd);
        rig_set_num(RIG_ARG(&model.inst, range_select, range_start), start);
        rig_set_ap(RIG_ARG(&model.inst, range_select, bound0), bound[0]);
        rig_set_ap(RIG_ARG(&model.inst, range_select, bound1), bound[1]);
        rig_set_ap(RIG_ARG(&model.inst, range_select, on_true_tile), src);
        rig_set_ap(RIG_ARG(&model.inst, range_select, dst), dst);
        float *lane = vec_lane + src.part0;
        bool adds = begin_command(lane, parts, cmd, VTRN_ALU_MAXIMUM, &model, NULL);
        for (int64_t p = 0; p < parts; p++)
            for (int64_t i = 0; i < elems; i++) {
                float index = start + (float)i, y = (float)lowest;
                if (model_alu(op[0], index, model_get(&model, &bound[0], p, 0)) != 0 &&
                    model_alu(op[1], index, model_get(&model, &bound[1], p, 0)) != 0)
                    y = model_get(&model, &src, p, i);
                model_put(&model, &dst, p, i, y);
                if (adds) lane[p] = model_alu(VTRN_ALU_MAXIMUM, lane[p], y);
            }
        put_result(&model, res, parts, lane);
        model_end(&model);
    }
}

static void test_select_reduce(void **state)
{
    static const uint8_t commands[] = { VTRN_REDUCE_CMD_IDLE, VTRN_REDUCE_CMD_RESET, VTRN_REDUCE_CMD_REDUCE,
                                        VTRN_REDUCE_CMD_RESET_REDUCE };
    static const uint8_t predicates[] = { VTRN_DT_I8, VTRN_DT_U8, VTRN_DT_I16, VTRN_DT_U16 };
    for (int round = 0; round < ROUNDS; round++) {
        struct model model;
        int64_t parts, elems;
        int cmd = MODEL_PICK(commands);
        bool reverse = rig_below(2);
        model_begin(&model, *state, VTRN_OP_select_reduce, VTRN_ENGINE_VECTOR);
        model_shape(&parts, &elems, 600);
        struct vtrn_ap src = model_source(&model, model_space(elems), MODEL_PICK(floats), parts, elems);
        struct vtrn_ap predicate = model_source(&model, VTRN_SBUF, MODEL_PICK(predicates), parts, elems);
        struct vtrn_ap dst =
            model_target(&model, model_space(elems), MODEL_PICK(plain), parts, elems, rig_below(2) ? &src : &predicate);
        struct vtrn_value *res = RIG_ARG(&model.inst, select_reduce, reduce_res),
                          *other = RIG_ARG(&model.inst, select_reduce, on_false);
        model_scalar(&model, other, parts, false);
        maybe_result(&model, res, parts);
        rig_set_int(RIG_ARG(&model.inst, select_reduce, reduce_op), VTRN_ALU_MAXIMUM);
        rig_set_int(RIG_ARG(&model.inst, select_reduce, reduce_cmd), cmd);
        rig_set_int(RIG_ARG(&model.inst, select_reduce, reverse_pred), reverse);
        rig_set_ap(RIG_ARG(&model.inst, select_reduce, predicate), predicate);
        rig_set_ap(RIG_ARG(&model.inst, select_reduce, on_true), src);
        rig_set_ap(RIG_ARG(&model.inst, select_reduce, dst), dst);
        float *lane = vec_lane + src.part0;
        bool adds = begin_command(lane, parts, cmd, VTRN_ALU_MAXIMUM, &model, NULL);
        for (int64_t p = 0; p < parts; p++)
            for (int64_t i = 0; i < elems; i++) {
                bool take = (model_get(&model, &predicate, p, i) != 0) != reverse;
                float y = take ? model_get(&model, &src, p, i) : model_scalar_get(&model, other, p);
                model_put(&model, &dst, p, i, y);
                if (adds) lane[p] = model_alu(VTRN_ALU_MAXIMUM, lane[p], y);
            }
        put_result(&model, res, parts, lane);
        model_end(&model);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_activation, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_activation_reduce, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_result_over_dst, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_activate2, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_exponential, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_range_select, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_select_reduce, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
