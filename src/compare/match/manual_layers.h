/* manual_layers.h: a name that a person wrote for all layers at once: "blk.{L}.attn_q", "Qcur-{L+1}".
 *
 * One {L} stands for the digits of a layer's number, as many as there are ("00" is 0). A constant behind it
 * says that this side counts from elsewhere: {L+1} is layer 1 where the other side's {L} is layer 0.
 */
#ifndef TD_COMPARE_MATCH_MANUAL_LAYERS_H
#define TD_COMPARE_MATCH_MANUAL_LAYERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct td_layer_template {
    const char *head, *tail; /* borrowed from the text: what stands before and behind */
    size_t head_length;
    int64_t offset;
};

/* False: the text has no {L}, or more than one. */
bool td_layer_template_parse(const char *text, struct td_layer_template *out);

/* `layer` is the number in the name less the constant. */
bool td_layer_template_fits(const struct td_layer_template *t, const char *name, int64_t *layer);

#endif
