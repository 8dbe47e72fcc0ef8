/* SPDX-License-Identifier: Apache-2.0
 *
 * Latches: one waits, one opens. */
#include <assert.h>

#include "engine/engine.h"
#include "engine/request.h"

void pw_latch_init(struct pw_latch *latch)
{
    int failed = pthread_mutex_init(&latch->lock, NULL);
    assert(failed == 0);
    failed = pthread_cond_init(&latch->opened, NULL);
    assert(failed == 0);
    (void)failed;
    latch->open = false;
}

void pw_latch_fini(struct pw_latch *latch)
{
    (void)pthread_cond_destroy(&latch->opened); /* nobody waits any more */
    (void)pthread_mutex_destroy(&latch->lock);
}

/* Signals under the lock: the waiter may destroy the latch as soon as it has the lock. */
void pw_latch_open(struct pw_latch *latch)
{
    pthread_mutex_lock(&latch->lock);
    latch->open = true;
    pthread_cond_signal(&latch->opened);
    pthread_mutex_unlock(&latch->lock);
}

void pw_latch_wait(struct pw_latch *latch, struct pawl *engine)
{
    if (engine->drive.turn != NULL) {
        while (!latch->open)
            engine->drive.turn(engine->drive.arg);
        return;
    }
    pthread_mutex_lock(&latch->lock);
    while (!latch->open)
        pthread_cond_wait(&latch->opened, &latch->lock);
    pthread_mutex_unlock(&latch->lock);
}
