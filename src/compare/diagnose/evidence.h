/* evidence.h: the values a diagnosis works on, and the ledger in which hypotheses enter what they explain. */
#ifndef TD_COMPARE_DIAGNOSE_EVIDENCE_H
#define TD_COMPARE_DIAGNOSE_EVIDENCE_H

#include "compare/layout/candidates.h"
#include "compare/diagnose/diagnose.h"
#include "compare/diagnose/survey.h"

/* Both sides, lined up, as doubles: all of the pair, or some rows where it is larger than LIMIT. */
struct td_evidence {
    const struct td_case *c;
    struct td_shape shape;
    int64_t count;
    struct td_shape whole;          /* of the pair */
    int64_t start;                  /* where the rows begin in it, as an element */
    int64_t origin[TD_MAX_DIMS];    /* the same along each axis */
    const struct td_survey *survey; /* of the whole, where this is some of it; else NULL */
    char where[64];                 /* ", in expert 3 of axis 0" where nothing else is looked at, or "" */
    double *a, *b;                  /* non-finite pairs are zero on both sides; `usable` counts the others */
    double *work;                   /* td_evidence_work's */
    bool starved;                   /* a hypothesis went without memory */
    int64_t usable;
    double power_a, power_b, power_d; /* sums of squares */
    double to_explain; /* power_d, or power_b where that is less: "B has nothing to do with A" explains the
                          rest */
    int token_axis;    /* -1: unknown */
};

/* At most this many elements of each side are looked at: 16 MiB, and plenty for every statistic used. */
#define TD_EVIDENCE_LIMIT (INT64_C(1) << 21)

/* Scratch of this hypothesis alone, `count` elements, at e->work as well; NULL: out of memory, which is
 * noted. */
double *td_evidence_work(struct td_evidence *e);

/* Another item of A in the layout of this one, into e->work; false when its shape does not fit. */
bool td_evidence_load(struct td_evidence *e, const struct td_item *item);

/* Enters a hypothesis: `rest` is the squared error it leaves, `parameters` how many numbers it fitted. It is
 * dropped when it explains less than half. */
double td_explained(const struct td_evidence *e, double rest);
void td_enter(const struct td_evidence *e, struct td_diagnosis *d, enum td_kind_of_mistake kind, double rest,
              double parameters, const char *format, ...) __attribute__((format(printf, 6, 7)));

/* What a hypothesis may leave at the most. One that leaves more is dropped, however much more it is, so who
 * adds up may stop there: most hypotheses are wrong, and show it in the first quarter of the values. */
double td_most_left(const struct td_evidence *e);

/* |b - x|^2; beyond td_most_left only that it is more. */
double td_rest(const struct td_evidence *e, const double *x);

/* The sum of x y. */
double td_dot(const double *x, const double *y, int64_t count);

/* One of so many shares of the elements, with that squared error and power of A, is off by more than the
 * floor. */
bool td_is_touched(const struct td_evidence *e, int64_t shares, double error, double power);

/* "3", "0-2", "0, 4-6 and 9 more": the set bits of `flags` for people. */
void td_print_indices(char *out, size_t size, const bool *flags, int64_t count);

/* "expert", "sequence", "token", "head", "channel" or "index" for axis i. */
const char *td_axis_word(const struct td_evidence *e, int axis);
const char *td_axis_plural(const struct td_evidence *e, int axis);

/* The families of hypotheses. Each is heard with a copy of the evidence and a ledger of its own, on any
 * thread; `axis` is the one to look along, for those that are heard once for each axis. */
typedef void td_suspicion(struct td_evidence *e, struct td_diagnosis *d, int axis);

td_suspicion td_suspect_places;    /* nan, inf, zeroed, partial, mask */
td_suspicion td_suspect_rule;      /* one factor, one offset */
td_suspicion td_suspect_sharing;   /* factors and offsets that an axis shares */
td_suspicion td_suspect_limits;    /* clamp, precision */
td_suspicion td_suspect_noise;     /* precision */
td_suspicion td_suspect_layout;    /* the layout that fits this layer alone */
td_suspicion td_suspect_axis;      /* an axis shifted or permuted */
td_suspicion td_suspect_axes;      /* axes transposed, heads in another order, interleaved halves */
td_suspicion td_suspect_exchanged; /* swap, stale */
td_suspicion td_suspect_rotation;  /* rope */
td_suspicion td_suspect_attention; /* scale, mask, by replay */

#endif
