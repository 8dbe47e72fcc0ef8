/* SPDX-License-Identifier: Apache-2.0
 *
 * Bare LMDB for the ceilings: pawl's tables, keys and sizes, and no logic at all. */
#ifndef BARE_H
#define BARE_H

#include <lmdb.h>

#include "bench.h"

struct bare {
    MDB_env *env;
    MDB_txn *txn;
    MDB_dbi meta, id, entity, state, due, outbox, history;
};

void bare_check(int code, const char *what);
void bare_put(struct bare *bare, MDB_dbi dbi, const void *key, size_t key_size, size_t value_size, unsigned flags);
void bare_del(struct bare *bare, MDB_dbi dbi, const void *key, size_t key_size);
void bare_begin(struct bare *bare);

/* With the shard's own record, which each commit of pawl writes too. */
void bare_commit_txn(struct bare *bare);

void bare_u64(uint8_t *to, uint64_t value);
size_t bare_state_key(uint8_t *key, const char *state, uint64_t row);

#endif
