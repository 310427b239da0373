/* tiny_dump.h: the one thing a model has to call to be debugged: dump(layer, stage, tensor).
 *
 * Each tensor becomes a file OUT/SIDE/{layer}_{stage}.npy or .safetensors; or, through tdbg's C API, a tensor
 * layers.{layer}.{stage} of a run recorded in OUT/SIDE. A failure is remembered, so that the model need not
 * look at it in the middle of its work; whoever opened the dump asks at the end.
 */
#ifndef TINY_DUMP_H
#define TINY_DUMP_H

#include "tdbg.h"

#include <stdbool.h>
#include <stdint.h>

enum dtype { FLOAT32, BFLOAT16, INT64 };

/* Row-major, without gaps. */
struct tensor {
    enum dtype dtype;
    int ndim;
    int64_t shape[4];
    const void *data;
};

enum dump_format { DUMP_NPY, DUMP_SAFETENSORS, DUMP_RUN }; /* .npy has no bfloat16 */

struct dump {
    enum dump_format format;
    bool failed;
    tdbg_run *run; /* NULL unless the format is DUMP_RUN; then the model also tells its scopes to it */
    char folder[1024];
};

/* Makes the folder OUT/SIDE. */
void dump_init(struct dump *dump, const char *out, const char *side, enum dump_format format);

/* Writes what is still on its way. */
void dump_close(struct dump *dump);

/* The scope of one layer, for a run; tdbg_scope_end(dump->run) ends it. */
void dump_layer(struct dump *dump, int layer);

void dump(struct dump *dump, int layer, const char *stage, struct tensor tensor);

#endif
