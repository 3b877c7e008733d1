/* npy: what is written is read back; every kind of damage is refused; no file, however mutilated, is read out of bounds
 * (the sanitizer builds see to that). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <unistd.h>

#include "cli/cli.h"

static struct vtrn_tensor_info tensor(const char *dtype, size_t element_bytes, int rank, int64_t d0, int64_t d1)
{
    struct vtrn_tensor_info info = { .name = "x", .dtype = dtype, .rank = rank, .dim = { d0, d1 }, .element_bytes = element_bytes };

    info.size_bytes = element_bytes * (size_t)(rank > 0 ? d0 : 1) * (size_t)(rank > 1 ? d1 : 1);
    return info;
}

/* A file in memory, version 1 or 2. */
static size_t make(uint8_t *out, int version, const char *dict, size_t data_bytes)
{
    size_t length = strlen(dict), head = version == 1 ? 10 : 12;

    memcpy(out, "\x93NUMPY", 6);
    out[6] = (uint8_t)version;
    out[7] = 0;
    for (size_t i = 8; i < head; i++) out[i] = (uint8_t)(length >> 8 * (i - 8));
    memcpy(out + head, dict, length);
    for (size_t i = 0; i < data_bytes; i++) out[head + length + i] = (uint8_t)i;
    return head + length + data_bytes;
}

static enum vtrn_status parse(const char *dict, size_t data_bytes, const struct vtrn_tensor_info *want)
{
    uint8_t bytes[1024];
    const uint8_t *data;
    enum vtrn_status status = VTRN_OK;

    for (int version = 1; version <= 3; version++) {
        size_t size = make(bytes, version, dict, data_bytes);

        status = cli_npy_parse(bytes, size, want, &data, NULL);
        if (status == VTRN_OK) assert_int_equal(data[5], 5);
    }
    return status;
}

static void reads_what_fits(void **state)
{
    struct vtrn_tensor_info f32 = tensor("float32", 4, 2, 3, 4), bf16 = tensor("bfloat16", 2, 2, 3, 4),
                            f8 = tensor("float8_e5m2", 1, 1, 6, 0), scalar = tensor("float64?", 8, 0, 0, 0);

    (void)state;
    assert_int_equal(parse("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }      \n", 48, &f32), VTRN_OK);
    assert_int_equal(parse("{\"shape\":(3L,4L),\"descr\":\"<f4\",\"fortran_order\":False}", 48, &f32), VTRN_OK);
    assert_int_equal(parse("{'descr': '<V2', 'fortran_order': False, 'shape': (3, 4)}", 24, &bf16), VTRN_OK);
    assert_int_equal(parse("{'descr': '|V2', 'fortran_order': False, 'shape': (3, 4)}", 24, &bf16), VTRN_OK);
    assert_int_equal(parse("{'descr': '<u2', 'fortran_order': False, 'shape': (3, 4)}", 24, &bf16), VTRN_OK);
    assert_int_equal(parse("{'descr': '<f1', 'fortran_order': False, 'shape': (6,)}", 6, &f8), VTRN_OK);
    assert_int_equal(parse("{'descr': '|V1', 'fortran_order': True, 'shape': (6,)}", 6, &f8), VTRN_OK); /* 1-D has one order */
    assert_int_equal(parse("{'descr': '|V8', 'fortran_order': False, 'shape': ()}", 8, &scalar), VTRN_OK);
}

static void refuses_what_does_not_fit(void **state)
{
    struct vtrn_tensor_info f32 = tensor("float32", 4, 2, 3, 4), bf16 = tensor("bfloat16", 2, 2, 3, 4);

    (void)state;
    assert_int_equal(parse("{'descr': '<f2', 'fortran_order': False, 'shape': (3, 4)}", 24, &bf16), VTRN_INVALID);
    assert_int_equal(parse("{'descr': '>f4', 'fortran_order': False, 'shape': (3, 4)}", 48, &f32), VTRN_INVALID);
    assert_int_equal(parse("{'descr': '|f4', 'fortran_order': False, 'shape': (3, 4)}", 48, &f32), VTRN_INVALID);
    assert_int_equal(parse("{'descr': '<i4', 'fortran_order': False, 'shape': (3, 4)}", 48, &f32), VTRN_INVALID);
    assert_int_equal(parse("{'descr': '', 'fortran_order': False, 'shape': (3, 4)}", 48, &f32), VTRN_FORMAT);
    assert_int_equal(parse("{'descr': '<f4', 'fortran_order': True, 'shape': (3, 4)}", 48, &f32), VTRN_INVALID);
    assert_int_equal(parse("{'descr': '<f4', 'fortran_order': False, 'shape': (4, 3)}", 48, &f32), VTRN_INVALID);
    assert_int_equal(parse("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4, 1)}", 48, &f32), VTRN_INVALID);
    assert_int_equal(parse("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4)}", 47, &f32), VTRN_FORMAT);
    assert_int_equal(parse("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4)}", 49, &f32), VTRN_FORMAT);
}

static void refuses_what_is_no_header(void **state)
{
    static const char *const dicts[] = {
        "", "{", "{}", "{'descr': '<f4'}", "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (3, 4)}",
        "{'descr': '<f4', 'fortran_order': 0, 'shape': (3, 4)}", "{'descr': '<f4', 'fortran_order': False, 'shape': (3, -4)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 99999999999999999999)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1, 1, 1, 1, 1, 1, 3, 4)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (3 4)}", "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4)",
        "{'descr': '<f4, 'fortran_order': False, 'shape': (3, 4)}", "{'more': 1, 'descr': '<f4', 'shape': (3, 4)}",
        "{'descr': 'a long name that no dtype has at all', 'fortran_order': False, 'shape': (3, 4)}",
    };
    struct vtrn_tensor_info f32 = tensor("float32", 4, 2, 3, 4);

    (void)state;
    for (size_t i = 0; i < sizeof dicts / sizeof dicts[0]; i++) assert_int_equal(parse(dicts[i], 48, &f32), VTRN_FORMAT);
}

/* Every cut and 20,000 random changes of a good file: an answer, never a wild read. */
static void survives_damage(void **state)
{
    struct vtrn_tensor_info f32 = tensor("float32", 4, 2, 3, 4);
    uint8_t good[256];
    size_t size = make(good, 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }   \n", 48);
    uint64_t random = 1;

    (void)state;
    for (size_t cut = 0; cut <= size; cut++) {
        uint8_t *exact = malloc(cut ? cut : 1); /* of that very size, so that a read behind it is seen */
        const uint8_t *data;

        memcpy(exact, good, cut);
        assert_int_equal(cli_npy_parse(exact, cut, &f32, &data, NULL) == VTRN_OK, cut == size);
        free(exact);
    }
    for (int turn = 0; turn < 20000; turn++) {
        uint8_t *bad = malloc(size);
        const uint8_t *data;

        memcpy(bad, good, size);
        for (int k = 0; k <= turn % 3; k++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            bad[(random >> 33) % (size - 48)] = (uint8_t)(random >> 56);
        }
        if (cli_npy_parse(bad, size, &f32, &data, NULL) == VTRN_OK) assert_true(data >= bad && data + 48 == bad + size);
        free(bad);
    }
}

static void writes_what_it_reads(void **state)
{
    static const char *const dtypes[] = { "float32", "float16", "int8", "uint32", "bool_", "bfloat16", "float4_e2m1fn_x4" };
    static const size_t sizes[] = { 4, 2, 1, 4, 1, 2, 2 };
    char path[] = "/tmp/vtrn-npy-XXXXXX";

    (void)state;
    assert_true(close(mkstemp(path)) == 0);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (int rank = 0; rank <= 2; rank++) {
            struct vtrn_tensor_info info = tensor(dtypes[i], sizes[i], rank, 5, 3);
            uint8_t bytes[128];
            void *again;

            for (size_t b = 0; b < info.size_bytes; b++) bytes[b] = (uint8_t)(b * 7 + i);
            assert_int_equal(cli_npy_write(path, &info, bytes, NULL), VTRN_OK);
            assert_int_equal(cli_npy_read(path, &info, &again, NULL), VTRN_OK);
            assert_memory_equal(bytes, again, info.size_bytes);
            free(again);
        }
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_what_fits), cmocka_unit_test(refuses_what_does_not_fit), cmocka_unit_test(refuses_what_is_no_header),
        cmocka_unit_test(survives_damage), cmocka_unit_test(writes_what_it_reads),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
