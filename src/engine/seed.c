/* SPDX-License-Identifier: Apache-2.0
 *
 * What the stream lacks. Its heads are read once and held against the store: each entity whose
 * record is there is marked by a bit; records of nothing, and older ones than the store's, are
 * replaced. Then a walk over the store appends again every entity without a bit, those that work
 * first. A crash on the way begins it anew, since meta says that it is under way. Relay thread. */
#include "base/base.h"
#include "base/limits.h"
#include "engine/engine.h"
#include "engine/writer.h"

/* Rows that one turn of the walk looks at, and entities that it appends. */
#define LOOK_MAX 4096
#define SEED_MAX 256
/* Entries on subjects of no entity, removed after a lot is read. */
#define REMOVE_MAX 64
/* Besides the entities' records there are an opening and a mark. */
#define OTHERS 2

static const struct pw_store_ops *store_of(const struct pw_shard *shard)
{
    return shard->tables.store->ops;
}

/* --- how many there should be ------------------------------------------------------------- */

struct unsent {
    uint64_t acked_lsn;
    uint64_t fresh;     /* records that make a subject, not yet appended */
    uint64_t forgotten; /* tombstones that are still there, and no more in the store */
};

static bool look_at_row(void *arg, pawl_bytes key, pawl_bytes value)
{
    struct unsent *unsent = arg;
    struct pw_heads heads;
    (void)key;
    if (pw_record_heads(value, &heads) != PAWL_OK)
        return true;
    unsent->fresh += heads.fresh && heads.lsn > unsent->acked_lsn ? 1 : 0;
    unsent->forgotten += heads.forget ? 1 : 0;
    return true;
}

pawl_err pw_seed_expected(struct pw_shard *shard, uint64_t *records)
{
    struct unsent unsent = { .acked_lsn = atomic_load(&shard->acked_lsn) };
    const pawl_bytes first = { "", 0 };
    struct pw_txn *txn = NULL;
    uint64_t entities = 0;
    pawl_err err = store_of(shard)->begin(shard->tables.store, false, &txn);
    if (err != PAWL_OK)
        return err;
    err = store_of(shard)->count(txn, PW_ENTITY, &entities);
    if (err == PAWL_OK)
        err = store_of(shard)->scan(txn, PW_OUTBOX, first, look_at_row, &unsent);
    store_of(shard)->abort(txn);
    if (err == PAWL_OK)
        *records = entities + unsent.forgotten + OTHERS - unsent.fresh;
    return err;
}

/* --- heads -------------------------------------------------------------------------------- */

struct heads {
    struct pw_shard *shard;
    struct pw_txn *txn;
    struct pw_arena arena;
    uint64_t removes[REMOVE_MAX];
    size_t removes_count;
    pawl_err err;
};

static void set_present(struct pw_keeper *keeper, uint64_t row)
{
    if (row < keeper->present_rows)
        keeper->present[row / 8] |= (uint8_t)(1u << row % 8);
}

static bool is_present(const struct pw_keeper *keeper, uint64_t row)
{
    return row < keeper->present_rows && (keeper->present[row / 8] >> row % 8 & 1) != 0;
}

static bool waits_in_outbox(struct pw_shard *shard, struct pw_txn *txn, uint64_t version)
{
    struct pw_key key = { .size = 0 };
    pawl_bytes value = { NULL, 0 };
    if (version <= atomic_load(&shard->acked_lsn))
        return false; /* its row is not appended again, and may be trimmed at any moment */
    pw_key_u64(&key, version);
    return store_of(shard)->get(txn, PW_OUTBOX, pw_key_bytes(&key), &value) == PAWL_OK;
}

static void replace(struct heads *heads, const struct pw_entry *entry)
{
    struct pw_keeper *keeper = &heads->shard->relay.keeper;
    struct pw_request *request = pw_keeper_request(heads->shard, PW_DO_RESEED);
    if (request != NULL) {
        request->always = entry->kind == PW_ENTRY_VOID;
        request->machine = pw_arena_text(&keeper->arena, pawl_str(entry->machine));
        request->id = pw_arena_text(&keeper->arena, pawl_str(entry->id));
    }
    if (request == NULL || request->machine == NULL || request->id == NULL)
        heads->err = PAWL_E_NOMEM;
}

static void look_at_entity(struct heads *heads, const struct pw_entry *entry)
{
    struct pw_shard *shard = heads->shard;
    struct pw_entity entity;
    uint64_t row = 0;
    pawl_err err = pw_tables_find(&shard->tables, heads->txn, entry->machine, entry->id, &row);
    if (err == PAWL_OK)
        err = pw_tables_load_any(&shard->tables, heads->txn, row, &heads->arena, &entity);
    if (err != PAWL_OK && err != PAWL_E_NOT_FOUND) {
        heads->err = err == PAWL_E_CORRUPT ? heads->err : err; /* verify names it */
        return;
    }
    if (err == PAWL_OK)
        set_present(&shard->relay.keeper, row);
    bool right = err == PAWL_OK && entry->kind == PW_ENTRY_RECORD && entry->lsn == entity.version;
    bool is_void = entry->kind == PW_ENTRY_VOID;
    if (right || (err == PAWL_OK && !is_void && waits_in_outbox(shard, heads->txn, entity.version)))
        return;
    replace(heads, entry);
}

static void on_head(void *arg, const struct pw_entry *entry)
{
    struct heads *heads = arg;
    pw_arena_reset(&heads->arena);
    if (entry->machine != NULL)
        look_at_entity(heads, entry);
    else if (entry->kind == PW_ENTRY_VOID && heads->removes_count < REMOVE_MAX)
        heads->removes[heads->removes_count++] = entry->seq; /* more: at the next comparison */
}

/* The subjects that no entity can have. */
static pawl_err remove_foreign(struct heads *heads)
{
    struct pw_shard *shard = heads->shard;
    pawl_err err = PAWL_OK;
    for (size_t i = 0; i < heads->removes_count && err == PAWL_OK; i++) {
        pw_log(&shard->engine->log, PAWL_WARN, "journal.foreign",
               "shard=%u seq=%llu: a record on a subject of no entity, removed; who may publish "
               "there?",
               shard->index, (unsigned long long)heads->removes[i]);
        err = shard->journal->ops->remove(shard->journal, heads->removes[i]);
    }
    return err;
}

/* Bits for all rows that were given out; rows that come later have records of their own. */
static pawl_err make_present(struct pw_shard *shard)
{
    struct pw_keeper *keeper = &shard->relay.keeper;
    struct pw_meta meta = { .next_row = 1 };
    struct pw_txn *txn = NULL;
    pawl_err err = store_of(shard)->begin(shard->tables.store, false, &txn);
    if (err != PAWL_OK)
        return err;
    err = pw_meta_load(&shard->tables, txn, &meta);
    store_of(shard)->abort(txn);
    if (err != PAWL_OK)
        return err;
    pw_free(keeper->present);
    keeper->present = pw_alloc((size_t)(meta.next_row / 8 + 1));
    keeper->present_rows = keeper->present != NULL ? meta.next_row : 0;
    keeper->seed_row = 0;
    return keeper->present != NULL ? PAWL_OK : PAWL_E_NOMEM;
}

pawl_err pw_seed_heads(struct pw_shard *shard, bool *through)
{
    struct pw_keeper *keeper = &shard->relay.keeper;
    struct heads heads = { .shard = shard };
    uint64_t next_seq = keeper->read_seq;
    pawl_err err = keeper->read_seq == 1 ? make_present(shard) : PAWL_OK;
    if (err == PAWL_OK)
        err = store_of(shard)->begin(shard->tables.store, false, &heads.txn);
    if (err != PAWL_OK)
        return err;
    pw_arena_init(&heads.arena, (size_t)16 * 1024);
    err = shard->journal->ops->read(shard->journal, keeper->read_seq, true, PW_READ_BATCH_MAX,
                                    on_head, &heads, &next_seq, through);
    store_of(shard)->abort(heads.txn);
    pw_arena_fini(&heads.arena);
    if (err == PAWL_OK)
        err = heads.err;
    if (err == PAWL_OK)
        err = remove_foreign(&heads);
    if (err != PAWL_OK)
        return err;
    keeper->read_seq = next_seq;
    keeper->seed_pass = *through ? 1 : 0;
    return PAWL_OK;
}

/* --- the walk ----------------------------------------------------------------------------- */

struct walk {
    struct pw_shard *shard;
    struct pw_txn *txn;
    struct pw_arena arena;
    size_t looked;
    size_t count;
    bool through;
    pawl_err err;
};

/* Working states in the first pass, all others in the second. */
static bool is_wanted(struct walk *walk, uint64_t row, pawl_bytes value)
{
    struct pw_shard *shard = walk->shard;
    struct pw_entity entity;
    if (is_present(&shard->relay.keeper, row))
        return false;
    pw_arena_reset(&walk->arena);
    if (pw_entity_unpack(value, &shard->engine->machines, &walk->arena, &entity) != PAWL_OK)
        return false; /* verify names it */
    bool works = !entity.tombstone && pw_entity_works(&entity);
    return works == (shard->relay.keeper.seed_pass == 1);
}

static bool on_row(void *arg, pawl_bytes key, pawl_bytes value)
{
    struct walk *walk = arg;
    struct pw_keeper *keeper = &walk->shard->relay.keeper;
    uint64_t row = key.size == 8 ? pw_get_u64(key.data) : 0;
    if (walk->looked == LOOK_MAX || walk->count == SEED_MAX || row >= keeper->present_rows) {
        walk->through = row >= keeper->present_rows;
        return false;
    }
    walk->looked++;
    keeper->seed_row = row + 1;
    if (!is_wanted(walk, row, value))
        return true;
    struct pw_request *request = pw_keeper_request(walk->shard, PW_DO_RESEED);
    if (request == NULL) {
        walk->err = PAWL_E_NOMEM;
        return false;
    }
    request->row = row;
    request->fresh = true;
    set_present(keeper, row);
    walk->count++;
    return true;
}

pawl_err pw_seed_turn(struct pw_shard *shard)
{
    struct pw_keeper *keeper = &shard->relay.keeper;
    struct walk walk = { .shard = shard, .through = true };
    struct pw_key key = { .size = 0 };
    pawl_err err = store_of(shard)->begin(shard->tables.store, false, &walk.txn);
    if (err != PAWL_OK)
        return err;
    pw_arena_init(&walk.arena, (size_t)16 * 1024);
    pw_key_u64(&key, keeper->seed_row);
    err = store_of(shard)->scan(walk.txn, PW_ENTITY, pw_key_bytes(&key), on_row, &walk);
    if (walk.looked == LOOK_MAX || walk.count == SEED_MAX)
        walk.through = false;
    store_of(shard)->abort(walk.txn);
    pw_arena_fini(&walk.arena);
    if (err == PAWL_OK)
        err = walk.err;
    if (err != PAWL_OK || !walk.through)
        return err;
    keeper->seed_row = 0;
    keeper->seed_pass = keeper->seed_pass == 1 ? 2 : 0;
    return PAWL_OK;
}
