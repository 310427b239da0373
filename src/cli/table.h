/* table.h: rows of text cells, printed in columns that fit the terminal.
 *
 * Where the terminal is too narrow, columns marked optional go first (the highest `drop` first), then the
 * elastic columns, the widest first, are shortened in the middle of their texts.
 */
#ifndef TD_CLI_TABLE_H
#define TD_CLI_TABLE_H

#include "base/buffer.h"
#include "cli/term.h"

#include <stdint.h>

struct column {
    const char *title;
    bool right;   /* aligned */
    bool elastic; /* may be shortened */
    int drop;     /* 0: always shown */
};

struct table {
    const struct column *columns;
    size_t column_count, cell_count;
    struct td_buffer text;   /* the cells, each with its NUL */
    struct td_buffer styles; /* one byte per cell */
};

void table_init(struct table *t, const struct column *columns, size_t column_count);
void table_release(struct table *t);

/* Fills the table cell by cell, row after row. */
void table_cell(struct table *t, const char *text);
void table_cell_styled(struct table *t, enum style style, const char *text);
void table_cellf(struct table *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Bit c of `hidden` leaves column c out whatever the width. False when memory ran out. */
bool table_print(const struct table *t, const struct term *term, uint64_t hidden);

#endif
