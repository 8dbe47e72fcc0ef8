/* SPDX-License-Identifier: Apache-2.0
 *
 * pawl_open on real directories: which options and which directories it takes, and that nothing is
 * made anew in the place of something that is missing. */
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "lmdb/store.h"
#include "pawl/engine.h"
#include "support/test.h"

struct dirs {
    char root[64];
    char dir[80];
};

static int make(void **state)
{
    struct dirs *d = test_calloc(1, sizeof(*d));
    pw_print(d->root, sizeof(d->root), "/tmp/pawl-compose.XXXXXX");
    if (mkdtemp(d->root) == NULL)
        return -1;
    pw_print(d->dir, sizeof(d->dir), "%s/d", d->root);
    *state = d;
    return 0;
}

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *walk)
{
    (void)status;
    (void)kind;
    (void)walk;
    return remove(path);
}

static int clean(void **state)
{
    struct dirs *d = *state;
    int failed = nftw(d->root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    test_free(d);
    return failed;
}

/* Opens and closes; the error's text, "" when there is none. */
static const char *try_open(const pawl_options *options, pawl_err expected)
{
    static pawl_why why;
    pawl *engine = NULL;
    why.text[0] = '\0';
    pawl_err err = pawl_open(&engine, options, &why);
    pawl_close(engine);
    assert_string_equal(pawl_err_name(err), pawl_err_name(expected));
    return why.text;
}

static void expect(const pawl_options *options, pawl_err err, const char *format, const char *dir)
{
    char text[256] = "";
    const char *why = try_open(options, err);
    const char *at = strchr(format, '@'); /* where the directory stands */
    if (at == NULL) {
        assert_string_equal(why, format);
        return;
    }
    pw_print(text, sizeof(text), "%.*s%s%s", (int)(at - format), format, dir, at + 1);
    assert_string_equal(why, text);
}

static bool has(const struct dirs *d, const char *name)
{
    char path[128];
    pw_print(path, sizeof(path), "%s/%s", d->dir, name);
    return access(path, F_OK) == 0;
}

static void options(void **state)
{
    struct dirs *d = *state;
    expect(NULL, PAWL_E_USAGE, "no data directory is given", NULL);
    expect(&(pawl_options){ .dir = "" }, PAWL_E_USAGE, "no data directory is given", NULL);
    expect(&(pawl_options){ .dir = d->dir, .bus = "nats://u:secret@x:y" }, PAWL_E_CONFIG,
           "bus: neither local: nor servers: server 1: its port is not a number from 1 to 65535",
           NULL);
    expect(&(pawl_options){ .dir = d->dir, .outbox_rows_max = 1000000001 }, PAWL_E_CONFIG,
           "outbox_rows_max is above 1000000000", NULL);
    expect(&(pawl_options){ .dir = d->dir, .shards = 65 }, PAWL_E_CONFIG,
           "65 shards; allowed are 1 to 64", NULL);
    expect(&(pawl_options){ .dir = d->dir, .readers_max = 100001 }, PAWL_E_CONFIG,
           "readers_max 100001; at most 100000", NULL);
    expect(&(pawl_options){ .dir = d->dir, .sync = "interval:0" }, PAWL_E_CONFIG,
           "sync: 'interval:0' is not commit, nor interval:<ms> of 1 to 60000", NULL);
    (void)try_open(&(pawl_options){ .dir = d->dir, .ns = "a.b" }, PAWL_E_USAGE);
    (void)try_open(&(pawl_options){ .dir = d->dir, .stop_ms = UINT64_MAX }, PAWL_E_CONFIG);
    assert_int_not_equal(access(d->dir, F_OK), 0); /* nothing was made */
    expect(&(pawl_options){ .dir = d->dir, .read_only = true }, PAWL_E_IO,
           "open store: @: No such file or directory", d->dir);
    expect(
        &(pawl_options){
            .dir = d->dir, .sync = "interval:50", .bus = "local:", .map_bytes = 1 << 26 },
        PAWL_OK, "", NULL);
}

static void other_counts(void **state)
{
    struct dirs *d = *state;
    expect(&(pawl_options){ .dir = d->dir, .shards = 3 }, PAWL_OK, "", NULL);
    expect(&(pawl_options){ .dir = d->dir }, PAWL_OK, "", NULL);
    expect(&(pawl_options){ .dir = d->dir, .read_only = true }, PAWL_OK, "", NULL);
    expect(&(pawl_options){ .dir = d->dir, .shards = 4 }, PAWL_E_SCHEMA,
           "open store: @ has 3 shards; asked for are 4", d->dir);
    expect(&(pawl_options){ .dir = d->dir, .shards = 2 }, PAWL_E_SCHEMA,
           "open store: @ has 3 shards; asked for are 2", d->dir);
    expect(&(pawl_options){ .dir = d->dir, .shards = 2, .read_only = true }, PAWL_E_SCHEMA,
           "open store: @ has 3 shards; asked for are 2", d->dir);
    assert_false(has(d, "shard-3"));
}

static void move(const struct dirs *d, const char *from, const char *to)
{
    char old[128];
    char fresh[128];
    pw_print(old, sizeof(old), "%s/%s", d->dir, from);
    pw_print(fresh, sizeof(fresh), "%s/%s", d->dir, to);
    assert_int_equal(rename(old, fresh), 0);
}

static void missing_shards(void **state)
{
    struct dirs *d = *state;
    expect(&(pawl_options){ .dir = d->dir, .shards = 3 }, PAWL_OK, "", NULL);
    move(d, "shard-1", "away");
    expect(&(pawl_options){ .dir = d->dir }, PAWL_E_SCHEMA,
           "open store: @/shard-1 is missing, and there are later ones", d->dir);
    move(d, "away", "shard-1");
    move(d, "shard-2", "away");
    expect(&(pawl_options){ .dir = d->dir, .shards = 3 }, PAWL_E_SCHEMA,
           "open store: @ has 2 of its 3 shard directories: put the others back, or delete all",
           d->dir);
    assert_false(has(d, "shard-2")); /* its entities would be gone without a word */
    move(d, "away", "shard-2");
    move(d, "shard-0", "away");
    (void)try_open(&(pawl_options){ .dir = d->dir }, PAWL_E_SCHEMA);
    move(d, "shard-1", "shard-0"); /* shuffled */
    move(d, "away", "shard-1");
    expect(&(pawl_options){ .dir = d->dir }, PAWL_E_SCHEMA,
           "open store: the store is 'namespace main, shard 1 of 3'; that is no shard 0", NULL);
}

/* A creation that was killed before any identity was written. */
static void cut_short(void **state)
{
    struct dirs *d = *state;
    char path[128];
    struct pw_store *store = NULL;
    assert_int_equal(mkdir(d->dir, 0750), 0);
    for (int i = 0; i < 2; i++) {
        pw_print(path, sizeof(path), "%s/shard-%d", d->dir, i);
        assert_int_equal(
            pw_lmdb_open(&store, &(struct pw_lmdb_options){ .dir = path, .create = true }, NULL),
            PAWL_OK);
        store->ops->close(store);
    }
    pw_print(path, sizeof(path), "%s/shard-2.new", d->dir);
    assert_int_equal(mkdir(path, 0750), 0);
    expect(&(pawl_options){ .dir = d->dir, .read_only = true }, PAWL_E_IO,
           "open store: @: the store is being made", d->dir);
    expect(&(pawl_options){ .dir = d->dir, .shards = 3 }, PAWL_OK, "", NULL);
    assert_true(has(d, "shard-2"));
    expect(&(pawl_options){ .dir = d->dir }, PAWL_OK, "", NULL);
}

static void two_owners(void **state)
{
    struct dirs *d = *state;
    pawl *first = NULL;
    assert_int_equal(pawl_open(&first, &(pawl_options){ .dir = d->dir }, NULL), PAWL_OK);
    const char *why = try_open(&(pawl_options){ .dir = d->dir }, PAWL_E_LOCKED);
    assert_non_null(strstr(why, " is owned by process "));
    pawl_close(first);
    expect(&(pawl_options){ .dir = d->dir }, PAWL_OK, "", NULL);
    expect(&(pawl_options){ .dir = d->dir, .ns = "other" }, PAWL_E_SCHEMA,
           "open store: the store is namespace main, shard 0 of 1; asked for is namespace other, "
           "shard 0 of 1",
           NULL);
    expect(&(pawl_options){ .dir = d->dir }, PAWL_OK, "", NULL); /* the failure freed the lock */
}

/* Each allocation fails once: what was opened is closed again, and the lock is free. */
static void out_of_memory(void **state)
{
    struct dirs *d = *state;
    const pawl_options three = { .dir = d->dir, .shards = 3 };
    pawl *engine = NULL;
    pawl_err err = PAWL_E_NOMEM;
    uint64_t n = 1;
    for (; err != PAWL_OK; n++) {
        assert_true(n < 1000);
        (void)pw_alloc_fail_at(n);
        err = pawl_open(&engine, &three, NULL);
        (void)pw_alloc_fail_at(0);
        assert_true(err == PAWL_OK || err == PAWL_E_NOMEM);
    }
    assert_true(n > 3);
    pawl_close(engine);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, make, clean)
    const struct CMUnitTest tests[] = {
        CASE(options),   CASE(other_counts), CASE(missing_shards),
        CASE(cut_short), CASE(two_owners),   CASE(out_of_memory),
    };
    return cmocka_run_group_tests(tests, leaks_begin, leaks_end);
}
