/* json.h: the JSON headers of tensor files, through jansson, with the claims checked first.
 *
 * jansson builds a tree many times the size of its text and recurses as deep as the text nests; both are
 * measured on the text before it gets to see it. Keys that occur twice are an error: of two answers to the
 * question where a tensor is, none can be trusted.
 */
#ifndef TD_FORMAT_JSON_H
#define TD_FORMAT_JSON_H

#include "base/status.h"

#include <jansson.h>

/* LIMIT when the text nests deeper than TD_MAX_DEPTH or may hold more values than `most_values`. */
TD_CHECK tdbg_status td_json_measure(const char *what, const char *text, size_t size, uint64_t offset,
                                     uint64_t most_values, struct tdbg_error *error);

/* Parses an object; `offset` is where `text` lies in its file, for messages; `what` names it ("header").
 * The caller releases with json_decref. */
TD_CHECK tdbg_status td_json_parse_object(json_t **out, const char *what, const uint8_t *text, size_t size,
                                          uint64_t offset, struct tdbg_error *error);

#endif
