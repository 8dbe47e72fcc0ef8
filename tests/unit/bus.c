/* SPDX-License-Identifier: Apache-2.0
 *
 * The bus and the login: what is taken, what is refused, and that no secret is in what is said. */
#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "jetstream/bus.h"
#include "jetstream/link.h"
#include "jetstream/nkey.h"
#include "support/logins.h"
#include "support/test.h"

static void taken(void **state)
{
    (void)state;
    static const struct {
        const char *bus;
        const char *printed;
        int servers;
        bool tls;
    } cases[] = {
        { "nats://a", "nats://a", 1, false },
        { "nats://a:4222", "nats://a:4222", 1, false },
        { "tls://a.example:65535", "tls://a.example:65535", 1, true },
        { "nats://[::1]:4222", "nats://[::1]:4222", 1, false },
        { "nats://[::1]", "nats://[::1]", 1, false },
        { "nats://u:secret@a", "nats://a", 1, false },
        { "nats://secret@a:1", "nats://a:1", 1, false },
        { "nats://u:sec@ret@a:1,tls://b,nats://u:secret@c:3", "nats://a:1,tls://b,nats://c:3", 3,
          true },
    };
    for (size_t i = 0; i < PW_COUNT(cases); i++) {
        int servers = 0;
        bool tls = false;
        char printed[PW_BUS_MAX + 1] = "";
        pawl_why why = { "" };
        assert_int_equal(pw_bus_check(cases[i].bus, &servers, &tls, &why), PAWL_OK);
        assert_int_equal(servers, cases[i].servers);
        assert_int_equal(tls, cases[i].tls);
        pw_bus_print(cases[i].bus, printed, sizeof(printed));
        assert_string_equal(printed, cases[i].printed);
    }
}

static void refused(void **state)
{
    (void)state;
    static const struct {
        const char *bus;
        const char *error;
    } cases[] = {
        { "", "server 1 begins neither with nats:// nor tls://" },
        { "secret", "server 1 begins neither with nats:// nor tls://" },
        { "http://u:secret@a", "server 1 begins neither with nats:// nor tls://" },
        { "NATS://a", "server 1 begins neither with nats:// nor tls://" },
        { "nats://a,", "server 2 begins neither with nats:// nor tls://" },
        { "nats://u:sec,ret@a", "server 1: its port is not a number from 1 to 65535" },
        { "nats://u:1,secret@a", "server 2 begins neither with nats:// nor tls://" },
        { "nats://", "server 1: it has no host" },
        { "nats://u:secret@", "server 1: it has no host" },
        { "nats://:4222", "server 1: it has no host" },
        { "nats://a:", "server 1: its port is not a number from 1 to 65535" },
        { "nats://a:0", "server 1: its port is not a number from 1 to 65535" },
        { "nats://a:65536", "server 1: its port is not a number from 1 to 65535" },
        { "nats://a:99999999999999999999", "server 1: its port is not a number from 1 to 65535" },
        { "nats://a b", "server 1: its host has a byte that no host has" },
        { "nats://u:secret@a/path", "server 1: its host has a byte that no host has" },
        { "nats://u:sec/ret@a,nats://u:secret@b/",
          "server 2: its host has a byte that no host has" },
    };
    for (size_t i = 0; i < PW_COUNT(cases); i++) {
        char printed[PW_BUS_MAX + 1] = "";
        pawl_why why = { "" };
        assert_int_equal(pw_bus_check(cases[i].bus, NULL, NULL, &why), PAWL_E_CONFIG);
        assert_string_equal(why.text, cases[i].error);
        pw_bus_print(cases[i].bus, printed, sizeof(printed));
        assert_string_equal(printed, "(malformed)");
    }
}

static void bounds(void **state)
{
    (void)state;
    char bus[PW_BUS_MAX + 2] = "";
    pawl_why why = { "" };
    for (int i = 0; i < PW_BUS_SERVERS_MAX + 1; i++)
        pw_print(bus + strlen(bus), sizeof(bus) - strlen(bus), "%snats://a", i > 0 ? "," : "");
    assert_int_equal(pw_bus_check(bus, NULL, NULL, &why), PAWL_E_CONFIG);
    assert_string_equal(why.text, "more than 16 servers");
    *strrchr(bus, ',') = '\0';
    assert_int_equal(pw_bus_check(bus, NULL, NULL, &why), PAWL_OK);
    memset(bus, 'a', sizeof(bus) - 1);
    memcpy(bus, "nats://", 7);
    assert_int_equal(pw_bus_check(bus, NULL, NULL, &why), PAWL_E_CONFIG);
    bus[PW_BUS_MAX] = '\0';
    assert_int_equal(pw_bus_check(bus, NULL, NULL, &why), PAWL_OK);
    pw_bus_print("local:", bus, sizeof(bus));
    assert_string_equal(bus, "local:");
}

static void nkeys(void **state)
{
    (void)state;
    char key[PW_NKEY_PUBLIC_SIZE] = "";
    char seed[PW_NKEY_SEED_SIZE + 1] = "";
    assert_true(pw_nkey_public(USER_SEED, key));
    assert_string_equal(key, USER_KEY);
    assert_true(pw_nkey_public(OTHER_SEED, key));
    assert_string_equal(key, OTHER_KEY);
    for (size_t i = 0; i < PW_NKEY_SEED_SIZE - 1; i++) { /* one letter wrong */
        pw_print(seed, sizeof(seed), "%s", USER_SEED);
        seed[i] = seed[i] == 'A' ? 'B' : 'A';
        assert_false(pw_nkey_public(seed, key));
    }
    pw_print(seed, sizeof(seed), "%.57s", USER_SEED);
    assert_false(pw_nkey_public(seed, key));
    pw_print(seed, sizeof(seed), "%sA", USER_SEED);
    assert_false(pw_nkey_public(seed, key));
    assert_false(pw_nkey_public("", key));
}

/* A file with this content; the caller unlinks it. */
static void write_file(char path[64], const char *content)
{
    pw_print(path, 64, "%s", "/tmp/pawl-bus.XXXXXX");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, content, strlen(content)), (ssize_t)strlen(content));
    assert_int_equal(close(fd), 0);
}

static void open_refused(const char *bus, const pawl_nats *nats, const char *error)
{
    struct pw_link *link = NULL;
    pawl_why why = { "" };
    const struct pw_link_options options = { .nats = nats, .bus = bus, .name = "test" };
    assert_int_equal(pw_link_open(&link, &options, &why), PAWL_E_CONFIG);
    assert_string_equal(why.text, error);
    assert_null(link);
}

static void wrong_logins(void **state)
{
    (void)state;
    static const char bus[] = "nats://127.0.0.1:1";
    static const char none[] = "/nonexistent";
    open_refused("local:", NULL, "bus: server 1 begins neither with nats:// nor tls://");
    open_refused(bus, &(pawl_nats){ .user = "u" }, "NATS: a user and a password belong together");
    open_refused(bus, &(pawl_nats){ .password = "secret" },
                 "NATS: a user and a password belong together");
    open_refused(bus, &(pawl_nats){ .user = "u", .password = "secret", .token = "secret" },
                 "NATS: more than one of user, token, NKey and credentials is given");
    open_refused(bus, &(pawl_nats){ .tls_cert_file = none },
                 "NATS: a TLS certificate and its key belong together");
    open_refused(bus, &(pawl_nats){ .nkey_seed_file = none },
                 "NATS: NKey /nonexistent: No such file or directory");
    open_refused(bus, &(pawl_nats){ .creds_file = none },
                 "NATS: credentials /nonexistent: No such file or directory");
    open_refused(bus, &(pawl_nats){ .tls_ca_file = none },
                 "NATS: TLS CA /nonexistent: No such file or directory");
    open_refused(bus, &(pawl_nats){ .tls_cert_file = none, .tls_key_file = none },
                 "NATS: TLS certificate /nonexistent: No such file or directory");
}

static void wrong_files(void **state)
{
    (void)state;
    static const char bus[] = "nats://127.0.0.1:1";
    char path[64] = "";
    char error[256] = "";
    write_file(path, "secret\nSUACISYXVEHHF3IFFUEV4KEUGMHITXLIW6HMXBX75M36KXBFAM7QBOO56B\n");
    pw_print(error, sizeof(error), "NATS: NKey %s: its seed is not one of a user", path);
    open_refused(bus, &(pawl_nats){ .nkey_seed_file = path }, error);
    pw_print(error, sizeof(error), "NATS: credentials %s: no user's JWT in it", path);
    open_refused(bus, &(pawl_nats){ .creds_file = path }, error);
    pw_print(error, sizeof(error), "NATS: TLS CA %s: no certificate in PEM", path);
    open_refused(bus, &(pawl_nats){ .tls_ca_file = path }, error);
    unlink(path);
    write_file(path, "secret\n");
    pw_print(error, sizeof(error), "NATS: NKey %s: has no seed of a user (SU...)", path);
    open_refused(bus, &(pawl_nats){ .nkey_seed_file = path }, error);
    pw_print(error, sizeof(error), "NATS: TLS: %s is no certificate in PEM, or %s not its key",
             path, path);
    open_refused(bus, &(pawl_nats){ .tls_cert_file = path, .tls_key_file = path }, error);
    unlink(path);
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
    if (nats_CloseAndWait(5000) != NATS_OK)
        return -1;
    return leaks_end(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(taken), cmocka_unit_test(refused),      cmocka_unit_test(bounds),
        cmocka_unit_test(nkeys), cmocka_unit_test(wrong_logins), cmocka_unit_test(wrong_files),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
