/* SPDX-License-Identifier: Apache-2.0
 *
 * An environment, whole or not at all: made aside and renamed, checked before LMDB sees it, and
 * refused unless it is ours. Called by the thread that opens the store. */
#include <errno.h>
#include <string.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "base/limits.h"
#include "lmdb/env.h"

#define GIB (1024ull * 1024 * 1024)
#define MAP_BYTES_DEFAULT                                                                          \
    (sizeof(void *) > 4 ? 1024 * GIB : GIB) /* sparse: costs addresses only                        \
                                             */
#define MAP_BYTES_MIN GIB                   /* where falling back ends when addresses are short */
#define MAP_ROUND (1024ull * 1024)
#define READERS_DEFAULT 1024
/* LMDB's lock file: at most so many bytes of head, then a cache line a reader. */
#define LOCK_HEAD_SIZE 512
#define LOCK_READER_SIZE 64
#define LOCK_ROUND 4096
#define SCHEMA_MAGIC "pawl"
#define SCHEMA_SIZE 8 /* the magic and a big-endian 32-bit version */

static const char *const table_names[PW_TABLES] = {
    [PW_META] = "meta", [PW_ID] = "id",         [PW_ENTITY] = "entity",   [PW_STATE] = "state",
    [PW_DUE] = "due",   [PW_OUTBOX] = "outbox", [PW_HISTORY] = "history",
};

pawl_err pw_lmdb_err(int code)
{
    switch (code) {
    case MDB_SUCCESS:
        return PAWL_OK;
    case MDB_NOTFOUND:
        return PAWL_E_NOT_FOUND;
    case MDB_MAP_FULL:
    case MDB_TXN_FULL:
    case ENOSPC:
    case EDQUOT:
    case EFBIG: /* RLIMIT_FSIZE */
        return PAWL_E_FULL;
    case MDB_CORRUPTED:
    case MDB_PAGE_NOTFOUND:
    case MDB_INVALID:
    case MDB_VERSION_MISMATCH:
        return PAWL_E_CORRUPT;
    case MDB_READERS_FULL:
        return PAWL_E_BUSY;
    case ENOMEM:
        return PAWL_E_NOMEM;
    default: /* MDB_PANIC, MDB_BAD_TXN, EIO and the rest: reopen */
        return PAWL_E_IO;
    }
}

static pawl_err failed(pawl_why *why, int code, const char *doing, const char *dir)
{
    return pw_fail(why, pw_lmdb_err(code), "%s %s: %s", doing, dir, mdb_strerror(code));
}

static uint32_t readers_of(const struct pw_lmdb_options *options)
{
    return options->readers_max > 0 ? options->readers_max : READERS_DEFAULT;
}

static uint32_t get_u32(const uint8_t *from)
{
    return (uint32_t)from[0] << 24 | (uint32_t)from[1] << 16 | (uint32_t)from[2] << 8 | from[3];
}

static pawl_err check_schema(MDB_txn *txn, MDB_dbi meta, const char *dir, pawl_why *why)
{
    MDB_val key = { strlen(PW_SCHEMA_KEY), PW_SCHEMA_KEY };
    MDB_val value = { 0 };
    int code = mdb_get(txn, meta, &key, &value);
    if (code != MDB_SUCCESS && code != MDB_NOTFOUND)
        return failed(why, code, "read the schema of", dir);
    if (code == MDB_NOTFOUND || value.mv_size < SCHEMA_SIZE ||
        memcmp(value.mv_data, SCHEMA_MAGIC, strlen(SCHEMA_MAGIC)) != 0)
        return pw_fail(why, PAWL_E_SCHEMA, "%s: an LMDB file, but not pawl's", dir);
    uint32_t version = get_u32((const uint8_t *)value.mv_data + strlen(SCHEMA_MAGIC));
    if (version != PW_SCHEMA_VERSION)
        return pw_fail(why, PAWL_E_SCHEMA, "%s has schema %u, this pawl reads schema %u", dir,
                       (unsigned)version, (unsigned)PW_SCHEMA_VERSION);
    return PAWL_OK;
}

static pawl_err open_tables(struct pw_lmdb_env *env, MDB_txn *txn, const char *dir, pawl_why *why)
{
    int code = mdb_dbi_open(txn, table_names[PW_META], 0, &env->tables[PW_META]);
    if (code == MDB_NOTFOUND || code == MDB_INCOMPATIBLE)
        return pw_fail(why, PAWL_E_SCHEMA, "%s: an LMDB file, but not pawl's", dir);
    if (code != MDB_SUCCESS)
        return failed(why, code, "open the tables of", dir);
    pawl_err err = check_schema(txn, env->tables[PW_META], dir, why);
    for (int i = PW_META + 1; i < PW_TABLES && err == PAWL_OK; i++) {
        code = mdb_dbi_open(txn, table_names[i], 0, &env->tables[i]);
        if (code == MDB_NOTFOUND || code == MDB_INCOMPATIBLE)
            err = pw_fail(why, PAWL_E_CORRUPT, "%s: table %s is missing", dir, table_names[i]);
        else if (code != MDB_SUCCESS)
            err = failed(why, code, "open the tables of", dir);
    }
    return err;
}

static int make_tables(MDB_txn *txn)
{
    MDB_dbi tables[PW_TABLES] = { 0 };
    uint8_t schema[SCHEMA_SIZE] = { 'p', 'a', 'w', 'l', 0, 0, 0, PW_SCHEMA_VERSION };
    MDB_val key = { strlen(PW_SCHEMA_KEY), PW_SCHEMA_KEY };
    MDB_val value = { sizeof(schema), schema };
    int code = MDB_SUCCESS;
    for (int i = 0; i < PW_TABLES && code == MDB_SUCCESS; i++)
        code = mdb_dbi_open(txn, table_names[i], MDB_CREATE, &tables[i]);
    return code == MDB_SUCCESS ? mdb_put(txn, tables[PW_META], &key, &value, 0) : code;
}

/* One attempt with one size of map. *env is NULL unless it succeeds. */
static int open_env(MDB_env **env, const char *dir, const struct pw_lmdb_options *options,
                    uint64_t map_bytes)
{
    MDB_env *opened = NULL;
    unsigned flags = MDB_NOTLS;
    if (options->read_only)
        flags |= MDB_RDONLY;
    if (options->sync_interval_ms > 0)
        flags |= MDB_NOSYNC;
    int code = mdb_env_create(&opened);
    if (code != MDB_SUCCESS)
        return code;
    code = mdb_env_set_mapsize(opened, (size_t)map_bytes);
    if (code == MDB_SUCCESS)
        code = mdb_env_set_maxdbs(opened, PW_TABLES);
    if (code == MDB_SUCCESS)
        code = mdb_env_set_maxreaders(opened, readers_of(options));
    if (code == MDB_SUCCESS)
        code = mdb_env_open(opened, dir, flags, 0640);
    if (code == MDB_SUCCESS)
        *env = opened;
    else
        mdb_env_close(opened);
    return code;
}

/* Where addresses are short (ulimit -v, small machines), half as many are asked for until it works.
 */
static int open_mapped(MDB_env **env, const char *dir, const struct pw_lmdb_options *options,
                       uint64_t file_bytes)
{
    uint64_t map_bytes = options->map_bytes > 0 ? options->map_bytes : MAP_BYTES_DEFAULT;
    uint64_t least = (file_bytes + MAP_ROUND - 1) / MAP_ROUND * MAP_ROUND;
    if (map_bytes < least)
        map_bytes = least;
    for (;;) {
        int code = open_env(env, dir, options, map_bytes);
        map_bytes /= 2;
        if (code != ENOMEM || map_bytes < MAP_BYTES_MIN || map_bytes < least)
            return code;
    }
}

/* LMDB maps the lock file sparse: on a full disk the first touch of a page in it is a SIGBUS, when
 * opening or at the 64th reader. So it gets all its blocks before, unless another process uses it
 * (LMDB's own test: a lock on byte 0), which has seen to that. Closing the file drops LMDB's locks
 * of this process, so only before LMDB opens it. */
static int fill_lock_file(int file, uint32_t readers_max)
{
    struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1 };
    struct stat status = { 0 };
    if (fcntl(file, F_SETLK, &whole) != 0)
        return errno == EAGAIN || errno == EACCES ? 0 : errno;
    if (fstat(file, &status) != 0)
        return errno;
    off_t size = LOCK_HEAD_SIZE + (off_t)readers_max * LOCK_READER_SIZE;
    size = (size + LOCK_ROUND - 1) / LOCK_ROUND * LOCK_ROUND;
    return posix_fallocate(file, 0, size > status.st_size ? size : status.st_size);
}

static pawl_err prepare_lock_file(const char *dir, const struct pw_lmdb_options *options,
                                  pawl_why *why)
{
    char path[PW_PATH_MAX] = "";
    pw_print(path, sizeof(path), "%s/lock.mdb", dir);
    int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0640);
    if (file < 0 && errno == EROFS && options->read_only)
        return PAWL_OK; /* LMDB reads without it then */
    int code = file < 0 ? errno : fill_lock_file(file, readers_of(options));
    if (file >= 0)
        (void)close(file); /* nothing was written through it */
    return code == 0 ? PAWL_OK : failed(why, code, "open", path);
}

static int sync_dir(const char *dir)
{
    int file = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (file < 0)
        return errno;
    int code = fsync(file) == 0 ? 0 : errno;
    (void)close(file); /* it was opened for reading */
    return code;
}

static int sync_parent(const char *dir)
{
    char parent[PW_PATH_MAX] = "";
    pw_print(parent, sizeof(parent), "%s", dir);
    size_t size = strlen(parent);
    while (size > 1 && parent[size - 1] == '/')
        parent[--size] = '\0';
    char *slash = strrchr(parent, '/');
    if (slash == NULL)
        return sync_dir(".");
    slash[slash == parent ? 1 : 0] = '\0';
    return sync_dir(parent);
}

/* What a crash left behind while making it. Nothing but our two files can be in there. */
static void remove_leftover(const char *dir)
{
    char path[PW_PATH_MAX] = "";
    pw_print(path, sizeof(path), "%s/data.mdb", dir);
    (void)unlink(path); /* mkdir will say what is in the way */
    pw_print(path, sizeof(path), "%s/lock.mdb", dir);
    (void)unlink(path);
    (void)rmdir(dir);
}

static pawl_err fill_new(const char *dir, const struct pw_lmdb_options *options, pawl_why *why)
{
    struct pw_lmdb_options durable = *options;
    durable.sync_interval_ms = 0;
    durable.read_only = false;
    MDB_env *env = NULL;
    MDB_txn *txn = NULL;
    pawl_err err = prepare_lock_file(dir, &durable, why);
    if (err != PAWL_OK)
        return err;
    int code = open_mapped(&env, dir, &durable, 0);
    if (code == MDB_SUCCESS)
        code = mdb_txn_begin(env, NULL, 0, &txn);
    if (code == MDB_SUCCESS)
        code = make_tables(txn);
    if (code == MDB_SUCCESS)
        code = mdb_txn_commit(txn);
    else if (txn != NULL)
        mdb_txn_abort(txn);
    if (env != NULL)
        mdb_env_close(env);
    return code == MDB_SUCCESS ? PAWL_OK : failed(why, code, "fill", dir);
}

/* The data directory's lock keeps others from doing the same. */
static pawl_err make(const struct pw_lmdb_options *options, pawl_why *why)
{
    const char *dir = options->dir;
    char fresh[PW_PATH_MAX] = "";
    size_t size = strlen(dir);
    while (size > 1 && dir[size - 1] == '/')
        size--;
    pw_print(fresh, sizeof(fresh), "%.*s.new", (int)size, dir);
    remove_leftover(fresh);
    if (mkdir(fresh, 0750) != 0)
        return failed(why, errno, "make", fresh);
    pawl_err err = fill_new(fresh, options, why);
    int code = err == PAWL_OK ? sync_dir(fresh) : 0;
    if (err == PAWL_OK && code == 0)
        code = rename(fresh, dir) == 0 ? sync_parent(dir) : errno;
    if (code != 0)
        err = failed(why, code, "make", dir);
    if (err != PAWL_OK)
        remove_leftover(fresh);
    return err;
}

static pawl_err make_when_missing(const struct pw_lmdb_options *options, pawl_why *why)
{
    struct stat status = { 0 };
    if (strlen(options->dir) + sizeof(".new/data.mdb") > PW_PATH_MAX)
        return pw_fail(why, PAWL_E_IO, "%.64s...: the path is too long", options->dir);
    if (lstat(options->dir, &status) == 0)
        return PAWL_OK;
    if (errno != ENOENT)
        return failed(why, errno, "look at", options->dir);
    if (!options->create || options->read_only)
        return pw_fail(why, PAWL_E_IO, "%s: no store there", options->dir);
    return make(options, why);
}

static pawl_err open_checked(struct pw_lmdb_env *env, const struct pw_lmdb_options *options,
                             uint64_t file_bytes, pawl_why *why)
{
    pawl_err err = prepare_lock_file(options->dir, options, why);
    if (err != PAWL_OK)
        return err;
    int code = open_mapped(&env->env, options->dir, options, file_bytes);
    if (code == MDB_INVALID || code == MDB_VERSION_MISMATCH) /* the data file was found sound */
        return pw_fail(why, PAWL_E_IO, "%s/lock.mdb is no lock file of this LMDB: %s", options->dir,
                       mdb_strerror(code));
    if (code != MDB_SUCCESS)
        return failed(why, code, "open", options->dir);
    MDB_txn *txn = NULL;
    code = mdb_txn_begin(env->env, NULL, MDB_RDONLY, &txn);
    if (code != MDB_SUCCESS)
        return failed(why, code, "read", options->dir);
    err = open_tables(env, txn, options->dir, why);
    if (err != PAWL_OK) {
        mdb_txn_abort(txn);
        return err;
    }
    code = mdb_txn_commit(txn); /* keeps the tables' handles */
    return code == MDB_SUCCESS ? PAWL_OK : failed(why, code, "read", options->dir);
}

pawl_err pw_lmdb_env_open(struct pw_lmdb_env *env, const struct pw_lmdb_options *options,
                          pawl_why *why)
{
    struct pw_lmdb_env opened = { 0 };
    uint64_t file_bytes = 0;
    pawl_err err = make_when_missing(options, why);
    if (err == PAWL_OK)
        err = pw_lmdb_check(options->dir, &file_bytes, why);
    if (err == PAWL_OK)
        err = open_checked(&opened, options, file_bytes, why);
    if (err == PAWL_OK)
        *env = opened;
    else
        pw_lmdb_env_close(&opened);
    return err;
}

void pw_lmdb_env_close(struct pw_lmdb_env *env)
{
    if (env->env != NULL)
        mdb_env_close(env->env);
    env->env = NULL;
}
