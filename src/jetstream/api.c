/* SPDX-License-Identifier: Apache-2.0
 *
 * See api.h. */
#include "jetstream/api.h"
