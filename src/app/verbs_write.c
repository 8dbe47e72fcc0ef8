/* SPDX-License-Identifier: Apache-2.0
 *
 * The verbs that go through the daemon: create, send, delete, retry, hold, release. With words: one
 * command; without: a line of standard input each. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "app/bulk.h"
#include "app/text.h"

/* Sets a text that was given. False: it is not UTF-8, or out of memory. */
static bool set_text(json_t *object, const char *name, const char *text)
{
    return text == NULL || json_object_set_new(object, name, json_string(text)) == 0;
}

static bool set_number(json_t *object, const char *name, uint64_t value)
{
    return value == 0 || json_object_set_new(object, name, pw_json_u64_text(value)) == 0;
}

/* A file's bytes; at most one more than data may have, so that the engine refuses what is too
 * large. */
static pawl_err set_file(json_t *object, const char *path, pawl_why *why)
{
    char *bytes = pw_alloc(PW_DATA_MAX + 1);
    FILE *file = fopen(path, "re");
    pawl_err err = PAWL_OK;
    if (file == NULL || bytes == NULL) {
        err = pw_fail(why, bytes == NULL ? PAWL_E_NOMEM : PAWL_E_USAGE, "%.128s: %s", path,
                      strerror(errno));
    } else {
        size_t size = fread(bytes, 1, PW_DATA_MAX + 1, file);
        if (ferror(file) != 0)
            err = pw_fail(why, PAWL_E_IO, "%.128s: %s", path, strerror(errno));
        else if (size > PW_DATA_MAX)
            err = pw_fail(why, PAWL_E_LIMIT, "%.128s has more than %u bytes", path, PW_DATA_MAX);
        else if (!pw_json_set_data(object, (pawl_bytes){ bytes, size }))
            err = pw_fail(why, PAWL_E_NOMEM, "out of memory");
    }
    if (file != NULL)
        (void)fclose(file); /* was only read */
    pw_free(bytes);
    return err;
}

static pawl_err build(const struct pw_app *app, json_t *object, pawl_why *why)
{
    static const char *const names[PW_WORDS_MAX] = { "machine", "id", "event" };
    const struct pw_args *args = &app->args;
    assert(args->words_count <= PW_WORDS_MAX);
    bool set = object != NULL && set_text(object, "op", app->verb);
    for (size_t i = 0; i < args->words_count && set; i++)
        set = set_text(object, names[i], args->words[i]);
    set = set && set_text(object, "id", args->id) && set_text(object, "state", args->state) &&
          set_text(object, "key", args->key) && set_text(object, "message_id", args->message_id) &&
          set_text(object, "trace", args->trace) &&
          set_number(object, "delay_ms", args->delay_ms) &&
          set_number(object, "version", args->version);
    if (set && args->data != NULL)
        set = pw_json_set_data(object, pawl_str(args->data));
    if (!set)
        return pw_fail(why, PAWL_E_USAGE, "an argument is not UTF-8");
    return args->data_file != NULL ? set_file(object, args->data_file, why) : PAWL_OK;
}

static void put_done(const json_t *object, const json_t *answer)
{
    const char *id = json_string_value(json_object_get(object, "id"));
    const char *state = json_string_value(json_object_get(answer, "state"));
    const char *version = json_string_value(json_object_get(answer, "version"));
    (void)printf("%s%s%s: %s", json_string_value(json_object_get(object, "machine")),
                 id != NULL ? "/" : "", id != NULL ? id : "", state != NULL ? state : "done");
    if (state != NULL && version != NULL)
        (void)printf(", version %s", version);
    (void)printf("%s\n", json_is_true(json_object_get(answer, "repeated")) ? " (repeated)" : "");
}

static int one(struct pw_app *app, json_t *object)
{
    struct pw_remote remote;
    json_t *answer = NULL;
    pawl_why why = { "" };
    const char *id = app->args.words_count > 1 ? app->args.words[1] : app->args.id;
    pawl_err err = build(app, object, &why);
    if (err == PAWL_OK)
        err = pw_remote_open(&remote, &app->config, &why);
    if (err != PAWL_OK)
        return pw_complain(app, err, &why, "%s %s%s%s", app->verb, app->args.words[0],
                           id != NULL ? "/" : "", id != NULL ? id : "");
    err = pw_remote_ask(&remote, object, &answer, &why);
    pw_remote_close(&remote);
    if (err == PAWL_OK && app->config.json == 0)
        put_done(object, answer);
    else
        pw_put_answer(app, 0, object, answer, err, &why);
    json_decref(answer);
    return pw_exit_of(err);
}

int pw_verb_command(struct pw_app *app)
{
    const struct pw_args *args = &app->args;
    if (args->words_count == 0 && args->options_count > 0)
        return pw_complain_usage(
            app, "%s: options need words; without words, standard input says all", app->verb);
    if (args->words_count == 0)
        return pw_bulk(app, pw_op_of(app->verb), STDIN_FILENO);
    if (args->data != NULL && args->data_file != NULL)
        return pw_complain_usage(app, "%s: one of --data and --data-file", app->verb);
    json_t *object = json_object();
    int status = one(app, object);
    json_decref(object);
    return status;
}
