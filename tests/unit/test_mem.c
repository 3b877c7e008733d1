/* mem: stores of every kind, poison, aliasing addresses, the pool, what the tensor engine has written, bytes given and
 * taken. Models are arrays of flags. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include "mem/mem.h"

#include <cmocka.h>

struct rig {
    struct vtrn_prog *prog;
    struct vtrn_mem *mem;
};
static struct vtrn_page_cache *used_pages; /* run twice: tests find in memory what others left there */

static uint64_t random_state = 88172645463325252u;
static uint64_t draw(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}
static int64_t below(int64_t n) { return (int64_t)(draw() % (uint64_t)n); }

static struct rig rig_create(int cores)
{
    struct vtrn_error err = { 0 };
    struct rig rig = { .prog = vtrn_prog_create(vtrn_arch_find("trn2"), cores, &err) };
    assert_non_null(rig.prog);
    rig.mem = vtrn_mem_create(rig.prog->arch, cores, &err);
    assert_non_null(rig.mem);
    vtrn_mem_use_cache(rig.mem, used_pages);
    return rig;
}

static void rig_destroy(struct rig *rig)
{
    vtrn_mem_destroy(rig->mem);
    vtrn_prog_destroy(rig->prog);
}

static uint32_t declare(struct rig *rig, struct vtrn_tensor proto)
{
    struct vtrn_error err = { 0 };
    uint32_t tensor;
    if (proto.rank == 0) proto.rank = 2;
    if (vtrn_prog_tensor(rig->prog, &proto, &tensor, &err) != VTRN_OK) fail_msg("%s", err.text);
    return tensor;
}

static struct vtrn_store *store_of(struct rig *rig, int core, uint32_t tensor)
{
    struct vtrn_error err = { 0 };
    struct vtrn_store *store = vtrn_mem_store(rig->mem, rig->prog, core, tensor, &err);
    if (!store) fail_msg("%s", err.text);
    return store;
}

/* ---------------------------------------------------------------- poison */
static void test_poison(void **state)
{
    static const struct {
        uint8_t dtype, byte;
    } cases[] = {
        { VTRN_DT_F32, 0xff }, { VTRN_DT_BF16, 0xff }, { VTRN_DT_F8E4M3FNX4, 0xff }, { VTRN_DT_I32, 0x7f }, { VTRN_DT_U8, 0x7f }
    };
    struct rig rig = rig_create(1);
    (void)state;
    for (int c = 0; c < 5; c++)
        for (int space = VTRN_SBUF; space <= VTRN_HBM; space++) {
            uint32_t tensor =
                declare(&rig, (struct vtrn_tensor){ .space = (uint8_t)space, .dtype = cases[c].dtype, .dim = { 100, 33 } });
            struct vtrn_store *store = store_of(&rig, 0, tensor);
            assert_true(store->fresh);
            vtrn_store_settle(store);
            assert_false(store->fresh);
            for (int p = 0; p < (store->partitions ? store->partitions : 1); p++)
                for (size_t b = 0; b < store->row_bytes; b++)
                    assert_int_equal(store->base[(size_t)p * store->pitch + b], cases[c].byte);
            vtrn_mem_release(rig.mem, 0, tensor);
        }
    rig_destroy(&rig);
}

/* Random accesses: what was overwritten keeps what was written, what was read or partly written has poison, and nothing is
 * poisoned twice. The model knows bytes, not segments. */
static void test_poison_by_access(void **state)
{
    struct rig rig = rig_create(1);
    (void)state;
    for (int round = 0; round < 300; round++) {
        int64_t rows = 1 + below(8), columns = 1 + below(round % 3 ? 300 : 60000);
        uint32_t tensor = declare(&rig, (struct vtrn_tensor){ .space = VTRN_SBUF, .dtype = VTRN_DT_U8, .dim = { rows, columns } });
        struct vtrn_store *store = store_of(&rig, 0, tensor);
        uint8_t *model = malloc((size_t)columns); /* of every row: 0x11 written, 0x7f not */
        memset(model, 0x7f, (size_t)columns);
        for (int p = 0; p < rows; p++)
            memset(store->base + (size_t)p * store->pitch, 0xee, store->row_bytes); /* what a pool leaves */
        for (int step = 0; step < 6; step++) {
            size_t low = (size_t)below(columns), high = low + 1 + (size_t)below(columns - (int64_t)low);
            bool overwrites = below(2);
            if (below(4) == 0) low = 0;
            if (below(4) == 0) high = store->row_bytes;
            vtrn_store_touch(store, low, high, overwrites);
            for (size_t b = low; b < high; b++)
                for (int p = 0; p < rows; p++) {
                    uint8_t *at = store->base + (size_t)p * store->pitch + b;
                    if (overwrites) *at = 0x11;
                    else if (*at != model[b]) fail_msg("round %d byte %zu: 0x%x, should be 0x%x", round, b, *at, model[b]);
                }
            if (overwrites) memset(model + low, 0x11, high - low);
        }
        vtrn_store_settle(store);
        for (int p = 0; p < rows; p++) assert_memory_equal(store->base + (size_t)p * store->pitch, model, store->row_bytes);
        free(model);
        vtrn_mem_release(rig.mem, 0, tensor);
    }
    rig_destroy(&rig);
}

/* ---------------------------------------------------------------- automatic tensors */
static void test_rows(void **state)
{
    static const int64_t columns[] = { 1, 2, 3, 16, 64, 65, 128, 512, 1024, 4096, 40000 };
    struct rig rig = rig_create(1);
    (void)state;
    for (int c = 0; c < 11; c++)
        for (int dtype = 0; dtype < 2; dtype++) {
            uint32_t tensor =
                declare(&rig, (struct vtrn_tensor){
                                  .space = VTRN_SBUF, .dtype = dtype ? VTRN_DT_F32 : VTRN_DT_BF16, .dim = { 128, columns[c] } });
            struct vtrn_store *store = store_of(&rig, 0, tensor);
            assert_int_equal(store->partitions, 128);
            assert_true(store->pitch >= store->row_bytes);
            assert_int_equal((uintptr_t)store->base % 64, 0);
            if (columns[c] == 1) assert_int_equal(store->pitch, store->row_bytes);  /* a column is one vector */
            if (store->row_bytes > 256) assert_int_equal(store->pitch / 64 % 2, 1); /* an odd number of lines */
            memset(store->base, 0, 128 * store->pitch);                             /* all of it is there */
            vtrn_mem_release(rig.mem, 0, tensor);
        }
    rig_destroy(&rig);
}

/* Blocks that are in use at the same time never share a byte, and freed ones are used again. */
static void test_pool(void **state)
{
    enum { LIVE = 40 };
    struct rig rig = rig_create(1);
    uint32_t tensor[LIVE];
    uint8_t mark[LIVE];
    size_t now, peak, before;
    (void)state;
    memset(tensor, 0xff, sizeof tensor);
    for (int step = 0; step < 3000; step++) {
        int k = (int)below(LIVE);
        if (tensor[k] != UINT32_MAX) {
            struct vtrn_store *store = store_of(&rig, 0, tensor[k]);
            for (size_t p = 0; p < (size_t)store->partitions; p++)
                for (size_t b = 0; b < store->row_bytes; b += 61) assert_int_equal(store->base[p * store->pitch + b], mark[k]);
            vtrn_mem_release(rig.mem, 0, tensor[k]);
            tensor[k] = UINT32_MAX;
            continue;
        }
        tensor[k] = declare(&rig, (struct vtrn_tensor){ .space = below(3) ? VTRN_SBUF : VTRN_PSUM,
                                                        .dtype = VTRN_DT_U8,
                                                        .dim = { 1 + below(128), 1 + below(below(5) ? 600 : 16000) } });
        struct vtrn_store *store = store_of(&rig, 0, tensor[k]);
        mark[k] = (uint8_t)draw();
        for (size_t p = 0; p < (size_t)store->partitions; p++) memset(store->base + p * store->pitch, mark[k], store->row_bytes);
        vtrn_store_touch(store, 0, store->row_bytes, true);
    }
    for (int k = 0; k < LIVE; k++)
        if (tensor[k] != UINT32_MAX) vtrn_mem_release(rig.mem, 0, tensor[k]);
    vtrn_mem_usage(rig.mem, &before, &peak);
    for (int step = 0; step < 1000; step++) { /* one tile at a time costs nothing new */
        uint32_t t = declare(&rig, (struct vtrn_tensor){ .space = VTRN_SBUF, .dtype = VTRN_DT_F32, .dim = { 128, 512 } });
        store_of(&rig, 0, t);
        vtrn_mem_release(rig.mem, 0, t);
    }
    vtrn_mem_usage(rig.mem, &now, &peak);
    assert_true(now <= before + (1 << 20));
    assert_true(peak >= now);
    rig_destroy(&rig);
}

/* ---------------------------------------------------------------- tensors with an address */
static void test_addresses_alias(void **state)
{
    struct rig rig = rig_create(2);
    (void)state;
    for (int space = VTRN_SBUF; space <= VTRN_PSUM; space++) {
        struct vtrn_tensor wide = {
            .space = (uint8_t)space, .dtype = VTRN_DT_F32, .dim = { 128, 100 }, .has_address = 1, .addr_byte = 64
        };
        struct vtrn_tensor part = {
            .space = (uint8_t)space, .dtype = VTRN_DT_U8, .dim = { 10, 8 }, .has_address = 1, .addr_partition = 32, .addr_byte = 72
        };
        struct vtrn_store *a = store_of(&rig, 0, declare(&rig, wide)), *b = store_of(&rig, 0, declare(&rig, part));
        wide.core = 1;
        struct vtrn_store *other = store_of(&rig, 1, declare(&rig, wide));
        assert_ptr_equal(b->base, a->base + 32 * a->pitch + 8);
        assert_int_equal(a->pitch, b->pitch);
        assert_int_equal(a->base[5], 0xff); /* poison, though no dtype is known */
        a->base[32 * a->pitch + 8] = 42;
        assert_int_equal(b->base[0], 42);
        assert_int_equal(other->base[32 * other->pitch + 8], 0xff); /* the other core's own memory */
        /* A tensor that reaches further finds poison there, and what is written stays. */
        struct vtrn_tensor all = { .space = (uint8_t)space, .dtype = VTRN_DT_U8, .dim = { 128, 16384 }, .has_address = 1 };
        struct vtrn_store *c = store_of(&rig, 0, declare(&rig, all));
        assert_int_equal(c->base[32 * c->pitch + 72], 42);
        assert_int_equal(c->base[127 * c->pitch + 16383], 0xff);
    }
    rig_destroy(&rig);
}

/* ---------------------------------------------------------------- written bits */
static void test_written(void **state)
{
    struct rig rig = rig_create(1);
    (void)state;
    for (int round = 0; round < 300; round++) {
        int64_t rows = 1 + below(20), words = 1 + below(round % 2 ? 40 : 600);
        uint32_t tensor = declare(&rig, (struct vtrn_tensor){ .space = VTRN_PSUM, .dtype = VTRN_DT_BF16, .dim = { rows, words } });
        struct vtrn_store *store = store_of(&rig, 0, tensor);
        bool *model = calloc((size_t)(rows * words), sizeof *model); /* a flag for two bytes */
        for (int step = 0; step < 12; step++) {
            int64_t p0 = below(rows), parts = 1 + below(rows - p0), w0 = below(words), n = 1 + below(words - w0);
            bool any = false, missing = false;
            if (below(5) == 0) p0 = 0, parts = rows, w0 = 0, n = words;
            for (int64_t p = p0; p < p0 + parts; p++)
                for (int64_t w = w0; w < w0 + n; w++) {
                    bool flag = model[p * words + w];
                    any = any || flag;
                    missing = missing || !flag;
                    assert_int_equal(vtrn_store_byte_written(store, p, (size_t)w * 2), flag);
                    assert_int_equal(vtrn_store_byte_written(store, p, (size_t)w * 2 + 1), flag);
                }
            enum vtrn_written want = !missing ? VTRN_WRITTEN_ALL : any ? VTRN_WRITTEN_SOME : VTRN_WRITTEN_NONE;
            assert_int_equal(vtrn_store_written(store, p0, parts, (size_t)w0 * 2, (size_t)(w0 + n) * 2), want);
            if (below(2)) continue;
            vtrn_store_mark(store, p0, parts, (size_t)w0 * 2, (size_t)(w0 + n) * 2);
            for (int64_t p = p0; p < p0 + parts; p++)
                for (int64_t w = w0; w < w0 + n; w++) model[p * words + w] = true;
        }
        free(model);
        vtrn_mem_release(rig.mem, 0, tensor);
        store = store_of(&rig, 0, tensor); /* declared anew: nothing is written */
        assert_int_equal(vtrn_store_written(store, 0, rows, 0, store->row_bytes), VTRN_WRITTEN_NONE);
        vtrn_mem_release(rig.mem, 0, tensor);
    }
    rig_destroy(&rig);
}

/* ---------------------------------------------------------------- HBM */
static void test_bind_and_take(void **state)
{
    struct rig rig = rig_create(1);
    struct vtrn_error err = { 0 };
    float bytes[12], other[12];
    void *got;
    size_t size, before, now, peak;
    (void)state;
    uint32_t in =
        declare(&rig, (struct vtrn_tensor){ .space = VTRN_HBM, .dtype = VTRN_DT_F32, .role = VTRN_ROLE_INPUT, .dim = { 3, 4 } });
    uint32_t out =
        declare(&rig,
                (struct vtrn_tensor){ .space = VTRN_HBM, .dtype = VTRN_DT_F32, .role = VTRN_ROLE_OUTPUT, .dim = { 1000, 1000 } });
    uint32_t chip = declare(&rig, (struct vtrn_tensor){ .space = VTRN_SBUF, .dtype = VTRN_DT_F32, .dim = { 3, 4 } });
    assert_null(vtrn_mem_store(rig.mem, rig.prog, 0, in, &err));
    assert_int_equal(err.status, VTRN_INVALID);
    assert_non_null(strstr(err.text, "has no data"));
    assert_int_equal(vtrn_mem_bind(rig.mem, rig.prog, in, bytes, 40, &err), VTRN_INVALID);
    assert_non_null(strstr(err.text, "40 bytes were given, it has 48"));
    assert_int_equal(vtrn_mem_bind(rig.mem, rig.prog, chip, bytes, 48, &err), VTRN_INVALID);
    assert_int_equal(vtrn_mem_bind(rig.mem, rig.prog, 99, bytes, 48, &err), VTRN_INVALID);
    assert_int_equal(vtrn_mem_bind(rig.mem, rig.prog, in, bytes, 48, &err), VTRN_OK);
    assert_ptr_equal(store_of(&rig, 0, in)->base, bytes);
    assert_int_equal(vtrn_mem_take(rig.mem, rig.prog, 0, in, &got, &size, &err), VTRN_INVALID); /* not ours */
    assert_int_equal(vtrn_mem_bind(rig.mem, rig.prog, in, other, 48, &err), VTRN_OK);           /* again */
    assert_ptr_equal(store_of(&rig, 0, in)->base, other);
    assert_int_equal(vtrn_mem_hbm(rig.mem, rig.prog, 0, out, &got, &size, &err), VTRN_OK);
    assert_int_equal(size, 4000000);
    assert_int_equal(((uint8_t *)got)[3999999], 0xff);
    vtrn_mem_usage(rig.mem, &before, &peak);
    assert_int_equal(vtrn_mem_take(rig.mem, rig.prog, 0, out, &got, &size, &err), VTRN_OK);
    vtrn_mem_usage(rig.mem, &now, &peak);
    assert_int_equal(before - now, 4000000);
    assert_ptr_not_equal(store_of(&rig, 0, out)->base, got); /* new pages for the next run */
    vtrn_free_pages(got, size);
    rig_destroy(&rig);
}

static void test_constants_are_copied(void **state)
{
    struct rig rig = rig_create(1);
    const float data[4] = { 1, 2, 3, 4 };
    (void)state;
    uint32_t tensor =
        declare(&rig, (struct vtrn_tensor){
                          .space = VTRN_HBM, .dtype = VTRN_DT_F32, .role = VTRN_ROLE_CONST, .dim = { 2, 2 }, .data = data });
    struct vtrn_store *store = store_of(&rig, 0, tensor);
    assert_memory_equal(store->base, data, sizeof data);
    memset(store->base, 0, sizeof data); /* a program that writes its constant does not change the program */
    assert_memory_equal(rig.prog->tensor[tensor].data, data, sizeof data);
    rig_destroy(&rig);
}

static void test_cores(void **state)
{
    struct rig rig = rig_create(2);
    struct vtrn_error err = { 0 };
    (void)state;
    uint32_t shared =
        declare(&rig,
                (struct vtrn_tensor){ .space = VTRN_HBM_SHARED, .dtype = VTRN_DT_F32, .core = VTRN_CORES_MAX, .dim = { 64, 64 } });
    uint32_t own = declare(&rig, (struct vtrn_tensor){ .space = VTRN_SBUF, .dtype = VTRN_DT_F32, .core = 1, .dim = { 64, 64 } });
    assert_ptr_equal(store_of(&rig, 0, shared), store_of(&rig, 1, shared));
    assert_false(store_of(&rig, 0, shared)->fresh); /* two threads may come first */
    assert_int_equal(store_of(&rig, 0, shared)->base[100], 0xff);
    assert_null(vtrn_mem_store(rig.mem, rig.prog, 0, own, &err));
    assert_non_null(strstr(err.text, "belongs to core 1"));
    assert_null(vtrn_mem_store(rig.mem, rig.prog, 0, 1000, &err));
    assert_null(vtrn_mem_create(rig.prog->arch, 3, &err));
    vtrn_mem_release(rig.mem, 0, shared); /* HBM stays */
    assert_non_null(store_of(&rig, 0, shared)->base);
    vtrn_mem_destroy(NULL);
    rig_destroy(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_poison),        cmocka_unit_test(test_poison_by_access),     cmocka_unit_test(test_rows),
        cmocka_unit_test(test_pool),          cmocka_unit_test(test_addresses_alias),      cmocka_unit_test(test_written),
        cmocka_unit_test(test_bind_and_take), cmocka_unit_test(test_constants_are_copied), cmocka_unit_test(test_cores),
    };
    used_pages = vtrn_page_cache_create((size_t)1 << 30);
    int failed = cmocka_run_group_tests(tests, NULL, NULL) + cmocka_run_group_tests(tests, NULL, NULL);
    vtrn_page_cache_destroy(used_pages);
    return failed;
}
