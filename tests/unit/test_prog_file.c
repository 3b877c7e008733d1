/* prog: .vtrn files and the text of whole programs. Round trips on random programs; damage of every kind is refused. */
#include "prog_random.h"

#include <unistd.h>

#include "prog/file_int.h"

enum { PROGRAMS = 300 };

static void assert_same_bytes(const struct vtrn_buf *a, const struct vtrn_buf *b)
{
    assert_int_equal(a->size, b->size);
    assert_memory_equal(a->data, b->data, a->size);
}

/* In a block of exactly the size, so that a sanitizer sees a read beyond it. */
static enum vtrn_status load_copy(const void *bytes, size_t size, struct vtrn_prog **prog, struct vtrn_error *err)
{
    uint8_t *copy = malloc(size ? size : 1);
    enum vtrn_status status;

    assert_non_null(copy);
    memcpy(copy, bytes, size);
    status = vtrn_prog_load(copy, size, prog, err);
    free(copy);
    return status;
}

static void assert_same_uses(const struct vtrn_prog *a, const struct vtrn_prog *b)
{
    assert_int_equal(a->tensors, b->tensors);
    for (uint32_t i = 0; i < a->tensors; i++) {
        assert_int_equal(a->tensor[i].born, b->tensor[i].born);
        assert_int_equal(a->tensor[i].first_use, b->tensor[i].first_use);
        assert_int_equal(a->tensor[i].last_use, b->tensor[i].last_use);
        assert_int_equal(a->tensor[i].row_bytes, b->tensor[i].row_bytes);
    }
}

static void saved_programs_load_the_same(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < PROGRAMS; seed++) {
        struct vtrn_prog *prog = random_program(seed), *back = NULL;
        struct vtrn_buf first = { 0 }, second = { 0 };
        struct vtrn_error err = { 0 };

        if (vtrn_prog_verify(prog, &err) < 0) fail_msg("seed %d: %s", (int)seed, err.text);
        assert_int_equal(vtrn_prog_save(prog, &first, &err), VTRN_OK);
        if (load_copy(first.data, first.size, &back, &err) < 0) fail_msg("seed %d: %s", (int)seed, err.text);
        assert_int_equal(vtrn_prog_save(back, &second, &err), VTRN_OK);
        assert_same_bytes(&first, &second);
        assert_same_uses(prog, back);
        assert_int_equal(vtrn_prog_verify(back, &err), VTRN_OK);
        vtrn_buf_fini(&first);
        vtrn_buf_fini(&second);
        vtrn_prog_destroy(prog);
        vtrn_prog_destroy(back);
    }
}

static void printed_programs_parse_the_same(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < PROGRAMS; seed++) {
        struct vtrn_prog *prog = random_program(seed), *back = NULL;
        struct vtrn_buf first = { 0 }, second = { 0 };
        struct vtrn_error err = { 0 };

        assert_int_equal(vtrn_prog_print(prog, &first, &err), VTRN_OK);
        if (vtrn_prog_parse((const char *)first.data, first.size, &back, &err) < 0) fail_msg("seed %d: %s", (int)seed, err.text);
        assert_int_equal(vtrn_prog_print(back, &second, &err), VTRN_OK);
        assert_same_bytes(&first, &second);
        assert_same_uses(prog, back);
        vtrn_buf_fini(&first);
        vtrn_buf_fini(&second);
        vtrn_prog_destroy(prog);
        vtrn_prog_destroy(back);
    }
}

static void the_two_forms_agree(void **state)
{
    (void)state;
    for (uint64_t seed = 1000; seed < 1020; seed++) { /* print(load(save)) is print */
        struct vtrn_prog *prog = random_program(seed), *back = NULL;
        struct vtrn_buf bytes = { 0 }, first = { 0 }, second = { 0 };
        struct vtrn_error err = { 0 };

        assert_int_equal(vtrn_prog_save(prog, &bytes, &err), VTRN_OK);
        assert_int_equal(vtrn_prog_load(bytes.data, bytes.size, &back, &err), VTRN_OK);
        assert_int_equal(vtrn_prog_print(prog, &first, &err), VTRN_OK);
        assert_int_equal(vtrn_prog_print(back, &second, &err), VTRN_OK);
        assert_same_bytes(&first, &second);
        vtrn_buf_fini(&bytes);
        vtrn_buf_fini(&first);
        vtrn_buf_fini(&second);
        vtrn_prog_destroy(prog);
        vtrn_prog_destroy(back);
    }
}

static void files_are_written_and_read(void **state)
{
    char path[] = "/tmp/vtrn-test-XXXXXX";
    int fd = mkstemp(path);
    struct vtrn_prog *prog = random_program(3), *back = NULL;
    struct vtrn_buf first = { 0 }, second = { 0 };
    struct vtrn_error err = { 0 };

    (void)state;
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(vtrn_prog_save_file(prog, path, &err), VTRN_OK);
    assert_int_equal(vtrn_prog_load_file(path, &back, &err), VTRN_OK);
    assert_int_equal(vtrn_prog_save(prog, &first, &err), VTRN_OK);
    assert_int_equal(vtrn_prog_save(back, &second, &err), VTRN_OK);
    assert_same_bytes(&first, &second);
    vtrn_prog_destroy(back);
    assert_int_equal(truncate(path, 100), 0);
    assert_int_equal(vtrn_prog_load_file(path, &back, &err), VTRN_FORMAT);
    assert_non_null(strstr(err.text, path));
    unlink(path);
    assert_int_equal(vtrn_prog_load_file(path, &back, &err), VTRN_IO);
    assert_int_equal(vtrn_prog_save_file(prog, "/no/such/folder/x.vtrn", &err), VTRN_IO);
    vtrn_buf_fini(&first);
    vtrn_buf_fini(&second);
    vtrn_prog_destroy(prog);
}

/* ---------------------------------------------------------------- damaged bytes */
static void damaged_bytes_are_refused(void **state)
{
    struct vtrn_prog *prog = random_program(5), *back = NULL;
    struct vtrn_buf bytes = { 0 };
    struct vtrn_error err = { 0 };
    struct gen gen = gen_seeded(11);

    (void)state;
    assert_int_equal(vtrn_prog_save(prog, &bytes, &err), VTRN_OK);
    for (size_t size = 0; size < bytes.size; size += 1 + size / 50) /* cut anywhere */
        assert_true(load_copy(bytes.data, size, &back, &err) < 0);
    for (int round = 0; round < 2000; round++) { /* any flipped bit in header, table or sections; padding is free */
        size_t at = (size_t)gen_range(&gen, 0, (int64_t)bytes.size - 1);
        uint8_t bit = (uint8_t)(1 << gen_range(&gen, 0, 7));
        enum vtrn_status status;

        bytes.data[at] ^= bit;
        status = load_copy(bytes.data, bytes.size, &back, &err);
        if (status >= 0) {
            assert_int_equal(bytes.data[at], bit); /* a padding byte was 0 */
            vtrn_prog_destroy(back);
        }
        bytes.data[at] ^= bit;
    }
    assert_int_equal(load_copy("not a program", 13, &back, &err), VTRN_FORMAT);
    vtrn_buf_fini(&bytes);
    vtrn_prog_destroy(prog);
}

static void what_is_wrong_with_a_file_is_said(void **state)
{
    struct vtrn_prog *prog = random_program(5), *back = NULL;
    struct vtrn_buf bytes = { 0 };
    struct vtrn_error err = { 0 };

    (void)state;
    assert_int_equal(vtrn_prog_save(prog, &bytes, &err), VTRN_OK);
    assert_int_equal(load_copy(bytes.data, bytes.size - 1, &back, &err), VTRN_FORMAT);
    assert_non_null(strstr(err.text, "it is cut or joined"));
    bytes.data[8] = 9;
    assert_int_equal(load_copy(bytes.data, bytes.size, &back, &err), VTRN_FORMAT);
    assert_non_null(strstr(err.text, "format version 9; this vtrn reads version 1"));
    bytes.data[8] = 1;
    bytes.data[bytes.size / 2] ^= 1;
    assert_int_equal(load_copy(bytes.data, bytes.size, &back, &err), VTRN_FORMAT);
    assert_non_null(strstr(err.text, "checksum of section"));
    bytes.data[0] = 'x';
    assert_int_equal(load_copy(bytes.data, bytes.size, &back, &err), VTRN_FORMAT);
    assert_non_null(strstr(err.text, "not a .vtrn file"));
    vtrn_buf_fini(&bytes);
    vtrn_prog_destroy(prog);
}

/* The table entry of a section; `at` (may be NULL): where its bytes begin. */
static uint8_t *section_entry(struct vtrn_buf *file, uint32_t kind, uint32_t core, uint8_t **at)
{
    uint32_t sections = file_get32(file->data + 12);

    for (uint32_t i = 0; i < sections; i++) {
        uint8_t *entry = file->data + FILE_HEADER_BYTES + i * FILE_ENTRY_BYTES;

        if (file_get32(entry) != kind || file_get32(entry + 4) != core) continue;
        if (at) *at = file->data + file_get64(entry + 8);
        return entry;
    }
    fail_msg("no section %u", kind);
    return NULL;
}

/* Makes all checksums right, so that the loader looks further. */
static void seal(struct vtrn_buf *file)
{
    uint32_t sections = file_get32(file->data + 12);

    for (uint32_t i = 0; i < sections; i++) {
        uint8_t *entry = file->data + FILE_HEADER_BYTES + i * FILE_ENTRY_BYTES;
        uint64_t offset = file_get64(entry + 8), size = file_get64(entry + 16);

        if (offset <= file->size && size <= file->size - offset)
            file_put64(entry + 24, vtrn_hash_bytes(file->data + offset, size, 0));
    }
    file_put64(file->data + 24, vtrn_hash_bytes(file->data + FILE_HEADER_BYTES, (size_t)sections * FILE_ENTRY_BYTES, 0));
}

/* Lies with right checksums: one 32-bit word of a section, or of its table entry, is another. */
static void lies_in_a_file_are_found(void **state)
{
    static const struct {
        uint32_t kind;
        bool in_entry;
        uint32_t at, value;
        const char *message;
    } lie[] = {
        { FILE_DATA, true, 0, 77, "section kind 77 is unknown" },
        { FILE_DATA, true, 4, 1, "section data of core 1 is not possible" },
        { FILE_DATA, true, 0, FILE_LOCS, "section locations occurs twice" },
        { FILE_CODE, true, 4, 1, "the code of core 0 is missing" },
        { FILE_LOCS, true, 12, 1, "section locations lies outside the file" },
        { FILE_LOCS, true, 8, 4, "section locations lies outside the file" },
        { FILE_LOCS, true, 16, 7, "section locations: its count does not fit its 7 bytes" },
        { FILE_TARGET, true, 16, 20, "section target has 20 bytes" },
        { FILE_TARGET, false, 0, 3, "section target: 3 cores" },
        { FILE_TARGET, false, 4, 2, "flags 2" },
        { FILE_TARGET, false, 8, 9999, "section target: string 9999 of" },
        { FILE_TARGET, false, 12, 9999, "string 9999 of" },
        { FILE_TARGET, false, 12, 1, "is not known to this vtrn" },
        { FILE_TARGET, false, 16, 0x7fffffff, "registers are not possible" },
        { FILE_STRINGS, true, 16, 4, "section strings is cut" },
        { FILE_STRINGS, false, 0, 0x40000000, "section strings cannot hold" },
        { FILE_STRINGS, false, 0, 0, "section strings cannot hold" },
        { FILE_STRINGS, false, 8, 1, "is longer than the section" },
        { FILE_LOCS, false, 0, 1 << 30, "its count does not fit" },
        { FILE_LOCS, false, 8, 1, "location 0 is not \"unknown\"" },
        { FILE_LOCS, false, 16, 9999, "location 1 names no file" },
        { FILE_TENSORS, false, 8, 0x01020009, "tensor 0: tensor" },
        { FILE_TENSORS, false, 12, 0x00000900, "address is malformed" },
        { FILE_TENSORS, false, 20, 9999, "no such string or location" },
        { FILE_TENSORS, false, 28, 9999, "tensor 0: born at instruction 9999" },
        { FILE_TENSORS, false, 32 + 16, 5, "dimension 2 is beyond its rank" },
        { FILE_TENSORS, false, 96, 0, "a constant has data, and nothing else has" },
        { FILE_DATA, true, 16, 8, "its data is not where that of the previous constant ends" },
        { FILE_CODE, false, 0, 9999999, "do not fit the section" },
        { FILE_CODE, false, 0, 1, "words stand behind the last instruction" },
        { FILE_CODE, false, 8, 0x00010000, "core 0 instruction 0:" },
        { FILE_EDGES, false, 8, 9999, "depends_on: instruction 9999 is not in core 0's list" },
    };
    struct vtrn_prog *prog = env_create("trn2", 1), *back = NULL;
    struct vtrn_error err = { 0 };
    struct vtrn_buf good = { 0 }, bad = { 0 };

    (void)state;
    for (int i = 0; i < 3; i++)
        assert_int_equal(env_append(prog, 0, "vector reciprocal dst=%f[0:128; 0+1x8] data=%g[0:128; 0+1x8] @1", &err), VTRN_OK);
    assert_int_equal(vtrn_prog_edge(prog, 0, 2, 0, &err), VTRN_OK);
    assert_int_equal(vtrn_prog_save(prog, &good, &err), VTRN_OK);
    for (size_t i = 0; i < sizeof lie / sizeof lie[0]; i++) {
        uint8_t *at = NULL, *entry;

        bad.size = 0;
        assert_int_equal(vtrn_buf_append(&bad, good.data, good.size), VTRN_OK);
        entry = section_entry(&bad, lie[i].kind, 0, &at);
        file_put32((lie[i].in_entry ? entry : at) + lie[i].at, lie[i].value);
        seal(&bad);
        if (load_copy(bad.data, bad.size, &back, &err) >= 0) fail_msg("lie %d is believed: %s", (int)i, lie[i].message);
        if (!strstr(err.text, lie[i].message)) fail_msg("lie %d\n  says:     %s\n  expected: %s", (int)i, err.text, lie[i].message);
    }
    vtrn_buf_fini(&good);
    vtrn_buf_fini(&bad);
    vtrn_prog_destroy(prog);
}

/* ---------------------------------------------------------------- malformed text */
static void malformed_text_is_refused_with_its_line(void **state)
{
#define HEAD "vtrn 1\ntarget trn2\ncores 1\n"
    static const struct {
        const char *text, *message;
    } wrong[] = {
        { "", "the text ends before \"cores N\"" },
        { "target trn2\n", "line 1: a program begins with \"vtrn 1\"" },
        { "vtrn 2\n", "line 1: version 2 of the text form" },
        { "vtrn 1\ncores 1\n", "line 2: \"target CHIP\" is expected" },
        { "vtrn 1\ntarget trn9\n", "line 2: target trn9 is not known" },
        { "vtrn 1\ntarget trn2\ncores 3\n", "line 3: cores must be in 0..2" },
        { "vtrn 1\ntarget trn2\ncores 0\n", "line 3: a program needs a target and 1 or 2 cores" },
        { HEAD "loc 2 \"a.py\" 3\n", "line 4: location 2 is not the next, which is 1" },
        { HEAD "loc 1 \"a.py 3\n", "line 4: column 7: found \"\"a.py 3\"; the string has no end" },
        { HEAD "tensor 1 sbuf f32 [1, 1]\n", "line 4: tensor 1 is not the next, which is 0" },
        { HEAD "tensor 0 sbuf f99 [1, 1]\n", "line 4: a dtype (f32, bf16, i32, ...) is expected" },
        { HEAD "tensor 0 rom f32 [1, 1]\n", "line 4: a memory (sbuf, psum, hbm, shared_hbm) is expected" },
        { HEAD "tensor 0 sbuf f32 [1, 1\n", "line 4: \"]\" is expected" },
        { HEAD "tensor 0 sbuf f32 [1, 1] colour=3\n", "line 4: core=, address=, born= or @location is expected" },
        { HEAD "tensor 0 hbm f32 [1] const\n", "the text ends within the data of a constant" },
        { HEAD "tensor 0 hbm f32 [1] const\ncore 0\n", "line 5: constant: 4 of its 4 bytes are missing" },
        { HEAD "tensor 0 hbm f32 [1] const\ndata 001\n", "line 5: data: half a byte" },
        { HEAD "tensor 0 hbm f32 [1] const\ndata 0011223344\n", "line 5: data: more bytes than the tensor has (4)" },
        { HEAD "registers 9999999\n", "line 4: registers must be in 0..1048576" },
        { HEAD "sync loop_end\n", "line 4: a directive (name, loc, tensor, core, ...) is expected" },
        { HEAD "core 1\n", "line 4: core 1, the program has 1" },
        { HEAD "core 0\ncore 0\n", "line 5: core 0 stands behind core 0" },
        { HEAD "core 0\n  sync loop_end\n", "line 5: no loop is open here" },
        { HEAD "core 0\n  sync while_begin condition=r1\n", "core 0: the loop that instruction 0 begins has no loop_end" },
        { HEAD "edge 1 0\n", "line 4: an edge belongs behind the instructions of a core" },
        { HEAD "core 0\nedge 1 0\n", "line 5: depends_on: instruction 1 is not in core 0's list of 0" },
        { HEAD "not_replayable yes\n", "line 4: something stands behind the end of the directive" },
        { HEAD "core 0\n  vector no_such_op\n", "line 5: column" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct vtrn_prog *prog = NULL;
        struct vtrn_error err = { 0 };

        if (vtrn_prog_parse(wrong[i].text, strlen(wrong[i].text), &prog, &err) >= 0) fail_msg("%s is accepted", wrong[i].text);
        if (!strstr(err.text, wrong[i].message))
            fail_msg("%s\n  says: %s\n  expected: %s", wrong[i].text, err.text, wrong[i].message);
    }
}

static void comments_spaces_and_line_ends_are_free(void **state)
{
    const char *text = "# a program\r\n\n  vtrn 1 # version\n\ttarget trn2\r\ncores 1\nname \"k\"\n   # tables\n"
                       "tensor 0 \"a\" sbuf f32 [128, 8] # eight\ncore 0\nvector memset dst=%a[0:128;0+1x8] value=0 # fill";
    const char *plain = "vtrn 1\ntarget trn2\ncores 1\nname \"k\"\ntensor 0 \"a\" sbuf f32 [128, 8]\ncore 0\n"
                        "  vector  memset dst=%a[0:128; 0+1x8] value=0\n";
    struct vtrn_prog *prog = NULL;
    struct vtrn_error err = { 0 };
    struct vtrn_buf out = { 0 };

    (void)state;
    if (vtrn_prog_parse(text, strlen(text), &prog, &err) < 0) fail_msg("%s", err.text);
    assert_int_equal(vtrn_prog_print(prog, &out, &err), VTRN_OK);
    assert_int_equal(out.size, strlen(plain));
    assert_memory_equal(out.data, plain, out.size);
    vtrn_buf_fini(&out);
    vtrn_prog_destroy(prog);
}

/* Tensors that share a name are told apart by their numbers. */
static void names_that_are_not_unique_are_numbers(void **state)
{
    const char *text = "vtrn 1\ntarget trn2\ncores 1\ntensor 0 \"t\" sbuf f32 [128, 8]\ntensor 1 \"t\" sbuf f32 [128, 8]\n"
                       "tensor 2 \"one\" sbuf f32 [128, 8]\ncore 0\n"
                       "  vector  tensor_copy dst=%1[0:128; 0+1x8] src=%0[0:128; 0+1x8]\n"
                       "  vector  tensor_copy dst=%one[0:128; 0+1x8] src=%1[0:128; 0+1x8]\n";
    struct vtrn_prog *prog = NULL;
    struct vtrn_error err = { 0 };
    struct vtrn_buf out = { 0 };

    (void)state;
    if (vtrn_prog_parse(text, strlen(text), &prog, &err) < 0) fail_msg("%s", err.text);
    assert_int_equal(vtrn_prog_print(prog, &out, &err), VTRN_OK);
    assert_int_equal(out.size, strlen(text));
    assert_memory_equal(out.data, text, out.size);
    vtrn_buf_fini(&out);
    vtrn_prog_destroy(prog);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(saved_programs_load_the_same),
        cmocka_unit_test(printed_programs_parse_the_same),
        cmocka_unit_test(the_two_forms_agree),
        cmocka_unit_test(files_are_written_and_read),
        cmocka_unit_test(damaged_bytes_are_refused),
        cmocka_unit_test(what_is_wrong_with_a_file_is_said),
        cmocka_unit_test(lies_in_a_file_are_found),
        cmocka_unit_test(malformed_text_is_refused_with_its_line),
        cmocka_unit_test(comments_spaces_and_line_ends_are_free),
        cmocka_unit_test(names_that_are_not_unique_are_numbers),
    };

    return cmocka_run_group_tests_name("prog_file", tests, NULL, NULL);
}
