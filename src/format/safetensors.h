/* safetensors.h: what those who write the format need to know of it. */
#ifndef TD_FORMAT_SAFETENSORS_H
#define TD_FORMAT_SAFETENSORS_H

#include "base/json.h"
#include "tensor/view.h"

/* In the place of a name: the file's own facts. No tensor can be called so. */
#define TD_SAFETENSORS_METADATA "__metadata__"

/* The format has no word for complex128. It is written as what torch.view_as_real makes of it, float64 with
 * a last axis of two, which anybody reads; in the metadata this and the tensor's name, as a key, say what it
 * was. */
#define TD_SAFETENSORS_PAIRS "complex128:"

/* False: the format cannot hold it. */
bool td_safetensors_holds(enum td_dtype dtype, const struct td_shape *shape);

/* The field of the header for one tensor, whose bytes lie from `begin` to `end`. */
void td_safetensors_put(struct td_json *j, const char *name, enum td_dtype dtype,
                        const struct td_shape *shape, uint64_t begin, uint64_t end);

/* The field of the metadata for one of complex128. */
void td_safetensors_put_note(struct td_json *j, const char *name);

#endif
