/* SPDX-License-Identifier: Apache-2.0
 *
 * Publishes under way: a ring of slots. The answer of the good case is read by a short scan, since
 * it is read once a record; whatever does not look like it is a failure. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/base.h"
#include "base/wake.h"
#include "jetstream/link.h"
#include "jetstream/window.h"

/* The server answers in ms; a leader that is lost is replaced in some 5 s, and what it had not
 * answered is sent again then. */
#define ANSWER_MS 5000

static struct pw_slot *slot_of(struct pw_window *window, uint64_t number)
{
    return &window->slots[number & (PW_SLOTS - 1)];
}

void pw_window_init(struct pw_window *window, const struct pw_journal *journal, bool fenced)
{
    window->journal = journal;
    window->fenced = fenced;
    window->cut = UINT64_MAX;
    (void)pthread_mutex_init(&window->lock, NULL); /* cannot fail on Linux */
    pw_cond_init(&window->turned);
}

/* --- answers: the library's thread -------------------------------------------------------- */

static bool number_after(const char *text, const char *key, uint64_t *number)
{
    const char *at = strstr(text, key);
    if (at == NULL)
        return false;
    at += strlen(key);
    while (*at == ' ')
        at++;
    char *end = NULL;
    *number = strtoull(at, &end, 10);
    return end != at;
}

/* {"stream":"PAWL_main_0","seq":17}. False for anything else: an error, no responders (empty), what
 * nobody thought of. */
static bool read_answer(const char *text, uint64_t *seq)
{
    static const char good[] = "{\"stream\":";
    return strncmp(text, good, sizeof(good) - 1) == 0 && number_after(text, "\"seq\":", seq);
}

static void fail_at(struct pw_window *window, uint64_t number)
{
    if (number >= window->cut)
        return;
    window->cut = number;
    window->refusal = 0;
    window->why[0] = '\0';
}

/* {"error":{"code":503,"err_code":10077,"description":"..."},...}: what the lowest that failed was
 * told. */
static void read_refusal(struct pw_window *window, uint64_t number, const char *text)
{
    if (number != window->cut)
        return;
    json_t *answer = json_loads(text, 0, NULL);
    const json_t *error = json_object_get(answer, "error");
    const char *why = json_string_value(json_object_get(error, "description"));
    window->refusal = (uint64_t)json_integer_value(json_object_get(error, "err_code"));
    pw_print(window->why, sizeof(window->why), "%s", why != NULL ? why : "");
    json_decref(answer);
}

/* Takes out what is answered, or was to be answered before now_ms. */
static void settle(struct pw_window *window, uint64_t now_ms)
{
    while (window->first < window->next) {
        const struct pw_slot *slot = slot_of(window, window->first);
        if (slot->state == PW_SLOT_OPEN && slot->until_ms > now_ms)
            return;
        if (slot->state == PW_SLOT_OPEN)
            fail_at(window, window->first);
        if (window->first < window->cut && slot->lsn != 0)
            window->lsn = slot->lsn;
        if (window->first < window->cut && slot->seq != 0)
            window->seq = slot->seq;
        window->first++;
    }
}

static void note(struct pw_window *window, uint64_t number, const char *text)
{
    uint64_t seq = 0;
    bool stored = read_answer(text, &seq);
    pthread_mutex_lock(&window->lock);
    if (number >= window->first && number < window->next) {
        struct pw_slot *slot = slot_of(window, number);
        stored = stored && (slot->seq == 0 || slot->seq == seq);
        slot->state = stored ? PW_SLOT_STORED : PW_SLOT_REFUSED;
        if (!stored) {
            fail_at(window, number);
            read_refusal(window, number, text);
        }
        settle(window, 0);
    }
    bool done = window->first == window->next;
    pthread_mutex_unlock(&window->lock);
    if (done)
        pthread_cond_signal(&window->turned);
}

static void on_answer(natsConnection *connection, natsSubscription *sub, natsMsg *answer, void *arg)
{
    struct pw_window *window = arg;
    (void)connection;
    (void)sub;
    const char *subject = natsMsg_GetSubject(answer);
    const char *text = natsMsg_GetData(answer); /* the library puts a '\0' behind it */
    if (strlen(subject) > window->inbox_length)
        note(window, strtoull(subject + window->inbox_length, NULL, 10), text != NULL ? text : "");
    natsMsg_Destroy(answer);
    window->journal->poke(window->journal->poke_arg);
}

static void on_end(void *arg)
{
    struct pw_window *window = arg;
    pthread_mutex_lock(&window->lock);
    window->listening = false;
    pthread_cond_signal(&window->turned); /* under the lock: the waiter may free the window */
    pthread_mutex_unlock(&window->lock);
}

/* --- life ----------------------------------------------------------------------------------- */

/* The library does not wait for a callback that runs; we do, since it uses the window. */
static void stop_listening(struct pw_window *window)
{
    if (window->sub == NULL)
        return;
    (void)natsSubscription_Unsubscribe(window->sub); /* ended already when its connection is */
    pthread_mutex_lock(&window->lock);
    while (window->listening)
        pthread_cond_wait(&window->turned, &window->lock);
    pthread_mutex_unlock(&window->lock);
    natsSubscription_Destroy(window->sub);
    window->sub = NULL;
    window->connection = NULL;
}

void pw_window_fini(struct pw_window *window)
{
    stop_listening(window);
    (void)pthread_cond_destroy(&window->turned); /* nobody waits any more */
    (void)pthread_mutex_destroy(&window->lock);
}

static natsStatus subscribe(struct pw_window *window, natsConnection *connection)
{
    char subject[PW_INBOX_SIZE + 2] = "";
    natsStatus status = pw_inbox_print(window->inbox);
    if (status != NATS_OK)
        return status;
    window->inbox_length = strlen(window->inbox) + 1;
    pw_print(subject, sizeof(subject), "%s.*", window->inbox);
    status = natsConnection_Subscribe(&window->sub, connection, subject, on_answer, window);
    if (status != NATS_OK)
        return status;
    window->listening = true; /* nobody else knows the inbox yet */
    status = natsSubscription_SetOnCompleteCB(window->sub, on_end, window);
    if (status == NATS_OK)
        return status;
    natsSubscription_Destroy(window->sub);
    window->sub = NULL;
    return status;
}

/* A subscription keeps its connection's memory, so another connection has another address. */
pawl_err pw_window_listen(struct pw_window *window, natsConnection *connection)
{
    if (window->sub != NULL && window->connection == connection)
        return PAWL_OK;
    stop_listening(window);
    pw_window_drop(window);
    natsStatus status = subscribe(window, connection);
    if (status != NATS_OK)
        return pw_nats_err(status);
    window->connection = connection;
    return PAWL_OK;
}

void pw_window_begin(struct pw_window *window, uint64_t turn, uint64_t seq)
{
    window->turn = turn;
    pthread_mutex_lock(&window->lock);
    window->first = window->next;
    window->cut = UINT64_MAX;
    window->refusal = 0;
    window->why[0] = '\0';
    window->ahead = seq;
    window->seq = seq;
    pthread_mutex_unlock(&window->lock);
}

void pw_window_forget_lsn(struct pw_window *window)
{
    pthread_mutex_lock(&window->lock);
    window->lsn = 0;
    pthread_mutex_unlock(&window->lock);
}

void pw_window_drop(struct pw_window *window)
{
    pthread_mutex_lock(&window->lock);
    fail_at(window, window->first);
    window->first = window->next;
    pthread_mutex_unlock(&window->lock);
}

void pw_window_look(struct pw_window *window, uint64_t now_ms, struct pw_window_state *state)
{
    pthread_mutex_lock(&window->lock);
    settle(window, now_ms);
    *state = (struct pw_window_state){
        .lsn = window->lsn,
        .seq = window->seq,
        .waiting = (size_t)(window->next - window->first),
        .failed = window->cut != UINT64_MAX,
        .refusal = window->refusal,
    };
    memcpy(state->why, window->why, sizeof(state->why));
    pthread_mutex_unlock(&window->lock);
}

void pw_window_wait(struct pw_window *window, uint64_t ms)
{
    pthread_mutex_lock(&window->lock);
    if (window->first < window->next)
        (void)pw_cond_wait_ms(&window->turned, &window->lock, ms); /* the caller looks again */
    pthread_mutex_unlock(&window->lock);
}

/* --- sending -------------------------------------------------------------------------------- */

void pw_message_add(struct pw_message *message, const char *name, const char *value)
{
    message->headers[message->headers_count++] = (struct pw_header){ name, value };
}

/* Before the publish, since its answer may be here before the publish returns. */
static pawl_err take_slot(struct pw_window *window, const struct pw_message *message, size_t most,
                          uint64_t now_ms, uint64_t *number, uint64_t *expected)
{
    pawl_err err = PAWL_OK;
    pthread_mutex_lock(&window->lock);
    if (window->cut != UINT64_MAX) {
        err = PAWL_E_IO;
    } else if (window->next - window->first >= most) {
        err = PAWL_E_BUSY;
    } else {
        *number = window->next++;
        *expected = window->ahead++;
        *slot_of(window, *number) = (struct pw_slot){
            .lsn = message->lsn,
            .seq = window->fenced ? window->ahead : 0,
            .until_ms = now_ms + ANSWER_MS,
        };
        if (message->lsn != 0 && message->lsn <= window->lsn)
            window->lsn = message->lsn - 1; /* sent again */
    }
    pthread_mutex_unlock(&window->lock);
    return err;
}

static natsStatus publish(const struct pw_window *window, const struct pw_message *message,
                          uint64_t number, uint64_t expected)
{
    char reply[PW_INBOX_SIZE + 24] = "";
    char sequence[24] = "";
    natsMsg *msg = NULL;
    pw_print(reply, sizeof(reply), "%s.%" PRIu64, window->inbox, number);
    natsStatus status =
        natsMsg_Create(&msg, message->subject, reply, message->data.data, (int)message->data.size);
    if (status == NATS_OK && window->fenced) {
        pw_print(sequence, sizeof(sequence), "%" PRIu64, expected);
        status = natsMsgHeader_Set(msg, "Nats-Expected-Last-Sequence", sequence);
    }
    for (size_t i = 0; i < message->headers_count && status == NATS_OK; i++)
        status = natsMsgHeader_Set(msg, message->headers[i].name, message->headers[i].value);
    if (status == NATS_OK)
        status = natsConnection_PublishMsg(window->connection, msg);
    natsMsg_Destroy(msg);
    return status;
}

pawl_err pw_window_send(struct pw_window *window, const struct pw_message *message, size_t most,
                        uint64_t now_ms)
{
    uint64_t number = 0;
    uint64_t expected = 0;
    pawl_err err = take_slot(window, message, most, now_ms, &number, &expected);
    if (err != PAWL_OK)
        return err;
    natsStatus status = publish(window, message, number, expected);
    if (status == NATS_OK)
        return PAWL_OK;
    pthread_mutex_lock(&window->lock);
    slot_of(window, number)->state = PW_SLOT_REFUSED;
    fail_at(window, number);
    settle(window, 0);
    pthread_mutex_unlock(&window->lock);
    return pw_nats_err(status);
}
