/* SPDX-License-Identifier: Apache-2.0
 *
 * Small helpers that every folder uses: memory, errors, bytes. */
#ifndef PW_BASE_H
#define PW_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pawl/machine.h"

#define PW_COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* The only allocator of pawl. NULL when out of memory, or when a test's failing allocator says so.
 * Zeroed. */
void *pw_alloc(size_t size);
void *pw_realloc(void *memory, size_t size);
void pw_free(void *memory);
char *pw_strdup(const char *text);

/* Tests: the Nth allocation from now fails, once (0: never). Returns how many were made since the
 * last call. */
uint64_t pw_alloc_fail_at(uint64_t n);

/* Fills *why (NULL allowed) and is err: a failure is one line. Macros, so that a reader of the
 * code, and its analyser, see that what is returned is what was named. */
#define pw_fail(why, err, ...) (pw_say((why), __VA_ARGS__), (err))

/* Puts "where: " before what *why says. Is err. */
#define pw_fail_in(why, err, ...) (pw_say_where((why), (err), __VA_ARGS__), (err))

void pw_say(pawl_why *why, const char *format, ...) PAWL_PRINTF(2, 3);
void pw_say_where(pawl_why *why, pawl_err err, const char *format, ...) PAWL_PRINTF(3, 4);

/* Bounded print: always terminated, cut when too long. */
void pw_print(char *to, size_t size, const char *format, ...) PAWL_PRINTF(3, 4);

static inline bool pw_bytes_equal(pawl_bytes a, pawl_bytes b)
{
    return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

static inline int pw_bytes_compare(pawl_bytes a, pawl_bytes b)
{
    size_t common = a.size < b.size ? a.size : b.size;
    int order = common > 0 ? memcmp(a.data, b.data, common) : 0;
    if (order != 0)
        return order;
    return a.size < b.size ? -1 : a.size > b.size;
}

static inline bool pw_bytes_equal_str(pawl_bytes a, const char *text)
{
    return pw_bytes_equal(a, pawl_str(text));
}

/* Big-endian, so that byte order is number order. */
static inline void pw_put_u64(uint8_t *to, uint64_t value)
{
    for (int i = 7; i >= 0; i--, value >>= 8)
        to[i] = (uint8_t)value;
}

static inline uint64_t pw_get_u64(const uint8_t *from)
{
    uint64_t value = 0;
    for (int i = 0; i < 8; i++)
        value = value << 8 | from[i];
    return value;
}

/* a + b, at most PW_DURATION_MS_MAX: times never wrap. */
uint64_t pw_time_add(uint64_t a_ms, uint64_t b_ms);

#endif
