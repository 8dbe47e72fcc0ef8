/* SPDX-License-Identifier: Apache-2.0
 *
 * See md5list.h. */
#include "examples/md5list.h"

#include <stdbool.h>
#include <string.h>

#define BLANKS " \t"

/* The value of a hexadecimal digit, or -1. */
static int hex_value(char digit)
{
    static const char digits[] = "0123456789abcdefABCDEF";

    const char *at = digit != '\0' ? strchr(digits, digit) : NULL;
    if (at == NULL)
        return -1;
    int value = (int)(at - digits);
    return value < 16 ? value : value - 6;
}

static bool parse_digest(const char *text, uint8_t digest[16])
{
    for (size_t i = 0; i < 16; i++) {
        int high = hex_value(text[2 * i]);
        int low = high >= 0 ? hex_value(text[2 * i + 1]) : -1;
        if (low < 0)
            return false;
        digest[i] = (uint8_t)(high * 16 + low);
    }
    return true;
}

/* The byte that stands for a backslash and `letter`, or '\0'. */
static char unescaped(char letter)
{
    switch (letter) {
    case '\\':
        return '\\';
    case 'n':
        return '\n';
    case 'r':
        return '\r';
    default:
        return '\0';
    }
}

static bool parse_name(const char *text, bool escaped, char name[MD5LIST_NAME_MAX])
{
    size_t size = 0;

    for (; *text != '\0'; text++) {
        char byte = *text;
        if (escaped && byte == '\\')
            byte = unescaped(*++text);
        if (byte == '\0' || size + 1 == MD5LIST_NAME_MAX)
            return false;
        name[size++] = byte;
    }
    name[size] = '\0';
    return size > 0;
}

enum md5list_kind md5list_parse(const char *text, struct md5list_line *line)
{
    struct md5list_line parsed = { .listed = NULL };

    if (text[0] == '\0' || text[0] == '#')
        return MD5LIST_NOTHING;
    text += strspn(text, BLANKS);
    bool escaped = *text == '\\';
    if (escaped)
        text++;
    if (!parse_digest(text, parsed.digest))
        return MD5LIST_BAD;
    text += 2 * sizeof(parsed.digest);
    if (*text == '\0' || strchr(BLANKS, text[0]) == NULL || (text[1] != ' ' && text[1] != '*'))
        return MD5LIST_BAD;
    parsed.listed = text + 2;
    if (!parse_name(parsed.listed, escaped, parsed.name))
        return MD5LIST_BAD;
    *line = parsed;
    return MD5LIST_FILE;
}
