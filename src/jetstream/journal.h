/* SPDX-License-Identifier: Apache-2.0
 *
 * The journal port on a JetStream stream: see core/journal.h for what it does, this folder's README
 * for how. */
#ifndef PW_JETSTREAM_JOURNAL_H
#define PW_JETSTREAM_JOURNAL_H

#include "core/journal.h"
#include "pawl/engine.h"

struct pw_jetstream_options {
    const char *bus; /* all are copied */
    const pawl_nats *nats;
    const char *ns;
    uint32_t shard;
    bool look_only; /* a stream that is missing is not made: look() says PAWL_E_NOT_FOUND */
};

/* Does not connect. PAWL_E_CONFIG, PAWL_E_NOMEM. */
PAWL_MUST_USE pawl_err pw_jetstream_open(struct pw_journal **journal,
                                         const struct pw_jetstream_options *options, pawl_why *why);

#endif
