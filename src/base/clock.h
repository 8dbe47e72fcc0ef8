/* SPDX-License-Identifier: Apache-2.0
 *
 * Time as the engine sees it: a port, so that the simulated world can play it. The only place that
 * asks the machine. */
#ifndef PW_CLOCK_H
#define PW_CLOCK_H

#include <stdint.h>

struct pw_clock {
    /* Milliseconds that only grow, sleep included; no relation to the date. Any thread. */
    uint64_t (*monotonic_ms)(struct pw_clock *clock);
    /* Milliseconds since 1970 by the machine's clock, which may be set. Any thread. */
    uint64_t (*wall_ms)(struct pw_clock *clock);
};

/* The machine's clocks. */
void pw_clock_init(struct pw_clock *clock);

#define PW_NEVER UINT64_MAX

#endif
