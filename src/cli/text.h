/* text.h: shapes, sizes and counts as people read them. */
#ifndef TD_CLI_TEXT_H
#define TD_CLI_TEXT_H

#include "tensor/view.h"

enum { SHAPE_TEXT = 640, SIZE_TEXT = 32 };

/* "[76, 45, 64]", "[]" for a scalar. Returns `out`. */
const char *text_shape(char out[SHAPE_TEXT], const struct td_shape *shape);

/* "427.5 KiB". Returns `out`. */
const char *text_size(char out[SIZE_TEXT], uint64_t bytes);

/* What a word for `count` things ends with: "s", or nothing for one. */
const char *text_plural(uint64_t count);

#endif
