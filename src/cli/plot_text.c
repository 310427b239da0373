/* plot_text.c: see plot_text.h.
 *
 * On a terminal with colours a character shows two cells, one above the other, blue below zero and orange
 * above, as the pages of `tdbg serve` do. Elsewhere a cell is a character from light to dark.
 */
#include "cli/plot_text.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { WIDEST = 160, PLAIN_WIDTH = 78, LINES = 24, LINE_HEIGHT = 14, LABEL = 11, DARKEST = 9 };

void plot_text_room(const struct term *term, bool line, int *rows, int *columns)
{
    int width = term->width ? term->width - LABEL - 3 : PLAIN_WIDTH - LABEL - 3;
    *columns = width > WIDEST ? WIDEST : width < 8 ? 8 : width;
    *rows = line ? 1 : term->colour ? 2 * LINES : LINES;
}

/* --- heatmap -------------------------------------------------------------------------------------------- */

/* The cube of 256 colours: 16 + 36 red + 6 green + blue, each 0 to 5. */
static int colour_of(double shade)
{
    if (isnan(shade))
        return 201; /* magenta: nothing else looks like it */
    int level = (int)lround(fabs(shade) * 5);
    return shade < 0 ? 16 + 36 * (5 - level) + 6 * (5 - level / 2) + 5
                     : 16 + 36 * 5 + 6 * (5 - level / 2) + (5 - level);
}

static double shade_at(const struct td_raster *r, int row, int column)
{
    return td_raster_shade(r, td_cell_mean(td_raster_cell(r, row, column)));
}

static void put_row(const struct term *term, const struct td_raster *r, int row)
{
    static const char levels[] = " .:-=+*#%@";
    for (int x = 0; x < r->columns; x++) {
        double shade = shade_at(r, row, x);
        if (!term->colour) {
            fputc(isnan(shade) ? '?' : levels[(int)lround(fabs(shade) * DARKEST)], term->file);
            continue;
        }
        fprintf(term->file, "\033[38;5;%dm", colour_of(shade));
        if (row + 1 < r->rows)
            fprintf(term->file, "\033[48;5;%dm", colour_of(shade_at(r, row + 1, x)));
        fputs("\u2580", term->file); /* the upper half */
    }
    if (term->colour)
        fputs("\033[0m", term->file);
}

static void put_heatmap(const struct term *term, const struct td_raster *r)
{
    for (int row = 0; row < r->rows; row += term->colour ? 2 : 1) {
        fprintf(term->file, "%*" PRId64 " | ", LABEL - 1, row * r->height / r->rows);
        put_row(term, r, row);
        fputc('\n', term->file);
    }
}

/* --- line ----------------------------------------------------------------------------------------------- */

/* From the least to the largest value of each cell, so that a single outlier shows. */
static void put_line(const struct term *term, const struct td_raster *r)
{
    double span = r->high - r->low;
    for (int row = LINE_HEIGHT - 1; row >= 0; row--) {
        double from = r->low + span * row / LINE_HEIGHT, to = r->low + span * (row + 1) / LINE_HEIGHT;
        if (row == LINE_HEIGHT - 1 || row == 0 || row == LINE_HEIGHT / 2)
            fprintf(term->file, "%*.4g | ", LABEL - 1,
                    row == 0                 ? r->low
                    : row == LINE_HEIGHT - 1 ? r->high
                                             : from);
        else
            fprintf(term->file, "%*s | ", LABEL - 1, "");
        for (int x = 0; x < r->columns; x++) {
            const struct td_cell *cell = td_raster_cell(r, 0, x);
            bool top = row == LINE_HEIGHT - 1;
            bool inside = cell->finite && cell->high >= from && (top || cell->low < to);
            if (inside)
                fputs(term->unicode ? "\u2588" : "#", term->file);
            else
                fputc(cell->others && row == 0 ? '?' : ' ', term->file);
        }
        fputc('\n', term->file);
    }
}

void plot_text(const struct term *term, const struct td_raster *r)
{
    if (r->rows == 0) {
        fputs("no values\n", term->file);
        return;
    }
    if (r->rows > 1)
        put_heatmap(term, r);
    else
        put_line(term, r);
    fprintf(term->file, "%*s   0 to %" PRId64 "; ", LABEL - 1, "", r->width - 1);
    if (r->low <= r->high)
        fprintf(term->file, "values from %.5g to %.5g", r->low, r->high);
    else
        fputs("no finite value", term->file);
    if (r->others)
        fprintf(term->file, ", %" PRIu64 " NaN or infinite (?)", r->others);
    if (r->width > r->columns || r->height > r->rows)
        fprintf(term->file, "; a cell is the %s of %.4g x %.4g values", r->rows > 1 ? "mean" : "range",
                (double)r->height / r->rows, (double)r->width / r->columns);
    fputc('\n', term->file);
}
