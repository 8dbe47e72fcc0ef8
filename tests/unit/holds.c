/* SPDX-License-Identifier: Apache-2.0
 *
 * src/engine/holds: what a held machine, state or key covers; and that a hold which was not
 * committed holds nothing. */
#include <string.h>

#include "base/base.h"
#include "base/limits.h"
#include "engine/engine.h"
#include "engine/holds.h"
#include "engine/writer.h"
#include "sim/store.h"
#include "support/test.h"

#define OK(err) assert_int_equal((err), PAWL_OK)

static int begin(void **state)
{
    static struct pw_holds holds;
    pw_holds_init(&holds);
    *state = &holds;
    return 0;
}

static int end(void **state)
{
    pw_holds_fini(*state);
    return 0;
}

static bool covers(struct pw_holds *holds, uint32_t shard, const char *machine, const char *name,
                   const char *key)
{
    const struct pw_entity entity = {
        .machine_name = machine, .state_name = name, .key = key, .id = "1"
    };
    return pw_holds_cover(holds, shard, &entity);
}

static bool add(struct pw_holds *holds, uint32_t shard, enum pw_hold_kind kind, const char *machine,
                const char *name)
{
    bool added = false;
    OK(pw_holds_add(holds, shard, kind, machine, name, &added));
    return added;
}

static void each_kind_covers_its_own(void **state)
{
    struct pw_holds *holds = *state;
    static const struct {
        enum pw_hold_kind kind;
        const char *name;
        const char *covered[8]; /* state and key; pairs that the hold covers */
        const char *free[8];
    } cases[] = {
        { PW_HOLD_MACHINE, "", { "work", "x", "idle", "", "", "" }, { NULL } },
        { PW_HOLD_STATE,
          "work",
          { "work", "x", "work", "" },
          { "idle", "work", "wor", "x", "works", "x" } },
        { PW_HOLD_KEY,
          "work",
          { "idle", "work", "work", "work" },
          { "work", "x", "work", "", "work", "works" } },
        { PW_HOLD_KEY, "", { "idle", "", "work", "" }, { "", "x" } }, /* those without a key */
    };
    for (size_t i = 0; i < PW_COUNT(cases); i++) {
        assert_true(add(holds, 3, cases[i].kind, "job", cases[i].name));
        for (size_t c = 0; c < 8 && cases[i].covered[c] != NULL; c += 2) {
            assert_true(covers(holds, 3, "job", cases[i].covered[c], cases[i].covered[c + 1]));
            assert_false(covers(holds, 2, "job", cases[i].covered[c], cases[i].covered[c + 1]));
            assert_false(covers(holds, 3, "jobs", cases[i].covered[c], cases[i].covered[c + 1]));
        }
        for (size_t c = 0; c < 8 && cases[i].free[c] != NULL; c += 2)
            assert_false(covers(holds, 3, "job", cases[i].free[c], cases[i].free[c + 1]));
        pw_holds_remove(holds, 3, cases[i].kind, "job", cases[i].name);
        assert_false(covers(holds, 3, "job", "work", "work"));
    }
}

static void a_scope_is_held_by_shard(void **state)
{
    struct pw_holds *holds = *state;
    for (uint32_t shard = 0; shard < PW_SHARDS_MAX; shard++) {
        assert_true(add(holds, shard, PW_HOLD_KEY, "job", "x"));
        assert_false(add(holds, shard, PW_HOLD_KEY, "job", "x")); /* is there already */
    }
    assert_int_equal(holds->count, 1);
    for (uint32_t shard = 0; shard < PW_SHARDS_MAX; shard++) {
        assert_true(covers(holds, shard, "job", "work", "x"));
        pw_holds_remove(holds, shard, PW_HOLD_KEY, "job", "x");
        pw_holds_remove(holds, shard, PW_HOLD_KEY, "job", "x");
        assert_false(covers(holds, shard, "job", "work", "x"));
    }
    assert_int_equal(holds->count, 0);
}

static void holds_are_limited_and_leave_in_any_order(void **state)
{
    struct pw_holds *holds = *state;
    char name[PW_KEY_MAX + 1] = "";
    bool added = true;
    for (int i = 0; i < PW_HOLDS_MAX; i++) {
        pw_print(name, sizeof(name), "k%d", i);
        assert_true(add(holds, 0, PW_HOLD_KEY, "job", name));
    }
    assert_int_equal(pw_holds_add(holds, 0, PW_HOLD_KEY, "job", "more", &added), PAWL_E_LIMIT);
    assert_true(added);                                   /* written on success only */
    assert_true(add(holds, 1, PW_HOLD_KEY, "job", "k7")); /* no new scope */
    for (int i = 0; i < PW_HOLDS_MAX; i++) {
        int which = (i * 389) % PW_HOLDS_MAX; /* each once */
        pw_print(name, sizeof(name), "k%d", which);
        assert_true(covers(holds, 0, "job", "work", name));
        pw_holds_remove(holds, 0, PW_HOLD_KEY, "job", name);
        assert_false(covers(holds, 0, "job", "work", name));
    }
    assert_true(covers(holds, 1, "job", "work", "k7"));
    memset(name, 'k', PW_KEY_MAX); /* the longest, whole */
    assert_true(add(holds, 0, PW_HOLD_KEY, "job", name));
    assert_true(covers(holds, 0, "job", "work", name));
    name[PW_KEY_MAX - 1] = 'x';
    assert_false(covers(holds, 0, "job", "work", name));
}

static void want_of_memory_holds_nothing(void **state)
{
    struct pw_holds *holds = *state;
    bool added = false;
    (void)pw_alloc_fail_at(1);
    assert_int_equal(pw_holds_add(holds, 0, PW_HOLD_STATE, "job", "work", &added), PAWL_E_NOMEM);
    (void)pw_alloc_fail_at(0);
    assert_false(covers(holds, 0, "job", "work", ""));
    assert_true(add(holds, 0, PW_HOLD_STATE, "job", "work"));
}

/* --- through the writer ------------------------------------------------------------------- */

static const pawl_state states[] = {
    { .name = "idle", .flags = PAWL_START, .timeout_ms = 1000 },
    { .name = "end", .flags = PAWL_FINAL },
};
static const pawl_edge edges[] = { { .from = 0, .event = PAWL_TIMEOUT, .to = 1 } };
static const pawl_machine job = { .name = "job", PAWL_STATES(states), PAWL_EDGES(edges) };

struct rig {
    struct pw_store *store;
    struct pawl *engine;
    struct pw_shard *shard;
};

static void no_turn(void *arg)
{
    (void)arg;
}

static void open_rig(struct rig *rig)
{
    const pawl_unit unit = { .machine = &job };
    *rig = (struct rig){ .store = NULL };
    OK(pw_sim_store_open(&rig->store));
    struct pw_parts parts = {
        .ns = "test", .stores = &rig->store, .shards = 1, .drive = { no_turn, NULL }, .lock = -1
    };
    OK(pw_engine_open(&rig->engine, &parts, NULL));
    OK(pawl_add(rig->engine, &unit, NULL));
    OK(pawl_start(rig->engine, NULL));
    rig->shard = &rig->engine->shards[0];
}

static void close_rig(struct rig *rig)
{
    pawl_close(rig->engine);
    pw_sim_store_free(rig->store);
}

static void on_done(struct pw_request *request)
{
    (void)request;
}

static pawl_err hold(struct rig *rig)
{
    struct pw_request request = {
        .kind = PW_DO_HOLD,
        .machine = "job",
        .hold_kind = PW_HOLD_STATE,
        .hold_name = "idle",
        .done = on_done,
    };
    OK(pw_writer_submit(rig->shard, &request, false));
    (void)pw_writer_turn(rig->shard);
    return request.err;
}

static bool count_hold(void *arg, enum pw_hold_kind kind, const char *machine, const char *name,
                       enum pw_hold_phase phase)
{
    (void)kind;
    (void)machine;
    (void)name;
    (void)phase;
    ++*(size_t *)arg;
    return true;
}

/* Memory and store say the same. */
static void expect_held(struct rig *rig, bool held)
{
    struct pw_txn *txn = NULL;
    size_t rows = 0;
    assert_int_equal(covers(&rig->engine->holds, 0, "job", "idle", ""), held);
    OK(rig->store->ops->begin(rig->store, false, &txn));
    OK(pw_hold_scan(&rig->shard->tables, txn, count_hold, &rows));
    rig->store->ops->abort(txn);
    assert_int_equal(rows, held ? 1 : 0);
}

static void a_hold_without_room_holds_nothing(void **state)
{
    (void)state;
    struct rig rig;
    open_rig(&rig);
    pw_sim_store_full(rig.store, true);
    assert_int_equal(hold(&rig), PAWL_E_FULL);
    expect_held(&rig, false);
    pw_sim_store_full(rig.store, false);
    OK(hold(&rig));
    expect_held(&rig, true);
    pw_sim_store_full(rig.store, true);
    assert_int_equal(hold(&rig), PAWL_E_FULL);
    expect_held(&rig, true); /* it was held before */
    pw_sim_store_full(rig.store, false);
    close_rig(&rig);
}

struct countdown {
    uint64_t left;
};

static bool tick(void *arg)
{
    struct countdown *countdown = arg;
    return countdown->left == 0 || --countdown->left != 0;
}

/* Fails at each operation of the batch: once the store is open again, memory holds what the store
 * holds. */
static void a_hold_of_an_unknown_commit_is_what_the_store_says(void **state)
{
    (void)state;
    bool through = false;
    bool seen[2] = { false };
    for (uint64_t at = 1; !through; at++) {
        struct rig rig;
        struct countdown countdown = { at };
        open_rig(&rig);
        (void)pw_writer_turn(rig.shard); /* the walks of a start */
        (void)pw_writer_turn(rig.shard);
        pw_sim_store_on_operation(rig.store, tick, &countdown);
        pawl_err err = hold(&rig);
        through = countdown.left != 0;
        pw_sim_store_on_operation(rig.store, NULL, NULL);
        pw_sim_store_revive(rig.store);
        if (err != PAWL_OK)
            assert_int_equal(err, PAWL_E_UNKNOWN);
        (void)pw_writer_turn(rig.shard);
        bool held = covers(&rig.engine->holds, 0, "job", "idle", "");
        assert_true(held || err != PAWL_OK);
        expect_held(&rig, held);
        seen[held] = true;
        OK(hold(&rig)); /* repeated, it is done */
        expect_held(&rig, true);
        close_rig(&rig);
        assert_true(at < 100);
    }
    assert_true(seen[false] && seen[true]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_kind_covers_its_own, begin, end),
        cmocka_unit_test_setup_teardown(a_scope_is_held_by_shard, begin, end),
        cmocka_unit_test_setup_teardown(holds_are_limited_and_leave_in_any_order, begin, end),
        cmocka_unit_test_setup_teardown(want_of_memory_holds_nothing, begin, end),
        cmocka_unit_test(a_hold_without_room_holds_nothing),
        cmocka_unit_test(a_hold_of_an_unknown_commit_is_what_the_store_says),
    };
    return cmocka_run_group_tests(tests, leaks_begin, leaks_end);
}
