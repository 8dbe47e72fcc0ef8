/* SPDX-License-Identifier: Apache-2.0
 *
 * A sorted array of pointers. A subject is looked for from the newest message back: what is
 * replaced is mostly young. */
#include <assert.h>

#include "base/base.h"
#include "sim/copy.h"
#include "sim/stream.h"

#define MESSAGES_FIRST 64u
#define NOWHERE SIZE_MAX

struct pw_sim_message *pw_sim_message_new(const struct pw_entry *entry, uint32_t fence)
{
    size_t texts = pw_sim_text_size(entry->subject) + pw_sim_text_size(entry->machine) +
                   pw_sim_text_size(entry->id);
    struct pw_sim_message *message = pw_alloc(sizeof(*message) + texts + entry->record.size);
    if (message == NULL)
        return NULL;
    char *at = message->bytes;
    message->entry = *entry;
    message->fence = fence;
    message->entry.subject = pw_sim_text_keep(&at, entry->subject);
    message->entry.machine = pw_sim_text_keep(&at, entry->machine);
    message->entry.id = pw_sim_text_keep(&at, entry->id);
    message->entry.record.data = at;
    if (entry->record.size > 0)
        memcpy(at, entry->record.data, entry->record.size);
    return message;
}

bool pw_sim_stream_reserve(struct pw_sim_stream *stream, size_t more)
{
    size_t room = stream->room > 0 ? stream->room : MESSAGES_FIRST;
    while (room < stream->count + more)
        room *= 2;
    if (room == stream->room)
        return true;
    struct pw_sim_message **messages =
        pw_realloc(stream->messages, room * sizeof(struct pw_sim_message *));
    if (messages == NULL)
        return false;
    stream->messages = messages;
    stream->room = room;
    return true;
}

static size_t index_of(const struct pw_sim_stream *stream, const char *subject)
{
    for (size_t i = stream->count; i > 0; i--)
        if (strcmp(stream->messages[i - 1]->entry.subject, subject) == 0)
            return i - 1;
    return NOWHERE;
}

void pw_sim_stream_put(struct pw_sim_stream *stream, struct pw_sim_message *message)
{
    pw_free(pw_sim_stream_take(stream, message->entry.subject));
    assert(stream->count < stream->room);
    message->entry.seq = ++stream->last_seq;
    stream->messages[stream->count++] = message;
}

size_t pw_sim_stream_at(const struct pw_sim_stream *stream, uint64_t seq)
{
    size_t low = 0;
    size_t high = stream->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (stream->messages[middle]->entry.seq < seq)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const struct pw_sim_message *pw_sim_stream_find(const struct pw_sim_stream *stream,
                                                const char *subject)
{
    size_t index = index_of(stream, subject);
    return index != NOWHERE ? stream->messages[index] : NULL;
}

struct pw_sim_message *pw_sim_stream_take(struct pw_sim_stream *stream, const char *subject)
{
    size_t index = index_of(stream, subject);
    if (index == NOWHERE)
        return NULL;
    struct pw_sim_message **at = &stream->messages[index];
    struct pw_sim_message *message = *at;
    stream->count--;
    memmove(at, at + 1, (stream->count - index) * sizeof(struct pw_sim_message *));
    return message;
}

void pw_sim_stream_cut(struct pw_sim_stream *stream, uint64_t seq)
{
    size_t gone = pw_sim_stream_at(stream, seq);
    if (gone == 0)
        return;
    for (size_t i = 0; i < gone; i++)
        pw_free(stream->messages[i]);
    stream->count -= gone;
    memmove(stream->messages, stream->messages + gone,
            stream->count * sizeof(struct pw_sim_message *));
}

bool pw_sim_stream_copy(struct pw_sim_stream *to, const struct pw_sim_stream *from)
{
    assert(to->count == 0);
    if (!pw_sim_stream_reserve(to, from->count))
        return false;
    for (size_t i = 0; i < from->count; i++) {
        struct pw_sim_message *copy =
            pw_sim_message_new(&from->messages[i]->entry, from->messages[i]->fence);
        if (copy == NULL) {
            pw_sim_stream_clear(to);
            return false;
        }
        to->messages[to->count++] = copy;
    }
    to->last_seq = from->last_seq;
    return true;
}

void pw_sim_stream_clear(struct pw_sim_stream *stream)
{
    for (size_t i = 0; i < stream->count; i++)
        pw_free(stream->messages[i]);
    pw_free(stream->messages);
    *stream = (struct pw_sim_stream){ .count = 0 };
}
