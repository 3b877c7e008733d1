/* Transposes: of the tensor engine (nc_transpose, and nc_matmul with is_transpose where bits pass through) and of the vector
 * engine. Bits move, nothing is computed; only where the destination's elements have another size is a value made.
 * Sits beside pe.c; must not know accumulation. */
#include "exec/pe_int.h"

enum { TILE_BYTES = EXEC_LANES * EXEC_LANES * 4 };

/* The turned tile (packed, `columns` rows of `rows` elements of src_dtype) into dst: bits where the sizes match, fp8
 * zero-extended to 16-bit elements (NeuronCore-v3 architecture guide, "transpose"), else values. */
static void store_turned(struct vtrn_core *core, const struct exec_view *dst, uint8_t src_dtype, int64_t columns, int64_t rows,
                         const uint8_t *turned)
{
    int size = vtrn_dtypes[src_dtype].size_bytes;
    int64_t elems = columns * rows;

    if (dst->elem_bytes == size) {
        exec_store_raw(dst, 0, columns, 0, rows, turned);
    } else if (size == 1 && dst->elem_bytes == 2) {
        uint16_t wide[EXEC_LANES * EXEC_LANES];

        for (int64_t i = 0; i < elems; i++) wide[i] = turned[i];
        exec_store_raw(dst, 0, columns, 0, rows, wide);
    } else {
        float value[EXEC_LANES];

        for (int64_t j = 0; j < columns; j++) {
            core->kern->load[src_dtype](value, turned + (size_t)(j * rows) * (size_t)size, (size_t)rows);
            exec_store_f32(core, dst, j, 1, 0, rows, value);
        }
    }
}

/* dst[j,i] = the bits of row i, element j: `rows` rows `pitch` bytes apart. */
static void turn(struct vtrn_core *core, const struct exec_view *dst, uint8_t dtype, const uint8_t *from, ptrdiff_t pitch,
                 int64_t rows, int64_t columns)
{
    int size = vtrn_dtypes[dtype].size_bytes, slot = size >> 1;

    if (dst->elem_bytes == size && dst->contiguous && !dst->elem_offset) {
        core->kern->transpose[slot](dst->base, dst->pitch, from, pitch, (size_t)rows, (size_t)columns);
        return;
    }
    _Alignas(64) uint8_t turned[TILE_BYTES];
    core->kern->transpose[slot](turned, (ptrdiff_t)rows * size, from, pitch, (size_t)rows, (size_t)columns);
    store_turned(core, dst, dtype, columns, rows, turned);
}

static void turn_view(struct vtrn_core *core, const struct exec_view *dst, const struct exec_view *data, int64_t rows)
{
    if (data->contiguous && !data->elem_offset) {
        turn(core, dst, data->dtype, data->base, data->pitch, rows, data->elems);
        return;
    }
    _Alignas(64) uint8_t packed[TILE_BYTES];
    exec_pack_raw(data, 0, rows, 0, data->elems, packed);
    turn(core, dst, data->dtype, packed, (ptrdiff_t)data->elems * data->elem_bytes, rows, data->elems);
}

/* ---------------------------------------------------------------- nc_matmul(is_transpose) */
static bool is_zero(const uint8_t *bytes, size_t n)
{
    static const uint8_t zeros[EXEC_LANES * 4];

    return memcmp(bytes, zeros, n) == 0;
}

/* moving is 1 on its diagonal and +0 elsewhere, bit for bit: nearly always. */
static bool is_identity(const struct exec_view *moving)
{
    size_t size = moving->elem_bytes, n = (size_t)moving->elems;
    uint8_t packed[EXEC_LANES * 4];
    uint32_t one = 0;

    if (n > (size_t)moving->parts || n > EXEC_LANES) return false;
    vtrn_from_f32((enum vtrn_dtype)moving->dtype, 1.0f, &one);
    for (size_t k = 0; k < (size_t)moving->parts; k++) {
        const uint8_t *row = exec_load_raw(moving, (int64_t)k, 1, 0, (int64_t)n, packed);

        if (k >= n) {
            if (!is_zero(row, n * size)) return false;
        } else if (memcmp(row + k * size, &one, size) != 0 || !is_zero(row, k * size) ||
                   !is_zero(row + (k + 1) * size, (n - k - 1) * size)) {
            return false;
        }
    }
    return true;
}

/* The row that each column of moving selects: where its only nonzero value, a 1, stands. */
static enum vtrn_status selected_rows(struct vtrn_core *core, const struct exec_view *moving, int64_t *row_out)
{
    float values[EXEC_LANES];
    int64_t bad = -1;

    for (int64_t n = 0; n < moving->elems; n++) row_out[n] = -1;
    for (int64_t k = 0; k < moving->parts; k++) {
        const float *row = exec_load_f32(core, moving, k, 1, 0, moving->elems, values);

        for (int64_t n = 0; n < moving->elems; n++) {
            if (row[n] == 0.0f) continue;
            if (row[n] != 1.0f || row_out[n] >= 0) bad = n;
            row_out[n] = k;
        }
    }
    for (int64_t n = 0; n < moving->elems && bad < 0; n++)
        if (row_out[n] < 0) bad = n;
    if (bad < 0) return VTRN_OK;
    return exec_fault(core, VTRN_FAULT_VALUE,
                      "operand moving: column %lld is not all 0 with a single 1; is_transpose needs an identity", (long long)bad);
}

enum vtrn_status exec_transpose_selected(struct vtrn_core *core, const struct exec_view *dst, const struct exec_view *stationary,
                                         const struct exec_view *moving)
{
    int64_t row[EXEC_LANES], columns = stationary->elems, rows = moving->elems;
    size_t bytes = (size_t)columns * stationary->elem_bytes;

    VTRN_ASSERT(columns <= EXEC_LANES && rows <= EXEC_LANES);
    core->counters.macs += (uint64_t)(stationary->parts * columns * rows);
    if (is_identity(moving)) {
        turn_view(core, dst, stationary, rows);
    } else {
        _Alignas(64) uint8_t packed[TILE_BYTES];

        VTRN_TRY(selected_rows(core, moving, row));
        for (int64_t n = 0; n < rows; n++) exec_pack_raw(stationary, row[n], 1, 0, columns, packed + (size_t)n * bytes);
        turn(core, dst, stationary->dtype, packed, (ptrdiff_t)bytes, rows, columns);
    }
    exec_mark_written(dst);
    return VTRN_OK;
}

/* ---------------------------------------------------------------- nc_transpose */
/* Does: dst[j,i] = data[i,j]; free dimensions of data are flattened first. The tensor engine takes up to 128x128 from SBUF to
 *   PSUM, the vector engine up to 32x32 anywhere.
 * Rounding: none: the bits move. fp8 elements that the tensor engine writes as 16-bit elements are zero-extended. On v2 the
 *   tensor engine multiplies float data by an identity: NaN and infinity turn their row of dst into NaN, -0 into +0.
 * Faults: none of its own.
 * Differs: integers on the tensor engine of v2 move as bits here. */
enum vtrn_status vtrn_exec_nc_transpose(struct vtrn_core *core, const struct vtrn_inst *inst)
{
    const struct vtrn_args_nc_transpose *arg = VTRN_ARGS(nc_transpose, inst);
    bool tensor = inst->engine == VTRN_ENGINE_TENSOR;
    struct exec_view data, dst;

    VTRN_TRY(exec_resolve(core, &arg->data.ap, VTRN_READ, &data));
    VTRN_TRY(exec_resolve(core, &arg->dst.ap, VTRN_WRITE, &dst));
    VTRN_ASSERT(data.parts <= EXEC_LANES && data.elems <= EXEC_LANES); /* legal_tensor.c */
    if (tensor && core->prog->arch->nc_version == 2 && VTRN_DTS_MM >> data.dtype & 1)
        return exec_transpose_by_product(core, &dst, &data);
    VTRN_TRY(exec_stage_always(core, &dst, &data));
    turn_view(core, &dst, &data, data.parts);
    if (!tensor) return VTRN_OK;
    core->counters.macs += (uint64_t)(data.parts * data.parts * data.elems);
    exec_mark_written(&dst);
    return VTRN_OK;
}
