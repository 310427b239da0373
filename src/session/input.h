/* input.h: an opened PATH: its tensors with their full names, in execution order.
 *
 * Walks the bundle, asks the registry what each member is, looks into archives, and joins names:
 *
 *     plain file, one unnamed tensor    3_query.pth          (the file's base name)
 *     plain file, named tensors         layers.0.weight
 *     member, one unnamed tensor        dumps/3_query.pth    (its path in the folder or archive)
 *     member, named tensors             dumps/model.pth:layers.0.weight
 *     index of shards, as a member      model.safetensors:layers.0.weight
 *     archive in a folder or archive    inner.zip/3_query.pth
 *
 * What cannot be read becomes a skip. Only a PATH that cannot be opened at all, a plain file that cannot be
 * read, or a folder or archive without a single readable file, is an error.
 */
#ifndef TD_SESSION_INPUT_H
#define TD_SESSION_INPUT_H

#include "base/job.h"
#include "base/pool.h"
#include "tensor/tensor.h"

struct td_input;

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

/* By full name and nothing else. */
bool td_input_find_exact(const struct td_input *input, const char *name, size_t *index);

/* Fails when the tensor's file was cut short since it was opened: what was computed from it is worth nothing.
 */
TD_CHECK tdbg_status td_input_verify(const struct td_tensor *tensor, struct tdbg_error *error);

/* td_stats, believed only when the file is still what it was. */
TD_CHECK tdbg_status td_input_stats(const struct td_tensor *tensor, struct td_pool *pool, struct td_job *job,
                                    struct tdbg_stats *out, struct tdbg_error *error);

#endif
