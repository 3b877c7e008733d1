/* The tensor engine: matrix products and transposes.
 *
 * kern multiplies tiles whose rows have unit stride into fp32 rows of unit stride. Everything else is brought to that form
 * here: operands with other strides are packed, destinations that are not plain fp32 rows (bf16 on v4, strided, partly
 * written accumulation groups) go through a staging tile. Columns of the moving operand are cut into blocks, which
 * threads share; a column's value does not depend on the cut. */
#include "exec/exec_int.h"

enum { BLOCK = 64, SLICE = 512 /* columns computed at once */, PE_ROWS_MAX = 128, MX_PER_SCALE = 8 };

/* ---------------------------------------------------------------- accumulation groups
 * accumulate=None: the first product that reaches a PSUM location overwrites, later ones add. The store keeps a bit for
 * each 4-byte column of a partition. */
enum accumulate { OVERWRITE, ADD, MIXED };

static int64_t column_of(const struct exec_view *view, int64_t p, int64_t i)
{
    const struct vtrn_store *store = view->store;
    return (exec_elem(view, p, i) - store->base) % (ptrdiff_t)store->pitch / 4 + store->written_bit;
}

static uint64_t *written_row(const struct exec_view *view, int64_t p)
{
    const struct vtrn_store *store = view->store;
    return store->written + (exec_elem(view, p, 0) - store->base) / (ptrdiff_t)store->pitch * (ptrdiff_t)store->written_words;
}

/* Bits [first, first+n) of a row: sets them when `set`, returns whether any was clear (1) and any was set (2) before. */
static int visit_bits(uint64_t *row, int64_t first, int64_t n, bool set)
{
    int seen = 0;
    for (int64_t bit = first; bit < first + n;) {
        int64_t in_word = bit % 64, count = 64 - in_word < first + n - bit ? 64 - in_word : first + n - bit;
        uint64_t mask = (count == 64 ? ~UINT64_C(0) : (UINT64_C(1) << count) - 1) << in_word;
        uint64_t *word = &row[bit / 64];
        seen |= (*word & mask) != mask ? 1 : 0;
        seen |= (*word & mask) != 0 ? 2 : 0;
        if (set) *word |= mask;
        bit += count;
    }
    return seen;
}

static int visit_written(const struct exec_view *dst, int64_t p, int64_t i0, int64_t n, bool set)
{
    uint64_t *row = written_row(dst, p);
    if (dst->contiguous) {
        int64_t first = column_of(dst, p, i0), last = column_of(dst, p, i0 + n - 1);
        return visit_bits(row, first, last - first + 1, set);
    }
    int seen = 0;
    for (int64_t i = i0; i < i0 + n; i++) seen |= visit_bits(row, column_of(dst, p, i), 1, set);
    return seen;
}

static enum accumulate accumulate_of(const struct vtrn_value *flag, const struct exec_view *dst)
{
    if (flag->kind != VTRN_V_NONE) return flag->i ? ADD : OVERWRITE;
    if (!dst->store->written || dst->elem_offset) return OVERWRITE;
    int seen = 0;
    for (int64_t p = 0; p < dst->parts && seen != 3 && dst->elems; p++) seen |= visit_written(dst, p, 0, dst->elems, false);
    return seen == 3 ? MIXED : seen == 2 ? ADD : OVERWRITE;
}

static void mark_written(const struct exec_view *dst)
{
    if (!dst->store->written || dst->elem_offset || !dst->elems) return;
    for (int64_t p = 0; p < dst->parts; p++) visit_written(dst, p, 0, dst->elems, true);
}

/* ---------------------------------------------------------------- products */
struct product {
    struct vtrn_core *core;
    struct exec_view dst, s, x;
    int64_t k, m, n;
    int halves; /* double_row: the contraction is two runs of k rows; else 1 */
    enum accumulate accumulate;
    const uint8_t *s_packed; /* stationary rows of unit stride, and its pitch */
    ptrdiff_t s_pitch;
    const uint8_t *s_scale; /* MX: one scale byte per (k, m); NULL otherwise */
    const struct exec_view *x_scale;
    bool mx;
};

/* Scratch of a thread: kern's part, then a slice of the moving operand, a staging tile and a slice of scales. */
static uint8_t *moving_space(const struct product *job, uint8_t *scratch)
{
    return scratch + ((job->core->kern->mm_scratch_bytes + 63) & ~(size_t)63);
}
static float *staging_space(const struct product *job, uint8_t *scratch)
{
    return (float *)(void *)(moving_space(job, scratch) + EXEC_PE_MOVING_BYTES);
}
static uint8_t *scale_space(const struct product *job, uint8_t *scratch)
{
    return (uint8_t *)staging_space(job, scratch) + EXEC_PE_STAGING_BYTES;
}

/* Rows [0, k * halves) of an operand's columns [c0, c0+n), of unit stride: in place or packed into `space`. */
static const uint8_t *unit_rows(const struct exec_view *view, int64_t k, int halves, int64_t width, int64_t c0, int64_t n,
                                uint8_t *space, ptrdiff_t *pitch_out)
{
    if (view->contiguous && halves == 1 && !view->row_offset && !view->elem_offset) {
        *pitch_out = view->pitch;
        return view->base + c0 * view->elem_bytes;
    }
    *pitch_out = (ptrdiff_t)n * view->elem_bytes;
    for (int h = 0; h < halves; h++)
        for (int64_t row = 0; row < k; row++) {
            uint8_t *to = space + (h * k + row) * *pitch_out;
            const void *from = exec_load_raw(view, row, 1, h * width + c0, n, to);
            if (from != to) memcpy(to, from, (size_t)*pitch_out);
        }
    return space;
}

/* The scale byte of partition k: row 32*(k/32) + (k%32)/8 of the scale operand (isa reference: MX layout). */
static void gather_scales(const struct exec_view *scale, int64_t k, int64_t c0, int64_t n, uint8_t *out)
{
    for (int64_t row = 0; row < k; row++) {
        int64_t at = 32 * (row / 32) + row % 32 / MX_PER_SCALE;
        if (row % MX_PER_SCALE) {
            memcpy(out + row * n, out + (row - 1) * n, (size_t)n);
        } else {
            const void *from = exec_load_raw(scale, at, 1, c0, n, out + row * n);
            if (from != out + row * n) memcpy(out + row * n, from, (size_t)n);
        }
    }
}

static void multiply(const struct product *job, int64_t c0, int64_t n, float *d, ptrdiff_t d_pitch, bool acc, uint8_t *scratch)
{
    ptrdiff_t x_pitch;
    const uint8_t *x = unit_rows(&job->x, job->k, job->halves, job->n, c0, n, moving_space(job, scratch), &x_pitch);
    if (!job->mx) {
        struct vtrn_mm mm = {(int)(job->k * job->halves), (int)job->m, (int)n, job->s_packed, job->s_pitch, x, x_pitch, d,
                             d_pitch, job->s.dtype, job->x.dtype, acc, scratch};
        job->core->kern->mm(&mm);
        return;
    }
    uint8_t *scales = scale_space(job, scratch);
    gather_scales(job->x_scale, job->k, c0, n, scales);
    struct vtrn_mm_mx mm = {(int)job->k, (int)job->m, (int)n, job->s_packed, job->s_pitch, x, x_pitch, job->s_scale, scales, d,
                            d_pitch, job->s.dtype, job->x.dtype, acc, scratch};
    job->core->kern->mm_mx(&mm);
}

/* dst (+)= a computed tile, for destinations that kern cannot write itself. */
static void merge_staged(const struct product *job, int64_t c0, int64_t n, const float *tile)
{
    const struct exec_view *dst = &job->dst;
    float old[SLICE], sum[SLICE];
    for (int64_t m = 0; m < job->m; m++) {
        const float *row = tile + m * n;
        if (job->accumulate != OVERWRITE) {
            const float *before = exec_load_f32(job->core, dst, m, 1, c0, n, old);
            for (int64_t i = 0; i < n; i++) {
                bool add = job->accumulate == ADD || (visit_written(dst, m, c0 + i, 1, false) & 2);
                sum[i] = add ? before[i] + row[i] : row[i];
            }
            row = sum;
        }
        exec_store_f32(job->core, dst, m, 1, c0, n, row);
    }
}

static void multiply_blocks(const struct exec_rows *rows, int64_t b0, int64_t b1, uint8_t *scratch)
{
    const struct product *job = rows->data;
    const struct exec_view *dst = &job->dst;
    bool plain = dst->dtype == VTRN_DT_F32 && dst->contiguous && !dst->elem_offset && job->accumulate != MIXED;
    int64_t end = b1 * BLOCK < job->n ? b1 * BLOCK : job->n;
    for (int64_t c0 = b0 * BLOCK; c0 < end; c0 += SLICE) {
        int64_t n = end - c0 < SLICE ? end - c0 : SLICE;
        if (plain) {
            float *d = (float *)(void *)(dst->base + c0 * 4);
            multiply(job, c0, n, d, dst->pitch, job->accumulate == ADD, scratch);
        } else {
            float *tile = staging_space(job, scratch);
            multiply(job, c0, n, tile, (ptrdiff_t)n * 4, false, scratch);
            merge_staged(job, c0, n, tile);
        }
    }
}

/* The stationary operand is packed once for all threads. */
static enum vtrn_status run_product(struct vtrn_core *core, struct product *job)
{
    if (job->m > PE_ROWS_MAX || job->k > PE_ROWS_MAX)
        return exec_fault(core, VTRN_FAULT_VALUE, "stationary is %lldx%lld; the array has %d rows and columns",
                          (long long)job->k, (long long)job->m, PE_ROWS_MAX);
    _Alignas(64) uint8_t stationary[PE_ROWS_MAX * PE_ROWS_MAX * 4];
    job->s_packed = unit_rows(&job->s, job->k, job->halves, job->m, 0, job->m, stationary, &job->s_pitch);
    int64_t blocks = (job->n + BLOCK - 1) / BLOCK;
    core->counters.macs += (uint64_t)(job->k * job->halves * job->m * job->n) * (job->mx ? 4 : 1);
    exec_for_partitions(core, blocks, job->k * job->m * BLOCK / 8, multiply_blocks, job);
    mark_written(&job->dst);
    return VTRN_OK;
}

/* ---------------------------------------------------------------- exact transposes by the array (v3+) */
/* For each column of `moving` the row of its only nonzero value; false: some column has not exactly one. */
static bool selected_rows(const struct product *job, int64_t *row_out)
{
    float space[SLICE];
    for (int64_t n = 0; n < job->n; n++) row_out[n] = -1;
    for (int64_t k = 0; k < job->k; k++) {
        const float *row = exec_load_f32(job->core, &job->x, k, 1, 0, job->n, space);
        for (int64_t n = 0; n < job->n; n++) {
            if (row[n] == 0.0f) continue;
            if (row_out[n] >= 0) return false;
            row_out[n] = k;
        }
    }
    for (int64_t n = 0; n < job->n; n++)
        if (row_out[n] < 0) return false;
    return true;
}

/* One element of any dtype into another: bits where the sizes match, fp8 zero-extended to 16 bits, else the value. */
static void move_element(const struct vtrn_core *core, const struct exec_view *dst, int64_t p, int64_t i, uint8_t src_dtype,
                         const void *from)
{
    uint8_t *to = exec_elem(dst, p, i);
    int src_size = vtrn_dtypes[src_dtype].size_bytes;
    if (src_size == dst->elem_bytes) {
        memcpy(to, from, (size_t)src_size);
    } else if (src_size == 1 && dst->elem_bytes == 2) {
        uint16_t wide = *(const uint8_t *)from;
        memcpy(to, &wide, 2);
    } else {
        float value;
        core->kern->load[src_dtype](&value, from, 1);
        core->kern->store[dst->dtype](to, &value, 1);
    }
}

/* dst[j, i] = data[i, j], the bits. */
static void transpose_view(struct vtrn_core *core, const struct exec_view *dst, const struct exec_view *data)
{
    _Alignas(64) uint8_t packed[PE_ROWS_MAX * PE_ROWS_MAX * 4], turned[PE_ROWS_MAX * PE_ROWS_MAX * 4];
    int64_t rows = data->parts, columns = data->elems;
    int size = data->elem_bytes, slot = size == 4 ? 2 : size == 2 ? 1 : 0;
    const uint8_t *from = packed;
    ptrdiff_t pitch = (ptrdiff_t)columns * size;
    if (data->contiguous && !data->elem_offset && !data->row_offset) {
        from = data->base;
        pitch = data->pitch;
    } else {
        const void *raw = exec_load_raw(data, 0, rows, 0, columns, packed);
        if (raw != packed) memcpy(packed, raw, (size_t)(rows * columns * size));
    }
    core->kern->transpose[slot](turned, (ptrdiff_t)rows * size, from, pitch, (size_t)rows, (size_t)columns);
    if (dst->elem_bytes == size) {
        exec_store_raw(dst, 0, columns, 0, rows, turned);
        return;
    }
    for (int64_t j = 0; j < columns; j++)
        for (int64_t i = 0; i < rows; i++) move_element(core, dst, j, i, data->dtype, turned + (j * rows + i) * size);
}

/* dst[m, n] = stationary[row selected by moving's column n, m]; false: moving selects no rows. */
static bool transpose_exactly(struct product *job)
{
    int64_t row[SLICE];
    if (job->n > SLICE || !selected_rows(job, row)) return false;
    bool identity = job->n == job->k;
    for (int64_t n = 0; n < job->n && identity; n++) identity = row[n] == n;
    if (identity) {
        transpose_view(job->core, &job->dst, &job->s);
    } else {
        for (int64_t n = 0; n < job->n; n++)
            for (int64_t m = 0; m < job->m; m++)
                move_element(job->core, &job->dst, m, n, job->s.dtype, exec_elem(&job->s, row[n], m));
    }
    mark_written(&job->dst);
    return true;
}

/* ---------------------------------------------------------------- instructions */

/* Does: dst[m,n] (+)= sum over k of stationary[k,m] * moving[k,n]; k is the partition of both inputs, m and n their free
 *   elements in row-major order. double_row: the first free dimension (2) is the slower part of the contraction, index
 *   r*K + k. accumulate None: the first product that reaches a PSUM location since its tensor was declared overwrites,
 *   later ones add. is_transpose on v3+ moves the bits of stationary (moving an identity or a permutation); fp8 elements
 *   arrive zero-extended in 16 bits. tile_position and tile_size choose the part of the array and change no value.
 * Rounding: inputs convert exactly to fp32 (tf32 to 10 mantissa bits); a fused multiply-add chain from +0 in k order; then
 *   one fp32 addition to what is accumulated. A bf16 dst (v4) is rounded to nearest even, or stochastically, each time.
 * Faults: none beyond those of dynamic offsets.
 * Differs: the order of the sum inside the array is not documented; accumulating onto a location that another engine wrote
 *   is undefined before v4 and adds here with accumulate=True. */
enum vtrn_status vtrn_exec_nc_matmul(struct vtrn_core *core, const struct vtrn_inst *inst)
{
    const struct vtrn_args_nc_matmul *arg = VTRN_ARGS(nc_matmul, inst);
    struct product job = {.core = core, .halves = arg->perf_mode.i == VTRN_MATMUL_PERF_DOUBLE_ROW ? 2 : 1};
    bool overwrite = arg->accumulate.kind != VTRN_V_NONE && !arg->accumulate.i;
    VTRN_TRY(exec_resolve(core, &arg->stationary.ap, VTRN_READ, &job.s));
    VTRN_TRY(exec_resolve(core, &arg->moving.ap, VTRN_READ, &job.x));
    VTRN_TRY(exec_resolve(core, &arg->dst.ap, overwrite ? VTRN_WRITE : VTRN_READ | VTRN_WRITE, &job.dst));
    job.k = job.s.parts;
    job.m = job.s.elems / job.halves;
    job.n = job.x.elems / job.halves;
    job.accumulate = accumulate_of(&arg->accumulate, &job.dst);
    if (arg->is_transpose.i) {
        if (arg->accumulate.kind == VTRN_V_NONE) job.accumulate = OVERWRITE; /* a transpose passes through, it adds to nothing */
        if (core->prog->arch->nc_version >= 3 && job.accumulate == OVERWRITE && transpose_exactly(&job)) return VTRN_OK;
    }
    return run_product(core, &job);
}

/* Does: nc_matmul of packed MX operands: each element is four values q = 0..3 (lowest bits first), scaled by
 *   2^(scale - 127), where the scale byte of partition k stands in row 32*(k/32) + (k%32)/8 of the scale operand.
 *   Contraction over k, then q. accumulate as in nc_matmul.
 * Rounding: scaled values are exact in fp32 within its range; then as nc_matmul.
 * Faults: none beyond those of dynamic offsets.
 * Differs: the order of the sum inside the array is not documented. */
enum vtrn_status vtrn_exec_nc_matmul_mx(struct vtrn_core *core, const struct vtrn_inst *inst)
{
    const struct vtrn_args_nc_matmul_mx *arg = VTRN_ARGS(nc_matmul_mx, inst);
    struct product job = {.core = core, .halves = 1, .mx = true};
    struct exec_view s_scale, x_scale;
    bool overwrite = arg->accumulate.kind != VTRN_V_NONE && !arg->accumulate.i;
    VTRN_TRY(exec_resolve(core, &arg->stationary.ap, VTRN_READ, &job.s));
    VTRN_TRY(exec_resolve(core, &arg->moving.ap, VTRN_READ, &job.x));
    VTRN_TRY(exec_resolve(core, &arg->stationary_scale.ap, VTRN_READ, &s_scale));
    VTRN_TRY(exec_resolve(core, &arg->moving_scale.ap, VTRN_READ, &x_scale));
    VTRN_TRY(exec_resolve(core, &arg->dst.ap, overwrite ? VTRN_WRITE : VTRN_READ | VTRN_WRITE, &job.dst));
    job.k = job.s.parts;
    job.m = job.s.elems;
    job.n = job.x.elems;
    job.accumulate = accumulate_of(&arg->accumulate, &job.dst);
    uint8_t scales[PE_ROWS_MAX * PE_ROWS_MAX];
    if (job.m <= PE_ROWS_MAX && job.k <= PE_ROWS_MAX) gather_scales(&s_scale, job.k, 0, job.m, scales);
    job.s_scale = scales;
    job.x_scale = &x_scale;
    return run_product(core, &job);
}

/* Does: dst[j,i] = data[i,j]; free dimensions of data are flattened first.
 * Rounding: none: the bits move. fp8 elements that the tensor engine writes as 16-bit elements are zero-extended; a wider
 *   dst dtype receives the value.
 * Faults: none beyond those of dynamic offsets.
 * Differs: on v2 the tensor engine multiplies by an identity, which turns NaN and infinity in a column into NaN; here the
 *   bits move on every version. */
enum vtrn_status vtrn_exec_nc_transpose(struct vtrn_core *core, const struct vtrn_inst *inst)
{
    const struct vtrn_args_nc_transpose *arg = VTRN_ARGS(nc_transpose, inst);
    struct exec_view data, dst;
    VTRN_TRY(exec_resolve(core, &arg->data.ap, VTRN_READ, &data));
    VTRN_TRY(exec_resolve(core, &arg->dst.ap, VTRN_WRITE, &dst));
    int64_t rows = data.parts, columns = data.elems;
    if (rows > PE_ROWS_MAX || columns > PE_ROWS_MAX)
        return exec_fault(core, VTRN_FAULT_VALUE, "data is %lldx%lld; a transpose takes up to %dx%d", (long long)rows,
                          (long long)columns, PE_ROWS_MAX, PE_ROWS_MAX);
    transpose_view(core, &dst, &data);
    return VTRN_OK;
}
