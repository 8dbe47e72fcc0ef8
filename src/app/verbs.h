/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of verbs, and the reader of the command line. Main thread. */
#ifndef PW_VERBS_H
#define PW_VERBS_H

#include "app/app.h"

struct pw_verb {
    const char *name;
    const char *words;   /* as --help shows them */
    unsigned counts;     /* bit n: n words are right */
    const char *options; /* their names, with a blank between */
    const char *help;
    int (*run)(struct pw_app *app);
};

/* Ends with a row without name. */
extern const struct pw_verb pw_verbs[];

#define PW_FLAGS_MAX 64

struct pw_line {
    struct pw_app *app;
    const struct pw_verb *verb;
    struct pw_flag flags[PW_FLAGS_MAX];
    size_t flags_count;
    bool done; /* --help, --version: nothing is left to do */
    int verb_at;
};

/* Reads argv: finds the verb, fills app->args and the flags. False: wrong, and said so on standard
 * error. */
bool pw_line_read(struct pw_line *line, struct pw_app *app, int argc, char **argv);

#endif
