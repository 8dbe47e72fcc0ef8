/* SPDX-License-Identifier: Apache-2.0
 *
 * Many commands: a JSON object a line, a thousand under way. Main thread. */
#ifndef PW_BULK_H
#define PW_BULK_H

#include "app/remote.h"

/* Reads them from fd, to its end; what is said of a line of standard input names its number.
 * Returns the exit status. */
int pw_bulk(struct pw_app *app, enum pw_op op, int fd);

/* Shared with the single command: prints one answer, as JSON (line 0: without it) or, when it is a
 * refusal, as an error line. `object`: the request, for its machine and id; NULL: it was none. */
void pw_put_answer(const struct pw_app *app, uint64_t line, const json_t *object,
                   const json_t *answer, pawl_err err, const pawl_why *why);

#endif
