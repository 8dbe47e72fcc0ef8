/* SPDX-License-Identifier: Apache-2.0
 *
 * The end of an engine with its threads, while others are still in calls: blocked before a full
 * inbox, waiting for an answer, reading, completing kept tasks; on a disk that works, is slow, or
 * is gone. */
#define _XOPEN_SOURCE 700 /* nftw, mkdtemp */
#include <ftw.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/base.h"
#include "base/limits.h"
#include "base/wake.h"
#include "engine/engine.h"
#include "pawl/pawl.h"
#include "support/test.h"

/* --- scratch -------------------------------------------------------------------------------- */

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
    (void)snprintf(dir, 256, "%s/pawl-close-XXXXXX", tmp != NULL ? tmp : "/tmp");
    *state = dir;
    return mkdtemp(dir) != NULL ? 0 : -1;
}

static int remove_scratch(void **state)
{
    int failed = nftw(*state, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    pw_free(*state);
    return failed;
}

static void nap(uint64_t ms)
{
    struct pw_wake wake;
    pw_wake_init(&wake);
    pw_nap(&wake, ms);
    pw_wake_fini(&wake);
}

/* --- a disk that can be stopped, or taken away ------------------------------------------------ */

static struct {
    const struct pw_store_ops *real;
    struct pw_store_ops ops;
    pthread_mutex_t lock; /* held: commits wait */
    _Atomic bool gone;
} disk = { .lock = PTHREAD_MUTEX_INITIALIZER };

static pawl_err slow_commit(struct pw_txn *txn)
{
    pthread_mutex_lock(&disk.lock);
    pthread_mutex_unlock(&disk.lock);
    return disk.real->commit(txn);
}

static pawl_err begin_or_not(struct pw_store *store, bool write, struct pw_txn **txn)
{
    return write && atomic_load(&disk.gone) ? PAWL_E_IO : disk.real->begin(store, write, txn);
}

static pawl_err reopen_or_not(struct pw_store *store, pawl_why *why)
{
    if (atomic_load(&disk.gone))
        return pw_fail(why, PAWL_E_IO, "the disk is gone");
    return disk.real->reopen(store, why);
}

/* Between open and start. */
static void put_between(pawl *engine)
{
    struct pw_store *store = engine->shards[0].tables.store;
    disk.real = store->ops;
    disk.ops = *store->ops;
    disk.ops.begin = begin_or_not;
    disk.ops.commit = slow_commit;
    disk.ops.reopen = reopen_or_not;
    atomic_store(&disk.gone, false);
    store->ops = &disk.ops;
}

/* --- a machine -------------------------------------------------------------------------------- */

enum { WAITING, WORKING, DONE };
enum { GO };

#define KEPT_MAX 20000

static struct {
    pthread_mutex_t lock;
    pawl_task *tasks[KEPT_MAX];
    size_t count;
    _Atomic bool memo; /* the work makes one */
    _Atomic bool in_memo;
} plant = { .lock = PTHREAD_MUTEX_INITIALIZER };

static pawl_outcome work(pawl_task *task)
{
    pawl_bytes kept = { "", 0 };
    if (atomic_load(&plant.memo)) {
        atomic_store(&plant.in_memo, true);
        return pawl_task_memo(task, "m", pawl_str("1"), &kept) == PAWL_OK ? pawl_raise(GO)
                                                                          : pawl_retry("no memo");
    }
    pawl_outcome outcome = pawl_later(task);
    pthread_mutex_lock(&plant.lock);
    bool room = plant.count < KEPT_MAX;
    if (room)
        plant.tasks[plant.count++] = task;
    pthread_mutex_unlock(&plant.lock);
    if (!room)
        (void)pawl_complete(task, pawl_raise(GO));
    return outcome;
}

static const pawl_state states[] = {
    [WAITING] = { .name = "waiting", .flags = PAWL_START },
    [WORKING] = { .name = "working", .work = work },
    [DONE] = { .name = "done", .flags = PAWL_FINAL },
};
static const char *const events[] = { [GO] = "go" };
static const pawl_edge edges[] = {
    { .from = WAITING, .event = GO, .to = WORKING },
    { .from = WORKING, .event = GO, .to = DONE },
};
static const pawl_machine thing = {
    .name = "thing",
    PAWL_STATES(states),
    PAWL_EVENTS(events),
    PAWL_EDGES(edges),
    .key_share = 100,
};

static pawl *open_engine(const char *dir)
{
    pawl *engine = NULL;
    pawl_why why = { "" };
    pawl_options options = { .dir = dir, .map_bytes = (uint64_t)1 << 30, .stop_ms = 1 };
    pawl_unit unit = { .machine = &thing };
    plant.count = 0;
    atomic_store(&plant.memo, false);
    atomic_store(&plant.in_memo, false);
    if (pawl_open(&engine, &options, &why) != PAWL_OK || pawl_add(engine, &unit, &why) != PAWL_OK)
        fail_msg("open: %s", why.text);
    put_between(engine);
    if (pawl_start(engine, &why) != PAWL_OK)
        fail_msg("start: %s", why.text);
    return engine;
}

/* --- callers ---------------------------------------------------------------------------------- */

struct caller {
    pthread_t thread;
    pawl *engine;
    unsigned number;
    unsigned made; /* commands answered with OK */
    pawl_err last; /* what ended it */
};

static void *call_until_closed(void *arg)
{
    struct caller *caller = arg;
    char id[32] = "";
    for (unsigned n = 0; caller->last == PAWL_OK; n++) {
        (void)snprintf(id, sizeof(id), "%u-%u", caller->number, n);
        caller->last = pawl_create(caller->engine, "thing", id, NULL, NULL);
        caller->made += caller->last == PAWL_OK ? 1 : 0;
    }
    return NULL;
}

#define CALLERS 8

static void start_callers(pawl *engine, struct caller *callers, void *(*call)(void *))
{
    for (unsigned i = 0; i < CALLERS; i++) {
        callers[i] = (struct caller){ .engine = engine, .number = i };
        assert_int_equal(pthread_create(&callers[i].thread, NULL, call, &callers[i]), 0);
    }
}

static void join_callers(struct caller *callers)
{
    for (unsigned i = 0; i < CALLERS; i++)
        assert_int_equal(pthread_join(callers[i].thread, NULL), 0);
}

static bool count_one(void *arg, const pawl_entity *entity)
{
    (void)entity;
    (*(unsigned *)arg)++;
    return true;
}

/* Nobody begins a call once the engine is asked to stop; those who are in one come back from it. */
static void *call_once(void *arg)
{
    struct caller *caller = arg;
    char id[32] = "";
    (void)snprintf(id, sizeof(id), "%u", caller->number);
    caller->last = pawl_create(caller->engine, "thing", id, NULL, NULL);
    return NULL;
}

static void fill_inbox(pawl *engine)
{
    pawl_err err = PAWL_OK;
    char id[32] = "";
    for (unsigned n = 0; err == PAWL_OK; n++) {
        (void)snprintf(id, sizeof(id), "f%u", n);
        err = pawl_create_async(engine, "thing", id, NULL, NULL, NULL, NULL);
    }
    assert_int_equal(err, PAWL_E_BUSY);
}

/* More callers than there is room for, before a commit that takes its time. */
static void blocked_callers_come_back(void **state)
{
    for (unsigned round = 0; round < 20; round++) {
        pawl *engine = open_engine(*state);
        struct caller callers[CALLERS];
        pthread_mutex_lock(&disk.lock);
        fill_inbox(engine);
        start_callers(engine, callers, call_once);
        nap(round % 5); /* let them block, or not yet */
        while (atomic_load(&engine->callers) < CALLERS)
            nap(1);
        pthread_mutex_unlock(&disk.lock);
        pawl_close(engine);
        join_callers(callers);
        for (unsigned i = 0; i < CALLERS; i++)
            assert_true(callers[i].last == PAWL_OK || callers[i].last == PAWL_E_CLOSED ||
                        callers[i].last == PAWL_E_EXISTS);
    }
}

/* What was answered with OK is there; each loop ends by itself when the engine is asked to stop. */
static void answers_before_the_end_hold(void **state)
{
    unsigned made = 0;
    for (unsigned round = 0; round < 5; round++) {
        char dir[300] = "";
        (void)snprintf(dir, sizeof(dir), "%s/%u", (const char *)*state, round);
        pawl *engine = open_engine(dir);
        struct caller callers[CALLERS];
        start_callers(engine, callers, call_until_closed);
        nap(20);
        pawl_stop(engine); /* all loops end */
        join_callers(callers);
        pawl_close(engine);
        made = 0;
        for (unsigned i = 0; i < CALLERS; i++) {
            assert_int_equal(callers[i].last, PAWL_E_CLOSED);
            made += callers[i].made;
        }
        unsigned found = 0;
        engine = open_engine(dir);
        assert_int_equal(pawl_scan(engine, NULL, count_one, &found, NULL), PAWL_OK);
        assert_in_range(found, made, made + CALLERS);
        pawl_close(engine);
    }
}

/* --- kept tasks --------------------------------------------------------------------------------
 */

static void *complete_all(void *arg)
{
    _Atomic bool *over = arg;
    for (bool last = false; !last;) {
        last = atomic_load(over);
        pthread_mutex_lock(&plant.lock);
        pawl_task *task = plant.count > 0 ? plant.tasks[--plant.count] : NULL;
        pthread_mutex_unlock(&plant.lock);
        if (task == NULL)
            continue;
        last = false;
        (void)pawl_task_cancelled(task);
        pawl_err err = pawl_complete(task, pawl_raise(GO));
        if (err != PAWL_OK && err != PAWL_E_CLOSED)
            abort();
    }
    return NULL;
}

static void kept_tasks_are_completed_while_it_closes(void **state)
{
    for (unsigned round = 0; round < 20; round++) {
        char dir[300] = "";
        char id[32] = "";
        _Atomic bool over = false;
        pthread_t threads[2];
        (void)snprintf(dir, sizeof(dir), "%s/%u", (const char *)*state, round);
        pawl *engine = open_engine(dir);
        for (unsigned n = 0; n < 500; n++) {
            (void)snprintf(id, sizeof(id), "%u", n);
            assert_int_equal(pawl_create_async(engine, "thing", id, NULL, NULL, NULL, NULL),
                             PAWL_OK);
            assert_int_equal(pawl_send_async(engine, "thing", id, "go", NULL, NULL, NULL, NULL),
                             PAWL_OK);
        }
        for (unsigned i = 0; i < 2; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, complete_all, &over), 0);
        nap(round % 10);
        pawl_close(engine);
        atomic_store(&over, true);
        for (unsigned i = 0; i < 2; i++)
            assert_int_equal(pthread_join(threads[i], NULL), 0);
        engine = open_engine(dir); /* in order */
        assert_false(engine->shards[0].probation);
        pawl_close(engine);
        atomic_store(&over, true);
        (void)complete_all(&over);
    }
}

/* --- a disk that is gone ------------------------------------------------------------------------
 */

/* A worker waits for its memo, a caller for its answer, and the store cannot be opened anew. */
static void a_disk_that_is_gone_does_not_hold_up_the_end(void **state)
{
    pawl *engine = open_engine(*state);
    struct caller callers[CALLERS];
    atomic_store(&plant.memo, true);
    assert_int_equal(pawl_create(engine, "thing", "a", NULL, NULL), PAWL_OK);
    pthread_mutex_lock(&disk.lock);
    assert_int_equal(pawl_send_async(engine, "thing", "a", "go", NULL, NULL, NULL, NULL), PAWL_OK);
    pthread_mutex_unlock(&disk.lock);
    while (!atomic_load(&plant.in_memo))
        nap(1);
    atomic_store(&disk.gone, true);
    start_callers(engine, callers, call_once);
    nap(5);
    pawl_close(engine);
    join_callers(callers);
    atomic_store(&disk.gone, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(blocked_callers_come_back, make_scratch, remove_scratch),
        cmocka_unit_test_setup_teardown(answers_before_the_end_hold, make_scratch, remove_scratch),
        cmocka_unit_test_setup_teardown(kept_tasks_are_completed_while_it_closes, make_scratch,
                                        remove_scratch),
        cmocka_unit_test_setup_teardown(a_disk_that_is_gone_does_not_hold_up_the_end, make_scratch,
                                        remove_scratch),
    };
    return cmocka_run_group_tests(tests, leaks_begin, leaks_end);
}
