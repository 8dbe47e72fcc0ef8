/* SPDX-License-Identifier: Apache-2.0
 *
 * The verb `provision` against a real nats-server, and that no output of the tool or the daemon has
 * a secret. */
#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>
#include <nats/nats.h>

#include "base/base.h"
#include "process/tool.h"
#include "support/ask.h"
#include "support/nats.h"
#include "support/test.h"

#define ANSWER_MS 5000

static struct result r;
static struct nats_server server;

static int stop(void **state)
{
    if (server.root[0] != '\0')
        nats_server_end(&server);
    server = (struct nats_server){ .pid = 0 };
    return place_remove(state);
}

/* Sends one line of what is printed, as anybody with a NATS client would. */
static void send_line(natsConnection *connection, const char *line)
{
    natsMsg *answer = NULL;
    json_t *object = json_loads(line, 0, NULL);
    const char *subject = json_string_value(json_object_get(object, "subject"));
    char *request = json_dumps(json_object_get(object, "request"), JSON_COMPACT);
    assert_non_null(subject);
    assert_int_equal(natsConnection_RequestString(&answer, connection, subject, request, ANSWER_MS),
                     NATS_OK);
    if (strstr(natsMsg_GetData(answer), "\"error\"") != NULL)
        fail_msg("%s: %s", subject, natsMsg_GetData(answer));
    natsMsg_Destroy(answer);
    json_decref(object);
    free(request);
}

static natsConnection *enter(void)
{
    natsConnection *made = NULL;
    assert_int_equal(natsConnection_ConnectTo(&made, server.bus), NATS_OK);
    return made;
}

static const char all_right[] = "PAWL_main_0: as described\nPAWL_main_1: as described\n"
                                "PAWL_main_EVENTS: as described\nPAWL_main_DLQ: as described\n";

static void printed_is_what_the_server_takes(void **state)
{
    struct place *p = *state;
    nats_server_start(&server, NULL);
    TOOL(p, &r, NULL, "--shards", "2", "--bus", server.bus, "provision", "--check");
    EXPECT(&r, 5,
           "PAWL_main_0: missing\nPAWL_main_1: missing\nPAWL_main_EVENTS: missing\n"
           "PAWL_main_DLQ: missing\n",
           "");
    char command[512] = ""; /* not by TOOL: it makes long numbers a V */
    pw_print(command, sizeof(command), "%s --shards 2 provision --print --replicas 1", ORDER);
    natsConnection *connection = enter();
    FILE *lines = popen(command, "r");
    assert_non_null(lines);
    static char line[4096];
    size_t count = 0;
    for (; fgets(line, sizeof(line), lines) != NULL; count++)
        send_line(connection, line);
    assert_int_equal(pclose(lines), 0);
    assert_int_equal(count, 4);
    natsConnection_Destroy(connection);
    TOOL(p, &r, NULL, "--shards", "2", "--bus", server.bus, "provision", "--check");
    EXPECT(&r, 0, all_right, "");
}

static void shipped_is_what_is_printed(void **state)
{
    (void)state;
    char command[512] = "";
    pw_print(command, sizeof(command), "%s provision --print --dir /nonexistent | cmp - %s", ORDER,
             STREAMS);
    assert_int_equal(system(command), 0);
}

static void made_once(void **state)
{
    struct place *p = *state;
    nats_server_start(&server, NULL);
    TOOL(p, &r, NULL, "--shards", "2", "--bus", server.bus, "provision");
    EXPECT(&r, 0,
           "PAWL_main_0: made\nPAWL_main_1: made\nPAWL_main_EVENTS: made\nPAWL_main_DLQ: made\n",
           "");
    TOOL(p, &r, NULL, "--shards", "2", "--bus", server.bus, "provision");
    EXPECT(&r, 0, all_right, "");
    TOOL(p, &r, NULL, "--bus", server.bus, "provision", "--check", "--json");
    EXPECT(&r, 0,
           "{\"stream\":\"PAWL_main_0\",\"ok\":true,\"made\":false}\n"
           "{\"stream\":\"PAWL_main_EVENTS\",\"ok\":true,\"made\":false}\n"
           "{\"stream\":\"PAWL_main_DLQ\",\"ok\":true,\"made\":false}\n",
           "");
}

/* One that is there is named, never changed. */
static void differing(void **state)
{
    struct place *p = *state;
    nats_server_start(&server, NULL);
    nats_ask(
        server.bus, "$JS.API.STREAM.CREATE.PAWL_main_0",
        "{\"name\":\"PAWL_main_0\",\"subjects\":[\"pawl.main.j.0.>\"],\"retention\":\"limits\","
        "\"storage\":\"file\",\"max_age\":60000000000,\"max_msgs_per_subject\":1,"
        "\"duplicate_window\":1000000000}");
    TOOL(p, &r, NULL, "--bus", server.bus, "provision");
    EXPECT(&r, 2, "PAWL_main_EVENTS: made\nPAWL_main_DLQ: made\n",
           "order: provision: stream PAWL_main_0: max_age is 60s; must be 0\n");
    TOOL(p, &r, NULL, "--bus", server.bus, "provision", "--check");
    EXPECT(&r, 5,
           "PAWL_main_0: max_age is 60s; must be 0\nPAWL_main_EVENTS: as described\n"
           "PAWL_main_DLQ: as described\n",
           "");
}

/* Somebody else's stream has the subjects. */
static void overlapping(void **state)
{
    struct place *p = *state;
    nats_server_start(&server, NULL);
    nats_ask(server.bus, "$JS.API.STREAM.CREATE.OTHER",
             "{\"name\":\"OTHER\",\"subjects\":[\"pawl.main.>\"],\"retention\":\"limits\","
             "\"storage\":\"file\"}");
    TOOL(p, &r, NULL, "--bus", server.bus, "provision");
    assert_int_equal(r.status, 2);
    assert_non_null(strstr(r.err, "order: provision: stream PAWL_main_0: $JS.API.STREAM.CREATE."
                                  "PAWL_main_0: subjects overlap with an existing stream"));
}

static void wrong_lines(void **state)
{
    struct place *p = *state;
    TOOL(p, &r, NULL, "provision");
    EXPECT(&r, 2, "",
           "order: provision: the bus is local:, and has no streams; give --bus "
           "nats://host:port\n");
    TOOL(p, &r, NULL, "provision", "--print", "--check");
    EXPECT(&r, 2, "", "order: provision: one of --print and --check\n");
    TOOL(p, &r, NULL, "provision", "--replicas", "6");
    assert_int_equal(r.status, 2);
    TOOL(p, &r, NULL, "--bus", "nats://127.0.0.1:1", "provision", "--check");
    EXPECT(&r, 4, "",
           "order: provision: connect to nats://127.0.0.1:1: No server available for connection "
           "(try again)\n");
}

/* --- secrets ------------------------------------------------------------------------------ */

static void write_secret(const struct place *p, char path[96], const char *text)
{
    pw_print(path, 96, "%s/secret", p->root);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void no_secret(void)
{
    assert_null(strstr(r.out, "s3cret"));
    assert_null(strstr(r.err, "s3cret"));
}

static void files_of_secrets(void **state)
{
    struct place *p = *state;
    char path[96] = "";
    nats_server_start(&server, "authorization { user: u, password: s3cret }\n");
    write_secret(p, path, "s3cret\n");
    TOOL(p, &r, NULL, "--bus", server.bus, "--nats-user", "u", "--nats-password-file", path,
         "provision");
    assert_int_equal(r.status, 0);
    TOOL(p, &r, NULL, "--bus", server.bus, "--nats-token-file", path, "provision", "--check");
    assert_int_equal(r.status, 4); /* a token is not what this server wants */
    assert_non_null(strstr(r.err, "the server refuses these credentials"));
    no_secret();
    TOOL(p, &r, NULL, "--bus", server.bus, "--nats-token-file", path, "--nats-user", "u",
         "--nats-password-file", path, "provision");
    assert_int_equal(r.status, 2);
    no_secret();
    write_secret(p, path, "\ns3cret\n");
    TOOL(p, &r, NULL, "--bus", server.bus, "--nats-user", "u", "--nats-password-file", path,
         "provision");
    assert_int_equal(r.status, 2);
    assert_non_null(strstr(r.err, "/secret: its first line has nothing\n"));
    no_secret();
}

static int is_open(void *arg)
{
    return strstr(daemon_log(arg), "journal.open") != NULL;
}

/* In the bus's own URL: the daemon gets it by its environment, not on its command line. */
static void secrets_of_the_bus(void **state)
{
    struct place *p = *state;
    char bus[96] = "";
    static const char *const verbs[] = { "config", "status", "list", "check", "verify" };
    nats_server_start(&server, "authorization { user: u, password: s3cret }\n");
    pw_print(bus, sizeof(bus), "nats://u:s3cret@127.0.0.1:%u", server.port);
    setenv("PAWL_BUS", bus, 1);
    daemon_start(p, (const char *const[]){ "--log-level", "debug", NULL });
    wait_until(is_open, p);
    for (size_t i = 0; i < PW_COUNT(verbs); i++) {
        TOOL(p, &r, NULL, verbs[i]);
        assert_int_equal(r.status, 0);
        no_secret();
        TOOL(p, &r, NULL, verbs[i], "--json");
        no_secret();
    }
    TOOL(p, &r, NULL, "config", "--sample");
    no_secret();
    TOOL(p, &r, NULL, "config");
    assert_non_null(strstr(r.out, "nats://127.0.0.1:"));
    nats_server_kill(&server);
    TOOL(p, &r, NULL, "provision");
    assert_int_equal(r.status, 4);
    no_secret();
    assert_int_equal(daemon_end(p, 15), 0);
    assert_null(strstr(daemon_log(p), "s3cret"));
    setenv("PAWL_BUS", "nats://u:s3cret@127.0.0.1:s3cret", 1);
    TOOL(p, &r, NULL, "config");
    assert_int_equal(r.status, 2);
    no_secret();
    setenv("PAWL_BUS", "http://u:s3cret@127.0.0.1", 1);
    TOOL(p, &r, NULL, "run");
    assert_int_equal(r.status, 2);
    no_secret();
    unsetenv("PAWL_BUS");
}

/* libnats 3.4.1 frees, at its close, what OpenSSL frees again at exit. */
static int begin(void **state)
{
    if (OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, NULL) != 1)
        return -1;
    return leaks_begin(state);
}

static int end(void **state)
{
    if (nats_CloseAndWait(10000) != NATS_OK)
        return -1;
    return leaks_end(state);
}

int main(void)
{
    unsetenv("PAWL_RESULTS"); /* ctest's: no setting */
    setenv("LC_ALL", "C.UTF-8", 1);
#define CASE(name) cmocka_unit_test_setup_teardown(name, place_make, stop)
    const struct CMUnitTest tests[] = {
        CASE(printed_is_what_the_server_takes),
        CASE(shipped_is_what_is_printed),
        CASE(made_once),
        CASE(differing),
        CASE(overlapping),
        CASE(wrong_lines),
        CASE(files_of_secrets),
        CASE(secrets_of_the_bus),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
