/* SPDX-License-Identifier: Apache-2.0
 *
 * The daemon's life, and what arrives on its socket: kills, signals, rivals, readers of its log
 * that do not read, and clients that talk nonsense or do not listen. Nothing of it may end, hang or
 * swell it. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "process/tool.h"
#include "base/base.h"
#include "support/test.h"

static struct result r;

static int connect_now(const struct place *place)
{
    int fd = daemon_connect(place);
    assert_true(fd >= 0);
    return fd;
}

static void send_all(int fd, const char *bytes, size_t size)
{
    while (size > 0) {
        ssize_t sent = send(fd, bytes, size, MSG_NOSIGNAL);
        if (sent < 0 && errno == EPIPE)
            return; /* it has heard enough */
        assert_true(sent > 0);
        bytes += sent;
        size -= (size_t)sent;
    }
}

static void say(int fd, const char *text)
{
    send_all(fd, text, strlen(text));
}

/* One line, or what came until the end. */
static void hear(int fd, char *to, size_t size)
{
    size_t used = 0;
    while (used < size - 1 && recv(fd, to + used, 1, 0) == 1)
        if (to[used++] == '\n')
            break;
    to[used] = '\0';
}

static void expect_answer(int fd, const char *text)
{
    char line[4096];
    hear(fd, line, sizeof(line));
    assert_string_equal(line, text);
}

static void expect_end(int fd)
{
    char byte = 0;
    ssize_t size = recv(fd, &byte, 1, 0);
    assert_true(size == 0 || (size < 0 && errno == ECONNRESET));
    close(fd);
}

static void expect_alive(struct place *p)
{
    TOOL(p, &r, NULL, "status");
    assert_int_equal(r.status, 0);
    assert_non_null(strstr(r.out, "daemon: pid "));
}

/* --- the socket --------------------------------------------------------------------------- */

static void nonsense(void **state)
{
    struct place *p = *state;
    DAEMON(p, NULL);
    int fd = connect_now(p);
    say(fd, "nonsense\n");
    expect_answer(fd, "{\"ok\":false,\"error\":\"E_USAGE\",\"class\":\"misuse\",\"text\":\"not "
                      "JSON: '[' or '{' expected near 'nonsense', at byte 8\"}\n");
    say(fd, "{\"op\":\"create\",\"tag\":7,\"machine\":\"order\"}\n");
    expect_answer(fd, "{\"ok\":false,\"error\":\"E_USAGE\",\"class\":\"misuse\",\"text\":\"no "
                      "\\\"id\\\"\",\"tag\":7}\n");
    say(fd, "{\"op\":\"create\",\"tag\":8,\"machine\":\"order\",\"id\":\"1\",\"x\":0}\n");
    expect_answer(fd, "{\"ok\":false,\"error\":\"E_USAGE\",\"class\":\"misuse\",\"text\":\"unknown "
                      "field \\\"x\\\"\",\"tag\":8}\n");
    say(fd, "{\"op\":\"hold\",\"tag\":9,\"machine\":\"order\"}\n");
    expect_answer(fd, "{\"ok\":true,\"tag\":9}\n");
    say(fd, "{\"op\":\"verify\",\"tag\":10}\n");
    expect_answer(fd, "{\"ok\":true,\"unlisted\":0,\"tag\":10}\n");
    close(fd);
    expect_alive(p);
    assert_int_equal(daemon_end(p, SIGTERM), 0);
}

static void floods(void **state)
{
    struct place *p = *state;
    static char much[3 * 1024 * 1024];
    unsigned random = 12345;
    DAEMON(p, NULL);
    memset(much, '[', 10000);
    much[10000] = '\n';
    int fd = connect_now(p);
    send_all(fd, much, 10001);
    char line[4096];
    hear(fd, line, sizeof(line));
    assert_non_null(strstr(line, "maximum parsing depth reached"));
    close(fd);
    memset(much, 'x', sizeof(much)); /* no newline */
    fd = connect_now(p);
    send_all(fd, much, sizeof(much));
    hear(fd, line, sizeof(line));
    assert_true(line[0] == '\0' ||
                strcmp(line, "{\"ok\":false,\"error\":\"E_LIMIT\",\"class\":\"final\",\"text\":\"a "
                             "line of more than 1 MiB\"}\n") == 0);
    expect_end(fd);
    for (size_t i = 0; i < sizeof(much); i++) {
        random = random * 1103515245 + 12345;
        much[i] = (char)(random >> 16);
    }
    fd = connect_now(p);
    send_all(fd, much, 256 * 1024);
    close(fd);
    expect_alive(p);
}

/* Half a connection: no more is said, but the answers are waited for. */
static void half_closed(void **state)
{
    struct place *p = *state;
    DAEMON(p, NULL);
    int fd = connect_now(p);
    say(fd, "{\"op\":\"hold\",\"tag\":1,\"machine\":\"order\"}\n{\"op\":\"release\",\"tag\":2,"
            "\"machine\":\"order\"}");
    shutdown(fd, SHUT_WR);
    expect_answer(fd, "{\"ok\":true,\"tag\":1}\n");
    expect_answer(fd, "{\"ok\":true,\"tag\":2}\n");
    expect_end(fd);
    fd = connect_now(p); /* said and gone */
    say(fd, "{\"op\":\"create\",\"tag\":1,\"machine\":\"order\",\"id\":\"gone\"}\n");
    close(fd);
    int idle[10];
    for (int i = 0; i < 10; i++)
        idle[i] = connect_now(p);
    expect_alive(p);
    for (int i = 0; i < 10; i++)
        close(idle[i]);
}

static int is_created(void *arg)
{
    TOOL((struct place *)arg, &r, NULL, "show", "order", "last");
    return r.status == 0;
}

/* A client that sends and never reads: the daemon stops reading from it, and goes on for others. */
static void deaf_client(void **state)
{
    struct place *p = *state;
    DAEMON(p, NULL);
    int fd = connect_now(p);
    assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
    static const char request[] = "{\"op\":\"status\",\"tag\":1}\n";
    size_t sent = 0;
    for (int refused = 0; refused < 100 && sent < 16 * 1024 * 1024;) {
        ssize_t size = send(fd, request, sizeof(request) - 1, MSG_NOSIGNAL);
        if (size > 0)
            sent += (size_t)size;
        else
            expect_alive(p), refused += 50;
    }
    assert_true(sent < 16 * 1024 * 1024);
    TOOL(p, &r, NULL, "create", "order", "last");
    wait_until(is_created, p);
    close(fd);
}

static void too_many(void **state)
{
    struct place *p = *state;
    int fds[64];
    DAEMON(p, NULL);
    for (int i = 0; i < 64; i++) {
        fds[i] = connect_now(p);
        say(fds[i], "{\"op\":\"release\",\"tag\":1,\"machine\":\"order\"}\n");
        expect_answer(fds[i], "{\"ok\":true,\"tag\":1}\n");
    }
    int one_more = connect_now(p);
    expect_answer(one_more, "{\"ok\":false,\"error\":\"E_BUSY\",\"class\":\"transient\",\"text\":"
                            "\"too many connections\"}\n");
    expect_end(one_more);
    for (int i = 0; i < 64; i++)
        close(fds[i]);
    TOOL(p, &r, NULL, "create", "order", "last");
    wait_until(is_created, p);
}

/* --- the life ----------------------------------------------------------------------------- */

static void rivals(void **state)
{
    struct place *p = *state;
    char error[256];
    char host[65] = "";
    struct stat status;
    gethostname(host, 64);
    DAEMON(p, NULL);
    assert_int_equal(stat(p->sock, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0600);
    TOOL(p, &r, NULL, "run");
    pw_print(error, sizeof(error), "order: run: open store: %s is owned by process %d on host %s\n",
             p->dir, (int)p->daemon, host);
    EXPECT(&r, 3, "", error);
    TOOL(p, &r, NULL, "create", "order", "1");
    assert_int_equal(r.status, 0);
    assert_int_equal(daemon_end(p, SIGTERM), 0);
    assert_int_not_equal(stat(p->sock, &status), 0);
    TOOL(p, &r, NULL, "run", "--shards", "2");
    pw_print(error, sizeof(error), "order: run: open store: %s has 1 shards; asked for are 2\n",
             p->dir);
    EXPECT(&r, 1, "", error);
    TOOL(p, &r, NULL, "run", "--namespace", "other");
    assert_int_equal(r.status, 1);
    assert_non_null(strstr(
        r.err,
        "the store is namespace main, shard 0 of 1; asked for is namespace other, shard 0 of 1"));
}

static void shards(void **state)
{
    struct place *p = *state;
    char path[128];
    char moved[128];
    char error[256];
    DAEMON(p, "--shards", "3", NULL);
    TOOL(p, &r,
         "{\"machine\":\"order\",\"id\":\"1\"}\n{\"machine\":\"order\",\"id\":\"2\"}\n{\"machine\":"
         "\"order\",\"id\":\"3\"}\n",
         "create");
    assert_int_equal(r.status, 0);
    assert_int_equal(daemon_end(p, SIGTERM), 0);
    DAEMON(p, NULL); /* as the directory has */
    TOOL(p, &r, NULL, "verify");
    EXPECT(&r, 0, "3 entities, 0 faults, the daemon's lists included\n", "");
    assert_int_equal(daemon_end(p, SIGTERM), 0);
    pw_print(path, sizeof(path), "%s/shard-2", p->dir);
    pw_print(moved, sizeof(moved), "%s/away", p->dir);
    assert_int_equal(rename(path, moved), 0);
    TOOL(p, &r, NULL, "run");
    pw_print(error, sizeof(error),
             "order: run: open store: %s has 2 of its 3 shard directories: put the others back, or "
             "delete all\n",
             p->dir);
    EXPECT(&r, 1, "", error);
}

static void killed(void **state)
{
    struct place *p = *state;
    DAEMON(p, NULL);
    TOOL(p, &r, NULL, "create", "order", "1", "--data", "5 slow 60000");
    TOOL(p, &r, NULL, "send", "order", "1", "submit");
    assert_int_equal(r.status, 0);
    assert_int_equal(daemon_end(p, SIGKILL), 128 + SIGKILL);
    TOOL(p, &r, NULL, "show", "order", "1", "--json");
    assert_non_null(strstr(r.out, "\"state\":\"charging\""));
    TOOL(p, &r, NULL, "status");
    assert_non_null(strstr(r.out, "not ended cleanly"));
    DAEMON(p, NULL); /* over the socket file that was left */
    TOOL(p, &r, NULL, "send", "order", "1", "cancel");
    EXPECT(&r, 0, "order/1: cancelled, version V\n", "");
    TOOL(p, &r, NULL, "verify");
    assert_int_equal(r.status, 0);
}

static int is_running(void *arg)
{
    TOOL((struct place *)arg, &r, NULL, "status");
    return strstr(r.out, " 1 running") != NULL;
}

static void begin_slow_work(struct place *p)
{
    TOOL(p, &r, NULL, "create", "order", "1", "--data", "5 slow 60000");
    TOOL(p, &r, NULL, "send", "order", "1", "submit");
    assert_int_equal(r.status, 0);
    wait_until(is_running, p);
}

/* A daemon that is to end with its threads running: ThreadSanitizer would call them leaked. */
static void start_to_be_forced(struct place *p, const char *stop_ms)
{
    char all[512] = "";
    char before[256] = "";
    const char *options = getenv("TSAN_OPTIONS");
    pw_print(before, sizeof(before), "%s", options != NULL ? options : "");
    pw_print(all, sizeof(all), "%s:report_thread_leaks=0", before);
    assert_int_equal(setenv("TSAN_OPTIONS", all, 1), 0);
    DAEMON(p, "--stop-ms", stop_ms, NULL);
    assert_int_equal(setenv("TSAN_OPTIONS", before, 1), 0);
}

static void forced(void **state)
{
    struct place *p = *state;
    start_to_be_forced(p, "50");
    begin_slow_work(p);
    assert_int_equal(daemon_end(p, SIGTERM), 6);
    assert_non_null(strstr(daemon_log(p), " WARN run.forced work still runs after stop-ms=50"));
    TOOL(p, &r, NULL, "verify");
    EXPECT(&r, 0, "1 entities, 0 faults\n", "");
}

static int is_stopping(void *arg)
{
    return strstr(daemon_log(arg), "run.stopping") != NULL;
}

static void second_signal(void **state)
{
    struct place *p = *state;
    start_to_be_forced(p, "600000");
    begin_slow_work(p);
    assert_int_equal(kill(p->daemon, SIGINT), 0);
    wait_until(is_stopping, p);
    TOOL(p, &r, NULL, "create", "order", "2");
    EXPECT(&r, 4, "", "order: create order/2: the engine is stopping (try again)\n");
    assert_int_equal(daemon_end(p, SIGTERM), 6);
}

/* A tool in the middle of its lines when the daemon dies. */
static void lost_in_the_middle(void **state)
{
    struct place *p = *state;
    int lines[2];
    char text[64];
    char error[4096] = "";
    int status = 0;
    DAEMON(p, NULL);
    assert_int_equal(pipe(lines), 0);
    char path[96];
    pw_print(path, sizeof(path), "%s/err", p->root);
    pid_t pid = fork();
    if (pid == 0) {
        int err = open(path, O_WRONLY | O_CREAT, 0600);
        dup2(lines[0], 0);
        dup2(err, 2);
        close(lines[1]);
        execl(ORDER, ORDER, "--dir", p->dir, "create", NULL);
        _exit(127);
    }
    close(lines[0]);
    for (int i = 0; i < 10; i++) {
        pw_print(text, sizeof(text), "{\"machine\":\"order\",\"id\":\"%s\"}\n",
                 i < 9 ? "x" : "last");
        assert_int_equal(write(lines[1], text, strlen(text)), (ssize_t)strlen(text));
    }
    wait_until(is_created, p);
    assert_int_equal(kill(p->daemon, SIGSTOP), 0);
    assert_int_equal(write(lines[1], "{\"machine\":\"order\",\"id\":\"y\"}\n", 29), 29);
    (void)daemon_end(p, SIGKILL);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    close(lines[1]);
    assert_int_equal(WEXITSTATUS(status), 4);
    int fd = open(path, O_RDONLY);
    assert_true(read(fd, error, sizeof(error) - 1) > 0);
    close(fd);
    assert_non_null(
        strstr(error, "lines have no answer: the connection to the daemon was lost (try again)\n"));
}

/* A log that nobody reads: the daemon drops lines and works on. */
static void log_pipe_full(void **state)
{
    struct place *p = *state;
    int ends[2];
    char byte[4096] = { 0 };
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(fcntl(ends[1], F_SETFL, O_NONBLOCK), 0);
    while (write(ends[1], byte, sizeof(byte)) > 0)
        ;
    assert_int_equal(fcntl(ends[1], F_SETFL, 0), 0); /* the daemon's end blocks */
    p->daemon = fork();
    if (p->daemon == 0) {
        dup2(ends[1], 2);
        close(ends[0]);
        close(ends[1]);
        execl(ORDER, ORDER, "--dir", p->dir, "--log-level", "debug", "run", NULL);
        _exit(127);
    }
    close(ends[1]);
    TOOL(p, &r, NULL, "create", "order", "last");
    while (r.status == 4)
        TOOL(p, &r, NULL, "create", "order", "last");
    assert_int_equal(r.status, 0);
    close(ends[0]); /* now a write is EPIPE */
    TOOL(p, &r, NULL, "create", "order", "other");
    assert_int_equal(r.status, 0);
    assert_int_equal(daemon_end(p, SIGTERM), 0);
}

/* Without standard descriptors nothing of the store may get their numbers. */
static void closed_descriptors(void **state)
{
    struct place *p = *state;
    p->daemon = fork();
    if (p->daemon == 0) {
        close(0);
        close(1);
        close(2);
        execl(ORDER, ORDER, "--dir", p->dir, "--log-level", "debug", "run", NULL);
        _exit(127);
    }
    do {
        TOOL(p, &r, NULL, "create", "order", "last");
    } while (r.status == 4);
    assert_int_equal(r.status, 0);
    assert_int_equal(daemon_end(p, SIGTERM), 0);
    TOOL(p, &r, NULL, "verify");
    EXPECT(&r, 0, "1 entities, 0 faults\n", "");
}

static void no_place_for_the_socket(void **state)
{
    struct place *p = *state;
    char path[200];
    memset(path, 'x', sizeof(path) - 1);
    path[0] = '/';
    path[sizeof(path) - 1] = '\0';
    TOOL(p, &r, NULL, "run", "--socket", path);
    EXPECT(&r, 2, "",
           "order: run: the socket's path has 199 bytes, the system takes 107; give a shorter one "
           "by --socket\n");
    pw_print(path, sizeof(path), "%s/file", p->root);
    int fd = open(path, O_WRONLY | O_CREAT, 0600);
    close(fd);
    TOOL(p, &r, NULL, "run", "--socket", path);
    assert_int_equal(r.status, 2);
    assert_non_null(strstr(r.err, "is there, and no socket"));
    assert_int_equal(access(path, F_OK), 0);
}

int main(void)
{
    unsetenv("PAWL_RESULTS"); /* ctest's: no setting */
    (void)signal(SIGPIPE, SIG_IGN);
#define CASE(name) cmocka_unit_test_setup_teardown(name, place_make, place_remove)
    const struct CMUnitTest tests[] = {
        CASE(nonsense),
        CASE(floods),
        CASE(half_closed),
        CASE(deaf_client),
        CASE(rivals),
        CASE(shards),
        CASE(killed),
        CASE(forced),
        CASE(second_signal),
        CASE(lost_in_the_middle),
        CASE(too_many),
        CASE(log_pipe_full),
        CASE(closed_descriptors),
        CASE(no_place_for_the_socket),
    };
    return cmocka_run_group_tests(tests, leaks_begin, leaks_end);
}
