/* SPDX-License-Identifier: Apache-2.0
 *
 * src/core/machine: each refusal of the check names its row; look-ups and defaults. */
#include <limits.h>
#include <string.h>

#include "base/base.h"
#include "base/limits.h"
#include "core/machine.h"
#include "support/test.h"

static pawl_outcome work(pawl_task *task)
{
    (void)task;
    return pawl_raise(0);
}

enum { CART, CHARGING, PAID, CANCELLED, CLOSED, STATES };
enum { SUBMIT, CHARGED, CANCEL, SHIP, EVENTS };

/* A machine that is fine, each part of which a case may change. */
struct sample {
    pawl_state states[STATES];
    const char *events[EVENTS];
    pawl_edge edges[9];
    pawl_machine machine;
};

static void make(struct sample *s)
{
    *s = (struct sample){
        .states = {
            [CART] = { .name = "cart", .flags = PAWL_START },
            [CHARGING] = { .name = "charging", .work = work },
            [PAID] = { .name = "paid" },
            [CANCELLED] = { .name = "cancelled", .timeout_ms = 1000 },
            [CLOSED] = { .name = "closed", .flags = PAWL_FINAL },
        },
        .events = { "submit", "charged", "cancel", "ship" },
        .edges = {
            { .from = CART, .event = SUBMIT, .to = CHARGING },
            { .from = CHARGING, .event = CHARGED, .to = PAID },
            { .from = CHARGING, .event = PAWL_FAILED, .to = CART },
            { .from = CHARGING, .event = CANCEL, .to = CANCELLED },
            { .from = CANCELLED, .event = CHARGED, .to = PAID, .late = true },
            { .from = CANCELLED, .event = PAWL_TIMEOUT, .to = CLOSED },
            { .from = PAID, .event = SHIP, .to = CLOSED },
            { .from = PAID, .event = CHARGED, .to = PAID, .late = true },
            { .from = PAID, .event = CHARGED, .to = PAID },
        },
        .machine = { .name = "order" },
    };
    s->machine.states = s->states;
    s->machine.states_count = STATES;
    s->machine.events = s->events;
    s->machine.events_count = EVENTS;
    s->machine.edges = s->edges;
    s->machine.edges_count = PW_COUNT(s->edges);
}

static char name_64[] = "aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffgggg";
static char name_65[] = "aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffggggg";

/* --- changes ------------------------------------------------------------------------------ */

#define CHANGE(name, statement)                                                                    \
    static void name(struct sample *s)                                                             \
    {                                                                                              \
        statement;                                                                                 \
    }

CHANGE(nothing, (void)s)
CHANGE(machine_name_null, s->machine.name = NULL)
CHANGE(machine_name_empty, s->machine.name = "")
CHANGE(machine_name_dotted, s->machine.name = "or.der")
CHANGE(machine_name_64, s->machine.name = name_64)
CHANGE(machine_name_65, s->machine.name = name_65)
CHANGE(machine_name_led, s->machine.name = "_fence")
CHANGE(states_null, s->machine.states = NULL)
CHANGE(states_none, s->machine.states_count = 0)
CHANGE(no_start, s->states[CART].flags = 0)
CHANGE(two_starts, s->states[PAID].flags = PAWL_START)
CHANGE(state_name_null, s->states[PAID].name = NULL)
CHANGE(state_name_empty, s->states[PAID].name = "")
CHANGE(state_name_blank, s->states[PAID].name = "pa id")
CHANGE(state_name_led, s->states[PAID].name = "_paid")
CHANGE(state_name_64, s->states[PAID].name = name_64)
CHANGE(state_name_65, s->states[PAID].name = name_65)
CHANGE(state_name_twice, s->states[CLOSED].name = "cart")
CHANGE(state_flags, s->states[PAID].flags = 4)
CHANGE(final_works, s->states[CLOSED].work = work)
CHANGE(start_and_final, s->states[CLOSED].flags = PAWL_START | PAWL_FINAL;
       s->states[CART].flags = 0)
CHANGE(jitter_100, s->states[CHARGING].jitter_percent = 100)
CHANGE(jitter_101, s->states[CHARGING].jitter_percent = 101)
CHANGE(backoff_above_cap, s->states[CHARGING].backoff_ms = 1001;
       s->states[CHARGING].backoff_ms_max = 1000)
CHANGE(backoff_at_cap, s->states[CHARGING].backoff_ms = 1000;
       s->states[CHARGING].backoff_ms_max = 1000)
CHANGE(backoff_too_long, s->states[CHARGING].backoff_ms = PW_DURATION_MS_MAX + 1)
CHANGE(backoff_max_too_long, s->states[CHARGING].backoff_ms_max = PW_DURATION_MS_MAX + 1)
CHANGE(attempt_too_long, s->states[CHARGING].attempt_ms = PW_DURATION_MS_MAX + 1)
CHANGE(attempt_longest, s->states[CHARGING].attempt_ms = PW_DURATION_MS_MAX)
CHANGE(attempt_forever, s->states[CHARGING].attempt_ms = PAWL_FOREVER)
CHANGE(timeout_too_long, s->states[CANCELLED].timeout_ms = PW_DURATION_MS_MAX + 1)
CHANGE(timeout_forever, s->states[CANCELLED].timeout_ms = PAWL_FOREVER)
CHANGE(timeout_no_edge, s->states[PAID].timeout_ms = 5)
CHANGE(timeout_forever_no_edge, s->states[PAID].timeout_ms = PAWL_FOREVER)
CHANGE(final_timeout, s->states[CLOSED].timeout_ms = 5)
CHANGE(working_timeout_no_edge, s->states[CHARGING].timeout_ms = 5)
CHANGE(edge_no_timeout, s->states[CANCELLED].timeout_ms = 0)
CHANGE(no_failed_edge, s->edges[2].event = CANCEL; s->edges[3].event = SHIP)
CHANGE(waits_no_way, s->edges[6].from = s->edges[8].from = CART)
CHANGE(waits_late_way_only, s->edges[6].from = CART; s->edges[8] = s->edges[7];
       s->machine.edges_count = 8)
CHANGE(works_no_way, s->edges[1].from = s->edges[3].from = CART;
       s->edges[2] = ((pawl_edge){ .from = CART, .event = SHIP, .to = PAID }))
CHANGE(unreachable, s->edges[3].to = PAID)
CHANGE(reached_late_only, s->edges[1].to = CART; s->edges[8].to = CART)
CHANGE(out_of_final, s->edges[6].from = CLOSED)
CHANGE(late_out_of_final, s->edges[7].from = CLOSED)
CHANGE(edge_twice, s->edges[3].event = CHARGED)
CHANGE(late_edge_twice, s->edges[8].late = true)
CHANGE(failed_waiting, s->edges[6].event = PAWL_FAILED)
CHANGE(timeout_of_untimed, s->edges[6].event = PAWL_TIMEOUT)
CHANGE(late_timeout, s->edges[5].late = true)
CHANGE(late_failed, s->edges[2].late = true)
CHANGE(from_low, s->edges[4].from = -1)
CHANGE(from_high, s->edges[4].from = STATES)
CHANGE(from_lowest, s->edges[4].from = INT_MIN)
CHANGE(to_low, s->edges[4].to = -1)
CHANGE(to_high, s->edges[4].to = STATES)
CHANGE(to_highest, s->edges[4].to = INT_MAX)
CHANGE(event_low, s->edges[4].event = -3)
CHANGE(event_high, s->edges[4].event = EVENTS)
CHANGE(edges_null, s->machine.edges = NULL)
CHANGE(edges_none, s->machine.edges = NULL; s->machine.edges_count = 0)
CHANGE(events_null, s->machine.events = NULL)
CHANGE(event_null, s->events[CANCEL] = NULL)
CHANGE(event_empty, s->events[CANCEL] = "")
CHANGE(event_led, s->events[CANCEL] = "_x")
CHANGE(event_bytes, s->events[CANCEL] = "caf\xc3\xa9")
CHANGE(event_64, s->events[CANCEL] = name_64)
CHANGE(event_65, s->events[CANCEL] = name_65)
CHANGE(event_twice, s->events[SHIP] = "submit")
CHANGE(event_timeout, s->events[CANCEL] = "timeout")
CHANGE(event_failed, s->events[CANCEL] = "failed")
CHANGE(workers_most, s->machine.workers = PW_WORKERS_MAX)
CHANGE(workers_above, s->machine.workers = PW_WORKERS_MAX + 1)
CHANGE(share_100, s->machine.key_share = 100)
CHANGE(share_101, s->machine.key_share = 101)
CHANGE(retention_forever, s->machine.retention_ms = PAWL_FOREVER)
CHANGE(retention_too_long, s->machine.retention_ms = PAWL_FOREVER - 1)

/* The start of what is said behind "machine 'order': "; NULL: the machine is fine. */
static const struct {
    const char *name;
    void (*change)(struct sample *s);
    const char *says;
} cases[] = {
#define FINE(change)                                                                               \
    {                                                                                              \
#change, change, NULL                                                                      \
    }
#define SAYS(change, text)                                                                         \
    {                                                                                              \
#change, change, text                                                                      \
    }
    FINE(nothing),
    FINE(machine_name_64),
    FINE(state_name_64),
    FINE(event_64),
    FINE(jitter_100),
    FINE(backoff_at_cap),
    FINE(attempt_longest),
    FINE(attempt_forever),
    FINE(timeout_forever_no_edge),
    FINE(no_failed_edge),
    FINE(reached_late_only),
    FINE(workers_most),
    FINE(share_100),
    FINE(retention_forever),
    SAYS(states_null, "states is NULL"),
    SAYS(states_none, "states: 0 rows; 1 to 256 are allowed"),
    SAYS(no_start, "states: none has PAWL_START"),
    SAYS(two_starts, "states[2] 'paid': a second start state after 'cart'"),
    SAYS(state_name_null, "states[2]: name is empty"),
    SAYS(state_name_empty, "states[2]: name is empty"),
    SAYS(state_name_blank, "states[2]: name: byte 0x20 at 2; allowed are"),
    SAYS(state_name_led, "states[2]: name '_paid' begins with '_'"),
    SAYS(state_name_65,
         "states[2]: name 'aaaaaaaaaabbbbbbbbbbccccccccccdd...' is longer than 64 bytes"),
    SAYS(state_name_twice, "states[4] 'cart': the name stands twice"),
    SAYS(state_flags, "states[2] 'paid': unknown flags"),
    SAYS(final_works, "states[4] 'closed': a final state does not work"),
    SAYS(start_and_final, "states[0] 'cart': no way leads to it"),
    SAYS(jitter_101, "states[1] 'charging': jitter_percent is above 100"),
    SAYS(backoff_above_cap, "states[1] 'charging': backoff_ms is above backoff_ms_max"),
    SAYS(backoff_too_long, "states[1] 'charging': backoff_ms is above 31622400000000 ms"),
    SAYS(backoff_max_too_long, "states[1] 'charging': backoff_ms_max is above 31622400000000 ms"),
    SAYS(attempt_too_long, "states[1] 'charging': attempt_ms is above 31622400000000 ms"),
    SAYS(timeout_too_long, "states[3] 'cancelled': timeout_ms is above 31622400000000 ms"),
    SAYS(timeout_forever, "edges[5]: timeout of 'cancelled', which has no timeout_ms"),
    SAYS(timeout_no_edge, "states[2] 'paid': timeout_ms without an edge for PAWL_TIMEOUT"),
    SAYS(final_timeout, "states[4] 'closed': timeout_ms without an edge for PAWL_TIMEOUT"),
    SAYS(working_timeout_no_edge,
         "states[1] 'charging': timeout_ms without an edge for PAWL_TIMEOUT"),
    SAYS(edge_no_timeout, "edges[5]: timeout of 'cancelled', which has no timeout_ms"),
    SAYS(waits_no_way, "states[2] 'paid': no way out; mark it PAWL_FINAL or add an edge"),
    SAYS(waits_late_way_only, "states[2] 'paid': no way out; mark it PAWL_FINAL or add an edge"),
    SAYS(works_no_way, "states[1] 'charging': no way out; mark it PAWL_FINAL or add an edge"),
    SAYS(unreachable, "states[3] 'cancelled': no way leads to it"),
    SAYS(out_of_final, "edges[6]: leaves the final state 'closed'"),
    SAYS(late_out_of_final, "edges[7]: leaves the final state 'closed'"),
    SAYS(edge_twice, "edges[3]: a second edge for 'charged' out of 'charging', after edges[1]"),
    SAYS(late_edge_twice, "edges[8]: a second edge for 'charged' out of 'paid', after edges[7]"),
    SAYS(failed_waiting, "edges[6]: failed out of 'paid', which does not work"),
    SAYS(timeout_of_untimed, "edges[6]: timeout of 'paid', which has no timeout_ms"),
    SAYS(late_timeout, "edges[5]: a late edge for the built-in event 'timeout'"),
    SAYS(late_failed, "edges[2]: a late edge for the built-in event 'failed'"),
    SAYS(from_low, "edges[4]: from is no state (-1)"),
    SAYS(from_high, "edges[4]: from is no state (5)"),
    SAYS(from_lowest, "edges[4]: from is no state (-2147483648)"),
    SAYS(to_low, "edges[4]: to is no state (-1)"),
    SAYS(to_high, "edges[4]: to is no state (5)"),
    SAYS(to_highest, "edges[4]: to is no state (2147483647)"),
    SAYS(event_low, "edges[4]: event is none (-3)"),
    SAYS(event_high, "edges[4]: event is none (4)"),
    SAYS(edges_null, "edges is NULL"),
    SAYS(edges_none, "states[0] 'cart': no way out; mark it PAWL_FINAL or add an edge"),
    SAYS(events_null, "events is NULL"),
    SAYS(event_null, "events[2]: name is empty"),
    SAYS(event_empty, "events[2]: name is empty"),
    SAYS(event_led, "events[2]: name '_x' begins with '_'"),
    SAYS(event_bytes, "events[2]: name: byte 0xc3 at 3; allowed are"),
    SAYS(event_65, "events[2]: name 'aaaaaaaaaabbbbbbbbbbccccccccccdd...' is longer than 64 bytes"),
    SAYS(event_twice, "events[3] 'submit': the name stands twice"),
    SAYS(event_timeout, "events[2] 'timeout': the name is built in"),
    SAYS(event_failed, "events[2] 'failed': the name is built in"),
    SAYS(workers_above, "workers is above 256"),
    SAYS(share_101, "key_share is above 100 per cent"),
    SAYS(retention_too_long, "machine: retention_ms is above 31622400000000 ms"),
};

static void each_refusal_names_its_row(void **state)
{
    (void)state;
    for (size_t i = 0; i < PW_COUNT(cases); i++) {
        struct sample s;
        pawl_why why = { "" };
        make(&s);
        cases[i].change(&s);
        pawl_err expected = cases[i].says != NULL ? PAWL_E_MACHINE : PAWL_OK;
        pawl_err err = pawl_machine_check(&s.machine, &why);
        if (err != expected)
            fail_msg("%s: %s: %s", cases[i].name, pawl_err_name(err), why.text);
        assert_int_equal(pawl_machine_check(&s.machine, NULL), expected);
        if (expected == PAWL_OK)
            continue;
        char text[300] = "";
        pw_print(text, sizeof(text), "machine 'order': %s", cases[i].says);
        if (strncmp(why.text, text, strlen(text)) != 0)
            fail_msg("%s says: %s", cases[i].name, why.text);
    }
}

static void a_machine_needs_a_name(void **state)
{
    (void)state;
    static const struct {
        void (*change)(struct sample *s);
        const char *says;
    } names[] = {
        { machine_name_null, "machine: name is empty" },
        { machine_name_empty, "machine: name is empty" },
        { machine_name_dotted, "machine: name: byte 0x2e at 2; allowed are A-Z a-z 0-9 _ -" },
        { machine_name_65,
          "machine: name 'aaaaaaaaaabbbbbbbbbbccccccccccdd...' is longer than 64 bytes" },
        { machine_name_led, "machine: name '_fence' begins with '_'" },
    };
    pawl_why why = { "" };
    for (size_t i = 0; i < PW_COUNT(names); i++) {
        struct sample s;
        make(&s);
        names[i].change(&s);
        assert_int_equal(pawl_machine_check(&s.machine, &why), PAWL_E_MACHINE);
        assert_string_equal(why.text, names[i].says);
    }
    assert_int_equal(pawl_machine_check(NULL, &why), PAWL_E_USAGE);
    assert_string_equal(why.text, "machine is NULL");
}

/* A ring of `states_count` waiting states, all with the same event, and a final one behind the
 * last. */
struct large {
    char names[PW_STATES_MAX + 1][8];
    pawl_state states[PW_STATES_MAX + 1];
    char event_names[PW_EVENTS_MAX + 1][8];
    const char *events[PW_EVENTS_MAX + 1];
    pawl_edge edges[PW_EDGES_MAX + 1];
    pawl_machine machine;
};

static void make_large(struct large *l, size_t states, size_t events, size_t edges)
{
    for (size_t i = 0; i < states; i++) {
        pw_print(l->names[i], sizeof(l->names[i]), "s%zu", i);
        l->states[i] = (pawl_state){ .name = l->names[i], .flags = i == 0 ? PAWL_START : 0 };
    }
    for (size_t i = 0; i < events; i++) {
        pw_print(l->event_names[i], sizeof(l->event_names[i]), "e%zu", i);
        l->events[i] = l->event_names[i];
    }
    for (size_t i = 0; i < edges; i++)
        l->edges[i] = (pawl_edge){ .from = (int)(i % states),
                                   .event = (int)(i / states),
                                   .to = (int)((i + 1) % states) };
    l->machine = (pawl_machine){
        .name = "large",
        .states = l->states,
        .states_count = states,
        .events = l->events,
        .events_count = events,
        .edges = l->edges,
        .edges_count = edges,
    };
}

static void as_large_as_the_limits_and_no_larger(void **state)
{
    (void)state;
    pawl_why why = { "" };
    struct large *l = pw_alloc(sizeof(*l));
    assert_non_null(l);
    make_large(l, PW_STATES_MAX, PW_EVENTS_MAX, PW_EDGES_MAX);
    assert_int_equal(pawl_machine_check(&l->machine, &why), PAWL_OK);
    make_large(l, PW_STATES_MAX + 1, 4, PW_EDGES_MAX);
    assert_int_equal(pawl_machine_check(&l->machine, &why), PAWL_E_MACHINE);
    assert_string_equal(why.text, "machine 'large': states: 257 rows; 1 to 256 are allowed");
    make_large(l, 8, PW_EVENTS_MAX + 1, 8);
    assert_int_equal(pawl_machine_check(&l->machine, &why), PAWL_E_MACHINE);
    assert_string_equal(why.text, "machine 'large': events: more than 256 rows");
    make_large(l, 8, PW_EVENTS_MAX, PW_EDGES_MAX + 1);
    assert_int_equal(pawl_machine_check(&l->machine, &why), PAWL_E_MACHINE);
    assert_string_equal(why.text, "machine 'large': edges: more than 1024 rows");
    l->machine.states_count = l->machine.events_count = l->machine.edges_count =
        SIZE_MAX; /* nothing is read */
    assert_int_equal(pawl_machine_check(&l->machine, NULL), PAWL_E_MACHINE);
    pw_free(l);
}

static void looks_up(void **state)
{
    (void)state;
    struct sample s;
    make(&s);
    const pawl_machine *m = &s.machine;
    assert_int_equal(pw_machine_state(m, "cart"), CART);
    assert_int_equal(pw_machine_state(m, "closed"), CLOSED);
    assert_int_equal(pw_machine_state(m, "clos"), PW_STATE_UNKNOWN);
    assert_int_equal(pw_machine_state(m, ""), PW_STATE_UNKNOWN);
    assert_int_equal(pw_machine_start(m), CART);
    no_start(&s);
    assert_int_equal(pw_machine_start(m), PW_STATE_UNKNOWN);

    assert_int_equal(pw_machine_event(m, "submit"), SUBMIT);
    assert_int_equal(pw_machine_event(m, "timeout"), PAWL_TIMEOUT);
    assert_int_equal(pw_machine_event(m, "failed"), PAWL_FAILED);
    assert_int_equal(pw_machine_event(m, "nothing"), PW_EVENT_UNKNOWN);
    for (int event = PAWL_FAILED; event < EVENTS; event++)
        assert_int_equal(pw_machine_event(m, pw_machine_event_name(m, event)), event);
    assert_string_equal(pw_machine_event_name(m, EVENTS), "?");
    assert_string_equal(pw_machine_event_name(m, PW_EVENT_UNKNOWN), "?");
    assert_string_equal(pw_machine_event_name(m, INT_MIN), "?");

    assert_ptr_equal(pw_machine_edge(m, CART, SUBMIT, false), &s.edges[0]);
    assert_null(pw_machine_edge(m, CART, SUBMIT, true));
    assert_ptr_equal(pw_machine_edge(m, PAID, CHARGED, true), &s.edges[7]);
    assert_ptr_equal(pw_machine_edge(m, PAID, CHARGED, false), &s.edges[8]);
    assert_null(pw_machine_edge(m, CANCELLED, CHARGED, false));
    assert_null(pw_machine_edge(m, PW_STATE_UNKNOWN, SUBMIT, false));
    assert_null(pw_machine_edge(m, CART, PW_EVENT_UNKNOWN, false));
}

static void says_what_a_state_accepts(void **state)
{
    (void)state;
    struct sample s;
    char text[64] = "";
    make(&s);
    pw_machine_accepts(&s.machine, CHARGING, text, sizeof(text));
    assert_string_equal(text, "charged, cancel"); /* neither timeout nor failed */
    pw_machine_accepts(&s.machine, PAID, text, sizeof(text));
    assert_string_equal(text, "ship, charged"); /* the late one is not for commands */
    pw_machine_accepts(&s.machine, CANCELLED, text, sizeof(text));
    assert_string_equal(text, "nothing");
    pw_machine_accepts(&s.machine, CLOSED, text, sizeof(text));
    assert_string_equal(text, "nothing");
    for (size_t size = 1; size < 16; size++) { /* cut, never past the end */
        memset(text, '#', sizeof(text));
        pw_machine_accepts(&s.machine, CHARGING, text, size);
        assert_int_equal(strlen(text), size - 1);
        assert_memory_equal(text, "charged, cancel", size - 1);
        assert_int_equal(text[size], '#');
    }
}

static void zeros_take_the_defaults(void **state)
{
    (void)state;
    static const pawl_state plain = { .name = "s" };
    static const pawl_state set = { .name = "s", .attempts_max = 1, .attempt_ms = 7 };
    static const pawl_machine bare = { .name = "m" };
    static const pawl_machine full = {
        .name = "m",
        .workers = 256,
        .later_max = 1,
        .key_share = 100,
        .rounds_max = 3,
        .crash_attempts_max = 2,
        .retention_ms = PAWL_FOREVER,
    };
    assert_int_equal(pw_attempts_max(&plain), 5);
    assert_int_equal(pw_attempts_max(&set), 1);
    assert_int_equal(pw_attempt_ms(&plain), 5 * 60 * 1000);
    assert_int_equal(pw_attempt_ms(&set), 7);
    assert_int_equal(pw_rounds_max(&bare), 100);
    assert_int_equal(pw_rounds_max(&full), 3);
    assert_int_equal(pw_crashes_max(&bare), 5);
    assert_int_equal(pw_crashes_max(&full), 2);
    assert_int_equal(pw_workers(&bare), 4);
    assert_int_equal(pw_workers(&full), 256);
    assert_int_equal(pw_later_max(&bare), 10000);
    assert_int_equal(pw_later_max(&full), 1);
    assert_int_equal(pw_key_share(&bare), 50);
    assert_int_equal(pw_key_share(&full), 100);
    assert_int_equal(pw_retention_ms(&bare), 7 * 24 * 60 * 60 * 1000);
    assert_true(pw_retention_ms(&full) == PAWL_FOREVER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_refusal_names_its_row),
        cmocka_unit_test(a_machine_needs_a_name),
        cmocka_unit_test(as_large_as_the_limits_and_no_larger),
        cmocka_unit_test(looks_up),
        cmocka_unit_test(says_what_a_state_accepts),
        cmocka_unit_test(zeros_take_the_defaults),
    };
    return cmocka_run_group_tests(tests, leaks_begin, leaks_end);
}
