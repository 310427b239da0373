/* roots.h: which paths of this machine may be opened by whoever asks over HTTP.
 *
 * A root is a folder with all that lies in it, or one file. A path is judged by where it really leads, links
 * resolved, and is used in that form afterwards. What lies outside is refused with the same words whether it
 * exists or not. Links inside a folder that is opened as a whole are followed: who put them there owns the
 * folder, and no request can make any.
 */
#ifndef TD_SERVE_ROOTS_H
#define TD_SERVE_ROOTS_H

#include "base/status.h"

struct td_roots;

TD_CHECK tdbg_status td_roots_open(struct td_roots **out, struct tdbg_error *error);
void td_roots_close(struct td_roots **roots);

/* IO when there is no such path. */
TD_CHECK tdbg_status td_roots_add(struct td_roots *roots, const char *path, struct tdbg_error *error);

/* The i-th root, or NULL. */
const char *td_roots_at(const struct td_roots *roots, size_t i);

/* Where a path really is, to be freed. MISUSE: outside; NOTFOUND: not there. */
TD_CHECK tdbg_status td_roots_find(const struct td_roots *roots, const char *path, char **out,
                                   struct tdbg_error *error);

/* The same for PATH:NAME[slice]; only PATH is looked at and replaced. */
TD_CHECK tdbg_status td_roots_find_target(const struct td_roots *roots, const char *text, char **out,
                                          struct tdbg_error *error);

/* Whether a real path is one of the roots, or lies under one. */
bool td_roots_hold(const struct td_roots *roots, const char *real);

#endif
