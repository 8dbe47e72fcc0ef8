/* SPDX-License-Identifier: Apache-2.0
 *
 * The store on a real disk: what it refuses, what it survives, and who may share it. Every process
 * here opens its own store after the fork, and a scratch directory lives for one test. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <lmdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "base/limits.h"
#include "lmdb/store.h"

/* The sanitizers' own maps are larger than any limit of addresses. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED
#endif
#endif

#define MIB (1024ull * 1024)
#define PAGE 4096

struct scratch {
    char dir[256];
    char shard[300]; /* "<dir>/shard-0" */
    char data[320];
    char lock[320];
    int files; /* open before the test */
};

/* --- helpers ------------------------------------------------------------------------------ */

static int count_open_files(void)
{
    int count = 0;
    DIR *dir = opendir("/proc/self/fd");
    assert_non_null(dir);
    while (readdir(dir) != NULL)
        count++;
    (void)closedir(dir);
    return count;
}

static void remove_tree(const char *path)
{
    DIR *dir = opendir(path);
    for (struct dirent *entry = NULL; dir != NULL && (entry = readdir(dir)) != NULL;) {
        char inner[1024] = "";
        struct stat status = { 0 };
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        pw_print(inner, sizeof(inner), "%s/%s", path, entry->d_name);
        if (lstat(inner, &status) == 0 && S_ISDIR(status.st_mode))
            remove_tree(inner);
        else
            (void)unlink(inner);
    }
    if (dir != NULL)
        (void)closedir(dir);
    (void)rmdir(path);
}

static int setup(void **state)
{
    struct scratch *scratch = pw_alloc(sizeof(*scratch));
    assert_non_null(scratch);
    const char *where = getenv("TMPDIR");
    pw_print(scratch->dir, sizeof(scratch->dir), "%s/pawl-lmdb-XXXXXX",
             where != NULL ? where : "/tmp");
    assert_non_null(mkdtemp(scratch->dir));
    pw_print(scratch->shard, sizeof(scratch->shard), "%s/shard-0", scratch->dir);
    pw_print(scratch->data, sizeof(scratch->data), "%s/data.mdb", scratch->shard);
    pw_print(scratch->lock, sizeof(scratch->lock), "%s/lock.mdb", scratch->shard);
    scratch->files = count_open_files();
    *state = scratch;
    return 0;
}

static int teardown(void **state)
{
    struct scratch *scratch = *state;
    int files = count_open_files();
    int before = scratch->files;
    remove_tree(scratch->dir);
    pw_free(scratch);
    assert_int_equal(files, before);
    return 0;
}

static struct pw_lmdb_options options_of(const struct scratch *scratch)
{
    struct pw_lmdb_options options = { .dir = scratch->shard, .create = true };
    return options;
}

static struct pw_store *open_with(const struct pw_lmdb_options *options)
{
    struct pw_store *store = NULL;
    pawl_why why = { "" };
    if (pw_lmdb_open(&store, options, &why) != PAWL_OK)
        fail_msg("%s", why.text);
    return store;
}

static struct pw_store *open_store(const struct scratch *scratch)
{
    struct pw_lmdb_options options = options_of(scratch);
    return open_with(&options);
}

static void expect_refused(const struct scratch *scratch, pawl_err err, const char *text)
{
    struct pw_store *store = NULL;
    struct pw_lmdb_options options = options_of(scratch);
    pawl_why why = { "" };
    assert_int_equal(pw_lmdb_open(&store, &options, &why), err);
    assert_null(store);
    if (strstr(why.text, text) == NULL)
        fail_msg("'%s' is not in '%s'", text, why.text);
}

static struct pw_txn *begin(struct pw_store *store, bool write)
{
    struct pw_txn *txn = NULL;
    assert_int_equal(store->ops->begin(store, write, &txn), PAWL_OK);
    return txn;
}

/* One transaction that puts `size` bytes under `row`. */
static pawl_err try_put(struct pw_store *store, uint64_t row, size_t size)
{
    static const uint8_t bytes[PW_RECORD_MAX];
    uint8_t key[8] = { 0 };
    struct pw_txn *txn = NULL;
    pw_put_u64(key, row);
    pawl_err err = store->ops->begin(store, true, &txn);
    if (err != PAWL_OK)
        return err;
    err = store->ops->put(txn, PW_ENTITY, (pawl_bytes){ key, 8 }, (pawl_bytes){ bytes, size });
    if (err == PAWL_OK)
        return store->ops->commit(txn);
    store->ops->abort(txn);
    return err;
}

static void put(struct pw_store *store, uint64_t row, size_t size)
{
    assert_int_equal(try_put(store, row, size), PAWL_OK);
}

static bool has_in(struct pw_txn *txn, const struct pw_store *store, uint64_t row)
{
    uint8_t key[8] = { 0 };
    pawl_bytes value = { 0 };
    pw_put_u64(key, row);
    return store->ops->get(txn, PW_ENTITY, (pawl_bytes){ key, 8 }, &value) == PAWL_OK;
}

static bool has(struct pw_store *store, uint64_t row)
{
    struct pw_txn *txn = begin(store, false);
    bool found = has_in(txn, store, row);
    store->ops->abort(txn);
    return found;
}

static uint64_t count(struct pw_store *store)
{
    uint64_t entries = UINT64_MAX;
    struct pw_txn *txn = begin(store, false);
    assert_int_equal(store->ops->count(txn, PW_ENTITY, &entries), PAWL_OK);
    store->ops->abort(txn);
    return entries;
}

static uint64_t size_of(const char *path)
{
    struct stat status = { 0 };
    assert_int_equal(stat(path, &status), 0);
    return (uint64_t)status.st_size;
}

static void write_at(const char *path, off_t at, const void *bytes, size_t size)
{
    int file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(file >= 0);
    assert_int_equal(pwrite(file, bytes, size, at), size);
    assert_int_equal(close(file), 0);
}

/* The last entry of a small pipe conversation between parent and child. */
static void send_byte(int pipe_end)
{
    ssize_t sent = write(pipe_end, "x", 1);
    if (sent != 1)
        _exit(9);
}

static bool receive_byte(int pipe_end)
{
    char byte = 0;
    return read(pipe_end, &byte, 1) == 1;
}

static int wait_for(pid_t child)
{
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

/* --- what is refused ---------------------------------------------------------------------- */

static void test_makes_whole_store(void **state)
{
    struct scratch *scratch = *state;
    struct pw_lmdb_options options = options_of(scratch);
    struct pw_store *store = NULL;
    pawl_why why = { "" };
    options.create = false;
    assert_int_equal(pw_lmdb_open(&store, &options, &why), PAWL_E_IO);
    assert_non_null(strstr(why.text, "no store"));
    assert_int_equal(access(scratch->shard, F_OK), -1);

    char fresh[320] = "";
    pw_print(fresh, sizeof(fresh), "%s.new", scratch->shard);
    assert_int_equal(mkdir(fresh, 0700), 0); /* a crash's leftover */
    char leftover[340] = "";
    pw_print(leftover, sizeof(leftover), "%s/data.mdb", fresh);
    write_at(leftover, 0, "half", 4);
    store = open_store(scratch);
    assert_int_equal(access(fresh, F_OK), -1);
    put(store, 1, 100);
    store->ops->close(store);
    options.create = false;
    store = open_with(&options);
    assert_true(has(store, 1));
    store->ops->close(store);
}

static void test_refuses_empty_and_garbage(void **state)
{
    struct scratch *scratch = *state;
    uint8_t garbage[8 * PAGE];
    memset(garbage, 0xa5, sizeof(garbage));
    assert_int_equal(mkdir(scratch->shard, 0700), 0);
    expect_refused(scratch, PAWL_E_CORRUPT, "data.mdb is missing");
    assert_int_equal(access(scratch->data, F_OK), -1);

    write_at(scratch->data, 0, "", 0);
    expect_refused(scratch, PAWL_E_CORRUPT, "(0 bytes)");
    assert_int_equal(size_of(scratch->data), 0);

    write_at(scratch->data, 0, garbage, sizeof(garbage));
    expect_refused(scratch, PAWL_E_CORRUPT, "no sound head");
    assert_int_equal(size_of(scratch->data), sizeof(garbage));
}

static void test_refuses_damaged_head(void **state)
{
    struct scratch *scratch = *state;
    struct pw_store *store = open_store(scratch);
    store->ops->close(store);
    static const uint8_t zeros[16];
    for (off_t page = 0; page < 2; page++) {
        uint8_t kept[16] = { 0 };
        int file = open(scratch->data, O_RDONLY | O_CLOEXEC);
        assert_int_equal(pread(file, kept, sizeof(kept), page * PAGE + 16), sizeof(kept));
        assert_int_equal(close(file), 0);
        write_at(scratch->data, page * PAGE + 16, zeros, sizeof(zeros));
        expect_refused(scratch, PAWL_E_CORRUPT, "no sound head");
        write_at(scratch->data, page * PAGE + 16, kept, sizeof(kept));
    }
    store = open_store(scratch);
    store->ops->close(store);
}

/* Cut anywhere: refused, or nothing in use was lost. Never a SIGBUS, never a new store. */
static void test_refuses_cut(void **state)
{
    struct scratch *scratch = *state;
    struct pw_store *store = open_store(scratch);
    for (uint64_t row = 0; row < 100; row++)
        put(store, row, 1000);
    put(store, 100, PW_RECORD_MAX);
    store->ops->close(store);
    uint64_t size = size_of(scratch->data);
    assert_true(size > PW_RECORD_MAX);
    static const uint64_t sizes[] = { 100 * PAGE + 17, 3 * PAGE, 2 * PAGE, PAGE + 1, PAGE, 17, 1 };
    for (size_t i = 0; i < PW_COUNT(sizes); i++) {
        assert_int_equal(truncate(scratch->data, (off_t)sizes[i]), 0);
        expect_refused(scratch, PAWL_E_CORRUPT, "data.mdb");
        assert_int_equal(size_of(scratch->data), sizes[i]);
    }
}

/* LMDB never writes a page that one transaction takes at the end and gives back: the file is
 * shorter than its last page number says, and whole. */
static void test_opens_short_but_whole(void **state)
{
    struct scratch *scratch = *state;
    static const uint8_t big[PW_RECORD_MAX];
    struct pw_store *store = open_store(scratch);
    for (uint64_t row = 0; row < 300; row++) /* so that the free list is not empty */
        put(store, row, 3000);
    struct pw_txn *txn = begin(store, true);
    pawl_bytes key = pawl_str("gone");
    assert_int_equal(store->ops->put(txn, PW_ENTITY, key, (pawl_bytes){ big, sizeof(big) }),
                     PAWL_OK);
    assert_int_equal(store->ops->del(txn, PW_ENTITY, key), PAWL_OK);
    assert_int_equal(store->ops->commit(txn), PAWL_OK);
    store->ops->close(store);
    assert_true(size_of(scratch->data) < 300 * PAGE + PW_RECORD_MAX);

    pawl_err err = PAWL_E_NOMEM;
    struct pw_lmdb_options options = options_of(scratch);
    for (uint64_t n = 1; err != PAWL_OK; n++) { /* short of memory is not damaged */
        (void)pw_alloc_fail_at(n);
        err = pw_lmdb_open(&store, &options, NULL);
        (void)pw_alloc_fail_at(0);
        assert_true(err == PAWL_OK || err == PAWL_E_NOMEM);
    }
    assert_int_equal(count(store), 300);
    store->ops->close(store);
    assert_int_equal(truncate(scratch->data, 200 * PAGE), 0);
    expect_refused(scratch, PAWL_E_CORRUPT, "is cut");
}

/* What a foreign program, or another pawl, would leave. schema NULL: none. */
static void write_foreign(const struct scratch *scratch, const char *table, MDB_val schema)
{
    MDB_env *env = NULL;
    MDB_txn *txn = NULL;
    MDB_dbi dbi = 0;
    MDB_val key = { 6, "schema" };
    (void)mkdir(scratch->shard, 0700);
    assert_int_equal(mdb_env_create(&env), 0);
    assert_int_equal(mdb_env_set_maxdbs(env, 8), 0);
    assert_int_equal(mdb_env_set_mapsize(env, 16 * MIB), 0);
    assert_int_equal(mdb_env_open(env, scratch->shard, 0, 0600), 0);
    assert_int_equal(mdb_txn_begin(env, NULL, 0, &txn), 0);
    assert_int_equal(mdb_dbi_open(txn, table, MDB_CREATE, &dbi), 0);
    if (schema.mv_data != NULL)
        assert_int_equal(mdb_put(txn, dbi, &key, &schema, 0), 0);
    assert_int_equal(mdb_txn_commit(txn), 0);
    mdb_env_close(env);
}

static void test_refuses_foreign(void **state)
{
    struct scratch *scratch = *state;
    MDB_val none = { 0, NULL };
    write_foreign(scratch, "theirs", none);
    expect_refused(scratch, PAWL_E_SCHEMA, "not pawl's");
    write_foreign(scratch, "meta", none);
    expect_refused(scratch, PAWL_E_SCHEMA, "not pawl's");
    write_foreign(scratch, "meta", (MDB_val){ 8, "lwap\0\0\0\1" });
    expect_refused(scratch, PAWL_E_SCHEMA, "not pawl's");
    write_foreign(scratch, "meta", (MDB_val){ 8, "pawl\0\0\0\1" });
    expect_refused(scratch, PAWL_E_CORRUPT, "table id is missing");
}

static void test_refuses_newer_schema(void **state)
{
    struct scratch *scratch = *state;
    struct pw_store *store = open_store(scratch);
    put(store, 1, 100);
    store->ops->close(store);
    write_foreign(scratch, "meta", (MDB_val){ 8, "pawl\0\0\0\2" });
    expect_refused(scratch, PAWL_E_SCHEMA, "has schema 2, this pawl reads schema 1");
    write_foreign(scratch, "meta", (MDB_val){ 8, "pawl\0\0\0\1" });
    store = open_store(scratch);
    assert_true(has(store, 1));
    store->ops->close(store);
}

static void test_lock_file(void **state)
{
    struct scratch *scratch = *state;
    struct pw_store *store = open_store(scratch);
    put(store, 1, 100);
    store->ops->close(store);
    assert_int_equal(unlink(scratch->lock), 0);
    store = open_store(scratch); /* made again */
    assert_true(has(store, 1));
    store->ops->close(store);
    assert_int_equal(unlink(scratch->lock), 0);
    assert_int_equal(mkdir(scratch->lock, 0700), 0);
    expect_refused(scratch, PAWL_E_IO, "lock.mdb: Is a directory");
    assert_int_equal(rmdir(scratch->lock), 0);
}

static void test_out_of_memory(void **state)
{
    struct scratch *scratch = *state;
    struct pw_store *store = NULL;
    struct pw_lmdb_options options = options_of(scratch);
    pawl_err err = PAWL_E_NOMEM;
    for (uint64_t n = 1; err != PAWL_OK; n++) {
        (void)pw_alloc_fail_at(n);
        err = pw_lmdb_open(&store, &options, NULL);
        (void)pw_alloc_fail_at(0);
        assert_true(err == PAWL_OK || err == PAWL_E_NOMEM);
    }
    struct pw_txn *txn = NULL;
    (void)pw_alloc_fail_at(1);
    assert_int_equal(store->ops->begin(store, false, &txn), PAWL_E_NOMEM);
    (void)pw_alloc_fail_at(0);
    store->ops->abort(begin(store, false));
    assert_int_equal(store->ops->reopen(store, NULL), PAWL_OK); /* nobody is counted as reading */
    store->ops->close(store);
}

static void test_file_larger_than_map(void **state)
{
    struct scratch *scratch = *state;
    struct pw_store *store = open_store(scratch);
    for (uint64_t row = 0; row < 8; row++)
        put(store, row, PW_RECORD_MAX);
    store->ops->close(store);
    struct pw_lmdb_options options = options_of(scratch);
    options.map_bytes = MIB;
    store = open_with(&options);
    assert_int_equal(count(store), 8);
    assert_true(store->ops->fill_percent(store) > PW_MAP_FILL_PERCENT);
    store->ops->close(store);
}

/* --- the owner's lock --------------------------------------------------------------------- */

static void test_owner(void **state)
{
    struct scratch *scratch = *state;
    int ready[2] = { -1, -1 };
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0) {
        int lock = -1;
        if (pw_lmdb_lock(scratch->shard, &lock, NULL) != PAWL_OK)
            _exit(1);
        send_byte(ready[1]);
        for (;;)
            (void)pause();
    }
    assert_true(receive_byte(ready[0]));
    int lock = -1;
    pawl_why why = { "" };
    char host[256] = "";
    char text[300] = "";
    assert_int_equal(gethostname(host, sizeof(host) - 1), 0);
    pw_print(text, sizeof(text), "process %ld on host %.60s", (long)child, host);
    assert_int_equal(pw_lmdb_lock(scratch->shard, &lock, &why), PAWL_E_LOCKED);
    assert_int_equal(lock, -1);
    assert_non_null(strstr(why.text, text));

    assert_int_equal(kill(child, SIGKILL), 0);
    (void)wait_for(child);
    assert_int_equal(pw_lmdb_lock(scratch->shard, &lock, &why), PAWL_OK);
    int second = -1;
    assert_int_equal(pw_lmdb_lock(scratch->shard, &second, &why), PAWL_E_LOCKED);
    pw_lmdb_unlock(lock);
    pw_lmdb_unlock(-1);
    assert_int_equal(pw_lmdb_lock(scratch->shard, &second, &why), PAWL_OK);
    pw_lmdb_unlock(second);
    (void)close(ready[0]);
    (void)close(ready[1]);
}

/* --- crashes ------------------------------------------------------------------------------ */

/* Each commit puts one row here and one there, then says so. */
static void commit_until_killed(struct pw_store *store, uint64_t row, int told)
{
    for (;; row++) {
        uint8_t key[8] = { 0 };
        struct pw_txn *txn = NULL;
        pw_put_u64(key, row);
        pawl_bytes bytes = { key, 8 };
        if (store->ops->begin(store, true, &txn) != PAWL_OK ||
            store->ops->put(txn, PW_ENTITY, bytes, bytes) != PAWL_OK ||
            store->ops->put(txn, PW_OUTBOX, bytes, bytes) != PAWL_OK ||
            store->ops->commit(txn) != PAWL_OK)
            _exit(1);
        send_byte(told);
    }
}

static void test_kill_loses_nothing(void **state)
{
    struct scratch *scratch = *state;
    uint64_t committed = 0;
    for (unsigned round = 0; round < 20; round++) {
        int told[2] = { -1, -1 };
        assert_int_equal(pipe(told), 0);
        pid_t child = fork();
        if (child == 0) {
            struct pw_lmdb_options options = options_of(scratch);
            struct pw_store *store = NULL;
            options.sync_interval_ms = round % 2 * 1000;
            if (pw_lmdb_open(&store, &options, NULL) != PAWL_OK)
                _exit(2);
            commit_until_killed(store, committed, told[1]);
        }
        (void)close(told[1]);
        for (unsigned i = 0; i < 5 + round * 3; i++, committed++)
            assert_true(receive_byte(told[0]));
        assert_int_equal(kill(child, SIGKILL), 0);
        (void)wait_for(child);
        while (receive_byte(told[0])) /* committed before the kill came */
            committed++;
        (void)close(told[0]);

        struct pw_store *store = open_store(scratch);
        uint64_t entries = count(store);
        assert_true(entries == committed || entries == committed + 1); /* not yet said */
        uint64_t outbox = 0;
        struct pw_txn *txn = begin(store, false);
        assert_int_equal(store->ops->count(txn, PW_OUTBOX, &outbox), PAWL_OK);
        store->ops->abort(txn);
        assert_int_equal(outbox, entries);
        committed = entries;
        store->ops->close(store);
    }
}

static void test_interval(void **state)
{
    struct scratch *scratch = *state;
    struct pw_lmdb_options options = options_of(scratch);
    options.sync_interval_ms = 50;
    struct pw_store *store = open_with(&options);
    assert_int_equal(store->ops->tend(store, 1000000), 50);
    put(store, 1, 100);
    assert_int_equal(store->ops->tend(store, 1000010), 40);
    assert_int_equal(store->ops->tend(store, 1000060), 50);
    assert_int_equal(store->ops->tend(store, 1000000 + PW_READER_CHECK_MS - 10), 10);
    assert_true(has(store, 1));
    assert_int_equal(store->ops->reopen(store, NULL), PAWL_OK);
    assert_true(has(store, 1));
    store->ops->close(store);
}

static void test_reopen_fails_and_recovers(void **state)
{
    struct scratch *scratch = *state;
    struct pw_store *store = open_store(scratch);
    struct pw_txn *txn = NULL;
    char aside[320] = "";
    pawl_why why = { "" };
    put(store, 1, 100);
    pw_print(aside, sizeof(aside), "%s/aside", scratch->dir);
    assert_int_equal(rename(scratch->shard, aside), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(store->ops->reopen(store, &why), PAWL_E_IO);
        assert_int_equal(access(scratch->shard, F_OK), -1); /* never a new one in its place */
        assert_int_equal(store->ops->begin(store, true, &txn), PAWL_E_IO);
        assert_int_equal(store->ops->begin(store, false, &txn), PAWL_E_IO);
        assert_int_equal(store->ops->fill_percent(store), 0);
        assert_true(store->ops->tend(store, 1000000) > 0);
    }
    assert_int_equal(rename(aside, scratch->shard), 0);
    assert_int_equal(store->ops->reopen(store, &why), PAWL_OK);
    assert_true(has(store, 1));
    put(store, 2, 100);
    store->ops->close(store);
}

#ifndef SANITIZED
/* Few addresses (ulimit -v): a smaller map, not a refusal. */
static void test_few_addresses(void **state)
{
    struct scratch *scratch = *state;
    pid_t child = fork();
    if (child == 0) {
        struct pw_lmdb_options options = options_of(scratch);
        struct pw_store *store = NULL;
        struct rlimit limit = { 6144 * MIB, 6144 * MIB };
        if (setrlimit(RLIMIT_AS, &limit) != 0)
            _exit(1);
        if (pw_lmdb_open(&store, &options, NULL) != PAWL_OK || try_put(store, 1, 100) != PAWL_OK)
            _exit(2);
        store->ops->close(store);
        _exit(0);
    }
    assert_int_equal(wait_for(child), 0);
}
#endif

/* --- readers ------------------------------------------------------------------------------ */

struct reader {
    struct pw_store *store;
    _Atomic bool *stop;
    uint64_t reads;
    bool wrong;
};

/* The writer keeps two rows or none; a reader must never see one. */
static void *read_until_stopped(void *arg)
{
    struct reader *reader = arg;
    while (!atomic_load(reader->stop) || reader->reads == 0) {
        struct pw_txn *txn = NULL;
        if (reader->store->ops->begin(reader->store, false, &txn) != PAWL_OK) {
            reader->wrong = true;
            break;
        }
        if (has_in(txn, reader->store, 1) != has_in(txn, reader->store, 2))
            reader->wrong = true;
        reader->store->ops->abort(txn);
        reader->reads++;
    }
    return NULL;
}

static void put_or_delete_two(struct pw_store *store, bool there)
{
    struct pw_txn *txn = begin(store, true);
    for (uint64_t row = 1; row <= 2; row++) {
        uint8_t key[8] = { 0 };
        pw_put_u64(key, row);
        pawl_bytes bytes = { key, 8 };
        assert_int_equal(there ? store->ops->put(txn, PW_ENTITY, bytes, bytes)
                               : store->ops->del(txn, PW_ENTITY, bytes),
                         PAWL_OK);
    }
    assert_int_equal(store->ops->commit(txn), PAWL_OK);
}

static void test_readers_beside_writer(void **state)
{
    struct scratch *scratch = *state;
    struct pw_store *store = open_store(scratch);
    _Atomic bool stop = false;
    pthread_t threads[4];
    struct reader readers[4];
    for (size_t i = 0; i < PW_COUNT(threads); i++) {
        readers[i] = (struct reader){ .store = store, .stop = &stop };
        assert_int_equal(pthread_create(&threads[i], NULL, read_until_stopped, &readers[i]), 0);
    }
    for (unsigned i = 0; i < 200; i++) {
        put_or_delete_two(store, i % 2 == 0);
        if (i % 20 == 0)
            assert_int_equal(store->ops->reopen(store, NULL), PAWL_OK);
    }
    atomic_store(&stop, true);
    for (size_t i = 0; i < PW_COUNT(threads); i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_false(readers[i].wrong);
        assert_true(readers[i].reads > 0);
    }
    store->ops->close(store);
}

static void test_too_many_readers(void **state)
{
    struct scratch *scratch = *state;
    struct pw_lmdb_options options = options_of(scratch);
    options.readers_max = 4; /* LMDB rounds up to what fits its lock file */
    struct pw_store *store = open_with(&options);
    static struct pw_txn *txns[1024];
    size_t open = 0;
    pawl_err err = PAWL_OK;
    while (open < PW_COUNT(txns)) {
        err = store->ops->begin(store, false, &txns[open]);
        if (err != PAWL_OK)
            break;
        open++;
    }
    assert_int_equal(err, PAWL_E_BUSY);
    put(store, 1, 100); /* the writer needs no slot */
    store->ops->abort(txns[--open]);
    assert_true(has(store, 1));
    while (open > 0)
        store->ops->abort(txns[--open]);
    assert_true(has(store, 1));
    assert_int_equal(store->ops->reopen(store, NULL), PAWL_OK);
    assert_true(has(store, 1));
    store->ops->close(store);
}

/* The writer runs in a child that also dies with a read transaction open. */
static void test_read_only_beside_writer(void **state)
{
    struct scratch *scratch = *state;
    int ready[2] = { -1, -1 };
    int go_on[2] = { -1, -1 };
    assert_int_equal(pipe(ready), 0);
    assert_int_equal(pipe(go_on), 0);
    pid_t child = fork();
    if (child == 0) {
        struct pw_lmdb_options options = options_of(scratch);
        struct pw_store *store = NULL;
        struct pw_txn *txn = NULL;
        if (pw_lmdb_open(&store, &options, NULL) != PAWL_OK || try_put(store, 1, 100) != PAWL_OK)
            _exit(1);
        send_byte(ready[1]);
        if (!receive_byte(go_on[0]) || try_put(store, 2, 100) != PAWL_OK ||
            store->ops->begin(store, false, &txn) != PAWL_OK)
            _exit(2);
        send_byte(ready[1]);
        for (;;)
            (void)pause();
    }
    struct pw_lmdb_options options = options_of(scratch);
    options.read_only = true;
    options.create = false;
    assert_true(receive_byte(ready[0]));
    struct pw_store *store = open_with(&options);
    assert_true(has(store, 1));
    assert_false(has(store, 2));
    send_byte(go_on[1]);
    assert_true(receive_byte(ready[0]));
    assert_true(has(store, 2));
    assert_int_equal(kill(child, SIGKILL), 0);
    (void)wait_for(child);
    assert_true(store->ops->tend(store, 1000000) > 0); /* frees the dead reader's slot */
    assert_int_equal(store->ops->reopen(store, NULL), PAWL_OK);
    assert_true(has(store, 2)); /* nobody writes any more */
    store->ops->close(store);
    store = open_with(&options);
    assert_true(has(store, 2));
    store->ops->close(store);
    for (int i = 0; i < 2; i++) {
        (void)close(ready[i]);
        (void)close(go_on[i]);
    }
}

/* --- full --------------------------------------------------------------------------------- */

static void test_full_map(void **state)
{
    struct scratch *scratch = *state;
    struct pw_lmdb_options options = options_of(scratch);
    options.map_bytes = 8 * MIB;
    struct pw_store *store = open_with(&options);
    uint64_t rows = 0;
    pawl_err err = PAWL_OK;
    assert_true(store->ops->fill_percent(store) < 10);
    while (rows < 100 && (err = try_put(store, rows, 256 * 1024)) == PAWL_OK)
        rows++;
    assert_int_equal(err, PAWL_E_FULL);
    assert_int_equal(count(store), rows);
    assert_true(store->ops->fill_percent(store) > PW_MAP_FILL_PERCENT);
    store->ops->close(store);

    options.map_bytes = 9 * MIB; /* "only growth helps"; then deletes make room */
    store = open_with(&options);
    struct pw_txn *txn = begin(store, true);
    for (uint64_t row = 0; row < rows / 2; row++) {
        uint8_t key[8] = { 0 };
        pw_put_u64(key, row);
        assert_int_equal(store->ops->del(txn, PW_ENTITY, (pawl_bytes){ key, 8 }), PAWL_OK);
    }
    assert_int_equal(store->ops->commit(txn), PAWL_OK);
    assert_true(store->ops->fill_percent(store) < 60); /* free pages count */
    put(store, 1000, 256 * 1024);
    store->ops->close(store);
}

/* Puts until it fails; the store must stay usable, and take more once there is room again. */
static pawl_err fill_up(struct pw_store *store, uint64_t *rows)
{
    pawl_err err = PAWL_OK;
    while (*rows < 1000 && (err = try_put(store, *rows, 100 * 1024 + 17)) == PAWL_OK)
        ++*rows;
    return err;
}

static void limit_files(rlim_t bytes)
{
    struct rlimit limit = { 0 };
    if (getrlimit(RLIMIT_FSIZE, &limit) != 0)
        _exit(10);
    limit.rlim_cur = bytes;
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0)
        _exit(11);
}

/* In a child, for the limit is the process's. Exit codes say where it went wrong. */
static void test_full_by_limit(void **state)
{
    struct scratch *scratch = *state;
    pid_t child = fork();
    if (child == 0) {
        struct pw_lmdb_options options = options_of(scratch);
        struct pw_store *store = NULL;
        uint64_t rows = 0;
        (void)signal(SIGXFSZ, SIG_IGN);
        if (pw_lmdb_open(&store, &options, NULL) != PAWL_OK)
            _exit(1);
        limit_files(4 * MIB + 1234);
        if (fill_up(store, &rows) != PAWL_E_FULL)
            _exit(2);
        uint64_t before = rows;
        if (fill_up(store, &rows) != PAWL_E_FULL || !has(store, 0) || has(store, rows))
            _exit(3);
        limit_files(64 * MIB);
        if (try_put(store, rows, 1000) != PAWL_OK || !has(store, rows) || rows != before)
            _exit(4);
        store->ops->close(store);
        _exit(0);
    }
    assert_int_equal(wait_for(child), 0);
    struct pw_store *store = open_store(scratch);
    assert_true(count(store) > 20);
    store->ops->close(store);
}

static void write_ballast(const char *path, size_t bytes)
{
    static const uint8_t page[PAGE];
    int file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(file >= 0);
    for (size_t i = 0; i < bytes / PAGE; i++)
        assert_int_equal(write(file, page, PAGE), PAGE);
    assert_int_equal(close(file), 0);
}

static void test_full_disk(void **state)
{
    struct scratch *scratch = *state;
    if (mount("tmpfs", scratch->dir, "tmpfs", 0, "size=4m") != 0) {
        print_message("mount of a tmpfs: %s; RLIMIT_FSIZE has stood in for it\n", strerror(errno));
        return;
    }
    char ballast[300] = "";
    pw_print(ballast, sizeof(ballast), "%s/ballast", scratch->dir);
    write_ballast(ballast, 1 * MIB);
    struct pw_store *store = open_store(scratch);
    uint64_t rows = 0;
    assert_int_equal(fill_up(store, &rows), PAWL_E_FULL);
    assert_int_equal(fill_up(store, &rows), PAWL_E_FULL);
    assert_int_equal(count(store), rows);
    static struct pw_txn *readers[500]; /* a sparse lock file would be a SIGBUS at the 64th */
    for (size_t i = 0; i < PW_COUNT(readers); i++)
        readers[i] = begin(store, false);
    for (size_t i = 0; i < PW_COUNT(readers); i++)
        store->ops->abort(readers[i]);
    assert_int_equal(unlink(ballast), 0);
    put(store, rows, 1000);
    assert_int_equal(store->ops->reopen(store, NULL), PAWL_OK);
    assert_int_equal(count(store), rows + 1);
    store->ops->close(store);

    write_ballast(ballast, 0);
    char second[320] = "";
    struct pw_lmdb_options options = options_of(scratch);
    pw_print(second, sizeof(second), "%s/shard-1", scratch->dir);
    int file = open(ballast, O_WRONLY | O_CLOEXEC);
    static const uint8_t page[PAGE];
    while (write(file, page, PAGE) == PAGE)
        continue;
    assert_int_equal(close(file), 0);
    options.dir = second;
    assert_int_equal(pw_lmdb_open(&store, &options, NULL), PAWL_E_FULL); /* all or nothing */
    assert_int_equal(access(second, F_OK), -1);
    assert_int_equal(umount(scratch->dir), 0);
}

#define IN_SCRATCH(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_SCRATCH(test_makes_whole_store),
        IN_SCRATCH(test_refuses_empty_and_garbage),
        IN_SCRATCH(test_refuses_damaged_head),
        IN_SCRATCH(test_refuses_cut),
        IN_SCRATCH(test_opens_short_but_whole),
        IN_SCRATCH(test_refuses_foreign),
        IN_SCRATCH(test_refuses_newer_schema),
        IN_SCRATCH(test_lock_file),
        IN_SCRATCH(test_out_of_memory),
        IN_SCRATCH(test_file_larger_than_map),
        IN_SCRATCH(test_owner),
        IN_SCRATCH(test_kill_loses_nothing),
        IN_SCRATCH(test_interval),
        IN_SCRATCH(test_reopen_fails_and_recovers),
#ifndef SANITIZED
        IN_SCRATCH(test_few_addresses),
#endif
        IN_SCRATCH(test_readers_beside_writer),
        IN_SCRATCH(test_too_many_readers),
        IN_SCRATCH(test_read_only_beside_writer),
        IN_SCRATCH(test_full_map),
        IN_SCRATCH(test_full_by_limit),
        IN_SCRATCH(test_full_disk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
