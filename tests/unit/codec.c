/* SPDX-License-Identifier: Apache-2.0
 *
 * src/core/codec: round trips, also against the generated code; limits; and what damaged bytes may
 * not do. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/base.h"
#include "base/limits.h"
#include "base/rng.h"
#include "core/codec.h"
#include "core/machine.h"
#include "pawl/v1/store.pb-c.h"
#include "support/test.h"

static pawl_outcome work(pawl_task *task)
{
    (void)task;
    return pawl_raise(0);
}

static const pawl_state states[] = {
    { .name = "idle", .flags = PAWL_START },
    { .name = "work", .work = work },
    { .name = "end", .flags = PAWL_FINAL },
};
static const pawl_machine job = { .name = "job", PAWL_STATES(states) };
static const struct pw_machines machines = { .list = { &job }, .count = 1 };

static struct pw_arena arena;

static int arena_begin(void **state)
{
    (void)state;
    pw_arena_init(&arena, 4096);
    return 0;
}

static int arena_end(void **state)
{
    (void)state;
    pw_arena_fini(&arena);
    return 0;
}

static const struct pw_memo memos[] = {
    { "agreement", { "a\0b", 3 } },
    { "empty", { "", 0 } },
};
static const struct pw_answer answers[] = {
    { "m1", "idle", 101, 101 },
    { "m2", "work", UINT64_MAX - 1, 102 },
};
static const struct pw_effect effects[] = {
    { .kind = PW_EMIT,
      .lsn = 103,
      .n = 0,
      .name = "receipt",
      .machine = "",
      .id = "",
      .key = "",
      .trace = "t",
      .data = { "19.90", 5 } },
    { .kind = PW_TELL,
      .lsn = 103,
      .n = 1,
      .name = "paid",
      .machine = "invoice",
      .id = "9",
      .key = "",
      .trace = "",
      .data = { "", 0 } },
    { .kind = PW_TELL_NEW,
      .lsn = 104,
      .n = 7,
      .name = "",
      .machine = "parcel",
      .id = "\xc3\xa9",
      .key = "tenant",
      .trace = "",
      .data = { "x", 1 },
      .delay_ms = UINT64_MAX },
};

/* Every field has a value of its own. */
static struct pw_entity full(void)
{
    return (struct pw_entity){
        .machine = &job,
        .machine_name = "job",
        .id = "4/2 \xc3\xa9",
        .state_name = "work",
        .key = "tenant-1",
        .error = "busy",
        .trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        .data = { "d\0ta", 4 },
        .state = 1,
        .row = 99,
        .epoch = 105,
        .version = UINT64_MAX,
        .previous_epoch = 104,
        .created_ms = 1,
        .entered_ms = 2,
        .not_before_ms = 3,
        .deadline_ms = PW_DURATION_MS_MAX,
        .attempt = 7,
        .attempt_base = 5,
        .previous_attempt = 3,
        .carried = UINT32_MAX,
        .rounds = 11,
        .crashes = 12,
        .happenings = 64,
        .held = true,
        .parked = true,
        .memos = memos,
        .memos_count = PW_COUNT(memos),
        .answers = answers,
        .answers_count = PW_COUNT(answers),
        .effects = effects,
        .effects_count = PW_COUNT(effects),
    };
}

static void expect_same_lists(const struct pw_entity *a, const struct pw_entity *b)
{
    assert_int_equal(a->memos_count, b->memos_count);
    for (size_t i = 0; i < a->memos_count; i++) {
        assert_string_equal(a->memos[i].name, b->memos[i].name);
        assert_true(pw_bytes_equal(a->memos[i].value, b->memos[i].value));
    }
    assert_int_equal(a->answers_count, b->answers_count);
    for (size_t i = 0; i < a->answers_count; i++) {
        assert_string_equal(a->answers[i].message_id, b->answers[i].message_id);
        assert_string_equal(a->answers[i].state, b->answers[i].state);
        assert_true(a->answers[i].version == b->answers[i].version);
        assert_true(a->answers[i].epoch == b->answers[i].epoch);
    }
    assert_int_equal(a->effects_count, b->effects_count);
    for (size_t i = 0; i < a->effects_count; i++) {
        const struct pw_effect *x = &a->effects[i];
        const struct pw_effect *y = &b->effects[i];
        assert_true(x->kind == y->kind && x->lsn == y->lsn && x->n == y->n);
        assert_true(x->delay_ms == y->delay_ms && pw_bytes_equal(x->data, y->data));
        assert_string_equal(x->name, y->name);
        assert_string_equal(x->machine, y->machine);
        assert_string_equal(x->id, y->id);
        assert_string_equal(x->key, y->key);
        assert_string_equal(x->trace, y->trace);
    }
}

static void expect_same(const struct pw_entity *a, const struct pw_entity *b)
{
    assert_ptr_equal(a->machine, b->machine);
    assert_string_equal(a->machine_name, b->machine_name);
    assert_string_equal(a->id, b->id);
    assert_string_equal(a->state_name, b->state_name);
    assert_string_equal(a->key, b->key);
    assert_string_equal(a->error, b->error);
    assert_string_equal(a->trace, b->trace);
    assert_true(pw_bytes_equal(a->data, b->data));
    assert_int_equal(a->state, b->state);
    assert_true(a->epoch == b->epoch && a->version == b->version);
    assert_true(a->previous_epoch == b->previous_epoch);
    assert_int_equal(a->previous_attempt, b->previous_attempt);
    assert_true(a->created_ms == b->created_ms && a->entered_ms == b->entered_ms);
    assert_true(a->not_before_ms == b->not_before_ms && a->deadline_ms == b->deadline_ms);
    assert_int_equal(a->attempt, b->attempt);
    assert_int_equal(a->attempt_base, b->attempt_base);
    assert_int_equal(a->carried, b->carried);
    assert_int_equal(a->rounds, b->rounds);
    assert_int_equal(a->crashes, b->crashes);
    assert_int_equal(a->happenings, b->happenings);
    assert_int_equal(a->held, b->held);
    assert_int_equal(a->parked, b->parked);
    expect_same_lists(a, b);
}

static pawl_bytes packed(const struct pw_update *update, uint64_t sent_lsn)
{
    pawl_bytes bytes = { NULL, 0 };
    assert_int_equal(pw_entity_pack(update, sent_lsn, &arena, &bytes), PAWL_OK);
    return bytes;
}

static struct pw_entity unpacked(pawl_bytes bytes)
{
    struct pw_entity entity;
    assert_int_equal(pw_entity_unpack(bytes, &machines, &arena, &entity), PAWL_OK);
    return entity;
}

/* --- round trips -------------------------------------------------------------------------- */

static void an_entity_comes_back_whole(void **state)
{
    (void)state;
    struct pw_update update = { .after = full() };
    struct pw_entity back = unpacked(packed(&update, 0));
    expect_same(&update.after, &back);
    assert_int_equal(back.row, 0); /* the store's, not the entity's */

    update.after = (struct pw_entity){
        .machine = &job,
        .machine_name = "job",
        .id = "1",
        .state_name = "idle",
        .key = "",
        .error = "",
        .trace = "",
        .epoch = 1,
        .version = 1,
    };
    back = unpacked(packed(&update, 0));
    expect_same(&update.after, &back);
    assert_null(back.memos);
    assert_null(back.answers);
    assert_null(back.effects);
}

static void machines_and_states_are_found_by_name(void **state)
{
    (void)state;
    static const struct {
        const char *machine;
        const char *state;
        const pawl_machine *found;
        int index;
    } cases[] = {
        { "job", "end", &job, 2 },
        { "job", "gone", &job, PW_STATE_UNKNOWN },
        { "other", "idle", NULL, PW_STATE_UNKNOWN },
    };
    for (size_t i = 0; i < PW_COUNT(cases); i++) {
        struct pw_update update = { .after = full() };
        update.after.machine_name = cases[i].machine;
        update.after.state_name = cases[i].state;
        struct pw_entity back = unpacked(packed(&update, 0));
        assert_ptr_equal(back.machine, cases[i].found);
        assert_int_equal(back.state, cases[i].index);
        assert_string_equal(back.state_name, cases[i].state);
        assert_int_equal(pw_entity_unpack(packed(&update, 0), NULL, &arena, &back), PAWL_OK);
        assert_null(back.machine);
    }
}

static void what_an_update_adds_is_packed_with_it(void **state)
{
    (void)state;
    static const struct pw_effect more[] = {
        { .kind = PW_EMIT,
          .lsn = 1,
          .n = 9,
          .name = "a",
          .machine = "",
          .id = "",
          .key = "",
          .trace = "" },
        { .kind = PW_EMIT,
          .lsn = 1,
          .n = 9,
          .name = "b",
          .machine = "",
          .id = "",
          .key = "",
          .trace = "" },
    };
    struct pw_update update = {
        .after = full(),
        .memo_new = { "third", { "3", 1 } },
        .remember = true,
        .answered = { "m3", "work", 300, 105 },
        .effects_new = more,
        .effects_new_count = 2,
    };
    update.after.version = 300;
    struct pw_entity back = unpacked(packed(&update, 0));
    assert_int_equal(back.memos_count, 3);
    assert_string_equal(back.memos[2].name, "third");
    assert_int_equal(back.answers_count, 3);
    assert_string_equal(back.answers[0].message_id, "m1");
    assert_string_equal(back.answers[2].message_id, "m3");
    assert_int_equal(back.answers[2].version, 300);
    assert_int_equal(back.effects_count, 5);
    for (uint32_t n = 0; n < 2; n++) { /* numbered by the change, whatever they said */
        assert_int_equal(back.effects[3 + n].lsn, 300);
        assert_int_equal(back.effects[3 + n].n, n);
    }
    assert_string_equal(back.effects[4].name, "b");
}

static void sixteen_answers_are_kept_the_oldest_go(void **state)
{
    (void)state;
    struct pw_answer list[40];
    char ids[40][8];
    for (size_t i = 0; i < PW_COUNT(list); i++) {
        pw_print(ids[i], sizeof(ids[i]), "m%zu", i);
        list[i] = (struct pw_answer){ ids[i], "work", i + 1, i + 1 };
    }
    for (size_t before = 0; before < PW_COUNT(list); before++)
        for (int remember = 0; remember < 2; remember++) {
            struct pw_update update = { .after = full(), .remember = remember != 0 };
            update.after.answers = list;
            update.after.answers_count = before;
            update.answered = (struct pw_answer){ "new", "work", 1000, 1000 };
            struct pw_entity back = unpacked(packed(&update, 0));
            size_t all = before + (size_t)remember;
            size_t kept = all < PW_ANSWERS_MAX ? all : PW_ANSWERS_MAX;
            assert_int_equal(back.answers_count, kept);
            for (size_t i = 0; i < kept; i++) {
                size_t from = all - kept + i;
                assert_string_equal(back.answers[i].message_id, from < before ? ids[from] : "new");
            }
        }
}

static void effects_that_are_sent_are_left_out(void **state)
{
    (void)state;
    static const struct {
        uint64_t sent_lsn;
        size_t left;
    } cases[] = { { 0, 4 },   { 102, 4 }, { 103, 2 },       { 104, 1 },
                  { 299, 1 }, { 300, 0 }, { UINT64_MAX, 0 } };
    for (size_t i = 0; i < PW_COUNT(cases); i++) {
        struct pw_update update = { .after = full(),
                                    .effects_new = effects,
                                    .effects_new_count = 1 };
        update.after.version = 300;
        struct pw_entity back = unpacked(packed(&update, cases[i].sent_lsn));
        assert_int_equal(back.effects_count, cases[i].left);
        if (cases[i].left == 2)
            assert_int_equal(back.effects[0].n, 7); /* it keeps its number */
    }
}

/* --- against the generated code ----------------------------------------------------------- */

static void the_generated_code_reads_the_same(void **state)
{
    (void)state;
    struct pw_update update = { .after = full() };
    pawl_bytes bytes = packed(&update, 0);
    Pawl__V1__Entity *wire = pawl__v1__entity__unpack(NULL, bytes.size, bytes.data);
    assert_non_null(wire);
    assert_string_equal(wire->machine, "job");
    assert_string_equal(wire->state, "work");
    assert_int_equal(wire->attempt, 7);
    assert_int_equal(wire->previous_attempt, 3);
    assert_int_equal(wire->carried, UINT32_MAX);
    assert_true(wire->version == UINT64_MAX && wire->parked && wire->held);
    assert_int_equal(wire->n_memos, 2);
    assert_int_equal(wire->n_answers, 2);
    assert_int_equal(wire->n_effects, 3);
    assert_int_equal(wire->effects[2]->kind, PAWL__V1__EFFECT__KIND__CREATE);
    assert_null(wire->base.unknown_fields);
    pawl__v1__entity__free_unpacked(wire, NULL);
}

/* At each step of the length's encoding the entity's bytes stand in the record as they are. */
static void a_record_holds_the_entitys_bytes(void **state)
{
    (void)state;
    static char data[70000];
    static const size_t sizes[] = { 0,   20,    21,    22,    23,    24,    60,    80,
                                    100, 16200, 16300, 16340, 16350, 16384, 65536, 70000 };
    size_t lengths_of_length[6] = { 0 };
    for (size_t i = 0; i < PW_COUNT(sizes); i++) {
        struct pw_update update = { .after = { .machine_name = "job",
                                               .id = "1",
                                               .state_name = "idle",
                                               .key = "",
                                               .error = "",
                                               .trace = "",
                                               .data = { data, sizes[i] },
                                               .epoch = 1,
                                               .version = 1 } };
        struct pw_record record = {
            .lsn = UINT64_MAX, .time_ms = 5, .task = i % 2 == 0, .tombstone = i % 3 == 0
        };
        struct pw_record back;
        pawl_bytes bytes = { NULL, 0 };
        pawl_bytes entity = packed(&update, 0);
        assert_int_equal(pw_record_pack(&record, entity, &arena, &bytes), PAWL_OK);
        assert_true(bytes.size <= entity.size + 64);
        assert_memory_equal((const char *)bytes.data + bytes.size - entity.size, entity.data,
                            entity.size);
        assert_int_equal(pw_record_unpack(bytes, &machines, &arena, &back), PAWL_OK);
        assert_true(back.lsn == UINT64_MAX && back.time_ms == 5);
        assert_int_equal(back.task, i % 2 == 0);
        assert_int_equal(back.tombstone, i % 3 == 0);
        assert_int_equal(back.entity.data.size, sizes[i]);
        Pawl__V1__Record *wire = pawl__v1__record__unpack(NULL, bytes.size, bytes.data);
        assert_non_null(wire);
        assert_int_equal(wire->entity->data.len, sizes[i]);
        assert_int_equal(pawl__v1__record__get_packed_size(wire),
                         bytes.size); /* no byte too many */
        pawl__v1__record__free_unpacked(wire, NULL);
        lengths_of_length[entity.size < 128 ? 1 : entity.size < 16384 ? 2 : 3]++;
    }
    assert_true(lengths_of_length[1] > 0 && lengths_of_length[2] > 0 && lengths_of_length[3] > 0);
}

/* --- happenings --------------------------------------------------------------------------- */

static const struct {
    struct pw_happening happening;
    const char *line;
} lines[] = {
    { { .kind = PW_CREATED, .from = "", .event = "", .to = "cart", .why = "" }, "created in cart" },
    { { .kind = PW_MOVED, .from = "cart", .event = "submit", .to = "charging", .why = "" },
      "cart --submit--> charging" },
    { { .kind = PW_MOVED,
        .from = "charging",
        .event = "charged",
        .to = "paid",
        .why = "",
        .attempt = 2 },
      "charging #2 --charged--> paid" },
    { { .kind = PW_MOVED,
        .from = "charging",
        .event = "failed",
        .to = "cart",
        .why = "declined",
        .attempt = 1 },
      "charging #1 --failed--> cart: declined" },
    { { .kind = PW_MOVED,
        .from = "cancelled",
        .event = "charged",
        .to = "refunding",
        .why = "",
        .attempt = 1,
        .late = true },
      "cancelled #1 --charged (late)--> refunding" },
    { { .kind = PW_RETRY,
        .from = "charging",
        .event = "",
        .to = "",
        .why = "gateway busy",
        .attempt = 1 },
      "charging #1 retry: gateway busy" },
    { { .kind = PW_PARKED,
        .from = "charging",
        .event = "",
        .to = "",
        .why = "no",
        .attempt = UINT32_MAX },
      "charging #4294967295 parked: no" },
    { { .kind = PW_PARKED, .from = "cart", .event = "", .to = "", .why = "no" },
      "cart parked: no" },
    { { .kind = PW_REDONE, .from = "charging", .event = "", .to = "", .why = "" },
      "charging redone" },
    { { .kind = PW_HELD, .from = "cart", .event = "", .to = "", .why = "" }, "cart held" },
    { { .kind = PW_RELEASED, .from = "cart", .event = "", .to = "", .why = "" }, "cart released" },
    { { .kind = PW_DELETED, .from = "paid", .event = "", .to = "", .why = "" }, "paid deleted" },
    { { .kind = PW_NOTED, .from = "paid", .event = "", .to = "", .why = "told nobody" },
      "paid note: told nobody" },
    { { .kind = PW_MEMOED, .from = "cart", .event = "agreement", .to = "", .why = "" },
      "cart memo agreement" },
    { { .kind = PW_SILENT, .from = "", .event = "", .to = "", .why = "" }, "saved" },
    { { .kind = (enum pw_happened)77, .from = "", .event = "", .to = "", .why = "" },
      "saved" }, /* of a newer build */
};

static void happenings_come_back_and_print(void **state)
{
    (void)state;
    for (size_t i = 0; i < PW_COUNT(lines); i++) {
        struct pw_happening happening = lines[i].happening;
        struct pw_happening back;
        pawl_bytes bytes = { NULL, 0 };
        char line[128] = "";
        happening.time_ms = UINT64_MAX - i;
        assert_int_equal(pw_happening_pack(&happening, &arena, &bytes), PAWL_OK);
        assert_int_equal(pw_happening_unpack(bytes, &arena, &back), PAWL_OK);
        assert_true(back.time_ms == happening.time_ms);
        assert_int_equal(back.kind, happening.kind);
        pw_happening_print(&back, line, sizeof(line));
        assert_string_equal(line, lines[i].line);
        for (size_t size = 1; size <= strlen(lines[i].line) + 1;
             size++) { /* cut, never past the end */
            memset(line, '#', sizeof(line));
            pw_happening_print(&back, line, size);
            assert_int_equal(strlen(line), size - 1);
            assert_memory_equal(line, lines[i].line, size - 1);
        }
    }
}

/* --- limits ------------------------------------------------------------------------------- */

/* The size of an entity with so much in one effect. */
static pawl_err pack_large(size_t size, bool brings, pawl_bytes *bytes)
{
    static char large[PW_RECORD_MAX];
    const struct pw_effect effect = { .kind = PW_EMIT,
                                      .lsn = 105,
                                      .name = "large",
                                      .machine = "",
                                      .id = "",
                                      .key = "",
                                      .trace = "",
                                      .data = { large, size } };
    struct pw_update update = { .after = full(), .brings = brings };
    update.after.data = (pawl_bytes){ large, PW_DATA_MAX };
    update.after.effects = &effect;
    update.after.effects_count = 1;
    pw_arena_reset(&arena);
    return pw_entity_pack(&update, 0, &arena, bytes);
}

static void what_brings_something_leaves_room_for_timers(void **state)
{
    (void)state;
    pawl_bytes bytes = { NULL, 0 };
    size_t size_max = PW_RECORD_MAX - 64;
    assert_int_equal(pack_large(PW_RECORD_MAX - PW_DATA_MAX - 65536, false, &bytes), PAWL_OK);
    size_t rest = size_max - bytes.size;
    size_t most =
        PW_RECORD_MAX - PW_DATA_MAX - 65536 + rest; /* lengths are of three bytes all along */
    assert_int_equal(pack_large(most, false, &bytes), PAWL_OK);
    assert_int_equal(bytes.size, size_max);
    struct pw_record record = {
        .lsn = UINT64_MAX, .time_ms = UINT64_MAX, .task = true, .tombstone = true
    };
    pawl_bytes whole = { NULL, 0 };
    assert_int_equal(pw_record_pack(&record, bytes, &arena, &whole), PAWL_OK);
    assert_true(whole.size <= PW_RECORD_MAX);
    pawl_bytes untouched = { "x", 1 };
    assert_int_equal(pack_large(most + 1, false, &untouched), PAWL_E_LIMIT);
    assert_int_equal(untouched.size, 1);
    assert_int_equal(pack_large(most - PW_RECORD_SPARE, true, &bytes), PAWL_OK);
    assert_int_equal(pack_large(most - PW_RECORD_SPARE + 1, true, &bytes), PAWL_E_LIMIT);
    assert_int_equal(pack_large(most - PW_RECORD_SPARE + 1, false, &bytes), PAWL_OK);
}

/* --- damage ------------------------------------------------------------------------------- */

static char too_long[200];

static void a_long_text(struct pw_entity *e, const char **field, size_t size)
{
    (void)e;
    memset(too_long, 'x', sizeof(too_long));
    too_long[size] = '\0';
    *field = too_long;
}

static void what_no_entity_can_be_is_refused(void **state)
{
    (void)state;
    enum {
        NO_ID,
        NO_MACHINE,
        NO_STATE,
        NO_EPOCH,
        OLD_VERSION,
        BASE,
        LONG_ID,
        LONG_MACHINE,
        LONG_STATE,
        LONG_KEY,
        KINDS
    };
    for (int kind = 0; kind < KINDS; kind++)
        for (int wrong = 0; wrong < 2; wrong++) { /* at the limit, and over it */
            struct pw_update update = { .after = full() };
            struct pw_entity *e = &update.after;
            struct pw_entity back;
            size_t over = (size_t)wrong;
            e->version = 500;
            switch (kind) {
            case NO_ID:
                e->id = wrong ? "" : "1";
                break;
            case NO_MACHINE:
                e->machine_name = wrong ? "" : "m";
                break;
            case NO_STATE:
                e->state_name = wrong ? "" : "s";
                break;
            case NO_EPOCH:
                e->epoch = wrong ? 0 : 1;
                break;
            case OLD_VERSION:
                e->version = wrong ? e->epoch - 1 : e->epoch;
                break;
            case BASE:
                e->attempt_base = UINT32_MAX - 1 + (uint32_t)wrong;
                break;
            case LONG_ID:
                a_long_text(e, &e->id, PW_ID_MAX + over);
                break;
            case LONG_MACHINE:
                a_long_text(e, &e->machine_name, PW_NAME_MAX + over);
                break;
            case LONG_STATE:
                a_long_text(e, &e->state_name, PW_NAME_MAX + over);
                break;
            default:
                a_long_text(e, &e->key, PW_KEY_MAX + over);
                break;
            }
            pawl_err err = pw_entity_unpack(packed(&update, 0), &machines, &arena, &back);
            if (err != (wrong ? PAWL_E_CORRUPT : PAWL_OK))
                fail_msg("case %d, %s: %s", kind, wrong ? "wrong" : "right", pawl_err_name(err));
        }
}

/* A state may begin to work in a newer build: what waited in it is at its first attempt then. */
static void attempts_of_a_state_that_works_by_now(void **state)
{
    (void)state;
    static const struct {
        const char *state;
        uint32_t attempt;
        uint32_t base;
        uint32_t expected;
    } cases[] = {
        { "work", 0, 0, 1 }, { "work", 1, 0, 1 },
        { "work", 3, 3, 4 }, { "work", 0, 3, 4 },
        { "work", 4, 3, 4 }, { "work", 2, 9, 10 },
        { "idle", 0, 0, 0 }, { "idle", 0, 3, 0 },
        { "gone", 0, 0, 0 }, { "work", 0, UINT32_MAX - 1, UINT32_MAX },
    };
    for (size_t i = 0; i < PW_COUNT(cases); i++) {
        struct pw_update update = { .after = full() };
        update.after.state_name = cases[i].state;
        update.after.attempt = cases[i].attempt;
        update.after.attempt_base = cases[i].base;
        struct pw_entity back = unpacked(packed(&update, 0));
        assert_int_equal(back.attempt, cases[i].expected);
        assert_int_equal(back.attempt_base, cases[i].base);
    }
}

static void a_record_needs_an_entity_and_a_number(void **state)
{
    (void)state;
    struct pw_update update = { .after = full() };
    struct pw_record record = { .lsn = 0 };
    struct pw_record back = { .lsn = 77 };
    pawl_bytes bytes = { NULL, 0 };
    assert_int_equal(pw_record_pack(&record, packed(&update, 0), &arena, &bytes), PAWL_OK);
    assert_int_equal(pw_record_unpack(bytes, &machines, &arena, &back), PAWL_E_CORRUPT);
    uint8_t alone[9] = { 1 << 3 | 1, 1 }; /* lsn 1, and nothing else */
    assert_int_equal(pw_record_unpack((pawl_bytes){ alone, 9 }, &machines, &arena, &back),
                     PAWL_E_CORRUPT);
    assert_int_equal(pw_record_unpack((pawl_bytes){ "", 0 }, &machines, &arena, &back),
                     PAWL_E_CORRUPT);
    assert_int_equal(back.lsn, 77); /* written on success only */
    struct pw_entity entity;
    assert_int_equal(pw_entity_unpack((pawl_bytes){ "", 0 }, &machines, &arena, &entity),
                     PAWL_E_CORRUPT);
    assert_int_equal(pw_entity_unpack((pawl_bytes){ NULL, 0 }, &machines, &arena, &entity),
                     PAWL_E_CORRUPT);
}

/* Reads them as all three; in memory of exactly their size. What is taken can be packed and printed
 * again. */
static void read_as_all(const uint8_t *bytes, size_t size)
{
    uint8_t *copy = pw_alloc(size > 0 ? size : 1);
    assert_non_null(copy);
    if (size > 0)
        memcpy(copy, bytes, size);
    pawl_bytes damaged = { copy, size };
    pawl_bytes again = { NULL, 0 };
    struct pw_update update = { .change = PW_SAVED };
    struct pw_record record;
    struct pw_happening happening;
    pw_arena_reset(&arena);
    pawl_err err = pw_entity_unpack(damaged, &machines, &arena, &update.after);
    assert_true(err == PAWL_OK || err == PAWL_E_CORRUPT);
    if (err == PAWL_OK) {
        err = pw_entity_pack(&update, 0, &arena, &again);
        assert_true(err == PAWL_OK || err == PAWL_E_LIMIT);
    }
    err = pw_record_unpack(damaged, &machines, &arena, &record);
    assert_true(err == PAWL_OK || err == PAWL_E_CORRUPT);
    err = pw_happening_unpack(damaged, &arena, &happening);
    assert_true(err == PAWL_OK || err == PAWL_E_CORRUPT);
    if (err == PAWL_OK) {
        char line[64] = "";
        pw_happening_print(&happening, line, sizeof(line));
        assert_int_equal(pw_happening_pack(&happening, &arena, &again), PAWL_OK);
    }
    pw_free(copy);
}

static size_t samples(uint8_t out[3][2048], size_t sizes[3])
{
    struct pw_update update = { .after = full() };
    struct pw_record record = { .lsn = 9, .time_ms = 8, .task = true };
    pawl_bytes bytes[3];
    bytes[0] = packed(&update, 0);
    assert_int_equal(pw_record_pack(&record, bytes[0], &arena, &bytes[1]), PAWL_OK);
    assert_int_equal(pw_happening_pack(&lines[3].happening, &arena, &bytes[2]), PAWL_OK);
    for (size_t i = 0; i < 3; i++) {
        assert_true(bytes[i].size <= 2048);
        memcpy(out[i], bytes[i].data, bytes[i].size);
        sizes[i] = bytes[i].size;
    }
    return 3;
}

static void cut_bytes_do_no_harm(void **state)
{
    (void)state;
    uint8_t bytes[3][2048];
    size_t sizes[3];
    size_t count = samples(bytes, sizes);
    for (size_t i = 0; i < count; i++)
        for (size_t size = 0; size <= sizes[i]; size++)
            read_as_all(bytes[i], size);
}

static uint64_t first_seed(void)
{
    const char *seed = getenv("PAWL_SEED");
    return seed != NULL ? strtoull(seed, NULL, 10) : 1;
}

static void flipped_bytes_do_no_harm(void **state)
{
    (void)state;
    uint8_t bytes[3][2048];
    size_t sizes[3];
    (void)samples(bytes, sizes);
    print_message("PAWL_SEED=%llu\n", (unsigned long long)first_seed());
    struct pw_rng rng = { first_seed() };
    for (int round = 0; round < 30000; round++) {
        size_t which = pw_rng_below(&rng, 3);
        uint8_t mutant[2048];
        memcpy(mutant, bytes[which], sizes[which]);
        for (uint64_t flips = 1 + pw_rng_below(&rng, 4); flips > 0; flips--)
            mutant[pw_rng_below(&rng, sizes[which])] = (uint8_t)pw_rng_next(&rng);
        read_as_all(mutant,
                    sizes[which] - pw_rng_below(&rng, 2) * pw_rng_below(&rng, sizes[which]));
    }
}

static void random_bytes_do_no_harm(void **state)
{
    (void)state;
    print_message("PAWL_SEED=%llu\n", (unsigned long long)first_seed());
    struct pw_rng rng = { first_seed() + 1 };
    for (int round = 0; round < 30000; round++) {
        uint8_t noise[64];
        size_t size = pw_rng_below(&rng, sizeof(noise) + 1);
        for (size_t i = 0; i < size; i++)
            noise[i] = (uint8_t)pw_rng_next(&rng);
        if (size > 0 && round % 2 == 0) /* a tag that exists */
            noise[0] = (uint8_t)((1 + pw_rng_below(&rng, 26)) << 3 | pw_rng_below(&rng, 3));
        read_as_all(noise, size);
    }
}

/* A field that claims to be far longer than what follows. */
static void claims_of_huge_lengths_are_refused(void **state)
{
    (void)state;
    static const uint64_t claims[] = {
        10,
        127,
        128,
        65536,
        INT32_MAX - 1,
        INT32_MAX,
        UINT32_MAX,
        UINT32_MAX - 5,
        (uint64_t)UINT32_MAX + 1,
        UINT64_C(1) << 40,
        INT64_MAX,
        UINT64_MAX - 16,
        UINT64_MAX,
    };
    for (size_t i = 0; i < PW_COUNT(claims); i++)
        for (unsigned field = 1; field < 27; field++) {
            uint8_t bytes[32] = { 0 };
            struct pw_entity entity;
            struct pw_record record;
            size_t used = 0;
            if (field >= 16)
                bytes[used++] = (uint8_t)((field << 3 | 2) | 0x80);
            bytes[used++] = field >= 16 ? (uint8_t)(field >> 4) : (uint8_t)(field << 3 | 2);
            for (uint64_t rest = claims[i];; rest >>= 7) {
                bytes[used++] = (uint8_t)(rest >= 0x80 ? rest | 0x80 : rest);
                if (rest < 0x80)
                    break;
            }
            pawl_bytes claim = { bytes, used + 3 };
            pw_arena_reset(&arena);
            assert_int_equal(pw_entity_unpack(claim, &machines, &arena, &entity), PAWL_E_CORRUPT);
            assert_int_equal(pw_record_unpack(claim, &machines, &arena, &record), PAWL_E_CORRUPT);
            read_as_all(bytes, used + 3);
        }
}

/* Ten thousand empty memos in 20 kB: they are taken, and cost what they cost. */
static void many_small_parts_are_taken(void **state)
{
    (void)state;
    static uint8_t bytes[4096 + 3 * 10000];
    struct pw_update update = { .after = full() };
    struct pw_entity back;
    pawl_bytes head = packed(&update, 0);
    memcpy(bytes, head.data, head.size);
    size_t used = head.size;
    for (int i = 0; i < 10000; i++) {
        bytes[used++] = (uint8_t)((23 << 3 | 2) | 0x80);
        bytes[used++] = 23 >> 4;
        bytes[used++] = 0;
    }
    assert_int_equal(pw_entity_unpack((pawl_bytes){ bytes, used }, &machines, &arena, &back),
                     PAWL_OK);
    assert_int_equal(back.memos_count, 10002);
    assert_string_equal(back.memos[10001].name, "");
}

/* --- memory ------------------------------------------------------------------------------- */

enum job {
    UNPACK_ENTITY,
    UNPACK_RECORD,
    UNPACK_HAPPENING,
    PACK_ENTITY,
    PACK_RECORD,
    PACK_HAPPENING,
    JOBS
};

static pawl_err do_job(enum job which, const uint8_t bytes[3][2048], const size_t sizes[3],
                       struct pw_arena *small)
{
    struct pw_update update = { .after = full() };
    struct pw_record record = { .lsn = 9 };
    struct pw_happening happening = lines[3].happening;
    pawl_bytes out = { NULL, 0 };
    pawl_bytes in[3] = { { bytes[0], sizes[0] }, { bytes[1], sizes[1] }, { bytes[2], sizes[2] } };
    switch (which) {
    case UNPACK_ENTITY:
        return pw_entity_unpack(in[0], &machines, small, &update.after);
    case UNPACK_RECORD:
        return pw_record_unpack(in[1], &machines, small, &record);
    case UNPACK_HAPPENING:
        return pw_happening_unpack(in[2], small, &happening);
    case PACK_ENTITY:
        return pw_entity_pack(&update, 0, small, &out);
    case PACK_RECORD:
        return pw_record_pack(&record, in[0], small, &out);
    case PACK_HAPPENING:
    default:
        return pw_happening_pack(&happening, small, &out);
    }
}

static void want_of_memory_is_not_damage(void **state)
{
    (void)state;
    uint8_t bytes[3][2048];
    size_t sizes[3];
    (void)samples(bytes, sizes);
    for (int which = 0; which < JOBS; which++) {
        bool through = false;
        for (uint64_t n = 1; !through; n++) {
            struct pw_arena small;
            pw_arena_init(&small, 1); /* a chunk for each */
            (void)pw_alloc_fail_at(n);
            pawl_err err = do_job((enum job)which, (const uint8_t(*)[2048])bytes, sizes, &small);
            through = pw_alloc_fail_at(0) < n;
            assert_int_equal(err, through ? PAWL_OK : PAWL_E_NOMEM);
            pw_arena_fini(&small);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, arena_begin, arena_end)
        TEST(an_entity_comes_back_whole),
        TEST(machines_and_states_are_found_by_name),
        TEST(what_an_update_adds_is_packed_with_it),
        TEST(sixteen_answers_are_kept_the_oldest_go),
        TEST(effects_that_are_sent_are_left_out),
        TEST(the_generated_code_reads_the_same),
        TEST(a_record_holds_the_entitys_bytes),
        TEST(happenings_come_back_and_print),
        TEST(what_brings_something_leaves_room_for_timers),
        TEST(what_no_entity_can_be_is_refused),
        TEST(attempts_of_a_state_that_works_by_now),
        TEST(a_record_needs_an_entity_and_a_number),
        TEST(cut_bytes_do_no_harm),
        TEST(flipped_bytes_do_no_harm),
        TEST(random_bytes_do_no_harm),
        TEST(claims_of_huge_lengths_are_refused),
        TEST(many_small_parts_are_taken),
        TEST(want_of_memory_is_not_damage),
    };
    return cmocka_run_group_tests(tests, leaks_begin, leaks_end);
}
