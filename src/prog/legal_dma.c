/* Legality of what the DMA engines do: copies, gathers and scatters, transposes, sums, and the exchange between the two
 * cores of a pair. Source: nki.isa reference (dma_copy, dma_transpose, dma_compute, sendrecv). */
#include "prog/legal_int.h"

enum { TRANSPOSE_DIMS = 4, TRANSPOSE_BEAT = 16, INDEX_ROWS_MIN = 16, INDEX_ROWS_MAX = 128 };

/* ---------------------------------------------------------------- shared */
static enum vtrn_status check_priority(struct legal *legal, size_t index)
{
    LEGAL_FAIL_IF(legal->inst->arg[index].kind == VTRN_V_INT && legal->version < 4, legal,
                  "priority: DMA priorities need NeuronCore v4 (trn3); leave it out on %s", legal->prog->arch->chip);
    return VTRN_OK;
}

static enum vtrn_status total_elems(struct legal *legal, const struct legal_operand *operand, int64_t *total_out)
{
    LEGAL_FAIL_IF(!vtrn_mul_i64(operand->parts, operand->elems, total_out), legal, "%s: more elements than any tensor has",
                  operand->name);
    return VTRN_OK;
}

static enum vtrn_status check_same_total(struct legal *legal, const struct legal_operand *a, const struct legal_operand *b)
{
    int64_t na = 0, nb = 0;

    if (VTRN_LIKELY(a->parts == b->parts && a->elems == b->elems)) return VTRN_OK;
    VTRN_TRY(total_elems(legal, a, &na));
    VTRN_TRY(total_elems(legal, b, &nb));
    LEGAL_FAIL_IF(na != nb, legal, "%s has %lld elements, %s has %lld; they must be equal", a->name, (long long)na, b->name,
                  (long long)nb);
    return VTRN_OK;
}

/* ---------------------------------------------------------------- dma_copy */
static enum vtrn_status check_dge(struct legal *legal, int dge, const struct legal_operand *dst, const struct legal_operand *src)
{
    bool vector = legal_dyn(dst->ap, VTRN_DYN_VECTOR) || legal_dyn(src->ap, VTRN_DYN_VECTOR);

    if (dge != VTRN_DGE_HWDGE) return VTRN_OK;
    LEGAL_FAIL_IF(legal->version < 3, legal, "dge_mode hwdge needs NeuronCore v3 (trn2); use unknown on %s", legal->prog->arch->chip);
    LEGAL_FAIL_IF(vector, legal, "dge_mode hwdge cannot gather or scatter by vector_offset; use swdge or unknown");
    LEGAL_FAIL_IF(dst->dtype != src->dtype, legal, "dge_mode hwdge moves raw bytes; src is %s and dst is %s",
                  legal_dtype_name(src->dtype), legal_dtype_name(dst->dtype));
    return VTRN_OK;
}

static enum vtrn_status check_trigger(struct legal *legal, int64_t engine, int64_t dge)
{
    if (engine == VTRN_ENGINE_UNKNOWN) return VTRN_OK;
    LEGAL_FAIL_IF(engine != VTRN_ENGINE_SCALAR && engine != VTRN_ENGINE_SYNC, legal,
                  "engine %s cannot trigger a DMA; use scalar or sync, with dge_mode hwdge", vtrn_engine_name((int)engine));
    LEGAL_FAIL_IF(dge != VTRN_DGE_HWDGE, legal, "engine %s is for dge_mode hwdge only", vtrn_engine_name((int)engine));
    return VTRN_OK;
}

enum vtrn_status legal_dma_copy(struct legal *legal)
{
    const struct legal_operand *dst = LEGAL_OPERAND(legal, dma_copy, dst);
    const struct legal_operand *src = LEGAL_OPERAND(legal, dma_copy, src);
    int64_t dge = LEGAL_ARG(legal, dma_copy, dge_mode)->i;

    VTRN_TRY(check_same_total(legal, src, dst));
    if (dst->dtype != src->dtype)
        LEGAL_FAIL_IF((VTRN_DTS_MX >> dst->dtype & 1) || (VTRN_DTS_MX >> src->dtype & 1), legal,
                      "src is %s and dst is %s; packed MX elements do not convert, use a view of the same dtype",
                      legal_dtype_name(src->dtype), legal_dtype_name(dst->dtype));
    LEGAL_FAIL_IF(legal_dyn(dst->ap, VTRN_DYN_VECTOR) && legal_dyn(src->ap, VTRN_DYN_VECTOR), legal,
                  "src and dst both have a vector_offset; gather first, then scatter");
    VTRN_TRY(check_priority(legal, LEGAL_INDEX(dma_copy, priority)));
    VTRN_TRY(check_dge(legal, (int)dge, dst, src));
    return check_trigger(legal, LEGAL_ARG(legal, dma_copy, engine)->i, dge);
}

/* ---------------------------------------------------------------- dma_transpose */
/* The one permutation of each rank: 2D (1,0), 3D (2,1,0), 4D (3,1,2,0). */
static const uint8_t permutation[TRANSPOSE_DIMS + 1][TRANSPOSE_DIMS] = { { 0 }, { 0 }, { 1, 0 }, { 2, 1, 0 }, { 3, 1, 2, 0 } };

static enum vtrn_status check_permutation(struct legal *legal, const struct vtrn_value *axes, int rank)
{
    LEGAL_FAIL_IF(rank < 2 || rank > TRANSPOSE_DIMS, legal, "src has %d dimensions, 2..%d can be transposed", rank, TRANSPOSE_DIMS);
    if (axes->kind != VTRN_V_INTS || axes->count == 0) return VTRN_OK;
    for (int i = 0; i < rank; i++)
        LEGAL_FAIL_IF(axes->count != rank || axes->ints[i] != permutation[rank][i], legal,
                      "axes: %d dimensions are transposed as (1,0), (2,1,0) or (3,1,2,0) by rank; no other order", rank);
    return VTRN_OK;
}

/* dst has the permuted shape of src; dimensions of size 1 may be left out. */
static enum vtrn_status check_permuted_shape(struct legal *legal, const struct vtrn_ap *dst, const struct vtrn_ap *src)
{
    int d = 1;

    LEGAL_FAIL_IF(dst->dim[0].count != src->dim[src->ndim - 1].count, legal,
                  "dst has %lld partitions, the last dimension of src has %lld; they must be equal", (long long)dst->dim[0].count,
                  (long long)src->dim[src->ndim - 1].count);
    for (int i = 1; i < src->ndim; i++) {
        int64_t wanted = src->dim[permutation[src->ndim][i]].count;

        if (wanted == 1) continue;
        while (d < dst->ndim && dst->dim[d].count == 1) d++;
        LEGAL_FAIL_IF(d >= dst->ndim || dst->dim[d].count != wanted, legal,
                      "dst: free dimension %d has size %lld, the transpose of src has %lld", d,
                      (long long)(d < dst->ndim ? dst->dim[d].count : 1), (long long)wanted);
        d++;
    }
    while (d < dst->ndim && dst->dim[d].count == 1) d++;
    LEGAL_FAIL_IF(d < dst->ndim, legal, "dst: free dimension %d has size %lld, the transpose of src has no such dimension", d,
                  (long long)dst->dim[d].count);
    return VTRN_OK;
}

static enum vtrn_status check_two_bytes(struct legal *legal, const struct legal_operand *src, const char *mode)
{
    LEGAL_FAIL_IF(vtrn_dtypes[src->dtype].size_bytes != 2, legal, "src is %s; %s transposes 2-byte dtypes",
                  legal_dtype_name(src->dtype), mode);
    return VTRN_OK;
}

static enum vtrn_status check_hwdge_transpose(struct legal *legal, const struct legal_operand *src)
{
    const struct vtrn_ap *ap = src->ap;
    int64_t rows = ap->dim[0].count;

    LEGAL_FAIL_IF(legal->version < 3, legal, "dge_mode hwdge needs NeuronCore v3 (trn2); use unknown on %s", legal->prog->arch->chip);
    VTRN_TRY(check_two_bytes(legal, src, "dge_mode hwdge"));
    if (ap->ndim == 2) {
        LEGAL_FAIL_IF(rows != TRANSPOSE_BEAT, legal, "src has %lld rows; dge_mode hwdge transposes %d of a 2D tensor",
                      (long long)rows, TRANSPOSE_BEAT);
        return VTRN_OK;
    }
    LEGAL_FAIL_IF(rows > TRANSPOSE_BEAT || (rows & (rows - 1)), legal,
                  "src has %lld in its first dimension; dge_mode hwdge needs 1, 2, 4, 8 or 16", (long long)rows);
    LEGAL_FAIL_IF(rows * ap->dim[ap->ndim - 2].count % TRANSPOSE_BEAT != 0, legal,
                  "src: first times last but one dimension is %lld; dge_mode hwdge needs a multiple of %d",
                  (long long)(rows * ap->dim[ap->ndim - 2].count), TRANSPOSE_BEAT);
    return VTRN_OK;
}

static enum vtrn_status check_indirect_transpose(struct legal *legal, const struct legal_operand *src, const struct vtrn_dyn *dyn,
                                                 int dge)
{
    const struct vtrn_ap *ap = src->ap;
    int64_t rows = ap->dim[0].count;

    LEGAL_FAIL_IF(legal->version < 3, legal, "src: an indirect transpose needs NeuronCore v3 (trn2)");
    LEGAL_FAIL_IF(dge != VTRN_DGE_UNKNOWN && dge != VTRN_DGE_SWDGE, legal,
                  "dge_mode %s: an indirect transpose runs with swdge or unknown", vtrn_enum_name(VTRN_ENUMS_DGE, dge));
    VTRN_TRY(check_two_bytes(legal, src, "an indirect transpose"));
    LEGAL_FAIL_IF(rows % TRANSPOSE_BEAT != 0, legal, "src has %lld rows; an indirect transpose needs a multiple of %d",
                  (long long)rows, TRANSPOSE_BEAT);
    LEGAL_FAIL_IF(ap->ndim == 4 && ap->dim[1].count != 1 && ap->dim[2].count != 1, legal,
                  "src: both middle dimensions are larger than 1; an indirect transpose needs one of size 1");
    LEGAL_FAIL_IF(vtrn_dtypes[dyn->dtype].size_bytes != 4, legal, "src: index dtype %s, it must be uint32",
                  legal_dtype_name(dyn->dtype));
    LEGAL_FAIL_IF(
        dyn->count < INDEX_ROWS_MIN || dyn->count % (dyn->count > INDEX_ROWS_MAX ? INDEX_ROWS_MAX : INDEX_ROWS_MIN), legal,
        "src: %lld indices; they come in columns of 16 to 128, a multiple of 16, and of exactly 128 when there are several",
        (long long)dyn->count);
    return VTRN_OK;
}

enum vtrn_status legal_dma_transpose(struct legal *legal)
{
    const struct legal_operand *dst = LEGAL_OPERAND(legal, dma_transpose, dst);
    const struct legal_operand *src = LEGAL_OPERAND(legal, dma_transpose, src);
    const struct vtrn_dyn *vector = legal_dyn(src->ap, VTRN_DYN_VECTOR);
    int dge = (int)LEGAL_ARG(legal, dma_transpose, dge_mode)->i;

    VTRN_TRY(check_permutation(legal, LEGAL_ARG(legal, dma_transpose, axes), src->ap->ndim));
    VTRN_TRY(check_permuted_shape(legal, dst->ap, src->ap));
    VTRN_TRY(legal_same_dtype(legal, dst, src));
    VTRN_TRY(check_priority(legal, LEGAL_INDEX(dma_transpose, priority)));
    if (vector) return check_indirect_transpose(legal, src, vector, dge);
    return dge == VTRN_DGE_HWDGE ? check_hwdge_transpose(legal, src) : VTRN_OK;
}

/* ---------------------------------------------------------------- dma_compute */
static bool same_access(const struct vtrn_ap *a, const struct vtrn_ap *b)
{
    if (a->tensor != b->tensor || a->dtype != b->dtype || a->ndim != b->ndim || a->part0 != b->part0 || a->offset != b->offset ||
        a->ndyn != b->ndyn)
        return false;
    for (int d = 0; d < a->ndim; d++)
        if (a->dim[d].count != b->dim[d].count || a->dim[d].stride != b->dim[d].stride) return false;
    for (int d = 0; d < a->ndyn; d++)
        if (a->dyn[d].kind != b->dyn[d].kind || a->dyn[d].ref != b->dyn[d].ref || a->dyn[d].part0 != b->dyn[d].part0 ||
            a->dyn[d].offset != b->dyn[d].offset || a->dyn[d].scale != b->dyn[d].scale)
            return false;
    return true;
}

/* Read-modify-write by index: dst[idx] += src, or dst += src[idx]. */
static enum vtrn_status check_modify(struct legal *legal, const struct vtrn_ap *dst, const struct vtrn_value *srcs)
{
    int same = 0;

    LEGAL_FAIL_IF(srcs->count != 2, legal, "srcs has %u tensors; with vector_offset there are exactly 2, dst and what is added",
                  srcs->count);
    for (int i = 0; i < srcs->count; i++) same += same_access(dst, &srcs->aps[i]);
    LEGAL_FAIL_IF(same != 1, legal, "srcs: with vector_offset one of the two must be dst itself");
    LEGAL_FAIL_IF(!legal_flag(legal, LEGAL_INDEX(dma_compute, unique_indices)), legal,
                  "unique_indices must be True: repeated indices are not supported");
    return VTRN_OK;
}

enum vtrn_status legal_dma_compute(struct legal *legal)
{
    const struct legal_operand *dst = LEGAL_OPERAND(legal, dma_compute, dst);
    const struct vtrn_value *srcs = LEGAL_ARG(legal, dma_compute, srcs), *scales = LEGAL_ARG(legal, dma_compute, scales);
    bool vector = legal_dyn(dst->ap, VTRN_DYN_VECTOR) != NULL;

    for (int i = 0; i < srcs->count; i++) {
        struct legal_operand src;

        VTRN_TRY(legal_access(legal, &legal->info->operand[LEGAL_INDEX(dma_compute, srcs)], &srcs->aps[i], &src));
        VTRN_TRY(check_same_total(legal, &src, dst));
        vector = vector || legal_dyn(src.ap, VTRN_DYN_VECTOR);
    }
    if (scales->kind == VTRN_V_INTS) {
        LEGAL_FAIL_IF(scales->count != 0 && scales->count != srcs->count, legal, "scales has %u entries for %u srcs", scales->count,
                      srcs->count);
        for (int i = 0; i < scales->count; i++)
            LEGAL_FAIL_IF(scales->ints[i] != 1, legal, "scales[%d] is %lld; only 1.0 is supported", i, (long long)scales->ints[i]);
    }
    return vector ? check_modify(legal, dst->ap, srcs) : VTRN_OK;
}

/* ---------------------------------------------------------------- sendrecv */
static enum vtrn_status check_rank(struct legal *legal, size_t index)
{
    const struct vtrn_value *rank = &legal->inst->arg[index];

    if (rank->kind != VTRN_V_INT) return VTRN_OK; /* a register: exec checks it */
    LEGAL_FAIL_IF(rank->i < 0 || rank->i >= VTRN_CORES_MAX, legal, "%s %lld; ranks are 0 and 1", legal->info->operand[index].name,
                  (long long)rank->i);
    LEGAL_FAIL_IF(rank->i == legal->core, legal, "%s %lld is this core itself; the peer is %d", legal->info->operand[index].name,
                  (long long)rank->i, 1 - legal->core);
    return VTRN_OK;
}

enum vtrn_status legal_sendrecv(struct legal *legal)
{
    const struct legal_operand *src = LEGAL_OPERAND(legal, sendrecv, src);
    const struct legal_operand *dst = LEGAL_OPERAND(legal, sendrecv, dst);
    int64_t size = vtrn_dtypes[src->dtype].size_bytes, limit = 256 * size;

    LEGAL_FAIL_IF(legal->prog->cores < 2, legal, "the kernel runs on one core; sendrecv needs two, launch kernel[2]");
    VTRN_TRY(check_rank(legal, LEGAL_INDEX(sendrecv, send_to_rank)));
    VTRN_TRY(check_rank(legal, LEGAL_INDEX(sendrecv, recv_from_rank)));
    VTRN_TRY(legal_same_dtype(legal, src, dst));
    VTRN_TRY(legal_same_shape(legal, src, dst));
    LEGAL_FAIL_IF(LEGAL_ARG(legal, sendrecv, dma_engine)->i == VTRN_DMA_ENGINE_GPSIMD_DMA && src->elems * size > limit, legal,
                  "src has %lld bytes per partition > %lld (gpsimd_dma, %lld-bit dtypes); use dma_engine.dma or send in parts",
                  (long long)(src->elems * size), (long long)limit, (long long)size * 8);
    return VTRN_OK;
}
