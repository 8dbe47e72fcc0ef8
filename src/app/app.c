/* SPDX-License-Identifier: Apache-2.0
 *
 * See app.h. */
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "app/app.h"
#include "app/secrets.h"
#include "app/text.h"
#include "base/clock.h"
#include "jetstream/journal.h"

int pw_exit_of(pawl_err err)
{
    if (err == PAWL_E_CONFIG)
        return PW_EXIT_USAGE;
    switch (pawl_err_class_of(err)) {
    case PAWL_CLASS_OK:
        return PW_EXIT_OK;
    case PAWL_CLASS_TRANSIENT:
        return PW_EXIT_TRANSIENT;
    case PAWL_CLASS_CONFLICT:
        return PW_EXIT_CONFLICT;
    case PAWL_CLASS_FINAL:
    case PAWL_CLASS_MISUSE:
    default:
        return PW_EXIT_REFUSED;
    }
}

const char *pw_class_name(pawl_err_class class_of)
{
    static const char *const names[] = {
        [PAWL_CLASS_OK] = "ok",
        [PAWL_CLASS_TRANSIENT] = "transient",
        [PAWL_CLASS_CONFLICT] = "conflict",
        [PAWL_CLASS_FINAL] = "final",
        [PAWL_CLASS_MISUSE] = "misuse",
    };
    return (size_t)class_of < PW_COUNT(names) ? names[class_of] : "?";
}

pawl_err pw_err_of_name(const char *name)
{
    for (int i = 0; i < PAWL_ERR_COUNT; i++)
        if (strcmp(pawl_err_name((pawl_err)i), name) == 0)
            return (pawl_err)i;
    return PAWL_E_IO;
}

/* --- errors ------------------------------------------------------------------------------- */

/* Ids come from outside: their control characters must not reach a terminal. */
static void put_error_line(char *line)
{
    for (char *at = line; *at != '\0'; at++)
        if (iscntrl((unsigned char)*at))
            *at = '?';
    (void)fprintf(stderr, "%s\n", line); /* nobody to tell */
}

static void print_list(char *to, size_t size, const char *format, va_list list) PAWL_PRINTF(3, 0);
static void print_list(char *to, size_t size, const char *format, va_list list)
{
    if (vsnprintf(to, size, format, list) < 0)
        to[0] = '\0';
}

int pw_complain(const struct pw_app *app, pawl_err err, const pawl_why *why, const char *what, ...)
{
    char thing[512] = "";
    char line[1024] = "";
    bool again = pawl_err_class_of(err) == PAWL_CLASS_TRANSIENT;
    bool said = why != NULL && why->text[0] != '\0';
    va_list list;
    va_start(list, what);
    print_list(thing, sizeof(thing), what, list);
    va_end(list);
    pw_print(line, sizeof(line), "%.128s: %s: %s%s", app->program, thing,
             said ? why->text : pawl_err_text(err), again ? " (try again)" : "");
    put_error_line(line);
    return pw_exit_of(err);
}

int pw_complain_usage(const struct pw_app *app, const char *what, ...)
{
    char text[512] = "";
    char line[1024] = "";
    va_list list;
    va_start(list, what);
    print_list(text, sizeof(text), what, list);
    va_end(list);
    pw_print(line, sizeof(line), "%.128s: %s", app->program, text);
    put_error_line(line);
    return PW_EXIT_USAGE;
}

/* --- the engine --------------------------------------------------------------------------- */

pawl_err pw_app_open(const struct pw_app *app, pawl_options *options, pawl **engine, pawl_why *why)
{
    const struct pw_config *config = &app->config;
    struct pw_secrets secrets = { .nats = { .user = NULL } };
    if (!options->read_only) { /* who only looks needs no NATS */
        pawl_err err = pw_secrets_read(&secrets, config, why);
        if (err != PAWL_OK)
            return err;
    }
    options->dir = config->dir;
    options->bus = config->bus;
    options->nats = &secrets.nats;
    options->outbox_rows_max = config->outbox_rows_max;
    options->ns = config->ns;
    options->shards = (uint32_t)config->shards;
    options->sync = config->sync;
    options->map_bytes = config->map_size;
    options->readers_max = (uint32_t)config->readers_max;
    options->stop_ms = config->stop_ms;
    pawl_err err = pawl_open(engine, options, why);
    options->nats = NULL; /* was borrowed for the call */
    return err;
}

pawl_err pw_app_open_read_only(const struct pw_app *app, pawl **engine, pawl_why *why)
{
    pawl_options options = { .read_only = true };
    return pw_app_open(app, &options, engine, why);
}

pawl_err pw_app_open_journal(const struct pw_app *app, uint32_t shard, struct pw_journal **journal,
                             pawl_why *why)
{
    const struct pw_config *config = &app->config;
    struct pw_secrets secrets = { .nats = { .user = NULL } };
    if (strcmp(config->bus, "local:") == 0)
        return pw_fail(why, PAWL_E_USAGE, "the bus is local: there is no stream");
    pawl_err err = pw_secrets_read(&secrets, config, why);
    if (err != PAWL_OK)
        return err;
    const struct pw_jetstream_options options = { .bus = config->bus,
                                                  .nats = &secrets.nats,
                                                  .ns = config->ns,
                                                  .shard = shard,
                                                  .look_only = true };
    return pw_jetstream_open(journal, &options, why);
}

pawl_query pw_app_query(const struct pw_args *args)
{
    struct pw_clock clock;
    pw_clock_init(&clock);
    uint64_t now_ms = clock.wall_ms(&clock);
    pawl_query query = { .machine = args->machine,
                         .state = args->state,
                         .key = args->key,
                         .parked = args->parked != 0 };
    if (args->older_s > 0)
        query.entered_before_ms = now_ms > args->older_s * 1000 ? now_ms - args->older_s * 1000 : 1;
    return query;
}

bool pw_app_selects(const struct pw_args *args)
{
    return args->machine != NULL || args->state != NULL || args->key != NULL || args->id != NULL ||
           args->older_s > 0 || args->all != 0;
}

const pawl_machine *pw_app_machine(const struct pw_app *app, const char *name)
{
    for (const pawl_unit *unit = app->units; unit->machine != NULL; unit++)
        if (unit->machine->name != NULL && strcmp(unit->machine->name, name) == 0)
            return unit->machine;
    return NULL;
}

static bool has_state(const pawl_machine *machine, const char *state)
{
    for (size_t i = 0; i < machine->states_count; i++)
        if (machine->states[i].name != NULL && strcmp(machine->states[i].name, state) == 0)
            return true;
    return false;
}

pawl_err pw_app_check_names(const struct pw_app *app, pawl_why *why)
{
    const struct pw_args *args = &app->args;
    if (args->machine != NULL && pw_app_machine(app, args->machine) == NULL)
        return pw_fail(why, PAWL_E_USAGE, "no machine '%.64s'", args->machine);
    if (args->state == NULL)
        return PAWL_OK;
    for (const pawl_unit *unit = app->units; unit->machine != NULL; unit++)
        if ((args->machine == NULL || unit->machine == pw_app_machine(app, args->machine)) &&
            has_state(unit->machine, args->state))
            return PAWL_OK;
    if (args->machine == NULL)
        return pw_fail(why, PAWL_E_USAGE, "no machine has a state '%.64s'", args->state);
    return pw_fail(why, PAWL_E_USAGE, "machine '%.64s' has no state '%.64s'", args->machine,
                   args->state);
}

/* --- output ------------------------------------------------------------------------------- */

static int put_bytes(const char *bytes, size_t size, void *arg)
{
    (void)arg;
    return fwrite(bytes, 1, size, stdout) == size ? 0 : -1;
}

void pw_put_json(json_t *object)
{
    if (object == NULL) {
        (void)fprintf(stderr, "out of memory\n"); /* nobody to tell */
        return;
    }
    if (json_dump_callback(object, put_bytes, NULL, JSON_COMPACT) == 0)
        (void)putchar('\n'); /* pw_output_alive and the end look at stdout */
    json_decref(object);
}

void pw_put_plain(const char *format, ...)
{
    char line[1024] = "";
    va_list list;
    va_start(list, format);
    print_list(line, sizeof(line), format, list);
    va_end(list);
    for (char *at = line; *at != '\0'; at++)
        (void)putchar(iscntrl((unsigned char)*at) && *at != '\n' ? '?' : *at);
}

bool pw_output_alive(void)
{
    return ferror(stdout) == 0;
}

json_t *pw_json_text(const char *text)
{
    char plain[512] = "";
    json_t *made = json_string(text);
    if (made != NULL)
        return made;
    pw_print(plain, sizeof(plain), "%s", text);
    for (char *at = plain; *at != '\0'; at++)
        if (((unsigned char)*at & 0x80) != 0)
            *at = '?';
    return json_string(plain);
}

json_t *pw_json_u64_text(uint64_t value)
{
    char text[24] = "";
    pw_print(text, sizeof(text), "%llu", (unsigned long long)value);
    return json_string(text);
}

bool pw_json_set_data(json_t *object, pawl_bytes data)
{
    if (pw_is_printable(data))
        return json_object_set_new(object, "data",
                                   json_stringn(data.size > 0 ? data.data : "", data.size)) == 0;
    char *text = pw_alloc(PW_BASE64_SIZE(data.size) + 1);
    if (text == NULL)
        return false;
    pw_base64_encode(data, text);
    bool set = json_object_set_new(object, "data_base64", json_string(text)) == 0;
    pw_free(text);
    return set;
}
