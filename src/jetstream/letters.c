/* SPDX-License-Identifier: Apache-2.0
 *
 * See letters.h. A read is one consumer's life; nothing of it stays. */
#include <inttypes.h>
#include <string.h>

#include "jetstream/api.h"
#include "jetstream/browse.h"
#include "jetstream/entry.h"
#include "jetstream/letters.h"
#include "jetstream/link.h"
#include "jetstream/streams.h"

#define ANSWER_MS 5000

struct pw_letters {
    struct pw_link *link;
    char ns[PW_NAMESPACE_MAX + 1];
    char stream[PW_STREAM_NAME_SIZE];
};

pawl_err pw_letters_open(struct pw_letters **letters, const struct pw_letters_options *options,
                         pawl_why *why)
{
    struct pw_letters *made = pw_alloc(sizeof(*made));
    if (made == NULL)
        return pw_fail(why, PAWL_E_NOMEM, "out of memory");
    *made = (struct pw_letters){ .link = NULL };
    pw_print(made->ns, sizeof(made->ns), "%s", options->ns);
    pw_stream_name(PW_STREAM_DLQ, made->ns, 0, made->stream);
    const struct pw_link_options link = {
        .nats = options->nats, .bus = options->bus, .name = "pawl dlq", .quick = true
    };
    pawl_err err = pw_link_open(&made->link, &link, why);
    if (err != PAWL_OK) {
        pw_letters_close(made);
        return err;
    }
    *letters = made;
    return PAWL_OK;
}

void pw_letters_close(struct pw_letters *letters)
{
    if (letters == NULL)
        return;
    pw_link_close(letters->link);
    pw_free(letters);
}

/* --- reading ------------------------------------------------------------------------------ */

struct reading {
    const struct pw_letters *letters;
    struct pw_browse browse;
    pw_letter_seen seen;
    void *arg;
    bool ended;
};

static const char *header(natsMsg *msg, const char *name)
{
    const char *text = NULL;
    return natsMsgHeader_Get(msg, name, &text) == NATS_OK && text != NULL ? text : "";
}

static void hand_over(struct reading *reading, natsMsg *msg, const struct pw_pulled_from *from)
{
    char machine[PW_NAME_MAX + 1] = "";
    char id[PW_ID_MAX + 1] = "";
    struct pw_letter letter = {
        .machine = machine,
        .id = id,
        .seq = from->seq,
        .stored_ms = from->stored_ms,
        .label = header(msg, "Pawl-Id"),
        .why = header(msg, "Pawl-Why"),
        .record = { natsMsg_GetData(msg), (size_t)natsMsg_GetDataLength(msg) },
    };
    if (pw_subject_parse_letter(natsMsg_GetSubject(msg), reading->letters->ns, machine, id,
                                &letter.place))
        reading->ended = !reading->seen(reading->arg, &letter);
}

/* One request: all that it brings. */
static pawl_err read_batch(struct reading *reading)
{
    struct pw_browse *browse = &reading->browse;
    size_t batch = browse->pending < PW_PULL_BATCH_MAX ? browse->pending : PW_PULL_BATCH_MAX;
    pawl_err err = pw_pull_ask(&browse->pull, batch, 0);
    browse->pending -= batch; /* when less comes, the rest was settled meanwhile */
    while (err == PAWL_OK && browse->pull.owed > 0 && !reading->ended) {
        natsMsg *msg = NULL;
        struct pw_pulled_from from = { 0 };
        enum pw_pulled pulled = pw_pull_next(&browse->pull, ANSWER_MS, &msg, &from);
        if (pulled == PW_PULLED_MESSAGE)
            hand_over(reading, msg, &from);
        else if (pulled != PW_PULLED_END)
            err = PAWL_E_IO;
        natsMsg_Destroy(msg);
    }
    return err;
}

static pawl_err read_all(struct reading *reading, natsConnection *connection, const char *filter,
                         bool heads)
{
    pawl_err err =
        pw_browse_open(&reading->browse, connection, reading->letters->stream, filter, 1, heads);
    if (err == PAWL_E_NOT_FOUND)
        return PAWL_OK;
    while (err == PAWL_OK && reading->browse.pending > 0 && !reading->ended)
        err = read_batch(reading);
    pw_browse_close(&reading->browse);
    return err;
}

pawl_err pw_letters_read(struct pw_letters *letters, const char *machine, const char *id,
                         bool heads, pw_letter_seen seen, void *arg, pawl_why *why)
{
    char filter[PW_SUBJECT_MAX] = "";
    struct reading reading = { .letters = letters, .seen = seen, .arg = arg };
    natsConnection *connection = NULL;
    uint64_t turn = 0;
    if (!pw_subject_letters(filter, letters->ns, machine, id))
        return pw_fail(why, PAWL_E_USAGE, "the id is too long");
    pawl_err err = pw_link_get(letters->link, &connection, &turn, why);
    if (err != PAWL_OK)
        return err;
    err = read_all(&reading, connection, filter, heads);
    return err == PAWL_OK ? err : pw_fail(why, err, "stream %s cannot be read", letters->stream);
}

/* --- settling ----------------------------------------------------------------------------- */

pawl_err pw_letters_settle(struct pw_letters *letters, const struct pw_letter *letter,
                           pawl_why *why)
{
    const struct pw_letter_place *place = &letter->place;
    char subject[PW_SUBJECT_MAX] = "";
    char verb[PW_STREAM_NAME_SIZE + 32] = "";
    natsConnection *connection = NULL;
    json_t *answer = NULL;
    uint64_t turn = 0;
    if (!pw_subject_letter(subject, letters->ns, letter->machine, letter->id, place->epoch,
                           place->lsn, place->n))
        return pw_fail(why, PAWL_E_USAGE, "the id is too long");
    pawl_err err = pw_link_get(letters->link, &connection, &turn, why);
    if (err != PAWL_OK)
        return err;
    json_t *request =
        json_pack("{s:s, s:I}", "filter", subject, "seq", (json_int_t)letter->seq + 1);
    if (request == NULL)
        return pw_fail(why, PAWL_E_NOMEM, "out of memory");
    pw_print(verb, sizeof(verb), "STREAM.PURGE.%s", letters->stream);
    err = pw_api_call(connection, verb, request, ANSWER_MS, &answer, NULL, why);
    json_decref(request);
    json_decref(answer);
    return err == PAWL_E_NOT_FOUND ? PAWL_OK : err;
}
