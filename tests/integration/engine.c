/* SPDX-License-Identifier: Apache-2.0
 *
 * The engine with its threads on a real disk, through the public API: embedding, kill -9, a full
 * map, closing early. */
#define _XOPEN_SOURCE 700 /* nftw, mkdtemp */
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/wake.h"
#include "engine/verify.h"
#include "pawl/pawl.h"
#include "support/test.h"

/* --- scratch, waiting --------------------------------------------------------------------- */

static int remove_one(const char *path, const struct stat *info, int type, struct FTW *ftw)
{
    (void)info;
    (void)type;
    (void)ftw;
    return remove(path);
}

static int make_scratch(void **state)
{
    const char *tmp = getenv("TMPDIR");
    char *dir = pw_alloc(256);
    (void)snprintf(dir, 256, "%s/pawl-engine-XXXXXX", tmp != NULL ? tmp : "/tmp");
    *state = dir;
    return mkdtemp(dir) != NULL ? 0 : -1;
}

static int remove_scratch(void **state)
{
    int failed = nftw(*state, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    pw_free(*state);
    return failed;
}

/* Looks again and again, until it holds or 30 seconds are over. */
#define WAIT_FOR(condition)                                                                        \
    do {                                                                                           \
        struct pw_wake wake_;                                                                      \
        int looks_ = 0;                                                                            \
        pw_wake_init(&wake_);                                                                      \
        for (; !(condition) && looks_ < 6000; looks_++)                                            \
            pw_nap(&wake_, 5);                                                                     \
        pw_wake_fini(&wake_);                                                                      \
        assert_true(looks_ < 6000);                                                                \
    } while (0)

/* --- a machine: three states of work in a row --------------------------------------------- */

enum { FIRST, SECOND, THIRD, DONE };
enum { GO };

static pawl_outcome pass(pawl_task *task)
{
    _Atomic uint64_t *runs = pawl_task_env(task);
    atomic_fetch_add(runs, 1);
    return pawl_raise(GO);
}

static const pawl_state states[] = {
    [FIRST] = { .name = "first", .flags = PAWL_START, .work = pass },
    [SECOND] = { .name = "second", .work = pass },
    [THIRD] = { .name = "third", .work = pass },
    [DONE] = { .name = "done", .flags = PAWL_FINAL },
};
static const char *const events[] = { [GO] = "go" };
static const pawl_edge edges[] = {
    { .from = FIRST, .event = GO, .to = SECOND },
    { .from = SECOND, .event = GO, .to = THIRD },
    { .from = THIRD, .event = GO, .to = DONE },
};
static const pawl_machine three = {
    .name = "three",
    PAWL_STATES(states),
    PAWL_EVENTS(events),
    PAWL_EDGES(edges),
    .key_share = 100,
    .crash_attempts_max = 100, /* it is killed faster than it can work */
};

static pawl *open_engine(const char *dir, const pawl_unit *unit, const pawl_options *more)
{
    pawl *engine = NULL;
    pawl_why why = { "" };
    pawl_options options = more != NULL ? *more : (pawl_options){ .dir = NULL };
    options.dir = dir;
    if (options.map_bytes == 0)
        options.map_bytes = (uint64_t)1 << 30;
    if (pawl_open(&engine, &options, &why) != PAWL_OK || pawl_add(engine, unit, &why) != PAWL_OK ||
        pawl_start(engine, &why) != PAWL_OK)
        fail_msg("open: %s", why.text);
    return engine;
}

static bool count_one(void *arg, const pawl_entity *entity)
{
    (void)entity;
    (*(uint64_t *)arg)++;
    return true;
}

static uint64_t count_in(pawl *engine, const char *state)
{
    uint64_t count = 0;
    pawl_query query = { .machine = "three", .state = state };
    assert_int_equal(pawl_scan(engine, &query, count_one, &count, NULL), PAWL_OK);
    return count;
}

static bool print_fault(void *arg, const char *text)
{
    (void)arg;
    print_error("verify: %s\n", text);
    return true;
}

static void assert_sound(pawl *engine, uint64_t expected)
{
    uint64_t entities = 0;
    uint64_t unlisted = 0;
    uint64_t faults = 0;
    assert_int_equal(pw_verify(engine, print_fault, &faults, &entities), PAWL_OK);
    assert_int_equal(entities, expected);
    assert_int_equal(pw_unlisted(engine, &unlisted), PAWL_OK);
    assert_int_equal(unlisted, 0);
}

/* --- embedding ---------------------------------------------------------------------------- */

static void count_answer(void *arg, pawl_err err, const pawl_answer *answer)
{
    (void)answer;
    if (err == PAWL_OK)
        atomic_fetch_add((_Atomic uint64_t *)arg, 1);
}

/* Keeps as many in flight as the engine takes. */
static void create_many(pawl *engine, uint64_t from, uint64_t count, _Atomic uint64_t *answered)
{
    struct pw_wake wake;
    pw_wake_init(&wake);
    for (uint64_t i = from; i < from + count; i++) {
        char id[32] = "";
        (void)snprintf(id, sizeof(id), "%llu", (unsigned long long)i);
        while (pawl_create_async(engine, "three", id, NULL, count_answer, answered, NULL) ==
               PAWL_E_BUSY)
            pw_nap(&wake, 1);
    }
    pw_wake_fini(&wake);
}

static void runs_thousands_to_their_end(void **state)
{
    for (uint32_t shards = 1; shards <= 3; shards += 2) {
        char dir[300] = "";
        _Atomic uint64_t runs = 0;
        _Atomic uint64_t answered = 0;
        pawl_unit unit = { .machine = &three, .env = &runs };
        pawl_options options = { .shards = shards };
        (void)snprintf(dir, sizeof(dir), "%s/%u", (char *)*state, shards);
        pawl *engine = open_engine(dir, &unit, &options);
        create_many(engine, 0, 5000, &answered);
        WAIT_FOR(count_in(engine, "done") == 5000);
        assert_int_equal(answered, 5000);
        assert_int_equal(runs, 15000);
        assert_int_equal(engine->metrics.swept, 0);
        assert_sound(engine, 5000);
        pawl_close(engine);
    }
}

static void blocking_calls_answer(void **state)
{
    _Atomic uint64_t runs = 0;
    pawl_unit unit = { .machine = &three, .env = &runs };
    pawl *engine = open_engine(*state, &unit, NULL);
    pawl_answer answer;
    pawl_new options = { .data = pawl_str("x"), .message_id = "m1" };
    assert_int_equal(pawl_create(engine, "three", "a", &options, &answer), PAWL_OK);
    assert_string_equal(answer.state, "first");
    assert_false(answer.repeated);
    assert_int_equal(pawl_create(engine, "three", "a", &options, &answer), PAWL_OK);
    assert_true(answer.repeated);
    options.message_id = "m2";
    assert_int_equal(pawl_create(engine, "three", "a", &options, &answer), PAWL_E_EXISTS);
    assert_int_equal(pawl_send(engine, "three", "b", "go", NULL, &answer), PAWL_E_NOT_FOUND);
    assert_int_equal(pawl_send(engine, "three", "a", "nothing", NULL, &answer), PAWL_E_USAGE);
    assert_int_equal(pawl_send(engine, "four", "a", "go", NULL, &answer), PAWL_E_USAGE);
    WAIT_FOR(count_in(engine, "done") == 1);
    assert_int_equal(pawl_send(engine, "three", "a", "go", NULL, &answer), PAWL_E_NO_EDGE);
    assert_non_null(strstr(answer.why.text, "'done'"));
    assert_int_equal(pawl_delete(engine, "three", "a", 0, &answer), PAWL_OK);
    pawl_entity *entity = NULL;
    assert_int_equal(pawl_read(engine, "three", "a", &entity), PAWL_E_NOT_FOUND);
    pawl_stop(engine);
    assert_int_equal(pawl_create(engine, "three", "c", NULL, &answer), PAWL_E_CLOSED);
    pawl_close(engine);
}

static void one_writer_and_any_readers(void **state)
{
    _Atomic uint64_t runs = 0;
    pawl_unit unit = { .machine = &three, .env = &runs };
    pawl *engine = open_engine(*state, &unit, NULL);
    pawl *second = NULL;
    pawl_why why = { "" };
    char pid[32] = "";
    pawl_options options = { .dir = *state, .map_bytes = (uint64_t)1 << 30 };
    (void)snprintf(pid, sizeof(pid), "%ld", (long)getpid());
    assert_int_equal(pawl_open(&second, &options, &why), PAWL_E_LOCKED);
    assert_non_null(strstr(why.text, pid));
    pawl_close(engine);
    options.shards = 2;
    assert_int_equal(pawl_open(&second, &options, &why), PAWL_E_SCHEMA);
    options.shards = 1;
    options.ns = "other";
    assert_int_equal(pawl_open(&second, &options, &why), PAWL_E_SCHEMA);
}

/* --- kept tasks, closing ------------------------------------------------------------------ */

struct kept {
    pawl_task *_Atomic task;
};

static pawl_outcome keep(pawl_task *task)
{
    struct kept *kept = pawl_task_env(task);
    pawl_outcome outcome = pawl_later(task);
    atomic_store(&kept->task, task);
    return outcome;
}

static const pawl_state keep_states[] = {
    { .name = "open", .flags = PAWL_START, .work = keep },
    { .name = "done", .flags = PAWL_FINAL },
};
static const pawl_edge keep_edges[] = { { .from = 0, .event = GO, .to = 1 } };
static const pawl_machine keeper = {
    .name = "three",
    PAWL_STATES(keep_states),
    PAWL_EVENTS(events),
    PAWL_EDGES(keep_edges),
};

static void a_kept_task_outlives_the_engine(void **state)
{
    struct kept kept = { NULL };
    pawl_unit unit = { .machine = &keeper, .env = &kept };
    pawl_options options = { .stop_ms = 1 };
    pawl *engine = open_engine(*state, &unit, &options);
    assert_int_equal(pawl_create(engine, "three", "a", NULL, NULL), PAWL_OK);
    WAIT_FOR(atomic_load(&kept.task) != NULL);
    assert_false(pawl_task_cancelled(kept.task));
    pawl_close(engine);
    assert_true(pawl_task_cancelled(kept.task));
    assert_int_equal(pawl_complete(kept.task, pawl_raise(GO)), PAWL_E_CLOSED);

    kept.task = NULL; /* it is worked again, under the same key, and ends */
    engine = open_engine(*state, &unit, &options);
    WAIT_FOR(atomic_load(&kept.task) != NULL);
    assert_int_equal(pawl_complete(kept.task, pawl_raise(GO)), PAWL_OK);
    WAIT_FOR(count_in(engine, "done") == 1);
    pawl_close(engine);
}

/* --- kill -9 ------------------------------------------------------------------------------ */

#define KILLED_ENTITIES 3000

/* A process that creates what is missing and works on; it ends only by being killed, or when all is
 * done. */
static void live(const char *dir, bool create)
{
    _Atomic uint64_t runs = 0;
    _Atomic uint64_t answered = 0;
    pawl_unit unit = { .machine = &three, .env = &runs };
    pawl_options options = { .shards = 2 };
    pawl *engine = open_engine(dir, &unit, &options);
    if (create)
        create_many(engine, 0, KILLED_ENTITIES, &answered); /* those that exist are refused */
    WAIT_FOR(count_in(engine, "done") == KILLED_ENTITIES);
    pawl_close(engine);
}

static void nothing_is_lost_to_kill_9(void **state)
{
    struct pw_wake wake;
    pw_wake_init(&wake);
    for (unsigned life = 1; life <= 8; life++) {
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            live(*state, true);
            _exit(0);
        }
        pw_nap(&wake, life * 13); /* the moment of death, not a wait for something */
        assert_int_equal(kill(child, SIGKILL), 0);
        int status = 0;
        assert_int_equal(waitpid(child, &status, 0), child);
    }
    pw_wake_fini(&wake);
    _Atomic uint64_t runs = 0;
    _Atomic uint64_t answered = 0;
    pawl_unit unit = { .machine = &three, .env = &runs };
    pawl_options options = { .shards = 2 };
    pawl *engine = open_engine(*state, &unit, &options);
    create_many(engine, 0, KILLED_ENTITIES, &answered);
    WAIT_FOR(count_in(engine, "done") == KILLED_ENTITIES);
    assert_sound(engine, KILLED_ENTITIES);
    pawl_close(engine);
}

/* --- a full map --------------------------------------------------------------------------- */

static void a_full_map_refuses_and_goes_on(void **state)
{
    _Atomic uint64_t runs = 0;
    pawl_unit unit = { .machine = &three, .env = &runs };
    pawl_options options = { .map_bytes = (uint64_t)2 << 20 };
    pawl *engine = open_engine(*state, &unit, &options);
    char data[4096] = "";
    pawl_new big = { .data = { data, sizeof(data) } };
    pawl_answer answer;
    pawl_err err = PAWL_OK;
    uint64_t made = 0;
    for (; err == PAWL_OK && made < 2000; made += err == PAWL_OK) {
        char id[32] = "";
        (void)snprintf(id, sizeof(id), "big%llu", (unsigned long long)made);
        err = pawl_create(engine, "three", id, &big, &answer);
    }
    assert_int_equal(err, PAWL_E_FULL);
    assert_true(made > 50);
    WAIT_FOR(count_in(engine, "done") == made); /* what was taken ends all the same */
    assert_sound(engine, made);
    for (uint64_t i = 0; i < made; i++) { /* deletes make room */
        char id[32] = "";
        (void)snprintf(id, sizeof(id), "big%llu", (unsigned long long)i);
        assert_int_equal(pawl_delete(engine, "three", id, 0, &answer), PAWL_OK);
    }
    WAIT_FOR(pawl_create(engine, "three", "after", &big, &answer) == PAWL_OK);
    WAIT_FOR(count_in(engine, "done") == 1);
    pawl_close(engine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(runs_thousands_to_their_end, make_scratch, remove_scratch),
        cmocka_unit_test_setup_teardown(blocking_calls_answer, make_scratch, remove_scratch),
        cmocka_unit_test_setup_teardown(one_writer_and_any_readers, make_scratch, remove_scratch),
        cmocka_unit_test_setup_teardown(a_kept_task_outlives_the_engine, make_scratch,
                                        remove_scratch),
        cmocka_unit_test_setup_teardown(nothing_is_lost_to_kill_9, make_scratch, remove_scratch),
        cmocka_unit_test_setup_teardown(a_full_map_refuses_and_goes_on, make_scratch,
                                        remove_scratch),
    };
    return cmocka_run_group_tests(tests, leaks_begin, leaks_end);
}
