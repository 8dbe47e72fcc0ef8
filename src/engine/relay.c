/* SPDX-License-Identifier: Apache-2.0
 *
 * The relay: moves what is committed to where it is heard of. A turn keeps the journal's tail and
 * appends to it (keeper.c), then sends the effects of what is journalled (effects.c). Relay
 * thread. */
#include <assert.h>

#include "base/base.h"
#include "base/limits.h"
#include "engine/engine.h"

struct rows {
    struct pw_arena *arena;
    struct pw_outbox_row *list;
    size_t room;
    size_t count;
    size_t bytes;
    uint64_t upto;
    bool more;
    pawl_err err;
};

static bool collect(void *arg, pawl_bytes key, pawl_bytes value)
{
    struct rows *rows = arg;
    uint64_t lsn = key.size == 8 ? pw_get_u64(key.data) : PW_NEVER;
    if (lsn > rows->upto)
        return false;
    rows->more = rows->count == rows->room || rows->bytes > PW_RELAY_BYTES_MAX;
    if (rows->more)
        return false;
    const char *copy = pw_arena_text(rows->arena, value);
    if (copy == NULL) {
        rows->err = PAWL_E_NOMEM;
        return false;
    }
    rows->bytes += value.size;
    rows->list[rows->count++] = (struct pw_outbox_row){ lsn, { copy, value.size } };
    return true;
}

/* No transaction stays open. */
pawl_err pw_outbox_read(struct pw_shard *shard, struct pw_arena *arena, uint64_t from,
                        uint64_t upto, struct pw_outbox_row *rows, size_t room, size_t *count,
                        bool *more)
{
    const struct pw_tables *tables = &shard->tables;
    struct rows read = { .arena = arena, .list = rows, .room = room, .upto = upto };
    struct pw_txn *txn = NULL;
    struct pw_key key = { .size = 0 };
    pw_key_u64(&key, from);
    pawl_err err = tables->store->ops->begin(tables->store, false, &txn);
    if (err != PAWL_OK)
        return err;
    err = tables->store->ops->scan(txn, PW_OUTBOX, pw_key_bytes(&key), collect, &read);
    tables->store->ops->abort(txn);
    if (err == PAWL_OK)
        err = read.err;
    *count = read.count;
    *more = read.more;
    return err;
}

uint64_t pw_relay_turn(struct pw_shard *shard)
{
    uint64_t keeper_ms = shard->journal != NULL ? pw_keeper_turn(shard) : PW_NEVER;
    uint64_t effects_ms = pw_effects_turn(shard);
    return keeper_ms < effects_ms ? keeper_ms : effects_ms;
}

bool pw_relay_is_idle(struct pw_shard *shard)
{
    const struct pw_relay *relay = &shard->relay;
    const struct pw_keeper *keeper = &relay->keeper;
    uint64_t outbox_lsn = atomic_load(&shard->outbox_lsn);
    bool kept =
        shard->journal == NULL ||
        (keeper->tail == PW_TAIL_LIVE && keeper->seed_pass == 0 && !keeper->mismatch &&
         atomic_load(&keeper->unanswered) == 0 && atomic_load(&shard->acked_lsn) >= outbox_lsn);
    return kept && relay->lot.upto_lsn == 0 && relay->sent_lsn >= outbox_lsn;
}

static void poke(void *arg)
{
    pw_poke(&((struct pw_shard *)arg)->relay.wake);
}

void pw_relay_init(struct pw_shard *shard)
{
    struct pw_relay *relay = &shard->relay;
    pw_wake_init(&relay->wake);
    pw_arena_init(&relay->lot.arena, (size_t)256 * 1024);
    pw_arena_init(&relay->arena, (size_t)256 * 1024);
    pw_keeper_init(shard);
    if (shard->journal == NULL)
        return;
    shard->journal->poke = poke;
    shard->journal->poke_arg = shard;
}

void pw_relay_begin(struct pw_shard *shard, uint64_t committed_lsn, uint64_t outbox_lsn)
{
    const struct pw_meta *meta = &shard->writer.meta;
    shard->relay.sent_lsn = meta->sent_lsn;
    shard->position.created = meta->journal_created;
    shard->position.seq = meta->journal_seq;
    shard->position.lsn = meta->journal_lsn;
    shard->relay.keeper.append_lsn = meta->sent_lsn + 1;
    shard->relay.keeper.reconcile = meta->reconciling;
    atomic_store(&shard->trim_lsn, meta->sent_lsn);
    atomic_store(&shard->acked_lsn, shard->journal != NULL ? 0 : committed_lsn);
    atomic_store(&shard->committed_lsn, committed_lsn);
    atomic_store(&shard->outbox_lsn, outbox_lsn);
}

void pw_relay_fini(struct pw_shard *shard)
{
    struct pw_relay *relay = &shard->relay;
    pw_keeper_fini(shard);
    pw_wake_fini(&relay->wake);
    pw_arena_fini(&relay->lot.arena);
    pw_arena_fini(&relay->arena);
}
