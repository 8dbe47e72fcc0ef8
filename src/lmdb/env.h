/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of this folder share: opening an environment whole, and the border's one
 * translation of errors. */
#ifndef PW_LMDB_ENV_H
#define PW_LMDB_ENV_H

#include <lmdb.h>

#include "lmdb/store.h"

#define PW_SCHEMA_KEY "schema"
#define PW_SCHEMA_VERSION 1u

/* Paths that we build: "<dir>.new/lock.mdb" and the like. Longer ones are refused. */
#define PW_PATH_MAX 4096

struct pw_lmdb_env {
    MDB_env *env; /* NULL: closed */
    MDB_dbi tables[PW_TABLES];
};

/* The only place that knows MDB_* and errno. */
pawl_err pw_lmdb_err(int code);

/* Makes the directory when it is missing and `create` says so; checks, opens, reads the schema. */
PAWL_MUST_USE pawl_err pw_lmdb_env_open(struct pw_lmdb_env *env,
                                        const struct pw_lmdb_options *options, pawl_why *why);
void pw_lmdb_env_close(struct pw_lmdb_env *env);

/* Reads the file's head by hand, since LMDB would map and trust it: PAWL_E_CORRUPT when it is not a
 * whole LMDB file. *bytes is the file's size. */
PAWL_MUST_USE pawl_err pw_lmdb_check(const char *dir, uint64_t *bytes, pawl_why *why);

/* Pages up to the last one ever used, and what the map holds. Cheap. */
PAWL_MUST_USE pawl_err pw_lmdb_used_pages(MDB_env *env, size_t *used, size_t *pages);

/* Pages in the free list (LMDB's table 0: each value begins with a count). What a long reader still
 * holds counts too: it ends. Costs a walk. */
PAWL_MUST_USE pawl_err pw_lmdb_free_pages(MDB_txn *txn, size_t *pages);

/* After a write failed with EIO: was it for want of room? LMDB says EIO when a full disk cuts a
 * write short. The file then ends where the room did, so one more page at its end tells; it belongs
 * to nobody and is taken back. No write transaction is open. */
bool pw_lmdb_out_of_room(MDB_env *env);

#endif
