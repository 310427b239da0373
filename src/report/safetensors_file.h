/* safetensors_file.h: the tensors of an input as one .safetensors file. Streamed, any size. */
#ifndef TD_REPORT_SAFETENSORS_FILE_H
#define TD_REPORT_SAFETENSORS_FILE_H

#include "base/job.h"
#include "tensor/tensor.h"

#include <stdio.h>

struct td_safetensors_counts {
    uint64_t written, bytes; /* bytes of values */
    uint64_t left_out;       /* the format cannot hold, as they have too many axes */
    const char *why;         /* the type of one */
};

/* `count` tensors, the i-th by at(context, i). Block-quantised and affine values are written as float32. */
TD_CHECK tdbg_status td_safetensors_write(const void *context,
                                          const struct td_tensor *(*at)(const void *context, size_t i),
                                          size_t count, FILE *file, struct td_job *job,
                                          struct td_safetensors_counts *out, struct tdbg_error *error);

#endif
