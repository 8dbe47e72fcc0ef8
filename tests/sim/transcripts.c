/* SPDX-License-Identifier: Apache-2.0
 *
 * The engine's behaviour, as transcripts in virtual time. */
#include <stdio.h>

#include "pawl/test.h"
#include "support/test.h"

enum { CART, CHARGING, PAID, SHIPPED, CANCELLED, REFUNDING, CLOSED };
enum { SUBMIT, CHARGED, DECLINED, SHIP, CANCEL, REFUNDED };

/* What the gateway answers, one letter a call: o ok, d declined, b busy, f gives up. */
struct gateway {
    const char *script;
    size_t calls;
};

static pawl_outcome charge(pawl_task *task)
{
    struct gateway *gateway = pawl_task_env(task);
    char answer = gateway->script[gateway->calls];
    gateway->calls += answer != '\0' ? 1 : 0;
    switch (answer) {
    case '\0': /* the script is over */
    case 'o':
        return pawl_raise(CHARGED);
    case 'd':
        return pawl_raise(DECLINED);
    case 'f':
        return pawl_fail("card stolen");
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

static void retries_and_moves_on(void **state)
{
    (void)state;
    struct gateway gateway = { .script = "bo" };
    pawl_world *w = pawl_world_open(&order, &gateway, 1);
    assert_int_equal(pawl_world_create(w, "42", pawl_str("19.90")), PAWL_OK);
    assert_int_equal(pawl_world_send(w, "42", SUBMIT), PAWL_OK);
    PAWL_EXPECT(w, "0       order/42 cart --submit--> charging\n"
                   "0       order/42 charging #1 retry: gateway busy\n"
                   "1000    order/42 charging #2 --charged--> paid\n");
    assert_true(pawl_world_verify(w, NULL));
    pawl_world_close(w);
}

static void gives_up_after_its_attempts(void **state)
{
    (void)state;
    struct gateway gateway = { .script = "bbb" };
    pawl_world *w = pawl_world_open(&order, &gateway, 1);
    assert_int_equal(pawl_world_create(w, "42", pawl_str("")), PAWL_OK);
    assert_int_equal(pawl_world_send(w, "42", SUBMIT), PAWL_OK);
    PAWL_EXPECT(w, "0       order/42 cart --submit--> charging\n"
                   "0       order/42 charging #1 retry: gateway busy\n"
                   "1000    order/42 charging #2 retry: gateway busy\n"
                   "3000    order/42 charging #3 --failed--> cart: gateway busy\n");
    pawl_world_close(w);
}

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
        cmocka_unit_test(survives_a_crash_at_every_operation),
    };
    return cmocka_run_group_tests(tests, leaks_begin, leaks_end);
}
