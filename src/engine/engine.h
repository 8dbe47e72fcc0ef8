/* SPDX-License-Identifier: Apache-2.0
 *
 * The engine's parts and how they hang together. Each part's functions stand in its own header
 * below its struct. */
#ifndef PW_ENGINE_H
#define PW_ENGINE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/rng.h"
#include "base/wake.h"
#include "core/journal.h"
#include "core/tables.h"
#include "engine/holds.h"
#include "engine/pool.h"
#include "engine/request.h"

/* The last tell of another shard that was acted on (kept in the store), and the last one answered
 * (also the refused). */
struct pw_cursor {
    uint64_t acted_lsn;
    uint64_t answered_lsn;
    uint32_t acted_n;
    uint32_t answered_n;
};

enum pw_walk_kind {
    PW_WALK_NONE,
    PW_WALK_LIST,    /* all that is ready, at start */
    PW_WALK_SWEEP,   /* the safety net */
    PW_WALK_RELEASE, /* a hold's end */
};

/* A walk over the state index in bounded steps, between batches. */
struct pw_walk {
    enum pw_walk_kind kind;
    size_t machine; /* where it is: of engine->machines, of its states, the next row */
    size_t state;
    uint64_t row;
    enum pw_hold_kind hold_kind; /* RELEASE: which scope */
    char hold_machine[PW_NAME_MAX + 1];
    char hold_name[PW_KEY_MAX + 1];
};

struct pw_writer {
    struct pw_queue inbox;
    struct pw_wake wake;
    struct pw_arena arena;
    struct pw_meta meta;
    struct pw_rng rng;
    struct pw_batch *batch; /* the one of a turn, too large for a stack */
    struct pw_cursor told[PW_SHARDS_MAX];
    struct pw_walk walk;
    struct pw_node *kept; /* inside requests that found no room, in the order of their again_ms */
    struct pw_node *kept_last;
    uint64_t refused_ms;  /* the store refused: timers and trims are not tried before */
    uint64_t next_due_ms; /* journal time of the first due row; 0: look */
    uint64_t tend_ms;     /* monotonic, like refused_ms and sweep_ms */
    uint64_t sweep_ms;
    bool walk_wanted; /* at start: a release was left in the middle */
    bool broken;      /* a commit's end is unknown: reopen before anything else */
    bool full_said;
};

/* One tell under way. */
struct pw_tell {
    struct pw_request request; /* first: found again from it */
    struct pw_relay *relay;
    const struct pw_record *record; /* the sender's, and its bytes: of the lot */
    pawl_bytes bytes;
    uint32_t to_shard;
    bool waits; /* to be sent (again) */
};

/* What the relay has to send of a lot of records, with what they point to. */
struct pw_lot_effects {
    struct pw_arena arena;
    struct pw_tell *tells;
    size_t tells_count;
    struct pw_post *posts;
    size_t posts_count;
    size_t posts_sent; /* the others wait for room in the window */
    uint64_t upto_lsn; /* the lot is done up to here when all is answered; 0: no lot */
};

/* Where the relay stands with its journal: engine/keeper.c. */
enum pw_tail {
    PW_TAIL_LOOK,  /* what the stream is must be asked */
    PW_TAIL_CATCH, /* its end is read: is all of it known? */
    PW_TAIL_OPEN,  /* the ownership is to be taken */
    PW_TAIL_HEADS, /* its heads are read: what does it lack? */
    PW_TAIL_LIVE,  /* records are appended */
    PW_TAIL_LOST,  /* another owner has it */
};

struct pw_keeper {
    enum pw_tail tail;
    struct pw_journal_state state; /* of the last look */
    struct pw_last_opening last;   /* as far as it was read */
    struct pw_arena arena;         /* of the requests under way */
    struct pw_request *first;      /* of the requests that are being made */
    _Atomic size_t unanswered;
    uint64_t read_seq;
    uint64_t top_lsn;    /* the highest of the stream that is known here */
    uint64_t marked_lsn; /* the last mark said so */
    uint64_t append_lsn; /* the journal has what is below */
    uint64_t retry_ms;   /* monotonic, like the others */
    uint64_t compare_ms;
    uint64_t mark_ms;
    uint32_t failures;
    uint8_t *present; /* a bit a row: its record is in the stream */
    uint64_t present_rows;
    uint64_t seed_row;         /* the walk over the rows that the stream lacks */
    unsigned seed_pass;        /* working ones first; 0: none goes on */
    bool reconcile;            /* wanted, or under way */
    bool mismatch;             /* the last comparison found the stream otherwise */
    bool said;                 /* the present failure was logged */
    bool refused;              /* the server takes no records: well again when it took one */
    uint32_t fence;            /* of our last opening */
    uint64_t taken;            /* records of the journal that the store did not know */
    uint64_t progress_ms;      /* said next */
    struct pw_request *newest; /* the last of the list that `first` begins */
};

struct pw_relay {
    struct pw_wake wake;
    struct pw_arena arena; /* of rows that are appended */
    struct pw_lot_effects lot;
    struct pw_keeper keeper;
    _Atomic size_t unanswered; /* tells */
    uint64_t sent_lsn;         /* effects up to it are sent */
    uint64_t retry_ms;         /* monotonic: not before */
    uint32_t failures;         /* in a row, for the backoff */
    bool resend;               /* the lot's refused ones are to be sent again */
};

/* What the relay tells of its journal: to the writer, for meta, and to `status`. At start it is
 * meta's. */
struct pw_position {
    pthread_mutex_t lock;
    bool known; /* opened since this start */
    uint64_t created;
    uint64_t seq;
    uint64_t lsn;
    char error[256]; /* the last failure; "" when the last look was good */
    bool live;
};

struct pw_shard {
    struct pawl *engine;
    uint32_t index;
    struct pw_tables tables;
    struct pw_journal
        *journal; /* NULL: bus local, a record counts as journalled once it is committed */
    struct pw_writer writer;
    struct pw_relay relay;
    _Atomic uint64_t committed_lsn; /* writer -> relay */
    _Atomic uint64_t acked_lsn;     /* relay -> writer: in the journal up to here */
    _Atomic uint64_t trim_lsn;      /* relay -> writer: outbox and effects done up to here */
    _Atomic uint64_t outbox_lsn;    /* writer -> relay: the last change that has an outbox row */
    _Atomic uint64_t opened_lsn;    /* relay -> all: what the last opening follows */
    _Atomic uint64_t seen_lsn;      /* subscriber -> writer: the last record that came back */
    _Atomic bool serving;           /* the journal's tail is known: tasks may be worked */
    _Atomic bool list_wanted;       /* -> writer: the ready are to be listed */
    _Atomic bool void_seen;         /* subscriber -> relay: the stream is to be compared */
    _Atomic bool lost;              /* another owner has the shard */
    struct pw_position position;
    pthread_cond_t journalled; /* with position.lock: acked_lsn has risen, or never will */
    uint64_t time_base_ms;     /* journal time = base + monotonic - start */
    uint64_t time_start_ms;
    struct pw_wake subscriber_wake;
    struct pw_arena fetch_arena; /* subscriber's */
    uint64_t start_lsn;          /* changes up to it are of earlier owners */
    bool probation;              /* what was ready at start is begun on probation */
    pthread_t threads[3];
    unsigned threads_count;
};

/* The simulated world in the place of threads. */
struct pw_drive {
    void (*turn)(void *arg);
    void *arg;
};

/* Called by a writer for every change that is a line of history, after its commit. */
struct pw_trace {
    void (*line)(void *arg, uint64_t time_ms, const char *machine, const char *id,
                 const struct pw_happening *happening);
    void *arg;
};

/* Gets the changes that the journal contradicts, and that are taken out of the store. Writer
 * thread. */
struct pw_set_aside {
    void (*row)(void *arg, uint32_t shard, uint64_t lsn, pawl_bytes record);
    void (*end)(void *arg); /* the engine is closed; NULL: nothing is to be done */
    void *arg;
};

struct pawl {
    struct pw_log log;
    struct pw_metrics metrics;
    struct pw_clock *clock;
    struct pw_clock machine_clock;
    char ns[PW_NAMESPACE_MAX + 1];
    struct pw_machines machines;
    struct pw_pool *pools[PW_MACHINES_MAX]; /* in the order of machines.list */
    struct pw_shard *shards;
    uint32_t shards_count;
    struct pw_holds holds;
    atomic_flag suspect_runs; /* one task that died twice at a time */
    _Atomic bool stopping;    /* no new commands, no new work */
    _Atomic bool ending;      /* threads leave */
    _Atomic uint32_t callers; /* in a call of client.h: close answers them, and waits for them */
    bool started;
    bool read_only;
    bool no_jitter;
    uint64_t stop_ms;
    struct pw_drive drive; /* turn NULL: threads */
    struct pw_trace trace;
    struct pw_set_aside set_aside;
    uint64_t outbox_rows_max;
    uint64_t compare_ms; /* how often streams are held against their stores; tests set it */
    int lock;            /* of the data directory; -1: none */
    void (*unlock)(int lock);
};

/* What pawl_open (in app) and the simulated world hand over: stores, and journals or NULL. */
struct pw_parts {
    const char *ns;
    struct pw_store **stores; /* one a shard; owned by the engine from here, also when this fails */
    struct pw_journal **journals; /* NULL, or one a shard, owned like the stores */
    uint32_t shards;
    struct pw_clock *clock; /* NULL: the machine's */
    struct pw_log log;
    struct pw_drive drive;
    struct pw_trace trace;
    struct pw_set_aside set_aside;
    uint64_t outbox_rows_max; /* 0: the default */
    uint64_t stop_ms;
    uint64_t seed;
    bool read_only;
    bool no_jitter;
    int lock;
    void (*unlock)(int lock);
};

PAWL_MUST_USE pawl_err pw_engine_open(struct pawl **engine, const struct pw_parts *parts,
                                      pawl_why *why);

/* Gives the engine up as a killed process would: nothing is drained or written. The simulated
 * world's. */
void pw_engine_abandon(struct pawl *engine);

/* Waits up to `ms` until no work runs. True: none does. */
bool pw_engine_drain(struct pawl *engine, uint64_t ms);

/* Around each call of client.h. Between the two the engine stays. */
void pw_enter(struct pawl *engine);
void pw_leave(struct pawl *engine);

/* An entity's record is appended to its journal again, under a new version, as pawl_send_async
 * changes one; answer->repeated: its last change waits in the outbox, and nothing was done.
 * PAWL_E_NOT_FOUND; PAWL_E_USAGE: the bus is local. Any thread. */
PAWL_MUST_USE pawl_err pw_replay_async(struct pawl *engine, const char *machine, const char *id,
                                       pawl_answered answered, void *arg, pawl_why *why);

struct pw_shard *pw_shard_of(struct pawl *engine, const char *id);
struct pw_pool *pw_pool_of(struct pawl *engine, const pawl_machine *machine);

/* Journal time. Writer thread, and where a stale moment does no harm. */
uint64_t pw_shard_now(const struct pw_shard *shard);

/* --- turns: what threads loop around, and the simulated world calls ----------------------- */

/* Each returns after how many milliseconds it wants its next turn; PW_NEVER: when it is poked. */
uint64_t pw_writer_turn(struct pw_shard *shard);
uint64_t pw_relay_turn(struct pw_shard *shard);
uint64_t pw_subscriber_turn(struct pw_shard *shard);
/* One task, if there is one to run. False: none. */
bool pw_worker_turn(struct pw_pool *pool);

/* --- recovery, walks ---------------------------------------------------------------------- */

/* What a shard's store says of it, besides its entities. */
struct pw_left {
    struct pw_meta meta;
    uint64_t outbox_lsn; /* of the last row; 0: none */
    bool is_new;
    bool releasing; /* a release is not through */
};

/* Reads it, in one transaction; which tells were acted on, and what is held, go where they are kept
 * in memory. Before the writer runs, or by it. */
PAWL_MUST_USE pawl_err pw_shard_read(struct pw_shard *shard, struct pw_left *left);

/* At start, before the threads: reads meta, takes a fence, lists the ready, parks what is in a
 * state that is gone. */
PAWL_MUST_USE pawl_err pw_recover(struct pw_shard *shard, pawl_why *why);

/* One bounded step of the shard's walk. Writer thread. */
void pw_walk_turn(struct pw_shard *shard);

/* Ends a walk that releases the scope: it is held again. A later release begins anew. */
void pw_walk_end(struct pw_shard *shard, enum pw_hold_kind kind, const char *machine,
                 const char *name);

/* Begins the next open release, or the sweep. */
void pw_walk_next(struct pw_shard *shard, uint64_t mono_ms);

/* 0: there is none. */
uint64_t pw_row_of(struct pw_shard *shard, const char *machine, const char *id);

/* True when the ready entity's task comes, or will come, by the journal, so that a walk must not
 * list it. */
bool pw_comes_by_journal(const struct pw_shard *shard, const struct pw_entity *entity);

/* Begins to list all that is ready. */
void pw_walk_list(struct pw_shard *shard);

/* --- relay -------------------------------------------------------------------------------- */

void pw_relay_init(struct pw_shard *shard);
/* At start. What the outbox holds above meta.sent_lsn is to be sent (again). */
void pw_relay_begin(struct pw_shard *shard, uint64_t committed_lsn, uint64_t outbox_lsn);
void pw_relay_fini(struct pw_shard *shard);

/* Nothing is to be appended or sent, and nothing is under way. Any thread, when the relay rests. */
bool pw_relay_is_idle(struct pw_shard *shard);

/* Outbox rows, copied. */
struct pw_outbox_row {
    uint64_t lsn;
    pawl_bytes record;
};

/* Reads rows from `from` up to `upto` into rows, at most `room` and PW_RELAY_BYTES_MAX; *more:
 * there may be others. */
PAWL_MUST_USE pawl_err pw_outbox_read(struct pw_shard *shard, struct pw_arena *arena, uint64_t from,
                                      uint64_t upto, struct pw_outbox_row *rows, size_t room,
                                      size_t *count, bool *more);

/* effects.c: sends the effects of what is journalled. Returns when it wants to go on. */
uint64_t pw_effects_turn(struct pw_shard *shard);

/* keeper.c: keeps the journal's tail. */
void pw_keeper_init(struct pw_shard *shard);
void pw_keeper_fini(struct pw_shard *shard);
uint64_t pw_keeper_turn(struct pw_shard *shard);
/* Puts what is known of the journal into meta. Writer thread. */
void pw_keeper_position(struct pw_shard *shard, struct pw_meta *meta);
/* The journal cannot be appended to as it stands: it is to be looked at. */
void pw_keeper_lose(struct pw_shard *shard, pawl_err err, const char *why);
/* One request to the writer; a lot of them is sent by pw_keeper_send. NULL: out of memory. */
struct pw_request *pw_keeper_request(struct pw_shard *shard, enum pw_request_kind kind);
void pw_keeper_send(struct pw_shard *shard);

/* seed.c: appends again what the stream lacks. */
PAWL_MUST_USE pawl_err pw_seed_heads(struct pw_shard *shard, bool *through);
PAWL_MUST_USE pawl_err pw_seed_turn(struct pw_shard *shard);
/* How many records the stream holds when nothing is under way. */
PAWL_MUST_USE pawl_err pw_seed_expected(struct pw_shard *shard, uint64_t *records);

/* Waits until the journal has the change. PAWL_E_STALE: the claim was cancelled before, since its
 * attempt is over, or the engine stops. */
PAWL_MUST_USE pawl_err pw_wait_journalled(struct pw_shard *shard, uint64_t lsn,
                                          struct pw_pool *pool, struct pw_claim *claim);

#endif
