/* isa: the wire form. What an encoder writes comes back the same; a decoder survives anything else. */
#include "unit.h"

#include <math.h>

#include "gen.h"

enum { ROUNDS = 100000 };

/* A stream in a block of exactly its size, so that a sanitizer sees a read beyond it. */
static uint32_t *exact_copy(const void *words, size_t size_words)
{
    uint32_t *copy = malloc(size_words ? size_words * sizeof *copy : 1);

    assert_non_null(copy);
    if (size_words) memcpy(copy, words, size_words * sizeof *copy);
    return copy;
}

static void what_is_encoded_comes_back(void **state)
{
    static struct vtrn_inst inst, back;
    struct gen gen = gen_seeded(1);
    struct vtrn_buf buf = { 0 };
    struct vtrn_error err = { 0 };
    const char *operand;
    size_t length;
    int seen[VTRN_OPCODES] = { 0 };

    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        buf.size = 0;
        gen_inst(&gen, &inst, VTRN_OP_NONE);
        seen[inst.op]++;
        if (vtrn_inst_encode(&inst, &buf, &err) < 0) fail_msg("round %d: %s", round, err.text);
        assert_int_equal(buf.size % 4, 0);
        assert_int_equal(vtrn_inst_length((uint32_t *)(void *)buf.data, buf.size / 4), buf.size / 4);
        memset(&back, 0xee, 64); /* decode needs no init */
        if (vtrn_inst_decode((uint32_t *)(void *)buf.data, buf.size / 4, &back, &length, &err) < 0)
            fail_msg("round %d: %s", round, err.text);
        assert_int_equal(length, buf.size / 4);
        if (!gen_inst_equal(&inst, &back, &operand)) fail_msg("round %d: %s: %s differs", round, vtrn_ops[inst.op].name, operand);
        memset(&back, 0xee, sizeof back);
        vtrn_inst_decode_own((uint32_t *)(void *)buf.data, &back);
        if (!gen_inst_equal(&inst, &back, &operand))
            fail_msg("round %d: %s: %s, unchecked", round, vtrn_ops[inst.op].name, operand);
    }
    for (int op = 1; op < VTRN_OPCODES; op++) assert_true(!vtrn_ops[op].name || seen[op] > 100);
    vtrn_buf_fini(&buf);
}

static void a_stream_is_walked_by_lengths(void **state)
{
    static struct vtrn_inst inst;
    struct gen gen = gen_seeded(2);
    struct vtrn_buf buf = { 0 };
    size_t at = 0, size, length;

    (void)state;
    for (int i = 0; i < 1000; i++) {
        gen_inst(&gen, &inst, VTRN_OP_NONE);
        assert_int_equal(vtrn_inst_encode(&inst, &buf, NULL), VTRN_OK);
    }
    size = buf.size / 4;
    for (int i = 0; i < 1000; i++) {
        const uint32_t *words = (const uint32_t *)(void *)buf.data + at;

        assert_int_equal(vtrn_inst_decode(words, size - at, &inst, &length, NULL), VTRN_OK);
        assert_int_equal(vtrn_inst_length(words, size - at), length);
        at += length;
    }
    assert_int_equal(at, size);
    vtrn_buf_fini(&buf);
}

static void set_tile(struct vtrn_value *value, uint32_t tensor, int64_t parts, int64_t elems, int dtype)
{
    *value = (struct vtrn_value){ .kind = VTRN_V_AP };
    value->ap = (struct vtrn_ap){ .tensor = tensor, .dtype = (uint8_t)dtype, .ndim = 2, .dim = { { 1, parts }, { 1, elems } } };
}

static void a_matmul_is_small(void **state)
{
    static struct vtrn_inst inst;
    struct vtrn_buf buf = { 0 };

    (void)state;
    vtrn_inst_init(&inst, VTRN_OP_nc_matmul);
    inst.engine = VTRN_ENGINE_TENSOR;
    inst.loc = 12;
    set_tile(&inst.arg[0], 3, 128, 512, VTRN_DT_F32);
    set_tile(&inst.arg[1], 1, 128, 128, VTRN_DT_BF16);
    set_tile(&inst.arg[2], 2, 128, 512, VTRN_DT_BF16);
    inst.arg[6].kind = VTRN_V_INT;
    inst.arg[6].i = 1;
    assert_int_equal(vtrn_inst_encode(&inst, &buf, NULL), VTRN_OK);
    assert_int_equal(buf.size, 76); /* docs: head 3 words, 5 words a pattern, 1 the flag */
    vtrn_buf_fini(&buf);
}

static void expect_refused(struct vtrn_inst *inst, enum vtrn_status status, const char *why)
{
    struct vtrn_buf buf = { 0 };
    struct vtrn_error err = { 0 };

    assert_int_equal(vtrn_inst_encode(inst, &buf, &err), status);
    assert_int_equal(buf.size, 0);
    if (!strstr(err.text, why)) fail_msg("\"%s\" does not say \"%s\"", err.text, why);
    vtrn_buf_fini(&buf);
}

static void what_cannot_be_encoded_is_refused(void **state)
{
    static struct vtrn_inst inst;
    struct vtrn_dyn dyn[VTRN_AP_DYNS] = { { .kind = VTRN_DYN_REG }, { .kind = VTRN_DYN_REG }, { .kind = VTRN_DYN_REG } };
    static int64_t ints[200];

    (void)state;
    vtrn_inst_init(&inst, VTRN_OP_nc_matmul);
    for (int i = 0; i < 3; i++) set_tile(&inst.arg[i], 1, 128, 128, VTRN_DT_F32);
    inst.engine = 9;
    expect_refused(&inst, VTRN_INVALID, "engine");
    inst.engine = 1;
    inst.arg[1].ap.ndim = 0;
    expect_refused(&inst, VTRN_INVALID, "stationary");
    inst.arg[1].ap.ndim = 9;
    expect_refused(&inst, VTRN_INVALID, "9 dimensions");
    inst.arg[1].ap.ndim = 2;
    inst.arg[1].ap.dtype = VTRN_DT_COUNT;
    expect_refused(&inst, VTRN_INVALID, "dtype");
    inst.arg[1].ap.dtype = VTRN_DT_F32;
    inst.arg[1].kind = VTRN_V_NUM;
    expect_refused(&inst, VTRN_INVALID, "stationary");
    set_tile(&inst.arg[1], 1, 128, 128, VTRN_DT_F32);
    for (int i = 0; i < 3; i++) {
        inst.arg[i].ap.ndyn = 3;
        inst.arg[i].ap.dyn = dyn;
    }
    expect_refused(&inst, VTRN_LIMIT, "8 dynamic parts"); /* nine */
    inst.arg[2].ap.ndyn = 0;
    dyn[1].kind = 5;
    expect_refused(&inst, VTRN_INVALID, "dynamic part");
    dyn[1] = (struct vtrn_dyn){ .kind = VTRN_DYN_SCALAR };
    expect_refused(&inst, VTRN_INVALID, "dtype 0");
    for (int i = 0; i < 2; i++) inst.arg[i].ap.ndyn = 0;
    inst.arg[7] = (struct vtrn_value){ .kind = VTRN_V_INTS, .count = 3 };
    inst.arg[7].ints = ints;
    expect_refused(&inst, VTRN_LIMIT, "tile_position: 3 integers > 2");

    vtrn_inst_init(&inst, VTRN_OP_memset);
    set_tile(&inst.arg[0], 1, 128, 128, VTRN_DT_F32);
    inst.arg[1] = (struct vtrn_value){ .kind = VTRN_V_NUM, .is_int = 1 };
    inst.arg[1].num = 0.5;
    expect_refused(&inst, VTRN_INVALID, "value");
    inst.arg[1].num = (double)NAN;
    expect_refused(&inst, VTRN_INVALID, "integer");
    inst.op = 0xff;
    expect_refused(&inst, VTRN_INVALID, "0xff");
}

/* Whatever decodes is canonical enough: it encodes, and decodes again to the same. */
static void check_hostile(const uint32_t *words, size_t size_words, int round)
{
    static struct vtrn_inst inst, again;
    uint32_t *copy = exact_copy(words, size_words);
    struct vtrn_buf buf = { 0 };
    struct vtrn_error err = { 0 };
    size_t length = 0;
    enum vtrn_status status = vtrn_inst_decode(copy, size_words, &inst, &length, &err);

    if (status >= 0) {
        assert_in_range(length, 2, size_words);
        vtrn_inst_decode_own(copy, &again); /* what the checks accept needs none */
        assert_true(gen_inst_equal(&inst, &again, NULL));
        if (vtrn_inst_encode(&inst, &buf, &err) < 0) fail_msg("round %d: decoded but not encoded: %s", round, err.text);
        assert_int_equal(vtrn_inst_decode((uint32_t *)(void *)buf.data, buf.size / 4, &again, &length, &err), VTRN_OK);
        assert_true(gen_inst_equal(&inst, &again, NULL));
    } else {
        assert_int_equal(status, VTRN_FORMAT);
        assert_true(err.text[0] != '\0');
    }
    vtrn_buf_fini(&buf);
    free(copy);
}

static void hostile_words_are_refused(void **state)
{
    static struct vtrn_inst inst;
    struct gen gen = gen_seeded(3);
    struct vtrn_buf buf = { 0 };
    uint32_t words[64];

    (void)state;
    for (int round = 0; round < 60000; round++) {
        size_t size, cut;
        int flips = (int)gen_range(&gen, 1, 4);

        buf.size = 0;
        gen_inst(&gen, &inst, VTRN_OP_NONE);
        assert_int_equal(vtrn_inst_encode(&inst, &buf, NULL), VTRN_OK);
        size = buf.size / 4;
        cut = gen_chance(&gen, 20) ? (size_t)gen_range(&gen, 0, (int64_t)size - 1) : size;
        while (flips-- > 0) buf.data[gen_range(&gen, 0, (int64_t)buf.size - 1)] ^= (uint8_t)(1 << gen_range(&gen, 0, 7));
        check_hostile((uint32_t *)(void *)buf.data, cut, round);
    }
    for (int round = 0; round < 40000; round++) {
        size_t size = (size_t)gen_range(&gen, 0, 64);

        for (size_t i = 0; i < size; i++) words[i] = (uint32_t)gen_u64(&gen);
        if (size) words[0] = (words[0] & 0x70ff) | (uint32_t)gen_range(&gen, 0, 6) << 8 | (uint32_t)size << 16;
        if (size > 1) words[1] &= 0x3ff;
        check_hostile(words, size, round);
    }
    vtrn_buf_fini(&buf);
}

/* Every instruction, cut after every word, and every head bit on its own. */
static void cut_instructions_are_refused(void **state)
{
    static struct vtrn_inst inst;
    struct gen gen = gen_seeded(4);
    struct vtrn_buf buf = { 0 };
    struct vtrn_error err = { 0 };
    size_t length;

    (void)state;
    for (int op = 1; op < VTRN_OPCODES; op++) {
        if (!vtrn_ops[op].name) continue;
        buf.size = 0;
        gen_inst(&gen, &inst, (enum vtrn_opcode)op);
        assert_int_equal(vtrn_inst_encode(&inst, &buf, NULL), VTRN_OK);
        for (size_t cut = 0; cut < buf.size / 4; cut++) {
            uint32_t *words = exact_copy(buf.data, cut);

            assert_int_equal(vtrn_inst_decode(words, cut, &inst, &length, &err), VTRN_FORMAT);
            assert_int_equal(vtrn_inst_length(words, cut), 0);
            if (cut >= 2) { /* also when the length claims that all is there */
                words[0] = (words[0] & 0xffff) | (uint32_t)cut << 16;
                assert_int_equal(vtrn_inst_decode(words, cut, &inst, &length, &err), VTRN_FORMAT);
            }
            free(words);
        }
    }
    vtrn_buf_fini(&buf);
    assert_int_equal(vtrn_inst_decode((const uint32_t[]){ 0x000200fe, 0 }, 2, &inst, &length, &err), VTRN_FORMAT);
    assert_non_null(strstr(err.text, "0xfe"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_encoded_comes_back), cmocka_unit_test(a_stream_is_walked_by_lengths),
        cmocka_unit_test(a_matmul_is_small),          cmocka_unit_test(what_cannot_be_encoded_is_refused),
        cmocka_unit_test(hostile_words_are_refused),  cmocka_unit_test(cut_instructions_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
