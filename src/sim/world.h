/* SPDX-License-Identifier: Apache-2.0
 *
 * What torture needs of a world besides pawl/test.h. */
#ifndef PW_SIM_WORLD_H
#define PW_SIM_WORLD_H

#include "pawl/test.h"

/* Crash again and again, after 1 to `spread` operations each time, until it has crashed `most`
 * times. */
void pw_world_crash_often(pawl_world *world, uint64_t spread, uint64_t most);

/* "machine/id state\n" of all entities, sorted. The caller frees it with pw_free. */
char *pw_world_states(pawl_world *world);

#endif
