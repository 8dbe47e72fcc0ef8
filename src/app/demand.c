/* SPDX-License-Identifier: Apache-2.0
 *
 * See demand.h. */
#include "app/config.h"
#include "app/demand.h"
#include "app/text.h"
#include "base/base.h"

static const char *const op_names[PW_OPS] = {
    [PW_OP_CREATE] = "create", [PW_OP_SEND] = "send",     [PW_OP_DELETE] = "delete",
    [PW_OP_RETRY] = "retry",   [PW_OP_HOLD] = "hold",     [PW_OP_RELEASE] = "release",
    [PW_OP_STATUS] = "status", [PW_OP_VERIFY] = "verify", [PW_OP_REPLAY] = "replay",
};

enum pw_op pw_op_of(const char *name)
{
    int op = 0;
    while (op < PW_OPS && strcmp(op_names[op], name) != 0)
        op++;
    return (enum pw_op)op;
}

const char *pw_op_name(enum pw_op op)
{
    return op < PW_OPS ? op_names[op] : "?";
}

#define BIT(op) (1u << PW_OP_##op)
#define SCOPES (BIT(HOLD) | BIT(RELEASE))
#define ENTITIES (BIT(CREATE) | BIT(SEND) | BIT(DELETE) | BIT(RETRY) | BIT(REPLAY))

enum field_kind { TEXT, NUMBER };

static const struct field {
    const char *name;
    enum field_kind kind;
    size_t offset;
    unsigned ops; /* that take it */
    unsigned needed;
} fields[] = {
#define AT(member) offsetof(struct pw_demand, member)
    { "machine", TEXT, AT(machine), ENTITIES | SCOPES, ENTITIES | SCOPES },
    { "id", TEXT, AT(id), ENTITIES | SCOPES, ENTITIES },
    { "event", TEXT, AT(event), BIT(SEND), BIT(SEND) },
    { "data", TEXT, AT(text), BIT(CREATE) | BIT(SEND), 0 },
    { "data_base64", TEXT, AT(base64), BIT(CREATE) | BIT(SEND), 0 },
    { "key", TEXT, AT(key), BIT(CREATE) | SCOPES, 0 },
    { "delay_ms", NUMBER, AT(delay_ms), BIT(CREATE), 0 },
    { "message_id", TEXT, AT(message_id), BIT(CREATE) | BIT(SEND), 0 },
    { "version", NUMBER, AT(version), BIT(SEND) | BIT(DELETE) | BIT(RETRY), 0 },
    { "trace", TEXT, AT(trace), BIT(CREATE) | BIT(SEND), 0 },
    { "state", TEXT, AT(state), SCOPES, 0 },
#undef AT
};

json_t *pw_demand_load(const char *line, size_t size, pawl_why *why)
{
    json_error_t error;
    json_t *object = json_loadb(line, size, JSON_REJECT_DUPLICATES, &error);
    if (object == NULL) {
        (void)pw_fail(why, PAWL_E_USAGE, "not JSON: %.128s, at byte %d", error.text,
                      error.position);
        return NULL;
    }
    if (!json_is_object(object)) {
        json_decref(object);
        (void)pw_fail(why, PAWL_E_USAGE, "not a JSON object");
        return NULL;
    }
    return object;
}

static const struct field *find_field(const char *name)
{
    for (size_t i = 0; i < PW_COUNT(fields); i++)
        if (strcmp(fields[i].name, name) == 0)
            return &fields[i];
    return NULL;
}

/* A number, or the same as text: versions do not fit the numbers of every program. */
static bool take_number(json_t *value, uint64_t *to)
{
    if (json_is_string(value))
        return pw_parse_number(json_string_value(value), 0, UINT64_MAX, to);
    if (!json_is_integer(value) || json_integer_value(value) < 0)
        return false;
    *to = (uint64_t)json_integer_value(value);
    return true;
}

static pawl_err take_field(struct pw_demand *demand, const char *name, json_t *value, pawl_why *why)
{
    const struct field *field = find_field(name);
    if (field == NULL)
        return pw_fail(why, PAWL_E_USAGE, "unknown field \"%.64s\"", name);
    if ((field->ops >> demand->op & 1) == 0)
        return pw_fail(why, PAWL_E_USAGE, "%s takes no field \"%s\"", pw_op_name(demand->op), name);
    void *at = (char *)demand + field->offset;
    if (field->kind == NUMBER)
        return take_number(value, at)
                   ? PAWL_OK
                   : pw_fail(why, PAWL_E_USAGE, "\"%s\" is not a number from 0 to 2^64 - 1", name);
    if (!json_is_string(value))
        return pw_fail(why, PAWL_E_USAGE, "\"%s\" is not a string", name);
    *(const char **)at = json_string_value(value);
    return PAWL_OK;
}

/* "op" and "tag", of the socket's requests. */
static pawl_err take_envelope(struct pw_demand *demand, json_t *object, pawl_why *why)
{
    json_t *tag = json_object_get(object, "tag");
    const char *op = json_string_value(json_object_get(object, "op"));
    if (json_is_integer(tag)) {
        demand->has_tag = true;
        demand->tag = json_integer_value(tag);
    } else if (tag != NULL) {
        return pw_fail(why, PAWL_E_USAGE, "\"tag\" is not a whole number");
    }
    if (op == NULL)
        return pw_fail(why, PAWL_E_USAGE, "no \"op\"");
    demand->op = pw_op_of(op);
    return demand->op != PW_OPS ? PAWL_OK : pw_fail(why, PAWL_E_USAGE, "unknown op \"%.32s\"", op);
}

static pawl_err set_data(struct pw_demand *demand, pawl_why *why)
{
    if (demand->text != NULL && demand->base64 != NULL)
        return pw_fail(why, PAWL_E_USAGE, "one of \"data\" and \"data_base64\"");
    demand->has_data = demand->text != NULL || demand->base64 != NULL;
    demand->data = pawl_str(demand->text);
    if (demand->base64 == NULL)
        return PAWL_OK;
    size_t size = strlen(demand->base64);
    demand->decoded = pw_alloc(size / 4 * 3 + 1);
    if (demand->decoded == NULL)
        return pw_fail(why, PAWL_E_NOMEM, "out of memory");
    demand->data.data = demand->decoded;
    if (!pw_base64_decode(demand->base64, size, demand->decoded, &demand->data.size))
        return pw_fail(why, PAWL_E_USAGE, "\"data_base64\" is not base64");
    return PAWL_OK;
}

static pawl_err check_needed(const struct pw_demand *demand, pawl_why *why)
{
    for (size_t i = 0; i < PW_COUNT(fields); i++) {
        bool needed = (fields[i].needed >> demand->op & 1) != 0;
        if (needed &&
            *(const char *const *)(const void *)((const char *)demand + fields[i].offset) == NULL)
            return pw_fail(why, PAWL_E_USAGE, "no \"%s\"", fields[i].name);
    }
    return PAWL_OK;
}

pawl_err pw_demand_read(struct pw_demand *demand, json_t *object, enum pw_op op, pawl_why *why)
{
    const char *name = NULL;
    json_t *value = NULL;
    bool enveloped = op == PW_OPS;
    *demand = (struct pw_demand){ .op = op };
    pawl_err err = enveloped ? take_envelope(demand, object, why) : PAWL_OK;
    json_object_foreach(object, name, value)
    {
        if (err != PAWL_OK)
            break;
        if (!enveloped || (strcmp(name, "op") != 0 && strcmp(name, "tag") != 0))
            err = take_field(demand, name, value, why);
    }
    if (err == PAWL_OK)
        err = check_needed(demand, why);
    return err == PAWL_OK ? set_data(demand, why) : err;
}

void pw_demand_fini(struct pw_demand *demand)
{
    pw_free(demand->decoded);
    demand->decoded = NULL;
}
