/* SPDX-License-Identifier: Apache-2.0
 *
 * Naps on a condition variable. Lock and unlock of a correct mutex cannot fail; their results are
 * asserted away. */
#include <assert.h>
#include <errno.h>
#include <time.h>

#include "base/clock.h"
#include "base/wake.h"

#define NAP_MS_MAX (60u * 60 * 1000) /* far from any overflow; the sleeper looks and naps again */

void pw_cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t attr;
    int failed = pthread_condattr_init(&attr);
    assert(failed == 0);
    failed = pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    assert(failed == 0);
    failed = pthread_cond_init(cond, &attr);
    assert(failed == 0);
    (void)failed;
    (void)pthread_condattr_destroy(&attr); /* cannot fail on an initialised one */
}

bool pw_cond_wait_ms(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t ms)
{
    struct timespec until = { 0 };
    if (ms > NAP_MS_MAX)
        ms = NAP_MS_MAX;
    if (clock_gettime(CLOCK_MONOTONIC, &until) != 0)
        return false;
    until.tv_sec += (time_t)(ms / 1000);
    until.tv_nsec += (long)(ms % 1000) * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    return pthread_cond_timedwait(cond, lock, &until) != ETIMEDOUT;
}

void pw_wake_init(struct pw_wake *wake)
{
    int failed = pthread_mutex_init(&wake->lock, NULL);
    assert(failed == 0);
    (void)failed;
    pw_cond_init(&wake->ended);
    wake->poked = false;
}

void pw_wake_fini(struct pw_wake *wake)
{
    (void)pthread_cond_destroy(&wake->ended); /* nobody waits any more */
    (void)pthread_mutex_destroy(&wake->lock);
}

void pw_poke(struct pw_wake *wake)
{
    pthread_mutex_lock(&wake->lock);
    bool first = !wake->poked;
    wake->poked = true;
    pthread_mutex_unlock(&wake->lock);
    if (first)
        pthread_cond_signal(&wake->ended);
}

void pw_nap(struct pw_wake *wake, uint64_t ms)
{
    pthread_mutex_lock(&wake->lock);
    if (ms == PW_NEVER)
        while (!wake->poked)
            pthread_cond_wait(&wake->ended, &wake->lock);
    else if (!wake->poked && ms > 0)
        (void)pw_cond_wait_ms(&wake->ended, &wake->lock,
                              ms); /* early or late: the turn looks at the clock */
    wake->poked = false;
    pthread_mutex_unlock(&wake->lock);
}
