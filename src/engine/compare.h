/* SPDX-License-Identifier: Apache-2.0
 *
 * What is on its way to the journal, and whether the journal has what it should: for those who look
 * from outside, also beside the owner's process. Nothing here changes anything. Any thread. */
#ifndef PW_COMPARE_H
#define PW_COMPARE_H

#include "engine/verify.h"

/* A row of the outbox. */
struct pw_waiting {
    uint32_t shard;
    uint64_t lsn;
    uint64_t age_ms;
    const char *machine; /* NULL: the row cannot be read */
    const char *id;
    const char *state; /* "": it is deleted, or its tombstone is forgotten */
    bool acked;        /* the journal has it; what it sends besides is not acknowledged yet */
};

/* Borrowed for the call; return false to end. */
typedef bool (*pw_waiting_seen)(void *arg, const struct pw_waiting *row);

/* In order of their lsn; no transaction is open while `seen` is called. Sees what there is when it
 * reaches it. */
PAWL_MUST_USE pawl_err pw_list_outbox(struct pw_shard *shard, pw_waiting_seen seen, void *arg);

/* How an entity's record in the journal stands to the store. */
enum pw_match {
    PW_MATCH_SAME,    /* the journal has the store's version */
    PW_MATCH_WAITS,   /* it waits in the outbox; the relay has it yet to append */
    PW_MATCH_LACKS,   /* the journal has none, or an older one, and nothing is on its way */
    PW_MATCH_NEWER,   /* the journal has one that the store does not know */
    PW_MATCH_FOREIGN, /* what stands on its subject was written by no owner */
    PW_MATCH_NOTHING, /* neither has anything of it */
};

struct pw_compared {
    enum pw_match match;
    uint64_t version; /* the store's; 0: it has none */
    uint64_t lsn;     /* the journal's; 0: it has none */
    uint64_t seq;
};

/* Looks at the store, then at the journal, then at the store again: so the answer is right whatever
 * its owner does meanwhile. `journal` was looked at before. PAWL_E_IO. */
PAWL_MUST_USE pawl_err pw_compare_one(struct pw_shard *shard, struct pw_journal *journal,
                                      const char *machine, const char *id,
                                      struct pw_compared *compared);

/* Holds the whole journal against the store: reads its heads once, and looks at each entity again
 * that seems not to match. *records: how many were read. Ends after PW_COMPARE_FAULTS_MAX faults.
 * `journal` belongs to the caller, and to nobody else meanwhile. PAWL_E_IO, PAWL_E_CONFIG: *why. */
#define PW_COMPARE_FAULTS_MAX 1000
PAWL_MUST_USE pawl_err pw_compare(struct pw_shard *shard, struct pw_journal *journal,
                                  pw_wrong wrong, void *arg, uint64_t *records, pawl_why *why);

#endif
