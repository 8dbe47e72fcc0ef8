/* SPDX-License-Identifier: Apache-2.0
 *
 * The connection to a real nats-server: each way to be let in, what a wrong one says, and that it
 * comes back from whatever happens to the server. */
#include <openssl/crypto.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "jetstream/link.h"
#include "support/logins.h"
#include "support/nats.h"
#include "support/test.h"

#define WAIT_MS_MAX 60000

static struct nats_server server;
static _Atomic int pokes;

static void poked(void *arg)
{
    (void)arg;
    pokes++;
}

static struct pw_link *open_link(const char *bus, const pawl_nats *nats)
{
    struct pw_link *link = NULL;
    pawl_why why = { "" };
    const struct pw_link_options options = {
        .nats = nats, .bus = bus, .name = "test", .poke = poked
    };
    pawl_err err = pw_link_open(&link, &options, &why);
    assert_string_equal(why.text, "");
    assert_int_equal(err, PAWL_OK);
    return link;
}

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void wait_a_moment(int64_t until_ms)
{
    if (now_ms() > until_ms)
        fail_msg("waited too long");
    (void)poll(NULL, 0, 10);
}

/* Waits until it is up; returns its turn. */
static uint64_t come_up(struct pw_link *link, natsConnection **connection)
{
    uint64_t turn = 0;
    natsConnection *found = NULL;
    for (int64_t until_ms = now_ms() + WAIT_MS_MAX;
         pw_link_get(link, &found, &turn, NULL) != PAWL_OK;)
        wait_a_moment(until_ms);
    assert_true(pw_link_is_up(link));
    assert_int_equal(natsConnection_FlushTimeout(found, 5000), NATS_OK);
    if (connection != NULL)
        *connection = found;
    return turn;
}

static void go_down(struct pw_link *link)
{
    natsConnection *connection = NULL;
    for (int64_t until_ms = now_ms() + WAIT_MS_MAX;
         pw_link_get(link, &connection, NULL, NULL) == PAWL_OK || pw_link_is_up(link);)
        wait_a_moment(until_ms);
}

/* The first try fails, with this text behind the bus. */
static void refused(struct pw_link *link, const char *text)
{
    char whole[256] = "";
    pawl_why why = { "" };
    natsConnection *connection = NULL;
    pw_print(whole, sizeof(whole), "connect to %s: %s", server.bus, text);
    assert_int_equal(pw_link_get(link, &connection, NULL, &why), PAWL_E_IO);
    assert_string_equal(why.text, whole);
    assert_false(pw_link_is_up(link));
}

static const char no_entry[] = "the server refuses these credentials";

static void configure(const char *config)
{
    FILE *file = fopen(server.config, "w");
    assert_non_null(file);
    assert_true(fputs(config, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void reconfigure(const char *config)
{
    nats_server_stop(&server);
    configure(config);
    nats_server_restart(&server);
}

static void write_file(const char *name, char path[96], const char *content)
{
    pw_print(path, 96, "%s/%s", server.root, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(content, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static int stop(void **state)
{
    (void)state;
    nats_server_end(&server);
    return 0;
}

/* Lets in at once. */
static void let_in(const char *bus, const pawl_nats *nats)
{
    natsConnection *connection = NULL;
    pawl_why why = { "" };
    struct pw_link *link = open_link(bus, nats);
    pawl_err err = pw_link_get(link, &connection, NULL, &why);
    assert_string_equal(why.text, "");
    assert_int_equal(err, PAWL_OK);
    pw_link_close(link);
}

/* Refused first, let in once the server is configured otherwise. */
static void let_in_later(const pawl_nats *nats, const char *config)
{
    struct pw_link *link = open_link(server.bus, nats);
    refused(link, no_entry);
    reconfigure(config);
    (void)come_up(link, NULL);
    pw_link_close(link);
}

/* --- ways to be let in -------------------------------------------------------------------- */

static void user_and_password(void **state)
{
    (void)state;
    char bus[96] = "";
    nats_server_start(&server, "authorization { user: u, password: s3cret }\n");
    let_in(server.bus, &(pawl_nats){ .user = "u", .password = "s3cret" });
    pw_print(bus, sizeof(bus), "nats://u:s3cret@127.0.0.1:%u", server.port);
    let_in(bus, NULL);
    struct pw_link *link = open_link(server.bus, NULL);
    refused(link, no_entry);
    pw_link_close(link);
    pw_print(bus, sizeof(bus), "nats://u:wr0ng@127.0.0.1:%u", server.port);
    link = open_link(bus, NULL);
    refused(link, no_entry);
    pw_link_close(link);
    let_in_later(&(pawl_nats){ .user = "u", .password = "n3w" },
                 "authorization { user: u, password: n3w }\n");
}

static void token(void **state)
{
    (void)state;
    char bus[96] = "";
    nats_server_start(&server, "authorization { token: s3cret }\n");
    let_in(server.bus, &(pawl_nats){ .token = "s3cret" });
    pw_print(bus, sizeof(bus), "nats://s3cret@127.0.0.1:%u", server.port);
    let_in(bus, NULL);
    let_in_later(&(pawl_nats){ .token = "n3w" }, "authorization { token: n3w }\n");
}

static void nkey(void **state)
{
    (void)state;
    char seed[96] = "";
    char other[96] = "";
    nats_server_start(&server, "authorization { users: [ { nkey: " USER_KEY " } ] }\n");
    write_file("seed", seed, USER_SEED "\n");
    write_file("other", other, "# nk -gen user\n" OTHER_SEED "\r\n");
    let_in(server.bus, &(pawl_nats){ .nkey_seed_file = seed });
    let_in_later(&(pawl_nats){ .nkey_seed_file = other },
                 "authorization { users: [ { nkey: " OTHER_KEY " } ] }\n");
}

#define OPERATOR "operator: \"" OPERATOR_JWT "\"\nresolver: MEMORY\n"
#define WITH_ACCOUNT                                                                               \
    OPERATOR "system_account: " ACCOUNT_KEY "\nresolver_preload: { " ACCOUNT_KEY                   \
             ": \"" ACCOUNT_JWT "\" }\n"
#define CREDS(seed)                                                                                \
    "-----BEGIN NATS USER JWT-----\n" USER_JWT "\n------END NATS USER JWT------\n\n"               \
    "-----BEGIN USER NKEY SEED-----\n" seed "\n------END USER NKEY SEED------\n"

static void credentials(void **state)
{
    (void)state;
    char right[96] = "";
    char wrong[96] = "";
    nats_server_start(&server, WITH_ACCOUNT);
    write_file("right", right, CREDS(USER_SEED));
    write_file("wrong", wrong, CREDS(OTHER_SEED));
    let_in(server.bus, &(pawl_nats){ .creds_file = right });
    struct pw_link *link = open_link(server.bus, &(pawl_nats){ .creds_file = wrong });
    refused(link, no_entry);
    write_file("wrong", wrong, CREDS(USER_SEED)); /* read again at each connect */
    (void)come_up(link, NULL);
    pw_link_close(link);
}

/* --- TLS ---------------------------------------------------------------------------------- */

static void run(const char *command)
{
    assert_int_equal(system(command), 0);
}

/* An authority "ca", and certificates of it: "server" and "client" for 127.0.0.1, "foreign" for
 * another host. */
static void make_certificates(void)
{
    static const char *const names[] = { "server", "client", "foreign" };
    char command[1024] = "";
    pw_print(command, sizeof(command),
             "cd %s && openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes "
             "-days 2 -subj /CN=test-ca -keyout ca.key -out ca.pem 2>openssl.log",
             server.root);
    run(command);
    for (size_t i = 0; i < PW_COUNT(names); i++) {
        pw_print(command, sizeof(command),
                 "cd %s && echo 'subjectAltName=%s' >ext && openssl req -newkey ec -pkeyopt "
                 "ec_paramgen_curve:P-256 -nodes -subj /CN=%s -keyout %s.key -out csr "
                 "2>>openssl.log && openssl x509 -req -in csr -CA ca.pem -CAkey ca.key "
                 "-CAcreateserial -days 2 -extfile ext -out %s.pem 2>>openssl.log",
                 server.root, i < 2 ? "IP:127.0.0.1" : "DNS:elsewhere.example", names[i], names[i],
                 names[i]);
        run(command);
    }
}

static void tls_config(char to[1024], const char *name, const char *more)
{
    pw_print(to, 1024, "tls { cert_file: \"%s/%s.pem\", key_file: \"%s/%s.key\" %s }\n",
             server.root, name, server.root, name, more);
}

static void expect_tls_failure(const char *bus, const pawl_nats *nats)
{
    pawl_why why = { "" };
    natsConnection *connection = NULL;
    struct pw_link *link = open_link(bus, nats);
    assert_int_equal(pw_link_get(link, &connection, NULL, &why), PAWL_E_IO);
    assert_non_null(strstr(why.text, ": TLS: "));
    pw_link_close(link);
}

static void tls(void **state)
{
    (void)state;
    char config[1024] = "";
    char more[256] = "";
    char bus[64] = "";
    char ca[96] = "";
    char cert[96] = "";
    char key[96] = "";
    nats_server_start(&server, "# none yet\n");
    make_certificates();
    pw_print(bus, sizeof(bus), "tls://127.0.0.1:%u", server.port);
    pw_print(ca, sizeof(ca), "%s/ca.pem", server.root);
    pw_print(cert, sizeof(cert), "%s/client.pem", server.root);
    pw_print(key, sizeof(key), "%s/client.key", server.root);
    tls_config(config, "server", "");
    reconfigure(config);
    let_in(bus, &(pawl_nats){ .tls_ca_file = ca });
    let_in(server.bus, &(pawl_nats){ .tls_ca_file = ca }); /* a file turns it on */
    expect_tls_failure(bus, NULL);                         /* not an authority of the system's */
    pw_print(more, sizeof(more), ", ca_file: \"%s\", verify: true", ca);
    tls_config(config, "server", more);
    reconfigure(config);
    let_in(bus, &(pawl_nats){ .tls_ca_file = ca, .tls_cert_file = cert, .tls_key_file = key });
    struct pw_link *link = open_link(bus, &(pawl_nats){ .tls_ca_file = ca });
    natsConnection *connection = NULL;
    assert_int_equal(pw_link_get(link, &connection, NULL, NULL), PAWL_E_IO);
    pw_link_close(link);
    tls_config(config, "foreign", "");
    reconfigure(config);
    expect_tls_failure(bus, &(pawl_nats){ .tls_ca_file = ca });
}

/* A client without TLS is not let in, and one with TLS does not go on without. */
static void tls_on_one_side(void **state)
{
    (void)state;
    char config[1024] = "";
    char bus[64] = "";
    nats_server_start(&server, "# none\n");
    pw_print(bus, sizeof(bus), "tls://u:s3cret@127.0.0.1:%u", server.port);
    struct pw_link *link = open_link(bus, NULL);
    natsConnection *connection = NULL;
    pawl_why why = { "" };
    assert_int_equal(pw_link_get(link, &connection, NULL, &why), PAWL_E_IO);
    assert_null(strstr(why.text, "s3cret"));
    pw_link_close(link);
    make_certificates();
    tls_config(config, "server", "");
    reconfigure(config);
    link = open_link(server.bus, NULL);
    assert_int_equal(pw_link_get(link, &connection, NULL, &why), PAWL_E_IO);
    pw_link_close(link);
}

/* --- coming back -------------------------------------------------------------------------- */

static void comes_back(void **state)
{
    (void)state;
    natsConnection *connection = NULL;
    nats_server_start(&server, NULL);
    struct pw_link *link = open_link(server.bus, NULL);
    uint64_t first = come_up(link, &connection);
    assert_int_equal(pw_link_turn(link), first);
    pokes = 0;
    nats_server_kill(&server);
    go_down(link);
    /* One may be taken while it is away; no more are kept. */
    (void)natsConnection_PublishString(connection, "x", "");
    assert_int_not_equal(natsConnection_PublishString(connection, "x", ""), NATS_OK);
    nats_server_restart(&server);
    uint64_t second = come_up(link, NULL);
    assert_true(second > first);
    assert_true(pokes >= 2);
    pw_link_close(link);
}

static void not_there_at_first(void **state)
{
    (void)state;
    nats_server_start(&server, NULL);
    nats_server_stop(&server);
    struct pw_link *link = open_link(server.bus, NULL);
    refused(link, "No server available for connection");
    nats_server_restart(&server);
    (void)come_up(link, NULL);
    pw_link_close(link);
}

static void any_server_of_the_list(void **state)
{
    (void)state;
    char bus[128] = "";
    nats_server_start(&server, NULL);
    pw_print(bus, sizeof(bus), "nats://127.0.0.1:1,%s", server.bus);
    let_in(bus, NULL);
}

/* The library gives up after two refusals in a row. */
static void given_up_is_made_anew(void **state)
{
    (void)state;
    static const char right[] = "authorization { user: u, password: s3cret }\n";
    nats_server_start(&server, right);
    natsConnection *connection = NULL;
    struct pw_link *link = open_link(server.bus, &(pawl_nats){ .user = "u", .password = "s3cret" });
    uint64_t first = come_up(link, &connection);
    reconfigure("authorization { user: u, password: other }\n");
    for (int64_t until_ms = now_ms() + WAIT_MS_MAX; !natsConnection_IsClosed(connection);)
        wait_a_moment(until_ms);
    pawl_why why = { "" };
    for (int64_t until_ms = now_ms() + WAIT_MS_MAX; strstr(why.text, no_entry) == NULL;) {
        wait_a_moment(until_ms);
        assert_int_equal(pw_link_get(link, &connection, NULL, &why), PAWL_E_IO);
        assert_null(strstr(why.text, "s3cret"));
    }
    reconfigure(right);
    assert_true(come_up(link, NULL) > first);
    pw_link_close(link);
}

/* Only pings tell; the system would wait for many minutes. */
static void dead_peer_is_noticed(void **state)
{
    (void)state;
    nats_server_start(&server, NULL);
    struct pw_link *link = open_link(server.bus, NULL);
    uint64_t first = come_up(link, NULL);
    nats_server_freeze(&server);
    go_down(link);
    nats_server_thaw(&server);
    assert_true(come_up(link, NULL) > first);
    pw_link_close(link);
}

static void halted(void **state)
{
    (void)state;
    natsConnection *connection = NULL;
    nats_server_start(&server, NULL);
    struct pw_link *link = open_link(server.bus, NULL);
    (void)come_up(link, NULL);
    pw_link_halt(link);
    assert_int_equal(pw_link_get(link, &connection, NULL, NULL), PAWL_E_IO);
    assert_false(pw_link_is_up(link));
    pw_link_halt(link);
    pw_link_close(link);
    pw_link_close(NULL);
}

/* Closing while the library waits between two tries. */
static void closed_while_away(void **state)
{
    (void)state;
    nats_server_start(&server, NULL);
    struct pw_link *link = open_link(server.bus, NULL);
    (void)come_up(link, NULL);
    nats_server_kill(&server);
    go_down(link);
    int64_t before_ms = now_ms();
    pw_link_close(link);
    assert_true(now_ms() - before_ms < 8000);
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
#define CASE(name) cmocka_unit_test_teardown(name, stop)
    const struct CMUnitTest tests[] = {
        CASE(user_and_password),
        CASE(token),
        CASE(nkey),
        CASE(credentials),
        CASE(tls),
        CASE(tls_on_one_side),
        CASE(comes_back),
        CASE(not_there_at_first),
        CASE(any_server_of_the_list),
        CASE(given_up_is_made_anew),
        CASE(dead_peer_is_noticed),
        CASE(halted),
        CASE(closed_while_away),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
