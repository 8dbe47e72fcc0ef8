/* SPDX-License-Identifier: Apache-2.0
 *
 * Holds: what is held is not worked and does not time out, but events act; a release makes up for
 * both. Over crashes and with overlapping scopes. */
#include "support/world.h"

enum { WAITING, WORKING, FINISHED, EXPIRED };
enum { GO, DONE };

static pawl_outcome work(pawl_task *task)
{
    (void)task;
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

/* a, b and c go on, as far as the scope lets them; then all do. */
static void works_only_outside(pawl_scope scope, const char *a, const char *b, const char *c)
{
    for (size_t i = 0; i < BUSES; i++)
        for (uint32_t shards = 1; shards <= 3; shards += 2) {
            pawl_world *w = pawl_world_open_with(things, shards, 1, buses[i]);
            make_three(w);
            hold(w, scope);
            (void)send_once(w, "thing", "a", "go"); /* events act */
            (void)send_once(w, "thing", "b", "go");
            (void)send_once(w, "thing", "c", "go");
            pawl_world_run(w);
            expect_state(w, "thing", "a", a);
            expect_state(w, "thing", "b", b);
            expect_state(w, "thing", "c", c);
            expect_right(w);
            pawl_world_crash(w);
            pawl_world_run_for(w, 100000); /* through the sweep */
            expect_state(w, "thing", "a", a);
            expect_state(w, "thing", "b", b);
            expect_state(w, "thing", "c", c);
            release(w, scope);
            pawl_world_run(w);
            expect_state(w, "thing", "a", "finished");
            expect_state(w, "thing", "b", "finished");
            expect_state(w, "thing", "c", "finished");
            assert_int_equal(METRIC(w, swept), 0); /* the release listed them, not the safety net */
            expect_right(w);
            pawl_world_close(w);
        }
}

static void what_is_held_is_not_worked(void **state)
{
    (void)state;
    works_only_outside(entity, "finished", "working", "finished");
    works_only_outside(key, "finished", "working", "finished");
    works_only_outside(in_working, "working", "working", "working");
    works_only_outside(machine, "working", "working", "working");
    works_only_outside(in_waiting, "finished", "finished", "finished");
}

static void times_out_only_outside(pawl_scope scope, const char *a, const char *b)
{
    for (size_t i = 0; i < BUSES; i++) {
        pawl_world *w = pawl_world_open_with(things, 2, 1, buses[i]);
        make_three(w);
        hold(w, scope);
        pawl_world_run_for(w, 10000);
        expect_state(w, "thing", "a", a);
        expect_state(w, "thing", "b", b);
        expect_right(w);
        pawl_world_restart(w);
        pawl_world_run_for(w, 10000);
        expect_state(w, "thing", "b", b);
        release(w, scope);
        pawl_world_run(w);
        expect_state(w, "thing", "a", "expired");
        expect_state(w, "thing", "b", "expired");
        expect_right(w);
        pawl_world_close(w);
    }
}

static void what_is_held_does_not_time_out(void **state)
{
    (void)state;
    times_out_only_outside(entity, "expired", "waiting");
    times_out_only_outside(key, "expired", "waiting");
    times_out_only_outside(in_waiting, "waiting", "waiting");
    times_out_only_outside(machine, "waiting", "waiting");
}

static void a_transcript_shows_holds_of_entities(void **state)
{
    (void)state;
    pawl_world *w = pawl_world_open_with(things, 1, 1, 0);
    (void)create_once(w, "thing", "b", NULL, "");
    hold(w, entity);
    (void)send_once(w, "thing", "b", "go");
    pawl_world_run_for(w, 7000);
    release(w, entity);
    PAWL_EXPECT(w, "0       thing/b waiting held\n"
                   "0       thing/b waiting --go--> working\n"
                   "7000    thing/b working released\n"
                   "7000    thing/b working #1 --done--> finished\n");
    pawl_world_close(w);
}

static void overlapping_holds_end_with_the_last(void **state)
{
    (void)state;
    const pawl_scope all[] = { entity, key, in_working, machine };
    for (size_t first = 0; first < 4; first++)
        for (size_t second = 0; second < 4; second++) {
            if (first == second)
                continue;
            pawl_world *w = pawl_world_open_with(things, 1, 1, 0);
            make_three(w);
            hold(w, all[first]);
            hold(w, all[second]);
            hold(w, all[second]); /* twice is once */
            (void)send_once(w, "thing", "b", "go");
            release(w, all[first]);
            pawl_world_run_for(w, 1000);
            expect_state(w, "thing", "b", "working");
            release(w, all[second]);
            pawl_world_run_for(w, 1000);
            expect_state(w, "thing", "b", "finished");
            expect_right(w);
            pawl_world_close(w);
        }
}

/* --- torture ------------------------------------------------------------------------------ */

static void hold_scenario(pawl_world *w)
{
    make_three(w);
    hold(w, key);
    hold(w, entity);
    (void)send_once(w, "thing", "a", "go");
    (void)send_once(w, "thing", "b", "go");
    pawl_world_run_for(w, 6000);
    release(w, key);
    pawl_world_run_for(w, 10);
    expect_state(w, "thing", "b", "working");
    hold(w, machine);
    release(w, entity);
    pawl_world_run_for(w, 10);
    expect_state(w, "thing", "b", "working");
    release(w, machine);
    pawl_world_run_for(w, 10);
}

static void holds_survive_a_crash_at_every_operation(void **state)
{
    (void)state;
    for (size_t i = 0; i < BUSES; i++)
        for (uint32_t shards = 1; shards <= 2; shards++)
            pawl_torture_with(things, shards, buses[i], 30, hold_scenario);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_held_is_not_worked),
        cmocka_unit_test(what_is_held_does_not_time_out),
        cmocka_unit_test(a_transcript_shows_holds_of_entities),
        cmocka_unit_test(overlapping_holds_end_with_the_last),
        cmocka_unit_test(holds_survive_a_crash_at_every_operation),
    };
    return cmocka_run_group_tests(tests, leaks_begin, leaks_end);
}
