/* SPDX-License-Identifier: Apache-2.0
 *
 * What a transition costs with many entities in the store, over what it costs with few. Both stores
 * are open in one process and take turns. The events go to entities picked at random among the
 * newest few thousand, as what is in progress is; how it is for entities picked from all is said on
 * stderr. */
#include "base/base.h"
#include "bench/support.h"

#define NEWEST 4096
#define RUNS 5

/* One store. All entities are in "cart" between runs. */
struct side {
    struct pawl *engine;
    size_t entities;
    struct pw_rng rng;
    double costs_s[RUNS];     /* of a transition, among the newest */
    double all_costs_s[RUNS]; /* among all */
};

static void open_side(struct side *side, const char *dir, const char *name, size_t entities)
{
    static const pawl_machine *const machines[] = { &bench_waiting_machine, NULL };
    const struct bench_how how = { .journal = NULL };
    char path[BENCH_PATH_MAX] = "";
    bench_path(path, dir, name);
    side->engine = bench_engine(path, machines, &how);
    side->entities = entities;
    side->rng.state = 1;
    double began = bench_seconds();
    bench_create(side->engine, &bench_waiting_machine, 0, entities);
    bench_say("scale: %zu entities created in %.1f s", entities, bench_seconds() - began);
}

static void close_side(struct side *side, const char *dir, const char *name)
{
    char path[BENCH_PATH_MAX] = "";
    bench_path(path, dir, name);
    pawl_close(side->engine);
    bench_remove(path);
}

static void on_answer(void *arg, pawl_err err, const pawl_answer *answer)
{
    bench_must(err, &answer->why, "send");
    atomic_fetch_add((_Atomic size_t *)arg, 1);
}

static void send_all(struct pawl *engine, const size_t *picks, size_t count, const char *event)
{
    _Atomic size_t answered = 0;
    for (size_t i = 0; i < count;) {
        char id[32] = "";
        pw_print(id, sizeof(id), "e%zu", picks[i]);
        pawl_err err = pawl_send_async(engine, bench_waiting_machine.name, id, event, NULL,
                                       on_answer, &answered, NULL);
        if (err != PAWL_E_BUSY)
            bench_must(err, NULL, "send");
        if (err == PAWL_E_BUSY)
            bench_pause_ms(1);
        else
            i++;
    }
    while (atomic_load(&answered) < count)
        bench_pause_ms(1);
}

/* `count` entities of the newest `among`, none twice. The caller frees. */
static size_t *pick(struct side *side, size_t among, size_t count)
{
    size_t *picks = pw_alloc(among * sizeof(*picks));
    assert(picks != NULL);
    assert(count <= among);
    for (size_t i = 0; i < among; i++)
        picks[i] = side->entities - 1 - i;
    for (size_t i = 0; i < count; i++) {
        size_t j = i + (size_t)pw_rng_below(&side->rng, among - i);
        size_t kept = picks[i];
        picks[i] = picks[j];
        picks[j] = kept;
    }
    return picks;
}

/* Sends entities of the newest `among` there and back, `rounds` times. Seconds a transition. */
static double measure(struct side *side, size_t among, size_t rounds)
{
    double took = 0;
    for (size_t i = 0; i < rounds; i++) {
        size_t *picks = pick(side, among, NEWEST);
        double began = bench_seconds();
        send_all(side->engine, picks, NEWEST, "order");
        send_all(side->engine, picks, NEWEST, "again");
        took += bench_seconds() - began;
        pw_free(picks);
    }
    return took / (double)(2 * NEWEST * rounds);
}

int main(int argc, char **argv)
{
    const struct bench_args args = bench_begin(argc, argv);
    const size_t rounds = args.quick ? 1 : 5;
    struct side few = { .engine = NULL };
    struct side many = { .engine = NULL };
    open_side(&few, args.dir, "scale-few", 10000);
    open_side(&many, args.dir, "scale-many", args.quick ? 50000 : 1000000);
    for (size_t i = 0; i < RUNS; i++) {
        few.costs_s[i] = measure(&few, NEWEST, rounds);
        many.costs_s[i] = measure(&many, NEWEST, rounds);
        few.all_costs_s[i] = measure(&few, few.entities, rounds);
        many.all_costs_s[i] = measure(&many, many.entities, rounds);
        bench_say("scale: newest: few %.1f us, many %.1f us; all: few %.1f us, many %.1f us",
                  few.costs_s[i] * 1e6, many.costs_s[i] * 1e6, few.all_costs_s[i] * 1e6,
                  many.all_costs_s[i] * 1e6);
    }
    bench_say("scale: among all entities: %.2f times",
              bench_median(many.all_costs_s, RUNS) / bench_median(few.all_costs_s, RUNS));
    double ratios[RUNS] = { 0 };
    for (size_t i = 0; i < RUNS; i++)
        ratios[i] = many.costs_s[i] / few.costs_s[i];
    bench_result("scale", bench_median(ratios, RUNS), "times the cost", 0);
    close_side(&few, args.dir, "scale-few");
    close_side(&many, args.dir, "scale-many");
    return 0;
}
