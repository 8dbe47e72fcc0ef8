/* SPDX-License-Identifier: Apache-2.0
 *
 * What the verbs share: the settings, the arguments, the exit status, and how errors and objects
 * are printed. All of it is the main thread's. */
#ifndef PW_APP_H
#define PW_APP_H

#include <jansson.h>

#include "app/config.h"
#include "pawl/client.h"

/* The exit status: a promise, written in --help and in this folder's README. */
enum pw_exit {
    PW_EXIT_OK = 0,
    PW_EXIT_REFUSED = 1,   /* final, misuse: trying again does not help */
    PW_EXIT_USAGE = 2,     /* command line, environment or file of settings */
    PW_EXIT_CONFLICT = 3,  /* the world is otherwise */
    PW_EXIT_TRANSIENT = 4, /* try again */
    PW_EXIT_FAULTS = 5,    /* `verify`, or `provision --check`, found something */
    PW_EXIT_FORCED = 6,    /* `run` ended while work still ran */
};

/* The only place where a class becomes a status. */
int pw_exit_of(pawl_err err);
const char *pw_class_name(pawl_err_class class_of); /* "conflict" */

/* From a name ("E_FULL"); an unknown one is PAWL_E_IO. */
pawl_err pw_err_of_name(const char *name);

#define PW_WORDS_MAX 3

/* What stands behind a verb. */
struct pw_args {
    const char *words[PW_WORDS_MAX];
    size_t words_count;
    size_t options_count;
    const char *machine;
    const char *state;
    const char *key;
    const char *id;
    const char *data;
    const char *data_file;
    const char *message_id;
    const char *trace;
    uint64_t older_s;
    uint64_t limit;
    uint64_t delay_ms;
    uint64_t version;
    uint64_t parked; /* switches: 0 or 1 */
    uint64_t history;
    uint64_t sample;
    uint64_t all;
    uint64_t dry_run;
    uint64_t print;
    uint64_t check;
    uint64_t replicas;
};

struct pw_app {
    const char *program; /* as errors begin */
    const char *verb;
    const pawl_unit *units;
    struct pw_config config;
    struct pw_args args;
};

/* "program: what: why (try again)" on standard error; returns the status. */
int pw_complain(const struct pw_app *app, pawl_err err, const pawl_why *why, const char *what, ...)
    PAWL_PRINTF(4, 5);
/* The same for a wrong command line. */
int pw_complain_usage(const struct pw_app *app, const char *what, ...) PAWL_PRINTF(2, 3);

/* The engine by the settings. options->log may be set before; the rest is filled in. */
PAWL_MUST_USE pawl_err pw_app_open(const struct pw_app *app, pawl_options *options, pawl **engine,
                                   pawl_why *why);
/* For looking only. */
PAWL_MUST_USE pawl_err pw_app_open_read_only(const struct pw_app *app, pawl **engine,
                                             pawl_why *why);

/* The journal of a shard as it stands on the bus, for looking only. PAWL_E_USAGE: the bus is
 * local. Does not connect. Closed by the caller. */
struct pw_journal;
PAWL_MUST_USE pawl_err pw_app_open_journal(const struct pw_app *app, uint32_t shard,
                                           struct pw_journal **journal, pawl_why *why);

/* How many shards a data directory has; 0: none, or no directory. PAWL_E_SCHEMA: one is missing. */
PAWL_MUST_USE pawl_err pw_app_count_shards(const char *dir, uint32_t *count, pawl_why *why);

/* What --machine, --state, --key, --older and --parked ask for. Borrows from the arguments. */
pawl_query pw_app_query(const struct pw_args *args);

/* Whether --machine, --state, --key, --id, --older or --all was given. */
bool pw_app_selects(const struct pw_args *args);

/* For when nothing was found: PAWL_E_USAGE when no machine has the name that --machine asks for, or
 * none of them the state. */
PAWL_MUST_USE pawl_err pw_app_check_names(const struct pw_app *app, pawl_why *why);

/* The unit's machine; NULL when this program has none of that name. */
const pawl_machine *pw_app_machine(const struct pw_app *app, const char *name);

/* One object a line on standard output. Takes the reference; NULL: out of memory, which fails the
 * output. */
void pw_put_json(json_t *object);

/* A line for people, on standard output: control characters of what came from outside become '?'.
 */
void pw_put_plain(const char *format, ...) PAWL_PRINTF(1, 2);

/* False when standard output is gone: stop quietly. */
bool pw_output_alive(void);

/* A text that may not be UTF-8, like an error that was cut: its other bytes become '?'. */
json_t *pw_json_text(const char *text);

/* 64-bit numbers that do not fit a double, like versions, go as text. */
json_t *pw_json_u64_text(uint64_t value);

/* Sets "data", or "data_base64" when it is not printable. False: out of memory. */
bool pw_json_set_data(json_t *object, pawl_bytes data);

/* --- the verbs: each returns the exit status ---------------------------------------------- */

int pw_verb_run(struct pw_app *app);
int pw_verb_check(struct pw_app *app);
int pw_verb_graph(struct pw_app *app);
int pw_verb_config(struct pw_app *app);
int pw_verb_status(struct pw_app *app);
int pw_verb_list(struct pw_app *app);
int pw_verb_show(struct pw_app *app);
int pw_verb_verify(struct pw_app *app);
int pw_verb_provision(struct pw_app *app);
int pw_verb_outbox_list(struct pw_app *app);
int pw_verb_outbox_replay(struct pw_app *app);
int pw_verb_dlq_list(struct pw_app *app);
int pw_verb_dlq_show(struct pw_app *app);
int pw_verb_dlq_redrive(struct pw_app *app);
int pw_verb_command(struct pw_app *app); /* create, send, delete, retry, hold, release */

#endif
