/* SPDX-License-Identifier: Apache-2.0
 *
 * The engine's life: parts are made in order, and go in reverse. Threads are loops around turns; in
 * the simulated world there are none, and the world calls the turns. */
#include <assert.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/base.h"
#include "base/limits.h"
#include "core/machine.h"
#include "core/names.h"
#include "engine/engine.h"
#include "engine/worker.h"
#include "engine/writer.h"

#define STOP_MS_DEFAULT (10u * 1000)

const char *pawl_version(void)
{
    return "0.1.0";
}

void pw_enter(struct pawl *engine)
{
    if (engine != NULL)
        (void)atomic_fetch_add(&engine->callers, 1);
}

void pw_leave(struct pawl *engine)
{
    if (engine != NULL)
        (void)atomic_fetch_sub(&engine->callers, 1); /* the last touch: it may be freed from here */
}

struct pw_shard *pw_shard_of(struct pawl *engine, const char *id)
{
    return &engine->shards[XXH64(id, strlen(id), 0) % engine->shards_count];
}

struct pw_pool *pw_pool_of(struct pawl *engine, const pawl_machine *machine)
{
    size_t i = 0;
    while (i < engine->machines.count && engine->machines.list[i] != machine)
        i++;
    assert(i < engine->machines.count);
    return engine->pools[i];
}

uint64_t pw_shard_now(const struct pw_shard *shard)
{
    struct pw_clock *clock = shard->engine->clock;
    return shard->time_base_ms + (clock->monotonic_ms(clock) - shard->time_start_ms);
}

/* --- open, add ---------------------------------------------------------------------------- */

static pawl_err claim_identity(struct pw_shard *shard, uint32_t shards, pawl_why *why)
{
    struct pawl *engine = shard->engine;
    struct pw_store *store = shard->tables.store;
    bool write = !engine->read_only;
    struct pw_txn *txn = NULL;
    pawl_err err = store->ops->begin(store, write, &txn);
    if (err != PAWL_OK)
        return pw_fail(why, err, "shard %u: begin: %s", shard->index, pawl_err_text(err));
    err = pw_meta_claim(&shard->tables, txn, engine->ns, shard->index, shards, write, why);
    if (err == PAWL_OK && write) {
        err = store->ops->commit(txn);
        return err == PAWL_OK ? err
                              : pw_fail(why, err, "shard %u: write identity: %s", shard->index,
                                        pawl_err_text(err));
    }
    store->ops->abort(txn);
    return err;
}

static pawl_err open_shard(struct pawl *engine, uint32_t index, const struct pw_parts *parts,
                           pawl_why *why)
{
    struct pw_shard *shard = &engine->shards[index];
    shard->engine = engine;
    shard->index = index;
    shard->tables =
        (struct pw_tables){ .store = parts->stores[index], .machines = &engine->machines };
    shard->journal = parts->journals != NULL ? parts->journals[index] : NULL;
    pw_arena_init(&shard->fetch_arena, (size_t)64 * 1024);
    pw_wake_init(&shard->subscriber_wake);
    pw_relay_init(shard);
    pawl_err err = pw_writer_init(shard, parts->seed);
    engine->shards_count++;
    if (err != PAWL_OK)
        return pw_fail(why, err, "out of memory");
    return claim_identity(shard, parts->shards, why);
}

static void free_engine(struct pawl *engine)
{
    for (uint32_t i = engine->shards_count; i-- > 0;)
        pw_writer_fini(
            &engine->shards[i]); /* all, before any relay: their inboxes hold other shards' tells */
    for (uint32_t i = engine->shards_count; i-- > 0;) {
        struct pw_shard *shard = &engine->shards[i];
        if (shard->journal != NULL)
            shard->journal->ops->close(shard->journal); /* it pokes until then */
        pw_relay_fini(shard);
        pw_arena_fini(&shard->fetch_arena);
        pw_wake_fini(&shard->subscriber_wake);
    }
    for (size_t i = 0; i < engine->machines.count; i++)
        pw_pool_close(engine->pools[i]);
    for (uint32_t i = engine->shards_count; i-- > 0;) {
        struct pw_store *store = engine->shards[i].tables.store;
        store->ops->close(store);
    }
    if (engine->set_aside.end != NULL)
        engine->set_aside.end(engine->set_aside.arg);
    if (engine->unlock != NULL)
        engine->unlock(engine->lock);
    pw_holds_fini(&engine->holds);
    pw_free(engine->shards);
    pw_free(engine);
}

static void close_parts(const struct pw_parts *parts, uint32_t from)
{
    for (uint32_t i = from; i < parts->shards; i++) {
        parts->stores[i]->ops->close(parts->stores[i]);
        if (parts->journals != NULL)
            parts->journals[i]->ops->close(parts->journals[i]);
    }
}

static struct pawl *make_engine(const struct pw_parts *parts)
{
    struct pawl *engine = pw_alloc(sizeof(*engine));
    struct pw_shard *shards = pw_alloc(parts->shards * sizeof(*shards));
    if (engine == NULL || shards == NULL) {
        pw_free(engine);
        pw_free(shards);
        return NULL;
    }
    engine->shards = shards;
    engine->log = parts->log;
    pw_clock_init(&engine->machine_clock);
    engine->clock = parts->clock != NULL ? parts->clock : &engine->machine_clock;
    pw_print(engine->ns, sizeof(engine->ns), "%s", parts->ns);
    pw_holds_init(&engine->holds);
    atomic_flag_clear(&engine->suspect_runs);
    engine->read_only = parts->read_only;
    engine->no_jitter = parts->no_jitter;
    engine->stop_ms = parts->stop_ms != 0 ? parts->stop_ms : STOP_MS_DEFAULT;
    engine->drive = parts->drive;
    engine->trace = parts->trace;
    engine->set_aside = parts->set_aside;
    engine->compare_ms = PW_COMPARE_MS;
    engine->outbox_rows_max =
        parts->outbox_rows_max != 0 ? parts->outbox_rows_max : PW_OUTBOX_ROWS_DEFAULT;
    engine->lock = parts->lock;
    engine->unlock = parts->unlock;
    return engine;
}

pawl_err pw_engine_open(struct pawl **engine, const struct pw_parts *parts, pawl_why *why)
{
    assert(parts->shards >= 1 && parts->shards <= PW_SHARDS_MAX);
    struct pawl *opened = make_engine(parts);
    if (opened == NULL) {
        close_parts(parts, 0);
        if (parts->set_aside.end != NULL)
            parts->set_aside.end(parts->set_aside.arg);
        if (parts->unlock != NULL)
            parts->unlock(parts->lock);
        return pw_fail(why, PAWL_E_NOMEM, "out of memory");
    }
    pawl_err err = PAWL_OK;
    for (uint32_t i = 0; i < parts->shards && err == PAWL_OK; i++)
        err = open_shard(opened, i, parts, why);
    if (err == PAWL_OK) {
        *engine = opened;
        return PAWL_OK;
    }
    close_parts(parts, opened->shards_count);
    free_engine(opened);
    return err;
}

pawl_err pawl_add(pawl *engine, const pawl_unit *unit, pawl_why *why)
{
    if (engine == NULL || unit == NULL || engine->started || engine->read_only)
        return pw_fail(why, PAWL_E_USAGE, "machines are added to an open engine, before its start");
    pawl_err err = pawl_machine_check(unit->machine, why);
    if (err != PAWL_OK)
        return err;
    if (pw_machines_find(&engine->machines, unit->machine->name) != NULL)
        return pw_fail(why, PAWL_E_USAGE, "machine '%s' is there already", unit->machine->name);
    if (engine->machines.count >= PW_MACHINES_MAX)
        return pw_fail(why, PAWL_E_LIMIT, "more than %d machines", PW_MACHINES_MAX);
    size_t index = engine->machines.count;
    err = pw_pool_open(&engine->pools[index], engine, unit);
    if (err != PAWL_OK)
        return pw_fail(why, err, "out of memory");
    engine->machines.list[index] = unit->machine;
    engine->machines.count++;
    return PAWL_OK;
}

/* --- threads ------------------------------------------------------------------------------ */

static void *writer_main(void *arg)
{
    struct pw_shard *shard = arg;
    while (!atomic_load(&shard->engine->ending))
        pw_nap(&shard->writer.wake, pw_writer_turn(shard));
    while (!pw_queue_is_empty(&shard->writer.inbox) &&
           !shard->writer.broken) /* nobody pushes any more */
        (void)pw_writer_turn(shard);
    return NULL;
}

static void *relay_main(void *arg)
{
    struct pw_shard *shard = arg;
    while (!atomic_load(&shard->engine->ending))
        pw_nap(&shard->relay.wake, pw_relay_turn(shard));
    return NULL;
}

static void *subscriber_main(void *arg)
{
    struct pw_shard *shard = arg;
    while (!atomic_load(&shard->engine->ending))
        pw_nap(&shard->subscriber_wake, pw_subscriber_turn(shard));
    return NULL;
}

static pawl_err start_threads(struct pw_shard *shard, pawl_why *why)
{
    void *(*const mains[])(void *) = { writer_main, relay_main, subscriber_main };
    size_t count = shard->journal != NULL ? 3 : 2;
    static_assert(PW_COUNT(mains) == PW_COUNT(((struct pw_shard *)0)->threads),
                  "room for each thread");
    for (; shard->threads_count < count; shard->threads_count++)
        if (pthread_create(&shard->threads[shard->threads_count], NULL, mains[shard->threads_count],
                           shard) != 0)
            return pw_fail(why, PAWL_E_NOMEM, "shard %u: a thread cannot be made", shard->index);
    return PAWL_OK;
}

pawl_err pawl_start(pawl *engine, pawl_why *why)
{
    if (engine == NULL || engine->started || engine->read_only)
        return pw_fail(why, PAWL_E_USAGE,
                       "an engine is started once, and not when it is read only");
    pawl_err err = PAWL_OK;
    for (uint32_t i = 0; i < engine->shards_count && err == PAWL_OK; i++)
        err = pw_recover(&engine->shards[i], why);
    if (err != PAWL_OK)
        return err;
    engine->started = true;
    if (engine->drive.turn != NULL)
        return PAWL_OK;
    for (uint32_t i = 0; i < engine->shards_count && err == PAWL_OK; i++)
        err = start_threads(&engine->shards[i], why);
    for (size_t i = 0; i < engine->machines.count && err == PAWL_OK; i++)
        err = pw_pool_start(engine->pools[i], why);
    return err;
}

/* --- stop, close -------------------------------------------------------------------------- */

void pawl_stop(pawl *engine)
{
    if (engine != NULL)
        atomic_store(&engine->stopping, true);
}

static size_t busy(struct pawl *engine)
{
    size_t all = 0;
    for (size_t i = 0; i < engine->machines.count; i++) {
        size_t ready = 0;
        size_t running = 0;
        size_t later = 0;
        pw_pool_counts(engine->pools[i], &ready, &running, &later);
        all += running + later;
    }
    return all;
}

static void stop_pools(struct pawl *engine)
{
    for (size_t i = 0; i < engine->machines.count; i++)
        pw_pool_stop(engine->pools[i]);
}

/* A nap that nobody ends early, since the end of work pokes no one: looked at a hundred times a
 * second, only at stop. */
bool pw_engine_drain(struct pawl *engine, uint64_t ms)
{
    struct pw_wake wake;
    pw_wake_init(&wake);
    pawl_stop(engine);
    stop_pools(engine);
    uint64_t until_ms = pw_time_add(engine->clock->monotonic_ms(engine->clock), ms);
    while (busy(engine) > 0 && engine->clock->monotonic_ms(engine->clock) < until_ms)
        pw_nap(&wake, 10);
    pw_wake_fini(&wake);
    return busy(engine) == 0;
}

/* Relays first, so that no tell is on its way when the writers empty their inboxes for good. */
static void end_threads(struct pawl *engine)
{
    atomic_store(&engine->ending, true);
    for (uint32_t i = 0; i < engine->shards_count; i++) {
        struct pw_shard *shard = &engine->shards[i];
        if (shard->journal != NULL)
            shard->journal->ops->halt(shard->journal);
    }
    for (uint32_t i = 0; i < engine->shards_count; i++) {
        struct pw_shard *shard = &engine->shards[i];
        pw_poke(&shard->relay.wake);
        pw_poke(&shard->subscriber_wake);
        for (unsigned t = shard->threads_count; t-- > 1;)
            (void)pthread_join(shard->threads[t], NULL); /* ours, joined once */
    }
    for (uint32_t i = 0; i < engine->shards_count; i++) {
        struct pw_shard *shard = &engine->shards[i];
        pw_poke(&shard->writer.wake);
        if (shard->threads_count > 0)
            (void)pthread_join(shard->threads[0], NULL); /* ours, joined once */
        shard->threads_count = 0;
    }
}

/* All that still waits is answered; so whoever is in a call comes back from it. */
static void wait_for_callers(struct pawl *engine)
{
    struct pw_wake wake;
    pw_wake_init(&wake);
    for (uint32_t i = 0; i < engine->shards_count; i++)
        pw_writer_give_up(&engine->shards[i]);
    while (atomic_load(&engine->callers) > 0)
        pw_nap(&wake, 1);
    pw_wake_fini(&wake);
}

void pawl_close(pawl *engine)
{
    if (engine == NULL)
        return;
    pawl_stop(engine);
    for (uint32_t i = 0; i < engine->shards_count; i++)
        pw_queue_close(&engine->shards[i].writer.inbox);
    stop_pools(engine);
    if (engine->started && engine->drive.turn == NULL)
        (void)pw_engine_drain(engine, engine->stop_ms); /* what still runs is waited for below */
    for (size_t i = 0; i < engine->machines.count; i++)
        pw_pool_join(engine->pools[i]);
    pw_tasks_orphan(engine);
    end_threads(engine);
    for (uint32_t i = 0; engine->started && i < engine->shards_count; i++) {
        struct pw_shard *shard = &engine->shards[i];
        for (unsigned turns = 0;
             turns < 1000 && !pw_queue_is_empty(&shard->writer.inbox) && !shard->writer.broken;
             turns++)
            (void)pw_writer_turn(shard); /* what another shard's last turn sent */
        pw_writer_seal(shard);
    }
    wait_for_callers(engine);
    free_engine(engine);
}

void pw_engine_abandon(struct pawl *engine)
{
    if (engine == NULL)
        return;
    assert(engine->drive.turn != NULL);
    pawl_stop(engine);
    for (uint32_t i = 0; i < engine->shards_count; i++)
        pw_queue_close(&engine->shards[i].writer.inbox);
    pw_tasks_orphan(engine);
    free_engine(engine);
}
