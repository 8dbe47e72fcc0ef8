/* SPDX-License-Identifier: Apache-2.0
 *
 * What befalls the stream and its consumer on a real nats-server, by others' hands: the engine's
 * work is done all the same, and in the end the stream holds exactly what the store does. */
#include <stdio.h>

#include <nats/nats.h>

#include "integration/place.h"

/* --- the stream --------------------------------------------------------------------------- */

static void befall(struct place *place, const char *subject, const char *body)
{
    start(place);
    create(place, 0, 60);
    go(place, 0, 20);
    WAIT_FOR(count_in(place, "done") == 20 && at_rest(place));
    ask(place, subject, body);
    expect_right(place, 60);
    go(place, 20, 60);
    expect_done(place, 60);
    assert_true(METRIC(place, reseeded) > 0);
}

static void a_purged_stream_is_filled_again(void **state)
{
    befall(*state, "$JS.API.STREAM.PURGE.PAWL_main_0", "");
}

static void a_purged_subject_is_filled_again(void **state)
{
    befall(*state, "$JS.API.STREAM.PURGE.PAWL_main_0", "{\"filter\":\"pawl.main.j.0.two.e30\"}");
}

static void a_stream_purged_to_a_sequence_is_filled_again(void **state)
{
    befall(*state, "$JS.API.STREAM.PURGE.PAWL_main_0", "{\"seq\":560}");
}

static void a_deleted_stream_is_made_again(void **state)
{
    befall(*state, "$JS.API.STREAM.DELETE.PAWL_main_0", "");
}

static void a_deleted_consumer_is_made_again(void **state)
{
    struct place *place = *state;
    char subject[128] = "";
    start(place);
    create(place, 0, 20);
    WAIT_FOR(at_rest(place));
    (void)snprintf(subject, sizeof(subject), "$JS.API.CONSUMER.DELETE.PAWL_main_0.pawl_0_%u",
                   fence_of(place));
    ask(place, subject, "");
    go(place, 0, 20);
    expect_done(place, 20);
}

static void a_stream_with_a_limit_is_refused_by_name(void **state)
{
    struct place *place = *state;
    ask(place, "$JS.API.STREAM.CREATE.PAWL_main_0",
        "{\"name\":\"PAWL_main_0\",\"subjects\":[\"pawl.main.j.0.>\"],\"retention\":\"limits\","
        "\"storage\":\"file\",\"max_msgs_per_subject\":1,\"num_replicas\":1,"
        "\"max_age\":60000000000}");
    start(place);
    create(place, 0, 10);
    WAIT_FOR(strstr(health_of(place).error, "max_age") != NULL);
    ask(place, "$JS.API.STREAM.DELETE.PAWL_main_0", "");
    go(place, 0, 10);
    expect_done(place, 10);
}

static void a_foreign_publisher_is_survived(void **state)
{
    struct place *place = *state;
    start(place);
    create(place, 0, 20);
    WAIT_FOR(at_rest(place));
    publish(place, "pawl.main.j.0.two.e3");
    publish(place, "pawl.main.j.0.two.nobody");
    publish(place, "pawl.main.j.0.not.an.entity");
    WAIT_FOR(METRIC(place, void_records) >= 3);
    go(place, 0, 20);
    WAIT_FOR(count_in(place, "done") == 20);
    expect_records(place, 20, 1); /* nobody has a tombstone now; what is no entity's is gone */
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, make_place, leave_place)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_purged_stream_is_filled_again),
        CASE(a_purged_subject_is_filled_again),
        CASE(a_stream_purged_to_a_sequence_is_filled_again),
        CASE(a_deleted_stream_is_made_again),
        CASE(a_deleted_consumer_is_made_again),
        CASE(a_stream_with_a_limit_is_refused_by_name),
        CASE(a_foreign_publisher_is_survived),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    nats_Close();
    return failed;
}
