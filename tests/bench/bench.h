/* SPDX-License-Identifier: Apache-2.0
 *
 * What the benchmarks share. Each prints one JSON object a line; see README.md. */
#ifndef BENCH_H
#define BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pawl/pawl.h"

/* Seconds, monotonic. */
double bench_now(void);

/* A fresh directory below the scratch directory; static memory, valid until the next call. */
const char *bench_dir(const char *name);

/* value and ceiling in the unit; ceiling 0: none, `ratio` is then null unless given. */
void bench_line(const char *name, double value, const char *unit, double ceiling, double ratio);

double bench_median(double *values, size_t count);

/* Aborts with the text. */
void bench_must(pawl_err err, const char *what, const char *why);

/* Sizes in bytes of what pawl writes in a change, taken from its own codec, for the bare loops. */
struct bench_sizes {
    size_t entity;
    size_t history;
    size_t record;
};

/* One LMDB environment with pawl's tables and nothing else. */
struct bare;
struct bare *bare_open(const char *dir);
void bare_close(struct bare *bare);

/* The writes of `local`: entities created, moved twice, moved to a final state; `batch` changes a commit. Returns
 * changes a second. */
double bare_local(const char *dir, uint64_t entities, size_t batch, const struct bench_sizes *sizes);

/* The writes of `commit`: `changes` moves over `entities` that are there, each with an outbox row that a later commit
 * deletes. Returns changes a second. */
double bare_commit(const char *dir, uint64_t entities, uint64_t changes, size_t batch, const struct bench_sizes *sizes);

/* The benchmarks. quick: small numbers, to see that they run. */
void bench_commit(bool quick);
void bench_local(bool quick);
void bench_idle(bool quick);
void bench_waiting(bool quick);
void bench_scale(bool quick);

#endif
