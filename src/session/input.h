/* input.h: an opened PATH: its tensors with their full names, in execution order.
 *
 * Walks the bundle, asks the registry what each member is, looks into archives, and joins names:
 *
 *     plain file, one unnamed tensor    3_query.pth          (the file's base name)
 *     plain file, named tensors         layers.0.weight
 *     member, one unnamed tensor        dumps/3_query.pth    (its path in the folder or archive)
 *     member, named tensors             dumps/model.pth:layers.0.weight
 *     archive in a folder or archive    inner.zip/3_query.pth
 *
 * What cannot be read becomes a skip. Only a PATH that cannot be opened at all, or a plain file that cannot
 * be read, is an error.
 */
#ifndef TD_SESSION_INPUT_H
#define TD_SESSION_INPUT_H

#include "base/job.h"
#include "tensor/tensor.h"

struct td_input; /* tdbg_input of the public header is the same thing */

TD_CHECK tdbg_status td_input_open(struct td_input **out, const char *path, struct td_job *job,
                                   struct tdbg_error *error);
void td_input_close(struct td_input **input);

const char *td_input_path(const struct td_input *input);
size_t td_input_count(const struct td_input *input);
const struct td_tensor *td_input_tensor(const struct td_input *input, size_t index);
size_t td_input_skips(const struct td_input *input);
const struct td_skip *td_input_skip(const struct td_input *input, size_t index);

/* By full name; else by a last part of it that only one tensor has ("3_query.pth" for "dumps/3_query.pth").
 * An empty name means the only tensor. */
TD_CHECK tdbg_status td_input_find(const struct td_input *input, const char *name, size_t *index,
                                   struct tdbg_error *error);

#endif
