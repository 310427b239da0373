/* test_pool.c: every index exactly once, whatever the number of threads; bad settings refused. */
#include "test_support.h"

#include "base/pool.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

enum { COUNT = 10000 };

struct marks {
    atomic_int seen[COUNT];
};

static void mark(void *context, uint64_t i)
{
    struct marks *marks = context;
    atomic_fetch_add(&marks->seen[i], 1);
}

static void every_index_once(void **state)
{
    (void)state;
    static struct marks marks;
    for (int threads = 1; threads <= 5; threads += 2) {
        struct td_pool *pool = NULL;
        assert_ok(td_pool_open(&pool, threads, NULL));
        assert_int_equal(td_pool_threads(pool), threads);
        for (int round = 0; round < 50; round++) {
            memset(&marks, 0, sizeof marks);
            uint64_t count = (uint64_t)(round * 37 % COUNT);
            td_pool_run(pool, count, mark, &marks);
            for (uint64_t i = 0; i < COUNT; i++)
                assert_int_equal(marks.seen[i], i < count);
        }
        td_pool_close(&pool);
        assert_null(pool);
    }
}

struct few {
    atomic_int seen[3];
};

static void mark_few(void *context, uint64_t i)
{
    atomic_fetch_add(&((struct few *)context)->seen[i], 1);
}

/* So short that most workers come when a loop is over, and its context is gone. */
static void short_loops_one_after_the_other(void **state)
{
    (void)state;
    struct td_pool *pool = NULL;
    assert_ok(td_pool_open(&pool, 4, NULL));
    for (int round = 0; round < 20000; round++) {
        struct few *few = calloc(1, sizeof *few);
        assert_non_null(few);
        td_pool_run(pool, 3, mark_few, few);
        for (int i = 0; i < 3; i++)
            assert_int_equal(few->seen[i], 1);
        free(few);
    }
    td_pool_close(&pool);
}

struct allowed {
    cpu_set_t cpus;
    atomic_int other;
};

static void look_at_cpus(void *context, uint64_t i)
{
    struct allowed *allowed = context;
    cpu_set_t cpus;
    (void)i;
    usleep(1000); /* so that every worker gets some */
    if (sched_getaffinity(0, sizeof cpus, &cpus) != 0 || !CPU_EQUAL(&cpus, &allowed->cpus))
        atomic_fetch_add(&allowed->other, 1);
}

static void workers_may_use_all_cpus(void **state)
{
    (void)state;
    struct allowed allowed = {.other = 0};
    struct td_pool *pool = NULL;
    assert_int_equal(sched_getaffinity(0, sizeof allowed.cpus, &allowed.cpus), 0);
    assert_ok(td_pool_open(&pool, 4, NULL));
    for (int round = 0; round < 5; round++)
        td_pool_run(pool, 20, look_at_cpus, &allowed);
    assert_int_equal(allowed.other, 0);
    td_pool_close(&pool);
}

/* What a lender was asked for. */
struct lender {
    int calls, most;
};

static void lend_backwards(void *user, int parts, void (*part)(void *context, int index), void *context)
{
    struct lender *lender = user;
    lender->calls++;
    lender->most = parts > lender->most ? parts : lender->most;
    for (int i = parts - 1; i >= 0; i--)
        part(context, i);
}

static void every_index_once_on_borrowed_threads(void **state)
{
    (void)state;
    static struct marks marks;
    struct lender lender = {0};
    struct td_pool *pool = NULL;
    assert_ok(td_pool_borrow(&pool, lend_backwards, &lender, NULL));
    for (uint64_t count = 0; count <= COUNT; count += count / 3 + 1) {
        memset(&marks, 0, sizeof marks);
        td_pool_run(pool, count, mark, &marks);
        for (uint64_t i = 0; i < COUNT; i++)
            assert_int_equal(marks.seen[i], i < count);
    }
    assert_true(lender.calls > 10);
    assert_int_equal(lender.most, td_pool_threads(pool)); /* no more tasks than that at a time */
    td_pool_close(&pool);
    assert_null(pool);
}

struct late {
    void (*part)(void *context, int index);
    void *context;
    int first, parts;
};

static void *come_late(void *argument)
{
    const struct late *late = argument;
    usleep(300000);
    for (int i = late->first; i < late->parts; i++)
        late->part(late->context, i);
    return NULL;
}

/* A lender whose other thread gets no CPU for a while: the caller has done its half long before. */
static void lend_late(void *user, int parts, void (*part)(void *context, int index), void *context)
{
    struct lender *lender = user;
    struct late late = {part, context, parts / 2, parts};
    pthread_t thread;
    lender->calls++;
    assert_int_equal(pthread_create(&thread, NULL, come_late, &late), 0);
    for (int i = 0; i < late.first; i++)
        part(context, i);
    pthread_join(thread, NULL);
}

static void threads_that_do_not_come_are_not_waited_for_again(void **state)
{
    (void)state;
    static struct marks marks;
    struct lender lender = {0};
    struct td_pool *pool = NULL;
    assert_ok(td_pool_borrow(&pool, lend_late, &lender, NULL));
    for (int round = 0; round < 20; round++)
        td_pool_run(pool, 10, mark, &marks);
    for (int i = 0; i < 10; i++)
        assert_int_equal(marks.seen[i], 20);
    assert_int_equal(lender.calls, 1);
    for (int round = 0; round < 60; round++)
        td_pool_run(pool, 10, mark, &marks);
    assert_int_equal(lender.calls, 2); /* it is asked again some time */
    td_pool_close(&pool);
}

static void threads_from_the_environment(void **state)
{
    (void)state;
    struct td_pool *pool = NULL;
    struct tdbg_error error;
    setenv("TDBG_THREADS", "3", 1);
    assert_ok(td_pool_open(&pool, 0, &error));
    assert_int_equal(td_pool_threads(pool), 3);
    td_pool_close(&pool);
    setenv("TDBG_THREADS", "many", 1);
    assert_fails(td_pool_open(&pool, 0, &error), TDBG_MISUSE,
                 "TDBG_THREADS=many: a number from 1 to 256 is needed");
    unsetenv("TDBG_THREADS");
    assert_ok(td_pool_open(&pool, 0, &error));
    assert_true(td_pool_threads(pool) >= 1);
    td_pool_close(&pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_index_once),
        cmocka_unit_test(short_loops_one_after_the_other),
        cmocka_unit_test(workers_may_use_all_cpus),
        cmocka_unit_test(every_index_once_on_borrowed_threads),
        cmocka_unit_test(threads_that_do_not_come_are_not_waited_for_again),
        cmocka_unit_test(threads_from_the_environment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
