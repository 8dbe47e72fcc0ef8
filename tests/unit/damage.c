/* SPDX-License-Identifier: Apache-2.0
 *
 * A store with one damaged thing in it: the engine starts, works the rest, lets verify look, and
 * stops. Nothing that is stored may reach an assertion. */
#include <string.h>

#include "base/base.h"
#include "base/limits.h"
#include "core/machine.h"
#include "engine/engine.h"
#include "engine/verify.h"
#include "engine/worker.h"
#include "engine/writer.h"
#include "sim/store.h"
#include "support/test.h"

#define OK(err) assert_int_equal((err), PAWL_OK)

static unsigned runs;

static pawl_outcome work(pawl_task *task)
{
    runs++;
    return pawl_task_attempt(task) == 1 ? pawl_retry("once more") : pawl_raise(0);
}

static const pawl_state states[] = {
    { .name = "idle", .flags = PAWL_START, .timeout_ms = 1000 },
    { .name = "work", .work = work },
    { .name = "end", .flags = PAWL_FINAL },
};
static const char *const events[] = { "done" };
static const pawl_edge edges[] = {
    { .from = 0, .event = 0, .to = 1 },
    { .from = 0, .event = PAWL_TIMEOUT, .to = 1 },
    { .from = 1, .event = 0, .to = 2 },
};
#define TABLES PAWL_STATES(states), PAWL_EVENTS(events), PAWL_EDGES(edges)
static const pawl_machine job = { .name = "job", TABLES };
static const pawl_machine twin = { .name = "twin", TABLES };
static const struct pw_machines machines = { .list = { &job, &twin }, .count = 2 };

/* --- a store, and damage ------------------------------------------------------------------ */

struct rig {
    struct pw_clock clock; /* first: found again from it */
    uint64_t now_ms;
    struct pw_store *store;
    struct pw_tables tables;
    struct pw_txn *txn;
    struct pw_arena arena;
    struct pawl *engine;
};

static uint64_t clock_ms(struct pw_clock *clock)
{
    return ((struct rig *)clock)->now_ms;
}

/* Rows 1 and 2 wait, 3 and 4 are ready, 5 and 6 are in a state that is gone. */
static void put_entity(struct rig *rig, uint64_t row)
{
    static const char *const ids[] = { "1", "2", "3", "4", "5", "6" };
    int state = row <= 2 ? 0 : 1;
    struct pw_update update = {
        .change = PW_SAVED,
        .happening = { .kind = PW_CREATED, .from = "", .event = "", .to = states[state].name, .why = "" },
        .after = {
            .machine = &job, .machine_name = "job", .id = ids[row - 1], .state_name = states[state].name, .state = state,
            .key = "", .error = "", .trace = "", .row = row, .epoch = row, .version = row,
            .attempt = (uint32_t)state, .deadline_ms = state == 0 ? 1000 : 0,
        },
    };
    struct pw_save save = { .now_ms = 0 };
    if (row >= 5)
        update.after.state_name = "gone";
    OK(pw_tables_put(&rig->tables, rig->txn, NULL, &update, &save, &rig->arena));
}

static void make_store(struct rig *rig)
{
    struct pw_meta meta = { .lsn = 100, .next_row = 7, .sent_lsn = 100 };
    *rig = (struct rig){ .clock = { clock_ms, clock_ms } };
    OK(pw_sim_store_open(&rig->store));
    rig->tables = (struct pw_tables){ rig->store, &machines };
    pw_arena_init(&rig->arena, 65536);
    OK(rig->store->ops->begin(rig->store, true, &rig->txn));
    for (uint64_t row = 1; row <= 6; row++)
        put_entity(rig, row);
    OK(pw_meta_save(&rig->tables, rig->txn, &meta));
}

/* Writes over the entity of a row what `change` makes of it. */
static void change_entity(struct rig *rig, uint64_t row, void (*change)(struct pw_entity *entity))
{
    struct pw_update update = { .change = PW_SAVED };
    struct pw_key key;
    pawl_bytes bytes = { NULL, 0 };
    OK(pw_tables_load(&rig->tables, rig->txn, row, &rig->arena, &update.after));
    change(&update.after);
    OK(pw_entity_pack(&update, 0, &rig->arena, &bytes));
    pw_key_u64(&key, row);
    OK(rig->store->ops->put(rig->txn, PW_ENTITY, pw_key_bytes(&key), bytes));
}

static void version_ahead(struct pw_entity *e)
{
    e->version = UINT64_MAX;
}

static void epoch_ahead(struct pw_entity *e)
{
    e->epoch = e->version = UINT64_C(1) << 62;
}

static void machine_unknown(struct pw_entity *e)
{
    e->machine_name = "stranger";
}

static void machine_other(struct pw_entity *e)
{
    e->machine_name = "twin";
}

static void state_waits(struct pw_entity *e)
{
    e->state_name = "idle";
}

static void state_works(struct pw_entity *e)
{
    e->state_name = "work";
}

static void state_final(struct pw_entity *e)
{
    e->state_name = "end";
}

static void state_gone(struct pw_entity *e)
{
    e->state_name = "gone";
}

static void attempt_none(struct pw_entity *e)
{
    e->attempt = 0;
}

static void attempt_last(struct pw_entity *e)
{
    e->attempt = UINT32_MAX;
}

static void attempt_base_above(struct pw_entity *e)
{
    e->attempt_base = UINT32_MAX - 1;
}

static void counts_last(struct pw_entity *e)
{
    e->carried = e->rounds = e->crashes = e->happenings = UINT32_MAX;
}

static void times_last(struct pw_entity *e)
{
    e->not_before_ms = e->deadline_ms = e->entered_ms = UINT64_MAX;
}

static void times_over(struct pw_entity *e)
{
    e->not_before_ms = 1;
    e->deadline_ms = 1;
}

static void parked_waiting(struct pw_entity *e)
{
    e->parked = true;
    e->not_before_ms = 5;
}

static void key_of_another(struct pw_entity *e)
{
    e->id = "elsewhere";
}

static void too_many_memos(struct pw_entity *e)
{
    static struct pw_memo memos[100];
    for (size_t i = 0; i < PW_COUNT(memos); i++)
        memos[i] = (struct pw_memo){ "same", { "v", 1 } };
    e->memos = memos;
    e->memos_count = PW_COUNT(memos);
}

static void too_many_effects(struct pw_entity *e)
{
    static struct pw_effect effects[PW_EFFECTS_WAITING_MAX + 100];
    for (size_t i = 0; i < PW_COUNT(effects); i++)
        effects[i] = (struct pw_effect){ .kind = (enum pw_effect_kind)(i % 5),
                                         .n = UINT32_MAX,
                                         .lsn = UINT64_MAX,
                                         .name = "",
                                         .machine = "stranger",
                                         .id = "",
                                         .key = "",
                                         .trace = "" };
    e->effects = effects;
    e->effects_count = PW_COUNT(effects);
}

/* --- a whole life beside it --------------------------------------------------------------- */

static void turn(void *arg)
{
    struct rig *rig = arg;
    (void)pw_writer_turn(&rig->engine->shards[0]);
    (void)pw_relay_turn(&rig->engine->shards[0]);
}

static bool count_fault(void *arg, const char *text)
{
    (void)text;
    ++*(unsigned *)arg;
    return true;
}

static void run(struct rig *rig)
{
    for (int round = 0; round < 40; round++) {
        for (int i = 0; i < 5; i++)
            turn(rig);
        for (size_t m = 0; m < 2; m++)
            while (pw_worker_turn(rig->engine->pools[m])) {
            }
        rig->now_ms += 5000;
    }
}

static bool is_at_end(struct rig *rig, uint64_t row)
{
    struct pw_entity entity;
    pawl_err err = pw_tables_load(&rig->tables, rig->txn, row, &rig->arena, &entity);
    return err == PAWL_OK && strcmp(entity.state_name, "end") == 0;
}

/* Starts, runs, looks, stops. `damaged`: the row of which nothing is asked. */
static void live(struct rig *rig, uint64_t damaged)
{
    struct pw_parts parts = {
        .ns = "test",
        .stores = &rig->store,
        .shards = 1,
        .clock = &rig->clock,
        .drive = { turn, rig },
        .lock = -1,
    };
    const pawl_unit units[] = { { .machine = &job }, { .machine = &twin } };
    unsigned faults = 0;
    uint64_t entities = 0;
    OK(rig->store->ops->commit(rig->txn));
    OK(pw_engine_open(&rig->engine, &parts, NULL));
    OK(pawl_add(rig->engine, &units[0], NULL));
    OK(pawl_add(rig->engine, &units[1], NULL));
    OK(pawl_start(rig->engine, NULL));
    run(rig);
    OK(pw_verify(rig->engine, count_fault, &faults, &entities));
    for (uint64_t row = 1; row <= 6; row++) { /* the people's commands */
        static const char *const ids[] = { "1", "2", "3", "4", "5", "6" };
        pawl_err err = pawl_redo(rig->engine, "job", ids[row - 1], 0, NULL);
        assert_true(err == PAWL_OK || pawl_err_class_of(err) != PAWL_CLASS_TRANSIENT);
    }
    pawl_scope scope = { .machine = "job" };
    OK(pawl_hold(rig->engine, &scope, NULL));
    OK(pawl_release(rig->engine, &scope, NULL));
    run(rig);
    pawl_close(rig->engine);
    OK(rig->store->ops->begin(rig->store, false, &rig->txn));
    for (uint64_t row = 1; row <= 4; row++) {
        if (row != damaged && !is_at_end(rig, row))
            fail_msg("row %u did not get to its end", (unsigned)row);
    }
    struct pw_entity entity;
    for (uint64_t row = 5; row <= 6; row++)
        if (row != damaged) {
            OK(pw_tables_load(&rig->tables, rig->txn, row, &rig->arena, &entity));
            assert_true(entity.parked);
        }
    rig->store->ops->abort(rig->txn);
    pw_arena_fini(&rig->arena);
    pw_sim_store_free(rig->store);
}

static void an_undamaged_one_first(void **state)
{
    (void)state;
    struct rig rig;
    make_store(&rig);
    runs = 0;
    live(&rig, 0);
    assert_int_equal(runs, 8); /* each retried once */
}

static void an_entity_that_cannot_be(void **state)
{
    (void)state;
    static void (*const changes[])(struct pw_entity *) = {
        version_ahead,      epoch_ahead,    machine_unknown,  machine_other, state_waits,
        state_works,        state_final,    state_gone,       attempt_none,  attempt_last,
        attempt_base_above, counts_last,    times_last,       times_over,    parked_waiting,
        key_of_another,     too_many_memos, too_many_effects,
    };
    for (size_t i = 0; i < PW_COUNT(changes); i++)
        for (uint64_t row = 1; row <= 6; row++) {
            struct rig rig;
            make_store(&rig);
            change_entity(&rig, row, changes[i]);
            live(&rig, row);
        }
}

static void put_raw(struct rig *rig, enum pw_table table, pawl_bytes key, pawl_bytes value)
{
    OK(rig->store->ops->put(rig->txn, table, key, value));
}

static void entities_that_cannot_be_read(void **state)
{
    (void)state;
    for (int how = 0; how < 3; how++)
        for (uint64_t row = 1; row <= 6; row++) {
            struct rig rig;
            struct pw_key key;
            make_store(&rig);
            pw_key_u64(&key, row);
            if (how == 0)
                OK(rig.store->ops->del(rig.txn, PW_ENTITY, pw_key_bytes(&key)));
            else
                put_raw(&rig, PW_ENTITY, pw_key_bytes(&key),
                        (pawl_bytes){ "\xff\xff", how == 1 ? 2 : 0 });
            live(&rig, row);
        }
}

/* Rows that no key of ours looks like, in each table but the shard's own record. */
static void rows_that_are_none(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t size;
    } keys[] = {
        { "job\0work\0\0\0\0\0\0\0\0\3x", 18 }, /* between two that are fine */
        { "\0", 1 },
        { "x", 1 },
        { "\0\0\0\0\0\0\0\1", 8 },
        { "job\0work\0", 9 },
        { "job\0work\0rowrowro", 17 },
        { "job\0idle\0\0\0\0\0\0\0\0", 16 },
        { "a\0b\0rowrowro", 12 },
        { "\xff\xff\xff\xff\xff\xff\xff\xff\xff", 9 },
    };
    for (int table = PW_ID; table < PW_TABLES; table++)
        for (size_t i = 0; i < PW_COUNT(keys); i++) {
            struct rig rig;
            make_store(&rig);
            put_raw(&rig, (enum pw_table)table, (pawl_bytes){ keys[i].bytes, keys[i].size },
                    (pawl_bytes){ "junk", 4 });
            live(&rig, table == PW_ENTITY && keys[i].size == 8 ? 1 : 0);
        }
}

static void due_rows_of_nobody(void **state)
{
    (void)state;
    struct rig rig;
    make_store(&rig);
    for (uint64_t row = 0; row < 9; row++) {
        OK(pw_due_put(&rig.tables, rig.txn, 0, row));
        OK(pw_due_put(&rig.tables, rig.txn, 1, row));
        OK(pw_due_put(&rig.tables, rig.txn, UINT64_MAX, row));
    }
    live(&rig, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_undamaged_one_first),       cmocka_unit_test(an_entity_that_cannot_be),
        cmocka_unit_test(entities_that_cannot_be_read), cmocka_unit_test(rows_that_are_none),
        cmocka_unit_test(due_rows_of_nobody),
    };
    return cmocka_run_group_tests(tests, leaks_begin, leaks_end);
}
