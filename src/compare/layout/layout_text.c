/* layout_text.c: see layout_text.h. Both sides are read into the same form, axes that are groups of names;
 * then the sizes of all names are found, B is split into names, permuted, and A split to match. */
#include "compare/layout/layout_text.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

enum { MAX_NAMES = 16, NAME = 24 };

struct side_text {
    int axes;             /* groups */
    int first[MAX_NAMES]; /* of each group: its first name; the last entry closes */
    int names;
    char name[MAX_NAMES][NAME];
};

static int find_name(const struct side_text *s, const char *name)
{
    for (int i = 0; i < s->names; i++)
        if (strcmp(s->name[i], name) == 0)
            return i;
    return -1;
}

static bool read_side(struct side_text *s, const char *p, const char *end)
{
    bool open = false;
    *s = (struct side_text){0};
    while (p < end) {
        if (isspace((unsigned char)*p)) {
            p++;
        } else if (*p == '(' || *p == ')') {
            if (open == (*p == '('))
                return false;
            open = *p++ == '(';
            if (open && s->axes == MAX_NAMES - 1)
                return false;
            if (open)
                s->first[s->axes++] = s->names;
            else if (s->first[s->axes - 1] == s->names)
                return false; /* () */
        } else {
            int n = 0;
            if (s->names == MAX_NAMES || s->axes == MAX_NAMES - 1)
                return false;
            if (!open)
                s->first[s->axes++] = s->names;
            while (p < end && (isalnum((unsigned char)*p) || *p == '_') && n + 1 < NAME)
                s->name[s->names][n++] = *p++;
            if (n == 0 || n + 1 == NAME || find_name(s, s->name[s->names]) >= 0)
                return false; /* not a letter, too long, named twice */
            s->names++;
        }
    }
    s->first[s->axes] = s->names;
    return !open && s->axes > 0;
}

static bool read_text(const char *text, struct side_text *left, struct side_text *right)
{
    const char *arrow = strstr(text, "->");
    return arrow && read_side(left, text, arrow) && read_side(right, arrow + 2, text + strlen(text));
}

int td_layout_text_axes(const char *text)
{
    struct side_text left, right;
    return read_text(text, &left, &right) ? left.axes : -1;
}

/* Sizes of the names of `s` that stand alone in their axis; 0 for the others. */
static void lone_sizes(const struct side_text *s, const struct td_shape *shape, int64_t *size)
{
    for (int g = 0; g < s->axes; g++)
        for (int i = s->first[g]; i < s->first[g + 1]; i++)
            size[i] = s->first[g + 1] - s->first[g] == 1 ? shape->size[g] : 0;
}

/* A group with one unknown name has it by division. */
static bool solve_groups(const struct side_text *s, const struct td_shape *shape, int64_t *size)
{
    for (int g = 0; g < s->axes; g++) {
        int unknown = -1, unknowns = 0;
        int64_t product = 1;
        for (int i = s->first[g]; i < s->first[g + 1]; i++)
            if (size[i] == 0) {
                unknown = i;
                unknowns++;
            } else {
                product *= size[i];
            }
        if (unknowns == 1 && product > 0 && shape->size[g] % product == 0)
            size[unknown] = shape->size[g] / product;
        else if (unknowns > 1 || (unknowns == 0 && product != shape->size[g]))
            return false;
        else if (unknowns == 1)
            return false;
    }
    return true;
}

static void add_step(struct td_steps *steps, struct td_step step)
{
    steps->step[steps->count++] = step;
}

static bool same_list(const struct td_shape *x, const struct td_shape *y)
{
    return x->ndim == y->ndim && memcmp(x->size, y->size, (size_t)x->ndim * sizeof x->size[0]) == 0;
}

tdbg_status td_layout_parse(struct td_layout *out, const char *text, const struct td_shape *a,
                            const struct td_shape *b, struct tdbg_error *error)
{
    struct side_text left, right;
    if (!read_text(text, &left, &right))
        return td_fail(error, TDBG_MISUSE, "'%s' is no layout; write it as 'b h t d -> t h d'", text);
    if (left.axes != b->ndim || right.axes != a->ndim)
        return td_fail(error, TDBG_MISMATCH, "layout '%s' for %d axes of B and %d of A", text, b->ndim,
                       a->ndim);
    int64_t size_left[MAX_NAMES] = {0}, size_right[MAX_NAMES] = {0};
    lone_sizes(&left, b, size_left);
    lone_sizes(&right, a, size_right);
    for (int i = 0; i < right.names; i++) {
        int j = find_name(&left, right.name[i]);
        if (j < 0)
            return td_fail(error, TDBG_MISUSE, "layout '%s': '%s' is not on the left", text, right.name[i]);
        if (size_left[j] == 0)
            size_left[j] = size_right[i];
        if (size_right[i] == 0)
            size_right[i] = size_left[j];
        if (size_left[j] && size_right[i] && size_left[j] != size_right[i])
            return td_fail(error, TDBG_MISMATCH, "layout '%s': '%s' is %" PRId64 " in A and %" PRId64 " in B",
                           text, right.name[i], size_right[i], size_left[j]);
    }
    if (!solve_groups(&left, b, size_left))
        return td_fail(error, TDBG_MISMATCH, "layout '%s': the sizes do not fit B's shape", text);
    struct td_layout layout = {0};
    struct td_shape split = {.ndim = left.names}, order = {0}, wanted = {0};
    for (int i = 0; i < left.names; i++)
        split.size[i] = size_left[i];
    for (int i = 0; i < right.names; i++) {
        order.size[order.ndim++] = find_name(&left, right.name[i]);
        wanted.size[wanted.ndim++] = size_left[order.size[i]];
    }
    for (int i = 0; i < left.names; i++)
        if (find_name(&right, left.name[i]) < 0) {
            if (size_left[i] != 1)
                return td_fail(error, TDBG_MISMATCH,
                               "layout '%s': '%s' has %" PRId64 " entries and is left out", text,
                               left.name[i], size_left[i]);
            order.size[order.ndim++] = i;
        }
    if (!same_list(&split, b))
        add_step(&layout.b, (struct td_step){.kind = TD_STEP_RESHAPE, .list = split});
    add_step(&layout.b, (struct td_step){.kind = TD_STEP_PERMUTE, .list = order});
    if (order.ndim > wanted.ndim)
        add_step(&layout.b, (struct td_step){.kind = TD_STEP_RESHAPE, .list = wanted});
    if (!same_list(&wanted, a))
        add_step(&layout.a, (struct td_step){.kind = TD_STEP_RESHAPE, .list = wanted});
    layout.shape = wanted;
    *out = layout;
    return TDBG_OK;
}
