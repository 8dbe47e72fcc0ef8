/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeps the tail of the shard's journal: finds out what the stream is, takes over what the store
 * does not know of it, opens the ownership, and appends the outbox in lsn order. Whenever
 * something is not as it was left (a refused or unanswered append, a connection that came back, a
 * stream that was purged, cut or made anew) it begins with a look at the stream. Relay thread; what
 * changes the store goes to the writer as requests. */
#include <assert.h>

#include "base/base.h"
#include "base/limits.h"
#include "core/retry.h"
#include "engine/engine.h"
#include "engine/pool.h"
#include "engine/writer.h"

#define RETRY_MS_BASE 50
#define RETRY_MS_MAX 2000
/* Rows are read when so many fit the window: else each answer would read a few again. */
#define ROOM_MIN 64
/* Answers poke the relay; this is for those that never come. */
#define LOOK_MS 50

static uint64_t mono_ms(const struct pw_shard *shard)
{
    return shard->engine->clock->monotonic_ms(shard->engine->clock);
}

static const struct pw_journal_ops *ops_of(const struct pw_shard *shard)
{
    return shard->journal->ops;
}

/* --- requests to the writer --------------------------------------------------------------- */

struct kept {
    struct pw_request request; /* first */
    struct pw_shard *shard;
};

static void on_answer(struct pw_request *request)
{
    struct pw_shard *shard = ((struct kept *)request)->shard;
    if (request->err != PAWL_OK)
        pw_log(&shard->engine->log, PAWL_ERROR, "journal.take", "shard=%u: %s", shard->index,
               request->answer.why.text);
    if (atomic_fetch_sub(&shard->relay.keeper.unanswered, 1) == 1)
        pw_poke(&shard->relay.wake);
}

struct pw_request *pw_keeper_request(struct pw_shard *shard, enum pw_request_kind kind)
{
    struct pw_keeper *keeper = &shard->relay.keeper;
    struct kept *kept = pw_arena_alloc(&keeper->arena, sizeof(*kept));
    if (kept == NULL)
        return NULL;
    *kept = (struct kept){ .shard = shard };
    kept->request.kind = kind;
    kept->request.must = true;
    kept->request.done = on_answer;
    kept->request.last = keeper->last;
    kept->request.node.next = NULL;
    if (keeper->first == NULL)
        keeper->first = &kept->request;
    else
        keeper->newest->node.next = &kept->request.node;
    keeper->newest = &kept->request;
    return &kept->request;
}

void pw_keeper_send(struct pw_shard *shard)
{
    struct pw_keeper *keeper = &shard->relay.keeper;
    struct pw_request *next = NULL;
    size_t count = 0;
    for (struct pw_request *r = keeper->first; r != NULL; r = (struct pw_request *)r->node.next)
        count++;
    (void)atomic_fetch_add(&keeper->unanswered, count);
    for (struct pw_request *r = keeper->first; r != NULL; r = next) {
        next = (struct pw_request *)r->node.next;
        pw_writer_push(shard, r);
    }
    keeper->first = NULL;
}

/* A lot's memory is free again when all of it is answered. */
static bool waits(struct pw_shard *shard)
{
    struct pw_keeper *keeper = &shard->relay.keeper;
    if (atomic_load(&keeper->unanswered) > 0)
        return true;
    pw_arena_reset(&keeper->arena);
    keeper->first = NULL;
    return false;
}

static pawl_err stand(struct pw_shard *shard, uint32_t fence_min, bool reconciling)
{
    struct pw_request *request = pw_keeper_request(shard, PW_DO_JOURNAL);
    if (request == NULL)
        return PAWL_E_NOMEM;
    request->stand = (struct pw_stand){ .fence_min = fence_min, .reconciling = reconciling };
    pw_keeper_send(shard);
    return PAWL_OK;
}

/* --- what others are told ----------------------------------------------------------------- */

static void tell_position(struct pw_shard *shard, uint64_t seq)
{
    struct pw_position *position = &shard->position;
    pthread_mutex_lock(&position->lock);
    position->known = true;
    position->created = shard->relay.keeper.state.created;
    position->seq = seq;
    position->lsn = atomic_load(&shard->acked_lsn);
    pthread_mutex_unlock(&position->lock);
}

static void tell_health(struct pw_shard *shard, bool live, const char *error)
{
    struct pw_position *position = &shard->position;
    pthread_mutex_lock(&position->lock);
    position->live = live;
    pw_print(position->error, sizeof(position->error), "%s", error);
    pthread_mutex_unlock(&position->lock);
}

void pw_keeper_position(struct pw_shard *shard, struct pw_meta *meta)
{
    struct pw_position *position = &shard->position;
    pthread_mutex_lock(&position->lock);
    if (position->known) {
        meta->journal_created = position->created;
        meta->journal_seq = position->seq;
        meta->journal_lsn = position->lsn;
    }
    pthread_mutex_unlock(&position->lock);
}

/* Only grows: what is journalled stays so, also while a part of it is appended again. */
static void raise_acked(struct pw_shard *shard, uint64_t lsn)
{
    if (lsn <= atomic_load(&shard->acked_lsn))
        return;
    pthread_mutex_lock(&shard->position.lock);
    atomic_store(&shard->acked_lsn, lsn);
    pthread_cond_broadcast(&shard->journalled);
    pthread_mutex_unlock(&shard->position.lock);
}

/* --- failures ----------------------------------------------------------------------------- */

static uint64_t retry(struct pw_shard *shard)
{
    struct pw_keeper *keeper = &shard->relay.keeper;
    keeper->failures++;
    uint64_t delay_ms = pw_backoff_ms(RETRY_MS_BASE, RETRY_MS_MAX, 0, keeper->failures, 0);
    keeper->retry_ms = pw_time_add(mono_ms(shard), delay_ms);
    return delay_ms;
}

static void print_refusal(pawl_why *why, const char *refusal)
{
    if (refusal[0] != '\0')
        pw_print(why->text, sizeof(why->text), "the server takes no record: %s", refusal);
}

/* Said once until it is good again, or is another failure. */
static uint64_t fail(struct pw_shard *shard, pawl_err err, const pawl_why *why)
{
    struct pw_keeper *keeper = &shard->relay.keeper;
    const char *text = why->text[0] != '\0' ? why->text : pawl_err_text(err);
    bool same = keeper->said && strcmp(shard->position.error, text) == 0; /* ours to write */
    if (!same)
        pw_log(&shard->engine->log, err == PAWL_E_CONFIG ? PAWL_ERROR : PAWL_WARN, "journal.away",
               "shard=%u: %s; records wait in the outbox, trying again", shard->index, text);
    keeper->said = true;
    keeper->tail = PW_TAIL_LOOK;
    tell_health(shard, false, text);
    return retry(shard);
}

static void lose(struct pw_shard *shard, uint32_t fence)
{
    pw_log(&shard->engine->log, PAWL_ERROR, "journal.lost",
           "shard=%u: another owner opened the journal (fence %u); nothing is served here any more",
           shard->index, fence);
    shard->relay.keeper.tail = PW_TAIL_LOST;
    tell_health(shard, false, "another owner has opened the journal");
    atomic_store(&shard->lost, true);
}

/* --- look --------------------------------------------------------------------------------- */

static void be_well(struct pw_shard *shard)
{
    struct pw_keeper *keeper = &shard->relay.keeper;
    if (keeper->said)
        pw_log(&shard->engine->log, PAWL_INFO, "journal.resumed",
               "shard=%u: records are appended again", shard->index);
    keeper->said = false;
    keeper->refused = false;
    tell_health(shard, true, "");
}

/* Back to where it was: the stream is the same, with all that was acknowledged. */
static void resume(struct pw_shard *shard)
{
    struct pw_keeper *keeper = &shard->relay.keeper;
    pw_count(&shard->engine->metrics, resumed, 1);
    if (!keeper->refused)
        be_well(shard);
    keeper->append_lsn = atomic_load(&shard->acked_lsn) + 1;
    keeper->compare_ms = 0; /* as soon as nothing is under way */
    keeper->tail = PW_TAIL_LIVE;
}

/* From where the stream is read: behind what is known of it, or all when it is another one, or was
 * cut. */
static void begin_catching(struct pw_shard *shard)
{
    struct pw_keeper *keeper = &shard->relay.keeper;
    const struct pw_position *at = &shard->position; /* ours to write */
    bool same = at->created == keeper->state.created && keeper->state.last_seq >= at->seq;
    if (!same && at->created != 0) {
        pw_log(&shard->engine->log, PAWL_WARN, "journal.cut",
               "shard=%u: the stream was %s; what it lacks is appended again from the store",
               shard->index, at->created != keeper->state.created ? "made anew" : "rolled back");
        keeper->reconcile = true;
    }
    keeper->read_seq = same ? at->seq + 1 : 1;
    keeper->top_lsn = at->lsn;
    keeper->last = (struct pw_last_opening){ .fence = 0 };
    keeper->taken = 0;
    keeper->tail = PW_TAIL_CATCH;
}

static uint64_t look(struct pw_shard *shard)
{
    struct pw_keeper *keeper = &shard->relay.keeper;
    struct pw_journal_state state;
    pawl_why why = { "" };
    pawl_err err = ops_of(shard)->look(shard->journal, &state, &why);
    if (err == PAWL_E_BUSY)
        return LOOK_MS;
    if (err != PAWL_OK)
        return fail(shard, err, &why);
    bool opened = shard->position.known; /* ours to write */
    bool same =
        opened && state.created == keeper->state.created && state.last_seq >= shard->position.seq;
    uint32_t fence = keeper->fence;
    keeper->state = state;
    if (opened && state.fence > fence) {
        lose(shard, state.fence);
        return PW_NEVER;
    }
    if (same && state.fence == fence && !keeper->reconcile)
        resume(shard);
    else
        begin_catching(shard);
    return 0;
}

/* --- catch up ----------------------------------------------------------------------------- */

/* True: the store made it, or has taken it before. */
static bool is_known(struct pw_shard *shard, uint64_t lsn)
{
    const struct pw_store_ops *ops = shard->tables.store->ops;
    struct pw_key key = { .size = 0 };
    pawl_bytes value = { NULL, 0 };
    struct pw_txn *txn = NULL;
    if (lsn <= shard->position.lsn)
        return true;
    if (ops->begin(shard->tables.store, false, &txn) != PAWL_OK)
        return false; /* then it is taken again, which changes nothing */
    pw_key_u64(&key, lsn);
    bool known = ops->get(txn, PW_OUTBOX, pw_key_bytes(&key), &value) == PAWL_OK;
    ops->abort(txn);
    return known;
}

/* Written by an owner who had lost the shard: below the last opening, behind it. */
static bool is_void(const struct pw_keeper *keeper, const struct pw_entry *entry)
{
    return entry->kind == PW_ENTRY_VOID ||
           (entry->seq > keeper->state.fence_seq && entry->lsn >> 32 < keeper->state.fence);
}

struct caught {
    struct pw_shard *shard;
    pawl_err err;
};

static void catch_record(struct caught *caught, const struct pw_entry *entry)
{
    struct pw_shard *shard = caught->shard;
    struct pw_keeper *keeper = &shard->relay.keeper;
    if (is_void(keeper, entry)) {
        pw_count(&shard->engine->metrics, void_records, 1);
        keeper->reconcile = true;
        return;
    }
    if (entry->lsn > keeper->top_lsn)
        keeper->top_lsn = entry->lsn;
    if (is_known(shard, entry->lsn))
        return;
    struct pw_request *request = pw_keeper_request(shard, PW_DO_TAKE);
    const char *copy = request != NULL ? pw_arena_text(&keeper->arena, entry->record) : NULL;
    if (copy == NULL) {
        caught->err = PAWL_E_NOMEM;
        return;
    }
    request->record = (pawl_bytes){ copy, entry->record.size };
    keeper->taken++;
}

static void on_caught(void *arg, const struct pw_entry *entry)
{
    struct caught *caught = arg;
    struct pw_keeper *keeper = &caught->shard->relay.keeper;
    if (entry->kind == PW_ENTRY_FENCE && entry->seq == keeper->state.fence_seq)
        keeper->last = (struct pw_last_opening){ keeper->state.fence, entry->lsn };
    else if (entry->kind == PW_ENTRY_MARK && entry->lsn > keeper->marked_lsn)
        keeper->marked_lsn = entry->lsn;
    else if (entry->kind == PW_ENTRY_RECORD || entry->kind == PW_ENTRY_VOID)
        catch_record(caught, entry);
}

static void say_progress(struct pw_shard *shard, bool through)
{
    struct pw_keeper *keeper = &shard->relay.keeper;
    uint64_t now_ms = mono_ms(shard);
    if (keeper->taken == 0 || (!through && keeper->progress_ms > now_ms))
        return;
    keeper->progress_ms = pw_time_add(now_ms, 1000);
    pw_log(&shard->engine->log, PAWL_WARN, "journal.taken",
           "shard=%u: the store is older than its journal; %llu records taken over, at %llu of "
           "%llu%s",
           shard->index, (unsigned long long)keeper->taken,
           (unsigned long long)keeper->read_seq - 1, (unsigned long long)keeper->state.last_seq,
           through ? ": done" : "");
}

static uint64_t catch_up(struct pw_shard *shard)
{
    struct pw_keeper *keeper = &shard->relay.keeper;
    struct caught caught = { .shard = shard, .err = PAWL_OK };
    pawl_why why = { "" };
    bool through = false;
    uint64_t next_seq = keeper->read_seq;
    if (waits(shard))
        return PW_NEVER;
    pawl_err err = ops_of(shard)->read(shard->journal, keeper->read_seq, false, PW_READ_BATCH_MAX,
                                       on_caught, &caught, &next_seq, &through);
    if (err == PAWL_OK)
        err = caught.err;
    if (err != PAWL_OK) {
        pw_keeper_send(shard); /* what was read may be taken: it is in order */
        return fail(shard, err, &why);
    }
    pw_keeper_send(shard);
    keeper->read_seq = next_seq;
    say_progress(shard, through);
    if (through)
        keeper->tail = PW_TAIL_OPEN;
    return 0;
}

/* --- open --------------------------------------------------------------------------------- */

static pawl_err pack_mark(struct pw_shard *shard, pawl_bytes *mark)
{
    const struct pw_mark packed = { .sent_lsn = shard->relay.sent_lsn,
                                    .time_ms = pw_shard_now(shard) };
    pw_arena_reset(&shard->relay.arena);
    return pw_mark_pack(&packed, &shard->relay.arena, mark);
}

/* Effects up to the last mark are sent; the outbox is appended from behind what was journalled:
 * what the stream has lost of that is made again, under new lsns. */
static void begin_appending(struct pw_shard *shard, uint64_t seq)
{
    struct pw_relay *relay = &shard->relay;
    struct pw_keeper *keeper = &relay->keeper;
    pw_count(&shard->engine->metrics, openings, 1);
    if (keeper->marked_lsn > relay->sent_lsn && keeper->marked_lsn <= keeper->top_lsn &&
        relay->lot.upto_lsn == 0) {
        relay->sent_lsn = keeper->marked_lsn;
        atomic_store(&shard->trim_lsn, relay->sent_lsn);
    }
    /* The store's own rows above what was acknowledged may have gaps in the stream: they are
     * appended again. Not so when the journal knew better: then older ones would replace newer
     * ones, and what the stream lacks is found by its heads. */
    raise_acked(shard, keeper->taken > 0 ? keeper->top_lsn : shard->position.lsn);
    keeper->reconcile = keeper->reconcile || keeper->taken > 0;
    atomic_store(&shard->opened_lsn, keeper->top_lsn);
    keeper->append_lsn = atomic_load(&shard->acked_lsn) + 1;
    keeper->state.last_seq = seq;
    keeper->failures = 0;
    keeper->said = false;
    keeper->refused = false;
    keeper->mark_ms = pw_time_add(mono_ms(shard), PW_MARK_MS);
    tell_position(shard, seq);
    tell_health(shard, true, "");
    pw_log(&shard->engine->log, PAWL_INFO, "journal.open",
           "shard=%u fence=%u seq=%llu: records are appended", shard->index, keeper->fence,
           (unsigned long long)seq);
    atomic_store(&shard->list_wanted, true); /* what came before the opening does not come again */
    atomic_store(&shard->serving, true);
    pw_poke(&shard->writer.wake);
    pw_poke(&shard->subscriber_wake);
}

/* What the stream lacks is looked for when it is known to have been cut, or its count says so. */
static pawl_err begin_living(struct pw_shard *shard)
{
    struct pw_keeper *keeper = &shard->relay.keeper;
    uint64_t expected = 0;
    struct pw_journal_state state = { .created = 0 };
    pawl_why why = { "" };
    pawl_err err = pw_seed_expected(shard, &expected);
    if (err == PAWL_OK && !keeper->reconcile)
        err = ops_of(shard)->look(shard->journal, &state, &why);
    if (err != PAWL_OK)
        return err;
    keeper->compare_ms = pw_time_add(mono_ms(shard), shard->engine->compare_ms);
    if (!keeper->reconcile && state.records == expected) {
        keeper->tail = PW_TAIL_LIVE;
        return PAWL_OK;
    }
    pw_log(&shard->engine->log, PAWL_WARN, "journal.compare",
           "shard=%u: the stream is not what the store says; comparing them", shard->index);
    keeper->reconcile = true;
    keeper->read_seq = 1;
    keeper->tail = PW_TAIL_HEADS;
    return stand(shard, 0, true);
}

static uint64_t open_journal(struct pw_shard *shard)
{
    struct pw_keeper *keeper = &shard->relay.keeper;
    struct pw_acked acked = { .lsn = 0 };
    pawl_why why = { "" };
    uint64_t seq = 0;
    if (waits(shard))
        return PW_NEVER;
    uint64_t lsn = atomic_load(&shard->committed_lsn);
    keeper->fence = (uint32_t)(lsn >> 32);
    if (keeper->fence <= keeper->state.fence && !shard->position.known) {
        pawl_err failed = stand(shard, keeper->state.fence + 1, keeper->reconcile);
        return failed == PAWL_OK ? 0 : fail(shard, failed, &why);
    }
    struct pw_opening opening = {
        .applied_seq = keeper->state.last_seq,
        .follows_lsn = keeper->top_lsn,
        .sent_lsn = shard->relay.sent_lsn,
        .fence = keeper->fence,
    };
    pawl_err err = pack_mark(shard, &opening.mark);
    if (err == PAWL_OK)
        err = ops_of(shard)->open(shard->journal, &opening, &seq);
    if (err == PAWL_E_VERSION) {
        keeper->tail = PW_TAIL_LOOK; /* the stream went on meanwhile */
        return 0;
    }
    if (err == PAWL_E_IO && ops_of(shard)->acked(shard->journal, &acked) == PAWL_E_IO)
        print_refusal(&why, acked.refusal);
    if (err == PAWL_OK) {
        begin_appending(shard, seq);
        err = begin_living(shard);
    }
    return err == PAWL_OK ? 0 : fail(shard, err, &why);
}

/* --- compare ------------------------------------------------------------------------------ */

static uint64_t read_heads(struct pw_shard *shard)
{
    struct pw_keeper *keeper = &shard->relay.keeper;
    pawl_why why = { "" };
    bool through = false;
    if (waits(shard))
        return PW_NEVER;
    pawl_err err = pw_seed_heads(shard, &through);
    pw_keeper_send(shard);
    if (err != PAWL_OK)
        return fail(shard, err, &why);
    if (through)
        keeper->tail = PW_TAIL_LIVE; /* the walk over what it lacks goes on beside appending */
    return 0;
}

/* The stream held against the store, with nothing under way. Twice otherwise: it was purged, or
 * something of it deleted. */
static pawl_err compare(struct pw_shard *shard)
{
    struct pw_keeper *keeper = &shard->relay.keeper;
    struct pw_journal_state state;
    pawl_why why = { "" };
    uint64_t expected = 0;
    pawl_err err = ops_of(shard)->look(shard->journal, &state, &why);
    if (err == PAWL_OK)
        err = pw_seed_expected(shard, &expected);
    if (err != PAWL_OK)
        return err;
    keeper->compare_ms = pw_time_add(mono_ms(shard), shard->engine->compare_ms);
    bool same = state.created == keeper->state.created && state.last_seq >= shard->position.seq &&
                state.fence == keeper->fence;
    bool again = keeper->mismatch;
    keeper->mismatch = same && state.records != expected;
    if (keeper->mismatch && !again)
        keeper->compare_ms = pw_time_add(mono_ms(shard), PW_MARK_MS);
    if (same && !(keeper->mismatch && again))
        return PAWL_OK;
    keeper->mismatch = false;
    keeper->reconcile = keeper->reconcile || same;
    keeper->tail = PW_TAIL_LOOK;
    return PAWL_OK;
}

/* --- live --------------------------------------------------------------------------------- */

static pawl_err append_row(struct pw_shard *shard, const struct pw_outbox_row *row)
{
    struct pw_heads heads;
    if (pw_record_heads(row->record, &heads) != PAWL_OK || heads.forget)
        return PAWL_OK; /* not for the journal; a damaged one is named with its effects */
    const struct pw_append append = {
        .lsn = row->lsn,
        .epoch = heads.epoch,
        .machine = heads.machine,
        .id = heads.id,
        .trace = heads.trace,
        .tombstone = heads.tombstone,
        .task = heads.task,
        .record = row->record,
    };
    return ops_of(shard)->append(shard->journal, &append);
}

/* Until the window is full, or there are no more. */
static pawl_err append_rows(struct pw_shard *shard, size_t waiting, bool *more)
{
    struct pw_relay *relay = &shard->relay;
    struct pw_keeper *keeper = &relay->keeper;
    struct pw_outbox_row rows[PW_RELAY_BATCH_MAX];
    size_t room = waiting < PW_WINDOW ? PW_WINDOW - waiting : 0;
    size_t count = 0;
    *more = false;
    if (keeper->append_lsn > atomic_load(&shard->outbox_lsn) || (waiting > 0 && room < ROOM_MIN))
        return PAWL_OK;
    uint64_t upto = atomic_load(&shard->committed_lsn);
    pw_arena_reset(&relay->arena);
    pawl_err err = pw_outbox_read(shard, &relay->arena, keeper->append_lsn, upto, rows,
                                  room < PW_COUNT(rows) ? room : PW_COUNT(rows), &count, more);
    for (size_t i = 0; i < count && err == PAWL_OK; i++) {
        err = append_row(shard, &rows[i]);
        if (err == PAWL_OK)
            keeper->append_lsn = rows[i].lsn + 1;
    }
    if (err == PAWL_OK && !*more)
        keeper->append_lsn = upto + 1; /* others were trimmed already */
    *more = *more && err == PAWL_OK;
    return err;
}

/* "Sent up to" is told to the stream once a second, when it has grown. */
static pawl_err mark(struct pw_shard *shard)
{
    struct pw_keeper *keeper = &shard->relay.keeper;
    uint64_t sent_lsn = shard->relay.sent_lsn;
    pawl_bytes bytes = { NULL, 0 };
    if (keeper->mark_ms > mono_ms(shard) || sent_lsn <= keeper->marked_lsn)
        return PAWL_OK;
    pawl_err err = pack_mark(shard, &bytes);
    if (err == PAWL_OK)
        err = ops_of(shard)->mark(shard->journal, sent_lsn, bytes);
    if (err != PAWL_OK)
        return err;
    keeper->marked_lsn = sent_lsn;
    keeper->mark_ms = pw_time_add(mono_ms(shard), PW_MARK_MS);
    return PAWL_OK;
}

static pawl_err collect(struct pw_shard *shard, struct pw_acked *acked)
{
    struct pw_keeper *keeper = &shard->relay.keeper;
    uint64_t appended_lsn = keeper->append_lsn - 1;
    pawl_err err = ops_of(shard)->acked(shard->journal, acked);
    if (acked->seq > shard->position.seq) {
        pw_count(&shard->engine->metrics, appended, acked->seq - shard->position.seq);
        raise_acked(shard, acked->lsn);
        tell_position(shard, acked->seq);
        if (keeper->refused)
            be_well(shard);
    }
    if (err == PAWL_OK && acked->waiting == 0) /* rows that are not for the journal among them */
        raise_acked(shard, appended_lsn);
    return err;
}

static uint64_t sooner(uint64_t a_ms, uint64_t b_ms)
{
    return a_ms < b_ms ? a_ms : b_ms;
}

static uint64_t until(uint64_t at_ms, uint64_t now_ms)
{
    return at_ms > now_ms ? at_ms - now_ms : 0;
}

/* The walk over what the stream lacks, in lots that leave room in the outbox. */
static pawl_err seed(struct pw_shard *shard)
{
    struct pw_keeper *keeper = &shard->relay.keeper;
    bool room = keeper->append_lsn > atomic_load(&shard->outbox_lsn);
    if (keeper->seed_pass == 0 || !room || waits(shard))
        return PAWL_OK;
    pawl_err err = pw_seed_turn(shard);
    pw_keeper_send(shard);
    if (err != PAWL_OK || keeper->seed_pass != 0)
        return err;
    keeper->reconcile = false;
    pw_log(&shard->engine->log, PAWL_INFO, "journal.compare",
           "shard=%u: what the stream lacked is in the outbox", shard->index);
    return stand(shard, 0, false);
}

/* When the next turn is wanted if nobody pokes. */
static uint64_t rest_ms(const struct pw_shard *shard, const struct pw_acked *acked)
{
    const struct pw_keeper *keeper = &shard->relay.keeper;
    uint64_t now_ms = mono_ms(shard);
    uint64_t rest = until(keeper->compare_ms, now_ms);
    if (acked->waiting == 0 && keeper->append_lsn <= atomic_load(&shard->outbox_lsn))
        return 0; /* what was appended now is to be looked at */
    if (shard->relay.sent_lsn > keeper->marked_lsn)
        rest = sooner(rest, until(keeper->mark_ms, now_ms));
    return acked->waiting > 0 ? sooner(rest > 0 ? rest : LOOK_MS, LOOK_MS) : rest;
}

/* What is to be done while nothing is amiss. A comparison waits until nothing is under way, so
 * nothing is appended before it. */
static pawl_err do_live(struct pw_shard *shard, struct pw_acked *acked, bool *more)
{
    struct pw_keeper *keeper = &shard->relay.keeper;
    bool compares = keeper->compare_ms <= mono_ms(shard) && keeper->seed_pass == 0;
    pawl_err err = collect(shard, acked);
    if (keeper->seed_pass == 0 && atomic_exchange(&shard->void_seen, false)) {
        keeper->reconcile = true;
        keeper->tail = PW_TAIL_LOOK;
        return PAWL_OK;
    }
    if (err == PAWL_OK && compares && acked->waiting == 0)
        err = compare(shard);
    if (err != PAWL_OK || keeper->tail != PW_TAIL_LIVE || (compares && acked->waiting > 0))
        return err;
    err = append_rows(shard, acked->waiting, more);
    if (err == PAWL_OK)
        err = mark(shard);
    return err == PAWL_OK ? seed(shard) : err;
}

/* It is full, or cannot store: what it does not take is tried again, a mark at least. */
static uint64_t refuse(struct pw_shard *shard, const char *refusal)
{
    struct pw_keeper *keeper = &shard->relay.keeper;
    pawl_why why = { "" };
    print_refusal(&why, refusal);
    keeper->refused = true;
    keeper->marked_lsn = 0;
    return fail(shard, PAWL_E_IO, &why);
}

static uint64_t live(struct pw_shard *shard)
{
    struct pw_keeper *keeper = &shard->relay.keeper;
    struct pw_acked acked = { .lsn = 0 };
    bool more = false;
    pawl_err err = do_live(shard, &acked, &more);
    if (err == PAWL_E_BUSY)
        return LOOK_MS; /* the window is full: an answer pokes */
    if (err == PAWL_E_IO && acked.refusal[0] != '\0')
        return refuse(shard, acked.refusal);
    if (err == PAWL_OK) {
        keeper->failures = keeper->refused ? keeper->failures : 0;
        return more || keeper->tail != PW_TAIL_LIVE ? 0 : rest_ms(shard, &acked);
    }
    keeper->tail = PW_TAIL_LOOK;
    return err == PAWL_E_IO ? 0 : retry(shard);
}

/* --- a turn ------------------------------------------------------------------------------- */

uint64_t pw_keeper_turn(struct pw_shard *shard)
{
    struct pw_keeper *keeper = &shard->relay.keeper;
    uint64_t now_ms = mono_ms(shard);
    if (keeper->retry_ms > now_ms)
        return keeper->retry_ms - now_ms;
    switch (keeper->tail) {
    case PW_TAIL_LOOK:
        return look(shard);
    case PW_TAIL_CATCH:
        return catch_up(shard);
    case PW_TAIL_OPEN:
        return open_journal(shard);
    case PW_TAIL_HEADS:
        return read_heads(shard);
    case PW_TAIL_LIVE:
        return live(shard);
    case PW_TAIL_LOST:
    default:
        return PW_NEVER;
    }
}

/* --- waiting for the journal -------------------------------------------------------------- */

static bool is_journalled(struct pw_shard *shard, uint64_t lsn)
{
    return shard->journal == NULL || atomic_load(&shard->acked_lsn) >= lsn;
}

pawl_err pw_wait_journalled(struct pw_shard *shard, uint64_t lsn, struct pw_pool *pool,
                            struct pw_claim *claim)
{
    struct pawl *engine = shard->engine;
    struct pw_position *position = &shard->position;
    while (!is_journalled(shard, lsn) && !pw_pool_cancelled(pool, claim) &&
           !atomic_load(&engine->stopping)) {
        if (engine->drive.turn != NULL) {
            engine->drive.turn(engine->drive.arg);
            continue;
        }
        pthread_mutex_lock(&position->lock);
        if (!is_journalled(shard, lsn))
            (void)pw_cond_wait_ms(&shard->journalled, &position->lock, LOOK_MS);
        pthread_mutex_unlock(&position->lock);
    }
    return is_journalled(shard, lsn) ? PAWL_OK : PAWL_E_STALE;
}

/* --- life --------------------------------------------------------------------------------- */

void pw_keeper_init(struct pw_shard *shard)
{
    int failed = pthread_mutex_init(&shard->position.lock, NULL);
    assert(failed == 0);
    (void)failed;
    pw_cond_init(&shard->journalled);
    pw_arena_init(&shard->relay.keeper.arena, (size_t)64 * 1024);
}

void pw_keeper_fini(struct pw_shard *shard)
{
    struct pw_keeper *keeper = &shard->relay.keeper;
    pw_arena_fini(&keeper->arena);
    pw_free(keeper->present);
    keeper->present = NULL;
    (void)pthread_cond_destroy(&shard->journalled); /* nobody waits any more */
    (void)pthread_mutex_destroy(&shard->position.lock);
}
