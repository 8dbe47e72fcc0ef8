/* SPDX-License-Identifier: Apache-2.0
 *
 * A message of the stream as the port's entry: what its subject and headers make of it. */
#ifndef PW_JETSTREAM_ENTRY_H
#define PW_JETSTREAM_ENTRY_H

#include <nats/nats.h>

#include "base/limits.h"
#include "core/journal.h"
#include "jetstream/subject.h"

#define PW_HEADER_LSN "Pawl-Lsn"
#define PW_HEADER_TASK "Pawl-Task"
#define PW_HEADER_TOMBSTONE "Pawl-Tombstone"
#define PW_HEADER_FENCE "Pawl-Fence"
#define PW_HEADER_FOLLOWS "Pawl-Follows"
#define PW_HEADER_MARK "Pawl-Mark"
#define PW_HEADER_TRACE "traceparent"

/* What is always the same of a shard. */
struct pw_place {
    char ns[PW_NAMESPACE_MAX + 1];
    uint32_t shard;
    char stream[PW_NAME_MAX]; /* PW_STREAM_NAME_SIZE */
    char fence_subject[PW_SUBJECT_MAX];
    char mark_subject[PW_SUBJECT_MAX];
};

/* An entry with the memory that its names point into. The rest is the message's. */
struct pw_entry_room {
    struct pw_entry entry;
    char machine[PW_NAME_MAX + 1];
    char id[PW_ID_MAX + 1];
};

void pw_entry_of(const struct pw_place *place, natsMsg *msg, uint64_t seq, uint64_t stored_ms,
                 struct pw_entry_room *room);

/* The value of a header as a number; false: it is missing, or no number. */
bool pw_header_number(natsMsg *msg, const char *name, uint64_t *number);

/* A text as a header's value: no control characters, and not too long. */
#define PW_HEADER_TEXT_SIZE (PW_ERROR_MAX + 1)
void pw_header_text(char to[PW_HEADER_TEXT_SIZE], const char *text);

#endif
