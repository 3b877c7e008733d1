/* Elementwise bodies against their definitions: arithmetic with tensors and scalars, integers, bits, copies, fills,
 * predication, shuffles, dropout. Random shapes, dtypes, strides (0 included), spaces, and destinations that share bytes
 * with a source. */
#include "exec_model.h"

#include <math.h>

enum { ROUNDS = 250 };

static const uint8_t plain[] = { VTRN_DT_F32,  VTRN_DT_F32,    VTRN_DT_F32,      VTRN_DT_BF16,   VTRN_DT_BF16, VTRN_DT_F16,
                                 VTRN_DT_TF32, VTRN_DT_F8E4M3, VTRN_DT_F8E4M3FN, VTRN_DT_F8E5M2, VTRN_DT_I32,  VTRN_DT_U32,
                                 VTRN_DT_I16,  VTRN_DT_U16,    VTRN_DT_I8,       VTRN_DT_U8,     VTRN_DT_BOOL };
static const uint8_t arith[] = { VTRN_ALU_ADD,        VTRN_ALU_SUBTRACT,    VTRN_ALU_MULTIPLY,  VTRN_ALU_MAXIMUM,
                                 VTRN_ALU_MINIMUM,    VTRN_ALU_EQUAL,       VTRN_ALU_NOT_EQUAL, VTRN_ALU_GREATER_EQUAL,
                                 VTRN_ALU_GREATER,    VTRN_ALU_LESS_EQUAL,  VTRN_ALU_LESS,      VTRN_ALU_LOGICAL_AND,
                                 VTRN_ALU_LOGICAL_OR, VTRN_ALU_LOGICAL_XOR, VTRN_ALU_ABS_MAX,   VTRN_ALU_ABS_MIN,
                                 VTRN_ALU_BYPASS };
static const uint8_t unary[] = { VTRN_ALU_ABS, VTRN_ALU_SQUARE, VTRN_ALU_RELU, VTRN_ALU_RECIPROCAL };
static const uint8_t bits[] = { VTRN_ALU_BITWISE_AND, VTRN_ALU_BITWISE_OR, VTRN_ALU_BITWISE_XOR, VTRN_ALU_LEFT_SHIFT,
                                VTRN_ALU_RIGHT_SHIFT };
static const uint8_t ints[] = { VTRN_DT_I32, VTRN_DT_U32, VTRN_DT_I16, VTRN_DT_U16, VTRN_DT_I8, VTRN_DT_U8 };
static const uint8_t words[] = { VTRN_DT_I32, VTRN_DT_U32 };

static int set_up(void **state)
{
    *state = rig_create("trn3", 1, 5);
    return 0;
}
static int tear_down(void **state)
{
    rig_destroy(*state);
    return 0;
}

/* ---------------------------------------------------------------- tensor_tensor */
static void test_tensor_tensor(void **state)
{
    for (int round = 0; round < ROUNDS; round++) {
        struct model model;
        int64_t parts, elems;
        enum vtrn_alu op = (enum vtrn_alu)MODEL_PICK(arith);
        model_begin(&model, *state, VTRN_OP_tensor_tensor, VTRN_ENGINE_VECTOR);
        model_shape(&parts, &elems, round % 8 == 0 ? 5000 : 600);
        struct vtrn_ap a = model_broadcast(&model, model_space(elems), MODEL_PICK(plain), parts, elems);
        struct vtrn_ap b = rig_below(8) == 0 ? a : model_broadcast(&model, VTRN_SBUF, MODEL_PICK(plain), parts, elems);
        if (b.tensor == a.tensor && (*(struct rig **)state)->prog->tensor[a.tensor].space == VTRN_PSUM)
            b = model_source(&model, VTRN_SBUF, VTRN_DT_F32, parts, elems);
        struct vtrn_ap dst = model_target(&model, model_space(elems), rig_below(2) ? a.dtype : MODEL_PICK(plain), parts, elems,
                                          rig_below(2) ? &a : &b);
        rig_set_ap(RIG_ARG(&model.inst, tensor_tensor, data1), a);
        rig_set_ap(RIG_ARG(&model.inst, tensor_tensor, data2), b);
        rig_set_ap(RIG_ARG(&model.inst, tensor_tensor, dst), dst);
        rig_set_int(RIG_ARG(&model.inst, tensor_tensor, op), op);
        for (int64_t p = 0; p < parts; p++)
            for (int64_t i = 0; i < elems; i++)
                model_put(&model, &dst, p, i, model_alu(op, model_get(&model, &a, p, i), model_get(&model, &b, p, i)));
        model_end(&model);
    }
}

/* GpSimd: 32 bits that wrap around. */
static uint32_t word_alu(enum vtrn_alu op, bool is_unsigned, uint32_t a, uint32_t b)
{
    int64_t x = is_unsigned ? (int64_t)a : (int32_t)a, y = is_unsigned ? (int64_t)b : (int32_t)b;
    switch (op) {
    case VTRN_ALU_ADD: return a + b;
    case VTRN_ALU_SUBTRACT: return a - b;
    case VTRN_ALU_MULTIPLY: return a * b;
    case VTRN_ALU_MAXIMUM: return x > y ? a : b;
    case VTRN_ALU_MINIMUM: return x < y ? a : b;
    case VTRN_ALU_EQUAL: return x == y;
    case VTRN_ALU_NOT_EQUAL: return x != y;
    case VTRN_ALU_GREATER_EQUAL: return x >= y;
    case VTRN_ALU_GREATER: return x > y;
    case VTRN_ALU_LESS_EQUAL: return x <= y;
    case VTRN_ALU_LESS: return x < y;
    case VTRN_ALU_LOGICAL_AND: return x != 0 && y != 0;
    case VTRN_ALU_LOGICAL_OR: return x != 0 || y != 0;
    default: fail(); return 0;
    }
}

static uint32_t word_at(struct model *model, const struct vtrn_ap *ap, int64_t p, int64_t i)
{
    uint32_t word = 0;
    memcpy(&word, model_read(model, ap, p, i), vtrn_dtypes[ap->dtype].size_bytes);
    return word;
}

static void put_word(struct model *model, const struct vtrn_ap *ap, int64_t p, int64_t i, uint32_t word)
{
    memcpy(model_write(model, ap, p, i), &word, vtrn_dtypes[ap->dtype].size_bytes);
}

/* Words of every magnitude, also beyond what fp32 holds. */
static void fill_words(struct model *model, const struct vtrn_ap *ap)
{
    struct model_tensor *tensor = &model->tensor[model->tensors - 1];
    assert_int_equal(tensor->id, ap->tensor);
    for (size_t b = 0; b < tensor->bytes; b += 4) {
        uint32_t word = (uint32_t)rig_random() >> rig_below(33) % 32;
        memcpy(tensor->before + b, &word, 4);
    }
    memcpy(tensor->after, tensor->before, tensor->bytes);
    rig_write(model->rig, 0, ap->tensor, tensor->before);
}

static void test_tensor_tensor_words(void **state)
{
    for (int round = 0; round < ROUNDS; round++) {
        struct model model;
        int64_t parts, elems;
        enum vtrn_alu op = (enum vtrn_alu)arith[rig_below(13)];
        model_begin(&model, *state, VTRN_OP_tensor_tensor, VTRN_ENGINE_GPSIMD);
        model_shape(&parts, &elems, 600);
        struct vtrn_ap a = model_source(&model, VTRN_SBUF, MODEL_PICK(words), parts, elems);
        fill_words(&model, &a);
        struct vtrn_ap b = model_source(&model, VTRN_SBUF, MODEL_PICK(words), parts, elems);
        fill_words(&model, &b);
        struct vtrn_ap dst = model_target(&model, VTRN_SBUF, MODEL_PICK(words), parts, elems, &a);
        bool is_unsigned = a.dtype == VTRN_DT_U32 && b.dtype == VTRN_DT_U32;
        bool logical = op == VTRN_ALU_LOGICAL_AND || op == VTRN_ALU_LOGICAL_OR;
        rig_set_ap(RIG_ARG(&model.inst, tensor_tensor, data1), a);
        rig_set_ap(RIG_ARG(&model.inst, tensor_tensor, data2), b);
        rig_set_ap(RIG_ARG(&model.inst, tensor_tensor, dst), dst);
        rig_set_int(RIG_ARG(&model.inst, tensor_tensor, op), op);
        for (int64_t p = 0; p < parts; p++)
            for (int64_t i = 0; i < elems; i++)
                put_word(&model, &dst, p, i,
                         word_alu(op, is_unsigned && !logical, word_at(&model, &a, p, i), word_at(&model, &b, p, i)));
        model_end(&model);
    }
}

/* ---------------------------------------------------------------- bits */
static uint32_t bits_alu(enum vtrn_alu op, uint32_t a, uint32_t b, int width)
{
    switch (op) {
    case VTRN_ALU_BITWISE_AND: return a & b;
    case VTRN_ALU_BITWISE_OR: return a | b;
    case VTRN_ALU_BITWISE_XOR: return a ^ b;
    case VTRN_ALU_LEFT_SHIFT: return b >= (uint32_t)width ? 0 : a << b;
    case VTRN_ALU_RIGHT_SHIFT: return b >= (uint32_t)width ? 0 : a >> b;
    default: return ~a;
    }
}

static void test_bits(void **state)
{
    for (int round = 0; round < ROUNDS; round++) {
        struct model model;
        int64_t parts, elems;
        uint8_t dtype = MODEL_PICK(ints), other = rig_below(4) ? dtype : MODEL_PICK(ints);
        enum vtrn_alu op = (enum vtrn_alu)MODEL_PICK(bits);
        int size = vtrn_dtypes[dtype].size_bytes, width = size == vtrn_dtypes[other].size_bytes ? 8 * size : 32;
        model_begin(&model, *state, VTRN_OP_tensor_tensor, VTRN_ENGINE_VECTOR);
        model_shape(&parts, &elems, 600);
        struct vtrn_ap a = model_source(&model, VTRN_SBUF, dtype, parts, elems);
        struct vtrn_ap b = model_source(&model, VTRN_SBUF, other, parts, elems);
        struct vtrn_ap dst = model_target(&model, VTRN_SBUF, dtype, parts, elems, &a);
        rig_set_ap(RIG_ARG(&model.inst, tensor_tensor, data1), a);
        rig_set_ap(RIG_ARG(&model.inst, tensor_tensor, data2), b);
        rig_set_ap(RIG_ARG(&model.inst, tensor_tensor, dst), dst);
        rig_set_int(RIG_ARG(&model.inst, tensor_tensor, op), op);
        for (int64_t p = 0; p < parts; p++)
            for (int64_t i = 0; i < elems; i++)
                put_word(&model, &dst, p, i, bits_alu(op, word_at(&model, &a, p, i), word_at(&model, &b, p, i), width));
        model_end(&model);
    }
}

static void test_scalar_bits(void **state)
{
    for (int round = 0; round < ROUNDS; round++) {
        struct model model;
        int64_t parts, elems;
        uint8_t dtype = MODEL_PICK(ints);
        int width = 8 * vtrn_dtypes[dtype].size_bytes;
        enum vtrn_alu op[2] = { (enum vtrn_alu)(rig_below(5) ? MODEL_PICK(bits) : VTRN_ALU_INVERT), (enum vtrn_alu)MODEL_PICK(bits) };
        bool pair = rig_below(2), reverse[2] = { rig_below(4) == 0, rig_below(4) == 0 };
        model_begin(&model, *state, VTRN_OP_tensor_scalar, VTRN_ENGINE_VECTOR);
        model_shape(&parts, &elems, 600);
        struct vtrn_ap data = model_source(&model, model_space(elems), dtype, parts, elems);
        struct vtrn_ap dst = model_target(&model, VTRN_SBUF, dtype, parts, elems, &data);
        struct vtrn_value *operand[2] = { RIG_ARG(&model.inst, tensor_scalar, operand0),
                                          RIG_ARG(&model.inst, tensor_scalar, operand1) };
        for (int k = 0; k < (pair ? 2 : 1); k++) {
            if (op[k] == VTRN_ALU_INVERT) continue;
            if (rig_below(2)) {
                rig_set_ap(operand[k], model_source(&model, VTRN_SBUF, dtype, parts, 1));
            } else {
                rig_set_num(operand[k], (double)rig_below(op[k] >= VTRN_ALU_LEFT_SHIFT ? 40 : 256));
                operand[k]->is_int = 1;
            }
        }
        rig_set_ap(RIG_ARG(&model.inst, tensor_scalar, data), data);
        rig_set_ap(RIG_ARG(&model.inst, tensor_scalar, dst), dst);
        rig_set_int(RIG_ARG(&model.inst, tensor_scalar, op0), op[0]);
        if (pair) rig_set_int(RIG_ARG(&model.inst, tensor_scalar, op1), op[1]);
        rig_set_int(RIG_ARG(&model.inst, tensor_scalar, reverse0), reverse[0]);
        rig_set_int(RIG_ARG(&model.inst, tensor_scalar, reverse1), reverse[1]);
        for (int64_t p = 0; p < parts; p++)
            for (int64_t i = 0; i < elems; i++) {
                uint32_t mask = width == 32 ? UINT32_MAX : (UINT32_C(1) << width) - 1, x = word_at(&model, &data, p, i);
                for (int k = 0; k < (pair ? 2 : 1); k++) {
                    uint32_t s = operand[k]->kind == VTRN_V_AP    ? word_at(&model, &operand[k]->ap, p, 0)
                                 : operand[k]->kind == VTRN_V_NUM ? (uint32_t)operand[k]->num
                                                                  : 0;
                    bool swap = reverse[k] && op[k] != VTRN_ALU_INVERT;
                    x = bits_alu(op[k], swap ? s : x, swap ? x : s, width) & mask;
                }
                put_word(&model, &dst, p, i, x);
            }
        model_end(&model);
    }
}

/* ---------------------------------------------------------------- tensor_scalar, scalar_tensor_tensor, reciprocal */
static void test_tensor_scalar(void **state)
{
    for (int round = 0; round < 2 * ROUNDS; round++) {
        struct model model;
        int64_t parts, elems;
        bool one = rig_below(5) == 0, pair = rig_below(2), reverse[2] = { rig_below(3) == 0, rig_below(3) == 0 };
        enum vtrn_alu op[2] = { (enum vtrn_alu)(one ? MODEL_PICK(unary) : MODEL_PICK(arith)), (enum vtrn_alu)MODEL_PICK(arith) };
        if (rig_below(4) == 0) op[0] = VTRN_ALU_MULTIPLY, op[1] = VTRN_ALU_ADD, one = false;
        model_begin(&model, *state, VTRN_OP_tensor_scalar, VTRN_ENGINE_VECTOR);
        model_shape(&parts, &elems, round % 8 == 0 ? 5000 : 600);
        struct vtrn_ap data = model_broadcast(&model, model_space(elems), MODEL_PICK(plain), parts, elems);
        struct vtrn_ap dst =
            model_target(&model, model_space(elems), rig_below(2) ? data.dtype : MODEL_PICK(plain), parts, elems, &data);
        struct vtrn_value *operand[2] = { RIG_ARG(&model.inst, tensor_scalar, operand0),
                                          RIG_ARG(&model.inst, tensor_scalar, operand1) };
        if (!one) model_scalar(&model, operand[0], parts, false);
        if (pair) model_scalar(&model, operand[1], parts, false);
        rig_set_ap(RIG_ARG(&model.inst, tensor_scalar, data), data);
        rig_set_ap(RIG_ARG(&model.inst, tensor_scalar, dst), dst);
        rig_set_int(RIG_ARG(&model.inst, tensor_scalar, op0), op[0]);
        if (pair) rig_set_int(RIG_ARG(&model.inst, tensor_scalar, op1), op[1]);
        rig_set_int(RIG_ARG(&model.inst, tensor_scalar, reverse0), reverse[0]);
        rig_set_int(RIG_ARG(&model.inst, tensor_scalar, reverse1), reverse[1]);
        for (int64_t p = 0; p < parts; p++)
            for (int64_t i = 0; i < elems; i++) {
                float x = model_get(&model, &data, p, i);
                for (int k = 0; k < (pair ? 2 : 1); k++)
                    x = model_alu_swapped(op[k], reverse[k], x, model_scalar_get(&model, operand[k], p));
                model_put(&model, &dst, p, i, x);
            }
        model_end(&model);
    }
}

/* Whole numbers on 32-bit integers: the true value, saturated. */
static long double whole_alu(enum vtrn_alu op, long double a, long double b)
{
    switch (op) {
    case VTRN_ALU_ADD: return a + b;
    case VTRN_ALU_SUBTRACT: return a - b;
    case VTRN_ALU_MULTIPLY: return a * b;
    case VTRN_ALU_MAXIMUM: return a > b ? a : b;
    case VTRN_ALU_MINIMUM: return a < b ? a : b;
    case VTRN_ALU_EQUAL: return a == b;
    case VTRN_ALU_NOT_EQUAL: return a != b;
    case VTRN_ALU_GREATER_EQUAL: return a >= b;
    case VTRN_ALU_GREATER: return a > b;
    case VTRN_ALU_LESS_EQUAL: return a <= b;
    default: return a < b;
    }
}

static void test_tensor_scalar_words(void **state)
{
    for (int round = 0; round < ROUNDS; round++) {
        struct model model;
        int64_t parts, elems;
        bool pair = rig_below(2), reverse[2] = { rig_below(3) == 0, rig_below(3) == 0 };
        enum vtrn_alu op[2] = { (enum vtrn_alu)arith[rig_below(11)], (enum vtrn_alu)arith[rig_below(11)] };
        model_begin(&model, *state, VTRN_OP_tensor_scalar, VTRN_ENGINE_VECTOR);
        model_shape(&parts, &elems, 600);
        struct vtrn_ap data = model_source(&model, model_space(elems), MODEL_PICK(words), parts, elems);
        fill_words(&model, &data);
        struct vtrn_ap dst = model_target(&model, model_space(elems), MODEL_PICK(words), parts, elems, &data);
        struct vtrn_value *operand[2] = { RIG_ARG(&model.inst, tensor_scalar, operand0),
                                          RIG_ARG(&model.inst, tensor_scalar, operand1) };
        for (int k = 0; k < (pair ? 2 : 1); k++) {
            if (rig_below(2)) {
                rig_set_ap(operand[k], model_source(&model, VTRN_SBUF, MODEL_PICK(words), parts, 1));
                fill_words(&model, &operand[k]->ap);
            } else {
                rig_set_num(operand[k], (double)(int32_t)((uint32_t)rig_random() >> rig_below(32)) * (rig_below(2) ? 1 : -1));
                operand[k]->is_int = 1;
            }
        }
        rig_set_ap(RIG_ARG(&model.inst, tensor_scalar, data), data);
        rig_set_ap(RIG_ARG(&model.inst, tensor_scalar, dst), dst);
        rig_set_int(RIG_ARG(&model.inst, tensor_scalar, op0), op[0]);
        if (pair) rig_set_int(RIG_ARG(&model.inst, tensor_scalar, op1), op[1]);
        rig_set_int(RIG_ARG(&model.inst, tensor_scalar, reverse0), reverse[0]);
        rig_set_int(RIG_ARG(&model.inst, tensor_scalar, reverse1), reverse[1]);
        for (int64_t p = 0; p < parts; p++)
            for (int64_t i = 0; i < elems; i++) {
                uint32_t word = word_at(&model, &data, p, i);
                long double x = data.dtype == VTRN_DT_U32 ? (long double)word : (long double)(int32_t)word;
                for (int k = 0; k < (pair ? 2 : 1); k++) {
                    long double s = operand[k]->kind == VTRN_V_NUM ? (long double)operand[k]->num : 0;
                    if (operand[k]->kind == VTRN_V_AP) {
                        word = word_at(&model, &operand[k]->ap, p, 0);
                        s = operand[k]->ap.dtype == VTRN_DT_U32 ? (long double)word : (long double)(int32_t)word;
                    }
                    x = reverse[k] ? whole_alu(op[k], s, x) : whole_alu(op[k], x, s);
                }
                long double low = dst.dtype == VTRN_DT_U32 ? 0 : INT32_MIN, high = dst.dtype == VTRN_DT_U32 ? UINT32_MAX : INT32_MAX;
                x = x < low ? low : x > high ? high : x;
                put_word(&model, &dst, p, i, dst.dtype == VTRN_DT_U32 ? (uint32_t)x : (uint32_t)(int32_t)x);
            }
        model_end(&model);
    }
}

static void test_scalar_tensor_tensor(void **state)
{
    for (int round = 0; round < ROUNDS; round++) {
        struct model model;
        int64_t parts, elems;
        bool reverse[2] = { rig_below(3) == 0, rig_below(3) == 0 };
        enum vtrn_alu op[2] = { (enum vtrn_alu)MODEL_PICK(arith), (enum vtrn_alu)MODEL_PICK(arith) };
        model_begin(&model, *state, VTRN_OP_scalar_tensor_tensor, VTRN_ENGINE_VECTOR);
        model_shape(&parts, &elems, 600);
        struct vtrn_ap data = model_broadcast(&model, model_space(elems), MODEL_PICK(plain), parts, elems);
        struct vtrn_ap other = model_broadcast(&model, VTRN_SBUF, MODEL_PICK(plain), parts, elems);
        struct vtrn_ap dst = model_target(&model, model_space(elems), rig_below(2) ? data.dtype : MODEL_PICK(plain), parts, elems,
                                          rig_below(2) ? &data : &other);
        struct vtrn_value *scalar = RIG_ARG(&model.inst, scalar_tensor_tensor, operand0);
        model_scalar(&model, scalar, parts, false);
        rig_set_ap(RIG_ARG(&model.inst, scalar_tensor_tensor, data), data);
        rig_set_ap(RIG_ARG(&model.inst, scalar_tensor_tensor, operand1), other);
        rig_set_ap(RIG_ARG(&model.inst, scalar_tensor_tensor, dst), dst);
        rig_set_int(RIG_ARG(&model.inst, scalar_tensor_tensor, op0), op[0]);
        rig_set_int(RIG_ARG(&model.inst, scalar_tensor_tensor, op1), op[1]);
        rig_set_int(RIG_ARG(&model.inst, scalar_tensor_tensor, reverse0), reverse[0]);
        rig_set_int(RIG_ARG(&model.inst, scalar_tensor_tensor, reverse1), reverse[1]);
        for (int64_t p = 0; p < parts; p++)
            for (int64_t i = 0; i < elems; i++) {
                float t = model_alu_swapped(op[0], reverse[0], model_get(&model, &data, p, i), model_scalar_get(&model, scalar, p));
                model_put(&model, &dst, p, i, model_alu_swapped(op[1], reverse[1], t, model_get(&model, &other, p, i)));
            }
        model_end(&model);
    }
}

static void test_reciprocal(void **state)
{
    for (int round = 0; round < ROUNDS / 3; round++) {
        struct model model;
        int64_t parts, elems;
        model_begin(&model, *state, VTRN_OP_reciprocal, VTRN_ENGINE_VECTOR);
        model_shape(&parts, &elems, 600);
        struct vtrn_ap data = model_broadcast(&model, model_space(elems), MODEL_PICK(plain), parts, elems);
        struct vtrn_ap dst =
            model_target(&model, model_space(elems), rig_below(2) ? data.dtype : MODEL_PICK(plain), parts, elems, &data);
        rig_set_ap(RIG_ARG(&model.inst, reciprocal, data), data);
        rig_set_ap(RIG_ARG(&model.inst, reciprocal, dst), dst);
        for (int64_t p = 0; p < parts; p++)
            for (int64_t i = 0; i < elems; i++) model_put(&model, &dst, p, i, model_quiet(1.0f / model_get(&model, &data, p, i)));
        model_end(&model);
    }
}

/* ---------------------------------------------------------------- copies */
static void test_tensor_copy(void **state)
{
    static const uint8_t any[] = { VTRN_DT_F8E5M2X4, VTRN_DT_F4E2M1FNX4 };
    for (int round = 0; round < 2 * ROUNDS; round++) {
        struct model model;
        int64_t parts, elems;
        uint8_t from = rig_below(8) ? MODEL_PICK(plain) : MODEL_PICK(any), to = rig_below(2) ? from : MODEL_PICK(plain);
        if (vtrn_dtypes[from].cls == VTRN_CLASS_PACKED) to = from;
        model_begin(&model, *state, VTRN_OP_tensor_copy, rig_below(2) ? VTRN_ENGINE_VECTOR : VTRN_ENGINE_SCALAR);
        model_shape(&parts, &elems, round % 8 == 0 ? 5000 : 600);
        struct vtrn_ap src = model_broadcast(&model, model_space(elems), from, parts, elems);
        struct vtrn_ap dst = model_target(&model, model_space(elems), to, parts, elems, &src);
        rig_set_ap(RIG_ARG(&model.inst, tensor_copy, src), src);
        rig_set_ap(RIG_ARG(&model.inst, tensor_copy, dst), dst);
        for (int64_t p = 0; p < parts; p++)
            for (int64_t i = 0; i < elems; i++)
                if (from == to) memcpy(model_write(&model, &dst, p, i), model_read(&model, &src, p, i), vtrn_dtypes[to].size_bytes);
                else model_put(&model, &dst, p, i, model_get(&model, &src, p, i));
        model_end(&model);
    }
}

static void test_memset(void **state)
{
    for (int round = 0; round < ROUNDS; round++) {
        struct model model;
        int64_t parts, elems;
        uint8_t dtype = rig_below(10) ? MODEL_PICK(plain) : VTRN_DT_F8E4M3FNX4, element[4] = { 0 };
        bool whole = vtrn_dtypes[dtype].cls == VTRN_CLASS_INT || vtrn_dtypes[dtype].cls == VTRN_CLASS_UINT;
        double value = whole ? (double)rig_below(100) : (double)(rig_below(2001) - 1000) / 32;
        if (vtrn_dtypes[dtype].cls == VTRN_CLASS_PACKED) value = 0;
        else if (dtype == VTRN_DT_I32 && rig_below(2)) value = -123456789; /* beyond fp32 */
        model_begin(&model, *state, VTRN_OP_memset, VTRN_ENGINE_VECTOR);
        model_shape(&parts, &elems, 2100);
        struct vtrn_ap dst = model_target(&model, model_space(elems), dtype, parts, elems, NULL);
        rig_set_ap(RIG_ARG(&model.inst, memset, dst), dst);
        rig_set_num(RIG_ARG(&model.inst, memset, value), value);
        RIG_ARG(&model.inst, memset, value)->is_int = whole;
        if (whole) {
            int32_t word = (int32_t)value;
            memcpy(element, &word, 4);
        } else if (value != 0) {
            vtrn_from_f32((enum vtrn_dtype)dtype, (float)value, element);
        }
        for (int64_t p = 0; p < parts; p++)
            for (int64_t i = 0; i < elems; i++) memcpy(model_write(&model, &dst, p, i), element, vtrn_dtypes[dtype].size_bytes);
        model_end(&model);
    }
}

static void test_predicated(void **state)
{
    static const uint8_t predicates[] = { VTRN_DT_U8, VTRN_DT_U16, VTRN_DT_U32 };
    for (int round = 0; round < ROUNDS; round++) {
        struct model model;
        int64_t parts, elems;
        uint8_t dtype = MODEL_PICK(plain);
        bool number = rig_below(4) == 0, reverse = rig_below(2);
        uint8_t element[4] = { 0 };
        model_begin(&model, *state, VTRN_OP_tensor_copy_predicated, VTRN_ENGINE_VECTOR);
        model_shape(&parts, &elems, 600);
        struct vtrn_ap src = model_broadcast(&model, model_space(elems), dtype, parts, elems);
        struct vtrn_ap predicate = model_broadcast(&model, VTRN_SBUF, MODEL_PICK(predicates), parts, elems);
        struct vtrn_ap dst = model_target(&model, model_space(elems), dtype, parts, elems, rig_below(2) ? &src : &predicate);
        if (number) {
            rig_set_num(RIG_ARG(&model.inst, tensor_copy_predicated, src), 3);
            vtrn_from_f32((enum vtrn_dtype)dtype, 3, element);
        } else {
            rig_set_ap(RIG_ARG(&model.inst, tensor_copy_predicated, src), src);
        }
        rig_set_ap(RIG_ARG(&model.inst, tensor_copy_predicated, predicate), predicate);
        rig_set_ap(RIG_ARG(&model.inst, tensor_copy_predicated, dst), dst);
        rig_set_int(RIG_ARG(&model.inst, tensor_copy_predicated, reverse_pred), reverse);
        for (int64_t p = 0; p < parts; p++)
            for (int64_t i = 0; i < elems; i++)
                if ((word_at(&model, &predicate, p, i) != 0) != reverse)
                    memcpy(model_write(&model, &dst, p, i), number ? element : model_read(&model, &src, p, i),
                           vtrn_dtypes[dtype].size_bytes);
        model_end(&model);
    }
}

static void test_shuffle(void **state)
{
    for (int round = 0; round < ROUNDS / 3; round++) {
        struct model model;
        int64_t parts = 32 * (1 + rig_below(4)), elems = 1 + rig_below(600), mask[32];
        uint8_t dtype = rig_below(8) ? MODEL_PICK(plain) : VTRN_DT_F8E5M2X4;
        model_begin(&model, *state, VTRN_OP_nc_stream_shuffle, VTRN_ENGINE_VECTOR);
        struct vtrn_ap src = model_source(&model, model_space(elems), dtype, parts, elems);
        struct vtrn_ap dst = model_target(&model, model_space(elems), dtype, parts, elems, &src);
        for (int k = 0; k < 32; k++) mask[k] = rig_below(6) == 0 ? 255 : rig_below(32);
        rig_set_ap(RIG_ARG(&model.inst, nc_stream_shuffle, src), src);
        rig_set_ap(RIG_ARG(&model.inst, nc_stream_shuffle, dst), dst);
        rig_set_ints(&model.inst, RIG_ARG(&model.inst, nc_stream_shuffle, shuffle_mask), 32, mask);
        for (int64_t p = 0; p < parts; p++)
            for (int64_t i = 0; i < elems && mask[p % 32] != 255; i++)
                memcpy(model_write(&model, &dst, p, i), model_read(&model, &src, p / 32 * 32 + mask[p % 32], i),
                       vtrn_dtypes[dtype].size_bytes);
        model_end(&model);
    }
}

/* One partition to 32, as kernels broadcast it. */
static void test_shuffle_broadcast(void **state)
{
    struct model model;
    int64_t mask[32] = { 0 };
    model_begin(&model, *state, VTRN_OP_nc_stream_shuffle, VTRN_ENGINE_VECTOR);
    struct vtrn_ap src = model_source(&model, VTRN_SBUF, VTRN_DT_BF16, 1, 100);
    struct vtrn_ap dst = model_target(&model, VTRN_SBUF, VTRN_DT_BF16, 32, 100, NULL);
    rig_set_ap(RIG_ARG(&model.inst, nc_stream_shuffle, src), src);
    rig_set_ap(RIG_ARG(&model.inst, nc_stream_shuffle, dst), dst);
    rig_set_ints(&model.inst, RIG_ARG(&model.inst, nc_stream_shuffle, shuffle_mask), 32, mask);
    for (int64_t p = 0; p < 32; p++)
        for (int64_t i = 0; i < 100; i++) memcpy(model_write(&model, &dst, p, i), model_read(&model, &src, 0, i), 2);
    model_end(&model);
}

/* ---------------------------------------------------------------- dropout */
static void test_dropout(void **state)
{
    struct rig *rig = *state;
    static const double probs[] = { 0, 0.25, 0.5, 1 };
    for (int k = 0; k < 4; k++) {
        struct vtrn_inst inst;
        uint32_t src = rig_tensor2(rig, 0, VTRN_SBUF, VTRN_DT_BF16, 128, 400),
                 dst = rig_tensor2(rig, 0, VTRN_SBUF, VTRN_DT_BF16, 128, 400);
        uint16_t *before = rig_fill(rig, 0, src), *after;
        int64_t dropped = 0, kept = 0, shifted = 0;
        vtrn_inst_init(&inst, VTRN_OP_dropout);
        for (int64_t i = 0; i < 128 * 400; i++) before[i] = (uint16_t)(0x3f80 + i % 77); /* none is 0 */
        rig_write(rig, 0, src, before);
        rig_set_ap(RIG_ARG(&inst, dropout, data), rig_ap(rig, src));
        rig_set_ap(RIG_ARG(&inst, dropout, dst), rig_ap(rig, dst));
        rig_set_num(RIG_ARG(&inst, dropout, prob), probs[k]);
        rig_append(rig, 0, &inst);
        rig_run_ok(rig, 0);
        after = rig_image(rig, 0, dst);
        for (int64_t i = 0; i < 128 * 400; i++) {
            assert_true(after[i] == 0 || after[i] == before[i]);
            if (after[i] == 0) dropped++;
            else kept++;
            if (i >= 400 && (after[i] == 0) != (after[i - 400] == 0)) shifted++;
        }
        double share = (double)dropped / (double)(dropped + kept), sigma = sqrt(probs[k] * (1 - probs[k]) / (128 * 400));
        assert_true(fabs(share - probs[k]) <= 5 * sigma);
        if (probs[k] > 0 && probs[k] < 1) assert_true(shifted > 128 * 400 / 8); /* lanes do not repeat each other */
        free(before);
        free(after);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_tensor_tensor, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_tensor_tensor_words, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_bits, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_scalar_bits, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_tensor_scalar, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_tensor_scalar_words, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_scalar_tensor_tensor, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_reciprocal, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_tensor_copy, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_memset, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_predicated, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_shuffle, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_shuffle_broadcast, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_dropout, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
