/* Copies that convert, and the staging of copies whose two sides share bytes.
 *
 * The rule of DMA: equal dtypes move bytes; everything else, integers too, goes through fp32 (source to fp32, fp32 to
 * destination with the rounding of kern->store). Source: nki.isa.dma_copy, "Data types" (Neuron SDK 2.32). The engines'
 * integers go to narrower ones exactly, saturated (exec_convert_ints).
 *
 * Knows walks and dtypes, no instructions. */
#include "exec/walk_int.h"

enum { LONG_RUN = 256 }; /* elements: shorter runs are gathered first, to convert many at a time */

bool exec_is_integer(uint8_t dtype)
{
    uint8_t cls = vtrn_dtypes[dtype].cls;
    return cls == VTRN_CLASS_INT || cls == VTRN_CLASS_UINT || cls == VTRN_CLASS_BOOL;
}

int64_t exec_int_load(uint8_t dtype, const void *element)
{
    union {
        uint8_t u8;
        int8_t i8;
        uint16_t u16;
        int16_t i16;
        uint32_t u32;
        int32_t i32;
    } v;
    memcpy(&v, element, vtrn_dtypes[dtype].size_bytes);
    switch (dtype) {
    case VTRN_DT_I8: return v.i8;
    case VTRN_DT_I16: return v.i16;
    case VTRN_DT_I32: return v.i32;
    case VTRN_DT_U16: return v.u16;
    case VTRN_DT_U32: return v.u32;
    case VTRN_DT_BOOL: return v.u8 != 0;
    default: VTRN_ASSERT(dtype == VTRN_DT_U8); return v.u8;
    }
}

void exec_int_store(uint8_t dtype, void *element, int64_t value)
{
    uint8_t u8 = (uint8_t)value;
    uint16_t u16 = (uint16_t)value;
    uint32_t u32 = (uint32_t)value;
    switch (vtrn_dtypes[dtype].size_bytes) {
    case 1: memcpy(element, &u8, 1); break;
    case 2: memcpy(element, &u16, 2); break;
    default: memcpy(element, &u32, 4); break;
    }
}

int64_t exec_int_clamp(uint8_t dtype, int64_t value)
{
    int bits = 8 * vtrn_dtypes[dtype].size_bytes;
    if (dtype == VTRN_DT_BOOL) return value != 0;
    bool is_signed = vtrn_dtypes[dtype].cls == VTRN_CLASS_INT;
    int64_t high = (INT64_C(1) << (is_signed ? bits - 1 : bits)) - 1, low = is_signed ? -high - 1 : 0;
    return value < low ? low : value > high ? high : value;
}

/* Integers of any dtype as int64, and int64 to any dtype with saturation: loops the compiler vectorises. */
#define WIDEN(TYPE) \
    for (int64_t i = 0; i < n; i++) { \
        TYPE v; \
        memcpy(&v, (const uint8_t *)src + (size_t)i * sizeof v, sizeof v); \
        out[i] = v; \
    } \
    break
static void widen(int64_t *out, uint8_t dtype, const void *src, int64_t n)
{
    switch (dtype) {
    case VTRN_DT_I8: WIDEN(int8_t);
    case VTRN_DT_I16: WIDEN(int16_t);
    case VTRN_DT_I32: WIDEN(int32_t);
    case VTRN_DT_U16: WIDEN(uint16_t);
    case VTRN_DT_U32: WIDEN(uint32_t);
    case VTRN_DT_BOOL:
        for (int64_t i = 0; i < n; i++) out[i] = ((const uint8_t *)src)[i] != 0;
        break;
    default: VTRN_ASSERT(dtype == VTRN_DT_U8); WIDEN(uint8_t);
    }
}

#define NARROW(TYPE) \
    for (int64_t i = 0; i < n; i++) { \
        TYPE v = (TYPE)(in[i] < low ? low : in[i] > high ? high : in[i]); \
        memcpy((uint8_t *)dst + (size_t)i * sizeof v, &v, sizeof v); \
    } \
    break
static void narrow(uint8_t dtype, void *dst, const int64_t *in, int64_t n)
{
    int64_t low = exec_int_clamp(dtype, INT64_MIN), high = exec_int_clamp(dtype, INT64_MAX);
    if (dtype == VTRN_DT_BOOL) {
        for (int64_t i = 0; i < n; i++) ((uint8_t *)dst)[i] = in[i] != 0;
        return;
    }
    switch (vtrn_dtypes[dtype].size_bytes) {
    case 1: NARROW(uint8_t);
    case 2: NARROW(uint16_t);
    default: NARROW(uint32_t);
    }
}

void exec_convert(const struct vtrn_kern *kern, uint8_t dst_dtype, void *dst, uint8_t src_dtype, const void *src, int64_t n)
{
    VTRN_ASSERT(n <= WALK_CHUNK);
    if (dst_dtype == src_dtype) {
        memmove(dst, src, (size_t)n * vtrn_dtypes[dst_dtype].size_bytes);
    } else if (dst_dtype == VTRN_DT_F32) {
        kern->load[src_dtype](dst, src, (size_t)n);
    } else if (src_dtype == VTRN_DT_F32) {
        kern->store[dst_dtype](dst, src, (size_t)n);
    } else {
        float values[WALK_CHUNK];
        kern->load[src_dtype](values, src, (size_t)n);
        kern->store[dst_dtype](dst, values, (size_t)n);
    }
}

void exec_convert_ints(uint8_t dst_dtype, void *dst, uint8_t src_dtype, const void *src, int64_t n)
{
    int64_t values[WALK_CHUNK];

    VTRN_ASSERT(n <= WALK_CHUNK);
    widen(values, src_dtype, src, n);
    narrow(dst_dtype, dst, values, n);
}

/* ---- ranges of elements ---- */
struct conversion {
    const struct vtrn_kern *kern;
    const struct exec_walk *dst, *src;
};

/* Elements up to the end of both rows that e lies in, `n` at most. */
static int64_t within_rows(const struct conversion *conversion, int64_t e, int64_t n)
{
    const struct exec_walk *walk[2] = { conversion->dst, conversion->src };
    for (int k = 0; k < 2; k++) {
        int64_t left = walk[k]->row_elems - e % walk[k]->row_elems;
        if (walk[k]->row_offset && left < n) n = left;
    }
    return n;
}

static void convert_range(const struct conversion *conversion, int64_t e, int64_t end)
{
    const struct exec_walk *dst = conversion->dst, *src = conversion->src;
    _Alignas(64) uint32_t in[WALK_CHUNK], out[WALK_CHUNK];
    while (e < end) {
        int64_t n = within_rows(conversion, e, end - e < WALK_CHUNK ? end - e : WALK_CHUNK);
        int64_t dst_run = exec_walk_run(dst, e), src_run = exec_walk_run(src, e);
        int64_t run = dst_run < src_run ? dst_run : src_run;
        if (run >= LONG_RUN && run < n) n = run; /* straight from memory to memory */
        uint8_t *at = exec_walk_at(dst, e);
        if (at && exec_walk_at(src, e)) {
            bool direct = dst_run >= n;
            exec_convert(conversion->kern, dst->dtype, direct ? (void *)at : out, src->dtype, exec_walk_read(src, e, n, in), n);
            if (!direct) exec_walk_write(dst, e, n, out);
        }
        e += n;
    }
}

static void convert_part(void *arg, int part, int parts)
{
    const struct conversion *conversion = arg;
    int64_t chunks = (conversion->src->elems + WALK_CHUNK - 1) / WALK_CHUNK;
    int64_t from = chunks * part / parts * WALK_CHUNK, to = chunks * (part + 1) / parts * WALK_CHUNK;
    convert_range(conversion, from, to < conversion->src->elems ? to : conversion->src->elems);
}

static void convert_walk(struct vtrn_core *core, const struct exec_walk *dst, const struct exec_walk *src)
{
    struct conversion conversion = { core->kern, dst, src };
    int parts = vtrn_pool_threads(core->options.pool);
    if (src->elems < 64 * WALK_CHUNK || !exec_walk_injective(dst)) parts = 1;
    if (parts == 1) convert_part(&conversion, 0, 1);
    else vtrn_pool_run(core->options.pool, parts, convert_part, &conversion);
}

/* ---- copies whose sides share bytes: src is packed first, so that it is read before any of it is written ---- */
static void copy_walk(struct vtrn_core *core, const struct exec_walk *dst, const struct exec_walk *src)
{
    if (dst->dtype == src->dtype) exec_copy_raw(core, dst, src);
    else convert_walk(core, dst, src);
}

/* The packed copy keeps the rows of src apart where some do not take part: those must not be written. */
static enum vtrn_status keep_rows(struct vtrn_core *core, const struct exec_walk *src, struct exec_walk *packed)
{
    int64_t *start = exec_index_space(core, src->rows);
    VTRN_FAIL_IF(!start, &core->err, VTRN_NOMEM, "no memory for %lld row offsets", (long long)src->rows);
    for (int64_t row = 0; row < src->rows; row++)
        start[row] = src->row_offset[row] < 0 ? -1 : row * src->row_elems * src->elem_bytes;
    exec_walk_packed(packed, packed->base, src->row_elems, src->dtype, src->elem_bytes);
    packed->row_offset = start;
    packed->rows = src->rows;
    packed->elems = src->elems;
    return VTRN_OK;
}

static enum vtrn_status copy_staged(struct vtrn_core *core, const struct exec_walk *dst, const struct exec_walk *src)
{
    struct exec_walk packed;
    enum vtrn_status status = VTRN_OK;
    void *bytes = exec_walk_alloc(core, src, &packed);
    if (!bytes) return VTRN_NOMEM;
    exec_copy_raw(core, &packed, src);
    if (src->row_offset) status = keep_rows(core, src, &packed);
    if (status == VTRN_OK) copy_walk(core, dst, &packed);
    vtrn_free_aligned(bytes);
    return status;
}

enum vtrn_status exec_copy(struct vtrn_core *core, const struct exec_walk *dst, const struct exec_walk *src)
{
    if (src->elems == 0) return VTRN_OK;
    if (dst->dtype == src->dtype && exec_walk_same(dst, src)) return VTRN_OK;
    if (exec_walk_overlap(dst, src)) return copy_staged(core, dst, src);
    copy_walk(core, dst, src);
    return VTRN_OK;
}
