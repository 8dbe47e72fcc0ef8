/* SPDX-License-Identifier: Apache-2.0
 *
 * An LMDB environment with pawl's named tables, as bare as a loop can use it: commits with a full
 * sync, a cursor a table so that a key near the last one is found without a walk from the root, and
 * one row of meta a commit, as pawl writes it. Exits with a message when anything fails. */
#ifndef BENCH_BARE_ENV_H
#define BENCH_BARE_ENV_H

#include <lmdb.h>

#include "bench/tape.h"

struct bare_env {
    MDB_env *env;
    MDB_txn *txn;
    MDB_dbi tables[PW_TABLES];
    MDB_cursor *cursors[PW_TABLES];
    pawl_bytes highest[PW_TABLES]; /* key; what is above it may be appended */
};

void bare_env_open(struct bare_env *env, const char *dir);
void bare_env_begin(struct bare_env *env);

/* append: a key above the highest so far is put without a search. The key must stay. */
void bare_env_put(struct bare_env *env, const struct tape_op *op, bool append);
void bare_env_del(struct bare_env *env, enum pw_table table, pawl_bytes key);
void bare_env_commit(struct bare_env *env);

/* Removes the directory as well. */
void bare_env_close(struct bare_env *env, const char *dir);

void bare_env_must(int code, const char *doing);

#endif
