/* SPDX-License-Identifier: Apache-2.0
 *
 * What waits for a person: the store's parked entities, joined with the stream's dead letters. Main
 * thread. */
#ifndef PW_DEAD_H
#define PW_DEAD_H

#include "app/app.h"
#include "base/arena.h"
#include "jetstream/letters.h"

enum pw_dead_kind {
    PW_DEAD_ENTITY, /* it is parked; its letter may be yet to come (seq 0) */
    PW_DEAD_TELL,   /* what it told was refused for good */
    PW_DEAD_LEFT,   /* a letter whose entity is not parked any more */
};

struct pw_dead {
    enum pw_dead_kind kind;
    uint64_t version;        /* ENTITY: the store's */
    uint64_t since_ms;       /* ENTITY: it is in its state; else: the letter is in the stream */
    struct pw_letter letter; /* without its record */
};

struct pw_deads {
    const struct pw_app *app;
    pawl *engine;
    struct pw_letters *stream; /* NULL: the bus is local */
    struct pw_arena arena;
    struct pw_found *found;
    size_t found_count;
    size_t found_room;
    pawl_err away; /* why the stream was not read; what it has is left out then */
    pawl_why why_away;
};

/* Opens the store, and reads the heads of the stream's letters: of this machine and id, NULL: of
 * all. PAWL_E_USAGE: it is no name. Ended by pw_deads_close, also when this fails. */
PAWL_MUST_USE pawl_err pw_deads_open(struct pw_deads *deads, const struct pw_app *app,
                                     const char *machine, const char *id, pawl_why *why);
void pw_deads_close(struct pw_deads *deads);

/* Borrowed for the call; return false to end. */
typedef bool (*pw_dead_seen)(void *arg, const struct pw_dead *dead);

/* The store's first, then what is the stream's alone. machine, id: as for the opening, or NULL; the
 * rest as --state, --key and --older say: a tell has no state and no key, and is left out when one
 * is asked for. */
PAWL_MUST_USE pawl_err pw_deads_each(struct pw_deads *deads, const char *machine, const char *id,
                                     pw_dead_seen seen, void *arg, pawl_why *why);

/* What a refused tell said, read from the stream, as the command that would say it again: under the
 * letter's label as its message id, so that it acts once. PAWL_E_NOT_FOUND: the letter was settled
 * meanwhile. PAWL_E_CORRUPT: no owner wrote it. *command is the caller's. */
PAWL_MUST_USE pawl_err pw_dead_command(struct pw_deads *deads, const struct pw_dead *dead,
                                       json_t **command, pawl_why *why);

/* Says that the stream was left out, if it was. Returns the status, a worse one then. */
int pw_deads_complain(const struct pw_deads *deads, int status);

#endif
