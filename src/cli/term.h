/* term.h: what the other end of stdout and stderr can show, and how wide text is on it. */
#ifndef TD_CLI_TERM_H
#define TD_CLI_TERM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum style { STYLE_PLAIN, STYLE_BOLD, STYLE_DIM, STYLE_RED, STYLE_YELLOW, STYLE_GREEN };

struct term {
    FILE *file;
    bool tty;     /* a person is looking */
    bool colour;  /* a terminal, and NO_COLOR is not set */
    bool unicode; /* the locale is UTF-8 */
    int width;    /* columns; 0: as wide as need be */
};

/* COLUMNS counts everywhere, the size of the terminal on a terminal. Needs setlocale(LC_CTYPE) done. */
struct term term_open(FILE *file);

/* The escape sequence, or "" where colours are off. */
const char *term_style(const struct term *term, enum style style);

/* Columns that UTF-8 text takes. */
size_t term_columns(const char *text);

/* A bar of `share` of `columns`, eighths of a column where the locale has them. Returns the columns used. */
int term_put_bar(const struct term *term, double share, int columns);

/* Writes text in at most `columns` columns, the middle replaced by … when it does not fit. Returns the
 * columns written. */
size_t term_put_elided(const struct term *term, const char *text, size_t columns);

/* Writes words in lines as wide as the terminal, 100 columns at most, and ends the last one. The first word
 * stands at column `at`, which is where the line is, the other lines begin at `indent`. */
void term_put_wrapped(const struct term *term, const char *text, int at, int indent);

#endif
