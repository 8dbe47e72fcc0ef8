/* SPDX-License-Identifier: Apache-2.0
 *
 * The machines and the store of the tests of step(). */
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "core/machine.h"
#include "unit/life.h"

static pawl_outcome work(pawl_task *task)
{
    (void)task;
    return pawl_raise(0);
}

/* --- machines ----------------------------------------------------------------------------- */

static const pawl_state job_states[] = {
    [IDLE] = { .name = "idle", .flags = PAWL_START },
    [WORK] = { .name = "work",
               .work = work,
               .attempts_max = 3,
               .backoff_ms = 1000,
               .backoff_ms_max = 4000,
               .timeout_ms = 60000 },
    [REPAIR] = { .name = "repair", .work = work, .backoff_ms = 1000, .backoff_ms_max = 64000 },
    [WAIT] = { .name = "wait", .timeout_ms = 5000 },
    [END] = { .name = "end", .flags = PAWL_FINAL },
};
static const char *const job_events[] = { "go", "done", "cancel", "again" };
static const pawl_edge job_edges[] = {
    { .from = IDLE, .event = GO, .to = WORK },
    { .from = IDLE, .event = AGAIN, .to = REPAIR },
    { .from = IDLE, .event = CANCEL, .to = END },
    { .from = WORK, .event = DONE, .to = WAIT },
    { .from = WORK, .event = PAWL_FAILED, .to = REPAIR },
    { .from = WORK, .event = PAWL_TIMEOUT, .to = WAIT },
    { .from = WORK, .event = CANCEL, .to = WAIT },
    { .from = WORK, .event = AGAIN, .to = WORK },
    { .from = REPAIR, .event = DONE, .to = WORK },
    { .from = REPAIR, .event = CANCEL, .to = IDLE },
    { .from = WAIT, .event = PAWL_TIMEOUT, .to = WORK },
    { .from = WAIT, .event = GO, .to = WORK },
    { .from = WAIT, .event = CANCEL, .to = END },
    { .from = WAIT, .event = DONE, .to = REPAIR, .late = true },
};
const pawl_machine life_job = {
    .name = "job",
    PAWL_STATES(job_states),
    PAWL_EVENTS(job_events),
    PAWL_EDGES(job_edges),
    .rounds_max = 4,
    .crash_attempts_max = 3,
    .retention_ms = 100000,
};

/* Begins by working, and keeps its final entities for ever. */
static const pawl_state run_states[] = {
    { .name = "run", .flags = PAWL_START, .work = work },
    { .name = "ran", .flags = PAWL_FINAL },
};
static const pawl_edge run_edges[] = { { .from = 0, .event = 1, .to = 1 } };
const pawl_machine life_run = {
    .name = "run",
    PAWL_STATES(run_states),
    PAWL_EVENTS(job_events),
    PAWL_EDGES(run_edges),
    .retention_ms = PAWL_FOREVER,
};

/* --- a life ------------------------------------------------------------------------------- */

void life_begin(struct life *l, const pawl_machine *machine)
{
    *l = (struct life){ .machine = machine, .lsn = 100, .now_ms = 1000 };
}

static bool same_text(const char *a, const char *b)
{
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

static bool same_entity(const struct pw_entity *a, const struct pw_entity *b)
{
    return a->machine == b->machine && a->state == b->state && a->row == b->row &&
           same_text(a->machine_name, b->machine_name) && same_text(a->id, b->id) &&
           same_text(a->state_name, b->state_name) && same_text(a->key, b->key) &&
           same_text(a->error, b->error) && same_text(a->trace, b->trace) &&
           pw_bytes_equal(a->data, b->data) && a->epoch == b->epoch && a->version == b->version &&
           a->previous_epoch == b->previous_epoch && a->previous_attempt == b->previous_attempt &&
           a->created_ms == b->created_ms && a->entered_ms == b->entered_ms &&
           a->not_before_ms == b->not_before_ms && a->deadline_ms == b->deadline_ms &&
           a->attempt == b->attempt && a->attempt_base == b->attempt_base &&
           a->carried == b->carried && a->rounds == b->rounds && a->crashes == b->crashes &&
           a->happenings == b->happenings && a->held == b->held && a->parked == b->parked &&
           a->memos == b->memos && a->memos_count == b->memos_count && a->answers == b->answers &&
           a->answers_count == b->answers_count && a->effects == b->effects &&
           a->effects_count == b->effects_count;
}

static bool same_update(const struct pw_update *a, const struct pw_update *b)
{
    return a->change == b->change && a->task == b->task && a->repeated == b->repeated &&
           a->remember == b->remember && a->brings == b->brings &&
           same_entity(&a->after, &b->after) && a->answered.version == b->answered.version &&
           a->answered.epoch == b->answered.epoch && a->happening.kind == b->happening.kind &&
           same_text(a->happening.from, b->happening.from) &&
           same_text(a->happening.event, b->happening.event) &&
           same_text(a->happening.to, b->happening.to) &&
           same_text(a->happening.why, b->happening.why) &&
           a->happening.attempt == b->happening.attempt && a->happening.late == b->happening.late &&
           a->effects_new == b->effects_new && a->effects_new_count == b->effects_new_count;
}

/* What holds after every change, whatever led to it. */
static void check_change(const struct life *l, const struct pw_entity *before)
{
    const struct pw_update *u = &l->update;
    const struct pw_entity *e = &u->after;
    bool works = pw_entity_works(e);
    assert_int_equal(e->version, l->lsn + 1);
    assert_int_equal(u->answered.version, e->version);
    assert_int_equal(u->answered.epoch, e->epoch);
    assert_string_equal(u->answered.state, e->state_name);
    assert_int_equal(u->happening.time_ms, l->now_ms);
    char line[512] = "";
    pw_happening_print(&u->happening, line, sizeof(line));
    assert_true(line[0] != '\0');
    if (u->change == PW_REMOVED) {
        assert_false(u->task);
        return;
    }
    assert_true(e->epoch == e->version || (before != NULL && e->epoch == before->epoch));
    assert_true(e->state == PW_STATE_UNKNOWN || works == (e->attempt >= 1));
    assert_true(!works || e->attempt > e->attempt_base);
    assert_true(e->not_before_ms == 0 || works);
    assert_true(!e->parked || (e->not_before_ms == 0 && e->error[0] != '\0' && !u->task));
    bool anew = before == NULL || !pw_entity_ready(before) || e->epoch != before->epoch ||
                e->attempt != before->attempt;
    assert_int_equal(u->task, pw_entity_ready(e) && anew);
    uint64_t due = pw_entity_due(e);
    bool rests = e->held || e->parked || (e->not_before_ms == 0 && e->deadline_ms == 0);
    assert_int_equal(due == 0, rests);
    assert_true(rests || due == e->not_before_ms || due == e->deadline_ms);
    assert_true(rests || e->not_before_ms == 0 || due <= e->not_before_ms);
    assert_true(rests || e->deadline_ms == 0 || due <= e->deadline_ms);
    assert_true(due <= PW_DURATION_MS_MAX);
}

static void take_over(struct life *l, const struct pw_input *input)
{
    struct pw_update *u = &l->update;
    l->lsn++;
    l->exists = u->change != PW_REMOVED;
    l->entity = u->after;
    struct pw_entity *e = &l->entity;
    if (u->remember) {
        if (e->answers_count == PW_ANSWERS_MAX)
            memmove(&l->answers[0], &l->answers[1], (PW_ANSWERS_MAX - 1) * sizeof(l->answers[0]));
        else
            e->answers_count++;
        l->answers[e->answers_count - 1] = u->answered;
        e->answers = l->answers;
    }
    if (u->memo_new.name != NULL) {
        l->memos[e->memos_count++] = u->memo_new;
        e->memos = l->memos;
    }
    (void)input;
}

pawl_err life_step(struct life *l, struct pw_input input)
{
    const struct pw_entity *before = l->exists ? &l->entity : NULL;
    struct pw_entity kept = l->entity;
    struct pw_update again;
    pawl_why why_again = { "" };
    input.machine = input.machine != NULL ? input.machine : l->machine;
    input.id = input.id != NULL ? input.id : "7";
    input.key = input.key != NULL ? input.key : "";
    input.trace = input.trace != NULL ? input.trace : "";
    input.message_id = input.message_id != NULL ? input.message_id : "";
    input.why = input.why != NULL ? input.why : "";
    l->why.text[0] = '\0';
    pawl_err err = pw_step(before, &input, l->now_ms, l->lsn + 1, &l->update, &l->why);
    assert_int_equal(pw_step(before, &input, l->now_ms, l->lsn + 1, &again, &why_again), err);
    assert_true(same_update(&l->update, &again)); /* pure */
    assert_string_equal(l->why.text, why_again.text);
    assert_true(same_entity(&kept, &l->entity)); /* nothing but the update is written */
    assert_int_equal(l->why.text[0] != '\0', err != PAWL_OK);
    if (err != PAWL_OK)
        assert_int_equal(l->update.change, PW_UNCHANGED);
    if (err != PAWL_OK || l->update.change == PW_UNCHANGED)
        return err;
    check_change(l, before);
    take_over(l, &input);
    return PAWL_OK;
}

pawl_err life_command(struct life *l, enum pw_input_kind kind)
{
    return life_step(l, (struct pw_input){ .kind = kind });
}

pawl_err life_send(struct life *l, int event)
{
    return life_step(l, (struct pw_input){ .kind = PW_IN_SEND, .event = event });
}

/* Of the attempt that runs, or would: `older` before the present one. */
struct pw_input life_task(const struct life *l, enum pw_input_kind kind, uint32_t older)
{
    return (struct pw_input){
        .kind = kind,
        .epoch = l->entity.epoch,
        .attempt = l->entity.attempt - older,
        .no_jitter = true,
        .name = "memo",
    };
}

pawl_err life_outcome(struct life *l, enum pw_outcome_kind kind, int event, const char *why)
{
    struct pw_input input = life_task(l, PW_IN_OUTCOME, 0);
    input.outcome = kind;
    input.event = event;
    input.why = why;
    return life_step(l, input);
}

pawl_err life_start(struct life *l)
{
    return life_step(l, life_task(l, PW_IN_BEGIN, 0));
}

struct pw_input life_raise_done(const struct life *l)
{
    struct pw_input input = life_task(l, PW_IN_OUTCOME, 0);
    input.outcome = PW_RAISE;
    input.event = DONE;
    return input;
}

pawl_err life_due_at(struct life *l, uint64_t ms)
{
    l->now_ms = ms;
    return life_command(l, PW_IN_DUE);
}

const char *life_line(const struct life *l)
{
    static char line[512];
    pw_happening_print(&l->update.happening, line, sizeof(line));
    return line;
}

void life_expects(const struct life *l, const char *expected)
{
    assert_string_equal(life_line(l), expected);
}

void life_create(struct life *l, const pawl_machine *machine)
{
    life_begin(l, machine);
    OK(life_command(l, PW_IN_CREATE));
}

const char *const life_kind_names[] = {
    "none", "waiting", "working", "retrying", "held", "parked", "final", "unknown",
};

void life_bring(struct life *l, enum kind kind)
{
    life_begin(l, &life_job);
    if (kind == NONE)
        return;
    OK(life_command(l, PW_IN_CREATE));
    if (kind == FINAL)
        OK(life_send(l, CANCEL));
    if (kind == WORKING || kind == RETRYING || kind == HELD)
        OK(life_send(l, GO));
    if (kind == RETRYING)
        OK(life_outcome(l, PW_RETRY_LATER, 0, "busy"));
    if (kind == HELD)
        OK(life_command(l, PW_IN_HOLD));
    if (kind == PARKED) {
        OK(life_send(l, AGAIN));
        OK(life_outcome(l, PW_FAIL, 0, "broken"));
    }
    if (kind == UNKNOWN) {
        l->entity.state = PW_STATE_UNKNOWN;
        l->entity.state_name = "gone";
    }
}
