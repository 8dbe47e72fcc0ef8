/* SPDX-License-Identifier: Apache-2.0
 *
 * The lock of a data directory: flock on "<dir>/owner". The kernel frees it when the process ends,
 * however it ends. What the file says serves people only. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "lmdb/env.h"

#define OWNER_TEXT_MAX 128 /* a pid and a host name (POSIX: 64 bytes) */

/* The owner may be between locking and writing: then the text is empty. */
static pawl_err refuse(int file, const char *dir, pawl_why *why)
{
    char text[OWNER_TEXT_MAX + 1] = "";
    ssize_t size = pread(file, text, OWNER_TEXT_MAX, 0);
    text[size > 0 ? size : 0] = '\0';
    text[strcspn(text, "\n")] = '\0';
    char *host = strchr(text, ' ');
    if (host == NULL)
        return pw_fail(why, PAWL_E_LOCKED, "%s is owned by another process", dir);
    *host++ = '\0';
    return pw_fail(why, PAWL_E_LOCKED, "%s is owned by process %s on host %s", dir, text, host);
}

/* The lock holds whether this succeeds or not: a full disk must not keep us from starting. */
static void write_owner(int file)
{
    char host[OWNER_TEXT_MAX / 2] = "";
    if (gethostname(host, sizeof(host) - 1) != 0)
        pw_print(host, sizeof(host), "?");
    char text[OWNER_TEXT_MAX] = "";
    pw_print(text, sizeof(text), "%ld %s\n", (long)getpid(), host);
    bool empty = ftruncate(file, 0) == 0;
    bool whole = empty && pwrite(file, text, strlen(text), 0) == (ssize_t)strlen(text);
    if (empty && !whole) /* better nothing than half a name; if that fails too, it is half a name */
        (void)!ftruncate(file, 0);
}

pawl_err pw_lmdb_lock(const char *dir, int *lock, pawl_why *why)
{
    char path[PW_PATH_MAX] = "";
    if (strlen(dir) + sizeof("/owner") > sizeof(path))
        return pw_fail(why, PAWL_E_IO, "%.64s...: the path is too long", dir);
    pw_print(path, sizeof(path), "%s/owner", dir);
    if (mkdir(dir, 0750) != 0 && errno != EEXIST)
        return pw_fail(why, pw_lmdb_err(errno), "make %s: %s", dir, strerror(errno));
    int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0640);
    if (file < 0)
        return pw_fail(why, pw_lmdb_err(errno), "open %s: %s", path, strerror(errno));

    pawl_err err = PAWL_OK;
    if (flock(file, LOCK_EX | LOCK_NB) == 0) {
        write_owner(file);
        *lock = file;
        return PAWL_OK;
    }
    if (errno == EWOULDBLOCK)
        err = refuse(file, dir, why);
    else
        err = pw_fail(why, PAWL_E_IO, "lock %s: %s", path, strerror(errno));
    (void)close(file); /* nothing was written through it */
    return err;
}

void pw_lmdb_unlock(int lock)
{
    if (lock >= 0)
        (void)close(
            lock); /* frees the lock; the file stays, so that nobody locks a name that is gone */
}
