/* flame.h: a profile as a flame graph (SVG, one file, zooms by a click) and as collapsed stacks, the text
 * that flame graph tools take. */
#ifndef TD_REPORT_FLAME_H
#define TD_REPORT_FLAME_H

#include "analyse/profile.h"

#include <stdio.h>

/* `title` is shown above the graph. What the stream could not take is for the caller to find (ferror). */
void td_flame_svg(FILE *out, const struct td_profile *profile, const char *title);

/* A line per scope with time of its own: "model;layers.0;attn 12345", self time in nanoseconds. */
void td_flame_collapsed(FILE *out, const struct td_profile *profile);

#endif
