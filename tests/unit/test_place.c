/* place: tensors that live at the same time never share bytes, given addresses stay, and what does not fit is said so. */
#include "unit.h"

#include "gen.h"
#include "place/place.h"

static uint32_t add_tensor(struct vtrn_prog *prog, int space, int64_t partitions, int64_t bytes)
{
    struct vtrn_tensor t = { .space = (uint8_t)space, .dtype = VTRN_DT_U8, .rank = 2, .dim = { partitions, bytes } };
    struct vtrn_error err = { 0 };
    uint32_t index;

    if (vtrn_prog_tensor(prog, &t, &index, &err) < 0) fail_msg("%s", err.text);
    return index;
}

/* An instruction that does nothing but name the tensor. */
static void use(struct vtrn_prog *prog, uint32_t tensor)
{
    static struct vtrn_inst inst;
    struct vtrn_error err = { 0 };

    vtrn_inst_init(&inst, VTRN_OP_memset);
    inst.arg[0].kind = VTRN_V_AP;
    inst.arg[0].ap = (struct vtrn_ap){ .tensor = tensor, .dtype = VTRN_DT_U8, .ndim = 2, .dim = { { 1, 1 }, { 1, 1 } } };
    inst.arg[1].kind = VTRN_V_NUM;
    inst.arg[1].num = 1;
    if (vtrn_prog_append(prog, 0, &inst, NULL, &err) < 0) fail_msg("%s", err.text);
}

static struct vtrn_place *place_of(struct vtrn_prog *prog)
{
    struct vtrn_error err = { 0 };
    struct vtrn_place *place = NULL;

    if (vtrn_place_create(prog, NULL, &place, &err) < 0) fail_msg("%s", err.text);
    return place;
}

static bool share_bytes(const struct vtrn_prog *prog, const struct vtrn_place *place, uint32_t a, uint32_t b)
{
    const struct vtrn_tensor *ta = &prog->tensor[a], *tb = &prog->tensor[b];
    const struct vtrn_spot *sa = &place->spot[a], *sb = &place->spot[b];

    return sa->partition < sb->partition + tb->partitions && sb->partition < sa->partition + ta->partitions &&
           sa->byte < sb->byte + tb->row_bytes && sb->byte < sa->byte + ta->row_bytes;
}

static void check_place(const struct vtrn_prog *prog, const struct vtrn_place *place)
{
    for (uint32_t a = 0; a < prog->tensors; a++) {
        const struct vtrn_tensor *ta = &prog->tensor[a];
        const struct vtrn_spot *sa = &place->spot[a];

        if (!vtrn_space_on_chip(ta->space) || ta->first_use == UINT32_MAX) {
            assert_int_equal(sa->kind, VTRN_SPOT_NONE);
            continue;
        }
        if (ta->has_address) {
            assert_int_equal(sa->kind, VTRN_SPOT_GIVEN);
            assert_int_equal(sa->byte, ta->addr_byte);
            assert_int_equal(sa->partition, ta->addr_partition);
        }
        if (sa->kind == VTRN_SPOT_CHOSEN) {
            int64_t limit = place->use[0][ta->space == VTRN_PSUM].limit_bytes;

            assert_true(sa->byte + ta->row_bytes <= limit);
            assert_int_equal(sa->partition % (ta->partitions > 64 ? 128 : ta->partitions > 32 ? 64 : 32), 0);
            if (ta->space == VTRN_PSUM) assert_true(ta->row_bytes > 2048 ? sa->byte % 2048 == 0 : sa->byte / 2048 == (sa->byte + ta->row_bytes - 1) / 2048);
        }
        for (uint32_t b = 0; b < a; b++) {
            const struct vtrn_tensor *tb = &prog->tensor[b];
            bool together = tb->first_use <= ta->last_use && ta->first_use <= tb->last_use;

            if (tb->space != ta->space || tb->first_use == UINT32_MAX || !together) continue;
            if (sa->kind != VTRN_SPOT_CHOSEN && place->spot[b].kind != VTRN_SPOT_CHOSEN) continue; /* given addresses may alias */
            if (sa->kind == VTRN_SPOT_SPILLED || place->spot[b].kind == VTRN_SPOT_SPILLED) continue;
            if (share_bytes(prog, place, a, b)) fail_msg("tensors %u and %u share bytes", b, a);
        }
    }
}

/* Random tensors with random lives; some with addresses, some in PSUM; now and then too much. */
static void live_tensors_never_share_bytes(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 300; seed++) {
        struct gen gen = gen_seeded(seed);
        struct vtrn_error err = { 0 };
        struct vtrn_prog *prog = vtrn_prog_create(vtrn_arch_find(seed % 2 ? "trn2" : "trn1"), 1, &err);
        struct vtrn_place *place;
        int count = (int)gen_range(&gen, 1, 120);
        int64_t most = gen_chance(&gen, 30) ? 60000 : 9000;

        for (int i = 0; i < count; i++) {
            bool psum = gen_chance(&gen, 25);
            struct vtrn_tensor t = { .space = psum ? VTRN_PSUM : VTRN_SBUF,
                                     .dtype = VTRN_DT_U8,
                                     .rank = 2,
                                     .dim = { gen_chance(&gen, 60) ? 128 : gen_range(&gen, 1, 128), gen_range(&gen, 1, psum ? 5000 : most) } };
            uint32_t index;

            if (gen_chance(&gen, 10)) {
                t.has_address = 1;
                t.dim[0] = 32;
                t.addr_partition = (uint16_t)(32 * gen_range(&gen, 0, 3));
                t.addr_byte = (uint32_t)gen_range(&gen, 0, psum ? 10000 : 100000);
            }
            if (vtrn_prog_tensor(prog, &t, &index, &err) < 0) fail_msg("%s", err.text);
            use(prog, index);
            for (int again = (int)gen_range(&gen, 0, 3); again > 0; again--) use(prog, (uint32_t)gen_range(&gen, index > 12 ? index - 12 : 0, index));
        }
        place = place_of(prog);
        check_place(prog, place);
        for (int space = 0; space < VTRN_PLACE_SPACES; space++) {
            const struct vtrn_place_use *use = &place->use[0][space];

            if (use->peak_bytes > use->limit_bytes) assert_true(use->spilled > 0);
            assert_int_equal(vtrn_place_check(place, NULL) < 0, (place->use[0][0].spilled && place->use[0][0].peak_bytes > place->use[0][0].limit_bytes) ||
                                                                    (place->use[0][1].spilled && place->use[0][1].peak_bytes > place->use[0][1].limit_bytes));
        }
        vtrn_place_destroy(place);
        vtrn_prog_destroy(prog);
    }
}

static void one_tile_too_much_is_said_with_peak_limit_and_tensors(void **state)
{
    struct vtrn_error err = { 0 };
    struct vtrn_prog *prog = vtrn_prog_create(vtrn_arch_find("trn2"), 1, &err);
    uint32_t t[4], top[2];
    struct vtrn_place *place;

    (void)state;
    for (int i = 0; i < 3; i++) use(prog, t[i] = add_tensor(prog, VTRN_SBUF, 128, 70000));
    place = place_of(prog);
    assert_int_equal(vtrn_place_check(place, &err), VTRN_OK); /* one after the other: they fit */
    vtrn_place_destroy(place);
    use(prog, t[3] = add_tensor(prog, VTRN_SBUF, 128, 80000));
    for (int i = 0; i < 4; i++) use(prog, t[i]);
    place = place_of(prog);
    assert_int_equal(vtrn_place_check(place, &err), VTRN_LIMIT);
    assert_non_null(strstr(err.text, "290000 bytes per partition are live at once > 212984"));
    assert_int_equal(place->use[0][VTRN_PLACE_SBUF].peak_bytes, 290000);
    assert_int_equal(vtrn_place_peak(place, 0, VTRN_PLACE_SBUF, top, 2), 4);
    assert_int_equal(top[0], t[3]);
    vtrn_place_destroy(place);
    vtrn_prog_destroy(prog);
}

/* Tiles of a few partitions lie beside each other in one column of bytes. */
static void quadrants_hold_narrow_tensors_side_by_side(void **state)
{
    struct vtrn_error err = { 0 };
    struct vtrn_prog *prog = vtrn_prog_create(vtrn_arch_find("trn2"), 1, &err);
    struct vtrn_place *place;
    uint32_t t[4];

    (void)state;
    for (int i = 0; i < 4; i++) t[i] = add_tensor(prog, VTRN_SBUF, 32, 150000);
    for (int turn = 0; turn < 2; turn++)
        for (int i = 0; i < 4; i++) use(prog, t[i]);
    place = place_of(prog);
    check_place(prog, place);
    assert_int_equal(place->use[0][VTRN_PLACE_SBUF].spilled, 0);
    assert_int_equal(vtrn_place_check(place, &err), VTRN_OK);
    vtrn_place_destroy(place);
    vtrn_prog_destroy(prog);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(live_tensors_never_share_bytes),
        cmocka_unit_test(one_tile_too_much_is_said_with_peak_limit_and_tensors),
        cmocka_unit_test(quadrants_hold_narrow_tensors_side_by_side),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
