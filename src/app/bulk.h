/* SPDX-License-Identifier: Apache-2.0
 *
 * Many commands: a JSON object a line, a thousand under way. Main thread. */
#ifndef PW_BULK_H
#define PW_BULK_H

#include <stdio.h>

#include "app/remote.h"

/* Reads them from fd, to its end; what is said of a line of standard input names its number.
 * Returns the exit status. */
int pw_bulk(struct pw_app *app, enum pw_op op, int fd);

/* The same for requests that are written down first: each with pw_bulk_write (takes the reference;
 * PAWL_E_IO), then all of the file. */
PAWL_MUST_USE pawl_err pw_bulk_write(FILE *requests, json_t *request);
int pw_bulk_written(struct pw_app *app, enum pw_op op, FILE *requests);

/* Shared with the single command: prints one answer, as JSON (line 0: without it) or, when it is a
 * refusal, as an error line. `object`: the request, for its machine and id; NULL: it was none. */
void pw_put_answer(const struct pw_app *app, uint64_t line, const json_t *object,
                   const json_t *answer, pawl_err err, const pawl_why *why);

#endif
