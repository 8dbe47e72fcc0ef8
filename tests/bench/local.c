/* SPDX-License-Identifier: Apache-2.0
 *
 * The whole engine on the bus "local:": entities created by one thread with thousands in flight,
 * and worked through three states whose work does nothing. With all its threads. */
#include "base/base.h"
#include "bench/bare_lmdb.h"
#include "bench/support.h"

#define RUNS 5
#define VISITS 4

enum { FIRST, SECOND, THIRD, DONE };
enum { NEXT };

static pawl_outcome work(pawl_task *task)
{
    (void)task;
    return pawl_raise(NEXT);
}

static const pawl_state states[] = {
    [FIRST] = { .name = "first", .flags = PAWL_START, .work = work },
    [SECOND] = { .name = "second", .work = work },
    [THIRD] = { .name = "third", .work = work },
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

/* Seconds from the first creation to the last visit. */
static double run_engine(const char *dir, size_t entities,
                         struct pw_store *(*wrap)(struct pw_store *))
{
    const struct bench_how how = { .wrap = wrap };
    struct pawl *engine = bench_engine(dir, machines, &how);
    double began = bench_seconds();
    bench_create(engine, &machine, 0, entities);
    bench_wait_transitions(engine, VISITS * entities);
    double took = bench_seconds() - began;
    uint64_t commits = atomic_load(&engine->metrics.commits);
    bench_say("local: %.0f transitions/s, %.0f in a commit", VISITS * (double)entities / took,
              VISITS * (double)entities / (double)commits);
    pawl_close(engine);
    bench_remove(dir);
    return took;
}

int main(int argc, char **argv)
{
    const struct bench_args args = bench_begin(argc, argv);
    const size_t entities = args.quick ? 5000 : 50000;
    char engine_dir[BENCH_PATH_MAX] = "";
    char bare_dir[BENCH_PATH_MAX] = "";
    struct tape tape;
    double engine_rates[RUNS] = { 0 };
    double bare_rates[RUNS] = { 0 };
    bench_path(engine_dir, args.dir, "local-engine");
    bench_path(bare_dir, args.dir, "local-bare");
    for (size_t i = 0; args.engine && i < RUNS; i++)
        (void)run_engine(engine_dir, entities, NULL);
    if (args.engine)
        return 0;
    tape_begin(&tape);
    (void)run_engine(engine_dir, entities, tape_wrap);
    tape_end(&tape);
    const struct bare_way way = bare_lmdb_tune(&tape, bare_dir);
    for (size_t i = 0; i < RUNS; i++) {
        engine_rates[i] = (double)tape.changes / run_engine(engine_dir, entities, NULL);
        bare_rates[i] = (double)tape.changes / bare_lmdb(&tape, &way, bare_dir);
        bench_say("local: engine %.0f, bare %.0f transitions/s", engine_rates[i], bare_rates[i]);
    }
    bench_result_of_pairs("local", engine_rates, bare_rates, RUNS, "transitions/s");
    tape_free(&tape);
    return 0;
}
