/* SPDX-License-Identifier: Apache-2.0
 *
 * What befalls a real nats-server, and the data directory beside it: the engine's work is done all
 * the same, and in the end the stream holds exactly what the store does. */
#include <stdio.h>
#include <string.h>

#include <nats/nats.h>

#include "base/base.h"
#include "base/clock.h"
#include "integration/place.h"

/* --- a machine that is held at a gate ------------------------------------------------------- */

enum { SIGNING, SIGNED, LATE };
enum { SIGN };

static struct {
    _Atomic unsigned begun;
    _Atomic unsigned ended;
    _Atomic bool open;
    _Atomic bool memo; /* decides something once it is open */
    _Atomic int err;
    char kept[16];
} gate;

static pawl_outcome sign(pawl_task *task)
{
    struct pw_wake wake;
    char value[16] = "";
    pawl_bytes kept = { NULL, 0 };
    (void)snprintf(value, sizeof(value), "run %u", ++gate.begun);
    pw_wake_init(&wake);
    for (int looks = 0; !gate.open && !pawl_task_cancelled(task) && looks < 6000; looks++)
        pw_nap(&wake, 10);
    pw_wake_fini(&wake);
    if (gate.memo)
        gate.err = pawl_task_memo(task, "signature", pawl_str(value), &kept);
    (void)snprintf(gate.kept, sizeof(gate.kept), "%.*s", (int)kept.size,
                   kept.size > 0 ? (const char *)kept.data : "");
    gate.ended++;
    return gate.err == PAWL_OK ? pawl_raise(SIGN) : pawl_retry("not known");
}

static const pawl_state paper_states[] = {
    [SIGNING] = { .name = "signing", .flags = PAWL_START, .work = sign },
    [SIGNED] = { .name = "signed", .timeout_ms = 200 },
    [LATE] = { .name = "late", .flags = PAWL_FINAL },
};
static const char *const paper_events[] = { [SIGN] = "sign" };
static const pawl_edge paper_edges[] = {
    { .from = SIGNING, .event = SIGN, .to = SIGNED },
    { .from = SIGNED, .event = PAWL_TIMEOUT, .to = LATE },
};
static const pawl_machine paper = {
    .name = "paper", PAWL_STATES(paper_states), PAWL_EVENTS(paper_events), PAWL_EDGES(paper_edges)
};
static const pawl_unit paper_unit = { .machine = &paper };

/* Its work has begun, and NATS is gone. */
static void begin_paper(struct place *place, bool memo)
{
    gate.begun = 0;
    gate.ended = 0;
    gate.err = PAWL_OK;
    gate.open = false;
    gate.memo = memo;
    place->also = &paper_unit;
    start(place);
    assert_int_equal(pawl_create(place->engine, "paper", "p", NULL, NULL), PAWL_OK);
    WAIT_FOR(gate.begun == 1);
    nats_server_kill(&place->server);
}

static bool see_late(void *arg, const pawl_entity *entity)
{
    bool *late = arg;
    *late = strcmp(entity->state, "late") == 0;
    return true;
}

static bool is_late(struct place *place)
{
    bool late = false;
    const pawl_query query = { .machine = "paper" };
    assert_int_equal(pawl_scan(place->engine, &query, see_late, &late, NULL), PAWL_OK);
    return late;
}

/* --- the server --------------------------------------------------------------------------- */

static void nothing_befalls_it(void **state)
{
    struct place *place = *state;
    start(place);
    create(place, 0, 100);
    go(place, 0, 100);
    expect_done(place, 100);
    assert_int_equal(METRIC(place, reseeded), 0);
}

static void an_absent_server_is_waited_for(void **state)
{
    struct place *place = *state;
    nats_server_kill(&place->server);
    place->outbox_rows_max = 50;
    start(place);
    create(place, 0, 25);
    go(place, 0, 25);
    assert_int_equal(try_create(place, 99), PAWL_E_BUSY); /* transient */
    assert_int_equal(atomic_load(&place->runs), 0);
    nats_server_restart(&place->server);
    expect_done(place, 25);
    create(place, 25, 26);
}

static void on_replayed(void *arg, pawl_err err, const pawl_answer *answer)
{
    _Atomic bool *replayed = arg;
    (void)answer;
    *replayed = err == PAWL_OK;
}

static void outcomes_and_timers_go_on_when_the_outbox_is_full(void **state)
{
    struct place *place = *state;
    unsigned made = 0;
    _Atomic bool replayed = false;
    place->outbox_rows_max = 20;
    begin_paper(place, false);
    while (made < 100 && try_create(place, made) == PAWL_OK)
        made++;
    assert_in_range(made, 1, 20);
    gate.open = true;
    WAIT_FOR(is_late(place));
    assert_int_equal(try_create(place, made), PAWL_E_BUSY);
    assert_int_equal(pw_replay_async(place->engine, "two", "e0", on_replayed, &replayed, NULL),
                     PAWL_OK);
    WAIT_FOR(replayed); /* a person asks for it: never refused */
    nats_server_restart(&place->server);
    WAIT_FOR(at_rest(place));
    go(place, 0, 1);
    WAIT_FOR(count_in(place, "done") == 1 && at_rest(place));
    create(place, made, made + 1);
}

static void a_memo_waits_for_the_journal(void **state)
{
    struct place *place = *state;
    begin_paper(place, true);
    WAIT_FOR(at_rest(place)); /* it is journalled that it works */
    gate.open = true;
    WAIT_FOR(!at_rest(place)); /* committed */
    assert_int_equal(gate.ended, 0);
    nats_server_restart(&place->server);
    WAIT_FOR(is_late(place));
    assert_int_equal(gate.err, PAWL_OK);
    assert_string_equal(gate.kept, "run 1");
}

static void a_memo_is_kept_when_it_was_not_waited_for(void **state)
{
    struct place *place = *state;
    begin_paper(place, true);
    WAIT_FOR(at_rest(place));
    gate.open = true;
    WAIT_FOR(!at_rest(place));
    stop(place);
    assert_int_equal(gate.ended, 1);
    assert_int_not_equal(gate.err, PAWL_OK);
    nats_server_restart(&place->server);
    start(place);
    WAIT_FOR(is_late(place));
    assert_int_equal(gate.err, PAWL_OK);
    assert_int_equal(gate.begun, 2);
    assert_string_equal(gate.kept, "run 1");
}

static void a_server_that_dies_comes_back(void **state)
{
    struct place *place = *state;
    start(place);
    for (unsigned round = 0; round < 4; round++) {
        create(place, round * 50, round * 50 + 50);
        go(place, round * 50, round * 50 + 50);
        if (round % 2 == 0)
            nats_server_kill(&place->server);
        else
            nats_server_stop(&place->server);
        nats_server_restart(&place->server);
    }
    expect_done(place, 200);
}

static void a_frozen_server_is_waited_for(void **state)
{
    struct place *place = *state;
    start(place);
    create(place, 0, 50);
    WAIT_FOR(at_rest(place));
    nats_server_freeze(&place->server);
    go(place, 0, 50);
    uint64_t resumed = METRIC(place, resumed);
    WAIT_FOR(!is_live(place)); /* publishes had no answer */
    nats_server_thaw(&place->server);
    expect_done(place, 50);
    assert_true(METRIC(place, resumed) > resumed);
}

static void a_wiped_server_is_filled_again(void **state)
{
    struct place *place = *state;
    start(place);
    create(place, 0, 50);
    WAIT_FOR(at_rest(place));
    nats_server_stop(&place->server);
    nats_server_wipe(&place->server);
    nats_server_restart(&place->server);
    expect_right(place, 50);
    assert_true(METRIC(place, reseeded) >= 50);
    go(place, 0, 50);
    expect_done(place, 50);
}

static void a_server_that_went_back_is_caught_up(void **state)
{
    struct place *place = *state;
    start(place);
    create(place, 0, 50);
    WAIT_FOR(at_rest(place));
    nats_server_stop(&place->server);
    nats_server_save(&place->server);
    nats_server_restart(&place->server);
    create(place, 50, 80);
    go(place, 0, 20);
    WAIT_FOR(count_in(place, "done") == 20 && at_rest(place));
    nats_server_stop(&place->server);
    nats_server_load(&place->server);
    nats_server_restart(&place->server);
    expect_right(place, 80);
    go(place, 20, 80);
    expect_done(place, 80);
}

/* --- the directory ------------------------------------------------------------------------ */

static void a_lost_directory_is_rebuilt(void **state)
{
    struct place *place = *state;
    start(place);
    create(place, 0, 60);
    go(place, 0, 20);
    WAIT_FOR(count_in(place, "done") == 20 && at_rest(place));
    stop(place);
    forget_dir(place->dir);
    start(place);
    WAIT_FOR(count_in(place, "waiting") == 40 && count_in(place, "done") == 20);
    assert_int_equal(METRIC(place, taken), 60);
    go(place, 20, 60);
    WAIT_FOR(count_in(place, "done") == 60);
    expect_right(place, 60);
}

static void yesterdays_directory_takes_over_what_the_stream_has(void **state)
{
    struct place *place = *state;
    start(place);
    create(place, 0, 40);
    WAIT_FOR(at_rest(place));
    stop(place);
    copy_dir(place->dir, place->old);
    start(place);
    go(place, 0, 20);
    create(place, 40, 50);
    WAIT_FOR(count_in(place, "done") == 20 && at_rest(place));
    stop(place);
    copy_dir(place->old, place->dir);
    start(place);
    WAIT_FOR(count_in(place, "done") == 20 && count_in(place, "waiting") == 30);
    go(place, 20, 50);
    WAIT_FOR(count_in(place, "done") == 50);
    expect_right(place, 50);
}

static void what_an_old_directory_did_alone_is_set_aside(void **state)
{
    struct place *place = *state;
    start(place);
    create(place, 0, 10);
    WAIT_FOR(at_rest(place));
    stop(place);
    copy_dir(place->dir, place->old);
    start(place);
    go(place, 0, 5);
    WAIT_FOR(count_in(place, "done") == 5 && at_rest(place));
    const uint32_t fence = fence_of(place);
    struct pw_clock clock;
    pw_clock_init(&clock);
    stop(place);
    WAIT_FOR(clock.wall_ms(&clock) / 1000 >
             fence); /* the old copy's fence is the clock's seconds */
    copy_dir(place->old, place->dir);
    nats_server_stop(&place->server);
    start(place);
    go(place, 0, 2);       /* the stream knows better */
    create(place, 10, 12); /* and these it does not know */
    assert_int_equal(count_in(place, "first"), 2);
    nats_server_restart(&place->server);
    WAIT_FOR(count_in(place, "done") == 5 && count_in(place, "waiting") == 7);
    assert_int_equal(METRIC(place, set_aside), 2);
    expect_right(place, 12);
}

static void a_second_owner_fences_the_first_off(void **state)
{
    struct place *place = *state;
    struct place second = { .server = place->server };
    start(place);
    create(place, 0, 10);
    WAIT_FOR(at_rest(place));
    pw_print(second.dir, sizeof(second.dir), "%s", place->old);
    WAIT_FOR(place->engine->clock->wall_ms(place->engine->clock) / 1000 >
             fence_of(place)); /* fences are seconds, or more */
    start(&second);
    WAIT_FOR(count_in(&second, "waiting") == 10);
    (void)try_create(place, 10); /* its record is refused by the stream */
    WAIT_FOR(atomic_load(&place->engine->shards[0].lost));
    assert_int_equal(try_create(place, 11), PAWL_E_LOCKED);
    go(&second, 0, 10);
    WAIT_FOR(count_in(&second, "done") == 10);
    expect_right(&second, 10);
    stop(&second);
}

static void a_local_directory_joins_a_stream(void **state)
{
    struct place *place = *state;
    char bus[48] = "";
    (void)snprintf(bus, sizeof(bus), "%s", place->server.bus);
    (void)snprintf(place->server.bus, sizeof(place->server.bus), "local:");
    start(place);
    create(place, 0, 30);
    go(place, 0, 10);
    WAIT_FOR(count_in(place, "done") == 10);
    stop(place);
    (void)snprintf(place->server.bus, sizeof(place->server.bus), "%s", bus);
    start(place);
    go(place, 10, 30);
    expect_done(place, 30);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, make_place, leave_place)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(nothing_befalls_it),
        CASE(an_absent_server_is_waited_for),
        CASE(outcomes_and_timers_go_on_when_the_outbox_is_full),
        CASE(a_memo_waits_for_the_journal),
        CASE(a_memo_is_kept_when_it_was_not_waited_for),
        CASE(a_server_that_dies_comes_back),
        CASE(a_frozen_server_is_waited_for),
        CASE(a_wiped_server_is_filled_again),
        CASE(a_server_that_went_back_is_caught_up),
        CASE(a_lost_directory_is_rebuilt),
        CASE(yesterdays_directory_takes_over_what_the_stream_has),
        CASE(what_an_old_directory_did_alone_is_set_aside),
        CASE(a_second_owner_fences_the_first_off),
        CASE(a_local_directory_joins_a_stream),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    nats_Close();
    return failed;
}
