/* SPDX-License-Identifier: Apache-2.0
 *
 * The store read whole and held against itself. */
#include <stdarg.h>
#include <stdio.h>

#include "base/base.h"
#include "base/limits.h"
#include "engine/verify.h"

static const struct pw_store_ops *ops_of(const struct pw_shard *shard)
{
    return shard->tables.store->ops;
}

struct check {
    struct pw_shard *shard;
    struct pw_txn *txn;
    struct pw_arena arena;
    struct pw_meta meta;
    pw_wrong wrong;
    void *arg;
    uint64_t entities;
    uint64_t chain_row; /* whose history is being read, and where it stands */
    char chain_state[PW_NAME_MAX + 1];
    bool ended; /* nobody wants to hear more */
};

static void say(struct check *c, const char *format, ...) PAWL_PRINTF(2, 3);
static void say(struct check *c, const char *format, ...)
{
    char text[512] = "";
    char line[600] = "";
    va_list list;
    va_start(list, format);
    (void)vsnprintf(text, sizeof(text), format, list); /* cut when too long */
    va_end(list);
    pw_print(line, sizeof(line), "shard %u: %s", c->shard->index, text);
    if (!c->ended)
        c->ended = !c->wrong(c->arg, line);
}

static bool has(struct check *c, enum pw_table table, const struct pw_key *key)
{
    pawl_bytes value = { NULL, 0 };
    return ops_of(c->shard)->get(c->txn, table, pw_key_bytes(key), &value) == PAWL_OK;
}

static bool load(struct check *c, uint64_t row, struct pw_entity *entity)
{
    pw_arena_reset(&c->arena);
    return pw_tables_load_any(&c->shard->tables, c->txn, row, &c->arena, entity) == PAWL_OK;
}

struct held {
    const struct pw_entity *entity;
    bool held;
};

static bool look_at_hold(void *arg, enum pw_hold_kind kind, const char *machine, const char *name,
                         enum pw_hold_phase phase)
{
    struct held *held = arg;
    const struct pw_entity *e = held->entity;
    bool covers = kind == PW_HOLD_MACHINE ||
                  strcmp(name, kind == PW_HOLD_STATE ? e->state_name : e->key) == 0;
    (void)phase; /* while it is released, its walk puts due rows back */
    held->held = held->held || (covers && strcmp(machine, e->machine_name) == 0);
    return !held->held;
}

/* By the store's rows: also right beside another process that holds and releases. */
static bool is_scope_held(struct check *c, const struct pw_entity *entity)
{
    struct held held = { entity, false };
    return pw_hold_scan(&c->shard->tables, c->txn, look_at_hold, &held) == PAWL_OK && held.held;
}

static bool rests(struct check *c, const struct pw_entity *entity)
{
    bool rests = false;
    return pw_rest_has(&c->shard->tables, c->txn, entity->machine_name, &rests) == PAWL_OK && rests;
}

static void check_waker(struct check *c, const struct pw_entity *e)
{
    uint64_t due_ms = pw_entity_due(e);
    struct pw_key key = { .size = 0 };
    pw_key_pair(&key, due_ms, e->row);
    if (due_ms != 0 && !has(c, PW_DUE, &key) && !is_scope_held(c, e) && !rests(c, e))
        say(c, "%s/%s in '%s' is due at %llu and has no due row", e->machine_name, e->id,
            e->state_name, (unsigned long long)due_ms);
}

static void check_numbers(struct check *c, const struct pw_entity *e)
{
    if (e->version > c->meta.lsn)
        say(c, "%s/%s has version %llu above the shard's lsn %llu", e->machine_name, e->id,
            (unsigned long long)e->version, (unsigned long long)c->meta.lsn);
    if (e->row >= c->meta.next_row)
        say(c, "%s/%s has row %llu, which was not given out", e->machine_name, e->id,
            (unsigned long long)e->row);
}

static bool check_entity(void *arg, pawl_bytes key, pawl_bytes value)
{
    struct check *c = arg;
    struct pw_entity e;
    struct pw_key look = { .size = 0 };
    uint64_t row = 0;
    pw_arena_reset(&c->arena);
    if (key.size != 8 ||
        pw_entity_unpack(value, c->shard->tables.machines, &c->arena, &e) != PAWL_OK) {
        say(c, "entity table: a row cannot be read (row %llu)",
            key.size == 8 ? (unsigned long long)pw_get_u64(key.data) : 0);
        return !c->ended;
    }
    e.row = pw_get_u64(key.data);
    if (pw_tables_find(&c->shard->tables, c->txn, e.machine_name, e.id, &row) != PAWL_OK ||
        row != e.row)
        say(c, "%s/%s (row %llu) is not in the id table", e.machine_name, e.id,
            (unsigned long long)e.row);
    c->entities += e.tombstone ? 0 : 1;
    pw_key_state(&look, e.machine_name, e.state_name, e.row);
    if (has(c, PW_STATE, &look) == e.tombstone)
        say(c, "%s/%s is %s the state index under '%s'", e.machine_name, e.id,
            e.tombstone ? "deleted, and in" : "not in", e.state_name);
    check_waker(c, &e);
    check_numbers(c, &e);
    return !c->ended;
}

static bool check_id(void *arg, pawl_bytes key, pawl_bytes value)
{
    struct check *c = arg;
    struct pw_entity e;
    struct pw_key look = { .size = 0 };
    bool right = value.size == 8 && load(c, pw_get_u64(value.data), &e);
    if (right)
        pw_key_id(&look, e.machine_name, e.id);
    if (!right || !pw_bytes_equal(key, pw_key_bytes(&look)))
        say(c, "id table: %.*s leads to no such entity", (int)strnlen(key.data, key.size),
            (const char *)key.data);
    return !c->ended;
}

static bool check_state(void *arg, pawl_bytes key, pawl_bytes value)
{
    struct check *c = arg;
    const char *machine = NULL;
    const char *state = NULL;
    uint64_t row = 0;
    struct pw_entity e;
    (void)value;
    if (!pw_key_state_parse(key, &machine, &state, &row))
        say(c, "state index: a malformed key");
    else if (!load(c, row, &e) || strcmp(e.machine_name, machine) != 0 ||
             strcmp(e.state_name, state) != 0)
        say(c, "state index: row %llu is not in %s '%s'", (unsigned long long)row, machine, state);
    return !c->ended;
}

static bool check_due(void *arg, pawl_bytes key, pawl_bytes value)
{
    struct check *c = arg;
    struct pw_entity e;
    (void)value;
    uint64_t row = key.size == 16 ? pw_get_u64((const uint8_t *)key.data + 8) : 0;
    if (row == 0 || !load(c, row, &e) || pw_entity_due(&e) != pw_get_u64(key.data))
        say(c, "due index: row %llu is not due then", (unsigned long long)row);
    return !c->ended;
}

/* Each visit begins where the one before ended: a transition that was lost or made twice breaks the
 * chain. */
static void check_chain(struct check *c, uint64_t row, const struct pw_happening *happening)
{
    bool moved = happening->kind == PW_MOVED;
    if (moved && row == c->chain_row && strcmp(c->chain_state, happening->from) != 0)
        say(c, "history: row %llu left '%s' while it was in '%s'", (unsigned long long)row,
            happening->from, c->chain_state);
    if (!moved && happening->kind != PW_CREATED)
        return;
    c->chain_row = row;
    pw_print(c->chain_state, sizeof(c->chain_state), "%s", happening->to);
}

static bool check_history(void *arg, pawl_bytes key, pawl_bytes value)
{
    struct check *c = arg;
    struct pw_happening happening;
    struct pw_key look = { .size = 0 };
    pw_arena_reset(&c->arena);
    uint64_t row = key.size == 16 ? pw_get_u64(key.data) : 0;
    pw_key_u64(&look, row);
    if (row == 0 || !has(c, PW_ENTITY, &look))
        say(c, "history: a line of no entity (row %llu)", (unsigned long long)row);
    else if (pw_happening_unpack(value, &c->arena, &happening) != PAWL_OK)
        say(c, "history: a line of row %llu cannot be read", (unsigned long long)row);
    else
        check_chain(c, row, &happening);
    return !c->ended;
}

static bool check_outbox(void *arg, pawl_bytes key, pawl_bytes value)
{
    struct check *c = arg;
    struct pw_record record;
    pw_arena_reset(&c->arena);
    bool right = key.size == 8 &&
                 pw_record_unpack(value, c->shard->tables.machines, &c->arena, &record) == PAWL_OK;
    if (!right || record.lsn != pw_get_u64(key.data) || record.lsn > c->meta.lsn)
        say(c, "outbox: a row cannot be read, or is not of its lsn");
    return !c->ended;
}

static pawl_err verify_shard(struct check *c)
{
    static const struct {
        enum pw_table table;
        pw_scanned check;
    } checks[] = {
        { PW_ENTITY, check_entity }, { PW_ID, check_id },           { PW_STATE, check_state },
        { PW_DUE, check_due },       { PW_HISTORY, check_history }, { PW_OUTBOX, check_outbox },
    };
    const pawl_bytes first = { "", 0 };
    pawl_err err = ops_of(c->shard)->begin(c->shard->tables.store, false, &c->txn);
    if (err != PAWL_OK)
        return err;
    err = pw_meta_load(&c->shard->tables, c->txn, &c->meta);
    if (err == PAWL_E_NOT_FOUND)
        err = PAWL_OK; /* never started: empty */
    for (size_t i = 0; i < PW_COUNT(checks) && err == PAWL_OK; i++)
        err = ops_of(c->shard)->scan(c->txn, checks[i].table, first, checks[i].check, c);
    ops_of(c->shard)->abort(c->txn);
    return err;
}

pawl_err pw_verify(struct pawl *engine, pw_wrong wrong, void *arg, uint64_t *entities)
{
    struct check c = { .wrong = wrong, .arg = arg };
    pawl_err err = PAWL_OK;
    pw_arena_init(&c.arena, (size_t)64 * 1024);
    for (uint32_t i = 0; i < engine->shards_count && err == PAWL_OK && !c.ended; i++) {
        c.shard = &engine->shards[i];
        c.meta = (struct pw_meta){ .lsn = 0 };
        c.chain_row = 0; /* rows are each shard's own */
        err = verify_shard(&c);
    }
    pw_arena_fini(&c.arena);
    if (err == PAWL_OK)
        *entities = c.entities;
    return err;
}

/* --- ready, and on no list ---------------------------------------------------------------- */

#define UNLISTED_MAX 1024
#define LOOKS 20
#define LOOK_MS 50

struct unlisted {
    struct pawl *engine;
    struct pw_shard *shard;
    struct pw_txn *txn;
    struct pw_arena arena;
    struct {
        uint32_t shard;
        uint64_t row;
    } places[UNLISTED_MAX];
    size_t count;
};

static bool is_unlisted(struct unlisted *u, const struct pw_entity *e)
{
    return pw_entity_ready(e) && !pw_holds_cover(&u->engine->holds, u->shard->index, e) &&
           !pw_pool_has(pw_pool_of(u->engine, e->machine), u->shard->index, e->row, e->epoch,
                        e->attempt) &&
           !pw_comes_by_journal(u->shard, e);
}

static bool look_at(void *arg, pawl_bytes key, pawl_bytes value)
{
    struct unlisted *u = arg;
    struct pw_entity e;
    pw_arena_reset(&u->arena);
    if (key.size != 8 ||
        pw_entity_unpack(value, u->shard->tables.machines, &u->arena, &e) != PAWL_OK)
        return true; /* verify names it */
    e.row = pw_get_u64(key.data);
    if (is_unlisted(u, &e)) {
        u->places[u->count].shard = u->shard->index;
        u->places[u->count].row = e.row;
        u->count++;
    }
    return u->count < UNLISTED_MAX;
}

static pawl_err find_unlisted(struct unlisted *u)
{
    const pawl_bytes first = { "", 0 };
    pawl_err err = PAWL_OK;
    for (uint32_t i = 0; i < u->engine->shards_count && err == PAWL_OK && u->count < UNLISTED_MAX;
         i++) {
        u->shard = &u->engine->shards[i];
        err = ops_of(u->shard)->begin(u->shard->tables.store, false, &u->txn);
        if (err != PAWL_OK)
            return err;
        err = ops_of(u->shard)->scan(u->txn, PW_ENTITY, first, look_at, u);
        ops_of(u->shard)->abort(u->txn);
    }
    return err;
}

/* Keeps those that are still unlisted. */
static pawl_err look_again(struct unlisted *u)
{
    size_t kept = 0;
    for (size_t i = 0; i < u->count; i++) {
        struct pw_entity e;
        u->shard = &u->engine->shards[u->places[i].shard];
        pawl_err err = ops_of(u->shard)->begin(u->shard->tables.store, false, &u->txn);
        if (err != PAWL_OK)
            return err;
        pw_arena_reset(&u->arena);
        err = pw_tables_load(&u->shard->tables, u->txn, u->places[i].row, &u->arena, &e);
        if (err == PAWL_OK && is_unlisted(u, &e))
            u->places[kept++] = u->places[i];
        ops_of(u->shard)->abort(u->txn);
    }
    u->count = kept;
    return PAWL_OK;
}

pawl_err pw_unlisted(struct pawl *engine, uint64_t *count)
{
    struct unlisted u = { .engine = engine };
    struct pw_wake wake;
    pw_wake_init(&wake);
    pw_arena_init(&u.arena, (size_t)64 * 1024);
    pawl_err err = find_unlisted(&u);
    for (int look = 0; look < LOOKS && err == PAWL_OK && u.count > 0; look++) {
        pw_nap(&wake, LOOK_MS);
        err = look_again(&u);
    }
    pw_arena_fini(&u.arena);
    pw_wake_fini(&wake);
    if (err == PAWL_OK)
        *count = u.count;
    return err;
}

/* --- how much of what --------------------------------------------------------------------- */

static bool look_at_oldest(void *arg, pawl_bytes key, pawl_bytes value)
{
    struct pw_heads heads;
    (void)key;
    if (pw_record_heads(value, &heads) != PAWL_OK)
        return true; /* verify names it */
    *(uint64_t *)arg = heads.time_ms;
    return false;
}

/* As a start would go on from the last commit: by what the machine's clock says has passed. */
static uint64_t now_of(const struct pw_shard *shard, const struct pw_meta *meta)
{
    struct pw_clock *clock = shard->engine->clock;
    uint64_t wall_ms = clock->wall_ms(clock);
    return meta->time_ms + (wall_ms > meta->wall_ms ? wall_ms - meta->wall_ms : 0);
}

pawl_err pw_status(struct pw_shard *shard, struct pw_status *status)
{
    struct pw_status read = { .clean = false };
    struct pw_meta meta = { .clean = true };
    struct pw_txn *txn = NULL;
    const pawl_bytes first = { "", 0 };
    pawl_err err = ops_of(shard)->begin(shard->tables.store, false, &txn);
    if (err != PAWL_OK)
        return err;
    err = pw_meta_load(&shard->tables, txn, &meta);
    if (err == PAWL_E_NOT_FOUND)
        err = PAWL_OK;
    if (err == PAWL_OK)
        err = ops_of(shard)->count(txn, PW_STATE, &read.entities); /* not tombstones */
    if (err == PAWL_OK)
        err = ops_of(shard)->count(txn, PW_DUE, &read.due);
    if (err == PAWL_OK)
        err = ops_of(shard)->count(txn, PW_OUTBOX, &read.outbox);
    if (err == PAWL_OK)
        err = ops_of(shard)->scan(txn, PW_OUTBOX, first, look_at_oldest, &read.oldest_ms);
    ops_of(shard)->abort(txn);
    if (err != PAWL_OK)
        return err;
    read.lsn = meta.lsn;
    read.time_ms = meta.time_ms;
    read.now_ms = now_of(shard, &meta);
    read.journal_created = meta.journal_created;
    read.journal_seq = meta.journal_seq;
    read.journal_lsn = meta.journal_lsn;
    read.clean = meta.clean;
    *status = read;
    return PAWL_OK;
}

bool pw_journal_health(struct pw_shard *shard, struct pw_health *health)
{
    struct pw_position *position = &shard->position;
    if (shard->journal == NULL)
        return false;
    pthread_mutex_lock(&position->lock);
    *health = (struct pw_health){ position->live, position->seq, position->lsn, "" };
    pw_print(health->error, sizeof(health->error), "%s", position->error);
    pthread_mutex_unlock(&position->lock);
    return true;
}

struct count {
    pw_counted counted;
    void *arg;
    char machine[PW_NAME_MAX + 1];
    char state[PW_NAME_MAX + 1];
    uint64_t entities;
    bool ended;
};

static void tell_count(struct count *count)
{
    if (count->entities > 0 && !count->ended)
        count->ended = !count->counted(count->arg, count->machine, count->state, count->entities);
    count->entities = 0;
}

static bool count_row(void *arg, pawl_bytes key, pawl_bytes value)
{
    struct count *count = arg;
    const char *machine = NULL;
    const char *state = NULL;
    uint64_t row = 0;
    (void)value;
    if (!pw_key_state_parse(key, &machine, &state, &row))
        return true;
    if (strcmp(machine, count->machine) != 0 || strcmp(state, count->state) != 0) {
        tell_count(count);
        pw_print(count->machine, sizeof(count->machine), "%s", machine);
        pw_print(count->state, sizeof(count->state), "%s", state);
    }
    count->entities++;
    return !count->ended;
}

pawl_err pw_count_states(struct pw_shard *shard, pw_counted counted, void *arg)
{
    struct count count = { .counted = counted, .arg = arg };
    struct pw_txn *txn = NULL;
    const pawl_bytes first = { "", 0 };
    pawl_err err = ops_of(shard)->begin(shard->tables.store, false, &txn);
    if (err != PAWL_OK)
        return err;
    err = ops_of(shard)->scan(txn, PW_STATE, first, count_row, &count);
    ops_of(shard)->abort(txn);
    if (err == PAWL_OK)
        tell_count(&count);
    return err;
}

pawl_err pw_list_holds(struct pw_shard *shard, pw_hold_seen seen, void *arg)
{
    struct pw_txn *txn = NULL;
    pawl_err err = ops_of(shard)->begin(shard->tables.store, false, &txn);
    if (err != PAWL_OK)
        return err;
    err = pw_hold_scan(&shard->tables, txn, seen, arg);
    ops_of(shard)->abort(txn);
    return err;
}
