/* SPDX-License-Identifier: Apache-2.0
 *
 * The description of the streams, and what a stream that is there may and may not have. */
#include <string.h>

#include "jetstream/streams.h"
#include "support/test.h"

static const char *text_of(const json_t *config, const char *key)
{
    return json_string_value(json_object_get(config, key));
}

static json_int_t number_of(const json_t *config, const char *key)
{
    assert_true(json_is_integer(json_object_get(config, key)));
    return json_integer_value(json_object_get(config, key));
}

static void names(void **state)
{
    (void)state;
    char name[PW_STREAM_NAME_SIZE];
    pw_stream_name(PW_STREAM_JOURNAL, "main", 7, name);
    assert_string_equal(name, "PAWL_main_7");
    pw_stream_name(PW_STREAM_EVENTS, "main", 7, name);
    assert_string_equal(name, "PAWL_main_EVENTS");
    pw_stream_name(PW_STREAM_DLQ, "main", 7, name);
    assert_string_equal(name, "PAWL_main_DLQ");
}

static void journal_has_no_limit(void **state)
{
    (void)state;
    json_t *config = pw_stream_config(PW_STREAM_JOURNAL, "main", 1, 3);
    assert_string_equal(text_of(config, "name"), "PAWL_main_1");
    assert_string_equal(json_string_value(json_array_get(json_object_get(config, "subjects"), 0)),
                        "pawl.main.j.1.>");
    assert_int_equal(json_array_size(json_object_get(config, "subjects")), 1);
    assert_string_equal(text_of(config, "retention"), "limits");
    assert_string_equal(text_of(config, "storage"), "file");
    assert_string_equal(text_of(config, "discard"), "old");
    assert_int_equal(number_of(config, "max_msgs_per_subject"), 1);
    assert_int_equal(number_of(config, "max_msgs"), -1);
    assert_int_equal(number_of(config, "max_bytes"), -1);
    assert_int_equal(number_of(config, "max_age"), 0);
    assert_int_equal(number_of(config, "num_replicas"), 3);
    json_decref(config);
}

static void events_and_letters(void **state)
{
    (void)state;
    json_t *events = pw_stream_config(PW_STREAM_EVENTS, "main", 0, 0);
    json_t *letters = pw_stream_config(PW_STREAM_DLQ, "main", 0, 1);
    assert_int_equal(number_of(events, "max_age"), INT64_C(7) * 86400 * 1000000000);
    assert_true(number_of(events, "max_bytes") > 0);
    assert_int_equal(number_of(events, "num_replicas"), 1);
    assert_int_equal(number_of(letters, "max_age"), 0);
    assert_int_equal(number_of(letters, "max_msgs_per_subject"), 1);
    json_decref(events);
    json_decref(letters);
}

/* A config with one setting put to what `json` says; "" takes it away. */
static json_t *changed(enum pw_stream_kind kind, const char *key, const char *json)
{
    json_t *config = pw_stream_config(kind, "main", 0, 1);
    if (json[0] == '\0')
        assert_int_equal(json_object_del(config, key), 0);
    else
        assert_int_equal(json_object_set_new(config, key, json_loads(json, JSON_DECODE_ANY, NULL)),
                         0);
    return config;
}

static void compare_with(enum pw_stream_kind kind, const char *key, const char *json,
                         const char *error)
{
    pawl_why why = { "" };
    json_t *wanted = pw_stream_config(kind, "main", 0, 1);
    json_t *found = changed(kind, key, json);
    pawl_err err = pw_stream_compare(kind, wanted, found, &why);
    assert_string_equal(why.text, error);
    assert_int_equal(err, error[0] == '\0' ? PAWL_OK : PAWL_E_CONFIG);
    json_decref(wanted);
    json_decref(found);
}

static void what_may_not_be(void **state)
{
    (void)state;
    static const struct {
        const char *key;
        const char *json;
        const char *error;
    } cases[] = {
        { "max_age", "60000000000", "max_age is 60s; must be 0" },
        { "max_age", "1500000000", "max_age is 1500ms; must be 0" },
        { "max_age", "1", "max_age is 1ns; must be 0" },
        { "max_msgs", "1000", "max_msgs is 1000; must be -1" },
        { "max_msgs", "", "max_msgs is unset; must be -1" },
        { "max_bytes", "1000", "max_bytes is 1000; must be -1" },
        { "max_msgs_per_subject", "2", "max_msgs_per_subject is 2; must be 1" },
        { "max_msgs_per_subject", "-1", "max_msgs_per_subject is -1; must be 1" },
        { "max_consumers", "1", "max_consumers is 1; must be -1" },
        { "max_msg_size", "65536", "max_msg_size is 65536; must be -1, or at least 1048576" },
        { "retention", "\"workqueue\"", "retention is workqueue; must be limits" },
        { "storage", "\"memory\"", "storage is memory; must be file" },
        { "discard", "\"new\"", "discard is new; must be old" },
        { "subjects", "[\"a\",\"b\"]", "subjects is [\"a\",\"b\"]; must be [\"pawl.main.j.0.>\"]" },
        { "no_ack", "true", "no_ack is true; must be unset" },
        { "sealed", "true", "sealed is true; must be unset" },
        { "deny_delete", "true", "deny_delete is true; must be unset" },
        { "mirror", "{\"name\":\"X\"}", "mirror is {\"name\":\"X\"}; must be unset" },
        { "sources", "[{\"name\":\"X\"}]", "sources is [{\"name\":\"X\"}]; must be unset" },
        { "persist_mode", "\"async\"", "persist_mode is async; must be unset" },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char error[256];
        pw_print(error, sizeof(error), "stream PAWL_main_0: %s", cases[i].error);
        compare_with(PW_STREAM_JOURNAL, cases[i].key, cases[i].json, error);
    }
    compare_with(PW_STREAM_DLQ, "max_age", "60000000000",
                 "stream PAWL_main_DLQ: max_age is 60s; must be 0");
    compare_with(PW_STREAM_DLQ, "deny_purge", "true",
                 "stream PAWL_main_DLQ: deny_purge is true; must be unset");
    compare_with(PW_STREAM_EVENTS, "discard", "\"new\"",
                 "stream PAWL_main_EVENTS: discard is new; must be old");
}

/* Loses nothing: the operator's. */
static void what_may_be(void **state)
{
    (void)state;
    compare_with(PW_STREAM_JOURNAL, "num_replicas", "3", "");
    compare_with(PW_STREAM_JOURNAL, "duplicate_window", "1000000000", "");
    compare_with(PW_STREAM_JOURNAL, "description", "\"ours\"", "");
    compare_with(PW_STREAM_JOURNAL, "compression", "\"s2\"", "");
    compare_with(PW_STREAM_JOURNAL, "max_msg_size", "1048576", "");
    compare_with(PW_STREAM_JOURNAL, "allow_direct", "true", "");
    compare_with(PW_STREAM_JOURNAL, "deny_purge", "true", "");
    compare_with(PW_STREAM_JOURNAL, "sealed", "false", "");
    compare_with(PW_STREAM_JOURNAL, "mirror", "null", "");
    compare_with(PW_STREAM_JOURNAL, "sources", "[]", "");
    compare_with(PW_STREAM_JOURNAL, "persist_mode", "\"default\"", "");
    compare_with(PW_STREAM_EVENTS, "max_age", "60000000000", "");
    compare_with(PW_STREAM_EVENTS, "max_bytes", "-1", "");
    compare_with(PW_STREAM_EVENTS, "max_msgs", "1000", "");
    compare_with(PW_STREAM_EVENTS, "max_msgs_per_subject", "5", "");
    compare_with(PW_STREAM_EVENTS, "deny_delete", "true", "");
}

static void consumers(void **state)
{
    (void)state;
    json_t *request = pw_consumer_config("main", 2, "pawl_2_9", 77);
    const json_t *config = json_object_get(request, "config");
    assert_string_equal(text_of(request, "stream_name"), "PAWL_main_2");
    assert_string_equal(text_of(config, "durable_name"), "pawl_2_9");
    assert_string_equal(text_of(config, "ack_policy"), "all");
    assert_int_equal(number_of(config, "opt_start_seq"), 77);
    json_decref(request);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names),
        cmocka_unit_test(journal_has_no_limit),
        cmocka_unit_test(events_and_letters),
        cmocka_unit_test(what_may_not_be),
        cmocka_unit_test(what_may_be),
        cmocka_unit_test(consumers),
    };
    return cmocka_run_group_tests(tests, leaks_begin, leaks_end);
}
