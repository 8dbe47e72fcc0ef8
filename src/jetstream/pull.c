/* SPDX-License-Identifier: Apache-2.0
 *
 * Pull requests ($JS.API.CONSUMER.MSG.NEXT.<stream>.<consumer>) and what comes of them. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "jetstream/link.h"
#include "jetstream/pull.h"

#define FLUSH_MS 1000

static natsStatus subscribe(struct pw_pull *pull, natsConnection *connection)
{
    natsStatus status = pw_inbox_print(pull->inbox);
    if (status == NATS_OK)
        status = natsConnection_SubscribeSync(&pull->sub, connection, pull->inbox);
    if (status == NATS_OK) /* what is asked for bounds it */
        status = natsSubscription_SetPendingLimits(pull->sub, -1, -1);
    return status;
}

pawl_err pw_pull_open(struct pw_pull *pull, natsConnection *connection, const char *stream,
                      const char *consumer)
{
    pw_print(pull->subject, sizeof(pull->subject), "$JS.API.CONSUMER.MSG.NEXT.%s.%s", stream,
             consumer);
    pull->owed = 0;
    natsStatus status = subscribe(pull, connection);
    if (status != NATS_OK) {
        pw_pull_close(pull);
        return pw_nats_err(status);
    }
    pull->connection = connection;
    return PAWL_OK;
}

/* What the server still sends may be in the hands of the library's reading thread, which (3.4) uses
 * the subscription without a reference: it is freed when all that came before the answer to a ping
 * has been read. */
void pw_pull_close(struct pw_pull *pull)
{
    if (pull->sub != NULL && natsSubscription_Unsubscribe(pull->sub) == NATS_OK)
        (void)natsConnection_FlushTimeout(pull->connection, FLUSH_MS); /* away: nothing is read */
    natsSubscription_Destroy(pull->sub);
    *pull = (struct pw_pull){ 0 };
}

pawl_err pw_pull_ask(struct pw_pull *pull, size_t batch, uint64_t wait_ms)
{
    char request[128] = "";
    if (wait_ms == 0)
        pw_print(request, sizeof(request), "{\"batch\":%zu,\"max_bytes\":%u,\"no_wait\":true}",
                 batch, PW_PULL_BYTES_MAX);
    else
        pw_print(request, sizeof(request),
                 "{\"batch\":%zu,\"max_bytes\":%u,\"expires\":%" PRIu64 "}", batch,
                 PW_PULL_BYTES_MAX, wait_ms * 1000000);
    natsStatus status =
        natsConnection_PublishRequestString(pull->connection, pull->subject, pull->inbox, request);
    if (status != NATS_OK)
        return pw_nats_err(status);
    pull->owed = batch;
    return PAWL_OK;
}

/* $JS.ACK.<stream>.<consumer>.<deliveries>.<seq>.<of the consumer>.<time in ns>.<pending>, or, with
 * domain and account before the stream: $JS.ACK.<domain>.<account>.<stream>... and more behind. */
#define TOKENS_MAX 13
#define TOKENS_SHORT 9

static size_t split(const char *subject, const char *tokens[TOKENS_MAX])
{
    size_t count = 0;
    for (const char *at = subject; at != NULL && count < TOKENS_MAX; count++) {
        tokens[count] = at;
        at = strchr(at, '.');
        at = at != NULL ? at + 1 : NULL;
    }
    return count;
}

static bool read_reply(const char *reply, struct pw_pulled_from *from)
{
    static const char prefix[] = "$JS.ACK.";
    const char *tokens[TOKENS_MAX] = { NULL };
    if (reply == NULL || strncmp(reply, prefix, sizeof(prefix) - 1) != 0)
        return false;
    size_t count = split(reply, tokens);
    if (count < TOKENS_SHORT || count == TOKENS_SHORT + 1)
        return false;
    size_t first = count == TOKENS_SHORT ? 5 : 7;
    from->seq = strtoull(tokens[first], NULL, 10);
    from->stored_ms = strtoull(tokens[first + 2], NULL, 10) / 1000000;
    from->pending = strtoull(tokens[first + 3], NULL, 10);
    return true;
}

/* From 2.10 on a request with a limit of bytes has an end of its own ("Batch Completed"), which
 * comes behind its last message, when the next one may have been asked for. False: it brought all.
 */
static bool is_owing(natsMsg *msg)
{
    const char *pending = NULL;
    return natsMsgHeader_Get(msg, "Nats-Pending-Messages", &pending) == NATS_OK &&
           strcmp(pending, "0") != 0;
}

/* 404: no messages; 408: time is over, or others ask; 409: of several causes; only when bytes were
 * the limit there is more at once. 100 is no end, and not asked for. */
static enum pw_pulled read_status(natsMsg *msg)
{
    const char *status = NULL;
    const char *text = NULL;
    if (natsMsgHeader_Get(msg, "Status", &status) != NATS_OK || strcmp(status, "100") == 0)
        return PW_PULLED_NOTHING;
    if (strcmp(status, "404") == 0 || strcmp(status, "408") == 0)
        return PW_PULLED_END;
    if (strcmp(status, "409") != 0 || natsMsgHeader_Get(msg, "Description", &text) != NATS_OK)
        return PW_PULLED_ERROR;
    if (strstr(text, "Batch Completed") != NULL)
        return is_owing(msg) ? PW_PULLED_END : PW_PULLED_NOTHING;
    return strstr(text, "MaxBytes") != NULL ? PW_PULLED_END : PW_PULLED_ERROR;
}

static enum pw_pulled classify(struct pw_pull *pull, natsMsg *msg, struct pw_pulled_from *from)
{
    if (read_reply(natsMsg_GetReply(msg), from)) {
        pull->owed -= pull->owed > 0 ? 1 : 0;
        return PW_PULLED_MESSAGE;
    }
    enum pw_pulled pulled = read_status(msg);
    if (pulled != PW_PULLED_NOTHING)
        pull->owed = 0;
    return pulled;
}

static enum pw_pulled take(struct pw_pull *pull, uint64_t wait_ms, natsMsg **msg,
                           struct pw_pulled_from *from)
{
    natsStatus status = natsSubscription_NextMsg(msg, pull->sub, (int64_t)wait_ms);
    if (status == NATS_OK)
        return classify(pull, *msg, from);
    if (status == NATS_TIMEOUT)
        return PW_PULLED_NOTHING;
    if (status != NATS_NO_RESPONDERS)
        return PW_PULLED_CLOSED;
    pull->owed = 0;
    return PW_PULLED_ERROR;
}

enum pw_pulled pw_pull_next(struct pw_pull *pull, uint64_t wait_ms, natsMsg **msg,
                            struct pw_pulled_from *from)
{
    natsMsg *next = NULL;
    enum pw_pulled pulled = take(pull, wait_ms, &next, from);
    while (pulled == PW_PULLED_NOTHING && next != NULL) { /* it said nothing of this request */
        natsMsg_Destroy(next);
        next = NULL;
        pulled = take(pull, wait_ms, &next, from);
    }
    if (pulled == PW_PULLED_MESSAGE)
        *msg = next;
    else
        natsMsg_Destroy(next);
    return pulled;
}
