/* npy.h: one .npy array as tensors, whether it is a file or a member of an .npz. */
#ifndef TD_FORMAT_NPY_H
#define TD_FORMAT_NPY_H

#include "tensor/tensor.h"

/* Adds the array under `name`; the fields of a structured array under "name.field". */
TD_CHECK tdbg_status td_npy_read(struct td_catalog *out, const char *name, const char *format,
                                 const uint8_t *data, size_t size, struct tdbg_error *error);

#endif
