/* How full the memories are: the peak of what is live at once, the tensors that make it, and the message for those who need
 * one tile too much. Knows spots and lifetimes; must not choose addresses. */
#include "place/place_int.h"

static int by_key(const void *a, const void *b)
{
    const struct place_key *left = a, *right = b;

    if (left->first != right->first) return left->first < right->first ? -1 : 1;
    return left->tensor < right->tensor ? -1 : left->tensor > right->tensor;
}

void place_sort(struct place_key *key, uint32_t keys)
{
    uint64_t moves = 0;

    for (uint32_t i = 1; i < keys; i++) { /* insertion, as long as little is out of order */
        struct place_key one = key[i];
        uint32_t at = i;

        for (; at > 0 && by_key(&key[at - 1], &one) > 0; at--) key[at] = key[at - 1];
        key[at] = one;
        moves += i - at;
        if (moves > 8 * (uint64_t)i + 1024) {
            qsort(key, keys, sizeof *key, by_key);
            return;
        }
    }
}

static bool in_quadrant(const struct vtrn_tensor *t, const struct vtrn_spot *spot, int q)
{
    return (uint32_t)q >= spot->partition / 32u && (uint32_t)q <= (spot->partition + t->partitions - 1u) / 32u;
}

static void add(int64_t *live, const struct vtrn_tensor *t, const struct vtrn_spot *spot, int64_t bytes)
{
    for (int q = 0; q < PLACE_QUADRANTS; q++)
        if (in_quadrant(t, spot, q)) live[q] += bytes;
}

/* Keys come by first use; a second copy by last use makes the sweep. Tensors with given addresses may share bytes: a sum over
 * them says nothing, so they count by the highest byte they use. */
void place_measure(struct place_state *state, uint32_t keys)
{
    const struct vtrn_prog *prog = state->place->prog;
    struct vtrn_place_use *use = state->use;
    struct place_key *ends = malloc(((size_t)keys + 1) * sizeof *ends);
    int64_t live[PLACE_QUADRANTS] = { 0 };
    uint32_t gone = 0;

    if (!ends) return; /* the peak stays 0: only the report is poorer */
    for (uint32_t i = 0; i < keys; i++) ends[i] = (struct place_key){ prog->tensor[state->key[i].tensor].last_use, state->key[i].tensor };
    place_sort(ends, keys);
    for (uint32_t i = 0; i < keys; i++) {
        uint32_t t = state->key[i].tensor;
        const struct vtrn_tensor *tensor = &prog->tensor[t];

        for (; ends[gone].first < state->key[i].first; gone++)
            if (!prog->tensor[ends[gone].tensor].has_address)
                add(live, &prog->tensor[ends[gone].tensor], &state->place->spot[ends[gone].tensor], -prog->tensor[ends[gone].tensor].row_bytes);
        if (tensor->has_address) {
            int64_t top = (int64_t)tensor->addr_byte + tensor->row_bytes;

            if (top > use->peak_bytes) {
                use->peak_bytes = top;
                use->peak_at = tensor->first_use;
                use->quadrant = tensor->addr_partition / 32;
            }
            continue;
        }
        add(live, tensor, &state->place->spot[t], tensor->row_bytes);
        for (int q = 0; q < PLACE_QUADRANTS; q++)
            if (live[q] > use->peak_bytes) {
                use->peak_bytes = live[q];
                use->peak_at = tensor->first_use;
                use->quadrant = q;
            }
    }
    free(ends);
}

static bool is_live(const struct vtrn_place *place, int core, int space, uint32_t t)
{
    const struct vtrn_place_use *use = &place->use[core][space];
    const struct vtrn_tensor *tensor = &place->prog->tensor[t];

    return tensor->core == core && tensor->space == (space == VTRN_PLACE_PSUM ? VTRN_PSUM : VTRN_SBUF) &&
           tensor->first_use != UINT32_MAX && tensor->first_use <= use->peak_at && tensor->last_use >= use->peak_at &&
           in_quadrant(tensor, &place->spot[t], use->quadrant);
}

uint32_t vtrn_place_peak(const struct vtrn_place *place, int core, int space, uint32_t *tensor_out, uint32_t most)
{
    const struct vtrn_tensor *table = place->prog->tensor;
    uint32_t count = 0, kept = 0;

    for (uint32_t t = 0; t < place->prog->tensors; t++) {
        uint32_t at;

        if (!is_live(place, core, space, t)) continue;
        count++;
        if (kept < most) kept++;
        else if (!most || table[t].row_bytes <= table[tensor_out[most - 1]].row_bytes) continue;
        for (at = kept - 1; at > 0 && table[tensor_out[at - 1]].row_bytes < table[t].row_bytes; at--) tensor_out[at] = tensor_out[at - 1];
        tensor_out[at] = t;
    }
    return count;
}

/* "%17 128x2048 bf16 (kernel.py:12), 4096 B" */
static void describe(const struct vtrn_prog *prog, uint32_t t, struct vtrn_buf *out)
{
    const struct vtrn_tensor *tensor = &prog->tensor[t];
    const char *name = vtrn_prog_text(prog, tensor->name), *file = vtrn_prog_text(prog, prog->loc[tensor->loc].file);
    const char *slash = strrchr(file, '/');

    if (*name) (void)vtrn_buf_printf(out, "%s ", name);
    for (int i = 0; i < tensor->rank; i++) (void)vtrn_buf_printf(out, "%s%lld", i ? "x" : "", (long long)tensor->dim[i]);
    (void)vtrn_buf_printf(out, " %s %lld B", vtrn_dtypes[tensor->dtype].text, (long long)tensor->row_bytes);
    if (*file) (void)vtrn_buf_printf(out, " (%s:%u)", slash ? slash + 1 : file, prog->loc[tensor->loc].line);
}

static enum vtrn_status fail_full(const struct vtrn_place *place, int core, int space, struct vtrn_error *err)
{
    const struct vtrn_prog *prog = place->prog;
    const struct vtrn_place_use *use = &place->use[core][space];
    uint32_t top[5], count = vtrn_place_peak(place, core, space, top, 5);
    struct vtrn_buf list = { 0 };
    enum vtrn_status status;
    struct vtrn_inst inst;
    char where[160];

    vtrn_prog_get(prog, core, use->peak_at, &inst);
    vtrn_prog_where(prog, &inst, where, sizeof where);
    for (uint32_t i = 0; i < count && i < 5; i++) {
        if (i) (void)vtrn_buf_printf(&list, ", ");
        describe(prog, top[i], &list);
    }
    status = vtrn_fail(err, VTRN_LIMIT,
                       "%s: core %d: %s: %lld bytes per partition are live at once > %lld (%s of %s); %u tensors, the largest: %s%s; "
                       "use smaller tiles, or fewer at a time",
                       where, core, space == VTRN_PLACE_PSUM ? "PSUM" : "SBUF", (long long)use->peak_bytes, (long long)use->limit_bytes,
                       space == VTRN_PLACE_PSUM ? "all banks" : "what kernels may use", prog->arch->chip, count,
                       list.data ? (const char *)list.data : "", count > 5 ? ", ..." : "");
    vtrn_buf_fini(&list);
    return status;
}

enum vtrn_status vtrn_place_check(const struct vtrn_place *place, struct vtrn_error *err)
{
    for (int core = 0; core < place->prog->cores; core++)
        for (int space = 0; space < VTRN_PLACE_SPACES; space++) {
            const struct vtrn_place_use *use = &place->use[core][space];

            if (use->spilled && use->peak_bytes > use->limit_bytes) return fail_full(place, core, space, err);
        }
    return VTRN_OK;
}
