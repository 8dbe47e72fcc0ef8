/* SPDX-License-Identifier: Apache-2.0
 *
 * All of it at once, on three shards, killed again and again under many orders of turns: every day
 * of the shop ends as the undisturbed one does. */
#include "everything.h"

static void many_days(unsigned flags, uint32_t shards, uint64_t seeds)
{
    uint64_t crashes = 0;
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        pawl_world *w = pawl_world_open_with(everything, shards, seed, flags | PAWL_WORLD_QUIET);
        pw_world_crash_often(w, 1 + seed * 13 % 1500, 20);
        shop_day(w);
        crashes += pawl_world_crashes(w);
        pawl_world_crash_at(w, 0);
        shop_is_right(w);
        shop_closes(w);
    }
    assert_true(crashes > seeds); /* or the test tests nothing */
}

static void an_undisturbed_day(void **state)
{
    (void)state;
    for (uint32_t shards = 1; shards <= 3; shards++) {
        pawl_world *w = pawl_world_open_with(everything, shards, 1, 0);
        shop_day(w);
        shop_is_right(w);
        assert_int_equal(METRIC(w, swept), 0);
        assert_int_equal(METRIC(w, tells_refused), 0);
        shop_closes(w);
    }
}

static void days_of_crashes_on_the_local_bus(void **state)
{
    (void)state;
    many_days(0, 3, 200);
}

static void days_of_crashes_with_a_journal(void **state)
{
    (void)state;
    many_days(PAWL_WORLD_JOURNAL, 3, 200);
}

static void days_of_crashes_with_jitter(void **state)
{
    (void)state;
    many_days(PAWL_WORLD_JOURNAL | PAWL_WORLD_JITTER, 1, 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_undisturbed_day),
        cmocka_unit_test(days_of_crashes_on_the_local_bus),
        cmocka_unit_test(days_of_crashes_with_a_journal),
        cmocka_unit_test(days_of_crashes_with_jitter),
    };
    return cmocka_run_group_tests(tests, leaks_begin, leaks_end);
}
