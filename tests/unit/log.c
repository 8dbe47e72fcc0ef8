/* SPDX-License-Identifier: Apache-2.0
 *
 * The daemon's log: its lines, its levels, and a reader that does not read. */
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "app/log.h"
#include "base/base.h"
#include "support/test.h"

static const struct pw_levels info = { .rest = PAWL_INFO };

/* What the pipe holds, at most so many bytes. */
static void drain(int fd, char *to, size_t size)
{
    size_t used = 0;
    ssize_t some = 0;
    assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
    while (used < size - 1 && (some = read(fd, to + used, size - 1 - used)) > 0)
        used += (size_t)some;
    to[used] = '\0';
}

static void lines(void **state)
{
    (void)state;
    struct pw_app_log log;
    char text[4096];
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pw_app_log_init(&log, ends[1], &info);
    pw_app_log_line(&log, PAWL_INFO, "run.ready", "pid=1");
    pw_app_log_line(&log, PAWL_DEBUG, "run.debug", "not wanted");
    pw_app_log_line(&log, PAWL_ERROR, "writer.commit", "lsn=2: out of room");
    drain(ends[0], text, sizeof(text));
    assert_int_equal(strcspn(text, "T"), 10); /* "2026-12-01T02:00:00.123Z " */
    assert_int_equal(text[23], 'Z');
    assert_memory_equal(text + 24, " INFO run.ready pid=1\n", 22);
    assert_string_equal(strchr(text, '\n') + 1 + 24, " ERROR writer.commit lsn=2: out of room\n");
    pw_app_log_fini(&log);
    (void)close(ends[0]);
    (void)close(ends[1]);
}

static void full_pipe(void **state)
{
    (void)state;
    static char text[1024 * 1024];
    static char much[1000];
    struct pw_app_log log;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pw_app_log_init(&log, ends[1], &info);
    memset(much, 'x', sizeof(much) - 1);
    for (int i = 0; i < 1000; i++) /* a pipe holds 64 KiB */
        pw_app_log_line(&log, PAWL_INFO, "test.much", much);
    assert_int_equal(fcntl(ends[1], F_GETFL) & O_NONBLOCK, 0); /* others share it */
    drain(ends[0], text, sizeof(text));
    assert_int_equal(text[strlen(text) - 1], '\n'); /* lines come whole or not at all */
    pw_app_log_line(&log, PAWL_INFO, "test.after", "room");
    drain(ends[0], text, sizeof(text));
    assert_memory_equal(text + 24, " WARN log.dropped records=9", 27);
    assert_non_null(strstr(text, " found no room\n"));
    assert_non_null(strstr(text, " INFO test.after room\n"));
    (void)close(ends[0]); /* SIGPIPE is ignored by pawl_main; EPIPE is a drop */
    pw_app_log_line(&log, PAWL_INFO, "test.nobody", "reads");
    assert_int_equal(log.dropped, 1);
    pw_app_log_fini(&log);
    (void)close(ends[1]);
}

static void closed(void **state)
{
    (void)state;
    struct pw_app_log log;
    pw_app_log_init(&log, -1, &info);
    pw_app_log_line(&log, PAWL_INFO, "test.nobody", "reads");
    assert_int_equal(log.dropped, 1);
    pw_app_log_fini(&log);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines),
        cmocka_unit_test(full_pipe),
        cmocka_unit_test(closed),
    };
    (void)signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, leaks_begin, leaks_end);
}
