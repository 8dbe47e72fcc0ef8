/* SPDX-License-Identifier: Apache-2.0
 *
 * The journal's writing side: a look at the stream, an opening, and appends of which each expects
 * the one before as the stream's last. The relay's thread. */
#include <inttypes.h>
#include <string.h>

#include "jetstream/adapter.h"

/* Fences and mark of an opening take some 20 ms; a server that is busy, longer. */
#define OPEN_MS 10000
/* How often a waiting call looks whether it is to end. */
#define SLICE_MS 50

#define NUMBER_SIZE 24

/* --- the connection ------------------------------------------------------------------------- */

pawl_err pw_jetstream_reach(struct pw_jetstream *adapter, natsConnection **connection,
                            uint64_t *turn, pawl_why *why)
{
    if (pw_jetstream_is_halted(adapter))
        return pw_fail(why, PAWL_E_IO, "stopping");
    return pw_link_get(adapter->link, connection, turn, why);
}

static bool is_same(struct pw_jetstream *adapter, const struct pw_window *window)
{
    return pw_link_is_up(adapter->link) && pw_link_turn(adapter->link) == window->turn;
}

static void on_link(void *arg)
{
    struct pw_jetstream *adapter = arg;
    adapter->journal.poke(adapter->journal.poke_arg);
}

static void on_quick_link(void *arg)
{
    struct pw_jetstream *adapter = arg;
    pw_poke(&adapter->consumer.wake);
}

/* --- look ----------------------------------------------------------------------------------- */

static bool read_digits(const char **at, int count, uint64_t *value)
{
    *value = 0;
    for (int i = 0; i < count; i++, (*at)++) {
        if (**at < '0' || **at > '9')
            return false;
        *value = *value * 10 + (uint64_t)(**at - '0');
    }
    return true;
}

/* Days from 1970-01-01, of the Gregorian calendar: the years begin in March, so that the leap day
 * is a year's last. */
static uint64_t days_of(uint64_t year, uint64_t month, uint64_t day)
{
    uint64_t y = month <= 2 ? year - 1 : year;
    uint64_t m = month <= 2 ? month + 9 : month - 3;
    return 365 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day - 1 - 719468;
}

static uint64_t read_fraction_ns(const char *at)
{
    uint64_t ns = 0;
    uint64_t unit = 100000000;
    if (*at != '.')
        return 0;
    for (at++; *at >= '0' && *at <= '9'; at++, unit /= 10)
        ns += (uint64_t)(*at - '0') * unit;
    return ns;
}

/* "2026-12-01T05:47:57.123456789Z", as the server writes it: always UTC. 0: it is something else.
 */
static uint64_t read_time_ns(const char *text)
{
    static const char between[] = "--T::";
    static const int digits[] = { 4, 2, 2, 2, 2, 2 };
    uint64_t parts[PW_COUNT(digits)] = { 0 };
    const char *at = text;
    for (size_t i = 0; i < PW_COUNT(digits); i++) {
        if (i > 0 && *at++ != between[i - 1])
            return 0;
        if (!read_digits(&at, digits[i], &parts[i]))
            return 0;
    }
    if (parts[0] < 1970 || parts[1] < 1 || parts[1] > 12)
        return 0;
    uint64_t seconds =
        days_of(parts[0], parts[1], parts[2]) * 86400 + parts[3] * 3600 + parts[4] * 60 + parts[5];
    return seconds * 1000000000 + read_fraction_ns(at);
}

static pawl_err read_info(const json_t *info, struct pw_journal_state *state, pawl_why *why)
{
    const json_t *numbers = json_object_get(info, "state");
    const char *created = json_string_value(json_object_get(info, "created"));
    state->created = created != NULL ? read_time_ns(created) : 0;
    state->last_seq = (uint64_t)json_integer_value(json_object_get(numbers, "last_seq"));
    state->records = (uint64_t)json_integer_value(json_object_get(numbers, "messages"));
    if (state->created == 0)
        return pw_fail(why, PAWL_E_IO, "stream: no time of creation in what the server tells");
    return PAWL_OK;
}

static pawl_err look_at_stream(const struct pw_jetstream *adapter, natsConnection *connection,
                               struct pw_journal_state *state, pawl_why *why)
{
    const struct pw_place *place = &adapter->place;
    json_t *info = NULL;
    struct pw_stream stream = { PW_STREAM_JOURNAL, place->ns, place->shard, 0 };
    pawl_err err = adapter->look_only ? pw_stream_check(connection, &stream, &info, why)
                                      : pw_stream_ensure(connection, &stream, &info, NULL, why);
    if (err != PAWL_OK)
        return err;
    err = read_info(info, state, why);
    json_decref(info);
    return err;
}

static pawl_err look_at_fence(const struct pw_place *place, natsConnection *connection,
                              struct pw_journal_state *state)
{
    natsMsg *msg = NULL;
    uint64_t fence = 0;
    pawl_err err = pw_last_message(connection, place->stream, place->fence_subject, &msg);
    if (err == PAWL_E_NOT_FOUND)
        return PAWL_OK;
    if (err != PAWL_OK)
        return err;
    if (pw_header_number(msg, PW_HEADER_FENCE, &fence) && fence <= UINT32_MAX) {
        state->fence = (uint32_t)fence;
        state->fence_seq = natsMsg_GetSequence(msg);
    }
    natsMsg_Destroy(msg);
    return PAWL_OK;
}

static pawl_err look(struct pw_journal *journal, struct pw_journal_state *state, pawl_why *why)
{
    struct pw_jetstream *adapter = pw_jetstream_of(journal);
    struct pw_window_state appends = { 0 };
    struct pw_journal_state found = { 0 };
    natsConnection *connection = NULL;
    uint64_t turn = 0;
    pawl_err err = pw_jetstream_reach(adapter, &connection, &turn, why);
    if (err != PAWL_OK)
        return err;
    pw_window_look(&adapter->appends, pw_jetstream_now(adapter), &appends);
    if (appends.waiting > 0 && turn == adapter->appends.turn)
        return pw_fail(why, PAWL_E_BUSY, "%zu appends are neither answered nor timed out",
                       appends.waiting);
    err = pw_window_listen(&adapter->appends, connection);
    if (err == PAWL_OK)
        err = look_at_stream(adapter, connection, &found, why);
    if (err == PAWL_OK)
        err = look_at_fence(&adapter->place, connection, &found);
    if (err != PAWL_OK)
        return err;
    pw_window_begin(&adapter->appends, turn, found.last_seq);
    adapter->looked = found;
    *state = found;
    return PAWL_OK;
}

/* --- append --------------------------------------------------------------------------------- */

/* Away: nothing is kept in the library's memory to be sent later. */
static pawl_err send_message(struct pw_jetstream *adapter, const struct pw_message *message,
                             size_t most)
{
    if (pw_jetstream_is_halted(adapter) || !is_same(adapter, &adapter->appends))
        return PAWL_E_IO;
    return pw_window_send(&adapter->appends, message, most, pw_jetstream_now(adapter));
}

/* machine/id@epoch; the id as it is escaped in the subject, since a header bears less. */
static void print_task(const struct pw_append *append, const char *subject, char *to, size_t size)
{
    const char *id = strrchr(subject, '.');
    pw_print(to, size, "%s/%s@%" PRIu64, append->machine, id != NULL ? id + 1 : "", append->epoch);
}

static pawl_err append(struct pw_journal *journal, const struct pw_append *append)
{
    struct pw_jetstream *adapter = pw_jetstream_of(journal);
    char subject[PW_SUBJECT_MAX] = "";
    char lsn[NUMBER_SIZE] = "";
    char task[PW_SUBJECT_MAX] = "";
    struct pw_message message = { .subject = subject, .lsn = append->lsn, .data = append->record };
    if (!pw_subject_journal(subject, adapter->place.ns, adapter->place.shard, append->machine,
                            append->id))
        return PAWL_E_USAGE;
    pw_print(lsn, sizeof(lsn), "%" PRIu64, append->lsn);
    pw_message_add(&message, PW_HEADER_LSN, lsn);
    if (append->task) {
        print_task(append, subject, task, sizeof(task));
        pw_message_add(&message, PW_HEADER_TASK, task);
    }
    if (append->tombstone)
        pw_message_add(&message, PW_HEADER_TOMBSTONE, "1");
    if (append->trace != NULL && append->trace[0] != '\0')
        pw_message_add(&message, PW_HEADER_TRACE, append->trace);
    return send_message(adapter, &message, PW_WINDOW);
}

static pawl_err send_mark(struct pw_jetstream *adapter, uint64_t sent_lsn, pawl_bytes mark,
                          size_t most)
{
    char sent[NUMBER_SIZE] = "";
    struct pw_message message = { .subject = adapter->place.mark_subject, .data = mark };
    pw_print(sent, sizeof(sent), "%" PRIu64, sent_lsn);
    pw_message_add(&message, PW_HEADER_MARK, sent);
    return send_message(adapter, &message, most);
}

static pawl_err mark(struct pw_journal *journal, uint64_t sent_lsn, pawl_bytes mark)
{
    return send_mark(pw_jetstream_of(journal), sent_lsn, mark, PW_WINDOW);
}

static pawl_err acked(struct pw_journal *journal, struct pw_acked *acked)
{
    struct pw_jetstream *adapter = pw_jetstream_of(journal);
    struct pw_window_state state = { 0 };
    if (!is_same(adapter, &adapter->appends))
        pw_window_drop(&adapter->appends);
    pw_window_look(&adapter->appends, pw_jetstream_now(adapter), &state);
    *acked = (struct pw_acked){ .lsn = state.lsn, .seq = state.seq, .waiting = state.waiting };
    if (state.refusal != PW_REFUSED_SEQUENCE)
        pw_print(acked->refusal, sizeof(acked->refusal), "%s", state.why);
    return state.failed ? PAWL_E_IO : PAWL_OK;
}

/* --- open ----------------------------------------------------------------------------------- */

static pawl_err send_opening(struct pw_jetstream *adapter, const struct pw_opening *opening)
{
    char fence[NUMBER_SIZE] = "";
    char follows[NUMBER_SIZE] = "";
    struct pw_message message = { .subject = adapter->place.fence_subject };
    pw_print(fence, sizeof(fence), "%" PRIu32, opening->fence);
    pw_print(follows, sizeof(follows), "%" PRIu64, opening->follows_lsn);
    pw_message_add(&message, PW_HEADER_FENCE, fence);
    pw_message_add(&message, PW_HEADER_FOLLOWS, follows);
    for (int i = 0; i < PW_WINDOW + 1; i++) {
        pawl_err err = send_message(adapter, &message, PW_SLOTS);
        if (err != PAWL_OK)
            return err;
    }
    return send_mark(adapter, opening->sent_lsn, opening->mark, PW_SLOTS);
}

static void wait_for_all(struct pw_jetstream *adapter, struct pw_window_state *state)
{
    uint64_t until_ms = pw_jetstream_now(adapter) + OPEN_MS;
    uint64_t now_ms = 0;
    do {
        pw_window_wait(&adapter->appends, SLICE_MS);
        now_ms = pw_jetstream_now(adapter);
        if (!is_same(adapter, &adapter->appends))
            pw_window_drop(&adapter->appends);
        pw_window_look(&adapter->appends, now_ms, state);
    } while (state->waiting > 0 && now_ms < until_ms && !pw_jetstream_is_halted(adapter));
}

static pawl_err open_journal(struct pw_journal *journal, const struct pw_opening *opening,
                             uint64_t *seq)
{
    struct pw_jetstream *adapter = pw_jetstream_of(journal);
    struct pw_window_state state = { 0 };
    pw_window_look(&adapter->appends, pw_jetstream_now(adapter), &state);
    if (state.failed || state.waiting > 0)
        return PAWL_E_IO;
    pw_window_begin(&adapter->appends, adapter->appends.turn, opening->applied_seq);
    pawl_err err = send_opening(adapter, opening);
    wait_for_all(adapter, &state);
    if (state.refusal == PW_REFUSED_SEQUENCE)
        return PAWL_E_VERSION;
    if (err != PAWL_OK || state.failed || state.waiting > 0)
        return err != PAWL_OK && err != PAWL_E_BUSY ? err : PAWL_E_IO;
    pw_window_forget_lsn(&adapter->appends);
    pw_consumer_begin(&adapter->consumer, opening->fence, state.seq);
    *seq = state.seq;
    return PAWL_OK;
}

/* --- single entries ------------------------------------------------------------------------- */

static pawl_err ask_entry(struct pw_jetstream *adapter, natsConnection *connection,
                          const char *what, const json_t *request)
{
    char verb[PW_STREAM_NAME_SIZE + 32] = "";
    json_t *answer = NULL;
    pw_print(verb, sizeof(verb), "STREAM.MSG.%s.%s", what, adapter->place.stream);
    pawl_err err = pw_api_call(connection, verb, request, PW_API_MS, &answer, NULL, NULL);
    json_decref(answer);
    return err;
}

/* Of an entry that is gone the server says "no message found", "sequence 4 not found" or "stream
 * store EOF", as two different errors of which one has other causes as well: so it is looked for.
 */
static pawl_err remove_entry(struct pw_journal *journal, uint64_t seq)
{
    struct pw_jetstream *adapter = pw_jetstream_of(journal);
    natsConnection *connection = NULL;
    uint64_t turn = 0;
    pawl_err err = pw_jetstream_reach(adapter, &connection, &turn, NULL);
    if (err != PAWL_OK)
        return err;
    json_t *which = json_pack("{s:I}", "seq", (json_int_t)seq);
    json_t *request = json_pack("{s:I, s:b}", "seq", (json_int_t)seq, "no_erase", 1);
    if (which == NULL || request == NULL)
        err = PAWL_E_NOMEM;
    if (err == PAWL_OK)
        err = ask_entry(adapter, connection, "DELETE", request);
    if (err == PAWL_E_CONFIG && ask_entry(adapter, connection, "GET", which) == PAWL_E_NOT_FOUND)
        err = PAWL_OK;
    json_decref(which);
    json_decref(request);
    return err == PAWL_E_NOT_FOUND ? PAWL_OK : err;
}

/* --- life ----------------------------------------------------------------------------------- */

static void halt(struct pw_journal *journal)
{
    struct pw_jetstream *adapter = pw_jetstream_of(journal);
    atomic_store(&adapter->halted, true);
    pw_link_halt(adapter->link);
    pw_link_halt(adapter->quick);
    pw_poke(&adapter->consumer.wake);
}

static void close_journal(struct pw_journal *journal)
{
    struct pw_jetstream *adapter = pw_jetstream_of(journal);
    if (adapter == NULL)
        return;
    pw_browse_close(&adapter->reader.browse);
    pw_pull_close(&adapter->consumer.pull);
    pw_window_fini(&adapter->posts);
    pw_window_fini(&adapter->appends);
    pw_link_close(adapter->quick); /* from here on nothing pokes */
    pw_link_close(adapter->link);
    pw_consumer_fini(&adapter->consumer);
    pw_free(adapter);
}

static const struct pw_journal_ops ops = {
    .look = look,
    .read = pw_jetstream_read,
    .open = open_journal,
    .append = append,
    .mark = mark,
    .acked = acked,
    .remove = remove_entry,
    .last = pw_jetstream_last,
    .post = pw_jetstream_post,
    .posted = pw_jetstream_posted,
    .fetch = pw_jetstream_fetch,
    .halt = halt,
    .close = close_journal,
};

static void no_poke(void *arg)
{
    (void)arg;
}

static void init(struct pw_jetstream *adapter, const struct pw_jetstream_options *options)
{
    adapter->journal = (struct pw_journal){ .ops = &ops, .poke = no_poke };
    struct pw_place *place = &adapter->place;
    place->shard = options->shard;
    adapter->look_only = options->look_only;
    pw_print(place->ns, sizeof(place->ns), "%s", options->ns);
    pw_stream_name(PW_STREAM_JOURNAL, place->ns, place->shard, place->stream);
    (void)pw_subject_fence(place->fence_subject, place->ns, place->shard);
    (void)pw_subject_mark(place->mark_subject, place->ns, place->shard); /* both fit */
    pw_clock_init(&adapter->clock);
    pw_window_init(&adapter->appends, &adapter->journal, true);
    pw_window_init(&adapter->posts, &adapter->journal, false);
    pw_consumer_init(&adapter->consumer);
}

static pawl_err open_links(struct pw_jetstream *adapter, const struct pw_jetstream_options *options,
                           pawl_why *why)
{
    char name[PW_STREAM_NAME_SIZE + 32] = "";
    struct pw_link_options link = {
        .nats = options->nats,
        .bus = options->bus,
        .name = name,
        .poke = on_link,
        .arg = adapter,
    };
    pw_print(name, sizeof(name), "pawl %s", adapter->place.stream);
    pawl_err err = pw_link_open(&adapter->link, &link, why);
    if (err != PAWL_OK)
        return err;
    pw_print(name, sizeof(name), "pawl %s subscriber", adapter->place.stream);
    link.quick = true;
    link.poke = on_quick_link;
    return pw_link_open(&adapter->quick, &link, why);
}

pawl_err pw_jetstream_open(struct pw_journal **journal, const struct pw_jetstream_options *options,
                           pawl_why *why)
{
    struct pw_jetstream *adapter = pw_alloc(sizeof(*adapter));
    if (adapter == NULL)
        return pw_fail(why, PAWL_E_NOMEM, "out of memory");
    init(adapter, options);
    pawl_err err = open_links(adapter, options, why);
    if (err != PAWL_OK) {
        close_journal(&adapter->journal);
        return err;
    }
    *journal = &adapter->journal;
    return PAWL_OK;
}
