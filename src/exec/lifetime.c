/* When the memory of on-chip tensors is given back while a program runs.
 *
 * After the last instruction that uses a tensor, when the caller wants that (replays; a tracing front end knows better which
 * tensors Python has dropped). And whenever a program loop turns back: each turn declares the tensors of the body anew, so
 * they begin with poison, and accumulation groups begin again, as in the Python loop that the program stands for.
 * Knows positions and tensors; must not know operands beyond that. */
#include "exec/exec_int.h"

/* ---------------------------------------------------------------- last uses */
/* Counting sort of the tensors by their last use. */
enum vtrn_status exec_releases_make(struct vtrn_core *core)
{
    const struct vtrn_prog *prog = core->prog;
    struct exec_releases *releases = &core->releases;
    uint32_t insts = prog->code[core->id].count, total = 0;

    if (releases->insts == insts && releases->tensors == prog->tensors) return VTRN_OK;
    free(releases->start);
    free(releases->tensor);
    releases->insts = 0;
    releases->start = calloc((size_t)insts + 2, sizeof *releases->start);
    releases->tensor = malloc(((size_t)prog->tensors + 1) * sizeof *releases->tensor);
    VTRN_FAIL_IF(!releases->start || !releases->tensor, &core->err, VTRN_NOMEM, "no memory for the last uses of %u tensors",
                 prog->tensors);
    for (int pass = 0; pass < 2; pass++) { /* count into start[pc + 2], then place, which moves start[pc + 1] to its end */
        for (uint32_t t = 0; t < prog->tensors; t++) {
            const struct vtrn_tensor *tensor = &prog->tensor[t];

            if (tensor->core != core->id || !vtrn_space_on_chip(tensor->space) || tensor->first_use == UINT32_MAX ||
                tensor->last_use >= insts)
                continue;
            if (pass == 0) releases->start[tensor->last_use + 2]++;
            else releases->tensor[releases->start[tensor->last_use + 1]++] = t;
        }
        if (pass == 0)
            for (uint32_t pc = 0; pc <= insts; pc++) {
                total += releases->start[pc];
                releases->start[pc] = total;
            }
    }
    releases->insts = insts;
    releases->tensors = prog->tensors;
    return VTRN_OK;
}

void exec_release_after(struct vtrn_core *core, uint32_t pc)
{
    const struct exec_releases *releases = &core->releases;

    if (pc >= releases->insts) return;
    for (uint32_t i = releases->start[pc]; i < releases->start[pc + 1]; i++)
        vtrn_mem_release(core->mem, core->id, releases->tensor[i]);
}

/* ---------------------------------------------------------------- turns of a loop */
static enum vtrn_status note_renewal(struct vtrn_core *core, struct exec_renewals *list, uint32_t index)
{
    const struct vtrn_tensor *tensor = &core->prog->tensor[index];

    if (tensor->core != core->id || !vtrn_space_on_chip(tensor->space)) return VTRN_OK;
    if (tensor->age != list->forgets || tensor->born <= list->begin || tensor->born > list->end) return VTRN_OK;
    for (uint32_t k = list->count; k > 0 && k + 8 > list->count; k--) /* most are used a few times in a row */
        if (list->tensor[k - 1] == index) return VTRN_OK;
    if (list->count == list->capacity) {
        uint32_t capacity = list->capacity ? 2 * list->capacity : 64;
        uint32_t *grown = realloc(list->tensor, (size_t)capacity * sizeof *grown);

        VTRN_FAIL_IF(!grown, &core->err, VTRN_NOMEM, "no memory for the list of %u tensors of a loop", capacity);
        list->tensor = grown;
        list->capacity = capacity;
    }
    list->tensor[list->count++] = index;
    return VTRN_OK;
}

static enum vtrn_status note_pattern(struct vtrn_core *core, struct exec_renewals *list, const struct vtrn_ap *ap)
{
    VTRN_TRY(note_renewal(core, list, ap->tensor));
    for (int d = 0; d < ap->ndyn; d++)
        if (ap->dyn[d].kind != VTRN_DYN_REG) VTRN_TRY(note_renewal(core, list, ap->dyn[d].ref));
    return VTRN_OK;
}

/* Reads the loop's body once. */
static enum vtrn_status make_renewals(struct vtrn_core *core, struct exec_renewals *list, uint32_t begin, uint32_t end)
{
    struct vtrn_inst inst;

    list->begin = begin;
    list->end = end;
    list->forgets = core->prog->code[core->id].forgets;
    list->count = 0;
    for (uint32_t pc = begin + 1; pc < end; pc++) {
        vtrn_prog_get(core->prog, core->id, pc, &inst);
        for (int a = 0; a < vtrn_ops[inst.op].operands; a++) {
            const struct vtrn_value *value = &inst.arg[a];

            if (value->kind == VTRN_V_AP) VTRN_TRY(note_pattern(core, list, &value->ap));
            if (value->kind == VTRN_V_APS)
                for (int k = 0; k < value->count; k++) VTRN_TRY(note_pattern(core, list, &value->aps[k]));
        }
    }
    return VTRN_OK;
}

/* The loop that begins at `begin` turns back from its end: what its body declares starts anew. */
enum vtrn_status exec_renew(struct vtrn_core *core, uint32_t begin, uint32_t end)
{
    struct exec_renewals *list = &core->renewals[core->loops > 0 ? core->loops - 1 : 0];

    if (list->begin != begin || list->end != end || list->forgets != core->prog->code[core->id].forgets) {
        enum vtrn_status status = make_renewals(core, list, begin, end);

        if (status < 0) {
            list->end = 0;
            return status;
        }
    }
    for (uint32_t k = 0; k < list->count; k++) vtrn_mem_release(core->mem, core->id, list->tensor[k]);
    return VTRN_OK;
}

void exec_lifetimes_fini(struct vtrn_core *core)
{
    free(core->releases.start);
    free(core->releases.tensor);
    for (int depth = 0; depth < VTRN_LOOP_DEPTH; depth++) free(core->renewals[depth].tensor);
}
