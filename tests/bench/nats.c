/* SPDX-License-Identifier: Apache-2.0
 *
 * The whole engine on NATS: entities created by one thread while fewer than IN_PROGRESS are, and
 * worked through three states whose work does nothing. Then the time from one work to the next at
 * a given load. */
#include <semaphore.h>
#include <stdlib.h>

#include "base/base.h"
#include "bench/bare_path.h"
#include "bench/support.h"
#include "jetstream/journal.h"
#include "support/nats.h"

#define RUNS 7
#define VISITS 4
#define IN_PROGRESS 256
#define SLOW_RATE 500 /* transitions/s */
#define SLOW_SECONDS 10

enum { FIRST, SECOND, THIRD, DONE };
enum { NEXT };

/* One run. Its entities are "e0", "e1"... */
static struct {
    sem_t room;              /* for entities in progress */
    double (*began)[VISITS]; /* of each: when it was asked for, and when each work began */
} run;

static size_t number_of(const pawl_task *task)
{
    return (size_t)strtoull(pawl_task_id(task) + 1, NULL, 10);
}

static pawl_outcome work_first(pawl_task *task)
{
    run.began[number_of(task)][1] = bench_seconds();
    return pawl_raise(NEXT);
}

static pawl_outcome work_second(pawl_task *task)
{
    run.began[number_of(task)][2] = bench_seconds();
    return pawl_raise(NEXT);
}

static pawl_outcome work_third(pawl_task *task)
{
    run.began[number_of(task)][3] = bench_seconds();
    if (sem_post(&run.room) != 0)
        abort();
    return pawl_raise(NEXT);
}

static const pawl_state states[] = {
    [FIRST] = { .name = "first", .flags = PAWL_START, .work = work_first },
    [SECOND] = { .name = "second", .work = work_second },
    [THIRD] = { .name = "third", .work = work_third },
    [DONE] = { .name = "done", .flags = PAWL_FINAL },
};

static const char *const events[] = { [NEXT] = "next" };

static const pawl_edge edges[] = {
    { .from = FIRST, .event = NEXT, .to = SECOND },
    { .from = SECOND, .event = NEXT, .to = THIRD },
    { .from = THIRD, .event = NEXT, .to = DONE },
};

static const pawl_machine machine = {
    .name = "parcel", PAWL_STATES(states), PAWL_EVENTS(events), PAWL_EDGES(edges)
};

static const pawl_machine *const machines[] = { &machine, NULL };

/* --- the engine --------------------------------------------------------------------------- */

static void on_created(void *arg, pawl_err err, const pawl_answer *answer)
{
    (void)arg;
    bench_must(err, &answer->why, "create");
}

static void create(struct pawl *engine, size_t entity)
{
    const pawl_new options = { .data = bench_data() };
    pawl_why why = { "" };
    char id[32] = "";
    pw_print(id, sizeof(id), "e%zu", entity);
    run.began[entity][0] = bench_seconds();
    bench_must(pawl_create_async(engine, machine.name, id, &options, on_created, NULL, &why), &why,
               "create");
}

/* rate 0: as fast as it goes. Else so many transitions a second, whatever is in progress. */
static void create_all(struct pawl *engine, size_t entities, double rate)
{
    double began = bench_seconds();
    for (size_t i = 0; i < entities; i++) {
        double at = rate > 0 ? began + (double)i * VISITS / rate : 0;
        while (rate > 0 && bench_seconds() < at)
            bench_pause_ms(1);
        while (rate <= 0 && sem_wait(&run.room) != 0)
            ; /* a signal */
        create(engine, i);
    }
}

static struct pawl *open_engine(const char *dir, const char *bus,
                                struct pw_store *(*wrap)(struct pw_store *))
{
    struct pw_journal *journal = NULL;
    pawl_why why = { "" };
    const struct pw_jetstream_options options = { .bus = bus, .ns = BENCH_NS };
    bench_must(pw_jetstream_open(&journal, &options, &why), &why, "open the journal");
    const struct bench_how how = { .journal = journal, .wrap = wrap };
    struct pawl *engine = bench_engine(dir, machines, &how);
    while (!atomic_load(&engine->shards[0].serving))
        bench_pause_ms(1);
    return engine;
}

/* Seconds from the first creation until the last visit is in the stream. */
static double run_engine(const char *dir, size_t entities, double rate,
                         struct pw_store *(*wrap)(struct pw_store *))
{
    struct nats_server server;
    nats_server_start(&server, NULL);
    struct pawl *engine = open_engine(dir, server.bus, wrap);
    struct pw_shard *shard = &engine->shards[0];
    if (sem_init(&run.room, 0, IN_PROGRESS) != 0)
        abort();
    uint64_t commits = atomic_load(&engine->metrics.commits);
    double began = bench_seconds();
    create_all(engine, entities, rate);
    bench_wait_transitions(engine, VISITS * entities);
    while (atomic_load(&shard->acked_lsn) < atomic_load(&shard->outbox_lsn))
        bench_pause_ms(1);
    double took = bench_seconds() - began;
    commits = atomic_load(&engine->metrics.commits) - commits;
    bench_say("nats: %.0f transitions/s, %.0f in a commit", VISITS * (double)entities / took,
              VISITS * (double)entities / (double)commits);
    pawl_close(engine);
    (void)sem_destroy(&run.room); /* nobody waits any more */
    nats_server_end(&server);
    bench_remove(dir);
    return took;
}

/* --- latency ------------------------------------------------------------------------------ */

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

static void tell_latency(const char *name, size_t entities)
{
    size_t count = 0;
    char line[64] = "";
    double *list = pw_alloc(entities * (VISITS - 1) * sizeof(*list));
    if (list == NULL)
        abort();
    for (size_t i = 0; i < entities; i++)
        for (size_t visit = 1; visit < VISITS; visit++)
            list[count++] = (run.began[i][visit] - run.began[i][visit - 1]) * 1000;
    qsort(list, count, sizeof(*list), compare);
    pw_print(line, sizeof(line), "%s p50", name);
    bench_result(line, list[count / 2], "ms", 0);
    pw_print(line, sizeof(line), "%s p99", name);
    bench_result(line, list[count - 1 - count / 100], "ms", 0);
    pw_free(list);
}

static void measure_latency(const char *dir, double rate, double seconds, const char *name,
                            size_t entities_max)
{
    size_t entities = (size_t)(rate * seconds / VISITS);
    entities = entities < entities_max ? entities : entities_max;
    (void)run_engine(dir, entities, rate, NULL);
    tell_latency(name, entities);
}

/* --- all ---------------------------------------------------------------------------------- */

static double run_bare(const struct tape *tape, const struct bare_record *records, size_t count,
                       const char *dir)
{
    struct nats_server server;
    const struct bare_path path = { tape, records, count, VISITS, IN_PROGRESS };
    nats_server_start(&server, NULL);
    double took = bare_path(&path, server.bus, dir);
    nats_server_end(&server);
    return took;
}

int main(int argc, char **argv)
{
    const struct bench_args args = bench_begin(argc, argv);
    const size_t entities = args.quick ? 2000 : 30000;
    const double seconds = args.quick ? 1 : SLOW_SECONDS;
    char engine_dir[BENCH_PATH_MAX] = "";
    char bare_dir[BENCH_PATH_MAX] = "";
    struct tape tape;
    size_t count = 0;
    double engine_rates[RUNS] = { 0 };
    double bare_rates[RUNS] = { 0 };
    bench_path(engine_dir, args.dir, "nats-engine");
    bench_path(bare_dir, args.dir, "nats-bare");
    run.began = pw_alloc(entities * sizeof(*run.began));
    if (run.began == NULL)
        abort();
    for (size_t i = 0; args.engine && i < RUNS; i++)
        (void)run_engine(engine_dir, entities, 0, NULL);
    if (args.engine)
        return 0;
    tape_begin(&tape);
    (void)run_engine(engine_dir, entities, 0, tape_wrap);
    tape_end(&tape);
    struct bare_record *records = bare_records(&tape, &count);
    if (count != VISITS * entities || tape.changes != count)
        abort();
    for (size_t i = 0; i < RUNS; i++) {
        engine_rates[i] = (double)count / run_engine(engine_dir, entities, 0, NULL);
        bare_rates[i] = (double)count / run_bare(&tape, records, count, bare_dir);
        bench_say("nats: engine %.0f, bare %.0f transitions/s", engine_rates[i], bare_rates[i]);
    }
    bench_result_of_pairs("nats", engine_rates, bare_rates, RUNS, "transitions/s");
    measure_latency(engine_dir, SLOW_RATE, seconds, "nats at 500/s", entities);
    measure_latency(engine_dir, bench_median(engine_rates, RUNS) / 2, seconds, "nats at half load",
                    entities);
    pw_free(run.began);
    pw_free(records);
    tape_free(&tape);
    return 0;
}
