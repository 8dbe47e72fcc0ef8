/* SPDX-License-Identifier: Apache-2.0
 *
 * What the benches share. Main thread, but for the callback of creations. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "bench/support.h"
#include "lmdb/store.h"

#define IN_FLIGHT_MAX 4096

struct bench_args bench_begin(int argc, char **argv)
{
    struct bench_args args = { .dir = argc > 1 ? argv[1] : NULL };
    bool right = args.dir != NULL;
    for (int i = 2; i < argc; i++) {
        bool quick = strcmp(argv[i], "--quick") == 0;
        bool engine = strcmp(argv[i], "--engine") == 0;
        args.quick = args.quick || quick;
        args.engine = args.engine || engine;
        right = right && (quick || engine);
    }
    if (!right) {
        (void)fprintf(stderr, "usage: %s DIR [--quick] [--engine]\n", argv[0]);
        exit(2);
    }
    return args;
}

static double seconds_of(clockid_t clock)
{
    struct timespec now = { 0 };
    if (clock_gettime(clock, &now) != 0)
        abort();
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

double bench_seconds(void)
{
    return seconds_of(CLOCK_MONOTONIC);
}

double bench_cpu_seconds(void)
{
    struct rusage usage = { 0 };
    if (getrusage(RUSAGE_SELF, &usage) != 0)
        abort();
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

void bench_pause_ms(unsigned ms)
{
    struct timespec left = { .tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000 };
    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        ;
}

static void print_number(const char *name, double value)
{
    if (value >= 1000)
        (void)printf(",\"%s\":%.0f", name, value);
    else
        (void)printf(",\"%s\":%.3f", name, value);
}

void bench_result(const char *name, double value, const char *unit, double ceiling)
{
    (void)printf("{\"bench\":\"%s\"", name);
    print_number("value", value);
    (void)printf(",\"unit\":\"%s\"", unit);
    if (ceiling > 0) {
        print_number("ceiling", ceiling);
        print_number("ratio", value / ceiling);
        (void)printf("}\n");
    } else {
        (void)printf(",\"ceiling\":null,\"ratio\":null}\n");
    }
    (void)fflush(stdout);
}

void bench_say(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    (void)vfprintf(stderr, format, list);
    va_end(list);
    (void)fputc('\n', stderr);
}

void bench_must(pawl_err err, const pawl_why *why, const char *doing)
{
    if (err == PAWL_OK)
        return;
    bench_say("%s: %s: %s", doing, pawl_err_name(err),
              why != NULL && why->text[0] != '\0' ? why->text : pawl_err_text(err));
    exit(1);
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

double bench_median(const double *values, size_t count)
{
    double sorted[BENCH_RUNS_MAX] = { 0 };
    assert(count > 0 && count <= PW_COUNT(sorted));
    memcpy(sorted, values, count * sizeof(*values));
    qsort(sorted, count, sizeof(*sorted), compare);
    return count % 2 == 1 ? sorted[count / 2] : (sorted[count / 2 - 1] + sorted[count / 2]) / 2;
}

void bench_result_of_pairs(const char *name, const double *values, const double *ceilings,
                           size_t count, const char *unit)
{
    double ratios[BENCH_RUNS_MAX] = { 0 };
    assert(count % 2 == 1 && count <= PW_COUNT(ratios));
    for (size_t i = 0; i < count; i++)
        ratios[i] = values[i] / ceilings[i];
    double median = bench_median(ratios, count);
    for (size_t i = 0; i < count; i++)
        if (ratios[i] >= median && ratios[i] <= median) {
            bench_result(name, values[i], unit, ceilings[i]);
            return;
        }
}

void bench_path(char path[BENCH_PATH_MAX], const char *dir, const char *name)
{
    pw_print(path, BENCH_PATH_MAX, "%s/%s", dir, name);
}

void bench_remove(const char *dir)
{
    char path[BENCH_PATH_MAX] = "";
    bench_path(path, dir, "data.mdb");
    (void)unlink(path); /* the script removes what is left */
    bench_path(path, dir, "lock.mdb");
    (void)unlink(path);
    (void)rmdir(dir);
}

/* --- machines ----------------------------------------------------------------------------- */

enum { CART, ORDERED, SHIPPED };
enum { ORDER, AGAIN };

static const pawl_state waiting_states[] = {
    [CART] = { .name = "cart", .flags = PAWL_START, .timeout_ms = 86400000 },
    [ORDERED] = { .name = "ordered", .timeout_ms = 3600000 },
    [SHIPPED] = { .name = "shipped", .flags = PAWL_FINAL },
};

static const char *const waiting_events[] = { [ORDER] = "order", [AGAIN] = "again" };

static const pawl_edge waiting_edges[] = {
    { .from = CART, .event = ORDER, .to = ORDERED },
    { .from = CART, .event = PAWL_TIMEOUT, .to = SHIPPED },
    { .from = ORDERED, .event = AGAIN, .to = CART },
    { .from = ORDERED, .event = PAWL_TIMEOUT, .to = SHIPPED },
};

const pawl_machine bench_waiting_machine = { .name = "parcel",
                                             PAWL_STATES(waiting_states),
                                             PAWL_EVENTS(waiting_events),
                                             PAWL_EDGES(waiting_edges) };

enum { BUSY, DONE };
enum { END };

static pawl_outcome work(pawl_task *task)
{
    (void)task;
    return pawl_raise(END);
}

static const pawl_state working_states[] = {
    [BUSY] = { .name = "busy", .flags = PAWL_START, .work = work },
    [DONE] = { .name = "done", .flags = PAWL_FINAL },
};

static const char *const working_events[] = { [END] = "end" };

static const pawl_edge working_edges[] = {
    { .from = BUSY, .event = END, .to = DONE },
};

const pawl_machine bench_working_machine = { .name = "errand",
                                             PAWL_STATES(working_states),
                                             PAWL_EVENTS(working_events),
                                             PAWL_EDGES(working_edges) };

/* --- engines ------------------------------------------------------------------------------ */

static void log_line(void *arg, pawl_level level, const char *id, const char *text)
{
    (void)arg;
    if (level <= PAWL_WARN)
        bench_say("%s %s", id, text);
}

struct pawl *bench_engine(const char *dir, const pawl_machine *const *machines,
                          const struct bench_how *how)
{
    pawl_why why = { "" };
    struct pw_store *store = NULL;
    const struct pw_lmdb_options options = { .dir = dir, .create = true };
    bench_must(pw_lmdb_open(&store, &options, &why), &why, "open the store");
    if (how->wrap != NULL)
        store = how->wrap(store);
    struct pw_journal *journal = how->journal;
    const struct pw_parts parts = {
        .ns = "bench",
        .stores = &store,
        .journals = journal != NULL ? &journal : NULL,
        .shards = 1,
        .drive = how->drive,
        .log = { .sink = log_line },
        .seed = 1,
        .lock = -1,
    };
    struct pawl *engine = NULL;
    bench_must(pw_engine_open(&engine, &parts, &why), &why, "open the engine");
    for (; *machines != NULL; machines++) {
        const pawl_unit unit = { .machine = *machines };
        bench_must(pawl_add(engine, &unit, &why), &why, "add a machine");
    }
    bench_must(pawl_start(engine, &why), &why, "start");
    return engine;
}

static void on_created(void *arg, pawl_err err, const pawl_answer *answer)
{
    bench_must(err, &answer->why, "create");
    _Atomic size_t *answered = arg;
    atomic_fetch_add_explicit(answered, 1, memory_order_relaxed);
}

void bench_create(struct pawl *engine, const pawl_machine *machine, size_t from, size_t count)
{
    const pawl_new options = { .data = bench_data() };
    _Atomic size_t answered = 0;
    size_t sent = 0;
    while (sent < count) {
        char id[32] = "";
        pawl_why why = { "" };
        if (sent - atomic_load_explicit(&answered, memory_order_relaxed) >= IN_FLIGHT_MAX) {
            bench_pause_ms(1);
            continue;
        }
        pw_print(id, sizeof(id), "e%zu", from + sent);
        pawl_err err =
            pawl_create_async(engine, machine->name, id, &options, on_created, &answered, &why);
        if (err == PAWL_E_BUSY) {
            bench_pause_ms(1);
            continue;
        }
        bench_must(err, &why, "create");
        sent++;
    }
    while (atomic_load(&answered) < count)
        bench_pause_ms(1);
}

uint64_t bench_transitions(struct pawl *engine)
{
    return atomic_load(&engine->metrics.transitions);
}

void bench_wait_transitions(struct pawl *engine, uint64_t count)
{
    while (bench_transitions(engine) < count)
        bench_pause_ms(1);
}

pawl_bytes bench_data(void)
{
    return pawl_str("{\"customer\":\"c-48151623\",\"items\":[{\"sku\":\"pump-2\",\"count\":3},"
                    "{\"sku\":\"hose-7\",\"count\":12}],\"total\":\"1949.90\",\"currency\":\"EUR\","
                    "\"to\":\"Am Hafen 7, 20457 Hamburg\",\"note\":\"before noon\"}");
}
