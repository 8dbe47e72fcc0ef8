/* SPDX-License-Identifier: Apache-2.0
 *
 * Buffers of a stream of lines: what came in and is not yet a line taken, what is to go out. One
 * thread at a time. */
#ifndef PW_LINES_H
#define PW_LINES_H

#include <jansson.h>

#include "base/base.h"

/* A line with its newline: data of 256 KiB as base64, or escaped, and the rest of a request. */
#define PW_LINE_SIZE_MAX (1024u * 1024)

struct pw_lines {
    char *bytes;
    size_t begin;
    size_t end;
    size_t size;
    bool skipping; /* the rest of a line that was too long */
};

void pw_lines_init(struct pw_lines *lines);
void pw_lines_fini(struct pw_lines *lines);

/* Room for the next bytes; pw_lines_filled says how many came. NULL: out of memory. */
char *pw_lines_room(struct pw_lines *lines, size_t *room);
void pw_lines_filled(struct pw_lines *lines, size_t size);

enum pw_line_kind { PW_LINE, PW_LINE_NONE, PW_LINE_TOO_LONG };

/* The first line, without its newline; it stays the first until it is dropped. at_end: nothing more
 * will come, so the rest counts as a line. TOO_LONG is told once; the line is gone then. */
enum pw_line_kind pw_lines_first(struct pw_lines *lines, bool at_end, const char **line,
                                 size_t *size);
void pw_lines_drop(struct pw_lines *lines, size_t size);

struct pw_out {
    char *bytes;
    size_t sent;
    size_t used;
    size_t size;
};

void pw_out_init(struct pw_out *out);
void pw_out_fini(struct pw_out *out);

/* Appends an object and a newline; takes the reference. False: out of memory (also object NULL),
 * nothing appended. */
bool pw_out_json(struct pw_out *out, json_t *object);

static inline size_t pw_out_left(const struct pw_out *out)
{
    return out->used - out->sent;
}

/* Sends what the socket takes now. False: the other end is gone. */
bool pw_out_send(struct pw_out *out, int fd);

#endif
