/* SPDX-License-Identifier: Apache-2.0
 *
 * Alphabets and UTF-8 (RFC 3629: no surrogates, no overlong forms). Pure. */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/base.h"
#include "base/limits.h"
#include "core/names.h"

static bool is_name_byte(unsigned char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
}

static pawl_err check_alphabet(const char *what, const char *text, size_t size_max, pawl_why *why)
{
    if (text == NULL || text[0] == '\0')
        return pw_fail(why, PAWL_E_USAGE, "%s is empty", what);
    size_t size = strnlen(text, size_max + 1);
    if (size > size_max)
        return pw_fail(why, PAWL_E_LIMIT, "%s '%.32s...' is longer than %zu bytes", what, text,
                       size_max);
    if (text[0] == '_')
        return pw_fail(why, PAWL_E_USAGE, "%s '%s' begins with '_'", what, text);
    for (size_t i = 0; i < size; i++)
        if (!is_name_byte((unsigned char)text[i]))
            return pw_fail(why, PAWL_E_USAGE, "%s: byte 0x%02x at %zu; allowed are A-Z a-z 0-9 _ -",
                           what, (unsigned char)text[i], i);
    return PAWL_OK;
}

pawl_err pw_check_name(const char *what, const char *text, pawl_why *why)
{
    return check_alphabet(what, text, PW_NAME_MAX, why);
}

pawl_err pw_check_namespace(const char *text, pawl_why *why)
{
    return check_alphabet("namespace", text, PW_NAMESPACE_MAX, why);
}

/* Decodes one character at text; 0 when it is not valid UTF-8. Reads no further than the first
 * wrong byte. */
static size_t decode(const unsigned char *text, uint32_t *character)
{
    static const uint32_t smallest[] = { 0, 0, 0x80, 0x800, 0x10000 };
    unsigned char first = text[0];
    size_t size = first < 0x80                    ? 1
                  : first >= 0xf0 && first < 0xf8 ? 4
                  : first >= 0xe0 && first < 0xf0 ? 3
                  : first >= 0xc0 && first < 0xe0 ? 2
                                                  : 0;
    if (size == 0)
        return 0;
    uint32_t value = size == 1 ? first : first & (0x7fu >> size);
    for (size_t i = 1; i < size; i++) {
        if ((text[i] & 0xc0) != 0x80)
            return 0;
        value = value << 6 | (text[i] & 0x3fu);
    }
    if (value < smallest[size] || value > 0x10ffff || (value >= 0xd800 && value < 0xe000))
        return 0;
    *character = value;
    return size;
}

static bool is_control(uint32_t c)
{
    return c < 0x20 || (c >= 0x7f && c < 0xa0);
}

pawl_err pw_check_id(const char *what, const char *text, pawl_why *why)
{
    if (text == NULL || text[0] == '\0')
        return pw_fail(why, PAWL_E_USAGE, "%s is empty", what);
    size_t size = strnlen(text, PW_ID_MAX + 1);
    if (size > PW_ID_MAX)
        return pw_fail(why, PAWL_E_LIMIT, "%s is longer than %d bytes", what, PW_ID_MAX);
    for (size_t i = 0; i < size;) {
        uint32_t character = 0;
        size_t step = decode((const unsigned char *)text + i, &character);
        if (step == 0)
            return pw_fail(why, PAWL_E_USAGE, "%s: byte 0x%02x at %zu is not UTF-8", what,
                           (unsigned char)text[i], i);
        if (is_control(character))
            return pw_fail(why, PAWL_E_USAGE, "%s: control character 0x%02x at %zu", what,
                           (unsigned)character, i);
        i += step;
    }
    return PAWL_OK;
}

pawl_err pw_check_optional_id(const char *what, const char *text, pawl_why *why)
{
    return text == NULL || text[0] == '\0' ? PAWL_OK : pw_check_id(what, text, why);
}

static bool is_lower_hex(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

pawl_err pw_check_trace(const char *text, pawl_why *why)
{
    if (text == NULL || text[0] == '\0')
        return PAWL_OK;
    static const char form[] = "00-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx-xxxxxxxxxxxxxxxx-xx";
    static_assert(sizeof(form) - 1 == PW_TRACE_SIZE, "the form of a traceparent");
    size_t size = strnlen(text, PW_TRACE_SIZE + 1);
    for (size_t i = 0; i < size && size == PW_TRACE_SIZE; i++)
        if (form[i] == 'x' ? !is_lower_hex(text[i]) : form[i] != text[i])
            size = 0;
    if (size != PW_TRACE_SIZE)
        return pw_fail(why, PAWL_E_USAGE, "trace is not a W3C traceparent of version 00");
    return PAWL_OK;
}
