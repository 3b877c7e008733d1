/* report: a table says the same as text and as JSON; numbers are written as people write them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "report/report.h"

static const struct vtrn_column columns[] = { { "name", VTRN_COLUMN_TEXT },
                                              { "shape", VTRN_COLUMN_SHAPE },
                                              { "big_count", VTRN_COLUMN_COUNT },
                                              { "size", VTRN_COLUMN_BYTES },
                                              { "share", VTRN_COLUMN_REAL } };

static struct vtrn_table *example(void)
{
    struct vtrn_table *table = vtrn_table_create(columns, 5);

    vtrn_table_row(table, "a", "128x512", INT64_C(1234567), INT64_C(2048), 0.25);
    vtrn_table_row(table, "m\xc3\xbcller", "1", INT64_C(-7), INT64_C(1536), NAN);
    vtrn_table_row(table, NULL, "", INT64_MIN, INT64_C(96) << 30, 1e9);
    return table;
}

static void text(void **state)
{
    struct vtrn_table *table = example();
    char *out = NULL;
    size_t size;
    FILE *file = open_memstream(&out, &size);

    (void)state;
    assert_int_equal(vtrn_table_print(table, file), VTRN_OK);
    fclose(file);
    assert_string_equal(out, "name    shape                     big count     size  share\n"
                             "a       128x512                   1,234,567    2 KiB   0.25\n"
                             "m\xc3\xbcller  1                                -7  1,536 B    nan\n"
                             "                 -9,223,372,036,854,775,808   96 GiB  1e+09\n");
    free(out);
    vtrn_table_destroy(table);
}

/* Names come from files of others: what would steer a terminal is shown as a question mark. */
static void control_characters(void **state)
{
    struct vtrn_table *table = vtrn_table_create(columns, 1);
    char *out = NULL;
    size_t size;
    FILE *file = open_memstream(&out, &size);

    (void)state;
    vtrn_table_row(table, "a\nb\x1b[31m\x7f");
    assert_int_equal(vtrn_table_print(table, file), VTRN_OK);
    fclose(file);
    assert_string_equal(out, "name\na?b?[31m?\n");
    free(out);
    vtrn_table_destroy(table);
}

static void json(void **state)
{
    struct vtrn_table *table = example();
    json_t *rows = vtrn_table_json(table), *row = json_array_get(rows, 1);

    (void)state;
    assert_int_equal(json_array_size(rows), 3);
    assert_string_equal(json_string_value(json_object_get(row, "name")), "m\xc3\xbcller");
    assert_int_equal(json_integer_value(json_object_get(row, "big_count")), -7);
    assert_int_equal(json_integer_value(json_object_get(row, "size")), 1536);
    assert_true(json_is_null(json_object_get(row, "share"))); /* JSON has no NaN */
    row = json_array_get(rows, 0);
    assert_int_equal(json_array_size(json_object_get(row, "shape")), 2);
    assert_int_equal(json_integer_value(json_array_get(json_object_get(row, "shape"), 1)), 512);
    assert_true(json_real_value(json_object_get(row, "share")) == 0.25);
    row = json_array_get(rows, 2);
    assert_true(json_integer_value(json_object_get(row, "big_count")) == INT64_MIN);
    json_decref(rows);
    vtrn_table_destroy(table);
}

/* Names come from users' files: bytes that are not UTF-8 must not lose the whole report. */
static void bytes_that_are_no_text(void **state)
{
    struct vtrn_table *table = vtrn_table_create(columns, 1);
    json_t *rows;

    (void)state;
    vtrn_table_row(table, "a\xff z");
    rows = vtrn_table_json(table);
    assert_string_equal(json_string_value(json_object_get(json_array_get(rows, 0), "name")), "a\xef\xbf\xbd z");
    json_decref(rows);
    vtrn_table_destroy(table);
}

static void numbers(void **state)
{
    static const struct {
        int64_t value;
        const char *count, *bytes;
    } cases[] = {
        { 0, "0", "0 B" },
        { 999, "999", "999 B" },
        { 1000, "1,000", "1,000 B" },
        { 1024, "1,024", "1 KiB" },
        { 212984, "212,984", "212,984 B" },
        { 10 << 20, "10,485,760", "10 MiB" },
        { (10 << 20) + 1, "10,485,761", "10.0 MiB" },
        { -1, "-1", "-1 B" },
        { INT64_MAX, "9,223,372,036,854,775,807", "8192.0 PiB" },
    };
    char out[64];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        vtrn_count_text(cases[i].value, out);
        assert_string_equal(out, cases[i].count);
        vtrn_bytes_text(cases[i].value, out);
        assert_string_equal(out, cases[i].bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(text), cmocka_unit_test(control_characters), cmocka_unit_test(json), cmocka_unit_test(bytes_that_are_no_text),
                                        cmocka_unit_test(numbers) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
