/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls of LMDB. */
#include <stdlib.h>
#include <sys/stat.h>

#include "base/base.h"
#include "bench/bare_env.h"
#include "bench/support.h"

#define MAP_BYTES ((size_t)64 * 1024 * 1024 * 1024)
#define META_SIZE 48 /* pw_meta_save */

void bare_env_must(int code, const char *doing)
{
    if (code == MDB_SUCCESS)
        return;
    bench_say("bare loop: %s: %s", doing, mdb_strerror(code));
    exit(1);
}

static MDB_val val_of(pawl_bytes bytes)
{
    return (MDB_val){ bytes.size, (void *)(uintptr_t)bytes.data };
}

void bare_env_open(struct bare_env *env, const char *dir)
{
    static const char *const names[PW_TABLES] = {
        [PW_META] = "meta", [PW_ID] = "id",         [PW_ENTITY] = "entity",   [PW_STATE] = "state",
        [PW_DUE] = "due",   [PW_OUTBOX] = "outbox", [PW_HISTORY] = "history",
    };
    *env = (struct bare_env){ .env = NULL };
    if (mkdir(dir, 0750) != 0)
        bench_say("bare loop: %s cannot be made", dir);
    bare_env_must(mdb_env_create(&env->env), "create");
    bare_env_must(mdb_env_set_mapsize(env->env, MAP_BYTES), "set the size");
    bare_env_must(mdb_env_set_maxdbs(env->env, PW_TABLES), "set the tables");
    bare_env_must(mdb_env_open(env->env, dir, MDB_NOTLS, 0640), "open");
    bare_env_must(mdb_txn_begin(env->env, NULL, 0, &env->txn), "begin");
    for (size_t i = 0; i < PW_TABLES; i++)
        bare_env_must(mdb_dbi_open(env->txn, names[i], MDB_CREATE, &env->tables[i]),
                      "open a table");
    bare_env_must(mdb_txn_commit(env->txn), "commit");
}

void bare_env_begin(struct bare_env *env)
{
    bare_env_must(mdb_txn_begin(env->env, NULL, 0, &env->txn), "begin");
    for (size_t i = 0; i < PW_TABLES; i++)
        bare_env_must(mdb_cursor_open(env->txn, env->tables[i], &env->cursors[i]), "open a cursor");
}

void bare_env_put(struct bare_env *env, const struct tape_op *op, bool append)
{
    MDB_val key = val_of(op->key);
    MDB_val value = val_of(op->value);
    pawl_bytes *highest = &env->highest[op->table];
    bool above = highest->data == NULL || pw_bytes_compare(op->key, *highest) > 0;
    if (above)
        *highest = op->key;
    bare_env_must(
        mdb_cursor_put(env->cursors[op->table], &key, &value, above && append ? MDB_APPEND : 0),
        "put");
}

void bare_env_del(struct bare_env *env, enum pw_table table, pawl_bytes key)
{
    MDB_val found = val_of(key);
    bare_env_must(mdb_cursor_get(env->cursors[table], &found, NULL, MDB_SET), "find");
    bare_env_must(mdb_cursor_del(env->cursors[table], 0), "delete");
}

void bare_env_commit(struct bare_env *env)
{
    static const uint8_t meta[META_SIZE] = { 0 };
    MDB_val key = { sizeof("shard"), "shard" };
    MDB_val value = { sizeof(meta), (void *)(uintptr_t)meta };
    bare_env_must(mdb_cursor_put(env->cursors[PW_META], &key, &value, 0), "put meta");
    for (size_t i = 0; i < PW_TABLES; i++)
        mdb_cursor_close(env->cursors[i]);
    bare_env_must(mdb_txn_commit(env->txn), "commit");
}

void bare_env_close(struct bare_env *env, const char *dir)
{
    mdb_env_close(env->env);
    bench_remove(dir);
}
