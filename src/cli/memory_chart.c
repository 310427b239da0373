/* memory_chart.c: see memory_chart.h. Each column shows the most that was held in its part of the run, so
 * that no peak is lost whatever the width. */
#include "cli/memory_chart.h"

#include "cli/text.h"

#include <string.h>

enum { ROWS = 8, EIGHTHS = 8, MOST_COLUMNS = 160, MARGIN = 14, LEAST_POINTS = 4 };

static const char *const blocks[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};

static int fill(const struct td_memory_report *r, int columns, uint64_t *most)
{
    memset(most, 0, (size_t)columns * sizeof *most);
    for (size_t i = 0; i < r->point_count; i++) {
        size_t first = i * (size_t)columns / r->point_count;
        size_t last = (i + 1) * (size_t)columns / r->point_count;
        for (size_t c = first; c < (last > first ? last : first + 1) && c < (size_t)columns; c++)
            if (r->points[i].most > most[c])
                most[c] = r->points[i].most;
    }
    return columns;
}

static void put_row(const struct term *term, const uint64_t *most, int columns, int row, uint64_t top)
{
    for (int c = 0; c < columns; c++) {
        double height = (double)most[c] / (double)top * ROWS - row; /* in rows above the foot of this one */
        int eighths = height <= 0 ? 0 : height >= 1 ? EIGHTHS : (int)(height * EIGHTHS + 0.5);
        if (row == 0 && eighths == 0 && most[c])
            eighths = 1;
        fputs(term->unicode ? blocks[eighths] : eighths >= 4 ? "#" : " ", term->file);
    }
}

void memory_chart(const struct term *term, const struct td_memory_report *r)
{
    uint64_t most[MOST_COLUMNS], top = r->views[TD_MOMENT_PEAK].live.bytes;
    int width = term->width ? term->width : 80;
    int columns = width - MARGIN < MOST_COLUMNS ? width - MARGIN : MOST_COLUMNS;
    if (r->point_count < LEAST_POINTS || top == 0 || columns < 16)
        return;
    columns = fill(r, columns, most);
    for (int row = ROWS - 1; row >= 0; row--) {
        char size[SIZE_TEXT] = "";
        if (row == ROWS - 1 || row == ROWS / 2 - 1)
            text_size(size, top / (row == ROWS - 1 ? 1 : 2));
        fprintf(term->file, "%10s  %s", size, term_style(term, STYLE_GREEN));
        put_row(term, most, columns, row, top);
        fprintf(term->file, "%s\n", term_style(term, STYLE_PLAIN));
    }
    double seconds = 1e-9 * (double)(r->end_ns - r->begin_ns);
    char end[32];
    snprintf(end, sizeof end, "%.3g s", seconds);
    fprintf(term->file, "%10s  0%*s\n", "", columns - 1, end);
}
