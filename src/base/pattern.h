/* pattern.h: names by pattern: "*" stands for any characters, dots too, "?" for one, "[a-z]" for one of
 * these.
 *
 * Names of tensors have brackets of their own: lstm.output[0]. So a name fits itself, and a number in
 * brackets stands for itself as well: "*.output[0]" fits lstm.output[0].
 */
#ifndef TD_BASE_PATTERN_H
#define TD_BASE_PATTERN_H

#include <stdbool.h>

bool td_pattern_fits(const char *pattern, const char *name);

#endif
