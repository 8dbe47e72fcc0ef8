/* SPDX-License-Identifier: Apache-2.0
 *
 * Entities as JSON. Main thread. */
#ifndef PW_PRINT_H
#define PW_PRINT_H

#include "app/app.h"

/* NULL: out of memory. */
json_t *pw_json_entity(const pawl_entity *entity);

/* An array of {version, time_ms, text}. NULL: *err says why. */
json_t *pw_json_history(pawl *engine, const char *machine, const char *id, pawl_err *err);

#endif
