/* SPDX-License-Identifier: Apache-2.0
 *
 * src/engine/pool: fairness over keys, one claim an entity, slots of running and kept open tasks,
 * time, suspects. The engine is there to be pointed at; nothing of it runs. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/limits.h"
#include "base/rng.h"
#include "engine/engine.h"
#include "engine/pool.h"
#include "sim/store.h"
#include "support/test.h"

static pawl_outcome work(pawl_task *task)
{
    (void)task;
    return pawl_raise(0);
}

static const pawl_state states[] = {
    { .name = "work", .flags = PAWL_START, .work = work },
    { .name = "end", .flags = PAWL_FINAL },
};
static const char *const events[] = { "done" };
static const pawl_edge edges[] = { { .from = 0, .event = 0, .to = 1 } };
#define TABLES PAWL_STATES(states), PAWL_EVENTS(events), PAWL_EDGES(edges)
static const pawl_machine machine_a = { .name = "a", TABLES, .workers = 4, .later_max = 6 };
static const pawl_machine machine_b = { .name = "b", TABLES, .workers = 4 };

/* The engine and its two pools. */
struct rig {
    struct pw_store *store;
    struct pawl *engine;
    struct pw_pool *a;
    struct pw_pool *b;
};

static void no_turn(void *arg)
{
    (void)arg;
}

static int begin(void **state)
{
    static struct rig rig;
    rig = (struct rig){ .store = NULL };
    if (pw_sim_store_open(&rig.store) != PAWL_OK)
        return -1;
    struct pw_parts parts = {
        .ns = "test", .stores = &rig.store, .shards = 1, .drive = { no_turn, NULL }, .lock = -1
    };
    const pawl_unit units[] = { { .machine = &machine_a }, { .machine = &machine_b } };
    bool fine = pw_engine_open(&rig.engine, &parts, NULL) == PAWL_OK &&
                pawl_add(rig.engine, &units[0], NULL) == PAWL_OK &&
                pawl_add(rig.engine, &units[1], NULL) == PAWL_OK;
    if (!fine)
        return -1;
    rig.a = rig.engine->pools[0];
    rig.b = rig.engine->pools[1];
    *state = &rig;
    return 0;
}

static int end(void **state)
{
    struct rig *rig = *state;
    pawl_close(rig->engine);
    pw_sim_store_free(rig->store);
    return 0;
}

/* --- short forms -------------------------------------------------------------------------- */

static struct pw_listing task_of(uint64_t row, const char *key)
{
    return (struct pw_listing){ .row = row, .epoch = 100, .attempt = 1, .key = key };
}

static void list_one(struct pw_pool *pool, struct pw_listing listing)
{
    struct pw_settled settled = { .pool = pool, .listed = true, .listing = listing };
    pw_pool_settle(pool, &settled, 1);
}

static void list(struct pw_pool *pool, uint64_t row, const char *key)
{
    list_one(pool, task_of(row, key));
}

static void list_suspect(struct pw_pool *pool, uint64_t row)
{
    struct pw_listing listing = task_of(row, "s");
    listing.suspect = true;
    list_one(pool, listing);
}

static void settle(struct pw_pool *pool, struct pw_claim *claim)
{
    struct pw_settled settled = { .pool = pool, .ended = claim };
    pw_pool_settle(pool, &settled, 1);
}

static struct pw_claim *take(struct pw_pool *pool)
{
    return pw_pool_take(pool, false);
}

static struct pw_claim *take_row(struct pw_pool *pool, uint64_t row)
{
    struct pw_claim *claim = take(pool);
    assert_non_null(claim);
    assert_int_equal(pw_claim_task(claim)->row, row);
    return claim;
}

static void finish(struct pw_pool *pool, struct pw_claim *claim)
{
    pw_pool_ended(pool, claim);
    settle(pool, claim);
}

static void expect_counts(struct pw_pool *pool, size_t ready, size_t running, size_t later)
{
    size_t got[3] = { 0 };
    pw_pool_counts(pool, &got[0], &got[1], &got[2]);
    assert_int_equal(got[0], ready);
    assert_int_equal(got[1], running);
    assert_int_equal(got[2], later);
}

static bool has(struct pw_pool *pool, uint64_t row, uint64_t epoch, uint32_t attempt)
{
    return pw_pool_has(pool, 0, row, epoch, attempt);
}

/* --- fairness ----------------------------------------------------------------------------- */

static void slots_go_round_the_keys(void **state)
{
    struct rig *rig = *state;
    struct pw_claim *claims[6];
    static const char *const keys[] = { "x", "x", "x", "y", "y", "y", "z" };
    for (uint64_t row = 1; row <= PW_COUNT(keys); row++)
        list(rig->a, row, keys[row - 1]);
    static const uint64_t rows[] = { 1, 4, 7, 2, 5 };
    for (size_t i = 0; i < PW_COUNT(rows); i++)
        claims[i] = take_row(rig->a, rows[i]);
    assert_null(take(rig->a)); /* x and y have their share of two */
    expect_counts(rig->a, 2, 5, 0);
    finish(rig->a, claims[1]); /* of y */
    claims[1] = take_row(rig->a, 6);
    assert_null(take(rig->a));
    list(rig->a, 8, "new"); /* a new key waits for nobody */
    claims[5] = take_row(rig->a, 8);
    finish(rig->a, claims[0]);
    claims[0] = take_row(rig->a, 3);
    expect_counts(rig->a, 0, 6, 0);
    for (size_t i = 0; i < PW_COUNT(claims); i++)
        finish(rig->a, claims[i]);
    expect_counts(rig->a, 0, 0, 0);
}

/* A thousand tasks of one key, one of another: it is the second to run. */
static void many_tasks_of_one_key_hold_up_no_other(void **state)
{
    struct rig *rig = *state;
    for (uint64_t row = 1; row <= 1000; row++)
        list(rig->a, row, "many");
    list(rig->a, 2000, "one");
    struct pw_claim *first = take_row(rig->a, 1);
    struct pw_claim *second = take_row(rig->a, 2000);
    finish(rig->a, first);
    finish(rig->a, second);
    for (uint64_t row = 2; row <= 1000; row++) /* in order of listing */
        finish(rig->a, take_row(rig->a, row));
    assert_null(take(rig->a));
}

static void a_key_never_has_more_than_its_share(void **state)
{
    struct rig *rig = *state;
    static const struct {
        uint32_t workers;
        uint32_t key_share;
        size_t most;
    } cases[] = {
        { 0, 0, 2 }, { 1, 0, 1 },   { 2, 0, 1 },   { 3, 0, 1 },       { 4, 100, 4 },   { 5, 0, 2 },
        { 4, 1, 1 }, { 10, 25, 2 }, { 256, 1, 2 }, { 256, 100, 256 }, { 256, 0, 128 },
    };
    for (size_t i = 0; i < PW_COUNT(cases); i++) {
        pawl_machine machine = {
            .name = "m", TABLES, .workers = cases[i].workers, .key_share = cases[i].key_share
        };
        pawl_unit unit = { .machine = &machine };
        struct pw_pool *pool = NULL;
        struct pw_claim *claims[256];
        size_t taken = 0;
        assert_int_equal(pw_pool_open(&pool, rig->engine, &unit), PAWL_OK);
        for (uint64_t row = 1; row <= 300; row++)
            list(pool, row, i % 2 == 0 ? "alone" : ""); /* no key is a key like others */
        while (taken < PW_COUNT(claims) && (claims[taken] = take(pool)) != NULL)
            taken++;
        assert_int_equal(taken, cases[i].most);
        while (taken > 0)
            finish(pool, claims[--taken]);
        pw_pool_close(pool); /* with what is queued */
    }
}

/* --- one claim an entity ------------------------------------------------------------------ */

static void an_entity_is_listed_once(void **state)
{
    struct rig *rig = *state;
    list(rig->a, 1, "x");
    list(rig->a, 1, "x");
    expect_counts(rig->a, 1, 0, 0);
    struct pw_claim *claim = take_row(rig->a, 1);
    list(rig->a, 1, "x"); /* it runs */
    expect_counts(rig->a, 0, 1, 0);
    pw_pool_later(rig->a, claim);
    list(rig->a, 1, "x"); /* it is kept open */
    expect_counts(rig->a, 0, 0, 1);
    pw_pool_ended(rig->a, claim);
    list(rig->a, 1, "x"); /* its outcome is on its way */
    expect_counts(rig->a, 0, 0, 0);
    assert_true(has(rig->a, 1, 100, 1));
    settle(rig->a, claim);
    assert_false(has(rig->a, 1, 100, 1));
    list(rig->a, 1, "x");
    expect_counts(rig->a, 1, 0, 0);
}

static void the_same_row_of_another_shard_is_another(void **state)
{
    struct rig *rig = *state;
    struct pw_listing listing = task_of(1, "x");
    list_one(rig->a, listing);
    listing.shard = PW_SHARDS_MAX - 1;
    list_one(rig->a, listing);
    expect_counts(rig->a, 2, 0, 0);
    assert_true(pw_pool_has(rig->a, 0, 1, 100, 1));
    assert_true(pw_pool_has(rig->a, PW_SHARDS_MAX - 1, 1, 100, 1));
    assert_false(pw_pool_has(rig->a, 1, 1, 100, 1));
    assert_false(pw_pool_has(rig->a, 0, 2, 100, 1));
    assert_false(pw_pool_has(rig->a, 0, 1, 101, 1));
    assert_false(pw_pool_has(rig->a, 0, 1, 100, 2));
    assert_false(pw_pool_has(rig->b, 0, 1, 100, 1));
}

static void list_as(struct pw_pool *pool, uint64_t row, uint64_t epoch, uint32_t attempt)
{
    struct pw_listing listing = task_of(row, "x");
    listing.epoch = epoch;
    listing.attempt = attempt;
    list_one(pool, listing);
}

static void a_queued_claim_becomes_the_newer_task_in_its_place(void **state)
{
    struct rig *rig = *state;
    list_as(rig->a, 1, 100, 1);
    list_as(rig->a, 2, 100, 1);
    list_as(rig->a, 1, 100, 2);
    list_as(rig->a, 1, 101, 1); /* another visit counts from one again */
    expect_counts(rig->a, 2, 0, 0);
    assert_true(has(rig->a, 1, 101, 1));
    assert_false(has(rig->a, 1, 100, 1));
    struct pw_claim *claim = take_row(rig->a, 1);
    assert_int_equal(pw_claim_task(claim)->epoch, 101);
    assert_int_equal(pw_claim_task(claim)->attempt, 1);
    finish(rig->a, claim);
}

/* A look at the store that is over by now must not put a claim back. */
static void an_older_listing_is_passed_over(void **state)
{
    struct rig *rig = *state;
    list_as(rig->a, 1, 101, 2);
    list_as(rig->a, 1, 101, 1);
    list_as(rig->a, 1, 100, 7);
    assert_true(has(rig->a, 1, 101, 2));
    struct pw_claim *claim = take_row(rig->a, 1);
    assert_int_equal(pw_claim_task(claim)->attempt, 2);
    list_as(rig->a, 1, 101, 1);
    list_as(rig->a, 1, 100, 7);
    expect_counts(rig->a, 0, 1, 0);
    assert_true(has(rig->a, 1, 101, 2));
    assert_false(pw_pool_cancelled(rig->a, claim));
    pw_pool_ended(rig->a, claim);
    list_as(rig->a, 1, 101, 1);
    expect_counts(rig->a, 0, 0, 0);
    settle(rig->a, claim);
}

static void a_newer_task_is_listed_beside_the_one_that_runs(void **state)
{
    struct rig *rig = *state;
    list_as(rig->a, 1, 100, 1);
    struct pw_claim *old = take_row(rig->a, 1);
    assert_false(pw_pool_cancelled(rig->a, old));
    list_as(rig->a, 1, 100, 2);
    assert_true(pw_pool_cancelled(rig->a, old)); /* of no use any more */
    expect_counts(rig->a, 1, 1, 0);
    assert_true(has(rig->a, 1, 100, 2));
    assert_false(has(rig->a, 1, 100, 1));
    struct pw_claim *new = take_row(rig->a, 1);
    assert_ptr_not_equal(new, old);
    list_as(rig->a, 1, 100, 3); /* and a third beside the two */
    finish(rig->a, old);
    assert_true(has(rig->a, 1, 100, 3));
    finish(rig->a, new);
    assert_true(has(rig->a, 1, 100, 3)); /* their ends do not end it */
    finish(rig->a, take_row(rig->a, 1));
    assert_false(has(rig->a, 1, 100, 3));
}

/* What a batch does with a retry at once: the claim ends and the next attempt is listed, in one
 * call. */
static void a_claim_ends_before_the_next_is_listed(void **state)
{
    struct rig *rig = *state;
    list_as(rig->a, 1, 100, 1);
    struct pw_claim *claim = take_row(rig->a, 1);
    pw_pool_ended(rig->a, claim);
    struct pw_settled settled[] = {
        { .pool = rig->b, .listed = true, .listing = task_of(7, "x") }, /* another pool's */
        { .pool = rig->a, .ended = claim, .listed = true, .listing = task_of(1, "x") },
        { .pool = rig->a, .listed = true, .listing = task_of(2, "y") },
    };
    pw_pool_settle(rig->a, settled, PW_COUNT(settled));
    expect_counts(rig->a, 2, 0, 0);
    expect_counts(rig->b, 0, 0, 0);
    pw_pool_settle(rig->b, settled, 1);
    expect_counts(rig->b, 1, 0, 0);
}

static void probation_is_of_the_task_that_was_listed(void **state)
{
    struct rig *rig = *state;
    struct pw_listing listing = task_of(1, "x");
    listing.probation = true;
    list_one(rig->a, listing);
    list(rig->a, 1, "x"); /* the same task: its start is saved first still */
    listing.row = 2;
    list_one(rig->a, listing);
    list_as(rig->a, 2, 100, 2); /* another attempt came about after the start */
    struct pw_claim *first = take_row(rig->a, 1);
    assert_true(pw_claim_task(first)->probation);
    struct pw_claim *second = take_row(rig->a, 2);
    assert_false(pw_claim_task(second)->probation);
    finish(rig->a, first);
    finish(rig->a, second);
}

static void a_dropped_claim_is_gone(void **state)
{
    struct rig *rig = *state;
    list(rig->a, 1, "x");
    struct pw_claim *claim = take_row(rig->a, 1);
    pw_pool_drop(rig->a, claim);
    expect_counts(rig->a, 0, 0, 0);
    assert_false(has(rig->a, 1, 100, 1));
    list(rig->a, 1, "x");
    claim = take_row(rig->a, 1);
    pw_pool_later(rig->a, claim);
    pw_pool_drop(rig->a, claim);
    list(rig->a, 1, "x");
    claim = take_row(rig->a, 1);
    list_as(rig->a, 1, 100, 2);
    pw_pool_drop(rig->a, claim); /* a left one */
    expect_counts(rig->a, 1, 0, 0);
    finish(rig->a, take_row(rig->a, 1));
}

/* --- kept open, ended --------------------------------------------------------------------- */

static void what_is_kept_open_frees_its_thread_up_to_a_limit(void **state)
{
    struct rig *rig = *state; /* later_max 6, a key's share 3 */
    struct pw_claim *claims[6];
    for (uint64_t row = 1; row <= 20; row++)
        list(rig->a, row, row % 2 == 0 ? "x" : "y");
    for (size_t i = 0; i < 3; i++) {
        claims[i] = take(rig->a);
        pw_pool_later(rig->a, claims[i]);
    }
    expect_counts(rig->a, 17, 0, 3);
    for (size_t i = 3; i < 6; i++) {
        claims[i] = take(rig->a);
        assert_non_null(claims[i]);
        pw_pool_later(rig->a, claims[i]);
    }
    assert_null(take(rig->a));
    list(rig->a, 30, "z");
    assert_null(take(rig->a)); /* the pool is full, whatever the key */
    finish(rig->a, claims[0]);
    expect_counts(rig->a, 15, 0, 5);
    struct pw_claim *claim = take(rig->a);
    assert_non_null(claim);
    finish(rig->a, claim);
    for (size_t i = 1; i < 6; i++)
        finish(rig->a, claims[i]);
}

static void a_key_keeps_no_more_open_than_its_share(void **state)
{
    struct rig *rig = *state;
    struct pw_claim *claims[3];
    for (uint64_t row = 1; row <= 10; row++)
        list(rig->a, row, "x");
    for (size_t i = 0; i < 3; i++) {
        claims[i] = take_row(rig->a, i + 1);
        pw_pool_later(rig->a, claims[i]);
    }
    assert_null(take(rig->a));
    list(rig->a, 20, "y");
    finish(rig->a, take_row(rig->a, 20));
    finish(rig->a, claims[1]);
    claims[1] = take_row(rig->a, 4);
    for (size_t i = 0; i < 3; i++)
        finish(rig->a, claims[i]);
}

static void outcomes_on_their_way_are_bounded(void **state)
{
    struct rig *rig = *state;
    static struct pw_claim *ended[2 * PW_BATCH_MAX];
    for (uint64_t row = 1; row <= PW_COUNT(ended) + 2; row++)
        list(rig->a, row, "x");
    for (size_t i = 0; i < PW_COUNT(ended); i++) {
        ended[i] = take_row(rig->a, i + 1);
        pw_pool_ended(rig->a, ended[i]);
    }
    assert_null(take(rig->a));
    expect_counts(rig->a, 2, 0, 0);
    settle(rig->a, ended[7]);
    ended[7] = take_row(rig->a, PW_COUNT(ended) + 1);
    pw_pool_ended(rig->a, ended[7]);
    assert_null(take(rig->a));
    for (size_t i = 0; i < PW_COUNT(ended); i++)
        settle(rig->a, ended[i]);
    finish(rig->a, take_row(rig->a, PW_COUNT(ended) + 2));
}

/* --- time --------------------------------------------------------------------------------- */

static void an_attempt_over_its_time_is_told_once(void **state)
{
    struct rig *rig = *state;
    struct pw_expired expired[4];
    uint64_t next_ms = 0;
    assert_int_equal(pw_pool_expire(rig->a, UINT64_MAX - 1, expired, 4, &next_ms), 0);
    assert_true(next_ms == PW_NEVER);
    list(rig->a, 1, "x");
    list(rig->a, 2, "y");
    struct pw_claim *first = take_row(rig->a, 1);
    struct pw_claim *second = take_row(rig->a, 2);
    assert_int_equal(pw_pool_expire(rig->a, 10, expired, 4, &next_ms), 0); /* has not begun */
    pw_pool_running(rig->a, first, 200);
    pw_pool_running(rig->a, second, 100);
    assert_int_equal(pw_pool_expire(rig->a, 99, expired, 4, &next_ms), 0);
    assert_int_equal(next_ms, 100);
    assert_int_equal(pw_pool_expire(rig->a, 100, expired, 4, &next_ms), 1);
    assert_int_equal(expired[0].listing.row, 2);
    assert_int_equal(expired[0].listing.epoch, 100);
    assert_int_equal(expired[0].listing.attempt, 1);
    assert_int_equal(next_ms, 200);
    assert_true(pw_pool_cancelled(rig->a, second));
    assert_false(pw_pool_cancelled(rig->a, first));
    expect_counts(rig->a, 0, 2, 0); /* its thread runs on */
    assert_int_equal(pw_pool_expire(rig->a, 200, expired, 4, &next_ms), 1);
    assert_int_equal(expired[0].listing.row, 1);
    assert_true(next_ms == PW_NEVER);
    assert_int_equal(pw_pool_expire(rig->a, 300, expired, 4, &next_ms), 0);
    finish(rig->a, first);
    finish(rig->a, second);
}

static void expiry_goes_on_where_there_was_no_room(void **state)
{
    struct rig *rig = *state;
    struct pw_claim *claims[5];
    struct pw_expired expired[5];
    uint64_t next_ms = 0;
    size_t told = 0;
    static const char *const keys[] = { "1", "2", "3", "4", "5" };
    for (uint64_t row = 0; row < 5; row++) {
        list(rig->a, row + 1, keys[row]);
        claims[row] = take(rig->a);
        pw_pool_running(rig->a, claims[row], 100 + row);
    }
    assert_int_equal(pw_pool_expire(rig->a, 500, expired, 0, &next_ms), 0);
    assert_int_equal(next_ms, 100);
    for (size_t got = 2; got == 2; told += got) {
        got = pw_pool_expire(rig->a, 500, expired, 2, &next_ms);
        assert_int_equal(next_ms <= 500, told + got < 5);
    }
    assert_int_equal(told, 5);
    for (size_t i = 0; i < 5; i++)
        finish(rig->a, claims[i]);
}

static void what_is_kept_open_past_its_time_holds_no_slot(void **state)
{
    struct rig *rig = *state;
    struct pw_claim *claims[6];
    struct pw_expired expired[8];
    uint64_t next_ms = 0;
    static const char *const keys[] = { "x", "y" };
    for (uint64_t row = 1; row <= 8; row++)
        list(rig->a, row, keys[row % 2]);
    for (size_t i = 0; i < 6; i++) {
        claims[i] = take(rig->a);
        pw_pool_running(rig->a, claims[i], 100);
        if (i == 5) /* its time is over on the thread, before it is kept open */
            assert_int_equal(pw_pool_expire(rig->a, 100, expired, 8, &next_ms), 6);
        pw_pool_later(rig->a, claims[i]);
    }
    expect_counts(rig->a, 2, 0, 0);
    assert_int_equal(pw_pool_expire(rig->a, 1000, expired, 8, &next_ms), 0);
    for (size_t i = 0; i < 6; i++) {
        assert_true(pw_pool_cancelled(rig->a, claims[i]));
        if (i < 2)
            finish(rig->a, take(rig->a)); /* there is room */
        finish(rig->a, claims[i]);        /* who completes it late does no harm */
    }
    expect_counts(rig->a, 0, 0, 0);
}

static void a_pool_that_stops_hands_out_nothing(void **state)
{
    struct rig *rig = *state;
    list(rig->a, 1, "x");
    list(rig->a, 2, "x");
    struct pw_claim *claim = take(rig->a);
    pw_pool_stop(rig->a);
    assert_true(pw_pool_cancelled(rig->a, claim));
    assert_null(take(rig->a));
    assert_null(pw_pool_take(rig->a, true)); /* nor waits */
    finish(rig->a, claim);
    pw_pool_stop(rig->a);
}

/* --- suspects ----------------------------------------------------------------------------- */

static void one_suspect_runs_at_a_time_in_all_pools(void **state)
{
    struct rig *rig = *state;
    list_suspect(rig->a, 1);
    list_suspect(rig->a, 2);
    list_suspect(rig->b, 3);
    list(rig->a, 4, "x");
    list(rig->b, 5, "x");
    struct pw_claim *suspect = take_row(rig->a, 1);
    struct pw_claim *innocent = take_row(rig->a, 4); /* others go on */
    assert_null(take(rig->a));
    struct pw_claim *other = take_row(rig->b, 5);
    assert_null(take(rig->b));
    pw_pool_ended(rig->a, suspect); /* its work is over: it can do no more harm */
    struct pw_claim *third = take_row(rig->b, 3);
    assert_null(take(rig->a));
    settle(rig->a, suspect);
    assert_null(take(rig->a));
    pw_pool_drop(rig->b, third);
    suspect = take_row(rig->a, 2);
    finish(rig->a, suspect);
    finish(rig->a, innocent);
    finish(rig->b, other);
}

static void a_suspect_that_is_kept_open_is_still_the_only_one(void **state)
{
    struct rig *rig = *state;
    struct pw_expired expired[2];
    uint64_t next_ms = 0;
    list_suspect(rig->a, 1);
    list_suspect(rig->a, 2);
    struct pw_claim *first = take_row(rig->a, 1);
    pw_pool_running(rig->a, first, 100);
    pw_pool_later(rig->a, first);
    assert_null(take(rig->a));
    assert_int_equal(pw_pool_expire(rig->a, 100, expired, 2, &next_ms), 1);
    struct pw_claim *second = take_row(rig->a, 2); /* until its time is over */
    pw_pool_running(rig->a, second, 200);
    assert_int_equal(pw_pool_expire(rig->a, 200, expired, 2, &next_ms), 1);
    list_suspect(rig->b, 3);
    assert_null(take(rig->b)); /* on a thread it may still crash */
    pw_pool_later(rig->a, second);
    finish(rig->b, take_row(rig->b, 3));
    finish(rig->a, first);
    finish(rig->a, second);
    list_suspect(rig->a, 4);
    finish(rig->a, take_row(rig->a, 4)); /* nothing of it all is left */
}

/* --- memory ------------------------------------------------------------------------------- */

/* Out of memory a task may not be listed, which the sweep puts right; nothing is half listed. */
static void want_of_memory_lists_whole_or_not(void **state)
{
    struct rig *rig = *state;
    bool through = false;
    for (uint64_t n = 1; !through; n++) {
        char key[16] = "";
        pw_print(key, sizeof(key), "k%d", (int)n);
        (void)pw_alloc_fail_at(n);
        list(rig->b, n, key);
        through = pw_alloc_fail_at(0) < n;
        bool listed = has(rig->b, n, 100, 1);
        expect_counts(rig->b, listed ? 1 : 0, 0, 0);
        struct pw_claim *claim = take(rig->b);
        assert_int_equal(claim != NULL, listed);
        assert_true(listed || !through);
        if (claim != NULL)
            finish(rig->b, claim);
        assert_true(n < 100);
    }
}

/* --- random ------------------------------------------------------------------------------- */

#define ROWS 40
#define HELD_MAX 64

struct held {
    struct pw_claim *claim;
    enum { RUNS, KEPT, ENDED } what;
    uint32_t attempt;
    uint64_t row;
};

struct play {
    struct pw_pool *pool;
    struct pw_rng rng;
    struct held held[HELD_MAX];
    size_t count;
    uint32_t attempts[ROWS]; /* of the newest listing; 0: none open */
};

static const char *key_of_row(uint64_t row)
{
    static const char *const keys[] = { "", "x", "y" };
    return keys[row % PW_COUNT(keys)];
}

static void play_list(struct play *p)
{
    uint64_t row = pw_rng_below(&p->rng, ROWS);
    uint32_t attempt = p->attempts[row] + (uint32_t)pw_rng_below(&p->rng, 2);
    struct pw_listing listing = task_of(row + 1, key_of_row(row));
    listing.attempt = attempt > 0 ? attempt : 1;
    p->attempts[row] = listing.attempt;
    list_one(p->pool, listing);
    assert_true(has(p->pool, row + 1, 100, listing.attempt));
}

static void play_take(struct play *p)
{
    if (p->count == HELD_MAX)
        return;
    struct pw_claim *claim = take(p->pool);
    if (claim == NULL)
        return;
    const struct pw_listing *task = pw_claim_task(claim);
    assert_int_equal(task->attempt, p->attempts[task->row - 1]); /* the newest that was listed */
    assert_string_equal(task->key, key_of_row(task->row - 1));
    size_t running = 1;
    for (size_t i = 0; i < p->count; i++) {
        assert_false(p->held[i].row == task->row &&
                     p->held[i].attempt == task->attempt); /* nobody has it */
        running += p->held[i].what == RUNS && strcmp(key_of_row(p->held[i].row - 1), task->key) == 0
                       ? 1
                       : 0;
    }
    assert_true(running <= 2);
    p->held[p->count++] = (struct held){ claim, RUNS, task->attempt, task->row };
}

static void play_end(struct play *p)
{
    if (p->count == 0)
        return;
    size_t at = pw_rng_below(&p->rng, p->count);
    struct held *held = &p->held[at];
    if (held->what == RUNS && pw_rng_below(&p->rng, 3) == 0) {
        pw_pool_later(p->pool, held->claim);
        held->what = KEPT;
    } else if (held->what != ENDED) {
        pw_pool_ended(p->pool, held->claim);
        held->what = ENDED;
    } else {
        settle(p->pool, held->claim);
        *held = p->held[--p->count];
    }
}

static void play_check(struct play *p)
{
    size_t ready = 0;
    size_t running = 0;
    size_t later = 0;
    size_t runs = 0;
    size_t kept = 0;
    pw_pool_counts(p->pool, &ready, &running, &later);
    for (size_t i = 0; i < p->count; i++) {
        runs += p->held[i].what == RUNS ? 1 : 0;
        kept += p->held[i].what == KEPT ? 1 : 0;
    }
    assert_int_equal(running, runs);
    assert_int_equal(later, kept);
    assert_true(ready <= ROWS);
}

static uint64_t playing;

static void random_plays(void **state)
{
    struct rig *rig = *state;
    const char *one = getenv("PAWL_SEED");
    uint64_t from = one != NULL ? strtoull(one, NULL, 10) : 1;
    uint64_t to = one != NULL ? from : 200;
    for (playing = from; playing <= to; playing++) {
        struct play p = { .pool = rig->a, .rng = { playing } };
        for (int i = 0; i < 400; i++) {
            static void (*const moves[])(struct play *) = { play_list, play_take, play_end,
                                                            play_end };
            moves[pw_rng_below(&p.rng, PW_COUNT(moves))](&p);
            play_check(&p);
        }
        for (size_t ready = 1; ready > 0 || p.count > 0;) { /* all comes to an end */
            size_t running = 0;
            size_t later = 0;
            play_take(&p);
            play_end(&p);
            pw_pool_counts(p.pool, &ready, &running, &later);
        }
    }
    playing = 0;
}

static int end_play(void **state)
{
    if (playing != 0)
        (void)fprintf(stderr, "pool: again with PAWL_SEED=%llu\n", (unsigned long long)playing);
    playing = 0;
    return end(state);
}

/* --- threads ------------------------------------------------------------------------------ */

static void *taker(void *arg)
{
    return pw_pool_take(arg, true);
}

#define TAKERS 8

/* Each waiting thread gets one, whenever it began to wait; those that are left leave when the pool
 * stops. */
static void waiting_threads_are_woken(void **state)
{
    struct rig *rig = *state;
    pthread_t threads[TAKERS];
    static const char *const keys[] = { "1", "2", "3" };
    for (size_t i = 0; i < TAKERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, taker, rig->b), 0);
    for (uint64_t row = 1; row <= 6; row++)
        list(rig->b, row, keys[row % 3]);
    for (size_t running = 0; running < 6;) { /* each waits for its own, none is missed */
        size_t ready = 0;
        size_t later = 0;
        pw_pool_counts(rig->b, &ready, &running, &later);
    }
    pw_pool_stop(rig->b);
    size_t got = 0;
    for (size_t i = 0; i < TAKERS; i++) {
        void *claim = NULL;
        assert_int_equal(pthread_join(threads[i], &claim), 0);
        got += claim != NULL ? 1 : 0;
        if (claim != NULL)
            finish(rig->b, claim);
    }
    assert_int_equal(got, 6);
}

static void the_end_of_a_suspect_wakes_other_pools(void **state)
{
    struct rig *rig = *state;
    pthread_t thread;
    void *claim = NULL;
    list_suspect(rig->a, 1);
    struct pw_claim *first = take_row(rig->a, 1);
    list_suspect(rig->b, 2);
    assert_int_equal(pthread_create(&thread, NULL, taker, rig->b), 0);
    finish(rig->a, first);
    assert_int_equal(pthread_join(thread, &claim), 0);
    assert_non_null(claim);
    finish(rig->b, claim);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
        TEST(slots_go_round_the_keys),
        TEST(many_tasks_of_one_key_hold_up_no_other),
        TEST(a_key_never_has_more_than_its_share),
        TEST(an_entity_is_listed_once),
        TEST(the_same_row_of_another_shard_is_another),
        TEST(a_queued_claim_becomes_the_newer_task_in_its_place),
        TEST(an_older_listing_is_passed_over),
        TEST(a_newer_task_is_listed_beside_the_one_that_runs),
        TEST(a_claim_ends_before_the_next_is_listed),
        TEST(probation_is_of_the_task_that_was_listed),
        TEST(a_dropped_claim_is_gone),
        TEST(what_is_kept_open_frees_its_thread_up_to_a_limit),
        TEST(a_key_keeps_no_more_open_than_its_share),
        TEST(outcomes_on_their_way_are_bounded),
        TEST(an_attempt_over_its_time_is_told_once),
        TEST(expiry_goes_on_where_there_was_no_room),
        TEST(what_is_kept_open_past_its_time_holds_no_slot),
        TEST(a_pool_that_stops_hands_out_nothing),
        TEST(one_suspect_runs_at_a_time_in_all_pools),
        TEST(a_suspect_that_is_kept_open_is_still_the_only_one),
        TEST(want_of_memory_lists_whole_or_not),
        cmocka_unit_test_setup_teardown(random_plays, begin, end_play),
        TEST(waiting_threads_are_woken),
        TEST(the_end_of_a_suspect_wakes_other_pools),
    };
    return cmocka_run_group_tests(tests, leaks_begin, leaks_end);
}
