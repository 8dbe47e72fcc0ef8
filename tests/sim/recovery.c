/* SPDX-License-Identifier: Apache-2.0
 *
 * What a start finds: a clean stop or a crash, tasks that killed their process, states and machines
 * that are gone. */
#include "support/world.h"

enum { WORKING, FINISHED };
enum { DONE };

#define OPEN_MAX 64

/* What the work functions share with their test. */
struct plant {
    pawl_world *world;
    const char *poison; /* ids that kill the process, as " a b " */
    size_t deaths_max;  /* after so many the poison is harmless */
    size_t deaths;
    bool later; /* work stays open */
    pawl_task *open[OPEN_MAX];
    size_t open_count;
};
static struct plant plant;

static bool is_poison(const char *id)
{
    char word[40] = "";
    (void)snprintf(word, sizeof(word), " %s ", id);
    return plant.deaths < plant.deaths_max && strstr(plant.poison, word) != NULL;
}

static pawl_outcome work(pawl_task *task)
{
    if (is_poison(pawl_task_id(task))) {
        plant.deaths++;
        pawl_world_crash_at(plant.world, 1);
        return pawl_raise(DONE); /* nobody will hear of it */
    }
    if (!plant.later)
        return pawl_raise(DONE);
    assert_in_range(plant.open_count, 0, OPEN_MAX - 1);
    plant.open[plant.open_count++] = task;
    return pawl_later(task);
}

static const pawl_state states[] = {
    [WORKING] = { .name = "working", .flags = PAWL_START, .work = work },
    [FINISHED] = { .name = "finished", .flags = PAWL_FINAL },
};
static const char *const events[] = { [DONE] = "done" };
static const pawl_edge edges[] = { { .from = WORKING, .event = DONE, .to = FINISHED } };
static const pawl_machine job = {
    .name = "job",
    PAWL_STATES(states),
    PAWL_EVENTS(events),
    PAWL_EDGES(edges),
    .key_share = 100,
};
static const pawl_unit jobs[] = { { &job, NULL, NULL }, { NULL, NULL, NULL } };

static pawl_world *open_plant(uint64_t seed, unsigned flags)
{
    plant = (struct plant){ .poison = "", .deaths_max = 1000 };
    plant.world = pawl_world_open_with(jobs, 1, seed, flags);
    return plant.world;
}

/* The engine of before took them along. */
static void free_open(pawl_err expected)
{
    for (size_t i = 0; i < plant.open_count; i++)
        assert_int_equal(pawl_complete(plant.open[i], pawl_raise(DONE)), expected);
    plant.open_count = 0;
}

static const unsigned buses[] = { 0, PAWL_WORLD_JOURNAL };
#define BUSES (sizeof(buses) / sizeof(buses[0]))

/* --- probation ---------------------------------------------------------------------------- */

static void a_clean_stop_needs_no_probation(void **state)
{
    (void)state;
    for (size_t i = 0; i < BUSES; i++) {
        pawl_world *w = open_plant(1, buses[i]);
        plant.later = true;
        (void)create_once(w, "job", "a", NULL, "");
        pawl_world_run_for(w, 100);
        assert_int_equal(plant.open_count, 1);
        pawl_world_restart(w);
        free_open(PAWL_E_CLOSED);
        plant.later = false;
        pawl_world_run(w);
        expect_state(w, "job", "a", "finished");
        assert_int_equal(METRIC(w, crash_starts), 0);
        pawl_world_close(w);
    }
}

static void after_a_crash_starts_are_saved_first(void **state)
{
    (void)state;
    for (size_t i = 0; i < BUSES; i++) {
        pawl_world *w = open_plant(1, buses[i]);
        plant.later = true;
        (void)create_once(w, "job", "a", NULL, "");
        pawl_world_run_for(w, 100);
        pawl_world_crash(w);
        free_open(PAWL_E_CLOSED);
        pawl_world_run_for(w, 100);
        pawl_entity *a = look(w, "job", "a");
        assert_int_equal(a->crashes, 1);
        assert_int_equal(a->attempt, 1);
        pawl_entity_free(a);
        free_open(PAWL_OK);
        pawl_world_run(w);
        assert_int_equal(METRIC(w, crash_starts), 1);
        a = look(w, "job", "a");
        assert_string_equal(a->state, "finished");
        assert_int_equal(a->crashes, 0);
        pawl_entity_free(a);
        pawl_world_close(w);
    }
}

static void poison_parks_and_takes_no_innocent_along(const char *poison, uint64_t seed,
                                                     unsigned flags)
{
    pawl_world *w = open_plant(seed, flags);
    size_t poisons = 0;
    char id[16] = "";
    hold(w, (pawl_scope){ .machine = "job" });
    for (unsigned i = 0; i < 30; i++) {
        char key[16] = "";
        (void)snprintf(id, sizeof(id), "%u", i);
        (void)snprintf(key, sizeof(key), "k%u", i % 7);
        (void)create_once(w, "job", id, key, "");
    }
    plant.poison = poison;
    release(w, (pawl_scope){ .machine = "job" }); /* all are ready at once */
    pawl_world_run(w);
    for (unsigned i = 0; i < 30; i++) {
        (void)snprintf(id, sizeof(id), "%u", i);
        bool bad = is_poison(id);
        poisons += bad ? 1 : 0;
        expect_state(w, "job", id, bad ? "working parked" : "finished");
    }
    assert_in_range(plant.deaths, poisons, 5 * poisons);
    expect_right(w);
    pawl_world_close(w);
}

static void poison_parks_alone(void **state)
{
    static const char *const poisons[] = { " 0 ", " 15 ", " 29 ", " 0 1 ", " 3 17 28 " };
    (void)state;
    for (size_t p = 0; p < sizeof(poisons) / sizeof(poisons[0]); p++)
        for (uint64_t seed = 1; seed <= 10; seed++)
            for (size_t i = 0; i < BUSES; i++)
                poison_parks_and_takes_no_innocent_along(poisons[p], seed,
                                                         buses[i] | PAWL_WORLD_QUIET);
}

static void poison_is_named_and_can_be_redone(void **state)
{
    (void)state;
    pawl_world *w = open_plant(1, 0);
    plant.poison = " p ";
    (void)create_once(w, "job", "p", NULL, "");
    PAWL_EXPECT(w, "0       job/p working #1 parked: the process died each time this was worked\n");
    assert_int_equal(plant.deaths, 5);
    plant.poison = "";
    assert_int_equal(redo_once(w, "job", "p"), PAWL_OK);
    pawl_world_run(w);
    expect_state(w, "job", "p", "finished");
    pawl_world_close(w);
}

static void what_is_held_takes_no_blame(void **state)
{
    (void)state;
    for (size_t i = 0; i < BUSES; i++) {
        pawl_world *w = open_plant(1, buses[i]);
        hold(w, (pawl_scope){ .machine = "job" });
        (void)create_once(w, "job", "a", NULL, "");
        for (unsigned crashes = 0; crashes < 7; crashes++) {
            pawl_world_run(w);
            pawl_world_crash(w);
        }
        pawl_world_run(w);
        release(w, (pawl_scope){ .machine = "job" });
        pawl_world_run(w);
        expect_state(w, "job", "a", "finished");
        pawl_world_close(w);
    }
}

static void suspects_run_one_at_a_time(void **state)
{
    (void)state;
    for (size_t i = 0; i < BUSES; i++) {
        pawl_world *w = open_plant(1, buses[i]);
        char id[16] = "";
        plant.later = true;
        for (unsigned n = 0; n < 4; n++) {
            (void)snprintf(id, sizeof(id), "%u", n);
            (void)create_once(w, "job", id, NULL, "");
        }
        for (unsigned crashes = 0; crashes < 2; crashes++) {
            pawl_world_run_for(w, 100);
            assert_int_equal(plant.open_count, 4);
            pawl_world_crash(w);
            free_open(PAWL_E_CLOSED);
        }
        for (unsigned n = 0; n < 4; n++) { /* they died twice in hand; now each is alone */
            pawl_world_run_for(w, 100);
            assert_int_equal(plant.open_count, 1);
            free_open(PAWL_OK);
        }
        pawl_world_run(w);
        for (unsigned n = 0; n < 4; n++) {
            (void)snprintf(id, sizeof(id), "%u", n);
            expect_state(w, "job", id, "finished");
        }
        pawl_world_close(w);
    }
}

/* --- states and machines that are gone ---------------------------------------------------- */

enum { WAITING, OLD, END };

static pawl_outcome busy(pawl_task *task)
{
    return pawl_task_attempt(task) < 3 ? pawl_retry("not yet") : pawl_raise(DONE);
}

static const pawl_state with_old[] = {
    [WAITING] = { .name = "waiting", .flags = PAWL_START, .timeout_ms = 10000 },
    [OLD] = { .name = "old", .work = busy, .backoff_ms = 60000 },
    [END] = { .name = "end", .flags = PAWL_FINAL },
};
static const char *const old_events[] = { [DONE] = "done", "go" };
static const pawl_edge with_old_edges[] = {
    { .from = WAITING, .event = 1, .to = OLD },
    { .from = WAITING, .event = PAWL_TIMEOUT, .to = END },
    { .from = OLD, .event = DONE, .to = END },
};
static const pawl_machine thing = {
    .name = "thing",
    PAWL_STATES(with_old),
    PAWL_EVENTS(old_events),
    PAWL_EDGES(with_old_edges),
};

static const pawl_state without_old[] = {
    { .name = "waiting", .flags = PAWL_START, .timeout_ms = 10000 },
    { .name = "end", .flags = PAWL_FINAL },
};
static const pawl_edge without_old_edges[] = {
    { .from = 0, .event = 1, .to = 1 },
    { .from = 0, .event = PAWL_TIMEOUT, .to = 1 },
};
static const pawl_machine thing_without_old = {
    .name = "thing",
    PAWL_STATES(without_old),
    PAWL_EVENTS(old_events),
    PAWL_EDGES(without_old_edges),
};

static const pawl_unit things[] = { { &thing, NULL, NULL },
                                    { &job, NULL, NULL },
                                    { NULL, NULL, NULL } };
static const pawl_unit things_without[] = { { &thing_without_old, NULL, NULL },
                                            { &job, NULL, NULL },
                                            { NULL, NULL, NULL } };
static const pawl_unit only_jobs[] = { { &job, NULL, NULL }, { NULL, NULL, NULL } };

static void a_lost_state_parks_and_comes_back(void **state)
{
    (void)state;
    plant = (struct plant){ .poison = "" };
    for (size_t i = 0; i < BUSES; i++) {
        pawl_world *w = pawl_world_open_with(things, 1, 1, buses[i]);
        (void)create_once(w, "thing", "a", NULL, "");
        (void)create_once(w, "thing", "b", NULL, "");
        (void)send_once(w, "thing", "a", "go");
        pawl_world_run_for(w, 1000);
        pawl_world_restart_with(w, things_without);
        expect_state(w, "thing", "a", "old parked");
        expect_state(w, "thing", "b", "waiting");
        assert_int_equal(
            lines_with(w, "thing", "a", "parked: the machine no longer has this state"), 1);
        pawl_world_run_for(w, 1000);
        expect_right(w);
        expect_sent(w);
        assert_int_equal(pawl_redo(pawl_world_engine(w), "thing", "a", 0, NULL), PAWL_E_NO_EDGE);
        pawl_world_restart(w); /* parked once */
        assert_int_equal(lines_with(w, "thing", "a", "parked"), 1);
        pawl_world_restart_with(w, things);
        pawl_world_run_for(w, 1000);
        expect_state(w, "thing", "a", "old parked");
        assert_int_equal(redo_once(w, "thing", "a"), PAWL_OK);
        pawl_world_run(w);
        expect_state(w, "thing", "a", "end");
        expect_right(w);
        pawl_world_close(w);
    }
}

/* More than one lot of a walk, and a crash while they are parked. */
static void many_of_a_lost_state_park(void **state)
{
    (void)state;
    for (uint64_t crash = 1; crash < 20000; crash += 1777) {
        pawl_world *w = pawl_world_open_with(things, 1, 1, PAWL_WORLD_QUIET);
        char id[16] = "";
        for (unsigned n = 0; n < 1500; n++) {
            (void)snprintf(id, sizeof(id), "%u", n);
            create_soon(w, "thing", id, NULL);
            send_soon(w, "thing", id, "go");
        }
        pawl_world_run_for(w, 0);
        pawl_world_crash_at(w, crash);
        pawl_world_restart_with(w, things_without);
        pawl_world_crash_at(w, 0);
        for (unsigned n = 0; n < 1500; n += 100) {
            (void)snprintf(id, sizeof(id), "%u", n);
            expect_state(w, "thing", id, "old parked");
        }
        expect_right(w);
        pawl_world_close(w);
    }
}

static void entities_of_a_missing_machine_rest(void **state)
{
    (void)state;
    plant = (struct plant){ .poison = "" };
    for (size_t i = 0; i < BUSES; i++) {
        pawl_world *w = pawl_world_open_with(things, 1, 1, buses[i]);
        (void)create_once(w, "thing", "retries", NULL, "");
        (void)create_once(w, "thing", "times-out", NULL, "");
        (void)send_once(w, "thing", "retries", "go");
        pawl_world_run_for(w, 1000);
        pawl_world_restart_with(w, only_jobs);
        (void)create_once(w, "job", "j", NULL, "");
        pawl_world_run_for(w, 200000); /* far past what both wait for */
        expect_state(w, "job", "j", "finished");
        expect_state(w, "thing", "retries", "old");
        expect_state(w, "thing", "times-out", "waiting");
        expect_right(w);
        pawl_world_restart(w);
        pawl_world_run_for(w, 1000);
        pawl_world_restart_with(w, things);
        pawl_world_run(w);
        expect_state(w, "thing", "retries", "end");
        expect_state(w, "thing", "times-out", "end");
        expect_right(w);
        pawl_world_close(w);
    }
}

static void a_missing_machine_leaves_and_comes_back(pawl_world *w)
{
    (void)create_once(w, "thing", "retries", NULL, "");
    (void)send_once(w, "thing", "retries", "go");
    pawl_world_restart_with(w, only_jobs);
    pawl_world_run_for(w, 100000);
    pawl_world_restart_with(w, things);
}

static void resting_survives_crashes(void **state)
{
    (void)state;
    for (size_t i = 0; i < BUSES; i++)
        pawl_torture_with(things, 1, buses[i], 50, a_missing_machine_leaves_and_comes_back);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_clean_stop_needs_no_probation),
        cmocka_unit_test(after_a_crash_starts_are_saved_first),
        cmocka_unit_test(poison_parks_alone),
        cmocka_unit_test(poison_is_named_and_can_be_redone),
        cmocka_unit_test(what_is_held_takes_no_blame),
        cmocka_unit_test(suspects_run_one_at_a_time),
        cmocka_unit_test(a_lost_state_parks_and_comes_back),
        cmocka_unit_test(many_of_a_lost_state_park),
        cmocka_unit_test(entities_of_a_missing_machine_rest),
        cmocka_unit_test(resting_survives_crashes),
    };
    return cmocka_run_group_tests(tests, leaks_begin, leaks_end);
}
