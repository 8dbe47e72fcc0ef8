/* SPDX-License-Identifier: Apache-2.0
 *
 * See subject.h. */
#include "jetstream/subject.h"
