/* SPDX-License-Identifier: Apache-2.0
 *
 * The daemon's socket: requests and answers as JSON, an object a line, over a Unix stream. Whoever
 * may open the socket (mode 0600) may do all. Owned by `run`; two threads of its own: a poll loop,
 * and one for the calls that block. */
#ifndef PW_SOCKET_H
#define PW_SOCKET_H

#include "pawl/client.h"

struct pw_server;

/* Binds and listens; nobody is answered yet. A socket file on which nobody answers is replaced: the
 * caller holds the data directory's lock. PAWL_E_LOCKED: somebody answers. PAWL_E_IO. */
PAWL_MUST_USE pawl_err pw_server_open(struct pw_server **server, const char *path, pawl_why *why);

/* Starts the threads. */
PAWL_MUST_USE pawl_err pw_server_start(struct pw_server *server, pawl *engine, pawl_why *why);

/* Takes no more requests, sends the answers that come within a moment, joins the threads,
 * removes the file. The engine still runs, so that what it was asked is answered, and has its lock.
 * Takes NULL; may be called twice. */
void pw_server_stop(struct pw_server *server);

/* After the engine is closed: no callback comes any more. Frees all. Takes NULL. */
void pw_server_close(struct pw_server *server);

#endif
