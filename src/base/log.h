/* SPDX-License-Identifier: Apache-2.0
 *
 * The log: one line per record, message id first. No sink until the user gives one; the sink is
 * called from any thread and with no lock held. One sink per log; the engine embeds one. */
#ifndef PW_LOG_H
#define PW_LOG_H

#include "pawl/engine.h"

struct pw_log {
    void (*sink)(void *arg, pawl_level level, const char *id, const char *text);
    void *arg;
};

/* Control characters in the text are shown as \xNN, so a line stays a line. */
void pw_log(const struct pw_log *log, pawl_level level, const char *id, const char *format, ...)
    PAWL_PRINTF(4, 5);

#endif
