/* SPDX-License-Identifier: Apache-2.0
 *
 * status: one object of what the store holds and what the daemon says, then printed as it is or as
 * tables. */
#include <stdio.h>

#include "app/remote.h"
#include "app/sheet.h"
#include "app/text.h"
#include "core/machine.h"
#include "engine/verify.h"

struct status {
    struct pw_app *app;
    pawl *engine;
    json_t *machines;
    json_t *shards;
    json_t *holds;
    json_t *daemon; /* NULL: none answers */
    json_t *metrics;
    bool failed; /* out of memory */
};

/* --- what the store holds ----------------------------------------------------------------- */

static json_t *machine_of(struct status *status, const char *name)
{
    json_t *machine = json_object_get(status->machines, name);
    if (machine != NULL)
        return machine;
    machine = json_pack("{s:{}, s:I}", "states", "parked", (json_int_t)0);
    if (json_object_set_new(status->machines, name, machine) != 0) {
        status->failed = true;
        return NULL;
    }
    return machine;
}

static void add_to(struct status *status, json_t *object, const char *name, uint64_t count)
{
    json_int_t before = json_integer_value(json_object_get(object, name));
    if (json_object_set_new(object, name, json_integer(before + (json_int_t)count)) != 0)
        status->failed = true;
}

static bool count_state(void *arg, const char *machine, const char *state, uint64_t entities)
{
    struct status *status = arg;
    json_t *object = machine_of(status, machine);
    if (object != NULL)
        add_to(status, json_object_get(object, "states"), state, entities);
    return !status->failed;
}

static bool has_hold(const json_t *holds, const char *kind, const char *machine, const char *name)
{
    size_t i = 0;
    json_t *hold = NULL;
    json_array_foreach(holds, i, hold)
    {
        if (strcmp(json_string_value(json_object_get(hold, "kind")), kind) == 0 &&
            strcmp(json_string_value(json_object_get(hold, "machine")), machine) == 0 &&
            strcmp(json_string_value(json_object_get(hold, "name")), name) == 0)
            return true;
    }
    return false;
}

static bool add_hold(void *arg, enum pw_hold_kind kind, const char *machine, const char *name,
                     enum pw_hold_phase phase)
{
    struct status *status = arg;
    const char *what = kind == PW_HOLD_STATE ? "state" : kind == PW_HOLD_KEY ? "key" : "machine";
    if (has_hold(status->holds, what, machine, name)) /* each shard has it */
        return true;
    json_t *hold = json_pack("{s:s, s:s, s:s, s:b}", "kind", what, "machine", machine, "name", name,
                             "releasing", phase == PW_RELEASING ? 1 : 0);
    status->failed = status->failed || json_array_append_new(status->holds, hold) != 0;
    return !status->failed;
}

/* What the store says of its journal; without one nothing. */
static json_t *journal_of(const struct pw_status *s)
{
    if (s->journal_created == 0)
        return json_null();
    return json_pack("{s:o, s:o}", "seq", pw_json_u64_text(s->journal_seq), "lsn",
                     pw_json_u64_text(s->journal_lsn));
}

static uint64_t age_of(const struct pw_status *s)
{
    return s->oldest_ms != 0 && s->now_ms > s->oldest_ms ? s->now_ms - s->oldest_ms : 0;
}

static pawl_err read_shard(struct status *status, struct pw_shard *shard)
{
    struct pw_status s;
    pawl_err err = pw_status(shard, &s);
    if (err != PAWL_OK)
        return err;
    json_t *object =
        json_pack("{s:I, s:I, s:I, s:I, s:I, s:o, s:I, s:b, s:o}", "shard",
                  (json_int_t)shard->index, "entities", (json_int_t)s.entities, "due",
                  (json_int_t)s.due, "outbox", (json_int_t)s.outbox, "outbox_age_ms",
                  (json_int_t)age_of(&s), "lsn", pw_json_u64_text(s.lsn), "time_ms",
                  (json_int_t)s.time_ms, "clean", s.clean ? 1 : 0, "journal", journal_of(&s));
    if (json_array_append_new(status->shards, object) != 0)
        return PAWL_E_NOMEM;
    err = pw_count_states(shard, count_state, status);
    return err == PAWL_OK ? pw_list_holds(shard, add_hold, status) : err;
}

static bool count_parked(void *arg, const pawl_entity *entity)
{
    (void)entity;
    ++*(uint64_t *)arg;
    return true;
}

/* Final entities, most of all, are never parked: only the others are read. */
static bool may_park(const struct pw_app *app, const char *machine, const char *state)
{
    const pawl_machine *known = pw_app_machine(app, machine);
    int index = known != NULL ? pw_machine_state(known, state) : PW_STATE_UNKNOWN;
    return index == PW_STATE_UNKNOWN || (known->states[index].flags & PAWL_FINAL) == 0;
}

static pawl_err read_parked(struct status *status)
{
    const char *machine = NULL;
    const char *state = NULL;
    json_t *object = NULL;
    json_t *count = NULL;
    pawl_err err = PAWL_OK;
    json_object_foreach(status->machines, machine, object)
    {
        uint64_t parked = 0;
        json_object_foreach(json_object_get(object, "states"), state, count)
        {
            const pawl_query query = { .machine = machine, .state = state, .parked = true };
            if (err == PAWL_OK && may_park(status->app, machine, state))
                err = pawl_scan(status->engine, &query, count_parked, &parked, NULL);
        }
        add_to(status, object, "parked", parked);
    }
    return err;
}

static pawl_err read_store(struct status *status, pawl_why *why)
{
    pawl_err err = pw_app_open_read_only(status->app, &status->engine, why);
    if (err != PAWL_OK)
        return err;
    for (const pawl_unit *unit = status->app->units; unit->machine != NULL; unit++)
        if (unit->machine->name != NULL)                   /* `check` refuses it */
            (void)machine_of(status, unit->machine->name); /* status->failed says it */
    for (uint32_t i = 0; i < status->engine->shards_count && err == PAWL_OK; i++)
        err = read_shard(status, &status->engine->shards[i]);
    if (err == PAWL_OK)
        err = read_parked(status);
    pawl_close(status->engine);
    return err == PAWL_OK && status->failed ? PAWL_E_NOMEM : err;
}

/* --- what the daemon says ----------------------------------------------------------------- */

static json_int_t sum(const json_t *metrics, const char *name)
{
    return json_integer_value(json_object_get(metrics, name));
}

/* The daemon knows its journals better than meta, which is as old as the last commit. */
static void add_journals(struct status *status, const json_t *journals)
{
    size_t i = 0;
    json_t *journal = NULL;
    json_array_foreach(journals, i, journal)
    {
        size_t shard = (size_t)json_integer_value(json_object_get(journal, "shard"));
        (void)json_object_del(journal, "shard"); /* it is there */
        (void)json_object_set(json_array_get(status->shards, shard), "journal",
                              journal); /* failed: meta's stays */
    }
}

static void ask_daemon(struct status *status)
{
    struct pw_remote remote;
    json_t *answer = NULL;
    if (pw_remote_open(&remote, &status->app->config, NULL) != PAWL_OK)
        return;
    pawl_err err =
        pw_remote_call(&remote, json_pack("{s:s}", "op", "status"), PW_STATUS_MS, &answer, NULL);
    if (err == PAWL_OK && pw_remote_err(answer, NULL) == PAWL_OK) {
        (void)json_object_del(answer, "ok"); /* it is there */
        json_decref(status->metrics);
        status->metrics = json_incref(json_object_get(answer, "metrics"));
        (void)json_object_del(answer, "metrics");
        add_journals(status, json_object_get(answer, "journals"));
        (void)json_object_del(answer, "journals");
        status->daemon = json_incref(answer);
    }
    json_decref(answer);
    pw_remote_close(&remote);
}

/* --- output ------------------------------------------------------------------------------- */

static void put_number(char *to, size_t size, json_int_t value)
{
    pw_print(to, size, "%lld", (long long)value);
}

static void put_machines(const struct status *status)
{
    static const char *const heads[] = { "MACHINE", "STATE", "ENTITIES", "PARKED" };
    struct pw_sheet table;
    const char *machine = NULL;
    const char *state = NULL;
    json_t *object = NULL;
    json_t *count = NULL;
    pw_sheet_init(&table, heads, PW_COUNT(heads));
    json_object_foreach(status->machines, machine, object)
    {
        char parked[24] = "";
        put_number(parked, sizeof(parked), sum(object, "parked"));
        json_object_foreach(json_object_get(object, "states"), state, count)
        {
            char number[24] = "";
            put_number(number, sizeof(number), json_integer_value(count));
            const char *row[] = { machine, state, number, "" };
            pw_sheet_row(&table, row);
        }
        const char *row[] = { machine, "", "", parked };
        if (sum(object, "parked") > 0)
            pw_sheet_row(&table, row);
    }
    (void)pw_sheet_print(&table); /* for people: they see that it is missing */
}

static void put_shards(const struct status *status)
{
    static const char *const heads[] = { "SHARD", "ENTITIES",    "DUE",  "OUTBOX",
                                         "LSN",   "LAST COMMIT", "STATE" };
    struct pw_sheet table;
    size_t i = 0;
    json_t *shard = NULL;
    pw_sheet_init(&table, heads, PW_COUNT(heads));
    json_array_foreach(status->shards, i, shard)
    {
        char cells[4][24];
        char time[PW_TIME_TEXT_SIZE] = "";
        static const char *const names[] = { "shard", "entities", "due", "outbox" };
        for (size_t c = 0; c < PW_COUNT(names); c++)
            put_number(cells[c], sizeof(cells[c]), sum(shard, names[c]));
        pw_print_time((uint64_t)sum(shard, "time_ms"), time);
        bool clean = json_is_true(json_object_get(shard, "clean"));
        const char *row[] = { cells[0],
                              cells[1],
                              cells[2],
                              cells[3],
                              json_string_value(json_object_get(shard, "lsn")),
                              time,
                              clean                    ? "clean"
                              : status->daemon != NULL ? "running"
                                                       : "not ended cleanly" };
        pw_sheet_row(&table, row);
    }
    (void)pw_sheet_print(&table);
}

/* Shards with a journal; none is there on the bus local. */
static void put_journals(const struct status *status)
{
    static const char *const heads[] = { "SHARD",       "OUTBOX",  "OLDEST", "JOURNAL SEQ",
                                         "JOURNAL LSN", "JOURNAL", "ERROR" };
    struct pw_sheet table;
    size_t i = 0;
    json_t *shard = NULL;
    pw_sheet_init(&table, heads, PW_COUNT(heads));
    json_array_foreach(status->shards, i, shard)
    {
        char cells[2][24];
        char age[32] = "";
        const json_t *journal = json_object_get(shard, "journal");
        const json_t *live = json_object_get(journal, "live");
        const char *error = json_string_value(json_object_get(journal, "error"));
        if (!json_is_object(journal))
            continue;
        put_number(cells[0], sizeof(cells[0]), sum(shard, "shard"));
        put_number(cells[1], sizeof(cells[1]), sum(shard, "outbox"));
        pw_print(age, sizeof(age), "%lld s", (long long)sum(shard, "outbox_age_ms") / 1000);
        const char *row[] = { cells[0],
                              cells[1],
                              sum(shard, "outbox") > 0 ? age : "-",
                              json_string_value(json_object_get(journal, "seq")),
                              json_string_value(json_object_get(journal, "lsn")),
                              live == NULL         ? "unknown"
                              : json_is_true(live) ? "live"
                                                   : "not live",
                              error != NULL ? error : "" };
        pw_sheet_row(&table, row);
    }
    (void)pw_sheet_print(&table);
}

static void put_holds(const struct status *status)
{
    size_t i = 0;
    json_t *hold = NULL;
    json_array_foreach(status->holds, i, hold)(void)
        printf("held: %s %s %s%s\n", json_string_value(json_object_get(hold, "machine")),
               json_string_value(json_object_get(hold, "kind")),
               json_string_value(json_object_get(hold, "name")),
               json_is_true(json_object_get(hold, "releasing")) ? " (being released)" : "");
}

static void put_daemon(const struct status *status)
{
    const char *name = NULL;
    json_t *value = NULL;
    if (status->daemon == NULL) {
        (void)printf("no daemon answers\n");
        return;
    }
    (void)printf("daemon: pid %lld, up %lld s, %lld ready, %lld running, %lld later\n",
                 (long long)sum(status->daemon, "pid"),
                 (long long)sum(status->daemon, "uptime_ms") / 1000,
                 (long long)sum(status->daemon, "ready"), (long long)sum(status->daemon, "running"),
                 (long long)sum(status->daemon, "later"));
    json_object_foreach(status->metrics, name, value) if (json_integer_value(value) != 0)(void)
        printf("  %-16s %lld\n", name, (long long)json_integer_value(value));
}

static int put_status(struct status *status)
{
    if (status->app->config.json != 0) {
        pw_put_json(json_pack("{s:O, s:O, s:O, s:O?, s:O}", "machines", status->machines, "shards",
                              status->shards, "holds", status->holds, "daemon", status->daemon,
                              "metrics", status->metrics));
        return PW_EXIT_OK;
    }
    put_machines(status);
    put_shards(status);
    put_journals(status);
    put_holds(status);
    put_daemon(status);
    return PW_EXIT_OK;
}

int pw_verb_status(struct pw_app *app)
{
    struct status status = { .app = app,
                             .machines = json_object(),
                             .shards = json_array(),
                             .holds = json_array(),
                             .metrics = json_object() };
    pawl_why why = { "" };
    pawl_err err = read_store(&status, &why);
    if (err == PAWL_OK)
        ask_daemon(&status);
    int code = err == PAWL_OK ? put_status(&status) : pw_complain(app, err, &why, "status");
    json_decref(status.machines);
    json_decref(status.shards);
    json_decref(status.holds);
    json_decref(status.daemon);
    json_decref(status.metrics);
    return code;
}
