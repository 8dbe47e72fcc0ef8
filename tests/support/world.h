/* SPDX-License-Identifier: Apache-2.0
 *
 * What tests in the simulated world share: commands to any machine that are repeated when the
 * process died meanwhile, and looks at what is stored. Includes engine.h, so a test can read the
 * counters. */
#ifndef TESTS_WORLD_H
#define TESTS_WORLD_H

#include <stdio.h>

#include "engine/engine.h"
#include "engine/verify.h"
#include "pawl/test.h"
#include "sim/world.h"
#include "support/test.h"

/* A command that was cut short, or found no memory, is made again, after the recovery. */
static inline bool cut_short(pawl_world *world, pawl_err err)
{
    if (err != PAWL_E_CLOSED && err != PAWL_E_UNKNOWN && err != PAWL_E_IO && err != PAWL_E_NOMEM)
        return false;
    pawl_world_run_for(world, 0);
    return true;
}

/* The message id is machine, id and event: once each in a scenario. */
static inline pawl_err send_once(pawl_world *world, const char *machine, const char *id,
                                 const char *event)
{
    char message_id[128] = "";
    pawl_err err = PAWL_OK;
    (void)snprintf(message_id, sizeof(message_id), "%s/%s/%s", machine, id, event);
    pawl_event options = { .message_id = message_id };
    do
        err = pawl_send(pawl_world_engine(world), machine, id, event, &options, NULL);
    while (cut_short(world, err));
    return err;
}

static inline pawl_err create_once(pawl_world *world, const char *machine, const char *id,
                                   const char *key, const char *data)
{
    char message_id[128] = "";
    pawl_err err = PAWL_OK;
    (void)snprintf(message_id, sizeof(message_id), "%s/%s", machine, id);
    pawl_new options = { .key = key, .data = pawl_str(data), .message_id = message_id };
    do
        err = pawl_create(pawl_world_engine(world), machine, id, &options, NULL);
    while (cut_short(world, err));
    return err;
}

/* Without waiting: for many. */
static inline void create_soon(pawl_world *world, const char *machine, const char *id,
                               const char *key)
{
    pawl_new options = { .key = key };
    pawl_err err =
        pawl_create_async(pawl_world_engine(world), machine, id, &options, NULL, NULL, NULL);
    assert_int_equal(err, PAWL_OK);
}

static inline void send_soon(pawl_world *world, const char *machine, const char *id,
                             const char *event)
{
    pawl_err err =
        pawl_send_async(pawl_world_engine(world), machine, id, event, NULL, NULL, NULL, NULL);
    assert_int_equal(err, PAWL_OK);
}

/* A delete or redo that was done before it was cut short is refused when repeated. */
static inline pawl_err delete_once(pawl_world *world, const char *machine, const char *id)
{
    pawl_err err = PAWL_OK;
    bool again = false;
    do {
        err = pawl_delete(pawl_world_engine(world), machine, id, 0, NULL);
        err = again && err == PAWL_E_NOT_FOUND ? PAWL_OK : err;
        again = cut_short(world, err);
    } while (again);
    return err;
}

static inline pawl_err redo_once(pawl_world *world, const char *machine, const char *id)
{
    pawl_err err = PAWL_OK;
    bool again = false;
    do {
        err = pawl_redo(pawl_world_engine(world), machine, id, 0, NULL);
        err = again && err == PAWL_E_NO_EDGE ? PAWL_OK : err;
        again = cut_short(world, err);
    } while (again);
    return err;
}

static inline void hold(pawl_world *world, pawl_scope scope)
{
    pawl_err err = PAWL_OK;
    do
        err = pawl_hold(pawl_world_engine(world), &scope, NULL);
    while (cut_short(world, err));
    assert_int_equal(err, PAWL_OK);
}

static inline void release(pawl_world *world, pawl_scope scope)
{
    pawl_err err = PAWL_OK;
    do
        err = pawl_release(pawl_world_engine(world), &scope, NULL);
    while (cut_short(world, err));
    assert_int_equal(err, PAWL_OK);
}

/* A copy of the entity to look at, freed by pawl_entity_free(). NULL: there is none. */
static inline pawl_entity *look(pawl_world *world, const char *machine, const char *id)
{
    pawl_entity *entity = NULL;
    pawl_err err = PAWL_OK;
    do
        err = pawl_read(pawl_world_engine(world), machine, id, &entity);
    while (cut_short(world, err));
    if (err != PAWL_E_NOT_FOUND)
        assert_int_equal(err, PAWL_OK);
    return err == PAWL_OK ? entity : NULL;
}

/* "paid", "charging parked" or "gone". */
static inline void expect_state(pawl_world *world, const char *machine, const char *id,
                                const char *expected)
{
    char got[96] = "gone";
    pawl_entity *entity = look(world, machine, id);
    if (entity != NULL)
        (void)snprintf(got, sizeof(got), "%s%s", entity->state, entity->parked ? " parked" : "");
    pawl_entity_free(entity);
    assert_string_equal(got, expected);
}

struct lines {
    const char *part;
    size_t count;
};

static inline bool count_line(void *arg, const pawl_happening *happening)
{
    struct lines *lines = arg;
    lines->count += strstr(happening->text, lines->part) != NULL ? 1 : 0;
    return true;
}

/* How many of the entity's last 64 lines of history contain `part`. What is a line of history
 * happened once for each. */
static inline size_t lines_with(pawl_world *world, const char *machine, const char *id,
                                const char *part)
{
    struct lines lines = { part, 0 };
    pawl_err err = PAWL_OK;
    do {
        lines.count = 0;
        err = pawl_history(pawl_world_engine(world), machine, id, count_line, &lines);
    } while (cut_short(world, err));
    assert_int_equal(err, PAWL_OK);
    return lines.count;
}

static inline void expect_right(pawl_world *world)
{
    pawl_why why = { "" };
    if (!pawl_world_verify(world, &why))
        fail_msg("%s", why.text);
}

/* At rest nothing waits to be journalled, sent or trimmed. */
static inline void expect_sent(pawl_world *world)
{
    pawl *engine = pawl_world_engine(world);
    for (uint32_t i = 0; i < engine->shards_count; i++) {
        struct pw_status status;
        assert_int_equal(pw_status(&engine->shards[i], &status), PAWL_OK);
        assert_int_equal(status.outbox, 0);
    }
}

#define METRIC(world, name) atomic_load(&pawl_world_engine(world)->metrics.name)

#endif
