/* SPDX-License-Identifier: Apache-2.0
 *
 * What comes back: a durable pull consumer of this opening. Made, looked after, and made anew here,
 * since a consumer that is gone, or whose stream lost its end, just delivers nothing. The
 * subscriber's thread, but for pw_consumer_begin(). */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "jetstream/adapter.h"

/* How long a call waits for the first message. */
#define WAIT_MS 500
/* A request ends after so long at the server; unanswered for a second more, it is lost. */
#define REQUEST_MS 2000
#define REQUEST_LOST_MS 3000
/* After so long without anything the consumer is looked at, when something is expected. */
#define QUIET_MS 2000
/* After an error, so that it is not repeated in a tight loop. */
#define PAUSE_MS 50

void pw_consumer_init(struct pw_consumer *consumer)
{
    (void)pthread_mutex_init(&consumer->lock, NULL); /* cannot fail on Linux */
    pw_wake_init(&consumer->wake);
}

void pw_consumer_fini(struct pw_consumer *consumer)
{
    pw_wake_fini(&consumer->wake);
    (void)pthread_mutex_destroy(&consumer->lock);
}

/* --- the relay's wish --------------------------------------------------------------------- */

void pw_consumer_begin(struct pw_consumer *consumer, uint32_t fence, uint64_t seq)
{
    pthread_mutex_lock(&consumer->lock);
    consumer->wish++;
    consumer->wish_seq = seq + 1;
    consumer->fence = fence;
    pthread_mutex_unlock(&consumer->lock);
    pw_poke(&consumer->wake);
}

struct wish {
    uint64_t number;
    uint64_t seq;
    uint32_t fence;
};

static struct wish wish_of(struct pw_consumer *consumer)
{
    pthread_mutex_lock(&consumer->lock);
    struct wish wish = { consumer->wish, consumer->wish_seq, consumer->fence };
    pthread_mutex_unlock(&consumer->lock);
    return wish;
}

/* --- making it ------------------------------------------------------------------------------ */

static pawl_err call(natsConnection *connection, const char *what, const char *stream,
                     const char *name, const json_t *request, json_t **answer)
{
    char verb[PW_PULL_NAME_SIZE + 96] = "";
    pw_print(verb, sizeof(verb), "%s.%s%s%s", what, stream, name[0] != '\0' ? "." : "", name);
    return pw_api_call(connection, verb, request, PW_API_MS, answer, NULL, NULL);
}

static pawl_err delete_consumer(natsConnection *connection, const char *stream, const char *name)
{
    json_t *answer = NULL;
    pawl_err err = call(connection, "CONSUMER.DELETE", stream, name, NULL, &answer);
    json_decref(answer);
    return err == PAWL_E_NOT_FOUND ? PAWL_OK : err;
}

static pawl_err create_consumer(natsConnection *connection, const struct pw_place *place,
                                const char *name, uint64_t seq)
{
    json_t *answer = NULL;
    json_t *request = pw_consumer_config(place->ns, place->shard, name, seq);
    if (request == NULL)
        return PAWL_E_NOMEM;
    pawl_err err =
        call(connection, "CONSUMER.DURABLE.CREATE", place->stream, name, request, &answer);
    json_decref(request);
    json_decref(answer);
    return err;
}

/* Of an owner of before: pawl_<shard>_<a lower fence>. */
static bool is_older(const struct pw_place *place, const char *name, uint32_t fence)
{
    char prefix[PW_PULL_NAME_SIZE] = "";
    char *end = NULL;
    pw_print(prefix, sizeof(prefix), "pawl_%" PRIu32 "_", place->shard);
    size_t length = strlen(prefix);
    if (strncmp(name, prefix, length) != 0 || name[length] < '0' || name[length] > '9')
        return false;
    unsigned long long number = strtoull(name + length, &end, 10);
    return *end == '\0' && number < fence;
}

/* Best effort: one that stays costs the server a little, and the next opening tries again. */
static void delete_older(natsConnection *connection, const struct pw_place *place, uint32_t fence)
{
    json_t *answer = NULL;
    size_t index = 0;
    const json_t *name = NULL;
    if (call(connection, "CONSUMER.NAMES", place->stream, "", NULL, &answer) != PAWL_OK)
        return;
    json_array_foreach(json_object_get(answer, "consumers"), index,
                       name) if (json_is_string(name) &&
                                 is_older(place, json_string_value(name), fence))(void)
        delete_consumer(connection, place->stream, json_string_value(name));
    json_decref(answer);
}

static pawl_err make(struct pw_jetstream *adapter, natsConnection *connection, uint64_t turn,
                     const struct wish *wish, uint64_t seq)
{
    struct pw_consumer *consumer = &adapter->consumer;
    const char *stream = adapter->place.stream;
    pw_pull_close(&consumer->pull);
    consumer->reply[0] = '\0';
    pw_print(consumer->name, sizeof(consumer->name), "pawl_%" PRIu32 "_%" PRIu32,
             adapter->place.shard, wish->fence);
    pawl_err err = delete_consumer(connection, stream, consumer->name);
    if (err == PAWL_OK)
        err = create_consumer(connection, &adapter->place, consumer->name, seq);
    if (err != PAWL_OK)
        return err;
    delete_older(connection, &adapter->place, wish->fence);
    err = pw_pull_open(&consumer->pull, connection, stream, consumer->name);
    if (err != PAWL_OK)
        return err;
    consumer->turn = turn;
    consumer->made = wish->number;
    consumer->begun = seq;
    consumer->delivered = seq - 1;
    consumer->heard_ms = pw_jetstream_now(adapter);
    return PAWL_OK;
}

/* --- looking after it ----------------------------------------------------------------------- */

static uint64_t stream_last(natsConnection *connection, const char *stream)
{
    json_t *info = NULL;
    if (call(connection, "STREAM.INFO", stream, "", NULL, &info) != PAWL_OK)
        return UINT64_MAX;
    uint64_t last =
        (uint64_t)json_integer_value(json_object_get(json_object_get(info, "state"), "last_seq"));
    json_decref(info);
    return last;
}

/* Made by others under its name, it may deliver nothing. */
static bool is_ours(const struct pw_jetstream *adapter, const json_t *config)
{
    const struct pw_place *place = &adapter->place;
    const struct pw_consumer *consumer = &adapter->consumer;
    json_t *wanted = pw_consumer_config(place->ns, place->shard, consumer->name, consumer->begun);
    bool ours = wanted == NULL || pw_consumer_is(wanted, config); /* nothing can be said now */
    json_decref(wanted);
    return ours;
}

/* Where it must begin anew; 0: it is well, or nothing can be said now. What the stream lost at its
 * end has its sequences again. */
static uint64_t begin_anew_at(struct pw_jetstream *adapter, natsConnection *connection)
{
    const struct pw_consumer *consumer = &adapter->consumer;
    json_t *info = NULL;
    uint64_t delivered = consumer->delivered;
    pawl_err err =
        call(connection, "CONSUMER.INFO", adapter->place.stream, consumer->name, NULL, &info);
    if (err != PAWL_OK && err != PAWL_E_NOT_FOUND)
        return 0;
    bool ours = err == PAWL_OK && is_ours(adapter, json_object_get(info, "config"));
    if (ours)
        delivered = (uint64_t)json_integer_value(
            json_object_get(json_object_get(info, "delivered"), "stream_seq"));
    json_decref(info);
    uint64_t last = stream_last(connection, adapter->place.stream);
    if (delivered > last)
        return last + 1;
    return ours ? 0 : delivered + 1;
}

static void look_after(struct pw_jetstream *adapter, natsConnection *connection, uint64_t turn,
                       const struct wish *wish)
{
    struct pw_consumer *consumer = &adapter->consumer;
    uint64_t seq = begin_anew_at(adapter, connection);
    consumer->heard_ms = pw_jetstream_now(adapter);
    if (seq != 0 && make(adapter, connection, turn, wish, seq) != PAWL_OK)
        consumer->made = 0; /* the next call makes it, from where the opening began */
}

/* The connection came back, or is another one: the consumer is durable, if the server still has
 * what it had; its request was not. */
static pawl_err take_up(struct pw_jetstream *adapter, natsConnection *connection, uint64_t turn,
                        const struct wish *wish)
{
    struct pw_consumer *consumer = &adapter->consumer;
    pw_pull_close(&consumer->pull);
    consumer->reply[0] = '\0'; /* what was not acknowledged comes again, which does no harm */
    look_after(adapter, connection, turn, wish);
    if (consumer->pull.sub != NULL || consumer->made == 0)
        return consumer->made == 0 ? PAWL_E_IO : PAWL_OK;
    consumer->turn = turn;
    return pw_pull_open(&consumer->pull, connection, adapter->place.stream, consumer->name);
}

static bool is_behind(struct pw_jetstream *adapter)
{
    struct pw_window_state state = { 0 };
    pw_window_look(&adapter->appends, 0, &state);
    return state.seq != adapter->consumer.delivered;
}

/* --- fetching ------------------------------------------------------------------------------- */

struct fetching {
    struct pw_jetstream *adapter;
    pw_entry_seen seen;
    void *arg;
    size_t most;
    size_t handed;
};

/* Takes the message. */
static void hand_over(struct fetching *fetching, natsMsg *msg, const struct pw_pulled_from *from)
{
    struct pw_entry_room room;
    struct pw_consumer *consumer = &fetching->adapter->consumer;
    pw_entry_of(&fetching->adapter->place, msg, from->seq, from->stored_ms, &room);
    fetching->seen(fetching->arg, &room.entry);
    fetching->handed++;
    consumer->delivered = from->seq;
    pw_print(consumer->reply, sizeof(consumer->reply), "%s", natsMsg_GetReply(msg));
    natsMsg_Destroy(msg);
}

static enum pw_pulled take(struct fetching *fetching)
{
    struct pw_pull *pull = &fetching->adapter->consumer.pull;
    enum pw_pulled pulled = PW_PULLED_MESSAGE;
    uint64_t wait_ms = WAIT_MS;
    while (pulled == PW_PULLED_MESSAGE && fetching->handed < fetching->most) {
        natsMsg *msg = NULL;
        struct pw_pulled_from from = { 0 };
        pulled = pw_pull_next(pull, wait_ms, &msg, &from);
        if (pulled == PW_PULLED_MESSAGE)
            hand_over(fetching, msg, &from);
        wait_ms = 0; /* the rest only when it is here */
    }
    return pulled;
}

static pawl_err ask(struct pw_jetstream *adapter)
{
    struct pw_consumer *consumer = &adapter->consumer;
    if (consumer->pull.owed > 0)
        return PAWL_OK;
    consumer->asked_ms = pw_jetstream_now(adapter);
    return pw_pull_ask(&consumer->pull, PW_PULL_BATCH_MAX, REQUEST_MS);
}

static void acknowledge(struct pw_consumer *consumer)
{
    if (consumer->reply[0] == '\0')
        return;
    /* Lost: what it acknowledges comes again, or is acknowledged by the next one. */
    (void)natsConnection_PublishString(consumer->pull.connection, consumer->reply, "+ACK");
    consumer->reply[0] = '\0';
}

static pawl_err be_ready(struct pw_jetstream *adapter, natsConnection *connection, uint64_t turn,
                         const struct wish *wish)
{
    struct pw_consumer *consumer = &adapter->consumer;
    if (consumer->made != wish->number)
        return make(adapter, connection, turn, wish, wish->seq);
    if (consumer->turn != turn || consumer->pull.sub == NULL)
        return take_up(adapter, connection, turn, wish);
    acknowledge(consumer);
    return PAWL_OK;
}

static void mind(struct pw_jetstream *adapter, natsConnection *connection, uint64_t turn,
                 const struct wish *wish, enum pw_pulled pulled)
{
    struct pw_consumer *consumer = &adapter->consumer;
    uint64_t now_ms = pw_jetstream_now(adapter);
    if (pulled == PW_PULLED_CLOSED ||
        (consumer->pull.owed > 0 && now_ms - consumer->asked_ms > REQUEST_LOST_MS))
        pw_pull_close(&consumer->pull); /* taken up anew by the next call */
    if (pulled == PW_PULLED_ERROR)
        pw_nap(&consumer->wake, PAUSE_MS);
    if (now_ms - consumer->heard_ms >= QUIET_MS && is_behind(adapter))
        look_after(adapter, connection, turn, wish);
}

size_t pw_jetstream_fetch(struct pw_journal *journal, size_t most, pw_entry_seen seen, void *arg)
{
    struct pw_jetstream *adapter = pw_jetstream_of(journal);
    struct pw_consumer *consumer = &adapter->consumer;
    struct fetching fetching = { adapter, seen, arg, most, 0 };
    struct wish wish = wish_of(consumer);
    natsConnection *connection = NULL;
    uint64_t turn = 0;
    if (pw_jetstream_is_halted(adapter))
        return 0;
    pawl_err err =
        wish.number > 0 ? pw_link_get(adapter->quick, &connection, &turn, NULL) : PAWL_E_IO;
    if (err == PAWL_OK)
        err = be_ready(adapter, connection, turn, &wish);
    if (err == PAWL_OK)
        err = ask(adapter);
    if (err != PAWL_OK) {
        pw_nap(&consumer->wake, WAIT_MS);
        return 0;
    }
    enum pw_pulled pulled = take(&fetching);
    if (fetching.handed > 0)
        consumer->heard_ms = pw_jetstream_now(adapter);
    else
        mind(adapter, connection, turn, &wish, pulled);
    return fetching.handed;
}
