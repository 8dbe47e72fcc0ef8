/* SPDX-License-Identifier: Apache-2.0
 *
 * A kind of journal, for the suite that all kinds pass: how to make one, and how to play what
 * befalls its server. */
#ifndef TESTS_CONTRACT_JOURNAL_H
#define TESTS_CONTRACT_JOURNAL_H

#include "core/journal.h"

/* A world is a server with nothing on it, and the journals that use it, of one shard. */
struct journal_maker {
    const char *name;
    void *(*make)(struct pw_journal **journal);
    void (*free)(void *world); /* closes its journals, too */
    /* Lets time go on, until something may have happened. */
    void (*wait)(void *world);

    /* NULL: the kind cannot play it. */
    struct pw_journal *(*another)(void *world); /* on the same stream */
    void (*freeze)(void *world, bool frozen);   /* the server answers nothing, until false */
    void (*foreign)(void *world, const char *machine, const char *id);
    void (*foreign_subject)(void *world, const char *subject); /* "_mark" */
    void (*purge)(void *world);
    void (*recreate)(void *world);
    void (*save)(void *world);
    void (*roll_back)(void *world); /* to what was saved */

    /* After the last world. */
    void (*end)(void);

    /* How many are there. */
    size_t (*events)(void *world);
    size_t (*letters)(void *world);
};

/* Ends with NULL. */
extern const struct journal_maker *const journal_makers[];

#endif
