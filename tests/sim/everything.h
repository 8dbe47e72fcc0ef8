/* SPDX-License-Identifier: Apache-2.0
 *
 * A shop that uses all of pawl at once: commands, retries, kept tasks, timeouts, messages, tells
 * over shards, memos, holds, deletion. For the tests that let something fail at each moment of it.
 */
#ifndef TESTS_EVERYTHING_H
#define TESTS_EVERYTHING_H

#include "support/world.h"

#define ORDERS 9
#define KEPT_MAX 64

struct shop {
    pawl_task *kept[KEPT_MAX]; /* packing that nobody has completed yet */
    size_t kept_count;
    char memo[ORDERS][24]; /* what each order's first memo said */
    unsigned receipts[ORDERS];
    const char *wrong; /* what must not be, seen where no test can fail */
    unsigned runs;
};
static struct shop shop;

static inline size_t order_of(const char *id)
{
    return (size_t)(id[0] - '0') % ORDERS;
}

/* Charges: the first attempt finds the bank busy. */
static pawl_outcome charge(pawl_task *task)
{
    size_t n = order_of(pawl_task_id(task));
    char value[24] = "";
    pawl_bytes kept = { "", 0 };
    (void)snprintf(value, sizeof(value), "%u", ++shop.runs);
    if (pawl_task_memo(task, "bank", pawl_str(value), &kept) != PAWL_OK)
        return pawl_retry("no memo");
    if (shop.memo[n][0] == '\0')
        (void)snprintf(shop.memo[n], sizeof(shop.memo[n]), "%.*s", (int)kept.size,
                       (const char *)kept.data);
    if (strlen(shop.memo[n]) != kept.size || memcmp(shop.memo[n], kept.data, kept.size) != 0)
        shop.wrong = "a memo changed";
    if (pawl_task_attempt(task) == 1)
        return pawl_retry("busy");
    pawl_task_save(task, pawl_str("charged"));
    pawl_task_emit(task, "receipt", pawl_str(pawl_task_id(task)));
    pawl_task_tell(task, "counter", "sold", "add", pawl_str(""));
    pawl_task_tell_new(task, "counter", pawl_task_id(task), NULL);
    pawl_task_tell(task, "counter", pawl_task_id(task), "add", pawl_str(""));
    return pawl_raise(1);
}

static pawl_outcome pack(pawl_task *task)
{
    if (shop.kept_count == KEPT_MAX)
        return pawl_retry("no table");
    shop.kept[shop.kept_count++] = task;
    return pawl_later(task);
}

static void hear_receipt(void *env, const pawl_message *message)
{
    (void)env;
    shop.receipts[order_of(message->entity)]++;
}

enum { CART, CHARGING, PACKING, SHIPPED, CANCELLED, ABANDONED };
enum { SUBMIT, CHARGED, PACKED, CANCEL };

static const pawl_state order_states[] = {
    [CART] = { .name = "cart", .flags = PAWL_START, .timeout_ms = 60000 },
    [CHARGING] = { .name = "charging",
                   .work = charge,
                   .attempts_max = 100,
                   .backoff_ms_max = 2000 },
    [PACKING] = { .name = "packing", .work = pack, .attempt_ms = 30000, .attempts_max = 100 },
    [SHIPPED] = { .name = "shipped", .flags = PAWL_FINAL },
    [CANCELLED] = { .name = "cancelled", .flags = PAWL_FINAL },
    [ABANDONED] = { .name = "abandoned", .flags = PAWL_FINAL },
};
static const char *const order_events[] = {
    [SUBMIT] = "submit", [CHARGED] = "charged", [PACKED] = "packed", [CANCEL] = "cancel"
};
static const pawl_edge order_edges[] = {
    { .from = CART, .event = SUBMIT, .to = CHARGING },
    { .from = CART, .event = PAWL_TIMEOUT, .to = ABANDONED },
    { .from = CHARGING, .event = CHARGED, .to = PACKING },
    { .from = PACKING, .event = PACKED, .to = SHIPPED },
    { .from = PACKING, .event = CANCEL, .to = CANCELLED },
};
static const pawl_machine order_machine = {
    .name = "order",
    PAWL_STATES(order_states),
    PAWL_EVENTS(order_events),
    PAWL_EDGES(order_edges),
    .crash_attempts_max = 100,
};

static const pawl_state counter_states[] = { { .name = "counting", .flags = PAWL_START } };
static const char *const counter_events[] = { "add" };
static const pawl_edge counter_edges[] = { { .from = 0, .event = 0, .to = 0 } };
static const pawl_machine counter_machine = {
    .name = "counter",
    PAWL_STATES(counter_states),
    PAWL_EVENTS(counter_events),
    PAWL_EDGES(counter_edges),
};
static const pawl_unit everything[] = { { &order_machine, NULL, hear_receipt },
                                        { &counter_machine, NULL, NULL },
                                        { NULL, NULL, NULL } };

/* Those of an engine that has died return PAWL_E_CLOSED, and are made again. */
static inline void complete_all(void)
{
    for (size_t i = 0; i < shop.kept_count; i++)
        (void)pawl_complete(shop.kept[i], pawl_raise(PACKED));
    shop.kept_count = 0;
}

static inline const char *order_id(unsigned n)
{
    static const char *const ids[ORDERS] = { "0", "1", "2", "3", "4", "5", "6", "7", "8" };
    return ids[n % ORDERS];
}

/* The safety net may have to find it, and suspects run one at a time, each until it gives no
 * answer. */
static void wait_for(pawl_world *w, const char *id, const char *state)
{
    for (unsigned looks = 0; looks < 100; looks++) {
        pawl_entity *entity = look(w, "order", id);
        bool there = entity != NULL && strcmp(entity->state, state) == 0;
        pawl_entity_free(entity);
        if (there)
            return;
        pawl_world_run_for(w, 10000);
    }
    fail_msg("order %s did not come to %s", id, state);
}

/* Orders 0 to 4 are charged and packed, 5 is held for a while, 6 is cancelled while it is packed, 7
 * deleted, and 8 is never submitted. */
static void shop_day(pawl_world *w)
{
    const pawl_scope held = { .machine = "order", .key = "k5" };
    shop = (struct shop){ .runs = 0 };
    (void)create_once(w, "counter", "sold", NULL, "");
    for (unsigned n = 0; n < ORDERS; n++) {
        char key[8] = "";
        (void)snprintf(key, sizeof(key), "k%u", n % ORDERS);
        assert_int_equal(create_once(w, "order", order_id(n), key, "new"), PAWL_OK);
    }
    hold(w, held);
    for (unsigned n = 0; n < 8; n++)
        assert_int_equal(send_once(w, "order", order_id(n), "submit"), PAWL_OK);
    wait_for(w, "6", "packing");
    wait_for(w, "7", "packing");
    expect_state(w, "order", "5", "charging");
    assert_int_equal(send_once(w, "order", "6", "cancel"), PAWL_OK);
    assert_int_equal(delete_once(w, "order", "7"), PAWL_OK);
    release(w, held);
    complete_all();
    for (unsigned minutes = 0; minutes < 10;
         minutes++) { /* what was lost with a process comes again */
        pawl_world_run_for(w, 60000);
        complete_all();
    }
    pawl_world_run(w);
}

static void shop_is_right(pawl_world *w)
{
    for (unsigned n = 0; n < ORDERS; n++) {
        const char *end = n == 6 ? "cancelled" : n == 7 ? "gone" : n == 8 ? "abandoned" : "shipped";
        expect_state(w, "order", order_id(n), end);
        if (n == 8)
            continue;
        assert_int_equal(lines_with(w, "counter", order_id(n), "--add-->"), 1);
        assert_true(shop.receipts[n] > 0);
    }
    assert_int_equal(lines_with(w, "counter", "sold", "--add-->"), 8);
    if (shop.wrong != NULL)
        fail_msg("%s", shop.wrong);
    expect_right(w);
    expect_sent(w);
}

/* The kept tasks of worlds that are gone. */
static inline void shop_closes(pawl_world *w)
{
    pawl_world_close(w);
    complete_all();
}

#endif
