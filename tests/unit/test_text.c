/* isa: the text form. print -> parse -> print is the identity; wrong text is refused with a column. */
#include "unit.h"

#include "gen.h"

enum { ROUNDS = 100000 };

/* A small program's tables: names that need quotes, an unnamed tensor, HBM tensors, strings that need escapes. */
static const char *const tensor_names[] = { "acc", "w.0", "_x", NULL, "a b", "quote\"d\\", "line\nbreak", "3d", "out", "caf\xc3\xa9" };
static const char *const strings[] = { "", "mm", "say \"hi\"\n", "tab\tand \\", "caf\xc3\xa9", "\x01\x7f" };
enum { TENSOR_NAMES = sizeof tensor_names / sizeof tensor_names[0], STRINGS = sizeof strings / sizeof strings[0] };

static const char *tensor_name(const void *self, uint32_t tensor)
{
    (void)self;
    return tensor < TENSOR_NAMES ? tensor_names[tensor] : NULL;
}
static bool tensor_index(const void *self, const char *name, size_t length, uint32_t *tensor_out)
{
    (void)self;
    for (uint32_t i = 0; i < TENSOR_NAMES; i++) {
        if (!tensor_names[i] || strlen(tensor_names[i]) != length || memcmp(tensor_names[i], name, length) != 0) continue;
        *tensor_out = i;
        return true;
    }
    return false;
}
static int tensor_space(const void *self, uint32_t tensor)
{
    (void)self;
    return tensor % 3 == 2 ? VTRN_HBM : tensor % 3 == 1 ? VTRN_PSUM : VTRN_SBUF;
}
static int tensor_dtype(const void *self, uint32_t tensor)
{
    (void)self;
    return (int)(tensor % (VTRN_DT_COUNT - 1)) + 1;
}
static const char *string(const void *self, uint32_t index)
{
    (void)self;
    return index < STRINGS ? strings[index] : NULL;
}
static bool string_index(void *self, const char *text, size_t length, uint32_t *index_out)
{
    (void)self;
    for (uint32_t i = 0; i < STRINGS; i++) {
        if (strlen(strings[i]) != length || memcmp(strings[i], text, length) != 0) continue;
        *index_out = i;
        return true;
    }
    return false;
}
static const struct vtrn_text_names names = { NULL, tensor_name, tensor_index, tensor_space, string, string_index, tensor_dtype };

static void check_identity(const struct vtrn_inst *inst, const struct vtrn_text_names *with, int round)
{
    static struct vtrn_inst back;
    struct vtrn_buf text = { 0 }, again = { 0 };
    struct vtrn_error err = { 0 };
    const char *operand;

    assert_int_equal(vtrn_inst_print(inst, with, &text), VTRN_OK);
    assert_null(memchr(text.data, '\n', text.size));
    if (vtrn_inst_parse((char *)text.data, text.size, with, &back, &err) < 0)
        fail_msg("round %d: %s\n  %s", round, err.text, (char *)text.data);
    if (!gen_inst_equal(inst, &back, &operand)) fail_msg("round %d: %s differs\n  %s", round, operand, (char *)text.data);
    assert_int_equal(vtrn_inst_print(&back, with, &again), VTRN_OK);
    assert_string_equal((char *)text.data, (char *)again.data);
    vtrn_buf_fini(&text);
    vtrn_buf_fini(&again);
}

static void text_reads_back(void **state)
{
    static struct vtrn_inst inst;
    struct gen gen = gen_seeded(5);

    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        gen.tensors = gen_chance(&gen, 70) ? TENSOR_NAMES : 100;
        gen_inst(&gen, &inst, VTRN_OP_NONE);
        check_identity(&inst, round % 4 ? &names : NULL, round);
    }
}

static void expect_text(const char *text)
{
    static struct vtrn_inst inst;
    struct vtrn_buf buf = { 0 };
    struct vtrn_error err = { 0 };

    if (vtrn_inst_parse(text, strlen(text), &names, &inst, &err) < 0) fail_msg("%s", err.text);
    assert_int_equal(vtrn_inst_print(&inst, &names, &buf), VTRN_OK);
    assert_string_equal((char *)buf.data, text);
    vtrn_buf_fini(&buf);
}

/* The form that docs and users know; a change here is a change of the language. */
static void the_form_stays(void **state)
{
    (void)state;
    expect_text("tensor  nc_matmul dst=%acc[0:128; 0+1x512] stationary=%w.0:bf16[0:64; 256+1x128] moving=%3:bf16[0:64; 0+512x4+1x128] "
                "accumulate=true tile_position=[0, 32] name=\"mm\" @3");
    expect_text("dma     dma_copy dst=%acc[32+2x16; 0+1x64] src=%_x:f32[8+64x16+1x64] oob_mode=skip dge_mode=none");
    expect_text("dma     dma_copy dst=%acc[0:4; 0+1x8 | r5*16] src=%_x:f32[0+0x4+1x8 | vector %acc:u32[0; 2+1x4]*64<100]");
    expect_text("vector  tensor_copy dst=%acc[0:1; 0+1x8] src=%3:f32[0:1; 0+1x8 | scalar %_x:i32[0; 7]*1 | r1*-2<5]");
    expect_text("vector  tensor_copy dst=%\"a b\":f32[0:1; 0] src=%\"3d\":f32[0:32; 0+1x8 | indirect %acc:u16[32; 0+4x2]*1]");
    expect_text("dma     dma_copy dst=%\"quote\\\"d\\\\\":f32[0+1x8] src=%\"line\\nbreak\":f32[0:1; 0+1x8]");
    expect_text("scalar  activation dst=%acc[0:8; 0+1x8] op=gelu data=%acc[0:8; 0+1x8] bias=%w.0:f32[0:8; 0+1x1] scale=0.5");
    expect_text("vector  memset dst=%acc[0:8; 0+1x8] value=-7");
    expect_text("vector  memset dst=%acc[0:8; 0+1x8] value=-7.0 flags=3");
    expect_text("gpsimd  memset dst=%acc[0:8; 0+1x8] value=nan(0xfff8000000000001)");
    expect_text("dma     dma_compute dst=%acc[0:8; 0+1x8] srcs={%acc[0:8; 0+1x8], %_x:f32[0+8x8+1x8]} reduce_op=add scales=[] "
                "unique_indices=false");
    expect_text("sync    register_alu dst=r3 op=multiply lhs=r2 rhs=-40");
    expect_text("sync    device_print print_prefix=\"say \\\"hi\\\"\\n\" tensor=%acc[0:8; 0+1x8]");
    expect_text("unknown loop_end @12");
    expect_text("dma     dma_copy dst=%acc[0:8; 0+1x8] src=%acc[0:8; 0+1x8] priority=2 dge_mode=absent");
}

static void spaces_and_comments_do_not_matter(void **state)
{
    static const char loose[] = "  vector\ttensor_copy   src = %acc:f32[ 0 : 8 ;0 + 1x8 ]  dst=%acc[0:8;0+1x8]  @ 4  # why\n";
    static struct vtrn_inst inst;
    struct vtrn_buf buf = { 0 };
    struct vtrn_error err = { 0 };

    (void)state;
    if (vtrn_inst_parse(loose, sizeof loose - 1, &names, &inst, &err) < 0) fail_msg("%s", err.text);
    assert_int_equal(vtrn_inst_print(&inst, &names, &buf), VTRN_OK);
    assert_string_equal((char *)buf.data, "vector  tensor_copy dst=%acc[0:8; 0+1x8] src=%acc[0:8; 0+1x8] @4");
    vtrn_buf_fini(&buf);
}

static void wrong_text_is_refused(void **state)
{
    static const struct {
        const char *text, *why;
    } wrong[] = {
        { "", "engine" },
        { "tpu nc_matmul", "engine" },
        { "tensor nc_matmull", "column 8: found \"nc_matmull\"; no such instruction" },
        { "tensor nc_matmul mov=%acc[0:1; 0+1x1]", "stationary, moving" },
        { "tensor nc_matmul moving", "'=' is expected" },
        { "tensor nc_matmul moving=7", "operand moving: found \"7\"; a tensor" },
        { "tensor nc_matmul moving=%nope[0:1; 0]", "no tensor" },
        { "tensor nc_matmul moving=%4294967296[0:1; 0]", "0..4294967295" },
        { "tensor nc_matmul moving=%acc:f99[0:1; 0]", "dtype" },
        { "tensor nc_matmul moving=%acc[0:1; 0", "']'" },
        { "tensor nc_matmul moving=%acc[0]", "at least one dimension" },
        { "tensor nc_matmul moving=%acc[5:1; 0+1x1]", "must be in 5.." },
        { "tensor nc_matmul moving=%acc[65536:65537; 0+1x1]", "0..65535" },
        { "tensor nc_matmul moving=%acc[-1:1; 0+1x1]", "first:end" },
        { "tensor nc_matmul moving=%acc[0:1; 0+1x1+1x1+1x1+1x1+1x1+1x1+1x1+1x1]", "8 dimensions" },
        { "tensor nc_matmul moving=%acc[0:1; 0 | r1*1 | r1*1 | r1*1 | r1*1]", "3 dynamic parts" },
        { "tensor nc_matmul moving=%acc[0:1; 0 | r1]", "'*'" },
        { "tensor nc_matmul moving=%acc[0:1; 0 | table %acc:u8[0; 0]*1]", "indirect" },
        { "tensor nc_matmul moving=%acc[0:1; 99999999999999999999+1x1]", "integer" },
        { "tensor nc_matmul accumulate=maybe", "no such value" },
        { "tensor nc_matmul accumulate=true accumulate=true", "there already" },
        { "tensor nc_matmul tile_size=[1, 2, 3]", "too long" },
        { "tensor nc_matmul tile_size=[1 2]", "','" },
        { "vector memset value=1.5.2", "number" },
        { "vector memset value=nan(0x1)", "NaN" },
        { "vector memset value=", "number" },
        { "vector memset engine=vector", "first word" },
        { "scalar activation op=gelux", "no such value" },
        { "sync device_print print_prefix=\"open", "no end" },
        { "sync device_print print_prefix=\"\\q\"", "escapes" },
        { "sync device_print print_prefix=\"\\x00\"", "zero byte" },
        { "sync device_print print_prefix=\"unheard of\"", "string table" },
        { "sync device_print print_prefix=5", "\"string\"" },
        { "sync register_move dst=rx", "no such value" },
        { "sync register_move dst=r", "integer" },
        { "sync loop_end flags=65536", "0..65535" },
        { "sync loop_end @", "integer" },
        { "sync loop_end @1,", "space" },
        { "sync loop_end\nsync loop_end", "expected" },
    };
    static struct vtrn_inst inst;

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct vtrn_error err = { 0 };

        if (vtrn_inst_parse(wrong[i].text, strlen(wrong[i].text), &names, &inst, &err) != VTRN_FORMAT)
            fail_msg("\"%s\" is not refused", wrong[i].text);
        if (!strstr(err.text, wrong[i].why)) fail_msg("\"%s\" gives \"%s\", not \"%s\"", wrong[i].text, err.text, wrong[i].why);
        assert_non_null(strstr(err.text, "column "));
    }
}

static void mutated_text_does_no_harm(void **state)
{
    static const char letters[] = "%:;[]{}|+*<x@#=\"\\$ -.0129rn,";
    static struct vtrn_inst inst, back;
    struct gen gen = gen_seeded(6);
    int accepted = 0;

    (void)state;
    for (int round = 0; round < 60000; round++) {
        struct vtrn_buf text = { 0 };
        size_t size;
        char *copy;

        gen_inst(&gen, &inst, VTRN_OP_NONE);
        assert_int_equal(vtrn_inst_print(&inst, &names, &text), VTRN_OK);
        size = gen_chance(&gen, 20) ? (size_t)gen_range(&gen, 0, (int64_t)text.size) : text.size;
        for (int k = (int)gen_range(&gen, 0, 3); k > 0; k--)
            text.data[gen_range(&gen, 0, (int64_t)text.size - 1)] = (uint8_t)letters[gen_range(&gen, 0, sizeof letters - 2)];
        copy = malloc(size ? size : 1); /* exactly its size: a sanitizer sees a read beyond it */
        assert_non_null(copy);
        memcpy(copy, text.data, size);
        if (vtrn_inst_parse(copy, size, &names, &back, NULL) >= 0) {
            struct vtrn_buf code = { 0 };

            accepted++;
            assert_int_equal(vtrn_inst_encode(&back, &code, NULL), VTRN_OK); /* what parses also has a wire form */
            check_identity(&back, &names, round);
            vtrn_buf_fini(&code);
        }
        free(copy);
        vtrn_buf_fini(&text);
    }
    assert_in_range(accepted, 5000, 59000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_reads_back),
        cmocka_unit_test(the_form_stays),
        cmocka_unit_test(spaces_and_comments_do_not_matter),
        cmocka_unit_test(wrong_text_is_refused),
        cmocka_unit_test(mutated_text_does_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
