/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory, errors, bytes. */
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/base.h"
#include "base/limits.h"

static _Atomic uint64_t allocations;
static _Atomic uint64_t fail_at;

static bool must_fail(void)
{
    uint64_t at = atomic_load_explicit(&fail_at, memory_order_relaxed);
    if (at == 0) /* in production: nothing is counted */
        return false;
    return atomic_fetch_add(&allocations, 1) + 1 == at;
}

void *pw_alloc(size_t size)
{
    return must_fail() ? NULL : calloc(1, size > 0 ? size : 1);
}

void *pw_realloc(void *memory, size_t size)
{
    return must_fail() ? NULL : realloc(memory, size > 0 ? size : 1);
}

void pw_free(void *memory)
{
    free(memory);
}

char *pw_strdup(const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = pw_alloc(size);
    if (copy != NULL)
        memcpy(copy, text, size);
    return copy;
}

uint64_t pw_alloc_fail_at(uint64_t n)
{
    uint64_t made = atomic_exchange(&allocations, 0);
    atomic_store(&fail_at, n);
    return made;
}

PAWL_PRINTF(3, 0) static void print_list(char *to, size_t size, const char *format, va_list list)
{
    if (vsnprintf(to, size, format, list) < 0)
        to[0] = '\0';
}

void pw_print(char *to, size_t size, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    print_list(to, size, format, list);
    va_end(list);
}

void pw_say(pawl_why *why, const char *format, ...)
{
    if (why == NULL)
        return;
    va_list list;
    va_start(list, format);
    print_list(why->text, sizeof(why->text), format, list);
    va_end(list);
}

void pw_say_where(pawl_why *why, pawl_err err, const char *format, ...)
{
    if (why == NULL)
        return;
    pawl_why where = { "" };
    va_list list;
    va_start(list, format);
    print_list(where.text, sizeof(where.text), format, list);
    va_end(list);
    pawl_why what = *why;
    pw_print(why->text, sizeof(why->text), "%s: %s", where.text,
             what.text[0] != '\0' ? what.text : pawl_err_text(err));
}

uint64_t pw_time_add(uint64_t a_ms, uint64_t b_ms)
{
    if (a_ms >= PW_DURATION_MS_MAX || b_ms >= PW_DURATION_MS_MAX - a_ms)
        return PW_DURATION_MS_MAX;
    return a_ms + b_ms;
}
