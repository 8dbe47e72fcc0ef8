/* SPDX-License-Identifier: Apache-2.0
 *
 * src/core/step: what work leads to: outcomes, retries, rounds, late edges, memos, starts on
 * probation. */
#include <string.h>

#include "base/base.h"
#include "base/limits.h"
#include "core/machine.h"
#include "unit/life.h"
#include "support/test.h"

/* --- outcomes ----------------------------------------------------------------------------- */

static void work_raises(void **state)
{
    (void)state;
    struct life l;
    life_create(&l, &life_job);
    OK(life_send(&l, GO));
    OK(life_outcome(&l, PW_RETRY_LATER, 0, "busy"));
    OK(life_due_at(&l, pw_entity_due(&l.entity)));
    static const struct pw_effect effects[] = { { .kind = PW_EMIT, .name = "receipt" } };
    struct pw_input input = life_task(&l, PW_IN_OUTCOME, 0);
    input.outcome = PW_RAISE;
    input.event = DONE;
    input.has_data = true;
    input.data = pawl_str("result");
    input.effects = effects;
    input.effects_count = 1;
    OK(life_step(&l, input));
    life_expects(&l, "work #2 --done--> wait");
    assert_true(pw_bytes_equal_str(l.entity.data, "result"));
    assert_ptr_equal(l.update.effects_new, effects);
    assert_int_equal(l.update.effects_new_count, 1);
    assert_string_equal(l.entity.error, "");
    assert_int_equal(l.entity.carried, 0);
    assert_int_equal(l.entity.attempt, 0);
    assert_true(l.update.brings);
}

/* An event that the state has no edge for, a built-in one, and no outcome at all are failures. */
static void work_raises_what_is_not_there(void **state)
{
    (void)state;
    static const struct {
        enum pw_outcome_kind kind;
        int event;
        const char *line;
    } cases[] = {
        { PW_RAISE, GO,
          "work #1 --failed--> repair: the work raised an event that its state has no edge for" },
        { PW_RAISE, PAWL_TIMEOUT,
          "work #1 --failed--> repair: the work raised an event that its state has no edge for" },
        { PW_RAISE, PAWL_FAILED,
          "work #1 --failed--> repair: the work raised an event that its state has no edge for" },
        { PW_RAISE, 12345,
          "work #1 --failed--> repair: the work raised an event that its state has no edge for" },
        { PW_RAISE, INT32_MIN,
          "work #1 --failed--> repair: the work raised an event that its state has no edge for" },
        { 0, DONE, "work #1 --failed--> repair: the work returned no outcome" },
        { PW_LATER, DONE, "work #1 --failed--> repair: the work returned no outcome" },
        { (enum pw_outcome_kind)99, DONE,
          "work #1 --failed--> repair: the work returned no outcome" },
    };
    for (size_t i = 0; i < PW_COUNT(cases); i++) {
        struct life l;
        static const struct pw_effect effect = { .kind = PW_EMIT, .name = "receipt" };
        life_create(&l, &life_job);
        OK(life_send(&l, GO));
        struct pw_input input = life_task(&l, PW_IN_OUTCOME, 0);
        input.outcome = cases[i].kind;
        input.event = cases[i].event;
        input.effects = &effect;
        input.effects_count = 1;
        OK(life_step(&l, input));
        life_expects(&l, cases[i].line);
        assert_int_equal(l.update.effects_new_count, 0); /* nothing of it is published */
    }
}

static void failure_publishes_and_moves_or_parks(void **state)
{
    (void)state;
    static const struct pw_effect effect = { .kind = PW_EMIT, .name = "sorry" };
    struct life l;
    life_create(&l, &life_job);
    OK(life_send(&l, GO));
    struct pw_input input = life_task(&l, PW_IN_OUTCOME, 0);
    input.outcome = PW_FAIL;
    input.why = "declined";
    input.effects = &effect;
    input.effects_count = 1;
    input.has_data = true;
    input.data = pawl_str("d");
    OK(life_step(&l, input));
    life_expects(&l, "work #1 --failed--> repair: declined");
    assert_string_equal(l.entity.error, "declined");
    assert_int_equal(l.update.effects_new_count, 1);
    assert_true(l.update.task);
    input = life_task(&l, PW_IN_OUTCOME, 0);
    input.outcome = PW_FAIL;
    input.why = "no";
    input.effects = &effect;
    input.effects_count = 1;
    OK(life_step(&l, input));
    life_expects(&l, "repair #1 parked: no");
    assert_true(l.entity.parked);
    assert_string_equal(l.entity.error, "no");
    assert_int_equal(l.update.effects_new_count, 1);
    assert_int_equal(pw_entity_due(&l.entity), 0);
}

static void too_many_effects_wait(void **state)
{
    (void)state;
    static const struct pw_effect effects[PW_EFFECTS_MAX] = { { .kind = PW_EMIT } };
    struct life l;
    life_create(&l, &life_job);
    OK(life_send(&l, GO));
    l.entity.effects_count = PW_EFFECTS_WAITING_MAX - 2;
    struct pw_input input = life_task(&l, PW_IN_OUTCOME, 0);
    input.outcome = PW_RAISE;
    input.event = DONE;
    input.effects = effects;
    input.effects_count = 3;
    assert_int_equal(life_step(&l, input), PAWL_E_BUSY);
    assert_int_equal(pawl_err_class_of(PAWL_E_BUSY), PAWL_CLASS_TRANSIENT);
    input.outcome = PW_FAIL;
    assert_int_equal(life_step(&l, input), PAWL_E_BUSY);
    input.effects_count = 2;
    OK(life_step(&l, input));
}

static void retries_back_off_until_exhausted(void **state)
{
    (void)state;
    struct life l;
    life_create(&l, &life_job);
    OK(life_send(&l, GO));
    uint64_t epoch = l.entity.epoch;
    OK(life_outcome(&l, PW_RETRY_LATER, 0, "busy"));
    life_expects(&l, "work #1 retry: busy");
    assert_int_equal(l.entity.not_before_ms, 1000 + 1000);
    assert_int_equal(l.entity.attempt, 2);
    assert_string_equal(l.entity.error, "busy");
    assert_int_equal(l.entity.epoch, epoch);
    assert_false(l.update.task);
    OK(life_due_at(&l, 2000));
    assert_true(l.update.task);
    assert_int_equal(l.update.happening.kind, PW_SILENT);
    OK(life_outcome(&l, PW_RETRY_LATER, 0, "busy"));
    assert_int_equal(l.entity.not_before_ms, 2000 + 2000);
    OK(life_due_at(&l, 4000));
    OK(life_outcome(&l, PW_RETRY_LATER, 0, "still busy")); /* the third of three */
    life_expects(&l, "work #3 --failed--> repair: still busy");
    assert_string_equal(l.entity.error, "still busy");
    assert_int_equal(l.entity.carried, 3);
}

static void the_delay_that_was_asked_for(void **state)
{
    (void)state;
    static const struct {
        uint64_t delay_ms;
        uint64_t not_before_ms;
    } cases[] = {
        { 0, 1001 }, /* never in this very change */
        { 1, 1001 },
        { 123456, 124456 },
        { UINT64_MAX, PW_DURATION_MS_MAX },
        { PW_DURATION_MS_MAX - 1000, PW_DURATION_MS_MAX },
    };
    for (size_t i = 0; i < PW_COUNT(cases); i++) {
        struct life l;
        life_create(&l, &life_job);
        OK(life_send(&l, GO));
        struct pw_input input = life_task(&l, PW_IN_OUTCOME, 0);
        input.outcome = PW_RETRY_AFTER;
        input.delay_ms = cases[i].delay_ms;
        input.why = "later";
        OK(life_step(&l, input));
        assert_int_equal(l.entity.not_before_ms, cases[i].not_before_ms);
        assert_int_equal(l.entity.attempt, 2);
    }
}

static void jitter_spreads_unless_it_is_off(void **state)
{
    (void)state;
    uint64_t least = UINT64_MAX;
    uint64_t most = 0;
    for (uint64_t dice = 0; dice < 1000; dice++) {
        struct life l;
        life_create(&l, &life_job);
        OK(life_send(&l, GO));
        struct pw_input input = life_task(&l, PW_IN_OUTCOME, 0);
        input.outcome = PW_RETRY_LATER;
        input.dice = dice;
        input.no_jitter = false;
        OK(life_step(&l, input));
        uint64_t delay = l.entity.not_before_ms - 1000;
        least = delay < least ? delay : least;
        most = delay > most ? delay : most;
    }
    assert_int_equal(least, 800); /* the default, 20 per cent */
    assert_int_equal(most, 1200);
}

static void retry_drops_what_the_attempt_collected(void **state)
{
    (void)state;
    static const struct pw_effect effect = { .kind = PW_EMIT, .name = "receipt" };
    struct life l;
    life_create(&l, &life_job);
    OK(life_send(&l, GO));
    struct pw_input input = life_task(&l, PW_IN_OUTCOME, 0);
    input.outcome = PW_RETRY_LATER;
    input.effects = &effect;
    input.effects_count = 1;
    input.has_data = true;
    input.data = pawl_str("half");
    OK(life_step(&l, input));
    assert_int_equal(l.update.effects_new_count, 0);
    assert_int_equal(l.entity.data.size, 0);
}

static void exhausted_without_an_edge_parks(void **state)
{
    (void)state;
    struct life l;
    life_create(&l, &life_job);
    OK(life_send(&l, AGAIN));
    for (int attempt = 1; attempt < PW_ATTEMPTS_DEFAULT; attempt++) {
        OK(life_outcome(&l, PW_RETRY_LATER, 0, "no luck"));
        OK(life_due_at(&l, pw_entity_due(&l.entity)));
    }
    OK(life_outcome(&l, PW_RETRY_LATER, 0, "no luck"));
    life_expects(&l, "repair #5 parked: no luck");
    assert_true(l.entity.parked);
    assert_int_equal(l.entity.attempt, 5);
}

/* repair backs off from what work failed before: 1 + 3 failures make 8 s, and so on round after
 * round. */
static void failed_hands_the_count_on(void **state)
{
    (void)state;
    struct life l;
    life_create(&l, &life_job);
    OK(life_send(&l, GO));
    for (int i = 0; i < 3; i++) {
        OK(life_outcome(&l, PW_RETRY_LATER, 0, "x"));
        if (i < 2)
            OK(life_due_at(&l, pw_entity_due(&l.entity)));
    }
    assert_string_equal(l.entity.state_name, "repair");
    assert_int_equal(l.entity.carried, 3);
    OK(life_outcome(&l, PW_RETRY_LATER, 0, "x"));
    assert_int_equal(l.entity.not_before_ms, l.now_ms + 8000);
    OK(life_due_at(&l, pw_entity_due(&l.entity)));
    OK(life_outcome(&l, PW_RETRY_LATER, 0, "x"));
    assert_int_equal(l.entity.not_before_ms, l.now_ms + 16000);
    OK(life_due_at(&l, pw_entity_due(&l.entity)));
    OK(life_outcome(&l, PW_RAISE, DONE, ""));
    assert_string_equal(l.entity.state_name, "work");
    assert_int_equal(l.entity.carried, 0); /* any other event ends the count */
    OK(life_outcome(&l, PW_FAIL, 0, "x"));
    assert_int_equal(l.entity.carried, 1);
}

static void carried_counts_of_many_rounds_do_not_wrap_the_backoff(void **state)
{
    (void)state;
    static const uint32_t counts[] = { 62, 63, 64, 65, 1000, UINT32_MAX - 1, UINT32_MAX };
    for (size_t i = 0; i < PW_COUNT(counts); i++) {
        struct life l;
        life_create(&l, &life_job);
        OK(life_send(&l, AGAIN));
        l.entity.carried = counts[i];
        OK(life_outcome(&l, PW_RETRY_LATER, 0, "x"));
        assert_int_equal(l.entity.not_before_ms, 1000 + 64000);
    }
}

static void an_event_ends_a_pending_retry(void **state)
{
    (void)state;
    struct life l;
    life_bring(&l, RETRYING);
    OK(life_send(&l, CANCEL));
    assert_string_equal(l.entity.state_name, "wait");
    assert_int_equal(l.entity.not_before_ms, 0);
    assert_int_equal(pw_entity_due(&l.entity), 6000);
    assert_string_equal(l.entity.error, "");
}

/* --- rounds ------------------------------------------------------------------------------- */

/* Work that goes round between work and repair; four rounds are allowed. */
static void go_round(struct life *l, int times)
{
    for (int i = 0; i < times; i++) {
        bool works = strcmp(l->entity.state_name, "work") == 0;
        OK(works ? life_outcome(l, PW_FAIL, 0, "x") : life_outcome(l, PW_RAISE, DONE, ""));
    }
}

static void too_many_rounds_park(void **state)
{
    (void)state;
    struct life l;
    life_create(&l, &life_job);
    OK(life_send(&l, GO));
    assert_int_equal(l.entity.rounds, 0);
    go_round(&l, 4);
    assert_int_equal(l.entity.rounds, 4);
    assert_false(l.entity.parked);
    assert_true(l.update.task);
    go_round(&l, 1);
    life_expects(&l, "work #1 --failed--> repair: too many rounds without an event from outside");
    assert_true(l.entity.parked);
    assert_false(l.update.task);
    assert_string_equal(l.entity.error, "too many rounds without an event from outside");
    assert_string_equal(l.entity.state_name, "repair");
    assert_int_equal(pw_entity_due(&l.entity), 0);
    OK(life_command(&l, PW_IN_REDO));
    assert_int_equal(l.entity.rounds, 0);
    assert_int_equal(l.entity.attempt, 2);
    assert_true(l.update.task);
    go_round(&l, 4);
    assert_false(l.entity.parked);
}

static void a_parked_move_keeps_no_due_row(void **state)
{
    (void)state;
    struct life l;
    life_create(&l, &life_job);
    OK(life_send(&l, AGAIN));
    go_round(&l, 5); /* into work, which has a timeout */
    assert_true(l.entity.parked);
    assert_string_equal(l.entity.state_name, "work");
    assert_int_equal(pw_entity_due(&l.entity), 0);
    l.now_ms = 500000;
    OK(life_command(&l, PW_IN_REDO)); /* its time begins anew */
    assert_int_equal(pw_entity_due(&l.entity), 560000);
}

static void rounds_begin_anew_from_outside(void **state)
{
    (void)state;
    struct life l;
    life_create(&l, &life_job);
    OK(life_send(&l, GO));
    go_round(&l, 4);
    OK(life_send(&l, AGAIN)); /* work: an event */
    assert_int_equal(l.entity.rounds, 0);
    go_round(&l, 4);
    OK(life_outcome(&l, PW_RAISE, DONE, "")); /* to a waiting state: it waits openly */
    assert_string_equal(l.entity.state_name, "wait");
    assert_int_equal(l.entity.rounds, 5);
    assert_false(l.entity.parked);
    OK(life_due_at(&l, pw_entity_due(&l.entity))); /* its timeout: somebody waited */
    assert_string_equal(l.entity.state_name, "work");
    assert_int_equal(l.entity.rounds, 0);
    assert_true(l.update.task);
    go_round(&l, 3);
    OK(life_outcome(&l, PW_RAISE, DONE, ""));
    OK(life_due_at(
        &l, pw_entity_due(&l.entity))); /* the timeout of a working state: a round like others */
    assert_string_equal(l.entity.state_name, "wait");
    assert_int_equal(l.entity.rounds, 5);
}

/* --- stale and late ----------------------------------------------------------------------- */

static void outcomes_of_another_visit_or_attempt_are_stale(void **state)
{
    (void)state;
    struct life l;
    life_create(&l, &life_job);
    OK(life_send(&l, GO));
    struct pw_input input = life_task(&l, PW_IN_OUTCOME, 0);
    input.outcome = PW_RAISE;
    input.event = DONE;
    input.attempt = 2;
    assert_int_equal(life_step(&l, input), PAWL_E_STALE);
    assert_string_equal(l.why.text, "job/7 is in 'work', attempt 1; this attempt is over");
    input.attempt = 0;
    assert_int_equal(life_step(&l, input), PAWL_E_STALE);
    input.attempt = 1;
    input.epoch--;
    assert_int_equal(life_step(&l, input), PAWL_E_STALE);
    assert_string_equal(l.why.text, "job/7 is in 'work', attempt 1; this outcome's visit is over");
    input.epoch += 2;
    assert_int_equal(life_step(&l, input), PAWL_E_STALE);
    input.epoch = 0;
    assert_int_equal(life_step(&l, input), PAWL_E_STALE);

    /* deleted, and created again: another epoch */
    input = life_task(&l, PW_IN_OUTCOME, 0);
    input.outcome = PW_RAISE;
    input.event = DONE;
    OK(life_command(&l, PW_IN_DELETE));
    assert_int_equal(life_step(&l, input), PAWL_E_STALE);
    assert_string_equal(l.why.text, "the entity is gone");
    OK(life_command(&l, PW_IN_CREATE));
    OK(life_send(&l, GO));
    assert_int_equal(life_step(&l, input), PAWL_E_STALE);
}

static void a_late_edge_takes_it_once(void **state)
{
    (void)state;
    static const struct pw_effect effect = { .kind = PW_EMIT, .name = "receipt" };
    struct life l;
    life_create(&l, &life_job);
    OK(life_send(&l, GO));
    struct pw_input input = life_raise_done(&l);
    input.has_data = true;
    input.data = pawl_str("late");
    input.effects = &effect;
    input.effects_count = 1;
    OK(life_send(&l, CANCEL));
    OK(life_step(&l, input));
    life_expects(&l, "wait #1 --done (late)--> repair");
    assert_true(l.update.task);
    assert_true(pw_bytes_equal_str(l.entity.data, "late"));
    assert_int_equal(l.update.effects_new_count, 1);
    assert_int_equal(life_step(&l, input), PAWL_E_STALE);
    OK(life_send(&l, CANCEL));
    assert_int_equal(life_step(&l, input), PAWL_E_STALE);
}

static void late_edges_are_for_the_visit_straight_before(void **state)
{
    (void)state;
    struct life l;
    life_create(&l, &life_job);
    OK(life_send(&l, GO));
    struct pw_input first = life_raise_done(&l);
    OK(life_send(&l, CANCEL));
    OK(life_send(&l, GO));
    struct pw_input second = life_raise_done(&l);
    OK(life_send(&l, CANCEL)); /* in wait again, but from the second visit */
    assert_int_equal(life_step(&l, first), PAWL_E_STALE);
    second.event = CANCEL;
    assert_int_equal(life_step(&l, second), PAWL_E_STALE); /* its edge is not a late one */
    second.event = PAWL_TIMEOUT;
    assert_int_equal(life_step(&l, second), PAWL_E_STALE);
    second.event = DONE;
    second.outcome = PW_FAIL;
    assert_int_equal(life_step(&l, second), PAWL_E_STALE);
    second.outcome = PW_RETRY_LATER;
    assert_int_equal(life_step(&l, second), PAWL_E_STALE);
    second.outcome = PW_RAISE;
    OK(life_command(&l, PW_IN_HOLD)); /* saves of the visit do not matter */
    OK(life_command(&l, PW_IN_RELEASE));
    OK(life_step(&l, second));
    assert_string_equal(l.entity.state_name, "repair");
}

static void an_earlier_attempt_of_the_visit_may_be_late(void **state)
{
    (void)state;
    struct life l;
    life_create(&l, &life_job);
    OK(life_send(&l, GO));
    struct pw_input first = life_raise_done(&l);
    OK(life_outcome(&l, PW_RETRY_LATER, 0, "no answer"));
    assert_int_equal(life_step(&l, first),
                     PAWL_E_STALE); /* while the visit lasts its attempt is over */
    OK(life_due_at(&l, pw_entity_due(&l.entity)));
    OK(life_due_at(&l, l.entity.deadline_ms)); /* left by the timeout */
    OK(life_step(&l, first));
    life_expects(&l, "wait #1 --done (late)--> repair");
}

/* The commit's end was unknown, and the outcome is tried again: it must not be its own late one. */
static void an_outcome_that_comes_again_is_not_late(void **state)
{
    (void)state;
    struct life l;
    life_create(&l, &life_job);
    OK(life_send(&l, GO));
    struct pw_input first = life_raise_done(&l);
    OK(life_outcome(&l, PW_RETRY_LATER, 0, "no answer"));
    OK(life_due_at(&l, pw_entity_due(&l.entity)));
    struct pw_input second = life_raise_done(&l);
    OK(life_step(&l, second));
    assert_string_equal(l.entity.state_name, "wait"); /* which takes "done" late */
    assert_int_equal(life_step(&l, second), PAWL_E_STALE);
    assert_string_equal(l.entity.state_name, "wait");
    OK(life_step(&l, first)); /* the attempt that gave no answer did it, too: that is news */
    assert_string_equal(l.entity.state_name, "repair");
}

static void a_parked_entity_takes_no_outcome_but_a_late_one(void **state)
{
    (void)state;
    struct life l;
    life_create(&l, &life_job);
    OK(life_send(&l, AGAIN));
    struct pw_input input = life_raise_done(&l);
    OK(life_outcome(&l, PW_FAIL, 0, "broken"));
    assert_int_equal(life_step(&l, input), PAWL_E_STALE);
    OK(life_command(&l, PW_IN_REDO));
    assert_int_equal(life_step(&l, input), PAWL_E_STALE); /* of before the redo */
    OK(life_outcome(&l, PW_RAISE, DONE, ""));
}

/* --- memos -------------------------------------------------------------------------------- */

static pawl_err memo(struct life *l, const char *name, const char *value)
{
    struct pw_input input = life_task(l, PW_IN_MEMO, 0);
    input.name = name;
    input.data = pawl_str(value);
    return life_step(l, input);
}

static void the_first_memo_of_a_name_stays(void **state)
{
    (void)state;
    struct life l;
    life_create(&l, &life_job);
    OK(life_send(&l, GO));
    OK(memo(&l, "id", "one"));
    life_expects(&l, "work memo id");
    assert_true(pw_bytes_equal_str(l.update.memo->value, "one"));
    assert_false(l.update.task);
    uint64_t lsn = l.lsn;
    OK(memo(&l, "id", "two"));
    assert_int_equal(l.update.change, PW_UNCHANGED);
    assert_true(pw_bytes_equal_str(l.update.memo->value, "one"));
    assert_int_equal(l.lsn, lsn);
    OK(memo(&l, "", "empty is a name like others"));
    OK(life_outcome(&l, PW_RAISE, DONE, ""));
    OK(life_send(&l, GO)); /* another visit sees the same */
    OK(memo(&l, "id", "three"));
    assert_true(pw_bytes_equal_str(l.update.memo->value, "one"));
}

static void memos_are_limited(void **state)
{
    (void)state;
    struct life l;
    life_create(&l, &life_job);
    OK(life_send(&l, GO));
    for (int i = 0; i < PW_MEMOS_MAX; i++) {
        pw_print(l.ids[i], sizeof(l.ids[i]), "m%d", i);
        OK(memo(&l, l.ids[i], "v"));
    }
    assert_int_equal(memo(&l, "more", "v"), PAWL_E_LIMIT);
    assert_string_equal(l.why.text, "an entity has at most 16 memos");
    OK(memo(&l, "m15", "other"));
    assert_true(pw_bytes_equal_str(l.update.memo->value, "v"));
}

/* --- probation ---------------------------------------------------------------------------- */

static void starts_are_counted_until_an_outcome(void **state)
{
    (void)state;
    struct life l;
    life_create(&l, &life_job);
    OK(life_send(&l, GO));
    OK(life_start(&l));
    assert_int_equal(l.entity.crashes, 1);
    OK(life_start(&l));
    assert_int_equal(l.entity.crashes, 2);
    OK(life_outcome(&l, PW_RETRY_LATER, 0, "x"));
    assert_int_equal(l.entity.crashes, 0);
    OK(life_due_at(&l, pw_entity_due(&l.entity)));
    OK(life_start(&l));
    OK(life_outcome(&l, PW_RAISE, AGAIN, ""));
    assert_int_equal(l.entity.crashes, 0);
    OK(life_start(&l));
    OK(life_start(&l));
    OK(life_start(&l));
    life_expects(&l, "work #1 parked: the process died each time this was worked");
    assert_true(l.entity.parked);
    assert_int_equal(life_start(&l), PAWL_E_STALE);
    OK(life_command(&l, PW_IN_REDO));
    assert_int_equal(l.entity.crashes, 0);
    assert_int_equal(l.entity.attempt, 2);
    OK(life_start(&l));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(work_raises),
        cmocka_unit_test(work_raises_what_is_not_there),
        cmocka_unit_test(failure_publishes_and_moves_or_parks),
        cmocka_unit_test(too_many_effects_wait),
        cmocka_unit_test(retries_back_off_until_exhausted),
        cmocka_unit_test(the_delay_that_was_asked_for),
        cmocka_unit_test(jitter_spreads_unless_it_is_off),
        cmocka_unit_test(retry_drops_what_the_attempt_collected),
        cmocka_unit_test(exhausted_without_an_edge_parks),
        cmocka_unit_test(failed_hands_the_count_on),
        cmocka_unit_test(carried_counts_of_many_rounds_do_not_wrap_the_backoff),
        cmocka_unit_test(an_event_ends_a_pending_retry),
        cmocka_unit_test(too_many_rounds_park),
        cmocka_unit_test(a_parked_move_keeps_no_due_row),
        cmocka_unit_test(rounds_begin_anew_from_outside),
        cmocka_unit_test(outcomes_of_another_visit_or_attempt_are_stale),
        cmocka_unit_test(a_late_edge_takes_it_once),
        cmocka_unit_test(late_edges_are_for_the_visit_straight_before),
        cmocka_unit_test(an_earlier_attempt_of_the_visit_may_be_late),
        cmocka_unit_test(an_outcome_that_comes_again_is_not_late),
        cmocka_unit_test(a_parked_entity_takes_no_outcome_but_a_late_one),
        cmocka_unit_test(the_first_memo_of_a_name_stays),
        cmocka_unit_test(memos_are_limited),
        cmocka_unit_test(starts_are_counted_until_an_outcome),
    };
    return cmocka_run_group_tests(tests, leaks_begin, leaks_end);
}
