/* Thread pool: fork-join over numbered parts. The caller publishes a job, works on it itself and returns when every
 * part is done. An instruction of the emulated machine may be split in less than ten microseconds of work, so waking up
 * through the kernel (some 5 us each way) would cost more than the work: workers spin for a while after each job and
 * only then sleep. Must not know what the parts compute.
 *
 * One 64-bit word carries a job's number and the next unclaimed part:
 *
 *     63            32 31             0
 *    +----------------+----------------+
 *    |  job number    |   next part    |
 *    +----------------+----------------+
 *
 * A part is claimed by compare-and-swap on the whole word, so a worker that is late with an old job cannot take a part
 * of the next one. Function, argument and part count are read before the claim; the claim succeeds only while the job
 * is the one that they were read for. */
#include "base/base.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

enum {
    SPINS_WORKER = 20000, /* about half a millisecond of pause instructions: longer than the gaps of a busy run */
    SPINS_YIELD = 2000,   /* then give the CPU away between looks: hosts with fewer CPUs than threads */
    SPINS_CALLER = 50000, /* the caller sleeps only when a worker lost its CPU in the middle of a part */
};

struct vtrn_pool {
    int threads; /* workers + the caller */
    pthread_t *worker;
    /* the job: written by the caller while no job runs */
    _Atomic(void (*)(void *, int, int)) fn;
    _Atomic(void *) arg;
    atomic_int parts;
    _Alignas(64) _Atomic uint64_t word;
    _Alignas(64) atomic_int left; /* parts not finished yet */
    atomic_bool busy;             /* a job runs: nested and concurrent callers do their work in place */
    _Alignas(64) pthread_mutex_t lock;
    pthread_cond_t wake_workers, wake_caller;
    atomic_int sleepers;
    atomic_bool caller_sleeps, stop;
};

static inline void relax(int spin)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
    if (spin > SPINS_YIELD && spin % 64 == 0) sched_yield();
}

static inline uint32_t job_of(uint64_t word)
{
    return (uint32_t)(word >> 32);
}

/* Claims and runs parts of job `job` until none is left. */
static void work(struct vtrn_pool *pool, uint32_t job)
{
    uint64_t word = atomic_load_explicit(&pool->word, memory_order_acquire);

    while (job_of(word) == job) {
        void (*fn)(void *, int, int) = atomic_load_explicit(&pool->fn, memory_order_relaxed);
        void *arg = atomic_load_explicit(&pool->arg, memory_order_relaxed);
        int parts = atomic_load_explicit(&pool->parts, memory_order_relaxed);
        uint32_t part = (uint32_t)word;

        if (part >= (uint32_t)parts) return;
        if (!atomic_compare_exchange_weak_explicit(&pool->word, &word, word + 1, memory_order_acq_rel, memory_order_acquire))
            continue;
        fn(arg, (int)part, parts);
        if (atomic_fetch_sub(&pool->left, 1) == 1 && atomic_load(&pool->caller_sleeps)) {
            pthread_mutex_lock(&pool->lock);
            pthread_cond_signal(&pool->wake_caller);
            pthread_mutex_unlock(&pool->lock);
        }
        word = atomic_load_explicit(&pool->word, memory_order_acquire);
    }
}

/* Waits until the job number is no longer `seen`; returns the new one. */
static uint32_t wait_for_job(struct vtrn_pool *pool, uint32_t seen)
{
    uint32_t job;

    for (int spin = 0; spin < SPINS_WORKER; spin++) {
        job = job_of(atomic_load_explicit(&pool->word, memory_order_acquire));
        if (job != seen) return job;
        relax(spin);
    }
    pthread_mutex_lock(&pool->lock);
    /* Sequentially consistent with the caller's "publish, then look for sleepers": one of the two sees the other. */
    atomic_fetch_add(&pool->sleepers, 1);
    while ((job = job_of(atomic_load(&pool->word))) == seen) pthread_cond_wait(&pool->wake_workers, &pool->lock);
    atomic_fetch_sub(&pool->sleepers, 1);
    pthread_mutex_unlock(&pool->lock);
    return job;
}

static void *worker_main(void *self)
{
    struct vtrn_pool *pool = self;
    uint32_t job = 0;

    for (;;) {
        job = wait_for_job(pool, job);
        if (atomic_load(&pool->stop)) return NULL;
        work(pool, job);
    }
}

static void publish(struct vtrn_pool *pool)
{
    uint32_t next = job_of(atomic_load_explicit(&pool->word, memory_order_relaxed)) + 1;

    atomic_store(&pool->word, (uint64_t)next << 32);
    if (atomic_load(&pool->sleepers) > 0) {
        pthread_mutex_lock(&pool->lock);
        pthread_cond_broadcast(&pool->wake_workers);
        pthread_mutex_unlock(&pool->lock);
    }
}

static void wait_for_parts(struct vtrn_pool *pool)
{
    for (int spin = 0; spin < SPINS_CALLER; spin++) {
        if (atomic_load_explicit(&pool->left, memory_order_acquire) == 0) return;
        relax(spin);
    }
    pthread_mutex_lock(&pool->lock);
    atomic_store(&pool->caller_sleeps, true);
    while (atomic_load(&pool->left) != 0) pthread_cond_wait(&pool->wake_caller, &pool->lock);
    atomic_store(&pool->caller_sleeps, false);
    pthread_mutex_unlock(&pool->lock);
}

void vtrn_pool_run(struct vtrn_pool *pool, int parts, void (*fn)(void *arg, int part, int parts), void *arg)
{
    if (!pool || pool->threads == 1 || parts <= 1 || atomic_exchange(&pool->busy, true)) {
        for (int part = 0; part < parts; part++) fn(arg, part, parts);
        return;
    }
    atomic_store_explicit(&pool->fn, fn, memory_order_relaxed);
    atomic_store_explicit(&pool->arg, arg, memory_order_relaxed);
    atomic_store_explicit(&pool->parts, parts, memory_order_relaxed);
    atomic_store_explicit(&pool->left, parts, memory_order_relaxed);
    publish(pool);
    work(pool, job_of(atomic_load_explicit(&pool->word, memory_order_relaxed)));
    wait_for_parts(pool);
    atomic_store_explicit(&pool->busy, false, memory_order_release);
}

int vtrn_pool_threads(const struct vtrn_pool *pool)
{
    return pool ? pool->threads : 1;
}

struct vtrn_pool *vtrn_pool_create(int threads)
{
    struct vtrn_pool *pool = vtrn_alloc_aligned(sizeof *pool, 64);

    if (!pool) return NULL;
    memset(pool, 0, sizeof *pool);
    pool->threads = 1;
    pool->worker = calloc(threads > 1 ? (size_t)threads - 1 : 1, sizeof *pool->worker);
    if (!pool->worker) {
        vtrn_free_aligned(pool);
        return NULL;
    }
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->wake_workers, NULL);
    pthread_cond_init(&pool->wake_caller, NULL);
    /* `threads` is counted up as they start, before any job: a host that refuses one more leaves a smaller pool. */
    while (pool->threads < threads && pthread_create(&pool->worker[pool->threads - 1], NULL, worker_main, pool) == 0)
        pool->threads++;
    return pool;
}

void vtrn_pool_destroy(struct vtrn_pool *pool)
{
    if (!pool) return;
    atomic_store(&pool->stop, true);
    atomic_store_explicit(&pool->parts, 0, memory_order_relaxed);
    publish(pool);
    for (int i = 0; i < pool->threads - 1; i++) pthread_join(pool->worker[i], NULL);
    pthread_cond_destroy(&pool->wake_caller);
    pthread_cond_destroy(&pool->wake_workers);
    pthread_mutex_destroy(&pool->lock);
    free(pool->worker);
    vtrn_free_aligned(pool);
}
