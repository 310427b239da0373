/* onnx_probe.c: telling ONNX from other bytes. See onnx_probe.h.
 *
 * Protobuf has no magic, so the structure has to speak for itself: every tag valid to the very end, known
 * fields written as the schema says, unknown ones with numbers a later schema could have given out, and the
 * fields there that no honest file lacks. Data is stepped over by its length, so a probe touches few pages
 * however large the file.
 *
 * A damaged file that shows those fields before the damage counts when its name agrees, so that the user
 * hears what is wrong with it and not that it is unknown.
 */
#include "format/onnx_probe.h"

#include "format/onnx_model.h"
#include "format/wire.h"

#include <string.h>

enum { PLAUSIBLE_NUMBER = 64, PLAUSIBLE_VERSION = 1000, PROBED_GRAPH_FIELDS = 64 };

/* Field numbers of the schema. */
enum {
    MODEL_IR_VERSION = 1,
    MODEL_GRAPH = 7,
    GRAPH_INITIALIZER = 5,
    TENSOR_DATA_TYPE = 2,
    TENSOR_EXTERNAL = 13
};

static bool ends_with(const char *name, const char *ending)
{
    size_t length = strlen(name), tail = strlen(ending);
    return length >= tail && strcmp(name + length - tail, ending) == 0;
}

static bool plausible(const ProtobufCMessageDescriptor *message, const struct td_wire_field *field)
{
    if (protobuf_c_message_descriptor_get_field(message, field->number))
        return td_onnx_knows(message, field);
    return field->number < PLAUSIBLE_NUMBER;
}

static bool plausible_graph(const uint8_t *data, size_t size)
{
    struct td_cursor cursor = td_cursor_init(data, size);
    struct td_wire_field field;
    for (int i = 0; i < PROBED_GRAPH_FIELDS && td_wire_next(&cursor, &field); i++)
        if (!plausible(&onnx__graph_proto__descriptor, &field))
            return false;
    return !cursor.bad;
}

bool td_onnx_probe_model(const struct td_source *source)
{
    bool named = ends_with(source->name, ".onnx"), version = false, graph = false;
    struct td_cursor cursor = td_cursor_init(source->data, source->size);
    struct td_wire_field field;
    while (td_wire_next(&cursor, &field)) {
        if (!plausible(&onnx__model_proto__descriptor, &field))
            return false;
        if (field.number == MODEL_IR_VERSION)
            version = field.value > 0 && field.value < PLAUSIBLE_VERSION;
        if (field.number == MODEL_GRAPH) {
            graph = true;
            if (!named && !plausible_graph(field.bytes, field.size))
                return false;
        }
    }
    if (cursor.bad)
        return named && version && (graph || field.number == MODEL_GRAPH);
    return version && graph;
}

/* A tensor says so little about itself that its name has to agree in any case. */
bool td_onnx_probe_tensor(const struct td_source *source)
{
    if (!ends_with(source->name, ".pb"))
        return false;
    bool type = false;
    struct td_cursor cursor = td_cursor_init(source->data, source->size);
    struct td_wire_field field;
    while (td_wire_next(&cursor, &field)) {
        if (!plausible(&onnx__tensor_proto__descriptor, &field))
            return false;
        if (field.number == TENSOR_DATA_TYPE)
            type = field.value > 0 && field.value < PLAUSIBLE_NUMBER;
    }
    return type;
}

/* The first field of that number in a message that is a field itself. */
static bool find_child(const struct td_wire_field *message, uint32_t number, struct td_wire_field *out)
{
    struct td_cursor cursor = td_cursor_init(message->bytes, message->size);
    while (td_wire_next(&cursor, out))
        if (out->number == number && out->wire == TD_WIRE_BYTES)
            return true;
    return false;
}

static bool equals(const struct td_wire_field *field, const char *text)
{
    return field->size == strlen(text) && memcmp(field->bytes, text, field->size) == 0;
}

static bool tensor_located_at(const struct td_wire_field *tensor, const char *location)
{
    struct td_cursor cursor = td_cursor_init(tensor->bytes, tensor->size);
    struct td_wire_field entry, key, value;
    while (td_wire_next(&cursor, &entry))
        if (entry.number == TENSOR_EXTERNAL && entry.wire == TD_WIRE_BYTES && find_child(&entry, 1, &key) &&
            equals(&key, "location") && find_child(&entry, 2, &value) && equals(&value, location))
            return true;
    return false;
}

/* Asked once for every other file of a folder, so it looks at the initialisers of the main graph only: that
 * is where external data is, and a walk through ten thousand nodes would be felt. */
bool td_onnx_covers(const struct td_source *source, const char *name)
{
    const char *slash = strrchr(source->name, '/');
    size_t folder = slash ? (size_t)(slash + 1 - source->name) : 0;
    if (strncmp(source->name, name, folder) != 0 || !td_onnx_probe_model(source))
        return false;
    struct td_wire_field file = {.bytes = source->data, .size = source->size}, graph, tensor;
    if (!find_child(&file, MODEL_GRAPH, &graph))
        return false;
    struct td_cursor cursor = td_cursor_init(graph.bytes, graph.size);
    while (td_wire_next(&cursor, &tensor))
        if (tensor.number == GRAPH_INITIALIZER && tensor.wire == TD_WIRE_BYTES &&
            tensor_located_at(&tensor, name + folder))
            return true;
    return false;
}
