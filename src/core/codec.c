/* SPDX-License-Identifier: Apache-2.0
 *
 * Between the structs of entity.h and protobuf-c. Strings on the wire are checked for length only
 * where they enter the engine; what is unpacked here was packed here, or is refused as damaged. */
#include <assert.h>

#include "base/base.h"
#include "base/limits.h"
#include "core/codec.h"
#include "core/machine.h"
#include "pawl/v1/store.pb-c.h"

static_assert((int)PW_EMIT == PAWL__V1__EFFECT__KIND__EMIT, "effect kinds are the wire's");
static_assert((int)PW_TELL_NEW == PAWL__V1__EFFECT__KIND__CREATE, "effect kinds are the wire's");
static_assert((int)PW_CREATED == PAWL__V1__HAPPENING__KIND__CREATED, "happenings are the wire's");
static_assert((int)PW_MEMOED == PAWL__V1__HAPPENING__KIND__MEMO, "happenings are the wire's");
static_assert(PW_MACHINES_MAX == PW_COUNT(((struct pw_machines *)0)->list),
              "as many machines as the limit");

/* protobuf-c says only that it failed; whether memory was why stands here. */
struct memory {
    struct pw_arena *arena;
    bool ran_out;
};

static void *arena_alloc(void *arg, size_t size)
{
    struct memory *memory = arg;
    void *allocated = pw_arena_alloc(memory->arena, size);
    memory->ran_out = memory->ran_out || allocated == NULL;
    return allocated;
}

static void arena_free(void *arg, void *allocated)
{
    (void)arg;
    (void)allocated; /* freed with the arena */
}

/* NULL: *err says whether the bytes or the memory were wrong. */
static const ProtobufCMessage *unpack(const ProtobufCMessageDescriptor *type, pawl_bytes bytes,
                                      struct pw_arena *arena, pawl_err *err)
{
    struct memory memory = { arena, false };
    ProtobufCAllocator allocator = { arena_alloc, arena_free, &memory };
    const ProtobufCMessage *message =
        protobuf_c_message_unpack(type, &allocator, bytes.size, bytes.data);
    *err = message != NULL ? PAWL_OK : memory.ran_out ? PAWL_E_NOMEM : PAWL_E_CORRUPT;
    return message;
}

static ProtobufCBinaryData to_wire(pawl_bytes bytes)
{
    ProtobufCBinaryData data = { bytes.size,
                                 (uint8_t *)(uintptr_t)bytes.data }; /* packing does not write */
    return data;
}

static pawl_bytes from_wire(ProtobufCBinaryData data)
{
    pawl_bytes bytes = { data.data, data.len };
    return bytes;
}

static char *text(const char *text)
{
    return (char *)(uintptr_t)text; /* packing does not write */
}

const pawl_machine *pw_machines_find(const struct pw_machines *machines, const char *name)
{
    for (size_t i = 0; machines != NULL && i < machines->count; i++)
        if (strcmp(machines->list[i]->name, name) == 0)
            return machines->list[i];
    return NULL;
}

/* --- unpack ------------------------------------------------------------------------------- */

static bool unpack_memos(const Pawl__V1__Entity *wire, struct pw_arena *arena,
                         struct pw_entity *entity)
{
    if (wire->n_memos == 0)
        return true;
    struct pw_memo *memos = pw_arena_alloc(arena, wire->n_memos * sizeof(*memos));
    if (memos == NULL)
        return false;
    for (size_t i = 0; i < wire->n_memos; i++)
        memos[i] = (struct pw_memo){ wire->memos[i]->name, from_wire(wire->memos[i]->value) };
    entity->memos = memos;
    entity->memos_count = wire->n_memos;
    return true;
}

static bool unpack_answers(const Pawl__V1__Entity *wire, struct pw_arena *arena,
                           struct pw_entity *entity)
{
    if (wire->n_answers == 0)
        return true;
    struct pw_answer *answers = pw_arena_alloc(arena, wire->n_answers * sizeof(*answers));
    if (answers == NULL)
        return false;
    for (size_t i = 0; i < wire->n_answers; i++) {
        const Pawl__V1__Answer *a = wire->answers[i];
        answers[i] = (struct pw_answer){ a->message_id, a->state, a->version, a->epoch };
    }
    entity->answers = answers;
    entity->answers_count = wire->n_answers;
    return true;
}

static bool unpack_effects(const Pawl__V1__Entity *wire, struct pw_arena *arena,
                           struct pw_entity *entity)
{
    if (wire->n_effects == 0)
        return true;
    struct pw_effect *effects = pw_arena_alloc(arena, wire->n_effects * sizeof(*effects));
    if (effects == NULL)
        return false;
    for (size_t i = 0; i < wire->n_effects; i++) {
        const Pawl__V1__Effect *e = wire->effects[i];
        effects[i] = (struct pw_effect){
            .kind = (enum pw_effect_kind)e->kind,
            .n = e->n,
            .lsn = e->lsn,
            .name = e->name,
            .machine = e->machine,
            .id = e->id,
            .key = e->key,
            .trace = e->trace,
            .data = from_wire(e->data),
            .delay_ms = e->delay_ms,
        };
    }
    entity->effects = effects;
    entity->effects_count = wire->n_effects;
    return true;
}

static bool fits(const char *text, size_t size_max)
{
    return strnlen(text, size_max + 1) <= size_max;
}

/* What the rest of pawl takes for granted: keys are made of these texts, attempts are counted from
 * the base. */
static bool is_whole(const struct pw_entity *e)
{
    bool named = e->id[0] != '\0' && e->machine_name[0] != '\0' && e->state_name[0] != '\0';
    return named && fits(e->id, PW_ID_MAX) && fits(e->machine_name, PW_NAME_MAX) &&
           fits(e->state_name, PW_NAME_MAX) && fits(e->key, PW_KEY_MAX) && e->epoch != 0 &&
           e->version >= e->epoch && e->attempt_base < UINT32_MAX;
}

static bool unpack_told(const Pawl__V1__Entity *wire, struct pw_arena *arena,
                        struct pw_entity *entity)
{
    if (wire->n_told == 0)
        return true;
    struct pw_told *told = pw_arena_alloc(arena, wire->n_told * sizeof(*told));
    for (size_t i = 0; i < wire->n_told && told != NULL; i++)
        told[i] = (struct pw_told){ wire->told[i]->shard, wire->told[i]->n, wire->told[i]->lsn };
    entity->told = told;
    entity->told_count = told != NULL ? wire->n_told : 0;
    return told != NULL;
}

static pawl_err entity_from_wire(const Pawl__V1__Entity *wire, const struct pw_machines *machines,
                                 struct pw_arena *arena, struct pw_entity *entity)
{
    *entity = (struct pw_entity){
        .machine = pw_machines_find(machines, wire->machine),
        .machine_name = wire->machine,
        .id = wire->id,
        .state_name = wire->state,
        .key = wire->key,
        .error = wire->error,
        .trace = wire->trace,
        .data = from_wire(wire->data),
        .state = PW_STATE_UNKNOWN,
        .epoch = wire->epoch,
        .version = wire->version,
        .previous_epoch = wire->previous_epoch,
        .previous_attempt = wire->previous_attempt,
        .created_ms = wire->created_ms,
        .entered_ms = wire->entered_ms,
        .not_before_ms = wire->not_before_ms,
        .deadline_ms = wire->deadline_ms,
        .attempt = wire->attempt,
        .attempt_base = wire->attempt_base,
        .carried = wire->carried,
        .rounds = wire->rounds,
        .crashes = wire->crashes,
        .happenings = wire->happenings,
        .held = wire->held,
        .parked = wire->parked,
        .tombstone = wire->tombstone,
    };
    if (!is_whole(entity))
        return PAWL_E_CORRUPT;
    if (entity->machine != NULL)
        entity->state = pw_machine_state(entity->machine, entity->state_name);
    if (pw_entity_works(entity) && entity->attempt <= entity->attempt_base)
        entity->attempt =
            entity->attempt_base + 1; /* the state did not work yet when it was saved */
    bool done = unpack_memos(wire, arena, entity) && unpack_answers(wire, arena, entity) &&
                unpack_effects(wire, arena, entity) && unpack_told(wire, arena, entity);
    return done ? PAWL_OK : PAWL_E_NOMEM;
}

pawl_err pw_entity_unpack(pawl_bytes bytes, const struct pw_machines *machines,
                          struct pw_arena *arena, struct pw_entity *entity)
{
    pawl_err err = PAWL_OK;
    const Pawl__V1__Entity *wire =
        (const Pawl__V1__Entity *)unpack(&pawl__v1__entity__descriptor, bytes, arena, &err);
    return err == PAWL_OK ? entity_from_wire(wire, machines, arena, entity) : err;
}

pawl_err pw_record_unpack(pawl_bytes bytes, const struct pw_machines *machines,
                          struct pw_arena *arena, struct pw_record *record)
{
    pawl_err err = PAWL_OK;
    const Pawl__V1__Record *wire =
        (const Pawl__V1__Record *)unpack(&pawl__v1__record__descriptor, bytes, arena, &err);
    if (err != PAWL_OK)
        return err;
    if (wire->entity == NULL || wire->lsn == 0)
        return PAWL_E_CORRUPT;
    struct pw_record read = {
        .lsn = wire->lsn,
        .time_ms = wire->time_ms,
        .task = wire->task,
        .tombstone = wire->tombstone,
        .fresh = wire->fresh,
        .forget = wire->forget,
        .freed = wire->freed,
    };
    err = entity_from_wire(wire->entity, machines, arena, &read.entity);
    if (err == PAWL_OK)
        *record = read;
    return err;
}

pawl_err pw_mark_unpack(pawl_bytes bytes, struct pw_arena *arena, struct pw_mark *mark)
{
    pawl_err err = PAWL_OK;
    const Pawl__V1__Mark *wire =
        (const Pawl__V1__Mark *)unpack(&pawl__v1__mark__descriptor, bytes, arena, &err);
    if (err == PAWL_OK)
        *mark = (struct pw_mark){ .sent_lsn = wire->sent_lsn, .time_ms = wire->time_ms };
    return err;
}

pawl_err pw_happening_unpack(pawl_bytes bytes, struct pw_arena *arena,
                             struct pw_happening *happening)
{
    pawl_err err = PAWL_OK;
    const Pawl__V1__Happening *wire =
        (const Pawl__V1__Happening *)unpack(&pawl__v1__happening__descriptor, bytes, arena, &err);
    if (err != PAWL_OK)
        return err;
    *happening = (struct pw_happening){
        .kind = (enum pw_happened)wire->kind,
        .time_ms = wire->time_ms,
        .from = wire->from,
        .event = wire->event,
        .to = wire->to,
        .why = wire->why,
        .attempt = wire->attempt,
        .late = wire->late,
    };
    return PAWL_OK;
}

/* --- pack --------------------------------------------------------------------------------- */

static pawl_err pack(const ProtobufCMessage *message, struct pw_arena *arena, pawl_bytes *bytes)
{
    size_t size = protobuf_c_message_get_packed_size(message);
    uint8_t *memory = pw_arena_alloc(arena, size);
    if (memory == NULL)
        return PAWL_E_NOMEM;
    (void)protobuf_c_message_pack(message, memory); /* writes exactly `size` */
    *bytes = (pawl_bytes){ memory, size };
    return PAWL_OK;
}

static bool pack_memos(const struct pw_update *update, struct pw_arena *arena,
                       Pawl__V1__Entity *wire)
{
    const struct pw_entity *entity = &update->after;
    size_t count = entity->memos_count + (update->memo_new.name != NULL ? 1 : 0);
    if (count == 0)
        return true;
    Pawl__V1__Memo *memos = pw_arena_alloc(arena, count * sizeof(*memos));
    wire->memos = pw_arena_alloc(arena, count * sizeof(*wire->memos));
    if (memos == NULL || wire->memos == NULL)
        return false;
    for (size_t i = 0; i < count; i++) {
        const struct pw_memo *memo =
            i < entity->memos_count ? &entity->memos[i] : &update->memo_new;
        pawl__v1__memo__init(&memos[i]);
        memos[i].name = text(memo->name);
        memos[i].value = to_wire(memo->value);
        wire->memos[i] = &memos[i];
    }
    wire->n_memos = count;
    return true;
}

static bool pack_answers(const struct pw_update *update, struct pw_arena *arena,
                         Pawl__V1__Entity *wire)
{
    const struct pw_entity *entity = &update->after;
    size_t all = entity->answers_count + (update->remember ? 1 : 0);
    size_t skip = all > PW_ANSWERS_MAX ? all - PW_ANSWERS_MAX : 0;
    if (all == 0)
        return true;
    Pawl__V1__Answer *answers = pw_arena_alloc(arena, all * sizeof(*answers));
    wire->answers = pw_arena_alloc(arena, all * sizeof(*wire->answers));
    if (answers == NULL || wire->answers == NULL)
        return false;
    for (size_t i = skip; i < all; i++) {
        const struct pw_answer *answer =
            i < entity->answers_count ? &entity->answers[i] : &update->answered;
        Pawl__V1__Answer *to = &answers[wire->n_answers];
        pawl__v1__answer__init(to);
        to->message_id = text(answer->message_id);
        to->state = text(answer->state);
        to->version = answer->version;
        to->epoch = answer->epoch;
        wire->answers[wire->n_answers++] = to;
    }
    return true;
}

static void effect_to_wire(const struct pw_effect *effect, uint64_t lsn, uint32_t n,
                           Pawl__V1__Effect *to)
{
    pawl__v1__effect__init(to);
    to->kind = (Pawl__V1__Effect__Kind)effect->kind;
    to->lsn = lsn;
    to->n = n;
    to->name = text(effect->name);
    to->machine = text(effect->machine);
    to->id = text(effect->id);
    to->key = text(effect->key);
    to->trace = text(effect->trace);
    to->data = to_wire(effect->data);
    to->delay_ms = effect->delay_ms;
}

static bool pack_effects(const struct pw_update *update, uint64_t sent_lsn, struct pw_arena *arena,
                         Pawl__V1__Entity *wire)
{
    const struct pw_entity *entity = &update->after;
    size_t all = entity->effects_count + update->effects_new_count;
    if (all == 0)
        return true;
    Pawl__V1__Effect *effects = pw_arena_alloc(arena, all * sizeof(*effects));
    wire->effects = pw_arena_alloc(arena, all * sizeof(*wire->effects));
    if (effects == NULL || wire->effects == NULL)
        return false;
    for (size_t i = 0; i < all; i++) {
        bool is_new = i >= entity->effects_count;
        const struct pw_effect *from =
            is_new ? &update->effects_new[i - entity->effects_count] : &entity->effects[i];
        uint64_t lsn = is_new ? entity->version : from->lsn;
        uint32_t n = is_new ? (uint32_t)(i - entity->effects_count) : from->n;
        if (lsn <= sent_lsn)
            continue;
        effect_to_wire(from, lsn, n, &effects[wire->n_effects]);
        wire->effects[wire->n_effects] = &effects[wire->n_effects];
        wire->n_effects++;
    }
    return true;
}

static void told_to_wire(const struct pw_told *told, Pawl__V1__Told *to)
{
    pawl__v1__told__init(to);
    to->shard = told->shard;
    to->lsn = told->lsn;
    to->n = told->n;
}

static bool pack_told(const struct pw_update *update, struct pw_arena *arena,
                      Pawl__V1__Entity *wire)
{
    const struct pw_entity *entity = &update->after;
    size_t all = entity->told_count + (update->told_new.lsn != 0 ? 1 : 0);
    if (all == 0)
        return true;
    Pawl__V1__Told *told = pw_arena_alloc(arena, all * sizeof(*told));
    wire->told = pw_arena_alloc(arena, all * sizeof(*wire->told));
    if (told == NULL || wire->told == NULL)
        return false;
    for (size_t i = 0; i < all; i++) {
        const struct pw_told *from = i < entity->told_count ? &entity->told[i] : &update->told_new;
        bool replaced = i < entity->told_count && update->told_new.lsn != 0 &&
                        from->shard == update->told_new.shard;
        if (replaced)
            continue;
        told_to_wire(from, &told[wire->n_told]);
        wire->told[wire->n_told] = &told[wire->n_told];
        wire->n_told++;
    }
    return true;
}

pawl_err pw_entity_pack(const struct pw_update *update, uint64_t sent_lsn, struct pw_arena *arena,
                        pawl_bytes *bytes)
{
    const struct pw_entity *e = &update->after;
    Pawl__V1__Entity wire = PAWL__V1__ENTITY__INIT;
    wire.machine = text(e->machine_name);
    wire.id = text(e->id);
    wire.state = text(e->state_name);
    wire.key = text(e->key);
    wire.error = text(e->error);
    wire.trace = text(e->trace);
    wire.data = to_wire(e->data);
    wire.epoch = e->epoch;
    wire.version = e->version;
    wire.attempt = e->attempt;
    wire.attempt_base = e->attempt_base;
    wire.carried = e->carried;
    wire.rounds = e->rounds;
    wire.crashes = e->crashes;
    wire.created_ms = e->created_ms;
    wire.entered_ms = e->entered_ms;
    wire.not_before_ms = e->not_before_ms;
    wire.deadline_ms = e->deadline_ms;
    wire.held = e->held;
    wire.parked = e->parked;
    wire.tombstone = e->tombstone;
    wire.previous_epoch = e->previous_epoch;
    wire.previous_attempt = e->previous_attempt;
    wire.happenings = e->happenings;
    if (!pack_memos(update, arena, &wire) || !pack_answers(update, arena, &wire) ||
        !pack_effects(update, sent_lsn, arena, &wire) || !pack_told(update, arena, &wire))
        return PAWL_E_NOMEM;
    pawl_bytes packed = { NULL, 0 };
    pawl_err err = pack(&wire.base, arena, &packed);
    size_t size_max = PW_RECORD_MAX - 64 -
                      (update->brings ? PW_RECORD_SPARE : 0); /* 64: the record's own fields */
    if (err == PAWL_OK && packed.size > size_max)
        err = PAWL_E_LIMIT;
    if (err == PAWL_OK)
        *bytes = packed;
    return err;
}

/* The entity is written as a field of length-delimited bytes: tag 5, size, bytes. So it is packed
 * once. */
pawl_err pw_record_pack(const struct pw_record *record, pawl_bytes entity, struct pw_arena *arena,
                        pawl_bytes *bytes)
{
    Pawl__V1__Record wire = PAWL__V1__RECORD__INIT;
    wire.lsn = record->lsn;
    wire.time_ms = record->time_ms;
    wire.task = record->task;
    wire.tombstone = record->tombstone;
    wire.fresh = record->fresh;
    wire.forget = record->forget;
    wire.freed = record->freed;
    size_t head = pawl__v1__record__get_packed_size(&wire);
    uint8_t *memory = pw_arena_alloc(arena, head + 1 + 5 + entity.size);
    if (memory == NULL)
        return PAWL_E_NOMEM;
    size_t used = pawl__v1__record__pack(&wire, memory);
    memory[used++] =
        5 << 3 | 2; /* field 5, wire type 2: https://protobuf.dev/programming-guides/encoding */
    size_t size = entity.size;
    for (; size >= 0x80; size >>= 7)
        memory[used++] = (uint8_t)(size | 0x80);
    memory[used++] = (uint8_t)size;
    memcpy(memory + used, entity.data, entity.size);
    *bytes = (pawl_bytes){ memory, used + entity.size };
    return PAWL_OK;
}

pawl_err pw_mark_pack(const struct pw_mark *mark, struct pw_arena *arena, pawl_bytes *bytes)
{
    Pawl__V1__Mark wire = PAWL__V1__MARK__INIT;
    wire.sent_lsn = mark->sent_lsn;
    wire.time_ms = mark->time_ms;
    return pack(&wire.base, arena, bytes);
}

pawl_err pw_happening_pack(const struct pw_happening *happening, struct pw_arena *arena,
                           pawl_bytes *bytes)
{
    Pawl__V1__Happening wire = PAWL__V1__HAPPENING__INIT;
    wire.kind = (Pawl__V1__Happening__Kind)happening->kind;
    wire.time_ms = happening->time_ms;
    wire.from = text(happening->from);
    wire.event = text(happening->event);
    wire.to = text(happening->to);
    wire.attempt = happening->attempt;
    wire.why = text(happening->why);
    wire.late = happening->late;
    return pack(&wire.base, arena, bytes);
}
