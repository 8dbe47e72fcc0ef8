/* SPDX-License-Identifier: Apache-2.0
 *
 * The writer's side of what the keeper finds in the journal: records that the store does not know
 * are taken over, and records that the journal lacks are made again. Writer thread. */
#include <assert.h>

#include "base/base.h"
#include "engine/batch.h"

static const struct pw_store_ops *ops_of(const struct pw_shard *shard)
{
    return shard->tables.store->ops;
}

/* PAWL_E_NOT_FOUND; a tombstone is found. */
static pawl_err find(struct pw_batch *b, const char *machine, const char *id, uint64_t row,
                     struct pw_entity *entity)
{
    const struct pw_tables *tables = &b->shard->tables;
    pawl_err err = row != 0 ? PAWL_OK : pw_tables_find(tables, b->txn, machine, id, &row);
    return err == PAWL_OK ? pw_tables_load_any(tables, b->txn, row, &b->shard->writer.arena, entity)
                          : err;
}

/* --- what is set aside -------------------------------------------------------------------- */

struct aside {
    struct pw_batch *b;
    const struct pw_heads *taken;
    const struct pw_last_opening *last;
    uint64_t lsns[64]; /* of one entity */
    size_t count;
};

/* Committed here and never journalled, while the journal went on without it: it is above the record
 * that is taken, or above what the last owner's opening follows. */
static bool diverged(const struct aside *aside, uint64_t lsn)
{
    return lsn > aside->taken->lsn ||
           (lsn >> 32 < aside->last->fence && lsn > aside->last->follows_lsn);
}

static bool look_at_row(void *arg, pawl_bytes key, pawl_bytes value)
{
    struct aside *aside = arg;
    struct pawl *engine = aside->b->shard->engine;
    struct pw_heads heads;
    if (key.size != 8 || pw_record_heads(value, &heads) != PAWL_OK)
        return true;
    bool its = strcmp(heads.machine, aside->taken->machine) == 0 &&
               strcmp(heads.id, aside->taken->id) == 0;
    if (!its || !diverged(aside, heads.lsn))
        return true;
    if (engine->set_aside.row != NULL)
        engine->set_aside.row(engine->set_aside.arg, aside->b->shard->index, heads.lsn, value);
    aside->lsns[aside->count++] = heads.lsn;
    return aside->count < PW_COUNT(aside->lsns);
}

/* Outbox rows of the entity that the journal contradicts go to the file, and out of the outbox. */
static pawl_err set_aside(struct pw_batch *b, const struct pw_request *r,
                          const struct pw_heads *taken)
{
    struct aside aside = { .b = b, .taken = taken, .last = &r->last };
    const pawl_bytes first = { "", 0 };
    pawl_err err = PAWL_OK;
    do {
        aside.count = 0;
        err = ops_of(b->shard)->scan(b->txn, PW_OUTBOX, first, look_at_row, &aside);
        for (size_t i = 0; i < aside.count && err == PAWL_OK; i++) {
            struct pw_key key = { .size = 0 };
            pw_key_u64(&key, aside.lsns[i]);
            err = ops_of(b->shard)->del(b->txn, PW_OUTBOX, pw_key_bytes(&key));
        }
        pw_count(&b->shard->engine->metrics, set_aside, aside.count);
    } while (err == PAWL_OK && aside.count == PW_COUNT(aside.lsns));
    return err;
}

static bool is_in_outbox(struct pw_batch *b, uint64_t lsn)
{
    struct pw_key key = { .size = 0 };
    pawl_bytes value = { NULL, 0 };
    pw_key_u64(&key, lsn);
    return ops_of(b->shard)->get(b->txn, PW_OUTBOX, pw_key_bytes(&key), &value) == PAWL_OK;
}

/* --- take --------------------------------------------------------------------------------- */

/* Tells that acted on the entity elsewhere are not acted on again here. */
static pawl_err take_told(struct pw_batch *b, const struct pw_entity *entity)
{
    pawl_err err = PAWL_OK;
    for (size_t i = 0; i < entity->told_count && err == PAWL_OK; i++) {
        const struct pw_told *told = &entity->told[i];
        struct pw_cursor *cursor = told->shard < PW_SHARDS_MAX ? &b->told[told->shard] : NULL;
        bool newer =
            cursor != NULL && (told->lsn > cursor->acted_lsn ||
                               (told->lsn == cursor->acted_lsn && told->n > cursor->acted_n));
        if (!newer)
            continue;
        *cursor = (struct pw_cursor){ told->lsn, told->lsn, told->n, told->n };
        err = pw_told_save(&b->shard->tables, b->txn, told->shard, told->lsn, told->n);
    }
    return err;
}

static pawl_err take_tombstone(struct pw_batch *b, struct pw_entity *before, bool lives,
                               const struct pw_record *record, const struct pw_save *save)
{
    struct pw_arena *arena = &b->shard->writer.arena;
    struct pw_entity dead = record->entity;
    dead.version = record->lsn;
    dead.row = before != NULL ? before->row : b->meta.next_row;
    if (lives) {
        struct pw_update update = { .change = PW_REMOVED, .after = dead };
        update.after.happenings = before->happenings;
        return pw_tables_put(&b->shard->tables, b->txn, before, &update, save, arena);
    }
    if (before != NULL) {
        dead.tombstone = true;
        dead.deadline_ms = before->deadline_ms;
    }
    b->meta.next_row += before == NULL ? 1 : 0;
    return pw_tables_bury(&b->shard->tables, b->txn, &dead, save, arena);
}

static pawl_err take_entity(struct pw_batch *b, struct pw_entity *before, bool lives,
                            const struct pw_record *record, const struct pw_save *save)
{
    struct pw_update update = { .change = PW_SAVED,
                                .after = record->entity,
                                .happening = { .kind = PW_SILENT } };
    update.after.row = lives ? before->row : b->meta.next_row;
    update.after.happenings = lives ? before->happenings : 0; /* history is each copy's own */
    b->meta.next_row += lives ? 0 : 1;
    return pw_tables_put(&b->shard->tables, b->txn, lives ? before : NULL, &update, save,
                         &b->shard->writer.arena);
}

static pawl_err take(struct pw_batch *b, struct pw_request *r, const struct pw_record *record)
{
    const struct pw_entity *entity = &record->entity;
    struct pw_save save = pw_batch_save(b);
    struct pw_entity found;
    pawl_err err = find(b, entity->machine_name, entity->id, 0, &found);
    struct pw_entity *before = err == PAWL_OK ? &found : NULL;
    bool lives = before != NULL && !before->tombstone;
    if (err != PAWL_OK && err != PAWL_E_NOT_FOUND)
        return err;
    if (before != NULL && before->version == record->lsn)
        return PAWL_OK; /* taken before */
    if (before != NULL && is_in_outbox(b, before->version)) {
        struct pw_heads heads;
        err = pw_record_heads(r->record, &heads);
        err = err == PAWL_OK ? set_aside(b, r, &heads) : err;
        if (err != PAWL_OK)
            return err;
    }
    save.taken = true;
    pw_count(&b->shard->engine->metrics, taken, 1);
    b->changed = true;
    b->bytes += r->record.size;
    if (record->lsn > b->meta.lsn)
        b->meta.lsn = record->lsn;
    for (size_t i = 0; i < entity->effects_count; i++)
        if (entity->effects[i].lsn > b->outbox_lsn)
            b->outbox_lsn = entity->effects[i].lsn;
    err = record->tombstone ? take_tombstone(b, before, lives, record, &save)
                            : take_entity(b, before, lives, record, &save);
    return err == PAWL_OK ? take_told(b, entity) : err;
}

pawl_err pw_do_take(struct pw_batch *b, struct pw_request *r)
{
    struct pw_record record;
    pawl_err err =
        pw_record_unpack(r->record, &b->shard->engine->machines, &b->shard->writer.arena, &record);
    if (err == PAWL_OK)
        err = take(b, r, &record);
    if (err == PAWL_E_CORRUPT || err == PAWL_E_LIMIT) {
        r->err = pw_fail(&r->answer.why, err, "a record of the journal cannot be taken: %s",
                         pawl_err_text(err));
        err = PAWL_OK;
    }
    return err;
}

/* --- reseed ------------------------------------------------------------------------------- */

static pawl_err bury(struct pw_batch *b, struct pw_request *r, const struct pw_entity *tombstone,
                     const struct pw_save *save)
{
    struct pw_entity dead = { .machine_name = r->machine, .id = r->id, .row = b->meta.next_row };
    if (tombstone != NULL)
        dead = *tombstone;
    else
        b->meta.next_row++;
    dead.version = b->meta.lsn;
    return pw_tables_bury(&b->shard->tables, b->txn, &dead, save, &b->shard->writer.arena);
}

static pawl_err save_again(struct pw_batch *b, const struct pw_entity *entity,
                           const struct pw_save *save)
{
    struct pw_update update = { .change = PW_SAVED,
                                .after = *entity,
                                .happening = { .kind = PW_SILENT } };
    update.after.version = b->meta.lsn;
    update.task = pw_entity_ready(entity);
    return pw_tables_put(&b->shard->tables, b->txn, entity, &update, save, &b->shard->writer.arena);
}

pawl_err pw_do_reseed(struct pw_batch *b, struct pw_request *r)
{
    struct pw_save save = pw_batch_save(b);
    struct pw_entity entity;
    pawl_err err = find(b, r->machine, r->id, r->row, &entity);
    bool found = err == PAWL_OK;
    if (err == PAWL_E_CORRUPT || (err == PAWL_E_NOT_FOUND && r->machine == NULL))
        return PAWL_OK; /* verify names it; or it went meanwhile */
    if (err != PAWL_OK && err != PAWL_E_NOT_FOUND)
        return err;
    if (r->asked && (!found || entity.tombstone)) {
        r->err = pw_fail(&r->answer.why, PAWL_E_NOT_FOUND, "no such entity");
        return PAWL_OK;
    }
    r->skipped = found && !r->always && entity.version > atomic_load(&b->shard->acked_lsn) &&
                 is_in_outbox(b, entity.version);
    r->answer.repeated = r->skipped;
    if (r->skipped)
        return PAWL_OK;
    save.fresh = r->fresh;
    b->changed = true;
    b->outbox_lsn = ++b->meta.lsn;
    r->answer.version = b->meta.lsn;
    b->bytes += 512 + (found ? entity.data.size : 0);
    pw_count(&b->shard->engine->metrics, reseeded, 1);
    return found && !entity.tombstone ? save_again(b, &entity, &save)
                                      : bury(b, r, found ? &entity : NULL, &save);
}

pawl_err pw_do_journal(struct pw_batch *b, struct pw_request *r)
{
    if (r->stand.fence_min > b->meta.lsn >> 32)
        b->meta.lsn = (uint64_t)r->stand.fence_min << 32;
    b->meta.reconciling = r->stand.reconciling;
    r->answer.version = b->meta.lsn;
    b->changed = true;
    return PAWL_OK;
}
