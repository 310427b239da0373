/* sample.h: what a stored tensor is recognised by: values at a few positions, seen in several layouts.
 *
 * A position is an index into the row-major order of A's tensor. Where B stores the same values with its axes
 * in another order, or the two halves of every head interleaved, the position lies elsewhere in B: a reading
 * is a guess about that, and gives the values which B would have at A's positions. The right guess correlates
 * by nearly 1, a wrong one by nothing.
 */
#ifndef TD_COMPARE_MATCH_SAMPLE_H
#define TD_COMPARE_MATCH_SAMPLE_H

#include "base/arena.h"
#include "compare/name/item.h"

enum { TD_SAMPLE_POINTS = 256, TD_SAMPLE_READINGS = 48 };

/* Where A's position lies in B. */
struct td_reading_of {
    int order[TD_MAX_DIMS]; /* axes of B, without those of size 1, in the order that is read */
    int64_t head;           /* size of heads whose halves are interleaved along the first axis; 0: none */
    bool inverse;           /* B has them apart, A interleaved */
};

/* A part of a fused tensor: its rows lie in `groups` runs, `offset` rows behind the begin of each group. */
struct td_cut_of {
    int64_t groups, offset;
    bool part_turned, whole_turned; /* the matrix is stored the other way round */
};

struct td_sample {
    int count;
    bool constant;
    float *values;
    double mean, spread; /* root of the sum of squared differences from the mean */
};

/* The axes of a tensor, without those of size 1. */
struct td_shape td_axes_of(const struct td_item *item);

/* The readings of a tensor of B that may give A's tensor, the plainest first; their number. */
int td_readings_of(struct td_reading_of out[TD_SAMPLE_READINGS], const struct td_shape *a,
                   const struct td_shape *b);

/* False: it could not be read. `reading` NULL: as it stands. */
bool td_sample_take(struct td_sample *out, const struct td_item *item, const struct td_reading_of *reading,
                    struct td_arena *arena);

/* What `whole` has where `part` has its sample. */
bool td_sample_cut(struct td_sample *out, const struct td_item *part, const struct td_item *whole,
                   const struct td_cut_of *cut, struct td_arena *arena);

/* Pearson's correlation; 0 where one is constant. */
double td_sample_correlation(const struct td_sample *a, const struct td_sample *b);

/* |a - b| / |a|. */
double td_sample_error(const struct td_sample *a, const struct td_sample *b);

#endif
