/* tiny_dump.h: the one thing a model has to call to be debugged: dump(layer, stage, tensor).
 *
 * Each tensor becomes a file OUT/SIDE/{layer}_{stage}.npy or .safetensors. A failure is remembered, so that
 * the model need not look at it in the middle of its work; whoever opened the dump asks at the end.
 */
#ifndef TINY_DUMP_H
#define TINY_DUMP_H

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

enum dump_format { DUMP_NPY, DUMP_SAFETENSORS }; /* .npy has no bfloat16 */

struct dump {
    enum dump_format format;
    bool failed;
    char folder[1024];
};

/* Makes the folder OUT/SIDE. */
void dump_init(struct dump *dump, const char *out, const char *side, enum dump_format format);

void dump(struct dump *dump, int layer, const char *stage, struct tensor tensor);

#endif
