/* console_words.c: see console.h. A word ends at a blank, but for blanks within quotes, which go, and within
 * brackets, which stay: inspect x[0, :4] has two words. */
#include "cli/console.h"

#include <ctype.h>
#include <string.h>

/* Moves the word at *from to `to`, without its quotes. False: a quote was not closed. */
static bool take_word(const char **from, char **to)
{
    char quote = 0;
    int brackets = 0;
    const char *at = *from;
    for (; *at && (quote || brackets > 0 || !isspace((unsigned char)*at)); at++) {
        if (quote ? *at == quote : *at == '"' || *at == '\'') {
            quote = quote ? 0 : *at;
            continue;
        }
        if (!quote)
            brackets += (*at == '[') - (*at == ']');
        *(*to)++ = *at;
    }
    *from = at;
    return !quote;
}

int console_split(char *line, char *words[MOST_WORDS])
{
    const char *from = line;
    char *to = line;
    int count = 0;
    for (;;) {
        while (isspace((unsigned char)*from))
            from++;
        if (!*from)
            return count;
        if (count == MOST_WORDS)
            return -1;
        words[count++] = to;
        if (!take_word(&from, &to))
            return -1;
        bool more = *from != 0;
        from += more;
        *to++ = 0;
    }
}
