/* SPDX-License-Identifier: Apache-2.0
 *
 * All streams of a namespace at once, for the tool: what would make them, how they are, and making
 * them. One thread; blocking. */
#ifndef PW_PROVISION_H
#define PW_PROVISION_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "pawl/engine.h"

struct pw_provision {
    const char *bus; /* for looking and making */
    const pawl_nats *nats;
    const char *ns;
    uint32_t shards;
    uint32_t replicas;
};

/* Hands over, one for each stream, {"subject": ..., "request": ...}: what JetStream takes. The
 * object is the receiver's. PAWL_E_NOMEM. */
PAWL_MUST_USE pawl_err pw_provision_print(const struct pw_provision *provision,
                                          void (*put)(json_t *object));

/* One stream of them. Borrowed for the call. */
struct pw_provisioned {
    const char *stream;
    pawl_err err;     /* PAWL_E_NOT_FOUND: missing. PAWL_E_CONFIG: other settings, not permitted */
    bool made;        /* just now */
    const char *text; /* of the error */
};

/* Looks at each; make: and makes those that are missing. None that is there is ever changed. Ends
 * early with PAWL_E_IO when the server is away. */
PAWL_MUST_USE pawl_err pw_provision_run(const struct pw_provision *provision, bool make,
                                        void (*seen)(void *arg, const struct pw_provisioned *one),
                                        void *arg, pawl_why *why);

#endif
