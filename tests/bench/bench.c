/* SPDX-License-Identifier: Apache-2.0
 *
 * The benchmarks themselves. Where there is a ceiling, pawl and the bare loop run in turn, three times each, and the
 * medians count. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>

#include "base/wake.h"
#include "work.h"

#define ROUNDS 3

static const char *scratch;

double bench_now(void)
{
    struct timespec now = { 0 };
    (void)clock_gettime(CLOCK_MONOTONIC, &now); /* cannot fail */
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

const char *bench_dir(const char *name)
{
    static char path[512];
    static unsigned count;
    (void)snprintf(path, sizeof(path), "%s/%s-%u", scratch, name, count++);
    if (mkdir(path, 0700) != 0)
        bench_must(PAWL_E_IO, "mkdir", path);
    return path;
}

void bench_must(pawl_err err, const char *what, const char *why)
{
    if (err == PAWL_OK)
        return;
    (void)fprintf(stderr, "bench: %s: %s\n", what, why[0] != '\0' ? why : pawl_err_text(err));
    exit(1);
}

void bench_line(const char *name, double value, const char *unit, double ceiling, double ratio)
{
    (void)printf("{\"bench\":\"%s\",\"value\":%.6g,\"unit\":\"%s\",", name, value, unit);
    if (ceiling > 0)
        (void)printf("\"ceiling\":%.6g,\"ratio\":%.3f}\n", ceiling, ratio > 0 ? ratio : value / ceiling);
    else
        (void)printf("\"ceiling\":null,\"ratio\":null}\n");
    (void)fflush(stdout);
}

static int compare(const void *a, const void *b)
{
    const double *left = a;
    const double *right = b;
    return *left < *right ? -1 : *left > *right;
}

double bench_median(double *values, size_t count)
{
    qsort(values, count, sizeof(*values), compare);
    return values[count / 2];
}

static const size_t batches[] = { 512, 1024, 2048, 4096, 8192 };
#define BATCHES (sizeof(batches) / sizeof(batches[0]))

/* --- commit ---------------------------------------------------------------------------------------------------------- */

static double commit_once(uint64_t entities, uint64_t changes)
{
    pawl *engine = bench_open_journalled(bench_dir("commit"), &bench_pair);
    bench_create(engine, entities);
    double began = bench_now();
    bench_send(engine, 1, entities, changes);
    double seconds = bench_now() - began;
    pawl_close(engine);
    return (double)changes / seconds;
}

void bench_commit(bool quick)
{
    uint64_t entities = quick ? 1000 : 50000;
    uint64_t changes = quick ? 2000 : 200000;
    struct bench_sizes sizes = bench_measure_sizes(&bench_pair);
    double ours[ROUNDS];
    double bare[ROUNDS];
    size_t best = 0;
    double best_rate = 0;
    for (size_t i = 0; i < BATCHES; i++) {
        double rate = bare_commit(bench_dir("bare"), entities, changes, batches[i], &sizes);
        best = rate > best_rate ? i : best;
        best_rate = rate > best_rate ? rate : best_rate;
    }
    for (size_t i = 0; i < ROUNDS; i++) {
        bare[i] = bare_commit(bench_dir("bare"), entities, changes, batches[best], &sizes);
        ours[i] = commit_once(entities, changes);
    }
    (void)fprintf(stderr, "commit: the bare loop is fastest with %zu changes a commit\n", batches[best]);
    bench_line("commit", bench_median(ours, ROUNDS), "changes/s", bench_median(bare, ROUNDS), 0);
}

/* --- local ------------------------------------------------------------------------------------------------------------ */

static double local_once(uint64_t entities)
{
    pawl *engine = bench_open(bench_dir("local"), &bench_three);
    double began = bench_now();
    bench_create(engine, entities);
    bench_wait_transitions(engine, entities * 4); /* the creation begins a visit, too */
    double seconds = bench_now() - began;
    pawl_close(engine);
    return (double)entities * 4 / seconds;
}

void bench_local(bool quick)
{
    uint64_t entities = quick ? 1000 : 50000;
    struct bench_sizes sizes = bench_measure_sizes(&bench_three);
    double ours[ROUNDS];
    double bare[ROUNDS];
    size_t best = 0;
    double best_rate = 0;
    for (size_t i = 0; i < BATCHES; i++) {
        double rate = bare_local(bench_dir("bare"), entities, batches[i], &sizes);
        best = rate > best_rate ? i : best;
        best_rate = rate > best_rate ? rate : best_rate;
    }
    for (size_t i = 0; i < ROUNDS; i++) {
        bare[i] = bare_local(bench_dir("bare"), entities, batches[best], &sizes);
        ours[i] = local_once(entities);
    }
    (void)fprintf(stderr, "local: the bare loop is fastest with %zu changes a commit\n", batches[best]);
    bench_line("local", bench_median(ours, ROUNDS), "transitions/s", bench_median(bare, ROUNDS), 0);
}

/* --- idle, waiting ------------------------------------------------------------------------------------------------------ */

static double cpu_seconds(void)
{
    struct rusage usage = { 0 };
    (void)getrusage(RUSAGE_SELF, &usage); /* cannot fail */
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

void bench_idle(bool quick)
{
    struct pw_wake wake;
    pawl *engine = bench_open(bench_dir("idle"), &bench_pair);
    bench_create(engine, 10000);
    pw_wake_init(&wake);
    double began = bench_now();
    double cpu = cpu_seconds();
    pw_nap(&wake, quick ? 1000 : 20000);
    double share = (cpu_seconds() - cpu) / (bench_now() - began) * 100;
    pw_wake_fini(&wake);
    pawl_close(engine);
    bench_line("idle", share, "% of a core", 0, 0);
}

/* Private memory that is not the store's map: what the entities cost beside the disk. */
static double anonymous_mb(void)
{
    char line[256] = "";
    double kb = 0;
    FILE *file = fopen("/proc/self/smaps_rollup", "r");
    while (file != NULL && fgets(line, sizeof(line), file) != NULL)
        if (strncmp(line, "Anonymous:", 10) == 0)
            kb = strtod(line + 10, NULL);
    if (file != NULL)
        (void)fclose(file); /* was only read */
    return kb / 1024;
}

void bench_waiting(bool quick)
{
    char dir[512] = "";
    (void)snprintf(dir, sizeof(dir), "%s", bench_dir("waiting"));
    pawl *engine = bench_open(dir, &bench_pair);
    bench_create(engine, quick ? 10000 : 1000000);
    double after_load = anonymous_mb();
    pawl_close(engine);
    engine = bench_open(dir, &bench_pair);
    double after_start = anonymous_mb();
    pawl_close(engine);
    (void)fprintf(stderr, "waiting: %.0f MB after a restart\n", after_start);
    bench_line("waiting", after_load > after_start ? after_load : after_start, "MB", 0, 0);
}

/* --- scale ---------------------------------------------------------------------------------------------------------------- */

#define SPAN 4096 /* the newest entities: what is in progress lies together */

static double cost_us(pawl *engine, uint64_t first, uint64_t span, uint64_t changes)
{
    double began = bench_now();
    bench_send(engine, first, span, changes);
    return (bench_now() - began) * 1e6 / (double)changes;
}

void bench_scale(bool quick)
{
    uint64_t few = 10000;
    uint64_t many = quick ? 20000 : 1000000;
    uint64_t changes = quick ? 4096 : 102400;
    double small[ROUNDS];
    double large[ROUNDS];
    pawl *little = bench_open(bench_dir("few"), &bench_pair);
    pawl *big = bench_open(bench_dir("many"), &bench_pair);
    bench_create(little, few);
    bench_create(big, many);
    for (size_t i = 0; i < ROUNDS; i++) {
        small[i] = cost_us(little, few - SPAN, SPAN, changes);
        large[i] = cost_us(big, many - SPAN, SPAN, changes);
    }
    pawl_close(little);
    pawl_close(big);
    double us = bench_median(large, ROUNDS);
    double base_us = bench_median(small, ROUNDS);
    bench_line("scale", us, "us a transition", base_us, us / base_us);
}

/* --- main -------------------------------------------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    void (*run)(bool quick);
} benches[] = {
    { "commit", bench_commit },   { "local", bench_local }, { "idle", bench_idle },
    { "waiting", bench_waiting }, { "scale", bench_scale },
};

int main(int argc, char **argv)
{
    bool quick = argc > 2 && strcmp(argv[2], "--quick") == 0;
    if (argc < 2) {
        (void)fprintf(stderr, "usage: bench SCRATCH [--quick] [NAME...]\n");
        return 2;
    }
    scratch = argv[1];
    for (size_t i = 0; i < sizeof(benches) / sizeof(benches[0]); i++) {
        bool wanted = argc <= (quick ? 3 : 2);
        for (int a = quick ? 3 : 2; a < argc; a++)
            wanted = wanted || strcmp(argv[a], benches[i].name) == 0;
        if (wanted)
            benches[i].run(quick);
    }
    return 0;
}
