/* SPDX-License-Identifier: Apache-2.0
 *
 * One pool per machine: the ready lists, a lane per key, and who runs what. All functions take the
 * pool's lock; none calls out with it. */
#ifndef PW_POOL_H
#define PW_POOL_H

#include <pthread.h>

#include "core/entity.h"

struct pawl;
struct pw_lane;
struct pw_claim;

/* The note in memory that a task is queued or running. */
enum pw_claim_state {
    PW_CLAIM_QUEUED,
    PW_CLAIM_RUNNING, /* on a thread */
    PW_CLAIM_LATER,   /* kept open by pawl_later */
    PW_CLAIM_LEFT,    /* kept open past its time: holds no slot, ends when somebody completes it */
    PW_CLAIM_ENDED,   /* the outcome is on its way to the writer */
};

/* A task as it is listed. */
struct pw_listing {
    uint32_t shard;
    uint32_t attempt;
    uint64_t row;
    uint64_t epoch;
    const char *key; /* borrowed for the call */
    bool probation;  /* its start is saved first */
    bool suspect;    /* one at a time: its start was saved before, and the process died */
};

/* What a batch tells a pool. */
struct pw_settled {
    struct pw_pool *pool;
    struct pw_claim *ended; /* NULL: none */
    bool listed;
    bool
        over; /* another event ended the visit, and the outcome of its work can no longer be used */
    struct pw_listing listing;
};

struct pw_pool;

PAWL_MUST_USE pawl_err pw_pool_open(struct pw_pool **pool, struct pawl *engine,
                                    const pawl_unit *unit);
void pw_pool_close(struct pw_pool *pool);
PAWL_MUST_USE pawl_err pw_pool_start(struct pw_pool *pool, pawl_why *why);

/* Workers leave when they have ended what they run; join waits for them. */
void pw_pool_stop(struct pw_pool *pool);
void pw_pool_join(struct pw_pool *pool);

const pawl_unit *pw_pool_unit(const struct pw_pool *pool);
struct pawl *pw_pool_engine(const struct pw_pool *pool);

/* Ends claims, lists tasks and marks those whose visit is over, in order, those of this pool;
 * others are passed over. A task that is listed or runs already is not listed twice; out of memory
 * it is left to the safety net. */
void pw_pool_settle(struct pw_pool *pool, const struct pw_settled *settled, size_t count);

/* True when the task is queued, running, or its outcome is on its way. */
bool pw_pool_has(struct pw_pool *pool, uint32_t shard, uint64_t row, uint64_t epoch,
                 uint32_t attempt);

/* The next task by fairness, now RUNNING; NULL when there is none, or none may run. wait: until
 * there is one, or the pool stops. */
struct pw_claim *pw_pool_take(struct pw_pool *pool, bool wait);

/* What a claim stands for. Whoever runs it needs no lock: it changes only while it is queued. */
const struct pw_listing *pw_claim_task(const struct pw_claim *claim);

/* RUNNING: its attempt is over at this monotonic time. */
void pw_pool_running(struct pw_pool *pool, struct pw_claim *claim, uint64_t until_ms);
/* RUNNING -> LATER; when its time is over already, LEFT. */
void pw_pool_later(struct pw_pool *pool, struct pw_claim *claim);
/* -> ENDED: its slot is free; the claim stays until the writer settles it. */
void pw_pool_ended(struct pw_pool *pool, struct pw_claim *claim);
/* The claim is gone: skipped, or nobody will settle it. */
void pw_pool_drop(struct pw_pool *pool, struct pw_claim *claim);

/* RUNNING -> QUEUED: it cannot begin now, since the store has no room. The pool rests for a second.
 */
void pw_pool_put_back(struct pw_pool *pool, struct pw_claim *claim);

/* Until when the pool rests, with something queued; PW_NEVER: it does not. */
uint64_t pw_pool_rests_until(struct pw_pool *pool);

struct pw_expired {
    struct pw_listing listing; /* key is not set */
};

/* Attempts whose time is over at now_ms: at most `room`. Each is told once; a LATER one frees its
 * slot. *next_ms: when the next one is over, PW_NEVER: none. */
size_t pw_pool_expire(struct pw_pool *pool, uint64_t now_ms, struct pw_expired *expired,
                      size_t room, uint64_t *next_ms);

/* True when the attempt's time or its visit is over, or the pool stops. */
bool pw_pool_cancelled(struct pw_pool *pool, struct pw_claim *claim);

/* Queued, running, kept open. */
void pw_pool_counts(struct pw_pool *pool, size_t *ready, size_t *running, size_t *later);

#endif
