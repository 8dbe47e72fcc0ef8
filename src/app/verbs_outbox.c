/* SPDX-License-Identifier: Apache-2.0
 *
 * The verbs on the outbox: what waits there, and what is to go through it again. */
#include <errno.h>
#include <stdio.h>

#include "app/bulk.h"
#include "app/sheet.h"
#include "app/text.h"
#include "core/journal.h"
#include "engine/compare.h"

/* Rows that a table lays out together. */
#define TABLE_ROWS 4096

/* --- list --------------------------------------------------------------------------------- */

struct listing {
    struct pw_app *app;
    struct pw_sheet table;
    uint64_t count;
    bool ended;
};

static bool is_wanted(const struct pw_args *args, const struct pw_waiting *row)
{
    const char *const wanted[] = { args->machine, args->id, args->state };
    const char *const found[] = { row->machine, row->id, row->state };
    for (size_t i = 0; i < PW_COUNT(wanted); i++)
        if (wanted[i] != NULL && (row->machine == NULL || strcmp(wanted[i], found[i]) != 0))
            return false;
    return args->older_s == 0 || row->age_ms > args->older_s * 1000;
}

static void list_json(const struct pw_waiting *row)
{
    json_t *object = json_pack("{s:i, s:o, s:I, s:s}", "shard", (int)row->shard, "lsn",
                               pw_json_u64_text(row->lsn), "age_ms", (json_int_t)row->age_ms,
                               "waits_for", row->acked ? "effects" : "journal");
    const char *const names[] = { "machine", "id", "state" };
    const char *const texts[] = { row->machine, row->id, row->state };
    for (size_t i = 0; i < PW_COUNT(names); i++)
        if (texts[i] != NULL && texts[i][0] != '\0')
            (void)json_object_set_new(object, names[i], json_string(texts[i])); /* seen to lack */
    pw_put_json(object);
}

static void list_row(struct listing *listing, const struct pw_waiting *row)
{
    char shard[16] = "";
    char lsn[24] = "";
    char age[32] = "-";
    const char *state = row->state;
    pw_print(shard, sizeof(shard), "%u", row->shard);
    pw_print(lsn, sizeof(lsn), "%llu", (unsigned long long)row->lsn);
    if (row->machine == NULL)
        state = "cannot be read";
    else if (state[0] == '\0')
        state = "(deleted)";
    if (row->machine != NULL)
        pw_print(age, sizeof(age), "%llu s", (unsigned long long)row->age_ms / 1000);
    const char *cells[] = {
        shard, lsn, row->machine != NULL ? row->machine : "?", row->id != NULL ? row->id : "?",
        state, age, row->acked ? "effects" : "journal"
    };
    pw_sheet_row(&listing->table, cells);
    if (listing->table.rows == TABLE_ROWS)
        pw_sheet_flush(&listing->table);
}

static bool list_one(void *arg, const struct pw_waiting *row)
{
    struct listing *listing = arg;
    const struct pw_args *args = &listing->app->args;
    if (!is_wanted(args, row))
        return true;
    listing->count++;
    if (listing->app->config.json != 0)
        list_json(row);
    else
        list_row(listing, row);
    listing->ended = !pw_output_alive() || listing->count == args->limit;
    return !listing->ended;
}

int pw_verb_outbox_list(struct pw_app *app)
{
    static const char *const heads[] = { "SHARD", "LSN", "MACHINE",  "ID",
                                         "STATE", "AGE", "WAITS FOR" };
    struct listing listing = { .app = app };
    pawl *engine = NULL;
    pawl_why why = { "" };
    pawl_err err = pw_app_open_read_only(app, &engine, &why);
    if (err != PAWL_OK)
        return pw_complain(app, err, &why, "outbox list");
    pw_sheet_init(&listing.table, heads, PW_COUNT(heads));
    for (uint32_t i = 0; i < engine->shards_count && err == PAWL_OK && !listing.ended; i++)
        err = pw_list_outbox(&engine->shards[i], list_one, &listing);
    pawl_close(engine);
    if (!pw_sheet_print(&listing.table) && err == PAWL_OK)
        err = PAWL_E_NOMEM;
    if (err == PAWL_OK && listing.count == 0)
        err = pw_app_check_names(app, &why);
    return err == PAWL_OK ? PW_EXIT_OK : pw_complain(app, err, &why, "outbox list");
}

/* --- replay ------------------------------------------------------------------------------- */

struct replay {
    struct pw_app *app;
    pawl *engine;
    struct pw_journal *journals[PW_SHARDS_MAX];
    FILE *requests; /* one a line, for the daemon */
    uint64_t seen;
    uint64_t appends;
    uint64_t skips;
    pawl_err err;
};

static const char *why_not(enum pw_match match)
{
    switch (match) {
    case PW_MATCH_SAME:
        return "the stream has it";
    case PW_MATCH_WAITS:
        return "it waits in the outbox";
    case PW_MATCH_NEWER:
        return "the stream has a newer one, which the daemon takes over";
    case PW_MATCH_NOTHING:
        return "it was deleted";
    default:
        return NULL;
    }
}

static const char *why_so(const struct pw_compared *compared)
{
    if (compared->match == PW_MATCH_FOREIGN)
        return "what stands in its place was written by no owner";
    return compared->lsn != 0 ? "the stream has an older one" : "the stream lacks it";
}

static void put_json(const pawl_entity *entity, const struct pw_compared *compared,
                     const char *does, const char *why)
{
    json_t *object =
        json_pack("{s:s, s:s, s:s, s:s, s:o}", "machine", entity->machine, "id", entity->id, "does",
                  does, "why", why, "version", pw_json_u64_text(compared->version));
    if (object != NULL && compared->seq != 0)
        (void)json_object_set_new(object, "seq",
                                  pw_json_u64_text(compared->seq)); /* seen to lack */
    pw_put_json(object);
}

static void put(const struct replay *replay, const pawl_entity *entity,
                const struct pw_compared *compared, const char *does, const char *why)
{
    char seq[48] = "";
    if (replay->app->config.json != 0) {
        put_json(entity, compared, does, why);
        return;
    }
    if (compared->seq != 0)
        pw_print(seq, sizeof(seq), " (sequence %llu)", (unsigned long long)compared->seq);
    pw_put_plain("%s/%s: %s: %s%s\n", entity->machine, entity->id, does, why, seq);
}

/* For the daemon. */
static pawl_err ask_for(struct replay *replay, const pawl_entity *entity)
{
    return pw_bulk_write(replay->requests,
                         json_pack("{s:s, s:s}", "machine", entity->machine, "id", entity->id));
}

static bool is_selected(const struct pw_args *args, const pawl_entity *entity)
{
    return args->id == NULL || strcmp(args->id, entity->id) == 0;
}

static bool look_at(void *arg, const pawl_entity *entity)
{
    struct replay *replay = arg;
    const struct pw_args *args = &replay->app->args;
    struct pw_compared compared;
    if (!is_selected(args, entity))
        return true;
    replay->err =
        pw_compare_one(&replay->engine->shards[entity->shard], replay->journals[entity->shard],
                       entity->machine, entity->id, &compared);
    if (replay->err != PAWL_OK)
        return false;
    replay->seen++;
    const char *skip = why_not(compared.match);
    if (skip != NULL) {
        replay->skips++;
        put(replay, entity, &compared, "skipped", skip);
    } else {
        replay->appends++;
        put(replay, entity, &compared, args->dry_run != 0 ? "would be appended" : "to be appended",
            why_so(&compared));
        if (args->dry_run == 0)
            replay->err = ask_for(replay, entity);
    }
    return replay->err == PAWL_OK && pw_output_alive() && replay->seen != args->limit;
}

static pawl_err select_all(struct replay *replay, pawl_why *why)
{
    const struct pw_args *args = &replay->app->args;
    const pawl_query query = pw_app_query(args);
    pawl_entity *entity = NULL;
    if (args->id == NULL || args->machine == NULL) {
        pawl_err err = pawl_scan(replay->engine, &query, look_at, replay, why);
        return err == PAWL_OK ? replay->err : err;
    }
    pawl_err err = pawl_read(replay->engine, args->machine, args->id, &entity);
    if (err == PAWL_OK)
        (void)look_at(replay, entity); /* says so in replay->err */
    pawl_entity_free(entity);
    return err == PAWL_OK ? replay->err : err;
}

static pawl_err open_all(struct replay *replay, pawl_why *why)
{
    struct pw_journal_state state;
    pawl_err err = pw_app_open_read_only(replay->app, &replay->engine, why);
    if (err != PAWL_OK)
        return err;
    for (uint32_t i = 0; i < replay->engine->shards_count && err == PAWL_OK; i++) {
        err = pw_app_open_journal(replay->app, i, &replay->journals[i], why);
        if (err == PAWL_OK)
            err = replay->journals[i]->ops->look(replay->journals[i], &state, why);
    }
    replay->requests = tmpfile();
    if (err == PAWL_OK && replay->requests == NULL)
        err = pw_fail(why, PAWL_E_IO, "a temporary file: %s", strerror(errno));
    return err;
}

static void close_all(struct replay *replay)
{
    for (uint32_t i = 0; i < PW_SHARDS_MAX; i++)
        if (replay->journals[i] != NULL)
            replay->journals[i]->ops->close(replay->journals[i]);
    pawl_close(replay->engine);
    if (replay->requests != NULL)
        (void)fclose(replay->requests); /* it goes with it */
}

static int replay_all(struct replay *replay)
{
    struct pw_app *app = replay->app;
    pawl_why why = { "" };
    pawl_err err = open_all(replay, &why);
    if (err == PAWL_OK)
        err = select_all(replay, &why);
    if (err == PAWL_OK && replay->seen == 0)
        err = pw_app_check_names(app, &why);
    if (err != PAWL_OK)
        return pw_complain(app, err, &why, "outbox replay");
    if (app->config.json == 0)
        (void)printf("%llu %s, %llu skipped\n", (unsigned long long)replay->appends,
                     app->args.dry_run != 0 ? "would be appended" : "to be appended",
                     (unsigned long long)replay->skips);
    return replay->appends > 0 && app->args.dry_run == 0
               ? pw_bulk_written(app, PW_OP_REPLAY, replay->requests)
               : PW_EXIT_OK;
}

int pw_verb_outbox_replay(struct pw_app *app)
{
    struct replay replay = { .app = app };
    if (!pw_app_selects(&app->args))
        return pw_complain_usage(app, "outbox replay: say which ones: --machine, --state, --key, "
                                      "--older, --id, or --all");
    int status = replay_all(&replay);
    close_all(&replay);
    return status;
}
