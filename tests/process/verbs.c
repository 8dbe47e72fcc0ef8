/* SPDX-License-Identifier: Apache-2.0
 *
 * Every verb of the tool, against the example `order` and its daemon: what it prints, and its exit
 * status. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "process/tool.h"
#include "base/base.h"
#include "core/tables.h"
#include "lmdb/store.h"
#include "support/test.h"

static struct result r;

struct where {
    struct place *place;
    const char *id;
    const char *state;
};

static int is_in_state(void *arg)
{
    const struct where *where = arg;
    char state[64];
    pw_print(state, sizeof(state), "\"state\":\"%s\"", where->state);
    TOOL(where->place, &r, NULL, "show", "order", where->id, "--json");
    return strstr(r.out, state) != NULL;
}

static void wait_for_state(struct place *place, const char *id, const char *state)
{
    struct where where = { place, id, state };
    wait_until(is_in_state, &where);
}

/* --- no daemon, no store ------------------------------------------------------------------ */

static void usage(void **state)
{
    struct place *p = *state;
    TOOL(p, &r, NULL, "--nonsense");
    EXPECT(&r, 2, "",
           "order: unrecognized option '--nonsense'\nTry `order --help' or `order --usage' for "
           "more information.\n");
    TOOL(p, &r, NULL, "redo");
    EXPECT(
        &r, 2, "",
        "order: no such verb: redo\nTry `order --help' or `order --usage' for more information.\n");
    TOOL(p, &r, NULL, "--json");
    EXPECT(
        &r, 2, "",
        "order: a verb is missing\nTry `order --help' or `order --usage' for more information.\n");
    TOOL(p, &r, NULL, "show", "order");
    EXPECT(&r, 2, "",
           "order show: wrong number of words\nTry `order show --help' or `order show --usage' for "
           "more information.\n");
    TOOL(p, &r, NULL, "list", "--limit", "0");
    EXPECT(&r, 2, "",
           "order list: --limit: '0' is not a whole number from 1 to V\nTry `order list --help' or "
           "`order list --usage' for more information.\n");
    TOOL(p, &r, NULL, "--shards", "65", "status");
    EXPECT(&r, 2, "", "order: --shards: '65' is not a whole number from 1 to 64\n");
    TOOL(p, &r, NULL, "create", "--data", "x");
    EXPECT(&r, 2, "",
           "order: create: options need words; without words, standard input says all\n");
    TOOL(p, &r, NULL, "--version");
    EXPECT(&r, 0, "pawl 0.1.0\n", "");
    TOOL(p, &r, NULL, "--help");
    assert_int_equal(r.status, 0);
    assert_non_null(strstr(r.out, "  4  try again: no daemon, busy, full, stopping\n"));
    TOOL(p, &r, NULL, "send", "--help");
    assert_int_equal(r.status, 0);
    assert_memory_equal(r.out, "Usage: order send [OPTION...] [MACHINE ID EVENT]\n", 49);
}

static void nothing_there(void **state)
{
    struct place *p = *state;
    char text[256];
    static const char *const reads[] = { "status", "list", "verify" };
    for (size_t i = 0; i < 3; i++) {
        TOOL(p, &r, NULL, reads[i]);
        pw_print(text, sizeof(text),
                 "order: %s: open store: %s: No such file or directory (try again)\n", reads[i],
                 p->dir);
        EXPECT(&r, 4, "", text);
    }
    TOOL(p, &r, NULL, "create", "order", "1");
    pw_print(text, sizeof(text), "order: create order/1: no daemon answers on %s (try again)\n",
             p->sock);
    EXPECT(&r, 4, "", text);
    TOOL(p, &r, "{\"machine\":\"order\",\"id\":\"1\"}\n", "create");
    pw_print(text, sizeof(text), "order: create: no daemon answers on %s (try again)\n", p->sock);
    EXPECT(&r, 4, "", text);
}

static void check_and_graph(void **state)
{
    struct place *p = *state;
    TOOL(p, &r, NULL, "check");
    EXPECT(&r, 0, "order: 8 states, 6 events, 12 edges\n", "");
    TOOL(p, &r, NULL, "check", "--json");
    EXPECT(&r, 0, "{\"machine\":\"order\",\"states\":8,\"events\":6,\"edges\":12}\n", "");
    TOOL(p, &r, NULL, "graph", "nothing");
    EXPECT(&r, 1, "", "order: graph nothing: this program has no such machine\n");
    TOOL(p, &r, NULL, "graph", "order");
    EXPECT(
        &r, 0,
        "digraph \"order\" {\n"
        "    rankdir=LR;\n"
        "    start [shape=point, label=\"\"];\n"
        "    \"cart\" [shape=box, style=rounded];\n"
        "    start -> \"cart\";\n"
        "    \"charging\" [shape=box, style=\"rounded,filled\", label=\"charging\\n(works)\"];\n"
        "    \"paid\" [shape=box, style=rounded];\n"
        "    \"shipped\" [shape=doublecircle];\n"
        "    \"cancelled\" [shape=box, style=rounded];\n"
        "    \"closed\" [shape=doublecircle];\n"
        "    \"refunding\" [shape=box, style=\"rounded,filled\", label=\"refunding\\n(works)\"];\n"
        "    \"refunded\" [shape=doublecircle];\n"
        "    \"cart\" -> \"charging\" [label=\"submit\"];\n"
        "    \"cart\" -> \"closed\" [label=\"cancel\"];\n"
        "    \"cart\" -> \"closed\" [label=\"timeout 2592000000 ms\"];\n"
        "    \"charging\" -> \"paid\" [label=\"charged\"];\n"
        "    \"charging\" -> \"cart\" [label=\"declined\"];\n"
        "    \"charging\" -> \"cart\" [label=\"failed\"];\n"
        "    \"charging\" -> \"cancelled\" [label=\"cancel\"];\n"
        "    \"cancelled\" -> \"closed\" [label=\"timeout 3600000 ms\"];\n"
        "    \"cancelled\" -> \"refunding\" [label=\"charged\", style=dashed];\n"
        "    \"paid\" -> \"shipped\" [label=\"ship\"];\n"
        "    \"paid\" -> \"refunding\" [label=\"cancel\"];\n"
        "    \"refunding\" -> \"refunded\" [label=\"returned\"];\n"
        "}\n",
        "");
}

static void config(void **state)
{
    struct place *p = *state;
    static char expected[65536];
    FILE *file = fopen(CONF, "r");
    assert_non_null(file);
    size_t size = fread(expected, 1, sizeof(expected) - 1, file);
    expected[size] = '\0';
    (void)fclose(file);
    TOOL(p, &r, NULL, "config", "--sample");
    EXPECT(&r, 0, expected, "");
    TOOL(p, &r, NULL, "--config", CONF, "config", "--json", "--stop-ms=77");
    assert_int_equal(r.status, 0);
    assert_non_null(strstr(r.out, "{\"key\":\"stop-ms\",\"value\":\"77\",\"origin\":\"--stop-ms\","
                                  "\"default\":\"10000\",\"help\":"));
    TOOL(p, &r, NULL, "--config", "/nonexistent/x", "config");
    EXPECT(&r, 2, "", "order: /nonexistent/x: No such file or directory\n");
}

/* --- with a daemon ------------------------------------------------------------------------ */

static void one_entity(void **state)
{
    struct place *p = *state;
    DAEMON(p, NULL);
    TOOL(p, &r, NULL, "create", "order", "42", "--data", "19.90", "--key", "shop", "--message-id",
         "m1");
    EXPECT(&r, 0, "order/42: cart, version V\n", "");
    TOOL(p, &r, NULL, "create", "order", "42", "--message-id", "m1");
    EXPECT(&r, 0, "order/42: cart, version V (repeated)\n", "");
    TOOL(p, &r, NULL, "create", "order", "42");
    EXPECT(&r, 3, "", "order: create order/42: order/42 exists, in 'cart'\n");
    TOOL(p, &r, NULL, "create", "order", "42", "--json");
    EXPECT(&r, 3,
           "{\"machine\":\"order\",\"id\":\"42\",\"ok\":false,\"error\":\"E_EXISTS\",\"class\":"
           "\"conflict\","
           "\"text\":\"order/42 exists, in 'cart'\"}\n",
           "");
    TOOL(p, &r, NULL, "send", "order", "42", "ship");
    EXPECT(&r, 3, "", "order: send order/42: order/42 is in 'cart', which takes: submit, cancel\n");
    TOOL(p, &r, NULL, "send", "order", "42", "jump");
    EXPECT(&r, 1, "", "order: send order/42: machine 'order' has no event 'jump'\n");
    TOOL(p, &r, NULL, "create", "parcel", "1");
    EXPECT(&r, 1, "", "order: create parcel/1: no machine 'parcel'\n");
    TOOL(p, &r, NULL, "send", "order", "7", "submit");
    assert_int_equal(r.status, 3);
    TOOL(p, &r, NULL, "send", "order", "42", "submit", "--version", "1");
    assert_int_equal(r.status, 3);
    TOOL(p, &r, NULL, "send", "order", "42", "submit", "--json");
    EXPECT(&r, 0,
           "{\"machine\":\"order\",\"id\":\"42\",\"ok\":true,\"state\":\"charging\",\"version\":"
           "\"V\",\"epoch\":\"V\",\"repeated\":false}\n",
           "");
    wait_for_state(p, "42", "paid");
    TOOL(p, &r, NULL, "list", "--state", "paid");
    EXPECT(&r, 0,
           "MACHINE ID STATE ATTEMPT ENTERED                  DUE KEY  FLAGS ERROR\n"
           "order   42 paid  0       TIME -   shop       \n",
           "");
    TOOL(p, &r, NULL, "retry", "order", "42");
    assert_int_equal(r.status, 3);
    TOOL(p, &r, NULL, "delete", "order", "42");
    assert_int_equal(r.status, 0);
    TOOL(p, &r, NULL, "show", "order", "42");
    EXPECT(&r, 3, "", "order: show order/42: no such entity\n");
    TOOL(p, &r, NULL, "delete", "order", "42");
    assert_int_equal(r.status, 3);
    assert_int_equal(daemon_end(p, SIGTERM), 0);
}

static void data_of_all_kinds(void **state)
{
    struct place *p = *state;
    char path[96];
    char error[192];
    static char large[256 * 1024 + 1];
    pw_print(path, sizeof(path), "%s/data", p->root);
    DAEMON(p, NULL);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    (void)fwrite("a\0\xff", 1, 3, file);
    (void)fclose(file);
    TOOL(p, &r, NULL, "create", "order", "binary", "--data-file", path);
    assert_int_equal(r.status, 0);
    TOOL(p, &r, NULL, "show", "order", "binary", "--json");
    assert_non_null(strstr(r.out, "\"data_base64\":\"YQD/\""));
    memset(large, '"', sizeof(large));
    file = fopen(path, "w");
    (void)fwrite(large, 1, sizeof(large) - 1, file);
    (void)fclose(file);
    TOOL(p, &r, NULL, "create", "order", "large", "--data-file", path);
    assert_int_equal(r.status, 0);
    TOOL(p, &r, NULL, "list", "--json");
    assert_non_null(strstr(r.out, "\"id\":\"large\""));
    assert_non_null(strstr(r.out, "\"size\":262144"));
    file = fopen(path, "w");
    (void)fwrite(large, 1, sizeof(large), file);
    (void)fclose(file);
    TOOL(p, &r, NULL, "create", "order", "larger", "--data-file", path);
    pw_print(error, sizeof(error), "order: create order/larger: %s has more than 262144 bytes\n",
             path);
    EXPECT(&r, 1, "", error);
    TOOL(p, &r, NULL, "create", "order", "\x1b[31m");
    EXPECT(&r, 1, "", "order: create order/?[31m: id: control character 0x1b at 0\n");
    TOOL(p, &r, NULL, "create", "order", "\xff");
    EXPECT(&r, 1, "", "order: create order/\xff: an argument is not UTF-8\n");
}

static void holds(void **state)
{
    struct place *p = *state;
    DAEMON(p, NULL);
    TOOL(p, &r, NULL, "hold", "order", "--state", "charging");
    EXPECT(&r, 0, "order: done\n", "");
    TOOL(p, &r, NULL, "hold", "order", "--state", "nowhere");
    EXPECT(&r, 1, "", "order: hold order: machine 'order' has no state 'nowhere'\n");
    TOOL(p, &r, NULL, "hold", "order", "--state", "charging", "--key", "k");
    EXPECT(&r, 1, "", "order: hold order: one of id, state, key, or none of them\n");
    TOOL(p, &r, NULL, "create", "order", "1", "--data", "5");
    TOOL(p, &r, NULL, "send", "order", "1", "submit");
    TOOL(p, &r, NULL, "status", "--json");
    assert_non_null(strstr(r.out, "\"holds\":[{\"kind\":\"state\",\"machine\":\"order\",\"name\":"
                                  "\"charging\",\"releasing\":false}]"));
    TOOL(p, &r, NULL, "release", "--json", "order", "--state", "charging");
    EXPECT(&r, 0, "{\"machine\":\"order\",\"ok\":true}\n", "");
    wait_for_state(p, "1", "paid");
    TOOL(p, &r, "{\"machine\":\"order\",\"id\":\"1\"}\n{\"machine\":\"order\",\"key\":\"slow\"}\n",
         "hold");
    EXPECT(&r, 0, "", "order: hold: 2 done, 0 refused\n");
    TOOL(p, &r, NULL, "list");
    EXPECT(&r, 0,
           "MACHINE ID STATE ATTEMPT ENTERED                  DUE KEY FLAGS ERROR\n"
           "order   1  paid  0       TIME -       held  \n",
           "");
}

static int is_parked(void *arg)
{
    TOOL((struct place *)arg, &r, NULL, "list", "--parked", "--json");
    return r.out[0] != '\0';
}

static void parked_and_retried(void **state)
{
    struct place *p = *state;
    DAEMON(p, NULL);
    TOOL(p, &r, NULL, "create", "order", "1", "--data", "5 kept");
    TOOL(p, &r, NULL, "send", "order", "1", "submit");
    wait_for_state(p, "1", "paid");
    TOOL(p, &r, NULL, "send", "order", "1", "cancel");
    wait_until(is_parked, p);
    TOOL(p, &r, NULL, "status");
    r.out[strlen("MACHINE STATE     ENTITIES PARKED\norder   refunding 1        \norder            "
                 "          1\n")] = '\0';
    assert_string_equal(r.out, "MACHINE STATE     ENTITIES PARKED\norder   refunding 1        "
                               "\norder                      1\n");
    TOOL(p, &r, NULL, "retry", "order", "1");
    EXPECT(&r, 0, "order/1: refunding, version V\n", "");
    wait_until(is_parked, p);
    TOOL(p, &r, NULL, "verify");
    EXPECT(&r, 0, "1 entities, 0 faults, the daemon's lists included\n", "");
    TOOL(p, &r, NULL, "verify", "--json");
    EXPECT(&r, 0, "{\"entities\":1,\"faults\":0,\"daemon\":true}\n", "");
}

/* An entity that its index does not have. */
static void faults(void **state)
{
    struct place *p = *state;
    char path[128];
    struct pw_store *store = NULL;
    struct pw_txn *txn = NULL;
    struct pw_key key;
    DAEMON(p, NULL);
    TOOL(p, &r, NULL, "create", "order", "1");
    assert_int_equal(r.status, 0);
    assert_int_equal(daemon_end(p, SIGTERM), 0);
    pw_print(path, sizeof(path), "%s/shard-0", p->dir);
    const struct pw_lmdb_options options = { .dir = path };
    assert_int_equal(pw_lmdb_open(&store, &options, NULL), PAWL_OK);
    assert_int_equal(store->ops->begin(store, true, &txn), PAWL_OK);
    pw_key_state(&key, "order", "cart", 1);
    assert_int_equal(store->ops->del(txn, PW_STATE, pw_key_bytes(&key)), PAWL_OK);
    assert_int_equal(store->ops->commit(txn), PAWL_OK);
    store->ops->close(store);
    TOOL(p, &r, NULL, "verify");
    EXPECT(&r, 5, "shard 0: order/1 is not in the state index under 'cart'\n1 entities, 1 faults\n",
           "");
    TOOL(p, &r, NULL, "verify", "--json");
    EXPECT(&r, 5,
           "{\"fault\":\"shard 0: order/1 is not in the state index under 'cart'\"}\n"
           "{\"entities\":1,\"faults\":1,\"daemon\":false}\n",
           "");
}

/* --- many lines --------------------------------------------------------------------------- */

#define MANY 3000
static char input[MANY * 64];

static void fill_input(void)
{
    size_t used = 0;
    for (int i = 0; i < MANY; i++) {
        pw_print(input + used, 64, "{\"machine\":\"order\",\"id\":\"b%d\"}\n", i);
        used += strlen(input + used);
    }
}

static void bulk(void **state)
{
    struct place *p = *state;
    DAEMON(p, NULL);
    fill_input();
    TOOL(p, &r, input, "create");
    EXPECT(&r, 0, "", "order: create: 3000 done, 0 refused\n");
    TOOL(p, &r, input, "delete");
    EXPECT(&r, 0, "", "order: delete: 3000 done, 0 refused\n");
    TOOL(p, &r, NULL, "verify");
    EXPECT(&r, 0, "0 entities, 0 faults, the daemon's lists included\n", "");
}

static void bad_lines(void **state)
{
    struct place *p = *state;
    DAEMON(p, NULL);
    TOOL(p, &r,
         "{\"machine\":\"order\",\"id\":\"1\"}\n"
         "nonsense\n"
         "\n"
         "{\"machine\":\"order\",\"id\":\"2\",\"colour\":\"red\"}\n"
         "{\"machine\":\"order\",\"id\":\"3\"}",
         "create");
    EXPECT(&r, 1, "",
           "order: line 2: create: not JSON: '[' or '{' expected near 'nonsense', at byte 8\n"
           "order: line 4: create order/2: unknown field \"colour\"\n"
           "order: create: 2 done, 2 refused\n");
    TOOL(p, &r, "{\"machine\":\"order\",\"id\":\"1\"}\n", "create");
    EXPECT(&r, 3, "",
           "order: line 1: create order/1: order/1 exists, in 'cart'\norder: create: 0 done, 1 "
           "refused\n");
    TOOL(p, &r, "{\"machine\":\"order\",\"id\":\"1\",\"event\":\"cancel\"}\n", "send", "--json");
    EXPECT(&r, 0,
           "{\"line\":1,\"machine\":\"order\",\"id\":\"1\",\"ok\":true,\"state\":\"closed\","
           "\"version\":\"V\",\"epoch\":\"V\",\"repeated\":false}\n",
           "order: send: 1 done, 0 refused\n");
    static char deep[10002];
    memset(deep, '[', 10000);
    deep[10000] = '\n';
    TOOL(p, &r, deep, "create");
    assert_int_equal(r.status, 1);
    static char oversize[1200 * 1024];
    memset(oversize, 'x', sizeof(oversize) - 1);
    memcpy(oversize + sizeof(oversize) - 32, "\n{\"machine\":\"order\",\"id\":\"4\"}\n", 31);
    TOOL(p, &r, oversize, "create");
    EXPECT(&r, 1, "",
           "order: line 1: create: a line of more than 1 MiB\norder: create: 1 done, 1 refused\n");
}

/* Runs in a shell; the exit status. */
static int shell(const char *command)
{
    int status = system(command);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void output_closed(void **state)
{
    struct place *p = *state;
    char command[4096];
    DAEMON(p, NULL);
    fill_input();
    TOOL(p, &r, input, "create");
    pw_print(
        command, sizeof(command), /* the list is much longer than a pipe */
        "exec 3>%s/err; { %s --dir %s list --json 2>&3; echo $? >&3; } | head -c 1 >/dev/null; "
        "test \"$(cat %s/err)\" = 0",
        p->root, ORDER, p->dir, p->root);
    assert_int_equal(shell(command), 0);
    pw_print(command, sizeof(command), "%s --dir %s status >/dev/full 2>%s/err", ORDER, p->dir,
             p->root);
    assert_int_equal(shell(command), 4);
    pw_print(command, sizeof(command), "%s --dir %s list >&- 2>&-", ORDER, p->dir);
    assert_int_equal(shell(command), 4);
    pw_print(command, sizeof(command), "%s --dir %s verify </dev/null >/dev/null 2>&-", ORDER,
             p->dir);
    assert_int_equal(shell(command), 0);
}

int main(void)
{
    unsetenv("PAWL_RESULTS"); /* ctest's: no setting */
    setenv("LC_ALL", "C.UTF-8", 1);
#define CASE(name) cmocka_unit_test_setup_teardown(name, place_make, place_remove)
    const struct CMUnitTest tests[] = {
        CASE(usage),      CASE(nothing_there),     CASE(check_and_graph), CASE(config),
        CASE(one_entity), CASE(data_of_all_kinds), CASE(holds),           CASE(parked_and_retried),
        CASE(bulk),       CASE(bad_lines),         CASE(output_closed),   CASE(faults),
    };
    return cmocka_run_group_tests(tests, leaks_begin, leaks_end);
}
