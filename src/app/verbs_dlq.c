/* SPDX-License-Identifier: Apache-2.0
 *
 * What waits for a person, listed and shown: parked entities, and tells that were refused for good.
 */
#include <stdio.h>

#include "app/dead.h"
#include "app/print.h"
#include "app/sheet.h"
#include "app/text.h"

/* Rows that a table lays out together. */
#define TABLE_ROWS 4096

static const char *kind_name(enum pw_dead_kind kind)
{
    static const char *const names[] = {
        [PW_DEAD_ENTITY] = "parked", [PW_DEAD_TELL] = "tell", [PW_DEAD_LEFT] = "left behind"
    };
    return names[kind];
}

static bool set(json_t *object, const char *name, json_t *value)
{
    return json_object_set_new(object, name, value) == 0;
}

/* NULL: out of memory. */
static json_t *json_of(const struct pw_dead *dead)
{
    const struct pw_letter *letter = &dead->letter;
    json_t *object =
        json_pack("{s:s, s:s, s:s, s:o, s:I, s:o}", "machine", letter->machine, "id", letter->id,
                  "kind", kind_name(dead->kind), "epoch", pw_json_u64_text(letter->place.epoch),
                  "since_ms", (json_int_t)dead->since_ms, "why", pw_json_text(letter->why));
    bool complete = object != NULL;
    if (complete && dead->kind == PW_DEAD_ENTITY)
        complete = set(object, "version", pw_json_u64_text(dead->version));
    if (complete && dead->kind == PW_DEAD_TELL)
        complete = set(object, "lsn", pw_json_u64_text(letter->place.lsn)) &&
                   set(object, "n", json_integer((json_int_t)letter->place.n));
    if (complete && letter->seq != 0)
        complete = set(object, "seq", pw_json_u64_text(letter->seq));
    if (complete)
        return object;
    json_decref(object);
    return NULL;
}

/* --- list --------------------------------------------------------------------------------- */

struct listing {
    struct pw_app *app;
    struct pw_sheet table;
    uint64_t count;
};

static void list_row(struct listing *listing, const struct pw_dead *dead)
{
    const struct pw_letter *letter = &dead->letter;
    char epoch[24] = "";
    char since[PW_TIME_TEXT_SIZE] = "";
    char seq[24] = "-";
    pw_print(epoch, sizeof(epoch), "%llu", (unsigned long long)letter->place.epoch);
    pw_print_time(dead->since_ms, since);
    if (letter->seq != 0)
        pw_print(seq, sizeof(seq), "%llu", (unsigned long long)letter->seq);
    const char *cells[] = { letter->machine, letter->id, epoch,      kind_name(dead->kind),
                            since,           seq,        letter->why };
    pw_sheet_row(&listing->table, cells);
    if (listing->table.rows == TABLE_ROWS)
        pw_sheet_flush(&listing->table);
}

static bool list_one(void *arg, const struct pw_dead *dead)
{
    struct listing *listing = arg;
    listing->count++;
    if (listing->app->config.json != 0)
        pw_put_json(json_of(dead));
    else
        list_row(listing, dead);
    return pw_output_alive() && listing->count != listing->app->args.limit;
}

int pw_verb_dlq_list(struct pw_app *app)
{
    static const char *const heads[] = {
        "MACHINE", "ID", "EPOCH", "WHAT", "SINCE", "LETTER", "WHY"
    };
    const struct pw_args *args = &app->args;
    struct listing listing = { .app = app };
    struct pw_deads deads;
    pawl_why why = { "" };
    pw_sheet_init(&listing.table, heads, PW_COUNT(heads));
    pawl_err err = pw_deads_open(&deads, app, args->machine, args->id, &why);
    if (err == PAWL_OK)
        err = pw_deads_each(&deads, args->machine, args->id, list_one, &listing, &why);
    if (!pw_sheet_print(&listing.table) && err == PAWL_OK)
        err = PAWL_E_NOMEM;
    if (err == PAWL_OK && listing.count == 0)
        err = pw_app_check_names(app, &why);
    int status = err == PAWL_OK ? pw_deads_complain(&deads, PW_EXIT_OK)
                                : pw_complain(app, err, &why, "dlq list");
    pw_deads_close(&deads);
    return status;
}

/* --- show --------------------------------------------------------------------------------- */

struct showing {
    struct pw_deads *deads;
    pawl_why *why;
    uint64_t count;
    pawl_err err;
};

/* What the store knows of the parked entity, besides. */
static pawl_err add_entity(struct showing *showing, const struct pw_dead *dead, json_t *object)
{
    pawl_entity *entity = NULL;
    pawl_err err =
        pawl_read(showing->deads->engine, dead->letter.machine, dead->letter.id, &entity);
    json_t *all = err == PAWL_OK ? pw_json_entity(entity) : NULL;
    if (err == PAWL_OK && (all == NULL || json_object_update_missing(object, all) != 0))
        err = PAWL_E_NOMEM;
    json_decref(all);
    pawl_entity_free(entity);
    return err;
}

/* What was told, as the command that would tell it again. */
static pawl_err add_tell(struct showing *showing, const struct pw_dead *dead, json_t *object)
{
    json_t *command = NULL;
    pawl_err err = pw_dead_command(showing->deads, dead, &command, showing->why);
    if (err == PAWL_E_CORRUPT)
        return set(object, "fault", json_string(showing->why->text)) ? PAWL_OK : PAWL_E_NOMEM;
    if (err == PAWL_OK && !set(object, "told", command))
        err = PAWL_E_NOMEM;
    return err;
}

static void put_members(const json_t *object, const char *before)
{
    const char *name = NULL;
    json_t *value = NULL;
    char named[64] = "";
    json_object_foreach((json_t *)object, name, value)
    {
        pw_print(named, sizeof(named), "%s%s", before, name);
        if (json_is_object(value))
            put_members(value, "told ");
        else
            pw_put_member(named, value);
    }
}

static bool show_one(void *arg, const struct pw_dead *dead)
{
    struct showing *showing = arg;
    json_t *object = json_of(dead);
    showing->err = object == NULL ? PAWL_E_NOMEM : PAWL_OK;
    if (object != NULL && dead->kind == PW_DEAD_ENTITY)
        showing->err = add_entity(showing, dead, object);
    else if (object != NULL && dead->kind == PW_DEAD_TELL)
        showing->err = add_tell(showing, dead, object);
    if (showing->err == PAWL_E_NOT_FOUND) { /* settled meanwhile */
        showing->err = PAWL_OK;
        json_decref(object);
        return true;
    }
    if (showing->err != PAWL_OK) {
        json_decref(object);
        return false;
    }
    if (showing->deads->app->config.json != 0) {
        pw_put_json(object);
    } else {
        if (showing->count > 0)
            (void)putchar('\n');
        put_members(object, "");
        json_decref(object);
    }
    showing->count++;
    return pw_output_alive();
}

int pw_verb_dlq_show(struct pw_app *app)
{
    const char *machine = app->args.words[0];
    const char *id = app->args.words[1];
    struct pw_deads deads;
    pawl_why why = { "" };
    struct showing showing = { .deads = &deads, .why = &why };
    pawl_err err = pw_deads_open(&deads, app, machine, id, &why);
    if (err == PAWL_OK)
        err = pw_deads_each(&deads, machine, id, show_one, &showing, &why);
    if (err == PAWL_OK)
        err = showing.err;
    if (err == PAWL_OK && showing.count == 0 && deads.away == PAWL_OK)
        err = pw_fail(&why, PAWL_E_NOT_FOUND, "it is not parked, and has no dead letter");
    int status = err == PAWL_OK ? pw_deads_complain(&deads, PW_EXIT_OK)
                                : pw_complain(app, err, &why, "dlq show %s/%s", machine, id);
    pw_deads_close(&deads);
    return status;
}
