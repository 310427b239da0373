/* pairs_file.h: pairs as JSON: files that people keep, and the answers of their programs.
 *
 *     {"version": 1,
 *      "pairs": [{"a": "3_query.pth", "b": "layers.3.q", "strategy": "manual"},
 *                {"a": "3_key.pth", "b": "layers.3.qkv", "b_part": [1, 3]}],
 *      "only_a": ["0_sliding.pth"], "only_b": []}
 *
 * {"a": "{L}_query.pth", "b": "layers.{L+1}.q"} stands for all layers that both sides have (match/manual.c).
 * Only "a" and "b" of each pair are needed; "a_part" and "b_part" say [which, of how many] of a fused tensor
 * is meant. What a file says beyond that is for people and is not read.
 */
#ifndef TD_SESSION_PAIRS_FILE_H
#define TD_SESSION_PAIRS_FILE_H

#include "compare/match/match.h"

#include <jansson.h>
#include <stdio.h>

struct td_pairs {
    struct td_arena arena;
    struct td_name_pair *list;
    size_t count;
};

TD_CHECK tdbg_status td_pairs_read(struct td_pairs *out, const char *path, struct tdbg_error *error);

/* `what` names the text in messages. */
TD_CHECK tdbg_status td_pairs_parse(struct td_pairs *out, const char *what, const char *text, size_t size,
                                    bool by_program, struct tdbg_error *error);

/* From the array alone. */
TD_CHECK tdbg_status td_pairs_of_json(struct td_pairs *out, const json_t *list, bool by_program,
                                      struct tdbg_error *error);
void td_pairs_release(struct td_pairs *pairs);

/* All of it or nothing: an older file stays as it was when this one cannot be written. */
TD_CHECK tdbg_status td_pairs_write(const struct td_matches *matches, const char *path,
                                    struct tdbg_error *error);

TD_CHECK tdbg_status td_pairs_print(const struct td_matches *matches, FILE *out, struct tdbg_error *error);

#endif
