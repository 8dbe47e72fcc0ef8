/* SPDX-License-Identifier: Apache-2.0
 *
 * The words that a work function returns. */
#include "base/base.h"
#include "core/step.h"

static pawl_outcome outcome_of(enum pw_outcome_kind kind, const char *why)
{
    pawl_outcome outcome = { .kind = (int)kind };
    pw_print(outcome.why, sizeof(outcome.why), "%s",
             why != NULL && why[0] != '\0' ? why : "no reason given");
    return outcome;
}

pawl_outcome pawl_raise(int event)
{
    pawl_outcome outcome = { .kind = PW_RAISE, .event = event };
    return outcome;
}

pawl_outcome pawl_retry(const char *why)
{
    return outcome_of(PW_RETRY_LATER, why);
}

pawl_outcome pawl_retry_after(const char *why, uint64_t delay_ms)
{
    pawl_outcome outcome = outcome_of(PW_RETRY_AFTER, why);
    outcome.delay_ms = delay_ms;
    return outcome;
}

pawl_outcome pawl_fail(const char *why)
{
    return outcome_of(PW_FAIL, why);
}
