/* SPDX-License-Identifier: Apache-2.0
 *
 * What the socket and the tool share: lines out of a stream, requests out of lines, bytes as text.
 */
#include <string.h>

#include "app/demand.h"
#include "app/lines.h"
#include "app/text.h"
#include "support/test.h"

static void feed(struct pw_lines *lines, const char *bytes, size_t size)
{
    while (size > 0) {
        size_t room = 0;
        char *to = pw_lines_room(lines, &room);
        size_t some = size < room ? size : room;
        assert_non_null(to);
        memcpy(to, bytes, some);
        pw_lines_filled(lines, some);
        bytes += some;
        size -= some;
    }
}

static void expect_line(struct pw_lines *lines, bool at_end, const char *text)
{
    const char *line = NULL;
    size_t size = 0;
    assert_int_equal(pw_lines_first(lines, at_end, &line, &size), PW_LINE);
    assert_int_equal(size, strlen(text));
    assert_memory_equal(line, text, size);
    pw_lines_drop(lines, size);
}

static void expect(struct pw_lines *lines, enum pw_line_kind kind)
{
    const char *line = NULL;
    size_t size = 0;
    assert_int_equal(pw_lines_first(lines, false, &line, &size), kind);
}

static void lines_come_whole(void **state)
{
    (void)state;
    struct pw_lines lines;
    pw_lines_init(&lines);
    expect(&lines, PW_LINE_NONE);
    feed(&lines, "one\n\ntw", 7);
    expect_line(&lines, false, "one");
    expect_line(&lines, false, "");
    expect(&lines, PW_LINE_NONE);
    feed(&lines, "o\nend", 5);
    expect_line(&lines, false, "two");
    expect(&lines, PW_LINE_NONE);
    expect_line(&lines, true, "end");
    expect(&lines, PW_LINE_NONE);
    pw_lines_fini(&lines);
}

static void long_line_is_skipped(void **state)
{
    (void)state;
    static char much[PW_LINE_SIZE_MAX];
    struct pw_lines lines;
    memset(much, 'x', sizeof(much));
    pw_lines_init(&lines);
    feed(&lines, much, sizeof(much) - 1);
    feed(&lines, "\n", 1); /* the longest that fits */
    const char *line = NULL;
    size_t size = 0;
    assert_int_equal(pw_lines_first(&lines, false, &line, &size), PW_LINE);
    assert_int_equal(size, PW_LINE_SIZE_MAX - 1);
    pw_lines_drop(&lines, size);
    feed(&lines, much, sizeof(much));
    expect(&lines, PW_LINE_TOO_LONG);
    expect(&lines, PW_LINE_NONE);
    feed(&lines, much, 1000);
    expect(&lines, PW_LINE_NONE);
    feed(&lines, "x\nnext\n", 7);
    expect_line(&lines, false, "next");
    pw_lines_fini(&lines);
}

static void check_base64(const char *bytes, size_t size, const char *text)
{
    char encoded[64];
    uint8_t decoded[64];
    size_t count = 0;
    pw_base64_encode((pawl_bytes){ bytes, size }, encoded);
    assert_string_equal(encoded, text);
    assert_true(pw_base64_decode(text, strlen(text), decoded, &count));
    assert_int_equal(count, size);
    assert_memory_equal(decoded, bytes, size);
}

static void base64(void **state)
{
    (void)state;
    static const char *const wrong[] = { "Zg",   "Zg=",      "Zh==", "Zm9=",  "Z===",
                                         "====", "Zg==Zg==", "Zm 9", "Zm9\n", "Zm9_" };
    uint8_t decoded[64];
    size_t count = 0;
    check_base64("", 0, "");
    check_base64("f", 1, "Zg==");
    check_base64("fo", 2, "Zm8=");
    check_base64("foo", 3, "Zm9v");
    check_base64("foob", 4, "Zm9vYg==");
    check_base64("\0\xff\xfe", 3, "AP/+");
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        assert_false(pw_base64_decode(wrong[i], strlen(wrong[i]), decoded, &count));
}

static void printable(void **state)
{
    (void)state;
    static const char *const right[] = {
        "", "text", "a\tb\r\n", "gr\xc3\xbc\xc3\x9f", "\xe2\x82\xac", "\xf0\x9f\x98\x80"
    };
    static const char *const wrong[] = { "\x01",         "\x1b[31m", "\x7f",
                                         "\xc2\x9b",     "\xc0\x80", "\xff",
                                         "\xed\xa0\x80", "\xe2\x82", "\xf4\x90\x80\x80",
                                         "\x80",         "\xc3" };
    for (size_t i = 0; i < sizeof(right) / sizeof(right[0]); i++)
        assert_true(pw_is_printable(pawl_str(right[i])));
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        assert_false(pw_is_printable(pawl_str(wrong[i])));
    assert_false(pw_is_printable((pawl_bytes){ "a\0b", 3 }));
}

static void times(void **state)
{
    (void)state;
    char text[PW_TIME_TEXT_SIZE];
    pw_print_time(0, text);
    assert_string_equal(text, "-");
    pw_print_time(1796090400123, text);
    assert_string_equal(text, "2026-12-01T02:00:00.123Z");
    pw_print_time(UINT64_MAX, text); /* no matter what, it fits */
    assert_true(strlen(text) < sizeof(text));
}

/* Reads a line as a request of `op` (PW_OPS: of the socket); the error, or "" when it is one. */
static void check_demand(enum pw_op op, const char *line, const char *error)
{
    struct pw_demand demand = { .op = op };
    pawl_why why = { "" };
    json_t *object = pw_demand_load(line, strlen(line), &why);
    pawl_err err = object != NULL ? pw_demand_read(&demand, object, op, &why) : PAWL_E_USAGE;
    pw_demand_fini(&demand);
    json_decref(object);
    assert_string_equal(why.text, error);
    assert_int_equal(err, error[0] == '\0' ? PAWL_OK : PAWL_E_USAGE);
}

static void demands(void **state)
{
    (void)state;
    check_demand(PW_OP_CREATE, "{\"machine\":\"m\",\"id\":\"i\"}", "");
    check_demand(
        PW_OP_CREATE,
        "{\"machine\":\"m\",\"id\":\"i\",\"data_base64\":\"AP/+\",\"key\":\"k\",\"delay_ms\":0}",
        "");
    check_demand(
        PW_OP_SEND,
        "{\"machine\":\"m\",\"id\":\"i\",\"event\":\"e\",\"version\":\"18446744073709551615\"}",
        "");
    check_demand(PW_OP_HOLD, "{\"machine\":\"m\",\"state\":\"s\"}", "");
    check_demand(PW_OPS, "{\"op\":\"status\",\"tag\":-5}", "");
    check_demand(PW_OP_CREATE, "{\"machine\":\"m\"}", "no \"id\"");
    check_demand(PW_OP_SEND, "{\"machine\":\"m\",\"id\":\"i\"}", "no \"event\"");
    check_demand(PW_OP_CREATE, "{\"machine\":\"m\",\"id\":7}", "\"id\" is not a string");
    check_demand(PW_OP_CREATE, "{\"machine\":\"m\",\"id\":\"i\",\"delay_ms\":-1}",
                 "\"delay_ms\" is not a number from 0 to 2^64 - 1");
    check_demand(PW_OP_CREATE, "{\"machine\":\"m\",\"id\":\"i\",\"delay_ms\":1.5}",
                 "\"delay_ms\" is not a number from 0 to 2^64 - 1");
    check_demand(PW_OP_CREATE, "{\"machine\":\"m\",\"id\":\"i\",\"event\":\"e\"}",
                 "create takes no field \"event\"");
    check_demand(PW_OP_CREATE, "{\"machine\":\"m\",\"id\":\"i\",\"tag\":1}",
                 "unknown field \"tag\"");
    check_demand(PW_OP_CREATE,
                 "{\"machine\":\"m\",\"id\":\"i\",\"data\":\"\",\"data_base64\":\"\"}",
                 "one of \"data\" and \"data_base64\"");
    check_demand(PW_OP_CREATE, "{\"machine\":\"m\",\"id\":\"i\",\"data_base64\":\"x\"}",
                 "\"data_base64\" is not base64");
    check_demand(PW_OP_CREATE, "{\"id\":\"i\",\"id\":\"i\"}",
                 "not JSON: duplicate object key near '\"id\"', at byte 14");
    check_demand(PW_OP_CREATE, "[]", "not a JSON object");
    check_demand(PW_OP_CREATE, "", "not JSON: '[' or '{' expected near end of file, at byte 0");
    check_demand(PW_OPS, "{\"machine\":\"m\"}", "no \"op\"");
    check_demand(PW_OPS, "{\"op\":\"drop\"}", "unknown op \"drop\"");
    check_demand(PW_OPS, "{\"op\":\"status\",\"tag\":\"x\"}", "\"tag\" is not a whole number");
    check_demand(PW_OPS, "{\"op\":\"status\",\"machine\":\"m\"}",
                 "status takes no field \"machine\"");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_come_whole),
        cmocka_unit_test(long_line_is_skipped),
        cmocka_unit_test(base64),
        cmocka_unit_test(printable),
        cmocka_unit_test(times),
        cmocka_unit_test(demands),
    };
    return cmocka_run_group_tests(tests, leaks_begin, leaks_end);
}
