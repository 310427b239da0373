/* tile.h: pictures of tensors: cells that each stand for a square of elements.
 *
 *     plane            rows x columns of an operand: a slice that keeps two axes, or the row-major order
 * folded tile (level, y, x)   256 x 256 cells of it; a cell covers 2^level x 2^level elements
 *
 * A cell is the sum of its elements and the one largest in size (as float32; of equal size, the positive
 * one). A cell that covers a NaN is NaN in both. The sum of a cell up to TD_TILE_BASE runs down each column,
 * then pairwise across; a cell of a level above is made of four of the level below. So it has the same bits
 * whoever computes it.
 */
#ifndef TD_KERNEL_TILE_H
#define TD_KERNEL_TILE_H

#include "base/job.h"
#include "base/pool.h"
#include "kernel/access.h"

enum {
    TD_TILE_CELLS = 256, /* to a side */
    TD_TILE_BASE = 4,    /* the highest level that is computed from elements: 16 million of them */
    TD_TILE_LEVELS = 40, /* 2^48 elements in one row are covered by 256 cells of level 40 */
};

struct td_plane {
    int64_t rows, columns, count; /* count < rows * columns where the last row of a folded one is short */
    bool folded;                  /* of the operand's row-major order; else: */
    struct td_slice slice;
    int row_axis, column_axis; /* of the operand; row_axis -1: a single row */
};

/* MISUSE when the slice does not keep one or two axes. */
TD_CHECK tdbg_status td_plane_of_slice(struct td_plane *out, const struct td_slice *slice,
                                       struct tdbg_error *error);
TD_CHECK tdbg_status td_plane_folded(struct td_plane *out, int64_t count, int64_t width,
                                     struct tdbg_error *error);
bool td_plane_equal(const struct td_plane *a, const struct td_plane *b);

/* Cells of the plane at a level, to each side. */
int64_t td_plane_rows(const struct td_plane *plane, int level);
int64_t td_plane_columns(const struct td_plane *plane, int level);

/* Whether the plane has cells there. */
bool td_plane_has_tile(const struct td_plane *plane, int level, int64_t y, int64_t x);

struct td_tile {
    int level;
    int64_t y, x;      /* in tiles */
    int rows, columns; /* cells: 256, fewer at the plane's edges */
    double *sums;      /* owned; rows * columns */
    float *peaks;      /* in the same piece of memory */
};

/* From elements; level at most TD_TILE_BASE. With two operands of one shape: of their td_difference. */
TD_CHECK tdbg_status td_tile_init(struct td_tile *out, const struct td_plane *plane,
                                  const struct td_access *a, const struct td_access *b, int level, int64_t y,
                                  int64_t x, struct td_pool *pool, struct tdbg_error *error);

/* What pictures of two operands show. */
enum { TD_OF_A, TD_OF_B, TD_OF_DIFFERENCE, TD_TILE_KINDS };

/* Several of them in one pass over both; those that are NULL are not wanted. All of them, or none. */
TD_CHECK tdbg_status td_tiles_init(struct td_tile *const out[TD_TILE_KINDS], const struct td_plane *plane,
                                   const struct td_access *a, const struct td_access *b, int level, int64_t y,
                                   int64_t x, struct td_pool *pool, struct tdbg_error *error);

/* From the tiles of the level below that it covers: children[0] at (2y, 2x), [1] to its right, [2] and [3]
 * below; NULL where the plane has ended. */
TD_CHECK tdbg_status td_tile_join(struct td_tile *out, const struct td_plane *plane,
                                  const struct td_tile *const children[4], int level, int64_t y, int64_t x,
                                  struct tdbg_error *error);
void td_tile_release(struct td_tile *tile);

/* The means, or the values largest in size, as float32; rows * columns of them, in a transposed picture
 * columns * rows. */
void td_tile_paint(const struct td_tile *tile, const struct td_plane *plane, bool mean, bool transposed,
                   float *out);

/* --- The loops, one table per tier (tile_loops.c) ------------------------------------------------------- */

/* What rows of elements come to, column by column. */
struct td_columns {
    double *sum;
    float *high, *low;
    uint32_t *nan; /* not 0: there was one */
};

/* Of the loops: adds `rows` rows that lie `pitch` elements apart. b NULL: of a; else of b - a. */
typedef void td_rows_loop(const void *a, int64_t pitch_a, const void *b, int64_t pitch_b, int64_t rows,
                          int64_t columns, const struct td_columns *out);

struct td_tile_kernels {
    void (*clear)(const struct td_columns *columns, int64_t count);
    td_rows_loop *single, *dual;           /* of float32 at any address */
    td_rows_loop *single_wide, *dual_wide; /* of double */
    void (*halve)(const struct td_columns *from, int64_t columns, const struct td_columns *to);
    void (*widen_f16)(const void *from, int64_t count, float *out);
    void (*widen_bf16)(const void *from, int64_t count, float *out);
};

extern const struct td_tile_kernels td_tiles_scalar, td_tiles_vector;
#if defined(__x86_64__)
extern const struct td_tile_kernels td_tiles_avx2, td_tiles_avx512;
#endif

#endif
