/* SPDX-License-Identifier: Apache-2.0
 *
 * cmocka, with what it wants included before it. */
#ifndef TESTS_TEST_H
#define TESTS_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/leaks.h"

#endif
