/* SPDX-License-Identifier: Apache-2.0
 *
 * Exponential backoff with a cap and jitter. */
#include <assert.h>

#include "base/limits.h"
#include "core/retry.h"

uint64_t pw_backoff_ms(uint64_t base_ms, uint64_t ms_max, uint32_t jitter_percent,
                       uint64_t failures, uint64_t dice)
{
    assert(failures >= 1);
    assert(jitter_percent <= 100);
    if (ms_max > PW_DURATION_MS_MAX)
        ms_max = PW_DURATION_MS_MAX;
    uint64_t delay_ms = base_ms < ms_max ? base_ms : ms_max;
    for (uint64_t i = 1; i < failures && delay_ms > 0 && delay_ms < ms_max; i++)
        delay_ms = delay_ms <= ms_max / 2 ? delay_ms * 2 : ms_max;
    uint64_t spread_ms = delay_ms / 100 * jitter_percent + delay_ms % 100 * jitter_percent / 100;
    return delay_ms - spread_ms + dice % (2 * spread_ms + 1);
}
