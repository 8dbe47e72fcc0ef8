/* SPDX-License-Identifier: Apache-2.0
 *
 * How long to wait before the next attempt. Pure. */
#ifndef PW_RETRY_H
#define PW_RETRY_H

#include <stdint.h>

/* base_ms doubled `failures - 1` times (failures >= 1), at most ms_max, then spread by plus or
 * minus jitter_percent, the place in the spread taken from `dice` (any 64 random bits). */
uint64_t pw_backoff_ms(uint64_t base_ms, uint64_t ms_max, uint32_t jitter_percent,
                       uint64_t failures, uint64_t dice);

#endif
