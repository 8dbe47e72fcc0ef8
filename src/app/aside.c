/* SPDX-License-Identifier: Apache-2.0
 *
 * See aside.h. Called by writers' threads, under a lock of its own. */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "app/aside.h"
#include "app/text.h"
#include "base/base.h"

#define PATH_SIZE 4096

struct aside {
    pthread_mutex_t lock;
    struct pw_clock clock;
    char path[PATH_SIZE];
    char dir[PATH_SIZE];
    int fd; /* -1: not made yet */
};

static bool set_record(json_t *line, pawl_bytes record)
{
    char *text = pw_alloc(PW_BASE64_SIZE(record.size) + 1);
    if (text == NULL)
        return false;
    pw_base64_encode(record, text);
    bool set = json_object_set_new(line, "record_base64", json_string(text)) == 0;
    pw_free(text);
    return set;
}

/* The record as it is, for tools, and what a person asks first. */
static json_t *line_of(uint32_t shard, uint64_t lsn, pawl_bytes record)
{
    struct pw_heads heads;
    char number[24] = "";
    pw_print(number, sizeof(number), "%llu", (unsigned long long)lsn);
    json_t *line = json_object();
    pawl_err err = pw_record_heads(record, &heads);
    bool set = line != NULL &&
               json_object_set_new(line, "shard", json_integer((json_int_t)shard)) == 0 &&
               json_object_set_new(line, "lsn", json_string(number)) == 0;
    if (set && err == PAWL_OK)
        set = json_object_set_new(line, "machine", json_string(heads.machine)) == 0 &&
              json_object_set_new(line, "id", json_string(heads.id)) == 0 &&
              json_object_set_new(line, "deleted", json_boolean(heads.tombstone)) == 0;
    set = set && set_record(line, record);
    if (set)
        return line;
    json_decref(line);
    return NULL;
}

static bool make_file(struct aside *aside)
{
    char time[PW_TIME_TEXT_SIZE] = "";
    if (aside->fd >= 0)
        return true;
    pw_print_time(aside->clock.wall_ms(&aside->clock), time);
    pw_print(aside->path, sizeof(aside->path), "%s/set-aside-%s.ndjson", aside->dir, time);
    aside->fd = open(aside->path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    return aside->fd >= 0;
}

static int put_bytes(const char *bytes, size_t size, void *arg)
{
    const struct aside *aside = arg;
    return write(aside->fd, bytes, size) == (ssize_t)size ? 0 : -1;
}

static bool put_line(struct aside *aside, const json_t *line)
{
    return line != NULL && make_file(aside) &&
           json_dump_callback(line, put_bytes, aside, JSON_COMPACT) == 0 &&
           write(aside->fd, "\n", 1) == 1 && fsync(aside->fd) == 0;
}

static void on_row(void *arg, uint32_t shard, uint64_t lsn, pawl_bytes record)
{
    struct aside *aside = arg;
    json_t *line = line_of(shard, lsn, record);
    pthread_mutex_lock(&aside->lock);
    bool put = put_line(aside, line);
    pthread_mutex_unlock(&aside->lock);
    json_decref(line);
    if (!put)
        (void)fprintf(stderr, "pawl: shard %u: lsn %llu could not be written to %s: %s\n", shard,
                      (unsigned long long)lsn, aside->path, strerror(errno));
}

static void on_end(void *arg)
{
    struct aside *aside = arg;
    if (aside->fd >= 0)
        (void)close(aside->fd); /* was synced */
    (void)pthread_mutex_destroy(&aside->lock);
    pw_free(aside);
}

void pw_aside_open(struct pw_set_aside *aside, const char *dir)
{
    struct aside *opened = pw_alloc(sizeof(*opened));
    *aside = (struct pw_set_aside){ .row = NULL };
    if (opened == NULL || pthread_mutex_init(&opened->lock, NULL) != 0) {
        pw_free(opened);
        return;
    }
    pw_clock_init(&opened->clock);
    pw_print(opened->dir, sizeof(opened->dir), "%s", dir);
    opened->fd = -1;
    *aside = (struct pw_set_aside){ .row = on_row, .end = on_end, .arg = opened };
}
