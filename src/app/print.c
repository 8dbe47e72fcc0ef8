/* SPDX-License-Identifier: Apache-2.0
 *
 * See print.h. */
#include <ctype.h>
#include <stdio.h>

#include "app/print.h"
#include "app/text.h"

json_t *pw_json_entity(const pawl_entity *e)
{
    json_t *object = json_pack(
        "{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:b, s:b, s:I, s:I, "
        "s:o, s:o}",
        "machine", pw_json_text(e->machine), "id", pw_json_text(e->id), "state",
        pw_json_text(e->state), "epoch", pw_json_u64_text(e->epoch), "version",
        pw_json_u64_text(e->version), "key", pw_json_text(e->key), "error", pw_json_text(e->error),
        "attempt", (json_int_t)e->attempt, "rounds", (json_int_t)e->rounds, "crashes",
        (json_int_t)e->crashes, "created_ms", (json_int_t)e->created_ms, "entered_ms",
        (json_int_t)e->entered_ms, "due_ms", (json_int_t)e->due_ms, "held", e->held ? 1 : 0,
        "parked", e->parked ? 1 : 0, "shard", (json_int_t)e->shard, "size",
        (json_int_t)e->data.size, "row", pw_json_u64_text(e->row), "trace", pw_json_text(e->trace));
    if (object != NULL && !pw_json_set_data(object, e->data)) {
        json_decref(object);
        return NULL;
    }
    return object;
}

static bool add_line(void *arg, const pawl_happening *happening)
{
    json_t *line =
        json_pack("{s:o, s:I, s:o}", "version", pw_json_u64_text(happening->version), "time_ms",
                  (json_int_t)happening->time_ms, "text", pw_json_text(happening->text));
    return json_array_append_new(arg, line) == 0;
}

json_t *pw_json_history(pawl *engine, const char *machine, const char *id, pawl_err *err)
{
    json_t *lines = json_array();
    *err = lines != NULL ? pawl_history(engine, machine, id, add_line, lines) : PAWL_E_NOMEM;
    if (*err == PAWL_OK)
        return lines;
    json_decref(lines);
    return NULL;
}

void pw_put_text(const char *text)
{
    for (; *text != '\0'; text++) {
        bool controls = iscntrl((unsigned char)*text) && *text != '\n' && *text != '\t';
        (void)putchar(controls ? '?' : *text);
    }
    (void)putchar('\n');
}

void pw_put_member(const char *name, const json_t *value)
{
    char time[PW_TIME_TEXT_SIZE] = "";
    size_t size = strlen(name);
    if (json_is_array(value))
        return;
    if (size > 3 && strcmp(name + size - 3, "_ms") == 0) {
        pw_print_time((uint64_t)json_integer_value(value), time);
        (void)printf("%-12.*s %s\n", (int)(size - 3), name, time);
    } else if (json_is_string(value)) {
        (void)printf("%-12s ", name);
        pw_put_text(json_string_value(value));
    } else if (json_is_boolean(value)) {
        (void)printf("%-12s %s\n", name, json_is_true(value) ? "yes" : "no");
    } else {
        (void)printf("%-12s %lld\n", name, (long long)json_integer_value(value));
    }
}
