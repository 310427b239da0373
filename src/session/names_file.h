/* names_file.h: what a user's own engine calls its tensors, from a file that people write.
 *
 *     # our engine's layers
 *     blk{L}_attn_norm = model.layers.{L}.input_layernorm
 *     blk{L}_q*        = query
 *
 * A line is PATTERN = STAGE: on the left a name of the engine, on the right what it stands for, a name of the
 * other side or of a stage that tdbg knows. {L} is the number of the layer, '*' any characters. Text behind a
 * '#' at the start of a line or behind a blank is a comment. A file that begins with '{' is JSON, an object
 * of "PATTERN": "STAGE". What makes no sense is an error that tells its line.
 */
#ifndef TD_SESSION_NAMES_FILE_H
#define TD_SESSION_NAMES_FILE_H

#include "compare/match/match.h"

#include <jansson.h>

struct td_names {
    struct td_arena arena;
    struct td_name_rule *list;
    size_t count;
};

/* More than any engine has; each is held against every name. */
enum { TD_MOST_NAME_RULES = 10000 };

/* Errors name the file. */
TD_CHECK tdbg_status td_names_read(struct td_names *out, const char *path, struct tdbg_error *error);

/* Either form; text need not end with a NUL. */
TD_CHECK tdbg_status td_names_parse(struct td_names *out, const char *text, size_t size,
                                    struct tdbg_error *error);

/* The object alone. */
TD_CHECK tdbg_status td_names_of_json(struct td_names *out, json_t *object, struct tdbg_error *error);
void td_names_release(struct td_names *names);

#endif
