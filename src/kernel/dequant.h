/* dequant.h: GGUF's block formats as float32.
 *
 * The scalar specification: for every finite scale the values are, bit for bit, those of ggml's own reference
 * code, because each is computed by the same float32 operations in the same order.
 */
#ifndef TD_KERNEL_DEQUANT_H
#define TD_KERNEL_DEQUANT_H

#include "tensor/dtype.h"

/* De-quantises `nblocks` whole blocks of a block type; `out` takes nblocks * facts->block floats. */
void td_dequantise(enum td_dtype dtype, const uint8_t *blocks, int64_t nblocks, float *out);

#endif
