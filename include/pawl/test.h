/* SPDX-License-Identifier: Apache-2.0
 *
 * The simulated world: the real writer, relay, pools and timers on a simulated store, journal and
 * clock, in one thread and in virtual time. For tests of machines and of pawl itself. Link
 * pawl-test. Nothing here is thread-safe. */
#ifndef PAWL_TEST_H
#define PAWL_TEST_H

#include "pawl/client.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pawl_world pawl_world;

/* Flags of a world. */
enum {
    PAWL_WORLD_JOURNAL =
        1, /* records go through a simulated journal, as with NATS; else the bus is "local:" */
    PAWL_WORLD_JITTER = 2, /* delays are spread as in production; else jitter is 0 */
    PAWL_WORLD_QUIET = 4,  /* no transcript is kept */
};

/* A world with one machine, time 0, order of turns drawn from the seed. Aborts when the machine is
 * refused. */
pawl_world *pawl_world_open(const pawl_machine *machine, void *env, uint64_t seed);

/* The same with several machines (units ends with a row of zeros), shards and flags. */
pawl_world *pawl_world_open_with(const pawl_unit *units, uint32_t shards, uint64_t seed,
                                 unsigned flags);
void pawl_world_close(pawl_world *world);

/* Commands to the first machine. They run the world until they are answered. */
pawl_err pawl_world_create(pawl_world *world, const char *id, pawl_bytes data);
pawl_err pawl_world_send(pawl_world *world, const char *id, int event);

/* The engine inside, for the calls of client.h: only those with a callback, and the reads. The
 * answer comes while the world runs. */
pawl *pawl_world_engine(pawl_world *world);

/* Runs all that can run, going on in time to whatever is due next, until nothing is left to do, or
 * for `ms`. */
void pawl_world_run(pawl_world *world);
void pawl_world_run_for(pawl_world *world, uint64_t ms);

/* Virtual milliseconds since the world began. */
uint64_t pawl_world_now(const pawl_world *world);

/* kill -9 and restart: what was not committed is gone. */
void pawl_world_crash(pawl_world *world);
/* A clean stop and start; with other machines, too (units ends with a row of zeros). */
void pawl_world_restart(pawl_world *world);
void pawl_world_restart_with(pawl_world *world, const pawl_unit *units);

/* Crash at the Nth operation of store, journal or work from now (1, 2, 3...; 0: never). The world
 * recovers by itself; pawl_world_crashes() tells how often. */
void pawl_world_crash_at(pawl_world *world, uint64_t operation);
uint64_t pawl_world_crashes(const pawl_world *world);

/* From now on the store is full (commits of anything are refused) until false. */
void pawl_world_store_full(pawl_world *world, bool full);

/* Everything that happened since the world began, or since the last clear: a line each,
 * "<ms, 7 wide> <machine>/<id> <what>". */
const char *pawl_world_transcript(const pawl_world *world);
void pawl_world_clear(pawl_world *world);

/* Proves the guarantees as far as the store shows them: indexes agree, each non-final entity has a
 * waker, none was entered twice. On failure false, and *why says what. */
bool pawl_world_verify(pawl_world *world, pawl_why *why);

/* Runs the world, compares the transcript, and aborts with both texts when they differ. */
void pawl_world_expect(pawl_world *world, const char *expected, const char *file, int line);
#define PAWL_EXPECT(world, expected) pawl_world_expect((world), (expected), __FILE__, __LINE__)

/* A scenario drives a fresh world: creates, sends, runs. It must do the same each time, and return
 * when it is done. */
typedef void (*pawl_scenario)(pawl_world *world);

/* Runs the scenario with a crash at the 1st, 2nd, 3rd... operation until one run has no crash, then
 * with `seeds` other orders of turns, each with up to four crashes at drawn operations (a machine
 * with a crash_attempts_max below 5 may park then). After each run the world is verified and every
 * entity must be where the first, undisturbed run left it. Aborts naming seed and operation;
 * PAWL_SEED and PAWL_CRASH replay one. pawl_torture() does so with 200 seeds, without a journal and
 * with one. */
void pawl_torture(const pawl_machine *machine, void *env, pawl_scenario scenario);
void pawl_torture_with(const pawl_unit *units, uint32_t shards, unsigned flags, uint64_t seeds,
                       pawl_scenario scenario);

#ifdef __cplusplus
}
#endif
#endif
