/* Random numbers of the engines, and the instructions that make and seed them.
 *
 * GpSimd and, from NeuronCore-v4 on, the vector engine run Marsaglia's XORWOW (G. Marsaglia, "Xorshift RNGs", J. Stat.
 * Softw. 8(14), 2003, section 3.1), one generator a partition on GpSimd and four on the vector engine: element i of an
 * instruction comes from generator i % 4, and all four step together, so that the state an instruction leaves does not
 * depend on where in a group of four it ended. A state is six words in the order x, y, z, w, v, d of the paper.
 * Before v4 the vector engine has a linear feedback shift register; its width and taps are not public. Here: 32 bits a
 * partition, Galois form, polynomial x^32 + x^30 + x^26 + x^25 + 1 (maximal length), 32 steps a word.
 * Source of generator kinds and state sizes: Trainium3 architecture guide, "XORWOW-based PRNG"; nki.isa.rand_set_state.
 *
 * Start states follow from the run's seed, so runs repeat. Stochastic rounding does not touch the generators: its words
 * are a hash of where they are used. Knows no operators: dropout (vec.c) draws from here. */
#include "exec/exec_int.h"

enum { LANES = 128, STATE_WORDS = 6, VECTOR_STATES = 4, DRAW = 1024 /* words on the stack */ };
static const uint32_t lfsr_taps = UINT32_C(0xa3000000);

struct exec_rng {
    uint64_t rounding_seed;
    bool xorwow_vector;
    uint32_t gpsimd[LANES][STATE_WORDS];
    uint32_t vector[LANES][VECTOR_STATES][STATE_WORDS]; /* LFSR: [lane][0][0] */
    uint32_t lfsr_jump[4][256];                         /* 32 steps at once: exclusive or of one entry per byte of the state */
};

/* SplitMix64's finaliser (Steele, Lea, Flood, OOPSLA 2014). */
static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}
static const uint64_t golden = UINT64_C(0x9e3779b97f4a7c15);

static uint32_t lfsr_step(uint32_t state) { return state >> 1 ^ (state & 1 ? lfsr_taps : 0); }

static void make_jump(struct exec_rng *rng)
{
    for (int byte = 0; byte < 4; byte++)
        for (uint32_t value = 0; value < 256; value++) {
            uint32_t state = value << 8 * byte;
            for (int step = 0; step < 32; step++) state = lfsr_step(state);
            rng->lfsr_jump[byte][value] = state;
        }
}

/* Draws keep the state in registers: through the pointer every step would wait for memory. */
static void draw_lfsr(const struct exec_rng *rng, uint32_t *state, uint32_t *out, size_t n)
{
    uint32_t s = *state;
    for (size_t i = 0; i < n; i++) {
        s = rng->lfsr_jump[0][s & 255] ^ rng->lfsr_jump[1][s >> 8 & 255] ^ rng->lfsr_jump[2][s >> 16 & 255] ^
            rng->lfsr_jump[3][s >> 24];
        out[i] = s;
    }
    *state = s;
}

/* Every `stride`-th word of out from `first` on, one step each; steps go on to `steps` where out has ended. */
static void draw_xorwow(uint32_t state[STATE_WORDS], uint32_t *out, size_t first, size_t n, size_t stride, size_t steps)
{
    uint32_t x = state[0], y = state[1], z = state[2], w = state[3], v = state[4], d = state[5];
    for (size_t step = 0, i = first; step < steps; step++, i += stride) {
        uint32_t t = x ^ x >> 2;
        x = y;
        y = z;
        z = w;
        w = v;
        v = v ^ v << 4 ^ t ^ t << 1;
        d += 362437;
        if (i < n) out[i] = d + v;
    }
    state[0] = x, state[1] = y, state[2] = z, state[3] = w, state[4] = v, state[5] = d;
}

static void seed_words(uint32_t *words, int count, uint64_t seed)
{
    for (int i = 0; i < count; i++) words[i] = (uint32_t)(mix(seed + (uint64_t)(i + 1) * golden) >> 32);
    if (count == 1 && words[0] == 0) words[0] = 1; /* the one state that a shift register never leaves */
}

/* Every lane of the vector engine from one seed. */
static void seed_vector(struct exec_rng *rng, uint64_t seed)
{
    for (int lane = 0; lane < LANES; lane++) {
        uint64_t lane_seed = mix(seed + (uint64_t)lane * golden);
        if (rng->xorwow_vector) seed_words(rng->vector[lane][0], VECTOR_STATES * STATE_WORDS, lane_seed);
        else seed_words(rng->vector[lane][0], 1, lane_seed);
    }
}

struct exec_rng *exec_rng_create(uint64_t seed, int core, int nc_version)
{
    struct exec_rng *rng = calloc(1, sizeof *rng);
    if (!rng) return NULL;
    uint64_t root = mix(seed + (uint64_t)(core + 1) * golden);
    rng->rounding_seed = mix(root ^ UINT64_C(0x726f756e64)); /* "round", "gpsim", "vecto": three separate streams */
    rng->xorwow_vector = nc_version >= 4;
    make_jump(rng);
    for (int lane = 0; lane < LANES; lane++)
        seed_words(rng->gpsimd[lane], STATE_WORDS, mix(root ^ UINT64_C(0x677073696d)) + (uint64_t)lane * golden);
    seed_vector(rng, root ^ UINT64_C(0x766563746f));
    return rng;
}

void exec_rng_destroy(struct exec_rng *rng) { free(rng); }

void exec_rng_draw(struct vtrn_core *core, int engine, int64_t p, uint32_t *out, size_t n)
{
    struct exec_rng *rng = core->rng;
    VTRN_ASSERT(p >= 0 && p < LANES);
    if (engine == VTRN_ENGINE_GPSIMD) {
        draw_xorwow(rng->gpsimd[p], out, 0, n, 1, n);
    } else if (rng->xorwow_vector) {
        size_t steps = (n + VECTOR_STATES - 1) / VECTOR_STATES;
        for (size_t k = 0; k < VECTOR_STATES; k++) draw_xorwow(rng->vector[p][k], out, k, n, VECTOR_STATES, steps);
    } else {
        draw_lfsr(rng, &rng->vector[p][0][0], out, n);
    }
}

void exec_rng_rounding(const struct vtrn_core *core, int64_t p, int64_t i0, uint32_t *out, size_t n)
{
    uint64_t place = (core->counters.instructions << 7 | (uint64_t)(p & 127)) * golden;
    uint64_t key = mix(core->rng->rounding_seed ^ place);
    for (size_t i = 0; i < n; i++) out[i] = (uint32_t)(mix(key + (uint64_t)(i0 + (int64_t)i) * golden) >> 32);
}

/* Does: writes random bits: each element takes the low bits of the next 32-bit word of its partition's generator, in the
 *   order of the free elements. GpSimd and the v4 vector engine use XORWOW, the v2 and v3 vector engine an LFSR.
 * Rounding: none, bits.
 * Faults: none of its own.
 * Differs: the LFSR of v2 and v3 is not documented; here it is 32 bits wide per partition. The start state without a seed
 *   instruction follows from the run's seed. Lane = partition of the operand, counted from its first. */
enum vtrn_status vtrn_exec_rng(struct vtrn_core *core, const struct vtrn_inst *inst)
{
    const struct vtrn_args_rng *arg = VTRN_ARGS(rng, inst);
    struct exec_view dst;
    uint32_t word[DRAW];
    uint16_t half[DRAW];
    uint8_t byte[DRAW];
    VTRN_TRY(exec_resolve(core, &arg->dst.ap, VTRN_WRITE, &dst));
    for (int64_t p = 0; p < dst.parts; p++)
        for (int64_t i = 0; i < dst.elems; i += DRAW) {
            int64_t n = dst.elems - i < DRAW ? dst.elems - i : DRAW;
            exec_rng_draw(core, inst->engine, p, word, (size_t)n);
            for (int64_t k = 0; k < n; k++) half[k] = (uint16_t)word[k];
            for (int64_t k = 0; k < n; k++) byte[k] = (uint8_t)word[k];
            exec_store_raw(&dst, p, 1, i, n, dst.elem_bytes == 4 ? (void *)word : dst.elem_bytes == 2 ? (void *)half : byte);
        }
    return VTRN_OK;
}

/* Does: seeds the vector engine's generators, all 128 partitions, from one 32-bit value; equal seeds give equal numbers
 *   from rng and dropout on the vector engine afterwards.
 * Rounding: none, bits.
 * Faults: none of its own.
 * Differs: how hardware spreads the seed over the partitions is not documented; here by a hash of seed and partition. */
enum vtrn_status vtrn_exec_set_rng_seed(struct vtrn_core *core, const struct vtrn_inst *inst)
{
    const struct vtrn_args_set_rng_seed *arg = VTRN_ARGS(set_rng_seed, inst);
    struct exec_view src;
    uint32_t seed = 0;
    VTRN_TRY(exec_resolve(core, &arg->src_seeds.ap, VTRN_READ, &src));
    memcpy(&seed, exec_elem(&src, 0, 0), src.elem_bytes);
    seed_vector(core->rng, seed);
    return VTRN_OK;
}

/* The state words of lane p on the instruction's engine. */
static uint32_t *lane_state(struct vtrn_core *core, const struct vtrn_inst *inst, int64_t p, int64_t *words_out)
{
    bool gpsimd = inst->engine == VTRN_ENGINE_GPSIMD;
    *words_out = gpsimd ? STATE_WORDS : VECTOR_STATES * STATE_WORDS;
    return gpsimd ? core->rng->gpsimd[p] : core->rng->vector[p][0];
}

static enum vtrn_status check_state_size(struct vtrn_core *core, const struct vtrn_inst *inst, const char *operand,
                                         const struct exec_view *view)
{
    int64_t words;
    lane_state(core, inst, 0, &words);
    if (inst->engine != VTRN_ENGINE_GPSIMD && !core->rng->xorwow_vector)
        return exec_fault(core, VTRN_FAULT_VALUE,
                          "operand %s: the vector engine has XORWOW states from NeuronCore-v4 on; "
                          "use engine=gpsimd, or set_rng_seed",
                          operand);
    if (view->elems == words && view->parts <= LANES) return VTRN_OK;
    return exec_fault(core, VTRN_FAULT_VALUE, "operand %s: %lld words a partition; the XORWOW state of the %s engine has %lld",
                      operand, (long long)view->elems, vtrn_engine_name(inst->engine), (long long)words);
}

/* Does: sets the XORWOW state of each partition: 6 words (x, y, z, w, v, d) on GpSimd, 24 on the vector engine of v4
 *   (four states one after another). Partitions beyond the operand keep their state.
 * Rounding: none, bits.
 * Faults: VALUE when the operand has another number of words a partition.
 * Differs: the order of the words in hardware is not documented; here that of Marsaglia's paper. Lane = partition of the
 *   operand, counted from its first. */
enum vtrn_status vtrn_exec_rand_set_state(struct vtrn_core *core, const struct vtrn_inst *inst)
{
    const struct vtrn_args_rand_set_state *arg = VTRN_ARGS(rand_set_state, inst);
    struct exec_view src;
    uint32_t word[VECTOR_STATES * STATE_WORDS];
    VTRN_TRY(exec_resolve(core, &arg->src_seeds.ap, VTRN_READ, &src));
    VTRN_TRY(check_state_size(core, inst, "src_seeds", &src));
    for (int64_t p = 0; p < src.parts; p++) {
        int64_t words;
        uint32_t *state = lane_state(core, inst, p, &words);
        memcpy(state, exec_load_raw(&src, p, 1, 0, words, word), (size_t)words * sizeof *state);
    }
    return VTRN_OK;
}

/* Does: writes the XORWOW state of each partition in the form that rand_set_state takes.
 * Rounding: none, bits.
 * Faults: VALUE when the operand has another number of words a partition than the engine's state.
 * Differs: as rand_set_state. */
enum vtrn_status vtrn_exec_rand_get_state(struct vtrn_core *core, const struct vtrn_inst *inst)
{
    const struct vtrn_args_rand_get_state *arg = VTRN_ARGS(rand_get_state, inst);
    struct exec_view dst;
    VTRN_TRY(exec_resolve(core, &arg->dst.ap, VTRN_WRITE, &dst));
    VTRN_TRY(check_state_size(core, inst, "dst", &dst));
    for (int64_t p = 0; p < dst.parts; p++) {
        int64_t words;
        const uint32_t *state = lane_state(core, inst, p, &words);
        exec_store_raw(&dst, p, 1, 0, words, state);
    }
    return VTRN_OK;
}

/* Does: uniform random numbers in [min, max]: min + u * (max - min), u = the high 24 bits of a XORWOW word / 2^24.
 * Rounding: product and sum in fp32, each rounded to nearest even; then to the dtype of dst (nearest even, or stochastic
 *   when the run asks for it).
 * Faults: VALUE when min > max or either is NaN.
 * Differs: how hardware makes u from a word is not documented. */
enum vtrn_status vtrn_exec_rand2(struct vtrn_core *core, const struct vtrn_inst *inst)
{
    const struct vtrn_args_rand2 *arg = VTRN_ARGS(rand2, inst);
    struct exec_view dst;
    float min[LANES], max[LANES], value[DRAW];
    uint32_t word[DRAW];
    VTRN_TRY(exec_resolve(core, &arg->dst.ap, VTRN_WRITE, &dst));
    VTRN_TRY(exec_scalar(core, &arg->min, dst.parts, min));
    VTRN_TRY(exec_scalar(core, &arg->max, dst.parts, max));
    for (int64_t p = 0; p < dst.parts; p++) {
        if (!(min[p] <= max[p]))
            return exec_fault(core, VTRN_FAULT_VALUE, "operands min, max: %g and %g in partition %lld; min must not be above max",
                              (double)min[p], (double)max[p], (long long)p);
        float width = max[p] - min[p];
        for (int64_t i = 0; i < dst.elems; i += DRAW) {
            int64_t n = dst.elems - i < DRAW ? dst.elems - i : DRAW;
            exec_rng_draw(core, VTRN_ENGINE_VECTOR, p, word, (size_t)n);
            for (int64_t k = 0; k < n; k++) {
                value[k] = min[p] + (float)(word[k] >> 8) * 0x1p-24f * width;
                if (value[k] > max[p]) value[k] = max[p]; /* the sum's rounding may step over the end */
            }
            exec_store_f32(core, &dst, p, 1, i, n, value);
        }
    }
    return VTRN_OK;
}
