/* SPDX-License-Identifier: Apache-2.0
 *
 * Batches from a pull consumer, by its raw protocol: one request at a time, its messages, and a
 * status when it ended early. The library's own fetch is not used: of a deleted consumer it shows
 * only time-outs, and it cannot be left and taken up again. One thread. */
#ifndef PW_JETSTREAM_PULL_H
#define PW_JETSTREAM_PULL_H

#include <nats/nats.h>

#include "base/base.h"
#include "jetstream/inbox.h"

#define PW_PULL_BATCH_MAX 512                 /* from here on larger ones are not faster */
#define PW_PULL_BYTES_MAX (16u * 1024 * 1024) /* of a batch: what may wait in memory */
#define PW_PULL_NAME_SIZE 128

struct pw_pull {
    natsConnection *connection;
    natsSubscription *sub;
    char inbox[PW_INBOX_SIZE];
    char subject[PW_PULL_NAME_SIZE + 96];
    size_t owed; /* asked for, and neither come nor refused */
};

enum pw_pulled {
    PW_PULLED_MESSAGE,
    PW_PULLED_NOTHING, /* in this time */
    PW_PULLED_END,     /* of the request: no more for now */
    PW_PULLED_ERROR,   /* of the request: the consumer is gone, or its leader is */
    PW_PULLED_CLOSED,  /* the connection is */
};

/* What the reply subject of a message tells of it. */
struct pw_pulled_from {
    uint64_t seq;
    uint64_t stored_ms;
    uint64_t pending; /* behind it */
};

/* PAWL_E_IO, PAWL_E_NOMEM. */
PAWL_MUST_USE pawl_err pw_pull_open(struct pw_pull *pull, natsConnection *connection,
                                    const char *stream, const char *consumer);

/* wait_ms 0: only what is there. Nothing must be owed. */
PAWL_MUST_USE pawl_err pw_pull_ask(struct pw_pull *pull, size_t batch, uint64_t wait_ms);

/* wait_ms 0: only what has come. MESSAGE: *msg is the caller's. */
enum pw_pulled pw_pull_next(struct pw_pull *pull, uint64_t wait_ms, natsMsg **msg,
                            struct pw_pulled_from *from);

/* Takes one that was not opened, too. */
void pw_pull_close(struct pw_pull *pull);

#endif
