/* SPDX-License-Identifier: Apache-2.0
 *
 * The relay: moves what is committed to where it is heard of. With a journal it appends outbox rows
 * in lsn order and looks at acknowledgements; then, with or without one, it sends the effects of
 * journalled records, a lot at a time: messages to their listener, tells to the writers of their
 * targets. When a lot is answered, the writer may trim it. Relay thread. What it has sent twice
 * after a crash, the receiver takes once (tells) or knows by its id (messages). */
#include <assert.h>

#include "base/base.h"
#include "base/limits.h"
#include "core/machine.h"
#include "core/retry.h"
#include "engine/engine.h"
#include "engine/writer.h"

/* While acknowledgements are awaited, a journal without a callback is looked at so often. */
#define ACK_POLL_MS 1

#define RETRY_MS_BASE 10
#define RETRY_MS_MAX 5000

struct row {
    uint64_t lsn;
    pawl_bytes record;
};

struct lot {
    struct pw_arena *arena;
    struct row rows[PW_RELAY_BATCH_MAX];
    size_t count;
    uint64_t upto;
    pawl_err err;
};

static bool collect(void *arg, pawl_bytes key, pawl_bytes value)
{
    struct lot *lot = arg;
    uint64_t lsn = key.size == 8 ? pw_get_u64(key.data) : PW_NEVER;
    if (lsn > lot->upto || lot->count == PW_COUNT(lot->rows))
        return false;
    const char *copy = pw_arena_text(lot->arena, value);
    if (copy == NULL) {
        lot->err = PAWL_E_NOMEM;
        return false;
    }
    lot->rows[lot->count++] = (struct row){ lsn, { copy, value.size } };
    return true;
}

/* Copies outbox rows from `from` up to `upto`; no transaction stays open. */
static pawl_err read_rows(struct pw_shard *shard, uint64_t from, uint64_t upto, struct lot *lot)
{
    const struct pw_tables *tables = &shard->tables;
    struct pw_txn *txn = NULL;
    struct pw_key key = { .size = 0 };
    lot->upto = upto;
    pw_key_u64(&key, from);
    pawl_err err = tables->store->ops->begin(tables->store, false, &txn);
    if (err != PAWL_OK)
        return err;
    err = tables->store->ops->scan(txn, PW_OUTBOX, pw_key_bytes(&key), collect, lot);
    tables->store->ops->abort(txn);
    return err != PAWL_OK ? err : lot->err;
}

/* --- journal ------------------------------------------------------------------------------ */

static pawl_err append_rows(struct pw_shard *shard)
{
    struct pw_relay *relay = &shard->relay;
    struct lot lot = { .arena = &relay->append_arena };
    pw_arena_reset(&relay->append_arena);
    pawl_err err = read_rows(shard, relay->next_lsn, atomic_load(&shard->committed_lsn), &lot);
    for (size_t i = 0; i < lot.count && err == PAWL_OK; i++) {
        err = shard->journal->ops->append(shard->journal, lot.rows[i].lsn, lot.rows[i].record);
        if (err == PAWL_OK)
            relay->next_lsn = lot.rows[i].lsn + 1;
    }
    return err;
}

/* Returns when it wants its next turn. */
static uint64_t journal_turn(struct pw_shard *shard)
{
    struct pw_relay *relay = &shard->relay;
    uint64_t acked = atomic_load(&shard->acked_lsn);
    pawl_err err = shard->journal->ops->acked(shard->journal, &acked);
    atomic_store(&shard->acked_lsn, acked);
    if (err == PAWL_OK)
        err = append_rows(shard);
    if (err != PAWL_OK && err != PAWL_E_BUSY)
        relay->next_lsn = acked + 1; /* from the lowest unacknowledged, the later ones too */
    bool waits = acked < atomic_load(&shard->outbox_lsn);
    return waits || err != PAWL_OK ? ACK_POLL_MS : PW_NEVER;
}

/* --- effects ------------------------------------------------------------------------------ */

static void on_answer(struct pw_request *request)
{
    struct pw_tell *tell = (struct pw_tell *)request;
    struct pw_relay *relay = tell->relay;
    if (atomic_fetch_sub(&relay->unanswered, 1) == 1)
        pw_poke(&relay->wake);
}

static void on_noted(struct pw_request *request)
{
    pw_free(request);
}

struct note {
    struct pw_request request; /* first */
    char machine[PW_NAME_MAX + 1];
    char id[PW_ID_MAX + 1];
    char text[PW_ERROR_MAX + 1];
};

/* A tell refused for good stands in the sender's history. */
static void note_refusal(struct pw_shard *shard, const struct pw_tell *tell)
{
    struct note *note = pw_alloc(sizeof(*note));
    const struct pw_request *request = &tell->request;
    pw_count(&shard->engine->metrics, tells_refused, 1);
    pw_log(&shard->engine->log, PAWL_WARN, "relay.refused", "from=%s/%s to=%s/%s: %s",
           tell->sender_machine, tell->sender_id, request->machine, request->id,
           request->answer.why.text);
    if (note == NULL)
        return;
    pw_print(note->machine, sizeof(note->machine), "%s", tell->sender_machine);
    pw_print(note->id, sizeof(note->id), "%s", tell->sender_id);
    pw_print(note->text, sizeof(note->text), "tell to %s/%s refused: %s", request->machine,
             request->id, request->answer.why.text);
    note->request.kind = PW_DO_NOTE;
    note->request.machine = note->machine;
    note->request.id = note->id;
    note->request.must = true;
    note->request.done = on_noted;
    note->request.input.why = note->text;
    pw_writer_push(shard, &note->request);
}

static void set_tell(struct pw_shard *shard, const struct pw_entity *sender,
                     const struct pw_effect *effect, struct pw_tell *tell)
{
    struct pw_request *request = &tell->request;
    *tell = (struct pw_tell){
        .relay = &shard->relay,
        .sender_machine = sender->machine_name,
        .sender_id = sender->id,
        .waits = true,
    };
    tell->to_shard = pw_shard_of(shard->engine, effect->id)->index;
    request->kind = PW_DO_STEP;
    request->is_tell = true;
    request->done = on_answer;
    request->machine = effect->machine;
    request->id = effect->id;
    request->from_shard = shard->index;
    request->tell_lsn = effect->lsn;
    request->tell_n = effect->n;
    request->input = (struct pw_input){
        .kind = effect->kind == PW_TELL ? PW_IN_SEND : PW_IN_CREATE,
        .machine = pw_machines_find(&shard->engine->machines, effect->machine),
        .id = effect->id,
        .key = effect->key,
        .trace = effect->trace,
        .message_id = "",
        .data = effect->data,
        .has_data = effect->data.size > 0,
        .delay_ms = effect->delay_ms,
    };
    if (request->input.machine == NULL)
        request->err = pw_fail(&request->answer.why, PAWL_E_USAGE, "no such machine");
    else if (effect->kind == PW_TELL)
        request->input.event = pw_machine_event(request->input.machine, effect->name);
    if (request->err == PAWL_OK && effect->kind == PW_TELL && request->input.event < 0)
        request->err =
            pw_fail(&request->answer.why, PAWL_E_USAGE, "no such event '%s'", effect->name);
}

static void emit(struct pw_shard *shard, const struct pw_entity *entity,
                 const struct pw_effect *effect)
{
    char id[48] = "";
    pw_print(id, sizeof(id), "%llu.%u", (unsigned long long)effect->lsn, effect->n);
    struct pw_pool *pool =
        entity->machine != NULL ? pw_pool_of(shard->engine, entity->machine) : NULL;
    const pawl_unit *unit = pool != NULL ? pw_pool_unit(pool) : NULL;
    pawl_message message = {
        .id = id,
        .machine = entity->machine_name,
        .entity = entity->id,
        .name = effect->name,
        .trace = effect->trace,
        .data = effect->data,
        .shard = shard->index,
    };
    pw_count(&shard->engine->metrics, emitted, 1);
    if (unit != NULL && unit->emitted != NULL)
        unit->emitted(unit->env, &message);
}

/* Sends the messages of a record, and adds its tells to the lot's. */
static pawl_err take_record(struct pw_shard *shard, const struct row *row, size_t *room)
{
    struct pw_relay *relay = &shard->relay;
    struct pw_record record;
    pawl_err err = pw_record_unpack(row->record, &shard->engine->machines, &relay->arena, &record);
    if (err != PAWL_OK)
        return err;
    for (size_t i = 0; i < record.entity.effects_count; i++) {
        const struct pw_effect *effect = &record.entity.effects[i];
        if (effect->lsn != record.lsn)
            continue; /* of an earlier record, sent with it */
        if (effect->kind == PW_EMIT) {
            emit(shard, &record.entity, effect);
            continue;
        }
        assert(*room > 0);
        set_tell(shard, &record.entity, effect, &relay->tells[relay->tells_count++]);
        (*room)--;
    }
    return PAWL_OK;
}

static pawl_err begin_lot(struct pw_shard *shard, uint64_t upto)
{
    struct pw_relay *relay = &shard->relay;
    struct lot lot = { .arena = &relay->arena };
    pw_arena_reset(&relay->arena);
    relay->tells_count = 0;
    pawl_err err = read_rows(shard, relay->sent_lsn + 1, upto, &lot);
    if (err != PAWL_OK)
        return err;
    size_t room = lot.count * PW_EFFECTS_MAX;
    relay->tells = pw_arena_alloc(&relay->arena, room * sizeof(*relay->tells));
    if (relay->tells == NULL)
        return PAWL_E_NOMEM;
    for (size_t i = 0; i < lot.count && err == PAWL_OK; i++) {
        err = take_record(shard, &lot.rows[i], &room);
        if (err == PAWL_E_CORRUPT) {
            pw_log(&shard->engine->log, PAWL_ERROR, "relay.corrupt",
                   "shard=%u lsn=%llu: an outbox row cannot be read, passed over", shard->index,
                   (unsigned long long)lot.rows[i].lsn);
            err = PAWL_OK;
        }
    }
    if (err == PAWL_OK)
        relay->lot_lsn = lot.count == PW_COUNT(lot.rows) ? lot.rows[lot.count - 1].lsn : upto;
    return err;
}

/* The tell before this one, of those that are sent in this round to the same shard. */
static void chain(const struct pw_relay *relay, size_t i)
{
    struct pw_tell *tell = &relay->tells[i];
    tell->request.before_lsn = 0;
    for (size_t j = i; j-- > 0;) {
        const struct pw_tell *before = &relay->tells[j];
        if (before->waits && before->to_shard == tell->to_shard && before->request.err == PAWL_OK) {
            tell->request.before_lsn = before->request.tell_lsn;
            tell->request.before_n = before->request.tell_n;
            return;
        }
    }
}

/* How many are under way. */
static size_t send_waiting(struct pw_shard *shard)
{
    struct pw_relay *relay = &shard->relay;
    size_t count = 0;
    for (size_t i = 0; i < relay->tells_count; i++) {
        struct pw_tell *tell = &relay->tells[i];
        bool impossible = tell->waits && tell->request.err != PAWL_OK;
        if (impossible) {
            note_refusal(shard, tell);
            tell->waits = false;
        }
        if (tell->waits) {
            chain(relay, i);
            count++;
        }
    }
    atomic_store(&relay->unanswered, count);
    for (size_t i = 0; i < relay->tells_count; i++) {
        struct pw_tell *tell = &relay->tells[i];
        if (!tell->waits)
            continue;
        struct pw_shard *to = &shard->engine->shards[tell->to_shard];
        pw_writer_push(to, &tell->request);
    }
    return count;
}

/* Looks at the answers. True: all are good or refused for good. */
static bool settle_lot(struct pw_shard *shard)
{
    struct pw_relay *relay = &shard->relay;
    bool all = true;
    for (size_t i = 0; i < relay->tells_count; i++) {
        struct pw_tell *tell = &relay->tells[i];
        if (!tell->waits)
            continue;
        pawl_err err = tell->request.err;
        tell->waits = pawl_err_class_of(err) == PAWL_CLASS_TRANSIENT;
        if (err == PAWL_OK)
            pw_count(&shard->engine->metrics, told, 1);
        else if (!tell->waits)
            note_refusal(shard, tell);
        all = all && !tell->waits;
        tell->request.err = PAWL_OK;
    }
    return all;
}

static uint64_t end_lot(struct pw_shard *shard)
{
    struct pw_relay *relay = &shard->relay;
    relay->sent_lsn = relay->lot_lsn;
    relay->lot_lsn = 0;
    relay->failures = 0;
    atomic_store(&shard->trim_lsn, relay->sent_lsn);
    pw_poke(&shard->writer.wake);
    return 0;
}

/* Waits before the lot, or the reading of one, is tried again. */
static uint64_t retry_lot(struct pw_shard *shard)
{
    struct pw_relay *relay = &shard->relay;
    relay->failures++;
    uint64_t delay_ms = pw_backoff_ms(RETRY_MS_BASE, RETRY_MS_MAX, 0, relay->failures, 0);
    relay->retry_ms =
        pw_time_add(shard->engine->clock->monotonic_ms(shard->engine->clock), delay_ms);
    return delay_ms;
}

static uint64_t send_lot(struct pw_shard *shard)
{
    return send_waiting(shard) > 0 ? PW_NEVER : end_lot(shard); /* the last answer wakes us */
}

static uint64_t new_lot(struct pw_shard *shard, uint64_t upto)
{
    pawl_err err = begin_lot(shard, upto);
    if (err == PAWL_OK)
        return send_lot(shard);
    if (shard->relay.failures == 0)
        pw_log(&shard->engine->log, PAWL_WARN, "relay.read", "shard=%u: %s, trying again",
               shard->index, pawl_err_text(err));
    return retry_lot(shard);
}

static uint64_t effects_turn(struct pw_shard *shard)
{
    struct pw_relay *relay = &shard->relay;
    uint64_t now_ms = shard->engine->clock->monotonic_ms(shard->engine->clock);
    uint64_t journalled = shard->journal != NULL ? atomic_load(&shard->acked_lsn)
                                                 : atomic_load(&shard->committed_lsn);
    if (relay->retry_ms > now_ms)
        return relay->retry_ms - now_ms;
    if (relay->lot_lsn == 0)
        return journalled > relay->sent_lsn && atomic_load(&shard->outbox_lsn) > relay->sent_lsn
                   ? new_lot(shard, journalled)
                   : PW_NEVER;
    if (atomic_load(&relay->unanswered) > 0)
        return PW_NEVER;
    if (relay->resend) {
        relay->resend = false;
        return send_lot(shard);
    }
    if (settle_lot(shard))
        return end_lot(shard);
    relay->resend = true;
    return retry_lot(shard);
}

uint64_t pw_relay_turn(struct pw_shard *shard)
{
    uint64_t journal_ms = shard->journal != NULL ? journal_turn(shard) : PW_NEVER;
    uint64_t effects_ms = effects_turn(shard);
    return journal_ms < effects_ms ? journal_ms : effects_ms;
}

void pw_relay_init(struct pw_shard *shard)
{
    struct pw_relay *relay = &shard->relay;
    pw_wake_init(&relay->wake);
    pw_arena_init(&relay->arena, (size_t)256 * 1024);
    pw_arena_init(&relay->append_arena, (size_t)256 * 1024);
}

void pw_relay_begin(struct pw_shard *shard, uint64_t sent_lsn, uint64_t committed_lsn,
                    uint64_t outbox_lsn)
{
    struct pw_relay *relay = &shard->relay;
    relay->sent_lsn = sent_lsn;
    relay->next_lsn = sent_lsn + 1;
    atomic_store(&shard->trim_lsn, sent_lsn);
    atomic_store(&shard->acked_lsn, sent_lsn);
    atomic_store(&shard->committed_lsn, committed_lsn);
    atomic_store(&shard->outbox_lsn, outbox_lsn);
}

void pw_relay_fini(struct pw_shard *shard)
{
    struct pw_relay *relay = &shard->relay;
    pw_wake_fini(&relay->wake);
    pw_arena_fini(&relay->arena);
    pw_arena_fini(&relay->append_arena);
}
