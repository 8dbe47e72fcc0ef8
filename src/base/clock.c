/* SPDX-License-Identifier: Apache-2.0
 *
 * The machine's clocks. CLOCK_BOOTTIME counts the time asleep, CLOCK_MONOTONIC does not. */
#define _GNU_SOURCE /* CLOCK_BOOTTIME */
#include <time.h>

#include "base/clock.h"

static uint64_t read_ms(clockid_t which)
{
    struct timespec now = { 0 };
    if (clock_gettime(which, &now) != 0)
        return 0;
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static uint64_t monotonic_ms(struct pw_clock *clock)
{
    (void)clock;
    return read_ms(CLOCK_BOOTTIME);
}

static uint64_t wall_ms(struct pw_clock *clock)
{
    (void)clock;
    return read_ms(CLOCK_REALTIME);
}

void pw_clock_init(struct pw_clock *clock)
{
    clock->monotonic_ms = monotonic_ms;
    clock->wall_ms = wall_ms;
}
