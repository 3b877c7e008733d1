/* Legality of the tensor engine's instructions: matrix products and transposes. K is the partition count of both
 * inputs, M the free size of the stationary one, N of the moving one.
 * Sources: nki.isa reference (nc_matmul, nc_matmul_mx, nc_transpose); NeuronCore-v2/v3/v4 architecture guides
 * (PE tiling, PSUM banks, double row). Where real kernels go beyond the reference text (column tiles, tile sizes such as
 * (H0, 32)), they are followed. */
#include "prog/legal_int.h"

enum { VECTOR_TRANSPOSE_MAX = 32, MX_ROWS = 32, MX_GROUP_PARTS = 8 };

/* ---------------------------------------------------------------- PSUM */
/* Before v4 a tensor-engine write stays inside one bank of each partition. Tensors without an address are placed at the
 * start of a bank when they are larger than one, and inside one otherwise. */
static enum vtrn_status check_bank(struct legal *legal, const struct legal_operand *dst)
{
    const struct vtrn_arch *arch = legal->prog->arch;
    int64_t bank = arch->psum_bank_bytes, size = vtrn_dtypes[dst->dtype].size_bytes, low, high, base = 0;

    if (legal->version >= 4 || dst->ap->ndyn) return VTRN_OK;
    if (dst->tensor->has_address) base = dst->tensor->addr_byte;
    else if (dst->tensor->row_bytes <= bank) return VTRN_OK;
    if (!vtrn_ap_extent(dst->ap, true, &low, &high)) return VTRN_OK; /* bounds were checked: cannot happen */
    low = base + low * size;
    high = base + high * size + size - 1;
    LEGAL_FAIL_IF(low / bank != high / bank, legal,
                  "dst: bytes %lld..%lld of the partition cross a PSUM bank (%lld bytes); one matmul writes inside one bank on %s, "
                  "tile the free dimension",
                  (long long)low, (long long)high, (long long)bank, arch->chip);
    return VTRN_OK;
}

/* The most columns that one product can write. */
static int64_t moving_limit(const struct legal *legal, const struct legal_operand *dst)
{
    const struct vtrn_arch *arch = legal->prog->arch;

    if (legal->version < 4) return arch->moving_max;
    return arch->psum_banks * arch->psum_bank_bytes / (dst->dtype == VTRN_DT_BF16 ? 2 : 4);
}

static enum vtrn_status check_moving(struct legal *legal, const struct legal_operand *dst, int64_t columns)
{
    int64_t limit = moving_limit(legal, dst);

    LEGAL_FAIL_IF(columns > limit && legal->version < 4, legal,
                  "moving free size %lld > %lld (one PSUM bank holds %lld fp32 on %s); tile it", (long long)columns,
                  (long long)limit, (long long)limit, legal->prog->arch->chip);
    LEGAL_FAIL_IF(columns > limit, legal, "moving free size %lld > %lld (all PSUM banks, dst %s); tile it", (long long)columns,
                  (long long)limit, legal_dtype_name(dst->dtype));
    return VTRN_OK;
}

static enum vtrn_status check_result(struct legal *legal, const struct legal_operand *dst, int64_t m, int64_t n)
{
    LEGAL_FAIL_IF(dst->parts != m, legal, "dst has %lld partitions, stationary has free size %lld; they must be equal",
                  (long long)dst->parts, (long long)m);
    LEGAL_FAIL_IF(dst->elems != n, legal, "dst has free size %lld, moving has %lld; they must be equal", (long long)dst->elems,
                  (long long)n);
    return check_bank(legal, dst);
}

static enum vtrn_status check_result_dtype(struct legal *legal, const struct legal_operand *dst)
{
    bool ok = dst->dtype == VTRN_DT_F32 || (dst->dtype == VTRN_DT_BF16 && legal->version >= 4);

    LEGAL_FAIL_IF(!ok, legal, "dst: dtype %s; a matmul accumulates in float32%s on %s; convert when you copy it out of PSUM",
                  legal_dtype_name(dst->dtype), legal->version >= 4 ? " or bfloat16" : "", legal->prog->arch->chip);
    return VTRN_OK;
}

/* ---------------------------------------------------------------- tiles of the PE array */
struct tile {
    bool given;
    int64_t rows, columns, row0, column0;
};

static bool is_tile_size(int64_t n) { return n == 32 || n == 64 || n == 128; }

static enum vtrn_status check_tile_axis(struct legal *legal, const char *axis, int64_t start, int64_t size, int64_t array)
{
    LEGAL_FAIL_IF(size < 1 || size > array, legal, "tile_size: %s size %lld is outside 1..%lld", axis, (long long)size,
                  (long long)array);
    LEGAL_FAIL_IF(start < 0 || start + size > array, legal, "tile_position: %s tile %lld..%lld leaves the %lld %ss of the array",
                  axis, (long long)start, (long long)(start + size - 1), (long long)array, axis);
    LEGAL_FAIL_IF(is_tile_size(size) && start % size != 0, legal,
                  "tile_position: start %s %lld is not a multiple of the tile's %lld", axis, (long long)start, (long long)size);
    LEGAL_FAIL_IF(size == 32 && legal->prog->arch->min_tile_rows > 32, legal, "tile_size: %s tiles of 32 need NeuronCore v3 (trn2)",
                  axis);
    return VTRN_OK;
}

static enum vtrn_status read_tile(struct legal *legal, const struct vtrn_value *position, const struct vtrn_value *size,
                                  struct tile *tile)
{
    const struct vtrn_arch *arch = legal->prog->arch;
    bool has_position = position->kind == VTRN_V_INTS && position->count, has_size = size->kind == VTRN_V_INTS && size->count;

    *tile = (struct tile){ false, arch->pe_rows, arch->pe_columns, 0, 0 };
    LEGAL_FAIL_IF(has_position != has_size, legal, "tile_position and tile_size go together; only %s is given",
                  has_position ? "tile_position" : "tile_size");
    if (!has_size) return VTRN_OK;
    LEGAL_FAIL_IF(position->count != 2 || size->count != 2, legal, "%s has %u entries, it must have 2 (row, column)",
                  position->count != 2 ? "tile_position" : "tile_size", position->count != 2 ? position->count : size->count);
    *tile = (struct tile){ true, size->ints[0], size->ints[1], position->ints[0], position->ints[1] };
    VTRN_TRY(check_tile_axis(legal, "row", tile->row0, tile->rows, arch->pe_rows));
    return check_tile_axis(legal, "column", tile->column0, tile->columns, arch->pe_columns);
}

/* K rows and M columns fit the array, or the tile of it that is used. */
static enum vtrn_status check_array(struct legal *legal, const struct tile *tile, int64_t k, int64_t m)
{
    const char *what = tile->given ? "tile_size" : "the PE array";

    LEGAL_FAIL_IF(k > tile->rows, legal, "contraction size %lld > %lld (rows of %s); tile it", (long long)k, (long long)tile->rows,
                  what);
    LEGAL_FAIL_IF(m > tile->columns, legal, "stationary free size %lld > %lld (columns of %s); tile it", (long long)m,
                  (long long)tile->columns, what);
    return VTRN_OK;
}

static enum vtrn_status check_indirect_tile(struct legal *legal, const struct tile *tile, const struct legal_operand *operand)
{
    const uint32_t floats = VTRN_DTBIT(F16) | VTRN_DTBIT(BF16) | VTRN_DTS_F8;

    if (!legal_dyn(operand->ap, VTRN_DYN_INDIRECT)) return VTRN_OK;
    LEGAL_FAIL_IF(tile->row0 || tile->column0, legal, "tile_position must be (0, 0) with an indirect %s", operand->name);
    return operand->space == VTRN_PSUM || VTRN_DTS_MX >> operand->dtype & 1 ? VTRN_OK : legal_dtype_in(legal, operand, floats);
}

/* ---------------------------------------------------------------- nc_matmul */
static bool wide(int dtype) { return dtype == VTRN_DT_F32 || dtype == VTRN_DT_TF32; }

static enum vtrn_status check_input_dtypes(struct legal *legal, const struct legal_operand *stationary,
                                           const struct legal_operand *moving)
{
    int s = stationary->dtype, m = moving->dtype;

    if (VTRN_LIKELY(s == m)) return VTRN_OK;
    LEGAL_FAIL_IF(wide(s) != wide(m), legal, "stationary is %s and moving is %s; float32 and tfloat32 pair only with each other",
                  legal_dtype_name(s), legal_dtype_name(m));
    LEGAL_FAIL_IF((s == VTRN_DT_F8E4M3 && m == VTRN_DT_F8E4M3FN) || (s == VTRN_DT_F8E4M3FN && m == VTRN_DT_F8E4M3), legal,
                  "stationary is %s and moving is %s; the two e4m3 formats cannot be mixed", legal_dtype_name(s),
                  legal_dtype_name(m));
    return VTRN_OK;
}

static enum vtrn_status check_double_row(struct legal *legal, const struct legal_operand *operand)
{
    LEGAL_FAIL_IF(operand->ap->ndim < 3 || operand->ap->dim[1].count != 2, legal,
                  "%s: first free dimension is %lld; double_row needs 2 (shape [K, 2, ...])", operand->name,
                  (long long)operand->ap->dim[1].count);
    LEGAL_FAIL_IF(!(VTRN_DTS_F8 >> operand->dtype & 1), legal, "%s is %s; double_row needs an fp8 dtype", operand->name,
                  legal_dtype_name(operand->dtype));
    return VTRN_OK;
}

/* A transpose leaves the bits as they are: PSUM elements as wide as the input, fp8 widened to 16 bits. Floats may also arrive
 * in fp32, exact too: a transpose is a matmul with an identity, and public kernels that ran on trn1 and trn2 do it with
 * nc_transpose (AWS's flash attention, nki-samples), although its reference asks for equal dtypes. */
static enum vtrn_status check_transpose_dtype(struct legal *legal, const struct legal_operand *dst, const struct legal_operand *data)
{
    bool fp8 = vtrn_dtypes[data->dtype].size_bytes == 1;

    if (dst->dtype == data->dtype || (dst->dtype == VTRN_DT_F32 && VTRN_DTS_MM >> data->dtype & 1)) return VTRN_OK;
    if (fp8 && vtrn_dtypes[dst->dtype].size_bytes == 2) return VTRN_OK;
    return vtrn_fail(legal->err, VTRN_ILLEGAL, "dst is %s, %s is %s; a transpose does not convert", legal_dtype_name(dst->dtype),
                     data->name, legal_dtype_name(data->dtype));
}

enum vtrn_status legal_nc_matmul(struct legal *legal)
{
    const struct legal_operand *dst = LEGAL_OPERAND(legal, nc_matmul, dst);
    const struct legal_operand *stationary = LEGAL_OPERAND(legal, nc_matmul, stationary);
    const struct legal_operand *moving = LEGAL_OPERAND(legal, nc_matmul, moving);
    bool transpose = legal_flag(legal, LEGAL_INDEX(nc_matmul, is_transpose));
    bool double_row = LEGAL_ARG(legal, nc_matmul, perf_mode)->i == VTRN_MATMUL_PERF_DOUBLE_ROW;
    int64_t m = stationary->elems, n = moving->elems;
    struct tile tile;

    VTRN_TRY(legal_same_parts(legal, stationary, moving));
    VTRN_TRY(check_input_dtypes(legal, stationary, moving));
    VTRN_TRY(read_tile(legal, LEGAL_ARG(legal, nc_matmul, tile_position), LEGAL_ARG(legal, nc_matmul, tile_size), &tile));
    if (double_row) {
        LEGAL_FAIL_IF(legal->version < 3, legal, "perf_mode double_row needs NeuronCore v3 (trn2)");
        LEGAL_FAIL_IF(transpose, legal, "perf_mode double_row does not transpose");
        LEGAL_FAIL_IF(tile.columns < legal->prog->arch->pe_columns, legal, "perf_mode double_row does not work with column tiles");
        VTRN_TRY(check_double_row(legal, stationary));
        VTRN_TRY(check_double_row(legal, moving));
        m /= 2;
        n /= 2;
    }
    VTRN_TRY(check_array(legal, &tile, stationary->parts, m));
    VTRN_TRY(check_moving(legal, dst, n));
    if (transpose) {
        LEGAL_FAIL_IF(n > stationary->parts, legal,
                      "moving free size %lld > %lld partitions of stationary; is_transpose needs an identity as moving",
                      (long long)n, (long long)stationary->parts);
        LEGAL_FAIL_IF(legal_dyn(moving->ap, VTRN_DYN_INDIRECT), legal, "moving cannot be indirect with is_transpose");
        VTRN_TRY(check_transpose_dtype(legal, dst, stationary));
    } else {
        VTRN_TRY(check_result_dtype(legal, dst));
    }
    if (stationary->ap->ndyn | moving->ap->ndyn | dst->ap->ndyn) {
        VTRN_TRY(check_indirect_tile(legal, &tile, stationary));
        VTRN_TRY(check_indirect_tile(legal, &tile, moving));
        VTRN_TRY(check_indirect_tile(legal, &tile, dst));
    }
    return check_result(legal, dst, m, n);
}

/* ---------------------------------------------------------------- nc_matmul_mx */
/* Scales of K partitions sit in the first K/8 partitions of each group of 32 (a slice may begin at 0, 4, 8 or 12 of the
 * group): 32 partitions of data need 4 of scales, 128 reach to the fourth of the last group. */
static enum vtrn_status check_scale(struct legal *legal, const struct legal_operand *scale, const struct legal_operand *data)
{
    int64_t need = (data->parts - 1) / MX_ROWS * MX_ROWS + MX_ROWS / MX_GROUP_PARTS;

    LEGAL_FAIL_IF(scale->parts < need, legal, "%s has %lld partitions; %lld partitions of %s have their scales in %lld",
                  scale->name, (long long)scale->parts, (long long)data->parts, data->name, (long long)need);
    return legal_same_elems(legal, scale, data);
}

static enum vtrn_status check_same_index(struct legal *legal, const struct legal_operand *data, const struct legal_operand *scale)
{
    const struct vtrn_dyn *a = legal_dyn(data->ap, VTRN_DYN_INDIRECT), *b = legal_dyn(scale->ap, VTRN_DYN_INDIRECT);

    if (!a && !b) return VTRN_OK;
    LEGAL_FAIL_IF(!a || !b || a->ref != b->ref || a->part0 != b->part0 || a->offset != b->offset || a->count != b->count, legal,
                  "%s and %s must be indirect through the same index, or neither", data->name, scale->name);
    return VTRN_OK;
}

enum vtrn_status legal_nc_matmul_mx(struct legal *legal)
{
    const struct legal_operand *dst = LEGAL_OPERAND(legal, nc_matmul_mx, dst);
    const struct legal_operand *stationary = LEGAL_OPERAND(legal, nc_matmul_mx, stationary);
    const struct legal_operand *moving = LEGAL_OPERAND(legal, nc_matmul_mx, moving);
    const struct legal_operand *stationary_scale = LEGAL_OPERAND(legal, nc_matmul_mx, stationary_scale);
    const struct legal_operand *moving_scale = LEGAL_OPERAND(legal, nc_matmul_mx, moving_scale);
    struct tile tile;

    VTRN_TRY(legal_same_parts(legal, stationary, moving));
    VTRN_TRY(read_tile(legal, LEGAL_ARG(legal, nc_matmul_mx, tile_position), LEGAL_ARG(legal, nc_matmul_mx, tile_size), &tile));
    LEGAL_FAIL_IF(tile.column0 != 0 || tile.columns != legal->prog->arch->pe_columns, legal,
                  "tile_size: nc_matmul_mx has row tiles only; column size must be %lld and start column 0",
                  (long long)legal->prog->arch->pe_columns);
    LEGAL_FAIL_IF(stationary->parts % MX_ROWS != 0, legal, "stationary has %lld partitions; MX needs a multiple of %d",
                  (long long)stationary->parts, MX_ROWS);
    LEGAL_FAIL_IF(stationary->elems % 2 != 0, legal, "stationary free size %lld is odd; MX needs an even one",
                  (long long)stationary->elems);
    VTRN_TRY(check_array(legal, &tile, stationary->parts, stationary->elems));
    VTRN_TRY(check_moving(legal, dst, moving->elems));
    VTRN_TRY(check_scale(legal, stationary_scale, stationary));
    VTRN_TRY(check_scale(legal, moving_scale, moving));
    VTRN_TRY(check_same_index(legal, stationary, stationary_scale));
    VTRN_TRY(check_same_index(legal, moving, moving_scale));
    VTRN_TRY(check_result_dtype(legal, dst));
    VTRN_TRY(check_indirect_tile(legal, &tile, stationary));
    VTRN_TRY(check_indirect_tile(legal, &tile, moving));
    VTRN_TRY(check_indirect_tile(legal, &tile, dst));
    return check_result(legal, dst, stationary->elems, moving->elems);
}

/* ---------------------------------------------------------------- nc_transpose */
static enum vtrn_status check_transpose_size(struct legal *legal, const struct legal_operand *data, int64_t limit)
{
    LEGAL_FAIL_IF(data->parts > limit || data->elems > limit, legal,
                  "data is [%lld, %lld]; the %s engine transposes up to [%lld, %lld]; tile it", (long long)data->parts,
                  (long long)data->elems, vtrn_engine_name(legal->inst->engine), (long long)limit, (long long)limit);
    return VTRN_OK;
}

enum vtrn_status legal_nc_transpose(struct legal *legal)
{
    const struct legal_operand *dst = LEGAL_OPERAND(legal, nc_transpose, dst);
    const struct legal_operand *data = LEGAL_OPERAND(legal, nc_transpose, data);
    bool tensor = legal->inst->engine == VTRN_ENGINE_TENSOR;

    VTRN_TRY(check_transpose_size(legal, data, tensor ? legal->prog->arch->pe_columns : VECTOR_TRANSPOSE_MAX));
    LEGAL_FAIL_IF(dst->parts != data->elems || dst->elems != data->parts, legal,
                  "dst is [%lld, %lld]; the transpose of data is [%lld, %lld]", (long long)dst->parts, (long long)dst->elems,
                  (long long)data->elems, (long long)data->parts);
    if (!tensor) return legal_same_dtype(legal, dst, data);
    LEGAL_FAIL_IF(data->space != VTRN_SBUF, legal, "data is in %s; the tensor engine reads SBUF", vtrn_space_name(data->space));
    LEGAL_FAIL_IF(dst->space != VTRN_PSUM, legal, "dst is in %s; the tensor engine writes PSUM", vtrn_space_name(dst->space));
    VTRN_TRY(check_transpose_dtype(legal, dst, data));
    return check_bank(legal, dst);
}
