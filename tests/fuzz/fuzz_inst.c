/* The decoder of one instruction, and the legality check of whatever it accepts, on each generation. What decodes must
 * come back the same from the words that the encoder writes for it; what is legal must print and parse to the same. */
#include "fuzz.h"

#include "gen.h"

static const char tables[] =
    "tensor 0 \"a\" sbuf bf16 [128, 512]\ntensor 1 \"b\" sbuf f32 [128, 512]\ntensor 2 \"p\" psum f32 [128, 512]\n"
    "tensor 3 \"x\" hbm bf16 [1024, 512] input\ntensor 4 \"i\" sbuf u32 [128, 8]\n"
    "tensor 5 \"m\" sbuf f8e4fnx4 [128, 512]\ntensor 6 \"at\" sbuf f32 [64, 64] address=32:64\n";

static struct vtrn_prog *program(const char *target)
{
    char text[1024];
    struct vtrn_prog *prog = NULL;
    struct vtrn_error err = { 0 };

    snprintf(text, sizeof text, "vtrn 1\ntarget %s\ncores 2\n%s", target, tables);
    FUZZ_CHECK(vtrn_prog_parse(text, strlen(text), &prog, &err) >= 0, "%s", err.text);
    return prog;
}

static void check_text(struct vtrn_prog *prog, const struct vtrn_inst *inst)
{
    static struct vtrn_inst back;
    struct vtrn_text_names names = vtrn_prog_names(prog);
    struct vtrn_buf text = { 0 };
    struct vtrn_error err = { 0 };
    const char *operand = "";

    FUZZ_CHECK(vtrn_inst_print(inst, &names, &text) >= 0 && vtrn_inst_parse((char *)text.data, text.size, &names, &back, &err) >= 0,
               "%s: %.*s", err.text, (int)text.size, (char *)text.data);
    FUZZ_CHECK(gen_inst_equal(inst, &back, &operand), "%.*s: %s differs", (int)text.size, (char *)text.data, operand);
    vtrn_buf_fini(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const targets[] = { "trn1", "trn2", "trn3" };
    static struct vtrn_inst inst, back;
    uint32_t *words = calloc(1, size ? size : 1);
    struct vtrn_buf again = { 0 };
    struct vtrn_error err = { 0 };
    const char *operand = "";
    size_t length = 0, same = 0;

    if (!words) return 0;
    if (size) memcpy(words, data, size);
    if (vtrn_inst_decode(words, size / 4, &inst, &length, &err) >= 0) {
        FUZZ_CHECK(length && length <= size / 4, "length %zu of %zu words", length, size / 4);
        vtrn_inst_decode_own(words, &back);
        FUZZ_CHECK(gen_inst_equal(&inst, &back, &operand), "%s is another without checks", operand);
        FUZZ_CHECK(vtrn_inst_encode(&inst, &again, &err) >= 0 &&
                       vtrn_inst_decode((uint32_t *)(void *)again.data, again.size / 4, &back, &same, &err) >= 0,
                   "%s", err.text);
        FUZZ_CHECK(gen_inst_equal(&inst, &back, &operand), "%s is another after a round trip", operand);
        for (size_t t = 0; t < sizeof targets / sizeof targets[0]; t++) {
            struct vtrn_prog *prog = program(targets[t]);

            if (vtrn_legal_check(prog, 0, &inst, &err) >= 0) check_text(prog, &inst);
            vtrn_prog_destroy(prog);
        }
    }
    vtrn_buf_fini(&again);
    free(words);
    return 0;
}
