/* SPDX-License-Identifier: Apache-2.0
 *
 * Counts what /proc says of this process, before and after. */
#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "support/leaks.h"

/* A joined thread may stay in /proc for a moment; this many looks at it are more than enough. */
#define LOOKS_MAX 100000

/* ThreadSanitizer adds a thread of its own with the first of ours, and finds leaked ones itself. */
#ifdef __SANITIZE_THREAD__
#define RUNTIME_THREADS 1
#else
#define RUNTIME_THREADS 0
#endif

static int fds_before;
static int threads_before;

static int count(const char *path)
{
    DIR *dir = opendir(path);
    if (dir == NULL)
        return -1;
    int entries = 0;
    while (readdir(dir) != NULL)
        entries++;
    (void)closedir(dir); /* was only read */
    return entries;
}

int leaks_begin(void **state)
{
    (void)state;
    fds_before = count("/proc/self/fd");
    threads_before = count("/proc/self/task");
    return fds_before < 0 || threads_before < 0 ? -1 : 0;
}

int leaks_end(void **state)
{
    (void)state;
    int threads_allowed = threads_before + RUNTIME_THREADS;
    int threads = count("/proc/self/task");
    for (int looks = 0; threads > threads_allowed && looks < LOOKS_MAX; looks++) {
        (void)sched_yield(); /* cannot fail on Linux */
        threads = count("/proc/self/task");
    }
    int fds = count("/proc/self/fd");
    if (threads > threads_allowed)
        (void)fprintf(stderr, "leaked threads: %d\n", threads - threads_allowed);
    if (fds > fds_before)
        (void)fprintf(stderr, "leaked file descriptors: %d\n", fds - fds_before);
    if (threads > threads_allowed || fds > fds_before)
        exit(EXIT_FAILURE); /* cmocka overlooks what a group's teardown returns */
    return 0;
}
