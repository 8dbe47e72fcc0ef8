/* SPDX-License-Identifier: Apache-2.0
 *
 * The daemon's log: one line a record on standard error, "2026-12-01T02:00:00.123Z INFO run.ready
 * ...". Never waits for whoever reads it: what finds no room is dropped and counted, and the number
 * is told when there is room again. */
#ifndef PW_APP_LOG_H
#define PW_APP_LOG_H

#include <pthread.h>

#include "app/config.h"
#include "base/clock.h"

struct pw_app_log {
    pthread_mutex_t lock;
    struct pw_clock clock;
    struct pw_levels levels;
    uint64_t dropped;
    int fd;
    bool opened; /* fd is ours */
    bool is_socket;
    bool polls; /* fd may block: look for room before each line */
};

void pw_app_log_init(struct pw_app_log *log, int fd, const struct pw_levels *levels);
void pw_app_log_fini(struct pw_app_log *log);

/* The sink for pawl_options.log and struct pw_log; arg: the pw_app_log. Any thread. */
void pw_app_log_line(void *arg, pawl_level level, const char *id, const char *text);

#endif
