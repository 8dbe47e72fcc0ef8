/* SPDX-License-Identifier: Apache-2.0
 *
 * step(): one function per input, over a few moves that they share. Reads top down: moves first,
 * inputs after, the table last. Pure. */
#include <assert.h>

#include "base/base.h"
#include "base/limits.h"
#include "core/machine.h"
#include "core/retry.h"
#include "core/step.h"

struct step {
    const struct pw_entity *before;
    const struct pw_input *input;
    uint64_t now_ms;
    uint64_t lsn;
    struct pw_update *update;
    pawl_why *why;
};

/* --- moves -------------------------------------------------------------------------------- */

static const char *event_name(const struct step *s, int event)
{
    return pw_machine_event_name(s->update->after.machine, event);
}

static bool brings(const struct pw_input *input)
{
    switch (input->kind) {
    case PW_IN_CREATE:
    case PW_IN_MEMO:
        return true;
    case PW_IN_SEND:
        return input->has_data || input->message_id[0] != '\0' || input->trace[0] != '\0';
    case PW_IN_OUTCOME:
        return input->has_data || input->effects_count > 0;
    default:
        return false;
    }
}

/* Every change ends here. */
static pawl_err save(const struct step *s, enum pw_happened kind)
{
    struct pw_update *update = s->update;
    update->change = PW_SAVED;
    update->brings = brings(s->input);
    update->after.version = s->lsn;
    update->happening.kind = kind;
    update->happening.time_ms = s->now_ms;
    update->answered.version = s->lsn;
    update->answered.epoch = update->after.epoch;
    update->answered.state = update->after.state_name;
    return PAWL_OK;
}

static pawl_err park(const struct step *s, const char *reason)
{
    struct pw_entity *after = &s->update->after;
    after->parked = true;
    after->error = reason;
    after->not_before_ms = 0;
    s->update->task = false;
    s->update->happening.from = after->state_name;
    s->update->happening.attempt = after->attempt;
    s->update->happening.why = reason;
    return save(s, PW_PARKED);
}

static uint64_t deadline_of(const struct pw_entity *entity, uint64_t now_ms)
{
    const pawl_state *state = pw_entity_state(entity);
    bool is_final = (state->flags & PAWL_FINAL) != 0;
    uint64_t after_ms = is_final ? pw_retention_ms(entity->machine) : state->timeout_ms;
    if (after_ms == PAWL_FOREVER || (!is_final && after_ms == 0))
        return 0;
    return pw_time_add(now_ms, after_ms);
}

static void enter(const struct step *s, int state)
{
    struct pw_entity *after = &s->update->after;
    after->state = state;
    after->state_name = after->machine->states[state].name;
    after->epoch = s->lsn;
    after->entered_ms = s->now_ms;
    after->attempt = pw_entity_works(after) ? 1 : 0;
    after->attempt_base = 0;
    after->not_before_ms = 0;
    after->deadline_ms = deadline_of(after, s->now_ms);
    after->crashes = 0;
    after->parked = false;
}

/* Only an event from outside, or time that passed in a waiting state, begins the count of rounds
 * anew. */
static uint32_t rounds_after(const struct step *s, int event)
{
    if (s->input->kind == PW_IN_SEND)
        return 0;
    if (event == PAWL_TIMEOUT && !pw_entity_works(s->before))
        return 0;
    return s->before->rounds + 1;
}

static pawl_err move(const struct step *s, const pawl_edge *edge, const char *reason)
{
    const struct pw_entity *before = s->before;
    struct pw_update *update = s->update;
    struct pw_entity *after = &update->after;
    update->happening = (struct pw_happening){ .from = before->state_name,
                                               .event = event_name(s, edge->event),
                                               .late = edge->late,
                                               .why = reason };
    bool raised = s->input->kind == PW_IN_OUTCOME && s->input->outcome == PW_RAISE;
    if (s->input->kind == PW_IN_OUTCOME)
        update->happening.attempt = edge->late ? s->input->attempt : before->attempt;
    after->carried =
        edge->event == PAWL_FAILED ? before->carried + before->attempt - before->attempt_base : 0;
    after->rounds = rounds_after(s, edge->event);
    after->previous_epoch = before->epoch;
    after->previous_attempt = raised && !edge->late ? before->attempt : 0;
    after->error = reason;
    enter(s, edge->to);
    update->happening.to = after->state_name;
    update->task = pw_entity_ready(after);
    (void)save(s, PW_MOVED); /* always PAWL_OK */
    if (after->rounds > pw_rounds_max(after->machine) && pw_entity_works(after)) {
        update->task = false;
        after->parked = true;
        after->error = "too many rounds without an event from outside";
        update->happening.why = after->error;
    }
    return PAWL_OK;
}

static pawl_err stale(const struct step *s, const char *what)
{
    const struct pw_entity *before = s->before;
    if (before == NULL)
        return pw_fail(s->why, PAWL_E_STALE, "the entity is gone");
    return pw_fail(s->why, PAWL_E_STALE, "%s/%s is in '%s', attempt %u; %s", before->machine_name,
                   before->id, before->state_name, before->attempt, what);
}

static pawl_err not_found(const struct step *s)
{
    return pw_fail(s->why, PAWL_E_NOT_FOUND, "no such entity");
}

static bool is_same_task(const struct step *s)
{
    const struct pw_entity *before = s->before;
    return before != NULL && before->epoch == s->input->epoch &&
           before->attempt == s->input->attempt && pw_entity_works(before) && !before->parked;
}

static pawl_err check_version(const struct step *s)
{
    uint64_t expected = s->input->version;
    if (expected == 0 || expected == s->before->version)
        return PAWL_OK;
    return pw_fail(s->why, PAWL_E_VERSION, "%s/%s has version %llu, not %llu",
                   s->before->machine_name, s->before->id, (unsigned long long)s->before->version,
                   (unsigned long long)expected);
}

/* --- commands ----------------------------------------------------------------------------- */

static const struct pw_answer *earlier_answer(const struct step *s)
{
    const char *message_id = s->input->message_id;
    for (size_t i = 0; s->before != NULL && message_id[0] != '\0' && i < s->before->answers_count;
         i++)
        if (strcmp(s->before->answers[i].message_id, message_id) == 0)
            return &s->before->answers[i];
    return NULL;
}

static pawl_err answer_again(const struct step *s, const struct pw_answer *answer)
{
    s->update->change = PW_UNCHANGED;
    s->update->repeated = true;
    s->update->answered = *answer;
    return PAWL_OK;
}

static void remember(const struct step *s)
{
    s->update->remember = s->input->message_id[0] != '\0';
    s->update->answered.message_id = s->input->message_id;
}

static pawl_err on_create(const struct step *s)
{
    const struct pw_input *input = s->input;
    const pawl_machine *machine = input->machine;
    int start = pw_machine_start(machine);
    const struct pw_answer *answer = earlier_answer(s);
    if (answer != NULL)
        return answer_again(s, answer);
    if (s->before != NULL)
        return pw_fail(s->why, PAWL_E_EXISTS, "%s/%s exists, in '%s'", machine->name, input->id,
                       s->before->state_name);
    if (input->delay_ms > 0 && machine->states[start].work == NULL)
        return pw_fail(s->why, PAWL_E_USAGE,
                       "start state '%s' of '%s' does not work: there is nothing to delay",
                       machine->states[start].name, machine->name);
    struct pw_entity *after = &s->update->after;
    *after = (struct pw_entity){
        .machine = machine,
        .machine_name = machine->name,
        .id = input->id,
        .key = input->key,
        .error = "",
        .trace = input->trace,
        .data = input->data,
        .created_ms = s->now_ms,
    };
    enter(s, start);
    after->not_before_ms = input->delay_ms > 0 ? pw_time_add(s->now_ms, input->delay_ms) : 0;
    s->update->task = pw_entity_ready(after);
    s->update->happening.to = after->state_name;
    remember(s);
    return save(s, PW_CREATED);
}

static pawl_err no_edge(const struct step *s)
{
    const struct pw_entity *before = s->before;
    char accepts[160] = "nothing";
    if (before->state != PW_STATE_UNKNOWN)
        pw_machine_accepts(before->machine, before->state, accepts, sizeof(accepts));
    return pw_fail(s->why, PAWL_E_NO_EDGE, "%s/%s is in '%s', which takes: %s",
                   before->machine_name, before->id, before->state_name, accepts);
}

static pawl_err on_send(const struct step *s)
{
    const struct pw_answer *answer = earlier_answer(s);
    if (answer != NULL)
        return answer_again(s, answer);
    if (s->before == NULL)
        return not_found(s);
    pawl_err err = check_version(s);
    if (err != PAWL_OK)
        return err;
    const pawl_edge *edge =
        pw_machine_edge(s->before->machine, s->before->state, s->input->event, false);
    if (s->before->state == PW_STATE_UNKNOWN || edge == NULL)
        return no_edge(s);
    struct pw_entity *after = &s->update->after;
    if (s->input->has_data)
        after->data = s->input->data;
    if (s->input->trace[0] != '\0')
        after->trace = s->input->trace;
    remember(s);
    return move(s, edge, "");
}

static pawl_err on_delete(const struct step *s)
{
    if (s->before == NULL)
        return not_found(s);
    pawl_err err = check_version(s);
    if (err != PAWL_OK)
        return err;
    s->update->happening.from = s->before->state_name;
    (void)save(s, PW_DELETED); /* always PAWL_OK */
    s->update->change = PW_REMOVED;
    return PAWL_OK;
}

/* Attempts go on being counted, so that an outcome of before cannot pass for one of after. */
static pawl_err on_redo(const struct step *s)
{
    const struct pw_entity *before = s->before;
    struct pw_entity *after = &s->update->after;
    if (before == NULL)
        return not_found(s);
    pawl_err err = check_version(s);
    if (err != PAWL_OK)
        return err;
    if (before->state == PW_STATE_UNKNOWN)
        return pw_fail(s->why, PAWL_E_NO_EDGE, "%s/%s: machine '%s' has no state '%s'",
                       before->machine_name, before->id, before->machine_name, before->state_name);
    if (!before->parked && before->not_before_ms == 0)
        return pw_fail(s->why, PAWL_E_NO_EDGE,
                       "%s/%s in '%s' is neither parked nor waiting to be tried again",
                       before->machine_name, before->id, before->state_name);
    s->update->happening.from = before->state_name;
    if (before->parked) {
        after->attempt_base = before->attempt;
        after->attempt = pw_entity_works(before) ? before->attempt + 1 : 0;
        after->carried = 0;
        after->rounds = 0;
        after->crashes = 0;
        after->deadline_ms = deadline_of(before, s->now_ms);
        after->parked = false;
    }
    after->not_before_ms = 0;
    s->update->task = pw_entity_ready(after);
    return save(s, PW_REDONE);
}

static pawl_err on_hold(const struct step *s)
{
    if (s->before == NULL)
        return not_found(s);
    s->update->happening.from = s->before->state_name;
    s->update->after.held = true;
    return save(s, PW_HELD);
}

static pawl_err on_release(const struct step *s)
{
    if (s->before == NULL)
        return not_found(s);
    s->update->happening.from = s->before->state_name;
    s->update->after.held = false;
    s->update->task = s->before->held && pw_entity_ready(&s->update->after);
    return save(s, PW_RELEASED);
}

static pawl_err on_lost_state(const struct step *s)
{
    if (s->before == NULL)
        return not_found(s);
    return park(s, "the machine no longer has this state");
}

/* --- outcomes ----------------------------------------------------------------------------- */

static pawl_err add_effects(const struct step *s)
{
    const struct pw_input *input = s->input;
    if (s->before->effects_count + input->effects_count > PW_EFFECTS_WAITING_MAX)
        return pw_fail(s->why, PAWL_E_BUSY, "%zu effects wait to be sent",
                       s->before->effects_count);
    s->update->effects_new = input->effects;
    s->update->effects_new_count = input->effects_count;
    if (input->has_data)
        s->update->after.data = input->data;
    return PAWL_OK;
}

static pawl_err failed(const struct step *s, const char *reason)
{
    const pawl_edge *edge =
        pw_machine_edge(s->before->machine, s->before->state, PAWL_FAILED, false);
    return edge != NULL ? move(s, edge, reason) : park(s, reason);
}

static pawl_err retry(const struct step *s)
{
    const struct pw_entity *before = s->before;
    const struct pw_input *input = s->input;
    const pawl_state *state = pw_entity_state(before);
    struct pw_entity *after = &s->update->after;
    uint32_t made = before->attempt - before->attempt_base;
    if (made >= pw_attempts_max(state))
        return failed(s, input->why);
    uint64_t base_ms = state->backoff_ms != 0 ? state->backoff_ms : PW_BACKOFF_MS_DEFAULT;
    uint64_t ms_max =
        state->backoff_ms_max != 0 ? state->backoff_ms_max : PW_BACKOFF_MS_MAX_DEFAULT;
    uint32_t jitter = input->no_jitter             ? 0
                      : state->jitter_percent != 0 ? state->jitter_percent
                                                   : PW_JITTER_DEFAULT;
    uint64_t delay_ms = input->outcome == PW_RETRY_AFTER
                            ? input->delay_ms
                            : pw_backoff_ms(base_ms, ms_max > base_ms ? ms_max : base_ms, jitter,
                                            (uint64_t)before->carried + made, input->dice);
    after->attempt = before->attempt + 1;
    after->not_before_ms = pw_time_add(
        s->now_ms, delay_ms > 0 ? delay_ms : 1); /* 0 would be ready in this very change */
    after->crashes = 0;
    after->error = input->why;
    s->update->happening = (struct pw_happening){ .from = before->state_name,
                                                  .attempt = before->attempt,
                                                  .why = input->why };
    return save(s, PW_RETRY);
}

static pawl_err raise(const struct step *s)
{
    const pawl_edge *edge =
        pw_machine_edge(s->before->machine, s->before->state, s->input->event, false);
    if (edge == NULL || s->input->event < 0)
        return failed(s, "the work raised an event that its state has no edge for");
    pawl_err err = add_effects(s);
    return err == PAWL_OK ? move(s, edge, "") : err;
}

/* The visit was left by another event while the work ran; the state that followed may take the
 * outcome all the same. But not the very outcome that it was left by: that one comes again when its
 * commit's end was unknown. */
static pawl_err late(const struct step *s)
{
    const struct pw_entity *before = s->before;
    const struct pw_input *input = s->input;
    bool straight = before != NULL && input->epoch != 0 && before->previous_epoch == input->epoch;
    if (!straight || before->machine == NULL || input->outcome != PW_RAISE ||
        before->previous_attempt == input->attempt)
        return stale(s, "this outcome's visit is over");
    const pawl_edge *edge = pw_machine_edge(before->machine, before->state, input->event, true);
    if (edge == NULL)
        return stale(s, "this outcome's visit is over");
    pawl_err err = add_effects(s);
    return err == PAWL_OK ? move(s, edge, "") : err;
}

static pawl_err on_outcome(const struct step *s)
{
    if (!is_same_task(s))
        return s->before != NULL && s->before->epoch == s->input->epoch
                   ? stale(s, "this attempt is over")
                   : late(s);
    switch (s->input->outcome) {
    case PW_RAISE:
        return raise(s);
    case PW_RETRY_LATER:
    case PW_RETRY_AFTER:
        return retry(s);
    case PW_FAIL: {
        pawl_err err = add_effects(s);
        return err == PAWL_OK ? failed(s, s->input->why) : err;
    }
    case PW_LATER:
    default:
        return failed(s, "the work returned no outcome");
    }
}

static pawl_err on_memo(const struct step *s)
{
    const struct pw_entity *before = s->before;
    struct pw_update *update = s->update;
    if (!is_same_task(s))
        return stale(s, "this memo's visit is over");
    for (size_t i = 0; i < before->memos_count; i++)
        if (strcmp(before->memos[i].name, s->input->name) == 0) {
            update->memo = &before->memos[i];
            update->answered.version = before->version;
            return PAWL_OK;
        }
    if (before->memos_count >= PW_MEMOS_MAX)
        return pw_fail(s->why, PAWL_E_LIMIT, "an entity has at most %d memos", PW_MEMOS_MAX);
    update->memo_new = (struct pw_memo){ s->input->name, s->input->data };
    update->memo = &update->memo_new;
    update->happening.from = before->state_name;
    update->happening.event = s->input->name;
    return save(s, PW_MEMOED);
}

static pawl_err on_begin(const struct step *s)
{
    if (!is_same_task(s) || !pw_entity_ready(s->before))
        return stale(s, "this task is over");
    struct pw_entity *after = &s->update->after;
    after->crashes++;
    if (after->crashes >= pw_crashes_max(after->machine))
        return park(s, "the process died each time this was worked");
    return save(s, PW_SILENT); /* no task: whoever begins it has it in hand */
}

/* --- time --------------------------------------------------------------------------------- */

/* A final entity goes when its retention is over, whatever the due time was for: the state may have
 * had a timeout, or the machine a shorter retention, in an older build. */
static pawl_err retention_over(const struct step *s)
{
    const struct pw_entity *before = s->before;
    uint64_t gone_ms = deadline_of(before, before->entered_ms);
    if (gone_ms != 0 && gone_ms <= s->now_ms)
        return on_delete(s);
    s->update->after.deadline_ms = gone_ms;
    return save(s, PW_SILENT);
}

static pawl_err on_due(const struct step *s)
{
    const struct pw_entity *before = s->before;
    struct pw_entity *after = &s->update->after;
    if (before == NULL || before->state == PW_STATE_UNKNOWN || before->held || before->parked)
        return PAWL_OK; /* nothing: the writer drops the row */
    bool over = before->deadline_ms != 0 && before->deadline_ms <= s->now_ms;
    if (over && pw_entity_final(before))
        return retention_over(s);
    const pawl_edge *edge = pw_machine_edge(before->machine, before->state, PAWL_TIMEOUT, false);
    if (over && edge != NULL)
        return move(s, edge, "");
    if (over)
        after->deadline_ms = 0; /* the machine has lost the edge since */
    if (before->not_before_ms != 0 && before->not_before_ms <= s->now_ms) {
        after->not_before_ms = 0;
        s->update->task = pw_entity_ready(after);
    }
    if (after->deadline_ms == before->deadline_ms && after->not_before_ms == before->not_before_ms)
        return PAWL_OK; /* not yet */
    return save(s, PW_SILENT);
}

pawl_err pw_step(const struct pw_entity *before, const struct pw_input *input, uint64_t now_ms,
                 uint64_t lsn, struct pw_update *update, pawl_why *why)
{
    static pawl_err (*const on[])(const struct step *) = {
        [PW_IN_CREATE] = on_create,
        [PW_IN_SEND] = on_send,
        [PW_IN_OUTCOME] = on_outcome,
        [PW_IN_MEMO] = on_memo,
        [PW_IN_BEGIN] = on_begin,
        [PW_IN_DUE] = on_due,
        [PW_IN_DELETE] = on_delete,
        [PW_IN_REDO] = on_redo,
        [PW_IN_HOLD] = on_hold,
        [PW_IN_RELEASE] = on_release,
        [PW_IN_LOST_STATE] = on_lost_state,
    };
    assert((size_t)input->kind < PW_COUNT(on));
    assert(before == NULL || before->machine != NULL || input->kind == PW_IN_DELETE ||
           input->kind == PW_IN_CREATE);
    *update = (struct pw_update){ .happening = { .from = "", .event = "", .to = "", .why = "" } };
    if (before != NULL)
        update->after = *before;
    if (before != NULL && before->version >= lsn) /* read from a damaged store */
        return pw_fail(why, PAWL_E_CORRUPT, "%s/%s has version %llu, and its shard is at %llu",
                       before->machine_name, before->id, (unsigned long long)before->version,
                       (unsigned long long)lsn - 1);
    struct step s = { before, input, now_ms, lsn, update, why };
    pawl_err err = on[input->kind](&s);
    assert(err != PAWL_OK || update->change != PW_SAVED || update->after.version == lsn);
    return err;
}
