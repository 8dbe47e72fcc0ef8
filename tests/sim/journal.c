/* SPDX-License-Identifier: Apache-2.0
 *
 * What befalls the journal, and what the shop makes of it: whatever happens to the stream, all end
 * where they should, nothing is done twice, and at the end the stream holds the newest record of
 * every entity, and nothing else. */
#include <stdlib.h>

#include "everything.h"
#include "sim/journal.h"
#include "sim/store.h"

#define SHARDS_MAX 3
/* The owner compares stream and store every 10 s, and looks twice. */
#define LOOKS_MS 60000

static struct pw_journal *journal_of(pawl_world *w, uint32_t shard)
{
    return pawl_world_engine(w)->shards[shard].journal;
}

/* --- what the stream must be -------------------------------------------------------------- */

struct check {
    pawl_world *w;
    struct pw_shard *shard;
    struct pw_txn *txn;
    struct pw_arena arena;
    uint64_t entities;
    unsigned fences;
    unsigned marks;
    char wrong[256];
};

static void check_record(struct check *check, const struct pw_entry *entry)
{
    struct pw_entity entity;
    uint64_t row = 0;
    const struct pw_tables *tables = &check->shard->tables;
    pw_arena_reset(&check->arena);
    pawl_err err = pw_tables_find(tables, check->txn, entry->machine, entry->id, &row);
    if (err == PAWL_OK)
        err = pw_tables_load_any(tables, check->txn, row, &check->arena, &entity);
    check->entities++;
    if (err != PAWL_OK)
        (void)snprintf(check->wrong, sizeof(check->wrong), "%s is not in the store",
                       entry->subject);
    else if (entry->lsn != entity.version || entry->tombstone != entity.tombstone)
        (void)snprintf(check->wrong, sizeof(check->wrong),
                       "%s: the stream has %llx%s, the store %llx%s", entry->subject,
                       (unsigned long long)entry->lsn, entry->tombstone ? " deleted" : "",
                       (unsigned long long)entity.version, entity.tombstone ? " deleted" : "");
}

static void check_entry(void *arg, const struct pw_entry *entry)
{
    struct check *check = arg;
    check->fences += entry->kind == PW_ENTRY_FENCE ? 1 : 0;
    check->marks += entry->kind == PW_ENTRY_MARK ? 1 : 0;
    if (entry->kind == PW_ENTRY_VOID)
        (void)snprintf(check->wrong, sizeof(check->wrong), "%s is void", entry->subject);
    else if (entry->kind == PW_ENTRY_RECORD)
        check_record(check, entry);
}

static void check_stream(pawl_world *w, uint32_t i)
{
    struct check check = { .w = w, .shard = &pawl_world_engine(w)->shards[i] };
    const struct pw_store_ops *ops = check.shard->tables.store->ops;
    uint64_t entities = 0;
    pw_arena_init(&check.arena, 4096);
    assert_int_equal(ops->begin(check.shard->tables.store, false, &check.txn), PAWL_OK);
    pw_sim_journal_each(journal_of(w, i), check_entry, &check);
    assert_int_equal(ops->count(check.txn, PW_ENTITY, &entities), PAWL_OK);
    ops->abort(check.txn);
    pw_arena_fini(&check.arena);
    if (check.wrong[0] != '\0')
        fail_msg("shard %u: %s", i, check.wrong);
    assert_int_equal(check.entities, entities);
    assert_int_equal(check.fences, 1);
    assert_int_equal(check.marks, 1);
}

static void stream_is_right(pawl_world *w)
{
    for (uint32_t i = 0; i < pawl_world_engine(w)->shards_count; i++)
        check_stream(w, i);
}

/* --- told harm ---------------------------------------------------------------------------- */

static void purge(struct pw_journal *journal)
{
    pw_sim_journal_purge(journal);
}

static void purge_half(struct pw_journal *journal)
{
    pw_sim_journal_purge_to(journal, pw_sim_journal_last_seq(journal) - 5);
}

static void purge_one(struct pw_journal *journal)
{
    pw_sim_journal_purge_subject(journal, "order", "1");
}

static void delete_last(struct pw_journal *journal)
{
    pw_sim_journal_delete(journal, pw_sim_journal_last_seq(journal));
}

static void roll_back(struct pw_journal *journal)
{
    assert_int_equal(pw_sim_journal_restore(journal), PAWL_OK);
}

/* Not empty when it is looked at next. */
static void recreate_and_write(struct pw_journal *journal)
{
    pw_sim_journal_recreate(journal);
    assert_int_equal(pw_sim_journal_foreign_subject(journal, "stray", pawl_str("x")), PAWL_OK);
}

static void write_over_one(struct pw_journal *journal)
{
    assert_int_equal(pw_sim_journal_foreign(journal, "order", "1", pawl_str("x")), PAWL_OK);
}

static void write_of_none(struct pw_journal *journal)
{
    assert_int_equal(pw_sim_journal_foreign(journal, "order", "nobody", pawl_str("x")), PAWL_OK);
}

static void write_fence(struct pw_journal *journal)
{
    assert_int_equal(pw_sim_journal_foreign_subject(journal, "_fence", pawl_str("x")), PAWL_OK);
}

static void write_mark(struct pw_journal *journal)
{
    assert_int_equal(pw_sim_journal_foreign_subject(journal, "_mark", pawl_str("x")), PAWL_OK);
}

static void write_stray(struct pw_journal *journal)
{
    assert_int_equal(pw_sim_journal_foreign_subject(journal, "stray", pawl_str("x")), PAWL_OK);
}

struct harm {
    const char *name;
    void (*befall)(struct pw_journal *journal);
};

static const struct harm harms[] = {
    { "purge", purge },
    { "purge_half", purge_half },
    { "purge_one", purge_one },
    { "delete_last", delete_last },
    { "recreate", pw_sim_journal_recreate },
    { "recreate_and_write", recreate_and_write },
    { "roll_back", roll_back },
    { "write_over_one", write_over_one },
    { "write_of_none", write_of_none },
    { "write_fence", write_fence },
    { "write_mark", write_mark },
    { "write_stray", write_stray },
};
#define HARMS (sizeof(harms) / sizeof(harms[0]))

/* What the engine is doing when it happens. */
enum meanwhile { IT_RUNS, IT_IS_DOWN, IT_DIES };

/* At rest: some shipped, some in packing hands, some in the cart. */
static pawl_world *open_shop(uint64_t seed)
{
    pawl_world *w =
        pawl_world_open_with(everything, 1, seed, PAWL_WORLD_JOURNAL | PAWL_WORLD_QUIET);
    shop = (struct shop){ .runs = 0 };
    (void)create_once(w, "counter", "sold", NULL, "");
    for (unsigned n = 0; n < 8; n++)
        assert_int_equal(create_once(w, "order", order_id(n), "k", "new"), PAWL_OK);
    for (unsigned n = 0; n < 2; n++)
        assert_int_equal(send_once(w, "order", order_id(n), "submit"), PAWL_OK);
    pawl_world_run_for(w, 5000);
    complete_all();
    pawl_world_run_for(w, 3000);
    assert_int_equal(pw_sim_journal_snapshot(journal_of(w, 0)), PAWL_OK);
    for (unsigned n = 2; n < 4; n++)
        assert_int_equal(send_once(w, "order", order_id(n), "submit"), PAWL_OK);
    pawl_world_run_for(w, 5000);
    return w;
}

static void expect_shop(pawl_world *w, unsigned runs)
{
    for (unsigned n = 0; n < 4; n++) {
        expect_state(w, "order", order_id(n), "shipped");
        assert_int_equal(lines_with(w, "counter", order_id(n), "--add-->"), 1);
    }
    assert_int_equal(lines_with(w, "counter", "sold", "--add-->"), 4);
    assert_int_equal(shop.runs, runs); /* nothing was charged again */
    if (shop.wrong != NULL)
        fail_msg("%s", shop.wrong);
}

static void it_befalls(const struct harm *harm, enum meanwhile meanwhile, uint64_t seed)
{
    pawl_world *w = open_shop(seed);
    unsigned runs = shop.runs;
    print_message("%s %d\n", harm->name, (int)meanwhile);
    harm->befall(journal_of(w, 0));
    if (meanwhile == IT_IS_DOWN)
        pawl_world_restart(w);
    else if (meanwhile == IT_DIES)
        pawl_world_crash(w);
    pawl_world_run_for(w, 1000);
    complete_all();
    pawl_world_run_for(w, 32000); /* those in packing whose hands died with the engine */
    complete_all();
    pawl_world_run_for(w, 10000);
    expect_shop(w, runs);
    stream_is_right(w);
    expect_right(w);
    assert_int_equal(METRIC(w, set_aside), 0);
    shop_closes(w);
}

static void each_harm_is_undone(void **state)
{
    (void)state;
    for (size_t i = 0; i < HARMS; i++)
        for (int meanwhile = IT_RUNS; meanwhile <= IT_DIES; meanwhile++)
            for (uint64_t seed = 1; seed <= 5; seed++)
                it_befalls(&harms[i], (enum meanwhile)meanwhile, seed);
}

static void two_harms_are_undone(void **state)
{
    (void)state;
    for (size_t i = 0; i < HARMS; i++)
        for (size_t j = 0; j < HARMS; j++) {
            pawl_world *w = open_shop(1 + i);
            unsigned runs = shop.runs;
            harms[i].befall(journal_of(w, 0));
            pawl_world_run_for(w, 10 + j);
            harms[j].befall(journal_of(w, 0));
            pawl_world_run_for(w, 1000);
            complete_all();
            pawl_world_run_for(w, 45000);
            expect_shop(w, runs);
            stream_is_right(w);
            expect_right(w);
            shop_closes(w);
        }
}

/* Commands are taken while it is away; nothing of them is worked before it is journalled. */
static void work_waits_for_a_journal_that_is_away(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        pawl_world *w = open_shop(seed);
        unsigned runs = shop.runs;
        pw_sim_journal_away(journal_of(w, 0), true);
        assert_int_equal(send_once(w, "order", "4", "submit"), PAWL_OK);
        pawl_world_run_for(w, 20000);
        expect_state(w, "order", "4", "charging");
        assert_int_equal(shop.runs, runs);
        pw_sim_journal_away(journal_of(w, 0), false);
        pawl_world_run_for(w, 10000);
        expect_state(w, "order", "4", "packing");
        complete_all();
        pawl_world_run_for(w, LOOKS_MS);
        expect_state(w, "order", "4", "shipped");
        stream_is_right(w);
        expect_right(w);
        shop_closes(w);
    }
}

/* --- gaps --------------------------------------------------------------------------------- */

#define COUNTERS 10

/* Of appends under way the first are refused and a later one fits, since something else took the
 * first's place: the stream has a record, and lacks one before it. The owner dies before it can
 * append them again. */
static void a_gap_under_a_crash_is_closed(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        pawl_world *w =
            pawl_world_open_with(everything, 1, seed, PAWL_WORLD_JOURNAL | PAWL_WORLD_QUIET);
        char id[8] = "";
        for (int i = 0; i < COUNTERS; i++) {
            (void)snprintf(id, sizeof(id), "c%d", i);
            (void)create_once(w, "counter", id, NULL, "");
        }
        pawl_world_run_for(w, 2000);
        for (int i = 0; i < COUNTERS; i++) {
            (void)snprintf(id, sizeof(id), "c%d", i);
            send_soon(w, "counter", id, "add");
        }
        pawl_world_run_for(w, seed % 3);
        if (seed % 2 != 0)
            write_mark(journal_of(w, 0));
        pawl_world_run_for(w, seed / 3 % 4);
        pawl_world_crash(w);
        pawl_world_run_for(w, LOOKS_MS);
        print_message("seed %llu\n", (unsigned long long)seed);
        stream_is_right(w);
        expect_right(w);
        expect_sent(w);
        pawl_world_close(w);
    }
}

/* --- an old store ------------------------------------------------------------------------- */

static struct pw_store *store_of(pawl_world *w)
{
    return pawl_world_engine(w)->shards[0].tables.store;
}

/* The disk is put back to a backup: what the journal has of it since is taken over. */
static void an_old_store_catches_up(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 50; seed++) {
        pawl_world *w = open_shop(seed);
        assert_int_equal(pw_sim_store_snapshot(store_of(w)), PAWL_OK);
        assert_int_equal(send_once(w, "order", "4", "submit"), PAWL_OK);
        assert_int_equal(create_once(w, "order", "8", "k", "new"), PAWL_OK);
        assert_int_equal(delete_once(w, "order", "5"), PAWL_OK);
        pawl_world_run_for(w, 5000);
        complete_all();
        pawl_world_run_for(w, 3000);
        unsigned runs = shop.runs;
        assert_int_equal(pw_sim_store_restore(store_of(w)), PAWL_OK);
        pawl_world_crash(w);
        pawl_world_run_for(w, 5000);
        expect_state(w, "order", "4", "shipped");
        expect_state(w, "order", "8", "cart");
        expect_state(w, "order", "5", "gone");
        pawl_world_run_for(w, LOOKS_MS);
        assert_int_equal(shop.runs, runs);
        assert_true(METRIC(w, taken) > 0);
        stream_is_right(w);
        expect_right(w);
        expect_sent(w);
        shop_closes(w);
    }
}

/* --- letters ------------------------------------------------------------------------------ */

static bool fails;

/* Data: whom it tells. */
static pawl_outcome try_it(pawl_task *task)
{
    pawl_bytes data = pawl_task_data(task);
    char told[16];
    (void)snprintf(told, sizeof(told), "%.*s", (int)data.size, (const char *)data.data);
    if (data.size > 0)
        pawl_task_tell(task, "task", told, "tried", pawl_str("now"));
    return fails ? pawl_fail("no way") : pawl_raise(0);
}

static const pawl_state task_states[] = {
    { .name = "trying", .flags = PAWL_START, .work = try_it },
    { .name = "done", .flags = PAWL_FINAL },
};
static const char *const task_events[] = { "tried" };
static const pawl_edge task_edges[] = { { .from = 0, .event = 0, .to = 1 } };
static const pawl_machine task_machine = {
    .name = "task",
    PAWL_STATES(task_states),
    PAWL_EVENTS(task_events),
    PAWL_EDGES(task_edges),
};
static const pawl_unit tasks[] = { { &task_machine, NULL, NULL }, { NULL, NULL, NULL } };

static size_t letters(pawl_world *w)
{
    size_t count = 0;
    for (uint32_t i = 0; i < pawl_world_engine(w)->shards_count; i++)
        for (size_t n = 0; pw_sim_journal_letter(journal_of(w, i), n) != NULL; n++)
            count++;
    return count;
}

/* The letter is the record that told it. */
static void expect_record_tells(const struct pw_post *letter, const char *id)
{
    struct pw_machines none = { .count = 0 };
    struct pw_arena arena;
    struct pw_record record;
    pw_arena_init(&arena, 1024);
    assert_int_equal(pw_record_unpack(letter->data, &none, &arena, &record), PAWL_OK);
    assert_int_equal(record.lsn, letter->lsn);
    assert_int_equal(record.entity.effects_count, 1);
    assert_int_equal(record.entity.effects[0].n + 1, letter->n);
    assert_string_equal(record.entity.effects[0].id, id);
    pw_arena_fini(&arena);
}

static void a_parked_task_has_a_letter_until_it_is_settled(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 50; seed++) {
        pawl_world *w = pawl_world_open_with(tasks, 1, seed, PAWL_WORLD_JOURNAL);
        pw_sim_journal_fail(journal_of(w, 0), seed % 2 != 0 ? 6 : 0);
        fails = true;
        (void)create_once(w, "task", "a", NULL, "");
        (void)create_once(w, "task", "b", NULL, "");
        (void)create_once(w, "task", "c", NULL, "");
        pawl_world_run(w);
        assert_int_equal(letters(w), 3);
        assert_string_equal(pw_sim_journal_letter(journal_of(w, 0), 0)->why, "no way");
        fails = false;
        assert_int_equal(redo_once(w, "task", "a"), PAWL_OK);
        assert_int_equal(delete_once(w, "task", "b"), PAWL_OK);
        pawl_world_run(w);
        assert_int_equal(letters(w), 1);
        assert_string_equal(pw_sim_journal_letter(journal_of(w, 0), 0)->id, "c");
        expect_state(w, "task", "a", "done");
        pawl_world_close(w);
    }
}

/* A tell refused for good has one, named by the tell; what was not refused has none. */
static void a_refused_tell_has_a_letter(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 50; seed++) {
        pawl_world *w = pawl_world_open_with(tasks, 1, seed, PAWL_WORLD_JOURNAL);
        pw_sim_journal_fail(journal_of(w, 0), seed % 2 != 0 ? 6 : 0);
        fails = true;
        (void)create_once(w, "task", "there", NULL, "");
        pawl_world_run(w);
        fails = false;
        (void)create_once(w, "task", "a", NULL, "nobody");
        (void)create_once(w, "task", "b", NULL, "there");
        pawl_world_run(w);
        assert_int_equal(letters(w), 1); /* the parked one's is settled: it was told */
        const struct pw_post *letter = pw_sim_journal_letter(journal_of(w, 0), 0);
        assert_string_equal(letter->id, "a");
        assert_int_equal(letter->n, 1);
        assert_non_null(strstr(letter->why, "no such entity"));
        expect_record_tells(letter, "nobody");
        pawl_world_close(w);
    }
}

/* --- drawn harm --------------------------------------------------------------------------- */

static bool heard(pawl_world *w, const char *id)
{
    for (uint32_t i = 0; i < pawl_world_engine(w)->shards_count; i++) {
        const struct pw_post *post = NULL;
        for (size_t n = 0; (post = pw_sim_journal_event(journal_of(w, i), n)) != NULL; n++)
            if (strcmp(post->id, id) == 0 && strcmp(post->name, "receipt") == 0)
                return true;
    }
    return false;
}

static uint64_t befallen;

static void a_day_of_harm(uint64_t seed, uint32_t shards, uint64_t one_in, bool crashes)
{
    pawl_world *w =
        pawl_world_open_with(everything, shards, seed, PAWL_WORLD_JOURNAL | PAWL_WORLD_QUIET);
    for (uint32_t i = 0; i < shards; i++)
        pw_sim_journal_harm(journal_of(w, i), one_in, 20);
    if (crashes)
        pw_world_crash_often(w, 1 + seed % 200, 4);
    shop_day(w);
    for (uint32_t i = 0; i < shards; i++) {
        pw_sim_journal_harm(journal_of(w, i), 0, 0);
        pw_sim_journal_fail(journal_of(w, i), 0);
    }
    pawl_world_crash_at(w, 0);
    pawl_world_run_for(w, LOOKS_MS);
    complete_all();
    pawl_world_run_for(w, LOOKS_MS);
    pawl_world_run(w);
    shop_is_right(w);
    stream_is_right(w);
    for (uint32_t i = 0; i < shards; i++)
        befallen += pw_sim_journal_harms(journal_of(w, i));
    assert_int_equal(letters(w), 0);
    for (unsigned n = 0; n < ORDERS - 1; n++)
        assert_true(heard(w, order_id(n)));
    shop_closes(w);
}

static uint64_t number_of(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text != NULL ? strtoull(text, NULL, 10) : otherwise;
}

static void days_of_harm(uint32_t shards, uint64_t one_in, bool crashes, uint64_t seeds)
{
    uint64_t only = number_of("PAWL_SEED", 0);
    befallen = 0;
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        if (only != 0 && seed != only)
            continue;
        print_message("seed %llu\n", (unsigned long long)seed); /* PAWL_SEED replays it */
        a_day_of_harm(seed, shards, one_in, crashes);
    }
    if (one_in != 0 && only == 0)
        assert_true(befallen >= 10 * seeds); /* or the test tests nothing */
}

static void nothing_befalls_it(void **state)
{
    (void)state;
    days_of_harm(1, 0, false, 50);
}

static void much_befalls_it(void **state)
{
    (void)state;
    days_of_harm(1, 20, false, 150);
}

static void much_befalls_several(void **state)
{
    (void)state;
    days_of_harm(SHARDS_MAX, 20, false, 50);
}

static void much_befalls_it_and_the_engine(void **state)
{
    (void)state;
    days_of_harm(1, 20, true, 150);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_harm_is_undone),
        cmocka_unit_test(two_harms_are_undone),
        cmocka_unit_test(work_waits_for_a_journal_that_is_away),
        cmocka_unit_test(a_gap_under_a_crash_is_closed),
        cmocka_unit_test(an_old_store_catches_up),
        cmocka_unit_test(a_parked_task_has_a_letter_until_it_is_settled),
        cmocka_unit_test(a_refused_tell_has_a_letter),
        cmocka_unit_test(nothing_befalls_it),
        cmocka_unit_test(much_befalls_it),
        cmocka_unit_test(much_befalls_several),
        cmocka_unit_test(much_befalls_it_and_the_engine),
    };
    cmocka_set_test_filter(getenv("PAWL_ONLY"));
    return cmocka_run_group_tests(tests, leaks_begin, leaks_end);
}
