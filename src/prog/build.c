/* Building a program: create, append instructions and dependency edges, read them back. Every instruction is checked
 * (legal.c) before it is encoded, so a program that exists is legal. Appending keeps, for each tensor, the span of
 * instructions that need it, loops included: memory is released by it and allocators plan with it.
 * Sits between the front ends and exec/time; must not know what an instruction computes. */
#include "prog/prog_int.h"

struct vtrn_prog *vtrn_prog_create(const struct vtrn_arch *arch, int cores, struct vtrn_error *err)
{
    struct vtrn_prog *prog;
    uint32_t empty, unknown;

    if (!arch || cores < 1 || cores > VTRN_CORES_MAX) {
        vtrn_fail(err, VTRN_INVALID, "a program needs a target and 1 or %d cores, not %d", VTRN_CORES_MAX, cores);
        return NULL;
    }
    prog = calloc(1, sizeof *prog);
    if (!prog) goto no_memory;
    prog->arch = arch;
    prog->cores = cores;
    prog->replayable = true;
    if (vtrn_prog_string(prog, "", 0, &empty) < 0 || vtrn_prog_loc(prog, empty, 0, &unknown) < 0) goto no_memory;
    return prog;

no_memory:
    vtrn_prog_destroy(prog);
    vtrn_fail(err, VTRN_NOMEM, "no memory for a program");
    return NULL;
}

void vtrn_prog_destroy(struct vtrn_prog *prog)
{
    if (!prog) return;
    for (int core = 0; core < VTRN_CORES_MAX; core++) {
        vtrn_buf_fini(&prog->code[core].words);
        free(prog->code[core].start);
        free(prog->code[core].edge);
        free(prog->code[core].loop);
    }
    free(prog->tensor);
    free(prog->loc);
    vtrn_buf_fini(&prog->string_bytes);
    free(prog->string_at);
    free(prog->string_hash);
    free(prog->name_tensor);
    vtrn_arena_fini(&prog->arena);
    free(prog);
}

/* ---------------------------------------------------------------- uses */
static void use_tensor(struct vtrn_prog *prog, uint32_t tensor, uint32_t index)
{
    struct vtrn_tensor *t = &prog->tensor[tensor];

    if (index < t->first_use) t->first_use = index;
    if (index > t->last_use) t->last_use = index;
}

static void use_register(struct vtrn_prog *prog, int64_t reg)
{
    if (reg >= prog->registers) prog->registers = (uint32_t)reg + 1;
}

static void use_ap(struct vtrn_prog *prog, const struct vtrn_ap *ap, uint32_t index)
{
    use_tensor(prog, ap->tensor, index);
    for (int d = 0; d < ap->ndyn; d++) {
        if (ap->dyn[d].kind == VTRN_DYN_REG) use_register(prog, ap->dyn[d].ref);
        else use_tensor(prog, ap->dyn[d].ref, index);
    }
}

static void use_operands(struct vtrn_prog *prog, const struct vtrn_inst *inst, uint32_t index)
{
    for (int a = 0; a < vtrn_ops[inst->op].operands; a++) {
        const struct vtrn_value *value = &inst->arg[a];

        if (value->kind == VTRN_V_AP) use_ap(prog, &value->ap, index);
        else if (value->kind == VTRN_V_REG) use_register(prog, value->i);
        else if (value->kind == VTRN_V_APS)
            for (int i = 0; i < value->count; i++) use_ap(prog, &value->aps[i], index);
    }
}

static void extend_use(struct vtrn_prog *prog, uint32_t tensor, uint32_t begin, uint32_t end)
{
    struct vtrn_tensor *t = &prog->tensor[tensor];

    if (t->born <= begin && t->last_use < end) t->last_use = end;
}

static void extend_ap(struct vtrn_prog *prog, const struct vtrn_ap *ap, uint32_t begin, uint32_t end)
{
    extend_use(prog, ap->tensor, begin, end);
    for (int d = 0; d < ap->ndyn; d++)
        if (ap->dyn[d].kind != VTRN_DYN_REG) extend_use(prog, ap->dyn[d].ref, begin, end);
}

/* Tensors that were there before the loop and are used in its body live to the loop's end. Walks the body once per
 * nesting level, which is cheaper than tracking uses at every append. */
static void close_loop(struct vtrn_prog *prog, int core, uint32_t begin, uint32_t end)
{
    struct vtrn_inst inst;

    for (uint32_t i = begin; i < end; i++) {
        vtrn_prog_get(prog, core, i, &inst);
        for (int a = 0; a < vtrn_ops[inst.op].operands; a++) {
            const struct vtrn_value *value = &inst.arg[a];

            if (value->kind == VTRN_V_AP) extend_ap(prog, &value->ap, begin, end);
            else if (value->kind == VTRN_V_APS)
                for (int k = 0; k < value->count; k++) extend_ap(prog, &value->aps[k], begin, end);
        }
    }
}

/* ---------------------------------------------------------------- append */
static bool begins_loop(const struct vtrn_inst *inst) { return inst->op == VTRN_OP_loop_begin || inst->op == VTRN_OP_while_begin; }

/* Whether the instruction may open or close a loop here, and room to note it. */
static enum vtrn_status check_loops(struct vtrn_code *code, const struct vtrn_inst *inst, struct vtrn_error *err)
{
    VTRN_FAIL_IF(inst->op == VTRN_OP_loop_end && code->loop_depth == 0, err, VTRN_ILLEGAL, "no loop is open here");
    if (!begins_loop(inst)) return VTRN_OK;
    VTRN_FAIL_IF(code->loop_depth == VTRN_LOOP_DEPTH, err, VTRN_LIMIT, "loops nest deeper than %d", VTRN_LOOP_DEPTH);
    VTRN_FAIL_IF(prog_grow(&code->loop, &code->loop_capacity, code->loops + 1, sizeof *code->loop) < 0, err, VTRN_NOMEM,
                 "no memory for a loop");
    return VTRN_OK;
}

static void note_loops(struct vtrn_prog *prog, int core, const struct vtrn_inst *inst, uint32_t index)
{
    struct vtrn_code *code = &prog->code[core];

    if (begins_loop(inst)) {
        code->loop[code->loops] = (struct vtrn_loop){ index, UINT32_MAX, code->loop_depth ? code->open_loop : UINT32_MAX };
        code->open_loop = code->loops++;
        code->loop_depth++;
    } else if (inst->op == VTRN_OP_loop_end) {
        struct vtrn_loop *loop = &code->loop[code->open_loop];

        loop->end = index;
        close_loop(prog, core, loop->begin, index);
        code->open_loop = loop->outer;
        code->loop_depth--;
    }
}

enum vtrn_status vtrn_prog_append(struct vtrn_prog *prog, int core, struct vtrn_inst *inst, uint32_t *index_out,
                                  struct vtrn_error *err)
{
    struct vtrn_code *code;
    size_t size_before;
    uint32_t index;
    enum vtrn_status status;

    VTRN_FAIL_IF(core < 0 || core >= prog->cores, err, VTRN_INVALID, "core %d: the program has %d", core, prog->cores);
    VTRN_FAIL_IF(!vtrn_ops[inst->op].name, err, VTRN_INVALID, "no instruction has code 0x%02x", inst->op);
    code = &prog->code[core];
    if (inst->engine == VTRN_ENGINE_UNKNOWN) VTRN_TRY(vtrn_legal_engine(prog, inst, err));
    VTRN_TRY(vtrn_legal_check(prog, core, inst, err));
    VTRN_TRY(check_loops(code, inst, err));
    index = code->count;
    VTRN_FAIL_IF(index >= UINT32_MAX - 1, err, VTRN_LIMIT, "too many instructions");
    if (VTRN_UNLIKELY(index + 2 > code->capacity) && prog_grow(&code->start, &code->capacity, index + 2, sizeof *code->start) < 0)
        return vtrn_fail(err, VTRN_NOMEM, "no memory for %u instructions", index + 1);
    size_before = code->words.size;
    status = vtrn_inst_encode(inst, &code->words, err);
    if (status >= 0 && code->words.size / sizeof(uint32_t) >= UINT32_MAX)
        status = vtrn_fail(err, VTRN_LIMIT, "the instructions of a core exceed 16 GiB");
    if (status < 0) {
        code->words.size = size_before;
        return status;
    }
    code->start[index] = (uint32_t)(size_before / sizeof(uint32_t));
    code->start[index + 1] = (uint32_t)(code->words.size / sizeof(uint32_t));
    code->count = index + 1;
    use_operands(prog, inst, index);
    note_loops(prog, core, inst, index);
    if (index_out) *index_out = index;
    return VTRN_OK;
}

void vtrn_prog_get(const struct vtrn_prog *prog, int core, uint32_t index, struct vtrn_inst *inst_out)
{
    const struct vtrn_code *code = &prog->code[core];
    const uint32_t *words = (const uint32_t *)(const void *)code->words.data;

    VTRN_ASSERT(index < code->count);
    vtrn_inst_decode_own(words + code->start[index], inst_out);
}

void vtrn_inst_written(const struct vtrn_inst *inst, uint8_t *written)
{
    const struct vtrn_op_info *op = &vtrn_ops[inst->op];

    for (int a = 0; a < op->operands; a++)
        if (inst->arg[a].kind == VTRN_V_AP && (op->operand[a].access & VTRN_WRITE)) written[inst->arg[a].ap.tensor] = 1;
}

/* ---------------------------------------------------------------- edges */
/* The innermost loop whose body holds the instruction; NULL: none. */
static const struct vtrn_loop *loop_around(const struct vtrn_code *code, uint32_t index)
{
    uint32_t low = 0, high = code->loops;
    const struct vtrn_loop *loop;

    while (low < high) { /* the first loop that begins at or behind the instruction */
        uint32_t middle = low + (high - low) / 2;

        if (code->loop[middle].begin < index) low = middle + 1;
        else high = middle;
    }
    if (low == 0) return NULL;
    for (loop = &code->loop[low - 1]; loop->end <= index; loop = &code->loop[loop->outer])
        if (loop->outer == UINT32_MAX) return NULL;
    return loop;
}

enum vtrn_status vtrn_prog_edge(struct vtrn_prog *prog, int core, uint32_t consumer, uint32_t producer, struct vtrn_error *err)
{
    const struct vtrn_loop *loop;
    struct vtrn_code *code;

    VTRN_FAIL_IF(core < 0 || core >= prog->cores, err, VTRN_INVALID, "core %d: the program has %d", core, prog->cores);
    code = &prog->code[core];
    VTRN_FAIL_IF(consumer >= code->count || producer >= code->count, err, VTRN_INVALID,
                 "depends_on: instruction %u is not in core %d's list of %u", consumer >= code->count ? consumer : producer, core,
                 code->count);
    VTRN_FAIL_IF(producer >= consumer, err, VTRN_ILLEGAL,
                 "depends_on: the producer (instruction %u) must come before the consumer (%u)", producer, consumer);
    /* The wait fires on every turn of the consumer's loop: an edge may not leave the loop that its producer is in. */
    loop = loop_around(code, producer);
    VTRN_FAIL_IF(loop && loop->end <= consumer, err, VTRN_ILLEGAL,
                 "depends_on: the producer is inside a loop that the consumer is not in; put both in the same loop");
    VTRN_FAIL_IF(code->edges == UINT32_MAX || prog_grow(&code->edge, &code->edge_capacity, code->edges + 1, sizeof *code->edge) < 0,
                 err, VTRN_NOMEM, "no memory for a dependency");
    code->edge[code->edges++] = (struct vtrn_edge){ consumer, producer };
    return VTRN_OK;
}

/* The span of a tensor that only the taken instructions used is empty again; another one ends with the list. */
static void unuse(struct vtrn_prog *prog, uint32_t tensor, uint32_t count)
{
    struct vtrn_tensor *t = &prog->tensor[tensor];

    if (t->first_use != UINT32_MAX && t->first_use >= count) {
        t->first_use = UINT32_MAX;
        t->last_use = 0;
    } else if (t->first_use != UINT32_MAX && t->last_use >= count) {
        t->last_use = count - 1;
    }
}

static void unuse_ap(struct vtrn_prog *prog, const struct vtrn_ap *ap, uint32_t count)
{
    unuse(prog, ap->tensor, count);
    for (int d = 0; d < ap->ndyn; d++)
        if (ap->dyn[d].kind != VTRN_DYN_REG) unuse(prog, ap->dyn[d].ref, count);
}

bool vtrn_prog_take_back(struct vtrn_prog *prog, int core, uint32_t count)
{
    struct vtrn_code *code = &prog->code[core];
    struct vtrn_inst inst;

    if (count > code->count) return false;
    if (count == code->count) return true;
    if (code->edges && code->edge[code->edges - 1].consumer >= count) return false;
    for (uint32_t i = count; i < code->count; i++) {
        vtrn_prog_get(prog, core, i, &inst);
        if (begins_loop(&inst) || inst.op == VTRN_OP_loop_end) return false;
    }
    for (uint32_t i = count; i < code->count; i++) {
        vtrn_prog_get(prog, core, i, &inst);
        for (int a = 0; a < vtrn_ops[inst.op].operands; a++) {
            const struct vtrn_value *value = &inst.arg[a];

            if (value->kind == VTRN_V_AP) unuse_ap(prog, &value->ap, count);
            else if (value->kind == VTRN_V_APS)
                for (int k = 0; k < value->count; k++) unuse_ap(prog, &value->aps[k], count);
        }
    }
    code->words.size = code->start[count] * sizeof(uint32_t);
    code->count = count;
    return true;
}

void vtrn_prog_forget_code(struct vtrn_prog *prog, int core)
{
    struct vtrn_code *code = &prog->code[core];

    VTRN_ASSERT(code->loop_depth == 0); /* an open loop cannot have been executed */
    code->words.size = 0;
    code->count = 0;
    code->edges = 0;
    code->loops = 0;
    code->forgets++;
}

/* ---------------------------------------------------------------- where */
void vtrn_prog_where(const struct vtrn_prog *prog, const struct vtrn_inst *inst, char *out, size_t size)
{
    const char *op = vtrn_ops[inst->op].name ? vtrn_ops[inst->op].name : "?";
    const char *space = inst->op == VTRN_OP_device_print ? "nl." : "nisa.";
    const char *file, *slash;

    if (inst->loc == 0 || inst->loc >= prog->locs) {
        snprintf(out, size, "%s%s", space, op);
        return;
    }
    file = vtrn_prog_text(prog, prog->loc[inst->loc].file);
    slash = strrchr(file, '/');
    snprintf(out, size, "%s:%u %s%s", slash ? slash + 1 : file, (unsigned)prog->loc[inst->loc].line, space, op);
}
