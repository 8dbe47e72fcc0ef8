/* SPDX-License-Identifier: Apache-2.0
 *
 * The machines of the benchmarks, and an engine at work. */
#ifndef BENCH_WORK_H
#define BENCH_WORK_H

#include "bench.h"
#include "engine/engine.h"

/* first -> second -> third -> done; the work does nothing. */
extern const pawl_machine bench_three;
/* here <-> there, by the event "go" from outside. */
extern const pawl_machine bench_pair;

pawl *bench_open(const char *dir, const pawl_machine *machine);

/* The same with a journal that acknowledges at once, so that every change has an outbox row. */
pawl *bench_open_journalled(const char *dir, const pawl_machine *machine);

/* Creates entities 1 to count of the machine "bench" with as many in flight as the engine takes, and waits for the
 * answers. */
void bench_create(pawl *engine, uint64_t count);

/* Sends "go" to `count` entities, row by row: first + i % span. Waits for the answers. */
void bench_send(pawl *engine, uint64_t first, uint64_t span, uint64_t count);

/* Naps until the metric `transitions` is there. */
void bench_wait_transitions(pawl *engine, uint64_t transitions);

/* What a change of bench_pair or bench_three writes. */
struct bench_sizes bench_measure_sizes(const pawl_machine *machine);

#define BENCH_DATA 64 /* bytes of data in each entity */

#endif
