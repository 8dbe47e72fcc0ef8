/* SPDX-License-Identifier: Apache-2.0
 *
 * Commands: checked here, where they enter, then sent to the writer of their shard. A command owns
 * copies of all that it was given, in one piece of memory that goes when it is answered. */
#include <assert.h>

#include "base/base.h"
#include "base/limits.h"
#include "core/machine.h"
#include "core/names.h"
#include "engine/engine.h"
#include "engine/writer.h"

struct command {
    struct pw_request request; /* first */
    pawl_answered answered;
    void *arg;
    size_t used;
    size_t size;
    char storage[];
};

static void on_done(struct pw_request *request)
{
    struct command *command = (struct command *)request;
    if (command->answered != NULL)
        command->answered(command->arg, request->err, &request->answer);
    pw_free(command);
}

static size_t text_size(const char *text)
{
    return text != NULL ? strlen(text) + 1 : 1;
}

static const char *keep_text(struct command *command, const char *text)
{
    size_t size = text_size(text);
    char *to = command->storage + command->used;
    assert(command->used + size <= command->size);
    memcpy(to, text != NULL ? text : "", size);
    command->used += size;
    return to;
}

static pawl_bytes keep_bytes(struct command *command, pawl_bytes bytes)
{
    char *to = command->storage + command->used;
    assert(command->used + bytes.size <= command->size);
    if (bytes.size > 0)
        memcpy(to, bytes.data, bytes.size);
    command->used += bytes.size;
    return (pawl_bytes){ to, bytes.size };
}

static struct command *make_command(size_t size, pawl_answered answered, void *arg)
{
    struct command *command = pw_alloc(sizeof(*command) + size);
    if (command == NULL)
        return NULL;
    command->size = size;
    command->request.node.bytes = sizeof(*command) + size;
    command->answered = answered;
    command->arg = arg;
    command->request.done = on_done;
    command->request.input.key = "";
    command->request.input.trace = "";
    command->request.input.message_id = "";
    return command;
}

/* The texts that all commands have. */
static void set_target(struct command *command, const pawl_machine *machine, const char *id)
{
    struct pw_request *request = &command->request;
    request->machine = machine->name;
    request->id = keep_text(command, id);
    request->input.machine = machine;
    request->input.id = request->id;
}

static pawl_err find_machine(pawl *engine, const char *name, const pawl_machine **machine,
                             pawl_why *why)
{
    if (engine == NULL || name == NULL)
        return pw_fail(why, PAWL_E_USAGE, "engine or machine is NULL");
    if (!engine->started)
        return pw_fail(why, PAWL_E_USAGE, "the engine is not started");
    if (atomic_load(&engine->stopping))
        return pw_fail(why, PAWL_E_CLOSED, "%s", pawl_err_text(PAWL_E_CLOSED));
    pawl_err err = pw_check_name("machine", name, why);
    if (err != PAWL_OK)
        return err;
    const pawl_machine *found = pw_machines_find(&engine->machines, name);
    if (found == NULL)
        return pw_fail(why, PAWL_E_USAGE, "no machine '%s'", name);
    *machine = found;
    return PAWL_OK;
}

static pawl_err check_data(pawl_bytes data, pawl_why *why)
{
    if (data.size > PW_DATA_MAX)
        return pw_fail(why, PAWL_E_LIMIT, "data of %zu bytes; at most %u", data.size, PW_DATA_MAX);
    if (data.size > 0 && data.data == NULL)
        return pw_fail(why, PAWL_E_USAGE, "data is NULL");
    return PAWL_OK;
}

static pawl_err submit(pawl *engine, struct command *command, bool wait, pawl_why *why)
{
    if (command == NULL)
        return pw_fail(why, PAWL_E_NOMEM, "out of memory");
    struct pw_shard *shard = pw_shard_of(engine, command->request.id);
    pawl_err err = pw_writer_submit(shard, &command->request, wait);
    if (err == PAWL_OK)
        return PAWL_OK;
    pw_free(command);
    return pw_fail(why, err, "%s", pawl_err_text(err));
}

/* Who gets the answer. */
struct reply {
    pawl_answered answered;
    void *arg;
    bool wait; /* for room in the inbox */
};

/* --- the commands, once ------------------------------------------------------------------- */

static pawl_err create(pawl *engine, const char *machine, const char *id, const pawl_new *options,
                       struct reply reply, pawl_why *why)
{
    static const pawl_new defaults = { .key = NULL };
    const pawl_new *use = options != NULL ? options : &defaults;
    const pawl_machine *found = NULL;
    pawl_err err = find_machine(engine, machine, &found, why);
    if (err == PAWL_OK)
        err = pw_check_id("id", id, why);
    if (err == PAWL_OK)
        err = pw_check_optional_id("key", use->key, why);
    if (err == PAWL_OK)
        err = pw_check_optional_id("message id", use->message_id, why);
    if (err == PAWL_OK)
        err = pw_check_trace(use->trace, why);
    if (err == PAWL_OK)
        err = check_data(use->data, why);
    if (err == PAWL_OK && use->delay_ms > PW_DURATION_MS_MAX)
        err = pw_fail(why, PAWL_E_LIMIT, "delay_ms is above %llu",
                      (unsigned long long)PW_DURATION_MS_MAX);
    if (err != PAWL_OK)
        return err;
    size_t size = text_size(id) + text_size(use->key) + text_size(use->message_id) +
                  text_size(use->trace) + use->data.size;
    struct command *command = make_command(size, reply.answered, reply.arg);
    if (command != NULL) {
        struct pw_input *input = &command->request.input;
        set_target(command, found, id);
        input->kind = PW_IN_CREATE;
        input->key = keep_text(command, use->key);
        input->message_id = keep_text(command, use->message_id);
        input->trace = keep_text(command, use->trace);
        input->data = keep_bytes(command, use->data);
        input->delay_ms = use->delay_ms;
    }
    return submit(engine, command, reply.wait, why);
}

static pawl_err find_event(const pawl_machine *machine, const char *name, int *event, pawl_why *why)
{
    pawl_err err = pw_check_name("event", name, why);
    if (err != PAWL_OK)
        return err;
    int found = pw_machine_event(machine, name);
    if (found == PW_EVENT_UNKNOWN)
        return pw_fail(why, PAWL_E_USAGE, "machine '%s' has no event '%s'", machine->name, name);
    if (found < 0)
        return pw_fail(why, PAWL_E_USAGE, "event '%s' is raised by the engine alone", name);
    *event = found;
    return PAWL_OK;
}

static pawl_err send(pawl *engine, const char *machine, const char *id, const char *event,
                     const pawl_event *options, struct reply reply, pawl_why *why)
{
    static const pawl_event defaults = { .has_data = false };
    const pawl_event *use = options != NULL ? options : &defaults;
    const pawl_machine *found = NULL;
    int number = 0;
    pawl_err err = find_machine(engine, machine, &found, why);
    if (err == PAWL_OK)
        err = pw_check_id("id", id, why);
    if (err == PAWL_OK)
        err = find_event(found, event, &number, why);
    if (err == PAWL_OK)
        err = pw_check_optional_id("message id", use->message_id, why);
    if (err == PAWL_OK)
        err = pw_check_trace(use->trace, why);
    if (err == PAWL_OK)
        err = check_data(use->data, why);
    if (err != PAWL_OK)
        return err;
    size_t size =
        text_size(id) + text_size(use->message_id) + text_size(use->trace) + use->data.size;
    struct command *command = make_command(size, reply.answered, reply.arg);
    if (command != NULL) {
        struct pw_input *input = &command->request.input;
        set_target(command, found, id);
        input->kind = PW_IN_SEND;
        input->event = number;
        input->message_id = keep_text(command, use->message_id);
        input->trace = keep_text(command, use->trace);
        input->has_data = use->has_data;
        input->data = keep_bytes(command, use->data);
        input->version = use->version;
    }
    return submit(engine, command, reply.wait, why);
}

/* DELETE of an entity whose machine the engine does not have is allowed: it is how such entities
 * go. */
static pawl_err simple(pawl *engine, enum pw_input_kind kind, const char *machine, const char *id,
                       uint64_t version, struct reply reply, pawl_why *why)
{
    const pawl_machine *found = NULL;
    pawl_err err = find_machine(engine, machine, &found, why);
    if (err == PAWL_E_USAGE && kind == PW_IN_DELETE && engine != NULL && engine->started)
        err = pw_check_name("machine", machine, why);
    if (err == PAWL_OK)
        err = pw_check_id("id", id, why);
    if (err != PAWL_OK)
        return err;
    struct command *command =
        make_command(text_size(id) + text_size(machine), reply.answered, reply.arg);
    if (command != NULL) {
        struct pw_request *request = &command->request;
        request->machine = keep_text(command, machine);
        request->id = keep_text(command, id);
        request->input.kind = kind;
        request->input.version = version;
    }
    return submit(engine, command, reply.wait, why);
}

/* --- blocking: the same, with a latch for the answer -------------------------------------- */

struct waiting {
    struct pw_latch latch;
    pawl_err err;
    pawl_answer answer;
};

static void wake_up(void *arg, pawl_err err, const pawl_answer *answer)
{
    struct waiting *waiting = arg;
    waiting->err = err;
    waiting->answer = *answer;
    pw_latch_open(&waiting->latch);
}

static struct reply wait_begin(struct waiting *waiting, pawl *engine)
{
    pw_enter(engine);
    *waiting = (struct waiting){ .err = PAWL_OK };
    pw_latch_init(&waiting->latch);
    return (struct reply){ wake_up, waiting, true };
}

/* err: whether it was taken at all. */
static pawl_err wait_end(struct waiting *waiting, pawl *engine, pawl_err err, pawl_answer *answer)
{
    if (err == PAWL_OK) {
        pw_latch_wait(&waiting->latch, engine);
        err = waiting->err;
    }
    pw_latch_fini(&waiting->latch);
    if (answer != NULL)
        *answer = waiting->answer;
    pw_leave(engine);
    return err;
}

pawl_err pawl_create(pawl *engine, const char *machine, const char *id, const pawl_new *options,
                     pawl_answer *answer)
{
    struct waiting waiting;
    struct reply reply = wait_begin(&waiting, engine);
    return wait_end(&waiting, engine,
                    create(engine, machine, id, options, reply, &waiting.answer.why), answer);
}

pawl_err pawl_send(pawl *engine, const char *machine, const char *id, const char *event,
                   const pawl_event *options, pawl_answer *answer)
{
    struct waiting waiting;
    struct reply reply = wait_begin(&waiting, engine);
    return wait_end(&waiting, engine,
                    send(engine, machine, id, event, options, reply, &waiting.answer.why), answer);
}

pawl_err pawl_delete(pawl *engine, const char *machine, const char *id, uint64_t version,
                     pawl_answer *answer)
{
    struct waiting waiting;
    struct reply reply = wait_begin(&waiting, engine);
    return wait_end(&waiting, engine,
                    simple(engine, PW_IN_DELETE, machine, id, version, reply, &waiting.answer.why),
                    answer);
}

pawl_err pawl_redo(pawl *engine, const char *machine, const char *id, uint64_t version,
                   pawl_answer *answer)
{
    struct waiting waiting;
    struct reply reply = wait_begin(&waiting, engine);
    return wait_end(&waiting, engine,
                    simple(engine, PW_IN_REDO, machine, id, version, reply, &waiting.answer.why),
                    answer);
}

pawl_err pawl_create_async(pawl *engine, const char *machine, const char *id,
                           const pawl_new *options, pawl_answered answered, void *arg,
                           pawl_why *why)
{
    pw_enter(engine);
    pawl_err err =
        create(engine, machine, id, options, (struct reply){ answered, arg, false }, why);
    pw_leave(engine);
    return err;
}

pawl_err pawl_send_async(pawl *engine, const char *machine, const char *id, const char *event,
                         const pawl_event *options, pawl_answered answered, void *arg,
                         pawl_why *why)
{
    pw_enter(engine);
    pawl_err err =
        send(engine, machine, id, event, options, (struct reply){ answered, arg, false }, why);
    pw_leave(engine);
    return err;
}

pawl_err pawl_delete_async(pawl *engine, const char *machine, const char *id, uint64_t version,
                           pawl_answered answered, void *arg, pawl_why *why)
{
    pw_enter(engine);
    pawl_err err = simple(engine, PW_IN_DELETE, machine, id, version,
                          (struct reply){ answered, arg, false }, why);
    pw_leave(engine);
    return err;
}

pawl_err pawl_redo_async(pawl *engine, const char *machine, const char *id, uint64_t version,
                         pawl_answered answered, void *arg, pawl_why *why)
{
    pw_enter(engine);
    pawl_err err = simple(engine, PW_IN_REDO, machine, id, version,
                          (struct reply){ answered, arg, false }, why);
    pw_leave(engine);
    return err;
}

/* --- holds -------------------------------------------------------------------------------- */

static pawl_err check_scope(pawl *engine, const pawl_scope *scope, const pawl_machine **machine,
                            pawl_why *why)
{
    if (scope == NULL)
        return pw_fail(why, PAWL_E_USAGE, "scope is NULL");
    pawl_err err = find_machine(engine, scope->machine, machine, why);
    if (err != PAWL_OK)
        return err;
    int parts = (scope->id != NULL) + (scope->state != NULL) + (scope->key != NULL);
    if (parts > 1)
        return pw_fail(why, PAWL_E_USAGE, "one of id, state, key, or none of them");
    if (scope->id != NULL)
        return pw_check_id("id", scope->id, why);
    if (scope->key != NULL)
        return pw_check_optional_id("key", scope->key, why);
    if (scope->state != NULL && pw_machine_state(*machine, scope->state) == PW_STATE_UNKNOWN)
        return pw_fail(why, PAWL_E_USAGE, "machine '%s' has no state '%.64s'", scope->machine,
                       scope->state);
    return PAWL_OK;
}

/* A scope that is not one entity is held in every shard, one after the other. */
static pawl_err hold_shard(pawl *engine, struct pw_shard *shard, const pawl_scope *scope,
                           enum pw_request_kind kind, pawl_why *why)
{
    struct waiting waiting;
    struct reply reply = wait_begin(&waiting, engine);
    const char *name = scope->state != NULL ? scope->state : scope->key;
    struct command *command =
        make_command(text_size(scope->machine) + text_size(name), reply.answered, reply.arg);
    pawl_err err = PAWL_E_NOMEM;
    if (command != NULL) {
        struct pw_request *request = &command->request;
        request->kind = kind;
        request->machine = keep_text(command, scope->machine);
        request->hold_name = keep_text(command, name);
        request->hold_kind = scope->state != NULL ? PW_HOLD_STATE
                             : scope->key != NULL ? PW_HOLD_KEY
                                                  : PW_HOLD_MACHINE;
        err = pw_writer_submit(shard, request, true);
        if (err != PAWL_OK)
            pw_free(command);
    }
    if (err != PAWL_OK)
        (void)pw_fail(&waiting.answer.why, err, "%s", pawl_err_text(err));
    pawl_answer answer;
    err = wait_end(&waiting, engine, err, &answer);
    if (err != PAWL_OK && why != NULL)
        *why = answer.why;
    return err;
}

static pawl_err hold_entity(pawl *engine, const pawl_scope *scope, enum pw_input_kind kind,
                            pawl_why *why)
{
    struct waiting waiting;
    struct reply reply = wait_begin(&waiting, engine);
    pawl_answer answer;
    pawl_err err = wait_end(
        &waiting, engine,
        simple(engine, kind, scope->machine, scope->id, 0, reply, &waiting.answer.why), &answer);
    if (err != PAWL_OK && why != NULL)
        *why = answer.why;
    return err;
}

static pawl_err hold_or_release(pawl *engine, const pawl_scope *scope, bool hold, pawl_why *why)
{
    const pawl_machine *machine = NULL;
    pawl_err err = check_scope(engine, scope, &machine, why);
    if (err != PAWL_OK)
        return err;
    if (scope->id != NULL)
        return hold_entity(engine, scope, hold ? PW_IN_HOLD : PW_IN_RELEASE, why);
    for (uint32_t i = 0; i < engine->shards_count && err == PAWL_OK; i++)
        err = hold_shard(engine, &engine->shards[i], scope, hold ? PW_DO_HOLD : PW_DO_RELEASE, why);
    return err;
}

pawl_err pawl_hold(pawl *engine, const pawl_scope *scope, pawl_why *why)
{
    pw_enter(engine);
    pawl_err err = hold_or_release(engine, scope, true, why);
    pw_leave(engine);
    return err;
}

pawl_err pawl_release(pawl *engine, const pawl_scope *scope, pawl_why *why)
{
    pw_enter(engine);
    pawl_err err = hold_or_release(engine, scope, false, why);
    pw_leave(engine);
    return err;
}

/* --- replay ------------------------------------------------------------------------------- */

static pawl_err replay(pawl *engine, const char *machine, const char *id, struct reply reply,
                       pawl_why *why)
{
    const pawl_machine *found = NULL;
    pawl_err err = find_machine(engine, machine, &found, why);
    if (err == PAWL_OK)
        err = pw_check_id("id", id, why);
    if (err == PAWL_OK && pw_shard_of(engine, id)->journal == NULL)
        err = pw_fail(why, PAWL_E_USAGE, "the bus is local: there is no stream");
    if (err != PAWL_OK)
        return err;
    struct command *command = make_command(text_size(id), reply.answered, reply.arg);
    if (command != NULL) {
        set_target(command, found, id);
        command->request.kind = PW_DO_RESEED;
        command->request.asked = true;
    }
    return submit(engine, command, reply.wait, why);
}

pawl_err pw_replay_async(pawl *engine, const char *machine, const char *id, pawl_answered answered,
                         void *arg, pawl_why *why)
{
    pw_enter(engine);
    pawl_err err = replay(engine, machine, id, (struct reply){ answered, arg, false }, why);
    pw_leave(engine);
    return err;
}
