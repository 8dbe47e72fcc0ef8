/* SPDX-License-Identifier: Apache-2.0
 *
 * src/base/wake: a poke ends a nap, and none is lost. A nap that a poke must end has no end of its
 * own: when a test here is wrong it hangs until ctest ends it. */
#include <pthread.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "base/wake.h"
#include "support/test.h"

#define ROUNDS 2000

static void a_poke_before_the_nap_is_remembered_once(void **state)
{
    (void)state;
    struct pw_wake wake;
    pw_wake_init(&wake);
    pw_poke(&wake);
    pw_poke(&wake);
    pw_nap(&wake, PW_NEVER);
    assert_false(wake.poked);
    pw_poke(&wake);
    pw_nap(&wake, 0);
    assert_false(wake.poked);
    pw_wake_fini(&wake);
}

static void a_nap_of_nothing_returns(void **state)
{
    (void)state;
    struct pw_wake wake;
    pw_wake_init(&wake);
    pw_nap(&wake, 0);
    pw_nap(&wake, 1);
    pw_wake_fini(&wake);
}

struct pair {
    struct pw_wake ping;
    struct pw_wake pong;
    atomic_int turns;
};

static void *answer(void *arg)
{
    struct pair *pair = arg;
    for (int i = 0; i < ROUNDS; i++) {
        pw_nap(&pair->ping, PW_NEVER);
        (void)atomic_fetch_add(&pair->turns, 1);
        pw_poke(&pair->pong);
    }
    return NULL;
}

static void pokes_cross_threads_and_none_is_lost(void **state)
{
    (void)state;
    struct pair pair = { .turns = 0 };
    pthread_t thread;
    pw_wake_init(&pair.ping);
    pw_wake_init(&pair.pong);
    assert_int_equal(pthread_create(&thread, NULL, answer, &pair), 0);
    for (int i = 0; i < ROUNDS; i++) {
        assert_int_equal(atomic_load(&pair.turns), i);
        pw_poke(&pair.ping);
        pw_nap(&pair.pong, PW_NEVER);
    }
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(atomic_load(&pair.turns), ROUNDS);
    pw_wake_fini(&pair.ping);
    pw_wake_fini(&pair.pong);
}

static void a_wait_with_a_limit_ends_by_itself(void **state)
{
    (void)state;
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t cond;
    pw_cond_init(&cond);
    assert_int_equal(pthread_mutex_lock(&lock), 0);
    while (pw_cond_wait_ms(&cond, &lock, 1))
        continue; /* woken for no reason: allowed */
    assert_false(pw_cond_wait_ms(&cond, &lock, 0));
    assert_int_equal(pthread_mutex_unlock(&lock), 0);
    assert_int_equal(pthread_cond_destroy(&cond), 0);
    assert_int_equal(pthread_mutex_destroy(&lock), 0);
}

struct bell {
    pthread_mutex_t lock;
    pthread_cond_t cond;
    bool rung;
};

static void *ring(void *arg)
{
    struct bell *bell = arg;
    pthread_mutex_lock(&bell->lock);
    bell->rung = true;
    pthread_mutex_unlock(&bell->lock);
    pthread_cond_signal(&bell->cond);
    return NULL;
}

static void a_wait_of_any_length_can_be_ended(void **state)
{
    (void)state;
    static const uint64_t waits_ms[] = { 60000, UINT64_MAX - 1, PW_NEVER };
    for (size_t i = 0; i < sizeof(waits_ms) / sizeof(waits_ms[0]); i++) {
        struct bell bell = { .lock = PTHREAD_MUTEX_INITIALIZER };
        pthread_t thread;
        pw_cond_init(&bell.cond);
        assert_int_equal(pthread_create(&thread, NULL, ring, &bell), 0);
        assert_int_equal(pthread_mutex_lock(&bell.lock), 0);
        while (!bell.rung)
            assert_true(pw_cond_wait_ms(&bell.cond, &bell.lock, waits_ms[i]));
        assert_int_equal(pthread_mutex_unlock(&bell.lock), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_int_equal(pthread_cond_destroy(&bell.cond), 0);
        assert_int_equal(pthread_mutex_destroy(&bell.lock), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_poke_before_the_nap_is_remembered_once),
        cmocka_unit_test(a_nap_of_nothing_returns),
        cmocka_unit_test(pokes_cross_threads_and_none_is_lost),
        cmocka_unit_test(a_wait_with_a_limit_ends_by_itself),
        cmocka_unit_test(a_wait_of_any_length_can_be_ended),
    };
    return cmocka_run_group_tests(tests, leaks_begin, leaks_end);
}
