/* SPDX-License-Identifier: Apache-2.0
 *
 * What befalls a real nats-server, and the data directory beside it: the engine's work is done all
 * the same, and in the end the stream holds exactly what the store does. */
#define _XOPEN_SOURCE 700 /* nftw, mkdtemp */
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>

#include <nats/nats.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/wake.h"
#include "engine/verify.h"
#include "jetstream/journal.h"
#include "pawl/pawl.h"
#include "support/nats.h"
#include "support/test.h"

/* Looks again and again, until it holds or 60 seconds are over. */
#define WAIT_FOR(condition)                                                                        \
    do {                                                                                           \
        struct pw_wake wake_;                                                                      \
        int looks_ = 0;                                                                            \
        pw_wake_init(&wake_);                                                                      \
        for (; !(condition) && looks_ < 6000; looks_++)                                            \
            pw_nap(&wake_, 10);                                                                    \
        pw_wake_fini(&wake_);                                                                      \
        assert_true(looks_ < 6000);                                                                \
    } while (0)

/* --- a machine: it waits, works twice, and ends ------------------------------------------- */

enum { WAITING, FIRST, SECOND, DONE };
enum { GO };

static pawl_outcome pass(pawl_task *task)
{
    _Atomic uint64_t *runs = pawl_task_env(task);
    atomic_fetch_add(runs, 1);
    return pawl_raise(GO);
}

static const pawl_state states[] = {
    [WAITING] = { .name = "waiting", .flags = PAWL_START },
    [FIRST] = { .name = "first", .work = pass },
    [SECOND] = { .name = "second", .work = pass },
    [DONE] = { .name = "done", .flags = PAWL_FINAL },
};
static const char *const events[] = { [GO] = "go" };
static const pawl_edge edges[] = {
    { .from = WAITING, .event = GO, .to = FIRST },
    { .from = FIRST, .event = GO, .to = SECOND },
    { .from = SECOND, .event = GO, .to = DONE },
};
static const pawl_machine machine = {
    .name = "two", PAWL_STATES(states), PAWL_EVENTS(events), PAWL_EDGES(edges), .key_share = 100
};

/* --- a place: a server and a directory ---------------------------------------------------- */

struct place {
    struct nats_server server;
    char dir[256];
    char old[300]; /* a copy of the directory */
    _Atomic uint64_t runs;
    pawl *engine;
    uint64_t outbox_rows_max;
};

static int remove_one(const char *path, const struct stat *info, int type, struct FTW *ftw)
{
    (void)info;
    (void)type;
    (void)ftw;
    return remove(path);
}

static void forget_dir(const char *dir)
{
    (void)nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS); /* it need not be there */
}

static void copy_dir(const char *from, const char *to)
{
    char command[700] = "";
    forget_dir(to);
    (void)snprintf(command, sizeof(command), "cp -a '%s' '%s'", from, to);
    assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c): a test's own paths */
}

static int make_place(void **state)
{
    struct place *place = pw_alloc(sizeof(*place));
    const char *tmp = getenv("TMPDIR");
    (void)snprintf(place->dir, sizeof(place->dir), "%s/pawl-recovery-XXXXXX",
                   tmp != NULL ? tmp : "/tmp");
    assert_non_null(mkdtemp(place->dir));
    (void)snprintf(place->old, sizeof(place->old), "%s-old", place->dir);
    nats_server_start(&place->server, NULL);
    *state = place;
    return 0;
}

static int leave_place(void **state)
{
    struct place *place = *state;
    pawl_close(place->engine);
    nats_server_end(&place->server);
    forget_dir(place->dir);
    forget_dir(place->old);
    pw_free(place);
    return 0;
}

static void start(struct place *place)
{
    pawl_why why = { "" };
    const pawl_unit unit = { &machine, &place->runs, NULL };
    const pawl_options options = {
        .dir = place->dir,
        .bus = place->server.bus,
        .map_bytes = (uint64_t)1 << 30,
        .outbox_rows_max = place->outbox_rows_max,
    };
    if (pawl_open(&place->engine, &options, &why) != PAWL_OK)
        fail_msg("open: %s", why.text);
    place->engine->compare_ms = 500;
    if (pawl_add(place->engine, &unit, &why) != PAWL_OK ||
        pawl_start(place->engine, &why) != PAWL_OK)
        fail_msg("start: %s", why.text);
}

static void stop(struct place *place)
{
    pawl_close(place->engine);
    place->engine = NULL;
}

static uint64_t metric(const _Atomic uint64_t *metric)
{
    return atomic_load(metric);
}
#define METRIC(place, name) metric(&(place)->engine->metrics.name)

static pawl_err try_create(struct place *place, unsigned n)
{
    char id[16] = "";
    (void)snprintf(id, sizeof(id), "e%u", n);
    return pawl_create(place->engine, "two", id, NULL, NULL);
}

static void create(struct place *place, unsigned from, unsigned to)
{
    for (unsigned n = from; n < to; n++)
        assert_int_equal(try_create(place, n), PAWL_OK);
}

static void go(struct place *place, unsigned from, unsigned to)
{
    char id[16] = "";
    for (unsigned n = from; n < to; n++) {
        (void)snprintf(id, sizeof(id), "e%u", n);
        assert_int_equal(pawl_send(place->engine, "two", id, "go", NULL, NULL), PAWL_OK);
    }
}

static bool count_one(void *arg, const pawl_entity *entity)
{
    (void)entity;
    (*(uint64_t *)arg)++;
    return true;
}

static uint64_t count_in(struct place *place, const char *state)
{
    uint64_t count = 0;
    const pawl_query query = { .machine = "two", .state = state };
    assert_int_equal(pawl_scan(place->engine, &query, count_one, &count, NULL), PAWL_OK);
    return count;
}

static bool at_rest(struct place *place)
{
    struct pw_status status;
    assert_int_equal(pw_status(&place->engine->shards[0], &status), PAWL_OK);
    return status.outbox == 0;
}

static struct pw_health health_of(struct place *place)
{
    struct pw_health health = { .live = false };
    assert_true(pw_journal_health(&place->engine->shards[0], &health));
    return health;
}

static bool is_live(struct place *place)
{
    return health_of(place).live;
}

/* Of the shard's last change. */
static uint32_t fence_of(struct place *place)
{
    struct pw_status status;
    assert_int_equal(pw_status(&place->engine->shards[0], &status), PAWL_OK);
    return (uint32_t)(status.lsn >> 32);
}

/* --- what the stream holds ---------------------------------------------------------------- */

struct held {
    struct pw_shard *shard;
    uint64_t right;
    uint64_t wrong;
};

static void on_entry(void *arg, const struct pw_entry *entry)
{
    struct held *held = arg;
    const struct pw_tables *tables = &held->shard->tables;
    struct pw_arena arena;
    struct pw_entity entity;
    struct pw_txn *txn = NULL;
    uint64_t row = 0;
    if (entry->kind == PW_ENTRY_FENCE || entry->kind == PW_ENTRY_MARK)
        return;
    pw_arena_init(&arena, 1024);
    assert_int_equal(tables->store->ops->begin(tables->store, false, &txn), PAWL_OK);
    bool right = entry->kind == PW_ENTRY_RECORD &&
                 pw_tables_find(tables, txn, entry->machine, entry->id, &row) == PAWL_OK &&
                 pw_tables_load_any(tables, txn, row, &arena, &entity) == PAWL_OK &&
                 entity.version == entry->lsn;
    tables->store->ops->abort(txn);
    pw_arena_fini(&arena);
    held->right += right ? 1 : 0;
    held->wrong += right ? 0 : 1;
}

/* True: the stream has exactly the newest record of each of `entities`. */
static bool stream_holds(struct place *place, uint64_t entities)
{
    static const pawl_nats none = { .user = NULL };
    const struct pw_jetstream_options options = {
        .bus = place->server.bus, .nats = &none, .ns = "main", .shard = 0
    };
    struct held held = { .shard = &place->engine->shards[0] };
    struct pw_journal *journal = NULL;
    struct pw_journal_state state;
    uint64_t seq = 1;
    bool through = false;
    assert_int_equal(pw_jetstream_open(&journal, &options, NULL), PAWL_OK);
    pawl_err err = journal->ops->look(journal, &state, NULL);
    while (err == PAWL_OK && !through)
        err = journal->ops->read(journal, seq, true, 256, on_entry, &held, &seq, &through);
    journal->ops->close(journal);
    return err == PAWL_OK && held.wrong == 0 && held.right == entities;
}

static bool print_fault(void *arg, const char *text)
{
    (void)arg;
    print_error("verify: %s\n", text);
    return true;
}

/* tombstones: records besides those of the entities. */
static void expect_records(struct place *place, uint64_t entities, uint64_t tombstones)
{
    uint64_t read = 0;
    uint64_t unlisted = 0;
    WAIT_FOR(at_rest(place));
    WAIT_FOR(stream_holds(place, entities + tombstones));
    assert_int_equal(pw_verify(place->engine, print_fault, NULL, &read), PAWL_OK);
    assert_int_equal(read, entities);
    assert_int_equal(pw_unlisted(place->engine, &unlisted), PAWL_OK);
    assert_int_equal(unlisted, 0);
    assert_int_equal(METRIC(place, swept), 0);
}

static void expect_right(struct place *place, uint64_t entities)
{
    expect_records(place, entities, 0);
}

/* All are done, each after two runs at least. */
static void expect_done(struct place *place, uint64_t entities)
{
    WAIT_FOR(count_in(place, "done") == entities);
    assert_true(atomic_load(&place->runs) >= 2 * entities);
    expect_right(place, entities);
}

/* --- raw requests ------------------------------------------------------------------------- */

static void ask(struct place *place, const char *subject, const char *body)
{
    natsConnection *connection = NULL;
    natsMsg *answer = NULL;
    assert_int_equal(natsConnection_ConnectTo(&connection, place->server.bus), NATS_OK);
    assert_int_equal(natsConnection_RequestString(&answer, connection, subject, body, 5000),
                     NATS_OK);
    assert_null(strstr(natsMsg_GetData(answer), "\"error\""));
    natsMsg_Destroy(answer);
    natsConnection_Destroy(connection);
}

static void publish(struct place *place, const char *subject)
{
    natsConnection *connection = NULL;
    assert_int_equal(natsConnection_ConnectTo(&connection, place->server.bus), NATS_OK);
    assert_int_equal(natsConnection_PublishString(connection, subject, "foreign"), NATS_OK);
    assert_int_equal(natsConnection_Flush(connection), NATS_OK);
    natsConnection_Destroy(connection);
}

/* --- the server --------------------------------------------------------------------------- */

static void nothing_befalls_it(void **state)
{
    struct place *place = *state;
    start(place);
    create(place, 0, 100);
    go(place, 0, 100);
    expect_done(place, 100);
    assert_int_equal(METRIC(place, reseeded), 0);
}

static void an_absent_server_is_waited_for(void **state)
{
    struct place *place = *state;
    nats_server_kill(&place->server);
    place->outbox_rows_max = 50;
    start(place);
    create(place, 0, 25);
    go(place, 0, 25);
    assert_int_equal(try_create(place, 99), PAWL_E_BUSY); /* transient */
    assert_int_equal(atomic_load(&place->runs), 0);
    nats_server_restart(&place->server);
    expect_done(place, 25);
    create(place, 25, 26);
}

static void a_server_that_dies_comes_back(void **state)
{
    struct place *place = *state;
    start(place);
    for (unsigned round = 0; round < 4; round++) {
        create(place, round * 50, round * 50 + 50);
        go(place, round * 50, round * 50 + 50);
        if (round % 2 == 0)
            nats_server_kill(&place->server);
        else
            nats_server_stop(&place->server);
        nats_server_restart(&place->server);
    }
    expect_done(place, 200);
}

static void a_frozen_server_is_waited_for(void **state)
{
    struct place *place = *state;
    start(place);
    create(place, 0, 50);
    WAIT_FOR(at_rest(place));
    nats_server_freeze(&place->server);
    go(place, 0, 50);
    uint64_t resumed = METRIC(place, resumed);
    WAIT_FOR(!is_live(place)); /* publishes had no answer */
    nats_server_thaw(&place->server);
    expect_done(place, 50);
    assert_true(METRIC(place, resumed) > resumed);
}

static void a_wiped_server_is_filled_again(void **state)
{
    struct place *place = *state;
    start(place);
    create(place, 0, 50);
    WAIT_FOR(at_rest(place));
    nats_server_stop(&place->server);
    nats_server_wipe(&place->server);
    nats_server_restart(&place->server);
    expect_right(place, 50);
    assert_true(METRIC(place, reseeded) >= 50);
    go(place, 0, 50);
    expect_done(place, 50);
}

static void a_server_that_went_back_is_caught_up(void **state)
{
    struct place *place = *state;
    start(place);
    create(place, 0, 50);
    WAIT_FOR(at_rest(place));
    nats_server_stop(&place->server);
    nats_server_save(&place->server);
    nats_server_restart(&place->server);
    create(place, 50, 80);
    go(place, 0, 20);
    WAIT_FOR(count_in(place, "done") == 20 && at_rest(place));
    nats_server_stop(&place->server);
    nats_server_load(&place->server);
    nats_server_restart(&place->server);
    expect_right(place, 80);
    go(place, 20, 80);
    expect_done(place, 80);
}

/* --- the stream --------------------------------------------------------------------------- */

static void befall(struct place *place, const char *subject, const char *body)
{
    start(place);
    create(place, 0, 60);
    go(place, 0, 20);
    WAIT_FOR(count_in(place, "done") == 20 && at_rest(place));
    ask(place, subject, body);
    expect_right(place, 60);
    go(place, 20, 60);
    expect_done(place, 60);
    assert_true(METRIC(place, reseeded) > 0);
}

static void a_purged_stream_is_filled_again(void **state)
{
    befall(*state, "$JS.API.STREAM.PURGE.PAWL_main_0", "");
}

static void a_purged_subject_is_filled_again(void **state)
{
    befall(*state, "$JS.API.STREAM.PURGE.PAWL_main_0", "{\"filter\":\"pawl.main.j.0.two.e30\"}");
}

static void a_stream_purged_to_a_sequence_is_filled_again(void **state)
{
    befall(*state, "$JS.API.STREAM.PURGE.PAWL_main_0", "{\"seq\":560}");
}

static void a_deleted_stream_is_made_again(void **state)
{
    befall(*state, "$JS.API.STREAM.DELETE.PAWL_main_0", "");
}

static void a_deleted_consumer_is_made_again(void **state)
{
    struct place *place = *state;
    char subject[128] = "";
    start(place);
    create(place, 0, 20);
    WAIT_FOR(at_rest(place));
    (void)snprintf(subject, sizeof(subject), "$JS.API.CONSUMER.DELETE.PAWL_main_0.pawl_0_%u",
                   fence_of(place));
    ask(place, subject, "");
    go(place, 0, 20);
    expect_done(place, 20);
}

static void a_stream_with_a_limit_is_refused_by_name(void **state)
{
    struct place *place = *state;
    ask(place, "$JS.API.STREAM.CREATE.PAWL_main_0",
        "{\"name\":\"PAWL_main_0\",\"subjects\":[\"pawl.main.j.0.>\"],\"retention\":\"limits\","
        "\"storage\":\"file\",\"max_msgs_per_subject\":1,\"num_replicas\":1,"
        "\"max_age\":60000000000}");
    start(place);
    create(place, 0, 10);
    WAIT_FOR(strstr(health_of(place).error, "max_age") != NULL);
    ask(place, "$JS.API.STREAM.DELETE.PAWL_main_0", "");
    go(place, 0, 10);
    expect_done(place, 10);
}

static void a_foreign_publisher_is_survived(void **state)
{
    struct place *place = *state;
    start(place);
    create(place, 0, 20);
    WAIT_FOR(at_rest(place));
    publish(place, "pawl.main.j.0.two.e3");
    publish(place, "pawl.main.j.0.two.nobody");
    publish(place, "pawl.main.j.0.not.an.entity");
    WAIT_FOR(METRIC(place, void_records) >= 3);
    go(place, 0, 20);
    WAIT_FOR(count_in(place, "done") == 20);
    expect_records(place, 20, 1); /* nobody has a tombstone now; what is no entity's is gone */
}

/* --- the directory ------------------------------------------------------------------------ */

static void a_lost_directory_is_rebuilt(void **state)
{
    struct place *place = *state;
    start(place);
    create(place, 0, 60);
    go(place, 0, 20);
    WAIT_FOR(count_in(place, "done") == 20 && at_rest(place));
    stop(place);
    forget_dir(place->dir);
    start(place);
    WAIT_FOR(count_in(place, "waiting") == 40 && count_in(place, "done") == 20);
    assert_int_equal(METRIC(place, taken), 60);
    go(place, 20, 60);
    WAIT_FOR(count_in(place, "done") == 60);
    expect_right(place, 60);
}

static void yesterdays_directory_takes_over_what_the_stream_has(void **state)
{
    struct place *place = *state;
    start(place);
    create(place, 0, 40);
    WAIT_FOR(at_rest(place));
    stop(place);
    copy_dir(place->dir, place->old);
    start(place);
    go(place, 0, 20);
    create(place, 40, 50);
    WAIT_FOR(count_in(place, "done") == 20 && at_rest(place));
    stop(place);
    copy_dir(place->old, place->dir);
    start(place);
    WAIT_FOR(count_in(place, "done") == 20 && count_in(place, "waiting") == 30);
    go(place, 20, 50);
    WAIT_FOR(count_in(place, "done") == 50);
    expect_right(place, 50);
}

static void what_an_old_directory_did_alone_is_set_aside(void **state)
{
    struct place *place = *state;
    start(place);
    create(place, 0, 10);
    WAIT_FOR(at_rest(place));
    stop(place);
    copy_dir(place->dir, place->old);
    start(place);
    go(place, 0, 5);
    WAIT_FOR(count_in(place, "done") == 5 && at_rest(place));
    const uint32_t fence = fence_of(place);
    struct pw_clock clock;
    pw_clock_init(&clock);
    stop(place);
    WAIT_FOR(clock.wall_ms(&clock) / 1000 >
             fence); /* the old copy's fence is the clock's seconds */
    copy_dir(place->old, place->dir);
    nats_server_stop(&place->server);
    start(place);
    go(place, 0, 2);       /* the stream knows better */
    create(place, 10, 12); /* and these it does not know */
    assert_int_equal(count_in(place, "first"), 2);
    nats_server_restart(&place->server);
    WAIT_FOR(count_in(place, "done") == 5 && count_in(place, "waiting") == 7);
    assert_int_equal(METRIC(place, set_aside), 2);
    expect_right(place, 12);
}

static void a_second_owner_fences_the_first_off(void **state)
{
    struct place *place = *state;
    struct place second = { .server = place->server };
    start(place);
    create(place, 0, 10);
    WAIT_FOR(at_rest(place));
    pw_print(second.dir, sizeof(second.dir), "%s", place->old);
    WAIT_FOR(place->engine->clock->wall_ms(place->engine->clock) / 1000 >
             fence_of(place)); /* fences are seconds, or more */
    start(&second);
    WAIT_FOR(count_in(&second, "waiting") == 10);
    (void)try_create(place, 10); /* its record is refused by the stream */
    WAIT_FOR(atomic_load(&place->engine->shards[0].lost));
    assert_int_equal(try_create(place, 11), PAWL_E_LOCKED);
    go(&second, 0, 10);
    WAIT_FOR(count_in(&second, "done") == 10);
    expect_right(&second, 10);
    stop(&second);
}

static void a_local_directory_joins_a_stream(void **state)
{
    struct place *place = *state;
    char bus[48] = "";
    (void)snprintf(bus, sizeof(bus), "%s", place->server.bus);
    (void)snprintf(place->server.bus, sizeof(place->server.bus), "local:");
    start(place);
    create(place, 0, 30);
    go(place, 0, 10);
    WAIT_FOR(count_in(place, "done") == 10);
    stop(place);
    (void)snprintf(place->server.bus, sizeof(place->server.bus), "%s", bus);
    start(place);
    go(place, 10, 30);
    expect_done(place, 30);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, make_place, leave_place)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(nothing_befalls_it),
        CASE(an_absent_server_is_waited_for),
        CASE(a_server_that_dies_comes_back),
        CASE(a_frozen_server_is_waited_for),
        CASE(a_wiped_server_is_filled_again),
        CASE(a_server_that_went_back_is_caught_up),
        CASE(a_purged_stream_is_filled_again),
        CASE(a_purged_subject_is_filled_again),
        CASE(a_stream_purged_to_a_sequence_is_filled_again),
        CASE(a_deleted_stream_is_made_again),
        CASE(a_deleted_consumer_is_made_again),
        CASE(a_stream_with_a_limit_is_refused_by_name),
        CASE(a_foreign_publisher_is_survived),
        CASE(a_lost_directory_is_rebuilt),
        CASE(yesterdays_directory_takes_over_what_the_stream_has),
        CASE(what_an_old_directory_did_alone_is_set_aside),
        CASE(a_second_owner_fences_the_first_off),
        CASE(a_local_directory_joins_a_stream),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    nats_Close();
    return failed;
}
