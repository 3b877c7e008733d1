/* Gathers within the partitions: local_gather and nc_n_gather of GpSimd.
 *
 * Both move raw elements of one partition; they differ in who names them: a list per group of 16 partitions, or a list
 * per partition. Indices are checked before anything is written, so a fault leaves dst as it was.
 * Knows no dtypes beyond the index's; tensor indirection of v4 is indirect.c. */
#include "exec/walk_int.h"

enum { GROUP = 16, INDEX_MAX = 4096 /* indices of one group, nki.isa.local_gather */, BLOCK = 2048 };

/* Rows of a source: in place where they are contiguous, else packed into `bytes`. */
struct row_reader {
    const struct exec_view *view;
    uint8_t *bytes; /* one row; NULL: rows are read in place */
};

static enum vtrn_status open_rows(struct vtrn_core *core, struct row_reader *reader, const struct exec_view *src)
{
    reader->view = src;
    reader->bytes = src->contiguous ? NULL : malloc((size_t)src->elems * src->elem_bytes);
    VTRN_FAIL_IF(!src->contiguous && !reader->bytes, &core->err, VTRN_NOMEM, "no memory for a row of %lld elements",
                 (long long)src->elems);
    return VTRN_OK;
}

static const uint8_t *read_row(const struct row_reader *reader, int64_t p)
{
    return exec_load_raw(reader->view, p, 1, 0, reader->view->elems, reader->bytes);
}

static void pick(void *out, const uint8_t *row, const uint32_t *index, int64_t n, int bytes)
{
    uint8_t *to = out;
    switch (bytes) {
    case 1:
        for (int64_t i = 0; i < n; i++) to[i] = row[index[i]];
        break;
    case 2:
        for (int64_t i = 0; i < n; i++) memcpy(to + 2 * i, row + (size_t)index[i] * 2, 2);
        break;
    default:
        for (int64_t i = 0; i < n; i++) memcpy(to + 4 * i, row + (size_t)index[i] * 4, 4);
    }
}

/* The list of group g: the index tile's 16 partitions, partition running fastest. */
static enum vtrn_status group_indices(struct vtrn_core *core, const struct exec_view *index, int64_t g, int64_t valid,
                                      int64_t limit, uint32_t *out)
{
    uint16_t tile[INDEX_MAX + GROUP];
    int64_t columns = (valid + GROUP - 1) / GROUP;
    const uint16_t *packed = exec_load_raw(index, g * GROUP, GROUP, 0, columns, tile);
    for (int64_t j = 0; j < valid; j++) {
        uint16_t value;
        memcpy(&value, packed + j % GROUP * columns + j / GROUP, sizeof value);
        if (value >= limit)
            return exec_fault(core, VTRN_FAULT_INDEX, "operand index: index[%lld, %lld] = %u is outside 0..%lld",
                              (long long)(g * GROUP + j % GROUP), (long long)(j / GROUP), value, (long long)(limit - 1));
        out[j] = value;
    }
    return VTRN_OK;
}

static void gather_group(const struct row_reader *reader, const struct exec_view *dst, int64_t g, const uint32_t *index,
                         int64_t valid, int64_t each)
{
    uint32_t element[BLOCK], packed[BLOCK];
    int64_t total = valid * each;
    for (int64_t p = g * GROUP; p < (g + 1) * GROUP; p++) {
        const uint8_t *row = read_row(reader, p);
        for (int64_t i0 = 0; i0 < total; i0 += BLOCK) {
            int64_t n = total - i0 < BLOCK ? total - i0 : BLOCK, j = i0 / each, e = i0 % each;
            for (int64_t i = 0; i < n; i++) {
                element[i] = index[j] + (uint32_t)e;
                if (++e == each) {
                    e = 0;
                    j++;
                }
            }
            pick(packed, row, element, n, dst->elem_bytes);
            exec_store_raw(dst, p, 1, i0, n, packed);
        }
    }
}

/* Does: for each group of 16 partitions: flattens the group's part of index with the partition running fastest, takes the
 *   first num_valid_indices, and sets dst[p, j*E + e] = src_buffer[p, index[j] + e] for e < E = num_elem_per_idx and each
 *   partition p of the group. Indices are element offsets into the flattened free dimensions. Elements of dst beyond
 *   num_valid_indices * E keep their value.
 * Rounding: none, bits are copied.
 * Faults: INDEX when an index or the elements it names lie outside src_buffer (undefined in hardware); VALUE when dst is
 *   too small or a group has more than 4096 indices.
 * Differs: hardware does not report an index outside. */
enum vtrn_status vtrn_exec_local_gather(struct vtrn_core *core, const struct vtrn_inst *inst)
{
    const struct vtrn_args_local_gather *arg = VTRN_ARGS(local_gather, inst);
    struct exec_view dst, src, index;
    VTRN_TRY(exec_resolve(core, &arg->src_buffer.ap, VTRN_READ, &src));
    VTRN_TRY(exec_resolve(core, &arg->index.ap, VTRN_READ, &index));
    int64_t each = arg->num_elem_per_idx.i, groups = src.parts / GROUP, all = GROUP * index.elems;
    int64_t valid = arg->num_valid_indices.kind == VTRN_V_NONE ? all : arg->num_valid_indices.i;
    if (valid > all || valid > INDEX_MAX)
        return exec_fault(core, VTRN_FAULT_VALUE, "operand num_valid_indices: %lld a group; index holds %lld, and %d is the most",
                          (long long)valid, (long long)all, INDEX_MAX);
    bool whole = valid * each == vtrn_ap_free_elems(&arg->dst.ap);
    VTRN_TRY(exec_resolve(core, &arg->dst.ap, whole ? VTRN_WRITE : VTRN_READ | VTRN_WRITE, &dst));
    if (dst.elems < valid * each || dst.parts != src.parts || index.parts != src.parts || src.parts % GROUP != 0)
        return exec_fault(core, VTRN_FAULT_VALUE,
                          "operand dst: [%lld, %lld] does not hold %lld x %lld gathered elements of %lld "
                          "partitions",
                          (long long)dst.parts, (long long)dst.elems, (long long)valid, (long long)each, (long long)src.parts);
    struct row_reader reader;
    VTRN_TRY(exec_stage_always(core, &dst, &src));
    VTRN_TRY(open_rows(core, &reader, &src));
    uint32_t list[8][INDEX_MAX];
    enum vtrn_status status = VTRN_OK;
    for (int64_t g = 0; g < groups && status == VTRN_OK; g++)
        status = group_indices(core, &index, g, valid, src.elems - each + 1, list[g]);
    for (int64_t g = 0; g < groups && status == VTRN_OK; g++) gather_group(&reader, &dst, g, list[g], valid, each);
    free(reader.bytes);
    return status;
}

static enum vtrn_status check_indices(struct vtrn_core *core, const struct exec_view *indices, int64_t limit)
{
    uint32_t block[BLOCK];
    for (int64_t p = 0; p < indices->parts; p++)
        for (int64_t i0 = 0; i0 < indices->elems; i0 += BLOCK) {
            int64_t n = indices->elems - i0 < BLOCK ? indices->elems - i0 : BLOCK;
            const uint32_t *index = exec_load_raw(indices, p, 1, i0, n, block);
            uint32_t highest = 0;
            for (int64_t i = 0; i < n; i++) highest = index[i] > highest ? index[i] : highest;
            if (highest < limit) continue;
            for (int64_t i = 0; i < n; i++)
                if (index[i] >= limit)
                    return exec_fault(core, VTRN_FAULT_INDEX, "operand indices: indices[%lld, %lld] = %lu is outside 0..%lld",
                                      (long long)p, (long long)(i0 + i), (unsigned long)index[i], (long long)(limit - 1));
        }
    return VTRN_OK;
}

/* Does: dst[p, i] = data[p, indices[p, i]], free dimensions flattened.
 * Rounding: none, bits are copied.
 * Faults: INDEX when an index is not below the elements of data in a partition.
 * Differs: none known; hardware runs it in pieces of 512 elements. */
enum vtrn_status vtrn_exec_nc_n_gather(struct vtrn_core *core, const struct vtrn_inst *inst)
{
    const struct vtrn_args_nc_n_gather *arg = VTRN_ARGS(nc_n_gather, inst);
    struct exec_view dst, data, indices;
    VTRN_TRY(exec_resolve(core, &arg->data.ap, VTRN_READ, &data));
    VTRN_TRY(exec_resolve(core, &arg->indices.ap, VTRN_READ, &indices));
    VTRN_TRY(exec_resolve(core, &arg->dst.ap, VTRN_WRITE, &dst));
    if (dst.elems != indices.elems || dst.parts != indices.parts || dst.parts != data.parts || dst.dtype != data.dtype)
        return exec_fault(core, VTRN_FAULT_VALUE,
                          "operand dst: [%lld, %lld] %s; it needs the shape of indices [%lld, %lld] and the "
                          "dtype of data, %s",
                          (long long)dst.parts, (long long)dst.elems, vtrn_dtypes[dst.dtype].nki_name, (long long)indices.parts,
                          (long long)indices.elems, vtrn_dtypes[data.dtype].nki_name);
    VTRN_TRY(check_indices(core, &indices, data.elems));
    struct row_reader reader;
    VTRN_TRY(exec_stage_always(core, &dst, &data));
    VTRN_TRY(exec_stage(core, &dst, &indices));
    VTRN_TRY(open_rows(core, &reader, &data));
    uint32_t block[BLOCK], packed[BLOCK];
    for (int64_t p = 0; p < dst.parts; p++) {
        const uint8_t *row = read_row(&reader, p);
        for (int64_t i0 = 0; i0 < dst.elems; i0 += BLOCK) {
            int64_t n = dst.elems - i0 < BLOCK ? dst.elems - i0 : BLOCK;
            pick(packed, row, exec_load_raw(&indices, p, 1, i0, n, block), n, dst.elem_bytes);
            exec_store_raw(&dst, p, 1, i0, n, packed);
        }
    }
    free(reader.bytes);
    return VTRN_OK;
}
