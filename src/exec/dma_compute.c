/* DMA with arithmetic: dst = the sum of up to 16 sources, in fp32, and the read-modify-write forms by index.
 *
 * Elements meet in row-major order, so shapes may differ as in dma_copy. Works in chunks: every source's chunk is read
 * before dst's is written, which makes dst = dst + src right in place. With an index vector a chunk never crosses a row,
 * so that rows are finished one after the other. */
#include "exec/dma_int.h"

enum { SOURCES = 16 };

struct sum {
    struct vtrn_core *core;
    struct exec_walk dst, src[SOURCES];
    int sources;
    bool by_index; /* rows of row_elems elements each */
    int64_t rows, row_elems;
};

static void add_range(const struct sum *sum, int64_t e, int64_t end)
{
    const struct vtrn_kern *kern = sum->core->kern;
    _Alignas(64) uint32_t raw[WALK_CHUNK];
    _Alignas(64) float acc[WALK_CHUNK], term[WALK_CHUNK];
    for (; e < end; e += WALK_CHUNK) {
        int64_t n = end - e < WALK_CHUNK ? end - e : WALK_CHUNK;
        for (int k = 0; k < sum->sources; k++) {
            const struct exec_walk *src = &sum->src[k];
            const void *bytes = exec_walk_read(src, e, n, raw);
            if (k == 0) {
                exec_convert(kern, VTRN_DT_F32, acc, src->dtype, bytes, n);
            } else {
                exec_convert(kern, VTRN_DT_F32, term, src->dtype, bytes, n);
                kern->tt[VTRN_ALU_ADD](acc, acc, term, (size_t)n);
            }
        }
        exec_convert(kern, sum->dst.dtype, raw, VTRN_DT_F32, acc, n);
        exec_walk_write(&sum->dst, e, n, raw);
    }
}

static bool row_takes_part(const struct exec_walk *walk, int64_t row) { return !walk->row_offset || walk->row_offset[row] >= 0; }

static void add_rows(const struct sum *sum)
{
    for (int64_t row = 0; row < sum->rows; row++) {
        bool whole = row_takes_part(&sum->dst, row);
        for (int k = 0; k < sum->sources; k++) whole = whole && row_takes_part(&sum->src[k], row);
        if (whole) add_range(sum, row * sum->row_elems, (row + 1) * sum->row_elems);
    }
}

static void add_part(void *arg, int part, int parts)
{
    const struct sum *sum = arg;
    int64_t chunks = (sum->dst.elems + WALK_CHUNK - 1) / WALK_CHUNK, to = chunks * (part + 1) / parts * WALK_CHUNK;
    add_range(sum, chunks * part / parts * WALK_CHUNK, to < sum->dst.elems ? to : sum->dst.elems);
}

static void add_all(const struct sum *sum)
{
    int parts = vtrn_pool_threads(sum->core->options.pool);
    if (sum->by_index) add_rows(sum);
    else if (parts == 1 || sum->dst.elems < 32 * WALK_CHUNK || !exec_walk_injective(&sum->dst)) add_part((void *)sum, 0, 1);
    else vtrn_pool_run(sum->core->options.pool, parts, add_part, (void *)sum);
}

/* dst shares bytes with a source that is not dst itself: the sum goes through packed memory. */
static enum vtrn_status add_staged(struct sum *sum)
{
    struct exec_walk dst = sum->dst;
    void *bytes = exec_walk_alloc(sum->core, &dst, &sum->dst);
    if (!bytes) return VTRN_NOMEM;
    add_all(sum);
    exec_copy_raw(sum->core, &dst, &sum->dst);
    vtrn_free_aligned(bytes);
    return VTRN_OK;
}

/* All index vectors must cut the elements into the same rows. */
static enum vtrn_status find_rows(struct vtrn_core *core, struct sum *sum)
{
    for (int k = -1; k < sum->sources; k++) {
        const struct exec_walk *walk = k < 0 ? &sum->dst : &sum->src[k];
        if (!walk->row_offset) continue;
        if (sum->by_index && sum->rows != walk->rows)
            return exec_fault(core, VTRN_FAULT_VALUE,
                              "operand srcs[%d]: %lld rows by index, another operand has %lld; they must be "
                              "equal",
                              k, (long long)walk->rows, (long long)sum->rows);
        sum->by_index = true;
        sum->rows = walk->rows;
        sum->row_elems = walk->row_elems;
    }
    return VTRN_OK;
}

static enum vtrn_status check_compute(struct vtrn_core *core, const struct vtrn_args_dma_compute *arg)
{
    if (arg->reduce_op.i != VTRN_ALU_ADD)
        return exec_fault(core, VTRN_FAULT_VALUE, "operand reduce_op: %s; DMA adds only", vtrn_alus[arg->reduce_op.i].nki_name);
    for (int k = 0; arg->scales.kind != VTRN_V_NONE && k < arg->scales.count; k++)
        if (arg->scales.ints[k] != 1)
            return exec_fault(core, VTRN_FAULT_VALUE, "operand scales[%d]: %lld; DMA takes 1 only", k,
                              (long long)arg->scales.ints[k]);
    return VTRN_OK;
}

/* Does: dst = srcs[0] + srcs[1] + ... element by element in row-major order of each operand. With an index vector on dst and
 *   on the equal source: dst[index] += src, row by row (scatter); with one on a source: dst += src[index] (gather). Rows with
 *   an index outside are left out under oob_mode.skip. Rows named twice by a scatter are added one after the other.
 * Rounding: sources convert to fp32, are added in list order, each sum rounded to nearest even, and the result converts to
 *   the dtype of dst.
 * Faults: INDEX and BOUNDS as dma_copy; VALUE for unequal element counts, unequal numbers of indexed rows, an operator
 *   other than add or a scale other than 1.
 * Differs: hardware requires unique indices in a scatter; here repeated ones add up. */
enum vtrn_status vtrn_exec_dma_compute(struct vtrn_core *core, const struct vtrn_inst *inst)
{
    const struct vtrn_args_dma_compute *arg = VTRN_ARGS(dma_compute, inst);
    int oob = arg->oob_mode.i == VTRN_OOB_SKIP ? EXEC_OOB_SKIP : 0;
    struct sum sum = { .core = core, .sources = arg->srcs.count };
    struct exec_view view;
    bool staged = false, whole = true;
    VTRN_TRY(check_compute(core, arg));
    for (int k = 0; k < sum.sources; k++) {
        VTRN_TRY(exec_resolve(core, &arg->srcs.aps[k], VTRN_READ | oob, &view));
        if (view.skip) return VTRN_OK;
        exec_walk_view(&sum.src[k], &view);
        exec_dma_count(core, &view, VTRN_READ);
        whole = whole && !view.row_offset;
    }
    whole = whole && arg->dst.ap.ndyn == 0;
    VTRN_TRY(exec_resolve(core, &arg->dst.ap, (whole ? VTRN_WRITE : VTRN_READ | VTRN_WRITE) | oob, &view));
    if (view.skip) return VTRN_OK;
    exec_walk_view(&sum.dst, &view);
    exec_dma_count(core, &view, VTRN_WRITE);
    for (int k = 0; k < sum.sources; k++) {
        if (sum.src[k].elems != sum.dst.elems)
            return exec_fault(core, VTRN_FAULT_VALUE, "operand srcs[%d]: %lld elements, dst has %lld; they must be equal", k,
                              (long long)sum.src[k].elems, (long long)sum.dst.elems);
        staged = staged || (!exec_walk_same(&sum.src[k], &sum.dst) && exec_walk_overlap(&sum.src[k], &sum.dst));
    }
    VTRN_TRY(find_rows(core, &sum));
    if (staged && !sum.by_index) return add_staged(&sum);
    add_all(&sum);
    return VTRN_OK;
}
