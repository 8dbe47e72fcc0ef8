/* SPDX-License-Identifier: Apache-2.0
 *
 * What the socket's files share: the server, its connections, and the calls under way. Everything
 * is the loop thread's but the two queues. */
#ifndef PW_SERVER_H
#define PW_SERVER_H

#include <pthread.h>
#include <stdatomic.h>

#include "app/demand.h"
#include "app/lines.h"
#include "app/socket.h"
#include "base/clock.h"
#include "base/queue.h"
#include "base/wake.h"

/* Connections: tools that a person or a script has open. */
#define PW_CONNS_MAX 64
/* Requests of a connection that are not answered: a few batches of the writer. */
#define PW_CALLS_MAX 4096
/* Bytes of answers that a client has not read; no request is taken above. What is under way comes
 * on top: 4096 answers of less than 2 KiB. */
#define PW_UNSENT_MAX (1024u * 1024)

struct pw_conn {
    struct pw_server *server;
    int fd; /* -1: gone; it stays until its calls are answered */
    struct pw_lines in;
    struct pw_out out;
    size_t calls;
    bool eof;     /* the client sends no more */
    bool closing; /* nothing more is read: to be closed when all is answered */
    bool stalled; /* the engine's queue is full: the first line waits */
};

struct pw_server {
    pawl *engine;
    struct pw_clock clock;
    uint64_t start_ms;
    int listener;
    int poke; /* eventfd: something is in `done`, or stop */
    char path[108];
    struct pw_conn *conns[PW_CONNS_MAX]; /* the first conns_count */
    size_t conns_count;
    size_t calls;          /* of all connections */
    uint64_t accept_at_ms; /* no descriptors were left: not before */
    struct pw_queue done;  /* answered calls: writers and the helper push */
    struct pw_queue todo;  /* calls that block: the helper takes */
    struct pw_wake todo_wake;
    pthread_t loop;
    pthread_t helper;
    bool started;
    _Atomic bool stopping;
    _Atomic bool helper_ends;
};

/* --- serve.c: a request, and its answer --------------------------------------------------- */

/* False: the engine's queue is full; the same line again later. */
bool pw_serve_line(struct pw_conn *conn, const char *line, size_t size);

/* An error that belongs to no request. */
void pw_serve_error(struct pw_conn *conn, pawl_err err, const char *text);

/* Writes the answers of all calls that are done. True: there were any. */
bool pw_serve_done(struct pw_server *server);

/* Frees calls that nobody will begin. No thread runs any more. */
void pw_serve_forget(struct pw_server *server);

/* The thread of the calls that block. */
void *pw_serve_helper(void *arg);

/* --- conn.c: one connection's turn -------------------------------------------------------- */

/* NULL: out of memory; fd is the caller's then. */
struct pw_conn *pw_conn_open(struct pw_server *server, int fd);
void pw_conn_close(struct pw_conn *conn);

/* What poll has to look for; 0: nothing, now. */
short pw_conn_wants(const struct pw_conn *conn);

/* Reads and serves what there is, sends what there is. */
void pw_conn_turn(struct pw_conn *conn, short events);

/* True when nothing is left to do for it. */
bool pw_conn_over(const struct pw_conn *conn);

#endif
