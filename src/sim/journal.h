/* SPDX-License-Identifier: Apache-2.0
 *
 * The journal in memory: appends that are acknowledged a little later, in order; what was
 * acknowledged comes back. It outlives a crash of the engine, but an append that was not yet
 * acknowledged then may be lost. */
#ifndef PW_SIM_JOURNAL_H
#define PW_SIM_JOURNAL_H

#include "base/clock.h"
#include "base/rng.h"
#include "core/journal.h"

PAWL_MUST_USE pawl_err pw_sim_journal_open(struct pw_journal **journal, struct pw_clock *clock,
                                           uint64_t seed);
void pw_sim_journal_free(struct pw_journal *journal);

/* As pw_sim_store_on_operation. */
void pw_sim_journal_on_operation(struct pw_journal *journal, bool (*tick)(void *arg), void *arg);

/* One append in `one_in` fails (0: none). */
void pw_sim_journal_fail(struct pw_journal *journal, uint64_t one_in);

/* The engine died: its reader is gone, its unacknowledged appends arrive or not. */
void pw_sim_journal_crash(struct pw_journal *journal);

/* When something comes back, or is acknowledged, next; PW_NEVER: nothing is on its way. */
uint64_t pw_sim_journal_next_ms(struct pw_journal *journal);

#endif
