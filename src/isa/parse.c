/* Reads the text form of one instruction; the grammar stands in print.c. Any text may come in: the first thing that does
 * not fit is reported with its column, what was found and what is possible there, and nothing is read beyond `length`.
 * Checks no more than the form: whether the instruction is legal is prog/legal.c's work. */
#include "isa/isa.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>

struct parser {
    const char *start, *at, *end;
    const struct vtrn_text_names *names;
    struct vtrn_inst *inst;
    const char *operand; /* whose value is being read */
    struct vtrn_error *err;
};

/* ---------------------------------------------------------------- tokens */
enum { TOKEN_MAX = 400 }; /* the longest number: a double of 309 digits */

static enum vtrn_status fail_at(struct parser *p, const char *at, const char *what)
{
    size_t length = (size_t)(p->end - at);
    bool cut = length > 24;

    return vtrn_fail(p->err, VTRN_FORMAT, "column %zu%s%s: found \"%.*s%s\"; %s", (size_t)(at - p->start) + 1,
                     p->operand ? ", operand " : "", p->operand ? p->operand : "", cut ? 24 : (int)length, at, cut ? "..." : "", what);
}

static void skip_space(struct parser *p)
{
    while (p->at < p->end && (*p->at == ' ' || *p->at == '\t')) p->at++;
}

static bool at_end(struct parser *p)
{
    skip_space(p);
    return p->at == p->end || *p->at == '#';
}

/* The next character after spaces, '\0' at the end. */
static char peek(struct parser *p)
{
    skip_space(p);
    return p->at < p->end ? *p->at : '\0';
}

static bool eat(struct parser *p, char c)
{
    if (peek(p) != c || p->at == p->end) return false;
    p->at++;
    return true;
}

static enum vtrn_status expect(struct parser *p, char c)
{
    char what[] = "'?' is expected here";

    what[1] = c;
    return eat(p, c) ? VTRN_OK : fail_at(p, p->at, what);
}

static size_t word_length(struct parser *p)
{
    const char *c = p->at;

    while (c < p->end && (isalnum((unsigned char)*c) || *c == '_')) c++;
    return (size_t)(c - p->at);
}

static bool eat_word(struct parser *p, const char *word)
{
    size_t length;

    skip_space(p);
    length = word_length(p);
    if (length != strlen(word) || memcmp(p->at, word, length) != 0) return false;
    p->at += length;
    return true;
}

static enum vtrn_status parse_i64(struct parser *p, int64_t min, int64_t max, int64_t *out)
{
    char text[24];
    size_t length = 0;
    long long value;
    const char *at;

    skip_space(p);
    at = p->at;
    if (at < p->end && *at == '-') text[length++] = *at++;
    while (at < p->end && isdigit((unsigned char)*at) && length < sizeof text - 1) text[length++] = *at++;
    text[length] = '\0';
    if (length == 0 || !isdigit((unsigned char)text[length - 1])) return fail_at(p, p->at, "an integer is expected here");
    errno = 0;
    value = strtoll(text, NULL, 10);
    if (errno || value < min || value > max || (at < p->end && isdigit((unsigned char)*at))) {
        char what[96];

        snprintf(what, sizeof what, "the integer must be in %" PRId64 "..%" PRId64, min, max);
        return fail_at(p, p->at, what);
    }
    p->at = at;
    *out = value;
    return VTRN_OK;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

/* A quoted text without its escapes. The caller finishes `out` in every case. */
static enum vtrn_status parse_quoted(struct parser *p, struct vtrn_buf *out)
{
    const char *start = p->at;

    VTRN_TRY(expect(p, '"'));
    while (p->at < p->end && *p->at != '"') {
        char c = *p->at++;

        if (c == '\\') {
            c = p->at < p->end ? *p->at++ : '\0';
            if (c == 'n') c = '\n';
            else if (c == 't') c = '\t';
            else if (c == 'x' && p->end - p->at >= 2 && hex_digit(p->at[0]) >= 0 && hex_digit(p->at[1]) >= 0) {
                c = (char)(hex_digit(p->at[0]) << 4 | hex_digit(p->at[1]));
                p->at += 2;
            } else if (c != '"' && c != '\\') return fail_at(p, p->at - 1, "escapes are \\\" \\\\ \\n \\t and \\xNN");
        }
        if (c == '\0') return fail_at(p, p->at - 1, "a string cannot hold a zero byte");
        if (vtrn_buf_append(out, &c, 1) < 0) return vtrn_fail(p->err, VTRN_NOMEM, "no memory for a string");
    }
    if (p->at == p->end) return fail_at(p, start, "the string has no end");
    p->at++;
    return VTRN_OK;
}

/* "text", by way of the program's table, or $N. */
static enum vtrn_status parse_string(struct parser *p, int64_t *index_out)
{
    const char *at = p->at;
    struct vtrn_buf text = { 0 };
    uint32_t index = 0;
    bool known = false;
    enum vtrn_status status;

    if (eat(p, '$')) return parse_i64(p, INT64_MIN, INT64_MAX, index_out);
    if (peek(p) != '"') return fail_at(p, p->at, "a \"string\" or $N is expected here");
    status = parse_quoted(p, &text);
    if (status >= 0 && p->names && p->names->string_index) /* the table belongs to the caller, who may write it */
        known = p->names->string_index((void *)(uintptr_t)p->names->self, text.data ? (const char *)text.data : "", text.size, &index);
    vtrn_buf_fini(&text);
    VTRN_TRY(status);
    if (!known) return fail_at(p, at, "the string table does not take this string");
    *index_out = index;
    return VTRN_OK;
}

/* ---------------------------------------------------------------- patterns */
static enum vtrn_status find_tensor(struct parser *p, const char *at, const char *name, size_t length, uint32_t *tensor_out)
{
    bool known = p->names && p->names->tensor_index && p->names->tensor_index(p->names->self, name, length, tensor_out);

    return known ? VTRN_OK : fail_at(p, at, "no tensor has this name");
}

static enum vtrn_status parse_tensor(struct parser *p, uint32_t *tensor_out)
{
    struct vtrn_buf name = { 0 };
    enum vtrn_status status;
    const char *at;
    int64_t number;

    skip_space(p);
    at = p->at;
    if (!eat(p, '%')) return fail_at(p, p->at, "a tensor (%name) is expected here");
    if (p->at < p->end && isdigit((unsigned char)*p->at)) {
        VTRN_TRY(parse_i64(p, 0, UINT32_MAX, &number));
        *tensor_out = (uint32_t)number;
        return VTRN_OK;
    }
    if (p->at < p->end && *p->at == '"') {
        status = parse_quoted(p, &name);
        if (status >= 0) status = find_tensor(p, at, name.data ? (const char *)name.data : "", name.size, tensor_out);
        vtrn_buf_fini(&name);
        return status;
    }
    at = p->at;
    while (p->at < p->end && (isalnum((unsigned char)*p->at) || *p->at == '_' || *p->at == '.')) p->at++;
    return find_tensor(p, at, at, (size_t)(p->at - at), tensor_out);
}

static enum vtrn_status parse_dtype(struct parser *p, uint8_t *dtype_out)
{
    size_t length;

    skip_space(p);
    length = word_length(p);
    *dtype_out = vtrn_dtype_by_text(p->at, length);
    if (*dtype_out == VTRN_DT_NONE) return fail_at(p, p->at, "a dtype (f32, bf16, i32, ...) is expected here");
    p->at += length;
    return VTRN_OK;
}

/* "+" stride "x" count */
static enum vtrn_status parse_dim(struct parser *p, int64_t *stride_out, int64_t *count_out)
{
    VTRN_TRY(expect(p, '+'));
    VTRN_TRY(parse_i64(p, INT64_MIN, INT64_MAX, stride_out));
    VTRN_TRY(expect(p, 'x'));
    return parse_i64(p, INT64_MIN, INT64_MAX, count_out);
}

static enum vtrn_status parse_scale(struct parser *p, struct vtrn_dyn *dyn)
{
    VTRN_TRY(expect(p, '*'));
    VTRN_TRY(parse_i64(p, INT64_MIN, INT64_MAX, &dyn->scale));
    return eat(p, '<') ? parse_i64(p, INT64_MIN, INT64_MAX, &dyn->limit) : VTRN_OK;
}

static enum vtrn_status parse_dyn(struct parser *p, struct vtrn_dyn *dyn)
{
    int64_t number;

    *dyn = (struct vtrn_dyn){ 0 };
    dyn->kind = eat_word(p, "scalar")     ? VTRN_DYN_SCALAR
                : eat_word(p, "vector")   ? VTRN_DYN_VECTOR
                : eat_word(p, "indirect") ? VTRN_DYN_INDIRECT
                                          : VTRN_DYN_REG;
    if (dyn->kind == VTRN_DYN_REG) {
        if (!eat(p, 'r')) return fail_at(p, p->at, "rN, scalar, vector or indirect is expected here");
        VTRN_TRY(parse_i64(p, 0, UINT32_MAX, &number));
        dyn->ref = (uint32_t)number;
        return parse_scale(p, dyn);
    }
    VTRN_TRY(parse_tensor(p, &dyn->ref));
    VTRN_TRY(expect(p, ':'));
    VTRN_TRY(parse_dtype(p, &dyn->dtype));
    VTRN_TRY(expect(p, '['));
    VTRN_TRY(parse_i64(p, 0, UINT16_MAX, &number));
    dyn->part0 = (uint16_t)number;
    VTRN_TRY(expect(p, ';'));
    VTRN_TRY(parse_i64(p, INT64_MIN, INT64_MAX, &dyn->offset));
    if (dyn->kind != VTRN_DYN_SCALAR) VTRN_TRY(parse_dim(p, &dyn->stride, &dyn->count));
    VTRN_TRY(expect(p, ']'));
    return parse_scale(p, dyn);
}

static enum vtrn_status parse_dyns(struct parser *p, struct vtrn_ap *ap)
{
    struct vtrn_dyn dyn[VTRN_AP_DYNS];

    while (eat(p, '|')) {
        if (ap->ndyn == VTRN_AP_DYNS) return fail_at(p, p->at, "a pattern has at most 3 dynamic parts");
        VTRN_TRY(parse_dyn(p, &dyn[ap->ndyn]));
        ap->ndyn++;
    }
    if (ap->ndyn == 0) return VTRN_OK;
    ap->dyn = vtrn_inst_new_dyns(p->inst, ap->ndyn);
    if (!ap->dyn) return fail_at(p, p->at, "an instruction has at most 8 dynamic parts");
    memcpy(ap->dyn, dyn, ap->ndyn * sizeof dyn[0]);
    return VTRN_OK;
}

/* "first:end;", "first+stride x count;", or no partitions: then the number was the offset. */
static enum vtrn_status parse_parts(struct parser *p, struct vtrn_ap *ap)
{
    const char *at = p->at;
    int64_t first, end, stride, count;

    VTRN_TRY(parse_i64(p, INT64_MIN, INT64_MAX, &first));
    if (eat(p, ':')) {
        VTRN_TRY(parse_i64(p, first, INT64_MAX, &end));
        stride = 1;
        if (first < 0 || !vtrn_add_i64(end, -first, &count)) return fail_at(p, at, "partitions are first:end");
    } else {
        struct vtrn_dim dim[VTRN_AP_DIMS];
        int ndim = 0;

        while (peek(p) == '+') {
            if (ndim == VTRN_AP_DIMS) return fail_at(p, p->at, "a pattern has at most 8 dimensions");
            VTRN_TRY(parse_dim(p, &dim[ndim].stride, &dim[ndim].count));
            ndim++;
        }
        if (peek(p) != ';' || ndim != 1) { /* HBM */
            ap->offset = first;
            ap->ndim = (uint8_t)ndim;
            memcpy(ap->dim, dim, (size_t)ndim * sizeof dim[0]);
            return ndim ? VTRN_OK : fail_at(p, p->at, "a pattern has at least one dimension (+stride x count)");
        }
        stride = dim[0].stride;
        count = dim[0].count;
    }
    VTRN_TRY(expect(p, ';'));
    if (first < 0 || first > UINT16_MAX) return fail_at(p, at, "the first partition must be in 0..65535");
    ap->part0 = (uint16_t)first;
    ap->dim[0] = (struct vtrn_dim){ stride, count };
    ap->ndim = 1;
    VTRN_TRY(parse_i64(p, INT64_MIN, INT64_MAX, &ap->offset));
    while (peek(p) == '+') {
        if (ap->ndim == VTRN_AP_DIMS) return fail_at(p, p->at, "a pattern has at most 8 dimensions");
        VTRN_TRY(parse_dim(p, &ap->dim[ap->ndim].stride, &ap->dim[ap->ndim].count));
        ap->ndim++;
    }
    return VTRN_OK;
}

static enum vtrn_status parse_ap(struct parser *p, struct vtrn_ap *ap)
{
    const struct vtrn_text_names *names = p->names;
    int dtype = VTRN_DT_NONE;

    *ap = (struct vtrn_ap){ 0 };
    VTRN_TRY(parse_tensor(p, &ap->tensor));
    if (eat(p, ':')) {
        VTRN_TRY(parse_dtype(p, &ap->dtype));
    } else {
        if (names && names->tensor_dtype) dtype = names->tensor_dtype(names->self, ap->tensor);
        if (dtype <= VTRN_DT_NONE || dtype >= VTRN_DT_COUNT) return fail_at(p, p->at, "the pattern needs a dtype (%tensor:dtype[...])");
        ap->dtype = (uint8_t)dtype;
    }
    VTRN_TRY(expect(p, '['));
    VTRN_TRY(parse_parts(p, ap));
    VTRN_TRY(parse_dyns(p, ap));
    return expect(p, ']');
}

static enum vtrn_status parse_aps(struct parser *p, const struct vtrn_operand_info *info, struct vtrn_value *value)
{
    VTRN_TRY(expect(p, '{'));
    value->kind = VTRN_V_APS;
    value->aps = vtrn_inst_new_aps(p->inst, 0);
    while (!eat(p, '}')) {
        if (value->count) VTRN_TRY(expect(p, ','));
        if (value->count == info->max_count || !vtrn_inst_new_aps(p->inst, 1)) return fail_at(p, p->at, "the list is too long");
        VTRN_TRY(parse_ap(p, &value->aps[value->count]));
        value->count++;
    }
    return VTRN_OK;
}

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

    skip_space(p);
    value->kind = VTRN_V_NUM;
    while (length < TOKEN_MAX && p->at + length < p->end && is_number_char(p->at[length])) {
        text[length] = p->at[length];
        length++;
    }
    text[length] = '\0';
    if (strcmp(text, "nan") == 0) {
        bits = UINT64_C(0x7ff8000000000000);
        p->at += length;
        if (eat(p, '(')) {
            for (length = 0; length < 18 && p->at < p->end && isalnum((unsigned char)*p->at); length++) text[length] = *p->at++;
            text[length] = '\0';
            bits = strtoull(text, &end, 16);
            VTRN_TRY(expect(p, ')'));
        }
        memcpy(&value->num, &bits, sizeof bits);
        return value->num != value->num ? VTRN_OK : fail_at(p, p->at, "the bits before this are not those of a NaN");
    }
    value->num = strtod(text, &end);
    if (length == 0 || *end) return fail_at(p, p->at, "a number is expected here");
    value->is_int = text[strspn(text, "-0123456789")] == '\0';
    if (value->is_int && value->num - value->num != 0) return fail_at(p, p->at, "the integer does not fit a double");
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
    if (info->kind == VTRN_K_STRING) return parse_string(p, &value->i);
    if (info->kind == VTRN_K_REG && eat(p, 'r')) value->kind = VTRN_V_REG;
    skip_space(p);
    length = word_length(p);
    if (length && named_value(info, p->at, length, &value->i)) {
        p->at += length;
        return VTRN_OK;
    }
    if (length && isalpha((unsigned char)*p->at)) return fail_at(p, p->at, "the operand has no such value");
    return parse_i64(p, INT64_MIN, INT64_MAX, &value->i);
}

static enum vtrn_status parse_ints(struct parser *p, const struct vtrn_operand_info *info, struct vtrn_value *value)
{
    VTRN_TRY(expect(p, '['));
    value->kind = VTRN_V_INTS;
    value->ints = vtrn_inst_new_ints(p->inst, 0);
    while (!eat(p, ']')) {
        if (value->count) VTRN_TRY(expect(p, ','));
        if (value->count == info->max_count || !vtrn_inst_new_ints(p->inst, 1)) return fail_at(p, p->at, "the list is too long");
        VTRN_TRY(parse_i64(p, INT64_MIN, INT64_MAX, &value->ints[value->count]));
        value->count++;
    }
    return VTRN_OK;
}

static enum vtrn_status parse_value(struct parser *p, const struct vtrn_operand_info *info, struct vtrn_value *value)
{
    const char *at = p->at;

    value->is_int = 0;
    value->count = 0;
    if (eat_word(p, "absent")) {
        value->kind = VTRN_V_NONE;
        return VTRN_OK;
    }
    switch (info->kind) {
    case VTRN_K_TENSOR: value->kind = VTRN_V_AP; return parse_ap(p, &value->ap);
    case VTRN_K_TENSORS: return parse_aps(p, info, value);
    case VTRN_K_TENSOR_OR_NUM:
    case VTRN_K_SCALAR:
        if (peek(p) != '%') return parse_num(p, value);
        value->kind = VTRN_V_AP;
        return parse_ap(p, &value->ap);
    case VTRN_K_NUM: return parse_num(p, value);
    case VTRN_K_INTS: return parse_ints(p, info, value);
    case VTRN_K_ENGINE: return fail_at(p, at, "the engine is the first word of the line");
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
    return fail_at(p, p->at, length ? what : "operand=value is expected here");
}

static enum vtrn_status parse_named(struct parser *p, uint32_t *seen)
{
    const struct vtrn_op_info *row = &vtrn_ops[p->inst->op];
    size_t length = word_length(p);
    int64_t number;
    int i = 0;

    while (i < row->operands && (strlen(row->operand[i].name) != length || memcmp(row->operand[i].name, p->at, length) != 0)) i++;
    if (i < row->operands) {
        if (*seen >> i & 1) return fail_at(p, p->at, "the operand is there already");
        *seen |= 1u << i;
        p->operand = row->operand[i].name;
        p->at += length;
        VTRN_TRY(expect(p, '='));
        skip_space(p);
        return parse_value(p, &row->operand[i], &p->inst->arg[i]);
    }
    if (eat_word(p, "name")) {
        VTRN_TRY(expect(p, '='));
        VTRN_TRY(parse_string(p, &number));
        if (number < 0 || number > UINT32_MAX) return fail_at(p, p->at, "the number of the string before this is not in 0..4294967295");
        p->inst->name = (uint32_t)number;
        return VTRN_OK;
    }
    if (eat_word(p, "flags")) {
        VTRN_TRY(expect(p, '='));
        VTRN_TRY(parse_i64(p, 0, UINT16_MAX, &number));
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

    skip_space(p);
    length = word_length(p);
    if (!vtrn_enum_value(VTRN_ENUMS_ENGINE, p->at, length, &engine))
        return fail_at(p, p->at, "a line starts with an engine: tensor, vector, scalar, gpsimd, dma, sync, unknown");
    p->at += length;
    skip_space(p);
    length = word_length(p);
    op = vtrn_op_by_name(p->at, length);
    if (op == VTRN_OP_NONE) return fail_at(p, p->at, "no such instruction");
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
    while (!at_end(&p)) {
        p.operand = NULL;
        if (eat(&p, '@')) {
            VTRN_TRY(parse_i64(&p, 0, UINT32_MAX, &number));
            inst->loc = (uint32_t)number;
        } else {
            VTRN_TRY(parse_named(&p, &seen));
        }
        if (p.at < p.end && *p.at != ' ' && *p.at != '\t' && !at_end(&p)) return fail_at(&p, p.at, "a space is expected here");
    }
    return VTRN_OK;
}

enum vtrn_status vtrn_text_unquote(const char *text, size_t length, struct vtrn_buf *out, size_t *used_out, struct vtrn_error *err)
{
    struct parser p = { .start = text, .at = text, .end = text + length, .err = err };

    VTRN_TRY(parse_quoted(&p, out));
    *used_out = (size_t)(p.at - p.start);
    return VTRN_OK;
}
