/* SPDX-License-Identifier: Apache-2.0
 *
 * Tasks kept open by pawl_later(): completion at any time from outside, answers that come too late
 * or never, limits, and the end of their engine. */
#include "base/base.h"
#include "support/world.h"

enum { WORKING, FINISHED, CANCELLED, GIVEN_UP };
enum { DONE, CANCEL };

#define OPEN_MAX 12000

static struct {
    pawl_task *open[OPEN_MAX];
    size_t count;
} kept;

static pawl_outcome keep(pawl_task *task)
{
    assert_in_range(kept.count, 0, OPEN_MAX - 1);
    kept.open[kept.count++] = task;
    return pawl_later(task);
}

static const pawl_state states[] = {
    [WORKING] = { .name = "working",
                  .flags = PAWL_START,
                  .work = keep,
                  .attempts_max = 3,
                  .attempt_ms = 10000 },
    [FINISHED] = { .name = "finished", .flags = PAWL_FINAL },
    [CANCELLED] = { .name = "cancelled", .flags = PAWL_FINAL },
    [GIVEN_UP] = { .name = "given-up", .flags = PAWL_FINAL },
};
static const char *const events[] = { [DONE] = "done", [CANCEL] = "cancel" };
static const pawl_edge edges[] = {
    { .from = WORKING, .event = DONE, .to = FINISHED },
    { .from = WORKING, .event = CANCEL, .to = CANCELLED },
    { .from = WORKING, .event = PAWL_FAILED, .to = GIVEN_UP },
};

#define CALLER(...)                                                                                \
    {                                                                                              \
        .name = "call", PAWL_STATES(states), PAWL_EVENTS(events), PAWL_EDGES(edges), __VA_ARGS__   \
    }

static const pawl_machine call = CALLER(.key_share = 100);
static const pawl_machine two_at_a_time = CALLER(.key_share = 100, .later_max = 2);
static const pawl_machine half_a_key = CALLER(.later_max = 10);

static pawl_world *open_world(const pawl_machine *machine, unsigned flags)
{
    const pawl_unit units[] = { { machine, NULL, NULL }, { NULL, NULL, NULL } };
    kept.count = 0;
    return pawl_world_open_with(units, 1, 1, flags);
}

static void create_many(pawl_world *w, unsigned count, const char *key)
{
    char id[32] = "";
    for (unsigned n = 0; n < count; n++) {
        (void)snprintf(id, sizeof(id), "%s%u", key, n);
        create_soon(w, "call", id, key);
        if (n % 4096 == 4095)
            pawl_world_run_for(w, 1);
    }
    pawl_world_run_for(w, 100);
}

static void complete_all(pawl_err expected)
{
    for (size_t i = 0; i < kept.count; i++)
        assert_int_equal(pawl_complete(kept.open[i], pawl_raise(DONE)), expected);
    kept.count = 0;
}

static const unsigned buses[] = { 0, PAWL_WORLD_JOURNAL };
#define BUSES (sizeof(buses) / sizeof(buses[0]))

static void a_kept_task_ends_when_it_is_completed(void **state)
{
    (void)state;
    pawl_world *w = open_world(&call, 0);
    (void)create_once(w, "call", "1", NULL, "data");
    pawl_world_run_for(w, 5000);
    assert_int_equal(kept.count, 1);
    pawl_task *task = kept.open[0];
    assert_string_equal(pawl_task_id(task), "1");
    assert_int_equal(pawl_task_data(task).size, 4);
    assert_false(pawl_task_cancelled(task));
    pawl_task_save(task, pawl_str("new data"));
    complete_all(PAWL_OK);
    PAWL_EXPECT(w, "5000    call/1 working #1 --done--> finished\n");
    pawl_entity *entity = look(w, "call", "1");
    assert_memory_equal(entity->data.data, "new data", entity->data.size);
    pawl_entity_free(entity);
    expect_right(w);
    pawl_world_close(w);
}

static void no_answer_is_a_retry_and_a_late_one_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < BUSES; i++) {
        pawl_world *w = open_world(&call, buses[i]);
        (void)create_once(w, "call", "1", NULL, "");
        pawl_world_run_for(w, 10500);
        assert_int_equal(lines_with(w, "call", "1", "working #1 retry: no answer"), 1);
        assert_int_equal(kept.count, 1);
        assert_true(pawl_task_cancelled(kept.open[0]));
        complete_all(PAWL_OK); /* taken, but the attempt is over */
        pawl_world_run_for(w, 1000);
        assert_int_equal(METRIC(w, refused_stale), 1);
        expect_state(w, "call", "1", "working");
        assert_int_equal(kept.count, 1);
        assert_int_equal(pawl_task_attempt(kept.open[0]), 2);
        complete_all(PAWL_OK);
        pawl_world_run(w);
        expect_state(w, "call", "1", "finished");
        expect_right(w);
        pawl_world_close(w);
    }
}

static void attempts_without_answer_run_out(void **state)
{
    (void)state;
    pawl_world *w = open_world(&call, 0);
    (void)create_once(w, "call", "1", NULL, "");
    PAWL_EXPECT(w, "10000   call/1 working #1 retry: no answer\n"
                   "21000   call/1 working #2 retry: no answer\n"
                   "33000   call/1 working #3 --failed--> given-up: no answer\n");
    assert_int_equal(kept.count, 3);
    complete_all(PAWL_OK);
    pawl_world_run(w);
    assert_int_equal(METRIC(w, refused_stale), 3);
    expect_right(w);
    pawl_world_close(w);
}

/* Both are in one batch; whichever comes first counts, and the other is refused. */
static void completion_and_expiry_in_the_same_moment(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed < 40; seed++) {
        const pawl_unit units[] = { { &call, NULL, NULL }, { NULL, NULL, NULL } };
        kept.count = 0;
        pawl_world *w = pawl_world_open_with(units, 1, seed, 0);
        (void)create_once(w, "call", "1", NULL, "");
        pawl_world_run_for(w, 9999);
        (void)pawl_world_now(w);
        if (seed % 2 == 0) {
            complete_all(PAWL_OK);
            pawl_world_run_for(w, 1);
        } else {
            pawl_world_run_for(w, 1);
            complete_all(PAWL_OK);
        }
        pawl_world_run_for(w, 3000);
        complete_all(PAWL_OK);
        pawl_world_run(w);
        expect_state(w, "call", "1", "finished");
        expect_right(w);
        pawl_world_close(w);
    }
}

static void another_event_wins(void **state)
{
    (void)state;
    for (size_t i = 0; i < BUSES; i++) {
        pawl_world *w = open_world(&call, buses[i]);
        (void)create_once(w, "call", "1", NULL, "");
        (void)create_once(w, "call", "2", NULL, "");
        pawl_world_run_for(w, 100);
        (void)send_once(w, "call", "1", "cancel");
        assert_int_equal(delete_once(w, "call", "2"), PAWL_OK);
        assert_true(pawl_task_cancelled(kept.open[0]));
        assert_true(pawl_task_cancelled(kept.open[1]));
        complete_all(PAWL_OK);
        pawl_world_run(w);
        expect_state(w, "call", "1", "cancelled");
        expect_state(w, "call", "2", "gone");
        assert_int_equal(METRIC(w, refused_stale), 2);
        expect_right(w);
        pawl_world_close(w);
    }
}

static void an_outcome_of_a_deleted_entity_does_not_act_on_its_successor(void **state)
{
    (void)state;
    for (size_t i = 0; i < BUSES; i++) {
        pawl_world *w = open_world(&call, buses[i]);
        assert_int_equal(pawl_create(pawl_world_engine(w), "call", "1", NULL, NULL), PAWL_OK);
        pawl_world_run_for(w, 100);
        assert_int_equal(delete_once(w, "call", "1"), PAWL_OK);
        assert_int_equal(pawl_create(pawl_world_engine(w), "call", "1", NULL, NULL), PAWL_OK);
        pawl_world_run_for(w, 100);
        assert_int_equal(kept.count, 2);
        assert_int_not_equal(pawl_task_epoch(kept.open[0]), pawl_task_epoch(kept.open[1]));
        assert_int_equal(pawl_complete(kept.open[0], pawl_raise(DONE)), PAWL_OK);
        pawl_world_run_for(w, 100);
        expect_state(w, "call", "1", "working");
        assert_int_equal(pawl_complete(kept.open[1], pawl_raise(DONE)), PAWL_OK);
        pawl_world_run(w);
        expect_state(w, "call", "1", "finished");
        pawl_world_close(w);
    }
}

/* --- many --------------------------------------------------------------------------------- */

static void ten_thousand_may_be_open(void **state)
{
    (void)state;
    pawl_world *w = open_world(&call, PAWL_WORLD_QUIET);
    create_many(w, 10010, "");
    assert_int_equal(kept.count, 10000); /* the default of later_max */
    complete_all(PAWL_OK);
    pawl_world_run_for(w, 100);
    assert_int_equal(kept.count, 10);
    complete_all(PAWL_OK);
    pawl_world_run(w);
    expect_state(w, "call", "9999", "finished");
    expect_right(w);
    pawl_world_close(w);
}

static void all_of_many_expire(void **state)
{
    (void)state;
    pawl_world *w = open_world(&call, PAWL_WORLD_QUIET);
    create_many(w, 3000, "");
    assert_int_equal(kept.count, 3000);
    pawl_world_run_for(w, 10500);
    assert_int_equal(METRIC(w, no_answer), 3000);
    pawl_world_run_for(w, 1500);
    assert_int_equal(kept.count, 6000); /* the second attempts, beside the first ones */
    complete_all(PAWL_OK);
    pawl_world_run(w);
    assert_int_equal(METRIC(w, refused_stale), 3000);
    expect_state(w, "call", "2999", "finished");
    expect_right(w);
    pawl_world_close(w);
}

static void limits_count_what_is_open(void **state)
{
    (void)state;
    pawl_world *w = open_world(&two_at_a_time, 0);
    create_many(w, 5, "");
    assert_int_equal(kept.count, 2);
    assert_int_equal(pawl_complete(kept.open[--kept.count], pawl_raise(DONE)), PAWL_OK);
    pawl_world_run_for(w, 100);
    assert_int_equal(kept.count, 2);
    while (kept.count > 0) {
        complete_all(PAWL_OK);
        pawl_world_run_for(w, 100);
    }
    expect_right(w);
    pawl_world_close(w);
}

/* What expired holds no place. */
static void an_expired_task_frees_its_place(void **state)
{
    (void)state;
    pawl_world *w = open_world(&two_at_a_time, 0);
    create_many(w, 4, "");
    assert_int_equal(kept.count, 2);
    pawl_world_run_for(w, 10100);
    assert_int_equal(kept.count, 4);
    pawl_world_close(w);
    complete_all(PAWL_E_CLOSED);
}

static void a_key_has_its_share_of_open_tasks(void **state)
{
    (void)state;
    pawl_world *w = open_world(&half_a_key, 0);
    create_many(w, 20, "slow");
    assert_int_equal(kept.count, 5);
    create_many(w, 3, "other");
    assert_int_equal(kept.count, 8);
    create_many(w, 3, "third");
    assert_int_equal(kept.count, 10);
    while (kept.count > 0) {
        complete_all(PAWL_OK);
        pawl_world_run_for(w, 100);
    }
    expect_state(w, "call", "slow19", "finished");
    expect_right(w);
    pawl_world_close(w);
}

/* --- the end of the engine, and no memory ------------------------------------------------- */

static void tasks_outlive_their_engine(void **state)
{
    (void)state;
    pawl_world *w = open_world(&call, PAWL_WORLD_QUIET);
    create_many(w, 100, "");
    pawl_task *open[100];
    assert_int_equal(kept.count, 100);
    memcpy(open, kept.open, sizeof(open));
    kept.count = 0;
    pawl_world_restart(w);
    pawl_world_run_for(w, 100);
    assert_int_equal(kept.count, 100); /* made again */
    for (size_t i = 0; i < 100; i++) {
        assert_true(pawl_task_cancelled(open[i]));
        pawl_task_emit(open[i], "nobody", pawl_str("hears this"));
        assert_int_equal(pawl_complete(open[i], pawl_raise(DONE)), PAWL_E_CLOSED);
    }
    complete_all(PAWL_OK);
    pawl_world_run(w);
    expect_state(w, "call", "99", "finished");
    create_many(w, 50, "more");
    pawl_world_close(w);
    complete_all(PAWL_E_CLOSED);
}

/* Nobody ever completes them: without memory for the request the attempt must not be forgotten. */
static void attempts_expire_without_memory(void **state)
{
    (void)state;
    for (uint64_t n = 1; n < 200; n++) {
        pawl_world *w = open_world(&call, PAWL_WORLD_QUIET);
        create_many(w, 3, "");
        pawl_world_run_for(w, 9850);
        (void)pw_alloc_fail_at(n);
        pawl_world_run_for(w, 200);
        (void)pw_alloc_fail_at(0);
        pawl_world_run_for(w, 200000);
        expect_state(w, "call", "0", "given-up");
        expect_state(w, "call", "1", "given-up");
        expect_state(w, "call", "2", "given-up");
        pawl_world_close(w);
        complete_all(PAWL_E_CLOSED);
    }
}

static void crash_scenario(pawl_world *w)
{
    kept.count = 0;
    (void)create_once(w, "call", "1", NULL, "");
    (void)create_once(w, "call", "2", NULL, "");
    (void)create_once(w, "call", "3", NULL, "");
    pawl_world_run_for(w, 1000);
    for (size_t i = 0; i < kept.count; i++) /* those of an engine that died are refused */
        (void)pawl_complete(kept.open[i], pawl_raise(DONE));
    kept.count = 0;
    pawl_world_run_for(w, 9000);
    for (unsigned again = 0; again < 5; again++) {
        for (size_t i = 0; i < kept.count; i++)
            (void)pawl_complete(kept.open[i], pawl_raise(DONE));
        kept.count = 0;
        pawl_world_run_for(w, 2000);
    }
}

static void kept_tasks_survive_a_crash_at_every_operation(void **state)
{
    (void)state;
    const pawl_unit units[] = { { &call, NULL, NULL }, { NULL, NULL, NULL } };
    for (size_t i = 0; i < BUSES; i++)
        pawl_torture_with(units, 1, buses[i], 50, crash_scenario);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_kept_task_ends_when_it_is_completed),
        cmocka_unit_test(no_answer_is_a_retry_and_a_late_one_is_refused),
        cmocka_unit_test(attempts_without_answer_run_out),
        cmocka_unit_test(completion_and_expiry_in_the_same_moment),
        cmocka_unit_test(another_event_wins),
        cmocka_unit_test(an_outcome_of_a_deleted_entity_does_not_act_on_its_successor),
        cmocka_unit_test(ten_thousand_may_be_open),
        cmocka_unit_test(all_of_many_expire),
        cmocka_unit_test(limits_count_what_is_open),
        cmocka_unit_test(an_expired_task_frees_its_place),
        cmocka_unit_test(a_key_has_its_share_of_open_tasks),
        cmocka_unit_test(tasks_outlive_their_engine),
        cmocka_unit_test(attempts_expire_without_memory),
        cmocka_unit_test(kept_tasks_survive_a_crash_at_every_operation),
    };
    return cmocka_run_group_tests(tests, leaks_begin, leaks_end);
}
