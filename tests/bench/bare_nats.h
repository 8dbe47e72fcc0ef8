/* SPDX-License-Identifier: Apache-2.0
 *
 * The ceiling: nats.c alone, appending what a tape says to a journal's stream, each expecting the
 * one before as the stream's last. */
#ifndef BENCH_BARE_NATS_H
#define BENCH_BARE_NATS_H

#include <nats/nats.h>

#include "base/limits.h"
#include "bench/tape.h"
#include "jetstream/subject.h"

#define BENCH_NS "bench"

/* An outbox row as it is published, all texts printed beforehand. */
struct bare_record {
    char subject[PW_SUBJECT_MAX];
    char lsn[24];
    char task[PW_SUBJECT_MAX]; /* "": none */
    pawl_bytes bytes;          /* the tape's */
};

/* The outbox rows of a tape, in its order; free with pw_free. */
struct bare_record *bare_records(const struct tape *tape, size_t *count);

struct bare_nats {
    natsOptions *options;
    natsConnection *connection;
    jsCtx *js;
    uint64_t last_seq;
};

/* Connects with what suits the rate best, and makes the journal's stream with one record.
 * on_ack NULL: nobody wants to know. */
void bare_nats_open(struct bare_nats *nats, const char *bus, jsPubAckHandler on_ack, void *arg);

/* Waits while PW_WINDOW are not acknowledged. */
void bare_nats_append(struct bare_nats *nats, const struct bare_record *record);

/* Returns when all are acknowledged. */
void bare_nats_finish(struct bare_nats *nats);
void bare_nats_close(struct bare_nats *nats);

/* Exits with a message unless it is NATS_OK. */
void bare_nats_must(natsStatus status, const char *doing);

#endif
