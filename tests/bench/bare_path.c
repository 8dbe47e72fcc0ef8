/* SPDX-License-Identifier: Apache-2.0
 *
 * Two threads of ours and the library's. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "bench/bare_env.h"
#include "bench/bare_path.h"
#include "bench/support.h"
#include "jetstream/api.h"
#include "jetstream/pull.h"
#include "jetstream/streams.h"

#define BATCH_MAX 512 /* changes of a commit, records of a pull */
#define CALL_MS 5000
#define WAIT_MS 500
#define CONSUMER "bare"

/* Of a change. */
struct step {
    const struct tape_op *first;
    size_t ops;
    const struct tape_op *entity_op; /* its entity's row */
    const struct tape_op *outbox_op;
    size_t entity;
    size_t visit; /* 0: it is created */
    size_t born;  /* entities created before */
};

struct loop {
    const struct bare_path *path;
    struct step *steps;
    struct bare_env env;
    struct bare_nats nats;
    natsOptions *options;
    natsConnection *connection; /* the puller's */
    struct pw_pull pull;
    uint64_t first_seq;
    _Atomic size_t acked;
    size_t trimmed;

    pthread_mutex_t lock; /* of all that follows */
    pthread_cond_t turned;
    uint8_t *pulled; /* of each entity: how many of its records */
    size_t through;  /* entities whose last work is done */
};

/* --- the tape, change by change ----------------------------------------------------------- */

static void read_op(struct step *step, const struct tape_op *op)
{
    if (op->table == PW_ENTITY)
        step->entity_op = op;
    if (op->table == PW_OUTBOX && !op->del)
        step->outbox_op = op;
    step->ops++;
}

static void read_steps(struct loop *loop)
{
    const struct tape *tape = loop->path->tape;
    size_t count = 0;
    size_t born = 0;
    loop->steps = pw_alloc(loop->path->changes * sizeof(*loop->steps));
    loop->pulled = pw_alloc(loop->path->changes); /* visits of each, counted first */
    if (loop->steps == NULL || loop->pulled == NULL)
        abort();
    for (size_t i = 0; i < tape->count; i++) {
        if (tape->ops[i].begins)
            loop->steps[count++] = (struct step){ .first = &tape->ops[i] };
        if (count > 0)
            read_op(&loop->steps[count - 1], &tape->ops[i]);
    }
    for (size_t i = 0; i < count; i++) {
        struct step *step = &loop->steps[i];
        if (step->entity_op == NULL || step->outbox_op == NULL)
            abort();
        step->entity = (size_t)pw_get_u64(step->entity_op->key.data) - 1; /* rows are in order */
        step->visit = loop->pulled[step->entity]++;
        step->born = born;
        born += step->visit == 0 ? 1 : 0;
    }
    memset(loop->pulled, 0, loop->path->changes);
}

/* --- committing and appending ------------------------------------------------------------- */

static void on_ack(jsCtx *js, natsMsg *msg, jsPubAck *ack, jsPubAckErr *error, void *arg)
{
    struct loop *loop = arg;
    (void)js;
    if (error != NULL)
        bare_nats_must(error->Err, "an append was refused");
    atomic_fetch_add(&loop->acked, 1);
    (void)ack; /* the library's */
    natsMsg_Destroy(msg);
}

static bool is_ready(const struct loop *loop, size_t i)
{
    const struct step *step = &loop->steps[i];
    if (step->visit == 0)
        return step->born < loop->through + loop->path->in_progress;
    return loop->pulled[step->entity] >= step->visit;
}

/* How many from `from` on are ready; waits for one. */
static size_t wait_ready(struct loop *loop, size_t from)
{
    size_t to = from;
    pthread_mutex_lock(&loop->lock);
    while (!is_ready(loop, from))
        (void)pthread_cond_wait(&loop->turned, &loop->lock);
    while (to < loop->path->changes && to - from < BATCH_MAX && is_ready(loop, to))
        to++;
    pthread_mutex_unlock(&loop->lock);
    return to;
}

static void write_step(struct loop *loop, const struct step *step)
{
    for (size_t i = 0; i < step->ops; i++) {
        const struct tape_op *op = &step->first[i];
        if (!op->del)
            bare_env_put(&loop->env, op, true);
        else if (op->table != PW_OUTBOX)
            bare_env_del(&loop->env, op->table, op->key);
    }
}

static void trim(struct loop *loop)
{
    size_t acked = atomic_load(&loop->acked);
    for (; loop->trimmed < acked; loop->trimmed++)
        bare_env_del(&loop->env, PW_OUTBOX, loop->steps[loop->trimmed].outbox_op->key);
}

static void commit_and_append(struct loop *loop, size_t from, size_t to)
{
    bare_env_begin(&loop->env);
    trim(loop);
    for (size_t i = from; i < to; i++)
        write_step(loop, &loop->steps[i]);
    bare_env_commit(&loop->env);
    for (size_t i = from; i < to; i++)
        bare_nats_append(&loop->nats, &loop->path->records[i]);
}

/* --- pulling ------------------------------------------------------------------------------ */

static void check(const struct loop *loop, MDB_txn *txn, const struct step *step)
{
    MDB_val key = { step->entity_op->key.size, (void *)(uintptr_t)step->entity_op->key.data };
    MDB_val value = { 0, NULL };
    bare_env_must(mdb_get(txn, loop->env.tables[PW_ENTITY], &key, &value), "look up");
    if (value.mv_size != step->entity_op->value.size ||
        memcmp(value.mv_data, step->entity_op->value.data, value.mv_size) != 0)
        bare_env_must(MDB_CORRUPTED, "check");
}

struct batch {
    const struct step *steps[BATCH_MAX];
    size_t count;
    char reply[256];
};

/* What is there, at most a batch; waits for the first. */
static void pull(struct loop *loop, struct batch *batch)
{
    uint64_t wait_ms = WAIT_MS;
    batch->count = 0;
    if (loop->pull.owed == 0 && pw_pull_ask(&loop->pull, BATCH_MAX, CALL_MS) != PAWL_OK)
        bare_nats_must(NATS_ERR, "ask");
    while (batch->count < BATCH_MAX) {
        natsMsg *msg = NULL;
        struct pw_pulled_from from = { 0 };
        if (pw_pull_next(&loop->pull, wait_ms, &msg, &from) != PW_PULLED_MESSAGE)
            return;
        batch->steps[batch->count++] = &loop->steps[from.seq - loop->first_seq];
        pw_print(batch->reply, sizeof(batch->reply), "%s", natsMsg_GetReply(msg));
        natsMsg_Destroy(msg);
        wait_ms = 0;
    }
}

static void check_all(const struct loop *loop, MDB_txn *txn, const struct batch *batch)
{
    bare_env_must(mdb_txn_renew(txn), "renew");
    for (size_t i = 0; i < batch->count; i++)
        check(loop, txn, batch->steps[i]);
    mdb_txn_reset(txn);
}

static void tell(struct loop *loop, const struct batch *batch)
{
    pthread_mutex_lock(&loop->lock);
    for (size_t i = 0; i < batch->count; i++)
        if (++loop->pulled[batch->steps[i]->entity] == loop->path->visits - 1)
            loop->through++;
    pthread_mutex_unlock(&loop->lock);
    pthread_cond_signal(&loop->turned);
    bare_nats_must(natsConnection_PublishString(loop->connection, batch->reply, "+ACK"),
                   "acknowledge");
}

static void *run_puller(void *arg)
{
    struct loop *loop = arg;
    MDB_txn *txn = NULL;
    bare_env_must(mdb_txn_begin(loop->env.env, NULL, MDB_RDONLY, &txn), "begin");
    mdb_txn_reset(txn);
    for (size_t pulled = 0; pulled < loop->path->changes;) {
        struct batch batch;
        pull(loop, &batch);
        if (batch.count == 0)
            continue;
        check_all(loop, txn, &batch);
        tell(loop, &batch);
        pulled += batch.count;
    }
    mdb_txn_abort(txn);
    return NULL;
}

/* --- a run -------------------------------------------------------------------------------- */

static void make_consumer(struct loop *loop)
{
    char stream[PW_STREAM_NAME_SIZE] = "";
    char verb[PW_STREAM_NAME_SIZE + 64] = "";
    json_t *answer = NULL;
    json_t *request = pw_consumer_config(BENCH_NS, 0, CONSUMER, loop->first_seq);
    pw_stream_name(PW_STREAM_JOURNAL, BENCH_NS, 0, stream);
    pw_print(verb, sizeof(verb), "CONSUMER.DURABLE.CREATE.%s." CONSUMER, stream);
    bench_must(pw_api_call(loop->connection, verb, request, CALL_MS, &answer, NULL, NULL), NULL,
               "make the consumer");
    json_decref(request);
    json_decref(answer);
    bench_must(pw_pull_open(&loop->pull, loop->connection, stream, CONSUMER), NULL, "pull");
}

static void open_loop(struct loop *loop, const char *bus, const char *dir)
{
    read_steps(loop);
    (void)pthread_mutex_init(&loop->lock, NULL); /* cannot fail on Linux */
    (void)pthread_cond_init(&loop->turned, NULL);
    bare_env_open(&loop->env, dir);
    bare_nats_open(&loop->nats, bus, on_ack, loop);
    loop->first_seq = loop->nats.last_seq + 1;
    bare_nats_must(natsOptions_Create(&loop->options), "options");
    bare_nats_must(natsOptions_SetURL(loop->options, bus), "options");
    bare_nats_must(natsOptions_SetSendAsap(loop->options, true), "options");
    bare_nats_must(natsConnection_Connect(&loop->connection, loop->options), "connect");
    make_consumer(loop);
}

static void close_loop(struct loop *loop, const char *dir)
{
    pw_pull_close(&loop->pull);
    natsConnection_Destroy(loop->connection);
    natsOptions_Destroy(loop->options);
    bare_nats_close(&loop->nats);
    bare_env_close(&loop->env, dir);
    (void)pthread_cond_destroy(&loop->turned);
    (void)pthread_mutex_destroy(&loop->lock);
    pw_free(loop->pulled);
    pw_free(loop->steps);
}

double bare_path(const struct bare_path *path, const char *bus, const char *dir)
{
    struct loop loop = { .path = path };
    pthread_t puller;
    open_loop(&loop, bus, dir);
    double began = bench_seconds();
    if (pthread_create(&puller, NULL, run_puller, &loop) != 0)
        abort();
    for (size_t from = 0; from < path->changes;) {
        size_t to = wait_ready(&loop, from);
        commit_and_append(&loop, from, to);
        from = to;
    }
    (void)pthread_join(puller, NULL); /* a joinable thread of ours */
    double took = bench_seconds() - began;
    bare_nats_finish(&loop.nats);
    close_loop(&loop, dir);
    return took;
}
