/* SPDX-License-Identifier: Apache-2.0
 *
 * Entities, records and happenings as bytes (proto/pawl/v1/store.proto). The only file that knows
 * protobuf-c. Packing and unpacking use the arena that they are given; what they return lives as
 * long. */
#ifndef PW_CODEC_H
#define PW_CODEC_H

#include "base/arena.h"
#include "base/limits.h"
#include "core/entity.h"
#include "core/step.h"

/* Which machines the engine has: sets machine and state. NULL table: none. */
struct pw_machines {
    const pawl_machine *list[64];
    size_t count;
};

const pawl_machine *pw_machines_find(const struct pw_machines *machines, const char *name);

/* PAWL_E_CORRUPT: not an entity. PAWL_E_NOMEM. Sets no row. */
PAWL_MUST_USE pawl_err pw_entity_unpack(pawl_bytes bytes, const struct pw_machines *machines,
                                        struct pw_arena *arena, struct pw_entity *entity);

/* The entity after an update: with its new memo, answer and effects, without effects up to
 * sent_lsn. PAWL_E_LIMIT: larger than a record may be. PAWL_E_NOMEM. */
PAWL_MUST_USE pawl_err pw_entity_pack(const struct pw_update *update, uint64_t sent_lsn,
                                      struct pw_arena *arena, pawl_bytes *bytes);

struct pw_record {
    uint64_t lsn;
    uint64_t time_ms;
    bool task;
    bool tombstone;
    bool fresh;     /* the journal had no record of the entity before */
    bool forget;    /* no record: the tombstone of version `freed` goes from the journal */
    uint64_t freed; /* epoch of the visit whose dead letter this change settles; 0: none */
    struct pw_entity entity;
};

/* `entity` are the bytes that pw_entity_pack made: they go into the record as they are. */
PAWL_MUST_USE pawl_err pw_record_pack(const struct pw_record *record, pawl_bytes entity,
                                      struct pw_arena *arena, pawl_bytes *bytes);
PAWL_MUST_USE pawl_err pw_record_unpack(pawl_bytes bytes, const struct pw_machines *machines,
                                        struct pw_arena *arena, struct pw_record *record);

/* What the relay wants of a record, read without unpacking the rest. */
struct pw_heads {
    uint64_t lsn;
    uint64_t time_ms;
    uint64_t freed;
    uint64_t epoch;
    uint64_t version;
    bool task;
    bool tombstone;
    bool fresh;
    bool forget;
    bool parked;
    bool effects; /* it has some, of whatever lsn */
    char machine[PW_NAME_MAX + 1];
    char id[PW_ID_MAX + 1];
    char trace[PW_TRACE_SIZE + 1];
};

/* PAWL_E_CORRUPT. */
PAWL_MUST_USE pawl_err pw_record_heads(pawl_bytes bytes, struct pw_heads *heads);

/* What an owner says of itself once in a while. */
struct pw_mark {
    uint64_t sent_lsn;
    uint64_t time_ms;
};

PAWL_MUST_USE pawl_err pw_mark_pack(const struct pw_mark *mark, struct pw_arena *arena,
                                    pawl_bytes *bytes);
PAWL_MUST_USE pawl_err pw_mark_unpack(pawl_bytes bytes, struct pw_arena *arena,
                                      struct pw_mark *mark);

PAWL_MUST_USE pawl_err pw_happening_pack(const struct pw_happening *happening,
                                         struct pw_arena *arena, pawl_bytes *bytes);
PAWL_MUST_USE pawl_err pw_happening_unpack(pawl_bytes bytes, struct pw_arena *arena,
                                           struct pw_happening *happening);

#endif
