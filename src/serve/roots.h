/* roots.h: which paths of this machine may be opened by whoever asks over HTTP.
 *
 * A root is a folder with all that lies in it, or one file. A path is judged by where it really leads, links
 * resolved, and is used in that form afterwards. What lies outside is refused with the same words whether it
 * exists or not. So are files inside a folder that is opened as a whole, and those beside a model: one that
 * is a link out of all roots is skipped (td_roots_bound). Only inputs that the server was started with are
 * opened as on the command line, with all that their links lead to.
 */
#ifndef TD_SERVE_ROOTS_H
#define TD_SERVE_ROOTS_H

#include "base/job.h"
#include "base/status.h"

struct td_roots;

TD_CHECK tdbg_status td_roots_open(struct td_roots **out, struct tdbg_error *error);
void td_roots_close(struct td_roots **roots);

/* IO when there is no such path. */
TD_CHECK tdbg_status td_roots_add(struct td_roots *roots, const char *path, struct tdbg_error *error);

/* The same for an input that whoever starts the server names. */
TD_CHECK tdbg_status td_roots_add_input(struct td_roots *roots, const char *path, struct tdbg_error *error);

/* For jobs (job.h) that open what clients name; lives as long as the roots. */
const struct td_bound *td_roots_bound(const struct td_roots *roots);

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
