/* SPDX-License-Identifier: Apache-2.0
 *
 * src/base without threads: errors, bytes, times, memory, the arena, random numbers, the log. */
#include <stdalign.h>
#include <string.h>

#include "base/arena.h"
#include "base/base.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/rng.h"
#include "support/test.h"

/* --- errors ------------------------------------------------------------------------------- */

static void every_error_has_name_text_and_class(void **state)
{
    (void)state;
    for (int i = 0; i < PAWL_ERR_COUNT; i++) {
        pawl_err err = (pawl_err)i;
        assert_true(strlen(pawl_err_name(err)) > 0);
        assert_true(strlen(pawl_err_text(err)) > 0);
        assert_int_equal(err == PAWL_OK, pawl_err_class_of(err) == PAWL_CLASS_OK);
        for (int j = 0; j < i; j++) {
            assert_string_not_equal(pawl_err_name(err), pawl_err_name((pawl_err)j));
            assert_string_not_equal(pawl_err_text(err), pawl_err_text((pawl_err)j));
        }
    }
    assert_string_equal(pawl_err_name(PAWL_E_FULL), "E_FULL");
    assert_int_equal(pawl_err_class_of(PAWL_E_FULL), PAWL_CLASS_TRANSIENT);
    assert_int_equal(pawl_err_class_of(PAWL_E_NO_EDGE), PAWL_CLASS_CONFLICT);
    assert_int_equal(pawl_err_class_of(PAWL_E_CORRUPT), PAWL_CLASS_FINAL);
    assert_int_equal(pawl_err_class_of(PAWL_E_USAGE), PAWL_CLASS_MISUSE);
}

static void no_error_code_is_misuse(void **state)
{
    (void)state;
    assert_string_equal(pawl_err_name(PAWL_ERR_COUNT), "E_INVALID");
    assert_int_equal(pawl_err_class_of(PAWL_ERR_COUNT), PAWL_CLASS_MISUSE);
    assert_int_equal(strlen(pawl_err_text(PAWL_ERR_COUNT)) > 0, 1);
}

static void fail_fills_why_and_returns_the_code(void **state)
{
    (void)state;
    pawl_why why = { "before" };
    assert_int_equal(pw_fail(&why, PAWL_E_CONFIG, "line %d: %s", 7, "bad"), PAWL_E_CONFIG);
    assert_string_equal(why.text, "line 7: bad");
    assert_int_equal(pw_fail(NULL, PAWL_E_IO, "nobody %s", "asks"), PAWL_E_IO);
}

static void fail_cuts_what_is_too_long(void **state)
{
    (void)state;
    pawl_why why = { "" };
    char text[2 * sizeof(why.text)];
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';

    (void)pw_fail(&why, PAWL_E_IO, "%s", text);
    assert_int_equal(strlen(why.text), sizeof(why.text) - 1);
    (void)pw_fail_in(&why, PAWL_E_IO, "where");
    assert_int_equal(strlen(why.text), sizeof(why.text) - 1);
    assert_memory_equal(why.text, "where: xxx", 10);
}

static void fail_in_says_where(void **state)
{
    (void)state;
    pawl_why why = { "permission denied" };
    assert_int_equal(pw_fail_in(&why, PAWL_E_IO, "lmdb %s", "./data"), PAWL_E_IO);
    assert_string_equal(why.text, "lmdb ./data: permission denied");
    (void)pw_fail_in(&why, PAWL_E_IO, "open store");
    assert_string_equal(why.text, "open store: lmdb ./data: permission denied");

    pawl_why silent = { "" };
    (void)pw_fail_in(&silent, PAWL_E_FULL, "commit");
    assert_string_equal(silent.text, "commit: the store is full");
    assert_int_equal(pw_fail_in(NULL, PAWL_E_FULL, "commit"), PAWL_E_FULL);
}

/* --- bytes -------------------------------------------------------------------------------- */

static void print_is_bounded(void **state)
{
    (void)state;
    char text[4] = "zzz";
    pw_print(text, sizeof(text), "%s", "abcdef");
    assert_string_equal(text, "abc");
    pw_print(text, 1, "%s", "abcdef");
    assert_string_equal(text, "");
}

static void bytes_compare_as_memory_then_length(void **state)
{
    (void)state;
    static const struct {
        const char *a;
        const char *b;
        int order;
    } cases[] = {
        { "", "", 0 },   { "a", "a", 0 },        { "a", "b", -1 },      { "b", "a", 1 },
        { "", "a", -1 }, { "ab", "a", 1 },       { "a", "ab", -1 },     { "b", "ab", 1 },
        { "a", "", 1 },  { "\x7f", "\x80", -1 }, { "\xff", "\x01", 1 },
    };
    for (size_t i = 0; i < PW_COUNT(cases); i++) {
        pawl_bytes a = pawl_str(cases[i].a);
        pawl_bytes b = pawl_str(cases[i].b);
        int order = pw_bytes_compare(a, b);
        assert_int_equal((order > 0) - (order < 0), cases[i].order);
        assert_int_equal(pw_bytes_equal(a, b), cases[i].order == 0);
        assert_int_equal(pw_bytes_equal_str(a, cases[i].b), cases[i].order == 0);
    }
    pawl_bytes none = { NULL, 0 };
    assert_true(pw_bytes_equal(none, pawl_str("")));
    assert_true(pw_bytes_equal(none, pawl_str(NULL)));
    assert_int_equal(pw_bytes_compare(none, none), 0);
}

static void numbers_are_big_endian(void **state)
{
    (void)state;
    static const uint64_t values[] = {
        0,
        1,
        0xff,
        0x100,
        0x0102030405060708,
        UINT32_MAX,
        (uint64_t)UINT32_MAX + 1,
        INT64_MAX,
        UINT64_MAX,
    };
    for (size_t i = 0; i < PW_COUNT(values); i++) {
        uint8_t bytes[8] = { 0 };
        pw_put_u64(bytes, values[i]);
        assert_true(pw_get_u64(bytes) == values[i]);
    }
    uint8_t bytes[8] = { 0 };
    pw_put_u64(bytes, 0x0102030405060708);
    assert_memory_equal(bytes, "\x01\x02\x03\x04\x05\x06\x07\x08", 8);
}

static void byte_order_is_number_order(void **state)
{
    (void)state;
    struct pw_rng rng = { .state = 7 };
    for (int i = 0; i < 1000; i++) {
        uint64_t a = pw_rng_next(&rng) >> pw_rng_below(&rng, 64);
        uint64_t b = pw_rng_next(&rng) >> pw_rng_below(&rng, 64);
        uint8_t a_bytes[8];
        uint8_t b_bytes[8];
        pw_put_u64(a_bytes, a);
        pw_put_u64(b_bytes, b);
        int order = memcmp(a_bytes, b_bytes, 8);
        assert_int_equal(order < 0, a < b);
        assert_int_equal(order == 0, a == b);
    }
}

/* --- times -------------------------------------------------------------------------------- */

static void times_never_wrap(void **state)
{
    (void)state;
    const uint64_t most = PW_DURATION_MS_MAX;
    assert_true(pw_time_add(0, 0) == 0);
    assert_true(pw_time_add(2, 3) == 5);
    assert_true(pw_time_add(0, most) == most);
    assert_true(pw_time_add(most, 0) == most);
    assert_true(pw_time_add(most - 1, 1) == most);
    assert_true(pw_time_add(1, most - 2) == most - 1);
    assert_true(pw_time_add(most, most) == most);
    assert_true(pw_time_add(1, PAWL_FOREVER) == most);
    assert_true(pw_time_add(UINT64_MAX, UINT64_MAX) == most);
    assert_true(most < PW_NEVER);
}

static void monotonic_time_does_not_go_back(void **state)
{
    (void)state;
    struct pw_clock clock;
    pw_clock_init(&clock);
    uint64_t before = clock.monotonic_ms(&clock);
    for (int i = 0; i < 1000; i++) {
        uint64_t now = clock.monotonic_ms(&clock);
        assert_true(now >= before);
        before = now;
    }
    assert_true(before > 0);
    assert_true(clock.wall_ms(&clock) > 1577836800000); /* 2020 */
}

/* --- memory ------------------------------------------------------------------------------- */

static void memory_is_zeroed_and_never_null_for_nothing(void **state)
{
    (void)state;
    uint8_t *memory = pw_alloc(100);
    assert_non_null(memory);
    for (int i = 0; i < 100; i++)
        assert_int_equal(memory[i], 0);
    memory = pw_realloc(memory, 200);
    assert_non_null(memory);
    pw_free(memory);

    void *nothing = pw_alloc(0);
    assert_non_null(nothing);
    pw_free(nothing);
    pw_free(NULL);

    char *copy = pw_strdup("pawl");
    assert_string_equal(copy, "pawl");
    pw_free(copy);
}

static void the_nth_allocation_fails_once(void **state)
{
    (void)state;
    (void)pw_alloc_fail_at(3);
    void *first = pw_alloc(1);
    char *second = pw_strdup("x");
    void *third = pw_realloc(NULL, 1);
    void *fourth = pw_alloc(1);
    uint64_t made = pw_alloc_fail_at(0);
    void *later = pw_alloc(1);

    assert_non_null(first);
    assert_non_null(second);
    assert_null(third);
    assert_non_null(fourth);
    assert_non_null(later);
    assert_int_equal(made, 4);
    pw_free(first);
    pw_free(second);
    pw_free(fourth);
    pw_free(later);
}

static void arena_hands_out_aligned_memory_of_its_own(void **state)
{
    (void)state;
    struct pw_arena arena;
    uint8_t *handed[200];
    pw_arena_init(&arena, (size_t)64 * 1024);
    for (size_t i = 0; i < PW_COUNT(handed); i++) {
        handed[i] = pw_arena_alloc(&arena, i * 17);
        assert_non_null(handed[i]);
        assert_int_equal((uintptr_t)handed[i] % alignof(max_align_t), 0);
        memset(handed[i], (int)i, i * 17);
    }
    for (size_t i = 0; i < PW_COUNT(handed); i++)
        for (size_t at = 0; at < i * 17; at++)
            assert_int_equal(handed[i][at], (uint8_t)i);
    pw_arena_fini(&arena);
    pw_arena_fini(&arena);
}

static void arena_takes_what_is_larger_than_a_chunk(void **state)
{
    (void)state;
    struct pw_arena arena;
    pw_arena_init(&arena, (size_t)64 * 1024);
    uint8_t *small = pw_arena_alloc(&arena, 1);
    uint8_t *large = pw_arena_alloc(&arena, PW_RECORD_MAX);
    uint8_t *after = pw_arena_alloc(&arena, 1);
    assert_non_null(small);
    assert_non_null(large);
    assert_non_null(after);
    memset(large, 1, PW_RECORD_MAX);
    *small = 2;
    *after = 3;
    assert_int_equal(large[0], 1);
    assert_int_equal(large[PW_RECORD_MAX - 1], 1);
    pw_arena_fini(&arena);
}

static void arena_uses_its_memory_again_after_reset(void **state)
{
    (void)state;
    struct pw_arena arena;
    pw_arena_init(&arena, (size_t)64 * 1024);
    pw_arena_reset(&arena);
    void *first = pw_arena_alloc(&arena, 64);
    pw_arena_reset(&arena);
    (void)pw_alloc_fail_at(1);
    void *again = pw_arena_alloc(&arena, 64); /* without an allocation */
    assert_int_equal(pw_alloc_fail_at(0), 0);
    assert_ptr_equal(first, again);

    for (int i = 0; i < 10; i++)
        assert_non_null(pw_arena_alloc(&arena, 50000));
    pw_arena_reset(&arena);
    assert_non_null(pw_arena_alloc(&arena, 1));
    pw_arena_fini(&arena);
}

static void arena_without_memory_says_so(void **state)
{
    (void)state;
    struct pw_arena arena;
    pw_arena_init(&arena, (size_t)64 * 1024);
    (void)pw_alloc_fail_at(1);
    void *memory = pw_arena_alloc(&arena, 8);
    (void)pw_alloc_fail_at(1);
    char *text = pw_arena_text(&arena, pawl_str("x"));
    (void)pw_alloc_fail_at(0);
    assert_null(memory);
    assert_null(text);
    assert_null(pw_arena_alloc(&arena, SIZE_MAX));
    assert_non_null(pw_arena_alloc(&arena, 8));
    pw_arena_fini(&arena);
}

static void arena_text_is_a_terminated_copy(void **state)
{
    (void)state;
    struct pw_arena arena;
    pw_arena_init(&arena, (size_t)64 * 1024);
    char source[] = { 'a', 'b', 'c', 'd' };
    char *copy = pw_arena_text(&arena, (pawl_bytes){ source, 3 });
    source[0] = 'z';
    assert_string_equal(copy, "abc");
    assert_string_equal(pw_arena_text(&arena, (pawl_bytes){ NULL, 0 }), "");
    pw_arena_fini(&arena);
}

/* --- random numbers ----------------------------------------------------------------------- */

static void rng_is_splitmix64(void **state)
{
    (void)state;
    /* The sequence of the published reference for seed 1234567. */
    static const uint64_t expected[] = {
        6457827717110365317u,
        3203168211198807973u,
        9817491932198370423u,
        4593380528125082431u,
    };
    struct pw_rng rng = { .state = 1234567 };
    for (size_t i = 0; i < PW_COUNT(expected); i++)
        assert_true(pw_rng_next(&rng) == expected[i]);
}

static void rng_below_reaches_all_and_no_more(void **state)
{
    (void)state;
    struct pw_rng rng = { .state = 1 };
    unsigned seen[10] = { 0 };
    for (int i = 0; i < 10000; i++)
        seen[pw_rng_below(&rng, PW_COUNT(seen))]++;
    for (size_t i = 0; i < PW_COUNT(seen); i++)
        assert_in_range(seen[i], 800, 1200);
    assert_true(pw_rng_below(&rng, 1) == 0);
}

/* --- log ---------------------------------------------------------------------------------- */

struct record {
    pawl_level level;
    char id[32];
    char text[2048];
    int count;
};

static void keep(void *arg, pawl_level level, const char *id, const char *text)
{
    struct record *record = arg;
    record->level = level;
    pw_print(record->id, sizeof(record->id), "%s", id);
    pw_print(record->text, sizeof(record->text), "%s", text);
    record->count++;
}

static void log_hands_one_line_to_the_sink(void **state)
{
    (void)state;
    struct record record = { 0 };
    struct pw_log log = { .sink = keep, .arg = &record };
    pw_log(&log, PAWL_WARN, "relay.turn", "lsn=%d: %s", 5, "retrying");
    assert_int_equal(record.count, 1);
    assert_int_equal(record.level, PAWL_WARN);
    assert_string_equal(record.id, "relay.turn");
    assert_string_equal(record.text, "lsn=5: retrying");

    struct pw_log silent = { 0 };
    pw_log(&silent, PAWL_ERROR, "nobody", "hears");
}

static void log_shows_control_characters(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *line;
    } cases[] = {
        { "", "" },
        { "two\nlines", "two\\x0alines" },
        { "\r\t\x1b[2J", "\\x0d\\x09\\x1b[2J" },
        { "del\x7f", "del\\x7f" },
        { "h\xc3\xa9 \\ \"", "h\xc3\xa9 \\ \"" },
    };
    for (size_t i = 0; i < PW_COUNT(cases); i++) {
        struct record record = { 0 };
        struct pw_log log = { .sink = keep, .arg = &record };
        pw_log(&log, PAWL_INFO, "test", "%s", cases[i].text);
        assert_string_equal(record.text, cases[i].line);
    }
}

static void log_cuts_long_lines(void **state)
{
    (void)state;
    static const char fillers[] = { 'x', '\n' };
    char text[3000];
    struct record record = { 0 };
    struct pw_log log = { .sink = keep, .arg = &record };
    for (size_t i = 0; i < PW_COUNT(fillers); i++) {
        memset(text, fillers[i], sizeof(text) - 1);
        text[sizeof(text) - 1] = '\0';
        pw_log(&log, PAWL_INFO, "test", "%s", text);
        assert_in_range(strlen(record.text), 1000, 1023);
        assert_null(strchr(record.text, '\n'));
    }
}

/* --- metrics ------------------------------------------------------------------------------ */

static void metrics_count_up_and_down(void **state)
{
    (void)state;
    struct pw_metrics metrics = { 0 };
    pw_count(&metrics, ready, 5);
    pw_uncount(&metrics, ready, 2);
    assert_int_equal(atomic_load(&metrics.ready), 3);
    assert_int_equal(atomic_load(&metrics.running), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_error_has_name_text_and_class),
        cmocka_unit_test(no_error_code_is_misuse),
        cmocka_unit_test(fail_fills_why_and_returns_the_code),
        cmocka_unit_test(fail_cuts_what_is_too_long),
        cmocka_unit_test(fail_in_says_where),
        cmocka_unit_test(print_is_bounded),
        cmocka_unit_test(bytes_compare_as_memory_then_length),
        cmocka_unit_test(numbers_are_big_endian),
        cmocka_unit_test(byte_order_is_number_order),
        cmocka_unit_test(times_never_wrap),
        cmocka_unit_test(monotonic_time_does_not_go_back),
        cmocka_unit_test(memory_is_zeroed_and_never_null_for_nothing),
        cmocka_unit_test(the_nth_allocation_fails_once),
        cmocka_unit_test(arena_hands_out_aligned_memory_of_its_own),
        cmocka_unit_test(arena_takes_what_is_larger_than_a_chunk),
        cmocka_unit_test(arena_uses_its_memory_again_after_reset),
        cmocka_unit_test(arena_without_memory_says_so),
        cmocka_unit_test(arena_text_is_a_terminated_copy),
        cmocka_unit_test(rng_is_splitmix64),
        cmocka_unit_test(rng_below_reaches_all_and_no_more),
        cmocka_unit_test(log_hands_one_line_to_the_sink),
        cmocka_unit_test(log_shows_control_characters),
        cmocka_unit_test(log_cuts_long_lines),
        cmocka_unit_test(metrics_count_up_and_down),
    };
    return cmocka_run_group_tests(tests, leaks_begin, leaks_end);
}
