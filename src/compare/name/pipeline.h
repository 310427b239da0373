/* pipeline.h: layers that the ranks of a pipeline number from 0, each its own. */
#ifndef TD_COMPARE_NAME_PIPELINE_H
#define TD_COMPARE_NAME_PIPELINE_H

#include "compare/name/item.h"

/* Gives the layers of the side the numbers they have in the whole model, where its files are of several
 * pipeline ranks that all count from 0. False: no memory. */
bool td_pipeline_renumber(struct td_side *side);

#endif
