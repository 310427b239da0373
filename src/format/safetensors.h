/* safetensors.h: what those who write the format need to know of it. */
#ifndef TD_FORMAT_SAFETENSORS_H
#define TD_FORMAT_SAFETENSORS_H

#include "tensor/dtype.h"

/* In the place of a name: the file's own facts. No tensor can be called so. */
#define TD_SAFETENSORS_METADATA "__metadata__"

/* The format's word for a type: "F32", "BF16"; NULL when it has none. */
const char *td_safetensors_dtype(enum td_dtype dtype);

#endif
