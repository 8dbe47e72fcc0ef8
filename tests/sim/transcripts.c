/* SPDX-License-Identifier: Apache-2.0
 *
 * The engine's behaviour, as transcripts in virtual time: an order that is charged, and all that
 * can come between. */
#include "support/world.h"

enum { CART, CHARGING, PAID, SHIPPED, CANCELLED, REFUNDING, CLOSED };
enum { SUBMIT, CHARGED, DECLINED, SHIP, CANCEL, REFUNDED };

/* What the gateway answers, one letter a call: o ok, d declined, b busy, w wait a minute, f gives
 * up, l later, ? an event that its state has no edge for. */
struct gateway {
    const char *script;
    size_t calls;
    pawl_task *open;
    char seen[64]; /* of the last call: data, error of the attempt before, trace */
    char keys[2][64];
};

static void look_around(struct gateway *gateway, const pawl_task *task)
{
    pawl_bytes data = pawl_task_data(task);
    (void)snprintf(gateway->seen, sizeof(gateway->seen), "%.*s|%s|%.10s", (int)data.size,
                   (const char *)data.data, pawl_task_error(task), pawl_task_trace(task));
    (void)snprintf(gateway->keys[pawl_task_attempt(task) % 2], sizeof(gateway->keys[0]), "%s",
                   pawl_task_key(task));
}

static pawl_outcome charge(pawl_task *task)
{
    struct gateway *gateway = pawl_task_env(task);
    char answer = gateway->script[gateway->calls];
    gateway->calls += answer != '\0' ? 1 : 0;
    look_around(gateway, task);
    switch (answer) {
    case '\0': /* the script is over */
    case 'o':
        return pawl_raise(CHARGED);
    case 'd':
        pawl_task_save(task, pawl_str("no money"));
        return pawl_raise(DECLINED);
    case 'f':
        return pawl_fail("card stolen");
    case 'w':
        return pawl_retry_after("ask in a minute", 60000);
    case 'l':
        gateway->open = task;
        return pawl_later(task);
    case '?':
        return pawl_raise(SHIP);
    default:
        return pawl_retry("gateway busy");
    }
}

static pawl_outcome refund(pawl_task *task)
{
    (void)task;
    return pawl_raise(REFUNDED);
}

static const pawl_state states[] = {
    [CART] = { .name = "cart", .flags = PAWL_START },
    [CHARGING] = { .name = "charging", .work = charge, .attempts_max = 3, .backoff_ms = 1000 },
    [PAID] = { .name = "paid" },
    [SHIPPED] = { .name = "shipped", .flags = PAWL_FINAL },
    [CANCELLED] = { .name = "cancelled", .timeout_ms = 3600000 },
    [REFUNDING] = { .name = "refunding", .work = refund },
    [CLOSED] = { .name = "closed", .flags = PAWL_FINAL },
};
static const char *const events[] = {
    [SUBMIT] = "submit", [CHARGED] = "charged", [DECLINED] = "declined",
    [SHIP] = "ship",     [CANCEL] = "cancel",   [REFUNDED] = "refunded",
};
static const pawl_edge edges[] = {
    { .from = CART, .event = SUBMIT, .to = CHARGING },
    { .from = CHARGING, .event = CHARGED, .to = PAID },
    { .from = CHARGING, .event = DECLINED, .to = CART },
    { .from = CHARGING, .event = PAWL_FAILED, .to = CART },
    { .from = CHARGING, .event = CANCEL, .to = CANCELLED },
    { .from = PAID, .event = SHIP, .to = SHIPPED },
    { .from = PAID, .event = CANCEL, .to = CANCELLED },
    { .from = CANCELLED, .event = CHARGED, .to = REFUNDING, .late = true },
    { .from = CANCELLED, .event = PAWL_TIMEOUT, .to = CLOSED },
    { .from = REFUNDING, .event = REFUNDED, .to = CLOSED },
};
static const pawl_machine order = {
    .name = "order",
    PAWL_STATES(states),
    PAWL_EVENTS(events),
    PAWL_EDGES(edges),
};

static pawl_world *submitted(struct gateway *gateway)
{
    pawl_world *w = pawl_world_open(&order, gateway, 1);
    assert_int_equal(pawl_world_create(w, "42", pawl_str("19.90")), PAWL_OK);
    assert_int_equal(pawl_world_send(w, "42", SUBMIT), PAWL_OK);
    return w;
}

static void finish(pawl_world *w)
{
    expect_right(w);
    pawl_world_close(w);
}

/* --- attempts ----------------------------------------------------------------------------- */

static void retries_and_moves_on(void **state)
{
    (void)state;
    struct gateway gateway = { .script = "bo" };
    pawl_world *w = submitted(&gateway);
    PAWL_EXPECT(w, "0       order/42 cart --submit--> charging\n"
                   "0       order/42 charging #1 retry: gateway busy\n"
                   "1000    order/42 charging #2 --charged--> paid\n");
    assert_string_equal(gateway.seen, "19.90|gateway busy|");
    assert_string_equal(gateway.keys[0], gateway.keys[1]); /* one key for all attempts */
    finish(w);
}

static void gives_up_after_its_attempts(void **state)
{
    (void)state;
    struct gateway gateway = { .script = "bbb" };
    pawl_world *w = submitted(&gateway);
    PAWL_EXPECT(w, "0       order/42 cart --submit--> charging\n"
                   "0       order/42 charging #1 retry: gateway busy\n"
                   "1000    order/42 charging #2 retry: gateway busy\n"
                   "3000    order/42 charging #3 --failed--> cart: gateway busy\n");
    finish(w);
}

/* The count of attempts is handed on by failed alone. */
static void a_new_submit_begins_anew(void **state)
{
    (void)state;
    struct gateway gateway = { .script = "bbbbo" };
    pawl_world *w = submitted(&gateway);
    pawl_world_run(w);
    pawl_world_clear(w);
    assert_int_equal(pawl_world_send(w, "42", SUBMIT), PAWL_OK);
    PAWL_EXPECT(w, "3000    order/42 cart --submit--> charging\n"
                   "3000    order/42 charging #1 retry: gateway busy\n"
                   "4000    order/42 charging #2 --charged--> paid\n");
    finish(w);
}

static void waits_as_long_as_it_was_told(void **state)
{
    (void)state;
    struct gateway gateway = { .script = "wo" };
    pawl_world *w = submitted(&gateway);
    PAWL_EXPECT(w, "0       order/42 cart --submit--> charging\n"
                   "0       order/42 charging #1 retry: ask in a minute\n"
                   "60000   order/42 charging #2 --charged--> paid\n");
    finish(w);
}

static void a_declined_card_may_be_tried_again(void **state)
{
    (void)state;
    struct gateway gateway = { .script = "do" };
    pawl_world *w = submitted(&gateway);
    PAWL_EXPECT(w, "0       order/42 cart --submit--> charging\n"
                   "0       order/42 charging #1 --declined--> cart\n");
    pawl_entity *entity = look(w, "order", "42");
    assert_memory_equal(entity->data.data, "no money", entity->data.size);
    pawl_entity_free(entity);
    pawl_event options = { .data = pawl_str("20.00"),
                           .has_data = true,
                           .trace = "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01" };
    assert_int_equal(pawl_send(pawl_world_engine(w), "order", "42", "submit", &options, NULL),
                     PAWL_OK);
    pawl_world_run(w);
    assert_string_equal(gateway.seen, "20.00||00-0123456");
    expect_state(w, "order", "42", "paid");
    finish(w);
}

static void gives_up_at_once(void **state)
{
    (void)state;
    struct gateway gateway = { .script = "f" };
    pawl_world *w = submitted(&gateway);
    PAWL_EXPECT(w, "0       order/42 cart --submit--> charging\n"
                   "0       order/42 charging #1 --failed--> cart: card stolen\n");
    pawl_entity *entity = look(w, "order", "42");
    assert_string_equal(entity->error, "card stolen");
    pawl_entity_free(entity);
    finish(w);
}

static void an_event_without_an_edge_is_a_failure(void **state)
{
    (void)state;
    struct gateway gateway = { .script = "?" };
    pawl_world *w = submitted(&gateway);
    PAWL_EXPECT(w,
                "0       order/42 cart --submit--> charging\n"
                "0       order/42 charging #1 --failed--> cart: the work raised an event that its "
                "state has no edge for\n");
    finish(w);
}

/* --- the race between cancel and charge --------------------------------------------------- */

static void a_charge_that_won_after_all_is_refunded(void **state)
{
    (void)state;
    struct gateway gateway = { .script = "l" };
    pawl_world *w = submitted(&gateway);
    pawl_world_run_for(w, 500);
    assert_int_equal(pawl_world_send(w, "42", CANCEL), PAWL_OK);
    pawl_world_run_for(w, 500);
    assert_false(pawl_task_cancelled(gateway.open)); /* its outcome may still be of use */
    assert_int_equal(pawl_complete(gateway.open, pawl_raise(CHARGED)), PAWL_OK);
    PAWL_EXPECT(w, "0       order/42 cart --submit--> charging\n"
                   "500     order/42 charging --cancel--> cancelled\n"
                   "1000    order/42 cancelled #1 --charged (late)--> refunding\n"
                   "1000    order/42 refunding #1 --refunded--> closed\n");
    finish(w);
}

static void a_decline_that_comes_late_is_refused(void **state)
{
    (void)state;
    struct gateway gateway = { .script = "l" };
    pawl_world *w = submitted(&gateway);
    pawl_world_run_for(w, 500);
    assert_int_equal(pawl_world_send(w, "42", CANCEL), PAWL_OK);
    assert_int_equal(pawl_complete(gateway.open, pawl_raise(DECLINED)), PAWL_OK);
    PAWL_EXPECT(w, "0       order/42 cart --submit--> charging\n"
                   "500     order/42 charging --cancel--> cancelled\n"
                   "3600500 order/42 cancelled --timeout--> closed\n");
    assert_int_equal(METRIC(w, refused_stale), 1);
    finish(w);
}

/* From paid no charge is under way: a late edge takes outcomes only. */
static void a_late_edge_takes_no_event(void **state)
{
    (void)state;
    struct gateway gateway = { .script = "o" };
    pawl_world *w = submitted(&gateway);
    pawl_world_run(w);
    assert_int_equal(pawl_world_send(w, "42", CANCEL), PAWL_OK);
    assert_int_equal(pawl_world_send(w, "42", CHARGED), PAWL_E_NO_EDGE);
    finish(w);
}

/* --- torture ------------------------------------------------------------------------------ */

static void scenario(pawl_world *w)
{
    char id[16] = "";
    for (int i = 0; i < 5; i++) {
        (void)snprintf(id, sizeof(id), "%d", i);
        (void)pawl_world_create(w, id, pawl_str("1"));
        (void)pawl_world_send(w, id, SUBMIT);
    }
    pawl_world_run(w);
    (void)pawl_world_send(w, "1", SHIP);
    (void)pawl_world_send(w, "2", CANCEL);
}

static void survives_a_crash_at_every_operation(void **state)
{
    (void)state;
    struct gateway gateway = { .script = "" };
    pawl_torture(&order, &gateway, scenario);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(retries_and_moves_on),
        cmocka_unit_test(gives_up_after_its_attempts),
        cmocka_unit_test(a_new_submit_begins_anew),
        cmocka_unit_test(waits_as_long_as_it_was_told),
        cmocka_unit_test(a_declined_card_may_be_tried_again),
        cmocka_unit_test(gives_up_at_once),
        cmocka_unit_test(an_event_without_an_edge_is_a_failure),
        cmocka_unit_test(a_charge_that_won_after_all_is_refunded),
        cmocka_unit_test(a_decline_that_comes_late_is_refused),
        cmocka_unit_test(a_late_edge_takes_no_event),
        cmocka_unit_test(survives_a_crash_at_every_operation),
    };
    return cmocka_run_group_tests(tests, leaks_begin, leaks_end);
}
