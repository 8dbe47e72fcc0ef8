/* SPDX-License-Identifier: Apache-2.0
 *
 * The ceiling: LMDB alone, doing what a tape says. */
#ifndef BENCH_BARE_LMDB_H
#define BENCH_BARE_LMDB_H

#include "bench/tape.h"

/* How a loop does it. All are equal in what they write and in durability. */
struct bare_way {
    size_t batch;  /* changes in one commit */
    bool append;   /* keys that rise are appended, without a search */
    bool by_table; /* within a commit all of one table, then all of the next */
};

/* Seconds that the whole tape takes, in a fresh environment in `dir`, which is removed. */
double bare_lmdb(const struct tape *tape, const struct bare_way *way, const char *dir);

/* Tries the ways and returns the fastest. */
struct bare_way bare_lmdb_tune(const struct tape *tape, const char *dir);

#endif
