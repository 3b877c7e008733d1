/* The vector engine's searches along the free dimensions: the eight largest, where values stand, replacing them.
 * Together they make an iterated top-k: max8, nc_find_index8, nc_match_replace8 with a low value, again. */
#include <math.h>

#include "exec/exec_int.h"

enum { SLOTS = 8, CHUNK = 1024 };

struct search {
    struct exec_view data, vals, dst, index;
    bool has_index;
    float imm;
};

/* NaN ranks above every number, so that it shows in the result. */
static bool ranks_above(float a, float b) { return isnan(a) ? !isnan(b) : a > b; }

static void insert(float *top, float value)
{
    int at = SLOTS - 1;
    if (!ranks_above(value, top[at])) return;
    for (; at > 0 && ranks_above(value, top[at - 1]); at--) top[at] = top[at - 1];
    top[at] = value;
}

static void max8_rows(const struct exec_rows *rows, int64_t p0, int64_t p1, uint8_t *scratch)
{
    const struct search *job = rows->data;
    for (int64_t p = p0; p < p1; p++) {
        float top[SLOTS];
        for (int j = 0; j < SLOTS; j++) top[j] = -INFINITY;
        for (int64_t i = 0; i < job->data.elems; i += CHUNK) {
            int64_t n = job->data.elems - i < CHUNK ? job->data.elems - i : CHUNK;
            const float *values = exec_load_f32(rows->core, &job->data, p, 1, i, n, (float *)(void *)scratch);
            for (int64_t k = 0; k < n; k++) insert(top, values[k]);
        }
        exec_store_f32(rows->core, &job->dst, p, 1, 0, SLOTS, top);
    }
}

/* Does: dst[p, 0..7] = the eight largest values of src's partition p, descending, duplicates kept.
 * Rounding: values pass through fp32.
 * Faults: none of its own.
 * Differs: the rank of NaN is not documented; here it is above every number. */
enum vtrn_status vtrn_exec_max8(struct vtrn_core *core, const struct vtrn_inst *inst)
{
    const struct vtrn_args_max8 *arg = VTRN_ARGS(max8, inst);
    struct search job;
    VTRN_TRY(exec_resolve(core, &arg->src.ap, VTRN_READ, &job.data));
    VTRN_TRY(exec_resolve(core, &arg->dst.ap, VTRN_WRITE, &job.dst));
    VTRN_TRY(exec_stage_always(core, &job.dst, &job.data));
    exec_for_partitions(core, job.data.parts, job.data.elems * 4, max8_rows, &job);
    return VTRN_OK;
}

static void store_index(const struct exec_view *view, int64_t p, const uint32_t *index)
{
    uint16_t narrow[SLOTS];
    for (int j = 0; j < SLOTS; j++) narrow[j] = (uint16_t)index[j];
    exec_store_raw(view, p, 1, 0, SLOTS, view->elem_bytes == 2 ? (const void *)narrow : index);
}

/* A slot that looks for the same value as an earlier one takes the next occurrence. */
static void find_rows(const struct exec_rows *rows, int64_t p0, int64_t p1, uint8_t *scratch)
{
    const struct search *job = rows->data;
    for (int64_t p = p0; p < p1; p++) {
        uint32_t index[SLOTS];
        float space[SLOTS], vals[SLOTS];
        memcpy(vals, exec_load_f32(rows->core, &job->vals, p, 1, 0, SLOTS, space), sizeof vals);
        int missing = SLOTS;
        for (int j = 0; j < SLOTS; j++) index[j] = UINT32_MAX;
        for (int64_t i = 0; i < job->data.elems && missing; i += CHUNK) {
            int64_t n = job->data.elems - i < CHUNK ? job->data.elems - i : CHUNK;
            const float *values = exec_load_f32(rows->core, &job->data, p, 1, i, n, (float *)(void *)scratch);
            for (int64_t k = 0; k < n && missing; k++)
                for (int j = 0; j < SLOTS; j++)
                    if (values[k] == vals[j] && index[j] == UINT32_MAX) {
                        index[j] = (uint32_t)(i + k);
                        missing--;
                        break;
                    }
        }
        store_index(&job->dst, p, index);
    }
}

/* Does: dst[p, j] = index in data's partition p (free elements in order) of the value vals[p, j]; equal values in vals take
 *   successive occurrences, ascending; all ones where there is none.
 * Rounding: both sides are compared as fp32.
 * Faults: none of its own.
 * Differs: none known. */
enum vtrn_status vtrn_exec_nc_find_index8(struct vtrn_core *core, const struct vtrn_inst *inst)
{
    const struct vtrn_args_nc_find_index8 *arg = VTRN_ARGS(nc_find_index8, inst);
    struct search job;
    VTRN_TRY(exec_resolve(core, &arg->data.ap, VTRN_READ, &job.data));
    VTRN_TRY(exec_resolve(core, &arg->vals.ap, VTRN_READ, &job.vals));
    VTRN_TRY(exec_resolve(core, &arg->dst.ap, VTRN_WRITE, &job.dst));
    VTRN_TRY(exec_stage_always(core, &job.dst, &job.data));
    VTRN_TRY(exec_stage_always(core, &job.dst, &job.vals));
    exec_for_partitions(core, job.data.parts, job.data.elems * 4, find_rows, &job);
    return VTRN_OK;
}

/* Slots are served from the last to the first, each taking the first occurrence that no other has taken. */
static void replace_in_row(const struct search *job, float *row, const float *vals, uint32_t *index)
{
    int64_t taken[SLOTS], takens = 0;
    for (int j = SLOTS - 1; j >= 0; j--) {
        index[j] = UINT32_MAX;
        for (int64_t i = 0; i < job->data.elems && index[j] == UINT32_MAX; i++) {
            if (row[i] != vals[j]) continue;
            bool free = true;
            for (int64_t t = 0; t < takens; t++) free = free && taken[t] != i;
            if (free) index[j] = (uint32_t)(taken[takens++] = i);
        }
    }
    for (int64_t t = 0; t < takens; t++) row[taken[t]] = job->imm;
}

static void replace_rows(const struct exec_rows *rows, int64_t p0, int64_t p1, uint8_t *scratch)
{
    const struct search *job = rows->data;
    float *row = (float *)(void *)scratch;
    for (int64_t p = p0; p < p1; p++) {
        uint32_t index[SLOTS];
        float space[SLOTS], vals[SLOTS];
        memcpy(vals, exec_load_f32(rows->core, &job->vals, p, 1, 0, SLOTS, space), sizeof vals);
        const float *values = exec_load_f32(rows->core, &job->data, p, 1, 0, job->data.elems, row);
        if (values != row) memcpy(row, values, (size_t)job->data.elems * sizeof *row);
        replace_in_row(job, row, vals, index);
        exec_store_f32(rows->core, &job->dst, p, 1, 0, job->data.elems, row);
        if (job->has_index) store_index(&job->index, p, index);
    }
}

/* Does: dst = data, with one occurrence of each of vals[p, 0..7] set to imm. Slots are served from j = 7 down to 0, each
 *   taking the first occurrence that is not taken; dst_idx[p, j] = its index, all ones where there is none.
 * Rounding: values pass through fp32.
 * Faults: none of its own.
 * Differs: what dst_idx holds for a value that does not occur is not documented. */
enum vtrn_status vtrn_exec_nc_match_replace8(struct vtrn_core *core, const struct vtrn_inst *inst)
{
    const struct vtrn_args_nc_match_replace8 *arg = VTRN_ARGS(nc_match_replace8, inst);
    struct search job = { .has_index = arg->dst_idx.kind == VTRN_V_AP, .imm = (float)arg->imm.num };
    VTRN_TRY(exec_resolve(core, &arg->data.ap, VTRN_READ, &job.data));
    VTRN_TRY(exec_resolve(core, &arg->vals.ap, VTRN_READ, &job.vals));
    VTRN_TRY(exec_resolve(core, &arg->dst.ap, VTRN_WRITE, &job.dst));
    if (job.has_index) VTRN_TRY(exec_resolve(core, &arg->dst_idx.ap, VTRN_WRITE, &job.index));
    VTRN_TRY(exec_stage(core, &job.dst, &job.data));
    VTRN_TRY(exec_stage_always(core, &job.dst, &job.vals));
    if ((size_t)job.data.elems * sizeof(float) > core->scratch_bytes)
        return exec_fault(core, VTRN_FAULT_VALUE, "data has %lld elements per partition; a search takes up to %zu",
                          (long long)job.data.elems, core->scratch_bytes / sizeof(float));
    exec_for_partitions(core, job.data.parts, job.data.elems * 8, replace_rows, &job);
    return VTRN_OK;
}
