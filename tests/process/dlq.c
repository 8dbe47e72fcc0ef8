/* SPDX-License-Identifier: Apache-2.0
 *
 * The verbs `dlq` with a real nats-server: what is parked, and tells that were refused for good,
 * are listed, shown, and done again. */
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
static const char *bus;

static int stop(void **state)
{
    int failed = place_remove(state);
    if (server.root[0] != '\0')
        nats_server_end(&server);
    server = (struct nats_server){ .pid = 0 };
    return failed;
}

#define RUN(p, ...) TOOL(p, &r, NULL, "--bus", bus, __VA_ARGS__)

static void begin(struct place *p)
{
    nats_server_start(&server, NULL);
    bus = server.bus;
    DAEMON(p, "--bus", bus, NULL);
}

static void create(struct place *p, const char *id, const char *data)
{
    RUN(p, "create", "task", id, "--data", data);
    assert_int_equal(r.status, 0);
}

static void expect_has(const char *text, const char *part)
{
    if (strstr(text, part) == NULL)
        fail_msg("no '%s' in:\n%s", part, text);
}

static void expect_lacks(const char *text, const char *part)
{
    if (strstr(text, part) != NULL)
        fail_msg("'%s' in:\n%s", part, text);
}

static size_t count_of(const char *text, const char *part)
{
    size_t count = 0;
    for (text = strstr(text, part); text != NULL; text = strstr(text + 1, part))
        count++;
    return count;
}

static size_t lines_of(const char *text)
{
    return count_of(text, "\n");
}

/* So many wait for a person, all of them with their letters. */
static size_t wanted;

static int is_listed(void *arg)
{
    RUN(arg, "dlq", "list", "--json");
    return r.status == 0 && lines_of(r.out) == wanted && count_of(r.out, "\"seq\"") == wanted;
}

static void wait_for_listed(struct place *p, size_t count)
{
    wanted = count;
    wait_until(is_listed, p);
}

static void expect_state(struct place *p, const char *id, const char *state)
{
    char line[64] = "";
    RUN(p, "show", "task", id);
    pw_print(line, sizeof(line), "state        %s\n", state);
    expect_has(r.out, line);
}

/* --- tests -------------------------------------------------------------------------------- */

static void parked_ones_are_listed_and_shown(void **state)
{
    struct place *p = *state;
    begin(p);
    create(p, "a", "fail");
    create(p, "b", "fail");
    create(p, "c", "fine");
    wait_for_listed(p, 2);
    RUN(p, "dlq", "list");
    expect_has(r.out, "MACHINE ID EPOCH ");
    expect_has(r.out, "task    a  V parked ");
    expect_has(r.out, " no way\n");
    expect_lacks(r.out, "task    c");
    RUN(p, "dlq", "list", "--id", "b", "--json");
    expect_has(r.out, "\"machine\":\"task\",\"id\":\"b\",\"kind\":\"parked\",\"epoch\":");
    assert_int_equal(lines_of(r.out), 1);
    RUN(p, "dlq", "list", "--older", "100000");
    EXPECT(&r, 0, "", "");
    RUN(p, "dlq", "list", "--limit", "1", "--json", "--state", "trying");
    assert_int_equal(lines_of(r.out), 1);
    RUN(p, "dlq", "show", "task", "a");
    assert_int_equal(r.status, 0);
    expect_has(r.out, "kind         parked\n");
    expect_has(r.out, "why          no way\n");
    expect_has(r.out, "data         fail\n");
    RUN(p, "dlq", "show", "task", "c");
    EXPECT(&r, 3, "", "teller: dlq show task/c: it is not parked, and has no dead letter\n");
    RUN(p, "dlq", "list", "--machine", "tusk");
    EXPECT(&r, 1, "", "teller: dlq list: no machine 'tusk'\n");
}

static void parked_ones_are_freed(void **state)
{
    struct place *p = *state;
    begin(p);
    create(p, "a", "fail");
    create(p, "b", "fail");
    wait_for_listed(p, 2);
    RUN(p, "dlq", "redrive");
    assert_int_equal(r.status, 2);
    expect_has(r.err, "say which ones");
    RUN(p, "dlq", "redrive", "--all", "--dry-run");
    EXPECT(&r, 0,
           "task/a: would be freed: no way\ntask/b: would be freed: no way\n"
           "2 would be freed, 0 would be told again, 0 would be removed\n",
           "");
    expect_state(p, "a", "trying");
    RUN(p, "dlq", "redrive", "task", "a");
    expect_has(r.out, "1 to be freed, 0 to be told again");
    expect_has(r.err, "dlq redrive: 1 done, 0 refused\n");
    assert_int_equal(r.status, 0);
    wait_for_listed(p, 2); /* it fails again */
    RUN(p, "show", "task", "a");
    expect_has(r.out, "trying #2 parked: no way");
    RUN(p, "dlq", "redrive", "--machine", "task", "--limit", "1", "--json");
    assert_int_equal(r.status, 0);
    RUN(p, "dlq", "redrive", "task", "z");
    EXPECT(&r, 3, "", "teller: dlq redrive: it is not parked, and has no dead letter\n");
    RUN(p, "delete", "task", "a");
    RUN(p, "delete", "task", "b");
    wait_for_listed(p, 0);
}

static void refused_tells_are_told_again(void **state)
{
    struct place *p = *state;
    begin(p);
    create(p, "there", "fail");
    create(p, "a", "go nobody");
    create(p, "b", "new there");
    wait_for_listed(p, 3);
    RUN(p, "dlq", "list", "--id", "a", "--json");
    expect_has(r.out, "\"kind\":\"tell\"");
    expect_has(r.out, "tell to task/nobody refused: no such entity");
    RUN(p, "dlq", "show", "task", "a");
    expect_has(r.out, "told op      send\n");
    expect_has(r.out, "told id      nobody\n");
    expect_has(r.out, "told event   tried\n");
    expect_has(r.out, "told data    told so\n");
    RUN(p, "dlq", "show", "task", "b", "--json");
    expect_has(r.out, "\"told\":{\"op\":\"create\",\"machine\":\"task\",\"id\":\"there\","
                      "\"key\":\"a key\",");
    RUN(p, "dlq", "redrive", "task", "a"); /* nobody is there yet */
    assert_int_equal(r.status, 3);
    expect_has(r.err, "teller: dlq redrive task/a: no such entity\n");
    create(p, "nobody", "fail");
    wait_for_listed(p, 4);
    RUN(p, "dlq", "redrive", "task", "a");
    EXPECT(&r, 0,
           "task/a: to be told again: tell to task/nobody refused: no such entity\n"
           "0 to be freed, 1 to be told again, 0 to be removed\n"
           "task/a: told task/nobody\n",
           "");
    expect_state(p, "nobody", "done");
    wait_for_listed(p, 2); /* there, and what b told */
    RUN(p, "dlq", "list", "--state", "trying", "--json");
    assert_int_equal(lines_of(r.out), 1);
}

/* As after a directory of yesterday: the stream has a letter that nobody waits for. */
static void what_was_left_behind_is_removed(void **state)
{
    struct place *p = *state;
    begin(p);
    create(p, "a", "fail");
    wait_for_listed(p, 1);
    nats_say(server.bus, "pawl.main.dlq.task.gone.7", NULL, "junk");
    nats_say(server.bus, "pawl.main.dlq.task.a.1.99.1", NULL, "junk");
    nats_say(server.bus, "pawl.main.dlq.junk", NULL, "junk");
    wait_for_listed(p, 3);
    expect_has(r.out, "\"id\":\"gone\",\"kind\":\"left behind\"");
    RUN(p, "dlq", "show", "task", "a");
    expect_has(r.out, "fault        the letter cannot be read: no owner wrote it\n");
    RUN(p, "dlq", "redrive", "--id", "gone");
    EXPECT(&r, 0,
           "task/gone: to be removed: it is not parked any more\n"
           "0 to be freed, 0 to be told again, 1 to be removed\n",
           "");
    wait_for_listed(p, 2);
}

static void without_the_stream(void **state)
{
    struct place *p = *state;
    begin(p);
    create(p, "a", "fail");
    wait_for_listed(p, 1);
    nats_server_stop(&server);
    RUN(p, "dlq", "list");
    assert_int_equal(r.status, 4);
    expect_has(r.out, "task    a  V parked ");
    expect_has(r.err, "dlq list: without the stream's dead letters: ");
    RUN(p, "dlq", "redrive", "task", "a");
    assert_int_equal(r.status, 4);
    expect_has(r.err, "dlq redrive: 1 done, 0 refused\n");
    nats_server_restart(&server);
    wait_for_listed(p, 1);
}

/* Without a stream there are no letters. */
static int is_any_listed(void *arg)
{
    RUN(arg, "dlq", "list");
    return r.out[0] != '\0';
}

static void on_the_local_bus(void **state)
{
    struct place *p = *state;
    bus = "local:";
    DAEMON(p, "--bus", bus, NULL);
    create(p, "a", "fail");
    wait_until(is_any_listed, p);
    expect_has(r.out, "parked TIME -      no way\n");
    RUN(p, "dlq", "show", "task", "a");
    assert_int_equal(r.status, 0);
    RUN(p, "dlq", "redrive", "--all");
    assert_int_equal(r.status, 0);
    expect_has(r.err, "1 done");
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, place_make, stop)

int main(void)
{
    (void)setenv("LC_ALL", "C.UTF-8", 1);
    (void)unsetenv("PAWL_RESULTS");
    const struct CMUnitTest tests[] = {
        CASE(parked_ones_are_listed_and_shown),
        CASE(parked_ones_are_freed),
        CASE(refused_tells_are_told_again),
        CASE(what_was_left_behind_is_removed),
        CASE(without_the_stream),
        CASE(on_the_local_bus),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
