/* SPDX-License-Identifier: Apache-2.0
 *
 * See journal.h. */
#include "jetstream/journal.h"
