/* SPDX-License-Identifier: Apache-2.0
 *
 * What a change sends besides itself, after its record is journalled (or, without a journal,
 * committed): messages for others and dead letters to the journal's adapter, messages to their
 * listener, tells to the writers of their targets. A lot of records at a time; when all of it is
 * answered, the writer may trim it. Relay thread. What is sent twice after a crash, the receiver
 * takes once (tells), replaces (letters), or knows by its id (messages). */
#include <assert.h>

#include "base/base.h"
#include "base/limits.h"
#include "core/machine.h"
#include "core/retry.h"
#include "engine/engine.h"
#include "engine/writer.h"

#define RETRY_MS_BASE 10
#define RETRY_MS_MAX 5000
/* Answers poke the relay; this is for those that never come. */
#define POSTS_LOOK_MS 100

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

/* Room for it is there: each effect of the lot has a place, and a tell has no other post. */
static void add_post(struct pw_shard *shard, enum pw_post_kind kind, const struct pw_record *record,
                     const struct pw_effect *effect, pawl_bytes data)
{
    struct pw_lot_effects *lot = &shard->relay.lot;
    const struct pw_entity *entity = &record->entity;
    lot->posts[lot->posts_count++] = (struct pw_post){
        .kind = kind,
        .n = effect != NULL ? effect->n : 0,
        .lsn = record->lsn,
        .epoch = kind == PW_POST_NO_LETTER ? record->freed : entity->epoch,
        .machine = entity->machine_name,
        .id = entity->id,
        .name = effect != NULL ? effect->name : "",
        .trace = effect != NULL ? effect->trace : entity->trace,
        .why = entity->error,
        .data = data,
    };
}

/* A tell refused for good becomes a dead letter of its sender: the record that told it. */
static void add_refusal_letter(struct pw_shard *shard, const struct pw_tell *tell, const char *text)
{
    struct pw_lot_effects *lot = &shard->relay.lot;
    if (shard->journal == NULL)
        return;
    const char *why = pw_arena_text(&lot->arena, pawl_str(text));
    pw_count(&shard->engine->metrics, letters, 1);
    add_post(shard, PW_POST_LETTER, tell->record, NULL, tell->bytes);
    lot->posts[lot->posts_count - 1].n = tell->request.tell_n + 1;
    lot->posts[lot->posts_count - 1].why = why != NULL ? why : "";
}

/* A tell refused for good stands in the sender's history. */
static void note_refusal(struct pw_shard *shard, const struct pw_tell *tell)
{
    struct note *note = pw_alloc(sizeof(*note));
    const struct pw_request *request = &tell->request;
    const struct pw_entity *sender = &tell->record->entity;
    char text[sizeof(note->text)] = "";
    pw_print(text, sizeof(text), "tell to %s/%s refused: %s", request->machine, request->id,
             request->answer.why.text);
    pw_count(&shard->engine->metrics, tells_refused, 1);
    pw_log(&shard->engine->log, PAWL_WARN, "relay.refused", "from=%s/%s to=%s/%s: %s",
           sender->machine_name, sender->id, request->machine, request->id,
           request->answer.why.text);
    add_refusal_letter(shard, tell, text);
    if (note == NULL)
        return;
    pw_print(note->machine, sizeof(note->machine), "%s", sender->machine_name);
    pw_print(note->id, sizeof(note->id), "%s", sender->id);
    pw_print(note->text, sizeof(note->text), "%s", text);
    note->request.kind = PW_DO_NOTE;
    note->request.machine = note->machine;
    note->request.id = note->id;
    note->request.must = true;
    note->request.done = on_noted;
    note->request.input.why = note->text;
    pw_writer_push(shard, &note->request);
}

static void set_tell(struct pw_shard *shard, const struct pw_record *record, pawl_bytes bytes,
                     const struct pw_effect *effect, struct pw_tell *tell)
{
    struct pw_request *request = &tell->request;
    *tell = (struct pw_tell){
        .relay = &shard->relay,
        .record = record,
        .bytes = bytes,
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

/* --- a lot -------------------------------------------------------------------------------- */

/* The records of a lot that have something to send. */
struct lot {
    struct pw_outbox_row rows[PW_RELAY_BATCH_MAX];
    size_t rows_count;
    struct pw_record *records[PW_RELAY_BATCH_MAX];
    pawl_bytes bytes[PW_RELAY_BATCH_MAX]; /* of the records */
    size_t count;
    size_t effects;
};

static bool sends(const struct pw_shard *shard, const struct pw_heads *heads)
{
    return heads->effects ||
           (shard->journal != NULL && (heads->parked || heads->freed != 0 || heads->forget));
}

static pawl_err unpack_row(struct pw_shard *shard, struct lot *lot, const struct pw_outbox_row *row)
{
    struct pw_arena *arena = &shard->relay.lot.arena;
    struct pw_heads heads;
    pawl_err err = pw_record_heads(row->record, &heads);
    if (err != PAWL_OK || !sends(shard, &heads))
        return err;
    struct pw_record *record = pw_arena_alloc(arena, sizeof(*record));
    if (record == NULL)
        return PAWL_E_NOMEM;
    err = pw_record_unpack(row->record, &shard->engine->machines, arena, record);
    if (err != PAWL_OK)
        return err;
    lot->bytes[lot->count] = row->record;
    lot->records[lot->count++] = record;
    lot->effects += record->entity.effects_count;
    return PAWL_OK;
}

static pawl_err unpack_rows(struct pw_shard *shard, struct lot *lot)
{
    for (size_t i = 0; i < lot->rows_count; i++) {
        pawl_err err = unpack_row(shard, lot, &lot->rows[i]);
        if (err == PAWL_E_CORRUPT)
            pw_log(&shard->engine->log, PAWL_ERROR, "relay.corrupt",
                   "shard=%u lsn=%llu: an outbox row cannot be read, passed over", shard->index,
                   (unsigned long long)lot->rows[i].lsn);
        else if (err != PAWL_OK)
            return err;
    }
    return PAWL_OK;
}

/* A parked entity's letter is its record. It replaces itself when it is sent again. */
static void add_letters(struct pw_shard *shard, const struct pw_record *record, pawl_bytes bytes)
{
    if (shard->journal == NULL || record->forget)
        return;
    if (record->freed != 0)
        add_post(shard, PW_POST_NO_LETTER, record, NULL, (pawl_bytes){ "", 0 });
    if (!record->entity.parked || record->tombstone)
        return;
    pw_count(&shard->engine->metrics, letters, 1);
    add_post(shard, PW_POST_LETTER, record, NULL, bytes);
}

struct forgotten {
    uint64_t version;
    uint64_t seq; /* 0: the subject has another record by now */
};

static void on_last(void *arg, const struct pw_entry *entry)
{
    struct forgotten *forgotten = arg;
    if (entry->kind == PW_ENTRY_RECORD && entry->tombstone && entry->lsn == forgotten->version)
        forgotten->seq = entry->seq;
}

/* A tombstone's time is over: it goes from the stream, if it is still there. */
static pawl_err forget(struct pw_shard *shard, const struct pw_record *record)
{
    struct forgotten forgotten = { .version = record->freed };
    struct pw_journal *journal = shard->journal;
    pawl_err err = journal->ops->last(journal, record->entity.machine_name, record->entity.id,
                                      on_last, &forgotten);
    if (err == PAWL_E_NOT_FOUND || (err == PAWL_OK && forgotten.seq == 0))
        return PAWL_OK;
    return err == PAWL_OK ? journal->ops->remove(journal, forgotten.seq) : err;
}

static void take_effects(struct pw_shard *shard, const struct pw_record *record, pawl_bytes bytes)
{
    struct pw_lot_effects *lot = &shard->relay.lot;
    for (size_t i = 0; i < record->entity.effects_count; i++) {
        const struct pw_effect *effect = &record->entity.effects[i];
        if (effect->lsn != record->lsn)
            continue; /* of an earlier record, sent with it */
        if (effect->kind != PW_EMIT) {
            set_tell(shard, record, bytes, effect, &lot->tells[lot->tells_count++]);
            continue;
        }
        emit(shard, &record->entity, effect);
        if (shard->journal != NULL)
            add_post(shard, PW_POST_EVENT, record, effect, effect->data);
    }
}

static pawl_err take_record(struct pw_shard *shard, const struct pw_record *record,
                            pawl_bytes bytes)
{
    if (record->forget && shard->journal != NULL)
        return forget(shard, record);
    add_letters(shard, record, bytes);
    take_effects(shard, record, bytes);
    return PAWL_OK;
}

/* Room for what the lot's records have to send: letters are two a record at most. */
static pawl_err make_room(struct pw_lot_effects *to, const struct lot *lot)
{
    size_t posts = lot->effects + 2 * lot->count;
    to->tells_count = to->posts_count = to->posts_sent = 0;
    to->tells = pw_arena_alloc(&to->arena, lot->effects * sizeof(*to->tells));
    to->posts = pw_arena_alloc(&to->arena, posts * sizeof(*to->posts));
    return to->tells != NULL && to->posts != NULL ? PAWL_OK : PAWL_E_NOMEM;
}

static pawl_err begin_lot(struct pw_shard *shard, uint64_t upto)
{
    struct pw_relay *relay = &shard->relay;
    struct lot lot = { .count = 0 };
    bool more = false;
    pw_arena_reset(&relay->lot.arena);
    pawl_err err = pw_outbox_read(shard, &relay->lot.arena, relay->sent_lsn + 1, upto, lot.rows,
                                  PW_COUNT(lot.rows), &lot.rows_count, &more);
    if (err == PAWL_OK)
        err = unpack_rows(shard, &lot);
    if (err == PAWL_OK)
        err = make_room(&relay->lot, &lot);
    for (size_t i = 0; i < lot.count && err == PAWL_OK; i++)
        err = take_record(shard, lot.records[i], lot.bytes[i]);
    if (err == PAWL_OK)
        relay->lot.upto_lsn = more ? lot.rows[lot.rows_count - 1].lsn : upto;
    return err;
}

/* The tell before this one, of those that are sent in this round to the same shard. */
static void chain(const struct pw_relay *relay, size_t i)
{
    struct pw_tell *tell = &relay->lot.tells[i];
    tell->request.before_lsn = 0;
    for (size_t j = i; j-- > 0;) {
        const struct pw_tell *before = &relay->lot.tells[j];
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
    for (size_t i = 0; i < relay->lot.tells_count; i++) {
        struct pw_tell *tell = &relay->lot.tells[i];
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
    for (size_t i = 0; i < relay->lot.tells_count; i++) {
        struct pw_tell *tell = &relay->lot.tells[i];
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
    for (size_t i = 0; i < relay->lot.tells_count; i++) {
        struct pw_tell *tell = &relay->lot.tells[i];
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

/* --- posts -------------------------------------------------------------------------------- */

/* Posts what there is room for. PAWL_OK with *all: every one is sent and answered. PAWL_E_IO: all
 * are to be sent again. */
static pawl_err post_some(struct pw_shard *shard, bool *all)
{
    struct pw_lot_effects *lot = &shard->relay.lot;
    struct pw_journal *journal = shard->journal;
    size_t waiting = 0;
    *all = lot->posts_count == 0;
    if (*all)
        return PAWL_OK;
    pawl_err err = journal->ops->posted(journal, &waiting);
    while (err == PAWL_OK && lot->posts_sent < lot->posts_count) {
        err = journal->ops->post(journal, &lot->posts[lot->posts_sent]);
        lot->posts_sent += err == PAWL_OK ? 1 : 0;
        waiting += err == PAWL_OK ? 1 : 0;
    }
    *all = err == PAWL_OK && waiting == 0;
    if (err == PAWL_E_BUSY)
        return PAWL_OK;
    if (err != PAWL_OK)
        lot->posts_sent = 0;
    return err;
}

/* --- a turn ------------------------------------------------------------------------------- */

static uint64_t end_lot(struct pw_shard *shard)
{
    struct pw_relay *relay = &shard->relay;
    relay->sent_lsn = relay->lot.upto_lsn;
    relay->lot.upto_lsn = 0;
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

static uint64_t new_lot(struct pw_shard *shard, uint64_t upto)
{
    pawl_err err = begin_lot(shard, upto);
    if (err == PAWL_OK) {
        (void)send_waiting(shard); /* the last answer wakes us */
        return 0;
    }
    if (shard->relay.failures == 0)
        pw_log(&shard->engine->log, PAWL_WARN, "relay.read", "shard=%u: %s, trying again",
               shard->index, pawl_err_text(err));
    return retry_lot(shard);
}

/* Both kinds go on by themselves; the lot ends when both are through. */
static uint64_t settle(struct pw_shard *shard)
{
    struct pw_relay *relay = &shard->relay;
    size_t posts_count = relay->lot.posts_count;
    bool posted = false;
    if (post_some(shard, &posted) != PAWL_OK)
        return retry_lot(shard); /* what the journal has is logged by its keeper */
    if (atomic_load(&relay->unanswered) > 0)
        return posted ? PW_NEVER : POSTS_LOOK_MS;
    if (relay->resend) {
        relay->resend = false;
        return send_waiting(shard) > 0 ? PW_NEVER : 0;
    }
    if (!settle_lot(shard)) {
        relay->resend = true;
        return retry_lot(shard);
    }
    if (relay->lot.posts_count > posts_count)
        return 0; /* letters of what was refused just now */
    return posted ? end_lot(shard) : POSTS_LOOK_MS;
}

uint64_t pw_effects_turn(struct pw_shard *shard)
{
    struct pw_relay *relay = &shard->relay;
    uint64_t now_ms = shard->engine->clock->monotonic_ms(shard->engine->clock);
    uint64_t journalled = shard->journal != NULL ? atomic_load(&shard->acked_lsn)
                                                 : atomic_load(&shard->committed_lsn);
    if (relay->retry_ms > now_ms)
        return relay->retry_ms - now_ms;
    if (relay->lot.upto_lsn != 0)
        return settle(shard);
    bool some = journalled > relay->sent_lsn && atomic_load(&shard->outbox_lsn) > relay->sent_lsn;
    return some ? new_lot(shard, journalled) : PW_NEVER;
}
