/* SPDX-License-Identifier: Apache-2.0
 *
 * Formats a line and hands it to the sink. */
#include <stdarg.h>
#include <stdio.h>

#include "base/base.h"
#include "base/log.h"

#define LINE_MAX_SIZE 1024

static void escape(char *to, size_t size, const char *from)
{
    size_t used = 0;
    for (; *from != '\0' && used + 5 < size; from++) {
        unsigned char byte = (unsigned char)*from;
        if (byte < 0x20 || byte == 0x7f) {
            pw_print(to + used, size - used, "\\x%02x", byte);
            used += 4;
        } else {
            to[used++] = *from;
        }
    }
    to[used] = '\0';
}

void pw_log(const struct pw_log *log, pawl_level level, const char *id, const char *format, ...)
{
    if (log->sink == NULL)
        return;
    char text[LINE_MAX_SIZE] = "";
    char line[LINE_MAX_SIZE] = "";
    va_list list;
    va_start(list, format);
    int length = vsnprintf(text, sizeof(text), format, list);
    va_end(list);
    if (length < 0)
        return;
    escape(line, sizeof(line), text);
    log->sink(log->arg, level, id, line);
}
