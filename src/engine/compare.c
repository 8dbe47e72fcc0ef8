/* SPDX-License-Identifier: Apache-2.0
 *
 * See compare.h. Whether an entity matches is decided by one function, for `verify` and for a
 * replay alike; what is read in bulk only finds out which ones to ask it about. */
#include <stdarg.h>
#include <stdio.h>

#include "base/base.h"
#include "base/limits.h"
#include "engine/compare.h"

static const struct pw_store_ops *ops_of(const struct pw_shard *shard)
{
    return shard->tables.store->ops;
}

/* --- the outbox --------------------------------------------------------------------------- */

struct outbox {
    struct pw_shard *shard;
    struct pw_arena arena;
    struct pw_outbox_row rows[PW_RELAY_BATCH_MAX];
    struct pw_status status;
};

static bool tell_row(struct outbox *outbox, const struct pw_outbox_row *row, pw_waiting_seen seen,
                     void *arg)
{
    struct pw_record record;
    struct pw_waiting waiting = { .shard = outbox->shard->index, .lsn = row->lsn };
    waiting.acked = row->lsn <= outbox->status.journal_lsn;
    if (pw_record_unpack(row->record, outbox->shard->tables.machines, &outbox->arena, &record) ==
        PAWL_OK) {
        uint64_t now_ms = outbox->status.now_ms;
        waiting.machine = record.entity.machine_name;
        waiting.id = record.entity.id;
        waiting.state = record.tombstone || record.forget ? "" : record.entity.state_name;
        waiting.age_ms = now_ms > record.time_ms ? now_ms - record.time_ms : 0;
    }
    return seen(arg, &waiting);
}

/* False: nobody wants to hear more. */
static bool tell_rows(struct outbox *outbox, size_t count, uint64_t *from, pw_waiting_seen seen,
                      void *arg)
{
    for (size_t i = 0; i < count; i++) {
        *from = outbox->rows[i].lsn + 1;
        if (!tell_row(outbox, &outbox->rows[i], seen, arg))
            return false;
    }
    return true;
}

pawl_err pw_list_outbox(struct pw_shard *shard, pw_waiting_seen seen, void *arg)
{
    struct outbox *outbox = pw_alloc(sizeof(*outbox));
    uint64_t from = 0;
    bool more = true;
    if (outbox == NULL)
        return PAWL_E_NOMEM;
    outbox->shard = shard;
    pw_arena_init(&outbox->arena, (size_t)256 * 1024);
    pawl_err err = pw_status(shard, &outbox->status);
    while (err == PAWL_OK && more) {
        size_t count = 0;
        pw_arena_reset(&outbox->arena);
        err = pw_outbox_read(shard, &outbox->arena, from, UINT64_MAX, outbox->rows,
                             PW_RELAY_BATCH_MAX, &count, &more);
        if (err == PAWL_OK)
            more = tell_rows(outbox, count, &from, seen, arg) && more;
    }
    pw_arena_fini(&outbox->arena);
    pw_free(outbox);
    return err;
}

/* --- one entity --------------------------------------------------------------------------- */

/* What the store has of it. */
struct kept {
    uint64_t version; /* 0: nothing */
    bool waits;       /* its version, or that it is forgotten, is in the outbox, unacknowledged */
};

struct forgotten {
    const char *machine;
    const char *id;
    bool found;
};

static bool look_at_forgotten(void *arg, pawl_bytes key, pawl_bytes value)
{
    struct forgotten *forgotten = arg;
    struct pw_heads heads;
    (void)key;
    forgotten->found = pw_record_heads(value, &heads) == PAWL_OK && heads.forget &&
                       strcmp(heads.machine, forgotten->machine) == 0 &&
                       strcmp(heads.id, forgotten->id) == 0;
    return !forgotten->found;
}

static pawl_err is_forgotten(struct pw_shard *shard, struct pw_txn *txn, const char *machine,
                             const char *id, bool *waits)
{
    struct forgotten forgotten = { machine, id, false };
    const pawl_bytes first = { "", 0 };
    pawl_err err = ops_of(shard)->scan(txn, PW_OUTBOX, first, look_at_forgotten, &forgotten);
    *waits = forgotten.found;
    return err;
}

/* A row that the journal acknowledged, as the store last heard, waits for its effects only. */
static pawl_err is_waiting(struct pw_shard *shard, struct pw_txn *txn, uint64_t version,
                           bool *waits)
{
    struct pw_meta meta = { .journal_lsn = 0 };
    struct pw_key key = { .size = 0 };
    pawl_bytes value = { NULL, 0 };
    pawl_err err = pw_meta_load(&shard->tables, txn, &meta);
    if (err != PAWL_OK || version <= meta.journal_lsn)
        return err;
    pw_key_u64(&key, version);
    err = ops_of(shard)->get(txn, PW_OUTBOX, pw_key_bytes(&key), &value);
    *waits = err == PAWL_OK;
    return err == PAWL_E_NOT_FOUND ? PAWL_OK : err;
}

static pawl_err find_version(struct pw_shard *shard, struct pw_txn *txn, const char *machine,
                             const char *id, uint64_t *version)
{
    struct pw_arena arena;
    struct pw_entity entity;
    uint64_t row = 0;
    pawl_err err = pw_tables_find(&shard->tables, txn, machine, id, &row);
    if (err != PAWL_OK)
        return err;
    pw_arena_init(&arena, 1024);
    err = pw_tables_load_any(&shard->tables, txn, row, &arena, &entity);
    pw_arena_fini(&arena);
    if (err == PAWL_OK)
        *version = entity.version;
    return err;
}

static pawl_err look_at_store(struct pw_shard *shard, const char *machine, const char *id,
                              struct kept *kept)
{
    struct pw_txn *txn = NULL;
    pawl_err err = ops_of(shard)->begin(shard->tables.store, false, &txn);
    if (err != PAWL_OK)
        return err;
    *kept = (struct kept){ .version = 0 };
    err = find_version(shard, txn, machine, id, &kept->version);
    if (err == PAWL_OK)
        err = is_waiting(shard, txn, kept->version, &kept->waits);
    else if (err == PAWL_E_NOT_FOUND)
        err = is_forgotten(shard, txn, machine, id, &kept->waits);
    ops_of(shard)->abort(txn);
    return err;
}

static void look_at_entry(void *arg, const struct pw_entry *entry)
{
    struct pw_compared *compared = arg;
    compared->seq = entry->seq;
    compared->lsn = entry->lsn;
    if (entry->kind != PW_ENTRY_RECORD)
        compared->match = PW_MATCH_FOREIGN;
}

/* What the journal had after `before` was in the store, and before `after` was: whatever was
 * appended and left the outbox before it was looked at is in it, and whatever is in it was in the
 * store when it was looked at again. */
static enum pw_match judge(const struct kept *before, const struct pw_compared *found,
                           const struct kept *after)
{
    if (before->waits || after->waits)
        return PW_MATCH_WAITS;
    if (found->match == PW_MATCH_FOREIGN)
        return PW_MATCH_FOREIGN;
    if (found->lsn == after->version || found->lsn == before->version)
        return found->lsn != 0 ? PW_MATCH_SAME : PW_MATCH_NOTHING;
    if (found->lsn > after->version)
        return PW_MATCH_NEWER;
    return found->lsn < before->version ? PW_MATCH_LACKS : PW_MATCH_SAME;
}

pawl_err pw_compare_one(struct pw_shard *shard, struct pw_journal *journal, const char *machine,
                        const char *id, struct pw_compared *compared)
{
    struct pw_compared found = { .match = PW_MATCH_NOTHING };
    struct kept before;
    struct kept after;
    pawl_err err = look_at_store(shard, machine, id, &before);
    if (err != PAWL_OK)
        return err;
    err = journal->ops->last(journal, machine, id, look_at_entry, &found);
    if (err != PAWL_OK && err != PAWL_E_NOT_FOUND)
        return err;
    err = look_at_store(shard, machine, id, &after);
    if (err != PAWL_OK)
        return err;
    found.match = judge(&before, &found, &after);
    found.version = after.version;
    *compared = found;
    return PAWL_OK;
}

/* --- all of them -------------------------------------------------------------------------- */

#define NAMES_MAX 256

struct name {
    const char *machine;
    const char *id;
};

struct comparison {
    struct pw_shard *shard;
    struct pw_journal *journal;
    struct pw_txn *txn;
    struct pw_arena arena; /* of one entity */
    struct pw_arena names_arena;
    struct name names[NAMES_MAX]; /* to be looked at again, when no transaction is open */
    size_t names_count;
    uint64_t *lsns; /* of the journal's record, by row */
    uint64_t rows;
    uint64_t next_row; /* the walk's */
    uint64_t records;
    size_t faults;
    pw_wrong wrong;
    void *arg;
    bool ended;
    pawl_err err;
};

static void say(struct comparison *c, const char *format, ...) PAWL_PRINTF(2, 3);
static void say(struct comparison *c, const char *format, ...)
{
    char text[512] = "";
    char line[600] = "";
    va_list list;
    va_start(list, format);
    (void)vsnprintf(text, sizeof(text), format, list); /* cut when too long */
    va_end(list);
    if (c->ended)
        return;
    pw_print(line, sizeof(line), "shard %u, stream: %s", c->shard->index, text);
    c->ended = !c->wrong(c->arg, line) || ++c->faults == PW_COMPARE_FAULTS_MAX;
    if (c->faults == PW_COMPARE_FAULTS_MAX)
        (void)c->wrong(c->arg, "the comparison ends here: there may be more");
}

static void say_match(struct comparison *c, const struct name *name,
                      const struct pw_compared *compared)
{
    unsigned long long version = compared->version;
    unsigned long long lsn = compared->lsn;
    if (compared->match == PW_MATCH_LACKS && lsn == 0)
        say(c, "%s/%s: no record of it; the store has version %llu", name->machine, name->id,
            version);
    else if (compared->match == PW_MATCH_LACKS)
        say(c, "%s/%s: an old record of it, version %llu; the store has %llu", name->machine,
            name->id, lsn, version);
    else if (compared->match == PW_MATCH_NEWER && version == 0)
        say(c, "%s/%s: a record of it, version %llu; the store has nothing of it", name->machine,
            name->id, lsn);
    else if (compared->match == PW_MATCH_NEWER)
        say(c, "%s/%s: a newer record of it, version %llu; the store has %llu", name->machine,
            name->id, lsn, version);
    else if (compared->match == PW_MATCH_FOREIGN)
        say(c, "%s/%s: its record, sequence %llu, was written by no owner", name->machine, name->id,
            (unsigned long long)compared->seq);
}

static void look_again(struct comparison *c)
{
    for (size_t i = 0; i < c->names_count && c->err == PAWL_OK && !c->ended; i++) {
        struct pw_compared compared;
        c->err =
            pw_compare_one(c->shard, c->journal, c->names[i].machine, c->names[i].id, &compared);
        if (c->err == PAWL_OK)
            say_match(c, &c->names[i], &compared);
    }
    c->names_count = 0;
    pw_arena_reset(&c->names_arena);
}

static void suspect(struct comparison *c, const char *machine, const char *id)
{
    struct name name = { pw_arena_text(&c->names_arena, pawl_str(machine)),
                         pw_arena_text(&c->names_arena, pawl_str(id)) };
    if (name.machine == NULL || name.id == NULL)
        c->err = PAWL_E_NOMEM;
    else
        c->names[c->names_count++] = name;
}

static void on_head(void *arg, const struct pw_entry *entry)
{
    struct comparison *c = arg;
    uint64_t row = 0;
    if (entry->kind == PW_ENTRY_FENCE || entry->kind == PW_ENTRY_MARK || c->err != PAWL_OK)
        return;
    c->records++;
    if (entry->machine == NULL) {
        say(c, "sequence %llu is on a subject of no entity: %s", (unsigned long long)entry->seq,
            entry->subject);
        return;
    }
    pawl_err err = pw_tables_find(&c->shard->tables, c->txn, entry->machine, entry->id, &row);
    if (err == PAWL_OK && row < c->rows && entry->kind == PW_ENTRY_RECORD)
        c->lsns[row] = entry->lsn;
    else if (err == PAWL_E_NOT_FOUND)
        suspect(c, entry->machine, entry->id); /* others are found by their row, which lacks it */
    else if (err != PAWL_OK)
        c->err = err;
}

static bool on_row(void *arg, pawl_bytes key, pawl_bytes value)
{
    struct comparison *c = arg;
    struct pw_entity entity;
    uint64_t row = key.size == 8 ? pw_get_u64(key.data) : 0;
    if (row >= c->rows || c->names_count == NAMES_MAX || c->err != PAWL_OK)
        return false;
    pw_arena_reset(&c->arena);
    c->next_row = row + 1;
    if (pw_entity_unpack(value, c->shard->tables.machines, &c->arena, &entity) != PAWL_OK)
        return true; /* verify names it */
    if (c->lsns[row] != entity.version)
        suspect(c, entity.machine_name, entity.id);
    return true;
}

static pawl_err read_heads(struct comparison *c)
{
    uint64_t seq = 1;
    bool through = false;
    while (c->err == PAWL_OK && !through && !c->ended) {
        pawl_err err = ops_of(c->shard)->begin(c->shard->tables.store, false, &c->txn);
        if (err != PAWL_OK)
            return err;
        err = c->journal->ops->read(c->journal, seq, true, NAMES_MAX, on_head, c, &seq, &through);
        ops_of(c->shard)->abort(c->txn);
        if (err != PAWL_OK)
            return err;
        look_again(c);
    }
    return c->err;
}

static pawl_err walk_rows(struct comparison *c)
{
    bool through = false;
    while (c->err == PAWL_OK && !through && !c->ended) {
        struct pw_key key = { .size = 0 };
        pw_key_u64(&key, c->next_row);
        pawl_err err = ops_of(c->shard)->begin(c->shard->tables.store, false, &c->txn);
        if (err != PAWL_OK)
            return err;
        err = ops_of(c->shard)->scan(c->txn, PW_ENTITY, pw_key_bytes(&key), on_row, c);
        ops_of(c->shard)->abort(c->txn);
        if (err != PAWL_OK)
            return err;
        through = c->names_count < NAMES_MAX;
        look_again(c);
    }
    return c->err;
}

/* A place for each row that was given out; rows that come later have records of their own. */
static pawl_err make_rows(struct comparison *c)
{
    struct pw_meta meta = { .next_row = 1 };
    struct pw_txn *txn = NULL;
    pawl_err err = ops_of(c->shard)->begin(c->shard->tables.store, false, &txn);
    if (err != PAWL_OK)
        return err;
    err = pw_meta_load(&c->shard->tables, txn, &meta);
    ops_of(c->shard)->abort(txn);
    if (err != PAWL_OK && err != PAWL_E_NOT_FOUND)
        return err;
    c->rows = meta.next_row;
    c->lsns = pw_alloc((size_t)c->rows * sizeof(*c->lsns));
    return c->lsns != NULL ? PAWL_OK : PAWL_E_NOMEM;
}

static pawl_err compare(struct comparison *c, pawl_why *why)
{
    struct pw_journal_state state;
    pawl_err err = make_rows(c);
    if (err == PAWL_OK)
        err = c->journal->ops->look(c->journal, &state, why);
    if (err == PAWL_E_NOT_FOUND) {
        say(c, "%s", why->text);
        return PAWL_OK;
    }
    if (err == PAWL_OK)
        err = read_heads(c);
    if (err == PAWL_OK)
        err = walk_rows(c);
    return err;
}

pawl_err pw_compare(struct pw_shard *shard, struct pw_journal *journal, pw_wrong wrong, void *arg,
                    uint64_t *records, pawl_why *why)
{
    struct comparison *c = pw_alloc(sizeof(*c));
    if (c == NULL)
        return pw_fail(why, PAWL_E_NOMEM, "out of memory");
    *c = (struct comparison){ .shard = shard, .journal = journal, .wrong = wrong, .arg = arg };
    pw_arena_init(&c->arena, (size_t)16 * 1024);
    pw_arena_init(&c->names_arena, (size_t)16 * 1024);
    pawl_err err = compare(c, why);
    if (err != PAWL_OK && why->text[0] == '\0')
        err = pw_fail(why, err, "%s", pawl_err_text(err));
    *records += c->records;
    pw_arena_fini(&c->arena);
    pw_arena_fini(&c->names_arena);
    pw_free(c->lsns);
    pw_free(c);
    return err;
}
