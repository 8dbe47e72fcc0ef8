/* SPDX-License-Identifier: Apache-2.0
 *
 * A store in front of a store. The port's put and del name no store, so there is one recorder in
 * the process; only the writer's thread writes. */
#include <stdlib.h>

#include "base/base.h"
#include "bench/tape.h"

#define BLOCK_SIZE ((size_t)8 * 1024 * 1024)

struct tape_block {
    struct tape_block *next;
    size_t used;
    uint8_t bytes[BLOCK_SIZE];
};

static struct {
    struct pw_store port;
    struct pw_store *store;
    struct tape *tape;
    enum pw_table last;
} recorder;

static const void *keep(struct tape *tape, pawl_bytes bytes)
{
    struct tape_block *block = tape->blocks;
    if (block == NULL || BLOCK_SIZE - block->used < bytes.size) {
        block = pw_realloc(NULL, sizeof(*block));
        if (block == NULL)
            abort();
        block->next = tape->blocks;
        block->used = 0;
        tape->blocks = block;
    }
    uint8_t *kept = block->bytes + block->used;
    if (bytes.size > 0)
        memcpy(kept, bytes.data, bytes.size);
    block->used += bytes.size;
    return kept;
}

/* pawl writes an entity's row first, or second after its id: there a change begins. */
static bool begins_change(enum pw_table table)
{
    return table == PW_ID || (table == PW_ENTITY && recorder.last != PW_ID);
}

static void record(enum pw_table table, bool del, pawl_bytes key, pawl_bytes value)
{
    struct tape *tape = recorder.tape;
    if (tape == NULL || table == PW_META)
        return;
    if (tape->count == tape->room) {
        tape->room = tape->room > 0 ? tape->room * 2 : 65536;
        tape->ops = pw_realloc(tape->ops, tape->room * sizeof(*tape->ops));
        if (tape->ops == NULL)
            abort();
    }
    bool begins = begins_change(table);
    tape->changes += begins ? 1 : 0;
    recorder.last = table;
    tape->ops[tape->count++] = (struct tape_op){
        .table = table,
        .del = del,
        .begins = begins,
        .key = { keep(tape, key), key.size },
        .value = { keep(tape, value), value.size },
    };
}

static pawl_err begin(struct pw_store *store, bool write, struct pw_txn **txn)
{
    (void)store;
    return recorder.store->ops->begin(recorder.store, write, txn);
}

static pawl_err put(struct pw_txn *txn, enum pw_table table, pawl_bytes key, pawl_bytes value)
{
    record(table, false, key, value);
    return recorder.store->ops->put(txn, table, key, value);
}

static pawl_err del(struct pw_txn *txn, enum pw_table table, pawl_bytes key)
{
    record(table, true, key, (pawl_bytes){ "", 0 });
    return recorder.store->ops->del(txn, table, key);
}

static unsigned fill_percent(struct pw_store *store)
{
    (void)store;
    return recorder.store->ops->fill_percent(recorder.store);
}

static uint64_t tend(struct pw_store *store, uint64_t now_ms)
{
    (void)store;
    return recorder.store->ops->tend(recorder.store, now_ms);
}

static pawl_err reopen(struct pw_store *store, pawl_why *why)
{
    (void)store;
    return recorder.store->ops->reopen(recorder.store, why);
}

static void close_store(struct pw_store *store)
{
    if (store != NULL)
        recorder.store->ops->close(recorder.store);
}

static struct pw_store_ops ops;

void tape_begin(struct tape *tape)
{
    *tape = (struct tape){ .ops = NULL };
    recorder.tape = tape;
    recorder.last = PW_META;
}

struct pw_store *tape_wrap(struct pw_store *store)
{
    ops = *store->ops;
    ops.begin = begin;
    ops.put = put;
    ops.del = del;
    ops.fill_percent = fill_percent;
    ops.tend = tend;
    ops.reopen = reopen;
    ops.close = close_store;
    recorder.port.ops = &ops;
    recorder.store = store;
    return &recorder.port;
}

void tape_end(struct tape *tape)
{
    (void)tape;
    recorder.tape = NULL;
}

void tape_free(struct tape *tape)
{
    struct tape_block *next = NULL;
    for (struct tape_block *block = tape->blocks; block != NULL; block = next) {
        next = block->next;
        pw_free(block);
    }
    pw_free(tape->ops);
    *tape = (struct tape){ .ops = NULL };
}
