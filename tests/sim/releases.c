/* SPDX-License-Identifier: Apache-2.0
 *
 * Releases: walks over more entities than are read at once, held again or killed half way, and in a
 * full store. */
#include "support/world.h"

enum { WAITING, WORKING, FINISHED, EXPIRED };
enum { GO, DONE };

static size_t runs;

static pawl_outcome work(pawl_task *task)
{
    (void)task;
    runs++;
    return pawl_raise(DONE);
}

static const pawl_state states[] = {
    [WAITING] = { .name = "waiting", .flags = PAWL_START, .timeout_ms = 5000 },
    [WORKING] = { .name = "working", .work = work },
    [FINISHED] = { .name = "finished", .flags = PAWL_FINAL },
    [EXPIRED] = { .name = "expired", .flags = PAWL_FINAL },
};
static const char *const events[] = { [GO] = "go", [DONE] = "done" };
static const pawl_edge edges[] = {
    { .from = WAITING, .event = GO, .to = WORKING },
    { .from = WAITING, .event = PAWL_TIMEOUT, .to = EXPIRED },
    { .from = WORKING, .event = DONE, .to = FINISHED },
};
static const pawl_machine thing = {
    .name = "thing",
    PAWL_STATES(states),
    PAWL_EVENTS(events),
    PAWL_EDGES(edges),
};
static const pawl_unit things[] = { { &thing, NULL, NULL }, { NULL, NULL, NULL } };

static const unsigned buses[] = { 0, PAWL_WORLD_JOURNAL };
#define BUSES (sizeof(buses) / sizeof(buses[0]))

static const pawl_scope entity = { .machine = "thing", .id = "b" };
static const pawl_scope in_working = { .machine = "thing", .state = "working" };
static const pawl_scope in_waiting = { .machine = "thing", .state = "waiting" };
static const pawl_scope key = { .machine = "thing", .key = "k" };
static const pawl_scope machine = { .machine = "thing" };

static void make_three(pawl_world *w)
{
    (void)create_once(w, "thing", "a", NULL, "");
    (void)create_once(w, "thing", "b", "k", "");
    (void)create_once(w, "thing", "c", "l", "");
}

/* --- many, and again while a release is under way ----------------------------------------- */

#define MANY 2100u /* several batches of a walk */

static void make_many(pawl_world *w, const char *event)
{
    char id[16] = "";
    for (unsigned n = 0; n < MANY; n++) {
        (void)snprintf(id, sizeof(id), "%u", n);
        create_soon(w, "thing", id, NULL);
        if (event != NULL)
            send_soon(w, "thing", id, event);
    }
    pawl_world_run_for(w, 100);
}

static void expect_many(pawl_world *w, const char *expected)
{
    char id[16] = "";
    for (unsigned n = 0; n < MANY; n += 7) {
        (void)snprintf(id, sizeof(id), "%u", n);
        expect_state(w, "thing", id, expected);
    }
}

static void a_release_walks_over_many(void **state)
{
    (void)state;
    pawl_world *w = pawl_world_open_with(things, 1, 1, PAWL_WORLD_QUIET);
    hold(w, machine);
    make_many(w, "go");
    expect_many(w, "working");
    runs = 0;
    release(w, machine);
    pawl_world_run_for(w, 100);
    expect_many(w, "finished");
    assert_int_equal(runs, MANY);
    assert_int_equal(METRIC(w, swept), 0);
    expect_right(w);
    pawl_world_close(w);
}

static void timeouts_of_many_fire_after_a_release(void **state)
{
    (void)state;
    pawl_world *w = pawl_world_open_with(things, 1, 1, PAWL_WORLD_QUIET);
    hold(w, in_waiting);
    make_many(w, NULL);
    pawl_world_run_for(w, 10000);
    expect_many(w, "waiting");
    release(w, in_waiting);
    pawl_world_run_for(w, 100);
    expect_many(w, "expired");
    expect_right(w);
    pawl_world_close(w);
}

/* The process dies at each of many moments of a release. */
static void a_release_survives_crashes(void **state)
{
    (void)state;
    for (size_t i = 0; i < BUSES; i++)
        for (uint64_t crash = 1; crash < 30000; crash += 4217) {
            pawl_world *w = pawl_world_open_with(things, 1, crash, buses[i] | PAWL_WORLD_QUIET);
            hold(w, in_waiting);
            make_many(w, NULL);
            pawl_world_run_for(w, 10000);
            pawl_world_crash_at(w, crash);
            release(w, in_waiting);
            pawl_world_run_for(w, 1000);
            pawl_world_crash_at(w, 0);
            pawl_world_run_for(w, 1000);
            expect_many(w, "expired");
            expect_right(w);
            pawl_world_close(w);
        }
}

/* Turn by turn: the walk has begun and is not through. */
static void run_some(pawl_world *w, unsigned turns)
{
    struct pw_shard *shard = &pawl_world_engine(w)->shards[0];
    while (turns-- > 0)
        (void)pw_writer_turn(shard);
}

static void what_is_held_again_during_its_release_stays_held(void **state)
{
    (void)state;
    for (unsigned turns = 0; turns < 4; turns++) {
        pawl_world *w = pawl_world_open_with(things, 1, 1, PAWL_WORLD_QUIET);
        hold(w, in_working);
        make_many(w, "go");
        release(w, in_working);
        run_some(w, turns);
        hold(w, in_working);
        pawl_world_run_for(w, 100000);
        expect_right(w);
        runs = 0;
        pawl_world_run_for(w, 1000);
        assert_int_equal(runs, 0);
        release(w, in_working);
        pawl_world_run_for(w, 1000);
        expect_many(w, "finished");
        expect_right(w);
        pawl_world_close(w);
    }
}

/* Release, hold, release, while the first walk is under way: nothing may stay behind. */
static void a_second_release_begins_anew(void **state)
{
    (void)state;
    for (unsigned before = 0; before < 4; before++)
        for (unsigned between = 0; between < 2; between++) {
            pawl_world *w = pawl_world_open_with(things, 1, 1, PAWL_WORLD_QUIET);
            hold(w, in_working);
            make_many(w, "go");
            release(w, in_working);
            run_some(w, before);
            hold(w, in_working);
            run_some(w, between);
            release(w, in_working);
            pawl_world_run_for(w, 1000);
            expect_many(w, "finished");
            assert_int_equal(METRIC(w, swept), 0);
            expect_right(w);
            pawl_world_close(w);
        }
}

/* --- a full store ------------------------------------------------------------------------- */

static void a_refused_hold_does_not_hold(void **state)
{
    (void)state;
    const pawl_scope scopes[] = { key, in_working, machine, entity };
    for (size_t i = 0; i < 4; i++) {
        pawl_world *w = pawl_world_open_with(things, 1, 1, 0);
        make_three(w);
        pawl_world_store_full(w, true);
        assert_int_equal(pawl_hold(pawl_world_engine(w), &scopes[i], NULL), PAWL_E_FULL);
        pawl_world_store_full(w, false);
        (void)send_once(w, "thing", "b", "go");
        pawl_world_run(w);
        expect_state(w, "thing", "b", "finished");
        expect_right(w);
        pawl_world_close(w);
    }
}

static void a_refused_hold_leaves_the_one_of_before(void **state)
{
    (void)state;
    pawl_world *w = pawl_world_open_with(things, 1, 1, 0);
    make_three(w);
    hold(w, machine);
    pawl_world_store_full(w, true);
    assert_int_equal(pawl_hold(pawl_world_engine(w), &machine, NULL), PAWL_E_FULL);
    assert_int_equal(pawl_release(pawl_world_engine(w), &machine, NULL), PAWL_E_FULL);
    pawl_world_store_full(w, false);
    (void)send_once(w, "thing", "b", "go");
    pawl_world_run(w);
    expect_state(w, "thing", "b", "working");
    pawl_world_close(w);
}

/* The walk finds no room half way. */
static void a_release_goes_on_when_there_is_room(void **state)
{
    (void)state;
    for (unsigned turns = 0; turns < 4; turns++) {
        pawl_world *w = pawl_world_open_with(things, 1, 1, PAWL_WORLD_QUIET);
        hold(w, in_waiting);
        make_many(w, NULL);
        pawl_world_run_for(w, 10000);
        release(w, in_waiting);
        run_some(w, turns);
        pawl_world_store_full(w, true);
        pawl_world_run_for(w, 5000);
        pawl_world_store_full(w, false);
        pawl_world_run_for(w, 5000);
        expect_many(w, "expired");
        expect_right(w);
        pawl_world_close(w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_release_walks_over_many),
        cmocka_unit_test(timeouts_of_many_fire_after_a_release),
        cmocka_unit_test(a_release_survives_crashes),
        cmocka_unit_test(what_is_held_again_during_its_release_stays_held),
        cmocka_unit_test(a_second_release_begins_anew),
        cmocka_unit_test(a_refused_hold_does_not_hold),
        cmocka_unit_test(a_refused_hold_leaves_the_one_of_before),
        cmocka_unit_test(a_release_goes_on_when_there_is_room),
    };
    return cmocka_run_group_tests(tests, leaks_begin, leaks_end);
}
