/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the servers are and how to be let in: a bus and pawl_nats, checked, and put into the
 * library's options. No text that leaves here has a secret. */
#ifndef PW_LOGIN_H
#define PW_LOGIN_H

#include <nats/nats.h>

#include "jetstream/nkey.h"
#include "pawl/engine.h"

#define PW_BUS_MAX 1023
#define PW_BUS_SERVERS_MAX 16

/* PAWL_E_CONFIG: not a list of "nats://[user:password@]host[:port]" or "tls://...". The text says
 * which item, and what is wrong with it, but nothing of it. *servers, *tls: NULL: not wanted. */
PAWL_MUST_USE pawl_err pw_bus_check(const char *bus, int *servers, bool *tls, pawl_why *why);

/* A bus with its user and password left out, for output: "nats://host:4222". */
void pw_bus_print(const char *bus, char *to, size_t size);

/* Fills options in. `seed` is the caller's, used by the library as long as the options and what is
 * connected with them live. PAWL_E_CONFIG names the file; PAWL_E_NOMEM. */
PAWL_MUST_USE pawl_err pw_login_apply(natsOptions *options, const char *bus, const pawl_nats *nats,
                                      char seed[PW_NKEY_SEED_SIZE], pawl_why *why);

#endif
