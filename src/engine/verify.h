/* SPDX-License-Identifier: Apache-2.0
 *
 * Looking at an engine from above: is every index right, has every entity a waker, how much is
 * there of what. */
#ifndef PW_VERIFY_H
#define PW_VERIFY_H

#include "engine/engine.h"

/* One thing that is wrong; return false to end. Borrowed for the call. */
typedef bool (*pw_wrong)(void *arg, const char *text);

/* Reads the whole store, a transaction a table and shard, also beside its writer's process: id,
 * state and due index against the entities, entities against them, history and outbox against both;
 * a waker for every entity that is not final (a due row, its place as ready, an event it waits for,
 * a hold, or a person). *entities: how many were read. An error means that it could not be read.
 * Any thread. */
PAWL_MUST_USE pawl_err pw_verify(struct pawl *engine, pw_wrong wrong, void *arg,
                                 uint64_t *entities);

/* Ready entities that are on no ready list and do not run: 0 in a healthy engine. What changes
 * hands right now is looked at again for up to a second. A started engine's own; any thread but its
 * own ones. */
PAWL_MUST_USE pawl_err pw_unlisted(struct pawl *engine, uint64_t *count);

struct pw_status {
    uint64_t entities;
    uint64_t due;
    uint64_t outbox;
    uint64_t lsn;
    uint64_t time_ms;         /* journal time of the last commit */
    uint64_t now_ms;          /* journal time by now, as far as the store can tell */
    uint64_t oldest_ms;       /* journal time of the first outbox row; 0: there is none */
    uint64_t journal_created; /* 0: it has none, or has not seen it yet */
    uint64_t journal_seq;     /* up to where it is known */
    uint64_t journal_lsn;
    bool clean; /* the last owner stopped in order; false while it runs */
};

PAWL_MUST_USE pawl_err pw_status(struct pw_shard *shard, struct pw_status *status);

/* What the shard's relay says of its journal. */
struct pw_health {
    bool live;    /* records are appended */
    uint64_t seq; /* what is acknowledged */
    uint64_t lsn;
    char error[256]; /* the last failure; "": the last look was good */
};

/* False: it has no journal. Any thread. */
bool pw_journal_health(struct pw_shard *shard, struct pw_health *health);

/* One line a machine and state that the store has, with its number of entities. Counts by walking
 * the index. */
typedef bool (*pw_counted)(void *arg, const char *machine, const char *state, uint64_t entities);
PAWL_MUST_USE pawl_err pw_count_states(struct pw_shard *shard, pw_counted counted, void *arg);

/* Held scopes of a shard. */
PAWL_MUST_USE pawl_err pw_list_holds(struct pw_shard *shard, pw_hold_seen seen, void *arg);

#endif
