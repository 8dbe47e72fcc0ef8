/* SPDX-License-Identifier: Apache-2.0
 *
 * Effects: what a change sends besides itself. Messages at least once and in order, tells acted on
 * once, refusals noted; over shards, crashes and a full store. */
#include "support/world.h"

/* --- a sender, whose data says what it sends, and a counter that is told ------------------ */

enum { SENDING, SENT };
enum { DONE };

/* Data is a list of words: "emit:name", "tell:machine/id/event", "new:machine/id", "retry". */
struct sender {
    size_t runs;
    const char *before_outcome; /* "full": the store is, from now on */
    pawl_world *world;
};

static void send_word(pawl_task *task, const char *word)
{
    char machine[32] = "";
    char id[32] = "";
    char event[32] = "";
    if (sscanf(word, "emit:%31s", event) == 1)
        pawl_task_emit(task, event, pawl_str(pawl_task_id(task)));
    else if (sscanf(word, "tell:%31[^/]/%31[^/]/%31s", machine, id, event) == 3)
        pawl_task_tell(task, machine, id, event, pawl_str(""));
    else if (sscanf(word, "new:%31[^/]/%31s", machine, id) == 2)
        pawl_task_tell_new(task, machine, id, NULL);
}

static pawl_outcome send_all(pawl_task *task)
{
    struct sender *sender = pawl_task_env(task);
    pawl_bytes data = pawl_task_data(task);
    bool retry = false;
    char words[512] = "";
    (void)snprintf(words, sizeof(words), "%.*s", (int)data.size, (const char *)data.data);
    sender->runs++;
    char *rest = NULL;
    for (char *word = strtok_r(words, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest))
        if (strcmp(word, "retry") == 0)
            retry = pawl_task_attempt(task) == 1;
        else
            send_word(task, word);
    if (sender->before_outcome != NULL && strcmp(sender->before_outcome, "full") == 0)
        pawl_world_store_full(sender->world, true);
    return retry ? pawl_retry("not yet") : pawl_raise(DONE);
}

static const pawl_state sender_states[] = {
    [SENDING] = { .name = "sending", .flags = PAWL_START, .work = send_all },
    [SENT] = { .name = "sent", .flags = PAWL_FINAL },
};
static const char *const sender_events[] = { [DONE] = "done" };
static const pawl_edge sender_edges[] = { { .from = SENDING, .event = DONE, .to = SENT } };
static const pawl_machine sender_machine = {
    .name = "sender",
    PAWL_STATES(sender_states),
    PAWL_EVENTS(sender_events),
    PAWL_EDGES(sender_edges),
};

enum { COUNTING, CLOSED };
enum { ADD, CLOSE };

static const pawl_state counter_states[] = {
    [COUNTING] = { .name = "counting", .flags = PAWL_START },
    [CLOSED] = { .name = "closed", .flags = PAWL_FINAL },
};
static const char *const counter_events[] = { [ADD] = "add", [CLOSE] = "close" };
static const pawl_edge counter_edges[] = {
    { .from = COUNTING, .event = ADD, .to = COUNTING },
    { .from = COUNTING, .event = CLOSE, .to = CLOSED },
};
static const pawl_machine counter_machine = {
    .name = "counter",
    PAWL_STATES(counter_states),
    PAWL_EVENTS(counter_events),
    PAWL_EDGES(counter_edges),
};

/* What came out, as "id name;". Repeats are what "at least once" allows: the same id again. */
struct heard {
    char text[4096];
    size_t used;
    char last_id[48];
};

static void hear(void *env, const pawl_message *message)
{
    struct heard *heard = env;
    if (strcmp(heard->last_id, message->id) == 0)
        return;
    (void)snprintf(heard->last_id, sizeof(heard->last_id), "%s", message->id);
    int more = snprintf(heard->text + heard->used, sizeof(heard->text) - heard->used, "%s %s;",
                        message->entity, message->name);
    heard->used += more > 0 ? (size_t)more : 0;
}

static const pawl_unit *units_of(struct sender *sender)
{
    static pawl_unit units[3];
    *sender = (struct sender){ .runs = 0 };
    units[0] = (pawl_unit){ &sender_machine, sender, NULL };
    units[1] = (pawl_unit){ &counter_machine, NULL, NULL };
    return units;
}

static pawl_world *open_world(struct sender *sender, uint32_t shards, unsigned flags)
{
    pawl_world *w = pawl_world_open_with(units_of(sender), shards, 1, flags);
    sender->world = w;
    return w;
}

static const unsigned buses[] = { 0, PAWL_WORLD_JOURNAL };
#define BUSES (sizeof(buses) / sizeof(buses[0]))

/* --- messages ----------------------------------------------------------------------------- */

static struct heard messages;

static pawl_outcome emit_two(pawl_task *task)
{
    pawl_task_emit(task, "first", pawl_str("1"));
    pawl_task_emit(task, "second", pawl_task_data(task));
    return pawl_task_attempt(task) == 1 ? pawl_retry("again") : pawl_raise(DONE);
}

static const pawl_state emitter_states[] = {
    [SENDING] = { .name = "sending", .flags = PAWL_START, .work = emit_two },
    [SENT] = { .name = "sent", .flags = PAWL_FINAL },
};
static const pawl_machine emitter = {
    .name = "emitter",
    PAWL_STATES(emitter_states),
    PAWL_EVENTS(sender_events),
    PAWL_EDGES(sender_edges),
};
static const pawl_unit emitters[] = { { &emitter, &messages, hear }, { NULL, NULL, NULL } };

static void messages_go_out_in_order_when_the_outcome_commits(void **state)
{
    (void)state;
    for (size_t i = 0; i < BUSES; i++) {
        messages = (struct heard){ .used = 0 };
        pawl_world *w = pawl_world_open_with(emitters, 1, 1, buses[i]);
        assert_int_equal(pawl_world_create(w, "a", pawl_str("x")), PAWL_OK);
        pawl_world_run_for(w, 500); /* a retry sends nothing */
        assert_string_equal(messages.text, "");
        assert_int_equal(pawl_world_create(w, "b", pawl_str("y")), PAWL_OK);
        pawl_world_run(w);
        assert_string_equal(messages.text, "a first;a second;b first;b second;");
        pawl_world_close(w);
    }
}

/* How often each "entity name" was heard under how many ids. */
struct ids {
    char name[2][48];
    bool again;
};
static struct ids ids;

static void hear_id(void *env, const pawl_message *message)
{
    struct ids *seen = env;
    size_t n = strcmp(message->name, "second") == 0 ? 1 : 0;
    if (seen->name[n][0] == '\0')
        (void)snprintf(seen->name[n], sizeof(seen->name[n]), "%s", message->id);
    else if (strcmp(seen->name[n], message->id) == 0)
        seen->again = true;
    else
        fail_msg("%s came under two ids", message->name);
}

static const pawl_unit id_emitters[] = { { &emitter, &ids, hear_id }, { NULL, NULL, NULL } };
static bool some_came_again;

static void emit_scenario(pawl_world *w)
{
    ids = (struct ids){ .again = false };
    (void)create_once(w, "emitter", "a", NULL, "x");
    pawl_world_run(w);
    assert_string_not_equal(ids.name[0], "");
    assert_string_not_equal(ids.name[1], "");
    some_came_again = some_came_again || ids.again;
}

static void messages_keep_their_ids_over_crashes(void **state)
{
    (void)state;
    for (size_t i = 0; i < BUSES; i++)
        pawl_torture_with(id_emitters, 1, buses[i], 50, emit_scenario);
    assert_true(some_came_again); /* or the test tests nothing */
}

/* --- tells -------------------------------------------------------------------------------- */

static void a_tell_moves_its_target(void **state)
{
    (void)state;
    struct sender sender;
    pawl_world *w = open_world(&sender, 1, 0);
    (void)create_once(w, "counter", "c", NULL, "0");
    (void)create_once(w, "sender", "s", NULL, "tell:counter/c/add tell:counter/c/close");
    PAWL_EXPECT(w, "0       sender/s sending #1 --done--> sent\n"
                   "0       counter/c counting --add--> counting\n"
                   "0       counter/c counting --close--> closed\n");
    assert_int_equal(METRIC(w, told), 2);
    expect_right(w);
    pawl_world_close(w);
}

static void a_retry_drops_its_effects(void **state)
{
    (void)state;
    struct sender sender;
    pawl_world *w = open_world(&sender, 1, 0);
    (void)create_once(w, "counter", "c", NULL, "");
    (void)create_once(w, "sender", "s", NULL, "retry tell:counter/c/add");
    pawl_world_run(w);
    assert_int_equal(sender.runs, 2);
    assert_int_equal(lines_with(w, "counter", "c", "--add-->"), 1);
    pawl_world_close(w);
}

static void what_is_refused_for_good_is_noted_and_counted(void **state)
{
    (void)state;
    struct sender sender;
    pawl_world *w = open_world(&sender, 1, 0);
    (void)create_once(w, "counter", "c", NULL, "");
    (void)create_once(w, "sender", "s", NULL,
                      "tell:nobody/x/add tell:counter/c/fly tell:counter/none/add new:counter/c "
                      "tell:counter/c/add");
    pawl_world_run(w);
    assert_int_equal(METRIC(w, tells_refused), 4);
    assert_int_equal(METRIC(w, told), 1);
    assert_int_equal(lines_with(w, "sender", "s", "tell to nobody/x refused: no such machine"), 1);
    assert_int_equal(lines_with(w, "sender", "s", "tell to counter/c refused: no such event"), 1);
    assert_int_equal(lines_with(w, "sender", "s", "tell to counter/none refused: no such"), 1);
    assert_int_equal(lines_with(w, "sender", "s", "tell to counter/c refused: counter/c exists"),
                     1);
    assert_int_equal(lines_with(w, "counter", "c", "--add-->"), 1); /* the rest goes on */
    expect_right(w);
    pawl_world_close(w);
}

static const pawl_state talker_states[] = {
    [SENDING] = { .name = "sending", .flags = PAWL_START, .work = send_all },
    [SENT] = { .name = "sent" },
};
static const char *const talker_events[] = { "done", "add" };
static const pawl_edge talker_edges[] = {
    { .from = SENDING, .event = 0, .to = SENT },
    { .from = SENT, .event = 1, .to = SENT },
};
static const pawl_machine talker = {
    .name = "talker",
    PAWL_STATES(talker_states),
    PAWL_EVENTS(talker_events),
    PAWL_EDGES(talker_edges),
};

/* Notes and happenings together are more than a history keeps; a delete takes all of them. */
static void notes_go_with_their_entity(void **state)
{
    (void)state;
    struct sender sender = { .runs = 0 };
    const pawl_unit units[] = { { &talker, &sender, NULL }, { NULL, NULL, NULL } };
    pawl_world *w = pawl_world_open_with(units, 1, 1, PAWL_WORLD_QUIET);
    char words[512] = "";
    for (size_t i = 0; i < 40; i++)
        (void)snprintf(words + i * 11, sizeof(words) - i * 11, "tell:n/n/n ");
    (void)create_once(w, "talker", "t", NULL, words);
    pawl_world_run(w);
    assert_int_equal(METRIC(w, tells_refused), 40);
    for (int i = 0; i < 70; i++)
        assert_int_equal(pawl_send(pawl_world_engine(w), "talker", "t", "add", NULL, NULL),
                         PAWL_OK);
    assert_int_equal(lines_with(w, "talker", "t", ""), 64);
    assert_int_equal(lines_with(w, "talker", "t", "--add-->"), 64); /* the newest */
    assert_int_equal(delete_once(w, "talker", "t"), PAWL_OK);
    expect_right(w);
    pawl_world_close(w);
}

#define SENDERS 20 /* more than an entity remembers message ids */

static void many_tell_one(pawl_world *w)
{
    char id[16] = "";
    (void)create_once(w, "counter", "c", NULL, "");
    (void)create_once(w, "counter", "d", NULL, "");
    for (int i = 0; i < SENDERS; i++) {
        (void)snprintf(id, sizeof(id), "s%d", i);
        (void)create_once(w, "sender", id, NULL,
                          "tell:counter/c/add tell:counter/d/add tell:counter/c/add");
    }
    pawl_world_run(w);
    assert_int_equal(lines_with(w, "counter", "c", "--add-->"), 2 * SENDERS);
    assert_int_equal(lines_with(w, "counter", "d", "--add-->"), SENDERS);
}

static void tells_are_acted_on_once_over_crashes(void **state)
{
    (void)state;
    struct sender sender;
    for (uint32_t shards = 1; shards <= 3; shards++)
        for (size_t i = 0; i < BUSES; i++)
            for (uint64_t seed = 1; seed <= 40; seed++) {
                pawl_world *w = pawl_world_open_with(units_of(&sender), shards, seed,
                                                     buses[i] | PAWL_WORLD_QUIET);
                pw_world_crash_often(w, 1 + seed * 20, 4);
                many_tell_one(w);
                pawl_world_crash_at(w, 0);
                expect_right(w);
                pawl_world_close(w);
            }
}

static void chain(pawl_world *w)
{
    (void)create_once(w, "sender", "a", NULL, "new:counter/x tell:counter/x/add new:sender/b");
    pawl_world_run(w);
    assert_int_equal(lines_with(w, "counter", "x", "--add-->"), 1);
    expect_state(w, "sender", "b", "sent");
}

static void creations_are_told_once_in_order(void **state)
{
    (void)state;
    struct sender sender;
    for (uint32_t shards = 1; shards <= 3; shards++)
        for (size_t i = 0; i < BUSES; i++)
            pawl_torture_with(units_of(&sender), shards, buses[i], 50, chain);
}

/* A tells that it is done, B hears of it and tells C. */
static void a_full_store_between_delays_only(void **state)
{
    (void)state;
    struct sender sender;
    for (uint32_t shards = 1; shards <= 2; shards++)
        for (size_t i = 0; i < BUSES; i++) {
            pawl_world *w = open_world(&sender, shards, buses[i]);
            (void)create_once(w, "counter", "c", NULL, "");
            sender.before_outcome = "full";
            (void)create_once(w, "sender", "s", NULL, "tell:counter/c/add tell:counter/c/add");
            pawl_world_run_for(w, 5000);
            expect_state(w, "sender", "s", "sending");
            sender.before_outcome = NULL;
            pawl_world_store_full(w, false);
            pawl_world_run(w);
            assert_int_equal(sender.runs, 1); /* its outcome was kept */
            assert_int_equal(lines_with(w, "counter", "c", "--add-->"), 2);
            expect_right(w);
            pawl_world_close(w);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_go_out_in_order_when_the_outcome_commits),
        cmocka_unit_test(messages_keep_their_ids_over_crashes),
        cmocka_unit_test(a_tell_moves_its_target),
        cmocka_unit_test(a_retry_drops_its_effects),
        cmocka_unit_test(what_is_refused_for_good_is_noted_and_counted),
        cmocka_unit_test(notes_go_with_their_entity),
        cmocka_unit_test(tells_are_acted_on_once_over_crashes),
        cmocka_unit_test(creations_are_told_once_in_order),
        cmocka_unit_test(a_full_store_between_delays_only),
    };
    return cmocka_run_group_tests(tests, leaks_begin, leaks_end);
}
