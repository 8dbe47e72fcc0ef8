/* SPDX-License-Identifier: Apache-2.0
 *
 * src/core/retry: doubling, cap, jitter, and the ends of the numbers. */
#include "base/base.h"
#include "base/limits.h"
#include "base/rng.h"
#include "core/retry.h"
#include "support/test.h"

static void doubles_up_to_the_cap(void **state)
{
    (void)state;
    static const struct {
        uint64_t base_ms;
        uint64_t ms_max;
        uint64_t failures;
        uint64_t expected_ms;
    } cases[] = {
        { 1000, 300000, 1, 1000 },
        { 1000, 300000, 2, 2000 },
        { 1000, 300000, 3, 4000 },
        { 1000, 300000, 9, 256000 },
        { 1000, 300000, 10, 300000 },
        { 1000, 300000, 11, 300000 },
        { 1000, 300000, 64, 300000 },
        { 1000, 300000, 65, 300000 },
        { 1000, 300000, UINT64_MAX, 300000 },
        { 1000, 2000, 2, 2000 }, /* the cap exactly */
        { 1000, 2001, 2, 2000 }, /* half of an odd cap, rounded down */
        { 1000, 1999, 2, 1999 },
        { 1, 3, 2, 2 },
        { 1, 3, 3, 3 },
        { 5, 5, 7, 5 },
        { 7, 5, 1, 5 }, /* a base above the cap */
        { 1, 1, UINT64_MAX, 1 },
        { 0, 1000, 1, 0 },
        { 0, 1000, UINT64_MAX, 0 }, /* ends at once */
        { 1000, 0, 3, 0 },
        { 0, 0, UINT64_MAX, 0 },
        { UINT64_MAX, UINT64_MAX, 1, PW_DURATION_MS_MAX },
        { UINT64_MAX, UINT64_MAX, UINT64_MAX, PW_DURATION_MS_MAX },
        { 1, UINT64_MAX, UINT64_MAX, PW_DURATION_MS_MAX },
        { 1, PW_DURATION_MS_MAX, 45, UINT64_C(1) << 44 }, /* the last power of two below */
        { 1, PW_DURATION_MS_MAX, 46, PW_DURATION_MS_MAX },
        { PW_DURATION_MS_MAX, PW_DURATION_MS_MAX, 2, PW_DURATION_MS_MAX },
    };
    for (size_t i = 0; i < PW_COUNT(cases); i++) {
        uint64_t got =
            pw_backoff_ms(cases[i].base_ms, cases[i].ms_max, 0, cases[i].failures, UINT64_MAX);
        if (got != cases[i].expected_ms)
            fail_msg("case %zu: %llu ms, not %llu", i, (unsigned long long)got,
                     (unsigned long long)cases[i].expected_ms);
    }
}

static void jitter_reaches_both_ends_and_no_further(void **state)
{
    (void)state;
    static const struct {
        uint64_t base_ms;
        uint32_t percent;
        uint64_t least_ms;
        uint64_t most_ms;
    } cases[] = {
        { 1000, 0, 1000, 1000 }, { 1000, 1, 990, 1010 },     { 1000, 20, 800, 1200 },
        { 1000, 100, 0, 2000 },  { 10, 20, 8, 12 },          { 4, 20, 4, 4 }, /* less than 1 ms */
        { 99, 50, 50, 148 },     { 12345, 7, 11481, 13209 },
    };
    for (size_t i = 0; i < PW_COUNT(cases); i++) {
        uint64_t width = cases[i].most_ms - cases[i].least_ms + 1;
        uint64_t base_ms = cases[i].base_ms;
        uint32_t percent = cases[i].percent;
        assert_int_equal(pw_backoff_ms(base_ms, 60000, percent, 1, 0), cases[i].least_ms);
        assert_int_equal(pw_backoff_ms(base_ms, 60000, percent, 1, width - 1), cases[i].most_ms);
        assert_int_equal(pw_backoff_ms(base_ms, 60000, percent, 1, width), cases[i].least_ms);
        for (uint64_t dice = 0; dice < 5000; dice++)
            assert_in_range(pw_backoff_ms(base_ms, 60000, percent, 1, dice), cases[i].least_ms,
                            cases[i].most_ms);
    }
}

/* Over all inputs: within the spread around what the doubling gives, so no sum or product ever
 * wrapped. */
static void nothing_wraps(void **state)
{
    (void)state;
    static const uint64_t extremes[] = {
        0,
        1,
        2,
        99,
        100,
        101,
        1000,
        UINT32_MAX,
        UINT64_C(1) << 62,
        UINT64_C(1) << 63,
        PW_DURATION_MS_MAX - 1,
        PW_DURATION_MS_MAX,
        PW_DURATION_MS_MAX + 1,
        UINT64_MAX - 1,
        UINT64_MAX,
    };
    static const uint32_t percents[] = { 0, 1, 20, 99, 100 };
    struct pw_rng rng = { 20240501 };
    for (size_t b = 0; b < PW_COUNT(extremes); b++)
        for (size_t m = 0; m < PW_COUNT(extremes); m++)
            for (size_t f = 1; f < PW_COUNT(extremes); f++)
                for (size_t p = 0; p < PW_COUNT(percents); p++) {
                    uint64_t plain = pw_backoff_ms(extremes[b], extremes[m], 0, extremes[f], 0);
                    uint64_t spread = pw_backoff_ms(extremes[b], extremes[m], percents[p],
                                                    extremes[f], pw_rng_next(&rng));
                    assert_true(plain <= PW_DURATION_MS_MAX && plain <= extremes[m]);
                    uint64_t most = plain / 100 * percents[p] + plain % 100 * percents[p] / 100;
                    assert_true(spread >= plain - most && spread <= plain + most);
                }
}

static void grows_with_failures(void **state)
{
    (void)state;
    uint64_t before = 0;
    for (uint64_t failures = 1; failures < 100; failures++) {
        uint64_t delay = pw_backoff_ms(3, 1000003, 0, failures, 0);
        assert_true(delay > before || delay == 1000003);
        before = delay;
    }
    assert_int_equal(before, 1000003);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(doubles_up_to_the_cap),
        cmocka_unit_test(jitter_reaches_both_ends_and_no_further),
        cmocka_unit_test(nothing_wraps),
        cmocka_unit_test(grows_with_failures),
    };
    return cmocka_run_group_tests(tests, leaks_begin, leaks_end);
}
