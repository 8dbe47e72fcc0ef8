/* SPDX-License-Identifier: Apache-2.0
 *
 * See link.h. */
#include "jetstream/link.h"
