/* SPDX-License-Identifier: Apache-2.0
 *
 * Pipelined publishes to a stream and their answers. A publish carries a reply subject of its own,
 * "<inbox>.<number>"; one subscription takes all answers, on a thread of the library, which
 * writes them down here and pokes. Numbers only rise, so what comes late is known to be late. What
 * is not answered in PW_ANSWER_MS, or was under way on a connection that is gone, has failed.
 *
 * One thread uses a window, but for what the library's thread writes down. */
#ifndef PW_JETSTREAM_WINDOW_H
#define PW_JETSTREAM_WINDOW_H

#include <pthread.h>

#include <nats/nats.h>

#include "base/limits.h"
#include "core/journal.h"
#include "jetstream/inbox.h"

/* The window, the fences of an opening and its mark; a power of two. */
#define PW_SLOTS 1024u
static_assert(PW_SLOTS >= PW_WINDOW + 2, "an opening fits");
static_assert((PW_SLOTS & (PW_SLOTS - 1)) == 0, "numbers wrap evenly");

#define PW_REFUSED_SEQUENCE 10071 /* jsErrCode: the stream's last sequence is another */
#define PW_HEADERS_MAX 7

struct pw_slot {
    enum { PW_SLOT_OPEN, PW_SLOT_STORED, PW_SLOT_REFUSED } state;
    uint64_t lsn; /* 0: none */
    uint64_t seq; /* what it must get; 0: any */
    uint64_t until_ms;
};

struct pw_window {
    const struct pw_journal *journal; /* to poke */
    bool fenced;                      /* each expects the one before as the stream's last */
    natsConnection *connection;       /* of the subscription */
    natsSubscription *sub;
    char inbox[PW_INBOX_SIZE];
    size_t inbox_length; /* with the dot behind it */
    uint64_t turn;       /* of the connection, at pw_window_begin() */

    pthread_mutex_t lock; /* of all that follows */
    pthread_cond_t turned;
    bool listening;
    uint64_t first; /* numbers from first to next are under way */
    uint64_t next;
    uint64_t cut;              /* the lowest number that failed; UINT64_MAX: none */
    uint64_t refusal;          /* its err_code; 0: none was given */
    char why[PW_REFUSAL_SIZE]; /* and what it says to it */
    uint64_t ahead;            /* the last sequence when all under way are stored */
    uint64_t lsn;              /* acknowledged, with all before it */
    uint64_t seq;
    struct pw_slot slots[PW_SLOTS];
};

struct pw_header {
    const char *name;
    const char *value;
};

struct pw_message {
    const char *subject;
    struct pw_header headers[PW_HEADERS_MAX];
    size_t headers_count;
    uint64_t lsn;
    pawl_bytes data;
};

struct pw_window_state {
    uint64_t lsn;
    uint64_t seq;
    size_t waiting;
    bool failed;
    uint64_t refusal; /* 0: none was given */
    char why[PW_REFUSAL_SIZE];
};

void pw_window_init(struct pw_window *window, const struct pw_journal *journal, bool fenced);
void pw_window_fini(struct pw_window *window);

/* Answers come by this connection. What was under way on another one has failed. */
PAWL_MUST_USE pawl_err pw_window_listen(struct pw_window *window, natsConnection *connection);

/* Nothing is under way and nothing has failed; the stream's last sequence is seq. Answers to what
 * was sent before are late from here on. */
void pw_window_begin(struct pw_window *window, uint64_t turn, uint64_t seq);

/* lsns are counted anew, too. */
void pw_window_forget_lsn(struct pw_window *window);

/* Publishes. PAWL_E_IO: something failed before. PAWL_E_BUSY: `most` are under way. */
PAWL_MUST_USE pawl_err pw_window_send(struct pw_window *window, const struct pw_message *message,
                                      size_t most, uint64_t now_ms);

/* What is under way, has failed: its connection is gone. */
void pw_window_drop(struct pw_window *window);

/* Fails what waits for too long. */
void pw_window_look(struct pw_window *window, uint64_t now_ms, struct pw_window_state *state);

/* Waits at most `ms` until nothing is under way. */
void pw_window_wait(struct pw_window *window, uint64_t ms);

void pw_message_add(struct pw_message *message, const char *name, const char *value);

#endif
