/* SPDX-License-Identifier: Apache-2.0
 *
 * Look-ups in a machine's tables, and its defaults. Pure. */
#ifndef PW_MACHINE_H
#define PW_MACHINE_H

#include "core/entity.h"

/* PW_STATE_UNKNOWN, PW_EVENT_UNKNOWN when there is none. The built-in events are known by their
 * names. */
int pw_machine_state(const pawl_machine *machine, const char *name);
int pw_machine_event(const pawl_machine *machine, const char *name);
const char *pw_machine_event_name(const pawl_machine *machine, int event);
int pw_machine_start(const pawl_machine *machine);

/* The edge out of `from`, late or not as asked; NULL when there is none. */
const pawl_edge *pw_machine_edge(const pawl_machine *machine, int from, int event, bool late);

/* "submit, cancel": the events from outside or work that a state takes; "nothing" when none. */
void pw_machine_accepts(const pawl_machine *machine, int state, char *to, size_t size);

/* Values with their defaults. */
uint32_t pw_attempts_max(const pawl_state *state);
uint64_t pw_attempt_ms(const pawl_state *state);
uint32_t pw_rounds_max(const pawl_machine *machine);
uint32_t pw_crashes_max(const pawl_machine *machine);
uint32_t pw_workers(const pawl_machine *machine);
uint32_t pw_later_max(const pawl_machine *machine);
uint32_t pw_key_share(const pawl_machine *machine);
uint64_t pw_retention_ms(const pawl_machine *machine); /* PAWL_FOREVER: never */

#endif
