/* SPDX-License-Identifier: Apache-2.0
 *
 * The name of a bus: which servers, and what may be shown of it. Pure. */
#ifndef PW_BUS_H
#define PW_BUS_H

#include <stdbool.h>
#include <stddef.h>

#include "pawl/err.h"

#define PW_BUS_MAX 1023
#define PW_BUS_SERVERS_MAX 16

/* PAWL_E_CONFIG: not a list of "nats://[user:password@]host[:port]" or "tls://...". The text says
 * which item, and what is wrong with it, but nothing of it. *servers, *tls: NULL: not wanted. */
PAWL_MUST_USE pawl_err pw_bus_check(const char *bus, int *servers, bool *tls, pawl_why *why);

/* A bus with its user and password left out, for output: "nats://host:4222". */
void pw_bus_print(const char *bus, char *to, size_t size);

#endif
