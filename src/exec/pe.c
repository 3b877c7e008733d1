/* The tensor engine: matrix products.
 *
 * kern multiplies tiles whose rows have unit stride into fp32 rows of unit stride. Everything else is brought to that form
 * here: operands with other strides are packed, destinations that are not plain fp32 rows (bf16 on v4, strided, partly
 * written accumulation groups) go through a staging tile. Columns of the moving operand are cut into blocks, which
 * threads share; a column's value does not depend on the cut.
 * Transposes are in transpose.c. Must not know where operands come from. */
#include "exec/pe_int.h"

/* Scratch of a thread: kern's part, then these. Sized for the widest operands: fp32 or x4 elements, double rows of fp8. */
enum {
    BLOCK = 64,  /* columns: the unit that threads share */
    SLICE = 512, /* columns that are packed or staged at once */
    MOVING_BYTES = EXEC_LANES * SLICE * 4,
    STAGING_BYTES = EXEC_LANES * SLICE * 4,
    SCALE_BYTES = EXEC_LANES * SLICE,
    STATIONARY_BYTES = EXEC_LANES * EXEC_LANES * 4,
    STATIONARY_SCALE_BYTES = EXEC_LANES * EXEC_LANES,
    MX_GROUP = 8, /* partitions that share a scale */
    MX_QUADRANT = 32
};

static size_t kern_bytes(const struct vtrn_kern *kern) { return (kern->mm_scratch_bytes + 63) & ~(size_t)63; }

size_t exec_pe_scratch_bytes(const struct vtrn_kern *kern)
{
    return kern_bytes(kern) + MOVING_BYTES + STAGING_BYTES + SCALE_BYTES + STATIONARY_BYTES + STATIONARY_SCALE_BYTES;
}

struct product {
    struct vtrn_core *core;
    struct exec_view dst, s, x, s_scale, x_scale;
    const struct vtrn_ap *dst_ap; /* NULL: no instruction's, or products after it must wait */
    int64_t k, m, n;
    int halves; /* double_row: the contraction is two runs of k rows; else 1 */
    bool mx;
    enum exec_accumulate accumulate;
    /* the stationary operand with rows of unit stride, packed once for all threads */
    const uint8_t *s_rows;
    ptrdiff_t s_pitch;
    const uint8_t *s_scales; /* MX: a byte per (k, m) */
};

static uint8_t *moving_space(const struct product *job, uint8_t *scratch) { return scratch + kern_bytes(job->core->kern); }
static float *staging_space(const struct product *job, uint8_t *scratch)
{
    return (float *)(void *)(moving_space(job, scratch) + MOVING_BYTES);
}
static uint8_t *scale_space(const struct product *job, uint8_t *scratch)
{
    return moving_space(job, scratch) + MOVING_BYTES + STAGING_BYTES;
}
static uint8_t *stationary_space(const struct product *job, uint8_t *scratch) { return scale_space(job, scratch) + SCALE_BYTES; }

/* ---------------------------------------------------------------- accumulation groups */
/* The row and the byte in it where element i of partition p of a PSUM view lies. */
static inline size_t place_of(const struct exec_view *view, int64_t p, int64_t i, int64_t *row_out)
{
    size_t at = (size_t)(exec_elem(view, p, i) - view->store->base);

    *row_out = (int64_t)(at / view->store->pitch);
    return at % view->store->pitch;
}

/* Elements from i on that are adjacent in memory. */
static inline int64_t run_from(const struct exec_view *view, int64_t i)
{
    if (view->elem_offset || view->ndim == 0) return 1;
    if (view->dim[view->ndim - 1].stride != view->elem_bytes) return 1;
    return view->dim[view->ndim - 1].count - i % view->dim[view->ndim - 1].count;
}

static enum vtrn_written written_of(const struct exec_view *dst)
{
    const struct vtrn_store *store = dst->store;
    int64_t row;
    size_t low;
    bool any = false, missing = false;

    if (store->written_state != VTRN_WRITTEN_SOME) return (enum vtrn_written)store->written_state;
    if (dst->contiguous && !dst->elem_offset) {
        low = place_of(dst, 0, 0, &row);
        return vtrn_store_written(store, row, dst->parts, low, low + (size_t)dst->elems * dst->elem_bytes);
    }
    for (int64_t p = 0; p < dst->parts; p++)
        for (int64_t i = 0, run; i < dst->elems; i += run) {
            enum vtrn_written written;

            run = run_from(dst, i);
            low = place_of(dst, p, i, &row);
            written = vtrn_store_written(store, row, 1, low, low + (size_t)run * dst->elem_bytes);
            any = any || written != VTRN_WRITTEN_NONE;
            missing = missing || written != VTRN_WRITTEN_ALL;
        }
    return !missing ? VTRN_WRITTEN_ALL : any ? VTRN_WRITTEN_SOME : VTRN_WRITTEN_NONE;
}

enum exec_accumulate exec_accumulate_of(const struct vtrn_value *flag, const struct exec_view *dst)
{
    if (flag->kind != VTRN_V_NONE) return flag->i ? EXEC_ADD : EXEC_OVERWRITE;
    switch (written_of(dst)) {
    case VTRN_WRITTEN_NONE: return EXEC_OVERWRITE;
    case VTRN_WRITTEN_ALL: return EXEC_ADD;
    default: return EXEC_ADD_WRITTEN;
    }
}

void exec_mark_written(const struct exec_view *dst)
{
    struct vtrn_store *store = dst->store;
    int64_t row;
    size_t low;

    if (store->written_state == VTRN_WRITTEN_ALL) return;
    if (dst->contiguous && !dst->elem_offset) {
        low = place_of(dst, 0, 0, &row);
        vtrn_store_mark(store, row, dst->parts, low, low + (size_t)dst->elems * dst->elem_bytes);
        return;
    }
    for (int64_t p = 0; p < dst->parts; p++)
        for (int64_t i = 0, run; i < dst->elems; i += run) {
            run = run_from(dst, i);
            low = place_of(dst, p, i, &row);
            vtrn_store_mark(store, row, 1, low, low + (size_t)run * dst->elem_bytes);
        }
}

/* ---------------------------------------------------------------- operands in kern's form */
/* Can kern read the rows where they are? */
static inline bool in_place(const struct exec_view *view, int halves)
{
    return view->contiguous && halves == 1 && !view->elem_offset;
}

/* Columns [c0, c0+n) of the k * halves rows of an operand that is `width` columns wide, with unit stride: in place, or
 * packed into `space`. Half h of partition k is row h*k + k: the slow part of the contraction index comes first. */
static const uint8_t *unit_rows(const struct exec_view *view, int64_t k, int halves, int64_t width, int64_t c0, int64_t n,
                                uint8_t *space, ptrdiff_t *pitch_out)
{
    if (in_place(view, halves)) {
        *pitch_out = view->pitch;
        return view->base + c0 * view->elem_bytes;
    }
    *pitch_out = (ptrdiff_t)n * view->elem_bytes;
    for (int h = 0; h < halves; h++) exec_pack_raw(view, 0, k, h * width + c0, n, space + h * k * *pitch_out);
    return space;
}

/* The scale byte of partition k is in row 32*(k/32) + (k%32)/8 of the scale operand (nki.isa.quantize_mx, "Layout"). */
static void gather_scales(const struct exec_view *scale, int64_t k, int64_t c0, int64_t n, uint8_t *out)
{
    for (int64_t row = 0; row < k; row++, out += n) {
        if (row % MX_GROUP) memcpy(out, out - n, (size_t)n);
        else exec_pack_raw(scale, row / MX_QUADRANT * MX_QUADRANT + row % MX_QUADRANT / MX_GROUP, 1, c0, n, out);
    }
}

/* ---------------------------------------------------------------- products */
static struct vtrn_mm mm_of(const struct product *job, const uint8_t *x, ptrdiff_t x_pitch, int64_t n, float *d, ptrdiff_t d_pitch,
                            bool acc)
{
    return (struct vtrn_mm){ .k = (int)job->k * job->halves,
                             .m = (int)job->m,
                             .n = (int)n,
                             .s = job->s_rows,
                             .s_pitch = job->s_pitch,
                             .x = x,
                             .x_pitch = x_pitch,
                             .d = d,
                             .d_pitch = d_pitch,
                             .s_dtype = job->s.dtype,
                             .x_dtype = job->x.dtype,
                             .acc = acc };
}

static void multiply(const struct product *job, int64_t c0, int64_t n, float *d, ptrdiff_t d_pitch, bool acc, uint8_t *scratch)
{
    ptrdiff_t x_pitch;
    const uint8_t *x = unit_rows(&job->x, job->k, job->halves, job->n, c0, n, moving_space(job, scratch), &x_pitch);

    if (job->mx) {
        uint8_t *x_scales = scale_space(job, scratch);
        struct vtrn_mm_mx mm = { .k = (int)job->k,
                                 .m = (int)job->m,
                                 .n = (int)n,
                                 .s = job->s_rows,
                                 .s_pitch = job->s_pitch,
                                 .x = x,
                                 .x_pitch = x_pitch,
                                 .s_scale = job->s_scales,
                                 .x_scale = x_scales,
                                 .d = d,
                                 .d_pitch = d_pitch,
                                 .s_dtype = job->s.dtype,
                                 .x_dtype = job->x.dtype,
                                 .acc = acc,
                                 .scratch = scratch };

        gather_scales(&job->x_scale, job->k, c0, n, x_scales);
        job->core->kern->mm_mx(&mm);
        return;
    }
    struct vtrn_mm mm = mm_of(job, x, x_pitch, n, d, d_pitch, acc);
    mm.scratch = scratch;
    job->core->kern->mm(&mm);
}

/* Row m of a staged tile into dst: added where the accumulation group has begun. */
static void merge_row(const struct product *job, int64_t m, int64_t c0, int64_t n, const float *row)
{
    const struct exec_view *dst = &job->dst;
    _Alignas(64) float old[SLICE], sum[SLICE];

    if (job->accumulate != EXEC_OVERWRITE) {
        const float *before = exec_load_f32(job->core, dst, m, 1, c0, n, old);

        job->core->kern->tt[VTRN_ALU_ADD](sum, before, row, (size_t)n);
        for (int64_t i = 0; job->accumulate == EXEC_ADD_WRITTEN && i < n; i++) {
            int64_t p;
            size_t byte = place_of(dst, m, c0 + i, &p);

            if (!vtrn_store_byte_written(dst->store, p, byte)) sum[i] = row[i];
        }
        row = sum;
    }
    exec_store_f32(job->core, dst, m, 1, c0, n, row);
}

/* Can kern write the rows where they are? */
static bool plain_dst(const struct product *job)
{
    const struct exec_view *dst = &job->dst;

    return dst->dtype == VTRN_DT_F32 && dst->contiguous && !dst->elem_offset && job->accumulate != EXEC_ADD_WRITTEN;
}

static void multiply_blocks(const struct exec_rows *rows, int64_t b0, int64_t b1, uint8_t *scratch)
{
    const struct product *job = rows->data;
    const struct exec_view *dst = &job->dst;
    bool plain = plain_dst(job);
    int64_t c0 = b0 * BLOCK, end = b1 * BLOCK < job->n ? b1 * BLOCK : job->n;

    for (; c0 < end; c0 += SLICE) {
        int64_t n = end - c0 < SLICE ? end - c0 : SLICE;

        if (plain) {
            multiply(job, c0, n, (float *)(void *)(dst->base + c0 * 4), dst->pitch, job->accumulate == EXEC_ADD, scratch);
            continue;
        }
        float *tile = staging_space(job, scratch);
        multiply(job, c0, n, tile, (ptrdiff_t)n * 4, false, scratch);
        for (int64_t m = 0; m < job->m; m++) merge_row(job, m, c0, n, tile + m * n);
    }
}

static enum vtrn_status run_product(struct vtrn_core *core, struct product *job)
{
    uint8_t *space = stationary_space(job, core->scratch);
    int64_t blocks = (job->n + BLOCK - 1) / BLOCK, macs = job->k * job->halves * job->m * job->n * (job->mx ? 4 : 1);

    VTRN_ASSERT(job->k <= EXEC_LANES && job->m <= EXEC_LANES); /* legal_tensor.c */
    job->s_rows = unit_rows(&job->s, job->k, job->halves, job->m, 0, job->m, space, &job->s_pitch);
    if (job->mx) {
        gather_scales(&job->s_scale, job->k, 0, job->m, space + STATIONARY_BYTES);
        job->s_scales = space + STATIONARY_BYTES;
    }
    if (!job->mx && plain_dst(job) && in_place(&job->x, job->halves)) {
        struct vtrn_mm mm = mm_of(job, job->x.base, job->x.pitch, job->n, (float *)(void *)job->dst.base, job->dst.pitch,
                                  job->accumulate == EXEC_ADD);

        exec_group_run(core, &mm, job->dst_ap);
    } else {
        core->counters.macs += (uint64_t)macs;
        exec_for_partitions(core, blocks, macs / blocks / EXEC_MACS_PER_ELEM, multiply_blocks, job);
    }
    exec_mark_written(&job->dst);
    return VTRN_OK;
}

/* ---------------------------------------------------------------- instructions */
/* Does: dst[m,n] (+)= sum over k of stationary[k,m] * moving[k,n]; k is the partition of both inputs, m and n their free
 *   elements in row-major order. double_row: the first free dimension (2) is the slower part of the contraction, index
 *   r*K + k. accumulate None: the first product that reaches a PSUM location since its tensor was declared overwrites,
 *   later ones add. is_transpose on v3 and later moves the bits of stationary (moving is an identity, or selects rows), and
 *   with accumulate None overwrites; fp8 elements arrive zero-extended in 16 bits. On v2 is_transpose is an ordinary
 *   product. tile_position and tile_size choose the part of the array and change no value.
 * Rounding: inputs convert exactly to fp32 (tf32 to 10 mantissa bits); a chain of fused multiply-adds from +0 in the order of
 *   k; then one fp32 addition to what is accumulated. A bf16 dst (v4) is rounded to nearest even, or stochastically, each
 *   time.
 * Faults: VALUE when is_transpose moves bits and a column of moving is not all 0 with a single 1.
 * Differs: the order of the sum inside the array is not documented. Accumulating onto what another engine wrote is undefined
 *   before v4; here it adds with accumulate True, and None knows only the tensor engine's writes. */
enum vtrn_status vtrn_exec_nc_matmul(struct vtrn_core *core, const struct vtrn_inst *inst)
{
    const struct vtrn_args_nc_matmul *arg = VTRN_ARGS(nc_matmul, inst);
    struct product job;
    bool adds = arg->accumulate.kind != VTRN_V_NONE && arg->accumulate.i;

    job.core = core;
    job.dst_ap = &arg->dst.ap;
    job.halves = arg->perf_mode.i == VTRN_MATMUL_PERF_DOUBLE_ROW ? 2 : 1;
    job.mx = false;
    VTRN_TRY(exec_resolve(core, &arg->stationary.ap, VTRN_READ, &job.s));
    VTRN_TRY(exec_resolve(core, &arg->moving.ap, VTRN_READ, &job.x));
    /* Poison is only due where something is added to, which with None is where a product wrote before. */
    VTRN_TRY(exec_resolve(core, &arg->dst.ap, adds ? VTRN_READ | VTRN_WRITE : VTRN_WRITE, &job.dst));
    job.k = job.s.parts;
    job.m = job.s.elems / job.halves;
    job.n = job.x.elems / job.halves;
    if (arg->is_transpose.i && !adds) {
        if (core->prog->arch->nc_version >= 3) return exec_transpose_selected(core, &job.dst, &job.s, &job.x);
        job.accumulate = EXEC_OVERWRITE;
    } else {
        job.accumulate = exec_accumulate_of(&arg->accumulate, &job.dst);
    }
    return run_product(core, &job);
}

/* Does: nc_matmul of packed MX operands: each element is four values q = 0..3 (lowest bits first), scaled by
 *   2^(scale - 127), where the scale byte of partition k stands in row 32*(k/32) + (k%32)/8 of the scale operand.
 *   Contraction over k, then q. accumulate as in nc_matmul.
 * Rounding: scaled values are exact in fp32 within its range; then as nc_matmul.
 * Faults: none of its own.
 * Differs: the order of the sum inside the array, and how values beyond the range of fp32 are scaled, are not documented. A
 *   scale byte of 255 is NaN. */
enum vtrn_status vtrn_exec_nc_matmul_mx(struct vtrn_core *core, const struct vtrn_inst *inst)
{
    const struct vtrn_args_nc_matmul_mx *arg = VTRN_ARGS(nc_matmul_mx, inst);
    struct product job = { .core = core, .halves = 1, .mx = true };
    bool adds = arg->accumulate.kind != VTRN_V_NONE && arg->accumulate.i;

    VTRN_TRY(exec_resolve(core, &arg->stationary.ap, VTRN_READ, &job.s));
    VTRN_TRY(exec_resolve(core, &arg->moving.ap, VTRN_READ, &job.x));
    VTRN_TRY(exec_resolve(core, &arg->stationary_scale.ap, VTRN_READ, &job.s_scale));
    VTRN_TRY(exec_resolve(core, &arg->moving_scale.ap, VTRN_READ, &job.x_scale));
    VTRN_TRY(exec_resolve(core, &arg->dst.ap, adds ? VTRN_READ | VTRN_WRITE : VTRN_WRITE, &job.dst));
    job.k = job.s.parts;
    job.m = job.s.elems;
    job.n = job.x.elems;
    job.accumulate = exec_accumulate_of(&arg->accumulate, &job.dst);
    return run_product(core, &job);
}

/* A transpose the way v2 does it: data times an identity of its own dtype, in fp32. */
enum vtrn_status exec_transpose_by_product(struct vtrn_core *core, const struct exec_view *dst, const struct exec_view *data)
{
    struct product job = { .core = core,
                           .dst = *dst,
                           .s = *data,
                           .x = *data,
                           .halves = 1,
                           .k = data->parts,
                           .m = data->elems,
                           .n = data->parts,
                           .accumulate = EXEC_OVERWRITE };
    uint32_t one = 0;
    size_t size = data->elem_bytes, bytes = (size_t)(job.k * job.k) * size;
    uint8_t *identity = vtrn_alloc_aligned(bytes, 64);
    enum vtrn_status status;

    VTRN_FAIL_IF(!identity, &core->err, VTRN_NOMEM, "no memory for an identity of %zu bytes", bytes);
    memset(identity, 0, bytes);
    vtrn_from_f32((enum vtrn_dtype)data->dtype, 1.0f, &one);
    for (int64_t k = 0; k < job.k; k++) memcpy(identity + (size_t)(k * job.k + k) * size, &one, size);
    job.x.base = identity;
    job.x.pitch = (ptrdiff_t)((size_t)job.k * size);
    job.x.elems = job.k;
    job.x.ndim = 0;
    job.x.contiguous = true;
    job.x.elem_offset = NULL;
    status = run_product(core, &job);
    vtrn_free_aligned(identity);
    return status;
}
