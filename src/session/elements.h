/* elements.h: plain elements in a row, wherever they come from: part of a tensor, or of a comparison. */
#ifndef TD_SESSION_ELEMENTS_H
#define TD_SESSION_ELEMENTS_H

#include "base/status.h"
#include "tensor/dtype.h"

struct td_elements {
    enum td_dtype dtype; /* plain */
    int64_t count;
    const void *context; /* borrowed */
    tdbg_status (*load)(const void *context, int64_t start, int64_t count, void *out,
                        struct tdbg_error *error);
};

#endif
