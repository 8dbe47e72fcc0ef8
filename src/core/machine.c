/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks a machine and looks things up in it. Pure; the check runs once a machine, look-ups are
 * walks over short tables. */
#include <assert.h>

#include "base/base.h"
#include "base/limits.h"
#include "core/machine.h"
#include "core/names.h"

static const char *const built_in[] = { "timeout", "failed" }; /* -1, -2 */

int pw_machine_state(const pawl_machine *machine, const char *name)
{
    assert(name != NULL);
    for (size_t i = 0; i < machine->states_count; i++)
        if (machine->states[i].name != NULL && strcmp(machine->states[i].name, name) == 0)
            return (int)i;
    return PW_STATE_UNKNOWN;
}

int pw_machine_event(const pawl_machine *machine, const char *name)
{
    for (size_t i = 0; i < machine->events_count; i++)
        if (strcmp(machine->events[i], name) == 0)
            return (int)i;
    for (size_t i = 0; i < PW_COUNT(built_in); i++)
        if (strcmp(built_in[i], name) == 0)
            return -1 - (int)i;
    return PW_EVENT_UNKNOWN;
}

const char *pw_machine_event_name(const pawl_machine *machine, int event)
{
    if (event == PAWL_TIMEOUT || event == PAWL_FAILED)
        return built_in[-1 - event];
    return event >= 0 && (size_t)event < machine->events_count ? machine->events[event] : "?";
}

int pw_machine_start(const pawl_machine *machine)
{
    for (size_t i = 0; i < machine->states_count; i++)
        if ((machine->states[i].flags & PAWL_START) != 0)
            return (int)i;
    return PW_STATE_UNKNOWN;
}

const pawl_edge *pw_machine_edge(const pawl_machine *machine, int from, int event, bool late)
{
    for (size_t i = 0; i < machine->edges_count; i++) {
        const pawl_edge *edge = &machine->edges[i];
        if (edge->from == from && edge->event == event && edge->late == late)
            return edge;
    }
    return NULL;
}

void pw_machine_accepts(const pawl_machine *machine, int state, char *to, size_t size)
{
    size_t used = 0;
    pw_print(to, size, "nothing");
    for (size_t i = 0; i < machine->edges_count; i++) {
        const pawl_edge *edge = &machine->edges[i];
        if (edge->from != state || edge->event < 0 || edge->late || used >= size)
            continue;
        pw_print(to + used, size - used, "%s%s", used > 0 ? ", " : "",
                 machine->events[edge->event]);
        used = strlen(to);
    }
}

uint32_t pw_attempts_max(const pawl_state *state)
{
    return state->attempts_max != 0 ? state->attempts_max : PW_ATTEMPTS_DEFAULT;
}

uint64_t pw_attempt_ms(const pawl_state *state)
{
    return state->attempt_ms != 0 ? state->attempt_ms : PW_ATTEMPT_MS_DEFAULT;
}

uint32_t pw_rounds_max(const pawl_machine *machine)
{
    return machine->rounds_max != 0 ? machine->rounds_max : PW_ROUNDS_DEFAULT;
}

uint32_t pw_crashes_max(const pawl_machine *machine)
{
    return machine->crash_attempts_max != 0 ? machine->crash_attempts_max : PW_CRASHES_DEFAULT;
}

uint32_t pw_workers(const pawl_machine *machine)
{
    return machine->workers != 0 ? machine->workers : PW_WORKERS_DEFAULT;
}

uint32_t pw_later_max(const pawl_machine *machine)
{
    return machine->later_max != 0 ? machine->later_max : PW_LATER_DEFAULT;
}

uint32_t pw_key_share(const pawl_machine *machine)
{
    return machine->key_share != 0 ? machine->key_share : PW_KEY_SHARE_DEFAULT;
}

uint64_t pw_retention_ms(const pawl_machine *machine)
{
    return machine->retention_ms != 0 ? machine->retention_ms : PW_RETENTION_MS_DEFAULT;
}

/* --- the check: each refusal names the row ------------------------------------------------ */

static pawl_err check_duration(const char *where, const char *field, uint64_t ms, pawl_why *why)
{
    if (ms <= PW_DURATION_MS_MAX || ms == PAWL_FOREVER)
        return PAWL_OK;
    return pw_fail(why, PAWL_E_MACHINE, "%s: %s is above %llu ms", where, field,
                   (unsigned long long)PW_DURATION_MS_MAX);
}

static pawl_err check_state_numbers(const pawl_state *state, const char *where, pawl_why *why)
{
    const struct {
        const char *field;
        uint64_t ms;
    } durations[] = {
        { "backoff_ms", state->backoff_ms },
        { "backoff_ms_max", state->backoff_ms_max },
        { "attempt_ms", state->attempt_ms },
        { "timeout_ms", state->timeout_ms },
    };
    for (size_t i = 0; i < PW_COUNT(durations); i++) {
        pawl_err err = check_duration(where, durations[i].field, durations[i].ms, why);
        if (err != PAWL_OK)
            return err;
    }
    if (state->jitter_percent > 100)
        return pw_fail(why, PAWL_E_MACHINE, "%s: jitter_percent is above 100", where);
    if (state->backoff_ms_max != 0 && state->backoff_ms > state->backoff_ms_max)
        return pw_fail(why, PAWL_E_MACHINE, "%s: backoff_ms is above backoff_ms_max", where);
    return PAWL_OK;
}

static pawl_err check_state(const pawl_machine *machine, size_t row, pawl_why *why)
{
    const pawl_state *state = &machine->states[row];
    char where[160] = "";
    pw_print(where, sizeof(where), "states[%zu]", row);
    pawl_err err = pw_check_name("name", state->name, why);
    if (err != PAWL_OK)
        return pw_fail_in(why, PAWL_E_MACHINE, "%s", where);
    pw_print(where, sizeof(where), "states[%zu] '%s'", row, state->name);
    if (pw_machine_state(machine, state->name) != (int)row)
        return pw_fail(why, PAWL_E_MACHINE, "%s: the name stands twice", where);
    if ((state->flags & PAWL_FINAL) != 0 && state->work != NULL)
        return pw_fail(why, PAWL_E_MACHINE, "%s: a final state does not work", where);
    if ((state->flags & ~(unsigned)(PAWL_START | PAWL_FINAL)) != 0)
        return pw_fail(why, PAWL_E_MACHINE, "%s: unknown flags", where);
    return check_state_numbers(state, where, why);
}

static pawl_err check_states(const pawl_machine *machine, pawl_why *why)
{
    int start = PW_STATE_UNKNOWN;
    if (machine->states == NULL)
        return pw_fail(why, PAWL_E_MACHINE, "states is NULL");
    if (machine->states_count == 0 || machine->states_count > PW_STATES_MAX)
        return pw_fail(why, PAWL_E_MACHINE, "states: %zu rows; 1 to %d are allowed",
                       machine->states_count, PW_STATES_MAX);
    for (size_t i = 0; i < machine->states_count; i++) {
        pawl_err err = check_state(machine, i, why);
        if (err != PAWL_OK)
            return err;
        if ((machine->states[i].flags & PAWL_START) == 0)
            continue;
        if (start != PW_STATE_UNKNOWN)
            return pw_fail(why, PAWL_E_MACHINE, "states[%zu] '%s': a second start state after '%s'",
                           i, machine->states[i].name, machine->states[start].name);
        start = (int)i;
    }
    if (start == PW_STATE_UNKNOWN)
        return pw_fail(why, PAWL_E_MACHINE, "states: none has PAWL_START");
    return PAWL_OK;
}

static pawl_err check_events(const pawl_machine *machine, pawl_why *why)
{
    if (machine->events == NULL && machine->events_count > 0)
        return pw_fail(why, PAWL_E_MACHINE, "events is NULL");
    if (machine->events_count > PW_EVENTS_MAX)
        return pw_fail(why, PAWL_E_MACHINE, "events: more than %d rows", PW_EVENTS_MAX);
    for (size_t i = 0; i < machine->events_count; i++) {
        pawl_err err = pw_check_name("name", machine->events[i], why);
        if (err != PAWL_OK)
            return pw_fail_in(why, PAWL_E_MACHINE, "events[%zu]", i);
    }
    for (size_t i = 0; i < machine->events_count; i++) {
        const char *name = machine->events[i];
        if (strcmp(name, built_in[0]) == 0 || strcmp(name, built_in[1]) == 0)
            return pw_fail(why, PAWL_E_MACHINE, "events[%zu] '%s': the name is built in", i, name);
        if (pw_machine_event(machine, name) != (int)i)
            return pw_fail(why, PAWL_E_MACHINE, "events[%zu] '%s': the name stands twice", i, name);
    }
    return PAWL_OK;
}

static bool same_way(const pawl_edge *a, const pawl_edge *b)
{
    return a->from == b->from && a->event == b->event && a->late == b->late;
}

static pawl_err check_edge_meaning(const pawl_machine *machine, size_t row, pawl_why *why)
{
    const pawl_edge *edge = &machine->edges[row];
    const pawl_state *from = &machine->states[edge->from];
    const char *event = pw_machine_event_name(machine, edge->event);
    if ((from->flags & PAWL_FINAL) != 0)
        return pw_fail(why, PAWL_E_MACHINE, "edges[%zu]: leaves the final state '%s'", row,
                       from->name);
    if (edge->event == PAWL_TIMEOUT && (from->timeout_ms == 0 || from->timeout_ms == PAWL_FOREVER))
        return pw_fail(why, PAWL_E_MACHINE, "edges[%zu]: timeout of '%s', which has no timeout_ms",
                       row, from->name);
    if (edge->event == PAWL_FAILED && from->work == NULL)
        return pw_fail(why, PAWL_E_MACHINE, "edges[%zu]: failed out of '%s', which does not work",
                       row, from->name);
    if (edge->late && edge->event < 0)
        return pw_fail(why, PAWL_E_MACHINE, "edges[%zu]: a late edge for the built-in event '%s'",
                       row, event);
    for (size_t i = 0; i < row; i++)
        if (same_way(&machine->edges[i], edge))
            return pw_fail(why, PAWL_E_MACHINE,
                           "edges[%zu]: a second edge for '%s' out of '%s', after edges[%zu]", row,
                           event, from->name, i);
    return PAWL_OK;
}

static pawl_err check_edges(const pawl_machine *machine, pawl_why *why)
{
    int states = (int)machine->states_count;
    int events = (int)machine->events_count;
    if (machine->edges == NULL && machine->edges_count > 0)
        return pw_fail(why, PAWL_E_MACHINE, "edges is NULL");
    if (machine->edges_count > PW_EDGES_MAX)
        return pw_fail(why, PAWL_E_MACHINE, "edges: more than %d rows", PW_EDGES_MAX);
    for (size_t i = 0; i < machine->edges_count; i++) {
        const pawl_edge *edge = &machine->edges[i];
        if (edge->from < 0 || edge->from >= states)
            return pw_fail(why, PAWL_E_MACHINE, "edges[%zu]: from is no state (%d)", i, edge->from);
        if (edge->to < 0 || edge->to >= states)
            return pw_fail(why, PAWL_E_MACHINE, "edges[%zu]: to is no state (%d)", i, edge->to);
        if (edge->event < PAWL_FAILED || edge->event >= events)
            return pw_fail(why, PAWL_E_MACHINE, "edges[%zu]: event is none (%d)", i, edge->event);
        pawl_err err = check_edge_meaning(machine, i, why);
        if (err != PAWL_OK)
            return err;
    }
    return PAWL_OK;
}

static bool has_way_out(const pawl_machine *machine, int state)
{
    for (size_t i = 0; i < machine->edges_count; i++)
        if (machine->edges[i].from == state && !machine->edges[i].late)
            return true;
    return false;
}

static pawl_err check_ways(const pawl_machine *machine, pawl_why *why)
{
    for (size_t i = 0; i < machine->states_count; i++) {
        const pawl_state *state = &machine->states[i];
        bool is_final = (state->flags & PAWL_FINAL) != 0;
        bool timed = state->timeout_ms != 0 && state->timeout_ms != PAWL_FOREVER;
        if (!is_final && !has_way_out(machine, (int)i))
            return pw_fail(why, PAWL_E_MACHINE,
                           "states[%zu] '%s': no way out; mark it PAWL_FINAL or add an edge", i,
                           state->name);
        if (timed && pw_machine_edge(machine, (int)i, PAWL_TIMEOUT, false) == NULL)
            return pw_fail(why, PAWL_E_MACHINE,
                           "states[%zu] '%s': timeout_ms without an edge for PAWL_TIMEOUT", i,
                           state->name);
    }
    return PAWL_OK;
}

static pawl_err check_reach(const pawl_machine *machine, pawl_why *why)
{
    bool reached[PW_STATES_MAX] = { false };
    reached[pw_machine_start(machine)] = true;
    for (bool more = true; more;) { /* ends: each round but the last reaches a new state */
        more = false;
        for (size_t i = 0; i < machine->edges_count; i++) {
            const pawl_edge *edge = &machine->edges[i];
            if (reached[edge->from] && !reached[edge->to])
                more = reached[edge->to] = true;
        }
    }
    for (size_t i = 0; i < machine->states_count; i++)
        if (!reached[i])
            return pw_fail(why, PAWL_E_MACHINE, "states[%zu] '%s': no way leads to it", i,
                           machine->states[i].name);
    return PAWL_OK;
}

static pawl_err check_numbers(const pawl_machine *machine, pawl_why *why)
{
    if (machine->workers > PW_WORKERS_MAX)
        return pw_fail(why, PAWL_E_MACHINE, "workers is above %d", PW_WORKERS_MAX);
    if (machine->key_share > 100)
        return pw_fail(why, PAWL_E_MACHINE, "key_share is above 100 per cent");
    return check_duration("machine", "retention_ms", machine->retention_ms, why);
}

pawl_err pawl_machine_check(const pawl_machine *machine, pawl_why *why)
{
    static pawl_err (*const checks[])(const pawl_machine *, pawl_why *) = {
        check_numbers, check_states, check_events, check_edges, check_ways, check_reach,
    };
    if (machine == NULL)
        return pw_fail(why, PAWL_E_USAGE, "machine is NULL");
    if (pw_check_name("name", machine->name, why) != PAWL_OK)
        return pw_fail_in(why, PAWL_E_MACHINE, "machine");
    for (size_t i = 0; i < PW_COUNT(checks); i++)
        if (checks[i](machine, why) != PAWL_OK)
            return pw_fail_in(why, PAWL_E_MACHINE, "machine '%s'", machine->name);
    return PAWL_OK;
}
