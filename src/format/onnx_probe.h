/* onnx_probe.h: is it ONNX, and does it name that file? Answered from the bytes, without unpacking. */
#ifndef TD_FORMAT_ONNX_PROBE_H
#define TD_FORMAT_ONNX_PROBE_H

#include "io/source.h"

bool td_onnx_probe_model(const struct td_source *source);
bool td_onnx_probe_tensor(const struct td_source *source);

/* The model has external data in the file `name` of its bundle. */
bool td_onnx_covers(const struct td_source *source, const char *name);

#endif
