/* SPDX-License-Identifier: Apache-2.0
 *
 * Out of memory at each allocation in turn: nothing crashes, leaks, or is lost. What the pools
 * drop, the safety net finds within a minute of virtual time. */
#include "base/base.h"
#include "everything.h"

static const unsigned buses[] = { 0, PAWL_WORLD_JOURNAL };
#define BUSES (sizeof(buses) / sizeof(buses[0]))

/* The nth allocation fails; false: there were not so many. */
static bool a_day_with(uint64_t n, uint32_t shards, unsigned flags)
{
    pawl_world *w = pawl_world_open_with(everything, shards, 1, flags | PAWL_WORLD_QUIET);
    (void)pw_alloc_fail_at(n);
    shop_day(w);
    bool reached = pw_alloc_fail_at(0) >= n;
    shop_is_right(w);
    shop_closes(w);
    return reached;
}

static void each_allocation_may_fail(void **state)
{
    (void)state;
    for (size_t i = 0; i < BUSES; i++) {
        uint64_t n = 1;
        while (a_day_with(n, 1 + (uint32_t)i, buses[i]))
            n++;
        assert_in_range(n, 100, 100000); /* or the test tests nothing */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, leaks_begin, leaks_end);
}
