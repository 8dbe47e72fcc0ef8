/* SPDX-License-Identifier: Apache-2.0
 *
 * A tape of what an engine wrote: every put and delete with its very bytes, in order, so that a
 * bare loop can do the same work. Rows of meta are left out (one a commit, whatever the batch). */
#ifndef BENCH_TAPE_H
#define BENCH_TAPE_H

#include "core/store.h"

struct tape_op {
    enum pw_table table;
    bool del;
    bool begins; /* the first one of a change */
    pawl_bytes key;
    pawl_bytes value;
};

struct tape {
    struct tape_op *ops;
    size_t count;
    size_t room;
    size_t changes;
    struct tape_block *blocks; /* the bytes */
};

/* Records what is written through the store that tape_wrap returns, from now on. One at a time. */
void tape_begin(struct tape *tape);
struct pw_store *tape_wrap(struct pw_store *store);

/* Stops recording. The wrapped store is closed by then. */
void tape_end(struct tape *tape);
void tape_free(struct tape *tape);

#endif
