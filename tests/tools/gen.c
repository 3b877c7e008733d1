/* Random instructions, drawn by walking the rows of the instruction table: a new row or a new operand kind is covered
 * without a change here (a kind that is missing fails an assertion). Half of the numbers are what kernels use, the rest
 * sit where encodings change width. See gen.h for what is promised. */
#include "gen.h"

struct gen gen_seeded(uint64_t seed)
{
    return (struct gen){ .state = seed, .tensors = 100, .registers = 32, .strings = 20, .extreme = 10 };
}

/* splitmix64 (Steele, Lea, Flood 2014): tiny, and every seed is a good one. */
uint64_t gen_u64(struct gen *gen)
{
    uint64_t z = gen->state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

int64_t gen_range(struct gen *gen, int64_t low, int64_t high)
{
    uint64_t span = (uint64_t)high - (uint64_t)low + 1;

    return (int64_t)((uint64_t)low + (span ? gen_u64(gen) % span : gen_u64(gen)));
}

bool gen_chance(struct gen *gen, int percent)
{
    return gen_range(gen, 0, 99) < percent;
}

int64_t gen_i64(struct gen *gen)
{
    static const int bits[] = { 7, 8, 15, 16, 23, 24, 31, 32, 63 };
    int width = bits[gen_range(gen, 0, (int)(sizeof bits / sizeof bits[0]) - 1)];
    uint64_t edge = (UINT64_C(1) << width) + (uint64_t)gen_range(gen, -2, 2);

    if (gen_chance(gen, 20)) return (int64_t)gen_u64(gen);
    return (int64_t)(gen_chance(gen, 50) ? edge : -edge);
}

double gen_double(struct gen *gen)
{
    static const double special[] = { 0.0, -0.0, 1.0, -1.0, 0.5, 1e-5, 0.1, 3.4028234663852886e38, 1e308, 5e-324, 0x1p-149 };
    uint64_t bits = gen_u64(gen);
    double num;
    float single;

    switch (gen_range(gen, 0, 5)) {
    case 0: return special[gen_range(gen, 0, (int)(sizeof special / sizeof special[0]) - 1)];
    case 1: return (double)gen_range(gen, -100000, 100000);
    case 2: single = (float)gen_range(gen, -1000000, 1000000) / 4096.0f; return single;
    case 3: bits |= UINT64_C(0x7ff) << 52; /* infinite or NaN */
        if (gen_chance(gen, 50)) bits &= UINT64_C(0xfff) << 52;
        break;
    default: break; /* any bits */
    }
    memcpy(&num, &bits, sizeof num);
    return num;
}

static int64_t small_or_extreme(struct gen *gen, int64_t low, int64_t high)
{
    return gen_chance(gen, gen->extreme) ? gen_i64(gen) : gen_range(gen, low, high);
}

uint8_t gen_dtype(struct gen *gen, uint32_t dtypes)
{
    int dtype;

    VTRN_ASSERT(dtypes & ~UINT32_C(1));
    do dtype = (int)gen_range(gen, 1, VTRN_DT_COUNT - 1);
    while (!(dtypes >> dtype & 1));
    return (uint8_t)dtype;
}

/* ---------------------------------------------------------------- patterns */
static void gen_dyn(struct gen *gen, struct vtrn_dyn *dyn)
{
    *dyn = (struct vtrn_dyn){ .kind = (uint8_t)gen_range(gen, VTRN_DYN_REG, VTRN_DYN_INDIRECT) };
    dyn->scale = small_or_extreme(gen, 0, 4096);
    dyn->limit = gen_chance(gen, 50) ? small_or_extreme(gen, 1, 100000) : 0;
    if (dyn->kind == VTRN_DYN_REG) {
        dyn->ref = (uint32_t)gen_range(gen, 0, gen->registers - 1);
        return;
    }
    dyn->ref = (uint32_t)gen_range(gen, 0, gen->tensors - 1);
    dyn->dtype = gen_dtype(gen, VTRN_DTS_INDEX);
    dyn->part0 = (uint16_t)gen_range(gen, 0, 3) * 32;
    dyn->offset = small_or_extreme(gen, 0, 1000);
    if (dyn->kind == VTRN_DYN_SCALAR) return;
    dyn->stride = small_or_extreme(gen, 0, 8);
    dyn->count = small_or_extreme(gen, 1, 512);
}

void gen_ap(struct gen *gen, struct vtrn_inst *inst, uint32_t dtypes, struct vtrn_ap *ap)
{
    static const int16_t part_count[] = { 1, 4, 16, 32, 64, 128 };
    int ndyn = gen_chance(gen, 15) ? (int)gen_range(gen, 1, VTRN_AP_DYNS) : 0;

    *ap = (struct vtrn_ap){ .tensor = (uint32_t)gen_range(gen, 0, gen->tensors - 1), .dtype = gen_dtype(gen, dtypes) };
    ap->ndim = (uint8_t)gen_range(gen, 1, gen_chance(gen, gen->extreme) ? VTRN_AP_DIMS : 4);
    ap->part0 = (uint16_t)(gen_chance(gen, gen->extreme) ? gen_range(gen, 0, UINT16_MAX) : gen_range(gen, 0, 3) * 32);
    ap->offset = small_or_extreme(gen, 0, 65535);
    for (int i = 0; i < ap->ndim; i++) {
        ap->dim[i].stride = small_or_extreme(gen, 0, 1024);
        ap->dim[i].count = small_or_extreme(gen, 1, 512);
    }
    if (!gen_chance(gen, gen->extreme)) ap->dim[0] = (struct vtrn_dim){ 1, part_count[gen_range(gen, 0, 5)] };
    ap->dyn = ndyn ? vtrn_inst_new_dyns(inst, ndyn) : NULL;
    if (!ap->dyn) return; /* the instruction has no room for more */
    ap->ndyn = (uint8_t)ndyn;
    for (int i = 0; i < ndyn; i++) gen_dyn(gen, &ap->dyn[i]);
}

/* ---------------------------------------------------------------- values */
static int64_t gen_choice(struct gen *gen, const struct vtrn_operand_info *info)
{
    const char *name;
    int value = 0, i;

    switch (info->kind) {
    case VTRN_K_FLAG:
    case VTRN_K_TRI: return gen_range(gen, 0, 1);
    case VTRN_K_ACT: return gen_range(gen, 1, VTRN_ACT_COUNT - 1);
    case VTRN_K_STRING: return gen_range(gen, 0, gen->strings - 1);
    case VTRN_K_ALU:
        do value = (int)gen_range(gen, 1, VTRN_ALU_COUNT - 1);
        while (!vtrn_alu_in_set((enum vtrn_alu)value, (enum vtrn_alu_set)info->set));
        return value;
    default:
        for (i = 0; vtrn_enum_member((enum vtrn_enum_set)info->set, i, &name, &value); i++) continue;
        vtrn_enum_member((enum vtrn_enum_set)info->set, (int)gen_range(gen, 0, i - 1), &name, &value);
        return value;
    }
}

static void gen_number(struct gen *gen, struct vtrn_value *value)
{
    value->kind = VTRN_V_NUM;
    value->is_int = gen_chance(gen, 30);
    value->num = value->is_int ? (double)small_or_extreme(gen, -10, 1000) : gen_double(gen);
}

static void gen_list(struct gen *gen, struct vtrn_inst *inst, const struct vtrn_operand_info *info, struct vtrn_value *value)
{
    int count = (int)gen_range(gen, 0, info->max_count);

    if (info->kind == VTRN_K_INTS) {
        value->ints = vtrn_inst_new_ints(inst, count);
        if (!value->ints) return;
        value->kind = VTRN_V_INTS;
        for (int i = 0; i < count; i++) value->ints[i] = small_or_extreme(gen, -1, 300);
    } else {
        value->aps = vtrn_inst_new_aps(inst, count);
        if (!value->aps) return;
        value->kind = VTRN_V_APS;
        for (int i = 0; i < count; i++) gen_ap(gen, inst, info->dtypes, &value->aps[i]);
    }
    value->count = (uint16_t)count;
}

void gen_value(struct gen *gen, struct vtrn_inst *inst, const struct vtrn_operand_info *info, struct vtrn_value *value)
{
    vtrn_value_init(value, info);
    if (info->kind == VTRN_K_ENGINE) return;
    if ((info->optional || info->has_default) && gen_chance(gen, 50)) {
        if (gen_chance(gen, gen->extreme)) value->kind = VTRN_V_NONE;
        return;
    }
    switch (info->kind) {
    case VTRN_K_TENSOR_OR_NUM:
    case VTRN_K_SCALAR:
        if (gen_chance(gen, 50)) {
            gen_number(gen, value);
            return;
        }
        /* fall through */
    case VTRN_K_TENSOR:
        value->kind = VTRN_V_AP;
        gen_ap(gen, inst, info->dtypes, &value->ap);
        return;
    case VTRN_K_TENSORS:
    case VTRN_K_INTS: gen_list(gen, inst, info, value); return;
    case VTRN_K_NUM: gen_number(gen, value); return;
    case VTRN_K_REG:
        value->kind = info->access & VTRN_WRITE || gen_chance(gen, 50) ? VTRN_V_REG : VTRN_V_INT;
        value->i = value->kind == VTRN_V_REG ? gen_range(gen, 0, gen->registers - 1) : small_or_extreme(gen, -100, 100);
        return;
    case VTRN_K_INT:
        value->kind = VTRN_V_INT;
        value->i = gen_range(gen, info->min, info->max);
        return;
    case VTRN_K_FLAG:
    case VTRN_K_TRI:
    case VTRN_K_ENUM:
    case VTRN_K_ALU:
    case VTRN_K_ACT:
    case VTRN_K_STRING:
        value->kind = VTRN_V_INT;
        value->i = gen_choice(gen, info);
        return;
    default: VTRN_ASSERT(!"the generator knows this kind of operand");
    }
}

enum vtrn_opcode gen_opcode(struct gen *gen)
{
    int op;

    do op = (int)gen_range(gen, 1, VTRN_OPCODES - 1);
    while (!vtrn_ops[op].name);
    return (enum vtrn_opcode)op;
}

void gen_inst(struct gen *gen, struct vtrn_inst *inst, enum vtrn_opcode op)
{
    const struct vtrn_op_info *row;

    if (op == VTRN_OP_NONE) op = gen_opcode(gen);
    row = &vtrn_ops[op];
    vtrn_inst_init(inst, op);
    do inst->engine = (uint8_t)gen_range(gen, 0, VTRN_ENGINES - 1);
    while (inst->engine != VTRN_ENGINE_UNKNOWN && !(row->engines >> inst->engine & 1));
    inst->loc = gen_chance(gen, 90) ? (uint32_t)gen_range(gen, 0, 5000) : (uint32_t)gen_u64(gen);
    inst->name = gen_chance(gen, 20) ? (uint32_t)gen_range(gen, 0, gen->strings - 1) : 0;
    inst->flags = gen_chance(gen, 5) ? (uint16_t)gen_u64(gen) : 0;
    for (int i = 0; i < row->operands; i++) gen_value(gen, inst, &row->operand[i], &inst->arg[i]);
}

/* ---------------------------------------------------------------- comparing */
static bool same_dyn(const struct vtrn_dyn *a, const struct vtrn_dyn *b)
{
    if (a->kind != b->kind || a->ref != b->ref || a->scale != b->scale || a->limit != b->limit) return false;
    if (a->kind == VTRN_DYN_REG) return true;
    if (a->dtype != b->dtype || a->part0 != b->part0 || a->offset != b->offset) return false;
    return a->kind == VTRN_DYN_SCALAR || (a->stride == b->stride && a->count == b->count);
}

static bool same_ap(const struct vtrn_ap *a, const struct vtrn_ap *b)
{
    if (a->tensor != b->tensor || a->dtype != b->dtype || a->ndim != b->ndim || a->ndyn != b->ndyn || a->part0 != b->part0 ||
        a->offset != b->offset)
        return false;
    for (int i = 0; i < a->ndim; i++)
        if (a->dim[i].stride != b->dim[i].stride || a->dim[i].count != b->dim[i].count) return false;
    for (int i = 0; i < a->ndyn; i++)
        if (!same_dyn(&a->dyn[i], &b->dyn[i])) return false;
    return true;
}

static bool same_value(const struct vtrn_value *a, const struct vtrn_value *b)
{
    if (a->kind != b->kind) return false;
    switch (a->kind) {
    case VTRN_V_AP: return same_ap(&a->ap, &b->ap);
    case VTRN_V_NUM: return a->is_int == b->is_int && memcmp(&a->num, &b->num, sizeof a->num) == 0;
    case VTRN_V_INT:
    case VTRN_V_REG: return a->i == b->i;
    case VTRN_V_INTS:
        if (a->count != b->count) return false;
        return a->count == 0 || memcmp(a->ints, b->ints, a->count * sizeof a->ints[0]) == 0;
    case VTRN_V_APS:
        if (a->count != b->count) return false;
        for (int i = 0; i < a->count; i++)
            if (!same_ap(&a->aps[i], &b->aps[i])) return false;
        return true;
    default: return true;
    }
}

bool gen_inst_equal(const struct vtrn_inst *a, const struct vtrn_inst *b, const char **operand_out)
{
    const struct vtrn_op_info *row = &vtrn_ops[a->op];

    if (operand_out) *operand_out = "the head";
    if (a->op != b->op || a->engine != b->engine || a->loc != b->loc || a->name != b->name || a->flags != b->flags) return false;
    for (int i = 0; i < row->operands; i++) {
        if (operand_out) *operand_out = row->operand[i].name;
        if (!same_value(&a->arg[i], &b->arg[i])) return false;
    }
    return true;
}
