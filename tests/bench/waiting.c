/* SPDX-License-Identifier: Apache-2.0
 *
 * What a million waiting entities cost in memory, after a restart: anonymous pages of the process,
 * as the kernel counts them. The map of the store is not among them: it is the file's, and the
 * kernel takes it back at will. Another process loads, so that nothing of that is counted. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/support.h"

#define SETTLE_MS 2000 /* the sweep of the start has gone through */

static const pawl_machine *const machines[] = { &bench_waiting_machine, &bench_working_machine,
                                                NULL };

static int load(const char *dir, size_t entities)
{
    const struct bench_how how = { .journal = NULL };
    double began = bench_seconds();
    struct pawl *engine = bench_engine(dir, machines, &how);
    bench_create(engine, &bench_waiting_machine, 0, entities);
    bench_say("waiting: %zu entities created in %.1f s", entities, bench_seconds() - began);
    pawl_close(engine);
    return 0;
}

static bool load_in_child(const char *dir, size_t entities)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0)
        exit(load(dir, entities));
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

/* KiB of "Anonymous:" over all mappings; -1: the kernel does not say. */
static long anonymous_kib(void)
{
    char line[256] = "";
    long kib = -1;
    FILE *file = fopen("/proc/self/smaps_rollup", "re");
    while (file != NULL && kib < 0 && fgets(line, sizeof(line), file) != NULL)
        if (strncmp(line, "Anonymous:", 10) == 0)
            kib = strtol(line + 10, NULL, 10);
    if (file != NULL)
        (void)fclose(file); /* was only read */
    return kib;
}

int main(int argc, char **argv)
{
    const struct bench_args args = bench_begin(argc, argv);
    const size_t entities = args.quick ? 50000 : 1000000;
    const struct bench_how how = { .journal = NULL };
    char dir[BENCH_PATH_MAX] = "";
    bench_path(dir, args.dir, "waiting");
    if (!load_in_child(dir, entities)) {
        bench_say("waiting: loading failed");
        return 1;
    }
    double began = bench_seconds();
    struct pawl *engine = bench_engine(dir, machines, &how);
    bench_say("waiting: started in %.3f s", bench_seconds() - began);
    bench_pause_ms(SETTLE_MS);
    long kib = anonymous_kib();
    pawl_close(engine);
    bench_remove(dir);
    if (kib < 0) {
        bench_say("waiting: /proc/self/smaps_rollup cannot be read");
        return 1;
    }
    bench_result("waiting", (double)kib / 1024, "MB", 0);
    return 0;
}
