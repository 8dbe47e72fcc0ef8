/* SPDX-License-Identifier: Apache-2.0
 *
 * The verb `dlq redrive`: parked entities are freed, as `retry` does it; refused tells are sent
 * again, as commands; letters that were left behind are taken from the stream. What is selected is
 * written down first, and done then: the store is not read while it changes. */
#include <errno.h>
#include <stdio.h>

#include "app/bulk.h"
#include "app/dead.h"

struct redrive {
    struct pw_app *app;
    struct pw_deads deads;
    FILE *requests;       /* the parked ones: one a line, for the daemon */
    struct pw_dead *rest; /* the others; their texts are of `deads` */
    size_t rest_count;
    size_t rest_room;
    uint64_t counts[3]; /* by kind */
    uint64_t count;
    pawl_err err;
};

/* --- the selection ------------------------------------------------------------------------ */

static const char *does(enum pw_dead_kind kind, bool dry)
{
    static const char *const texts[3][2] = {
        [PW_DEAD_ENTITY] = { "to be freed", "would be freed" },
        [PW_DEAD_TELL] = { "to be told again", "would be told again" },
        [PW_DEAD_LEFT] = { "to be removed", "would be removed" },
    };
    return texts[kind][dry ? 1 : 0];
}

static void put(const struct redrive *redrive, const struct pw_dead *dead)
{
    const struct pw_letter *letter = &dead->letter;
    const char *text = does(dead->kind, redrive->app->args.dry_run != 0);
    const char *why = dead->kind == PW_DEAD_LEFT ? "it is not parked any more" : letter->why;
    if (redrive->app->config.json != 0)
        pw_put_json(json_pack("{s:s, s:s, s:s, s:o}", "machine", letter->machine, "id", letter->id,
                              "does", text, "why", pw_json_text(why)));
    else
        pw_put_plain("%s/%s: %s: %s\n", letter->machine, letter->id, text, why);
}

/* As `retry` takes it. The version: who was freed and works again is let be. */
static pawl_err write_request(struct redrive *redrive, const struct pw_dead *dead)
{
    return pw_bulk_write(redrive->requests,
                         json_pack("{s:s, s:s, s:o}", "machine", dead->letter.machine, "id",
                                   dead->letter.id, "version", pw_json_u64_text(dead->version)));
}

static pawl_err keep_rest(struct redrive *redrive, const struct pw_dead *dead)
{
    if (redrive->rest_count == redrive->rest_room) {
        size_t room = redrive->rest_room > 0 ? 2 * redrive->rest_room : 64;
        struct pw_dead *rest = pw_realloc(redrive->rest, room * sizeof(*rest));
        if (rest == NULL)
            return PAWL_E_NOMEM;
        redrive->rest = rest;
        redrive->rest_room = room;
    }
    redrive->rest[redrive->rest_count++] = *dead;
    return PAWL_OK;
}

static bool take(void *arg, const struct pw_dead *dead)
{
    struct redrive *redrive = arg;
    const struct pw_args *args = &redrive->app->args;
    put(redrive, dead);
    redrive->counts[dead->kind]++;
    redrive->count++;
    if (args->dry_run == 0)
        redrive->err =
            dead->kind == PW_DEAD_ENTITY ? write_request(redrive, dead) : keep_rest(redrive, dead);
    return redrive->err == PAWL_OK && pw_output_alive() && redrive->count != args->limit;
}

static pawl_err select_all(struct redrive *redrive, pawl_why *why)
{
    const struct pw_args *args = &redrive->app->args;
    bool named = args->words_count > 0;
    const char *machine = named ? args->words[0] : args->machine;
    const char *id = named ? args->words[1] : args->id;
    redrive->requests = tmpfile();
    if (redrive->requests == NULL)
        return pw_fail(why, PAWL_E_IO, "a temporary file: %s", strerror(errno));
    pawl_err err = pw_deads_open(&redrive->deads, redrive->app, machine, id, why);
    if (err == PAWL_OK)
        err = pw_deads_each(&redrive->deads, machine, id, take, redrive, why);
    if (err == PAWL_OK)
        err = redrive->err;
    if (err == PAWL_OK && redrive->count == 0 && !named)
        err = pw_app_check_names(redrive->app, why);
    if (err == PAWL_OK && redrive->count == 0 && named && redrive->deads.away == PAWL_OK)
        err = pw_fail(why, PAWL_E_NOT_FOUND, "it is not parked, and has no dead letter");
    return err;
}

static void put_counts(const struct redrive *redrive)
{
    bool dry = redrive->app->args.dry_run != 0;
    if (redrive->app->config.json != 0)
        return;
    (void)printf("%llu %s, %llu %s, %llu %s\n", (unsigned long long)redrive->counts[PW_DEAD_ENTITY],
                 does(PW_DEAD_ENTITY, dry), (unsigned long long)redrive->counts[PW_DEAD_TELL],
                 does(PW_DEAD_TELL, dry), (unsigned long long)redrive->counts[PW_DEAD_LEFT],
                 does(PW_DEAD_LEFT, dry));
}

/* --- the work ----------------------------------------------------------------------------- */

static void put_told(const struct redrive *redrive, const struct pw_dead *dead,
                     const json_t *command)
{
    const struct pw_letter *letter = &dead->letter;
    const char *machine = json_string_value(json_object_get(command, "machine"));
    const char *id = json_string_value(json_object_get(command, "id"));
    if (redrive->app->config.json != 0)
        pw_put_json(json_pack("{s:s, s:s, s:b, s:{s:s, s:s}}", "machine", letter->machine, "id",
                              letter->id, "ok", 1, "told", "machine", machine, "id", id));
    else
        pw_put_plain("%s/%s: told %s/%s\n", letter->machine, letter->id, machine, id);
}

/* The letter stays until the command was taken. */
static pawl_err tell_again(struct redrive *redrive, struct pw_remote *remote,
                           const struct pw_dead *dead, pawl_why *why)
{
    json_t *command = NULL;
    json_t *answer = NULL;
    pawl_err err = pw_dead_command(&redrive->deads, dead, &command, why);
    if (err == PAWL_OK)
        err = pw_remote_ask(remote, command, &answer, why);
    if (err == PAWL_OK)
        err = pw_letters_settle(redrive->deads.stream, &dead->letter, why);
    if (err == PAWL_OK)
        put_told(redrive, dead, command);
    json_decref(answer);
    json_decref(command);
    return err;
}

static int redrive_rest(struct redrive *redrive)
{
    struct pw_remote remote;
    pawl_why why = { "" };
    int status = PW_EXIT_OK;
    if (redrive->rest_count == 0)
        return PW_EXIT_OK;
    pawl_err err = pw_remote_open(&remote, &redrive->app->config, &why);
    if (err != PAWL_OK)
        return pw_complain(redrive->app, err, &why, "dlq redrive");
    for (size_t i = 0; i < redrive->rest_count; i++) {
        const struct pw_dead *dead = &redrive->rest[i];
        why = (pawl_why){ "" };
        err = dead->kind == PW_DEAD_TELL
                  ? tell_again(redrive, &remote, dead, &why)
                  : pw_letters_settle(redrive->deads.stream, &dead->letter, &why);
        if (err != PAWL_OK)
            status = pw_complain(redrive->app, err, &why, "dlq redrive %s/%s", dead->letter.machine,
                                 dead->letter.id);
    }
    pw_remote_close(&remote);
    return status;
}

static int redrive_all(struct redrive *redrive)
{
    pawl_why why = { "" };
    pawl_err err = select_all(redrive, &why);
    if (err != PAWL_OK)
        return pw_complain(redrive->app, err, &why, "dlq redrive");
    put_counts(redrive);
    if (redrive->app->args.dry_run != 0)
        return pw_deads_complain(&redrive->deads, PW_EXIT_OK);
    int freed = PW_EXIT_OK;
    if (redrive->counts[PW_DEAD_ENTITY] > 0)
        freed = pw_bulk_written(redrive->app, PW_OP_RETRY, redrive->requests);
    int told = redrive_rest(redrive);
    return pw_deads_complain(&redrive->deads, freed != PW_EXIT_OK ? freed : told);
}

int pw_verb_dlq_redrive(struct pw_app *app)
{
    struct redrive redrive = { .app = app };
    if (app->args.words_count == 0 && !pw_app_selects(&app->args))
        return pw_complain_usage(app, "dlq redrive: say which ones: MACHINE ID, --machine, "
                                      "--state, --key, --older, --id, or --all");
    if (app->args.words_count > 0 && (app->args.machine != NULL || app->args.id != NULL))
        return pw_complain_usage(app, "dlq redrive: MACHINE ID, or --machine and --id");
    int status = redrive_all(&redrive);
    pw_deads_close(&redrive.deads);
    if (redrive.requests != NULL)
        (void)fclose(redrive.requests); /* it goes with it */
    pw_free(redrive.rest);
    return status;
}
