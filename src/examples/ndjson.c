/* SPDX-License-Identifier: Apache-2.0
 *
 * See ndjson.h. Data is printed as the UTF-8 text that the examples' messages are. What cannot be
 * written (a closed pipe) is lost: a program that must not lose it would hand it to a queue. */
#include "examples/ndjson.h"

#include <stdio.h>

static void print_member(const char *name, pawl_bytes text)
{
    (void)printf("\"%s\":\"", name);
    for (size_t i = 0; i < text.size; i++) {
        unsigned char byte = ((const unsigned char *)text.data)[i];
        if (byte < ' ') {
            (void)printf("\\u%04x", byte);
            continue;
        }
        if (byte == '"' || byte == '\\')
            (void)putchar('\\');
        (void)putchar(byte);
    }
    (void)putchar('"');
}

void ndjson_message(void *env, const pawl_message *message)
{
    (void)env;
    flockfile(stdout);
    (void)printf("{\"id\":\"%s\",\"machine\":\"%s\",", message->id, message->machine);
    print_member("entity", pawl_str(message->entity));
    (void)printf(",\"name\":\"%s\",", message->name);
    print_member("data", message->data);
    (void)printf("}\n");
    (void)fflush(stdout);
    funlockfile(stdout);
}
