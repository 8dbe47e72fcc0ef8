/* SPDX-License-Identifier: Apache-2.0
 *
 * The ceiling of the whole path: LMDB and nats.c alone. One thread commits what is ready and
 * appends its records, another pulls them, checks each against the store, and acknowledges. A
 * change is ready when the record of its entity's change before was pulled; an entity is created
 * when fewer than `in_progress` are. */
#ifndef BENCH_BARE_PATH_H
#define BENCH_BARE_PATH_H

#include "bench/bare_nats.h"

struct bare_path {
    const struct tape *tape; /* each entity has `visits` changes, all with a record */
    const struct bare_record *records;
    size_t changes;
    size_t visits;
    size_t in_progress;
};

/* Seconds that the whole tape takes, in a fresh environment in `dir`, which is removed, with a
 * server that has nothing. */
double bare_path(const struct bare_path *path, const char *bus, const char *dir);

#endif
