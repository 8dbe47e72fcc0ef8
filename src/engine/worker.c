/* SPDX-License-Identifier: Apache-2.0
 *
 * A worker's turn: take a claim, look at the entity again, run the user's work. No lock is held
 * meanwhile. */
#include "base/base.h"
#include "base/limits.h"
#include "core/machine.h"
#include "engine/worker.h"
#include "engine/writer.h"

/* --- a start on probation ----------------------------------------------------------------- */

struct begin_request {
    struct pw_request base; /* first */
    struct pw_latch latch;
};

static void on_begun(struct pw_request *request)
{
    pw_latch_open(&((struct begin_request *)request)->latch);
}

/* Saves the start before the work runs, so that it is known who ran when the process died. The
 * thread waits: so no more are begun than can run. PAWL_E_STALE: the task is over, or parked now.
 * Transient: there is no room now. */
static pawl_err begin(struct pw_pool *pool, const struct pw_listing *task)
{
    struct pawl *engine = pw_pool_engine(pool);
    struct begin_request request = {
        .base = {
            .kind = PW_DO_STEP, .row = task->row, .done = on_begun,
            .input = { .kind = PW_IN_BEGIN, .epoch = task->epoch, .attempt = task->attempt },
        },
    };
    pw_count(&engine->metrics, crash_starts, 1);
    pw_latch_init(&request.latch);
    pw_writer_push(&engine->shards[task->shard], &request.base);
    pw_latch_wait(&request.latch, engine);
    pw_latch_fini(&request.latch);
    return request.base.parked ? PAWL_E_STALE : request.base.err;
}

/* --- the check before the work ------------------------------------------------------------ */

static pawl_err load(struct pawl_task *task, uint64_t row)
{
    const struct pw_tables *tables = &task->shard->tables;
    struct pw_txn *txn = NULL;
    pawl_err err = tables->store->ops->begin(tables->store, false, &txn);
    if (err != PAWL_OK)
        return err;
    err = pw_tables_load(tables, txn, row, &task->arena, &task->entity);
    /* The value's bytes were copied by unpacking; the transaction ends before the work begins. */
    tables->store->ops->abort(txn);
    return err;
}

/* True: still this task, and nothing holds it. Else it is counted by reason. */
static bool check(struct pawl_task *task, pawl_err loaded)
{
    struct pw_metrics *metrics = &task->engine->metrics;
    const struct pw_listing *listing = pw_claim_task(task->claim);
    const struct pw_entity *entity = &task->entity;
    if (loaded == PAWL_E_NOT_FOUND || atomic_load(&task->shard->lost))
        pw_count(metrics, skipped_gone, 1);
    else if (loaded != PAWL_OK)
        pw_log(&task->engine->log, PAWL_WARN, "worker.load",
               "shard=%u row=%llu: %s, left to the safety net", listing->shard,
               (unsigned long long)listing->row, pawl_err_text(loaded));
    else if (entity->held || pw_holds_cover(&task->engine->holds, listing->shard, entity))
        pw_count(metrics, skipped_held, 1);
    else if (entity->epoch == listing->epoch && entity->attempt != listing->attempt)
        pw_count(metrics, skipped_attempt, 1);
    else if (entity->epoch != listing->epoch || !pw_entity_ready(entity))
        pw_count(metrics, skipped_moved, 1);
    else
        return true;
    return false;
}

static bool name_task(struct pawl_task *task)
{
    const struct pw_entity *entity = &task->entity;
    size_t size = strlen(entity->machine_name) + 1 + strlen(entity->id) + 1 + 20 + 1;
    task->key = pw_arena_alloc(&task->arena, size);
    if (task->key == NULL)
        return false;
    pw_print(task->key, size, "%s/%s@%llu", entity->machine_name, entity->id,
             (unsigned long long)entity->epoch);
    return true;
}

static void run(struct pw_pool *pool, struct pawl_task *task)
{
    struct pawl *engine = task->engine;
    const pawl_state *state = pw_entity_state(&task->entity);
    bool kept = false;
    task->kept = &kept;
    pw_count(&engine->metrics, runs, 1);
    uint64_t now_ms = engine->clock->monotonic_ms(engine->clock);
    pw_pool_running(pool, task->claim, pw_time_add(now_ms, pw_attempt_ms(state)));
    pawl_outcome outcome = state->work(task);
    if (!kept) /* else it is not ours any more, and may be freed */
        pw_task_finish(task, &outcome);
}

/* A task that was passed over because it is held may have been released between the look and the
 * drop of its claim; the release found the claim and listed nothing. So it is looked at once more:
 * from here a release finds no claim. */
static void look_again(struct pw_pool *pool, struct pawl_task *task,
                       const struct pw_listing *listing)
{
    const struct pw_entity *entity = &task->entity;
    pawl_err err = load(task, listing->row);
    bool same =
        err == PAWL_OK && entity->epoch == listing->epoch && entity->attempt == listing->attempt;
    if (!same || !pw_entity_ready(entity) ||
        pw_holds_cover(&task->engine->holds, listing->shard, entity))
        return;
    struct pw_settled settled = { .pool = pool, .listed = true, .listing = *listing };
    settled.listing.key = entity->key;
    pw_pool_settle(pool, &settled, 1);
}

void pw_worker_run(struct pw_pool *pool, struct pw_claim *claim)
{
    const struct pw_listing listing = *pw_claim_task(claim);
    struct pawl_task *task = pw_task_make(pool, claim);
    bool ours = task != NULL && check(task, load(task, listing.row)) && name_task(task);
    pawl_err begun = ours && listing.probation ? begin(pool, &listing) : PAWL_OK;
    if (ours && begun == PAWL_OK) {
        run(pool, task);
        return;
    }
    if (pawl_err_class_of(begun) == PAWL_CLASS_TRANSIENT)
        pw_pool_put_back(pool, claim);
    else
        pw_pool_drop(pool, claim);
    if (task != NULL && !ours)
        look_again(pool, task, &listing);
    pw_task_free(task);
}

bool pw_worker_turn(struct pw_pool *pool)
{
    struct pw_claim *claim = pw_pool_take(pool, false);
    if (claim == NULL)
        return false;
    pw_worker_run(pool, claim);
    return true;
}
