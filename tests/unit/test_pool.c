/* base: the thread pool. Every part runs exactly once, whatever the number of threads, however jobs follow each other. */
#include "unit.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/base.h"

enum { PARTS_MAX = 1000 };
struct job {
    atomic_int runs[PARTS_MAX];
    int parts, bad_parts;
    uint64_t plain[PARTS_MAX]; /* written without atomics: the join must make it visible */
};

static void count(void *arg, int part, int parts)
{
    struct job *job = arg;

    if (parts != job->parts) job->bad_parts++;
    job->plain[part]++;
    atomic_fetch_add(&job->runs[part], 1);
}

static void check_job(struct vtrn_pool *pool, int parts)
{
    static struct job job; /* large; only one test runs at a time */

    memset(&job, 0, sizeof job);
    job.parts = parts;
    vtrn_pool_run(pool, parts, count, &job);
    assert_int_equal(job.bad_parts, 0);
    for (int i = 0; i < PARTS_MAX; i++) {
        assert_int_equal(atomic_load(&job.runs[i]), i < parts);
        assert_int_equal(job.plain[i], i < parts);
    }
}

static void every_part_runs_once(void **state)
{
    static const int parts[] = { 0, 1, 2, 3, 7, 64, PARTS_MAX };

    (void)state;
    for (int threads = 1; threads <= 4; threads++) {
        struct vtrn_pool *pool = vtrn_pool_create(threads);

        assert_non_null(pool);
        assert_in_range(vtrn_pool_threads(pool), 1, threads);
        for (int round = 0; round < 20; round++)
            for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) check_job(pool, parts[i]);
        vtrn_pool_destroy(pool);
    }
}

static void without_a_pool_the_caller_works_alone(void **state)
{
    (void)state;
    check_job(NULL, 5);
    assert_int_equal(vtrn_pool_threads(NULL), 1);
    vtrn_pool_destroy(NULL);
}

static void jobs_follow_each_other_quickly(void **state)
{
    struct vtrn_pool *pool = vtrn_pool_create(3);

    (void)state;
    for (int round = 0; round < 20000; round++) {
        struct job *job = calloc(1, sizeof *job); /* freed at once: a late worker would touch freed memory */

        job->parts = 3;
        vtrn_pool_run(pool, 3, count, job);
        for (int i = 0; i < 3; i++)
            if (atomic_load(&job->runs[i]) != 1) fail_msg("round %d: part %d ran %d times", round, i, atomic_load(&job->runs[i]));
        free(job);
    }
    vtrn_pool_destroy(pool);
}

static void sleeping_workers_wake_up(void **state)
{
    struct vtrn_pool *pool = vtrn_pool_create(2);

    (void)state;
    for (int round = 0; round < 4; round++) {
        usleep(30000); /* longer than workers spin */
        check_job(pool, 2);
    }
    usleep(30000);
    vtrn_pool_destroy(pool);
}

struct nested {
    struct vtrn_pool *pool;
    atomic_int sum;
};
static void add_one(void *arg, int part, int parts)
{
    (void)part;
    (void)parts;
    atomic_fetch_add(&((struct nested *)arg)->sum, 1);
}
static void run_inner(void *arg, int part, int parts)
{
    struct nested *nested = arg;

    (void)part;
    (void)parts;
    vtrn_pool_run(nested->pool, 10, add_one, nested);
}

static void a_busy_pool_runs_in_place(void **state)
{
    struct nested nested = { .pool = vtrn_pool_create(2) };

    (void)state;
    vtrn_pool_run(nested.pool, 8, run_inner, &nested);
    assert_int_equal(atomic_load(&nested.sum), 80);
    vtrn_pool_destroy(nested.pool);
}

static void *run_many(void *arg)
{
    for (int i = 0; i < 2000; i++) vtrn_pool_run(((struct nested *)arg)->pool, 4, add_one, arg);
    return NULL;
}

static void two_callers_share_a_pool(void **state)
{
    struct nested nested = { .pool = vtrn_pool_create(2) };
    pthread_t other;

    (void)state;
    assert_int_equal(pthread_create(&other, NULL, run_many, &nested), 0);
    run_many(&nested);
    pthread_join(other, NULL);
    assert_int_equal(atomic_load(&nested.sum), 2 * 2000 * 4);
    vtrn_pool_destroy(nested.pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_part_runs_once),
        cmocka_unit_test(without_a_pool_the_caller_works_alone),
        cmocka_unit_test(jobs_follow_each_other_quickly),
        cmocka_unit_test(sleeping_workers_wake_up),
        cmocka_unit_test(a_busy_pool_runs_in_place),
        cmocka_unit_test(two_callers_share_a_pool),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
