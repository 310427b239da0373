/* compare_support.h: tensors, sides and pairs made of arrays in memory, for the table tests of compare/.
 *
 * A test says what A and B are as a person would in numpy: an array of random values, then reshaped, permuted
 * or sliced, stored whole or in shards. The array operations are written here once more, element by element,
 * and know nothing of views and steps: what tdbg makes of a layout is held against them.
 *
 * A bench owns all that was made on it. All that depends on how a comparison is set up (matches, alignments,
 * the case of a diagnosis) is in compare_support.c, so that a change of those headers is made in one place.
 */
#ifndef TD_TEST_COMPARE_SUPPORT_H
#define TD_TEST_COMPARE_SUPPORT_H

#include "match_support.h"

#include "compare/diagnose/diagnose.h"
#include "compare/layout/align.h"

/* --- arrays ------------------------------------------------------------------------------------------- */

struct array {
    struct td_shape shape;
    int64_t count;
    float *data; /* row-major */
};

enum array_op_kind {
    OP_END,
    OP_RESHAPE, /* n: the shape */
    OP_PERMUTE, /* n: new axis i is old axis n[i] */
    OP_SLICE,   /* n: axis, from, to */
    OP_REPEAT,  /* n: axis, times; each index that often in a row */
    OP_PAD      /* n: axis, zeros in front, zeros behind */
};

struct array_op {
    enum array_op_kind kind;
    int count;
    int64_t n[TD_MAX_DIMS];
};

#define ARRAY_OP(kind, ...)                                                \
    {                                                                      \
        (kind), (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), \
        {                                                                  \
            __VA_ARGS__                                                    \
        }                                                                  \
    }
#define RESHAPE(...) ARRAY_OP(OP_RESHAPE, __VA_ARGS__)
#define PERMUTE(...) ARRAY_OP(OP_PERMUTE, __VA_ARGS__)
#define SLICE(axis, from, to) ARRAY_OP(OP_SLICE, axis, from, to)
#define REPEAT(axis, times) ARRAY_OP(OP_REPEAT, axis, times)
#define PAD(axis, front, behind) ARRAY_OP(OP_PAD, axis, front, behind)

enum { MOST_OPS = 6, MOST_SHARDS = 4 };

enum sharding_kind { WHOLE, SHARDS_JOIN, SHARDS_SUM, SHARDS_COPY };

/* How an array is shared out over ranks: cut along `axis`, as partial sums of it, or a copy on each. */
struct sharding {
    enum sharding_kind kind;
    int count, axis;
};

/* --- the bench ---------------------------------------------------------------------------------------- */

enum { MOST_TENSORS = 64, MOST_OWNED = 512 };

struct bench_side {
    struct td_tensor tensors[MOST_TENSORS];
    size_t count;
    struct test_side made;
};

struct bench {
    struct bench_side a, b;
    struct td_match matches[MOST_TENSORS];
    size_t match_count;
    struct td_head_sizes heads; /* as bench_ready finds them, unless a test has set some before */
    struct td_alignments alignments;
    bool ready, aligned;
    void *owned[MOST_OWNED];
    size_t owned_count;
};

/* Freed by bench_release, and not before. */
float *bench_floats(struct bench *bench, int64_t count);
void bench_release(struct bench *bench);

/* Normal values of mean 0 and variance 1; the same seed gives the same values everywhere. */
struct array array_random(struct bench *bench, uint64_t seed, struct td_shape shape);
struct array array_copy(struct bench *bench, struct array x);

/* Up to OP_END. */
struct array array_apply(struct bench *bench, struct array x, const struct array_op *ops);

/* x * (1 + relative * noise): what other roundings leave. */
void array_blur(struct array *x, uint64_t seed, double relative);

/* The number of random values from 0 up that a seed gives, one after the other, in [0, n). */
int64_t random_below(uint64_t *state, int64_t n);

/* Adds tensors to a side ('a' or 'b'); shards are named "rank0/NAME" and so on. */
void bench_add(struct bench *bench, char side, const char *name, struct array x);
void bench_add_shards(struct bench *bench, char side, const char *name, struct array x, struct sharding how);

/* Items of both sides are made of what was added, and the sizes of heads are found as a comparison does. */
void bench_ready(struct bench *bench);

/* Item `i` of A with item `i` of B, for all that there are. */
void bench_pair_all(struct bench *bench, struct td_fusion fused_a, struct td_fusion fused_b);
void bench_align(struct bench *bench);

/* The layout of pair `i` after bench_align; NULL: none. */
const struct td_layout *bench_layout(const struct bench *bench, size_t i);
const struct td_layout *bench_other(const struct bench *bench, size_t i);

/* The values of one side of pair `i` in that layout. */
struct array bench_lined_up(struct bench *bench, size_t i, char side, const struct td_layout *layout);

/* --- layouts in words --------------------------------------------------------------------------------- */

/* "permute+reshape": the kinds of the steps in their order; "" for none. In static memory, for one side. */
const char *steps_text(const struct td_steps *steps);

/* The largest |x - y| over elements, divided by the rms of x; INFINITY where the shapes differ. */
double array_distance(struct array x, struct array y);

/* --- measuring, ruling, diagnosing ---------------------------------------------------------------------- */

/* Two arrays of one shape measured and ruled on, the elements beyond the tolerance counted where the ruling
 * asks for it. `c` says of what types they count as and how deep; its size and its fill are found here. */
struct td_ruling ruling_of(const struct td_policy *policy, struct td_circumstances c, struct array a,
                           struct array b);

/* Diagnoses pair `i` in a layout, as it would be after it diverged. `tokens` 0: unknown. */
struct td_diagnosis bench_diagnose(struct bench *bench, size_t i, const struct td_layout *layout,
                                   const struct td_layout *other, double floor, int64_t tokens);

/* The first finding is of that kind, and explains all but noise or does not. */
bool diagnosis_is(const struct td_diagnosis *diagnosis, enum td_kind_of_mistake kind, bool complete);

/* "scale complete (1.000), bias in part (0.800)", for the message of a failure. In static memory. */
const char *diagnosis_text(const struct td_diagnosis *diagnosis);

/* Index of element i along an axis. */
int64_t index_along(const struct array *x, int64_t i, int axis);

#endif
