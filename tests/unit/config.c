/* SPDX-License-Identifier: Apache-2.0
 *
 * Settings: three readers, their order, and errors that say where. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/config.h"
#include "base/base.h"
#include "support/test.h"

static char *nothing[] = { NULL };

/* A file of settings with this content; the caller unlinks it. */
static void write_file(char path[64], const char *content, size_t size)
{
    pw_print(path, 64, "%s", "/tmp/pawl-config.XXXXXX");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, content, size), (ssize_t)size);
    assert_int_equal(close(fd), 0);
}

static struct pw_flag flag(const char *key, const char *value)
{
    size_t setting = pw_config_find(key, strlen(key));
    assert_true(setting < pw_settings_count);
    return (struct pw_flag){ setting, value };
}

static void check_value(const struct pw_config *config, const char *key, const char *value,
                        const char *origin)
{
    char text[PW_CONFIG_PATH_MAX + 1];
    char from[PW_CONFIG_PATH_MAX + 16];
    size_t setting = pw_config_find(key, strlen(key));
    pw_config_print(config, setting, text, sizeof(text));
    assert_string_equal(text, value);
    pw_config_print_origin(config, setting, from, sizeof(from));
    assert_string_equal(from, origin);
}

static void defaults(void **state)
{
    (void)state;
    struct pw_config config;
    assert_int_equal(pw_config_load(&config, NULL, 0, nothing, NULL), PAWL_OK);
    check_value(&config, "dir", "pawl-data", "default");
    check_value(&config, "bus", "local:", "default");
    check_value(&config, "namespace", "main", "default");
    check_value(&config, "shards", "", "default");
    check_value(&config, "sync", "commit", "default");
    check_value(&config, "map-size", "", "default");
    check_value(&config, "readers-max", "1024", "default");
    check_value(&config, "stop-ms", "10000", "default");
    check_value(&config, "log-level", "info", "default");
    check_value(&config, "json", "false", "default");
}

static void later_wins(void **state)
{
    (void)state;
    static const char content[] = "; a comment\n# another\nshards = 2\nsync=interval:20\nstop-ms = "
                                  "500 ; inline\nmap-size = 3G\n";
    char path[64];
    char origin[80];
    struct pw_config config;
    pawl_why why = { "" };
    write_file(path, content, strlen(content));
    char variable[128];
    pw_print(variable, sizeof(variable), "PAWL_CONFIG=%s", path);
    char shards[] = "PAWL_SHARDS=3";
    char stop[] = "PAWL_STOP_MS=600";
    char seed[] = "PAWL_SEED=whatever tests want";
    char crash[] = "PAWL_CRASH=7";
    char other[] = "PAWLOW=x";
    char *environment[] = { variable, shards, stop, seed, crash, other, NULL };
    const struct pw_flag flags[] = { flag("shards", "4"), flag("shards", "5"),
                                     flag("json", "true") };
    assert_int_equal(pw_config_load(&config, flags, 3, environment, &why), PAWL_OK);
    check_value(&config, "shards", "5", "--shards");
    check_value(&config, "stop-ms", "600", "PAWL_STOP_MS");
    check_value(&config, "json", "true", "--json");
    pw_print(origin, sizeof(origin), "%s:4", path);
    check_value(&config, "sync", "interval:20", origin);
    pw_print(origin, sizeof(origin), "%s:6", path);
    check_value(&config, "map-size", "3G", origin);
    assert_true(config.map_size == UINT64_C(3) << 30);
    unlink(path);
}

/* The error of a file with this content, without the file's name. */
static void check_file_error(const char *content, size_t size, const char *error)
{
    char path[64];
    struct pw_config config;
    pawl_why why = { "" };
    write_file(path, content, size);
    pw_config_init(&config);
    assert_int_equal(pw_config_read_file(&config, path, &why), PAWL_E_CONFIG);
    assert_memory_equal(why.text, path, strlen(path));
    assert_string_equal(why.text + strlen(path), error);
    unlink(path);
}

static void files_name_the_line(void **state)
{
    (void)state;
    static const struct {
        const char *content;
        const char *error;
    } cases[] = {
        { "shards = 2\n\nshard = 2\n", ":3: unknown key 'shard'" },
        { "config = x\n", ":1: unknown key 'config'" },
        { "# x\n[pawl]\nshards = 2\n", ":2: unknown section: there are none" },
        { "[pawl]\n", ":1: unknown section: there are none" },
        { "shards = 2\nshards = 2\n", ":2: shards: given twice" },
        { "shards = 0\n", ":1: shards: '0' is not a whole number from 1 to 64" },
        { "shards = -1\n", ":1: shards: '-1' is not a whole number from 1 to 64" },
        { "shards = 65", ":1: shards: '65' is not a whole number from 1 to 64" },
        { "shards = 18446744073709551616\n",
          ":1: shards: '18446744073709551616' is not a whole number from 1 to 64" },
        { "shards = two\n", ":1: shards: 'two' is not a whole number from 1 to 64" },
        { "shards =\n", ":1: shards: '' is not a whole number from 1 to 64" },
        { "json = yes\n", ":1: json: 'yes' is not true or false" },
        { "dir =\n", ":1: dir: a text of 0 bytes; allowed are 1 to 1023" },
        { "shards = 2\nnonsense\n", ":2: not a line of the form key = value" },
        { "dir = a\n  b\n", ":2: a line must not begin with a blank" },
        { "namespace = a.b\n",
          ":1: namespace: namespace: byte 0x2e at 1; allowed are A-Z a-z 0-9 _ -" },
        { "bus = nats:\n", ":1: bus: neither local: nor servers: server 1 begins neither with "
                           "nats:// nor tls://" },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        check_file_error(cases[i].content, strlen(cases[i].content), cases[i].error);
    check_file_error("dir = a\0b\n", 10, ":1: a byte is 0");
}

static void long_lines(void **state)
{
    (void)state;
    char content[300];
    char path[64];
    struct pw_config config;
    memset(content, 'x', sizeof(content));
    pw_print(content, sizeof(content), "dir = ");
    content[6] = 'x';
    content[197] = '\n'; /* 198 bytes with it: the last that fits */
    write_file(path, content, 198);
    pw_config_init(&config);
    assert_int_equal(pw_config_read_file(&config, path, NULL), PAWL_OK);
    assert_int_equal(strlen(config.dir), 191);
    unlink(path);
    content[197] = 'x';
    content[250] = '\n';
    check_file_error(content, 251, ":1: the line is too long: at most 198 bytes");
}

static void unreadable_files(void **state)
{
    (void)state;
    struct pw_config config;
    pawl_why why = { "" };
    pw_config_init(&config);
    assert_int_equal(pw_config_read_file(&config, "/nonexistent/pawl.conf", &why), PAWL_E_CONFIG);
    assert_string_equal(why.text, "/nonexistent/pawl.conf: No such file or directory");
    assert_int_equal(pw_config_read_file(&config, "/", &why), PAWL_E_CONFIG);
    assert_string_equal(why.text, "/: Is a directory");
}

static void environment_errors(void **state)
{
    (void)state;
    static const struct {
        char variable[64];
        const char *error;
    } cases[] = {
        { "PAWL_SHARD=2", "unknown variable PAWL_SHARD" },
        { "PAWL_=2", "unknown variable PAWL_" },
        { "PAWL_shards=2", "unknown variable PAWL_shards" },
        { "PAWL_STOP_MS=0", "PAWL_STOP_MS: '0' is not a whole number from 1 to 3600000" },
        { "PAWL_STOP_MS=", "PAWL_STOP_MS: '' is not a whole number from 1 to 3600000" },
        { "PAWL_SOCKET=a\nb", "PAWL_SOCKET: byte 2 is a control character" },
        { "PAWL_CONFIG=/nonexistent", "/nonexistent: No such file or directory" },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char variable[64];
        char *environment[] = { variable, NULL };
        struct pw_config config;
        pawl_why why = { "" };
        memcpy(variable, cases[i].variable, sizeof(variable));
        assert_int_equal(pw_config_load(&config, NULL, 0, environment, &why), PAWL_E_CONFIG);
        assert_string_equal(why.text, cases[i].error);
    }
}

/* Ends of ranges, inside and outside. */
static void ranges(void **state)
{
    (void)state;
    static const struct {
        const char *key;
        const char *value;
        const char *error; /* NULL: right */
    } cases[] = {
        { "shards", "1", NULL },
        { "shards", "64", NULL },
        { "shards", " 1", "' 1' is not a whole number from 1 to 64" },
        { "shards", "1 ", "'1 ' is not a whole number from 1 to 64" },
        { "shards", "0x2", "'0x2' is not a whole number from 1 to 64" },
        { "stop-ms", "3600000", NULL },
        { "stop-ms", "3600001", "'3600001' is not a whole number from 1 to 3600000" },
        { "readers-max", "15", "'15' is not a whole number from 16 to 100000" },
        { "map-size", "1M", NULL },
        { "map-size", "1048576", NULL },
        { "map-size", "64T", NULL },
        { "map-size", "65T", "'65T' is not a size from 1M to 64T" },
        { "map-size", "1023K", "'1023K' is not a size from 1M to 64T" },
        { "map-size", "18446744073709551615T",
          "'18446744073709551615T' is not a size from 1M to 64T" },
        { "map-size", "1MB", "'1MB' is not a size from 1M to 64T" },
        { "map-size", "M", "'M' is not a size from 1M to 64T" },
        { "sync", "interval:1", NULL },
        { "sync", "interval:60000", NULL },
        { "sync", "interval:60001",
          "'interval:60001' is not commit, nor interval:<ms> of 1 to 60000" },
        { "sync", "interval:0", "'interval:0' is not commit, nor interval:<ms> of 1 to 60000" },
        { "sync", "interval:", "'interval:' is not commit, nor interval:<ms> of 1 to 60000" },
        { "sync", "Commit", "'Commit' is not commit, nor interval:<ms> of 1 to 60000" },
        { "log-level", "debug,relay=warn", NULL },
        { "log-level", "relay=warn", NULL },
        { "log-level", "debug,",
          "'' is not error, warn, info or debug, nor <message id>=<level> (at most 16)" },
        { "log-level", "=warn",
          "'=warn' is not error, warn, info or debug, nor <message id>=<level> (at most 16)" },
        { "log-level", "relay=loud",
          "'relay=loud' is not error, warn, info or debug, nor <message id>=<level> (at most 16)" },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct pw_config config;
        pawl_why why = { "" };
        const struct pw_origin origin = { PW_FROM_FLAG, 0 };
        struct pw_flag set = flag(cases[i].key, cases[i].value);
        pw_config_init(&config);
        pawl_err err = pw_config_set(&config, set.setting, set.value, origin, &why);
        assert_int_equal(err, cases[i].error == NULL ? PAWL_OK : PAWL_E_CONFIG);
        assert_string_equal(why.text, cases[i].error == NULL ? "" : cases[i].error);
    }
}

static void flags_name_themselves(void **state)
{
    (void)state;
    struct pw_config config;
    pawl_why why = { "" };
    const struct pw_flag flags[] = { flag("stop-ms", "18446744073709551616") };
    assert_int_equal(pw_config_load(&config, flags, 1, nothing, &why), PAWL_E_CONFIG);
    assert_string_equal(
        why.text, "--stop-ms: '18446744073709551616' is not a whole number from 1 to 3600000");
}

static void levels(void **state)
{
    (void)state;
    struct pw_levels parsed;
    assert_int_equal(pw_parse_levels("warn,relay=debug,relay.send=error", &parsed, NULL), PAWL_OK);
    assert_int_equal(pw_level_of(&parsed, "writer.commit"), PAWL_WARN);
    assert_int_equal(pw_level_of(&parsed, "relay.turn"), PAWL_DEBUG);
    assert_int_equal(pw_level_of(&parsed, "relay"), PAWL_DEBUG);
    assert_int_equal(pw_level_of(&parsed, "relay.send"), PAWL_ERROR);
    assert_int_equal(pw_level_of(&parsed, "relay.send.again"), PAWL_ERROR);
    assert_int_equal(pw_level_of(&parsed, "relays.turn"), PAWL_WARN);
    assert_int_equal(pw_parse_levels("relay=debug", &parsed, NULL), PAWL_OK);
    assert_int_equal(pw_level_of(&parsed, "writer.commit"), PAWL_INFO);
}

static void socket_paths(void **state)
{
    (void)state;
    struct pw_config config;
    char path[PW_SOCKET_PATH_MAX + 1];
    pawl_why why = { "" };
    pw_config_init(&config);
    assert_int_equal(pw_config_socket(&config, path, sizeof(path), &why), PAWL_OK);
    assert_string_equal(path, "pawl-data/pawl.sock");
    memset(config.dir, 'd', 97); /* "/pawl.sock" takes 10 */
    config.dir[97] = '\0';
    assert_int_equal(pw_config_socket(&config, path, sizeof(path), &why), PAWL_OK);
    assert_int_equal(strlen(path), 107);
    config.dir[97] = 'd';
    config.dir[98] = '\0';
    assert_int_equal(pw_config_socket(&config, path, sizeof(path), &why), PAWL_E_CONFIG);
    assert_string_equal(
        why.text,
        "the socket's path has 108 bytes, the system takes 107; give a shorter one by --socket");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults),
        cmocka_unit_test(later_wins),
        cmocka_unit_test(files_name_the_line),
        cmocka_unit_test(long_lines),
        cmocka_unit_test(unreadable_files),
        cmocka_unit_test(environment_errors),
        cmocka_unit_test(ranges),
        cmocka_unit_test(levels),
        cmocka_unit_test(socket_paths),
        cmocka_unit_test(flags_name_themselves),
    };
    return cmocka_run_group_tests(tests, leaks_begin, leaks_end);
}
