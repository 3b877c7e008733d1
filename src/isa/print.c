/* The text form of an instruction: one line that reads back to the same instruction (parse.c). Like the wire form it
 * follows from the row: operands in row order, those that are as vtrn_inst_init leaves them left out, one form per kind
 * of value. Tables (tensor names, strings) belong to the program and come in through struct vtrn_text_names.
 *
 *   line     engine op {operand=value} [name=string] [flags=N] [@loc]          "#" starts a comment
 *   tensor   %name | %"any name" | %N                                          N: index in the tensor table
 *   pattern  tensor [:dtype] "[" [parts ";"] offset {"+" stride "x" count} {"|" dynamic} "]"
 *   parts    first ":" end | first "+" stride "x" count                        on chip; HBM has none: all dims count elements
 *   dynamic  rN "*" scale ["<" limit]
 *          | (scalar | vector | indirect) tensor:dtype "[" part ";" offset ["+" stride "x" count] "]" "*" scale ["<" limit]
 *   list     "{" pattern {"," pattern} "}"          integers  "[" [N {"," N}] "]"
 *   number   3 (was an integer) | 3.0 | 1e-05 | inf | nan | nan(0x7ff8000000000001)
 *   others   true false, names of enums, operators and functions, rN for a register, "text" or $N for a string,
 *            absent where the row has a default and the operand has nothing */
#include "isa/isa.h"

#include <ctype.h>
#include <inttypes.h>

struct printer {
    struct vtrn_buf *out;
    const struct vtrn_text_names *names;
};

enum vtrn_status vtrn_text_quote(struct vtrn_buf *out, const char *text)
{
    VTRN_TRY(vtrn_buf_append(out, "\"", 1));
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;

        if (c == '"' || c == '\\') VTRN_TRY(vtrn_buf_printf(out, "\\%c", c));
        else if (c == '\n') VTRN_TRY(vtrn_buf_append(out, "\\n", 2));
        else if (c == '\t') VTRN_TRY(vtrn_buf_append(out, "\\t", 2));
        else if (c < 0x20 || c == 0x7f) VTRN_TRY(vtrn_buf_printf(out, "\\x%02x", c));
        else VTRN_TRY(vtrn_buf_append(out, text, 1));
    }
    return vtrn_buf_append(out, "\"", 1);
}

static enum vtrn_status print_string(struct printer *p, int64_t index)
{
    const char *text = NULL;

    if (p->names && p->names->string && index >= 0 && index <= UINT32_MAX)
        text = p->names->string(p->names->self, (uint32_t)index);
    return text ? vtrn_text_quote(p->out, text) : vtrn_buf_printf(p->out, "$%" PRId64, index);
}

/* ---------------------------------------------------------------- patterns */
static bool is_plain_name(const char *name)
{
    if (!isalpha((unsigned char)*name) && *name != '_') return false;
    for (; *name; name++)
        if (!isalnum((unsigned char)*name) && *name != '_' && *name != '.') return false;
    return true;
}

static enum vtrn_status print_tensor(struct printer *p, uint32_t tensor)
{
    const char *name = p->names && p->names->tensor_name ? p->names->tensor_name(p->names->self, tensor) : NULL;

    if (!name || !*name) return vtrn_buf_printf(p->out, "%%%" PRIu32, tensor);
    if (is_plain_name(name)) return vtrn_buf_printf(p->out, "%%%s", name);
    VTRN_TRY(vtrn_buf_append(p->out, "%", 1));
    return vtrn_text_quote(p->out, name);
}

static enum vtrn_status print_dim(struct printer *p, int64_t stride, int64_t count)
{
    return vtrn_buf_printf(p->out, "+%" PRId64 "x%" PRId64, stride, count);
}

static enum vtrn_status print_dyn(struct printer *p, const struct vtrn_dyn *dyn)
{
    static const char *const word[] = {
        [VTRN_DYN_SCALAR] = "scalar", [VTRN_DYN_VECTOR] = "vector", [VTRN_DYN_INDIRECT] = "indirect",
    };

    if (dyn->kind == VTRN_DYN_REG) {
        VTRN_TRY(vtrn_buf_printf(p->out, " | r%" PRIu32, dyn->ref));
    } else {
        VTRN_TRY(vtrn_buf_printf(p->out, " | %s ", word[dyn->kind]));
        VTRN_TRY(print_tensor(p, dyn->ref));
        VTRN_TRY(vtrn_buf_printf(p->out, ":%s[%u; %" PRId64, vtrn_dtypes[dyn->dtype].text, dyn->part0, dyn->offset));
        if (dyn->kind != VTRN_DYN_SCALAR) VTRN_TRY(print_dim(p, dyn->stride, dyn->count));
        VTRN_TRY(vtrn_buf_append(p->out, "]", 1));
    }
    VTRN_TRY(vtrn_buf_printf(p->out, "*%" PRId64, dyn->scale));
    return dyn->limit ? vtrn_buf_printf(p->out, "<%" PRId64, dyn->limit) : VTRN_OK;
}

static enum vtrn_status print_ap(struct printer *p, const struct vtrn_ap *ap)
{
    const struct vtrn_text_names *names = p->names;
    int space = names && names->tensor_space ? names->tensor_space(names->self, ap->tensor) : VTRN_SPACE_NONE;
    bool whole = vtrn_space_is_hbm(space) && ap->part0 == 0; /* no partitions: every dim counts elements */
    const struct vtrn_dim *first = &ap->dim[0];

    VTRN_TRY(print_tensor(p, ap->tensor));
    if (!names || !names->tensor_dtype || names->tensor_dtype(names->self, ap->tensor) != ap->dtype)
        VTRN_TRY(vtrn_buf_printf(p->out, ":%s", vtrn_dtypes[ap->dtype].text));
    VTRN_TRY(vtrn_buf_append(p->out, "[", 1));
    if (!whole) {
        if (first->stride == 1 && first->count == (uint16_t)first->count)
            VTRN_TRY(vtrn_buf_printf(p->out, "%u:%u; ", ap->part0, (unsigned)(ap->part0 + first->count)));
        else
            VTRN_TRY(vtrn_buf_printf(p->out, "%u+%" PRId64 "x%" PRId64 "; ", ap->part0, first->stride, first->count));
    }
    VTRN_TRY(vtrn_buf_printf(p->out, "%" PRId64, ap->offset));
    for (int i = whole ? 0 : 1; i < ap->ndim; i++) VTRN_TRY(print_dim(p, ap->dim[i].stride, ap->dim[i].count));
    for (int i = 0; i < ap->ndyn; i++) VTRN_TRY(print_dyn(p, &ap->dyn[i]));
    return vtrn_buf_append(p->out, "]", 1);
}

/* ---------------------------------------------------------------- values */
/* The shortest of a few precisions that reads back to the same bits (17 digits always do). */
static enum vtrn_status print_num(struct printer *p, double num, bool is_int)
{
    static const int precision[] = { 6, 9, 12, 15, 17 };
    char text[48];
    uint64_t bits;
    double back;

    if (is_int) return vtrn_buf_printf(p->out, "%.0f", num);
    if (num != num) {
        memcpy(&bits, &num, sizeof bits);
        return bits == UINT64_C(0x7ff8000000000000) ? vtrn_buf_append(p->out, "nan", 3)
                                                    : vtrn_buf_printf(p->out, "nan(0x%" PRIx64 ")", bits);
    }
    if (num - num != 0) return vtrn_buf_printf(p->out, "%s", num < 0 ? "-inf" : "inf");
    for (size_t i = 0; i < sizeof precision / sizeof precision[0]; i++) {
        snprintf(text, sizeof text, "%.*g", precision[i], num);
        back = strtod(text, NULL);
        if (memcmp(&back, &num, sizeof num) == 0) break;
    }
    return vtrn_buf_printf(p->out, "%s%s", text, strpbrk(text, ".e") ? "" : ".0");
}

/* The name of a small integer that stands for something; NULL: it is printed as a number. */
static const char *value_name(const struct vtrn_operand_info *info, int64_t i)
{
    if (i < 0 || i > UINT8_MAX) return NULL;
    switch (info->kind) {
    case VTRN_K_FLAG:
    case VTRN_K_TRI: return i == 0 ? "false" : i == 1 ? "true" : NULL;
    case VTRN_K_ENUM: return vtrn_enum_name((enum vtrn_enum_set)info->set, (int)i);
    case VTRN_K_ALU: return i < VTRN_ALU_COUNT ? vtrn_alus[i].nki_name : NULL;
    case VTRN_K_ACT: return i < VTRN_ACT_COUNT ? vtrn_acts[i].nki_name : NULL;
    default: return NULL;
    }
}

static enum vtrn_status print_int(struct printer *p, const struct vtrn_operand_info *info, int64_t i)
{
    const char *name = value_name(info, i);

    if (info->kind == VTRN_K_STRING) return print_string(p, i);
    return name ? vtrn_buf_printf(p->out, "%s", name) : vtrn_buf_printf(p->out, "%" PRId64, i);
}

static enum vtrn_status print_ints(struct printer *p, const struct vtrn_value *value)
{
    VTRN_TRY(vtrn_buf_append(p->out, "[", 1));
    for (int i = 0; i < value->count; i++) VTRN_TRY(vtrn_buf_printf(p->out, "%s%" PRId64, i ? ", " : "", value->ints[i]));
    return vtrn_buf_append(p->out, "]", 1);
}

static enum vtrn_status print_aps(struct printer *p, const struct vtrn_value *value)
{
    VTRN_TRY(vtrn_buf_append(p->out, "{", 1));
    for (int i = 0; i < value->count; i++) {
        if (i) VTRN_TRY(vtrn_buf_append(p->out, ", ", 2));
        VTRN_TRY(print_ap(p, &value->aps[i]));
    }
    return vtrn_buf_append(p->out, "}", 1);
}

static enum vtrn_status print_value(struct printer *p, const struct vtrn_operand_info *info, const struct vtrn_value *value)
{
    switch (value->kind) {
    case VTRN_V_AP: return print_ap(p, &value->ap);
    case VTRN_V_APS: return print_aps(p, value);
    case VTRN_V_NUM: return print_num(p, value->num, value->is_int);
    case VTRN_V_INT: return print_int(p, info, value->i);
    case VTRN_V_REG: return vtrn_buf_printf(p->out, "r%" PRId64, value->i);
    case VTRN_V_INTS: return print_ints(p, value);
    default: return vtrn_buf_append(p->out, "absent", 6);
    }
}

enum vtrn_status vtrn_inst_print(const struct vtrn_inst *inst, const struct vtrn_text_names *names, struct vtrn_buf *out)
{
    const struct vtrn_op_info *row = &vtrn_ops[inst->op];
    struct printer p = { out, names };

    if (!row->name) return vtrn_buf_printf(out, "(no instruction has code 0x%02x)", inst->op);
    VTRN_TRY(vtrn_buf_printf(out, "%-7s %s", vtrn_engine_name(inst->engine), row->name));
    for (int i = 0; i < row->operands; i++) {
        if (vtrn_value_is_initial(&inst->arg[i], &row->operand[i])) continue;
        VTRN_TRY(vtrn_buf_printf(out, " %s=", row->operand[i].name));
        VTRN_TRY(print_value(&p, &row->operand[i], &inst->arg[i]));
    }
    if (inst->name) {
        VTRN_TRY(vtrn_buf_append(out, " name=", 6));
        VTRN_TRY(print_string(&p, inst->name));
    }
    if (inst->flags) VTRN_TRY(vtrn_buf_printf(out, " flags=%u", inst->flags));
    if (inst->loc) VTRN_TRY(vtrn_buf_printf(out, " @%" PRIu32, inst->loc));
    return vtrn_buf_printf(out, "%s", ""); /* ends the text with a zero byte that size does not count */
}
