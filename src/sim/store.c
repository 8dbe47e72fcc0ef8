/* SPDX-License-Identifier: Apache-2.0
 *
 * A table is a sorted array of pointers to entries; an open write transaction changes it in place
 * and keeps an undo log. Entries that were replaced or deleted live in the log until the end, so
 * borrowed values stay valid. */
#include <assert.h>
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/limits.h"
#include "sim/store.h"

#define ENTRIES_FIRST 64u
#define CHANGES_FIRST 64u

struct entry {
    uint32_t key_size;
    uint32_t value_size;
    uint8_t bytes[]; /* key, value */
};

struct table {
    struct entry **entries;
    size_t count;
    size_t room; /* never shrinks, so that undoing a delete needs no memory */
};

/* before NULL: the key was new. after NULL: it was deleted. */
struct change {
    enum pw_table table;
    struct entry *before;
    struct entry *after;
};

struct pw_txn {
    struct sim_store *store;
    bool write;
};

struct sim_store {
    struct pw_store port;
    struct table tables[PW_TABLES];
    struct table backup[PW_TABLES];
    bool has_backup;
    struct change *changes;
    size_t changes_count;
    size_t changes_room;
    struct pw_txn reader; /* all read transactions: they see the same */
    struct pw_txn writer;
    unsigned reading;
    bool writing;
    bool dead;
    bool full;
    unsigned fill;
    uint64_t fail_commit; /* counts down; 0: none */
    bool fail_durable;
    bool (*tick)(void *arg);
    void *tick_arg;
};

static struct sim_store *of(struct pw_store *port)
{
    return (struct sim_store *)port;
}

static pawl_err tick(struct sim_store *store)
{
    if (!store->dead && store->tick != NULL && !store->tick(store->tick_arg))
        store->dead = true;
    return store->dead ? PAWL_E_IO : PAWL_OK;
}

/* --- tables ------------------------------------------------------------------------------- */

static pawl_bytes key_of(const struct entry *entry)
{
    pawl_bytes key = { entry->bytes, entry->key_size };
    return key;
}

static pawl_bytes value_of(const struct entry *entry)
{
    pawl_bytes value = { entry->bytes + entry->key_size, entry->value_size };
    return value;
}

/* The index of the first entry whose key is not below `key`. Rising keys are appended without a
 * search. */
static size_t lower_bound(const struct table *table, pawl_bytes key)
{
    size_t low = 0;
    size_t high = table->count;
    if (high > 0 && pw_bytes_compare(key_of(table->entries[high - 1]), key) < 0)
        return high;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (pw_bytes_compare(key_of(table->entries[middle]), key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool is_at(const struct table *table, size_t index, pawl_bytes key)
{
    return index < table->count && pw_bytes_equal(key_of(table->entries[index]), key);
}

/* Twice the room when `count` fills it. */
static pawl_err make_room(void **array, size_t *room, size_t count, size_t size, size_t first)
{
    if (count < *room)
        return PAWL_OK;
    size_t more = *room > 0 ? *room * 2 : first;
    void *grown = pw_realloc(*array, more * size);
    if (grown == NULL)
        return PAWL_E_NOMEM;
    *array = grown;
    *room = more;
    return PAWL_OK;
}

static void insert_at(struct table *table, size_t index, struct entry *entry)
{
    assert(table->count < table->room);
    struct entry **at = &table->entries[index];
    memmove(at + 1, at, (table->count - index) * sizeof(struct entry *));
    *at = entry;
    table->count++;
}

static void remove_at(struct table *table, size_t index)
{
    assert(index < table->count);
    struct entry **at = &table->entries[index];
    table->count--;
    memmove(at, at + 1, (table->count - index) * sizeof(struct entry *));
}

static struct entry *new_entry(pawl_bytes key, pawl_bytes value)
{
    assert(value.size <= UINT32_MAX);
    struct entry *entry = pw_alloc(sizeof(*entry) + key.size + value.size);
    if (entry == NULL)
        return NULL;
    entry->key_size = (uint32_t)key.size;
    entry->value_size = (uint32_t)value.size;
    memcpy(entry->bytes, key.data, key.size);
    if (value.size > 0)
        memcpy(entry->bytes + key.size, value.data, value.size);
    return entry;
}

/* --- transactions ------------------------------------------------------------------------- */

static pawl_err make_room_for_change(struct sim_store *store)
{
    void *array = store->changes;
    pawl_err err = make_room(&array, &store->changes_room, store->changes_count,
                             sizeof(struct change), CHANGES_FIRST);
    store->changes = array;
    return err;
}

static pawl_err make_room_for_entry(struct table *table)
{
    void *array = table->entries;
    pawl_err err =
        make_room(&array, &table->room, table->count, sizeof(struct entry *), ENTRIES_FIRST);
    table->entries = array;
    return err;
}

static void undo(struct sim_store *store, struct change change)
{
    struct table *table = &store->tables[change.table];
    pawl_bytes key = key_of(change.before != NULL ? change.before : change.after);
    size_t index = lower_bound(table, key);
    if (change.after == NULL) {
        insert_at(table, index, change.before);
        return;
    }
    assert(is_at(table, index, key));
    if (change.before != NULL)
        table->entries[index] = change.before;
    else
        remove_at(table, index);
    pw_free(change.after);
}

static void roll_back(struct sim_store *store)
{
    while (store->changes_count > 0)
        undo(store, store->changes[--store->changes_count]);
    store->writing = false;
}

static void keep(struct sim_store *store)
{
    for (size_t i = 0; i < store->changes_count; i++)
        pw_free(store->changes[i].before);
    store->changes_count = 0;
    store->writing = false;
}

static pawl_err begin(struct pw_store *port, bool write, struct pw_txn **txn)
{
    struct sim_store *store = of(port);
    pawl_err err = tick(store);
    if (err != PAWL_OK)
        return err;
    assert(!store->writing);
    if (write) {
        assert(store->reading == 0);
        store->writing = true;
        *txn = &store->writer;
    } else {
        store->reading++;
        *txn = &store->reader;
    }
    return PAWL_OK;
}

/* A transaction that a crash has ended already is let go once more without harm. */
static void abort_txn(struct pw_txn *txn)
{
    if (txn == NULL)
        return;
    if (txn->write)
        roll_back(txn->store);
    else if (txn->store->reading > 0)
        txn->store->reading--;
}

static pawl_err commit(struct pw_txn *txn)
{
    struct sim_store *store = txn->store;
    bool wrote = txn->write && store->changes_count > 0;
    pawl_err err = tick(store);
    if (err == PAWL_OK && wrote && store->full)
        err = PAWL_E_FULL;
    bool fails = err == PAWL_OK && wrote && store->fail_commit > 0 && --store->fail_commit == 0;
    if (err != PAWL_OK || !txn->write || (fails && !store->fail_durable)) {
        abort_txn(txn);
        return fails ? PAWL_E_IO : err;
    }
    keep(store);
    if (fails)
        return PAWL_E_IO;
    return wrote ? tick(store) : PAWL_OK;
}

/* --- entries ------------------------------------------------------------------------------ */

static pawl_err begin_operation(struct pw_txn *txn, pawl_bytes key)
{
    assert(key.size > 0);
    assert(key.size <= PW_LMDB_KEY_MAX);
    pawl_err err = tick(txn->store);
    if (err == PAWL_OK)
        assert(txn->write ? txn->store->writing : txn->store->reading > 0);
    return err;
}

static pawl_err get(struct pw_txn *txn, enum pw_table which, pawl_bytes key, pawl_bytes *value)
{
    pawl_err err = begin_operation(txn, key);
    if (err != PAWL_OK)
        return err;
    const struct table *table = &txn->store->tables[which];
    size_t index = lower_bound(table, key);
    if (!is_at(table, index, key))
        return PAWL_E_NOT_FOUND;
    *value = value_of(table->entries[index]);
    return PAWL_OK;
}

static pawl_err put(struct pw_txn *txn, enum pw_table which, pawl_bytes key, pawl_bytes value)
{
    assert(txn->write);
    struct sim_store *store = txn->store;
    struct table *table = &store->tables[which];
    pawl_err err = begin_operation(txn, key);
    if (err == PAWL_OK && store->full)
        err = PAWL_E_FULL;
    if (err == PAWL_OK)
        err = make_room_for_change(store);
    if (err == PAWL_OK)
        err = make_room_for_entry(table);
    if (err != PAWL_OK)
        return err;
    struct change change = { .table = which, .after = new_entry(key, value) };
    if (change.after == NULL)
        return PAWL_E_NOMEM;
    size_t index = lower_bound(table, key);
    if (is_at(table, index, key)) {
        change.before = table->entries[index];
        table->entries[index] = change.after;
    } else {
        insert_at(table, index, change.after);
    }
    store->changes[store->changes_count++] = change;
    return PAWL_OK;
}

static pawl_err del(struct pw_txn *txn, enum pw_table which, pawl_bytes key)
{
    assert(txn->write);
    struct sim_store *store = txn->store;
    struct table *table = &store->tables[which];
    pawl_err err = begin_operation(txn, key);
    if (err == PAWL_OK)
        err = make_room_for_change(store);
    if (err != PAWL_OK)
        return err;
    size_t index = lower_bound(table, key);
    if (!is_at(table, index, key))
        return PAWL_E_NOT_FOUND;
    struct change change = { .table = which, .before = table->entries[index] };
    remove_at(table, index);
    store->changes[store->changes_count++] = change;
    return PAWL_OK;
}

static pawl_err scan(struct pw_txn *txn, enum pw_table which, pawl_bytes from, pw_scanned scanned,
                     void *arg)
{
    const struct table *table = &txn->store->tables[which];
    pawl_err err = tick(txn->store);
    if (err != PAWL_OK)
        return err;
    size_t changes = txn->store->changes_count;
    for (size_t i = from.size > 0 ? lower_bound(table, from) : 0; i < table->count; i++) {
        bool go_on = scanned(arg, key_of(table->entries[i]), value_of(table->entries[i]));
        assert(txn->store->changes_count == changes); /* it must not write */
        if (!go_on)
            break;
    }
    return PAWL_OK;
}

static pawl_err count(struct pw_txn *txn, enum pw_table which, uint64_t *entries)
{
    pawl_err err = tick(txn->store);
    if (err != PAWL_OK)
        return err;
    *entries = txn->store->tables[which].count;
    return PAWL_OK;
}

/* --- the whole ---------------------------------------------------------------------------- */

static unsigned fill_percent(struct pw_store *port)
{
    return of(port)->fill;
}

static uint64_t tend(struct pw_store *port, uint64_t now_ms)
{
    (void)port;
    (void)now_ms;
    return PW_NEVER;
}

/* A dead machine stays dead; only the world revives it. */
static pawl_err reopen(struct pw_store *port, pawl_why *why)
{
    if (of(port)->dead)
        return pw_fail(why, PAWL_E_IO, "the simulated store is dead");
    assert(!of(port)->writing);
    return PAWL_OK;
}

static void let_go(struct pw_store *port)
{
    (void)port;
}

static const struct pw_store_ops sim_ops = {
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
    .close = let_go,
};

pawl_err pw_sim_store_open(struct pw_store **store)
{
    struct sim_store *made = pw_alloc(sizeof(*made));
    if (made == NULL)
        return PAWL_E_NOMEM;
    made->port.ops = &sim_ops;
    made->reader.store = made;
    made->writer.store = made;
    made->writer.write = true;
    *store = &made->port;
    return PAWL_OK;
}

static void clear(struct table tables[PW_TABLES])
{
    for (int i = 0; i < PW_TABLES; i++) {
        for (size_t j = 0; j < tables[i].count; j++)
            pw_free(tables[i].entries[j]);
        pw_free(tables[i].entries);
        tables[i] = (struct table){ .count = 0 };
    }
}

static bool copy_table(struct table *to, const struct table *from)
{
    to->room = from->count + ENTRIES_FIRST;
    to->entries = pw_alloc(to->room * sizeof(struct entry *));
    if (to->entries == NULL)
        return false;
    for (; to->count < from->count; to->count++) {
        const struct entry *entry = from->entries[to->count];
        to->entries[to->count] = new_entry(key_of(entry), value_of(entry));
        if (to->entries[to->count] == NULL)
            return false;
    }
    return true;
}

/* Replaces what `to` holds, unless memory fails. */
static pawl_err copy_all(struct table to[PW_TABLES], const struct table from[PW_TABLES])
{
    struct table copies[PW_TABLES] = { { .count = 0 } };
    for (int i = 0; i < PW_TABLES; i++) {
        if (copy_table(&copies[i], &from[i]))
            continue;
        clear(copies);
        return PAWL_E_NOMEM;
    }
    clear(to);
    memcpy(to, copies, sizeof(copies));
    return PAWL_OK;
}

void pw_sim_store_free(struct pw_store *port)
{
    struct sim_store *store = of(port);
    if (store == NULL)
        return;
    roll_back(store);
    clear(store->tables);
    clear(store->backup);
    pw_free(store->changes);
    pw_free(store);
}

void pw_sim_store_on_operation(struct pw_store *store, bool (*asked)(void *arg), void *arg)
{
    of(store)->tick = asked;
    of(store)->tick_arg = arg;
}

void pw_sim_store_revive(struct pw_store *store)
{
    roll_back(of(store));
    of(store)->reading = 0;
    of(store)->dead = false;
}

void pw_sim_store_full(struct pw_store *store, bool full)
{
    of(store)->full = full;
}

void pw_sim_store_fail_commit(struct pw_store *store, uint64_t n, bool durable)
{
    of(store)->fail_commit = n;
    of(store)->fail_durable = durable;
}

void pw_sim_store_fill(struct pw_store *store, unsigned percent)
{
    of(store)->fill = percent;
}

pawl_err pw_sim_store_snapshot(struct pw_store *port)
{
    struct sim_store *store = of(port);
    assert(!store->writing);
    pawl_err err = copy_all(store->backup, store->tables);
    store->has_backup = store->has_backup || err == PAWL_OK;
    return err;
}

pawl_err pw_sim_store_restore(struct pw_store *port)
{
    struct sim_store *store = of(port);
    assert(!store->writing);
    return store->has_backup ? copy_all(store->tables, store->backup) : PAWL_E_NOT_FOUND;
}
