/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests become calls of the engine's interface, their answers lines. A call's memory is got
 * before the engine takes it, so the callback, on a writer's thread, only fills it in and hands it
 * to the loop: nothing there can fail or wait. */
#include <assert.h>
#include <unistd.h>

#include "app/app.h"
#include "app/server.h"
#include "engine/engine.h"
#include "engine/verify.h"

struct call {
    struct pw_node node; /* first: the queues' */
    struct pw_conn *conn;
    json_t *object; /* what demand borrows from; NULL: not kept */
    struct pw_demand demand;
    bool has_tag;
    json_int_t tag;
    enum pw_op op;
    pawl_err err;
    pawl_answer answer;
    uint64_t unlisted;
};

/* --- answers ------------------------------------------------------------------------------ */

/* Without memory for an answer the connection ends: the client then knows that it does not know. */
static void put(struct pw_conn *conn, bool has_tag, json_int_t tag, json_t *answer)
{
    if (answer != NULL && has_tag && json_object_set_new(answer, "tag", json_integer(tag)) != 0) {
        json_decref(answer);
        answer = NULL;
    }
    if (!pw_out_json(&conn->out, answer))
        conn->closing = true;
}

static json_t *error_answer(pawl_err err, const pawl_why *why)
{
    const char *text = why->text[0] != '\0' ? why->text : pawl_err_text(err);
    return json_pack("{s:b, s:s, s:s, s:o}", "ok", 0, "error", pawl_err_name(err), "class",
                     pw_class_name(pawl_err_class_of(err)), "text", pw_json_text(text));
}

void pw_serve_error(struct pw_conn *conn, pawl_err err, const char *text)
{
    pawl_why why = { "" };
    (void)pw_fail(&why, err, "%s", text); /* the code is known */
    put(conn, false, 0, error_answer(err, &why));
}

static json_t *good_answer(const struct call *call)
{
    switch (call->op) {
    case PW_OP_HOLD:
    case PW_OP_RELEASE:
        return json_pack("{s:b}", "ok", 1);
    case PW_OP_VERIFY:
        return json_pack("{s:b, s:I}", "ok", 1, "unlisted", (json_int_t)call->unlisted);
    case PW_OP_DELETE: /* it has no state any more */
        return json_pack("{s:b, s:o}", "ok", 1, "version", pw_json_u64_text(call->answer.version));
    case PW_OP_REPLAY:
        return json_pack("{s:b, s:b, s:o}", "ok", 1, "appended", call->answer.repeated ? 0 : 1,
                         "version", pw_json_u64_text(call->answer.version));
    default:
        return json_pack("{s:b, s:s, s:o, s:o, s:b}", "ok", 1, "state", call->answer.state,
                         "version", pw_json_u64_text(call->answer.version), "epoch",
                         pw_json_u64_text(call->answer.epoch), "repeated",
                         call->answer.repeated ? 1 : 0);
    }
}

static void free_call(struct call *call)
{
    pw_demand_fini(&call->demand);
    json_decref(call->object);
    pw_free(call);
}

bool pw_serve_done(struct pw_server *server)
{
    struct pw_node *node = pw_queue_take(&server->done, SIZE_MAX);
    bool any = node != NULL;
    while (node != NULL) {
        struct call *call = (struct call *)node;
        struct pw_conn *conn = call->conn;
        node = node->next;
        if (conn->fd >= 0)
            put(conn, call->has_tag, call->tag,
                call->err == PAWL_OK ? good_answer(call)
                                     : error_answer(call->err, &call->answer.why));
        conn->calls--;
        server->calls--;
        free_call(call);
    }
    return any;
}

/* Calls that the helper did not come to. */
void pw_serve_forget(struct pw_server *server)
{
    struct pw_node *node = pw_queue_take(&server->todo, SIZE_MAX);
    while (node != NULL) {
        struct call *call = (struct call *)node;
        node = node->next;
        free_call(call);
    }
}

/* Any thread. */
static void hand_over(struct call *call)
{
    static const uint64_t one = 1;
    struct pw_server *server = call->conn->server;
    int poke = server->poke;
    if (pw_queue_push_always(&server->done, &call->node) == PW_PUSHED_FIRST)
        (void)!write(poke, &one, sizeof(one)); /* full: the loop is awake already */
}

/* On a writer's thread. */
static void on_answered(void *arg, pawl_err err, const pawl_answer *answer)
{
    struct call *call = arg;
    call->err = err;
    call->answer = *answer;
    hand_over(call);
}

/* --- calls -------------------------------------------------------------------------------- */

static pawl_err call_async(pawl *engine, const struct pw_demand *demand, struct call *call,
                           pawl_why *why)
{
    const pawl_new options = { .data = demand->data,
                               .key = demand->key,
                               .delay_ms = demand->delay_ms,
                               .message_id = demand->message_id,
                               .trace = demand->trace };
    const pawl_event event = { .data = demand->data,
                               .has_data = demand->has_data,
                               .version = demand->version,
                               .message_id = demand->message_id,
                               .trace = demand->trace };
    switch (demand->op) {
    case PW_OP_CREATE:
        return pawl_create_async(engine, demand->machine, demand->id, &options, on_answered, call,
                                 why);
    case PW_OP_SEND:
        return pawl_send_async(engine, demand->machine, demand->id, demand->event, &event,
                               on_answered, call, why);
    case PW_OP_DELETE:
        return pawl_delete_async(engine, demand->machine, demand->id, demand->version, on_answered,
                                 call, why);
    case PW_OP_REPLAY:
        return pw_replay_async(engine, demand->machine, demand->id, on_answered, call, why);
    default:
        return pawl_redo_async(engine, demand->machine, demand->id, demand->version, on_answered,
                               call, why);
    }
}

static void call_blocking(pawl *engine, struct call *call)
{
    const pawl_scope scope = { .machine = call->demand.machine,
                               .id = call->demand.id,
                               .state = call->demand.state,
                               .key = call->demand.key };
    if (call->op == PW_OP_HOLD)
        call->err = pawl_hold(engine, &scope, &call->answer.why);
    else if (call->op == PW_OP_RELEASE)
        call->err = pawl_release(engine, &scope, &call->answer.why);
    else
        call->err = pw_unlisted(engine, &call->unlisted);
}

void *pw_serve_helper(void *arg)
{
    struct pw_server *server = arg;
    while (!atomic_load(&server->helper_ends)) {
        struct pw_node *node = pw_queue_take(&server->todo, 1);
        if (node == NULL) {
            pw_nap(&server->todo_wake, PW_NEVER);
            continue;
        }
        call_blocking(server->engine, (struct call *)node);
        hand_over((struct call *)node);
    }
    return NULL;
}

/* --- status ------------------------------------------------------------------------------- */

static json_t *pools_of(pawl *engine)
{
    json_t *machines = json_object();
    for (size_t i = 0; i < engine->machines.count; i++) {
        size_t ready = 0;
        size_t running = 0;
        size_t later = 0;
        pw_pool_counts(engine->pools[i], &ready, &running, &later);
        (void)json_object_set_new(
            machines, engine->machines.list[i]->name, /* missing: said by its absence */
            json_pack("{s:I, s:I, s:I}", "ready", (json_int_t)ready, "running", (json_int_t)running,
                      "later", (json_int_t)later));
    }
    return machines;
}

/* One a shard with a journal. */
static json_t *journals_of(pawl *engine)
{
    json_t *journals = json_array();
    for (uint32_t i = 0; i < engine->shards_count; i++) {
        struct pw_health health;
        if (!pw_journal_health(&engine->shards[i], &health))
            continue;
        (void)json_array_append_new(
            journals, /* missing: said by its absence */
            json_pack("{s:I, s:b, s:o, s:o, s:o}", "shard", (json_int_t)i, "live",
                      health.live ? 1 : 0, "seq", pw_json_u64_text(health.seq), "lsn",
                      pw_json_u64_text(health.lsn), "error", pw_json_text(health.error)));
    }
    return journals;
}

static json_t *metrics_of(const pawl *engine)
{
    json_t *metrics = json_object();
#define METRIC(name, kind, help)                                                                   \
    (void)json_object_set_new(metrics, #name,                                                      \
                              json_integer((json_int_t)atomic_load(&engine->metrics.name)));
    PW_METRICS(METRIC)
#undef METRIC
    return metrics;
}

static json_t *status_answer(struct pw_server *server)
{
    static const char *const names[] = { "ready", "running", "later" };
    uint64_t uptime_ms = server->clock.monotonic_ms(&server->clock) - server->start_ms;
    json_int_t sums[PW_COUNT(names)] = { 0 };
    const char *machine = NULL;
    json_t *pool = NULL;
    json_t *pools = pools_of(server->engine);
    json_object_foreach(pools, machine, pool) for (size_t i = 0; i < PW_COUNT(names); i++)
        sums[i] += json_integer_value(json_object_get(pool, names[i]));
    return json_pack("{s:b, s:I, s:s, s:I, s:I, s:I, s:I, s:o, s:o, s:o}", "ok", 1, "pid",
                     (json_int_t)getpid(), "version", pawl_version(), "uptime_ms",
                     (json_int_t)uptime_ms, names[0], sums[0], names[1], sums[1], names[2], sums[2],
                     "machines", pools, "journals", journals_of(server->engine), "metrics",
                     metrics_of(server->engine));
}

/* --- a request ---------------------------------------------------------------------------- */

/* PAWL_OK: taken, the answer comes by the queue. */
static pawl_err begin(struct pw_conn *conn, struct call *call, pawl_why *why)
{
    struct pw_server *server = conn->server;
    pawl_err err = PAWL_OK;
    call->conn = conn;
    call->op = call->demand.op;
    call->has_tag = call->demand.has_tag;
    call->tag = call->demand.tag;
    if (call->op == PW_OP_HOLD || call->op == PW_OP_RELEASE || call->op == PW_OP_VERIFY) {
        (void)pw_queue_push_always(&server->todo,
                                   &call->node); /* bounded by the connections' calls */
        pw_poke(&server->todo_wake);
    } else {
        struct pw_demand demand =
            call->demand; /* the call may be answered and gone at any moment */
        json_t *object = call->object;
        call->demand.decoded = NULL;
        call->object = NULL;
        err = call_async(server->engine, &demand, call, why);
        pw_demand_fini(&demand);
        json_decref(object);
    }
    if (err == PAWL_OK) {
        conn->calls++;
        server->calls++;
    }
    return err;
}

bool pw_serve_line(struct pw_conn *conn, const char *line, size_t size)
{
    pawl_why why = { "" };
    struct call *call = pw_alloc(sizeof(*call));
    if (call == NULL) {
        pw_serve_error(conn, PAWL_E_NOMEM, "out of memory");
        conn->closing = true; /* without its tag the client cannot tell which */
        return true;
    }
    pawl_err err = PAWL_E_USAGE;
    call->object = pw_demand_load(line, size, &why);
    if (call->object != NULL)
        err = pw_demand_read(&call->demand, call->object, PW_OPS, &why);
    bool has_tag = call->demand.has_tag;
    json_int_t tag = call->demand.tag;
    if (err == PAWL_OK && call->demand.op == PW_OP_STATUS) {
        free_call(call);
        put(conn, has_tag, tag, status_answer(conn->server));
        return true;
    }
    if (err == PAWL_OK)
        err = begin(conn, call, &why);
    if (err == PAWL_OK)
        return true;
    free_call(call);
    if (err == PAWL_E_BUSY)
        return false;
    put(conn, has_tag, tag, error_answer(err, &why));
    return true;
}
