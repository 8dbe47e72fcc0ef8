/* SPDX-License-Identifier: Apache-2.0
 *
 * See package.h. Files are opened as `md5sum -c` opens them: relative to the root directory, and
 * through symbolic links. */
#include "examples/package.h"

#include <errno.h>
#include <fcntl.h>
#include <md5.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "examples/md5list.h"

/* Room for "... and <20 digits> more\n". */
#define TAIL_MAX 40

static void report_name(struct package_report *report, const char *name)
{
    size_t size = strlen(name);

    if (report->more > 0 || report->size + size + 1 + TAIL_MAX > sizeof(report->text)) {
        report->more++; /* also the short ones after it: the names are the first N */
        return;
    }
    memcpy(report->text + report->size, name, size);
    report->size += size;
    report->text[report->size++] = '\n';
}

static void report_close(struct package_report *report)
{
    if (report->more == 0)
        return;
    int size = snprintf(report->text + report->size, TAIL_MAX, "... and %zu more\n", report->more);
    report->size += (size_t)size;
}

static enum package_verdict unread(struct package_report *report, const char *what, int error)
{
    char text[64] = "";

    if (strerror_r(error, text, sizeof(text)) != 0)
        (void)snprintf(text, sizeof(text), "error %d", error);
    (void)snprintf(report->why, sizeof(report->why), "%.180s: %s", what, text);
    return PACKAGE_UNREAD;
}

/* Errors that are about the machine, not the file. */
static bool passes(int error)
{
    switch (error) {
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case EINTR:
    case EAGAIN:
    case EIO:
    case ESTALE:
    case ETIMEDOUT:
        return true;
    default:
        return false;
    }
}

/* 0, or why it could not be read. */
static int digest_fd(int fd, uint8_t digest[MD5_DIGEST_LENGTH])
{
    uint8_t block[64 * 1024];
    struct stat about = { 0 };
    MD5_CTX md5;

    if (fstat(fd, &about) != 0)
        return errno;
    if (!S_ISREG(about.st_mode))
        return S_ISDIR(about.st_mode) ? EISDIR : EINVAL; /* a pipe would have us wait */
    MD5Init(&md5);
    for (;;) {
        ssize_t size = read(fd, block, sizeof(block));
        if (size < 0 && errno == EINTR)
            continue;
        if (size < 0)
            return errno;
        if (size == 0)
            break;
        MD5Update(&md5, block, (size_t)size);
    }
    MD5Final(digest, &md5);
    return 0;
}

static int digest_file(int root, const char *name, uint8_t digest[MD5_DIGEST_LENGTH])
{
    int fd = openat(root, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return errno;
    int error = digest_fd(fd, digest);
    (void)close(fd); /* only read */
    return error;
}

/* Judges one line: INTACT, ALTERED or UNREAD. */
static enum package_verdict check_line(int root, const char *text, struct package_report *report)
{
    struct md5list_line line = { .listed = NULL };
    uint8_t digest[MD5_DIGEST_LENGTH] = { 0 };

    enum md5list_kind kind = md5list_parse(text, &line);
    if (kind == MD5LIST_NOTHING)
        return PACKAGE_INTACT;
    if (kind == MD5LIST_BAD) {
        report_name(report, text); /* nothing vouches for the file that it meant */
        return PACKAGE_ALTERED;
    }
    int error = digest_file(root, line.name, digest);
    if (passes(error))
        return unread(report, line.name, error);
    if (error == 0 && memcmp(digest, line.digest, sizeof(digest)) == 0)
        return PACKAGE_INTACT;
    report_name(report, line.listed);
    return PACKAGE_ALTERED;
}

/* Reads a line and cuts its end off. A line with a zero byte, or too long, comes in pieces, which
 * are no lines of a list: they are reported. */
static bool next_line(FILE *list, char text[MD5LIST_LINE_MAX])
{
    if (fgets(text, MD5LIST_LINE_MAX, list) == NULL)
        return false;
    size_t size = strlen(text);
    if (size > 0 && text[size - 1] == '\n')
        text[--size] = '\0';
    if (size > 0 && text[size - 1] == '\r')
        text[--size] = '\0';
    return true;
}

static enum package_verdict check_list(const struct package_audit *audit, int root, FILE *list,
                                       struct package_report *report)
{
    enum package_verdict verdict = PACKAGE_INTACT;
    char text[MD5LIST_LINE_MAX] = "";

    while (next_line(list, text)) {
        if (audit->give_up(audit->arg))
            return PACKAGE_CANCELLED;
        enum package_verdict line = check_line(root, text, report);
        if (line == PACKAGE_UNREAD)
            return line;
        if (line == PACKAGE_ALTERED)
            verdict = line;
    }
    if (ferror(list))
        return unread(report, "the list", errno);
    report_close(report);
    return verdict;
}

/* A name comes from anybody: it must stay in the info directory. */
static bool good_name(const char *package)
{
    return package[0] != '\0' && package[0] != '.' && strchr(package, '/') == NULL;
}

/* NULL: errno says why. */
static FILE *open_list(const char *info, const char *package)
{
    char path[4096];

    int size = snprintf(path, sizeof(path), "%s/%s.md5sums", info, package);
    if (size < 0 || (size_t)size >= sizeof(path)) {
        errno = ENAMETOOLONG;
        return NULL;
    }
    return fopen(path, "re");
}

enum package_verdict package_check(const struct package_audit *audit, const char *package,
                                   struct package_report *report)
{
    report->size = 0;
    report->more = 0;
    report->why[0] = '\0';
    if (!good_name(package))
        return PACKAGE_BAD_NAME;
    FILE *list = open_list(audit->info, package);
    if (list == NULL)
        return errno == ENOENT ? PACKAGE_UNLISTED : unread(report, package, errno);
    enum package_verdict verdict = PACKAGE_UNREAD;
    int root = open(audit->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (root < 0)
        verdict = unread(report, audit->root, errno);
    else
        verdict = check_list(audit, root, list, report);
    if (root >= 0)
        (void)close(root);
    (void)fclose(list);
    return verdict;
}
