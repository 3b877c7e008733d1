/* The public API as a stranger uses it: only include/vtrn and the shared library. Programs in and out, wrong arguments,
 * runs, results, counters, faults, targets, and callers built against an older header. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "vtrn/vtrn.h"

static const char gather[] = "vtrn 1\n"
                             "target trn2\n"
                             "cores 1\n"
                             "name \"gather\"\n"
                             "loc 1 \"gather.py\" 12\n"
                             "tensor 0 \"table\" hbm f32 [16, 8] input core=all\n"
                             "tensor 1 \"indices\" hbm i32 [4, 1] input core=all\n"
                             "tensor 2 \"rows\" shared_hbm f32 [4, 8] output core=all\n"
                             "tensor 3 \"index\" sbuf i32 [4, 1]\n"
                             "tensor 4 \"tile\" sbuf f32 [4, 8]\n"
                             "core 0\n"
                             "  dma dma_copy dst=%index[0:4; 0+1x1] src=%indices[0+1x4+1x1] @1\n"
                             "  dma dma_copy dst=%tile[0:4; 0+1x8] src=%table[0+8x4+1x8 | vector %index:i32[0; 0+1x4]*8<16] @1\n"
                             "  dma dma_copy dst=%rows[0+8x4+1x8] src=%tile[0:4; 0+1x8] @1\n";

static struct vtrn_program *parse(const char *text)
{
    struct vtrn_program *program = NULL;
    struct vtrn_error err;

    if (vtrn_program_parse(text, strlen(text), &program, &err) < 0) fail_msg("%s", err.text);
    return program;
}

static void programs_go_round(void **state)
{
    struct vtrn_program *program = parse(gather), *again;
    struct vtrn_error err;
    char *text, *text_again, path[] = "/tmp/vtrn-api-XXXXXX";
    void *bytes;
    size_t size, size_again, file_size;

    (void)state;
    assert_int_equal(vtrn_program_print(program, &text, &size, &err), VTRN_OK);
    assert_int_equal(strlen(text), size);
    assert_int_equal(vtrn_program_save(program, &bytes, &file_size, &err), VTRN_OK);
    assert_int_equal(vtrn_program_verify(program, &err), VTRN_OK);
    assert_int_equal(vtrn_program_load(bytes, file_size, &again, &err), VTRN_OK);
    assert_int_equal(vtrn_program_print(again, &text_again, &size_again, &err), VTRN_OK);
    assert_string_equal(text, text_again);
    vtrn_program_destroy(again);
    vtrn_free(text_again);
    assert_true(close(mkstemp(path)) == 0);
    assert_int_equal(vtrn_program_save_file(program, path, &err), VTRN_OK);
    assert_int_equal(vtrn_program_load_file(path, &again, &err), VTRN_OK);
    vtrn_program_destroy(again);
    unlink(path);
    assert_int_equal(vtrn_program_load_file(path, &again, &err), VTRN_IO);
    assert_true(strstr(err.text, path) != NULL);
    assert_int_equal(vtrn_program_load(bytes, file_size - 1, &again, &err), VTRN_FORMAT);
    assert_int_equal(vtrn_program_load(bytes, file_size - 1, &again, NULL), VTRN_FORMAT); /* err may be NULL */
    assert_int_equal(vtrn_program_parse("vtrn 9", 6, &again, &err), VTRN_FORMAT);
    vtrn_free(text);
    vtrn_free(bytes);
    vtrn_program_destroy(program);
    vtrn_program_destroy(NULL);
}

static void programs_say_what_they_are(void **state)
{
    struct vtrn_program *program = parse(gather);
    struct vtrn_program_info info;
    struct vtrn_tensor_info tensor;
    struct vtrn_use_info use;
    struct vtrn_error err;
    uint32_t found;

    (void)state;
    assert_int_equal(vtrn_program_get(program, &info, sizeof info), VTRN_OK);
    assert_string_equal(info.name, "gather");
    assert_string_equal(info.target, "trn2");
    assert_int_equal(info.instructions, 3);
    assert_int_equal(info.inputs, 2);
    assert_int_equal(info.outputs, 1);
    assert_int_equal(info.replayable, 1);
    assert_int_equal(vtrn_program_input(program, 1), 1);
    assert_int_equal(vtrn_program_input(program, 2), UINT32_MAX);
    assert_int_equal(vtrn_program_output(program, 0), 2);
    assert_int_equal(vtrn_program_tensor(program, 1, &tensor, sizeof tensor), VTRN_OK);
    assert_string_equal(tensor.dtype, "int32");
    assert_int_equal(tensor.size_bytes, 16);
    assert_int_equal(tensor.kind, VTRN_TENSOR_INPUT);
    assert_false(tensor.written);
    assert_int_equal(vtrn_program_tensor(program, 4, &tensor, sizeof tensor), VTRN_OK);
    assert_string_equal(tensor.space, "sbuf");
    assert_int_equal(tensor.size_bytes, 4 * 8 * 4);
    assert_int_equal(tensor.core, 0);
    assert_true(tensor.written);
    assert_int_equal(vtrn_program_tensor(program, 5, &tensor, sizeof tensor), VTRN_INVALID);
    assert_int_equal(vtrn_program_find(program, "rows", &found, &err), VTRN_OK);
    assert_int_equal(found, 2);
    assert_int_equal(vtrn_program_find(program, "tile", &found, &err), VTRN_INVALID);
    assert_true(strstr(err.text, "table, indices, rows") != NULL);
    assert_true(vtrn_program_use(program, 0, &use, sizeof use));
    assert_string_equal(use.name, "dma_copy");
    assert_int_equal(use.count, 3);
    assert_false(vtrn_program_use(program, 1, &use, sizeof use));
    vtrn_program_destroy(program);
}

/* A caller who knows fewer fields gets those, and not a byte more. */
static void older_callers(void **state)
{
    struct vtrn_program *program = parse(gather);
    struct vtrn_program_info info;
    struct vtrn_machine_options options;
    struct vtrn_machine *machine;

    (void)state;
    memset(&info, 0x5a, sizeof info);
    assert_int_equal(vtrn_program_get(program, &info, offsetof(struct vtrn_program_info, cores)), VTRN_OK);
    assert_string_equal(info.target, "trn2");
    assert_int_equal(info.cores, 0x5a5a5a5a);
    memset(&options, 0xff, sizeof options); /* fields behind the caller's size must not be looked at */
    options.size_bytes = offsetof(struct vtrn_machine_options, stochastic_rounding);
    options.threads = 1;
    assert_int_equal(vtrn_machine_create(program, &options, &machine, NULL), VTRN_OK);
    vtrn_machine_destroy(machine);
    options.size_bytes = 0;
    assert_int_equal(vtrn_machine_create(program, &options, &machine, NULL), VTRN_INVALID);
    vtrn_program_destroy(program);
}

static void runs(void **state)
{
    struct vtrn_program *program = parse(gather);
    struct vtrn_machine *machine;
    struct vtrn_counter_info counter;
    struct vtrn_fault_info fault;
    struct vtrn_error err;
    float table[16][8];
    int32_t indices[4] = { 3, 0, 15, 3 };
    const float *rows;
    const void *bytes;
    size_t size;

    (void)state;
    for (int i = 0; i < 128; i++) table[i / 8][i % 8] = (float)i;
    assert_int_equal(vtrn_machine_create(program, NULL, &machine, &err), VTRN_OK);
    assert_int_equal(vtrn_machine_read(machine, 2, &bytes, &size, &err), VTRN_INVALID); /* nothing has run */
    assert_int_equal(vtrn_machine_run(machine, &err), VTRN_INVALID);
    assert_true(strstr(err.text, "table (float32 [16, 8])") != NULL);
    assert_int_equal(vtrn_machine_bind(machine, 0, table, sizeof table - 4, &err), VTRN_INVALID);
    assert_int_equal(vtrn_machine_bind(machine, 2, table, 4 * 8 * 4, &err), VTRN_INVALID);
    assert_int_equal(vtrn_machine_bind(machine, 77, table, sizeof table, &err), VTRN_INVALID);
    assert_int_equal(vtrn_machine_bind(machine, 0, table, sizeof table, &err), VTRN_OK);
    assert_int_equal(vtrn_machine_bind(machine, 1, indices, sizeof indices, &err), VTRN_OK);
    for (int turn = 0; turn < 2; turn++) { /* a run starts from nothing: twice is the same as once */
        if (vtrn_machine_run(machine, &err) < 0) fail_msg("%s", err.text);
        assert_false(vtrn_machine_fault(machine, &fault, sizeof fault));
        assert_int_equal(vtrn_machine_read(machine, 2, &bytes, &size, &err), VTRN_OK);
        assert_int_equal(size, 4 * 8 * 4);
        rows = bytes;
        for (int i = 0; i < 32; i++) assert_true(rows[i] == table[indices[i / 8]][i % 8]);
        assert_true(vtrn_machine_counter(machine, 0, &counter, sizeof counter));
        assert_string_equal(counter.name, "instructions");
        assert_int_equal(counter.value, 3);
    }
    assert_int_equal(vtrn_machine_read(machine, 4, &bytes, &size, &err), VTRN_INVALID); /* SBUF is gone */
    indices[2] = 16; /* bytes are borrowed: the next run sees it */
    assert_int_equal(vtrn_machine_run(machine, &err), VTRN_FAULT);
    assert_true(vtrn_machine_fault(machine, &fault, sizeof fault));
    assert_string_equal(fault.reason, "index");
    assert_int_equal(fault.instruction, 1);
    assert_string_equal(fault.file, "gather.py");
    assert_int_equal(fault.line, 12);
    assert_true(strstr(fault.disassembly, "dma_copy dst=%tile") != NULL);
    assert_true(strstr(fault.text, "16") != NULL);
    indices[2] = 1;
    assert_int_equal(vtrn_machine_run(machine, &err), VTRN_OK); /* a fault leaves nothing behind */
    assert_false(vtrn_machine_fault(machine, &fault, sizeof fault));
    vtrn_machine_destroy(machine);
    vtrn_machine_destroy(NULL);
    vtrn_program_destroy(program);
}

static void refuses_what_cannot_replay(void **state)
{
    struct vtrn_program *program;
    struct vtrn_machine *machine;
    struct vtrn_error err;
    char text[sizeof gather + 32];

    (void)state;
    snprintf(text, sizeof text, "vtrn 1\ntarget trn2\ncores 1\nname \"gather\"\nnot_replayable\n%s", strstr(gather, "loc 1"));
    program = parse(text);
    assert_int_equal(vtrn_machine_create(program, NULL, &machine, &err), VTRN_UNSUPPORTED);
    vtrn_program_destroy(program);
}

static void targets(void **state)
{
    struct vtrn_target_info info;
    struct vtrn_fact_info fact;
    struct vtrn_source_info source;
    struct vtrn_error err;
    int found;

    (void)state;
    assert_int_equal(vtrn_target_count(), 4);
    assert_int_equal(vtrn_target_get(4, &info, sizeof info), VTRN_INVALID);
    assert_int_equal(vtrn_target_get(-1, &info, sizeof info), VTRN_INVALID);
    for (int t = 0; t < 4; t++) {
        assert_int_equal(vtrn_target_get(t, &info, sizeof info), VTRN_OK);
        assert_int_equal(vtrn_target_find(info.name, &found, NULL), VTRN_OK);
        assert_int_equal(found, t);
        for (int f = 0; f < info.facts; f++) {
            assert_int_equal(vtrn_target_fact(t, f, &fact, sizeof fact), VTRN_OK);
            assert_true(*fact.source && *fact.basis);
        }
        assert_int_equal(vtrn_target_fact(t, info.facts, &fact, sizeof fact), VTRN_INVALID);
    }
    assert_int_equal(vtrn_target_find("v3", &found, NULL), VTRN_OK);
    assert_int_equal(found, 2);
    assert_int_equal(vtrn_target_find("gpu", &found, &err), VTRN_INVALID);
    assert_true(strstr(err.text, "trn1, inf2, trn2, trn3") != NULL);
    assert_true(vtrn_source_get(0, &source, sizeof source) && *source.document);
    assert_false(vtrn_source_get(99, &source, sizeof source));
}

static void timings(void **state)
{
    struct vtrn_program *program = parse(gather);
    struct vtrn_timing_options options;
    struct vtrn_timing_stream_info stream;
    struct vtrn_timing_memory_info memory;
    struct vtrn_timing_bytes_info bytes;
    struct vtrn_timing_step_info step;
    struct vtrn_timing_line_info line;
    struct vtrn_timing_why_info why;
    struct vtrn_timing_info info;
    struct vtrn_timing *timing = NULL;
    struct vtrn_error err;
    uint64_t steps = 0;

    (void)state;
    assert_int_equal(vtrn_timing_create(program, NULL, NULL, &timing, &err), VTRN_OK);
    assert_int_equal(vtrn_timing_get(timing, &info, sizeof info), VTRN_OK);
    assert_string_equal(info.level, "event");
    assert_true(info.total_ps == info.span_ps + info.kernel_ps && info.span_ps >= info.count_ps && info.steps == 3);
    for (int s = 0; vtrn_timing_stream(timing, 0, s, &stream, sizeof stream) == VTRN_OK; s++) {
        assert_true(stream.busy_ps + stream.wait_ps + stream.idle_ps == info.span_ps);
        steps += stream.steps;
    }
    assert_int_equal(steps, info.steps);
    assert_int_equal(vtrn_timing_stream(timing, 1, 0, &stream, sizeof stream), VTRN_INVALID);
    assert_int_equal(vtrn_timing_bytes(timing, 0, &bytes, sizeof bytes), VTRN_OK);
    assert_int_equal(bytes.hbm_write, 4 * 8 * 4);
    assert_int_equal(vtrn_timing_memory(timing, 0, 0, &memory, sizeof memory), VTRN_OK);
    assert_string_equal(memory.name, "sbuf");
    assert_int_equal(memory.peak_bytes, 4 + 32);
    assert_int_equal(vtrn_timing_fits(timing, &err), VTRN_OK);
    assert_int_equal(vtrn_timing_line(timing, 0, &line, sizeof line), VTRN_OK);
    assert_string_equal(line.file, "gather.py");
    assert_int_equal(line.line, 12);
    assert_int_equal(vtrn_timing_line(timing, 1, &line, sizeof line), VTRN_INVALID);
    assert_int_equal(info.path, 3);
    for (uint32_t i = 0; i < info.path; i++) {
        assert_int_equal(vtrn_timing_step(timing, vtrn_timing_path(timing, i), &step, sizeof step), VTRN_OK);
        assert_string_equal(step.name, "dma_copy");
        assert_int_equal(step.instruction, i);
    }
    assert_int_equal(step.end_ps, info.span_ps);
    assert_int_equal(vtrn_timing_path(timing, 3), UINT32_MAX);
    assert_true(vtrn_timing_why(0, &why, sizeof why) && *why.doc && !vtrn_timing_why(99, &why, sizeof why));
    vtrn_timing_destroy(timing);
    vtrn_timing_options_init(&options);
    options.level = "exact";
    assert_int_equal(vtrn_timing_create(program, NULL, &options, &timing, &err), VTRN_INVALID);
    options.level = "rule";
    options.target = "trn1";
    assert_int_equal(vtrn_timing_create(program, NULL, &options, &timing, &err), VTRN_OK);
    assert_int_equal(vtrn_timing_get(timing, &info, sizeof info), VTRN_OK);
    assert_string_equal(info.target, "trn1");
    vtrn_timing_destroy(timing);
    vtrn_program_destroy(program);
}

/* A loop that hangs on memory: without a run there is no time, with one there is. */
static void timings_of_runs(void **state)
{
    struct vtrn_program *program = parse("vtrn 1\ntarget trn2\ncores 1\nname \"loop\"\n"
                                         "tensor 0 \"n\" hbm i32 [1] input\ntensor 1 \"a\" sbuf f32 [128, 64]\n"
                                         "core 0\n"
                                         "  sync register_load dst=r0 src=%n[0+1x1]\n"
                                         "  sync loop_begin index=r1 lower=0 upper=r0 step=1\n"
                                         "  vector memset dst=%a[0:128; 0+1x64] value=0\n"
                                         "  sync loop_end\n");
    struct vtrn_timing_stream_info stream;
    struct vtrn_machine *machine;
    struct vtrn_timing *timing;
    struct vtrn_error err;
    int32_t turns = 6;

    (void)state;
    assert_int_equal(vtrn_machine_create(program, NULL, &machine, &err), VTRN_OK);
    assert_int_equal(vtrn_timing_create(program, machine, NULL, &timing, &err), VTRN_UNSUPPORTED);
    assert_int_equal(vtrn_machine_bind(machine, 0, &turns, sizeof turns, &err), VTRN_OK);
    assert_int_equal(vtrn_machine_run(machine, &err), VTRN_OK);
    assert_int_equal(vtrn_timing_create(program, machine, NULL, &timing, &err), VTRN_OK);
    assert_int_equal(vtrn_timing_stream(timing, 0, 1, &stream, sizeof stream), VTRN_OK);
    assert_string_equal(stream.name, "vector");
    assert_int_equal(stream.steps, 6);
    vtrn_timing_destroy(timing);
    vtrn_machine_destroy(machine);
    vtrn_program_destroy(program);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(timings), cmocka_unit_test(timings_of_runs),
        cmocka_unit_test(programs_go_round), cmocka_unit_test(programs_say_what_they_are), cmocka_unit_test(older_callers),
        cmocka_unit_test(runs), cmocka_unit_test(refuses_what_cannot_replay), cmocka_unit_test(targets),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
