/* SPDX-License-Identifier: Apache-2.0
 *
 * One connection: reads lines as long as there is room for what they lead to, and no further. Loop
 * thread. */
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "app/server.h"

/* Read from one connection in a turn: the others get through between. */
#define READS_MAX 8

struct pw_conn *pw_conn_open(struct pw_server *server, int fd)
{
    struct pw_conn *conn = pw_alloc(sizeof(*conn));
    if (conn == NULL)
        return NULL;
    conn->server = server;
    conn->fd = fd;
    pw_lines_init(&conn->in);
    pw_out_init(&conn->out);
    return conn;
}

static void hang_up(struct pw_conn *conn)
{
    if (conn->fd >= 0)
        (void)close(conn->fd); /* what was not sent is lost with it */
    conn->fd = -1;
}

void pw_conn_close(struct pw_conn *conn)
{
    hang_up(conn);
    pw_lines_fini(&conn->in);
    pw_out_fini(&conn->out);
    pw_free(conn);
}

static bool has_room(const struct pw_conn *conn)
{
    return conn->calls < PW_CALLS_MAX && pw_out_left(&conn->out) < PW_UNSENT_MAX;
}

static bool may_read(const struct pw_conn *conn)
{
    return conn->fd >= 0 && !conn->eof && !conn->closing && !conn->stalled && has_room(conn);
}

short pw_conn_wants(const struct pw_conn *conn)
{
    short events = 0;
    if (may_read(conn))
        events |= POLLIN;
    if (conn->fd >= 0 && pw_out_left(&conn->out) > 0)
        events |= POLLOUT;
    return events;
}

/* Serves the lines that are there, until there is no room. */
static void serve_lines(struct pw_conn *conn)
{
    const char *line = NULL;
    size_t size = 0;
    conn->stalled = false;
    while (conn->fd >= 0 && !conn->closing && has_room(conn)) {
        enum pw_line_kind kind = pw_lines_first(&conn->in, conn->eof, &line, &size);
        if (kind == PW_LINE_NONE)
            return;
        if (kind == PW_LINE_TOO_LONG) {
            pw_serve_error(conn, PAWL_E_LIMIT, "a line of more than 1 MiB");
            conn->closing = true;
            return;
        }
        if (!pw_serve_line(conn, line, size)) {
            conn->stalled = true;
            return;
        }
        pw_lines_drop(&conn->in, size);
    }
}

/* False: nothing more is there now. */
static bool read_some(struct pw_conn *conn)
{
    size_t room = 0;
    char *to = pw_lines_room(&conn->in, &room);
    if (to == NULL) {
        conn->closing = true;
        return false;
    }
    ssize_t size = recv(conn->fd, to, room, MSG_DONTWAIT);
    if (size > 0)
        pw_lines_filled(&conn->in, (size_t)size);
    else if (size == 0)
        conn->eof = true;
    else if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)
        hang_up(conn);
    return size > 0;
}

void pw_conn_turn(struct pw_conn *conn, short events)
{
    serve_lines(conn); /* what had to wait */
    if ((events & (POLLIN | POLLHUP | POLLERR)) != 0)
        for (int reads = 0; reads < READS_MAX && may_read(conn) && read_some(conn); reads++)
            serve_lines(conn);
    if (conn->eof)
        serve_lines(conn); /* a last line without a newline */
    if (conn->fd >= 0 && pw_out_left(&conn->out) > 0 && !pw_out_send(&conn->out, conn->fd))
        hang_up(conn);
}

bool pw_conn_over(const struct pw_conn *conn)
{
    if (conn->calls > 0)
        return false;
    if (conn->fd < 0)
        return true;
    bool sent = pw_out_left(&conn->out) == 0;
    bool served = conn->eof && conn->in.begin == conn->in.end;
    return sent && (conn->closing || served);
}
