/* SPDX-License-Identifier: Apache-2.0
 *
 * How much room there is, in the map and on the disk. Writer thread. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lmdb/env.h"

pawl_err pw_lmdb_used_pages(MDB_env *env, size_t *used, size_t *pages)
{
    MDB_envinfo info = { 0 };
    MDB_stat stat = { 0 };
    int code = mdb_env_info(env, &info);
    if (code == MDB_SUCCESS)
        code = mdb_env_stat(env, &stat);
    if (code != MDB_SUCCESS)
        return pw_lmdb_err(code);
    *used = info.me_last_pgno + 1;
    *pages = info.me_mapsize / stat.ms_psize;
    return PAWL_OK;
}

pawl_err pw_lmdb_free_pages(MDB_txn *txn, size_t *pages)
{
    MDB_cursor *cursor = NULL;
    MDB_val k = { 0 };
    MDB_val v = { 0 };
    size_t sum = 0;
    int code = mdb_cursor_open(txn, 0, &cursor);
    if (code != MDB_SUCCESS)
        return pw_lmdb_err(code);
    while ((code = mdb_cursor_get(cursor, &k, &v, MDB_NEXT)) == MDB_SUCCESS) {
        size_t here = 0;
        memcpy(&here, v.mv_data, sizeof(here));
        sum += here;
    }
    mdb_cursor_close(cursor);
    if (code != MDB_NOTFOUND)
        return pw_lmdb_err(code);
    *pages = sum;
    return PAWL_OK;
}

bool pw_lmdb_out_of_room(MDB_env *env)
{
    static const uint8_t page[4096];
    mdb_filehandle_t file = -1;
    struct stat status = { 0 };
    if (mdb_env_get_fd(env, &file) != MDB_SUCCESS || fstat(file, &status) != 0)
        return false;
    ssize_t size = pwrite(file, page, sizeof(page), status.st_size);
    if (size < 0)
        return pw_lmdb_err(errno) == PAWL_E_FULL;
    if (size > 0 && ftruncate(file, status.st_size) != 0)
        return false;
    return size < (ssize_t)sizeof(page);
}
