/* SPDX-License-Identifier: Apache-2.0
 *
 * order: a shop's orders, the tour of pawl in one file. From top to bottom: the words of the
 * machine, its work, its states and edges, and main(), which makes all of it a daemon and a tool.
 * What the gateway answers is scripted by the order's data: see gateway.h. */
#include "examples/gateway.h"
#include "examples/ndjson.h"
#include "pawl/pawl.h"

enum { CART, CHARGING, PAID, SHIPPED, CANCELLED, CLOSED, REFUNDING, REFUNDED };
enum { SUBMIT, CHARGED, DECLINED, SHIP, CANCEL, RETURNED };

#define SECONDS ((uint64_t)1000)
#define HOURS (3600 * SECONDS)
#define DAYS (24 * HOURS)

/* What the gateway is asked. The key is the same on every attempt: nobody pays twice. A receipt
 * number is drawn each time, but the first to be committed stays: every attempt, in every state,
 * after any crash, gets that one. */
static pawl_err prepare(pawl_task *task, struct gateway_request *request)
{
    char drawn[GATEWAY_RECEIPT_MAX];

    gateway_receipt(pawl_task_env(task), drawn);
    request->key = pawl_task_key(task);
    request->attempt = pawl_task_attempt(task);
    request->order = pawl_task_data(task);
    return pawl_task_memo(task, "receipt", pawl_str(drawn), &request->receipt);
}

/* May block, and may run twice under one key. */
static pawl_outcome charge(pawl_task *task)
{
    struct gateway_request request = { 0 };

    if (prepare(task, &request) != PAWL_OK)
        return pawl_retry("no receipt number");
    switch (gateway_charge(&request)) {
    case GATEWAY_OK:
        pawl_task_emit(task, "receipt", request.receipt); /* sent only if this commits */
        return pawl_raise(CHARGED);
    case GATEWAY_DECLINED:
        return pawl_raise(DECLINED);
    case GATEWAY_BUSY:
        return pawl_retry("gateway busy");
    default:
        return pawl_fail("gateway refused");
    }
}

static pawl_outcome refund(pawl_task *task)
{
    struct gateway_request request = { 0 };

    if (prepare(task, &request) != PAWL_OK)
        return pawl_retry("no receipt number");
    return gateway_refund(&request) == GATEWAY_OK ? pawl_raise(RETURNED)
                                                  : pawl_fail("gateway refused");
}

/* clang-format off */
static const pawl_state states[] = {
    [CART]      = { .name = "cart", .flags = PAWL_START, .timeout_ms = 30 * DAYS },
    [CHARGING]  = { .name = "charging", .work = charge, .attempts_max = 5,
                    .backoff_ms = 1 * SECONDS, .attempt_ms = 30 * SECONDS },
    [PAID]      = { .name = "paid" },
    [SHIPPED]   = { .name = "shipped", .flags = PAWL_FINAL },
    [CANCELLED] = { .name = "cancelled", .timeout_ms = 1 * HOURS },
    [CLOSED]    = { .name = "closed", .flags = PAWL_FINAL },
    [REFUNDING] = { .name = "refunding", .work = refund },
    [REFUNDED]  = { .name = "refunded", .flags = PAWL_FINAL },
};

static const char *const events[] = {
    [SUBMIT] = "submit", [CHARGED] = "charged", [DECLINED] = "declined",
    [SHIP]   = "ship",   [CANCEL]  = "cancel",  [RETURNED] = "returned",
};

static const pawl_edge edges[] = {
    { .from = CART,      .event = SUBMIT,       .to = CHARGING },
    { .from = CART,      .event = CANCEL,       .to = CLOSED },
    { .from = CART,      .event = PAWL_TIMEOUT, .to = CLOSED },   /* forgotten */
    { .from = CHARGING,  .event = CHARGED,      .to = PAID },
    { .from = CHARGING,  .event = DECLINED,     .to = CART },
    { .from = CHARGING,  .event = PAWL_FAILED,  .to = CART },     /* gave up, or out of attempts */
    { .from = CHARGING,  .event = CANCEL,       .to = CANCELLED },
    { .from = CANCELLED, .event = PAWL_TIMEOUT, .to = CLOSED },
    /* The work was running when the order was cancelled, and the charge won the race after all. */
    { .from = CANCELLED, .event = CHARGED,      .to = REFUNDING, .late = true },
    { .from = PAID,      .event = SHIP,         .to = SHIPPED },
    { .from = PAID,      .event = CANCEL,       .to = REFUNDING },
    { .from = REFUNDING, .event = RETURNED,     .to = REFUNDED }, /* a failed refund parks */
};
/* clang-format on */

static const pawl_machine order = {
    .name = "order",
    PAWL_STATES(states),
    PAWL_EVENTS(events),
    PAWL_EDGES(edges),
    .workers = 4,
};

int main(int argc, char **argv)
{
    static struct gateway gateway; /* what pawl_task_env() hands out */

    const pawl_unit units[] = {
        { .machine = &order, .env = &gateway, .emitted = ndjson_message },
        { 0 },
    };
    return pawl_main(argc, argv, units);
}
