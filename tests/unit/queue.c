/* SPDX-License-Identifier: Apache-2.0
 *
 * src/base/queue: order, bound, close, and many threads at once. */
#include <pthread.h>

#include "base/base.h"
#include "base/queue.h"
#include "support/test.h"

static size_t length(const struct pw_node *node)
{
    size_t count = 0;
    for (; node != NULL; node = node->next)
        count++;
    return count;
}

static void drain(struct pw_queue *queue)
{
    (void)pw_queue_take(queue, SIZE_MAX);
    pw_queue_fini(queue);
}

static void takes_in_order_of_pushes(void **state)
{
    (void)state;
    struct pw_queue queue;
    struct pw_node nodes[5];
    pw_queue_init(&queue, 10);
    assert_null(pw_queue_take(&queue, 1));
    for (size_t i = 0; i < PW_COUNT(nodes); i++)
        assert_int_equal(pw_queue_push(&queue, &nodes[i]), i == 0 ? PW_PUSHED_FIRST : PW_PUSHED);

    struct pw_node *taken = pw_queue_take(&queue, 2);
    assert_ptr_equal(taken, &nodes[0]);
    assert_ptr_equal(taken->next, &nodes[1]);
    assert_null(taken->next->next);
    taken = pw_queue_take(&queue, 100);
    assert_ptr_equal(taken, &nodes[2]);
    assert_int_equal(length(taken), 3);
    assert_null(pw_queue_take(&queue, 100));

    assert_int_equal(pw_queue_push(&queue, &nodes[4]), PW_PUSHED_FIRST);
    assert_ptr_equal(pw_queue_take(&queue, 1), &nodes[4]);
    pw_queue_fini(&queue);
}

static void refuses_past_its_bound(void **state)
{
    (void)state;
    struct pw_queue queue;
    struct pw_node nodes[4];
    pw_queue_init(&queue, 2);
    assert_int_equal(pw_queue_push(&queue, &nodes[0]), PW_PUSHED_FIRST);
    assert_int_equal(pw_queue_push_wait(&queue, &nodes[1]), PW_PUSHED);
    assert_int_equal(pw_queue_push(&queue, &nodes[2]), PW_PUSH_FULL);
    assert_int_equal(pw_queue_push_always(&queue, &nodes[2]), PW_PUSHED);
    assert_int_equal(pw_queue_push(&queue, &nodes[3]), PW_PUSH_FULL);

    assert_int_equal(length(pw_queue_take(&queue, 1)), 1);
    assert_int_equal(pw_queue_push(&queue, &nodes[3]), PW_PUSH_FULL);
    assert_int_equal(length(pw_queue_take(&queue, 1)), 1);
    assert_int_equal(pw_queue_push(&queue, &nodes[3]), PW_PUSHED);
    struct pw_node *rest = pw_queue_take(&queue, 9);
    assert_ptr_equal(rest, &nodes[2]);
    assert_ptr_equal(rest->next, &nodes[3]);
    pw_queue_fini(&queue);
}

static void refuses_after_close_but_gives_what_it_has(void **state)
{
    (void)state;
    struct pw_queue queue;
    struct pw_node nodes[3];
    pw_queue_init(&queue, 2);
    assert_int_equal(pw_queue_push(&queue, &nodes[0]), PW_PUSHED_FIRST);
    pw_queue_close(&queue);
    pw_queue_close(&queue);
    assert_int_equal(pw_queue_push(&queue, &nodes[1]), PW_PUSH_CLOSED);
    assert_int_equal(pw_queue_push_wait(&queue, &nodes[1]), PW_PUSH_CLOSED);
    assert_int_equal(pw_queue_push_always(&queue, &nodes[2]), PW_PUSHED);
    struct pw_node *rest = pw_queue_take(&queue, 9);
    assert_ptr_equal(rest, &nodes[0]);
    assert_ptr_equal(rest->next, &nodes[2]);
    pw_queue_fini(&queue);
}

/* --- threads ------------------------------------------------------------------------------ */

#define PUSHERS 4
#define ITEMS 2000

struct item {
    struct pw_node node; /* first: an item's address is its node's */
    size_t pusher;
    size_t number;
};

struct pusher {
    pthread_t thread;
    struct pw_queue *queue;
    size_t index;
    struct item items[ITEMS];
    enum pw_pushed last;
};

static void *push_all(void *arg)
{
    struct pusher *pusher = arg;
    for (size_t i = 0; i < ITEMS; i++) {
        pusher->items[i] = (struct item){ .pusher = pusher->index, .number = i };
        pusher->last = pw_queue_push_wait(pusher->queue, &pusher->items[i].node);
        if (pusher->last == PW_PUSH_CLOSED)
            break;
    }
    return NULL;
}

static struct pusher pushers[PUSHERS];

static void start_pushers(struct pw_queue *queue)
{
    for (size_t i = 0; i < PUSHERS; i++) {
        pushers[i] = (struct pusher){ .queue = queue, .index = i };
        assert_int_equal(pthread_create(&pushers[i].thread, NULL, push_all, &pushers[i]), 0);
    }
}

static void join_pushers(void)
{
    for (size_t i = 0; i < PUSHERS; i++)
        assert_int_equal(pthread_join(pushers[i].thread, NULL), 0);
}

static void many_threads_push_one_takes_none_is_lost(void **state)
{
    (void)state;
    struct pw_queue queue;
    size_t next[PUSHERS] = { 0 };
    size_t taken = 0;
    pw_queue_init(&queue, 7);
    start_pushers(&queue);
    while (taken < (size_t)PUSHERS * ITEMS) {
        struct pw_node *node = pw_queue_take(&queue, 3);
        assert_in_range(length(node), 0, 3);
        for (; node != NULL; node = node->next, taken++) {
            struct item *item = (struct item *)(void *)node;
            assert_int_equal(item->number, next[item->pusher]);
            next[item->pusher]++;
        }
    }
    join_pushers();
    assert_null(pw_queue_take(&queue, 1));
    pw_queue_fini(&queue);
}

static void close_frees_those_who_wait(void **state)
{
    (void)state;
    struct pw_queue queue;
    pw_queue_init(&queue, 1);
    start_pushers(&queue); /* nobody takes: all but one item wait, or will */
    pw_queue_close(&queue);
    join_pushers();
    for (size_t i = 0; i < PUSHERS; i++)
        assert_int_equal(pushers[i].last, PW_PUSH_CLOSED);
    drain(&queue);
}

static void bytes_are_bounded(void **state)
{
    (void)state;
    struct pw_queue queue;
    struct pw_node nodes[3] = { { .bytes = 60 }, { .bytes = 60 }, { .bytes = 500 } };
    pw_queue_init(&queue, 10);
    queue.bytes_max = 100;
    assert_int_equal(pw_queue_push(&queue, &nodes[0]), PW_PUSHED_FIRST);
    assert_int_equal(pw_queue_push(&queue, &nodes[1]), PW_PUSH_FULL);
    assert_ptr_equal(pw_queue_take(&queue, 10), &nodes[0]);
    assert_int_equal(pw_queue_push(&queue, &nodes[2]), PW_PUSHED_FIRST); /* else never */
    assert_int_equal(pw_queue_push(&queue, &nodes[1]), PW_PUSH_FULL);
    assert_ptr_equal(pw_queue_take(&queue, 10), &nodes[2]);
    assert_int_equal(pw_queue_push(&queue, &nodes[1]), PW_PUSHED_FIRST);
    assert_ptr_equal(pw_queue_take(&queue, 10), &nodes[1]);
    pw_queue_fini(&queue);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_are_bounded),
        cmocka_unit_test(takes_in_order_of_pushes),
        cmocka_unit_test(refuses_past_its_bound),
        cmocka_unit_test(refuses_after_close_but_gives_what_it_has),
        cmocka_unit_test(many_threads_push_one_takes_none_is_lost),
        cmocka_unit_test(close_frees_those_who_wait),
    };
    return cmocka_run_group_tests(tests, leaks_begin, leaks_end);
}
