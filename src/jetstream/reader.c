/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads of the stream in order, by an ephemeral consumer that acknowledges nothing and is kept
 * while the reads go on where the last one ended; and single entries, from the stream's leader.
 * The relay's thread. */
#include <inttypes.h>
#include <string.h>

#include "jetstream/adapter.h"

/* How often a waiting call looks whether it is to end, and how long it waits in all. */
#define SLICE_MS 100
#define ANSWER_MS 5000

/* --- the consumer --------------------------------------------------------------------------- */

static pawl_err open_reader(struct pw_jetstream *adapter, natsConnection *connection, uint64_t turn,
                            uint64_t from_seq, bool heads)
{
    struct pw_reader *reader = &adapter->reader;
    pw_browse_close(&reader->browse);
    pawl_err err =
        pw_browse_open(&reader->browse, connection, adapter->place.stream, NULL, from_seq, heads);
    reader->turn = turn;
    reader->next_seq = from_seq;
    reader->heads = heads;
    return err == PAWL_E_NOT_FOUND ? PAWL_E_IO : err; /* the stream is gone: look again */
}

static pawl_err continue_reader(struct pw_jetstream *adapter, uint64_t from_seq, bool heads)
{
    struct pw_reader *reader = &adapter->reader;
    natsConnection *connection = NULL;
    uint64_t turn = 0;
    pawl_err err = pw_jetstream_reach(adapter, &connection, &turn, NULL);
    if (err != PAWL_OK)
        return err;
    if (reader->browse.pull.sub != NULL && reader->turn == turn && reader->next_seq == from_seq &&
        reader->heads == heads)
        return PAWL_OK;
    return open_reader(adapter, connection, turn, from_seq, heads);
}

/* --- a batch -------------------------------------------------------------------------------- */

static enum pw_pulled wait_for_next(struct pw_jetstream *adapter, natsMsg **msg,
                                    struct pw_pulled_from *from)
{
    enum pw_pulled pulled = PW_PULLED_NOTHING;
    uint64_t until_ms = pw_jetstream_now(adapter) + ANSWER_MS;
    do
        pulled = pw_pull_next(&adapter->reader.browse.pull, SLICE_MS, msg, from);
    while (pulled == PW_PULLED_NOTHING && !pw_jetstream_is_halted(adapter) &&
           pw_link_turn(adapter->link) == adapter->reader.turn &&
           pw_jetstream_now(adapter) < until_ms);
    return pulled;
}

/* What a call of read() hands over. */
struct reading {
    struct pw_jetstream *adapter;
    pw_entry_seen seen;
    void *arg;
    uint64_t last_seq; /* of the last look: where it ends */
    uint64_t next_seq;
    size_t handed;
    bool through;
};

/* Takes the message. */
static void hand_over(struct reading *reading, natsMsg *msg, const struct pw_pulled_from *from)
{
    struct pw_entry_room room;
    reading->adapter->reader.browse.pending = from->pending;
    if (from->seq > reading->last_seq) {
        reading->through = true;
    } else {
        pw_entry_of(&reading->adapter->place, msg, from->seq, from->stored_ms, &room);
        reading->seen(reading->arg, &room.entry);
        reading->handed++;
        reading->next_seq = from->seq + 1;
        reading->through = from->seq == reading->last_seq || from->pending == 0;
    }
    natsMsg_Destroy(msg);
}

/* One request: all that it brings. Records that were replaced meanwhile make it end early. */
static pawl_err read_batch(struct reading *reading, size_t most)
{
    struct pw_reader *reader = &reading->adapter->reader;
    size_t batch = most < PW_PULL_BATCH_MAX ? most : PW_PULL_BATCH_MAX;
    if (batch > reader->browse.pending)
        batch = (size_t)reader->browse.pending;
    pawl_err err = pw_pull_ask(&reader->browse.pull, batch, 0);
    while (err == PAWL_OK && reader->browse.pull.owed > 0 && !reading->through) {
        natsMsg *msg = NULL;
        struct pw_pulled_from from = { 0 };
        enum pw_pulled pulled = wait_for_next(reading->adapter, &msg, &from);
        if (pulled == PW_PULLED_MESSAGE)
            hand_over(reading, msg, &from);
        else if (pulled != PW_PULLED_END)
            err = PAWL_E_IO;
    }
    return err;
}

/* Nothing came of a request: nothing is there any more. */
static pawl_err read_batches(struct reading *reading, size_t most)
{
    struct pw_reader *reader = &reading->adapter->reader;
    pawl_err err = PAWL_OK;
    while (err == PAWL_OK && reading->handed < most && !reading->through) {
        size_t before = reading->handed;
        if (reader->browse.pending == 0)
            reading->through = true;
        else
            err = read_batch(reading, most - reading->handed);
        if (reading->handed == before)
            reading->through = true;
    }
    return err;
}

pawl_err pw_jetstream_read(struct pw_journal *journal, uint64_t from_seq, bool heads, size_t most,
                           pw_entry_seen seen, void *arg, uint64_t *next_seq, bool *through)
{
    struct pw_jetstream *adapter = pw_jetstream_of(journal);
    struct reading reading = { .adapter = adapter,
                               .seen = seen,
                               .arg = arg,
                               .last_seq = adapter->looked.last_seq,
                               .next_seq = from_seq };
    pawl_err err = pw_jetstream_is_halted(adapter) ? PAWL_E_IO : PAWL_OK;
    if (err == PAWL_OK && from_seq > reading.last_seq)
        reading.through = true;
    else if (err == PAWL_OK)
        err = continue_reader(adapter, from_seq > 0 ? from_seq : 1, heads);
    if (err == PAWL_OK)
        err = read_batches(&reading, most);
    adapter->reader.next_seq = reading.next_seq;
    if (err != PAWL_OK || reading.through)
        pw_browse_close(&adapter->reader.browse);
    if (err != PAWL_OK)
        return err;
    if (reading.through && reading.next_seq <= reading.last_seq)
        reading.next_seq = reading.last_seq + 1; /* what was there is gone */
    *next_seq = reading.next_seq;
    *through = reading.through;
    return PAWL_OK;
}

/* --- single entries ------------------------------------------------------------------------- */

static pawl_err err_of(natsStatus status, jsErrCode code)
{
    if (code == PW_API_NO_MESSAGE || status == NATS_NOT_FOUND)
        return PAWL_E_NOT_FOUND;
    return status == NATS_OK ? PAWL_OK : PAWL_E_IO;
}

/* By the stream's leader: a direct get may be answered by a copy that lags behind. */
pawl_err pw_last_message(natsConnection *connection, const char *stream, const char *subject,
                         natsMsg **msg)
{
    jsCtx *context = NULL;
    jsOptions options;
    jsErrCode code = 0;
    natsStatus status = jsOptions_Init(&options);
    options.Wait = PW_API_MS;
    if (status == NATS_OK)
        status = natsConnection_JetStream(&context, connection, &options);
    if (status == NATS_OK)
        status = js_GetLastMsg(msg, context, stream, subject, NULL, &code);
    jsCtx_Destroy(context);
    return err_of(status, code);
}

pawl_err pw_jetstream_last(struct pw_journal *journal, const char *machine, const char *id,
                           pw_entry_seen seen, void *arg)
{
    struct pw_jetstream *adapter = pw_jetstream_of(journal);
    char subject[PW_SUBJECT_MAX] = "";
    struct pw_entry_room room;
    natsConnection *connection = NULL;
    uint64_t turn = 0;
    natsMsg *msg = NULL;
    if (!pw_subject_journal(subject, adapter->place.ns, adapter->place.shard, machine, id))
        return PAWL_E_USAGE;
    pawl_err err = pw_jetstream_reach(adapter, &connection, &turn, NULL);
    if (err == PAWL_OK)
        err = pw_last_message(connection, adapter->place.stream, subject, &msg);
    if (err != PAWL_OK)
        return err;
    pw_entry_of(&adapter->place, msg, natsMsg_GetSequence(msg),
                (uint64_t)natsMsg_GetTime(msg) / 1000000, &room);
    seen(arg, &room.entry);
    natsMsg_Destroy(msg);
    return PAWL_OK;
}
