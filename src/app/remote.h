/* SPDX-License-Identifier: Apache-2.0
 *
 * The tool's side of the daemon's socket. Main thread. */
#ifndef PW_REMOTE_H
#define PW_REMOTE_H

#include "app/app.h"
#include "app/demand.h"
#include "app/lines.h"
#include "base/clock.h"

/* A daemon that says nothing for so long is given up: what was asked is then unknown. */
#define PW_ANSWER_MS 60000
/* What only adds to an answer: it may be starting. */
#define PW_STATUS_MS 2000
/* It reads the whole store. */
#define PW_VERIFY_MS 600000
/* A full queue is tried again so often, first after so long, then doubling. */
#define PW_BUSY_TRIES 6
#define PW_BUSY_MS 50

struct pw_remote {
    int fd;
    struct pw_lines in;
    struct pw_out out;
    struct pw_clock clock;
};

/* PAWL_E_IO: nobody answers there; PAWL_E_BUSY. Ended by pw_remote_close when it succeeds. */
PAWL_MUST_USE pawl_err pw_remote_open(struct pw_remote *remote, const struct pw_config *config,
                                      pawl_why *why);
void pw_remote_close(struct pw_remote *remote);

/* Reads what is there. False: the other end is gone, or out of memory. */
bool pw_remote_receive(struct pw_remote *remote);

/* The next answer that came; NULL: none yet. PAWL_E_IO: what came is no answer. */
PAWL_MUST_USE pawl_err pw_remote_next(struct pw_remote *remote, json_t **answer, pawl_why *why);

/* One request (takes the reference) and its answer, whatever it says. PAWL_E_UNKNOWN: none came. */
PAWL_MUST_USE pawl_err pw_remote_call(struct pw_remote *remote, json_t *request,
                                      uint64_t timeout_ms, json_t **answer, pawl_why *why);

/* What an answer says: PAWL_OK, or its error, with its text in *why. */
pawl_err pw_remote_err(const json_t *answer, pawl_why *why);

/* A command, tried again with longer and longer pauses while the queue is full; what its answer
 * says. *answer: NULL, or the caller's. The request stays the caller's. */
PAWL_MUST_USE pawl_err pw_remote_ask(struct pw_remote *remote, json_t *request, json_t **answer,
                                     pawl_why *why);

#endif
