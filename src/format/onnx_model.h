/* onnx_model.h: an ONNX file as protobuf-c's structures, without the tensors' data.
 *
 * protobuf-c copies every byte it unpacks, and the tensors of a model are most of its bytes. So the file is
 * skimmed first: its messages are copied into a slim twin from which the data fields of every TensorProto
 * (raw_data, float_data, ...) are left out; where they lie in the file is remembered in a table. Only the
 * twin is unpacked.
 *
 *     file    ... TensorProto { dims, data_type, name, raw_data = 300 MB }
 *     twin    ... TensorProto { dims, data_type, name, raw_data = row of the table, 4 bytes }
 *     table   row -> spans of the file: (field, where, how many bytes)
 *
 * So in these structures the typed data fields are always empty and raw_data is never data: td_onnx_spans
 * tells where a tensor's data is. Also left out is what the schema does not know and the text of string
 * tensors. Everything borrows from the file's bytes and from this structure.
 */
#ifndef TD_FORMAT_ONNX_MODEL_H
#define TD_FORMAT_ONNX_MODEL_H

#include "base/arena.h"
#include "base/buffer.h"
#include "base/status.h"
#include "format/onnx.pb-c.h"

/* Field numbers of TensorProto's data. */
enum td_onnx_data {
    TD_ONNX_FLOAT_DATA = 4,
    TD_ONNX_INT32_DATA = 5,
    TD_ONNX_STRING_DATA = 6,
    TD_ONNX_INT64_DATA = 7,
    TD_ONNX_RAW_DATA = 9,
    TD_ONNX_DOUBLE_DATA = 10,
    TD_ONNX_UINT64_DATA = 11
};

/* A piece of a tensor's data. Never empty. */
struct td_onnx_span {
    enum td_onnx_data field;
    bool tagged; /* a run of fields of one element each, tags and all; else elements only (packed, raw) */
    const uint8_t *data;
    size_t size;
};

struct td_onnx_file {
    const Onnx__ModelProto *model;   /* one of the two, */
    const Onnx__TensorProto *tensor; /* the other is NULL */
    struct td_arena arena;           /* the unpacked messages */
    struct td_buffer spans;          /* of struct td_onnx_span, those of one tensor side by side */
    struct td_buffer rows;           /* of size_t: tensor i has the spans from row i to row i + 1 */
};

TD_CHECK tdbg_status td_onnx_init_model(struct td_onnx_file *out, const uint8_t *data, size_t size,
                                        struct tdbg_error *error);
TD_CHECK tdbg_status td_onnx_init_tensor(struct td_onnx_file *out, const uint8_t *data, size_t size,
                                         struct tdbg_error *error);
void td_onnx_release(struct td_onnx_file *file);

/* The data of a tensor of this file, in the order it is written; returns the number of spans. */
size_t td_onnx_spans(const struct td_onnx_file *file, const Onnx__TensorProto *tensor,
                     const struct td_onnx_span **out);

/* The schema knows the field and the field is written as the schema says. */
struct td_wire_field;
bool td_onnx_knows(const ProtobufCMessageDescriptor *message, const struct td_wire_field *field);

#endif
