/* SPDX-License-Identifier: Apache-2.0
 *
 * A stream, and the appends that are under way to it. Each carries the moment of its arrival and of
 * its answer; `settle`, which every call begins with, lets happen what is due. An append whose
 * sender died or gave it up stays under way as an orphan: it may be stored, and nobody is told. */
#include <assert.h>
#include <string.h>

#include "base/base.h"
#include "base/limits.h"
#include "sim/journal.h"
#include "sim/mail.h"
#include "sim/stream.h"

#define ARRIVE_MS_MAX 3
#define ANSWER_MS_MAX 2
#define GIVE_UP_MS 20
#define ORPHAN_MS_MAX 60
#define AWAY_MS_MAX 3000
/* The server's clock is not the engine's. */
#define SERVER_AHEAD_MS (3ull * 24 * 60 * 60 * 1000)
#define SUBJECT_SIZE (PW_NAME_MAX + 1 + PW_ID_MAX + 1)
#define FENCE "_fence"
#define MARK "_mark"
/* What may be added while appends are under way: an opening's two, a foreign one. */
#define ROOM_SPARE 4u

struct flight {
    struct pw_sim_message *message; /* NULL: it has arrived, or is lost */
    uint64_t expects;
    uint64_t arrive_ms;
    uint64_t answer_ms; /* at the latest then its sender knows, or gives up */
    uint64_t lsn;       /* 0: of a mark */
    uint64_t seq;       /* 0: it is not stored */
    bool unanswered;
    bool settled; /* its sender knows, or has given up */
    bool orphan;  /* nobody waits for it */
};

struct sim_journal {
    struct pw_journal port; /* first */
    struct pw_clock *clock;
    struct pw_rng rng;
    bool (*tick)(void *arg);
    void *tick_arg;
    uint64_t fail_one_in;
    bool away;
    uint64_t back_ms; /* an accident's end; 0: it is away, or not, for good */
    uint64_t harm_one_in;
    unsigned harms_left;
    uint64_t harms;
    bool halted;
    /* The server. */
    struct pw_sim_stream stream;
    struct pw_sim_stream snapshot;
    uint64_t snapshot_created; /* 0: there is none */
    uint64_t created;
    uint64_t creations;
    uint64_t refused;
    struct pw_sim_mail mail;
    struct flight *flights; /* in the order of sending */
    size_t flights_count;
    size_t flights_room;
    /* The engine's connection. */
    uint64_t seen_seq; /* of the last look */
    uint64_t next_expects;
    uint32_t fence;
    uint64_t opened_seq; /* of the opening's mark; 0: none */
    struct pw_acked acked;
    bool failed;  /* nothing is appended before the next look */
    bool stopped; /* at a failed append: none behind it counts as acknowledged */
    bool fresh;   /* something was answered since next_ms was last asked */
    /* The opening's consumer. */
    uint64_t next_seq;
    uint64_t handed_seq; /* the first that is not yet acknowledged to the server */
    bool consumer_gone;
};

static struct sim_journal *of(struct pw_journal *port)
{
    return (struct sim_journal *)port;
}

static uint64_t now_ms(struct sim_journal *j)
{
    return j->clock->monotonic_ms(j->clock);
}

static bool drawn(struct sim_journal *j, uint64_t one_in)
{
    return one_in != 0 && pw_rng_below(&j->rng, one_in) == 0;
}

static bool ticks(struct sim_journal *j)
{
    return j->tick == NULL || j->tick(j->tick_arg);
}

static void tell(struct sim_journal *j)
{
    j->fresh = true;
    if (j->port.poke != NULL)
        j->port.poke(j->port.poke_arg);
}

/* --- the stream ---------------------------------------------------------------------------- */

static void subject_of(const char *machine, const char *id, char subject[SUBJECT_SIZE])
{
    pw_print(subject, SUBJECT_SIZE, "%s/%s", machine, id);
}

static void store(struct sim_journal *j, struct pw_sim_message *message)
{
    message->entry.stored_ms = j->clock->wall_ms(j->clock) + SERVER_AHEAD_MS;
    pw_sim_stream_put(&j->stream, message);
}

/* NULL: no opening's fence is there. */
static const struct pw_sim_message *fence_of(struct sim_journal *j)
{
    const struct pw_sim_message *fence = pw_sim_stream_find(&j->stream, FENCE);
    return fence != NULL && fence->entry.kind == PW_ENTRY_FENCE ? fence : NULL;
}

/* What an earlier owner got in behind a later one's fence is as void as a foreign one. */
static bool is_void(struct sim_journal *j, const struct pw_sim_message *message)
{
    const struct pw_sim_message *fence = fence_of(j);
    uint64_t seq = message->entry.seq;
    if (fence != NULL && seq > fence->entry.seq && message->fence < fence->fence)
        return true;
    return j->opened_seq != 0 && seq > j->opened_seq && message->fence < j->fence;
}

static void hand_over(struct sim_journal *j, const struct pw_sim_message *message, bool heads,
                      pw_entry_seen seen, void *arg)
{
    struct pw_entry entry = message->entry;
    if (is_void(j, message)) {
        entry.kind = PW_ENTRY_VOID;
        entry.lsn = 0;
        entry.tombstone = false;
    }
    if (heads || (entry.kind != PW_ENTRY_RECORD && entry.kind != PW_ENTRY_MARK))
        entry.record = (pawl_bytes){ "", 0 };
    seen(arg, &entry);
}

/* --- under way ----------------------------------------------------------------------------- */

static void arrive(struct sim_journal *j, struct flight *flight)
{
    struct pw_sim_message *message = flight->message;
    flight->message = NULL;
    if (j->stream.last_seq != flight->expects) {
        j->refused++;
        pw_free(message);
        return;
    }
    store(j, message);
    flight->seq = j->stream.last_seq;
}

/* The first one that is not settled, all before it are. */
static void account(struct sim_journal *j, struct flight *flight)
{
    flight->orphan = true;
    if (flight->seq == 0 || flight->unanswered)
        j->stopped = true;
    if (j->stopped)
        return;
    j->acked.seq = flight->seq;
    if (flight->lsn > j->acked.lsn)
        j->acked.lsn = flight->lsn;
}

static void drop_done(struct sim_journal *j)
{
    size_t kept = 0;
    for (size_t i = 0; i < j->flights_count; i++)
        if (j->flights[i].message != NULL || !j->flights[i].orphan)
            j->flights[kept++] = j->flights[i];
    j->flights_count = kept;
}

static bool settle_flight(struct sim_journal *j, struct flight *flight, uint64_t at_ms)
{
    if (flight->message != NULL && flight->arrive_ms <= at_ms)
        arrive(j, flight);
    if (flight->settled || flight->answer_ms > at_ms)
        return false;
    flight->settled = true;
    if (flight->seq == 0 || flight->unanswered)
        j->failed = true;
    return true;
}

static void settle(struct sim_journal *j)
{
    uint64_t at_ms = now_ms(j);
    bool first = true;
    bool news = pw_sim_mail_settle(&j->mail, at_ms);
    if (j->back_ms != 0 && j->back_ms <= at_ms) {
        j->back_ms = 0;
        j->away = false;
        news = true;
    }
    for (size_t i = 0; i < j->flights_count; i++) {
        struct flight *flight = &j->flights[i];
        if (settle_flight(j, flight, at_ms))
            news = true;
        if (flight->orphan)
            continue;
        first = first && flight->settled;
        if (first)
            account(j, flight);
    }
    drop_done(j);
    if (news)
        tell(j);
}

static size_t waiting(const struct sim_journal *j)
{
    size_t count = 0;
    for (size_t i = 0; i < j->flights_count; i++)
        count += j->flights[i].orphan ? 0 : 1;
    return count;
}

/* Their sender is gone: all arrive, none does, or each or not; at once or later. */
static void orphan_all(struct sim_journal *j)
{
    uint64_t arrive_ms = now_ms(j) + (drawn(j, 2) ? pw_rng_below(&j->rng, ORPHAN_MS_MAX) : 0);
    uint64_t lost = pw_rng_below(&j->rng, 3);
    for (size_t i = 0; i < j->flights_count; i++) {
        struct flight *flight = &j->flights[i];
        if (flight->orphan)
            continue;
        flight->orphan = true;
        flight->settled = true;
        flight->arrive_ms = arrive_ms;
        if (lost == 2 || (lost == 1 && drawn(j, 2))) {
            pw_free(flight->message);
            flight->message = NULL;
        }
    }
    drop_done(j);
}

/* Orphans come at any moment: none of them now, or some. */
static void stir(struct sim_journal *j)
{
    uint64_t come = drawn(j, 2) ? 0 : pw_rng_below(&j->rng, j->flights_count + 1);
    for (size_t i = 0; i < come; i++)
        if (j->flights[i].orphan && j->flights[i].message != NULL)
            arrive(j, &j->flights[i]);
    drop_done(j);
}

/* --- what befalls a server ------------------------------------------------------------------ */

static void delete_seq(struct sim_journal *j, uint64_t seq)
{
    size_t index = pw_sim_stream_at(&j->stream, seq);
    if (index == j->stream.count || j->stream.messages[index]->entry.seq != seq)
        return;
    pw_free(pw_sim_stream_take(&j->stream, j->stream.messages[index]->entry.subject));
}

/* What the server has handed over and was not told about, it hands over again. */
static void set_away(struct sim_journal *j, bool away)
{
    if (away && !j->away) {
        bool posts = j->mail.waiting > 0;
        orphan_all(j);
        j->failed = true;
        pw_sim_mail_forget(&j->mail);
        j->mail.failed = posts;
        j->next_seq = j->handed_seq;
    }
    j->away = away;
    j->back_ms = 0;
    tell(j);
}

/* Two of the same millisecond are two. */
static void create(struct sim_journal *j)
{
    j->created = (j->clock->wall_ms(j->clock) + SERVER_AHEAD_MS) * 1000000 + ++j->creations;
}

/* The room of the old one stays: what is under way counts on it. */
static void recreate(struct sim_journal *j)
{
    pw_sim_stream_cut(&j->stream, UINT64_MAX);
    j->stream.last_seq = 0;
    j->consumer_gone = true;
    create(j);
}

static pawl_err snapshot(struct sim_journal *j)
{
    pw_sim_stream_clear(&j->snapshot);
    j->snapshot_created = pw_sim_stream_copy(&j->snapshot, &j->stream) ? j->created : 0;
    return j->snapshot_created != 0 ? PAWL_OK : PAWL_E_NOMEM;
}

static pawl_err restore(struct sim_journal *j)
{
    struct pw_sim_stream copy = { .count = 0 };
    if (j->snapshot_created == 0)
        return PAWL_E_NOT_FOUND;
    if (!pw_sim_stream_copy(&copy, &j->snapshot) ||
        !pw_sim_stream_reserve(&copy, j->flights_count + ROOM_SPARE)) {
        pw_sim_stream_clear(&copy);
        return PAWL_E_NOMEM;
    }
    pw_sim_stream_clear(&j->stream);
    j->stream = copy;
    j->created = j->snapshot_created;
    return PAWL_OK;
}

static pawl_err write_foreign(struct sim_journal *j, const struct pw_entry *entry)
{
    struct pw_sim_message *message = pw_sim_message_new(entry, 0);
    if (message == NULL || !pw_sim_stream_reserve(&j->stream, j->flights_count + ROOM_SPARE)) {
        pw_free(message);
        return PAWL_E_NOMEM;
    }
    store(j, message);
    return PAWL_OK;
}

/* Over the message of this index, or beside all. */
static void write_over(struct sim_journal *j, size_t index)
{
    struct pw_entry entry = { .subject = "stray" };
    if (index < j->stream.count)
        entry = j->stream.messages[index]->entry;
    entry.kind = PW_ENTRY_VOID;
    entry.lsn = 0;
    entry.tombstone = false;
    entry.record = pawl_str("foreign");
    (void)write_foreign(j, &entry); /* without memory this harm does not happen */
}

/* Now and then, at a call of the engine's, one of all these. */
static void harm(struct sim_journal *j)
{
    if (j->harms_left == 0 || !drawn(j, j->harm_one_in))
        return;
    size_t index = pw_rng_below(&j->rng, j->stream.count + 1);
    uint64_t seq = index < j->stream.count ? j->stream.messages[index]->entry.seq : UINT64_MAX;
    j->harms_left--;
    j->harms++;
    switch (pw_rng_below(&j->rng, 8)) {
    case 0:
    case 1:
        set_away(j, true);
        j->back_ms = now_ms(j) + 1 + pw_rng_below(&j->rng, AWAY_MS_MAX);
        break;
    case 2:
        pw_sim_stream_cut(&j->stream, seq);
        break;
    case 3:
        delete_seq(j, seq);
        break;
    case 4:
        recreate(j);
        break;
    case 5:
        (void)snapshot(j); /* for the next one */
        break;
    case 6:
        (void)restore(j);
        break;
    default:
        write_over(j, index);
        break;
    }
}

static bool survives(struct sim_journal *j)
{
    settle(j);
    return !j->halted && ticks(j) && !j->away && !drawn(j, j->fail_one_in);
}

/* False: the call does not get there, or the process dies before it. */
static bool reach(struct sim_journal *j)
{
    settle(j);
    harm(j);
    return survives(j);
}

/* --- reading ------------------------------------------------------------------------------- */

static pawl_err look(struct pw_journal *port, struct pw_journal_state *state, pawl_why *why)
{
    struct sim_journal *j = of(port);
    if (!reach(j))
        return pw_fail(why, PAWL_E_IO, "the simulated server is away");
    if (waiting(j) > 0)
        return pw_fail(why, PAWL_E_BUSY, "appends are under way");
    stir(j);
    const struct pw_sim_message *fence = fence_of(j);
    j->seen_seq = j->stream.last_seq;
    j->next_expects = j->stream.last_seq;
    j->failed = false;
    j->stopped = false;
    *state = (struct pw_journal_state){
        .created = j->created,
        .last_seq = j->stream.last_seq,
        .records = j->stream.count,
        .fence_seq = fence != NULL ? fence->entry.seq : 0,
        .fence = fence != NULL ? fence->fence : 0,
    };
    return PAWL_OK;
}

static pawl_err read(struct pw_journal *port, uint64_t from_seq, bool heads, size_t most,
                     pw_entry_seen seen, void *arg, uint64_t *next_seq, bool *through)
{
    struct sim_journal *j = of(port);
    if (!reach(j))
        return PAWL_E_IO;
    stir(j);
    uint64_t next = from_seq;
    size_t i = pw_sim_stream_at(&j->stream, from_seq);
    size_t end = pw_sim_stream_at(&j->stream, j->seen_seq + 1);
    for (size_t got = 0; got < most && i < end; got++, i++) {
        next = j->stream.messages[i]->entry.seq + 1;
        hand_over(j, j->stream.messages[i], heads, seen, arg);
    }
    *through = i >= end;
    *next_seq = *through && next <= j->seen_seq ? j->seen_seq + 1 : next;
    return PAWL_OK;
}

static pawl_err last(struct pw_journal *port, const char *machine, const char *id,
                     pw_entry_seen seen, void *arg)
{
    struct sim_journal *j = of(port);
    char subject[SUBJECT_SIZE] = "";
    if (!reach(j))
        return PAWL_E_IO;
    subject_of(machine, id, subject);
    const struct pw_sim_message *message = pw_sim_stream_find(&j->stream, subject);
    if (message == NULL)
        return PAWL_E_NOT_FOUND;
    hand_over(j, message, false, seen, arg);
    return PAWL_OK;
}

static pawl_err remove_entry(struct pw_journal *port, uint64_t seq)
{
    struct sim_journal *j = of(port);
    if (!reach(j))
        return PAWL_E_IO;
    delete_seq(j, seq);
    return PAWL_OK;
}

/* --- opening ------------------------------------------------------------------------------- */

/* The run is sent in one go: behind one that is refused, later ones may fit, until its sender hears
 * of it. One message serves as all of them, since each replaces the one before. Takes it. */
static pawl_err append_fences(struct sim_journal *j, uint64_t expects,
                              struct pw_sim_message *message)
{
    uint64_t middle = pw_rng_below(&j->rng, drawn(j, 2) ? 4 : PW_WINDOW + 1);
    bool stored = false;
    bool refused = false;
    bool lives = true;
    for (uint64_t i = 0; i <= PW_WINDOW && lives; i++) {
        if (refused && drawn(j, PW_WINDOW))
            break;
        if (i == middle) {
            stir(j);
            lives = survives(j);
        }
        bool fits = lives && j->stream.last_seq == expects + i;
        refused = refused || !fits;
        j->refused += lives && !fits ? 1 : 0;
        if (fits)
            store(j, stored ? pw_sim_stream_take(&j->stream, FENCE) : message);
        stored = stored || fits;
    }
    if (!stored)
        pw_free(message);
    if (!lives)
        return PAWL_E_IO;
    return refused ? PAWL_E_VERSION : PAWL_OK;
}

static struct pw_sim_message *own_message(enum pw_entry_kind kind, uint64_t lsn, uint32_t fence,
                                          pawl_bytes record)
{
    const char *subject = kind == PW_ENTRY_FENCE ? FENCE : MARK;
    struct pw_entry entry = { .kind = kind, .lsn = lsn, .subject = subject, .record = record };
    return pw_sim_message_new(&entry, fence);
}

static void begin_opening(struct sim_journal *j, uint32_t fence)
{
    j->fence = fence;
    j->opened_seq = j->stream.last_seq;
    j->next_expects = j->stream.last_seq;
    j->acked = (struct pw_acked){ .seq = j->stream.last_seq };
    j->next_seq = j->stream.last_seq + 1;
    j->handed_seq = j->next_seq;
    j->consumer_gone = false;
    j->failed = false;
    j->stopped = false;
}

static pawl_err open(struct pw_journal *port, const struct pw_opening *opening, uint64_t *seq)
{
    struct sim_journal *j = of(port);
    const pawl_bytes empty = { "", 0 };
    if (!reach(j))
        return PAWL_E_IO;
    assert(waiting(j) == 0); /* it has been looked at */
    struct pw_sim_message *fence =
        own_message(PW_ENTRY_FENCE, opening->follows_lsn, opening->fence, empty);
    struct pw_sim_message *mark =
        own_message(PW_ENTRY_MARK, opening->sent_lsn, opening->fence, opening->mark);
    if (fence == NULL || mark == NULL ||
        !pw_sim_stream_reserve(&j->stream, j->flights_count + ROOM_SPARE)) {
        pw_free(fence);
        pw_free(mark);
        return PAWL_E_NOMEM;
    }
    stir(j);
    j->failed = true; /* until it is through; the former opening stays */
    pawl_err err = append_fences(j, opening->applied_seq, fence);
    if (err == PAWL_E_IO || j->stream.last_seq != opening->applied_seq + PW_WINDOW + 1)
        pw_free(mark);
    else
        store(j, mark);
    if (err != PAWL_OK)
        return err;
    if (!survives(j))
        return PAWL_E_IO;
    begin_opening(j, opening->fence);
    *seq = j->opened_seq;
    return PAWL_OK;
}

/* --- appending ----------------------------------------------------------------------------- */

static bool make_room(struct sim_journal *j)
{
    if (!pw_sim_stream_reserve(&j->stream, j->flights_count + ROOM_SPARE))
        return false;
    if (j->flights_count < j->flights_room)
        return true;
    size_t room = j->flights_room == 0 ? 64 : j->flights_room * 2;
    struct flight *flights = pw_realloc(j->flights, room * sizeof(*flights));
    if (flights == NULL)
        return false;
    j->flights = flights;
    j->flights_room = room;
    return true;
}

/* Behind those that were sent before. */
static void set_times(struct sim_journal *j, struct flight *flight)
{
    flight->arrive_ms = now_ms(j) + pw_rng_below(&j->rng, ARRIVE_MS_MAX);
    flight->answer_ms = flight->arrive_ms + 1 + pw_rng_below(&j->rng, ANSWER_MS_MAX);
    const struct flight *before = j->flights_count > 0 ? &j->flights[j->flights_count - 1] : flight;
    if (before->orphan)
        return;
    if (before->arrive_ms > flight->arrive_ms)
        flight->arrive_ms = before->arrive_ms;
    if (before->answer_ms > flight->answer_ms)
        flight->answer_ms = before->answer_ms;
    if (flight->arrive_ms > flight->answer_ms)
        flight->answer_ms = flight->arrive_ms;
}

/* It is lost; or stored, but the answer is lost; or it arrives when it was given up. */
static void fail_flight(struct sim_journal *j, struct flight *flight)
{
    uint64_t how = pw_rng_below(&j->rng, 3);
    flight->unanswered = true;
    flight->answer_ms = flight->arrive_ms + GIVE_UP_MS;
    if (how == 0) {
        pw_free(flight->message);
        flight->message = NULL;
    } else if (how == 1) {
        flight->arrive_ms = flight->answer_ms + pw_rng_below(&j->rng, ORPHAN_MS_MAX);
    }
}

static pawl_err send(struct sim_journal *j, const struct pw_entry *entry)
{
    settle(j);
    harm(j);
    if (j->halted || !ticks(j) || j->away || j->failed || j->opened_seq == 0)
        return PAWL_E_IO;
    if (waiting(j) >= PW_WINDOW)
        return PAWL_E_BUSY;
    if (!make_room(j))
        return PAWL_E_NOMEM;
    struct flight flight = { .expects = j->next_expects };
    flight.lsn = entry->kind == PW_ENTRY_RECORD ? entry->lsn : 0;
    flight.message = pw_sim_message_new(entry, j->fence);
    if (flight.message == NULL)
        return PAWL_E_NOMEM;
    set_times(j, &flight);
    if (drawn(j, j->fail_one_in))
        fail_flight(j, &flight);
    j->next_expects++;
    j->flights[j->flights_count++] = flight;
    return PAWL_OK;
}

static pawl_err append(struct pw_journal *port, const struct pw_append *append)
{
    char subject[SUBJECT_SIZE] = "";
    assert(append->lsn > 0);
    subject_of(append->machine, append->id, subject);
    const struct pw_entry entry = {
        .kind = PW_ENTRY_RECORD,
        .tombstone = append->tombstone,
        .lsn = append->lsn,
        .machine = append->machine,
        .id = append->id,
        .subject = subject,
        .record = append->record,
    };
    return send(of(port), &entry);
}

static pawl_err mark(struct pw_journal *port, uint64_t sent_lsn, pawl_bytes record)
{
    const struct pw_entry entry = {
        .kind = PW_ENTRY_MARK, .lsn = sent_lsn, .subject = MARK, .record = record
    };
    return send(of(port), &entry);
}

static pawl_err acked(struct pw_journal *port, struct pw_acked *acked)
{
    struct sim_journal *j = of(port);
    settle(j);
    *acked = j->acked;
    acked->waiting = waiting(j);
    return j->failed || j->away || j->halted ? PAWL_E_IO : PAWL_OK;
}

/* --- posts --------------------------------------------------------------------------------- */

static pawl_err post(struct pw_journal *port, const struct pw_post *post)
{
    struct sim_journal *j = of(port);
    settle(j);
    if (j->halted || !ticks(j) || j->away)
        return PAWL_E_IO;
    if (j->mail.waiting >= PW_WINDOW)
        return PAWL_E_BUSY;
    bool fails = drawn(j, j->fail_one_in);
    bool lost = fails && drawn(j, 2);
    uint64_t arrive_ms = now_ms(j) + pw_rng_below(&j->rng, ARRIVE_MS_MAX);
    uint64_t answer_ms = arrive_ms + (fails ? GIVE_UP_MS : pw_rng_below(&j->rng, ANSWER_MS_MAX));
    return pw_sim_mail_send(&j->mail, post, lost ? PW_NEVER : arrive_ms, answer_ms, !fails);
}

static pawl_err posted(struct pw_journal *port, size_t *waiting)
{
    struct sim_journal *j = of(port);
    settle(j);
    *waiting = j->mail.waiting;
    bool failed = j->mail.failed || j->away || j->halted;
    j->mail.failed = false;
    return failed ? PAWL_E_IO : PAWL_OK;
}

/* --- fetching ------------------------------------------------------------------------------ */

/* A consumer that is beyond the stream's end would never deliver: it is made anew. */
static void keep_consumer(struct sim_journal *j)
{
    uint64_t end = j->stream.last_seq + 1;
    if (!j->consumer_gone && j->next_seq <= end)
        return;
    j->next_seq = j->opened_seq < end ? j->opened_seq + 1 : end;
    j->handed_seq = j->next_seq;
    j->consumer_gone = false;
}

static bool can_fetch(const struct sim_journal *j)
{
    return j->opened_seq != 0 && !j->away && !j->halted;
}

static size_t fetch(struct pw_journal *port, size_t most, pw_entry_seen seen, void *arg)
{
    struct sim_journal *j = of(port);
    settle(j);
    harm(j);
    if (!can_fetch(j))
        return 0;
    keep_consumer(j);
    if (drawn(j, j->fail_one_in))
        j->next_seq = j->handed_seq; /* once more */
    j->handed_seq = j->next_seq;
    size_t got = 0;
    size_t i = pw_sim_stream_at(&j->stream, j->next_seq);
    for (; i < j->stream.count && got < most && ticks(j); i++, got++) {
        j->next_seq = j->stream.messages[i]->entry.seq + 1;
        hand_over(j, j->stream.messages[i], false, seen, arg);
    }
    return got;
}

/* --- the whole ----------------------------------------------------------------------------- */

static void halt(struct pw_journal *port)
{
    of(port)->halted = true;
}

static void let_go(struct pw_journal *port)
{
    if (port == NULL)
        return;
    port->poke = NULL;
    port->poke_arg = NULL;
}

static const struct pw_journal_ops sim_ops = {
    .look = look,
    .read = read,
    .open = open,
    .append = append,
    .mark = mark,
    .acked = acked,
    .remove = remove_entry,
    .last = last,
    .post = post,
    .posted = posted,
    .fetch = fetch,
    .halt = halt,
    .close = let_go,
};

pawl_err pw_sim_journal_open(struct pw_journal **journal, struct pw_clock *clock, uint64_t seed)
{
    struct sim_journal *j = pw_alloc(sizeof(*j));
    if (j == NULL)
        return PAWL_E_NOMEM;
    j->port.ops = &sim_ops;
    j->clock = clock;
    j->rng.state = seed;
    j->failed = true; /* it has not been looked at */
    create(j);
    *journal = &j->port;
    return PAWL_OK;
}

void pw_sim_journal_free(struct pw_journal *journal)
{
    struct sim_journal *j = of(journal);
    if (j == NULL)
        return;
    for (size_t i = 0; i < j->flights_count; i++)
        pw_free(j->flights[i].message);
    pw_free(j->flights);
    pw_sim_mail_clear(&j->mail);
    pw_sim_stream_clear(&j->stream);
    pw_sim_stream_clear(&j->snapshot);
    pw_free(j);
}

void pw_sim_journal_on_operation(struct pw_journal *journal, bool (*tick)(void *arg), void *arg)
{
    of(journal)->tick = tick;
    of(journal)->tick_arg = arg;
}

void pw_sim_journal_fail(struct pw_journal *journal, uint64_t one_in)
{
    of(journal)->fail_one_in = one_in;
}

void pw_sim_journal_crash(struct pw_journal *journal)
{
    struct sim_journal *j = of(journal);
    let_go(journal);
    settle(j);
    orphan_all(j);
    pw_sim_mail_forget(&j->mail);
    j->halted = false;
    j->failed = true;
    j->opened_seq = 0;
    j->fence = 0;
    j->acked = (struct pw_acked){ .lsn = 0 };
}

uint64_t pw_sim_journal_next_ms(struct pw_journal *journal)
{
    struct sim_journal *j = of(journal);
    settle(j);
    bool fresh = j->fresh;
    j->fresh = false;
    if (fresh || (can_fetch(j) && j->stream.last_seq >= j->next_seq &&
                  pw_sim_stream_at(&j->stream, j->next_seq) < j->stream.count))
        return 0;
    uint64_t next_ms = pw_sim_mail_next_ms(&j->mail);
    for (size_t i = 0; i < j->flights_count; i++) {
        const struct flight *flight = &j->flights[i];
        if (flight->message != NULL && flight->arrive_ms < next_ms)
            next_ms = flight->arrive_ms;
        if (!flight->settled && flight->answer_ms < next_ms)
            next_ms = flight->answer_ms;
    }
    return j->back_ms != 0 && j->back_ms < next_ms ? j->back_ms : next_ms;
}

/* --- what befalls a server, told from outside ----------------------------------------------- */

void pw_sim_journal_away(struct pw_journal *journal, bool away)
{
    settle(of(journal));
    set_away(of(journal), away);
}

void pw_sim_journal_purge(struct pw_journal *journal)
{
    pw_sim_journal_purge_to(journal, UINT64_MAX);
}

void pw_sim_journal_purge_to(struct pw_journal *journal, uint64_t seq)
{
    settle(of(journal));
    pw_sim_stream_cut(&of(journal)->stream, seq);
}

void pw_sim_journal_purge_subject(struct pw_journal *journal, const char *machine, const char *id)
{
    char subject[SUBJECT_SIZE] = "";
    settle(of(journal));
    subject_of(machine, id, subject);
    pw_free(pw_sim_stream_take(&of(journal)->stream, subject));
}

void pw_sim_journal_delete(struct pw_journal *journal, uint64_t seq)
{
    settle(of(journal));
    delete_seq(of(journal), seq);
}

void pw_sim_journal_recreate(struct pw_journal *journal)
{
    settle(of(journal));
    recreate(of(journal));
}

pawl_err pw_sim_journal_snapshot(struct pw_journal *journal)
{
    settle(of(journal));
    return snapshot(of(journal));
}

pawl_err pw_sim_journal_restore(struct pw_journal *journal)
{
    settle(of(journal));
    return restore(of(journal));
}

pawl_err pw_sim_journal_foreign(struct pw_journal *journal, const char *machine, const char *id,
                                pawl_bytes bytes)
{
    char subject[SUBJECT_SIZE] = "";
    subject_of(machine, id, subject);
    const struct pw_entry entry = {
        .kind = PW_ENTRY_VOID, .machine = machine, .id = id, .subject = subject, .record = bytes
    };
    settle(of(journal));
    return write_foreign(of(journal), &entry);
}

pawl_err pw_sim_journal_foreign_subject(struct pw_journal *journal, const char *subject,
                                        pawl_bytes bytes)
{
    const struct pw_entry entry = { .kind = PW_ENTRY_VOID, .subject = subject, .record = bytes };
    settle(of(journal));
    return write_foreign(of(journal), &entry);
}

void pw_sim_journal_harm(struct pw_journal *journal, uint64_t one_in, unsigned most)
{
    of(journal)->harm_one_in = one_in;
    of(journal)->harms_left = most;
}

/* --- what is there -------------------------------------------------------------------------- */

uint64_t pw_sim_journal_records(struct pw_journal *journal)
{
    settle(of(journal));
    return of(journal)->stream.count;
}

uint64_t pw_sim_journal_last_seq(struct pw_journal *journal)
{
    settle(of(journal));
    return of(journal)->stream.last_seq;
}

uint64_t pw_sim_journal_harms(struct pw_journal *journal)
{
    return of(journal)->harms;
}

uint64_t pw_sim_journal_refused(struct pw_journal *journal)
{
    settle(of(journal));
    return of(journal)->refused;
}

const struct pw_entry *pw_sim_journal_present(struct pw_journal *journal, const char *machine,
                                              const char *id)
{
    char subject[SUBJECT_SIZE] = "";
    settle(of(journal));
    subject_of(machine, id, subject);
    const struct pw_sim_message *message = pw_sim_stream_find(&of(journal)->stream, subject);
    return message != NULL ? &message->entry : NULL;
}

void pw_sim_journal_each(struct pw_journal *journal, pw_entry_seen seen, void *arg)
{
    struct sim_journal *j = of(journal);
    settle(j);
    for (size_t i = 0; i < j->stream.count; i++)
        hand_over(j, j->stream.messages[i], false, seen, arg);
}

static const struct pw_post *post_at(const struct pw_sim_posts *posts, size_t index)
{
    return index < posts->count ? &posts->items[index]->post : NULL;
}

const struct pw_post *pw_sim_journal_event(struct pw_journal *journal, size_t index)
{
    settle(of(journal));
    return post_at(&of(journal)->mail.events, index);
}

const struct pw_post *pw_sim_journal_letter(struct pw_journal *journal, size_t index)
{
    settle(of(journal));
    return post_at(&of(journal)->mail.letters, index);
}
