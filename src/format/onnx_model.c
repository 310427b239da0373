/* onnx_model.c: the skim, and the unpacking of what it leaves. See onnx_model.h.
 *
 * The skim is driven by the descriptors protoc-c generates, so it knows every message of the schema without
 * naming them; TensorProto alone is special. It is also the gatekeeper: what it passes on has valid tags, the
 * schema's wire types, bounded depth and no message given twice (protobuf would merge the two, and the merge
 * of two tensors is nothing an honest file asks for).
 *
 * Lengths of messages are not known before they are copied. They are written as varints of always 5 bytes
 * and filled in afterwards; protobuf allows the padding.
 */
#include "format/onnx_model.h"

#include "base/limits.h"
#include "format/wire.h"

#include <string.h>

enum { LENGTH_BYTES = 5 };

struct skim {
    const uint8_t *file; /* for offsets in errors */
    struct td_buffer twin;
    struct td_buffer *spans, *rows;
    struct tdbg_error *error;
};

static enum td_wire wire_of(ProtobufCType type)
{
    switch (type) {
    case PROTOBUF_C_TYPE_SFIXED32:
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_FLOAT:
        return TD_WIRE_32;
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_DOUBLE:
        return TD_WIRE_64;
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_BYTES:
    case PROTOBUF_C_TYPE_MESSAGE:
        return TD_WIRE_BYTES;
    default:
        return TD_WIRE_VARINT;
    }
}

/* Repeated scalars may come packed or one by one, whatever the schema prefers. */
static bool wire_fits(const ProtobufCFieldDescriptor *known, enum td_wire wire)
{
    return wire == wire_of(known->type) ||
           (wire == TD_WIRE_BYTES && known->label == PROTOBUF_C_LABEL_REPEATED);
}

bool td_onnx_knows(const ProtobufCMessageDescriptor *message, const struct td_wire_field *field)
{
    const ProtobufCFieldDescriptor *known = protobuf_c_message_descriptor_get_field(message, field->number);
    return known && wire_fits(known, field->wire);
}

static void put_varint(struct td_buffer *b, uint64_t value)
{
    uint8_t bytes[10];
    size_t count = 0;
    do {
        bytes[count] = (uint8_t)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
        value >>= 7;
        count++;
    } while (value);
    td_buffer_append(b, bytes, count);
}

static void put_tag(struct td_buffer *b, uint32_t number, enum td_wire wire)
{
    put_varint(b, (uint64_t)number << 3 | wire);
}

static void put_field(struct td_buffer *b, const struct td_wire_field *field)
{
    put_tag(b, field->number, field->wire);
    if (field->wire == TD_WIRE_VARINT) {
        put_varint(b, field->value);
        return;
    }
    if (field->wire == TD_WIRE_BYTES)
        put_varint(b, field->size);
    td_buffer_append(b, field->bytes, field->size);
}

static bool is_data(const ProtobufCMessageDescriptor *message, uint32_t number)
{
    if (message != &onnx__tensor_proto__descriptor)
        return false;
    switch (number) {
    case TD_ONNX_FLOAT_DATA:
    case TD_ONNX_INT32_DATA:
    case TD_ONNX_STRING_DATA:
    case TD_ONNX_INT64_DATA:
    case TD_ONNX_RAW_DATA:
    case TD_ONNX_DOUBLE_DATA:
    case TD_ONNX_UINT64_DATA:
        return true;
    default:
        return false;
    }
}

/* Remembers a piece of data. Elements written one by one, each with its tag, grow one span. */
static void note_data(struct skim *s, const struct td_wire_field *field, size_t first_span)
{
    if (field->number == TD_ONNX_STRING_DATA || field->size == 0)
        return;
    struct td_onnx_span span = {
        .field = (enum td_onnx_data)field->number,
        .tagged = field->wire != TD_WIRE_BYTES,
        .data = field->wire == TD_WIRE_BYTES ? field->bytes : field->begin,
    };
    span.size = (size_t)(field->bytes + field->size - span.data);
    size_t count = s->spans->size / sizeof span;
    if (span.tagged && count > first_span) {
        struct td_onnx_span *last = (struct td_onnx_span *)s->spans->data + count - 1;
        if (last->tagged && last->field == span.field && last->data + last->size == span.data) {
            last->size += span.size;
            return;
        }
    }
    td_buffer_append(s->spans, &span, sizeof span);
}

static void put_row(struct skim *s, size_t first_span)
{
    uint32_t row = (uint32_t)(s->rows->size / sizeof first_span);
    uint8_t bytes[4] = {(uint8_t)row, (uint8_t)(row >> 8), (uint8_t)(row >> 16), (uint8_t)(row >> 24)};
    td_buffer_append(s->rows, &first_span, sizeof first_span);
    put_tag(&s->twin, TD_ONNX_RAW_DATA, TD_WIRE_BYTES);
    put_varint(&s->twin, sizeof bytes);
    td_buffer_append(&s->twin, bytes, sizeof bytes);
}

static tdbg_status damage(const struct skim *s, const ProtobufCMessageDescriptor *message,
                          const struct td_wire_field *field, const char *what)
{
    uint64_t at = (uint64_t)(field->begin - s->file);
    const ProtobufCFieldDescriptor *known = protobuf_c_message_descriptor_get_field(message, field->number);
    return td_fail_at(s->error, TDBG_CORRUPT, at, "%s of %s %s", known ? known->name : "a field",
                      message->short_name, what);
}

static tdbg_status skim_message(struct skim *s, const ProtobufCMessageDescriptor *message,
                                const uint8_t *data, size_t size, int depth);

static tdbg_status skim_child(struct skim *s, const ProtobufCFieldDescriptor *known,
                              const struct td_wire_field *field, int depth)
{
    put_tag(&s->twin, field->number, TD_WIRE_BYTES);
    if (!td_buffer_extend(&s->twin, LENGTH_BYTES))
        return TDBG_OK; /* sticky, reported at the end */
    size_t start = s->twin.size;
    TD_TRY(skim_message(s, known->descriptor, field->bytes, field->size, depth + 1));
    if (s->twin.failed)
        return TDBG_OK;
    uint64_t length = s->twin.size - start; /* below 2^35: the twin's limit is 2^30 */
    uint8_t *at = (uint8_t *)s->twin.data + start - LENGTH_BYTES;
    for (int i = 0; i < LENGTH_BYTES; i++)
        at[i] = (uint8_t)((length >> 7 * i & 0x7f) | (i < LENGTH_BYTES - 1 ? 0x80 : 0));
    return TDBG_OK;
}

static tdbg_status skim_message(struct skim *s, const ProtobufCMessageDescriptor *message,
                                const uint8_t *data, size_t size, int depth)
{
    if (depth > TD_MAX_DEPTH)
        return td_fail(s->error, TDBG_LIMIT, "messages nested more than %d deep", TD_MAX_DEPTH);
    struct td_cursor cursor = td_cursor_init(data, size);
    struct td_wire_field field;
    size_t first_span = s->spans->size / sizeof(struct td_onnx_span);
    uint64_t seen = 0; /* one bit per field of the schema; no message has 64 */
    while (td_wire_next(&cursor, &field)) {
        const ProtobufCFieldDescriptor *known =
            protobuf_c_message_descriptor_get_field(message, field.number);
        if (!known)
            continue; /* of a newer schema */
        if (!wire_fits(known, field.wire))
            return damage(s, message, &field, "has the wrong wire type");
        bool data_field = is_data(message, field.number);
        if (known->label != PROTOBUF_C_LABEL_REPEATED &&
            (data_field || known->type == PROTOBUF_C_TYPE_MESSAGE)) {
            uint64_t bit = UINT64_C(1) << (known - message->fields);
            if (seen & bit)
                return damage(s, message, &field, "is given twice");
            seen |= bit;
        }
        if (data_field)
            note_data(s, &field, first_span);
        else if (known->type == PROTOBUF_C_TYPE_MESSAGE)
            TD_TRY(skim_child(s, known, &field, depth));
        else
            put_field(&s->twin, &field);
    }
    if (cursor.bad)
        return damage(s, message, &field, "is cut short or damaged");
    if (message == &onnx__tensor_proto__descriptor)
        put_row(s, first_span);
    return TDBG_OK;
}

/* protobuf-c says that it failed, not why. */
struct capped {
    struct td_arena *arena;
    bool exhausted;
};

static void *capped_alloc(void *context, size_t size)
{
    struct capped *capped = context;
    void *memory = td_arena_alloc(capped->arena, size);
    if (!memory)
        capped->exhausted = true;
    return memory;
}

/* Everything goes at once, with the arena. */
static void capped_free(void *context, void *pointer)
{
    (void)context;
    (void)pointer;
}

static tdbg_status unpack(struct td_onnx_file *file, const ProtobufCMessageDescriptor *root,
                          const struct td_buffer *twin, ProtobufCMessage **out, struct tdbg_error *error)
{
    struct capped capped = {.arena = &file->arena};
    ProtobufCAllocator allocator = {capped_alloc, capped_free, &capped};
    *out = protobuf_c_message_unpack(root, &allocator, twin->size, (const uint8_t *)td_buffer_text(twin));
    if (*out)
        return TDBG_OK;
    if (capped.exhausted)
        return td_fail(error, TDBG_LIMIT, "more nodes and names than tdbg takes on");
    return td_fail(error, TDBG_CORRUPT, "not a valid %s: a packed field or a varint is damaged",
                   root->short_name);
}

static tdbg_status init(struct td_onnx_file *file, const ProtobufCMessageDescriptor *root,
                        const uint8_t *data, size_t size, ProtobufCMessage **out, struct tdbg_error *error)
{
    *file = (struct td_onnx_file){0};
    td_arena_init(&file->arena, TD_MAX_METADATA);
    td_buffer_init(&file->spans, TD_MAX_METADATA);
    td_buffer_init(&file->rows, TD_MAX_METADATA);
    struct skim s = {.file = data, .spans = &file->spans, .rows = &file->rows, .error = error};
    td_buffer_init(&s.twin, TD_MAX_METADATA);

    tdbg_status status = skim_message(&s, root, data, size, 0);
    size_t end = file->spans.size / sizeof(struct td_onnx_span);
    td_buffer_append(&file->rows, &end, sizeof end);
    if (status == TDBG_OK && (s.twin.failed || file->spans.failed || file->rows.failed))
        status = td_fail(error, TDBG_LIMIT, "more nodes and names than tdbg takes on");
    if (status == TDBG_OK)
        status = unpack(file, root, &s.twin, out, error);
    td_buffer_release(&s.twin);
    if (status != TDBG_OK)
        td_onnx_release(file);
    return status;
}

tdbg_status td_onnx_init_model(struct td_onnx_file *out, const uint8_t *data, size_t size,
                               struct tdbg_error *error)
{
    ProtobufCMessage *root;
    TD_TRY(init(out, &onnx__model_proto__descriptor, data, size, &root, error));
    out->model = (const Onnx__ModelProto *)root;
    return TDBG_OK;
}

tdbg_status td_onnx_init_tensor(struct td_onnx_file *out, const uint8_t *data, size_t size,
                                struct tdbg_error *error)
{
    ProtobufCMessage *root;
    TD_TRY(init(out, &onnx__tensor_proto__descriptor, data, size, &root, error));
    out->tensor = (const Onnx__TensorProto *)root;
    return TDBG_OK;
}

void td_onnx_release(struct td_onnx_file *file)
{
    td_arena_release(&file->arena);
    td_buffer_release(&file->spans);
    td_buffer_release(&file->rows);
    file->model = NULL;
    file->tensor = NULL;
}

size_t td_onnx_spans(const struct td_onnx_file *file, const Onnx__TensorProto *tensor,
                     const struct td_onnx_span **out)
{
    const uint8_t *bytes = tensor->raw_data.data; /* written by put_row: always there, always 4 bytes */
    size_t row = bytes[0] | (size_t)bytes[1] << 8 | (size_t)bytes[2] << 16 | (size_t)bytes[3] << 24;
    const size_t *rows = (const size_t *)file->rows.data;
    size_t count = rows[row + 1] - rows[row];
    *out = count ? (const struct td_onnx_span *)file->spans.data + rows[row] : NULL;
    return count;
}
