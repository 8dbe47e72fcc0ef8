/* SPDX-License-Identifier: Apache-2.0
 *
 * One request, one answer. */
#include <string.h>

#include "jetstream/api.h"
#include "jetstream/link.h"

#define SUBJECT_SIZE 256
/* JetStream's own error codes, as its errors.json lists them. */
#define NOT_ENABLED_FOR_ACCOUNT 10039
#define NO_SUITABLE_PEERS 10005

/* Request as text; NULL: out of memory. Ended by pw_free. */
static char *print_request(const json_t *request, size_t *size)
{
    const size_t flags = JSON_COMPACT;
    if (request == NULL) {
        *size = 0;
        return pw_alloc(1);
    }
    size_t needed = json_dumpb(request, NULL, 0, flags);
    char *text = needed > 0 ? pw_alloc(needed) : NULL;
    if (text == NULL)
        return NULL;
    *size = json_dumpb(request, text, needed, flags);
    if (*size == needed)
        return text;
    pw_free(text);
    return NULL;
}

/* The server says it only behind the request's back: the request itself gets no answer. */
static bool was_refused(natsConnection *connection, const char *subject)
{
    char quoted[SUBJECT_SIZE + 3] = ""; /* as the server says it */
    const char *last = NULL;
    pw_print(quoted, sizeof(quoted), "\"%s\"", subject);
    return natsConnection_GetLastError(connection, &last) == NATS_NOT_PERMITTED && last != NULL &&
           strstr(last, quoted) != NULL;
}

static pawl_err say_unanswered(natsConnection *connection, natsStatus status, const char *subject,
                               pawl_why *why)
{
    if (was_refused(connection, subject))
        return pw_fail(why, PAWL_E_CONFIG, "%s: not permitted to this user", subject);
    if (status == NATS_NO_RESPONDERS)
        return pw_fail(why, PAWL_E_IO, "%s: nobody answers: no JetStream there, or no leader now",
                       subject);
    return pw_fail(why, pw_nats_err(status), "%s: %s", subject, natsStatus_GetText(status));
}

static bool may_pass(json_int_t http, int code)
{
    return (http == 503 && code != NOT_ENABLED_FOR_ACCOUNT) || code == NO_SUITABLE_PEERS;
}

static pawl_err err_of(json_int_t http, int code)
{
    switch (code) {
    case PW_API_NO_STREAM:
    case PW_API_NO_CONSUMER:
    case PW_API_NO_MESSAGE:
        return PAWL_E_NOT_FOUND;
    default:
        return may_pass(http, code) ? PAWL_E_IO : PAWL_E_CONFIG;
    }
}

static pawl_err check_answer(const json_t *answer, const char *subject, int *code, pawl_why *why)
{
    const json_t *error = json_object_get(answer, "error");
    if (error == NULL)
        return PAWL_OK;
    const char *text = json_string_value(json_object_get(error, "description"));
    *code = (int)json_integer_value(json_object_get(error, "err_code"));
    return pw_fail(why, err_of(json_integer_value(json_object_get(error, "code")), *code),
                   "%s: %.128s (%d)", subject, text != NULL ? text : "error without text", *code);
}

/* Takes the message. */
static pawl_err read_answer(natsMsg *message, const char *subject, json_t **answer, int *code,
                            pawl_why *why)
{
    json_error_t error;
    json_t *loaded =
        json_loadb(natsMsg_GetData(message), (size_t)natsMsg_GetDataLength(message), 0, &error);
    natsMsg_Destroy(message);
    if (loaded == NULL)
        return pw_fail(why, PAWL_E_IO, "%s: the answer is not JSON: %.64s", subject, error.text);
    pawl_err err = check_answer(loaded, subject, code, why);
    if (err == PAWL_OK)
        *answer = loaded;
    else
        json_decref(loaded);
    return err;
}

pawl_err pw_api_call(natsConnection *connection, const char *verb, const json_t *request,
                     uint64_t time_ms, json_t **answer, int *code, pawl_why *why)
{
    char subject[SUBJECT_SIZE] = "";
    size_t size = 0;
    natsMsg *message = NULL;
    int unwanted = 0;
    pw_print(subject, sizeof(subject), "$JS.API.%s", verb);
    char *text = print_request(request, &size);
    if (text == NULL)
        return pw_fail(why, PAWL_E_NOMEM, "%s: out of memory", subject);
    natsStatus status =
        natsConnection_Request(&message, connection, subject, text, (int)size, (int64_t)time_ms);
    pw_free(text);
    if (status != NATS_OK)
        return say_unanswered(connection, status, subject, why);
    return read_answer(message, subject, answer, code != NULL ? code : &unwanted, why);
}
