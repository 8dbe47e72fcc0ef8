/* SPDX-License-Identifier: Apache-2.0
 *
 * Commands: message ids, versions, refusals and their texts, deletion, order, and memos, which are
 * commands that work makes. */
#include <stdlib.h>

#include "base/base.h"
#include "base/limits.h"
#include "support/world.h"

enum { IDLE, BUSY, END };
enum { START, WORK_DONE, FINISH };

static struct {
    char memo[2][32]; /* what each attempt got */
    unsigned runs;
} plant;

static pawl_outcome work(pawl_task *task)
{
    char value[32] = "";
    pawl_bytes kept = { "", 0 };
    (void)snprintf(value, sizeof(value), "run %u", ++plant.runs);
    pawl_err err = pawl_task_memo(task, "agreement", pawl_str(value), &kept);
    if (err != PAWL_OK)
        return pawl_retry(pawl_err_text(err));
    char *to = plant.memo[pawl_task_attempt(task) % 2];
    (void)snprintf(to, sizeof(plant.memo[0]), "%.*s", (int)kept.size, (const char *)kept.data);
    return pawl_task_attempt(task) == 1 ? pawl_retry("again") : pawl_raise(WORK_DONE);
}

static const pawl_state states[] = {
    [IDLE] = { .name = "idle", .flags = PAWL_START },
    [BUSY] = { .name = "busy", .work = work, .attempts_max = 10 },
    [END] = { .name = "end", .flags = PAWL_FINAL },
};
static const char *const events[] = {
    [START] = "start", [WORK_DONE] = "done", [FINISH] = "finish"
};
static const pawl_edge edges[] = {
    { .from = IDLE, .event = START, .to = BUSY },
    { .from = IDLE, .event = FINISH, .to = END },
    { .from = BUSY, .event = WORK_DONE, .to = IDLE },
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

static pawl_world *open_world(unsigned flags)
{
    memset(&plant, 0, sizeof(plant));
    return pawl_world_open_with(things, 1, 1, flags);
}

static void creating_twice_is_refused(void **state)
{
    (void)state;
    pawl_world *w = open_world(0);
    pawl *engine = pawl_world_engine(w);
    pawl_answer first = { .version = 0 };
    pawl_answer second = { .version = 0 };
    assert_int_equal(pawl_create(engine, "thing", "1", NULL, &first), PAWL_OK);
    assert_string_equal(first.state, "idle");
    assert_int_equal(first.version, first.epoch);
    assert_int_equal(pawl_create(engine, "thing", "1", NULL, &second), PAWL_E_EXISTS);
    assert_string_equal(second.why.text, "thing/1 exists, in 'idle'");
    pawl_world_close(w);
}

static void a_message_id_acts_once(void **state)
{
    (void)state;
    for (size_t i = 0; i < BUSES; i++) {
        pawl_world *w = open_world(buses[i]);
        pawl_new create = { .message_id = "c" };
        pawl_event start = { .message_id = "s" };
        pawl_answer first = { .version = 0 };
        pawl_answer again = { .version = 0 };
        assert_int_equal(pawl_create(pawl_world_engine(w), "thing", "1", &create, NULL), PAWL_OK);
        assert_int_equal(pawl_send(pawl_world_engine(w), "thing", "1", "start", &start, &first),
                         PAWL_OK);
        assert_false(first.repeated);
        for (unsigned restarts = 0; restarts < 2; restarts++) {
            pawl_world_run(w); /* by now it is elsewhere */
            assert_int_equal(pawl_send(pawl_world_engine(w), "thing", "1", "start", &start, &again),
                             PAWL_OK);
            assert_true(again.repeated);
            assert_int_equal(again.version, first.version);
            assert_int_equal(again.epoch, first.epoch);
            assert_string_equal(again.state, "busy");
            assert_int_equal(pawl_create(pawl_world_engine(w), "thing", "1", &create, &again),
                             PAWL_OK);
            assert_true(again.repeated);
            pawl_world_crash(w);
        }
        assert_int_equal(lines_with(w, "thing", "1", "--start-->"), 1);
        assert_int_equal(METRIC(w, repeated), 0); /* of this process */
        expect_right(w);
        pawl_world_close(w);
    }
}

/* The 17th forgets the first. */
static void the_last_16_message_ids_are_remembered(void **state)
{
    (void)state;
    static const char *const ids[] = { "0", "1", "2",  "3",  "4",  "5",  "6",  "7",
                                       "8", "9", "10", "11", "12", "13", "14", "15" };
    pawl_world *w = open_world(PAWL_WORLD_QUIET);
    pawl *engine = pawl_world_engine(w);
    pawl_answer answer = { .version = 0 };
    assert_int_equal(pawl_create(engine, "thing", "1", NULL, NULL), PAWL_OK);
    for (size_t i = 0; i < 16; i++) {
        pawl_event start = { .message_id = ids[i] };
        assert_int_equal(pawl_send(engine, "thing", "1", "start", &start, NULL), PAWL_OK);
        pawl_world_run(w);
    }
    for (size_t i = 0; i < 16; i++) {
        pawl_event start = { .message_id = ids[i] };
        assert_int_equal(pawl_send(engine, "thing", "1", "start", &start, &answer), PAWL_OK);
        assert_true(answer.repeated);
    }
    pawl_event next = { .message_id = "16" };
    pawl_event first = { .message_id = "0" };
    assert_int_equal(pawl_send(engine, "thing", "1", "start", &next, NULL), PAWL_OK);
    pawl_world_run(w);
    assert_int_equal(pawl_send(engine, "thing", "1", "start", &first, &answer), PAWL_OK);
    assert_false(answer.repeated);
    pawl_world_close(w);
}

static void refusals_say_why(void **state)
{
    (void)state;
    pawl_world *w = open_world(0);
    pawl *engine = pawl_world_engine(w);
    pawl_answer answer = { .version = 0 };
    assert_int_equal(pawl_send(engine, "thing", "1", "start", NULL, &answer), PAWL_E_NOT_FOUND);
    assert_string_equal(answer.why.text, "no such entity");
    assert_int_equal(pawl_create(engine, "thing", "1", NULL, NULL), PAWL_OK);
    assert_int_equal(pawl_send(engine, "thing", "1", "done", NULL, &answer), PAWL_E_NO_EDGE);
    assert_string_equal(answer.why.text, "thing/1 is in 'idle', which takes: start, finish");
    assert_int_equal(pawl_send(engine, "thing", "1", "fly", NULL, &answer), PAWL_E_USAGE);
    assert_string_equal(answer.why.text, "machine 'thing' has no event 'fly'");
    assert_int_equal(pawl_send(engine, "thing", "1", "timeout", NULL, &answer), PAWL_E_USAGE);
    assert_string_equal(answer.why.text, "event 'timeout' is raised by the engine alone");
    assert_int_equal(pawl_send(engine, "nothing", "1", "start", NULL, &answer), PAWL_E_USAGE);
    assert_string_equal(answer.why.text, "no machine 'nothing'");
    assert_int_equal(pawl_send(engine, "thing", "1", "finish", NULL, NULL), PAWL_OK);
    assert_int_equal(pawl_send(engine, "thing", "1", "start", NULL, &answer), PAWL_E_NO_EDGE);
    assert_string_equal(answer.why.text, "thing/1 is in 'end', which takes: nothing");
    assert_int_equal(pawl_redo(engine, "thing", "1", 0, &answer), PAWL_E_NO_EDGE);
    assert_string_equal(answer.why.text,
                        "thing/1 in 'end' is neither parked nor waiting to be tried again");
    pawl_new delayed = { .delay_ms = 1 };
    assert_int_equal(pawl_create(engine, "thing", "2", &delayed, &answer), PAWL_E_USAGE);
    assert_string_equal(answer.why.text,
                        "start state 'idle' of 'thing' does not work: there is nothing to delay");
    assert_true(METRIC(w, refused) > 0);
    pawl_world_close(w);
}

static void versions_are_compared(void **state)
{
    (void)state;
    pawl_world *w = open_world(0);
    pawl *engine = pawl_world_engine(w);
    pawl_answer answer = { .version = 0 };
    assert_int_equal(pawl_create(engine, "thing", "1", NULL, &answer), PAWL_OK);
    pawl_event wrong = { .version = answer.version + 1 };
    pawl_event right = { .version = answer.version };
    pawl_answer refused = { .version = 0 };
    assert_int_equal(pawl_send(engine, "thing", "1", "finish", &wrong, &refused), PAWL_E_VERSION);
    assert_int_equal(pawl_delete(engine, "thing", "1", answer.version + 1, NULL), PAWL_E_VERSION);
    assert_int_equal(pawl_send(engine, "thing", "1", "finish", &right, NULL), PAWL_OK);
    assert_int_equal(pawl_send(engine, "thing", "1", "finish", &right, NULL), PAWL_E_VERSION);
    pawl_world_close(w);
}

static void data_is_replaced_only_when_given(void **state)
{
    (void)state;
    pawl_world *w = open_world(0);
    pawl *engine = pawl_world_engine(w);
    pawl_new options = { .data = pawl_str("old") };
    pawl_event keeps = { .data = pawl_str("ignored") };
    pawl_event empties = { .has_data = true };
    assert_int_equal(pawl_create(engine, "thing", "1", &options, NULL), PAWL_OK);
    assert_int_equal(pawl_send(engine, "thing", "1", "start", &keeps, NULL), PAWL_OK);
    pawl_world_run(w);
    pawl_entity *entity = look(w, "thing", "1");
    assert_int_equal(entity->data.size, 3);
    pawl_entity_free(entity);
    assert_int_equal(pawl_send(engine, "thing", "1", "start", &empties, NULL), PAWL_OK);
    entity = look(w, "thing", "1");
    assert_int_equal(entity->data.size, 0);
    pawl_entity_free(entity);
    pawl_world_run(w);
    pawl_world_close(w);
}

static void the_deleted_are_gone_and_may_come_again(void **state)
{
    (void)state;
    for (size_t i = 0; i < BUSES; i++) {
        pawl_world *w = open_world(buses[i]);
        pawl *engine = pawl_world_engine(w);
        pawl_new options = { .message_id = "same" };
        pawl_answer first = { .version = 0 };
        pawl_answer second = { .version = 0 };
        assert_int_equal(pawl_create(engine, "thing", "1", &options, &first), PAWL_OK);
        assert_int_equal(pawl_delete(engine, "thing", "1", 0, NULL), PAWL_OK);
        assert_int_equal(pawl_delete(engine, "thing", "1", 0, NULL), PAWL_E_NOT_FOUND);
        expect_state(w, "thing", "1", "gone");
        assert_int_equal(pawl_create(engine, "thing", "1", &options, &second), PAWL_OK);
        assert_false(second.repeated);
        assert_true(second.epoch > first.epoch);
        pawl_world_run(w);
        expect_right(w);
        expect_sent(w);
        pawl_world_close(w);
    }
}

/* --- order -------------------------------------------------------------------------------- */

struct answers {
    unsigned good;
    unsigned bad;
};

static void count_answer(void *arg, pawl_err err, const pawl_answer *answer)
{
    struct answers *answers = arg;
    (void)answer;
    answers->good += err == PAWL_OK ? 1 : 0;
    answers->bad += err == PAWL_OK ? 0 : 1;
}

/* Far more bytes than one commit takes: the rest of a batch must not come after what was sent
 * later. */
static void large_commands_keep_their_order(void **state)
{
    (void)state;
    const unsigned many = 1500;
    pawl_world *w = open_world(PAWL_WORLD_QUIET);
    pawl *engine = pawl_world_engine(w);
    struct answers answers = { 0, 0 };
    char *data = pw_alloc(PW_DATA_MAX);
    char id[16] = "";
    assert_non_null(data);
    for (unsigned n = 0; n < many; n++) {
        (void)snprintf(id, sizeof(id), "%u", n);
        pawl_new options = { .data = { data, 40000 } };
        assert_int_equal(
            pawl_create_async(engine, "thing", id, &options, count_answer, &answers, NULL),
            PAWL_OK);
    }
    for (unsigned n = 0; n < many; n++) {
        (void)snprintf(id, sizeof(id), "%u", n);
        assert_int_equal(
            pawl_send_async(engine, "thing", id, "finish", NULL, count_answer, &answers, NULL),
            PAWL_OK);
    }
    pawl_world_run(w);
    assert_int_equal(answers.bad, 0);
    assert_int_equal(answers.good, 2 * many);
    pw_free(data);
    pawl_world_close(w);
}

static void a_full_inbox_is_busy(void **state)
{
    (void)state;
    pawl_world *w = open_world(PAWL_WORLD_QUIET);
    pawl *engine = pawl_world_engine(w);
    char id[16] = "";
    pawl_why why = { "" };
    for (unsigned n = 0; n < PW_INBOX_MAX; n++) {
        (void)snprintf(id, sizeof(id), "%u", n);
        create_soon(w, "thing", id, NULL);
    }
    assert_int_equal(pawl_create_async(engine, "thing", "more", NULL, NULL, NULL, &why),
                     PAWL_E_BUSY);
    assert_string_equal(why.text, "a queue is full");
    pawl_world_run_for(w, 1);
    assert_int_equal(pawl_create_async(engine, "thing", "more", NULL, NULL, NULL, &why), PAWL_OK);
    pawl_world_run_for(w, 1);
    expect_state(w, "thing", "more", "idle");
    pawl_world_close(w);
}

/* --- memos -------------------------------------------------------------------------------- */

static void a_memo_is_the_same_on_every_attempt_and_visit(void **state)
{
    (void)state;
    pawl_world *w = open_world(0);
    (void)create_once(w, "thing", "1", NULL, "");
    (void)send_once(w, "thing", "1", "start");
    PAWL_EXPECT(w, "0       thing/1 idle --start--> busy\n"
                   "0       thing/1 busy memo agreement\n"
                   "0       thing/1 busy #1 retry: again\n"
                   "1000    thing/1 busy #2 --done--> idle\n");
    assert_string_equal(plant.memo[1], "run 1");
    assert_string_equal(plant.memo[0], "run 1");
    pawl_world_crash(w);
    assert_int_equal(pawl_send(pawl_world_engine(w), "thing", "1", "start", NULL, NULL), PAWL_OK);
    pawl_world_run(w);
    assert_string_equal(plant.memo[0], "run 1");
    assert_int_equal(plant.runs, 4);
    expect_right(w);
    pawl_world_close(w);
}

static void memo_scenario(pawl_world *w)
{
    memset(&plant, 0, sizeof(plant));
    (void)create_once(w, "thing", "1", NULL, "");
    (void)send_once(w, "thing", "1", "start");
    pawl_world_run(w);
    assert_int_equal(lines_with(w, "thing", "1", "memo agreement"), 1);
    if (plant.memo[1][0] != '\0') /* the first attempt came to its end */
        assert_string_equal(plant.memo[0], plant.memo[1]);
    assert_int_equal(delete_once(w, "thing", "1"), PAWL_OK);
    (void)create_once(w, "thing", "2", NULL, "");
    (void)send_once(w, "thing", "2", "finish");
}

static void commands_and_memos_survive_a_crash_at_every_operation(void **state)
{
    (void)state;
    for (size_t i = 0; i < BUSES; i++)
        pawl_torture_with(things, 1, buses[i], 50, memo_scenario);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(creating_twice_is_refused),
        cmocka_unit_test(a_message_id_acts_once),
        cmocka_unit_test(the_last_16_message_ids_are_remembered),
        cmocka_unit_test(refusals_say_why),
        cmocka_unit_test(versions_are_compared),
        cmocka_unit_test(data_is_replaced_only_when_given),
        cmocka_unit_test(the_deleted_are_gone_and_may_come_again),
        cmocka_unit_test(large_commands_keep_their_order),
        cmocka_unit_test(a_full_inbox_is_busy),
        cmocka_unit_test(a_memo_is_the_same_on_every_attempt_and_visit),
        cmocka_unit_test(commands_and_memos_survive_a_crash_at_every_operation),
    };
    return cmocka_run_group_tests(tests, leaks_begin, leaks_end);
}
