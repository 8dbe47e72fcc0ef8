/* SPDX-License-Identifier: Apache-2.0
 *
 * The journal port: a stream of records, one subject an entity of which the newest record is kept,
 * numbered by the sequence of the stream. Records come back from it in order. What is to be done
 * when it is away, cut, or written by others is decided in the engine (engine/keeper.c,
 * engine/relay.c); an adapter only carries it out. Implemented by src/jetstream (a NATS server) and
 * src/sim (memory); both pass tests/contract/journal.c.
 *
 * Threads: `fetch` is the subscriber's; `halt` and `close` are the engine's; everything else is the
 * relay's. A call may wait for the server, some seconds at most; after `halt` none waits any more.
 * Errors: PAWL_E_IO: the server is away, or gave no answer in time: try again later.
 * PAWL_E_CONFIG: the stream is there, with a setting that loses records, or may not be touched; the
 * text names it. PAWL_E_NOMEM. */
#ifndef PW_JOURNAL_H
#define PW_JOURNAL_H

#include "core/store.h"

struct pw_journal;

/* The stream, as its leader knows it. */
struct pw_journal_state {
    uint64_t created; /* which stream it is: its time of creation, in ns; another one has another */
    uint64_t last_seq;  /* of its last record, also of one that is gone */
    uint64_t records;   /* how many it holds */
    uint64_t fence_seq; /* of the last opening's last fence record; 0: none is there */
    uint32_t fence;     /* of the last opening */
};

enum pw_entry_kind {
    PW_ENTRY_RECORD,
    PW_ENTRY_FENCE, /* of an opening: lsn is what it follows */
    PW_ENTRY_MARK,  /* effects up to lsn are sent */
    PW_ENTRY_VOID,  /* a foreign one: no owner wrote it */
};

struct pw_entry {
    enum pw_entry_kind kind;
    bool tombstone; /* RECORD */
    uint64_t seq;
    uint64_t lsn;        /* 0: VOID */
    uint64_t stored_ms;  /* the server's clock; only ever compared with itself */
    const char *machine; /* RECORD and VOID; NULL: VOID, on a subject that is no entity's */
    const char *id;
    const char *subject; /* for the log */
    pawl_bytes record;   /* RECORD and MARK; empty when only heads were asked for */
};

/* Borrowed for the call. */
typedef void (*pw_entry_seen)(void *arg, const struct pw_entry *entry);

/* One record to be appended. Borrowed for the call. */
struct pw_append {
    uint64_t lsn;
    uint64_t epoch; /* of a task: its key is machine/id@epoch */
    const char *machine;
    const char *id;
    const char *trace;
    bool tombstone;
    bool task;
    pawl_bytes record;
};

/* Takes the ownership. */
struct pw_opening {
    uint64_t applied_seq; /* the stream's last sequence must be this one */
    uint64_t follows_lsn; /* what is at and below it is in the stream or was replaced there */
    uint64_t sent_lsn;    /* the mark: effects up to it are sent */
    uint32_t fence;
    pawl_bytes mark;
};

#define PW_REFUSAL_SIZE 128

/* How far the appends are. */
struct pw_acked {
    uint64_t lsn; /* all up to it are acknowledged; 0: none of this opening */
    uint64_t seq;
    size_t waiting;                /* appended, and neither acknowledged nor failed */
    char refusal[PW_REFUSAL_SIZE]; /* with PAWL_E_IO, why the server takes no record, in its words,
                                      when it is not for what others wrote; else "" */
};

enum pw_post_kind {
    PW_POST_EVENT,    /* a message for others: machine, id (of its sender), name, trace, data */
    PW_POST_LETTER,   /* a dead letter: machine, id, epoch, lsn, n, why, data (the record); n 0: the
                         entity is parked; n: its record's tell n - 1 was refused for good */
    PW_POST_NO_LETTER /* it is settled: machine, id, epoch */
};

/* What is sent after a record, elsewhere. Borrowed for the call. */
struct pw_post {
    enum pw_post_kind kind;
    uint32_t n;
    uint64_t lsn; /* its id is <lsn>.<n> */
    uint64_t epoch;
    const char *machine;
    const char *id;
    const char *name;
    const char *trace;
    const char *why;
    pawl_bytes data;
};

struct pw_journal_ops {
    /* Connects if need be, makes the stream when it is missing, and asks its leader. From here
     * appends expect state->last_seq to be the stream's last. PAWL_E_BUSY: appends of before are
     * neither answered nor timed out yet; ask again when `poke` is called, or in a few ms. */
    pawl_err (*look)(struct pw_journal *journal, struct pw_journal_state *state, pawl_why *why);

    /* Hands over the stream's entries from from_seq on, in order, at most `most`; *through: there
     * were no more (up to the last look's last_seq). `next_seq` goes on. heads: without their
     * bytes. */
    pawl_err (*read)(struct pw_journal *journal, uint64_t from_seq, bool heads, size_t most,
                     pw_entry_seen seen, void *arg, uint64_t *next_seq, bool *through);

    /* PW_WINDOW + 1 fence records in a row and one mark, the first expecting applied_seq; waits for
     * all. Appends go on behind it, and `fetch` begins behind it, with a consumer of its own; those
     * of lower fences go. *seq: of the mark. PAWL_E_VERSION: the stream went on, look again. */
    pawl_err (*open)(struct pw_journal *journal, const struct pw_opening *opening, uint64_t *seq);

    /* Appends one record behind the last one, without waiting for its acknowledgement. lsns rise,
     * but may begin anew from a lower one after a look: every reader takes a record only when its
     * lsn is higher than what it has. PAWL_E_BUSY: the window is full. PAWL_E_IO: look, and begin
     * again from the lowest unacknowledged. */
    pawl_err (*append)(struct pw_journal *journal, const struct pw_append *append);

    /* A mark: effects up to lsn are sent. Through the window like a record, but its lsn is never
     * acked->lsn. */
    pawl_err (*mark)(struct pw_journal *journal, uint64_t sent_lsn, pawl_bytes mark);

    /* How far they are; PAWL_E_IO: one was refused or not answered in time, or the connection was
     * lost; `acked` is set as well. */
    pawl_err (*acked)(struct pw_journal *journal, struct pw_acked *acked);

    /* Removes one entry. PAWL_OK also when it is gone already. */
    pawl_err (*remove)(struct pw_journal *journal, uint64_t seq);

    /* The present entry of an entity's subject. PAWL_E_NOT_FOUND. */
    pawl_err (*last)(struct pw_journal *journal, const char *machine, const char *id,
                     pw_entry_seen seen, void *arg);

    /* Sends, without waiting for the acknowledgement. PAWL_E_BUSY: the window is full. */
    pawl_err (*post)(struct pw_journal *journal, const struct pw_post *post);

    /* How many posts are unanswered. PAWL_E_IO: since the last call one failed, or was not answered
     * in time; all that were under way are to be sent again. */
    pawl_err (*posted)(struct pw_journal *journal, size_t *waiting);

    /* Hands over what came back behind the opening, at most `most`, and waits up to half a second
     * for the first. Acknowledges, to the server, what it handed over the time before. Takes care
     * of its consumer by itself: makes it anew when it is gone, or delivers nothing. Returns their
     * number; 0 also when nothing is opened. */
    size_t (*fetch)(struct pw_journal *journal, size_t most, pw_entry_seen seen, void *arg);

    /* Calls that wait return soon, with PAWL_E_IO; later ones do not begin. Any thread. */
    void (*halt)(struct pw_journal *journal);

    /* After the threads have ended. Takes NULL. */
    void (*close)(struct pw_journal *journal);
};

/* The first member of every adapter's struct. */
struct pw_journal {
    const struct pw_journal_ops *ops;
    /* Set by the engine before the first call: an acknowledgement or failure has come, or the
     * connection came or went. Any thread. */
    void (*poke)(void *arg);
    void *poke_arg;
};

#endif
