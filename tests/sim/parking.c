/* SPDX-License-Identifier: Apache-2.0
 *
 * Entities that park: out of attempts, going round in circles; and how a person frees them. */
#include "support/world.h"

static void finish(pawl_world *w)
{
    expect_right(w);
    pawl_world_close(w);
}

enum { A, B, END };
enum { NEXT, BACK, STOP };

static pawl_outcome always_busy(pawl_task *task)
{
    return pawl_task_attempt(task) < 4 ? pawl_retry("nobody there") : pawl_raise(STOP);
}

static const pawl_state parking_states[] = {
    { .name = "calling", .flags = PAWL_START, .work = always_busy, .attempts_max = 2 },
    { .name = "end", .flags = PAWL_FINAL },
};
static const char *const round_events[] = { "next", "back", "stop" };
static const pawl_edge parking_edges[] = { { .from = 0, .event = STOP, .to = 1 } };
static const pawl_machine parking = {
    .name = "call",
    PAWL_STATES(parking_states),
    PAWL_EVENTS(round_events),
    PAWL_EDGES(parking_edges),
};

static void parks_without_an_edge_for_failed(void **state)
{
    (void)state;
    pawl_world *w = pawl_world_open(&parking, NULL, 1);
    assert_int_equal(pawl_world_create(w, "1", pawl_str("")), PAWL_OK);
    pawl_world_run(w);
    assert_int_equal(pawl_redo(pawl_world_engine(w), "call", "1", 1, NULL), PAWL_E_VERSION);
    assert_int_equal(pawl_redo(pawl_world_engine(w), "call", "1", 0, NULL), PAWL_OK);
    PAWL_EXPECT(w, "0       call/1 calling #1 retry: nobody there\n"
                   "1000    call/1 calling #2 parked: nobody there\n"
                   "1000    call/1 calling redone\n"
                   "1000    call/1 calling #3 retry: nobody there\n"
                   "2000    call/1 calling #4 --stop--> end\n");
    assert_int_equal(METRIC(w, parked), 1);
    assert_int_equal(pawl_redo(pawl_world_engine(w), "call", "1", 0, NULL), PAWL_E_NO_EDGE);
    finish(w);
}

static void redo_makes_a_waiting_retry_due(void **state)
{
    (void)state;
    pawl_world *w = pawl_world_open(&parking, NULL, 1);
    assert_int_equal(pawl_world_create(w, "1", pawl_str("")), PAWL_OK);
    pawl_world_run_for(w, 400);
    assert_int_equal(pawl_redo(pawl_world_engine(w), "call", "1", 0, NULL), PAWL_OK);
    PAWL_EXPECT(w, "0       call/1 calling #1 retry: nobody there\n"
                   "400     call/1 calling redone\n"
                   "400     call/1 calling #2 parked: nobody there\n");
    finish(w);
}

static pawl_outcome go_on(pawl_task *task)
{
    return pawl_raise(strcmp(pawl_task_state(task), "a") == 0 ? NEXT : BACK);
}

static const pawl_state round_states[] = {
    [A] = { .name = "a", .flags = PAWL_START, .work = go_on },
    [B] = { .name = "b", .work = go_on },
    [END] = { .name = "end", .flags = PAWL_FINAL },
};
static const pawl_edge round_edges[] = {
    { .from = A, .event = NEXT, .to = B },
    { .from = B, .event = BACK, .to = A },
    { .from = A, .event = STOP, .to = END },
    { .from = B, .event = STOP, .to = END },
};
static const pawl_machine rounds = {
    .name = "loop",
    PAWL_STATES(round_states),
    PAWL_EVENTS(round_events),
    PAWL_EDGES(round_edges),
    .rounds_max = 3,
};

static void parks_what_goes_round(void **state)
{
    (void)state;
    pawl_world *w = pawl_world_open(&rounds, NULL, 1);
    assert_int_equal(pawl_world_create(w, "1", pawl_str("")), PAWL_OK);
    PAWL_EXPECT(w,
                "0       loop/1 a #1 --next--> b\n"
                "0       loop/1 b #1 --back--> a\n"
                "0       loop/1 a #1 --next--> b\n"
                "0       loop/1 b #1 --back--> a: too many rounds without an event from outside\n");
    pawl_entity *entity = look(w, "loop", "1");
    assert_true(entity->parked);
    assert_string_equal(entity->error, "too many rounds without an event from outside");
    pawl_entity_free(entity);
    assert_int_equal(METRIC(w, parked), 1);
    assert_int_equal(pawl_world_send(w, "1", STOP), PAWL_OK);
    pawl_world_run(w);
    expect_state(w, "loop", "1", "end");
    finish(w);
}

static void a_start_may_be_delayed(void **state)
{
    (void)state;
    pawl_world *w = pawl_world_open(&parking, NULL, 1);
    pawl_new options = { .delay_ms = 7000 };
    assert_int_equal(pawl_create(pawl_world_engine(w), "call", "1", &options, NULL), PAWL_OK);
    pawl_world_run_for(w, 3000);
    pawl_world_crash(w);
    PAWL_EXPECT(w, "7000    call/1 calling #1 retry: nobody there\n"
                   "8000    call/1 calling #2 parked: nobody there\n");
    finish(w);
}

static void parked_scenario(pawl_world *w)
{
    (void)pawl_world_create(w, "1", pawl_str(""));
    (void)pawl_world_create(w, "2", pawl_str(""));
    pawl_world_run(w);
    expect_state(w, "call", "1", "calling parked");
    (void)redo_once(w, "call", "1");
}

static void rounds_scenario(pawl_world *w)
{
    (void)pawl_world_create(w, "1", pawl_str(""));
    (void)pawl_world_create(w, "2", pawl_str(""));
    pawl_world_run(w);
    (void)pawl_world_send(w, "1", STOP);
}

static void parking_survives_a_crash_at_every_operation(void **state)
{
    (void)state;
    pawl_torture(&parking, NULL, parked_scenario);
    pawl_torture(&rounds, NULL, rounds_scenario);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parks_without_an_edge_for_failed),
        cmocka_unit_test(redo_makes_a_waiting_retry_due),
        cmocka_unit_test(parks_what_goes_round),
        cmocka_unit_test(a_start_may_be_delayed),
        cmocka_unit_test(parking_survives_a_crash_at_every_operation),
    };
    return cmocka_run_group_tests(tests, leaks_begin, leaks_end);
}
