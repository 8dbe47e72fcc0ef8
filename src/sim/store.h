/* SPDX-License-Identifier: Apache-2.0
 *
 * The store in memory, for tests: passes the same contract as the one on disk, and fails when told
 * to. It plays the disk of a simulated machine: what was committed outlives a crash (`revive`) and
 * a `close`; only `free` ends it. One thread, and no read while a write transaction is open: the
 * simulated world runs one turn at a time. */
#ifndef PW_SIM_STORE_H
#define PW_SIM_STORE_H

#include "core/store.h"

/* *store is the caller's, ended by pw_sim_store_free. PAWL_E_NOMEM. */
PAWL_MUST_USE pawl_err pw_sim_store_open(struct pw_store **store);

/* Takes NULL. ops->close only lets go. */
void pw_sim_store_free(struct pw_store *store);

/* `tick` (NULL: none) is asked before each begin, get, put, del, scan, count and commit, and once
 * more when a write is durable but not yet answered. When it returns false the operation fails with
 * PAWL_E_IO, and the store is dead: everything fails so until it is revived. */
void pw_sim_store_on_operation(struct pw_store *store, bool (*tick)(void *arg), void *arg);

/* After a crash: what was committed is there, an open transaction is not. Its struct pw_txn may
 * still be aborted. */
void pw_sim_store_revive(struct pw_store *store);

/* A full disk: put, and commit of a transaction that wrote anything, fail with PAWL_E_FULL. */
void pw_sim_store_full(struct pw_store *store, bool full);

/* The Nth commit of a change from now (1, 2, 3...; 0: none) answers PAWL_E_IO, though nobody dies:
 * durable or not. */
void pw_sim_store_fail_commit(struct pw_store *store, uint64_t n, bool durable);

/* A backup of what is committed, and the disk as it was then: while no transaction is open, and
 * before the machine goes on from it. PAWL_E_NOMEM; PAWL_E_NOT_FOUND: there is no backup. */
PAWL_MUST_USE pawl_err pw_sim_store_snapshot(struct pw_store *store);
PAWL_MUST_USE pawl_err pw_sim_store_restore(struct pw_store *store);

/* What fill_percent answers; 0 at first. */
void pw_sim_store_fill(struct pw_store *store, unsigned percent);

#endif
