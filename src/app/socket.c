/* SPDX-License-Identifier: Apache-2.0
 *
 * The listener and the loop. */
#define _GNU_SOURCE /* accept4 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "app/server.h"

#define BACKLOG 64
/* Without a descriptor for the next connection: looked again so often. */
#define ACCEPT_PAUSE_MS 100
/* The engine's queue is full, and no answer of ours will tell when it is not. */
#define STALLED_MS 10
/* At stop: how long answers may take to come and be read. */
#define STOP_MS 2000

/* --- open --------------------------------------------------------------------------------- */

static struct sockaddr_un address_of(const char *path)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    pw_print(address.sun_path, sizeof(address.sun_path), "%s", path);
    return address;
}

/* Removes a socket file on which nobody answers. Anything else stays. */
static pawl_err clear_path(const char *path, pawl_why *why)
{
    struct sockaddr_un address = address_of(path);
    struct stat status;
    if (lstat(path, &status) != 0)
        return errno == ENOENT ? PAWL_OK : pw_fail(why, PAWL_E_IO, "%s: %s", path, strerror(errno));
    if (!S_ISSOCK(status.st_mode))
        return pw_fail(why, PAWL_E_CONFIG, "%s is there, and no socket", path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return pw_fail(why, PAWL_E_IO, "socket: %s", strerror(errno));
    int code = connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0 ? 0 : errno;
    (void)close(fd); /* nothing was sent */
    if (code == 0 || code == EAGAIN)
        return pw_fail(why, PAWL_E_LOCKED, "another process answers on %s", path);
    if (code != ECONNREFUSED && code != ENOENT)
        return pw_fail(why, PAWL_E_IO, "%s: %s", path, strerror(code));
    if (unlink(path) != 0 && errno != ENOENT)
        return pw_fail(why, PAWL_E_IO, "remove %s: %s", path, strerror(errno));
    return PAWL_OK;
}

static pawl_err listen_on(int fd, const char *path, pawl_why *why)
{
    struct sockaddr_un address = address_of(path);
    if (fchmod(fd, 0600) != 0) /* before bind: the file is never open to others */
        return pw_fail(why, PAWL_E_IO, "%s: %s", path, strerror(errno));
    if (bind(fd, (const struct sockaddr *)&address, sizeof(address)) != 0)
        return pw_fail(why, PAWL_E_IO, "bind %s: %s", path, strerror(errno));
    if (chmod(path, 0600) != 0 || listen(fd, BACKLOG) != 0)
        return pw_fail(why, PAWL_E_IO, "listen on %s: %s", path, strerror(errno));
    return PAWL_OK;
}

pawl_err pw_server_open(struct pw_server **server, const char *path, pawl_why *why)
{
    pawl_err err = clear_path(path, why);
    if (err != PAWL_OK)
        return err;
    struct pw_server *opened = pw_alloc(sizeof(*opened));
    if (opened == NULL)
        return pw_fail(why, PAWL_E_NOMEM, "out of memory");
    pw_clock_init(&opened->clock);
    pw_queue_init(&opened->done, SIZE_MAX);
    pw_queue_init(&opened->todo, SIZE_MAX);
    pw_wake_init(&opened->todo_wake);
    opened->poke = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    opened->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (opened->poke < 0 || opened->listener < 0)
        err = pw_fail(why, PAWL_E_IO, "socket: %s", strerror(errno));
    else
        err = listen_on(opened->listener, path, why);
    if (err == PAWL_OK) {
        pw_print(opened->path, sizeof(opened->path), "%s", path);
        *server = opened;
    } else {
        pw_server_close(opened);
    }
    return err;
}

/* --- the loop ----------------------------------------------------------------------------- */

static uint64_t now_ms(struct pw_server *server)
{
    return server->clock.monotonic_ms(&server->clock);
}

static void refuse(struct pw_server *server, int fd)
{
    struct pw_conn *conn = pw_conn_open(server, fd);
    if (conn == NULL) {
        (void)close(fd); /* nothing was sent */
        return;
    }
    pw_serve_error(conn, PAWL_E_BUSY, "too many connections");
    (void)pw_out_send(&conn->out, fd); /* as far as it goes */
    pw_conn_close(conn);
}

static void accept_all(struct pw_server *server)
{
    for (;;) {
        int fd = accept4(server->listener, NULL, NULL, SOCK_CLOEXEC);
        if (fd < 0) {
            if (errno != EAGAIN && errno != EWOULDBLOCK && errno != ECONNABORTED && errno != EINTR)
                server->accept_at_ms = now_ms(server) + ACCEPT_PAUSE_MS;
            return;
        }
        if (server->conns_count == PW_CONNS_MAX) {
            refuse(server, fd);
            continue;
        }
        struct pw_conn *conn = pw_conn_open(server, fd);
        if (conn == NULL) {
            (void)close(fd); /* nothing was sent */
            return;
        }
        server->conns[server->conns_count++] = conn;
    }
}

/* What poll looks at: the poke, the listener, then those connections that want something. */
struct watch {
    struct pollfd fds[2 + PW_CONNS_MAX];
    size_t of[2 + PW_CONNS_MAX]; /* the connection's index */
    size_t count;
    int timeout_ms;
};

static void sooner(struct watch *watch, int ms)
{
    if (watch->timeout_ms < 0 || watch->timeout_ms > ms)
        watch->timeout_ms = ms;
}

static void prepare(struct pw_server *server, struct watch *watch)
{
    bool accepting = now_ms(server) >= server->accept_at_ms && !atomic_load(&server->stopping);
    *watch = (struct watch){ .count = 2, .timeout_ms = -1 };
    watch->fds[0] = (struct pollfd){ .fd = server->poke, .events = POLLIN };
    watch->fds[1] = (struct pollfd){ .fd = accepting ? server->listener : -1, .events = POLLIN };
    if (!accepting)
        sooner(watch, ACCEPT_PAUSE_MS);
    for (size_t i = 0; i < server->conns_count; i++) {
        const struct pw_conn *conn = server->conns[i];
        short events = pw_conn_wants(conn);
        if (conn->stalled)
            sooner(watch, STALLED_MS);
        if (events == 0)
            continue; /* nor is its end of interest now: it would be told again and again */
        watch->fds[watch->count] = (struct pollfd){ .fd = conn->fd, .events = events };
        watch->of[watch->count++] = i;
    }
}

static void drop_over(struct pw_server *server)
{
    for (size_t i = server->conns_count; i-- > 0;) {
        if (!pw_conn_over(server->conns[i]))
            continue;
        pw_conn_close(server->conns[i]);
        server->conns[i] = server->conns[--server->conns_count];
    }
}

static void loop_turn(struct pw_server *server)
{
    struct watch watch;
    short events[PW_CONNS_MAX] = { 0 };
    uint64_t pokes = 0;
    prepare(server, &watch);
    if (poll(watch.fds, (nfds_t)watch.count, watch.timeout_ms) < 0)
        return; /* EINTR, or short of memory: again */
    if (watch.fds[0].revents != 0)
        (void)!read(server->poke, &pokes, sizeof(pokes)); /* only to make it quiet */
    (void)pw_serve_done(server);
    for (size_t i = 2; i < watch.count; i++)
        events[watch.of[i]] = watch.fds[i].revents;
    for (size_t i = 0; i < server->conns_count; i++)
        pw_conn_turn(server->conns[i], events[i]);
    drop_over(server);
    if (watch.fds[1].revents != 0)
        accept_all(server);
}

/* Nothing is read any more; what is under way gets its answer. */
static void wind_down(struct pw_server *server)
{
    uint64_t until_ms = now_ms(server) + STOP_MS;
    for (size_t i = 0; i < server->conns_count; i++)
        server->conns[i]->closing = true;
    while (server->conns_count > 0 && now_ms(server) < until_ms)
        loop_turn(server);
}

static void *loop_main(void *arg)
{
    struct pw_server *server = arg;
    while (!atomic_load(&server->stopping))
        loop_turn(server);
    wind_down(server);
    return NULL;
}

/* --- start, stop, close ------------------------------------------------------------------- */

pawl_err pw_server_start(struct pw_server *server, pawl *engine, pawl_why *why)
{
    server->engine = engine;
    server->start_ms = now_ms(server);
    if (pthread_create(&server->helper, NULL, pw_serve_helper, server) != 0)
        return pw_fail(why, PAWL_E_NOMEM, "a thread cannot be made");
    if (pthread_create(&server->loop, NULL, loop_main, server) != 0) {
        atomic_store(&server->helper_ends, true);
        pw_poke(&server->todo_wake);
        (void)pthread_join(server->helper, NULL); /* ours, joined once */
        return pw_fail(why, PAWL_E_NOMEM, "a thread cannot be made");
    }
    server->started = true;
    return PAWL_OK;
}

static void remove_file(struct pw_server *server)
{
    if (server->path[0] != '\0')
        (void)unlink(server->path); /* one that stays is replaced at the next start */
    server->path[0] = '\0';
}

void pw_server_stop(struct pw_server *server)
{
    static const uint64_t one = 1;
    if (server == NULL || !server->started)
        return;
    atomic_store(&server->stopping, true);
    (void)!write(server->poke, &one, sizeof(one)); /* full: the loop is awake already */
    (void)pthread_join(server->loop, NULL);        /* ours, joined once */
    atomic_store(&server->helper_ends, true);
    pw_poke(&server->todo_wake);
    (void)pthread_join(server->helper, NULL);
    remove_file(server); /* while the lock is held: the next daemon's stays */
    server->started = false;
}

void pw_server_close(struct pw_server *server)
{
    if (server == NULL)
        return;
    pw_server_stop(server);
    (void)pw_serve_done(server);
    pw_serve_forget(server);
    for (size_t i = 0; i < server->conns_count; i++)
        pw_conn_close(server->conns[i]);
    remove_file(server);
    if (server->listener >= 0)
        (void)close(server->listener); /* nothing is buffered in it */
    if (server->poke >= 0)
        (void)close(server->poke);
    pw_queue_fini(&server->done);
    pw_queue_fini(&server->todo);
    pw_wake_fini(&server->todo_wake);
    pw_free(server);
}
