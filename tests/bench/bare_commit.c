/* SPDX-License-Identifier: Apache-2.0
 *
 * The ceiling of `commit`: a move of an entity from one state to another and back: entity, state index, history and an
 * outbox row; each commit deletes the outbox rows of the one before. */
#include <stdio.h>

#include "bare.h"

static const char *const states[] = { "here", "there" };

static void fill(struct bare *bare, uint64_t entities, const struct bench_sizes *sizes)
{
    uint8_t key[64];
    bare_begin(bare);
    for (uint64_t row = 1; row <= entities; row++) {
        bare_u64(key, row);
        bare_put(bare, bare->entity, key, 8, sizes->entity, MDB_APPEND);
        bare_put(bare, bare->state, key, bare_state_key(key, states[0], row), 0, 0);
        bare_u64(key, row);
        bare_u64(key + 8, 0);
        bare_put(bare, bare->history, key, 16, sizes->history, MDB_APPEND);
    }
    bare_commit_txn(bare);
}

static void move(struct bare *bare, uint64_t row, uint64_t lsn, unsigned to, const struct bench_sizes *sizes)
{
    uint8_t key[64];
    bare_u64(key, row);
    bare_put(bare, bare->entity, key, 8, sizes->entity, 0);
    bare_del(bare, bare->state, key, bare_state_key(key, states[1 - to], row));
    bare_put(bare, bare->state, key, bare_state_key(key, states[to], row), 0, 0);
    bare_u64(key, row);
    bare_u64(key + 8, lsn);
    bare_put(bare, bare->history, key, 16, sizes->history, 0);
    bare_put(bare, bare->outbox, key + 8, 8, sizes->record, MDB_APPEND);
}

static void trim(struct bare *bare, uint64_t from, uint64_t upto)
{
    uint8_t key[8];
    for (uint64_t lsn = from; lsn < upto; lsn++) {
        bare_u64(key, lsn);
        bare_del(bare, bare->outbox, key, 8);
    }
}

double bare_commit(const char *dir, uint64_t entities, uint64_t changes, size_t batch, const struct bench_sizes *sizes)
{
    struct bare *bare = bare_open(dir);
    uint64_t trimmed = 1;
    uint64_t begun = 1;
    fill(bare, entities, sizes);
    double began = bench_now();
    for (uint64_t lsn = 1; lsn <= changes; lsn++) {
        if ((lsn - 1) % batch == 0) {
            bare_begin(bare);
            begun = lsn;
        }
        move(bare, (lsn - 1) % entities + 1, lsn, (unsigned)((lsn - 1) / entities + 1) % 2, sizes);
        if (lsn % batch != 0 && lsn != changes)
            continue;
        trim(bare, trimmed, begun);
        trimmed = begun;
        bare_commit_txn(bare);
    }
    double seconds = bench_now() - began;
    bare_close(bare);
    return (double)changes / seconds;
}
