/* SPDX-License-Identifier: Apache-2.0
 *
 * pawl: durable, task-based state machines. One include for everything but the simulated world
 * (pawl/test.h). */
#ifndef PAWL_H
#define PAWL_H

#include "pawl/err.h"
#include "pawl/machine.h"
#include "pawl/engine.h"
#include "pawl/client.h"

#endif
