/* template.h: the names of one side as templates: "blk.3.attn_q" is "blk.{L}.attn_q" of layer 3.
 *
 * A word in front of a number tells most layers (place.h). Names that people make up have no such word
 * (Qcur-3, L3.k_rope, dump/03/mlp_h): there the number is learned. With the rest of the name fixed, the layer
 * takes as many values as the model has layers, and every template of the model agrees on how many that is.
 */
#ifndef TD_COMPARE_NAME_TEMPLATE_H
#define TD_COMPARE_NAME_TEMPLATE_H

#include "compare/name/item.h"
#include "compare/name/place.h"

/* places[i]: where item i stands, with layers that were learned. False: no memory. */
bool td_template_places(struct td_side *side, struct td_place *places);

/* Sets the template of every item from its place. False: no memory. */
bool td_template_name(struct td_side *side, const struct td_place *places);

#endif
