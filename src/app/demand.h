/* SPDX-License-Identifier: Apache-2.0
 *
 * A request as it stands in JSON: on standard input of the tool, and, with "op" and "tag", on the
 * daemon's socket. One table says which fields there are, and for what. Pure. */
#ifndef PW_DEMAND_H
#define PW_DEMAND_H

#include <jansson.h>

#include "pawl/client.h"

enum pw_op {
    PW_OP_CREATE,
    PW_OP_SEND,
    PW_OP_DELETE,
    PW_OP_RETRY,
    PW_OP_HOLD,
    PW_OP_RELEASE,
    PW_OP_STATUS,
    PW_OP_VERIFY,
    PW_OP_REPLAY,
    PW_OPS,
};

/* PW_OPS: no such one. */
enum pw_op pw_op_of(const char *name);
const char *pw_op_name(enum pw_op op);

struct pw_demand {
    enum pw_op op;
    bool has_tag;
    json_int_t tag;
    const char *machine; /* texts are borrowed from the object; NULL: not given */
    const char *id;
    const char *event;
    const char *key;
    const char *message_id;
    const char *trace;
    const char *state;
    const char *text; /* data as it stands */
    const char *base64;
    pawl_bytes data;
    bool has_data;
    uint64_t delay_ms;
    uint64_t version;
    uint8_t *decoded; /* owned */
};

/* A line as an object. NULL: *why says what is wrong and where. */
json_t *pw_demand_load(const char *line, size_t size, pawl_why *why);

/* PAWL_E_USAGE: an unknown field, one of another op, one that is missing, or of the wrong type. op:
 * what is asked; PW_OPS: the object says it. Ended by pw_demand_fini, also when this fails; what
 * was read so far (op, tag) is set. */
PAWL_MUST_USE pawl_err pw_demand_read(struct pw_demand *demand, json_t *object, enum pw_op op,
                                      pawl_why *why);
void pw_demand_fini(struct pw_demand *demand);

#endif
