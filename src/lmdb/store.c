/* SPDX-License-Identifier: Apache-2.0
 *
 * The store port on LMDB. The writer thread owns the write transaction and all housekeeping; any
 * thread reads. The lock guards the pool of read transactions and the gate that reopen closes; it
 * is never held while LMDB works. */
#include <assert.h>
#include <errno.h>
#include <pthread.h>

#include <lmdb.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/wake.h"
#include "lmdb/env.h"

#define READERS_IDLE_MAX 64 /* more are ended: each holds a slot in the lock file */
#define REOPEN_WAIT_MS_MAX                                                                         \
    10000u /* reads are short; a longer one is a bug that must not stop the shard */
#define SMALL_MAP_PAGES ((size_t)1 << 16) /* 256 MiB of pages of 4 KiB */
#define FREE_PAGES_EVERY_MS 1000u         /* walking the free list costs, and it changes slowly */

struct pw_txn {
    struct lmdb_store *store;
    struct pw_txn *next; /* in the pool */
    MDB_txn *txn;
    MDB_cursor *cursors[PW_TABLES]; /* of a write transaction, once used: a key near the last one is
                                       found without a walk from the root */
    int failed;                     /* what made a write transaction unusable; 0: it is fine */
    bool write;
};

struct lmdb_store {
    struct pw_store port;
    struct pw_lmdb_options options;
    struct pw_lmdb_env env;
    struct pw_clock clock;

    pthread_mutex_t lock; /* guards the next five, and env against reopening */
    pthread_cond_t changed;
    struct pw_txn *idle;
    unsigned idle_count;
    unsigned reading;
    bool closed; /* reopen is under way, or has failed with nothing open */

    struct pw_txn writer; /* from here on: writer thread only */
    bool broken;          /* a commit ended unknown: nothing is written before reopen */
    bool unsynced;
    uint64_t synced_ms;
    uint64_t checked_ms;
    uint64_t measured_ms;
    size_t free_pages;
};

static struct lmdb_store *of(struct pw_store *port)
{
    return (struct lmdb_store *)port;
}

/* --- read transactions -------------------------------------------------------------------- */

/* Lets a reader in, with a pooled transaction if there is one. */
static pawl_err enter(struct lmdb_store *store, struct pw_txn **txn)
{
    pawl_err err = PAWL_OK;
    (void)pthread_mutex_lock(&store->lock);
    while (store->closed && err == PAWL_OK)
        if (!pw_cond_wait_ms(&store->changed, &store->lock, REOPEN_WAIT_MS_MAX))
            err = PAWL_E_BUSY;
    if (err == PAWL_OK && store->env.env == NULL)
        err = PAWL_E_IO;
    if (err == PAWL_OK) {
        store->reading++;
        *txn = store->idle;
        if (store->idle != NULL) {
            store->idle = store->idle->next;
            store->idle_count--;
        }
    }
    (void)pthread_mutex_unlock(&store->lock);
    return err;
}

static void count_out(struct lmdb_store *store) /* the lock is held */
{
    assert(store->reading > 0);
    if (--store->reading == 0 && store->closed)
        (void)pthread_cond_broadcast(&store->changed);
}

/* Lets a reader out that has no transaction, or one not worth keeping (NULL: none). It counts as
 * inside until the transaction is gone: reopen would close the environment under it. */
static void discard(struct lmdb_store *store, struct pw_txn *txn)
{
    if (txn != NULL && txn->txn != NULL)
        mdb_txn_abort(txn->txn);
    pw_free(txn);
    (void)pthread_mutex_lock(&store->lock);
    count_out(store);
    (void)pthread_mutex_unlock(&store->lock);
}

/* Lets a reader out; keeps its reset transaction in the pool. */
static void leave(struct lmdb_store *store, struct pw_txn *txn)
{
    (void)pthread_mutex_lock(&store->lock);
    bool keep = store->idle_count < READERS_IDLE_MAX;
    if (keep) {
        txn->next = store->idle;
        store->idle = txn;
        store->idle_count++;
        count_out(store);
    }
    (void)pthread_mutex_unlock(&store->lock);
    if (!keep)
        discard(store, txn);
}

static pawl_err begin_read(struct lmdb_store *store, struct pw_txn **txn)
{
    struct pw_txn *read = NULL;
    int code = ENOMEM;
    pawl_err err = enter(store, &read);
    if (err != PAWL_OK)
        return err;
    if (read != NULL) {
        code = mdb_txn_renew(read->txn);
    } else if ((read = pw_alloc(sizeof(*read))) != NULL) {
        read->store = store;
        code = mdb_txn_begin(store->env.env, NULL, MDB_RDONLY, &read->txn);
    }
    if (code != MDB_SUCCESS) {
        discard(store, read);
        return pw_lmdb_err(code);
    }
    *txn = read;
    return PAWL_OK;
}

static void end_read(struct pw_txn *txn)
{
    mdb_txn_reset(txn->txn);
    leave(txn->store, txn);
}

/* --- write transactions ------------------------------------------------------------------- */

static pawl_err begin_write(struct lmdb_store *store, struct pw_txn **txn)
{
    assert(store->writer.txn == NULL);
    assert(!store->options.read_only);
    if (store->broken || store->env.env == NULL)
        return PAWL_E_IO;
    int code = mdb_txn_begin(store->env.env, NULL, 0, &store->writer.txn);
    if (code != MDB_SUCCESS) {
        store->writer.txn = NULL;
        return pw_lmdb_err(code);
    }
    store->writer.failed = MDB_SUCCESS;
    *txn = &store->writer;
    return PAWL_OK;
}

/* After a failed commit: when the environment takes another transaction, the meta page was not
 * touched. */
static bool is_sound(struct lmdb_store *store)
{
    MDB_txn *probe = NULL;
    if (mdb_txn_begin(store->env.env, NULL, 0, &probe) != MDB_SUCCESS)
        return false;
    mdb_txn_abort(probe);
    return true;
}

static pawl_err commit_failed(struct lmdb_store *store, int code)
{
    pawl_err err = pw_lmdb_err(code);
    bool sound = is_sound(store);
    if (code == EIO && sound && pw_lmdb_out_of_room(store->env.env))
        err = PAWL_E_FULL;
    if (err == PAWL_E_FULL && !sound)
        err = PAWL_E_IO;
    store->broken = err != PAWL_E_FULL;
    return err;
}

static void close_cursors(struct pw_txn *txn)
{
    for (size_t i = 0; i < PW_COUNT(txn->cursors); i++) {
        if (txn->cursors[i] != NULL)
            mdb_cursor_close(txn->cursors[i]);
        txn->cursors[i] = NULL;
    }
}

static pawl_err commit(struct pw_txn *txn)
{
    if (!txn->write) {
        end_read(txn);
        return PAWL_OK;
    }
    struct lmdb_store *store = txn->store;
    close_cursors(txn);
    MDB_txn *taken = txn->txn;
    txn->txn = NULL;
    if (txn->failed != MDB_SUCCESS) { /* a put had failed: nothing of it may happen */
        mdb_txn_abort(taken);
        return pw_lmdb_err(txn->failed);
    }
    int code = mdb_txn_commit(taken);
    if (code != MDB_SUCCESS)
        return commit_failed(store, code);
    store->unsynced = store->options.sync_interval_ms > 0;
    return PAWL_OK;
}

static void abort_txn(struct pw_txn *txn)
{
    if (txn == NULL)
        return;
    if (!txn->write) {
        end_read(txn);
        return;
    }
    close_cursors(txn);
    mdb_txn_abort(txn->txn);
    txn->txn = NULL;
}

/* --- entries ------------------------------------------------------------------------------ */

static MDB_val as_key(pawl_bytes key)
{
    assert(key.size > 0);
    assert(key.size <= PW_LMDB_KEY_MAX);
    MDB_val val = { key.size, (void *)key.data };
    return val;
}

/* The write transaction's cursor of the table. */
static int cursor_of(struct pw_txn *txn, enum pw_table table, MDB_cursor **cursor)
{
    int code = MDB_SUCCESS;
    if (txn->cursors[table] == NULL)
        code = mdb_cursor_open(txn->txn, txn->store->env.tables[table], &txn->cursors[table]);
    *cursor = txn->cursors[table];
    return code;
}

static pawl_err get(struct pw_txn *txn, enum pw_table table, pawl_bytes key, pawl_bytes *value)
{
    MDB_val k = as_key(key);
    MDB_val v = { 0 };
    MDB_cursor *cursor = NULL;
    int code = txn->write ? cursor_of(txn, table, &cursor) : MDB_SUCCESS;
    if (code == MDB_SUCCESS)
        code = txn->write ? mdb_cursor_get(cursor, &k, &v, MDB_SET)
                          : mdb_get(txn->txn, txn->store->env.tables[table], &k, &v);
    if (code != MDB_SUCCESS)
        return pw_lmdb_err(code);
    value->data = v.mv_data;
    value->size = v.mv_size;
    return PAWL_OK;
}

/* The first failure counts: LMDB calls the following ones MDB_BAD_TXN. */
static pawl_err write_failed(struct pw_txn *txn, int code)
{
    if (code == MDB_NOTFOUND)
        return PAWL_E_NOT_FOUND;
    if (txn->failed == MDB_SUCCESS)
        txn->failed = code;
    return pw_lmdb_err(txn->failed);
}

static pawl_err put(struct pw_txn *txn, enum pw_table table, pawl_bytes key, pawl_bytes value)
{
    assert(txn->write);
    MDB_val k = as_key(key);
    MDB_val v = { value.size, (void *)value.data };
    MDB_cursor *cursor = NULL;
    int code = cursor_of(txn, table, &cursor);
    if (code == MDB_SUCCESS)
        code = mdb_cursor_put(cursor, &k, &v, 0);
    return code == MDB_SUCCESS ? PAWL_OK : write_failed(txn, code);
}

static pawl_err del(struct pw_txn *txn, enum pw_table table, pawl_bytes key)
{
    assert(txn->write);
    MDB_val k = as_key(key);
    MDB_cursor *cursor = NULL;
    int code = cursor_of(txn, table, &cursor);
    if (code == MDB_SUCCESS)
        code = mdb_cursor_get(cursor, &k, NULL, MDB_SET);
    if (code == MDB_SUCCESS)
        code = mdb_cursor_del(cursor, 0);
    return code == MDB_SUCCESS ? PAWL_OK : write_failed(txn, code);
}

static pawl_err scan(struct pw_txn *txn, enum pw_table table, pawl_bytes from, pw_scanned scanned,
                     void *arg)
{
    assert(from.size <= PW_LMDB_KEY_MAX);
    MDB_cursor *cursor = NULL;
    MDB_val k = { from.size, (void *)from.data };
    MDB_val v = { 0 };
    int code = mdb_cursor_open(txn->txn, txn->store->env.tables[table], &cursor);
    if (code != MDB_SUCCESS)
        return pw_lmdb_err(code);
    code = mdb_cursor_get(cursor, &k, &v, from.size > 0 ? MDB_SET_RANGE : MDB_FIRST);
    while (code == MDB_SUCCESS) {
        pawl_bytes key = { k.mv_data, k.mv_size };
        pawl_bytes value = { v.mv_data, v.mv_size };
        if (!scanned(arg, key, value))
            break;
        code = mdb_cursor_get(cursor, &k, &v, MDB_NEXT);
    }
    mdb_cursor_close(cursor);
    return code == MDB_NOTFOUND ? PAWL_OK : pw_lmdb_err(code);
}

static pawl_err count(struct pw_txn *txn, enum pw_table table, uint64_t *entries)
{
    MDB_stat stat = { 0 };
    int code = mdb_stat(txn->txn, txn->store->env.tables[table], &stat);
    if (code != MDB_SUCCESS)
        return pw_lmdb_err(code);
    *entries = stat.ms_entries;
    return PAWL_OK;
}

/* --- the whole ---------------------------------------------------------------------------- */

/* Walking the free list costs, so the figure is kept for a while; not of a small map, which is full
 * the sooner and walked the faster. */
static void measure_free_pages(struct lmdb_store *store, size_t map_pages)
{
    uint64_t now_ms = store->clock.monotonic_ms(&store->clock);
    bool fresh = store->measured_ms != 0 && now_ms - store->measured_ms < FREE_PAGES_EVERY_MS;
    if (fresh && map_pages > SMALL_MAP_PAGES)
        return;
    struct pw_txn *txn = NULL;
    if (begin_read(store, &txn) != PAWL_OK)
        return; /* the old figure will do */
    assert(txn != NULL);
    size_t pages = 0;
    if (pw_lmdb_free_pages(txn->txn, &pages) == PAWL_OK) {
        store->free_pages = pages;
        store->measured_ms = now_ms;
    }
    end_read(txn);
}

static unsigned percent(size_t part, size_t whole)
{
    return part >= whole ? 100 : (unsigned)((double)part * 100 / (double)whole);
}

static unsigned fill_percent(struct pw_store *port)
{
    struct lmdb_store *store = of(port);
    size_t used = 0;
    size_t pages = 0;
    if (store->env.env == NULL || pw_lmdb_used_pages(store->env.env, &used, &pages) != PAWL_OK)
        return 0; /* not open: whoever writes learns it there */
    unsigned filled = percent(used, pages);
    if (filled <= PW_MAP_FILL_PERCENT)
        return filled;
    measure_free_pages(store, pages);
    return percent(used - (store->free_pages < used ? store->free_pages : used), pages);
}

/* Returns how long until `every_ms` after *last_ms, and 0 when that is over: then *last_ms is now.
 */
static uint64_t left_ms(uint64_t *last_ms, uint64_t every_ms, uint64_t now_ms)
{
    uint64_t passed_ms = now_ms > *last_ms ? now_ms - *last_ms : 0;
    if (passed_ms < every_ms)
        return every_ms - passed_ms;
    *last_ms = now_ms;
    return 0;
}

/* A failed sync may have dropped what was written: only what reopen reads counts then. */
static void sync_store(struct lmdb_store *store)
{
    if (!store->unsynced || store->env.env == NULL)
        return;
    if (mdb_env_sync(store->env.env, 1) == MDB_SUCCESS)
        store->unsynced = false;
    else
        store->broken = true;
}

static uint64_t tend(struct pw_store *port, uint64_t now_ms)
{
    struct lmdb_store *store = of(port);
    uint64_t check_ms = left_ms(&store->checked_ms, PW_READER_CHECK_MS, now_ms);
    if (check_ms == 0) {
        if (store->env.env != NULL)
            (void)mdb_reader_check(store->env.env,
                                   NULL); /* fails as a whole or not: next time again */
        check_ms = PW_READER_CHECK_MS;
    }
    uint64_t interval_ms = store->options.sync_interval_ms;
    if (interval_ms == 0)
        return check_ms;
    uint64_t sync_ms = left_ms(&store->synced_ms, interval_ms, now_ms);
    if (sync_ms == 0) {
        sync_store(store);
        sync_ms = interval_ms;
    }
    return sync_ms < check_ms ? sync_ms : check_ms;
}

static void close_env(struct lmdb_store *store)
{
    struct pw_txn *idle = store->idle;
    while (idle != NULL) {
        struct pw_txn *next = idle->next;
        mdb_txn_abort(idle->txn);
        pw_free(idle);
        idle = next;
    }
    store->idle = NULL;
    store->idle_count = 0;
    sync_store(store);
    store->unsynced = false;
    pw_lmdb_env_close(&store->env);
}

/* Closes the gate and waits for those inside. False: some stay; the gate is open again. */
static bool shut_readers_out(struct lmdb_store *store)
{
    bool waited = true;
    (void)pthread_mutex_lock(&store->lock);
    store->closed = true;
    while (store->reading > 0 && waited)
        waited = pw_cond_wait_ms(&store->changed, &store->lock, REOPEN_WAIT_MS_MAX);
    bool out = store->reading == 0;
    store->closed = out;
    (void)pthread_mutex_unlock(&store->lock);
    if (!out)
        (void)pthread_cond_broadcast(&store->changed);
    return out;
}

static pawl_err reopen(struct pw_store *port, pawl_why *why)
{
    struct lmdb_store *store = of(port);
    struct pw_lmdb_options options = store->options;
    options.create = false; /* it was there */
    assert(store->writer.txn == NULL);
    if (!shut_readers_out(store))
        return pw_fail(why, PAWL_E_BUSY, "reopen %s: reads do not end", options.dir);
    close_env(store);
    pawl_err err = pw_lmdb_env_open(&store->env, &options, why);
    store->broken = err != PAWL_OK;
    store->measured_ms = 0;
    (void)pthread_mutex_lock(&store->lock);
    store->closed = false;
    (void)pthread_mutex_unlock(&store->lock);
    (void)pthread_cond_broadcast(&store->changed);
    return err;
}

static void close_store(struct pw_store *port)
{
    struct lmdb_store *store = of(port);
    if (store == NULL)
        return;
    assert(store->writer.txn == NULL);
    assert(store->reading == 0);
    close_env(store);
    (void)pthread_cond_destroy(&store->changed); /* nobody waits */
    (void)pthread_mutex_destroy(&store->lock);
    pw_free((char *)store->options.dir);
    pw_free(store);
}

static pawl_err begin(struct pw_store *port, bool write, struct pw_txn **txn)
{
    return write ? begin_write(of(port), txn) : begin_read(of(port), txn);
}

static const struct pw_store_ops lmdb_ops = {
    .begin = begin,
    .commit = commit,
    .abort = abort_txn,
    .get = get,
    .put = put,
    .del = del,
    .scan = scan,
    .count = count,
    .fill_percent = fill_percent,
    .tend = tend,
    .reopen = reopen,
    .close = close_store,
};

pawl_err pw_lmdb_open(struct pw_store **store, const struct pw_lmdb_options *options, pawl_why *why)
{
    struct lmdb_store *made = pw_alloc(sizeof(*made));
    char *dir = pw_strdup(options->dir);
    if (made == NULL || dir == NULL) {
        pw_free(dir);
        pw_free(made);
        return pw_fail(why, PAWL_E_NOMEM, "open %s: out of memory", options->dir);
    }
    made->port.ops = &lmdb_ops;
    made->options = *options;
    made->options.dir = dir;
    made->writer.store = made;
    made->writer.write = true;
    int failed = pthread_mutex_init(&made->lock, NULL);
    assert(failed == 0);
    (void)failed;
    pw_cond_init(&made->changed);
    pw_clock_init(&made->clock);
    pawl_err err = pw_lmdb_env_open(&made->env, options, why);
    if (err == PAWL_OK)
        *store = &made->port;
    else
        close_store(&made->port);
    return err;
}
