/* SPDX-License-Identifier: Apache-2.0
 *
 * What the benches share: arguments, time, results, and an engine on a store of its own. A bench
 * that cannot go on says why and exits: there is nothing to clean up but its scratch directory,
 * and that is the script's. */
#ifndef BENCH_SUPPORT_H
#define BENCH_SUPPORT_H

#include "engine/engine.h"

#define BENCH_PATH_MAX 4096
#define BENCH_RUNS_MAX 16

/* "DIR [--quick] [--engine]" */
struct bench_args {
    const char *dir; /* scratch, on a real disk */
    bool quick;      /* small sizes: does it still work? */
    bool engine;     /* only the engine's side, and no result: for a profiler */
};

struct bench_args bench_begin(int argc, char **argv);

double bench_seconds(void);
double bench_cpu_seconds(void);
void bench_pause_ms(unsigned ms);

/* The one line on stdout. ceiling 0: there is none. */
void bench_result(const char *name, double value, const char *unit, double ceiling);

/* The same of several pairs, each measured one after the other: the pair that has the median ratio,
 * since what else the machine does at the time changes both. */
void bench_result_of_pairs(const char *name, const double *values, const double *ceilings,
                           size_t count, const char *unit);

/* Says on stderr what went on. */
void bench_say(const char *format, ...) PAWL_PRINTF(1, 2);

/* Exits with a message unless it is PAWL_OK. why may be NULL. */
void bench_must(pawl_err err, const pawl_why *why, const char *doing);

double bench_median(const double *values, size_t count);

void bench_path(char path[BENCH_PATH_MAX], const char *dir, const char *name);

/* Removes an LMDB environment's directory. */
void bench_remove(const char *dir);

/* What is not the default of an engine here. */
struct bench_how {
    struct pw_journal *journal;
    struct pw_drive drive;
    struct pw_store *(*wrap)(struct pw_store *store); /* what puts itself before the store */
};

/* Opens the store in `dir` (made when missing), adds machines until one is NULL, and starts. */
struct pawl *bench_engine(const char *dir, const pawl_machine *const *machines,
                          const struct bench_how *how);

/* A machine whose entities wait: "cart", "ordered" and back by events "order", "again". Both states
 * have a timeout far away, as nearly all that waits has. */
extern const pawl_machine bench_waiting_machine;

/* A machine that works: nothing is ever in it here, but its pool has threads. */
extern const pawl_machine bench_working_machine;

/* Creates entities "e<from>" and on, `count` of them, with thousands in flight; returns when all
 * are answered. Threads must run. */
void bench_create(struct pawl *engine, const pawl_machine *machine, size_t from, size_t count);

/* How many visits were begun, creations included. */
uint64_t bench_transitions(struct pawl *engine);

/* Waits until `count` visits were begun. */
void bench_wait_transitions(struct pawl *engine, uint64_t count);

/* The data that each entity carries: an order or a negotiation, as JSON. */
pawl_bytes bench_data(void);

#endif
