/* SPDX-License-Identifier: Apache-2.0
 *
 * One line of a checksum list as md5sum writes it. Pure: no I/O, no state. Any thread. */
#ifndef EXAMPLES_MD5LIST_H
#define EXAMPLES_MD5LIST_H

#include <stdint.h>

#define MD5LIST_NAME_MAX 4096
/* A checksum, its separators, and a name of which every byte is escaped. */
#define MD5LIST_LINE_MAX (2 * MD5LIST_NAME_MAX + 64)

enum md5list_kind {
    MD5LIST_FILE,    /* names a file */
    MD5LIST_NOTHING, /* empty, or a comment */
    MD5LIST_BAD,     /* not a line of a checksum list */
};

struct md5list_line {
    uint8_t digest[16];
    char name[MD5LIST_NAME_MAX]; /* to open */
    const char *listed;          /* to print: the name as it stands in the line, escapes and all */
};

/* Reads a line without its '\n', and takes what `md5sum -c` takes: leading blanks, either case of
 * the checksum, "  " or " *" before the name; and when the line begins with a backslash, the
 * escapes \\, \n and \r in the name. *line is written for MD5LIST_FILE only; line->listed then
 * points into text. */
enum md5list_kind md5list_parse(const char *text, struct md5list_line *line);

#endif
