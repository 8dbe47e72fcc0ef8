/* SPDX-License-Identifier: Apache-2.0
 *
 * What every journal promises (src/core/journal.h), run against each kind of them. What a kind
 * cannot play (a NULL hook) is not asked of it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/limits.h"
#include "contract/journal.h"
#include "support/test.h"

#define WAITS_MAX 20000
#define SEEN_MAX 1024
#define FETCH_MS_MAX 30000

/* The kind whose group runs. */
static const struct journal_maker *kind;

struct fixture {
    void *world;
    struct pw_journal *journal;
    struct pw_journal_state state;
    uint64_t opened_seq;
};

/* Repeats what may take time until it is so. */
#define WAIT_UNTIL(fixture, condition)                                                             \
    do {                                                                                           \
        bool is_so_ = (condition);                                                                 \
        for (int waits_ = 0; !is_so_ && waits_ < WAITS_MAX; waits_++) {                            \
            kind->wait((fixture)->world);                                                          \
            is_so_ = (condition);                                                                  \
        }                                                                                          \
        assert_true(is_so_);                                                                       \
    } while (0)

/* --- entries, as they were seen --------------------------------------------------------------- */

struct one {
    struct pw_entry entry; /* its texts are below */
    bool entity;
    char machine[PW_NAME_MAX + 1];
    char id[PW_ID_MAX + 1];
    char record[16];
    size_t record_size;
};

struct seen {
    size_t count;
    struct one list[SEEN_MAX];
};

static void collect(void *arg, const struct pw_entry *entry)
{
    struct seen *seen = arg;
    assert_true(seen->count < SEEN_MAX);
    struct one *one = &seen->list[seen->count++];
    *one = (struct one){ .entry = *entry, .entity = entry->machine != NULL };
    assert_non_null(entry->subject);
    pw_print(one->machine, sizeof(one->machine), "%s", one->entity ? entry->machine : "");
    pw_print(one->id, sizeof(one->id), "%s", one->entity ? entry->id : "");
    one->record_size = entry->record.size;
    size_t kept = one->record_size < 15 ? one->record_size : 15;
    if (kept > 0)
        memcpy(one->record, entry->record.data, kept);
}

static struct seen *seen_new(void)
{
    struct seen *seen = test_calloc(1, sizeof(*seen));
    assert_non_null(seen);
    return seen;
}

/* "a:1 b:2+ _mark:7 ?": id and lsn of records ("+": a tombstone), marks, fences; "?": void. */
static void expect_seen(const struct seen *seen, const char *expected)
{
    char text[1024] = "";
    for (size_t i = 0; i < seen->count; i++) {
        const struct one *one = &seen->list[i];
        size_t used = strlen(text);
        const char *name = one->id;
        if (one->entry.kind == PW_ENTRY_FENCE)
            name = "_fence";
        if (one->entry.kind == PW_ENTRY_MARK)
            name = "_mark";
        if (one->entry.kind == PW_ENTRY_VOID)
            pw_print(text + used, sizeof(text) - used, "%s%s?", used > 0 ? " " : "", one->id);
        else
            pw_print(text + used, sizeof(text) - used, "%s%s:%llu%s", used > 0 ? " " : "", name,
                     (unsigned long long)one->entry.lsn, one->entry.tombstone ? "+" : "");
    }
    assert_string_equal(text, expected);
}

/* --- calls ------------------------------------------------------------------------------------ */

static bool may_pass(pawl_err err)
{
    return err == PAWL_E_BUSY || err == PAWL_E_IO;
}

/* The server may be coming back at this moment. */
static void look(struct fixture *f, struct pw_journal *journal)
{
    pawl_why why = { "" };
    pawl_err err = PAWL_E_BUSY;
    for (int i = 0; i < WAITS_MAX && may_pass(err); i++) {
        err = journal->ops->look(journal, &f->state, &why);
        if (may_pass(err))
            kind->wait(f->world);
    }
    if (err != PAWL_OK)
        fail_msg("look: %s: %s", pawl_err_text(err), why.text);
}

static pawl_err try_open(struct pw_journal *journal, uint64_t applied_seq, uint32_t fence,
                         uint64_t *seq)
{
    struct pw_opening opening = { .applied_seq = applied_seq,
                                  .follows_lsn = 5,
                                  .sent_lsn = 4,
                                  .fence = fence,
                                  .mark = pawl_str("opening") };
    return journal->ops->open(journal, &opening, seq);
}

static void open_at(struct fixture *f, struct pw_journal *journal, uint32_t fence)
{
    look(f, journal);
    assert_int_equal(try_open(journal, f->state.last_seq, fence, &f->opened_seq), PAWL_OK);
    assert_int_equal(f->opened_seq, f->state.last_seq + PW_WINDOW + 2);
}

static pawl_err try_append(struct pw_journal *journal, const char *id, uint64_t lsn)
{
    char text[24] = "";
    pw_print(text, sizeof(text), "%llu", (unsigned long long)lsn);
    struct pw_append append = { .lsn = lsn, .machine = "m", .id = id, .record = pawl_str(text) };
    return journal->ops->append(journal, &append);
}

static void append(struct pw_journal *journal, const char *id, uint64_t lsn)
{
    assert_int_equal(try_append(journal, id, lsn), PAWL_OK);
}

static struct pw_acked acked_of(struct pw_journal *journal)
{
    struct pw_acked acked = { 0 };
    assert_int_equal(journal->ops->acked(journal, &acked), PAWL_OK);
    return acked;
}

static void wait_for_lsn(struct fixture *f, struct pw_journal *journal, uint64_t lsn)
{
    WAIT_UNTIL(f, acked_of(journal).lsn == lsn);
    assert_int_equal(acked_of(journal).waiting, 0);
}

static bool has_failed(struct pw_journal *journal)
{
    struct pw_acked acked = { 0 };
    pawl_err err = journal->ops->acked(journal, &acked);
    if (err != PAWL_OK)
        assert_int_equal(err, PAWL_E_IO);
    return err != PAWL_OK;
}

static struct seen *read_all(struct pw_journal *journal, uint64_t from_seq, bool heads)
{
    struct seen *seen = seen_new();
    bool through = false;
    while (!through)
        assert_int_equal(journal->ops->read(journal, from_seq, heads, SEEN_MAX, collect, seen,
                                            &from_seq, &through),
                         PAWL_OK);
    return seen;
}

static void expect_read(struct pw_journal *journal, uint64_t from_seq, const char *expected)
{
    struct seen *seen = read_all(journal, from_seq, false);
    expect_seen(seen, expected);
    test_free(seen);
}

/* At least so many, within FETCH_MS_MAX: a fetch may wait by itself. */
static struct seen *fetch(struct fixture *f, struct pw_journal *journal, size_t count)
{
    struct pw_clock clock;
    struct seen *seen = seen_new();
    pw_clock_init(&clock);
    uint64_t until_ms = clock.monotonic_ms(&clock) + FETCH_MS_MAX;
    while (seen->count < count && clock.monotonic_ms(&clock) < until_ms) {
        size_t before = seen->count;
        size_t got = journal->ops->fetch(journal, SEEN_MAX - before, collect, seen);
        assert_int_equal(got, seen->count - before);
        if (got == 0)
            kind->wait(f->world);
    }
    return seen;
}

static void expect_fetched(struct fixture *f, struct pw_journal *journal, size_t count,
                           const char *expected)
{
    struct seen *seen = fetch(f, journal, count);
    expect_seen(seen, expected);
    test_free(seen);
}

/* --- look and open ---------------------------------------------------------------------------- */

static void test_look_makes_the_stream(void **state)
{
    struct fixture *f = *state;
    look(f, f->journal);
    uint64_t created = f->state.created;
    assert_true(created != 0);
    assert_int_equal(f->state.last_seq, 0);
    assert_int_equal(f->state.records, 0);
    assert_int_equal(f->state.fence, 0);
    assert_int_equal(f->state.fence_seq, 0);
    look(f, f->journal);
    assert_int_equal(f->state.created, created);
}

static void test_open_leaves_a_fence_and_a_mark(void **state)
{
    struct fixture *f = *state;
    open_at(f, f->journal, 3);
    assert_int_equal(acked_of(f->journal).seq, f->opened_seq);
    assert_int_equal(acked_of(f->journal).lsn, 0);
    look(f, f->journal);
    assert_int_equal(f->state.last_seq, f->opened_seq);
    assert_int_equal(f->state.records, 2);
    assert_int_equal(f->state.fence, 3);
    assert_int_equal(f->state.fence_seq, f->opened_seq - 1);
    struct seen *seen = read_all(f->journal, 1, false);
    expect_seen(seen, "_fence:5 _mark:4");
    assert_string_equal(seen->list[1].record, "opening");
    test_free(seen);
}

static void test_open_is_refused_when_the_stream_went_on(void **state)
{
    struct fixture *f = *state;
    uint64_t seq = 0;
    open_at(f, f->journal, 1);
    append(f->journal, "a", 1);
    wait_for_lsn(f, f->journal, 1);
    look(f, f->journal);
    assert_int_equal(try_open(f->journal, f->opened_seq, 2, &seq), PAWL_E_VERSION);
    open_at(f, f->journal, 2);
    append(f->journal, "a", 2);
    wait_for_lsn(f, f->journal, 2);
}

static struct seen *records_of(const struct seen *all)
{
    struct seen *records = seen_new();
    for (size_t i = 0; i < all->count; i++)
        if (all->list[i].entry.kind == PW_ENTRY_RECORD)
            records->list[records->count++] = all->list[i];
    return records;
}

/* Behind a fence that is refused later ones may fit, and the mark, or they are not sent any more:
 * what of the run is there is not told. */
static void test_a_refused_opening_leaves_the_former(void **state)
{
    struct fixture *f = *state;
    uint64_t seq = 0;
    struct seen *all = seen_new();
    open_at(f, f->journal, 1);
    append(f->journal, "a", 6);
    wait_for_lsn(f, f->journal, 6);
    assert_int_equal(try_open(f->journal, f->opened_seq, 1, &seq), PAWL_E_VERSION);
    look(f, f->journal);
    append(f->journal, "b", 7);
    wait_for_lsn(f, f->journal, 7);
    while (all->count == 0 || all->list[all->count - 1].entry.lsn != 7) {
        struct seen *more = fetch(f, f->journal, 1);
        assert_true(more->count > 0 && all->count + more->count <= SEEN_MAX);
        memcpy(&all->list[all->count], more->list, more->count * sizeof(more->list[0]));
        all->count += more->count;
        test_free(more);
    }
    struct seen *records = records_of(all);
    expect_seen(records, "a:6 b:7");
    test_free(records);
    test_free(all);
}

static void test_an_older_opening_is_refused(void **state)
{
    struct fixture *f = *state;
    if (kind->another == NULL)
        return;
    struct pw_journal *other = kind->another(f->world);
    open_at(f, f->journal, 1);
    append(f->journal, "a", 1);
    wait_for_lsn(f, f->journal, 1);
    open_at(f, other, 2);
    append(f->journal, "a", 2);
    WAIT_UNTIL(f, has_failed(f->journal));
    assert_int_equal(try_append(f->journal, "a", 3), PAWL_E_IO);
    append(other, "b", 4);
    wait_for_lsn(f, other, 4);
    look(f, f->journal);
    assert_int_equal(f->state.fence, 2);
    expect_read(f->journal, 1, "a:1 _fence:5 _mark:4 b:4");
}

/* --- appends ---------------------------------------------------------------------------------- */

static void test_appends_are_acknowledged_in_order(void **state)
{
    struct fixture *f = *state;
    open_at(f, f->journal, 1);
    for (uint64_t lsn = 1; lsn <= 100; lsn++)
        append(f->journal, lsn % 2 == 0 ? "even" : "odd", lsn * 10);
    uint64_t before = 0;
    struct pw_acked acked = { 0 };
    for (int i = 0; acked.lsn != 1000 && i < WAITS_MAX; i++) {
        acked = acked_of(f->journal);
        assert_true(acked.lsn >= before);
        assert_int_equal(acked.seq, f->opened_seq + acked.lsn / 10);
        assert_int_equal(acked.waiting, 100 - acked.lsn / 10);
        before = acked.lsn;
        kind->wait(f->world);
    }
    assert_int_equal(acked.lsn, 1000);
    look(f, f->journal);
    assert_int_equal(f->state.last_seq, f->opened_seq + 100);
    assert_int_equal(f->state.records, 4);
}

static void test_the_newest_of_an_entity_stays(void **state)
{
    struct fixture *f = *state;
    open_at(f, f->journal, 1);
    append(f->journal, "a", 1);
    append(f->journal, "b", 2);
    append(f->journal, "c", 3);
    append(f->journal, "a", 4);
    wait_for_lsn(f, f->journal, 4);
    look(f, f->journal);
    expect_read(f->journal, f->opened_seq + 1, "b:2 c:3 a:4");
}

static void test_a_foreign_record_stops_appends_until_a_look(void **state)
{
    struct fixture *f = *state;
    if (kind->foreign == NULL)
        return;
    open_at(f, f->journal, 1);
    append(f->journal, "a", 1);
    append(f->journal, "b", 2);
    wait_for_lsn(f, f->journal, 2);
    kind->foreign(f->world, "m", "x");
    append(f->journal, "c", 3);
    WAIT_UNTIL(f, has_failed(f->journal));
    struct pw_acked acked = { 0 };
    assert_int_equal(f->journal->ops->acked(f->journal, &acked), PAWL_E_IO);
    assert_int_equal(acked.lsn, 2);
    assert_int_equal(acked.seq, f->opened_seq + 2);
    assert_int_equal(try_append(f->journal, "c", 3), PAWL_E_IO);
    look(f, f->journal);
    assert_int_equal(f->state.last_seq, f->opened_seq + 3);
    append(f->journal, "c", 3);
    append(f->journal, "d", 4);
    wait_for_lsn(f, f->journal, 4);
    look(f, f->journal);
    expect_read(f->journal, f->opened_seq + 1, "a:1 b:2 x? c:3 d:4");
}

static void append_until_refused(struct fixture *f)
{
    for (uint64_t lsn = 1; lsn <= 20; lsn++)
        if (try_append(f->journal, "a", lsn) != PAWL_OK)
            break; /* it may be known already */
    WAIT_UNTIL(f, has_failed(f->journal));
}

static void test_records_are_appended_again_after_a_refusal(void **state)
{
    struct fixture *f = *state;
    if (kind->foreign == NULL)
        return;
    open_at(f, f->journal, 1);
    for (int round = 0; round < 3; round++) {
        kind->foreign(f->world, "m", "x");
        append_until_refused(f);
        struct pw_acked acked = { 0 };
        assert_int_equal(f->journal->ops->acked(f->journal, &acked), PAWL_E_IO);
        assert_int_equal(acked.lsn, 0); /* though the later ones may have fitted */
        look(f, f->journal);
    }
    append(f->journal, "a", 1);
    append(f->journal, "b", 2);
    wait_for_lsn(f, f->journal, 2);
    look(f, f->journal);
    expect_read(f->journal, f->opened_seq + 1, "x? a:1 b:2");
}

static void test_a_full_window_is_busy(void **state)
{
    struct fixture *f = *state;
    if (kind->freeze == NULL)
        return;
    open_at(f, f->journal, 1);
    kind->freeze(f->world, true);
    for (uint64_t lsn = 1; lsn <= PW_WINDOW; lsn++)
        append(f->journal, "a", lsn);
    assert_int_equal(try_append(f->journal, "a", PW_WINDOW + 1), PAWL_E_BUSY);
    assert_int_equal(f->journal->ops->mark(f->journal, 1, pawl_str("")), PAWL_E_BUSY);
    assert_int_equal(acked_of(f->journal).waiting, PW_WINDOW);
    kind->freeze(f->world, false);
    wait_for_lsn(f, f->journal, PW_WINDOW);
    append(f->journal, "a", PW_WINDOW + 1);
    wait_for_lsn(f, f->journal, PW_WINDOW + 1);
}

static void test_a_look_waits_for_what_is_under_way(void **state)
{
    struct fixture *f = *state;
    pawl_why why = { "" };
    if (kind->freeze == NULL)
        return;
    open_at(f, f->journal, 1);
    kind->freeze(f->world, true);
    append(f->journal, "a", 1);
    assert_int_equal(f->journal->ops->look(f->journal, &f->state, &why), PAWL_E_BUSY);
    kind->freeze(f->world, false);
    look(f, f->journal);
    assert_int_equal(f->state.last_seq, f->opened_seq + 1);
}

static void test_marks(void **state)
{
    struct fixture *f = *state;
    open_at(f, f->journal, 1);
    append(f->journal, "a", 8);
    assert_int_equal(f->journal->ops->mark(f->journal, 7, pawl_str("seven")), PAWL_OK);
    append(f->journal, "b", 9);
    assert_int_equal(f->journal->ops->mark(f->journal, 9, pawl_str("nine")), PAWL_OK);
    WAIT_UNTIL(f, acked_of(f->journal).waiting == 0);
    assert_int_equal(acked_of(f->journal).lsn, 9);
    assert_int_equal(acked_of(f->journal).seq, f->opened_seq + 4);
    look(f, f->journal);
    struct seen *seen = read_all(f->journal, 1, false);
    expect_seen(seen, "_fence:5 a:8 b:9 _mark:9");
    assert_string_equal(seen->list[3].record, "nine");
    test_free(seen);
}

static void test_tombstones(void **state)
{
    struct fixture *f = *state;
    struct pw_append tombstone = { .lsn = 2, .machine = "m", .id = "a", .tombstone = true };
    open_at(f, f->journal, 1);
    append(f->journal, "a", 1);
    assert_int_equal(f->journal->ops->append(f->journal, &tombstone), PAWL_OK);
    append(f->journal, "b", 3);
    wait_for_lsn(f, f->journal, 3);
    look(f, f->journal);
    expect_read(f->journal, f->opened_seq + 1, "a:2+ b:3");
    expect_fetched(f, f->journal, 2, "a:2+ b:3");
}

static void test_tasks_and_traces(void **state)
{
    struct fixture *f = *state;
    struct pw_append task = {
        .lsn = 1,
        .epoch = 12,
        .machine = "m",
        .id = "a",
        .trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        .task = true,
        .record = pawl_str("task"),
    };
    open_at(f, f->journal, 1);
    assert_int_equal(f->journal->ops->append(f->journal, &task), PAWL_OK);
    wait_for_lsn(f, f->journal, 1);
    struct seen *seen = fetch(f, f->journal, 1);
    expect_seen(seen, "a:1");
    assert_string_equal(seen->list[0].record, "task");
    assert_string_equal(seen->list[0].machine, "m");
    test_free(seen);
}

/* --- reading ---------------------------------------------------------------------------------- */

static void test_read_goes_on_where_it_ended(void **state)
{
    struct fixture *f = *state;
    char id[16] = "";
    open_at(f, f->journal, 1);
    for (uint64_t lsn = 1; lsn <= 20; lsn++) {
        pw_print(id, sizeof(id), "e%02llu", (unsigned long long)lsn);
        append(f->journal, id, lsn);
    }
    wait_for_lsn(f, f->journal, 20);
    look(f, f->journal);
    struct seen *seen = seen_new();
    uint64_t next = f->opened_seq + 11;
    bool through = false;
    for (int i = 0; i < 3; i++) {
        assert_false(through);
        assert_int_equal(
            f->journal->ops->read(f->journal, next, false, 3, collect, seen, &next, &through),
            PAWL_OK);
    }
    assert_int_equal(seen->count, 9);
    assert_int_equal(next, f->opened_seq + 20);
    assert_int_equal(
        f->journal->ops->read(f->journal, next, false, 3, collect, seen, &next, &through), PAWL_OK);
    assert_true(through);
    assert_int_equal(next, f->opened_seq + 21);
    expect_seen(seen, "e11:11 e12:12 e13:13 e14:14 e15:15 e16:16 e17:17 e18:18 e19:19 e20:20");
    for (size_t i = 0; i < seen->count; i++)
        assert_int_equal(seen->list[i].entry.seq, f->opened_seq + 11 + i);
    assert_int_equal(
        f->journal->ops->read(f->journal, next, false, 3, collect, seen, &next, &through), PAWL_OK);
    assert_true(through);
    assert_int_equal(seen->count, 10);
    test_free(seen);
}

static void test_read_ends_at_the_last_look(void **state)
{
    struct fixture *f = *state;
    open_at(f, f->journal, 1);
    append(f->journal, "a", 1);
    wait_for_lsn(f, f->journal, 1);
    look(f, f->journal);
    append(f->journal, "b", 2);
    wait_for_lsn(f, f->journal, 2);
    expect_read(f->journal, 1, "_fence:5 _mark:4 a:1");
    look(f, f->journal);
    expect_read(f->journal, f->opened_seq + 1, "a:1 b:2");
}

static void test_read_of_heads(void **state)
{
    struct fixture *f = *state;
    open_at(f, f->journal, 1);
    append(f->journal, "a", 1);
    append(f->journal, "b", 2);
    wait_for_lsn(f, f->journal, 2);
    look(f, f->journal);
    struct seen *seen = read_all(f->journal, 1, true);
    expect_seen(seen, "_fence:5 _mark:4 a:1 b:2");
    for (size_t i = 0; i < seen->count; i++)
        assert_int_equal(seen->list[i].record_size, 0);
    test_free(seen);
}

static void test_read_of_what_is_gone(void **state)
{
    struct fixture *f = *state;
    uint64_t next = 0;
    bool through = false;
    struct seen *seen = seen_new();
    open_at(f, f->journal, 1);
    append(f->journal, "a", 1);
    append(f->journal, "b", 2);
    wait_for_lsn(f, f->journal, 2);
    assert_int_equal(f->journal->ops->remove(f->journal, f->opened_seq + 2), PAWL_OK);
    look(f, f->journal);
    assert_int_equal(f->state.last_seq, f->opened_seq + 2);
    assert_int_equal(f->journal->ops->read(f->journal, f->opened_seq + 1, false, 1, collect, seen,
                                           &next, &through),
                     PAWL_OK);
    expect_seen(seen, "a:1");
    if (!through) {
        assert_int_equal(
            f->journal->ops->read(f->journal, next, false, 1, collect, seen, &next, &through),
            PAWL_OK);
        assert_int_equal(seen->count, 1);
    }
    assert_true(through);
    assert_int_equal(next, f->opened_seq + 3); /* behind all that ever was */
    test_free(seen);
}

static void append_when_there_is_room(struct fixture *f, const char *id, uint64_t lsn)
{
    WAIT_UNTIL(f, acked_of(f->journal).waiting < PW_WINDOW);
    append(f->journal, id, lsn);
}

static void test_read_of_many(void **state)
{
    struct fixture *f = *state;
    char id[16] = "";
    open_at(f, f->journal, 1);
    for (uint64_t lsn = 1; lsn <= 900; lsn++) {
        pw_print(id, sizeof(id), "%llu", (unsigned long long)lsn);
        append_when_there_is_room(f, id, lsn);
    }
    wait_for_lsn(f, f->journal, 900);
    look(f, f->journal);
    struct seen *seen = read_all(f->journal, f->opened_seq + 1, false);
    assert_int_equal(seen->count, 900);
    for (size_t i = 0; i < seen->count; i++)
        assert_int_equal(seen->list[i].entry.lsn, i + 1);
    test_free(seen);
    seen = fetch(f, f->journal, 900);
    assert_int_equal(seen->count, 900);
    for (size_t i = 0; i < seen->count; i++)
        assert_int_equal(seen->list[i].entry.lsn, i + 1);
    test_free(seen);
}

static void test_last_and_remove(void **state)
{
    struct fixture *f = *state;
    struct seen *seen = seen_new();
    const struct pw_journal_ops *ops = f->journal->ops;
    open_at(f, f->journal, 1);
    assert_int_equal(ops->last(f->journal, "m", "a", collect, seen), PAWL_E_NOT_FOUND);
    append(f->journal, "a", 1);
    append(f->journal, "b", 2);
    append(f->journal, "a", 3);
    wait_for_lsn(f, f->journal, 3);
    assert_int_equal(ops->last(f->journal, "m", "a", collect, seen), PAWL_OK);
    expect_seen(seen, "a:3");
    assert_int_equal(seen->list[0].entry.seq, f->opened_seq + 3);
    assert_true(seen->list[0].entry.stored_ms > 0);
    assert_string_equal(seen->list[0].record, "3");
    assert_int_equal(ops->remove(f->journal, f->opened_seq + 3), PAWL_OK);
    assert_int_equal(ops->remove(f->journal, f->opened_seq + 3), PAWL_OK);
    assert_int_equal(ops->remove(f->journal, f->opened_seq + 1), PAWL_OK);
    assert_int_equal(ops->remove(f->journal, f->opened_seq + 1000), PAWL_OK);
    assert_int_equal(ops->last(f->journal, "m", "a", collect, seen), PAWL_E_NOT_FOUND);
    assert_int_equal(seen->count, 1);
    append(f->journal, "c", 4); /* removing changed no sequence */
    wait_for_lsn(f, f->journal, 4);
    look(f, f->journal);
    expect_read(f->journal, f->opened_seq + 1, "b:2 c:4");
    test_free(seen);
}

static void test_the_servers_clock_is_told(void **state)
{
    struct fixture *f = *state;
    open_at(f, f->journal, 1);
    append(f->journal, "a", 1);
    wait_for_lsn(f, f->journal, 1);
    append(f->journal, "b", 2);
    wait_for_lsn(f, f->journal, 2);
    look(f, f->journal);
    struct seen *read = read_all(f->journal, f->opened_seq + 1, false);
    struct seen *last = seen_new();
    struct seen *fetched = fetch(f, f->journal, 2);
    assert_int_equal(f->journal->ops->last(f->journal, "m", "b", collect, last), PAWL_OK);
    assert_true(read->list[0].entry.stored_ms <= read->list[1].entry.stored_ms);
    assert_int_equal(read->list[1].entry.stored_ms, last->list[0].entry.stored_ms);
    assert_int_equal(read->list[1].entry.stored_ms, fetched->list[1].entry.stored_ms);
    test_free(read);
    test_free(last);
    test_free(fetched);
}

/* --- names and sizes -------------------------------------------------------------------------- */

static const char *const ids[] = {
    "plain-1_2:3@x+y/z",
    "with space",
    "dots.and.stars.*.>",
    "=3D=",
    "\"quoted\" \\ {json}",
    "\xc3\x9cmlaut \xe2\x82\xac",
    "a",
    ("0123456789.123456789.123456789.123456789.123456789.123456789.123456789."
     "123456789.123456789.123456789.123456789.123456789.1234567"), /* the longest */
};

static void test_ids_come_back_as_they_were(void **state)
{
    struct fixture *f = *state;
    open_at(f, f->journal, 1);
    for (size_t i = 0; i < PW_COUNT(ids); i++)
        append(f->journal, ids[i], i + 1);
    assert_int_equal(strlen(ids[PW_COUNT(ids) - 1]), PW_ID_MAX);
    wait_for_lsn(f, f->journal, PW_COUNT(ids));
    look(f, f->journal);
    struct seen *read = read_all(f->journal, f->opened_seq + 1, false);
    struct seen *fetched = fetch(f, f->journal, PW_COUNT(ids));
    struct seen *last = seen_new();
    for (size_t i = 0; i < PW_COUNT(ids); i++) {
        assert_string_equal(read->list[i].id, ids[i]);
        assert_string_equal(fetched->list[i].id, ids[i]);
        assert_int_equal(f->journal->ops->last(f->journal, "m", ids[i], collect, last), PAWL_OK);
        assert_string_equal(last->list[i].id, ids[i]);
        assert_int_equal(last->list[i].entry.lsn, i + 1);
    }
    test_free(read);
    test_free(fetched);
    test_free(last);
}

struct expected_bytes {
    pawl_bytes bytes;
    size_t equal;
};

static void compare_bytes(void *arg, const struct pw_entry *entry)
{
    struct expected_bytes *expected = arg;
    expected->equal += pw_bytes_equal(entry->record, expected->bytes) ? 1 : 0;
}

static void test_records_of_the_largest_size(void **state)
{
    struct fixture *f = *state;
    static uint8_t bytes[PW_RECORD_MAX];
    struct expected_bytes expected = { { bytes, sizeof(bytes) }, 0 };
    struct pw_append large = { .machine = "m", .record = expected.bytes };
    char id[8] = "";
    const struct pw_journal_ops *ops = f->journal->ops;
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)(i * 31 + i / 251);
    open_at(f, f->journal, 1);
    for (large.lsn = 1; large.lsn <= 40; large.lsn++) {
        pw_print(id, sizeof(id), "%llu", (unsigned long long)large.lsn);
        large.id = id;
        assert_int_equal(ops->append(f->journal, &large), PAWL_OK);
    }
    wait_for_lsn(f, f->journal, 40);
    look(f, f->journal);
    uint64_t next = f->opened_seq + 1;
    bool through = false;
    while (!through)
        assert_int_equal(
            ops->read(f->journal, next, false, 256, compare_bytes, &expected, &next, &through),
            PAWL_OK);
    assert_int_equal(expected.equal, 40);
    assert_int_equal(ops->last(f->journal, "m", "7", compare_bytes, &expected), PAWL_OK);
    assert_int_equal(expected.equal, 41);
    for (int i = 0; expected.equal < 81 && i < WAITS_MAX; i++)
        if (ops->fetch(f->journal, 256, compare_bytes, &expected) == 0)
            kind->wait(f->world);
    assert_int_equal(expected.equal, 81);
}

/* --- foreign entries -------------------------------------------------------------------------- */

static void test_foreign_entries_are_void(void **state)
{
    struct fixture *f = *state;
    if (kind->foreign == NULL || kind->foreign_subject == NULL)
        return;
    open_at(f, f->journal, 1);
    kind->foreign(f->world, "m", "an id");
    kind->foreign_subject(f->world, "_mark");
    kind->foreign_subject(f->world, "stray");
    look(f, f->journal);
    struct seen *seen = read_all(f->journal, f->opened_seq - 1, false);
    expect_seen(seen, "_fence:5 an id? ? ?");
    assert_string_equal(seen->list[1].machine, "m");
    assert_false(seen->list[2].entity);
    assert_false(seen->list[3].entity);
    assert_int_equal(seen->list[1].entry.lsn, 0);
    test_free(seen);
    expect_fetched(f, f->journal, 3, "an id? ? ?");
}

/* --- what comes back -------------------------------------------------------------------------- */

static void test_fetch_begins_behind_the_opening(void **state)
{
    struct fixture *f = *state;
    struct seen *none = seen_new();
    assert_int_equal(f->journal->ops->fetch(f->journal, 10, collect, none), 0);
    open_at(f, f->journal, 1);
    append(f->journal, "a", 1);
    wait_for_lsn(f, f->journal, 1);
    open_at(f, f->journal, 2);
    append(f->journal, "b", 2);
    append(f->journal, "c", 3);
    wait_for_lsn(f, f->journal, 3);
    expect_fetched(f, f->journal, 2, "b:2 c:3");
    assert_int_equal(f->journal->ops->fetch(f->journal, 10, collect, none), 0);
    append(f->journal, "d", 4);
    wait_for_lsn(f, f->journal, 4);
    expect_fetched(f, f->journal, 1, "d:4");
    open_at(f, f->journal, 2); /* the same again */
    append(f->journal, "e", 5);
    wait_for_lsn(f, f->journal, 5);
    expect_fetched(f, f->journal, 1, "e:5");
    test_free(none);
}

static void test_fetch_hands_over_no_more_than_wanted(void **state)
{
    struct fixture *f = *state;
    struct seen *seen = seen_new();
    char id[16] = "";
    open_at(f, f->journal, 1);
    for (uint64_t lsn = 1; lsn <= 10; lsn++) {
        pw_print(id, sizeof(id), "%llu", (unsigned long long)lsn);
        append(f->journal, id, lsn);
    }
    wait_for_lsn(f, f->journal, 10);
    for (int i = 0; seen->count < 10 && i < WAITS_MAX; i++) {
        size_t got = f->journal->ops->fetch(f->journal, 3, collect, seen);
        assert_true(got <= 3);
        if (got == 0)
            kind->wait(f->world);
    }
    expect_seen(seen, "1:1 2:2 3:3 4:4 5:5 6:6 7:7 8:8 9:9 10:10");
    test_free(seen);
}

/* --- what befalls a stream -------------------------------------------------------------------- */

static void test_a_purged_stream_keeps_its_sequence(void **state)
{
    struct fixture *f = *state;
    if (kind->purge == NULL)
        return;
    open_at(f, f->journal, 1);
    append(f->journal, "a", 1);
    wait_for_lsn(f, f->journal, 1);
    uint64_t created = f->state.created;
    kind->purge(f->world);
    look(f, f->journal);
    assert_int_equal(f->state.last_seq, f->opened_seq + 1);
    assert_int_equal(f->state.records, 0);
    assert_int_equal(f->state.fence_seq, 0);
    assert_int_equal(f->state.created, created);
    expect_read(f->journal, 1, "");
    append(f->journal, "b", 2);
    wait_for_lsn(f, f->journal, 2);
    look(f, f->journal);
    expect_read(f->journal, 1, "b:2");
}

static void test_a_stream_made_anew_is_another_one(void **state)
{
    struct fixture *f = *state;
    if (kind->recreate == NULL)
        return;
    open_at(f, f->journal, 1);
    append(f->journal, "a", 1);
    wait_for_lsn(f, f->journal, 1);
    uint64_t created = f->state.created;
    expect_fetched(f, f->journal, 1, "a:1");
    kind->recreate(f->world);
    look(f, f->journal);
    assert_true(f->state.created != created);
    assert_int_equal(f->state.last_seq, 0);
    open_at(f, f->journal, 2);
    append(f->journal, "b", 2);
    wait_for_lsn(f, f->journal, 2);
    expect_fetched(f, f->journal, 1, "b:2");
}

static void test_a_stream_that_lost_its_end(void **state)
{
    struct fixture *f = *state;
    if (kind->save == NULL)
        return;
    open_at(f, f->journal, 1);
    append(f->journal, "a", 1);
    wait_for_lsn(f, f->journal, 1);
    uint64_t created = f->state.created;
    uint64_t kept = f->opened_seq + 1;
    kind->save(f->world);
    look(f, f->journal);
    append(f->journal, "a", 2);
    append(f->journal, "b", 3);
    wait_for_lsn(f, f->journal, 3);
    kind->roll_back(f->world);
    look(f, f->journal);
    assert_int_equal(f->state.last_seq, kept);
    assert_int_equal(f->state.created, created);
    open_at(f, f->journal, 2);
    append(f->journal, "b", 4);
    wait_for_lsn(f, f->journal, 4);
    expect_fetched(f, f->journal, 1, "b:4");
    look(f, f->journal);
    expect_read(f->journal, kept, "a:1 _fence:5 _mark:4 b:4");
}

/* --- posts ------------------------------------------------------------------------------------ */

static pawl_err post_one(struct pw_journal *journal, enum pw_post_kind what, const char *id,
                         uint32_t n)
{
    struct pw_post post = {
        .kind = what,
        .n = n,
        .lsn = 7,
        .epoch = 2,
        .machine = "m",
        .id = id,
        .name = "happened",
        .why = "no way\r\nForged: header",
        .data = pawl_str("data"),
    };
    return journal->ops->post(journal, &post);
}

static size_t posts_waiting(struct pw_journal *journal)
{
    size_t waiting = 0;
    assert_int_equal(journal->ops->posted(journal, &waiting), PAWL_OK);
    return waiting;
}

static void post(struct fixture *f, enum pw_post_kind what, const char *id, uint32_t n)
{
    pawl_err err = PAWL_E_BUSY;
    WAIT_UNTIL(f, (err = post_one(f->journal, what, id, n)) != PAWL_E_BUSY);
    assert_int_equal(err, PAWL_OK);
}

static void test_posts(void **state)
{
    struct fixture *f = *state;
    open_at(f, f->journal, 1);
    for (uint32_t n = 1; n <= 20; n++)
        post(f, PW_POST_EVENT, "an id", n);
    WAIT_UNTIL(f, posts_waiting(f->journal) == 0);
    assert_int_equal(kind->events(f->world), 20);
    assert_int_equal(kind->letters(f->world), 0);
}

/* n 0: of the parked entity; else of the effect n. A repeat replaces itself. */
static void test_letters(void **state)
{
    struct fixture *f = *state;
    open_at(f, f->journal, 1);
    post(f, PW_POST_LETTER, "a.b c", 0);
    post(f, PW_POST_LETTER, "a.b c", 0);
    post(f, PW_POST_LETTER, "other", 0);
    WAIT_UNTIL(f, posts_waiting(f->journal) == 0);
    assert_int_equal(kind->letters(f->world), 2);
    post(f, PW_POST_NO_LETTER, "a.b c", 0);
    WAIT_UNTIL(f, posts_waiting(f->journal) == 0);
    assert_int_equal(kind->letters(f->world), 1);
    post(f, PW_POST_NO_LETTER, "a.b c", 0); /* none is there */
    post(f, PW_POST_LETTER, "third", 0);
    post(f, PW_POST_NO_LETTER, "third", 0); /* behind one that is under way */
    WAIT_UNTIL(f, posts_waiting(f->journal) == 0);
    assert_int_equal(kind->letters(f->world), 1);
}

/* --- the end ---------------------------------------------------------------------------------- */

static void test_after_halt_nothing_begins(void **state)
{
    struct fixture *f = *state;
    const struct pw_journal_ops *ops = f->journal->ops;
    struct seen *seen = seen_new();
    uint64_t seq = 0;
    bool through = false;
    open_at(f, f->journal, 1);
    ops->halt(f->journal);
    ops->halt(f->journal);
    assert_int_equal(ops->look(f->journal, &f->state, NULL), PAWL_E_IO);
    assert_int_equal(ops->read(f->journal, 1, false, 1, collect, seen, &seq, &through), PAWL_E_IO);
    assert_int_equal(try_open(f->journal, f->opened_seq, 2, &seq), PAWL_E_IO);
    assert_int_equal(try_append(f->journal, "a", 1), PAWL_E_IO);
    assert_int_equal(ops->last(f->journal, "m", "a", collect, seen), PAWL_E_IO);
    assert_int_equal(ops->remove(f->journal, 1), PAWL_E_IO);
    assert_int_equal(post_one(f->journal, PW_POST_EVENT, "a", 1), PAWL_E_IO);
    assert_int_equal(ops->fetch(f->journal, 1, collect, seen), 0);
    assert_int_equal(seen->count, 0);
    test_free(seen);
}

/* --- the list --------------------------------------------------------------------------------- */

static int begin(void **state)
{
    struct fixture *f = test_calloc(1, sizeof(*f));
    f->world = kind->make(&f->journal);
    *state = f;
    return f->world == NULL ? -1 : 0;
}

static int end(void **state)
{
    struct fixture *f = *state;
    kind->free(f->world);
    test_free(f);
    return 0;
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, begin, end)

static const struct CMUnitTest tests[] = {
    CASE(test_look_makes_the_stream),
    CASE(test_open_leaves_a_fence_and_a_mark),
    CASE(test_open_is_refused_when_the_stream_went_on),
    CASE(test_a_refused_opening_leaves_the_former),
    CASE(test_an_older_opening_is_refused),
    CASE(test_appends_are_acknowledged_in_order),
    CASE(test_the_newest_of_an_entity_stays),
    CASE(test_a_foreign_record_stops_appends_until_a_look),
    CASE(test_records_are_appended_again_after_a_refusal),
    CASE(test_a_full_window_is_busy),
    CASE(test_a_look_waits_for_what_is_under_way),
    CASE(test_marks),
    CASE(test_tombstones),
    CASE(test_tasks_and_traces),
    CASE(test_read_goes_on_where_it_ended),
    CASE(test_read_ends_at_the_last_look),
    CASE(test_read_of_heads),
    CASE(test_read_of_what_is_gone),
    CASE(test_read_of_many),
    CASE(test_last_and_remove),
    CASE(test_the_servers_clock_is_told),
    CASE(test_ids_come_back_as_they_were),
    CASE(test_records_of_the_largest_size),
    CASE(test_foreign_entries_are_void),
    CASE(test_fetch_begins_behind_the_opening),
    CASE(test_fetch_hands_over_no_more_than_wanted),
    CASE(test_a_purged_stream_keeps_its_sequence),
    CASE(test_a_stream_made_anew_is_another_one),
    CASE(test_a_stream_that_lost_its_end),
    CASE(test_posts),
    CASE(test_letters),
    CASE(test_after_halt_nothing_begins),
};

static int end_kind(void **state)
{
    if (kind->end != NULL)
        kind->end();
    return leaks_end(state);
}

int main(void)
{
    int failed = 0;
    for (size_t i = 0; journal_makers[i] != NULL; i++) {
        kind = journal_makers[i];
        failed +=
            _cmocka_run_group_tests(kind->name, tests, PW_COUNT(tests), leaks_begin, end_kind);
    }
    return failed;
}
