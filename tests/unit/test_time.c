/* time: each mechanism on a small program of its own. Expected times follow from the numbers of the target, never from digits
 * written here, so that a better number in arch/ breaks no test; what is tested is who waits for whom. */
#include "unit.h"

#include "time/time.h"

static const char tensors[] = "tensor 0 \"x\" hbm f32 [4096, 512] input\n"
                              "tensor 1 \"y\" shared_hbm f32 [4096, 512] output core=all\n"
                              "tensor 2 \"a\" sbuf f32 [128, 512]\n"
                              "tensor 3 \"b\" sbuf f32 [128, 512]\n"
                              "tensor 4 \"c\" sbuf f32 [128, 512]\n"
                              "tensor 5 \"d\" sbuf f32 [128, 512]\n"
                              "tensor 6 \"w\" sbuf bf16 [128, 1024]\n"
                              "tensor 7 \"m\" sbuf bf16 [128, 1024]\n"
                              "tensor 8 \"p\" psum f32 [128, 512]\n"
                              "tensor 9 \"q\" psum f32 [128, 512]\n"
                              "tensor 10 \"s\" sbuf f32 [128, 1]\n"
                              "tensor 11 \"h\" sbuf bf16 [128, 512]\n"
                              "tensor 12 \"k\" sbuf bf16 [128, 512]\n"
                              "tensor 13 \"n\" hbm i32 [1] input\n"
                              "tensor 14 \"big\" sbuf f32 [128, 8192]\n";

static struct vtrn_prog *parse(const char *target, const char *code)
{
    struct vtrn_buf text = { 0 };
    struct vtrn_error err = { 0 };
    struct vtrn_prog *prog = NULL;

    assert_int_equal(vtrn_buf_printf(&text, "vtrn 1\ntarget %s\ncores 1\nname \"t\"\n%score 0\n%s", target, tensors, code), VTRN_OK);
    if (vtrn_prog_parse((const char *)text.data, text.size, &prog, &err) < 0) fail_msg("%s", err.text);
    vtrn_buf_fini(&text);
    return prog;
}

static struct vtrn_time *run_at(struct vtrn_prog *prog, enum vtrn_time_level level, const struct vtrn_arch *arch)
{
    struct vtrn_time_options options;
    struct vtrn_error err = { 0 };
    struct vtrn_time *time = NULL;

    vtrn_time_options_init(&options);
    options.level = level;
    options.arch = arch;
    if (vtrn_time_run(prog, &options, &time, &err) < 0) fail_msg("%s", err.text);
    return time;
}

struct timed { /* a program and its times */
    struct vtrn_prog *prog;
    struct vtrn_time *time;
};

static struct timed timed(const char *target, const char *code)
{
    struct timed t = { parse(target, code), NULL };

    t.time = run_at(t.prog, VTRN_TIME_EVENT, NULL);
    return t;
}

static void done(struct timed t)
{
    vtrn_time_destroy(t.time);
    vtrn_prog_destroy(t.prog);
}

static uint64_t cycles(int64_t count, int64_t clock) { return (uint64_t)((double)count * 1e12 / (double)clock); }
static void assert_about(uint64_t got, uint64_t want) /* rounding of cycles */
{
    if (got + 1000 < want || got > want + 1000) fail_msg("%llu ps, expected %llu", (unsigned long long)got, (unsigned long long)want);
}

#define LOAD(dst) "dma dma_copy dst=%" dst "[0:128; 0+1x512] src=%x[0+512x128+1x512]\n"
#define STORE(src) "dma dma_copy dst=%y[0+512x128+1x512] src=%" src "[0:128; 0+1x512]\n"
#define COPY(engine, dst, src) engine " tensor_copy dst=%" dst "[0:128; 0+1x512] src=%" src "[0:128; 0+1x512]\n"
#define ADD(dst, a, b) "vector tensor_tensor dst=%" dst "[0:128; 0+1x512] data1=%" a "[0:128; 0+1x512] data2=%" b "[0:128; 0+1x512] op=add\n"
#define MM(dst, w, m) "tensor nc_matmul dst=%" dst "[0:128; 0+1x512] stationary=%w[0:128; " w "+1x128] moving=%m[0:128; " m "+1x512]\n"

/* ---------------------------------------------------------------- streams and dependencies */
static void independent_engines_overlap_fully(void **state)
{
    struct timed both = timed("trn2", COPY("scalar", "a", "b") COPY("vector", "c", "p"));

    (void)state;
    assert_int_equal(both.time->step[0].start_ps, 0);
    assert_int_equal(both.time->step[1].start_ps, 0);
    assert_int_equal(both.time->span_ps, both.time->step[1].end_ps > both.time->step[0].end_ps ? both.time->step[1].end_ps : both.time->step[0].end_ps);
    done(both);
}

static void a_reader_waits_for_the_commit_and_a_semaphore(void **state)
{
    struct timed t = timed("trn2", COPY("scalar", "a", "b") COPY("vector", "c", "a"));
    const struct vtrn_step *step = t.time->step;

    (void)state;
    assert_int_equal(step[1].start_ps, step[0].end_ps + (uint64_t)t.time->arch->semaphore_ps);
    assert_int_equal(step[1].wait, VTRN_TIME_WAIT_DATA);
    assert_int_equal(step[1].cause, 0);
    assert_int_equal(t.time->stream[0][VTRN_STREAM_VECTOR].idle_ps, step[1].start_ps + t.time->span_ps - (step[1].start_ps + step[1].busy_ps));
    done(t);
}

static void one_engine_hides_latency_from_independent_work_only(void **state)
{
    struct timed apart = timed("trn2", COPY("vector", "a", "b") COPY("vector", "c", "d"));
    struct timed chain = timed("trn2", COPY("vector", "a", "b") COPY("vector", "c", "a"));
    const struct vtrn_step *first = apart.time->step, *second = chain.time->step;

    (void)state;
    assert_int_equal(first[1].start_ps, first[0].busy_ps);
    assert_int_equal(second[1].start_ps, second[0].end_ps);
    assert_true(second[0].end_ps > second[0].busy_ps);
    done(apart);
    done(chain);
}

static void a_writer_waits_for_readers_of_the_old_value(void **state)
{
    struct timed t = timed("trn2", COPY("scalar", "c", "a") COPY("vector", "a", "b"));

    (void)state;
    assert_int_equal(t.time->step[1].wait, VTRN_TIME_WAIT_REUSE);
    assert_true(t.time->step[1].start_ps >= t.time->step[0].end_ps);
    done(t);
}

static void parts_of_a_tensor_do_not_wait_for_each_other(void **state)
{
    struct timed columns = timed("trn2", "scalar tensor_copy dst=%a[0:128; 0+1x256] src=%b[0:128; 0+1x256]\n"
                                         "vector tensor_copy dst=%a[0:128; 256+1x256] src=%c[0:128; 0+1x256]\n");
    struct timed rows = timed("trn2", "scalar tensor_copy dst=%a[0:64; 0+1x256] src=%b[0:64; 0+1x256]\n"
                                      "vector tensor_copy dst=%a[64:128; 0+1x256] src=%c[0:64; 0+1x256]\n");
    struct timed overlap = timed("trn2", "scalar tensor_copy dst=%a[0:64; 0+1x257] src=%b[0:64; 0+1x257]\n"
                                         "vector tensor_copy dst=%a[32:64; 256+1x256] src=%c[0:32; 0+1x256]\n");

    (void)state;
    assert_int_equal(columns.time->step[1].start_ps, 0);
    assert_int_equal(rows.time->step[1].start_ps, 0);
    assert_true(overlap.time->step[1].start_ps >= overlap.time->step[0].end_ps);
    done(columns);
    done(rows);
    done(overlap);
}

static void hbm_rows_and_columns_are_told_apart(void **state)
{
    static const char two_tiles[] = "dma dma_copy dst=%y[0+512x128+1x256] src=%a[0:128; 0+1x256]\n"
                                    "dma dma_copy dst=%a[0:128; 0+1x256] src=%y[256+512x128+1x256]\n"
                                    "dma dma_copy dst=%b[0:128; 0+1x256] src=%y[0+512x128+1x256]\n";
    struct timed t = timed("trn2", two_tiles);

    (void)state;
    assert_int_equal(t.time->step[1].wait, VTRN_TIME_WAIT_REUSE); /* of a, not of y */
    assert_int_equal(t.time->step[2].wait == VTRN_TIME_WAIT_DATA || t.time->step[2].ready_ps >= t.time->step[0].end_ps, 1);
    assert_true(t.time->step[2].ready_ps >= t.time->step[0].end_ps);
    done(t);
}

static void depends_on_is_an_order(void **state)
{
    struct timed t = timed("trn2", COPY("scalar", "a", "b") COPY("vector", "c", "d") "edge 1 0\n");

    (void)state;
    assert_int_equal(t.time->step[1].wait, VTRN_TIME_WAIT_EDGE);
    assert_true(t.time->step[1].start_ps >= t.time->step[0].end_ps);
    done(t);
}

/* Two tensors that never live together share an address once others have taken the rest. */
static void reuse_of_an_address_is_a_wait(void **state)
{
    struct vtrn_buf code = { 0 };
    struct vtrn_error err = { 0 };
    struct vtrn_prog *prog;
    struct vtrn_time *time;

    (void)state;
    assert_int_equal(vtrn_buf_printf(&code, "vtrn 1\ntarget trn2\ncores 1\nname \"t\"\ntensor 0 \"x\" hbm f32 [128, 20000] input\n"), VTRN_OK);
    for (int t = 1; t <= 6; t++) assert_int_equal(vtrn_buf_printf(&code, "tensor %d \"t%d\" sbuf f32 [128, 20000]\n", t, t), VTRN_OK);
    assert_int_equal(vtrn_buf_printf(&code, "core 0\n"), VTRN_OK);
    for (int t = 1; t <= 6; t++) /* 80,000 bytes a partition each: two fit; the engine is slower than the loads */
        assert_int_equal(vtrn_buf_printf(&code,
                                         "dma dma_copy dst=%%t%d[0:128; 0+1x20000] src=%%x[0+20000x128+1x20000]\n"
                                         "vector reciprocal dst=%%t%d[0:128; 0+1x20000] data=%%t%d[0:128; 0+1x20000]\n",
                                         t, t, t),
                         VTRN_OK);
    if (vtrn_prog_parse((const char *)code.data, code.size, &prog, &err) < 0) fail_msg("%s", err.text);
    time = run_at(prog, VTRN_TIME_EVENT, NULL);
    assert_int_equal(time->step[2].wait == VTRN_TIME_WAIT_REUSE, 0);
    assert_int_equal(time->step[4].wait, VTRN_TIME_WAIT_REUSE);
    assert_int_equal(time->step[4].cause, 1);
    vtrn_time_destroy(time);
    vtrn_prog_destroy(prog);
    vtrn_buf_fini(&code);
}

/* ---------------------------------------------------------------- tensor engine */
static void products_follow_each_other_at_the_array_s_rate(void **state)
{
    struct timed t = timed("trn1", MM("p", "0", "0") MM("p", "128", "0") MM("p", "256", "0"));
    const struct vtrn_step *step = t.time->step;

    (void)state; /* trn1 has no clock gate; accumulating into one bank does not wait */
    for (int i = 1; i < 3; i++) assert_about(step[i].start_ps - step[i - 1].start_ps, cycles(512, t.time->arch->pe_clock));
    assert_true(step[0].start_ps > 0); /* the first stationary tile is loaded in the open */
    done(t);
}

static void short_products_wait_for_the_stationary_tile(void **state)
{
    struct timed t = timed("trn1", "tensor nc_matmul dst=%p[0:128; 0+1x8] stationary=%a[0:128; 0+1x128] moving=%b[0:128; 0+1x8]\n"
                                   "tensor nc_matmul dst=%q[0:128; 0+1x8] stationary=%a[0:128; 128+1x128] moving=%b[0:128; 0+1x8]\n");
    const struct vtrn_arch *arch = t.time->arch;
    uint64_t load = cycles(2 * arch->pe_load_fp32_cycles * 128, arch->pe_clock);

    (void)state; /* fp32: two passes of two cycles a column */
    assert_about(t.time->step[1].start_ps - t.time->step[0].start_ps, load > t.time->step[0].busy_ps ? load : t.time->step[0].busy_ps);
    done(t);
}

static void fp32_takes_four_passes(void **state)
{
    struct timed t = timed("trn1", "tensor nc_matmul dst=%p[0:128; 0+1x512] stationary=%a[0:128; 0+1x128] moving=%b[0:128; 0+1x512]\n");

    (void)state;
    assert_about(t.time->step[0].busy_ps, cycles(4 * 512, t.time->arch->pe_clock));
    done(t);
}

static void tiles_of_the_array_work_at_the_same_time(void **state)
{
#define TILE(dst, row) \
    "tensor nc_matmul dst=%" dst "[0:64; 0+1x512] stationary=%w[" row "; 0+1x64] moving=%m[" row "; 0+1x512]"
    struct timed same = timed("trn1", TILE("p", "0:64") " tile_position=[0, 0] tile_size=[64, 64]\n" TILE("q", "0:64") " tile_position=[0, 0] tile_size=[64, 64]\n");
    struct timed apart = timed("trn1", TILE("p", "0:64") " tile_position=[0, 0] tile_size=[64, 64]\n" TILE("q", "64:128") " tile_position=[64, 0] tile_size=[64, 64]\n");
    uint64_t product = cycles(512, apart.time->arch->pe_clock);

    (void)state;
    assert_true(same.time->step[1].start_ps - same.time->step[0].start_ps >= product - 1000);
    assert_true(apart.time->step[1].start_ps - apart.time->step[0].start_ps < product / 4);
    done(same);
    done(apart);
}

/* A busy tensor engine runs at full rate from its second window on, a new one at half. */
static void the_clock_gate_opens_after_a_busy_window(void **state)
{
    struct vtrn_buf code = { 0 };
    struct timed t;
    uint64_t window;

    (void)state;
    for (int i = 0; i < 100; i++) assert_int_equal(vtrn_buf_printf(&code, "%s", MM("p", "0", "0")), VTRN_OK);
    assert_int_equal(vtrn_buf_append(&code, "", 1), VTRN_OK);
    t = timed("trn2", (const char *)code.data);
    window = cycles(t.time->arch->pe_gate_window_cycles, t.time->arch->pe_clock);
    assert_about(t.time->step[1].busy_ps, 2 * cycles(512, t.time->arch->pe_clock));
    assert_about(t.time->step[99].busy_ps, cycles(512, t.time->arch->pe_clock));
    assert_true(t.time->resource[0][VTRN_RESOURCE_PE_HALF].busy_ps > window / 4);
    assert_true(t.time->resource[0][VTRN_RESOURCE_PE_HALF].busy_ps < window);
    done(t);
    vtrn_buf_fini(&code);
}

/* ---------------------------------------------------------------- vector and scalar engines */
static uint64_t busy_of(const char *target, const char *code)
{
    struct timed t = timed(target, code);
    uint64_t busy = t.time->step[t.time->steps - 1].busy_ps;

    done(t);
    return busy;
}

static void performance_modes_follow_dtype_space_and_stride(void **state)
{
    uint64_t n = cycles(512, vtrn_arch_find("trn2")->vector_clock), v2 = cycles(512, vtrn_arch_find("trn1")->vector_clock);

    (void)state;
    assert_about(busy_of("trn2", COPY("vector", "h", "k")), n / 4);
    assert_about(busy_of("trn2", COPY("vector", "a", "b")), n / 2);
    assert_about(busy_of("trn2", COPY("vector", "h", "p")), n);
    assert_about(busy_of("trn2", "vector tensor_copy dst=%h[0:128; 0+1x512] src=%w[0:128; 0+2x512]\n"), n / 2);
    assert_about(busy_of("trn1", COPY("vector", "h", "k")), v2);
    assert_about(busy_of("trn2", ADD("a", "b", "c")), 2 * n);
    assert_about(busy_of("trn2", ADD("a", "b", "p")), n);
    assert_about(busy_of("trn2", ADD("h", "k", "w")), n);
    assert_about(busy_of("trn2", "vector reciprocal dst=%a[0:128; 0+1x512] data=%b[0:128; 0+1x512]\n"), 8 * n);
}

static void small_instructions_cost_the_least_interval(void **state)
{
    const struct vtrn_arch *arch = vtrn_arch_find("trn2");

    (void)state;
    assert_about(busy_of("trn2", "vector tensor_copy dst=%s[0:128; 0+1x1] src=%a[0:128; 0+1x1]\n"), cycles(arch->min_issue_cycles, arch->vector_clock));
}

static void reading_an_accumulator_costs(void **state)
{
    const struct vtrn_arch *arch = vtrn_arch_find("trn2");
    uint64_t with = busy_of("trn2", "scalar activation_reduce dst=%a[0:128; 0+1x512] op=exp data=%b[0:128; 0+1x512] reduce_op=add reduce_res=%s[0:128; 0+1x1]\n");
    uint64_t without = busy_of("trn2", "scalar activation dst=%a[0:128; 0+1x512] op=exp data=%b[0:128; 0+1x512]\n");

    (void)state;
    assert_about(with - without, cycles(arch->accumulator_cycles, arch->scalar_clock));
}

#define ACT(function) "scalar activation dst=%a[0:128; 0+1x512] op=" function " data=%b[0:128; 0+1x512]\n"
static void a_function_of_another_table_loads_it(void **state)
{
    struct timed same = timed("trn2", ACT("exp") ACT("exp")), other = timed("trn2", ACT("exp") ACT("gelu"));
    uint64_t table = (uint64_t)same.time->arch->scalar_table_ps;

    (void)state;
    assert_int_equal(same.time->step[0].start_ps, table);
    assert_int_equal(same.time->step[1].start_ps, table + same.time->step[0].busy_ps);
    assert_int_equal(other.time->step[1].start_ps, 2 * table + other.time->step[0].busy_ps);
    done(same);
    done(other);
}

static void vector_and_gpsimd_share_a_port(void **state)
{
    static const char both[] = COPY("vector", "a", "b") "gpsimd memset dst=%c[0:128; 0+1x512] value=1\n";
    static const char slow[] = COPY("vector", "a", "p") "gpsimd memset dst=%c[0:128; 0+1x512] value=1\n";
    struct timed v2 = timed("trn1", both), fast = timed("trn2", both), v3 = timed("trn2", slow);

    (void)state;
    assert_int_equal(v2.time->step[1].wait, VTRN_TIME_WAIT_PORT);
    assert_int_equal(v2.time->step[1].start_ps, v2.time->step[0].busy_ps);
    assert_int_equal(fast.time->step[1].wait, VTRN_TIME_WAIT_PORT); /* a fast mode of the vector engine */
    assert_int_equal(v3.time->step[1].start_ps, 0);
    done(v2);
    done(fast);
    done(v3);
}

static void psum_banks_are_shared(void **state)
{
    static const char apart[] = COPY("vector", "a", "p") COPY("vector", "b", "q") "scalar activation dst=%c[0:128; 0+1x512] op=copy data=%q[0:128; 0+1x512]\n";
    static const char same[] = COPY("vector", "a", "p") "scalar activation dst=%c[0:128; 0+1x512] op=copy data=%p[0:128; 0+1x512]\n";
    struct timed v2 = timed("trn1", apart), v3 = timed("trn2", apart), one = timed("trn2", same);

    (void)state;
    assert_int_equal(v2.time->step[2].wait, VTRN_TIME_WAIT_BANK);
    assert_int_equal(v3.time->step[2].start_ps, 0);
    assert_int_equal(one.time->step[1].wait, VTRN_TIME_WAIT_BANK);
    done(v2);
    done(v3);
    done(one);
}

/* ---------------------------------------------------------------- DMA */
static void a_transfer_is_packets_over_its_engines(void **state)
{
    struct timed wide = timed("trn2", LOAD("a")), narrow = timed("trn2", "dma dma_copy dst=%a[0:8; 0+1x512] src=%x[0+512x8+1x512]\n");
    const struct vtrn_arch *arch = wide.time->arch;
    double packet = (double)arch->dma_packet_ps + 2048 * 1e12 / (double)arch->dma_engine_bandwidth;

    (void)state; /* 128 partitions: eight rows of 2 KiB on each of 16 engines; 8 partitions: the same on one */
    assert_about(wide.time->step[0].busy_ps, (uint64_t)(8 * packet) + (uint64_t)arch->dma_transfer_ps);
    assert_about(narrow.time->step[0].busy_ps, wide.time->step[0].busy_ps);
    assert_about(wide.time->resource[0][VTRN_RESOURCE_DMA_ENGINES].busy_ps, 16 * narrow.time->resource[0][VTRN_RESOURCE_DMA_ENGINES].busy_ps);
    assert_int_equal(wide.time->bytes[0].hbm_read, 128 * 2048);
    assert_int_equal(wide.time->bytes[0].packets, 128);
    done(wide);
    done(narrow);
}

static void small_elements_cost_more_a_byte(void **state)
{
    struct timed whole = timed("trn2", "dma dma_copy dst=%a[0:128; 0+1x512] src=%x[0+512x128+1x512]\n");
    struct timed strided = timed("trn2", "dma dma_copy dst=%a[0:128; 0+1x256] src=%x[0+512x128+2x256]\n");

    (void)state; /* half of the bytes, but an element a packet */
    assert_true(strided.time->step[0].busy_ps > 8 * whole.time->step[0].busy_ps);
    assert_int_equal(strided.time->bytes[0].packets, 128 * 256);
    done(whole);
    done(strided);
}

static void transfers_share_engines_and_other_engines_are_free(void **state)
{
    struct timed same = timed("trn2", "dma dma_copy dst=%big[0:8; 0+1x4096] src=%x[0+0x8+1x4096]\n"
                                      "dma dma_copy dst=%y[0+512x8+1x512] src=%a[0:8; 0+1x512]\n");
    struct timed apart = timed("trn2", "dma dma_copy dst=%big[0:8; 0+1x4096] src=%x[0+0x8+1x4096]\n"
                                       "dma dma_copy dst=%y[0+512x8+1x512] src=%a[64:72; 0+1x512]\n");

    (void)state;
    assert_int_equal(same.time->step[1].wait, VTRN_TIME_WAIT_ENGINE);
    assert_int_equal(apart.time->step[1].wait == VTRN_TIME_WAIT_ENGINE, 0);
    done(same);
    done(apart);
}

static void an_engine_that_issues_a_dma_is_not_held_by_it(void **state)
{
    struct timed t = timed("trn2", "dma dma_copy dst=%a[0:128; 0+1x512] src=%x[0+512x128+1x512] dge_mode=hwdge engine=scalar\n" COPY("scalar", "c", "d"));

    (void)state;
    assert_int_equal(t.time->step[0].stream, VTRN_STREAM_SCALAR);
    assert_true(t.time->step[1].start_ps >= (uint64_t)t.time->arch->dma_hwdge_ps);
    assert_true(t.time->step[1].start_ps < t.time->step[0].end_ps);
    done(t);
}

static void transposes_and_sums_run_below_the_rate_of_copies(void **state)
{
    uint64_t copy = busy_of("trn2", "dma dma_copy dst=%h[0:128; 0+1x128] src=%w[0:128; 0+1x128]\n");
    uint64_t turn = busy_of("trn2", "dma dma_transpose dst=%h[0:128; 0+1x128] src=%w[0:128; 0+1x128]\n");

    (void)state;
    assert_true(turn > copy);
}

/* ---------------------------------------------------------------- loops and registers */
static void loops_run_as_often_as_registers_say(void **state)
{
    struct timed t = timed("trn2", "sync register_move dst=r0 src=3\n"
                                   "sync loop_begin index=r1 lower=0 upper=r0 step=1\n"
                                   "sync loop_begin index=r2 lower=r1 upper=4 step=2\n"
                                   "vector memset dst=%a[0:128; 0+1x512] value=0\n"
                                   "sync loop_end\n"
                                   "sync loop_end\n"
                                   "sync loop_begin index=r3 lower=5 upper=5 step=1\n"
                                   "vector memset dst=%a[0:128; 0+1x512] value=0\n"
                                   "sync loop_end\n");

    (void)state; /* inner: 0 2, 1 3, 2 */
    assert_int_equal(t.time->stream[0][VTRN_STREAM_VECTOR].steps, 5);
    done(t);
}

static void registers_from_memory_need_a_trace(void **state)
{
    static const char code[] = "sync register_load dst=r0 src=%n[0+1x1]\n"
                               "sync loop_begin index=r1 lower=0 upper=r0 step=1\n"
                               "vector memset dst=%a[0:128; 0+1x512] value=0\n"
                               "sync loop_end\n";
    struct vtrn_prog *prog = parse("trn2", code);
    int32_t seven = 7;
    struct vtrn_trace trace = { .value = &seven, .values = 1 };
    struct vtrn_time_options options;
    struct vtrn_error err = { 0 };
    struct vtrn_time *time = NULL;

    (void)state;
    vtrn_time_options_init(&options);
    assert_int_equal(vtrn_time_run(prog, &options, &time, &err), VTRN_UNSUPPORTED);
    assert_non_null(strstr(err.text, "loop_begin"));
    options.trace = &trace;
    assert_int_equal(vtrn_time_run(prog, &options, &time, &err), VTRN_OK);
    assert_int_equal(time->stream[0][VTRN_STREAM_VECTOR].steps, 7);
    vtrn_time_destroy(time);
    options.most_steps = 10;
    assert_int_equal(vtrn_time_run(prog, &options, &time, &err), VTRN_LIMIT);
    vtrn_prog_destroy(prog);
}

/* A known register offset is an exact region: turns that touch different rows do not wait for each other. */
static void dynamic_offsets_that_are_known_are_exact(void **state)
{
    struct timed t = timed("trn2", "sync loop_begin index=r0 lower=0 upper=4 step=1\n"
                                   "dma dma_copy dst=%y[0+512x128+1x512 | r0*65536<4] src=%a[0:128; 0+1x512]\n"
                                   "sync loop_end\n"
                                   "dma dma_copy dst=%b[0:128; 0+1x512] src=%y[65536+512x128+1x512]\n");
    const struct vtrn_step *last = &t.time->step[t.time->steps - 1];

    (void)state;
    assert_int_equal(last->ready_ps, t.time->step[3].end_ps); /* begin, store, end, store: the second turn's */
    done(t);
}

/* ---------------------------------------------------------------- pairs of cores */
static struct vtrn_prog *parse_pair(const char *code)
{
    static const char head[] = "vtrn 1\ntarget trn2\ncores 2\nname \"pair\"\n"
                               "tensor 0 \"x\" hbm f32 [128, 32768] input core=all\n"
                               "tensor 1 \"a0\" sbuf f32 [128, 32768] core=0\n"
                               "tensor 2 \"a1\" sbuf f32 [128, 32768] core=1\n"
                               "tensor 3 \"b0\" sbuf f32 [128, 512] core=0\n"
                               "tensor 4 \"b1\" sbuf f32 [128, 512] core=1\n";
    struct vtrn_buf text = { 0 };
    struct vtrn_error err = { 0 };
    struct vtrn_prog *prog = NULL;

    assert_int_equal(vtrn_buf_printf(&text, "%s%s", head, code), VTRN_OK);
    if (vtrn_prog_parse((const char *)text.data, text.size, &prog, &err) < 0) fail_msg("%s", err.text);
    vtrn_buf_fini(&text);
    return prog;
}

#define BIG_LOAD(dst) "dma dma_copy dst=%" dst "[0:128; 0+1x32768] src=%x[0+32768x128+1x32768]\n"
static void a_pair_shares_a_stack_of_hbm(void **state)
{
    struct vtrn_prog *both = parse_pair("core 0\n" BIG_LOAD("a0") "core 1\n" BIG_LOAD("a1")), *one = parse_pair("core 0\n" BIG_LOAD("a0") "core 1\n");
    struct vtrn_arch narrow = *both->arch;
    struct vtrn_time *shared, *alone, *rule;

    (void)state;
    narrow.hbm_bandwidth = narrow.dma_sustained_bandwidth * narrow.hbm_stacks; /* a stack feeds one core's DMA engines */
    shared = run_at(both, VTRN_TIME_EVENT, &narrow);
    alone = run_at(one, VTRN_TIME_EVENT, &narrow);
    rule = run_at(both, VTRN_TIME_RULE, &narrow);
    assert_true(shared->span_ps > alone->span_ps + alone->span_ps / 2);
    assert_int_equal(shared->step[1].wait, VTRN_TIME_WAIT_BANDWIDTH);
    assert_int_equal(rule->step[0].end_ps, rule->step[1].end_ps); /* without contention both are as fast */
    vtrn_time_destroy(shared);
    vtrn_time_destroy(alone);
    vtrn_time_destroy(rule);
    vtrn_prog_destroy(both);
    vtrn_prog_destroy(one);
}

#define RECIPROCAL(t) "vector reciprocal dst=%" t "[0:128; 0+1x512] data=%" t "[0:128; 0+1x512]\n"
#define SENDRECV(src, dst, peer) "dma sendrecv src=%" src "[0:128; 0+1x512] dst=%" dst "[0:128; 0+1x512] send_to_rank=" peer " recv_from_rank=" peer " pipe_id=0\n"
static void a_rendezvous_begins_when_both_are_there(void **state)
{
    struct vtrn_prog *prog = parse_pair("core 0\n" RECIPROCAL("b0") SENDRECV("b0", "a0", "1") "core 1\n" SENDRECV("b1", "a1", "0"));
    struct vtrn_prog *never = parse_pair("core 0\n" SENDRECV("b0", "a0", "1") "core 1\n");
    struct vtrn_time *time = run_at(prog, VTRN_TIME_EVENT, NULL), *none = NULL;
    struct vtrn_error err = { 0 };

    (void)state;
    assert_int_equal(time->step[1].start_ps, time->step[2].start_ps);
    assert_true(time->step[1].start_ps >= time->step[0].end_ps);
    assert_int_equal(time->step[2].wait, VTRN_TIME_WAIT_PEER);
    assert_int_equal(time->step[2].cause, 1);
    assert_int_equal(vtrn_time_run(never, NULL, &none, &err), VTRN_DEADLOCK);
    assert_non_null(strstr(err.text, "nisa.sendrecv: core 0 waits for core 1"));
    vtrn_time_destroy(time);
    vtrn_prog_destroy(prog);
    vtrn_prog_destroy(never);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(independent_engines_overlap_fully),
        cmocka_unit_test(a_reader_waits_for_the_commit_and_a_semaphore),
        cmocka_unit_test(one_engine_hides_latency_from_independent_work_only),
        cmocka_unit_test(a_writer_waits_for_readers_of_the_old_value),
        cmocka_unit_test(parts_of_a_tensor_do_not_wait_for_each_other),
        cmocka_unit_test(hbm_rows_and_columns_are_told_apart),
        cmocka_unit_test(depends_on_is_an_order),
        cmocka_unit_test(reuse_of_an_address_is_a_wait),
        cmocka_unit_test(products_follow_each_other_at_the_array_s_rate),
        cmocka_unit_test(short_products_wait_for_the_stationary_tile),
        cmocka_unit_test(fp32_takes_four_passes),
        cmocka_unit_test(tiles_of_the_array_work_at_the_same_time),
        cmocka_unit_test(the_clock_gate_opens_after_a_busy_window),
        cmocka_unit_test(performance_modes_follow_dtype_space_and_stride),
        cmocka_unit_test(small_instructions_cost_the_least_interval),
        cmocka_unit_test(reading_an_accumulator_costs),
        cmocka_unit_test(a_function_of_another_table_loads_it),
        cmocka_unit_test(vector_and_gpsimd_share_a_port),
        cmocka_unit_test(psum_banks_are_shared),
        cmocka_unit_test(a_transfer_is_packets_over_its_engines),
        cmocka_unit_test(small_elements_cost_more_a_byte),
        cmocka_unit_test(transfers_share_engines_and_other_engines_are_free),
        cmocka_unit_test(an_engine_that_issues_a_dma_is_not_held_by_it),
        cmocka_unit_test(transposes_and_sums_run_below_the_rate_of_copies),
        cmocka_unit_test(loops_run_as_often_as_registers_say),
        cmocka_unit_test(registers_from_memory_need_a_trace),
        cmocka_unit_test(dynamic_offsets_that_are_known_are_exact),
        cmocka_unit_test(a_pair_shares_a_stack_of_hbm),
        cmocka_unit_test(a_rendezvous_begins_when_both_are_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
