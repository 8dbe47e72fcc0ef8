/* SPDX-License-Identifier: Apache-2.0
 *
 * Keys, and one change in all tables. */
#include <assert.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/limits.h"
#include "core/tables.h"

static const pawl_bytes nothing = { "", 0 };

/* --- keys --------------------------------------------------------------------------------- */

static void key_text(struct pw_key *key, const char *text)
{
    size_t size = strlen(text) + 1; /* with its '\0', which ends it: no text holds one */
    assert(key->size + size <= sizeof(key->bytes));
    memcpy(key->bytes + key->size, text, size);
    key->size += size;
}

static void key_u64(struct pw_key *key, uint64_t value)
{
    assert(key->size + 8 <= sizeof(key->bytes));
    pw_put_u64(key->bytes + key->size, value);
    key->size += 8;
}

void pw_key_id(struct pw_key *key, const char *machine, const char *id)
{
    key->size = 0;
    key_text(key, machine);
    key_text(key, id);
}

void pw_key_u64(struct pw_key *key, uint64_t value)
{
    key->size = 0;
    key_u64(key, value);
}

void pw_key_pair(struct pw_key *key, uint64_t first, uint64_t second)
{
    key->size = 0;
    key_u64(key, first);
    key_u64(key, second);
}

void pw_key_state(struct pw_key *key, const char *machine, const char *state, uint64_t row)
{
    key->size = 0;
    key_text(key, machine);
    if (state == NULL)
        return;
    key_text(key, state);
    key_u64(key, row);
}

bool pw_key_state_parse(pawl_bytes key, const char **machine, const char **state, uint64_t *row)
{
    const char *text = key.data;
    size_t first = key.size > 10 ? strnlen(text, key.size - 10) : key.size;
    if (first + 10 >= key.size)
        return false;
    size_t second = strnlen(text + first + 1, key.size - first - 1);
    if (first + 1 + second + 1 + 8 != key.size)
        return false;
    *machine = text;
    *state = text + first + 1;
    *row = pw_get_u64((const uint8_t *)text + key.size - 8);
    return true;
}

static pawl_err put(const struct pw_tables *t, struct pw_txn *txn, enum pw_table table,
                    const struct pw_key *key, pawl_bytes value)
{
    return t->store->ops->put(txn, table, pw_key_bytes(key), value);
}

/* A row that is not there is deleted already. */
static pawl_err del(const struct pw_tables *t, struct pw_txn *txn, enum pw_table table,
                    const struct pw_key *key)
{
    pawl_err err = t->store->ops->del(txn, table, pw_key_bytes(key));
    return err == PAWL_E_NOT_FOUND ? PAWL_OK : err;
}

static void key_meta(struct pw_key *key, const char *name)
{
    key->size = 0;
    key_text(key, name);
}

/* --- the shard's own record --------------------------------------------------------------- */

/* Fixed numbers; stores of before there was a journal have the first six. */
#define META_SIZE (10 * 8)
#define META_SIZE_LOCAL (6 * 8)

pawl_err pw_meta_load(const struct pw_tables *tables, struct pw_txn *txn, struct pw_meta *meta)
{
    struct pw_key key = { .size = 0 };
    pawl_bytes value = nothing;
    key_meta(&key, "shard");
    pawl_err err = tables->store->ops->get(txn, PW_META, pw_key_bytes(&key), &value);
    if (err != PAWL_OK)
        return err;
    uint8_t at[META_SIZE] = { 0 };
    if (value.size != META_SIZE && value.size != META_SIZE_LOCAL)
        return PAWL_E_CORRUPT;
    memcpy(at, value.data, value.size);
    *meta = (struct pw_meta){
        .lsn = pw_get_u64(at),
        .next_row = pw_get_u64(at + 8),
        .sent_lsn = pw_get_u64(at + 16),
        .time_ms = pw_get_u64(at + 24),
        .wall_ms = pw_get_u64(at + 32),
        .clean = pw_get_u64(at + 40) == 1,
        .journal_created = pw_get_u64(at + 48),
        .journal_seq = pw_get_u64(at + 56),
        .journal_lsn = pw_get_u64(at + 64),
        .reconciling = pw_get_u64(at + 72) == 1,
    };
    return PAWL_OK;
}

pawl_err pw_meta_save(const struct pw_tables *tables, struct pw_txn *txn,
                      const struct pw_meta *meta)
{
    uint8_t bytes[META_SIZE] = { 0 };
    struct pw_key key = { .size = 0 };
    pw_put_u64(bytes, meta->lsn);
    pw_put_u64(bytes + 8, meta->next_row);
    pw_put_u64(bytes + 16, meta->sent_lsn);
    pw_put_u64(bytes + 24, meta->time_ms);
    pw_put_u64(bytes + 32, meta->wall_ms);
    pw_put_u64(bytes + 40, meta->clean ? 1 : 0);
    pw_put_u64(bytes + 48, meta->journal_created);
    pw_put_u64(bytes + 56, meta->journal_seq);
    pw_put_u64(bytes + 64, meta->journal_lsn);
    pw_put_u64(bytes + 72, meta->reconciling ? 1 : 0);
    key_meta(&key, "shard");
    return put(tables, txn, PW_META, &key, (pawl_bytes){ bytes, sizeof(bytes) });
}

pawl_err pw_meta_claim(const struct pw_tables *tables, struct pw_txn *txn, const char *ns,
                       uint32_t shard, uint32_t shards, bool write, pawl_why *why)
{
    char mine[96] = "";
    struct pw_key key = { .size = 0 };
    pawl_bytes value = nothing;
    pw_print(mine, sizeof(mine), "namespace %s, shard %u of %u", ns, shard, shards);
    key_meta(&key, "identity");
    pawl_err err = tables->store->ops->get(txn, PW_META, pw_key_bytes(&key), &value);
    if (err == PAWL_E_NOT_FOUND && write)
        return put(tables, txn, PW_META, &key, pawl_str(mine));
    if (err != PAWL_OK)
        return pw_fail(why, err, "read identity: %s", pawl_err_text(err));
    if (!pw_bytes_equal_str(value, mine))
        return pw_fail(why, PAWL_E_SCHEMA, "the store is %.*s; asked for is %s", (int)value.size,
                       (const char *)value.data, mine);
    return PAWL_OK;
}

static void key_told(struct pw_key *key, uint32_t shard)
{
    key_meta(key, "told");
    key_u64(key, shard);
}

pawl_err pw_told_load(const struct pw_tables *tables, struct pw_txn *txn, uint32_t shard,
                      uint64_t *lsn, uint32_t *n)
{
    struct pw_key key = { .size = 0 };
    pawl_bytes value = nothing;
    key_told(&key, shard);
    pawl_err err = tables->store->ops->get(txn, PW_META, pw_key_bytes(&key), &value);
    if (err != PAWL_OK && err != PAWL_E_NOT_FOUND)
        return err;
    if (err == PAWL_OK && value.size != 16)
        return PAWL_E_CORRUPT;
    *lsn = err == PAWL_OK ? pw_get_u64(value.data) : 0;
    *n = err == PAWL_OK ? (uint32_t)pw_get_u64((const uint8_t *)value.data + 8) : 0;
    return PAWL_OK;
}

pawl_err pw_told_save(const struct pw_tables *tables, struct pw_txn *txn, uint32_t shard,
                      uint64_t lsn, uint32_t n)
{
    uint8_t bytes[16] = { 0 };
    struct pw_key key = { .size = 0 };
    pw_put_u64(bytes, lsn);
    pw_put_u64(bytes + 8, n);
    key_told(&key, shard);
    return put(tables, txn, PW_META, &key, (pawl_bytes){ bytes, sizeof(bytes) });
}

/* --- entities ----------------------------------------------------------------------------- */

pawl_err pw_tables_find(const struct pw_tables *tables, struct pw_txn *txn, const char *machine,
                        const char *id, uint64_t *row)
{
    struct pw_key key = { .size = 0 };
    pawl_bytes value = nothing;
    pw_key_id(&key, machine, id);
    pawl_err err = tables->store->ops->get(txn, PW_ID, pw_key_bytes(&key), &value);
    if (err != PAWL_OK)
        return err;
    if (value.size != 8)
        return PAWL_E_CORRUPT;
    *row = pw_get_u64(value.data);
    return PAWL_OK;
}

pawl_err pw_tables_load_any(const struct pw_tables *tables, struct pw_txn *txn, uint64_t row,
                            struct pw_arena *arena, struct pw_entity *entity)
{
    struct pw_key key = { .size = 0 };
    pawl_bytes value = nothing;
    pw_key_u64(&key, row);
    pawl_err err = tables->store->ops->get(txn, PW_ENTITY, pw_key_bytes(&key), &value);
    if (err == PAWL_OK)
        err = pw_entity_unpack(value, tables->machines, arena, entity);
    if (err == PAWL_OK)
        entity->row = row;
    return err;
}

pawl_err pw_tables_load(const struct pw_tables *tables, struct pw_txn *txn, uint64_t row,
                        struct pw_arena *arena, struct pw_entity *entity)
{
    pawl_err err = pw_tables_load_any(tables, txn, row, arena, entity);
    return err == PAWL_OK && entity->tombstone ? PAWL_E_NOT_FOUND : err;
}

/* The keys of an entity's history, oldest first. */
struct lines {
    uint64_t row;
    uint64_t versions[PW_HISTORY_MAX + 1];
    size_t count;
    size_t most;
};

static bool collect_line(void *arg, pawl_bytes key, pawl_bytes value)
{
    struct lines *lines = arg;
    (void)value;
    if (key.size != 16 || pw_get_u64(key.data) != lines->row || lines->count == lines->most)
        return false;
    lines->versions[lines->count++] = pw_get_u64((const uint8_t *)key.data + 8);
    return true;
}

static pawl_err drop_history(const struct pw_tables *t, struct pw_txn *txn, uint64_t row,
                             size_t most)
{
    struct lines lines = { .row = row, .most = most };
    struct pw_key key = { .size = 0 };
    assert(most <= PW_COUNT(lines.versions));
    pw_key_pair(&key, row, 0);
    pawl_err err = t->store->ops->scan(txn, PW_HISTORY, pw_key_bytes(&key), collect_line, &lines);
    for (size_t i = 0; i < lines.count && err == PAWL_OK; i++) {
        pw_key_pair(&key, row, lines.versions[i]);
        err = del(t, txn, PW_HISTORY, &key);
    }
    return err;
}

static pawl_err put_line(const struct pw_tables *t, struct pw_txn *txn, uint64_t row,
                         uint64_t version, const struct pw_happening *happening,
                         struct pw_arena *arena)
{
    struct pw_key key = { .size = 0 };
    pawl_bytes line = nothing;
    pawl_err err = pw_happening_pack(happening, arena, &line);
    if (err != PAWL_OK)
        return err;
    pw_key_pair(&key, row, version);
    return put(t, txn, PW_HISTORY, &key, line);
}

/* The count of lines stands in the entity, so that no change has to scan for it; the version stays.
 */
static pawl_err count_line(const struct pw_tables *t, struct pw_txn *txn,
                           const struct pw_entity *entity, struct pw_arena *arena)
{
    struct pw_update update = { .after = *entity };
    struct pw_key key = { .size = 0 };
    pawl_bytes bytes = nothing;
    update.after.happenings++;
    pawl_err err = pw_entity_pack(&update, 0, arena, &bytes);
    pw_key_u64(&key, entity->row);
    return err == PAWL_OK ? put(t, txn, PW_ENTITY, &key, bytes) : err;
}

pawl_err pw_tables_note(const struct pw_tables *tables, struct pw_txn *txn,
                        const struct pw_entity *entity, uint64_t version,
                        const struct pw_happening *happening, struct pw_arena *arena)
{
    bool drop = entity->happenings >= PW_HISTORY_MAX;
    pawl_err err =
        drop ? drop_history(tables, txn, entity->row, 1) : count_line(tables, txn, entity, arena);
    return err == PAWL_OK ? put_line(tables, txn, entity->row, version, happening, arena) : err;
}

static pawl_err move_in_indexes(const struct pw_tables *t, struct pw_txn *txn,
                                const struct pw_entity *before, const struct pw_entity *after)
{
    struct pw_key key = { .size = 0 };
    pawl_err err = PAWL_OK;
    if (before == NULL || strcmp(before->state_name, after->state_name) != 0) {
        if (before != NULL) {
            pw_key_state(&key, before->machine_name, before->state_name, before->row);
            err = del(t, txn, PW_STATE, &key);
        }
        pw_key_state(&key, after->machine_name, after->state_name, after->row);
        if (err == PAWL_OK)
            err = put(t, txn, PW_STATE, &key, nothing);
    }
    uint64_t due_before = before != NULL ? pw_entity_due(before) : 0;
    uint64_t due_after = pw_entity_due(after);
    if (err == PAWL_OK && due_before != 0 && due_before != due_after)
        err = pw_due_del(t, txn, due_before, before->row);
    /* A due row may have been taken away while its scope was held; a release that walks puts it
     * back. */
    if (err == PAWL_OK && due_after != 0 && due_before != due_after)
        err = pw_due_put(t, txn, due_after, after->row);
    return err;
}

/* --- records and tombstones --------------------------------------------------------------- */

static pawl_err put_record(const struct pw_tables *t, struct pw_txn *txn,
                           const struct pw_record *record, pawl_bytes entity,
                           struct pw_arena *arena)
{
    struct pw_key key = { .size = 0 };
    pawl_bytes bytes = nothing;
    pawl_err err = pw_record_pack(record, entity, arena, &bytes);
    if (err != PAWL_OK)
        return err;
    pw_key_u64(&key, record->lsn);
    return put(t, txn, PW_OUTBOX, &key, bytes);
}

/* The effects of a record that came from the journal, under their own lsns: for the relay they are
 * journalled, and not sent. */
static pawl_err put_effects(const struct pw_tables *t, struct pw_txn *txn,
                            const struct pw_entity *after, const struct pw_save *save,
                            pawl_bytes entity, struct pw_arena *arena)
{
    uint64_t lsn = save->sent_lsn;
    pawl_err err = PAWL_OK;
    for (size_t i = 0; i < after->effects_count && err == PAWL_OK; i++) {
        if (after->effects[i].lsn <= lsn)
            continue;
        lsn = after->effects[i].lsn;
        struct pw_record record = { .lsn = lsn, .time_ms = save->now_ms };
        err = put_record(t, txn, &record, entity, arena);
    }
    return err;
}

static uint64_t freed_epoch(const struct pw_entity *before, const struct pw_entity *after,
                            bool removed)
{
    if (before == NULL || !before->parked)
        return 0;
    bool stays = !removed && after->parked && after->epoch == before->epoch;
    return stays ? 0 : before->epoch;
}

static pawl_err put_outbox(const struct pw_tables *t, struct pw_txn *txn,
                           const struct pw_entity *before, const struct pw_update *update,
                           const struct pw_save *save, pawl_bytes entity, struct pw_arena *arena)
{
    bool removed = update->change == PW_REMOVED;
    const struct pw_record record = {
        .lsn = update->after.version,
        .time_ms = save->now_ms,
        .task = update->task,
        .tombstone = removed,
        .fresh = save->fresh,
        .freed = freed_epoch(before, &update->after, removed),
    };
    if (save->taken)
        return put_effects(t, txn, &update->after, save, entity, arena);
    return put_record(t, txn, &record, entity, arena);
}

static pawl_err put_id(const struct pw_tables *t, struct pw_txn *txn,
                       const struct pw_entity *entity)
{
    uint8_t row[8] = { 0 };
    struct pw_key key = { .size = 0 };
    pw_put_u64(row, entity->row);
    pw_key_id(&key, entity->machine_name, entity->id);
    return put(t, txn, PW_ID, &key, (pawl_bytes){ row, sizeof(row) });
}

/* In no index but those of ids and of what is due. */
static pawl_err put_tombstone(const struct pw_tables *t, struct pw_txn *txn,
                              const struct pw_entity *entity, const struct pw_save *save,
                              struct pw_arena *arena, pawl_bytes *packed)
{
    struct pw_update update = { .after = {
                                    .machine_name = entity->machine_name,
                                    .id = entity->id,
                                    .state_name = "deleted",
                                    .key = "",
                                    .row = entity->row,
                                    .epoch = entity->version,
                                    .version = entity->version,
                                    .told = entity->told,
                                    .told_count = entity->told_count,
                                    .deadline_ms =
                                        entity->tombstone
                                            ? entity->deadline_ms
                                            : pw_time_add(save->now_ms, PW_TOMBSTONE_KEEP_MS),
                                    .tombstone = true,
                                } };
    struct pw_key key = { .size = 0 };
    pawl_err err = pw_entity_pack(&update, save->sent_lsn, arena, packed);
    pw_key_u64(&key, entity->row);
    if (err == PAWL_OK)
        err = put(t, txn, PW_ENTITY, &key, *packed);
    if (err == PAWL_OK)
        err = put_id(t, txn, entity);
    return err == PAWL_OK ? pw_due_put(t, txn, update.after.deadline_ms, entity->row) : err;
}

/* Its rows, but not the id's, which may be another's by now. */
static pawl_err drop_tombstone(const struct pw_tables *t, struct pw_txn *txn,
                               const struct pw_entity *tombstone)
{
    struct pw_key key = { .size = 0 };
    pw_key_u64(&key, tombstone->row);
    pawl_err err = del(t, txn, PW_ENTITY, &key);
    return err == PAWL_OK ? pw_due_del(t, txn, tombstone->deadline_ms, tombstone->row) : err;
}

/* What is created takes the place of a tombstone of its id. *was: there was one. */
static pawl_err replace_tombstone(const struct pw_tables *t, struct pw_txn *txn,
                                  const struct pw_entity *after, struct pw_arena *arena, bool *was)
{
    struct pw_entity old;
    uint64_t row = 0;
    pawl_err err = pw_tables_find(t, txn, after->machine_name, after->id, &row);
    if (err == PAWL_OK)
        err = pw_tables_load_any(t, txn, row, arena, &old);
    *was = err == PAWL_OK && old.tombstone;
    if (err == PAWL_E_NOT_FOUND || err == PAWL_E_CORRUPT)
        err = PAWL_OK;
    return *was ? drop_tombstone(t, txn, &old) : err;
}

pawl_err pw_tables_bury(const struct pw_tables *tables, struct pw_txn *txn,
                        const struct pw_entity *entity, const struct pw_save *save,
                        struct pw_arena *arena)
{
    pawl_bytes packed = nothing;
    const struct pw_record record = {
        .lsn = entity->version,
        .time_ms = save->now_ms,
        .tombstone = true,
        .fresh = save->fresh,
    };
    pawl_err err = put_tombstone(tables, txn, entity, save, arena, &packed);
    return err != PAWL_OK || save->taken ? err : put_record(tables, txn, &record, packed, arena);
}

pawl_err pw_tables_forget(const struct pw_tables *tables, struct pw_txn *txn,
                          const struct pw_entity *tombstone, uint64_t lsn,
                          const struct pw_save *save, struct pw_arena *arena)
{
    struct pw_key key = { .size = 0 };
    pawl_bytes packed = nothing;
    uint64_t row = 0;
    struct pw_update update = { .after = *tombstone };
    const struct pw_record record = {
        .lsn = lsn, .time_ms = save->now_ms, .forget = true, .freed = tombstone->version
    };
    pw_key_id(&key, tombstone->machine_name, tombstone->id);
    pawl_err err = pw_tables_find(tables, txn, tombstone->machine_name, tombstone->id, &row);
    bool its = err == PAWL_OK && row == tombstone->row;
    if (its)
        err = del(tables, txn, PW_ID, &key);
    if (err == PAWL_OK || err == PAWL_E_NOT_FOUND)
        err = drop_tombstone(tables, txn, tombstone);
    if (err != PAWL_OK || !its || !save->outbox)
        return err; /* the id's subject has a newer record, or there is no journal */
    err = pw_entity_pack(&update, save->sent_lsn, arena, &packed);
    return err == PAWL_OK ? put_record(tables, txn, &record, packed, arena) : err;
}

/* --- one change --------------------------------------------------------------------------- */

static pawl_err remove_entity(const struct pw_tables *t, struct pw_txn *txn,
                              const struct pw_entity *before, const struct pw_entity *after,
                              const struct pw_save *save, struct pw_arena *arena)
{
    struct pw_key key = { .size = 0 };
    pawl_bytes packed = nothing;
    uint64_t due_ms = pw_entity_due(before);
    pawl_err err = PAWL_OK;
    if (!save->outbox) {
        pw_key_id(&key, before->machine_name, before->id);
        err = del(t, txn, PW_ID, &key);
        pw_key_u64(&key, before->row);
        if (err == PAWL_OK)
            err = del(t, txn, PW_ENTITY, &key);
    }
    pw_key_state(&key, before->machine_name, before->state_name, before->row);
    if (err == PAWL_OK)
        err = del(t, txn, PW_STATE, &key);
    if (err == PAWL_OK && due_ms != 0)
        err = pw_due_del(t, txn, due_ms, before->row);
    if (err == PAWL_OK && save->outbox)
        err = put_tombstone(t, txn, after, save, arena, &packed);
    return err == PAWL_OK ? drop_history(t, txn, before->row, PW_HISTORY_MAX + 1) : err;
}

static pawl_err put_entity(const struct pw_tables *t, struct pw_txn *txn,
                           const struct pw_entity *before, const struct pw_update *update,
                           pawl_bytes entity)
{
    const struct pw_entity *after = &update->after;
    struct pw_key key = { .size = 0 };
    pawl_err err = before == NULL ? put_id(t, txn, after) : PAWL_OK;
    pw_key_u64(&key, after->row);
    if (err == PAWL_OK)
        err = put(t, txn, PW_ENTITY, &key, entity);
    return err == PAWL_OK ? move_in_indexes(t, txn, before, after) : err;
}

static pawl_err put_change(const struct pw_tables *t, struct pw_txn *txn,
                           const struct pw_entity *before, const struct pw_update *update,
                           struct pw_save *save, pawl_bytes entity, struct pw_arena *arena)
{
    bool was = false;
    pawl_err err = PAWL_OK;
    if (update->change == PW_REMOVED)
        return remove_entity(t, txn, before, &update->after, save, arena);
    if (before == NULL && save->outbox) {
        err = replace_tombstone(t, txn, &update->after, arena, &was);
        save->fresh = !was;
    }
    return err == PAWL_OK ? put_entity(t, txn, before, update, entity) : err;
}

pawl_err pw_tables_put(const struct pw_tables *tables, struct pw_txn *txn,
                       const struct pw_entity *before, struct pw_update *update,
                       const struct pw_save *save, struct pw_arena *arena)
{
    struct pw_entity *after = &update->after;
    struct pw_save how = *save;
    bool line = update->happening.kind != PW_SILENT && update->change == PW_SAVED;
    bool drop = line && after->happenings >= PW_HISTORY_MAX;
    pawl_bytes entity = nothing;
    assert(update->change != PW_UNCHANGED);
    assert(after->row != 0);
    if (line && !drop)
        after->happenings++;
    pawl_err err = pw_entity_pack(update, save->sent_lsn, arena, &entity);
    if (err != PAWL_OK)
        return err; /* nothing was put */
    err = put_change(tables, txn, before, update, &how, entity, arena);
    if (err == PAWL_OK && drop)
        err = drop_history(tables, txn, after->row, 1);
    if (err == PAWL_OK && line)
        err = put_line(tables, txn, after->row, after->version, &update->happening, arena);
    if (err == PAWL_OK && (save->outbox || update->effects_new_count > 0))
        err = put_outbox(tables, txn, before, update, &how, entity, arena);
    return err == PAWL_E_LIMIT ? PAWL_E_IO : err; /* past packing, no limit is the caller's */
}

/* --- due index, outbox -------------------------------------------------------------------- */

pawl_err pw_due_put(const struct pw_tables *tables, struct pw_txn *txn, uint64_t due_ms,
                    uint64_t row)
{
    struct pw_key key = { .size = 0 };
    pw_key_pair(&key, due_ms, row);
    return put(tables, txn, PW_DUE, &key, nothing);
}

pawl_err pw_due_del(const struct pw_tables *tables, struct pw_txn *txn, uint64_t due_ms,
                    uint64_t row)
{
    struct pw_key key = { .size = 0 };
    pw_key_pair(&key, due_ms, row);
    return del(tables, txn, PW_DUE, &key);
}

struct due_scan {
    struct pw_due *due;
    size_t room;
    size_t count;
    uint64_t now_ms;
    uint64_t next_ms;
};

static bool collect_due(void *arg, pawl_bytes key, pawl_bytes value)
{
    struct due_scan *scan = arg;
    (void)value;
    if (key.size != 16)
        return true; /* verify reports it */
    struct pw_due due = { pw_get_u64(key.data), pw_get_u64((const uint8_t *)key.data + 8) };
    if (due.due_ms > scan->now_ms || scan->count == scan->room) {
        scan->next_ms = due.due_ms;
        return false;
    }
    scan->due[scan->count++] = due;
    return true;
}

pawl_err pw_due_read(const struct pw_tables *tables, struct pw_txn *txn, uint64_t now_ms,
                     struct pw_due *due, size_t room, size_t *count, uint64_t *next_ms)
{
    struct due_scan scan = { due, room, 0, now_ms, PW_NEVER };
    pawl_err err = tables->store->ops->scan(txn, PW_DUE, nothing, collect_due, &scan);
    if (err != PAWL_OK)
        return err;
    *count = scan.count;
    *next_ms = scan.next_ms;
    return PAWL_OK;
}

struct trim {
    uint64_t lsns[PW_BATCH_MAX];
    size_t count;
    size_t most;
    uint64_t upto;
    bool left;
};

static bool collect_lsn(void *arg, pawl_bytes key, pawl_bytes value)
{
    struct trim *trim = arg;
    (void)value;
    uint64_t lsn = key.size == 8 ? pw_get_u64(key.data) : PW_NEVER;
    if (lsn > trim->upto)
        return false;
    trim->left = trim->count == trim->most;
    if (trim->left)
        return false;
    trim->lsns[trim->count++] = lsn;
    return true;
}

pawl_err pw_outbox_trim(const struct pw_tables *tables, struct pw_txn *txn, uint64_t lsn,
                        size_t most, bool *left)
{
    struct trim trim = { .count = 0,
                         .most = most < PW_BATCH_MAX ? most : PW_BATCH_MAX,
                         .upto = lsn };
    struct pw_key key = { .size = 0 };
    pawl_err err = tables->store->ops->scan(txn, PW_OUTBOX, nothing, collect_lsn, &trim);
    for (size_t i = 0; i < trim.count && err == PAWL_OK; i++) {
        pw_key_u64(&key, trim.lsns[i]);
        err = del(tables, txn, PW_OUTBOX, &key);
    }
    if (err == PAWL_OK)
        *left = trim.left;
    return err;
}

/* --- holds -------------------------------------------------------------------------------- */

void pw_key_hold(struct pw_key *key, enum pw_hold_kind kind, const char *machine, const char *name)
{
    key_meta(key, "hold");
    key->bytes[key->size++] = (uint8_t)kind;
    key_text(key, machine);
    key_text(key, name);
}

pawl_err pw_hold_put(const struct pw_tables *tables, struct pw_txn *txn, enum pw_hold_kind kind,
                     const char *machine, const char *name, enum pw_hold_phase phase)
{
    uint8_t byte = (uint8_t)phase;
    struct pw_key key = { .size = 0 };
    pw_key_hold(&key, kind, machine, name);
    return put(tables, txn, PW_META, &key, (pawl_bytes){ &byte, 1 });
}

pawl_err pw_hold_del(const struct pw_tables *tables, struct pw_txn *txn, enum pw_hold_kind kind,
                     const char *machine, const char *name)
{
    struct pw_key key = { .size = 0 };
    pw_key_hold(&key, kind, machine, name);
    return del(tables, txn, PW_META, &key);
}

struct hold_scan {
    pw_hold_seen seen;
    void *arg;
};

static bool on_hold_row(void *arg, pawl_bytes key, pawl_bytes value)
{
    const struct hold_scan *scan = arg;
    const char *text = key.data;
    if (key.size < 5 || memcmp(text, "hold", 5) != 0)
        return false; /* past them */
    bool known = key.size > 6 &&
                 (text[5] == PW_HOLD_MACHINE || text[5] == PW_HOLD_STATE || text[5] == PW_HOLD_KEY);
    if (!known || text[key.size - 1] != '\0' || value.size != 1)
        return true; /* malformed: passed over */
    const char *machine = text + 6;
    const char *name = machine + strlen(machine) + 1;
    if (name >= text + key.size)
        return true;
    return scan->seen(scan->arg, (enum pw_hold_kind)text[5], machine, name,
                      (enum pw_hold_phase)((const uint8_t *)value.data)[0]);
}

pawl_err pw_hold_scan(const struct pw_tables *tables, struct pw_txn *txn, pw_hold_seen seen,
                      void *arg)
{
    struct hold_scan scan = { seen, arg };
    struct pw_key key = { .size = 0 };
    key_meta(&key, "hold");
    return tables->store->ops->scan(txn, PW_META, pw_key_bytes(&key), on_hold_row, &scan);
}

/* --- machines that rest ------------------------------------------------------------------- */

static void key_rest(struct pw_key *key, const char *machine)
{
    key_meta(key, "rest");
    key_text(key, machine);
}

pawl_err pw_rest_put(const struct pw_tables *tables, struct pw_txn *txn, const char *machine)
{
    struct pw_key key = { .size = 0 };
    key_rest(&key, machine);
    return put(tables, txn, PW_META, &key, nothing);
}

static pawl_err has(const struct pw_tables *t, struct pw_txn *txn, const struct pw_key *key,
                    bool *there)
{
    pawl_bytes value = nothing;
    pawl_err err = t->store->ops->get(txn, PW_META, pw_key_bytes(key), &value);
    if (err == PAWL_OK || err == PAWL_E_NOT_FOUND)
        *there = err == PAWL_OK;
    return err == PAWL_E_NOT_FOUND ? PAWL_OK : err;
}

pawl_err pw_rest_has(const struct pw_tables *tables, struct pw_txn *txn, const char *machine,
                     bool *rests)
{
    struct pw_key key = { .size = 0 };
    key_rest(&key, machine);
    return has(tables, txn, &key, rests);
}

pawl_err pw_rest_end(const struct pw_tables *tables, struct pw_txn *txn, const char *machine)
{
    struct pw_key key = { .size = 0 };
    bool held = false;
    pw_key_hold(&key, PW_HOLD_MACHINE, machine, "");
    pawl_err err = has(tables, txn, &key, &held);
    if (err == PAWL_OK && !held)
        err = pw_hold_put(tables, txn, PW_HOLD_MACHINE, machine, "", PW_RELEASING);
    key_rest(&key, machine);
    return err == PAWL_OK ? del(tables, txn, PW_META, &key) : err;
}
