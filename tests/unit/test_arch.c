/* arch: every generation has every number, with a basis and a source; targets are found by all their names. */
#include "unit.h"

#include "arch/arch.h"

static void targets_are_found_by_every_name(void **state)
{
    static const struct {
        const char *name, *chip;
    } target[] = {
        { "trn1", "trn1" }, { "TRN1", "trn1" }, { "inf2", "inf2" }, { "gen2", "trn1" }, { "v2", "trn1" }, { "trn2", "trn2" },
        { "Gen3", "trn2" }, { "v3", "trn2" },   { "trn3", "trn3" }, { "gen4", "trn3" }, { "V4", "trn3" },
        { "trn1n", "trn1" }, { "Trn2u", "trn2" }, { "trn3pre", "trn3" }, { "trn3u", "trn3" }, { "inf2.xlarge", "inf2" },
        { "trn1n.32xlarge", "trn1" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof target / sizeof target[0]; i++) {
        const struct vtrn_arch *arch = vtrn_arch_find(target[i].name);

        assert_non_null(arch);
        assert_string_equal(arch->chip, target[i].chip);
    }
    assert_null(vtrn_arch_find("trn9"));
    assert_null(vtrn_arch_find(".xlarge"));
    assert_null(vtrn_arch_find("trn1nn"));
    assert_null(vtrn_arch_find(""));
    assert_null(vtrn_arch_find(NULL));
}

static void the_list_is_in_order(void **state)
{
    static const char *const chip[] = { "trn1", "inf2", "trn2", "trn3" };

    (void)state;
    for (int i = 0; i < 4; i++) assert_string_equal(vtrn_arch_list(i)->chip, chip[i]);
    assert_null(vtrn_arch_list(4));
    assert_null(vtrn_arch_list(-1));
}

static void every_number_has_a_source(void **state)
{
    const struct vtrn_arch *arch;

    (void)state;
    for (int i = 0; (arch = vtrn_arch_list(i)) != NULL; i++) {
        const struct vtrn_arch_fact *fact = arch->facts;

#define FIELD(field, unit_, doc_) \
        assert_non_null(fact->name); \
        assert_string_equal(fact->name, #field); \
        assert_string_equal(fact->unit, unit_); \
        assert_string_equal(fact->doc, doc_); \
        assert_true(fact->value == arch->field && fact->value > 0); \
        assert_true(strlen(fact->source) >= 2); \
        assert_string_not_equal(vtrn_basis_name(fact->basis), "unknown"); \
        fact++;
        VTRN_ARCH_SIZES(FIELD)
#undef FIELD
        assert_null(fact->name);
    }
}

/* The peak rates that the documentation prints follow from array size and clock: a wrong digit in either shows. */
static void the_tensor_engine_reaches_its_printed_rate(void **state)
{
    static const struct {
        const char *chip;
        int tflops; /* bf16, one core */
        int64_t sbuf_mib;
    } expect[] = { { "trn1", 92, 24 }, { "inf2", 92, 24 }, { "trn2", 79, 28 }, { "trn3", 79, 32 } };

    (void)state;
    for (size_t i = 0; i < sizeof expect / sizeof expect[0]; i++) {
        const struct vtrn_arch *arch = vtrn_arch_find(expect[i].chip);
        double tflops = 2.0 * (double)arch->pe_rows * (double)arch->pe_columns * (double)arch->pe_clock / 1e12;

        assert_in_range((int)(tflops + 0.5), expect[i].tflops, expect[i].tflops);
        assert_int_equal(arch->partitions * arch->sbuf_partition_bytes, expect[i].sbuf_mib << 20);
        assert_int_equal(arch->partitions * arch->psum_banks * arch->psum_bank_bytes, 2 << 20);
        assert_true(arch->sbuf_usable_bytes < arch->sbuf_partition_bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(targets_are_found_by_every_name),
        cmocka_unit_test(the_list_is_in_order),
        cmocka_unit_test(every_number_has_a_source),
        cmocka_unit_test(the_tensor_engine_reaches_its_printed_rate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
