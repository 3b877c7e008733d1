/* Reads the text form of one instruction; the grammar stands in print.c. Any text may come in: the first thing that does
 * not fit is reported with its column, what was found and what is possible there, and nothing is read beyond `length`.
 * Checks no more than the form: whether the instruction is legal is prog/legal.c's work. */
#include "isa/text_int.h"

#include <ctype.h>

enum { TOKEN_MAX = 400 }; /* the longest number: a double of 309 digits */

/* ---------------------------------------------------------------- numbers and names */
static bool is_number_char(char c)
{
    return isalnum((unsigned char)c) || c == '.' || c == '-' || c == '+';
}

static enum vtrn_status parse_num(struct parser *p, struct vtrn_value *value)
{
    char text[TOKEN_MAX + 1], *end;
    size_t length = 0;
    uint64_t bits;

    isa_skip_space(p);
    value->kind = VTRN_V_NUM;
    while (length < TOKEN_MAX && p->at + length < p->end && is_number_char(p->at[length])) {
        text[length] = p->at[length];
        length++;
    }
    text[length] = '\0';
    if (strcmp(text, "nan") == 0) {
        bits = UINT64_C(0x7ff8000000000000);
        p->at += length;
        if (p->at < p->end && *p->at == '(') {
            p->at++;
            for (length = 0; length < 18 && p->at < p->end && isalnum((unsigned char)*p->at); length++) text[length] = *p->at++;
            text[length] = '\0';
            bits = strtoull(text, &end, 16);
            VTRN_TRY(isa_expect(p, ')'));
        }
        memcpy(&value->num, &bits, sizeof bits);
        return value->num != value->num ? VTRN_OK : isa_fail_at(p, p->at, "the bits before this are not those of a NaN");
    }
    value->num = strtod(text, &end);
    if (length == 0 || *end) return isa_fail_at(p, p->at, "a number is expected here");
    value->is_int = text[strspn(text, "-0123456789")] == '\0';
    if (value->is_int && value->num - value->num != 0) return isa_fail_at(p, p->at, "the integer does not fit a double");
    p->at += length;
    return VTRN_OK;
}

static bool named_value(const struct vtrn_operand_info *info, const char *word, size_t length, int64_t *out)
{
    int value = 0;

    switch (info->kind) {
    case VTRN_K_FLAG:
    case VTRN_K_TRI:
        value = length == 4 && memcmp(word, "true", 4) == 0;
        *out = value;
        return value || (length == 5 && memcmp(word, "false", 5) == 0);
    case VTRN_K_ENUM:
        if (!vtrn_enum_value((enum vtrn_enum_set)info->set, word, length, &value)) return false;
        *out = value;
        return true;
    case VTRN_K_ALU: *out = vtrn_alu_by_name(word, length); return *out != VTRN_ALU_NONE;
    case VTRN_K_ACT: *out = vtrn_act_by_name(word, length); return *out != VTRN_ACT_NONE;
    default: return false;
    }
}

static enum vtrn_status parse_int(struct parser *p, const struct vtrn_operand_info *info, struct vtrn_value *value)
{
    size_t length;

    value->kind = VTRN_V_INT;
    if (info->kind == VTRN_K_STRING) return isa_parse_string(p, &value->i);
    if (info->kind == VTRN_K_REG && isa_eat(p, 'r')) value->kind = VTRN_V_REG;
    isa_skip_space(p);
    length = isa_word_length(p);
    if (length && named_value(info, p->at, length, &value->i)) {
        p->at += length;
        return VTRN_OK;
    }
    if (length && isalpha((unsigned char)*p->at)) return isa_fail_at(p, p->at, "the operand has no such value");
    return isa_parse_i64(p, INT64_MIN, INT64_MAX, &value->i);
}

static enum vtrn_status parse_ints(struct parser *p, const struct vtrn_operand_info *info, struct vtrn_value *value)
{
    VTRN_TRY(isa_expect(p, '['));
    value->kind = VTRN_V_INTS;
    value->ints = vtrn_inst_new_ints(p->inst, 0);
    while (!isa_eat(p, ']')) {
        if (value->count) VTRN_TRY(isa_expect(p, ','));
        if (value->count == info->max_count || !vtrn_inst_new_ints(p->inst, 1)) return isa_fail_at(p, p->at, "the list is too long");
        VTRN_TRY(isa_parse_i64(p, INT64_MIN, INT64_MAX, &value->ints[value->count]));
        value->count++;
    }
    return VTRN_OK;
}

static enum vtrn_status parse_value(struct parser *p, const struct vtrn_operand_info *info, struct vtrn_value *value)
{
    const char *at = p->at;

    value->is_int = 0;
    value->count = 0;
    if (isa_eat_word(p, "absent")) {
        value->kind = VTRN_V_NONE;
        return VTRN_OK;
    }
    switch (info->kind) {
    case VTRN_K_TENSOR: value->kind = VTRN_V_AP; return isa_parse_ap(p, &value->ap);
    case VTRN_K_TENSORS: return isa_parse_aps(p, info, value);
    case VTRN_K_TENSOR_OR_NUM:
    case VTRN_K_SCALAR:
        if (isa_peek(p) != '%') return parse_num(p, value);
        value->kind = VTRN_V_AP;
        return isa_parse_ap(p, &value->ap);
    case VTRN_K_NUM: return parse_num(p, value);
    case VTRN_K_INTS: return parse_ints(p, info, value);
    case VTRN_K_ENGINE: return isa_fail_at(p, at, "the engine is the first word of the line");
    default: return parse_int(p, info, value);
    }
}

/* ---------------------------------------------------------------- the line */
static enum vtrn_status no_such_operand(struct parser *p, size_t length)
{
    const struct vtrn_op_info *row = &vtrn_ops[p->inst->op];
    char what[512];
    int used = snprintf(what, sizeof what, "%s has operands", row->name);

    for (int i = 0; i < row->operands && used < (int)sizeof what; i++)
        if (row->operand[i].kind != VTRN_K_ENGINE)
            used += snprintf(what + used, sizeof what - (size_t)used, "%s %s", i ? "," : "", row->operand[i].name);
    return isa_fail_at(p, p->at, length ? what : "operand=value is expected here");
}

static enum vtrn_status parse_named(struct parser *p, uint32_t *seen)
{
    const struct vtrn_op_info *row = &vtrn_ops[p->inst->op];
    size_t length = isa_word_length(p);
    int64_t number;
    int i = 0;

    while (i < row->operands && (strlen(row->operand[i].name) != length || memcmp(row->operand[i].name, p->at, length) != 0)) i++;
    if (i < row->operands) {
        if (*seen >> i & 1) return isa_fail_at(p, p->at, "the operand is there already");
        *seen |= 1u << i;
        p->operand = row->operand[i].name;
        p->at += length;
        VTRN_TRY(isa_expect(p, '='));
        isa_skip_space(p);
        return parse_value(p, &row->operand[i], &p->inst->arg[i]);
    }
    if (isa_eat_word(p, "name")) {
        VTRN_TRY(isa_expect(p, '='));
        VTRN_TRY(isa_parse_string(p, &number));
        if (number < 0 || number > UINT32_MAX) return isa_fail_at(p, p->at, "the number of the string before this is not in 0..4294967295");
        p->inst->name = (uint32_t)number;
        return VTRN_OK;
    }
    if (isa_eat_word(p, "flags")) {
        VTRN_TRY(isa_expect(p, '='));
        VTRN_TRY(isa_parse_i64(p, 0, UINT16_MAX, &number));
        p->inst->flags = (uint16_t)number;
        return VTRN_OK;
    }
    return no_such_operand(p, length);
}

static enum vtrn_status parse_head(struct parser *p)
{
    enum vtrn_opcode op;
    size_t length;
    int engine;

    isa_skip_space(p);
    length = isa_word_length(p);
    if (!vtrn_enum_value(VTRN_ENUMS_ENGINE, p->at, length, &engine))
        return isa_fail_at(p, p->at, "a line starts with an engine: tensor, vector, scalar, gpsimd, dma, sync, unknown");
    p->at += length;
    isa_skip_space(p);
    length = isa_word_length(p);
    op = vtrn_op_by_name(p->at, length);
    if (op == VTRN_OP_NONE) return isa_fail_at(p, p->at, "no such instruction");
    p->at += length;
    vtrn_inst_init(p->inst, op);
    p->inst->engine = (uint8_t)engine;
    return VTRN_OK;
}

enum vtrn_status vtrn_inst_parse(const char *text, size_t length, const struct vtrn_text_names *names,
                                 struct vtrn_inst *inst, struct vtrn_error *err)
{
    struct parser p = { .start = text, .at = text, .end = text + length, .names = names, .inst = inst, .err = err };
    uint32_t seen = 0;
    int64_t number;

    while (p.end > text && (p.end[-1] == '\n' || p.end[-1] == '\r')) p.end--;
    VTRN_TRY(parse_head(&p));
    while (!isa_at_end(&p)) {
        p.operand = NULL;
        if (isa_eat(&p, '@')) {
            VTRN_TRY(isa_parse_i64(&p, 0, UINT32_MAX, &number));
            inst->loc = (uint32_t)number;
        } else {
            VTRN_TRY(parse_named(&p, &seen));
        }
        if (p.at < p.end && *p.at != ' ' && *p.at != '\t' && !isa_at_end(&p)) return isa_fail_at(&p, p.at, "a space is expected here");
    }
    return VTRN_OK;
}
