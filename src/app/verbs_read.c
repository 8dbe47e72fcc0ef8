/* SPDX-License-Identifier: Apache-2.0
 *
 * The verbs that look at the data directory, also beside a running daemon: list, show, verify. */
#include <stdio.h>

#include "app/print.h"
#include "app/remote.h"
#include "app/sheet.h"
#include "app/text.h"
#include "core/journal.h"
#include "engine/compare.h"

/* Rows that a table lays out together. */
#define TABLE_ROWS 4096

/* --- list --------------------------------------------------------------------------------- */

struct listing {
    struct pw_app *app;
    pawl *engine;
    struct pw_sheet table;
    uint64_t count;
    pawl_err err;
};

static void put_history(const json_t *history, const char *indent)
{
    size_t i = 0;
    json_t *line = NULL;
    char time[PW_TIME_TEXT_SIZE] = "";
    json_array_foreach(history, i, line)
    {
        pw_print_time((uint64_t)json_integer_value(json_object_get(line, "time_ms")), time);
        (void)printf("%s%s  ", indent, time);
        pw_put_text(json_string_value(json_object_get(line, "text")));
    }
}

static const char *flags_of(const pawl_entity *entity)
{
    if (entity->held)
        return entity->parked ? "held,parked" : "held";
    return entity->parked ? "parked" : "";
}

static void list_row(struct listing *listing, const pawl_entity *entity)
{
    char entered[PW_TIME_TEXT_SIZE] = "";
    char due[PW_TIME_TEXT_SIZE] = "";
    char attempt[16] = "";
    pw_print_time(entity->entered_ms, entered);
    pw_print_time(entity->due_ms, due);
    pw_print(attempt, sizeof(attempt), "%u", entity->attempt);
    const char *row[] = { entity->machine, entity->id,       entity->state, attempt, entered, due,
                          entity->key,     flags_of(entity), entity->error };
    pw_sheet_row(&listing->table, row);
    if (listing->table.rows == TABLE_ROWS)
        pw_sheet_flush(&listing->table);
}

static void list_json(struct listing *listing, const pawl_entity *entity, json_t *history)
{
    json_t *object = pw_json_entity(entity);
    if (object != NULL && history != NULL && json_object_set_new(object, "history", history) != 0) {
        json_decref(object);
        object = NULL;
    }
    if (object == NULL)
        listing->err = PAWL_E_NOMEM;
    else
        pw_put_json(object);
}

static bool list_one(void *arg, const pawl_entity *entity)
{
    struct listing *listing = arg;
    const struct pw_args *args = &listing->app->args;
    json_t *history = NULL;
    pawl_err err = PAWL_OK;
    if (args->history != 0)
        history = pw_json_history(listing->engine, entity->machine, entity->id, &err);
    if (err == PAWL_E_NOT_FOUND)
        return true; /* deleted meanwhile */
    if (err != PAWL_OK) {
        listing->err = err;
        return false;
    }
    listing->count++;
    if (listing->app->config.json != 0) {
        list_json(listing, entity, history);
    } else if (history != NULL) {
        (void)printf("%s/%s %s %s\n", entity->machine, entity->id, entity->state, flags_of(entity));
        put_history(history, "  ");
        json_decref(history);
    } else {
        list_row(listing, entity);
    }
    return listing->err == PAWL_OK && pw_output_alive() && listing->count != args->limit;
}

int pw_verb_list(struct pw_app *app)
{
    static const char *const heads[] = { "MACHINE", "ID",  "STATE", "ATTEMPT", "ENTERED",
                                         "DUE",     "KEY", "FLAGS", "ERROR" };
    struct listing listing = { .app = app };
    pawl_why why = { "" };
    const pawl_query query = pw_app_query(&app->args);
    pawl_err err = pw_app_open_read_only(app, &listing.engine, &why);
    if (err != PAWL_OK)
        return pw_complain(app, err, &why, "list");
    pw_sheet_init(&listing.table, heads, PW_COUNT(heads));
    err = pawl_scan(listing.engine, &query, list_one, &listing, &why);
    pawl_close(listing.engine);
    if (err == PAWL_OK)
        err = listing.err;
    if (!pw_sheet_print(&listing.table) && err == PAWL_OK)
        err = PAWL_E_NOMEM;
    if (err == PAWL_OK && listing.count == 0)
        err = pw_app_check_names(app, &why);
    return err == PAWL_OK ? PW_EXIT_OK : pw_complain(app, err, &why, "list");
}

/* --- show --------------------------------------------------------------------------------- */

static void put_entity(json_t *object)
{
    const char *name = NULL;
    json_t *value = NULL;
    json_object_foreach(object, name, value) pw_put_member(name, value);
    (void)printf("history\n");
    put_history(json_object_get(object, "history"), "  ");
    json_decref(object);
}

int pw_verb_show(struct pw_app *app)
{
    const char *machine = app->args.words[0];
    const char *id = app->args.words[1];
    pawl *engine = NULL;
    pawl_entity *entity = NULL;
    json_t *object = NULL;
    pawl_why why = { "" };
    pawl_err err = pw_app_open_read_only(app, &engine, &why);
    if (err == PAWL_OK)
        err = pawl_read(engine, machine, id, &entity);
    if (err == PAWL_OK)
        object = pw_json_entity(entity);
    if (object != NULL)
        (void)json_object_set_new(object, "history",
                                  pw_json_history(engine, machine, id, &err)); /* err says it */
    pawl_entity_free(entity);
    pawl_close(engine);
    if (err == PAWL_OK && object == NULL)
        err = PAWL_E_NOMEM;
    if (err != PAWL_OK) {
        json_decref(object);
        return pw_complain(app, err, &why, "show %s/%s", machine, id);
    }
    if (app->config.json != 0)
        pw_put_json(object);
    else
        put_entity(object);
    return PW_EXIT_OK;
}

/* --- verify ------------------------------------------------------------------------------- */

struct faults {
    struct pw_app *app;
    uint64_t count;
};

static bool put_fault(void *arg, const char *text)
{
    struct faults *faults = arg;
    faults->count++;
    if (faults->app->config.json != 0)
        pw_put_json(json_pack("{s:o}", "fault", pw_json_text(text)));
    else
        (void)printf("%s\n", text);
    return pw_output_alive();
}

/* The daemon knows what is on its lists. *asked: there is one. */
static pawl_err ask_unlisted(struct pw_app *app, bool *asked, uint64_t *unlisted, pawl_why *why)
{
    struct pw_remote remote;
    json_t *answer = NULL;
    *asked = pw_remote_open(&remote, &app->config, NULL) == PAWL_OK;
    if (!*asked)
        return PAWL_OK;
    pawl_err err =
        pw_remote_call(&remote, json_pack("{s:s}", "op", "verify"), PW_VERIFY_MS, &answer, why);
    if (err == PAWL_OK)
        err = pw_remote_err(answer, why);
    if (err == PAWL_OK)
        *unlisted = (uint64_t)json_integer_value(json_object_get(answer, "unlisted"));
    json_decref(answer);
    pw_remote_close(&remote);
    return err;
}

/* What was looked at besides the store. */
struct others {
    bool daemon;
    bool stream;
    uint64_t records;
};

static void put_verdict(struct pw_app *app, uint64_t entities, const struct faults *faults,
                        const struct others *others)
{
    char records[64] = "";
    if (app->config.json != 0) {
        json_t *verdict = json_pack("{s:I, s:I, s:b}", "entities", (json_int_t)entities, "faults",
                                    (json_int_t)faults->count, "daemon", others->daemon ? 1 : 0);
        if (verdict != NULL && others->stream)
            (void)json_object_set_new(verdict, "records",
                                      json_integer((json_int_t)others->records)); /* seen to lack */
        pw_put_json(verdict);
        return;
    }
    if (others->stream)
        pw_print(records, sizeof(records), "%llu records, ", (unsigned long long)others->records);
    (void)printf("%llu entities, %s%llu faults%s\n", (unsigned long long)entities, records,
                 (unsigned long long)faults->count,
                 others->daemon ? ", the daemon's lists included" : "");
}

static pawl_err compare_shard(struct pw_app *app, struct pw_shard *shard, struct faults *faults,
                              uint64_t *records, pawl_why *why)
{
    struct pw_journal *journal = NULL;
    pawl_err err = pw_app_open_journal(app, shard->index, &journal, why);
    if (err != PAWL_OK)
        return err;
    err = pw_compare(shard, journal, put_fault, faults, records, why);
    journal->ops->close(journal);
    return err;
}

/* Each shard's stream against its store. */
static pawl_err compare_streams(struct pw_app *app, pawl *engine, struct faults *faults,
                                struct others *others, pawl_why *why)
{
    pawl_err err = PAWL_OK;
    if (strcmp(app->config.bus, "local:") == 0)
        return PAWL_OK;
    for (uint32_t i = 0; i < engine->shards_count && err == PAWL_OK && pw_output_alive(); i++)
        err = compare_shard(app, &engine->shards[i], faults, &others->records, why);
    others->stream = err == PAWL_OK;
    return err;
}

static pawl_err verify_store(struct pw_app *app, pawl *engine, struct faults *faults,
                             uint64_t *entities, struct others *others, pawl_why *why)
{
    uint64_t unlisted = 0;
    char text[96] = "";
    pawl_err err = pw_verify(engine, put_fault, faults, entities);
    if (err == PAWL_OK)
        err = ask_unlisted(app, &others->daemon, &unlisted, why);
    if (err == PAWL_OK && unlisted > 0) {
        pw_print(text, sizeof(text), "the daemon: %llu ready entities are on no list",
                 (unsigned long long)unlisted);
        (void)put_fault(faults, text); /* nothing hangs on who still listens */
    }
    return err;
}

int pw_verb_verify(struct pw_app *app)
{
    struct faults faults = { .app = app };
    struct others others = { .daemon = false };
    pawl *engine = NULL;
    uint64_t entities = 0;
    int status = PW_EXIT_OK;
    pawl_why why = { "" };
    pawl_err err = pw_app_open_read_only(app, &engine, &why);
    if (err == PAWL_OK)
        err = verify_store(app, engine, &faults, &entities, &others, &why);
    if (err != PAWL_OK) {
        pawl_close(engine);
        return pw_complain(app, err, &why, "verify");
    }
    err = compare_streams(app, engine, &faults, &others, &why);
    pawl_close(engine);
    put_verdict(app, entities, &faults, &others);
    if (err != PAWL_OK)
        status = pw_complain(app, err, &why, "verify: the stream is not compared");
    return faults.count > 0 ? PW_EXIT_FAULTS : status;
}
