/* SPDX-License-Identifier: Apache-2.0
 *
 * A stream read in order, by an ephemeral consumer that acknowledges nothing. One thread. */
#ifndef PW_JETSTREAM_BROWSE_H
#define PW_JETSTREAM_BROWSE_H

#include "jetstream/pull.h"

struct pw_browse {
    struct pw_pull pull; /* open while pull.sub is set */
    char consumer[PW_PULL_NAME_SIZE];
    uint64_t pending; /* behind what was handed over, as the server last said */
};

/* Begins at from_seq, or behind it. filter: a subject, or NULL for all; heads: without the
 * messages' data. Ended by pw_browse_close, and by the server when nobody asks for a while.
 * PAWL_E_NOT_FOUND: the stream is missing. PAWL_E_IO, PAWL_E_NOMEM. */
PAWL_MUST_USE pawl_err pw_browse_open(struct pw_browse *browse, natsConnection *connection,
                                      const char *stream, const char *filter, uint64_t from_seq,
                                      bool heads);

/* Takes one that was not opened, too. */
void pw_browse_close(struct pw_browse *browse);

#endif
