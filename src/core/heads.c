/* SPDX-License-Identifier: Apache-2.0
 *
 * A record's heads: the few fields that the relay needs of each, read straight from the wire
 * (https://protobuf.dev/programming-guides/encoding), since unpacking all of it costs more than
 * appending it. Pure. */
#include "base/base.h"
#include "core/codec.h"

/* Field numbers of proto/pawl/v1/store.proto; tests/unit/codec.c holds them against protobuf-c. */
enum record_field {
    RECORD_LSN = 1,
    RECORD_TASK = 3,
    RECORD_TOMBSTONE,
    RECORD_ENTITY,
    RECORD_FRESH,
    RECORD_FREED,
    RECORD_FORGET
};
enum entity_field {
    ENTITY_MACHINE = 1,
    ENTITY_ID = 2,
    ENTITY_TRACE = 7,
    ENTITY_EPOCH = 8,
    ENTITY_VERSION = 9,
    ENTITY_PARKED = 20,
    ENTITY_EFFECTS = 25,
};

struct wire {
    const uint8_t *at;
    const uint8_t *end;
};

/* One field: its number, and its value or bytes. */
struct field {
    uint64_t number;
    uint64_t value;
    pawl_bytes bytes;
};

static bool read_varint(struct wire *wire, uint64_t *value)
{
    uint64_t read = 0;
    for (unsigned shift = 0; wire->at < wire->end && shift < 64; shift += 7) {
        uint8_t byte = *wire->at++;
        read |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *value = read;
            return true;
        }
    }
    return false;
}

static bool read_fixed(struct wire *wire, size_t size, uint64_t *value)
{
    uint64_t read = 0;
    if ((size_t)(wire->end - wire->at) < size)
        return false;
    for (size_t i = size; i-- > 0;)
        read = read << 8 | wire->at[i]; /* little-endian */
    wire->at += size;
    *value = read;
    return true;
}

static bool read_bytes(struct wire *wire, pawl_bytes *bytes)
{
    uint64_t size = 0;
    if (!read_varint(wire, &size) || size > (uint64_t)(wire->end - wire->at))
        return false;
    *bytes = (pawl_bytes){ wire->at, (size_t)size };
    wire->at += size;
    return true;
}

/* False: malformed, or the end (at == end). */
static bool read_field(struct wire *wire, struct field *field)
{
    uint64_t tag = 0;
    *field = (struct field){ .number = 0 };
    if (wire->at == wire->end || !read_varint(wire, &tag))
        return false;
    field->number = tag >> 3;
    switch (tag & 7) {
    case 0:
        return read_varint(wire, &field->value);
    case 1:
        return read_fixed(wire, 8, &field->value);
    case 2:
        return read_bytes(wire, &field->bytes);
    case 5:
        return read_fixed(wire, 4, &field->value);
    default:
        return false;
    }
}

static bool take_text(pawl_bytes bytes, char *to, size_t size)
{
    if (bytes.size >= size)
        return false;
    if (bytes.size > 0)
        memcpy(to, bytes.data, bytes.size);
    to[bytes.size] = '\0';
    return true;
}

static bool take_entity_field(const struct field *field, struct pw_heads *heads)
{
    switch (field->number) {
    case ENTITY_MACHINE:
        return take_text(field->bytes, heads->machine, sizeof(heads->machine));
    case ENTITY_ID:
        return take_text(field->bytes, heads->id, sizeof(heads->id));
    case ENTITY_TRACE:
        return take_text(field->bytes, heads->trace, sizeof(heads->trace));
    case ENTITY_EPOCH:
        heads->epoch = field->value;
        return true;
    case ENTITY_VERSION:
        heads->version = field->value;
        return true;
    case ENTITY_PARKED:
        heads->parked = field->value != 0;
        return true;
    case ENTITY_EFFECTS:
        heads->effects = true;
        return true;
    default:
        return true;
    }
}

static bool take_entity(pawl_bytes bytes, struct pw_heads *heads)
{
    struct wire wire = { bytes.data, (const uint8_t *)bytes.data + bytes.size };
    struct field field;
    while (read_field(&wire, &field))
        if (!take_entity_field(&field, heads))
            return false;
    return wire.at == wire.end && heads->machine[0] != '\0' && heads->id[0] != '\0';
}

static bool take_record_field(const struct field *field, struct pw_heads *heads)
{
    switch (field->number) {
    case RECORD_LSN:
        heads->lsn = field->value;
        return true;
    case RECORD_TASK:
        heads->task = field->value != 0;
        return true;
    case RECORD_TOMBSTONE:
        heads->tombstone = field->value != 0;
        return true;
    case RECORD_FRESH:
        heads->fresh = field->value != 0;
        return true;
    case RECORD_FREED:
        heads->freed = field->value;
        return true;
    case RECORD_FORGET:
        heads->forget = field->value != 0;
        return true;
    case RECORD_ENTITY:
        return take_entity(field->bytes, heads);
    default:
        return true;
    }
}

pawl_err pw_record_heads(pawl_bytes bytes, struct pw_heads *heads)
{
    struct wire wire = { bytes.data, (const uint8_t *)bytes.data + bytes.size };
    struct field field;
    *heads = (struct pw_heads){ .lsn = 0 };
    while (read_field(&wire, &field))
        if (!take_record_field(&field, heads))
            return PAWL_E_CORRUPT;
    bool whole = wire.at == wire.end && heads->lsn != 0 && heads->id[0] != '\0';
    return whole ? PAWL_OK : PAWL_E_CORRUPT;
}
