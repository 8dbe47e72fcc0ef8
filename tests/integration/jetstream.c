/* SPDX-License-Identifier: Apache-2.0
 *
 * The journal's adapter and a real nats-server, where it is about the server: what is on the wire,
 * a server that is absent, killed, stopped or restarted in the middle of appends, consumers and
 * streams that vanish. After each of them nothing may be skipped. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/wake.h"
#include "jetstream/api.h"
#include "jetstream/journal.h"
#include "jetstream/streams.h"
#include "jetstream/subject.h"
#include "support/nats.h"
#include "support/test.h"

#define NS "live"
#define STREAM "PAWL_live_0"
#define WAIT_MS 5
#define PATIENCE_MS 30000
#define RECORDS_MAX 20000

struct world {
    struct nats_server server;
    struct pw_journal *journal;
    struct pw_wake wake;
    struct pw_clock clock;
    natsConnection *connection; /* the test's own */
    uint64_t opened_seq;
    uint64_t next_lsn; /* to be appended; each to an entity of its own */
    uint8_t fetched[RECORDS_MAX];
    uint8_t read[RECORDS_MAX];
    uint64_t last_seq; /* read */
    size_t voids;
};

/* --- helpers ---------------------------------------------------------------------------------- */

static uint64_t now_ms(struct world *world)
{
    return world->clock.monotonic_ms(&world->clock);
}

/* Repeats what may take time until it is so. */
#define WAIT_UNTIL(world, condition)                                                               \
    do {                                                                                           \
        uint64_t until_ = now_ms(world) + PATIENCE_MS;                                             \
        bool is_so_ = (condition);                                                                 \
        while (!is_so_ && now_ms(world) < until_) {                                                \
            pw_nap(&(world)->wake, WAIT_MS);                                                       \
            is_so_ = (condition);                                                                  \
        }                                                                                          \
        if (!is_so_)                                                                               \
            fail_msg("not so after %d s: %s", PATIENCE_MS / 1000, #condition);                     \
    } while (0)

static const struct pw_journal_ops *ops_of(struct world *world)
{
    return world->journal->ops;
}

static void poke(void *arg)
{
    pw_poke(arg);
}

static struct pw_journal *open_journal(struct world *world)
{
    struct pw_journal *journal = NULL;
    pawl_why why = { "" };
    struct pw_jetstream_options options = { .bus = world->server.bus, .ns = NS };
    if (pw_jetstream_open(&journal, &options, &why) != PAWL_OK)
        fail_msg("%s", why.text);
    journal->poke = poke;
    journal->poke_arg = &world->wake;
    return journal;
}

static void forget_connection(struct world *world)
{
    natsConnection_Destroy(world->connection);
    world->connection = NULL;
}

static natsConnection *connection_of(struct world *world)
{
    if (world->connection != NULL &&
        natsConnection_Status(world->connection) != NATS_CONN_STATUS_CONNECTED)
        forget_connection(world);
    if (world->connection == NULL)
        assert_int_equal(natsConnection_ConnectTo(&world->connection, world->server.bus), NATS_OK);
    return world->connection;
}

static json_t *call(struct world *world, const char *verb, const json_t *request)
{
    json_t *answer = NULL;
    pawl_why why = { "" };
    if (pw_api_call(connection_of(world), verb, request, 5000, &answer, NULL, &why) != PAWL_OK)
        fail_msg("%s: %s", verb, why.text);
    return answer;
}

static pawl_err look_once(struct world *world, struct pw_journal_state *state)
{
    pawl_why why = { "" };
    pawl_err err = ops_of(world)->look(world->journal, state, &why);
    assert_true(err == PAWL_OK || err == PAWL_E_IO || err == PAWL_E_BUSY);
    if (err != PAWL_OK)
        assert_true(why.text[0] != '\0');
    return err;
}

static void look(struct world *world, struct pw_journal_state *state)
{
    WAIT_UNTIL(world, look_once(world, state) == PAWL_OK);
}

static void open_at(struct world *world, uint32_t fence)
{
    struct pw_journal_state state = { 0 };
    look(world, &state);
    struct pw_opening opening = { .applied_seq = state.last_seq, .fence = fence };
    assert_int_equal(ops_of(world)->open(world->journal, &opening, &world->opened_seq), PAWL_OK);
}

static pawl_err append_one(struct world *world, uint64_t lsn)
{
    char id[24] = "";
    pw_print(id, sizeof(id), "%llu", (unsigned long long)lsn);
    struct pw_append append = { .lsn = lsn, .machine = "m", .id = id, .record = pawl_str(id) };
    return ops_of(world)->append(world->journal, &append);
}

/* As the relay does it: in order, and from the lowest unacknowledged one after a failure. Returns
 * what is acknowledged. */
static uint64_t turn(struct world *world, uint64_t last_lsn)
{
    struct pw_acked acked = { 0 };
    struct pw_journal_state state = { 0 };
    pawl_err err = ops_of(world)->acked(world->journal, &acked);
    while (err == PAWL_OK && world->next_lsn <= last_lsn) {
        err = append_one(world, world->next_lsn);
        world->next_lsn += err == PAWL_OK ? 1 : 0;
    }
    if (err == PAWL_E_IO && look_once(world, &state) == PAWL_OK)
        world->next_lsn = acked.lsn + 1;
    return acked.lsn;
}

static void append_up_to(struct world *world, uint64_t lsn)
{
    WAIT_UNTIL(world, turn(world, lsn) >= lsn);
}

static void count_fetched(void *arg, const struct pw_entry *entry)
{
    struct world *world = arg;
    if (entry->kind != PW_ENTRY_RECORD)
        return;
    assert_true(entry->lsn < RECORDS_MAX);
    world->fetched[entry->lsn] = 1;
}

static bool has_fetched(struct world *world, uint64_t first, uint64_t last)
{
    (void)ops_of(world)->fetch(world->journal, 512, count_fetched, world); /* it is counted */
    for (uint64_t lsn = first; lsn <= last; lsn++)
        if (world->fetched[lsn] == 0)
            return false;
    return true;
}

static void count_read(void *arg, const struct pw_entry *entry)
{
    struct world *world = arg;
    assert_true(entry->seq > world->last_seq);
    world->last_seq = entry->seq;
    world->voids += entry->kind == PW_ENTRY_VOID ? 1 : 0;
    if (entry->kind == PW_ENTRY_RECORD)
        world->read[entry->lsn]++;
}

/* Each of them is in the stream. */
static void expect_stored(struct world *world, uint64_t last)
{
    struct pw_journal_state state = { 0 };
    uint64_t next = 1;
    bool through = false;
    look(world, &state);
    memset(world->read, 0, sizeof(world->read));
    world->last_seq = 0;
    while (!through)
        assert_int_equal(ops_of(world)->read(world->journal, next, true, 256, count_read, world,
                                             &next, &through),
                         PAWL_OK);
    for (uint64_t lsn = 1; lsn <= last; lsn++)
        assert_int_equal(world->read[lsn], 1);
}

/* --- what is on the wire ---------------------------------------------------------------------- */

static natsMsg *last_message(struct world *world, const char *stream, const char *subject)
{
    jsCtx *context = NULL;
    natsMsg *msg = NULL;
    assert_int_equal(natsConnection_JetStream(&context, connection_of(world), NULL), NATS_OK);
    assert_int_equal(js_GetLastMsg(&msg, context, stream, subject, NULL, NULL), NATS_OK);
    jsCtx_Destroy(context);
    return msg;
}

/* value NULL: it must not be there. */
static void expect_header(natsMsg *msg, const char *name, const char *value)
{
    const char *found = NULL;
    natsStatus status = natsMsgHeader_Get(msg, name, &found);
    assert_int_equal(status, value != NULL ? NATS_OK : NATS_NOT_FOUND);
    if (value != NULL)
        assert_string_equal(found, value);
}

static const char *const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

static void test_headers_of_a_record(void **state)
{
    struct world *world = *state;
    struct pw_append append = {
        .lsn = 7,
        .epoch = 3,
        .machine = "order",
        .id = "a.b c",
        .trace = trace,
        .task = true,
        .record = pawl_str("record"),
    };
    open_at(world, 4);
    assert_int_equal(ops_of(world)->append(world->journal, &append), PAWL_OK);
    append.id = "gone";
    append.lsn = 8;
    append.task = false;
    append.tombstone = true;
    append.trace = NULL;
    append.record = (pawl_bytes){ 0 };
    assert_int_equal(ops_of(world)->append(world->journal, &append), PAWL_OK);
    WAIT_UNTIL(world, turn(world, 0) == 8);
    natsMsg *msg = last_message(world, STREAM, "pawl.live.j.0.order.a=2Eb=20c");
    expect_header(msg, "Pawl-Lsn", "7");
    expect_header(msg, "Pawl-Task", "order/a=2Eb=20c@3");
    expect_header(msg, "traceparent", trace);
    expect_header(msg, "Pawl-Tombstone", NULL);
    assert_string_equal(natsMsg_GetData(msg), "record");
    natsMsg_Destroy(msg);
    msg = last_message(world, STREAM, "pawl.live.j.0.order.gone");
    expect_header(msg, "Pawl-Lsn", "8");
    expect_header(msg, "Pawl-Task", NULL);
    expect_header(msg, "Pawl-Tombstone", "1");
    natsMsg_Destroy(msg);
    msg = last_message(world, STREAM, "pawl.live.j.0._fence");
    expect_header(msg, "Pawl-Fence", "4");
    natsMsg_Destroy(msg);
}

static size_t posts_waiting(struct world *world)
{
    size_t waiting = 0;
    assert_int_equal(ops_of(world)->posted(world->journal, &waiting), PAWL_OK);
    return waiting;
}

static void test_headers_of_posts(void **state)
{
    struct world *world = *state;
    struct pw_post post = {
        .kind = PW_POST_EVENT,
        .n = 2,
        .lsn = 7,
        .epoch = 3,
        .machine = "order",
        .id = "a.b",
        .name = "paid",
        .trace = trace,
        .why = "gone\r\nPawl-Id: forged",
        .data = pawl_str("data"),
    };
    assert_int_equal(ops_of(world)->post(world->journal, &post), PAWL_OK);
    post.kind = PW_POST_LETTER;
    assert_int_equal(ops_of(world)->post(world->journal, &post), PAWL_OK);
    WAIT_UNTIL(world, posts_waiting(world) == 0);
    natsMsg *msg = last_message(world, "PAWL_live_EVENTS", "pawl.live.event.order.paid");
    expect_header(msg, "Pawl-Id", "live.0.7.2");
    expect_header(msg, "Nats-Msg-Id", "live.0.7.2");
    expect_header(msg, "Pawl-Entity", "order/a=2Eb");
    expect_header(msg, "traceparent", trace);
    expect_header(msg, "Pawl-Why", NULL);
    assert_string_equal(natsMsg_GetData(msg), "data");
    natsMsg_Destroy(msg);
    msg = last_message(world, "PAWL_live_DLQ", "pawl.live.dlq.order.a=2Eb.>");
    expect_header(msg, "Pawl-Id", "live.0.7.2");
    expect_header(msg, "Pawl-Machine", "order");
    expect_header(msg, "Pawl-Entity", "order/a=2Eb");
    expect_header(msg, "Pawl-Epoch", "3");
    expect_header(msg, "Pawl-Why", "gone  Pawl-Id: forged");
    natsMsg_Destroy(msg);
}

/* --- fences ----------------------------------------------------------------------------------- */

/* What an earlier owner may have under way when another one opens: a whole window of appends, of
 * which each expects the one before. */
static void test_no_window_of_an_earlier_owner_fits_behind_an_opening(void **state)
{
    struct world *world = *state;
    struct pw_journal_state looked = { 0 };
    char number[24] = "";
    open_at(world, 1);
    uint64_t applied = world->opened_seq;
    open_at(world, 2);
    for (uint64_t i = 0; i < PW_WINDOW; i++) {
        natsMsg *msg = NULL;
        assert_int_equal(natsMsg_Create(&msg, "pawl.live.j.0.m.old", NULL, "old", 3), NATS_OK);
        unsigned long long expected = applied + i;
        pw_print(number, sizeof(number), "%llu", expected);
        assert_int_equal(natsMsgHeader_Set(msg, "Nats-Expected-Last-Sequence", number), NATS_OK);
        assert_int_equal(natsConnection_PublishMsg(connection_of(world), msg), NATS_OK);
        natsMsg_Destroy(msg);
    }
    assert_int_equal(natsConnection_Flush(connection_of(world)), NATS_OK);
    append_up_to(world, 1);
    look(world, &looked);
    assert_int_equal(looked.last_seq, world->opened_seq + 1);
}

static void test_consumers_of_lower_fences_go(void **state)
{
    struct world *world = *state;
    open_at(world, 9);
    append_up_to(world, 1);
    WAIT_UNTIL(world, has_fetched(world, 1, 1));
    open_at(world, 10);
    append_up_to(world, 2);
    WAIT_UNTIL(world, has_fetched(world, 2, 2));
    json_t *answer = call(world, "CONSUMER.NAMES." STREAM, NULL);
    const json_t *names = json_object_get(answer, "consumers");
    assert_int_equal(json_array_size(names), 1);
    assert_string_equal(json_string_value(json_array_get(names, 0)), "pawl_0_10");
    json_decref(answer);
}

/* Whatever the server adds to it. */
static void test_a_consumer_is_what_it_was_made_as(void **state)
{
    struct world *world = *state;
    static const char stranger[] = "pawl.live.j.0.none.>";
    open_at(world, 1);
    json_t *wanted = pw_consumer_config("live", 0, "own", 2);
    json_t *made = call(world, "CONSUMER.DURABLE.CREATE." STREAM ".own", wanted);
    json_t *info = call(world, "CONSUMER.INFO." STREAM ".own", NULL);
    json_t *config = json_object_get(info, "config");
    assert_true(pw_consumer_is(wanted, config));
    assert_int_equal(json_object_set_new(config, "filter_subject", json_string(stranger)), 0);
    assert_false(pw_consumer_is(wanted, config));
    json_decref(made);
    json_decref(info);
    json_decref(wanted);
}

static void test_a_stream_that_loses_records_is_refused(void **state)
{
    struct world *world = *state;
    struct pw_journal_state looked = { 0 };
    pawl_why why = { "" };
    json_t *config = pw_stream_config(PW_STREAM_JOURNAL, NS, 0, 1);
    assert_int_equal(json_object_set_new(config, "max_age", json_integer(INT64_C(3600000000000))),
                     0);
    json_decref(call(world, "STREAM.CREATE." STREAM, config));
    json_decref(config);
    assert_int_equal(ops_of(world)->look(world->journal, &looked, &why), PAWL_E_CONFIG);
    assert_non_null(strstr(why.text, "max_age"));
}

/* --- a server that is not there --------------------------------------------------------------- */

static void test_an_absent_server(void **state)
{
    struct world *world = *state;
    struct pw_journal_state looked = { 0 };
    struct pw_acked acked = { 0 };
    size_t waiting = 1;
    struct pw_post post = { .kind = PW_POST_EVENT, .machine = "m", .id = "a", .name = "n" };
    nats_server_kill(&world->server);
    uint64_t begun_ms = now_ms(world);
    assert_int_equal(look_once(world, &looked), PAWL_E_IO);
    assert_int_equal(append_one(world, 1), PAWL_E_IO);
    assert_int_equal(ops_of(world)->acked(world->journal, &acked), PAWL_E_IO);
    assert_int_equal(acked.waiting, 0);
    assert_int_equal(ops_of(world)->post(world->journal, &post), PAWL_E_IO);
    assert_int_equal(ops_of(world)->posted(world->journal, &waiting), PAWL_OK);
    assert_int_equal(waiting, 0);
    assert_int_equal(ops_of(world)->fetch(world->journal, 1, count_fetched, world), 0);
    assert_true(now_ms(world) - begun_ms < 5000);
    nats_server_restart(&world->server);
    open_at(world, 1);
    append_up_to(world, 10);
    WAIT_UNTIL(world, has_fetched(world, 1, 10));
}

static void turn_until(struct world *world, uint64_t last, uint64_t least)
{
    WAIT_UNTIL(world, turn(world, last) >= least);
}

static void test_a_server_killed_in_the_middle_of_appends(void **state)
{
    struct world *world = *state;
    open_at(world, 1);
    for (uint64_t round = 1; round <= 4; round++) {
        uint64_t last = round * 3000;
        turn_until(world, last, last - 2000);
        nats_server_kill(&world->server);
        (void)turn(world, last); /* some are given to a server that is dead */
        nats_server_restart(&world->server);
        append_up_to(world, last);
    }
    expect_stored(world, 12000);
    WAIT_UNTIL(world, has_fetched(world, 1, 12000));
}

/* Long enough that what is under way times out, and is answered all the same later. */
static void test_a_server_stopped_in_the_middle_of_appends(void **state)
{
    struct world *world = *state;
    struct pw_acked acked = { 0 };
    open_at(world, 1);
    WAIT_UNTIL(world, turn(world, 3000) >= 1000);
    nats_server_freeze(&world->server);
    (void)turn(world, 6000); /* it may have all of the others by now */
    WAIT_UNTIL(world, ops_of(world)->acked(world->journal, &acked) == PAWL_E_IO);
    assert_true(acked.lsn < 6000);
    nats_server_thaw(&world->server);
    append_up_to(world, 6000);
    expect_stored(world, 6000);
    WAIT_UNTIL(world, has_fetched(world, 1, 6000));
}

/* A short stop fails nothing. */
static void test_a_server_stopped_for_a_moment(void **state)
{
    struct world *world = *state;
    struct pw_acked acked = { 0 };
    open_at(world, 1);
    nats_server_freeze(&world->server);
    for (uint64_t lsn = 1; lsn <= 100; lsn++)
        assert_int_equal(append_one(world, lsn), PAWL_OK);
    uint64_t until_ms = now_ms(world) + 1000;
    while (now_ms(world) < until_ms) {
        pw_nap(&world->wake, WAIT_MS);
        assert_int_equal(ops_of(world)->acked(world->journal, &acked), PAWL_OK);
    }
    assert_int_equal(acked.waiting, 100);
    nats_server_thaw(&world->server);
    WAIT_UNTIL(world, ops_of(world)->acked(world->journal, &acked) == PAWL_OK && acked.lsn == 100);
}

static void test_posts_to_a_server_that_is_killed(void **state)
{
    struct world *world = *state;
    struct pw_post post = {
        .kind = PW_POST_EVENT, .n = 1, .lsn = 1, .machine = "m", .id = "a", .name = "n"
    };
    size_t waiting = 0;
    WAIT_UNTIL(world, ops_of(world)->post(world->journal, &post) == PAWL_OK);
    WAIT_UNTIL(world, posts_waiting(world) == 0);
    nats_server_freeze(&world->server);
    for (post.n = 2; post.n <= 10; post.n++)
        assert_int_equal(ops_of(world)->post(world->journal, &post), PAWL_OK);
    assert_int_equal(posts_waiting(world), 9);
    nats_server_kill(&world->server);
    WAIT_UNTIL(world, ops_of(world)->posted(world->journal, &waiting) == PAWL_E_IO);
    assert_int_equal(posts_waiting(world), 0);
    nats_server_restart(&world->server);
    for (post.n = 2; post.n <= 10; post.n++)
        WAIT_UNTIL(world, ops_of(world)->post(world->journal, &post) == PAWL_OK);
    WAIT_UNTIL(world, posts_waiting(world) == 0);
    natsMsg *msg = last_message(world, "PAWL_live_EVENTS", "pawl.live.event.m.n");
    expect_header(msg, "Pawl-Id", "live.0.1.10");
    assert_int_equal(natsMsg_GetSequence(msg), 10);
    natsMsg_Destroy(msg);
}

/* --- what vanishes ---------------------------------------------------------------------------- */

static void test_a_deleted_consumer_is_made_anew(void **state)
{
    struct world *world = *state;
    open_at(world, 1);
    append_up_to(world, 100);
    WAIT_UNTIL(world, has_fetched(world, 1, 100));
    json_decref(call(world, "CONSUMER.DELETE." STREAM ".pawl_0_1", NULL));
    append_up_to(world, 200);
    WAIT_UNTIL(world, has_fetched(world, 101, 200));
}

static bool has_consumer(struct world *world)
{
    json_t *answer = call(world, "CONSUMER.NAMES." STREAM, NULL);
    bool has = json_array_size(json_object_get(answer, "consumers")) == 1;
    json_decref(answer);
    return has;
}

/* The server comes back without the consumer, and without the end of the stream. */
static void test_a_consumer_that_was_lost_with_the_server(void **state)
{
    struct world *world = *state;
    open_at(world, 1);
    append_up_to(world, 10);
    nats_server_stop(&world->server);
    nats_server_save(&world->server);
    nats_server_restart(&world->server);
    append_up_to(world, 20);
    WAIT_UNTIL(world, has_fetched(world, 1, 20)); /* this makes the consumer */
    nats_server_kill(&world->server);
    nats_server_load(&world->server);
    nats_server_restart(&world->server);
    assert_false(has_consumer(world));
    WAIT_UNTIL(world, has_fetched(world, 21, 21) || has_consumer(world));
    append_up_to(world, 30);
    WAIT_UNTIL(world, has_fetched(world, 21, 30));
}

static void test_a_deleted_stream_is_made_anew(void **state)
{
    struct world *world = *state;
    struct pw_journal_state looked = { 0 };
    open_at(world, 1);
    append_up_to(world, 10);
    WAIT_UNTIL(world, has_fetched(world, 1, 10));
    json_decref(call(world, "STREAM.DELETE." STREAM, NULL));
    assert_int_equal(append_one(world, 11), PAWL_OK);
    struct pw_acked acked = { 0 };
    WAIT_UNTIL(world, ops_of(world)->acked(world->journal, &acked) == PAWL_E_IO);
    look(world, &looked);
    assert_int_equal(looked.last_seq, 0);
    world->next_lsn = 1;
    open_at(world, 2);
    memset(world->fetched, 0, sizeof(world->fetched));
    append_up_to(world, 20);
    expect_stored(world, 20);
    WAIT_UNTIL(world, has_fetched(world, 1, 20));
}

static void test_a_purge_under_appends(void **state)
{
    struct world *world = *state;
    open_at(world, 1);
    append_up_to(world, 100);
    json_decref(call(world, "STREAM.PURGE." STREAM, NULL));
    append_up_to(world, 200); /* nothing is refused: its sequence went on */
    WAIT_UNTIL(world, has_fetched(world, 101, 200));
}

/* --- ending while the server is away ---------------------------------------------------------- */

struct caller {
    struct world *world;
    pawl_err err;
};

static void *look_in_a_thread(void *arg)
{
    struct caller *caller = arg;
    struct pw_journal_state looked = { 0 };
    caller->err = ops_of(caller->world)->look(caller->world->journal, &looked, NULL);
    return NULL;
}

static void test_halt_ends_what_waits(void **state)
{
    struct world *world = *state;
    struct caller caller = { world, PAWL_OK };
    pthread_t thread;
    open_at(world, 1);
    nats_server_freeze(&world->server);
    assert_int_equal(pthread_create(&thread, NULL, look_in_a_thread, &caller), 0);
    uint64_t begun_ms = now_ms(world);
    ops_of(world)->halt(world->journal);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(caller.err, PAWL_E_IO);
    assert_true(now_ms(world) - begun_ms < 6000);
    nats_server_thaw(&world->server);
}

/* --- the list --------------------------------------------------------------------------------- */

static int begin(void **state)
{
    struct world *world = test_calloc(1, sizeof(*world));
    nats_server_start(&world->server, NULL);
    pw_wake_init(&world->wake);
    pw_clock_init(&world->clock);
    world->journal = open_journal(world);
    world->next_lsn = 1;
    *state = world;
    return 0;
}

static int end(void **state)
{
    struct world *world = *state;
    ops_of(world)->halt(world->journal);
    ops_of(world)->close(world->journal);
    forget_connection(world);
    nats_server_end(&world->server);
    pw_wake_fini(&world->wake);
    test_free(world);
    return 0;
}

static int end_all(void **state)
{
    nats_Close();
    return leaks_end(state);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_headers_of_a_record),
        CASE(test_headers_of_posts),
        CASE(test_no_window_of_an_earlier_owner_fits_behind_an_opening),
        CASE(test_consumers_of_lower_fences_go),
        CASE(test_a_consumer_is_what_it_was_made_as),
        CASE(test_a_stream_that_loses_records_is_refused),
        CASE(test_an_absent_server),
        CASE(test_a_server_killed_in_the_middle_of_appends),
        CASE(test_a_server_stopped_in_the_middle_of_appends),
        CASE(test_a_server_stopped_for_a_moment),
        CASE(test_posts_to_a_server_that_is_killed),
        CASE(test_a_deleted_consumer_is_made_anew),
        CASE(test_a_consumer_that_was_lost_with_the_server),
        CASE(test_a_deleted_stream_is_made_anew),
        CASE(test_a_purge_under_appends),
        CASE(test_halt_ends_what_waits),
    };
    return cmocka_run_group_tests(tests, leaks_begin, end_all);
}
