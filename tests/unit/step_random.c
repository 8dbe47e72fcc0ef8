/* SPDX-License-Identifier: Apache-2.0
 *
 * src/core/step: random machines, random inputs; what must hold after each, whatever came before.
 * PAWL_SEED=n plays one life again. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/limits.h"
#include "base/rng.h"
#include "core/machine.h"
#include "unit/life.h"

static pawl_outcome work(pawl_task *task)
{
    (void)task;
    return pawl_raise(0);
}
#include "support/test.h"

/* --- random lives ------------------------------------------------------------------------- */

#define RANDOM_STATES 8
#define RANDOM_EVENTS 4
#define RANDOM_EDGES 48

struct random_machine {
    pawl_state states[RANDOM_STATES];
    pawl_edge edges[RANDOM_EDGES];
    pawl_machine machine;
};

static bool chance(struct pw_rng *rng, uint64_t of_100)
{
    return pw_rng_below(rng, 100) < of_100;
}

static void add_edge(struct random_machine *r, int from, int event, int to, bool late)
{
    bool is_new = pw_machine_edge(&r->machine, from, event, late) == NULL;
    if (is_new && r->machine.edges_count < RANDOM_EDGES)
        r->edges[r->machine.edges_count++] =
            (pawl_edge){ .from = from, .event = event, .to = to, .late = late };
}

static void random_state(struct random_machine *r, struct pw_rng *rng, int i, int count)
{
    static const char *const names[] = { "s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7" };
    pawl_state *s = &r->states[i];
    *s = (pawl_state){ .name = names[i], .flags = i == 0 ? PAWL_START : 0 };
    if (i == count - 1) {
        s->flags = PAWL_FINAL;
        return;
    }
    s->work = chance(rng, 60) ? work : NULL;
    s->attempts_max = (uint32_t)pw_rng_below(rng, 4);
    s->backoff_ms = pw_rng_below(rng, 3) * 500;
    s->jitter_percent = (uint32_t)pw_rng_below(rng, 101);
    s->timeout_ms = chance(rng, 40) ? 1 + pw_rng_below(rng, 20000) : 0;
}

static void random_machine(struct random_machine *r, struct pw_rng *rng)
{
    static const char *const events[RANDOM_EVENTS] = { "e0", "e1", "e2", "e3" };
    int count = 2 + (int)pw_rng_below(rng, RANDOM_STATES - 1);
    *r = (struct random_machine){
        .machine = { .name = "random", .events = events, .events_count = RANDOM_EVENTS },
    };
    r->machine.states = r->states;
    r->machine.states_count = (size_t)count;
    r->machine.edges = r->edges;
    r->machine.rounds_max = (uint32_t)pw_rng_below(rng, 5);
    r->machine.crash_attempts_max = (uint32_t)pw_rng_below(rng, 4);
    r->machine.retention_ms = chance(rng, 20) ? PAWL_FOREVER : 1 + pw_rng_below(rng, 50000);
    for (int i = 0; i < count; i++)
        random_state(r, rng, i, count);
    for (int i = 0; i < count - 1; i++) {
        add_edge(r, i, (int)pw_rng_below(rng, RANDOM_EVENTS), i + 1, false); /* all are reached */
        if (r->states[i].timeout_ms != 0)
            add_edge(r, i, PAWL_TIMEOUT, (int)pw_rng_below(rng, (uint64_t)count), false);
        if (r->states[i].work != NULL && chance(rng, 60))
            add_edge(r, i, PAWL_FAILED, (int)pw_rng_below(rng, (uint64_t)count), false);
    }
    for (uint64_t more = pw_rng_below(rng, 20); more > 0; more--)
        add_edge(r, (int)pw_rng_below(rng, (uint64_t)count - 1),
                 (int)pw_rng_below(rng, RANDOM_EVENTS), (int)pw_rng_below(rng, (uint64_t)count),
                 chance(rng, 40));
}

/* Whose raised event was acted on: each attempt's at most once, now or late. */
struct acted {
    struct {
        uint64_t epoch;
        uint32_t attempt;
    } tasks[4096];
    size_t count;
};

static void note_acted(struct acted *acted, const struct pw_input *input)
{
    for (size_t i = 0; i < acted->count; i++)
        assert_false(acted->tasks[i].epoch == input->epoch &&
                     acted->tasks[i].attempt == input->attempt);
    assert_true(acted->count < PW_COUNT(acted->tasks));
    acted->tasks[acted->count].epoch = input->epoch;
    acted->tasks[acted->count++].attempt = input->attempt;
}

static struct pw_input random_input(const struct life *l, struct pw_rng *rng)
{
    static const enum pw_input_kind often[] = { PW_IN_OUTCOME, PW_IN_OUTCOME, PW_IN_OUTCOME,
                                                PW_IN_DUE, PW_IN_SEND };
    static const char *const ids[] = { "", "", "a", "b", "c" };
    static const char *const memos[] = { "m0", "m1", "m2" };
    const struct pw_entity *e = &l->entity;
    struct pw_input input = { .kind = chance(rng, 70) ? often[pw_rng_below(rng, PW_COUNT(often))]
                                                      : (enum pw_input_kind)pw_rng_below(
                                                            rng, PW_IN_LOST_STATE) };
    input.outcome = (enum pw_outcome_kind)pw_rng_below(rng, PW_LATER + 1);
    input.event = (int)pw_rng_below(rng, RANDOM_EVENTS + 4) - 3;
    input.message_id = ids[pw_rng_below(rng, PW_COUNT(ids))];
    input.name = memos[pw_rng_below(rng, PW_COUNT(memos))];
    input.why = "why";
    input.delay_ms = input.kind == PW_IN_CREATE && chance(rng, 80) ? 0 : pw_rng_below(rng, 3000);
    input.version = chance(rng, 5) ? e->version - pw_rng_below(rng, 2) : 0;
    input.epoch = chance(rng, 70)   ? e->epoch
                  : chance(rng, 70) ? e->previous_epoch
                                    : l->lsn - pw_rng_below(rng, 50);
    input.attempt = chance(rng, 70) ? e->attempt : 1 + (uint32_t)pw_rng_below(rng, 4);
    input.dice = pw_rng_next(rng);
    input.has_data = chance(rng, 50);
    return input;
}

static void check_input(const struct life *l, const struct pw_entity *before,
                        const struct pw_input *input, struct acted *acted)
{
    const struct pw_update *u = &l->update;
    if (u->change == PW_UNCHANGED || input->kind != PW_IN_OUTCOME)
        return;
    bool same = input->epoch == before->epoch && input->attempt == before->attempt;
    assert_int_equal(u->happening.late, !same);
    assert_true(same || (before->previous_epoch == input->epoch && input->outcome == PW_RAISE));
    assert_true(!same || !before->parked);
    if (input->outcome == PW_RAISE && u->happening.kind == PW_MOVED)
        note_acted(acted, input);
}

static void live(uint64_t seed)
{
    struct pw_rng rng = { seed };
    struct random_machine r;
    struct life l;
    static struct acted acted;
    random_machine(&r, &rng);
    pawl_why why = { "" };
    if (pawl_machine_check(&r.machine, &why) != PAWL_OK)
        fail_msg("%s", why.text);
    life_begin(&l, &r.machine);
    acted.count = 0;
    for (int i = 0; i < 300; i++) {
        struct pw_entity before = l.entity;
        uint64_t due = l.exists ? pw_entity_due(&before) : 0;
        struct pw_input input =
            l.exists ? random_input(&l, &rng) : (struct pw_input){ .kind = PW_IN_CREATE };
        bool on_time = input.kind == PW_IN_DUE && due != 0 && chance(&rng, 80);
        l.now_ms = on_time && due > l.now_ms ? due : l.now_ms + pw_rng_below(&rng, 200);
        pawl_err err = life_step(&l, input);
        if (err != PAWL_OK)
            continue;
        check_input(&l, &before, &input, &acted);
        assert_true(!on_time || l.update.change != PW_UNCHANGED); /* what is due does something */
        assert_true(!l.exists || l.entity.version >= before.version);
        assert_true(!l.exists || l.entity.epoch >= before.epoch);
        if (l.exists && l.entity.epoch == before.epoch)
            assert_true(l.entity.attempt >= before.attempt);
    }
}

/* PAWL_SEED plays one again. */
static uint64_t playing;

static void say_seed(void)
{
    if (playing != 0)
        (void)fprintf(stderr, "step: again with PAWL_SEED=%llu\n", (unsigned long long)playing);
}

static void random_lives(void **state)
{
    (void)state;
    const char *one = getenv("PAWL_SEED");
    uint64_t from = one != NULL ? strtoull(one, NULL, 10) : 1;
    uint64_t to = one != NULL ? from : 1000;
    for (playing = from; playing <= to; playing++)
        live(playing);
    playing = 0;
}

/* A failed assertion leaves the case by a jump: the teardown still knows the seed. */
static int tell_seed(void **state)
{
    (void)state;
    say_seed();
    playing = 0;
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(random_lives, tell_seed),
    };
    return cmocka_run_group_tests(tests, leaks_begin, leaks_end);
}
