/* SPDX-License-Identifier: Apache-2.0
 *
 * A worker's turn: take a claim, look at the entity again, run the user's work. No lock is held meanwhile. */
#include "base/base.h"
#include "base/limits.h"
#include "core/machine.h"
#include "engine/worker.h"
#include "engine/writer.h"

/* --- a start on probation ------------------------------------------------------------------------------------------------ */

static void on_begun(struct pw_request *request)
{
    pw_free(request); /* the writer listed the task, or ended the claim */
}

static void begin(struct pw_pool *pool, struct pw_claim *claim)
{
    const struct pw_listing *task = pw_claim_task(claim);
    struct pawl *engine = pw_pool_engine(pool);
    struct pw_request *request = pw_alloc(sizeof(*request));
    if (request == NULL) { /* the safety net lists it again */
        pw_pool_drop(pool, claim);
        return;
    }
    request->kind = PW_DO_STEP;
    request->row = task->row;
    request->must = true;
    request->claim = claim;
    request->pool = pool;
    request->done = on_begun;
    request->input = (struct pw_input){ .kind = PW_IN_BEGIN, .epoch = task->epoch, .attempt = task->attempt };
    pw_count(&engine->metrics, crash_starts, 1);
    struct pw_shard *shard = &engine->shards[task->shard];
    pw_pool_begins(pool, claim);
    pw_writer_push(shard, request);
}

/* --- the check before the work ------------------------------------------------------------------------------------------------ */

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
    if (loaded == PAWL_E_NOT_FOUND)
        pw_count(metrics, skipped_gone, 1);
    else if (loaded != PAWL_OK)
        pw_log(&task->engine->log, PAWL_WARN, "worker.load", "shard=%u row=%llu: %s, left to the safety net", listing->shard,
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
    pw_print(task->key, size, "%s/%s@%llu", entity->machine_name, entity->id, (unsigned long long)entity->epoch);
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

void pw_worker_run(struct pw_pool *pool, struct pw_claim *claim)
{
    struct pawl_task *task = pw_task_make(pool, claim);
    bool ours = task != NULL && check(task, load(task, pw_claim_task(claim)->row)) && name_task(task);
    if (ours && !pw_claim_begins(claim)) {
        run(pool, task);
        return;
    }
    if (ours) /* what is held or stale does not begin: it would count as a death that it had no part in */
        begin(pool, claim);
    else
        pw_pool_skip(pool, claim);
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
