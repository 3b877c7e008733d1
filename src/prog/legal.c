/* Legality, the part that is the same for all instructions: the choice of the engine, and every check that the
 * instruction's row in ops.def describes (engine, version, operand kinds, spaces, dtypes, ranges, enums, operators).
 * What a row cannot say is in one function per instruction in legal_<group>.c. A message names the operand, the value,
 * the limit and what to do; the caller puts the kernel's line and the instruction's name before it.
 * Looks only at the program and the target: no memory, no time. */
#include "prog/legal_int.h"

/* ---------------------------------------------------------------- the engine, when the caller left it open */
static const struct vtrn_tensor *tensor_of(const struct vtrn_prog *prog, const struct vtrn_value *value)
{
    return value->kind == VTRN_V_AP && value->ap.tensor < prog->tensors ? &prog->tensor[value->ap.tensor] : NULL;
}

static bool in_psum(const struct vtrn_prog *prog, const struct vtrn_value *value)
{
    const struct vtrn_tensor *tensor = tensor_of(prog, value);

    return tensor && tensor->space == VTRN_PSUM;
}

static bool is_word(const struct vtrn_value *value)
{
    return value->kind == VTRN_V_AP && (value->ap.dtype == VTRN_DT_I32 || value->ap.dtype == VTRN_DT_U32);
}

/* GpSimd has exact 32-bit integers and the operators that the vector engine lacks. It cannot reach PSUM. */
static int engine_of_tensor_tensor(const struct vtrn_prog *prog, const struct vtrn_inst *inst)
{
    const struct vtrn_args_tensor_tensor *args = VTRN_ARGS(tensor_tensor, inst);
    int64_t op = args->op.kind == VTRN_V_INT ? args->op.i : 0;
    bool psum = in_psum(prog, &args->dst) || in_psum(prog, &args->data1) || in_psum(prog, &args->data2);

    if (op == VTRN_ALU_POWER) return VTRN_ENGINE_GPSIMD;
    if (op <= 0 || op >= VTRN_ALU_COUNT || vtrn_alus[op].cls != VTRN_ALU_ARITH || psum) return VTRN_ENGINE_VECTOR;
    return is_word(&args->dst) && is_word(&args->data1) && is_word(&args->data2) ? VTRN_ENGINE_GPSIMD : VTRN_ENGINE_VECTOR;
}

static bool gpsimd_only(const struct vtrn_value *op)
{
    return op->kind == VTRN_V_INT && (op->i == VTRN_ALU_POWER || op->i == VTRN_ALU_RSQRT);
}

static int engine_of_tensor_scalar(const struct vtrn_inst *inst)
{
    const struct vtrn_args_tensor_scalar *args = VTRN_ARGS(tensor_scalar, inst);

    return gpsimd_only(&args->op0) || gpsimd_only(&args->op1) ? VTRN_ENGINE_GPSIMD : VTRN_ENGINE_VECTOR;
}

/* The tensor engine reads SBUF and writes PSUM; every other transpose is the vector engine's. */
static int engine_of_transpose(const struct vtrn_prog *prog, const struct vtrn_inst *inst)
{
    const struct vtrn_args_nc_transpose *args = VTRN_ARGS(nc_transpose, inst);

    return in_psum(prog, &args->dst) && !in_psum(prog, &args->data) ? VTRN_ENGINE_TENSOR : VTRN_ENGINE_VECTOR;
}

enum vtrn_status vtrn_legal_engine(const struct vtrn_prog *prog, struct vtrn_inst *inst, struct vtrn_error *err)
{
    VTRN_FAIL_IF(!vtrn_ops[inst->op].name, err, VTRN_INVALID, "no instruction has code 0x%02x", inst->op);
    if (inst->engine != VTRN_ENGINE_UNKNOWN) return VTRN_OK;
    switch (inst->op) {
    case VTRN_OP_tensor_tensor: inst->engine = (uint8_t)engine_of_tensor_tensor(prog, inst); break;
    case VTRN_OP_tensor_scalar: inst->engine = (uint8_t)engine_of_tensor_scalar(inst); break;
    case VTRN_OP_nc_transpose: inst->engine = (uint8_t)engine_of_transpose(prog, inst); break;
    default: inst->engine = vtrn_ops[inst->op].default_engine; break;
    }
    return VTRN_OK;
}

/* ---------------------------------------------------------------- engine and version */
static void engine_names(unsigned mask, char *text, size_t size)
{
    size_t used = 0;

    text[0] = '\0';
    for (int e = 1; e < VTRN_ENGINES; e++)
        if (mask >> e & 1 && used < size)
            used += (size_t)snprintf(text + used, size - used, "%s%s", used ? ", " : "", vtrn_engine_name(e));
}

static const char *first_chip_of(int version) { return version == 4 ? "trn3" : version == 3 ? "trn2" : "trn1"; }

static enum vtrn_status check_engine(struct legal *legal)
{
    const struct vtrn_op_info *info = legal->info;
    int engine = legal->inst->engine;
    char names[80];

    if (VTRN_UNLIKELY(engine >= VTRN_ENGINES || !(info->engines >> engine & 1))) {
        engine_names(info->engines, names, sizeof names);
        return vtrn_fail(legal->err, VTRN_ILLEGAL, "engine %s does not run it; use one of: %s",
                         engine < VTRN_ENGINES ? vtrn_engine_name(engine) : "?", names);
    }
    LEGAL_FAIL_IF(legal->version < info->first_version, legal, "needs NeuronCore v%d (%s) or newer; the target %s is v%d",
                  info->first_version, first_chip_of(info->first_version), legal->prog->arch->chip, legal->version);
    return VTRN_OK;
}

/* ---------------------------------------------------------------- operands that are not tensors */
static enum vtrn_status check_range(struct legal *legal, const struct vtrn_operand_info *info, const struct vtrn_value *value)
{
    LEGAL_FAIL_IF(value->kind != VTRN_V_INT, legal, "%s must be an integer", info->name);
    LEGAL_FAIL_IF(value->i < info->min || value->i > info->max, legal, "%s %lld is outside %lld..%lld", info->name,
                  (long long)value->i, (long long)info->min, (long long)info->max);
    return VTRN_OK;
}

static enum vtrn_status check_register(struct legal *legal, const struct vtrn_operand_info *info, const struct vtrn_value *value)
{
    if (value->kind == VTRN_V_REG) {
        LEGAL_FAIL_IF(value->i < 0 || value->i >= VTRN_REGISTERS_MAX, legal, "%s: register %lld is outside 0..%d", info->name,
                      (long long)value->i, VTRN_REGISTERS_MAX - 1);
        return VTRN_OK;
    }
    LEGAL_FAIL_IF(info->access & VTRN_WRITE, legal, "%s must be a register", info->name);
    LEGAL_FAIL_IF(value->kind != VTRN_V_INT, legal, "%s must be a register or an integer", info->name);
    LEGAL_FAIL_IF(value->i < INT32_MIN || value->i > UINT32_MAX, legal, "%s %lld does not fit in a 32-bit register", info->name,
                  (long long)value->i);
    return VTRN_OK;
}

static enum vtrn_status check_alu(struct legal *legal, const struct vtrn_operand_info *info, const struct vtrn_value *value)
{
    LEGAL_FAIL_IF(value->kind != VTRN_V_INT || value->i <= 0 || value->i >= VTRN_ALU_COUNT || !vtrn_alus[value->i].nki_name, legal,
                  "%s must be an operator of nki.language", info->name);
    LEGAL_FAIL_IF(!vtrn_alu_in_set((enum vtrn_alu)value->i, (enum vtrn_alu_set)info->set), legal,
                  "%s: %s is not an operator that this instruction has", info->name, vtrn_alus[value->i].nki_name);
    LEGAL_FAIL_IF(vtrn_alus[value->i].first_version > legal->version, legal, "%s: %s needs NeuronCore v%d (%s) or newer; %s is v%d",
                  info->name, vtrn_alus[value->i].nki_name, vtrn_alus[value->i].first_version,
                  first_chip_of(vtrn_alus[value->i].first_version), legal->prog->arch->chip, legal->version);
    return VTRN_OK;
}

static enum vtrn_status check_enum(struct legal *legal, const struct vtrn_operand_info *info, const struct vtrn_value *value)
{
    if (VTRN_LIKELY(value->kind == VTRN_V_INT && info->has_default && (double)value->i == info->dflt)) return VTRN_OK;
    LEGAL_FAIL_IF(value->kind != VTRN_V_INT || value->i < 0 || value->i > INT32_MAX ||
                      !vtrn_enum_name((enum vtrn_enum_set)info->set, (int)value->i),
                  legal, "%s must be a member of %s", info->name, vtrn_enum_set_name((enum vtrn_enum_set)info->set));
    return VTRN_OK;
}

static enum vtrn_status check_list(struct legal *legal, const struct vtrn_operand_info *info, const struct vtrn_value *value)
{
    LEGAL_FAIL_IF(value->kind != VTRN_V_INTS, legal, "%s must be a list of integers", info->name);
    LEGAL_FAIL_IF(value->count > info->max_count, legal, "%s has %u entries, at most %u are possible", info->name, value->count,
                  info->max_count);
    return VTRN_OK;
}

static enum vtrn_status check_number(struct legal *legal, const struct vtrn_operand_info *info, const struct vtrn_value *value)
{
    LEGAL_FAIL_IF(value->kind != VTRN_V_NUM, legal, "%s must be a number", info->name);
    return VTRN_OK;
}

static enum vtrn_status check_act(struct legal *legal, const struct vtrn_operand_info *info, const struct vtrn_value *value)
{
    LEGAL_FAIL_IF(value->kind != VTRN_V_INT || value->i <= 0 || value->i >= VTRN_ACT_COUNT || !vtrn_acts[value->i].nki_name, legal,
                  "%s must be an activation function of nki.language", info->name);
    return VTRN_OK;
}

/* ---------------------------------------------------------------- all operands of the row */
static enum vtrn_status check_tensors(struct legal *legal, const struct vtrn_operand_info *info, const struct vtrn_value *value)
{
    struct legal_operand ignored;

    LEGAL_FAIL_IF(value->kind != VTRN_V_APS, legal, "%s must be a list of tensors", info->name);
    LEGAL_FAIL_IF(value->count < 1 || value->count > info->max_count, legal, "%s has %u tensors, 1..%u are possible", info->name,
                  value->count, info->max_count);
    for (int i = 0; i < value->count; i++) VTRN_TRY(legal_access(legal, info, &value->aps[i], &ignored));
    return VTRN_OK;
}

static enum vtrn_status check_value(struct legal *legal, const struct vtrn_operand_info *info, const struct vtrn_value *value)
{
    switch (info->kind) {
    case VTRN_K_TENSORS: return check_tensors(legal, info, value);
    case VTRN_K_TENSOR_OR_NUM:
    case VTRN_K_SCALAR:
        LEGAL_FAIL_IF(value->kind != VTRN_V_NUM, legal, "%s must be a number or a tensor", info->name);
        return VTRN_OK;
    case VTRN_K_NUM: return check_number(legal, info, value);
    case VTRN_K_INT: return check_range(legal, info, value);
    case VTRN_K_REG: return check_register(legal, info, value);
    case VTRN_K_FLAG:
    case VTRN_K_TRI:
        LEGAL_FAIL_IF(value->kind != VTRN_V_INT || (value->i != 0 && value->i != 1), legal, "%s must be True or False", info->name);
        return VTRN_OK;
    case VTRN_K_ENUM: return check_enum(legal, info, value);
    case VTRN_K_ALU: return check_alu(legal, info, value);
    case VTRN_K_ACT: return check_act(legal, info, value);
    case VTRN_K_INTS: return check_list(legal, info, value);
    case VTRN_K_STRING:
        LEGAL_FAIL_IF(value->kind != VTRN_V_INT || value->i < 0 || value->i >= legal->prog->strings, legal, "%s must be a string",
                      info->name);
        return VTRN_OK;
    default: return vtrn_fail(legal->err, VTRN_ILLEGAL, "%s must be a tensor", info->name);
    }
}

/* An operand with a default always has a value (vtrn_inst_init): bodies and exec may rely on it. */
static bool may_be_absent(const struct vtrn_operand_info *info)
{
    return info->optional || info->kind == VTRN_K_ENGINE || info->kind == VTRN_K_TRI;
}

static bool may_be_tensor(const struct vtrn_operand_info *info)
{
    return info->kind == VTRN_K_TENSOR || info->kind == VTRN_K_TENSOR_OR_NUM || info->kind == VTRN_K_SCALAR;
}

static enum vtrn_status check_operands(struct legal *legal)
{
    const struct vtrn_op_info *op = legal->info;

    for (int a = 0; a < op->operands; a++) {
        const struct vtrn_operand_info *info = &op->operand[a];
        const struct vtrn_value *value = &legal->inst->arg[a];

        if (value->kind == VTRN_V_AP && may_be_tensor(info)) {
            VTRN_TRY(legal_access(legal, info, &value->ap, &legal->operand[a]));
        } else if (value->kind == VTRN_V_NONE) {
            LEGAL_FAIL_IF(!may_be_absent(info), legal, "%s is missing", info->name);
        } else {
            VTRN_TRY(check_value(legal, info, value));
        }
    }
    return VTRN_OK;
}

typedef enum vtrn_status legal_body(struct legal *legal);
static legal_body *const bodies[VTRN_OPCODES] = {
#define OP(name, code, engines, dflt, version, args, rule, doc) [code] = legal_##name,
#define GONE(code, name)
#include "isa/ops.def"
#undef OP
#undef GONE
};

enum vtrn_status vtrn_legal_check(const struct vtrn_prog *prog, int core, const struct vtrn_inst *inst, struct vtrn_error *err)
{
    struct legal legal; /* operand[] is filled where the instruction has tensors */
    const struct vtrn_op_info *info = &vtrn_ops[inst->op];

    VTRN_FAIL_IF(!info->name, err, VTRN_INVALID, "no instruction has code 0x%02x", inst->op);
    VTRN_FAIL_IF(inst->loc >= prog->locs || inst->name >= prog->strings, err, VTRN_INVALID,
                 "no such location or name in the program");
    legal.prog = prog;
    legal.inst = inst;
    legal.info = info;
    legal.err = err;
    legal.core = core;
    legal.version = (int)prog->arch->nc_version;
    legal.dma = info->default_engine == VTRN_ENGINE_DMA;
    legal.control = info->rule == VTRN_RULE_CONTROL || info->rule == VTRN_RULE_BARRIER;
    VTRN_TRY(check_engine(&legal));
    VTRN_TRY(check_operands(&legal));
    return bodies[inst->op](&legal);
}
