/* SPDX-License-Identifier: Apache-2.0
 *
 * From the store to the ready lists: at start all at once, later in bounded walks (a release, the
 * safety net). */
#include "base/base.h"
#include "base/limits.h"
#include "core/machine.h"
#include "engine/engine.h"
#include "engine/writer.h"

static const struct pw_store_ops *ops_of(const struct pw_shard *shard)
{
    return shard->tables.store->ops;
}

/* --- rows of a state, some at a time ------------------------------------------------------ */

struct rows {
    const char *machine;
    const char *state;
    uint64_t rows[PW_WALK_BATCH_MAX];
    size_t count;
};

static bool collect_row(void *arg, pawl_bytes key, pawl_bytes value)
{
    struct rows *rows = arg;
    const char *machine = NULL;
    const char *state = NULL;
    uint64_t row = 0;
    (void)value;
    if (!pw_key_state_parse(key, &machine, &state, &row))
        return true; /* damaged: verify names it, and the rows behind it are no less ready */
    if (strcmp(machine, rows->machine) != 0 || strcmp(state, rows->state) != 0)
        return false;
    rows->rows[rows->count++] = row;
    return rows->count < PW_COUNT(rows->rows);
}

static pawl_err read_rows(struct pw_shard *shard, struct pw_txn *txn, uint64_t from,
                          struct rows *rows)
{
    struct pw_key key = { .size = 0 };
    rows->count = 0;
    pw_key_state(&key, rows->machine, rows->state, from);
    return ops_of(shard)->scan(txn, PW_STATE, pw_key_bytes(&key), collect_row, rows);
}

bool pw_comes_by_journal(const struct pw_shard *shard, const struct pw_entity *entity)
{
    if (shard->journal == NULL)
        return false;
    if (!atomic_load(&shard->serving))
        return true; /* nothing is worked before the journal's tail is known */
    /* What came before the opening does not come again; behind it, records come in order, but for
     * what is appended again: that may be listed a moment early. */
    return entity->version > atomic_load(&shard->opened_lsn) &&
           entity->version > atomic_load(&shard->seen_lsn);
}

/* At start: its present record is a task that the journal does not have yet. One that it has, and
 * that may be on its way back, is listed all the same: no pool lists a task twice. */
static bool is_to_be_appended(const struct pw_shard *shard, struct pw_txn *txn,
                              const struct pw_entity *entity)
{
    struct pw_key key = { .size = 0 };
    pawl_bytes value = { NULL, 0 };
    struct pw_heads heads;
    if (shard->journal == NULL || entity->version <= atomic_load(&shard->opened_lsn))
        return false;
    pw_key_u64(&key, entity->version);
    return ops_of(shard)->get(txn, PW_OUTBOX, pw_key_bytes(&key), &value) == PAWL_OK &&
           pw_record_heads(value, &heads) == PAWL_OK && heads.task;
}

uint64_t pw_row_of(struct pw_shard *shard, const char *machine, const char *id)
{
    struct pw_txn *txn = NULL;
    uint64_t row = 0;
    if (ops_of(shard)->begin(shard->tables.store, false, &txn) != PAWL_OK)
        return 0;
    if (pw_tables_find(&shard->tables, txn, machine, id, &row) != PAWL_OK)
        row = 0;
    ops_of(shard)->abort(txn);
    return row;
}

static void set_listing(struct pw_shard *shard, const struct pw_entity *entity, bool probation,
                        struct pw_settled *settled)
{
    *settled =
        (struct pw_settled){ .pool = pw_pool_of(shard->engine, entity->machine), .listed = true };
    settled->listing = (struct pw_listing){
        .shard = shard->index,
        .attempt = entity->attempt,
        .row = entity->row,
        .epoch = entity->epoch,
        .key = entity->key,
        .probation = probation,
        .suspect = probation && entity->crashes >= 1,
    };
}

/* --- start -------------------------------------------------------------------------------- */

/* A state of the index that the machine does not have, or a machine that the engine does not have.
 */
struct stranger {
    const struct pw_machines *machines;
    char machine[PW_NAME_MAX + 1];
    char state[PW_NAME_MAX + 1];
    bool found;
    bool machine_known;
};

static bool look_for_stranger(void *arg, pawl_bytes key, pawl_bytes value)
{
    struct stranger *stranger = arg;
    const char *machine = NULL;
    const char *state = NULL;
    uint64_t row = 0;
    (void)value;
    if (!pw_key_state_parse(key, &machine, &state, &row))
        return true;
    pw_print(stranger->machine, sizeof(stranger->machine), "%s", machine);
    pw_print(stranger->state, sizeof(stranger->state), "%s", state);
    const pawl_machine *known = pw_machines_find(stranger->machines, machine);
    stranger->machine_known = known != NULL;
    stranger->found = known == NULL || pw_machine_state(known, state) == PW_STATE_UNKNOWN;
    return false; /* one look a state: the next scan begins behind it */
}

/* Parks one lot of a lost state, in one commit. *from as in list_lot. */
static pawl_err park_lot(struct pw_shard *shard, struct rows *rows, uint64_t now_ms, uint64_t *from,
                         size_t *parked)
{
    struct pw_writer *w = &shard->writer;
    struct pw_input input = { .kind = PW_IN_LOST_STATE };
    struct pw_save save = { .sent_lsn = w->meta.sent_lsn,
                            .now_ms = now_ms,
                            .outbox = shard->journal != NULL };
    struct pw_txn *txn = NULL;
    pw_arena_reset(&w->arena);
    pawl_err err = ops_of(shard)->begin(shard->tables.store, true, &txn);
    if (err != PAWL_OK)
        return err;
    err = read_rows(shard, txn, *from, rows);
    for (size_t i = 0; i < rows->count && err == PAWL_OK; i++) {
        struct pw_entity entity;
        struct pw_update update;
        err = pw_tables_load(&shard->tables, txn, rows->rows[i], &w->arena, &entity);
        bool lost = err == PAWL_OK && entity.machine != NULL && entity.state == PW_STATE_UNKNOWN &&
                    !entity.parked;
        if (lost)
            err = pw_step(&entity, &input, now_ms, w->meta.lsn + 1, &update, NULL);
        if (err == PAWL_E_CORRUPT || err == PAWL_E_NOT_FOUND) {
            err = PAWL_OK; /* verify names it */
            continue;
        }
        if (err != PAWL_OK || !lost)
            continue;
        err = pw_tables_put(&shard->tables, txn, &entity, &update, &save, &w->arena);
        w->meta.lsn++;
        (*parked)++;
    }
    if (err == PAWL_OK)
        err = pw_meta_save(&shard->tables, txn, &w->meta);
    if (err != PAWL_OK) {
        ops_of(shard)->abort(txn);
        return err;
    }
    *from = rows->count == PW_COUNT(rows->rows) ? rows->rows[rows->count - 1] + 1 : 0;
    return ops_of(shard)->commit(txn);
}

static pawl_err park_state(struct pw_shard *shard, const struct stranger *stranger, uint64_t now_ms)
{
    struct rows rows = { .machine = stranger->machine, .state = stranger->state };
    uint64_t from = 0;
    size_t parked = 0;
    do {
        pawl_err err = park_lot(shard, &rows, now_ms, &from, &parked);
        if (err != PAWL_OK)
            return err;
    } while (from != 0);
    if (parked > 0)
        pw_log(&shard->engine->log, PAWL_WARN, "recovery.lost-state",
               "machine=%s state=%s: the machine no longer has it; %zu entities are parked",
               stranger->machine, stranger->state, parked);
    return PAWL_OK;
}

static pawl_err find_strangers(struct pw_shard *shard, uint64_t now_ms)
{
    struct stranger stranger = { .machines = &shard->engine->machines };
    struct pw_key key = { .size = 0 };
    for (;;) { /* ends: each round begins behind the state of the one before */
        struct pw_txn *txn = NULL;
        stranger.state[0] = '\0';
        stranger.found = false;
        pawl_err err = ops_of(shard)->begin(shard->tables.store, false, &txn);
        if (err != PAWL_OK)
            return err;
        err = ops_of(shard)->scan(txn, PW_STATE, pw_key_bytes(&key), look_for_stranger, &stranger);
        ops_of(shard)->abort(txn);
        if (err != PAWL_OK || stranger.state[0] == '\0')
            return err;
        if (stranger.found && !stranger.machine_known)
            pw_log(&shard->engine->log, PAWL_WARN, "recovery.no-machine",
                   "machine=%s state=%s: the engine has no such machine; its entities rest",
                   stranger.machine, stranger.state);
        else if (stranger.found)
            err = park_state(shard, &stranger, now_ms);
        if (err != PAWL_OK)
            return err;
        pw_key_state(&key, stranger.machine, stranger.state, UINT64_MAX);
    }
}

struct holds_read {
    struct pw_hold *list;
    size_t count;
    bool releasing;
};

static bool load_hold(void *arg, enum pw_hold_kind kind, const char *machine, const char *name,
                      enum pw_hold_phase phase)
{
    struct holds_read *load = arg;
    load->releasing = load->releasing || phase == PW_RELEASING;
    if (phase != PW_HOLDING)
        return true;
    struct pw_hold *hold = &load->list[load->count++];
    *hold = (struct pw_hold){ .kind = kind };
    pw_print(hold->machine, sizeof(hold->machine), "%s", machine);
    pw_print(hold->name, sizeof(hold->name), "%s", name);
    return load->count < PW_HOLDS_MAX;
}

/* The holds in memory are what the store has. */
static pawl_err load_holds(struct pw_shard *shard, struct pw_txn *txn, bool *releasing)
{
    struct holds_read load = { .list = pw_arena_alloc(&shard->writer.arena,
                                                      PW_HOLDS_MAX * sizeof(struct pw_hold)) };
    if (load.list == NULL)
        return PAWL_E_NOMEM;
    pawl_err err = pw_hold_scan(&shard->tables, txn, load_hold, &load);
    if (err == PAWL_OK)
        err = pw_holds_set(&shard->engine->holds, shard->index, load.list, load.count);
    if (err == PAWL_OK)
        *releasing = load.releasing;
    return err;
}

static bool last_lsn(void *arg, pawl_bytes key, pawl_bytes value)
{
    (void)value;
    if (key.size == 8)
        *(uint64_t *)arg = pw_get_u64(key.data);
    return true;
}

pawl_err pw_shard_read(struct pw_shard *shard, struct pw_left *left)
{
    struct pw_left read = { .is_new = false };
    struct pw_txn *txn = NULL;
    pawl_bytes first = { "", 0 };
    pawl_err err = ops_of(shard)->begin(shard->tables.store, false, &txn);
    if (err != PAWL_OK)
        return err;
    err = pw_meta_load(&shard->tables, txn, &read.meta);
    read.is_new = err == PAWL_E_NOT_FOUND;
    if (read.is_new) {
        read.meta = (struct pw_meta){ .next_row = 1 };
        err = PAWL_OK;
    }
    if (err == PAWL_OK)
        err = pw_told_load_all(shard, txn);
    if (err == PAWL_OK)
        err = load_holds(shard, txn, &read.releasing);
    if (err == PAWL_OK)
        err = ops_of(shard)->scan(txn, PW_OUTBOX, first, last_lsn, &read.outbox_lsn);
    ops_of(shard)->abort(txn);
    if (err == PAWL_OK)
        *left = read;
    return err;
}

/* Machines that an engine before did not have, and this one has. */
static pawl_err wake_rested(struct pw_shard *shard, struct pw_txn *txn)
{
    const struct pw_machines *machines = &shard->engine->machines;
    pawl_err err = PAWL_OK;
    for (size_t m = 0; m < machines->count && err == PAWL_OK; m++) {
        bool rests = false;
        err = pw_rest_has(&shard->tables, txn, machines->list[m]->name, &rests);
        if (err != PAWL_OK || !rests)
            continue;
        err = pw_rest_end(&shard->tables, txn, machines->list[m]->name);
        shard->writer.walk_wanted = true;
    }
    return err;
}

static pawl_err mark_open(struct pw_shard *shard)
{
    struct pw_txn *txn = NULL;
    pawl_err err = ops_of(shard)->begin(shard->tables.store, true, &txn);
    if (err != PAWL_OK)
        return err;
    err = wake_rested(shard, txn);
    if (err == PAWL_OK)
        err = pw_meta_save(&shard->tables, txn, &shard->writer.meta);
    if (err == PAWL_OK)
        return ops_of(shard)->commit(txn);
    ops_of(shard)->abort(txn);
    return err;
}

/* Journal time goes on from the last commit's, plus what the machine's clock says has passed since,
 * never below 0. */
static void set_time(struct pw_shard *shard, bool is_new)
{
    struct pw_clock *clock = shard->engine->clock;
    const struct pw_meta *meta = &shard->writer.meta;
    uint64_t wall_ms = clock->wall_ms(clock);
    uint64_t passed_ms = wall_ms > meta->wall_ms ? wall_ms - meta->wall_ms : 0;
    shard->time_base_ms = is_new ? wall_ms : pw_time_add(meta->time_ms, passed_ms);
    shard->time_start_ms = clock->monotonic_ms(clock);
}

/* A fence above the last one's, and not below the clock's seconds, so that a restored backup
 * repeats no lsn. */
static uint64_t new_fence(const struct pw_shard *shard)
{
    struct pw_clock *clock = shard->engine->clock;
    uint64_t above = (shard->writer.meta.lsn >> 32) + 1;
    uint64_t seconds = clock->wall_ms(clock) / 1000;
    return seconds > above && seconds <= UINT32_MAX ? seconds : above;
}

pawl_err pw_recover(struct pw_shard *shard, pawl_why *why)
{
    struct pw_writer *w = &shard->writer;
    struct pw_left left = { .is_new = false };
    pawl_err err = pw_shard_read(shard, &left);
    if (err != PAWL_OK)
        return pw_fail(why, err, "shard %u: read what was left: %s", shard->index,
                       pawl_err_text(err));
    w->meta = left.meta;
    w->walk_wanted = left.releasing;
    set_time(shard, left.is_new);
    shard->probation = !left.is_new && !w->meta.clean;
    shard->start_lsn = w->meta.lsn;
    w->meta.lsn = new_fence(shard) << 32;
    w->meta.clean = false;
    w->meta.time_ms = shard->time_base_ms;
    w->meta.wall_ms = shard->engine->clock->wall_ms(shard->engine->clock);
    if (shard->probation)
        pw_log(&shard->engine->log, PAWL_WARN, "recovery.unclean",
               "shard=%u: the last owner did not stop in order; ready tasks begin on probation",
               shard->index);
    err = mark_open(shard);
    w->sweep_ms = w->walk_wanted ? 0 : pw_time_add(shard->time_start_ms, PW_SWEEP_MS);
    atomic_store(&shard->list_wanted, shard->journal == NULL);
    uint64_t opened_lsn = w->meta.lsn;
    if (err == PAWL_OK)
        err = find_strangers(shard, shard->time_base_ms);
    if (shard->journal != NULL && w->meta.lsn > opened_lsn)
        left.outbox_lsn = w->meta.lsn; /* what was parked */
    if (err != PAWL_OK)
        return pw_fail(why, err, "shard %u: recover: %s", shard->index, pawl_err_text(err));
    pw_relay_begin(shard, w->meta.lsn, left.outbox_lsn);
    return PAWL_OK;
}

/* --- walks -------------------------------------------------------------------------------- */

struct find_release {
    struct pw_walk *walk;
};

static bool on_hold_row(void *arg, enum pw_hold_kind kind, const char *machine, const char *name,
                        enum pw_hold_phase phase)
{
    struct find_release *find = arg;
    struct pw_walk *walk = find->walk;
    if (phase != PW_RELEASING)
        return true;
    *walk = (struct pw_walk){ .kind = PW_WALK_RELEASE, .hold_kind = kind };
    pw_print(walk->hold_machine, sizeof(walk->hold_machine), "%s", machine);
    pw_print(walk->hold_name, sizeof(walk->hold_name), "%s", name);
    return false;
}

void pw_walk_next(struct pw_shard *shard, uint64_t mono_ms)
{
    struct pw_walk *walk = &shard->writer.walk;
    struct find_release find = { walk };
    struct pw_txn *txn = NULL;
    *walk = (struct pw_walk){ .kind = PW_WALK_NONE };
    if (ops_of(shard)->begin(shard->tables.store, false, &txn) == PAWL_OK) {
        if (pw_hold_scan(&shard->tables, txn, on_hold_row, &find) != PAWL_OK)
            walk->kind = PW_WALK_NONE; /* the sweep comes first, the release at the next look */
        ops_of(shard)->abort(txn);
    }
    if (walk->kind == PW_WALK_RELEASE) {
        pw_holds_remove(&shard->engine->holds, shard->index, walk->hold_kind, walk->hold_machine,
                        walk->hold_name);
        return; /* sweep_ms stays: the next look comes when this one is through */
    }
    walk->kind = PW_WALK_SWEEP;
    shard->writer.sweep_ms = pw_time_add(mono_ms, PW_SWEEP_MS);
}

void pw_walk_list(struct pw_shard *shard)
{
    struct pw_walk *walk = &shard->writer.walk;
    if (walk->kind == PW_WALK_RELEASE)
        shard->writer.sweep_ms = 0; /* its row is in the store: it begins anew */
    *walk = (struct pw_walk){ .kind = PW_WALK_LIST };
}

void pw_walk_end(struct pw_shard *shard, enum pw_hold_kind kind, const char *machine,
                 const char *name)
{
    struct pw_walk *walk = &shard->writer.walk;
    if (walk->kind != PW_WALK_RELEASE || walk->hold_kind != kind ||
        strcmp(walk->hold_machine, machine) != 0 || strcmp(walk->hold_name, name) != 0)
        return;
    walk->kind = PW_WALK_NONE;
    shard->writer.sweep_ms = 0; /* should the hold be refused, the release begins anew */
}

static bool in_scope(const struct pw_walk *walk, const pawl_machine *machine,
                     const pawl_state *state)
{
    if (walk->kind != PW_WALK_RELEASE)
        return state->work != NULL;
    if (strcmp(walk->hold_machine, machine->name) != 0)
        return false;
    return walk->hold_kind != PW_HOLD_STATE || strcmp(walk->hold_name, state->name) == 0;
}

/* The next state to walk, from where the walk stands. False: through. */
static bool find_place(struct pw_shard *shard, const pawl_machine **machine,
                       const pawl_state **state)
{
    struct pw_walk *walk = &shard->writer.walk;
    const struct pw_machines *machines = &shard->engine->machines;
    for (; walk->machine < machines->count; walk->machine++, walk->state = 0)
        for (; walk->state < machines->list[walk->machine]->states_count;
             walk->state++, walk->row = 0) {
            *machine = machines->list[walk->machine];
            *state = &(*machine)->states[walk->state];
            if (in_scope(walk, *machine, *state))
                return true;
        }
    return false;
}

static bool is_released(const struct pw_walk *walk, const struct pw_entity *entity)
{
    return walk->hold_kind != PW_HOLD_KEY || strcmp(walk->hold_name, entity->key) == 0;
}

struct lot {
    struct pw_shard *shard;
    struct pw_txn *txn;
    struct pw_settled settled[PW_WALK_BATCH_MAX];
    size_t count;
};

static pawl_err walk_entity(struct lot *lot, uint64_t row)
{
    struct pw_shard *shard = lot->shard;
    struct pawl *engine = shard->engine;
    const struct pw_walk *walk = &shard->writer.walk;
    struct pw_arena *arena = &shard->writer.arena;
    struct pw_entity entity;
    pawl_err err = pw_tables_load(&shard->tables, lot->txn, row, arena, &entity);
    if (err != PAWL_OK)
        return err == PAWL_E_CORRUPT || err == PAWL_E_NOT_FOUND ? PAWL_OK
                                                                : err; /* verify names it */
    bool release = walk->kind == PW_WALK_RELEASE;
    if ((release && !is_released(walk, &entity)) ||
        pw_holds_cover(&engine->holds, shard->index, &entity))
        return PAWL_OK;
    uint64_t due_ms = pw_entity_due(&entity);
    if (release && due_ms != 0)
        err = pw_due_put(&shard->tables, lot->txn, due_ms, row);
    bool comes = walk->kind == PW_WALK_LIST ? is_to_be_appended(shard, lot->txn, &entity)
                                            : pw_comes_by_journal(shard, &entity);
    if (err != PAWL_OK || !pw_entity_ready(&entity) || comes)
        return err;
    if (pw_pool_has(pw_pool_of(engine, entity.machine), shard->index, row, entity.epoch,
                    entity.attempt))
        return PAWL_OK;
    bool probation =
        walk->kind == PW_WALK_LIST && shard->probation && entity.epoch <= shard->start_lsn;
    set_listing(shard, &entity, probation, &lot->settled[lot->count++]);
    return PAWL_OK;
}

static void list_lot_of_walk(struct lot *lot, const struct pw_walk *walk)
{
    struct pawl *engine = lot->shard->engine;
    if (lot->count == 0)
        return;
    pw_pool_settle(lot->settled[0].pool, lot->settled, lot->count);
    if (walk->kind != PW_WALK_SWEEP)
        return;
    pw_count(&engine->metrics, swept, lot->count);
    pw_log(&engine->log, PAWL_WARN, "writer.swept", "shard=%u: %zu ready entities were on no list",
           lot->shard->index, lot->count);
}

static pawl_err walk_rows(struct pw_shard *shard, struct rows *rows)
{
    struct pw_walk *walk = &shard->writer.walk;
    struct lot lot = { .shard = shard, .count = 0 };
    bool write = walk->kind == PW_WALK_RELEASE;
    pw_arena_reset(&shard->writer.arena);
    pawl_err err = ops_of(shard)->begin(shard->tables.store, write, &lot.txn);
    if (err != PAWL_OK)
        return err;
    err = read_rows(shard, lot.txn, walk->row, rows);
    for (size_t i = 0; i < rows->count && err == PAWL_OK; i++)
        err = walk_entity(&lot, rows->rows[i]);
    if (write && err == PAWL_OK)
        err = ops_of(shard)->commit(lot.txn);
    else
        ops_of(shard)->abort(lot.txn);
    if (err == PAWL_OK)
        list_lot_of_walk(&lot, walk);
    return err;
}

struct phase {
    const struct pw_walk *walk;
    enum pw_hold_phase phase;
};

static bool find_phase(void *arg, enum pw_hold_kind kind, const char *machine, const char *name,
                       enum pw_hold_phase phase)
{
    struct phase *find = arg;
    const struct pw_walk *walk = find->walk;
    if (kind == walk->hold_kind && strcmp(machine, walk->hold_machine) == 0 &&
        strcmp(name, walk->hold_name) == 0)
        find->phase = phase;
    return true;
}

/* The release is through; its row goes, unless the scope was held again meanwhile. */
static pawl_err end_release(struct pw_shard *shard)
{
    const struct pw_walk *walk = &shard->writer.walk;
    struct phase find = { walk, PW_HOLDING };
    struct pw_txn *txn = NULL;
    pawl_err err = ops_of(shard)->begin(shard->tables.store, true, &txn);
    if (err != PAWL_OK)
        return err;
    err = pw_hold_scan(&shard->tables, txn, find_phase, &find);
    bool releasing = find.phase == PW_RELEASING;
    if (err == PAWL_OK && releasing &&
        pw_machines_find(&shard->engine->machines, walk->hold_machine) == NULL)
        err = pw_rest_put(&shard->tables, txn, walk->hold_machine); /* nothing of it was walked */
    if (err == PAWL_OK && releasing)
        err =
            pw_hold_del(&shard->tables, txn, walk->hold_kind, walk->hold_machine, walk->hold_name);
    if (err == PAWL_OK)
        return ops_of(shard)->commit(txn);
    ops_of(shard)->abort(txn);
    return err;
}

void pw_walk_turn(struct pw_shard *shard)
{
    struct pw_writer *w = &shard->writer;
    struct pw_walk *walk = &w->walk;
    const pawl_machine *machine = NULL;
    const pawl_state *state = NULL;
    pawl_err err = PAWL_OK;
    bool more = find_place(shard, &machine, &state);
    if (more) {
        struct rows rows = { .machine = machine->name, .state = state->name };
        err = walk_rows(shard, &rows);
        bool through = rows.count < PW_COUNT(rows.rows);
        walk->state += err == PAWL_OK && through ? 1 : 0;
        walk->row = through ? 0 : rows.rows[rows.count - 1] + 1;
    } else {
        err = walk->kind == PW_WALK_RELEASE ? end_release(shard) : PAWL_OK;
        walk->kind = PW_WALK_NONE;
        w->next_due_ms = 0;
    }
    if (err == PAWL_OK)
        return;
    /* A walk is begun again when there is room, or the store is open, again. */
    if (walk->kind == PW_WALK_LIST)
        atomic_store(&shard->list_wanted, true);
    walk->kind = PW_WALK_NONE;
    w->broken = w->broken || (err != PAWL_E_FULL && err != PAWL_E_NOMEM && err != PAWL_E_BUSY);
    w->sweep_ms =
        pw_time_add(shard->engine->clock->monotonic_ms(shard->engine->clock), PW_FULL_RETRY_MS);
}
