/* SPDX-License-Identifier: Apache-2.0
 *
 * Timers: timeouts, retries, delayed starts and retention; many at once, over restarts, and through
 * crashes around the moment. */
#include "support/world.h"

enum { WAITING, WORKING, FINISHED, EXPIRED };
enum { GO, DONE };

static unsigned runs;

/* Each entity's first two attempts fail. */
static pawl_outcome work(pawl_task *task)
{
    runs++;
    return pawl_task_attempt(task) < 3 ? pawl_retry("not yet") : pawl_raise(DONE);
}

static const pawl_state states[] = {
    [WAITING] = { .name = "waiting", .flags = PAWL_START, .timeout_ms = 5000 },
    [WORKING] = { .name = "working", .work = work, .backoff_ms = 1000, .timeout_ms = 60000 },
    [FINISHED] = { .name = "finished", .flags = PAWL_FINAL },
    [EXPIRED] = { .name = "expired", .flags = PAWL_FINAL },
};
static const char *const events[] = { [GO] = "go", [DONE] = "done" };
static const pawl_edge edges[] = {
    { .from = WAITING, .event = GO, .to = WORKING },
    { .from = WAITING, .event = PAWL_TIMEOUT, .to = EXPIRED },
    { .from = WORKING, .event = PAWL_TIMEOUT, .to = EXPIRED },
    { .from = WORKING, .event = DONE, .to = FINISHED },
};
static const pawl_machine thing = {
    .name = "thing",
    PAWL_STATES(states),
    PAWL_EVENTS(events),
    PAWL_EDGES(edges),
    .retention_ms = 100000,
};
static const pawl_machine kept_for_ever = {
    .name = "thing",
    PAWL_STATES(states),
    PAWL_EVENTS(events),
    PAWL_EDGES(edges),
    .retention_ms = PAWL_FOREVER,
    .crash_attempts_max = 100,
};
static const pawl_unit things[] = { { &thing, NULL, NULL }, { NULL, NULL, NULL } };
static const pawl_unit lasting[] = { { &kept_for_ever, NULL, NULL }, { NULL, NULL, NULL } };

static const unsigned buses[] = { 0, PAWL_WORLD_JOURNAL };
#define BUSES (sizeof(buses) / sizeof(buses[0]))

static void create_many(pawl_world *w, unsigned count, const char *event)
{
    char id[16] = "";
    for (unsigned n = 0; n < count; n++) {
        (void)snprintf(id, sizeof(id), "%u", n);
        create_soon(w, "thing", id, NULL);
        if (event != NULL)
            send_soon(w, "thing", id, event);
        if (n % 2048 == 2047)
            pawl_world_run_for(w, 0);
    }
    pawl_world_run_for(w, 0);
}

static uint64_t entities(pawl_world *w)
{
    struct pw_status status;
    assert_int_equal(pw_status(&pawl_world_engine(w)->shards[0], &status), PAWL_OK);
    return status.entities;
}

static void note(void *arg, pawl_err err, const pawl_answer *answer)
{
    (void)answer;
    *(pawl_err *)arg = err;
}

/* Under a sanitizer the store's sorted arrays are moved a byte at a time: there, fewer tell the
 * same. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define VERY_MANY 10000u
#else
#define VERY_MANY 100000u
#endif

/* In batches of 256, so that a command gets through between them. */
static void very_many_fire_in_the_same_millisecond(void **state)
{
    (void)state;
    pawl_world *w = pawl_world_open_with(lasting, 1, 1, PAWL_WORLD_QUIET);
    struct pw_shard *shard = &pawl_world_engine(w)->shards[0];
    pawl_err answered = PAWL_E_UNKNOWN;
    create_many(w, VERY_MANY, NULL);
    pawl_world_run_for(w, 4999);
    assert_int_equal(METRIC(w, timeouts), 0);
    uint64_t commits = METRIC(w, commits);
    while (METRIC(w, timeouts) == 0)
        pawl_world_run_for(w, 1);
    assert_int_equal(pawl_world_now(w), 5000);
    assert_int_equal(METRIC(w, timeouts), VERY_MANY);
    assert_in_range(METRIC(w, commits) - commits, VERY_MANY / 256, VERY_MANY / 256 + 10);
    assert_int_equal(
        pawl_create_async(pawl_world_engine(w), "thing", "new", NULL, note, &answered, NULL),
        PAWL_OK);
    (void)pw_writer_turn(shard);
    assert_int_equal(answered, PAWL_OK);
    expect_state(w, "thing", "0", "expired");
    expect_state(w, "thing", "9999", "expired");
    expect_right(w);
    pawl_world_close(w);
}

static void a_command_gets_through_between_timers(void **state)
{
    (void)state;
    pawl_world *w = pawl_world_open_with(lasting, 1, 1, PAWL_WORLD_QUIET);
    struct pw_shard *shard = &pawl_world_engine(w)->shards[0];
    pawl_err answered = PAWL_E_UNKNOWN;
    create_many(w, 2000, NULL);
    pawl_world_run_for(w, 4999);
    hold(w, (pawl_scope){ .machine = "thing" });
    pawl_world_run_for(w, 1);
    release(w, (pawl_scope){ .machine = "thing" }); /* all due rows are put back at once */
    while (METRIC(w, timeouts) == 0)
        (void)pw_writer_turn(shard);
    assert_int_equal(METRIC(w, timeouts), 256);
    assert_int_equal(
        pawl_create_async(pawl_world_engine(w), "thing", "new", NULL, note, &answered, NULL),
        PAWL_OK);
    (void)pw_writer_turn(shard);
    assert_int_equal(answered, PAWL_OK);
    assert_int_equal(METRIC(w, timeouts), 512);
    pawl_world_run(w);
    assert_int_equal(METRIC(w, timeouts), 2001);
    pawl_world_close(w);
}

static void many_retries_come_due_at_once(void **state)
{
    (void)state;
    for (size_t i = 0; i < BUSES; i++) {
        pawl_world *w = pawl_world_open_with(things, 1, 1, buses[i] | PAWL_WORLD_QUIET);
        runs = 0;
        create_many(w, 3000, "go");
        pawl_world_run_for(w, 10000);
        assert_int_equal(runs, 9000);
        assert_int_equal(METRIC(w, retries), 6000);
        assert_int_equal(METRIC(w, swept), 0);
        expect_state(w, "thing", "2999", "finished");
        expect_right(w);
        pawl_world_close(w);
    }
}

static void retention_deletes_finals_in_batches(void **state)
{
    (void)state;
    for (size_t i = 0; i < BUSES; i++) {
        pawl_world *w = pawl_world_open_with(things, 1, 1, buses[i] | PAWL_WORLD_QUIET);
        create_many(w, 1000, NULL);
        (void)create_once(w, "thing", "late", NULL, "");
        (void)send_once(w, "thing", "late", "go");
        pawl_world_run_for(w, 104000);
        assert_int_equal(entities(w), 1000); /* late was done after 3 s */
        pawl_world_run_for(w, 2000);
        assert_int_equal(entities(w), 0);
        assert_int_equal(METRIC(w, deleted), 1001);
        expect_right(w);
        expect_sent(w);
        pawl_world_close(w);
    }
}

static void time_goes_on_over_restarts(void **state)
{
    (void)state;
    pawl_world *w = pawl_world_open_with(things, 1, 1, 0);
    (void)create_once(w, "thing", "1", NULL, "");
    pawl_world_run_for(w, 2000);
    pawl_world_restart(w);
    pawl_world_run_for(w, 2000);
    pawl_world_crash(w);
    (void)create_once(w, "thing", "2", NULL, "");
    pawl_world_run_for(w, 500);
    pawl_world_restart(w);
    PAWL_EXPECT(w, "5000    thing/1 waiting --timeout--> expired\n"
                   "9000    thing/2 waiting --timeout--> expired\n");
    pawl_world_close(w);
}

/* What came due while nobody ran fires at the start. */
static void what_is_overdue_fires_at_the_start(void **state)
{
    (void)state;
    for (uint64_t crash = 1; crash < 60; crash++) {
        pawl_world *w = pawl_world_open_with(lasting, 1, crash, 0);
        (void)create_once(w, "thing", "1", NULL, "");
        (void)create_once(w, "thing", "2", NULL, "");
        (void)send_once(w, "thing", "2", "go");
        pawl_world_run_for(w, 4999);
        pawl_world_crash_at(w, crash); /* around the timeout, and in the recovery from it */
        pawl_world_run_for(w, 2);
        pawl_world_crash(w);
        pawl_world_run(w);
        pawl_world_crash_at(w, 0);
        expect_state(w, "thing", "1", "expired");
        expect_state(w, "thing", "2", "finished");
        assert_int_equal(lines_with(w, "thing", "1", "--timeout-->"), 1);
        expect_right(w);
        pawl_world_close(w);
    }
}

static void a_timeout_ends_work_between_attempts(void **state)
{
    (void)state;
    static const pawl_state slow[] = {
        { .name = "slow",
          .flags = PAWL_START,
          .work = work,
          .backoff_ms = 40000,
          .timeout_ms = 60000 },
        { .name = "finished", .flags = PAWL_FINAL },
        { .name = "expired", .flags = PAWL_FINAL },
    };
    static const pawl_edge ways[] = {
        { .from = 0, .event = DONE, .to = 1 },
        { .from = 0, .event = PAWL_TIMEOUT, .to = 2 },
    };
    static const pawl_machine machine = {
        .name = "slow", PAWL_STATES(slow), PAWL_EVENTS(events), PAWL_EDGES(ways)
    };
    pawl_world *w = pawl_world_open(&machine, NULL, 1);
    assert_int_equal(pawl_world_create(w, "1", pawl_str("")), PAWL_OK);
    PAWL_EXPECT(w, "0       slow/1 slow #1 retry: not yet\n"
                   "40000   slow/1 slow #2 retry: not yet\n"
                   "60000   slow/1 slow --timeout--> expired\n");
    expect_right(w);
    pawl_world_close(w);
}

static void jitter_spreads_retries(void **state)
{
    (void)state;
    pawl_world *w = pawl_world_open_with(lasting, 1, 1, PAWL_WORLD_QUIET | PAWL_WORLD_JITTER);
    uint64_t first = UINT64_MAX;
    uint64_t last = 0;
    create_many(w, 100, "go");
    char id[16] = "";
    for (unsigned n = 0; n < 100; n++) {
        (void)snprintf(id, sizeof(id), "%u", n);
        pawl_entity *entity = look(w, "thing", id);
        first = entity->due_ms < first ? entity->due_ms : first;
        last = entity->due_ms > last ? entity->due_ms : last;
        pawl_entity_free(entity);
    }
    assert_in_range(first, 800, 900); /* 1000, plus or minus 20 per cent */
    assert_in_range(last, 1100, 1200);
    pawl_world_run(w);
    pawl_world_close(w);
}

static void scenario(pawl_world *w)
{
    (void)create_once(w, "thing", "1", NULL, "");
    (void)create_once(w, "thing", "2", NULL, "");
    (void)send_once(w, "thing", "2", "go");
    pawl_world_run_for(w, 4000);
    (void)create_once(w, "thing", "3", NULL, "");
    pawl_world_run_for(w, 2000);
    pawl_world_restart(w);
    pawl_world_run(w);
    assert_int_equal(lines_with(w, "thing", "1", "--timeout-->"), 1);
    assert_int_equal(lines_with(w, "thing", "2", "retry"), 2);
    assert_int_equal(lines_with(w, "thing", "3", "--timeout-->"), 1);
}

static void timers_survive_a_crash_at_every_operation(void **state)
{
    (void)state;
    for (size_t i = 0; i < BUSES; i++)
        pawl_torture_with(lasting, 1, buses[i], 50, scenario);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(very_many_fire_in_the_same_millisecond),
        cmocka_unit_test(a_command_gets_through_between_timers),
        cmocka_unit_test(many_retries_come_due_at_once),
        cmocka_unit_test(retention_deletes_finals_in_batches),
        cmocka_unit_test(time_goes_on_over_restarts),
        cmocka_unit_test(what_is_overdue_fires_at_the_start),
        cmocka_unit_test(a_timeout_ends_work_between_attempts),
        cmocka_unit_test(jitter_spreads_retries),
        cmocka_unit_test(timers_survive_a_crash_at_every_operation),
    };
    return cmocka_run_group_tests(tests, leaks_begin, leaks_end);
}
