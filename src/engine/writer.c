/* SPDX-License-Identifier: Apache-2.0
 *
 * The writer: the only thread that changes a shard. A turn takes what waits in the inbox and what
 * is due, steps each, commits them all with one sync, and only then tells anybody: pools, callers,
 * the relay. While it syncs, the next batch gathers in the inbox. */
#include <assert.h>

#include "base/base.h"
#include "base/limits.h"
#include "core/machine.h"
#include "engine/engine.h"
#include "engine/batch.h"
#include "engine/writer.h"

/* A shard's lsn is its fence and a count: this far before the count is used up, a new fence is
 * taken. */
#define LSN_COUNT_MAX (UINT32_MAX - 2u * PW_BATCH_MAX)

static const struct pw_store_ops *ops_of(const struct pw_shard *shard)
{
    return shard->tables.store->ops;
}

/* --- one input ---------------------------------------------------------------------------- */

/* Sent since the entity was saved: they do not wait any more. */
static void drop_sent(struct pw_entity *entity, uint64_t sent_lsn)
{
    for (; entity->effects_count > 0 && entity->effects->lsn <= sent_lsn; entity->effects_count--)
        entity->effects++;
}

/* PAWL_OK with *before NULL: there is no such entity. */
static pawl_err load(struct pw_batch *b, const struct pw_request *r, struct pw_entity *entity,
                     const struct pw_entity **before)
{
    const struct pw_tables *tables = &b->shard->tables;
    uint64_t row = r->row;
    pawl_err err = row != 0 ? PAWL_OK : pw_tables_find(tables, b->txn, r->machine, r->id, &row);
    if (err == PAWL_OK)
        err = pw_tables_load(tables, b->txn, row, &b->shard->writer.arena, entity);
    if (err == PAWL_OK)
        drop_sent(entity, atomic_load(&b->shard->trim_lsn));
    *before = err == PAWL_OK ? entity : NULL;
    return err == PAWL_E_NOT_FOUND ? PAWL_OK : err;
}

static struct pw_result *add_result(struct pw_batch *b)
{
    assert(b->results_count < PW_COUNT(b->results));
    struct pw_result *result = &b->results[b->results_count++];
    *result = (struct pw_result){ .happening = { .kind = PW_SILENT } };
    return result;
}

/* The visit has ended, and no edge takes the outcome of its work late. */
static bool is_over(const struct pw_update *update)
{
    const struct pw_entity *after = &update->after;
    if (update->change == PW_REMOVED)
        return true;
    if (update->happening.kind != PW_MOVED || after->machine == NULL)
        return false;
    for (size_t i = 0; i < after->machine->edges_count; i++)
        if (after->machine->edges[i].late && after->machine->edges[i].from == after->state)
            return false;
    return true;
}

static void note_result(struct pw_batch *b, const struct pw_update *update, struct pw_claim *ended)
{
    struct pawl *engine = b->shard->engine;
    const struct pw_entity *after = &update->after;
    struct pw_result *result = add_result(b);
    result->happening = update->happening;
    result->machine = after->machine_name;
    result->id = after->id;
    result->changed = true;
    result->parked = after->parked &&
                     (update->happening.kind == PW_PARKED || update->happening.kind == PW_MOVED);
    result->removed = update->change == PW_REMOVED;
    result->settled.ended = ended;
    if (after->machine != NULL)
        result->settled.pool = pw_pool_of(engine, after->machine);
    result->settled.over = is_over(update);
    /* With a journal a task is listed when its record comes back. */
    result->settled.listed = update->task && b->shard->journal == NULL;
    result->settled.listing = (struct pw_listing){
        .shard = b->shard->index,
        .attempt = after->attempt,
        .row = after->row,
        .epoch = result->removed ? after->version : after->epoch,
        .key = after->key,
    };
}

struct pw_save pw_batch_save(const struct pw_batch *b)
{
    struct pw_save save = {
        .sent_lsn = atomic_load(&b->shard->trim_lsn),
        .now_ms = b->now_ms,
        .outbox = b->shard->journal != NULL,
    };
    return save;
}

static pawl_err put(struct pw_batch *b, const struct pw_entity *before, struct pw_update *update)
{
    struct pw_shard *shard = b->shard;
    const struct pw_save save = pw_batch_save(b);
    if (before == NULL)
        update->after.row = b->meta.next_row;
    pawl_err err =
        pw_tables_put(&shard->tables, b->txn, before, update, &save, &shard->writer.arena);
    if (err != PAWL_OK)
        return err;
    b->changed = true;
    b->meta.next_row += before == NULL ? 1 : 0;
    b->meta.lsn = update->after.version;
    b->outbox_lsn = save.outbox || update->effects_new_count > 0 ? b->meta.lsn : b->outbox_lsn;
    b->bytes += update->after.data.size + 512;
    return PAWL_OK;
}

/* A change that is too large by its outcome is work that failed, not an outcome that is lost. */
static void turn_into_failure(struct pw_input *input)
{
    input->outcome = PW_FAIL;
    input->why = "the record would be larger than 768 KiB";
    input->effects_count = 0;
    input->has_data = false;
}

static pawl_err step_and_put(struct pw_batch *b, struct pw_request *r,
                             const struct pw_entity *before, struct pw_update *update)
{
    uint64_t lsn = b->meta.lsn + 1;
    r->input.dice = pw_rng_next(&b->shard->writer.rng);
    r->err = pw_step(before, &r->input, b->now_ms, lsn, update, &r->answer.why);
    if (r->err != PAWL_OK || update->change == PW_UNCHANGED)
        return PAWL_OK;
    if (r->is_tell && b->shard->journal != NULL) /* a copy made from the journal knows it, too */
        update->told_new = (struct pw_told){ r->from_shard, r->tell_n, r->tell_lsn };
    pawl_err err = put(b, before, update);
    if (err != PAWL_E_LIMIT)
        return err;
    if (r->input.kind == PW_IN_OUTCOME && r->input.outcome != PW_FAIL) {
        turn_into_failure(&r->input);
        return step_and_put(b, r, before, update);
    }
    r->err = pw_fail(&r->answer.why, PAWL_E_LIMIT, "the record would be larger than %u KiB",
                     PW_RECORD_MAX / 1024);
    return PAWL_OK;
}

static void set_answer(struct pw_request *r, const struct pw_update *update)
{
    r->answer.version = update->answered.version;
    r->answer.epoch = update->answered.epoch;
    r->answer.repeated = update->repeated;
    if (update->answered.state != NULL)
        pw_print(r->answer.state, sizeof(r->answer.state), "%s", update->answered.state);
    r->parked = update->change == PW_SAVED && update->after.parked;
    if (update->memo != NULL)
        r->memo = update->memo->value;
}

static void end_claim(struct pw_batch *b, const struct pw_request *r)
{
    struct pw_result *result = add_result(b);
    result->settled.ended = r->claim;
    result->settled.pool = r->pool;
}

static void log_corrupt(struct pw_batch *b, struct pw_request *r)
{
    r->err = pw_fail(&r->answer.why, PAWL_E_CORRUPT, "the entity's bytes cannot be read");
    pw_log(&b->shard->engine->log, PAWL_ERROR, "writer.corrupt",
           "shard=%u row=%llu: an entity cannot be read", b->shard->index,
           (unsigned long long)r->row);
}

/* An error that is returned belongs to the store, and ends the batch; refusals stand in the
 * request. */
static pawl_err do_step(struct pw_batch *b, struct pw_request *r)
{
    struct pw_entity entity = { .id = NULL };
    const struct pw_entity *before = NULL;
    struct pw_update update = { .change = PW_UNCHANGED };
    pawl_err err = load(b, r, &entity, &before);
    if (err == PAWL_E_CORRUPT) {
        log_corrupt(b, r);
        err = PAWL_OK;
    } else if (err == PAWL_OK && before != NULL && before->machine == NULL &&
               r->input.kind != PW_IN_DELETE) {
        r->err = pw_fail(&r->answer.why, PAWL_E_USAGE, "machine '%s' is not in this engine",
                         before->machine_name);
    } else if (err == PAWL_OK) {
        err = step_and_put(b, r, before, &update);
    }
    if (err != PAWL_OK)
        return err;
    if (r->err == PAWL_OK)
        set_answer(r, &update);
    if (r->err == PAWL_OK && update.change != PW_UNCHANGED)
        note_result(b, &update, r->claim);
    else if (r->claim != NULL && pawl_err_class_of(r->err) != PAWL_CLASS_TRANSIENT)
        end_claim(b, r);
    return PAWL_OK;
}

/* --- other requests ----------------------------------------------------------------------- */

static bool told_before(uint64_t lsn, uint32_t n, uint64_t than_lsn, uint32_t than_n)
{
    return lsn < than_lsn || (lsn == than_lsn && n <= than_n);
}

/* A tell is acted on once: what its shard told up to the last one acted on is known already. */
static pawl_err do_tell(struct pw_batch *b, struct pw_request *r)
{
    struct pw_cursor *told = &b->told[r->from_shard];
    if (told_before(r->tell_lsn, r->tell_n, told->acted_lsn, told->acted_n)) {
        r->answer.repeated = true;
        return PAWL_OK;
    }
    if (r->before_lsn != 0 &&
        !told_before(r->before_lsn, r->before_n, told->answered_lsn, told->answered_n)) {
        r->err =
            PAWL_E_BUSY; /* one before it was not answered: all behind it come again, in order */
        return PAWL_OK;
    }
    pawl_err err = do_step(b, r);
    if (err != PAWL_OK || pawl_err_class_of(r->err) == PAWL_CLASS_TRANSIENT)
        return err;
    told->answered_lsn = r->tell_lsn;
    told->answered_n = r->tell_n;
    if (r->err != PAWL_OK)
        return PAWL_OK;
    told->acted_lsn = r->tell_lsn;
    told->acted_n = r->tell_n;
    b->changed = true;
    return pw_told_save(&b->shard->tables, b->txn, r->from_shard, r->tell_lsn, r->tell_n);
}

static pawl_err do_note(struct pw_batch *b, struct pw_request *r)
{
    struct pw_entity entity = { .id = NULL };
    const struct pw_entity *before = NULL;
    pawl_err err = load(b, r, &entity, &before);
    if (err != PAWL_OK || before == NULL)
        return err == PAWL_E_CORRUPT ? PAWL_OK : err;
    struct pw_happening happening = {
        .kind = PW_NOTED,
        .time_ms = b->now_ms,
        .from = before->state_name,
        .event = "",
        .to = "",
        .why = r->input.why,
    };
    b->meta.lsn++;
    b->changed = true;
    struct pw_result *result = add_result(b);
    result->happening = happening;
    result->machine = before->machine_name;
    result->id = before->id;
    return pw_tables_note(&b->shard->tables, b->txn, before, b->meta.lsn, &happening,
                          &b->shard->writer.arena);
}

static pawl_err do_hold(struct pw_batch *b, struct pw_request *r)
{
    struct pawl *engine = b->shard->engine;
    r->err = pw_holds_add(&engine->holds, b->shard->index, r->hold_kind, r->machine, r->hold_name,
                          &r->hold_added);
    if (r->err != PAWL_OK) {
        r->err = pw_fail(&r->answer.why, r->err, "at most %d scopes can be held", PW_HOLDS_MAX);
        return PAWL_OK;
    }
    pw_walk_end(b->shard, r->hold_kind, r->machine, r->hold_name);
    b->changed = true;
    return pw_hold_put(&b->shard->tables, b->txn, r->hold_kind, r->machine, r->hold_name,
                       PW_HOLDING);
}

/* The row stays, as releasing, until a walk has listed what the hold kept back. */
static pawl_err do_release(struct pw_batch *b, struct pw_request *r)
{
    b->changed = true;
    b->walk_wanted = true;
    return pw_hold_put(&b->shard->tables, b->txn, r->hold_kind, r->machine, r->hold_name,
                       PW_RELEASING);
}

/* What begins something, from outside. */
static bool is_refused_when_full(const struct pw_request *r)
{
    return !r->inside && r->kind == PW_DO_STEP &&
           (r->input.kind == PW_IN_CREATE || r->input.kind == PW_IN_SEND);
}

/* The last part of a map is for what makes room; else work in progress could fill it to the last
 * page, and then even a delete finds no page to copy to. */
static bool takes_reserve(const struct pw_request *r)
{
    return r->kind != PW_DO_JOURNAL && (r->kind != PW_DO_STEP || r->input.kind != PW_IN_DELETE);
}

static pawl_err apply(struct pw_batch *b, struct pw_request *r, unsigned fill_percent)
{
    r->err = PAWL_OK;
    if (fill_percent > PW_MAP_FILL_PERCENT && is_refused_when_full(r)) {
        r->err = pw_fail(&r->answer.why, PAWL_E_FULL,
                         "the store is %u %% full; retention or deletes make room", fill_percent);
        return PAWL_OK;
    }
    if (fill_percent > PW_MAP_RESERVE_PERCENT && takes_reserve(r)) {
        r->err = pw_fail(&r->answer.why, PAWL_E_FULL, "the store is %u %% full; deletes make room",
                         fill_percent);
        return PAWL_OK;
    }
    if (is_refused_when_full(r) && b->outbox_full) {
        r->err = pw_fail(&r->answer.why, PAWL_E_BUSY,
                         "the outbox is full: %llu records wait for the journal",
                         (unsigned long long)b->shard->engine->outbox_rows_max);
        return PAWL_OK;
    }
    if (!r->inside && atomic_load(&b->shard->lost)) {
        r->err = pw_fail(&r->answer.why, PAWL_E_LOCKED, "another owner has taken shard %u",
                         b->shard->index);
        return PAWL_OK;
    }
    switch (r->kind) {
    case PW_DO_TAKE:
        return pw_do_take(b, r);
    case PW_DO_RESEED:
        return pw_do_reseed(b, r);
    case PW_DO_JOURNAL:
        return pw_do_journal(b, r);
    case PW_DO_NOTE:
        return do_note(b, r);
    case PW_DO_HOLD:
        return do_hold(b, r);
    case PW_DO_RELEASE:
        return do_release(b, r);
    case PW_DO_STEP:
    default:
        return r->is_tell ? do_tell(b, r) : do_step(b, r);
    }
}

/* --- timers ------------------------------------------------------------------------------- */

/* A tombstone's time is over. */
static pawl_err forget(struct pw_batch *b, const struct pw_entity *tombstone)
{
    const struct pw_save save = pw_batch_save(b);
    b->changed = true;
    b->meta.lsn++;
    if (save.outbox)
        b->outbox_lsn = b->meta.lsn;
    return pw_tables_forget(&b->shard->tables, b->txn, tombstone, b->meta.lsn, &save,
                            &b->shard->writer.arena);
}

static pawl_err do_due_row(struct pw_batch *b, const struct pw_due *due)
{
    struct pw_shard *shard = b->shard;
    struct pw_entity entity = { .id = NULL };
    pawl_err err =
        pw_tables_load_any(&shard->tables, b->txn, due->row, &shard->writer.arena, &entity);
    if (err != PAWL_OK && err != PAWL_E_NOT_FOUND && err != PAWL_E_CORRUPT)
        return err;
    if (err == PAWL_OK && entity.tombstone && entity.deadline_ms == due->due_ms)
        return forget(b, &entity);
    bool right = err == PAWL_OK && entity.machine != NULL && pw_entity_due(&entity) == due->due_ms;
    bool covered = right && pw_holds_cover(&shard->engine->holds, shard->index, &entity);
    struct pw_update update = { .change = PW_UNCHANGED };
    if (right && !covered) {
        struct pw_input input = { .kind = PW_IN_DUE };
        err = pw_step(&entity, &input, b->now_ms, b->meta.lsn + 1, &update, NULL);
        assert(err == PAWL_OK ||
               err == PAWL_E_CORRUPT); /* damaged: its row goes, verify names it */
    }
    if (update.change ==
        PW_UNCHANGED) { /* of nothing any more, or held or at rest: a release puts it back */
        bool rests = err == PAWL_OK && entity.machine == NULL;
        b->changed = true;
        err = rests ? pw_rest_put(&shard->tables, b->txn, entity.machine_name) : PAWL_OK;
        return err == PAWL_OK ? pw_due_del(&shard->tables, b->txn, due->due_ms, due->row) : err;
    }
    err = put(b, &entity, &update);
    if (err != PAWL_OK)
        return err;
    note_result(b, &update, NULL);
    return PAWL_OK;
}

static pawl_err do_due(struct pw_batch *b)
{
    struct pw_writer *w = &b->shard->writer;
    struct pw_due due[PW_DUE_BATCH_MAX];
    size_t count = 0;
    uint64_t next_ms = PW_NEVER;
    if (w->next_due_ms > b->now_ms)
        return PAWL_OK;
    pawl_err err =
        pw_due_read(&b->shard->tables, b->txn, b->now_ms, due, PW_COUNT(due), &count, &next_ms);
    for (size_t i = 0; i < count && err == PAWL_OK; i++)
        err = do_due_row(b, &due[i]);
    b->more_due = next_ms <= b->now_ms;
    return err;
}

/* --- after the commit --------------------------------------------------------------------- */

static void settle_pools(struct pw_batch *b)
{
    struct pawl *engine = b->shard->engine;
    size_t counts[PW_MACHINES_MAX] = { 0 };
    size_t count = 0;
    for (size_t i = 0; i < b->results_count; i++) {
        const struct pw_settled *one = &b->results[i].settled;
        if (one->pool == NULL || (one->ended == NULL && !one->listed && !one->over))
            continue;
        b->settled[count++] = *one;
        for (size_t m = 0; m < engine->machines.count; m++)
            counts[m] += engine->pools[m] == one->pool ? 1 : 0;
    }
    for (size_t m = 0; m < engine->machines.count && count > 0; m++)
        if (counts[m] > 0)
            pw_pool_settle(engine->pools[m], b->settled, count);
}

static void count_result(struct pw_metrics *metrics, const struct pw_result *result)
{
    const struct pw_happening *happening = &result->happening;
    bool moved = happening->kind == PW_MOVED;
    pw_count(metrics, changes, 1);
    if (moved || happening->kind == PW_CREATED)
        pw_count(metrics, transitions, 1);
    if (moved && strcmp(happening->event, "timeout") == 0)
        pw_count(metrics, timeouts, 1);
    if (happening->kind == PW_RETRY)
        pw_count(metrics, retries, 1);
    if (result->parked)
        pw_count(metrics, parked, 1);
    if (result->removed)
        pw_count(metrics, deleted, 1);
}

static void count_results(const struct pw_batch *b)
{
    for (size_t i = 0; i < b->results_count; i++)
        if (b->results[i].changed)
            count_result(&b->shard->engine->metrics, &b->results[i]);
}

static void trace_lines(const struct pw_batch *b)
{
    const struct pw_trace *trace = &b->shard->engine->trace;
    for (size_t i = 0; i < b->results_count && trace->line != NULL; i++)
        if (b->results[i].happening.kind != PW_SILENT)
            trace->line(trace->arg, b->now_ms, b->results[i].machine, b->results[i].id,
                        &b->results[i].happening);
}

static struct pw_request *next_of(const struct pw_request *request)
{
    return (struct pw_request *)request->node.next;
}

static void answer_all(struct pw_batch *b)
{
    struct pw_metrics *metrics = &b->shard->engine->metrics;
    struct pw_request *next = NULL;
    for (struct pw_request *r = b->requests; r != NULL; r = next) {
        next = next_of(r);
        if (r->answer.repeated)
            pw_count(metrics, repeated, 1);
        if (r->err != PAWL_OK && !r->inside)
            pw_count(metrics, refused, 1);
        if (r->must && pawl_err_class_of(r->err) == PAWL_CLASS_TRANSIENT)
            pw_writer_keep(b->shard, r); /* effects of before wait to be sent: again later */
        else
            r->done(r);
    }
}

static void publish(struct pw_batch *b)
{
    struct pw_shard *shard = b->shard;
    struct pw_writer *w = &shard->writer;
    w->meta = b->meta;
    memcpy(w->told, b->told, sizeof(w->told));
    if (b->walk_wanted)
        w->sweep_ms = 0; /* walks are looked for at once */
    atomic_store(&shard->committed_lsn, b->meta.lsn);
    if (b->outbox_lsn > atomic_load(&shard->outbox_lsn))
        atomic_store(&shard->outbox_lsn, b->outbox_lsn);
    count_results(b);
    settle_pools(b);
    trace_lines(b);
    answer_all(b);
    if (b->outbox_lsn != 0)
        pw_poke(&shard->relay.wake);
}

/* --- when the store refuses --------------------------------------------------------------- */

void pw_writer_keep(struct pw_shard *shard, struct pw_request *request)
{
    struct pw_writer *w = &shard->writer;
    request->again_ms =
        pw_time_add(shard->engine->clock->monotonic_ms(shard->engine->clock), PW_FULL_RETRY_MS);
    request->node.next = NULL;
    if (w->kept == NULL)
        w->kept = &request->node;
    else
        w->kept_last->next = &request->node;
    w->kept_last = &request->node;
}

/* Nothing of the batch happened (or, unknown, perhaps all of it: then what is on disk decides, and
 * inside requests are checked against it when they are tried again). */
static void refuse_all(struct pw_batch *b, pawl_err err)
{
    struct pw_request *next = NULL;
    for (struct pw_request *r = b->requests; r != NULL; r = next) {
        next = next_of(r);
        r->err = err;
        if (r->hold_added &&
            err != PAWL_E_UNKNOWN) /* unknown: read from the store when it is open again */
            pw_holds_remove(&b->shard->engine->holds, b->shard->index, r->hold_kind, r->machine,
                            r->hold_name);
        r->answer = (pawl_answer){ .version = 0 };
        (void)pw_fail(&r->answer.why, err, "%s", pawl_err_text(err));
        if (r->must)
            pw_writer_keep(b->shard, r);
        else
            r->done(r); /* a caller, or a part that tries again by itself */
    }
}

static void fail_batch(struct pw_batch *b, pawl_err err)
{
    struct pw_shard *shard = b->shard;
    struct pw_writer *w = &shard->writer;
    const struct pw_log *log = &shard->engine->log;
    if (err == PAWL_E_FULL) {
        pw_count(&shard->engine->metrics, full, 1);
        if (!w->full_said)
            pw_log(log, PAWL_ERROR, "writer.full",
                   "shard=%u: no room in map or disk; changes are refused until there is",
                   shard->index);
        w->full_said = true;
    } else if (err != PAWL_E_NOMEM) {
        pw_log(log, PAWL_ERROR, "writer.commit", "shard=%u: %s; opening the store anew",
               shard->index, pawl_err_text(err));
        w->broken = true;
        err = PAWL_E_UNKNOWN;
    }
    w->refused_ms =
        pw_time_add(shard->engine->clock->monotonic_ms(shard->engine->clock), PW_FULL_RETRY_MS);
    refuse_all(b, err);
}

/* What that commit did, if it did it, is for the relay like any other. */
static void tell_relay(struct pw_shard *shard, const struct pw_left *left)
{
    if (left->meta.lsn > atomic_load(&shard->committed_lsn))
        atomic_store(&shard->committed_lsn, left->meta.lsn);
    if (left->outbox_lsn > atomic_load(&shard->outbox_lsn))
        atomic_store(&shard->outbox_lsn, left->outbox_lsn);
    pw_poke(&shard->relay.wake);
}

/* False: it cannot be opened now. */
static bool mend(struct pw_shard *shard)
{
    struct pw_writer *w = &shard->writer;
    struct pw_left left = { .is_new = false };
    pawl_why why = { "" };
    pawl_err err = ops_of(shard)->reopen(shard->tables.store, &why);
    pw_arena_reset(&w->arena);
    if (err == PAWL_OK)
        err = pw_shard_read(shard, &left);
    if (err != PAWL_OK) {
        pw_log(&shard->engine->log, PAWL_ERROR, "writer.reopen", "shard=%u: %s; again in a second",
               shard->index, why.text[0] != '\0' ? why.text : pawl_err_text(err));
        return false;
    }
    /* What was given out before and is not on disk is not given out again. */
    uint64_t lsn = w->meta.lsn > left.meta.lsn ? w->meta.lsn : left.meta.lsn;
    uint64_t next_row =
        w->meta.next_row > left.meta.next_row ? w->meta.next_row : left.meta.next_row;
    tell_relay(shard, &left);
    w->meta = left.meta;
    w->meta.lsn = lsn + PW_COUNT(((struct pw_batch *)0)->results);
    w->meta.next_row = next_row;
    w->broken = false;
    w->next_due_ms = 0;
    w->sweep_ms = 0; /* what that commit made ready, and nobody heard of */
    pw_count(&shard->engine->metrics, reopens, 1);
    pw_log(&shard->engine->log, PAWL_INFO, "writer.reopen", "shard=%u: the store is open again",
           shard->index);
    return true;
}

/* --- a turn ------------------------------------------------------------------------------- */

static uint64_t first_kept_ms(const struct pw_writer *w)
{
    return w->kept != NULL ? ((const struct pw_request *)w->kept)->again_ms : PW_NEVER;
}

/* Kept requests first, when it is time, then the inbox. */
static struct pw_request *gather(struct pw_shard *shard, uint64_t mono_ms)
{
    struct pw_writer *w = &shard->writer;
    struct pw_node *taken = NULL;
    struct pw_node **end = &taken;
    size_t count = 0;
    for (; first_kept_ms(w) <= mono_ms && (count < PW_BATCH_MAX / 2 || first_kept_ms(w) == 0);
         count++) {
        *end = w->kept;
        end = &w->kept->next;
        w->kept = w->kept->next;
    }
    assert(count < PW_BATCH_MAX); /* what was put back is less than a batch, and goes before what
                                     came after it */
    *end = pw_queue_take(&w->inbox, PW_BATCH_MAX - count);
    return (struct pw_request *)taken;
}

/* The rest of a batch that became too large in bytes goes back to the front of the next one. */
static void put_back(struct pw_shard *shard, struct pw_request *rest)
{
    struct pw_writer *w = &shard->writer;
    if (rest == NULL)
        return;
    struct pw_request *last = rest;
    for (last->again_ms = 0; next_of(last) != NULL; last->again_ms = 0)
        last = next_of(last);
    if (w->kept == NULL)
        w->kept_last = &last->node;
    last->node.next = w->kept;
    w->kept = &rest->node;
}

/* A full outbox refuses commands; what is in progress goes on. */
static pawl_err look_at_outbox(struct pw_batch *b)
{
    struct pw_shard *shard = b->shard;
    uint64_t rows = 0;
    if (shard->journal == NULL)
        return PAWL_OK;
    pawl_err err = ops_of(shard)->count(b->txn, PW_OUTBOX, &rows);
    b->outbox_full = rows >= shard->engine->outbox_rows_max;
    return err;
}

static pawl_err apply_all(struct pw_batch *b)
{
    struct pw_shard *shard = b->shard;
    unsigned fill_percent = ops_of(shard)->fill_percent(shard->tables.store);
    pawl_err err = look_at_outbox(b);
    for (struct pw_request *r = b->requests; r != NULL && err == PAWL_OK; r = next_of(r)) {
        err = apply(b, r, fill_percent);
        if (b->bytes > PW_BATCH_BYTES_MAX && err == PAWL_OK) {
            put_back(shard, next_of(r));
            r->node.next = NULL;
        }
    }
    if (err == PAWL_OK)
        err = do_due(b);
    return err;
}

static pawl_err trim(struct pw_batch *b)
{
    struct pw_shard *shard = b->shard;
    uint64_t upto = atomic_load(&shard->trim_lsn);
    bool left = false;
    if (upto <= b->meta.sent_lsn)
        return PAWL_OK;
    pawl_err err = pw_outbox_trim(&shard->tables, b->txn, upto, PW_BATCH_MAX, &left);
    if (err == PAWL_OK && !left)
        b->meta.sent_lsn = upto;
    b->changed = true;
    return err;
}

static pawl_err commit(struct pw_batch *b)
{
    struct pw_shard *shard = b->shard;
    struct pawl *engine = shard->engine;
    b->meta.time_ms = b->now_ms;
    b->meta.wall_ms = engine->clock->wall_ms(engine->clock);
    pw_keeper_position(shard, &b->meta);
    if ((uint32_t)b->meta.lsn >= LSN_COUNT_MAX)
        b->meta.lsn = ((b->meta.lsn >> 32) + 1) << 32;
    pawl_err err = pw_meta_save(&shard->tables, b->txn, &b->meta);
    if (err != PAWL_OK) {
        ops_of(shard)->abort(b->txn);
        return err;
    }
    pw_count(&engine->metrics, commits, 1);
    return ops_of(shard)->commit(b->txn);
}

static uint64_t mono_ms_of(const struct pw_shard *shard)
{
    return shard->engine->clock->monotonic_ms(shard->engine->clock);
}

static void run_batch(struct pw_batch *b)
{
    struct pw_shard *shard = b->shard;
    struct pw_writer *w = &shard->writer;
    pawl_err err = ops_of(shard)->begin(shard->tables.store, true, &b->txn);
    if (err != PAWL_OK) {
        fail_batch(b, err);
        return;
    }
    err = apply_all(b);
    if (err == PAWL_OK)
        err = trim(b);
    if (err != PAWL_OK || !b->changed)
        ops_of(shard)->abort(b->txn);
    else
        err = commit(b);
    if (err != PAWL_OK) {
        fail_batch(b, err);
        return;
    }
    if (w->full_said && b->changed &&
        mono_ms_of(shard) > pw_time_add(w->refused_ms, PW_FULL_RETRY_MS)) {
        pw_log(&shard->engine->log, PAWL_INFO, "writer.full", "shard=%u: there is room again",
               shard->index);
        w->full_said = false;
    }
    w->next_due_ms = b->more_due ? 0 : w->next_due_ms;
    publish(b);
}

/* When the first due row stands, after a batch that may have moved it. */
static void look_at_due(struct pw_shard *shard)
{
    struct pw_writer *w = &shard->writer;
    struct pw_txn *txn = NULL;
    size_t count = 0;
    struct pw_due due;
    uint64_t next_ms = PW_NEVER;
    pawl_err err = ops_of(shard)->begin(shard->tables.store, false, &txn);
    if (err == PAWL_OK) {
        err = pw_due_read(&shard->tables, txn, 0, &due, 1, &count, &next_ms);
        ops_of(shard)->abort(txn);
    }
    w->next_due_ms = err == PAWL_OK ? next_ms : pw_time_add(pw_shard_now(shard), PW_FULL_RETRY_MS);
}

/* Attempts that gave no answer in their time are retries. The first shard's writer looks after all
 * pools. */
static void on_no_answer(struct pw_request *request)
{
    pw_free(request);
}

static void give_up_attempt(struct pawl *engine, const struct pw_listing *task,
                            struct pw_request *request)
{
    assert(request != NULL);
    request->kind = PW_DO_STEP;
    request->row = task->row;
    request->must = true;
    request->done = on_no_answer;
    request->input = (struct pw_input){
        .kind = PW_IN_OUTCOME,
        .outcome = PW_RETRY_LATER,
        .why = "no answer",
        .epoch = task->epoch,
        .attempt = task->attempt,
        .no_jitter = engine->no_jitter,
    };
    pw_count(&engine->metrics, no_answer, 1);
    pw_writer_push(&engine->shards[task->shard], request);
}

/* What an attempt's end needs is there before it is told: it is told once. Returns when the pool's
 * next one is over. */
static uint64_t expire_some(struct pawl *engine, struct pw_pool *pool, uint64_t mono_ms)
{
    struct pw_expired expired[64];
    struct pw_request *requests[PW_COUNT(expired)];
    size_t room = 0;
    uint64_t next_ms = PW_NEVER;
    (void)pw_pool_expire(pool, mono_ms, NULL, 0, &next_ms); /* a look, without room for any */
    if (next_ms > mono_ms)
        return next_ms;
    while (room < PW_COUNT(expired) &&
           (requests[room] = pw_alloc(sizeof(struct pw_request))) != NULL)
        room++;
    size_t count = pw_pool_expire(pool, mono_ms, expired, room, &next_ms);
    for (size_t e = 0; e < count; e++)
        give_up_attempt(engine, &expired[e].listing, requests[e]);
    for (size_t e = count; e < room; e++)
        pw_free(requests[e]);
    return room > 0 ? next_ms : pw_time_add(mono_ms, PW_FULL_RETRY_MS);
}

static uint64_t expire_attempts(struct pawl *engine, uint64_t mono_ms)
{
    uint64_t first_ms = PW_NEVER;
    for (size_t i = 0; i < engine->machines.count; i++) {
        uint64_t next_ms = expire_some(engine, engine->pools[i], mono_ms);
        first_ms = next_ms < first_ms ? next_ms : first_ms;
    }
    return first_ms;
}

static uint64_t sooner(uint64_t a_ms, uint64_t b_ms)
{
    return a_ms < b_ms ? a_ms : b_ms;
}

static uint64_t until(uint64_t at_ms, uint64_t now_ms)
{
    if (at_ms == PW_NEVER)
        return PW_NEVER;
    return at_ms > now_ms ? at_ms - now_ms : 0;
}

/* Everything that is done beside batches, each when its time has come. Returns when the first of
 * them wants to go on. */
static uint64_t tend(struct pw_shard *shard, uint64_t mono_ms)
{
    struct pw_writer *w = &shard->writer;
    uint64_t next_ms = PW_NEVER;
    if (w->tend_ms <= mono_ms)
        w->tend_ms = pw_time_add(mono_ms, ops_of(shard)->tend(shard->tables.store, mono_ms));
    if (shard->index == 0)
        next_ms = until(expire_attempts(shard->engine, mono_ms), mono_ms);
    bool list = atomic_exchange(&shard->list_wanted, false);
    if (list)
        pw_walk_list(shard);
    if (w->walk.kind == PW_WALK_NONE && w->sweep_ms <= mono_ms)
        pw_walk_next(shard, mono_ms);
    if (w->walk.kind != PW_WALK_NONE) {
        pw_walk_turn(shard);
        return 0;
    }
    next_ms = sooner(next_ms, until(w->tend_ms, mono_ms));
    return sooner(next_ms, until(w->sweep_ms, mono_ms));
}

/* After how long there is a timer to fire, or something to trim. */
static uint64_t own_work(struct pw_shard *shard, uint64_t mono_ms)
{
    const struct pw_writer *w = &shard->writer;
    bool trims = atomic_load(&shard->trim_lsn) > w->meta.sent_lsn;
    uint64_t work_ms = trims ? 0 : until(w->next_due_ms, pw_shard_now(shard));
    uint64_t refused_ms = until(w->refused_ms, mono_ms);
    return work_ms > refused_ms ? work_ms : refused_ms;
}

uint64_t pw_writer_turn(struct pw_shard *shard)
{
    struct pw_writer *w = &shard->writer;
    struct pawl *engine = shard->engine;
    uint64_t mono_ms = engine->clock->monotonic_ms(engine->clock);
    struct pw_batch *b = w->batch;
    uint64_t now_ms = pw_shard_now(shard);
    b->shard = shard;
    bool open = !w->broken || mend(shard);
    b->requests = gather(shard, mono_ms);
    if (!open) {
        refuse_all(b, PAWL_E_IO); /* nobody waits for a disk that is away */
        return PW_FULL_RETRY_MS;
    }
    bool due = w->next_due_ms <= now_ms;
    bool trims = atomic_load(&shard->trim_lsn) > w->meta.sent_lsn;
    bool waits = w->refused_ms > mono_ms; /* no room: timers and trims wait, too */
    if (b->requests != NULL || ((due || trims) && !waits)) {
        pw_arena_reset(&w->arena);
        b->now_ms = now_ms;
        b->meta = w->meta;
        memcpy(b->told, w->told, sizeof(b->told));
        b->results_count = 0;
        b->outbox_lsn = 0;
        b->bytes = 0;
        b->changed = b->more_due = b->walk_wanted = b->outbox_full = false;
        run_batch(b);
        if (!w->broken && !b->more_due)
            look_at_due(shard);
    }
    uint64_t next_ms = tend(shard, mono_ms);
    if (w->broken)
        return PW_FULL_RETRY_MS;
    if (b->requests != NULL)
        return 0; /* more may have gathered */
    next_ms = sooner(next_ms, until(first_kept_ms(w), mono_ms));
    return sooner(next_ms, own_work(shard, mono_ms));
}

/* --- life --------------------------------------------------------------------------------- */

pawl_err pw_told_load_all(struct pw_shard *shard, struct pw_txn *txn)
{
    struct pw_writer *w = &shard->writer;
    for (uint32_t i = 0; i < shard->engine->shards_count; i++) {
        struct pw_cursor *told = &w->told[i];
        pawl_err err = pw_told_load(&shard->tables, txn, i, &told->acted_lsn, &told->acted_n);
        if (err != PAWL_OK)
            return err;
        told->answered_lsn = told->acted_lsn;
        told->answered_n = told->acted_n;
    }
    return PAWL_OK;
}

pawl_err pw_writer_init(struct pw_shard *shard, uint64_t seed)
{
    struct pw_writer *w = &shard->writer;
    pw_queue_init(&w->inbox, PW_INBOX_MAX);
    w->inbox.bytes_max = PW_INBOX_BYTES_MAX;
    pw_wake_init(&w->wake);
    pw_arena_init(&w->arena, (size_t)1024 * 1024);
    w->rng.state = seed + shard->index;
    w->batch = pw_alloc(sizeof(*w->batch));
    return w->batch != NULL ? PAWL_OK : PAWL_E_NOMEM;
}

static void give_back(struct pw_node *list)
{
    struct pw_node *next = NULL;
    for (; list != NULL; list = next) {
        struct pw_request *request = (struct pw_request *)list;
        next = list->next;
        request->err =
            pw_fail(&request->answer.why, PAWL_E_CLOSED, "%s", pawl_err_text(PAWL_E_CLOSED));
        if (request->claim != NULL)
            pw_pool_drop(request->pool, request->claim);
        request->done(request);
    }
}

void pw_writer_give_up(struct pw_shard *shard)
{
    struct pw_node *kept = shard->writer.kept;
    shard->writer.kept = NULL;
    give_back(kept);
    give_back(pw_queue_take(&shard->writer.inbox, SIZE_MAX));
}

void pw_writer_fini(struct pw_shard *shard)
{
    struct pw_writer *w = &shard->writer;
    pw_writer_give_up(shard);
    pw_queue_fini(&w->inbox);
    pw_wake_fini(&w->wake);
    pw_arena_fini(&w->arena);
    pw_free(w->batch);
}

pawl_err pw_writer_submit(struct pw_shard *shard, struct pw_request *request, bool wait)
{
    struct pw_queue *inbox = &shard->writer.inbox;
    assert(!request->inside);
    enum pw_pushed pushed =
        wait ? pw_queue_push_wait(inbox, &request->node) : pw_queue_push(inbox, &request->node);
    if (pushed == PW_PUSH_CLOSED)
        return PAWL_E_CLOSED;
    if (pushed == PW_PUSH_FULL)
        return PAWL_E_BUSY;
    if (pushed == PW_PUSHED_FIRST)
        pw_poke(&shard->writer.wake);
    return PAWL_OK;
}

void pw_writer_push(struct pw_shard *shard, struct pw_request *request)
{
    request->inside = true;
    if (pw_queue_push_always(&shard->writer.inbox, &request->node) == PW_PUSHED_FIRST)
        pw_poke(&shard->writer.wake);
}

void pw_writer_seal(struct pw_shard *shard)
{
    struct pw_txn *txn = NULL;
    struct pw_meta meta = shard->writer.meta;
    struct pawl *engine = shard->engine;
    if (shard->writer.broken || shard->writer.kept != NULL)
        return; /* the next start finds it as after a crash */
    meta.clean = true;
    pw_keeper_position(shard, &meta);
    meta.time_ms = pw_shard_now(shard);
    meta.wall_ms = engine->clock->wall_ms(engine->clock);
    pawl_err err = ops_of(shard)->begin(shard->tables.store, true, &txn);
    if (err == PAWL_OK) {
        err = pw_meta_save(&shard->tables, txn, &meta);
        if (err == PAWL_OK)
            err = ops_of(shard)->commit(txn);
        else
            ops_of(shard)->abort(txn);
    }
    if (err != PAWL_OK)
        pw_log(&engine->log, PAWL_WARN, "writer.seal",
               "shard=%u: %s; the next start takes this for a crash", shard->index,
               pawl_err_text(err));
}
