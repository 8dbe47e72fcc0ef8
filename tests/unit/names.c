/* SPDX-License-Identifier: Apache-2.0
 *
 * src/core/names: what may be a name, an id or a traceparent; every byte, every boundary, and an
 * error that says where. */
#include <string.h>

#include "base/base.h"
#include "base/limits.h"
#include "core/names.h"
#include "support/test.h"

/* A text in memory of exactly its size, so that a look past its end is a fault that is found. */
static char *exactly(const char *bytes, size_t size)
{
    char *text = pw_alloc(size + 1);
    assert_non_null(text);
    memcpy(text, bytes, size);
    text[size] = '\0';
    return text;
}

static char *of_length(char c, size_t size)
{
    char *text = pw_alloc(size + 1);
    assert_non_null(text);
    memset(text, c, size);
    text[size] = '\0';
    return text;
}

static pawl_err name_of(const char *text, pawl_why *why)
{
    return pw_check_name("event", text, why);
}

static pawl_err id_of(const char *text, pawl_why *why)
{
    return pw_check_id("id", text, why);
}

static pawl_err optional_id_of(const char *text, pawl_why *why)
{
    return pw_check_optional_id("key", text, why);
}

static void lengths_are_counted_in_bytes(void **state)
{
    (void)state;
    static const struct {
        pawl_err (*check)(const char *text, pawl_why *why);
        size_t size_max;
    } cases[] = {
        { name_of, 64 },
        { pw_check_namespace, 32 },
        { id_of, 128 },
        { optional_id_of, 128 },
    };
    for (size_t i = 0; i < PW_COUNT(cases); i++)
        for (size_t size = 0; size <= cases[i].size_max + 300; size++) {
            char *text = of_length('x', size);
            pawl_why why = { "" };
            bool empty_is_fine = cases[i].check == optional_id_of;
            pawl_err expected = size == 0 ? (empty_is_fine ? PAWL_OK : PAWL_E_USAGE)
                                          : (size <= cases[i].size_max ? PAWL_OK : PAWL_E_LIMIT);
            assert_int_equal(cases[i].check(text, &why), expected);
            assert_int_equal(why.text[0] == '\0', expected == PAWL_OK);
            assert_int_equal(cases[i].check(text, NULL), expected);
            pw_free(text);
        }
}

static void length_of_an_id_is_not_one_of_characters(void **state)
{
    (void)state;
    char text[140] = "";
    for (size_t i = 0; i < 64; i++)
        memcpy(text + 2 * i, "\xc3\xa9", 3); /* 64 times e with an acute: 128 bytes */
    assert_int_equal(id_of(text, NULL), PAWL_OK);
    memcpy(text + 128, "x", 2);
    assert_int_equal(id_of(text, NULL), PAWL_E_LIMIT);
    for (size_t i = 0; i < 32; i++)
        memcpy(text + 4 * i, "\xf0\x9f\x90\x8c", 5);
    assert_int_equal(id_of(text, NULL), PAWL_OK);
    memcpy(text + 124, "xyz\xc3\xa9", 6); /* the last character passes the limit */
    assert_int_equal(id_of(text, NULL), PAWL_E_LIMIT);
}

static void nothing_is_refused_like_an_empty_text(void **state)
{
    (void)state;
    pawl_why why = { "" };
    assert_int_equal(pw_check_name("event", NULL, &why), PAWL_E_USAGE);
    assert_string_equal(why.text, "event is empty");
    assert_int_equal(pw_check_namespace(NULL, &why), PAWL_E_USAGE);
    assert_string_equal(why.text, "namespace is empty");
    assert_int_equal(pw_check_id("id", NULL, &why), PAWL_E_USAGE);
    assert_string_equal(why.text, "id is empty");
    assert_int_equal(pw_check_optional_id("key", NULL, &why), PAWL_OK);
    assert_int_equal(pw_check_trace(NULL, &why), PAWL_OK);
    assert_int_equal(pw_check_trace("", &why), PAWL_OK);
}

static void each_byte_of_a_name(void **state)
{
    (void)state;
    static const char allowed[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";
    for (int c = 1; c < 256; c++) {
        char alone[2] = { (char)c, '\0' };
        char inside[4] = { 'a', (char)c, 'b', '\0' };
        char last[3] = { 'a', (char)c, '\0' };
        bool fine = memchr(allowed, c, sizeof(allowed) - 1) != NULL;
        char expected[64] = "";
        pawl_why why = { "" };
        assert_int_equal(name_of(alone, NULL), fine && c != '_' ? PAWL_OK : PAWL_E_USAGE);
        assert_int_equal(pw_check_namespace(alone, NULL),
                         fine && c != '_' ? PAWL_OK : PAWL_E_USAGE);
        assert_int_equal(name_of(last, NULL), fine ? PAWL_OK : PAWL_E_USAGE);
        assert_int_equal(name_of(inside, &why), fine ? PAWL_OK : PAWL_E_USAGE);
        pw_print(expected, sizeof(expected), "event: byte 0x%02x at 1;", (unsigned)c);
        if (!fine)
            assert_memory_equal(why.text, expected, strlen(expected));
    }
}

static void a_name_says_what_is_wrong_with_it(void **state)
{
    (void)state;
    pawl_why why = { "" };
    assert_int_equal(name_of("_mark", &why), PAWL_E_USAGE);
    assert_string_equal(why.text, "event '_mark' begins with '_'");
    assert_int_equal(name_of("a.b", &why), PAWL_E_USAGE);
    assert_string_equal(why.text, "event: byte 0x2e at 1; allowed are A-Z a-z 0-9 _ -");
    char *text = of_length('q', 65);
    assert_int_equal(name_of(text, &why), PAWL_E_LIMIT);
    assert_string_equal(why.text,
                        "event 'qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqq...' is longer than 64 bytes");
    text[64] = '.'; /* too long comes first: the byte is past the end */
    assert_int_equal(name_of(text, &why), PAWL_E_LIMIT);
    text[64] = '\0';
    text[63] = '.';
    assert_int_equal(name_of(text, &why), PAWL_E_USAGE);
    assert_string_equal(why.text, "event: byte 0x2e at 63; allowed are A-Z a-z 0-9 _ -");
    pw_free(text);
}

static void each_byte_of_an_id(void **state)
{
    (void)state;
    for (int c = 1; c < 256; c++) {
        char bytes[1] = { (char)c };
        char *alone = exactly(bytes, 1);
        pawl_why why = { "" };
        char expected[64] = "";
        bool fine = c >= 0x20 && c < 0x7f;
        assert_int_equal(id_of(alone, &why), fine ? PAWL_OK : PAWL_E_USAGE);
        if (c < 0x20 || c == 0x7f)
            pw_print(expected, sizeof(expected), "id: control character 0x%02x at 0", (unsigned)c);
        else if (!fine)
            pw_print(expected, sizeof(expected), "id: byte 0x%02x at 0 is not UTF-8", (unsigned)c);
        assert_string_equal(why.text, expected);
        pw_free(alone);
    }
}

/* Each text stands behind "ab" and before "c": the error names byte and place. NULL: it is allowed.
 */
static void utf8(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        const char *error;
    } cases[] = {
        { "\xc2\xa0", NULL },                              /* U+00A0, the first behind C1 */
        { "\xdf\xbf", NULL },                              /* U+07FF */
        { "\xe0\xa0\x80", NULL },                          /* U+0800 */
        { "\xed\x9f\xbf", NULL },                          /* U+D7FF, the last before surrogates */
        { "\xee\x80\x80", NULL },                          /* U+E000, the first behind them */
        { "\xef\xbf\xbd", NULL },                          /* U+FFFD */
        { "\xef\xbf\xbf", NULL },                          /* U+FFFF */
        { "\xf0\x90\x80\x80", NULL },                      /* U+10000 */
        { "\xf4\x8f\xbf\xbf", NULL },                      /* U+10FFFF */
        { "\xc2\x80", "id: control character 0x80 at 2" }, /* C1, first */
        { "\xc2\x85", "id: control character 0x85 at 2" }, /* next line */
        { "\xc2\x9f", "id: control character 0x9f at 2" }, /* C1, last */
        { "\x7f", "id: control character 0x7f at 2" },
        { "\x1b", "id: control character 0x1b at 2" },
        { "\n", "id: control character 0x0a at 2" },
        { "\xc0\x80", "id: byte 0xc0 at 2 is not UTF-8" }, /* overlong U+0000 */
        { "\xc0\xaf", "id: byte 0xc0 at 2 is not UTF-8" }, /* overlong '/' */
        { "\xc1\xbf", "id: byte 0xc1 at 2 is not UTF-8" }, /* overlong U+007F */
        { "\xe0\x80\xaf", "id: byte 0xe0 at 2 is not UTF-8" },
        { "\xe0\x9f\xbf", "id: byte 0xe0 at 2 is not UTF-8" }, /* overlong U+07FF */
        { "\xf0\x80\x80\xaf", "id: byte 0xf0 at 2 is not UTF-8" },
        { "\xf0\x8f\xbf\xbf", "id: byte 0xf0 at 2 is not UTF-8" },         /* overlong U+FFFF */
        { "\xed\xa0\x80", "id: byte 0xed at 2 is not UTF-8" },             /* U+D800 */
        { "\xed\xbf\xbf", "id: byte 0xed at 2 is not UTF-8" },             /* U+DFFF */
        { "\xed\xa0\xbd\xed\xb0\x8c", "id: byte 0xed at 2 is not UTF-8" }, /* a pair of them */
        { "\xf4\x90\x80\x80", "id: byte 0xf4 at 2 is not UTF-8" },         /* U+110000 */
        { "\xf5\x80\x80\x80", "id: byte 0xf5 at 2 is not UTF-8" },
        { "\xf8\x88\x80\x80\x80", "id: byte 0xf8 at 2 is not UTF-8" }, /* five bytes */
        { "\xfe", "id: byte 0xfe at 2 is not UTF-8" },
        { "\xff", "id: byte 0xff at 2 is not UTF-8" },
        { "\x80", "id: byte 0x80 at 2 is not UTF-8" },         /* a second byte without a first */
        { "\xc3", "id: byte 0xc3 at 2 is not UTF-8" },         /* cut after 1 of 2 */
        { "\xe2\x82", "id: byte 0xe2 at 2 is not UTF-8" },     /* 2 of 3 */
        { "\xf0\x9f\x90", "id: byte 0xf0 at 2 is not UTF-8" }, /* 3 of 4 */
        { "\xc3\xa9\xa9",
          "id: byte 0xa9 at 4 is not UTF-8" }, /* one too many, behind a valid one */
    };
    for (size_t i = 0; i < PW_COUNT(cases); i++) {
        char bytes[16] = "";
        pawl_why why = { "" };
        pw_print(bytes, sizeof(bytes), "ab%sc", cases[i].bytes);
        char *text = exactly(bytes, strlen(bytes));
        assert_int_equal(id_of(text, &why), cases[i].error == NULL ? PAWL_OK : PAWL_E_USAGE);
        assert_string_equal(why.text, cases[i].error != NULL ? cases[i].error : "");
        assert_int_equal(optional_id_of(text, NULL),
                         cases[i].error == NULL ? PAWL_OK : PAWL_E_USAGE);
        pw_free(text);
        text = exactly(cases[i].bytes, strlen(cases[i].bytes)); /* and at the very end of memory */
        assert_int_equal(id_of(text, NULL), cases[i].error == NULL ? PAWL_OK : PAWL_E_USAGE);
        pw_free(text);
    }
}

static void traceparents(void **state)
{
    (void)state;
    static const char good[] = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    pawl_why why = { "" };
    assert_int_equal(strlen(good), PW_TRACE_SIZE);
    assert_int_equal(pw_check_trace(good, &why), PAWL_OK);
    for (size_t i = 0; i < PW_TRACE_SIZE; i++) /* any place, any wrong byte */
        for (int c = 1; c < 256; c++) {
            char text[PW_TRACE_SIZE + 1];
            memcpy(text, good, sizeof(text));
            text[i] = (char)c;
            bool dash = i == 2 || i == 35 || i == 52;
            bool hex = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
            bool fine = dash ? c == '-' : i < 2 ? c == '0' : hex;
            assert_int_equal(pw_check_trace(text, &why), fine ? PAWL_OK : PAWL_E_USAGE);
        }
    char longer[2 * PW_TRACE_SIZE + 1] = "";
    pw_print(longer, sizeof(longer), "%s0", good);
    assert_int_equal(pw_check_trace(longer, &why), PAWL_E_USAGE);
    assert_string_equal(why.text, "trace is not a W3C traceparent of version 00");
    for (size_t size = 1; size < PW_TRACE_SIZE; size++) {
        char *text = exactly(good, size);
        assert_int_equal(pw_check_trace(text, &why), PAWL_E_USAGE);
        pw_free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lengths_are_counted_in_bytes),
        cmocka_unit_test(length_of_an_id_is_not_one_of_characters),
        cmocka_unit_test(nothing_is_refused_like_an_empty_text),
        cmocka_unit_test(each_byte_of_a_name),
        cmocka_unit_test(a_name_says_what_is_wrong_with_it),
        cmocka_unit_test(each_byte_of_an_id),
        cmocka_unit_test(utf8),
        cmocka_unit_test(traceparents),
    };
    return cmocka_run_group_tests(tests, leaks_begin, leaks_end);
}
