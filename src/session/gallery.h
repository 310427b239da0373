/* gallery.h: pictures of subjects, drawn when somebody looks, and remembered for a while.
 *
 * A coarse tile stands for a great many elements: 256 x 256 cells of level 8 for four thousand million. So
 * tiles from TD_TILE_BASE up are kept, each made from the four below it, and whoever zooms in or out or comes
 * back finds them ready. Finer ones are computed when asked for; they read four million elements at most.
 * Memory is bounded for all subjects of a gallery together; what was not looked at longest goes first.
 *
 * Many threads may ask at once. Two that want the same tile compute it once.
 */
#ifndef TD_SESSION_GALLERY_H
#define TD_SESSION_GALLERY_H

#include "kernel/tile.h"
#include "session/subject.h"

struct td_gallery;

/* Its pool of threads is for looking only, so that a look does not wait for a comparison under way. */
TD_CHECK tdbg_status td_gallery_open(struct td_gallery **out, struct tdbg_error *error);
void td_gallery_close(struct td_gallery **gallery);

/* NULL: NULL. */
struct td_pool *td_gallery_pool(const struct td_gallery *gallery);

/* Forgets the pictures of a subject that is about to go. A NULL gallery has none. */
void td_gallery_forget(struct td_gallery *gallery, const struct td_subject *subject);

/* Makes what a first look at all of a matrix asks for, before somebody does. Not of what is made in no time,
 * nor of what takes long. */
void td_gallery_prepare(const struct td_subject *subject);

enum td_shown { TD_SHOW_A = TD_OF_A, TD_SHOW_B = TD_OF_B, TD_SHOW_DIFFERENCE = TD_OF_DIFFERENCE /* b - a */ };

struct td_picture {
    const struct td_subject *subject;
    struct td_plane plane;
    enum td_shown shown;
    bool transposed; /* rows and columns exchanged; tiles are counted in the picture as it is seen */
};

/* `view` is a slice that keeps one or two axes, or "flat": the flattened tensor in rows of `width`. */
TD_CHECK tdbg_status td_picture_init(struct td_picture *out, const struct td_subject *subject,
                                     const char *view, int64_t width, enum td_shown shown, bool transposed,
                                     struct tdbg_error *error);

enum td_reduce { TD_REDUCE_MEAN, TD_REDUCE_LARGEST };

/* Tile (y, x) of a level: rows x columns cells into `out`, which has room for a whole tile. */
TD_CHECK tdbg_status td_picture_tile(const struct td_picture *picture, int level, int64_t y, int64_t x,
                                     enum td_reduce reduce, float *out, int *rows, int *columns,
                                     struct tdbg_error *error);

#endif
