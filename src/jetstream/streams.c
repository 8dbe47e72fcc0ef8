/* SPDX-License-Identifier: Apache-2.0
 *
 * See streams.h. */
#include "jetstream/streams.h"
