/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads: short transactions beside the writer, on any thread. Nothing is called with one open. */
#include <assert.h>

#include "base/base.h"
#include "base/limits.h"
#include "core/names.h"
#include "engine/engine.h"

/* Entities copied in one transaction of a scan. */
#define SCAN_BATCH 128

static const struct pw_store_ops *ops_of(const struct pw_shard *shard)
{
    return shard->tables.store->ops;
}

static void show(const struct pw_shard *shard, const struct pw_entity *entity, pawl_entity *to)
{
    *to = (pawl_entity){
        .machine = entity->machine_name,
        .id = entity->id,
        .state = entity->state_name,
        .key = entity->key,
        .error = entity->error,
        .trace = entity->trace,
        .data = entity->data,
        .epoch = entity->epoch,
        .version = entity->version,
        .attempt = entity->attempt,
        .rounds = entity->rounds,
        .crashes = entity->crashes,
        .created_ms = entity->created_ms,
        .entered_ms = entity->entered_ms,
        .due_ms = pw_entity_due(entity),
        .held = entity->held,
        .parked = entity->parked,
        .shard = shard->index,
        .row = entity->row,
    };
}

/* --- one entity --------------------------------------------------------------------------- */

struct shown {
    pawl_entity entity; /* first: freed through it */
    struct pw_arena arena;
};

static pawl_err load_by_id(struct pw_shard *shard, const char *machine, const char *id,
                           struct pw_arena *arena, struct pw_entity *entity)
{
    struct pw_txn *txn = NULL;
    uint64_t row = 0;
    pawl_err err = ops_of(shard)->begin(shard->tables.store, false, &txn);
    if (err != PAWL_OK)
        return err;
    err = pw_tables_find(&shard->tables, txn, machine, id, &row);
    if (err == PAWL_OK)
        err = pw_tables_load(&shard->tables, txn, row, arena, entity);
    ops_of(shard)->abort(txn);
    return err;
}

static bool are_right(const pawl *engine, const char *machine, const char *id)
{
    return engine != NULL && pw_check_name("machine", machine, NULL) == PAWL_OK &&
           pw_check_id("id", id, NULL) == PAWL_OK;
}

pawl_err pawl_read(pawl *engine, const char *machine, const char *id, pawl_entity **entity)
{
    if (!are_right(engine, machine, id) || entity == NULL)
        return PAWL_E_USAGE;
    struct pw_shard *shard = pw_shard_of(engine, id);
    struct shown *shown = pw_alloc(sizeof(*shown));
    struct pw_entity found;
    if (shown == NULL)
        return PAWL_E_NOMEM;
    pw_arena_init(&shown->arena, 1024);
    pw_enter(engine);
    pawl_err err = load_by_id(shard, machine, id, &shown->arena, &found);
    pw_leave(engine);
    if (err != PAWL_OK) {
        pawl_entity_free(&shown->entity);
        return err;
    }
    show(shard, &found, &shown->entity);
    *entity = &shown->entity;
    return PAWL_OK;
}

void pawl_entity_free(pawl_entity *entity)
{
    struct shown *shown = (struct shown *)entity;
    if (shown == NULL)
        return;
    pw_arena_fini(&shown->arena);
    pw_free(shown);
}

/* --- scans -------------------------------------------------------------------------------- */

struct scan {
    const pawl_query *query;
    struct pw_key next; /* the key to go on from */
    uint64_t rows[SCAN_BATCH];
    size_t count;
    bool through;
};

static bool collect(void *arg, pawl_bytes key, pawl_bytes value)
{
    struct scan *scan = arg;
    const pawl_query *query = scan->query;
    const char *machine = NULL;
    const char *state = NULL;
    uint64_t row = 0;
    (void)value;
    if (!pw_key_state_parse(key, &machine, &state, &row))
        return true; /* verify names it */
    if (query->machine != NULL && strcmp(query->machine, machine) != 0) {
        scan->through = true;
        return false;
    }
    if (scan->count == SCAN_BATCH || (query->state != NULL && strcmp(query->state, state) != 0)) {
        assert(key.size <= sizeof(scan->next.bytes));
        memcpy(scan->next.bytes, key.data, key.size);
        scan->next.size = key.size;
        if (scan->count < SCAN_BATCH) /* over to the next state: no row of this one is wanted */
            pw_key_state(&scan->next, machine, state, UINT64_MAX);
        scan->through = false;
        return false;
    }
    scan->rows[scan->count++] = row;
    return true;
}

static bool fits(const pawl_query *query, const struct pw_entity *entity)
{
    if (query->key != NULL && strcmp(query->key, entity->key) != 0)
        return false;
    if (query->entered_before_ms != 0 && entity->entered_ms >= query->entered_before_ms)
        return false;
    return !query->parked || entity->parked;
}

/* Rows and their entities in one transaction; those that do not fit are left out. */
static pawl_err read_batch(struct pw_shard *shard, struct scan *scan, struct pw_arena *arena,
                           struct pw_entity *entities, size_t *count)
{
    struct pw_txn *txn = NULL;
    scan->count = 0;
    scan->through = true;
    *count = 0;
    pawl_err err = ops_of(shard)->begin(shard->tables.store, false, &txn);
    if (err != PAWL_OK)
        return err;
    err = ops_of(shard)->scan(txn, PW_STATE, pw_key_bytes(&scan->next), collect, scan);
    for (size_t i = 0; i < scan->count && err == PAWL_OK; i++) {
        struct pw_entity *entity = &entities[*count];
        err = pw_tables_load(&shard->tables, txn, scan->rows[i], arena, entity);
        if (err == PAWL_OK && fits(scan->query, entity))
            (*count)++;
        if (err == PAWL_E_CORRUPT || err == PAWL_E_NOT_FOUND)
            err = PAWL_OK; /* verify names it */
    }
    ops_of(shard)->abort(txn);
    return err;
}

static void begin_scan(const pawl_query *query, struct scan *scan)
{
    *scan = (struct scan){ .query = query };
    if (query->machine != NULL)
        pw_key_state(&scan->next, query->machine, query->state, 0);
}

static pawl_err scan_shard(struct pw_shard *shard, const pawl_query *query, pawl_seen seen,
                           void *arg, bool *go_on)
{
    struct pw_arena arena;
    struct scan scan;
    struct pw_entity entities[SCAN_BATCH];
    pawl_err err = PAWL_OK;
    begin_scan(query, &scan);
    pw_arena_init(&arena, (size_t)64 * 1024);
    do {
        size_t count = 0;
        pw_arena_reset(&arena);
        err = read_batch(shard, &scan, &arena, entities, &count);
        for (size_t i = 0; i < count && err == PAWL_OK && *go_on; i++) {
            pawl_entity entity;
            show(shard, &entities[i], &entity);
            *go_on = seen(arg, &entity);
        }
    } while (err == PAWL_OK && *go_on && !scan.through);
    pw_arena_fini(&arena);
    return err;
}

pawl_err pawl_scan(pawl *engine, const pawl_query *query, pawl_seen seen, void *arg, pawl_why *why)
{
    static const pawl_query all = { .machine = NULL };
    const pawl_query *use = query != NULL ? query : &all;
    if (engine == NULL || seen == NULL)
        return pw_fail(why, PAWL_E_USAGE, "engine or callback is NULL");
    if (use->machine != NULL && pw_check_name("machine", use->machine, why) != PAWL_OK)
        return PAWL_E_USAGE;
    if (use->state != NULL && pw_check_name("state", use->state, why) != PAWL_OK)
        return PAWL_E_USAGE;
    bool go_on = true;
    pawl_err err = PAWL_OK;
    pw_enter(engine);
    for (uint32_t i = 0; i < engine->shards_count && err == PAWL_OK && go_on; i++)
        err = scan_shard(&engine->shards[i], use, seen, arg, &go_on);
    pw_leave(engine);
    return err == PAWL_OK ? err : pw_fail(why, err, "scan: %s", pawl_err_text(err));
}

/* --- history ------------------------------------------------------------------------------ */

struct history {
    struct pw_arena *arena;
    uint64_t row;
    pawl_happening lines[PW_HISTORY_MAX + 1];
    size_t count;
    pawl_err err;
};

static bool collect_line(void *arg, pawl_bytes key, pawl_bytes value)
{
    struct history *history = arg;
    struct pw_happening happening;
    char text[512] = "";
    if (key.size != 16 || pw_get_u64(key.data) != history->row ||
        history->count == PW_COUNT(history->lines))
        return false;
    history->err = pw_happening_unpack(value, history->arena, &happening);
    if (history->err != PAWL_OK)
        return false;
    pw_happening_print(&happening, text, sizeof(text));
    const char *kept = pw_arena_text(history->arena, pawl_str(text));
    if (kept == NULL)
        history->err = PAWL_E_NOMEM;
    history->lines[history->count++] = (pawl_happening){
        .version = pw_get_u64((const uint8_t *)key.data + 8),
        .time_ms = happening.time_ms,
        .text = kept,
    };
    return kept != NULL;
}

static pawl_err read_history(struct pw_shard *shard, const char *machine, const char *id,
                             struct history *history)
{
    struct pw_txn *txn = NULL;
    struct pw_key key = { .size = 0 };
    pawl_err err = ops_of(shard)->begin(shard->tables.store, false, &txn);
    if (err != PAWL_OK)
        return err;
    err = pw_tables_find(&shard->tables, txn, machine, id, &history->row);
    pw_key_pair(&key, history->row, 0);
    if (err == PAWL_OK)
        err = ops_of(shard)->scan(txn, PW_HISTORY, pw_key_bytes(&key), collect_line, history);
    ops_of(shard)->abort(txn);
    return err == PAWL_OK ? history->err : err;
}

pawl_err pawl_history(pawl *engine, const char *machine, const char *id, pawl_happened happened,
                      void *arg)
{
    struct pw_arena arena;
    if (!are_right(engine, machine, id) || happened == NULL)
        return PAWL_E_USAGE;
    struct history history = { .arena = &arena };
    pw_arena_init(&arena, (size_t)8 * 1024);
    pw_enter(engine);
    pawl_err err = read_history(pw_shard_of(engine, id), machine, id, &history);
    pw_leave(engine);
    for (size_t i = 0; i < history.count && err == PAWL_OK; i++)
        if (!happened(arg, &history.lines[i]))
            break;
    pw_arena_fini(&arena);
    return err;
}
