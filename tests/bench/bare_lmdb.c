/* SPDX-License-Identifier: Apache-2.0
 *
 * The bare loop. It writes the tape's keys and values into the same named tables, and nothing else:
 * it reads nothing, decides nothing, packs nothing, tells nobody. Only one thing it may not do:
 * delete an outbox row in the commit that put it, since a record is heard of only after its commit;
 * such deletes wait for the next one. */
#include <stdlib.h>

#include "base/base.h"
#include "bench/bare_env.h"
#include "bench/bare_lmdb.h"
#include "bench/support.h"

#define TUNE_CHANGES_MAX 60000 /* enough to tell the ways apart */

struct loop {
    struct bare_env env;
    size_t *waiting; /* outbox deletes of this batch's own rows */
    size_t waiting_count;
    size_t batch_first; /* op at which the batch began */
};

/* Deletes of rows that this very commit put wait for the next one. */
static bool must_wait(const struct loop *loop, const struct tape *tape, const struct tape_op *op)
{
    if (op->table != PW_OUTBOX)
        return false;
    for (size_t i = loop->batch_first; i < tape->count; i++) {
        const struct tape_op *first = &tape->ops[i];
        if (first->table == PW_OUTBOX && !first->del)
            return pw_bytes_compare(op->key, first->key) >= 0;
    }
    return false;
}

static void do_op(struct loop *loop, const struct tape *tape, size_t i, bool append)
{
    const struct tape_op *op = &tape->ops[i];
    if (!op->del)
        bare_env_put(&loop->env, op, append);
    else if (must_wait(loop, tape, op))
        loop->waiting[loop->waiting_count++] = i;
    else
        bare_env_del(&loop->env, op->table, op->key);
}

/* One commit: ops from `from` up to `to`, and what had to wait. */
static void do_batch(struct loop *loop, const struct tape *tape, size_t from, size_t to,
                     const struct bare_way *way)
{
    size_t waited = loop->waiting_count;
    loop->batch_first = from;
    bare_env_begin(&loop->env);
    for (size_t i = 0; i < waited; i++)
        bare_env_del(&loop->env, PW_OUTBOX, tape->ops[loop->waiting[i]].key);
    loop->waiting_count = 0;
    if (way->by_table) {
        for (size_t table = 0; table < PW_TABLES; table++)
            for (size_t i = from; i < to; i++)
                if (tape->ops[i].table == table)
                    do_op(loop, tape, i, way->append);
    } else {
        for (size_t i = from; i < to; i++)
            do_op(loop, tape, i, way->append);
    }
    bare_env_commit(&loop->env);
}

/* Where a batch that begins at `from` ends. */
static size_t batch_end(const struct tape *tape, size_t from, size_t changes)
{
    size_t begun = 0;
    for (size_t i = from; i < tape->count; i++) {
        begun += tape->ops[i].begins ? 1 : 0;
        if (begun > changes)
            return i;
    }
    return tape->count;
}

double bare_lmdb(const struct tape *tape, const struct bare_way *way, const char *dir)
{
    struct loop loop = { .waiting = NULL };
    loop.waiting = pw_alloc((tape->count + 1) * sizeof(*loop.waiting));
    if (loop.waiting == NULL)
        abort();
    bare_env_open(&loop.env, dir);
    double began = bench_seconds();
    for (size_t from = 0; from < tape->count || loop.waiting_count > 0;) {
        size_t to = batch_end(tape, from, way->batch);
        do_batch(&loop, tape, from, to, way);
        from = to;
    }
    double took = bench_seconds() - began;
    bare_env_close(&loop.env, dir);
    pw_free(loop.waiting);
    return took;
}

struct bare_way bare_lmdb_tune(const struct tape *tape, const char *dir)
{
    static const size_t batches[] = { 256, 512, 1024, 2048, 4096, 8192 };
    struct tape part = *tape;
    part.count = batch_end(tape, 0, TUNE_CHANGES_MAX);
    part.changes = tape->changes < TUNE_CHANGES_MAX ? tape->changes : TUNE_CHANGES_MAX;
    struct bare_way best = { .batch = 0 };
    double best_s = 0;
    for (size_t b = 0; b < PW_COUNT(batches); b++)
        for (unsigned variant = 0; variant < 4; variant++) {
            struct bare_way way = { batches[b], (variant & 1) != 0, (variant & 2) != 0 };
            double took = bare_lmdb(&part, &way, dir);
            bench_say("bare loop: batch %zu%s%s: %.0f changes/s", way.batch,
                      way.append ? ", append" : "", way.by_table ? ", by table" : "",
                      (double)part.changes / took);
            if (best.batch == 0 || took < best_s) {
                best = way;
                best_s = took;
            }
        }
    return best;
}
