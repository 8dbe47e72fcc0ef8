/* SPDX-License-Identifier: Apache-2.0
 *
 * The dead letters of a namespace, read and settled by a person's tool. Makes no stream. One
 * thread. */
#ifndef PW_LETTERS_H
#define PW_LETTERS_H

#include "jetstream/subject.h"
#include "pawl/engine.h"

struct pw_letter {
    const char *machine;
    const char *id;
    struct pw_letter_place place;
    uint64_t seq;
    uint64_t stored_ms;
    const char *label; /* its header Pawl-Id, "<namespace>.<shard>.<lsn>.<n>"; "": it has none */
    const char *why;
    pawl_bytes record; /* empty when only heads are read */
};

struct pw_letters;

struct pw_letters_options {
    const char *bus; /* all are copied */
    const pawl_nats *nats;
    const char *ns;
};

/* Does not connect. PAWL_E_CONFIG, PAWL_E_NOMEM. */
PAWL_MUST_USE pawl_err pw_letters_open(struct pw_letters **letters,
                                       const struct pw_letters_options *options, pawl_why *why);

/* Borrowed for the call; return false to end. It may call pw_letters_settle. */
typedef bool (*pw_letter_seen)(void *arg, const struct pw_letter *letter);

/* All, those of a machine, those of an entity, in the order of the stream. Messages that are no
 * letters are passed over; without the stream there are none. PAWL_E_IO: NATS is away.
 * PAWL_E_USAGE: the id is too long. `machine` is a valid name. */
PAWL_MUST_USE pawl_err pw_letters_read(struct pw_letters *letters, const char *machine,
                                       const char *id, bool heads, pw_letter_seen seen, void *arg,
                                       pawl_why *why);

/* Takes the letter from the stream, unless a later one has its subject by now. */
PAWL_MUST_USE pawl_err pw_letters_settle(struct pw_letters *letters, const struct pw_letter *letter,
                                         pawl_why *why);

/* Takes NULL. */
void pw_letters_close(struct pw_letters *letters);

#endif
