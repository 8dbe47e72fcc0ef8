/* SPDX-License-Identifier: Apache-2.0
 *
 * A stream in memory: messages with rising sequences, of which the newest of each subject is kept.
 * It only keeps; who may append when, is the simulated journal's affair. */
#ifndef PW_SIM_STREAM_H
#define PW_SIM_STREAM_H

#include "core/journal.h"

struct pw_sim_message {
    struct pw_entry entry; /* what it points to is in `bytes` */
    uint32_t fence;        /* its owner's; 0: a foreign one */
    char bytes[];
};

/* Zeroed is empty. Freed by pw_sim_stream_clear. */
struct pw_sim_stream {
    struct pw_sim_message **messages; /* by rising seq */
    size_t count;
    size_t room;
    uint64_t last_seq; /* also of a message that is gone */
};

/* A copy of everything. NULL: out of memory. Freed with pw_free, unless a stream has taken it. */
struct pw_sim_message *pw_sim_message_new(const struct pw_entry *entry, uint32_t fence);

/* Room for so many more messages, so that adding them cannot fail. False: out of memory. */
PAWL_MUST_USE bool pw_sim_stream_reserve(struct pw_sim_stream *stream, size_t more);

/* Takes the message, under the next sequence, in the place of an older one of its subject. There
 * must be room. */
void pw_sim_stream_put(struct pw_sim_stream *stream, struct pw_sim_message *message);

/* The index of the first message at or above seq. */
size_t pw_sim_stream_at(const struct pw_sim_stream *stream, uint64_t seq);

/* NULL: there is none. Borrowed until the next change. */
const struct pw_sim_message *pw_sim_stream_find(const struct pw_sim_stream *stream,
                                                const char *subject);

/* Takes the message of the subject out; it is the caller's. NULL: there is none. */
struct pw_sim_message *pw_sim_stream_take(struct pw_sim_stream *stream, const char *subject);

/* What is below seq goes; last_seq stays. */
void pw_sim_stream_cut(struct pw_sim_stream *stream, uint64_t seq);

/* Makes *to, which is empty, a copy. False: out of memory, and it is still empty. */
PAWL_MUST_USE bool pw_sim_stream_copy(struct pw_sim_stream *to, const struct pw_sim_stream *from);

/* Empty, and last_seq is 0. */
void pw_sim_stream_clear(struct pw_sim_stream *stream);

#endif
