/* The wire form of an instruction: what programs hold in memory and in files. Encoder and decoder walk the operands in
 * the order of the row, with one form per kind of value, so no instruction has code of its own here. The executor decodes
 * every instruction as it runs, hence the fixed layouts and the few branches; the decoder is total: it accepts the forms
 * below (the encoder writes the shortest) and answers FORMAT to any other bytes. Whether the instruction is legal for a target and a
 * tensor table is not known here (prog/legal.c).
 *
 * 32-bit little-endian words. A row's operand that is as vtrn_inst_init leaves it (absent, or at its default) costs one
 * bit; the others follow in row order, each led by a tag word.
 *
 *            31          16 15   14   13   12 11   8 7       0
 *   word 0  |    length    |  0 |flg|name|loc |engine| opcode |   length in words, this one included
 *   word 1  |       0      |       operands that follow       |   bit i: operand i of the row
 *   then, where their bit is set:  loc, name, flags              one word each
 *
 *   tag     |          31 .. 8            |7 6| 5 |4   3|2   0|
 *    NONE 0 |             0               | 0 | 0 |  0  |kind |   absent, where the row has a default
 *    NUM  3 |             0               | 0 |int|width|kind |   width 0: fp32 bits in 1 word; 1: fp64 bits in 2
 *    INT  4 |  value (width 0, signed)    | 0 | 0 |width|kind |   width 1: int32 in 1 word; 2: int64 in 2
 *    REG  5 |           as INT            | 0 | 0 |width|kind |
 *    INTS 6 | count (31..16), 0           | 0 | 0 |width|kind |   width 1: count x 1 word; 2: count x 2
 *    APS  2 | count (31..16), 0           | 0 | 0 |  0  |kind |   then count tagged APs
 *    AP   1 | part0 (31..16) |dtype 15..11|ndyn 10..9|ndim 8..5|width 4..3|kind|
 *             tensor; offset; then ndim dimensions, then ndyn dynamic parts
 *             width 0: offset int32, a dimension is count << 16 | stride (uint16, int16)
 *             width 1: offset int32, a dimension is stride, count (int32)
 *             width 2: offset, stride, count int64
 *    dyn    | part0 (31..16) |dtype 15..9|fields 8..4|wide 3|kind 2..0|
 *             ref; then of offset, stride, count, scale, limit those whose field bit is set: int32, or int64 when wide
 *
 * int64 and fp64 are two words, low first. Bits marked 0 must be 0. */
#include "isa/isa.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "wire words are little-endian and are read as they lie in memory");
_Static_assert(VTRN_DT_COUNT <= 32, "an AP's dtype has five bits");
_Static_assert(VTRN_MAX_OPERANDS <= 16, "word 1 has a bit per operand");

enum { HAS_LOC = 1 << 12, HAS_NAME = 1 << 13, HAS_FLAGS = 1 << 14, HEAD_ZERO = 1 << 15, HEAD_WORDS = 2 };
enum { NUM_IS_INT = 1 << 5 };
enum { W_INLINE = 0, W_ONE = 1, W_TWO = 2 }; /* width field */
enum { DYN_WIDE = 1 << 3, DYN_FIELDS = 5 };
enum {
    AP_WORDS = 1 + 1 + 2 + VTRN_AP_DIMS * 4,
    DYN_WORDS = 2 + DYN_FIELDS * 2,
    MAX_WORDS =
        HEAD_WORDS + 3 + VTRN_MAX_OPERANDS * AP_WORDS + VTRN_INST_APS * AP_WORDS + VTRN_INST_DYNS * DYN_WORDS + VTRN_INST_INTS * 2,
};
_Static_assert(MAX_WORDS < 1 << 16, "the length has 16 bits");

/* Which kinds of value an operand of each kind may hold. Absent is always possible on the wire. */
#define MAY(kind) (1 << VTRN_V_##kind)
static const uint8_t may_hold[] = {
    [VTRN_K_TENSOR] = MAY(AP),
    [VTRN_K_TENSORS] = MAY(APS),
    [VTRN_K_TENSOR_OR_NUM] = MAY(AP) | MAY(NUM),
    [VTRN_K_SCALAR] = MAY(AP) | MAY(NUM),
    [VTRN_K_NUM] = MAY(NUM),
    [VTRN_K_INT] = MAY(INT),
    [VTRN_K_REG] = MAY(REG) | MAY(INT),
    [VTRN_K_FLAG] = MAY(INT),
    [VTRN_K_TRI] = MAY(INT),
    [VTRN_K_ENUM] = MAY(INT),
    [VTRN_K_ALU] = MAY(INT),
    [VTRN_K_ACT] = MAY(INT),
    [VTRN_K_INTS] = MAY(INTS),
    [VTRN_K_ENGINE] = 0,
    [VTRN_K_STRING] = MAY(INT),
};
#undef MAY

static bool may_be(const struct vtrn_operand_info *info, unsigned kind)
{
    return kind == VTRN_V_NONE || (may_hold[info->kind] >> kind & 1);
}

/* Finite and without a fraction; doubles from 2^53 on have none. */
static bool is_whole(double num)
{
    if (!(num < 0x1p53 && num > -0x1p53)) return num - num == 0; /* inf and NaN are not whole */
    return num == (double)(int64_t)num;
}

/* Which of offset, stride, count, scale, limit (bits 0..4) a dynamic part has. */
static unsigned dyn_fields(unsigned kind)
{
    static const uint8_t fields[] = {
        [VTRN_DYN_REG] = 0x18,
        [VTRN_DYN_SCALAR] = 0x19,
        [VTRN_DYN_VECTOR] = 0x1f,
        [VTRN_DYN_INDIRECT] = 0x1f,
    };

    return fields[kind];
}

/* ---------------------------------------------------------------- encoding
 * Writers take the place of the next word and return the one after theirs; NULL: the operand has no wire form, and
 * writer.status and the message say why. The place stays in a register, which is most of the speed here. */
struct writer {
    int dyns, aps, ints; /* what the decoded instruction will need room for */
    const char *op, *operand;
    struct vtrn_error *err;
    enum vtrn_status status;
};

#define REFUSE_IF(cond, out, code, fmt, ...) \
    do { \
        if (VTRN_UNLIKELY(cond)) { \
            (out)->status = vtrn_fail((out)->err, (code), "%s: operand %s: " fmt, (out)->op, (out)->operand, __VA_ARGS__); \
            return NULL; \
        } \
    } while (0)

static inline uint32_t *put64(uint32_t *at, uint64_t bits)
{
    at[0] = (uint32_t)bits;
    at[1] = (uint32_t)(bits >> 32);
    return at + 2;
}

static inline bool is_i32(int64_t value) { return value == (int32_t)value; }

static uint32_t *put_int(uint32_t *at, unsigned kind, int64_t value)
{
    if (value >= -(1 << 23) && value < 1 << 23) {
        *at++ = kind | (uint32_t)value << 8;
        return at;
    }
    if (is_i32(value)) {
        *at++ = kind | W_ONE << 3;
        *at++ = (uint32_t)value;
        return at;
    }
    *at++ = kind | W_TWO << 3;
    return put64(at, (uint64_t)value);
}

static uint32_t *put_num(struct writer *out, uint32_t *at, const struct vtrn_value *value)
{
    uint32_t tag = VTRN_V_NUM | (value->is_int ? NUM_IS_INT : 0);
    float single = (float)value->num;
    double back = single;
    uint64_t bits;

    REFUSE_IF(value->is_int && !is_whole(value->num), out, VTRN_INVALID, "marked as an integer, but is %g", value->num);
    if (memcmp(&back, &value->num, sizeof back) == 0) {
        *at++ = tag;
        memcpy(at, &single, sizeof single);
        return at + 1;
    }
    memcpy(&bits, &value->num, sizeof bits);
    *at++ = tag | W_ONE << 3;
    return put64(at, bits);
}

static uint32_t *put_dyn(struct writer *out, uint32_t *at, const struct vtrn_dyn *dyn)
{
    const int64_t field[DYN_FIELDS] = { dyn->offset, dyn->stride, dyn->count, dyn->scale, dyn->limit };
    uint32_t *tag = at;
    unsigned present = 0, wide = 0, has;

    REFUSE_IF(dyn->kind < VTRN_DYN_REG || dyn->kind > VTRN_DYN_INDIRECT || dyn->dtype >= VTRN_DT_COUNT ||
                  (dyn->kind != VTRN_DYN_REG && dyn->dtype == VTRN_DT_NONE),
              out, VTRN_INVALID, "no such dynamic part (kind %d, dtype %d)", dyn->kind, dyn->dtype);
    has = dyn_fields(dyn->kind);
    for (int i = 0; i < DYN_FIELDS; i++) {
        if (field[i] == 0 || !(has >> i & 1)) continue;
        present |= 1u << i;
        if (!is_i32(field[i])) wide = DYN_WIDE;
    }
    at[1] = dyn->ref;
    at += 2;
    for (int i = 0; i < DYN_FIELDS; i++) {
        if (!(present >> i & 1)) continue;
        if (wide) at = put64(at, (uint64_t)field[i]);
        else *at++ = (uint32_t)field[i];
    }
    *tag = dyn->kind | wide | present << 4;
    if (dyn->kind != VTRN_DYN_REG) *tag |= (uint32_t)dyn->dtype << 9 | (uint32_t)dyn->part0 << 16;
    return at;
}

static unsigned ap_width(const struct vtrn_ap *ap)
{
    unsigned width = is_i32(ap->offset) ? 0 : 2;

    for (int i = 0; i < ap->ndim; i++) {
        int64_t stride = ap->dim[i].stride, count = ap->dim[i].count;

        if (stride == (int16_t)stride && count == (uint16_t)count) continue;
        if (!is_i32(stride) || !is_i32(count)) return 2;
        width |= 1;
    }
    return width & 2 ? 2 : width;
}

static uint32_t *put_dims(uint32_t *at, unsigned width, const struct vtrn_ap *ap)
{
    if (width == 2) at = put64(at, (uint64_t)ap->offset);
    else *at++ = (uint32_t)ap->offset;
    for (int i = 0; i < ap->ndim; i++) {
        int64_t stride = ap->dim[i].stride, count = ap->dim[i].count;

        if (width == 0) {
            *at++ = (uint32_t)(uint16_t)stride | (uint32_t)count << 16;
        } else if (width == 1) {
            *at++ = (uint32_t)stride;
            *at++ = (uint32_t)count;
        } else {
            at = put64(put64(at, (uint64_t)stride), (uint64_t)count);
        }
    }
    return at;
}

static uint32_t *put_ap(struct writer *out, uint32_t *at, const struct vtrn_ap *ap)
{
    unsigned width;

    REFUSE_IF(ap->ndim < 1 || ap->ndim > VTRN_AP_DIMS || ap->ndyn > VTRN_AP_DYNS, out, VTRN_INVALID,
              "%d dimensions and %d dynamic parts; 1..%d and 0..%d are possible", ap->ndim, ap->ndyn, VTRN_AP_DIMS, VTRN_AP_DYNS);
    REFUSE_IF(ap->dtype == VTRN_DT_NONE || ap->dtype >= VTRN_DT_COUNT, out, VTRN_INVALID, "no such dtype (%d)", ap->dtype);
    out->dyns += ap->ndyn;
    REFUSE_IF(out->dyns > VTRN_INST_DYNS, out, VTRN_LIMIT, "more than %d dynamic parts in an instruction", VTRN_INST_DYNS);
    width = ap_width(ap);
    *at++ = VTRN_V_AP | width << 3 | (uint32_t)ap->ndim << 5 | (uint32_t)ap->ndyn << 9 | (uint32_t)ap->dtype << 11 |
            (uint32_t)ap->part0 << 16;
    *at++ = ap->tensor;
    at = put_dims(at, width, ap);
    for (int i = 0; at && i < ap->ndyn; i++) at = put_dyn(out, at, &ap->dyn[i]);
    return at;
}

static uint32_t *put_aps(struct writer *out, uint32_t *at, const struct vtrn_value *value, const struct vtrn_operand_info *info)
{
    out->aps += value->count;
    REFUSE_IF(value->count > info->max_count || out->aps > VTRN_INST_APS, out, VTRN_LIMIT, "%d tensors > %d", value->count,
              info->max_count);
    *at++ = VTRN_V_APS | (uint32_t)value->count << 16;
    for (int i = 0; at && i < value->count; i++) at = put_ap(out, at, &value->aps[i]);
    return at;
}

static uint32_t *put_ints(struct writer *out, uint32_t *at, const struct vtrn_value *value, const struct vtrn_operand_info *info)
{
    unsigned width = W_ONE;

    out->ints += value->count;
    REFUSE_IF(value->count > info->max_count || out->ints > VTRN_INST_INTS, out, VTRN_LIMIT, "%d integers > %d", value->count,
              info->max_count);
    for (int i = 0; i < value->count; i++)
        if (!is_i32(value->ints[i])) width = W_TWO;
    *at++ = VTRN_V_INTS | width << 3 | (uint32_t)value->count << 16;
    for (int i = 0; i < value->count; i++) {
        if (width == W_TWO) at = put64(at, (uint64_t)value->ints[i]);
        else *at++ = (uint32_t)value->ints[i];
    }
    return at;
}

static uint32_t *put_value(struct writer *out, uint32_t *at, const struct vtrn_value *value, const struct vtrn_operand_info *info)
{
    out->operand = info->name;
    REFUSE_IF(value->kind > VTRN_V_INTS || !may_be(info, value->kind), out, VTRN_INVALID, "cannot hold a value of kind %d",
              value->kind);
    switch (value->kind) {
    case VTRN_V_AP: return put_ap(out, at, &value->ap);
    case VTRN_V_INT:
    case VTRN_V_REG: return put_int(at, value->kind, value->i);
    case VTRN_V_NUM: return put_num(out, at, value);
    case VTRN_V_INTS: return put_ints(out, at, value, info);
    case VTRN_V_APS: return put_aps(out, at, value, info);
    default: *at++ = VTRN_V_NONE; return at;
    }
}

enum vtrn_status vtrn_inst_encode(const struct vtrn_inst *inst, struct vtrn_buf *out, struct vtrn_error *err)
{
    const struct vtrn_op_info *row = &vtrn_ops[inst->op];
    uint32_t words[MAX_WORDS], head = (uint32_t)inst->op | (uint32_t)inst->engine << 8, present = 0;
    struct writer writer = { .op = row->name, .err = err };
    uint32_t *at = words + HEAD_WORDS;
    size_t length;

    VTRN_FAIL_IF(!row->name, err, VTRN_INVALID, "no instruction has code 0x%02x", inst->op);
    VTRN_FAIL_IF(inst->engine >= VTRN_ENGINES, err, VTRN_INVALID, "%s: no such engine (%d)", row->name, inst->engine);
    if (inst->loc) {
        head |= HAS_LOC;
        *at++ = inst->loc;
    }
    if (inst->name) {
        head |= HAS_NAME;
        *at++ = inst->name;
    }
    if (inst->flags) {
        head |= HAS_FLAGS;
        *at++ = inst->flags;
    }
    for (int i = 0; i < row->operands; i++) {
        if (vtrn_value_is_initial(&inst->arg[i], &row->operand[i])) continue;
        present |= 1u << i;
        at = put_value(&writer, at, &inst->arg[i], &row->operand[i]);
        if (VTRN_UNLIKELY(!at)) return writer.status;
    }
    length = (size_t)(at - words);
    words[0] = head | (uint32_t)length << 16;
    words[1] = present;
    VTRN_FAIL_IF(vtrn_buf_append(out, words, length * sizeof words[0]) < 0, err, VTRN_NOMEM, "no memory for an instruction");
    return VTRN_OK;
}

/* ---------------------------------------------------------------- decoding
 * Readers take the place of the next word and return the one after theirs; NULL: malformed, and the message says where.
 * They exist twice from one text: with `checked` for bytes from outside, and without for what the encoder wrote or the
 * checked form accepted, which is most of what is decoded: a program's code, each time it runs. */
struct reader {
    bool checked; /* constant wherever a reader is inlined */
    const uint32_t *start, *end;
    struct vtrn_inst *inst;
    struct vtrn_error *err;
};
#define READER static inline __attribute__((always_inline)) const uint32_t *
#define REJECT_IF(cond, in, at, what) \
    do { \
        if ((in)->checked && VTRN_UNLIKELY(cond)) return malformed((in), (at), (what)); \
    } while (0)

/* Every malformed instruction ends here. */
VTRN_RARE static const uint32_t *malformed(const struct reader *in, const uint32_t *at, const char *what)
{
    vtrn_fail(in->err, VTRN_FORMAT, "instruction %s, word %ld: %s", vtrn_ops[*in->start & 0xff].name, (long)(at - in->start), what);
    return NULL;
}

static inline size_t words_left(const struct reader *in, const uint32_t *at) { return (size_t)(in->end - at); }

static inline int64_t i32_at(const uint32_t *at) { return (int32_t)*at; }

static inline uint64_t u64_at(const uint32_t *at) { return at[0] | (uint64_t)at[1] << 32; }

READER take_int(const struct reader *in, const uint32_t *at, uint32_t tag, struct vtrn_value *value)
{
    unsigned width = tag >> 3 & 3;

    REJECT_IF(tag & 0xe0, in, at, "reserved bits of an integer are not 0");
    if (VTRN_LIKELY(width == W_INLINE)) {
        value->i = (int32_t)tag >> 8;
        return at;
    }
    REJECT_IF(tag >> 8 || width > W_TWO || words_left(in, at) < width, in, at, "an integer of an impossible width");
    value->i = width == W_ONE ? i32_at(at) : (int64_t)u64_at(at);
    return at + width;
}

READER take_num(const struct reader *in, const uint32_t *at, uint32_t tag, struct vtrn_value *value)
{
    unsigned width = tag >> 3 & 3;
    uint64_t bits;
    float single;

    REJECT_IF(tag >> 6 || width > W_ONE || words_left(in, at) < width + 1, in, at, "a number of an impossible width");
    value->is_int = (tag & NUM_IS_INT) != 0;
    if (width == 0) {
        memcpy(&single, at, sizeof single);
        value->num = single;
    } else {
        bits = u64_at(at);
        memcpy(&value->num, &bits, sizeof bits);
    }
    REJECT_IF(value->is_int && !is_whole(value->num), in, at, "a fraction that is marked as an integer");
    return at + width + 1;
}

READER take_dyn(const struct reader *in, const uint32_t *at, struct vtrn_dyn *dyn)
{
    int64_t field[DYN_FIELDS] = { 0 };
    unsigned present, words;
    uint32_t tag;

    REJECT_IF(words_left(in, at) < 2, in, at, "a dynamic part is cut off");
    tag = *at++;
    present = tag >> 4 & 0x1f;
    words = tag & DYN_WIDE ? 2 : 1;
    dyn->kind = tag & 7;
    dyn->dtype = tag >> 9 & 0x7f;
    dyn->part0 = (uint16_t)(tag >> 16);
    dyn->ref = *at++;
    REJECT_IF(dyn->kind < VTRN_DYN_REG || dyn->kind > VTRN_DYN_INDIRECT || dyn->dtype >= VTRN_DT_COUNT ||
                  (present & ~dyn_fields(dyn->kind)) || (dyn->kind == VTRN_DYN_REG ? tag >> 9 != 0 : dyn->dtype == VTRN_DT_NONE),
              in, at, "no such dynamic part");
    for (int i = 0; i < DYN_FIELDS; i++) {
        if (!(present >> i & 1)) continue;
        REJECT_IF(words_left(in, at) < words, in, at, "a dynamic part is cut off");
        field[i] = words == 2 ? (int64_t)u64_at(at) : i32_at(at);
        at += words;
    }
    dyn->offset = field[0];
    dyn->stride = field[1];
    dyn->count = field[2];
    dyn->scale = field[3];
    dyn->limit = field[4];
    return at;
}

READER take_dims(const uint32_t *at, unsigned width, unsigned ndim, struct vtrn_ap *ap)
{
    if (VTRN_LIKELY(width == 0)) {
        ap->offset = i32_at(at++);
        for (unsigned i = 0; i < ndim; i++, at++) {
            ap->dim[i].stride = (int16_t)*at;
            ap->dim[i].count = *at >> 16;
        }
    } else if (width == 1) {
        ap->offset = i32_at(at++);
        for (unsigned i = 0; i < ndim; i++, at += 2) {
            ap->dim[i].stride = i32_at(at);
            ap->dim[i].count = i32_at(at + 1);
        }
    } else {
        ap->offset = (int64_t)u64_at(at);
        at += 2;
        for (unsigned i = 0; i < ndim; i++, at += 4) {
            ap->dim[i].stride = (int64_t)u64_at(at);
            ap->dim[i].count = (int64_t)u64_at(at + 2);
        }
    }
    return at;
}

READER take_ap(const struct reader *in, const uint32_t *at, uint32_t tag, struct vtrn_ap *ap)
{
    unsigned width = tag >> 3 & 3, ndim = tag >> 5 & 15, ndyn = tag >> 9 & 3, dtype = tag >> 11 & 31;
    size_t need = 1 + (width == 2 ? 2 : 1) + ((size_t)ndim << width);

    REJECT_IF(width > 2 || ndim < 1 || ndim > VTRN_AP_DIMS || dtype == VTRN_DT_NONE || dtype >= VTRN_DT_COUNT, in, at,
              "no such access pattern");
    REJECT_IF(words_left(in, at) < need, in, at, "an access pattern is cut off");
    ap->dtype = (uint8_t)dtype;
    ap->ndim = (uint8_t)ndim;
    ap->ndyn = (uint8_t)ndyn;
    ap->reserved = 0;
    ap->part0 = (uint16_t)(tag >> 16);
    ap->tensor = *at;
    ap->dyn = NULL;
    at = take_dims(at + 1, width, ndim, ap);
    if (VTRN_LIKELY(ndyn == 0)) return at;
    ap->dyn = vtrn_inst_new_dyns(in->inst, (int)ndyn);
    REJECT_IF(!ap->dyn, in, at, "too many dynamic parts");
    for (unsigned i = 0; at && i < ndyn; i++) at = take_dyn(in, at, &ap->dyn[i]);
    return at;
}

READER take_aps(const struct reader *in, const uint32_t *at, uint32_t tag, const struct vtrn_operand_info *info,
                struct vtrn_value *value)
{
    REJECT_IF(tag & 0xfff8 || tag >> 16 > info->max_count, in, at, "no such list of tensors");
    value->count = (uint16_t)(tag >> 16);
    value->aps = vtrn_inst_new_aps(in->inst, value->count);
    REJECT_IF(!value->aps, in, at, "too many tensors");
    for (int i = 0; at && i < value->count; i++) {
        uint32_t inner = !in->checked || words_left(in, at) ? *at : VTRN_V_NONE;

        REJECT_IF((inner & 7) != VTRN_V_AP, in, at, "a list of tensors is cut off");
        at = take_ap(in, at + 1, inner, &value->aps[i]);
    }
    return at;
}

READER take_ints(const struct reader *in, const uint32_t *at, uint32_t tag, const struct vtrn_operand_info *info,
                 struct vtrn_value *value)
{
    unsigned width = tag >> 3 & 3;

    REJECT_IF(tag & 0xffe0 || width < W_ONE || width > W_TWO || tag >> 16 > info->max_count, in, at, "no such list of integers");
    value->count = (uint16_t)(tag >> 16);
    value->ints = vtrn_inst_new_ints(in->inst, value->count);
    REJECT_IF(!value->ints, in, at, "too many integers");
    REJECT_IF(words_left(in, at) < (size_t)value->count * width, in, at, "a list of integers is cut off");
    for (int i = 0; i < value->count; i++, at += width) value->ints[i] = width == W_ONE ? i32_at(at) : (int64_t)u64_at(at);
    return at;
}

READER take_value(const struct reader *in, const uint32_t *at, const struct vtrn_operand_info *info, struct vtrn_value *value)
{
    uint32_t tag;

    REJECT_IF(at == in->end, in, at, "an operand is missing");
    tag = *at++;
    value->kind = tag & 7;
    value->is_int = 0;
    value->count = 0;
    REJECT_IF(!may_be(info, value->kind), in, at, "an operand of the wrong kind");
    switch (value->kind) {
    case VTRN_V_AP: return take_ap(in, at, tag, &value->ap);
    case VTRN_V_INT:
    case VTRN_V_REG: return take_int(in, at, tag, value);
    case VTRN_V_NUM: return take_num(in, at, tag, value);
    case VTRN_V_INTS: return take_ints(in, at, tag, info, value);
    case VTRN_V_APS: return take_aps(in, at, tag, info, value);
    default: REJECT_IF(tag != VTRN_V_NONE, in, at, "reserved bits are not 0"); return at;
    }
}

READER take_head(const struct reader *in, const uint32_t *at, uint32_t head, struct vtrn_inst *inst)
{
    uint32_t extra[3] = { 0 }; /* loc, name, flags */

    for (int i = 0; i < 3; i++) {
        if (!(head & (uint32_t)HAS_LOC << i)) continue;
        REJECT_IF(at == in->end, in, at, "the head is cut off");
        extra[i] = *at++;
    }
    REJECT_IF(extra[2] > UINT16_MAX, in, at, "flags beyond 16 bits");
    inst->loc = extra[0];
    inst->name = extra[1];
    inst->flags = (uint16_t)extra[2];
    return at;
}

size_t vtrn_inst_length(const uint32_t *words, size_t size_words)
{
    size_t length = size_words >= HEAD_WORDS ? words[0] >> 16 : 0;

    return length >= HEAD_WORDS && length <= size_words && vtrn_ops[words[0] & 0xff].name ? length : 0;
}

uint32_t vtrn_inst_loc(const uint32_t *words) { return words[0] & HAS_LOC ? words[HEAD_WORDS] : 0; }

static enum vtrn_status no_instruction(const uint32_t *words, size_t size_words, struct vtrn_error *err)
{
    unsigned code = size_words ? words[0] & 0xff : 0;
    const char *retired = vtrn_op_retired((int)code);

    VTRN_FAIL_IF(size_words < HEAD_WORDS, err, VTRN_FORMAT, "the code ends inside an instruction");
    VTRN_FAIL_IF(retired, err, VTRN_FORMAT, "instruction code 0x%02x (%s) is retired; make the program anew", code, retired);
    VTRN_FAIL_IF(!vtrn_ops[code].name, err, VTRN_FORMAT, "no instruction has code 0x%02x", code);
    return vtrn_fail(err, VTRN_FORMAT, "instruction %s: length %u, but %zu words are left", vtrn_ops[code].name,
                     (unsigned)(words[0] >> 16), size_words);
}

READER take_inst(const struct reader *in, uint32_t head, uint32_t present)
{
    const struct vtrn_op_info *row = &vtrn_ops[head & 0xff];
    struct vtrn_inst *inst = in->inst;
    const uint32_t *at = in->start + HEAD_WORDS;

    inst->op = (uint8_t)head;
    inst->engine = head >> 8 & 15;
    inst->ndyns = inst->naps = inst->nints = 0;
    REJECT_IF(inst->engine >= VTRN_ENGINES || (head & HEAD_ZERO) || present >> row->operands, in, in->start, "no such head");
    at = take_head(in, at, head, inst);
    for (int i = 0; at && i < row->operands; i++, present >>= 1) {
        if (present & 1) at = take_value(in, at, &row->operand[i], &inst->arg[i]);
        else vtrn_value_init(&inst->arg[i], &row->operand[i]);
    }
    return at;
}

enum vtrn_status vtrn_inst_decode(const uint32_t *words, size_t size_words, struct vtrn_inst *inst, size_t *words_out,
                                  struct vtrn_error *err)
{
    size_t length = vtrn_inst_length(words, size_words);
    const struct reader in = { .checked = true, .start = words, .end = words + length, .inst = inst, .err = err };
    const uint32_t *at;

    if (VTRN_UNLIKELY(length == 0)) return no_instruction(words, size_words, err);
    at = take_inst(&in, words[0], words[1]);
    if (VTRN_LIKELY(at == in.end)) {
        *words_out = length;
        return VTRN_OK;
    }
    if (at) malformed(&in, at, "words after the last operand");
    return VTRN_FORMAT;
}

void vtrn_inst_decode_own(const uint32_t *words, struct vtrn_inst *inst)
{
    const struct reader in = { .checked = false, .start = words, .inst = inst };

    (void)take_inst(&in, words[0], words[1]);
}
