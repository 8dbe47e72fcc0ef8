/* SPDX-License-Identifier: Apache-2.0
 *
 * src/core/tables on the store in memory: keys, one change in all tables, the due index, history,
 * outbox, meta, holds. */
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/rng.h"
#include "core/machine.h"
#include "core/tables.h"
#include "sim/store.h"
#include "support/test.h"

static pawl_outcome work(pawl_task *task)
{
    (void)task;
    return pawl_raise(0);
}

enum { IDLE, WORK, END };
enum { GO, DONE };

static const pawl_state states[] = {
    { .name = "idle", .flags = PAWL_START, .timeout_ms = 5000 },
    { .name = "work", .work = work },
    { .name = "end", .flags = PAWL_FINAL },
};
static const char *const events[] = { "go", "done" };
static const pawl_edge edges[] = {
    { .from = IDLE, .event = GO, .to = WORK },
    { .from = IDLE, .event = PAWL_TIMEOUT, .to = END },
    { .from = WORK, .event = DONE, .to = END },
    { .from = WORK, .event = GO, .to = WORK },
};
static const pawl_machine job = {
    .name = "job",
    PAWL_STATES(states),
    PAWL_EVENTS(events),
    PAWL_EDGES(edges),
    .retention_ms = 100,
};
static const struct pw_machines machines = { .list = { &job }, .count = 1 };

/* A shard: an open write transaction, the next lsn and row. */
struct shard {
    struct pw_store *store;
    struct pw_tables tables;
    struct pw_txn *txn;
    struct pw_arena arena;
    uint64_t lsn;
    uint64_t next_row;
    uint64_t now_ms;
    bool outbox;
};

static int begin(void **state)
{
    static struct shard shard;
    shard = (struct shard){ .next_row = 1, .now_ms = 1000, .outbox = true };
    if (pw_sim_store_open(&shard.store) != PAWL_OK)
        return -1;
    shard.tables = (struct pw_tables){ shard.store, &machines };
    pw_arena_init(&shard.arena, 65536);
    *state = &shard;
    return shard.store->ops->begin(shard.store, true, &shard.txn) == PAWL_OK ? 0 : -1;
}

static int end(void **state)
{
    struct shard *s = *state;
    s->store->ops->abort(s->txn);
    pw_arena_fini(&s->arena);
    pw_sim_store_free(s->store);
    return 0;
}

#define OK(err) assert_int_equal((err), PAWL_OK)

static uint64_t count(const struct shard *s, enum pw_table table)
{
    uint64_t entries = 0;
    OK(s->store->ops->count(s->txn, table, &entries));
    return entries;
}

static bool has(const struct shard *s, enum pw_table table, const struct pw_key *key)
{
    pawl_bytes value = { NULL, 0 };
    pawl_err err = s->store->ops->get(s->txn, table, pw_key_bytes(key), &value);
    assert_true(err == PAWL_OK || err == PAWL_E_NOT_FOUND);
    return err == PAWL_OK;
}

static bool load(struct shard *s, const char *id, struct pw_entity *entity)
{
    uint64_t row = 0;
    pawl_err err = pw_tables_find(&s->tables, s->txn, "job", id, &row);
    if (err == PAWL_E_NOT_FOUND)
        return false;
    OK(err);
    err = pw_tables_load(&s->tables, s->txn, row, &s->arena, entity);
    if (err == PAWL_E_NOT_FOUND)
        return false; /* a tombstone */
    OK(err);
    assert_int_equal(entity->row, row);
    return true;
}

/* Steps, puts, and looks whether all tables agree. */
static pawl_err change(struct shard *s, const char *id, struct pw_input input)
{
    struct pw_entity entity = { .id = NULL };
    struct pw_update update;
    struct pw_save save = { .now_ms = s->now_ms, .outbox = s->outbox };
    input.machine = &job;
    input.id = id;
    input.key = "";
    input.trace = "";
    input.message_id = "";
    input.why = input.why != NULL ? input.why : "";
    const struct pw_entity *before = load(s, id, &entity) ? &entity : NULL;
    OK(pw_step(before, &input, s->now_ms, s->lsn + 1, &update, NULL));
    if (update.change == PW_UNCHANGED)
        return PAWL_OK;
    s->lsn++;
    if (before == NULL)
        update.after.row = s->next_row++;
    return pw_tables_put(&s->tables, s->txn, before, &update, &save, &s->arena);
}

static pawl_err command(struct shard *s, const char *id, enum pw_input_kind kind)
{
    return change(s, id, (struct pw_input){ .kind = kind });
}

static pawl_err send(struct shard *s, const char *id, int event)
{
    return change(s, id, (struct pw_input){ .kind = PW_IN_SEND, .event = event });
}

static pawl_err outcome(struct shard *s, const char *id, enum pw_outcome_kind kind, int event)
{
    struct pw_entity entity = { .id = NULL };
    assert_true(load(s, id, &entity));
    return change(s, id,
                  (struct pw_input){ .kind = PW_IN_OUTCOME,
                                     .outcome = kind,
                                     .event = event,
                                     .no_jitter = true,
                                     .epoch = entity.epoch,
                                     .attempt = entity.attempt,
                                     .why = "why" });
}

/* --- keys --------------------------------------------------------------------------------- */

static char long_machine[] = "mmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmm";
static char long_state[] = "ssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssss";

static void state_keys_come_apart_again(void **state)
{
    (void)state;
    static const struct {
        const char *machine;
        const char *state;
        uint64_t row;
    } cases[] = {
        { "m", "s", 0 },
        { "m", "s", 1 },
        { "job", "idle", UINT64_MAX },
        { "job", "idle", UINT64_C(0x0100000000000000) },
        { "job", "idle", UINT64_C(0x6161616161616161) },
        { long_machine, long_state, UINT64_MAX },
        { long_machine, "s", 0 },
        { "m", long_state, 0 },
    };
    for (size_t i = 0; i < PW_COUNT(cases); i++) {
        struct pw_key key;
        const char *machine = NULL;
        const char *name = NULL;
        uint64_t row = 77;
        pw_key_state(&key, cases[i].machine, cases[i].state, cases[i].row);
        assert_true(key.size <= PW_LMDB_KEY_MAX);
        assert_true(pw_key_state_parse(pw_key_bytes(&key), &machine, &name, &row));
        assert_string_equal(machine, cases[i].machine);
        assert_string_equal(name, cases[i].state);
        assert_true(row == cases[i].row);
        for (size_t size = 0; size < key.size;
             size++) { /* cut anywhere: never another key, never past the end */
            char *cut = pw_alloc(size > 0 ? size : 1);
            assert_non_null(cut);
            memcpy(cut, key.bytes, size);
            (void)pw_key_state_parse((pawl_bytes){ cut, size }, &machine, &name, &row);
            pw_free(cut);
        }
    }
}

static void malformed_state_keys_are_seen(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t size;
    } cases[] = {
        { "", 0 },
        { "m\0s\0rowrowr", 11 },     /* a row of seven bytes */
        { "m\0s\0rowrowrow", 13 },   /* of nine */
        { "m\0ssssssssssss", 14 },   /* no end of the state */
        { "mmmmmmmmmmmmmmm", 15 },   /* of the machine */
        { "m\0s\0x\0rowrowro", 14 }, /* a third text */
        { "\0\0\0\0\0\0\0\0\0\0", 10 },
    };
    for (size_t i = 0; i < PW_COUNT(cases); i++) {
        const char *machine = NULL;
        const char *name = NULL;
        uint64_t row = 0;
        char *bytes = pw_alloc(cases[i].size > 0 ? cases[i].size : 1);
        assert_non_null(bytes);
        memcpy(bytes, cases[i].bytes, cases[i].size);
        assert_false(
            pw_key_state_parse((pawl_bytes){ bytes, cases[i].size }, &machine, &name, &row));
        assert_null(machine);
        pw_free(bytes);
    }
}

static void keys_are_in_the_order_of_numbers(void **state)
{
    (void)state;
    static const uint64_t numbers[] = {
        0, 1, 127, 128, 255, 256, 65535, UINT32_MAX, (uint64_t)UINT32_MAX + 1, INT64_MAX, UINT64_MAX
    };
    for (size_t i = 0; i + 1 < PW_COUNT(numbers); i++) {
        struct pw_key a;
        struct pw_key b;
        pw_key_u64(&a, numbers[i]);
        pw_key_u64(&b, numbers[i + 1]);
        assert_int_equal(a.size, 8);
        assert_true(pw_bytes_compare(pw_key_bytes(&a), pw_key_bytes(&b)) < 0);
        pw_key_pair(&a, numbers[i], UINT64_MAX);
        pw_key_pair(&b, numbers[i + 1], 0);
        assert_int_equal(a.size, 16);
        assert_true(pw_bytes_compare(pw_key_bytes(&a), pw_key_bytes(&b)) < 0);
    }
}

static void names_that_run_together_make_other_keys(void **state)
{
    (void)state;
    struct pw_key a;
    struct pw_key b;
    char id[PW_ID_MAX + 1];
    pw_key_id(&a, "ab", "c");
    pw_key_id(&b, "a", "bc");
    assert_false(pw_bytes_equal(pw_key_bytes(&a), pw_key_bytes(&b)));
    memset(id, 'i', PW_ID_MAX);
    id[PW_ID_MAX] = '\0';
    pw_key_id(&a, long_machine, id); /* the longest fits */
    assert_int_equal(a.size, PW_NAME_MAX + 1 + PW_ID_MAX + 1);
    assert_true(a.size <= PW_LMDB_KEY_MAX);
}

/* --- a change in all tables --------------------------------------------------------------- */

static void expect_indexed(struct shard *s, const char *id, const char *name, uint64_t due_ms)
{
    struct pw_entity entity = { .id = NULL };
    struct pw_key key;
    assert_true(load(s, id, &entity));
    assert_string_equal(entity.state_name, name);
    pw_key_state(&key, "job", name, entity.row);
    assert_true(has(s, PW_STATE, &key));
    assert_true(pw_entity_due(&entity) == due_ms);
    pw_key_pair(&key, due_ms, entity.row);
    assert_int_equal(has(s, PW_DUE, &key), due_ms != 0);
    pw_key_u64(&key, entity.version);
    assert_int_equal(has(s, PW_OUTBOX, &key), s->outbox);
}

static void a_life_leaves_no_row_behind(void **state)
{
    struct shard *s = *state;
    OK(command(s, "1", PW_IN_CREATE));
    expect_indexed(s, "1", "idle", 6000);
    OK(send(s, "1", GO));
    expect_indexed(s, "1", "work", 0);
    assert_int_equal(count(s, PW_DUE), 0);
    OK(outcome(s, "1", PW_RETRY_LATER, 0));
    expect_indexed(s, "1", "work", 2000);
    OK(command(s, "1", PW_IN_HOLD));
    expect_indexed(s, "1", "work", 0);
    assert_int_equal(count(s, PW_DUE), 0);
    OK(command(s, "1", PW_IN_RELEASE));
    expect_indexed(s, "1", "work", 2000);
    s->now_ms = 2000;
    OK(command(s, "1", PW_IN_DUE));
    expect_indexed(s, "1", "work", 0);
    OK(send(s, "1", GO)); /* the same state, another visit */
    OK(outcome(s, "1", PW_RAISE, DONE));
    expect_indexed(s, "1", "end", 2100);
    assert_int_equal(count(s, PW_ID), 1);
    assert_int_equal(count(s, PW_ENTITY), 1);
    assert_int_equal(count(s, PW_STATE), 1);
    assert_int_equal(count(s, PW_DUE), 1);
    assert_int_equal(count(s, PW_OUTBOX), 8);
    assert_int_equal(count(s, PW_HISTORY), 7); /* what is silent is no line */
    s->now_ms = 2100;
    OK(command(s, "1", PW_IN_DUE)); /* retention */
    for (int table = PW_ID; table < PW_TABLES; table++) {
        bool stays = table == PW_ID || table == PW_ENTITY || table == PW_DUE; /* the tombstone */
        assert_int_equal(count(s, (enum pw_table)table), table == PW_OUTBOX ? 9 : stays ? 1 : 0);
    }
    OK(command(s, "1", PW_IN_CREATE)); /* a new row */
    struct pw_entity entity = { .id = NULL };
    assert_true(load(s, "1", &entity));
    assert_int_equal(entity.row, 2);
}

struct rows {
    uint64_t lsns[16];
    bool tasks[16];
    bool tombstones[16];
    size_t count;
    struct pw_arena *arena;
};

static bool collect_record(void *arg, pawl_bytes key, pawl_bytes value)
{
    struct rows *rows = arg;
    struct pw_record record;
    OK(pw_record_unpack(value, &machines, rows->arena, &record));
    assert_int_equal(pw_get_u64(key.data), record.lsn);
    assert_int_equal(record.entity.version, record.lsn);
    rows->lsns[rows->count] = record.lsn;
    rows->tasks[rows->count] = record.task;
    rows->tombstones[rows->count++] = record.tombstone;
    return true;
}

static void records_say_whether_they_are_tasks_or_tombstones(void **state)
{
    struct shard *s = *state;
    struct rows rows = { .count = 0, .arena = &s->arena };
    OK(command(s, "1", PW_IN_CREATE));
    OK(send(s, "1", GO));
    OK(outcome(s, "1", PW_RETRY_LATER, 0));
    OK(command(s, "1", PW_IN_REDO));
    OK(command(s, "1", PW_IN_DELETE));
    OK(s->store->ops->scan(s->txn, PW_OUTBOX, (pawl_bytes){ "", 0 }, collect_record, &rows));
    assert_int_equal(rows.count, 5);
    static const bool tasks[] = { false, true, false, true, false };
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(rows.lsns[i], i + 1);
        assert_int_equal(rows.tasks[i], tasks[i]);
        assert_int_equal(rows.tombstones[i], i == 4);
    }
}

static void without_a_journal_only_effects_make_outbox_rows(void **state)
{
    struct shard *s = *state;
    static const struct pw_effect effect = {
        .kind = PW_EMIT, .name = "x", .machine = "", .id = "", .key = "", .trace = ""
    };
    struct pw_entity entity = { .id = NULL };
    s->outbox = false;
    OK(command(s, "1", PW_IN_CREATE));
    OK(send(s, "1", GO));
    assert_int_equal(count(s, PW_OUTBOX), 0);
    assert_true(load(s, "1", &entity));
    OK(change(s, "1",
              (struct pw_input){ .kind = PW_IN_OUTCOME,
                                 .outcome = PW_RAISE,
                                 .event = DONE,
                                 .epoch = entity.epoch,
                                 .attempt = 1,
                                 .effects = &effect,
                                 .effects_count = 1 }));
    assert_int_equal(count(s, PW_OUTBOX), 1);
}

static void what_is_too_large_puts_nothing(void **state)
{
    struct shard *s = *state;
    static char large[PW_RECORD_MAX];
    OK(command(s, "1", PW_IN_CREATE));
    uint64_t before[PW_TABLES];
    for (int table = 0; table < PW_TABLES; table++)
        before[table] = count(s, (enum pw_table)table);
    struct pw_input input = {
        .kind = PW_IN_SEND, .event = GO, .has_data = true, .data = { large, sizeof(large) }
    };
    assert_int_equal(change(s, "1", input), PAWL_E_LIMIT);
    for (int table = 0; table < PW_TABLES; table++)
        assert_int_equal(count(s, (enum pw_table)table), before[table]);
    s->lsn--;
    expect_indexed(s, "1", "idle", 6000);
}

/* Filled to the last byte that a command may, an entity still goes through everything that must not
 * be refused. */
static void a_full_entity_takes_every_change_of_time(void **state)
{
    struct shard *s = *state;
    static char large[PW_RECORD_MAX];
    size_t low = PW_RECORD_MAX / 2;
    size_t high = PW_RECORD_MAX;
    OK(command(s, "1", PW_IN_CREATE));
    OK(send(s, "1", GO));
    while (low + 1 < high) { /* the most that is taken */
        size_t middle = (low + high) / 2;
        struct pw_input input = {
            .kind = PW_IN_SEND, .event = GO, .has_data = true, .data = { large, middle }
        };
        pawl_err err = change(s, "1", input);
        assert_true(err == PAWL_OK || err == PAWL_E_LIMIT);
        *(err == PAWL_OK ? &low : &high) = middle;
    }
    OK(change(s, "1",
              (struct pw_input){
                  .kind = PW_IN_SEND, .event = GO, .has_data = true, .data = { large, low } }));
    char why[PW_ERROR_MAX + 1];
    memset(why, 'w', PW_ERROR_MAX);
    why[PW_ERROR_MAX] = '\0';
    for (uint32_t attempt = 1; attempt <= PW_ATTEMPTS_DEFAULT; attempt++) {
        struct pw_entity entity = { .id = NULL };
        assert_true(load(s, "1", &entity));
        OK(change(
            s, "1",
            (struct pw_input){ .kind = PW_IN_BEGIN, .epoch = entity.epoch, .attempt = attempt }));
        OK(change(s, "1",
                  (struct pw_input){ .kind = PW_IN_OUTCOME,
                                     .outcome = PW_RETRY_AFTER,
                                     .why = why,
                                     .delay_ms = UINT64_MAX,
                                     .epoch = entity.epoch,
                                     .attempt = attempt }));
        OK(command(s, "1", PW_IN_HOLD));
        OK(command(s, "1", PW_IN_RELEASE));
        s->now_ms = PW_DURATION_MS_MAX;
        OK(command(s, "1", PW_IN_DUE));
    }
    struct pw_entity entity = { .id = NULL };
    assert_true(load(s, "1", &entity));
    assert_true(entity.parked);
    OK(command(s, "1", PW_IN_REDO));
    OK(send(s, "1", GO)); /* brings nothing: an event that is no more than that is taken, too */
}

/* --- history ------------------------------------------------------------------------------ */

struct lines {
    uint64_t versions[256];
    size_t count;
};

static bool collect_line(void *arg, pawl_bytes key, pawl_bytes value)
{
    struct lines *lines = arg;
    (void)value;
    assert_int_equal(key.size, 16);
    lines->versions[lines->count++] = pw_get_u64((const uint8_t *)key.data + 8);
    return lines->count < PW_COUNT(lines->versions);
}

static struct lines history(struct shard *s)
{
    struct lines lines = { .count = 0 };
    OK(s->store->ops->scan(s->txn, PW_HISTORY, (pawl_bytes){ "", 0 }, collect_line, &lines));
    return lines;
}

static void note(struct shard *s, const char *id)
{
    struct pw_entity entity = { .id = NULL };
    struct pw_happening happening = {
        .kind = PW_NOTED, .from = "work", .event = "", .to = "", .why = "told nobody"
    };
    assert_true(load(s, id, &entity));
    uint64_t version = entity.version;
    OK(pw_tables_note(&s->tables, s->txn, &entity, ++s->lsn, &happening, &s->arena));
    assert_true(load(s, id, &entity));
    assert_int_equal(entity.version, version); /* not a change of the entity */
}

static void history_keeps_the_64_newest_lines(void **state)
{
    struct shard *s = *state;
    OK(command(s, "1", PW_IN_CREATE));
    OK(send(s, "1", GO));
    for (size_t i = 2; i < 200; i++) {
        struct lines lines = history(s);
        assert_int_equal(lines.count, i < PW_HISTORY_MAX ? i : PW_HISTORY_MAX);
        assert_int_equal(lines.versions[lines.count - 1], s->lsn);
        assert_int_equal(lines.versions[0], s->lsn - lines.count + 1);
        OK(send(s, "1", GO));
    }
    OK(command(s, "1", PW_IN_DELETE));
    assert_int_equal(history(s).count, 0);
}

/* In any order of changes and notes: bounded, the newest, and gone with the entity. */
static void notes_are_lines_like_others(void **state)
{
    struct shard *s = *state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct pw_rng rng = { seed };
        uint64_t notes_percent = pw_rng_below(&rng, 101);
        OK(command(s, "1", PW_IN_CREATE));
        OK(send(s, "1", GO));
        for (size_t i = 2; i < 200; i++) {
            struct pw_entity entity = { .id = NULL };
            struct lines lines = history(s);
            size_t expected = i < PW_HISTORY_MAX ? i : PW_HISTORY_MAX;
            assert_int_equal(lines.count, expected);
            assert_int_equal(lines.versions[0], s->lsn - lines.count + 1);
            assert_true(load(s, "1", &entity));
            assert_int_equal(entity.happenings, expected);
            if (pw_rng_below(&rng, 100) < notes_percent)
                note(s, "1");
            else
                OK(send(s, "1", GO));
        }
        OK(command(s, "1", PW_IN_DELETE));
        assert_int_equal(history(s).count, 0);
    }
}

static void the_history_of_another_is_left_alone(void **state)
{
    struct shard *s = *state;
    OK(command(s, "1", PW_IN_CREATE));
    OK(command(s, "2", PW_IN_CREATE));
    OK(command(s, "3", PW_IN_CREATE));
    OK(send(s, "2", GO));
    for (size_t i = 0; i < 100; i++)
        OK(send(s, "2", GO));
    assert_int_equal(history(s).count, PW_HISTORY_MAX + 2);
    OK(command(s, "2", PW_IN_DELETE));
    assert_int_equal(history(s).count, 2);
}

/* --- due, outbox -------------------------------------------------------------------------- */

static void due_rows_come_in_order_of_time(void **state)
{
    struct shard *s = *state;
    struct pw_due due[16];
    size_t got = 99;
    uint64_t next_ms = 0;
    OK(pw_due_read(&s->tables, s->txn, UINT64_MAX, due, 16, &got, &next_ms));
    assert_int_equal(got, 0);
    assert_true(next_ms == PW_NEVER);
    static const struct pw_due put[] = { { 256, 1 },   { 255, 9 }, { 255, 2 },
                                         { 65536, 3 }, { 1, 7 },   { 300, 4 } };
    for (size_t i = 0; i < PW_COUNT(put); i++)
        OK(pw_due_put(&s->tables, s->txn, put[i].due_ms, put[i].row));
    OK(pw_due_read(&s->tables, s->txn, 299, due, 16, &got, &next_ms));
    static const struct pw_due expected[] = { { 1, 7 }, { 255, 2 }, { 255, 9 }, { 256, 1 } };
    assert_int_equal(got, 4);
    for (size_t i = 0; i < got; i++)
        assert_true(due[i].due_ms == expected[i].due_ms && due[i].row == expected[i].row);
    assert_int_equal(next_ms, 300);
    OK(pw_due_read(&s->tables, s->txn, 300, due, 16, &got, &next_ms));
    assert_int_equal(got, 5); /* at its very millisecond */
    assert_int_equal(next_ms, 65536);
    OK(pw_due_read(&s->tables, s->txn, UINT64_MAX, due, 2, &got, &next_ms));
    assert_int_equal(got, 2);
    assert_int_equal(next_ms, 255); /* more are due already */
    OK(pw_due_del(&s->tables, s->txn, 1, 7));
    OK(pw_due_del(&s->tables, s->txn, 1, 7)); /* is gone already */
    OK(pw_due_read(&s->tables, s->txn, 1, due, 16, &got, &next_ms));
    assert_int_equal(got, 0);
    assert_int_equal(next_ms, 255);
}

#define ROWS (2 * PW_BATCH_MAX + 1000u)

static void the_outbox_is_trimmed_in_bounded_lots(void **state)
{
    struct shard *s = *state;
    static const struct {
        uint64_t upto;
        size_t most;
        bool left;
        uint64_t stay;
    } cases[] = {
        { 5, 10, false, ROWS }, /* below the first */
        { 12, 10, false, ROWS - 3 },
        { 30, 5, true, ROWS - 8 },
        { 30, 13, false, ROWS - 21 }, /* exactly what is up to 30 */
        { 30, 0, false, ROWS - 21 },
        { 31, 0, true, ROWS - 21 },
        { UINT64_MAX, SIZE_MAX, true, ROWS - 21 - PW_BATCH_MAX },
        { UINT64_MAX, SIZE_MAX, true, ROWS - 21 - 2 * PW_BATCH_MAX },
        { UINT64_MAX, SIZE_MAX, false, 0 },
        { UINT64_MAX, SIZE_MAX, false, 0 },
    };
    for (uint64_t lsn = 10; lsn < 10 + ROWS; lsn++) {
        struct pw_key key;
        pw_key_u64(&key, lsn);
        OK(s->store->ops->put(s->txn, PW_OUTBOX, pw_key_bytes(&key), (pawl_bytes){ "r", 1 }));
    }
    for (size_t i = 0; i < PW_COUNT(cases); i++) {
        bool left = !cases[i].left;
        OK(pw_outbox_trim(&s->tables, s->txn, cases[i].upto, cases[i].most, &left));
        assert_int_equal(left, cases[i].left);
        assert_int_equal(count(s, PW_OUTBOX), cases[i].stay);
    }
}

/* --- meta --------------------------------------------------------------------------------- */

static void put_meta(struct shard *s, const char *key, size_t key_size, pawl_bytes value)
{
    OK(s->store->ops->put(s->txn, PW_META, (pawl_bytes){ key, key_size }, value));
}

static void meta_comes_back(void **state)
{
    struct shard *s = *state;
    struct pw_meta back = { .lsn = 77 };
    assert_int_equal(pw_meta_load(&s->tables, s->txn, &back), PAWL_E_NOT_FOUND);
    assert_int_equal(back.lsn, 77);
    for (int clean = 0; clean < 2; clean++) {
        struct pw_meta meta = { UINT64_MAX, 2, UINT64_MAX - 3, 4,         5, clean != 0,
                                6,          7, UINT64_MAX - 8, clean == 0 };
        OK(pw_meta_save(&s->tables, s->txn, &meta));
        OK(pw_meta_load(&s->tables, s->txn, &back));
        assert_true(back.lsn == UINT64_MAX && back.next_row == 2 &&
                    back.sent_lsn == UINT64_MAX - 3);
        assert_true(back.time_ms == 4 && back.wall_ms == 5 && back.clean == (clean != 0));
        assert_true(back.journal_created == 6 && back.journal_seq == 7 &&
                    back.journal_lsn == UINT64_MAX - 8 && back.reconciling == (clean == 0));
    }
    assert_int_equal(count(s, PW_META), 1);
    for (size_t size = 0; size < 100; size++)
        if (size != 48 && size != 80) { /* 48: of before there was a journal */
            char bytes[100] = "";
            put_meta(s, "shard", 6, (pawl_bytes){ bytes, size });
            assert_int_equal(pw_meta_load(&s->tables, s->txn, &back), PAWL_E_CORRUPT);
        }
}

static void a_store_belongs_to_one_shard_of_one_namespace(void **state)
{
    struct shard *s = *state;
    pawl_why why = { "" };
    assert_int_equal(pw_meta_claim(&s->tables, s->txn, "shop", 0, 2, false, &why),
                     PAWL_E_NOT_FOUND);
    assert_int_equal(count(s, PW_META), 0);
    OK(pw_meta_claim(&s->tables, s->txn, "shop", 0, 2, true, &why));
    OK(pw_meta_claim(&s->tables, s->txn, "shop", 0, 2, true, &why));
    OK(pw_meta_claim(&s->tables, s->txn, "shop", 0, 2, false, &why));
    static const struct {
        const char *ns;
        uint32_t shard;
        uint32_t shards;
    } others[] = {
        { "shop2", 0, 2 }, { "sho", 0, 2 }, { "shop", 1, 2 }, { "shop", 0, 3 }, { "Shop", 0, 2 }
    };
    for (size_t i = 0; i < PW_COUNT(others); i++)
        for (int write = 0; write < 2; write++)
            assert_int_equal(pw_meta_claim(&s->tables, s->txn, others[i].ns, others[i].shard,
                                           others[i].shards, write != 0, &why),
                             PAWL_E_SCHEMA);
    assert_string_equal(
        why.text,
        "the store is namespace shop, shard 0 of 2; asked for is namespace Shop, shard 0 of 2");
    OK(pw_meta_claim(&s->tables, s->txn, "shop", 0, 2, false, &why)); /* it is what it was */
}

static void what_was_told_is_kept_by_shard(void **state)
{
    struct shard *s = *state;
    uint64_t lsn = 9;
    uint32_t n = 9;
    OK(pw_told_load(&s->tables, s->txn, 3, &lsn, &n));
    assert_true(lsn == 0 && n == 0);
    for (uint32_t shard = 0; shard < PW_SHARDS_MAX; shard++)
        OK(pw_told_save(&s->tables, s->txn, shard, UINT64_MAX - shard, UINT32_MAX - shard));
    for (uint32_t shard = 0; shard < PW_SHARDS_MAX; shard++) {
        OK(pw_told_load(&s->tables, s->txn, shard, &lsn, &n));
        assert_true(lsn == UINT64_MAX - shard && n == UINT32_MAX - shard);
    }
    put_meta(s, "told\0\0\0\0\0\0\0\0\0", 13, (pawl_bytes){ "short", 5 });
    assert_int_equal(pw_told_load(&s->tables, s->txn, 0, &lsn, &n), PAWL_E_CORRUPT);
}

static void rows_that_are_damaged_are_said_to_be(void **state)
{
    struct shard *s = *state;
    struct pw_entity entity = { .id = NULL };
    struct pw_key key;
    uint64_t row = 0;
    OK(command(s, "1", PW_IN_CREATE));
    pw_key_id(&key, "job", "1");
    OK(s->store->ops->put(s->txn, PW_ID, pw_key_bytes(&key), (pawl_bytes){ "short", 5 }));
    assert_int_equal(pw_tables_find(&s->tables, s->txn, "job", "1", &row), PAWL_E_CORRUPT);
    assert_int_equal(pw_tables_find(&s->tables, s->txn, "job", "2", &row), PAWL_E_NOT_FOUND);
    assert_int_equal(pw_tables_load(&s->tables, s->txn, 2, &s->arena, &entity), PAWL_E_NOT_FOUND);
    pw_key_u64(&key, 1);
    OK(s->store->ops->put(s->txn, PW_ENTITY, pw_key_bytes(&key), (pawl_bytes){ "\xff\xff", 2 }));
    assert_int_equal(pw_tables_load(&s->tables, s->txn, 1, &s->arena, &entity), PAWL_E_CORRUPT);
}

/* --- holds -------------------------------------------------------------------------------- */

struct seen {
    char text[1024];
    size_t most;
    size_t count;
};

static bool on_hold(void *arg, enum pw_hold_kind kind, const char *machine, const char *name,
                    enum pw_hold_phase phase)
{
    struct seen *seen = arg;
    size_t used = strlen(seen->text);
    pw_print(seen->text + used, sizeof(seen->text) - used, "%c %s '%s' %d\n", (int)kind, machine,
             name, (int)phase);
    return ++seen->count != seen->most;
}

static void holds_are_put_scanned_deleted(void **state)
{
    struct shard *s = *state;
    struct seen seen = { .text = "" };
    struct pw_meta meta = { .lsn = 1 };
    OK(pw_hold_scan(&s->tables, s->txn, on_hold, &seen));
    assert_int_equal(seen.count, 0);
    OK(pw_meta_save(&s->tables, s->txn, &meta)); /* neighbours before and after */
    OK(pw_meta_claim(&s->tables, s->txn, "shop", 0, 1, true, NULL));
    OK(pw_told_save(&s->tables, s->txn, 0, 1, 1));
    put_meta(s, "holc", 5, (pawl_bytes){ "x", 1 });
    put_meta(s, "hole", 5, (pawl_bytes){ "x", 1 });
    OK(pw_hold_scan(&s->tables, s->txn, on_hold, &seen));
    assert_int_equal(seen.count, 0);
    OK(pw_hold_put(&s->tables, s->txn, PW_HOLD_STATE, "job", "work", PW_HOLDING));
    OK(pw_hold_put(&s->tables, s->txn, PW_HOLD_KEY, "job", "work", PW_HOLDING));
    OK(pw_hold_put(&s->tables, s->txn, PW_HOLD_KEY, "job", "", PW_HOLDING));
    OK(pw_hold_put(&s->tables, s->txn, PW_HOLD_MACHINE, "job", "", PW_HOLDING));
    OK(pw_hold_put(&s->tables, s->txn, PW_HOLD_KEY, "job", "work", PW_RELEASING));
    OK(pw_hold_scan(&s->tables, s->txn, on_hold, &seen));
    assert_string_equal(seen.text, "k job '' 1\nk job 'work' 2\nm job '' 1\ns job 'work' 1\n");
    seen = (struct seen){ .most = 2 };
    OK(pw_hold_scan(&s->tables, s->txn, on_hold, &seen));
    assert_int_equal(seen.count, 2); /* it had enough */
    OK(pw_hold_del(&s->tables, s->txn, PW_HOLD_KEY, "job", "work"));
    OK(pw_hold_del(&s->tables, s->txn, PW_HOLD_KEY, "job", "work"));
    OK(pw_hold_del(&s->tables, s->txn, PW_HOLD_MACHINE, "job",
                   "work")); /* there is none of that kind */
    seen = (struct seen){ .text = "" };
    OK(pw_hold_scan(&s->tables, s->txn, on_hold, &seen));
    assert_string_equal(seen.text, "k job '' 1\nm job '' 1\ns job 'work' 1\n");
}

static void the_longest_hold_fits_a_key(void **state)
{
    struct shard *s = *state;
    char name[PW_KEY_MAX + 1];
    struct seen seen = { .text = "" };
    char expected[256] = "";
    memset(name, 'k', PW_KEY_MAX);
    name[PW_KEY_MAX] = '\0';
    OK(pw_hold_put(&s->tables, s->txn, PW_HOLD_KEY, long_machine, name, PW_HOLDING));
    OK(pw_hold_scan(&s->tables, s->txn, on_hold, &seen));
    pw_print(expected, sizeof(expected), "k %s '%s' 1\n", long_machine, name);
    assert_string_equal(seen.text, expected);
}

static void damaged_holds_are_passed_over(void **state)
{
    struct shard *s = *state;
    struct seen seen = { .text = "" };
    put_meta(s, "hold\0", 5, (pawl_bytes){ "\1", 1 });
    put_meta(s, "hold\0k", 6, (pawl_bytes){ "\1", 1 });
    put_meta(s, "hold\0kj", 7, (pawl_bytes){ "\1", 1 });
    put_meta(s, "hold\0xjob\0a\0", 12, (pawl_bytes){ "\1", 1 });   /* no such kind */
    put_meta(s, "hold\0kjob", 9, (pawl_bytes){ "\1", 1 });         /* no end */
    put_meta(s, "hold\0kjob\0", 10, (pawl_bytes){ "\1", 1 });      /* no name */
    put_meta(s, "hold\0kjob\0a\0", 12, (pawl_bytes){ "\1\1", 2 }); /* a phase of two bytes */
    OK(pw_hold_put(&s->tables, s->txn, PW_HOLD_KEY, "job", "work", PW_HOLDING));
    OK(pw_hold_scan(&s->tables, s->txn, on_hold, &seen));
    assert_string_equal(seen.text, "k job 'work' 1\n");
}

/* --- failures ----------------------------------------------------------------------------- */

struct countdown {
    uint64_t left;
};

static bool tick(void *arg)
{
    struct countdown *countdown = arg;
    return --countdown->left != 0;
}

/* Each operation of a change fails once: the error comes back, and nothing asserts. */
static void each_failing_operation_is_told(void **state)
{
    struct shard *s = *state;
    OK(command(s, "1", PW_IN_CREATE));
    OK(send(s, "1", GO));
    OK(outcome(s, "1", PW_RETRY_LATER, 0));
    OK(s->store->ops->commit(s->txn));
    for (int kind = 0; kind < 3; kind++) {
        bool through = false;
        for (uint64_t at = 1; !through; at++) {
            struct pw_entity entity = { .id = NULL };
            struct pw_update update;
            struct pw_save save = { .now_ms = 5, .outbox = true };
            struct pw_input input = { .kind = kind == 0   ? PW_IN_SEND
                                              : kind == 1 ? PW_IN_DELETE
                                                          : PW_IN_CREATE,
                                      .event = GO,
                                      .machine = &job,
                                      .id = "2",
                                      .key = "",
                                      .trace = "",
                                      .message_id = "" };
            struct countdown countdown = { at };
            OK(s->store->ops->begin(s->store, true, &s->txn));
            assert_true(load(s, "1", &entity));
            OK(pw_step(kind == 2 ? NULL : &entity, &input, 5, 100, &update, NULL));
            update.after.row = kind == 2 ? 50 : update.after.row;
            pw_sim_store_on_operation(s->store, tick, &countdown);
            pawl_err err = pw_tables_put(&s->tables, s->txn, kind == 2 ? NULL : &entity, &update,
                                         &save, &s->arena);
            through = countdown.left != 0 && err == PAWL_OK;
            assert_int_equal(err, through ? PAWL_OK : PAWL_E_IO);
            pw_sim_store_on_operation(s->store, NULL, NULL);
            pw_sim_store_revive(s->store);
            s->store->ops->abort(s->txn);
            assert_true(at < 100);
        }
    }
    OK(s->store->ops->begin(s->store, true, &s->txn));
    expect_indexed(s, "1", "work", 2000); /* as it was */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
        TEST(state_keys_come_apart_again),
        TEST(malformed_state_keys_are_seen),
        TEST(keys_are_in_the_order_of_numbers),
        TEST(names_that_run_together_make_other_keys),
        TEST(a_life_leaves_no_row_behind),
        TEST(records_say_whether_they_are_tasks_or_tombstones),
        TEST(without_a_journal_only_effects_make_outbox_rows),
        TEST(what_is_too_large_puts_nothing),
        TEST(a_full_entity_takes_every_change_of_time),
        TEST(history_keeps_the_64_newest_lines),
        TEST(notes_are_lines_like_others),
        TEST(the_history_of_another_is_left_alone),
        TEST(due_rows_come_in_order_of_time),
        TEST(the_outbox_is_trimmed_in_bounded_lots),
        TEST(meta_comes_back),
        TEST(a_store_belongs_to_one_shard_of_one_namespace),
        TEST(what_was_told_is_kept_by_shard),
        TEST(rows_that_are_damaged_are_said_to_be),
        TEST(holds_are_put_scanned_deleted),
        TEST(the_longest_hold_fits_a_key),
        TEST(damaged_holds_are_passed_over),
        TEST(each_failing_operation_is_told),
    };
    return cmocka_run_group_tests(tests, leaks_begin, leaks_end);
}
