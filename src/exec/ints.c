/* Elementwise arithmetic that does not go through fp32: bitwise operators, GpSimd's 32-bit integers, and tensor_scalar on
 * 32-bit integers with whole-number operands.
 *
 * Equal widths go to kern's rows. Operators that kern has no integer rows for are computed in double, which holds every
 * 32-bit integer exactly. Sits beside vec.c, which decides what comes here. */
#include "exec/vec_int.h"
#include "exec/walk_int.h"

#include <math.h>

enum { BLOCK = 1024 };

/* ---------------------------------------------------------------- blocks of raw elements */
/* Elements widened with zeros to 32 bits: for operands of unequal widths. */
static const uint32_t *load_wide(const struct exec_view *view, int64_t p, int64_t i, int64_t n, uint32_t *out)
{
    uint32_t space[BLOCK];
    const void *raw = exec_load_raw(view, p, 1, i, n, space);

    switch (view->elem_bytes) {
    case 1:
        for (int64_t k = 0; k < n; k++) out[k] = ((const uint8_t *)raw)[k];
        break;
    case 2:
        for (int64_t k = 0; k < n; k++) {
            uint16_t half;

            memcpy(&half, (const uint8_t *)raw + 2 * k, 2);
            out[k] = half;
        }
        break;
    default: memcpy(out, raw, (size_t)n * 4);
    }
    return out;
}

/* The low bits of 32-bit values. A bool keeps one bit, so that inverting it gives a bool. */
static void store_narrow(const struct exec_view *view, int64_t p, int64_t i, int64_t n, uint32_t *values)
{
    uint8_t byte[BLOCK];
    uint16_t half[BLOCK];

    switch (view->elem_bytes) {
    case 1:
        for (int64_t k = 0; k < n; k++) byte[k] = (uint8_t)(view->dtype == VTRN_DT_BOOL ? values[k] & 1 : values[k]);
        exec_store_raw(view, p, 1, i, n, byte);
        break;
    case 2:
        for (int64_t k = 0; k < n; k++) half[k] = (uint16_t)values[k];
        exec_store_raw(view, p, 1, i, n, half);
        break;
    default: exec_store_raw(view, p, 1, i, n, values);
    }
}

/* ---------------------------------------------------------------- tensor_tensor, bits */
struct pair {
    struct vtrn_core *core;
    const struct exec_view *dst, *a, *b;
    enum vtrn_alu op;
};

static void same_width_rows(const struct exec_rows *rows, int64_t p0, int64_t p1, uint8_t *scratch)
{
    const struct pair *job = rows->data;
    const struct exec_view *dst = job->dst;
    void (*bits)(void *, const void *, const void *, size_t) = rows->core->kern->tt_bits[job->op][exec_size_slot(dst->elem_bytes)];
    int64_t step = exec_block_parts(dst->elems, false);

    for (int64_t p = p0; p < p1; p += step)
        for (int64_t i = 0; i < dst->elems; i += EXEC_ROW_MAX) {
            int64_t np = p1 - p < step ? p1 - p : step, n = dst->elems - i < EXEC_ROW_MAX ? dst->elems - i : EXEC_ROW_MAX;
            const void *a = exec_load_raw(job->a, p, np, i, n, exec_block(scratch, 0));
            const void *b = exec_load_raw(job->b, p, np, i, n, exec_block(scratch, 1));

            bits(exec_block(scratch, 2), a, b, (size_t)(np * n));
            exec_store_raw(dst, p, np, i, n, exec_block(scratch, 2));
        }
}

static void mixed_width_rows(const struct exec_rows *rows, int64_t p0, int64_t p1, uint8_t *scratch)
{
    const struct pair *job = rows->data;
    const struct exec_view *dst = job->dst;
    uint32_t *a = (uint32_t *)(void *)exec_block(scratch, 0), *b = (uint32_t *)(void *)exec_block(scratch, 1);

    for (int64_t p = p0; p < p1; p++)
        for (int64_t i = 0; i < dst->elems; i += BLOCK) {
            int64_t n = dst->elems - i < BLOCK ? dst->elems - i : BLOCK;

            load_wide(job->a, p, i, n, a);
            load_wide(job->b, p, i, n, b);
            rows->core->kern->tt_bits[job->op][2](a, a, b, (size_t)n);
            store_narrow(dst, p, i, n, a);
        }
}

void exec_tensor_tensor_bits(struct vtrn_core *core, enum vtrn_alu op, const struct exec_view *dst, const struct exec_view *a,
                             const struct exec_view *b)
{
    struct pair job = { core, dst, a, b, op };
    bool same = dst->elem_bytes == a->elem_bytes && a->elem_bytes == b->elem_bytes && dst->dtype != VTRN_DT_BOOL;

    exec_for_partitions(core, dst->parts, dst->elems, same ? same_width_rows : mixed_width_rows, &job);
}

/* ---------------------------------------------------------------- operators in double */
static double whole_op(enum vtrn_alu op, double a, double b)
{
    switch (op) {
    case VTRN_ALU_LOGICAL_AND: return a != 0 && b != 0;
    case VTRN_ALU_LOGICAL_OR: return a != 0 || b != 0;
    case VTRN_ALU_LOGICAL_XOR: return (a != 0) != (b != 0);
    case VTRN_ALU_POWER: return pow(a, b);
    case VTRN_ALU_ABS_MAX: return fabs(a) > fabs(b) ? a : b;
    case VTRN_ALU_ABS_MIN: return fabs(a) < fabs(b) ? a : b;
    case VTRN_ALU_DIVIDE: return a / b;
    case VTRN_ALU_FMOD: return fmod(a, b);
    case VTRN_ALU_MOD: {
        double r = fmod(a, b);

        return r != 0 && (r < 0) != (b < 0) ? r + b : r;
    }
    default: VTRN_ASSERT(op == VTRN_ALU_BYPASS); return a;
    }
}

static inline double word_value(uint8_t dtype, uint32_t bits)
{
    return dtype == VTRN_DT_U32 ? (double)bits : (double)(int32_t)bits;
}

/* To the nearest integer, saturated; NaN gives 0: the rule of every store to an integer. */
static inline uint32_t word_of(uint8_t dtype, double value)
{
    double low = dtype == VTRN_DT_U32 ? 0 : INT32_MIN, high = dtype == VTRN_DT_U32 ? UINT32_MAX : INT32_MAX;

    if (value != value) return 0;
    value = value < low ? low : value > high ? high : rint(value);
    return dtype == VTRN_DT_U32 ? (uint32_t)value : (uint32_t)(int32_t)value;
}

/* ---------------------------------------------------------------- tensor_tensor, 32-bit integers */
static void word_rows(const struct exec_rows *rows, int64_t p0, int64_t p1, uint8_t *scratch)
{
    const struct pair *job = rows->data;
    const struct exec_view *dst = job->dst;
    const struct vtrn_kern *kern = rows->core->kern;
    bool is_unsigned = job->a->dtype == VTRN_DT_U32 && job->b->dtype == VTRN_DT_U32;
    int64_t step = exec_block_parts(dst->elems, false);
    uint32_t *out = (uint32_t *)(void *)exec_block(scratch, 2);

    for (int64_t p = p0; p < p1; p += step)
        for (int64_t i = 0; i < dst->elems; i += EXEC_ROW_MAX) {
            int64_t np = p1 - p < step ? p1 - p : step, n = dst->elems - i < EXEC_ROW_MAX ? dst->elems - i : EXEC_ROW_MAX;
            const uint32_t *a = exec_load_raw(job->a, p, np, i, n, exec_block(scratch, 0));
            const uint32_t *b = exec_load_raw(job->b, p, np, i, n, exec_block(scratch, 1));

            if (kern->tt_i32[job->op] && is_unsigned) kern->tt_u32[job->op](out, a, b, (size_t)(np * n));
            else if (kern->tt_i32[job->op])
                kern->tt_i32[job->op]((int32_t *)out, (const int32_t *)a, (const int32_t *)b, (size_t)(np * n));
            else
                for (int64_t k = 0; k < np * n; k++)
                    out[k] = word_of(dst->dtype, whole_op(job->op, word_value(job->a->dtype, a[k]), word_value(job->b->dtype, b[k])));
            exec_store_raw(dst, p, np, i, n, out);
        }
}

void exec_tensor_tensor_words(struct vtrn_core *core, enum vtrn_alu op, const struct exec_view *dst, const struct exec_view *a,
                              const struct exec_view *b)
{
    struct pair job = { core, dst, a, b, op };

    exec_for_partitions(core, dst->parts, dst->elems, word_rows, &job);
}

/* ---------------------------------------------------------------- tensor_scalar: operands */
/* One integer per partition: the exact value for arithmetic, the bits (extended with zeros) for bitwise operators. */
static enum vtrn_status whole_scalars(struct vtrn_core *core, const struct vtrn_value *value, int64_t parts, bool bits, int64_t *out)
{
    struct exec_view view;

    if (value->kind != VTRN_V_AP) {
        double number = value->kind == VTRN_V_NUM ? value->num : 0;
        /* Larger numbers saturate every result alike. */
        int64_t whole = number >= 0x1p50 ? INT64_C(1) << 50 : number <= -0x1p50 ? -(INT64_C(1) << 50) : (int64_t)number;

        for (int64_t p = 0; p < parts; p++) out[p] = whole;
        return VTRN_OK;
    }
    VTRN_TRY(exec_resolve(core, &value->ap, VTRN_READ, &view));
    VTRN_ASSERT(view.parts >= parts);
    for (int64_t p = 0; p < parts; p++) {
        uint32_t wide;

        if (bits) out[p] = *load_wide(&view, p, 0, 1, &wide);
        else out[p] = exec_int_load(view.dtype, exec_elem(&view, p, 0));
    }
    return VTRN_OK;
}

struct whole_step {
    enum vtrn_alu op;
    bool reverse;
    int64_t scalar[EXEC_LANES];
};
struct whole_steps {
    const struct exec_view *dst, *data;
    struct whole_step step[2];
};

static enum vtrn_status read_steps(struct vtrn_core *core, const struct vtrn_inst *inst, int64_t parts, bool bits,
                                   struct whole_steps *out)
{
    const struct vtrn_args_tensor_scalar *arg = VTRN_ARGS(tensor_scalar, inst);
    const struct vtrn_value *operand[2] = { &arg->operand0, &arg->operand1 };

    out->step[0].op = exec_alu(&arg->op0);
    out->step[1].op = exec_alu(&arg->op1);
    out->step[0].reverse = exec_flag(&arg->reverse0);
    out->step[1].reverse = exec_flag(&arg->reverse1);
    for (int k = 0; k < 2; k++)
        if (out->step[k].op != VTRN_ALU_NONE) VTRN_TRY(whole_scalars(core, operand[k], parts, bits, out->step[k].scalar));
    return VTRN_OK;
}

/* ---------------------------------------------------------------- tensor_scalar, bits */
static void scalar_bits_rows(const struct exec_rows *rows, int64_t p0, int64_t p1, uint8_t *scratch)
{
    const struct whole_steps *job = rows->data;
    const struct exec_view *dst = job->dst, *data = job->data;
    bool same = dst->elem_bytes == data->elem_bytes && dst->dtype != VTRN_DT_BOOL;
    int slot = same ? exec_size_slot(dst->elem_bytes) : 2;
    void *out = exec_block(scratch, 1);

    for (int64_t p = p0; p < p1; p++)
        for (int64_t i = 0; i < dst->elems; i += BLOCK) {
            int64_t n = dst->elems - i < BLOCK ? dst->elems - i : BLOCK;
            const void *x = same ? exec_load_raw(data, p, 1, i, n, exec_block(scratch, 0))
                                 : load_wide(data, p, i, n, (uint32_t *)(void *)exec_block(scratch, 0));

            for (int k = 0; k < 2 && job->step[k].op != VTRN_ALU_NONE; k++, x = out)
                rows->core->kern->ts_bits[job->step[k].op][slot](out, x, (uint32_t)job->step[k].scalar[p], job->step[k].reverse,
                                                                 (size_t)n);
            if (same) exec_store_raw(dst, p, 1, i, n, out);
            else store_narrow(dst, p, i, n, out);
        }
}

/* Narrow rows of one number: all partitions of a block at once. */
static void number_bits_rows(const struct exec_rows *rows, int64_t p0, int64_t p1, uint8_t *scratch)
{
    const struct whole_steps *job = rows->data;
    const struct exec_view *dst = job->dst;
    int slot = exec_size_slot(dst->elem_bytes);
    void *out = exec_block(scratch, 1);
    int64_t step = exec_block_parts(dst->elems, false);

    for (int64_t p = p0; p < p1; p += step)
        for (int64_t i = 0; i < dst->elems; i += EXEC_ROW_MAX) {
            int64_t np = p1 - p < step ? p1 - p : step, n = dst->elems - i < EXEC_ROW_MAX ? dst->elems - i : EXEC_ROW_MAX;
            const void *x = exec_load_raw(job->data, p, np, i, n, exec_block(scratch, 0));

            for (int k = 0; k < 2 && job->step[k].op != VTRN_ALU_NONE; k++, x = out)
                rows->core->kern->ts_bits[job->step[k].op][slot](out, x, (uint32_t)job->step[k].scalar[0], job->step[k].reverse,
                                                                 (size_t)(np * n));
            exec_store_raw(dst, p, np, i, n, out);
        }
}

enum vtrn_status exec_tensor_scalar_bits(struct vtrn_core *core, const struct vtrn_inst *inst, const struct exec_view *dst,
                                         const struct exec_view *data)
{
    const struct vtrn_args_tensor_scalar *arg = VTRN_ARGS(tensor_scalar, inst);
    struct whole_steps job = { .dst = dst, .data = data };
    bool numbers = arg->operand0.kind != VTRN_V_AP && arg->operand1.kind != VTRN_V_AP;
    bool same = dst->elem_bytes == data->elem_bytes && dst->dtype != VTRN_DT_BOOL;

    VTRN_TRY(read_steps(core, inst, dst->parts, true, &job));
    exec_for_partitions(core, dst->parts, dst->elems, numbers && same ? number_bits_rows : scalar_bits_rows, &job);
    return VTRN_OK;
}

/* ---------------------------------------------------------------- tensor_scalar, 32-bit integers */
static bool has_exact_form(enum vtrn_alu op)
{
    switch (op) {
    case VTRN_ALU_ADD:
    case VTRN_ALU_SUBTRACT:
    case VTRN_ALU_MULTIPLY:
    case VTRN_ALU_MAXIMUM:
    case VTRN_ALU_MINIMUM:
    case VTRN_ALU_EQUAL:
    case VTRN_ALU_NOT_EQUAL:
    case VTRN_ALU_GREATER_EQUAL:
    case VTRN_ALU_GREATER:
    case VTRN_ALU_LESS_EQUAL:
    case VTRN_ALU_LESS: return true;
    default: return false;
    }
}

static bool is_whole(const struct vtrn_value *operand)
{
    return operand->kind == VTRN_V_AP ? exec_is_integer(operand->ap.dtype) : operand->kind == VTRN_V_NUM && operand->is_int;
}

bool exec_scalar_words_apply(const struct vtrn_inst *inst, uint8_t dst_dtype, uint8_t data_dtype)
{
    const struct vtrn_args_tensor_scalar *arg = VTRN_ARGS(tensor_scalar, inst);
    enum vtrn_alu op1 = exec_alu(&arg->op1);

    if (!exec_is_word(dst_dtype) || !exec_is_word(data_dtype)) return false;
    if (!has_exact_form(exec_alu(&arg->op0)) || !is_whole(&arg->operand0)) return false;
    return op1 == VTRN_ALU_NONE || (has_exact_form(op1) && is_whole(&arg->operand1));
}

/* x[k] = op(x[k], s[k * stride]) in 64 bits. What leaves 2^60 in the first step is held there: a second step with an operand
 * of 32 bits (held within 2^50) makes it 0, compares it, or leaves it where the store saturates. */
#define EACH(value) \
    for (int64_t k = 0; k < n; k++) { \
        int64_t a = reverse ? s[k * stride] : x[k], b = reverse ? x[k] : s[k * stride], y = (value); \
        x[k] = y < -most ? -most : y > most ? most : y; \
    } \
    break
static inline int64_t product(int64_t a, int64_t b)
{
    int64_t y;

    if (!__builtin_mul_overflow(a, b, &y)) return y;
    return (a < 0) != (b < 0) ? INT64_MIN : INT64_MAX;
}
static void whole_rows(enum vtrn_alu op, bool reverse, const int64_t *s, int64_t stride, int64_t *x, int64_t n)
{
    const int64_t most = INT64_C(1) << 60;

    switch (op) {
    case VTRN_ALU_ADD: EACH(a + b);
    case VTRN_ALU_SUBTRACT: EACH(a - b);
    case VTRN_ALU_MULTIPLY: EACH(product(a, b));
    case VTRN_ALU_MAXIMUM: EACH(a > b ? a : b);
    case VTRN_ALU_MINIMUM: EACH(a < b ? a : b);
    case VTRN_ALU_EQUAL: EACH(a == b);
    case VTRN_ALU_NOT_EQUAL: EACH(a != b);
    case VTRN_ALU_GREATER_EQUAL: EACH(a >= b);
    case VTRN_ALU_GREATER: EACH(a > b);
    case VTRN_ALU_LESS_EQUAL: EACH(a <= b);
    default: EACH(a < b);
    }
}
#undef EACH

static void scalar_word_rows(const struct exec_rows *rows, int64_t p0, int64_t p1, uint8_t *scratch)
{
    const struct whole_steps *job = rows->data;
    const struct exec_view *dst = job->dst;
    uint32_t *out = (uint32_t *)(void *)exec_block(scratch, 1);
    int64_t x[EXEC_ROW_MAX], low = exec_int_clamp(dst->dtype, INT64_MIN), high = exec_int_clamp(dst->dtype, INT64_MAX);
    int64_t step = exec_block_parts(dst->elems, false);

    for (int64_t p = p0; p < p1; p += step)
        for (int64_t i = 0; i < dst->elems; i += EXEC_ROW_MAX) {
            int64_t np = p1 - p < step ? p1 - p : step, n = dst->elems - i < EXEC_ROW_MAX ? dst->elems - i : EXEC_ROW_MAX;
            const uint32_t *raw = exec_load_raw(job->data, p, np, i, n, exec_block(scratch, 0));

            for (int64_t k = 0; k < np * n; k++) x[k] = job->data->dtype == VTRN_DT_U32 ? (int64_t)raw[k] : (int32_t)raw[k];
            for (int k = 0; k < 2 && job->step[k].op != VTRN_ALU_NONE; k++) {
                const struct whole_step *whole = &job->step[k];

                if (n == 1) whole_rows(whole->op, whole->reverse, whole->scalar + p, 1, x, np);
                else
                    for (int64_t q = 0; q < np; q++) whole_rows(whole->op, whole->reverse, whole->scalar + p + q, 0, x + q * n, n);
            }
            for (int64_t k = 0; k < np * n; k++) out[k] = (uint32_t)(uint64_t)(x[k] < low ? low : x[k] > high ? high : x[k]);
            exec_store_raw(dst, p, np, i, n, out);
        }
}

enum vtrn_status exec_tensor_scalar_words(struct vtrn_core *core, const struct vtrn_inst *inst, const struct exec_view *dst,
                                          const struct exec_view *data)
{
    struct whole_steps job = { .dst = dst, .data = data };

    VTRN_TRY(read_steps(core, inst, dst->parts, false, &job));
    exec_for_partitions(core, dst->parts, dst->elems * 4, scalar_word_rows, &job);
    return VTRN_OK;
}
