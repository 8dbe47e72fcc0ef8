/* SPDX-License-Identifier: Apache-2.0
 *
 * The subscriber: what comes back from the journal joins the ready lists. Only where there is a
 * journal; a thread of its own. A record that is no task, or was seen before, is passed over; the
 * worker checks the rest against the store. */
#include "base/base.h"
#include "base/limits.h"
#include "core/machine.h"
#include "engine/engine.h"

#define FETCH_MAX 256

struct fetched {
    struct pw_shard *shard;
    struct pw_arena *arena;
    struct pw_settled settled[FETCH_MAX];
    size_t count;
};

static void on_record(void *arg, uint64_t lsn, pawl_bytes bytes)
{
    struct fetched *fetched = arg;
    struct pw_shard *shard = fetched->shard;
    struct pw_record record;
    if (lsn <= shard->seen_lsn)
        return;
    shard->seen_lsn = lsn;
    if (pw_record_unpack(bytes, &shard->engine->machines, fetched->arena, &record) != PAWL_OK) {
        pw_log(&shard->engine->log, PAWL_ERROR, "subscriber.corrupt",
               "shard=%u lsn=%llu: a record cannot be read, passed over", shard->index,
               (unsigned long long)lsn);
        return;
    }
    const struct pw_entity *entity = &record.entity;
    if (!record.task || entity->machine == NULL)
        return;
    struct pw_settled *settled = &fetched->settled[fetched->count++];
    *settled =
        (struct pw_settled){ .pool = pw_pool_of(shard->engine, entity->machine), .listed = true };
    settled->listing = (struct pw_listing){
        .shard = shard->index,
        .attempt = entity->attempt,
        .epoch = entity->epoch,
        .key = entity->key,
        .probation = shard->probation && lsn <= shard->start_lsn,
    };
    settled->listing.suspect = settled->listing.probation && entity->crashes >= 1;
    settled->listing.row = pw_row_of(shard, entity->machine_name, entity->id);
    if (settled->listing.row == 0)
        fetched->count--; /* deleted since */
}

uint64_t pw_subscriber_turn(struct pw_shard *shard)
{
    struct fetched fetched = { .shard = shard, .arena = &shard->fetch_arena };
    struct pawl *engine = shard->engine;
    pw_arena_reset(fetched.arena);
    size_t got = shard->journal->ops->fetch(shard->journal, FETCH_MAX, on_record, &fetched);
    for (size_t m = 0; m < engine->machines.count && fetched.count > 0; m++)
        pw_pool_settle(engine->pools[m], fetched.settled, fetched.count);
    return got > 0 ? 0 : 1;
}
