/* SPDX-License-Identifier: Apache-2.0
 *
 * Subjects: written token by token into the caller's buffer, and taken apart again. A subject that
 * we would write otherwise is none of ours. Pure. */
#include <stdio.h>
#include <string.h>

#include "jetstream/subject.h"

/* What is written so far; fits goes down for good when something does not. */
struct writer {
    char *to;
    size_t used;
    bool fits;
};

static const char hex[] = "0123456789ABCDEF";

static struct writer begin(char to[PW_SUBJECT_MAX], const char *ns, const char *what)
{
    struct writer writer = { .to = to };
    pw_print(to, PW_SUBJECT_MAX, "pawl.%s.%s", ns, what);
    writer.used = strlen(to);
    writer.fits = writer.used < PW_SUBJECT_MAX - 1;
    return writer;
}

static void put_byte(struct writer *writer, char byte)
{
    if (writer->used + 1 >= PW_SUBJECT_MAX) {
        writer->fits = false;
        return;
    }
    writer->to[writer->used++] = byte;
    writer->to[writer->used] = '\0';
}

static bool is_name_byte(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
}

static bool is_plain(char c)
{
    return is_name_byte(c) || c == ':' || c == '@' || c == '+' || c == '/';
}

/* A token that needs no escapes. */
static void put_name(struct writer *writer, const char *name)
{
    put_byte(writer, '.');
    for (; *name != '\0'; name++)
        put_byte(writer, *name);
}

static void put_number(struct writer *writer, uint64_t number)
{
    char text[24] = "";
    pw_print(text, sizeof(text), "%llu", (unsigned long long)number);
    put_name(writer, text);
}

static void put_id(struct writer *writer, const char *id)
{
    put_byte(writer, '.');
    for (; *id != '\0'; id++) {
        unsigned byte = (unsigned char)*id;
        if (is_plain(*id)) {
            put_byte(writer, *id);
            continue;
        }
        put_byte(writer, '=');
        put_byte(writer, hex[byte >> 4]);
        put_byte(writer, hex[byte & 15]);
    }
}

/* --- taking apart ------------------------------------------------------------------------- */

/* The token at *at, up to a dot or the end; *at goes behind it. False: empty, or too long. */
static bool take_name(const char **at, char to[PW_NAME_MAX + 1])
{
    size_t size = 0;
    while (is_name_byte((*at)[size]))
        size++;
    if (size == 0 || size > PW_NAME_MAX || **at == '_')
        return false;
    memcpy(to, *at, size);
    to[size] = '\0';
    *at += size;
    return true;
}

static int digit_of(char c)
{
    const char *found = c == '\0' ? NULL : strchr(hex, c);
    return found == NULL ? -1 : (int)(found - hex);
}

/* One byte of an id; 0: not as we write it, or one that no id has. */
static char take_byte(const char **at)
{
    char c = **at;
    if (is_plain(c)) {
        *at += 1;
        return c;
    }
    if (c != '=')
        return '\0';
    int high = digit_of((*at)[1]);
    int low = high < 0 ? -1 : digit_of((*at)[2]);
    if (low < 0)
        return '\0';
    int byte = high << 4 | low;
    if (byte < 0x20 || byte == 0x7f || is_plain((char)byte))
        return '\0';
    *at += 3;
    return (char)byte;
}

static bool take_id(const char **at, char to[PW_ID_MAX + 1])
{
    size_t size = 0;
    while (**at != '\0' && **at != '.') {
        char byte = take_byte(at);
        if (byte == '\0' || size == PW_ID_MAX)
            return false;
        to[size++] = byte;
    }
    to[size] = '\0';
    return size > 0;
}

static bool take_dot(const char **at)
{
    bool dot = **at == '.';
    *at += dot ? 1 : 0;
    return dot;
}

static bool take_number(const char **at, uint64_t max, uint64_t *number)
{
    const char *begin = *at;
    uint64_t value = 0;
    for (; **at >= '0' && **at <= '9'; *at += 1) {
        uint64_t digit = (uint64_t)(**at - '0');
        if (value > (max - digit) / 10)
            return false;
        value = value * 10 + digit;
    }
    *number = value;
    return *at > begin;
}

/* --- the subjects ------------------------------------------------------------------------- */

static struct writer begin_journal(char to[PW_SUBJECT_MAX], const char *ns, uint32_t shard)
{
    struct writer writer = begin(to, ns, "j");
    put_number(&writer, shard);
    return writer;
}

bool pw_subject_journal(char to[PW_SUBJECT_MAX], const char *ns, uint32_t shard,
                        const char *machine, const char *id)
{
    struct writer writer = begin_journal(to, ns, shard);
    put_name(&writer, machine);
    put_id(&writer, id);
    return writer.fits;
}

bool pw_subject_fence(char to[PW_SUBJECT_MAX], const char *ns, uint32_t shard)
{
    struct writer writer = begin_journal(to, ns, shard);
    put_name(&writer, "_fence");
    return writer.fits;
}

bool pw_subject_mark(char to[PW_SUBJECT_MAX], const char *ns, uint32_t shard)
{
    struct writer writer = begin_journal(to, ns, shard);
    put_name(&writer, "_mark");
    return writer.fits;
}

bool pw_subject_event(char to[PW_SUBJECT_MAX], const char *ns, const char *machine,
                      const char *name)
{
    struct writer writer = begin(to, ns, "event");
    put_name(&writer, machine);
    put_name(&writer, name);
    return writer.fits;
}

bool pw_subject_letter(char to[PW_SUBJECT_MAX], const char *ns, const char *machine, const char *id,
                       uint64_t epoch, uint64_t lsn, uint32_t n)
{
    struct writer writer = begin(to, ns, "dlq");
    put_name(&writer, machine);
    put_id(&writer, id);
    put_number(&writer, epoch);
    if (n > 0) {
        put_number(&writer, lsn);
        put_number(&writer, n);
    }
    return writer.fits;
}

bool pw_subject_letters(char to[PW_SUBJECT_MAX], const char *ns, const char *machine,
                        const char *id)
{
    struct writer writer = begin(to, ns, "dlq");
    if (machine != NULL)
        put_name(&writer, machine);
    if (machine != NULL && id != NULL)
        put_id(&writer, id);
    put_name(&writer, ">");
    return writer.fits;
}

bool pw_subject_parse(const char *subject, const char *ns, uint32_t shard,
                      char machine[PW_NAME_MAX + 1], char id[PW_ID_MAX + 1])
{
    char prefix[PW_SUBJECT_MAX] = "";
    char parsed_machine[PW_NAME_MAX + 1] = "";
    char parsed_id[PW_ID_MAX + 1] = "";
    struct writer writer = begin_journal(prefix, ns, shard);
    put_byte(&writer, '.');
    if (!writer.fits || strncmp(subject, prefix, writer.used) != 0)
        return false;
    const char *at = subject + writer.used;
    if (!take_name(&at, parsed_machine) || !take_dot(&at) || !take_id(&at, parsed_id) ||
        *at != '\0')
        return false;
    memcpy(machine, parsed_machine, sizeof(parsed_machine));
    memcpy(id, parsed_id, sizeof(parsed_id));
    return true;
}

bool pw_subject_parse_letter(const char *subject, const char *ns, char machine[PW_NAME_MAX + 1],
                             char id[PW_ID_MAX + 1], struct pw_letter_place *place)
{
    char prefix[PW_SUBJECT_MAX] = "";
    uint64_t n = 0;
    struct writer writer = begin(prefix, ns, "dlq");
    put_byte(&writer, '.');
    if (!writer.fits || strncmp(subject, prefix, writer.used) != 0)
        return false;
    const char *at = subject + writer.used;
    *place = (struct pw_letter_place){ .epoch = 0 };
    if (!take_name(&at, machine) || !take_dot(&at) || !take_id(&at, id) || !take_dot(&at) ||
        !take_number(&at, UINT64_MAX, &place->epoch))
        return false;
    if (*at == '\0')
        return true;
    if (!take_dot(&at) || !take_number(&at, UINT64_MAX, &place->lsn) || !take_dot(&at) ||
        !take_number(&at, UINT32_MAX, &n))
        return false;
    place->n = (uint32_t)n;
    return *at == '\0' && n > 0;
}
