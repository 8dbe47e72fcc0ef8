/* SPDX-License-Identifier: Apache-2.0
 *
 * See tool.h. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "process/tool.h"
#include "base/base.h"
#include "support/test.h"

#define ARGUMENTS_MAX 32

int place_make(void **state)
{
    struct place *place = test_calloc(1, sizeof(*place));
    pw_print(place->root, sizeof(place->root), "/tmp/pawl-process.XXXXXX");
    if (mkdtemp(place->root) == NULL)
        return -1;
    pw_print(place->dir, sizeof(place->dir), "%s/d", place->root);
    pw_print(place->log, sizeof(place->log), "%s/log", place->root);
    pw_print(place->sock, sizeof(place->sock), "%s/pawl.sock", place->dir);
    *state = place;
    return 0;
}

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *walk)
{
    (void)status;
    (void)kind;
    (void)walk;
    return remove(path);
}

int place_remove(void **state)
{
    struct place *place = *state;
    if (place->daemon > 0)
        (void)daemon_end(place, SIGKILL);
    int failed = nftw(place->root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    test_free(place);
    return failed;
}

/* The child's part of a fork. */
static void become(struct place *place, const char *const *arguments, int in, int out, int err)
{
    const char *argv[ARGUMENTS_MAX + 4] = { ORDER, "--dir", place->dir };
    size_t count = 3;
    for (; *arguments != NULL && count < ARGUMENTS_MAX; arguments++)
        argv[count++] = *arguments;
    if (dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(err, 2) < 0)
        _exit(126);
    execv(ORDER, (char *const *)argv);
    _exit(127);
}

static int status_of(int status)
{
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static int wait_for(pid_t pid)
{
    int status = 0;
    while (waitpid(pid, &status, 0) < 0)
        assert_int_equal(errno, EINTR);
    return status_of(status);
}

/* 24 characters of a time become TIME, 16 digits or more a V, a stream's sequence an S: marks are
 * appended once a second, so it depends on the pace. */
static void normalise(char *text)
{
    char *to = text;
    for (const char *at = text; *at != '\0';) {
        size_t digits = strspn(at, "0123456789");
        if (digits > 0 && to - text >= 9 && memcmp(to - 9, "sequence ", 9) == 0) {
            *to++ = 'S';
            at += digits;
        } else if (digits == 4 && strspn(at, "0123456789-T:.Z") >= 24 && at[10] == 'T' &&
                   at[23] == 'Z') {
            memcpy(to, "TIME", 4);
            to += 4;
            at += 24;
        } else if (digits >= 16) {
            *to++ = 'V';
            at += digits;
        } else {
            size_t size = digits > 0 ? digits : 1;
            memmove(to, at, size);
            to += size;
            at += size;
        }
    }
    *to = '\0';
}

static int scratch_file(const char *content)
{
    FILE *file = tmpfile();
    assert_non_null(file);
    int fd = dup(fileno(file));
    assert_int_equal(fclose(file), 0);
    if (content != NULL)
        assert_int_equal(write(fd, content, strlen(content)), (ssize_t)strlen(content));
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    return fd;
}

static void collect(int fd, char *to, size_t size)
{
    ssize_t count = pread(fd, to, size - 1, 0);
    to[count > 0 ? count : 0] = '\0';
    close(fd);
    normalise(to);
}

void tool(struct place *place, struct result *result, const char *input,
          const char *const *arguments)
{
    int in = scratch_file(input);
    int out = scratch_file(NULL);
    int err = scratch_file(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        become(place, arguments, in, out, err);
    result->status = wait_for(pid);
    close(in);
    collect(out, result->out, sizeof(result->out));
    collect(err, result->err, sizeof(result->err));
}

void wait_until(int (*holds)(void *arg), void *arg)
{
    const struct timespec pause = { .tv_sec = 0, .tv_nsec = 5000000 };
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    for (time_t until = now.tv_sec + 30; !holds(arg);) {
        clock_gettime(CLOCK_MONOTONIC, &now);
        if (now.tv_sec >= until)
            fail_msg("waited for half a minute");
        nanosleep(&pause, NULL);
    }
}

int daemon_connect(const struct place *place)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    pw_print(address.sun_path, sizeof(address.sun_path), "%s", place->sock);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0) {
        close(fd);
        fd = -1;
    }
    return fd;
}

static int answers(void *arg)
{
    struct place *place = arg;
    int status = 0;
    if (waitpid(place->daemon, &status, WNOHANG) == place->daemon) {
        place->daemon = 0;
        fail_msg("the daemon ended with %d:\n%s", status_of(status), daemon_log(place));
    }
    return strstr(daemon_log(place), "run.ready") != NULL;
}

void daemon_start(struct place *place, const char *const *arguments)
{
    const char *all[ARGUMENTS_MAX] = { "run" };
    for (size_t i = 1; *arguments != NULL; arguments++)
        all[i++] = *arguments;
    int in = open("/dev/null", O_RDWR);
    int log = open(place->log, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600);
    assert_true(in >= 0 && log >= 0);
    place->daemon = fork();
    assert_true(place->daemon >= 0);
    if (place->daemon == 0)
        become(place, all, in, in, log);
    close(in);
    close(log);
    wait_until(answers, place);
}

int daemon_wait(struct place *place)
{
    int status = wait_for(place->daemon);
    place->daemon = 0;
    return status;
}

int daemon_end(struct place *place, int signal)
{
    assert_int_equal(kill(place->daemon, signal), 0);
    return daemon_wait(place);
}

const char *daemon_log(const struct place *place)
{
    static char text[65536];
    int fd = open(place->log, O_RDONLY);
    ssize_t size = fd >= 0 ? read(fd, text, sizeof(text) - 1) : 0;
    text[size > 0 ? size : 0] = '\0';
    if (fd >= 0)
        close(fd);
    return text;
}
