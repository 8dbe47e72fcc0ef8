/* SPDX-License-Identifier: Apache-2.0
 *
 * See remote.h. */
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "app/remote.h"
#include "base/wake.h"

static int connect_to(const char *path)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    pw_print(address.sun_path, sizeof(address.sun_path), "%s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0)
        return fd;
    int code = errno;
    (void)close(fd); /* nothing was sent */
    errno = code;
    return -1;
}

pawl_err pw_remote_open(struct pw_remote *remote, const struct pw_config *config, pawl_why *why)
{
    char path[PW_SOCKET_PATH_MAX + 1] = "";
    pawl_err err = pw_config_socket(config, path, sizeof(path), why);
    if (err != PAWL_OK)
        return err;
    int fd = connect_to(path);
    if (fd < 0 && errno == EAGAIN)
        return pw_fail(why, PAWL_E_BUSY, "the daemon on %s has no time", path);
    if (fd < 0 && errno != ENOENT && errno != ECONNREFUSED)
        return pw_fail(why, PAWL_E_IO, "%s: %s", path, strerror(errno));
    if (fd < 0)
        return pw_fail(why, PAWL_E_IO, "no daemon answers on %s", path);
    *remote = (struct pw_remote){ .fd = fd };
    pw_lines_init(&remote->in);
    pw_out_init(&remote->out);
    pw_clock_init(&remote->clock);
    return PAWL_OK;
}

void pw_remote_close(struct pw_remote *remote)
{
    (void)close(remote->fd); /* nothing is buffered in it */
    pw_lines_fini(&remote->in);
    pw_out_fini(&remote->out);
}

bool pw_remote_receive(struct pw_remote *remote)
{
    size_t room = 0;
    char *to = pw_lines_room(&remote->in, &room);
    if (to == NULL)
        return false;
    ssize_t size = recv(remote->fd, to, room, MSG_DONTWAIT);
    if (size < 0)
        return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
    pw_lines_filled(&remote->in, (size_t)size);
    return size > 0;
}

pawl_err pw_remote_next(struct pw_remote *remote, json_t **answer, pawl_why *why)
{
    const char *line = NULL;
    size_t size = 0;
    pawl_why what = { "" };
    *answer = NULL;
    switch (pw_lines_first(&remote->in, false, &line, &size)) {
    case PW_LINE:
        *answer = pw_demand_load(line, size, &what);
        pw_lines_drop(&remote->in, size);
        return *answer != NULL
                   ? PAWL_OK
                   : pw_fail(why, PAWL_E_IO, "the daemon's answer is %.200s", what.text);
    case PW_LINE_TOO_LONG:
        return pw_fail(why, PAWL_E_IO, "the daemon's answer is too long");
    case PW_LINE_NONE:
    default:
        return PAWL_OK;
    }
}

/* Sends and receives once, waiting at most until then. */
static pawl_err exchange(struct pw_remote *remote, uint64_t until_ms, pawl_why *why)
{
    uint64_t now_ms = remote->clock.monotonic_ms(&remote->clock);
    struct pollfd look = { .fd = remote->fd, .events = POLLIN };
    if (now_ms >= until_ms)
        return pw_fail(why, PAWL_E_UNKNOWN, "the daemon gave no answer");
    if (pw_out_left(&remote->out) > 0)
        look.events |= POLLOUT;
    if (poll(&look, 1, (int)(until_ms - now_ms)) <= 0)
        return PAWL_OK; /* interrupted, or the time is over: seen next */
    if (!pw_out_send(&remote->out, remote->fd) ||
        ((look.revents & ~POLLOUT) != 0 && !pw_remote_receive(remote)))
        return pw_fail(why, PAWL_E_UNKNOWN, "the daemon is gone before its answer");
    return PAWL_OK;
}

pawl_err pw_remote_call(struct pw_remote *remote, json_t *request, uint64_t timeout_ms,
                        json_t **answer, pawl_why *why)
{
    uint64_t until_ms = remote->clock.monotonic_ms(&remote->clock) + timeout_ms;
    json_t *came = NULL;
    pawl_err err =
        pw_out_json(&remote->out, request) ? PAWL_OK : pw_fail(why, PAWL_E_NOMEM, "out of memory");
    while (err == PAWL_OK && came == NULL) {
        err = exchange(remote, until_ms, why);
        if (err == PAWL_OK)
            err = pw_remote_next(remote, &came, why);
    }
    if (err == PAWL_OK)
        *answer = came;
    return err;
}

pawl_err pw_remote_err(const json_t *answer, pawl_why *why)
{
    const char *name = json_string_value(json_object_get(answer, "error"));
    const char *text = json_string_value(json_object_get(answer, "text"));
    if (json_is_true(json_object_get(answer, "ok")))
        return PAWL_OK;
    return pw_fail(why, pw_err_of_name(name != NULL ? name : ""), "%s",
                   text != NULL ? text : "no reason is given");
}

pawl_err pw_remote_ask(struct pw_remote *remote, json_t *request, json_t **answer, pawl_why *why)
{
    struct pw_wake wake;
    pawl_err err = PAWL_OK;
    pw_wake_init(&wake);
    for (unsigned tries = 0;; tries++) {
        err = pw_remote_call(remote, json_incref(request), PW_ANSWER_MS, answer, why);
        if (err == PAWL_OK)
            err = pw_remote_err(*answer, why);
        if (err != PAWL_E_BUSY || tries == PW_BUSY_TRIES || *answer == NULL)
            break;
        json_decref(*answer);
        *answer = NULL;
        pw_nap(&wake, (uint64_t)PW_BUSY_MS << tries);
    }
    pw_wake_fini(&wake);
    return err;
}
