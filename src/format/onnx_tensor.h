/* onnx_tensor.h: from a TensorProto to a view of its elements. */
#ifndef TD_FORMAT_ONNX_TENSOR_H
#define TD_FORMAT_ONNX_TENSOR_H

#include "format/onnx_model.h"
#include "io/source.h"
#include "tensor/view.h"

/* A view of the tensor's elements: in the file, in the file of external data beside it, or decoded into
 * scratch space. Every failure but TDBG_NOMEM concerns this tensor alone. */
TD_CHECK tdbg_status td_onnx_view(const struct td_source *source, const struct td_onnx_file *file,
                                  const Onnx__TensorProto *tensor, struct td_view *out,
                                  struct tdbg_error *error);

TD_CHECK tdbg_status td_onnx_shape(size_t ndim, const int64_t *dims, struct td_shape *out,
                                   struct tdbg_error *error);

#endif
