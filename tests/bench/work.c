/* SPDX-License-Identifier: Apache-2.0
 *
 * Machines, and drivers that keep the engine busy from one thread. */
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/wake.h"
#include "lmdb/store.h"
#include "work.h"

enum { GO };

static pawl_outcome pass(pawl_task *task)
{
    (void)task;
    return pawl_raise(GO);
}

static const char *const events[] = { "go" };
static const pawl_state three_states[] = {
    { .name = "first", .flags = PAWL_START, .work = pass },
    { .name = "second", .work = pass },
    { .name = "third", .work = pass },
    { .name = "done", .flags = PAWL_FINAL },
};
static const pawl_edge three_edges[] = {
    { .from = 0, .event = GO, .to = 1 },
    { .from = 1, .event = GO, .to = 2 },
    { .from = 2, .event = GO, .to = 3 },
};
const pawl_machine bench_three = {
    .name = "bench", PAWL_STATES(three_states), PAWL_EVENTS(events), PAWL_EDGES(three_edges), .key_share = 100,
};

static const pawl_state pair_states[] = { { .name = "here", .flags = PAWL_START }, { .name = "there" } };
static const pawl_edge pair_edges[] = {
    { .from = 0, .event = GO, .to = 1 },
    { .from = 1, .event = GO, .to = 0 },
};
const pawl_machine bench_pair = {
    .name = "bench", PAWL_STATES(pair_states), PAWL_EVENTS(events), PAWL_EDGES(pair_edges),
};

/* --- a journal that has everything at once ---------------------------------------------------------------------- */

struct instant {
    struct pw_journal base; /* first */
    uint64_t lsn;
};

static pawl_err append(struct pw_journal *journal, uint64_t lsn, pawl_bytes record)
{
    (void)record;
    ((struct instant *)journal)->lsn = lsn;
    return PAWL_OK;
}

static pawl_err acked(struct pw_journal *journal, uint64_t *lsn)
{
    uint64_t have = ((struct instant *)journal)->lsn;
    *lsn = have > *lsn ? have : *lsn;
    return PAWL_OK;
}

static size_t fetch(struct pw_journal *journal, size_t most, pw_journalled journalled, void *arg)
{
    (void)journal;
    (void)most;
    (void)journalled;
    (void)arg;
    return 0; /* nothing of bench_pair is a task */
}

static const struct pw_journal_ops instant_ops = { append, acked, fetch };
static struct instant instant = { .base = { &instant_ops } };

/* --- engines ------------------------------------------------------------------------------------------------------ */

static void start(pawl *engine, const pawl_machine *machine)
{
    pawl_why why = { "" };
    const pawl_unit unit = { .machine = machine };
    bench_must(pawl_add(engine, &unit, &why), "add", why.text);
    bench_must(pawl_start(engine, &why), "start", why.text);
}

pawl *bench_open(const char *dir, const pawl_machine *machine)
{
    pawl *engine = NULL;
    pawl_why why = { "" };
    const pawl_options options = { .dir = dir };
    bench_must(pawl_open(&engine, &options, &why), "open", why.text);
    start(engine, machine);
    return engine;
}

pawl *bench_open_journalled(const char *dir, const pawl_machine *machine)
{
    pawl *engine = NULL;
    pawl_why why = { "" };
    char shard[600] = "";
    struct pw_store *store = NULL;
    struct pw_journal *journal = &instant.base;
    (void)snprintf(shard, sizeof(shard), "%s/shard-0", dir);
    const struct pw_lmdb_options options = { .dir = shard, .create = true };
    bench_must(pw_lmdb_open(&store, &options, &why), "open", why.text);
    const struct pw_parts parts = { .ns = "bench", .stores = &store, .journals = &journal, .shards = 1, .lock = -1 };
    instant.lsn = 0;
    bench_must(pw_engine_open(&engine, &parts, &why), "open", why.text);
    start(engine, machine);
    return engine;
}

/* --- drivers -------------------------------------------------------------------------------------------------------- */

struct flight {
    _Atomic uint64_t answered;
    _Atomic uint64_t refused;
    struct pw_wake wake;
};

static void on_answer(void *arg, pawl_err err, const pawl_answer *answer)
{
    struct flight *flight = arg;
    (void)answer;
    if (err != PAWL_OK)
        atomic_fetch_add(&flight->refused, 1);
    if (atomic_fetch_add(&flight->answered, 1) % 1024 == 0)
        pw_poke(&flight->wake);
}

static void land(struct flight *flight, uint64_t count)
{
    while (atomic_load(&flight->answered) < count)
        pw_nap(&flight->wake, 1);
    pw_wake_fini(&flight->wake);
    if (atomic_load(&flight->refused) > 0)
        bench_must(PAWL_E_IO, "drive", "commands were refused");
}

static void name_of(char id[32], uint64_t number)
{
    (void)snprintf(id, 32, "%08llu", (unsigned long long)number);
}

void bench_create(pawl *engine, uint64_t count)
{
    static const char data[BENCH_DATA];
    struct flight flight = { .answered = 0 };
    const pawl_new options = { .data = { data, sizeof(data) } };
    pw_wake_init(&flight.wake);
    for (uint64_t i = 1; i <= count; i++) {
        char id[32] = "";
        name_of(id, i);
        while (pawl_create_async(engine, "bench", id, &options, on_answer, &flight, NULL) == PAWL_E_BUSY)
            pw_nap(&flight.wake, 1);
    }
    land(&flight, count);
}

void bench_send(pawl *engine, uint64_t first, uint64_t span, uint64_t count)
{
    struct flight flight = { .answered = 0 };
    pw_wake_init(&flight.wake);
    for (uint64_t i = 0; i < count; i++) {
        char id[32] = "";
        name_of(id, first + i % span);
        while (pawl_send_async(engine, "bench", id, "go", NULL, on_answer, &flight, NULL) == PAWL_E_BUSY)
            pw_nap(&flight.wake, 1);
    }
    land(&flight, count);
}

void bench_wait_transitions(pawl *engine, uint64_t transitions)
{
    struct pw_wake wake;
    pw_wake_init(&wake);
    while (atomic_load(&engine->metrics.transitions) < transitions)
        pw_nap(&wake, 1);
    pw_wake_fini(&wake);
}

struct bench_sizes bench_measure_sizes(const pawl_machine *machine)
{
    static const char data[BENCH_DATA];
    struct pw_arena arena;
    struct pw_update update = { .change = PW_UNCHANGED };
    struct pw_record record = { .lsn = (uint64_t)1 << 60, .time_ms = (uint64_t)1 << 40 };
    pawl_bytes entity = { NULL, 0 };
    pawl_bytes bytes = { NULL, 0 };
    struct bench_sizes sizes = { .entity = 0 };
    pw_arena_init(&arena, 4096);
    update.after = (struct pw_entity){
        .machine_name = machine->name, .id = "00000001", .state_name = machine->states[1].name, .key = "", .error = "",
        .trace = "", .data = { data, sizeof(data) }, .epoch = record.lsn, .version = record.lsn,
        .previous_epoch = record.lsn, .created_ms = record.time_ms, .entered_ms = record.time_ms, .attempt = 1,
        .rounds = 1, .happenings = 2,
    };
    const struct pw_happening happening = {
        .kind = PW_MOVED, .time_ms = record.time_ms, .from = machine->states[0].name, .event = "go",
        .to = machine->states[1].name, .why = "", .attempt = 1,
    };
    bench_must(pw_entity_pack(&update, 0, &arena, &entity), "pack", "entity");
    sizes.entity = entity.size;
    bench_must(pw_record_pack(&record, entity, &arena, &bytes), "pack", "record");
    sizes.record = bytes.size;
    bench_must(pw_happening_pack(&happening, &arena, &bytes), "pack", "happening");
    sizes.history = bytes.size;
    pw_arena_fini(&arena);
    return sizes;
}
