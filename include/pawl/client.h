/* SPDX-License-Identifier: Apache-2.0
 *
 * Commands and reads. Every command exists twice: blocking, and with a callback, so that one thread
 * can keep thousands in flight. All may be called from any thread, after pawl_start(); the blocking
 * ones not from a callback or a work function. Ids: 1 to 128 bytes of valid UTF-8, anything but
 * control characters. */
#ifndef PAWL_CLIENT_H
#define PAWL_CLIENT_H

#include "pawl/engine.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a command led to. On failure only `why` is set. Valid for the callback; a copy on the
 * blocking calls. */
typedef struct pawl_answer {
    uint64_t version; /* the entity's, after the command */
    uint64_t epoch;
    char state[65];
    bool repeated; /* the message id had acted before: this is the first one's answer */
    pawl_why why;
} pawl_answer;

/* Called once per accepted command, after the commit, from the shard's writer thread: it must not
 * block. */
typedef void (*pawl_answered)(void *arg, pawl_err err, const pawl_answer *answer);

/* Options of a send; zeros are the defaults. Borrowed for the call. */
typedef struct pawl_event {
    pawl_bytes data; /* replaces the entity's data when has_data */
    bool has_data;
    uint64_t version; /* refused (PAWL_E_VERSION) unless the entity has it; 0: any */
    const char
        *message_id;   /* the same id acts once per entity, among its last 16; at most 128 bytes */
    const char *trace; /* W3C traceparent, handed to the work it leads to */
} pawl_event;

/* Creates an entity. PAWL_E_EXISTS: it is there already, nothing changed (but with the message id
 * that created it, the first answer comes again). PAWL_E_LIMIT, PAWL_E_USAGE: id, key or data off
 * the rules. `options`, `answer` may be NULL. */
PAWL_API PAWL_MUST_USE pawl_err pawl_create(pawl *engine, const char *machine, const char *id,
                                            const pawl_new *options, pawl_answer *answer);

/* Sends an event by name. PAWL_E_NO_EDGE: the present state does not take it; `why` names the state
 * and what it takes. */
PAWL_API PAWL_MUST_USE pawl_err pawl_send(pawl *engine, const char *machine, const char *id,
                                          const char *event, const pawl_event *options,
                                          pawl_answer *answer);

/* Deletes an entity in whatever state. Work that runs for it is refused when it ends. version 0:
 * any. */
PAWL_API PAWL_MUST_USE pawl_err pawl_delete(pawl *engine, const char *machine, const char *id,
                                            uint64_t version, pawl_answer *answer);

/* Frees a parked entity (attempts, rounds and crashes begin at 0), or makes a waiting retry due
 * now. PAWL_E_NO_EDGE: it is neither. version 0: any. */
PAWL_API PAWL_MUST_USE pawl_err pawl_redo(pawl *engine, const char *machine, const char *id,
                                          uint64_t version, pawl_answer *answer);

/* With a callback (NULL: nobody wants the answer). PAWL_OK: taken, `answered` will be called.
 * Anything else: not taken, it will not, and *why says why. PAWL_E_BUSY: the queue is full, try
 * again when some answers have come. */
PAWL_API PAWL_MUST_USE pawl_err pawl_create_async(pawl *engine, const char *machine, const char *id,
                                                  const pawl_new *options, pawl_answered answered,
                                                  void *arg, pawl_why *why);
PAWL_API PAWL_MUST_USE pawl_err pawl_send_async(pawl *engine, const char *machine, const char *id,
                                                const char *event, const pawl_event *options,
                                                pawl_answered answered, void *arg, pawl_why *why);
PAWL_API PAWL_MUST_USE pawl_err pawl_delete_async(pawl *engine, const char *machine, const char *id,
                                                  uint64_t version, pawl_answered answered,
                                                  void *arg, pawl_why *why);
PAWL_API PAWL_MUST_USE pawl_err pawl_redo_async(pawl *engine, const char *machine, const char *id,
                                                uint64_t version, pawl_answered answered, void *arg,
                                                pawl_why *why);

/* What is held is not ready: its work does not begin and its timeouts do not fire, but events act.
 * Exactly one of id, state, key, or none of them (the whole machine). */
typedef struct pawl_scope {
    const char *machine;
    const char *id;
    const char *state;
    const char *key;
} pawl_scope;

PAWL_API PAWL_MUST_USE pawl_err pawl_hold(pawl *engine, const pawl_scope *scope, pawl_why *why);
PAWL_API PAWL_MUST_USE pawl_err pawl_release(pawl *engine, const pawl_scope *scope, pawl_why *why);

/* --- reads: also on an engine opened read_only -------------------------------------------- */

/* An entity as committed. Times are journal time: milliseconds since 1970 by the owner's clock. */
typedef struct pawl_entity {
    const char *machine;
    const char *id;
    const char *state;
    const char *key;
    const char *error;
    const char *trace;
    pawl_bytes data;
    uint64_t epoch;
    uint64_t version;
    uint32_t attempt;
    uint32_t rounds;
    uint32_t crashes;
    uint64_t created_ms;
    uint64_t entered_ms;
    uint64_t due_ms; /* the next retry, timeout or retention; 0: none */
    bool held;
    bool parked;
    uint32_t shard;
    uint64_t row;
} pawl_entity;

/* One entity; *entity is the caller's, freed by pawl_entity_free(). */
PAWL_API PAWL_MUST_USE pawl_err pawl_read(pawl *engine, const char *machine, const char *id,
                                          pawl_entity **entity);
PAWL_API void pawl_entity_free(pawl_entity *entity);

/* Which entities; NULL and 0: any. */
typedef struct pawl_query {
    const char *machine;
    const char *state;
    const char *key;
    uint64_t entered_before_ms;
    bool parked; /* only parked ones */
} pawl_query;

/* Return false to end the scan. The entity is valid for the call. */
typedef bool (*pawl_seen)(void *arg, const pawl_entity *entity);

/* Every entity that fits, machine by machine, state by state, in order of creation. Sees what was
 * committed when it reached it; never blocks the writer. Calls `seen` without a read transaction
 * open. */
PAWL_API PAWL_MUST_USE pawl_err pawl_scan(pawl *engine, const pawl_query *query, pawl_seen seen,
                                          void *arg, pawl_why *why);

/* What happened to an entity: one line of its history. Valid for the call. */
typedef struct pawl_happening {
    uint64_t version;
    uint64_t time_ms;
    const char *text; /* "charging #1 retry: gateway busy", "cart --submit--> charging" */
} pawl_happening;

typedef bool (*pawl_happened)(void *arg, const pawl_happening *happening);

/* The last 64 happenings of an entity, oldest first. */
PAWL_API PAWL_MUST_USE pawl_err pawl_history(pawl *engine, const char *machine, const char *id,
                                             pawl_happened happened, void *arg);

#ifdef __cplusplus
}
#endif
#endif
