/* SPDX-License-Identifier: Apache-2.0
 *
 * A bounded queue of nodes that are embedded in their owners: many threads push, one takes all.
 * Pushing never blocks unless asked to. */
#ifndef PW_QUEUE_H
#define PW_QUEUE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

struct pw_node {
    struct pw_node *next;
    size_t bytes; /* what its owner holds beside itself; counted against the queue's bytes_max */
};

struct pw_queue {
    pthread_mutex_t lock;
    pthread_cond_t roomy;
    struct pw_node *first;
    struct pw_node *last;
    size_t count;
    size_t count_max;
    size_t bytes;
    size_t bytes_max; /* 0: not bounded */
    bool closed;
};

void pw_queue_init(struct pw_queue *queue, size_t count_max);
void pw_queue_fini(struct pw_queue *queue);

enum pw_pushed { PW_PUSHED, PW_PUSHED_FIRST, PW_PUSH_FULL, PW_PUSH_CLOSED };

/* PW_PUSHED_FIRST: the queue was empty, so its taker may be napping. */
enum pw_pushed pw_queue_push(struct pw_queue *queue, struct pw_node *node);

/* Waits for room. */
enum pw_pushed pw_queue_push_wait(struct pw_queue *queue, struct pw_node *node);

/* Past the bound and after close, for what is bounded elsewhere and must not be lost. */
enum pw_pushed pw_queue_push_always(struct pw_queue *queue, struct pw_node *node);

/* Takes at most `most` nodes in order as a list ended by NULL. */
struct pw_node *pw_queue_take(struct pw_queue *queue, size_t most);

bool pw_queue_is_empty(struct pw_queue *queue);

/* Pushes are refused from here; waiting ones return. */
void pw_queue_close(struct pw_queue *queue);

#endif
