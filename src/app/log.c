/* SPDX-License-Identifier: Apache-2.0
 *
 * A pipe is opened anew through /proc, so that it can be non-blocking without being so for those
 * who share it; a socket is told so with each line; anything else that may block is asked for room
 * first. A line is at most PIPE_BUF bytes, so a pipe takes it whole or not at all. */
#include <assert.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/log.h"
#include "app/text.h"

#define LINE_SIZE 2048
static_assert(LINE_SIZE <= PIPE_BUF, "a pipe takes a line whole");

void pw_app_log_init(struct pw_app_log *log, int fd, const struct pw_levels *levels)
{
    struct stat status = { .st_mode = 0 };
    char path[32] = "";
    *log = (struct pw_app_log){ .fd = fd, .levels = *levels };
    int failed = pthread_mutex_init(&log->lock, NULL);
    assert(failed == 0);
    (void)failed;
    pw_clock_init(&log->clock);
    if (fstat(fd, &status) != 0)
        return; /* closed: each line will be dropped */
    log->is_socket = S_ISSOCK(status.st_mode);
    log->polls = !S_ISREG(status.st_mode) && !log->is_socket;
    if (!S_ISFIFO(status.st_mode))
        return;
    pw_print(path, sizeof(path), "/proc/self/fd/%d", fd);
    int opened = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
    if (opened < 0)
        return;
    log->fd = opened;
    log->opened = true;
    log->polls = false;
}

void pw_app_log_fini(struct pw_app_log *log)
{
    if (log->opened)
        (void)close(log->fd);                /* nothing is buffered in it */
    (void)pthread_mutex_destroy(&log->lock); /* nobody logs any more */
}

static bool has_room(const struct pw_app_log *log)
{
    struct pollfd look = { .fd = log->fd, .events = POLLOUT };
    return poll(&look, 1, 0) == 1 && (look.revents & POLLOUT) != 0;
}

static bool put(const struct pw_app_log *log, const char *line, size_t size)
{
    if (log->is_socket)
        return send(log->fd, line, size, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)size;
    if (log->polls && !has_room(log))
        return false;
    return write(log->fd, line, size) == (ssize_t)size;
}

static bool put_record(const struct pw_app_log *log, pawl_level level, const char *id,
                       const char *text)
{
    static const char *const levels[] = { "ERROR", "WARN", "INFO", "DEBUG" };
    struct pw_clock clock = log->clock;
    char time[PW_TIME_TEXT_SIZE] = "";
    char line[LINE_SIZE] = "";
    pw_print_time(clock.wall_ms(&clock), time);
    pw_print(line, sizeof(line) - 1, "%s %s %s %s", time, levels[level], id, text);
    size_t size = strlen(line);
    line[size++] = '\n';
    return put(log, line, size);
}

void pw_app_log_line(void *arg, pawl_level level, const char *id, const char *text)
{
    struct pw_app_log *log = arg;
    char told[64] = "";
    if (level > pw_level_of(&log->levels, id))
        return;
    pthread_mutex_lock(&log->lock);
    if (log->dropped > 0) {
        pw_print(told, sizeof(told), "records=%llu found no room",
                 (unsigned long long)log->dropped);
        if (put_record(log, PAWL_WARN, "log.dropped", told))
            log->dropped = 0;
    }
    if (log->dropped > 0 || !put_record(log, level, id, text))
        log->dropped++;
    pthread_mutex_unlock(&log->lock);
}
