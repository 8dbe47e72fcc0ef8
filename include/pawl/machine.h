/* SPDX-License-Identifier: Apache-2.0
 *
 * Machines and work: what the user writes. A machine is constant data that must outlive the engine;
 * nothing of it is copied. On disk states and events are their names, so their numbers may change
 * between two builds. */
#ifndef PAWL_MACHINE_H
#define PAWL_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "pawl/err.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Borrowed bytes. Never owns: valid for the call, or as long as the declaration that hands it out
 * says. */
typedef struct pawl_bytes {
    const void *data;
    size_t size;
} pawl_bytes;

static inline pawl_bytes pawl_str(const char *text)
{
    pawl_bytes bytes = { text, text != NULL ? strlen(text) : 0 };
    return bytes;
}

/* One run of a work function: what it works on, and where it leaves its effects. Used by one thread
 * at a time. */
typedef struct pawl_task pawl_task;

/* Built-in events. Users' events are numbered from 0 and index the machine's table of event names.
 */
enum {
    PAWL_TIMEOUT = -1, /* the state's timeout_ms is over */
    PAWL_FAILED = -2,  /* the work gave up (pawl_fail), or is out of attempts */
};

/* No limit, for durations that have a default. */
#define PAWL_FOREVER UINT64_MAX

/* --- outcomes ----------------------------------------------------------------------------- */

/* What a work function returns. Made by the functions below only; holds its own copy of the text.
 */
typedef struct pawl_outcome {
    int kind;
    int event;
    uint64_t delay_ms;
    char why[256];
} pawl_outcome;

/* The entity leaves its state by this event. An event without an edge from the state counts as
 * pawl_fail(). */
PAWL_API pawl_outcome pawl_raise(int event);

/* The attempt failed and another may help: attempt + 1 after the state's backoff, or, when all
 * attempts are used, the event PAWL_FAILED. The text (cut at 255 bytes) is kept as the entity's
 * error. */
PAWL_API pawl_outcome pawl_retry(const char *why);

/* The same, with the delay that the other party asked for in place of the backoff. */
PAWL_API pawl_outcome pawl_retry_after(const char *why, uint64_t delay_ms);

/* No further attempt helps: PAWL_FAILED at once. Without an edge for it the entity parks and waits
 * for a person. */
PAWL_API pawl_outcome pawl_fail(const char *why);

/* The outcome comes later. The work function returns what this returns; its thread is free for
 * other tasks, and the task stays valid until any thread ends it with pawl_complete(), exactly
 * once, even when the engine has closed meanwhile. Between the two, one thread at a time may use
 * the task. */
PAWL_API pawl_outcome pawl_later(pawl_task *task);

/* Ends a task that pawl_later() kept, and frees it. Does not block. PAWL_E_CLOSED: the engine has
 * closed, the attempt will be made again. Whether the outcome is still of use is decided by the
 * writer: one of an attempt that is over (attempt_ms, or another event won) is refused and counted.
 */
PAWL_API pawl_err pawl_complete(pawl_task *task, pawl_outcome outcome);

/* Runs on one of the pool's threads. It may block; it may run twice under one task key; it must not
 * throw. */
typedef pawl_outcome (*pawl_work)(pawl_task *task);

/* --- what a task can tell and do ---------------------------------------------------------- */

/* All pointers are valid as long as the task. */
PAWL_API const char *pawl_task_machine(const pawl_task *task);
PAWL_API const char *pawl_task_id(const pawl_task *task);
PAWL_API const char *pawl_task_state(const pawl_task *task);
/* "machine/id@epoch": the same on every attempt of this visit, here and after any crash. Give it to
 * other parties as message id or idempotency key. */
PAWL_API const char *pawl_task_key(const pawl_task *task);
PAWL_API pawl_bytes pawl_task_data(const pawl_task *task);
PAWL_API const char *
pawl_task_fairness(const pawl_task *task); /* the entity's key, "" if it has none */
PAWL_API const char *pawl_task_error(const pawl_task *task); /* of the attempt before, "" if none */
PAWL_API const char *pawl_task_trace(const pawl_task *task); /* W3C traceparent, "" if none */
PAWL_API uint32_t pawl_task_attempt(const pawl_task *task);  /* 1, 2, 3... within this visit */
PAWL_API uint64_t pawl_task_epoch(const pawl_task *task);
PAWL_API void *pawl_task_env(const pawl_task *task); /* the unit's env */
/* True when the outcome can no longer be used, or the engine is stopping: long work may look and
 * give up early. */
PAWL_API bool pawl_task_cancelled(const pawl_task *task);

/* The following are part of the outcome: they happen with its commit or not at all, and only when
 * it is pawl_raise() or pawl_fail(); after a retry it is as if the attempt had not run. They copy
 * what they are given and return nothing; the task remembers the first failure (over a limit, out
 * of memory) and the outcome then becomes a retry with that text. */

/* Replaces the entity's data. At most 256 KiB. */
PAWL_API void pawl_task_save(pawl_task *task, pawl_bytes data);

/* A message for others, sent after the commit, at least once, under a stable id. */
PAWL_API void pawl_task_emit(pawl_task *task, const char *name, pawl_bytes data);

/* An event to another entity, in any machine and shard: delivered at least once, acted on once. A
 * target that refuses it for good (no such entity, no such edge) is noted in this entity's history
 * and counted. Data of size 0 keeps the target's data. */
PAWL_API void pawl_task_tell(pawl_task *task, const char *machine, const char *id,
                             const char *event, pawl_bytes data);

/* Options of a creation; zeros are the defaults. */
typedef struct pawl_new {
    pawl_bytes data;
    const char *key;   /* fairness key, at most 128 bytes */
    uint64_t delay_ms; /* a working start state begins after it */
    const char *
        message_id; /* the same id acts once; at most 128 bytes. Not used by pawl_task_tell_new() */
    const char *trace; /* W3C traceparent */
} pawl_new;

/* The creation of another entity, like pawl_task_tell(). */
PAWL_API void pawl_task_tell_new(pawl_task *task, const char *machine, const char *id,
                                 const pawl_new *options);

/* A value that is decided once per entity: the first call commits it and every later one, on any
 * attempt and in any state, gets the first one's. Blocks until it is committed (and journalled). On
 * success *kept is valid as long as the task. PAWL_E_STALE: the visit is over. Not on a task kept
 * by pawl_later(). */
PAWL_API PAWL_MUST_USE pawl_err pawl_task_memo(pawl_task *task, const char *name, pawl_bytes value,
                                               pawl_bytes *kept);

/* --- machines ----------------------------------------------------------------------------- */

enum {
    PAWL_START = 1, /* where entities begin; exactly one */
    PAWL_FINAL = 2, /* where they end */
};

/* A state works (it has a work function), is final (PAWL_FINAL), or waits. 0 takes the default. */
typedef struct pawl_state {
    const char *name;
    unsigned flags;
    pawl_work work;
    uint32_t attempts_max;   /* default 5 */
    uint64_t backoff_ms;     /* before attempt 2, then doubling; default 1000 */
    uint64_t backoff_ms_max; /* default 5 minutes */
    uint32_t
        jitter_percent;  /* each delay is spread by plus or minus this; default 20, at most 100 */
    uint64_t attempt_ms; /* an attempt without an answer for so long is a retry "no answer"; default
                            5 minutes */
    uint64_t timeout_ms; /* PAWL_TIMEOUT when the visit has lasted so long; default none */
} pawl_state;

typedef struct pawl_edge {
    int from;
    int event; /* an index into events, PAWL_TIMEOUT or PAWL_FAILED */
    int to;
    /* Only for the outcome of work that was left straight into `from` by another event, while it
     * was still running. */
    bool late;
} pawl_edge;

typedef struct pawl_machine {
    const char *name;
    const pawl_state *states;
    size_t states_count;
    const char *const *events;
    size_t events_count;
    const pawl_edge *edges;
    size_t edges_count;
    uint32_t workers;   /* threads of the pool; default 4, at most 256 */
    uint32_t later_max; /* tasks that pawl_later() may keep open; default 10,000 */
    uint32_t
        key_share; /* per cent of workers (and of later_max) that one key may hold; default 50 */
    uint32_t rounds_max; /* states entered by work alone, without an event from outside; then it
                            parks; default 100 */
    uint32_t
        crash_attempts_max; /* runs that took the process with them; then it parks; default 5 */
    uint64_t retention_ms;  /* how long final entities are kept; default 7 days; PAWL_FOREVER keeps
                               them */
} pawl_machine;

#ifdef __cplusplus
#define PAWL_STATES(array) array, sizeof(array) / sizeof((array)[0])
#define PAWL_EVENTS(array) array, sizeof(array) / sizeof((array)[0])
#define PAWL_EDGES(array) array, sizeof(array) / sizeof((array)[0])
#else
#define PAWL_STATES(array) .states = (array), .states_count = sizeof(array) / sizeof((array)[0])
#define PAWL_EVENTS(array) .events = (array), .events_count = sizeof(array) / sizeof((array)[0])
#define PAWL_EDGES(array) .edges = (array), .edges_count = sizeof(array) / sizeof((array)[0])
#endif

/* A message that an entity emitted. Valid for the call. */
typedef struct pawl_message {
    const char *id; /* "<lsn>.<n>" of the shard: the same each time it is handed over */
    const char *machine;
    const char *entity;
    const char *name;
    const char *trace;
    pawl_bytes data;
    uint32_t shard;
} pawl_message;

/* A machine and what its work functions need. `emitted` hears the machine's messages on the bus
 * "local:": from the relay's thread, after the commit, in order, at least once. Must not block for
 * long: it holds up the shard's tells. */
typedef struct pawl_unit {
    const pawl_machine *machine;
    void *env;
    void (*emitted)(void *env, const pawl_message *message);
} pawl_unit;

/* Checks a machine as pawl_add() does. PAWL_E_MACHINE: *why names the row and what is wrong with
 * it. */
PAWL_API PAWL_MUST_USE pawl_err pawl_machine_check(const pawl_machine *machine, pawl_why *why);

#ifdef __cplusplus
}
#endif
#endif
