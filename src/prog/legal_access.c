/* Legality of one tensor operand by itself: is the tensor there and ours, can this instruction reach its memory and
 * read its dtype, does the access pattern stay inside, do its partitions start where an engine can start, are its
 * dynamic parts possible. Bounds are checked for every pattern at append time, so that exec need only check what is
 * dynamic. Must be fast: it runs for every operand of every instruction.
 * Sources: NeuronCore-v2 architecture guide (partitions, access patterns); nki.isa reference (indirection). */
#include "prog/legal_int.h"

enum { FREE_DIMS_MAX = 4, START_TOLERANT_PARTS = 1 /* see check_start */ };
#define EXTENT_LIMIT (INT64_C(1) << 62)

/* ---------------------------------------------------------------- names */
const char *legal_dtype_names(uint32_t mask, char *text, size_t size)
{
    size_t used = 0;
    int left = 0;

    for (int d = 1; d < VTRN_DT_COUNT; d++) left += (int)(mask >> d & 1);
    text[0] = '\0';
    for (int d = 1; d < VTRN_DT_COUNT && used < size; d++) {
        if (!(mask >> d & 1)) continue;
        used += (size_t)snprintf(text + used, size - used, "%s%s",
                                 used == 0   ? ""
                                 : left == 1 ? " or "
                                             : ", ",
                                 vtrn_dtypes[d].nki_name);
        left--;
    }
    return text;
}

static const char *advice_for_space(int space, int spaces)
{
    if (vtrn_space_is_hbm(space)) return "; dma_copy it on chip first";
    if (space == VTRN_PSUM && spaces & VTRN_IN_S) return "; tensor_copy it to SBUF first";
    return "";
}

static enum vtrn_status wrong_space(struct legal *legal, const struct vtrn_operand_info *info, int space, int spaces)
{
    char names[64];
    size_t used = 0;

    names[0] = '\0';
    for (int s = VTRN_SBUF; s <= VTRN_HBM; s++)
        if (spaces >> s & 1)
            used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", used ? " or " : "", vtrn_space_name(s));
    return vtrn_fail(legal->err, VTRN_ILLEGAL, "%s is in %s, it must be in %s%s", info->name, vtrn_space_name(space), names,
                     advice_for_space(space, spaces));
}

/* ---------------------------------------------------------------- dtype */
/* The formats that came with NeuronCore-v4. A DMA moves bytes of any dtype; engines must know it. */
static const uint32_t dtypes_of_v4 = VTRN_DTS_MX | VTRN_DTBIT(F8E4M3FN) | VTRN_DTBIT(F8E8M0);

static enum vtrn_status wrong_dtype(struct legal *legal, const struct vtrn_operand_info *info, int dtype, uint32_t mask)
{
    char names[320];

    if (mask >> dtype & 1)
        return vtrn_fail(legal->err, VTRN_ILLEGAL, "%s: dtype %s needs NeuronCore v4 (trn3) or newer; %s is v%d", info->name,
                         legal_dtype_name(dtype), legal->prog->arch->chip, legal->version);
    return vtrn_fail(legal->err, VTRN_ILLEGAL, "%s: dtype %s, it must be %s", info->name, legal_dtype_name(dtype),
                     legal_dtype_names(mask, names, sizeof names));
}

static enum vtrn_status check_dtype(struct legal *legal, const struct vtrn_operand_info *info, int dtype)
{
    uint32_t mask = info->dtypes ? info->dtypes : VTRN_DTS_PLAIN, now = mask;

    LEGAL_FAIL_IF(dtype <= VTRN_DT_NONE || dtype >= VTRN_DT_COUNT || !vtrn_dtypes[dtype].size_bytes, legal,
                  "%s: no such dtype (%d)", info->name, dtype);
    if (legal->version < 4 && !legal->dma) now &= ~dtypes_of_v4;
    if (VTRN_LIKELY(now >> dtype & 1)) return VTRN_OK;
    return wrong_dtype(legal, info, dtype, mask);
}

/* ---------------------------------------------------------------- extents */
/* Elements are of 1, 2 or 4 bytes: a shift instead of a division, which would cost more than the rest of the check. */
static inline int dtype_shift(int dtype) { return vtrn_dtypes[dtype].size_bytes >> 1; }
#define DTYPE(NAME, code, size, cls, lanes, nki, text, doc) \
    _Static_assert((size) == 1 || (size) == 2 || (size) == 4, "dtype_shift knows no other size: " #NAME);
#include "isa/dtypes.def"
#undef DTYPE

/* For sizes and strides beyond 31 bits: can they be multiplied without overflow? */
static bool product_fits(int64_t count, int64_t n, int64_t stride)
{
    int64_t product;

    return vtrn_mul_i64(count, n, &product) && product < EXTENT_LIMIT && vtrn_mul_i64(stride, n, &product) &&
           product < EXTENT_LIMIT && product > -EXTENT_LIMIT;
}

/* Lowest and highest offset and the number of elements over dims [first, ndim). False: beyond any tensor there can be. */
static bool walk_extent(const struct vtrn_ap *ap, int first, int64_t *lowest, int64_t *highest, int64_t *elems)
{
    int64_t low = 0, high = 0, count = 1;

    for (int d = first; d < ap->ndim; d++) {
        int64_t n = ap->dim[d].count, stride = ap->dim[d].stride;

        bool small = n <= INT32_MAX && count <= INT32_MAX && stride <= INT32_MAX && stride >= -INT32_MAX;

        if (VTRN_UNLIKELY(!small) && !product_fits(count, n, stride)) return false;
        count *= n;
        if (stride >= 0) high += stride * (n - 1);
        else low += stride * (n - 1);
        if (high >= EXTENT_LIMIT || low <= -EXTENT_LIMIT) return false;
    }
    *lowest = low;
    *highest = high;
    *elems = count;
    return true;
}

static enum vtrn_status out_of_bounds(struct legal *legal, const struct legal_operand *operand, int64_t low, int64_t high,
                                      int64_t size)
{
    char scratch[24];

    return vtrn_fail(legal->err, VTRN_ILLEGAL, "%s: elements %lld..%lld are outside %s of tensor %s (0..%lld as %s)", operand->name,
                     (long long)low, (long long)high, vtrn_space_on_chip(operand->space) ? "the partition" : "the elements",
                     prog_tensor_label(legal->prog, operand->ap->tensor, scratch, sizeof scratch), (long long)size - 1,
                     legal_dtype_name(operand->dtype));
}

static enum vtrn_status check_dims(struct legal *legal, const struct vtrn_operand_info *info, const struct vtrn_ap *ap, bool on_chip)
{
    LEGAL_FAIL_IF(ap->ndim < (on_chip ? 2 : 1) || ap->ndim > VTRN_AP_DIMS, legal, "%s: %d dimensions, %d..%d are possible",
                  info->name, ap->ndim, on_chip ? 2 : 1, VTRN_AP_DIMS);
    LEGAL_FAIL_IF(ap->ndyn > VTRN_AP_DYNS || (ap->ndyn && !ap->dyn), legal, "%s: %d dynamic parts, at most %d are possible",
                  info->name, ap->ndyn, VTRN_AP_DYNS);
    for (int d = 0; d < ap->ndim; d++)
        LEGAL_FAIL_IF(ap->dim[d].count < 1, legal, "%s: dimension %d has size %lld; it must be at least 1", info->name, d,
                      (long long)ap->dim[d].count);
    return VTRN_OK;
}

/* `size`: elements of the view's dtype in the partition (on chip) or in the tensor. */
static enum vtrn_status check_extent(struct legal *legal, const struct vtrn_ap *ap, struct legal_operand *operand, int64_t size)
{
    bool on_chip = vtrn_space_on_chip(operand->space), vector = legal_dyn(ap, VTRN_DYN_VECTOR) != NULL;
    int64_t low, high, elems, outer = ap->dim[0].count;

    LEGAL_FAIL_IF(!walk_extent(ap, on_chip || vector ? 1 : 0, &low, &high, &elems) || outer > INT32_MAX ||
                      ap->offset > EXTENT_LIMIT || ap->offset < -EXTENT_LIMIT,
                  legal, "%s: the access pattern spans more than any tensor", operand->name);
    operand->parts = outer;
    operand->elems = on_chip || vector ? elems : elems / outer;
    if (legal_dyn(ap, VTRN_DYN_INDIRECT)) return VTRN_OK; /* the index tile gives the offsets */
    if (ap->ndyn) {                                       /* the start is known when it runs: the reach is known now */
        if (high - low >= size) return out_of_bounds(legal, operand, low, high, size);
        return VTRN_OK;
    }
    if (low + ap->offset < 0 || high + ap->offset >= size)
        return out_of_bounds(legal, operand, low + ap->offset, high + ap->offset, size);
    return VTRN_OK;
}

int legal_merged_dims(const struct vtrn_ap *ap)
{
    int merged = 1;
    int64_t reach = -1; /* stride that would continue the dimension to the right */

    for (int d = ap->ndim - 1; d >= 1; d--) {
        if (ap->dim[d].count == 1) continue;
        if (reach < 0 || ap->dim[d].stride != reach) merged++;
        reach = ap->dim[d].stride * ap->dim[d].count;
    }
    return merged;
}

/* ---------------------------------------------------------------- partitions */
/* An engine reads partitions in groups of 32: more than 64 partitions start at 0, more than 32 at 0 or 64, fewer at
 * 0, 32, 64 or 96. Only tensors with an address are placed by the user; the allocator places the others. Real kernels
 * read single partitions anywhere. */
static enum vtrn_status check_start(struct legal *legal, const struct legal_operand *operand)
{
    int start = operand->tensor->addr_partition + operand->ap->part0;
    int64_t parts = operand->parts;
    int step = parts > 64 ? 128 : parts > 32 ? 64 : 32;

    if ((start & (step - 1)) == 0 || parts <= START_TOLERANT_PARTS) return VTRN_OK;
    return vtrn_fail(legal->err, VTRN_ILLEGAL, "%s: start partition %d with %lld partitions; an access of that many starts at %s",
                     operand->name, start, (long long)parts,
                     step == 128  ? "0"
                     : step == 64 ? "0 or 64"
                                  : "0, 32, 64 or 96");
}

static enum vtrn_status check_partitions(struct legal *legal, const struct legal_operand *operand)
{
    const struct vtrn_ap *ap = operand->ap;
    int64_t stride = ap->dim[0].stride, last;

    if (legal_dyn(ap, VTRN_DYN_VECTOR)) stride = 1;
    LEGAL_FAIL_IF(stride < 0 || stride > legal->prog->arch->partitions, legal, "%s: partition stride %lld is outside 0..%lld",
                  operand->name, (long long)stride, (long long)legal->prog->arch->partitions);
    last = ap->part0 + (operand->parts - 1) * stride;
    LEGAL_FAIL_IF(last >= operand->tensor->partitions, legal, "%s: partitions %d..%lld are outside the tensor's 0..%d",
                  operand->name, ap->part0, (long long)last, operand->tensor->partitions - 1);
    LEGAL_FAIL_IF(operand->parts > legal->prog->arch->partitions, legal, "%s: %lld partitions > %lld; tile it", operand->name,
                  (long long)operand->parts, (long long)legal->prog->arch->partitions);
    if (legal->dma || legal->control) return VTRN_OK;
    LEGAL_FAIL_IF(stride != 1 && operand->parts > 1, legal,
                  "%s: partition stride %lld; compute engines read adjacent partitions (stride 1), use DMA to rearrange",
                  operand->name, (long long)stride);
    return operand->tensor->has_address ? check_start(legal, operand) : VTRN_OK;
}

/* How many elements of a partition an access tells apart: a dimension of stride 0 comes back to the same ones. */
static int64_t count_distinct(const struct vtrn_ap *ap)
{
    int64_t elems = 1;

    for (int d = 1; d < ap->ndim; d++)
        if (ap->dim[d].stride) elems *= ap->dim[d].count;
    return elems;
}

/* What one access of an engine can walk. The limit of PSUM is its size (A2), which a broadcast read does not exceed. */
static enum vtrn_status check_walk(struct legal *legal, const struct legal_operand *operand)
{
    const struct vtrn_arch *arch = legal->prog->arch;
    int64_t limit = arch->access_max_free, elems = operand->elems;

    if (operand->space == VTRN_PSUM && elems <= limit) {
        limit = arch->psum_banks * arch->psum_bank_bytes >> dtype_shift(operand->dtype);
        if (elems > limit) elems = count_distinct(operand->ap);
    }
    LEGAL_FAIL_IF(elems > limit, legal, "%s: %lld elements per partition > %lld (one access of %s); tile it", operand->name,
                  (long long)elems, (long long)limit, vtrn_space_name(operand->space));
    if (operand->ap->ndim <= FREE_DIMS_MAX + 1) return VTRN_OK;
    LEGAL_FAIL_IF(legal_merged_dims(operand->ap) > FREE_DIMS_MAX + 1, legal,
                  "%s: %d free dimensions that are not contiguous > %d (an access pattern of an engine); split the access",
                  operand->name, legal_merged_dims(operand->ap) - 1, FREE_DIMS_MAX);
    return VTRN_OK;
}

/* ---------------------------------------------------------------- dynamic parts */
const struct vtrn_dyn *legal_dyn(const struct vtrn_ap *ap, enum vtrn_dyn_kind kind)
{
    for (int d = 0; d < ap->ndyn; d++)
        if (ap->dyn[d].kind == kind) return &ap->dyn[d];
    return NULL;
}

/* Elements that an index tile must hold: on chip `rows` partitions by columns, in HBM one after the other. */
static enum vtrn_status check_index_extent(struct legal *legal, const struct legal_operand *operand, const struct vtrn_dyn *dyn,
                                           const struct vtrn_tensor *index, int64_t rows)
{
    int64_t size = index->row_bytes / vtrn_dtypes[dyn->dtype].size_bytes, steps, reach;
    bool on_chip = vtrn_space_on_chip(index->space);

    steps = on_chip ? (dyn->count - 1) / rows : dyn->count - 1;
    if (on_chip && dyn->count < rows) rows = dyn->count;
    LEGAL_FAIL_IF(on_chip && dyn->part0 + rows > index->partitions, legal,
                  "%s: index partitions %d..%lld are outside the index tensor's 0..%d", operand->name, dyn->part0,
                  (long long)(dyn->part0 + rows - 1), index->partitions - 1);
    LEGAL_FAIL_IF(dyn->stride < 0 || !vtrn_mul_i64(steps, dyn->stride, &reach) || dyn->offset < 0 || dyn->offset >= size ||
                      reach >= size - dyn->offset,
                  legal, "%s: %lld indices do not fit in the index tensor", operand->name, (long long)dyn->count);
    return VTRN_OK;
}

/* Partitions that share one list of free offsets. */
static int indirect_group(const struct legal *legal) { return legal->inst->engine == VTRN_ENGINE_TENSOR ? 32 : 16; }

static enum vtrn_status check_index_tensor(struct legal *legal, const struct legal_operand *operand, const struct vtrn_dyn *dyn)
{
    const struct vtrn_tensor *index;
    int64_t rows = dyn->kind == VTRN_DYN_INDIRECT ? indirect_group(legal) : 128;
    char names[128];

    LEGAL_FAIL_IF(dyn->ref >= legal->prog->tensors, legal, "%s: the index tensor %u does not exist", operand->name, dyn->ref);
    index = &legal->prog->tensor[dyn->ref];
    LEGAL_FAIL_IF(index->core != legal->core && index->core != VTRN_CORES_MAX, legal, "%s: the index tensor belongs to core %d",
                  operand->name, index->core);
    LEGAL_FAIL_IF(dyn->dtype >= VTRN_DT_COUNT || !(VTRN_DTS_WORD >> dyn->dtype & 1), legal, "%s: index dtype %s, it must be %s",
                  operand->name, dyn->dtype < VTRN_DT_COUNT ? legal_dtype_name(dyn->dtype) : "?",
                  legal_dtype_names(VTRN_DTS_WORD, names, sizeof names));
    LEGAL_FAIL_IF(index->space == VTRN_PSUM && legal->dma, legal, "%s: the index tensor is in PSUM, which DMA cannot read",
                  operand->name);
    if (dyn->kind == VTRN_DYN_SCALAR) {
        LEGAL_FAIL_IF(vtrn_space_on_chip(index->space) && dyn->part0 >= index->partitions, legal,
                      "%s: index partition %d is outside the index tensor's 0..%d", operand->name, dyn->part0, index->partitions - 1);
        LEGAL_FAIL_IF(dyn->offset < 0 || dyn->offset >= index->row_bytes / vtrn_dtypes[dyn->dtype].size_bytes, legal,
                      "%s: the scalar offset lies outside its tensor", operand->name);
        return VTRN_OK;
    }
    LEGAL_FAIL_IF(dyn->count < 1, legal, "%s: no indices", operand->name);
    return check_index_extent(legal, operand, dyn, index, rows);
}

static enum vtrn_status check_vector(struct legal *legal, const struct legal_operand *operand, const struct vtrn_dyn *dyn)
{
    LEGAL_FAIL_IF(!legal->dma, legal, "%s: vector_offset is for DMA; engines gather on chip with local_gather or nc_n_gather",
                  operand->name);
    LEGAL_FAIL_IF(!vtrn_space_is_hbm(operand->space), legal, "%s: vector_offset needs a tensor in HBM, not in %s", operand->name,
                  vtrn_space_name(operand->space));
    LEGAL_FAIL_IF(dyn->count < operand->parts, legal, "%s: %lld indices for %lld rows; give one index per row", operand->name,
                  (long long)dyn->count, (long long)operand->parts);
    return VTRN_OK;
}

/* Operands that may be gathered or scattered through an index tile (nki.isa reference, "Tensor indirection"). */
#define SLOT(opname, field) (1u << LEGAL_INDEX(opname, field))
static unsigned indirect_slots(int op)
{
    switch (op) {
    case VTRN_OP_nc_matmul: return SLOT(nc_matmul, dst) | SLOT(nc_matmul, stationary) | SLOT(nc_matmul, moving);
    case VTRN_OP_nc_matmul_mx:
        return SLOT(nc_matmul_mx, dst) | SLOT(nc_matmul_mx, stationary) | SLOT(nc_matmul_mx, moving) |
               SLOT(nc_matmul_mx, stationary_scale) | SLOT(nc_matmul_mx, moving_scale);
    case VTRN_OP_tensor_copy: return SLOT(tensor_copy, dst) | SLOT(tensor_copy, src);
    case VTRN_OP_tensor_copy_predicated: return SLOT(tensor_copy_predicated, dst) | SLOT(tensor_copy_predicated, predicate);
    case VTRN_OP_tensor_tensor: return SLOT(tensor_tensor, dst) | SLOT(tensor_tensor, data1);
    case VTRN_OP_tensor_scalar: return SLOT(tensor_scalar, dst) | SLOT(tensor_scalar, data);
    case VTRN_OP_activation: return SLOT(activation, dst) | SLOT(activation, data);
    case VTRN_OP_activation_reduce: return SLOT(activation_reduce, dst) | SLOT(activation_reduce, data);
    case VTRN_OP_activate2: return SLOT(activate2, dst) | SLOT(activate2, data);
    case VTRN_OP_exponential: return SLOT(exponential, dst) | SLOT(exponential, src);
    case VTRN_OP_tensor_reduce: return SLOT(tensor_reduce, dst) | SLOT(tensor_reduce, data);
    case VTRN_OP_tensor_scalar_reduce: return SLOT(tensor_scalar_reduce, dst) | SLOT(tensor_scalar_reduce, data);
    case VTRN_OP_tensor_scalar_cumulative: return SLOT(tensor_scalar_cumulative, dst) | SLOT(tensor_scalar_cumulative, src);
    default: return 0;
    }
}

static enum vtrn_status check_indirect(struct legal *legal, const struct vtrn_operand_info *info,
                                       const struct legal_operand *operand, const struct vtrn_dyn *dyn)
{
    size_t slot = (size_t)(info - legal->info->operand);
    const struct vtrn_tensor *index = &legal->prog->tensor[dyn->ref];
    bool copies_on_gpsimd = legal->inst->op == VTRN_OP_tensor_copy && legal->inst->engine == VTRN_ENGINE_GPSIMD;
    int group = indirect_group(legal);

    LEGAL_FAIL_IF(legal->version < 4, legal, "%s: tensor indirection needs NeuronCore v4 (trn3); %s is v%d", info->name,
                  legal->prog->arch->chip, legal->version);
    LEGAL_FAIL_IF(!(indirect_slots(legal->inst->op) >> slot & 1), legal, "%s cannot be an indirect view here", info->name);
    LEGAL_FAIL_IF(copies_on_gpsimd, legal, "%s: an indirect tensor_copy runs on the vector or the scalar engine", info->name);
    LEGAL_FAIL_IF(legal->inst->engine == VTRN_ENGINE_SCALAR && info->access & VTRN_WRITE && operand->space == VTRN_PSUM, legal,
                  "%s: the scalar engine cannot scatter into PSUM", info->name);
    LEGAL_FAIL_IF(index->space != VTRN_SBUF, legal, "%s: the index tile must be in SBUF", info->name);
    LEGAL_FAIL_IF(index->has_address && (index->addr_partition + dyn->part0) % 32 != 0, legal,
                  "%s: the index tile starts at partition %d; it must start at a multiple of 32", info->name,
                  index->addr_partition + dyn->part0);
    LEGAL_FAIL_IF(operand->elems > dyn->count, legal, "%s: %lld elements per partition, its index tile gives %lld", info->name,
                  (long long)operand->elems, (long long)dyn->count);
    LEGAL_FAIL_IF(dyn->part0 + (operand->parts - 1) / group * group + (dyn->count < group ? dyn->count : group) > index->partitions,
                  legal, "%s: %lld partitions need an index for each group of %d, the index tile has %d partitions", info->name,
                  (long long)operand->parts, group, index->partitions);
    LEGAL_FAIL_IF(!(info->access & VTRN_WRITE) && index->has_address && operand->tensor->has_address &&
                      index->addr_partition + dyn->part0 != operand->tensor->addr_partition + operand->ap->part0,
                  legal, "%s starts at partition %d and its index at %d; they must start together", info->name,
                  operand->tensor->addr_partition + operand->ap->part0, index->addr_partition + dyn->part0);
    return VTRN_OK;
}

static enum vtrn_status check_dyns(struct legal *legal, const struct vtrn_operand_info *info, const struct legal_operand *operand)
{
    unsigned seen = 0;

    for (int d = 0; d < operand->ap->ndyn; d++) {
        const struct vtrn_dyn *dyn = &operand->ap->dyn[d];

        LEGAL_FAIL_IF(dyn->kind < VTRN_DYN_REG || dyn->kind > VTRN_DYN_INDIRECT, legal, "%s: no such dynamic part (%d)", info->name,
                      dyn->kind);
        if (dyn->kind == VTRN_DYN_REG) {
            LEGAL_FAIL_IF(dyn->ref >= VTRN_REGISTERS_MAX, legal, "%s: register %u is outside 0..%d", info->name, dyn->ref,
                          VTRN_REGISTERS_MAX - 1);
            continue;
        }
        VTRN_TRY(check_index_tensor(legal, operand, dyn));
        LEGAL_FAIL_IF(dyn->kind != VTRN_DYN_SCALAR && seen >> dyn->kind & 1, legal, "%s: two index vectors", info->name);
        seen |= 1u << dyn->kind;
        if (dyn->kind == VTRN_DYN_VECTOR) VTRN_TRY(check_vector(legal, operand, dyn));
        if (dyn->kind == VTRN_DYN_INDIRECT) VTRN_TRY(check_indirect(legal, info, operand, dyn));
    }
    return VTRN_OK;
}

/* ---------------------------------------------------------------- the operand */
enum vtrn_status legal_access(struct legal *legal, const struct vtrn_operand_info *info, const struct vtrn_ap *ap,
                              struct legal_operand *operand)
{
    const struct vtrn_tensor *tensor;
    unsigned spaces = info->spaces ? info->spaces : VTRN_IN_SP;
    bool on_chip;

    LEGAL_FAIL_IF(ap->tensor >= legal->prog->tensors, legal, "%s: tensor %u does not exist", info->name, ap->tensor);
    tensor = &legal->prog->tensor[ap->tensor];
    operand->name = info->name;
    operand->ap = ap;
    operand->tensor = tensor;
    operand->space = tensor->space;
    operand->dtype = ap->dtype;
    on_chip = vtrn_space_on_chip(tensor->space);
    LEGAL_FAIL_IF(tensor->core != legal->core && tensor->core != VTRN_CORES_MAX, legal,
                  "%s is a tensor of core %d; core %d sees only its own and shared_hbm; use sendrecv", info->name, tensor->core,
                  legal->core);
    if (VTRN_UNLIKELY(!(spaces >> tensor->space & 1))) return wrong_space(legal, info, tensor->space, (int)spaces);
    LEGAL_FAIL_IF(legal->inst->engine == VTRN_ENGINE_GPSIMD && tensor->space == VTRN_PSUM && !legal->control, legal,
                  "%s is in PSUM, which GpSimd cannot access; use the vector or scalar engine, or copy it to SBUF", info->name);
    VTRN_TRY(check_dtype(legal, info, ap->dtype));
    VTRN_TRY(check_dims(legal, info, ap, on_chip));
    VTRN_TRY(check_extent(legal, ap, operand, tensor->row_bytes >> dtype_shift(ap->dtype)));
    LEGAL_FAIL_IF(!on_chip && ap->part0 != 0, legal, "%s: HBM has no partitions", info->name);
    if (on_chip) VTRN_TRY(check_partitions(legal, operand));
    if (on_chip && !legal->dma && !legal->control) VTRN_TRY(check_walk(legal, operand));
    return ap->ndyn ? check_dyns(legal, info, operand) : VTRN_OK;
}
