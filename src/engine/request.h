/* SPDX-License-Identifier: Apache-2.0
 *
 * What goes through a writer's inbox: a demand for one change, and what it led to. Whoever makes
 * one owns it again when `done` is called, by the writer's thread, after the commit or the refusal.
 */
#ifndef PW_REQUEST_H
#define PW_REQUEST_H

#include "base/queue.h"
#include "core/step.h"
#include "core/tables.h"
#include "pawl/client.h"

struct pw_shard;
struct pw_pool;
struct pw_claim;

enum pw_request_kind {
    PW_DO_STEP,    /* `input` on an entity */
    PW_DO_NOTE,    /* a line of history: input.why */
    PW_DO_HOLD,    /* a scope: hold_kind, hold_name */
    PW_DO_RELEASE, /* a scope */
    PW_DO_TAKE,    /* a record of the journal that the store does not know: `record`, `last` */
    PW_DO_RESEED,  /* the entity's record is appended again, under a new lsn; `fresh` */
    PW_DO_JOURNAL, /* what the store remembers of the journal: `stand` */
};

/* What the stream's last opening said, as far as it was read. */
struct pw_last_opening {
    uint32_t fence;
    uint64_t follows_lsn;
};

/* For meta. */
struct pw_stand {
    uint32_t fence_min; /* 0: the present one will do */
    bool reconciling;
};

struct pw_request {
    struct pw_node node; /* first: the queue's */
    enum pw_request_kind kind;
    struct pw_input input;
    const char *machine; /* with id: which entity; or row */
    const char *id;
    uint64_t row;
    bool inside; /* not a command from outside: always taken, and not refused because the store
                    fills up */
    bool must;   /* kept and tried again while the store has no room */
    uint64_t again_ms;      /* kept: not before this monotonic time */
    struct pw_claim *claim; /* ended when the request is answered; NULL: none */
    struct pw_pool *pool;   /* the claim's */

    /* A tell: which effect of which shard it is, and the one to this shard before it in the same
     * lot (lsn 0: it is the first). A gap is refused, so that tells are acted on in order and each
     * once. */
    bool is_tell;
    uint32_t from_shard;
    uint32_t tell_n;
    uint32_t before_n;
    uint64_t tell_lsn;
    uint64_t before_lsn;

    pawl_bytes record;
    struct pw_last_opening last;
    struct pw_stand stand;
    bool fresh;  /* RESEED: the journal has no record of it */
    bool always; /* RESEED: also when it waits in the outbox, whose row may have been overwritten */
    bool asked;  /* RESEED: by a person: not of what the store does not have */
    bool skipped; /* RESEED: it waits in the outbox as it is */

    enum pw_hold_kind hold_kind;
    const char *hold_name;
    bool hold_added; /* in memory, by this request: taken back if its batch is refused */

    /* What it led to. */
    pawl_err err;
    pawl_answer answer;
    bool parked;     /* BEGIN: it was parked instead */
    pawl_bytes memo; /* MEMO: the value that counts; valid within `done` */

    void (*done)(struct pw_request *request);
};

/* Waits for an answer: on a thread by a condition, in the simulated world by driving it. */
struct pw_latch {
    pthread_mutex_t lock;
    pthread_cond_t opened;
    bool open;
};

struct pawl;
void pw_latch_init(struct pw_latch *latch);
void pw_latch_fini(struct pw_latch *latch);
void pw_latch_open(struct pw_latch *latch);
void pw_latch_wait(struct pw_latch *latch, struct pawl *engine);

#endif
