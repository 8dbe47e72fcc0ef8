/* SPDX-License-Identifier: Apache-2.0
 *
 * One connection to NATS that comes back by itself, with growing waits and without end, and is made
 * anew when the library has given it up. One thread uses it; what the library's threads call only
 * sets flags and pokes. No secret is in any text that leaves it. */
#ifndef PW_LINK_H
#define PW_LINK_H

#include <stdbool.h>
#include <stdint.h>

#include <nats/nats.h>

#include "pawl/engine.h"

/* Answers and deliveries come to subjects below it, not below "_INBOX": what clients are permitted
 * to listen to has none of the owner's. natsInbox_Create makes others; an inbox made by hand begins
 * with this and a dot. */
#define PW_INBOX_PREFIX "_INBOX_PAWL"

struct pw_link_options {
    const pawl_nats *nats;   /* copied */
    const char *bus;         /* "nats://host:port", several separated by commas; copied */
    const char *name;        /* as the server lists it; copied */
    bool quick;              /* sends at once: for a connection of few small messages */
    void (*poke)(void *arg); /* the connection came or went; from a library's thread. Or NULL */
    void *arg;
};

struct pw_link;

/* Checks the options, and reads the files that they name (the credentials are read again at each
 * connect); does not connect. PAWL_E_CONFIG, PAWL_E_NOMEM. */
PAWL_MUST_USE pawl_err pw_link_open(struct pw_link **link, const struct pw_link_options *options,
                                    pawl_why *why);

/* The connection, when it is up. Tries to make it when it is not, at most once each growing wait;
 * then a call may take up to two seconds. PAWL_E_IO: it is away. *turn changes with each connect
 * and reconnect. */
PAWL_MUST_USE pawl_err pw_link_get(struct pw_link *link, natsConnection **connection,
                                   uint64_t *turn, pawl_why *why);

/* True while it is up. Any thread. */
bool pw_link_is_up(struct pw_link *link);
uint64_t pw_link_turn(struct pw_link *link);

/* No further tries; a waiting one returns soon. Any thread. */
void pw_link_halt(struct pw_link *link);

/* When nothing of the connection is used any more, and the options' arg still lives. Waits for the
 * library's threads, some seconds at most. Takes NULL. */
void pw_link_close(struct pw_link *link);

/* The only place where natsStatus becomes ours. */
pawl_err pw_nats_err(natsStatus status);

#endif
