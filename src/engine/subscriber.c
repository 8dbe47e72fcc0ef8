/* SPDX-License-Identifier: Apache-2.0
 *
 * The subscriber: what comes back from the journal joins the ready lists. Only where there is a
 * journal; a thread of its own. A record that is no task is passed over; the
 * worker checks the rest against the store. What no owner wrote is named, and the entity that it
 * was written over is appended again. */
#include "base/base.h"
#include "base/limits.h"
#include "core/machine.h"
#include "engine/engine.h"
#include "engine/writer.h"

#define FETCH_MAX 256
/* A look at a journal that has nothing, when its adapter does not wait by itself. */
#define EMPTY_MS 1

struct fetched {
    struct pw_shard *shard;
    struct pw_arena *arena;
    struct pw_settled settled[FETCH_MAX];
    size_t count;
};

/* --- foreign records ---------------------------------------------------------------------- */

struct again {
    struct pw_request request; /* first */
    char machine[PW_NAME_MAX + 1];
    char id[PW_ID_MAX + 1];
};

static void on_again(struct pw_request *request)
{
    pw_free(request);
}

/* The entity (or, when there is none, a tombstone) takes its subject back. What is on a
 * subject of no entity, the keeper removes or replaces. */
static void on_void(struct pw_shard *shard, const struct pw_entry *entry)
{
    pw_count(&shard->engine->metrics, void_records, 1);
    pw_log(&shard->engine->log, PAWL_WARN, "journal.foreign",
           "shard=%u subject=%s seq=%llu: a record that no owner wrote; who may publish there?",
           shard->index, entry->subject, (unsigned long long)entry->seq);
    struct again *again = entry->machine != NULL ? pw_alloc(sizeof(*again)) : NULL;
    if (again == NULL) {
        atomic_store(&shard->void_seen, true); /* the keeper compares */
        pw_poke(&shard->relay.wake);
        return;
    }
    pw_print(again->machine, sizeof(again->machine), "%s", entry->machine);
    pw_print(again->id, sizeof(again->id), "%s", entry->id);
    again->request.kind = PW_DO_RESEED;
    again->request.machine = again->machine;
    again->request.id = again->id;
    again->request.always = true;
    again->request.must = true;
    again->request.done = on_again;
    pw_writer_push(shard, &again->request);
}

/* --- records ------------------------------------------------------------------------------ */

static void add_task(struct fetched *fetched, const struct pw_record *record)
{
    struct pw_shard *shard = fetched->shard;
    const struct pw_entity *entity = &record->entity;
    uint64_t row = pw_row_of(shard, entity->machine_name, entity->id);
    if (row == 0)
        return; /* deleted since */
    struct pw_settled *settled = &fetched->settled[fetched->count++];
    *settled =
        (struct pw_settled){ .pool = pw_pool_of(shard->engine, entity->machine), .listed = true };
    settled->listing = (struct pw_listing){
        .shard = shard->index,
        .attempt = entity->attempt,
        .row = row,
        .epoch = entity->epoch,
        .key = entity->key,
        .probation = shard->probation && entity->epoch <= shard->start_lsn,
    };
    settled->listing.suspect = settled->listing.probation && entity->crashes >= 1;
}

/* A record may come twice, and behind ones with higher lsns: when a part of the window is appended
 * again, an earlier one of it may be replaced, in its subject, by its repetition. So nothing is
 * passed over for its lsn: a pool lists no task twice, and the worker asks the store. */
static void on_record(struct fetched *fetched, const struct pw_entry *entry)
{
    struct pw_shard *shard = fetched->shard;
    struct pw_record record;
    pawl_err err =
        pw_record_unpack(entry->record, &shard->engine->machines, fetched->arena, &record);
    if (err != PAWL_OK)
        pw_log(&shard->engine->log, PAWL_ERROR, "subscriber.corrupt",
               "shard=%u lsn=%llu: a record cannot be read, passed over", shard->index,
               (unsigned long long)entry->lsn);
    else if (record.task && record.entity.machine != NULL)
        add_task(fetched, &record);
    if (entry->lsn > atomic_load(&shard->seen_lsn))
        atomic_store(&shard->seen_lsn, entry->lsn);
}

static void on_entry(void *arg, const struct pw_entry *entry)
{
    struct fetched *fetched = arg;
    if (entry->kind == PW_ENTRY_VOID)
        on_void(fetched->shard, entry);
    else if (entry->kind == PW_ENTRY_RECORD)
        on_record(fetched, entry);
}

uint64_t pw_subscriber_turn(struct pw_shard *shard)
{
    struct fetched fetched = { .shard = shard, .arena = &shard->fetch_arena };
    struct pawl *engine = shard->engine;
    if (!atomic_load(&shard->serving))
        return PW_NEVER; /* the keeper pokes */
    pw_arena_reset(fetched.arena);
    size_t got = shard->journal->ops->fetch(shard->journal, FETCH_MAX, on_entry, &fetched);
    for (size_t m = 0; m < engine->machines.count && fetched.count > 0; m++)
        pw_pool_settle(engine->pools[m], fetched.settled, fetched.count);
    return got > 0 ? 0 : EMPTY_MS;
}
