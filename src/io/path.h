/* path.h: the names of members: their order, which of them nobody means, and joining them. */
#ifndef TD_IO_PATH_H
#define TD_IO_PATH_H

#include "base/arena.h"

#include <stdbool.h>

/* Natural order: runs of digits compare as numbers ("2_a" before "10_a"). Total: 0 only for equal names. */
int td_path_compare(const char *a, const char *b);

/* Some part of the path starts with '.' or is __MACOSX: droppings of editors and of macOS. */
bool td_path_hidden(const char *path);

/* The part after the last '/'. */
const char *td_path_base(const char *path);

/* A member's name as archives write it, made fit to show and to compare: '/' between the parts, no leading
 * "/" or "./", NULs and other control codes replaced. ".." stays as it is. NULL when memory is exhausted. */
char *td_path_clean(struct td_arena *arena, const char *name, size_t length);

/* Names a file within the folder it is relative to: not empty, not absolute, no "..". */
bool td_path_is_inner(const char *name);
#define TD_LEADS_OUT "its name leads out of the archive"

/* `name` relative to the folder of the file `from`. NULL when memory is exhausted. */
char *td_path_beside(struct td_arena *arena, const char *from, const char *name);

/* Whether `path` is the folder, or lies in it; both absolute and without links. */
bool td_path_is_under(const char *folder, const char *path);

#endif
