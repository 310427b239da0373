/* table.c: see table.h. */
#include "cli/table.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { GAP = 2, LEAST_ELASTIC = 12, MAX_COLUMNS = 64 };

void table_init(struct table *t, const struct column *columns, size_t column_count)
{
    *t = (struct table){.columns = columns, .column_count = column_count};
    td_buffer_init(&t->text, SIZE_MAX / 4);
    td_buffer_init(&t->styles, SIZE_MAX / 4);
}

void table_release(struct table *t)
{
    td_buffer_release(&t->text);
    td_buffer_release(&t->styles);
}

void table_cell_styled(struct table *t, enum style style, const char *text)
{
    char code = (char)style;
    td_buffer_append(&t->text, text, strlen(text) + 1);
    td_buffer_append(&t->styles, &code, 1);
    t->cell_count++;
}

void table_cell(struct table *t, const char *text)
{
    table_cell_styled(t, STYLE_PLAIN, text);
}

void table_cellf(struct table *t, const char *format, ...)
{
    char text[256];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    table_cell(t, text);
}

static void measure(const struct table *t, size_t *widths)
{
    const char *at = td_buffer_text(&t->text);
    for (size_t c = 0; c < t->column_count; c++)
        widths[c] = term_columns(t->columns[c].title);
    for (size_t i = 0; i < t->cell_count; i++, at += strlen(at) + 1) {
        size_t columns = term_columns(at), *width = &widths[i % t->column_count];
        if (columns > *width)
            *width = columns;
    }
}

static size_t total_width(const struct table *t, const size_t *widths, uint64_t hidden)
{
    size_t total = 0;
    for (size_t c = 0; c < t->column_count; c++)
        if (!(hidden >> c & 1))
            total += widths[c] + (total ? GAP : 0);
    return total;
}

/* Makes the table fit: which columns to leave out, and how wide the elastic one may be. */
static uint64_t fit(const struct table *t, size_t *widths, size_t width, uint64_t hidden)
{
    size_t elastic = 0;
    while (elastic + 1 < t->column_count && !t->columns[elastic].elastic)
        elastic++;
    for (;;) {
        size_t total = total_width(t, widths, hidden), least = widths[elastic];
        if (total <= width)
            return hidden;
        if (least > LEAST_ELASTIC)
            least = LEAST_ELASTIC;
        /* A name is worth more than a column that can be asked for. */
        size_t droppable = t->column_count;
        for (size_t c = 0; c < t->column_count; c++)
            if (!(hidden >> c & 1) && t->columns[c].drop &&
                (droppable == t->column_count || t->columns[c].drop > t->columns[droppable].drop))
                droppable = c;
        size_t wanted = widths[elastic] < 2 * LEAST_ELASTIC ? widths[elastic] : 2 * LEAST_ELASTIC;
        size_t room = total - widths[elastic] < width ? width - (total - widths[elastic]) : 0;
        if (room >= wanted || droppable == t->column_count) {
            widths[elastic] = room > least ? room : least;
            return hidden;
        }
        hidden |= UINT64_C(1) << droppable;
    }
}

static void put_blanks(FILE *file, size_t count)
{
    for (; count > 0; count--)
        fputc(' ', file);
}

static void put_row(const struct table *t, const struct term *term, const size_t *widths, uint64_t hidden,
                    const char **cells, const char *styles)
{
    size_t pending = 0; /* blanks that only matter if something follows */
    for (size_t c = 0; c < t->column_count; c++) {
        if (hidden >> c & 1)
            continue;
        size_t columns = term_columns(cells[c]);
        size_t shown = columns < widths[c] ? columns : widths[c];
        if (t->columns[c].right)
            pending += widths[c] - shown;
        enum style style = styles ? (enum style)styles[c] : STYLE_BOLD;
        if (shown) {
            put_blanks(term->file, pending);
            pending = 0;
            if (style != STYLE_PLAIN)
                fputs(term_style(term, style), term->file);
            shown = term_put_elided(term, cells[c], widths[c]);
            if (style != STYLE_PLAIN)
                fputs(term_style(term, STYLE_PLAIN), term->file);
        }
        if (!t->columns[c].right)
            pending += widths[c] - shown;
        pending += GAP;
    }
    fputc('\n', term->file);
}

bool table_print(const struct table *t, const struct term *term, uint64_t hidden)
{
    size_t widths[MAX_COLUMNS];
    const char *cells[MAX_COLUMNS];
    if (t->text.failed || t->styles.failed)
        return false;
    measure(t, widths);
    if (term->width)
        hidden = fit(t, widths, (size_t)term->width, hidden);
    for (size_t c = 0; c < t->column_count; c++)
        cells[c] = t->columns[c].title;
    put_row(t, term, widths, hidden, cells, NULL);
    const char *at = td_buffer_text(&t->text);
    for (size_t i = 0; i < t->cell_count; i += t->column_count) {
        for (size_t c = 0; c < t->column_count; c++, at += strlen(at) + 1)
            cells[c] = at;
        put_row(t, term, widths, hidden, cells, t->styles.data + i);
    }
    return true;
}
