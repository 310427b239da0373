/* gallery.c: see gallery.h.
 *
 *     frame: a tile that is being made, or is ready; counted while somebody uses it
 *
 * Frames lie in one list, the last used first; a few hundred at most, so it is searched from the front. The
 * lock is held to look and to link, never while a tile is computed: that thread owns the frame until it is
 * ready, the others wait. A tile waits only for tiles of lower levels, so nobody waits in a circle.
 *
 * Who looks at a pair looks at a, b and the difference. So whoever makes one of the three from elements makes
 * those of the others along with it that are not there: both sides are read once, not twice.
 */
#include "session/gallery.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* A tile is 768 KiB. An 8192 x 8192 pair has five of them for each of a, b and the difference: 12 MiB. A
 * screen of 2560 pixels shows some thirty at any zoom: 24 MiB. */
enum { BUDGET = 96 << 20 };

/* Elements of a matrix that is prepared: from a few milliseconds to a fraction of a second of work. */
static const int64_t LEAST_PREPARED = INT64_C(1) << 22, MOST_PREPARED = INT64_C(1) << 27;

enum state { MAKING, READY, FAILED };

struct frame {
    struct frame *next, *before;
    const struct td_subject *subject;
    struct td_plane plane;
    enum td_shown shown;
    int level;
    int64_t y, x;

    enum state state;
    int users;
    struct td_tile tile;     /* READY */
    struct tdbg_error error; /* FAILED; then it is no longer in the list */
};

struct td_gallery {
    struct td_pool *pool;
    pthread_mutex_t lock; /* of everything below, and of the states of frames */
    pthread_cond_t changed;
    struct frame *first, *last;
    size_t bytes;
};

tdbg_status td_gallery_open(struct td_gallery **out, struct tdbg_error *error)
{
    struct td_gallery *g = calloc(1, sizeof *g);
    if (!g)
        return td_fail_nomem(error);
    tdbg_status status = td_pool_open(&g->pool, 0, error);
    if (status != TDBG_OK) {
        free(g);
        return status;
    }
    pthread_mutex_init(&g->lock, NULL);
    pthread_cond_init(&g->changed, NULL);
    *out = g;
    return TDBG_OK;
}

struct td_pool *td_gallery_pool(const struct td_gallery *gallery)
{
    return gallery ? gallery->pool : NULL;
}

/* --- the list; the lock is held ------------------------------------------------------------------------- */

static void unlink_frame(struct td_gallery *g, struct frame *f)
{
    *(f->before ? &f->before->next : &g->first) = f->next;
    *(f->next ? &f->next->before : &g->last) = f->before;
    f->next = f->before = NULL;
}

static void link_first(struct td_gallery *g, struct frame *f)
{
    f->next = g->first;
    f->before = NULL;
    *(g->first ? &g->first->before : &g->last) = f;
    g->first = f;
}

static size_t frame_bytes(const struct frame *f)
{
    return (size_t)f->tile.rows * (size_t)f->tile.columns * (sizeof(double) + sizeof(float));
}

static void drop(struct td_gallery *g, struct frame *f)
{
    unlink_frame(g, f);
    g->bytes -= frame_bytes(f);
    td_tile_release(&f->tile);
    free(f);
}

static void keep_to_budget(struct td_gallery *g)
{
    for (struct frame *f = g->last, *before; f && g->bytes > BUDGET; f = before) {
        before = f->before;
        if (f->users == 0)
            drop(g, f);
    }
}

static struct frame *find(const struct td_gallery *g, const struct td_picture *p, int level, int64_t y,
                          int64_t x)
{
    for (struct frame *f = g->first; f; f = f->next)
        if (f->subject == p->subject && f->shown == p->shown && f->level == level && f->y == y && f->x == x &&
            td_plane_equal(&f->plane, &p->plane))
            return f;
    return NULL;
}

void td_gallery_forget(struct td_gallery *g, const struct td_subject *subject)
{
    if (!g)
        return;
    pthread_mutex_lock(&g->lock);
    for (struct frame *f = g->first, *next; f; f = next) {
        next = f->next;
        if (f->subject == subject)
            drop(g, f);
    }
    pthread_mutex_unlock(&g->lock);
}

void td_gallery_close(struct td_gallery **slot)
{
    struct td_gallery *g = *slot;
    if (!g)
        return;
    while (g->first)
        drop(g, g->first);
    pthread_cond_destroy(&g->changed);
    pthread_mutex_destroy(&g->lock);
    td_pool_close(&g->pool);
    free(g);
    *slot = NULL;
}

/* --- frames --------------------------------------------------------------------------------------------- */

/* A frame for a tile that is not there, in use by the caller, who has to make it; the lock is held. */
static struct frame *add(struct td_gallery *g, const struct td_picture *p, int level, int64_t y, int64_t x)
{
    struct frame *f = calloc(1, sizeof *f);
    if (!f)
        return NULL;
    *f = (struct frame){.subject = p->subject,
                        .plane = p->plane,
                        .shown = p->shown,
                        .level = level,
                        .y = y,
                        .x = x,
                        .users = 1};
    link_first(g, f);
    return f;
}

/* The frame of a tile, in use by the caller. `mine`: it was not there, and the caller has to make it. */
static struct frame *take(struct td_gallery *g, const struct td_picture *p, int level, int64_t y, int64_t x,
                          bool *mine)
{
    pthread_mutex_lock(&g->lock);
    struct frame *f = find(g, p, level, y, x);
    *mine = !f;
    if (f) {
        f->users++;
        unlink_frame(g, f);
        link_first(g, f);
        while (f->state == MAKING)
            pthread_cond_wait(&g->changed, &g->lock);
    } else {
        f = add(g, p, level, y, x);
    }
    pthread_mutex_unlock(&g->lock);
    return f;
}

/* The same for a tile that nobody waits for: NULL when it is there. */
static struct frame *take_new(struct td_gallery *g, const struct td_picture *p, int level, int64_t y,
                              int64_t x)
{
    pthread_mutex_lock(&g->lock);
    struct frame *f = find(g, p, level, y, x) ? NULL : add(g, p, level, y, x);
    pthread_mutex_unlock(&g->lock);
    return f;
}

static void give_back(struct td_gallery *g, struct frame *f)
{
    pthread_mutex_lock(&g->lock);
    f->users--;
    if (f->state == FAILED && f->users == 0)
        free(f);
    keep_to_budget(g);
    pthread_mutex_unlock(&g->lock);
}

static void finish(struct td_gallery *g, struct frame *f, tdbg_status status, const struct td_tile *tile,
                   const struct tdbg_error *error)
{
    pthread_mutex_lock(&g->lock);
    if (status == TDBG_OK) {
        f->tile = *tile;
        f->state = READY;
        g->bytes += frame_bytes(f);
    } else {
        f->error = *error;
        f->state = FAILED;
        unlink_frame(g, f);
    }
    pthread_cond_broadcast(&g->changed);
    pthread_mutex_unlock(&g->lock);
}

/* --- tiles ---------------------------------------------------------------------------------------------- */

static tdbg_status from_elements(const struct td_picture *p, int level, int64_t y, int64_t x,
                                 struct td_tile *out, struct tdbg_error *error)
{
    const struct td_subject *s = p->subject;
    bool both = p->shown == TD_SHOW_DIFFERENCE;
    const struct td_access *a = &s->side[p->shown == TD_SHOW_B ? 1 : 0].access;
    struct td_tile tile;
    TD_TRY(td_tile_init(&tile, &p->plane, a, both ? &s->side[1].access : NULL, level, y, x,
                        td_gallery_pool(s->gallery), error));
    tdbg_status status = td_subject_verify(s, error);
    if (status == TDBG_OK)
        *out = tile;
    else
        td_tile_release(&tile);
    return status;
}

static tdbg_status make_tile(const struct td_picture *p, int level, int64_t y, int64_t x, struct td_tile *out,
                             struct tdbg_error *error);

/* The tile from elements, and those of the other pictures of the pair that are not there. */
static tdbg_status make_together(struct td_gallery *g, const struct td_picture *p, int level, int64_t y,
                                 int64_t x, struct td_tile *out, struct tdbg_error *error)
{
    const struct td_subject *s = p->subject;
    struct frame *others[TD_TILE_KINDS] = {NULL};
    struct td_tile made[TD_TILE_KINDS] = {{0}}, *wanted[TD_TILE_KINDS] = {NULL};
    for (int i = 0; i < TD_TILE_KINDS; i++) {
        struct td_picture other = *p;
        other.shown = (enum td_shown)i;
        others[i] = other.shown == p->shown ? NULL : take_new(g, &other, level, y, x);
        wanted[i] = others[i] || other.shown == p->shown ? &made[i] : NULL;
    }
    tdbg_status status =
        td_tiles_init(wanted, &p->plane, &s->side[0].access, &s->side[1].access, level, y, x, g->pool, error);
    if (status == TDBG_OK && (status = td_subject_verify(s, error)) != TDBG_OK)
        for (int i = 0; i < TD_TILE_KINDS; i++)
            td_tile_release(&made[i]);
    for (int i = 0; i < TD_TILE_KINDS; i++)
        if (others[i]) {
            finish(g, others[i], status, &made[i], error);
            give_back(g, others[i]);
        }
    if (status == TDBG_OK)
        *out = made[p->shown];
    return status;
}

static tdbg_status make_to_keep(struct td_gallery *g, const struct td_picture *p, int level, int64_t y,
                                int64_t x, struct td_tile *out, struct tdbg_error *error)
{
    bool both = p->subject->has[0] && p->subject->has[1];
    if (level <= TD_TILE_BASE && both && make_together(g, p, level, y, x, out, error) == TDBG_OK)
        return TDBG_OK;
    return make_tile(p, level, y, x, out, error); /* alone: the other side may be to blame */
}

/* The same, remembered: the tile of a frame that is in use until it is given back. What somebody else could
 * not make is tried once more: he may have wanted more than this. */
static tdbg_status hang_tile(struct td_gallery *g, const struct td_picture *p, int level, int64_t y,
                             int64_t x, struct frame **out, struct tdbg_error *error)
{
    for (;;) {
        bool mine;
        struct frame *f = take(g, p, level, y, x, &mine);
        if (!f)
            return td_fail_nomem(error);
        if (mine) {
            struct td_tile tile = {0};
            struct tdbg_error why;
            finish(g, f, make_to_keep(g, p, level, y, x, &tile, &why), &tile, &why);
        }
        if (f->state == READY) { /* it does not change any more */
            *out = f;
            return TDBG_OK;
        }
        tdbg_status status = f->error.status;
        if (error)
            *error = f->error;
        give_back(g, f);
        if (mine)
            return status;
    }
}

/* A level above the base, from the four tiles it covers: without a gallery they are made for this once. */
static tdbg_status from_below(const struct td_picture *p, int level, int64_t y, int64_t x,
                              struct td_tile *out, struct tdbg_error *error)
{
    struct td_gallery *g = p->subject->gallery;
    const struct td_tile *children[4] = {NULL};
    struct frame *frames[4] = {NULL};
    struct td_tile made[4] = {{0}};
    tdbg_status status = TDBG_OK;
    for (int i = 0; i < 4 && status == TDBG_OK; i++) {
        int64_t cy = 2 * y + i / 2, cx = 2 * x + i % 2;
        if (!td_plane_has_tile(&p->plane, level - 1, cy, cx))
            continue;
        status = g ? hang_tile(g, p, level - 1, cy, cx, &frames[i], error)
                   : make_tile(p, level - 1, cy, cx, &made[i], error);
        children[i] = frames[i] ? &frames[i]->tile : &made[i];
    }
    if (status == TDBG_OK)
        status = td_tile_join(out, &p->plane, children, level, y, x, error);
    for (int i = 0; i < 4; i++) {
        if (frames[i])
            give_back(g, frames[i]);
        td_tile_release(&made[i]);
    }
    return status;
}

static tdbg_status make_tile(const struct td_picture *p, int level, int64_t y, int64_t x, struct td_tile *out,
                             struct tdbg_error *error)
{
    return level > TD_TILE_BASE ? from_below(p, level, y, x, out, error)
                                : from_elements(p, level, y, x, out, error);
}

/* --- pictures ------------------------------------------------------------------------------------------- */

tdbg_status td_picture_init(struct td_picture *out, const struct td_subject *subject, const char *view,
                            int64_t width, enum td_shown shown, bool transposed, struct tdbg_error *error)
{
    struct td_picture p = {.subject = subject, .shown = shown, .transposed = transposed};
    for (int side = 0; side < 2; side++)
        if (!subject->has[side] && (shown == TD_SHOW_DIFFERENCE || (int)shown == side))
            return td_fail(error, TDBG_MISUSE, "this pair has no side %c", 'a' + side);
    if (strcmp(view, "flat") == 0) {
        TD_TRY(td_plane_folded(&p.plane, subject->count, width, error));
    } else {
        struct td_slice slice;
        TD_TRY(td_slice_parse(&slice, view, &subject->shape, error));
        TD_TRY(td_plane_of_slice(&p.plane, &slice, error));
    }
    *out = p;
    return TDBG_OK;
}

static tdbg_status check_size(const struct td_picture *p, int level, struct tdbg_error *error)
{
    double edge = (double)TD_TILE_CELLS * (double)(INT64_C(1) << level);
    double rows = (double)p->plane.rows, columns = (double)p->plane.columns;
    if ((rows < edge ? rows : edge) * (columns < edge ? columns : edge) > (double)TD_MAX_LOOK)
        return td_fail(error, TDBG_LIMIT, "a tile of level %d covers too many elements of this tensor",
                       level);
    return TDBG_OK;
}

tdbg_status td_picture_tile(const struct td_picture *p, int level, int64_t y, int64_t x,
                            enum td_reduce reduce, float *out, int *rows, int *columns,
                            struct tdbg_error *error)
{
    struct td_gallery *g = p->subject->gallery;
    int64_t row = p->transposed ? x : y, column = p->transposed ? y : x;
    struct td_tile made = {0};
    struct frame *frame = NULL;
    if (level < 0 || level > TD_TILE_LEVELS)
        return td_fail(error, TDBG_MISUSE, "level %d: a number from 0 to %d is needed", level,
                       TD_TILE_LEVELS);
    if (!td_plane_has_tile(&p->plane, level, row, column))
        return td_fail(error, TDBG_MISUSE,
                       "the picture has no tile at x %" PRId64 ", y %" PRId64 " of level %d", x, y, level);
    TD_TRY(check_size(p, level, error));
    if (g && level >= TD_TILE_BASE)
        TD_TRY(hang_tile(g, p, level, row, column, &frame, error));
    else
        TD_TRY(make_tile(p, level, row, column, &made, error));
    const struct td_tile *tile = frame ? &frame->tile : &made;
    td_tile_paint(tile, &p->plane, reduce == TD_REDUCE_MEAN, p->transposed, out);
    *rows = p->transposed ? tile->columns : tile->rows;
    *columns = p->transposed ? tile->rows : tile->columns;
    if (frame)
        give_back(g, frame);
    td_tile_release(&made);
    return td_subject_verify(p->subject, error);
}

/* The lowest level at which one tile covers all of the plane. */
static int top_level(const struct td_plane *plane)
{
    int level = 0;
    while (td_plane_rows(plane, level) > TD_TILE_CELLS || td_plane_columns(plane, level) > TD_TILE_CELLS)
        level++;
    return level;
}

void td_gallery_prepare(const struct td_subject *s)
{
    static const enum td_shown all[] = {TD_SHOW_DIFFERENCE, TD_SHOW_A, TD_SHOW_B};
    if (!s->gallery || s->shape.ndim != 2 || s->count < LEAST_PREPARED || s->count > MOST_PREPARED)
        return;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct td_picture p;
        struct frame *frame;
        if (td_picture_init(&p, s, "", 1, all[i], false, NULL) != TDBG_OK)
            continue; /* a pair of one side */
        int level = top_level(&p.plane);
        if (level >= TD_TILE_BASE && hang_tile(s->gallery, &p, level, 0, 0, &frame, NULL) == TDBG_OK)
            give_back(s->gallery, frame);
    }
}
