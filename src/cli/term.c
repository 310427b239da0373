/* term.c: see term.h. */
#include "cli/term.h"

#include "base/utf8.h"

#include <langinfo.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <wchar.h>

enum { NARROWEST = 20, WIDEST = 10000, TEXT_WIDTH = 100 };

static int width_of(FILE *file, bool tty)
{
    const char *columns = getenv("COLUMNS");
    long wanted = columns ? strtol(columns, NULL, 10) : 0;
    if (wanted >= NARROWEST && wanted <= WIDEST)
        return (int)wanted;
    struct winsize size;
    if (tty && ioctl(fileno(file), TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return size.ws_col < NARROWEST ? NARROWEST : size.ws_col;
    return tty ? 80 : 0;
}

struct term term_open(FILE *file)
{
    struct term term = {.file = file, .tty = isatty(fileno(file)) == 1};
    const char *no_colour = getenv("NO_COLOR"), *kind = getenv("TERM");
    term.colour = term.tty && !(no_colour && *no_colour) && kind && strcmp(kind, "dumb") != 0;
    term.unicode = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
    term.width = width_of(file, term.tty);
    return term;
}

const char *term_style(const struct term *term, enum style style)
{
    static const char *const codes[] = {
        [STYLE_PLAIN] = "\033[0m", [STYLE_BOLD] = "\033[1m",    [STYLE_DIM] = "\033[2m",
        [STYLE_RED] = "\033[31m",  [STYLE_YELLOW] = "\033[33m", [STYLE_GREEN] = "\033[32m",
    };
    return term->colour ? codes[style] : "";
}

/* The sequence at text: its bytes, and its columns. Bytes that are no UTF-8 count one each. */
static size_t step(const char *text, size_t length, size_t *columns)
{
    uint32_t code = 0;
    int bytes = td_utf8_decode(text, length, &code);
    int wide = bytes > 1 ? wcwidth((wchar_t)code) : 1;
    *columns = wide < 0 ? 1 : (size_t)wide;
    return bytes ? (size_t)bytes : 1;
}

static size_t columns_of(const char *text, size_t length)
{
    size_t total = 0, columns;
    for (size_t at = 0; at < length;) {
        at += step(text + at, length - at, &columns);
        total += columns;
    }
    return total;
}

size_t term_columns(const char *text)
{
    return columns_of(text, strlen(text));
}

size_t term_put_elided(const struct term *term, const char *text, size_t columns)
{
    size_t total = term_columns(text);
    if (total <= columns) {
        fputs(text, term->file);
        return total;
    }
    const char *gap = term->unicode ? "…" : "..";
    size_t gap_columns = term->unicode ? 1 : 2;
    if (columns <= gap_columns)
        return 0;
    /* The end of a name tells more than its beginning: it gets the larger half. */
    size_t head = (columns - gap_columns) / 2, tail = columns - gap_columns - head;
    size_t length = strlen(text), at = 0, seen = 0, written = gap_columns, wide = 0;
    for (size_t bytes; at < length; at += bytes, seen += wide) {
        bytes = step(text + at, length - at, &wide);
        if (seen + wide > head)
            break;
    }
    fwrite(text, 1, at, term->file);
    written += seen;
    fputs(gap, term->file);
    while (at < length && total - seen > tail) {
        at += step(text + at, length - at, &wide);
        seen += wide;
    }
    fputs(text + at, term->file);
    return written + (total - seen);
}

/* A word, with the % that follows a number. */
static size_t word_length(const char *text)
{
    size_t length = strcspn(text, " ");
    return strncmp(text + length, " %", 2) == 0 ? length + 1 + strcspn(text + length + 1, " ") : length;
}

void term_put_wrapped(const struct term *term, const char *text, int at, int indent)
{
    int width = term->width && term->width < TEXT_WIDTH ? term->width : TEXT_WIDTH;
    const char *begin = text;
    for (size_t length; *text; text += length, text += strspn(text, " ")) {
        length = word_length(text);
        int columns = (int)columns_of(text, length);
        if (text > begin && at + 1 + columns > width) {
            fprintf(term->file, "\n%*s", indent, "");
            at = indent;
        } else if (text > begin) {
            fputc(' ', term->file);
            at++;
        }
        fwrite(text, 1, length, term->file);
        at += columns;
    }
    fputc('\n', term->file);
}

int term_put_bar(const struct term *term, double share, int columns)
{
    static const char *const parts[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    int eighths = (int)(share * columns * 8), full = eighths / 8;
    for (int i = 0; i < full; i++)
        fputs(term->unicode ? "█" : "#", term->file);
    if (!term->unicode || eighths % 8 == 0)
        return full;
    fputs(parts[eighths % 8], term->file);
    return full + 1;
}
