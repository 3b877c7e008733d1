/* exec/gather.c and indirect.c against models that go element by element. */
#include "exec_rig.h"

static const uint8_t dtypes[] = { VTRN_DT_F32, VTRN_DT_BF16, VTRN_DT_U8, VTRN_DT_I32 };

struct gather { /* a local_gather: list of indices per group */
    struct rig *rig;
    struct vtrn_ap src, index, dst;
    struct vtrn_inst inst;
    int64_t each, valid;
};

static struct gather make_gather(uint8_t dtype, int64_t groups, int64_t columns, int64_t each, int64_t valid, int64_t room)
{
    struct gather g = { .rig = rig_create("trn2", 1, 1), .each = each, .valid = valid };
    int64_t parts = 16 * groups;
    g.src = rig_random_ap(g.rig, 0, VTRN_SBUF, dtype, parts, 40 * each);
    g.index = rig_random_ap(g.rig, 0, VTRN_SBUF, VTRN_DT_U16, parts, columns);
    g.dst = rig_random_ap(g.rig, 0, VTRN_SBUF, dtype, parts, valid * each + room);
    vtrn_inst_init(&g.inst, VTRN_OP_local_gather);
    rig_set_ap(RIG_ARG(&g.inst, local_gather, dst), g.dst);
    rig_set_ap(RIG_ARG(&g.inst, local_gather, src_buffer), g.src);
    rig_set_ap(RIG_ARG(&g.inst, local_gather, index), g.index);
    rig_set_int(RIG_ARG(&g.inst, local_gather, num_elem_per_idx), each);
    if (valid != 16 * columns) rig_set_int(RIG_ARG(&g.inst, local_gather, num_valid_indices), valid);
    rig_append(g.rig, 0, &g.inst);
    return g;
}

static void gather_case(uint8_t dtype, int64_t groups, int64_t columns, int64_t each, int64_t valid, int64_t room)
{
    struct gather g = make_gather(dtype, groups, columns, each, valid, room);
    size_t bytes = vtrn_dtypes[dtype].size_bytes;
    uint8_t *source = rig_fill(g.rig, 0, g.src.tensor), *expect = rig_fill(g.rig, 0, g.dst.tensor);
    uint16_t *list = rig_fill(g.rig, 0, g.index.tensor);
    for (int64_t p = 0; p < 16 * groups; p++)
        for (int64_t i = 0; i < columns; i++) list[rig_at(g.rig, &g.index, p, i)] = (uint16_t)rig_below(40 * each - each + 1);
    /* Beyond num_valid_indices nothing is read: rubbish must not matter. */
    for (int64_t j = valid; j < 16 * columns; j++)
        for (int64_t c = 0; c < groups; c++) list[rig_at(g.rig, &g.index, 16 * c + j % 16, j / 16)] = 0xffff;
    rig_write(g.rig, 0, g.index.tensor, list);
    rig_run_ok(g.rig, 0);
    for (int64_t p = 0; p < 16 * groups; p++)
        for (int64_t j = 0; j < valid; j++)
            for (int64_t e = 0; e < each; e++) {
                int64_t from = list[rig_at(g.rig, &g.index, p / 16 * 16 + j % 16, j / 16)] + e;
                memcpy(expect + rig_at(g.rig, &g.dst, p, j * each + e) * (int64_t)bytes,
                       source + rig_at(g.rig, &g.src, p, from) * (int64_t)bytes, bytes);
            }
    uint8_t *after = rig_image(g.rig, 0, g.dst.tensor);
    assert_memory_equal(expect, after, (size_t)rig_elems(g.rig, g.dst.tensor) * bytes);
    free(source);
    free(expect);
    free(list);
    free(after);
    rig_destroy(g.rig);
}

static void test_local_gather(void **state)
{
    (void)state;
    for (int k = 0; k < 4; k++) {
        gather_case(dtypes[k], 8, 4, 1, 64, 0);
        gather_case(dtypes[k], 1, 1, 4, 16, 0);
        gather_case(dtypes[k], 3, 7, 2, 101, 5); /* odd count, dst larger: its tail stays */
        gather_case(dtypes[k], 8, 20, 32, 300, 0);
        gather_case(dtypes[k], 2, 256, 1, 4096, 0);
        gather_case(dtypes[k], 2, 2, 8, 1, 0);
    }
}

static void test_local_gather_outside(void **state)
{
    (void)state;
    struct gather g = make_gather(VTRN_DT_F32, 1, 1, 4, 16, 0);
    uint16_t *list = rig_fill(g.rig, 0, g.index.tensor);
    for (int64_t p = 0; p < 16; p++) list[rig_at(g.rig, &g.index, p, 0)] = 156; /* the last that fits 4 elements */
    list[rig_at(g.rig, &g.index, 9, 0)] = 157;
    rig_write(g.rig, 0, g.index.tensor, list);
    uint8_t *before = rig_image(g.rig, 0, g.dst.tensor);
    rig_run_fault(g.rig, 0, VTRN_FAULT_INDEX, "index[9, 0] = 157 is outside 0..156");
    uint8_t *after = rig_image(g.rig, 0, g.dst.tensor);
    assert_memory_equal(before, after, (size_t)rig_elems(g.rig, g.dst.tensor) * 4);
    free(list);
    free(before);
    free(after);
    rig_destroy(g.rig);
}

/* ---- nc_n_gather ---- */
static void n_gather_case(uint8_t dtype, bool in_place)
{
    struct rig *rig = rig_create("trn2", 1, 1);
    size_t bytes = vtrn_dtypes[dtype].size_bytes;
    int64_t parts = 1 + rig_below(128), data_elems = 1 + rig_below(3000), elems = in_place ? data_elems : 1 + rig_below(3000);
    struct vtrn_ap data = rig_random_ap(rig, 0, VTRN_SBUF, dtype, parts, data_elems);
    struct vtrn_ap indices = rig_random_ap(rig, 0, VTRN_SBUF, VTRN_DT_U32, parts, elems);
    struct vtrn_ap dst = in_place ? data : rig_random_ap(rig, 0, VTRN_SBUF, dtype, parts, elems);
    uint8_t *source = rig_fill(rig, 0, data.tensor),
            *expect = in_place ? rig_image(rig, 0, dst.tensor) : rig_fill(rig, 0, dst.tensor);
    uint32_t *index = rig_fill(rig, 0, indices.tensor);
    for (int64_t i = 0; i < rig_elems(rig, indices.tensor); i++) index[i] = (uint32_t)rig_below(data_elems);
    rig_write(rig, 0, indices.tensor, index);
    struct vtrn_inst inst;
    vtrn_inst_init(&inst, VTRN_OP_nc_n_gather);
    rig_set_ap(RIG_ARG(&inst, nc_n_gather, dst), dst);
    rig_set_ap(RIG_ARG(&inst, nc_n_gather, data), data);
    rig_set_ap(RIG_ARG(&inst, nc_n_gather, indices), indices);
    rig_append(rig, 0, &inst);
    rig_run_ok(rig, 0);
    for (int64_t p = 0; p < parts; p++)
        for (int64_t i = 0; i < elems; i++)
            memcpy(expect + rig_at(rig, &dst, p, i) * (int64_t)bytes,
                   source + rig_at(rig, &data, p, index[rig_at(rig, &indices, p, i)]) * (int64_t)bytes, bytes);
    uint8_t *after = rig_image(rig, 0, dst.tensor);
    assert_memory_equal(expect, after, (size_t)rig_elems(rig, dst.tensor) * bytes);
    index[rig_at(rig, &indices, parts - 1, elems - 1)] = (uint32_t)data_elems; /* one past the end, in the last place */
    rig_write(rig, 0, indices.tensor, index);
    rig_append(rig, 0, &inst);
    rig_run_fault(rig, 0, VTRN_FAULT_INDEX, "is outside 0..");
    free(source);
    free(expect);
    free(index);
    free(after);
    rig_destroy(rig);
}

static void test_nc_n_gather(void **state)
{
    (void)state;
    for (int k = 0; k < 16; k++) n_gather_case(dtypes[k % 4], k % 3 == 0);
}

/* ---- tensor indirection (v4), through the eyes of a front end ---- */
static void indirect_case(int64_t parts, int64_t columns, int64_t elems, uint8_t index_dtype)
{
    struct rig *rig = rig_create("trn3", 1, 1);
    uint32_t data = rig_tensor2(rig, 0, VTRN_SBUF, VTRN_DT_BF16, parts, 300);
    uint32_t tile = rig_tensor2(rig, 0, VTRN_SBUF, index_dtype, parts, columns);
    uint16_t *source = rig_fill(rig, 0, data), *got = malloc((size_t)(parts * elems) * 2);
    size_t index_bytes = vtrn_dtypes[index_dtype].size_bytes;
    uint8_t *index = rig_fill(rig, 0, tile);
    for (int64_t i = 0; i < parts * columns; i++) {
        uint32_t value = (uint32_t)rig_below(290);
        memcpy(index + i * (int64_t)index_bytes, &value, index_bytes);
    }
    rig_write(rig, 0, tile, index);
    struct vtrn_dyn dyn = { .kind = VTRN_DYN_INDIRECT, .dtype = index_dtype, .ref = tile, .stride = 1, .count = elems, .scale = 1 };
    struct vtrn_ap ap = { .tensor = data, .dtype = VTRN_DT_BF16, .ndim = 2, .ndyn = 1, .offset = 10, .dyn = &dyn };
    struct vtrn_error err = { 0 };
    ap.dim[0].stride = 1;
    ap.dim[0].count = parts;
    ap.dim[1].count = elems;
    ap.dim[1].stride = 1;
    assert_int_equal(vtrn_core_peek(rig->core[0], &ap, got, (size_t)(parts * elems) * 2, &err), VTRN_OK);
    for (int64_t p = 0; p < parts; p++)
        for (int64_t i = 0; i < elems; i++) {
            int64_t group = p / 16 * 16, members = parts - group < 16 ? parts - group : 16;
            uint32_t at = 0;
            memcpy(&at, index + ((group + i % members) * columns + i / members) * (int64_t)index_bytes, index_bytes);
            assert_int_equal(got[p * elems + i], source[p * 300 + 10 + at]);
        }
    uint32_t outside = 290;
    memcpy(index + index_bytes * (size_t)((parts - 1) * columns), &outside, index_bytes);
    rig_write(rig, 0, tile, index);
    assert_int_equal(vtrn_core_peek(rig->core[0], &ap, got, (size_t)(parts * elems) * 2, &err), VTRN_FAULT);
    assert_non_null(strstr(err.text, "= 290 is outside 0..289"));
    assert_null(vtrn_core_fault(rig->core[0])); /* looking does not stop the core */
    free(source);
    free(got);
    free(index);
    rig_destroy(rig);
}

static void test_indirection(void **state)
{
    (void)state;
    indirect_case(128, 4, 64, VTRN_DT_U16);
    indirect_case(128, 4, 50, VTRN_DT_U32);
    indirect_case(32, 1, 16, VTRN_DT_I32);
    indirect_case(8, 3, 24, VTRN_DT_U32);
    indirect_case(40, 2, 16, VTRN_DT_U16);
    indirect_case(1, 5, 5, VTRN_DT_U16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_local_gather),
        cmocka_unit_test(test_local_gather_outside),
        cmocka_unit_test(test_nc_n_gather),
        cmocka_unit_test(test_indirection),
    };
    return cmocka_run_group_tests_name("exec_gather", tests, NULL, NULL);
}
