/* SPDX-License-Identifier: Apache-2.0
 *
 * The verbs on the outbox, `verify` and `status` with a real nats-server: what waits is listed,
 * what the stream lacks is found, named and appended again. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "process/tool.h"
#include "support/ask.h"
#include "support/nats.h"
#include "support/test.h"

static struct result r;
static struct nats_server server;

static int stop(void **state)
{
    int failed = place_remove(state);
    if (server.root[0] != '\0')
        nats_server_end(&server);
    server = (struct nats_server){ .pid = 0 };
    return failed;
}

#define NATS(p, ...) TOOL(p, &r, NULL, "--bus", server.bus, __VA_ARGS__)

/* A server, a daemon, and the orders 1 to `count`. */
static void begin(struct place *p, int count)
{
    nats_server_start(&server, NULL);
    DAEMON(p, "--bus", server.bus, NULL);
    for (int i = 1; i <= count; i++) {
        char id[16] = "";
        pw_print(id, sizeof(id), "%d", i);
        NATS(p, "create", "order", id);
        assert_int_equal(r.status, 0);
    }
}

static void purge(const char *id)
{
    char filter[64] = "";
    pw_print(filter, sizeof(filter), "{\"filter\":\"pawl.main.j.0.order.%s\"}", id);
    nats_ask(server.bus, "$JS.API.STREAM.PURGE.PAWL_main_0", filter);
}

static int is_outbox_empty(void *arg)
{
    NATS(arg, "outbox", "list");
    return strcmp(r.out, "") == 0;
}

static int is_verified(void *arg)
{
    NATS(arg, "verify");
    return r.status == 0;
}

static int is_live(void *arg)
{
    NATS(arg, "status");
    return strstr(r.out, " live") != NULL && strstr(r.out, "not live") == NULL;
}

static int is_not_live(void *arg)
{
    NATS(arg, "status");
    return strstr(r.out, "not live") != NULL;
}

static void expect_has(const char *text, const char *part)
{
    if (strstr(text, part) == NULL)
        fail_msg("no '%s' in:\n%s", part, text);
}

/* --- list --------------------------------------------------------------------------------- */

static void what_waits_is_listed(void **state)
{
    struct place *p = *state;
    begin(p, 2);
    wait_until(is_outbox_empty, p);
    nats_server_stop(&server);
    NATS(p, "create", "order", "3");
    NATS(p, "create", "order", "4");
    NATS(p, "delete", "order", "1");
    NATS(p, "outbox", "list");
    assert_int_equal(r.status, 0);
    expect_has(r.out, "MACHINE ID STATE     AGE WAITS FOR\n");
    expect_has(r.out, "order   3  cart ");
    expect_has(r.out, "order   4  cart ");
    expect_has(r.out, "(deleted)");
    assert_null(strstr(r.out, "order   2"));
    NATS(p, "outbox", "list", "--id", "4", "--json");
    expect_has(
        r.out,
        "\"waits_for\":\"journal\",\"machine\":\"order\",\"id\":\"4\",\"state\":\"cart\"}\n");
    assert_null(strstr(r.out, "\"id\":\"1\""));
    NATS(p, "outbox", "list", "--limit", "1", "--state", "cart");
    expect_has(r.out, "order   3");
    assert_null(strstr(r.out, "order   4"));
    NATS(p, "outbox", "list", "--older", "100000");
    EXPECT(&r, 0, "", "");
    nats_server_restart(&server);
    wait_until(is_outbox_empty, p);
}

static void wrong_words_are_refused(void **state)
{
    struct place *p = *state;
    nats_server_start(&server, NULL);
    DAEMON(p, "--bus", server.bus, NULL);
    NATS(p, "outbox", "list", "--machine", "ordre");
    EXPECT(&r, 1, "", "order: outbox list: no machine 'ordre'\n");
    NATS(p, "outbox", "list", "--machine", "order", "--state", "crat");
    EXPECT(&r, 1, "", "order: outbox list: machine 'order' has no state 'crat'\n");
    NATS(p, "outbox", "replay", "--state", "crat");
    EXPECT(&r, 1, "", "order: outbox replay: no machine has a state 'crat'\n");
    NATS(p, "outbox", "replay");
    EXPECT(&r, 2, "",
           "order: outbox replay: say which ones: --machine, --state, --key, --older, --id, or "
           "--all\n");
    NATS(p, "outbox", "replay", "--machine", "order", "--id", "9");
    EXPECT(&r, 3, "", "order: outbox replay: no such entity\n");
    NATS(p, "outbox");
    assert_int_equal(r.status, 2);
    expect_has(r.err, "there is 'outbox list'");
    NATS(p, "list", "--machine", "ordre");
    EXPECT(&r, 1, "", "order: list: no machine 'ordre'\n");
}

/* --- verify ------------------------------------------------------------------------------- */

static void the_stream_is_compared(void **state)
{
    struct place *p = *state;
    begin(p, 4);
    wait_until(is_verified, p);
    expect_has(r.out, "4 entities, 4 records, 0 faults");
    assert_int_equal(daemon_end(p, SIGTERM), 0);
    NATS(p, "verify");
    EXPECT(&r, 0, "4 entities, 4 records, 0 faults\n", "");
    purge("1");
    nats_say(server.bus, "pawl.main.j.0.order.2", NULL, "junk");
    nats_say(server.bus, "pawl.main.j.0.order.3", "Pawl-Lsn: 4294967297", "old");
    nats_say(server.bus, "pawl.main.j.0.order.5", "Pawl-Lsn: 9151314442816847873", "new");
    nats_say(server.bus, "pawl.main.j.0.nothing", NULL, "junk");
    NATS(p, "verify");
    assert_int_equal(r.status, 5);
    assert_string_equal(r.err, "");
    expect_has(r.out, "shard 0, stream: order/1: no record of it; the store has version V\n");
    expect_has(r.out,
               "shard 0, stream: order/2: its record, sequence S, was written by no owner\n");
    expect_has(r.out, "order/3: an old record of it, version 4294967297; the store has V\n");
    expect_has(r.out, "order/5: a record of it, version V; the store has nothing of it\n");
    expect_has(r.out, "sequence S is on a subject of no entity: pawl.main.j.0.nothing\n");
    expect_has(r.out, "4 entities, 5 records, 5 faults\n");
}

static void a_stream_that_is_gone_is_a_fault(void **state)
{
    struct place *p = *state;
    begin(p, 1);
    wait_until(is_verified, p);
    assert_int_equal(daemon_end(p, SIGTERM), 0);
    nats_ask(server.bus, "$JS.API.STREAM.DELETE.PAWL_main_0", "");
    NATS(p, "verify");
    EXPECT(&r, 5, "shard 0, stream: stream PAWL_main_0: missing\n1 entities, 0 records, 1 faults\n",
           "");
    NATS(p, "verify"); /* looking made none */
    assert_int_equal(r.status, 5);
}

static void without_a_server_the_store_is_verified(void **state)
{
    struct place *p = *state;
    begin(p, 1);
    wait_until(is_verified, p);
    nats_server_stop(&server);
    NATS(p, "verify");
    assert_int_equal(r.status, 4);
    assert_string_equal(r.out, "1 entities, 0 faults, the daemon's lists included\n");
    expect_has(r.err, "order: verify: the stream is not compared: connect to nats://127.0.0.1:");
    expect_has(r.err, "(try again)\n");
}

/* --- replay ------------------------------------------------------------------------------- */

/* The owner looks for itself once in a while: then it is asked for again. */
static void replay_one(struct place *p)
{
    for (int i = 0; i < 5; i++) {
        purge("2");
        NATS(p, "outbox", "replay", "--machine", "order");
        assert_int_equal(r.status, 0);
        if (strstr(r.out, "0 to be appended") == NULL)
            return;
    }
    fail_msg("the stream never lacked it: %s", r.out);
}

static void what_is_lacking_is_appended_again(void **state)
{
    struct place *p = *state;
    begin(p, 3);
    wait_until(is_verified, p);
    replay_one(p);
    expect_has(r.out, "order/1: skipped: the stream has it (sequence S)\n");
    expect_has(r.out, "order/2: to be appended: the stream lacks it\n");
    expect_has(r.out, "1 to be appended, 2 skipped\norder/2: appended, version V\n");
    assert_string_equal(r.err, "order: outbox replay: 1 done, 0 refused\n");
    wait_until(is_verified, p);
    NATS(p, "outbox", "replay", "--all", "--json");
    assert_int_equal(r.status, 0);
    assert_null(strstr(r.out, "append"));
    NATS(p, "show", "order", "2", "--json");
    expect_has(r.out, "\"state\":\"cart\"");
}

static void a_dry_run_needs_no_daemon_and_does_nothing(void **state)
{
    struct place *p = *state;
    begin(p, 2);
    wait_until(is_verified, p);
    assert_int_equal(daemon_end(p, SIGTERM), 0);
    purge("2");
    for (int i = 0; i < 2; i++) {
        NATS(p, "outbox", "replay", "--all", "--dry-run");
        EXPECT(&r, 0,
               "order/1: skipped: the stream has it (sequence S)\n"
               "order/2: would be appended: the stream lacks it\n"
               "1 would be appended, 1 skipped\n",
               "");
    }
    NATS(p, "outbox", "replay", "--id", "2");
    assert_int_equal(r.status, 4); /* that needs one */
    TOOL(p, &r, NULL, "--bus", "local:", "outbox", "replay", "--all");
    EXPECT(&r, 1, "", "order: outbox replay: the bus is local: there is no stream\n");
}

/* --- status ------------------------------------------------------------------------------- */

static void status_tells_of_the_journal(void **state)
{
    struct place *p = *state;
    begin(p, 2);
    wait_until(is_outbox_empty, p);
    wait_until(is_live, p);
    expect_has(r.out, "SHARD OUTBOX OLDEST JOURNAL SEQ JOURNAL LSN");
    expect_has(r.out, "0     0      -      ");
    NATS(p, "status", "--json");
    expect_has(r.out, "\"outbox\":0");
    expect_has(r.out, "\"live\":true");
    expect_has(r.out, "\"error\":\"\"");
    nats_server_stop(&server);
    NATS(p, "create", "order", "3");
    wait_until(is_not_live, p);
    expect_has(r.out, "0     1      ");
    expect_has(r.out, "nats://127.0.0.1:");
    NATS(p, "status", "--json");
    expect_has(r.out, "\"outbox\":1");
    expect_has(r.out, "\"live\":false");
    assert_int_equal(daemon_end(p, SIGKILL), 128 + SIGKILL);
    NATS(p, "status");
    expect_has(r.out, "unknown");
    expect_has(r.out, "no daemon answers\n");
}

int main(void)
{
    unsetenv("PAWL_RESULTS"); /* ctest's: no setting */
    setenv("LC_ALL", "C.UTF-8", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_waits_is_listed, place_make, stop),
        cmocka_unit_test_setup_teardown(wrong_words_are_refused, place_make, stop),
        cmocka_unit_test_setup_teardown(the_stream_is_compared, place_make, stop),
        cmocka_unit_test_setup_teardown(a_stream_that_is_gone_is_a_fault, place_make, stop),
        cmocka_unit_test_setup_teardown(without_a_server_the_store_is_verified, place_make, stop),
        cmocka_unit_test_setup_teardown(what_is_lacking_is_appended_again, place_make, stop),
        cmocka_unit_test_setup_teardown(a_dry_run_needs_no_daemon_and_does_nothing, place_make,
                                        stop),
        cmocka_unit_test_setup_teardown(status_tells_of_the_journal, place_make, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
