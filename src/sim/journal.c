/* SPDX-License-Identifier: Apache-2.0
 *
 * A list of appended records, each with the moment of its acknowledgement. */
#include "base/base.h"
#include "base/limits.h"
#include "sim/journal.h"

#define ACK_MS_MAX 4

struct entry {
    uint64_t lsn;
    uint64_t acked_ms;
    uint8_t *bytes;
    size_t size;
};

struct pw_sim_journal {
    struct pw_journal base; /* first */
    struct pw_clock *clock;
    struct pw_rng rng;
    struct entry *entries;
    size_t count;
    size_t room;
    size_t read;  /* the reader has what is before */
    size_t acked; /* entries acknowledged */
    uint64_t acked_lsn;
    uint64_t fail_one_in;
    bool (*tick)(void *arg);
    void *tick_arg;
};

static struct pw_sim_journal *of(struct pw_journal *journal)
{
    return (struct pw_sim_journal *)journal;
}

static bool ticks(struct pw_sim_journal *j)
{
    return j->tick == NULL || j->tick(j->tick_arg);
}

static bool grow(struct pw_sim_journal *j)
{
    if (j->count < j->room)
        return true;
    size_t room = j->room == 0 ? 64 : j->room * 2;
    struct entry *entries = pw_realloc(j->entries, room * sizeof(*entries));
    if (entries == NULL)
        return false;
    j->entries = entries;
    j->room = room;
    return true;
}

static void settle(struct pw_sim_journal *j)
{
    uint64_t now_ms = j->clock->monotonic_ms(j->clock);
    for (; j->acked < j->count && j->entries[j->acked].acked_ms <= now_ms; j->acked++)
        if (j->entries[j->acked].lsn > j->acked_lsn)
            j->acked_lsn = j->entries[j->acked].lsn;
}

static pawl_err append(struct pw_journal *journal, uint64_t lsn, pawl_bytes record)
{
    struct pw_sim_journal *j = of(journal);
    settle(j);
    if (!ticks(j) || (j->fail_one_in != 0 && pw_rng_below(&j->rng, j->fail_one_in) == 0))
        return PAWL_E_IO;
    if (j->count - j->acked >= PW_WINDOW)
        return PAWL_E_BUSY;
    uint8_t *bytes = pw_alloc(record.size);
    if (bytes == NULL || !grow(j)) {
        pw_free(bytes);
        return PAWL_E_NOMEM;
    }
    memcpy(bytes, record.data, record.size);
    uint64_t acked_ms = j->clock->monotonic_ms(j->clock) + pw_rng_below(&j->rng, ACK_MS_MAX);
    if (j->count > j->acked && acked_ms < j->entries[j->count - 1].acked_ms)
        acked_ms = j->entries[j->count - 1].acked_ms; /* in order */
    j->entries[j->count++] = (struct entry){ lsn, acked_ms, bytes, record.size };
    return PAWL_OK;
}

static pawl_err acked(struct pw_journal *journal, uint64_t *lsn)
{
    struct pw_sim_journal *j = of(journal);
    settle(j);
    if (j->acked_lsn > *lsn)
        *lsn = j->acked_lsn;
    return PAWL_OK;
}

static size_t fetch(struct pw_journal *journal, size_t most, pw_journalled journalled, void *arg)
{
    struct pw_sim_journal *j = of(journal);
    size_t got = 0;
    settle(j);
    for (; j->read < j->acked && got < most && ticks(j); j->read++, got++) {
        const struct entry *entry = &j->entries[j->read];
        journalled(arg, entry->lsn, (pawl_bytes){ entry->bytes, entry->size });
    }
    return got;
}

static const struct pw_journal_ops ops = { append, acked, fetch };

pawl_err pw_sim_journal_open(struct pw_journal **journal, struct pw_clock *clock, uint64_t seed)
{
    struct pw_sim_journal *j = pw_alloc(sizeof(*j));
    if (j == NULL)
        return PAWL_E_NOMEM;
    j->base.ops = &ops;
    j->clock = clock;
    j->rng.state = seed;
    *journal = &j->base;
    return PAWL_OK;
}

void pw_sim_journal_free(struct pw_journal *journal)
{
    struct pw_sim_journal *j = of(journal);
    if (j == NULL)
        return;
    for (size_t i = 0; i < j->count; i++)
        pw_free(j->entries[i].bytes);
    pw_free(j->entries);
    pw_free(j);
}

void pw_sim_journal_on_operation(struct pw_journal *journal, bool (*tick)(void *arg), void *arg)
{
    of(journal)->tick = tick;
    of(journal)->tick_arg = arg;
}

void pw_sim_journal_fail(struct pw_journal *journal, uint64_t one_in)
{
    of(journal)->fail_one_in = one_in;
}

void pw_sim_journal_crash(struct pw_journal *journal)
{
    struct pw_sim_journal *j = of(journal);
    settle(j);
    size_t arrive =
        j->count > j->acked ? j->acked + pw_rng_below(&j->rng, j->count - j->acked + 1) : j->acked;
    while (j->count > arrive)
        pw_free(j->entries[--j->count].bytes);
    j->read = j->count; /* a new reader begins behind the opening */
    j->acked = j->count;
    j->acked_lsn = 0; /* a new owner counts only what it appended itself */
}

uint64_t pw_sim_journal_next_ms(struct pw_journal *journal)
{
    struct pw_sim_journal *j = of(journal);
    settle(j);
    if (j->read < j->acked)
        return 0;
    return j->acked < j->count ? j->entries[j->acked].acked_ms : PW_NEVER;
}
