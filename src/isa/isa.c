/* The descriptor tables, expanded from the .def files, and the lookups by name. Every table is an expansion of the one
 * list, so a row that is added there is known here; nothing in this file names an instruction.
 * Must not know how instructions are encoded (code.c) or printed (print.c, parse.c). */
#include "isa/isa.h"

#include <float.h>

/* ---------------------------------------------------------------- data types */
const struct vtrn_dtype_info vtrn_dtypes[VTRN_DT_COUNT] = {
#define DTYPE(NAME, code, size, cls, lanes, nki, text, doc) [code] = { nki, text, doc, size, VTRN_CLASS_##cls, lanes },
#include "isa/dtypes.def"
#undef DTYPE
};

static bool same_text(const char *name, const char *text, size_t length)
{
    return name && strncmp(name, text, length) == 0 && name[length] == '\0';
}

enum vtrn_dtype vtrn_dtype_by_text(const char *text, size_t length)
{
    for (int i = 1; i < VTRN_DT_COUNT; i++)
        if (same_text(vtrn_dtypes[i].text, text, length)) return (enum vtrn_dtype)i;
    return VTRN_DT_NONE;
}

enum vtrn_dtype vtrn_dtype_by_nki_name(const char *name)
{
    /* Names that kernels and NumPy use for the same types (the graph compiler's fp8 names, NumPy's bool). */
    static const struct {
        const char *name;
        enum vtrn_dtype dtype;
    } synonym[] = {
        { "bool", VTRN_DT_BOOL },
        { "float8e4", VTRN_DT_F8E4M3 },
        { "float8e5", VTRN_DT_F8E5M2 },
    };

    if (!name) return VTRN_DT_NONE;
    for (int i = 1; i < VTRN_DT_COUNT; i++)
        if (vtrn_dtypes[i].nki_name && strcmp(vtrn_dtypes[i].nki_name, name) == 0) return (enum vtrn_dtype)i;
    for (size_t i = 0; i < sizeof synonym / sizeof synonym[0]; i++)
        if (strcmp(synonym[i].name, name) == 0) return synonym[i].dtype;
    return VTRN_DT_NONE;
}

/* ---------------------------------------------------------------- operators and functions */
const struct vtrn_alu_info vtrn_alus[VTRN_ALU_COUNT] = {
#define ALUOP(NAME, code, nki, cls, arity, reduces, version, doc) [code] = { nki, doc, VTRN_ALU_##cls, arity, reduces, version },
#include "isa/aluops.def"
#undef ALUOP
};

enum vtrn_alu vtrn_alu_by_name(const char *name, size_t length)
{
    for (int i = 1; i < VTRN_ALU_COUNT; i++)
        if (same_text(vtrn_alus[i].nki_name, name, length)) return (enum vtrn_alu)i;
    return VTRN_ALU_NONE;
}

bool vtrn_alu_in_set(enum vtrn_alu op, enum vtrn_alu_set set)
{
    if (op <= VTRN_ALU_NONE || op >= VTRN_ALU_COUNT) return false;
    switch (set) {
    case VTRN_ALUSET_NONE: return false;
    case VTRN_ALUSET_ANY: return op != VTRN_ALU_AVERAGE;
    case VTRN_ALUSET_ARITH: return op != VTRN_ALU_AVERAGE && vtrn_alus[op].cls == VTRN_ALU_ARITH;
    case VTRN_ALUSET_REDUCE: return op != VTRN_ALU_AVERAGE && vtrn_alus[op].reduces;
    case VTRN_ALUSET_PARTITION_REDUCE:
        return op == VTRN_ALU_ADD || op == VTRN_ALU_AVERAGE || op == VTRN_ALU_MAXIMUM || op == VTRN_ALU_BITWISE_OR ||
               op == VTRN_ALU_BITWISE_AND;
    case VTRN_ALUSET_DMA: return op == VTRN_ALU_ADD;
    }
    return false;
}

const struct vtrn_act_info vtrn_acts[VTRN_ACT_COUNT] = {
#define ACTFUNC(NAME, code, nki, formula, range) [code] = { nki, formula, range },
#include "isa/actfuncs.def"
#undef ACTFUNC
};

enum vtrn_act vtrn_act_by_name(const char *name, size_t length)
{
    for (int i = 1; i < VTRN_ACT_COUNT; i++)
        if (same_text(vtrn_acts[i].nki_name, name, length)) return (enum vtrn_act)i;
    return VTRN_ACT_NONE;
}

/* ---------------------------------------------------------------- enums */
static const char *const set_name[VTRN_ENUMS_COUNT] = {
#define ENUM_SET(SET, name) [VTRN_ENUMS_##SET] = name,
#define MEMBER(SET, NAME, value, name)
#include "isa/enums.def"
#undef ENUM_SET
#undef MEMBER
};
static const struct {
    uint8_t set, value;
    const char *name;
} member[] = {
#define ENUM_SET(SET, name)
#define MEMBER(SET, NAME, value, name) { VTRN_ENUMS_##SET, value, name },
#include "isa/enums.def"
#undef ENUM_SET
#undef MEMBER
};
enum { MEMBERS = sizeof member / sizeof member[0] };

const char *vtrn_enum_set_name(enum vtrn_enum_set set)
{
    return (unsigned)set < VTRN_ENUMS_COUNT ? set_name[set] : NULL;
}

const char *vtrn_enum_name(enum vtrn_enum_set set, int value)
{
    for (int i = 0; i < MEMBERS; i++)
        if (member[i].set == set && member[i].value == value) return member[i].name;
    return NULL;
}

bool vtrn_enum_value(enum vtrn_enum_set set, const char *name, size_t length, int *value_out)
{
    for (int i = 0; i < MEMBERS; i++) {
        if (member[i].set != set || !same_text(member[i].name, name, length)) continue;
        *value_out = member[i].value;
        return true;
    }
    return false;
}

bool vtrn_enum_member(enum vtrn_enum_set set, int i, const char **name_out, int *value_out)
{
    for (int k = 0; k < MEMBERS; k++) {
        if (member[k].set != set || i-- != 0) continue;
        *name_out = member[k].name;
        *value_out = member[k].value;
        return true;
    }
    return false;
}

const char *vtrn_engine_name(int engine)
{
    const char *name = vtrn_enum_name(VTRN_ENUMS_ENGINE, engine);

    return name ? name : "unknown";
}

const char *vtrn_space_name(int space)
{
    switch (space) {
    case VTRN_SBUF: return "sbuf";
    case VTRN_PSUM: return "psum";
    case VTRN_HBM: return "hbm";
    case VTRN_HBM_SHARED: return "shared_hbm";
    default: return "none";
    }
}

/* ---------------------------------------------------------------- instructions: operands of each row */
#define LIST(kind_, access_, name_, spaces_, dtypes_, optional_, max_) \
    { .name = #name_, .kind = VTRN_K_##kind_, .access = access_, .spaces = VTRN_IN_##spaces_, .dtypes = VTRN_DTS_##dtypes_, \
      .optional = optional_, .max_count = max_ },
#define TENSOR(access_, name_, spaces_, dtypes_, optional_) LIST(TENSOR, access_, name_, spaces_, dtypes_, optional_, 0)
#define ABSENT .has_default = 0
#define DEFAULT_NUM(dflt_) .has_default = 1, .dflt = dflt_, .start_kind = VTRN_V_NUM, .start.num = dflt_
#define DEFAULT_INT(dflt_) .has_default = 1, .dflt = dflt_, .start_kind = VTRN_V_INT, .start.i = dflt_
#define VECTOR(name_, optional_, ...) \
    { .name = #name_, .kind = VTRN_K_SCALAR, .access = VTRN_READ, .spaces = VTRN_IN_SP, .dtypes = VTRN_DTS_PLAIN, \
      .optional = optional_, __VA_ARGS__ },
#define PLAIN(kind_, name_, optional_, ...) { .name = #name_, .kind = VTRN_K_##kind_, .optional = optional_, __VA_ARGS__ },
#define WHOLE(name_, min_, max_, optional_, ...) \
    { .name = #name_, .kind = VTRN_K_INT, .min = min_, .max = max_, .optional = optional_, __VA_ARGS__ },
#define REGISTER(name_, access_, ...) \
    { .name = #name_, .kind = VTRN_K_REG, .access = access_, .min = INT32_MIN, .max = INT32_MAX, __VA_ARGS__ },
#define CHOICE(kind_, name_, set_, optional_) { .name = #name_, .kind = VTRN_K_##kind_, .set = set_, .optional = optional_ },

#define WR(name, spaces, dtypes) TENSOR(VTRN_WRITE, name, spaces, dtypes, 0)
#define RD(name, spaces, dtypes) TENSOR(VTRN_READ, name, spaces, dtypes, 0)
#define RW(name, spaces, dtypes) TENSOR(VTRN_READ | VTRN_WRITE, name, spaces, dtypes, 0)
#define OWR(name, spaces, dtypes) TENSOR(VTRN_WRITE, name, spaces, dtypes, 1)
#define ORD(name, spaces, dtypes) TENSOR(VTRN_READ, name, spaces, dtypes, 1)
#define LRD(name, spaces, dtypes, max) LIST(TENSORS, VTRN_READ, name, spaces, dtypes, 0, max)
#define TI(name, spaces, dtypes) LIST(TENSOR_OR_NUM, VTRN_READ, name, spaces, dtypes, 0, 0)
#define SC(name) VECTOR(name, 0, ABSENT)
#define SCD(name, dflt_) VECTOR(name, 0, DEFAULT_NUM(dflt_))
#define SCN(name) VECTOR(name, 1, ABSENT)
#define NUM(name) PLAIN(NUM, name, 0, ABSENT)
#define NUMD(name, dflt_) PLAIN(NUM, name, 0, DEFAULT_NUM(dflt_))
#define INT(name, min, max) WHOLE(name, min, max, 0, ABSENT)
#define INTD(name, min, max, dflt_) WHOLE(name, min, max, 0, DEFAULT_INT(dflt_))
#define INTN(name, min, max) WHOLE(name, min, max, 1, ABSENT)
#define REG(name) REGISTER(name, VTRN_READ, ABSENT)
#define REGW(name) REGISTER(name, VTRN_WRITE, ABSENT)
#define REGD(name, dflt_) REGISTER(name, VTRN_READ, DEFAULT_INT(dflt_))
#define FLAG(name, dflt_) PLAIN(FLAG, name, 0, DEFAULT_INT(dflt_))
#define TRI(name) PLAIN(TRI, name, 1, ABSENT)
#define ENUM(name_, set_, dflt_) \
    { .name = #name_, .kind = VTRN_K_ENUM, .set = VTRN_ENUMS_##set_, DEFAULT_INT(VTRN_##set_##_##dflt_) },
#define ALU(name, set) CHOICE(ALU, name, VTRN_ALUSET_##set, 0)
#define OALU(name, set) CHOICE(ALU, name, VTRN_ALUSET_##set, 1)
#define ACT(name) CHOICE(ACT, name, 0, 0)
#define INTS(name_, max_) { .name = #name_, .kind = VTRN_K_INTS, .min = INT64_MIN, .max = INT64_MAX, .max_count = max_ },
#define OINTS(name_, max_) \
    { .name = #name_, .kind = VTRN_K_INTS, .min = INT64_MIN, .max = INT64_MAX, .max_count = max_, .optional = 1 },
#define ENG(name) PLAIN(ENGINE, name, 1, ABSENT)
#define STR(name) PLAIN(STRING, name, 0, ABSENT)

#define OP(name_, code, engines, dflt, version, args, rule, doc) \
    static const struct vtrn_operand_info operands_of_##name_[] = { args{ .name = NULL } };
#define GONE(code, name)
#include "isa/ops.def"
#undef OP
#undef GONE

/* ---------------------------------------------------------------- instructions: the rows
 * The engines column is a list of letters: each letter expands to "| its bit". */
#define T | 1 << VTRN_ENGINE_TENSOR
#define V | 1 << VTRN_ENGINE_VECTOR
#define A | 1 << VTRN_ENGINE_SCALAR
#define G | 1 << VTRN_ENGINE_GPSIMD
#define D | 1 << VTRN_ENGINE_DMA
#define Y | 1 << VTRN_ENGINE_SYNC
#define ALL T V A G Y
const struct vtrn_op_info vtrn_ops[VTRN_OPCODES] = {
#define OP(name_, code_, engines_, dflt_, version_, args_, rule_, doc_) \
    [code_] = { .name = #name_, \
                .doc = doc_, \
                .operand = operands_of_##name_, \
                .operands = sizeof operands_of_##name_ / sizeof operands_of_##name_[0] - 1, \
                .code = code_, \
                .engines = 0 engines_, \
                .default_engine = VTRN_ENGINE_##dflt_, \
                .first_version = version_, \
                .rule = VTRN_RULE_##rule_ },
#define GONE(code, name)
#include "isa/ops.def"
#undef OP
#undef GONE
};
#undef T
#undef V
#undef A
#undef G
#undef D
#undef Y
#undef ALL

/* A code that is used twice, retired ones included, does not compile: duplicate case. */
const char *vtrn_op_retired(int code)
{
    switch (code) {
#define OP(name, code_, engines, dflt, version, args, rule, doc) \
    case code_: return NULL;
#define GONE(code_, name) \
    case code_: return #name;
#include "isa/ops.def"
#undef OP
#undef GONE
    default: return NULL;
    }
}
/* The row's operands fit an instruction. */
#define OP(name, code, engines, dflt, version, args, rule, doc) \
    _Static_assert(sizeof(struct vtrn_args_##name) <= (VTRN_MAX_OPERANDS + 1) * sizeof(struct vtrn_value), #name);
#define GONE(code, name)
#include "isa/ops.def"
#undef OP
#undef GONE

enum vtrn_opcode vtrn_op_by_name(const char *name, size_t length)
{
    for (int i = 1; i < VTRN_OPCODES; i++)
        if (same_text(vtrn_ops[i].name, name, length)) return (enum vtrn_opcode)i;
    return VTRN_OP_NONE;
}

/* ---------------------------------------------------------------- empty instructions */
void vtrn_inst_init(struct vtrn_inst *inst, enum vtrn_opcode op)
{
    const struct vtrn_op_info *row = &vtrn_ops[op];

    inst->op = (uint8_t)op;
    inst->engine = VTRN_ENGINE_UNKNOWN;
    inst->flags = 0;
    inst->loc = 0;
    inst->name = 0;
    inst->ndyns = 0;
    inst->naps = 0;
    inst->nints = 0;
    for (int i = 0; i < row->operands; i++) vtrn_value_init(&inst->arg[i], &row->operand[i]);
}

struct vtrn_dyn *vtrn_inst_new_dyns(struct vtrn_inst *inst, int count)
{
    struct vtrn_dyn *dyns = &inst->dyns[inst->ndyns];

    if (count < 0 || count > VTRN_INST_DYNS - inst->ndyns) return NULL;
    inst->ndyns += count;
    return dyns;
}

int64_t *vtrn_inst_new_ints(struct vtrn_inst *inst, int count)
{
    int64_t *ints = &inst->ints[inst->nints];

    if (count < 0 || count > VTRN_INST_INTS - inst->nints) return NULL;
    inst->nints += count;
    return ints;
}

struct vtrn_ap *vtrn_inst_new_aps(struct vtrn_inst *inst, int count)
{
    struct vtrn_ap *aps = &inst->aps[inst->naps];

    if (count < 0 || count > VTRN_INST_APS - inst->naps) return NULL;
    inst->naps += count;
    return aps;
}
