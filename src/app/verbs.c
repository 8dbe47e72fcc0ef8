/* SPDX-License-Identifier: Apache-2.0
 *
 * The command line: settings from their table, verbs and their options from those below, read with
 * argp. A setting may stand before the verb and behind it. */
#include <argp.h>
#include <errno.h>
#include <stdio.h>

#include "app/verbs.h"

#define NONE (1u << 0)
#define ONE (1u << 1)
#define TWO (1u << 2)
#define THREE (1u << 3)

/* clang-format off */
const struct pw_verb pw_verbs[] = {
    { "run", "", NONE, "", "Be the daemon, until SIGTERM or SIGINT.", pw_verb_run },
    { "check", "", NONE, "", "Check the settings and the machines.", pw_verb_check },
    { "graph", "[MACHINE]", NONE | ONE, "", "Print machines in the DOT language.", pw_verb_graph },
    { "config", "", NONE, "sample", "Print all settings and where they come from.", pw_verb_config },
    { "status", "", NONE, "", "How many entities are where; how the daemon is.", pw_verb_status },
    { "list", "", NONE, "machine state key older parked limit history", "List entities.", pw_verb_list },
    { "show", "MACHINE ID", TWO, "", "Show an entity, and what happened to it.", pw_verb_show },
    { "verify", "", NONE, "", "Hold the store against itself, and the stream against it.", pw_verb_verify },
    { "outbox list", "", NONE, "machine state id older limit", "List what waits for the journal, or to be sent.", pw_verb_outbox_list },
    { "outbox replay", "", NONE, "machine state key id older all limit dry-run", "Append again what the stream lacks.", pw_verb_outbox_replay },
    { "dlq list", "", NONE, "machine state key id older limit", "List what waits for a person: parked entities, refused tells.", pw_verb_dlq_list },
    { "dlq show", "MACHINE ID", TWO, "", "Show what waits for a person of an entity.", pw_verb_dlq_show },
    { "dlq redrive", "[MACHINE ID]", NONE | TWO, "machine state key id older all limit dry-run", "Free parked entities; send refused tells again.", pw_verb_dlq_redrive },
    { "provision", "", NONE, "print check replicas", "Make the NATS streams that are missing, or compare them.", pw_verb_provision },
    { "create", "[MACHINE ID]", NONE | TWO, "data data-file key delay-ms message-id trace", "Create an entity.", pw_verb_command },
    { "send", "[MACHINE ID EVENT]", NONE | THREE, "data data-file version message-id trace", "Send an event to an entity.", pw_verb_command },
    { "delete", "[MACHINE ID]", NONE | TWO, "version", "Delete an entity.", pw_verb_command },
    { "retry", "[MACHINE ID]", NONE | TWO, "version", "Free a parked entity; end the wait of a retry.", pw_verb_command },
    { "hold", "[MACHINE]", NONE | ONE, "id state key", "Hold an entity, a state, a key or a machine.", pw_verb_command },
    { "release", "[MACHINE]", NONE | ONE, "id state key", "Release what is held.", pw_verb_command },
    { .name = NULL },
};

enum option_kind { TEXT, NUMBER, SWITCH };

static const struct {
    const char *name;
    const char *value;
    enum option_kind kind;
    size_t offset;
    uint64_t min;
    uint64_t max;
    const char *help;
} options[] = {
#define AT(member) offsetof(struct pw_args, member)
    { "machine",    "M",       TEXT,   AT(machine),    0, 0, "of this machine" },
    { "state",      "S",       TEXT,   AT(state),      0, 0, "in, or of, this state" },
    { "key",        "K",       TEXT,   AT(key),        0, 0, "with this fairness key" },
    { "id",         "ID",      TEXT,   AT(id),         0, 0, "this entity" },
    { "older",      "SECONDS", NUMBER, AT(older_s),    1, PW_DURATION_MS_MAX / 1000, "in its state for longer" },
    { "parked",     NULL,      SWITCH, AT(parked),     0, 0, "waiting for a person" },
    { "limit",      "N",       NUMBER, AT(limit),      1, UINT64_MAX, "at most so many" },
    { "history",    NULL,      SWITCH, AT(history),    0, 0, "with what happened to them" },
    { "sample",     NULL,      SWITCH, AT(sample),     0, 0, "print a file of settings with the defaults" },
    { "all",        NULL,      SWITCH, AT(all),        0, 0, "whatever it is" },
    { "dry-run",    NULL,      SWITCH, AT(dry_run),    0, 0, "say what would be done, and do nothing" },
    { "print",      NULL,      SWITCH, AT(print),      0, 0, "print what JetStream's API would be sent, one request a line" },
    { "check",      NULL,      SWITCH, AT(check),      0, 0, "compare with the server, and change nothing" },
    { "replicas",   "N",       NUMBER, AT(replicas),   1, 5, "of a stream that is made (default 1)" },
    { "data",       "TEXT",    TEXT,   AT(data),       0, 0, "the entity's data" },
    { "data-file",  "FILE",    TEXT,   AT(data_file),  0, 0, "the entity's data, from a file" },
    { "delay-ms",   "N",       NUMBER, AT(delay_ms),   0, PW_DURATION_MS_MAX, "a working start state begins after it" },
    { "version",    "V",       NUMBER, AT(version),    1, UINT64_MAX, "only when the entity has this version" },
    { "message-id", "X",       TEXT,   AT(message_id), 0, 0, "the same message id acts once" },
    { "trace",      "T",       TEXT,   AT(trace),      0, 0, "W3C traceparent" },
#undef AT
};
/* clang-format on */

/* argp's keys. */
#define KEY_SETTING 0x1000
#define KEY_OPTION 0x2000
#define KEY_HELP 0x3000
#define KEY_USAGE 0x3001
#define KEY_VERSION 0x3002

#define OPTIONS_MAX (PW_SETTINGS_MAX + PW_COUNT(options) + 4)

/* What argp needs to stay. */
struct grammar {
    struct argp_option options[OPTIONS_MAX];
    size_t count;
    char helps[PW_SETTINGS_MAX][256];
    char doc[4096];
    struct argp argp;
    struct pw_line *line;
};

static void add(struct grammar *grammar, const char *name, int key, const char *value,
                const char *help)
{
    assert(grammar->count < OPTIONS_MAX - 1); /* the last row ends them */
    grammar->options[grammar->count++] =
        (struct argp_option){ .name = name, .key = key, .arg = value, .doc = help };
}

static void hide_last(struct grammar *grammar)
{
    grammar->options[grammar->count - 1].flags = OPTION_HIDDEN;
}

static void add_settings(struct grammar *grammar, bool hidden)
{
    for (size_t i = 0; i < pw_settings_count; i++) {
        const struct pw_setting *row = &pw_settings[i];
        if (row->initial != NULL && row->kind != PW_SET_SWITCH)
            pw_print(grammar->helps[i], sizeof(grammar->helps[i]), "%s (default %s)", row->help,
                     row->initial);
        else
            pw_print(grammar->helps[i], sizeof(grammar->helps[i]), "%s", row->help);
        add(grammar, row->key, KEY_SETTING + (int)i, row->value, grammar->helps[i]);
        if (hidden)
            hide_last(grammar);
    }
    add(grammar, "help", KEY_HELP, NULL, "print this, and no more");
    add(grammar, "usage", KEY_USAGE, NULL, "print a short usage, and no more");
}

/* True when `name` is one of the words. */
static bool is_among(const char *name, const char *words)
{
    size_t size = strlen(name);
    for (const char *at = words; *at != '\0'; at += strspn(at, " ")) {
        size_t word = strcspn(at, " ");
        if (word == size && memcmp(at, name, size) == 0)
            return true;
        at += word;
    }
    return false;
}

/* --- what argp calls ---------------------------------------------------------------------- */

static error_t wrong(struct argp_state *state, const char *what, const char *value)
{
    argp_error(state, "%s%s", what, value);
    return EINVAL;
}

static error_t take_setting(struct pw_line *line, size_t setting, const char *value,
                            struct argp_state *state)
{
    if (line->flags_count == PW_FLAGS_MAX)
        return wrong(state, "too many flags at ", pw_settings[setting].key);
    line->flags[line->flags_count++] = (struct pw_flag){ setting, value != NULL ? value : "true" };
    return 0;
}

static error_t take_option(struct pw_line *line, size_t option, const char *value,
                           struct argp_state *state)
{
    void *at = (char *)&line->app->args + options[option].offset;
    char text[128] = "";
    line->app->args.options_count++;
    if (options[option].kind == TEXT)
        *(const char **)at = value;
    else if (options[option].kind == SWITCH)
        *(uint64_t *)at = 1;
    else if (!pw_parse_number(value, options[option].min, options[option].max, at)) {
        pw_print(text, sizeof(text), "--%s: '%.32s' is not a whole number from %llu to %llu",
                 options[option].name, value, (unsigned long long)options[option].min,
                 (unsigned long long)options[option].max);
        return wrong(state, text, "");
    }
    return 0;
}

/* Help is printed here, for argp would end the process. */
static error_t take_help(struct grammar *grammar, int key, struct argp_state *state)
{
    unsigned flags = key == KEY_USAGE ? ARGP_HELP_USAGE : ARGP_HELP_STD_HELP;
    if (key == KEY_VERSION)
        (void)printf("pawl %s\n", pawl_version());
    else
        argp_help(&grammar->argp, stdout, flags & ~(unsigned)ARGP_HELP_EXIT_OK, state->name);
    grammar->line->done = true;
    state->next = state->argc;
    return 0;
}

static error_t take_common(struct grammar *grammar, int key, char *value, struct argp_state *state)
{
    if (key >= KEY_HELP && key <= KEY_VERSION)
        return take_help(grammar, key, state);
    if (key >= KEY_OPTION && key < KEY_OPTION + (int)PW_COUNT(options))
        return take_option(grammar->line, (size_t)(key - KEY_OPTION), value, state);
    if (key >= KEY_SETTING && key < KEY_SETTING + (int)pw_settings_count)
        return take_setting(grammar->line, (size_t)(key - KEY_SETTING), value, state);
    return ARGP_ERR_UNKNOWN;
}

/* --- verbs of one word or two -------------------------------------------------------------- */

static bool has_second(const struct pw_verb *verb)
{
    return strchr(verb->name, ' ') != NULL;
}

/* The verb's first word is this one; *rest: what follows it, "" or its second word. */
static bool begins_with(const struct pw_verb *verb, const char *first, const char **rest)
{
    size_t size = strcspn(verb->name, " ");
    *rest = verb->name + size + (verb->name[size] == ' ' ? 1 : 0);
    return strlen(first) == size && memcmp(verb->name, first, size) == 0;
}

static const struct pw_verb *find_verb(const char *first, const char *second)
{
    const char *rest = "";
    for (const struct pw_verb *verb = pw_verbs; verb->name != NULL; verb++)
        if (begins_with(verb, first, &rest) &&
            (!has_second(verb) || (second != NULL && strcmp(rest, second) == 0)))
            return verb;
    return NULL;
}

static error_t no_such_verb(struct argp_state *state, const char *first, const char *second)
{
    const char *rest = "";
    for (const struct pw_verb *verb = pw_verbs; verb->name != NULL; verb++) {
        if (!begins_with(verb, first, &rest))
            continue;
        argp_error(state, "no such verb: %s%s%s; there is '%s'", first, second != NULL ? " " : "",
                   second != NULL ? second : "", verb->name);
        return EINVAL;
    }
    return wrong(state, "no such verb: ", first);
}

static error_t take_global(int key, char *value, struct argp_state *state)
{
    struct grammar *grammar = state->input;
    struct pw_line *line = grammar->line;
    if (line->done)
        return 0;
    if (key == ARGP_KEY_ARG) {
        const char *second = state->next < state->argc ? state->argv[state->next] : NULL;
        line->verb = find_verb(value, second);
        if (line->verb == NULL)
            return no_such_verb(state, value, second);
        line->verb_at = state->next - (has_second(line->verb) ? 0 : 1);
        state->next = state->argc; /* the rest is the verb's */
        return 0;
    }
    if (key == ARGP_KEY_NO_ARGS)
        return wrong(state, "a verb is missing", "");
    return take_common(grammar, key, value, state);
}

static error_t take_verb(int key, char *value, struct argp_state *state)
{
    struct grammar *grammar = state->input;
    struct pw_line *line = grammar->line;
    struct pw_args *args = &line->app->args;
    if (line->done)
        return 0;
    if (key == ARGP_KEY_ARG) {
        if (args->words_count == PW_WORDS_MAX)
            return wrong(state, "too many words at ", value);
        args->words[args->words_count++] = value;
        return 0;
    }
    if (key == ARGP_KEY_END && (line->verb->counts >> args->words_count & 1) == 0)
        return wrong(state, args->words_count == 0 ? "words are missing" : "wrong number of words",
                     "");
    return take_common(grammar, key, value, state);
}

/* --- the two grammars --------------------------------------------------------------------- */

static const char exits[] =
    "Exit status:\n\n"
    "  0  all right\n"
    "  1  refused; trying again does not help\n"
    "  2  wrong command line, environment or file of settings\n"
    "  3  conflict: no such entity, it exists, no such edge, another version,\n"
    "     owned by another process\n"
    "  4  try again: no daemon, busy, full, stopping\n"
    "  5  verify or provision --check found faults\n"
    "  6  run was forced to end while work still ran\n";

static void describe_verbs(char *to, size_t size)
{
    size_t used = 0;
    pw_print(to, size, "%s",
             "Durable, task-based state machines: the daemon and its tool.\vVerbs:\n\n");
    for (const struct pw_verb *verb = pw_verbs; verb->name != NULL; verb++) {
        char head[48] = "";
        used = strlen(to);
        pw_print(head, sizeof(head), "%s %s", verb->name, verb->words);
        pw_print(to + used, size - used, "  %-26s %s\n", head, verb->help);
    }
    used = strlen(to);
    pw_print(to + used, size - used, "%s",
             "\nWithout words, create, send, delete, retry, hold and release read one JSON object "
             "a line from standard "
             "input: machine, id, event, data or data_base64, key, delay_ms, message_id, version, "
             "trace, state. ");
    used = strlen(to);
    pw_print(to + used, size - used, "%s", exits);
}

/* `name` is what messages begin with. */
static bool parse(struct grammar *grammar, char *name, int argc, char **argv, unsigned flags)
{
    char *first = argv[0];
    argv[0] = name;
    error_t failed =
        argp_parse(&grammar->argp, argc, argv, flags | ARGP_NO_EXIT | ARGP_NO_HELP, NULL, grammar);
    argv[0] = first;
    return failed == 0;
}

static bool read_global(struct pw_line *line, int argc, char **argv)
{
    struct grammar grammar = { .line = line };
    char name[256] = "";
    add_settings(&grammar, false);
    add(&grammar, "version", KEY_VERSION, NULL, "print the version, and no more");
    describe_verbs(grammar.doc, sizeof(grammar.doc));
    grammar.argp = (struct argp){ .options = grammar.options,
                                  .parser = take_global,
                                  .args_doc = "VERB [WORD...]",
                                  .doc = grammar.doc };
    pw_print(name, sizeof(name), "%s", line->app->program);
    return parse(&grammar, name, argc, argv, ARGP_IN_ORDER);
}

static bool read_verb(struct pw_line *line, int argc, char **argv)
{
    struct grammar grammar = { .line = line };
    char name[256] = "";
    for (size_t i = 0; i < PW_COUNT(options); i++)
        if (is_among(options[i].name, line->verb->options))
            add(&grammar, options[i].name, KEY_OPTION + (int)i, options[i].value, options[i].help);
    add_settings(&grammar, true);
    pw_print(grammar.doc, sizeof(grammar.doc),
             "%s\vThe settings of `%.64s --help` may stand here, too.\n\n%s", line->verb->help,
             line->app->program, exits);
    grammar.argp = (struct argp){ .options = grammar.options,
                                  .parser = take_verb,
                                  .args_doc = line->verb->words,
                                  .doc = grammar.doc };
    pw_print(name, sizeof(name), "%.128s %s", line->app->program, line->verb->name);
    return parse(&grammar, name, argc, argv, 0);
}

bool pw_line_read(struct pw_line *line, struct pw_app *app, int argc, char **argv)
{
    *line = (struct pw_line){ .app = app };
    if (!read_global(line, argc, argv))
        return false;
    if (line->done)
        return true;
    assert(line->verb != NULL);
    app->verb = line->verb->name;
    return read_verb(line, argc - line->verb_at, argv + line->verb_at);
}
