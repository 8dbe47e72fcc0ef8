/* SPDX-License-Identifier: Apache-2.0
 *
 * See text.h. */
#include <time.h>

#include "app/text.h"

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void pw_base64_encode(pawl_bytes bytes, char *to)
{
    const uint8_t *from = bytes.data;
    for (size_t i = 0; i < bytes.size; i += 3) {
        size_t left = bytes.size - i;
        uint32_t three = (uint32_t)from[i] << 16;
        if (left > 1)
            three |= (uint32_t)from[i + 1] << 8;
        if (left > 2)
            three |= from[i + 2];
        to[0] = digits[three >> 18 & 63];
        to[1] = digits[three >> 12 & 63];
        to[2] = '=';
        to[3] = '=';
        if (left > 1)
            to[2] = digits[three >> 6 & 63];
        if (left > 2)
            to[3] = digits[three & 63];
        to += 4;
    }
    *to = '\0';
}

/* -1: no digit. */
static int digit_of(char letter)
{
    const char *at = letter != '\0' ? strchr(digits, letter) : NULL;
    return at != NULL ? (int)(at - digits) : -1;
}

/* Four digits, of which the last `padded` are '='. */
static bool decode_four(const char *text, unsigned padded, uint8_t *to)
{
    uint32_t bits = 0;
    for (unsigned i = 0; i < 4; i++) {
        int digit = i < 4 - padded ? digit_of(text[i]) : 0;
        if (digit < 0)
            return false;
        bits = bits << 6 | (uint32_t)digit;
    }
    if ((padded == 1 && (bits & 0xff) != 0) || (padded == 2 && (bits & 0xffff) != 0))
        return false; /* two texts for the same bytes */
    for (unsigned i = 0; i < 3 - padded; i++)
        to[i] = (uint8_t)(bits >> (16 - 8 * i));
    return true;
}

bool pw_base64_decode(const char *text, size_t size, uint8_t *to, size_t *decoded)
{
    size_t used = 0;
    if (size % 4 != 0)
        return false;
    for (size_t i = 0; i < size; i += 4) {
        unsigned padded = 0;
        if (i + 4 == size && text[size - 1] == '=')
            padded = text[size - 2] == '=' ? 2 : 1;
        if (!decode_four(text + i, padded, to + used))
            return false;
        used += 3 - padded;
    }
    *decoded = used;
    return true;
}

/* The code point at `at`, of *length bytes; false when it is no UTF-8. */
static bool decode_point(const uint8_t *at, size_t left, uint32_t *point, size_t *length)
{
    static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
    size_t size = at[0] < 0x80 ? 1 : at[0] >= 0xf0 ? 4 : at[0] >= 0xe0 ? 3 : 2;
    uint32_t sum = size == 1 ? at[0] : (uint32_t)at[0] & (0x7fu >> size);
    if (size > left || (size > 1 && at[0] < 0xc2) || at[0] > 0xf4)
        return false;
    for (size_t i = 1; i < size; i++) {
        if ((at[i] & 0xc0) != 0x80)
            return false;
        sum = sum << 6 | (at[i] & 0x3f);
    }
    if (sum < least[size] || sum > 0x10ffff || (sum >= 0xd800 && sum <= 0xdfff))
        return false;
    *point = sum;
    *length = size;
    return true;
}

bool pw_is_printable(pawl_bytes bytes)
{
    const uint8_t *at = bytes.data;
    size_t left = bytes.size;
    while (left > 0) {
        uint32_t point = 0;
        size_t length = 0;
        if (!decode_point(at, left, &point, &length))
            return false;
        if ((point < 0x20 && point != '\t' && point != '\n' && point != '\r') ||
            (point >= 0x7f && point < 0xa0))
            return false;
        at += length;
        left -= length;
    }
    return true;
}

void pw_print_time(uint64_t ms, char to[PW_TIME_TEXT_SIZE])
{
    struct tm parts = { .tm_year = 0 };
    time_t seconds = (time_t)(ms / 1000);
    char text[PW_TIME_TEXT_SIZE] = "";
    pw_print(to, PW_TIME_TEXT_SIZE, "-");
    if (ms == 0 || gmtime_r(&seconds, &parts) == NULL)
        return;
    if (strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &parts) > 0)
        pw_print(to, PW_TIME_TEXT_SIZE, "%.32s.%03uZ", text, (unsigned)(ms % 1000));
}
