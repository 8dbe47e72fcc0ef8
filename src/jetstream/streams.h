/* SPDX-License-Identifier: Apache-2.0
 *
 * The one description of every stream and consumer that pawl uses. What is printed, compared and
 * applied comes from it. */
#ifndef PW_STREAMS_H
#define PW_STREAMS_H

#include "jetstream/api.h"

enum pw_stream_kind { PW_STREAM_JOURNAL, PW_STREAM_EVENTS, PW_STREAM_DLQ, PW_STREAM_KINDS };

#define PW_STREAM_NAME_SIZE 64 /* "PAWL_<ns>_EVENTS", with its '\0' */

#define PW_STREAM_REPLICAS_MAX 5 /* JetStream's own limit */

/* "PAWL_<ns>_<shard>", "PAWL_<ns>_EVENTS", "PAWL_<ns>_DLQ". */
void pw_stream_name(enum pw_stream_kind kind, const char *ns, uint32_t shard,
                    char name[PW_STREAM_NAME_SIZE]);

/* The body of STREAM.CREATE; NULL: out of memory. */
json_t *pw_stream_config(enum pw_stream_kind kind, const char *ns, uint32_t shard,
                         uint32_t replicas);

/* The body of CONSUMER.DURABLE.CREATE of a journal's consumer; NULL: out of memory. */
json_t *pw_consumer_config(const char *ns, uint32_t shard, const char *name, uint64_t start_seq);

/* True: a consumer's config, as the server tells it, is that of this body, and nothing else keeps
 * messages from it. */
bool pw_consumer_is(const json_t *wanted, const json_t *found);

/* Holds a stream's config, as the server tells it, against the description. PAWL_E_CONFIG: *why
 * names the setting, what it is and what it must be. A setting that loses nothing (replicas, the
 * duplicate window, the limits of EVENTS) may be another. */
PAWL_MUST_USE pawl_err pw_stream_compare(enum pw_stream_kind kind, const json_t *wanted,
                                         const json_t *found, pawl_why *why);

/* Which stream. */
struct pw_stream {
    enum pw_stream_kind kind;
    const char *ns;
    uint32_t shard;    /* of a journal */
    uint32_t replicas; /* when it is made; 0: one */
};

/* Looks at the stream, and changes nothing. *info (NULL: not wanted) is the caller's, as
 * STREAM.INFO answers. PAWL_E_NOT_FOUND: it is missing. PAWL_E_CONFIG: it has other settings. */
PAWL_MUST_USE pawl_err pw_stream_check(natsConnection *connection, const struct pw_stream *stream,
                                       json_t **info, pawl_why *why);

/* The same, and makes it when it is missing; then *made is true. One that is there is never
 * changed. */
PAWL_MUST_USE pawl_err pw_stream_ensure(natsConnection *connection, const struct pw_stream *stream,
                                        json_t **info, bool *made, pawl_why *why);

#endif
