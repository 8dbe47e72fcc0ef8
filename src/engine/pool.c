/* SPDX-License-Identifier: Apache-2.0
 *
 * Ready lists and fairness. A lane per key holds its queue and counts what it has running; lanes
 * that may start something stand in a ring, and free slots go round it. What died twice with its
 * process waits in a lane of its own, the suspects', one of which runs at a time in the whole
 * engine. */
#include <assert.h>

#define HASH_NONFATAL_OOM 1
#define HASH_FUNCTION(bytes, size, hash) ((hash) = hash_of((bytes), (size)))
#define uthash_malloc(size) pw_alloc(size)
#define uthash_free(memory, size) pw_free(memory)
#define uthash_nonfatal_oom(element) ((element)->unhashed = true)
#include <uthash.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/base.h"
#include "base/limits.h"
#include "core/machine.h"
#include "engine/engine.h"
#include "engine/pool.h"
#include "engine/worker.h"

/* uthash takes 32 bits. */
static unsigned hash_of(const void *bytes, size_t size)
{
    return (unsigned)XXH3_64bits(bytes, size);
}

/* Which entity: the shard in the upper 8 bits, the row below. */
static uint64_t place_of(uint32_t shard, uint64_t row)
{
    static_assert(PW_SHARDS_MAX <= 256, "a shard fits 8 bits");
    return (uint64_t)shard << 56 | row;
}

struct pw_claim {
    struct pw_claim *next;  /* in its lane's queue */
    struct pw_claim *newer; /* in the list of running ones */
    struct pw_claim *older;
    struct pw_lane *lane;
    struct pw_listing listing; /* its key is the lane's */
    uint64_t place;
    uint64_t until_ms;
    enum pw_claim_state state;
    bool hashed; /* the entity's present claim; else a left one, whose task is over */
    bool expired;
    bool over;     /* its visit is */
    bool unhashed; /* set by uthash when out of memory */
    UT_hash_handle hh;
};

struct pw_lane {
    struct pw_lane *left; /* in the ring of lanes that may start something; NULL: not in it */
    struct pw_lane *right;
    struct pw_claim *first;
    struct pw_claim *last;
    size_t claims; /* all of its, in whatever state */
    size_t running;
    size_t later;
    bool unhashed;
    UT_hash_handle hh;
    char key[]; /* ends in '\0' */
};

struct pw_pool {
    struct pawl *engine;
    pawl_unit unit;
    pthread_mutex_t lock;
    pthread_cond_t listed; /* workers wait for it */
    struct pw_claim *claims;
    struct pw_lane *lanes;
    struct pw_lane *ring; /* where the next free slot goes */
    struct pw_lane *suspects;
    struct pw_claim *newest; /* running or kept open: the head of their list */
    uint64_t next_expiry_ms;
    uint64_t rest_ms; /* nothing begins before; 0: it does not rest */
    size_t queued;
    size_t running;
    size_t later;
    size_t ended;
    size_t idle;
    size_t lane_running_max;
    size_t lane_later_max;
    size_t later_max;
    bool stopping;
    bool suspect_ended; /* other pools' suspects may wait for it */
    pthread_t *threads;
    size_t threads_count;
};

/* Outcomes that may be on their way to the writers: enough for two batches, so that quick work
 * waits for slow commits and memory stays bounded. */
#define ENDED_MAX ((size_t)2 * PW_BATCH_MAX)

/* --- the two tables ----------------------------------------------------------------------- */

/* uthash's macros count as this code's nesting. NOLINTBEGIN(readability-function-size) */

static void hash_claim(struct pw_pool *pool, struct pw_claim *claim)
{
    HASH_ADD(hh, pool->claims, place, sizeof(claim->place), claim);
    claim->hashed = !claim->unhashed;
}

static void unhash_claim(struct pw_pool *pool, struct pw_claim *claim)
{
    if (claim->hashed)
        HASH_DEL(pool->claims, claim);
    claim->hashed = false;
}

static struct pw_claim *find_claim(struct pw_pool *pool, uint32_t shard, uint64_t row)
{
    uint64_t place = place_of(shard, row);
    struct pw_claim *claim = NULL;
    HASH_FIND(hh, pool->claims, &place, sizeof(place), claim);
    return claim;
}

/* False: out of memory. */
static bool hash_lane(struct pw_pool *pool, struct pw_lane *lane)
{
    HASH_ADD_STR(pool->lanes, key, lane);
    return !lane->unhashed;
}

static void unhash_lane(struct pw_pool *pool, struct pw_lane *lane)
{
    HASH_DEL(pool->lanes, lane);
}

static struct pw_lane *find_lane(struct pw_pool *pool, const char *key)
{
    struct pw_lane *lane = NULL;
    HASH_FIND_STR(pool->lanes, key, lane);
    return lane;
}

/* NOLINTEND(readability-function-size) */

/* --- lanes -------------------------------------------------------------------------------- */

static bool may_start(const struct pw_pool *pool, const struct pw_lane *lane)
{
    return lane->first != NULL && lane->running < pool->lane_running_max &&
           lane->later < pool->lane_later_max;
}

static void ring_out(struct pw_pool *pool, struct pw_lane *lane)
{
    if (pool->ring == lane)
        pool->ring = lane->right != lane ? lane->right : NULL;
    lane->left->right = lane->right;
    lane->right->left = lane->left;
    lane->left = lane->right = NULL;
}

static void ring_in(struct pw_pool *pool, struct pw_lane *lane)
{
    struct pw_lane *next = pool->ring != NULL ? pool->ring : lane;
    struct pw_lane *previous = pool->ring != NULL ? next->left : lane;
    lane->right = next;
    lane->left = previous;
    previous->right = lane;
    next->left = lane;
    if (pool->ring == NULL)
        pool->ring = lane;
}

/* After any change of a lane: in the ring when it may start something, freed when nothing is left
 * of it. */
static void lane_settle(struct pw_pool *pool, struct pw_lane *lane)
{
    if (lane == pool->suspects)
        return;
    bool should = may_start(pool, lane);
    if (should && lane->right == NULL)
        ring_in(pool, lane);
    if (!should && lane->right != NULL)
        ring_out(pool, lane);
    if (lane->claims > 0)
        return;
    unhash_lane(pool, lane);
    pw_free(lane);
}

static struct pw_lane *lane_make(const char *key)
{
    size_t size = strlen(key) + 1;
    struct pw_lane *lane = pw_alloc(sizeof(*lane) + size);
    if (lane != NULL)
        memcpy(lane->key, key, size);
    return lane;
}

static struct pw_lane *lane_get(struct pw_pool *pool, const char *key)
{
    struct pw_lane *lane = find_lane(pool, key);
    if (lane != NULL)
        return lane;
    lane = lane_make(key);
    if (lane == NULL || hash_lane(pool, lane))
        return lane;
    pw_free(lane);
    return NULL;
}

/* --- claims ------------------------------------------------------------------------------- */

static void queue_claim(struct pw_pool *pool, struct pw_claim *claim)
{
    struct pw_lane *lane = claim->lane;
    claim->state = PW_CLAIM_QUEUED;
    claim->next = NULL;
    if (lane->first == NULL)
        lane->first = claim;
    else
        lane->last->next = claim;
    lane->last = claim;
    pool->queued++;
    lane_settle(pool, lane);
}

static struct pw_claim *unqueue_claim(struct pw_pool *pool, struct pw_lane *lane)
{
    struct pw_claim *claim = lane->first;
    lane->first = claim->next;
    claim->next = NULL;
    pool->queued--;
    return claim;
}

static void running_in(struct pw_pool *pool, struct pw_claim *claim)
{
    claim->newer = NULL;
    claim->older = pool->newest;
    if (pool->newest != NULL)
        pool->newest->newer = claim;
    pool->newest = claim;
}

static void running_out(struct pw_pool *pool, struct pw_claim *claim)
{
    if (claim->newer != NULL)
        claim->newer->older = claim->older;
    else
        pool->newest = claim->older;
    if (claim->older != NULL)
        claim->older->newer = claim->newer;
    claim->newer = claim->older = NULL;
    if (pool->newest == NULL)
        pool->next_expiry_ms = PW_NEVER;
}

static void suspect_over(struct pw_pool *pool, const struct pw_claim *claim)
{
    if (claim->lane != pool->suspects)
        return;
    atomic_flag_clear(&pool->engine->suspect_runs);
    pool->suspect_ended = true;
}

/* Gives back what the claim holds in its present state. */
static void leave_state(struct pw_pool *pool, struct pw_claim *claim)
{
    switch (claim->state) {
    case PW_CLAIM_RUNNING:
        pool->running--;
        claim->lane->running--;
        running_out(pool, claim);
        suspect_over(pool, claim);
        break;
    case PW_CLAIM_LATER:
        pool->later--;
        claim->lane->later--;
        running_out(pool, claim);
        suspect_over(pool, claim);
        break;
    case PW_CLAIM_ENDED:
        pool->ended--;
        break;
    case PW_CLAIM_QUEUED:
    case PW_CLAIM_LEFT:
    default:
        break;
    }
}

/* Ends a claim that is not queued. */
static void free_claim(struct pw_pool *pool, struct pw_claim *claim)
{
    assert(claim->state != PW_CLAIM_QUEUED);
    struct pw_lane *lane = claim->lane;
    leave_state(pool, claim);
    unhash_claim(pool, claim);
    lane->claims--;
    pw_free(claim);
    lane_settle(pool, lane);
}

static bool is_task(const struct pw_claim *claim, uint64_t epoch, uint32_t attempt)
{
    return claim->listing.epoch == epoch && claim->listing.attempt == attempt;
}

/* Out of memory: the task is not listed; the safety net finds it. */
static void add_claim(struct pw_pool *pool, const struct pw_listing *listing)
{
    struct pw_lane *lane = listing->suspect ? pool->suspects : lane_get(pool, listing->key);
    struct pw_claim *claim = lane != NULL ? pw_alloc(sizeof(*claim)) : NULL;
    if (lane == NULL)
        return;
    if (claim != NULL) {
        claim->listing = *listing;
        claim->listing.key = lane->key;
        claim->lane = lane;
        claim->place = place_of(listing->shard, listing->row);
        hash_claim(pool, claim);
    }
    if (claim == NULL || !claim->hashed) {
        pw_free(claim);
        lane_settle(pool, lane);
        return;
    }
    lane->claims++;
    queue_claim(pool, claim);
}

/* Lists are made from looks at the store that may be over by now; epochs and attempts only grow. */
static bool is_older(const struct pw_listing *listing, const struct pw_listing *than)
{
    return listing->epoch < than->epoch ||
           (listing->epoch == than->epoch && listing->attempt < than->attempt);
}

static void list(struct pw_pool *pool, const struct pw_listing *listing)
{
    struct pw_claim *claim = find_claim(pool, listing->shard, listing->row);
    if (claim == NULL) {
        add_claim(pool, listing);
        return;
    }
    bool same = is_task(claim, listing->epoch, listing->attempt);
    if (is_older(listing, &claim->listing))
        return;
    if (claim->state == PW_CLAIM_QUEUED) { /* it keeps its place */
        claim->listing.epoch = listing->epoch;
        claim->listing.attempt = listing->attempt;
        claim->listing.probation = claim->listing.probation && same;
    } else if (!same) {
        unhash_claim(pool, claim); /* its task is over; it frees itself */
        add_claim(pool, listing);
    }
}

/* --- life --------------------------------------------------------------------------------- */

static size_t share_of(size_t slots, uint32_t percent)
{
    size_t share = slots * percent / 100;
    return share > 0 ? share : 1;
}

pawl_err pw_pool_open(struct pw_pool **pool, struct pawl *engine, const pawl_unit *unit)
{
    struct pw_pool *opened = pw_alloc(sizeof(*opened));
    struct pw_lane *suspects = lane_make("");
    if (opened == NULL || suspects == NULL) {
        pw_free(opened);
        pw_free(suspects);
        return PAWL_E_NOMEM;
    }
    const pawl_machine *machine = unit->machine;
    opened->engine = engine;
    opened->unit = *unit;
    opened->suspects = suspects;
    opened->next_expiry_ms = PW_NEVER;
    opened->lane_running_max = share_of(pw_workers(machine), pw_key_share(machine));
    opened->lane_later_max = share_of(pw_later_max(machine), pw_key_share(machine));
    opened->later_max = pw_later_max(machine);
    int failed = pthread_mutex_init(&opened->lock, NULL);
    assert(failed == 0);
    (void)failed;
    pw_cond_init(&opened->listed);
    *pool = opened;
    return PAWL_OK;
}

void pw_pool_close(struct pw_pool *pool)
{
    if (pool == NULL)
        return;
    assert(pool->threads_count == 0);
    while (pool->claims != NULL) {
        struct pw_claim *claim = pool->claims;
        unhash_claim(pool, claim);
        pw_free(claim);
    }
    while (pool->lanes != NULL) {
        struct pw_lane *lane = pool->lanes;
        unhash_lane(pool, lane);
        pw_free(lane);
    }
    pw_free(pool->suspects);
    pw_free(pool->threads);
    (void)pthread_cond_destroy(&pool->listed); /* no thread is left */
    (void)pthread_mutex_destroy(&pool->lock);
    pw_free(pool);
}

static void *worker_main(void *arg)
{
    struct pw_pool *pool = arg;
    for (struct pw_claim *claim = pw_pool_take(pool, true); claim != NULL;
         claim = pw_pool_take(pool, true))
        pw_worker_run(pool, claim);
    return NULL;
}

pawl_err pw_pool_start(struct pw_pool *pool, pawl_why *why)
{
    size_t count = pw_workers(pool->unit.machine);
    pool->threads = pw_alloc(count * sizeof(*pool->threads));
    if (pool->threads == NULL)
        return pw_fail(why, PAWL_E_NOMEM, "out of memory");
    for (; pool->threads_count < count; pool->threads_count++)
        if (pthread_create(&pool->threads[pool->threads_count], NULL, worker_main, pool) != 0)
            return pw_fail(why, PAWL_E_NOMEM, "machine '%s': thread %zu of %zu cannot be made",
                           pool->unit.machine->name, pool->threads_count + 1, count);
    return PAWL_OK;
}

void pw_pool_stop(struct pw_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    pool->stopping = true;
    pthread_mutex_unlock(&pool->lock);
    pthread_cond_broadcast(&pool->listed);
}

void pw_pool_join(struct pw_pool *pool)
{
    for (; pool->threads_count > 0; pool->threads_count--)
        (void)pthread_join(pool->threads[pool->threads_count - 1], NULL); /* ours, joined once */
}

const pawl_unit *pw_pool_unit(const struct pw_pool *pool)
{
    return &pool->unit;
}

struct pawl *pw_pool_engine(const struct pw_pool *pool)
{
    return pool->engine;
}

/* --- listing and taking ------------------------------------------------------------------- */

static void wake_all_pools(struct pawl *engine)
{
    for (size_t i = 0; i < engine->machines.count; i++) {
        struct pw_pool *pool = engine->pools[i];
        pthread_mutex_lock(&pool->lock);
        pthread_mutex_unlock(&pool->lock); /* whoever looked before now waits */
        pthread_cond_broadcast(&pool->listed);
    }
}

/* Unlocks, and wakes as many waiting workers as have something to do. */
static void unlock_and_wake(struct pw_pool *pool)
{
    bool some = pool->ring != NULL || pool->suspects->first != NULL;
    size_t count = pool->queued < pool->idle ? pool->queued : pool->idle;
    bool suspect_ended = pool->suspect_ended;
    pool->suspect_ended = false;
    pthread_mutex_unlock(&pool->lock);
    if (suspect_ended)
        wake_all_pools(pool->engine);
    else if (some && count > 1)
        pthread_cond_broadcast(&pool->listed);
    else if (some && count == 1)
        pthread_cond_signal(&pool->listed);
}

static void mark_over(struct pw_pool *pool, const struct pw_listing *present)
{
    struct pw_claim *claim = find_claim(pool, present->shard, present->row);
    if (claim != NULL && claim->listing.epoch < present->epoch)
        claim->over = true;
}

/* An outcome that leads straight to the entity's next task: its claim goes on, without a search for
 * its place. */
static bool carry_on(struct pw_pool *pool, const struct pw_settled *settled)
{
    struct pw_claim *claim = settled->ended;
    const struct pw_listing *next = &settled->listing;
    if (claim == NULL || !settled->listed || !claim->hashed || claim->lane == pool->suspects ||
        next->suspect)
        return false;
    if (claim->place != place_of(next->shard, next->row))
        return false;
    leave_state(pool, claim);
    claim->over = false;
    claim->listing = *next;
    claim->listing.key = claim->lane->key; /* an entity's key does not change */
    queue_claim(pool, claim);
    return true;
}

static void settle(struct pw_pool *pool, const struct pw_settled *settled)
{
    if (carry_on(pool, settled))
        return;
    bool present =
        settled->ended != NULL && settled->ended->hashed; /* then no other claim of the entity is */
    if (settled->ended != NULL)
        free_claim(pool, settled->ended);
    if (settled->over && !present)
        mark_over(pool, &settled->listing);
    if (settled->listed)
        list(pool, &settled->listing);
}

void pw_pool_settle(struct pw_pool *pool, const struct pw_settled *settled, size_t count)
{
    pthread_mutex_lock(&pool->lock);
    for (size_t i = 0; i < count; i++) {
        if (settled[i].pool == pool)
            settle(pool, &settled[i]);
    }
    unlock_and_wake(pool);
}

bool pw_pool_has(struct pw_pool *pool, uint32_t shard, uint64_t row, uint64_t epoch,
                 uint32_t attempt)
{
    pthread_mutex_lock(&pool->lock);
    const struct pw_claim *claim = find_claim(pool, shard, row);
    bool has = claim != NULL && is_task(claim, epoch, attempt);
    pthread_mutex_unlock(&pool->lock);
    return has;
}

static uint64_t now_ms(const struct pw_pool *pool)
{
    struct pw_clock *clock = pool->engine->clock;
    return clock->monotonic_ms(clock);
}

static bool rests(struct pw_pool *pool)
{
    if (pool->rest_ms != 0 && pool->rest_ms <= now_ms(pool))
        pool->rest_ms = 0;
    return pool->rest_ms != 0;
}

static struct pw_claim *next_claim(struct pw_pool *pool)
{
    if (pool->ended >= ENDED_MAX || pool->later >= pool->later_max || rests(pool))
        return NULL;
    struct pw_lane *lane = pool->suspects;
    bool suspect = lane->first != NULL && !atomic_flag_test_and_set(&pool->engine->suspect_runs);
    if (!suspect)
        lane = pool->ring;
    if (lane == NULL)
        return NULL;
    struct pw_claim *claim = unqueue_claim(pool, lane);
    if (!suspect)
        pool->ring = lane->right;
    claim->state = PW_CLAIM_RUNNING;
    claim->until_ms = PW_NEVER;
    claim->expired = claim->over = false;
    lane->running++;
    pool->running++;
    running_in(pool, claim);
    lane_settle(pool, lane);
    return claim;
}

struct pw_claim *pw_pool_take(struct pw_pool *pool, bool wait)
{
    struct pw_claim *claim = NULL;
    pthread_mutex_lock(&pool->lock);
    while (!pool->stopping && (claim = next_claim(pool)) == NULL && wait) {
        pool->idle++;
        if (pool->rest_ms != 0)
            (void)pw_cond_wait_ms(&pool->listed, &pool->lock,
                                  PW_FULL_RETRY_MS); /* early or late: it looks again */
        else
            pthread_cond_wait(&pool->listed, &pool->lock);
        pool->idle--;
    }
    pthread_mutex_unlock(&pool->lock);
    return claim;
}

const struct pw_listing *pw_claim_task(const struct pw_claim *claim)
{
    return &claim->listing;
}

/* --- what becomes of a claim -------------------------------------------------------------- */

void pw_pool_running(struct pw_pool *pool, struct pw_claim *claim, uint64_t until_ms)
{
    pthread_mutex_lock(&pool->lock);
    claim->until_ms = until_ms;
    bool sooner = until_ms < pool->next_expiry_ms;
    if (sooner)
        pool->next_expiry_ms = until_ms;
    pthread_mutex_unlock(&pool->lock);
    if (sooner) /* the first shard's writer looks after the time of attempts */
        pw_poke(&pool->engine->shards[0].writer.wake);
}

static void change_state(struct pw_pool *pool, struct pw_claim *claim, enum pw_claim_state state)
{
    leave_state(pool, claim);
    claim->state = state;
    lane_settle(pool, claim->lane);
}

void pw_pool_later(struct pw_pool *pool, struct pw_claim *claim)
{
    pthread_mutex_lock(&pool->lock);
    assert(claim->state == PW_CLAIM_RUNNING);
    bool suspect = claim->lane == pool->suspects;
    if (claim->expired) {
        change_state(pool, claim, PW_CLAIM_LEFT);
        unlock_and_wake(pool);
        return;
    }
    pool->running--; /* not leave_state: a suspect stays the only one */
    claim->lane->running--;
    claim->state = PW_CLAIM_LATER;
    pool->later++;
    claim->lane->later++;
    if (!suspect)
        lane_settle(pool, claim->lane);
    unlock_and_wake(pool);
}

void pw_pool_ended(struct pw_pool *pool, struct pw_claim *claim)
{
    pthread_mutex_lock(&pool->lock);
    assert(claim->state == PW_CLAIM_RUNNING || claim->state == PW_CLAIM_LATER ||
           claim->state == PW_CLAIM_LEFT);
    change_state(pool, claim, PW_CLAIM_ENDED);
    pool->ended++;
    unlock_and_wake(pool);
}

void pw_pool_drop(struct pw_pool *pool, struct pw_claim *claim)
{
    pthread_mutex_lock(&pool->lock);
    free_claim(pool, claim);
    unlock_and_wake(pool);
}

void pw_pool_put_back(struct pw_pool *pool, struct pw_claim *claim)
{
    pthread_mutex_lock(&pool->lock);
    assert(claim->state == PW_CLAIM_RUNNING);
    pool->rest_ms = pw_time_add(now_ms(pool), PW_FULL_RETRY_MS);
    if (claim->hashed) {
        leave_state(pool, claim);
        queue_claim(pool, claim);
    } else { /* the entity has a newer one */
        free_claim(pool, claim);
    }
    unlock_and_wake(pool);
}

uint64_t pw_pool_rests_until(struct pw_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    uint64_t until_ms = pool->rest_ms != 0 && pool->queued > 0 ? pool->rest_ms : PW_NEVER;
    pthread_mutex_unlock(&pool->lock);
    return until_ms;
}

static void expire(struct pw_pool *pool, struct pw_claim *claim, struct pw_expired *expired)
{
    claim->expired = true;
    expired->listing = claim->listing;
    expired->listing.key = "";
    if (claim->state == PW_CLAIM_LATER)
        change_state(pool, claim, PW_CLAIM_LEFT);
}

size_t pw_pool_expire(struct pw_pool *pool, uint64_t now_ms, struct pw_expired *expired,
                      size_t room, uint64_t *next_ms)
{
    size_t count = 0;
    pthread_mutex_lock(&pool->lock);
    if (pool->next_expiry_ms <= now_ms) {
        uint64_t next = PW_NEVER;
        struct pw_claim *older = NULL;
        for (struct pw_claim *claim = pool->newest; claim != NULL; claim = older) {
            older = claim->older;
            if (claim->expired)
                continue;
            if (claim->until_ms <= now_ms && count < room)
                expire(pool, claim, &expired[count++]);
            else if (claim->until_ms < next)
                next = claim->until_ms;
        }
        pool->next_expiry_ms = next;
    }
    *next_ms = pool->next_expiry_ms;
    unlock_and_wake(pool);
    return count;
}

bool pw_pool_cancelled(struct pw_pool *pool, struct pw_claim *claim)
{
    pthread_mutex_lock(&pool->lock);
    bool cancelled = pool->stopping || claim->expired || claim->over || !claim->hashed;
    pthread_mutex_unlock(&pool->lock);
    return cancelled;
}

void pw_pool_counts(struct pw_pool *pool, size_t *ready, size_t *running, size_t *later)
{
    pthread_mutex_lock(&pool->lock);
    *ready = pool->queued;
    *running = pool->running;
    *later = pool->later;
    pthread_mutex_unlock(&pool->lock);
}
