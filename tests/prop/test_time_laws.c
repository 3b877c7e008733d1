/* Laws of timing, on random legal programs of every target: event >= rule >= count; reruns are bit-identical; names mean nothing;
 * more bandwidth and faster clocks are never slower at level rule; busy, waiting and idle add up; nobody starts before what it
 * depends on, by a naive second opinion on dependencies. A failure prints its seed. */
#include "unit.h"

#include "prog_random.h"
#include "time/time.h"

enum { PROGRAMS = 400, STEPS_MAX = 3000 };

/* NULL: a program that cannot be timed without values (a loop hangs on memory, has no end, or a core waits for ever). */
static struct vtrn_time *time_of(const struct vtrn_prog *prog, enum vtrn_time_level level, const struct vtrn_arch *arch)
{
    struct vtrn_time_options options;
    struct vtrn_error err = { 0 };
    struct vtrn_time *time = NULL;
    enum vtrn_status status;

    vtrn_time_options_init(&options);
    options.level = level;
    options.arch = arch;
    options.most_steps = STEPS_MAX;
    status = vtrn_time_run(prog, &options, &time, &err);
    if (status < 0 && status != VTRN_UNSUPPORTED && status != VTRN_LIMIT && status != VTRN_DEADLOCK && status != VTRN_ILLEGAL)
        fail_msg("%s", err.text);
    return status < 0 ? NULL : time;
}

static bool steps_equal(const struct vtrn_time *a, const struct vtrn_time *b)
{
    if (a->steps != b->steps || a->total_ps != b->total_ps || a->assumed_ps != b->assumed_ps || a->paths != b->paths) return false;
    for (uint32_t i = 0; i < a->steps; i++) {
        const struct vtrn_step *x = &a->step[i], *y = &b->step[i];

        if (x->ready_ps != y->ready_ps || x->start_ps != y->start_ps || x->end_ps != y->end_ps || x->busy_ps != y->busy_ps ||
            x->cause != y->cause || x->wait != y->wait)
            return false;
    }
    return true;
}

/* ---------------------------------------------------------------- dependencies, naively */
struct touch { /* what a step does to a tensor */
    int64_t row, rows_end, low, high; /* partitions (HBM: 0..1), bytes */
    uint32_t tensor;
    bool read, write;
};

static int touches_of(const struct vtrn_prog *prog, const struct vtrn_inst *inst, struct touch *out)
{
    int count = 0;

    for (int a = 0; a < vtrn_ops[inst->op].operands; a++) {
        const struct vtrn_value *value = &inst->arg[a];
        const struct vtrn_operand_info *info = &vtrn_ops[inst->op].operand[a];
        int64_t low, high, size;
        bool on_chip;

        if (value->kind != VTRN_V_AP || value->ap.ndyn) continue; /* static single patterns are enough */
        on_chip = vtrn_space_on_chip(prog->tensor[value->ap.tensor].space);
        size = vtrn_dtypes[value->ap.dtype].size_bytes;
        if (!vtrn_ap_extent(&value->ap, on_chip, &low, &high)) continue;
        /* One element of the pattern is surely touched: the first. */
        out[count++] = (struct touch){ .row = on_chip ? value->ap.part0 : 0,
                                       .rows_end = on_chip ? value->ap.part0 + 1 : 1,
                                       .low = value->ap.offset * size,
                                       .high = (value->ap.offset + 1) * size,
                                       .tensor = value->ap.tensor,
                                       .read = !(info->access & VTRN_WRITE) || (info->access & VTRN_READ),
                                       .write = (info->access & VTRN_WRITE) != 0 };
    }
    return count;
}

static bool conflict(const struct touch *a, const struct touch *b)
{
    return a->tensor == b->tensor && (a->write || b->write) && a->row < b->rows_end && b->row < a->rows_end && a->low < b->high && b->low < a->high;
}

/* An engine's own writes after its reads and writes are ordered by its pipeline, and so are products into PSUM. */
static bool is_ordered_by_engine(const struct vtrn_step *a, const struct vtrn_step *b, const struct touch *x, const struct touch *y)
{
    if (a->stream != b->stream || vtrn_stream_is_dma(a->stream)) return false;
    if (a->stream == VTRN_STREAM_TENSOR) return true;
    return !(x->write && y->read && !x->read) || y->write;
}

static void check_order(const struct vtrn_prog *prog, const struct vtrn_time *time, uint64_t seed)
{
    struct vtrn_inst *inst = malloc(2 * sizeof *inst);
    uint32_t from = time->steps > 150 ? time->steps - 150 : 0; /* the last ones have most before them */

    for (uint32_t j = from; j < time->steps; j++) {
        struct touch y[VTRN_MAX_OPERANDS], x[VTRN_MAX_OPERANDS];
        int ys, xs;

        vtrn_prog_get(prog, time->step[j].core, time->step[j].pc, &inst[1]);
        ys = touches_of(prog, &inst[1], y);
        for (uint32_t i = from; i < j; i++) {
            if (time->step[i].core != time->step[j].core) continue;
            vtrn_prog_get(prog, time->step[i].core, time->step[i].pc, &inst[0]);
            xs = touches_of(prog, &inst[0], x);
            for (int k = 0; k < xs; k++)
                for (int l = 0; l < ys; l++)
                    if (conflict(&x[k], &y[l]) && !is_ordered_by_engine(&time->step[i], &time->step[j], &x[k], &y[l]) &&
                        time->step[j].ready_ps < time->step[i].end_ps)
                        fail_msg("seed %llu: step %u (%s) starts before step %u (%s) ends", (unsigned long long)seed, j,
                                 vtrn_ops[inst[1].op].name, i, vtrn_ops[inst[0].op].name);
        }
    }
    free(inst);
}

/* ---------------------------------------------------------------- sums */
static void check_sums(const struct vtrn_time *time, uint64_t seed)
{
    uint64_t critical = 0, line_steps = 0;

    for (uint32_t i = 0; i < time->steps; i++) {
        const struct vtrn_step *step = &time->step[i];

        if (step->start_ps < step->ready_ps || step->end_ps < step->start_ps) fail_msg("seed %llu: step %u", (unsigned long long)seed, i);
        assert_true(step->cause == UINT32_MAX || step->cause < time->steps);
    }
    for (int c = 0; c < time->prog->cores; c++)
        for (int s = 0; s < VTRN_STREAMS; s++) {
            const struct vtrn_time_stream *stream = &time->stream[c][s];
            uint64_t whom = 0, why = 0;

            for (int i = 0; i < VTRN_STREAMS; i++) whom += stream->wait_ps[i];
            for (int i = 0; i < VTRN_TIME_WAITS; i++) why += stream->reason_ps[i];
            assert_int_equal(whom, why);
            if (time->steps && stream->busy_ps + whom + stream->idle_ps != time->span_ps)
                fail_msg("seed %llu: %s: %llu + %llu + %llu of %llu", (unsigned long long)seed, vtrn_stream_name(s),
                         (unsigned long long)stream->busy_ps, (unsigned long long)whom, (unsigned long long)stream->idle_ps,
                         (unsigned long long)time->span_ps);
        }
    for (uint32_t l = 0; l < time->lines; l++) {
        critical += time->line[l].critical_ps;
        line_steps += time->line[l].steps;
    }
    assert_int_equal(line_steps, time->steps);
    assert_true(critical <= time->span_ps);
    assert_true(time->assumed_ps <= time->total_ps);
}

static void laws_hold_for_random_programs(void **state)
{
    int timed = 0;

    (void)state;
    for (uint64_t seed = 0; seed < PROGRAMS; seed++) {
        struct vtrn_prog *prog = random_program(seed);
        struct vtrn_time *event = time_of(prog, VTRN_TIME_EVENT, NULL);

        if (event) {
            struct vtrn_time *again = time_of(prog, VTRN_TIME_EVENT, NULL), *rule = time_of(prog, VTRN_TIME_RULE, NULL);
            struct vtrn_time *count = time_of(prog, VTRN_TIME_COUNT, NULL);

            timed++;
            assert_true(steps_equal(event, again));
            if (event->span_ps < rule->span_ps || rule->span_ps < count->span_ps)
                fail_msg("seed %llu: event %llu rule %llu count %llu (%s)", (unsigned long long)seed, (unsigned long long)event->span_ps,
                         (unsigned long long)rule->span_ps, (unsigned long long)count->span_ps, count->count_by);
            for (uint32_t i = 0; i < event->steps; i++)
                if (event->step[i].end_ps < rule->step[i].end_ps) fail_msg("seed %llu: step %u ends earlier with contention", (unsigned long long)seed, i);
            check_sums(event, seed);
            check_sums(rule, seed);
            check_order(prog, event, seed);
            check_order(prog, rule, seed);
            vtrn_time_destroy(again);
            vtrn_time_destroy(rule);
            vtrn_time_destroy(count);
        }
        vtrn_time_destroy(event);
        vtrn_prog_destroy(prog);
    }
    assert_true(timed > PROGRAMS / 3);
}

static void faster_hardware_is_never_slower(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < PROGRAMS; seed++) {
        struct vtrn_prog *prog = random_program(seed);
        struct vtrn_time *base = time_of(prog, VTRN_TIME_RULE, NULL);

        for (int i = 0; base && i < 8; i++) {
            struct vtrn_arch arch = *prog->arch;
            int64_t *const faster[] = { &arch.pe_clock,     &arch.vector_clock,  &arch.scalar_clock,           &arch.gpsimd_clock,
                                        &arch.hbm_bandwidth, &arch.dma_engine_bandwidth, &arch.dma_sustained_bandwidth, &arch.vector_wide };
            struct vtrn_time *time;

            *faster[i] = *faster[i] * 3 / 2 + 1;
            time = time_of(prog, VTRN_TIME_RULE, &arch);
            if (time->span_ps > base->span_ps)
                fail_msg("seed %llu: number %d: %llu > %llu", (unsigned long long)seed, i, (unsigned long long)time->span_ps, (unsigned long long)base->span_ps);
            vtrn_time_destroy(time);
        }
        vtrn_time_destroy(base);
        vtrn_prog_destroy(prog);
    }
}

/* The same program with other names, by its text. */
static void names_change_nothing(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < PROGRAMS; seed += 4) {
        struct vtrn_prog *prog = random_program(seed), *other = random_program(seed);
        struct vtrn_time *a = time_of(prog, VTRN_TIME_EVENT, NULL), *b;
        struct vtrn_error err = { 0 };

        for (uint32_t t = 0; t < other->tensors; t++) {
            char name[32];
            uint32_t string = 0;

            snprintf(name, sizeof name, "renamed%u", other->tensors - t);
            assert_int_equal(vtrn_prog_string(other, name, strlen(name), &string), VTRN_OK);
            other->tensor[t].name = string;
        }
        (void)err;
        b = time_of(other, VTRN_TIME_EVENT, NULL);
        assert_int_equal(a == NULL, b == NULL);
        if (a) assert_true(steps_equal(a, b));
        vtrn_time_destroy(a);
        vtrn_time_destroy(b);
        vtrn_prog_destroy(prog);
        vtrn_prog_destroy(other);
    }
}

/* Bytes of every operand, counted from the patterns alone. */
static void bytes_are_conserved(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < PROGRAMS; seed += 2) {
        struct vtrn_prog *prog = random_program(seed);
        struct vtrn_time *time = time_of(prog, VTRN_TIME_EVENT, NULL);
        struct vtrn_inst *inst = malloc(sizeof *inst);
        uint64_t wanted[6] = { 0 }, got[6] = { 0 };

        for (uint32_t i = 0; time && i < time->steps; i++) {
            vtrn_prog_get(prog, time->step[i].core, time->step[i].pc, inst);
            for (int a = 0; a < vtrn_ops[inst->op].operands && inst->op != VTRN_OP_core_barrier; a++) {
                const struct vtrn_value *value = &inst->arg[a];
                const struct vtrn_ap *list = value->kind == VTRN_V_APS ? value->aps : &value->ap;
                int patterns = value->kind == VTRN_V_APS ? value->count : value->kind == VTRN_V_AP;
                int access = vtrn_ops[inst->op].operand[a].access ? vtrn_ops[inst->op].operand[a].access : VTRN_READ;

                for (int k = 0; k < patterns; k++) {
                    int space = prog->tensor[list[k].tensor].space, at = space == VTRN_PSUM ? 4 : space == VTRN_SBUF ? 2 : 0;
                    uint64_t bytes = (uint64_t)(vtrn_ap_elems(&list[k]) * vtrn_dtypes[list[k].dtype].size_bytes);

                    if (access & VTRN_READ) wanted[at] += bytes;
                    if (access & VTRN_WRITE) wanted[at + 1] += bytes;
                }
            }
        }
        for (int c = 0; time && c < prog->cores; c++) {
            const struct vtrn_time_bytes *b = &time->bytes[c];
            const uint64_t of_core[6] = { b->hbm_read, b->hbm_write, b->sbuf_read, b->sbuf_write, b->psum_read, b->psum_write };

            for (int k = 0; k < 6; k++) got[k] += of_core[k];
        }
        for (int k = 0; k < 6; k++) assert_int_equal(got[k], wanted[k]);
        free(inst);
        vtrn_time_destroy(time);
        vtrn_prog_destroy(prog);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(laws_hold_for_random_programs),
        cmocka_unit_test(faster_hardware_is_never_slower),
        cmocka_unit_test(names_change_nothing),
        cmocka_unit_test(bytes_are_conserved),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
