/* SPDX-License-Identifier: Apache-2.0
 *
 * A batch: the changes of one commit, while they are made. The writer's files share it; writer
 * thread only. */
#ifndef PW_BATCH_H
#define PW_BATCH_H

#include "base/limits.h"
#include "engine/engine.h"

/* What one input of the batch led to, to be told after the commit. */
struct pw_result {
    struct pw_settled settled;
    struct pw_happening happening;
    const char *machine;
    const char *id;
    bool changed;
    bool parked;
    bool removed;
};

struct pw_batch {
    struct pw_shard *shard;
    struct pw_txn *txn;
    uint64_t now_ms;
    struct pw_meta meta; /* as it will be */
    struct pw_cursor told[PW_SHARDS_MAX];
    struct pw_request *requests; /* in order */
    struct pw_result results[PW_BATCH_MAX + PW_DUE_BATCH_MAX];
    size_t results_count;
    struct pw_settled
        settled[PW_BATCH_MAX + PW_DUE_BATCH_MAX]; /* what the pools are told of them */
    uint64_t outbox_lsn; /* of the last change with an outbox row; 0: none */
    size_t bytes;
    bool changed;     /* there is something to commit */
    bool more_due;    /* the due index has more than one batch takes */
    bool walk_wanted; /* a scope was released */
    bool outbox_full; /* commands are refused */
};

/* What `put` does besides the change itself. */
struct pw_save pw_batch_save(const struct pw_batch *b);

/* --- take.c: what the keeper asks for ----------------------------------------------------- */

/* Each does one request. An error that is returned belongs to the store, and ends the batch. */
PAWL_MUST_USE pawl_err pw_do_take(struct pw_batch *b, struct pw_request *r);
PAWL_MUST_USE pawl_err pw_do_reseed(struct pw_batch *b, struct pw_request *r);
PAWL_MUST_USE pawl_err pw_do_journal(struct pw_batch *b, struct pw_request *r);

#endif
