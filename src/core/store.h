/* SPDX-License-Identifier: Apache-2.0
 *
 * The store port: an ordered key-value store with seven tables and transactions. What the tables
 * hold is decided in core/tables; an adapter only keeps bytes. Implemented by src/lmdb (disk) and
 * src/sim (memory); both pass tests/contract. */
#ifndef PW_STORE_H
#define PW_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "pawl/machine.h"

enum pw_table {
    PW_META,    /* text -> fixed structs; holds; positions */
    PW_ID,      /* machine 0 id -> row */
    PW_ENTITY,  /* row -> entity */
    PW_STATE,   /* machine 0 state 0 row -> empty */
    PW_DUE,     /* due time, row -> empty */
    PW_OUTBOX,  /* lsn -> record */
    PW_HISTORY, /* row, version -> happening */
    PW_TABLES,
};

struct pw_store;
struct pw_txn;

/* Returns false to end the scan. Key and value are borrowed for the call. Must not write. */
typedef bool (*pw_scanned)(void *arg, pawl_bytes key, pawl_bytes value);

struct pw_store_ops {
    /* A read transaction sees the last commit, may be begun by any thread, beside the writer, and
     * is ended by the thread that uses it. A write transaction: one at a time, by one and the same
     * thread. Bounded waiting only. PAWL_E_BUSY: too many readers. */
    pawl_err (*begin)(struct pw_store *store, bool write, struct pw_txn **txn);

    /* Ends the transaction, whatever it returns. PAWL_E_FULL: no room in map or disk, nothing is
     * changed, try again later. Anything else but PAWL_OK: unknown, call reopen. */
    pawl_err (*commit)(struct pw_txn *txn);

    /* Ends the transaction without a change. Takes NULL. */
    void (*abort)(struct pw_txn *txn);

    /* *value is borrowed until the transaction's next write or end. PAWL_E_NOT_FOUND. Keys are 1 to
     * 511 bytes. */
    pawl_err (*get)(struct pw_txn *txn, enum pw_table table, pawl_bytes key, pawl_bytes *value);
    pawl_err (*put)(struct pw_txn *txn, enum pw_table table, pawl_bytes key, pawl_bytes value);
    pawl_err (*del)(struct pw_txn *txn, enum pw_table table, pawl_bytes key);

    /* Calls `scanned` for each entry from the first key >= from (size 0: from the first), in order
     * of keys. */
    pawl_err (*scan)(struct pw_txn *txn, enum pw_table table, pawl_bytes from, pw_scanned scanned,
                     void *arg);

    /* Entries in a table, as the transaction sees it. */
    pawl_err (*count)(struct pw_txn *txn, enum pw_table table, uint64_t *count);

    /* How full it is, in per cent of its limit. Cheap enough for each batch. Writer thread. */
    unsigned (*fill_percent)(struct pw_store *store);

    /* Housekeeping, a few times a second at most: frees dead readers' slots, syncs what `interval`
     * left unsynced. Returns after how many ms it wants to be called again. Writer thread. */
    uint64_t (*tend)(struct pw_store *store, uint64_t now_ms);

    /* After an unknown commit: closes and opens anew; what is on disk decides. Waits for readers to
     * end. Writer thread, without a transaction. */
    pawl_err (*reopen)(struct pw_store *store, pawl_why *why);

    /* Syncs, closes, frees. Takes NULL. No transaction is open. */
    void (*close)(struct pw_store *store);
};

/* The first member of every adapter's struct. */
struct pw_store {
    const struct pw_store_ops *ops;
};

#endif
