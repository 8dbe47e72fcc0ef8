/* SPDX-License-Identifier: Apache-2.0
 *
 * What the journal in memory plays beyond the port's promises (contract/journal.c): time, loss,
 * owners that died with appends under way, and what befalls a server. */
#include "base/base.h"
#include "base/limits.h"
#include "sim/journal.h"
#include "support/test.h"

#define LINES_SIZE 8192

struct fixture {
    struct pw_clock clock; /* first: found again from it */
    uint64_t now_ms;
    struct pw_journal *journal;
    const struct pw_journal_ops *ops;
    struct pw_journal_state state; /* as last looked at */
    uint32_t fence;
    unsigned pokes;
    uint64_t dies_at; /* of operations; 0: never */
    uint64_t operations;
};

/* --- helpers ------------------------------------------------------------------------------ */

static uint64_t clock_ms(struct pw_clock *clock)
{
    return ((struct fixture *)clock)->now_ms;
}

static void on_poke(void *arg)
{
    ((struct fixture *)arg)->pokes++;
}

static bool on_tick(void *arg)
{
    struct fixture *f = arg;
    f->operations++;
    return f->dies_at == 0 || f->operations < f->dies_at;
}

static void connect(struct fixture *f)
{
    f->journal->poke = on_poke;
    f->journal->poke_arg = f;
}

static void begin(struct fixture *f, uint64_t seed)
{
    *f = (struct fixture){ .clock = { clock_ms, clock_ms } };
    assert_int_equal(pw_sim_journal_open(&f->journal, &f->clock, seed), PAWL_OK);
    f->ops = f->journal->ops;
    pw_sim_journal_on_operation(f->journal, on_tick, f);
    connect(f);
}

static void end(struct fixture *f)
{
    f->ops->halt(f->journal);
    f->ops->close(f->journal);
    pw_sim_journal_free(f->journal);
}

/* More than anything is under way. */
static void pass(struct fixture *f)
{
    for (unsigned i = 0; i < 200; i++, f->now_ms++)
        (void)pw_sim_journal_next_ms(f->journal);
}

static pawl_err look(struct fixture *f)
{
    return f->ops->look(f->journal, &f->state, NULL);
}

/* As the engine: until it is not refused any more. Returns how often it was. */
static unsigned own(struct fixture *f)
{
    unsigned refused = 0;
    uint64_t seq = 0;
    pawl_err err = PAWL_E_VERSION;
    while (err != PAWL_OK) {
        assert_in_range(refused, 0, 1000);
        if (look(f) != PAWL_OK) {
            f->now_ms++;
            continue;
        }
        const struct pw_opening opening = { .applied_seq = f->state.last_seq,
                                            .fence = f->state.fence + 1,
                                            .mark = pawl_str("m") };
        err = f->ops->open(f->journal, &opening, &seq);
        refused += err == PAWL_E_VERSION ? 1 : 0;
        f->fence = opening.fence;
    }
    return refused;
}

static pawl_err append(struct fixture *f, const char *id, uint64_t lsn)
{
    char text[32] = "";
    pw_print(text, sizeof(text), "%s%llu", id, (unsigned long long)lsn);
    const struct pw_append one = {
        .lsn = lsn, .machine = "order", .id = id, .record = pawl_str(text)
    };
    return f->ops->append(f->journal, &one);
}

static void append_all(struct fixture *f, const char *id, uint64_t lsn)
{
    assert_int_equal(append(f, id, lsn), PAWL_OK);
}

static void expect_acked(struct fixture *f, pawl_err err, uint64_t lsn, size_t waiting)
{
    struct pw_acked acked = { .lsn = UINT64_MAX };
    assert_int_equal(f->ops->acked(f->journal, &acked), err);
    assert_int_equal(acked.lsn, lsn);
    assert_int_equal(acked.waiting, waiting);
}

static const char *kind_name(const struct pw_entry *entry)
{
    static const char *const names[] = {
        [PW_ENTRY_RECORD] = "", [PW_ENTRY_FENCE] = "F", [PW_ENTRY_MARK] = "M", [PW_ENTRY_VOID] = "V"
    };
    return names[entry->kind];
}

/* "1:a1 " for a record of lsn 1 of entity a; what is no record begins with its kind. */
static void collect(void *arg, const struct pw_entry *entry)
{
    char *lines = arg;
    size_t used = strlen(lines);
    pw_print(lines + used, LINES_SIZE - used, "%s%llu:%.*s ", kind_name(entry),
             (unsigned long long)entry->lsn, (int)entry->record.size,
             (const char *)entry->record.data);
}

static void expect_fetch(struct fixture *f, const char *expected)
{
    char lines[LINES_SIZE] = "";
    while (f->ops->fetch(f->journal, 3, collect, lines) > 0) {
    }
    assert_string_equal(lines, expected);
}

static void expect_stream(struct fixture *f, const char *expected)
{
    char lines[LINES_SIZE] = "";
    pw_sim_journal_each(f->journal, collect, lines);
    assert_string_equal(lines, expected);
}

/* --- the stream --------------------------------------------------------------------------- */

static void the_newest_of_a_subject_stays(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, 1);
    assert_int_equal(own(&f), 0);
    assert_int_equal(pw_sim_journal_last_seq(f.journal), PW_WINDOW + 2);
    append_all(&f, "a", 1);
    append_all(&f, "b", 2);
    append_all(&f, "a", 3);
    expect_acked(&f, PAWL_OK, 0, 3);
    assert_int_equal(look(&f), PAWL_E_BUSY);
    f.pokes = 0;
    pass(&f);
    assert_true(f.pokes > 0);
    expect_acked(&f, PAWL_OK, 3, 0);
    expect_stream(&f, "F0: M0:m 2:b2 3:a3 ");
    assert_int_equal(pw_sim_journal_last_seq(f.journal), PW_WINDOW + 5);
    assert_int_equal(pw_sim_journal_records(f.journal), 4);
    assert_int_equal(pw_sim_journal_present(f.journal, "order", "a")->lsn, 3);
    assert_null(pw_sim_journal_present(f.journal, "order", "c"));
    expect_fetch(&f, "2:b2 3:a3 ");
    expect_fetch(&f, "");
    end(&f);
}

static void it_is_read_in_pieces(void **state)
{
    (void)state;
    struct fixture f;
    char lines[LINES_SIZE] = "";
    uint64_t next_seq = 1;
    bool through = false;
    begin(&f, 1);
    (void)own(&f);
    for (uint64_t lsn = 1; lsn <= 5; lsn++)
        append_all(&f, lsn % 2 != 0 ? "a" : "b", lsn);
    pass(&f);
    assert_int_equal(look(&f), PAWL_OK);
    assert_int_equal(
        f.ops->read(f.journal, next_seq, false, 3, collect, lines, &next_seq, &through), PAWL_OK);
    assert_string_equal(lines, "F0: M0:m 4:b4 ");
    assert_false(through);
    assert_int_equal(f.ops->read(f.journal, next_seq, true, 3, collect, lines, &next_seq, &through),
                     PAWL_OK);
    assert_string_equal(lines, "F0: M0:m 4:b4 5: ");
    assert_true(through);
    assert_int_equal(next_seq, f.state.last_seq + 1);
    end(&f);
}

static void a_foreign_message_moves_the_sequence(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, 3);
    (void)own(&f);
    append_all(&f, "a", 1);
    pass(&f);
    assert_int_equal(pw_sim_journal_foreign(f.journal, "order", "a", pawl_str("x")), PAWL_OK);
    assert_int_equal(pw_sim_journal_foreign_subject(f.journal, "y", pawl_str("y")), PAWL_OK);
    append_all(&f, "b", 2);
    append_all(&f, "c", 3);
    pass(&f);
    expect_acked(&f, PAWL_E_IO, 1, 0);
    assert_int_equal(append(&f, "b", 2), PAWL_E_IO);
    assert_int_equal(pw_sim_journal_refused(f.journal), 2);
    assert_int_equal(look(&f), PAWL_OK);
    expect_acked(&f, PAWL_OK, 1, 0);
    append_all(&f, "b", 2);
    pass(&f);
    expect_acked(&f, PAWL_OK, 2, 0);
    expect_stream(&f, "F0: M0:m V0: V0: 2:b2 ");
    expect_fetch(&f, "V0: V0: 2:b2 ");
    end(&f);
}

static void a_window_is_all_that_is_under_way(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, 4);
    (void)own(&f);
    for (uint64_t lsn = 1; lsn <= PW_WINDOW; lsn++)
        append_all(&f, "a", lsn);
    assert_int_equal(append(&f, "a", PW_WINDOW + 1), PAWL_E_BUSY);
    assert_int_equal(f.ops->mark(f.journal, 1, pawl_str("")), PAWL_E_BUSY);
    pass(&f);
    expect_acked(&f, PAWL_OK, PW_WINDOW, 0);
    assert_int_equal(f.ops->mark(f.journal, PW_WINDOW, pawl_str("n")), PAWL_OK);
    pass(&f);
    expect_acked(&f, PAWL_OK, PW_WINDOW, 0);
    expect_stream(&f, "F0: 512:a512 M512:n ");
    end(&f);
}

/* --- owners ------------------------------------------------------------------------------- */

struct behind {
    uint64_t opened_seq;
    size_t count;
};

static void count_behind(void *arg, const struct pw_entry *entry)
{
    struct behind *behind = arg;
    behind->count += entry->seq > behind->opened_seq ? 1 : 0;
}

/* Returns how often the new owner was refused, since something of the dead one came in. */
static unsigned take_over(uint64_t seed, size_t under_way)
{
    struct fixture f;
    begin(&f, seed);
    (void)own(&f);
    for (uint64_t lsn = 1; lsn <= under_way; lsn++)
        append_all(&f, lsn % 2 != 0 ? "a" : "b", lsn);
    f.now_ms += seed % 3;
    pw_sim_journal_crash(f.journal);
    assert_int_equal(append(&f, "a", 1), PAWL_E_IO);
    assert_int_equal(f.ops->fetch(f.journal, 1, collect, NULL), 0);
    unsigned refused = own(&f);
    struct behind behind = { pw_sim_journal_last_seq(f.journal), 0 };
    pass(&f);
    pw_sim_journal_each(f.journal, count_behind, &behind);
    assert_int_equal(behind.count, 0);
    expect_acked(&f, PAWL_OK, 0, 0);
    end(&f);
    return refused;
}

static void nothing_of_a_dead_owner_comes_in_behind_the_fences(void **state)
{
    (void)state;
    unsigned refused = 0;
    for (uint64_t seed = 1; seed <= 300; seed++)
        refused += take_over(seed, seed % 4 == 0 ? PW_WINDOW : seed % 40);
    assert_in_range(refused, 10, 3000); /* or the test tests nothing */
}

/* What stands behind the last fence, and is not the opening's. */
struct void_ones {
    uint32_t fences;
    size_t voids;
    size_t records;
};

static void count_voids(void *arg, const struct pw_entry *entry)
{
    struct void_ones *ones = arg;
    if (entry->kind == PW_ENTRY_FENCE)
        *ones = (struct void_ones){ .fences = 1 };
    ones->voids += entry->kind == PW_ENTRY_VOID ? 1 : 0;
    ones->records += entry->kind == PW_ENTRY_RECORD ? 1 : 0;
}

/* A new owner that dies in the middle of its run; and then what was under way arrives. */
static void what_comes_in_behind_a_cut_run_is_void(void **state)
{
    (void)state;
    size_t voids = 0;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        struct fixture f;
        struct void_ones ones = { .fences = 0 };
        uint64_t seq = 0;
        begin(&f, seed);
        (void)own(&f);
        for (uint64_t lsn = 1; lsn <= PW_WINDOW; lsn++)
            append_all(&f, "a", lsn);
        pw_sim_journal_crash(f.journal);
        assert_int_equal(look(&f), PAWL_OK);
        const struct pw_opening opening = { .applied_seq = f.state.last_seq,
                                            .fence = f.state.fence + 1 };
        f.dies_at = f.operations + 2;
        pawl_err err = f.ops->open(f.journal, &opening, &seq);
        assert_true(err == PAWL_E_IO || err == PAWL_E_VERSION); /* refused before it died */
        f.dies_at = 0;
        pass(&f);
        assert_int_equal(look(&f), PAWL_OK);
        pw_sim_journal_each(f.journal, count_voids, &ones);
        if (f.state.fence == opening.fence)
            assert_int_equal(ones.records, 0);
        else
            assert_int_equal(ones.voids, 0);
        voids += ones.voids;
        end(&f);
    }
    assert_in_range(voids, 10, 1000); /* or the test tests nothing */
}

/* The run is sent in one go: what comes in between makes it refused, and its end still stands. */
static void a_run_that_something_came_into_is_refused(void **state)
{
    (void)state;
    unsigned cut = 0;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        struct fixture f;
        uint64_t seq = 0;
        begin(&f, seed);
        (void)own(&f);
        for (uint64_t lsn = 1; lsn <= PW_WINDOW; lsn++)
            append_all(&f, "a", lsn);
        pw_sim_journal_crash(f.journal);
        assert_int_equal(look(&f), PAWL_OK);
        const struct pw_opening opening = { .applied_seq = f.state.last_seq,
                                            .fence = f.state.fence + 1 };
        pawl_err err = f.ops->open(f.journal, &opening, &seq);
        assert_true(err == PAWL_OK || err == PAWL_E_VERSION);
        assert_int_equal(look(&f), PAWL_OK);
        bool stands = f.state.fence == opening.fence;
        cut += err != PAWL_OK && stands ? 1 : 0;
        (void)own(&f);
        assert_true(!stands || f.fence > opening.fence);
        end(&f);
    }
    assert_in_range(cut, 10, 300); /* or the test tests nothing */
}

/* --- loss --------------------------------------------------------------------------------- */

struct newest {
    uint64_t lsn[4];
};

static void note_newest(void *arg, const struct pw_entry *entry)
{
    struct newest *newest = arg;
    if (entry->kind == PW_ENTRY_RECORD)
        newest->lsn[(size_t)(entry->id[0] - 'a') % 4] = entry->lsn;
}

/* Whatever is acknowledged is there, or replaced by a later one. */
static void check_acked(struct fixture *f, uint64_t lsn)
{
    struct newest newest = { { 0 } };
    pw_sim_journal_each(f->journal, note_newest, &newest);
    for (uint64_t back = 0; back < 4 && back < lsn; back++)
        assert_true(newest.lsn[(lsn - back) % 4] >= lsn - back);
}

static void what_is_acknowledged_is_there(void **state)
{
    (void)state;
    static const char *const ids[] = { "a", "b", "c", "d" };
    for (uint64_t seed = 1; seed <= 100; seed++) {
        struct fixture f;
        struct pw_acked acked = { .lsn = 0 };
        uint64_t next_lsn = 1;
        begin(&f, seed);
        pw_sim_journal_fail(f.journal, 8);
        (void)own(&f);
        for (unsigned turns = 0; acked.lsn < 200; turns++) {
            assert_in_range(turns, 0, 100000);
            pawl_err err = f.ops->acked(f.journal, &acked);
            check_acked(&f, acked.lsn);
            if (err != PAWL_OK && look(&f) == PAWL_OK)
                next_lsn = acked.lsn + 1;
            for (unsigned i = 0; i < 5 && next_lsn <= 200; i++)
                if (append(&f, ids[next_lsn % 4], next_lsn) == PAWL_OK)
                    next_lsn++;
            f.now_ms++;
        }
        end(&f);
    }
}

static void what_was_fetched_may_come_again(void **state)
{
    (void)state;
    struct fixture f;
    char lines[LINES_SIZE] = "";
    begin(&f, 5);
    (void)own(&f);
    append_all(&f, "a", 1);
    append_all(&f, "b", 2);
    pass(&f);
    assert_int_equal(f.ops->fetch(f.journal, 9, collect, lines), 2);
    pw_sim_journal_away(f.journal, true);
    assert_int_equal(f.ops->fetch(f.journal, 9, collect, lines), 0);
    pw_sim_journal_away(f.journal, false);
    expect_fetch(&f, "1:a1 2:b2 ");
    pw_sim_journal_away(f.journal, true);
    pw_sim_journal_away(f.journal, false);
    expect_fetch(&f, "");
    end(&f);
}

static void nothing_goes_through_while_it_is_away(void **state)
{
    (void)state;
    struct fixture f;
    size_t waiting = 0;
    uint64_t seq = 0;
    bool through = false;
    const struct pw_opening opening = { .fence = 9 };
    begin(&f, 6);
    (void)own(&f);
    append_all(&f, "a", 1);
    pw_sim_journal_away(f.journal, true);
    f.pokes = 0;
    expect_acked(&f, PAWL_E_IO, 0, 0);
    assert_int_equal(look(&f), PAWL_E_IO);
    assert_int_equal(append(&f, "a", 1), PAWL_E_IO);
    assert_int_equal(f.ops->open(f.journal, &opening, &seq), PAWL_E_IO);
    assert_int_equal(f.ops->read(f.journal, 1, false, 1, collect, NULL, &seq, &through), PAWL_E_IO);
    assert_int_equal(f.ops->last(f.journal, "order", "a", collect, NULL), PAWL_E_IO);
    assert_int_equal(f.ops->remove(f.journal, 1), PAWL_E_IO);
    assert_int_equal(f.ops->posted(f.journal, &waiting), PAWL_E_IO);
    pw_sim_journal_away(f.journal, false);
    assert_true(f.pokes > 0);
    assert_int_equal(append(&f, "a", 1), PAWL_E_IO); /* it must look first */
    pass(&f);
    assert_int_equal(look(&f), PAWL_OK);
    append_all(&f, "a", 1);
    pass(&f);
    expect_acked(&f, PAWL_OK, 1, 0);
    end(&f);
}

static void after_a_halt_nothing_begins(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, 7);
    (void)own(&f);
    append_all(&f, "a", 1);
    f.ops->halt(f.journal);
    assert_int_equal(look(&f), PAWL_E_IO);
    assert_int_equal(append(&f, "a", 1), PAWL_E_IO);
    assert_int_equal(f.ops->fetch(f.journal, 1, collect, NULL), 0);
    f.ops->close(f.journal);
    pw_sim_journal_crash(f.journal); /* the next engine */
    connect(&f);
    (void)own(&f);
    assert_int_equal(f.fence, 2);
    end(&f);
}

/* Dies at each operation of a life in turn; the next life always becomes the owner. */
static void a_process_may_die_at_each_operation(void **state)
{
    (void)state;
    uint64_t operation = 1;
    bool died = true;
    for (; died; operation++) {
        struct fixture f;
        char lines[LINES_SIZE] = "";
        struct pw_opening opening = { .fence = 1, .mark = pawl_str("m") };
        uint64_t seq = 0;
        begin(&f, operation);
        f.dies_at = operation;
        if (look(&f) == PAWL_OK && f.ops->open(f.journal, &opening, &seq) == PAWL_OK)
            for (uint64_t lsn = 1; lsn <= 3; lsn++)
                (void)append(&f, "a", lsn);
        pass(&f);
        (void)f.ops->fetch(f.journal, 9, collect, lines);
        died = f.operations >= f.dies_at;
        f.dies_at = 0;
        pw_sim_journal_crash(f.journal);
        connect(&f);
        (void)own(&f);
        end(&f);
    }
    assert_in_range(operation, 9, 20);
}

/* --- what befalls a server ---------------------------------------------------------------- */

static void fill(struct fixture *f, uint64_t seed)
{
    begin(f, seed);
    (void)own(f);
    append_all(f, "a", 1);
    append_all(f, "b", 2);
    append_all(f, "c", 3);
    pass(f);
    expect_fetch(f, "1:a1 2:b2 3:c3 ");
}

static void messages_are_purged(void **state)
{
    (void)state;
    struct fixture f;
    fill(&f, 8);
    uint64_t last_seq = pw_sim_journal_last_seq(f.journal);
    pw_sim_journal_purge_subject(f.journal, "order", "b");
    pw_sim_journal_purge_subject(f.journal, "order", "none");
    expect_stream(&f, "F0: M0:m 1:a1 3:c3 ");
    pw_sim_journal_delete(f.journal, last_seq);
    pw_sim_journal_delete(f.journal, last_seq);
    expect_stream(&f, "F0: M0:m 1:a1 ");
    pw_sim_journal_purge_to(f.journal, PW_WINDOW + 2);
    expect_stream(&f, "M0:m 1:a1 ");
    pw_sim_journal_purge(f.journal);
    expect_stream(&f, "");
    append_all(&f, "d", 4); /* its expectation still holds */
    pass(&f);
    expect_acked(&f, PAWL_OK, 4, 0);
    expect_fetch(&f, "4:d4 ");
    assert_int_equal(look(&f), PAWL_OK);
    assert_int_equal(f.state.last_seq, last_seq + 1);
    assert_int_equal(f.state.records, 1);
    assert_int_equal(f.state.fence, 0);
    assert_int_equal(f.state.fence_seq, 0);
    end(&f);
}

static void a_stream_made_anew_is_another_one(void **state)
{
    (void)state;
    struct fixture f;
    fill(&f, 9);
    uint64_t created = f.state.created;
    pw_sim_journal_recreate(f.journal);
    append_all(&f, "d", 4);
    pass(&f);
    expect_acked(&f, PAWL_E_IO, 3, 0);
    assert_int_equal(look(&f), PAWL_OK);
    assert_true(f.state.created > created);
    assert_int_equal(f.state.last_seq, 0);
    assert_int_equal(f.state.records, 0);
    (void)own(&f);
    append_all(&f, "d", 4);
    pass(&f);
    expect_fetch(&f, "4:d4 ");
    expect_stream(&f, "F0: M0:m 4:d4 ");
    end(&f);
}

static void a_stream_is_rolled_back(void **state)
{
    (void)state;
    struct fixture f;
    fill(&f, 10);
    uint64_t last_seq = pw_sim_journal_last_seq(f.journal);
    uint64_t created = f.state.created;
    assert_int_equal(pw_sim_journal_restore(f.journal), PAWL_E_NOT_FOUND);
    assert_int_equal(pw_sim_journal_snapshot(f.journal), PAWL_OK);
    append_all(&f, "a", 4);
    append_all(&f, "d", 5);
    pass(&f);
    expect_fetch(&f, "4:a4 5:d5 ");
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pw_sim_journal_restore(f.journal), PAWL_OK);
        expect_stream(&f, "F0: M0:m 1:a1 2:b2 3:c3 ");
        assert_int_equal(look(&f), PAWL_OK);
        assert_int_equal(f.state.created, created);
        assert_int_equal(f.state.last_seq, last_seq);
        expect_fetch(&f, "1:a1 2:b2 3:c3 "); /* its consumer was beyond the end */
        append_all(&f, "d", 5);
        pass(&f);
        expect_fetch(&f, "5:d5 ");
    }
    end(&f);
}

static void the_fence_of_a_foreign_hand_is_none(void **state)
{
    (void)state;
    struct fixture f;
    fill(&f, 11);
    assert_int_equal(pw_sim_journal_foreign_subject(f.journal, "_fence", pawl_str("")), PAWL_OK);
    assert_int_equal(look(&f), PAWL_OK);
    assert_int_equal(f.state.fence, 0);
    end(&f);
}

/* --- posts -------------------------------------------------------------------------------- */

static pawl_err post(struct fixture *f, enum pw_post_kind kind, const char *id, uint64_t epoch,
                     uint32_t n)
{
    const struct pw_post one = { .kind = kind,
                                 .n = n,
                                 .lsn = epoch * 10,
                                 .epoch = epoch,
                                 .machine = "order",
                                 .id = id,
                                 .name = kind == PW_POST_EVENT ? "said" : NULL,
                                 .data = pawl_str("data") };
    return f->ops->post(f->journal, &one);
}

static void expect_posted(struct fixture *f, pawl_err err, size_t waiting)
{
    size_t got = SIZE_MAX;
    assert_int_equal(f->ops->posted(f->journal, &got), err);
    assert_int_equal(got, waiting);
}

static void a_letter_has_a_place_of_its_own(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, 12);
    assert_int_equal(post(&f, PW_POST_EVENT, "a", 1, 1), PAWL_OK);
    assert_int_equal(post(&f, PW_POST_EVENT, "a", 1, 1), PAWL_OK);
    assert_int_equal(post(&f, PW_POST_LETTER, "a", 1, 0), PAWL_OK);
    assert_int_equal(post(&f, PW_POST_LETTER, "b", 1, 0), PAWL_OK);
    assert_int_equal(post(&f, PW_POST_LETTER, "a", 1, 2), PAWL_OK);
    pass(&f);
    expect_posted(&f, PAWL_OK, 0);
    assert_string_equal(pw_sim_journal_event(f.journal, 1)->name, "said");
    assert_null(pw_sim_journal_event(f.journal, 2));
    assert_non_null(pw_sim_journal_letter(f.journal, 2));
    assert_int_equal(post(&f, PW_POST_LETTER, "a", 1, 0), PAWL_OK);
    pass(&f);
    assert_null(pw_sim_journal_letter(f.journal, 3));
    assert_int_equal(post(&f, PW_POST_NO_LETTER, "a", 1, 0), PAWL_OK);
    pass(&f);
    assert_non_null(pw_sim_journal_letter(f.journal, 1));
    assert_null(pw_sim_journal_letter(f.journal, 2));
    end(&f);
}

/* Posts 1 to 10, all of them again whenever one failed. */
static void post_ten(struct fixture *f)
{
    size_t waiting = 1;
    uint32_t next = 1;
    for (unsigned turns = 0; next <= 10 || waiting > 0; turns++) {
        assert_in_range(turns, 0, 10000);
        if (next <= 10 && post(f, PW_POST_EVENT, "a", 1, next) == PAWL_OK)
            next++;
        f->now_ms++;
        if (f->ops->posted(f->journal, &waiting) == PAWL_OK)
            continue;
        assert_int_equal(waiting, 0);
        next = 1; /* all that were under way, and in this test the answered ones, too */
        waiting = 1;
    }
}

static void posts_that_fail_are_sent_again(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 50; seed++) {
        struct fixture f;
        begin(&f, seed);
        pw_sim_journal_fail(f.journal, 6);
        post_ten(&f);
        uint32_t heard = 0;
        for (size_t i = 0; pw_sim_journal_event(f.journal, i) != NULL; i++)
            heard |= 1u << pw_sim_journal_event(f.journal, i)->n;
        assert_int_equal(heard, 0x7fe);
        end(&f);
    }
}

/* --- memory ------------------------------------------------------------------------------- */

static bool with_failing(uint64_t n)
{
    struct fixture f;
    begin(&f, 13);
    (void)pw_alloc_fail_at(n);
    (void)own(&f);
    for (uint64_t lsn = 1; lsn <= 80; lsn++)
        while (append(&f, "a", lsn) != PAWL_OK) {
        }
    while (post(&f, PW_POST_EVENT, "a", 1, 1) != PAWL_OK) {
    }
    while (pw_sim_journal_foreign_subject(f.journal, "y", pawl_str("")) != PAWL_OK) {
    }
    while (pw_sim_journal_snapshot(f.journal) != PAWL_OK) {
    }
    while (pw_sim_journal_restore(f.journal) != PAWL_OK) {
    }
    bool reached = pw_alloc_fail_at(0) >= n;
    end(&f);
    return reached;
}

static void memory_may_fail(void **state)
{
    (void)state;
    uint64_t n = 1;
    while (with_failing(n))
        n++;
    assert_in_range(n, 50, 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_newest_of_a_subject_stays),
        cmocka_unit_test(it_is_read_in_pieces),
        cmocka_unit_test(a_foreign_message_moves_the_sequence),
        cmocka_unit_test(a_window_is_all_that_is_under_way),
        cmocka_unit_test(nothing_of_a_dead_owner_comes_in_behind_the_fences),
        cmocka_unit_test(what_comes_in_behind_a_cut_run_is_void),
        cmocka_unit_test(a_run_that_something_came_into_is_refused),
        cmocka_unit_test(what_is_acknowledged_is_there),
        cmocka_unit_test(what_was_fetched_may_come_again),
        cmocka_unit_test(nothing_goes_through_while_it_is_away),
        cmocka_unit_test(after_a_halt_nothing_begins),
        cmocka_unit_test(a_process_may_die_at_each_operation),
        cmocka_unit_test(messages_are_purged),
        cmocka_unit_test(a_stream_made_anew_is_another_one),
        cmocka_unit_test(a_stream_is_rolled_back),
        cmocka_unit_test(the_fence_of_a_foreign_hand_is_none),
        cmocka_unit_test(a_letter_has_a_place_of_its_own),
        cmocka_unit_test(posts_that_fail_are_sent_again),
        cmocka_unit_test(memory_may_fail),
    };
    return cmocka_run_group_tests(tests, leaks_begin, leaks_end);
}
