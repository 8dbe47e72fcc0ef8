/* SPDX-License-Identifier: Apache-2.0
 *
 * Commits that answer with an error while nobody dies: what is on disk decides, and the engine goes
 * on from it. */
#include "engine/writer.h"
#include "everything.h"
#include "sim/store.h"

static const unsigned buses[] = { 0, PAWL_WORLD_JOURNAL };
#define BUSES (sizeof(buses) / sizeof(buses[0]))

/* The nth commit of one shard fails; false: there were not so many. */
static bool a_day_with(uint64_t n, uint32_t shard, uint32_t shards, unsigned flags, bool durable)
{
    pawl_world *w = pawl_world_open_with(everything, shards, 1 + n, flags | PAWL_WORLD_QUIET);
    pw_sim_store_fail_commit(pawl_world_engine(w)->shards[shard].tables.store, n, durable);
    shop_day(w);
    bool reached = METRIC(w, reopens) > 0;
    shop_is_right(w);
    shop_closes(w);
    return reached;
}

static void each_commit(bool durable)
{
    for (size_t i = 0; i < BUSES; i++)
        for (uint32_t shards = 1; shards <= 3; shards += 2)
            for (uint32_t shard = 0; shard < shards; shard++) {
                uint64_t n = 1;
                while (a_day_with(n, shard, shards, buses[i], durable))
                    n++;
                assert_in_range(n, 8, 1000); /* or the test tests nothing */
            }
}

static void each_commit_may_fail(void **state)
{
    (void)state;
    each_commit(false);
}

static void each_commit_may_be_done_and_said_to_have_failed(void **state)
{
    (void)state;
    each_commit(true);
}

static void a_caller_is_told_that_it_is_unknown(void **state)
{
    (void)state;
    for (int durable = 0; durable <= 1; durable++) {
        pawl_world *w = pawl_world_open_with(everything, 1, 1, 0);
        pawl *engine = pawl_world_engine(w);
        pawl_answer answer = { .version = 0 };
        pawl_new options = { .message_id = "m" };
        pw_sim_store_fail_commit(engine->shards[0].tables.store, 1, durable != 0);
        assert_int_equal(pawl_create(engine, "order", "1", &options, &answer), PAWL_E_UNKNOWN);
        assert_int_equal(pawl_create(engine, "order", "1", &options, &answer), PAWL_OK);
        assert_int_equal(answer.repeated, durable != 0);
        expect_right(w);
        pawl_world_close(w);
    }
}

/* Whether it holds is what the store says. */
static void an_unknown_hold_is_what_the_store_says(void **state)
{
    (void)state;
    const pawl_scope scope = { .machine = "order" };
    for (int durable = 0; durable <= 1; durable++) {
        pawl_world *w = pawl_world_open_with(everything, 1, 1, 0);
        pawl *engine = pawl_world_engine(w);
        shop = (struct shop){ .runs = 0 };
        (void)create_once(w, "order", "1", NULL, "");
        pw_sim_store_fail_commit(engine->shards[0].tables.store, 1, durable != 0);
        assert_int_equal(pawl_hold(engine, &scope, NULL), PAWL_E_UNKNOWN);
        (void)send_once(w, "order", "1", "submit");
        pawl_world_run_for(w, 10000);
        expect_state(w, "order", "1", durable != 0 ? "charging" : "packing");
        hold(w, scope);
        pw_sim_store_fail_commit(engine->shards[0].tables.store, 1, durable != 0);
        assert_int_equal(pawl_release(engine, &scope, NULL), PAWL_E_UNKNOWN);
        pawl_world_run_for(w, 10000);
        release(w, scope);
        pawl_world_run_for(w, 10000);
        expect_state(w, "order", "1", "packing");
        expect_right(w);
        shop_closes(w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_caller_is_told_that_it_is_unknown),
        cmocka_unit_test(an_unknown_hold_is_what_the_store_says),
        cmocka_unit_test(each_commit_may_fail),
        cmocka_unit_test(each_commit_may_be_done_and_said_to_have_failed),
    };
    return cmocka_run_group_tests(tests, leaks_begin, leaks_end);
}
