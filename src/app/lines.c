/* SPDX-License-Identifier: Apache-2.0
 *
 * See lines.h. */
#include <assert.h>
#include <errno.h>
#include <sys/socket.h>

#include "app/lines.h"

/* Read at once: some hundred requests. */
#define ROOM_MIN (16u * 1024)

void pw_lines_init(struct pw_lines *lines)
{
    *lines = (struct pw_lines){ .bytes = NULL };
}

void pw_lines_fini(struct pw_lines *lines)
{
    pw_free(lines->bytes);
    pw_lines_init(lines);
}

char *pw_lines_room(struct pw_lines *lines, size_t *room)
{
    if (lines->begin > 0) {
        memmove(lines->bytes, lines->bytes + lines->begin, lines->end - lines->begin);
        lines->end -= lines->begin;
        lines->begin = 0;
    }
    if (lines->size - lines->end < ROOM_MIN) {
        size_t size = lines->size < 2 * ROOM_MIN ? 2 * ROOM_MIN : 2 * lines->size;
        char *bytes = pw_realloc(lines->bytes, size);
        if (bytes == NULL)
            return NULL;
        lines->bytes = bytes;
        lines->size = size;
    }
    *room = lines->size - lines->end;
    return lines->bytes + lines->end;
}

void pw_lines_filled(struct pw_lines *lines, size_t size)
{
    lines->end += size;
    assert(lines->end <= lines->size);
}

/* Drops the rest of a line that was too long, as far as it is there. */
static void skip(struct pw_lines *lines)
{
    const char *from = lines->bytes + lines->begin;
    const char *newline = memchr(from, '\n', lines->end - lines->begin);
    lines->skipping = newline == NULL;
    lines->begin = newline == NULL ? lines->end : (size_t)(newline - lines->bytes) + 1;
}

enum pw_line_kind pw_lines_first(struct pw_lines *lines, bool at_end, const char **line,
                                 size_t *size)
{
    if (lines->skipping && lines->end > lines->begin)
        skip(lines);
    size_t left = lines->end - lines->begin;
    if (left == 0)
        return PW_LINE_NONE;
    const char *from = lines->bytes + lines->begin;
    const char *newline = memchr(from, '\n', left < PW_LINE_SIZE_MAX ? left : PW_LINE_SIZE_MAX);
    if (newline == NULL && left >= PW_LINE_SIZE_MAX) {
        skip(lines);
        return PW_LINE_TOO_LONG;
    }
    if (newline == NULL && !at_end)
        return PW_LINE_NONE;
    *line = from;
    *size = newline != NULL ? (size_t)(newline - from) : left;
    return PW_LINE;
}

void pw_lines_drop(struct pw_lines *lines, size_t size)
{
    lines->begin += size;
    if (lines->begin < lines->end)
        lines->begin++; /* its newline */
    assert(lines->begin <= lines->end);
}

/* --- out ---------------------------------------------------------------------------------- */

void pw_out_init(struct pw_out *out)
{
    *out = (struct pw_out){ .bytes = NULL };
}

void pw_out_fini(struct pw_out *out)
{
    pw_free(out->bytes);
    pw_out_init(out);
}

static int append(const char *bytes, size_t size, void *arg)
{
    struct pw_out *out = arg;
    if (out->size - out->used < size) {
        size_t grown = out->size < 4096 ? 4096 : 2 * out->size;
        while (grown - out->used < size)
            grown *= 2;
        char *moved = pw_realloc(out->bytes, grown);
        if (moved == NULL)
            return -1;
        out->bytes = moved;
        out->size = grown;
    }
    memcpy(out->bytes + out->used, bytes, size);
    out->used += size;
    return 0;
}

bool pw_out_json(struct pw_out *out, json_t *object)
{
    if (out->sent > 0) {
        memmove(out->bytes, out->bytes + out->sent, out->used - out->sent);
        out->used -= out->sent;
        out->sent = 0;
    }
    size_t before = out->used;
    bool appended = object != NULL && json_dump_callback(object, append, out, JSON_COMPACT) == 0 &&
                    append("\n", 1, out) == 0;
    json_decref(object);
    if (!appended)
        out->used = before;
    return appended;
}

bool pw_out_send(struct pw_out *out, int fd)
{
    while (out->sent < out->used) {
        ssize_t sent =
            send(fd, out->bytes + out->sent, out->used - out->sent, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0)
            return errno == EAGAIN || errno == EWOULDBLOCK;
        out->sent += (size_t)sent;
    }
    out->sent = 0;
    out->used = 0;
    return true;
}
