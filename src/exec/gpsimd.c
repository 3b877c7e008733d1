/* GpSimd: the patterns that iota and affine_select compute from positions.
 *
 * Both evaluate offset + p*channel_multiplier + w*sw + z*sz + y*sy + x*sx in 32-bit integers, p the partition counted
 * from the operand's first. affine_select does not visit elements one by one where it need not: along the innermost pattern
 * dim the value is linear, so the elements that fail the comparison are at most two stretches.
 * Scans and searches of GpSimd are in gpsimd_scan.c, gathers in gather.c. */
#include "exec/walk_int.h"

enum { PATTERN_DIMS = 5, BLOCK = 1024 };

struct pattern {
    int ndim; /* at least 1 */
    int64_t step[PATTERN_DIMS], count[PATTERN_DIMS];
    int32_t offset, channel;
};

static int32_t wrap(int64_t value) { return (int32_t)(uint32_t)(uint64_t)value; }

/* Reads [step, count] pairs; checks that they make `elems` elements. */
static enum vtrn_status read_pattern(struct vtrn_core *core, const struct vtrn_value *pairs, const struct vtrn_value *offset,
                                     const struct vtrn_value *channel, int64_t elems, struct pattern *out)
{
    int64_t total = 1;
    out->ndim = 0;
    for (int k = 0; k + 1 < pairs->count && out->ndim < PATTERN_DIMS; k += 2) {
        out->step[out->ndim] = pairs->ints[k];
        out->count[out->ndim++] = pairs->ints[k + 1];
        if (!vtrn_mul_i64(total, pairs->ints[k + 1], &total)) total = 0;
    }
    if (out->ndim == 0) {
        out->step[0] = 0;
        out->count[out->ndim++] = 1;
    }
    out->offset = wrap(exec_reg_value(core, offset));
    out->channel = wrap(channel->i);
    if (total == elems && total > 0) return VTRN_OK;
    return exec_fault(core, VTRN_FAULT_VALUE, "operand pattern: its counts make %lld elements a partition, dst has %lld",
                      (long long)total, (long long)elems);
}

/* A position in the pattern of one partition. */
struct place {
    int64_t index[PATTERN_DIMS];
    int64_t base; /* value at index[last] = 0 */
};

static void place_at(const struct pattern *pattern, int64_t p, int64_t i, struct place *place)
{
    place->base = (int64_t)pattern->offset + p * pattern->channel;
    for (int d = pattern->ndim - 1; d >= 0; d--) {
        place->index[d] = i % pattern->count[d];
        i /= pattern->count[d];
        if (d < pattern->ndim - 1) place->base += place->index[d] * pattern->step[d];
    }
}

/* To the start of the next innermost run. */
static void next_run(const struct pattern *pattern, struct place *place)
{
    place->index[pattern->ndim - 1] = 0;
    for (int d = pattern->ndim - 2; d >= 0; d--) {
        place->base += pattern->step[d];
        if (++place->index[d] < pattern->count[d]) return;
        place->base -= pattern->count[d] * pattern->step[d];
        place->index[d] = 0;
    }
}

/* ---- iota ---- */
struct iota {
    struct pattern pattern;
    struct exec_view dst;
};

static void iota_values(const struct pattern *pattern, int64_t p, int64_t i, int64_t n, int32_t *out)
{
    int last = pattern->ndim - 1;
    struct place place;
    place_at(pattern, p, i, &place);
    while (n > 0) {
        int64_t x = place.index[last], run = pattern->count[last] - x;
        if (run > n) run = n;
        uint32_t value = (uint32_t)(uint64_t)(place.base + x * pattern->step[last]);
        uint32_t step = (uint32_t)(uint64_t)pattern->step[last];
        for (int64_t k = 0; k < run; k++, value += step) out[k] = (int32_t)value;
        out += run;
        n -= run;
        next_run(pattern, &place);
    }
}

static void iota_rows(const struct exec_rows *rows, int64_t p0, int64_t p1, uint8_t *scratch)
{
    const struct iota *iota = rows->data;
    const struct exec_view *dst = &iota->dst;
    struct vtrn_core *core = rows->core;
    int32_t value[BLOCK];
    uint16_t narrow[BLOCK];
    float real[BLOCK];
    (void)scratch;
    for (int64_t p = p0; p < p1; p++)
        for (int64_t i = 0; i < dst->elems; i += BLOCK) {
            int64_t n = dst->elems - i < BLOCK ? dst->elems - i : BLOCK;
            iota_values(&iota->pattern, p, i, n, value);
            if (dst->dtype == VTRN_DT_I32 || dst->dtype == VTRN_DT_U32) {
                exec_store_raw(dst, p, 1, i, n, value);
            } else if (exec_is_integer(dst->dtype)) {
                exec_convert_ints(dst->dtype, narrow, VTRN_DT_I32, value, n);
                exec_store_raw(dst, p, 1, i, n, narrow);
            } else {
                for (int64_t k = 0; k < n; k++) real[k] = (float)value[k];
                exec_store_f32(core, dst, p, 1, i, n, real);
            }
        }
}

/* Does: dst[p, w, z, y, x] = offset + p*channel_multiplier + w*step_w + z*step_z + y*step_y + x*step_x, p counted from the
 *   operand's first partition; pattern lists [step, count] from the outermost dimension in, and only the linear order of
 *   elements matters, not dst's own shape.
 * Rounding: 32-bit integer arithmetic, wraps around; then to the dtype of dst: 32-bit integers keep the bits, narrower
 *   ones saturate, floats round to nearest even.
 * Faults: VALUE when the pattern's count differs from dst's elements.
 * Differs: none known. */
enum vtrn_status vtrn_exec_iota(struct vtrn_core *core, const struct vtrn_inst *inst)
{
    const struct vtrn_args_iota *arg = VTRN_ARGS(iota, inst);
    struct iota iota;
    VTRN_TRY(exec_resolve(core, &arg->dst.ap, VTRN_WRITE, &iota.dst));
    VTRN_TRY(read_pattern(core, &arg->pattern, &arg->offset, &arg->channel_multiplier, iota.dst.elems, &iota.pattern));
    exec_for_partitions(core, iota.dst.parts, iota.dst.elems, iota_rows, &iota);
    return VTRN_OK;
}

/* ---- affine_select ---- */
struct select {
    struct pattern pattern;
    struct exec_view dst, on_true;
    int cmp;
    float on_false;
    uint32_t false_bits; /* on_false in dst's dtype */
};

static bool compare(int cmp, int32_t value)
{
    switch (cmp) {
    case VTRN_CMP_EQUAL: return value == 0;
    case VTRN_CMP_NOT_EQUAL: return value != 0;
    case VTRN_CMP_GREATER_EQUAL: return value >= 0;
    case VTRN_CMP_GREATER: return value > 0;
    case VTRN_CMP_LESS_EQUAL: return value <= 0;
    default: return value < 0;
    }
}

static int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }
static int64_t clamp(int64_t value, int64_t low, int64_t high) { return value < low ? low : value > high ? high : value; }

/* Where value + x*step >= least, x in [0, n). */
static void at_least(int64_t value, int64_t step, int64_t n, int64_t least, int64_t *from, int64_t *to)
{
    if (step == 0) {
        *from = 0;
        *to = value >= least ? n : 0;
    } else if (step > 0) { /* x >= ceil((least - value) / step) */
        *from = clamp(-floor_div(value - least, step), 0, n);
        *to = n;
    } else { /* x <= floor((value - least) / -step) */
        *from = 0;
        *to = clamp(floor_div(value - least, -step) + 1, 0, n);
    }
}

/* The stretch of [0, n) where the comparison holds, or (*inside false) where it does not. */
static void stretch(int cmp, int64_t value, int64_t step, int64_t n, int64_t *from, int64_t *to, bool *inside)
{
    *inside = cmp == VTRN_CMP_GREATER_EQUAL || cmp == VTRN_CMP_GREATER || cmp == VTRN_CMP_EQUAL;
    if (cmp == VTRN_CMP_GREATER_EQUAL || cmp == VTRN_CMP_LESS) {
        at_least(value, step, n, 0, from, to);
    } else if (cmp == VTRN_CMP_GREATER || cmp == VTRN_CMP_LESS_EQUAL) {
        at_least(value, step, n, 1, from, to);
    } else if (step == 0) {
        *from = 0;
        *to = value == 0 ? n : 0;
    } else {
        int64_t x = -value / step;
        bool hits = value % step == 0 && x >= 0 && x < n;
        *from = hits ? x : 0;
        *to = hits ? x + 1 : 0;
    }
}

static void fill_false(uint8_t *out, int64_t from, int64_t to, int bytes, uint32_t bits)
{
    uint16_t half = (uint16_t)bits;
    switch (bytes) {
    case 1: memset(out + from, (int)(bits & 255), (size_t)(to - from)); break;
    case 2:
        for (int64_t k = from; k < to; k++) memcpy(out + 2 * k, &half, 2);
        break;
    default:
        for (int64_t k = from; k < to; k++) memcpy(out + 4 * k, &bits, 4);
    }
}

/* Puts on_false into elements [i, i+n) of partition p where the comparison fails; `out` holds them packed. */
static void mask(const struct select *select, int64_t p, int64_t i, int64_t n, uint8_t *out, int bytes, uint32_t bits)
{
    const struct pattern *pattern = &select->pattern;
    int last = pattern->ndim - 1;
    struct place place;
    place_at(pattern, p, i, &place);
    while (n > 0) {
        int64_t x = place.index[last], run = pattern->count[last] - x, from, to, step = pattern->step[last];
        if (run > n) run = n;
        int64_t value = wrap(place.base + x * step), end = value + (run - 1) * step;
        if (end == wrap(end)) {
            bool inside;
            stretch(select->cmp, value, step, run, &from, &to, &inside);
            fill_false(out, inside ? 0 : from, inside ? from : to, bytes, bits);
            if (inside) fill_false(out, to, run, bytes, bits);
        } else { /* wraps around on the way */
            for (int64_t k = 0; k < run; k++)
                if (!compare(select->cmp, wrap(value + k * step))) fill_false(out, k, k + 1, bytes, bits);
        }
        out += run * bytes;
        n -= run;
        next_run(pattern, &place);
    }
}

static void select_rows(const struct exec_rows *rows, int64_t p0, int64_t p1, uint8_t *scratch)
{
    const struct select *select = rows->data;
    const struct exec_view *dst = &select->dst;
    bool same = dst->dtype == select->on_true.dtype;
    _Alignas(64) uint32_t block[BLOCK];
    float value[BLOCK];
    uint32_t false_f32;
    (void)scratch;
    memcpy(&false_f32, &select->on_false, sizeof false_f32);
    for (int64_t p = p0; p < p1; p++)
        for (int64_t i = 0; i < dst->elems; i += BLOCK) {
            int64_t n = dst->elems - i < BLOCK ? dst->elems - i : BLOCK;
            if (!same) {
                const float *from = exec_load_f32(rows->core, &select->on_true, p, 1, i, n, value);
                if (from != value) memcpy(value, from, (size_t)n * sizeof *value);
                mask(select, p, i, n, (uint8_t *)value, 4, false_f32);
                exec_store_f32(rows->core, dst, p, 1, i, n, value);
                continue;
            }
            const void *from = exec_load_raw(&select->on_true, p, 1, i, n, block);
            uint8_t *out = dst->contiguous ? exec_elem(dst, p, i) : (uint8_t *)block;
            if (from != out) memmove(out, from, (size_t)n * dst->elem_bytes);
            mask(select, p, i, n, out, dst->elem_bytes, select->false_bits);
            if (!dst->contiguous) exec_store_raw(dst, p, 1, i, n, block);
        }
}

/* Does: dst = on_true_tile where cmp_op(a, 0) holds and on_false_value elsewhere, with a = offset + p*channel_multiplier +
 *   the pattern's value as in iota. dst may be on_true_tile itself.
 * Rounding: a is computed in 32-bit integers, wraps around. With equal dtypes the selected elements keep their bits, else
 *   they go through fp32; on_false_value is rounded from fp32 to the dtype of dst.
 * Faults: VALUE when the pattern's count differs from dst's elements.
 * Differs: none known. */
enum vtrn_status vtrn_exec_affine_select(struct vtrn_core *core, const struct vtrn_inst *inst)
{
    const struct vtrn_args_affine_select *arg = VTRN_ARGS(affine_select, inst);
    struct select select = { .cmp = (int)arg->cmp_op.i, .on_false = (float)arg->on_false_value.num };
    VTRN_TRY(exec_resolve(core, &arg->on_true_tile.ap, VTRN_READ, &select.on_true));
    VTRN_TRY(exec_resolve(core, &arg->dst.ap, VTRN_WRITE, &select.dst));
    VTRN_TRY(read_pattern(core, &arg->pattern, &arg->offset, &arg->channel_multiplier, select.dst.elems, &select.pattern));
    VTRN_TRY(exec_stage(core, &select.dst, &select.on_true));
    vtrn_from_f32(select.dst.dtype, select.on_false, &select.false_bits);
    exec_for_partitions(core, select.dst.parts, select.dst.elems, select_rows, &select);
    return VTRN_OK;
}
