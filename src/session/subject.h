/* subject.h: one pair, or one tensor, opened for looking at: both sides in the layout of the comparison.
 *
 * Everything a person looks at is asked for here: values, places, pictures. All answers are computed from the
 * stored values when asked, for just the part asked for; any number of threads may ask. An answer from a file
 * that was cut short in the meantime is an error, never zeros.
 *
 * Complex numbers are seen as their real and imaginary parts, which have signs and differences of their own:
 * of rotary tables the moduli are all 1. Where only one side is complex, and in a side's own shape, they are
 * seen by their moduli.
 */
#ifndef TD_SESSION_SUBJECT_H
#define TD_SESSION_SUBJECT_H

#include "base/pool.h"
#include "compare/pair.h"
#include "kernel/access.h"
#include "tensor/operand.h"
#include "tensor/slice.h"

/* One side, ready to be read: in the layout of the comparison, and in its own shape. */
struct td_aspect {
    struct td_operand operand;
    struct td_access access;
};

struct td_gallery;

/* Points into itself: must not be moved. */
struct td_subject {
    struct td_arena arena;
    const struct td_pair *pair;     /* NULL for a tensor by itself */
    const struct td_tensor *tensor; /* … which then is this */
    const struct td_item *items[2]; /* a, b: one may be NULL */
    bool has[2];
    bool as_real;             /* complex numbers, seen as their parts on one more axis behind the others */
    bool apart;               /* two sides that do not line up: each has its `own` shape and nothing else */
    struct td_aspect side[2]; /* of those it has, in the layout of the comparison */
    struct td_aspect own[2];  /* as it is stored; shards joined as the comparison joins them */
    struct td_shape shape;    /* of both */
    int64_t count;
    struct td_gallery *gallery; /* set by the owner: remembers its pictures; NULL: nobody does */
};

/* One-sided pairs keep the shape they are stored in; of a sharded one, the first shard stands for all.
 * MISMATCH where two sides do not line up. What they are made of must outlive them. */
TD_CHECK tdbg_status td_subject_of_pair(struct td_subject *out, const struct td_pair *pair,
                                        struct tdbg_error *error);

/* The same for who asks for own values only: sides that do not line up are `apart`, which is no failure. The
 * other questions need a subject that td_subject_check has passed. */
TD_CHECK tdbg_status td_subject_of_sides(struct td_subject *out, const struct td_pair *pair,
                                         struct tdbg_error *error);
TD_CHECK tdbg_status td_subject_check(const struct td_subject *subject, struct tdbg_error *error);

TD_CHECK tdbg_status td_subject_of_tensor(struct td_subject *out, const struct td_tensor *tensor,
                                          struct tdbg_error *error);
void td_subject_release(struct td_subject *subject);

/* The elements of a slice of the common shape as doubles; `out` has room for slice->count. */
TD_CHECK tdbg_status td_subject_values(const struct td_subject *subject, int side,
                                       const struct td_slice *slice, double *out, struct tdbg_error *error);

/* Elements [start, start + count) of the common shape's row-major order, likewise. */
TD_CHECK tdbg_status td_subject_run(const struct td_subject *subject, int side, int64_t start, int64_t count,
                                    double *out, struct tdbg_error *error);

/* A range of it, as text: "100:116", or a single index. The slice is one of a shape of a single axis. */
TD_CHECK tdbg_status td_subject_parse_flat(const struct td_subject *subject, const char *text,
                                           struct td_slice *out, struct tdbg_error *error);

/* As td_subject_values, of one side by itself: a slice of own[side].operand.shape. */
TD_CHECK tdbg_status td_subject_own_values(const struct td_subject *subject, int side,
                                           const struct td_slice *slice, double *out,
                                           struct tdbg_error *error);

/* Fails when a file was cut short since it was opened: asked before anything computed is believed. */
TD_CHECK tdbg_status td_subject_verify(const struct td_subject *subject, struct tdbg_error *error);

#endif
