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

/* --- drawn harm --------------------------------------------------------------------------- */

/* One that parks, so that there is a letter. */
static size_t letters(pawl_world *w)
{
    size_t count = 0;
    for (uint32_t i = 0; i < pawl_world_engine(w)->shards_count; i++)
        for (size_t n = 0; pw_sim_journal_letter(journal_of(w, i), n) != NULL; n++)
            count++;
    return count;
}

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
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        if (only != 0 && seed != only)
            continue;
        print_message("seed %llu\n", (unsigned long long)seed);
        a_day_of_harm(seed, shards, one_in, crashes);
    }
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
        cmocka_unit_test(nothing_befalls_it),
        cmocka_unit_test(much_befalls_it),
        cmocka_unit_test(much_befalls_several),
        cmocka_unit_test(much_befalls_it_and_the_engine),
    };
    cmocka_set_test_filter(getenv("PAWL_ONLY"));
    return cmocka_run_group_tests(tests, leaks_begin, leaks_end);
}
