/* SPDX-License-Identifier: Apache-2.0
 *
 * See nats.h. */
#define _XOPEN_SOURCE 700 /* nftw */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/nats.h"
#include "support/test.h"

#define READY_TRIES_MAX 1500
#define READY_TRY_MS 10

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *walk)
{
    (void)status;
    (void)kind;
    (void)walk;
    return remove(path);
}

static void remove_tree(const char *path)
{
    (void)nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS); /* it may not be there */
}

static void wait_for(pid_t pid, int *status)
{
    while (waitpid(pid, status, 0) < 0)
        assert_int_equal(errno, EINTR);
}

static void copy_tree(const char *from, const char *to)
{
    int status = 0;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        execlp("cp", "cp", "-a", from, to, (char *)NULL);
        _exit(127);
    }
    wait_for(pid, &status);
    assert_int_equal(status, 0);
}

/* --- the port ------------------------------------------------------------------------------- */

static struct sockaddr_in address_of(uint16_t port)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(port) };
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

static uint16_t free_port(void)
{
    struct sockaddr_in address = address_of(0);
    socklen_t size = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
    close(fd);
    return ntohs(address.sin_port);
}

/* It greets with "INFO {...}" when it is ready, its JetStream too. */
static bool answers(uint16_t port)
{
    char greeting[5] = "";
    struct sockaddr_in address = address_of(port);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_true(fd >= 0);
    struct pollfd wait = { .fd = fd, .events = POLLIN };
    bool ready = connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0 &&
                 poll(&wait, 1, READY_TRIES_MAX * READY_TRY_MS) == 1 &&
                 recv(fd, greeting, 4, MSG_WAITALL) == 4 && strcmp(greeting, "INFO") == 0;
    close(fd);
    return ready;
}

static void wait_until_ready(const struct nats_server *server)
{
    for (int i = 0; i < READY_TRIES_MAX; i++) {
        if (answers(server->port))
            return;
        if (waitpid(server->pid, NULL, WNOHANG) != 0)
            fail_msg("nats-server ended; see %s", server->log);
        (void)poll(NULL, 0, READY_TRY_MS);
    }
    fail_msg("nats-server does not answer; see %s", server->log);
}

/* --- the process ---------------------------------------------------------------------------- */

static char program[4096] = "nats-server";

/* Before main: to the programs that tests start, the variable would be an unknown setting. */
__attribute__((constructor)) static void take_program(void)
{
    const char *wanted = getenv("PAWL_NATS_SERVER");
    if (wanted != NULL)
        (void)snprintf(program, sizeof(program), "%s", wanted);
    (void)unsetenv("PAWL_NATS_SERVER");
}

/* The child's part of a fork. */
static void become(const struct nats_server *server, pid_t parent)
{
    char port[8] = "";
    const char *argv[16] = { program, "-a",  "127.0.0.1",   "-p", port,
                             "-js",   "-sd", server->store, "-l", server->log };
    if (server->config[0] != '\0') {
        argv[10] = "-c";
        argv[11] = server->config;
    }
    (void)snprintf(port, sizeof(port), "%u", server->port);
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent)
        _exit(126);
    execvp(program, (char *const *)argv);
    _exit(127);
}

void nats_server_restart(struct nats_server *server)
{
    pid_t parent = getpid();
    assert_int_equal(server->pid, 0);
    server->pid = fork();
    assert_true(server->pid >= 0);
    if (server->pid == 0)
        become(server, parent);
    wait_until_ready(server);
}

void nats_server_start(struct nats_server *server, const char *config)
{
    *server = (struct nats_server){ .port = free_port() };
    (void)snprintf(server->root, sizeof(server->root), "/tmp/pawl-nats.XXXXXX");
    assert_non_null(mkdtemp(server->root));
    (void)snprintf(server->store, sizeof(server->store), "%s/js", server->root);
    (void)snprintf(server->log, sizeof(server->log), "%s/log", server->root);
    (void)snprintf(server->bus, sizeof(server->bus), "nats://127.0.0.1:%u", server->port);
    if (config != NULL) {
        (void)snprintf(server->config, sizeof(server->config), "%s/conf", server->root);
        FILE *file = fopen(server->config, "w");
        assert_non_null(file);
        assert_true(fputs(config, file) >= 0);
        assert_int_equal(fclose(file), 0);
    }
    nats_server_restart(server);
}

static void end_process(struct nats_server *server, int by)
{
    if (server->pid == 0)
        return;
    assert_int_equal(kill(server->pid, by), 0);
    wait_for(server->pid, NULL);
    server->pid = 0;
}

void nats_server_kill(struct nats_server *server)
{
    end_process(server, SIGKILL);
}

void nats_server_stop(struct nats_server *server)
{
    end_process(server, SIGTERM);
}

void nats_server_freeze(struct nats_server *server)
{
    int status = 0;
    assert_int_equal(kill(server->pid, SIGSTOP), 0);
    /* Its threads stop one after the other: the last one, before it is told here. */
    while (waitpid(server->pid, &status, WUNTRACED) < 0)
        assert_int_equal(errno, EINTR);
    assert_true(WIFSTOPPED(status));
}

void nats_server_thaw(struct nats_server *server)
{
    assert_int_equal(kill(server->pid, SIGCONT), 0);
}

/* --- what it stores ------------------------------------------------------------------------- */

static void saved_of(const struct nats_server *server, char saved[96])
{
    (void)snprintf(saved, 96, "%s.saved", server->store);
}

void nats_server_wipe(struct nats_server *server)
{
    assert_int_equal(server->pid, 0);
    remove_tree(server->store);
}

void nats_server_save(struct nats_server *server)
{
    char saved[96] = "";
    assert_int_equal(server->pid, 0);
    saved_of(server, saved);
    remove_tree(saved);
    copy_tree(server->store, saved);
}

void nats_server_load(struct nats_server *server)
{
    char saved[96] = "";
    saved_of(server, saved);
    nats_server_wipe(server);
    copy_tree(saved, server->store);
}

void nats_server_end(struct nats_server *server)
{
    nats_server_kill(server);
    remove_tree(server->root);
}
