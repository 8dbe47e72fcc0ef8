/* SPDX-License-Identifier: Apache-2.0
 *
 * Entities as JSON, and as lines for people. Main thread. */
#ifndef PW_PRINT_H
#define PW_PRINT_H

#include "app/app.h"

/* NULL: out of memory. */
json_t *pw_json_entity(const pawl_entity *entity);

/* An array of {version, time_ms, text}. NULL: *err says why. */
json_t *pw_json_history(pawl *engine, const char *machine, const char *id, pawl_err *err);

/* A line of text from work or data: what could control a terminal becomes '?'. */
void pw_put_text(const char *text);

/* "name         value": numbers that are times, by their names, as times. An array is left out. */
void pw_put_member(const char *name, const json_t *value);

#endif
