/* stage.h: where in the model a tensor was dumped, read from its name, and the order of execution.
 *
 * Dumps are named {layer}_{stage}: "dumps/3_query_final.pth" is stage query_final of layer 3. A name of a
 * file is looked at first, then the key within it ("dump.npz:3_query"). Stages a transformer block is known
 * to run through have a place in its order; any other stage comes after them, by name.
 */
#ifndef TD_TENSOR_STAGE_H
#define TD_TENSOR_STAGE_H

#include "base/status.h"
#include "tensor/tensor.h"

/* Parts of the name it was parsed from; lengths because the name is borrowed. */
struct td_stage {
    int64_t layer;      /* -1: the name has none, and the rest is empty */
    int place;          /* in the canonical order; td_stage_places for stages not in it */
    const char *folder; /* what tensors of one dump have in common: everything before {layer} */
    size_t folder_length;
    const char *stage;
    size_t stage_length;
};

extern const int td_stage_places;

struct td_stage td_stage_parse(const char *name);

/* Sorts tensors by execution where any of their names tells it; else leaves the file's order. Stable. */
TD_CHECK tdbg_status td_stage_sort(struct td_tensor *tensors, size_t count, struct tdbg_error *error);

#endif
