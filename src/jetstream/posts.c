/* SPDX-License-Identifier: Apache-2.0
 *
 * What is sent after a record: events, dead letters, and letters that are settled. The relay's
 * thread, on its connection, with a window of their own. */
#include <inttypes.h>
#include <string.h>

#include "jetstream/adapter.h"

#define ID_SIZE 96 /* <ns>.<shard>.<lsn>.<n> */

/* --- the streams ---------------------------------------------------------------------------- */

static pawl_err ensure(struct pw_jetstream *adapter, enum pw_stream_kind kind)
{
    natsConnection *connection = adapter->posts.connection;
    struct pw_stream stream = { kind, adapter->place.ns, adapter->place.shard, 0 };
    if (adapter->ensured[kind])
        return PAWL_OK;
    pawl_err err = pw_stream_ensure(connection, &stream, NULL, NULL, NULL);
    adapter->ensured[kind] = err == PAWL_OK;
    return err;
}

static bool is_ready(struct pw_jetstream *adapter)
{
    return adapter->posts.sub != NULL && pw_link_is_up(adapter->link) &&
           pw_link_turn(adapter->link) == adapter->posts.turn;
}

static void begin(struct pw_jetstream *adapter, uint64_t turn)
{
    pw_window_begin(&adapter->posts, turn, 0);
    memset(adapter->ensured, 0, sizeof(adapter->ensured));
}

/* On another connection than before: what was under way there is posted()'s to tell first. */
static pawl_err be_ready(struct pw_jetstream *adapter)
{
    struct pw_window_state state = { 0 };
    natsConnection *connection = NULL;
    uint64_t turn = 0;
    if (is_ready(adapter) && !pw_jetstream_is_halted(adapter))
        return PAWL_OK;
    pw_window_look(&adapter->posts, 0, &state);
    if (state.waiting > 0)
        return PAWL_E_IO;
    pawl_err err = pw_jetstream_reach(adapter, &connection, &turn, NULL);
    if (err == PAWL_OK)
        err = pw_window_listen(&adapter->posts, connection);
    if (err == PAWL_OK)
        begin(adapter, turn);
    return err;
}

/* --- messages ------------------------------------------------------------------------------- */

/* The texts that a message's headers point to. */
struct texts {
    char subject[PW_SUBJECT_MAX];
    char id[ID_SIZE];
    char entity[PW_SUBJECT_MAX];
    char epoch[24];
    char why[PW_HEADER_TEXT_SIZE];
};

/* machine/id; the id as it is escaped in subjects, since a header bears less. */
static bool print_entity(const struct pw_place *place, const struct pw_post *post, char *to,
                         size_t size)
{
    char subject[PW_SUBJECT_MAX] = "";
    if (!pw_subject_journal(subject, place->ns, place->shard, post->machine, post->id))
        return false;
    const char *id = strrchr(subject, '.');
    pw_print(to, size, "%s/%s", post->machine, id != NULL ? id + 1 : "");
    return true;
}

static bool print_texts(const struct pw_place *place, const struct pw_post *post,
                        struct texts *texts)
{
    pw_print(texts->id, sizeof(texts->id), "%s.%" PRIu32 ".%" PRIu64 ".%" PRIu32, place->ns,
             place->shard, post->lsn, post->n);
    pw_print(texts->epoch, sizeof(texts->epoch), "%" PRIu64, post->epoch);
    pw_header_text(texts->why, post->why != NULL ? post->why : "");
    return print_entity(place, post, texts->entity, sizeof(texts->entity));
}

static pawl_err send_post(struct pw_jetstream *adapter, const struct pw_post *post,
                          struct texts *texts)
{
    struct pw_message message = { .subject = texts->subject, .data = post->data };
    pw_message_add(&message, "Pawl-Id", texts->id);
    pw_message_add(&message, "Pawl-Entity", texts->entity);
    if (post->kind == PW_POST_EVENT) {
        pw_message_add(&message, "Nats-Msg-Id", texts->id); /* sent again soon: stored once */
        if (post->trace != NULL && post->trace[0] != '\0')
            pw_message_add(&message, PW_HEADER_TRACE, post->trace);
    } else {
        pw_message_add(&message, "Pawl-Machine", post->machine);
        pw_message_add(&message, "Pawl-Epoch", texts->epoch);
        pw_message_add(&message, "Pawl-Why", texts->why);
    }
    return pw_window_send(&adapter->posts, &message, PW_WINDOW, pw_jetstream_now(adapter));
}

static pawl_err purge(struct pw_jetstream *adapter, const char *subject)
{
    char stream[PW_STREAM_NAME_SIZE] = "";
    char verb[PW_STREAM_NAME_SIZE + 32] = "";
    json_t *answer = NULL;
    json_t *request = json_pack("{s:s}", "filter", subject);
    if (request == NULL)
        return PAWL_E_NOMEM;
    pw_stream_name(PW_STREAM_DLQ, adapter->place.ns, adapter->place.shard, stream);
    pw_print(verb, sizeof(verb), "STREAM.PURGE.%s", stream);
    pawl_err err =
        pw_api_call(adapter->posts.connection, verb, request, PW_API_MS, &answer, NULL, NULL);
    json_decref(request);
    json_decref(answer);
    return err == PAWL_E_NOT_FOUND ? PAWL_OK : err;
}

/* The letter itself may be under way: the purge must come behind it, and takes another way through
 * the server. */
static pawl_err settle_letter(struct pw_jetstream *adapter, const char *subject)
{
    struct pw_window_state state = { 0 };
    pw_window_look(&adapter->posts, pw_jetstream_now(adapter), &state);
    if (state.failed)
        return PAWL_E_IO;
    return state.waiting > 0 ? PAWL_E_BUSY : purge(adapter, subject);
}

pawl_err pw_jetstream_post(struct pw_journal *journal, const struct pw_post *post)
{
    struct pw_jetstream *adapter = pw_jetstream_of(journal);
    const struct pw_place *place = &adapter->place;
    struct texts texts;
    bool event = post->kind == PW_POST_EVENT;
    bool fits = event ? pw_subject_event(texts.subject, place->ns, post->machine, post->name)
                      : pw_subject_letter(texts.subject, place->ns, post->machine, post->id,
                                          post->epoch, post->lsn, post->n);
    if (!fits || !print_texts(place, post, &texts))
        return PAWL_E_USAGE;
    pawl_err err = be_ready(adapter);
    if (err == PAWL_OK)
        err = ensure(adapter, event ? PW_STREAM_EVENTS : PW_STREAM_DLQ);
    if (err != PAWL_OK)
        return err;
    if (post->kind == PW_POST_NO_LETTER)
        return settle_letter(adapter, texts.subject);
    return send_post(adapter, post, &texts);
}

pawl_err pw_jetstream_posted(struct pw_journal *journal, size_t *waiting)
{
    struct pw_jetstream *adapter = pw_jetstream_of(journal);
    struct pw_window_state state = { 0 };
    pw_window_look(&adapter->posts, pw_jetstream_now(adapter), &state);
    bool lost = state.waiting > 0 && !is_ready(adapter);
    if (!state.failed && !lost) {
        *waiting = state.waiting;
        return PAWL_OK;
    }
    begin(adapter, adapter->posts.turn);
    *waiting = 0;
    return PAWL_E_IO;
}
