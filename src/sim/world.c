/* SPDX-License-Identifier: Apache-2.0
 *
 * One thread plays all parts: it draws whose turn is next from the seed, goes on in virtual time
 * when nothing can run, and dies and recovers when told to. What the disk of this world is,
 * outlives its engine. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/base.h"
#include "base/limits.h"
#include "core/machine.h"
#include "engine/engine.h"
#include "engine/verify.h"
#include "engine/writer.h"
#include "sim/journal.h"
#include "sim/store.h"
#include "sim/world.h"

/* A scenario that still has something to do after so many turns will not end. */
#define TURNS_MAX 3000000u

struct text {
    char *bytes;
    size_t size;
    size_t room;
};

struct pawl_world {
    struct pw_clock clock; /* first: found again from it */
    uint64_t now_ms;
    struct pawl *engine;
    pawl_unit units[PW_MACHINES_MAX];
    size_t units_count;
    struct pw_store *stores[PW_SHARDS_MAX];
    struct pw_journal *journals[PW_SHARDS_MAX];
    uint64_t writer_ms[PW_SHARDS_MAX]; /* when each wants its next turn */
    uint64_t relay_ms[PW_SHARDS_MAX];
    uint64_t subscriber_ms[PW_SHARDS_MAX];
    uint32_t shards;
    unsigned flags;
    uint64_t seed;
    struct pw_rng rng;
    struct text transcript;
    uint64_t operations;
    uint64_t crash_at; /* of operations; 0: never */
    uint64_t crash_spread;
    uint64_t crashes_left;
    uint64_t crashes;
    uint64_t commands;
    bool crashed;
    bool in_work;
};

static _Noreturn void die(const char *what, const char *detail)
{
    (void)fprintf(stderr, "simulated world: %s: %s\n", what, detail);
    abort();
}

static void must(pawl_err err, const char *what, const pawl_why *why)
{
    if (err != PAWL_OK)
        die(what, why->text[0] != '\0' ? why->text : pawl_err_text(err));
}

/* --- clock, transcript, operations -------------------------------------------------------- */

static uint64_t clock_ms(struct pw_clock *clock)
{
    return ((struct pawl_world *)clock)->now_ms;
}

static void text_add(struct text *text, const char *more)
{
    size_t size = strlen(more);
    if (text->size + size + 1 > text->room) {
        size_t room = (text->size + size + 1) * 2;
        char *bytes = pw_realloc(text->bytes, room);
        if (bytes == NULL)
            die("transcript", "out of memory");
        text->bytes = bytes;
        text->room = room;
    }
    memcpy(text->bytes + text->size, more, size + 1);
    text->size += size;
}

static void on_line(void *arg, uint64_t time_ms, const char *machine, const char *id,
                    const struct pw_happening *happening)
{
    struct pawl_world *world = arg;
    char what[512] = "";
    char line[768] = "";
    if (happening->kind == PW_CREATED || (world->flags & PAWL_WORLD_QUIET) != 0)
        return;
    pw_happening_print(happening, what, sizeof(what));
    pw_print(line, sizeof(line), "%-7llu %s/%s %s\n", (unsigned long long)time_ms, machine, id,
             what);
    text_add(&world->transcript, line);
}

/* False: the process dies here. */
static bool tick(void *arg)
{
    struct pawl_world *world = arg;
    world->operations++;
    if (world->operations == world->crash_at)
        world->crashed = true;
    return !world->crashed;
}

/* --- the engine's lives ------------------------------------------------------------------- */

static void drive(void *arg);

static pawl_err try_start(struct pawl_world *world, pawl_why *why)
{
    struct pw_parts parts = {
        .ns = "world",
        .stores = world->stores,
        .shards = world->shards,
        .clock = &world->clock,
        .journals = (world->flags & PAWL_WORLD_JOURNAL) != 0 ? world->journals : NULL,
        .drive = { drive, world },
        .trace = { on_line, world },
        .seed = world->seed,
        .no_jitter = (world->flags & PAWL_WORLD_JITTER) == 0,
        .lock = -1,
    };
    pawl_err err = pw_engine_open(&world->engine, &parts, why);
    for (size_t i = 0; i < world->units_count && err == PAWL_OK; i++)
        must(pawl_add(world->engine, &world->units[i], why), "add", why);
    return err == PAWL_OK ? pawl_start(world->engine, why) : err;
}

static void next_crash(struct pawl_world *world)
{
    world->crash_at = 0;
    if (world->crashes_left == 0)
        return;
    world->crashes_left--;
    world->crash_at = world->operations + 1 + pw_rng_below(&world->rng, world->crash_spread);
}

/* What a process leaves that has died. */
static void bury(struct pawl_world *world)
{
    world->crashes++;
    world->crashed = false;
    next_crash(world);
    pw_engine_abandon(world->engine);
    world->engine = NULL;
    for (uint32_t i = 0; i < world->shards; i++) {
        pw_sim_store_revive(world->stores[i]);
        if (world->journals[i] != NULL)
            pw_sim_journal_crash(world->journals[i]);
    }
}

/* Starting may die, too: it is begun again, as a supervisor does. */
static void start_engine(struct pawl_world *world)
{
    pawl_why why = { "" };
    pawl_err err = try_start(world, &why);
    for (; err != PAWL_OK && world->crashed; err = try_start(world, &why))
        bury(world);
    must(err, "start", &why);
    for (uint32_t i = 0; i < world->shards; i++)
        world->writer_ms[i] = world->relay_ms[i] = world->subscriber_ms[i] = world->now_ms;
}

static void recover(struct pawl_world *world)
{
    bury(world);
    start_engine(world);
}

static void count_units(struct pawl_world *world, const pawl_unit *units)
{
    for (; units[world->units_count].machine != NULL; world->units_count++) {
        if (world->units_count == PW_MACHINES_MAX)
            die("open", "too many machines");
        world->units[world->units_count] = units[world->units_count];
    }
}

pawl_world *pawl_world_open_with(const pawl_unit *units, uint32_t shards, uint64_t seed,
                                 unsigned flags)
{
    pawl_why why = { "" };
    struct pawl_world *world = pw_alloc(sizeof(*world));
    if (world == NULL || shards < 1 || shards > PW_SHARDS_MAX)
        die("open", "out of memory, or a wrong number of shards");
    world->clock = (struct pw_clock){ clock_ms, clock_ms };
    world->shards = shards;
    world->flags = flags;
    world->seed = seed;
    world->rng.state = seed;
    text_add(&world->transcript, "");
    count_units(world, units);
    for (uint32_t i = 0; i < shards; i++) {
        must(pw_sim_store_open(&world->stores[i]), "store", &why);
        pw_sim_store_on_operation(world->stores[i], tick, world);
        if ((flags & PAWL_WORLD_JOURNAL) == 0)
            continue;
        must(pw_sim_journal_open(&world->journals[i], &world->clock, seed + i), "journal", &why);
        pw_sim_journal_on_operation(world->journals[i], tick, world);
    }
    start_engine(world);
    return world;
}

pawl_world *pawl_world_open(const pawl_machine *machine, void *env, uint64_t seed)
{
    const pawl_unit units[] = { { machine, env, NULL }, { NULL, NULL, NULL } };
    return pawl_world_open_with(units, 1, seed, 0);
}

void pawl_world_close(pawl_world *world)
{
    if (world == NULL)
        return;
    pawl_close(world->engine);
    for (uint32_t i = 0; i < world->shards; i++) {
        pw_sim_store_free(world->stores[i]);
        pw_sim_journal_free(world->journals[i]);
    }
    pw_free(world->transcript.bytes);
    pw_free(world);
}

/* --- turns -------------------------------------------------------------------------------- */

static bool wants(uint64_t at_ms, struct pw_wake *wake, uint64_t now_ms)
{
    if (!wake->poked && at_ms > now_ms)
        return false;
    wake->poked = false;
    return true;
}

static uint64_t at(uint64_t now_ms, uint64_t in_ms)
{
    return in_ms == PW_NEVER ? PW_NEVER : now_ms + in_ms;
}

static bool run_pool(struct pawl_world *world, size_t index)
{
    if (world->in_work) /* one thread: work that waits for a commit does not begin other work */
        return false;
    size_t ready = 0;
    size_t running = 0;
    size_t later = 0;
    pw_pool_counts(world->engine->pools[index], &ready, &running, &later);
    if (ready == 0 || !tick(world))
        return false;
    world->in_work = true;
    bool ran = pw_worker_turn(world->engine->pools[index]);
    world->in_work = false;
    if (ran)
        (void)tick(world);
    return ran;
}

/* False: it has nothing to do now. */
static bool run_actor(struct pawl_world *world, size_t actor)
{
    size_t shard_actors = (size_t)world->shards * 3;
    uint64_t now_ms = world->now_ms;
    if (actor >= shard_actors)
        return run_pool(world, actor - shard_actors);
    size_t i = actor / 3;
    struct pw_shard *shard = &world->engine->shards[i];
    if (actor % 3 == 0 && wants(world->writer_ms[i], &shard->writer.wake, now_ms))
        world->writer_ms[i] = at(now_ms, pw_writer_turn(shard));
    else if (actor % 3 == 1 && wants(world->relay_ms[i], &shard->relay.wake, now_ms))
        world->relay_ms[i] = at(now_ms, pw_relay_turn(shard));
    else if (actor % 3 == 2 && shard->journal != NULL &&
             wants(world->subscriber_ms[i], &shard->subscriber_wake, now_ms))
        world->subscriber_ms[i] = at(now_ms, pw_subscriber_turn(shard));
    else
        return false;
    return true;
}

static bool run_one(struct pawl_world *world)
{
    size_t actors = (size_t)world->shards * 3 + world->engine->machines.count;
    size_t first = pw_rng_below(&world->rng, actors);
    for (size_t i = 0; i < actors; i++)
        if (run_actor(world, (first + i) % actors))
            return true;
    return false;
}

/* --- time --------------------------------------------------------------------------------- */

struct first_due {
    struct pw_shard *shard;
    struct pw_txn *txn;
    struct pw_arena arena;
    uint64_t due_ms;
};

/* Retention of final entities, and of tombstones, is nothing that a scenario waits for. */
static bool look_at_due(void *arg, pawl_bytes key, pawl_bytes value)
{
    struct first_due *first = arg;
    struct pw_entity entity;
    (void)value;
    pw_arena_reset(&first->arena);
    uint64_t row = pw_get_u64((const uint8_t *)key.data + 8);
    if (pw_tables_load_any(&first->shard->tables, first->txn, row, &first->arena, &entity) ==
            PAWL_OK &&
        (entity.tombstone || pw_entity_final(&entity)))
        return true;
    first->due_ms = pw_get_u64(key.data);
    return false;
}

static uint64_t first_due_ms(struct pw_shard *shard)
{
    const struct pw_store_ops *ops = shard->tables.store->ops;
    struct first_due first = { .shard = shard, .due_ms = PW_NEVER };
    const pawl_bytes all = { "", 0 };
    pw_arena_init(&first.arena, 1024);
    if (ops->begin(shard->tables.store, false, &first.txn) == PAWL_OK) {
        (void)ops->scan(first.txn, PW_DUE, all, look_at_due,
                        &first); /* a crash here is seen after the turn */
        ops->abort(first.txn);
    }
    pw_arena_fini(&first.arena);
    uint64_t passed_ms = first.due_ms - shard->time_base_ms;
    return first.due_ms == PW_NEVER ? PW_NEVER : shard->time_start_ms + passed_ms;
}

static uint64_t sooner(uint64_t a_ms, uint64_t b_ms)
{
    return a_ms < b_ms ? a_ms : b_ms;
}

/* When the shard has something to do that somebody waits for. */
static uint64_t shard_next_ms(struct pawl_world *world, uint32_t i)
{
    struct pw_shard *shard = &world->engine->shards[i];
    uint64_t next_ms = first_due_ms(shard);
    if (!pw_relay_is_idle(shard))
        next_ms = sooner(next_ms, world->relay_ms[i]);
    bool trims = atomic_load(&shard->trim_lsn) > shard->writer.meta.sent_lsn;
    if (shard->writer.kept != NULL || shard->writer.broken || trims)
        next_ms = sooner(next_ms, world->writer_ms[i]);
    return next_ms;
}

static uint64_t next_ms(struct pawl_world *world)
{
    uint64_t next = PW_NEVER;
    for (uint32_t i = 0; i < world->shards; i++)
        next = sooner(next, shard_next_ms(world, i));
    for (size_t i = 0; i < world->engine->machines.count; i++) {
        uint64_t expiry_ms = PW_NEVER;
        (void)pw_pool_expire(world->engine->pools[i], 0, NULL, 0, &expiry_ms);
        next = sooner(next, sooner(expiry_ms, pw_pool_rests_until(world->engine->pools[i])));
    }
    return next;
}

/* Housekeeping that comes due on the way is run on the way. A subscriber's looks at an empty
 * journal are not. */
static uint64_t next_turn_ms(const struct pawl_world *world)
{
    uint64_t next = PW_NEVER;
    for (uint32_t i = 0; i < world->shards; i++)
        next = sooner(next, sooner(world->writer_ms[i], world->relay_ms[i]));
    return next;
}

/* What a journal answered, or has to hand over, wakes those who wait for it. Returns when the next
 * such thing comes. */
static uint64_t hear_journals(struct pawl_world *world)
{
    uint64_t next_ms = PW_NEVER;
    for (uint32_t i = 0; i < world->shards; i++) {
        if (world->journals[i] == NULL)
            continue;
        uint64_t at_ms = pw_sim_journal_next_ms(world->journals[i]);
        if (at_ms <= world->now_ms)
            world->relay_ms[i] = world->subscriber_ms[i] = world->now_ms;
        next_ms = sooner(next_ms, at_ms);
    }
    return next_ms;
}

/* Runs or goes on in time, not past until_ms (PW_NEVER: to the end of what somebody waits for).
 * False: nothing is left. */
static bool step(struct pawl_world *world, uint64_t until_ms)
{
    uint64_t heard_ms = hear_journals(world);
    if (run_one(world))
        return true;
    uint64_t wanted_ms = until_ms != PW_NEVER ? until_ms : sooner(next_ms(world), heard_ms);
    if (wanted_ms == PW_NEVER || (wanted_ms <= world->now_ms && until_ms != PW_NEVER))
        return false;
    uint64_t to_ms = sooner(sooner(next_turn_ms(world), heard_ms), wanted_ms);
    world->now_ms = to_ms > world->now_ms ? to_ms : world->now_ms + 1;
    return true;
}

static void run(struct pawl_world *world, uint64_t until_ms)
{
    for (unsigned turns = 0; step(world, until_ms) || world->crashed; turns++) {
        if (world->crashed)
            recover(world);
        if (turns > TURNS_MAX)
            die("run", "no end: something goes round in circles");
    }
}

/* For a call that waits for its answer, from the scenario or from within work. When the process has
 * died, the answer is that it has. */
static void drive(void *arg)
{
    struct pawl_world *world = arg;
    if (!world->crashed && step(world, PW_NEVER))
        return;
    if (world->crashed)
        pawl_stop(world->engine); /* for those who wait for something else than an answer */
    for (uint32_t i = 0; i < world->shards; i++)
        pw_writer_give_up(&world->engine->shards[i]);
}

/* --- the world's calls -------------------------------------------------------------------- */

void pawl_world_run(pawl_world *world)
{
    run(world, PW_NEVER);
}

void pawl_world_run_for(pawl_world *world, uint64_t ms)
{
    run(world, world->now_ms + ms);
}

uint64_t pawl_world_now(const pawl_world *world)
{
    return world->now_ms;
}

pawl *pawl_world_engine(pawl_world *world)
{
    return world->engine;
}

static bool died(struct pawl_world *world)
{
    if (!world->crashed)
        return false;
    recover(world);
    return true;
}

/* A caller whose daemon died asks again, under the same message id. */
pawl_err pawl_world_create(pawl_world *world, const char *id, pawl_bytes data)
{
    char message_id[32] = "";
    pawl_err err = PAWL_OK;
    pw_print(message_id, sizeof(message_id), "w%llu", (unsigned long long)++world->commands);
    pawl_new options = { .data = data, .message_id = message_id };
    do
        err = pawl_create(world->engine, world->units[0].machine->name, id, &options, NULL);
    while (died(world));
    return err;
}

pawl_err pawl_world_send(pawl_world *world, const char *id, int event)
{
    char message_id[32] = "";
    pawl_err err = PAWL_OK;
    const pawl_machine *machine = world->units[0].machine;
    pw_print(message_id, sizeof(message_id), "w%llu", (unsigned long long)++world->commands);
    pawl_event options = { .message_id = message_id };
    do
        err = pawl_send(world->engine, machine->name, id, pw_machine_event_name(machine, event),
                        &options, NULL);
    while (died(world));
    return err;
}

void pawl_world_crash(pawl_world *world)
{
    recover(world);
}

/* The process may die while it stops. */
static void stop_engine(struct pawl_world *world)
{
    pawl_close(world->engine);
    world->engine = NULL;
    if (world->crashed)
        bury(world);
    for (uint32_t i = 0; i < world->shards; i++)
        if (world->journals[i] != NULL)
            pw_sim_journal_crash(world->journals[i]);
}

void pawl_world_restart(pawl_world *world)
{
    stop_engine(world);
    start_engine(world);
}

void pawl_world_restart_with(pawl_world *world, const pawl_unit *units)
{
    stop_engine(world);
    world->units_count = 0;
    count_units(world, units);
    start_engine(world);
}

void pawl_world_crash_at(pawl_world *world, uint64_t operation)
{
    world->crash_at = operation != 0 ? world->operations + operation : 0;
}

uint64_t pawl_world_crashes(const pawl_world *world)
{
    return world->crashes;
}

void pawl_world_store_full(pawl_world *world, bool full)
{
    for (uint32_t i = 0; i < world->shards; i++)
        pw_sim_store_full(world->stores[i], full);
}

const char *pawl_world_transcript(const pawl_world *world)
{
    return world->transcript.bytes;
}

void pawl_world_clear(pawl_world *world)
{
    world->transcript.size = 0;
    world->transcript.bytes[0] = '\0';
}

static bool first_fault(void *arg, const char *text)
{
    pawl_why *why = arg;
    (void)pw_fail(why, PAWL_E_CORRUPT, "%s", text);
    return false;
}

/* Ready, but on no list and not running, when the world is at rest. */
static bool lists_are_whole(struct pawl_world *world, pawl_why *why)
{
    uint64_t swept = atomic_load(&world->engine->metrics.swept);
    for (uint32_t i = 0; i < world->shards; i++)
        world->engine->shards[i].writer.sweep_ms = 0;
    for (uint32_t i = 0; i < world->shards; i++)
        world->writer_ms[i] = world->now_ms;
    while (run_one(world) && !world->crashed) {
    }
    uint64_t found = atomic_load(&world->engine->metrics.swept) - swept;
    if (found == 0)
        return true;
    (void)pw_fail(why, PAWL_E_CORRUPT, "%llu ready entities were on no list",
                  (unsigned long long)found);
    return false;
}

bool pawl_world_verify(pawl_world *world, pawl_why *why)
{
    pawl_why fault = { "" };
    uint64_t entities = 0;
    pawl_err err = pw_verify(world->engine, first_fault, &fault, &entities);
    if (err != PAWL_OK)
        (void)pw_fail(&fault, err, "verify: %s", pawl_err_text(err));
    bool right = fault.text[0] == '\0' && lists_are_whole(world, &fault);
    if (!right && why != NULL)
        *why = fault;
    return right;
}

void pawl_world_expect(pawl_world *world, const char *expected, const char *file, int line)
{
    pawl_world_run(world);
    if (strcmp(world->transcript.bytes, expected) == 0)
        return;
    (void)fprintf(stderr, "%s:%d: the transcript differs\n--- expected\n%s--- got\n%s---\n", file,
                  line, expected, world->transcript.bytes);
    abort();
}

void pw_world_crash_often(pawl_world *world, uint64_t spread, uint64_t most)
{
    world->crash_spread = spread;
    world->crashes_left = most;
    for (uint32_t i = 0; i < world->shards; i++)
        if (world->journals[i] != NULL)
            pw_sim_journal_fail(world->journals[i], 16);
    next_crash(world);
}

struct states {
    char **lines;
    size_t count;
    size_t room;
};

static bool add_state(void *arg, const pawl_entity *entity)
{
    struct states *states = arg;
    char line[256] = "";
    if (states->count == states->room) {
        states->room = states->room == 0 ? 64 : states->room * 2;
        states->lines = pw_realloc(states->lines, states->room * sizeof(*states->lines));
    }
    pw_print(line, sizeof(line), "%s/%s %s%s\n", entity->machine, entity->id, entity->state,
             entity->parked ? " parked" : "");
    char *copy = states->lines != NULL ? pw_strdup(line) : NULL;
    if (copy == NULL)
        die("states", "out of memory");
    states->lines[states->count++] = copy;
    return true;
}

static int compare_lines(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

char *pw_world_states(pawl_world *world)
{
    struct states states = { .count = 0 };
    struct text text = { .bytes = NULL };
    pawl_why why = { "" };
    must(pawl_scan(world->engine, NULL, add_state, &states, &why), "scan", &why);
    if (states.count > 0)
        qsort(states.lines, states.count, sizeof(*states.lines), compare_lines);
    text_add(&text, "");
    for (size_t i = 0; i < states.count; i++) {
        text_add(&text, states.lines[i]);
        pw_free(states.lines[i]);
    }
    pw_free(states.lines);
    return text.bytes;
}
