/* sidecar.h: a file beside a dump that says in which order its tensors were computed.
 *
 * msprobe writes dump.json: the keys of its "data" come in the order of the calls, and each is the beginning
 * of the names of the files that the call left ("Module.fc1.Linear.forward.0" of ….forward.0.output.0.pt).
 */
#ifndef TD_FORMAT_SIDECAR_H
#define TD_FORMAT_SIDECAR_H

#include "io/source.h"

struct td_sidecar;

/* The content looks like such a file. */
bool td_sidecar_probe(const struct td_source *source);

/* Another file that the same tool leaves beside one: call stacks, or the tree of modules. */
bool td_sidecar_accompanied(const struct td_source *source);

TD_CHECK tdbg_status td_sidecar_open(struct td_sidecar **out, const struct td_source *source,
                                     struct tdbg_error *error);
void td_sidecar_close(struct td_sidecar **sidecar);

/* The place of the tensor in the file of that name, from 1; 0: the sidecar does not know it. A folder and the
 * format's extension may be part of the name. */
uint64_t td_sidecar_place(const struct td_sidecar *sidecar, const char *file);

/* Every place is at most this. */
uint64_t td_sidecar_end(const struct td_sidecar *sidecar);

#endif
