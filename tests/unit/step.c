/* SPDX-License-Identifier: Apache-2.0
 *
 * src/core/step: every input on every kind of entity; then creation, events from outside, time,
 * hold, park and redo, each rule by itself. */
#include <string.h>

#include "base/base.h"
#include "base/limits.h"
#include "core/machine.h"
#include "unit/life.h"
#include "support/test.h"

/* --- each input on each kind -------------------------------------------------------------- */

struct expected {
    pawl_err err;
    int happened; /* -1: nothing changes */
};

#define NOTHING                                                                                    \
    {                                                                                              \
        PAWL_OK, -1                                                                                \
    }
#define DOES(kind)                                                                                 \
    {                                                                                              \
        PAWL_OK, kind                                                                              \
    }
#define REFUSED(code)                                                                              \
    {                                                                                              \
        PAWL_##code, -1                                                                            \
    }
#define STALE REFUSED(E_STALE)
#define NO_EDGE REFUSED(E_NO_EDGE)
#define MISSING REFUSED(E_NOT_FOUND)
#define EXISTS REFUSED(E_EXISTS)

struct column {
    const char *name;
    enum pw_input_kind input;
    enum pw_outcome_kind outcome;
    uint64_t later_ms;
    struct expected expected[KINDS];
};

/* clang-format off */
static const struct column columns[] = {
    /* none, waiting, working, retrying, held, parked, final, unknown */
    { "create", PW_IN_CREATE, 0, 0,
      { DOES(PW_CREATED), EXISTS, EXISTS, EXISTS, EXISTS, EXISTS, EXISTS, EXISTS } },
    { "send", PW_IN_SEND, 0, 0,
      { MISSING, DOES(PW_MOVED), DOES(PW_MOVED), DOES(PW_MOVED), DOES(PW_MOVED), DOES(PW_MOVED), NO_EDGE, NO_EDGE } },
    { "raise", PW_IN_OUTCOME, PW_RAISE, 0,
      { STALE, STALE, DOES(PW_MOVED), STALE, DOES(PW_MOVED), STALE, STALE, STALE } },
    { "retry", PW_IN_OUTCOME, PW_RETRY_LATER, 0,
      { STALE, STALE, DOES(PW_RETRY), STALE, DOES(PW_RETRY), STALE, STALE, STALE } },
    { "retry after", PW_IN_OUTCOME, PW_RETRY_AFTER, 0,
      { STALE, STALE, DOES(PW_RETRY), STALE, DOES(PW_RETRY), STALE, STALE, STALE } },
    { "fail", PW_IN_OUTCOME, PW_FAIL, 0,
      { STALE, STALE, DOES(PW_MOVED), STALE, DOES(PW_MOVED), STALE, STALE, STALE } },
    { "no outcome", PW_IN_OUTCOME, 0, 0,
      { STALE, STALE, DOES(PW_MOVED), STALE, DOES(PW_MOVED), STALE, STALE, STALE } },
    { "memo", PW_IN_MEMO, 0, 0,
      { STALE, STALE, DOES(PW_MEMOED), STALE, DOES(PW_MEMOED), STALE, STALE, STALE } },
    { "begin", PW_IN_BEGIN, 0, 0,
      { STALE, STALE, DOES(PW_SILENT), STALE, STALE, STALE, STALE, STALE } },
    { "due early", PW_IN_DUE, 0, 0,
      { NOTHING, NOTHING, NOTHING, NOTHING, NOTHING, NOTHING, NOTHING, NOTHING } },
    { "due", PW_IN_DUE, 0, 1000000,
      { NOTHING, NOTHING, DOES(PW_MOVED), DOES(PW_MOVED), NOTHING, NOTHING, DOES(PW_DELETED), NOTHING } },
    { "delete", PW_IN_DELETE, 0, 0,
      { MISSING, DOES(PW_DELETED), DOES(PW_DELETED), DOES(PW_DELETED), DOES(PW_DELETED), DOES(PW_DELETED),
        DOES(PW_DELETED), DOES(PW_DELETED) } },
    { "redo", PW_IN_REDO, 0, 0,
      { MISSING, NO_EDGE, NO_EDGE, DOES(PW_REDONE), NO_EDGE, DOES(PW_REDONE), NO_EDGE, NO_EDGE } },
    { "hold", PW_IN_HOLD, 0, 0,
      { MISSING, DOES(PW_HELD), DOES(PW_HELD), DOES(PW_HELD), DOES(PW_HELD), DOES(PW_HELD), DOES(PW_HELD), DOES(PW_HELD) } },
    { "release", PW_IN_RELEASE, 0, 0,
      { MISSING, DOES(PW_RELEASED), DOES(PW_RELEASED), DOES(PW_RELEASED), DOES(PW_RELEASED), DOES(PW_RELEASED),
        DOES(PW_RELEASED), DOES(PW_RELEASED) } },
    { "lost state", PW_IN_LOST_STATE, 0, 0,
      { MISSING, DOES(PW_PARKED), DOES(PW_PARKED), DOES(PW_PARKED), DOES(PW_PARKED), DOES(PW_PARKED), DOES(PW_PARKED),
        DOES(PW_PARKED) } },
};
/* clang-format on */

static void try_one(const struct column *c, enum kind kind)
{
    struct life l;
    life_bring(&l, kind);
    struct pw_input input = life_task(&l, c->input, kind == RETRYING ? 1 : 0);
    const struct expected *expected = &c->expected[kind];
    l.now_ms += c->later_ms;
    input.outcome = c->outcome;
    input.event = c->input == PW_IN_OUTCOME ? DONE : CANCEL;
    input.delay_ms = c->input == PW_IN_OUTCOME ? 5 : 0;
    pawl_err err = life_step(&l, input);
    int happened =
        err == PAWL_OK && l.update.change != PW_UNCHANGED ? (int)l.update.happening.kind : -1;
    if (err != expected->err || happened != expected->happened)
        fail_msg("%s on %s: %s, happened %d: %s", c->name, life_kind_names[kind],
                 pawl_err_name(err), happened, l.why.text);
    assert_int_equal(l.update.change == PW_REMOVED, happened == PW_DELETED);
}

static void each_input_on_each_kind(void **state)
{
    (void)state;
    assert_int_equal(pawl_machine_check(&life_job, NULL), PAWL_OK);
    assert_int_equal(pawl_machine_check(&life_run, NULL), PAWL_OK);
    for (size_t c = 0; c < PW_COUNT(columns); c++)
        for (enum kind kind = NONE; kind < KINDS; kind++)
            try_one(&columns[c], kind);
}

/* --- creation, message ids ---------------------------------------------------------------- */

static void creates_in_the_start_state(void **state)
{
    (void)state;
    struct life l;
    life_begin(&l, &life_job);
    struct pw_input input = {
        .kind = PW_IN_CREATE,
        .id = "42",
        .key = "tenant",
        .trace = "t",
        .data = pawl_str("19.90"),
    };
    OK(life_step(&l, input));
    life_expects(&l, "created in idle");
    assert_string_equal(l.entity.machine_name, "job");
    assert_string_equal(l.entity.id, "42");
    assert_string_equal(l.entity.key, "tenant");
    assert_string_equal(l.entity.trace, "t");
    assert_string_equal(l.entity.error, "");
    assert_true(pw_bytes_equal_str(l.entity.data, "19.90"));
    assert_int_equal(l.entity.epoch, 101);
    assert_int_equal(l.entity.created_ms, 1000);
    assert_int_equal(l.entity.entered_ms, 1000);
    assert_int_equal(l.entity.attempt, 0);
    assert_false(l.update.task);
    assert_int_equal(life_step(&l, input), PAWL_E_EXISTS);
    assert_string_equal(l.why.text, "job/42 exists, in 'idle'");
}

static void a_delayed_start(void **state)
{
    (void)state;
    struct life l;
    life_begin(&l, &life_job);
    assert_int_equal(life_step(&l, (struct pw_input){ .kind = PW_IN_CREATE, .delay_ms = 1 }),
                     PAWL_E_USAGE);
    assert_string_equal(l.why.text,
                        "start state 'idle' of 'job' does not work: there is nothing to delay");

    life_begin(&l, &life_run);
    OK(life_step(&l, (struct pw_input){ .kind = PW_IN_CREATE, .delay_ms = 500 }));
    assert_false(l.update.task);
    assert_int_equal(pw_entity_due(&l.entity), 1500);
    OK(life_due_at(&l, 1499));
    assert_int_equal(l.update.change, PW_UNCHANGED);
    OK(life_due_at(&l, 1500));
    assert_true(l.update.task);
    assert_int_equal(l.entity.attempt, 1);
    assert_int_equal(pw_entity_due(&l.entity), 0);

    life_begin(&l, &life_run);
    OK(life_step(&l, (struct pw_input){ .kind = PW_IN_CREATE, .delay_ms = UINT64_MAX }));
    assert_int_equal(l.entity.not_before_ms, PW_DURATION_MS_MAX);
    OK(life_command(&l, PW_IN_REDO)); /* a person need not wait */
    assert_true(l.update.task);
    assert_int_equal(l.entity.attempt, 1);

    life_begin(&l, &life_run);
    OK(life_command(&l, PW_IN_CREATE));
    assert_true(l.update.task);
}

static pawl_err send_as(struct life *l, int event, const char *message_id)
{
    return life_step(
        l, (struct pw_input){ .kind = PW_IN_SEND, .event = event, .message_id = message_id });
}

static void a_message_id_acts_once_and_is_answered_the_same(void **state)
{
    (void)state;
    struct life l;
    life_begin(&l, &life_job);
    struct pw_input input = { .kind = PW_IN_CREATE, .message_id = "m0" };
    OK(life_step(&l, input));
    struct pw_answer first = l.update.answered;
    OK(send_as(&l, GO, "m1"));
    struct pw_answer second = l.update.answered;
    OK(life_send(&l, CANCEL));
    OK(life_send(&l, CANCEL)); /* final now: the answers stay */
    uint64_t lsn = l.lsn;
    OK(life_step(&l, input));
    assert_true(l.update.repeated);
    assert_int_equal(l.update.change, PW_UNCHANGED);
    assert_int_equal(l.update.answered.version, first.version);
    assert_int_equal(l.update.answered.epoch, first.epoch);
    assert_string_equal(l.update.answered.state, "idle");
    OK(send_as(&l, GO, "m1"));
    assert_int_equal(l.update.answered.version, second.version);
    assert_int_equal(l.update.answered.epoch, second.epoch);
    assert_string_equal(l.update.answered.state, "work");
    /* also with a version that is over, or an event that nothing takes: it was answered already */
    OK(life_step(&l, (struct pw_input){
                         .kind = PW_IN_SEND, .event = AGAIN, .message_id = "m1", .version = 1 }));
    assert_true(l.update.repeated);
    assert_int_equal(l.lsn, lsn);
    assert_int_equal(send_as(&l, GO, "m2"), PAWL_E_NO_EDGE);
    assert_int_equal(send_as(&l, GO, ""), PAWL_E_NO_EDGE); /* no id is not an id */
}

static void sixteen_message_ids_are_remembered(void **state)
{
    (void)state;
    struct life l;
    life_create(&l, &life_job);
    OK(life_send(&l, GO));
    for (int i = 0; i <= PW_ANSWERS_MAX; i++) {
        pw_print(l.ids[i], sizeof(l.ids[i]), "m%d", i);
        OK(send_as(&l, AGAIN, l.ids[i]));
        assert_false(l.update.repeated);
    }
    for (int i = 1; i <= PW_ANSWERS_MAX; i++) {
        OK(send_as(&l, AGAIN, l.ids[i]));
        assert_true(l.update.repeated);
    }
    OK(send_as(&l, AGAIN, "m0"));
    assert_false(l.update.repeated); /* the seventeenth back acts again */
}

static void a_refused_message_id_is_not_remembered(void **state)
{
    (void)state;
    struct life l;
    life_create(&l, &life_job);
    assert_int_equal(send_as(&l, DONE, "m1"), PAWL_E_NO_EDGE);
    OK(send_as(&l, GO, "m1"));
    assert_false(l.update.repeated);
}

/* --- events from outside ------------------------------------------------------------------ */

static void an_event_moves(void **state)
{
    (void)state;
    struct life l;
    life_create(&l, &life_job);
    uint64_t epoch = l.entity.epoch;
    l.now_ms = 2000;
    OK(life_send(&l, GO));
    life_expects(&l, "idle --go--> work");
    assert_true(l.update.task);
    assert_int_equal(l.entity.previous_epoch, epoch);
    assert_int_equal(l.entity.epoch, l.entity.version);
    assert_int_equal(l.entity.entered_ms, 2000);
    assert_int_equal(l.entity.deadline_ms, 62000);
    assert_int_equal(l.entity.attempt, 1);
    epoch = l.entity.epoch;
    OK(life_send(&l, AGAIN)); /* a self-edge is a new visit */
    life_expects(&l, "work --again--> work");
    assert_true(l.entity.epoch > epoch);
    assert_true(l.update.task);
}

static void an_event_without_edge_says_what_is_taken(void **state)
{
    (void)state;
    struct life l;
    life_create(&l, &life_job);
    assert_int_equal(life_send(&l, DONE), PAWL_E_NO_EDGE);
    assert_string_equal(l.why.text, "job/7 is in 'idle', which takes: go, again, cancel");
    OK(life_send(&l, CANCEL));
    assert_int_equal(life_send(&l, GO), PAWL_E_NO_EDGE);
    assert_string_equal(l.why.text, "job/7 is in 'end', which takes: nothing");
    life_bring(&l, UNKNOWN);
    assert_int_equal(life_send(&l, GO), PAWL_E_NO_EDGE);
    assert_string_equal(l.why.text, "job/7 is in 'gone', which takes: nothing");
    life_create(&l, &life_job);
    assert_int_equal(life_send(&l, PW_EVENT_UNKNOWN), PAWL_E_NO_EDGE);
    assert_int_equal(life_send(&l, JOB_EVENTS), PAWL_E_NO_EDGE);
    OK(life_send(&l, GO));
    OK(life_send(&l, CANCEL));
    assert_int_equal(life_send(&l, DONE), PAWL_E_NO_EDGE); /* a late edge is not for commands */
}

static void data_and_trace_are_replaced_when_given(void **state)
{
    (void)state;
    struct life l;
    life_begin(&l, &life_job);
    OK(life_step(
        &l, (struct pw_input){ .kind = PW_IN_CREATE, .data = pawl_str("one"), .trace = "t1" }));
    OK(life_send(&l, GO));
    assert_true(pw_bytes_equal_str(l.entity.data, "one"));
    assert_string_equal(l.entity.trace, "t1");
    OK(life_step(&l, (struct pw_input){ .kind = PW_IN_SEND,
                                        .event = AGAIN,
                                        .has_data = true,
                                        .data = pawl_str("two"),
                                        .trace = "t2" }));
    assert_true(pw_bytes_equal_str(l.entity.data, "two"));
    assert_string_equal(l.entity.trace, "t2");
    OK(life_step(&l, (struct pw_input){ .kind = PW_IN_SEND, .event = AGAIN, .has_data = true }));
    assert_int_equal(l.entity.data.size, 0);
    OK(life_step(
        &l, (struct pw_input){ .kind = PW_IN_SEND, .event = AGAIN, .data = pawl_str("three") }));
    assert_int_equal(l.entity.data.size, 0); /* it did not say so */
}

static void a_version_is_expected(void **state)
{
    (void)state;
    struct life l;
    life_create(&l, &life_job);
    struct pw_input input = { .kind = PW_IN_SEND, .event = GO, .version = 100 };
    assert_int_equal(life_step(&l, input), PAWL_E_VERSION);
    assert_string_equal(l.why.text, "job/7 has version 101, not 100");
    input.version = 102;
    assert_int_equal(life_step(&l, input), PAWL_E_VERSION);
    input.version = 101;
    OK(life_step(&l, input));
    assert_int_equal(life_step(&l, (struct pw_input){ .kind = PW_IN_DELETE, .version = 101 }),
                     PAWL_E_VERSION);
    OK(life_step(&l, (struct pw_input){ .kind = PW_IN_DELETE, .version = 102 }));
    assert_false(l.exists);
    life_expects(&l, "work deleted");
}

/* --- time --------------------------------------------------------------------------------- */

static void a_timeout_goes_before_a_retry(void **state)
{
    (void)state;
    struct life l;
    life_create(&l, &life_job);
    OK(life_send(&l, GO)); /* until 61000 */
    struct pw_input input = life_task(&l, PW_IN_OUTCOME, 0);
    input.outcome = PW_RETRY_AFTER;
    input.delay_ms = 60000;
    OK(life_step(&l, input)); /* at 61000, too */
    assert_int_equal(l.entity.not_before_ms, l.entity.deadline_ms);
    assert_int_equal(pw_entity_due(&l.entity), 61000);
    OK(life_due_at(&l, 60999));
    assert_int_equal(l.update.change, PW_UNCHANGED);
    OK(life_due_at(&l, 61000));
    life_expects(&l, "work --timeout--> wait");
    assert_int_equal(l.update.happening.attempt, 0); /* no work did it */
}

static void a_retry_keeps_the_deadline(void **state)
{
    (void)state;
    struct life l;
    life_bring(&l, RETRYING);
    assert_int_equal(l.entity.deadline_ms, 61000);
    assert_int_equal(pw_entity_due(&l.entity), 2000);
    OK(life_due_at(&l, 2000));
    assert_int_equal(pw_entity_due(&l.entity), 61000);
    OK(life_due_at(&l, 61000)); /* while it is ready, or runs */
    life_expects(&l, "work --timeout--> wait");
}

static void a_timeout_whose_edge_is_gone_is_dropped(void **state)
{
    (void)state;
    struct life l;
    life_bring(&l, RETRYING);
    l.entity.state = REPAIR; /* as if the machine had lost it */
    l.entity.state_name = "repair";
    l.entity.not_before_ms = 100000;
    OK(life_due_at(&l, 61000));
    assert_int_equal(l.update.change, PW_SAVED);
    assert_int_equal(l.entity.deadline_ms, 0);
    assert_int_equal(pw_entity_due(&l.entity), 100000);
    assert_false(l.update.task);
}

static void retention_deletes_final_entities(void **state)
{
    (void)state;
    struct life l;
    life_bring(&l, FINAL);
    assert_int_equal(pw_entity_due(&l.entity), 101000);
    OK(life_due_at(&l, 100999));
    assert_true(l.exists);
    OK(life_due_at(&l, 101000));
    assert_false(l.exists);
    life_expects(&l, "end deleted");
    life_create(&l, &life_run);
    OK(life_outcome(&l, PW_RAISE, DONE, ""));
    assert_int_equal(pw_entity_due(&l.entity), 0); /* kept for ever */
}

/* A due time that was set for a timeout, by an older machine, deletes nothing before its time. */
static void a_state_that_became_final_is_kept_for_its_retention(void **state)
{
    (void)state;
    struct life l;
    life_create(&l, &life_job);
    OK(life_send(&l, GO));
    OK(life_send(&l, CANCEL));
    assert_int_equal(pw_entity_due(&l.entity), 6000);
    l.entity.state = END;
    l.entity.state_name = "end";
    OK(life_due_at(&l, 6000));
    assert_true(l.exists);
    assert_int_equal(pw_entity_due(&l.entity), 101000);
    OK(life_due_at(&l, 101000));
    assert_false(l.exists);

    life_create(&l, &life_run);
    OK(life_outcome(&l, PW_RAISE, DONE, ""));
    l.entity.deadline_ms = 2000; /* retention was 1 s, and is for ever now */
    OK(life_due_at(&l, 2000));
    assert_true(l.exists);
    assert_int_equal(pw_entity_due(&l.entity), 0);
}

/* --- hold, park, redo --------------------------------------------------------------------- */

static void held_entities_rest_and_take_events(void **state)
{
    (void)state;
    struct life l;
    life_create(&l, &life_job);
    OK(life_send(&l, GO));
    OK(life_command(&l, PW_IN_HOLD));
    life_expects(&l, "work held");
    assert_false(pw_entity_ready(&l.entity));
    assert_int_equal(pw_entity_due(&l.entity), 0);
    OK(life_command(&l, PW_IN_HOLD)); /* once more: the same */
    assert_true(l.entity.held);
    OK(life_due_at(&l, 70000)); /* no timeout meanwhile */
    assert_int_equal(l.update.change, PW_UNCHANGED);
    OK(life_send(&l, AGAIN));
    assert_true(l.entity.held);
    assert_false(l.update.task);
    OK(life_command(&l, PW_IN_RELEASE));
    life_expects(&l, "work released");
    assert_true(l.update.task);
    OK(life_command(&l, PW_IN_RELEASE));
    assert_false(l.update.task); /* it was free: not listed twice */
}

static void release_brings_back_what_is_due(void **state)
{
    (void)state;
    struct life l;
    life_bring(&l, RETRYING);
    OK(life_command(&l, PW_IN_HOLD));
    OK(life_command(&l, PW_IN_RELEASE));
    assert_false(l.update.task); /* its retry is pending still */
    assert_int_equal(pw_entity_due(&l.entity), 2000);
    OK(life_command(&l, PW_IN_HOLD));
    OK(life_command(&l, PW_IN_REDO)); /* ready but for the hold */
    assert_false(l.update.task);
    OK(life_command(&l, PW_IN_RELEASE));
    assert_true(l.update.task);
    l.entity.parked = true;
    l.entity.error = "x";
    OK(life_command(&l, PW_IN_HOLD));
    OK(life_command(&l, PW_IN_RELEASE));
    assert_false(l.update.task);
    assert_true(l.entity.parked);
}

/* Spends all attempts that are allowed from here. */
static void spend_attempts(struct life *l)
{
    for (int i = 0; i < PW_ATTEMPTS_DEFAULT; i++) {
        assert_false(l->entity.parked);
        OK(life_outcome(l, PW_RETRY_LATER, 0, "x"));
        if (l->entity.parked)
            break;
        assert_int_equal(l->entity.not_before_ms, l->now_ms + (UINT64_C(1000) << i));
        OK(life_due_at(l, pw_entity_due(&l->entity)));
    }
    assert_true(l->entity.parked);
}

/* Five attempts are allowed each time. */
static void redo_goes_on_counting_attempts(void **state)
{
    (void)state;
    struct life l;
    life_create(&l, &life_job);
    OK(life_send(&l, AGAIN));
    for (uint32_t base = 0; base < 15; base += 5) {
        assert_int_equal(l.entity.attempt_base, base);
        spend_attempts(&l);
        assert_int_equal(l.entity.attempt, base + 5);
        OK(life_command(&l, PW_IN_REDO));
        life_expects(&l, "repair redone");
        assert_true(l.update.task);
        assert_int_equal(l.entity.attempt, base + 6);
        assert_int_equal(l.entity.carried, 0);
        assert_int_equal(life_command(&l, PW_IN_REDO), PAWL_E_NO_EDGE);
        assert_string_equal(l.why.text,
                            "job/7 in 'repair' is neither parked nor waiting to be tried again");
    }
    OK(life_outcome(&l, PW_FAIL, 0, "x"));
    assert_true(l.entity.parked);
}

static void redo_hands_on_what_was_failed_since(void **state)
{
    (void)state;
    struct life l;
    life_create(&l, &life_job);
    OK(life_send(&l, GO));
    for (int i = 0; i < 3; i++) /* parked by starts */
        OK(life_start(&l));
    OK(life_command(&l, PW_IN_REDO));
    OK(life_outcome(&l, PW_RETRY_LATER, 0, "x"));
    OK(life_due_at(&l, pw_entity_due(&l.entity)));
    OK(life_outcome(&l, PW_FAIL, 0, "x"));
    assert_int_equal(l.entity.carried, 2); /* not the one before the redo */
}

static void redo_of_a_pending_retry_does_not_spend_an_attempt(void **state)
{
    (void)state;
    struct life l;
    life_bring(&l, RETRYING);
    OK(life_command(&l, PW_IN_REDO));
    assert_true(l.update.task);
    assert_int_equal(l.entity.attempt, 2);
    assert_int_equal(l.entity.attempt_base, 0);
    assert_int_equal(l.entity.deadline_ms, 61000); /* the visit goes on */
}

static void a_lost_state_parks_until_it_is_back(void **state)
{
    (void)state;
    struct life l;
    life_create(&l, &life_job);
    OK(life_send(&l, GO));
    l.entity.state = PW_STATE_UNKNOWN;
    struct pw_input input = life_raise_done(&l);
    OK(life_command(&l, PW_IN_LOST_STATE));
    life_expects(&l, "work #1 parked: the machine no longer has this state");
    assert_int_equal(life_step(&l, input), PAWL_E_STALE);
    assert_int_equal(life_command(&l, PW_IN_REDO), PAWL_E_NO_EDGE);
    assert_string_equal(l.why.text, "job/7: machine 'job' has no state 'work'");
    OK(life_command(&l, PW_IN_HOLD));
    OK(life_command(&l, PW_IN_RELEASE));
    l.entity.state = WORK;
    assert_int_equal(life_step(&l, input), PAWL_E_STALE); /* still parked */
    l.now_ms = 9000;
    OK(life_command(&l, PW_IN_REDO));
    assert_true(l.update.task);
    assert_int_equal(l.entity.attempt, 2);
    assert_int_equal(l.entity.deadline_ms, 69000);
    assert_int_equal(life_step(&l, input), PAWL_E_STALE); /* of before */

    life_create(&l, &life_job); /* one that waits goes on waiting */
    l.entity.state = PW_STATE_UNKNOWN;
    OK(life_command(&l, PW_IN_LOST_STATE));
    life_expects(&l, "idle parked: the machine no longer has this state");
    l.entity.state = IDLE;
    OK(life_command(&l, PW_IN_REDO));
    assert_false(l.entity.parked);
    assert_int_equal(l.entity.attempt, 0);
}

static void an_event_frees_a_parked_entity(void **state)
{
    (void)state;
    struct life l;
    life_bring(&l, PARKED);
    OK(life_send(&l, CANCEL));
    assert_false(l.entity.parked);
    assert_string_equal(l.entity.error, "");
    assert_string_equal(l.entity.state_name, "idle");
}

/* --- what a damaged store may hold -------------------------------------------------------- */

static void a_version_that_was_never_given_is_damage(void **state)
{
    (void)state;
    static const uint64_t ahead[] = { 0, 1, 1000, UINT64_MAX };
    for (size_t i = 0; i < PW_COUNT(ahead); i++)
        for (int kind = PW_IN_CREATE; kind <= PW_IN_LOST_STATE; kind++) {
            struct life l;
            life_bring(&l, WORKING);
            l.entity.version = ahead[i] == UINT64_MAX ? UINT64_MAX : l.lsn + 1 + ahead[i];
            assert_int_equal(life_step(&l, life_task(&l, (enum pw_input_kind)kind, 0)),
                             PAWL_E_CORRUPT);
        }
}

static void a_machine_that_is_not_here_takes_deletion_only(void **state)
{
    (void)state;
    struct life l;
    life_bring(&l, UNKNOWN);
    l.entity.machine = NULL;
    assert_int_equal(life_command(&l, PW_IN_CREATE), PAWL_E_EXISTS);
    OK(life_command(&l, PW_IN_DELETE));
    life_expects(&l, "gone deleted");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_input_on_each_kind),
        cmocka_unit_test(creates_in_the_start_state),
        cmocka_unit_test(a_delayed_start),
        cmocka_unit_test(a_message_id_acts_once_and_is_answered_the_same),
        cmocka_unit_test(sixteen_message_ids_are_remembered),
        cmocka_unit_test(a_refused_message_id_is_not_remembered),
        cmocka_unit_test(an_event_moves),
        cmocka_unit_test(an_event_without_edge_says_what_is_taken),
        cmocka_unit_test(data_and_trace_are_replaced_when_given),
        cmocka_unit_test(a_version_is_expected),
        cmocka_unit_test(a_timeout_goes_before_a_retry),
        cmocka_unit_test(a_retry_keeps_the_deadline),
        cmocka_unit_test(a_timeout_whose_edge_is_gone_is_dropped),
        cmocka_unit_test(retention_deletes_final_entities),
        cmocka_unit_test(a_state_that_became_final_is_kept_for_its_retention),
        cmocka_unit_test(held_entities_rest_and_take_events),
        cmocka_unit_test(release_brings_back_what_is_due),
        cmocka_unit_test(redo_goes_on_counting_attempts),
        cmocka_unit_test(redo_hands_on_what_was_failed_since),
        cmocka_unit_test(redo_of_a_pending_retry_does_not_spend_an_attempt),
        cmocka_unit_test(a_lost_state_parks_until_it_is_back),
        cmocka_unit_test(an_event_frees_a_parked_entity),
        cmocka_unit_test(a_version_that_was_never_given_is_damage),
        cmocka_unit_test(a_machine_that_is_not_here_takes_deletion_only),
    };
    return cmocka_run_group_tests(tests, leaks_begin, leaks_end);
}
