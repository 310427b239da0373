/* target.h: what a user names on the command line: PATH, PATH:NAME, PATH:NAME[slice].
 *
 * Paths and names may hold ':' and '[' themselves. The longest beginning that exists on disk is PATH; a
 * trailing [...] is a slice unless a tensor has exactly that name, brackets and all.
 */
#ifndef TD_SESSION_TARGET_H
#define TD_SESSION_TARGET_H

#include "session/input.h"
#include "session/selection.h"

struct td_target {
    char *path, *name; /* name "": none given; may still end in a slice until it is resolved */
};

/* Splits off PATH; looks at the file system, opens nothing. */
TD_CHECK tdbg_status td_target_init(struct td_target *out, const char *text, struct tdbg_error *error);
void td_target_release(struct td_target *target);

/* Finds the tensor and parses the slice; the selection is the caller's to release, and `slice`, the text
 * without brackets, to free. */
TD_CHECK tdbg_status td_target_resolve(const struct td_target *target, const struct td_input *input,
                                       struct td_selection *out, char **slice, struct tdbg_error *error);

#endif
