/* SPDX-License-Identifier: Apache-2.0
 *
 * Prints an entity's messages on standard output, one JSON object a line: a `pawl_unit.emitted`. */
#ifndef EXAMPLES_NDJSON_H
#define EXAMPLES_NDJSON_H

#include "pawl/machine.h"

/* Any thread, several at once: lines stay whole. A message that is handed over again is printed
 * again, under the same id. `env` is not used. */
void ndjson_message(void *env, const pawl_message *message);

#endif
