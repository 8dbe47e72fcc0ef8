/* SPDX-License-Identifier: Apache-2.0
 *
 * The kinds of journals: on a nats-server of its own for each test, and in memory. */
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/wake.h"
#include "contract/journal.h"
#include "jetstream/api.h"
#include "jetstream/journal.h"
#include "jetstream/streams.h"
#include "jetstream/subject.h"
#include "sim/journal.h"
#include "support/nats.h"
#include "support/test.h"

#define NS "contract"
#define SHARD 3u
#define JOURNALS_MAX 4
#define WAIT_MS 5

struct world {
    struct nats_server server;
    struct pw_wake wake;
    struct pw_journal *journals[JOURNALS_MAX];
    size_t journals_count;
    natsConnection *connection; /* somebody else's */
};

static void poke(void *arg)
{
    pw_poke(arg);
}

static struct pw_journal *add_journal(void *arg)
{
    struct world *world = arg;
    pawl_why why = { "" };
    struct pw_journal *journal = NULL;
    struct pw_jetstream_options options = { .bus = world->server.bus, .ns = NS, .shard = SHARD };
    if (pw_jetstream_open(&journal, &options, &why) != PAWL_OK)
        fail_msg("%s", why.text);
    assert_true(world->journals_count < JOURNALS_MAX);
    journal->poke = poke;
    journal->poke_arg = &world->wake;
    world->journals[world->journals_count++] = journal;
    return journal;
}

static void *make(struct pw_journal **journal)
{
    struct world *world = test_calloc(1, sizeof(*world));
    nats_server_start(&world->server, NULL);
    pw_wake_init(&world->wake);
    *journal = add_journal(world);
    return world;
}

static void end_connection(struct world *world)
{
    natsConnection_Destroy(world->connection);
    world->connection = NULL;
}

static void end(void *arg)
{
    struct world *world = arg;
    for (size_t i = 0; i < world->journals_count; i++)
        world->journals[i]->ops->close(world->journals[i]);
    end_connection(world);
    nats_server_end(&world->server);
    pw_wake_fini(&world->wake);
    test_free(world);
}

static void wait_a_little(void *arg)
{
    pw_nap(&((struct world *)arg)->wake, WAIT_MS);
}

static void freeze(void *arg, bool frozen)
{
    struct world *world = arg;
    if (frozen)
        nats_server_freeze(&world->server);
    else
        nats_server_thaw(&world->server);
}

/* --- somebody else ---------------------------------------------------------------------------- */

static natsConnection *connection_of(struct world *world)
{
    if (world->connection == NULL)
        assert_int_equal(natsConnection_ConnectTo(&world->connection, world->server.bus), NATS_OK);
    return world->connection;
}

static json_t *ask(struct world *world, const char *what, enum pw_stream_kind of)
{
    char name[PW_STREAM_NAME_SIZE] = "";
    char verb[PW_STREAM_NAME_SIZE + 32] = "";
    json_t *answer = NULL;
    pawl_why why = { "" };
    pw_stream_name(of, NS, SHARD, name);
    pw_print(verb, sizeof(verb), "STREAM.%s.%s", what, name);
    pawl_err err = pw_api_call(connection_of(world), verb, NULL, 5000, &answer, NULL, &why);
    if (err != PAWL_OK && err != PAWL_E_NOT_FOUND)
        fail_msg("%s", why.text);
    return answer;
}

/* With an acknowledgement, so that it is stored when this returns. */
static void publish(struct world *world, const char *subject)
{
    natsMsg *answer = NULL;
    assert_int_equal(
        natsConnection_RequestString(&answer, connection_of(world), subject, "foreign", 5000),
        NATS_OK);
    assert_non_null(strstr(natsMsg_GetData(answer), "\"seq\":"));
    natsMsg_Destroy(answer);
}

static void foreign(void *arg, const char *machine, const char *id)
{
    char subject[PW_SUBJECT_MAX] = "";
    assert_true(pw_subject_journal(subject, NS, SHARD, machine, id));
    publish(arg, subject);
}

static void foreign_subject(void *arg, const char *end_of_it)
{
    char subject[PW_SUBJECT_MAX] = "";
    pw_print(subject, sizeof(subject), "pawl." NS ".j.%u.%s", SHARD, end_of_it);
    publish(arg, subject);
}

static void purge(void *arg)
{
    json_decref(ask(arg, "PURGE", PW_STREAM_JOURNAL));
}

static void recreate(void *arg)
{
    json_decref(ask(arg, "DELETE", PW_STREAM_JOURNAL));
}

static void save(void *arg)
{
    struct world *world = arg;
    end_connection(world);
    nats_server_stop(&world->server);
    nats_server_save(&world->server);
    nats_server_restart(&world->server);
}

static void roll_back(void *arg)
{
    struct world *world = arg;
    end_connection(world);
    nats_server_kill(&world->server);
    nats_server_load(&world->server);
    nats_server_restart(&world->server);
}

static size_t count(struct world *world, enum pw_stream_kind of)
{
    json_t *info = ask(world, "INFO", of);
    json_int_t messages =
        json_integer_value(json_object_get(json_object_get(info, "state"), "messages"));
    json_decref(info);
    return (size_t)messages;
}

static size_t events(void *arg)
{
    return count(arg, PW_STREAM_EVENTS);
}

static size_t letters(void *arg)
{
    return count(arg, PW_STREAM_DLQ);
}

static const struct journal_maker jetstream = {
    .name = "jetstream",
    .make = make,
    .free = end,
    .wait = wait_a_little,
    .another = add_journal,
    .freeze = freeze,
    .foreign = foreign,
    .foreign_subject = foreign_subject,
    .purge = purge,
    .recreate = recreate,
    .save = save,
    .roll_back = roll_back,
    .end = nats_Close,
    .events = events,
    .letters = letters,
};

/* --- in memory ---------------------------------------------------------------------------------
 */

/* The server is a part of the journal; a second connection to it cannot be had. */
struct sim_world {
    struct pw_clock clock; /* first: found again from it */
    uint64_t now_ms;
    bool frozen; /* its time stands still, so nothing is answered */
    struct pw_journal *journal;
};

static uint64_t sim_ms(struct pw_clock *clock)
{
    return ((struct sim_world *)clock)->now_ms;
}

static void *sim_make(struct pw_journal **journal)
{
    struct sim_world *world = test_calloc(1, sizeof(*world));
    world->clock = (struct pw_clock){ sim_ms, sim_ms };
    assert_int_equal(pw_sim_journal_open(&world->journal, &world->clock, 1), PAWL_OK);
    *journal = world->journal;
    return world;
}

static void sim_end(void *arg)
{
    struct sim_world *world = arg;
    world->journal->ops->close(world->journal);
    pw_sim_journal_free(world->journal);
    test_free(world);
}

static void sim_wait(void *arg)
{
    struct sim_world *world = arg;
    world->now_ms += world->frozen ? 0 : 1;
}

static void sim_freeze(void *arg, bool frozen)
{
    ((struct sim_world *)arg)->frozen = frozen;
}

static void sim_foreign(void *arg, const char *machine, const char *id)
{
    struct sim_world *world = arg;
    assert_int_equal(pw_sim_journal_foreign(world->journal, machine, id, pawl_str("foreign")),
                     PAWL_OK);
}

static void sim_foreign_subject(void *arg, const char *subject)
{
    struct sim_world *world = arg;
    assert_int_equal(pw_sim_journal_foreign_subject(world->journal, subject, pawl_str("foreign")),
                     PAWL_OK);
}

static void sim_purge(void *arg)
{
    pw_sim_journal_purge(((struct sim_world *)arg)->journal);
}

static void sim_recreate(void *arg)
{
    pw_sim_journal_recreate(((struct sim_world *)arg)->journal);
}

static void sim_save(void *arg)
{
    assert_int_equal(pw_sim_journal_snapshot(((struct sim_world *)arg)->journal), PAWL_OK);
}

/* A server that comes back with less was away. */
static void sim_roll_back(void *arg)
{
    struct sim_world *world = arg;
    pw_sim_journal_away(world->journal, true);
    assert_int_equal(pw_sim_journal_restore(world->journal), PAWL_OK);
    pw_sim_journal_away(world->journal, false);
}

/* The server keeps one of those that have the same id; in memory each is kept, for tests. */
static size_t sim_events(void *arg)
{
    struct pw_journal *journal = ((struct sim_world *)arg)->journal;
    const struct pw_post *post = NULL;
    size_t count = 0;
    for (size_t i = 0; (post = pw_sim_journal_event(journal, i)) != NULL; i++) {
        bool repeated = false;
        for (size_t j = 0; j < i; j++) {
            const struct pw_post *before = pw_sim_journal_event(journal, j);
            repeated = repeated || (before->lsn == post->lsn && before->n == post->n);
        }
        count += repeated ? 0 : 1;
    }
    return count;
}

static size_t sim_letters(void *arg)
{
    size_t count = 0;
    while (pw_sim_journal_letter(((struct sim_world *)arg)->journal, count) != NULL)
        count++;
    return count;
}

static const struct journal_maker sim = {
    .name = "sim",
    .make = sim_make,
    .free = sim_end,
    .wait = sim_wait,
    .freeze = sim_freeze,
    .foreign = sim_foreign,
    .foreign_subject = sim_foreign_subject,
    .purge = sim_purge,
    .recreate = sim_recreate,
    .save = sim_save,
    .roll_back = sim_roll_back,
    .events = sim_events,
    .letters = sim_letters,
};

const struct journal_maker *const journal_makers[] = { &jetstream, &sim, NULL };
