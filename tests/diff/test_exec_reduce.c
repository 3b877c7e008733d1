/* Reductions and scans against their definitions: strictly in order of the elements, in fp32. Random shapes, dtypes, axes,
 * strides and overlapping destinations. */
#include "exec_model.h"

#include <math.h>

enum { ROUNDS = 200 };

static const uint8_t plain[] = { VTRN_DT_F32,      VTRN_DT_F32, VTRN_DT_BF16, VTRN_DT_BF16, VTRN_DT_F16,
                                 VTRN_DT_F8E4M3FN, VTRN_DT_I32, VTRN_DT_I16,  VTRN_DT_U8 };
static const uint8_t narrow[] = { VTRN_DT_F32, VTRN_DT_BF16, VTRN_DT_F16, VTRN_DT_F8E5M2, VTRN_DT_I16, VTRN_DT_U8 };
static const uint8_t arith[] = { VTRN_ALU_ADD,     VTRN_ALU_SUBTRACT, VTRN_ALU_MULTIPLY,   VTRN_ALU_MAXIMUM,
                                 VTRN_ALU_MINIMUM, VTRN_ALU_GREATER,  VTRN_ALU_LOGICAL_AND };

static float vec_lane[128];

static int set_up(void **state)
{
    *state = rig_create("trn3", 1, 5);
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
    switch (op) {
    case VTRN_ALU_MULTIPLY:
    case VTRN_ALU_LOGICAL_AND: return 1;
    case VTRN_ALU_MAXIMUM: return -INFINITY;
    case VTRN_ALU_MINIMUM:
    case VTRN_ALU_ABS_MIN: return INFINITY;
    default: return 0;
    }
}

/* ---------------------------------------------------------------- tensor_reduce */
/* A pattern of [parts, d1, d2, d3], contiguous or with the dims in another order of strides. */
static struct vtrn_ap source_of(struct model *model, uint8_t dtype, int64_t parts, const int64_t *dim, int dims)
{
    int64_t stride = 1, size = 1, pad = rig_below(3);
    int order[3] = { 2, 1, 0 };
    struct vtrn_ap ap = { .dtype = dtype, .ndim = (uint8_t)(dims + 1) };
    for (int d = 0; d < dims; d++) size *= dim[d];
    ap.tensor = rig_tensor2(model->rig, 0, rig_below(4) ? VTRN_SBUF : VTRN_PSUM, dtype, parts, size + pad);
    free(rig_fill(model->rig, 0, ap.tensor));
    ap.dim[0].count = parts;
    ap.dim[0].stride = 1;
    ap.offset = pad ? rig_below(pad + 1) : 0;
    if (rig_below(3) == 0) order[0] = 0, order[2] = 2;
    for (int k = 0; k < 3; k++) {
        int d = order[k];
        if (d >= dims) continue;
        ap.dim[d + 1].count = dim[d];
        ap.dim[d + 1].stride = stride;
        stride *= dim[d];
    }
    return ap;
}

static void test_tensor_reduce(void **state)
{
    static const uint8_t ops[] = { VTRN_ALU_ADD,         VTRN_ALU_ADD,     VTRN_ALU_SUBTRACT,    VTRN_ALU_MULTIPLY,
                                   VTRN_ALU_MAXIMUM,     VTRN_ALU_MINIMUM, VTRN_ALU_LOGICAL_AND, VTRN_ALU_LOGICAL_OR,
                                   VTRN_ALU_LOGICAL_XOR, VTRN_ALU_ABS_MAX, VTRN_ALU_ABS_MIN };
    static const int64_t sizes[] = { 1, 1, 2, 3, 5, 8, 16, 40, 127, 128, 130, 300 };
    for (int round = 0; round < 2 * ROUNDS; round++) {
        struct model model;
        enum vtrn_alu op = (enum vtrn_alu)MODEL_PICK(ops);
        int64_t parts = rig_below(2) ? 128 : 1 + rig_below(128), dim[3] = { 1, 1, 1 }, kept = 1, run = 1, axis[3];
        int dims = 1 + (int)rig_below(3), reduced = 1 + (int)rig_below(dims);
        bool negate = rig_below(4) == 0;
        do
            for (int d = 0; d < dims; d++) dim[d] = sizes[rig_below(12)];
        while (dim[0] * (dims > 1 ? dim[1] : 1) * (dims > 2 ? dim[2] : 1) > 1500);
        for (int d = 0; d < dims - reduced; d++) kept *= dim[d];
        for (int d = dims - reduced; d < dims; d++) run *= dim[d];
        for (int k = 0; k < reduced; k++) axis[k] = dims - reduced + 1 + k;
        model_begin(&model, *state, VTRN_OP_tensor_reduce, VTRN_ENGINE_VECTOR);
        struct vtrn_ap data = source_of(&model, MODEL_PICK(plain), parts, dim, dims);
        model_read(&model, &data, 0, 0);
        struct vtrn_ap dst = model_target(&model, model_space(kept), MODEL_PICK(plain), parts, kept, NULL);
        rig_set_ap(RIG_ARG(&model.inst, tensor_reduce, data), data);
        rig_set_ap(RIG_ARG(&model.inst, tensor_reduce, dst), dst);
        rig_set_int(RIG_ARG(&model.inst, tensor_reduce, op), op);
        rig_set_int(RIG_ARG(&model.inst, tensor_reduce, negate), negate);
        rig_set_ints(&model.inst, RIG_ARG(&model.inst, tensor_reduce, axis), reduced, axis);
        for (int64_t p = 0; p < parts; p++)
            for (int64_t j = 0; j < kept; j++) {
                float acc = op == VTRN_ALU_SUBTRACT ? model_get(&model, &data, p, j * run) : identity(op);
                for (int64_t i = op == VTRN_ALU_SUBTRACT; i < run; i++)
                    acc = model_alu(op, acc, model_get(&model, &data, p, j * run + i));
                model_put(&model, &dst, p, j, negate ? -acc : acc);
            }
        model_end(&model);
    }
}

/* Into the first columns of its own data, as kernels do to save a tile. */
static void test_reduce_in_place(void **state)
{
    for (int round = 0; round < 30; round++) {
        struct model model;
        int64_t parts = 1 + rig_below(128), rows = 1 + rig_below(20), run = 1 + rig_below(200);
        int64_t axis = 2;
        model_begin(&model, *state, VTRN_OP_tensor_reduce, VTRN_ENGINE_VECTOR);
        int64_t dim[2] = { rows, run };
        struct vtrn_ap data = source_of(&model, VTRN_DT_F32, parts, dim, 2), dst = data;
        dst.ndim = 2;
        dst.dim[1].count = rows;
        dst.dim[1].stride = 1;
        rig_set_ap(RIG_ARG(&model.inst, tensor_reduce, data), data);
        rig_set_ap(RIG_ARG(&model.inst, tensor_reduce, dst), dst);
        rig_set_int(RIG_ARG(&model.inst, tensor_reduce, op), VTRN_ALU_ADD);
        rig_set_ints(&model.inst, RIG_ARG(&model.inst, tensor_reduce, axis), 1, &axis);
        for (int64_t p = 0; p < parts; p++)
            for (int64_t j = 0; j < rows; j++) {
                float acc = 0;
                for (int64_t i = 0; i < run; i++) acc += model_get(&model, &data, p, j * run + i);
                model_put(&model, &dst, p, j, acc);
            }
        model_end(&model);
    }
}

static void test_reduce_bits(void **state)
{
    static const uint8_t ops[] = { VTRN_ALU_BITWISE_AND, VTRN_ALU_BITWISE_OR, VTRN_ALU_BITWISE_XOR };
    static const uint8_t ints[] = { VTRN_DT_I32, VTRN_DT_U32, VTRN_DT_I16, VTRN_DT_U16, VTRN_DT_I8, VTRN_DT_U8 };
    for (int round = 0; round < 60; round++) {
        struct model model;
        enum vtrn_alu op = (enum vtrn_alu)MODEL_PICK(ops);
        uint8_t dtype = MODEL_PICK(ints);
        int64_t parts = 1 + rig_below(128), dim[2] = { 1 + rig_below(6), 1 + rig_below(200) }, axis = 2;
        size_t size = vtrn_dtypes[dtype].size_bytes;
        model_begin(&model, *state, VTRN_OP_tensor_reduce, VTRN_ENGINE_VECTOR);
        struct vtrn_ap data = source_of(&model, dtype, parts, dim, 2);
        model_read(&model, &data, 0, 0);
        struct vtrn_ap dst = model_target(&model, VTRN_SBUF, dtype, parts, dim[0], NULL);
        rig_set_ap(RIG_ARG(&model.inst, tensor_reduce, data), data);
        rig_set_ap(RIG_ARG(&model.inst, tensor_reduce, dst), dst);
        rig_set_int(RIG_ARG(&model.inst, tensor_reduce, op), op);
        rig_set_ints(&model.inst, RIG_ARG(&model.inst, tensor_reduce, axis), 1, &axis);
        for (int64_t p = 0; p < parts; p++)
            for (int64_t j = 0; j < dim[0]; j++) {
                uint32_t acc = op == VTRN_ALU_BITWISE_AND ? UINT32_MAX : 0, word = 0;
                for (int64_t i = 0; i < dim[1]; i++) {
                    memcpy(&word, model_read(&model, &data, p, j * dim[1] + i), size);
                    acc = op == VTRN_ALU_BITWISE_AND ? acc & word : op == VTRN_ALU_BITWISE_OR ? acc | word : acc ^ word;
                }
                memcpy(model_write(&model, &dst, p, j), &acc, size);
            }
        model_end(&model);
    }
}

/* ---------------------------------------------------------------- with accumulators */
static bool begin_command(float *lane, int64_t parts, int cmd, enum vtrn_alu op, struct model *model, const struct vtrn_value *init)
{
    for (int64_t p = 0; p < parts; p++) {
        if (cmd == VTRN_REDUCE_CMD_RESET_REDUCE) lane[p] = identity(op);
        if (cmd == VTRN_REDUCE_CMD_LOAD_REDUCE) lane[p] = model_scalar_get(model, init, p);
    }
    return true;
}
static const uint8_t commands[] = { VTRN_REDUCE_CMD_REDUCE, VTRN_REDUCE_CMD_RESET_REDUCE, VTRN_REDUCE_CMD_LOAD_REDUCE };

static void test_tensor_scalar_reduce(void **state)
{
    static const uint8_t ops[] = { VTRN_ALU_ADD, VTRN_ALU_MULTIPLY, VTRN_ALU_MAXIMUM, VTRN_ALU_MINIMUM };
    for (int round = 0; round < ROUNDS; round++) {
        struct model model;
        int64_t parts, elems;
        enum vtrn_alu op0 = (enum vtrn_alu)MODEL_PICK(arith), reduce = (enum vtrn_alu)MODEL_PICK(ops);
        bool reverse = rig_below(3) == 0, negate = rig_below(3) == 0;
        int cmd = MODEL_PICK(commands);
        model_begin(&model, *state, VTRN_OP_tensor_scalar_reduce, VTRN_ENGINE_VECTOR);
        model_shape(&parts, &elems, 600);
        struct vtrn_ap data = model_source(&model, model_space(elems), MODEL_PICK(plain), parts, elems);
        struct vtrn_ap dst = model_target(&model, model_space(elems), MODEL_PICK(plain), parts, elems, &data);
        struct vtrn_value *scalar = RIG_ARG(&model.inst, tensor_scalar_reduce, operand0);
        struct vtrn_value *init = RIG_ARG(&model.inst, tensor_scalar_reduce, reduce_init),
                          *res = RIG_ARG(&model.inst, tensor_scalar_reduce, reduce_res);
        model_scalar(&model, scalar, parts, false);
        if (cmd == VTRN_REDUCE_CMD_LOAD_REDUCE) model_scalar(&model, init, parts, false);
        if (rig_below(4)) rig_set_ap(res, model_target(&model, VTRN_SBUF, VTRN_DT_F32, parts, 1, NULL));
        rig_set_ap(RIG_ARG(&model.inst, tensor_scalar_reduce, data), data);
        rig_set_ap(RIG_ARG(&model.inst, tensor_scalar_reduce, dst), dst);
        rig_set_int(RIG_ARG(&model.inst, tensor_scalar_reduce, op0), op0);
        rig_set_int(RIG_ARG(&model.inst, tensor_scalar_reduce, reverse0), reverse);
        rig_set_int(RIG_ARG(&model.inst, tensor_scalar_reduce, reduce_op), reduce);
        rig_set_int(RIG_ARG(&model.inst, tensor_scalar_reduce, reduce_cmd), cmd);
        rig_set_int(RIG_ARG(&model.inst, tensor_scalar_reduce, reduce_res_negate), negate);
        float *lane = vec_lane + data.part0;
        begin_command(lane, parts, cmd, reduce, &model, init);
        for (int64_t p = 0; p < parts; p++) {
            for (int64_t i = 0; i < elems; i++) {
                float y = model_alu_swapped(op0, reverse, model_get(&model, &data, p, i), model_scalar_get(&model, scalar, p));
                model_put(&model, &dst, p, i, y);
                lane[p] = model_alu(reduce, lane[p], y);
            }
            if (res->kind == VTRN_V_AP) model_put(&model, &res->ap, p, 0, negate ? -lane[p] : lane[p]);
        }
        model_end(&model);
    }
}

static void test_cumulative(void **state)
{
    static const uint8_t ops[] = { VTRN_ALU_ADD, VTRN_ALU_SUBTRACT, VTRN_ALU_MULTIPLY, VTRN_ALU_MAXIMUM, VTRN_ALU_MINIMUM };
    for (int round = 0; round < ROUNDS; round++) {
        struct model model;
        int64_t parts, elems;
        enum vtrn_alu op0 = (enum vtrn_alu)MODEL_PICK(arith), op1 = (enum vtrn_alu)MODEL_PICK(ops);
        int cmd = MODEL_PICK(commands);
        model_begin(&model, *state, VTRN_OP_tensor_scalar_cumulative, VTRN_ENGINE_VECTOR);
        model_shape(&parts, &elems, 600);
        struct vtrn_ap src = model_source(&model, model_space(elems), MODEL_PICK(narrow), parts, elems);
        struct vtrn_ap dst = model_target(&model, model_space(elems), MODEL_PICK(narrow), parts, elems, &src);
        struct vtrn_value *scalar = RIG_ARG(&model.inst, tensor_scalar_cumulative, imm0),
                          *init = RIG_ARG(&model.inst, tensor_scalar_cumulative, imm1);
        model_scalar(&model, scalar, parts, false);
        if (cmd == VTRN_REDUCE_CMD_LOAD_REDUCE) model_scalar(&model, init, parts, false);
        rig_set_ap(RIG_ARG(&model.inst, tensor_scalar_cumulative, src), src);
        rig_set_ap(RIG_ARG(&model.inst, tensor_scalar_cumulative, dst), dst);
        rig_set_int(RIG_ARG(&model.inst, tensor_scalar_cumulative, op0), op0);
        rig_set_int(RIG_ARG(&model.inst, tensor_scalar_cumulative, op1), op1);
        rig_set_int(RIG_ARG(&model.inst, tensor_scalar_cumulative, reduce_cmd), cmd);
        float *lane = vec_lane + src.part0;
        begin_command(lane, parts, cmd, op1, &model, init);
        for (int64_t p = 0; p < parts; p++)
            for (int64_t i = 0; i < elems; i++) {
                lane[p] = model_alu(op1, model_alu(op0, model_get(&model, &src, p, i), model_scalar_get(&model, scalar, p)), lane[p]);
                model_put(&model, &dst, p, i, lane[p]);
            }
        model_end(&model);
    }
}

static void test_scan(void **state)
{
    for (int round = 0; round < ROUNDS; round++) {
        struct model model;
        int64_t parts, elems;
        enum vtrn_alu op0 = (enum vtrn_alu)MODEL_PICK(arith), op1 = (enum vtrn_alu)MODEL_PICK(arith);
        bool reverse[2] = { rig_below(3) == 0, rig_below(3) == 0 };
        if (rig_below(2)) op0 = VTRN_ALU_MULTIPLY, op1 = VTRN_ALU_ADD;
        model_begin(&model, *state, VTRN_OP_tensor_tensor_scan, VTRN_ENGINE_VECTOR);
        model_shape(&parts, &elems, round % 8 == 0 ? 5000 : 600);
        struct vtrn_ap a = model_source(&model, model_space(elems), MODEL_PICK(plain), parts, elems);
        struct vtrn_ap b = model_broadcast(&model, VTRN_SBUF, MODEL_PICK(plain), parts, elems);
        struct vtrn_ap dst = model_target(&model, model_space(elems), MODEL_PICK(plain), parts, elems, rig_below(2) ? &a : &b);
        struct vtrn_value *initial = RIG_ARG(&model.inst, tensor_tensor_scan, initial);
        model_scalar(&model, initial, parts, false);
        rig_set_ap(RIG_ARG(&model.inst, tensor_tensor_scan, data0), a);
        rig_set_ap(RIG_ARG(&model.inst, tensor_tensor_scan, data1), b);
        rig_set_ap(RIG_ARG(&model.inst, tensor_tensor_scan, dst), dst);
        rig_set_int(RIG_ARG(&model.inst, tensor_tensor_scan, op0), op0);
        rig_set_int(RIG_ARG(&model.inst, tensor_tensor_scan, op1), op1);
        rig_set_int(RIG_ARG(&model.inst, tensor_tensor_scan, reverse0), reverse[0]);
        rig_set_int(RIG_ARG(&model.inst, tensor_tensor_scan, reverse1), reverse[1]);
        for (int64_t p = 0; p < parts; p++) {
            float r = model_scalar_get(&model, initial, p);
            for (int64_t i = 0; i < elems; i++) {
                r = model_alu_swapped(op0, reverse[0], model_get(&model, &a, p, i), r);
                r = model_alu_swapped(op1, reverse[1], r, model_get(&model, &b, p, i));
                model_put(&model, &dst, p, i, r);
            }
        }
        model_end(&model);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_tensor_reduce, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_reduce_in_place, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_reduce_bits, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_tensor_scalar_reduce, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_cumulative, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_scan, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
