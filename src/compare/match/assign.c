/* assign.c: see assign.h.
 *
 * The Hungarian method with potentials: rows are put in one by one, each along the cheapest path of
 * exchanges. Its time grows with the cube of the size; beyond a bound the best pair is taken first, and so
 * on, which differs only where taking the second best would leave more for others.
 */
#include "compare/match/assign.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

/* Of a square matrix: a fifth of a second. */
enum { LARGEST = 512 };

/* A pair that is not allowed costs as much as being alone. */
static double cost_of(const double *score, size_t rows, size_t columns, size_t i, size_t j, double least)
{
    if (i >= rows || j >= columns)
        return 0;
    double s = score[i * columns + j];
    return s >= least ? -s : 0;
}

struct matrix {
    const double *score;
    size_t rows, columns, n;
    double least;
};

/* Index 0 stands for nobody: rows and columns count from 1. */
struct state {
    double *row_potential, *column_potential, *slack;
    size_t *row_of, *from;
    bool *reached;
};

/* Extends the tree of exchanges by the column that is nearest; returns it. */
static size_t reach(const struct matrix *m, struct state *s, size_t column)
{
    size_t row = s->row_of[column], next = 0;
    double nearest = INFINITY;
    s->reached[column] = true;
    for (size_t j = 1; j <= m->n; j++) {
        if (s->reached[j])
            continue;
        double cost = cost_of(m->score, m->rows, m->columns, row - 1, j - 1, m->least) -
                      s->row_potential[row] - s->column_potential[j];
        if (cost < s->slack[j]) {
            s->slack[j] = cost;
            s->from[j] = column;
        }
        if (s->slack[j] < nearest) {
            nearest = s->slack[j];
            next = j;
        }
    }
    for (size_t j = 0; j <= m->n; j++)
        if (s->reached[j]) {
            s->row_potential[s->row_of[j]] += nearest;
            s->column_potential[j] -= nearest;
        } else {
            s->slack[j] -= nearest;
        }
    return next;
}

static void put_in(const struct matrix *m, struct state *s, size_t row)
{
    size_t column = 0;
    s->row_of[0] = row;
    for (size_t j = 0; j <= m->n; j++) {
        s->slack[j] = INFINITY;
        s->reached[j] = false;
    }
    do
        column = reach(m, s, column);
    while (s->row_of[column] != 0);
    while (column != 0) {
        size_t before = s->from[column];
        s->row_of[column] = s->row_of[before];
        column = before;
    }
}

static bool assign_best(const struct matrix *m, size_t *partner)
{
    size_t n = m->n + 1;
    double *numbers = calloc(n * 3, sizeof *numbers);
    size_t *indices = calloc(n * 2, sizeof *indices);
    bool *reached = calloc(n, sizeof *reached);
    bool ready = numbers && indices && reached;
    if (ready) {
        struct state s = {numbers, numbers + n, numbers + 2 * n, indices, indices + n, reached};
        for (size_t row = 1; row <= m->n; row++)
            put_in(m, &s, row);
        for (size_t j = 1; j <= m->columns; j++)
            if (s.row_of[j] && s.row_of[j] <= m->rows &&
                m->score[(s.row_of[j] - 1) * m->columns + j - 1] >= m->least)
                partner[s.row_of[j] - 1] = j - 1;
    }
    free(numbers);
    free(indices);
    free(reached);
    return ready;
}

struct offer {
    double score;
    size_t row, column;
};

static int best_first(const void *x, const void *y)
{
    const struct offer *a = x, *b = y;
    if (a->score != b->score)
        return a->score > b->score ? -1 : 1;
    if (a->row != b->row)
        return a->row < b->row ? -1 : 1;
    return (a->column > b->column) - (a->column < b->column);
}

static bool assign_greedily(const struct matrix *m, size_t *partner)
{
    size_t count = 0, total = 0;
    for (size_t i = 0; i < m->rows * m->columns; i++)
        total += m->score[i] >= m->least;
    struct offer *offers = calloc(total + 1, sizeof *offers);
    bool *taken = calloc(m->columns + 1, sizeof *taken), ready = offers && taken;
    for (size_t i = 0; ready && i < m->rows * m->columns; i++)
        if (m->score[i] >= m->least)
            offers[count++] = (struct offer){m->score[i], i / m->columns, i % m->columns};
    if (count)
        qsort(offers, count, sizeof *offers, best_first);
    for (size_t i = 0; i < count; i++)
        if (partner[offers[i].row] == TD_ASSIGNED_TO_NOBODY && !taken[offers[i].column]) {
            partner[offers[i].row] = offers[i].column;
            taken[offers[i].column] = true;
        }
    free(offers);
    free(taken);
    return ready;
}

bool td_assign(const double *score, size_t rows, size_t columns, double least, size_t *partner)
{
    struct matrix m = {score, rows, columns, rows > columns ? rows : columns, least};
    for (size_t i = 0; i < rows; i++)
        partner[i] = TD_ASSIGNED_TO_NOBODY;
    return m.n <= LARGEST ? assign_best(&m, partner) : assign_greedily(&m, partner);
}
