/* SPDX-License-Identifier: Apache-2.0
 *
 * A window of slots, each one line's request from its reading to its answer. Answers come in any
 * order. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include "app/bulk.h"

/* Under way at once: a few batches of the writer. */
#define WINDOW 1024
/* Unsent bytes at which no more lines are taken. */
#define UNSENT_MAX (512u * 1024)
#define PROGRESS_MS 200

struct slot {
    json_t *request; /* NULL: free */
    uint64_t line;
    uint64_t again_ms; /* 0: sent, waits for its answer */
    unsigned tries;
};

struct bulk {
    struct pw_app *app;
    enum pw_op op;
    int fd;
    struct pw_remote remote;
    struct pw_lines in;
    struct slot slots[WINDOW];
    size_t open;
    size_t next; /* where a free slot is looked for */
    uint64_t line;
    uint64_t done;
    uint64_t refused;
    uint64_t heard_ms; /* the daemon's last word, or the last request sent with none under way */
    uint64_t progress_ms;
    pawl_err worst;
    bool eof;
    bool progress;
};

static uint64_t now_ms(struct bulk *bulk)
{
    return bulk->remote.clock.monotonic_ms(&bulk->remote.clock);
}

/* --- answers ------------------------------------------------------------------------------ */

static json_t *answer_json(uint64_t line, const json_t *object, const json_t *answer, pawl_err err,
                           const pawl_why *why)
{
    static const char *const named[] = { "machine", "id" };
    static const char *const told[] = { "state", "version", "epoch", "repeated", "appended" };
    json_t *said = json_object();
    if (line > 0)
        (void)json_object_set_new(
            said, "line", json_integer((json_int_t)line)); /* missing: seen by its absence */
    for (size_t i = 0; i < PW_COUNT(named); i++)
        (void)json_object_set(said, named[i],
                              json_object_get(object, named[i])); /* NULL is refused: not there */
    (void)json_object_set_new(said, "ok", json_boolean(err == PAWL_OK));
    if (err == PAWL_OK) {
        for (size_t i = 0; i < PW_COUNT(told); i++)
            (void)json_object_set(said, told[i], json_object_get(answer, told[i]));
        return said;
    }
    (void)json_object_set_new(said, "error", json_string(pawl_err_name(err)));
    (void)json_object_set_new(said, "class", json_string(pw_class_name(pawl_err_class_of(err))));
    (void)json_object_set_new(said, "text",
                              pw_json_text(why->text[0] != '\0' ? why->text : pawl_err_text(err)));
    return said;
}

static const char *text_or(const json_t *object, const char *name, const char *otherwise)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text != NULL ? text : otherwise;
}

/* A replay says what it did; of the other commands many are given, and success is quiet. */
static void put_appended(const json_t *object, const json_t *answer)
{
    const json_t *appended = json_object_get(answer, "appended");
    const char *version = text_or(answer, "version", "?");
    if (appended == NULL)
        return;
    if (json_is_true(appended))
        pw_put_plain("%s/%s: appended, version %s\n", text_or(object, "machine", "?"),
                     text_or(object, "id", "?"), version);
    else
        pw_put_plain("%s/%s: skipped: it waits in the outbox\n", text_or(object, "machine", "?"),
                     text_or(object, "id", "?"));
}

void pw_put_answer(const struct pw_app *app, uint64_t line, const json_t *object,
                   const json_t *answer, pawl_err err, const pawl_why *why)
{
    char where[32] = "";
    char thing[256] = "";
    const char *id = text_or(object, "id", "");
    if (app->config.json != 0) {
        pw_put_json(answer_json(line, object, answer, err, why));
        return;
    }
    if (err == PAWL_OK) {
        put_appended(object, answer);
        return;
    }
    if (line > 0)
        pw_print(where, sizeof(where), "line %llu: ", (unsigned long long)line);
    if (object != NULL)
        pw_print(thing, sizeof(thing), " %s%s%s", text_or(object, "machine", "?"),
                 id[0] != '\0' ? "/" : "", id);
    (void)pw_complain(app, err, why, "%s%s%s", where, app->verb,
                      thing); /* the status is the worst's */
}

static void clear_progress(const struct bulk *bulk)
{
    if (bulk->progress)
        (void)fprintf(stderr, "\r\033[K"); /* for people only */
}

static void count_answer(struct bulk *bulk, pawl_err err)
{
    if (err == PAWL_OK)
        bulk->done++;
    else
        bulk->refused++;
    if (pawl_err_class_of(err) > pawl_err_class_of(bulk->worst))
        bulk->worst = err;
}

/* --- lines in ----------------------------------------------------------------------------- */

static uint64_t number_of(const struct bulk *bulk, uint64_t line)
{
    return bulk->fd == STDIN_FILENO ? line : 0;
}

static void refuse_line(struct bulk *bulk, const json_t *object, pawl_err err, const pawl_why *why)
{
    clear_progress(bulk);
    pw_put_answer(bulk->app, number_of(bulk, bulk->line), object, NULL, err, why);
    count_answer(bulk, err);
}

static bool send_slot(struct bulk *bulk, size_t index)
{
    struct slot *slot = &bulk->slots[index];
    slot->again_ms = 0;
    return pw_out_json(&bulk->remote.out, json_incref(slot->request));
}

static size_t free_slot(struct bulk *bulk)
{
    while (bulk->slots[bulk->next].request != NULL)
        bulk->next = (bulk->next + 1) % WINDOW;
    return bulk->next;
}

/* A line becomes a request, if it is one. False: out of memory. */
static bool take_line(struct bulk *bulk, const char *line, size_t size)
{
    struct pw_demand demand;
    pawl_why why = { "" };
    json_t *object = pw_demand_load(line, size, &why);
    if (object == NULL) {
        refuse_line(bulk, NULL, PAWL_E_USAGE, &why);
        return true;
    }
    pawl_err err = pw_demand_read(&demand, object, bulk->op, &why);
    pw_demand_fini(&demand);
    if (err != PAWL_OK) {
        refuse_line(bulk, object, err, &why);
        json_decref(object);
        return true;
    }
    size_t index = free_slot(bulk);
    if (json_object_set_new(object, "op", json_string(pw_op_name(bulk->op))) != 0 ||
        json_object_set_new(object, "tag", json_integer((json_int_t)index)) != 0) {
        json_decref(object);
        return false;
    }
    if (bulk->open == 0)
        bulk->heard_ms = now_ms(bulk);
    bulk->slots[index] = (struct slot){ .request = object, .line = bulk->line };
    bulk->open++;
    return send_slot(bulk, index);
}

static bool is_blank(const char *line, size_t size)
{
    size_t i = 0;
    while (i < size && (line[i] == ' ' || line[i] == '\t' || line[i] == '\r'))
        i++;
    return i == size;
}

static bool has_room(const struct bulk *bulk)
{
    return bulk->open < WINDOW && pw_out_left(&bulk->remote.out) < UNSENT_MAX;
}

/* Takes lines as long as there is room. *waits: there is, and no line. False: out of memory. */
static bool take_lines(struct bulk *bulk, bool *waits)
{
    const char *line = NULL;
    size_t size = 0;
    pawl_why why = { "" };
    *waits = false;
    while (has_room(bulk)) {
        switch (pw_lines_first(&bulk->in, bulk->eof, &line, &size)) {
        case PW_LINE:
            bulk->line++;
            if (!is_blank(line, size) && !take_line(bulk, line, size))
                return false;
            pw_lines_drop(&bulk->in, size);
            break;
        case PW_LINE_TOO_LONG:
            bulk->line++;
            refuse_line(bulk, NULL, pw_fail(&why, PAWL_E_LIMIT, "a line of more than 1 MiB"), &why);
            break;
        case PW_LINE_NONE:
        default:
            *waits = true;
            return true;
        }
    }
    return true;
}

static pawl_err read_input(struct bulk *bulk, pawl_why *why)
{
    size_t room = 0;
    char *to = pw_lines_room(&bulk->in, &room);
    if (to == NULL)
        return pw_fail(why, PAWL_E_NOMEM, "out of memory");
    ssize_t size = read(bulk->fd, to, room);
    if (size < 0 && errno != EINTR && errno != EAGAIN)
        return pw_fail(why, PAWL_E_IO, "%s: %s",
                       bulk->fd == STDIN_FILENO ? "standard input" : "the selection",
                       strerror(errno));
    if (size > 0)
        pw_lines_filled(&bulk->in, (size_t)size);
    bulk->eof = size == 0;
    return PAWL_OK;
}

/* --- answers in --------------------------------------------------------------------------- */

static struct slot *slot_of(struct bulk *bulk, const json_t *answer)
{
    const json_t *tag = json_object_get(answer, "tag");
    json_int_t index = json_integer_value(tag);
    if (!json_is_integer(tag) || index < 0 || index >= WINDOW || bulk->slots[index].request == NULL)
        return NULL;
    return &bulk->slots[index];
}

static void settle(struct bulk *bulk, struct slot *slot, const json_t *answer)
{
    pawl_why why = { "" };
    pawl_err err = pw_remote_err(answer, &why);
    if (err == PAWL_E_BUSY && slot->tries < PW_BUSY_TRIES) {
        slot->again_ms = now_ms(bulk) + ((uint64_t)PW_BUSY_MS << slot->tries);
        slot->tries++;
        return;
    }
    if (err != PAWL_OK)
        clear_progress(bulk);
    pw_put_answer(bulk->app, number_of(bulk, slot->line), slot->request, answer, err, &why);
    count_answer(bulk, err);
    json_decref(slot->request);
    *slot = (struct slot){ .request = NULL };
    bulk->open--;
}

static pawl_err take_answers(struct bulk *bulk, pawl_why *why)
{
    for (;;) {
        json_t *answer = NULL;
        pawl_err err = pw_remote_next(&bulk->remote, &answer, why);
        if (err != PAWL_OK || answer == NULL)
            return err;
        bulk->heard_ms = now_ms(bulk);
        struct slot *slot = slot_of(bulk, answer);
        if (slot != NULL)
            settle(bulk, slot, answer);
        else
            err = pw_remote_err(answer, why); /* of the connection as a whole */
        json_decref(answer);
        if (err != PAWL_OK)
            return err;
    }
}

/* --- the loop ----------------------------------------------------------------------------- */

/* Sends again what was refused for want of room, and says when the next one is. False: out of
 * memory. */
static bool send_again(struct bulk *bulk, uint64_t *next_ms)
{
    uint64_t now = now_ms(bulk);
    *next_ms = PW_NEVER;
    for (size_t i = 0; i < WINDOW; i++) {
        const struct slot *slot = &bulk->slots[i];
        if (slot->request == NULL || slot->again_ms == 0)
            continue;
        if (slot->again_ms > now && slot->again_ms < *next_ms)
            *next_ms = slot->again_ms;
        else if (slot->again_ms <= now && !send_slot(bulk, i))
            return false;
    }
    return true;
}

static void show_progress(struct bulk *bulk)
{
    uint64_t now = now_ms(bulk);
    if (!bulk->progress || now < bulk->progress_ms)
        return;
    bulk->progress_ms = now + PROGRESS_MS;
    (void)fprintf(stderr, "\r%llu done, %llu refused", (unsigned long long)bulk->done,
                  (unsigned long long)bulk->refused);
}

static int timeout_of(struct bulk *bulk, uint64_t next_ms)
{
    uint64_t now = now_ms(bulk);
    uint64_t until = bulk->open > 0 ? bulk->heard_ms + PW_ANSWER_MS : PW_NEVER;
    if (next_ms < until)
        until = next_ms;
    if (until == PW_NEVER)
        return -1;
    return until > now ? (int)(until - now) : 0;
}

static pawl_err turn(struct bulk *bulk, pawl_why *why)
{
    bool waits = false;
    uint64_t next_ms = PW_NEVER;
    if (!take_lines(bulk, &waits) || !send_again(bulk, &next_ms))
        return pw_fail(why, PAWL_E_NOMEM, "out of memory");
    if (bulk->open > 0 && now_ms(bulk) >= bulk->heard_ms + PW_ANSWER_MS)
        return pw_fail(why, PAWL_E_UNKNOWN, "the daemon gives no answer");
    show_progress(bulk);
    (void)fflush(stdout); /* the commands go on without a reader; the end looks at it */
    if (bulk->eof && waits && bulk->open == 0)
        return PAWL_OK;
    struct pollfd looks[2] = { { .fd = bulk->remote.fd, .events = POLLIN },
                               { .fd = waits && !bulk->eof ? bulk->fd : -1, .events = POLLIN } };
    if (pw_out_left(&bulk->remote.out) > 0)
        looks[0].events |= POLLOUT;
    if (poll(looks, PW_COUNT(looks), timeout_of(bulk, next_ms)) <= 0)
        return PAWL_OK; /* interrupted, or time for something: seen next */
    if (looks[1].revents != 0) {
        pawl_err err = read_input(bulk, why);
        if (err != PAWL_OK)
            return err;
    }
    bool heard = (looks[0].revents & ~POLLOUT) == 0 || pw_remote_receive(&bulk->remote);
    bool sent = pw_out_send(&bulk->remote.out, bulk->remote.fd);
    pawl_err err = take_answers(bulk, why);
    if (err == PAWL_OK && (!heard || !sent))
        return pw_fail(why, PAWL_E_IO, "the connection to the daemon was lost");
    return err;
}

static bool is_over(struct bulk *bulk)
{
    return bulk->eof && bulk->open == 0 && bulk->in.begin == bulk->in.end;
}

static int conclude(struct bulk *bulk, pawl_err err, const pawl_why *why)
{
    int status = pw_exit_of(bulk->worst);
    (void)fprintf(stderr, "%s%s: %s: %llu done, %llu refused\n", bulk->progress ? "\r" : "",
                  bulk->app->program, bulk->app->verb, (unsigned long long)bulk->done,
                  (unsigned long long)bulk->refused);
    if (err != PAWL_OK)
        status = pw_complain(bulk->app, err, why, "%s: %zu lines have no answer", bulk->app->verb,
                             bulk->open);
    for (size_t i = 0; i < WINDOW; i++)
        json_decref(bulk->slots[i].request);
    return status;
}

int pw_bulk(struct pw_app *app, enum pw_op op, int fd)
{
    pawl_why why = { "" };
    struct bulk *bulk = pw_alloc(sizeof(*bulk));
    if (bulk == NULL)
        return pw_complain(app, PAWL_E_NOMEM, NULL, "%s", app->verb);
    *bulk = (struct bulk){ .app = app, .op = op, .fd = fd, .progress = isatty(STDERR_FILENO) == 1 };
    pw_lines_init(&bulk->in);
    pawl_err err = pw_remote_open(&bulk->remote, &app->config, &why);
    if (err != PAWL_OK) {
        pw_free(bulk);
        return pw_complain(app, err, &why, "%s", app->verb);
    }
    while (err == PAWL_OK && !is_over(bulk))
        err = turn(bulk, &why);
    int status = conclude(bulk, err, &why);
    pw_remote_close(&bulk->remote);
    pw_lines_fini(&bulk->in);
    pw_free(bulk);
    return status;
}

pawl_err pw_bulk_write(FILE *requests, json_t *request)
{
    bool written = request != NULL && json_dumpf(request, requests, JSON_COMPACT) == 0 &&
                   fputc('\n', requests) != EOF;
    json_decref(request);
    return written ? PAWL_OK : PAWL_E_IO;
}

int pw_bulk_written(struct pw_app *app, enum pw_op op, FILE *requests)
{
    if (fflush(requests) != 0 || lseek(fileno(requests), 0, SEEK_SET) != 0)
        return pw_complain(app, PAWL_E_IO, NULL, "%s", app->verb);
    return pw_bulk(app, op, fileno(requests));
}
