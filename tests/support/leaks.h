/* SPDX-License-Identifier: Apache-2.0
 *
 * Group fixtures that fail a test program which leaks a file descriptor or a thread; leaked memory
 * is ASan's to find. return cmocka_run_group_tests(tests, leaks_begin, leaks_end); */
#ifndef TESTS_LEAKS_H
#define TESTS_LEAKS_H

int leaks_begin(void **state);
int leaks_end(void **state);

#endif
