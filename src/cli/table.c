/* table.c: see table.h. */
#include "cli/table.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* An elastic column is worth WANTED columns before others are left out for it, and less where there are more.
 */
enum { GAP = 2, LEAST_ELASTIC = 12, WANTED = 24, WANTED_OF_MANY = 16, MAX_COLUMNS = 64 };

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
    size_t total = 0, columns = 0;
    for (size_t c = 0; c < t->column_count; c++)
        if (!(hidden >> c & 1))
            total += widths[c] + (columns++ ? GAP : 0); /* behind an empty column, too */
    return total;
}

static bool is_elastic(const struct table *t, size_t c, uint64_t hidden)
{
    return t->columns[c].elastic && !(hidden >> c & 1);
}

/* What the elastic columns take together where each has at most `most`. */
static size_t elastic_width(const struct table *t, const size_t *widths, uint64_t hidden, size_t most)
{
    size_t total = 0;
    for (size_t c = 0; c < t->column_count; c++)
        if (is_elastic(t, c, hidden))
            total += widths[c] < most ? widths[c] : most;
    return total;
}

/* Narrows the elastic columns, the widest first, until they take `room` together. */
static void narrow(const struct table *t, size_t *widths, uint64_t hidden, size_t room)
{
    size_t most = LEAST_ELASTIC;
    while (elastic_width(t, widths, hidden, most + 1) <= room &&
           elastic_width(t, widths, hidden, most) < elastic_width(t, widths, hidden, SIZE_MAX))
        most++;
    size_t taken = elastic_width(t, widths, hidden, most), spare = room > taken ? room - taken : 0;
    for (size_t c = 0; c < t->column_count; c++) {
        if (!is_elastic(t, c, hidden) || widths[c] <= most)
            continue;
        widths[c] = most + (spare > 0);
        spare -= spare > 0;
    }
}

/* Makes the table fit: which columns to leave out, and how wide the elastic ones may be. */
static uint64_t fit(const struct table *t, size_t *widths, size_t width, uint64_t hidden)
{
    for (;;) {
        size_t total = total_width(t, widths, hidden), elastic = 0;
        if (total <= width)
            return hidden;
        /* A name is worth more than a column that can be asked for. */
        size_t droppable = t->column_count;
        for (size_t c = 0; c < t->column_count; c++) {
            elastic += is_elastic(t, c, hidden);
            if (!(hidden >> c & 1) && t->columns[c].drop &&
                (droppable == t->column_count || t->columns[c].drop > t->columns[droppable].drop))
                droppable = c;
        }
        size_t fixed = total - elastic_width(t, widths, hidden, SIZE_MAX);
        size_t room = fixed < width ? width - fixed : 0;
        size_t wanted = elastic_width(t, widths, hidden, elastic > 1 ? WANTED_OF_MANY : WANTED);
        if (room >= wanted || droppable == t->column_count) {
            narrow(t, widths, hidden, room);
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
