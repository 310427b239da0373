/* place.h: the layer and stage a name tells. */
#ifndef TD_COMPARE_NAME_PLACE_H
#define TD_COMPARE_NAME_PLACE_H

#include "tensor/stage.h"

/* Parts of the name, borrowed. */
struct td_place {
    int64_t layer; /* -1: the name has none */
    int stage_rank;
    bool dumped;                  /* {layer}_{stage}: the names of dumps rather than of modules */
    bool learned;                 /* no word tells the layer; the other names of the side do */
    size_t number, number_length; /* of the digits of the layer, within the name */
    size_t stack;                 /* length of what stands before the layer: "model.layers." */
    const char *stage;            /* with its length; the layer's own output when that is 0 */
    size_t stage_length;
    const char
        *part; /* "weight" where the stage is a file's name and the key says which part of it; or NULL */
};

struct td_place td_place_find(const char *name);

#endif
