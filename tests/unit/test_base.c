/* base: errors, checked arithmetic, buffers, arenas, memory, CPU level, hash. */
#include "unit.h"

#include "base/base.h"

static void statuses_have_names(void **state)
{
    (void)state;
    assert_string_equal(vtrn_status_name(VTRN_OK), "OK");
    assert_string_equal(vtrn_status_name(VTRN_ILLEGAL), "ILLEGAL");
    assert_string_equal(vtrn_status_name((enum vtrn_status) - 999), "UNKNOWN");
    assert_non_null(strstr(vtrn_status_text(VTRN_DEADLOCK), "waits"));
    assert_non_null(vtrn_status_text((enum vtrn_status)999));
}

static enum vtrn_status fail_if_negative(struct vtrn_error *err, int x)
{
    VTRN_FAIL_IF(x < 0, err, VTRN_INVALID, "x is %d", x);
    return VTRN_OK;
}
static enum vtrn_status forward(struct vtrn_error *err, int x)
{
    VTRN_TRY(fail_if_negative(err, x));
    return VTRN_OK;
}

static void errors_are_written_once_and_prefixed(void **state)
{
    struct vtrn_error err = { 0 };
    char long_text[3000];

    (void)state;
    assert_int_equal(forward(&err, 1), VTRN_OK);
    assert_int_equal(forward(&err, -3), VTRN_INVALID);
    assert_int_equal(err.status, VTRN_INVALID);
    assert_string_equal(err.text, "x is -3");
    vtrn_error_prefix(&err, "kernel.py:%d", 41);
    assert_string_equal(err.text, "kernel.py:41: x is -3");
    assert_int_equal(vtrn_fail(NULL, VTRN_NOMEM, "nobody reads this"), VTRN_NOMEM);
    vtrn_error_prefix(NULL, "nor this");

    memset(long_text, 'a', sizeof long_text);
    long_text[sizeof long_text - 1] = '\0';
    vtrn_fail(&err, VTRN_LIMIT, "%s", long_text);
    assert_int_equal(strlen(err.text), sizeof err.text - 1);
    vtrn_error_prefix(&err, "%s", long_text);
    vtrn_error_prefix(&err, "here");
    assert_int_equal(strlen(err.text), sizeof err.text - 1);
    assert_memory_equal(err.text, "here: aaa", 9);
}

static void errors_are_one_line_whatever_a_program_calls_its_parts(void **state)
{
    struct vtrn_error err = { 0 };

    (void)state;
    vtrn_fail(&err, VTRN_INVALID, "tensor %s", "a\nb\t\x1b[31m\x7f \xc3\xa9");
    vtrn_error_prefix(&err, "file %s", "c\rd");
    assert_string_equal(err.text, "file c?d: tensor a?b??[31m? \xc3\xa9");
}

static void checked_arithmetic_stops_at_the_edges(void **state)
{
    const int64_t min = INT64_MIN, max = INT64_MAX;
    int64_t out = 7;
    size_t size = 7;

    (void)state;
    assert_true(vtrn_mul_i64(-3, 5, &out) && out == -15);
    assert_true(vtrn_mul_i64(max, 1, &out) && out == max);
    assert_true(vtrn_mul_i64(1, min, &out) && out == min);
    assert_true(vtrn_mul_i64(0, min, &out) && out == 0);
    assert_true(vtrn_mul_i64(-(INT64_C(1) << 31), INT64_C(1) << 32, &out) && out == min);
    out = 7;
    assert_false(vtrn_mul_i64(min, -1, &out));
    assert_false(vtrn_mul_i64(-1, min, &out));
    assert_false(vtrn_mul_i64(INT64_C(1) << 32, INT64_C(1) << 31, &out));
    assert_false(vtrn_mul_i64(max, -2, &out));
    assert_false(vtrn_add_i64(max, 1, &out));
    assert_false(vtrn_add_i64(min, -1, &out));
    assert_int_equal(out, 7);
    assert_true(vtrn_add_i64(max, min, &out) && out == -1);
    assert_false(vtrn_mul_size(SIZE_MAX / 2, 3, &size));
    assert_false(vtrn_add_size(SIZE_MAX, 1, &size));
    assert_int_equal(size, 7);
    assert_true(vtrn_mul_size(SIZE_MAX, 0, &size) && size == 0);
}

static void buffers_grow_and_print(void **state)
{
    struct vtrn_buf buf = { 0 };
    char expect[4096], wide[600];

    (void)state;
    for (int i = 0; i < 1000; i++) assert_int_equal(vtrn_buf_append(&buf, &i, sizeof i), VTRN_OK);
    assert_int_equal(buf.size, 1000 * sizeof(int));
    for (int i = 0; i < 1000; i++) assert_memory_equal(buf.data + (size_t)i * sizeof i, &i, sizeof i);
    assert_int_equal(vtrn_buf_append(&buf, NULL, 0), VTRN_OK);
    assert_int_equal(vtrn_buf_reserve(&buf, SIZE_MAX - 10), VTRN_NOMEM);
    assert_int_equal(buf.size, 1000 * sizeof(int));
    vtrn_buf_fini(&buf);
    assert_null(buf.data);

    memset(wide, 'w', sizeof wide - 1);
    wide[sizeof wide - 1] = '\0';
    snprintf(expect, sizeof expect, "a 1 %s|%s", wide, "end");
    assert_int_equal(vtrn_buf_printf(&buf, "a %d ", 1), VTRN_OK);
    assert_int_equal(vtrn_buf_printf(&buf, "%s|", wide), VTRN_OK); /* longer than what is reserved ahead */
    assert_int_equal(vtrn_buf_printf(&buf, "end"), VTRN_OK);
    assert_string_equal((char *)buf.data, expect);
    assert_int_equal(buf.size, strlen(expect));
    vtrn_buf_fini(&buf);
}

static void arenas_give_aligned_zeroed_memory(void **state)
{
    static const size_t sizes[] = { 1, 16, 17, 100, 5000, 16384, 100000, 0 };
    struct vtrn_arena arena = { 0 };
    uint8_t *last = NULL;

    (void)state;
    for (int round = 0; round < 200; round++) {
        size_t size = sizes[round % 8];
        uint8_t *p = vtrn_arena_alloc(&arena, size);

        assert_non_null(p);
        assert_int_equal((uintptr_t)p % 16, 0);
        for (size_t i = 0; i < size; i++) assert_int_equal(p[i], 0);
        memset(p, 0xee, size); /* a later allocation that overlaps would not be zero */
        last = p;
    }
    assert_non_null(last);
    assert_string_equal(vtrn_arena_strdup(&arena, "text"), "text");
    assert_null(vtrn_arena_alloc(&arena, SIZE_MAX - 3));
    vtrn_arena_fini(&arena);
    assert_null(arena.head);
    vtrn_arena_fini(&arena);
}

static void memory_comes_aligned_and_zero(void **state)
{
    static const size_t sizes[] = { 0, 1, 4096, 100000, (2 << 20) - 1, 2 << 20, (5 << 20) + 12345 };

    (void)state;
    for (size_t align = 8; align <= 4096; align *= 8) {
        void *p = vtrn_alloc_aligned(100, align);

        assert_non_null(p);
        assert_int_equal((uintptr_t)p % align, 0);
        vtrn_free_aligned(p);
    }
    vtrn_free_aligned(NULL);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        uint8_t *p = vtrn_alloc_pages(sizes[i]);

        assert_non_null(p);
        assert_int_equal((uintptr_t)p % 4096, 0);
        if (sizes[i] >= 2 << 20) assert_int_equal((uintptr_t)p % (2 << 20), 0);
        if (sizes[i]) {
            assert_int_equal(p[0] | p[sizes[i] - 1], 0);
            p[0] = p[sizes[i] - 1] = 1;
        }
        vtrn_free_pages(p, sizes[i]);
    }
    vtrn_free_pages(NULL, 10);
    assert_null(vtrn_alloc_pages(SIZE_MAX));
    assert_null(vtrn_alloc_pages(SIZE_MAX - (3 << 20)));
}

static void kept_pages_are_handed_out_again(void **state)
{
    enum { SIZE = 1 << 16, MOST = 10 * SIZE };
    struct vtrn_page_cache *cache = vtrn_page_cache_create(MOST);
    uint8_t *page[12], *other;

    (void)state;
    assert_non_null(cache);
    page[0] = vtrn_pages_take(cache, SIZE);
    memset(page[0], 7, SIZE);
    vtrn_pages_give(cache, page[0], SIZE);
    other = vtrn_pages_take(cache, SIZE + 1); /* another size: not this block */
    assert_ptr_not_equal(other, page[0]);
    assert_int_equal(other[SIZE], 0);
    vtrn_pages_give(cache, other, SIZE + 1);
    assert_ptr_equal(vtrn_pages_take(cache, SIZE), page[0]);
    assert_int_equal(page[0][SIZE - 1], 7); /* as it was left */
    vtrn_pages_give(cache, page[0], SIZE);
    /* No more than the most is kept: the oldest goes. */
    for (int i = 1; i < 12; i++) page[i] = vtrn_alloc_pages(SIZE);
    for (int i = 1; i < 12; i++) {
        memset(page[i], i, SIZE);
        vtrn_pages_give(cache, page[i], SIZE);
    }
    for (int i = 11; i > 1; i--) {
        assert_ptr_equal(vtrn_pages_take(cache, SIZE), page[i]);
        assert_int_equal(page[i][0], i);
    }
    other = vtrn_pages_take(cache, SIZE); /* page[0] and page[1] are gone: a fresh one */
    assert_int_equal(other[0] | other[SIZE - 1], 0);
    vtrn_pages_give(cache, other, SIZE);
    other = vtrn_pages_take(cache, MOST + 1); /* larger than all that may be kept */
    vtrn_pages_give(cache, other, MOST + 1);
    for (int i = 2; i < 12; i++) vtrn_pages_give(i % 2 ? cache : NULL, page[i], SIZE);
    vtrn_pages_give(cache, NULL, SIZE);
    vtrn_page_cache_destroy(cache);
    vtrn_page_cache_destroy(NULL);
    other = vtrn_pages_take(NULL, SIZE);
    vtrn_pages_give(NULL, other, SIZE);
}

static void the_cpu_level_follows_the_environment(void **state)
{
    enum vtrn_cpu_level best = vtrn_cpu_best();
    char *before = getenv("VTRN_CPU") ? strdup(getenv("VTRN_CPU")) : NULL;

    (void)state;
    assert_true(vtrn_cpu_has(VTRN_CPU_REF));
    assert_true(vtrn_cpu_has(best));
    assert_true(vtrn_cpu_count() >= 1);
    for (int level = 0; level < VTRN_CPU_LEVELS; level++) {
        setenv("VTRN_CPU", vtrn_cpu_name((enum vtrn_cpu_level)level), 1);
        assert_int_equal(vtrn_cpu_level(), vtrn_cpu_has((enum vtrn_cpu_level)level) ? level : (int)best);
    }
    assert_false(vtrn_cpu_has(VTRN_CPU_NEON) && vtrn_cpu_has(VTRN_CPU_AVX2));
    setenv("VTRN_CPU", "pentium", 1);
    assert_int_equal(vtrn_cpu_level(), best);
    unsetenv("VTRN_CPU");
    assert_int_equal(vtrn_cpu_level(), best);
    assert_string_equal(vtrn_cpu_name((enum vtrn_cpu_level)99), "unknown");
    if (before) setenv("VTRN_CPU", before, 1);
    free(before);
}

static void the_hash_is_fnv1a(void **state)
{
    (void)state; /* values of the reference, isthe.com/chongo/tech/comp/fnv */
    assert_true(vtrn_hash_bytes("", 0, 0) == UINT64_C(0xcbf29ce484222325));
    assert_true(vtrn_hash_bytes("a", 1, 0) == UINT64_C(0xaf63dc4c8601ec8c));
    assert_true(vtrn_hash_bytes("foobar", 6, 0) == UINT64_C(0x85944171f73967e8));
    assert_true(vtrn_hash_bytes("foobar", 6, 1) != vtrn_hash_bytes("foobar", 6, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(statuses_have_names),
        cmocka_unit_test(errors_are_written_once_and_prefixed),
        cmocka_unit_test(errors_are_one_line_whatever_a_program_calls_its_parts),
        cmocka_unit_test(checked_arithmetic_stops_at_the_edges),
        cmocka_unit_test(buffers_grow_and_print),
        cmocka_unit_test(arenas_give_aligned_zeroed_memory),
        cmocka_unit_test(memory_comes_aligned_and_zero),
        cmocka_unit_test(kept_pages_are_handed_out_again),
        cmocka_unit_test(the_cpu_level_follows_the_environment),
        cmocka_unit_test(the_hash_is_fnv1a),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
