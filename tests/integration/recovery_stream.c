/* SPDX-License-Identifier: Apache-2.0
 *
 * What befalls the stream and its consumer on a real nats-server, by others' hands: the engine's
 * work is done all the same, and in the end the stream holds exactly what the store does. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

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

static uint64_t seq_of(struct place *place, const char *subject)
{
    natsConnection *connection = NULL;
    jsCtx *js = NULL;
    natsMsg *msg = NULL;
    assert_int_equal(natsConnection_ConnectTo(&connection, place->server.bus), NATS_OK);
    assert_int_equal(natsConnection_JetStream(&js, connection, NULL), NATS_OK);
    assert_int_equal(js_GetLastMsg(&msg, js, "PAWL_main_0", subject, NULL, NULL), NATS_OK);
    uint64_t seq = natsMsg_GetSequence(msg);
    natsMsg_Destroy(msg);
    jsCtx_Destroy(js);
    natsConnection_Destroy(connection);
    return seq;
}

static void delete_message(struct place *place, const char *subject)
{
    char body[64] = "";
    (void)snprintf(body, sizeof(body), "{\"seq\":%" PRIu64 "}", seq_of(place, subject));
    ask(place, "$JS.API.STREAM.MSG.DELETE.PAWL_main_0", body);
}

static void a_deleted_message_is_appended_again(void **state)
{
    struct place *place = *state;
    start(place);
    create(place, 0, 20);
    WAIT_FOR(at_rest(place));
    delete_message(place, "pawl.main.j.0.two.e7");
    expect_right(place, 20);
    assert_int_equal(METRIC(place, reseeded), 1);
    go(place, 0, 20);
    expect_done(place, 20);
}

static void a_message_deleted_meanwhile_is_appended_again(void **state)
{
    struct place *place = *state;
    start(place);
    create(place, 0, 20);
    WAIT_FOR(at_rest(place));
    stop(place);
    delete_message(place, "pawl.main.j.0.two.e7");
    start(place);
    expect_right(place, 20);
    assert_int_equal(METRIC(place, reseeded), 1);
    go(place, 0, 20);
    expect_done(place, 20);
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

/* Each message lives for a minute: not what pawl makes. */
static void make_limited_stream(struct place *place)
{
    ask(place, "$JS.API.STREAM.CREATE.PAWL_main_0",
        "{\"name\":\"PAWL_main_0\",\"subjects\":[\"pawl.main.j.0.>\"],\"retention\":\"limits\","
        "\"storage\":\"file\",\"max_msgs_per_subject\":1,\"num_replicas\":1,"
        "\"max_age\":60000000000}");
}

/* By hand, with a filter that nothing passes. */
static void a_consumer_of_other_settings_is_made_again(void **state)
{
    struct place *place = *state;
    char subject[128] = "";
    char body[512] = "";
    start(place);
    create(place, 0, 20);
    WAIT_FOR(at_rest(place));
    (void)snprintf(subject, sizeof(subject), "$JS.API.CONSUMER.DELETE.PAWL_main_0.pawl_0_%u",
                   fence_of(place));
    ask(place, subject, "");
    (void)snprintf(subject, sizeof(subject),
                   "$JS.API.CONSUMER.DURABLE.CREATE.PAWL_main_0.pawl_0_%u", fence_of(place));
    (void)snprintf(body, sizeof(body),
                   "{\"stream_name\":\"PAWL_main_0\",\"config\":{\"durable_name\":\"pawl_0_%u\","
                   "\"deliver_policy\":\"new\",\"ack_policy\":\"explicit\","
                   "\"filter_subject\":\"pawl.main.j.0.none.>\"}}",
                   fence_of(place));
    ask(place, subject, body);
    go(place, 0, 20);
    expect_done(place, 20);
}

static void a_stream_made_with_other_settings_meanwhile_is_refused(void **state)
{
    struct place *place = *state;
    start(place);
    create(place, 0, 10);
    WAIT_FOR(at_rest(place));
    nats_server_stop(&place->server); /* so that pawl is not the first to make it */
    nats_server_wipe(&place->server);
    WAIT_FOR(!is_live(place));
    stop(place);
    nats_server_restart(&place->server);
    make_limited_stream(place);
    start(place);
    create(place, 10, 20);
    WAIT_FOR(strstr(health_of(place).error, "max_age") != NULL);
    ask(place, "$JS.API.STREAM.DELETE.PAWL_main_0", "");
    go(place, 0, 20);
    expect_done(place, 20);
}

static void a_stream_with_a_limit_is_refused_by_name(void **state)
{
    struct place *place = *state;
    make_limited_stream(place);
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

/* Ownership and progress are asked of these. */
static void a_foreign_fence_and_mark_are_survived(void **state)
{
    struct place *place = *state;
    start(place);
    create(place, 0, 20);
    WAIT_FOR(at_rest(place));
    uint64_t voids = METRIC(place, void_records);
    publish(place, "pawl.main.j.0._fence");
    publish(place, "pawl.main.j.0._mark");
    WAIT_FOR(METRIC(place, void_records) >= voids + 2);
    go(place, 0, 10);
    WAIT_FOR(count_in(place, "done") == 10);
    stop(place);
    publish(place, "pawl.main.j.0._mark");
    publish(place, "pawl.main.j.0._fence");
    start(place);
    go(place, 10, 20);
    expect_done(place, 20);
}

/* --- room --------------------------------------------------------------------------------- */

#define HOG_BYTES 2500000

/* Another stream takes the room that the server has for all. */
static void publish_hog(struct place *place)
{
    static char data[HOG_BYTES / 4];
    natsConnection *connection = NULL;
    assert_int_equal(natsConnection_ConnectTo(&connection, place->server.bus), NATS_OK);
    for (int i = 0; i < 4; i++)
        assert_int_equal(natsConnection_Publish(connection, "hog", data, sizeof(data)), NATS_OK);
    assert_int_equal(natsConnection_Flush(connection), NATS_OK);
    natsConnection_Destroy(connection);
}

static bool says_full(struct place *place)
{
    return !is_live(place) && strstr(health_of(place).error, "takes no record: ") != NULL;
}

static void a_full_server_is_waited_for(void **state)
{
    struct place *place = *state;
    nats_server_end(&place->server);
    nats_server_start(&place->server, "jetstream { max_file_store: 3000000 }\n");
    ask(place, "$JS.API.STREAM.CREATE.HOG",
        "{\"name\":\"HOG\",\"subjects\":[\"hog\"],\"retention\":\"limits\",\"storage\":\"file\","
        "\"num_replicas\":1}");
    start(place);
    create(place, 0, 10);
    WAIT_FOR(at_rest(place));
    publish_hog(place);
    for (unsigned n = 10; n < 40; n++)
        create_large(place, n, 50000);
    WAIT_FOR(says_full(place));
    assert_false(at_rest(place));
    stop(place);
    start(place);
    WAIT_FOR(says_full(place)); /* of its opening */
    ask(place, "$JS.API.STREAM.PURGE.HOG", "");
    go(place, 0, 40);
    expect_done(place, 40);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, make_place, leave_place)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_purged_stream_is_filled_again),
        CASE(a_purged_subject_is_filled_again),
        CASE(a_stream_purged_to_a_sequence_is_filled_again),
        CASE(a_deleted_message_is_appended_again),
        CASE(a_message_deleted_meanwhile_is_appended_again),
        CASE(a_deleted_stream_is_made_again),
        CASE(a_deleted_consumer_is_made_again),
        CASE(a_consumer_of_other_settings_is_made_again),
        CASE(a_stream_made_with_other_settings_meanwhile_is_refused),
        CASE(a_stream_with_a_limit_is_refused_by_name),
        CASE(a_foreign_publisher_is_survived),
        CASE(a_foreign_fence_and_mark_are_survived),
        CASE(a_full_server_is_waited_for),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    nats_Close();
    return failed;
}
