/* SPDX-License-Identifier: Apache-2.0
 *
 * Kinds of entries. Nothing of a message is trusted: what does not read as an owner's is void. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "jetstream/entry.h"

bool pw_header_number(natsMsg *msg, const char *name, uint64_t *number)
{
    const char *text = NULL;
    char *end = NULL;
    if (natsMsgHeader_Get(msg, name, &text) != NATS_OK || text[0] < '0' || text[0] > '9')
        return false;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (errno != 0 || *end != '\0')
        return false;
    *number = value;
    return true;
}

static bool has_header(natsMsg *msg, const char *name)
{
    const char *text = NULL;
    return natsMsgHeader_Get(msg, name, &text) == NATS_OK;
}

static void read_fence(natsMsg *msg, struct pw_entry *entry)
{
    uint64_t fence = 0;
    uint64_t follows = 0;
    if (!pw_header_number(msg, PW_HEADER_FENCE, &fence) ||
        !pw_header_number(msg, PW_HEADER_FOLLOWS, &follows))
        return;
    entry->kind = PW_ENTRY_FENCE;
    entry->lsn = follows;
}

static void read_mark(natsMsg *msg, struct pw_entry *entry)
{
    uint64_t sent = 0;
    if (!pw_header_number(msg, PW_HEADER_MARK, &sent))
        return;
    entry->kind = PW_ENTRY_MARK;
    entry->lsn = sent;
}

static void read_record(const struct pw_place *place, natsMsg *msg, struct pw_entry_room *room)
{
    uint64_t lsn = 0;
    struct pw_entry *entry = &room->entry;
    if (!pw_subject_parse(entry->subject, place->ns, place->shard, room->machine, room->id))
        return;
    entry->machine = room->machine;
    entry->id = room->id;
    if (!pw_header_number(msg, PW_HEADER_LSN, &lsn) || lsn == 0)
        return;
    entry->kind = PW_ENTRY_RECORD;
    entry->lsn = lsn;
    entry->tombstone = has_header(msg, PW_HEADER_TOMBSTONE);
}

void pw_entry_of(const struct pw_place *place, natsMsg *msg, uint64_t seq, uint64_t stored_ms,
                 struct pw_entry_room *room)
{
    room->entry = (struct pw_entry){
        .kind = PW_ENTRY_VOID,
        .seq = seq,
        .stored_ms = stored_ms,
        .subject = natsMsg_GetSubject(msg),
        .record = { natsMsg_GetData(msg), (size_t)natsMsg_GetDataLength(msg) },
    };
    if (strcmp(room->entry.subject, place->fence_subject) == 0)
        read_fence(msg, &room->entry);
    else if (strcmp(room->entry.subject, place->mark_subject) == 0)
        read_mark(msg, &room->entry);
    else
        read_record(place, msg, room);
    if (room->entry.kind != PW_ENTRY_RECORD && room->entry.kind != PW_ENTRY_MARK)
        room->entry.record = (pawl_bytes){ 0 };
}

/* A cut inside a UTF-8 character would leave half of it: it goes whole. */
static size_t cut_length(const char *text)
{
    size_t length = strnlen(text, PW_HEADER_TEXT_SIZE);
    if (length < PW_HEADER_TEXT_SIZE)
        return length;
    length--;
    while (length > 0 && ((unsigned char)text[length] & 0xC0) == 0x80)
        length--;
    return length;
}

void pw_header_text(char to[PW_HEADER_TEXT_SIZE], const char *text)
{
    size_t length = cut_length(text);
    for (size_t i = 0; i < length; i++) {
        unsigned char byte = (unsigned char)text[i];
        to[i] = text[i];
        if (byte < ' ' || byte == 0x7F)
            to[i] = ' ';
    }
    to[length] = '\0';
}
