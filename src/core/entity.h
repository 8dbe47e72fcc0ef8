/* SPDX-License-Identifier: Apache-2.0
 *
 * An entity in memory, and what can happen to it. All pointers are borrowed: from an arena, a
 * request or the machine. */
#ifndef PW_ENTITY_H
#define PW_ENTITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pawl/machine.h"

/* The machine does not have the state that the store names. */
#define PW_STATE_UNKNOWN (-1)
/* No such event in the machine. */
#define PW_EVENT_UNKNOWN (-3)

struct pw_memo {
    const char *name;
    pawl_bytes value;
};

struct pw_answer {
    const char *message_id;
    const char *state;
    uint64_t version;
    uint64_t epoch;
};

enum pw_effect_kind { PW_EMIT, PW_TELL, PW_TELL_NEW };

struct pw_effect {
    enum pw_effect_kind kind;
    uint32_t n;
    uint64_t lsn;
    const char *name; /* of the message or event */
    const char *machine;
    const char *id;
    const char *key;
    const char *trace;
    pawl_bytes data;
    uint64_t delay_ms;
};

/* The last tell of a shard that acted on the entity. */
struct pw_told {
    uint32_t shard;
    uint32_t n;
    uint64_t lsn;
};

struct pw_entity {
    const pawl_machine *machine; /* NULL: not added to this engine */
    const char *machine_name;
    const char *id;
    const char *state_name;
    const char *key;
    const char *error;
    const char *trace;
    pawl_bytes data;
    int state; /* index, or PW_STATE_UNKNOWN */
    uint64_t row;
    uint64_t epoch;
    uint64_t version;
    uint64_t previous_epoch;
    uint64_t created_ms;
    uint64_t entered_ms;
    uint64_t not_before_ms; /* 0: now */
    uint64_t deadline_ms;   /* of the timeout, or of retention; 0: none */
    uint32_t attempt;
    uint32_t attempt_base;
    uint32_t previous_attempt; /* whose event ended the visit before; 0: none of work */
    uint32_t carried;
    uint32_t rounds;
    uint32_t crashes;
    uint32_t happenings;
    bool held;
    bool parked;
    bool tombstone; /* in the store only: it is deleted, and kept for the journal */
    const struct pw_memo *memos;
    size_t memos_count;
    const struct pw_answer *answers; /* oldest first */
    size_t answers_count;
    const struct pw_effect *effects; /* not yet sent, oldest first */
    size_t effects_count;
    const struct pw_told *told; /* one a sending shard */
    size_t told_count;
};

enum pw_happened {
    PW_CREATED,
    PW_MOVED,
    PW_RETRY,
    PW_PARKED,
    PW_REDONE,
    PW_HELD,
    PW_RELEASED,
    PW_DELETED,
    PW_NOTED,
    PW_MEMOED,
    PW_SILENT, /* a save that is no line of history */
};

struct pw_happening {
    enum pw_happened kind;
    uint64_t time_ms;
    const char *from;
    const char *event;
    const char *to;
    const char *why;
    uint32_t attempt; /* 0: not the outcome of work */
    bool late;
};

/* The state's row of the machine; NULL when machine or state is unknown. */
const pawl_state *pw_entity_state(const struct pw_entity *entity);

bool pw_entity_works(const struct pw_entity *entity);
bool pw_entity_final(const struct pw_entity *entity);

/* In a working state, and no pending retry, hold or park. (Holds of key, state and machine are the
 * engine's.) */
bool pw_entity_ready(const struct pw_entity *entity);

/* When its row in the due index stands; 0: none. */
uint64_t pw_entity_due(const struct pw_entity *entity);

/* "cart --submit--> charging", "charging #1 retry: gateway busy": as history and transcripts show
 * it. */
void pw_happening_print(const struct pw_happening *happening, char *to, size_t size);

#endif
