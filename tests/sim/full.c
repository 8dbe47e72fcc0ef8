/* SPDX-License-Identifier: Apache-2.0
 *
 * A store without room: commands are refused, reads go on, outcomes are kept, and work resumes by
 * itself. And one that fills up: what begins something new is refused, what ends something is not.
 */
#include "sim/store.h"
#include "support/world.h"

enum { WAITING, WORKING, FINISHED, EXPIRED };
enum { GO, DONE, AGAIN };

static struct {
    unsigned runs;
    const char *to; /* whom a loop tells */
    unsigned rounds;
    pawl_world *dies; /* the process does, when work begins, and its store is almost full then */
} plant;

static pawl_outcome work(pawl_task *task)
{
    (void)task;
    plant.runs++;
    if (plant.dies != NULL) {
        pawl_world_crash_at(plant.dies, 1);
        pw_sim_store_fill(pawl_world_engine(plant.dies)->shards[0].tables.store, 93);
        plant.dies = NULL;
    }
    return pawl_raise(DONE);
}

static const pawl_state states[] = {
    [WAITING] = { .name = "waiting", .flags = PAWL_START, .timeout_ms = 5000 },
    [WORKING] = { .name = "working", .work = work },
    [FINISHED] = { .name = "finished", .flags = PAWL_FINAL },
    [EXPIRED] = { .name = "expired", .flags = PAWL_FINAL },
};
static const char *const events[] = { [GO] = "go", [DONE] = "done", [AGAIN] = "again" };
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

/* Tells 64 times a round, more than its relay gets rid of. */
static pawl_outcome loop(pawl_task *task)
{
    for (int i = 0; i < 64; i++)
        pawl_task_tell(task, "counter", plant.to, "again", pawl_str(""));
    return pawl_raise(plant.rounds-- > 1 ? AGAIN : DONE);
}

static const pawl_state loop_states[] = {
    { .name = "looping", .flags = PAWL_START, .work = loop },
    { .name = "finished", .flags = PAWL_FINAL },
};
static const pawl_edge loop_edges[] = {
    { .from = 0, .event = AGAIN, .to = 0 },
    { .from = 0, .event = DONE, .to = 1 },
};
static const pawl_machine looper = {
    .name = "looper",
    PAWL_STATES(loop_states),
    PAWL_EVENTS(events),
    PAWL_EDGES(loop_edges),
};

static const pawl_state counter_states[] = { { .name = "counting", .flags = PAWL_START } };
static const pawl_edge counter_edges[] = { { .from = 0, .event = AGAIN, .to = 0 } };
static const pawl_machine counter = {
    .name = "counter",
    PAWL_STATES(counter_states),
    PAWL_EVENTS(events),
    PAWL_EDGES(counter_edges),
};

static const pawl_unit units[] = {
    { &thing, NULL, NULL }, { &looper, NULL, NULL }, { &counter, NULL, NULL }, { NULL, NULL, NULL }
};

static const unsigned buses[] = { 0, PAWL_WORLD_JOURNAL };
#define BUSES (sizeof(buses) / sizeof(buses[0]))

static pawl_world *open_world(uint32_t shards, unsigned flags)
{
    plant.runs = 0;
    plant.rounds = 0;
    return pawl_world_open_with(units, shards, 1, flags);
}

static pawl_err create(pawl_world *w, const char *id)
{
    return pawl_create(pawl_world_engine(w), "thing", id, NULL, NULL);
}

static void commands_are_refused_and_reads_go_on(void **state)
{
    (void)state;
    for (size_t i = 0; i < BUSES; i++) {
        pawl_world *w = open_world(1, buses[i]);
        pawl *engine = pawl_world_engine(w);
        pawl_answer answer = { .version = 0 };
        assert_int_equal(create(w, "a"), PAWL_OK);
        pawl_world_store_full(w, true);
        assert_int_equal(pawl_create(engine, "thing", "b", NULL, &answer), PAWL_E_FULL);
        assert_string_equal(answer.why.text, "the store is full");
        assert_int_equal(pawl_err_class_of(PAWL_E_FULL), PAWL_CLASS_TRANSIENT);
        assert_int_equal(pawl_send(engine, "thing", "a", "go", NULL, NULL), PAWL_E_FULL);
        assert_int_equal(pawl_delete(engine, "thing", "a", 0, NULL), PAWL_E_FULL);
        expect_state(w, "thing", "a", "waiting");
        expect_state(w, "thing", "b", "gone");
        pawl_world_store_full(w, false);
        assert_int_equal(pawl_send(engine, "thing", "a", "go", NULL, NULL), PAWL_OK);
        pawl_world_run(w);
        expect_state(w, "thing", "a", "finished");
        assert_true(METRIC(w, full) > 0);
        expect_right(w);
        pawl_world_close(w);
    }
}

static void nothing_to_do_is_nothing_to_wait_for(void **state)
{
    (void)state;
    pawl_world *w = open_world(1, 0);
    pawl_world_store_full(w, true);
    assert_int_equal(create(w, "a"), PAWL_E_FULL);
    pawl_world_run(w); /* ends */
    assert_in_range(pawl_world_now(w), 0, 2000);
    pawl_world_close(w);
}

/* More outcomes than a batch takes are kept, and none is made again. */
static void outcomes_are_kept(void **state)
{
    (void)state;
    const unsigned many = 1500;
    for (size_t i = 0; i < BUSES; i++) {
        pawl_world *w = open_world(1, buses[i] | PAWL_WORLD_QUIET);
        char id[16] = "";
        hold(w, (pawl_scope){ .machine = "thing" });
        for (unsigned n = 0; n < many; n++) {
            (void)snprintf(id, sizeof(id), "%u", n);
            create_soon(w, "thing", id, NULL);
            send_soon(w, "thing", id, "go");
        }
        pawl_world_run_for(w, 100);
        release(w, (pawl_scope){ .machine = "thing" });
        struct pw_shard *shard = &pawl_world_engine(w)->shards[0];
        for (unsigned turns = 0; turns < 10; turns++)
            (void)pw_writer_turn(shard); /* all are listed */
        pawl_world_store_full(w, true);
        pawl_world_run_for(w, 10000);
        assert_in_range(plant.runs, 1000, many);
        unsigned before = plant.runs;
        pawl_world_run_for(w, 10000);
        assert_int_equal(plant.runs, before);
        expect_state(w, "thing", "0", "working");
        pawl_world_store_full(w, false);
        pawl_world_run(w);
        assert_int_equal(plant.runs, many);
        for (unsigned n = 0; n < many; n += 13) {
            (void)snprintf(id, sizeof(id), "%u", n);
            expect_state(w, "thing", id, "finished");
        }
        assert_int_equal(METRIC(w, swept), 0);
        expect_right(w);
        expect_sent(w);
        pawl_world_close(w);
    }
}

/* Killed while outcomes are kept: the runs are made again. */
static void kept_outcomes_may_die(void **state)
{
    (void)state;
    for (size_t i = 0; i < BUSES; i++) {
        pawl_world *w = open_world(1, buses[i]);
        assert_int_equal(create(w, "a"), PAWL_OK);
        hold(w, (pawl_scope){ .machine = "thing" });
        (void)send_once(w, "thing", "a", "go");
        pawl_world_run_for(w, 100);
        release(w, (pawl_scope){ .machine = "thing" });
        for (unsigned turns = 0; turns < 10; turns++)
            (void)pw_writer_turn(&pawl_world_engine(w)->shards[0]);
        pawl_world_store_full(w, true);
        pawl_world_run_for(w, 3000);
        assert_int_equal(plant.runs, 1);
        pawl_world_store_full(w, false);
        pawl_world_crash(w);
        pawl_world_run(w);
        assert_int_equal(plant.runs, 2);
        expect_state(w, "thing", "a", "finished");
        expect_right(w);
        pawl_world_close(w);
    }
}

static void timers_fire_when_there_is_room_again(void **state)
{
    (void)state;
    pawl_world *w = open_world(1, 0);
    (void)create_once(w, "thing", "a", NULL, "");
    pawl_world_store_full(w, true);
    pawl_world_run_for(w, 8000);
    expect_state(w, "thing", "a", "waiting");
    pawl_world_store_full(w, false);
    pawl_world_run(w);
    expect_state(w, "thing", "a", "expired");
    assert_in_range(pawl_world_now(w), 8000, 9500);
    pawl_world_close(w);
}

static void above_80_per_cent_only_what_begins_is_refused(void **state)
{
    (void)state;
    pawl_world *w = open_world(1, 0);
    pawl *engine = pawl_world_engine(w);
    struct pw_store *store = engine->shards[0].tables.store;
    pawl_answer answer = { .version = 0 };
    (void)create_once(w, "counter", "c", NULL, "");
    assert_int_equal(create(w, "a"), PAWL_OK);
    assert_int_equal(create(w, "b"), PAWL_OK);
    assert_int_equal(create(w, "c"), PAWL_OK);
    hold(w, (pawl_scope){ .machine = "thing", .state = "working" });
    (void)send_once(w, "thing", "a", "go");
    plant.to = "c";
    plant.rounds = 1;
    hold(w, (pawl_scope){ .machine = "looper" });
    (void)create_once(w, "looper", "l", NULL, "");
    pw_sim_store_fill(store, 80);
    assert_int_equal(create(w, "d"), PAWL_OK);
    pw_sim_store_fill(store, 81);
    assert_int_equal(pawl_create(engine, "thing", "e", NULL, &answer), PAWL_E_FULL);
    assert_string_equal(answer.why.text, "the store is 81 % full; retention or deletes make room");
    assert_int_equal(pawl_send(engine, "thing", "b", "go", NULL, NULL), PAWL_E_FULL);
    release(w, (pawl_scope){ .machine = "thing", .state = "working" });
    release(w, (pawl_scope){ .machine = "looper" });
    assert_int_equal(delete_once(w, "thing", "b"), PAWL_OK);
    pawl_world_run(w);
    expect_state(w, "thing", "a", "finished"); /* an outcome */
    expect_state(w, "thing", "c", "expired");  /* a timer */
    assert_int_equal(METRIC(w, told), 64);     /* tells */
    expect_right(w);
    pawl_world_close(w);
}

/* No start can be saved: the task stays on its list, and begins when there is room. */
static void what_cannot_begin_stays_listed(void **state)
{
    (void)state;
    pawl_world *w = open_world(1, 0);
    assert_int_equal(create(w, "a"), PAWL_OK);
    plant.dies = w;
    (void)send_once(w, "thing", "a", "go");
    pawl_world_run_for(w, 10000);
    assert_int_equal(pawl_world_crashes(w), 1);
    expect_state(w, "thing", "a", "working");
    assert_int_equal(plant.runs, 1);
    assert_int_equal(METRIC(w, swept), 0);
    pw_sim_store_fill(pawl_world_engine(w)->shards[0].tables.store, 0);
    pawl_world_run(w);
    expect_state(w, "thing", "a", "finished");
    assert_int_equal(METRIC(w, swept), 0);
    expect_right(w);
    pawl_world_close(w);
}

/* Work in progress does not eat what deletes need. */
static void the_last_of_a_map_is_for_deletes(void **state)
{
    (void)state;
    pawl_world *w = open_world(1, 0);
    struct pw_store *store = pawl_world_engine(w)->shards[0].tables.store;
    assert_int_equal(create(w, "a"), PAWL_OK);
    assert_int_equal(create(w, "b"), PAWL_OK);
    hold(w, (pawl_scope){ .machine = "thing", .state = "working" });
    (void)send_once(w, "thing", "a", "go");
    release(w, (pawl_scope){ .machine = "thing", .state = "working" });
    pw_sim_store_fill(store, 93);
    pawl_world_run_for(w, 2000);
    expect_state(w, "thing", "a", "working"); /* its outcome is kept */
    assert_int_equal(delete_once(w, "thing", "b"), PAWL_OK);
    pw_sim_store_fill(store, 50);
    pawl_world_run(w);
    expect_state(w, "thing", "a", "finished");
    expect_right(w);
    pawl_world_close(w);
}

/* An id of each shard of two. */
static const char *id_in(pawl_world *w, uint32_t shard)
{
    static const char *const ids[] = { "a", "b", "c", "d", "e", "f", "g", "h" };
    for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++)
        if (pw_shard_of(pawl_world_engine(w), ids[i])->index == shard)
            return ids[i];
    fail_msg("no id in shard %u", shard);
    return NULL;
}

/* The target's store is full: the sender's effects pile up to their limit, its outcome waits, and
 * all goes out once. */
static void effects_wait_for_their_target(void **state)
{
    (void)state;
    for (size_t i = 0; i < BUSES; i++) {
        pawl_world *w = open_world(2, buses[i] | PAWL_WORLD_QUIET);
        struct pw_store *target = pawl_world_engine(w)->shards[1].tables.store;
        plant.to = id_in(w, 1);
        plant.rounds = 20;
        (void)create_once(w, "counter", plant.to, NULL, "");
        pw_sim_store_full(target, true);
        (void)create_once(w, "looper", id_in(w, 0), NULL, "");
        pawl_world_run_for(w, 20000);
        expect_state(w, "looper", id_in(w, 0), "looping");
        pw_sim_store_full(target, false);
        pawl_world_run(w);
        expect_state(w, "looper", id_in(w, 0), "finished");
        assert_int_equal(METRIC(w, told), 20 * 64);
        assert_int_equal(lines_with(w, "counter", plant.to, "--again-->"), 64);
        expect_right(w);
        expect_sent(w);
        pawl_world_close(w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(commands_are_refused_and_reads_go_on),
        cmocka_unit_test(nothing_to_do_is_nothing_to_wait_for),
        cmocka_unit_test(outcomes_are_kept),
        cmocka_unit_test(kept_outcomes_may_die),
        cmocka_unit_test(timers_fire_when_there_is_room_again),
        cmocka_unit_test(above_80_per_cent_only_what_begins_is_refused),
        cmocka_unit_test(what_cannot_begin_stays_listed),
        cmocka_unit_test(the_last_of_a_map_is_for_deletes),
        cmocka_unit_test(effects_wait_for_their_target),
    };
    return cmocka_run_group_tests(tests, leaks_begin, leaks_end);
}
