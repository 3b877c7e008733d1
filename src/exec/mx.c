/* The vector engine's block quantisation to MX formats. */
#include "exec/exec_int.h"

enum { QUADRANT = 32, GROUP_PARTS = 8, GROUP_ELEMS = 4, F32_BIAS = 127, CHUNK = 512 };

/* ---------------------------------------------------------------- quantize_mx */

struct quantize {
    struct exec_view src, dst, scale;
    enum vtrn_dtype element; /* format of one value */
    int exponent_max;        /* of the format: 8 for e4m3fn, 15 for e5m2 */
    float largest;           /* finite value of the format */
    int raise;               /* 1: scales twice as large as exponent_max alone gives (NKI 0.5 and later) */
};

static int biased_exponent(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return (int)(bits >> 23 & 0xff);
}

static float power_of_two(int exponent)
{
    if (exponent < -126) { /* denormal */
        float tiny = 0x1p-126f;
        for (; exponent < -126; exponent++) tiny *= 0.5f;
        return tiny;
    }
    uint32_t bits = (uint32_t)(exponent + F32_BIAS) << 23;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Scale byte of a group whose largest fp32 exponent field is `largest`; an all-zero group has scale 0. */
static int scale_byte(const struct quantize *job, int largest)
{
    int scale = largest - job->exponent_max + job->raise;
    return largest == 0 || scale < 0 ? 0 : scale;
}

/* Scales a block of 8 rows of n elements, groups of 4 columns, in place; one scale byte a group. */
static void scale_block(const struct quantize *job, float (*x)[CHUNK], int64_t n, uint8_t *scale_out)
{
    for (int64_t f = 0; f < n; f += GROUP_ELEMS) {
        int largest = 0;
        for (int p = 0; p < GROUP_PARTS; p++)
            for (int q = 0; q < GROUP_ELEMS; q++) {
                int exponent = biased_exponent(x[p][f + q]);
                if (exponent > largest) largest = exponent;
            }
        int scale = scale_byte(job, largest);
        /* Two factors: 2^(127 - scale) alone may be outside fp32's range. */
        int shift = F32_BIAS - scale, half = shift / 2;
        float first = power_of_two(half), second = power_of_two(shift - half);
        for (int p = 0; p < GROUP_PARTS; p++)
            for (int q = 0; q < GROUP_ELEMS; q++) {
                float value = x[p][f + q] * first * second;
                x[p][f + q] = value > job->largest ? job->largest : value < -job->largest ? -job->largest : value;
            }
        scale_out[f / GROUP_ELEMS] = (uint8_t)scale;
    }
}

static int64_t scale_row(const struct quantize *job, int64_t group)
{
    int64_t p0 = group * GROUP_PARTS;
    if (job->scale.parts * GROUP_PARTS == job->src.parts) return group;
    return p0 / QUADRANT * QUADRANT + p0 % QUADRANT / GROUP_PARTS;
}

static void quantize_rows(const struct exec_rows *rows, int64_t g0, int64_t g1, uint8_t *scratch)
{
    const struct quantize *job = rows->data;
    float x[GROUP_PARTS][CHUNK];
    uint8_t packed[CHUNK], scale[CHUNK / GROUP_ELEMS];
    (void)scratch;
    for (int64_t g = g0; g < g1; g++)
        for (int64_t i = 0; i < job->src.elems; i += CHUNK) {
            int64_t n = job->src.elems - i < CHUNK ? job->src.elems - i : CHUNK;
            for (int p = 0; p < GROUP_PARTS; p++) {
                const float *row = exec_load_f32(rows->core, &job->src, g * GROUP_PARTS + p, 1, i, n, x[p]);
                if (row != x[p]) memcpy(x[p], row, (size_t)n * sizeof(float));
            }
            scale_block(job, x, n, scale);
            for (int p = 0; p < GROUP_PARTS; p++) {
                rows->core->kern->store[job->element](packed, x[p], (size_t)n);
                exec_store_raw(&job->dst, g * GROUP_PARTS + p, 1, i / GROUP_ELEMS, n / GROUP_ELEMS, packed);
            }
            exec_store_raw(&job->scale, scale_row(job, g), 1, i / GROUP_ELEMS, n / GROUP_ELEMS, scale);
        }
}

/* Does: groups of 8 partitions x 4 elements share a scale byte: the largest exponent of the group less the format's largest
 *   (e4m3fn 8, e5m2 15) plus 1 (scales of NKI 0.3 leave the 1 out: option mx_scale_v03). dst packs value / 2^(scale-127),
 *   four to an element. The byte of partitions 8g.. goes to row 32*(p/32) + (p%32)/8 of dst_scale, or to row g when
 *   dst_scale has one row per group; other rows keep what they hold.
 * Rounding: to nearest even, saturating at the format's largest value.
 * Faults: none of its own.
 * Differs: the byte of an all-zero group is 0 here; older references wrap below 0. */
enum vtrn_status vtrn_exec_quantize_mx(struct vtrn_core *core, const struct vtrn_inst *inst)
{
    const struct vtrn_args_quantize_mx *arg = VTRN_ARGS(quantize_mx, inst);
    struct quantize job = { .raise = core->options.mx_scale_v03 ? 0 : 1 };
    VTRN_TRY(exec_resolve(core, &arg->src.ap, VTRN_READ, &job.src));
    VTRN_TRY(exec_resolve(core, &arg->dst.ap, VTRN_WRITE, &job.dst));
    VTRN_TRY(exec_resolve(core, &arg->dst_scale.ap, VTRN_READ | VTRN_WRITE, &job.scale));
    VTRN_TRY(exec_stage_always(core, &job.dst, &job.src));
    bool e5m2 = job.dst.dtype == VTRN_DT_F8E5M2X4; /* the other legal dst is e4m3fn */
    job.element = e5m2 ? VTRN_DT_F8E5M2 : VTRN_DT_F8E4M3FN;
    job.exponent_max = e5m2 ? 15 : 8;
    job.largest = e5m2 ? 57344.0f : 448.0f;
    exec_for_partitions(core, job.src.parts / GROUP_PARTS, job.src.elems * GROUP_PARTS * 4, quantize_rows, &job);
    return VTRN_OK;
}
