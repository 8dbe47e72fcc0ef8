/* SPDX-License-Identifier: Apache-2.0
 *
 * The store on LMDB: one environment per shard. */
#ifndef PW_LMDB_STORE_H
#define PW_LMDB_STORE_H

#include "core/store.h"

struct pw_lmdb_options {
    const char *dir; /* the shard's own directory, "<data>/shard-<n>"; made when missing and create
                        is set */
    bool create; /* make it when missing; made whole in "<dir>.new" and renamed, so it is there or
                    not */
    bool read_only;            /* beside a running writer */
    uint64_t map_bytes;        /* 0: 1 TiB on 64-bit, 1 GiB else */
    uint32_t readers_max;      /* 0: 1024 */
    uint64_t sync_interval_ms; /* 0: each commit */
};

/* PAWL_E_CORRUPT: not a whole LMDB file (empty, cut, garbage); never replaced by a new one.
 * PAWL_E_SCHEMA: an LMDB file that is not pawl's, or of a newer schema. PAWL_E_FULL, PAWL_E_IO,
 * PAWL_E_NOMEM. On success *store is the caller's, ended by ops->close. */
PAWL_MUST_USE pawl_err pw_lmdb_open(struct pw_store **store, const struct pw_lmdb_options *options,
                                    pawl_why *why);

/* The lock of a data directory: one writer process. `<dir>/owner` holds "pid host"; the kernel
 * frees the lock with the process. PAWL_E_LOCKED: *why names pid and host. *lock is ended by
 * pw_lmdb_unlock (takes -1). */
PAWL_MUST_USE pawl_err pw_lmdb_lock(const char *dir, int *lock, pawl_why *why);
void pw_lmdb_unlock(int lock);

#endif
