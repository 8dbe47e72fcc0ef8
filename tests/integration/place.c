/* SPDX-License-Identifier: Apache-2.0
 *
 * Whatever a helper cannot do fails the test. */
#define _XOPEN_SOURCE 700 /* nftw, mkdtemp */
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>

#include <nats/nats.h>

#include "base/base.h"
#include "integration/place.h"
#include "jetstream/journal.h"

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

static int remove_one(const char *path, const struct stat *info, int type, struct FTW *ftw)
{
    (void)info;
    (void)type;
    (void)ftw;
    return remove(path);
}

void forget_dir(const char *dir)
{
    (void)nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS); /* it need not be there */
}

void copy_dir(const char *from, const char *to)
{
    char command[700] = "";
    forget_dir(to);
    (void)snprintf(command, sizeof(command), "cp -a '%s' '%s'", from, to);
    assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c): a test's own paths */
}

int make_place(void **state)
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

int leave_place(void **state)
{
    struct place *place = *state;
    pawl_close(place->engine);
    nats_server_end(&place->server);
    forget_dir(place->dir);
    forget_dir(place->old);
    pw_free(place);
    return 0;
}

void start(struct place *place)
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
        (place->also != NULL && pawl_add(place->engine, place->also, &why) != PAWL_OK) ||
        pawl_start(place->engine, &why) != PAWL_OK)
        fail_msg("start: %s", why.text);
}

void stop(struct place *place)
{
    pawl_close(place->engine);
    place->engine = NULL;
}

pawl_err try_create(struct place *place, unsigned n)
{
    char id[16] = "";
    (void)snprintf(id, sizeof(id), "e%u", n);
    return pawl_create(place->engine, "two", id, NULL, NULL);
}

void create(struct place *place, unsigned from, unsigned to)
{
    for (unsigned n = from; n < to; n++)
        assert_int_equal(try_create(place, n), PAWL_OK);
}

void create_large(struct place *place, unsigned n, size_t size)
{
    char id[16] = "";
    char *data = pw_alloc(size);
    assert_non_null(data);
    const pawl_new options = { .data = { data, size } };
    (void)snprintf(id, sizeof(id), "e%u", n);
    assert_int_equal(pawl_create(place->engine, "two", id, &options, NULL), PAWL_OK);
    pw_free(data);
}

void go(struct place *place, unsigned from, unsigned to)
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

uint64_t count_in(struct place *place, const char *state)
{
    uint64_t count = 0;
    const pawl_query query = { .machine = "two", .state = state };
    assert_int_equal(pawl_scan(place->engine, &query, count_one, &count, NULL), PAWL_OK);
    return count;
}

bool at_rest(struct place *place)
{
    struct pw_status status;
    assert_int_equal(pw_status(&place->engine->shards[0], &status), PAWL_OK);
    return status.outbox == 0;
}

struct pw_health health_of(struct place *place)
{
    struct pw_health health = { .live = false };
    assert_true(pw_journal_health(&place->engine->shards[0], &health));
    return health;
}

bool is_live(struct place *place)
{
    return health_of(place).live;
}

uint32_t fence_of(struct place *place)
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

void expect_records(struct place *place, uint64_t entities, uint64_t tombstones)
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

void expect_right(struct place *place, uint64_t entities)
{
    expect_records(place, entities, 0);
}

void expect_done(struct place *place, uint64_t entities)
{
    WAIT_FOR(count_in(place, "done") == entities);
    assert_true(atomic_load(&place->runs) >= 2 * entities);
    expect_right(place, entities);
}

/* --- raw requests ------------------------------------------------------------------------- */

void ask(struct place *place, const char *subject, const char *body)
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

void publish(struct place *place, const char *subject)
{
    natsConnection *connection = NULL;
    assert_int_equal(natsConnection_ConnectTo(&connection, place->server.bus), NATS_OK);
    assert_int_equal(natsConnection_PublishString(connection, subject, "foreign"), NATS_OK);
    assert_int_equal(natsConnection_Flush(connection), NATS_OK);
    natsConnection_Destroy(connection);
}
