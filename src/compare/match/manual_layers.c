/* manual_layers.c: see manual_layers.h. */
#include "compare/match/manual_layers.h"

#include <string.h>

/* Far beyond any model, and far from overflow. */
enum { MAX_DIGITS = 9 };

/* The number at *text, which moves behind it; false: none, or too long a one. */
static bool read_number(const char **text, int64_t *out)
{
    int64_t value = 0;
    int digits = 0;
    for (; **text >= '0' && **text <= '9'; ++*text) {
        if (++digits > MAX_DIGITS)
            return false;
        value = value * 10 + (**text - '0');
    }
    *out = value;
    return digits > 0;
}

bool td_layer_template_parse(const char *text, struct td_layer_template *out)
{
    const char *open = strstr(text, "{L");
    if (!open)
        return false;
    const char *at = open + 2;
    int64_t offset = 0;
    char sign = *at;
    if (sign == '+' || sign == '-') {
        at++;
        if (!read_number(&at, &offset))
            return false;
    }
    if (*at != '}' || strstr(at, "{L"))
        return false;
    *out = (struct td_layer_template){
        .head = text,
        .tail = at + 1,
        .head_length = (size_t)(open - text),
        .offset = sign == '-' ? -offset : offset,
    };
    return true;
}

bool td_layer_template_fits(const struct td_layer_template *t, const char *name, int64_t *layer)
{
    int64_t number;
    if (strncmp(name, t->head, t->head_length) != 0)
        return false;
    name += t->head_length;
    if (!read_number(&name, &number) || strcmp(name, t->tail) != 0)
        return false;
    *layer = number - t->offset;
    return true;
}
