/* SPDX-License-Identifier: Apache-2.0
 *
 * The configuration of the server that is shipped (deploy/nats): what each role may do, and above
 * all what it may not. Nobody but the owner changes a stream, however it is tried. */
#include <openssl/crypto.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nats/nats.h>

#include "base/base.h"
#include "jetstream/journal.h"
#include "jetstream/link.h"
#include "jetstream/streams.h"
#include "support/nats.h"
#include "support/test.h"

#define CONFIG_SIZE 32768
#define ANSWER_MS 5000
#define TRIES_MAX 1000
#define TRY_MS 10

static struct nats_server server;
static struct pw_journal *journal;
static natsConnection *owner;

/* --- the server --------------------------------------------------------------------------- */

/* Adds the file. The store is the test's own; what is included stands in its place. */
static void add_file(char to[CONFIG_SIZE], const char *name)
{
    char path[512] = "";
    char line[512] = "";
    pw_print(path, sizeof(path), "%s/%s", NATS_CONF, name);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(line, sizeof(line), file) != NULL) {
        size_t used = strlen(to);
        assert_true(used + strlen(line) < CONFIG_SIZE);
        if (strncmp(line, "include permissions.conf", 24) == 0)
            add_file(to, "permissions.conf");
        else if (strstr(line, "store_dir") == NULL)
            pw_print(to + used, CONFIG_SIZE - used, "%s", line);
    }
    assert_int_equal(fclose(file), 0);
}

static void ignore(natsConnection *connection, natsSubscription *subscription, natsStatus status,
                   void *arg)
{
    (void)connection;
    (void)subscription;
    (void)status;
    (void)arg;
}

/* NULL: not let in. */
static natsConnection *enter(const char *user, const char *password)
{
    natsConnection *made = NULL;
    natsOptions *options = NULL;
    assert_int_equal(natsOptions_Create(&options), NATS_OK);
    assert_int_equal(natsOptions_SetURL(options, server.bus), NATS_OK);
    assert_int_equal(natsOptions_SetErrorHandler(options, ignore, NULL), NATS_OK);
    if (user != NULL)
        assert_int_equal(natsOptions_SetUserInfo(options, user, password), NATS_OK);
    if (user != NULL && strcmp(user, "pawl_owner") == 0)
        assert_int_equal(natsOptions_SetCustomInboxPrefix(options, PW_INBOX_PREFIX), NATS_OK);
    if (natsConnection_Connect(&made, options) != NATS_OK)
        made = NULL;
    natsOptions_Destroy(options);
    return made;
}

/* --- trying ------------------------------------------------------------------------------- */

static bool was_refused(natsConnection *connection, const char *subject)
{
    char quoted[256] = ""; /* as the server says it */
    const char *last = NULL;
    pw_print(quoted, sizeof(quoted), "\"%s\"", subject);
    assert_int_equal(natsConnection_FlushTimeout(connection, ANSWER_MS), NATS_OK);
    return natsConnection_GetLastError(connection, &last) == NATS_NOT_PERMITTED &&
           strstr(last, quoted) != NULL;
}

static void may_not_publish(natsConnection *connection, const char *subject)
{
    assert_int_equal(natsConnection_PublishString(connection, subject, "{}"), NATS_OK);
    if (!was_refused(connection, subject))
        fail_msg("may publish %s", subject);
}

static void may_not_listen(natsConnection *connection, const char *subject)
{
    natsSubscription *subscription = NULL;
    assert_int_equal(natsConnection_SubscribeSync(&subscription, connection, subject), NATS_OK);
    if (!was_refused(connection, subject))
        fail_msg("may listen to %s", subject);
    natsSubscription_Destroy(subscription);
}

/* Sends a request, and returns the answer, for natsMsg_Destroy. */
static natsMsg *ask(natsConnection *connection, const char *subject, const char *request)
{
    natsMsg *answer = NULL;
    natsStatus status =
        natsConnection_RequestString(&answer, connection, subject, request, ANSWER_MS);
    if (status != NATS_OK)
        fail_msg("%s: %s", subject, natsStatus_GetText(status));
    return answer;
}

/* The request is answered, without an error in the answer. */
static void may_ask(natsConnection *connection, const char *subject, const char *request)
{
    natsMsg *answer = ask(connection, subject, request);
    if (strstr(natsMsg_GetData(answer), "\"error\"") != NULL)
        fail_msg("%s: %s", subject, natsMsg_GetData(answer));
    natsMsg_Destroy(answer);
}

/* What changes streams or consumers, or sends what is stored somewhere. */
static const char *const changes[] = {
    "STREAM.CREATE.PAWL_main_9",
    "STREAM.UPDATE.PAWL_main_0",
    "STREAM.PURGE.PAWL_main_0",
    "STREAM.PURGE.PAWL_main_EVENTS",
    "STREAM.DELETE.PAWL_main_0",
    "STREAM.SNAPSHOT.PAWL_main_0",
    "STREAM.RESTORE.PAWL_main_0",
    "STREAM.MSG.DELETE.PAWL_main_0",
    "STREAM.MSG.DELETE.PAWL_main_DLQ",
    "STREAM.PEER.REMOVE.PAWL_main_0",
    "STREAM.LEADER.STEPDOWN.PAWL_main_0",
    "CONSUMER.CREATE.PAWL_main_0",
    "CONSUMER.CREATE.PAWL_main_EVENTS",
    "CONSUMER.CREATE.PAWL_main_0.mine.>",
    "CONSUMER.DURABLE.CREATE.PAWL_main_0.mine",
    "CONSUMER.DELETE.PAWL_main_0.pawl_0_1",
    "CONSUMER.DELETE.PAWL_main_EVENTS.readers",
    "CONSUMER.MSG.NEXT.PAWL_main_0.pawl_0_1",
    "DIRECT.GET.PAWL_main_0",
    "META.LEADER.STEPDOWN",
    "SERVER.REMOVE",
};

static void may_change_nothing(natsConnection *connection)
{
    static const char *const prefixes[] = { "$JS.API", "$JS.main.API" };
    static const char *const subjects[] = {
        "pawl.main.j.0.order.1",
        "pawl.main.j.0._fence",
        "pawl.main.j.9.order.1",
        "pawl.main.event.order.x",
        "pawl.main.dlq.order.1.1",
        "pawl.main.work.order.s.0.1",
        "pawl.main.own.0",
        "$JS.ACK.PAWL_main_0.x.1.1.1.1.0",
        "pawl.other.cmd.order.x",
        "_INBOX_PAWL.x",
        "_INBOX.x",
    };
    char subject[256] = "";
    for (size_t p = 0; p < PW_COUNT(prefixes); p++) {
        for (size_t i = 0; i < PW_COUNT(changes); i++) {
            pw_print(subject, sizeof(subject), "%s.%s", prefixes[p], changes[i]);
            may_not_publish(connection, subject);
        }
    }
    for (size_t i = 0; i < PW_COUNT(subjects); i++)
        may_not_publish(connection, subjects[i]);
    may_not_listen(connection, "_INBOX_PAWL.>");
    may_not_listen(connection, "pawl.main.cmd.>");
    may_not_listen(connection, "$JS.>");
    may_not_listen(connection, ">");
}

/* --- what is there before and after ------------------------------------------------------- */

static pawl_err look(struct pw_journal_state *state)
{
    pawl_why why = { "" };
    pawl_err err = PAWL_E_BUSY;
    for (int i = 0; err == PAWL_E_BUSY && i < TRIES_MAX; i++) {
        err = journal->ops->look(journal, state, &why);
        (void)poll(NULL, 0, err == PAWL_E_BUSY ? TRY_MS : 0);
    }
    assert_string_equal(why.text, "");
    return err;
}

static void nothing_changed(const struct pw_journal_state *before)
{
    struct pw_journal_state now = { 0 };
    assert_int_equal(look(&now), PAWL_OK);
    assert_int_equal(now.last_seq, before->last_seq);
    assert_int_equal(now.records, before->records);
    assert_int_equal(now.created, before->created);
    may_ask(owner, "$JS.API.CONSUMER.INFO.PAWL_main_EVENTS.readers", "");
}

static void provide(enum pw_stream_kind kind)
{
    pawl_why why = { "" };
    const struct pw_stream stream = { .kind = kind, .ns = "main" };
    if (pw_stream_ensure(owner, &stream, NULL, NULL, &why) != PAWL_OK)
        fail_msg("%s", why.text);
}

static int start(void **state)
{
    static char config[CONFIG_SIZE];
    if (OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, NULL) != 1 || leaks_begin(state) != 0)
        return -1;
    setenv("NATS_PAWL_OWNER_PASSWORD", "of-the-owner", 1);
    setenv("NATS_PAWL_CLIENT_PASSWORD", "of-the-client", 1);
    setenv("NATS_PAWL_WORKER_PASSWORD", "of-the-worker", 1);
    setenv("NATS_PAWL_OBSERVER_PASSWORD", "of-the-observer", 1);
    add_file(config, "server.conf");
    nats_server_start(&server, config);
    owner = enter("pawl_owner", "of-the-owner");
    assert_non_null(owner);
    for (int kind = 0; kind < PW_STREAM_KINDS; kind++)
        provide((enum pw_stream_kind)kind);
    may_ask(owner, "$JS.API.CONSUMER.DURABLE.CREATE.PAWL_main_EVENTS.readers",
            "{\"stream_name\":\"PAWL_main_EVENTS\",\"config\":{\"durable_name\":\"readers\","
            "\"ack_policy\":\"explicit\"}}");
    const pawl_nats nats = { .user = "pawl_owner", .password = "of-the-owner" };
    const struct pw_jetstream_options options = { .bus = server.bus, .nats = &nats, .ns = "main" };
    return pw_jetstream_open(&journal, &options, NULL) == PAWL_OK ? 0 : -1;
}

static int end(void **state)
{
    journal->ops->close(journal);
    natsConnection_Destroy(owner);
    nats_server_end(&server);
    if (nats_CloseAndWait(10000) != NATS_OK)
        return -1;
    return leaks_end(state);
}

/* --- the roles ---------------------------------------------------------------------------- */

static void strangers(void **state)
{
    (void)state;
    assert_null(enter(NULL, NULL));
    assert_null(enter("pawl_owner", "of-the-client"));
    assert_null(enter("pawl_client", ""));
    assert_null(enter("root", "of-the-owner"));
}

static void count_entry(void *arg, const struct pw_entry *entry)
{
    size_t *count = arg;
    *count += entry->kind == PW_ENTRY_RECORD;
}

static void wait_for_posts(void)
{
    size_t waiting = 1;
    for (int i = 0; waiting > 0 && i < TRIES_MAX; i++) {
        assert_int_equal(journal->ops->posted(journal, &waiting), PAWL_OK);
        (void)poll(NULL, 0, TRY_MS);
    }
    assert_int_equal(waiting, 0);
}

/* All that the daemon does. */
static void owners(void **state)
{
    (void)state;
    struct pw_journal_state there = { 0 };
    struct pw_acked acked = { 0 };
    size_t count = 0;
    uint64_t seq = 0;
    bool through = false;
    assert_int_equal(look(&there), PAWL_OK);
    const struct pw_opening opening = { .applied_seq = there.last_seq,
                                        .fence = there.fence + 1,
                                        .mark = pawl_str("mark") };
    assert_int_equal(journal->ops->open(journal, &opening, &seq), PAWL_OK);
    const struct pw_append record = {
        .lsn = 7, .machine = "order", .id = "1", .record = pawl_str("record")
    };
    assert_int_equal(journal->ops->append(journal, &record), PAWL_OK);
    for (int i = 0; acked.lsn != 7 && i < TRIES_MAX; i++) {
        assert_int_equal(journal->ops->acked(journal, &acked), PAWL_OK);
        (void)poll(NULL, 0, TRY_MS);
    }
    for (int i = 0; count == 0 && i < TRIES_MAX; i++)
        (void)journal->ops->fetch(journal, 10, count_entry, &count);
    assert_int_equal(count, 1);
    const struct pw_post posts[] = {
        { .kind = PW_POST_EVENT, .n = 1, .lsn = 7, .machine = "order", .id = "1", .name = "paid" },
        { .kind = PW_POST_LETTER, .lsn = 7, .epoch = 7, .machine = "order", .id = "1", .why = "x" },
    };
    for (size_t i = 0; i < PW_COUNT(posts); i++)
        assert_int_equal(journal->ops->post(journal, &posts[i]), PAWL_OK);
    wait_for_posts();
    const struct pw_post settled = {
        .kind = PW_POST_NO_LETTER, .epoch = 7, .machine = "order", .id = "1"
    };
    assert_int_equal(journal->ops->post(journal, &settled), PAWL_OK);
    wait_for_posts();
    assert_int_equal(journal->ops->last(journal, "order", "1", count_entry, &count), PAWL_OK);
    assert_int_equal(count, 2);
    assert_int_equal(look(&there), PAWL_OK);
    assert_int_equal(
        journal->ops->read(journal, 1, false, 100, count_entry, &count, &seq, &through), PAWL_OK);
    assert_int_equal(count, 3);
    assert_true(through);
    assert_int_equal(journal->ops->remove(journal, acked.seq), PAWL_OK);
}

static void owners_leave_the_rest(void **state)
{
    (void)state;
    static const char *const subjects[] = {
        "$JS.API.STREAM.DELETE.PAWL_main_0",   "$JS.API.STREAM.PURGE.PAWL_main_0",
        "$JS.API.STREAM.UPDATE.PAWL_main_0",   "$JS.API.STREAM.RESTORE.PAWL_main_0",
        "$JS.API.STREAM.SNAPSHOT.PAWL_main_0", "pawl.other.j.0.order.1",
    };
    struct pw_journal_state before = { 0 };
    assert_int_equal(look(&before), PAWL_OK);
    for (size_t i = 0; i < PW_COUNT(subjects); i++)
        may_not_publish(owner, subjects[i]);
    may_not_listen(owner, ">");
    nothing_changed(&before);
}

static void answer(natsConnection *connection, natsSubscription *subscription, natsMsg *message,
                   void *arg)
{
    (void)subscription;
    (void)arg;
    (void)natsConnection_PublishString(connection, natsMsg_GetReply(message), "answered");
    natsMsg_Destroy(message);
}

/* The owner answers what is sent to this subject. */
static natsSubscription *serve(const char *subject)
{
    natsSubscription *made = NULL;
    assert_int_equal(natsConnection_Subscribe(&made, owner, subject, answer, NULL), NATS_OK);
    assert_int_equal(natsConnection_FlushTimeout(owner, ANSWER_MS), NATS_OK);
    return made;
}

/* The next message, taken from a consumer, and acknowledged. */
static void take(natsConnection *connection, const char *stream, const char *consumer,
                 const char *text)
{
    char subject[256] = "";
    pw_print(subject, sizeof(subject), "$JS.main.API.CONSUMER.MSG.NEXT.%s.%s", stream, consumer);
    natsMsg *message = ask(connection, subject, "{\"batch\":1}");
    assert_string_equal(natsMsg_GetData(message), text);
    natsMsg *done = ask(connection, natsMsg_GetReply(message), "+ACK");
    natsMsg_Destroy(done);
    natsMsg_Destroy(message);
    pw_print(subject, sizeof(subject), "$JS.API.CONSUMER.INFO.%s.%s", stream, consumer);
    message = ask(owner, subject, "");
    assert_non_null(strstr(natsMsg_GetData(message), "\"num_ack_pending\":0"));
    natsMsg_Destroy(message);
}

/* A request whose answer would be published on a journal's subject. */
static void smuggle(natsConnection *connection, const char *subject)
{
    assert_int_equal(
        natsConnection_PublishRequestString(connection, subject, "pawl.main.j.0.order.1", ""),
        NATS_OK);
    assert_false(was_refused(connection, subject));
    assert_int_equal(natsConnection_FlushTimeout(owner, ANSWER_MS), NATS_OK);
}

static void clients(void **state)
{
    (void)state;
    struct pw_journal_state before = { 0 };
    natsSubscription *events = NULL;
    natsMsg *event = NULL;
    natsConnection *client = enter("pawl_client", "of-the-client");
    natsSubscription *commands = serve("pawl.main.cmd.>");
    natsSubscription *queries = serve("pawl.main.query.>");
    assert_non_null(client);
    assert_int_equal(look(&before), PAWL_OK);
    may_ask(client, "pawl.main.cmd.order.create", "");
    may_ask(client, "pawl.main.query.list", "");
    assert_int_equal(natsConnection_SubscribeSync(&events, client, "pawl.main.event.>"), NATS_OK);
    assert_int_equal(natsConnection_FlushTimeout(client, ANSWER_MS), NATS_OK);
    may_ask(owner, "pawl.main.event.order.sent", "an event");
    assert_int_equal(natsSubscription_NextMsg(&event, events, ANSWER_MS), NATS_OK);
    assert_string_equal(natsMsg_GetData(event), "an event");
    natsMsg_Destroy(event);
    may_ask(client, "$JS.main.API.CONSUMER.INFO.PAWL_main_EVENTS.readers", "");
    take(client, "PAWL_main_EVENTS", "readers", "");
    take(client, "PAWL_main_EVENTS", "readers", "an event");
    may_ask(owner, "pawl.main.event.order.sent", "another");
    smuggle(client, "$JS.main.API.CONSUMER.MSG.NEXT.PAWL_main_EVENTS.readers");
    smuggle(client, "pawl.main.cmd.order.create");
    may_change_nothing(client);
    may_not_publish(client, "pawl.main.outcome.0");
    may_not_publish(client, "$JS.main.API.STREAM.INFO.PAWL_main_0");
    may_not_publish(client, "$JS.main.API.STREAM.MSG.GET.PAWL_main_0");
    may_not_listen(client, "pawl.main.j.>");
    may_not_listen(client, "pawl.main.dlq.>");
    nothing_changed(&before);
    natsSubscription_Destroy(events);
    natsSubscription_Destroy(commands);
    natsSubscription_Destroy(queries);
    natsConnection_Destroy(client);
}

static void workers(void **state)
{
    (void)state;
    struct pw_journal_state before = { 0 };
    natsConnection *worker = enter("pawl_worker", "of-the-worker");
    natsSubscription *outcomes = serve("pawl.main.outcome.>");
    assert_non_null(worker);
    assert_int_equal(look(&before), PAWL_OK);
    may_ask(owner, "$JS.API.STREAM.CREATE.PAWL_main_WORK",
            "{\"name\":\"PAWL_main_WORK\",\"subjects\":[\"pawl.main.work.>\"],\"retention\":"
            "\"limits\",\"storage\":\"file\"}");
    may_ask(owner, "$JS.API.CONSUMER.DURABLE.CREATE.PAWL_main_WORK.order",
            "{\"stream_name\":\"PAWL_main_WORK\",\"config\":{\"durable_name\":\"order\","
            "\"ack_policy\":\"explicit\"}}");
    may_ask(owner, "pawl.main.work.order.charging.0.1", "a task");
    take(worker, "PAWL_main_WORK", "order", "a task");
    may_ask(worker, "$JS.main.API.CONSUMER.INFO.PAWL_main_WORK.order", "");
    may_ask(worker, "pawl.main.outcome.0", "");
    smuggle(worker, "pawl.main.outcome.0");
    may_change_nothing(worker);
    may_not_publish(worker, "pawl.main.cmd.order.create");
    may_not_publish(worker, "$JS.main.API.CONSUMER.MSG.NEXT.PAWL_main_EVENTS.readers");
    may_not_publish(worker, "$JS.main.API.STREAM.INFO.PAWL_main_0");
    may_not_listen(worker, "pawl.main.j.>");
    may_not_listen(worker, "pawl.main.event.>");
    nothing_changed(&before);
    natsSubscription_Destroy(outcomes);
    natsConnection_Destroy(worker);
}

static void observe(natsConnection *observer, const char *subject)
{
    natsSubscription *made = NULL;
    natsMsg *message = NULL;
    assert_int_equal(natsConnection_SubscribeSync(&made, observer, subject), NATS_OK);
    assert_int_equal(natsConnection_FlushTimeout(observer, ANSWER_MS), NATS_OK);
    may_ask(owner, subject, "seen");
    assert_int_equal(natsSubscription_NextMsg(&message, made, ANSWER_MS), NATS_OK);
    assert_string_equal(natsMsg_GetData(message), "seen");
    natsMsg_Destroy(message);
    natsSubscription_Destroy(made);
}

static void observers(void **state)
{
    (void)state;
    static const char *const streams[] = { "PAWL_main_0", "PAWL_main_EVENTS", "PAWL_main_DLQ" };
    char subject[128] = "";
    struct pw_journal_state before = { 0 };
    natsConnection *observer = enter("pawl_observer", "of-the-observer");
    assert_non_null(observer);
    observe(observer, "pawl.main.j.0.order.2");
    observe(observer, "pawl.main.event.order.paid");
    observe(observer, "pawl.main.dlq.order.2.7");
    assert_int_equal(look(&before), PAWL_OK);
    for (size_t i = 0; i < PW_COUNT(streams); i++) {
        pw_print(subject, sizeof(subject), "$JS.main.API.STREAM.INFO.%s", streams[i]);
        may_ask(observer, subject, "");
        smuggle(observer, subject);
        pw_print(subject, sizeof(subject), "$JS.main.API.CONSUMER.NAMES.%s", streams[i]);
        may_ask(observer, subject, "");
        pw_print(subject, sizeof(subject), "$JS.main.API.STREAM.MSG.GET.%s", streams[i]);
        may_ask(observer, subject,
                i == 0   ? "{\"last_by_subj\":\"pawl.main.j.0.order.2\"}"
                : i == 1 ? "{\"last_by_subj\":\"pawl.main.event.order.paid\"}"
                         : "{\"last_by_subj\":\"pawl.main.dlq.order.2.7\"}");
    }
    may_ask(observer, "$JS.main.API.CONSUMER.INFO.PAWL_main_EVENTS.readers", "");
    may_change_nothing(observer);
    may_not_publish(observer, "pawl.main.cmd.order.create");
    may_not_publish(observer, "pawl.main.outcome.0");
    may_not_publish(observer, "$JS.main.API.CONSUMER.MSG.NEXT.PAWL_main_EVENTS.readers");
    may_not_publish(observer, "$JS.ACK.PAWL_main_EVENTS.readers.1.1.1.1.0");
    nothing_changed(&before);
    natsConnection_Destroy(observer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strangers),
        cmocka_unit_test(owners),
        cmocka_unit_test(owners_leave_the_rest),
        cmocka_unit_test(clients),
        cmocka_unit_test(workers),
        cmocka_unit_test(observers),
    };
    return cmocka_run_group_tests(tests, start, end);
}
