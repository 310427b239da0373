/* show_text.c: see show_text.h.
 *
 * Two walks over the same elements: the first finds out how wide the cells must be, the second prints them.
 * So nothing is kept, and --all streams a tensor of any size.
 *
 * Floats are shown with the digits they need (in their own type, up to 8 after the point), all in one
 * style: plain decimals with the points aligned, or powers of ten where sizes are too far apart.
 */
#include "cli/show_text.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { SOME = 1000, EDGE = 3, MOST_CELLS = 4096, MOST_DECIMALS = 8, CELL = 96 };

/* Which indices of an axis are shown: `head` from the front, `tail` from the back. */
struct edges {
    int64_t head, tail;
};

struct sheet {
    const struct term *term;
    struct td_values *values;
    const struct td_shape *shape;
    struct edges edges[TD_MAX_DIMS];
    struct td_job *job;

    /* What the first walk finds out. */
    double largest, smallest; /* of the finite, non-zero magnitudes */
    int left, right;          /* columns before the point, and from the point on */
    int mantissa;             /* most digits after the first that any number needs */
    int widest;               /* cells without a point */
    bool negative, large;     /* some number has a minus; some exponent has three digits */

    /* What follows from it. */
    bool powers; /* 1.5e-07 */
    int width;   /* of a cell */

    int64_t line; /* columns already on the line, while printing */
};

static void plan_edges(struct sheet *s, int64_t count, bool all)
{
    for (int i = 0; i < s->shape->ndim; i++)
        s->edges[i] = (struct edges){.head = s->shape->size[i]};
    if (all || count <= SOME)
        return;
    int64_t cells;
    for (int edge = EDGE, lone = 0;; edge > 1 ? edge-- : lone++) {
        cells = 1;
        for (int i = 0; i < s->shape->ndim; i++) {
            int64_t size = s->shape->size[i];
            if (i < lone)
                s->edges[i] = (struct edges){.head = 1}; /* only the first of the outermost axes */
            else if (size > 2 * edge)
                s->edges[i] = (struct edges){.head = edge, .tail = edge};
            cells *= s->edges[i].head + s->edges[i].tail;
            if (cells > MOST_CELLS)
                break;
        }
        if (cells <= MOST_CELLS || lone == s->shape->ndim)
            return;
    }
}

/* --- First walk: how wide ------------------------------------------------------------------------------- */

static void raise_to(int *most, int value)
{
    if (value > *most)
        *most = value;
}

static int decimals_of(const struct td_decimal *d)
{
    int wanted = d->exponent < 0 ? -d->exponent : 1;
    return wanted < MOST_DECIMALS ? wanted : MOST_DECIMALS;
}

static void survey_real(struct sheet *s, double v)
{
    if (!isfinite(v)) {
        raise_to(&s->widest, v < 0 ? 4 : 3);
        return;
    }
    struct td_decimal d = td_decimal_shortest(v, s->values->own);
    int whole = d.count + d.exponent;
    raise_to(&s->left, (whole > 1 ? whole : 1) + d.negative);
    raise_to(&s->right, 1 + decimals_of(&d));
    raise_to(&s->mantissa, d.count - 1 < MOST_DECIMALS - 1 ? d.count - 1 : MOST_DECIMALS - 1);
    s->negative = s->negative || d.negative;
    s->large = s->large || whole > 100 || whole < -98;
    double magnitude = fabs(v);
    if (magnitude > s->largest)
        s->largest = magnitude;
    if (magnitude > 0 && (s->smallest == 0 || magnitude < s->smallest))
        s->smallest = magnitude;
}

static int print_cell(const struct sheet *s, char *out, const struct td_value *value);

static void survey_cell(struct sheet *s, const struct td_value *value)
{
    char text[CELL];
    if (value->kind == TD_VALUE_FLOAT)
        survey_real(s, value->real);
    else
        raise_to(&s->widest, print_cell(s, text, value));
}

static void decide_style(struct sheet *s)
{
    s->powers = s->largest >= 1e8 || (s->smallest > 0 && s->smallest < 1e-4);
    if (s->powers) {
        s->left = 1 + s->negative;
        s->right = (s->mantissa ? 1 + s->mantissa : 0) + (s->large ? 5 : 4);
    }
    s->width = s->left + s->right > s->widest ? s->left + s->right : s->widest;
}

/* --- Second walk: print --------------------------------------------------------------------------------- */

static int print_real(const struct sheet *s, char *out, double v)
{
    if (!isfinite(v))
        return snprintf(out, CELL, "%s", isnan(v) ? "nan" : v > 0 ? "inf" : "-inf");
    if (s->powers)
        return snprintf(out, CELL, "%.*e", s->mantissa, v);
    struct td_decimal d = td_decimal_shortest(v, s->values->own);
    int decimals = decimals_of(&d);
    int length = snprintf(out, CELL, "%.*f", decimals, v), end = length;
    while (out[end - 1] == '0' && out[end - 2] != '.') /* digits cut at MOST_DECIMALS may end in zeros */
        out[--end] = ' ';
    for (int pad = s->right - 1 - decimals; pad > 0; pad--) /* the points line up */
        out[length++] = ' ';
    out[length] = 0;
    return length;
}

/* A NaN's sign bit means nothing. */
static double without_sign(double v)
{
    return isnan(v) ? fabs(v) : v;
}

/* At most CELL bytes: 309 digits before the point are never shown, powers take over at 1e8. */
static int print_cell(const struct sheet *s, char *out, const struct td_value *value)
{
    switch (value->kind) {
    case TD_VALUE_FLOAT:
        return print_real(s, out, value->real);
    case TD_VALUE_INT:
        return (int)td_number_int(out, value->integer);
    case TD_VALUE_UINT:
        return (int)td_number_uint(out, value->natural);
    case TD_VALUE_BOOL:
        return snprintf(out, CELL, "%s", value->truth ? "True" : "False");
    case TD_VALUE_COMPLEX:
        return snprintf(out, CELL, "%.7g%+.7gj", without_sign(value->complex.re),
                        without_sign(value->complex.im));
    }
    return 0;
}

static const char *gap(const struct sheet *s)
{
    return s->term->unicode ? "…" : "...";
}

/* A text of `width` columns after a blank, on the next line when this one is full. */
static void put_text(struct sheet *s, const char *text, int width, bool first)
{
    FILE *file = s->term->file;
    if (!first && s->term->width && s->line + 1 + width + s->shape->ndim > s->term->width) {
        fprintf(file, "\n%*s", s->shape->ndim, "");
        s->line = s->shape->ndim;
        first = true;
    }
    fprintf(file, "%s%s", first ? "" : " ", text);
    s->line += width + !first;
}

static void put_cell(struct sheet *s, const struct td_value *value, bool first)
{
    char text[CELL], padded[2 * CELL];
    bool odd = value->kind == TD_VALUE_FLOAT && !isfinite(value->real);
    print_cell(s, text, value);
    snprintf(padded, sizeof padded, "%s%*s%s", odd ? term_style(s->term, STYLE_RED) : "", s->width, text,
             odd ? term_style(s->term, STYLE_PLAIN) : "");
    put_text(s, padded, s->width, first);
}

/* --- The walk ------------------------------------------------------------------------------------------- */

static tdbg_status visit_cell(struct sheet *s, int64_t at, bool print, bool first, struct tdbg_error *error)
{
    struct td_value value;
    if (at % TD_VALUES_CHUNK == 0 &&
        (td_job_cancelled(s->job) || ferror(s->term->file))) /* nobody reads on */
        return td_fail(error, TDBG_CANCELLED, "cancelled");
    TD_TRY(td_values_get(s->values, at, &value, error));
    if (print)
        put_cell(s, &value, first);
    else
        survey_cell(s, &value);
    return TDBG_OK;
}

/* A new row or block below the bracket it belongs to; blocks of blocks get an empty line between them. */
static void put_break(struct sheet *s, int axis)
{
    for (int i = axis + 1; i < s->shape->ndim; i++)
        fputc('\n', s->term->file);
    fprintf(s->term->file, "%*s", axis + 1, "");
    s->line = axis + 1;
}

/* Everything below index `at` of the axes before `axis`. Recursion as deep as the tensor has axes. */
static tdbg_status walk(struct sheet *s, int axis, int64_t at, bool print, struct tdbg_error *error)
{
    int last = s->shape->ndim - 1;
    int64_t size = s->shape->size[axis], resume = size - s->edges[axis].tail;
    if (print) {
        fputc('[', s->term->file);
        s->line++;
    }
    for (int64_t i = 0; i < size; i++) {
        bool first = i == 0;
        if (i == s->edges[axis].head && i < resume) {
            if (print && axis < last)
                put_break(s, axis);
            if (print)
                put_text(s, gap(s), 1, first || axis < last);
            i = resume;
            if (i == size)
                break;
        }
        if (print && axis < last && !first)
            put_break(s, axis);
        TD_TRY(axis < last ? walk(s, axis + 1, at * size + i, print, error)
                           : visit_cell(s, at * size + i, print, first, error));
    }
    if (print)
        fputc(']', s->term->file);
    return TDBG_OK;
}

tdbg_status show_text(const struct term *term, struct td_values *values, const struct td_shape *shape,
                      bool all, struct td_job *job, struct tdbg_error *error)
{
    struct sheet s = {.term = term, .values = values, .shape = shape, .job = job};
    int64_t count = 1;
    for (int i = 0; i < shape->ndim; i++)
        count *= shape->size[i];
    if (count == 0) {
        fputs("[]\n", term->file);
        return TDBG_OK;
    }
    plan_edges(&s, count, all);
    bool scalar = shape->ndim == 0;
    TD_TRY(scalar ? visit_cell(&s, 0, false, true, error) : walk(&s, 0, 0, false, error));
    decide_style(&s);
    TD_TRY(scalar ? visit_cell(&s, 0, true, true, error) : walk(&s, 0, 0, true, error));
    fputc('\n', term->file);
    return TDBG_OK;
}
