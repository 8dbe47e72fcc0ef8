/* SPDX-License-Identifier: Apache-2.0
 *
 * The task in the user's hands: what it tells, what it collects, and how one that was kept open
 * ends. */
#include <assert.h>

#include "base/base.h"
#include "base/limits.h"
#include "core/names.h"
#include "engine/worker.h"
#include "engine/writer.h"

#define TASK_CHUNK ((size_t)2048) /* an entity with small data */

/* --- kept tasks: any thread may complete one while the engine closes ---------------------- */

static pthread_mutex_t kept_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t kept_changed = PTHREAD_COND_INITIALIZER;
static struct pawl_task *kept_tasks; /* of all engines of the process */
static struct pawl_task *pinned;     /* those whose engine must not close right now */

static void push(struct pawl_task **list, struct pawl_task *task)
{
    task->previous = NULL;
    task->next = *list;
    if (*list != NULL)
        (*list)->previous = task;
    *list = task;
}

static void unlink_from(struct pawl_task **list, struct pawl_task *task)
{
    if (task->previous != NULL)
        task->previous->next = task->next;
    else
        *list = task->next;
    if (task->next != NULL)
        task->next->previous = task->previous;
}

/* True: the engine stays until unpin. */
static bool pin(struct pawl_task *task)
{
    pthread_mutex_lock(&kept_lock);
    bool alive = task->engine != NULL;
    if (alive) {
        unlink_from(&kept_tasks, task);
        push(&pinned, task);
    }
    pthread_mutex_unlock(&kept_lock);
    return alive;
}

static void unpin(struct pawl_task *task, bool keep)
{
    pthread_mutex_lock(&kept_lock);
    unlink_from(&pinned, task);
    if (keep)
        push(&kept_tasks, task);
    pthread_cond_broadcast(&kept_changed);
    pthread_mutex_unlock(&kept_lock);
}

static struct pawl_task *first_of(struct pawl_task *list, const struct pawl *engine)
{
    while (list != NULL && list->engine != engine)
        list = list->next;
    return list;
}

static struct pawl_task *orphan_one(struct pawl *engine, struct pw_claim **claim,
                                    struct pw_pool **pool)
{
    pthread_mutex_lock(&kept_lock);
    while (first_of(pinned, engine) != NULL)
        pthread_cond_wait(&kept_changed, &kept_lock);
    struct pawl_task *task = first_of(kept_tasks, engine);
    if (task != NULL) {
        unlink_from(&kept_tasks, task);
        task->engine = NULL;
        *claim = task->claim;
        *pool = task->pool;
    }
    pthread_mutex_unlock(&kept_lock);
    return task;
}

void pw_tasks_orphan(struct pawl *engine)
{
    struct pw_claim *claim = NULL;
    struct pw_pool *pool = NULL;
    while (orphan_one(engine, &claim, &pool) != NULL)
        pw_pool_drop(pool, claim);
}

pawl_outcome pawl_later(pawl_task *task)
{
    pawl_outcome outcome = { .kind = PW_LATER };
    assert(!task->is_kept);
    *task->kept = true;
    task->kept = NULL;
    task->is_kept = true;
    pw_pool_later(task->pool, task->claim);
    pthread_mutex_lock(&kept_lock);
    push(&kept_tasks, task);
    pthread_mutex_unlock(&kept_lock);
    return outcome;
}

/* The task is finished, and so perhaps freed, while its engine is still pinned: by a stand-in that
 * holds its place. */
pawl_err pawl_complete(pawl_task *task, pawl_outcome outcome)
{
    if (!pin(task)) {
        pw_task_free(task);
        return PAWL_E_CLOSED;
    }
    struct pawl_task stand_in = { .engine = task->engine };
    pthread_mutex_lock(&kept_lock);
    unlink_from(&pinned, task);
    push(&pinned, &stand_in);
    pthread_mutex_unlock(&kept_lock);
    pw_task_finish(task, &outcome);
    unpin(&stand_in, false);
    return PAWL_OK;
}

/* --- life --------------------------------------------------------------------------------- */

struct pawl_task *pw_task_make(struct pw_pool *pool, struct pw_claim *claim)
{
    struct pawl_task *task = pw_alloc(sizeof(*task));
    if (task == NULL)
        return NULL;
    task->engine = pw_pool_engine(pool);
    task->pool = pool;
    task->shard = &task->engine->shards[pw_claim_task(claim)->shard];
    task->claim = claim;
    pw_arena_init(&task->arena, TASK_CHUNK);
    return task;
}

void pw_task_free(struct pawl_task *task)
{
    if (task == NULL)
        return;
    pw_arena_fini(&task->arena);
    pw_free(task);
}

static void on_done(struct pw_request *request)
{
    struct pawl_task *task = (struct pawl_task *)request;
    if (request->err == PAWL_E_STALE)
        pw_count(&task->engine->metrics, refused_stale, 1);
    pw_task_free(task);
}

static void set_input(struct pawl_task *task, struct pw_input *input)
{
    const pawl_outcome *outcome = &task->outcome;
    input->kind = PW_IN_OUTCOME;
    input->outcome = (enum pw_outcome_kind)outcome->kind;
    input->event = outcome->event;
    input->delay_ms = outcome->delay_ms;
    input->why = outcome->why;
    input->epoch = task->entity.epoch;
    input->attempt = task->entity.attempt;
    input->no_jitter = task->engine->no_jitter;
    if (outcome->kind == PW_RETRY_LATER || outcome->kind == PW_RETRY_AFTER)
        return; /* as if it had not run */
    input->effects = task->effects;
    input->effects_count = task->effects_count;
    input->has_data = task->has_saved;
    input->data = task->saved;
}

void pw_task_finish(struct pawl_task *task, const pawl_outcome *outcome)
{
    task->outcome = task->failed == PAWL_OK ? *outcome : pawl_retry(task->why.text);
    struct pw_request *request = &task->request;
    request->kind = PW_DO_STEP;
    request->row = task->entity.row;
    request->must = true;
    request->claim = task->claim;
    request->pool = task->pool;
    request->done = on_done;
    set_input(task, &request->input);
    pw_pool_ended(task->pool, task->claim);
    pw_writer_push(task->shard, request);
}

/* --- what it tells ------------------------------------------------------------------------ */

const char *pawl_task_machine(const pawl_task *task)
{
    return task->entity.machine_name;
}

const char *pawl_task_id(const pawl_task *task)
{
    return task->entity.id;
}

const char *pawl_task_state(const pawl_task *task)
{
    return task->entity.state_name;
}

const char *pawl_task_key(const pawl_task *task)
{
    return task->key;
}

pawl_bytes pawl_task_data(const pawl_task *task)
{
    return task->has_saved ? task->saved : task->entity.data;
}

const char *pawl_task_fairness(const pawl_task *task)
{
    return task->entity.key;
}

const char *pawl_task_error(const pawl_task *task)
{
    return task->entity.error;
}

const char *pawl_task_trace(const pawl_task *task)
{
    return task->entity.trace;
}

uint32_t pawl_task_attempt(const pawl_task *task)
{
    return task->entity.attempt;
}

uint64_t pawl_task_epoch(const pawl_task *task)
{
    return task->entity.epoch;
}

void *pawl_task_env(const pawl_task *task)
{
    return pw_pool_unit(task->pool)->env;
}

bool pawl_task_cancelled(const pawl_task *task)
{
    struct pawl_task *mine =
        (struct pawl_task *)(uintptr_t)task; /* only its place in the list changes */
    if (task->is_kept && !pin(mine))
        return true;
    bool cancelled = pw_pool_cancelled(task->pool, task->claim);
    if (task->is_kept)
        unpin(mine, true);
    return cancelled;
}

/* --- what it collects --------------------------------------------------------------------- */

static void fail(struct pawl_task *task, pawl_err err, const char *what, const pawl_why *why)
{
    if (task->failed != PAWL_OK)
        return;
    task->failed = err;
    pw_print(task->why.text, sizeof(task->why.text), "%s: %.200s", what,
             why != NULL ? why->text : pawl_err_text(err));
}

static bool copy(struct pawl_task *task, const char *what, pawl_bytes data, pawl_bytes *to)
{
    pawl_why why = { "" };
    if (data.size > PW_DATA_MAX) {
        (void)pw_fail(&why, PAWL_E_LIMIT, "%zu bytes of data; at most %u", data.size, PW_DATA_MAX);
        fail(task, PAWL_E_LIMIT, what, &why);
        return false;
    }
    const char *memory = pw_arena_text(&task->arena, data);
    if (memory == NULL)
        fail(task, PAWL_E_NOMEM, what, NULL);
    *to = (pawl_bytes){ memory, data.size };
    return memory != NULL;
}

static const char *copy_text(struct pawl_task *task, const char *text)
{
    const char *memory = pw_arena_text(&task->arena, pawl_str(text != NULL ? text : ""));
    if (memory == NULL)
        fail(task, PAWL_E_NOMEM, "effect", NULL);
    return memory != NULL ? memory : "";
}

void pawl_task_save(pawl_task *task, pawl_bytes data)
{
    pawl_bytes saved = { NULL, 0 };
    if (!copy(task, "save", data, &saved))
        return;
    task->saved = saved;
    task->has_saved = true;
}

/* A checked effect; copies what it points to. */
static void add_effect(struct pawl_task *task, const char *what, const struct pw_effect *effect)
{
    pawl_why why = { "" };
    if (task->effects_count >= PW_EFFECTS_MAX ||
        task->effects_size + effect->data.size > PW_DATA_MAX) {
        (void)pw_fail(&why, PAWL_E_LIMIT, "more than %d effects or %u bytes of them in one outcome",
                      PW_EFFECTS_MAX, PW_DATA_MAX);
        fail(task, PAWL_E_LIMIT, what, &why);
        return;
    }
    if (task->effects == NULL)
        task->effects = pw_arena_alloc(&task->arena, PW_EFFECTS_MAX * sizeof(*task->effects));
    if (task->effects == NULL) {
        fail(task, PAWL_E_NOMEM, what, NULL);
        return;
    }
    struct pw_effect kept = *effect;
    if (!copy(task, what, effect->data, &kept.data))
        return;
    kept.name = copy_text(task, effect->name);
    kept.machine = copy_text(task, effect->machine);
    kept.id = copy_text(task, effect->id);
    kept.key = copy_text(task, effect->key);
    kept.trace = copy_text(task, effect->trace);
    task->effects[task->effects_count++] = kept;
    task->effects_size += kept.data.size;
}

void pawl_task_emit(pawl_task *task, const char *name, pawl_bytes data)
{
    pawl_why why = { "" };
    pawl_err err = pw_check_name("message name", name, &why);
    if (err != PAWL_OK) {
        fail(task, err, "emit", &why);
        return;
    }
    struct pw_effect effect = {
        .kind = PW_EMIT, .name = name, .trace = task->entity.trace, .data = data
    };
    add_effect(task, "emit", &effect);
}

static bool check_target(struct pawl_task *task, const char *machine, const char *id)
{
    pawl_why why = { "" };
    pawl_err err = pw_check_name("machine", machine, &why);
    if (err == PAWL_OK)
        err = pw_check_id("id", id, &why);
    if (err != PAWL_OK)
        fail(task, err, "tell", &why);
    return err == PAWL_OK;
}

void pawl_task_tell(pawl_task *task, const char *machine, const char *id, const char *event,
                    pawl_bytes data)
{
    pawl_why why = { "" };
    if (!check_target(task, machine, id))
        return;
    pawl_err err = pw_check_name("event", event, &why);
    if (err != PAWL_OK) {
        fail(task, err, "tell", &why);
        return;
    }
    struct pw_effect effect = {
        .kind = PW_TELL,
        .name = event,
        .machine = machine,
        .id = id,
        .trace = task->entity.trace,
        .data = data,
    };
    add_effect(task, "tell", &effect);
}

void pawl_task_tell_new(pawl_task *task, const char *machine, const char *id,
                        const pawl_new *options)
{
    static const pawl_new defaults = { .key = NULL };
    const pawl_new *use = options != NULL ? options : &defaults;
    pawl_why why = { "" };
    if (!check_target(task, machine, id))
        return;
    pawl_err err = pw_check_optional_id("key", use->key, &why);
    if (err == PAWL_OK)
        err = pw_check_trace(use->trace, &why);
    if (err != PAWL_OK) {
        fail(task, err, "tell", &why);
        return;
    }
    struct pw_effect effect = {
        .kind = PW_TELL_NEW,
        .machine = machine,
        .id = id,
        .key = use->key,
        .delay_ms = use->delay_ms,
        .data = use->data,
        .trace = use->trace != NULL ? use->trace : task->entity.trace,
    };
    add_effect(task, "tell", &effect);
}

/* --- memo --------------------------------------------------------------------------------- */

struct memo_request {
    struct pw_request base; /* first */
    struct pw_latch latch;
    struct pawl_task *task;
    pawl_bytes kept;
};

static void on_memo(struct pw_request *request)
{
    struct memo_request *memo = (struct memo_request *)request;
    const char *copy_of =
        request->err == PAWL_OK ? pw_arena_text(&memo->task->arena, request->memo) : NULL;
    if (request->err == PAWL_OK && copy_of == NULL)
        request->err = PAWL_E_NOMEM;
    memo->kept = (pawl_bytes){ copy_of, request->memo.size };
    pw_latch_open(&memo->latch);
}

static const struct pw_memo *known_memo(const struct pawl_task *task, const char *name)
{
    for (size_t i = 0; i < task->entity.memos_count; i++)
        if (strcmp(task->entity.memos[i].name, name) == 0)
            return &task->entity.memos[i];
    return NULL;
}

static pawl_err commit_memo(pawl_task *task, const char *name, pawl_bytes value, pawl_bytes *kept)
{
    struct memo_request memo = {
        .base = {
            .kind = PW_DO_STEP, .row = task->entity.row, .done = on_memo,
            .input = { .kind = PW_IN_MEMO, .name = name, .data = value, .epoch = task->entity.epoch, .attempt = task->entity.attempt },
        },
        .task = task,
    };
    pw_latch_init(&memo.latch);
    pw_writer_push(task->shard, &memo.base);
    pw_latch_wait(&memo.latch, task->engine);
    pw_latch_fini(&memo.latch);
    pawl_err err = memo.base.err;
    if (err == PAWL_OK) /* every later attempt, anywhere, is to see it */
        err = pw_wait_journalled(task->shard, memo.base.answer.version, task->pool, task->claim);
    if (err == PAWL_OK)
        *kept = memo.kept;
    return err;
}

pawl_err pawl_task_memo(pawl_task *task, const char *name, pawl_bytes value, pawl_bytes *kept)
{
    pawl_err err = pw_check_name("memo", name, NULL);
    if (err != PAWL_OK || kept == NULL || task->is_kept)
        return err != PAWL_OK ? err : PAWL_E_USAGE;
    if (value.size > PW_MEMO_SIZE_MAX)
        return PAWL_E_LIMIT;
    const struct pw_memo *known = known_memo(task, name);
    if (known == NULL)
        return commit_memo(task, name, value, kept);
    *kept = known->value;
    return PAWL_OK;
}
