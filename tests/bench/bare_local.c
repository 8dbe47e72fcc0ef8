/* SPDX-License-Identifier: Apache-2.0
 *
 * The ceiling of `local`: for each entity id, entity, state index and history at its creation; entity, state index and
 * history at each of three moves, and a due row (its retention) at the last. In rising order of rows, which dirties the
 * fewest pages; ids and entities are appended. */
#include <stdio.h>

#include "bare.h"

static const char *const states[] = { "first", "second", "third", "done" };

static void put_history(struct bare *bare, uint64_t row, uint64_t version, const struct bench_sizes *sizes)
{
    uint8_t key[16];
    bare_u64(key, row);
    bare_u64(key + 8, version);
    bare_put(bare, bare->history, key, sizeof(key), sizes->history, 0);
}

static void create(struct bare *bare, uint64_t row, uint64_t version, const struct bench_sizes *sizes)
{
    char id[32] = "";
    uint8_t key[64];
    int size = snprintf(id, sizeof(id), "bench%c%08llu", '\0', (unsigned long long)row);
    bare_u64(key, row);
    bare_put(bare, bare->id, id, (size_t)size + 1, 8, MDB_APPEND);
    bare_put(bare, bare->entity, key, 8, sizes->entity, MDB_APPEND);
    bare_put(bare, bare->state, key, bare_state_key(key, states[0], row), 0, 0);
    put_history(bare, row, version, sizes);
}

static void move(struct bare *bare, uint64_t row, uint64_t version, size_t to, const struct bench_sizes *sizes)
{
    uint8_t key[64];
    bare_u64(key, row);
    bare_put(bare, bare->entity, key, 8, sizes->entity, 0);
    bare_del(bare, bare->state, key, bare_state_key(key, states[to - 1], row));
    bare_put(bare, bare->state, key, bare_state_key(key, states[to], row), 0, 0);
    put_history(bare, row, version, sizes);
    if (to != 3)
        return;
    bare_u64(key, version); /* a due time: rising */
    bare_u64(key + 8, row);
    bare_put(bare, bare->due, key, 16, 0, 0);
}

double bare_local(const char *dir, uint64_t entities, size_t batch, const struct bench_sizes *sizes)
{
    struct bare *bare = bare_open(dir);
    uint64_t version = 1;
    double began = bench_now();
    for (size_t step = 0; step < 4; step++)
        for (uint64_t row = 1; row <= entities; row++, version++) {
            if ((row - 1) % batch == 0)
                bare_begin(bare);
            if (step == 0)
                create(bare, row, version, sizes);
            else
                move(bare, row, version, step, sizes);
            if (row % batch == 0 || row == entities)
                bare_commit_txn(bare);
        }
    double seconds = bench_now() - began;
    bare_close(bare);
    return (double)entities * 4 / seconds;
}
