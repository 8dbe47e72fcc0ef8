/* SPDX-License-Identifier: Apache-2.0
 *
 * Torture: the same scenario again and again, dying at each operation in turn, then at drawn ones
 * under other orders of turns. It ends well only if every run ends as the undisturbed one did. */
#include <stdio.h>
#include <stdlib.h>

#include "base/base.h"
#include "base/rng.h"
#include "sim/world.h"

/* One less than what parks a task for killing its process, by default. */
#define CRASHES_MAX 4

struct torture {
    const pawl_unit *units;
    pawl_scenario scenario;
    char *expected; /* states after the undisturbed run */
    uint32_t shards;
    unsigned flags;
};

static _Noreturn void fail(uint64_t seed, uint64_t crash, const char *what, const char *expected,
                           const char *got)
{
    (void)fprintf(stderr, "torture: %s\nreplay with PAWL_SEED=%llu PAWL_CRASH=%llu\n", what,
                  (unsigned long long)seed, (unsigned long long)crash);
    if (expected != NULL)
        (void)fprintf(stderr, "--- undisturbed\n%s--- here\n%s---\n", expected, got);
    abort();
}

/* crash: at which operation (0: never), or, with `often`, again and again. Returns how often it
 * died. */
static uint64_t run(struct torture *torture, uint64_t seed, uint64_t crash, bool often)
{
    pawl_why why = { "" };
    pawl_world *world = pawl_world_open_with(torture->units, torture->shards, seed,
                                             torture->flags | PAWL_WORLD_QUIET);
    if (often)
        pw_world_crash_often(world, crash, CRASHES_MAX);
    else
        pawl_world_crash_at(world, crash);
    torture->scenario(world);
    pawl_world_run(world);
    pawl_world_crash_at(world, 0);
    if (!pawl_world_verify(world, &why))
        fail(seed, crash, why.text, NULL, NULL);
    char *states = pw_world_states(world);
    if (torture->expected == NULL)
        torture->expected = pw_strdup(states);
    if (torture->expected == NULL || strcmp(states, torture->expected) != 0)
        fail(seed, crash, "it ended otherwise", torture->expected != NULL ? torture->expected : "",
             states);
    uint64_t crashes = pawl_world_crashes(world);
    pw_free(states);
    pawl_world_close(world);
    return crashes;
}

static uint64_t number_of(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text != NULL ? strtoull(text, NULL, 10) : otherwise;
}

void pawl_torture_with(const pawl_unit *units, uint32_t shards, unsigned flags, uint64_t seeds,
                       pawl_scenario scenario)
{
    struct torture torture = {
        .units = units, .scenario = scenario, .shards = shards, .flags = flags
    };
    uint64_t seed = number_of("PAWL_SEED", 0);
    (void)run(&torture, 1, 0, false);
    if (seed == 1) {
        (void)run(&torture, seed, number_of("PAWL_CRASH", 0), false);
    } else if (seed > 1) {
        (void)run(&torture, seed, number_of("PAWL_CRASH", 0), true);
    } else {
        for (uint64_t crash = 1; run(&torture, 1, crash, false) > 0; crash++) {
        }
        struct pw_rng rng = { 1 };
        for (seed = 2; seed < 2 + seeds; seed++)
            (void)run(&torture, seed, 1 + pw_rng_below(&rng, 200), true);
    }
    pw_free(torture.expected);
}

void pawl_torture(const pawl_machine *machine, void *env, pawl_scenario scenario)
{
    const pawl_unit units[] = { { machine, env, NULL }, { NULL, NULL, NULL } };
    pawl_torture_with(units, 1, 0, 200, scenario);
    pawl_torture_with(units, 1, PAWL_WORLD_JOURNAL, 200, scenario);
}
