/* SPDX-License-Identifier: Apache-2.0
 *
 * LMDB, opened and written as fast as we know how with every commit on the disk. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bare.h"

#define MAP_BYTES ((size_t)64 << 30)
#define META_SIZE 48 /* core/tables: six numbers */

static uint8_t zeros[4096];

void bare_check(int code, const char *what)
{
    if (code == 0)
        return;
    (void)fprintf(stderr, "bare: %s: %s\n", what, mdb_strerror(code));
    abort();
}

static void open_tables(struct bare *bare)
{
    const struct {
        const char *name;
        MDB_dbi *dbi;
    } tables[] = {
        { "meta", &bare->meta }, { "id", &bare->id },         { "entity", &bare->entity },   { "state", &bare->state },
        { "due", &bare->due },   { "outbox", &bare->outbox }, { "history", &bare->history },
    };
    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
        bare_check(mdb_dbi_open(bare->txn, tables[i].name, MDB_CREATE, tables[i].dbi), tables[i].name);
}

struct bare *bare_open(const char *dir)
{
    struct bare *bare = calloc(1, sizeof(*bare));
    bare_check(mdb_env_create(&bare->env), "create");
    bare_check(mdb_env_set_maxdbs(bare->env, 8), "maxdbs");
    bare_check(mdb_env_set_mapsize(bare->env, MAP_BYTES), "mapsize");
    bare_check(mdb_env_open(bare->env, dir, MDB_NOTLS, 0600), "open");
    bare_begin(bare);
    open_tables(bare);
    bare_commit_txn(bare);
    return bare;
}

void bare_close(struct bare *bare)
{
    mdb_env_close(bare->env);
    free(bare);
}

void bare_begin(struct bare *bare)
{
    bare_check(mdb_txn_begin(bare->env, NULL, 0, &bare->txn), "begin");
}

void bare_commit_txn(struct bare *bare)
{
    bare_put(bare, bare->meta, "shard", sizeof("shard"), META_SIZE, 0);
    bare_check(mdb_txn_commit(bare->txn), "commit");
}

void bare_put(struct bare *bare, MDB_dbi dbi, const void *key, size_t key_size, size_t value_size, unsigned flags)
{
    MDB_val k = { key_size, (void *)(uintptr_t)key };
    MDB_val v = { value_size, zeros };
    bare_check(mdb_put(bare->txn, dbi, &k, &v, flags), "put");
}

void bare_del(struct bare *bare, MDB_dbi dbi, const void *key, size_t key_size)
{
    MDB_val k = { key_size, (void *)(uintptr_t)key };
    bare_check(mdb_del(bare->txn, dbi, &k, NULL), "del");
}

void bare_u64(uint8_t *to, uint64_t value)
{
    for (int i = 7; i >= 0; i--, value >>= 8)
        to[i] = (uint8_t)value;
}

/* machine 0 state 0 row, with the names that the engine's machines of these benchmarks have. */
size_t bare_state_key(uint8_t *key, const char *state, uint64_t row)
{
    size_t size = strlen(state) + 1;
    memcpy(key, "bench", sizeof("bench"));
    memcpy(key + sizeof("bench"), state, size);
    bare_u64(key + sizeof("bench") + size, row);
    return sizeof("bench") + size + 8;
}
