/* SPDX-License-Identifier: Apache-2.0
 *
 * A linked list under one lock. */
#include <assert.h>

#include "base/queue.h"

void pw_queue_init(struct pw_queue *queue, size_t count_max)
{
    assert(count_max > 0);
    *queue = (struct pw_queue){ .count_max = count_max };
    int failed = pthread_mutex_init(&queue->lock, NULL);
    assert(failed == 0);
    failed = pthread_cond_init(&queue->roomy, NULL);
    assert(failed == 0);
    (void)failed;
}

void pw_queue_fini(struct pw_queue *queue)
{
    assert(queue->first == NULL);
    (void)pthread_cond_destroy(&queue->roomy); /* nobody waits any more */
    (void)pthread_mutex_destroy(&queue->lock);
}

static enum pw_pushed append(struct pw_queue *queue, struct pw_node *node)
{
    bool first = queue->first == NULL;
    node->next = NULL;
    if (first)
        queue->first = node;
    else
        queue->last->next = node;
    queue->last = node;
    queue->count++;
    queue->bytes += node->bytes;
    return first ? PW_PUSHED_FIRST : PW_PUSHED;
}

/* One that is larger than all the room is let into an empty queue. */
static bool is_full(const struct pw_queue *queue, const struct pw_node *node)
{
    if (queue->count >= queue->count_max)
        return true;
    return queue->bytes_max > 0 && queue->count > 0 &&
           queue->bytes + node->bytes > queue->bytes_max;
}

static enum pw_pushed push(struct pw_queue *queue, struct pw_node *node, bool wait)
{
    pthread_mutex_lock(&queue->lock);
    while (wait && !queue->closed && is_full(queue, node))
        pthread_cond_wait(&queue->roomy, &queue->lock);
    enum pw_pushed pushed = PW_PUSH_CLOSED;
    if (!queue->closed)
        pushed = is_full(queue, node) ? PW_PUSH_FULL : append(queue, node);
    pthread_mutex_unlock(&queue->lock);
    return pushed;
}

enum pw_pushed pw_queue_push(struct pw_queue *queue, struct pw_node *node)
{
    return push(queue, node, false);
}

enum pw_pushed pw_queue_push_wait(struct pw_queue *queue, struct pw_node *node)
{
    return push(queue, node, true);
}

enum pw_pushed pw_queue_push_always(struct pw_queue *queue, struct pw_node *node)
{
    pthread_mutex_lock(&queue->lock);
    enum pw_pushed pushed = append(queue, node);
    pthread_mutex_unlock(&queue->lock);
    return pushed;
}

struct pw_node *pw_queue_take(struct pw_queue *queue, size_t most)
{
    assert(most > 0);
    pthread_mutex_lock(&queue->lock);
    struct pw_node *first = queue->first;
    struct pw_node *last = first;
    size_t count = first != NULL ? 1 : 0;
    size_t bytes = first != NULL ? first->bytes : 0;
    while (count > 0 && count < most && last->next != NULL) {
        last = last->next;
        bytes += last->bytes;
        count++;
    }
    if (count > 0) {
        queue->first = last->next;
        queue->last = queue->first != NULL ? queue->last : NULL;
        queue->count -= count;
        queue->bytes -= bytes;
        last->next = NULL;
    }
    pthread_mutex_unlock(&queue->lock);
    if (count > 0)
        pthread_cond_broadcast(&queue->roomy);
    return first;
}

bool pw_queue_is_empty(struct pw_queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    bool empty = queue->first == NULL;
    pthread_mutex_unlock(&queue->lock);
    return empty;
}

void pw_queue_close(struct pw_queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    queue->closed = true;
    pthread_mutex_unlock(&queue->lock);
    pthread_cond_broadcast(&queue->roomy);
}
