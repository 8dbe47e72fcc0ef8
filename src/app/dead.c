/* SPDX-License-Identifier: Apache-2.0
 *
 * See dead.h. The stream is read before the store: an entity that is freed meanwhile may be seen as
 * parked, never its letter as left behind while it parks. */
#include <stdlib.h>

#include "app/dead.h"
#include "app/secrets.h"
#include "base/base.h"
#include "base/clock.h"
#include "core/codec.h"
#include "core/names.h"

#define CHUNK (64u * 1024)

struct pw_found {
    struct pw_letter letter; /* its texts are in the arena */
    bool joined;
};

/* --- the stream's ------------------------------------------------------------------------- */

static int compare_numbers(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static int compare(const void *a, const void *b)
{
    const struct pw_letter *x = &((const struct pw_found *)a)->letter;
    const struct pw_letter *y = &((const struct pw_found *)b)->letter;
    int by_machine = strcmp(x->machine, y->machine);
    int by_id = by_machine != 0 ? by_machine : strcmp(x->id, y->id);
    int by_epoch = by_id != 0 ? by_id : compare_numbers(x->place.epoch, y->place.epoch);
    int by_lsn = by_epoch != 0 ? by_epoch : compare_numbers(x->place.lsn, y->place.lsn);
    return by_lsn != 0 ? by_lsn : compare_numbers(x->place.n, y->place.n);
}

static const char *keep_text(struct pw_deads *deads, const char *text)
{
    return pw_arena_text(&deads->arena, pawl_str(text));
}

static bool keep(void *arg, const struct pw_letter *letter)
{
    struct pw_deads *deads = arg;
    if (deads->found_count == deads->found_room) {
        size_t room = deads->found_room > 0 ? 2 * deads->found_room : 64;
        struct pw_found *found = pw_realloc(deads->found, room * sizeof(*found));
        deads->away = found == NULL ? PAWL_E_NOMEM : PAWL_OK;
        if (found == NULL)
            return false;
        deads->found = found;
        deads->found_room = room;
    }
    struct pw_letter kept = *letter;
    kept.machine = keep_text(deads, letter->machine);
    kept.id = keep_text(deads, letter->id);
    kept.label = keep_text(deads, letter->label);
    kept.why = keep_text(deads, letter->why);
    kept.record = (pawl_bytes){ 0 };
    if (kept.machine == NULL || kept.id == NULL || kept.label == NULL || kept.why == NULL)
        deads->away = PAWL_E_NOMEM;
    else
        deads->found[deads->found_count++] = (struct pw_found){ .letter = kept };
    return deads->away == PAWL_OK;
}

static pawl_err open_stream(struct pw_deads *deads, pawl_why *why)
{
    const struct pw_config *config = &deads->app->config;
    struct pw_secrets secrets = { .nats = { .user = NULL } };
    pawl_err err = pw_secrets_read(&secrets, config, why);
    if (err != PAWL_OK)
        return err;
    const struct pw_letters_options options = { .bus = config->bus,
                                                .nats = &secrets.nats,
                                                .ns = config->ns };
    return pw_letters_open(&deads->stream, &options, why);
}

static pawl_err read_stream(struct pw_deads *deads, const char *machine, const char *id,
                            pawl_why *why)
{
    pawl_err err = pw_letters_read(deads->stream, machine, id, true, keep, deads, why);
    if (err == PAWL_OK)
        err = deads->away;
    if (err == PAWL_E_IO) {
        deads->away = err;
        deads->why_away = *why;
        deads->found_count = 0; /* a part of it would be taken for all */
        return PAWL_OK;
    }
    if (err == PAWL_OK && deads->found_count > 0)
        qsort(deads->found, deads->found_count, sizeof(*deads->found), compare);
    return err;
}

pawl_err pw_deads_open(struct pw_deads *deads, const struct pw_app *app, const char *machine,
                       const char *id, pawl_why *why)
{
    *deads = (struct pw_deads){ .app = app };
    pw_arena_init(&deads->arena, CHUNK);
    pawl_err err = machine != NULL ? pw_check_name("machine", machine, why) : PAWL_OK;
    if (err == PAWL_OK)
        err = pw_app_open_read_only(app, &deads->engine, why);
    if (err != PAWL_OK || strcmp(app->config.bus, "local:") == 0)
        return err;
    err = open_stream(deads, why);
    return err == PAWL_OK ? read_stream(deads, machine, id, why) : err;
}

void pw_deads_close(struct pw_deads *deads)
{
    pw_letters_close(deads->stream);
    pawl_close(deads->engine);
    pw_free(deads->found);
    pw_arena_fini(&deads->arena);
}

/* --- the join ----------------------------------------------------------------------------- */

struct joining {
    struct pw_deads *deads;
    const char *machine;
    const char *id;
    pw_dead_seen seen;
    void *arg;
    uint64_t before_ms; /* 0: whenever */
    bool ended;
};

static bool see_entity(void *arg, const pawl_entity *entity)
{
    struct joining *joining = arg;
    struct pw_deads *deads = joining->deads;
    struct pw_found wanted = {
        .letter = { .machine = entity->machine, .id = entity->id, .place = { entity->epoch, 0, 0 } }
    };
    if (!entity->parked || (joining->id != NULL && strcmp(joining->id, entity->id) != 0))
        return true;
    struct pw_dead dead = { .kind = PW_DEAD_ENTITY,
                            .version = entity->version,
                            .since_ms = entity->entered_ms,
                            .letter = wanted.letter };
    struct pw_found *found =
        deads->found_count > 0
            ? bsearch(&wanted, deads->found, deads->found_count, sizeof(wanted), compare)
            : NULL;
    dead.letter.label = "";
    if (found != NULL) {
        found->joined = true;
        dead.letter = found->letter;
    }
    dead.letter.why = entity->error;
    joining->ended = !joining->seen(joining->arg, &dead);
    return !joining->ended;
}

static pawl_err see_entities(struct joining *joining, const pawl_query *query, pawl_why *why)
{
    pawl_entity *entity = NULL;
    if (query->machine == NULL || joining->id == NULL)
        return pawl_scan(joining->deads->engine, query, see_entity, joining, why);
    pawl_err err = pawl_read(joining->deads->engine, query->machine, joining->id, &entity);
    if (err != PAWL_OK)
        return err == PAWL_E_NOT_FOUND ? PAWL_OK : err;
    bool wanted = (query->state == NULL || strcmp(query->state, entity->state) == 0) &&
                  (query->key == NULL || strcmp(query->key, entity->key) == 0) &&
                  (query->entered_before_ms == 0 || entity->entered_ms < query->entered_before_ms);
    if (wanted)
        (void)see_entity(joining, entity); /* says so in joining->ended */
    pawl_entity_free(entity);
    return PAWL_OK;
}

static bool is_wanted(const struct joining *joining, const struct pw_found *found)
{
    const struct pw_letter *letter = &found->letter;
    return !found->joined &&
           (joining->machine == NULL || strcmp(joining->machine, letter->machine) == 0) &&
           (joining->id == NULL || strcmp(joining->id, letter->id) == 0) &&
           (joining->before_ms == 0 || letter->stored_ms < joining->before_ms);
}

/* An entity that was parked by the time of the look, or after it, has its letter rightly. */
static pawl_err is_left(struct pw_deads *deads, const struct pw_letter *letter, bool *left)
{
    pawl_entity *entity = NULL;
    pawl_err err = pawl_read(deads->engine, letter->machine, letter->id, &entity);
    *left = err == PAWL_E_NOT_FOUND ||
            (err == PAWL_OK && !(entity->parked && entity->epoch == letter->place.epoch));
    pawl_entity_free(entity);
    return err == PAWL_E_NOT_FOUND ? PAWL_OK : err;
}

static pawl_err see_found(struct joining *joining, const struct pw_found *found)
{
    bool left = false;
    struct pw_dead dead = { .kind = PW_DEAD_TELL,
                            .since_ms = found->letter.stored_ms,
                            .letter = found->letter };
    if (found->letter.place.n == 0) {
        pawl_err err = is_left(joining->deads, &found->letter, &left);
        if (err != PAWL_OK || !left)
            return err;
        dead.kind = PW_DEAD_LEFT;
    }
    joining->ended = !joining->seen(joining->arg, &dead);
    return PAWL_OK;
}

pawl_err pw_deads_each(struct pw_deads *deads, const char *machine, const char *id,
                       pw_dead_seen seen, void *arg, pawl_why *why)
{
    pawl_query query = pw_app_query(&deads->app->args);
    query.machine = machine;
    query.parked = true;
    struct joining joining = { .deads = deads,
                               .machine = machine,
                               .id = id,
                               .seen = seen,
                               .arg = arg,
                               .before_ms = query.entered_before_ms };
    pawl_err err = see_entities(&joining, &query, why);
    if (query.state != NULL || query.key != NULL)
        return err;
    for (size_t i = 0; i < deads->found_count && err == PAWL_OK && !joining.ended; i++)
        if (is_wanted(&joining, &deads->found[i]))
            err = see_found(&joining, &deads->found[i]);
    return err;
}

/* --- a tell ------------------------------------------------------------------------------- */

struct looking {
    const struct pw_letter *wanted;
    struct pw_arena *arena;
    struct pw_record record;
    pawl_err err;
};

static bool look_for(void *arg, const struct pw_letter *letter)
{
    struct looking *looking = arg;
    const struct pw_machines none = { .count = 0 };
    if (letter->seq != looking->wanted->seq)
        return true;
    looking->err = pw_record_unpack(letter->record, &none, looking->arena, &looking->record);
    return false;
}

static const struct pw_effect *effect_of(const struct pw_record *record, uint32_t n)
{
    for (size_t i = 0; i < record->entity.effects_count; i++) {
        const struct pw_effect *effect = &record->entity.effects[i];
        if (effect->lsn == record->lsn && effect->n == n && effect->kind != PW_EMIT)
            return effect;
    }
    return NULL;
}

static pawl_err read_tell(struct pw_deads *deads, const struct pw_dead *dead,
                          struct pw_arena *arena, const struct pw_effect **tell, pawl_why *why)
{
    const struct pw_letter *letter = &dead->letter;
    struct looking looking = { .wanted = letter, .arena = arena, .err = PAWL_E_NOT_FOUND };
    pawl_err err =
        pw_letters_read(deads->stream, letter->machine, letter->id, false, look_for, &looking, why);
    if (err != PAWL_OK)
        return err;
    if (looking.err == PAWL_E_NOT_FOUND)
        return pw_fail(why, looking.err, "the letter was settled meanwhile");
    *tell = looking.err == PAWL_OK ? effect_of(&looking.record, letter->place.n - 1) : NULL;
    if (*tell == NULL && looking.err != PAWL_E_NOMEM)
        return pw_fail(why, PAWL_E_CORRUPT, "the letter cannot be read: no owner wrote it");
    return looking.err;
}

static bool set(json_t *object, const char *name, json_t *value)
{
    return json_object_set_new(object, name, value) == 0;
}

/* NULL: out of memory. */
static json_t *command_of(const struct pw_dead *dead, const struct pw_effect *tell)
{
    bool creates = tell->kind == PW_TELL_NEW;
    const char *names[] = { "event", "key", "trace", "message_id" };
    const char *texts[] = { creates ? "" : tell->name, creates ? tell->key : "", tell->trace,
                            dead->letter.label };
    json_t *command = json_pack("{s:s, s:s, s:s}", "op", creates ? "create" : "send", "machine",
                                tell->machine, "id", tell->id);
    bool complete = command != NULL;
    for (size_t i = 0; i < PW_COUNT(names) && complete; i++)
        complete = texts[i][0] == '\0' || set(command, names[i], json_string(texts[i]));
    if (complete && tell->delay_ms > 0)
        complete = set(command, "delay_ms", json_integer((json_int_t)tell->delay_ms));
    if (complete && tell->data.size > 0)
        complete = pw_json_set_data(command, tell->data);
    if (complete)
        return command;
    json_decref(command);
    return NULL;
}

pawl_err pw_dead_command(struct pw_deads *deads, const struct pw_dead *dead, json_t **command,
                         pawl_why *why)
{
    struct pw_arena arena;
    const struct pw_effect *tell = NULL;
    pw_arena_init(&arena, CHUNK);
    pawl_err err = read_tell(deads, dead, &arena, &tell, why);
    *command = err == PAWL_OK ? command_of(dead, tell) : NULL;
    if (err == PAWL_OK && *command == NULL)
        err = pw_fail(why, PAWL_E_NOMEM, "out of memory");
    pw_arena_fini(&arena);
    return err;
}

int pw_deads_complain(const struct pw_deads *deads, int status)
{
    if (deads->away == PAWL_OK)
        return status;
    int transient = pw_complain(deads->app, deads->away, &deads->why_away,
                                "%s: without the stream's dead letters", deads->app->verb);
    return status == PW_EXIT_OK ? transient : status;
}
