/* wire.h: protobuf's wire format, one field at a time, out of bytes that may lie.
 *
 * A message is a run of fields, each a tag and a value; nothing says where the message ends but whoever
 * holds it:
 *
 *     tag      varint: number << 3 | wire type
 *     value    0  varint: 7 bits a byte, the lowest first, the top bit says "more follows"; at most 10 bytes
 *              1  8 bytes, little-endian
 *              2  varint length, then that many bytes (text, bytes, a message, packed scalars)
 *              5  4 bytes, little-endian
 *
 * Wire types 3 and 4 (groups) died before ONNX was born and count as damage. The walk keeps to the cursor's
 * bounds and allocates nothing.
 */
#ifndef TD_FORMAT_WIRE_H
#define TD_FORMAT_WIRE_H

#include "base/cursor.h"

enum td_wire { TD_WIRE_VARINT = 0, TD_WIRE_64 = 1, TD_WIRE_BYTES = 2, TD_WIRE_32 = 5 };

struct td_wire_field {
    uint32_t number;
    enum td_wire wire;
    uint64_t value;       /* of a varint or a fixed-width field, as bits */
    const uint8_t *begin; /* the tag */
    const uint8_t *bytes; /* what follows the tag and, for TD_WIRE_BYTES, the length */
    size_t size;          /* of `bytes` */
};

static inline uint64_t td_wire_varint(struct td_cursor *c)
{
    uint64_t value = 0;
    size_t left = c->bad ? 0 : td_cursor_left(c);
    const uint8_t *bytes = c->data + c->at;
    for (unsigned i = 0; i < 10 && i < left; i++) {
        value |= (uint64_t)(bytes[i] & 0x7f) << 7 * i; /* bits beyond the 64th fall off */
        if (bytes[i] < 0x80) {
            c->at += i + 1;
            return value;
        }
    }
    c->bad = true;
    return 0;
}

/* The next field. False at the end of the message, and on damage: then the cursor is `bad`, and the field's
 * number is 0 when there was no making out even that. */
static inline bool td_wire_next(struct td_cursor *c, struct td_wire_field *out)
{
    *out = (struct td_wire_field){0};
    if (c->bad || td_cursor_left(c) == 0)
        return false;
    out->begin = c->data + c->at;
    uint64_t tag = td_wire_varint(c);
    if (c->bad || tag >> 3 == 0 || tag >> 32 != 0) {
        c->bad = true;
        return false;
    }
    out->number = (uint32_t)(tag >> 3);
    out->wire = (enum td_wire)(tag & 7);
    size_t start = c->at;
    switch (out->wire) {
    case TD_WIRE_VARINT:
        out->value = td_wire_varint(c);
        break;
    case TD_WIRE_64:
        out->value = td_cursor_u64(c);
        break;
    case TD_WIRE_32:
        out->value = td_cursor_u32(c);
        break;
    case TD_WIRE_BYTES: {
        uint64_t length = td_wire_varint(c);
        start = c->at;
        td_cursor_take(c, length);
        break;
    }
    default:
        c->bad = true;
    }
    if (c->bad)
        return false;
    out->bytes = c->data + start;
    out->size = c->at - start;
    return true;
}

#endif
