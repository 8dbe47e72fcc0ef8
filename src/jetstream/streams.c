/* SPDX-License-Identifier: Apache-2.0
 *
 * The description of the streams, and the table of what a stream that is there must have of it. A
 * setting that is missing in the table is the operator's. */
#include <stdbool.h>

#include "base/limits.h"
#include "jetstream/streams.h"

#define SECOND_NS INT64_C(1000000000)
#define MILLISECOND_NS INT64_C(1000000)

/* How long an answer of the server may take. In a cluster a stream is made in some hundred ms. */
#define ANSWER_MS 5000

/* EVENTS is for others to read in time. Its bytes are bounded, so that it never takes the disk from
 * the journals. */
#define EVENTS_AGE_NS (INT64_C(7) * 24 * 60 * 60 * SECOND_NS)
#define EVENTS_BYTES (INT64_C(1) << 30)
/* A relay that begins again sends what it sent in the last seconds. Each id costs the server some
 * 250 bytes for so long. */
#define EVENTS_WINDOW_NS (INT64_C(30) * SECOND_NS)

/* A consumer's deliveries that are not acknowledged: some batches. Fewer than a batch would stall
 * the fetch. */
#define ACK_PENDING_MAX 8192
#define ACK_WAIT_NS (INT64_C(30) * SECOND_NS)

/* One whole record with its headers, at the server's default limit of a message. */
#define MESSAGE_SIZE (INT64_C(1) << 20)
static_assert(PW_RECORD_MAX < MESSAGE_SIZE, "a record fits a message");

/* --- the description ---------------------------------------------------------------------- */

void pw_stream_name(enum pw_stream_kind kind, const char *ns, uint32_t shard,
                    char name[PW_STREAM_NAME_SIZE])
{
    switch (kind) {
    case PW_STREAM_EVENTS:
        pw_print(name, PW_STREAM_NAME_SIZE, "PAWL_%s_EVENTS", ns);
        break;
    case PW_STREAM_DLQ:
        pw_print(name, PW_STREAM_NAME_SIZE, "PAWL_%s_DLQ", ns);
        break;
    case PW_STREAM_JOURNAL:
    case PW_STREAM_KINDS:
    default:
        pw_print(name, PW_STREAM_NAME_SIZE, "PAWL_%s_%u", ns, shard);
    }
}

static void print_subjects(enum pw_stream_kind kind, const char *ns, uint32_t shard, char *to,
                           size_t size)
{
    if (kind == PW_STREAM_JOURNAL)
        pw_print(to, size, "pawl.%s.j.%u.>", ns, shard);
    else
        pw_print(to, size, "pawl.%s.%s.>", ns, kind == PW_STREAM_EVENTS ? "event" : "dlq");
}

json_t *pw_stream_config(enum pw_stream_kind kind, const char *ns, uint32_t shard,
                         uint32_t replicas)
{
    char name[PW_STREAM_NAME_SIZE] = "";
    char subjects[PW_STREAM_NAME_SIZE] = "";
    bool events = kind == PW_STREAM_EVENTS;
    pw_stream_name(kind, ns, shard, name);
    print_subjects(kind, ns, shard, subjects, sizeof(subjects));
    json_t *config =
        json_pack("{s:s, s:[s], s:s, s:s, s:s, s:i, s:i, s:i, s:I, s:I, s:i, s:i}", "name", name,
                  "subjects", subjects, "retention", "limits", "storage", "file", "discard", "old",
                  "num_replicas", (int)(replicas > 0 ? replicas : 1), "max_consumers", -1,
                  "max_msgs", -1, "max_bytes", (json_int_t)(events ? EVENTS_BYTES : -1), "max_age",
                  (json_int_t)(events ? EVENTS_AGE_NS : 0), "max_msgs_per_subject", events ? -1 : 1,
                  "max_msg_size", -1);
    if (events && config != NULL &&
        json_object_set_new(config, "duplicate_window", json_integer(EVENTS_WINDOW_NS)) != 0) {
        json_decref(config);
        return NULL;
    }
    return config;
}

json_t *pw_consumer_config(const char *ns, uint32_t shard, const char *name, uint64_t start_seq)
{
    char stream[PW_STREAM_NAME_SIZE] = "";
    pw_stream_name(PW_STREAM_JOURNAL, ns, shard, stream);
    return json_pack("{s:s, s:{s:s, s:s, s:I, s:s, s:I, s:i, s:i, s:s}}", "stream_name", stream,
                     "config", "durable_name", name, "deliver_policy", "by_start_sequence",
                     "opt_start_seq", (json_int_t)start_seq, "ack_policy", "all", "ack_wait",
                     (json_int_t)ACK_WAIT_NS, "max_deliver", -1, "max_ack_pending", ACK_PENDING_MAX,
                     "replay_policy", "instant");
}

bool pw_consumer_is(const json_t *wanted, const json_t *found)
{
    static const char *const absent[] = { "filter_subject",  "filter_subjects", "headers_only",
                                          "deliver_subject", "max_batch",       "max_bytes",
                                          "max_expires",     "pause_until" };
    const char *key = NULL;
    json_t *value = NULL;
    json_object_foreach(json_object_get(wanted, "config"), key, value) /* not changed */
        if (!json_equal(json_object_get(found, key), value)) return false;
    for (size_t i = 0; i < PW_COUNT(absent); i++)
        if (json_object_get(found, absent[i]) != NULL)
            return false;
    return true;
}

/* --- comparing ---------------------------------------------------------------------------- */

#define BIT(kind) (1u << PW_STREAM_##kind)
#define ALL (BIT(JOURNAL) | BIT(EVENTS) | BIT(DLQ))
#define KEPT (BIT(JOURNAL) | BIT(DLQ)) /* whose messages may not vanish by themselves */

enum rule_kind {
    SAME,     /* as the description says it */
    DURATION, /* the same, in ns */
    ABSENT,   /* unset, null, false or empty */
    ROOM,     /* -1, or room for a record */
    FILED,    /* absent, or "default" */
};

static const struct rule {
    const char *key;
    enum rule_kind kind;
    unsigned of;
} rules[] = {
    { "name", SAME, ALL },
    { "subjects", SAME, ALL },
    { "retention", SAME, ALL },
    { "storage", SAME, ALL },
    { "discard", SAME, ALL }, /* "new" refuses what is to be appended */
    { "max_age", DURATION, KEPT },
    { "max_msgs", SAME, KEPT },
    { "max_bytes", SAME, KEPT },
    { "max_msgs_per_subject", SAME, KEPT },
    { "max_consumers", SAME, BIT(JOURNAL) },
    { "max_msg_size", ROOM, ALL },
    { "no_ack", ABSENT, ALL },
    { "sealed", ABSENT, ALL },
    { "deny_delete", ABSENT, KEPT },
    { "deny_purge", ABSENT, BIT(DLQ) },
    { "mirror", ABSENT, ALL },
    { "sources", ABSENT, ALL },
    { "subject_transform", ABSENT, ALL },
    { "persist_mode", FILED, ALL }, /* "async" answers before it is written */
};

static bool is_absent(const json_t *value)
{
    switch (value == NULL ? JSON_NULL : json_typeof(value)) {
    case JSON_NULL:
    case JSON_FALSE:
        return true;
    case JSON_ARRAY:
        return json_array_size(value) == 0;
    case JSON_OBJECT:
    case JSON_STRING:
    case JSON_INTEGER:
    case JSON_REAL:
    case JSON_TRUE:
    default:
        return false;
    }
}

static bool is_met(const struct rule *rule, const json_t *wanted, const json_t *found)
{
    const char *text = json_string_value(found);
    switch (rule->kind) {
    case ABSENT:
        return is_absent(found);
    case FILED:
        return is_absent(found) ||
               (text != NULL && (text[0] == '\0' || strcmp(text, "default") == 0));
    case ROOM:
        return json_integer_value(found) == -1 || json_integer_value(found) >= MESSAGE_SIZE;
    case SAME:
    case DURATION:
    default:
        return found != NULL && json_equal(wanted, found) == 1;
    }
}

static void print_duration(json_int_t ns, char *to, size_t size)
{
    if (ns == 0)
        pw_print(to, size, "0");
    else if (ns % SECOND_NS == 0)
        pw_print(to, size, "%llds", (long long)(ns / SECOND_NS));
    else if (ns % MILLISECOND_NS == 0)
        pw_print(to, size, "%lldms", (long long)(ns / MILLISECOND_NS));
    else
        pw_print(to, size, "%lldns", (long long)ns);
}

static void print_value(const struct rule *rule, const json_t *value, char *to, size_t size)
{
    if (value == NULL || json_is_null(value)) {
        pw_print(to, size, "unset");
    } else if (rule->kind == DURATION && json_is_integer(value)) {
        print_duration(json_integer_value(value), to, size);
    } else if (json_is_string(value)) {
        pw_print(to, size, "%s", json_string_value(value));
    } else {
        size_t used = json_dumpb(value, to, size - 1, JSON_COMPACT | JSON_ENCODE_ANY);
        to[used < size - 1 ? used : size - 1] = '\0';
    }
}

static pawl_err say_unmet(const struct rule *rule, const json_t *wanted, const json_t *found,
                          const char *name, pawl_why *why)
{
    char is[80] = "";
    char must[80] = "unset";
    print_value(rule, found, is, sizeof(is));
    if (rule->kind == ROOM)
        pw_print(must, sizeof(must), "-1, or at least %lld", (long long)MESSAGE_SIZE);
    else if (rule->kind != ABSENT && rule->kind != FILED)
        print_value(rule, wanted, must, sizeof(must));
    return pw_fail(why, PAWL_E_CONFIG, "stream %s: %s is %s; must be %s", name, rule->key, is,
                   must);
}

pawl_err pw_stream_compare(enum pw_stream_kind kind, const json_t *wanted, const json_t *found,
                           pawl_why *why)
{
    const char *name = json_string_value(json_object_get(wanted, "name"));
    for (size_t i = 0; i < PW_COUNT(rules); i++) {
        const struct rule *rule = &rules[i];
        const json_t *must = json_object_get(wanted, rule->key);
        const json_t *is = json_object_get(found, rule->key);
        if ((rule->of >> kind & 1) != 0 && !is_met(rule, must, is))
            return say_unmet(rule, must, is, name, why);
    }
    return PAWL_OK;
}

/* --- on the server ------------------------------------------------------------------------ */

static pawl_err ask(natsConnection *connection, const char *what, const char *name,
                    const json_t *request, json_t **info, pawl_why *why)
{
    char verb[PW_STREAM_NAME_SIZE + 32] = "";
    pw_print(verb, sizeof(verb), "STREAM.%s.%s", what, name);
    pawl_err err = pw_api_call(connection, verb, request, ANSWER_MS, info, NULL, why);
    return err == PAWL_OK || err == PAWL_E_NOT_FOUND ? err
                                                     : pw_fail_in(why, err, "stream %s", name);
}

static pawl_err look(natsConnection *connection, enum pw_stream_kind kind, const json_t *wanted,
                     json_t **info, pawl_why *why)
{
    const char *name = json_string_value(json_object_get(wanted, "name"));
    pawl_err err = ask(connection, "INFO", name, NULL, info, why);
    if (err == PAWL_E_NOT_FOUND)
        return pw_fail(why, err, "stream %s: missing", name);
    if (err != PAWL_OK)
        return err;
    err = pw_stream_compare(kind, wanted, json_object_get(*info, "config"), why);
    if (err == PAWL_OK)
        return err;
    json_decref(*info);
    *info = NULL;
    return err;
}

/* Another owner may make it at the same moment: what is there then is looked at. */
static pawl_err make(natsConnection *connection, enum pw_stream_kind kind, const json_t *wanted,
                     json_t **info, pawl_why *why)
{
    pawl_why again = { "" };
    const char *name = json_string_value(json_object_get(wanted, "name"));
    pawl_err err = ask(connection, "CREATE", name, wanted, info, why);
    if (err != PAWL_E_CONFIG)
        return err;
    pawl_err found = look(connection, kind, wanted, info, &again);
    if (found == PAWL_E_NOT_FOUND)
        return err;
    if (found != PAWL_OK)
        return pw_fail(why, found, "%s", again.text);
    return PAWL_OK;
}

static void hand_over(json_t *info, json_t **to)
{
    if (to != NULL)
        *to = info;
    else
        json_decref(info);
}

pawl_err pw_stream_check(natsConnection *connection, const struct pw_stream *stream, json_t **info,
                         pawl_why *why)
{
    json_t *found = NULL;
    json_t *wanted = pw_stream_config(stream->kind, stream->ns, stream->shard, stream->replicas);
    if (wanted == NULL)
        return pw_fail(why, PAWL_E_NOMEM, "out of memory");
    pawl_err err = look(connection, stream->kind, wanted, &found, why);
    json_decref(wanted);
    if (err == PAWL_OK)
        hand_over(found, info);
    return err;
}

pawl_err pw_stream_ensure(natsConnection *connection, const struct pw_stream *stream, json_t **info,
                          bool *made, pawl_why *why)
{
    pawl_why what = { "" };
    json_t *found = NULL;
    json_t *wanted = pw_stream_config(stream->kind, stream->ns, stream->shard, stream->replicas);
    if (wanted == NULL)
        return pw_fail(why, PAWL_E_NOMEM, "out of memory");
    pawl_err err = look(connection, stream->kind, wanted, &found, &what);
    bool missing = err == PAWL_E_NOT_FOUND;
    if (missing)
        err = make(connection, stream->kind, wanted, &found, &what);
    json_decref(wanted);
    if (err != PAWL_OK)
        return pw_fail(why, err, "%s", what.text);
    hand_over(found, info);
    if (made != NULL)
        *made = missing;
    return PAWL_OK;
}
