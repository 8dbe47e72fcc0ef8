/* SPDX-License-Identifier: Apache-2.0
 *
 * js_PublishMsgAsync in a loop. A message is made when it is published, as nobody can avoid it. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "bench/bare_nats.h"
#include "bench/support.h"
#include "core/codec.h"
#include "jetstream/entry.h"
#include "jetstream/streams.h"

#define FINISH_MS 60000

void bare_nats_must(natsStatus status, const char *doing)
{
    if (status == NATS_OK)
        return;
    bench_say("bare nats: %s: %s", doing, natsStatus_GetText(status));
    exit(1);
}

/* --- records ------------------------------------------------------------------------------ */

static void print_record(struct bare_record *record, const struct tape_op *op)
{
    struct pw_heads heads;
    if (pw_record_heads(op->value, &heads) != PAWL_OK ||
        !pw_subject_journal(record->subject, BENCH_NS, 0, heads.machine, heads.id))
        abort();
    pw_print(record->lsn, sizeof(record->lsn), "%" PRIu64, pw_get_u64(op->key.data));
    if (heads.task)
        pw_print(record->task, sizeof(record->task), "%s/%s@%" PRIu64, heads.machine, heads.id,
                 heads.epoch);
    record->bytes = op->value;
}

struct bare_record *bare_records(const struct tape *tape, size_t *count)
{
    struct bare_record *records = pw_alloc((tape->changes + 1) * sizeof(*records));
    if (records == NULL)
        abort();
    *count = 0;
    for (size_t i = 0; i < tape->count && *count < tape->changes; i++)
        if (tape->ops[i].table == PW_OUTBOX && !tape->ops[i].del)
            print_record(&records[(*count)++], &tape->ops[i]);
    return records;
}

/* --- appending ---------------------------------------------------------------------------- */

static void make_stream(struct bare_nats *nats)
{
    struct pw_stream stream = { PW_STREAM_JOURNAL, BENCH_NS, 0, 0 };
    pawl_why why = { "" };
    char subject[PW_SUBJECT_MAX] = "";
    jsPubAck *ack = NULL;
    bench_must(pw_stream_ensure(nats->connection, &stream, NULL, NULL, &why), &why, "the stream");
    if (!pw_subject_fence(subject, BENCH_NS, 0))
        abort();
    bare_nats_must(js_Publish(&ack, nats->js, subject, "", 0, NULL, NULL), "publish");
    nats->last_seq = ack->Sequence;
    jsPubAck_Destroy(ack);
}

void bare_nats_open(struct bare_nats *nats, const char *bus, jsPubAckHandler on_ack, void *arg)
{
    jsOptions options;
    *nats = (struct bare_nats){ .options = NULL };
    bare_nats_must(natsOptions_Create(&nats->options), "options");
    bare_nats_must(natsOptions_SetURL(nats->options, bus), "options");
    bare_nats_must(natsConnection_Connect(&nats->connection, nats->options), "connect");
    bare_nats_must(jsOptions_Init(&options), "options");
    options.PublishAsync.MaxPending = PW_WINDOW;
    options.PublishAsync.StallWait = FINISH_MS;
    options.PublishAsync.AckHandler = on_ack;
    options.PublishAsync.AckHandlerClosure = arg;
    bare_nats_must(natsConnection_JetStream(&nats->js, nats->connection, &options), "jetstream");
    make_stream(nats);
}

void bare_nats_append(struct bare_nats *nats, const struct bare_record *record)
{
    natsMsg *msg = NULL;
    jsPubOptions options;
    bare_nats_must(
        natsMsg_Create(&msg, record->subject, NULL, record->bytes.data, (int)record->bytes.size),
        "message");
    bare_nats_must(natsMsgHeader_Set(msg, PW_HEADER_LSN, record->lsn), "header");
    if (record->task[0] != '\0')
        bare_nats_must(natsMsgHeader_Set(msg, PW_HEADER_TASK, record->task), "header");
    bare_nats_must(jsPubOptions_Init(&options), "options");
    options.ExpectLastSeq = nats->last_seq++;
    bare_nats_must(js_PublishMsgAsync(nats->js, &msg, &options), "publish");
}

void bare_nats_finish(struct bare_nats *nats)
{
    jsPubOptions options;
    natsMsgList refused = { .Count = 0 };
    bare_nats_must(jsPubOptions_Init(&options), "options");
    options.MaxWait = FINISH_MS;
    bare_nats_must(js_PublishAsyncComplete(nats->js, &options), "complete");
    (void)js_PublishAsyncGetPendingList(&refused, nats->js); /* NATS_NOT_FOUND: none */
    if (refused.Count > 0)
        bare_nats_must(NATS_ERR, "some are unanswered");
    natsMsgList_Destroy(&refused);
}

void bare_nats_close(struct bare_nats *nats)
{
    jsCtx_Destroy(nats->js);
    natsConnection_Destroy(nats->connection);
    natsOptions_Destroy(nats->options);
}
