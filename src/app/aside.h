/* SPDX-License-Identifier: Apache-2.0
 *
 * The file of changes that the journal contradicts, and that the store therefore gives up:
 * <dir>/set-aside-<time>.ndjson, a line each. Made when the first one comes. Nothing is ever read
 * from it by pawl: it is for a person. */
#ifndef PW_ASIDE_H
#define PW_ASIDE_H

#include "engine/engine.h"

/* Out of memory: rows are set aside without a file, which the log says. */
void pw_aside_open(struct pw_set_aside *aside, const char *dir);

#endif
