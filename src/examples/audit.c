/* SPDX-License-Identifier: Apache-2.0
 *
 * audit: is every installed package what Debian shipped? An entity is a package: its id is the name
 * of its checksum list, with the architecture where the list has it ("libc6:amd64"). One working
 * state reads the files and decides; the entity's data then names the altered ones.
 *
 *     dpkg-query -W -f '${binary:Package}\n' | ... | audit --dir D create
 *     audit --dir D run
 *
 * Environment: AUDIT_INFO, the directory of the lists (/var/lib/dpkg/info); AUDIT_ROOT, what they
 * are relative to (/); AUDIT_RUNS_LOG, a file that gets a line "<id> <epoch> <attempt> <pid>" for
 * every run of the work: what really happened, to be held against what the store says happened. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "examples/package.h"
#include "pawl/pawl.h"

enum { CHECKING, INTACT, ALTERED, UNLISTED };
enum { FOUND_INTACT, FOUND_ALTERED, FOUND_UNLISTED };

/* What the work needs to know. Constant once main() has read the environment. */
struct auditor {
    const char *info;
    const char *root;
    int runs_fd; /* -1: nobody asks */
};

/* One write to a file opened for appending: whole lines, however many processes write. */
static void log_run(const struct auditor *auditor, const pawl_task *task)
{
    char line[256];

    if (auditor->runs_fd < 0)
        return;
    int size = snprintf(line, sizeof(line), "%s %" PRIu64 " %" PRIu32 " %ld\n", pawl_task_id(task),
                        pawl_task_epoch(task), pawl_task_attempt(task), (long)getpid());
    if (write(auditor->runs_fd, line, (size_t)size) != size)
        (void)fprintf(stderr, "audit: a run of %s is not in the log\n", pawl_task_id(task));
}

static bool give_up(const void *arg)
{
    return pawl_task_cancelled(arg);
}

static pawl_outcome outcome(pawl_task *task, enum package_verdict verdict,
                            const struct package_report *report)
{
    switch (verdict) {
    case PACKAGE_INTACT:
        return pawl_raise(FOUND_INTACT);
    case PACKAGE_ALTERED:
        pawl_task_save(task, (pawl_bytes){ .data = report->text, .size = report->size });
        return pawl_raise(FOUND_ALTERED);
    case PACKAGE_UNLISTED:
        return pawl_raise(FOUND_UNLISTED);
    case PACKAGE_UNREAD:
        return pawl_retry(report->why);
    case PACKAGE_CANCELLED:
        return pawl_retry("given up: the outcome was of no more use");
    case PACKAGE_BAD_NAME:
    default:
        return pawl_fail("no package is called so");
    }
}

static pawl_outcome check(pawl_task *task)
{
    const struct auditor *auditor = pawl_task_env(task);
    const struct package_audit audit = {
        .info = auditor->info,
        .root = auditor->root,
        .give_up = give_up,
        .arg = task,
    };

    log_run(auditor, task);
    struct package_report *report = malloc(sizeof(*report));
    if (report == NULL)
        return pawl_retry("out of memory");
    enum package_verdict verdict = package_check(&audit, pawl_task_id(task), report);
    pawl_outcome result = outcome(task, verdict, report);
    free(report);
    return result;
}

/* Checking has no edge for PAWL_FAILED: what cannot be read after all attempts parks, and waits for
 * a person and `audit retry`. */
static const pawl_state states[] = {
    [CHECKING] = { .name = "checking", .flags = PAWL_START, .work = check, .backoff_ms = 500 },
    [INTACT] = { .name = "intact", .flags = PAWL_FINAL },
    [ALTERED] = { .name = "altered", .flags = PAWL_FINAL },
    [UNLISTED] = { .name = "unlisted", .flags = PAWL_FINAL },
};

static const char *const events[] = {
    [FOUND_INTACT] = "intact",
    [FOUND_ALTERED] = "altered",
    [FOUND_UNLISTED] = "unlisted",
};

/* clang-format off */
static const pawl_edge edges[] = {
    { .from = CHECKING, .event = FOUND_INTACT,   .to = INTACT },
    { .from = CHECKING, .event = FOUND_ALTERED,  .to = ALTERED },
    { .from = CHECKING, .event = FOUND_UNLISTED, .to = UNLISTED },
};
/* clang-format on */

static const pawl_machine audit_machine = {
    .name = "audit",
    PAWL_STATES(states),
    PAWL_EVENTS(events),
    PAWL_EDGES(edges),
    .workers = 4,
    .key_share = 100, /* all packages have the same key, and may have all threads */
};

static const char *env_or(const char *name, const char *fallback)
{
    const char *value = getenv(name);
    return value != NULL && value[0] != '\0' ? value : fallback;
}

int main(int argc, char **argv)
{
    static struct auditor auditor;
    const char *runs = getenv("AUDIT_RUNS_LOG");

    auditor.info = env_or("AUDIT_INFO", "/var/lib/dpkg/info");
    auditor.root = env_or("AUDIT_ROOT", "/");
    auditor.runs_fd = -1;
    if (runs != NULL) {
        auditor.runs_fd = open(runs, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
        if (auditor.runs_fd < 0) {
            (void)fprintf(stderr, "audit: %s: %s\n", runs, strerror(errno));
            return EXIT_FAILURE;
        }
    }
    const pawl_unit units[] = { { .machine = &audit_machine, .env = &auditor }, { 0 } };
    return pawl_main(argc, argv, units);
}
