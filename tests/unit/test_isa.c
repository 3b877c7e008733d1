/* isa: descriptor tables, lookups by name, empty instructions, storage, counts of patterns. */
#include "unit.h"

#include "isa/isa.h"

static void rows_are_consistent(void **state)
{
    int rows = 0;

    (void)state;
    for (int op = 0; op < VTRN_OPCODES; op++) {
        const struct vtrn_op_info *row = &vtrn_ops[op];

        if (!row->name) continue;
        rows++;
        assert_int_equal(row->code, op);
        assert_int_equal(vtrn_op_by_name(row->name, strlen(row->name)), op);
        assert_null(vtrn_op_retired(op));
        assert_in_range(row->first_version, 2, 4);
        assert_true(row->engines >> row->default_engine & 1);
        assert_string_not_equal(vtrn_rule_text((enum vtrn_rule)row->rule), "none");
        assert_true(strlen(row->doc) > 5);
        assert_true(row->operands <= VTRN_MAX_OPERANDS);
        assert_null(row->operand[row->operands].name);
        for (int i = 0; i < row->operands; i++) {
            const struct vtrn_operand_info *info = &row->operand[i];
            bool tensor = info->kind == VTRN_K_TENSOR || info->kind == VTRN_K_TENSORS || info->kind == VTRN_K_TENSOR_OR_NUM ||
                          info->kind == VTRN_K_SCALAR;

            for (int k = 0; k < i; k++) assert_string_not_equal(row->operand[k].name, info->name);
            assert_int_equal(tensor, info->spaces != 0);
            assert_int_equal(tensor, info->dtypes != 0);
            if (info->kind == VTRN_K_TENSOR) assert_true(info->access & (VTRN_READ | VTRN_WRITE));
            if (info->kind == VTRN_K_INT) assert_true(info->min <= info->max);
            if (info->kind == VTRN_K_INT && info->has_default) assert_true(info->dflt >= info->min && info->dflt <= info->max);
            if (info->kind == VTRN_K_ENUM) assert_non_null(vtrn_enum_name((enum vtrn_enum_set)info->set, (int)info->dflt));
            if (info->kind == VTRN_K_INTS || info->kind == VTRN_K_TENSORS) assert_true(info->max_count > 0);
        }
    }
    assert_true(rows >= 54);
    assert_int_equal(vtrn_op_by_name("nc_matmu", 8), VTRN_OP_NONE);
    assert_int_equal(vtrn_op_by_name("nc_matmul_", 10), VTRN_OP_NONE);
    assert_int_equal(vtrn_op_by_name("nc_matmul(", 9), VTRN_OP_nc_matmul); /* length bounds the name */
}

static void a_row_reads_as_written(void **state)
{
    const struct vtrn_op_info *row = &vtrn_ops[VTRN_OP_nc_matmul];

    (void)state;
    assert_int_equal(row->engines, 1 << VTRN_ENGINE_TENSOR);
    assert_int_equal(row->operands, 10);
    assert_string_equal(row->operand[0].name, "dst");
    assert_int_equal(row->operand[0].access, VTRN_READ | VTRN_WRITE);
    assert_int_equal(row->operand[0].spaces, VTRN_IN_P);
    assert_int_equal(row->operand[1].access, VTRN_READ);
    assert_int_equal(row->operand[1].spaces, VTRN_IN_S);
    assert_int_equal(row->operand[6].kind, VTRN_K_TRI);
    assert_int_equal(row->operand[7].max_count, 2);
    assert_true(row->operand[7].optional);
    assert_int_equal(vtrn_ops[VTRN_OP_tensor_copy].engines,
                     1 << VTRN_ENGINE_VECTOR | 1 << VTRN_ENGINE_SCALAR | 1 << VTRN_ENGINE_GPSIMD);
    assert_int_equal(vtrn_ops[VTRN_OP_register_alu].engines & 1 << VTRN_ENGINE_DMA, 0);
    assert_int_equal(vtrn_ops[VTRN_OP_nc_matmul_mx].first_version, 4);
    row = &vtrn_ops[VTRN_OP_dma_compute];
    assert_int_equal(row->operand[1].kind, VTRN_K_TENSORS);
    assert_int_equal(row->operand[1].max_count, 16);
    assert_int_equal(row->operand[1].spaces, VTRN_IN_S | VTRN_IN_H);
}

static void an_empty_instruction_has_the_rows_defaults(void **state)
{
    static struct vtrn_inst inst;
    const struct vtrn_args_activation *activation;
    const struct vtrn_args_range_select *select;

    (void)state;
    memset(&inst, 0xee, sizeof inst);
    vtrn_inst_init(&inst, VTRN_OP_activation);
    activation = VTRN_ARGS(activation, &inst);
    assert_ptr_equal(&activation->data, &inst.arg[2]);
    assert_int_equal(inst.engine, VTRN_ENGINE_UNKNOWN);
    assert_int_equal(inst.loc | inst.name | inst.flags | (uint32_t)inst.ndyns | (uint32_t)inst.naps | (uint32_t)inst.nints, 0);
    assert_int_equal(activation->dst.kind, VTRN_V_NONE);
    assert_int_equal(activation->bias.kind, VTRN_V_NONE);
    assert_int_equal(activation->scale.kind, VTRN_V_NUM);
    assert_true(activation->scale.num == 1.0 && !activation->scale.is_int);
    assert_int_equal(activation->reduce_op.kind, VTRN_V_NONE);
    assert_int_equal(activation->reduce_cmd.kind, VTRN_V_INT);
    assert_int_equal(activation->reduce_cmd.i, VTRN_REDUCE_CMD_IDLE);

    vtrn_inst_init(&inst, VTRN_OP_range_select);
    select = VTRN_ARGS(range_select, &inst);
    assert_int_equal(select->reduce_cmd.i, VTRN_REDUCE_CMD_RESET_REDUCE);
    assert_int_equal(select->comp_op0.i, VTRN_CMP_EQUAL);
    assert_true((float)select->on_false_value.num == -3.4028234663852886e38f);

    vtrn_inst_init(&inst, VTRN_OP_nc_matmul);
    assert_int_equal(VTRN_ARGS(nc_matmul, &inst)->accumulate.kind, VTRN_V_NONE);
    assert_int_equal(VTRN_ARGS(nc_matmul, &inst)->is_transpose.kind, VTRN_V_INT);
    assert_int_equal(VTRN_ARGS(nc_matmul, &inst)->is_transpose.i, 0);
    vtrn_inst_init(&inst, VTRN_OP_dma_compute);
    assert_int_equal(VTRN_ARGS(dma_compute, &inst)->unique_indices.i, 1);
    vtrn_inst_init(&inst, VTRN_OP_nonzero_with_count);
    assert_int_equal(VTRN_ARGS(nonzero_with_count, &inst)->padding_val.i, -1);
    assert_int_equal(VTRN_ARGS(nonzero_with_count, &inst)->index_offset.i, 0);
    for (int op = 1; op < VTRN_OPCODES; op++) {
        if (!vtrn_ops[op].name) continue;
        vtrn_inst_init(&inst, (enum vtrn_opcode)op);
        for (int i = 0; i < vtrn_ops[op].operands; i++)
            assert_true(vtrn_value_is_initial(&inst.arg[i], &vtrn_ops[op].operand[i]));
    }
}

static void storage_is_bounded(void **state)
{
    static struct vtrn_inst inst;

    (void)state;
    vtrn_inst_init(&inst, VTRN_OP_dma_compute);
    assert_ptr_equal(vtrn_inst_new_aps(&inst, 3), &inst.aps[0]);
    assert_ptr_equal(vtrn_inst_new_aps(&inst, VTRN_INST_APS - 3), &inst.aps[3]);
    assert_null(vtrn_inst_new_aps(&inst, 1));
    assert_null(vtrn_inst_new_aps(&inst, -1));
    assert_non_null(vtrn_inst_new_ints(&inst, VTRN_INST_INTS));
    assert_null(vtrn_inst_new_ints(&inst, 1));
    assert_null(vtrn_inst_new_dyns(&inst, VTRN_INST_DYNS + 1));
    assert_ptr_equal(vtrn_inst_new_dyns(&inst, VTRN_INST_DYNS), &inst.dyns[0]);
    assert_null(vtrn_inst_new_dyns(&inst, INT32_MAX));
}

static void dtypes_are_found_by_every_name(void **state)
{
    (void)state;
    for (int i = 1; i < VTRN_DT_COUNT; i++) {
        const struct vtrn_dtype_info *info = &vtrn_dtypes[i];

        assert_int_equal(vtrn_dtype_by_nki_name(info->nki_name), i);
        assert_int_equal(vtrn_dtype_by_text(info->text, strlen(info->text)), i);
        assert_true(info->size_bytes == 1 || info->size_bytes == 2 || info->size_bytes == 4);
        assert_int_equal(info->cls == VTRN_CLASS_PACKED, info->lanes == 4);
    }
    assert_int_equal(vtrn_dtype_by_nki_name("float8e4"), VTRN_DT_F8E4M3);
    assert_int_equal(vtrn_dtype_by_nki_name("float8e5"), VTRN_DT_F8E5M2);
    assert_int_equal(vtrn_dtype_by_nki_name("bool"), VTRN_DT_BOOL);
    assert_int_equal(vtrn_dtype_by_nki_name("bool_"), VTRN_DT_BOOL);
    assert_int_equal(vtrn_dtype_by_nki_name("float64"), VTRN_DT_NONE);
    assert_int_equal(vtrn_dtype_by_nki_name(NULL), VTRN_DT_NONE);
    assert_int_equal(vtrn_dtype_by_text("bf16x", 4), VTRN_DT_BF16);
    assert_int_equal(vtrn_dtype_by_text("bf16x", 5), VTRN_DT_NONE);
    assert_int_equal(vtrn_dtype_by_text("", 0), VTRN_DT_NONE);
}

static void operators_and_functions_are_found(void **state)
{
    (void)state;
    for (int i = 1; i < VTRN_ALU_COUNT; i++)
        assert_int_equal(vtrn_alu_by_name(vtrn_alus[i].nki_name, strlen(vtrn_alus[i].nki_name)), i);
    for (int i = 1; i < VTRN_ACT_COUNT; i++)
        assert_int_equal(vtrn_act_by_name(vtrn_acts[i].nki_name, strlen(vtrn_acts[i].nki_name)), i);
    assert_int_equal(vtrn_alu_by_name("plus", 4), VTRN_ALU_NONE);
    assert_int_equal(vtrn_act_by_name("", 0), VTRN_ACT_NONE);
}

static void operator_sets_follow_the_reference(void **state)
{
    static const enum vtrn_alu reduces[] = { VTRN_ALU_ADD, VTRN_ALU_SUBTRACT, VTRN_ALU_MULTIPLY, VTRN_ALU_MAXIMUM, VTRN_ALU_MINIMUM,
                                             VTRN_ALU_LOGICAL_AND, VTRN_ALU_LOGICAL_OR, VTRN_ALU_LOGICAL_XOR, VTRN_ALU_ABS_MAX,
                                             VTRN_ALU_ABS_MIN, VTRN_ALU_BITWISE_AND, VTRN_ALU_BITWISE_OR, VTRN_ALU_BITWISE_XOR };
    size_t count = 0;

    (void)state;
    for (size_t i = 0; i < sizeof reduces / sizeof reduces[0]; i++) assert_true(vtrn_alu_in_set(reduces[i], VTRN_ALUSET_REDUCE));
    for (int i = 0; i < VTRN_ALU_COUNT; i++) count += vtrn_alu_in_set((enum vtrn_alu)i, VTRN_ALUSET_REDUCE);
    assert_int_equal(count, sizeof reduces / sizeof reduces[0]);
    assert_true(vtrn_alu_in_set(VTRN_ALU_AVERAGE, VTRN_ALUSET_PARTITION_REDUCE));
    assert_false(vtrn_alu_in_set(VTRN_ALU_MINIMUM, VTRN_ALUSET_PARTITION_REDUCE));
    assert_false(vtrn_alu_in_set(VTRN_ALU_AVERAGE, VTRN_ALUSET_ANY));
    assert_true(vtrn_alu_in_set(VTRN_ALU_INVERT, VTRN_ALUSET_ANY));
    assert_false(vtrn_alu_in_set(VTRN_ALU_INVERT, VTRN_ALUSET_ARITH));
    assert_true(vtrn_alu_in_set(VTRN_ALU_BYPASS, VTRN_ALUSET_ARITH));
    assert_true(vtrn_alu_in_set(VTRN_ALU_ADD, VTRN_ALUSET_DMA));
    assert_false(vtrn_alu_in_set(VTRN_ALU_MAXIMUM, VTRN_ALUSET_DMA));
    assert_false(vtrn_alu_in_set(VTRN_ALU_NONE, VTRN_ALUSET_ANY));
    assert_false(vtrn_alu_in_set((enum vtrn_alu)200, VTRN_ALUSET_ANY));
}

static void enums_are_walked_and_found(void **state)
{
    const char *name;
    int value, members;

    (void)state;
    for (int set = 1; set < VTRN_ENUMS_COUNT; set++) {
        assert_non_null(vtrn_enum_set_name((enum vtrn_enum_set)set));
        for (members = 0; vtrn_enum_member((enum vtrn_enum_set)set, members, &name, &value); members++) {
            int found = -1;

            assert_string_equal(vtrn_enum_name((enum vtrn_enum_set)set, value), name);
            assert_true(vtrn_enum_value((enum vtrn_enum_set)set, name, strlen(name), &found));
            assert_int_equal(found, value);
        }
        assert_true(members >= 2);
    }
    assert_string_equal(vtrn_engine_name(VTRN_ENGINE_GPSIMD), "gpsimd");
    assert_string_equal(vtrn_engine_name(99), "unknown");
    assert_string_equal(vtrn_enum_name(VTRN_ENUMS_DGE, VTRN_DGE_HWDGE), "hwdge");
    assert_null(vtrn_enum_name(VTRN_ENUMS_DGE, 77));
    assert_null(vtrn_enum_set_name((enum vtrn_enum_set)VTRN_ENUMS_COUNT));
    assert_false(vtrn_enum_value(VTRN_ENUMS_OOB, "skipp", 5, &value));
    assert_string_equal(vtrn_space_name(VTRN_HBM_SHARED), "shared_hbm");
}

static struct vtrn_ap pattern(int ndim, const struct vtrn_dim *dim, int64_t offset)
{
    struct vtrn_ap ap = { .dtype = VTRN_DT_F32, .ndim = (uint8_t)ndim, .offset = offset };

    memcpy(ap.dim, dim, (size_t)ndim * sizeof *dim);
    return ap;
}

static void patterns_are_counted(void **state)
{
    const struct vtrn_dim dim[] = { { 1, 128 }, { 512, 4 }, { -1, 100 } };
    const struct vtrn_dim huge[] = { { 1, INT64_MAX }, { 1, INT64_MAX }, { INT64_MAX, 3 } };
    const struct vtrn_dim empty[] = { { 1, 128 }, { 1, INT64_MAX }, { 1, INT64_MAX }, { 1, 0 } };
    struct vtrn_dyn dyn = { .kind = VTRN_DYN_VECTOR };
    struct vtrn_ap ap = pattern(3, dim, 300);
    int64_t low, high;

    (void)state;
    assert_int_equal(vtrn_ap_free_elems(&ap), 400);
    assert_int_equal(vtrn_ap_elems(&ap), 128 * 400);
    assert_true(vtrn_ap_extent(&ap, true, &low, &high));
    assert_int_equal(low, 300 - 99);
    assert_int_equal(high, 300 + 3 * 512);
    assert_true(vtrn_ap_extent(&ap, false, &low, &high));
    assert_int_equal(high, 300 + 3 * 512 + 127);
    ap.dyn = &dyn;
    ap.ndyn = 1;
    assert_true(vtrn_ap_extent(&ap, false, &low, &high)); /* an index vector takes the place of dim[0] */
    assert_int_equal(high, 300 + 3 * 512);

    ap = pattern(3, huge, 0);
    assert_true(vtrn_ap_elems(&ap) == INT64_MAX);
    assert_true(vtrn_ap_free_elems(&ap) == INT64_MAX);
    assert_false(vtrn_ap_extent(&ap, true, &low, &high));
    ap = pattern(2, huge, INT64_MAX);
    assert_false(vtrn_ap_extent(&ap, true, &low, &high));
    ap = pattern(4, empty, 0);
    assert_int_equal(vtrn_ap_elems(&ap), 0);
    assert_false(vtrn_ap_extent(&ap, true, &low, &high));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_consistent),
        cmocka_unit_test(a_row_reads_as_written),
        cmocka_unit_test(an_empty_instruction_has_the_rows_defaults),
        cmocka_unit_test(storage_is_bounded),
        cmocka_unit_test(dtypes_are_found_by_every_name),
        cmocka_unit_test(operators_and_functions_are_found),
        cmocka_unit_test(operator_sets_follow_the_reference),
        cmocka_unit_test(enums_are_walked_and_found),
        cmocka_unit_test(patterns_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
