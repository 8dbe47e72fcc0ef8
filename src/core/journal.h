/* SPDX-License-Identifier: Apache-2.0
 *
 * The journal port: where records go after their commit, and come back from in order. The relay
 * appends and looks at acknowledgements, the subscriber reads; a thread each. Implemented by
 * src/sim; a bus without one ("local:") takes a record for journalled once it is committed. */
#ifndef PW_JOURNAL_H
#define PW_JOURNAL_H

#include "core/store.h"

struct pw_journal;

/* A record came back. Borrowed for the call. */
typedef void (*pw_journalled)(void *arg, uint64_t lsn, pawl_bytes record);

struct pw_journal_ops {
    /* Appends one record, without waiting for its acknowledgement. lsns rise, but may begin anew
     * from a lower one after a failure: every reader takes a record only when its lsn is higher
     * than what it has. PAWL_E_BUSY: the window is full. PAWL_E_IO: begin again from the lowest
     * unacknowledged. */
    pawl_err (*append)(struct pw_journal *journal, uint64_t lsn, pawl_bytes record);

    /* The lsn up to which all appended records are acknowledged. Failures of the ones above:
     * PAWL_E_IO, once. */
    pawl_err (*acked)(struct pw_journal *journal, uint64_t *lsn);

    /* Hands over what came back, at most `most`; their number. */
    size_t (*fetch)(struct pw_journal *journal, size_t most, pw_journalled journalled, void *arg);
};

struct pw_journal {
    const struct pw_journal_ops *ops;
};

#endif
