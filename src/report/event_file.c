/* event_file.c: see event_file.h.
 *
 * A file is a row of records, each an Event message in a frame:
 *
 *     u64 length | u32 masked CRC of the length | the message | u32 masked CRC of the message
 *
 * all little-endian. The CRC is that of Castagnoli; masked means rotated and shifted, so that the CRC of
 * bytes that hold CRCs stays useful. A histogram is a float64 tensor of [bins, 3]: left edge, right edge,
 * count.
 */
#include "report/event_file.h"

#include "tensorboard.pb-c.h"

#include <isa-l/crc.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* A message is a tag and at most a histogram. */
enum { LARGEST = 16 << 20 };

enum { DATA_SCALAR = 1, DATA_TENSOR = 2, DTYPE_DOUBLE = 2, COLUMNS = 3 };

static void put_le(uint8_t *out, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        out[i] = (uint8_t)(value >> (8 * i));
}

static uint32_t masked_crc(const void *bytes, size_t size)
{
    uint32_t crc = ~crc32_iscsi((unsigned char *)(uintptr_t)bytes, (int)size, UINT32_MAX);
    return ((crc >> 15) | (crc << 17)) + UINT32_C(0xa282ead8);
}

static void write_record(struct td_event_file *e, const uint8_t *message, size_t size)
{
    uint8_t head[12], tail[4];
    put_le(head, size, 8);
    put_le(head + 8, masked_crc(head, 8), 4);
    put_le(tail, masked_crc(message, size), 4);
    e->failed = e->failed || fwrite(head, sizeof head, 1, e->file) != 1 ||
                fwrite(message, 1, size, e->file) != size || fwrite(tail, sizeof tail, 1, e->file) != 1;
}

static void write_event(struct td_event_file *e, const Tensorboard__Event *event)
{
    td_buffer_clear(&e->packed);
    size_t size = tensorboard__event__get_packed_size(event);
    uint8_t *bytes = (uint8_t *)td_buffer_extend(&e->packed, size);
    if (!bytes) {
        e->failed = true;
        return;
    }
    tensorboard__event__pack(event, bytes);
    write_record(e, bytes, size);
}

static void write_value(struct td_event_file *e, struct td_event_moment at,
                        Tensorboard__Summary__Value *value)
{
    Tensorboard__Event event = TENSORBOARD__EVENT__INIT;
    Tensorboard__Summary summary = TENSORBOARD__SUMMARY__INIT;
    summary.n_value = 1;
    summary.value = &value;
    event.wall_time = at.wall_time;
    event.step = at.step;
    event.what_case = TENSORBOARD__EVENT__WHAT_SUMMARY;
    event.summary = &summary;
    write_event(e, &event);
}

void td_event_file_init(struct td_event_file *out, FILE *file, double wall_time)
{
    char version[] = "brain.Event:2";
    Tensorboard__Event event = TENSORBOARD__EVENT__INIT;
    *out = (struct td_event_file){.file = file};
    td_buffer_init(&out->packed, LARGEST);
    event.wall_time = wall_time;
    event.what_case = TENSORBOARD__EVENT__WHAT_FILE_VERSION;
    event.file_version = version;
    write_event(out, &event);
}

bool td_event_file_finish(struct td_event_file *e)
{
    td_buffer_release(&e->packed);
    return !e->failed;
}

void td_event_scalar(struct td_event_file *e, struct td_event_moment at, const char *tag, double value)
{
    Tensorboard__Summary__Value v = TENSORBOARD__SUMMARY__VALUE__INIT;
    Tensorboard__Metadata metadata = TENSORBOARD__METADATA__INIT;
    Tensorboard__Metadata__PluginData plugin = TENSORBOARD__METADATA__PLUGIN_DATA__INIT;
    char name[] = "scalars";
    plugin.plugin_name = name;
    metadata.plugin_data = &plugin;
    metadata.data_class = DATA_SCALAR;
    v.tag = (char *)(uintptr_t)tag;
    v.metadata = &metadata;
    v.value_case = TENSORBOARD__SUMMARY__VALUE__VALUE_SIMPLE_VALUE;
    v.simple_value = (float)value;
    write_value(e, at, &v);
}

static uint8_t *histogram_content(const double *edges, const uint64_t *counts, size_t bins)
{
    uint8_t *content = calloc(bins, COLUMNS * sizeof(double));
    for (size_t i = 0; content && i < bins; i++) {
        const double row[COLUMNS] = {edges[i], edges[i + 1], (double)counts[i]};
        for (size_t k = 0; k < COLUMNS; k++) {
            uint64_t bits;
            memcpy(&bits, &row[k], sizeof bits);
            put_le(content + (i * COLUMNS + k) * sizeof bits, bits, sizeof bits);
        }
    }
    return content;
}

void td_event_histogram(struct td_event_file *e, struct td_event_moment at, const char *tag,
                        const double *edges, const uint64_t *counts, size_t bins)
{
    Tensorboard__Summary__Value v = TENSORBOARD__SUMMARY__VALUE__INIT;
    Tensorboard__Metadata metadata = TENSORBOARD__METADATA__INIT;
    Tensorboard__Metadata__PluginData plugin = TENSORBOARD__METADATA__PLUGIN_DATA__INIT;
    Tensorboard__Tensor tensor = TENSORBOARD__TENSOR__INIT;
    Tensorboard__Shape shape = TENSORBOARD__SHAPE__INIT;
    Tensorboard__Shape__Dim rows = TENSORBOARD__SHAPE__DIM__INIT, columns = TENSORBOARD__SHAPE__DIM__INIT;
    Tensorboard__Shape__Dim *dims[] = {&rows, &columns};
    char name[] = "histograms";
    uint8_t *content = histogram_content(edges, counts, bins);
    if (!content) {
        e->failed = true;
        return;
    }
    plugin.plugin_name = name;
    metadata.plugin_data = &plugin;
    metadata.data_class = DATA_TENSOR;
    rows.size = (int64_t)bins;
    columns.size = COLUMNS;
    shape.n_dim = 2;
    shape.dim = dims;
    tensor.dtype = DTYPE_DOUBLE;
    tensor.tensor_shape = &shape;
    tensor.tensor_content.data = content;
    tensor.tensor_content.len = bins * COLUMNS * sizeof(double);
    v.tag = (char *)(uintptr_t)tag;
    v.metadata = &metadata;
    v.value_case = TENSORBOARD__SUMMARY__VALUE__VALUE_TENSOR;
    v.tensor = &tensor;
    write_value(e, at, &v);
    free(content);
}
