/* SPDX-License-Identifier: Apache-2.0
 *
 * Work: from a claim to its outcome. */
#ifndef PW_WORKER_H
#define PW_WORKER_H

#include "engine/engine.h"

/* Runs one claim that pw_pool_take handed out: reads the entity, checks again, calls the user's
 * work, sends the outcome to the writer. Pool thread. */
void pw_worker_run(struct pw_pool *pool, struct pw_claim *claim);

struct pawl_task {
    struct pw_request request; /* first: the outcome */
    struct pawl *engine;       /* NULL: it has closed; under the lock of kept tasks */
    struct pw_pool *pool;
    struct pw_shard *shard;
    struct pw_claim *claim;
    struct pw_arena arena;
    struct pw_entity entity;
    char *key;
    struct pw_effect *effects;
    size_t effects_count;
    size_t effects_size; /* bytes of their data */
    pawl_bytes saved;
    bool has_saved;
    bool is_kept;
    bool *kept; /* tells the worker that pawl_later took the task */
    pawl_err failed;
    pawl_why why; /* of the failure */
    pawl_outcome outcome;
    struct pawl_task *next; /* in the list of kept ones */
    struct pawl_task *previous;
};

/* NULL: out of memory. */
struct pawl_task *pw_task_make(struct pw_pool *pool, struct pw_claim *claim);
void pw_task_free(struct pawl_task *task);

/* Sends the outcome to the writer, which frees the task. */
void pw_task_finish(struct pawl_task *task, const pawl_outcome *outcome);

/* Takes all kept tasks of an engine out of it: completing them later only frees them. Waits for
 * completions under way. */
void pw_tasks_orphan(struct pawl *engine);

#endif
