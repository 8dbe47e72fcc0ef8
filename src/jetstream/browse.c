/* SPDX-License-Identifier: Apache-2.0
 *
 * See browse.h. */
#include "jetstream/api.h"
#include "jetstream/browse.h"

/* A consumer that nobody asks is forgotten by the server. */
#define IDLE_NS (INT64_C(30) * 1000000000)
#define ANSWER_MS 5000

static json_t *request_of(const char *stream, const char *filter, uint64_t from_seq, bool heads)
{
    return json_pack("{s:s, s:{s:s, s:I, s:s, s:s, s:b, s:b, s:I, s:s*}}", "stream_name", stream,
                     "config", "deliver_policy", "by_start_sequence", "opt_start_seq",
                     (json_int_t)from_seq, "ack_policy", "none", "replay_policy", "instant",
                     "headers_only", heads ? 1 : 0, "mem_storage", 1, "inactive_threshold",
                     (json_int_t)IDLE_NS, "filter_subject", filter);
}

static pawl_err make_consumer(natsConnection *connection, const char *stream, const char *filter,
                              uint64_t from_seq, bool heads, json_t **answer)
{
    char verb[PW_PULL_NAME_SIZE] = "";
    json_t *request = request_of(stream, filter, from_seq, heads);
    if (request == NULL)
        return PAWL_E_NOMEM;
    pw_print(verb, sizeof(verb), "CONSUMER.CREATE.%s", stream);
    pawl_err err = pw_api_call(connection, verb, request, ANSWER_MS, answer, NULL, NULL);
    json_decref(request);
    return err;
}

pawl_err pw_browse_open(struct pw_browse *browse, natsConnection *connection, const char *stream,
                        const char *filter, uint64_t from_seq, bool heads)
{
    json_t *answer = NULL;
    pawl_err err = make_consumer(connection, stream, filter, from_seq, heads, &answer);
    if (err != PAWL_OK)
        return err;
    const char *name = json_string_value(json_object_get(answer, "name"));
    pw_print(browse->consumer, sizeof(browse->consumer), "%s.%s", stream, name != NULL ? name : "");
    browse->pending = (uint64_t)json_integer_value(json_object_get(answer, "num_pending"));
    err = pw_pull_open(&browse->pull, connection, stream, name != NULL ? name : "");
    json_decref(answer);
    return err;
}

void pw_browse_close(struct pw_browse *browse)
{
    char subject[2 * PW_PULL_NAME_SIZE + 96] = "";
    if (browse->pull.sub == NULL)
        return;
    pw_print(subject, sizeof(subject), "$JS.API.CONSUMER.DELETE.%s", browse->consumer);
    /* A courtesy: it goes by itself as well. */
    (void)natsConnection_PublishString(browse->pull.connection, subject, "");
    pw_pull_close(&browse->pull);
}
