/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks the files of one installed Debian package against the checksums that dpkg keeps. Reads
 * only, knows nothing of pawl, keeps nothing between two calls: any number of threads at once. */
#ifndef EXAMPLES_PACKAGE_H
#define EXAMPLES_PACKAGE_H

#include <stdbool.h>
#include <stddef.h>

/* The report's bound: what a pawl entity's data may hold. */
#define PACKAGE_REPORT_MAX ((size_t)256 * 1024)

enum package_verdict {
    PACKAGE_INTACT,    /* every listed file is what it was */
    PACKAGE_ALTERED,   /* some are not, or are gone, or cannot be read; the report names them */
    PACKAGE_UNLISTED,  /* there is no list */
    PACKAGE_BAD_NAME,  /* no package is called so */
    PACKAGE_UNREAD,    /* the machine was in the way, as with too many open files: try again */
    PACKAGE_CANCELLED, /* give_up said so */
};

struct package_audit {
    const char *info;                 /* the directory of <package>.md5sums */
    const char *root;                 /* what the listed names are relative to */
    bool (*give_up)(const void *arg); /* asked between two files */
    const void *arg;
};

/* Names as the list spells them, each with a '\n'; those that do not fit are counted by a last
 * line "... and N more". Large: not for the stack. */
struct package_report {
    size_t size;
    size_t more;
    char why[256]; /* of PACKAGE_UNREAD */
    char text[PACKAGE_REPORT_MAX];
};

/* *report is written from its beginning, whatever it held. */
enum package_verdict package_check(const struct package_audit *audit, const char *package,
                                   struct package_report *report);

#endif
