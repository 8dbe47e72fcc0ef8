/* SPDX-License-Identifier: Apache-2.0
 *
 * See provision.h. */
#include "base/base.h"
#include "base/limits.h"
#include "jetstream/link.h"
#include "jetstream/provision.h"
#include "jetstream/streams.h"

#define STREAMS_MAX (PW_SHARDS_MAX + 2)

/* The journals, EVENTS, DLQ. Returns their number. */
static size_t list(const struct pw_provision *provision, struct pw_stream streams[STREAMS_MAX])
{
    size_t count = 0;
    assert(provision->shards <= PW_SHARDS_MAX);
    for (uint32_t shard = 0; shard < provision->shards; shard++)
        streams[count++] =
            (struct pw_stream){ PW_STREAM_JOURNAL, provision->ns, shard, provision->replicas };
    streams[count++] =
        (struct pw_stream){ PW_STREAM_EVENTS, provision->ns, 0, provision->replicas };
    streams[count++] = (struct pw_stream){ PW_STREAM_DLQ, provision->ns, 0, provision->replicas };
    return count;
}

pawl_err pw_provision_print(const struct pw_provision *provision, void (*put)(json_t *object))
{
    struct pw_stream streams[STREAMS_MAX];
    size_t count = list(provision, streams);
    for (size_t i = 0; i < count; i++) {
        const struct pw_stream *stream = &streams[i];
        char name[PW_STREAM_NAME_SIZE] = "";
        char subject[PW_STREAM_NAME_SIZE + 32] = "";
        pw_stream_name(stream->kind, stream->ns, stream->shard, name);
        pw_print(subject, sizeof(subject), "$JS.API.STREAM.CREATE.%s", name);
        json_t *line =
            json_pack("{s:s, s:o}", "subject", subject, "request",
                      pw_stream_config(stream->kind, stream->ns, stream->shard, stream->replicas));
        if (line == NULL)
            return PAWL_E_NOMEM;
        put(line);
    }
    return PAWL_OK;
}

static struct pw_provisioned run_one(natsConnection *connection, const struct pw_stream *stream,
                                     bool make, pawl_why *why)
{
    struct pw_provisioned one = { .text = why->text };
    if (make)
        one.err = pw_stream_ensure(connection, stream, NULL, &one.made, why);
    else
        one.err = pw_stream_check(connection, stream, NULL, why);
    return one;
}

static pawl_err run_all(natsConnection *connection, const struct pw_provision *provision, bool make,
                        void (*seen)(void *arg, const struct pw_provisioned *one), void *arg,
                        pawl_why *why)
{
    struct pw_stream streams[STREAMS_MAX];
    size_t count = list(provision, streams);
    for (size_t i = 0; i < count; i++) {
        char name[PW_STREAM_NAME_SIZE] = "";
        pawl_why what = { "" };
        pw_stream_name(streams[i].kind, streams[i].ns, streams[i].shard, name);
        struct pw_provisioned one = run_one(connection, &streams[i], make, &what);
        if (pawl_err_class_of(one.err) == PAWL_CLASS_TRANSIENT)
            return pw_fail(why, one.err, "%s", what.text);
        one.stream = name;
        seen(arg, &one);
    }
    return PAWL_OK;
}

pawl_err pw_provision_run(const struct pw_provision *provision, bool make,
                          void (*seen)(void *arg, const struct pw_provisioned *one), void *arg,
                          pawl_why *why)
{
    const struct pw_link_options options = {
        .nats = provision->nats, .bus = provision->bus, .name = "pawl provision", .quick = true
    };
    struct pw_link *link = NULL;
    natsConnection *connection = NULL;
    pawl_err err = pw_link_open(&link, &options, why);
    if (err != PAWL_OK)
        return err;
    err = pw_link_get(link, &connection, NULL, why);
    if (err == PAWL_OK)
        err = run_all(connection, provision, make, seen, arg, why);
    pw_link_close(link);
    return err;
}
