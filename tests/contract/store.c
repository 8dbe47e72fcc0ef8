/* SPDX-License-Identifier: Apache-2.0
 *
 * What every store promises (src/core/store.h), run against the one on disk and the one in memory.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/base.h"
#include "base/limits.h"
#include "lmdb/store.h"
#include "sim/store.h"

#define SMALL_MAP (2u * 1024 * 1024)

struct fixture {
    const struct kind *kind;
    const struct pw_store_ops *ops;
    struct pw_store *store;
    char dir[256];
    uint64_t map_bytes; /* of the disk's store; 0: its default */
};

/* One kind of store. open after close finds what was committed; end removes it. */
struct kind {
    void (*open)(struct fixture *fixture);
    void (*fill)(struct fixture *fixture); /* from here on there is no room */
    void (*end)(struct fixture *fixture);
    bool concurrent; /* a read may be open beside a write */
};

/* --- helpers ------------------------------------------------------------------------------ */

static struct pw_txn *begin(struct fixture *fixture, bool write)
{
    struct pw_txn *txn = NULL;
    assert_int_equal(fixture->ops->begin(fixture->store, write, &txn), PAWL_OK);
    assert_non_null(txn);
    return txn;
}

static void commit(struct fixture *fixture, struct pw_txn *txn)
{
    assert_int_equal(fixture->ops->commit(txn), PAWL_OK);
}

static void put(struct fixture *fixture, struct pw_txn *txn, const char *key, const char *value)
{
    assert_int_equal(fixture->ops->put(txn, PW_ENTITY, pawl_str(key), pawl_str(value)), PAWL_OK);
}

static void del(struct fixture *fixture, struct pw_txn *txn, const char *key)
{
    assert_int_equal(fixture->ops->del(txn, PW_ENTITY, pawl_str(key)), PAWL_OK);
}

/* value NULL: the key must not be there. */
static void expect(struct fixture *fixture, struct pw_txn *txn, const char *key, const char *value)
{
    pawl_bytes found = { 0 };
    pawl_err err = fixture->ops->get(txn, PW_ENTITY, pawl_str(key), &found);
    assert_int_equal(err, value != NULL ? PAWL_OK : PAWL_E_NOT_FOUND);
    if (value != NULL)
        assert_true(pw_bytes_equal_str(found, value));
}

static void expect_committed(struct fixture *fixture, const char *key, const char *value)
{
    struct pw_txn *txn = begin(fixture, false);
    expect(fixture, txn, key, value);
    fixture->ops->abort(txn);
}

static void put_committed(struct fixture *fixture, const char *key, const char *value)
{
    struct pw_txn *txn = begin(fixture, true);
    put(fixture, txn, key, value);
    commit(fixture, txn);
}

struct collected {
    char text[512];
    int most;
};

static bool collect(void *arg, pawl_bytes key, pawl_bytes value)
{
    struct collected *collected = arg;
    size_t used = strlen(collected->text);
    pw_print(collected->text + used, sizeof(collected->text) - used, "%.*s=%.*s ", (int)key.size,
             (const char *)key.data, (int)value.size, (const char *)value.data);
    return --collected->most != 0;
}

static void expect_scan(struct fixture *fixture, struct pw_txn *txn, const char *from, int most,
                        const char *text)
{
    struct collected collected = { .most = most };
    assert_int_equal(fixture->ops->scan(txn, PW_ENTITY, pawl_str(from), collect, &collected),
                     PAWL_OK);
    assert_string_equal(collected.text, text);
}

static void expect_count(struct fixture *fixture, struct pw_txn *txn, uint64_t entries)
{
    uint64_t found = UINT64_MAX;
    assert_int_equal(fixture->ops->count(txn, PW_ENTITY, &found), PAWL_OK);
    assert_int_equal(found, entries);
}

/* --- the promises ------------------------------------------------------------------------- */

static void test_get_put_del(void **state)
{
    struct fixture *fixture = *state;
    struct pw_txn *txn = begin(fixture, true);
    expect(fixture, txn, "a", NULL);
    put(fixture, txn, "a", "1");
    expect(fixture, txn, "a", "1");
    put(fixture, txn, "a", "a longer value");
    expect(fixture, txn, "a", "a longer value");
    put(fixture, txn, "a", "");
    expect(fixture, txn, "a", "");
    del(fixture, txn, "a");
    expect(fixture, txn, "a", NULL);
    assert_int_equal(fixture->ops->del(txn, PW_ENTITY, pawl_str("a")), PAWL_E_NOT_FOUND);
    put(fixture, txn, "b", "2"); /* a missing key spoils nothing */
    commit(fixture, txn);
    expect_committed(fixture, "b", "2");
}

static void test_tables_are_apart(void **state)
{
    struct fixture *fixture = *state;
    struct pw_txn *txn = begin(fixture, true);
    for (int i = 0; i < PW_TABLES; i++) {
        uint8_t value = (uint8_t)i;
        pawl_bytes bytes = { &value, 1 };
        assert_int_equal(fixture->ops->put(txn, (enum pw_table)i, pawl_str("key"), bytes), PAWL_OK);
    }
    commit(fixture, txn);
    txn = begin(fixture, false);
    for (int i = 0; i < PW_TABLES; i++) {
        pawl_bytes found = { 0 };
        assert_int_equal(fixture->ops->get(txn, (enum pw_table)i, pawl_str("key"), &found),
                         PAWL_OK);
        assert_int_equal(found.size, 1);
        assert_int_equal(*(const uint8_t *)found.data, i);
    }
    commit(fixture, txn); /* of a read: like abort */
}

static void test_scan_in_order(void **state)
{
    struct fixture *fixture = *state;
    struct pw_txn *txn = begin(fixture, true);
    expect_scan(fixture, txn, "", 0, "");
    static const char *const keys[] = { "m", "b", "zz", "a", "ab", "z", "\xff", "aa" };
    for (size_t i = 0; i < PW_COUNT(keys); i++)
        put(fixture, txn, keys[i], "x");
    expect_scan(fixture, txn, "", 0, "a=x aa=x ab=x b=x m=x z=x zz=x \xff=x ");
    expect_scan(fixture, txn, "ab", 0, "ab=x b=x m=x z=x zz=x \xff=x ");
    expect_scan(fixture, txn, "abc", 2, "b=x m=x ");
    expect_scan(fixture, txn, "\xff\xff", 0, "");
    del(fixture, txn, "b");
    put(fixture, txn, "m", "new");
    expect_scan(fixture, txn, "ab", 3, "ab=x m=new z=x ");
    commit(fixture, txn);
    txn = begin(fixture, false);
    expect_scan(fixture, txn, "", 1, "a=x ");
    fixture->ops->abort(txn);
}

static void test_numbers_scan_in_order(void **state)
{
    struct fixture *fixture = *state;
    static const uint64_t numbers[] = { 256, 1, UINT64_MAX, 255, 65536, 2 };
    struct pw_txn *txn = begin(fixture, true);
    for (size_t i = 0; i < PW_COUNT(numbers); i++) {
        uint8_t key[8] = { 0 };
        pw_put_u64(key, numbers[i]);
        pawl_bytes bytes = { key, sizeof(key) };
        char value[32] = "";
        pw_print(value, sizeof(value), "%llu", (unsigned long long)numbers[i]);
        assert_int_equal(fixture->ops->put(txn, PW_DUE, bytes, pawl_str(value)), PAWL_OK);
    }
    commit(fixture, txn);
    struct collected collected = { .most = 0 };
    txn = begin(fixture, false);
    pawl_bytes first = { 0 };
    assert_int_equal(fixture->ops->scan(txn, PW_DUE, first, collect, &collected), PAWL_OK);
    fixture->ops->abort(txn);
    char *last = strstr(collected.text, "=65536 ");
    assert_non_null(last);
    assert_non_null(strstr(last, "=18446744073709551615 "));
}

static bool get_inside(void *arg, pawl_bytes key, pawl_bytes value)
{
    struct pw_txn **txn = arg;
    pawl_bytes found = { 0 };
    (void)value;
    struct fixture *fixture = (struct fixture *)txn[1];
    assert_int_equal(fixture->ops->get(txn[0], PW_ENTITY, key, &found), PAWL_OK);
    return true;
}

static void test_get_inside_a_scan(void **state)
{
    struct fixture *fixture = *state;
    put_committed(fixture, "a", "1");
    put_committed(fixture, "b", "2");
    void *both[2] = { begin(fixture, false), fixture };
    pawl_bytes first = { 0 };
    assert_int_equal(fixture->ops->scan(both[0], PW_ENTITY, first, get_inside, both), PAWL_OK);
    fixture->ops->abort(both[0]);
}

static void test_abort_changes_nothing(void **state)
{
    struct fixture *fixture = *state;
    fixture->ops->abort(NULL);
    put_committed(fixture, "kept", "1");
    put_committed(fixture, "other", "2");
    struct pw_txn *txn = begin(fixture, true);
    put(fixture, txn, "kept", "changed");
    put(fixture, txn, "kept", "changed again");
    put(fixture, txn, "new", "3");
    del(fixture, txn, "other");
    put(fixture, txn, "other", "back");
    del(fixture, txn, "other");
    del(fixture, txn, "kept");
    expect_scan(fixture, txn, "", 0, "new=3 ");
    fixture->ops->abort(txn);
    txn = begin(fixture, false);
    expect_scan(fixture, txn, "", 0, "kept=1 other=2 ");
    expect_count(fixture, txn, 2);
    fixture->ops->abort(txn);
}

static void test_empty_commit(void **state)
{
    struct fixture *fixture = *state;
    commit(fixture, begin(fixture, true));
    commit(fixture, begin(fixture, false));
    put_committed(fixture, "a", "1");
    expect_committed(fixture, "a", "1");
}

static void test_delete_all_while_walking(void **state)
{
    struct fixture *fixture = *state;
    enum { ROWS = 1000 };
    struct pw_txn *txn = begin(fixture, true);
    for (int i = 0; i < ROWS; i++) {
        char key[16] = "";
        pw_print(key, sizeof(key), "%04d", i);
        put(fixture, txn, key, "row");
    }
    expect_count(fixture, txn, ROWS);
    commit(fixture, txn);
    for (int i = 0; i < ROWS; i++) { /* scan for the first, delete it: as an outbox is trimmed */
        if (i % 100 == 0)
            txn = begin(fixture, true);
        char expected[32] = "";
        char key[16] = "";
        pw_print(key, sizeof(key), "%04d", i);
        pw_print(expected, sizeof(expected), "%s=row ", key);
        expect_scan(fixture, txn, "", 1, expected);
        del(fixture, txn, key);
        if (i % 100 == 99)
            commit(fixture, txn);
    }
    txn = begin(fixture, false);
    expect_count(fixture, txn, 0);
    fixture->ops->abort(txn);
}

static void test_big_values_and_long_keys(void **state)
{
    struct fixture *fixture = *state;
    uint8_t key[PW_LMDB_KEY_MAX];
    memset(key, 'k', sizeof(key));
    pawl_bytes long_key = { key, sizeof(key) };
    pawl_bytes big = { pw_alloc(PW_RECORD_MAX), PW_RECORD_MAX };
    assert_non_null(big.data);
    memset((void *)big.data, 0x5a, big.size);

    struct pw_txn *txn = begin(fixture, true);
    assert_int_equal(fixture->ops->put(txn, PW_OUTBOX, long_key, big), PAWL_OK);
    commit(fixture, txn);
    pawl_bytes found = { 0 };
    txn = begin(fixture, false);
    assert_int_equal(fixture->ops->get(txn, PW_OUTBOX, long_key, &found), PAWL_OK);
    assert_true(pw_bytes_equal(found, big));
    fixture->ops->abort(txn);
    txn = begin(fixture, true);
    assert_int_equal(fixture->ops->del(txn, PW_OUTBOX, long_key), PAWL_OK);
    commit(fixture, txn);
    pw_free((void *)big.data);
}

static void test_read_beside_write(void **state)
{
    struct fixture *fixture = *state;
    put_committed(fixture, "a", "old");
    if (!fixture->kind->concurrent) /* promised by the disk's store only: see sim/store.h */
        return;
    struct pw_txn *write = begin(fixture, true);
    put(fixture, write, "a", "new");
    struct pw_txn *before = begin(fixture, false);
    expect(fixture, before, "a", "old");
    commit(fixture, write);
    expect(fixture, before, "a", "old");
    struct pw_txn *after = begin(fixture, false);
    expect(fixture, after, "a", "new");
    fixture->ops->abort(before);
    fixture->ops->abort(after);
}

static void test_two_reads_at_once(void **state)
{
    struct fixture *fixture = *state;
    put_committed(fixture, "a", "1");
    struct pw_txn *first = begin(fixture, false);
    struct pw_txn *second = begin(fixture, false);
    fixture->ops->abort(first);
    expect(fixture, second, "a", "1");
    fixture->ops->abort(second);
}

static void test_committed_outlives_close(void **state)
{
    struct fixture *fixture = *state;
    put_committed(fixture, "a", "1");
    fixture->ops->close(fixture->store);
    fixture->kind->open(fixture);
    expect_committed(fixture, "a", "1");
    pawl_why why = { "" };
    assert_int_equal(fixture->ops->reopen(fixture->store, &why), PAWL_OK);
    expect_committed(fixture, "a", "1");
    put_committed(fixture, "b", "2");
    expect_committed(fixture, "b", "2");
}

static void test_reads_go_on_when_full(void **state)
{
    struct fixture *fixture = *state;
    put_committed(fixture, "a", "1");
    fixture->kind->fill(fixture);
    struct pw_txn *txn = begin(fixture, true);
    pawl_err err = PAWL_OK;
    static const uint8_t page[65536];
    pawl_bytes value = { page, sizeof(page) };
    for (uint64_t row = 0; row < 64 && err == PAWL_OK; row++) { /* 4 MiB into 2 */
        uint8_t key[8] = { 0 };
        pw_put_u64(key, row);
        pawl_bytes bytes = { key, sizeof(key) };
        err = fixture->ops->put(txn, PW_HISTORY, bytes, value);
    }
    assert_int_equal(err, PAWL_E_FULL);
    fixture->ops->abort(txn);
    expect_committed(fixture, "a", "1");
    txn = begin(fixture, false);
    uint64_t entries = UINT64_MAX;
    assert_int_equal(fixture->ops->count(txn, PW_HISTORY, &entries), PAWL_OK);
    assert_int_equal(entries, 0);
    fixture->ops->abort(txn);
}

static void test_tend_and_fill(void **state)
{
    struct fixture *fixture = *state;
    put_committed(fixture, "a", "1");
    assert_true(fixture->ops->fill_percent(fixture->store) <= 100);
    assert_true(fixture->ops->tend(fixture->store, 1) > 0);
    assert_true(fixture->ops->tend(fixture->store, 100 * PW_READER_CHECK_MS) > 0);
    expect_committed(fixture, "a", "1");
}

/* --- the stores --------------------------------------------------------------------------- */

static void open_disk(struct fixture *fixture)
{
    pawl_why why = { "" };
    char dir[sizeof(fixture->dir) + 8] = "";
    pw_print(dir, sizeof(dir), "%s/shard-0", fixture->dir);
    struct pw_lmdb_options options = { .dir = dir, .create = true, .map_bytes = SMALL_MAP };
    pawl_err err = pw_lmdb_open(&fixture->store, &options, &why);
    if (err != PAWL_OK)
        fail_msg("%s", why.text);
    fixture->ops = fixture->store->ops;
}

static void fill_disk(struct fixture *fixture)
{
    (void)fixture; /* the map is small as it is */
}

static void end_disk(struct fixture *fixture)
{
    static const char *const names[] = { "/shard-0/data.mdb", "/shard-0/lock.mdb", "/shard-0", "" };
    fixture->ops->close(fixture->store);
    for (size_t i = 0; i < PW_COUNT(names); i++) {
        char path[sizeof(fixture->dir) + 32] = "";
        pw_print(path, sizeof(path), "%s%s", fixture->dir, names[i]);
        assert_int_equal(names[i][0] == '\0' || i == 2 ? rmdir(path) : unlink(path), 0);
    }
}

static void open_memory(struct fixture *fixture)
{
    if (fixture->store == NULL)
        assert_int_equal(pw_sim_store_open(&fixture->store), PAWL_OK);
    fixture->ops = fixture->store->ops;
}

static void fill_memory(struct fixture *fixture)
{
    pw_sim_store_full(fixture->store, true);
}

static void end_memory(struct fixture *fixture)
{
    fixture->ops->close(fixture->store);
    pw_sim_store_free(fixture->store);
}

static const struct kind disk = { open_disk, fill_disk, end_disk, .concurrent = true };
static const struct kind memory = { open_memory, fill_memory, end_memory, .concurrent = false };

static int setup(void **state, const struct kind *kind)
{
    struct fixture *fixture = pw_alloc(sizeof(*fixture));
    assert_non_null(fixture);
    const char *scratch = getenv("TMPDIR");
    fixture->kind = kind;
    if (kind == &disk) {
        pw_print(fixture->dir, sizeof(fixture->dir), "%s/pawl-contract-XXXXXX",
                 scratch != NULL ? scratch : "/tmp");
        assert_non_null(mkdtemp(fixture->dir));
    }
    kind->open(fixture);
    *state = fixture;
    return 0;
}

static int setup_disk(void **state)
{
    return setup(state, &disk);
}

static int setup_memory(void **state)
{
    return setup(state, &memory);
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;
    fixture->kind->end(fixture);
    pw_free(fixture);
    return 0;
}

/* --- faults of the one in memory ---------------------------------------------------------- */

static bool count_down(void *arg)
{
    int *left = arg;
    return --*left != 0;
}

/* The store dies at each operation of a small life in turn: what was answered is kept, nothing is
 * half done. */
static void test_dies_at_each_operation(void **state)
{
    struct fixture *fixture = *state;
    pawl_err err = PAWL_E_IO;
    int deaths = 0;
    put_committed(fixture, "a", "0");
    put_committed(fixture, "b", "0");
    while (err != PAWL_OK) {
        int left = ++deaths;
        struct pw_txn *txn = NULL;
        pw_sim_store_on_operation(fixture->store, count_down, &left);
        err = fixture->ops->begin(fixture->store, true, &txn);
        if (err == PAWL_OK)
            err = fixture->ops->put(txn, PW_ENTITY, pawl_str("a"), pawl_str("1"));
        if (err == PAWL_OK)
            err = fixture->ops->put(txn, PW_ENTITY, pawl_str("b"), pawl_str("1"));
        if (err == PAWL_OK)
            err = fixture->ops->commit(txn);
        else
            fixture->ops->abort(txn);
        pw_sim_store_on_operation(fixture->store, NULL, NULL);
        if (err != PAWL_OK) {
            assert_int_equal(err, PAWL_E_IO);
            assert_int_equal(fixture->ops->begin(fixture->store, false, &txn), PAWL_E_IO);
            assert_int_equal(fixture->ops->reopen(fixture->store, NULL), PAWL_E_IO);
        }
        pw_sim_store_revive(fixture->store);
        const char *value = deaths >= 5 ? "1" : "0"; /* begin, put, put, commit, durable */
        expect_committed(fixture, "a", value);
        expect_committed(fixture, "b", value);
    }
    assert_int_equal(deaths, 6);
}

static void test_revive_drops_what_was_open(void **state)
{
    struct fixture *fixture = *state;
    put_committed(fixture, "a", "0");
    struct pw_txn *txn = begin(fixture, true);
    put(fixture, txn, "a", "1");
    pw_sim_store_revive(fixture->store);
    expect_committed(fixture, "a", "0");
    fixture->ops->abort(txn); /* late, and harmless */
    expect_committed(fixture, "a", "0");
}

static void test_full_refuses_all_writes(void **state)
{
    struct fixture *fixture = *state;
    put_committed(fixture, "a", "0");
    struct pw_txn *txn = begin(fixture, true);
    del(fixture, txn, "a");
    pw_sim_store_full(fixture->store, true);
    assert_int_equal(fixture->ops->commit(txn), PAWL_E_FULL);
    expect_committed(fixture, "a", "0");
    commit(fixture, begin(fixture, true)); /* wrote nothing */
    pw_sim_store_full(fixture->store, false);
    put_committed(fixture, "a", "1");
    expect_committed(fixture, "a", "1");
}

/* Each allocation of a write fails in turn. */
static void test_out_of_memory(void **state)
{
    struct fixture *fixture = *state;
    put_committed(fixture, "a", "0");
    pawl_err err = PAWL_E_NOMEM;
    for (uint64_t n = 1; err != PAWL_OK; n++) {
        struct pw_txn *txn = begin(fixture, true);
        (void)pw_alloc_fail_at(n);
        err = fixture->ops->put(txn, PW_HISTORY, pawl_str("b"), pawl_str("1"));
        (void)pw_alloc_fail_at(0);
        if (err != PAWL_OK)
            assert_int_equal(err, PAWL_E_NOMEM);
        fixture->ops->abort(txn);
        expect_committed(fixture, "a", "0");
    }
}

#define BOTH(test)                                                                                 \
    cmocka_unit_test_setup_teardown(test, setup_disk, teardown),                                   \
        cmocka_unit_test_setup_teardown(test, setup_memory, teardown)
#define MEMORY(test) cmocka_unit_test_setup_teardown(test, setup_memory, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOTH(test_get_put_del),
        BOTH(test_tables_are_apart),
        BOTH(test_scan_in_order),
        BOTH(test_numbers_scan_in_order),
        BOTH(test_get_inside_a_scan),
        BOTH(test_abort_changes_nothing),
        BOTH(test_empty_commit),
        BOTH(test_delete_all_while_walking),
        BOTH(test_big_values_and_long_keys),
        BOTH(test_read_beside_write),
        BOTH(test_two_reads_at_once),
        BOTH(test_committed_outlives_close),
        BOTH(test_reads_go_on_when_full),
        BOTH(test_tend_and_fill),
        MEMORY(test_dies_at_each_operation),
        MEMORY(test_revive_drops_what_was_open),
        MEMORY(test_full_refuses_all_writes),
        MEMORY(test_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
