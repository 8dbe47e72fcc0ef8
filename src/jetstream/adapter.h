/* SPDX-License-Identifier: Apache-2.0
 *
 * The adapter's parts, for this folder only. journal.c: appends; reader.c: reads and single
 * entries; posts.c: what is sent elsewhere; consumer.c: what comes back. */
#ifndef PW_JETSTREAM_ADAPTER_H
#define PW_JETSTREAM_ADAPTER_H

#include <stdatomic.h>

#include "base/clock.h"
#include "base/wake.h"
#include "jetstream/api.h"
#include "jetstream/browse.h"
#include "jetstream/entry.h"
#include "jetstream/journal.h"
#include "jetstream/link.h"
#include "jetstream/pull.h"
#include "jetstream/streams.h"
#include "jetstream/window.h"

/* A call to JetStream's API. */
#define PW_API_MS 5000

/* Where the relay reads. */
struct pw_reader {
    struct pw_browse browse;
    uint64_t turn;
    uint64_t next_seq; /* that it will deliver, or a later one */
    bool heads;
};

/* What comes back. */
struct pw_consumer {
    pthread_mutex_t lock; /* of what the relay wants */
    uint64_t wish;        /* its number; 0: nothing is opened */
    uint64_t wish_seq;    /* begin there */
    uint32_t fence;

    struct pw_wake wake; /* the subscriber sleeps on it when there is nothing to wait for */
    struct pw_pull pull; /* and all below: the subscriber's */
    char name[PW_PULL_NAME_SIZE];
    char reply[PW_SUBJECT_MAX]; /* of the last message handed over: acknowledges all of them */
    uint64_t turn;
    uint64_t made;      /* the wish that it was made for */
    uint64_t begun;     /* the sequence that it was made with */
    uint64_t delivered; /* the last sequence handed over, or the one before the first */
    uint64_t asked_ms;
    uint64_t heard_ms; /* of it, or when it was last looked at */
};

struct pw_jetstream {
    struct pw_journal journal; /* the first member */
    struct pw_place place;
    bool look_only;
    struct pw_clock clock;
    atomic_bool halted;
    struct pw_link *link;  /* the relay's */
    struct pw_link *quick; /* the subscriber's */

    struct pw_window appends;
    struct pw_journal_state looked; /* by the last look */
    struct pw_reader reader;

    struct pw_window posts;
    bool ensured[PW_STREAM_KINDS]; /* on the posts' connection */

    struct pw_consumer consumer;
};

static inline struct pw_jetstream *pw_jetstream_of(struct pw_journal *journal)
{
    return (struct pw_jetstream *)journal;
}

static inline uint64_t pw_jetstream_now(struct pw_jetstream *adapter)
{
    return adapter->clock.monotonic_ms(&adapter->clock);
}

static inline bool pw_jetstream_is_halted(const struct pw_jetstream *adapter)
{
    return atomic_load_explicit(&adapter->halted, memory_order_relaxed);
}

/* The relay's connection. PAWL_E_IO: away, or halted. */
PAWL_MUST_USE pawl_err pw_jetstream_reach(struct pw_jetstream *adapter, natsConnection **connection,
                                          uint64_t *turn, pawl_why *why);

/* reader.c */
pawl_err pw_jetstream_read(struct pw_journal *journal, uint64_t from_seq, bool heads, size_t most,
                           pw_entry_seen seen, void *arg, uint64_t *next_seq, bool *through);
pawl_err pw_jetstream_last(struct pw_journal *journal, const char *machine, const char *id,
                           pw_entry_seen seen, void *arg);
/* The last message of a subject, by the stream's leader. *msg is the caller's. PAWL_E_NOT_FOUND. */
PAWL_MUST_USE pawl_err pw_last_message(natsConnection *connection, const char *stream,
                                       const char *subject, natsMsg **msg);

/* posts.c */
pawl_err pw_jetstream_post(struct pw_journal *journal, const struct pw_post *post);
pawl_err pw_jetstream_posted(struct pw_journal *journal, size_t *waiting);

/* consumer.c */
void pw_consumer_init(struct pw_consumer *consumer);
/* Its pull is closed. */
void pw_consumer_fini(struct pw_consumer *consumer);
/* From now on, what comes back is what is behind seq. The relay's thread. */
void pw_consumer_begin(struct pw_consumer *consumer, uint32_t fence, uint64_t seq);
size_t pw_jetstream_fetch(struct pw_journal *journal, size_t most, pw_entry_seen seen, void *arg);

#endif
