/* SPDX-License-Identifier: Apache-2.0
 *
 * A nap that another thread can end. A poke is remembered until the next nap, so none is lost. */
#ifndef PW_WAKE_H
#define PW_WAKE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct pw_wake {
    pthread_mutex_t lock;
    pthread_cond_t ended;
    bool poked;
};

void pw_wake_init(struct pw_wake *wake);
void pw_wake_fini(struct pw_wake *wake);

/* Any thread. */
void pw_poke(struct pw_wake *wake);

/* Sleeps for `ms` (PW_NEVER: without end) or until poked. One thread. */
void pw_nap(struct pw_wake *wake, uint64_t ms);

/* A condition that times out by the monotonic clock. */
void pw_cond_init(pthread_cond_t *cond);

/* Waits on `cond` at most `ms`; the caller holds `lock` and looks again. False: the time is over.
 */
bool pw_cond_wait_ms(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t ms);

#endif
