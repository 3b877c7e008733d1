/* Reads tensors and access patterns of the text form; the grammar stands in print.c. Must not know instructions. */
#include "isa/text_int.h"

#include <ctype.h>

static enum vtrn_status find_tensor(struct parser *p, const char *at, const char *name, size_t length, uint32_t *tensor_out)
{
    bool known = p->names && p->names->tensor_index && p->names->tensor_index(p->names->self, name, length, tensor_out);

    return known ? VTRN_OK : isa_fail_at(p, at, "no tensor has this name");
}

static enum vtrn_status parse_tensor(struct parser *p, uint32_t *tensor_out)
{
    struct vtrn_buf name = { 0 };
    enum vtrn_status status;
    const char *at;
    int64_t number;

    isa_skip_space(p);
    at = p->at;
    if (!isa_eat(p, '%')) return isa_fail_at(p, p->at, "a tensor (%name) is expected here");
    if (p->at < p->end && isdigit((unsigned char)*p->at)) {
        VTRN_TRY(isa_parse_i64(p, 0, UINT32_MAX, &number));
        *tensor_out = (uint32_t)number;
        return VTRN_OK;
    }
    if (p->at < p->end && *p->at == '"') {
        status = isa_parse_quoted(p, &name);
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

    isa_skip_space(p);
    length = isa_word_length(p);
    *dtype_out = vtrn_dtype_by_text(p->at, length);
    if (*dtype_out == VTRN_DT_NONE) return isa_fail_at(p, p->at, "a dtype (f32, bf16, i32, ...) is expected here");
    p->at += length;
    return VTRN_OK;
}

/* "+" stride "x" count */
static enum vtrn_status parse_dim(struct parser *p, int64_t *stride_out, int64_t *count_out)
{
    VTRN_TRY(isa_expect(p, '+'));
    VTRN_TRY(isa_parse_i64(p, INT64_MIN, INT64_MAX, stride_out));
    VTRN_TRY(isa_expect(p, 'x'));
    return isa_parse_i64(p, INT64_MIN, INT64_MAX, count_out);
}

static enum vtrn_status parse_scale(struct parser *p, struct vtrn_dyn *dyn)
{
    VTRN_TRY(isa_expect(p, '*'));
    VTRN_TRY(isa_parse_i64(p, INT64_MIN, INT64_MAX, &dyn->scale));
    return isa_eat(p, '<') ? isa_parse_i64(p, INT64_MIN, INT64_MAX, &dyn->limit) : VTRN_OK;
}

static enum vtrn_status parse_dyn(struct parser *p, struct vtrn_dyn *dyn)
{
    int64_t number;

    *dyn = (struct vtrn_dyn){ 0 };
    dyn->kind = isa_eat_word(p, "scalar")     ? VTRN_DYN_SCALAR
                : isa_eat_word(p, "vector")   ? VTRN_DYN_VECTOR
                : isa_eat_word(p, "indirect") ? VTRN_DYN_INDIRECT
                                          : VTRN_DYN_REG;
    if (dyn->kind == VTRN_DYN_REG) {
        if (!isa_eat(p, 'r')) return isa_fail_at(p, p->at, "rN, scalar, vector or indirect is expected here");
        VTRN_TRY(isa_parse_i64(p, 0, UINT32_MAX, &number));
        dyn->ref = (uint32_t)number;
        return parse_scale(p, dyn);
    }
    VTRN_TRY(parse_tensor(p, &dyn->ref));
    VTRN_TRY(isa_expect(p, ':'));
    VTRN_TRY(parse_dtype(p, &dyn->dtype));
    VTRN_TRY(isa_expect(p, '['));
    VTRN_TRY(isa_parse_i64(p, 0, UINT16_MAX, &number));
    dyn->part0 = (uint16_t)number;
    VTRN_TRY(isa_expect(p, ';'));
    VTRN_TRY(isa_parse_i64(p, INT64_MIN, INT64_MAX, &dyn->offset));
    if (dyn->kind != VTRN_DYN_SCALAR) VTRN_TRY(parse_dim(p, &dyn->stride, &dyn->count));
    VTRN_TRY(isa_expect(p, ']'));
    return parse_scale(p, dyn);
}

static enum vtrn_status parse_dyns(struct parser *p, struct vtrn_ap *ap)
{
    struct vtrn_dyn dyn[VTRN_AP_DYNS];

    while (isa_eat(p, '|')) {
        if (ap->ndyn == VTRN_AP_DYNS) return isa_fail_at(p, p->at, "a pattern has at most 3 dynamic parts");
        VTRN_TRY(parse_dyn(p, &dyn[ap->ndyn]));
        ap->ndyn++;
    }
    if (ap->ndyn == 0) return VTRN_OK;
    ap->dyn = vtrn_inst_new_dyns(p->inst, ap->ndyn);
    if (!ap->dyn) return isa_fail_at(p, p->at, "an instruction has at most 8 dynamic parts");
    memcpy(ap->dyn, dyn, ap->ndyn * sizeof dyn[0]);
    return VTRN_OK;
}

/* "first:end;", "first+stride x count;", or no partitions: then the number was the offset. */
static enum vtrn_status parse_parts(struct parser *p, struct vtrn_ap *ap)
{
    const char *at = p->at;
    int64_t first, end, stride, count;

    VTRN_TRY(isa_parse_i64(p, INT64_MIN, INT64_MAX, &first));
    if (isa_eat(p, ':')) {
        VTRN_TRY(isa_parse_i64(p, first, INT64_MAX, &end));
        stride = 1;
        if (first < 0 || !vtrn_add_i64(end, -first, &count)) return isa_fail_at(p, at, "partitions are first:end");
    } else {
        struct vtrn_dim dim[VTRN_AP_DIMS];
        int ndim = 0;

        while (isa_peek(p) == '+') {
            if (ndim == VTRN_AP_DIMS) return isa_fail_at(p, p->at, "a pattern has at most 8 dimensions");
            VTRN_TRY(parse_dim(p, &dim[ndim].stride, &dim[ndim].count));
            ndim++;
        }
        if (isa_peek(p) != ';' || ndim != 1) { /* HBM */
            ap->offset = first;
            ap->ndim = (uint8_t)ndim;
            memcpy(ap->dim, dim, (size_t)ndim * sizeof dim[0]);
            return ndim ? VTRN_OK : isa_fail_at(p, p->at, "a pattern has at least one dimension (+stride x count)");
        }
        stride = dim[0].stride;
        count = dim[0].count;
    }
    VTRN_TRY(isa_expect(p, ';'));
    if (first < 0 || first > UINT16_MAX) return isa_fail_at(p, at, "the first partition must be in 0..65535");
    ap->part0 = (uint16_t)first;
    ap->dim[0] = (struct vtrn_dim){ stride, count };
    ap->ndim = 1;
    VTRN_TRY(isa_parse_i64(p, INT64_MIN, INT64_MAX, &ap->offset));
    while (isa_peek(p) == '+') {
        if (ap->ndim == VTRN_AP_DIMS) return isa_fail_at(p, p->at, "a pattern has at most 8 dimensions");
        VTRN_TRY(parse_dim(p, &ap->dim[ap->ndim].stride, &ap->dim[ap->ndim].count));
        ap->ndim++;
    }
    return VTRN_OK;
}

enum vtrn_status isa_parse_ap(struct parser *p, struct vtrn_ap *ap)
{
    const struct vtrn_text_names *names = p->names;
    int dtype = VTRN_DT_NONE;

    *ap = (struct vtrn_ap){ 0 };
    VTRN_TRY(parse_tensor(p, &ap->tensor));
    if (isa_eat(p, ':')) {
        VTRN_TRY(parse_dtype(p, &ap->dtype));
    } else {
        if (names && names->tensor_dtype) dtype = names->tensor_dtype(names->self, ap->tensor);
        if (dtype <= VTRN_DT_NONE || dtype >= VTRN_DT_COUNT) return isa_fail_at(p, p->at, "the pattern needs a dtype (%tensor:dtype[...])");
        ap->dtype = (uint8_t)dtype;
    }
    VTRN_TRY(isa_expect(p, '['));
    VTRN_TRY(parse_parts(p, ap));
    VTRN_TRY(parse_dyns(p, ap));
    return isa_expect(p, ']');
}

enum vtrn_status isa_parse_aps(struct parser *p, const struct vtrn_operand_info *info, struct vtrn_value *value)
{
    VTRN_TRY(isa_expect(p, '{'));
    value->kind = VTRN_V_APS;
    value->aps = vtrn_inst_new_aps(p->inst, 0);
    while (!isa_eat(p, '}')) {
        if (value->count) VTRN_TRY(isa_expect(p, ','));
        if (value->count == info->max_count || !vtrn_inst_new_aps(p->inst, 1)) return isa_fail_at(p, p->at, "the list is too long");
        VTRN_TRY(isa_parse_ap(p, &value->aps[value->count]));
        value->count++;
    }
    return VTRN_OK;
}
