/* SPDX-License-Identifier: Apache-2.0
 *
 * The bare loop. It writes the tape's keys and values into the same named tables, in commits with a
 * full sync, and nothing else: it reads nothing, decides nothing, packs nothing, tells nobody. One
 * cursor a table, so that a key near the last one is found without a walk from the root. One row of
 * meta a commit, as pawl. Only one thing it may not do: delete an outbox row in the commit that
 * put it, since a record is heard of only after its commit; such deletes wait for the next one. */
#include <stdlib.h>
#include <sys/stat.h>

#include <lmdb.h>

#include "base/base.h"
#include "bench/bare_lmdb.h"
#include "bench/support.h"

#define MAP_BYTES ((size_t)64 * 1024 * 1024 * 1024)
#define TUNE_CHANGES_MAX 60000 /* enough to tell the ways apart */
#define META_SIZE 48           /* pw_meta_save */

struct loop {
    MDB_env *env;
    MDB_txn *txn;
    MDB_dbi tables[PW_TABLES];
    MDB_cursor *cursors[PW_TABLES];
    pawl_bytes highest[PW_TABLES]; /* key; what is above it may be appended */
    size_t *waiting;               /* outbox deletes of this batch's own rows */
    size_t waiting_count;
    size_t batch_first; /* op at which the batch began */
};

static void must(int code, const char *doing)
{
    if (code == MDB_SUCCESS)
        return;
    bench_say("bare loop: %s: %s", doing, mdb_strerror(code));
    exit(1);
}

static void open_loop(struct loop *loop, const char *dir)
{
    static const char *const names[PW_TABLES] = {
        [PW_META] = "meta", [PW_ID] = "id",         [PW_ENTITY] = "entity",   [PW_STATE] = "state",
        [PW_DUE] = "due",   [PW_OUTBOX] = "outbox", [PW_HISTORY] = "history",
    };
    if (mkdir(dir, 0750) != 0)
        bench_say("bare loop: %s cannot be made", dir);
    must(mdb_env_create(&loop->env), "create");
    must(mdb_env_set_mapsize(loop->env, MAP_BYTES), "set the size");
    must(mdb_env_set_maxdbs(loop->env, PW_TABLES), "set the tables");
    must(mdb_env_open(loop->env, dir, MDB_NOTLS, 0640), "open");
    must(mdb_txn_begin(loop->env, NULL, 0, &loop->txn), "begin");
    for (size_t i = 0; i < PW_TABLES; i++)
        must(mdb_dbi_open(loop->txn, names[i], MDB_CREATE, &loop->tables[i]), "open a table");
    must(mdb_txn_commit(loop->txn), "commit");
}

static void begin_batch(struct loop *loop)
{
    must(mdb_txn_begin(loop->env, NULL, 0, &loop->txn), "begin");
    for (size_t i = 0; i < PW_TABLES; i++)
        must(mdb_cursor_open(loop->txn, loop->tables[i], &loop->cursors[i]), "open a cursor");
}

static void drop(struct loop *loop, const struct tape_op *op)
{
    MDB_val key = { op->key.size, (void *)(uintptr_t)op->key.data };
    must(mdb_cursor_get(loop->cursors[op->table], &key, NULL, MDB_SET), "find");
    must(mdb_cursor_del(loop->cursors[op->table], 0), "delete");
}

static void put(struct loop *loop, const struct tape_op *op, bool append)
{
    MDB_val key = { op->key.size, (void *)(uintptr_t)op->key.data };
    MDB_val value = { op->value.size, (void *)(uintptr_t)op->value.data };
    pawl_bytes *highest = &loop->highest[op->table];
    bool above = highest->data == NULL || pw_bytes_compare(op->key, *highest) > 0;
    if (above)
        *highest = op->key;
    must(mdb_cursor_put(loop->cursors[op->table], &key, &value, above && append ? MDB_APPEND : 0),
         "put");
}

/* Deletes of rows that this very commit put wait for the next one. */
static bool must_wait(const struct loop *loop, const struct tape *tape, const struct tape_op *op)
{
    if (op->table != PW_OUTBOX)
        return false;
    for (size_t i = loop->batch_first; i < tape->count; i++) {
        const struct tape_op *first = &tape->ops[i];
        if (first->table == PW_OUTBOX && !first->del)
            return pw_bytes_compare(op->key, first->key) >= 0;
    }
    return false;
}

static void do_op(struct loop *loop, const struct tape *tape, size_t i, bool append)
{
    const struct tape_op *op = &tape->ops[i];
    if (!op->del)
        put(loop, op, append);
    else if (must_wait(loop, tape, op))
        loop->waiting[loop->waiting_count++] = i;
    else
        drop(loop, op);
}

static void end_batch(struct loop *loop)
{
    static const uint8_t meta[META_SIZE] = { 0 };
    MDB_val key = { sizeof("shard"), "shard" };
    MDB_val value = { sizeof(meta), (void *)(uintptr_t)meta };
    must(mdb_cursor_put(loop->cursors[PW_META], &key, &value, 0), "put meta");
    for (size_t i = 0; i < PW_TABLES; i++)
        mdb_cursor_close(loop->cursors[i]);
    must(mdb_txn_commit(loop->txn), "commit");
}

/* One commit: ops from `from` up to `to`, and what had to wait. */
static void do_batch(struct loop *loop, const struct tape *tape, size_t from, size_t to,
                     const struct bare_way *way)
{
    size_t waited = loop->waiting_count;
    loop->batch_first = from;
    begin_batch(loop);
    for (size_t i = 0; i < waited; i++)
        drop(loop, &tape->ops[loop->waiting[i]]);
    loop->waiting_count = 0;
    if (way->by_table) {
        for (size_t table = 0; table < PW_TABLES; table++)
            for (size_t i = from; i < to; i++)
                if (tape->ops[i].table == table)
                    do_op(loop, tape, i, way->append);
    } else {
        for (size_t i = from; i < to; i++)
            do_op(loop, tape, i, way->append);
    }
    end_batch(loop);
}

/* Where a batch that begins at `from` ends. */
static size_t batch_end(const struct tape *tape, size_t from, size_t changes)
{
    size_t begun = 0;
    for (size_t i = from; i < tape->count; i++) {
        begun += tape->ops[i].begins ? 1 : 0;
        if (begun > changes)
            return i;
    }
    return tape->count;
}

double bare_lmdb(const struct tape *tape, const struct bare_way *way, const char *dir)
{
    struct loop loop = { .env = NULL };
    loop.waiting = pw_alloc((tape->count + 1) * sizeof(*loop.waiting));
    if (loop.waiting == NULL)
        abort();
    open_loop(&loop, dir);
    double began = bench_seconds();
    for (size_t from = 0; from < tape->count || loop.waiting_count > 0;) {
        size_t to = batch_end(tape, from, way->batch);
        do_batch(&loop, tape, from, to, way);
        from = to;
    }
    double took = bench_seconds() - began;
    mdb_env_close(loop.env);
    pw_free(loop.waiting);
    bench_remove(dir);
    return took;
}

struct bare_way bare_lmdb_tune(const struct tape *tape, const char *dir)
{
    static const size_t batches[] = { 256, 512, 1024, 2048, 4096, 8192 };
    struct tape part = *tape;
    part.count = batch_end(tape, 0, TUNE_CHANGES_MAX);
    part.changes = tape->changes < TUNE_CHANGES_MAX ? tape->changes : TUNE_CHANGES_MAX;
    struct bare_way best = { .batch = 0 };
    double best_s = 0;
    for (size_t b = 0; b < PW_COUNT(batches); b++)
        for (unsigned variant = 0; variant < 4; variant++) {
            struct bare_way way = { batches[b], (variant & 1) != 0, (variant & 2) != 0 };
            double took = bare_lmdb(&part, &way, dir);
            bench_say("bare loop: batch %zu%s%s: %.0f changes/s", way.batch,
                      way.append ? ", append" : "", way.by_table ? ", by table" : "",
                      (double)part.changes / took);
            if (best.batch == 0 || took < best_s) {
                best = way;
                best_s = took;
            }
        }
    return best;
}
